//! The driver: carries out what the core wants, tells it what happened, and sleeps until it is due again.
//!
//! All parts are handed in, so a simulation runs this very code on its own network, clock and seed. Given the
//! same arrivals in the same order a run is the same bit for bit: selects are biased, tables are ordered,
//! nothing draws randomness. The one exception is a runtime dropped with its tasks: tokio drops those in an
//! order that depends on numbers shared by the whole process, so a simulated crash must cut the node's links
//! first. A departure closes everything in order.
//!
//! Invariants: effects are carried out in the order in which the core pushed them, before the next input;
//! `next_wake` is read anew after every input; a sleep is never shorter than the timer's grain, so the loop
//! cannot spin.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use firedrill_core::config::Config;
use firedrill_core::endpoint::Endpoint;
use firedrill_core::io::{EndpointInput, EndpointOutput};
use firedrill_core::issuance::writer::{Batch, Token, Written};
use firedrill_core::node::Recovered;
use firedrill_core::rng::Seed;
use firedrill_core::time::Now;

use crate::clock::Clock;
use crate::handle::{ClusterHandle, Departure};
use crate::net::{Listener as _, Net};
use crate::pipes::{Pipes, Reports};
use crate::shared::{Effect, Shared};
use crate::store::{Store, StoreError};

/// Watches every step of a node: an oracle, a digest, a flight recorder. `()` watches nothing.
pub trait Observer: Send + 'static {
    /// Called synchronously after every step, under the node's lock: return soon, and do not call the node's
    /// handle. `outputs` have not been carried out yet.
    fn handled(&mut self, endpoint: &Endpoint, now: Now, input: &EndpointInput, outputs: &[EndpointOutput]);
}

impl Observer for () {
    fn handled(&mut self, _: &Endpoint, _: Now, _: &EndpointInput, _: &[EndpointOutput]) {}
}

/// The parts of a node that is about to start.
pub struct Driver<N, C, O = ()> {
    /// What it listens and dials on.
    pub net: N,
    /// Where its time comes from.
    pub clock: C,
    /// Where all its draws come from.
    pub seed: Seed,
    /// Who watches.
    pub observer: O,
    /// Where rows survive; a node with `[issuance]` needs one.
    pub store: Option<Box<dyn Store>>,
}

impl<N: Net, C: Clock, O: Observer> Driver<N, C, O> {
    /// Listens, then boots the node: port 0 is resolved before anybody learns the address.
    ///
    /// # Errors
    /// [`StartError`]; nothing was started.
    pub async fn bind(self, config: &Config) -> Result<Bound<N>, StartError> {
        self.bind_with(config, Endpoint::new).await
    }

    /// As [`Driver::bind`], with a node of the caller's making. `boot` is given the configuration with the
    /// advertised address filled in, and what the store held.
    ///
    /// # Errors
    /// [`StartError`]; nothing was started.
    pub async fn bind_with(
        self,
        config: &Config,
        boot: impl FnOnce(&Config, Seed, Recovered, Now) -> Endpoint,
    ) -> Result<Bound<N>, StartError> {
        let Self { net, clock, seed, observer, mut store } = self;
        let Config { cluster, issuance, .. } = config;
        if !cluster.enabled {
            return Err(StartError::Disabled);
        }
        if issuance.is_some() && store.is_none() {
            return Err(StartError::NoStore);
        }
        let recovered = match &mut store {
            Some(store) => Recovered { issuance: store.load().await.map_err(StartError::Store)? },
            None => Recovered::default(),
        };
        let addr = cluster.bind_addr;
        let listen = |source| StartError::Listen { addr, source };
        let listener = net.bind(addr).await.map_err(listen)?;
        let local_addr = listener.local_addr().map_err(listen)?;
        let advertised = cluster.advertise_addr.unwrap_or(local_addr);
        if advertised.ip().is_unspecified() || advertised.port() == 0 {
            return Err(StartError::NotDialable { addr: advertised });
        }
        let mut config = config.clone();
        config.cluster.advertise_addr = Some(advertised);
        let endpoint = boot(&config, seed, recovered, clock.now());
        let shared = Arc::new(Shared::new(endpoint, Box::new(clock), Box::new(observer), local_addr));
        Ok(Bound { net, listener, disk: Disk::new(store), end: End { shared, how: Departure::Cut } })
    }
}

/// A node that listens and waits to be run. Dropping it, or the future that runs it, is a crash to its peers.
pub struct Bound<N: Net> {
    net: N,
    listener: N::Listener,
    disk: Disk,
    end: End,
}

impl<N: Net> Bound<N> {
    /// A handle, usable from now on.
    pub fn handle(&self) -> ClusterHandle {
        ClusterHandle::new(Arc::clone(&self.end.shared))
    }

    /// Runs until [`ClusterHandle::leave`] has departed.
    pub async fn run(self) -> Departure {
        let Self { net, listener, mut disk, mut end } = self;
        let shared = Arc::clone(&end.shared);
        let (mut pipes, mut reports) = Pipes::open(net, listener);
        end.how = drive(&shared, &mut pipes, &mut reports, &mut disk).await;
        pipes.close().await;
        end.how
    }

    /// Runs until `shutdown` completes, then departs gracefully. Also ends as [`Bound::run`] does.
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) -> Departure {
        let handle = self.handle();
        let mut run = pin!(self.run());
        tokio::select! {
            biased;
            how = &mut run => return how,
            () = shutdown => handle.begin_leave(),
        }
        run.await
    }
}

