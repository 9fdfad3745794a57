//! Membership: what the document says of members, and what this node has heard of them.
//!
//! The two are kept apart. The document converges; its records merge by [`record`]. Liveness is local. The view is
//! made of both: members that are heard, unless they themselves said goodbye, plus this node.
//!
//! Invariants: every record but our own has a [`Peer`] and the other way round; our own record is written by
//! nobody else; a member is forgotten whole (record, peer, watermark) or not at all.
//!
//! Absent: any meaning of a connection. A closed one is no departure, an open one no sign of life.
//!
//! Spec: docs/protocol.md, Membership merge; Liveness; View; Tombstones and reap memory; decisions 3, 5 and 8 to 12.

mod liveness;
mod reap;
mod record;
mod refute;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::SocketAddr;

use crate::guards::Guards;
use crate::id::{Incarnation, NodeId};
use crate::io::{Alarm, Event};
use crate::limits::{MEMBERS_MAX, Timing};
use crate::replica::{Replica, join};
use crate::time::{Duration, Instant};
use crate::wire::message::{Addr, Document, MemberRecord, RecordStatus};

use liveness::{Peer, Presence};
use reap::ReapMemory;
use refute::{Own, Refutation};

/// What membership tells the node, which translates it.
#[derive(Debug, Clone)]
pub(crate) enum Note {
    /// Something happened.
    Event(Event),
    /// An invariant broke.
    Alarm(Alarm),
    /// A member was forgotten; its watermark goes too.
    Forgotten(NodeId),
    /// A member did not fit.
    Refused,
    /// A sign that two hosts use this id; reported as an event when `first`, else only counted.
    Duplicate {
        /// The id.
        id: NodeId,
        /// Not reported within the last suspicion timeout.
        first: bool,
    },
}

/// The membership machine.
#[derive(Debug, Clone)]
pub(crate) struct Membership {
    id: NodeId,
    addr: Addr,
    timing: Timing,
    guards: Guards,
    own: Own,
    peers: BTreeMap<NodeId, Peer>,
    reaped: ReapMemory,
    present: usize,
    view_version: u64,
    /// No silence threshold lies before this.
    next_check: Option<Instant>,
    own_duplicate_reported_at: Option<Instant>,
    seeds: Vec<SocketAddr>,
    targets: Option<Arc<[SocketAddr]>>,
}

/// What comes of comparing a pushed document with ours.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    /// Records to take over.
    pub(crate) taken: Vec<(NodeId, MemberRecord)>,
    /// The pushed document lacks something that ours has.
    pub(crate) ours_ahead: bool,
    /// Something was refused: the document may teach more later.
    pub(crate) refused: bool,
}

impl Membership {
    pub(crate) fn new(
        id: NodeId,
        addr: SocketAddr,
        boot: Incarnation,
        timing: Timing,
        seeds: &[SocketAddr],
        guards: Guards,
    ) -> Self {
        Self {
            id,
            addr: Addr::from(addr),
            timing,
            guards,
            own: Own::new(boot, guards),
            peers: BTreeMap::new(),
            reaped: ReapMemory::default(),
            present: 0,
            view_version: 0,
            next_check: None,
            own_duplicate_reported_at: None,
            seeds: seeds.to_vec(),
            targets: None,
        }
    }

    pub(crate) fn id(&self) -> &NodeId {
        &self.id
    }

    pub(crate) fn incarnation(&self) -> Incarnation {
        self.own.incarnation
    }

    pub(crate) fn boot_incarnation(&self) -> Incarnation {
        self.own.boot
    }

    pub(crate) fn cell_incarnation(&self) -> Incarnation {
        self.own.cell
    }

    /// This node's own record, alive.
    pub(crate) fn own_record(&self) -> MemberRecord {
        MemberRecord {
            addr: self.addr.clone(),
            incarnation: self.own.incarnation,
            status: RecordStatus::Alive,
        }
    }

    /// Whether this boot ever ran at `incarnation`.
    pub(crate) fn minted(&self, incarnation: Incarnation) -> bool {
        self.own.minted(incarnation)
    }

    /// Members in view other than this node.
    pub(crate) fn present(&self) -> usize {
        self.present
    }

    pub(crate) fn view_version(&self) -> u64 {
        self.view_version
    }

    pub(crate) fn reap_notes(&self) -> usize {
        self.reaped.len()
    }

    /// The incarnation at which a member was pruned, while that is remembered.
    pub(crate) fn noted(&self, id: &NodeId) -> Option<Incarnation> {
        self.reaped.of(id)
    }

