//! What the tests on real sockets share: short intervals, and waiting with a deadline instead of sleeping.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::net::SocketAddr;
use std::time::Duration;

use firedrill_core::config::{ClusterConfig, Secret};
use firedrill_core::id::{ClusterName, NodeId};
use firedrill_runtime::{Cluster, ClusterHandle};
use tokio::time::Instant;

/// P of the tests.
pub(crate) const PUSH: Duration = Duration::from_millis(50);
/// S of the tests.
pub(crate) const SUSPICION: Duration = Duration::from_millis(250);
/// Long enough for a busy machine; whoever waits for it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// A node on a free loopback port with short intervals.
pub(crate) fn config(node_id: &str, seed_peers: &[SocketAddr]) -> ClusterConfig {
    ClusterConfig {
        enabled: true,
        secret: Secret::new("a secret of the tests"),
        cluster_name: ClusterName::new("test").unwrap(),
        node_id: Some(NodeId::new(node_id).unwrap()),
        bind_addr: "127.0.0.1:0".parse().unwrap(),
        advertise_addr: None,
        seed_peers: seed_peers.to_vec(),
        push_interval_ms: 50,
        suspicion_timeout_ms: 250,
    }
}

pub(crate) async fn start(node_id: &str, seed_peers: &[SocketAddr]) -> Cluster {
    Cluster::start(&config(node_id, seed_peers).into()).await.unwrap()
}

/// Polls until `holds`, and says how long that took; panics with `what` when patience runs out.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) -> Duration {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "waited {PATIENCE:?} in vain: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    start.elapsed()
}

/// The ids in a node's view, itself first.
pub(crate) fn ids(node: &ClusterHandle) -> Vec<String> {
    node.members().iter().map(|member| member.id.to_string()).collect()
}
