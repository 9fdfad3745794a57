//! At the end all nodes show the same counters, and nothing is lost that a living node wrote.
//!
//! A boot that takes part holds its own cell, so every node has to hold it in full; what a killed boot wrote may
//! be lost with it, and so may what one wrote that departs or is held at the end, but a cell never exceeds what was written. When nothing was killed that is exactly the truth.
//! Nothing is said once a table of counters is full: below its bound alone the merge is commutative.
//! A cell that two boots share (the scenario lets boots share a millisecond) is left out.

use super::agreement::Agreement;
use super::world::World;
use super::{Broken, Oracle, Rule};

/// Speaks at the end.
#[derive(Debug)]
pub(super) struct CountersExact;

impl CountersExact {
    pub(super) const fn new(_world: &World) -> Self {
        Self
    }
}

impl Oracle for CountersExact {
    const RULE: Rule = Rule {
        name: "counters_exact",
        invariant: "after the last fault and the bound, all running nodes hold the same counters, with everything that boots still running wrote",
        source: "docs/protocol.md, Counters (nothing is lost by a partition)",
        liveness: true,
    };

    fn at_end(&mut self, world: &World, nodes: &Agreement) -> Result<(), Box<Broken>> {
        if nodes.is_parted(world) {
            return Ok(());
        }
        nodes.counters(world)?;
        nodes.truth(world)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, ms};
    use crate::engine::Fault;
    use crate::scenario::model::HostIx;

    /// Two nodes that agree on three increments of `a`.
    fn counted() -> Bench {
        let mut bench = Bench::new(&["a", "b"]);
        bench.converge();
        bench.increment(0, 10, "c", 3).unwrap();
        bench.set_cell(1, "c", "a", 3);
        bench
    }

    #[test]
    fn counters_that_differ_fire() {
        let mut bench = counted();
        bench.at_end().unwrap();
        bench.increment(1, 20, "c", 1).unwrap();
        assert_eq!(bench.at_end().unwrap_err().oracle, "counters_exact");
    }

    #[test]
    fn losing_what_a_living_node_wrote_fires_even_when_all_agree() {
        let mut bench = counted();
        bench.turn_off("counter_monotonic");
        for node in 0..2 {
            bench.set_cell(node, "c", "a", 2);
        }
        let broken = bench.at_end().unwrap_err();
        assert_eq!(broken.oracle, "counters_exact");
        assert!(broken.contradiction.contains("wrote 3"), "{broken:?}");
    }

    /// `a` wrote five more that nobody has heard of, and has gone from the other's view.
    fn unheard() -> Bench {
        let mut bench = counted();
        bench.increment(0, 20, "c", 5).unwrap();
        bench.nodes[1].hide("a");
        bench
    }

    #[test]
    fn what_a_node_wrote_that_departs_at_the_end_may_be_lost() {
        let mut bench = unheard();
        bench.turn_off("views_agree");
        assert_eq!(bench.at_end().unwrap_err().oracle, "counters_exact");
        bench.world.fault_applied(ms(30), &Fault::Stop(HostIx(0)));
        bench.nodes[0].departed = true;
        bench.at_end().unwrap();
    }

    #[test]
    fn what_a_held_node_wrote_may_be_unheard() {
        let mut bench = unheard();
        bench.world.fault_applied(ms(30), &Fault::Pause(HostIx(0)));
        bench.at_end().unwrap();
    }

    #[test]
    fn what_a_killed_boot_wrote_may_be_lost() {
        let mut bench = counted();
        bench.increment(0, 20, "c", 5).unwrap();
        bench.kill(0, 30);
        bench.nodes[1].hide("a");
        bench.at_end().unwrap();
    }
}
