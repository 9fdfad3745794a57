//! A replay for people: whether it is the recorded run, where it parts from it, what that means, what to do.
//!
//! A [`Page`] tells one in full, a [`Line`] one of several.

use std::fmt::{self, Display};

use firedrill_sim::artifact::Artifact;
use firedrill_sim::outcome::{Applied, Failure, Outcome};
use firedrill_sim::replay::{Difference, EventDifference, FaultDifference, Finding};

use super::style::{BAD, FAINT, GOOD, STRONG, count, moment, paint};
use super::wrap::hanging;
use crate::command::replay::{Change, Replayed};

/// Cells before the value of a labelled line.
const INDENT: usize = 14;
/// The version that replays.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// One replay, told in full.
#[derive(Debug)]
pub(crate) struct Page<'a> {
    /// What came of it.
    pub(crate) replayed: &'a Replayed,
    /// Cells of the terminal.
    pub(crate) cells: usize,
}

/// One replay of several, on one line.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    /// What came of it.
    pub(crate) replayed: &'a Replayed,
}

impl Display for Page<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { replayed, cells } = *self;
        let outcome = &replayed.replay.outcome;
        let recorded = replayed.recorded.as_ref();
        writeln!(f, "{}", paint(STRONG, &outcome.scenario))?;
        let mut page = Lines { f, cells };
        page.line("run", &how(outcome, recorded))?;
        if let Some(recorded) = recorded {
            let path =
                if recorded.path.is_empty() { String::new() } else { format!(" from {}", recorded.path) };
            page.line(
                "recorded",
                &format!("by firedrill {}{path}, replayed by {VERSION}", recorded.firedrill),
            )?;
        }
        writeln!(page.f)?;
        match &replayed.replay.finding {
            Finding::Reproduced => reproduced(&mut page, replayed),
            Finding::Changed(difference) => changed(&mut page, replayed, difference),
            Finding::NotDeterministic(difference) => {
                let title = "NOT DETERMINISTIC: two runs of one drill differ";
                writeln!(page.f, "  {}", paint(BAD, title))?;
                writeln!(page.f)?;
                parted(&mut page, difference, ["one run", "the other"])?;
                let advice = "this is a bug of firedrill, or of code that reads a clock or iterates in no order; \
                              please report it with this file";
                page.advice(&[advice.to_owned()])
            }
        }
    }
}

impl Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let replayed = self.replayed;
        let (mark, style, verdict) = match &replayed.replay.finding {
            Finding::Reproduced => ("✓", GOOD, "reproduced".to_owned()),
            Finding::Changed(difference) => {
                ("✗", BAD, format!("changed: {}{}", became(difference), at(difference)))
            }
            Finding::NotDeterministic(difference) => {
                ("✗", BAD, format!("not deterministic{}", at(difference)))
            }
        };
        write!(f, "  {} {}  ", paint(style, mark), replayed.file.display())?;
        match &replayed.replay.finding {
            Finding::Reproduced => {
                let end = in_words(replayed.replay.outcome.failure().as_ref());
                writeln!(f, "{verdict}  {}", paint(FAINT, end))
            }
            Finding::Changed(_) | Finding::NotDeterministic(_) => writeln!(f, "{}", paint(style, verdict)),
        }
    }
}

/// Labelled lines of one width.
struct Lines<'p, 'f> {
    f: &'p mut fmt::Formatter<'f>,
    cells: usize,
}

impl Lines<'_, '_> {
    fn line(&mut self, label: &str, value: &str) -> fmt::Result {
        let label = paint(FAINT, format!("  {label:<width$}", width = INDENT - 2));
        writeln!(self.f, "{label}{}", hanging(value, INDENT, self.cells))
    }

    /// What to do, an item a line. An item that is a command stays whole, so that it can be pasted.
    fn advice(&mut self, items: &[String]) -> fmt::Result {
        writeln!(self.f)?;
        writeln!(self.f, "  {}", paint(STRONG, "what to do:"))?;
        for item in items {
            writeln!(self.f, "  - {}", hanging(item, 4, self.cells))?;
        }
        Ok(())
    }
}

