//! Time goes on: no moment holds inputs without end, and no cluster talks itself to death.
//!
//! A machine whose answer to an answer is an answer, or whose wake-up is due again at once, never lets a simulation
//! end, and one whose documents grow without measure ends too late for anybody. A run that was given a limit of inputs
//! and bytes reports exceeding it under the same rule.

use std::time::Duration;

use firedrill_core::time::Instant;

use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule, clock};
use crate::outcome::Violation;
use crate::scenario::model::Scenario;

/// The rule's name, for campaigns to report a hang under.
pub const NAME: &str = Progress::RULE.name;
/// Most inputs at one instant. A hundred thousand replayed frames that arrive at once are legitimate.
const AT_ONCE_MAX: u64 = 1_000_000;

/// Counts what is handled while time stands still.
#[derive(Debug)]
pub(super) struct Progress {
    at: Instant,
    handled: u64,
}

impl Progress {
    pub(super) const fn new(_world: &World) -> Self {
        Self { at: Instant::ZERO, handled: 0 }
    }
}

impl Oracle for Progress {
    const RULE: Rule = Rule {
        name: "progress",
        invariant: "virtual time goes on: no node is kept busy for ever at one moment, or beyond all measure",
        source: "docs/protocol.md, Receive path (no exchange feeds itself)",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        if self.at != sight.look.at {
            (self.at, self.handled) = (sight.look.at, 0);
        }
        self.handled += 1;
        if self.handled <= AT_ONCE_MAX {
            return Ok(());
        }
        Err(Broken::new(
            vec![sight.name()],
            format!(
                "{} inputs were handled at {}, the last by {}",
                self.handled,
                clock(self.at),
                sight.name()
            ),
            format!("more than {AT_ONCE_MAX} at one instant is a loop: time does not go on"),
        ))
    }
}

/// The violation of a run that handled and sent more than it was given.
pub fn too_much(at: Instant, inputs: u64, bytes_sent: u64, scenario: &Scenario) -> Violation {
    let planned = Duration::from_micros(at.as_micros()).max(Duration::from_millis(1));
    Violation {
        oracle: Progress::RULE.name,
        invariant: Progress::RULE.invariant,
        source: Progress::RULE.source,
        at_us: at.as_micros(),
        nodes: scenario.hosts.iter().map(|host| host.name.clone()).collect(),
        fact: format!("{inputs} inputs were handled and {bytes_sent} bytes sent in {}", super::span(planned)),
        contradiction: format!(
            "{} nodes that push small documents as configured need a hundredth of that: they keep each other busy",
            scenario.hosts.len()
        ),
        liveness: false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;

    #[test]
    fn a_moment_that_never_ends_fires_and_a_busy_one_does_not() {
        let mut bench = Bench::new(&["a"]);
        for _ in 0..AT_ONCE_MAX {
            bench.wake(0, 10).unwrap();
        }
        bench.wake(0, 11).unwrap();
        let broken = (0..=AT_ONCE_MAX).find_map(|_| bench.wake(0, 12).err()).expect("time stands still");
        assert_eq!(broken.oracle, "progress");
    }
}
