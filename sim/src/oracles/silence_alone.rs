//! Nothing but silence writes a member off, and each step of it takes its time: 2 P to suspect, S to take out of the
//! view, 10 S to record as left. A connection that broke, or what others say, is no reason.
//!
//! Silence runs from the last frame heard and the last late round; that which buries, from the adoption of the
//! record's incarnation as well. A farewell is another way out of a view, with an event of its own.

use std::time::Duration;

use firedrill_core::io::Event;
use firedrill_core::time::Instant;

use super::sight::{Sight, Subject};
use super::world::{PeerIx, World};
use super::{Broken, Oracle, Rule, span};

/// Holds no state of its own: the ledger knows when each node heard whom.
#[derive(Debug)]
pub(super) struct SilenceAlone;

impl SilenceAlone {
    pub(super) const fn new(_world: &World) -> Self {
        Self
    }
}

impl Oracle for SilenceAlone {
    const RULE: Rule = Rule {
        name: "silence_alone",
        invariant: "a member becomes suspect, leaves a view unbidden and is recorded as left only after a silence of more than 2 P, S and 10 S",
        source: "docs/protocol.md, Liveness; decision 9",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let timing = sight.host().facts.timing;
        for (event, peer) in sight.events() {
            let (limit, buried, became) = if let Event::MemberSuspect { .. } = event {
                (timing.suspect(), false, "made a suspect of")
            } else if let Event::MemberDown { .. } = event {
                (timing.suspicion, false, "dropped")
            } else if let Event::MemberConverted { .. } = event {
                (timing.tombstone(), true, "buried")
            } else {
                continue;
            };
            let Some((peer, since)) = peer.and_then(|peer| Some((peer, silent_since(sight, peer, buried)?)))
            else {
                continue;
            };
            let silence = sight.look.now.instant.since(since);
            if silence <= limit {
                return Err(broken(sight, peer, became, silence, limit));
            }
        }
        Ok(())
    }
}

/// From when this node counts a member's silence, on its own clock.
fn silent_since<S: Subject>(sight: &Sight<'_, S>, peer: PeerIx, buried: bool) -> Option<Instant> {
    let pair = &sight.told().pairs[peer.0];
    let adopted = pair.adopted.filter(|_| buried);
    [pair.heard, adopted, sight.told().late].into_iter().flatten().map(|moment| moment.own).max()
}

fn broken<S: Subject>(
    sight: &Sight<'_, S>,
    peer: PeerIx,
    became: &str,
    silence: Duration,
    limit: Duration,
) -> Box<Broken> {
    let id = sight.world.id(peer);
    Broken::new(
        vec![sight.name(), id.to_string()],
        format!("{} {became} {id}", sight.name()),
        format!(
            "on its own clock that member was silent for {} by then, and it takes more than {}",
            span(silence),
            span(limit)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, node_id};
    use firedrill_core::id::Incarnation;
    use firedrill_core::io::Event;

    /// They see the same silences, and speak first.
    const OTHERS: [&str; 4] = ["no_false_suspicion", "view_no_down", "silent_buried", "late_round"];

    #[test]
    fn each_step_has_to_wait_for_its_silence() {
        let id = || node_id("b");
        let cases = [
            (Event::MemberSuspect { id: id() }, 1000),
            (Event::MemberDown { id: id() }, 2500),
            (Event::MemberConverted { id: id(), incarnation: Incarnation(1001) }, 25_000),
        ];
        for (event, limit) in cases {
            let run = |at| {
                let mut bench = Bench::new(&["a", "b"]);
                OTHERS.iter().for_each(|other| bench.turn_off(other));
                bench.hear(0, 10, 1, 0).unwrap();
                bench.events(0, at, std::slice::from_ref(&event)).err().map(|broken| broken.oracle)
            };
            assert_eq!(run(10 + limit), Some("silence_alone"), "{event:?}");
            assert_eq!(run(11 + limit), None, "{event:?}");
        }
    }

    #[test]
    fn a_new_incarnation_gives_the_buried_time_and_the_dropped_none() {
        let mut bench = Bench::new(&["a", "b"]);
        OTHERS.iter().for_each(|other| bench.turn_off(other));
        bench.hear(0, 10, 1, 0).unwrap();
        bench.nodes[0].set_record("b", 1005, firedrill_core::wire::message::RecordStatus::Alive);
        bench.wake(0, 2000).unwrap();
        bench.events(0, 2511, &[Event::MemberDown { id: node_id("b") }]).unwrap();
        let buried = Event::MemberConverted { id: node_id("b"), incarnation: Incarnation(1005) };
        assert_eq!(bench.events(0, 26_999, &[buried]).unwrap_err().oracle, "silence_alone");
    }
}
