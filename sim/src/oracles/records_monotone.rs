//! Within a boot a record never goes back, but for reaping; and a reaped member comes back only above the note
//! that was kept of it, or as the tombstone that answers its return.

use firedrill_core::id::{Incarnation, NodeId};
use firedrill_core::io::Event;
use firedrill_core::time::Instant;
use firedrill_core::wire::message::RecordStatus;

use super::ledger::Held;
use super::sight::{Sight, Subject};
use super::world::{PeerIx, World};
use super::{Broken, Oracle, Rule, clock, span};

/// A note of a reaped member, as the node must keep it.
#[derive(Debug, Clone, Copy)]
struct Note {
    incarnation: Incarnation,
    /// On the node's own clock.
    at: Instant,
}

/// Keeps the notes that every node has to keep, by host and peer.
#[derive(Debug)]
pub(super) struct RecordsMonotone {
    notes: Vec<Vec<Option<Note>>>,
}

impl RecordsMonotone {
    pub(super) fn new(world: &World) -> Self {
        Self { notes: vec![vec![None; world.ids().len()]; world.hosts().len()] }
    }
}

impl Oracle for RecordsMonotone {
    const RULE: Rule = Rule {
        name: "records_monotone",
        invariant: "within a boot a member's record only moves up in incarnation and then to left, leaves only by reaping, and returns only above its reap note or as the answer to its return",
        source: "docs/protocol.md, Membership merge (rules 1 and 2); Tombstones and reap memory; decisions 5, 8 and 11",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let notes = &mut self.notes[sight.look.host.0];
        if sight.changed.boot {
            notes.fill(None);
        }
        for (event, peer) in sight.events() {
            if let (Event::MemberReaped { incarnation, .. }, Some(peer)) = (event, peer) {
                notes[peer.0] = Some(Note { incarnation: *incarnation, at: sight.look.now.instant });
            }
            if let (Event::ReturnAnswered { incarnation, .. }, Some(peer)) = (event, peer) {
                answered(sight, peer, *incarnation)?;
            }
        }
        for &(peer, before, after) in sight.records() {
            let reaped = told(sight, peer, |event| matches!(event, Event::MemberReaped { .. }));
            match (before, after) {
                (Some(before), Some(after)) if after < before && !reaped => {
                    return Err(went_back(sight, peer, before, &words(after)));
                }
                (Some(before), None) if !reaped || before.status == RecordStatus::Alive => {
                    return Err(went_back(
                        sight,
                        peer,
                        before,
                        "no record, and none was reaped as a tombstone",
                    ));
                }
                (_, Some(after)) if before.is_none() || reaped => {
                    if let Some(note) = notes[peer.0] {
                        returned(sight, peer, after, note)?;
                    }
                }
                (Some(_) | None, _) => {}
            }
        }
        Ok(())
    }
}

/// A return was answered at the noted incarnation: a note never stands against a higher one.
fn answered<S: Subject>(sight: &Sight<'_, S>, peer: PeerIx, noted: Incarnation) -> Result<(), Box<Broken>> {
    let above = |(event, subject): (&Event, Option<PeerIx>)| {
        let Event::Accepted { incarnation, .. } = event else { return None };
        (subject == Some(peer) && *incarnation > noted).then_some(*incarnation)
    };
    let Some(incarnation) = sight.events().find_map(above) else { return Ok(()) };
    let id = sight.world.id(peer);
    Err(Broken::new(
        vec![sight.name(), id.to_string()],
        format!("{} refused the return of {id} at incarnation {incarnation}", sight.name()),
        format!("it reaped that member at incarnation {noted}, and refuses no higher one"),
    ))
}

/// A record came (back) while a note of the member may be held.
fn returned<S: Subject>(
    sight: &Sight<'_, S>,
    peer: PeerIx,
    after: Held,
    note: Note,
) -> Result<(), Box<Broken>> {
    let age = sight.look.now.instant.since(note.at);
    let memory = sight.host().facts.timing.reap_memory();
    let answered = told(sight, peer, |event| matches!(event, Event::ReturnAnswered { .. }))
        && after == Held { incarnation: note.incarnation, status: RecordStatus::Left };
    if age > memory || after.incarnation > note.incarnation || answered {
        return Ok(());
    }
    let id = sight.world.id(peer);
    Err(Broken::new(
        vec![sight.name(), id.to_string()],
        format!("{} took a record of {id} over again: {}", sight.name(), words(after)),
        format!(
            "it reaped {id} at incarnation {} {} before (at {} of its own clock) and has to refuse that and lower ones for {}",
            note.incarnation,
            span(age),
            clock(note.at),
            span(memory)
        ),
    ))
}

