//! Engines: three ways to run one cluster.
//!
//! An [`Engine`] owns the hosts, the network and time. It knows nothing of scenarios, oracles or expectations:
//! it advances, reports every handled input to a [`Watch`], and applies [`Fault`]s whose targets are resolved.
//!
//! - `event`: an event queue over the state machines; time jumps to the next event.
//! - `turmoil`: the production driver on turmoil's network.

pub mod event;
pub mod turmoil;

use std::net::SocketAddr;
use std::time::Duration;

use firedrill_core::endpoint::Endpoint;
use firedrill_core::id::NodeId;
use firedrill_core::io::{Command, Event, Refusal, Reply};
use firedrill_core::issuance::writer::Written;
use firedrill_core::metrics::Metrics;
use firedrill_core::node::Node;
use firedrill_core::time::{Instant, Now, WallTime};
use firedrill_core::wire::Header;
use serde::{Deserialize, Serialize};

use crate::scenario::model::{DiskSpec, FloodKind, HostIx, LinkSpec};

/// The wall clock of a host without offset at true time zero: 2026-01-01T00:00:00Z, the same on every engine.
pub const WALL_AT_START: WallTime = WallTime::from_unix_ms(1_767_225_600_000);

/// Which engine runs a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineKind {
    /// The event queue.
    Event,
    /// The production driver on turmoil.
    Turmoil,
}

/// What crosses the network of the event engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wire {
    /// Messages as values.
    Fast,
    /// Real bytes, MACs and modelled connections.
    Full,
}

/// Why a node was called.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cause<'a> {
    /// It booted.
    Boot,
    /// A timer was due.
    Wake,
    /// Its disk answered for a write: it is durable, or was refused.
    Disk(Written),
    /// A frame arrived, in fast mode (in the others it shows as events).
    Frame(&'a Header),
    /// Bytes or a connection report arrived.
    Wire,
    /// The workload or a stop asked for something.
    Command(&'a Command),
}

/// One handled input, right after the node handled it.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// True time of the run.
    pub at: Instant,
    /// The node's own clocks.
    pub now: Now,
    /// Which host.
    pub host: HostIx,
    /// Which boot of it, from 0.
    pub boot: u32,
    /// Why it was called.
    pub cause: Cause<'a>,
    /// The node as it is now.
    pub node: &'a Node,
    /// Where its counts are.
    pub counts: Counts<'a>,
    /// What it reported, in order.
    pub events: &'a [Event],
    /// Frames it handed to the network in this step, per target, and the bytes of their bodies.
    pub frames_sent: u64,
    /// Bytes of those frames' bodies.
    pub bytes_sent: u64,
    /// Inbound connections, links and longest queue; zero in fast mode.
    pub links: firedrill_core::endpoint::LinkSizes,
    /// Broken invariants it reported.
    pub alarms: &'a [firedrill_core::io::Alarm],
}

impl Step<'_> {
    /// The counts of this boot, those of its connections included. Made anew by every call.
    pub fn metrics(&self) -> Metrics {
        match self.counts {
            Counts::Node => self.node.metrics().clone(),
            Counts::Endpoint(endpoint) => endpoint.metrics(),
            Counts::Taken(metrics) => metrics.clone(),
        }
    }
}

/// Where the counts of a boot are to be had.
#[derive(Debug, Clone, Copy)]
pub enum Counts<'a> {
    /// At the node: it has no connections.
    Node,
    /// At the endpoint around it, which adds what connections refused and dropped.
    Endpoint(&'a Endpoint),
    /// Here: they were taken when the input was handled.
    Taken(&'a Metrics),
}

/// Whether the engine goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Go on.
    Continue,
    /// Return to the caller now: something is due at this very moment, or the run has failed.
    Stop,
}

/// Who looks at every handled input.
pub trait Watch {
    /// Called once per handled input, in order.
    fn observe(&mut self, step: &Step<'_>) -> Flow;

    /// A host went down, by power loss or after its departure. `boot` is the one that ended.
    fn down(&mut self, at: Instant, host: HostIx, boot: u32, graceful: bool);
}

/// What a host is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostState {
    /// Not started, killed or departed.
    Down,
    /// Running.
    Up,
    /// Running, but held.
    Paused,
}

