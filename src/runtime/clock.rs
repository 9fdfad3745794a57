//! The clocks as the driver sees them.
//!
//! The core never reads a clock; this is where the two it needs come from. A simulation injects its own to
//! step, freeze or skew a node's time.
//!
//! A monotonic clock must count the time in which the machine was suspended: a promise of the fence runs out
//! meanwhile, and a holder that does not notice would seal beside its successor. On Linux tokio's clock stops in
//! suspension, so [`SystemClock`] adds what it missed. tokio's timers stop too: a wake-up is late then, by no more than
//! the sleep that was under way, and the core reads the clock again before it acts.
//!
//! Absent: what a virtual machine misses while it is saved and restored; its kernel knows no more of it than this
//! process does.

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

/// The process's clocks since this one was made: tokio's (which tests may pause) plus the time that the machine was
/// suspended, and the system's.
///
/// Suspension is counted on Linux and Android. Elsewhere the monotonic clock is what tokio's is there, and fencing
/// claims nothing for a machine that may be suspended.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    origin: tokio::time::Instant,
    /// How long the machine had been suspended at the origin.
    suspended: Duration,
}

impl SystemClock {
    /// A clock whose monotonic origin is now.
    pub fn new() -> Self {
        Self { suspended: suspension::so_far(), origin: tokio::time::Instant::now() }
    }

    /// The monotonic reading, when the machine has been suspended for `suspended` in all.
    fn instant(&self, suspended: Duration) -> Instant {
        let missed = suspended.saturating_sub(self.suspended);
        Instant::from_micros(micros(self.origin.elapsed().saturating_add(missed)))
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
        Now { instant: self.instant(suspension::so_far()), wall: wall_time(wall) }
    }
}

/// How long the machine was suspended: what CLOCK_BOOTTIME counts and CLOCK_MONOTONIC does not.
///
/// The two cannot be read at one moment. Reading the one that counts suspension first gives too little, by as long
/// as the thread was held up in between, and never too much: so the most that was ever read holds, and time does not
/// go back.
#[cfg(any(target_os = "linux", target_os = "android"))]
mod suspension {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use rustix::time::{ClockId, Timespec, clock_gettime};

    /// A pair of readings further apart than this is taken again: the thread was held up in between.
    const APART_MAX_NS: u64 = 100_000;
    /// A machine that is so busy that no pair is close makes do with the last.
    const ATTEMPTS: usize = 8;

    /// The most that was read so far, in nanoseconds. It belongs to the machine, hence to the whole process.
    static MOST_NS: AtomicU64 = AtomicU64::new(0);

    pub(super) fn so_far() -> Duration {
        let mut read = 0;
        for _ in 0..ATTEMPTS {
            let before = nanos(clock_gettime(ClockId::Monotonic));
            let counting = nanos(clock_gettime(ClockId::Boottime));
            let after = nanos(clock_gettime(ClockId::Monotonic));
            read = read.max(counting.saturating_sub(after));
            if after.saturating_sub(before) <= APART_MAX_NS {
                break;
            }
        }
        Duration::from_nanos(MOST_NS.fetch_max(read, Ordering::Relaxed).max(read))
    }

    /// Neither clock reads negative.
    fn nanos(time: Timespec) -> u64 {
        let (seconds, nanos) = (u64::try_from(time.tv_sec), u64::try_from(time.tv_nsec));
        seconds.unwrap_or(0).saturating_mul(1_000_000_000).saturating_add(nanos.unwrap_or(0))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn it_is_the_difference_of_the_two_clocks_and_never_falls() {
            let mut last = so_far();
            for _ in 0..10_000 {
                let now = so_far();
                assert!(now >= last, "{now:?} after {last:?}");
                last = now;
            }
            let (counting, other) = (clock_gettime(ClockId::Boottime), clock_gettime(ClockId::Monotonic));
            let apart = nanos(counting).abs_diff(nanos(other));
            let off = Duration::from_nanos(apart).abs_diff(last);
            assert!(off < Duration::from_millis(50), "{off:?} from what the kernel says");
        }
    }
}

/// Where no clock tells, nothing is added.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod suspension {
    use std::time::Duration;

    pub(super) const fn so_far() -> Duration {
        Duration::ZERO
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

    #[tokio::test(start_paused = true)]
    async fn time_in_which_the_machine_was_suspended_counts() {
        let clock = SystemClock::new();
        let hour = Duration::from_secs(3600);
        assert_eq!(clock.instant(clock.suspended), Instant::ZERO);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(clock.instant(clock.suspended + hour).since(Instant::ZERO), hour + Duration::from_secs(1));
    }
}
