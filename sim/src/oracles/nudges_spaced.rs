//! Increments nudge pushes at a distance: at most one within the nudge floor, beside the rounds. Otherwise a service
//! that counts fast sends its whole document to everybody at every increment.

use firedrill_core::io::Event;
use firedrill_core::time::Instant;

use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule, clock, span};

/// Pushes within one nudge floor that are too many where it is as long as a round: a nudge and two rounds are due.
const PUSHES_KEPT: usize = 3;

/// Per host, on its own clock.
#[derive(Debug, Clone, Default)]
struct Pace {
    pushes_sent: u64,
    /// Steps that pushed without refuting, the latest first.
    pushes: [Option<Instant>; PUSHES_KEPT],
}

/// Looks at how close pushes come together.
#[derive(Debug)]
pub(super) struct NudgesSpaced {
    hosts: Vec<Pace>,
}

impl NudgesSpaced {
    pub(super) fn new(world: &World) -> Self {
        Self { hosts: vec![Pace::default(); world.hosts().len()] }
    }
}

impl Oracle for NudgesSpaced {
    const RULE: Rule = Rule {
        name: "nudges_spaced",
        invariant: "within one nudge floor a node pushes at most once for its increments, beside its rounds",
        source: "docs/protocol.md, Counters; Limits (nudge floor)",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let pace = &mut self.hosts[sight.look.host.0];
        if sight.changed.boot {
            *pace = Pace::default();
        }
        let sent = sight.look.node.metrics().pushes_sent;
        if std::mem::replace(&mut pace.pushes_sent, sent) == sent {
            return Ok(());
        }
        if sight.look.events.iter().any(|event| matches!(event, Event::Refuted { .. })) {
            return Ok(());
        }
        let now = sight.look.now.instant;
        let timing = sight.host().facts.timing;
        let floor = timing.nudge_floor();
        // Rounds are at least 0.8 P apart, so a floor below that sees one of them at the most.
        let due = if floor < timing.push / 5 * 4 { 2 } else { 3 };
        let first = pace.pushes[due - 1];
        pace.pushes.rotate_right(1);
        pace.pushes[0] = Some(now);
        let Some(first) = first.filter(|first| now.since(*first) < floor) else { return Ok(()) };
        Err(Broken::new(
            vec![sight.name()],
            format!(
                "{} pushed {} times from {} to {} of its own clock",
                sight.name(),
                due + 1,
                clock(first),
                clock(now)
            ),
            format!("within {} at most {} rounds and one nudge are due", span(floor), due - 1),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;

    fn pushes(at: &[u64]) -> Option<&'static str> {
        let mut bench = Bench::new(&["a"]);
        bench.turn_off("rounds_paced");
        at.iter().find_map(|at| {
            bench.nodes[0].metrics.pushes_sent += 2;
            bench.wake(0, *at).err().map(|broken| broken.oracle)
        })
    }

    #[test]
    fn a_second_nudge_within_the_floor_fires() {
        assert_eq!(pushes(&[1000, 1060, 1124]), Some("nudges_spaced"));
        assert_eq!(pushes(&[1000, 1060, 1125]), None);
    }
}
