//! A promotion that was not sealed ends when its node could not seal: nobody waits for an issuer that cannot.

use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule};

/// Looks whenever an issuance did something.
#[derive(Debug)]
pub(super) struct PromotionsLapse;

impl PromotionsLapse {
    pub(super) const fn new(_world: &World) -> Self {
        Self
    }
}

impl Oracle for PromotionsLapse {
    const RULE: Rule = Rule {
        name: "promotions_lapse",
        invariant: "no node keeps a promotion that it has not sealed while it could not seal",
        source: "docs/issuance.md, Fencing",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let Some(turn) = sight.turn() else { return Ok(()) };
        let Some(epoch) = turn.issuance.promoted() else { return Ok(()) };
        let Err(unfit) = turn.issuance.able() else { return Ok(()) };
        Err(Broken::new(
            vec![sight.name()],
            format!("{} keeps its promotion at epoch {epoch}", sight.name()),
            format!("it could not seal: {unfit}"),
        ))
    }
}
