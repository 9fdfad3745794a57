//! A cluster under the turmoil engine, and a watch that remembers.

#![allow(dead_code, reason = "not every test file uses everything")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::net::SocketAddr;
use std::time::Duration;

use firedrill_core::config::{ClusterConfig, Secret};
use firedrill_core::id::{ClusterName, CounterName, Incarnation, NodeId};
use firedrill_core::io::{Command, Event, Reply};
use firedrill_core::rng::Seed;
use firedrill_core::time::{Instant, Now, WallTime};
use firedrill_sim::digest::Digest;
use firedrill_sim::engine::event::{EventEngine, EventOptions, FullNode};
use firedrill_sim::engine::turmoil::{TurmoilEngine, TurmoilOptions};
use firedrill_sim::engine::{Cause, Engine, Fault, FaultId, Flow, Step, Watch};
use firedrill_sim::scenario::model::{Host, HostIx, LinkSpec};

pub(crate) const A: HostIx = HostIx(0);
pub(crate) const B: HostIx = HostIx(1);
pub(crate) const C: HostIx = HostIx(2);

pub(crate) fn addr(host: usize) -> SocketAddr {
    SocketAddr::from(([192, 168, 0, u8::try_from(host).unwrap() + 1], 7946))
}

fn hosts(count: usize) -> Vec<Host> {
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

pub(crate) fn both_ways(x: HostIx, y: HostIx) -> Vec<(HostIx, HostIx)> {
    vec![(x, y), (y, x)]
}

/// Remembers what was seen.
pub(crate) struct Seen {
    pub(crate) digest: Digest,
    pub(crate) boots: Vec<(usize, u32, Incarnation)>,
    pub(crate) events: Vec<(u64, usize, Event)>,
    pub(crate) ended: Vec<(usize, u32, bool)>,
    pub(crate) last_now: Vec<Now>,
    pub(crate) in_order: bool,
    /// What to answer.
    pub(crate) flow: Flow,
    handled: Vec<usize>,
    accepted: Vec<usize>,
    inbound: Vec<usize>,
    last_at: Instant,
}

impl Seen {
    pub(crate) fn handled(&self, host: HostIx) -> usize {
        self.handled[host.0]
    }

    /// Frames that passed all checks.
    pub(crate) fn accepted(&self, host: HostIx) -> usize {
        self.accepted[host.0]
    }

    /// Inbound connections that the host holds.
    pub(crate) fn inbound(&self, host: HostIx) -> usize {
        self.inbound[host.0]
    }
}

impl Watch for Seen {
    fn observe(&mut self, step: &Step<'_>) -> Flow {
        self.digest.absorb(step);
        if step.cause == Cause::Boot {
            self.boots.push((step.host.0, step.boot, step.node.boot_incarnation()));
        }
        let at_ms = step.at.as_micros() / 1000;
        let accepted = step.events.iter().filter(|event| matches!(event, Event::Accepted { .. })).count();
        self.accepted[step.host.0] += accepted;
        self.inbound[step.host.0] = step.links.inbound;
        let told = step.events.iter().filter(|event| !matches!(event, Event::Accepted { .. }));
        self.events.extend(told.map(|event| (at_ms, step.host.0, event.clone())));
        self.in_order &= step.at >= self.last_at;
        self.last_at = step.at;
        self.last_now[step.host.0] = step.now;
        self.handled[step.host.0] += 1;
        assert!(step.alarms.is_empty());
        self.flow
    }

    fn down(&mut self, _at: Instant, host: HostIx, boot: u32, graceful: bool) {
        self.ended.push((host.0, boot, graceful));
    }
}

/// One cluster under one watch.
pub(crate) struct Drill<E = TurmoilEngine> {
    pub(crate) engine: E,
    pub(crate) seen: Seen,
}

impl Drill {
    pub(crate) fn new(count: usize, seed: u64) -> Self {
        Self::with(count, seed, 1, |_| {})
    }

    pub(crate) fn with(count: usize, seed: u64, tick_ms: u64, change: impl FnOnce(&mut [Host])) -> Self {
        let mut hosts = hosts(count);
        change(&mut hosts);
        let options = TurmoilOptions { tick_ms, keep_frames: true, ..TurmoilOptions::default() };
        Self::over(TurmoilEngine::new(&hosts, net(), Seed::from_u64(seed), options), count)
    }
}

impl Drill<EventEngine<FullNode>> {
    /// The same cluster on the event engine, with bytes.
    pub(crate) fn event(count: usize, seed: u64) -> Self {
        let options = EventOptions { keep_frames: true, ..EventOptions::default() };
        Self::over(EventEngine::full(&hosts(count), net(), Seed::from_u64(seed), options), count)
    }
}

impl<E: Engine> Drill<E> {
    fn over(engine: E, count: usize) -> Self {
        let never = Now { instant: Instant::ZERO, wall: WallTime::default() };
        let seen = Seen {
            digest: Digest::with_trail(),
            boots: Vec::new(),
            events: Vec::new(),
            ended: Vec::new(),
            last_now: vec![never; count],
            in_order: true,
            flow: Flow::Continue,
            handled: vec![0; count],
            accepted: vec![0; count],
            inbound: vec![0; count],
            last_at: Instant::ZERO,
        };
        Self { engine, seen }
    }

    pub(crate) fn until_ms(&mut self, ms: u64) -> Flow {
        self.engine.run_until(Instant::from_micros(ms * 1000), &mut self.seen)
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

    pub(crate) fn id(&self, host: HostIx) -> NodeId {
        NodeId::new(&format!("n{:02}", host.0)).unwrap()
    }

    /// The address at which `host` knows `of`.
    pub(crate) fn addr_of(&self, host: HostIx, of: HostIx) -> String {
        let mut addr = String::new();
        self.engine.with_node(host, &mut |node| {
            addr = node.document().members[&self.id(of)].addr.as_str().to_owned();
        });
        addr
    }

    pub(crate) fn views(&self, hosts: usize) -> Vec<usize> {
        (0..hosts).map(|host| self.in_view(HostIx(host))).collect()
    }

    pub(crate) fn happened(&self, host: HostIx, wanted: impl Fn(&Event) -> bool) -> usize {
        self.seen.events.iter().filter(|(_, seen_on, event)| *seen_on == host.0 && wanted(event)).count()
    }
}
