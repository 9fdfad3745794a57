//! What the harness knows to be true: who runs, who wrote what, what was done to the cluster.
//!
//! The conductor tells [`World`] first and the oracles second, so an oracle can hold a node's belief against
//! the truth at that very moment. Everything is indexed: hosts by [`HostIx`], node ids by [`PeerIx`].
//!
//! Invariants: ids are sorted, so a [`PeerIx`] compares as its id does; truth about counters never shrinks.
//! Absent: anything a node says of itself, apart from the incarnation it booted with and the cell it wrote.
//!
//! Spec: docs/protocol.md, Bounds after a heal (steady state); decision 17.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use firedrill_core::config::{Fencing, IssuanceConfig};
use firedrill_core::id::{Cell, CounterName, Incarnation, NodeId};
use firedrill_core::limits::{DEPARTURE, Timing};
use firedrill_core::time::Instant;

pub use super::host::{Boot, Host, HostFacts, RATE_RIGHT_PPM};

use super::bounds::{FaultHistory, IssuanceSpans, news_within, round_longest, seed_diameter, strange_for};
use super::host::at_rate;
use super::nature::{delay_max, is_calm, is_departure_or_return, turned_back, twins_differ};
use super::stray::{Memory, Strays};
use crate::engine::Fault;
use crate::engine::event::strangers::replay_lasts;
use crate::scenario::model::{DiskState, HostIx, LinkSpec, Scenario};

/// A node id, by its position among the sorted ids of the drill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PeerIx(pub usize);

/// What was written into one cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellTruth {
    /// The sum of the increments; saturates.
    pub value: u64,
    /// Who wrote first.
    pub writer: (HostIx, u32),
    /// Whether another boot wrote too: what one of them wrote may then be absorbed.
    pub shared: bool,
}

/// What was written into one counter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CounterTruth {
    /// All increments of all boots; saturates.
    pub total: u64,
    /// The same, by cell.
    pub cells: BTreeMap<Cell, CellTruth>,
}

/// An incarnation that two boots of one id began with (decision 17).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reuse {
    /// The later boot.
    pub host: HostIx,
    /// Which boot of it.
    pub boot: u32,
    /// The earlier boot's host.
    pub earlier: HostIx,
    /// Which boot of it.
    pub earlier_boot: u32,
    /// The incarnation they share.
    pub incarnation: Incarnation,
}

/// The truth of a run.
#[derive(Debug, Clone)]
pub struct World {
    ids: Vec<NodeId>,
    hosts: Vec<Host>,
    hosts_of: Vec<Vec<HostIx>>,
    counters: BTreeMap<CounterName, CounterTruth>,
    reused: Vec<Reuse>,
    reuse_allowed: bool,
    net: LinkSpec,
    frame_delay_max: Duration,
    stale_at: Option<Instant>,
    last_goodbye: Option<Instant>,
    first_fault: Option<Instant>,
    only_departures: bool,
    blocked: BTreeMap<(HostIx, HostIx), Instant>,
    changes: u64,
    calm_config: bool,
    strays: Strays,
    history: FaultHistory,
    promises_lost: bool,
    /// By host; empty where nobody issues.
    issuance: Vec<Option<IssuanceSpans>>,
}

impl World {
    /// The world before the first boot of a scenario.
    pub fn new(scenario: &Scenario) -> Self {
        let facts = scenario.hosts.iter().map(|host| HostFacts {
            name: Arc::from(host.name.as_str()),
            id: host.id.clone(),
            timing: host.config.timing(),
            addr: host.config.advertised(),
            seeds: host.config.seed_peers.clone(),
        });
        let diameter = seed_diameter(&scenario.hosts);
        let mut world = Self::of(
            facts.collect(),
            scenario.net,
            diameter,
            scenario.same_millisecond || twins_differ(&scenario.hosts),
        );
        world.issuance = scenario.hosts.iter().map(|host| host.issuance.as_ref().map(spans)).collect();
        world
    }

