//! A node has one row at a time on its way to the disk: the next is sealed on what became of the one before.

use firedrill_core::issuance::event::IssuanceEvent;
use firedrill_core::issuance::window::Window;

use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule};

/// Keeps the row that each host has under way.
#[derive(Debug)]
pub(super) struct SealsOneByOne {
    under_way: Vec<Option<Window>>,
}

impl SealsOneByOne {
    pub(super) fn new(world: &World) -> Self {
        Self { under_way: vec![None; world.hosts().len()] }
    }
}

impl Oracle for SealsOneByOne {
    const RULE: Rule = Rule {
        name: "seals_one_by_one",
        invariant: "no node seals a row while another of its rows waits to become durable",
        source: "docs/issuance.md, Seal",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let Some(turn) = sight.turn() else { return Ok(()) };
        let under_way = &mut self.under_way[sight.look.host.0];
        if sight.changed.boot {
            *under_way = None;
        }
        for event in turn.events() {
            if let IssuanceEvent::Sealed { .. } | IssuanceEvent::SealRefused { .. } = event {
                *under_way = None;
            }
            let IssuanceEvent::Sealing { window, .. } = event else { continue };
            if let Some(before) = under_way.replace(*window) {
                return Err(Broken::new(
                    vec![sight.name()],
                    format!("{} seals window {window}", sight.name()),
                    format!("its row of window {before} waits for the disk"),
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, mint, sealed, sealing};

    #[test]
    fn a_second_row_under_way_fires() {
        let mut bench = Bench::new(&["a"]);
        bench.turn_off_all(&["sealed_by_issuer", "seals_caught_up"]);
        bench.nodes[0].issuance = Some(mint("a", vec![]));
        bench.events(0, 5, &[sealing(11, 0)]).unwrap();
        bench.events(0, 6, &[sealed(11, 0), sealing(12, 0)]).unwrap();
        assert_eq!(bench.events(0, 7, &[sealing(13, 0)]).unwrap_err().oracle, "seals_one_by_one");
    }
}
