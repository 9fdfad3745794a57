//! A tombstone is kept for 10 S from when this node first saw it at its incarnation, and longer while its subject is
//! heard. Without the first, peers that prune early are taught the dead by those who do not; without the second, a
//! member that cannot be told of its tombstone falls out of a view that hears it.

use firedrill_core::id::Incarnation;
use firedrill_core::io::Event;
use firedrill_core::time::Instant;
use firedrill_core::wire::message::RecordStatus;

use super::sight::{Sight, Subject};
use super::world::{PeerIx, World};
use super::{Broken, Oracle, Rule, span};

/// What one node knows of one member, on its own clock.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    /// The tombstone's incarnation, and when it was first seen at that.
    left: Option<(Incarnation, Instant)>,
    /// The last frame at or above the record.
    heard: Option<Instant>,
    /// The highest incarnation reaped: frames up to it may be refused by the reap memory, and are no sign of life.
    reaped: Option<Incarnation>,
}

/// Keeps the age of every tombstone.
#[derive(Debug)]
pub(super) struct TombstonesKept {
    rows: Vec<Vec<Row>>,
}

impl TombstonesKept {
    pub(super) fn new(world: &World) -> Self {
        Self { rows: vec![vec![Row::default(); world.ids().len()]; world.hosts().len()] }
    }
}

impl Oracle for TombstonesKept {
    const RULE: Rule = Rule {
        name: "tombstones_kept",
        invariant: "a tombstone is kept for ten suspicion timeouts from when it was first seen at its incarnation, and while its subject is heard",
        source: "docs/protocol.md, Tombstones and reap memory",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let rows = &mut self.rows[sight.look.host.0];
        if sight.changed.boot {
            rows.fill(Row::default());
        }
        let now = sight.look.now.instant;
        for (event, peer) in sight.events() {
            let Some(peer) = peer else { continue };
            let row = &mut rows[peer.0];
            if let Event::Accepted { incarnation, .. } = event {
                let record = sight.told().pairs[peer.0].record;
                let refused = row.reaped.is_some_and(|reaped| *incarnation <= reaped);
                // Last words are no sign of life: whoever accepts them has the member in its view no more.
                let lives = sight.told().view.contains(&peer);
                if record.is_some_and(|held| held.incarnation <= *incarnation) && !refused {
                    row.heard = lives.then_some(now);
                }
            } else if let Event::MemberLeft { .. } = event {
                row.heard = None;
            } else if let Event::MemberReaped { incarnation, .. } = event {
                pruned(sight, peer, row, *incarnation)?;
                *row = Row { reaped: row.reaped.max(Some(*incarnation)), ..Row::default() };
            }
        }
        for &(peer, _, after) in sight.records() {
            let row = &mut rows[peer.0];
            row.left = after.filter(|held| held.status == RecordStatus::Left).map(|held| match row.left {
                Some((seen, at)) if seen == held.incarnation => (seen, at),
                Some(_) | None => (held.incarnation, now),
            });
        }
        Ok(())
    }
}

/// A tombstone was pruned: was it time?
fn pruned<S: Subject>(
    sight: &Sight<'_, S>,
    peer: PeerIx,
    row: &Row,
    incarnation: Incarnation,
) -> Result<(), Box<Broken>> {
    let (timing, now) = (sight.host().facts.timing, sight.look.now.instant);
    let age = row.left.filter(|(seen, _)| *seen == incarnation).map(|(_, at)| now.since(at));
    let silence = row.heard.map(|heard| now.since(heard));
    let why = if let Some(age) = age.filter(|age| *age <= timing.tombstone()) {
        format!(
            "it first saw that tombstone {} before, and keeps it for {}",
            span(age),
            span(timing.tombstone())
        )
    } else if let Some(silence) = silence.filter(|silence| *silence <= timing.suspicion) {
        format!("it heard that member {} before, which will refute", span(silence))
    } else {
        return Ok(());
    };
    let id = sight.world.id(peer);
    Err(Broken::new(
        vec![sight.name(), id.to_string()],
        format!("{} pruned {id} at incarnation {incarnation}", sight.name()),
        why,
    ))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, node_id};
    use super::*;

    fn buried() -> Bench {
        let mut bench = Bench::new(&["a", "b"]);
        for other in ["view_no_down", "silent_buried", "late_round", "no_false_suspicion"] {
            bench.turn_off(other);
        }
        bench.hear(0, 10, 1, 0).unwrap();
        bench.nodes[0].set_record("b", 1001, RecordStatus::Left);
        bench.wake(0, 100).unwrap();
        bench
    }

    fn prune(bench: &mut Bench, at: u64, incarnation: u64) -> Option<&'static str> {
        bench.nodes[0].drop_record("b");
        let event = Event::MemberReaped { id: node_id("b"), incarnation: Incarnation(incarnation) };
        bench.events(0, at, &[event]).err().map(|broken| broken.oracle)
    }

    #[test]
    fn a_tombstone_has_its_own_time_at_every_incarnation() {
        assert_eq!(prune(&mut buried(), 25_100, 1001), Some("tombstones_kept"));
        assert_eq!(prune(&mut buried(), 25_101, 1001), None);
        let mut again = buried();
        again.nodes[0].set_record("b", 1005, RecordStatus::Left);
        again.wake(0, 20_000).unwrap();
        assert_eq!(prune(&mut again, 25_101, 1005), Some("tombstones_kept"));
    }

    #[test]
    fn a_subject_that_is_heard_keeps_its_tombstone() {
        let mut bench = buried();
        bench.hear_only(0, 29_000, 1, 1).unwrap();
        assert_eq!(prune(&mut bench, 31_500, 1001), Some("tombstones_kept"));
        let mut bench = buried();
        bench.hear_only(0, 29_000, 1, 1).unwrap();
        assert_eq!(prune(&mut bench, 31_501, 1001), None);
    }

    #[test]
    fn last_words_are_no_sign_of_life() {
        let mut bench = buried();
        bench.nodes[0].view.remove(&node_id("b"));
        bench.nodes[0].view_version += 1;
        bench.hear_only(0, 25_050, 1, 1).unwrap();
        assert_eq!(prune(&mut bench, 25_101, 1001), None);
    }
}
