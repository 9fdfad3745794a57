//! Every key of the configuration: its type, default, rule and advice, in one table.
//!
//! The reader takes its names, the suggestions for unknown keys their candidates and a JSON schema or a manual
//! its text from here, so a key cannot exist without being documented.

use alloc::format;
use alloc::string::String;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::issuance::keys as issuance;
use super::{ClusterConfig, Config, Secret, ServerConfig};
use crate::id::ClusterName;
use crate::limits::PUSH_INTERVAL_MS_MIN;

/// What all environment overrides begin with.
pub const ENV_PREFIX: &str = "FIREDRILL_";
/// What stands between section and key in the name of an environment override.
pub const ENV_SEPARATOR: &str = "__";

/// One key of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// The table it stands in: `cluster`, `server` or `issuance`.
    pub section: &'static str,
    /// Its name within the section.
    pub name: &'static str,
    /// What values it takes.
    pub kind: Kind,
    /// The value it has when absent, as TOML. `None`: absent means absent; `doc` says what happens then.
    pub default: Option<&'static str>,
    /// The rule in a line, for a table.
    pub rule: &'static str,
    /// Purpose, bounds, relation to other keys, and how to choose.
    pub doc: &'static str,
}

impl Key {
    /// `section.name`, as messages call it.
    pub fn path(&self) -> String {
        format!("{}.{}", self.section, self.name)
    }

    /// The environment variable that overrides it.
    pub fn env(&self) -> String {
        let section = self.section.to_ascii_uppercase();
        format!("{ENV_PREFIX}{section}{ENV_SEPARATOR}{}", self.name.to_ascii_uppercase())
    }
}

/// What values a key takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Bool,
    /// A whole number from `min` to the largest `u64`.
    U64 {
        /// The least allowed.
        min: u64,
    },
    /// A string that is never printed.
    Secret,
    /// A string of 1 to 64 bytes, not blank, without `#`.
    Name,
    /// An IP literal and port to listen at; wildcard and port 0 are allowed.
    ListenAddr,
    /// An IP literal and port that others dial; neither wildcard nor port 0.
    DialAddr,
    /// A list of [`Kind::DialAddr`]; comma-separated in the environment.
    DialAddrs,
    /// A list of [`Kind::Name`], none of them twice; comma-separated in the environment.
    Names,
    /// A positive decimal number as a string, with at most 12 places.
    Decimal,
    /// One of these words.
    Choice(&'static [&'static str]),
}

impl Kind {
    /// The type in a word or two, for a table.
    pub const fn type_name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::U64 { .. } => "u64",
            Self::Secret => "redacted string",
            Self::Name | Self::Choice(_) => "string",
            Self::Decimal => "decimal string",
            Self::ListenAddr | Self::DialAddr => "socket address",
            Self::DialAddrs => "list of socket addresses",
            Self::Names => "list of strings",
        }
    }
}

pub(super) const ENABLED: Key = Key {
    section: "cluster",
    name: "enabled",
    kind: Kind::Bool,
    default: Some("false"),
    rule: "true or false",
    doc: "Whether this node takes part in a cluster. Off, it listens for no peer and dials none, and its \
          counters are its own. Turning it on makes `secret` required. The other keys are checked either way, \
          so that switching it on later brings no surprise.",
};

pub(super) const SECRET: Key = Key {
    section: "cluster",
    name: "secret",
    kind: Kind::Secret,
    default: None,
    rule: "at least 16 bytes when enabled; the same on every node",
    doc: "The shared secret that authenticates every frame; whoever has it can be a member. Frames are not \
          encrypted. Draw it at random (`openssl rand -hex 32`) and prefer the environment variable to the \
          file. It is never printed: an error gives its length only.",
};

pub(super) const CLUSTER_NAME: Key = Key {
    section: "cluster",
    name: "cluster_name",
    kind: Kind::Name,
    default: Some("\"firedrill\""),
    rule: "1 to 64 bytes, not blank, no '#'",
    doc: "Keeps clusters apart that can reach each other: a frame of another name is refused. Give staging and \
          production different names (and different secrets).",
};

pub(super) const NODE_ID: Key = Key {
    section: "cluster",
    name: "node_id",
    kind: Kind::Name,
    default: None,
    rule: "1 to 64 bytes, not blank, no '#'",
    doc: "This node's stable name, unique in the cluster. Absent, the node draws `node-` and 32 hex digits anew \
          at each boot, and every boot leaves a counter cell of its own behind: set it on anything that lives \
          long. Two hosts with one id disturb each other for as long as both run.",
};

