//! The facts of an expectation, and the events that facts and steps speak of.

use firedrill_core::io::{CloseReason, ResetReason};
use firedrill_core::wire::Reject;

use super::{Key, Kind, key, need};
use crate::scenario::model::{Ending, EventKind};

/// A fact's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is described in FACTS, one by one")]
pub enum FactName {
    View,
    Counter,
    Event,
    Metric,
}

/// A fact, as users know it.
#[derive(Debug, Clone, Copy)]
pub struct Fact {
    /// Which.
    pub fact: FactName,
    /// Its word.
    pub name: &'static str,
    /// What its value looks like.
    pub kind: Kind,
    /// A line to copy.
    pub example: &'static str,
    /// What it says.
    pub doc: &'static str,
}

const ON: Key = key("on", Kind::Hosts, "Only on these hosts; on every running host when absent.");
const EQUALS: Key =
    key("equals", Kind::NumberOrTruth, "Exactly this; \"truth\" is what the workload added so far.");
const EQUALS_NUMBER: Key = key("equals", Kind::Count(0, i64::MAX.unsigned_abs()), "Exactly this.");
const AT_LEAST: Key = key("at_least", Kind::Count(0, i64::MAX.unsigned_abs()), "No less than this.");
const AT_MOST: Key = key("at_most", Kind::Count(0, i64::MAX.unsigned_abs()), "No more than this.");

/// The keys of `view` in its long form.
pub const VIEW: &[Key] =
    &[ON, need("members", Kind::Texts, "The hosts whose ids are in the view, the viewer included.")];
/// The keys of `counter`.
pub const COUNTER: &[Key] = &[need("name", Kind::Counter, "Which counter."), EQUALS, AT_LEAST, AT_MOST, ON];
/// The keys of `metric`.
pub const METRIC: &[Key] = &[
    need("name", Kind::Text, "The Prometheus name."),
    key("reason", Kind::Text, "Which series of a metric that has reasons."),
    key("table", Kind::Text, "Which series of a metric that has tables."),
    EQUALS_NUMBER,
    AT_LEAST,
    AT_MOST,
    ON,
];

/// Every fact.
pub const FACTS: &[Fact] = &[
    Fact {
        fact: FactName::View,
        name: "view",
        kind: Kind::View,
        example: "view = [\"a\", \"b\"]",
        doc: "The views of all running hosts (or of those in `on`) are exactly these members.",
    },
    Fact {
        fact: FactName::Counter,
        name: "counter",
        kind: Kind::Table(COUNTER),
        example: "counter = { name = \"sightings\", equals = \"truth\" }",
        doc: "A counter's value on all running hosts (or on those in `on`).",
    },
    Fact {
        fact: FactName::Event,
        name: "event",
        kind: Kind::Event,
        example: "event = { down = \"b\", on = \"a\" }",
        doc: "Something happened.",
    },
    Fact {
        fact: FactName::Metric,
        name: "metric",
        kind: Kind::Table(METRIC),
        example: "metric = { name = \"firedrill_cluster_frames_rejected_total\", reason = \"mac\", \
                  at_least = 1 }",
        doc: "A metric's value on all running hosts (or on those in `on`), as /metrics shows it.",
    },
];

/// What the value of an event names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// The member it is about; `on` says who saw it.
    Member,
    /// The host it happened on.
    Host,
    /// A reason; `on` says where.
    Reason,
}

/// An event, as users know it.
#[derive(Debug, Clone, Copy)]
pub struct Event {
    /// Its word.
    pub name: &'static str,
    /// Which; for `rejected`, with any reason.
    pub kind: EventKind,
    /// What its value names.
    pub about: About,
    /// A piece to copy.
    pub example: &'static str,
    /// When it happens.
    pub doc: &'static str,
}

const fn event(
    name: &'static str,
    kind: EventKind,
    about: About,
    example: &'static str,
    doc: &'static str,
) -> Event {
    Event { name, kind, about, example, doc }
}

/// Why an inbound connection is closed, in words.
const CLOSE_REASONS: &[(&str, Ending)] = &[
    ("oversize", Ending::Closed(CloseReason::Oversize)),
    ("strikes", Ending::Closed(CloseReason::Strikes)),
    ("idle", Ending::Closed(CloseReason::Idle)),
    ("displaced", Ending::Closed(CloseReason::Displaced)),
    ("full", Ending::Closed(CloseReason::Full)),
];

