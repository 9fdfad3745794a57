//! The keys of `[issuance]`; see [`Key`].

use super::super::keys::{Key, Kind};
use super::FENCING_WORDS;

const fn key(
    name: &'static str,
    kind: Kind,
    default: Option<&'static str>,
    rule: &'static str,
    doc: &'static str,
) -> Key {
    Key { section: "issuance", name, kind, default, rule, doc }
}

pub(in super::super) const ENABLED: Key = key(
    "enabled",
    Kind::Bool,
    Some("false"),
    "true or false",
    "Whether this node takes part in issuance: seals, or keeps the rows of whoever does and stands by. Turning \
     it on makes `issuer` and `cluster.node_id` required. The other keys are checked either way, so that \
     switching it on later brings no surprise. Turn it on everywhere or nowhere.",
);

pub(in super::super) const ISSUER: Key = key(
    "issuer",
    Kind::Name,
    None,
    "a node id; required when enabled; one of `eligible`, unless that is empty; the same on every node",
    "The node that seals first, on a spine that carries no lease yet, and the only one that ever seals when \
     `failover` is false. Give the same id on every node: two nodes that each think themselves the first \
     would both seal until they hear of each other.",
);

pub(in super::super) const WIDTH: Key = key(
    "width",
    Kind::U64 { min: 1 },
    Some("1"),
    "at least 1; the same on every node",
    "Ticks in one window; each window is sealed at most once. A tick is 1/1.287 s, so 1 seals about every \
     0.777 s. Windows are counted in this width from the genesis: it cannot change while a spine lives. A wider \
     window needs a longer `silence_z`.",
);

pub(in super::super) const RATE: Key = key(
    "rate",
    Kind::Decimal,
    Some("\"0.999999999999\""),
    "a decimal above 0 with at most 12 places, in quotes; the same on every node",
    "What one window issues. It is written in quotes because it is exact: amounts are kept as whole numbers of \
     the twelfth place and never pass through a floating point number.",
);

pub(in super::super) const GENESIS_MS: Key = key(
    "genesis_ms",
    Kind::U64 { min: 0 },
    Some("0"),
    "milliseconds since 1970-01-01T00:00:00Z; the same on every node",
    "The moment at which ticks count from 0. A node whose wall clock stands before it cannot seal and says so. \
     Keep the default unless windows are to count from the start of something; it cannot change while a spine \
     lives.",
);

pub(in super::super) const MAX_ELAPSED_PER_SEAL: Key = key(
    "max_elapsed_per_seal",
    Kind::U64 { min: 1 },
    Some("8"),
    "at least 1",
    "The most windows that one row may cover. After an outage longer than this the rest is forfeited: recorded, \
     and never issued later. Raise `catchup_max_z` instead to issue more after an outage.",
);

pub(in super::super) const CATCHUP_MAX_Z: Key = key(
    "catchup_max_z",
    Kind::U64 { min: 0 },
    Some("0"),
    "0 turns it off",
    "Lets one row cover up to this many windows, when that is more than `max_elapsed_per_seal`. With it, the \
     first row after an outage may cover windows that the former issuer sealed but had not yet passed on; the \
     audit counts such windows once. Has no effect when `failover` is false.",
);

pub(in super::super) const FAILOVER: Key = key(
    "failover",
    Kind::Bool,
    Some("true"),
    "true or false; the same on every node",
    "Whether another node takes over when the issuer falls silent. False: only `issuer` seals, rows carry no \
     lease, and issuance stops while that node is down.",
);

pub(in super::super) const SILENCE_Z: Key = key(
    "silence_z",
    Kind::U64 { min: 0 },
    Some("60"),
    "more than pull_z + check_z, and at least 2 x width + 2 x pull_z",
    "Ticks without a new row after which the issuer may be replaced, 60 being about 47 s. Rows arrive in pulls, \
     so it must outlast some of those, or a healthy issuer is replaced between two. It is also how far a wall \
     clock may stand ahead of the others, and how long a holder without a durable row counts as fit.",
);

pub(in super::super) const BOOT_GRACE_Z: Key = key(
    "boot_grace_z",
    Kind::U64 { min: 1 },
    Some("40"),
    "at least 1",
    "Ticks after a start in which this node elects nobody, and seals only once every live peer has answered a \
     pull: it first learns what happened while it was away. Two or three times `pull_z` is comfortable.",
);

pub(in super::super) const CHECK_Z: Key = key(
    "check_z",
    Kind::U64 { min: 1 },
    Some("16"),
    "at least 1; with pull_z less than silence_z",
    "Ticks between two looks at whether the issuer has fallen silent. Each asks the candidates once. A shorter \
     one replaces a dead issuer sooner by at most that much.",
);

pub(in super::super) const PULL_Z: Key = key(
    "pull_z",
    Kind::U64 { min: 1 },
    Some("20"),
    "at least 1; see silence_z",
    "Ticks between two pulls of rows from each live peer: how far a standby may lag behind, and how many windows \
     a takeover may cost. Shorter costs messages in proportion.",
);

pub(in super::super) const PROBE_TIMEOUT_MS: Key = key(
    "probe_timeout_ms",
    Kind::U64 { min: 10 },
    Some("2000"),
    "at least 10",
    "Milliseconds that a node has to answer when candidates are asked; one that answers later counts as \
     unreachable for that check. Keep it well above a round trip and the longest ordinary pause.",
);

pub(in super::super) const ELIGIBLE: Key = key(
    "eligible",
    Kind::Names,
    Some("[]"),
    "node ids, each once; empty means every node; the same on every node",
    "The nodes that may become issuer. With `fencing` \"majority\" they are the electorate too: name three or \
     more, and rather an odd number, since an even one survives no more failures than the odd one below it.",
);

pub(in super::super) const FENCING: Key = key(
    "fencing",
    Kind::Choice(&[FENCING_WORDS[0].0, FENCING_WORDS[1].0]),
    Some("\"none\""),
    "\"none\" or \"majority\", which needs failover, 3 eligible nodes and a fence_z within its bound",
    "Whether an issuer needs the consent of a majority. \"none\" keeps issuing in every part of a split network, \
     and the rows of the losing part are set aside when it heals. With \"majority\" two nodes are never able to \
     seal at the same moment, and a part without a majority issues nothing.",
);

pub(in super::super) const FENCE_Z: Key = key(
    "fence_z",
    Kind::U64 { min: 1 },
    Some("45"),
    "at least 1; at most 0.8 x silence_z when fencing is \"majority\"",
    "Ticks that one promise of an elector binds it, when `fencing` is \"majority\". An elector promises nothing \
     for as long after its start. It must run out well before `silence_z`, or a successor waits for promises \
     to an issuer that is gone. Shorter stops an isolated issuer sooner and renews more often.",
);
