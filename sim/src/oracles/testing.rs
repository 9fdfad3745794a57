//! A bench for the oracles' own tests: puppets in place of nodes, put by hand into states that a correct node
//! never reaches, and judged by all oracles at once.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use firedrill_core::config::{Fencing, IssuanceConfig};
use firedrill_core::endpoint::{LinkSizes, LinkStates};
use firedrill_core::guards::Guards;
use firedrill_core::id::{Cell, ClusterName, CounterName, Incarnation, NodeId, Seq};
use firedrill_core::io::{Alarm, Command, Event};
use firedrill_core::issuance::event::IssuanceEvent;
use firedrill_core::issuance::machine::{Issuance, Recovered};
use firedrill_core::issuance::row::{Fields, Lease, Row, Stamped};
use firedrill_core::issuance::window::{Epoch, Window, Z};
use firedrill_core::issuance::writer::Written;
use firedrill_core::limits::Timing;
use firedrill_core::metrics::Metrics;
use firedrill_core::node::{MemberStatus, TableSizes};
use firedrill_core::rng::Seed;
use firedrill_core::time::{Instant, Now, WallTime};
use firedrill_core::wire::Header;
use firedrill_core::wire::message::{Addr, Document, MemberRecord, RecordStatus};

use super::agreement::Agreement;
use super::sight::{Connections, Look, Subject};
use super::world::{HostFacts, World};
use super::{Oracles, violation};
use crate::engine::Cause;
use crate::outcome::Violation;
use crate::scenario::model::{HostIx, LinkSpec};

type Verdict = Result<(), Box<Violation>>;

pub(super) fn ms(ms: u64) -> Instant {
    Instant::from_micros(ms * 1000)
}

pub(super) fn node_id(name: &str) -> NodeId {
    NodeId::new(name).unwrap()
}

/// A host with P = 500 ms and S = 2.5 s.
pub(super) fn facts(name: &str) -> HostFacts {
    let timing = Timing { push: Duration::from_millis(500), suspicion: Duration::from_millis(2500) };
    let addr = SocketAddr::from(([192, 168, 0, 1], 7946));
    HostFacts { name: Arc::from(name), id: node_id(name), timing, addr, seeds: vec![addr] }
}

/// 1 to 20 ms, nothing lost.
pub(super) const fn calm_net() -> LinkSpec {
    LinkSpec {
        latency_min: Duration::from_millis(1),
        latency_max: Duration::from_millis(20),
        loss_ppm: 0,
        duplicate_ppm: 0,
        reorder_ppm: 0,
        bandwidth: None,
    }
}

/// An issuance with these rows on its disk, as a node finds it at boot. Its issuer is `a`, its grace 31.1 s, its
/// silence 46.6 s.
pub(super) fn mint(name: &str, rows: Vec<Stamped>) -> Issuance {
    mint_with(name, rows, Guards::ON)
}

/// The same, of a node without some guard.
pub(super) fn mint_with(name: &str, rows: Vec<Stamped>, guards: Guards) -> Issuance {
    let config = IssuanceConfig {
        issuer: node_id("a"),
        width: 1,
        rate: "0.999999999999".parse().unwrap(),
        genesis_ms: 0,
        max_elapsed_per_seal: 8,
        catchup_max_z: Z(0),
        failover: true,
        silence_z: Z(60),
        boot_grace_z: Z(40),
        check_z: Z(16),
        pull_z: Z(20),
        probe_timeout_ms: 2000,
        eligible: [].into(),
        fencing: Fencing::None,
        fence_z: Z(45),
    };
    let at = Now { instant: Instant::ZERO, wall: WallTime::from_unix_ms(60_000) };
    let recovered = Recovered { rows, promised: None };
    Issuance::new(&config, &node_id(name), Incarnation(1000), recovered, &Seed::from_u64(1), at, guards)
}

/// A row of the usual rate.
pub(super) fn row(from_window: u64, window: u64, elapsed: u64, epoch: u64, holder: &str) -> Row {
    Row::new(Fields {
        window: Window(window),
        from_window: Window(from_window),
        elapsed,
        rate: "0.999999999999".parse().unwrap(),
        phase: "0.5".parse().unwrap(),
        genesis_pegged: true,
        lease: Some(Lease { epoch: Epoch(epoch), holder: node_id(holder) }),
    })
    .unwrap()
}

pub(super) fn stamped(origin: &str, seq: u64, row: Row) -> Stamped {
    Stamped { origin: origin.parse().unwrap(), seq: Seq(seq), row: Arc::new(row) }
}

pub(super) fn sealing(window: u64, epoch: u64) -> Event {
    Event::Issuance(IssuanceEvent::Sealing { window: Window(window), elapsed: 1, epoch: Some(Epoch(epoch)) })
}

