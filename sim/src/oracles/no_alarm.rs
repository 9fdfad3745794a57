//! No node reports a broken invariant of its own code. A panic is reported by the harness under the same rule.

use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule};

/// The rule, for the harness to report a panic under.
pub const RULE: Rule = NoAlarm::RULE;

/// Fires on any alarm.
#[derive(Debug)]
pub struct NoAlarm;

impl NoAlarm {
    pub(super) const fn new(_world: &World) -> Self {
        Self
    }
}

impl Oracle for NoAlarm {
    const RULE: Rule = Rule {
        name: "no_alarm",
        invariant: "no node panics and none reports an alarm, whatever its peers send it",
        source: "docs/protocol.md, Receive path (three kinds of trouble, and a node never panics)",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let Some(alarm) = sight.look.alarms.first() else { return Ok(()) };
        Err(Broken::new(
            vec![sight.name()],
            format!("{} reported: {alarm}", sight.name()),
            String::from("an alarm is an error of the code itself; no input may cause one"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use firedrill_core::io::Alarm;

    #[test]
    fn an_alarm_fails_the_run() {
        let mut bench = Bench::new(&["a"]);
        let broken = bench.alarm(0, 5, &Alarm::MeasureWrong { measured: 10, encoded: 11 }).unwrap_err();
        assert_eq!(broken.oracle, "no_alarm");
        assert!(broken.fact.contains("measured at 10 bytes encoded to 11"), "{}", broken.fact);
    }
}
