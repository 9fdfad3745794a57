//! What expectations demand: facts, events, and when they must hold.

use std::time::Duration;

use firedrill_core::id::{CounterName, NodeId};
use firedrill_core::io::{CloseReason, ResetReason};
use firedrill_core::issuance::audit::Audit;
use firedrill_core::issuance::decimal::Decimal;
use firedrill_core::issuance::window::Epoch;
use firedrill_core::wire::Reject;
use serde::{Deserialize, Serialize};

use super::{HostIx, Span, StepIx};

/// What an expectation demands, and when.
#[derive(Debug, Clone)]
pub struct Expect {
    /// When the fact must hold.
    pub window: Window,
    /// Not before this.
    pub from: Option<Moment>,
    /// The fact.
    pub fact: Fact,
    /// Where it stands.
    pub span: Span,
}

/// When a fact must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// At some moment no later than this.
    By(Duration),
    /// At every moment.
    Always,
    /// At no moment.
    Never,
    /// After the liveness phase.
    AtEnd,
    /// At some moment of the run.
    Sometimes,
}

/// A moment of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// From the start.
    At(Duration),
    /// When this step fired.
    Step(StepIx),
}

/// Something that is true of the cluster, or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact {
    /// The views of these hosts (those of them that run) are exactly these ids.
    View {
        /// Whose; every running host when empty.
        on: Vec<HostIx>,
        /// The ids, the viewer included.
        members: Vec<NodeId>,
    },
    /// A counter's value on these hosts (those of them that run).
    Counter {
        /// Whose; every running host when empty.
        on: Vec<HostIx>,
        /// Which.
        name: CounterName,
        /// The bound.
        value: Bound,
    },
    /// An event happened.
    Event(EventPattern),
    /// A metric's value on these hosts (those of them that run).
    Metric {
        /// Whose; every running host when empty.
        on: Vec<HostIx>,
        /// The Prometheus name.
        name: String,
        /// A label and its value.
        label: Option<(String, String)>,
        /// The bound.
        value: Bound,
    },
    /// What the spines of these hosts (those of them that run) say of the lease.
    Lease {
        /// Whose; every running host when empty.
        on: Vec<HostIx>,
        /// Who holds it; whoever when `None`.
        holder: Option<NodeId>,
        /// At which epoch; any when `None`. One of both is given.
        epoch: Option<Epoch>,
    },
    /// The role of these hosts (those of them that run).
    Role {
        /// Whose; every running host when empty.
        on: Vec<HostIx>,
        /// Which.
        is: RoleName,
    },
    /// What the last election of these hosts (those of them that run) decided.
    Decision {
        /// Whose; every running host when empty.
        on: Vec<HostIx>,
        /// By its place in [`Decision::NAMES`](firedrill_core::issuance::election::Decision::NAMES).
        decision: usize,
        /// Which successor, for a decision that names one; whichever when `None`.
        successor: Option<NodeId>,
    },
    /// A figure of the audit of these hosts (those of them that run).
    Audit {
        /// Whose; every running host when empty.
        on: Vec<HostIx>,
        /// Which.
        figure: AuditFigure,
        /// The bound, an amount as its twelfth places. Never [`Bound::Truth`].
        value: Bound,
    },
}

impl Fact {
    /// Whether it is about something that happens, rather than about what nodes believe.
    pub const fn is_event(&self) -> bool {
        matches!(self, Self::Event(_))
    }

    /// The hosts that it asks; every running one when empty. Nobody is asked about an event.
    pub fn on(&self) -> &[HostIx] {
        match self {
            Self::View { on, .. }
            | Self::Counter { on, .. }
            | Self::Metric { on, .. }
            | Self::Lease { on, .. }
            | Self::Role { on, .. }
            | Self::Decision { on, .. }
            | Self::Audit { on, .. } => on,
            Self::Event(_) => &[],
        }
    }
}

/// What a node does in the issuance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoleName {
    /// It seals, or would if nothing were against it.
    Issuer,
    /// It keeps rows and stands by.
    Replica,
}