pub(super) fn sealed(window: u64, epoch: u64) -> Event {
    let (window, from_window) = (Window(window), Window(window - 1));
    let epoch = Some(Epoch(epoch));
    Event::Issuance(IssuanceEvent::Sealed { window, from_window, elapsed: 1, epoch, duplicate: false })
}

pub(super) fn promoted(epoch: u64) -> Event {
    Event::Issuance(IssuanceEvent::Promoted { epoch: Epoch(epoch) })
}

/// Stands in for a node; every field may be set to anything.
#[derive(Debug, Clone)]
pub(super) struct Puppet {
    pub(super) id: NodeId,
    pub(super) incarnation: Incarnation,
    pub(super) cell_incarnation: Incarnation,
    pub(super) document: Document,
    pub(super) document_version: u64,
    pub(super) view: BTreeMap<NodeId, MemberStatus>,
    pub(super) view_version: u64,
    pub(super) sizes: TableSizes,
    pub(super) metrics: Metrics,
    pub(super) cluster: ClusterName,
    pub(super) next_seq: Seq,
    pub(super) payloads_read: u64,
    pub(super) departed: bool,
    pub(super) issuance: Option<Issuance>,
    /// What an increment adds beyond what it was asked for.
    pub(super) extra: u64,
}

impl Puppet {
    fn new(name: &str, incarnation: u64) -> Self {
        Self {
            id: node_id(name),
            incarnation: Incarnation(incarnation),
            cell_incarnation: Incarnation(incarnation),
            document: Document::default(),
            document_version: 0,
            view: BTreeMap::new(),
            view_version: 0,
            sizes: TableSizes::default(),
            metrics: Metrics::default(),
            cluster: ClusterName::new("firedrill").unwrap(),
            next_seq: Seq(0),
            payloads_read: 0,
            departed: false,
            issuance: None,
            extra: 0,
        }
    }

    pub(super) fn show(&mut self, name: &str) {
        if self.view.insert(node_id(name), MemberStatus::Alive).is_none() {
            self.view_version += 1;
        }
    }

    pub(super) fn hide(&mut self, name: &str) {
        self.view.remove(&node_id(name));
        self.view_version += 1;
    }

    pub(super) fn set_record(&mut self, name: &str, incarnation: u64, status: RecordStatus) {
        let record = MemberRecord { addr: Addr::default(), incarnation: Incarnation(incarnation), status };
        self.document.members.insert(node_id(name), record);
        self.document_version += 1;
    }

    pub(super) fn drop_record(&mut self, name: &str) {
        self.document.members.remove(&node_id(name));
        self.document_version += 1;
    }

    fn set_cell(&mut self, counter: &CounterName, cell: Cell, value: u64) {
        self.document.counters.entry(counter.clone()).or_default().insert(cell, value);
        self.document_version += 1;
    }
}

impl Subject for Puppet {
    fn id(&self) -> &NodeId {
        &self.id
    }
    fn incarnation(&self) -> Incarnation {
        self.incarnation
    }
    fn cell_incarnation(&self) -> Incarnation {
        self.cell_incarnation
    }
    fn document(&self) -> &Document {
        &self.document
    }
    fn document_version(&self) -> u64 {
        self.document_version
    }
    fn peers_in_view(&self) -> impl Iterator<Item = (&NodeId, MemberStatus)> {
        self.view.iter().map(|(id, status)| (id, *status))
    }
    fn view_version(&self) -> u64 {
        self.view_version
    }
    fn sizes(&self) -> TableSizes {
        self.sizes
    }
    fn metrics(&self) -> &Metrics {
        &self.metrics
    }
    fn has_departed(&self) -> bool {
        self.departed
    }
    fn cluster(&self) -> &ClusterName {
        &self.cluster
    }
    fn next_seq(&self) -> Seq {
        self.next_seq
    }
    fn payloads_read(&self) -> u64 {
        self.payloads_read
    }
    fn issuance(&self) -> Option<&Issuance> {
        self.issuance.as_ref()
    }
}

/// Stands in for the connections around a node.
#[derive(Debug, Clone, Default)]
pub(super) struct Wires {
    pub(super) states: LinkStates,
    pub(super) dials: BTreeMap<SocketAddr, u64>,
}

impl Connections for Wires {
    fn states(&self) -> LinkStates {
        self.states
    }
    fn dials(&self, visit: &mut dyn FnMut(SocketAddr, u64)) {
        self.dials.iter().for_each(|(addr, dials)| visit(*addr, *dials));
    }
}

/// Puppets, the truth about them, and all oracles. Times are milliseconds; every clock is true.
#[derive(Debug)]
pub(super) struct Bench {
    pub(super) world: World,
    pub(super) nodes: Vec<Puppet>,
    pub(super) links: LinkSizes,
    pub(super) wires: Wires,
    /// Frames and bytes of the next steps.
    pub(super) sent: (u64, u64),
    oracles: Oracles,
    boots: Vec<u32>,
}

