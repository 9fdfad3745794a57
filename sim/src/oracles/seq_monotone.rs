//! Replay protection: what a node accepts of one sender strictly rises, in incarnation and then in number, as
//! long as it remembers the sender.
//!
//! The oracle forgets when the node may: a reaped member whole (decision 7), and a sender without a record one
//! tombstone window after its last frame. A frame that the reap memory refuses moves no watermark (decision 8),
//! also while all that is known of its sender is the tombstone that answered it (decision 11).

use firedrill_core::id::{Incarnation, Seq};
use firedrill_core::io::Event;
use firedrill_core::time::Instant;
use firedrill_core::wire::message::RecordStatus;

use super::late_round::longest_interval;
use super::ledger::Held;
use super::sight::{Sight, Subject};
use super::world::{PeerIx, World};
use super::{Broken, Oracle, Rule};

/// What a node must remember of one sender.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    watermark: Option<(Incarnation, Seq)>,
    moved_at: Instant,
    /// The incarnation noted when the member was last reaped, and when that was.
    noted: Option<(Incarnation, Instant)>,
}

/// Keeps a watermark of its own for every host and sender.
#[derive(Debug)]
pub(super) struct SeqMonotone {
    rows: Vec<Vec<Row>>,
    /// When each host last handled an input, on its own clock.
    last: Vec<Instant>,
}

impl SeqMonotone {
    pub(super) fn new(world: &World) -> Self {
        let hosts = world.hosts().len();
        Self { rows: vec![vec![Row::default(); world.ids().len()]; hosts], last: vec![Instant::ZERO; hosts] }
    }
}

impl Oracle for SeqMonotone {
    const RULE: Rule = Rule {
        name: "seq_monotone",
        invariant: "the frames that a node accepts of one sender strictly rise in incarnation and number as long as it remembers that sender",
        source: "docs/protocol.md, Receive path (step 6); decisions 7 and 8",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let rows = &mut self.rows[sight.look.host.0];
        let before = std::mem::replace(&mut self.last[sight.look.host.0], sight.look.now.instant);
        if sight.changed.boot {
            rows.fill(Row::default());
        }
        for (event, peer) in sight.events() {
            let Some(peer) = peer else { continue };
            let row = &mut rows[peer.0];
            if let Event::Accepted { incarnation, seq, .. } = event {
                accept(sight, peer, row, before, (*incarnation, *seq))?;
            } else if let Event::MemberReaped { incarnation, .. } = event {
                *row = Row { noted: Some((*incarnation, sight.look.now.instant)), ..Row::default() };
            }
        }
        Ok(())
    }
}

fn accept<S: Subject>(
    sight: &Sight<'_, S>,
    peer: PeerIx,
    row: &mut Row,
    before: Instant,
    frame: (Incarnation, Seq),
) -> Result<(), Box<Broken>> {
    let now = sight.look.now.instant;
    let timing = &sight.host().facts.timing;
    let record = record_before(sight, peer);
    let remembered = record.is_some() || now.since(row.moved_at) <= timing.tombstone();
    if let Some(watermark) = row.watermark.filter(|watermark| remembered && frame <= *watermark) {
        let id = sight.world.id(peer);
        return Err(Broken::new(
            vec![sight.name(), id.to_string()],
            format!("{} accepted a frame of {id}: {}", sight.name(), words(frame)),
            format!("it had accepted one before that is not older: {}", words(watermark)),
        ));
    }
    // A round drops the notes that have lapsed, and the last one was at most 1.2 P before the step before this.
    let patience = timing.reap_memory().saturating_add(longest_interval(timing.push));
    let noted = row.noted.filter(|(_, at)| before.since(*at) <= patience);
    let refused = noted.is_some_and(|(noted, _)| {
        let answer = Held { incarnation: noted, status: RecordStatus::Left };
        frame.0 <= noted && record.is_none_or(|held| held.status == RecordStatus::Left && held <= answer)
    });
    if !refused {
        row.watermark = Some(frame);
        row.moved_at = now;
    }
    Ok(())
}

/// The record of the peer that the node held before this step.
pub(super) fn record_before<S: Subject>(sight: &Sight<'_, S>, peer: PeerIx) -> Option<Held> {
    let changed = sight.records().iter().find(|(changed, ..)| *changed == peer);
    changed.map_or(sight.told().pairs[peer.0].record, |(_, before, _)| *before)
}

fn words((incarnation, Seq(seq)): (Incarnation, Seq)) -> String {
    format!("incarnation {incarnation}, number {seq}")
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, node_id};
    use super::*;

    #[test]
    fn the_same_or_an_older_number_fires_and_a_higher_incarnation_starts_anew() {
        for seq in [4, 5] {
            let mut bench = Bench::new(&["a", "b"]);
            bench.hear(0, 10, 1, 5).unwrap();
            assert_eq!(bench.hear(0, 11, 1, seq).unwrap_err().oracle, "seq_monotone");
        }
        let mut bench = Bench::new(&["a", "b"]);
        bench.hear(0, 10, 1, 5).unwrap();
        bench.nodes[1].incarnation = bench.nodes[1].incarnation.next();
        bench.hear(0, 11, 1, 0).unwrap();
    }

    #[test]
    fn a_reaped_sender_is_a_stranger_again() {
        let mut bench = Bench::new(&["a", "b"]);
        bench.hear_only(0, 10, 1, 5).unwrap();
        let Incarnation(b) = bench.nodes[1].incarnation;
        bench
            .events(0, 20, &[Event::MemberReaped { id: node_id("b"), incarnation: Incarnation(b) }])
            .unwrap();
        bench.hear_only(0, 30, 1, 5).unwrap();
        // Refused by the note: it moved no watermark, so it may come once more.
        bench.hear_only(0, 31, 1, 5).unwrap();
    }

    #[test]
    fn a_sender_without_a_record_is_remembered_for_a_window() {
        let mut bench = Bench::new(&["a", "b"]);
        bench.turn_off("late_round");
        bench.hear_only(0, 10, 1, 5).unwrap();
        assert!(bench.hear_only(0, 25_010, 1, 5).is_err());
        let mut bench = Bench::new(&["a", "b"]);
        bench.turn_off("late_round");
        bench.hear_only(0, 10, 1, 5).unwrap();
        bench.hear_only(0, 25_011, 1, 5).unwrap();
    }
}
