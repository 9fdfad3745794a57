//! `[[expect]]`: what must hold, and when.

use std::time::Duration;

use super::catalog::{self, Kind};
use super::document::{Entry, Table};
use super::facts;
use super::fields::{self, Fields, list, suggestion};
use super::model::{Expect, Fact, Moment, Span, StepIx, Window};
use super::report::Problems;
use super::scope::Scope;
use super::values::{self, words};

/// Keys that say when; exactly one stands in an expectation.
const WINDOWS: [&str; 5] = ["by", "always", "never", "at_end", "sometimes"];

/// Reads every expectation. `earliest` holds, per step, the earliest moment it can fire.
pub(super) fn expects(
    top: &Fields<'_>,
    scope: &Scope<'_>,
    earliest: &[Duration],
    problems: &mut Problems,
) -> Vec<Expect> {
    let tables = top.tables("expect", problems);
    tables.into_iter().filter_map(|(span, table)| expect(table, span, scope, earliest, problems)).collect()
}

fn expect(
    table: &Table,
    span: Span,
    scope: &Scope<'_>,
    earliest: &[Duration],
    problems: &mut Problems,
) -> Option<Expect> {
    let before = problems.len();
    let facts: Vec<&'static str> =
        catalog::FACTS.iter().map(|fact| fact.name).chain(catalog::LATER_FACTS.iter().copied()).collect();
    let fields = Fields::open_with(table, catalog::EXPECT, &facts, "an expectation", span, problems);
    let typo = problems.len() > before;
    let from = fields.entry("from").and_then(|entry| moment(entry, scope, problems));
    let beside: Vec<&Entry> =
        table.entries.iter().filter(|entry| facts.contains(&entry.key.as_str())).collect();
    let given: Vec<&Entry> = WINDOWS.iter().filter_map(|name| fields.entry(name)).collect();
    let (window, fact) = match given.as_slice() {
        [] if typo => return None,
        [] => {
            problems
                .add(
                    span,
                    "an expectation does not say when",
                    "no `by`, `always`, `never`, `at_end` or `sometimes`",
                )
                .help(
                    "write for example: by = \"30s\" beside the fact, or at_end = { view = [\"a\", \"b\"] }",
                );
            return None;
        }
        [first, second, ..] => {
            problems
                .add(second.key_span, "an expectation says when twice", "the second")
                .also(first.key_span, "the first")
                .help("write two expectations");
            return None;
        }
        [only] if only.key == "by" => {
            let by = fields.duration("by", problems);
            scope.within_limit(by, only.node.span, "`by`", problems);
            let fact = one_fact(&beside, span, typo, scope, problems);
            (Window::By(by?), fact)
        }
        [only] => (window(&only.key)?, inner(only, &beside, scope, problems)),
    };
    order(&fields, window, from, earliest, problems);
    let fact = fact?;
    if window == Window::Always && fact.is_event() {
        problems
            .add(given[0].key_span, "an event happens, it does not last", "`always` says nothing of an event")
            .help("write `sometimes` for at least once, `never` for not at all");
        return None;
    }
    Some(Expect { window, from, fact, span })
}

fn window(name: &str) -> Option<Window> {
    match name {
        "always" => Some(Window::Always),
        "never" => Some(Window::Never),
        "at_end" => Some(Window::AtEnd),
        "sometimes" => Some(Window::Sometimes),
        _ => None,
    }
}

/// The fact inside `always = { … }` and its like.
fn inner(window: &Entry, beside: &[&Entry], scope: &Scope<'_>, problems: &mut Problems) -> Option<Fact> {
    if let Some(fact) = beside.first() {
        problems
            .add(fact.key_span, format!("the fact stands beside `{}`, not in it", window.key), "move this")
            .help(format!("write {} = {{ {} = … }}; only `by` has its fact beside it", window.key, fact.key));
        return None;
    }
    let table = fields::entry_table(window, Kind::Fact, problems)?;
    let mut found = Vec::new();
    let mut typo = false;
    for entry in &table.entries {
        let known = || catalog::FACTS.iter().map(|fact| fact.name);
        if known().chain(catalog::LATER_FACTS.iter().copied()).any(|name| name == entry.key) {
            found.push(entry);
        } else {
            typo = true;
            problems
                .add(entry.key_span, format!("unknown fact `{}`", entry.key), "not a fact")
                .help(suggestion(&entry.key, known, "the facts"));
        }
    }
    one_fact(&found, window.key_span, typo, scope, problems)
}

