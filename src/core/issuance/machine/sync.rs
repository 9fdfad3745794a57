//! Replication: asking peers for rows, answering theirs.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use super::Issuance;
use crate::id::NodeId;
use crate::issuance::event::IssuanceEvent;
use crate::issuance::message::{Page, Pull};
use crate::issuance::replication::Ask;
use crate::limits::PAGE_BYTES_MAX;
use crate::time::Now;
use crate::wire::message::{Measure, Message, Sink as _};

impl Issuance {
    /// Asks a peer for the rows after this node's cursors, of as many origins as fit a frame.
    pub(super) fn pull(&mut self, ask: Ask) {
        let Ask { peer, round, from } = ask;
        let mut after = BTreeMap::new();
        let mut measure = Measure::default();
        let mut until = None;
        for (origin, seq) in self.spine.cursors_from(from.as_ref()) {
            measure.text(origin.node.as_str());
            measure.number(origin.boot.0);
            measure.number(seq.0);
            // Two escaped quotes, a point, a colon and a comma.
            measure.escaped_bytes += 7;
            if measure.escaped_bytes > PAGE_BYTES_MAX {
                until = Some(origin.clone());
                break;
            }
            after.insert(origin.clone(), seq);
        }
        self.pulls.cut(&peer, until.clone());
        self.send(&peer, Message::Pull(Arc::new(Pull { round, from, until, after })));
    }

    /// A peer asks for rows.
    pub(crate) fn pulled(&mut self, now: Now, from: &NodeId, pull: &Pull) {
        let range = (pull.from.as_ref(), pull.until.as_ref());
        let (rows, more) = self.spine.page(range, &pull.after, PAGE_BYTES_MAX);
        let page = Page { round: pull.round, more, wall: now.wall.into(), rows };
        self.send(from, Message::Page(Arc::new(page)));
    }

    /// A peer sent rows. They count for the fold at once, also those of a request that was given up.
    pub(crate) fn page(&mut self, now: Now, from: &NodeId, page: &Page) {
        self.stirred = true;
        if self.live.contains(from) {
            self.clocks.insert(from.clone(), Now { instant: now.instant, wall: page.wall.into() });
        }
        let taken = self.spine.take(page.rows.iter().cloned());
        let rows = taken.rows.len() as u64;
        self.metrics.rows_replicated = self.metrics.rows_replicated.saturating_add(rows);
        self.metrics.rows_conflicting = self.metrics.rows_conflicting.saturating_add(taken.conflicting);
        if rows > 0 {
            self.tell(IssuanceEvent::Replicated { from: from.clone(), rows });
        }
        if taken.conflicting > 0 {
            self.tell(IssuanceEvent::RowsConflict { from: from.clone(), rows: taken.conflicting });
        }
        self.writer.replicate(taken.rows);
        if self.pulls.awaits(from, page.round)
            && let Some(ask) = self.pulls.answered(from, page.more, self.writer.has_room())
        {
            self.pull(ask);
        }
    }
}
