//! A node that could not seal neither asks electors for their promise nor has one renewed: it would keep those from
//! supporting somebody who can.

use firedrill_core::time::Instant;

use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule};

/// Keeps when each host asked last.
#[derive(Debug)]
pub(super) struct UnableAsksNothing {
    asked: Vec<Option<Instant>>,
}

impl UnableAsksNothing {
    pub(super) fn new(world: &World) -> Self {
        Self { asked: vec![None; world.hosts().len()] }
    }
}

impl Oracle for UnableAsksNothing {
    const RULE: Rule = Rule {
        name: "unable_asks_nothing",
        invariant: "no node asks electors for a promise while it could not seal",
        source: "docs/issuance.md, Fencing",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let Some(turn) = sight.turn() else { return Ok(()) };
        let asked = turn.issuance.last_claim_at();
        let before = std::mem::replace(&mut self.asked[sight.look.host.0], asked);
        if asked == before || asked.is_none() {
            return Ok(());
        }
        let Err(unfit) = turn.issuance.able() else { return Ok(()) };
        Err(Broken::new(
            vec![sight.name()],
            format!("{} asks the electors for their promise", sight.name()),
            format!("it could not seal: {unfit}"),
        ))
    }
}
