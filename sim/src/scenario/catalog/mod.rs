//! Every word of the scenario language: keys, verbs, facts, events, symbols.
//!
//! The reader takes its known words and required keys from here, the JSON schema and `firedrill list` their
//! texts, so a word cannot exist without being documented.

mod facts;
mod verbs;

pub use facts::*;
pub use verbs::*;

/// One key of a table.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What values it takes.
    pub kind: Kind,
    /// Whether the table is refused without it.
    pub required: bool,
    /// What it does.
    pub doc: &'static str,
}

const fn key(name: &'static str, kind: Kind, doc: &'static str) -> Key {
    Key { name, kind, required: false, doc }
}

const fn need(name: &'static str, kind: Kind, doc: &'static str) -> Key {
    Key { name, kind, required: true, doc }
}

/// What values a key takes.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Any text that is not blank.
    Text,
    /// A word that begins with a letter.
    Id,
    /// `true` or `false`.
    Bool,
    /// Nothing but `true`.
    Flag,
    /// A whole number between these.
    Count(u64, u64),
    /// `"90s"`.
    Duration,
    /// `"-1h"`.
    Offset,
    /// `"5ms"` or `"1ms..20ms"`.
    Latency,
    /// `"0s..5s"`.
    Stretch,
    /// `"0.1%"`.
    Share,
    /// `"1.01"`.
    Rate,
    /// `"1MB/s"`.
    Bandwidth,
    /// `"192.168.0.9:7946"`.
    Address,
    /// One host.
    Host,
    /// A host or a list of hosts.
    Hosts,
    /// A host, a list of hosts, or a symbol.
    Target,
    /// Lists of hosts.
    Groups,
    /// A duration or a step's id.
    Moment,
    /// A step's id or an event.
    When,
    /// A counter of a workload.
    Counter,
    /// A whole number or `"truth"`.
    NumberOrTruth,
    /// A whole number, or an amount.
    NumberOrAmount,
    /// What an election decided.
    Decision,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A list of texts.
    Texts,
    /// Host names and clock offsets.
    Walls,
    /// Oracle names and reasons.
    Reasons,
    /// The production configuration.
    Config,
    /// Host names and configurations.
    ConfigFor,
    /// A table of these keys.
    Table(&'static [Key]),
    /// `[[…]]` tables of these keys.
    Tables(&'static [Key]),
    /// A fact in a table.
    Fact,
    /// `["a", "b"]` or `{ on, members }`.
    View,
    /// An event.
    Event,
}

impl Kind {
    /// Least and most of a whole number.
    pub const fn bounds(self) -> (u64, u64) {
        if let Self::Count(least, most) = self { (least, most) } else { (0, i64::MAX.unsigned_abs()) }
    }

    /// The words to choose from; none where there is no choice.
    pub const fn words(self) -> &'static [&'static str] {
        if let Self::Choice(words) = self { words } else { &[] }
    }

    /// What to write, where it is no table.
    const fn shape(self) -> &'static str {
        if let Self::Target = self {
            "TARGET"
        } else if let Self::Groups = self {
            "[[HOST, …], …]"
        } else if let Self::Flag = self {
            "true"
        } else {
            self.noun()
        }
    }

    /// What a value is, in a word or two.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Text => "a text",
            Self::Id => "a word",
            Self::Bool | Self::Flag => "true or false",
            Self::Count(..) => "a whole number",
            Self::Duration => "a duration",
            Self::Offset => "a clock offset",
            Self::Latency => "a latency",
            Self::Stretch => "a stretch of time",
            Self::Share => "a share",
            Self::Rate => "a clock rate",
            Self::Bandwidth => "a bandwidth",
            Self::Address => "an address",
            Self::Host => "a host",
            Self::Hosts => "one host or several",
            Self::Target => "a target",
            Self::Groups => "groups of hosts",
            Self::Moment => "a moment",
            Self::When => "a step or an event",
            Self::Counter => "a counter",
            Self::NumberOrTruth | Self::NumberOrAmount => "a number",
            Self::Decision => "a decision",
            Self::Choice(_) => "a word",
            Self::Texts => "a list of texts",
            Self::Walls | Self::Reasons | Self::Config | Self::ConfigFor | Self::Table(_) => "a table",
            Self::Tables(_) => "a list of tables",
            Self::Fact => "a fact",
            Self::View => "a list of members",
            Self::Event => "an event",
        }
    }

    /// What a value should look like: completes "wants …".
    pub const fn wants(self) -> &'static str {
        match self {
            Self::Text => "a text in quotes, not blank",
            Self::Id => "a word that begins with a letter, then letters, digits, '-', '_' or '.'",
            Self::Bool => "true or false",
            Self::Flag => "true",
            Self::Count(..) => "a whole number",
            Self::Duration => "a duration with its unit in quotes, such as \"90s\", \"1m30s\" or \"250ms\"",
            Self::Offset => "a clock offset in quotes, sign first, such as \"+1h\" or \"-250ms\"",
            Self::Latency => "a latency in quotes, such as \"5ms\" or \"1ms..20ms\"",
            Self::Stretch => "a stretch of the run in quotes, such as \"0s..5s\"",
            Self::Share => "a share in quotes, such as \"0.1%\"",
            Self::Rate => "a clock rate from 0.5 to 2, such as \"1.01\"",
            Self::Bandwidth => "a bandwidth in quotes, such as \"1MB/s\"",
            Self::Address => "an IP literal and a port in quotes, such as \"192.168.0.9:7946\"",
            Self::Host => "the name of a host in quotes, such as \"a\"",
            Self::Hosts => "a host or a list of hosts, such as \"a\" or [\"a\", \"b\"]",
            Self::Target => {
                "a host, a list of hosts or a symbol, such as \"a\", [\"a\", \"b\"] or \"minority\""
            }
            Self::Groups => "groups of hosts, such as [[\"a\"], [\"b\", \"c\"]]",
            Self::Moment => "a duration or the id of a step, such as \"60s\" or \"cut\"",
            Self::When => "the id of a step or an event, such as \"cut\" or { down = \"b\" }",
            Self::Counter => "the name of a counter in quotes, such as \"sightings\"",
            Self::NumberOrTruth => "a whole number or \"truth\"",
            Self::NumberOrAmount => "a whole number, or an amount in quotes such as \"7.999999999992\"",
            Self::Decision => "a decision in quotes, such as \"tip_advancing\" or \"successor_is_b\"",
            Self::Choice(_) => "one of the known words in quotes",
            Self::Texts => "a list of texts, such as [\"a\", \"b\"]",
            Self::Walls => "hosts and clock offsets, such as { b = \"+1h\" }",
            Self::Reasons => "oracles and reasons, such as { agreement = \"the secrets differ\" }",
            Self::Config => "a table with the sections of the configuration, such as [config.cluster]",
            Self::ConfigFor => "a table with a host's configuration, such as [config_for.b.cluster]",
            Self::Table(_) => "a table",
            Self::Tables(_) => "tables in double brackets, such as [[step]]",
            Self::Fact => "a fact in a table, such as { view = [\"a\", \"b\"] }",
            Self::View => "a list of members or { on = \"a\", members = [\"a\", \"b\"] }",
            Self::Event => "an event, such as { down = \"b\", on = \"a\" }",
        }
    }
}

