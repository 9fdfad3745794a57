//! A frame is refused as a replay only if one of its sender was accepted that is not older: what was rejected, what
//! the reap memory refused and what was forgotten with its member stands in nobody's way.
//!
//! The converse of `seq_monotone`, and lenient where that is strict: here the oracle forgets only what the node must
//! have forgotten. It needs the head of the refused frame, which the fast wire shows and bytes do not.

use firedrill_core::id::{Incarnation, Seq};
use firedrill_core::io::Event;
use firedrill_core::time::Instant;
use firedrill_core::wire::message::RecordStatus;
use firedrill_core::wire::{Header, Reject};

use super::seq_monotone::record_before;
use super::sight::{Sight, Subject};
use super::world::{PeerIx, World};
use super::{Broken, Oracle, Rule};
use crate::engine::Cause;

/// What a node may hold against one sender.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    accepted: Option<(Incarnation, Seq)>,
    /// The incarnation noted when the member was last reaped, and when that was.
    noted: Option<(Incarnation, Instant)>,
}

/// Remembers the highest frame accepted, for every host and sender.
#[derive(Debug)]
pub(super) struct NoFalseReplay {
    rows: Vec<Vec<Row>>,
}

impl NoFalseReplay {
    pub(super) fn new(world: &World) -> Self {
        Self { rows: vec![vec![Row::default(); world.ids().len()]; world.hosts().len()] }
    }
}

impl Oracle for NoFalseReplay {
    const RULE: Rule = Rule {
        name: "no_false_replay",
        invariant: "a node refuses a frame as a replay only if it accepted one of that sender that is not older, and has not had to forget it since",
        source: "docs/protocol.md, Receive path (step 6); decisions 7 and 8",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let rows = &mut self.rows[sight.look.host.0];
        if sight.changed.boot {
            rows.fill(Row::default());
        }
        for (event, peer) in sight.events() {
            if let (Event::Rejected { reason: Reject::Replay, .. }, Cause::Frame(head)) =
                (event, sight.look.cause)
            {
                let peer = sight.world.peer(&head.sender);
                let accepted = peer.and_then(|peer| rows[peer.0].accepted);
                if accepted.is_none_or(|accepted| (head.incarnation, head.seq) > accepted) {
                    return Err(broken(sight, head, accepted));
                }
            }
            let Some(peer) = peer else { continue };
            if let Event::Accepted { incarnation, seq, .. } = event {
                if !is_refused(sight, peer, &rows[peer.0], *incarnation) {
                    rows[peer.0].accepted = rows[peer.0].accepted.max(Some((*incarnation, *seq)));
                }
            } else if let Event::MemberReaped { incarnation, .. } = event {
                rows[peer.0] = Row { accepted: None, noted: Some((*incarnation, sight.look.now.instant)) };
            }
        }
        Ok(())
    }
}

/// Whether the reap memory refuses such a frame for certain: then it moves no watermark (decision 8).
fn is_refused<S: Subject>(sight: &Sight<'_, S>, peer: PeerIx, row: &Row, incarnation: Incarnation) -> bool {
    let memory = sight.host().facts.timing.reap_memory();
    let held = row.noted.filter(|(_, at)| sight.look.now.instant.since(*at) <= memory);
    held.is_some_and(|(noted, _)| {
        incarnation <= noted
            && record_before(sight, peer)
                .is_none_or(|held| held.status == RecordStatus::Left && held.incarnation <= noted)
    })
}

fn broken<S: Subject>(
    sight: &Sight<'_, S>,
    head: &Header,
    accepted: Option<(Incarnation, Seq)>,
) -> Box<Broken> {
    let Header { sender, incarnation, seq: Seq(seq) } = head;
    Broken::new(
        vec![sight.name(), sender.to_string()],
        format!(
            "{} refused a frame of {sender} as a replay: incarnation {incarnation}, number {seq}",
            sight.name()
        ),
        accepted.map_or_else(
            || String::from("it remembers no frame of that sender which it accepted"),
            |(incarnation, Seq(seq))| {
                format!("the last one that it accepted and remembers is older: incarnation {incarnation}, number {seq}")
            },
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, node_id};
    use super::*;

    fn refused(bench: &mut Bench, at: u64, incarnation: u64, seq: u64) -> Option<&'static str> {
        let head = Header { sender: node_id("b"), incarnation: Incarnation(incarnation), seq: Seq(seq) };
        let event = Event::Rejected { reason: Reject::Replay, sender: Some(node_id("b")), inbound: None };
        bench.frame(0, at, &head, &[event]).err().map(|broken| broken.oracle)
    }

    #[test]
    fn a_frame_above_everything_accepted_is_no_replay() {
        let mut bench = Bench::new(&["a", "b"]);
        assert_eq!(refused(&mut bench, 5, 1001, 0), Some("no_false_replay"));
        bench.hear(0, 10, 1, 5).unwrap();
        assert_eq!(refused(&mut bench, 11, 1001, 5), None);
        assert_eq!(refused(&mut bench, 12, 1000, 9), None);
        assert_eq!(refused(&mut bench, 13, 1001, 6), Some("no_false_replay"));
    }

    #[test]
    fn what_was_forgotten_or_refused_stands_in_nobodys_way() {
        let mut bench = Bench::new(&["a", "b"]);
        bench.hear_only(0, 10, 1, 5).unwrap();
        bench
            .events(0, 20, &[Event::MemberReaped { id: node_id("b"), incarnation: Incarnation(1001) }])
            .unwrap();
        bench.hear_only(0, 30, 1, 5).unwrap();
        assert_eq!(refused(&mut bench, 40, 900, 0), Some("no_false_replay"));
    }
}
