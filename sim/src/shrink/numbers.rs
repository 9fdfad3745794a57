//! Numbers that people read: a binary search towards the floor, in the roundest steps that still fail.
//!
//! [`Quantity`] looks at one grain after the other, the roundest first: is the number, rounded to this grain,
//! still good? Then [`BinarySearch`] finds the smallest multiple of the grain that is, and finer grains are left
//! alone: 3 s says more than 2.71 s.
//!
//! Absent: what the numbers mean.

use proptest::num::u64::BinarySearch;
use proptest::strategy::ValueTree;

/// Grains of times, in microseconds.
pub(super) const TIMES: &[u64] = &[1_000_000, 500_000, 100_000, 10_000, 1_000, 1];
/// Grains of clock offsets, in microseconds.
pub(super) const OFFSETS: &[u64] = &[3_600_000_000, 60_000_000, 1_000_000, 100_000, 10_000, 1_000, 1];
/// Grains of shares, in parts per million.
pub(super) const SHARES: &[u64] = &[100_000, 10_000, 1_000];
/// Grains of counts.
pub(super) const COUNTS: &[u64] = &[1];

/// One number on its way to a smaller or rounder one.
#[derive(Debug, Clone)]
pub(super) struct Quantity {
    start: u64,
    floor: u64,
    grains: &'static [u64],
    stage: Stage,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    /// Nothing has been tried.
    Whole,
    /// The number rounded to the first grain, up or down.
    Rounded { up: bool },
    /// Multiples of the first grain.
    Search(BinarySearch),
    /// The search ended here.
    Done(u64),
}

impl Quantity {
    /// A number that fails as it is, never to go below `floor`.
    pub(super) const fn new(start: u64, floor: u64, grains: &'static [u64]) -> Self {
        Self { start, floor, grains, stage: Stage::Whole }
    }

    /// Goes to the first grain that the number can be rounded to.
    fn at_grain(&mut self) -> bool {
        let Some(&grain) = self.grains.first() else { return self.end(self.start) };
        if self.start.is_multiple_of(grain) {
            return self.search(self.start / grain, grain);
        }
        self.stage = Stage::Rounded { up: true };
        self.start.div_ceil(grain) * grain <= self.start.saturating_mul(2) || self.round_down(grain)
    }

    fn round_down(&mut self, grain: u64) -> bool {
        let down = self.start / grain * grain;
        if down > 0 && down >= self.floor {
            self.stage = Stage::Rounded { up: false };
            return true;
        }
        self.finer()
    }

    fn finer(&mut self) -> bool {
        self.grains = self.grains.get(1..).unwrap_or_default();
        self.at_grain()
    }

    /// Searches below a multiple of the grain that fails.
    fn search(&mut self, multiple: u64, grain: u64) -> bool {
        let mut search = BinarySearch::new_above(self.floor.div_ceil(grain), multiple);
        if search.simplify() {
            self.stage = Stage::Search(search);
            return true;
        }
        self.end(multiple * grain)
    }

    fn end(&mut self, least: u64) -> bool {
        self.stage = Stage::Done(least);
        false
    }

    fn grain(&self) -> u64 {
        self.grains.first().copied().unwrap_or(1)
    }
}

impl ValueTree for Quantity {
    type Value = u64;

    fn current(&self) -> u64 {
        let grain = self.grain();
        match self.stage {
            Stage::Whole => self.start,
            Stage::Rounded { up: true } => self.start.div_ceil(grain) * grain,
            Stage::Rounded { up: false } => self.start / grain * grain,
            Stage::Search(search) => search.current() * grain,
            Stage::Done(least) => least,
        }
    }

    fn simplify(&mut self) -> bool {
        let (good, grain) = (self.current(), self.grain());
        match &mut self.stage {
            Stage::Whole => self.at_grain(),
            Stage::Rounded { .. } => self.search(good / grain, grain),
            Stage::Search(search) => search.simplify() || self.end(good),
            Stage::Done(_) => false,
        }
    }

    fn complicate(&mut self) -> bool {
        let grain = self.grain();
        match &mut self.stage {
            Stage::Whole | Stage::Done(_) => false,
            Stage::Rounded { up: true } => self.round_down(grain),
            Stage::Rounded { up: false } => self.finer(),
            Stage::Search(search) => {
                // A binary search that cannot go up any more stands on the least that failed.
                let goes_on = search.complicate();
                let least = search.current() * grain;
                goes_on || self.end(least)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shrunk(start: u64, floor: u64, grains: &'static [u64], fails: impl Fn(u64) -> bool) -> u64 {
        let mut tree = Quantity::new(start, floor, grains);
        let (mut least, mut runs) = (tree.current(), 0);
        let mut goes_on = tree.simplify();
        while goes_on {
            runs += 1;
            assert!(runs < 1_000, "the search does not end");
            let current = tree.current();
            assert!(current >= floor, "{current} lies below the floor");
            goes_on = if fails(current) {
                least = current;
                tree.simplify()
            } else {
                tree.complicate()
            };
        }
        assert_eq!(tree.current(), least, "a search ends at the least that fails");
        least
    }

    #[test]
    fn a_number_falls_to_the_least_that_fails() {
        for (start, least) in [(1, 1), (2, 1), (100, 37), (100, 100), (100, 99), (4711, 0)] {
            assert_eq!(shrunk(start, 0, &[1], |n| n >= least), least, "from {start}");
        }
        assert_eq!(shrunk(9, 4, &[1], |_| true), 4);
    }

    #[test]
    fn a_time_is_as_round_as_it_can_be() {
        let second = 1_000_000;
        assert_eq!(shrunk(7_654_321, 0, TIMES, |us| us > 2_100_000), 3 * second);
        // No whole second will do, but a half one will.
        let halves = |us: u64| us % second == 500_000 || us == 12_345_678;
        assert_eq!(shrunk(12_345_678, 0, TIMES, halves) % second, 500_000);
        assert_eq!(shrunk(12_345_678, 0, TIMES, |us| us == 12_345_678), 12_345_678);
    }
}
