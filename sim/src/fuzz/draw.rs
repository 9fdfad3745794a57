//! Drawing: the few ways in which generators use randomness.

use std::time::Duration;

use firedrill_core::rng::{Rng, Seed};

/// A generator's randomness, forked from a seed by the generator's name.
pub(super) struct Draw(Rng);

impl Draw {
    pub(super) fn new(seed: u64, label: &str) -> Self {
        Self(Seed::from_u64(seed).fork(label).rng())
    }

    /// A number of the range, both ends included; the low end where the range is empty.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0.between(low, high.max(low))
    }

    /// True once in `n` draws, on average.
    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.0.between(1, n) == 1
    }

    /// An index below `length`, which is above 0.
    pub(super) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.0.between(0, (length as u64).saturating_sub(1))).unwrap_or(0)
    }

    /// One of these.
    pub(super) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.index(of.len())]
    }

    /// Whole milliseconds of the range.
    pub(super) fn millis(&mut self, low_ms: u64, high_ms: u64) -> Duration {
        Duration::from_millis(self.between(low_ms, high_ms))
    }

    /// A whole percentage of the range, in millionths.
    pub(super) fn percent_ppm(&mut self, low: u64, high: u64) -> u32 {
        u32::try_from(self.between(low, high)).unwrap_or(u32::MAX).saturating_mul(10_000)
    }
}
