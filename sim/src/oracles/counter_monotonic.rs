//! A counter never falls within a boot: cells are never dropped and only grow.

use std::collections::BTreeMap;

use firedrill_core::id::{Cell, CounterName};

use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule};

/// Remembers every cell's last value per host.
#[derive(Debug)]
pub(super) struct CounterMonotonic {
    seen: Vec<BTreeMap<CounterName, BTreeMap<Cell, u64>>>,
}

impl CounterMonotonic {
    pub(super) fn new(world: &World) -> Self {
        Self { seen: vec![BTreeMap::new(); world.hosts().len()] }
    }
}

impl Oracle for CounterMonotonic {
    const RULE: Rule = Rule {
        name: "counter_monotonic",
        invariant: "a counter that a node shows never falls within a boot, nor does any of its cells",
        source: "docs/protocol.md, Counters (cells merge by maximum and are never removed)",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        if !sight.changed.document {
            return Ok(());
        }
        let seen = &mut self.seen[sight.look.host.0];
        if sight.changed.boot {
            seen.clear();
        }
        let counters = &sight.look.node.document().counters;
        for (name, cells) in seen.iter_mut() {
            let mut shown = counters.get(name).into_iter().flatten();
            for (cell, before) in cells {
                // Both sides are sorted: whatever comes before this cell is new, and past the end it is gone.
                let now = shown.by_ref().find(|(other, _)| *other == cell).map(|(_, value)| *value);
                match now {
                    Some(now) if now >= *before => *before = now,
                    Some(now) => return Err(fell(sight, name, cell, *before, &format!("holds {now}"))),
                    None => return Err(fell(sight, name, cell, *before, "is gone")),
                }
            }
        }
        for (name, cells) in counters {
            if seen.get(name).is_none_or(|known| known.len() < cells.len()) {
                seen.insert(name.clone(), cells.clone());
            }
        }
        Ok(())
    }
}

fn fell<S: Subject>(
    sight: &Sight<'_, S>,
    name: &CounterName,
    cell: &Cell,
    before: u64,
    now: &str,
) -> Box<Broken> {
    Broken::new(
        vec![sight.name()],
        format!("{} showed counter {name} with cell {cell} at {before} earlier in this boot", sight.name()),
        format!("now that cell {now}"),
    )
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;

    #[test]
    fn a_falling_cell_fires_even_when_another_makes_up_for_it() {
        let mut bench = Bench::new(&["a", "b"]);
        bench.increment(0, 5, "c", 3).unwrap();
        bench.increment(1, 6, "c", 4).unwrap();
        bench.set_cell(0, "c", "a", 1);
        bench.set_cell(0, "c", "b", 4);
        let broken = bench.wake(0, 7).unwrap_err();
        assert_eq!(broken.oracle, "counter_monotonic");
        assert!(broken.fact.contains("at 3") && broken.contradiction.contains("holds 1"), "{broken:?}");
    }

    #[test]
    fn a_dropped_counter_fires_and_a_reboot_starts_afresh() {
        let mut bench = Bench::new(&["a"]);
        bench.increment(0, 5, "c", 3).unwrap();
        bench.nodes[0].document.counters.clear();
        bench.nodes[0].document_version += 1;
        assert_eq!(bench.wake(0, 6).unwrap_err().oracle, "counter_monotonic");

        let mut bench = Bench::new(&["a"]);
        bench.increment(0, 5, "c", 3).unwrap();
        bench.kill(0, 6);
        bench.boot(0, 9, 9).unwrap();
    }
}
