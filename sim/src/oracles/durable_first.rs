//! A row is durable before anybody is shown it: it becomes durable when the disk has answered and at no other
//! moment, and whoever sends a row has had it durable.
//!
//! What was sent is seen where it arrives: a step that takes rows in says from whom they came.

use firedrill_core::issuance::event::IssuanceEvent;
use firedrill_core::issuance::writer::Written;

use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule};
use crate::engine::Cause;

/// Looks at every row that becomes durable, and at every row that arrives.
#[derive(Debug)]
pub(super) struct DurableFirst;

impl DurableFirst {
    pub(super) const fn new(_world: &World) -> Self {
        Self
    }
}

impl Oracle for DurableFirst {
    const RULE: Rule = Rule {
        name: "durable_first",
        invariant: "no row is shown, counted or sent before the disk of that node has answered for it",
        source: "docs/issuance.md, Seal",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let Some(turn) = sight.turn() else { return Ok(()) };
        if sight.changed.boot || turn.account.gained.is_empty() {
            return Ok(());
        }
        let answered = matches!(sight.look.cause, Cause::Boot | Cause::Disk(Written::Durable));
        let senders = || {
            let from = turn.events().filter_map(|event| {
                if let IssuanceEvent::Replicated { from, .. } = event { Some(from) } else { None }
            });
            from.filter_map(|id| sight.world.peer(id)).flat_map(|peer| sight.world.hosts_of(peer))
        };
        for gain in &turn.account.gained {
            let origin = &turn.books.streams()[gain.stream].origin;
            if gain.durable.1 > gain.durable.0 && !answered {
                return Err(Broken::new(
                    vec![sight.name()],
                    format!("{} shows number {} of {origin}", sight.name(), gain.durable.1),
                    String::from("its disk has not answered for it"),
                ));
            }
            let had = |rows: usize| {
                let most = |host| turn.books.account(host).ever_durable.get(&gain.stream).copied();
                senders().any(|host| most(*host).unwrap_or(0) >= rows)
            };
            if senders().next().is_some() && gain.known.1 > gain.known.0 && !had(gain.known.1) {
                let from = senders().map(|host| sight.world.name(*host).to_owned()).collect::<Vec<_>>();
                let fact = format!("{} is sent number {} of {origin}", sight.name(), gain.known.1);
                let contradiction = format!("the disk of {} has not answered for it", from.join(" or "));
                return Err(Broken::new([vec![sight.name()], from].concat(), fact, contradiction));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use firedrill_core::io::Event;
    use firedrill_core::issuance::row::Stamped;

    use super::super::testing::{Bench, mint, node_id, row, stamped};
    use super::*;

    fn rows() -> Vec<Stamped> {
        vec![stamped("a.1", 1, row(9, 10, 1, 0, "a")), stamped("a.1", 2, row(10, 11, 1, 0, "a"))]
    }

    #[test]
    fn a_row_that_is_shown_without_an_answer_of_the_disk_fires() {
        let mut bench = Bench::new(&["a"]);
        bench.boot_with(0, 1, 2000, Some(mint("a", rows()[..1].to_vec()))).unwrap();
        bench.nodes[0].issuance = Some(mint("a", rows()));
        bench.disk(0, 2, Written::Durable).unwrap();
        let mut bench = Bench::new(&["a"]);
        bench.boot_with(0, 1, 2000, Some(mint("a", rows()[..1].to_vec()))).unwrap();
        bench.nodes[0].issuance = Some(mint("a", rows()));
        assert_eq!(bench.disk(0, 2, Written::Refused).unwrap_err().oracle, "durable_first");
    }

    #[test]
    fn a_row_that_its_sender_has_not_durable_fires() {
        let mut bench = Bench::new(&["a", "b"]);
        bench.boot_with(0, 1, 2000, Some(mint("a", rows()[..1].to_vec()))).unwrap();
        bench.boot_with(1, 1, 2001, Some(mint("b", vec![]))).unwrap();
        // What arrives is taken and durable at once here: the answer of the disk stands for both.
        let taken = |rows| Event::Issuance(IssuanceEvent::Replicated { from: node_id("a"), rows });
        bench.nodes[1].issuance = Some(mint("b", rows()[..1].to_vec()));
        bench.disk_with(1, 2, Written::Durable, &[taken(1)]).unwrap();
        bench.nodes[1].issuance = Some(mint("b", rows()));
        let told = bench.disk_with(1, 3, Written::Durable, &[taken(1)]).unwrap_err();
        assert_eq!(told.oracle, "durable_first");
        assert!(told.fact.starts_with("b is sent number 2"), "{}", told.fact);
    }
}
