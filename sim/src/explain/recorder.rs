//! Notes taken during a run, and pictures of the cluster at the moments that something failed.
//!
//! Frames are counted, not kept. What a node saw is kept as the event it was; what it took over from others is read
//! off its document, since merging reports no event.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use firedrill_core::id::{CounterName, Incarnation, NodeId};
use firedrill_core::io::Event;
use firedrill_core::node::{MemberStatus, Node};
use firedrill_core::time::Instant;

use super::beliefs::{About, Belief, Held, NodeState};
use crate::drill::timeline::sentence;
use crate::drill::{Failed, Gone, Witness};
use crate::engine::{Cause, Engine, Fault, HostState, Step};
use crate::oracles::World;
use crate::oracles::bounds::Bound;
use crate::scenario::model::{HostIx, Scenario};

/// Changes of one counter on one host that are kept: the last ones explain the present value.
const CHANGES_KEPT: usize = 4;
/// Reason under which frames below the sender's record are counted: accepted, but not heard (docs/protocol.md, decision 9).
pub(super) const BELOW_RECORD: &str = "below_record";

/// One thing that happened to a node.
#[derive(Debug, Clone)]
pub(super) struct Note {
    pub(super) at: Instant,
    pub(super) host: HostIx,
    pub(super) what: What,
}

/// What happened.
#[derive(Debug, Clone)]
pub(super) enum What {
    /// It reported this.
    Event(Event),
    /// It went down.
    Down { graceful: bool },
    /// Its record of a member changed; `told_by` is the sender of the frame that changed it.
    Record { id: NodeId, before: Option<Held>, after: Option<Held>, told_by: Option<NodeId> },
}

/// A counter's total changed on a host.
#[derive(Debug, Clone)]
pub(super) struct Change {
    pub(super) at: Instant,
    pub(super) from: u64,
    pub(super) to: u64,
    /// Whose push brought it; `None` for an increment of its own.
    pub(super) told_by: Option<NodeId>,
}

/// Something that the drill did, as it was told, and whom it touched.
#[derive(Debug, Clone)]
pub(super) struct Done {
    pub(super) at: Instant,
    pub(super) text: String,
    pub(super) hosts: BTreeSet<HostIx>,
    /// How many notes there were before it.
    pub(super) notes_before: usize,
}

/// The bound that the liveness phase was held to.
#[derive(Debug, Clone)]
pub(super) struct Settling {
    pub(super) began: Instant,
    pub(super) within: Duration,
    pub(super) because: String,
}

/// What failed first of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// An oracle fired.
    Oracle,
    /// This expectation did not hold.
    Expectation(usize),
}

/// Every node at the moment of a failure.
#[derive(Debug, Clone)]
pub(super) struct Picture {
    pub(super) moment: Moment,
    pub(super) at: Instant,
    pub(super) nodes: Vec<Belief>,
    pub(super) added: BTreeMap<String, u64>,
}

/// What one host heard of one member since its boot.
#[derive(Debug, Clone, Default)]
struct Heard {
    at: Option<Instant>,
    refused: BTreeMap<&'static str, u64>,
}

/// What is known of one host's present boot.
#[derive(Debug, Default)]
struct HostLog {
    document_version: Option<u64>,
    records: BTreeMap<NodeId, Held>,
    totals: BTreeMap<CounterName, u64>,
    heard: BTreeMap<NodeId, Heard>,
}

/// The notes of one run.
#[derive(Debug)]
pub(super) struct Recorder<'s> {
    pub(super) scenario: &'s Scenario,
    pub(super) notes: Vec<Note>,
    pub(super) done: Vec<Done>,
    pub(super) changes: BTreeMap<(HostIx, CounterName), VecDeque<Change>>,
    pub(super) settling: Option<Settling>,
    /// Incarnations that boots began with, by id, in order.
    pub(super) boots: BTreeMap<NodeId, Vec<Incarnation>>,
    hosts: Vec<HostLog>,
    down: BTreeMap<HostIx, (Instant, bool)>,
    cut: BTreeMap<(HostIx, HostIx), Instant>,
    pictures: Vec<Picture>,
}

impl<'s> Recorder<'s> {
    pub(super) fn new(scenario: &'s Scenario) -> Self {
        Self {
            scenario,
            notes: Vec::new(),
            done: Vec::new(),
            changes: BTreeMap::new(),
            settling: None,
            boots: BTreeMap::new(),
            hosts: scenario.hosts.iter().map(|_| HostLog::default()).collect(),
            down: BTreeMap::new(),
            cut: BTreeMap::new(),
            pictures: Vec::new(),
        }
    }

