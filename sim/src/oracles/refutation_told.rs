//! A refutation is told at once, and its numbers begin at 0. A node that waits for its next round stays buried for
//! as long; numbers that run on make every restart of them look like lost frames.

use firedrill_core::id::Seq;
use firedrill_core::io::Event;

use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule};

/// Frames that one step may send at a new incarnation: the refutation's push, and a round or a nudge that is due.
const FRAMES_MAX: u64 = 3;

/// Looks at the steps that raise an incarnation.
#[derive(Debug)]
pub(super) struct RefutationTold;

impl RefutationTold {
    pub(super) const fn new(_world: &World) -> Self {
        Self
    }
}

impl Oracle for RefutationTold {
    const RULE: Rule = Rule {
        name: "refutation_told",
        invariant: "a refutation is pushed in the step that makes it, if anybody is there to be told, and numbers its frames from 0",
        source: "docs/protocol.md, Refutation; Wire and envelope",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let raised = |event: &Event| if let Event::Refuted { to, .. } = event { Some(*to) } else { None };
        let Some(to) = sight.look.events.iter().rev().find_map(raised) else { return Ok(()) };
        let Seq(next) = sight.look.node.next_seq();
        // What the issuance has to say in the same step takes numbers as well: a page for each peer at most asked for.
        let more = sight.look.node.issuance().map_or(0, |_| sight.world.hosts().len() as u64 * 4);
        let why = if next > FRAMES_MAX + more {
            format!("its next frame has number {next}, and numbers begin at 0 with each incarnation")
        } else if next == 0 && can_push(sight) {
            String::from("it pushed nothing in that step, though it knows where others live")
        } else {
            return Ok(());
        };
        let fact = format!("{} raised its incarnation to {to}", sight.name());
        Err(Broken::new(vec![sight.name()], fact, why))
    }
}

/// Whether somebody else's record holds an address to push to, and the document fits a frame.
fn can_push<S: Subject>(sight: &Sight<'_, S>) -> bool {
    let node = sight.look.node;
    let own = sight.host().facts.addr;
    let others = node.document().members.iter().filter(|(id, _)| *id != node.id());
    let mut dialable = others.filter_map(|(_, record)| record.addr.socket()).filter(|addr| *addr != own);
    node.metrics().pushes_unsendable == 0 && dialable.next().is_some()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, node_id};
    use super::*;
    use crate::engine::Fault;
    use crate::scenario::model::HostIx;
    use firedrill_core::id::Incarnation;
    use firedrill_core::wire::message::{Addr, MemberRecord, RecordStatus};

    fn refute(next_seq: u64) -> Option<&'static str> {
        let mut bench = Bench::new(&["a", "b"]);
        bench.world.fault_applied(super::super::testing::ms(1), &Fault::Kill(HostIx(1)));
        let record = MemberRecord {
            addr: Addr::new("192.168.0.2:7946"),
            incarnation: Incarnation(1001),
            status: RecordStatus::Alive,
        };
        bench.nodes[0].document.members.insert(node_id("b"), record);
        bench.nodes[0].incarnation = Incarnation(1005);
        bench.nodes[0].next_seq = Seq(next_seq);
        let (told, from, to) = (Incarnation(1004), Incarnation(1000), Incarnation(1005));
        let event = Event::Refuted { told, from, to };
        bench.events(0, 10, &[event]).err().map(|broken| broken.oracle)
    }

    #[test]
    fn a_refutation_is_pushed_at_once_from_number_0() {
        assert_eq!([0, 1, 2, 9].map(refute), [Some("refutation_told"), None, None, Some("refutation_told")]);
    }
}
