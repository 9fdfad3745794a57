//! Time as the core sees it: handed in, never read.
//!
//! Two clocks arrive with every call. The monotonic one ([`Instant`]) measures silence, intervals and
//! timeouts; the wall clock ([`WallTime`]) only ever seeds an incarnation, and may step in either direction.
//!
//! Absent: any way to ask what time it is.

pub use core::time::Duration;

use serde::{Deserialize, Serialize};

/// A point on a node's monotonic clock, in microseconds since an origin of the driver's choosing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Instant(u64);

impl Instant {
    /// The origin of the clock.
    pub const ZERO: Self = Self(0);
    /// A point no run reaches (584,000 years).
    pub const FAR_FUTURE: Self = Self(u64::MAX);

    /// The point `micros` after the origin.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since the origin.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// This point moved later by `by`; stops at [`Instant::FAR_FUTURE`].
    #[must_use]
    pub const fn after(self, by: Duration) -> Self {
        Self(self.0.saturating_add(micros(by)))
    }

    /// The time since `earlier`; zero when `earlier` is not earlier.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

/// A duration in whole microseconds; stops at `u64::MAX` (584,000 years).
pub const fn micros(duration: Duration) -> u64 {
    let micros = duration.as_micros();
    if micros > u64::MAX as u128 {
        u64::MAX
    } else {
        #[expect(clippy::cast_possible_truncation, reason = "checked on the line above")]
        let micros = micros as u64;
        micros
    }
}

/// A reading of the wall clock, in microseconds since the Unix epoch. May be negative, may go back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct WallTime(i64);

impl WallTime {
    /// A reading `micros` after (or, negative, before) the Unix epoch.
    pub const fn from_unix_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// A reading `ms` milliseconds after the Unix epoch.
    pub const fn from_unix_ms(ms: i64) -> Self {
        Self(ms.saturating_mul(1000))
    }

    /// Microseconds since the Unix epoch.
    pub const fn unix_micros(self) -> i64 {
        self.0
    }

    /// Whole milliseconds since the Unix epoch, rounded down.
    pub const fn unix_ms(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// This reading moved later by `micros`, or earlier when negative.
    #[must_use]
    pub const fn offset_micros(self, micros: i64) -> Self {
        Self(self.0.saturating_add(micros))
    }
}

/// Both clocks of one node at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Now {
    /// Measures silence, intervals and timeouts.
    pub instant: Instant,
    /// Seeds the incarnation at boot; nothing else reads it.
    pub wall: WallTime,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_stops_at_the_ends() {
        assert_eq!(Instant::FAR_FUTURE.after(Duration::from_secs(1)), Instant::FAR_FUTURE);
        assert_eq!(Instant::ZERO.since(Instant::from_micros(5)), Duration::ZERO);
        assert_eq!(WallTime::from_unix_micros(-1).unix_ms(), -1);
        assert_eq!(WallTime::from_unix_ms(i64::MAX).unix_micros(), i64::MAX);
    }
}