/// A figure of [`Audit`](firedrill_core::issuance::audit::Audit): of the same name there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is described where the audit has it, and in AUDIT_FIGURES")]
pub enum AuditFigure {
    Rows,
    DistinctKeys,
    Duplicates,
    Superseded,
    RowsBelowTip,
    ElapsedSum,
    AmountSum,
    Span,
    Forfeited,
    Overlap,
    UnderIssued,
    Supply,
}

impl AuditFigure {
    /// Whether it is an amount, which people write with its twelve places, rather than a count.
    pub const fn is_amount(self) -> bool {
        matches!(self, Self::AmountSum | Self::Supply)
    }

    /// Its value; an amount as its twelfth places, at most what fits.
    pub fn of(self, audit: &Audit) -> u64 {
        let places = |amount: Decimal| u64::try_from(amount.units()).unwrap_or(u64::MAX);
        match self {
            Self::Rows => audit.rows,
            Self::DistinctKeys => audit.distinct_keys,
            Self::Duplicates => audit.duplicates,
            Self::Superseded => audit.superseded,
            Self::RowsBelowTip => audit.rows_below_tip,
            Self::ElapsedSum => audit.elapsed_sum,
            Self::AmountSum => places(audit.amount_sum),
            Self::Span => audit.span,
            Self::Forfeited => audit.forfeited,
            Self::Overlap => audit.overlap,
            Self::UnderIssued => audit.under_issued,
            Self::Supply => places(audit.supply),
        }
    }
}

/// A bound on a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// Exactly.
    Equals(u64),
    /// No less.
    AtLeast(u64),
    /// No more.
    AtMost(u64),
    /// Exactly the increments the workload made so far (counters only).
    Truth,
}

/// Which events are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPattern {
    /// The kind.
    pub kind: EventKind,
    /// About whom; anybody when `None`.
    pub subject: Option<NodeId>,
    /// Seen on which host; any when `None`.
    pub on: Option<HostIx>,
    /// Why a connection ended; for whatever reason when `None`.
    pub reason: Option<Ending>,
    /// At which epoch, for an event of the issuance; any when `None`.
    pub epoch: Option<Epoch>,
    /// How many windows the row covers, for one that was sealed; however many when `None`.
    pub elapsed: Option<u64>,
}

/// Why a node ended a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// An inbound one.
    Closed(CloseReason),
    /// An outbound one.
    Reset(ResetReason),
}

/// Kinds of events that scenarios speak of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A node booted.
    Started,
    /// A member entered a view.
    Up,
    /// A member became suspect.
    Suspect,
    /// A suspect was heard again.
    Recovered,
    /// A member fell silent and left a view.
    Down,
    /// A member said goodbye and left a view.
    Left,
    /// A silent member was buried.
    Converted,
    /// A tombstone expired.
    Reaped,
    /// A refused return was answered.
    ReturnAnswered,
    /// A node refuted a record about itself.
    Refuted,
    /// Signs of two hosts with one id.
    DuplicateNodeId,
    /// A document outgrew the frame.
    Unsendable,
    /// A round ran late.
    RoundLate,
    /// A frame was rejected, for this reason.
    Rejected(Reject),
    /// A link was given up.
    LinkReset,
    /// An inbound connection was closed by this side.
    InboundClosed,
    /// A node was elected issuer.
    Promoted,
    /// A promotion ended before it was sealed.
    PromotionLapsed,
    /// An issuer stood down.
    Demoted,
    /// A row of a node became durable.
    Sealed,
    /// A node's tip did not rise for longer than `silence_z`.
    Silent,
    /// The lease moved.
    LeaseMoved,
    /// A node's tip is far ahead of its clock.
    TipAheadOfClock,
    /// A node's clock is far ahead of the others'.
    ClockAhead,
    /// A disk refuses writes.
    DiskRefused,
    /// A majority supports a node.
    FenceHeld,
    /// It no longer does.
    FenceLost,
}
