//! Nobody is dialled in a loop: between two dials of one target lies the shortest back-off, but for the dial after a
//! suspicion timeout of silence. A peer that refuses would otherwise be dialled as fast as packets travel.
//!
//! Seen on the full wire alone. Dials are counted once a second, by target.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use firedrill_core::limits::{DIAL_BACKOFF_MIN, DIAL_JITTER_PERCENT};
use firedrill_core::time::{Instant, micros};

use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule, span};

/// How often dials are counted.
const EVERY: Duration = Duration::from_secs(1);
/// Dials that no pause precedes: a target's first, and one under way when the count before was taken.
const FREE: u64 = 2;

/// What was counted last at one host, on its own clock.
#[derive(Debug, Clone, Default)]
struct Count {
    at: Instant,
    dials: BTreeMap<SocketAddr, u64>,
}

/// Counts the dials of every host.
#[derive(Debug)]
pub(super) struct DialsPaced {
    hosts: Vec<Count>,
}

impl DialsPaced {
    pub(super) fn new(world: &World) -> Self {
        Self { hosts: vec![Count::default(); world.hosts().len()] }
    }
}

impl Oracle for DialsPaced {
    const RULE: Rule = Rule {
        name: "dials_paced",
        invariant: "between two dials of one target lies a pause",
        source: "docs/protocol.md, Connection policy; Limits (dial back-off)",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let now = sight.look.now.instant;
        let count = &mut self.hosts[sight.look.host.0];
        if sight.changed.boot {
            *count = Count { at: now, ..Count::default() };
        }
        let elapsed = now.since(count.at);
        if elapsed < EVERY {
            return Ok(());
        }
        let Some(connections) = sight.look.connections else { return Ok(()) };
        let pauses = |pause: Duration| micros(elapsed) / micros(pause).max(1);
        let shortest = DIAL_BACKOFF_MIN * u32::try_from(DIAL_JITTER_PERCENT.0).unwrap_or(0) / 100;
        let due = pauses(shortest) + pauses(sight.host().facts.timing.suspicion) + FREE;
        let before = std::mem::take(&mut count.dials);
        let mut looped = None;
        connections.dials(&mut |addr, dials| {
            // Less than before: it was given up and is a target again.
            let since = before.get(&addr).copied().filter(|before| *before <= dials).unwrap_or(0);
            if dials - since > due {
                looped = Some((addr, dials - since));
            }
            count.dials.insert(addr, dials);
        });
        count.at = now;
        let Some((addr, dials)) = looped else { return Ok(()) };
        Err(Broken::new(
            vec![sight.name()],
            format!("{} dialled {addr} {dials} times within {}", sight.name(), span(elapsed)),
            format!("with a pause of {} at the least there is time for {due}", span(shortest)),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;

    #[test]
    fn a_dial_loop_fires_and_a_back_off_does_not() {
        let run = |a_second: u64| {
            let mut bench = Bench::new(&["a"]);
            let addr = std::net::SocketAddr::from(([192, 168, 0, 9], 7946));
            (1..5).find_map(|second| {
                bench.wires.dials.insert(addr, second * a_second);
                bench.wake(0, second * 1000).err().map(|broken| broken.oracle)
            })
        };
        // A pause of 40 ms fits 25 times, and two more are free.
        assert_eq!((run(27), run(28)), (None, Some("dials_paced")));
    }
}