/// Why an outbound connection is given up, in words.
const RESET_REASONS: &[(&str, Ending)] = &[
    ("dial_timeout", Ending::Reset(ResetReason::DialTimeout)),
    ("write_timeout", Ending::Reset(ResetReason::WriteTimeout)),
    ("peer_silent", Ending::Reset(ResetReason::PeerSilent)),
];

impl Event {
    /// What its optional `reason` may be; none where it takes no `reason`.
    pub fn reasons(&self) -> &'static [(&'static str, Ending)] {
        if self.kind == EventKind::InboundClosed {
            CLOSE_REASONS
        } else if self.kind == EventKind::LinkReset {
            RESET_REASONS
        } else {
            &[]
        }
    }
}

/// The word for an ending.
pub fn ending_name(ending: Ending) -> &'static str {
    let mut known = CLOSE_REASONS.iter().chain(RESET_REASONS);
    known.find(|(_, known)| *known == ending).map_or("", |(name, _)| name)
}

/// Every event.
pub const EVENTS: &[Event] = &[
    event("started", EventKind::Started, About::Host, "{ started = \"a\" }", "A node booted."),
    event("up", EventKind::Up, About::Member, "{ up = \"b\", on = \"a\" }", "A member entered a view."),
    event(
        "suspect",
        EventKind::Suspect,
        About::Member,
        "{ suspect = \"b\", on = \"a\" }",
        "A member missed two pushes.",
    ),
    event(
        "recovered",
        EventKind::Recovered,
        About::Member,
        "{ recovered = \"b\", on = \"a\" }",
        "A suspect was heard again.",
    ),
    event(
        "down",
        EventKind::Down,
        About::Member,
        "{ down = \"b\", on = \"a\" }",
        "A member fell silent and left a view.",
    ),
    event(
        "left",
        EventKind::Left,
        About::Member,
        "{ left = \"b\", on = \"a\" }",
        "A member said goodbye and left a view.",
    ),
    event(
        "converted",
        EventKind::Converted,
        About::Member,
        "{ converted = \"b\", on = \"a\" }",
        "A member silent for a tombstone window was buried.",
    ),
    event(
        "reaped",
        EventKind::Reaped,
        About::Member,
        "{ reaped = \"b\", on = \"a\" }",
        "A tombstone expired; the member is forgotten but for a note.",
    ),
    event(
        "return_answered",
        EventKind::ReturnAnswered,
        About::Member,
        "{ return_answered = \"b\", on = \"a\" }",
        "A member refused by the reap memory was told how to return.",
    ),
    event(
        "refuted",
        EventKind::Refuted,
        About::Host,
        "{ refuted = \"b\" }",
        "A node refuted a record about itself.",
    ),
    event(
        "duplicate_node_id",
        EventKind::DuplicateNodeId,
        About::Member,
        "{ duplicate_node_id = \"a\", on = \"b\" }",
        "A sign that two hosts use one id.",
    ),
    event(
        "unsendable",
        EventKind::Unsendable,
        About::Host,
        "{ unsendable = \"a\" }",
        "A node's document outgrew the frame.",
    ),
    event(
        "round_late",
        EventKind::RoundLate,
        About::Host,
        "{ round_late = \"b\" }",
        "A node's round ran more than a suspicion timeout late.",
    ),
    event(
        "rejected",
        EventKind::Rejected(Reject::Mac),
        About::Reason,
        "{ rejected = \"replay\", on = \"a\" }",
        "A frame was rejected by this check of the receive path.",
    ),
    event(
        "link_reset",
        EventKind::LinkReset,
        About::Host,
        "{ link_reset = \"a\", reason = \"dial_timeout\" }",
        "A node gave an outbound connection up, for this reason or for any.",
    ),
    event(
        "inbound_closed",
        EventKind::InboundClosed,
        About::Host,
        "{ inbound_closed = \"a\", reason = \"idle\" }",
        "A node closed an inbound connection, for this reason or for any.",
    ),
];
