//! The issuance of a run: every takeover, and what the rows add up to.
//!
//! A takeover reads as in a drill's protocol: who went when, who came after how much silence, its first row, what
//! the others had decided, and how the old issuer came back.

use std::fmt;
use std::time::Duration;

use firedrill_sim::outcome::{IssuanceReport, Outcome, Takeover};

use super::style::{BAD, FAINT, count, moment, paint, plural, span};
use super::wrap::hanging;

/// Cells before the value of a labelled line.
const INDENT: usize = 14;
/// Takeovers that are told one by one; of more the first and the last.
const TAKEOVERS_MAX: usize = 4;

/// Writes the block; nothing where nobody issues.
pub(super) fn write(f: &mut fmt::Formatter<'_>, outcome: &Outcome, cells: usize) -> fmt::Result {
    let Some(report) = &outcome.issuance else { return Ok(()) };
    writeln!(f)?;
    line(f, "lease", &lease(report), cells)?;
    let takeovers = &report.takeovers;
    let skipped = takeovers.len().saturating_sub(TAKEOVERS_MAX);
    for (ix, takeover) in takeovers.iter().enumerate() {
        if skipped > 0 && (1..=skipped).contains(&ix) {
            if ix == 1 {
                line(f, "", &format!("… {} more …", count_of(skipped)), cells)?;
            }
            continue;
        }
        told(f, takeover, cells)?;
    }
    sums(f, report, cells)
}

fn lease(report: &IssuanceReport) -> String {
    match (&report.holder, report.epoch) {
        (Some(holder), Some(epoch)) => format!("{holder}, epoch {epoch}"),
        _ => "nobody".to_owned(),
    }
}

/// One takeover.
fn told(f: &mut fmt::Formatter<'_>, takeover: &Takeover, cells: usize) -> fmt::Result {
    let Takeover { by, promoted_at_us, epoch, silence_z, .. } = takeover;
    let from = takeover.from.as_deref().unwrap_or("nobody");
    let gone = takeover.down_at_us.map(|down| format!("{from} down at {}; ", moment(down)));
    let promoted = match takeover.down_at_us {
        Some(down) => format!("{by} promoted {} later", between(down, *promoted_at_us)),
        None => format!("{by} promoted at {}, {from} still up", moment(*promoted_at_us)),
    };
    let epochs = match takeover.epoch_before {
        Some(before) => format!("epoch {before} to {epoch}"),
        None => format!("epoch {epoch}"),
    };
    let gone = gone.unwrap_or_default();
    let first = format!("{gone}{promoted}, after {silence_z} Z of silence, {epochs}");
    line(f, "takeover", &first, cells)?;
    match &takeover.first_row {
        Some(row) => {
            let covers = plural(size(row.elapsed), "window");
            let lost = row.window.saturating_sub(row.from_window).saturating_sub(row.elapsed);
            let text = format!(
                "first row: window {}, from {}, covers {covers}, gives up {}, epoch {}",
                row.window,
                row.from_window,
                count(lost),
                row.epoch.map_or_else(|| "none".to_owned(), |epoch| epoch.to_string()),
            );
            line(f, "", &text, cells)?;
        }
        None => line(f, "", "it never sealed a row", cells)?,
    }
    if !takeover.decisions.is_empty() {
        let decided: Vec<String> =
            takeover.decisions.iter().map(|(node, decision)| format!("{node} decided {decision}")).collect();
        line(f, "", &decided.join("; "), cells)?;
    }
    let back = takeover.returned_at_us.map(|back| format!("{from} back at {}", moment(back)));
    let demoted = takeover.demoted_at_us.map(|demoted| match takeover.returned_at_us {
        Some(back) if back <= demoted => format!("stood down {} later", between(back, demoted)),
        Some(_) | None => format!("{from} stood down at {}", moment(demoted)),
    });
    let after = takeover.returned_at_us.map(|_| match takeover.seals_after_return {
        0 => "0 rows sealed since".to_owned(),
        rows => format!("{} sealed since", plural(size(rows), "row")),
    });
    let parts: Vec<String> = [back, demoted, after].into_iter().flatten().collect();
    if parts.is_empty() { Ok(()) } else { line(f, "", &parts.join(", "), cells) }
}

/// What the rows add up to.
fn sums(f: &mut fmt::Formatter<'_>, report: &IssuanceReport, cells: usize) -> fmt::Result {
    if report.nodes.is_empty() {
        return Ok(());
    }
    let by_node: Vec<String> =
        report.nodes.iter().map(|(node, rows)| format!("{node} {}", count(rows.rows))).collect();
    let sum =
        |what: fn(&firedrill_sim::outcome::NodeRows) -> u64| -> u64 { report.nodes.values().map(what).sum() };
    let rows = format!(
        "{}; {} duplicate keys, {} below the tip",
        by_node.join(", "),
        sum(|rows| rows.duplicates),
        sum(|rows| rows.rows_below_tip),
    );
    line(f, "rows", &rows, cells)?;
    if let Some(prefix) = &report.prefix {
        let equal = if prefix.equal { "equal" } else { "DIFFERENT" };
        let text = format!("{equal} up to window {}, {}", prefix.to_window, prefix.digest);
        let text = if prefix.equal { text } else { paint(BAD, text).to_string() };
        line(f, "prefix", &text, cells)?;
    }
    let Some(audit) = &report.audit else { return Ok(()) };
    let by: Vec<String> =
        report.elapsed_by.iter().map(|(node, elapsed)| format!("{node} {}", count(*elapsed))).collect();
    let mut text = format!(
        "Σ elapsed {} ({}) over a span of {}: {} under-issued",
        count(audit.elapsed_sum),
        by.join(", "),
        count(audit.span),
        count(audit.under_issued),
    );
    for (figure, what) in [(audit.overlap, "covered twice"), (audit.superseded, "superseded rows")] {
        if figure > 0 {
            text.push_str(&format!(", {} {what}", count(figure)));
        }
    }
    line(f, "windows", &text, cells)?;
    line(f, "supply", &audit.supply.to_string(), cells)
}

fn line(f: &mut fmt::Formatter<'_>, label: &str, value: &str, cells: usize) -> fmt::Result {
    let label = paint(FAINT, format!("  {label:<width$}", width = INDENT - 2));
    writeln!(f, "{label}{}", hanging(value, INDENT, cells))
}

fn between(from_us: u64, to_us: u64) -> String {
    span(Duration::from_micros(to_us.saturating_sub(from_us)))
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn count_of(number: usize) -> String {
    count(u64::try_from(number).unwrap_or(u64::MAX))
}
