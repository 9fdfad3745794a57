//! The facts of an expectation, and the events that facts and steps speak of.

use firedrill_core::io::{CloseReason, ResetReason};
use firedrill_core::wire::Reject;

use super::{Key, Kind, key, need};
use crate::scenario::model::{AuditFigure, Ending, EventKind, RoleName};

/// A fact's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is described in FACTS, one by one")]
pub enum FactName {
    View,
    Counter,
    Event,
    Metric,
    Lease,
    Role,
    SealedBy,
    Decision,
    Audit,
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
    key("decision", Kind::Text, "Which series of a metric that has decisions."),
    EQUALS_NUMBER,
    AT_LEAST,
    AT_MOST,
    ON,
];

/// The keys of `lease`.
pub const LEASE: &[Key] = &[
    key("holder", Kind::Host, "Who holds it; whoever when absent."),
    key("epoch", EPOCH, "At which epoch; any when absent."),
    ON,
];
/// The keys of `role`.
pub const ROLE: &[Key] = &[need("is", Kind::Choice(ROLE_WORDS), "Which."), ON];
/// The keys of `decision`.
pub const DECISION: &[Key] = &[need("is", Kind::Decision, "Which."), ON];
/// The keys of `audit`.
pub const AUDIT: &[Key] = &[
    need("figure", Kind::Choice(AUDIT_WORDS), "Which figure of the audit."),
    key("equals", Kind::NumberOrAmount, "Exactly this."),
    key("at_least", Kind::NumberOrAmount, "No less than this."),
    key("at_most", Kind::NumberOrAmount, "No more than this."),
    ON,
];

/// What an epoch is.
const EPOCH: Kind = Kind::Count(0, i64::MAX.unsigned_abs());

/// Roles, in the order of `ROLES`.
const ROLE_WORDS: &[&str] = &["issuer", "replica"];
/// The roles that `ROLE_WORDS` name.
pub(in crate::scenario) const ROLES: [RoleName; 2] = [RoleName::Issuer, RoleName::Replica];

/// The word for a role.
pub fn role_name(role: RoleName) -> &'static str {
    let mut known = ROLES.into_iter().zip(ROLE_WORDS);
    known.find(|(known, _)| *known == role).map_or("", |(_, word)| word)
}

/// Figures of the audit, in the order of `AUDIT_FIGURES`.
const AUDIT_WORDS: &[&str] = &[
    "rows",
    "distinct_keys",
    "duplicates",
    "superseded",
    "rows_below_tip",
    "elapsed_sum",
    "amount_sum",
    "span",
    "forfeited",
    "overlap",
    "under_issued",
    "supply",
];
/// The figures that `AUDIT_WORDS` name.
pub(in crate::scenario) const AUDIT_FIGURES: [AuditFigure; 12] = [
    AuditFigure::Rows,
    AuditFigure::DistinctKeys,
    AuditFigure::Duplicates,
    AuditFigure::Superseded,
    AuditFigure::RowsBelowTip,
    AuditFigure::ElapsedSum,
    AuditFigure::AmountSum,
    AuditFigure::Span,
    AuditFigure::Forfeited,
    AuditFigure::Overlap,
    AuditFigure::UnderIssued,
    AuditFigure::Supply,
];

