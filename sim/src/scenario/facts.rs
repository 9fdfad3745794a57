//! Facts and events: what expectations demand and what steps wait for.

use firedrill_core::id::CounterName;
use firedrill_core::issuance::window::Epoch;
use firedrill_core::metrics::{IssuanceMetrics, Metrics};
use firedrill_core::wire::Reject;

use super::catalog::{self, About, FactName, Kind};
use super::document::{Entry, Table, Value};
use super::fields::{self, Fields, list, suggestion};
use super::issuance;
use super::model::{Bound, Ending, EventKind, EventPattern, Fact, HostIx, Span};
use super::report::Problems;
use super::scope::Scope;

/// Reads one fact.
pub(super) fn fact(
    fact: &catalog::Fact,
    entry: &Entry,
    scope: &Scope<'_>,
    problems: &mut Problems,
) -> Option<Fact> {
    if let FactName::Lease | FactName::Role | FactName::SealedBy | FactName::Decision | FactName::Audit =
        fact.fact
        && issuance::is_missing(fact.name, entry.key_span, scope, problems)
    {
        return None;
    }
    match fact.fact {
        FactName::View => view(entry, scope, problems),
        FactName::Event => {
            let table = fields::entry_table(entry, Kind::Event, problems)?;
            event(table, entry.key_span, scope, problems).map(Fact::Event)
        }
        FactName::Counter => counter(entry, scope, problems),
        FactName::Metric => metric(entry, scope, problems),
        FactName::Lease => issuance::lease(entry, scope, problems),
        FactName::Role => issuance::role(entry, scope, problems),
        FactName::SealedBy => {
            let event = catalog::EVENTS.iter().find(|event| event.kind == EventKind::Sealed)?;
            pattern(event, entry, None, scope, problems).map(Fact::Event)
        }
        FactName::Decision => issuance::decision(entry, scope, problems),
        FactName::Audit => issuance::audit(entry, scope, problems),
    }
}

fn view(entry: &Entry, scope: &Scope<'_>, problems: &mut Problems) -> Option<Fact> {
    let (on, members) = match &entry.node.value {
        Value::Table(table) => {
            let fields = Fields::open(table, catalog::VIEW, "`view`", entry.key_span, problems);
            (on(&fields, scope, problems), fields.entry("members")?)
        }
        Value::List(_) => (Some(Vec::new()), entry),
        Value::Text(_) | Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Date => {
            fields::mistyped(entry, Kind::View, problems);
            return None;
        }
    };
    if matches!(members.node.value, Value::Text(_)) {
        fields::mistyped(members, Kind::View, problems);
        return None;
    }
    let mut ids: Vec<_> =
        scope.hosts(members, problems)?.into_iter().filter_map(|host| scope.id(host)).collect();
    ids.sort();
    ids.dedup();
    Some(Fact::View { on: on?, members: ids })
}

fn counter(entry: &Entry, scope: &Scope<'_>, problems: &mut Problems) -> Option<Fact> {
    let table = fields::entry_table(entry, Kind::Table(catalog::COUNTER), problems)?;
    let fields = Fields::open(table, catalog::COUNTER, "`counter`", entry.key_span, problems);
    let on = on(&fields, scope, problems);
    let value = bound(&fields, "counter", entry.key_span, problems);
    let name = fields.text("name", problems)?;
    if !scope.counters.iter().any(|counter| counter == name) {
        let known = || scope.counters.iter().map(String::as_str);
        let help = match scope.counters.is_empty() {
            true => "add a [[workload]] that increments it".to_owned(),
            false => suggestion(name, known, "the counters"),
        };
        let span = fields.entry("name")?.node.span;
        problems.add(span, format!("no workload increments the counter `{name}`"), "always 0").help(help);
    }
    Some(Fact::Counter { on: on?, name: CounterName::new(name).ok()?, value: value? })
}

fn metric(entry: &Entry, scope: &Scope<'_>, problems: &mut Problems) -> Option<Fact> {
    let table = fields::entry_table(entry, Kind::Table(catalog::METRIC), problems)?;
    let fields = Fields::open(table, catalog::METRIC, "`metric`", entry.key_span, problems);
    let on = on(&fields, scope, problems);
    let value = bound(&fields, "metric", entry.key_span, problems);
    let name = fields.text("name", problems)?;
    let label = label(&fields, name, problems)?;
    Some(Fact::Metric { on: on?, name: name.to_owned(), label, value: value? })
}

