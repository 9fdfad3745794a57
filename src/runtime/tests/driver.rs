//! The driver with parts of the tests' own: a fast clock, a watching observer, a listener that fails.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use firedrill_core::endpoint::Endpoint;
use firedrill_core::id::{Incarnation, NodeId, Seq};
use firedrill_core::io::{Command, EndpointInput, EndpointOutput, Reply};
use firedrill_core::rng::Seed;
use firedrill_core::time::{Instant, Now};
use firedrill_core::wire::Header;
use firedrill_core::wire::envelope::{Key, seal};
use firedrill_runtime::{
    Clock, CommandError, Departure, Driver, Listener, Net, Observer, SystemClock, TokioNet,
};
use support::{config, eventually, ids, start};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// How much faster than real time [`Fast`] runs.
const SPEED: u32 = 20;

/// A clock on which ten seconds pass in half a second.
struct Fast(SystemClock);

impl Clock for Fast {
    fn now(&self) -> Now {
        let now = self.0.now();
        Now { instant: Instant::from_micros(now.instant.as_micros() * u64::from(SPEED)), ..now }
    }

    fn timer(&self, span: Duration) -> Duration {
        span / SPEED
    }
}

/// When, what went in, what came out.
type Step = (Now, EndpointInput, Vec<EndpointOutput>);

/// Keeps every step.
#[derive(Clone, Default)]
struct Steps(Arc<Mutex<Vec<Step>>>);

impl Observer for Steps {
    fn handled(&mut self, _: &Endpoint, now: Now, input: &EndpointInput, outputs: &[EndpointOutput]) {
        self.0.lock().unwrap().push((now, input.clone(), outputs.to_vec()));
    }
}

impl Steps {
    fn count(&self, of: impl Fn(&EndpointInput) -> bool) -> usize {
        self.0.lock().unwrap().iter().filter(|(_, input, _)| of(input)).count()
    }
}

fn driver<O: Observer>(observer: O) -> Driver<TokioNet, SystemClock, O> {
    Driver { net: TokioNet, clock: SystemClock::new(), seed: Seed::from_u64(1), observer, store: None }
}

#[tokio::test]
async fn a_half_written_frame_followed_by_silence_is_closed_at_the_idle_limit() {
    let clock = Fast(SystemClock::new());
    let bound = Driver { net: TokioNet, clock, seed: Seed::from_u64(1), observer: (), store: None };
    let bound = bound.bind(&config("a", &[]).into()).await.unwrap();
    let addr = bound.handle().local_addr();
    let node = tokio::spawn(bound.run());

    let mut stranger = TcpStream::connect(addr).await.unwrap();
    stranger.write_all(&[0, 0, 1, 0, b'{']).await.unwrap();
    let begin = tokio::time::Instant::now();
    let ended = timeout(support::PATIENCE, stranger.read(&mut [0])).await.unwrap();
    assert!(!matches!(ended, Ok(1..)), "the node never answers on an inbound connection");
    let took = begin.elapsed();
    let idle = config("a", &[]).timing().idle() / SPEED;
    assert!(took > idle * 9 / 10 && took < idle * 3, "closed after {took:?}, not {idle:?}");
    node.abort();
}

#[tokio::test]
async fn the_observer_sees_every_step_with_its_outputs() {
    let steps = Steps::default();
    let bound = driver(steps.clone()).bind(&config("a", &[]).into()).await.unwrap();
    let handle = bound.handle();
    let (stop, stopped) = oneshot::channel::<()>();
    let node = tokio::spawn(bound.run_until(async { drop(stopped.await) }));

    assert_eq!(handle.counter("c").unwrap().add(5), Ok(5));
    stop.send(()).unwrap();
    let how = timeout(support::PATIENCE, node).await.unwrap().unwrap();
    assert_eq!(how, Departure::Flushed, "a shutdown future departs like a leave");

    let steps = steps.0.lock().unwrap();
    let reply = EndpointOutput::Reply(Ok(Reply::Incremented { total: 5 }));
    let increment =
        steps.iter().find(|(_, input, _)| matches!(input, EndpointInput::Command(Command::Increment { .. })));
    assert!(increment.is_some_and(|(_, _, outputs)| outputs.contains(&reply)));
    assert!(steps.iter().any(|(_, input, _)| *input == EndpointInput::Command(Command::Leave)));
    assert!(steps.iter().any(|(_, input, _)| *input == EndpointInput::Wake));
    assert!(
        steps
            .iter()
            .flat_map(|(_, _, outputs)| outputs)
            .any(|output| matches!(output, EndpointOutput::Departed { .. }))
    );
    assert!(steps.is_sorted_by_key(|(now, _, _)| now.instant), "time never goes back");
}

