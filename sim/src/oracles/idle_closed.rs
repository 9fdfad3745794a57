//! No inbound connection stands that has not delivered a whole frame within the idle limit, prefix and body
//! together. Else half a frame holds a place for ever.
//!
//! Seen on the full wire alone. Each host's connections are looked at when one could be overdue, not before.

use firedrill_core::time::Instant;

use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule, span};

/// Keeps the earliest moment, on each host's own clock, at which a connection could be overdue.
#[derive(Debug)]
pub(super) struct IdleClosed {
    due: Vec<Instant>,
}

impl IdleClosed {
    pub(super) fn new(world: &World) -> Self {
        Self { due: vec![Instant::ZERO; world.hosts().len()] }
    }
}

impl Oracle for IdleClosed {
    const RULE: Rule = Rule {
        name: "idle_closed",
        invariant: "an inbound connection that delivers no whole frame within the idle limit is closed",
        source: "docs/protocol.md, Connection policy; decision 6",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let now = sight.look.now.instant;
        let limit = sight.host().facts.timing.idle();
        let due = &mut self.due[sight.look.host.0];
        if sight.changed.boot {
            *due = now.after(limit);
        }
        if now <= *due || sight.look.node.has_departed() {
            return Ok(());
        }
        let Some(connections) = sight.look.connections else { return Ok(()) };
        let since = connections.states().frame_awaited_since.unwrap_or(now);
        *due = since.after(limit);
        if now <= *due {
            return Ok(());
        }
        Err(Broken::new(
            vec![sight.name()],
            format!("{} awaits a whole frame on a connection for {}", sight.name(), span(now.since(since))),
            format!("after {} it is closed", span(limit)),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, ms};

    #[test]
    fn a_connection_without_a_frame_for_longer_than_the_limit_fires() {
        let mut bench = Bench::new(&["a"]);
        bench.turn_off("late_round");
        bench.wires.states.frame_awaited_since = Some(ms(100));
        bench.wake(0, 10_050).unwrap();
        bench.wake(0, 10_100).unwrap();
        assert_eq!(bench.wake(0, 10_101).unwrap_err().oracle, "idle_closed");
    }
}