/// The label that picks one series of the metric: demanded where it has several, refused where it has none.
fn label(fields: &Fields<'_>, name: &str, problems: &mut Problems) -> Option<Option<(String, String)>> {
    let (metrics, issuance) = (Metrics::default(), IssuanceMetrics::default());
    let series = || metrics.series().chain(issuance.series());
    let place = fields.entry("name")?.node.span;
    let labels: Vec<_> = series().filter(|series| series.name == name).map(|series| series.label).collect();
    if labels.is_empty() {
        let mut names: Vec<&'static str> = series().map(|series| series.name).collect();
        names.dedup();
        problems.add(place, format!("unknown metric `{name}`"), "no node exports it").help(suggestion(
            name,
            || names.iter().copied(),
            "the metrics",
        ));
        return None;
    }
    let wanted = labels.iter().flatten().next().map(|(label, _)| *label);
    for other in ["reason", "table", "decision"] {
        if let Some(entry) = fields.entry(other).filter(|_| wanted != Some(other)) {
            problems
                .add(entry.key_span, format!("`{name}` has no `{other}`"), "not a label of this metric")
                .help("leave it out");
        }
    }
    let Some(wanted) = wanted else { return Some(None) };
    let known = || labels.iter().flatten().map(|(_, value)| *value);
    if fields.entry(wanted).is_none() {
        problems
            .add(place, format!("`{name}` has a series for each {wanted}"), format!("`{wanted}` is missing"))
            .help(format!("add `{wanted}`: one of {}", list(known())));
        return None;
    }
    let value = fields.text(wanted, problems)?;
    if !known().any(|known| known == value) {
        let span = fields.entry(wanted)?.node.span;
        problems.add(span, format!("`{name}` has no {wanted} `{value}`"), "no such series").help(suggestion(
            value,
            known,
            "the choices",
        ));
        return None;
    }
    Some(Some((wanted.to_owned(), value.to_owned())))
}

/// The hosts of `on`; all running ones, an empty list, when absent.
pub(super) fn on(fields: &Fields<'_>, scope: &Scope<'_>, problems: &mut Problems) -> Option<Vec<HostIx>> {
    match fields.entry("on") {
        Some(entry) => scope.hosts(entry, problems),
        None => Some(Vec::new()),
    }
}

/// Exactly one of `equals`, `at_least`, `at_most`.
fn bound(fields: &Fields<'_>, what: &str, place: Span, problems: &mut Problems) -> Option<Bound> {
    let only = one_bound(fields, what, place, problems)?;
    match (only.key.as_str(), &only.node.value) {
        ("equals", Value::Text(text)) if text == "truth" && what == "counter" => Some(Bound::Truth),
        ("equals", Value::Text(text)) if what == "counter" => {
            fields::wrong(only, Kind::NumberOrTruth, &format!("{text:?} is no number"), problems);
            None
        }
        ("at_least", _) => fields.count("at_least", problems).map(Bound::AtLeast),
        ("at_most", _) => fields.count("at_most", problems).map(Bound::AtMost),
        _ => fields.count("equals", problems).map(Bound::Equals),
    }
}

/// The one bound that is given.
pub(super) fn one_bound<'t>(
    fields: &Fields<'t>,
    what: &str,
    place: Span,
    problems: &mut Problems,
) -> Option<&'t Entry> {
    let given: Vec<&'t Entry> =
        ["equals", "at_least", "at_most"].iter().filter_map(|name| fields.entry(name)).collect();
    match given.as_slice() {
        [] => {
            problems
                .add(place, format!("`{what}` says nothing about the value"), "no bound")
                .help("add `equals`, `at_least` or `at_most`");
            None
        }
        [only] => Some(only),
        [first, second, ..] => {
            problems
                .add(second.key_span, format!("`{what}` has more than one bound"), "one too many")
                .also(first.key_span, "the first")
                .help("write two expectations");
            None
        }
    }
}

/// What may stand beside an event's name.
const BESIDE: [&str; 4] = ["on", "reason", "epoch", "elapsed"];

/// Reads `{ EVENT = WHO, on = WHERE, reason = WHY, epoch = NUMBER }`.
pub(super) fn event(
    table: &Table,
    place: Span,
    scope: &Scope<'_>,
    problems: &mut Problems,
) -> Option<EventPattern> {
    let known = |name: &str| catalog::EVENTS.iter().find(|event| event.name == name);
    let mut found = None;
    let mut refused = false;
    for entry in table.entries.iter().filter(|entry| !BESIDE.contains(&entry.key.as_str())) {
        match (known(&entry.key), found) {
            (Some(event), None) => found = Some((event, entry)),
            (Some(_), Some((_, first))) => {
                let first: &Entry = first;
                problems
                    .add(entry.key_span, "an event pattern names two events", "the second")
                    .also(first.key_span, "the first")
                    .help("one event at a time");
                refused = true;
            }
            (None, _) => {
                unknown_event(entry, problems);
                refused = true;
            }
        }
    }
    let Some((event, entry)) = found else {
        if !refused {
            problems
                .add(place, "an event pattern names no event", "no event")
                .help(format!("the events are {}", list(catalog::EVENTS.iter().map(|event| event.name))));
        }
        return None;
    };
    let reason = ending(event, table.get("reason"), problems);
    let epoch = number(event, event.has_epoch(), table.get("epoch"), problems);
    let elapsed = number(event, event.has_elapsed(), table.get("elapsed"), problems);
    let pattern = pattern(event, entry, table.get("on"), scope, problems)?;
    let (reason, epoch, elapsed) = (reason?, epoch?.map(Epoch), elapsed?);
    (!refused).then_some(EventPattern { reason, epoch, elapsed, ..pattern })
}

