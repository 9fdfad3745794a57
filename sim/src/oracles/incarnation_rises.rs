//! A node's own incarnation only rises, not too often, and its document never says more of it than it minted.

use firedrill_core::id::Incarnation;
use firedrill_core::limits::REFUTATIONS_BEFORE_SLOW;
use firedrill_core::time::Instant;

use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule, clock, span};

/// Per host: the incarnation last seen, and when it last rose on the host's own clock.
#[derive(Debug, Clone, Default)]
struct Own {
    incarnation: Incarnation,
    /// The latest rise first.
    rises: [Option<Instant>; REFUTATIONS_BEFORE_SLOW],
}

/// Watches every node's own incarnation.
#[derive(Debug)]
pub(super) struct IncarnationRises {
    hosts: Vec<Own>,
}

impl IncarnationRises {
    pub(super) fn new(world: &World) -> Self {
        Self { hosts: vec![Own::default(); world.hosts().len()] }
    }
}

impl Oracle for IncarnationRises {
    const RULE: Rule = Rule {
        name: "incarnation_rises",
        invariant: "within a boot a node's incarnation never falls, rises not at all before the first fault, at most once a push interval and at most three times a tombstone window, and is never below its own record",
        source: "docs/protocol.md, Refutation; decisions 4 and 12",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let own = &mut self.hosts[sight.look.host.0];
        let now = sight.look.node.incarnation();
        if sight.changed.boot {
            *own = Own { incarnation: now, ..Own::default() };
        }
        let before = std::mem::replace(&mut own.incarnation, now);
        if now != before {
            if now < before {
                return Err(broken(
                    sight,
                    format!("{} is at incarnation {now}", sight.name()),
                    format!("it was at {before} earlier in this boot"),
                ));
            }
            if sight.world.is_calm() {
                return Err(broken(
                    sight,
                    format!("{} raised its incarnation from {before} to {now}", sight.name()),
                    String::from("there was no fault so far: nobody can hold a record about it but its own"),
                ));
            }
            rise(sight, own)?;
        }
        if sight.changed.document {
            let document = sight.look.node.document();
            if let Some(record) =
                document.members.get(sight.look.node.id()).filter(|record| record.incarnation > now)
            {
                return Err(broken(
                    sight,
                    format!(
                        "{}'s document holds its own record at incarnation {}",
                        sight.name(),
                        record.incarnation
                    ),
                    format!("it runs at incarnation {now} and never minted that one"),
                ));
            }
        }
        Ok(())
    }
}

/// Judges a rise by its distance to the last and to the third before it.
fn rise<S: Subject>(sight: &Sight<'_, S>, own: &mut Own) -> Result<(), Box<Broken>> {
    let now = sight.look.now.instant;
    let timing = sight.host().facts.timing;
    let limits = [
        (own.rises[0], timing.push, "once a push interval"),
        (own.rises[REFUTATIONS_BEFORE_SLOW - 1], timing.tombstone(), "three times a tombstone window"),
    ];
    for (earlier, limit, often) in limits {
        let Some(earlier) = earlier.filter(|earlier| now.since(*earlier) < limit) else { continue };
        return Err(broken(
            sight,
            format!(
                "{} raised its incarnation to {} at {} of its own clock, and had done so at {}",
                sight.name(),
                own.incarnation,
                clock(now),
                clock(earlier)
            ),
            format!("refutations are allowed at most {often}, which is {}", span(limit)),
        ));
    }
    own.rises.rotate_right(1);
    own.rises[0] = Some(now);
    Ok(())
}

fn broken<S: Subject>(sight: &Sight<'_, S>, fact: String, contradiction: String) -> Box<Broken> {
    Broken::new(vec![sight.name()], fact, contradiction)
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use crate::engine::Fault;
    use crate::scenario::model::HostIx;
    use firedrill_core::id::Incarnation;
    use firedrill_core::wire::message::RecordStatus;

    /// A node after some fault: in calm weather no rise is allowed at all.
    fn stormy() -> Bench {
        let mut bench = Bench::new(&["a"]);
        bench.turn_off("late_round");
        let fault = Fault::ClockStep { host: HostIx(0), by_us: 1 };
        bench.world.fault_applied(firedrill_core::time::Instant::ZERO, &fault);
        bench
    }

    fn raise(bench: &mut Bench, at: u64) -> Result<(), Box<crate::outcome::Violation>> {
        bench.nodes[0].incarnation = bench.nodes[0].incarnation.next();
        bench.wake(0, at)
    }

    #[test]
    fn a_fall_within_a_boot_fires_and_a_lower_next_boot_does_not() {
        let mut bench = Bench::new(&["a"]);
        bench.nodes[0].incarnation = Incarnation(3);
        assert_eq!(bench.wake(0, 10).unwrap_err().oracle, "incarnation_rises");

        let mut bench = Bench::new(&["a"]);
        bench.kill(0, 5);
        bench.boot(0, 10, 3).unwrap();
    }

    #[test]
    fn a_rise_before_any_fault_fires() {
        let broken = raise(&mut Bench::new(&["a"]), 1000).unwrap_err();
        assert!(broken.contradiction.contains("no fault so far"), "{broken:?}");
    }

    #[test]
    fn two_rises_in_a_push_interval_fire() {
        let mut bench = stormy();
        raise(&mut bench, 1000).unwrap();
        raise(&mut bench, 1500).unwrap();
        let broken = raise(&mut bench, 1999).unwrap_err();
        assert!(broken.contradiction.contains("once a push interval"), "{broken:?}");
    }

    #[test]
    fn a_fourth_rise_in_a_tombstone_window_fires() {
        let mut bench = stormy();
        for at in [1000, 2000, 3000] {
            raise(&mut bench, at).unwrap();
        }
        assert!(raise(&mut bench, 25_999).unwrap_err().contradiction.contains("three times"));
        let mut bench = stormy();
        for at in [1000, 2000, 3000, 26_000] {
            raise(&mut bench, at).unwrap();
        }
    }

    #[test]
    fn an_own_record_above_the_own_incarnation_fires() {
        let mut bench = Bench::new(&["a"]);
        let Incarnation(own) = bench.nodes[0].incarnation;
        bench.nodes[0].set_record("a", own, RecordStatus::Alive);
        bench.wake(0, 10).unwrap();
        bench.nodes[0].set_record("a", own + 1, RecordStatus::Left);
        let broken = bench.wake(0, 11).unwrap_err();
        assert_eq!((broken.oracle, broken.fact.contains("own record")), ("incarnation_rises", true));
    }
}
