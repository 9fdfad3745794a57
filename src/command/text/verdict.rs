//! The end of a run: expectations, numbers, and the verdict with everything needed to act on it.
//!
//! A failure ends with the command that shows it again, as the last line and alone on it.

use std::fmt;
use std::time::Duration;

use firedrill_sim::outcome::{ExpectationResult, Numbers, Violation};

use super::caret;
use super::style::{BAD, FAINT, GOOD, STRONG, bytes, count, moment, paint, plural, ratio, span};
use super::wrap::hanging;
use crate::command::exit::Exit;
use crate::command::report::{Difference, Report, Twice};

/// Cells of the bar that shows convergence against its bound.
const BAR_CELLS: u64 = 24;
/// Cells before the value of a labelled line.
const INDENT: usize = 14;

/// Writes each expectation with its verdict.
pub(super) fn expectations(
    f: &mut fmt::Formatter<'_>,
    results: &[ExpectationResult],
    cells: usize,
) -> fmt::Result {
    if results.is_empty() {
        return Ok(());
    }
    writeln!(f)?;
    for result in results {
        let (mark, style) = if result.held { ("✓", GOOD) } else { ("✗", BAD) };
        let text = format!("{} (at {})", result.text, moment(result.at_us));
        writeln!(f, "  {} {}", paint(style, mark), hanging(&text, 4, cells))?;
        if let Some(seen) = &result.seen {
            writeln!(f, "    {}", paint(FAINT, hanging(&format!("seen: {seen}"), 4, cells)))?;
        }
    }
    Ok(())
}

/// Writes convergence, traffic and speed.
pub(super) fn numbers(f: &mut fmt::Formatter<'_>, report: &Report, cells: usize) -> fmt::Result {
    let numbers = &report.outcome.numbers;
    writeln!(f)?;
    let mut line = |label: &str, value: String| {
        writeln!(f, "{}{value}", paint(FAINT, format!("  {label:<width$}", width = INDENT - 2)))
    };
    line("converged", convergence(numbers))?;
    line(
        "frames",
        format!("{} delivered, {} lost", count(numbers.frames_delivered), count(numbers.frames_lost)),
    )?;
    line("sent", bytes(numbers.bytes_sent))?;
    if numbers.increments > 0 {
        line("increments", count(numbers.increments))?;
    }
    let simulated = Duration::from_micros(numbers.simulated_us);
    let speed = format!(
        "{} simulated in {}: {} × real time, {} events",
        span(simulated),
        span(report.real),
        ratio(simulated, report.real),
        count(numbers.events)
    );
    line("speed", hanging(&speed, INDENT, cells))?;
    line("digest", report.outcome.digest.clone())
}

fn convergence(numbers: &Numbers) -> String {
    let bound = numbers.convergence_bound_us;
    let bound_text = span(Duration::from_micros(bound));
    let Some(taken) = numbers.convergence_us else {
        return format!("{}, bound {bound_text}", paint(BAD, "not"));
    };
    let filled = taken.saturating_mul(BAR_CELLS).div_ceil(bound.max(1)).min(BAR_CELLS);
    let cells = |number: u64, cell: &str| (0..number).map(|_| cell).collect::<String>();
    let style = if taken <= bound { GOOD } else { BAD };
    format!(
        "{}  {}{}  bound {bound_text}",
        if taken == 0 { "at once".to_owned() } else { format!("in {}", span(Duration::from_micros(taken))) },
        paint(style, cells(filled, "━")),
        paint(FAINT, cells(BAR_CELLS - filled, "─")),
    )
}

/// Writes what the drill itself did not manage: steps that never fired, faults without effect.
pub(super) fn remarks(f: &mut fmt::Formatter<'_>, report: &Report, cells: usize) -> fmt::Result {
    let outcome = &report.outcome;
    if outcome.unfired_steps.is_empty() && outcome.ineffective_faults.is_empty() {
        return Ok(());
    }
    writeln!(f)?;
    for step in &outcome.unfired_steps {
        let text = hanging(&format!("never fired: {step}"), 4, cells);
        writeln!(f, "  {} {text}", paint(BAD, "✗"))?;
    }
    for fault in &outcome.ineffective_faults {
        let text = hanging(&format!("had no effect: {fault}"), 4, cells);
        writeln!(f, "  {} {text}", paint(FAINT, "!"))?;
    }
    Ok(())
}

