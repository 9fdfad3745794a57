//! A node that was held up says so and restarts its silence clocks before it judges anybody: otherwise its own
//! lateness looks like everybody's silence.
//!
//! A node handles nothing between two steps, and its next round is due at most 1.2 P after the first of them. A
//! gap of more than S beyond that is a late round.

use firedrill_core::io::Event;
use firedrill_core::limits::PUSH_JITTER_PERCENT;
use firedrill_core::time::{Duration, Instant, micros};

use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule, span};

/// Keeps when each host last handled an input, on its own clock.
#[derive(Debug)]
pub(super) struct LateRound {
    last: Vec<Instant>,
}

impl LateRound {
    pub(super) fn new(world: &World) -> Self {
        Self { last: vec![Instant::ZERO; world.hosts().len()] }
    }
}

impl Oracle for LateRound {
    const RULE: Rule = Rule {
        name: "late_round",
        invariant: "a node that was held up for more than a suspicion timeout restarts its silence clocks before it judges anybody",
        source: "docs/protocol.md, decision 10",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let now = sight.look.now.instant;
        let before = std::mem::replace(&mut self.last[sight.look.host.0], now);
        let gap = now.since(before);
        let timing = &sight.host().facts.timing;
        if gap <= timing.suspicion || sight.changed.boot || sight.look.node.has_departed() {
            return Ok(());
        }
        let punctual = longest_interval(timing.push).saturating_add(timing.suspicion);
        let said = sight.look.events.iter().any(|event| matches!(event, Event::RoundLate { .. }));
        if gap <= punctual || said {
            return Ok(());
        }
        Err(Broken::new(
            vec![sight.name()],
            format!("{} handled nothing for {} of its own clock", sight.name(), span(gap)),
            format!(
                "its round was late by more than the {} of a suspicion timeout, and it did not say so",
                span(timing.suspicion)
            ),
        ))
    }
}

/// The longest a jittered round may be away.
pub(super) fn longest_interval(push: Duration) -> Duration {
    Duration::from_micros((micros(push) / 100).saturating_add(1).saturating_mul(PUSH_JITTER_PERCENT.1))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;

    #[test]
    fn a_long_gap_without_a_word_fires() {
        let mut bench = Bench::new(&["a"]);
        bench.wake(0, 1000).unwrap();
        bench.wake(0, 4100).unwrap();
        assert_eq!(bench.wake(0, 7250).unwrap_err().oracle, "late_round");
        let mut bench = Bench::new(&["a"]);
        bench.wake(0, 1000).unwrap();
        bench.events(0, 9000, &[Event::RoundLate { late_us: 5_000_000 }]).unwrap();
    }
}
