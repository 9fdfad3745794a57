//! Messages in, messages out: composes and settles the machines.
//!
//! [`Node`] owns the replicated document and translates between membership, counters and replay watermarks,
//! which never name each other. Every call settles in one order: the input first, then what is due: silence,
//! refutation, the round, the nudge. The input comes first so that a frame that waited while its node was held
//! up counts before the silence does.
//!
//! Absent: connections, bytes, MACs (see [`crate::endpoint`]), and any state that survives a boot.
//!
//! Spec: docs/protocol.md, Receive path; Rounds; Departure; decisions 8, 9 and 10.

mod issue;
mod recent;
mod replay;
#[cfg(test)]
mod tests;
mod view;

use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::counter;
use crate::guards::Guards;
use crate::id::{Cell, ClusterName, CounterName, Incarnation, NodeId, Seq};
use crate::io::{Command, Event, Lane, NodeInput, NodeOutput, Outbox, Outgoing, Refusal, Reply, Wake};
use crate::issuance::machine::{self as issuance, Issuance};
use crate::limits::{FRAME_BYTES_MAX, PUSH_JITTER_PERCENT, REFUTATION_LEAP_MAX, Timing, UNSENDABLE_WARNING};
use crate::membership::{Membership, Note};
use crate::metrics::{Metrics, Table};
use crate::replica::Replica;
use crate::rng::{Rng, Seed};
use crate::time::{Duration, Instant, Now, micros};
use crate::wire::message::{Document, Measure, Message, Payload, RecordStatus};
use crate::wire::{Header, Reject, envelope};

use issue::Said;
use recent::Recent;
use replay::{Freshness, Watermarks};

pub use view::{MemberStatus, MemberView, NodeView, TableSizes};

/// What a node found on disk at boot. The gossip half keeps nothing across boots.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovered {
    /// The rows of the spine, and what was promised.
    pub issuance: issuance::Recovered,
}

/// One cluster node, without any I/O.
///
/// # Calling order
/// [`Node::new`] at boot, then [`Node::handle`] for every frame and command as it comes, and with
/// [`NodeInput::Wake`] no later than [`Node::next_wake`]; look at `next_wake` again after every call. After
/// [`NodeOutput::Departed`] the node is inert.
///
/// # Looking inside
/// [`Node::view`] is for people and services. The rest ([`Node::document`], [`Node::peers_in_view`], the
/// versions and sizes) borrows, for those who look after every event.
#[derive(Debug, Clone)]
pub struct Node {
    cluster: ClusterName,
    advertised: SocketAddr,
    timing: Timing,
    guards: Guards,
    membership: Membership,
    replica: Replica,
    watermarks: Watermarks,
    recent: Recent,
    issuance: Option<Box<Issuance>>,
    metrics: Metrics,
    jitter: Rng,
    /// How far refutations leap.
    leaps: Rng,
    /// The number of the next frame in the present incarnation.
    next_seq: Seq,
    next_round: Instant,
    nudge_at: Option<Instant>,
    last_nudge: Option<Instant>,
    last_unsendable_warning: Option<Instant>,
    departed: bool,
    /// Reused by every call; empty in between.
    notes: Vec<Note>,
}

impl Node {
    /// A node that boots at `now`: its incarnation is the wall clock in Unix milliseconds (0 before the epoch).
    /// Without a configured node id one is drawn from `seed`. `config.advertised()` must be the address that
    /// peers dial. The first push leaves one jittered interval later.
    pub fn new(config: &Config, seed: Seed, recovered: Recovered, now: Now) -> Self {
        Self::with_guards(config, seed, recovered, now, Guards::ON)
    }

