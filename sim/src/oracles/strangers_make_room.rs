//! A newcomer is turned away only where every place is held by somebody who has proved to know the secret. Else 128
//! silent sockets keep every peer out.

use firedrill_core::io::{CloseReason, Event};

use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule};

/// Looks at who holds the places when one is turned away.
#[derive(Debug)]
pub(super) struct StrangersMakeRoom;

impl StrangersMakeRoom {
    pub(super) const fn new(_world: &World) -> Self {
        Self
    }
}

impl Oracle for StrangersMakeRoom {
    const RULE: Rule = Rule {
        name: "strangers_make_room",
        invariant: "no connection is refused for want of room while one is held on which nobody ever authenticated",
        source: "docs/protocol.md, Connection policy; decision 16",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let full = |event: &Event| matches!(event, Event::InboundClosed { reason: CloseReason::Full, .. });
        if !sight.look.events.iter().any(full) {
            return Ok(());
        }
        let strangers = sight.look.connections.map_or(0, |connections| connections.states().strangers);
        if strangers == 0 {
            return Ok(());
        }
        Err(Broken::new(
            vec![sight.name()],
            format!("{} turned a newcomer away", sight.name()),
            format!("{strangers} connections that never authenticated hold places"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use firedrill_core::io::InboundId;

    #[test]
    fn turning_a_newcomer_away_fires_while_a_stranger_is_held() {
        let event = |reason| [Event::InboundClosed { inbound: InboundId(7), reason }];
        let mut bench = Bench::new(&["a"]);
        bench.events(0, 10, &event(CloseReason::Full)).unwrap();
        bench.wires.states.strangers = 1;
        bench.events(0, 11, &event(CloseReason::Displaced)).unwrap();
        assert_eq!(bench.events(0, 12, &event(CloseReason::Full)).unwrap_err().oracle, "strangers_make_room");
    }
}
