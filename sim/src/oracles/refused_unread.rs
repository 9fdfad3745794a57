//! The payload of a frame that is refused for who sent it, or as a replay, is not read: up to 64 KiB of text for
//! whoever captured one frame.
//!
//! Only bytes have to be read, so the fast wire, which moves values, shows nothing here.

use firedrill_core::io::Event;
use firedrill_core::issuance::event::IssuanceEvent;
use firedrill_core::wire::Reject;

use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule};

/// Counts the texts read against the frames that were to be read.
#[derive(Debug)]
pub(super) struct RefusedUnread {
    /// Per host, as of its last step.
    read: Vec<u64>,
}

impl RefusedUnread {
    pub(super) fn new(world: &World) -> Self {
        Self { read: vec![0; world.hosts().len()] }
    }
}

impl Oracle for RefusedUnread {
    const RULE: Rule = Rule {
        name: "refused_unread",
        invariant: "a node reads the payloads of frames that passed the replay check, and no others",
        source: "docs/protocol.md, Receive path (steps 6 and 7)",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let now = sight.look.node.payloads_read();
        let before = std::mem::replace(&mut self.read[sight.look.host.0], now);
        let read = if sight.changed.boot { now } else { now - before };
        if read == 0 {
            return Ok(());
        }
        let due = sight.look.events.iter().filter(|event| passed_replay_check(event)).count() as u64;
        if read <= due {
            return Ok(());
        }
        Err(Broken::new(
            vec![sight.name()],
            format!("{} read {read} payloads in one step", sight.name()),
            format!("{due} frames of that step had passed the replay check"),
        ))
    }
}

fn passed_replay_check(event: &Event) -> bool {
    matches!(
        event,
        Event::Accepted { .. }
            | Event::NotAdmitted { .. }
            | Event::Issuance(IssuanceEvent::Early { .. })
            | Event::Rejected { reason: Reject::Payload, .. }
    )
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, node_id};
    use super::*;

    #[test]
    fn reading_a_replay_fires_and_reading_what_passed_does_not() {
        let refused = |reason| Event::Rejected { reason, sender: Some(node_id("b")), inbound: None };
        let mut bench = Bench::new(&["a", "b"]);
        bench.nodes[0].payloads_read = 1;
        bench.hear_only(0, 10, 1, 1).unwrap();
        bench.events(0, 11, &[refused(Reject::Replay)]).unwrap();
        bench.nodes[0].payloads_read = 2;
        bench.events(0, 12, &[refused(Reject::Payload)]).unwrap();
        bench.nodes[0].payloads_read = 3;
        assert_eq!(bench.events(0, 13, &[refused(Reject::Replay)]).unwrap_err().oracle, "refused_unread");
    }

    #[test]
    fn a_boot_counts_from_nothing() {
        let mut bench = Bench::new(&["a", "b"]);
        bench.nodes[0].payloads_read = 1;
        bench.hear_only(0, 10, 1, 1).unwrap();
        bench.boot(0, 20, 1020).unwrap();
    }
}
