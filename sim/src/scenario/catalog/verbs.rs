//! The verbs of a step. Which engine can do which is told by [`Verb::engines`] and nowhere else.

use super::{Key, Kind, key, need};
use crate::engine::EngineKind;
use crate::scenario::model::{DiskState, FloodKind};

/// A verb's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is described in VERBS, one by one")]
pub enum VerbName {
    Kill,
    Stop,
    Restart,
    Pause,
    Resume,
    Partition,
    Isolate,
    Heal,
    Cut,
    Hold,
    Release,
    Link,
    HalfOpen,
    ClockStep,
    ClockRate,
    ClockFreeze,
    Disk,
    ReplayFrames,
    CorruptFrames,
    ForgeFrames,
    Flood,
    AddNode,
    RemoveNode,
    PauseIssuance,
    ResumeIssuance,
}

/// A verb, as users know it.
#[derive(Debug, Clone, Copy)]
pub struct Verb {
    /// Which.
    pub verb: VerbName,
    /// Its word.
    pub name: &'static str,
    /// What its value looks like when it is no table.
    pub plain: Option<Kind>,
    /// The keys of its table; none when it takes no table.
    pub keys: &'static [Key],
    /// A line to copy.
    pub example: &'static str,
    /// What it does.
    pub doc: &'static str,
    /// Which engines can do it.
    pub engines: &'static [EngineKind],
    /// Whether it needs real bytes on the wire.
    pub bytes: bool,
    /// What `for` does to it; `None` when it cannot end by itself.
    pub ends: Option<&'static str>,
}

impl Verb {
    /// What to write, with optional keys in brackets: `restart = TARGET or { target, [wall], [addr] }`.
    pub fn shape(&self) -> String {
        let keys: Vec<String> = self
            .keys
            .iter()
            .map(|key| if key.required { key.name.to_owned() } else { format!("[{}]", key.name) })
            .collect();
        let table = format!("{{ {} }}", keys.join(", "));
        let plain = self.plain.map(Kind::shape);
        match (plain, self.keys) {
            (Some(plain), []) => format!("{} = {plain}", self.name),
            (Some(plain), _) => format!("{} = {plain} or {table}", self.name),
            (None, _) => format!("{} = {table}", self.name),
        }
    }
}

const BOTH: &[EngineKind] = &[EngineKind::Event, EngineKind::Turmoil];

const fn on_hosts(verb: VerbName, name: &'static str, example: &'static str, doc: &'static str) -> Verb {
    Verb {
        verb,
        name,
        plain: Some(Kind::Target),
        keys: &[],
        example,
        doc,
        engines: BOTH,
        bytes: false,
        ends: None,
    }
}

const fn on_links(
    verb: VerbName,
    name: &'static str,
    keys: &'static [Key],
    example: &'static str,
    doc: &'static str,
) -> Verb {
    Verb { plain: None, keys, ..on_hosts(verb, name, example, doc) }
}

const fn ending(verb: Verb, how: &'static str) -> Verb {
    Verb { ends: Some(how), ..verb }
}

const fn bytes(verb: Verb) -> Verb {
    Verb { bytes: true, ..verb }
}

const FROM: Key = need("from", Kind::Target, "Who sends.");
const TO: Key = need("to", Kind::Target, "Who receives.");
const TARGET: Key = need("target", Kind::Target, "Whose.");

