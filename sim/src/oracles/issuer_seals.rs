//! After the last fault somebody issues: the holder of the lease runs and its rows become durable, wherever the rules
//! let anybody be elected ([`super::closing`] says where that is).

use super::agreement::Agreement;
use super::world::World;
use super::{Broken, Oracle, Rule};

/// Speaks at the end.
#[derive(Debug)]
pub(super) struct IssuerSeals;

impl IssuerSeals {
    pub(super) const fn new(_world: &World) -> Self {
        Self
    }
}

impl Oracle for IssuerSeals {
    const RULE: Rule = Rule {
        name: "issuer_seals",
        invariant: "after the last fault and the bound, a node that runs holds the lease and seals",
        source: "docs/issuance.md, Election",
        liveness: true,
    };

    fn at_end(&mut self, world: &World, nodes: &Agreement) -> Result<(), Box<Broken>> {
        if nodes.is_parted(world) { Ok(()) } else { nodes.closing().seals.clone() }
    }
}

#[cfg(test)]
mod tests {
    use firedrill_core::id::Incarnation;
    use firedrill_core::io::Event;
    use firedrill_core::wire::message::Addr;

    use super::super::testing::{Bench, mint, node_id, row, stamped};

    #[test]
    fn a_cluster_in_which_somebody_could_issue_and_nobody_does_fires() {
        for (heard, fires) in [(false, false), (true, true)] {
            let mut bench = Bench::new(&["a", "b"]);
            bench.converge();
            bench.take(1, 2, mint("b", vec![stamped("a.1", 1, row(9, 10, 1, 0, "a"))])).unwrap();
            if heard {
                let incarnation = Incarnation(1000);
                let up = Event::MemberUp { id: node_id("a"), addr: Addr::default(), incarnation };
                bench.events(1, 3, &[up]).unwrap();
            }
            let told = bench.at_end().err().map(|told| (told.oracle, told.liveness));
            assert_eq!(told, fires.then_some(("issuer_seals", true)));
        }
    }

    #[test]
    fn whoever_sealed_a_moment_ago_is_an_issuer() {
        let mut bench = Bench::new(&["a"]);
        bench.turn_off_all(&["late_round", "seals_above_tip"]);
        bench.take(0, 2, mint("a", vec![])).unwrap();
        assert_eq!(bench.at_end().unwrap_err().oracle, "issuer_seals");
        bench.events(0, 99_000, &[super::super::testing::sealed(20, 0)]).unwrap();
        bench.at_end().unwrap();
    }
}
