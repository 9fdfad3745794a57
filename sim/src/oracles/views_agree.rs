//! After the last fault, views agree: each lists exactly the nodes that run.

use super::agreement::Agreement;
use super::world::World;
use super::{Broken, Oracle, Rule};

/// Speaks at the end.
#[derive(Debug)]
pub(super) struct ViewsAgree;

impl ViewsAgree {
    pub(super) const fn new(_world: &World) -> Self {
        Self
    }
}

impl Oracle for ViewsAgree {
    const RULE: Rule = Rule {
        name: "views_agree",
        invariant: "after the last fault and the bound, every running node's view is the set of running ids",
        source: "docs/protocol.md, Bounds after a heal; View (agreement compares ids, not suspicion)",
        liveness: true,
    };

    fn at_end(&mut self, world: &World, nodes: &Agreement) -> Result<(), Box<Broken>> {
        if nodes.is_parted(world) { Ok(()) } else { nodes.views(world) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;

    #[test]
    fn a_node_that_differs_at_the_end_fires_as_liveness() {
        let mut bench = Bench::new(&["a", "b"]);
        bench.converge();
        bench.at_end().unwrap();
        bench.nodes[0].hide("b");
        let broken = bench.at_end().unwrap_err();
        assert_eq!((broken.oracle, broken.liveness), ("views_agree", true));
    }
}
