//! When the nodes came to agree: the figure behind "converged after 0.8 s".
//!
//! Agreement here is cheap and exact to the event: every running node's view is the set of running ids, and
//! every node reads the same counters. Whether a run may end is not decided here but by the convergence oracle.

use std::collections::BTreeSet;

use firedrill_core::id::NodeId;
use firedrill_core::node::Node;
use firedrill_core::time::Instant;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::scenario::model::{HostIx, Scenario};

/// What one running node believes, as two sums of hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Belief {
    view: u64,
    view_version: u64,
    counters: u64,
}

#[derive(Debug)]
pub(super) struct Agreement {
    ids: Vec<NodeId>,
    beliefs: Vec<Option<Belief>>,
    /// The sum of hashes that the running ids give.
    expected: u64,
    views_agree: bool,
    /// Since when views agree, counted from the first moment at which counters did too.
    since: Option<Instant>,
}

impl Agreement {
    pub(super) fn new(scenario: &Scenario) -> Self {
        Self {
            ids: scenario.hosts.iter().map(|host| host.id.clone()).collect(),
            beliefs: vec![None; scenario.hosts.len()],
            expected: 0,
            views_agree: false,
            since: None,
        }
    }

    /// A node's view or document changed. Tells whether all views have just come to agree.
    pub(super) fn changed(&mut self, host: HostIx, node: &Node, at: Instant) -> bool {
        let before = self.beliefs[host.0];
        let belief = (!node.has_departed()).then(|| belief(node, before));
        let joins_or_leaves = belief.is_some() != self.beliefs[host.0].is_some();
        self.beliefs[host.0] = belief;
        if joins_or_leaves {
            self.expect();
        }
        self.judge(at)
    }

    /// A host went down. Tells whether all views have just come to agree.
    pub(super) fn down(&mut self, host: HostIx, at: Instant) -> bool {
        self.beliefs[host.0] = None;
        self.expect();
        self.judge(at)
    }

    /// A fault began or ended: agreement is counted anew.
    pub(super) fn disturbed(&mut self, at: Instant) {
        self.since = None;
        self.judge(at);
    }

    /// Since when the nodes agree for good, if they do.
    pub(super) const fn since(&self) -> Option<Instant> {
        self.since
    }

    /// The ids that run.
    pub(super) fn running(&self) -> BTreeSet<&NodeId> {
        self.ids.iter().zip(&self.beliefs).filter(|(_, belief)| belief.is_some()).map(|(id, _)| id).collect()
    }

    fn expect(&mut self) {
        self.expected = self.running().into_iter().map(hash).fold(0, u64::wrapping_add);
    }

    fn judge(&mut self, at: Instant) -> bool {
        let mut running = self.beliefs.iter().flatten();
        let first = running.next().copied();
        let views =
            first.is_some() && self.beliefs.iter().flatten().all(|belief| belief.view == self.expected);
        let counters = running.all(|belief| Some(belief.counters) == first.map(|first| first.counters));
        let came = views && !self.views_agree;
        self.views_agree = views;
        if !views {
            self.since = None;
        } else if counters && self.since.is_none() {
            self.since = Some(at);
        }
        came
    }
}

/// What a node believes; `before` is what it believed earlier in this boot.
fn belief(node: &Node, before: Option<Belief>) -> Belief {
    let view_version = node.view_version();
    let view = match before {
        Some(before) if before.view_version == view_version => before.view,
        Some(_) | None => {
            node.peers_in_view().map(|(id, _)| hash(id)).fold(hash(node.id()), u64::wrapping_add)
        }
    };
    let counters = node.document().counters.keys().map(|name| {
        // A counter that reads 0 is as good as one that nobody knows yet.
        let total = node.counter(name);
        if total == 0 { 0 } else { xxh3_64_with_seed(name.as_str().as_bytes(), total) }
    });
    Belief { view, view_version, counters: counters.fold(0, u64::wrapping_add) }
}

fn hash(id: &NodeId) -> u64 {
    xxh3_64(id.as_str().as_bytes())
}
