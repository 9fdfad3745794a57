//! The vocabulary of both layers: what goes into a state machine and what comes out.
//!
//! [`NodeInput`] and [`NodeOutput`] speak of messages, [`EndpointInput`] and [`EndpointOutput`] of bytes and
//! connections. All are plain data: the sequence of inputs with their times is a run, and replays it.
//! Handlers push into an [`Outbox`] that the caller owns and drains; nothing is left to poll.
//!
//! Spec: docs/protocol.md, Receive path; decisions 11 and 12.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::SocketAddr;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::id::{CounterName, Incarnation, NodeId, Seq};
use crate::issuance::event::IssuanceEvent;
use crate::issuance::writer::{Batch, Token, Written};
use crate::limits::COUNTERS_MAX;
use crate::wire::message::{Addr, Message, Payload};
use crate::wire::{Header, Reject};

/// Where a handler leaves what it wants done; the caller drains it after every call.
#[derive(Debug)]
pub struct Outbox<T>(Vec<T>);

impl<T> Default for Outbox<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Outbox<T> {
    /// An empty outbox.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one output.
    pub fn push(&mut self, output: T) {
        self.0.push(output);
    }

    /// Takes everything out, in order.
    pub fn drain(&mut self) -> alloc::vec::Drain<'_, T> {
        self.0.drain(..)
    }

    /// What waits, in order.
    pub fn as_slice(&self) -> &[T] {
        &self.0
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What a service asks of its node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Add to a cluster-wide counter.
    Increment {
        /// Which counter; made on first use.
        counter: CounterName,
        /// How much; the cell saturates at `u64::MAX`.
        by: u64,
    },
    /// Depart gracefully: a final push and a leave to every target.
    Leave,
    /// Stop sealing, or go on. Not kept across a restart.
    PauseIssuance {
        /// Whether to stop.
        paused: bool,
    },
}

/// What a node answers to a [`Command`]: exactly one per command, pushed during the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// The counter after the increment, as this node sees it.
    Incremented {
        /// The saturating sum over all cells.
        total: u64,
    },
    /// The departure is under way.
    Leaving,
    /// The node seals no more, or may seal again.
    IssuancePaused {
        /// Whether it has stopped.
        paused: bool,
    },
}

/// Why a command was refused. The node's state is as before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    /// The node has left, or is leaving.
    #[error("the node has departed; start it again to use it")]
    Departed,
    /// A new counter name when [`COUNTERS_MAX`] are in use.
    #[error(
        "{COUNTERS_MAX} counter names are in use already; use one of them (names are for code, not for user input)"
    )]
    TooManyCounters,
    /// The node has no issuance.
    #[error("this node has no issuance; set enabled and issuer in [issuance] and start it again")]
    NoIssuance,
}

/// What a node is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeInput {
    /// Time has passed: do whatever is due. Sent when [`crate::node::Node::next_wake`] is reached; never harmful early.
    Wake,
    /// A frame passed the MAC (or an engine that has none vouches for it).
    Frame {
        /// The authenticated head.
        header: Header,
        /// What it says.
        payload: Payload,
    },
    /// The service asks for something.
    Command(Command),
    /// The disk answered a [`NodeOutput::Persist`].
    Persisted {
        /// Which.
        token: Token,
        /// What became of it.
        written: Written,
    },
}

/// Which of a peer's two queues a frame takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Lane {
    /// The send queue; the targets become those that connections are kept to.
    Normal,
    /// The send queue, for a message to one peer, which leaves the connections to others alone.
    Direct,
    /// Written ahead of everything queued: last words.
    Farewell,
}

/// One message on its way to all its targets: encoded once, sent to each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outgoing {
    /// Where to, without duplicates and without this node's own address.
    pub targets: Arc<[SocketAddr]>,
    /// Which queue it takes.
    pub lane: Lane,
    /// The head; one sequence number for all targets.
    pub header: Header,
    /// What it says.
    pub message: Message,
    /// Bytes of the frame's body once encoded, prefix excluded. Never above the cap.
    pub body_bytes: usize,
}

/// What a node wants done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeOutput {
    /// Send this message to its targets.
    Send(Outgoing),
    /// Something happened.
    Event(Event),
    /// The answer to the command of this call.
    Reply(Result<Reply, Refusal>),
    /// Make a batch durable, after those before it; answer with [`NodeInput::Persisted`]. One at a time.
    Persist {
        /// The number for the answer.
        token: Token,
        /// All of it, or nothing.
        batch: Batch,
    },
    /// The farewell has been handed over; nothing more will come.
    Departed,
    /// An invariant of the code broke. Fails every simulation; a driver logs it as an error.
    Alarm(Alarm),
}