    /// As [`Node::new`], with guards turned off: for simulations alone.
    pub fn with_guards(config: &Config, seed: Seed, recovered: Recovered, now: Now, guards: Guards) -> Self {
        let Config { cluster: config, issuance, server: _ } = config;
        let id = config.node_id.clone().unwrap_or_else(|| drawn_id(&seed));
        let unit_ms = if guards.incarnation_in_ms { 1 } else { 1000 };
        let boot = Incarnation(u64::try_from(now.wall.unix_ms() / unit_ms).unwrap_or(0));
        let timing = config.timing();
        let advertised = config.advertised();
        let membership = Membership::new(id.clone(), advertised, boot, timing, &config.seed_peers, guards);
        let issuance = issuance.as_ref().map(|issuance| {
            let seed = seed.fork("issuance");
            Box::new(Issuance::new(issuance, &id, boot, recovered.issuance, &seed, now, guards))
        });
        let mut document = Document::default();
        document.members.insert(membership.id().clone(), membership.own_record());
        let mut node = Self {
            cluster: config.cluster_name.clone(),
            advertised,
            timing,
            guards,
            membership,
            replica: Replica::new(document),
            watermarks: Watermarks::default(),
            recent: Recent::default(),
            issuance,
            metrics: Metrics { members: 1, ..Metrics::default() },
            jitter: seed.fork("push jitter").rng(),
            leaps: seed.fork("refutation leap").rng(),
            next_seq: Seq(0),
            next_round: now.instant,
            nudge_at: None,
            last_nudge: None,
            last_unsendable_warning: None,
            departed: false,
            notes: Vec::new(),
        };
        node.schedule_round(now.instant);
        node
    }

    /// Takes one input, then does whatever is due, and pushes what follows. Returns without effect after the
    /// departure, but for the refusal of a command.
    pub fn handle(&mut self, clocks: Now, input: NodeInput, out: &mut Outbox<NodeOutput>) {
        let now = clocks.instant;
        if self.departed {
            if let NodeInput::Command(_) = input {
                out.push(NodeOutput::Reply(Err(Refusal::Departed)));
            }
            return;
        }
        self.notice_lateness(now, out);
        match input {
            NodeInput::Wake => {}
            NodeInput::Frame { header, payload } => self.frame(clocks, header, payload, out),
            NodeInput::Command(command) => self.command(now, command, out),
            NodeInput::Persisted { token, written } => {
                if let Some(issuance) = &mut self.issuance {
                    issuance.persisted(clocks, token, written);
                }
            }
        }
        if !self.departed {
            self.run_due(now, out);
            self.issue(clocks, out);
        }
    }

    /// When to call again at the latest, and why.
    pub fn next_wake(&self) -> Option<(Instant, Wake)> {
        if self.departed {
            return None;
        }
        let mut next = (self.next_round, Wake::Round);
        let others = [
            (self.nudge_at, Wake::Nudge),
            (self.membership.refutation_due(), Wake::Refute),
            (self.membership.next_check(), Wake::Liveness),
            (self.issuance.as_ref().map(|issuance| issuance.next_deadline()), Wake::Issuance),
        ];
        for (at, wake) in others {
            if let Some(at) = at.filter(|at| *at < next.0) {
                next = (at, wake);
            }
        }
        Some(next)
    }

    /// A connection to `addr` broke. That is no sign of anything, and nobody tells it, but for a simulation that
    /// proves so.
    pub(crate) fn disconnected(&mut self, now: Instant, addr: SocketAddr) {
        self.membership.disconnected(now, self.replica.get(), addr);
    }

    // ---- frames: steps 5 to 8 of the receive path --------------------------------------------------------