/// Says how the node ended when it ends, also when its future is dropped.
struct End {
    shared: Arc<Shared>,
    how: Departure,
}

impl Drop for End {
    fn drop(&mut self) {
        self.shared.end(self.how);
    }
}

/// The loop.
async fn drive<N: Net>(
    shared: &Shared,
    pipes: &mut Pipes<N>,
    reports: &mut Reports<N::Stream>,
    disk: &mut Disk,
) -> Departure {
    let mut input = Some(EndpointInput::Wake);
    loop {
        let sleep = match step(shared, pipes, disk, input.take()) {
            Next::Sleep(sleep) => sleep,
            Next::End(how) => return how,
        };
        tokio::select! {
            biased;
            Some(report) = reports.recv() => input = Some(pipes.take(report)),
            (token, written) = disk.answered() => input = Some(EndpointInput::Persisted { token, written }),
            // Not first: a service that counts in a tight loop must not keep the network out.
            () = shared.changed.notified() => {}
            () = sleep_for(sleep) => input = Some(EndpointInput::Wake),
        }
    }
}

/// What follows from a step.
enum Next {
    /// Wait for a report or a command, and no longer than this; `None` for ever.
    Sleep(Option<Duration>),
    /// The node has ended.
    End(Departure),
}

/// Hands an input to the core and carries out everything it wants.
fn step<N: Net>(
    shared: &Shared,
    pipes: &mut Pipes<N>,
    disk: &mut Disk,
    input: Option<EndpointInput>,
) -> Next {
    // The core has panicked: to its peers that is a crash.
    let Some(mut state) = shared.drive() else { return Next::End(Departure::Cut) };
    if let Some(input) = input {
        state.handle(input);
    }
    while let Some(effect) = state.next_effect() {
        match effect {
            Effect::Dial { link, addr } => pipes.dial(link, addr),
            Effect::Write { link, frame } => pipes.write(link, frame),
            Effect::CloseLink { link } => pipes.close_link(link),
            Effect::CloseInbound { inbound } => pipes.close_inbound(inbound),
            Effect::Accept(accepting) => pipes.set_accepting(accepting),
            Effect::Persist { token, batch } => disk.persist(token, batch),
            Effect::Departed { flushed: true } => return Next::End(Departure::Flushed),
            Effect::Departed { flushed: false } => return Next::End(Departure::OutOfTime),
        }
    }
    Next::Sleep(state.sleep())
}

/// The store, and the write under way: the core starts one at a time.
struct Disk {
    idle: Option<Box<dyn Store>>,
    writing: Option<Pin<Box<dyn Future<Output = Answer> + Send>>>,
}

/// A store after a write, and what became of that.
type Answer = (Box<dyn Store>, Token, Written);

impl Disk {
    const fn new(store: Option<Box<dyn Store>>) -> Self {
        Self { idle: store, writing: None }
    }

    fn persist(&mut self, token: Token, batch: Batch) {
        // Without a store there is no issuance, and nothing to write.
        let Some(mut store) = self.idle.take() else { return };
        self.writing = Some(Box::pin(async move {
            let written = store.persist(batch).await;
            (store, token, written)
        }));
    }

    /// Waits for the answer to the write under way, for ever without one. May be dropped and called again.
    async fn answered(&mut self) -> (Token, Written) {
        let Some(writing) = &mut self.writing else { return std::future::pending().await };
        let (store, token, written) = writing.await;
        self.writing = None;
        self.idle = Some(store);
        (token, written)
    }
}

async fn sleep_for(span: Option<Duration>) {
    match span {
        Some(span) => tokio::time::sleep(span).await,
        None => std::future::pending().await,
    }
}

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// `enabled` is not set.
    #[error(
        "[cluster] enabled is false: set it to true, and give a secret of at least 16 bytes, to run a node"
    )]
    Disabled,
    /// The listener could not be opened.
    #[error("cannot listen on [cluster] bind_addr {addr}: {source}; {}", advice(source.kind()))]
    Listen {
        /// Where.
        addr: SocketAddr,
        /// What the operating system said.
        source: io::Error,
    },
    /// The node is bound to an address that no peer could dial.
    #[error(
        "peers cannot dial {addr}: set [cluster] advertise_addr to the address and port that reach this node"
    )]
    NotDialable {
        /// What would have been advertised.
        addr: SocketAddr,
    },
    /// A node with issuance has nowhere to keep its rows.
    #[error("[issuance] is enabled, and the node was given no store to keep its rows in")]
    NoStore,
    /// The store could not be read.
    #[error(transparent)]
    Store(StoreError),
    /// The operating system gave no randomness for the first seed.
    #[error(
        "the operating system gave no randomness ({0}): check that /dev/urandom or getrandom is allowed here"
    )]
    Randomness(getrandom::Error),
}

/// What to do about a listener that does not open.
const fn advice(kind: io::ErrorKind) -> &'static str {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the kinds are std's and open-ended")]
    match kind {
        io::ErrorKind::AddrInUse => {
            "another process has it: stop that process, or choose another port (0 takes any)"
        }
        io::ErrorKind::AddrNotAvailable => {
            "this host has no such address: bind one it has, or 0.0.0.0 with advertise_addr"
        }
        io::ErrorKind::PermissionDenied => "ports below 1024 need a privilege: choose a higher one",
        _ => "check the address and this process's limits",
    }
}
