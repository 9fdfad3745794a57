//! In calm weather nobody suspects anybody: until the first fault, with latency up to half a push interval, no
//! loss and one pace for all clocks.

use firedrill_core::io::Event;

use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule, span};

/// Watches the events of members becoming suspect or going down.
#[derive(Debug)]
pub(super) struct NoFalseSuspicion {
    /// A document too large to send silences its node without any fault.
    unsendable: bool,
}

impl NoFalseSuspicion {
    pub(super) const fn new(_world: &World) -> Self {
        Self { unsendable: false }
    }
}

impl Oracle for NoFalseSuspicion {
    const RULE: Rule = Rule {
        name: "no_false_suspicion",
        invariant: "until the first fault nobody becomes suspect or goes down, while latency is at most half a push interval and no frame is lost",
        source: "docs/protocol.md, Bounds after a heal (steady state)",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        if sight.look.events.is_empty() || self.unsendable || !sight.world.is_calm() {
            return Ok(());
        }
        for event in sight.look.events {
            if let Event::Unsendable { .. } = event {
                self.unsendable = true;
                return Ok(());
            }
            let (id, became) = if let Event::MemberSuspect { id } = event {
                (id, "suspect")
            } else if let Event::MemberDown { id } = event {
                (id, "down")
            } else {
                continue;
            };
            return Err(Broken::new(
                vec![sight.name(), id.to_string()],
                format!("{} found {id} {became}", sight.name()),
                format!(
                    "there was no fault so far, and frames take at most {}: its pushes arrive in time",
                    span(sight.world.net().latency_max)
                ),
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, calm_net, ms, node_id};
    use super::*;
    use crate::engine::Fault;
    use crate::scenario::model::{HostIx, LinkSpec};

    fn suspicion() -> [Event; 1] {
        [Event::MemberSuspect { id: node_id("b") }]
    }

    #[test]
    fn a_suspicion_in_calm_weather_fires() {
        let mut bench = Bench::new(&["a", "b"]);
        let broken = bench.events(0, 10, &suspicion()).unwrap_err();
        assert_eq!((broken.oracle, broken.nodes), ("no_false_suspicion", vec!["a".into(), "b".into()]));
        let mut bench = Bench::new(&["a", "b"]);
        assert!(bench.events(0, 10, &[Event::MemberDown { id: node_id("b") }]).is_err());
    }

    #[test]
    fn after_a_fault_or_on_a_lossy_net_anything_may_be_suspected() {
        let mut bench = Bench::new(&["a", "b"]);
        bench.world.fault_applied(ms(5), &Fault::Pause(HostIx(1)));
        bench.events(0, 10, &suspicion()).unwrap();
        let lossy = LinkSpec { loss_ppm: 1, ..calm_net() };
        Bench::with(&["a", "b"], lossy, false).events(0, 10, &suspicion()).unwrap();
    }

    #[test]
    fn an_unsendable_document_explains_silence() {
        let mut bench = Bench::new(&["a", "b"]);
        bench.events(1, 9, &[Event::Unsendable { body_bytes: 70_000 }]).unwrap();
        bench.events(0, 10, &suspicion()).unwrap();
    }
}
