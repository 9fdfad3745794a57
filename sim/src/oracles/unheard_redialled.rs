//! No connection stands to a peer that is unheard for longer than S, counted from its connect: it is closed and
//! dialled anew. A half-open connection heals this way where kernels are slow to notice.
//!
//! Seen on the full wire alone. Each host's connections are looked at when one could be overdue, not before.

use firedrill_core::time::Instant;

use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule, span};

/// Keeps the earliest moment, on each host's own clock, at which a connection could be overdue.
#[derive(Debug)]
pub(super) struct UnheardRedialled {
    due: Vec<Instant>,
}

impl UnheardRedialled {
    pub(super) fn new(world: &World) -> Self {
        Self { due: vec![Instant::ZERO; world.hosts().len()] }
    }
}

impl Oracle for UnheardRedialled {
    const RULE: Rule = Rule {
        name: "unheard_redialled",
        invariant: "a connection to a peer that is unheard for a suspicion timeout is closed and dialled anew",
        source: "docs/protocol.md, Connection policy; decision 14",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let now = sight.look.now.instant;
        let limit = sight.host().facts.timing.suspicion;
        let due = &mut self.due[sight.look.host.0];
        if sight.changed.boot {
            *due = now.after(limit);
        }
        if now <= *due || sight.look.node.has_departed() {
            return Ok(());
        }
        let Some(connections) = sight.look.connections else { return Ok(()) };
        let since = connections.states().unheard_since.unwrap_or(now);
        *due = since.after(limit);
        if now <= *due {
            return Ok(());
        }
        Err(Broken::new(
            vec![sight.name()],
            format!(
                "{} keeps a connection whose peer it has not heard for {}",
                sight.name(),
                span(now.since(since))
            ),
            format!("after {} without a frame it is dialled anew", span(limit)),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, ms};

    #[test]
    fn a_connection_unheard_for_longer_than_the_timeout_fires() {
        let mut bench = Bench::new(&["a"]);
        bench.wires.states.unheard_since = Some(ms(100));
        bench.wake(0, 2550).unwrap();
        bench.wake(0, 2600).unwrap();
        assert_eq!(bench.wake(0, 2601).unwrap_err().oracle, "unheard_redialled");
    }

    #[test]
    fn hearing_the_peer_moves_the_moment() {
        let mut bench = Bench::new(&["a"]);
        for at in (0..20_000).step_by(500) {
            bench.wires.states.unheard_since = Some(ms(at));
            bench.wake(0, at + 400).unwrap();
        }
    }
}
