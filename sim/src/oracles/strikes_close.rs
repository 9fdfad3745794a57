//! The third charged refusal closes the connection it came on, whatever came in between: refusals do not decay.

use std::collections::BTreeMap;

use firedrill_core::io::{Event, InboundId};
use firedrill_core::limits::STRIKES_MAX;
use firedrill_core::wire::Reject;

use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule};

/// Counts the charged refusals of every connection.
#[derive(Debug)]
pub(super) struct StrikesClose {
    hosts: Vec<BTreeMap<InboundId, u8>>,
}

impl StrikesClose {
    pub(super) fn new(world: &World) -> Self {
        Self { hosts: vec![BTreeMap::new(); world.hosts().len()] }
    }
}

impl Oracle for StrikesClose {
    const RULE: Rule = Rule {
        name: "strikes_close",
        invariant: "the third refusal before the MAC, or at it, closes the connection it came on",
        source: "docs/protocol.md, Receive path; Connection policy; decision 1",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let strikes = &mut self.hosts[sight.look.host.0];
        if sight.changed.boot {
            strikes.clear();
        }
        let mut third = None;
        for event in sight.look.events {
            if let Event::Rejected { reason, inbound: Some(inbound), .. } = event {
                let count = strikes.entry(*inbound).or_default();
                *count = count.saturating_add(u8::from(is_charged(*reason)));
                third = third.or((*count >= STRIKES_MAX).then_some((*inbound, *reason)));
            } else if let Event::InboundClosed { inbound, .. } = event {
                strikes.remove(inbound);
                third = third.filter(|(struck, _)| struck != inbound);
            }
        }
        let Some((inbound, reason)) = third else { return Ok(()) };
        Err(Broken::new(
            vec![sight.name()],
            format!("{} refused a frame ({}) and left its connection open", sight.name(), reason.name()),
            format!("that was refusal number {} on connection {}", strikes[&inbound], inbound.0),
        ))
    }
}

/// Whether anybody who reaches the port could have caused the refusal.
const fn is_charged(reason: Reject) -> bool {
    match reason {
        Reject::Oversize
        | Reject::Malformed
        | Reject::Version
        | Reject::KeyId
        | Reject::Cluster
        | Reject::Mac => true,
        Reject::SelfOrigin | Reject::Replay | Reject::Payload => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use firedrill_core::io::CloseReason;

    fn refused(reason: Reject, inbound: u64) -> Event {
        Event::Rejected { reason, sender: None, inbound: Some(InboundId(inbound)) }
    }

    #[test]
    fn a_third_refusal_on_one_connection_has_to_close_it() {
        let mut bench = Bench::new(&["a"]);
        for (at, inbound) in [(1, 7), (2, 8), (3, 7), (4, 8)] {
            bench.events(0, at, &[refused(Reject::Cluster, inbound)]).unwrap();
        }
        let closed = Event::InboundClosed { inbound: InboundId(7), reason: CloseReason::Strikes };
        bench.events(0, 5, &[refused(Reject::Mac, 7), closed]).unwrap();
        assert_eq!(bench.events(0, 6, &[refused(Reject::Mac, 8)]).unwrap_err().oracle, "strikes_close");
    }

    #[test]
    fn what_a_peer_causes_is_not_charged() {
        let mut bench = Bench::new(&["a"]);
        for at in 1..9 {
            bench.events(0, at, &[refused(Reject::Payload, 7)]).unwrap();
        }
    }
}
