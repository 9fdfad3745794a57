//! A view lists nobody who is down: silent for longer than S at the node's last handled instant, by the oracle's
//! own record of accepted frames, or never heard at all.
//!
//! Silence runs from the latest of: the last accepted frame not below the record held, the adoption of the
//! record's present incarnation, and the last late round of this node.

use firedrill_core::time::Instant;

use super::sight::{Sight, Subject};
use super::world::{PeerIx, World};
use super::{Broken, Oracle, Rule, span};

/// Keeps the earliest moment, on each host's own clock, at which somebody in its view could be down.
///
/// Hearing a member only ever moves that moment later, so it may be early but never late.
#[derive(Debug)]
pub(super) struct ViewNoDown {
    due: Vec<Instant>,
}

impl ViewNoDown {
    pub(super) fn new(world: &World) -> Self {
        Self { due: vec![Instant::FAR_FUTURE; world.hosts().len()] }
    }
}

impl Oracle for ViewNoDown {
    const RULE: Rule = Rule {
        name: "view_no_down",
        invariant: "a view lists nobody that its node never heard, or has not heard for longer than the suspicion timeout",
        source: "docs/protocol.md, Liveness; View; decisions 9 and 10",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let now = sight.look.now.instant;
        if (!sight.changed.view && now <= self.due[sight.look.host.0]) || sight.look.node.has_departed() {
            return Ok(());
        }
        let told = sight.told();
        if let Some(stranger) = told.strangers.first() {
            return Err(Broken::new(
                vec![sight.name()],
                format!("{} has {stranger} in its view", sight.name()),
                String::from("no host of the drill bears that id"),
            ));
        }
        let timeout = sight.host().facts.timing.suspicion;
        let mut due = Instant::FAR_FUTURE;
        for &peer in &told.view {
            let Some(since) = told.silent_since(peer) else {
                return Err(broken(
                    sight,
                    peer,
                    "it has accepted no frame of that member in this boot".into(),
                ));
            };
            let down_after = since.own.after(timeout);
            if now > down_after {
                let silence = span(now.since(since.own));
                let why = format!(
                    "on its own clock that member is silent for {silence}, longer than the suspicion timeout of {}",
                    span(timeout)
                );
                return Err(broken(sight, peer, why));
            }
            due = due.min(down_after);
        }
        self.due[sight.look.host.0] = due;
        Ok(())
    }
}

fn broken<S: Subject>(sight: &Sight<'_, S>, peer: PeerIx, contradiction: String) -> Box<Broken> {
    let id = sight.world.id(peer);
    Broken::new(
        vec![sight.name(), id.to_string()],
        format!("{} has {id} in its view", sight.name()),
        contradiction,
    )
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use firedrill_core::io::Event;

    #[test]
    fn a_member_silent_for_longer_than_the_timeout_fires_and_exactly_the_timeout_does_not() {
        let mut bench = Bench::new(&["a", "b"]);
        bench.hear(0, 10, 1, 0).unwrap();
        bench.wake(0, 2510).unwrap();
        let broken = bench.wake(0, 2511).unwrap_err();
        assert_eq!(broken.oracle, "view_no_down");
        assert_eq!(broken.nodes, ["a", "b"]);
        assert!(broken.contradiction.contains("2.501000 s"), "{}", broken.contradiction);
    }

    #[test]
    fn a_member_never_heard_fires_at_once() {
        let mut bench = Bench::new(&["a", "b"]);
        bench.nodes[0].show("b");
        let broken = bench.wake(0, 10).unwrap_err();
        assert_eq!((broken.oracle, broken.contradiction.contains("no frame")), ("view_no_down", true));
    }

    #[test]
    fn a_frame_below_the_record_is_not_heard() {
        let mut bench = Bench::new(&["a", "b"]);
        bench.hear(0, 10, 1, 0).unwrap();
        bench.nodes[0].set_record("b", 9_999_999, firedrill_core::wire::message::RecordStatus::Alive);
        bench.wake(0, 11).unwrap();
        bench.hear_only(0, 2000, 1, 1).unwrap();
        assert_eq!(bench.wake(0, 2512).unwrap_err().oracle, "view_no_down");
    }

    #[test]
    fn a_late_round_restarts_silence() {
        let mut bench = Bench::new(&["a", "b"]);
        bench.hear(0, 10, 1, 0).unwrap();
        bench.events(0, 9000, &[Event::RoundLate { late_us: 8_000_000 }]).unwrap();
        bench.wake(0, 11_500).unwrap();
        assert_eq!(bench.wake(0, 11_501).unwrap_err().oracle, "view_no_down");
    }

    #[test]
    fn an_id_that_no_host_bears_fires() {
        let mut bench = Bench::new(&["a"]);
        bench.nodes[0].show("ghost");
        assert!(bench.wake(0, 10).unwrap_err().fact.contains("ghost"));
    }
}
