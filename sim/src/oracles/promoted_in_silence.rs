//! Nobody is replaced while rows arrive: a node promotes itself only when the tip of its spine has not risen for more
//! than `silence_z`, by its own clock and counted from its boot at the earliest.

use firedrill_core::issuance::event::IssuanceEvent;

use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule, span};

/// Looks at every promotion.
#[derive(Debug)]
pub(super) struct PromotedInSilence;

impl PromotedInSilence {
    pub(super) const fn new(_world: &World) -> Self {
        Self
    }
}

impl Oracle for PromotedInSilence {
    const RULE: Rule = Rule {
        name: "promoted_in_silence",
        invariant: "no node promotes itself while it sees the tip advance",
        source: "docs/issuance.md, Election",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let Some(turn) = sight.turn() else { return Ok(()) };
        let promoted = |event: &IssuanceEvent| matches!(event, IssuanceEvent::Promoted { .. });
        let silence = sight.look.now.instant.since(turn.account.tip_rose_at);
        let needed = turn.issuance.config().silence_z.duration();
        if silence > needed || !turn.events().any(promoted) {
            return Ok(());
        }
        Err(Broken::new(
            vec![sight.name()],
            format!("{} promotes itself after {} of silence", sight.name(), span(silence)),
            format!("the tip must have rested for more than {}", span(needed)),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, mint, promoted, row, stamped};

    #[test]
    fn a_promotion_within_the_silence_fires_and_one_after_it_does_not() {
        let mut bench = Bench::new(&["b"]);
        bench.turn_off_all(&["promoted_by_rule", "late_round", "durable_first"]);
        bench.nodes[0].issuance = Some(mint("b", vec![]));
        bench.wake(0, 1).unwrap();
        bench.nodes[0].issuance = Some(mint("b", vec![stamped("a.1", 1, row(9, 10, 1, 0, "a"))]));
        bench.wake(0, 10_000).unwrap();
        assert_eq!(bench.events(0, 56_000, &[promoted(1)]).unwrap_err().oracle, "promoted_in_silence");
        bench.events(0, 57_000, &[promoted(1)]).unwrap();
    }
}