    /// Members in view other than this node, by id; true for a suspect.
    pub(crate) fn in_view(&self) -> impl Iterator<Item = (&NodeId, bool)> {
        self.peers
            .iter()
            .filter(|(_, peer)| peer.is_present())
            .map(|(id, peer)| (id, peer.presence == Presence::Suspect))
    }

    /// The last frame heard from anybody whose record holds `addr`.
    pub(crate) fn heard_at(&self, document: &Document, addr: SocketAddr) -> Option<Instant> {
        let at_addr = document.members.iter().filter(|(_, record)| record.addr.socket() == Some(addr));
        at_addr.filter_map(|(id, _)| self.peers.get(id)?.heard_at).max()
    }

    /// Whether the reap memory refuses a frame: its incarnation was collected, and nothing above that is known of
    /// the sender since. It moves no watermark and does not count as heard (decision 8): it may be a replay.
    pub(crate) fn return_refused(
        &self,
        document: &Document,
        sender: &NodeId,
        incarnation: Incarnation,
    ) -> bool {
        let Some(noted) = self.reaped.refuses(sender, incarnation, self.guards) else { return false };
        self.guards.reap_memory && document.members.get(sender).is_none_or(|record| is_answer(record, noted))
    }

    // ---- documents and farewells -------------------------------------------------------------------------

    /// Compares the members of a pushed document with ours and decides what to take over.
    pub(crate) fn compare(
        &mut self,
        now: Instant,
        ours: &Document,
        theirs: &Document,
        sender: &NodeId,
        notes: &mut Vec<Note>,
    ) -> Arrivals {
        let mut arrivals = Arrivals::default();
        let mut records = ours.members.len();
        join(&ours.members, &theirs.members, |id, our, their| match (our, their) {
            // Also an exact echo of our own record (decision 3).
            (Some(our), Some(their)) if our == their && (self.guards.echo_exempt || *id != self.id) => {}
            (_, Some(their)) if *id == self.id => {
                self.about_self(now, their, notes);
                arrivals.ours_ahead = true;
            }
            (Some(our), Some(their)) if record::supersedes(their, our, self.guards) => {
                arrivals.taken.push((id.clone(), their.clone()));
            }
            (Some(our), their) => {
                arrivals.ours_ahead = true;
                if let Some(their) = their.filter(|_| id == sender) {
                    self.answer_elsewhere(our, id, their);
                }
            }
            (None, Some(their)) => match self.admit(id, their, id == sender, &mut records, notes) {
                Some(record) => {
                    arrivals.refused |= record != *their;
                    arrivals.taken.push((id.clone(), record));
                }
                None => {
                    self.rumoured(id, their);
                    arrivals.refused = true;
                }
            },
            (None, None) => {}
        });
        arrivals
    }

    /// A record of an unknown member: the record to take over, if any.
    fn admit(
        &self,
        id: &NodeId,
        record: &MemberRecord,
        own_words: bool,
        records: &mut usize,
        notes: &mut Vec<Note>,
    ) -> Option<MemberRecord> {
        let noted = self.reaped.refuses(id, record.incarnation, self.guards);
        let noted = noted.filter(|_| self.guards.reap_memory);
        if noted.is_some() && !(own_words && self.guards.refused_return_answered) {
            return None;
        }
        if *records >= MEMBERS_MAX && self.guards.bounds {
            notes.push(Note::Refused);
            return None;
        }
        *records += 1;
        let Some(incarnation) = noted else { return Some(record.clone()) };
        // Decision 11: told at the noted incarnation that it left, the returning member refutes.
        notes.push(Note::Event(Event::ReturnAnswered { id: id.clone(), incarnation }));
        Some(MemberRecord { addr: record.addr.clone(), incarnation, status: RecordStatus::Left })
    }

    /// A member that was answered with a tombstone (decision 11) may live at another address than the one that the
    /// tombstone holds, if that came from a replayed frame: its own words say where to push as well.
    fn answer_elsewhere(&mut self, our: &MemberRecord, id: &NodeId, their: &MemberRecord) {
        let noted = self.reaped.refuses(id, their.incarnation, self.guards);
        let answered = noted.is_some_and(|noted| is_answer(our, noted))
            && self.guards.refused_return_answered
            && self.guards.answer_elsewhere;
        let Some(peer) = self.peers.get_mut(id).filter(|_| answered) else { return };
        if peer.answer_at != their.addr.socket() {
            peer.answer_at = their.addr.socket();
            self.targets = None;
        }
    }

