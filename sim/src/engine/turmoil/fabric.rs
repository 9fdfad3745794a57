//! What the engine and its hosts share: who runs where, what the links do, and what was seen.
//!
//! All of it stands behind one lock that is held for a moment at a time and never across an await or a call into
//! turmoil's network. A simulation is one thread, so nobody ever waits for it.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use firedrill_core::config::Config;
use firedrill_core::io::{Refusal, Reply};
use firedrill_core::issuance::writer::Batch;
use firedrill_core::metrics::Metrics;
use firedrill_core::node::Node;
use firedrill_core::rng::Seed;
use firedrill_core::time::{Duration, Instant, Now, micros};
use firedrill_runtime::ClusterHandle;
use tokio::sync::{Notify, Semaphore, oneshot};

use super::pipe::{Pipe, PipeId};
use super::record::Record;
use super::strangers::Visit;
use crate::engine::event::capture::Capture;
use crate::engine::event::clock::HostClock;
use crate::engine::event::directory::Directory;
use crate::engine::event::faults::FaultLog;
use crate::engine::event::network::{Fate, Network};
use crate::engine::event::store::Store;
use crate::engine::{FaultId, RunStats, WALL_AT_START};
use crate::scenario::model::{Host, HostIx, LinkSpec};

/// Connections that may be on their way to one host at once: turmoil's listener panics at 64.
const CONNECTS_MAX: usize = 32;

/// Shared by the engine and everything that runs on its hosts. Clones are the same.
#[derive(Clone)]
pub(super) struct Fabric(Arc<Mutex<State>>);

/// What a hold keeps.
pub(super) enum Parcel {
    /// A frame.
    Frame { pipe: PipeId, frame: Bytes },
    /// A packet of a connection: whoever waits is told when it arrives.
    Signal(oneshot::Sender<Instant>),
}

/// One host as everybody sees it.
pub(super) struct Place {
    /// Its configuration, with its present address.
    pub(super) config: Config,
    pub(super) clock: HostClock,
    pub(super) disk: Store<Batch>,
    /// When the write under way is answered, if it is.
    pub(super) disk_due: Option<Instant>,
    pub(super) disk_changed: Arc<Notify>,
    pub(super) up: bool,
    /// The number of the running boot, or of the last one.
    pub(super) boot: u32,
    pub(super) boots: u32,
    /// The fault that holds it, while paused.
    pub(super) paused: Option<FaultId>,
    /// Where it listens, once it does.
    pub(super) port: Option<u16>,
    /// Its node as it was last seen.
    pub(super) node: Option<Arc<Node>>,
    /// Its counts then.
    pub(super) metrics: Option<Metrics>,
    pub(super) handle: Option<ClusterHandle>,
    /// Asks the process for a graceful departure.
    pub(super) stop: Arc<Notify>,
    /// The process has departed and its kernel has nothing left to send.
    pub(super) finished: bool,
    /// Who waits for it to be resumed, or to listen.
    waiting: Vec<Waker>,
    /// Bounds the connections on their way to it.
    pub(super) connects: Arc<Semaphore>,
    /// Clock faults that no handled input has felt yet, with the moment from which one does.
    clock_faults: Vec<(FaultId, Instant)>,
}

/// Everything.
pub(super) struct State {
    pub(super) tick: Duration,
    /// True time at the end of the last tick; within one, the host that runs knows better.
    pub(super) ticked_to: Instant,
    /// What boots draw from.
    boots: Seed,
    pub(super) hosts: Vec<Place>,
    pub(super) directory: Directory,
    pub(super) net: Network<Parcel>,
    pub(super) faults: FaultLog,
    pub(super) capture: Option<Capture<Bytes>>,
    pub(super) stats: RunStats,
    pub(super) pipes: BTreeMap<PipeId, Pipe>,
    pub(super) next_pipe: u64,
    pub(super) visits: VecDeque<Visit>,
    pub(super) visits_wanted: Arc<Notify>,
    pub(super) records: Vec<Record>,
    /// The answer to the last command.
    pub(super) reply: Option<Result<Reply, Refusal>>,
    /// What a host panicked with.
    pub(super) panic: Option<Box<dyn Any + Send>>,
    #[cfg(test)]
    pub(super) bomb: Option<HostIx>,
}

