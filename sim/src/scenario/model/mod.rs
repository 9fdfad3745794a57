//! What a scenario says, once it has been read and checked.
//!
//! Everything here is resolved: hosts are indices, durations are durations, and a verb that the chosen engine
//! cannot do has been refused. Spans point into the files the scenario was read from.

mod facts;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use firedrill_core::config::{ClusterConfig, Config, IssuanceConfig};
use firedrill_core::id::{CounterName, NodeId};
use serde::{Deserialize, Serialize};

pub use facts::*;

/// A host of the run, by its position in [`Scenario::hosts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HostIx(pub usize);

/// A step, by its position in [`Scenario::steps`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StepIx(pub usize);

/// Where something stands in the files of a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// Which of [`Scenario::files`].
    pub file: usize,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// One file a scenario was read from: the first is the scenario, the rest are its includes.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// As given by the user.
    pub path: String,
    /// Its text.
    pub text: Arc<str>,
}

/// The seed of a scenario that names none.
pub const SEED_DEFAULT: u64 = 1;

/// A checked scenario.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Short name, unique in a folder.
    pub name: String,
    /// The story in a sentence or two.
    pub about: String,
    /// The seed to use unless the command names one.
    pub seed: u64,
    /// Virtual time at which the faults and the workload are over and the liveness phase begins.
    pub time_limit: Duration,
    /// The hosts, in the order of the file.
    pub hosts: Vec<Host>,
    /// The network when no fault acts on it.
    pub net: LinkSpec,
    /// What clients do.
    pub workloads: Vec<Workload>,
    /// The drill, in the order of the file.
    pub steps: Vec<Step>,
    /// What must hold.
    pub expects: Vec<Expect>,
    /// Oracles turned off, with the reason.
    pub oracles_off: BTreeMap<String, String>,
    /// Extra time the liveness phase may take over the bound that the protocol gives; `None` uses the bound
    /// alone.
    pub settle_within: Option<Duration>,
    /// Two boots may share a millisecond of the wall clock.
    pub same_millisecond: bool,
    /// Only real bytes can run it: a byte-level verb, or hosts that differ in secret or cluster name.
    pub needs_full: bool,
    /// What was read.
    pub files: Vec<SourceFile>,
}

/// One host: a node's identity and configuration.
#[derive(Debug, Clone)]
pub struct Host {
    /// Its name in the scenario; unique, also where two hosts share a node id.
    pub name: String,
    /// Its node id, its name unless `config_for` says otherwise.
    pub id: NodeId,
    /// Its `[cluster]`; addresses, seeds, secret and id supplied by the harness where absent.
    pub config: ClusterConfig,
    /// Its `[issuance]`, where the scenario has one.
    pub issuance: Option<IssuanceConfig>,
    /// Offset of its wall clock from true time at the start, in microseconds.
    pub wall_offset_us: i64,
    /// Whether it runs from the start; otherwise an `add_node` step starts it.
    pub from_start: bool,
}

impl Host {
    /// Its configuration as a node takes it.
    pub fn node_config(&self) -> Config {
        Config { issuance: self.issuance.clone(), ..self.config.clone().into() }
    }

    /// Where the network delivers to it: where it listens, whatever it advertises. One that listens at every
    /// address of its machine has the one it advertises.
    pub const fn listens_at(&self) -> SocketAddr {
        let bound = self.config.bind_addr;
        if bound.ip().is_unspecified() {
            SocketAddr::new(self.config.advertised().ip(), bound.port())
        } else {
            bound
        }
    }
}

/// How one direction of a link treats frames. Rates are per million frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkSpec {
    /// Shortest latency; above 0.
    pub latency_min: Duration,
    /// Longest latency.
    pub latency_max: Duration,
    /// Frames lost.
    pub loss_ppm: u32,
    /// Frames delivered twice.
    pub duplicate_ppm: u32,
    /// Frames delayed by up to ten times the longest latency more, so that later ones overtake.
    pub reorder_ppm: u32,
    /// Bytes a second; `None` is unlimited.
    pub bandwidth: Option<u64>,
}

impl LinkSpec {
    /// The network of a scenario that says nothing about it.
    pub const DEFAULT: Self = Self {
        latency_min: Duration::from_millis(1),
        latency_max: Duration::from_millis(5),
        loss_ppm: 0,
        duplicate_ppm: 0,
        reorder_ppm: 0,
        bandwidth: None,
    };
}

