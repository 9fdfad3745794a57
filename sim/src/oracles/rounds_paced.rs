//! Rounds keep their pace: at most three pushes an interval outside the nudge, and never in lockstep.

use firedrill_core::io::{Command, Event};
use firedrill_core::time::Instant;

use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule, clock, span};
use crate::engine::Cause;

/// Pushes outside the nudge that one interval may see: two rounds at the shortest jitter, one refutation.
const PUSHES_MAX: usize = 3;
/// One more where there is an issuance: whoever has something to say before its first round pushes first.
const PUSHES_MAX_ISSUANCE: usize = PUSHES_MAX + 1;
/// So many equal intervals in a row are no coincidence: with the fewest possible values (five, for 10 ms read in
/// whole milliseconds) their probability is below 10⁻¹⁰.
const EQUAL_INTERVALS: u32 = 16;

/// Per host, on its own clock.
#[derive(Debug, Clone, Default)]
struct Pace {
    pushes_sent: u64,
    incremented_at: Option<Instant>,
    /// Pushes outside the nudge, the latest first.
    pushes: [Option<Instant>; PUSHES_MAX_ISSUANCE],
    interval_us: u64,
    equal: u32,
}

/// Counts the pushes that no increment explains.
#[derive(Debug)]
pub(super) struct RoundsPaced {
    hosts: Vec<Pace>,
}

impl RoundsPaced {
    pub(super) fn new(world: &World) -> Self {
        Self { hosts: vec![Pace::default(); world.hosts().len()] }
    }
}

impl Oracle for RoundsPaced {
    const RULE: Rule = Rule {
        name: "rounds_paced",
        invariant: "a node pushes at most three times a push interval unless an increment nudged it, and its rounds are jittered",
        source: "docs/protocol.md, Bounds after a heal (steady state); Limits (push jitter)",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let pace = &mut self.hosts[sight.look.host.0];
        if sight.changed.boot {
            *pace = Pace::default();
        }
        let now = sight.look.now.instant;
        if let Cause::Command(Command::Increment { .. }) = sight.look.cause {
            pace.incremented_at = Some(now);
        }
        let sent = sight.look.node.metrics().pushes_sent;
        if sent == pace.pushes_sent {
            return Ok(());
        }
        pace.pushes_sent = sent;
        let push = sight.host().facts.timing.push;
        // A nudge follows its increment within the interval.
        if pace.incremented_at.is_some_and(|at| now.since(at) <= push) {
            pace.equal = 0;
            return Ok(());
        }
        let most = if sight.look.node.issuance().is_some() { PUSHES_MAX_ISSUANCE } else { PUSHES_MAX };
        if let Some(first) = pace.pushes[most - 1].filter(|first| now.since(*first) < push) {
            return Err(Broken::new(
                vec![sight.name()],
                format!(
                    "{} pushed {} times from {} to {} of its own clock, with no increment to push for",
                    sight.name(),
                    most + 1,
                    clock(first),
                    clock(now)
                ),
                format!("at most {most} pushes are due in one interval of {}", span(push)),
            ));
        }
        pace.note(now, sight.look.events.iter().any(|event| matches!(event, Event::Refuted { .. })));
        if pace.equal < EQUAL_INTERVALS {
            return Ok(());
        }
        Err(Broken::new(
            vec![sight.name()],
            format!(
                "{} left exactly {} µs between its last {} rounds",
                sight.name(),
                pace.interval_us,
                pace.equal + 1
            ),
            String::from("every interval is drawn anew from 80 to 120 % of the push interval"),
        ))
    }
}

impl Pace {
    fn note(&mut self, now: Instant, refuted: bool) {
        let interval_us = self.pushes[0].map_or(0, |last| now.as_micros().saturating_sub(last.as_micros()));
        self.equal = if refuted || interval_us != self.interval_us { 0 } else { self.equal + 1 };
        self.interval_us = interval_us;
        self.pushes.rotate_right(1);
        self.pushes[0] = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use crate::outcome::Violation;

    fn push(bench: &mut Bench, at: u64) -> Result<(), Box<Violation>> {
        bench.nodes[0].metrics.pushes_sent += 2;
        bench.wake(0, at)
    }

    #[test]
    fn a_fourth_push_in_an_interval_fires() {
        let mut bench = Bench::new(&["a"]);
        for at in [1000, 1100, 1400] {
            push(&mut bench, at).unwrap();
        }
        assert_eq!(push(&mut bench, 1499).unwrap_err().oracle, "rounds_paced");
        let mut bench = Bench::new(&["a"]);
        for at in [1000, 1100, 1400, 1500] {
            push(&mut bench, at).unwrap();
        }
    }

    #[test]
    fn pushes_for_increments_are_not_rounds() {
        let mut bench = Bench::new(&["a"]);
        for at in [1000, 1100, 1200, 1300, 1400] {
            bench.increment(0, at - 1, "c", 1).unwrap();
            push(&mut bench, at).unwrap();
        }
    }

    #[test]
    fn lockstep_fires_and_jitter_does_not() {
        let mut bench = Bench::new(&["a"]);
        let broken = (1..30).find_map(|round| push(&mut bench, round * 500).err());
        assert!(broken.unwrap().fact.contains("500000 µs"));
        let mut bench = Bench::new(&["a"]);
        for round in 1..60 {
            push(&mut bench, round * 500 + round % 7).unwrap();
        }
    }
}
