//! Who is dead leaves every view: the truth of the harness against the belief of a node.
//!
//! A member with no running host is in no view once S (on the viewer's clock) and the longest frame delay have
//! passed since the latest of: its death, the viewer's boot, its last pause or late round, its adoption of the
//! member's present incarnation, and the end of the last release or replay of old frames. A node is judged when it handles
//! an input: before that it cannot know.
//!
//! Where nothing but departures ever disturbed a prompt network, last words arrive, and the frame delay alone
//! has to do.

use std::time::Duration;

use firedrill_core::time::Instant;

use super::sight::{Sight, Subject};
use super::world::{PeerIx, World};
use super::{Broken, Oracle, Rule, clock, span};
use crate::scenario::model::HostIx;

/// Keeps the earliest moment of true time at which somebody in each view could have been dead for too long.
#[derive(Debug)]
pub(super) struct DeadLeavesView {
    due: Vec<Instant>,
}

impl DeadLeavesView {
    pub(super) fn new(world: &World) -> Self {
        Self { due: vec![Instant::FAR_FUTURE; world.hosts().len()] }
    }
}

impl Oracle for DeadLeavesView {
    const RULE: Rule = Rule {
        name: "dead_leaves_view",
        invariant: "a member that is down has left every view within the suspicion timeout, the longest frame delay and the viewer's pause; on an undisturbed network last words are enough",
        source: "docs/protocol.md, Bounds after a heal (a dead member leaves a view)",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let at = sight.look.at;
        if (!sight.changed.view && at <= self.due[sight.look.host.0]) || sight.look.node.has_departed() {
            return Ok(());
        }
        let delay = sight.world.frame_delay_max();
        let timeout = sight.host().true_time(sight.host().facts.timing.suspicion);
        let mut due = Instant::FAR_FUTURE;
        for &peer in &sight.told().view {
            let Some((dead, graceful)) = sight.world.dead_since(peer) else { continue };
            let from = reprieve(sight, peer).max(dead);
            let told = graceful && sight.world.is_polite();
            let patience = if told { delay } else { timeout.saturating_add(delay) };
            let gone_by = from.after(patience);
            if at > gone_by {
                return Err(broken(sight, peer, dead, from, patience));
            }
            due = due.min(gone_by);
        }
        self.due[sight.look.host.0] = due;
        Ok(())
    }

    fn down(&mut self, _world: &World, _host: HostIx) {
        // Rare: every view is looked at once more at its node's next step.
        self.due.fill(Instant::ZERO);
    }
}

/// The last moment from which the viewer may rightly have begun to wait anew.
fn reprieve<S: Subject>(sight: &Sight<'_, S>, peer: PeerIx) -> Instant {
    let told = sight.told();
    let moments = [
        sight.host().running().map(|boot| boot.at),
        sight.host().resumed_at,
        told.late.map(|moment| moment.at),
        told.pairs[peer.0].adopted.map(|moment| moment.at),
        sight.world.stale_at(),
    ];
    moments.into_iter().flatten().max().unwrap_or(Instant::ZERO)
}

fn broken<S: Subject>(
    sight: &Sight<'_, S>,
    peer: PeerIx,
    dead: Instant,
    from: Instant,
    patience: Duration,
) -> Box<Broken> {
    let id = sight.world.id(peer);
    let waited = if from > dead {
        format!(" ({} had reason to wait anew until {})", sight.name(), clock(from))
    } else {
        String::new()
    };
    Broken::new(
        vec![sight.name(), id.to_string()],
        format!("{} still has {id} in its view at {}", sight.name(), clock(sight.look.at)),
        format!(
            "{id} is down since {}{waited}, and a view has {} to notice (the longest frame delay, and the suspicion timeout unless its last words must have arrived)",
            clock(dead),
            span(patience)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, ms};
    use crate::engine::Fault;
    use crate::scenario::model::HostIx;

    /// A node that cheats `view_no_down` by claiming frames of the dead.
    fn haunted() -> Bench {
        let mut bench = Bench::new(&["a", "b"]);
        bench.hear(0, 10, 1, 0).unwrap();
        bench.kill(1, 20);
        for (seq, at) in (1..).zip([1000, 2000, 2500]) {
            bench.hear(0, at, 1, seq).unwrap();
        }
        bench
    }

    #[test]
    fn the_dead_in_a_view_fire_after_timeout_and_delay() {
        let mut bench = haunted();
        bench.wake(0, 2540).unwrap();
        let broken = bench.wake(0, 2541).unwrap_err();
        assert_eq!(broken.oracle, "dead_leaves_view");
        assert!(
            broken.fact.contains("2.541000 s") && broken.contradiction.contains("2.520066 s"),
            "{broken:?}"
        );
    }

    #[test]
    fn last_words_on_an_undisturbed_network_need_no_timeout() {
        let mut bench = Bench::new(&["a", "b"]);
        bench.hear(0, 10, 1, 0).unwrap();
        bench.leave(1, 20);
        bench.wake(0, 40).unwrap();
        assert_eq!(bench.wake(0, 41).unwrap_err().oracle, "dead_leaves_view");
        let mut bench = Bench::new(&["a", "b"]);
        bench.world.fault_applied(ms(1), &Fault::Pause(HostIx(1)));
        bench.hear(0, 10, 1, 0).unwrap();
        bench.leave(1, 20);
        bench.wake(0, 41).unwrap();
    }

    #[test]
    fn a_pause_of_the_viewer_gives_it_time() {
        let mut bench = haunted();
        bench.world.fault_applied(ms(2500), &Fault::Pause(HostIx(0)));
        bench.world.fault_applied(ms(2600), &Fault::Resume(HostIx(0)));
        bench.wake(0, 2700).unwrap();
    }

    #[test]
    fn a_replay_gives_time_for_every_frame_it_sends_one_after_another() {
        let replay =
            Fault::Replay { from: HostIx(1), to: HostIx(0), captured: Default::default(), count: 100 };
        let mut bench = haunted();
        bench.world.fault_applied(ms(2400), &replay);
        // Dialled by 2440, sent by 2540; the next replay is shorter and ends sooner.
        bench.world.fault_applied(
            ms(2401),
            &Fault::Replay { from: HostIx(1), to: HostIx(0), captured: Default::default(), count: 1 },
        );
        bench.hear_only(0, 2600, 1, 50).unwrap();
        bench.wake(0, 2540 + 2520).unwrap();
        assert_eq!(bench.wake(0, 2540 + 2521).unwrap_err().oracle, "dead_leaves_view");
    }

    #[test]
    fn a_release_gives_time_for_every_frame_that_arrives_a_microsecond_after_another() {
        let mut bench = haunted();
        bench.world.fault_applied(ms(100), &Fault::Hold(vec![(HostIx(1), HostIx(0))]));
        bench.world.fault_applied(ms(2500), &Fault::Release(vec![(HostIx(1), HostIx(0))]));
        bench.hear_only(0, 2600, 1, 50).unwrap();
        // Held for 2.4 s, so let loose over 2.4 ms, and 20.066 ms under way.
        bench.wake(0, 2500 + 2522).unwrap();
        assert_eq!(bench.wake(0, 2500 + 2523).unwrap_err().oracle, "dead_leaves_view");
    }

    #[test]
    fn who_came_back_is_not_dead() {
        let mut bench = haunted();
        bench.boot(1, 2530, 99_999_999).unwrap();
        bench.wake(0, 2700).unwrap();
    }
}
