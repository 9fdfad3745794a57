//! What the tests of the event engine share: a cluster, a watch that remembers, and a drill with many faults.
#![allow(dead_code, reason = "each test binary uses a part")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use firedrill_core::config::{ClusterConfig, Secret};
use firedrill_core::id::{ClusterName, CounterName, Incarnation, NodeId};
use firedrill_core::io::{Command, Event, Reply};
use firedrill_core::metrics::Metrics;
use firedrill_core::time::Instant;
use firedrill_sim::digest::{Digest, Mark};
use firedrill_sim::engine::{Cause, Engine, Fault, FaultId, Flow, Step, Watch};
use firedrill_sim::scenario::model::{Host, HostIx, LinkSpec};

pub(crate) const A: HostIx = HostIx(0);
pub(crate) const B: HostIx = HostIx(1);
pub(crate) const C: HostIx = HostIx(2);

pub(crate) fn addr(host: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, u8::try_from(host).unwrap() + 1], 7946))
}

pub(crate) fn hosts(count: usize) -> Vec<Host> {
    let host = |index: usize| {
        let name = format!("n{index:02}");
        let id = NodeId::new(&name).unwrap();
        let config = ClusterConfig {
            enabled: true,
            secret: Secret::new("a secret for drills"),
            cluster_name: ClusterName::new("firedrill").unwrap(),
            node_id: Some(id.clone()),
            bind_addr: addr(index),
            advertise_addr: None,
            seed_peers: (0..count).filter(|other| *other != index).map(addr).collect(),
            push_interval_ms: 500,
            suspicion_timeout_ms: 2500,
        };
        Host { name, id, config, issuance: None, wall_offset_us: 0, from_start: true }
    };
    (0..count).map(host).collect()
}

pub(crate) fn net() -> LinkSpec {
    LinkSpec {
        latency_min: Duration::from_millis(1),
        latency_max: Duration::from_millis(20),
        loss_ppm: 0,
        duplicate_ppm: 0,
        reorder_ppm: 0,
        bandwidth: None,
    }
}

/// Remembers what was seen.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) digest: Digest,
    pub(crate) boots: Vec<(usize, u32, Incarnation)>,
    pub(crate) events: Vec<(u64, usize, Event)>,
    pub(crate) ended: Vec<(usize, u32, bool)>,
    pub(crate) inbound_most: usize,
    /// What each host counted by its last step.
    pub(crate) metrics_last: BTreeMap<usize, Metrics>,
}

impl Watch for Seen {
    fn observe(&mut self, step: &Step<'_>) -> Flow {
        self.digest.absorb(step);
        if step.cause == Cause::Boot {
            self.boots.push((step.host.0, step.boot, step.node.boot_incarnation()));
        }
        let at_ms = step.at.as_micros() / 1000;
        let told = step.events.iter().filter(|event| !matches!(event, Event::Accepted { .. }));
        self.events.extend(told.map(|event| (at_ms, step.host.0, event.clone())));
        self.metrics_last.insert(step.host.0, step.metrics());
        self.inbound_most = self.inbound_most.max(step.links.inbound);
        assert!(step.alarms.is_empty(), "{:?}", step.alarms);
        Flow::Continue
    }

    fn down(&mut self, _at: Instant, host: HostIx, boot: u32, graceful: bool) {
        self.ended.push((host.0, boot, graceful));
    }
}

/// One cluster under one watch.
pub(crate) struct Drill<E> {
    pub(crate) engine: E,
    pub(crate) seen: Seen,
}

impl<E: Engine> Drill<E> {
    pub(crate) fn new(engine: E) -> Self {
        Self { engine, seen: Seen::default() }
    }

    pub(crate) fn until_s(&mut self, seconds: u64) {
        self.engine.run_until(Instant::from_micros(seconds * 1_000_000), &mut self.seen);
    }

    pub(crate) fn apply(&mut self, fault: Fault) -> FaultId {
        self.engine.apply(&fault, &mut self.seen)
    }

    pub(crate) fn increment(&mut self, host: HostIx) -> Option<u64> {
        let command = Command::Increment { counter: CounterName::new("sightings").unwrap(), by: 1 };
        match self.engine.command(host, command, &mut self.seen)? {
            Ok(Reply::Incremented { total }) => Some(total),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn in_view(&self, host: HostIx) -> usize {
        let mut members = 0;
        self.engine.with_node(host, &mut |node| members = node.peers_in_view().count() + 1);
        members
    }

    pub(crate) fn counter(&self, host: HostIx) -> u64 {
        let mut total = 0;
        let name = CounterName::new("sightings").unwrap();
        self.engine.with_node(host, &mut |node| total = node.counter(&name));
        total
    }

    pub(crate) fn views(&self, hosts: usize) -> Vec<usize> {
        (0..hosts).map(|host| self.in_view(HostIx(host))).collect()
    }

    pub(crate) fn happened(&self, host: HostIx, wanted: impl Fn(&Event) -> bool) -> usize {
        self.seen.events.iter().filter(|(_, seen_on, event)| *seen_on == host.0 && wanted(event)).count()
    }
}

pub(crate) fn both_ways(x: HostIx, y: HostIx) -> Vec<(HostIx, HostIx)> {
    vec![(x, y), (y, x)]
}

/// Every kind of fault that both wire modes have, on four hosts for thirty seconds.
pub(crate) fn busy(mut drill: Drill<impl Engine>) -> (u128, Vec<Mark>) {
    drill.seen.digest = Digest::with_trail();
    let lossy = LinkSpec { loss_ppm: 100_000, duplicate_ppm: 50_000, reorder_ppm: 50_000, ..net() };
    let all: Vec<_> = (0..4).flat_map(|from| (0..4).map(move |to| (HostIx(from), HostIx(to)))).collect();
    let mut script: BTreeMap<u64, Vec<Fault>> = BTreeMap::new();
    let mut at = |second, fault| script.entry(second).or_default().push(fault);
    at(2, Fault::Link(all.clone(), lossy));
    at(4, Fault::Block(both_ways(A, B)));
    at(6, Fault::Hold(vec![(B, C)]));
    at(8, Fault::ClockRate { host: C, rate_ppm: 1_200_000 });
    at(9, Fault::Pause(A));
    at(12, Fault::Kill(B));
    at(13, Fault::Resume(A));
    at(14, Fault::Start { host: B, wall_step_us: Some(-5_000_000), addr: None, lose_disk: false });
    at(16, Fault::Release(vec![(B, C)]));
    at(18, Fault::Unblock(both_ways(A, B)));
    at(20, Fault::Stop(C));
    for second in 1..30 {
        drill.until_s(second);
        for fault in script.remove(&second).into_iter().flatten() {
            drill.apply(fault);
        }
        drill.increment(HostIx(usize::try_from(second).unwrap() % 4));
    }
    drill.until_s(30);
    (drill.seen.digest.finish(), drill.seen.digest.trail().to_vec())
}