    /// The cluster when this failed.
    pub(super) fn picture(&self, moment: Option<Moment>) -> Option<&Picture> {
        self.pictures.iter().find(|picture| Some(picture.moment) == moment)
    }

    /// The expectation that failed first.
    pub(super) fn first_missed(&self) -> Option<usize> {
        self.pictures.iter().find_map(|picture| match picture.moment {
            Moment::Expectation(ix) => Some(ix),
            Moment::Oracle => None,
        })
    }

    fn note(&mut self, at: Instant, host: HostIx, what: What) {
        self.notes.push(Note { at, host, what });
    }

    /// Counts a frame, or notes what else a node reported. Yields the sender of an accepted frame.
    fn event<'e>(&mut self, step: &Step<'_>, event: &'e Event) -> Option<&'e NodeId> {
        let heard = &mut self.hosts[step.host.0].heard;
        if let Event::Accepted { sender, incarnation, .. } = event {
            let record = step.node.document().members.get(sender);
            let heard = heard.entry(sender.clone()).or_default();
            if record.is_none_or(|record| *incarnation >= record.incarnation) {
                *heard = Heard { at: Some(step.at), refused: BTreeMap::new() };
            } else {
                *heard.refused.entry(BELOW_RECORD).or_default() += 1;
            }
            return Some(sender);
        }
        if let Event::Rejected { reason, sender: Some(sender), .. } = event {
            let heard = heard.entry(sender.clone()).or_default();
            *heard.refused.entry(reason.name()).or_default() += 1;
            return None;
        }
        if let Event::MemberReaped { id, .. } = event {
            heard.remove(id);
        }
        if sentence(self.scenario, step.host, event).is_some() {
            self.note(step.at, step.host, What::Event(event.clone()));
        }
        None
    }

    fn document(&mut self, step: &Step<'_>, told_by: Option<&NodeId>) {
        let log = &mut self.hosts[step.host.0];
        let version = step.node.document_version();
        if log.document_version.replace(version) == Some(version) {
            return;
        }
        let document = step.node.document();
        let held = document.members.iter().map(|(id, record)| {
            (id.clone(), Held { incarnation: record.incarnation, status: record.status })
        });
        let before = std::mem::replace(&mut log.records, held.collect());
        let ids: BTreeSet<&NodeId> = before.keys().chain(log.records.keys()).collect();
        for id in ids {
            let (before, after) = (before.get(id).copied(), log.records.get(id).copied());
            if before != after {
                let what = What::Record { id: id.clone(), before, after, told_by: told_by.cloned() };
                self.notes.push(Note { at: step.at, host: step.host, what });
            }
        }
        for name in document.counters.keys() {
            let to = step.node.counter(name);
            let from = log.totals.insert(name.clone(), to).unwrap_or(0);
            if from != to {
                let changes = self.changes.entry((step.host, name.clone())).or_default();
                changes.push_back(Change { at: step.at, from, to, told_by: told_by.cloned() });
                if changes.len() > CHANGES_KEPT {
                    changes.pop_front();
                }
            }
        }
    }

    fn belief(&self, host: HostIx, engine: &dyn Engine) -> Belief {
        let facts = &self.scenario.hosts[host.0];
        let mut belief = Belief {
            node: facts.name.clone(),
            id: facts.id.to_string(),
            state: self.state(host, engine.state(host)),
            incarnation: None,
            view: Vec::new(),
            suspects: Vec::new(),
            about: BTreeMap::new(),
            counters: BTreeMap::new(),
        };
        engine.with_node(host, &mut |node| self.read(host, node, &mut belief));
        belief
    }

    fn state(&self, host: HostIx, state: HostState) -> NodeState {
        match (state, self.down.get(&host)) {
            (HostState::Up, _) => NodeState::Up,
            (HostState::Paused, _) => NodeState::Paused,
            (HostState::Down, None) => NodeState::NotStarted,
            (HostState::Down, Some(&(since, graceful))) => {
                NodeState::Down { since_us: since.as_micros(), graceful }
            }
        }
    }

    fn read(&self, host: HostIx, node: &Node, belief: &mut Belief) {
        belief.incarnation = Some(node.incarnation());
        belief.view = node.peers_in_view().map(|(id, _)| id.to_string()).collect();
        belief.view.push(node.id().to_string());
        belief.view.sort_unstable();
        let suspects = node.peers_in_view().filter(|(_, status)| *status == MemberStatus::Suspect);
        belief.suspects = suspects.map(|(id, _)| id.to_string()).collect();
        let counters = &node.document().counters;
        belief.counters = counters.keys().map(|name| (name.to_string(), node.counter(name))).collect();
        let known = node.document().members.keys();
        let ids: BTreeSet<&NodeId> = self.scenario.hosts.iter().map(|host| &host.id).chain(known).collect();
        belief.about = ids.into_iter().map(|id| (id.to_string(), self.about(host, node, id))).collect();
    }

