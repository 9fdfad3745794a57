//! The digest of a run: one number that two runs share only if they were the same run.
//!
//! Every handled input is folded into a rolling 128-bit xxh3: its time, host, boot and cause, the frame's sender,
//! incarnation and number, every event reported, what was sent, and the versions of document and view. The
//! replicated document itself is hashed once per version and host, when a push carries it. Not cryptographic:
//! it finds accidents, not forgeries.
//!
//! The state after an event is the hash of the state before it and the event's bytes, so the digest after each
//! event is known at no cost; a kept trail of [`Mark`]s names the first event at which two runs differ, and the
//! host it happened on in either of them.
//!
//! Absent: payload bytes (a frame is known by sender, incarnation and number) and metrics (they follow from
//! the events).

use firedrill_core::id::NodeId;
use firedrill_core::io::{Command, Event};
use firedrill_core::issuance::machine::Issuance;
use firedrill_core::wire::message::{Document, RecordStatus};
use xxhash_rust::xxh3::xxh3_128;

use crate::engine::{Cause, Step};
use crate::scenario::catalog::HOSTS_MAX_EVENT;
use crate::scenario::model::HostIx;

/// Bits of a mark that hold the host.
const HOST_BITS: u32 = 6;
/// The part of a mark that holds the host.
const HOST_MASK: u64 = (1 << HOST_BITS) - 1;
const _: () = assert!(HOSTS_MAX_EVENT <= 1 << HOST_BITS, "every host fits its bits");

/// What a trail keeps of one event, in 8 bytes: 58 bits of the digest after it, and the host that handled it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark(u64);

impl Mark {
    fn new(state: u128, host: HostIx) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "the trail keeps the lower half")]
        let state = state as u64;
        Self(state & !HOST_MASK | host.0 as u64 & HOST_MASK)
    }

    /// The host that handled the event.
    pub const fn host(self) -> HostIx {
        let host = (self.0 & HOST_MASK) as usize;
        HostIx(host)
    }

    /// The mark as a number.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The mark of this number.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

/// The first event at which two runs differ, counted from 0: the first mark that differs, or the end of the
/// shorter trail. `None` when the trails are one and the same.
pub fn first_difference(one: &[Mark], other: &[Mark]) -> Option<usize> {
    let shorter = one.len().min(other.len());
    let ends_early = (one.len() != other.len()).then_some(shorter);
    one.iter().zip(other).position(|(one, other)| one != other).or(ends_early)
}

/// A rolling digest over the steps of a run.
#[derive(Debug, Default)]
pub struct Digest {
    state: u128,
    trail: Option<Vec<Mark>>,
    /// Per host: boot and document version last hashed.
    hashed: Vec<Option<(u32, u64)>>,
    /// The bytes of the step being absorbed; reused.
    buffer: Vec<u8>,
}

impl Digest {
    /// A digest of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// A digest that also keeps a mark of each step.
    pub fn with_trail() -> Self {
        Self { trail: Some(Vec::new()), ..Self::default() }
    }

    /// Folds one step in.
    pub fn absorb(&mut self, step: &Step<'_>) {
        self.buffer.clear();
        self.buffer.extend_from_slice(&self.state.to_le_bytes());
        let mut bytes = Bytes(&mut self.buffer);
        bytes.head(step);
        bytes.cause(&step.cause);
        for event in step.events {
            bytes.event(event);
        }
        for alarm in step.alarms {
            bytes.text(&alarm.to_string());
        }
        if let Some(issuance) = step.node.issuance() {
            Bytes(&mut self.buffer).issuance(issuance);
        }
        if step.frames_sent > 0 {
            self.document(step);
        }
        self.state = xxh3_128(&self.buffer);
        if let Some(trail) = &mut self.trail {
            trail.push(Mark::new(self.state, step.host));
        }
    }

    /// The digest so far.
    pub const fn finish(&self) -> u128 {
        self.state
    }

    /// The marks kept, one per step; empty unless asked for.
    pub fn trail(&self) -> &[Mark] {
        self.trail.as_deref().unwrap_or_default()
    }

    /// Adds the document that the step pushed, unless this very version was added before.
    fn document(&mut self, step: &Step<'_>) {
        let host = step.host.0;
        if self.hashed.len() <= host {
            self.hashed.resize(host + 1, None);
        }
        let version = Some((step.boot, step.node.document_version()));
        if self.hashed[host] != version {
            self.hashed[host] = version;
            Bytes(&mut self.buffer).document(step.node.document());
        }
    }
}

/// Writes facts as bytes. Numbers have fixed width and texts carry their length, so no two lists of facts write
/// the same bytes.
struct Bytes<'a>(&'a mut Vec<u8>);