    /// The world before the first boot of these hosts on such a network, with seeds of that diameter.
    pub fn of(facts: Vec<HostFacts>, net: LinkSpec, seed_diameter: usize, reuse_allowed: bool) -> Self {
        let mut ids: Vec<NodeId> = facts.iter().map(|host| host.id.clone()).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut hosts_of = vec![Vec::new(); ids.len()];
        let mut hosts = Vec::with_capacity(facts.len());
        for (position, facts) in facts.into_iter().enumerate() {
            let peer = PeerIx(ids.partition_point(|id| *id < facts.id));
            hosts_of[peer.0].push(HostIx(position));
            hosts.push(Host::new(facts, peer));
        }
        let history = FaultHistory {
            seed_diameter,
            same_millisecond: reuse_allowed,
            loss_ppm: net.loss_ppm,
            ..FaultHistory::default()
        };
        let mut world = Self {
            calm_config: is_calm(&hosts, &net) && ids.len() == hosts.len(),
            ids,
            hosts,
            hosts_of,
            counters: BTreeMap::new(),
            reused: Vec::new(),
            reuse_allowed,
            net,
            frame_delay_max: Duration::ZERO,
            stale_at: None,
            last_goodbye: None,
            first_fault: None,
            only_departures: true,
            blocked: BTreeMap::new(),
            changes: 0,
            strays: Strays::default(),
            history,
            promises_lost: false,
            issuance: Vec::new(),
        };
        world.frame_delay(delay_max(&net));
        world
    }

    // What the conductor tells.

    /// A host booted. Told before the oracles see the boot's first step.
    pub fn booted(&mut self, at: Instant, host: HostIx, boot: u32, incarnation: Incarnation) {
        let peer = self.hosts[host.0].peer;
        let earlier = self.hosts_of[peer.0].iter().find_map(|&other| {
            let same = self.hosts[other.0].boots.iter().find(|boot| boot.incarnation == incarnation)?;
            Some(Reuse { host, boot, earlier: other, earlier_boot: same.boot, incarnation })
        });
        // What clocks do to incarnations, two boots in one millisecond do too.
        self.history.same_millisecond |= earlier.is_some();
        self.reused.extend(earlier);
        let last = self.hosts[host.0].down_since();
        if let Some(last) = last {
            self.history.restarts += 1;
            self.history.downtime_longest = self.history.downtime_longest.max(at.since(last));
            let highest = self.hosts[host.0].boots.iter().map(|boot| boot.incarnation).max();
            self.history.backward_clock |= highest.is_some_and(|highest| incarnation <= highest);
        }
        self.note_stray(at, peer, incarnation);
        self.changes += 1;
        self.hosts[host.0].boots.push(Boot { boot, at, incarnation, ended: None });
        let late = DEPARTURE.saturating_add(self.frame_delay_max);
        self.history.left |= self.last_goodbye.is_some_and(|goodbye| at <= goodbye.after(late));
    }

    /// A host went down. Told before the oracles hear of it.
    pub fn went_down(&mut self, at: Instant, host: HostIx, graceful: bool) {
        let down = &mut self.hosts[host.0];
        down.departs = false;
        if let Some(boot) = down.boots.last_mut() {
            boot.ended = Some((at, graceful));
        }
        if let Some(since) = down.paused_since.take() {
            self.history.pause_longest = self.history.pause_longest.max(at.since(since));
        }
        self.changes += 1;
        self.history.all_down |= self.hosts.iter().all(|host| host.running().is_none());
    }

    /// A client's increment was accepted. Told right after the command returned, before any other step.
    ///
    /// `cell` is the node's cell incarnation after the command.
    pub fn incremented(&mut self, host: HostIx, counter: &CounterName, by: u64, cell: Incarnation) {
        let writer = (host, self.hosts[host.0].boots.last().map_or(0, |boot| boot.boot));
        let cell = Cell { node: self.hosts[host.0].facts.id.clone(), incarnation: cell };
        if !self.counters.contains_key(counter) {
            self.counters.insert(counter.clone(), CounterTruth::default());
        }
        if let Some(truth) = self.counters.get_mut(counter) {
            truth.total = truth.total.saturating_add(by);
            let truth = truth.cells.entry(cell).or_insert(CellTruth { value: 0, writer, shared: false });
            truth.value = truth.value.saturating_add(by);
            truth.shared |= truth.writer != writer;
        }
    }

