//! What a node takes for the lease and the tip is what its rows add up to: the highest epoch, held by the lowest of
//! its issuers, and the highest window.
//!
//! The oracles' account folds every row as it comes; at the end all rows are folded once more from nothing.

use firedrill_core::issuance::row::Lease;
use firedrill_core::issuance::window::Window;

use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule};

/// Compares whenever an issuance did something.
#[derive(Debug)]
pub(super) struct FoldExact;

impl FoldExact {
    pub(super) const fn new(_world: &World) -> Self {
        Self
    }
}

impl Oracle for FoldExact {
    const RULE: Rule = Rule {
        name: "fold_exact",
        invariant: "a node's lease and tip are what all rows that it knows add up to, in whatever order they came",
        source: "docs/issuance.md, Lease",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let Some(turn) = sight.turn() else { return Ok(()) };
        let fold = turn.issuance.spine().fold();
        let kept = (&turn.account.lease, turn.account.tip);
        let anew = sight.changed.sweep.then(|| {
            let rows = turn.issuance.spine().streams().flat_map(|(_, rows, _)| rows);
            let leases = rows.clone().filter_map(|row| row.lease.as_ref());
            // The greatest epoch, and of its issuers the least.
            let lease = leases.max_by(|a, b| a.epoch.cmp(&b.epoch).then_with(|| b.holder.cmp(&a.holder)));
            (lease.cloned(), rows.map(|row| row.window).max())
        });
        let anew = anew.as_ref().map(|(lease, tip)| (lease, *tip));
        for (lease, tip) in [Some(kept), anew].into_iter().flatten() {
            if (&fold.lease, fold.tip) != (lease, tip) {
                return Err(Broken::new(
                    vec![sight.name()],
                    format!("{} goes by {}", sight.name(), words(&fold.lease, fold.tip)),
                    format!("its rows add up to {}", words(lease, tip)),
                ));
            }
        }
        Ok(())
    }
}

fn words(lease: &Option<Lease>, tip: Option<Window>) -> String {
    let lease = match lease {
        Some(Lease { epoch, holder }) => format!("epoch {epoch} held by {holder}"),
        None => String::from("no lease"),
    };
    tip.map_or_else(|| format!("{lease} and no tip"), |tip| format!("{lease} and the tip {tip}"))
}

#[cfg(test)]
mod tests {
    use firedrill_core::guards::Guards;

    use super::super::testing::{Bench, mint, mint_with, row, stamped};

    #[test]
    fn a_lease_that_the_highest_window_decides_fires() {
        let rows =
            || vec![stamped("a.1", 1, row(9, 10, 1, 1, "a")), stamped("b.1", 1, row(10, 11, 1, 1, "b"))];
        let mut bench = Bench::new(&["a"]);
        bench.take(0, 2, mint("a", rows())).unwrap();
        bench.turn_off("issuer_seals");
        bench.at_end().unwrap();
        let mut bench = Bench::new(&["a"]);
        let guards = Guards { lowest_id_holds: false, ..Guards::ON };
        assert_eq!(bench.take(0, 2, mint_with("a", rows(), guards)).unwrap_err().oracle, "fold_exact");
    }
}
