//! Bytes in, bytes out: connections, framing, MACs, limits and queues around a [`Node`].

use crate::config::ClusterConfig;
use crate::guards::Guards;
use crate::io::{EndpointInput, EndpointOutput, Outbox, Wake};
use crate::metrics::Metrics;
use crate::node::{Node, NodeView, Recovered};
use crate::rng::Seed;
use crate::time::{Instant, Now};

/// A node with its connections.
#[derive(Debug)]
pub struct Endpoint {}

impl Endpoint {
    /// An endpoint that boots at `now`. `config.advertised()` must be the address that peers dial.
    pub fn new(_config: &ClusterConfig, _seed: Seed, _recovered: Recovered, _now: Now) -> Self {
        unimplemented!()
    }
    /// As [`Endpoint::new`], with guards turned off: for simulations alone.
    pub fn with_guards(
        _config: &ClusterConfig,
        _seed: Seed,
        _recovered: Recovered,
        _now: Now,
        _guards: Guards,
    ) -> Self {
        unimplemented!()
    }
    /// Takes one input and pushes what follows from it, due timers included.
    pub fn handle(&mut self, _now: Now, _input: EndpointInput, _out: &mut Outbox<EndpointOutput>) {
        unimplemented!()
    }
    /// When to call again at the latest, and why.
    pub fn next_wake(&self) -> Option<(Instant, Wake)> {
        unimplemented!()
    }
    /// What the node believes.
    pub fn view(&self) -> NodeView {
        unimplemented!()
    }
    /// The node inside, to look at.
    pub fn node(&self) -> &Node {
        unimplemented!()
    }
    /// The counts of this boot: the node's, with the refusals and drops of this layer added.
    pub fn metrics(&self) -> Metrics {
        unimplemented!()
    }
    /// Inbound connections held, and frames in the longest send queue.
    pub fn sizes(&self) -> LinkSizes {
        unimplemented!()
    }
}

/// How full the connection tables are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkSizes {
    /// Inbound connections held.
    pub inbound: usize,
    /// Outbound links.
    pub links: usize,
    /// Frames in the longest send queue.
    pub queue_longest: usize,
}
