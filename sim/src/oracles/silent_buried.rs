//! Whom a node has not heard for a tombstone window it records as left: every record is refreshed or leaves.
//!
//! The round does it. A node that handles an input has run the round that was due, so at any step the last round
//! is at most 1.2 P ago.

use firedrill_core::time::Instant;
use firedrill_core::wire::message::RecordStatus;

use super::late_round::longest_interval;
use super::sight::{Sight, Subject};
use super::world::{PeerIx, World};
use super::{Broken, Oracle, Rule, span};

/// Keeps the earliest moment, on each host's own clock, at which a record could be overdue.
#[derive(Debug)]
pub(super) struct SilentBuried {
    due: Vec<Instant>,
}

impl SilentBuried {
    pub(super) fn new(world: &World) -> Self {
        Self { due: vec![Instant::ZERO; world.hosts().len()] }
    }
}

impl Oracle for SilentBuried {
    const RULE: Rule = Rule {
        name: "silent_buried",
        invariant: "a member not heard for a tombstone window is recorded as left by the next round",
        source: "docs/protocol.md, Liveness (the exit of a member that no leave comes for); decision 9",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let now = sight.look.now.instant;
        let nobody_due = sight.records().is_empty() && now <= self.due[sight.look.host.0];
        if (nobody_due && !sight.changed.boot) || sight.look.node.has_departed() {
            return Ok(());
        }
        let timing = &sight.host().facts.timing;
        let patience = timing.tombstone().saturating_add(longest_interval(timing.push));
        let told = sight.told();
        let own = sight.host().peer;
        let mut due = Instant::FAR_FUTURE;
        for (position, pair) in told.pairs.iter().enumerate() {
            let alive = pair.record.is_some_and(|record| record.status == RecordStatus::Alive);
            let moments =
                [pair.heard, pair.adopted, told.late].into_iter().flatten().map(|moment| moment.own);
            let Some(since) = moments.max().filter(|_| alive && PeerIx(position) != own) else { continue };
            let buried_by = since.after(patience);
            if now > buried_by {
                let id = sight.world.id(PeerIx(position));
                return Err(Broken::new(
                    vec![sight.name(), id.to_string()],
                    format!(
                        "{} has heard nothing of {id} for {} of its own clock",
                        sight.name(),
                        span(now.since(since))
                    ),
                    format!(
                        "it still records {id} as alive, {} after a tombstone window at the latest",
                        span(patience)
                    ),
                ));
            }
            due = due.min(buried_by);
        }
        self.due[sight.look.host.0] = due;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;

    #[test]
    fn a_record_nobody_refreshes_fires_unless_it_is_a_tombstone() {
        for status in [RecordStatus::Alive, RecordStatus::Left] {
            let mut bench = Bench::new(&["a", "b"]);
            bench.nodes[0].set_record("b", 7, status);
            let found = (1..30).find_map(|second| bench.wake(0, second * 1000).err());
            assert_eq!(
                found.map(|broken| broken.oracle),
                (status == RecordStatus::Alive).then_some("silent_buried")
            );
        }
    }
}