fn went_back<S: Subject>(sight: &Sight<'_, S>, peer: PeerIx, before: Held, now: &str) -> Box<Broken> {
    let id: &NodeId = sight.world.id(peer);
    Broken::new(
        vec![sight.name(), id.to_string()],
        format!("{} held of {id} before this step: {}", sight.name(), words(before)),
        format!("now it holds: {now}"),
    )
}

fn told<S: Subject>(sight: &Sight<'_, S>, peer: PeerIx, is: impl Fn(&Event) -> bool) -> bool {
    sight.events().any(|(event, subject)| subject == Some(peer) && is(event))
}

fn words(held: Held) -> String {
    let status = match held.status {
        RecordStatus::Alive => "alive",
        RecordStatus::Left => "left",
    };
    format!("{status} at incarnation {}", held.incarnation)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, node_id};
    use super::*;
    use RecordStatus::{Alive, Left};

    /// A node that reaped `b` at incarnation 7, at 100 ms.
    fn reaper() -> Bench {
        let mut bench = Bench::new(&["a", "b"]);
        bench.turn_off("late_round");
        bench.turn_off("tombstones_kept");
        bench.nodes[0].set_record("b", 7, Left);
        bench.wake(0, 10).unwrap();
        bench.nodes[0].drop_record("b");
        bench
            .events(0, 100, &[Event::MemberReaped { id: node_id("b"), incarnation: Incarnation(7) }])
            .unwrap();
        bench
    }

    #[test]
    fn a_record_that_goes_back_fires() {
        for (from, to) in [((7, Alive), (6, Left)), ((7, Left), (7, Alive))] {
            let mut bench = Bench::new(&["a", "b"]);
            bench.nodes[0].set_record("b", from.0, from.1);
            bench.wake(0, 10).unwrap();
            bench.nodes[0].set_record("b", to.0, to.1);
            let broken = bench.wake(0, 11).unwrap_err();
            assert_eq!((broken.oracle, broken.nodes.len()), ("records_monotone", 2));
        }
    }

    #[test]
    fn a_record_that_vanishes_without_reaping_fires() {
        let mut bench = Bench::new(&["a", "b"]);
        bench.nodes[0].set_record("b", 7, Left);
        bench.wake(0, 10).unwrap();
        bench.nodes[0].drop_record("b");
        assert_eq!(bench.wake(0, 11).unwrap_err().oracle, "records_monotone");
    }

    #[test]
    fn a_reaped_member_may_return_higher_but_not_at_its_note() {
        for (incarnation, at, fires) in
            [(8, 200, false), (7, 200, true), (7, 50_100, true), (7, 50_101, false)]
        {
            let mut bench = reaper();
            bench.nodes[0].set_record("b", incarnation, Alive);
            assert_eq!(bench.wake(0, at).is_err(), fires, "{incarnation} at {at} ms");
        }
    }

    #[test]
    fn a_return_above_the_note_is_not_answered() {
        let mut bench = reaper();
        bench.nodes[0].set_record("b", 7, Left);
        let answer = Event::ReturnAnswered { id: node_id("b"), incarnation: Incarnation(7) };
        let accepted = bench.accepted(1, 0);
        assert_eq!(bench.events(0, 200, &[accepted, answer]).unwrap_err().oracle, "records_monotone");
    }

    #[test]
    fn the_answer_to_a_return_is_a_tombstone_at_the_note() {
        let answered = [Event::ReturnAnswered { id: node_id("b"), incarnation: Incarnation(7) }];
        let mut bench = reaper();
        bench.nodes[0].set_record("b", 7, Left);
        bench.events(0, 200, &answered).unwrap();
        let mut bench = reaper();
        bench.nodes[0].set_record("b", 7, Alive);
        assert_eq!(bench.events(0, 200, &answered).unwrap_err().oracle, "records_monotone");
    }
}