pub(super) const BIND_ADDR: Key = Key {
    section: "cluster",
    name: "bind_addr",
    kind: Kind::ListenAddr,
    default: Some("\"127.0.0.1:0\""),
    rule: "IP literal and port; port 0 takes any free port; a wildcard needs advertise_addr",
    doc: "Where to listen for peers. The default serves peers on the same host only. Elsewhere give a fixed port \
          on a trusted network; with a wildcard such as 0.0.0.0 also give `advertise_addr`, because peers \
          cannot dial a wildcard.",
};

pub(super) const ADVERTISE_ADDR: Key = Key {
    section: "cluster",
    name: "advertise_addr",
    kind: Kind::DialAddr,
    default: None,
    rule: "IP literal and port; never a wildcard, never port 0",
    doc: "What peers dial to reach this node; the bound address when absent. Needed when `bind_addr` is a \
          wildcard or the node sits behind address translation. Every node must be dialable by every other: \
          replies never travel back over an accepted connection.",
};

pub(super) const SEED_PEERS: Key = Key {
    section: "cluster",
    name: "seed_peers",
    kind: Kind::DialAddrs,
    default: Some("[]"),
    rule: "IP literals and ports; never a wildcard, never port 0",
    doc: "Addresses dialled to make first contact; the rest is learned from there. One direction is enough, and \
          a node's own address does no harm, so all nodes may share one list. Name two or three nodes, so \
          that a newcomer finds one of them up.",
};

pub(super) const PUSH_INTERVAL_MS: Key = Key {
    section: "cluster",
    name: "push_interval_ms",
    kind: Kind::U64 { min: PUSH_INTERVAL_MS_MIN },
    default: Some("500"),
    rule: "at least 10",
    doc: "Milliseconds between two pushes of the whole document to each peer, before a jitter of 20 %. A push is \
          the heartbeat too. Shorter finds failures sooner and costs bytes in proportion; a change is pushed \
          at once anyway. Choose `suspicion_timeout_ms` first, then a fifth of it.",
};

pub(super) const SUSPICION_TIMEOUT_MS: Key = Key {
    section: "cluster",
    name: "suspicion_timeout_ms",
    kind: Kind::U64 { min: 0 },
    default: Some("2500"),
    rule: "at least 3 x push_interval_ms",
    doc: "Milliseconds of silence after which a member is down: how long a crash may go unnoticed. At least three \
          times `push_interval_ms`, or one late push evicts a healthy member; five times is comfortable. Keep \
          it above the longest pause you expect (garbage collection, a host that swaps).",
};

pub(super) const SERVER_BIND_ADDR: Key = Key {
    section: "server",
    name: "bind_addr",
    kind: Kind::ListenAddr,
    default: Some("\"127.0.0.1:0\""),
    rule: "IP literal and port; port 0 takes any free port",
    doc: "Where the admin server (counters, members, health, metrics) listens. It asks nobody for a password: \
          keep it on loopback or a trusted network.",
};

/// Every key there is, in the order in which to present them.
pub const KEYS: [Key; 26] = [
    ENABLED,
    SECRET,
    CLUSTER_NAME,
    NODE_ID,
    BIND_ADDR,
    ADVERTISE_ADDR,
    SEED_PEERS,
    PUSH_INTERVAL_MS,
    SUSPICION_TIMEOUT_MS,
    SERVER_BIND_ADDR,
    issuance::ENABLED,
    issuance::ISSUER,
    issuance::WIDTH,
    issuance::RATE,
    issuance::GENESIS_MS,
    issuance::MAX_ELAPSED_PER_SEAL,
    issuance::CATCHUP_MAX_Z,
    issuance::FAILOVER,
    issuance::SILENCE_Z,
    issuance::BOOT_GRACE_Z,
    issuance::CHECK_Z,
    issuance::PULL_Z,
    issuance::PROBE_TIMEOUT_MS,
    issuance::ELIGIBLE,
    issuance::FENCING,
    issuance::FENCE_Z,
];

/// Every section: its name and what it is for.
pub const SECTIONS: [(&str, &str); 3] = [
    ("cluster", "Membership, counters and the wire between nodes."),
    ("server", "The admin server of the production node."),
    ("issuance", "One issuer for the whole cluster, and who follows it when it falls silent."),
];

/// The keys of one section.
pub fn keys_of(section: &str) -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(move |key| key.section == section)
}

const LOOPBACK_ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

impl Default for Config {
    /// What an empty file says: no cluster and no issuance.
    fn default() -> Self {
        Self {
            cluster: ClusterConfig {
                enabled: false,
                secret: Secret::new(""),
                cluster_name: ClusterName::new("firedrill").expect("a literal that keeps the rule"),
                node_id: None,
                bind_addr: LOOPBACK_ANY_PORT,
                advertise_addr: None,
                seed_peers: alloc::vec::Vec::new(),
                push_interval_ms: 500,
                suspicion_timeout_ms: 2500,
            },
            server: ServerConfig { bind_addr: LOOPBACK_ANY_PORT },
            issuance: None,
        }
    }
}
