//! After the last fault every node has the same rows, the same of them count and the same have lost their window: up
//! to the tip of one pull ago, since what was sealed later is on its way.

use super::agreement::Agreement;
use super::world::World;
use super::{Broken, Oracle, Rule};

/// Speaks at the end.
#[derive(Debug)]
pub(super) struct SpinesAgree;

impl SpinesAgree {
    pub(super) const fn new(_world: &World) -> Self {
        Self
    }
}

impl Oracle for SpinesAgree {
    const RULE: Rule = Rule {
        name: "spines_agree",
        invariant: "after the last fault and the bound, all running nodes have one spine up to the tip of one pull ago",
        source: "docs/issuance.md, What partitions do",
        liveness: true,
    };

    fn at_end(&mut self, world: &World, nodes: &Agreement) -> Result<(), Box<Broken>> {
        if nodes.is_parted(world) { Ok(()) } else { nodes.closing().spines.clone() }
    }
}

#[cfg(test)]
mod tests {
    use firedrill_core::guards::Guards;

    use super::super::testing::{Bench, mint, mint_with, row, stamped};

    #[test]
    fn a_row_that_one_node_lacks_fires_and_so_does_another_winner() {
        let all = [stamped("a.1", 1, row(9, 10, 1, 0, "a")), stamped("b.1", 1, row(9, 10, 1, 1, "b"))];
        let unmerged = Guards { rows_merged: false, ..Guards::ON };
        for (known, guards, fires) in [(2, Guards::ON, false), (1, Guards::ON, true), (2, unmerged, true)] {
            let mut bench = Bench::new(&["a", "b"]);
            bench.converge();
            bench.turn_off_all(&["issuer_seals", "leases_agree", "one_row_a_window"]);
            bench.take(0, 2, mint("a", all.to_vec())).unwrap();
            bench.take(1, 2, mint_with("b", all[..known].to_vec(), guards)).unwrap();
            let told = bench.at_end().err().map(|told| (told.oracle, told.liveness));
            assert_eq!(told, fires.then_some(("spines_agree", true)));
        }
    }
}