/// Something that happened, for logs, oracles and subscribers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The node runs at this incarnation. First event of every boot, and the only one that neither layer reports:
    /// whoever boots the node does, with what follows from the first input. The engines of a simulation do; the
    /// runtime, whose caller has booted the node and knows, does not.
    Started {
        /// Seeded from the wall clock.
        incarnation: Incarnation,
    },
    /// A frame passed all eight steps.
    Accepted {
        /// Its sender.
        sender: NodeId,
        /// Its incarnation.
        incarnation: Incarnation,
        /// Its number.
        seq: Seq,
    },
    /// A frame was rejected.
    Rejected {
        /// By which check.
        reason: Reject,
        /// Its sender, where the frame was authenticated.
        sender: Option<NodeId>,
        /// The connection it came on, where it was not.
        inbound: Option<InboundId>,
    },
    /// A frame was dropped because the watermark table is full.
    NotAdmitted {
        /// Its sender.
        sender: NodeId,
    },
    /// A member entered the view.
    MemberUp {
        /// Who.
        id: NodeId,
        /// At which address.
        addr: Addr,
        /// In which incarnation.
        incarnation: Incarnation,
    },
    /// A member in the view missed two pushes.
    MemberSuspect {
        /// Who.
        id: NodeId,
    },
    /// A suspect was heard again.
    MemberRecovered {
        /// Who.
        id: NodeId,
    },
    /// A member left the view after a suspicion timeout of silence.
    MemberDown {
        /// Who.
        id: NodeId,
    },
    /// A member left the view because it said so.
    MemberLeft {
        /// Who.
        id: NodeId,
    },
    /// A member silent for a tombstone window was recorded as left.
    MemberConverted {
        /// Who.
        id: NodeId,
        /// The incarnation that was buried.
        incarnation: Incarnation,
    },
    /// A tombstone expired; the member is forgotten whole, but for a note.
    MemberReaped {
        /// Who.
        id: NodeId,
        /// The incarnation noted.
        incarnation: Incarnation,
    },
    /// A returning member was refused by the reap memory and is told so with a tombstone (decision 11).
    ReturnAnswered {
        /// Who.
        id: NodeId,
        /// The noted incarnation, which it has to outrank.
        incarnation: Incarnation,
    },
    /// This node refuted a record about itself.
    Refuted {
        /// The highest incarnation at which it was told of itself, which it has to outrank.
        told: Incarnation,
        /// The incarnation before.
        from: Incarnation,
        /// The incarnation now.
        to: Incarnation,
    },
    /// A sign that two hosts use one id (decision 12). A replay raises it too.
    DuplicateNodeId {
        /// The shared id: this node's own, or a peer's.
        id: NodeId,
    },
    /// The document does not fit a frame: this node has stopped gossiping, and peers will evict it.
    Unsendable {
        /// Bytes of the body.
        body_bytes: usize,
    },
    /// A round ran more than a suspicion timeout late; all silence clocks were restarted.
    RoundLate {
        /// How late, in microseconds.
        late_us: u64,
    },
    /// An inbound connection was closed.
    InboundClosed {
        /// Which.
        inbound: InboundId,
        /// Why.
        reason: CloseReason,
    },
    /// An outbound connection was given up.
    LinkReset {
        /// To where.
        addr: SocketAddr,
        /// Why.
        reason: ResetReason,
    },
    /// Something of the issuance happened.
    Issuance(IssuanceEvent),
}

/// Why an inbound connection was closed by this side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CloseReason {
    /// A length of 0 or above the cap.
    Oversize,
    /// Three refusals before the MAC.
    Strikes,
    /// No whole frame within the idle limit.
    Idle,
    /// Made room for a newcomer: it was the oldest that never authenticated.
    Displaced,
    /// All connections are held by peers that authenticated.
    Full,
}

/// Why an outbound connection was given up by this side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResetReason {
    /// The dial took too long.
    DialTimeout,
    /// A write took too long.
    WriteTimeout,
    /// The peer was not heard for a suspicion timeout; a half-open connection heals this way.
    PeerSilent,
}

