//! Own incarnation and its refutations.
//!
//! A record about ourselves that could bury us is outranked by raising our incarnation above it. Refutations are
//! limited (decision 12), so two hosts with one id do not drive each other's incarnation up without bound: one a
//! push interval, and after the third within a tombstone window one a window.
//!
//! A refutation leaps a random step further than it has to. An earlier boot may have refuted the same record, and
//! whoever knows where it went drops what comes from there again as a replay, with nothing left to refute (finding 8).
//!
//! Spec: docs/protocol.md, Refutation; decisions 4 and 12; finding 8.

use alloc::collections::VecDeque;

use crate::guards::Guards;
use crate::id::Incarnation;
use crate::limits::{MINTED_MAX, REFUTATIONS_BEFORE_SLOW, Timing};
use crate::time::Instant;

/// The incarnations of this boot, and the refutation that may be due.
#[derive(Debug, Clone)]
pub(super) struct Own {
    /// The incarnation that the wall clock gave at boot.
    pub(super) boot: Incarnation,
    /// The present one.
    pub(super) incarnation: Incarnation,
    /// The incarnation in the key of the cell that increments go to (decision 4).
    pub(super) cell: Incarnation,
    /// The incarnations of this boot, oldest first; the oldest is forgotten at [`MINTED_MAX`].
    minted: VecDeque<Incarnation>,
    pending: Option<Pending>,
    /// When the latest were made, oldest first; at most [`REFUTATIONS_BEFORE_SLOW`].
    made_at: VecDeque<Instant>,
    /// One a tombstone window, until a whole one passes without anything to refute.
    slow: bool,
}

/// A refutation to be made.
#[derive(Debug, Clone, Copy)]
struct Pending {
    /// The highest record about ourselves that has to be outranked.
    highest: Incarnation,
    since: Instant,
}

/// A refutation that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refutation {
    /// The highest record about ourselves, which it outranks.
    pub(super) told: Incarnation,
    /// Our incarnation before.
    pub(super) from: Incarnation,
    /// It is the third within a tombstone window, or follows such a one.
    pub(super) again: bool,
}

impl Own {
    pub(super) fn new(boot: Incarnation, guards: Guards) -> Self {
        Self {
            boot,
            incarnation: boot,
            cell: if guards.cell_per_boot { boot } else { Incarnation(0) },
            minted: VecDeque::from([boot]),
            pending: None,
            made_at: VecDeque::new(),
            slow: false,
        }
    }

    /// Whether this boot ever ran at `incarnation`.
    pub(super) fn minted(&self, incarnation: Incarnation) -> bool {
        self.minted.contains(&incarnation)
    }

    /// Asks for a refutation of a record at `incarnation`, as soon as one is allowed.
    pub(super) fn request(&mut self, now: Instant, incarnation: Incarnation) {
        // At the very top of the range nothing can be outranked any more.
        if incarnation >= self.incarnation && incarnation.next() > incarnation {
            let pending = self.pending.get_or_insert(Pending { highest: incarnation, since: now });
            pending.highest = pending.highest.max(incarnation);
        }
    }

    /// When the pending refutation may be made, if there is one.
    pub(super) fn due(&self, timing: &Timing, guards: Guards) -> Option<Instant> {
        self.pending?;
        let Some(last) = self.made_at.back().filter(|_| guards.refutation_limited) else {
            return Some(Instant::ZERO);
        };
        Some(last.after(if self.slow { timing.tombstone() } else { timing.push }))
    }