fn reproduced(page: &mut Lines<'_, '_>, replayed: &Replayed) -> fmt::Result {
    let outcome = &replayed.replay.outcome;
    let compared = if replayed.recorded.is_some() { "as recorded" } else { "in two runs" };
    let title = paint(GOOD.bold(), "REPRODUCED");
    writeln!(page.f, "  {title}  fault for fault and event for event the same, {compared}")?;
    writeln!(page.f)?;
    page.line("end", &in_words(outcome.failure().as_ref()))?;
    failure(page, outcome)?;
    page.line("events", &count(outcome.trail.len() as u64))?;
    page.line("digest", &outcome.digest)?;
    if outcome.failure().is_none() {
        return Ok(());
    }
    let (program, file) = &replayed.words;
    if replayed.recorded.is_none() {
        return page.advice(&[format!("{program} explain {file}")]);
    }
    let guard = replayed.recorded.as_ref().and_then(|recorded| recorded.sabotage.as_ref());
    let repair = match guard {
        Some(guard) => {
            format!("nothing, if it was to show what the guard {guard} is for: it is off in this run")
        }
        None => "repair the code, and replay: the failure is then gone".to_owned(),
    };
    page.advice(&[repair, format!("{program} shrink {file}")])
}

fn changed(page: &mut Lines<'_, '_>, replayed: &Replayed, difference: &Difference) -> fmt::Result {
    writeln!(page.f, "  {}", paint(BAD, format!("CHANGED: {}", became(difference))))?;
    writeln!(page.f)?;
    page.line("then", &in_words(difference.failures.0.as_ref()))?;
    if let Some(told) = replayed.recorded.as_ref().and_then(|recorded| recorded.violation.as_ref()) {
        page.line("fact", &told.fact)?;
        page.line("but", &told.contradiction)?;
    }
    page.line("now", &in_words(difference.failures.1.as_ref()))?;
    failure(page, &replayed.replay.outcome)?;
    writeln!(page.f)?;
    parted(page, difference, ["recorded", "now"])?;
    page.advice(&remedies(replayed, difference))
}

/// Why the run of now failed, with its two facts.
fn failure(page: &mut Lines<'_, '_>, outcome: &Outcome) -> fmt::Result {
    if let Some(violation) = &outcome.violation {
        page.line("invariant", violation.invariant)?;
        page.line("when", &format!("{} ({} µs)", moment(violation.at_us), violation.at_us))?;
        page.line("fact", &violation.fact)?;
        page.line("but", &violation.contradiction)?;
    }
    for missed in outcome.expectations.iter().filter(|expectation| !expectation.held) {
        page.line("expected", &missed.text)?;
        if let Some(seen) = &missed.seen {
            page.line("seen", seen)?;
        }
    }
    for step in &outcome.unfired_steps {
        page.line("never fired", step)?;
    }
    Ok(())
}

/// Where two runs part: the first fault that differs, else the first event; then the digests.
fn parted(page: &mut Lines<'_, '_>, difference: &Difference, sides: [&str; 2]) -> fmt::Result {
    let [one, other] = sides;
    if let Some(FaultDifference { index, one: first, other: second }) = &difference.fault {
        page.line("parted", &format!("fault {} of the schedule is the first that differs", index + 1))?;
        page.line(one, &fault(first.as_ref()))?;
        page.line(other, &fault(second.as_ref()))?;
    }
    if let Some(event) = &difference.event {
        page.line("parted", &event_in_words(event, sides))?;
        if let Some(happening) = &event.happening {
            let (at, node) = (moment(happening.at_us), &happening.node);
            page.line(
                "there, now",
                &format!("at {at} ({} µs), {node}: {}", happening.at_us, happening.text),
            )?;
        }
    }
    if difference.fault.is_none() && difference.event.is_none() {
        page.line("parted", "every fault and every event agree, what came of them does not")?;
    }
    page.line("digests", &format!("{} ({one})", difference.digests.0))?;
    page.line("", &format!("{} ({other})", difference.digests.1))
}

fn fault(applied: Option<&Applied>) -> String {
    applied.map_or_else(
        || "no further fault".to_owned(),
        |applied| format!("at {}, by {}: {}", moment(applied.at_us), applied.by, applied.fault),
    )
}