/// A broken invariant: an error in this code, never in a peer's data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Alarm {
    /// A refutation did not raise our incarnation.
    #[error("own incarnation {next} does not exceed {previous}")]
    IncarnationFell {
        /// The one before.
        previous: Incarnation,
        /// The one drawn.
        next: Incarnation,
    },
    /// A wake-up was handled at its time and is still due: nothing would ever come after it.
    #[error("a wake-up for {wake:?} was handled and is still due at the same moment")]
    WakeStuck {
        /// What it is for.
        wake: Wake,
    },
    /// A message that is cut to fit a frame does not.
    #[error("a message that is cut to fit a frame takes {body_bytes} bytes")]
    MessageTooLong {
        /// Bytes of the body.
        body_bytes: usize,
    },
    /// The measured length of a message differs from its encoding.
    #[error("a message measured at {measured} bytes encoded to {encoded}")]
    MeasureWrong {
        /// What the measure said.
        measured: usize,
        /// What the encoder wrote.
        encoded: usize,
    },
}

/// An outbound connection attempt; a new one for every dial, so late reports are recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LinkId(pub u64);

/// An inbound connection, numbered by the driver; never reused within a boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InboundId(pub u64);

/// What an endpoint is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndpointInput {
    /// Time has passed: do whatever is due.
    Wake,
    /// The service asks for something.
    Command(Command),
    /// A peer connected.
    Accepted {
        /// The driver's number for it.
        inbound: InboundId,
    },
    /// The listener failed to accept.
    AcceptFailed,
    /// Bytes arrived.
    Received {
        /// On which connection.
        inbound: InboundId,
        /// Any part of the stream, in order.
        bytes: Bytes,
    },
    /// An inbound connection ended.
    InboundClosed {
        /// Which.
        inbound: InboundId,
    },
    /// A dial succeeded.
    Connected {
        /// Which.
        link: LinkId,
    },
    /// A dial failed.
    DialFailed {
        /// Which.
        link: LinkId,
    },
    /// The last [`EndpointOutput::Write`] of this link is with the operating system.
    Written {
        /// Which.
        link: LinkId,
    },
    /// An outbound connection broke.
    LinkClosed {
        /// Which.
        link: LinkId,
    },
    /// The disk answered an [`EndpointOutput::Persist`].
    Persisted {
        /// Which.
        token: Token,
        /// What became of it.
        written: Written,
    },
}

/// What an endpoint wants done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndpointOutput {
    /// Connect; answer with `Connected` or `DialFailed`.
    Dial {
        /// The number for the answer.
        link: LinkId,
        /// Where to.
        addr: SocketAddr,
    },
    /// Write the whole frame in one call; answer with `Written` or `LinkClosed`. One at a time per link.
    Write {
        /// On which link.
        link: LinkId,
        /// Prefix and body, shared by all targets of a push.
        frame: Bytes,
    },
    /// Give a link up, dialled or dialling. No answer.
    CloseLink {
        /// Which.
        link: LinkId,
    },
    /// Close an inbound connection. No answer.
    CloseInbound {
        /// Which.
        inbound: InboundId,
    },
    /// Make a batch durable, after those before it; answer with [`EndpointInput::Persisted`]. One at a time.
    Persist {
        /// The number for the answer.
        token: Token,
        /// All of it, or nothing.
        batch: Batch,
    },
    /// Stop accepting until [`EndpointOutput::ResumeAccept`].
    PauseAccept,
    /// Accept again.
    ResumeAccept,
    /// Something happened.
    Event(Event),
    /// The answer to the command of this call.
    Reply(Result<Reply, Refusal>),
    /// The departure is over, flushed or out of time: the process may end.
    Departed {
        /// Whether every farewell was written.
        flushed: bool,
    },
    /// An invariant of the code broke.
    Alarm(Alarm),
}

/// Why a machine wants to be woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wake {
    /// A push round is due.
    Round,
    /// A nudged push is due.
    Nudge,
    /// A refutation that had to wait is allowed now.
    Refute,
    /// A member's silence reaches a threshold.
    Liveness,
    /// A link's dial, back-off, write or silence is due.
    Link,
    /// An inbound connection's idle limit.
    Inbound,
    /// Accepting resumes.
    Accept,
    /// The departure is out of time.
    Departure,
    /// A window begins, or a pull, an election or a promise is due.
    Issuance,
}
