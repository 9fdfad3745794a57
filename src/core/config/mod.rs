//! The configuration: parsed, then checked, then typed.
//!
//! What [`Config::parse`] and [`Config::from_layers`] return is valid. Everything that is wrong is reported at
//! once, each problem with key, value, bound and line; [`KEYS`] documents every key and drives the rest. The
//! secret is in no message and no `Debug`.
//!
//! Absent: the environment and the file system. The caller reads both and passes text.

mod issuance;
mod keys;
mod nearest;
mod problem;
mod read;
#[cfg(test)]
mod tests;
mod value;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::net::SocketAddr;

pub use issuance::{Fencing, IssuanceConfig};
pub use keys::{ENV_PREFIX, ENV_SEPARATOR, KEYS, Key, Kind, SECTIONS, keys_of};
pub use nearest::nearest;
pub use problem::{Place, Problem, Problems};
pub use read::{Layer, Origin};

use crate::id::{ClusterName, NodeId};
use crate::limits::Timing;
use crate::time::Duration;

/// The shared secret. Never printed, not by `Debug` either, and not serialisable on purpose.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret; the configuration checks its length.
    pub fn new(text: &str) -> Self {
        Self(String::from(text))
    }

    /// The bytes that key the MAC.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// A node's whole configuration, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// `[cluster]`: membership, counters, wire.
    pub cluster: ClusterConfig,
    /// `[server]`: the admin server of the production node.
    pub server: ServerConfig,
    /// `[issuance]`, when it is enabled.
    pub issuance: Option<IssuanceConfig>,
}

impl From<ClusterConfig> for Config {
    /// A cluster node and nothing else.
    fn from(cluster: ClusterConfig) -> Self {
        let server = ServerConfig { bind_addr: SocketAddr::from(([127, 0, 0, 1], 0)) };
        Self { cluster, server, issuance: None }
    }
}

/// `[cluster]`, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterConfig {
    /// Whether the node takes part in a cluster at all.
    pub enabled: bool,
    /// Keys the MAC; at least 16 bytes when enabled, perhaps empty otherwise.
    pub secret: Secret,
    /// Keeps clusters on one network apart.
    pub cluster_name: ClusterName,
    /// This node's stable name. `None` stays `None` here: the node draws `node-` and 32 hex digits from its
    /// seed, so that a run repeats.
    pub node_id: Option<NodeId>,
    /// Where to listen; port 0 takes any free port.
    pub bind_addr: SocketAddr,
    /// What peers dial; the bound address when absent.
    pub advertise_addr: Option<SocketAddr>,
    /// Addresses dialled to make first contact.
    pub seed_peers: Vec<SocketAddr>,
    /// P, in milliseconds, at least 10.
    pub push_interval_ms: u64,
    /// S, in milliseconds, at least 3 P.
    pub suspicion_timeout_ms: u64,
}

impl ClusterConfig {
    /// The times that follow.
    pub const fn timing(&self) -> Timing {
        Timing {
            push: Duration::from_millis(self.push_interval_ms),
            suspicion: Duration::from_millis(self.suspicion_timeout_ms),
        }
    }

    /// What peers dial, once the listener has told its address.
    pub const fn advertised(&self) -> SocketAddr {
        match self.advertise_addr {
            Some(addr) => addr,
            None => self.bind_addr,
        }
    }
}

/// `[server]`, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// Where the admin server listens; port 0 takes any free port.
    pub bind_addr: SocketAddr,
}
