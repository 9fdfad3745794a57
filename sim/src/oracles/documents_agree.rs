//! After the last fault, documents agree on every node that runs. Tombstones may differ: they age locally.

use super::agreement::Agreement;
use super::world::World;
use super::{Broken, Oracle, Rule};

/// Speaks at the end.
#[derive(Debug)]
pub(super) struct DocumentsAgree;

impl DocumentsAgree {
    pub(super) const fn new(_world: &World) -> Self {
        Self
    }
}

impl Oracle for DocumentsAgree {
    const RULE: Rule = Rule {
        name: "documents_agree",
        invariant: "after the last fault and the bound, every running node holds every running node's present record",
        source: "docs/protocol.md, Bounds after a heal; Membership merge",
        liveness: true,
    };

    fn at_end(&mut self, world: &World, nodes: &Agreement) -> Result<(), Box<Broken>> {
        if nodes.is_parted(world) { Ok(()) } else { nodes.documents(world) }
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
        bench.turn_off("records_monotone");
        bench.nodes[0].set_record("b", 1, firedrill_core::wire::message::RecordStatus::Left);
        let broken = bench.at_end().unwrap_err();
        assert_eq!((broken.oracle, broken.liveness), ("documents_agree", true));
    }
}