/// Most hosts on the event engine.
pub const HOSTS_MAX_EVENT: usize = 64;
/// Most hosts on turmoil, whose cost grows with the cube of their number.
pub const HOSTS_MAX_TURMOIL: usize = 16;

/// The top of a scenario file.
pub const TOP: &[Key] = &[
    need("name", Kind::Id, "Short name of the scenario, unique in its folder."),
    need("about", Kind::Text, "The story in a sentence or two: what happens, and what must come of it."),
    key("seed", Kind::Count(0, u64::MAX), "The seed to use unless the command names one; 1 when absent."),
    need("time_limit", Kind::Duration, "When faults and workload are over and the liveness phase begins."),
    key(
        "include",
        Kind::Texts,
        "Files to lay under this one, by paths relative to it. Tables merge, this file wins; steps, \
         workloads and expectations are joined.",
    ),
    need("nodes", Kind::Table(NODES), "The hosts of the run."),
    key("config", Kind::Config, "The production configuration of every node: same keys, same checks."),
    key("config_for", Kind::ConfigFor, "Configuration of single hosts, laid over `config` key by key."),
    key("net", Kind::Table(NET), "The network when no fault acts on it."),
    key("workload", Kind::Tables(WORKLOAD), "What clients do."),
    key("step", Kind::Tables(STEP), "The drill: one verb at one moment."),
    key("expect", Kind::Tables(EXPECT), "What must hold, and when."),
    key("oracles", Kind::Table(ORACLES), "Invariants this scenario has to break."),
    key("liveness", Kind::Table(LIVENESS), "How the run ends."),
];