    /// Makes the pending refutation if it is allowed now: one above the highest record, and `leap` further.
    pub(super) fn refute(
        &mut self,
        now: Instant,
        leap: u64,
        timing: &Timing,
        guards: Guards,
    ) -> Option<Refutation> {
        let due = self.due(timing, guards).filter(|due| *due <= now)?;
        let Pending { highest, since } = self.pending.take()?;
        if since >= due {
            // It did not have to wait: the windows before are over.
            self.slow = false;
        }
        let from = self.incarnation;
        self.incarnation = if guards.refutation_outranks { highest } else { from }.above(leap);
        let shared = highest == self.boot && guards.cell_renewed;
        if guards.cell_per_boot && (shared || !guards.cell_kept) {
            self.cell = self.incarnation;
        }
        if self.minted.len() >= MINTED_MAX {
            self.minted.pop_front();
        }
        self.minted.push_back(self.incarnation);
        if self.made_at.len() >= REFUTATIONS_BEFORE_SLOW {
            self.made_at.pop_front();
        }
        self.made_at.push_back(now);
        let third = self.made_at.len() >= REFUTATIONS_BEFORE_SLOW;
        self.slow |=
            third && self.made_at.front().is_some_and(|first| now.since(*first) <= timing.tombstone());
        Some(Refutation { told: highest, from, again: self.slow })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    const TIMING: Timing = Timing { push: Duration::from_millis(10), suspicion: Duration::from_millis(30) };

    fn at(ms: u64) -> Instant {
        Instant::from_micros(ms * 1000)
    }

    #[test]
    fn refutation_wins_over_the_highest_record_seen() {
        let mut own = Own::new(Incarnation(5), Guards::ON);
        own.request(at(0), Incarnation(4));
        assert_eq!(own.refute(at(0), 0, &TIMING, Guards::ON), None, "a lower record needs no answer");
        own.request(at(0), Incarnation(7));
        own.request(at(0), Incarnation(6));
        let made = Refutation { told: Incarnation(7), from: Incarnation(5), again: false };
        assert_eq!(own.refute(at(0), 0, &TIMING, Guards::ON), Some(made));
        assert_eq!((own.incarnation, own.cell), (Incarnation(8), Incarnation(5)));
        assert!(own.minted(Incarnation(5)) && own.minted(Incarnation(8)) && !own.minted(Incarnation(7)));
    }

    #[test]
    fn a_new_cell_starts_only_when_the_first_incarnation_is_shared() {
        let mut own = Own::new(Incarnation(5), Guards::ON);
        own.request(at(0), Incarnation(5));
        own.refute(at(0), 3, &TIMING, Guards::ON);
        assert_eq!((own.incarnation, own.cell), (Incarnation(9), Incarnation(9)));
    }

    #[test]
    fn refutations_slow_to_one_a_window_after_the_third() {
        let mut own = Own::new(Incarnation(1), Guards::ON);
        let mut made = alloc::vec::Vec::new();
        for ms in 0..1000 {
            own.request(at(ms), own.incarnation);
            if own.refute(at(ms), 0, &TIMING, Guards::ON).is_some() {
                made.push(ms);
            }
        }
        assert_eq!(made, [0, 10, 20, 320, 620, 920]);
    }

    #[test]
    fn refutations_that_never_waited_do_not_slow() {
        let mut own = Own::new(Incarnation(1), Guards::ON);
        // One and a half tombstone windows apart.
        for ms in [0, 450, 900, 1350, 1800] {
            own.request(at(ms), own.incarnation);
            assert_eq!(
                own.refute(at(ms), 0, &TIMING, Guards::ON).map(|made| made.again),
                Some(false),
                "at {ms}"
            );
        }
    }

    #[test]
    fn a_window_without_anything_to_refute_ends_the_slowness() {
        let mut own = Own::new(Incarnation(1), Guards::ON);
        for ms in [0, 10, 20] {
            own.request(at(ms), own.incarnation);
            own.refute(at(ms), 0, &TIMING, Guards::ON);
        }
        own.request(at(21), own.incarnation);
        assert_eq!(own.due(&TIMING, Guards::ON), Some(at(320)));
        assert!(own.refute(at(320), 0, &TIMING, Guards::ON).is_some_and(|made| made.again));
        own.request(at(700), own.incarnation);
        assert!(own.refute(at(700), 0, &TIMING, Guards::ON).is_some_and(|made| !made.again));
        own.request(at(701), own.incarnation);
        assert_eq!(own.due(&TIMING, Guards::ON), Some(at(710)));
    }

    #[test]
    fn a_leap_ends_at_the_top_of_the_range() {
        let mut own = Own::new(Incarnation(1), Guards::ON);
        own.request(at(0), Incarnation(u64::MAX - 2));
        assert!(own.refute(at(0), 1000, &TIMING, Guards::ON).is_some());
        assert_eq!(own.incarnation, Incarnation(u64::MAX));
    }

    #[test]
    fn a_record_at_the_top_of_the_range_is_left_alone() {
        let mut own = Own::new(Incarnation(1), Guards::ON);
        own.request(at(0), Incarnation(u64::MAX));
        assert_eq!(own.due(&TIMING, Guards::ON), None);
    }
}
