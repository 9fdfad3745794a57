//! The timeline: time, node, what happened, in aligned columns.
//!
//! Long stretches of what nodes saw are folded; what the drill did, expectations and violations always show,
//! unless there are hundreds of them. `--verbose` folds nothing, JSON holds every line.

use std::fmt;

use firedrill_sim::outcome::{Entry, EntryKind};

use super::style::{ASKED, BAD, FAINT, FAULT, STRONG, count, moment, paint};
use super::wrap::{hanging, padded, width};
use anstyle::Style;

/// A timeline this short is never folded.
const UNFOLDED_LINES_MAX: usize = 40;
/// Of a stretch of events, so many lines are shown at its head …
const STRETCH_HEAD: usize = 3;
/// … and so many at its tail.
const STRETCH_TAIL: usize = 1;
/// A folded timeline longer than this loses its middle.
const FOLDED_LINES_MAX: usize = 160;
/// Longest node name that gets a column of its own.
const NODE_CELLS_MAX: usize = 16;

/// A line to show, or how many are left out.
#[derive(Debug, PartialEq, Eq)]
enum Row<'a> {
    Line(&'a Entry),
    Folded { lines: usize, what: &'static str },
}

/// Writes the timeline, folded unless `whole`.
pub(super) fn write(
    f: &mut fmt::Formatter<'_>,
    timeline: &[Entry],
    whole: bool,
    cells: usize,
) -> fmt::Result {
    if timeline.is_empty() {
        return Ok(());
    }
    writeln!(f)?;
    lines(f, timeline, whole, cells)
}

/// Writes the lines alone.
pub(super) fn lines(
    f: &mut fmt::Formatter<'_>,
    timeline: &[Entry],
    whole: bool,
    cells: usize,
) -> fmt::Result {
    let rows = if whole { timeline.iter().map(Row::Line).collect() } else { fold(timeline) };
    let time_cells = timeline.iter().map(|entry| moment(entry.at_us).len()).max().unwrap_or(0);
    let node_cells = timeline
        .iter()
        .filter_map(|entry| entry.node.as_deref())
        .map(width)
        .max()
        .unwrap_or(0)
        .clamp(1, NODE_CELLS_MAX);
    let indent = 2 + time_cells + 2 + 2 + node_cells + 2;
    let mut shown = None;
    let mut hint = " (--verbose shows them)";
    for row in rows {
        match row {
            Row::Line(entry) => {
                let time =
                    if shown == Some(entry.at_us / 1_000) { String::new() } else { moment(entry.at_us) };
                shown = Some(entry.at_us / 1_000);
                let (mark, style) = dress(entry.kind);
                let node = padded(entry.node.as_deref().unwrap_or(""), node_cells);
                let text = hanging(&entry.text, indent, cells);
                let time = paint(FAINT, format!("{time:>time_cells$}"));
                writeln!(f, "  {time}  {} {node}  {}", paint(style, mark), paint(style, text))?;
            }
            Row::Folded { lines, what } => {
                shown = None;
                let gap = " ".repeat(time_cells);
                let lines = u64::try_from(lines).unwrap_or(u64::MAX);
                writeln!(f, "  {gap}  {}", paint(FAINT, format!("⋮ {} more {what}{hint}", count(lines))))?;
                hint = "";
            }
        }
    }
    Ok(())
}

/// The mark and colour of a kind of line.
const fn dress(kind: EntryKind) -> (&'static str, Style) {
    match kind {
        EntryKind::Fault => ("▲", FAULT),
        EntryKind::Event => ("·", Style::new()),
        EntryKind::Expectation => ("◇", ASKED),
        EntryKind::Phase => ("─", STRONG),
        EntryKind::Violation => ("✗", BAD),
    }
}

fn fold(timeline: &[Entry]) -> Vec<Row<'_>> {
    if timeline.len() <= UNFOLDED_LINES_MAX {
        return timeline.iter().map(Row::Line).collect();
    }
    let mut rows = Vec::new();
    for stretch in timeline.chunk_by(|one, next| one.kind == next.kind) {
        let is_long = stretch.len() > STRETCH_HEAD + STRETCH_TAIL + 1;
        if is_long && stretch[0].kind == EntryKind::Event {
            let lines = stretch.len() - STRETCH_HEAD - STRETCH_TAIL;
            rows.extend(stretch[..STRETCH_HEAD].iter().map(Row::Line));
            rows.push(Row::Folded { lines, what: "events" });
            rows.extend(stretch[stretch.len() - STRETCH_TAIL..].iter().map(Row::Line));
        } else {
            rows.extend(stretch.iter().map(Row::Line));
        }
    }
    if rows.len() > FOLDED_LINES_MAX {
        let cut = FOLDED_LINES_MAX / 2..rows.len() - FOLDED_LINES_MAX / 2;
        let lines = rows[cut.clone()]
            .iter()
            .map(|row| match row {
                Row::Line(_) => 1,
                Row::Folded { lines, .. } => *lines,
            })
            .sum();
        rows.splice(cut, [Row::Folded { lines, what: "lines" }]);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::report::samples::entry;

    fn told(rows: &[Row<'_>]) -> usize {
        rows.iter()
            .map(|row| match row {
                Row::Line(_) => 1,
                Row::Folded { lines, .. } => *lines,
            })
            .sum()
    }

    #[test]
    fn folding_keeps_faults_and_accounts_for_every_line() {
        let mut timeline: Vec<_> =
            (0..50).map(|ms| entry(ms, Some("a"), EntryKind::Event, "b is up")).collect();
        timeline.insert(20, entry(19, None, EntryKind::Fault, "kill b"));
        let rows = fold(&timeline);
        assert_eq!(told(&rows), timeline.len());
        assert!(rows.len() < 12, "{rows:?}");
        assert!(rows.iter().any(|row| matches!(row, Row::Line(entry) if entry.text == "kill b")));
    }

    #[test]
    fn hundreds_of_faults_lose_their_middle_and_are_still_counted() {
        let timeline: Vec<_> = (0..900).map(|ms| entry(ms, None, EntryKind::Fault, "pause a")).collect();
        let rows = fold(&timeline);
        assert_eq!(told(&rows), 900);
        assert_eq!(rows.len(), FOLDED_LINES_MAX + 1);
    }

    #[test]
    fn a_short_timeline_is_shown_whole() {
        let timeline: Vec<_> = (0..40).map(|ms| entry(ms, Some("a"), EntryKind::Event, "b is up")).collect();
        assert!(fold(&timeline).iter().all(|row| matches!(row, Row::Line(_))));
    }
}
