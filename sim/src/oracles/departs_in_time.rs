//! A departure is over after 250 ms of the node's own clock, whoever could not be told by then. It is a courtesy, and
//! an operator waits for it.

use firedrill_core::io::Command;
use firedrill_core::limits::DEPARTURE;
use firedrill_core::time::Instant;

use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule, clock, span};
use crate::engine::Cause;

/// A departure under way.
#[derive(Debug, Clone, Copy)]
struct Departing {
    /// On the host's own clock.
    since: Instant,
    /// It has handled an input after its time: that one may have ended it.
    overdue: bool,
}

/// Watches hosts that said goodbye.
#[derive(Debug)]
pub(super) struct DepartsInTime {
    hosts: Vec<Option<Departing>>,
}

impl DepartsInTime {
    pub(super) fn new(world: &World) -> Self {
        Self { hosts: vec![None; world.hosts().len()] }
    }
}

impl Oracle for DepartsInTime {
    const RULE: Rule = Rule {
        name: "departs_in_time",
        invariant: "a node that was asked to leave is gone a quarter of a second later",
        source: "docs/protocol.md, Departure",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        if !sight.look.node.has_departed() {
            return Ok(());
        }
        let now = sight.look.now.instant;
        let departing = &mut self.hosts[sight.look.host.0];
        if let Cause::Command(Command::Leave) = sight.look.cause {
            departing.get_or_insert(Departing { since: now, overdue: false });
        }
        let Some(departing) = departing.as_mut().filter(|departing| now.since(departing.since) > DEPARTURE)
        else {
            return Ok(());
        };
        if !std::mem::replace(&mut departing.overdue, true) {
            return Ok(());
        }
        Err(Broken::new(
            vec![sight.name()],
            format!("{} still runs at {} of its own clock", sight.name(), clock(now)),
            format!(
                "it was asked to leave at {}, and has {} for it",
                clock(departing.since),
                span(DEPARTURE)
            ),
        ))
    }

    fn down(&mut self, _world: &World, host: crate::scenario::model::HostIx) {
        self.hosts[host.0] = None;
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;

    #[test]
    fn a_departure_that_does_not_end_fires() {
        let mut bench = Bench::new(&["a"]);
        bench.nodes[0].departed = true;
        bench.command(0, 100, &Command::Leave, &[]).unwrap();
        bench.wake(0, 350).unwrap();
        bench.wake(0, 351).unwrap();
        assert_eq!(bench.wake(0, 352).unwrap_err().oracle, "departs_in_time");
    }

    #[test]
    fn who_is_gone_may_come_back() {
        let mut bench = Bench::new(&["a"]);
        bench.nodes[0].departed = true;
        bench.command(0, 100, &Command::Leave, &[]).unwrap();
        bench.leave(0, 120);
        bench.boot(0, 400, 1400).unwrap();
        bench.nodes[0].departed = true;
        bench.command(0, 500, &Command::Leave, &[]).unwrap();
        bench.wake(0, 750).unwrap();
    }
}