/// What becomes of a packet of a connection.
enum Crossing {
    Lost,
    Held(oneshot::Receiver<Instant>),
    Arrives(Instant),
}

/// turmoil's address of a host.
pub(super) fn ip_of(host: HostIx) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from(Ipv4Addr::new(10, 0, 0, 1).to_bits() + number(host)))
}

/// The host that has this address in turmoil; `None` for strangers.
pub(super) fn host_of(ip: IpAddr, hosts: usize) -> Option<HostIx> {
    (0..hosts).map(HostIx).find(|host| ip_of(*host) == ip)
}

/// A host as the network model counts them.
pub(super) fn number(host: HostIx) -> u32 {
    u32::try_from(host.0).expect("hosts are few")
}

impl Fabric {
    pub(super) fn new(
        hosts: &[Host],
        net: &LinkSpec,
        seed: &Seed,
        tick: Duration,
        keep_frames: bool,
    ) -> Self {
        let mut directory = Directory::default();
        let places = hosts.iter().enumerate().map(|(index, host)| {
            directory.set(number(HostIx(index)), host.listens_at());
            Place {
                config: host.node_config(),
                clock: HostClock::new(WALL_AT_START.offset_micros(host.wall_offset_us)),
                disk: Store::new(seed.fork_index("disk", index as u64).rng()),
                disk_due: None,
                disk_changed: Arc::new(Notify::new()),
                up: false,
                boot: 0,
                boots: 0,
                paused: None,
                port: None,
                node: None,
                metrics: None,
                handle: None,
                stop: Arc::new(Notify::new()),
                finished: false,
                waiting: Vec::new(),
                connects: Arc::new(Semaphore::new(CONNECTS_MAX)),
                clock_faults: Vec::new(),
            }
        });
        Self(Arc::new(Mutex::new(State {
            tick,
            ticked_to: Instant::ZERO,
            boots: seed.fork("hosts"),
            hosts: places.collect(),
            directory,
            net: Network::new(hosts.len(), net, seed.fork("network")),
            faults: FaultLog::default(),
            capture: keep_frames.then(|| Capture::new(hosts.len())),
            stats: RunStats::default(),
            pipes: BTreeMap::new(),
            next_pipe: 0,
            visits: VecDeque::new(),
            visits_wanted: Arc::new(Notify::new()),
            records: Vec::new(),
            reply: None,
            panic: None,
            #[cfg(test)]
            bomb: None,
        })))
    }

    /// Everything, for a moment. After a panic it is what the panic left.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a future of a host's process, except while the host is paused.
    pub(super) async fn process<F: Future>(&self, host: HostIx, future: F) -> F::Output {
        let mut future = std::pin::pin!(future);
        poll_fn(|context| {
            std::task::ready!(self.poll_running(host, context));
            future.as_mut().poll(context)
        })
        .await
    }

    /// Ready while the host's process may run. What asks in vain is an input or a timer that the pause keeps.
    pub(super) fn poll_running(&self, host: HostIx, context: &Context<'_>) -> Poll<()> {
        let state = &mut *self.lock();
        let place = &mut state.hosts[host.0];
        let Some(fault) = place.paused else { return Poll::Ready(()) };
        place.waiting.push(context.waker().clone());
        state.faults.mark(fault);
        Poll::Pending
    }