/// The word for a figure of the audit.
pub fn figure_name(figure: AuditFigure) -> &'static str {
    let mut known = AUDIT_FIGURES.into_iter().zip(AUDIT_WORDS);
    known.find(|(known, _)| *known == figure).map_or("", |(_, word)| word)
}

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
    Fact {
        fact: FactName::Lease,
        name: "lease",
        kind: Kind::Table(LEASE),
        example: "lease = { holder = \"b\", epoch = 1 }",
        doc: "Who holds the lease and at which epoch (or one of both), as the spines of all running hosts (or of \
              those in `on`) say.",
    },
    Fact {
        fact: FactName::Role,
        name: "role",
        kind: Kind::Table(ROLE),
        example: "role = { on = \"a\", is = \"replica\" }",
        doc: "The role of all running hosts (or of those in `on`).",
    },
    Fact {
        fact: FactName::SealedBy,
        name: "sealed_by",
        kind: Kind::Host,
        example: "sealed_by = \"a\"",
        doc: "A row of this host became durable there. Short for event = { sealed = \"a\" }.",
    },
    Fact {
        fact: FactName::Decision,
        name: "decision",
        kind: Kind::Table(DECISION),
        example: "decision = { on = \"c\", is = \"successor_is_b\" }",
        doc: "What the last election of all running hosts (or of those in `on`) decided: disabled, is_holder, \
              boot_grace, spine_empty_bootstrap_only, field_of_one, tip_advancing, holder_reachable, spine_behind, \
              no_fit_candidate, successor_is (with _HOST for a certain one), no_majority or promote.",
    },
    Fact {
        fact: FactName::Audit,
        name: "audit",
        kind: Kind::Table(AUDIT),
        example: "audit = { figure = \"under_issued\", at_most = 54 }",
        doc: "A figure of what the durable rows of all running hosts (or of those in `on`) add up to. All count \
              rows or windows but amount_sum and supply, which are amounts.",
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

impl Event {
    /// Whether it may say an `epoch`.
    pub const fn has_epoch(&self) -> bool {
        matches!(
            self.kind,
            EventKind::Promoted
                | EventKind::PromotionLapsed
                | EventKind::Demoted
                | EventKind::Sealed
                | EventKind::LeaseMoved
                | EventKind::FenceHeld
        )
    }

    /// Whether it may say how many windows were `elapsed`.
    pub const fn has_elapsed(&self) -> bool {
        matches!(self.kind, EventKind::Sealed)
    }
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
    event(
        "promoted",
        EventKind::Promoted,
        About::Host,
        "{ promoted = \"b\", epoch = 1 }",
        "A node was elected: it is issuer from now on, at this epoch or any.",
    ),
    event(
        "promotion_lapsed",
        EventKind::PromotionLapsed,
        About::Host,
        "{ promotion_lapsed = \"b\" }",
        "A node gave up a promotion that it could not seal.",
    ),
    event(
        "demoted",
        EventKind::Demoted,
        About::Host,
        "{ demoted = \"a\" }",
        "A node stood down: another holds the lease.",
    ),
    event(
        "sealed",
        EventKind::Sealed,
        About::Host,
        "{ sealed = \"b\", epoch = 1, elapsed = 8 }",
        "A row of a node became durable, of this epoch and over this many windows, or any.",
    ),
    event(
        "silent",
        EventKind::Silent,
        About::Host,
        "{ silent = \"b\" }",
        "A node saw no new row for longer than `silence_z`.",
    ),
    event(
        "lease_moved",
        EventKind::LeaseMoved,
        About::Member,
        "{ lease_moved = \"b\", on = \"c\" }",
        "A node saw a member take the lease, at this epoch or any.",
    ),
    event(
        "tip_ahead_of_clock",
        EventKind::TipAheadOfClock,
        About::Host,
        "{ tip_ahead_of_clock = \"a\" }",
        "A node cannot seal for longer than `silence_z`: its clock is that far behind the tip.",
    ),
    event(
        "clock_ahead",
        EventKind::ClockAhead,
        About::Host,
        "{ clock_ahead = \"a\" }",
        "A node found its clock more than `silence_z` ahead of the others.",
    ),
    event(
        "disk_refused",
        EventKind::DiskRefused,
        About::Host,
        "{ disk_refused = \"a\" }",
        "A disk refuses writes.",
    ),
    event(
        "fence_held",
        EventKind::FenceHeld,
        About::Host,
        "{ fence_held = \"a\" }",
        "A majority supports a node.",
    ),
    event("fence_lost", EventKind::FenceLost, About::Host, "{ fence_lost = \"a\" }", "It no longer does."),
];