impl Bench {
    /// Hosts of these names, booted at 0 ms on a calm net, at incarnations 1000, 1001, ….
    ///
    /// Their frames and clocks are taken on trust: see [`Bench::strict`].
    pub(super) fn new(names: &[&str]) -> Self {
        Self::with(names, calm_net(), false)
    }

    /// As [`Bench::new`], with the oracles that want frames to have been sent and incarnations to be a clock's.
    pub(super) fn strict(names: &[&str]) -> Self {
        Self::build(names, calm_net(), false, &[])
    }

    pub(super) fn with(names: &[&str], net: LinkSpec, reuse_allowed: bool) -> Self {
        Self::build(names, net, reuse_allowed, &["frames_authentic", "incarnation_from_clock"])
    }

    fn build(names: &[&str], net: LinkSpec, reuse_allowed: bool, off: &[&str]) -> Self {
        let world = World::of(names.iter().map(|name| facts(name)).collect(), net, 1, reuse_allowed);
        let oracles = Oracles::new(&world, &BTreeMap::new()).unwrap();
        let nodes: Vec<Puppet> =
            (1000..).zip(names).map(|(incarnation, name)| Puppet::new(name, incarnation)).collect();
        let boots = vec![0; nodes.len()];
        let mut bench = Self {
            world,
            nodes,
            links: LinkSizes::default(),
            wires: Wires::default(),
            sent: (0, 0),
            oracles,
            boots,
        };
        off.iter().for_each(|name| bench.turn_off(name));
        for host in 0..names.len() {
            bench.world.booted(ms(0), HostIx(host), 0, bench.nodes[host].incarnation);
            bench.judge(host, 0, Cause::Boot, &[], &[]).unwrap();
        }
        bench
    }

    pub(super) fn turn_off(&mut self, name: &str) {
        self.oracles.set.turn_off(name);
    }

    /// A host's disk has these rows durable from now on.
    pub(super) fn take(&mut self, host: usize, at: u64, issuance: Issuance) -> Verdict {
        self.nodes[host].issuance = Some(issuance);
        self.disk(host, at, Written::Durable)
    }

    pub(super) fn turn_off_all(&mut self, names: &[&str]) {
        names.iter().for_each(|name| self.turn_off(name));
    }

    pub(super) fn boot(&mut self, host: usize, at: u64, incarnation: u64) -> Verdict {
        self.boot_with(host, at, incarnation, None)
    }

    /// A boot that finds this issuance.
    pub(super) fn boot_with(
        &mut self,
        host: usize,
        at: u64,
        incarnation: u64,
        issuance: Option<Issuance>,
    ) -> Verdict {
        self.boots[host] += 1;
        self.nodes[host] = Puppet::new(self.nodes[host].id.clone().as_str(), incarnation);
        self.nodes[host].issuance = issuance;
        self.world.booted(ms(at), HostIx(host), self.boots[host], Incarnation(incarnation));
        self.judge(host, at, Cause::Boot, &[], &[])
    }

    pub(super) fn kill(&mut self, host: usize, at: u64) {
        self.world.went_down(ms(at), HostIx(host), false);
        self.oracles.down(&self.world, HostIx(host));
    }

    pub(super) fn leave(&mut self, host: usize, at: u64) {
        self.world.went_down(ms(at), HostIx(host), true);
        self.oracles.down(&self.world, HostIx(host));
    }

    pub(super) fn wake(&mut self, host: usize, at: u64) -> Verdict {
        self.judge(host, at, Cause::Wake, &[], &[])
    }

    pub(super) fn events(&mut self, host: usize, at: u64, events: &[Event]) -> Verdict {
        self.judge(host, at, Cause::Wire, events, &[])
    }

    /// The disk answers.
    pub(super) fn disk(&mut self, host: usize, at: u64, written: Written) -> Verdict {
        self.disk_with(host, at, written, &[])
    }

    /// The disk answers, with these events.
    pub(super) fn disk_with(&mut self, host: usize, at: u64, written: Written, events: &[Event]) -> Verdict {
        self.judge(host, at, Cause::Disk(written), events, &[])
    }

    /// A command is handled, with these events.
    pub(super) fn command(&mut self, host: usize, at: u64, command: &Command, events: &[Event]) -> Verdict {
        self.judge(host, at, Cause::Command(command), events, &[])
    }

    /// A frame with this head arrives on the fast wire, with these events.
    pub(super) fn frame(&mut self, host: usize, at: u64, header: &Header, events: &[Event]) -> Verdict {
        self.judge(host, at, Cause::Frame(header), events, &[])
    }

    pub(super) fn alarm(&mut self, host: usize, at: u64, alarm: &Alarm) -> Verdict {
        self.judge(host, at, Cause::Wake, &[], std::slice::from_ref(alarm))
    }

