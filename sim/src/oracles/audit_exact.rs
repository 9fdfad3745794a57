//! What a node's audit tells is what its durable rows come to: every figure, counted once more another way.
//!
//! The audit sweeps windows as intervals; here the rows of each window are compared with each other and what they
//! cover is merged from the lowest window up.

use std::collections::BTreeMap;

use firedrill_core::issuance::audit::Audit;
use firedrill_core::issuance::decimal::Decimal;
use firedrill_core::issuance::row::Row;

use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule};

/// Recounts every spine at the end.
#[derive(Debug)]
pub(super) struct AuditExact;

impl AuditExact {
    pub(super) const fn new(_world: &World) -> Self {
        Self
    }
}

impl Oracle for AuditExact {
    const RULE: Rule = Rule {
        name: "audit_exact",
        invariant: "a node's audit tells what its durable rows come to",
        source: "docs/issuance.md, Audit",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let Some(turn) = sight.turn().filter(|_| sight.changed.sweep) else { return Ok(()) };
        let rows = turn.issuance.spine().streams().flat_map(|(_, rows, durable)| &rows[..durable]);
        let recount = Recount::of(rows.map(|row| &**row));
        let told = match turn.issuance.audit() {
            Ok(audit) => recount.differs(&audit),
            Err(error) => Some((error.to_string(), String::from("its rows are those of a drill"))),
        };
        let Some((told, counted)) = told else { return Ok(()) };
        let fact = format!("the audit of {} tells: {told}", sight.name());
        Err(Broken::new(vec![sight.name()], fact, format!("its rows come to: {counted}")))
    }
}

/// What rows come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Recount {
    rows: u64,
    superseded: u64,
    elapsed_sum: u64,
    forfeited: u64,
    /// From the lowest watermark to the highest window.
    pub(super) span: u64,
    /// Windows covered by any row.
    pub(super) covered: u64,
    overlap: u64,
    /// The rate of all rows, if they have one.
    rate: Option<Decimal>,
}

impl Recount {
    /// Counts these rows, one a window.
    pub(super) fn of<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Self {
        let mut counted = BTreeMap::<u64, &Row>::new();
        let mut recount = Self::default();
        for row in rows {
            let best = counted.entry(row.window.0).or_insert(row);
            if !std::ptr::eq(*best, row) {
                recount.superseded += 1;
                if row.precedence(best).is_lt() {
                    *best = row;
                }
            }
        }
        // How many rows begin to cover at a window, less those that end before it.
        let mut edges = BTreeMap::<u64, i64>::new();
        for row in counted.values() {
            recount.rows += 1;
            recount.elapsed_sum += row.elapsed;
            recount.forfeited += row.window.0 - row.elapsed - row.from_window.0;
            *edges.entry(row.window.0 - row.elapsed).or_default() += 1;
            *edges.entry(row.window.0).or_default() -= 1;
        }
        let (mut depth, mut at) = (0, 0);
        for (edge, change) in edges {
            recount.covered += if depth > 0 { edge - at } else { 0 };
            recount.overlap += if depth > 1 { edge - at } else { 0 };
            (depth, at) = (depth + change, edge);
        }
        let lowest = counted.values().map(|row| row.from_window.0).min();
        let highest = counted.keys().next_back();
        recount.span = lowest.zip(highest).map_or(0, |(lowest, highest)| highest - lowest);
        let mut rates = counted.values().map(|row| row.rate);
        recount.rate = rates.next().filter(|rate| rates.all(|other| other == *rate));
        recount
    }

    /// What an audit tells and what the count is, where they differ.
    fn differs(&self, audit: &Audit) -> Option<(String, String)> {
        let figures = [
            ("rows", audit.rows, self.rows),
            ("distinct keys", audit.distinct_keys, self.rows),
            ("duplicates", audit.duplicates, 0),
            ("superseded", audit.superseded, self.superseded),
            ("rows below the tip", audit.rows_below_tip, 0),
            ("elapsed", audit.elapsed_sum, self.elapsed_sum),
            ("forfeited", audit.forfeited, self.forfeited),
            ("span", audit.span, self.span),
            ("overlap", audit.overlap, self.overlap),
            ("under-issued", audit.under_issued, self.span - self.covered),
        ];
        let differs = figures.into_iter().find(|(_, told, counted)| told != counted);
        if let Some((what, told, counted)) = differs {
            return Some((format!("{what} {told}"), format!("{what} {counted}")));
        }
        let supply = self.rate.and_then(|rate| rate.checked_mul(self.covered).ok())?;
        (audit.supply != supply).then(|| (format!("supply {}", audit.supply), format!("supply {supply}")))
    }
}

#[cfg(test)]
mod tests {
    use firedrill_core::issuance::row::Stamped;

    use super::super::testing::{Bench, mint, row, stamped};
    use super::*;

    fn rows() -> Vec<Stamped> {
        vec![
            stamped("a.1", 1, row(9, 10, 1, 0, "a")),
            stamped("a.1", 2, row(10, 20, 8, 0, "a")),
            stamped("b.1", 1, row(10, 14, 4, 1, "b")),
            stamped("b.1", 2, row(14, 20, 2, 1, "b")),
        ]
    }

    #[test]
    fn rows_are_counted_by_window_once_each() {
        let mut bench = Bench::new(&["a"]);
        bench.take(0, 2, mint("a", rows())).unwrap();
        bench.at_end().unwrap();
        let stamped = rows();
        let recount = Recount::of(stamped.iter().map(|stamped| &*stamped.row));
        // 10; 11..=14; 19..=20: the row of b at 20 wins over that of a, which covered 13..=20.
        assert_eq!((recount.rows, recount.superseded, recount.span), (3, 1, 11));
        assert_eq!((recount.covered, recount.overlap, recount.forfeited), (7, 0, 4));
    }

    #[test]
    fn an_audit_that_is_off_by_one_is_told() {
        let issuance = mint("a", rows());
        let stamped = rows();
        let recount = Recount::of(stamped.iter().map(|stamped| &*stamped.row));
        let audit = issuance.audit().unwrap();
        assert_eq!(recount.differs(&audit), None);
        let (told, counted) = recount.differs(&Audit { under_issued: 3, ..audit.clone() }).unwrap();
        assert_eq!((told.as_str(), counted.as_str()), ("under-issued 3", "under-issued 4"));
        assert!(recount.differs(&Audit { supply: audit.amount_sum, ..audit.clone() }).is_none());
        assert!(recount.differs(&Audit { supply: Decimal::ONE, ..audit }).is_some());
    }
}
