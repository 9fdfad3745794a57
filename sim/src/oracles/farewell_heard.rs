//! Last words count: who accepts the final push or the leave of a member holds it as departed, and has it in view no
//! more.
//!
//! A departing node takes its last numbers in the step that says goodbye, so the frames at or above the number it
//! was at are its last words. Excepted are ids that several hosts bear, and members that the hearer has reaped at
//! that incarnation or above: their words are refused.

use firedrill_core::id::{Incarnation, Seq};
use firedrill_core::io::{Command, Event};
use firedrill_core::wire::message::RecordStatus;

use super::ledger::Held;
use super::sight::{Sight, Subject};
use super::world::{PeerIx, World};
use super::{Broken, Oracle, Rule};
use crate::engine::Cause;

/// The goodbye of one boot.
#[derive(Debug, Clone, Copy)]
struct Goodbye {
    who: PeerIx,
    incarnation: Incarnation,
    first: Seq,
}

/// Knows every goodbye, and who has reaped whom.
#[derive(Debug)]
pub(super) struct FarewellHeard {
    goodbyes: Vec<Goodbye>,
    /// The number of each host's next frame, as of its last step.
    next_seq: Vec<Seq>,
    /// The highest incarnation reaped in this boot, by host and peer.
    reaped: Vec<Vec<Option<Incarnation>>>,
}

impl FarewellHeard {
    pub(super) fn new(world: &World) -> Self {
        let (hosts, ids) = (world.hosts().len(), world.ids().len());
        Self { goodbyes: Vec::new(), next_seq: vec![Seq(0); hosts], reaped: vec![vec![None; ids]; hosts] }
    }
}

impl Oracle for FarewellHeard {
    const RULE: Rule = Rule {
        name: "farewell_heard",
        invariant: "who accepts the last words of a member holds it as departed and has it in view no more",
        source: "docs/protocol.md, Departure; View; decision 5",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let host = sight.look.host;
        let node = sight.look.node;
        let before = std::mem::replace(&mut self.next_seq[host.0], node.next_seq());
        if sight.changed.boot {
            self.reaped[host.0].fill(None);
            // Two boots may refute their way to one incarnation, and number their frames alike.
            let who = sight.host().peer;
            self.goodbyes.retain(|bye| bye.who != who);
        }
        if let Cause::Command(Command::Leave) = sight.look.cause
            && node.has_departed()
        {
            let who = sight.host().peer;
            if sight.world.hosts_of(who).len() == 1 {
                self.goodbyes.push(Goodbye { who, incarnation: node.incarnation(), first: before });
            }
        }
        for (event, peer) in sight.events() {
            let Some(peer) = peer else { continue };
            if let Event::MemberReaped { incarnation, .. } = event {
                let reaped = &mut self.reaped[host.0][peer.0];
                *reaped = (*reaped).max(Some(*incarnation));
            } else if let Event::Accepted { incarnation, seq, .. } = event {
                self.judge(sight, peer, *incarnation, *seq)?;
            }
        }
        Ok(())
    }
}

impl FarewellHeard {
    fn judge<S: Subject>(
        &self,
        sight: &Sight<'_, S>,
        peer: PeerIx,
        incarnation: Incarnation,
        seq: Seq,
    ) -> Result<(), Box<Broken>> {
        let is_last_word =
            |bye: &Goodbye| bye.who == peer && bye.incarnation == incarnation && seq >= bye.first;
        let refused = self.reaped[sight.look.host.0][peer.0].is_some_and(|reaped| incarnation <= reaped);
        if refused || !self.goodbyes.iter().any(is_last_word) {
            return Ok(());
        }
        let id = sight.world.id(peer);
        let record = sight.told().pairs[peer.0].record;
        let heard = format!(
            "{} accepted the last words of {id}: incarnation {incarnation}, number {}",
            sight.name(),
            seq.0
        );
        let nodes = vec![sight.name(), id.to_string()];
        if record.is_none_or(|held| held < Held { incarnation, status: RecordStatus::Left }) {
            let holds = record.map_or("holds no record of it", |_| "holds a record that says otherwise");
            return Err(Broken::new(nodes, heard, format!("it {holds}")));
        }
        let outlived = record.is_some_and(|held| held.incarnation > incarnation);
        if sight.told().view.contains(&peer) && !outlived {
            return Err(Broken::new(nodes, heard, format!("it still has {id} in its view")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, calm_net, node_id};
    use super::*;

    /// a knows b, which says goodbye with frames 5 and 6.
    fn parted() -> Bench {
        parted_on(Bench::new(&["a", "b"]))
    }

    fn parted_on(mut bench: Bench) -> Bench {
        bench.hear(0, 10, 1, 3).unwrap();
        bench.nodes[1].next_seq = Seq(5);
        bench.wake(1, 11).unwrap();
        bench.nodes[1].next_seq = Seq(7);
        bench.nodes[1].departed = true;
        bench.command(1, 12, &Command::Leave, &[]).unwrap();
        bench
    }

    #[test]
    fn last_words_without_effect_fire() {
        let broken = parted().hear_only(0, 20, 1, 6).unwrap_err();
        assert_eq!(broken.oracle, "farewell_heard");
        assert!(broken.contradiction.contains("says otherwise"), "{broken:?}");
        parted().hear_only(0, 20, 1, 4).unwrap();
    }

    #[test]
    fn who_holds_it_as_departed_must_not_show_it() {
        let mut bench = parted();
        bench.nodes[0].set_record("b", 1001, RecordStatus::Left);
        assert!(bench.hear_only(0, 20, 1, 5).unwrap_err().contradiction.contains("in its view"));
        let mut bench = parted();
        bench.nodes[0].set_record("b", 1001, RecordStatus::Left);
        bench.nodes[0].hide("b");
        bench.hear_only(0, 20, 1, 5).unwrap();
    }

    #[test]
    fn frames_of_a_later_boot_are_no_last_words_even_at_the_same_incarnation_and_number() {
        let mut bench = parted_on(Bench::with(&["a", "b"], calm_net(), true));
        bench.leave(1, 13);
        bench.boot(1, 14, 1001).unwrap();
        bench.hear_only(0, 20, 1, 6).unwrap();
        // A boot of somebody else makes nothing of them forgotten.
        let mut bench = parted_on(Bench::new(&["a", "b", "c"]));
        bench.boot(2, 14, 1014).unwrap();
        assert_eq!(bench.hear_only(0, 20, 1, 6).unwrap_err().oracle, "farewell_heard");
    }

    #[test]
    fn the_words_of_a_stranger_are_recorded_unless_it_was_reaped() {
        let mut bench = parted();
        bench.boot(0, 15, 1015).unwrap();
        assert!(bench.hear_only(0, 20, 1, 6).unwrap_err().contradiction.contains("no record"));
        let mut bench = parted();
        bench.boot(0, 15, 1015).unwrap();
        let reaped = Event::MemberReaped { id: node_id("b"), incarnation: Incarnation(1001) };
        bench.events(0, 16, &[reaped]).unwrap();
        bench.hear_only(0, 20, 1, 6).unwrap();
    }
}