/// A fault with its targets resolved. Lists of pairs are directed: sender, receiver.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// Power loss.
    Kill(HostIx),
    /// Graceful leave; the host goes down when the departure is over.
    Stop(HostIx),
    /// Boot what is down. Optionally at a new address, after a wall clock step.
    Start {
        /// Who.
        host: HostIx,
        /// Steps its wall clock first.
        wall_step_us: Option<i64>,
        /// New address, where it listens and which it advertises from then on.
        addr: Option<SocketAddr>,
        /// It finds an empty disk.
        lose_disk: bool,
    },
    /// Its disk treats writes so from now on.
    Disk {
        /// Whose.
        host: HostIx,
        /// How.
        disk: DiskSpec,
    },
    /// Hold execution.
    Pause(HostIx),
    /// Go on.
    Resume(HostIx),
    /// Frames from the first to the second vanish.
    Block(Vec<(HostIx, HostIx)>),
    /// They no longer do.
    Unblock(Vec<(HostIx, HostIx)>),
    /// Frames from the first to the second are kept.
    Hold(Vec<(HostIx, HostIx)>),
    /// What was kept is delivered in order.
    Release(Vec<(HostIx, HostIx)>),
    /// Links behave so from now on.
    Link(Vec<(HostIx, HostIx)>, LinkSpec),
    /// Present connections carry nothing any more.
    HalfOpen(Vec<(HostIx, HostIx)>),
    /// Step the wall clock.
    ClockStep {
        /// Whose.
        host: HostIx,
        /// How far, in microseconds.
        by_us: i64,
    },
    /// Run both clocks at this rate, in millionths.
    ClockRate {
        /// Whose.
        host: HostIx,
        /// 1,000,000 is right.
        rate_ppm: u32,
    },
    /// Stop (or, false, start again, from where it stopped plus nothing) the wall clock.
    ClockFreeze {
        /// Whose.
        host: HostIx,
        /// Whether it stands.
        frozen: bool,
    },
    /// Send captured frames again.
    Replay {
        /// Whose.
        from: HostIx,
        /// To whom.
        to: HostIx,
        /// Captured in this span of the run.
        captured: (Duration, Duration),
        /// At most so many, the earliest.
        count: usize,
    },
    /// Flip a bit in so many frames of a million; 0 ends it.
    Corrupt(Vec<(HostIx, HostIx)>, u32),
    /// Frames in a member's name, signed with a wrong secret.
    Forge {
        /// In whose name.
        sender: NodeId,
        /// To whom.
        to: HostIx,
        /// How many.
        count: usize,
    },
    /// Strangers connect.
    Flood {
        /// To whom.
        to: HostIx,
        /// How many.
        connections: usize,
        /// What they send.
        garbage: FloodKind,
    },
}

/// A handle to a fault applied, to ask later whether it changed anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FaultId(pub usize);

/// Counts of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunStats {
    /// Events the engine handled.
    pub events: u64,
    /// Frames delivered to a host.
    pub frames_delivered: u64,
    /// Frames that a fault or the link swallowed.
    pub frames_lost: u64,
    /// Bytes of the frame bodies sent.
    pub bytes_sent: u64,
}

/// A cluster under time that somebody else decides about.
pub trait Engine {
    /// True time of the run.
    fn now(&self) -> Instant;

    /// Handles everything due before `until`, then moves time there; returns early when the watch says so.
    /// Everything due at the same instant is handled in the order it was scheduled.
    fn run_until(&mut self, until: Instant, watch: &mut dyn Watch) -> Flow;

    /// Hands a command to a host that is up (a paused one is not); `None` when it is not.
    fn command(
        &mut self,
        host: HostIx,
        command: Command,
        watch: &mut dyn Watch,
    ) -> Option<Result<Reply, Refusal>>;

    /// Applies a fault now.
    fn apply(&mut self, fault: &Fault, watch: &mut dyn Watch) -> FaultId;

    /// Whether the fault changed anything so far: a frame it swallowed, kept, delayed or altered, a process it
    /// stopped, a clock reading that differed.
    fn had_effect(&self, fault: FaultId) -> bool;

    /// What a host is doing.
    fn state(&self, host: HostIx) -> HostState;

    /// Looks at a running (or paused) host's node.
    fn with_node(&self, host: HostIx, look: &mut dyn FnMut(&Node));

    /// The counts of a running (or paused) host's boot, those of its connections included.
    fn metrics(&self, host: HostIx) -> Option<Metrics>;

    /// Counts so far.
    fn stats(&self) -> RunStats;
}
