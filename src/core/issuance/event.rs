//! What happens in the issuance of a node, for logs, oracles and subscribers.

use serde::{Deserialize, Serialize};

use super::election::Decision;
use super::window::{Epoch, Window, Z};
use crate::id::NodeId;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum IssuanceEvent {
    /// A row was stamped and is on its way to the disk.
    Sealing {
        /// For which window.
        window: Window,
        /// How many windows it covers.
        elapsed: u64,
        /// At which epoch; none on the plain path.
        epoch: Option<Epoch>,
    },
    /// A row of this node is durable.
    Sealed {
        /// For which window.
        window: Window,
        /// Where it resumed from.
        from_window: Window,
        /// How many windows it covers.
        elapsed: u64,
        /// At which epoch; none on the plain path.
        epoch: Option<Epoch>,
        /// Another row had won the window: this one does not count.
        duplicate: bool,
    },
    /// The disk refused a row of this node; nothing was sealed.
    SealRefused {
        /// For which window.
        window: Window,
    },
    /// The disk refuses writes. Told once until it takes one again.
    DiskRefused {},
    /// A message was dropped: no document had told of its sender's boot yet.
    Early {
        /// Whose.
        from: NodeId,
    },
    /// Rows came from a peer.
    Replicated {
        /// From whom.
        from: NodeId,
        /// How many that were new.
        rows: u64,
    },
    /// Rows came from a peer that contradict those held under the same number.
    RowsConflict {
        /// From whom.
        from: NodeId,
        /// How many.
        rows: u64,
    },
    /// The spine names another lease than before.
    LeaseMoved {
        /// At which epoch.
        epoch: Epoch,
        /// Who holds it.
        holder: NodeId,
    },
    /// The tip has not risen for more than `silence_z`.
    TipSilent {},
    /// An election decided otherwise than the one before.
    Decided {
        /// What.
        decision: Decision,
    },
    /// This node was elected and seals at this epoch.
    Promoted {
        /// Which.
        epoch: Epoch,
    },
    /// A promotion ended before it was sealed, since this node could not seal.
    PromotionLapsed {
        /// Which.
        epoch: Epoch,
    },
    /// This node seals no more: another holds the lease.
    Demoted {
        /// Who.
        holder: NodeId,
        /// At which epoch.
        epoch: Epoch,
    },
    /// A majority of the electorate supports this node.
    FenceHeld {
        /// At which epoch.
        epoch: Epoch,
    },
    /// It no longer does.
    FenceLost {},
    /// The tip is so far ahead of this node's wall clock that it could not seal for longer than `silence_z`.
    TipAheadOfClock {
        /// How long it would have to wait.
        wait_z: Z,
    },
    /// This node's wall clock is more than `silence_z` ahead of the others'.
    ClockAhead {
        /// By how much, in microseconds.
        by_us: u64,
    },
    /// This node's wall clock shows a time before the genesis.
    ClockBeforeGenesis {},
    /// An operator stopped this node from sealing.
    Paused {},
    /// An operator let it go on.
    Resumed {},
}
