//! One cell, one writer: no two boots of a host write one counter cell. Two writers would hide each other's
//! increments, because cells merge by maximum.
//!
//! Two hosts with one id may come to one cell, when one refutes its way to where the other is: that is reported
//! (decision 12), not prevented.

use std::collections::BTreeMap;

use firedrill_core::id::{Cell, CounterName};
use firedrill_core::io::Command;

use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule};
use crate::engine::Cause;
use crate::scenario::model::HostIx;

/// Remembers who wrote each cell first.
#[derive(Debug)]
pub(super) struct CellSingleWriter {
    writers: BTreeMap<(CounterName, Cell), (HostIx, u32)>,
}

impl CellSingleWriter {
    pub(super) const fn new(_world: &World) -> Self {
        Self { writers: BTreeMap::new() }
    }
}

impl Oracle for CellSingleWriter {
    const RULE: Rule = Rule {
        name: "cell_single_writer",
        invariant: "no two boots of a host write one counter cell, and no two boots begin with one incarnation of one id, unless the scenario lets boots share a millisecond or turns a clock back",
        source: "docs/protocol.md, Counters (a node adds to its present cell alone); decisions 4 and 17",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        if sight.world.reuse_allowed() {
            return Ok(());
        }
        match sight.look.cause {
            Cause::Boot => reused(sight),
            Cause::Command(Command::Increment { counter, .. }) => self.write(sight, counter),
            Cause::Command(Command::Leave | Command::PauseIssuance { .. })
            | Cause::Wake
            | Cause::Disk(_)
            | Cause::Frame(_)
            | Cause::Wire => Ok(()),
        }
    }
}

impl CellSingleWriter {
    fn write<S: Subject>(&mut self, sight: &Sight<'_, S>, counter: &CounterName) -> Result<(), Box<Broken>> {
        let node = sight.look.node;
        let cell = Cell { node: node.id().clone(), incarnation: node.cell_incarnation() };
        // A refused command wrote nothing.
        let wrote = node.document().counters.get(counter).is_some_and(|cells| cells.contains_key(&cell));
        if !wrote || node.has_departed() {
            return Ok(());
        }
        let us = (sight.look.host, sight.look.boot);
        let first = *self.writers.entry((counter.clone(), cell.clone())).or_insert(us);
        if first == us || first.0 != us.0 {
            return Ok(());
        }
        let other = sight.world.name(first.0);
        Err(Broken::new(
            nodes(sight, other),
            format!("{} in its boot {} wrote cell {cell} of counter {counter}", sight.name(), us.1),
            format!("{other} in its boot {} wrote that cell before", first.1),
        ))
    }
}

fn reused<S: Subject>(sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
    let (host, boot) = (sight.look.host, sight.look.boot);
    let Some(reuse) = sight.world.reused().iter().find(|reuse| (reuse.host, reuse.boot) == (host, boot))
    else {
        return Ok(());
    };
    let earlier = sight.world.name(reuse.earlier);
    Err(Broken::new(
        nodes(sight, earlier),
        format!("{} began its boot {boot} with incarnation {}", sight.name(), reuse.incarnation),
        format!("{earlier} began its boot {} of the same id with that incarnation", reuse.earlier_boot),
    ))
}

fn nodes<S: Subject>(sight: &Sight<'_, S>, other: &str) -> Vec<String> {
    let mut nodes = vec![sight.name()];
    if nodes[0] != other {
        nodes.push(String::from(other));
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use firedrill_core::id::Incarnation;

    #[test]
    fn a_second_boot_in_an_old_cell_fires() {
        let mut bench = Bench::new(&["a"]);
        bench.increment(0, 5, "c", 3).unwrap();
        let cell = bench.nodes[0].cell_incarnation;
        bench.kill(0, 6);
        bench.boot(0, 9, 9).unwrap();
        bench.nodes[0].cell_incarnation = cell;
        let broken = bench.increment(0, 10, "c", 1).unwrap_err();
        assert_eq!(broken.oracle, "cell_single_writer");
        assert!(broken.fact.contains("boot 1") && broken.contradiction.contains("boot 0"), "{broken:?}");
    }

    #[test]
    fn a_reused_incarnation_fires_unless_the_scenario_allows_it() {
        let mut bench = Bench::new(&["a"]);
        let Incarnation(first) = bench.nodes[0].incarnation;
        bench.kill(0, 6);
        assert_eq!(bench.boot(0, 9, first).unwrap_err().oracle, "cell_single_writer");

        let mut bench = Bench::with(&["a"], super::super::testing::calm_net(), true);
        bench.increment(0, 5, "c", 3).unwrap();
        bench.kill(0, 6);
        bench.boot(0, 9, first).unwrap();
        bench.increment(0, 10, "c", 1).unwrap();
    }
}
