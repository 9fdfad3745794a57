//! The clocks as the driver sees them.
//!
//! The core never reads a clock; this is where the two it needs come from. A simulation injects its own to
//! step, freeze or skew a node's time.

use std::time::{Duration, SystemTime};

use firedrill_core::time::{Instant, Now, WallTime, micros};

/// Where a node's time comes from.
pub trait Clock: Send + 'static {
    /// Both clocks at this moment. The monotonic one must never go back. Also called from whichever thread gives
    /// the node a command, so a simulated clock must not depend on the runtime that is current there.
    fn now(&self) -> Now;

    /// How long tokio's timer has to run for `span` to pass on this monotonic clock: `span` itself, unless the
    /// clock runs fast or slow. Too short an answer costs an early wake-up, nothing more.
    fn timer(&self, span: Duration) -> Duration {
        span
    }
}

/// The process's clocks: tokio's (which tests may pause) since the clock was made, and the system's.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    origin: tokio::time::Instant,
}

impl SystemClock {
    /// A clock whose monotonic origin is now.
    pub fn new() -> Self {
        Self { origin: tokio::time::Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Now {
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place where a production node reads the wall clock"
        )]
        let wall = SystemTime::now();
        Now { instant: Instant::from_micros(micros(self.origin.elapsed())), wall: wall_time(wall) }
    }
}

/// A system time as the core writes it; a clock before 1970 reads negative.
fn wall_time(time: SystemTime) -> WallTime {
    let signed = |span: Duration| i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
    WallTime::from_unix_micros(match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => signed(since),
        Err(before) => -signed(before.duration()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_time_reads_on_both_sides_of_the_epoch() {
        let at = |offset: i64| {
            let span = Duration::from_micros(offset.unsigned_abs());
            let time = if offset < 0 { SystemTime::UNIX_EPOCH - span } else { SystemTime::UNIX_EPOCH + span };
            wall_time(time).unix_micros()
        };
        assert_eq!([at(0), at(1_500), at(-1_500)], [0, 1_500, -1_500]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_monotonic_clock_follows_tokios_paused_time() {
        let clock = SystemClock::new();
        let before = clock.now().instant;
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(clock.now().instant.since(before), Duration::from_secs(3600));
    }
}