#[tokio::test]
async fn a_quiet_node_sleeps_between_its_rounds() {
    let steps = Steps::default();
    let bound = driver(steps.clone()).bind(&config("a", &[]).into()).await.unwrap();
    let node = tokio::spawn(bound.run());
    let wakes = || steps.count(|input| *input == EndpointInput::Wake);
    // Rounds come every 50 ms or so; a loop that spins makes thousands of wake-ups of the same time.
    let took = eventually("twenty wake-ups", || wakes() >= 20).await;
    assert!(took > support::PUSH * 5, "twenty wake-ups in {took:?}");
    node.abort();
}

/// Panics at the first command.
struct Bomb;

impl Observer for Bomb {
    fn handled(&mut self, _: &Endpoint, _: Now, input: &EndpointInput, _: &[EndpointOutput]) {
        assert!(!matches!(input, EndpointInput::Command(_)), "the bomb goes off");
    }
}

#[tokio::test]
async fn a_panic_under_the_lock_ends_the_node_and_handles_say_so() {
    let bound = driver(Bomb).bind(&config("a", &[]).into()).await.unwrap();
    let (handle, counter) = (bound.handle(), bound.handle().counter("c").unwrap());
    let node = tokio::spawn(bound.run());
    let first = counter.clone();
    assert!(tokio::spawn(async move { first.increment() }).await.is_err(), "the caller gets the panic");
    assert_eq!(timeout(support::PATIENCE, node).await.unwrap().unwrap(), Departure::Cut);
    assert_eq!(counter.increment(), Err(CommandError::Stopped));
    assert_eq!(handle.leave().await, Departure::Cut);
    assert_eq!(ids(&handle), ["a"], "the last view can still be read");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_replayed_frames_keeps_no_newcomer_out() {
    let a = start("a", &[]).await;
    let settings = config("a", &[]);
    let header = Header { sender: NodeId::new("ghost").unwrap(), incarnation: Incarnation(1), seq: Seq(0) };
    let key = Key::new(&settings.secret);
    let replay = seal(&key, &settings.cluster_name, &header, r#"{"type":"leave"}"#).unwrap();
    let flood = replay.repeat(256);
    let mut flooders = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (addr, flood) = (a.local_addr(), flood.clone());
        flooders.spawn(async move {
            let mut stream = TcpStream::connect(addr).await.unwrap();
            while stream.write_all(&flood).await.is_ok() {}
        });
    }
    eventually("the flood arrives", || a.metrics().frames_rejected.iter().sum::<u64>() > 1_000).await;
    let b = start("b", &[a.local_addr()]).await;
    eventually("both see both", || ids(&a).len() == 2 && ids(&b).len() == 2).await;
    flooders.shutdown().await;
}

/// Real TCP whose listener fails a few times first, as when a process runs out of files.
#[derive(Clone)]
struct Stumbling {
    failures_left: Arc<AtomicU32>,
}

struct StumblingListener(TcpListener, Arc<AtomicU32>);

impl Net for Stumbling {
    type Stream = TcpStream;
    type Listener = StumblingListener;

    async fn bind(&self, addr: SocketAddr) -> io::Result<StumblingListener> {
        Ok(StumblingListener(TcpListener::bind(addr).await?, Arc::clone(&self.failures_left)))
    }

    async fn dial(&self, addr: SocketAddr) -> io::Result<TcpStream> {
        TcpStream::connect(addr).await
    }
}

impl Listener for StumblingListener {
    type Stream = TcpStream;

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    async fn accept(&mut self) -> io::Result<TcpStream> {
        let failed = self.1.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        match failed {
            Ok(_) => Err(io::Error::other("too many open files")),
            Err(_) => self.0.accept().await.map(|(stream, _)| stream),
        }
    }
}

#[tokio::test]
async fn a_listener_that_fails_is_tried_again_after_a_pause_and_then_serves() {
    let net = Stumbling { failures_left: Arc::new(AtomicU32::new(5)) };
    let steps = Steps::default();
    let parts = Driver {
        net,
        clock: SystemClock::new(),
        seed: Seed::from_u64(1),
        observer: steps.clone(),
        store: None,
    };
    let bound = parts.bind(&config("a", &[]).into()).await.unwrap();
    let a = bound.handle();
    let node = tokio::spawn(bound.run());
    let b = start("b", &[a.local_addr()]).await;
    eventually("both see both", || ids(&a).len() == 2 && b.members().len() == 2).await;

    let steps = steps.0.lock().unwrap();
    let failures: Vec<Instant> = steps
        .iter()
        .filter(|(_, input, _)| *input == EndpointInput::AcceptFailed)
        .map(|(now, _, _)| now.instant)
        .collect();
    assert_eq!(failures.len(), 5);
    let pause = firedrill_core::limits::ACCEPT_PAUSE;
    assert!(failures.windows(2).all(|pair| pair[1].since(pair[0]) >= pause), "{failures:?}");
    drop(steps);
    node.abort();
}