    fn frame(&mut self, clocks: Now, header: Header, payload: Payload, out: &mut Outbox<NodeOutput>) {
        let now = clocks.instant;
        if header.sender == *self.id() && self.guards.own_origin_refused {
            if !self.membership.minted(header.incarnation) {
                self.membership.duplicate_of_self(now, &mut self.notes);
            }
            self.reject(Reject::SelfOrigin, header.sender, out);
            return self.settle(out);
        }
        let payload = match payload {
            Payload::Text(text) if !self.guards.replay_before_payload => match self.recent.parse(text) {
                Ok(message) => Payload::Value(message),
                Err(_) => return self.reject(Reject::Payload, header.sender, out),
            },
            unread @ (Payload::Value(_) | Payload::Text(_)) => unread,
        };
        let freshness = self.watermarks.judge(&header.sender, header.incarnation, header.seq);
        let replayed = matches!(freshness, Freshness::OldSeq | Freshness::OldIncarnation);
        if replayed && self.guards.replay_check {
            if freshness == Freshness::OldIncarnation {
                self.membership.refused_below(now, &header.sender, &mut self.notes);
            }
            self.reject(Reject::Replay, header.sender, out);
            return self.settle(out);
        }
        if !self.guards.watermark_only_accepted {
            self.watermarks.advance(now, &header.sender, header.incarnation, header.seq);
        }
        let message = match payload {
            Payload::Value(message) => message,
            Payload::Text(text) => match self.recent.parse(text) {
                Ok(message) => message,
                Err(_) => return self.reject(Reject::Payload, header.sender, out),
            },
        };
        if freshness == Freshness::NewSender && self.watermarks.is_full() && self.guards.bounds {
            self.metrics.refused(Table::Watermarks);
            out.push(NodeOutput::Event(Event::NotAdmitted { sender: header.sender }));
            return;
        }
        if self.is_early(&header, &message, out) {
            return self.settle(out);
        }
        let refused = self.membership.return_refused(self.replica.get(), &header.sender, header.incarnation);
        if !(refused && self.guards.watermark_only_accepted) {
            self.watermarks.advance(now, &header.sender, header.incarnation, header.seq);
        }
        let Header { sender, incarnation, seq } = header;
        out.push(NodeOutput::Event(Event::Accepted { sender: sender.clone(), incarnation, seq }));
        let version = self.replica.version();
        let said = match message {
            Message::StatePush { state } => {
                self.metrics.pushes_received = self.metrics.pushes_received.saturating_add(1);
                self.merge(now, &sender, &state);
                Said::Document(state)
            }
            Message::Leave {} => {
                self.leave_of(now, &sender, incarnation);
                Said::Farewell
            }
            other @ (Message::Pull(_)
            | Message::Page(_)
            | Message::Probe(_)
            | Message::Standing(_)
            | Message::Claim(_)
            | Message::Vote(_)) => Said::Other(other),
        };
        if !(refused && self.guards.stale_frames_unheard) {
            self.heard(now, &sender, incarnation, &said);
        }
        if let Said::Other(message) = said
            && !refused
        {
            // Whoever came into view by this very frame is known first.
            self.settle(out);
            self.tell_issuance(clocks, &sender, message);
        }
        if self.replica.version() != version {
            self.metrics.merges_applied = self.metrics.merges_applied.saturating_add(1);
        }
        self.settle(out);
    }

    fn reject(&mut self, reason: Reject, sender: NodeId, out: &mut Outbox<NodeOutput>) {
        self.metrics.rejected(reason);
        out.push(NodeOutput::Event(Event::Rejected { reason, sender: Some(sender), inbound: None }));
    }

    /// Merges a pushed document (step 8).
    fn merge(&mut self, now: Instant, sender: &NodeId, pushed: &Arc<Document>) {
        if self.replica.knows(pushed) {
            return;
        }
        let bounds = self.guards.bounds;
        let arrivals = self.membership.compare(now, self.replica.get(), pushed, sender, &mut self.notes);
        let counters = counter::compare(&self.replica.get().counters, &pushed.counters, bounds);
        for _ in 0..counters.refused {
            self.metrics.refused(Table::Counters);
        }
        for (id, record) in &arrivals.taken {
            let old = self.replica.get().members.get(id);
            self.membership.took_over(now, id, old, record, &mut self.notes);
            if record.status == RecordStatus::Alive && !self.guards.heard_to_enter {
                self.membership.heard(now, id, record.incarnation, pushed, || false, &mut self.notes);
            }
        }
        let refused = arrivals.refused || counters.refused > 0;
        let changed = !arrivals.taken.is_empty() || counters.theirs_ahead;
        let sum = !self.guards.cells_merge_by_max;
        if changed && !(refused || sum || arrivals.ours_ahead || counters.ours_ahead) {
            self.replica.adopt(pushed);
        } else if changed || sum {
            let combine = if sum { u64::saturating_add } else { u64::max };
            let document = self.replica.edit();
            document.members.extend(arrivals.taken);
            counter::merge(&mut document.counters, &pushed.counters, bounds, combine);
        }
        if !refused {
            self.replica.learned(pushed);
        }
    }

    /// A leave applies to the sender and incarnation that were authenticated, nothing else.
    fn leave_of(&mut self, now: Instant, sender: &NodeId, incarnation: Incarnation) {
        if let Some(record) = self.membership.leave(self.replica.get(), sender, incarnation, &mut self.notes)
        {
            let old = self.replica.get().members.get(sender);
            self.membership.took_over(now, sender, old, &record, &mut self.notes);
            self.replica.edit().members.insert(sender.clone(), record);
        }
    }

