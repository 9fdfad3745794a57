//! Last words are written ahead of whatever is queued: after the departure began, no queued frame's write begins on
//! a connection where last words wait. Behind a full queue they would not be written before time is up.
//!
//! Seen on the full wire alone, where connections have queues.

use firedrill_core::io::Command;
use firedrill_core::time::Instant;

use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule, clock};
use crate::engine::Cause;

/// Knows when each host said goodbye, on its own clock.
#[derive(Debug)]
pub(super) struct FarewellFirst {
    left_at: Vec<Option<Instant>>,
}

impl FarewellFirst {
    pub(super) fn new(world: &World) -> Self {
        Self { left_at: vec![None; world.hosts().len()] }
    }
}

impl Oracle for FarewellFirst {
    const RULE: Rule = Rule {
        name: "farewell_first",
        invariant: "the last words of a departing node are written ahead of its send queues",
        source: "docs/protocol.md, Departure",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        if !sight.look.node.has_departed() {
            return Ok(());
        }
        let left_at = &mut self.left_at[sight.look.host.0];
        if let Cause::Command(Command::Leave) = sight.look.cause {
            *left_at = Some(sight.look.now.instant);
        }
        let (Some(left_at), Some(connections)) = (*left_at, sight.look.connections) else { return Ok(()) };
        let overtaken = connections.states().farewell_overtaken_at;
        let Some(overtaken) = overtaken.filter(|at| *at > left_at) else { return Ok(()) };
        Err(Broken::new(
            vec![sight.name()],
            format!(
                "{} began to write a queued frame at {} of its own clock",
                sight.name(),
                clock(overtaken)
            ),
            format!("its last words wait for that connection since {}", clock(left_at)),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, ms};
    use super::*;

    #[test]
    fn a_queued_frame_that_overtakes_last_words_fires() {
        let mut bench = Bench::new(&["a"]);
        bench.nodes[0].departed = true;
        bench.wires.states.farewell_overtaken_at = Some(ms(90));
        bench.command(0, 100, &Command::Leave, &[]).unwrap();
        bench.wires.states.farewell_overtaken_at = Some(ms(101));
        assert_eq!(bench.wake(0, 110).unwrap_err().oracle, "farewell_first");
    }
}
