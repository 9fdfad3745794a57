//! A node whose wall clock is far ahead of the others' seals nothing: its row would lift the tip beyond everybody's
//! present, and stop the issuance for that long.
//!
//! How far ahead it is, is the node's own reckoning from what others told: nobody else knows which of their clocks it
//! has heard of.

use firedrill_core::issuance::event::IssuanceEvent;

use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule, span};

/// Looks at every row that is sealed.
#[derive(Debug)]
pub(super) struct SealsBySaneClock;

impl SealsBySaneClock {
    pub(super) const fn new(_world: &World) -> Self {
        Self
    }
}

impl Oracle for SealsBySaneClock {
    const RULE: Rule = Rule {
        name: "seals_by_sane_clock",
        invariant: "no node seals while it knows that its wall clock is more than silence_z ahead of the others'",
        source: "docs/issuance.md, Seal",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let Some(turn) = sight.turn() else { return Ok(()) };
        let seals = |event: &IssuanceEvent| matches!(event, IssuanceEvent::Sealing { .. });
        let (ahead, most) = (turn.issuance.ahead_of_others(), turn.issuance.config().silence_z.duration());
        if ahead <= most || !turn.events().any(seals) {
            return Ok(());
        }
        Err(Broken::new(
            vec![sight.name()],
            format!("{} seals by a clock that is {} ahead of the others", sight.name(), span(ahead)),
            format!("a clock more than {} ahead does not seal", span(most)),
        ))
    }
}