    /// Records receipt of a frame for the overlay, after the merge.
    fn heard(&mut self, now: Instant, sender: &NodeId, incarnation: Incarnation, said: &Said) {
        let says_left = || match said {
            Said::Document(pushed) => {
                pushed.members.get(sender).map(|record| record.status) == Some(RecordStatus::Left)
            }
            Said::Farewell => true,
            Said::Other(_) => false,
        };
        let document = self.replica.get();
        self.membership.heard(now, sender, incarnation, document, says_left, &mut self.notes);
    }

    // ---- commands ----------------------------------------------------------------------------------------

    fn command(&mut self, now: Instant, command: Command, out: &mut Outbox<NodeOutput>) {
        match command {
            Command::Increment { counter, by } => {
                let reply = self.increment(now, counter, by);
                out.push(NodeOutput::Reply(reply));
            }
            Command::Leave => {
                out.push(NodeOutput::Reply(Ok(Reply::Leaving)));
                self.depart(out);
            }
            Command::PauseIssuance { paused } => {
                let issuance = self.issuance.as_mut().ok_or(Refusal::NoIssuance);
                out.push(NodeOutput::Reply(issuance.map(|issuance| {
                    issuance.pause(paused);
                    Reply::IssuancePaused { paused }
                })));
            }
        }
    }

    fn increment(&mut self, now: Instant, counter: CounterName, by: u64) -> Result<Reply, Refusal> {
        if self.guards.bounds && !counter::admits(&self.replica.get().counters, &counter) {
            self.metrics.refused(Table::Counters);
            return Err(Refusal::TooManyCounters);
        }
        let cell = Cell { node: self.id().clone(), incarnation: self.cell_incarnation() };
        let cells = self.replica.edit().counters.entry(counter.clone()).or_default();
        let value = cells.entry(cell).or_default();
        *value = value.saturating_add(by);
        let floor = if self.guards.nudge_floor { self.timing.nudge_floor() } else { Duration::ZERO };
        let earliest = self.last_nudge.map_or(now, |last| now.max(last.after(floor)));
        self.nudge_at = self.nudge_at.or(Some(earliest));
        Ok(Reply::Incremented { total: self.counter(&counter) })
    }

    /// Last words: the final document with our own record left, then a leave for peers without that record.
    fn depart(&mut self, out: &mut Outbox<NodeOutput>) {
        let mut record = self.membership.own_record();
        record.status = RecordStatus::Left;
        let id = self.id().clone();
        self.replica.edit().members.insert(id, record);
        let (message, measure) = self.replica.push();
        self.send(Lane::Farewell, message, measure, out);
        let leave = Message::Leave {};
        let measure = leave.measure();
        self.send(Lane::Farewell, leave, measure, out);
        self.departed = true;
        out.push(NodeOutput::Departed);
    }

    // ---- what is due -------------------------------------------------------------------------------------

    /// A round that is late by more than a suspicion timeout means that this node was held up.
    fn notice_lateness(&mut self, now: Instant, out: &mut Outbox<NodeOutput>) {
        let late = now.since(self.next_round);
        if late > self.timing.suspicion && self.guards.late_round_restarts {
            self.membership.restart_silence(now);
            // The round runs in this very call, so a second input does not find it late again.
            out.push(NodeOutput::Event(Event::RoundLate { late_us: micros(late) }));
        }
    }

    fn run_due(&mut self, now: Instant, out: &mut Outbox<NodeOutput>) {
        self.membership.check_silence(now, &mut self.notes);
        if self.membership.refutation_due().is_some_and(|due| due <= now) {
            self.refute(now, out);
        }
        if self.next_round <= now {
            self.round(now, out);
        } else if self.nudge_at.is_some_and(|at| at <= now) {
            self.last_nudge = Some(now);
            self.push(now, out);
        }
        self.settle(out);
    }

    fn refute(&mut self, now: Instant, out: &mut Outbox<NodeOutput>) {
        let leap = if self.guards.refutation_leaps { self.leaps.between(0, REFUTATION_LEAP_MAX) } else { 0 };
        if self.membership.refute(now, leap, &mut self.notes) {
            self.metrics.refutations = self.metrics.refutations.saturating_add(1);
            if self.guards.seq_restarts {
                self.next_seq = Seq(0);
            }
            self.publish_self();
            if self.guards.refutation_pushed {
                self.push(now, out);
            }
        }
    }