/// Writes the verdict and, on a failure, why and how to see it again.
pub(super) fn verdict(f: &mut fmt::Formatter<'_>, report: &Report, cells: usize) -> fmt::Result {
    writeln!(f)?;
    let exit = report.exit();
    if exit == Exit::Pass {
        let off = match report.setting.oracles_off.len() {
            0 => String::new(),
            off => format!(" but {off}"),
        };
        let held = match report.outcome.expectations.len() {
            0 => format!("every invariant{off} held"),
            number => format!("{} and every invariant{off} held", plural(number, "expectation")),
        };
        let twice = if report.twice.is_some() { ", twice, event for event the same" } else { "" };
        return writeln!(f, "  {}  {held}{twice}", paint(GOOD.bold(), "PASS"));
    }
    let title = match exit {
        Exit::NotDeterministic => "NOT DETERMINISTIC: two runs of one seed differ",
        Exit::Liveness => "FAIL: the cluster did not converge within its bound",
        Exit::Violated if report.outcome.violation.is_some() => "FAIL: an invariant broke",
        Exit::Violated
        | Exit::Pass
        | Exit::NothingRan
        | Exit::Invalid
        | Exit::Internal
        | Exit::Interrupted => "FAIL: the drill did not go as its file demands",
    };
    writeln!(f, "  {}", paint(BAD, title))?;
    if let Some(Twice::Differs(difference)) = &report.twice {
        parted(f, difference, cells)?;
    }
    if let Some(violation) = &report.outcome.violation {
        broken(f, violation, cells)?;
    }
    for result in report.outcome.expectations.iter().filter(|result| !result.held) {
        caret::write(f, &report.setting.files, result, cells)?;
    }
    writeln!(f)?;
    writeln!(f, "  {}", paint(STRONG, "see it again:"))?;
    writeln!(f, "{}", report.reproduce)
}

fn broken(f: &mut fmt::Formatter<'_>, violation: &Violation, cells: usize) -> fmt::Result {
    writeln!(f)?;
    let nodes =
        if violation.nodes.is_empty() { "the cluster".to_owned() } else { violation.nodes.join(", ") };
    let moment = format!("{} ({} µs)", moment(violation.at_us), violation.at_us);
    let lines = [
        ("oracle", violation.oracle),
        ("invariant", violation.invariant),
        ("source", violation.source),
        ("when", &moment),
        ("nodes", &nodes),
        ("fact", &violation.fact),
        ("but", &violation.contradiction),
    ];
    for (label, value) in lines {
        let style = if matches!(label, "fact" | "but") { STRONG } else { anstyle::Style::new() };
        let label = paint(FAINT, format!("  {label:<width$}", width = INDENT - 2));
        writeln!(f, "{label}{}", paint(style, hanging(value, INDENT, cells)))?;
    }
    Ok(())
}

fn parted(f: &mut fmt::Formatter<'_>, difference: &Difference, cells: usize) -> fmt::Result {
    writeln!(f)?;
    let mut line = |label: &str, value: &str| {
        let label = paint(FAINT, format!("  {label:<width$}", width = INDENT - 2));
        writeln!(f, "{label}{}", hanging(value, INDENT, cells))
    };
    let total = |events: usize| count(u64::try_from(events).unwrap_or(u64::MAX));
    let (one, two) = difference.events;
    let events = match difference.event {
        Some(event) => {
            let nodes = match &difference.nodes {
                (Some(one), Some(two)) if one == two => format!("on {one} in both runs"),
                (Some(one), Some(two)) => format!("on {one} in one run, on {two} in the other"),
                (Some(only), None) | (None, Some(only)) => {
                    format!("on {only} in one run, the other is over by then")
                }
                (None, None) => "on no known node".to_owned(),
            };
            let (event, one, two) = (total(event), total(one), total(two));
            format!("event {event} is the first that differs, of {one} and {two}: {nodes}")
        }
        None => format!("all {} events agree, the results do not", total(one)),
    };
    line("parted", &events)?;
    line("digests", &format!("{} and {}", difference.digests.0, difference.digests.1))?;
    if let Some((one, two)) = &difference.lines {
        line("one run", one)?;
        line("the other", two)?;
    }
    Ok(())
}