    /// Others say that a member lives which this node has pruned. Hearsay raises nobody from the note, or peers
    /// pruning at different times would teach each other a departed member for ever. But if it is true the
    /// member may refuse ours likewise, and without a seed between the two only their own words (decision 11)
    /// can end that before the notes lapse: so pushes go where it is said to live, and nothing is written.
    fn rumoured(&mut self, id: &NodeId, record: &MemberRecord) {
        if record.status == RecordStatus::Alive
            && self.guards.refused_return_answered
            && self.guards.rumours_pushed
            && self.reaped.rumoured(id, record.addr.socket())
        {
            self.targets = None;
        }
    }

    /// Keeps the overlay in step with a record that the document took over from a push or a leave.
    pub(crate) fn took_over(
        &mut self,
        now: Instant,
        id: &NodeId,
        old: Option<&MemberRecord>,
        new: &MemberRecord,
        notes: &mut Vec<Note>,
    ) {
        let peer = self.peers.entry(id.clone()).or_insert_with(|| Peer::new(now, new.incarnation));
        peer.incarnation = new.incarnation;
        if old.is_none_or(|old| old.incarnation < new.incarnation) {
            peer.adopted_at = now;
            peer.left_at = peer.left_at.filter(|_| !self.guards.tombstone_restamped);
            peer.said_goodbye = false;
            peer.refused = None;
            peer.answer_at = None;
            self.targets = None;
        }
        match new.status {
            RecordStatus::Left => peer.left_at = peer.left_at.or(Some(now)),
            RecordStatus::Alive => peer.left_at = None,
        }
        if old.is_none_or(|old| old.addr != new.addr || old.status != new.status) {
            self.targets = None;
        }
        if peer.is_present() {
            self.view_version += 1;
        }
        if new.status == RecordStatus::Left && !self.guards.heard_outranks_hearsay {
            self.said_goodbye(id, notes);
        }
    }

    /// A record about ourselves that is not an echo of our own has to be refuted unless it is below us.
    fn about_self(&mut self, now: Instant, record: &MemberRecord, notes: &mut Vec<Note>) {
        if record.incarnation < self.own.incarnation {
            return;
        }
        let elsewhere = !record.addr.as_str().is_empty() && record.addr != self.addr;
        if record.incarnation == self.own.incarnation && elsewhere {
            self.duplicate_of_self(now, notes);
        }
        if self.guards.refutation {
            self.own.request(now, record.incarnation);
        }
    }

    /// The record that an authenticated leave writes, unless the reap memory refuses it (decision 5).
    pub(crate) fn leave(
        &self,
        document: &Document,
        sender: &NodeId,
        incarnation: Incarnation,
        notes: &mut Vec<Note>,
    ) -> Option<MemberRecord> {
        let left = |addr| MemberRecord { addr, incarnation, status: RecordStatus::Left };
        match document.members.get(sender) {
            Some(present) => {
                let new = left(present.addr.clone());
                record::supersedes(&new, present, self.guards).then_some(new)
            }
            None if !self.guards.leave_recorded => None,
            None if !self.guards.leave_obeys_notes => Some(left(Addr::default())),
            None => self.admit(sender, &left(Addr::default()), false, &mut document.members.len(), notes),
        }
    }

    /// The member itself said that it left: it leaves the view.
    fn said_goodbye(&mut self, id: &NodeId, notes: &mut Vec<Note>) {
        let Some(peer) = self.peers.get_mut(id) else { return };
        peer.said_goodbye = true;
        if peer.is_present() {
            peer.presence = Presence::Absent;
            self.present -= 1;
            self.view_version += 1;
            notes.push(Note::Event(Event::MemberLeft { id: id.clone() }));
        }
    }

    // ---- hearing and silence -----------------------------------------------------------------------------

