//! Increments go to the cell of the boot. A refutation keeps it, but for one: where the incarnation refuted is that
//! of the boot, another boot may have it too, and the cell moves up with the refutation.
//!
//! With a cell per refutation two hosts with one id mint cells until the document outgrows the frame; with none at
//! all, two boots of one millisecond write the same one.

use firedrill_core::id::Incarnation;
use firedrill_core::io::Event;

use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule};

/// Per host: where its boot went when it refuted the incarnation that it began with.
#[derive(Debug)]
pub(super) struct CellFollowsBoot {
    renewed: Vec<Option<Incarnation>>,
}

impl CellFollowsBoot {
    pub(super) fn new(world: &World) -> Self {
        Self { renewed: vec![None; world.hosts().len()] }
    }
}

impl Oracle for CellFollowsBoot {
    const RULE: Rule = Rule {
        name: "cell_follows_boot",
        invariant: "increments go to the cell of the boot's first incarnation, or to that of the refutation once that first incarnation was refuted",
        source: "docs/protocol.md, Counters; decision 4",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let Some(boot) = sight.host().running() else { return Ok(()) };
        let first = boot.incarnation;
        let renewed = &mut self.renewed[sight.look.host.0];
        if sight.changed.boot {
            *renewed = None;
        }
        for event in sight.look.events {
            if let Event::Refuted { told, to, .. } = event
                && *told == first
            {
                *renewed = Some(*to);
            }
        }
        let due = renewed.unwrap_or(first);
        let cell = sight.look.node.cell_incarnation();
        if cell == due {
            return Ok(());
        }
        let refuted = if renewed.is_some() { "refuted" } else { "never refuted" };
        Err(Broken::new(
            vec![sight.name()],
            format!("{} writes its increments to the cell of incarnation {cell}", sight.name()),
            format!("it booted at {first} and has {refuted} that, so that they belong to the cell of {due}"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, ms};
    use crate::engine::Fault;
    use crate::scenario::model::HostIx;
    use firedrill_core::id::Incarnation;
    use firedrill_core::io::Event;

    /// Told of itself at `told` it refutes with 1010, and writes to `cell` from then on.
    fn refute(told: u64, cell: u64) -> Option<&'static str> {
        let mut bench = Bench::new(&["a", "b"]);
        bench.world.fault_applied(ms(1), &Fault::Kill(HostIx(1)));
        let to = Incarnation(1010);
        bench.nodes[0].incarnation = to;
        bench.nodes[0].cell_incarnation = Incarnation(cell);
        let event = Event::Refuted { told: Incarnation(told), from: Incarnation(1000), to };
        bench.events(0, 10, &[event]).err().map(|broken| broken.oracle)
    }

    #[test]
    fn the_cell_moves_when_the_first_incarnation_is_refuted_and_only_then() {
        assert_eq!(refute(1000, 1010), None);
        assert_eq!(refute(1000, 1000), Some("cell_follows_boot"));
        assert_eq!(refute(1005, 1000), None);
        assert_eq!(refute(1005, 1010), Some("cell_follows_boot"));
    }
}
