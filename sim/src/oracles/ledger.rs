//! What the steps themselves tell of each node, kept once for all oracles: the frames it accepted, the records
//! it holds, who is in its view.
//!
//! It is the oracles' own record: it follows the events and the document, and never asks a node when it heard
//! somebody. A step that changed neither costs a few comparisons.
//!
//! Spec: docs/protocol.md, Liveness; decisions 9 and 10.

use firedrill_core::id::{Incarnation, NodeId};
use firedrill_core::io::Event;
use firedrill_core::time::{Instant, Now};
use firedrill_core::wire::message::RecordStatus;

use super::books::Books;
use super::sight::{Changed, Look, Subject};
use super::world::{PeerIx, World};
use crate::scenario::model::HostIx;

/// A record as an oracle remembers it: the part that the merge orders by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Held {
    /// The member's boot.
    pub incarnation: Incarnation,
    /// Alive or left.
    pub status: RecordStatus,
}

/// One moment on both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moment {
    /// On the node's own clock.
    pub own: Instant,
    /// In true time.
    pub at: Instant,
}

/// What one node's steps told about one peer.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pair {
    /// The last accepted frame that was not below the record held (decision 9), since it was last forgotten.
    pub heard: Option<Moment>,
    /// When the record's present incarnation was adopted.
    pub adopted: Option<Moment>,
    /// The record now.
    pub record: Option<Held>,
}

/// What one host's steps told, since its last boot.
#[derive(Debug, Clone, Default)]
pub struct HostLedger {
    boot: Option<u32>,
    document_version: u64,
    view_version: u64,
    /// Its clocks when it last handled an input, in true time and its own.
    pub last: Option<(Instant, Now)>,
    /// Its last late round, which restarts every silence clock (decision 10).
    pub late: Option<Moment>,
    /// By [`PeerIx`].
    pub pairs: Vec<Pair>,
    /// Who is in view, itself excluded.
    pub view: Vec<PeerIx>,
    /// Ids in view that no host of the drill bears.
    pub strangers: Vec<NodeId>,
}

impl HostLedger {
    /// From when this node counts a peer's silence; `None` when it never heard it.
    pub fn silent_since(&self, peer: PeerIx) -> Option<Moment> {
        let pair = &self.pairs[peer.0];
        let heard = pair.heard?;
        let later = |a: Moment, b: Moment| if b.own > a.own { b } else { a };
        Some([pair.adopted, self.late].into_iter().flatten().fold(heard, later))
    }
}

/// The steps' account of every host.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    hosts: Vec<HostLedger>,
    subjects: Vec<Option<PeerIx>>,
    records: Vec<(PeerIx, Option<Held>, Option<Held>)>,
    books: Books,
}

impl Ledger {
    /// An account of a world in which nothing happened yet.
    pub fn new(world: &World) -> Self {
        Self {
            hosts: vec![HostLedger::default(); world.hosts().len()],
            subjects: Vec::new(),
            records: Vec::new(),
            books: Books::new(world),
        }
    }

    /// One host's account.
    pub fn host(&self, host: HostIx) -> &HostLedger {
        &self.hosts[host.0]
    }

    /// The account of the issuance.
    pub const fn books(&self) -> &Books {
        &self.books
    }

    /// Whom each event of the last step is about, in their order.
    pub fn subjects(&self) -> &[Option<PeerIx>] {
        &self.subjects
    }

    /// The records that the last step changed.
    pub fn record_changes(&self) -> &[(PeerIx, Option<Held>, Option<Held>)] {
        &self.records
    }

    /// Takes a step in and says what it changed.
    pub fn take_in<S: Subject>(&mut self, world: &World, look: &Look<'_, S>) -> Changed {
        let told = &mut self.hosts[look.host.0];
        let mut changed = Changed::default();
        if told.boot != Some(look.boot) {
            *told = HostLedger { boot: Some(look.boot), ..HostLedger::default() };
            told.pairs.resize(world.ids().len(), Pair::default());
            changed = Changed { boot: true, document: true, view: true, ..changed };
        }
        told.last = Some((look.at, look.now));
        self.subjects.clear();
        for event in look.events {
            let subject = subject_of(event).and_then(|id| world.peer(id));
            self.subjects.push(subject);
            told.hear(event, subject, Moment { own: look.now.instant, at: look.at });
        }
        self.records.clear();
        let document_version = look.node.document_version();
        if changed.document || document_version != told.document_version {
            changed.document = true;
            told.document_version = document_version;
            told.read_records(world, look, &mut self.records);
        }
        let view_version = look.node.view_version();
        if changed.view || view_version != told.view_version {
            changed.view = true;
            told.view_version = view_version;
            told.read_view(world, look.node);
        }
        changed.issuance = self.books.take_in(look, changed.boot);
        changed
    }
}

impl HostLedger {
    fn hear(&mut self, event: &Event, subject: Option<PeerIx>, moment: Moment) {
        if let Event::RoundLate { .. } = event {
            self.late = Some(moment);
        }
        let Some(pair) = subject.and_then(|peer| self.pairs.get_mut(peer.0)) else { return };
        if let Event::Accepted { incarnation, .. } = event {
            if pair.record.is_none_or(|record| *incarnation >= record.incarnation) {
                pair.heard = Some(moment);
            }
        } else if let Event::MemberReaped { .. } = event {
            pair.heard = None;
        }
    }

    fn read_records<S: Subject>(
        &mut self,
        world: &World,
        look: &Look<'_, S>,
        changes: &mut Vec<(PeerIx, Option<Held>, Option<Held>)>,
    ) {
        let moment = Moment { own: look.now.instant, at: look.at };
        let mut records = look.node.document().members.iter().peekable();
        // Both sides are sorted by id, so one walk pairs them.
        for (position, id) in world.ids().iter().enumerate() {
            while records.next_if(|(other, _)| *other < id).is_some() {}
            let after = records
                .next_if(|(other, _)| *other == id)
                .map(|(_, record)| Held { incarnation: record.incarnation, status: record.status });
            let pair = &mut self.pairs[position];
            let before = pair.record;
            if before == after {
                continue;
            }
            if before.map(|held| held.incarnation) != after.map(|held| held.incarnation) {
                pair.adopted = after.map(|_| moment);
            }
            pair.record = after;
            changes.push((PeerIx(position), before, after));
        }
    }

    fn read_view<S: Subject>(&mut self, world: &World, node: &S) {
        self.view.clear();
        self.strangers.clear();
        for (id, _) in node.peers_in_view() {
            match world.peer(id) {
                Some(peer) => self.view.push(peer),
                None => self.strangers.push(id.clone()),
            }
        }
    }
}

/// Whom an event is about, where an oracle cares.
fn subject_of(event: &Event) -> Option<&NodeId> {
    match event {
        Event::Accepted { sender, .. } | Event::NotAdmitted { sender } => Some(sender),
        Event::MemberUp { id, .. }
        | Event::MemberSuspect { id }
        | Event::MemberRecovered { id }
        | Event::MemberDown { id }
        | Event::MemberLeft { id }
        | Event::MemberConverted { id, .. }
        | Event::MemberReaped { id, .. }
        | Event::ReturnAnswered { id, .. }
        | Event::DuplicateNodeId { id } => Some(id),
        Event::Rejected { .. }
        | Event::Started { .. }
        | Event::Refuted { .. }
        | Event::Unsendable { .. }
        | Event::RoundLate { .. }
        | Event::InboundClosed { .. }
        | Event::LinkReset { .. }
        | Event::Issuance(_) => None,
    }
}
