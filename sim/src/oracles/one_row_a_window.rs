//! One row counts for each window, and on every node the same: the one of the higher epoch, then of the lower issuer,
//! then the smaller text, whichever came first.

use std::cmp::Ordering;

use firedrill_core::issuance::row::Row;

use super::books::told;
use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule};

/// Looks at every row that becomes durable, and at all at the end.
#[derive(Debug)]
pub(super) struct OneRowAWindow;

impl OneRowAWindow {
    pub(super) const fn new(_world: &World) -> Self {
        Self
    }
}

impl Oracle for OneRowAWindow {
    const RULE: Rule = Rule {
        name: "one_row_a_window",
        invariant: "of the durable rows of a window each spine counts one, the first in the order of the merge",
        source: "docs/issuance.md, Merge of rows",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let Some(turn) = sight.turn() else { return Ok(()) };
        let spine = turn.issuance.spine();
        let judge = |row: &Row| {
            let winner = spine.at(row.window).map(|entry| &**entry.row);
            (winner.is_none_or(|winner| order(winner, row) == Ordering::Greater)).then(|| {
                let counted = winner.map_or_else(|| String::from("no row of that window"), told);
                let fact = format!("{} counts {counted}", sight.name());
                Broken::new(vec![sight.name()], fact, format!("it holds {}, which comes first", told(row)))
            })
        };
        for gain in &turn.account.gained {
            let rows = &turn.books.streams()[gain.stream].rows;
            let durable = rows.get(gain.durable.0..gain.durable.1).unwrap_or_default();
            durable.iter().find_map(|row| judge(row)).map_or(Ok(()), Err)?;
        }
        if !sight.changed.sweep {
            return Ok(());
        }
        let durable = spine.streams().flat_map(|(_, rows, durable)| &rows[..durable]);
        durable.clone().find_map(|row| judge(row)).map_or(Ok(()), Err)?;
        let (rows, counted, lost) = (durable.count(), spine.winners().count(), spine.superseded().count());
        if rows != counted + lost {
            return Err(Broken::new(
                vec![sight.name()],
                format!("{} counts {counted} rows and has {lost} that lost their window", sight.name()),
                format!("it holds {rows} durable rows"),
            ));
        }
        Ok(())
    }
}

/// The order of the merge, told once more: `Less` comes first.
fn order(one: &Row, other: &Row) -> Ordering {
    let epochs = other.epoch().cmp(&one.epoch());
    epochs.then_with(|| one.issuer().cmp(&other.issuer())).then_with(|| one.to_text().cmp(&other.to_text()))
}

#[cfg(test)]
mod tests {
    use firedrill_core::guards::Guards;

    use super::super::testing::{Bench, mint, mint_with, row, stamped};

    #[test]
    fn a_window_that_the_first_comer_keeps_fires() {
        let rows =
            || vec![stamped("a.1", 1, row(9, 10, 1, 0, "a")), stamped("b.1", 1, row(9, 10, 1, 1, "b"))];
        let mut bench = Bench::new(&["a"]);
        bench.take(0, 2, mint("a", rows())).unwrap();
        let mut bench = Bench::new(&["a"]);
        let guards = Guards { rows_merged: false, ..Guards::ON };
        assert_eq!(bench.take(0, 2, mint_with("a", rows(), guards)).unwrap_err().oracle, "one_row_a_window");
    }
}
