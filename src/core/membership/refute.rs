//! Own incarnation and its refutations.
//!
//! A record about ourselves that could bury us is outranked by raising our incarnation above it. Refutations are
//! limited (decision 12), so two hosts with one id do not drive each other's incarnation up without bound: one a
//! push interval, and after the third within a tombstone window one a window.

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
    /// The highest record about ourselves that has to be outranked.
    pending: Option<Incarnation>,
    /// Refutations one after another, each within two tombstone windows of the one before.
    streak: usize,
    last_at: Option<Instant>,
}

impl Own {
    pub(super) fn new(boot: Incarnation, guards: Guards) -> Self {
        Self {
            boot,
            incarnation: boot,
            cell: if guards.cell_per_boot { boot } else { Incarnation(0) },
            minted: VecDeque::from([boot]),
            pending: None,
            streak: 0,
            last_at: None,
        }
    }

    /// Whether this boot ever ran at `incarnation`.
    pub(super) fn minted(&self, incarnation: Incarnation) -> bool {
        self.minted.contains(&incarnation)
    }

    /// Asks for a refutation of a record at `incarnation`, as soon as one is allowed.
    pub(super) fn request(&mut self, incarnation: Incarnation) {
        // At the very top of the range nothing can be outranked any more.
        if incarnation >= self.incarnation && incarnation.next() > incarnation {
            self.pending = self.pending.max(Some(incarnation));
        }
    }

    /// When the pending refutation may be made, if there is one.
    pub(super) fn due(&self, timing: &Timing, guards: Guards) -> Option<Instant> {
        self.pending?;
        let Some(last) = self.last_at.filter(|_| guards.refutation_limited) else {
            return Some(Instant::ZERO);
        };
        let slow = self.streak >= REFUTATIONS_BEFORE_SLOW;
        Some(last.after(if slow { timing.tombstone() } else { timing.push }))
    }

    /// Makes the pending refutation if it is allowed now; returns the incarnation before it, and whether it is
    /// the third or a later one of its streak.
    pub(super) fn refute(
        &mut self,
        now: Instant,
        timing: &Timing,
        guards: Guards,
    ) -> Option<(Incarnation, bool)> {
        if self.due(timing, guards).is_none_or(|due| due > now) {
            return None;
        }
        let highest = self.pending.take()?;
        let from = self.incarnation;
        self.incarnation = highest.next();
        if guards.cell_per_boot && highest == self.boot {
            self.cell = self.incarnation;
        }
        if self.minted.len() >= MINTED_MAX {
            self.minted.pop_front();
        }
        self.minted.push_back(self.incarnation);
        let streak_holds =
            self.last_at.is_some_and(|last| now.since(last) <= timing.tombstone().saturating_mul(2));
        self.streak = if streak_holds { self.streak + 1 } else { 1 };
        self.last_at = Some(now);
        Some((from, self.streak >= REFUTATIONS_BEFORE_SLOW))
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
        own.request(Incarnation(4));
        assert_eq!(own.refute(at(0), &TIMING, Guards::ON), None, "a lower record needs no answer");
        own.request(Incarnation(7));
        own.request(Incarnation(6));
        assert_eq!(own.refute(at(0), &TIMING, Guards::ON), Some((Incarnation(5), false)));
        assert_eq!((own.incarnation, own.cell), (Incarnation(8), Incarnation(5)));
        assert!(own.minted(Incarnation(5)) && own.minted(Incarnation(8)) && !own.minted(Incarnation(7)));
    }

    #[test]
    fn a_new_cell_starts_only_when_the_first_incarnation_is_shared() {
        let mut own = Own::new(Incarnation(5), Guards::ON);
        own.request(Incarnation(5));
        own.refute(at(0), &TIMING, Guards::ON);
        assert_eq!(own.cell, Incarnation(6));
    }

    #[test]
    fn refutations_slow_to_one_a_window_after_the_third() {
        let mut own = Own::new(Incarnation(1), Guards::ON);
        let mut made = alloc::vec::Vec::new();
        for ms in 0..1000 {
            own.request(own.incarnation);
            if own.refute(at(ms), &TIMING, Guards::ON).is_some() {
                made.push(ms);
            }
        }
        assert_eq!(made, [0, 10, 20, 320, 620, 920]);
    }

    #[test]
    fn a_record_at_the_top_of_the_range_is_left_alone() {
        let mut own = Own::new(Incarnation(1), Guards::ON);
        own.request(Incarnation(u64::MAX));
        assert_eq!(own.due(&TIMING, Guards::ON), None);
    }
}
