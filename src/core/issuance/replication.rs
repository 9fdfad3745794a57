//! Pulling rows from every live peer: whom to ask, after which cursors, and who has told everything.
//!
//! Each peer is asked once per pull interval, and again at once while it has more. The cursors of a request cover
//! a range of origins, so that they fit a frame however many there are; a pull is complete when the last range
//! has no more rows.
//!
//! Absent: rows; [`super::spine`] takes them and cuts pages.
//!
//! Spec: docs/issuance.md, Replication.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::row::Origin;
use crate::id::NodeId;
use crate::time::{Duration, Instant};

/// The pulls of one node.
#[derive(Debug, Clone)]
pub(crate) struct Pulls {
    every: Duration,
    next_at: Instant,
    next_round: u64,
    peers: BTreeMap<NodeId, Pull>,
}

/// What one peer was asked.
#[derive(Debug, Clone, Default)]
struct Pull {
    /// The request that an answer is awaited to.
    asked: Option<u64>,
    /// The first origin of the range asked for; `None` is the lowest.
    from: Option<Origin>,
    /// The first origin after the range; `None` when it reached the last.
    until: Option<Origin>,
    /// It has told everything it had, once since this boot or since the node was held.
    complete: bool,
}

/// A request to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) peer: NodeId,
    pub(crate) round: u64,
    /// Origins from here on; `None` from the lowest.
    pub(crate) from: Option<Origin>,
}

impl Pulls {
    /// Pulls `every` interval, the first time at once. `round` begins the numbers of requests: random, so that no
    /// answer to an earlier boot passes for one to this.
    pub(crate) const fn new(now: Instant, every: Duration, round: u64) -> Self {
        Self { every, next_at: now, next_round: round, peers: BTreeMap::new() }
    }

    /// When the next pull is due.
    pub(crate) const fn next_deadline(&self) -> Instant {
        self.next_at
    }

    /// Asks every live peer when that is due, from the lowest origin on.
    pub(crate) fn due<'a>(&mut self, now: Instant, live: impl Iterator<Item = &'a NodeId>) -> Vec<Ask> {
        if now < self.next_at {
            return Vec::new();
        }
        self.next_at = now.after(self.every);
        live.map(|peer| self.ask(peer, None)).collect()
    }

    /// Nobody has told everything any more, and all are asked at once.
    pub(crate) fn start_over(&mut self, now: Instant) {
        self.next_at = now;
        self.peers.clear();
    }

    /// Asks a peer that came into view, without waiting for the next pull.
    pub(crate) fn joined(&mut self, peer: &NodeId) -> Ask {
        self.ask(peer, None)
    }

    /// The cursors of the request to `peer` ended before this origin.
    pub(crate) fn cut(&mut self, peer: &NodeId, until: Option<Origin>) {
        if let Some(pull) = self.peers.get_mut(peer) {
            pull.until = until;
        }
    }

    /// Whether the answer to this request is awaited.
    pub(crate) fn awaits(&self, peer: &NodeId, round: u64) -> bool {
        self.peers.get(peer).is_some_and(|pull| pull.asked == Some(round))
    }

    /// Takes note of an awaited answer, with `more` to come or not; what to ask next, unless the peer has told
    /// everything or there is no room for more now.
    pub(crate) fn answered(&mut self, peer: &NodeId, more: bool, room: bool) -> Option<Ask> {
        let pull = self.peers.get_mut(peer)?;
        pull.asked = None;
        let from = if more { pull.from.clone() } else { pull.until.clone() };
        if !more && from.is_none() {
            pull.complete = true;
            return None;
        }
        room.then(|| self.ask(peer, from))
    }

    /// Whether every one of the live peers, at least one, has told everything since [`Pulls::new`] or
    /// [`Pulls::start_over`].
    pub(crate) fn complete<'a>(&self, mut live: impl Iterator<Item = &'a NodeId>) -> bool {
        let complete = |peer: &NodeId| self.peers.get(peer).is_some_and(|pull| pull.complete);
        live.next().is_some_and(complete) && live.all(complete)
    }

    /// Forgets a peer that is gone.
    pub(crate) fn forget(&mut self, peer: &NodeId) {
        self.peers.remove(peer);
    }

    fn ask(&mut self, peer: &NodeId, from: Option<Origin>) -> Ask {
        let round = self.next_round;
        self.next_round += 1;
        let pull = self.peers.entry(peer.clone()).or_default();
        pull.asked = Some(round);
        pull.from.clone_from(&from);
        pull.until = None;
        Ask { peer: peer.clone(), round, from }
    }
}
