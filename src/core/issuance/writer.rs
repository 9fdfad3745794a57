//! What has to reach the disk, in order, one write at a time.
//!
//! A write is a batch of everything that waited. The disk answers each with the whole batch durable or none of
//! it; an adapter that cannot tell finds out before it answers. Replicated rows of a refused batch are written
//! again after a pause. A sealed row is given up, as its window passes, and so is a promise, which nobody has heard;
//! if nothing else waits then, an empty batch is written until the disk takes it.
//!
//! Absent: the disk.
//!
//! Spec: docs/issuance.md, Disk; Seal; Fencing.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::row::Stamped;
use super::window::Epoch;
use crate::time::{Duration, Instant};

/// The name of a write, for its answer; never reused within a boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Token(pub u64);

/// One write: all of it becomes durable, or nothing. An empty one asks whether the disk takes writes again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// Rows to append, each under its origin and number.
    pub rows: Vec<Stamped>,
    /// The highest epoch this node has supported as an elector; replaces the one before.
    pub promised: Option<Epoch>,
}

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Written {
    /// All of it survives a power loss.
    Durable,
    /// Nothing of it was written, and nothing will be: the disk is full or failed.
    Refused,
}

/// Rows that may wait before no more are asked for: four full pages or so.
pub(crate) const WAITING_ROWS_MAX: usize = 1024;
/// Pause before a refused batch is written again.
pub(crate) const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The queue to one disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct Writer {
    next: Token,
    waiting: Batch,
    /// The row that this node sealed, if one waits or is under way.
    sealed: Option<Stamped>,
    under_way: Option<UnderWay>,
    /// The last answer was a refusal, and nothing is written before.
    retry_at: Option<Instant>,
}

#[derive(Debug, Clone)]
struct UnderWay {
    token: Token,
    since: Instant,
    batch: Batch,
    /// Whether the sealed row is in it, as the last one.
    seals: bool,
}

/// What an answer of the disk settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settled {
    pub(crate) written: Written,
    /// Replicated rows; empty when refused, for they will be written again.
    pub(crate) rows: Vec<Stamped>,
    /// The promise in it, written or given up.
    pub(crate) promised: Option<Epoch>,
    /// The row sealed by this node in it, written or given up.
    pub(crate) sealed: Option<Stamped>,
}

impl Writer {
    /// Queues replicated rows.
    pub(crate) fn replicate(&mut self, rows: impl IntoIterator<Item = Stamped>) {
        self.waiting.rows.extend(rows);
    }

    /// Queues the highest epoch supported.
    pub(crate) fn promise(&mut self, epoch: Epoch) {
        self.waiting.promised = Some(epoch);
    }

    /// Queues the row that this node seals; there is none under way.
    pub(crate) fn seal(&mut self, row: Stamped) {
        self.sealed = Some(row);
    }

    /// The row that was sealed and is not durable yet.
    pub(crate) const fn sealing(&self) -> Option<&Stamped> {
        self.sealed.as_ref()
    }

    /// Whether there is room for rows of another page.
    pub(crate) fn has_room(&self) -> bool {
        self.waiting.rows.len() < WAITING_ROWS_MAX
    }

    /// Whether the last write was not refused, and none takes longer than `patience`.
    pub(crate) fn works(&self, now: Instant, patience: Duration) -> bool {
        self.retry_at.is_none()
            && self.under_way.as_ref().is_none_or(|write| now.since(write.since) <= patience)
    }

    /// When [`Writer::start`] tries again, after a refusal.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.retry_at.filter(|_| self.under_way.is_none())
    }

    /// The next write, if one is to be started now.
    pub(crate) fn start(&mut self, now: Instant) -> Option<(Token, Batch)> {
        let paused = self.retry_at.is_some_and(|at| at > now);
        // After a refusal an empty batch will do: who waits for the disk to work may have nothing else to write.
        let asks = self.retry_at.is_some();
        if paused || self.under_way.is_some() || (self.is_idle() && !asks) {
            return None;
        }
        let mut batch = core::mem::take(&mut self.waiting);
        let seals = self.sealed.is_some();
        batch.rows.extend(self.sealed.clone());
        let token = self.next;
        self.next.0 += 1;
        self.under_way = Some(UnderWay { token, since: now, batch: batch.clone(), seals });
        Some((token, batch))
    }

    /// Takes the answer to a write; `None` when it is not the one under way.
    pub(crate) fn answered(&mut self, now: Instant, token: Token, written: Written) -> Option<Settled> {
        let UnderWay { mut batch, seals, .. } = self.under_way.take_if(|write| write.token == token)?;
        let sealed = if seals { self.sealed.take() } else { None };
        if seals {
            batch.rows.pop();
        }
        match written {
            Written::Durable => {
                self.retry_at = None;
                Some(Settled { written, rows: batch.rows, promised: batch.promised, sealed })
            }
            Written::Refused => {
                self.retry_at = Some(now.after(RETRY_PAUSE));
                batch.rows.append(&mut self.waiting.rows);
                self.waiting.rows = batch.rows;
                Some(Settled { written, rows: Vec::new(), promised: batch.promised, sealed })
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.waiting.rows.is_empty() && self.waiting.promised.is_none() && self.sealed.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::super::support::{lease, row, stamped};
    use super::*;

    #[test]
    fn a_disk_that_refused_is_asked_again_though_nothing_waits() {
        let at = |ms: u64| Instant::from_micros(ms * 1000);
        let patience = Duration::from_secs(10);
        let mut writer = Writer::default();
        writer.seal(stamped("a.1", 1, row(9, 10, 1, lease(0, "a"))));
        let (token, _) = writer.start(at(0)).unwrap();
        writer.answered(at(0), token, Written::Refused).unwrap();
        assert_eq!(writer.next_deadline(), Some(at(1000)));
        assert_eq!(writer.start(at(999)), None);
        let (token, batch) = writer.start(at(1000)).unwrap();
        assert_eq!(batch, Batch::default());
        assert!(!writer.works(at(1000), patience));
        writer.answered(at(1000), token, Written::Durable).unwrap();
        assert!(writer.works(at(1000), patience));
        assert_eq!((writer.next_deadline(), writer.start(at(5000))), (None, None));
    }
}