/// A client's work: increments of one counter, round robin over its hosts that are up.
#[derive(Debug, Clone)]
pub struct Workload {
    /// The counter.
    pub counter: CounterName,
    /// Time between increments.
    pub every: Duration,
    /// How much each adds.
    pub by: u64,
    /// On which hosts; all when empty.
    pub on: Vec<HostIx>,
    /// First increment.
    pub from: Duration,
    /// No increment after this; the time limit when `None`.
    pub until: Option<Duration>,
    /// Where it stands.
    pub span: Span,
}

/// One step of the drill: one verb at one moment.
#[derive(Debug, Clone)]
pub struct Step {
    /// The id that other steps and expectations use.
    pub id: Option<String>,
    /// When it fires.
    pub start: Start,
    /// What it does.
    pub verb: Verb,
    /// The fault is undone after this long (pause → resume, partition → heal, …).
    pub lasts: Option<Duration>,
    /// Fires again after each such time …
    pub every: Option<Duration>,
    /// … until this moment of the run (required with `every`).
    pub until: Option<Duration>,
    /// Where it stands.
    pub span: Span,
}

/// When a step fires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// At this time from the start.
    At(Duration),
    /// This long after a step fired.
    AfterStep(StepIx, Duration),
    /// This long after the first such event following the step before this one.
    AfterEvent(EventPattern, Duration),
}

/// Which hosts a verb acts on; symbols are resolved when the step fires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// These.
    Hosts(Vec<HostIx>),
    /// One that is up, drawn from the seed.
    Any,
    /// Fewer than half of those that are up, drawn from the seed.
    Minority,
    /// More than half of those that are up, drawn from the seed.
    Majority,
    /// Everyone that the verb can act on.
    All,
    /// Whoever holds the lease, as most of the running nodes see it.
    Holder,
    /// Whoever is first in line after the holder.
    Successor,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verb {
    /// Power loss: peers see nothing.
    Kill(Target),
    /// Graceful leave, then down.
    Stop(Target),
    /// Start again what is down (or kill and start what is up).
    Restart {
        /// Who.
        target: Target,
        /// Steps its wall clock by this many microseconds first.
        wall_step_us: Option<i64>,
        /// Starts at this address from now on.
        addr: Option<SocketAddr>,
        /// Starts with an empty disk.
        lose_disk: bool,
    },
    /// Hold the host's execution: no input, no timer.
    Pause(Target),
    /// Let it go on.
    Resume(Target),
    /// Only hosts of one group hear each other; who is in no group forms one more.
    Partition(Vec<Target>),
    /// Cut these off from everybody, each other included.
    Isolate(Target),
    /// Undo partition, isolate, cut, hold and link, everywhere. Corruption and half-open connections stay.
    Heal,
    /// Nothing from one side reaches the other; the way back works.
    Cut {
        /// Senders.
        from: Target,
        /// Receivers.
        to: Target,
    },
    /// Keep what is sent, until released.
    Hold {
        /// Senders.
        from: Target,
        /// Receivers.
        to: Target,
    },
    /// Deliver what was held, in order.
    Release {
        /// Senders.
        from: Target,
        /// Receivers.
        to: Target,
    },
    /// Change how links behave; what is `None` stays.
    Link {
        /// Senders.
        from: Target,
        /// Receivers.
        to: Target,
        /// New latency range.
        latency: Option<(Duration, Duration)>,
        /// New loss.
        loss_ppm: Option<u32>,
        /// New duplication.
        duplicate_ppm: Option<u32>,
        /// New reordering.
        reorder_ppm: Option<u32>,
        /// New bandwidth in bytes a second.
        bandwidth: Option<u64>,
    },
    /// The connection of the first to the second stays open and carries nothing any more.
    HalfOpen {
        /// The side that dialled.
        from: Target,
        /// The side that accepted.
        to: Target,
    },
    /// Step the wall clock by this many microseconds.
    ClockStep {
        /// Whose.
        target: Target,
        /// How far; negative goes back.
        by_us: i64,
    },
    /// Run both clocks fast or slow.
    ClockRate {
        /// Whose.
        target: Target,
        /// Parts per million of true time; 1,000,000 is right.
        rate_ppm: u32,
    },
    /// Stop the wall clock.
    ClockFreeze(Target),
    /// Change how a disk treats writes.
    Disk {
        /// Whose.
        target: Target,
        /// How.
        disk: DiskSpec,
    },
    /// Send again frames that were captured earlier.
    ReplayFrames {
        /// Whose frames.
        from: Target,
        /// To whom.
        to: Target,
        /// Captured from this moment of the run on …
        captured_from: Duration,
        /// … up to this one (the present when `None`).
        captured_until: Option<Duration>,
        /// At most so many: the earliest of them.
        count: usize,
    },
    /// Flip a bit in frames on the way.
    CorruptFrames {
        /// Senders.
        from: Target,
        /// Receivers.
        to: Target,
        /// How many, per million.
        rate_ppm: u32,
    },
    /// A stranger sends frames in a member's name, signed with a wrong secret.
    ForgeFrames {
        /// In whose name.
        sender: Target,
        /// To whom.
        to: Target,
        /// How many.
        count: usize,
    },
    /// Strangers open connections.
    Flood {
        /// To whom.
        to: Target,
        /// How many connections.
        connections: usize,
        /// What they send.
        garbage: FloodKind,
    },
    /// Start a host that was not there from the start.
    AddNode(Target),
    /// A graceful leave for good.
    RemoveNode(Target),
    /// The operator stops a node from sealing.
    PauseIssuance(Target),
    /// The operator lets it seal again.
    ResumeIssuance(Target),
}