    pub(super) fn increment(&mut self, host: usize, at: u64, counter: &str, by: u64) -> Verdict {
        let counter = CounterName::new(counter).unwrap();
        let node = &mut self.nodes[host];
        let cell = Cell { node: node.id.clone(), incarnation: node.cell_incarnation };
        let held = node.document.counters.get(&counter).and_then(|cells| cells.get(&cell)).copied();
        node.set_cell(&counter, cell, held.unwrap_or(0) + by + node.extra);
        let incarnation = node.cell_incarnation;
        let command = Command::Increment { counter: counter.clone(), by };
        self.judge(host, at, Cause::Command(&command), &[], &[])?;
        self.world.incremented(HostIx(host), &counter, by, incarnation);
        Ok(())
    }

    /// Sets a cell of the host of that name, as `host` holds it.
    pub(super) fn set_cell(&mut self, host: usize, counter: &str, writer: &str, value: u64) {
        let writer = self.nodes.iter().find(|node| node.id.as_str() == writer).unwrap();
        let cell = Cell { node: writer.id.clone(), incarnation: writer.cell_incarnation };
        self.nodes[host].set_cell(&CounterName::new(counter).unwrap(), cell, value);
    }

    /// The event of a frame of that host at its present incarnation.
    pub(super) fn accepted(&self, from: usize, seq: u64) -> Event {
        let sender = &self.nodes[from];
        Event::Accepted { sender: sender.id.clone(), incarnation: sender.incarnation, seq: Seq(seq) }
    }

    /// A frame arrives; its sender is recorded alive and enters the view.
    pub(super) fn hear(&mut self, host: usize, at: u64, from: usize, seq: u64) -> Verdict {
        let Incarnation(incarnation) = self.nodes[from].incarnation;
        let name = self.nodes[from].id.clone();
        self.nodes[host].set_record(name.as_str(), incarnation, RecordStatus::Alive);
        self.nodes[host].show(name.as_str());
        self.hear_only(host, at, from, seq)
    }

    /// A frame arrives and changes nothing.
    pub(super) fn hear_only(&mut self, host: usize, at: u64, from: usize, seq: u64) -> Verdict {
        let accepted = self.accepted(from, seq);
        self.events(host, at, &[accepted])
    }

    /// Everybody hears everybody at 1 ms and knows every record.
    pub(super) fn converge(&mut self) {
        for host in 0..self.nodes.len() {
            let Incarnation(own) = self.nodes[host].incarnation;
            let name = self.nodes[host].id.clone();
            self.nodes[host].set_record(name.as_str(), own, RecordStatus::Alive);
            for from in (0..self.nodes.len()).filter(|from| *from != host) {
                self.hear(host, 1, from, 0).unwrap();
            }
        }
    }

    pub(super) fn read_into(&self, agreement: &mut Agreement) {
        for (position, node) in self.nodes.iter().enumerate() {
            let host = self.world.host(HostIx(position));
            match host.running().filter(|_| host.paused_since.is_none()) {
                Some(boot) => agreement.read(HostIx(position), boot.boot, node),
                None => agreement.forget(HostIx(position)),
            }
        }
    }

    /// The full sweep and the liveness oracles, as [`Oracles::at_end`] runs them over real nodes.
    pub(super) fn at_end(&mut self) -> Verdict {
        for host in 0..self.nodes.len() {
            if self.world.host(HostIx(host)).running().is_some() {
                self.oracles.sweep(&self.world, HostIx(host), &self.nodes[host])?;
            }
        }
        let mut agreement = Agreement::new(&self.world);
        self.read_into(&mut agreement);
        let spine = |node: &Puppet| node.issuance.as_ref().map(|issuance| issuance.spine().clone());
        let spines: Vec<_> = self.nodes.iter().map(spine).collect();
        agreement.close(&self.world, self.oracles.ledger.books(), ms(99_999), &spines);
        self.oracles
            .set
            .at_end(&self.world, &agreement)
            .map_err(|(rule, broken)| violation(rule, *broken, ms(99_999)))
    }

    fn judge(
        &mut self,
        host: usize,
        at: u64,
        cause: Cause<'_>,
        events: &[Event],
        alarms: &[Alarm],
    ) -> Verdict {
        let look = Look {
            at: ms(at),
            // At 0 ms every wall clock shows what the first host took for its incarnation.
            now: Now { instant: ms(at), wall: WallTime::from_unix_ms(1000 + i64::try_from(at).unwrap()) },
            host: HostIx(host),
            boot: self.boots[host],
            cause,
            node: &self.nodes[host],
            events,
            frames_sent: self.sent.0,
            bytes_sent: self.sent.1,
            links: self.links,
            connections: Some(&self.wires),
            alarms,
        };
        self.oracles.judge(&self.world, &look)
    }
}
