//! Replay watermarks: the highest incarnation and sequence number accepted from each sender (step 6).
//!
//! A frame at or below its sender's watermark is a replay. Rows are bounded: a sender without a record loses
//! its row after a tombstone window, and a new sender is refused while the table is full.
//!
//! Spec: docs/protocol.md, Receive path (step 6); decisions 7, 8 and 15.

use alloc::collections::BTreeMap;

use crate::id::{Incarnation, NodeId, Seq};
use crate::limits::WATERMARKS_MAX;
use crate::time::{Duration, Instant};

#[derive(Debug, Clone)]
struct Row {
    incarnation: Incarnation,
    seq: Seq,
    moved_at: Instant,
}

/// What the watermark says of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// Above the sender's watermark.
    Fresh,
    /// Above, or no watermark yet; a row would have to be added.
    NewSender,
    /// At the incarnation of the watermark, not above its number.
    OldSeq,
    /// Below the incarnation of the watermark.
    OldIncarnation,
}

/// One row per sender.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watermarks(BTreeMap<NodeId, Row>);

impl Watermarks {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.0.len() >= WATERMARKS_MAX
    }

    /// Judges a frame; changes nothing.
    pub(crate) fn judge(&self, sender: &NodeId, incarnation: Incarnation, seq: Seq) -> Freshness {
        match self.0.get(sender) {
            None => Freshness::NewSender,
            Some(row) if incarnation < row.incarnation => Freshness::OldIncarnation,
            Some(row) if incarnation == row.incarnation && seq <= row.seq => Freshness::OldSeq,
            Some(_) => Freshness::Fresh,
        }
    }

    /// The incarnation and number at or below which a sender's frames are replays.
    pub(crate) fn of(&self, sender: &NodeId) -> Option<(Incarnation, Seq)> {
        self.0.get(sender).map(|row| (row.incarnation, row.seq))
    }

    /// Moves the sender's watermark to an accepted frame.
    pub(crate) fn advance(&mut self, now: Instant, sender: &NodeId, incarnation: Incarnation, seq: Seq) {
        match self.0.get_mut(sender) {
            Some(row) => *row = Row { incarnation, seq, moved_at: now },
            None => {
                self.0.insert(sender.clone(), Row { incarnation, seq, moved_at: now });
            }
        }
    }

    /// Forgets a sender whole.
    pub(crate) fn forget(&mut self, sender: &NodeId) {
        self.0.remove(sender);
    }

    /// Frees the rows of senders that have no record and were not heard for `window` (decision 7).
    pub(crate) fn expire(&mut self, now: Instant, window: Duration, has_record: impl Fn(&NodeId) -> bool) {
        self.0.retain(|sender, row| now.since(row.moved_at) <= window || has_record(sender));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_higher_incarnation_starts_a_new_sequence() {
        let mut watermarks = Watermarks::default();
        let sender = NodeId::new("a").unwrap();
        let judge = |w: &Watermarks, incarnation, seq| w.judge(&sender, Incarnation(incarnation), Seq(seq));
        assert_eq!(judge(&watermarks, 5, 0), Freshness::NewSender);
        watermarks.advance(Instant::ZERO, &sender, Incarnation(5), Seq(7));
        assert_eq!(judge(&watermarks, 5, 7), Freshness::OldSeq);
        assert_eq!(judge(&watermarks, 5, 8), Freshness::Fresh);
        assert_eq!(judge(&watermarks, 4, 99), Freshness::OldIncarnation);
        assert_eq!(judge(&watermarks, 6, 0), Freshness::Fresh);
    }

    #[test]
    fn a_row_without_a_record_expires_after_the_window() {
        let mut watermarks = Watermarks::default();
        let (kept, freed) = (NodeId::new("kept").unwrap(), NodeId::new("freed").unwrap());
        for sender in [&kept, &freed] {
            watermarks.advance(Instant::ZERO, sender, Incarnation(1), Seq(0));
        }
        let window = Duration::from_secs(1);
        watermarks.expire(Instant::ZERO.after(window), window, |id| *id == kept);
        assert_eq!(watermarks.len(), 2, "exactly the window is not above it");
        watermarks.expire(Instant::from_micros(1_000_001), window, |id| *id == kept);
        assert_eq!(watermarks.len(), 1);
        assert_eq!(watermarks.judge(&freed, Incarnation(1), Seq(0)), Freshness::NewSender);
    }
}