    fn about(&self, host: HostIx, node: &Node, id: &NodeId) -> About {
        let record = node.document().members.get(id);
        let heard = self.hosts[host.0].heard.get(id).cloned().unwrap_or_default();
        let mut bearers = self.scenario.hosts.iter().enumerate().filter(|(_, other)| other.id == *id);
        About {
            record: record.map(|record| Held { incarnation: record.incarnation, status: record.status }),
            note: node.reap_note(id),
            watermark: node.watermark(id).map(|(incarnation, seq)| (incarnation, seq.0)),
            heard_at_us: heard.at.map(Instant::as_micros),
            refused: heard.refused,
            cut_since_us: bearers
                .find_map(|(from, _)| self.cut.get(&(HostIx(from), host)))
                .map(|since| since.as_micros()),
        }
    }
}

impl Witness for Recorder<'_> {
    fn step(&mut self, step: &Step<'_>) {
        if let Cause::Boot = step.cause {
            self.hosts[step.host.0] = HostLog::default();
            self.down.remove(&step.host);
            let boots = self.boots.entry(step.node.id().clone()).or_default();
            boots.push(step.node.boot_incarnation());
        }
        let mut told_by = if let Cause::Frame(header) = step.cause { Some(&header.sender) } else { None };
        let before = self.notes.len();
        for event in step.events {
            told_by = self.event(step, event).or(told_by);
        }
        let events = self.notes.len() - before;
        self.document(step, told_by);
        // What a node took over comes before what it concluded from it.
        self.notes[before..].rotate_left(events);
    }

    fn down(&mut self, at: Instant, gone: Gone) {
        self.down.insert(gone.host, (at, gone.graceful));
        self.note(at, gone.host, What::Down { graceful: gone.graceful });
    }

    fn act(&mut self, at: Instant, text: &str) {
        let notes_before = self.notes.len();
        self.done.push(Done { at, text: text.to_owned(), hosts: BTreeSet::new(), notes_before });
    }

    fn fault(&mut self, at: Instant, fault: &Fault) {
        let hosts = touched(fault);
        if let Some(done) = self.done.last_mut().filter(|done| done.at == at) {
            done.hosts.extend(hosts);
        }
        if let Fault::Block(pairs) | Fault::Hold(pairs) = fault {
            self.cut.extend(pairs.iter().map(|pair| (*pair, at)));
        }
        if let Fault::Unblock(pairs) | Fault::Release(pairs) = fault {
            self.cut.retain(|pair, _| !pairs.contains(pair));
        }
    }

    fn settling(&mut self, began: Instant, within: Duration, bound: &Bound) {
        self.settling = Some(Settling { began, within, because: bound.because.clone() });
    }

    fn failed(&mut self, failed: Failed<'_>, world: &World, engine: &dyn Engine) {
        let moment = match failed {
            Failed::Oracle(_) => Moment::Oracle,
            Failed::Expectation(ix) => Moment::Expectation(ix),
        };
        let kind = |moment: Moment| std::mem::discriminant(&moment);
        if self.pictures.iter().any(|picture| kind(picture.moment) == kind(moment)) {
            return;
        }
        let hosts = (0..self.scenario.hosts.len()).map(HostIx);
        let nodes = hosts.map(|host| self.belief(host, engine)).collect();
        let added = world.counters().iter().map(|(name, truth)| (name.to_string(), truth.total)).collect();
        self.pictures.push(Picture { moment, at: engine.now(), nodes, added });
    }
}

/// The hosts that a fault touches.
fn touched(fault: &Fault) -> Vec<HostIx> {
    match fault {
        Fault::Kill(host)
        | Fault::Stop(host)
        | Fault::Start { host, .. }
        | Fault::Pause(host)
        | Fault::Resume(host)
        | Fault::ClockStep { host, .. }
        | Fault::ClockRate { host, .. }
        | Fault::ClockFreeze { host, .. }
        | Fault::Disk { host, .. } => vec![*host],
        Fault::Block(pairs)
        | Fault::Unblock(pairs)
        | Fault::Hold(pairs)
        | Fault::Release(pairs)
        | Fault::Link(pairs, _)
        | Fault::HalfOpen(pairs)
        | Fault::Corrupt(pairs, _) => pairs.iter().flat_map(|&(from, to)| [from, to]).collect(),
        Fault::Replay { from, to, .. } => vec![*from, *to],
        Fault::Forge { to, .. } | Fault::Flood { to, .. } => vec![*to],
    }
}