    /// A frame of `sender` was accepted and merged. It counts as heard unless it is below the record (decision 9).
    /// `says_left` tells whether the sender says in it that it left.
    pub(crate) fn heard(
        &mut self,
        now: Instant,
        sender: &NodeId,
        incarnation: Incarnation,
        document: &Document,
        says_left: impl FnOnce() -> bool,
        notes: &mut Vec<Note>,
    ) {
        let Some(peer) = self.peers.get_mut(sender) else { return };
        if incarnation < peer.incarnation && self.guards.stale_frames_unheard {
            return;
        }
        peer.heard_at = Some(now);
        peer.silent_since = now;
        let left = peer.left_at.is_some();
        if left && incarnation == peer.incarnation && self.guards.farewell_obeyed && says_left() {
            return self.said_goodbye(sender, notes);
        }
        if peer.said_goodbye || (left && !self.guards.heard_outranks_hearsay) {
            return;
        }
        let event = match peer.presence {
            Presence::Alive => return,
            Presence::Suspect => Event::MemberRecovered { id: sender.clone() },
            Presence::Absent => {
                self.present += 1;
                let addr = document.members.get(sender).map(|record| record.addr.clone());
                Event::MemberUp {
                    id: sender.clone(),
                    addr: addr.unwrap_or_default(),
                    incarnation: peer.incarnation,
                }
            }
        };
        peer.presence = Presence::Alive;
        self.view_version += 1;
        let threshold = peer.next_threshold(&self.timing);
        self.next_check = earliest(self.next_check, threshold);
        notes.push(Note::Event(event));
    }

    /// When silence has to be looked at next.
    pub(crate) fn next_check(&self) -> Option<Instant> {
        self.next_check
    }

    /// Moves members over the thresholds that their silence has passed.
    pub(crate) fn check_silence(&mut self, now: Instant, notes: &mut Vec<Note>) {
        if self.next_check.is_none_or(|at| at > now) {
            return;
        }
        self.next_check = None;
        for (id, peer) in &mut self.peers {
            let silence = now.since(peer.silent_since);
            if peer.is_present() && silence > self.timing.suspicion && self.guards.suspicion {
                peer.presence = Presence::Absent;
                self.present -= 1;
                self.view_version += 1;
                notes.push(Note::Event(Event::MemberDown { id: id.clone() }));
            } else if peer.presence == Presence::Alive && silence > self.timing.suspect() {
                peer.presence = Presence::Suspect;
                self.view_version += 1;
                notes.push(Note::Event(Event::MemberSuspect { id: id.clone() }));
            }
            let threshold = peer.next_threshold(&self.timing).filter(|at| *at > now);
            self.next_check = earliest(self.next_check, threshold);
        }
    }

    /// A connection to whoever lives at `addr` broke, which says nothing about them, unless a simulation wants it to.
    pub(crate) fn disconnected(&mut self, now: Instant, document: &Document, addr: SocketAddr) {
        let lives_there =
            |id: &NodeId| document.members.get(id).is_some_and(|record| record.addr.socket() == Some(addr));
        for (_, peer) in self.peers.iter_mut().filter(|(id, peer)| peer.is_present() && lives_there(id)) {
            peer.silent_since = Instant::ZERO;
            self.next_check = Some(now);
        }
    }

    /// This node was held up for longer than a suspicion timeout: its own lateness is nobody's silence
    /// (decision 10). Who was out of the view stays out.
    pub(crate) fn restart_silence(&mut self, now: Instant) {
        for peer in self.peers.values_mut() {
            peer.adopted_at = now;
            if peer.is_present() {
                peer.silent_since = now;
            }
        }
    }

    // ---- the round ---------------------------------------------------------------------------------------

    /// Records members silent for a tombstone window as left, forgets tombstones older than one, lets notes lapse.
    pub(crate) fn age(&mut self, now: Instant, replica: &mut Replica, notes: &mut Vec<Note>) {
        let window = self.timing.tombstone();
        let mut converted = Vec::new();
        let mut expired = Vec::new();
        for (id, peer) in &self.peers {
            match peer.left_at {
                None if peer.unrefreshed(now, self.guards) > window && self.guards.silent_converted => {
                    converted.push(id.clone())
                }
                // A tombstone whose subject is still heard stays: the subject will refute it.
                Some(left_at)
                    if now.since(left_at) > window
                        && !(peer.is_present() && self.guards.heard_tombstone_kept) =>
                {
                    expired.push(id.clone())
                }
                _ => {}
            }
        }
        for id in converted {
            let Some(record) = replica.edit().members.get_mut(&id) else { continue };
            record.status = RecordStatus::Left;
            let incarnation = record.incarnation;
            if let Some(peer) = self.peers.get_mut(&id) {
                peer.left_at = Some(now);
            }
            self.targets = None;
            notes.push(Note::Event(Event::MemberConverted { id, incarnation }));
        }
        for id in expired {
            self.forget(now, id, replica, notes);
        }
        if self.reaped.expire(now, self.timing.reap_memory()) {
            self.targets = None;
            replica.forget_known();
        }
    }

