//! With fencing an epoch belongs to one node: a majority never supports two nodes at the same one, nor one at an
//! epoch below that of another before it.
//!
//! What electors promised is on their disks; where one of those was lost or lied, nothing is demanded.

use std::collections::BTreeMap;

use firedrill_core::id::NodeId;
use firedrill_core::issuance::event::IssuanceEvent;
use firedrill_core::issuance::window::Epoch;

use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule};

/// Keeps who was supported at which epoch.
#[derive(Debug)]
pub(super) struct EpochsOnce {
    held: BTreeMap<Epoch, NodeId>,
}

impl EpochsOnce {
    pub(super) const fn new(_world: &World) -> Self {
        Self { held: BTreeMap::new() }
    }
}

impl Oracle for EpochsOnce {
    const RULE: Rule = Rule {
        name: "epochs_once",
        invariant: "with fencing every epoch is held by one node, and no node comes to hold one below an epoch held before",
        source: "docs/issuance.md, Fencing",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let Some(turn) = sight.turn() else { return Ok(()) };
        if sight.world.promises_lost() {
            return Ok(());
        }
        let me = sight.look.node.id();
        for event in turn.events() {
            let IssuanceEvent::FenceHeld { epoch } = event else { continue };
            let before = self.held.range(*epoch..).find(|(_, holder)| *holder != me);
            if let Some((at, holder)) = before {
                return Err(Broken::new(
                    vec![sight.name(), holder.to_string()],
                    format!("a majority supports {} at epoch {epoch}", sight.name()),
                    format!("one supported {holder} at epoch {at} before"),
                ));
            }
            self.held.insert(*epoch, me.clone());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use firedrill_core::io::Event;

    use super::super::testing::{Bench, mint};
    use super::*;

    #[test]
    fn an_epoch_that_two_nodes_hold_fires_and_so_does_one_below() {
        let held = |epoch| Event::Issuance(IssuanceEvent::FenceHeld { epoch: Epoch(epoch) });
        for (late, fires) in [(2, false), (1, true), (0, true)] {
            let mut bench = Bench::new(&["a", "b"]);
            bench.nodes[0].issuance = Some(mint("a", vec![]));
            bench.nodes[1].issuance = Some(mint("b", vec![]));
            bench.events(0, 5, &[held(1)]).unwrap();
            let told = bench.events(1, 6, &[held(late)]).err().map(|told| told.oracle);
            assert_eq!(told, fires.then_some("epochs_once"), "{late}");
        }
    }
}