fn event_in_words(event: &EventDifference, [one, other]: [&str; 2]) -> String {
    let nodes = match (&event.one, &event.other) {
        (Some(first), Some(second)) if first == second => format!("on {first} in both"),
        (Some(first), Some(second)) => format!("on {first} ({one}), on {second} ({other})"),
        (Some(only), None) => format!("on {only} ({one}), over by then ({other})"),
        (None, Some(only)) => format!("over by then ({one}), on {only} ({other})"),
        (None, None) => "on no known node".to_owned(),
    };
    let number = |number: usize| count(u64::try_from(number).unwrap_or(u64::MAX));
    let (first, second) = event.events;
    format!(
        "event {} is the first that differs, of {} ({one}) and {} ({other}): {nodes}",
        number(event.index),
        number(first),
        number(second)
    )
}

/// What can be done about a change.
fn remedies(replayed: &Replayed, difference: &Difference) -> Vec<String> {
    let (program, file) = &replayed.words;
    let recorded = replayed.recorded.as_ref().map_or(VERSION, |recorded| recorded.firedrill.as_str());
    let mut items = match Change::of(difference) {
        Change::Gone => vec![
            "if the code was changed to repair this, it is repaired for this one run: keep the scenario of the \
             artifact as a drill, and play other seeds too"
                .to_owned(),
            "if not, the run has only taken another way past the fault: look at what differs first".to_owned(),
        ],
        Change::SameFailure => vec![
            "the fault is still there, reached by other events: work with this run from here".to_owned(),
            format!("{program} shrink {file}"),
        ],
        Change::OtherFailure | Change::Appeared => vec![
            "find out first whether a change of the code broke this: it is not what was recorded".to_owned(),
            format!("{program} shrink {file}"),
        ],
        Change::StillPasses => {
            vec!["nothing is broken; if the change of behaviour is meant, record the run anew".to_owned()]
        }
    };
    items.push(if recorded == VERSION {
        "recording and replay are of one version: the code was changed in between, or the file was edited"
            .to_owned()
    } else {
        format!("to see the recorded run itself, replay it with firedrill {recorded}")
    });
    items
}

/// What became of the failure.
fn became(difference: &Difference) -> String {
    let (recorded, now) = (difference.failures.0.as_ref(), difference.failures.1.as_ref());
    match Change::of(difference) {
        Change::Gone => format!("the recorded failure is gone ({})", name(recorded)),
        Change::SameFailure => format!("the same failure by another way ({})", name(now)),
        Change::OtherFailure => format!("another failure: {} in place of {}", name(now), name(recorded)),
        Change::Appeared => format!("it passed when recorded and fails now ({})", name(now)),
        Change::StillPasses => "it passes as recorded, by another way".to_owned(),
    }
}

/// Where it parts, for a line.
fn at(difference: &Difference) -> String {
    match (&difference.fault, &difference.event) {
        (Some(fault), _) => format!(", from fault {} on", fault.index + 1),
        (None, Some(event)) => {
            format!(", from event {} on", count(u64::try_from(event.index).unwrap_or(u64::MAX)))
        }
        (None, None) => String::new(),
    }
}

fn name(failure: Option<&Failure>) -> String {
    failure.map_or_else(|| "none".to_owned(), ToString::to_string)
}

/// How a run ended.
fn in_words(failure: Option<&Failure>) -> String {
    match failure {
        None => "it passed".to_owned(),
        Some(Failure::Invariant(oracle)) => format!("the invariant {oracle} broke"),
        Some(Failure::Expectation) => "an expectation did not hold".to_owned(),
        Some(Failure::StepNeverFired) => "a step never fired".to_owned(),
    }
}

/// Seed, engine, wire, ticks, guard.
fn how(outcome: &Outcome, recorded: Option<&Artifact>) -> String {
    let mut text = format!("seed {}, engine {}", outcome.seed, outcome.engine);
    if let Some(wire) = outcome.wire {
        text.push_str(&format!(", {wire} wire"));
    }
    if let Some(tick_ms) = outcome.tick_ms {
        text.push_str(&format!(", {tick_ms} ms ticks"));
    }
    if let Some(guard) = recorded.and_then(|recorded| recorded.sabotage.as_ref()) {
        text.push_str(&format!(", the guard {guard} off"));
    }
    text
}