    fn forget(&mut self, now: Instant, id: NodeId, replica: &mut Replica, notes: &mut Vec<Note>) {
        let Some(record) = replica.edit().members.remove(&id) else { return };
        self.peers.remove(&id);
        self.reaped.note(now, &id, record.incarnation);
        self.targets = None;
        replica.forget_known();
        notes.push(Note::Event(Event::MemberReaped { id: id.clone(), incarnation: record.incarnation }));
        notes.push(Note::Forgotten(id));
    }

    /// Where pushes go: every record with a dialable address, tombstones included, and the seeds; while records
    /// leave room, also where pruned members are said to live.
    pub(crate) fn targets(&mut self, document: &Document) -> Arc<[SocketAddr]> {
        if let Some(targets) = &self.targets {
            return Arc::clone(targets);
        }
        let wanted =
            |record: &&MemberRecord| record.status == RecordStatus::Alive || self.guards.tombstones_pushed;
        let members = document.members.iter().filter(|(id, _)| **id != self.id).map(|(_, record)| record);
        let mut addrs: BTreeSet<SocketAddr> =
            members.filter(wanted).filter_map(|record| record.addr.socket()).collect();
        addrs.extend(self.peers.values().filter_map(|peer| peer.answer_at));
        let rumours = self.reaped.rumours().filter(|(id, _)| !self.peers.contains_key(*id));
        addrs.extend(rumours.map(|(_, addr)| addr).take(MEMBERS_MAX.saturating_sub(document.members.len())));
        if self.guards.seeds_kept || document.members.len() == 1 {
            addrs.extend(&self.seeds);
        }
        if let Some(own) = self.addr.socket() {
            addrs.remove(&own);
        }
        let targets: Arc<[SocketAddr]> = addrs.into_iter().collect();
        self.targets = Some(Arc::clone(&targets));
        targets
    }

    // ---- refutation and duplicates -----------------------------------------------------------------------

    /// When a refutation is due, if one is pending.
    pub(crate) fn refutation_due(&self) -> Option<Instant> {
        self.own.due(&self.timing, self.guards)
    }

    /// Makes the refutation that is due, `leap` further than it has to go; true when the incarnation was raised.
    pub(crate) fn refute(&mut self, now: Instant, leap: u64, notes: &mut Vec<Note>) -> bool {
        let Some(made) = self.own.refute(now, leap, &self.timing, self.guards) else { return false };
        let Refutation { told, from, again } = made;
        self.view_version += 1;
        let to = self.own.incarnation;
        if to <= from {
            notes.push(Note::Alarm(Alarm::IncarnationFell { previous: from, next: to }));
        }
        notes.push(Note::Event(Event::Refuted { told, from, to }));
        if again {
            self.duplicate_of_self(now, notes);
        }
        true
    }

    /// A sign that another host uses our id (decision 12).
    pub(crate) fn duplicate_of_self(&mut self, now: Instant, notes: &mut Vec<Note>) {
        let first = report(&mut self.own_duplicate_reported_at, now, self.timing.suspicion);
        notes.push(Note::Duplicate { id: self.id.clone(), first });
    }

    /// A frame in a member's name was refused for an incarnation below its watermark. If that goes on for more
    /// than a suspicion timeout while the member is heard, two hosts share its id (decision 12).
    pub(crate) fn refused_below(&mut self, now: Instant, sender: &NodeId, notes: &mut Vec<Note>) {
        let Some(peer) = self.peers.get_mut(sender).filter(|peer| peer.is_present()) else { return };
        let limit = self.timing.suspicion;
        let since = match peer.refused {
            Some((since, last)) if now.since(last) <= limit => since,
            _ => now,
        };
        peer.refused = Some((since, now));
        if now.since(since) > limit {
            let first = report(&mut peer.duplicate_reported_at, now, limit);
            notes.push(Note::Duplicate { id: sender.clone(), first });
        }
    }
}

/// Whether our record of a member is no more than the tombstone of what was noted about it.
fn is_answer(record: &MemberRecord, noted: Incarnation) -> bool {
    record.status == RecordStatus::Left && record.incarnation <= noted
}

/// The earlier of two moments that may not exist.
fn earliest(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Whether something last reported at `last` may be reported again; notes that it was.
fn report(last: &mut Option<Instant>, now: Instant, pause: Duration) -> bool {
    let first = last.is_none_or(|last| now.since(last) > pause);
    if first {
        *last = Some(now);
    }
    first
}