/// An optional number beside an event that takes one; `None` when it was refused.
fn number(
    event: &catalog::Event,
    takes_it: bool,
    entry: Option<&Entry>,
    problems: &mut Problems,
) -> Option<Option<u64>> {
    let Some(entry) = entry else { return Some(None) };
    if !takes_it {
        problems
            .add(entry.key_span, format!("`{}` has no `{}`", event.name, entry.key), "one too many")
            .help("leave it out");
        return None;
    }
    let number = match entry.node.value {
        Value::Int(number) => number.and_then(|number| u64::try_from(number).ok()),
        Value::Text(_)
        | Value::Float(_)
        | Value::Bool(_)
        | Value::Date
        | Value::List(_)
        | Value::Table(_) => None,
    };
    if number.is_none() {
        fields::mistyped(entry, Kind::Count(0, i64::MAX.unsigned_abs()), problems);
    }
    number.map(Some)
}

/// The optional `reason` of an event about a connection; `None` when it was refused.
fn ending(event: &catalog::Event, reason: Option<&Entry>, problems: &mut Problems) -> Option<Option<Ending>> {
    let Some(entry) = reason else { return Some(None) };
    let known = || event.reasons().iter().map(|(name, _)| *name);
    if event.reasons().is_empty() {
        let with = catalog::EVENTS.iter().filter(|event| !event.reasons().is_empty());
        let help = match event.about {
            About::Reason => format!("`{}` names its reason itself: {}", event.name, event.example),
            About::Member | About::Host => {
                format!("leave it out; events with a reason are {}", list(with.map(|event| event.name)))
            }
        };
        problems.add(entry.key_span, format!("`{}` has no `reason`", event.name), "one too many").help(help);
        return None;
    }
    let value = fields::text(entry, Kind::Text, problems)?;
    let ending = event.reasons().iter().find(|(name, _)| *name == value).map(|(_, ending)| *ending);
    if ending.is_none() {
        let what = format!("`{}` has no reason `{value}`", event.name);
        problems.add(entry.node.span, what, "no such reason").help(suggestion(value, known, "the reasons"));
    }
    ending.map(Some)
}

fn unknown_event(entry: &Entry, problems: &mut Problems) {
    if catalog::LATER_EVENTS.contains(&entry.key.as_str()) {
        problems
            .add(
                entry.key_span,
                format!("the event `{}` arrives with a later version", entry.key),
                "not known yet",
            )
            .help(format!("this version knows {}", list(catalog::EVENTS.iter().map(|event| event.name))));
    } else {
        let known = || catalog::EVENTS.iter().map(|event| event.name).chain(BESIDE);
        problems
            .add(entry.key_span, format!("unknown event `{}`", entry.key), "nothing of this name happens")
            .help(suggestion(&entry.key, known, "the events"));
    }
}

fn pattern(
    event: &catalog::Event,
    entry: &Entry,
    on: Option<&Entry>,
    scope: &Scope<'_>,
    problems: &mut Problems,
) -> Option<EventPattern> {
    let seen_on = match (on, event.about) {
        (Some(on), About::Host) => {
            problems
                .add(on.key_span, format!("`{}` has no `on`", event.name), "one too many")
                .help(format!("`{}` names the host it happens on: {}", event.name, event.example));
            return None;
        }
        (Some(on), About::Member | About::Reason) => {
            let name = fields::text(on, Kind::Host, problems);
            name.and_then(|name| scope.host(name, on.node.span, problems)).map(Some)
        }
        (None, _) => Some(None),
    };
    let kind = if event.about == About::Reason { Kind::Text } else { Kind::Host };
    let value = fields::text(entry, kind, problems)?;
    let pattern = |kind, subject, on: Option<_>| {
        on.map(|on| EventPattern { kind, subject, on, reason: None, epoch: None, elapsed: None })
    };
    match event.about {
        About::Reason => {
            let known = || Reject::ALL.into_iter().map(Reject::name);
            let reason = Reject::ALL.into_iter().find(|reason| reason.name() == value);
            if reason.is_none() {
                problems
                    .add(entry.node.span, format!("no frame is rejected as `{value}`"), "no such reason")
                    .help(suggestion(value, known, "the reasons"));
            }
            pattern(EventKind::Rejected(reason?), None, seen_on)
        }
        About::Member | About::Host if value == "any" => pattern(event.kind, None, seen_on),
        About::Member => {
            let host = scope.host(value, entry.node.span, problems)?;
            pattern(event.kind, Some(scope.id(host)?), seen_on)
        }
        About::Host => {
            let host = scope.host(value, entry.node.span, problems)?;
            pattern(event.kind, None, Some(Some(host)))
        }
    }
}
