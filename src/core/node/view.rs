//! What a node believes, as plain data for people, services and oracles.
//!
//! Absent: anything a decision is made from. A view is a copy; the node never reads it back.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::id::{ClusterName, CounterName, Incarnation, NodeId};
use crate::wire::message::Addr;

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