    /// A push round: convert silent members, prune, publish ourselves, send.
    fn round(&mut self, now: Instant, out: &mut Outbox<NodeOutput>) {
        self.membership.age(now, &mut self.replica, &mut self.notes);
        let kept = !(self.guards.watermark_reaped && self.guards.watermark_expires);
        let members = &self.replica.get().members;
        self.watermarks.expire(now, self.timing.tombstone(), |sender| kept || members.contains_key(sender));
        self.settle(out);
        self.publish_self();
        self.push(now, out);
        self.schedule_round(now);
    }

    fn schedule_round(&mut self, now: Instant) {
        let (low, high) = if self.guards.push_jitter { PUSH_JITTER_PERCENT } else { (100, 100) };
        let interval = micros(self.timing.push);
        let drawn =
            self.jitter.between(interval.saturating_mul(low) / 100, interval.saturating_mul(high) / 100);
        self.next_round = now.after(Duration::from_micros(drawn));
    }

    fn publish_self(&mut self) {
        let record = self.membership.own_record();
        if self.replica.get().members.get(self.id()) != Some(&record) {
            let id = self.id().clone();
            self.replica.edit().members.insert(id, record);
        }
    }

    /// Pushes the document to every target; whatever nudge was waiting is answered by it.
    fn push(&mut self, now: Instant, out: &mut Outbox<NodeOutput>) {
        self.nudge_at = None;
        let (message, measure) = self.replica.push();
        if let Some(unsendable) = self.send(Lane::Normal, message, measure, out) {
            let silent =
                self.last_unsendable_warning.is_some_and(|last| now.since(last) <= UNSENDABLE_WARNING);
            if !silent {
                self.last_unsendable_warning = Some(now);
                out.push(NodeOutput::Event(Event::Unsendable { body_bytes: unsendable }));
            }
        }
    }

    /// Hands a message to all targets. Returns its body's length when that is above the cap, and sends nothing.
    fn send(
        &mut self,
        lane: Lane,
        message: Message,
        measure: Measure,
        out: &mut Outbox<NodeOutput>,
    ) -> Option<usize> {
        let header =
            Header { sender: self.id().clone(), incarnation: self.incarnation(), seq: self.next_seq };
        let body_bytes = envelope::encoded_len(&self.cluster, &header, measure);
        if body_bytes > FRAME_BYTES_MAX && self.guards.frame_cap {
            self.metrics.pushes_unsendable = self.metrics.pushes_unsendable.saturating_add(1);
            return Some(body_bytes);
        }
        let targets = self.membership.targets(self.replica.get());
        // Also sent to nobody, without taking a number: links to the targets before this one are closed by it.
        if !targets.is_empty() {
            self.next_seq = Seq(self.next_seq.0 + 1);
        }
        if lane == Lane::Normal {
            self.metrics.pushes_sent = self.metrics.pushes_sent.saturating_add(targets.len() as u64);
        }
        out.push(NodeOutput::Send(Outgoing { targets, lane, header, message, body_bytes }));
        None
    }

    /// Translates what membership reported.
    fn settle(&mut self, out: &mut Outbox<NodeOutput>) {
        self.metrics.members = self.membership.present() as u64 + 1;
        for note in self.notes.drain(..) {
            match note {
                Note::Event(event) => {
                    if let Some(issuance) = &mut self.issuance {
                        issue::tell(issuance, &event);
                    }
                    out.push(NodeOutput::Event(event));
                }
                Note::Alarm(alarm) => out.push(NodeOutput::Alarm(alarm)),
                Note::Forgotten(id) if self.guards.watermark_reaped => self.watermarks.forget(&id),
                Note::Forgotten(_) => {}
                Note::Refused => self.metrics.refused(Table::Members),
                Note::Duplicate { .. } if !self.guards.duplicates_reported => {}
                Note::Duplicate { id, first } => {
                    self.metrics.duplicate_node_id = self.metrics.duplicate_node_id.saturating_add(1);
                    if first {
                        out.push(NodeOutput::Event(Event::DuplicateNodeId { id }));
                    }
                }
            }
        }
    }
}

/// `node-` and 32 hexadecimal digits.
fn drawn_id(seed: &Seed) -> NodeId {
    let mut rng = seed.fork("node id").rng();
    let name = format!("node-{:016x}{:016x}", rng.u64(), rng.u64());
    NodeId::new(&name).unwrap_or_else(|_| unreachable!("37 bytes of letters, digits and a dash"))
}
