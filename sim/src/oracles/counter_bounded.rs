//! No cell holds more than was written into it, so no counter exceeds the increments of all boots.

use firedrill_core::id::{Cell, CounterName};
use firedrill_core::io::Command;

use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule};
use crate::engine::Cause;

/// Holds every changed document against what the harness knows was written.
#[derive(Debug)]
pub(super) struct CounterBounded;

impl CounterBounded {
    pub(super) const fn new(_world: &World) -> Self {
        Self
    }
}

impl Oracle for CounterBounded {
    const RULE: Rule = Rule {
        name: "counter_bounded",
        invariant: "no cell holds more than its boot wrote into it, and no counter more than all boots incremented it by",
        source: "docs/protocol.md, Counters (a lower bound of the truth, as cells and sum saturate)",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        if !sight.changed.document {
            return Ok(());
        }
        let node = sight.look.node;
        for (name, cells) in &node.document().counters {
            let truth = sight.world.counters().get(name);
            let pending = pending(sight, name);
            let mut written = truth.into_iter().flat_map(|truth| &truth.cells).peekable();
            let mut total: u64 = 0;
            for (cell, &value) in cells {
                total = total.saturating_add(value);
                // Nearly always the next cell written is this one: that is asked first.
                let same = written.next_if(|(other, _)| *other == cell).or_else(|| {
                    while written.next_if(|(other, _)| *other < cell).is_some() {}
                    written.next_if(|(other, _)| *other == cell)
                });
                let known = same.map_or(0, |(_, truth)| truth.value);
                let is_own = cell.incarnation == node.cell_incarnation() && cell.node == *node.id();
                let allowed = known.saturating_add(if is_own { pending } else { 0 });
                if value > allowed {
                    return Err(cell_above(sight, name, cell, value, allowed));
                }
            }
            let allowed = truth.map_or(0, |truth| truth.total).saturating_add(pending);
            if total > allowed {
                return Err(Broken::new(
                    vec![sight.name()],
                    format!("{} shows counter {name} at {total}", sight.name()),
                    format!("all increments of {name} by all boots together are {allowed}"),
                ));
            }
        }
        Ok(())
    }
}

/// What the command of this very step may have added: the harness counts it only once it is answered.
fn pending<S: Subject>(sight: &Sight<'_, S>, name: &CounterName) -> u64 {
    match sight.look.cause {
        Cause::Command(Command::Increment { counter, by }) if counter == name => *by,
        Cause::Command(_) | Cause::Boot | Cause::Wake | Cause::Disk(_) | Cause::Frame(_) | Cause::Wire => 0,
    }
}

fn cell_above<S: Subject>(
    sight: &Sight<'_, S>,
    name: &CounterName,
    cell: &Cell,
    value: u64,
    allowed: u64,
) -> Box<Broken> {
    let mut nodes = vec![sight.name()];
    let writer = cell.node.as_str();
    if nodes[0] != writer {
        nodes.push(String::from(writer));
    }
    Broken::new(
        nodes,
        format!("{} holds cell {cell} of counter {name} at {value}", sight.name()),
        format!("the increments written into that cell add up to {allowed}"),
    )
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;

    #[test]
    fn a_cell_above_what_was_written_fires_at_whoever_holds_it() {
        let mut bench = Bench::new(&["a", "b"]);
        bench.increment(1, 5, "c", 3).unwrap();
        bench.set_cell(0, "c", "b", 4);
        let broken = bench.wake(0, 6).unwrap_err();
        assert_eq!(broken.oracle, "counter_bounded");
        assert_eq!(broken.nodes, ["a", "b"]);
        assert!(broken.fact.contains("at 4") && broken.contradiction.contains("add up to 3"), "{broken:?}");
    }

    #[test]
    fn a_command_may_add_what_it_asks_for_and_no_more() {
        let mut bench = Bench::new(&["a"]);
        bench.increment(0, 5, "c", 3).unwrap();
        bench.nodes[0].extra = 1;
        assert_eq!(bench.increment(0, 6, "c", 3).unwrap_err().oracle, "counter_bounded");
    }

    #[test]
    fn a_cell_nobody_wrote_fires() {
        let mut bench = Bench::new(&["a", "b"]);
        bench.set_cell(0, "c", "b", 1);
        assert_eq!(bench.wake(0, 6).unwrap_err().oracle, "counter_bounded");
    }
}
