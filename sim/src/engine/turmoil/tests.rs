//! What only a test inside can bring about: a bug in a host.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use firedrill_core::config::{ClusterConfig, Secret};
use firedrill_core::id::{ClusterName, CounterName, NodeId};
use firedrill_core::io::Command;
use firedrill_core::rng::Seed;
use firedrill_core::time::Instant;

use super::{TurmoilEngine, TurmoilOptions};
use crate::engine::{Engine, Flow, Step, Watch};
use crate::scenario::model::{Host, HostIx, LinkSpec};

struct Blind;

impl Watch for Blind {
    fn observe(&mut self, _: &Step<'_>) -> Flow {
        Flow::Continue
    }

    fn down(&mut self, _: Instant, _: HostIx, _: u32, _: bool) {}
}

fn engine() -> TurmoilEngine {
    let hosts: Vec<Host> = (1..=2)
        .map(|number| {
            let name = format!("n{number}");
            let id = NodeId::new(&name).expect("a name");
            let config = ClusterConfig {
                enabled: true,
                secret: Secret::new("a secret for drills"),
                cluster_name: ClusterName::new("firedrill").expect("a name"),
                node_id: Some(id.clone()),
                bind_addr: ([192, 168, 0, number], 7946).into(),
                advertise_addr: None,
                seed_peers: Vec::new(),
                push_interval_ms: 500,
                suspicion_timeout_ms: 2500,
            };
            Host { name, id, config, issuance: None, wall_offset_us: 0, from_start: true }
        })
        .collect();
    let ms = Duration::from_millis(1);
    let net = LinkSpec {
        latency_min: ms,
        latency_max: ms,
        loss_ppm: 0,
        duplicate_ppm: 0,
        reorder_ppm: 0,
        bandwidth: None,
    };
    TurmoilEngine::new(&hosts, net, Seed::from_u64(1), TurmoilOptions::default())
}

fn message(outcome: std::thread::Result<()>) -> String {
    let payload = outcome.expect_err("the panic surfaces");
    let text = payload.downcast_ref::<String>().cloned();
    text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

#[test]
fn a_panic_in_a_host_surfaces_with_its_message() {
    let mut engine = engine();
    engine.run_until(Instant::from_micros(1_000_000), &mut Blind);
    engine.fabric.lock().bomb = Some(HostIx(1));
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        engine.run_until(Instant::from_micros(3_000_000), &mut Blind);
    }));
    assert!(message(outcome).contains("a bug on purpose"));
}

#[test]
fn a_panic_in_a_command_surfaces_with_its_message() {
    let mut engine = engine();
    engine.run_until(Instant::from_micros(1_000_000), &mut Blind);
    engine.fabric.lock().bomb = Some(HostIx(1));
    let counter = CounterName::new("sightings").expect("a name");
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        engine.command(HostIx(1), Command::Increment { counter, by: 1 }, &mut Blind);
    }));
    assert!(message(outcome).contains("a bug on purpose"));
}