    /// A fault was applied, or undone. Kills, stops and boots are told by the methods above as well.
    pub fn fault_applied(&mut self, at: Instant, fault: &Fault) {
        if self.disturbs(fault) {
            self.first_fault.get_or_insert(at);
            self.only_departures &= is_departure_or_return(fault);
        }
        self.strays.stirred(at, fault, |host| self.hosts[host.0].peer);
        if let Some(host) = turned_back(fault) {
            self.reuse_allowed = true;
            self.history.backward_clock = true;
            self.hosts[host.0].turned_back = true;
        }
        match fault {
            Fault::Kill(_) => {}
            Fault::Disk { disk, .. } => self.promises_lost |= disk.state == DiskState::Unsynced,
            Fault::Stop(host) => {
                let host = &mut self.hosts[host.0];
                host.departs = host.running().is_some();
                let history = self.history(at);
                let knows_at = |boot: &Boot| boot.at.after(strange_for(&history, boot.boot == 0));
                let fresh = |host: &Host| host.running().is_some_and(|boot| knows_at(boot) >= at);
                self.history.left |= self.hosts.iter().any(fresh);
                self.last_goodbye = Some(at);
            }
            Fault::Start { host, addr, lose_disk, .. } => {
                self.promises_lost |= *lose_disk;
                let host = &mut self.hosts[host.0];
                if let Some(addr) = addr.filter(|addr| *addr != host.facts.addr) {
                    host.facts.addr = addr;
                    host.moved = true;
                }
            }
            Fault::Pause(host) => {
                self.changes += 1;
                self.hosts[host.0].paused_since = Some(at);
            }
            Fault::Resume(host) => {
                self.changes += 1;
                let host = &mut self.hosts[host.0];
                if let Some(since) = host.paused_since.take() {
                    self.history.pause_longest = self.history.pause_longest.max(at.since(since));
                    host.resumed_at = Some(at);
                }
            }
            Fault::Block(pairs) | Fault::Hold(pairs) => self.cut(at, pairs),
            Fault::Unblock(pairs) => {
                self.mend(at, pairs);
            }
            Fault::Release(pairs) => {
                // What is let loose at one moment arrives in order, a microsecond apart; nobody sends a frame a
                // millisecond.
                let spread = self.mend(at, pairs) / 1000;
                self.stale_at = self.stale_at.max(Some(at.after(spread)));
            }
            Fault::Link(_, spec) => {
                self.frame_delay(delay_max(spec));
                self.history.loss_ppm = self.history.loss_ppm.max(spec.loss_ppm);
            }
            Fault::HalfOpen(_) => self.history.half_open = true,
            Fault::ClockRate { host, rate_ppm } => {
                let host = &mut self.hosts[host.0];
                host.slowest_rate_ppm = host.slowest_rate_ppm.min(*rate_ppm);
                host.fastest_rate_ppm = host.fastest_rate_ppm.max(*rate_ppm);
            }
            Fault::ClockStep { .. } | Fault::ClockFreeze { .. } => {}
            Fault::Replay { count, .. } => {
                self.history.replayed = true;
                // Over connections the one who replays has to dial first, which costs a round trip, and sends one
                // frame after another.
                let sent = self.frame_delay_max.saturating_mul(2).saturating_add(replay_lasts(*count));
                self.stale_at = self.stale_at.max(Some(at.after(sent)));
            }
            Fault::Corrupt(_, rate_ppm) => self.history.loss_ppm = self.history.loss_ppm.max(*rate_ppm),
            Fault::Forge { .. } | Fault::Flood { .. } => self.history.strangers = true,
        }
    }

    /// Frames may take this long. For delays that no link's description tells, such as an engine's tick.
    pub fn frame_delay(&mut self, longest: Duration) {
        self.frame_delay_max = self.frame_delay_max.max(longest);
    }

    // What the oracles ask.

    /// All hosts.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// One host.
    pub fn host(&self, host: HostIx) -> &Host {
        &self.hosts[host.0]
    }

