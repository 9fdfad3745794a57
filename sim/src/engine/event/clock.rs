//! The two clocks of one host, as functions of true time.
//!
//! The monotonic clock starts at zero with every boot and runs at the host's rate. The wall clock belongs to
//! the machine, not to the process: it runs on while the host is down, may be stepped and may stand still.
//! Both read whole microseconds, rounded down; [`HostClock::when`] rounds up, so a wake-up is never early.

use firedrill_core::time::{Instant, Now, WallTime};

/// The rate of a right clock, in millionths.
const RIGHT_PPM: u32 = 1_000_000;

/// A host's clocks.
#[derive(Debug, Clone)]
pub(in crate::engine) struct HostClock {
    /// True time of the last change; the readings below are those of that moment.
    anchor: Instant,
    monotonic_us: u64,
    wall: WallTime,
    rate_ppm: u32,
    frozen: bool,
}

impl HostClock {
    /// Clocks that are right at true time zero but for the wall clock's reading.
    pub(in crate::engine) fn new(wall: WallTime) -> Self {
        Self { anchor: Instant::ZERO, monotonic_us: 0, wall, rate_ppm: RIGHT_PPM, frozen: false }
    }

    /// Both readings at a moment of true time.
    pub(in crate::engine) fn read(&self, at: Instant) -> Now {
        let elapsed_us = at.as_micros().saturating_sub(self.anchor.as_micros());
        let run_us = if self.rate_ppm == RIGHT_PPM { elapsed_us } else { self.scaled(elapsed_us) };
        let wall = if self.frozen {
            self.wall
        } else {
            self.wall.offset_micros(i64::try_from(run_us).unwrap_or(i64::MAX))
        };
        Now { instant: Instant::from_micros(self.monotonic_us.saturating_add(run_us)), wall }
    }

    /// The first moment of true time at which the monotonic clock reads `reading` or more.
    pub(in crate::engine) fn when(&self, reading: Instant) -> Instant {
        let missing_us = reading.as_micros().saturating_sub(self.monotonic_us);
        let true_us = if self.rate_ppm == RIGHT_PPM {
            missing_us
        } else {
            let scaled = (u128::from(missing_us) * u128::from(RIGHT_PPM)).div_ceil(u128::from(self.rate_ppm));
            u64::try_from(scaled).unwrap_or(u64::MAX)
        };
        Instant::from_micros(self.anchor.as_micros().saturating_add(true_us))
    }

    /// A process starts: its monotonic clock reads zero.
    pub(in crate::engine) fn boot(&mut self, at: Instant) {
        self.settle(at);
        self.monotonic_us = 0;
    }

    /// Steps the wall clock. True when its reading changed.
    pub(in crate::engine) fn step(&mut self, at: Instant, by_us: i64) -> bool {
        self.settle(at);
        self.wall = self.wall.offset_micros(by_us);
        by_us != 0
    }

    /// Runs both clocks at another rate; below one millionth counts as one. True when it differs.
    pub(in crate::engine) fn set_rate(&mut self, at: Instant, rate_ppm: u32) -> bool {
        self.settle(at);
        let before = std::mem::replace(&mut self.rate_ppm, rate_ppm.max(1));
        before != self.rate_ppm
    }

    /// Stops the wall clock, or lets it go on from where it stands. True when that is a change.
    pub(in crate::engine) fn freeze(&mut self, at: Instant, frozen: bool) -> bool {
        self.settle(at);
        std::mem::replace(&mut self.frozen, frozen) != frozen
    }

    /// Moves the anchor to `at` without changing a reading.
    fn settle(&mut self, at: Instant) {
        let Now { instant, wall } = self.read(at);
        self.anchor = at;
        self.monotonic_us = instant.as_micros();
        self.wall = wall;
    }

    fn scaled(&self, elapsed_us: u64) -> u64 {
        let scaled = u128::from(elapsed_us) * u128::from(self.rate_ppm) / u128::from(RIGHT_PPM);
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(micros: u64) -> Instant {
        Instant::from_micros(micros)
    }

    #[test]
    fn a_wake_up_is_never_early_at_any_rate() {
        for rate_ppm in [1, 333_333, 999_999, 1_000_000, 1_000_001, 2_500_000] {
            let mut clock = HostClock::new(WallTime::default());
            clock.set_rate(us(17), rate_ppm);
            for reading in [18, 19, 1_000, 999_983] {
                let due = clock.when(us(reading));
                assert!(clock.read(due).instant >= us(reading), "{rate_ppm} {reading}");
                assert!(clock.read(us(due.as_micros() - 1)).instant < us(reading), "{rate_ppm} {reading}");
            }
        }
    }

    #[test]
    fn the_wall_clock_steps_stands_and_goes_on_from_where_it_stood() {
        let mut clock = HostClock::new(WallTime::from_unix_micros(100));
        clock.step(us(10), -60);
        assert_eq!(clock.read(us(10)).wall.unix_micros(), 50);
        assert!(clock.freeze(us(20), true) && !clock.freeze(us(25), true));
        assert_eq!(clock.read(us(90)).wall.unix_micros(), 60);
        assert_eq!(clock.read(us(90)).instant, us(90), "freezing is for the wall clock alone");
        assert!(clock.freeze(us(90), false));
        assert_eq!(clock.read(us(95)).wall.unix_micros(), 65);
    }

    #[test]
    fn a_boot_resets_the_monotonic_clock_and_not_the_wall_clock() {
        let mut clock = HostClock::new(WallTime::default());
        assert!(clock.set_rate(us(0), 2_000_000));
        clock.boot(us(100));
        let now = clock.read(us(110));
        assert_eq!((now.instant, now.wall.unix_micros()), (us(20), 220));
    }
}
