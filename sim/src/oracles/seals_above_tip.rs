//! A node seals above everything it knows: nothing below the tip of its spine, nothing twice, and each row goes on from
//! the tip.
//!
//! A row that waits to become durable is in no spine, so the account's tip is that of the moment of sealing; what the
//! node has under way is kept here. On the plain path (`failover = false`) the node's own rows are all that counts.

use firedrill_core::issuance::event::IssuanceEvent;
use firedrill_core::issuance::window::Window;

use super::sight::{Sight, Subject, Turn};
use super::world::World;
use super::{Broken, Oracle, Rule};

/// Keeps the window that each host stamped last and was not refused.
#[derive(Debug)]
pub(super) struct SealsAboveTip {
    stamped: Vec<Option<Window>>,
}

impl SealsAboveTip {
    pub(super) fn new(world: &World) -> Self {
        Self { stamped: vec![None; world.hosts().len()] }
    }
}

impl Oracle for SealsAboveTip {
    const RULE: Rule = Rule {
        name: "seals_above_tip",
        invariant: "no node seals a row at or below the tip that it knows, or one that goes on from anywhere else",
        source: "docs/issuance.md, Seal",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let Some(turn) = sight.turn() else { return Ok(()) };
        let stamped = &mut self.stamped[sight.look.host.0];
        if sight.changed.boot {
            *stamped = None;
        }
        for event in turn.events() {
            if let IssuanceEvent::SealRefused { .. } = event {
                *stamped = None;
            }
            let IssuanceEvent::Sealing { window, .. } = event else { continue };
            let tip = known(&turn, sight.look.node).max(*stamped);
            if tip.is_some_and(|tip| *window <= tip) {
                let tip = tip.unwrap_or_default();
                return Err(Broken::new(
                    vec![sight.name()],
                    format!("{} seals window {window}", sight.name()),
                    format!("it knows that everything up to window {tip} is sealed"),
                ));
            }
            let row = turn.issuance.sealing_row().filter(|row| row.window == *window);
            if let Some((row, tip)) = row.zip(tip).filter(|(row, tip)| row.from_window != *tip) {
                return Err(Broken::new(
                    vec![sight.name()],
                    format!("{} seals window {window} on from window {}", sight.name(), row.from_window),
                    format!("it knows that everything up to window {tip} is sealed"),
                ));
            }
            *stamped = Some(*window);
        }
        Ok(())
    }
}

/// The watermark of the rows that a node knows.
fn known<S: Subject>(turn: &Turn<'_>, node: &S) -> Option<Window> {
    if turn.issuance.config().failover {
        return turn.account.tip;
    }
    let own = turn
        .account
        .held
        .iter()
        .filter(|held| held.known > 0 && turn.books.streams()[held.stream].origin.node == *node.id());
    own.map(|held| turn.books.streams()[held.stream].rows[held.known - 1].window).max()
}

#[cfg(test)]
mod tests {
    use firedrill_core::io::Event;

    use super::super::testing::{Bench, mint, row, sealing, stamped};
    use super::*;

    #[test]
    fn a_row_at_the_tip_fires_and_one_above_does_not() {
        let mut bench = Bench::new(&["a"]);
        bench.turn_off("sealed_by_issuer");
        bench.turn_off("seals_caught_up");
        bench.take(0, 2, mint("a", vec![stamped("a.1000", 1, row(9, 10, 1, 0, "a"))])).unwrap();
        bench.events(0, 5, &[sealing(11, 0)]).unwrap();
        assert_eq!(bench.events(0, 6, &[sealing(10, 0)]).unwrap_err().oracle, "seals_above_tip");
    }

    #[test]
    fn what_was_stamped_counts_until_it_is_refused() {
        let mut bench = Bench::new(&["a"]);
        bench.turn_off_all(&["sealed_by_issuer", "seals_caught_up", "seals_one_by_one"]);
        bench.take(0, 2, mint("a", vec![])).unwrap();
        bench.events(0, 5, &[sealing(11, 0)]).unwrap();
        let refused = IssuanceEvent::SealRefused { window: Window(11) };
        bench.events(0, 6, &[Event::Issuance(refused), sealing(11, 0)]).unwrap();
        assert_eq!(bench.events(0, 7, &[sealing(11, 0)]).unwrap_err().oracle, "seals_above_tip");
    }
}
