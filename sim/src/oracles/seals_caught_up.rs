//! A node that has just started seals only when it knows what it missed: the grace of its boot is over, or it knows
//! every row that a member in its view had durable when it booted.

use firedrill_core::issuance::event::IssuanceEvent;

use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule, span};

/// Looks at every row that is sealed in the grace of a boot.
#[derive(Debug)]
pub(super) struct SealsCaughtUp;

impl SealsCaughtUp {
    pub(super) const fn new(_world: &World) -> Self {
        Self
    }
}

impl Oracle for SealsCaughtUp {
    const RULE: Rule = Rule {
        name: "seals_caught_up",
        invariant: "no node seals in the grace of its boot before it knows every row that those in its view had",
        source: "docs/issuance.md, Seal",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let Some(turn) = sight.turn() else { return Ok(()) };
        let seals = |event: &IssuanceEvent| matches!(event, IssuanceEvent::Sealing { .. });
        let up = sight.look.now.instant.since(turn.account.booted_at);
        if up >= turn.issuance.config().boot_grace_z.duration() || !turn.events().any(seals) {
            return Ok(());
        }
        let broken = |contradiction: String, others: Vec<String>| {
            let mut nodes = vec![sight.name()];
            nodes.extend(others);
            Err(Broken::new(
                nodes,
                format!("{} seals {} after its boot", sight.name(), span(up)),
                contradiction,
            ))
        };
        let view = &sight.told().view;
        if view.is_empty() {
            return broken(
                String::from("it is in its boot grace and has nobody in view to ask what it missed"),
                vec![],
            );
        }
        for peer in view {
            // Of two hosts with one id nobody can say which one answered.
            let [host] = sight.world.hosts_of(*peer) else { continue };
            let theirs = turn.books.account(*host);
            let Some(had) = turn.account.at_boot.get(host.0) else { continue };
            for (stream, rows) in had {
                let (known, _) = turn.account.of(*stream);
                let lasting = theirs.of(*stream).1.min(*rows);
                if known < lasting {
                    let (origin, other) = (&turn.books.streams()[*stream].origin, sight.world.name(*host));
                    return broken(
                        format!("{other} had {lasting} rows of {origin} by then, of which it knows {known}"),
                        vec![other.to_owned()],
                    );
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, mint, row, sealing, stamped};

    #[test]
    fn a_row_sealed_without_knowing_what_a_member_in_view_had_fires() {
        let theirs =
            || vec![stamped("a.1", 1, row(9, 10, 1, 0, "a")), stamped("b.7", 1, row(10, 11, 1, 0, "a"))];
        let mut bench = Bench::new(&["a", "b"]);
        bench.turn_off("view_no_down");
        bench.take(1, 2, mint("b", theirs())).unwrap();
        bench.wake(1, 2).unwrap();
        bench.kill(0, 3);
        bench.boot_with(0, 10, 2000, Some(mint("a", theirs()[..1].to_vec()))).unwrap();
        bench.nodes[0].show("b");
        let told = bench.events(0, 11, &[sealing(12, 0)]).unwrap_err();
        assert_eq!(told.oracle, "seals_caught_up");
        assert!(told.contradiction.starts_with("b had 1 rows of b.7"), "{}", told.contradiction);
    }

    #[test]
    fn alone_a_node_waits_for_its_grace() {
        let mut bench = Bench::new(&["a"]);
        bench.take(0, 2, mint("a", vec![])).unwrap();
        assert_eq!(bench.events(0, 5, &[sealing(12, 0)]).unwrap_err().oracle, "seals_caught_up");
        let mut bench = Bench::new(&["a"]);
        bench.turn_off("late_round");
        bench.take(0, 2, mint("a", vec![])).unwrap();
        bench.events(0, 32_000, &[sealing(12, 0)]).unwrap();
    }
}