fn one_fact(
    found: &[&Entry],
    place: Span,
    typo: bool,
    scope: &Scope<'_>,
    problems: &mut Problems,
) -> Option<Fact> {
    match found {
        [] if typo => None,
        [] => {
            problems
                .add(place, "an expectation states no fact", "no fact")
                .help(format!("the facts are {}", list(catalog::FACTS.iter().map(|fact| fact.name))));
            None
        }
        [only] => match catalog::FACTS.iter().find(|fact| fact.name == only.key) {
            Some(fact) => facts::fact(fact, only, scope, problems),
            None => {
                problems
                    .add(
                        only.key_span,
                        format!("the fact `{}` arrives with a later version", only.key),
                        "not known yet",
                    )
                    .help(format!(
                        "this version knows {}",
                        list(catalog::FACTS.iter().map(|fact| fact.name))
                    ));
                None
            }
        },
        [first, second, ..] => {
            problems
                .add(second.key_span, "an expectation states two facts", "the second")
                .also(first.key_span, "the first")
                .help("write two expectations");
            None
        }
    }
}

/// A time, which begins with a digit, or a step's id, which begins with a letter.
fn moment(entry: &Entry, scope: &Scope<'_>, problems: &mut Problems) -> Option<Moment> {
    let text = fields::text(entry, Kind::Moment, problems)?;
    if !text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return match values::duration(text) {
            Ok(at) => {
                scope.within_limit(Some(at), entry.node.span, "`from`", problems);
                Some(Moment::At(at))
            }
            Err(why) => {
                fields::wrong(entry, Kind::Moment, &why, problems);
                None
            }
        };
    }
    step(text, entry, scope, problems).map(Moment::Step)
}

/// The step of this id.
pub(super) fn step(id: &str, entry: &Entry, scope: &Scope<'_>, problems: &mut Problems) -> Option<StepIx> {
    let found = scope.steps.get(id).map(|(step, _)| *step);
    if found.is_none() {
        let known = || scope.steps.keys().map(String::as_str);
        let help = match scope.steps.is_empty() {
            true => "no step has an id; add for example id = \"cut\" to the step that is meant".to_owned(),
            false => suggestion(id, known, "the ids"),
        };
        problems.add(entry.node.span, format!("no step has the id `{id}`"), "unknown").help(help);
    }
    found
}

/// Reports windows that close before they open.
fn order(
    fields: &Fields<'_>,
    window: Window,
    from: Option<Moment>,
    earliest: &[Duration],
    problems: &mut Problems,
) {
    let (Some(from), Some(entry)) = (from, fields.entry("from")) else { return };
    match window {
        Window::AtEnd => {
            problems
                .add(
                    entry.key_span,
                    "`at_end` is judged once, after the liveness phase",
                    "`from` says nothing here",
                )
                .help("leave `from` out");
        }
        Window::By(by) => {
            let opens = match from {
                Moment::At(at) => Some(at),
                Moment::Step(step) => earliest.get(step.0).copied(),
            };
            if let Some(opens) = opens.filter(|opens| *opens >= by) {
                problems
                    .add(
                        entry.node.span,
                        format!("this must hold by {}, but is judged from {} on", words(by), words(opens)),
                        "opens after it has closed",
                    )
                    .help("`by` counts from the start of the run, not from `from`");
            }
        }
        Window::Always | Window::Never | Window::Sometimes => {}
    }
}