/// Every verb, by subject.
pub const VERBS: &[Verb] = &[
    on_hosts(
        VerbName::Kill,
        "kill",
        "kill = \"b\"",
        "Power loss: the process is gone and peers see nothing. It stays down unless restarted.",
    ),
    on_hosts(
        VerbName::Stop,
        "stop",
        "stop = \"b\"",
        "Graceful leave: the node says goodbye, then goes down.",
    ),
    Verb {
        keys: &[
            need("target", Kind::Target, "Who."),
            key("wall", Kind::Offset, "Steps its wall clock first, by this much."),
            key("addr", Kind::Address, "Starts at this address from now on."),
            key("lose_disk", Kind::Bool, "Starts with an empty disk."),
        ],
        ..on_hosts(
            VerbName::Restart,
            "restart",
            "restart = { target = \"a\", wall = \"-2h\" }",
            "Starts again what is down; what is up is killed first.",
        )
    },
    ending(
        on_hosts(
            VerbName::Pause,
            "pause",
            "pause = \"b\"",
            "Holds a process: no input, no timer, as in a long garbage collection.",
        ),
        "resumes",
    ),
    on_hosts(
        VerbName::Resume,
        "resume",
        "resume = \"b\"",
        "Lets a paused process go on; overdue timers fire once.",
    ),
    ending(
        Verb {
            plain: Some(Kind::Groups),
            ..on_hosts(
                VerbName::Partition,
                "partition",
                "partition = [[\"a\"], [\"b\", \"c\"]]",
                "Only hosts of one group hear each other; hosts in no group form one more.",
            )
        },
        "heals",
    ),
    ending(
        on_hosts(
            VerbName::Isolate,
            "isolate",
            "isolate = \"b\"",
            "Cuts hosts off from everybody, from each other too.",
        ),
        "heals",
    ),
    Verb {
        plain: Some(Kind::Flag),
        ..on_hosts(
            VerbName::Heal,
            "heal",
            "heal = true",
            "Undoes partition, isolate, cut, hold and link, everywhere. A half-open connection heals by itself.",
        )
    },
    ending(
        on_links(
            VerbName::Cut,
            "cut",
            &[FROM, TO],
            "cut = { from = \"a\", to = \"b\" }",
            "Nothing gets through one way; the way back works.",
        ),
        "heals",
    ),
    ending(
        on_links(
            VerbName::Hold,
            "hold",
            &[FROM, TO],
            "hold = { from = \"a\", to = \"b\" }",
            "Keeps what is sent, until released.",
        ),
        "releases",
    ),
    on_links(
        VerbName::Release,
        "release",
        &[FROM, TO],
        "release = { from = \"a\", to = \"b\" }",
        "Delivers what was held, in order.",
    ),
    ending(
        on_links(
            VerbName::Link,
            "link",
            &[
                FROM,
                TO,
                key("latency", Kind::Latency, "How long a frame travels; never 0."),
                key("loss", Kind::Share, "Share of the frames that vanish."),
                key("duplicate", Kind::Share, "Share of the frames that arrive twice."),
                key("reorder", Kind::Share, "Share of the frames that later ones overtake."),
                key("bandwidth", Kind::Bandwidth, "Bytes a second."),
            ],
            "link = { from = \"a\", to = \"b\", latency = \"50ms..200ms\", loss = \"10%\" }",
            "Changes how links behave; what is not named stays.",
        ),
        "goes back",
    ),
    bytes(on_links(
        VerbName::HalfOpen,
        "half_open",
        &[FROM, TO],
        "half_open = { from = \"a\", to = \"b\" }",
        "The present connection stays open and carries nothing any more.",
    )),
    on_links(
        VerbName::ClockStep,
        "clock_step",
        &[TARGET, need("by", Kind::Offset, "How far, sign first.")],
        "clock_step = { target = \"b\", by = \"-1h\" }",
        "Steps the wall clock.",
    ),
    ending(
        on_links(
            VerbName::ClockRate,
            "clock_rate",
            &[TARGET, need("rate", Kind::Rate, "1 is right, 1.01 is one percent fast; 0.5 to 2.")],
            "clock_rate = { target = \"b\", rate = \"1.01\" }",
            "Runs both clocks, wall and monotonic, fast or slow.",
        ),
        "runs right again",
    ),
    ending(
        on_hosts(VerbName::ClockFreeze, "clock_freeze", "clock_freeze = \"b\"", "Stops the wall clock."),
        "runs on from where it stood",
    ),
    ending(
        on_links(
            VerbName::Disk,
            "disk",
            &[
                TARGET,
                key("state", Kind::Choice(DISKS), "What becomes of writes; they are durable when absent."),
                key("latency", Kind::Duration, "How long each write takes; no time when absent."),
            ],
            "disk = { target = \"a\", state = \"full\" }",
            "Makes a disk slow, full (it refuses), stalled (writes hang) or unsynced (a power loss takes back what was \
             written since).",
        ),
        "is good again",
    ),
    on_links(
        VerbName::ReplayFrames,
        "replay_frames",
        &[
            FROM,
            TO,
            key(
                "captured",
                Kind::Stretch,
                "Only frames sent in this stretch of the run; all so far when absent.",
            ),
            need("count", Kind::Count(1, 100_000), "At most so many, the earliest."),
        ],
        "replay_frames = { from = \"b\", to = \"a\", captured = \"0s..5s\", count = 2 }",
        "Sends captured frames again.",
    ),
    ending(
        bytes(on_links(
            VerbName::CorruptFrames,
            "corrupt_frames",
            &[FROM, TO, need("rate", Kind::Share, "Share of the frames.")],
            "corrupt_frames = { from = \"a\", to = \"b\", rate = \"5%\" }",
            "Flips a bit in frames on the way.",
        )),
        "stops",
    ),
    bytes(on_links(
        VerbName::ForgeFrames,
        "forge_frames",
        &[
            need("sender", Kind::Target, "In whose name."),
            TO,
            need("count", Kind::Count(1, 100_000), "How many."),
        ],
        "forge_frames = { sender = \"b\", to = \"a\", count = 5 }",
        "A stranger sends frames in a member's name, signed with a wrong secret.",
    )),
    bytes(on_links(
        VerbName::Flood,
        "flood",
        &[
            TO,
            need("connections", Kind::Count(1, 10_000), "How many connections."),
            need(
                "send",
                Kind::Choice(FLOODS),
                "What they send: nothing, well-framed garbage, a length above the cap, half a frame.",
            ),
        ],
        "flood = { to = \"a\", connections = 200, send = \"garbage\" }",
        "Strangers open connections.",
    )),
    on_hosts(
        VerbName::AddNode,
        "add_node",
        "add_node = \"d\"",
        "Starts a host of `nodes.later` for the first time.",
    ),
    on_hosts(VerbName::RemoveNode, "remove_node", "remove_node = \"c\"", "A graceful leave for good."),
    ending(
        on_hosts(
            VerbName::PauseIssuance,
            "pause_issuance",
            "pause_issuance = \"holder\"",
            "The operator stops a node from sealing. Its role stays; a restart forgets it.",
        ),
        "may seal again",
    ),
    on_hosts(
        VerbName::ResumeIssuance,
        "resume_issuance",
        "resume_issuance = \"a\"",
        "The operator lets a node seal again.",
    ),
];

/// States of a disk, in the order of `DISK_STATES`.
pub const DISKS: &[&str] = &["works", "full", "unsynced", "stalled"];
/// The states that [`DISKS`] name.
pub(in crate::scenario) const DISK_STATES: [DiskState; 4] =
    [DiskState::Works, DiskState::Full, DiskState::Unsynced, DiskState::Stalled];

/// What a flood can send, in the order of `FLOOD_KINDS`.
pub const FLOODS: &[&str] = &["silent", "garbage", "oversize", "half_frame"];
/// The kinds that [`FLOODS`] name.
pub(in crate::scenario) const FLOOD_KINDS: [FloodKind; 4] =
    [FloodKind::Silent, FloodKind::Garbage, FloodKind::Oversize, FloodKind::HalfFrame];