impl Bytes<'_> {
    fn head(&mut self, step: &Step<'_>) {
        let mut head = [0_u8; 64];
        let numbers = [
            step.at.as_micros(),
            step.now.instant.as_micros(),
            step.now.wall.unix_micros().cast_unsigned(),
            ((step.host.0 as u64) << 32) | u64::from(step.boot),
            step.node.document_version(),
            step.node.view_version(),
            (step.frames_sent << 32) ^ step.bytes_sent,
            ((step.links.inbound as u64) << 42)
                ^ ((step.links.links as u64) << 21)
                ^ step.links.queue_longest as u64,
        ];
        for (place, number) in head.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        self.0.extend_from_slice(&head);
    }

    fn cause(&mut self, cause: &Cause<'_>) {
        match cause {
            Cause::Boot => self.kind(0),
            Cause::Wake | Cause::Disk(_) => self.kind(1),
            Cause::Wire => self.kind(2),
            Cause::Frame(header) => {
                self.kind(3);
                self.id(&header.sender);
                self.number(header.incarnation.0);
                self.number(header.seq.0);
            }
            Cause::Command(Command::Increment { counter, by }) => {
                self.kind(4);
                self.text(counter.as_str());
                self.number(*by);
            }
            Cause::Command(Command::Leave) => self.kind(5),
            Cause::Command(Command::PauseIssuance { paused }) => {
                self.kind(6);
                self.kind(u8::from(*paused));
            }
        }
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::Started { incarnation } => {
                self.kind(10);
                self.number(incarnation.0);
            }
            Event::Accepted { sender, incarnation, seq } => {
                self.kind(11);
                self.id(sender);
                self.number(incarnation.0);
                self.number(seq.0);
            }
            Event::Rejected { reason, sender, inbound: _ } => {
                self.kind(12);
                self.kind(*reason as u8);
                self.text(sender.as_ref().map_or("", NodeId::as_str));
            }
            Event::NotAdmitted { sender } => self.about(13, sender),
            Event::MemberUp { id, addr, incarnation } => {
                self.about(14, id);
                self.text(addr.as_str());
                self.number(incarnation.0);
            }
            Event::MemberSuspect { id } => self.about(15, id),
            Event::MemberRecovered { id } => self.about(16, id),
            Event::MemberDown { id } => self.about(17, id),
            Event::MemberLeft { id } => self.about(18, id),
            Event::MemberConverted { id, incarnation } => {
                self.about(19, id);
                self.number(incarnation.0);
            }
            Event::MemberReaped { id, incarnation } => {
                self.about(20, id);
                self.number(incarnation.0);
            }
            Event::ReturnAnswered { id, incarnation } => {
                self.about(21, id);
                self.number(incarnation.0);
            }
            Event::Refuted { told: _, from, to } => {
                self.kind(22);
                self.number(from.0);
                self.number(to.0);
            }
            Event::DuplicateNodeId { id } => self.about(23, id),
            Event::Unsendable { body_bytes } => {
                self.kind(24);
                self.number(*body_bytes as u64);
            }
            Event::RoundLate { late_us } => {
                self.kind(25);
                self.number(*late_us);
            }
            Event::InboundClosed { inbound, reason } => {
                self.kind(26);
                self.number(inbound.0);
                self.kind(*reason as u8);
            }
            Event::LinkReset { addr, reason } => {
                self.kind(27);
                self.text(&addr.to_string());
                self.kind(*reason as u8);
            }
            Event::Issuance(event) => {
                self.kind(28);
                self.text(&format!("{event:?}"));
            }
        }
    }

    fn issuance(&mut self, issuance: &Issuance) {
        self.kind(50);
        self.number(issuance.spine().version());
        self.number(issuance.spine().fold().tip.map_or(0, |tip| tip.0));
    }

    fn document(&mut self, document: &Document) {
        for (id, record) in &document.members {
            self.about(40, id);
            self.text(record.addr.as_str());
            self.number(record.incarnation.0);
            self.kind(match record.status {
                RecordStatus::Alive => 0,
                RecordStatus::Left => 1,
            });
        }
        for (counter, cells) in &document.counters {
            self.kind(41);
            self.text(counter.as_str());
            for (cell, value) in cells {
                self.about(42, &cell.node);
                self.number(cell.incarnation.0);
                self.number(*value);
            }
        }
    }

    fn about(&mut self, kind: u8, id: &NodeId) {
        self.kind(kind);
        self.id(id);
    }

    fn id(&mut self, id: &NodeId) {
        self.text(id.as_str());
    }

    fn kind(&mut self, kind: u8) {
        self.0.push(kind);
    }

    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }
}
