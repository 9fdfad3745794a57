//! The wire: what a frame is, byte for byte.
//!
//! [`frame`] cuts a byte stream into bodies, [`envelope`] authenticates a body, [`message`] is what it says;
//! The receive path runs over three layers: step 1 in [`frame`], steps 2 to 4 in [`envelope`], steps 5 to 8 in the
//! node.
//!
//! Spec: docs/protocol.md, Wire and envelope; Receive path.

pub mod envelope;
pub mod frame;
pub mod message;

use serde::{Deserialize, Serialize};

use crate::id::{Incarnation, NodeId, Seq};

/// The authenticated head of a frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Who sent it.
    pub sender: NodeId,
    /// The sender's incarnation when it was sent.
    pub incarnation: Incarnation,
    /// Its number within that incarnation.
    pub seq: Seq,
}

/// Which check of the receive path rejected a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reject {
    /// Step 1: a length of 0 or above the cap. The connection closes.
    Oversize,
    /// Step 2: not an envelope.
    Malformed,
    /// Step 3: a protocol version other than 1.
    Version,
    /// Step 3: a key this node does not hold.
    KeyId,
    /// Step 3: another cluster's frame.
    Cluster,
    /// Step 4: not signed with the shared secret.
    Mac,
    /// Step 5: our own id.
    SelfOrigin,
    /// Step 6: at or below the sender's watermark.
    Replay,
    /// Step 7: an unknown or broken message.
    Payload,
}

impl Reject {
    /// All reasons, in the order of the receive path.
    pub const ALL: [Self; 9] = [
        Self::Oversize,
        Self::Malformed,
        Self::Version,
        Self::KeyId,
        Self::Cluster,
        Self::Mac,
        Self::SelfOrigin,
        Self::Replay,
        Self::Payload,
    ];

    /// The reason as a metric label.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Oversize => "oversize",
            Self::Malformed => "malformed",
            Self::Version => "version",
            Self::KeyId => "key_id",
            Self::Cluster => "cluster",
            Self::Mac => "mac",
            Self::SelfOrigin => "self_origin",
            Self::Replay => "replay",
            Self::Payload => "payload",
        }
    }

    /// Whether the refusal is charged to the connection: anybody who reaches the port could have caused it.
    pub const fn is_charged(self) -> bool {
        (self as u8) <= (Self::Mac as u8)
    }
}