/// `[nodes]`.
pub const NODES: &[Key] = &[
    key(
        "names",
        Kind::Texts,
        "The hosts that run from the start, by name. A host's node id is its name unless `config_for` says \
         otherwise.",
    ),
    key(
        "count",
        Kind::Count(1, HOSTS_MAX_EVENT as u64),
        "So many hosts, in place of `names`: a, b, c … up to 26 of them, n00, n01 … above.",
    ),
    key("later", Kind::Texts, "Hosts that only an `add_node` step starts."),
    key(
        "seeds",
        Kind::Choice(&["all", "first", "ring", "chain"]),
        "Whom each host dials first: all others (the default), the first host, the next one in a ring, the \
         one before it.",
    ),
    key("wall", Kind::Walls, "How far wall clocks are off at the start."),
    key(
        "same_millisecond",
        Kind::Bool,
        "Whether two boots may share a millisecond of the wall clock; otherwise boots are at least one apart.",
    ),
];

/// `[net]`.
pub const NET: &[Key] = &[
    key(
        "latency",
        Kind::Latency,
        "How long a frame travels, drawn from this range; never 0. 1ms..5ms when absent.",
    ),
    key("loss", Kind::Share, "Share of the frames that vanish."),
    key("duplicate", Kind::Share, "Share of the frames that arrive twice."),
    key(
        "reorder",
        Kind::Share,
        "Share of the frames that are delayed further, so that later ones overtake them.",
    ),
    key(
        "bandwidth",
        Kind::Bandwidth,
        "Bytes a second of each direction of each link; unlimited when absent.",
    ),
];

/// `[[workload]]`.
pub const WORKLOAD: &[Key] = &[
    need("increment", Kind::Id, "The counter to increment, round robin over the hosts that are up."),
    need("every", Kind::Duration, "Time between two increments."),
    key("by", Kind::Count(1, i64::MAX.unsigned_abs()), "How much each adds; 1 when absent."),
    key("on", Kind::Hosts, "Only on these hosts."),
    key("from", Kind::Duration, "The first increment; one `every` after the start when absent."),
    key("until", Kind::Duration, "No increment after this moment; the time limit when absent."),
];

/// `[[step]]`, its one verb excepted.
pub const STEP: &[Key] = &[
    key("id", Kind::Id, "A name that `when` and `from` can speak of."),
    key("at", Kind::Duration, "Fires at this time from the start."),
    key(
        "when",
        Kind::When,
        "Fires with an earlier step, or with the first such event after the step before this one.",
    ),
    key("after", Kind::Duration, "This long after `when`, or after the step before this one."),
    key("for", Kind::Duration, "Undoes the fault after this long."),
    key("every", Kind::Duration, "Fires again and again, this far apart …"),
    key("until", Kind::Duration, "… until this moment of the run."),
];

/// `[[expect]]`, its fact excepted.
pub const EXPECT: &[Key] = &[
    key("by", Kind::Duration, "The fact beside it holds at some moment no later than this."),
    key("from", Kind::Moment, "Judged only from this moment on: a time, or when a step fired."),
    key("always", Kind::Fact, "Holds at every moment."),
    key("never", Kind::Fact, "Holds at no moment."),
    key("at_end", Kind::Fact, "Holds after the liveness phase."),
    key("sometimes", Kind::Fact, "Holds at some moment of the run."),
];

/// `[oracles]`.
pub const ORACLES: &[Key] = &[key(
    "off",
    Kind::Reasons,
    "Oracles to turn off, each with the reason why this scenario must break it.",
)];

/// `[liveness]`.
pub const LIVENESS: &[Key] = &[key(
    "settle_within",
    Kind::Duration,
    "Time the cluster may take to agree beyond the bound of the protocol; none when absent.",
)];

/// What may stand where a host is wanted, and whom it means.
pub const SYMBOLS: &[(&str, &str)] = &[
    ("any", "One host that is up, drawn from the seed when the step fires."),
    ("minority", "Fewer than half of the hosts that are up, drawn from the seed."),
    ("majority", "More than half of the hosts that are up, drawn from the seed."),
    ("all", "Every host that the verb can act on."),
    (
        "holder",
        "Whoever holds the lease when the step fires: of the leases that running nodes see, the one of the highest \
         epoch. Nobody before the first row.",
    ),
    (
        "successor",
        "Whoever comes after the holder: of the eligible nodes that are up, the one with the lowest id.",
    ),
];

/// Words of the language that this version does not carry out yet.
pub const LATER_VERBS: &[&str] = &["rotate_secret", "tamper_journal", "store"];
/// Facts that this version does not judge yet.
pub const LATER_FACTS: &[&str] = &["balance", "session"];
/// Events that this version does not know yet.
pub const LATER_EVENTS: &[&str] = &["settled"];
/// Symbols that this version cannot resolve yet.
pub const LATER_SYMBOLS: &[&str] = &["owner"];
/// Sections of the configuration that this version does not know yet.
pub const LATER_CONFIG: &[&str] = &["netting", "placement"];
