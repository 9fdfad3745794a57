//! Engines side by side on one quiet cluster: simulated seconds per real second, digest on, no oracles.
//!
//! The scenario is that of the targets: default configuration, latency 1 to 20 ms, one increment a second.
//! Criterion's throughput, in elements a second, is simulated seconds a real second.

use std::net::SocketAddr;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use firedrill_core::config::{ClusterConfig, Secret};
use firedrill_core::id::{ClusterName, CounterName, NodeId};
use firedrill_core::io::Command;
use firedrill_core::rng::Seed;
use firedrill_core::time::Instant;
use firedrill_sim::digest::Digest;
use firedrill_sim::engine::event::{EventEngine, EventOptions};
use firedrill_sim::engine::{Engine, Flow, Step, Watch};
use firedrill_sim::scenario::model::{Host, HostIx, LinkSpec};

/// Digests and nothing else.
#[derive(Default)]
struct Digesting(Digest);

impl Watch for Digesting {
    fn observe(&mut self, step: &Step<'_>) -> Flow {
        self.0.absorb(step);
        Flow::Continue
    }

    fn down(&mut self, _at: Instant, _host: HostIx, _boot: u32, _graceful: bool) {}
}

fn addr(host: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, u8::try_from(host + 1).expect("at most 64 hosts")], 7946))
}

fn hosts(count: usize) -> Vec<Host> {
    let host = |index: usize| {
        let name = format!("n{index:02}");
        let id = NodeId::new(&name).expect("a valid name");
        let config = ClusterConfig {
            enabled: true,
            secret: Secret::new("a secret for benchmarks"),
            cluster_name: ClusterName::new("firedrill").expect("a valid name"),
            node_id: Some(id.clone()),
            bind_addr: addr(index),
            advertise_addr: None,
            seed_peers: (0..count).filter(|other| *other != index).map(addr).collect(),
            push_interval_ms: 500,
            suspicion_timeout_ms: 2500,
        };
        Host { name, id, config, wall_offset_us: 0, from_start: true }
    };
    (0..count).map(host).collect()
}

const NET: LinkSpec = LinkSpec {
    latency_min: Duration::from_millis(1),
    latency_max: Duration::from_millis(20),
    loss_ppm: 0,
    duplicate_ppm: 0,
    reorder_ppm: 0,
    bandwidth: None,
};

/// Runs a whole simulation from boot.
fn run(mut engine: impl Engine, hosts: usize, seconds: u64) -> u128 {
    let mut watch = Digesting::default();
    let counter = CounterName::new("sightings").expect("a valid name");
    for second in 1..=seconds {
        engine.run_until(Instant::from_micros(second * 1_000_000), &mut watch);
        let host = HostIx(usize::try_from(second).expect("few seconds") % hosts);
        engine.command(host, Command::Increment { counter: counter.clone(), by: 1 }, &mut watch);
    }
    watch.0.finish()
}

fn engines(criterion: &mut Criterion) {
    for (count, fast_seconds, full_seconds) in [(3, 20_000, 2_000), (16, 1_000, 60), (64, 60, 5)] {
        let mut group = criterion.benchmark_group(format!("{count} nodes"));
        group.sample_size(10);
        let hosts = hosts(count);
        let options = EventOptions::default();
        group.throughput(Throughput::Elements(fast_seconds));
        group.bench_function(BenchmarkId::new("event", "fast"), |bench| {
            bench.iter(|| {
                run(EventEngine::fast(&hosts, NET, Seed::from_u64(1), options), count, fast_seconds)
            });
        });
        group.throughput(Throughput::Elements(full_seconds));
        group.bench_function(BenchmarkId::new("event", "full"), |bench| {
            bench.iter(|| {
                run(EventEngine::full(&hosts, NET, Seed::from_u64(1), options), count, full_seconds)
            });
        });
    }
}

criterion_group!(benches, engines);
criterion_main!(benches);
