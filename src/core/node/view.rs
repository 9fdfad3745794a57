//! What a node believes, as plain data for people, services and oracles.
//!
//! Absent: anything a decision is made from. A view is a copy; the node never reads it back.
//!
//! Spec: docs/protocol.md, View; Health; decision 9.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::Node;
use crate::counter;
use crate::id::{ClusterName, CounterName, Incarnation, NodeId, Seq};
use crate::issuance::machine::Issuance;
use crate::metrics::Metrics;
use crate::time::Instant;
use crate::wire::message::{Addr, Document};

/// A member's status in the local view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberStatus {
    /// Heard within two push intervals.
    Alive,
    /// Silent for longer; a warning, not an eviction.
    Suspect,
}

/// A member in the local view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberView {
    /// Its name.
    pub id: NodeId,
    /// Where peers dial it.
    pub addr: Addr,
    /// Alive or suspect; who is down is not in the view.
    pub status: MemberStatus,
    /// Its boot.
    pub incarnation: Incarnation,
}

/// What a node believes, at its last handled instant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeView {
    /// This node.
    pub node_id: NodeId,
    /// Its cluster.
    pub cluster: ClusterName,
    /// What peers dial.
    pub local_addr: SocketAddr,
    /// Its own incarnation.
    pub incarnation: Incarnation,
    /// Itself first, then the others by id.
    pub members: Vec<MemberView>,
    /// Every counter's total.
    pub counters: BTreeMap<CounterName, u64>,
}

/// How many entries each table holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TableSizes {
    /// Member records, own included.
    pub members: usize,
    /// Replay watermarks.
    pub watermarks: usize,
    /// Reap notes.
    pub reap_notes: usize,
    /// Counter names.
    pub counters: usize,
}

/// Looking in.
impl Node {
    /// What the node believes, at its last handled instant.
    pub fn view(&self) -> NodeView {
        let document = self.document();
        let own = MemberView {
            id: self.id().clone(),
            addr: Addr::from(self.advertised),
            status: MemberStatus::Alive,
            incarnation: self.incarnation(),
        };
        let others = self.peers_in_view().filter_map(|(id, status)| {
            let record = document.members.get(id)?;
            Some(MemberView {
                id: id.clone(),
                addr: record.addr.clone(),
                status,
                incarnation: record.incarnation,
            })
        });
        NodeView {
            node_id: self.id().clone(),
            cluster: self.cluster.clone(),
            local_addr: self.advertised,
            incarnation: self.incarnation(),
            members: core::iter::once(own).chain(others).collect(),
            counters: document.counters.keys().map(|name| (name.clone(), self.counter(name))).collect(),
        }
    }

    /// The issuance, on a node that has one.
    pub fn issuance(&self) -> Option<&Issuance> {
        self.issuance.as_deref()
    }

    /// This node's id.
    pub fn id(&self) -> &NodeId {
        self.membership.id()
    }

    /// The present incarnation.
    pub fn incarnation(&self) -> Incarnation {
        self.membership.incarnation()
    }

    /// The incarnation that this boot started with.
    pub fn boot_incarnation(&self) -> Incarnation {
        self.membership.boot_incarnation()
    }

    /// The incarnation of the cell that increments go to now.
    pub fn cell_incarnation(&self) -> Incarnation {
        self.membership.cell_incarnation()
    }

    /// The number that the next frame in the present incarnation takes.
    pub fn next_seq(&self) -> Seq {
        self.next_seq
    }

    /// The cluster it belongs to.
    pub fn cluster(&self) -> &ClusterName {
        &self.cluster
    }

    /// How many payload texts it has read.
    pub fn payloads_read(&self) -> u64 {
        self.recent.read()
    }

    /// The replicated document as this node holds it.
    pub fn document(&self) -> &Document {
        self.replica.get()
    }

    /// Rises with every change of the document.
    pub fn document_version(&self) -> u64 {
        self.replica.version()
    }

    /// The members in view other than this node, by id, without building a [`NodeView`].
    pub fn peers_in_view(&self) -> impl Iterator<Item = (&NodeId, MemberStatus)> {
        let status = |suspect| if suspect { MemberStatus::Suspect } else { MemberStatus::Alive };
        self.membership.in_view().map(move |(id, suspect)| (id, status(suspect)))
    }

    /// Rises with every change of who is in view, and of a record there.
    pub fn view_version(&self) -> u64 {
        self.membership.view_version()
    }

    /// The saturating sum of a counter's cells; 0 for an unknown one.
    pub fn counter(&self, name: &CounterName) -> u64 {
        counter::total(&self.document().counters, name)
    }

    /// Entries per table.
    pub fn sizes(&self) -> TableSizes {
        TableSizes {
            members: self.document().members.len(),
            watermarks: self.watermarks.len(),
            reap_notes: self.membership.reap_notes(),
            counters: self.document().counters.len(),
        }
    }

    /// The counts of this boot.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// When a frame was last heard from whoever lives at `addr` (decision 9), if it was in this boot.
    pub fn heard_at(&self, addr: SocketAddr) -> Option<Instant> {
        self.membership.heard_at(self.document(), addr)
    }

    /// The incarnation at or below which records of a pruned member are refused, while its reap note lasts.
    pub fn reap_note(&self, id: &NodeId) -> Option<Incarnation> {
        self.membership.noted(id)
    }

    /// The incarnation and number at or below which a sender's frames are refused as replays.
    pub fn watermark(&self, sender: &NodeId) -> Option<(Incarnation, Seq)> {
        self.watermarks.of(sender)
    }

    /// Whether the node has departed.
    pub fn has_departed(&self) -> bool {
        self.departed
    }
}
