//! What the endpoint's tests share: a configuration, frames from the vectors, and a driver in a few lines.

#![allow(dead_code, reason = "every test binary compiles this module and uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use bytes::Bytes;
use firedrill_core::config::{ClusterConfig, Secret};
use firedrill_core::endpoint::Endpoint;
use firedrill_core::id::{ClusterName, NodeId};
use firedrill_core::io::{EndpointInput, EndpointOutput, Event, InboundId, Outbox};
use firedrill_core::node::Recovered;
use firedrill_core::rng::Seed;
use firedrill_core::time::{Instant, Now, WallTime};

/// The secret and the cluster of the vectors.
pub(crate) const SECRET: &str = "a-shared-cluster-secret-value-32";
pub(crate) const CLUSTER: &str = "autumn";

/// The default configuration, on a port of the loopback.
pub(crate) fn config(id: &str, port: u16, seeds: &[u16]) -> ClusterConfig {
    let addr = |port: u16| std::net::SocketAddr::from(([127, 0, 0, 1], port));
    ClusterConfig {
        enabled: true,
        secret: Secret::new(SECRET),
        cluster_name: ClusterName::new(CLUSTER).unwrap(),
        node_id: Some(NodeId::new(id).unwrap()),
        bind_addr: addr(port),
        advertise_addr: None,
        seed_peers: seeds.iter().map(|port| addr(*port)).collect(),
        push_interval_ms: 500,
        suspicion_timeout_ms: 2500,
    }
}

/// A moment `micros` after the start, on a wall clock that runs along.
pub(crate) fn now(micros: u64) -> Now {
    let wall = WallTime::from_unix_ms(1_765_430_000_000).offset_micros(i64::try_from(micros).unwrap());
    Now { instant: Instant::from_micros(micros), wall }
}

/// One endpoint and its clock.
pub(crate) struct Bench {
    pub(crate) endpoint: Endpoint,
    pub(crate) micros: u64,
    out: Outbox<EndpointOutput>,
}

impl Bench {
    pub(crate) fn new(config: &ClusterConfig) -> Self {
        let endpoint = Endpoint::new(&config.clone().into(), Seed::from_u64(1), Recovered::default(), now(0));
        Self { endpoint, micros: 0, out: Outbox::new() }
    }

    pub(crate) fn input(&mut self, input: EndpointInput) -> Vec<EndpointOutput> {
        self.endpoint.handle(now(self.micros), input, &mut self.out);
        self.out.drain().collect()
    }

    pub(crate) fn accept(&mut self, inbound: u64) -> Vec<EndpointOutput> {
        self.input(EndpointInput::Accepted { inbound: InboundId(inbound) })
    }

    pub(crate) fn receive(&mut self, inbound: u64, bytes: &[u8]) -> Vec<EndpointOutput> {
        let bytes = Bytes::copy_from_slice(bytes);
        self.input(EndpointInput::Received { inbound: InboundId(inbound), bytes })
    }

    /// Lets time pass until the next wake-up and handles it; `None` when there is none.
    pub(crate) fn wake(&mut self) -> Option<Vec<EndpointOutput>> {
        let (at, _) = self.endpoint.next_wake()?;
        self.micros = self.micros.max(at.as_micros());
        Some(self.input(EndpointInput::Wake))
    }

    /// Frames rejected so far, for any reason.
    pub(crate) fn rejected(&self) -> u64 {
        self.endpoint.metrics().frames_rejected.iter().sum()
    }
}

/// The verdicts on frames among `outputs`, as the vectors name them.
pub(crate) fn verdicts(outputs: &[EndpointOutput]) -> Vec<&'static str> {
    let verdict = |output: &EndpointOutput| {
        if let EndpointOutput::Event(Event::Accepted { .. }) = output {
            Some("accept")
        } else if let EndpointOutput::Event(Event::Rejected { reason, .. }) = output {
            Some(reason.name())
        } else {
            None
        }
    };
    outputs.iter().filter_map(verdict).collect()
}

/// A body behind its length.
pub(crate) fn frame(body: &str) -> Vec<u8> {
    let mut frame = u32::try_from(body.len()).unwrap().to_be_bytes().to_vec();
    frame.extend_from_slice(body.as_bytes());
    frame
}

/// One entry of `testdata/frames.json`.
#[derive(serde::Deserialize)]
pub(crate) struct Vector {
    pub(crate) name: String,
    pub(crate) verdict: String,
    pub(crate) body: String,
}

pub(crate) fn vectors() -> Vec<Vector> {
    #[derive(serde::Deserialize)]
    struct File {
        frames: Vec<Vector>,
    }
    let file: File = serde_json::from_str(include_str!("../../testdata/frames.json")).unwrap();
    file.frames
}
