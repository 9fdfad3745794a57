//! What the rows of a spine add up to: a pure function, exact, or an error.
//!
//! Rows are not summed, windows are: a row may cover windows that another covered already (a takeover, catch-up),
//! and a forfeited window may have been sealed by somebody whose rows came later. So supply counts each covered
//! window once, at the rate of the lowest-window row that covers it, and what is missing is the span less the
//! windows covered. The span begins below the lowest watermark of any row, hence holds every covered window:
//! supply never exceeds the span times the highest rate.
//!
//! Cost: rows are sorted, windows are swept as intervals; no step is spent on a window.
//!
//! Spec: docs/issuance.md, Audit.

#[cfg(test)]
mod tests;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::decimal::{Decimal, Overflow};
use super::row::{Origin, Row};
use super::spine::Entry;
use super::window::Window;

/// The figures of a spine. Counts of rows and of windows; amounts are exact.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audit {
    /// Rows that count.
    pub rows: u64,
    /// Different keys among them.
    pub distinct_keys: u64,
    /// Rows whose key another one has: 0 in a sound spine.
    pub duplicates: u64,
    /// Rows that lost their key to another and do not count.
    pub superseded: u64,
    /// Rows, lost ones included, that are not above the one before in their origin's stream: 0 in a sound spine.
    pub rows_below_tip: u64,
    /// Σ elapsed of the rows, in windows.
    pub elapsed_sum: u64,
    /// Σ amount of the rows; windows covered twice count twice here.
    pub amount_sum: Decimal,
    /// From the lowest watermark to the highest window, in windows.
    pub span: u64,
    /// Σ of what rows gave up between their watermark and what they cover, in windows; others may have sealed it.
    pub forfeited: u64,
    /// Windows covered by more than one row.
    pub overlap: u64,
    /// Windows of the span that no row covers.
    pub under_issued: u64,
    /// The amount of all covered windows, each once.
    pub supply: Decimal,
}

/// A figure left its range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{figure} is beyond the range of the audit; the rows are not plausible")]
pub struct AuditError {
    /// Which figure of [`Audit`].
    pub figure: &'static str,
}

impl Audit {
    /// Adds up `entries`: the durable rows, those of one origin in the order of their stream
    /// ([`super::spine::Spine::durable`]).
    ///
    /// # Errors
    /// [`AuditError`] when a sum leaves its range; real rows never come near.
    pub fn of<'a>(entries: impl IntoIterator<Item = Entry<'a>>) -> Result<Self, AuditError> {
        let mut audit = Self::default();
        let mut tips = BTreeMap::<&Origin, Window>::new();
        let mut rows = Vec::<&Row>::new();
        for Entry { origin, row, superseded, .. } in entries {
            if tips.insert(origin, row.window).is_some_and(|tip| row.window <= tip) {
                audit.rows_below_tip += 1;
            }
            if superseded {
                audit.superseded += 1;
            } else {
                audit.add(row)?;
                rows.push(row);
            }
        }
        rows.sort_by_key(|row| row.window);
        audit.count_keys(&rows);
        audit.measure_span(&rows);
        audit.sweep(&rows)?;
        Ok(audit)
    }

    fn add(&mut self, row: &Row) -> Result<(), AuditError> {
        let forfeited = row.floor().since(row.from_window);
        self.rows += 1;
        self.elapsed_sum = sum(self.elapsed_sum, row.elapsed, "elapsed_sum")?;
        self.forfeited = sum(self.forfeited, forfeited, "forfeited")?;
        self.amount_sum = self.amount_sum.checked_add(row.amount()).map_err(beyond("amount_sum"))?;
        Ok(())
    }

    fn count_keys(&mut self, by_window: &[&Row]) {
        let repeats = by_window.windows(2).filter(|pair| pair[0].window == pair[1].window).count();
        self.duplicates = repeats as u64;
        self.distinct_keys = self.rows - self.duplicates;
    }

    fn measure_span(&mut self, by_window: &[&Row]) {
        let lowest = by_window.iter().map(|row| row.from_window).min();
        if let (Some(lowest), Some(highest)) = (lowest, by_window.last()) {
            self.span = highest.window.since(lowest);
        }
    }

    /// Walks the edges of what rows cover, from low to high. Between two edges the same rows cover every window.
    fn sweep(&mut self, by_window: &[&Row]) -> Result<(), AuditError> {
        let mut openings: Vec<Opening> = by_window.iter().map(|row| Opening::of(row)).collect();
        openings.sort_unstable();
        let mut closings = by_window.iter().map(|row| row.window).peekable();
        let mut openings = openings.into_iter().peekable();
        let mut open = BTreeSet::<(Window, Decimal, usize)>::new();
        let (mut covered, mut at, mut opened) = (0_u64, Window(0), 0_usize);
        while let Some(&closing) = closings.peek() {
            let edge = openings.peek().map_or(closing, |opening| opening.floor.min(closing));
            if let Some((_, rate, _)) = open.first() {
                let windows = edge.since(at);
                covered += windows;
                let amount = rate.checked_mul(windows).map_err(beyond("supply"))?;
                self.supply = self.supply.checked_add(amount).map_err(beyond("supply"))?;
                if open.len() > 1 {
                    self.overlap += windows;
                }
            }
            at = edge;
            while closings.next_if(|closing| *closing == edge).is_some() {
                // The lowest window closes first.
                open.pop_first();
            }
            while let Some(opening) = openings.next_if(|opening| opening.floor == edge) {
                open.insert((opening.window, opening.rate, opened));
                opened += 1;
            }
        }
        // Every covered window lies above the lowest watermark and not above the highest window.
        self.under_issued = self.span - covered;
        Ok(())
    }
}

/// Where a row begins to cover: the windows above `floor`, up to `window`.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Opening {
    floor: Window,
    window: Window,
    rate: Decimal,
}

impl Opening {
    fn of(row: &Row) -> Self {
        Self { floor: row.floor(), window: row.window, rate: row.rate }
    }
}

fn sum(one: u64, other: u64, figure: &'static str) -> Result<u64, AuditError> {
    one.checked_add(other).ok_or(AuditError { figure })
}

fn beyond(figure: &'static str) -> impl Fn(Overflow) -> AuditError {
    move |_| AuditError { figure }
}
