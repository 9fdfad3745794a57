//! After the last fault every node goes by one lease: one holder an epoch, and the same epoch.

use super::agreement::Agreement;
use super::world::World;
use super::{Broken, Oracle, Rule};

/// Speaks at the end.
#[derive(Debug)]
pub(super) struct LeasesAgree;

impl LeasesAgree {
    pub(super) const fn new(_world: &World) -> Self {
        Self
    }
}

impl Oracle for LeasesAgree {
    const RULE: Rule = Rule {
        name: "leases_agree",
        invariant: "after the last fault and the bound, every running node names the same holder at the same epoch",
        source: "docs/issuance.md, What partitions do",
        liveness: true,
    };

    fn at_end(&mut self, world: &World, nodes: &Agreement) -> Result<(), Box<Broken>> {
        if nodes.is_parted(world) { Ok(()) } else { nodes.closing().leases.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, mint, row, stamped};

    #[test]
    fn a_node_that_names_another_holder_fires() {
        let all = [stamped("a.1", 1, row(9, 10, 1, 0, "a")), stamped("b.1", 1, row(10, 11, 1, 1, "b"))];
        for (known, fires) in [(2, false), (1, true)] {
            let mut bench = Bench::new(&["a", "b"]);
            bench.converge();
            bench.turn_off_all(&["issuer_seals", "spines_agree"]);
            bench.take(0, 2, mint("a", all.to_vec())).unwrap();
            bench.take(1, 2, mint("b", all[..known].to_vec())).unwrap();
            let told = bench.at_end().err().map(|told| (told.oracle, told.liveness));
            assert_eq!(told, fires.then_some(("leases_agree", true)));
        }
    }
}