impl Verb {
    /// Every target, in the order a file has them.
    pub fn targets(&self) -> Vec<&Target> {
        match self {
            Self::Kill(target)
            | Self::Stop(target)
            | Self::Restart { target, .. }
            | Self::Pause(target)
            | Self::Resume(target)
            | Self::Isolate(target)
            | Self::ClockStep { target, .. }
            | Self::ClockRate { target, .. }
            | Self::ClockFreeze(target)
            | Self::Disk { target, .. }
            | Self::Flood { to: target, .. }
            | Self::AddNode(target)
            | Self::RemoveNode(target)
            | Self::PauseIssuance(target)
            | Self::ResumeIssuance(target) => vec![target],
            Self::Partition(groups) => groups.iter().collect(),
            Self::Heal => Vec::new(),
            Self::Cut { from, to }
            | Self::Hold { from, to }
            | Self::Release { from, to }
            | Self::Link { from, to, .. }
            | Self::HalfOpen { from, to }
            | Self::ReplayFrames { from, to, .. }
            | Self::CorruptFrames { from, to, .. }
            | Self::ForgeFrames { sender: from, to, .. } => vec![from, to],
        }
    }

    /// Its word in a scenario file.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Kill(_) => "kill",
            Self::Stop(_) => "stop",
            Self::Restart { .. } => "restart",
            Self::Pause(_) => "pause",
            Self::Resume(_) => "resume",
            Self::Partition(_) => "partition",
            Self::Isolate(_) => "isolate",
            Self::Heal => "heal",
            Self::Cut { .. } => "cut",
            Self::Hold { .. } => "hold",
            Self::Release { .. } => "release",
            Self::Link { .. } => "link",
            Self::HalfOpen { .. } => "half_open",
            Self::ClockStep { .. } => "clock_step",
            Self::ClockRate { .. } => "clock_rate",
            Self::ClockFreeze(_) => "clock_freeze",
            Self::Disk { .. } => "disk",
            Self::ReplayFrames { .. } => "replay_frames",
            Self::CorruptFrames { .. } => "corrupt_frames",
            Self::ForgeFrames { .. } => "forge_frames",
            Self::Flood { .. } => "flood",
            Self::AddNode(_) => "add_node",
            Self::RemoveNode(_) => "remove_node",
            Self::PauseIssuance(_) => "pause_issuance",
            Self::ResumeIssuance(_) => "resume_issuance",
        }
    }
}

/// How a disk treats writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpec {
    /// How long each write takes.
    pub latency: Duration,
    /// What becomes of it.
    pub state: DiskState,
}

impl DiskSpec {
    /// The disk of a scenario that says nothing about it.
    pub const GOOD: Self = Self { latency: Duration::ZERO, state: DiskState::Works };
}

/// What becomes of writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiskState {
    /// They are durable.
    Works,
    /// They are refused.
    Full,
    /// They are reported as durable, and a power loss takes back all since this began: the tail is torn off.
    Unsynced,
    /// They hang.
    Stalled,
}

/// What the strangers of a flood send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FloodKind {
    /// Nothing: they only hold the connection.
    Silent,
    /// Well-framed garbage, again and again.
    Garbage,
    /// A length prefix above the cap.
    Oversize,
    /// Half a frame, then nothing.
    HalfFrame,
}
