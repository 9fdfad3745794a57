//! A boot begins with the incarnation that its wall clock gives: Unix milliseconds, 0 before the epoch.

use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule};

/// An engine may read the clock for the boot a little before it reads it for the first step.
const SLACK_MS: u64 = 1000;

/// Compares each boot's incarnation with its clock.
#[derive(Debug)]
pub(super) struct IncarnationFromClock;

impl IncarnationFromClock {
    pub(super) const fn new(_world: &World) -> Self {
        Self
    }
}

impl Oracle for IncarnationFromClock {
    const RULE: Rule = Rule {
        name: "incarnation_from_clock",
        invariant: "a boot begins with its wall clock in Unix milliseconds as its incarnation",
        source: "docs/protocol.md, Membership merge",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        if !sight.changed.boot {
            return Ok(());
        }
        let Some(boot) = sight.host().running() else { return Ok(()) };
        let wall_ms = u64::try_from(sight.look.now.wall.unix_ms()).unwrap_or(0);
        if boot.incarnation.0.abs_diff(wall_ms) <= SLACK_MS {
            return Ok(());
        }
        Err(Broken::new(
            vec![sight.name()],
            format!("{} began at incarnation {}", sight.name(), boot.incarnation),
            format!("its wall clock showed {wall_ms} ms since the epoch"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;

    #[test]
    fn an_incarnation_that_is_no_clock_reading_fires() {
        let mut bench = Bench::strict(&["a"]);
        bench.boot(0, 5000, 6000).unwrap();
        let mut bench = Bench::strict(&["a"]);
        assert_eq!(bench.boot(0, 5000, 6).unwrap_err().oracle, "incarnation_from_clock");
    }
}