    /// A host's name.
    pub fn name(&self, host: HostIx) -> &str {
        &self.hosts[host.0].facts.name
    }

    /// The ids of the drill, sorted.
    pub fn ids(&self) -> &[NodeId] {
        &self.ids
    }

    /// The index of an id, if a host of the drill bears it.
    pub fn peer(&self, id: &NodeId) -> Option<PeerIx> {
        self.ids.binary_search(id).ok().map(PeerIx)
    }

    /// An id.
    pub fn id(&self, peer: PeerIx) -> &NodeId {
        &self.ids[peer.0]
    }

    /// The hosts that bear an id.
    pub fn hosts_of(&self, peer: PeerIx) -> &[HostIx] {
        &self.hosts_of[peer.0]
    }

    /// Since when no host with this id runs, and whether the last of them departed gracefully; `None` while one
    /// runs, and before the first did.
    pub fn dead_since(&self, peer: PeerIx) -> Option<(Instant, bool)> {
        let hosts = || self.hosts_of[peer.0].iter().map(|host| &self.hosts[host.0]);
        if hosts().any(|host| host.running().is_some()) {
            return None;
        }
        hosts().filter_map(|host| host.boots.last()?.ended).max()
    }

    /// Rises whenever a host boots, goes down, is held or goes on.
    pub const fn changes(&self) -> u64 {
        self.changes
    }

    /// The increments made.
    pub const fn counters(&self) -> &BTreeMap<CounterName, CounterTruth> {
        &self.counters
    }

    /// Incarnations that two boots of one id began with.
    pub fn reused(&self) -> &[Reuse] {
        &self.reused
    }

    /// Whether two boots may begin with one incarnation: the scenario lets boots share a millisecond, gives two
    /// hosts with one id different clocks, or has turned a wall clock back or stopped one (decision 17).
    pub const fn reuse_allowed(&self) -> bool {
        self.reuse_allowed
    }

    /// The longest any frame could have taken so far.
    pub const fn frame_delay_max(&self) -> Duration {
        self.frame_delay_max
    }

    /// Until when frames from long ago were let loose, at the latest: by a release, or by replays.
    pub const fn stale_at(&self) -> Option<Instant> {
        self.stale_at
    }

    /// When the first fault struck.
    pub const fn first_fault(&self) -> Option<Instant> {
        self.first_fault
    }

    /// Whether nobody has a reason to suspect anybody: no fault so far, a prompt network, one pace for all.
    pub const fn is_calm(&self) -> bool {
        self.calm_config && self.first_fault.is_none()
    }

    /// Whether last words arrive: a prompt network, and no fault so far but departures and their returns.
    pub const fn is_polite(&self) -> bool {
        self.calm_config && self.only_departures
    }

    /// The faults so far, as the liveness bound needs them. `at` closes what is still going on.
    pub fn history(&self, at: Instant) -> FaultHistory {
        let mut history = self.history;
        for since in self.blocked.values() {
            history.partition_longest = history.partition_longest.max(at.since(*since));
        }
        for host in &self.hosts {
            if let Some(since) = host.paused_since {
                history.pause_longest = history.pause_longest.max(at.since(since));
            }
            history.departs_at_end |= host.departs;
            history.down_at_end |= host.departs || host.down_since().is_some();
        }
        history.stale_for = self.stale_at.map(|until| until.since(at)).unwrap_or_default();
        history.frame_delay_max = self.frame_delay_max;
        history.push_longest = self.longest(|timing| timing.push);
        history.suspicion_longest = self.longest(|timing| timing.suspicion);
        history.suspicion_shortest = self.suspicion_shortest();
        history.issuance = self.issuance_spans();
        history.sought = self.strays.any_sought(&Memory {
            longest: history.suspicion_longest,
            shortest: history.suspicion_shortest,
            news: news_within(&history),
            rounds: round_longest(&history).saturating_mul(2).saturating_add(self.frame_delay_max),
        });
        history
    }

