//! Only a member's own word makes it leave a view before it is silent: what others tell of it does not.

use firedrill_core::io::Event;

use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule};

/// Looks for the frame that explains each departure.
#[derive(Debug)]
pub(super) struct LeftByOwnWord;

impl LeftByOwnWord {
    pub(super) const fn new(_world: &World) -> Self {
        Self
    }
}

impl Oracle for LeftByOwnWord {
    const RULE: Rule = Rule {
        name: "left_by_own_word",
        invariant: "a member leaves a view as departed only with a frame of its own: hearsay does not hide whom a node still hears",
        source: "docs/protocol.md, decision 10",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        for event in sight.look.events {
            let Event::MemberLeft { id } = event else { continue };
            let spoke = |event: &Event| matches!(event, Event::Accepted { sender, .. } if sender == id);
            if !sight.look.events.iter().any(spoke) {
                return Err(Broken::new(
                    vec![sight.name(), id.to_string()],
                    format!("{} took {id} out of its view as departed", sight.name()),
                    format!("it accepted no frame of {id} in that step, so only others can have said so"),
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, node_id};
    use super::*;

    #[test]
    fn a_departure_by_hearsay_fires_and_by_own_word_does_not() {
        let left = Event::MemberLeft { id: node_id("b") };
        let mut bench = Bench::new(&["a", "b", "c"]);
        let hearsay = [bench.accepted(2, 0), left.clone()];
        assert_eq!(bench.events(0, 10, &hearsay).unwrap_err().oracle, "left_by_own_word");
        let mut bench = Bench::new(&["a", "b", "c"]);
        let own_word = [bench.accepted(1, 0), left];
        bench.events(0, 10, &own_word).unwrap();
    }
}