    /// Waits until the host's process accepts a connection that has reached it: while it is paused or booting,
    /// its kernel keeps it waiting; a host that is down, or goes down meanwhile, is never heard.
    pub(super) async fn accepting(&self, host: HostIx) -> u16 {
        let mut reached = None;
        poll_fn(|context| {
            let place = &mut self.lock().hosts[host.0];
            if !place.up || *reached.get_or_insert(place.boot) != place.boot {
                return Poll::Pending;
            }
            match place.port {
                Some(port) if place.paused.is_none() => Poll::Ready(port),
                Some(_) | None => {
                    place.waiting.push(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// A packet of a connection goes from one host to another: returns when it arrives, less `early`, and never
    /// if it is lost.
    pub(super) async fn crosses(&self, from: HostIx, to: HostIx, early: Duration) {
        let crossing = self.lock().signal(from, to);
        let at = match crossing {
            Crossing::Lost => None,
            Crossing::Held(released) => released.await.ok(),
            Crossing::Arrives(at) => Some(at),
        };
        let Some(at) = at else { return std::future::pending().await };
        let wait = at.since(self.lock().now().after(early));
        if wait > Duration::ZERO {
            tokio::time::sleep(wait).await;
        }
        let swallowed = self.lock().swallows(from, to);
        if swallowed {
            std::future::pending().await
        }
    }
}

impl State {
    /// True time: that of the host that runs, or the end of the last tick when none does.
    pub(super) fn now(&self) -> Instant {
        turmoil::sim_elapsed().map_or(self.ticked_to, |elapsed| Instant::from_micros(micros(elapsed)))
    }

    /// Both clocks of a host.
    pub(super) fn clocks(&self, host: HostIx) -> Now {
        self.hosts[host.0].clock.read(self.now())
    }

    /// A new process is about to start.
    pub(super) fn boot(&mut self, host: HostIx) {
        let now = self.now();
        let place = &mut self.hosts[host.0];
        place.boot = place.boots;
        place.boots += 1;
        place.up = true;
        place.finished = false;
        place.stop = Arc::new(Notify::new());
        place.connects = Arc::new(Semaphore::new(CONNECTS_MAX));
        place.clock.boot(now);
    }

    /// What the present boot of a host draws from.
    pub(super) fn seed(&self, host: HostIx) -> Seed {
        let boot = u64::from(self.hosts[host.0].boot);
        self.boots.fork_index("host", host.0 as u64).fork_index("boot", boot)
    }

    /// The process is gone; its kernel may still have something to send.
    pub(super) fn ended(&mut self, host: HostIx) {
        let place = &mut self.hosts[host.0];
        place.up = false;
        place.paused = None;
        place.port = None;
        place.node = None;
        place.metrics = None;
        place.handle = None;
    }

    /// Lets whoever waits for a host look again.
    pub(super) fn wake(&mut self, host: HostIx) {
        for waker in self.hosts[host.0].waiting.drain(..) {
            waker.wake();
        }
    }

    /// Whether a cut swallows what arrives on this way now.
    pub(super) fn swallows(&mut self, from: HostIx, to: HostIx) -> bool {
        self.net.swallows_arrival(number(from), number(to), &mut self.faults)
    }

    fn signal(&mut self, from: HostIx, to: HostIx) -> Crossing {
        let now = self.now();
        match self.net.fate(now, number(from), number(to), None, &mut self.faults) {
            Fate::Lost => Crossing::Lost,
            Fate::Held => {
                let (sender, receiver) = oneshot::channel();
                self.net.keep(number(from), number(to), Parcel::Signal(sender));
                Crossing::Held(receiver)
            }
            Fate::Arrives { at, .. } => Crossing::Arrives(at),
        }
    }

    /// Ends the hold of a way: what was kept is sent now, in order. True when it was held.
    pub(super) fn release(&mut self, from: HostIx, to: HostIx) -> bool {
        let Some(held) = self.net.release(from.0, to.0) else { return false };
        for parcel in held {
            match parcel {
                Parcel::Frame { pipe, frame } => self.relaunch(pipe, frame),
                Parcel::Signal(sender) => {
                    if let Crossing::Arrives(at) = self.signal(from, to) {
                        // Nobody waits any more: the dial was given up.
                        let _ = sender.send(at);
                    }
                }
            }
        }
        true
    }

    /// Changes a host's clock; the fault has an effect with the first input handled `felt_after` from now.
    pub(super) fn change_clock(
        &mut self,
        host: HostIx,
        fault: FaultId,
        felt_after: Duration,
        change: impl FnOnce(&mut HostClock, Instant) -> bool,
    ) {
        let now = self.now();
        let place = &mut self.hosts[host.0];
        if change(&mut place.clock, now) {
            place.clock_faults.push((fault, now.after(felt_after)));
        }
    }

    /// An input was handled: clock faults up to now have been felt.
    pub(super) fn feel_clock_faults(&mut self, host: HostIx, at: Instant) {
        let log = &mut self.faults;
        self.hosts[host.0].clock_faults.retain(|(fault, felt_from)| {
            let felt = at >= *felt_from;
            if felt {
                log.mark(*fault);
            }
            !felt
        });
    }
}