    /// A boot that may be outranked by a record of its id that tells of another address.
    fn note_stray(&mut self, at: Instant, peer: PeerIx, incarnation: Incarnation) {
        let namesakes = &self.hosts_of[peer.0];
        let hosts = || namesakes.iter().map(|host| &self.hosts[host.0]);
        let boots = || hosts().flat_map(|host| &host.boots);
        let elsewhere = namesakes.len() > 1 || hosts().any(|host| host.moved);
        let outranked =
            hosts().any(|host| host.turned_back) || boots().any(|boot| boot.incarnation >= incarnation);
        if elsewhere && outranked && boots().next().is_some() {
            let ended = boots().map(|boot| boot.ended.map(|(at, _)| at)).collect::<Option<Vec<_>>>();
            self.strays.returned(peer, ended.and_then(|ended| ended.into_iter().max()), at);
        }
    }

    fn suspicion_shortest(&self) -> Duration {
        let own = |host: &Host| at_rate(host.facts.timing.suspicion, host.fastest_rate_ppm);
        self.hosts.iter().map(own).min().unwrap_or_default()
    }

    /// The longest of each, in true time.
    fn issuance_spans(&self) -> Option<IssuanceSpans> {
        let issuing = self.issuance.iter().zip(&self.hosts);
        let spans =
            issuing.filter_map(|(spans, host)| Some(spans.as_ref()?.through(|span| host.true_time(span))));
        spans.reduce(IssuanceSpans::longest)
    }

    fn longest(&self, of: impl Fn(&Timing) -> Duration) -> Duration {
        self.hosts.iter().map(|host| host.true_time(of(&host.facts.timing))).max().unwrap_or_default()
    }

    fn cut(&mut self, at: Instant, pairs: &[(HostIx, HostIx)]) {
        for pair in pairs {
            self.blocked.entry(*pair).or_insert(at);
        }
    }

    /// Opens these ways again; how long the longest of them was closed.
    fn mend(&mut self, at: Instant, pairs: &[(HostIx, HostIx)]) -> Duration {
        let closed = pairs.iter().filter_map(|pair| self.blocked.remove(pair)).map(|since| at.since(since));
        let longest = closed.max().unwrap_or_default();
        self.history.partition_longest = self.history.partition_longest.max(longest);
        longest
    }

    /// Whether a fault gives anybody a reason to suspect. The first boot of a host does not.
    fn disturbs(&self, fault: &Fault) -> bool {
        match fault {
            Fault::Start { host, .. } => !self.hosts[host.0].boots.is_empty(),
            Fault::Link(_, spec) => !is_calm(&self.hosts, spec),
            Fault::Resume(_) | Fault::Unblock(_) | Fault::Release(_) | Fault::Disk { .. } => false,
            Fault::ClockRate { rate_ppm, .. } => *rate_ppm != RATE_RIGHT_PPM,
            Fault::Kill(_)
            | Fault::Stop(_)
            | Fault::Pause(_)
            | Fault::Block(_)
            | Fault::Hold(_)
            | Fault::HalfOpen(_)
            | Fault::ClockStep { .. }
            | Fault::ClockFreeze { .. }
            | Fault::Replay { .. }
            | Fault::Corrupt(..)
            | Fault::Forge { .. }
            | Fault::Flood { .. } => true,
        }
    }

    /// Whether a disk was lost, or may have taken back what it reported: with it goes what an elector promised.
    pub const fn promises_lost(&self) -> bool {
        self.promises_lost
    }

    /// How links behave when no fault acts on them.
    pub const fn net(&self) -> &LinkSpec {
        &self.net
    }
}

fn spans(config: &IssuanceConfig) -> IssuanceSpans {
    IssuanceSpans {
        silence: config.silence_z.duration(),
        grace: config.boot_grace_z.duration(),
        // A check waits for the round before it.
        check: config.check_z.duration().max(Duration::from_millis(config.probe_timeout_ms)),
        pull: config.pull_z.duration(),
        probe: Duration::from_millis(config.probe_timeout_ms),
        fence: match config.fencing {
            Fencing::Majority => config.fence_z.duration(),
            Fencing::None => Duration::ZERO,
        },
    }
}
