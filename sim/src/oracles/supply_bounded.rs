//! Nobody issues more than what passed: a row covers at most the windows since its watermark and at most as many as
//! its issuer may catch up, and all rows that were ever sealed by anybody cover no more windows than passed.
//!
//! The rows are those of the oracles' account: of every spine, lost and superseded ones included.

use firedrill_core::issuance::row::Row;

use super::audit_exact::Recount;
use super::books::told;
use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule};

/// Looks at every row that a spine takes, and at all at the end.
#[derive(Debug)]
pub(super) struct SupplyBounded;

impl SupplyBounded {
    pub(super) const fn new(_world: &World) -> Self {
        Self
    }
}

impl Oracle for SupplyBounded {
    const RULE: Rule = Rule {
        name: "supply_bounded",
        invariant: "no row covers more windows than passed, and no supply exceeds the span times the rate",
        source: "docs/issuance.md, Seal; Audit",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let Some(turn) = sight.turn() else { return Ok(()) };
        let config = turn.issuance.config();
        let most = config.elapsed_max();
        let beyond = |row: &&Row| {
            row.elapsed > row.window.since(row.from_window) || row.elapsed > most || row.rate != config.rate
        };
        for gain in &turn.account.gained {
            let rows = &turn.books.streams()[gain.stream].rows;
            let taken = rows.get(gain.known.0..gain.known.1).unwrap_or_default();
            if let Some(row) = taken.iter().map(|row| &**row).find(beyond) {
                return Err(Broken::new(
                    vec![sight.name()],
                    format!("{} holds {} at rate {}", sight.name(), told(row), row.rate),
                    format!("a row covers at most what passed, and {most} windows, at rate {}", config.rate),
                ));
            }
        }
        if !sight.changed.sweep {
            return Ok(());
        }
        let all = Recount::of(turn.books.rows().map(|row| &**row));
        let limit = config.rate.checked_mul(all.span).ok();
        let supply = turn.issuance.audit().ok().map(|audit| audit.supply);
        if all.covered > all.span || supply.zip(limit).is_some_and(|(supply, limit)| supply > limit) {
            return Err(Broken::new(
                vec![sight.name()],
                format!("{} tells a supply of {}", sight.name(), supply.unwrap_or_default()),
                format!("all rows ever sealed span {} windows at rate {}", all.span, config.rate),
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, mint, row, stamped};

    #[test]
    fn a_row_of_more_windows_than_one_may_cover_fires() {
        for (elapsed, fires) in [(8, false), (9, true)] {
            let mut bench = Bench::new(&["a"]);
            let issuance = mint("a", vec![stamped("a.1", 1, row(9, 20, elapsed, 0, "a"))]);
            let told = bench.take(0, 2, issuance).err().map(|told| told.oracle);
            assert_eq!(told, fires.then_some("supply_bounded"));
        }
    }
}
