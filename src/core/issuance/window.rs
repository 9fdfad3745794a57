//! Ticks, windows and epochs: integers, derived from the wall clock and nothing else.
//!
//! The tick runs at 1.287 Hz from the genesis: `z = floor((unix_ms - genesis_ms) × 1287 / 1_000_000)`, in whole
//! milliseconds, so that two nodes whose clocks show one millisecond name one tick. A window is `width` ticks.
//!
//! Invariants: a window is current from [`Calendar::starts_at`] to the millisecond before the next one starts;
//! a phase is below one.
//!
//! Absent: the clock itself, and windows before the genesis.
//!
//! Spec: docs/issuance.md, Ticks and windows.

use core::fmt;

use serde::{Deserialize, Serialize};

use super::decimal::Decimal;
use crate::time::{Duration, WallTime};

/// Milliseconds times this, over a million, are ticks: the tick is 1.287 Hz, one Z is about 0.777 s.
pub const TICK_MILLIHERTZ: u64 = 1_287;

/// Millihertz milliseconds in one tick.
const TICK: u128 = 1_000_000;
/// What every key begins with.
const KEY_PREFIX: &str = "zeq-issuance-v1:w";

/// A span of ticks. As a duration: `z × 1_000_000_000 / 1287` microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Z(pub u64);

impl Z {
    /// How long so many ticks last, rounded up to the microsecond; stops at `u64::MAX` microseconds.
    pub fn duration(self) -> Duration {
        let micros = (u128::from(self.0) * TICK * 1_000).div_ceil(u128::from(TICK_MILLIHERTZ));
        Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Z {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A window of ticks: `z / width`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Window(pub u64);

impl Window {
    /// The window of tick `z`; a width of 0 counts as 1.
    pub const fn of(z: Z, width: u64) -> Self {
        Self(z.0 / if width == 0 { 1 } else { width })
    }

    /// How many windows this one is past `earlier`; 0 when it is not past it.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The key under which a row of this window is unique: `zeq-issuance-v1:w<window>`.
    pub const fn key(self) -> Key {
        Key(self)
    }

    /// Reads a key.
    ///
    /// # Errors
    /// [`KeyError`] when the text is not a key in its shortest form.
    pub fn from_key(text: &str) -> Result<Self, KeyError> {
        let number = text.strip_prefix(KEY_PREFIX).ok_or(KeyError)?;
        shortest_number(number).map(Self).ok_or(KeyError)
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The key text of a window, as [`Window::key`] shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key(Window);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{KEY_PREFIX}{}", self.0)
    }
}

/// A text is not the key of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not a key; keys read {KEY_PREFIX}<window>, the window as a plain number")]
pub struct KeyError;

/// A number in its shortest form: no sign, no zeros before it.
pub(crate) fn shortest_number(text: &str) -> Option<u64> {
    let shortest = text == "0" || !text.starts_with(['0', '+']);
    shortest.then(|| text.parse().ok()).flatten()
}

/// The generation of a lease. A row without one is older than epoch 0: `Option<Epoch>` orders it so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub u64);

impl Epoch {
    /// One above; stays at the top of the range.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A wall clock that shows a time before the genesis: there is no tick to name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the wall clock shows unix ms {unix_ms}, before genesis_ms = {genesis_ms}, where z 0 begins; \
     set the clock, or a genesis_ms in the past on every node"
)]
pub struct BeforeGenesis {
    /// What the clock shows.
    pub unix_ms: i64,
    /// Where the ticks begin.
    pub genesis_ms: u64,
}

/// Which tick and which window a wall clock shows: the same on every node with the same configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Calendar {
    genesis_ms: u64,
    width: u64,
}

impl Calendar {
    /// Ticks since `genesis_ms` (unix milliseconds), in windows of `width` ticks; a width of 0 counts as 1.
    pub const fn new(genesis_ms: u64, width: u64) -> Self {
        Self { genesis_ms, width: if width == 0 { 1 } else { width } }
    }

    /// The tick that `wall` shows.
    ///
    /// # Errors
    /// [`BeforeGenesis`] when there is none yet.
    pub fn z(&self, wall: WallTime) -> Result<Z, BeforeGenesis> {
        let ticks = self.ticks(wall)? / TICK;
        // A clock of i64 microseconds cannot name a tick beyond u64.
        Ok(Z(u64::try_from(ticks).unwrap_or(u64::MAX)))
    }

    /// The window that is current at `wall`.
    ///
    /// # Errors
    /// [`BeforeGenesis`] when there is none yet.
    pub fn window(&self, wall: WallTime) -> Result<Window, BeforeGenesis> {
        Ok(Window::of(self.z(wall)?, self.width))
    }

    /// The position of `wall` in its window, from 0 up to but never 1: exact where the window is 1, 2, 5, 10, …
    /// ticks wide, cut to twelve places elsewhere.
    ///
    /// # Errors
    /// [`BeforeGenesis`] when there is no window yet.
    pub fn phase(&self, wall: WallTime) -> Result<Decimal, BeforeGenesis> {
        let window = TICK * u128::from(self.width);
        let into = self.ticks(wall)? % window;
        Ok(Decimal::from_units(into * Decimal::ONE.units() / window))
    }

    /// The first millisecond in which `window` is current; the end of the clock for windows beyond it.
    pub fn starts_at(&self, window: Window) -> WallTime {
        let ticks = u128::from(window.0) * u128::from(self.width);
        let since_ms = ticks.saturating_mul(TICK).div_ceil(u128::from(TICK_MILLIHERTZ));
        let unix_ms = since_ms.saturating_add(u128::from(self.genesis_ms));
        WallTime::from_unix_ms(i64::try_from(unix_ms).unwrap_or(i64::MAX))
    }

    /// Milliseconds since the genesis times the frequency: millionths of a tick.
    fn ticks(&self, wall: WallTime) -> Result<u128, BeforeGenesis> {
        let unix_ms = wall.unix_ms();
        let since_ms = i128::from(unix_ms) - i128::from(self.genesis_ms);
        let since_ms =
            u128::try_from(since_ms).map_err(|_| BeforeGenesis { unix_ms, genesis_ms: self.genesis_ms })?;
        Ok(since_ms * u128::from(TICK_MILLIHERTZ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use proptest::prelude::*;

    /// 2026-09-03T03:02:49Z.
    const DRILL_UNIX_MS: i64 = 1_788_404_569_000;

    #[test]
    fn the_drills_second_lies_in_two_ticks() {
        let calendar = Calendar::new(0, 1);
        let z = |ms| calendar.z(WallTime::from_unix_ms(DRILL_UNIX_MS + ms)).unwrap().0;
        assert_eq!((z(0), z(999)), (2_301_676_680, 2_301_676_681));
    }

    #[test]
    fn a_tick_is_named_by_whole_milliseconds() {
        let calendar = Calendar::new(1_000, 1);
        let z = |micros| calendar.z(WallTime::from_unix_micros(micros)).unwrap().0;
        assert_eq!((z(1_000_000), z(1_777_999), z(1_778_000)), (0, 0, 1));
    }

    #[test]
    fn a_clock_before_the_genesis_has_no_tick() {
        let calendar = Calendar::new(1_000, 1);
        let early = WallTime::from_unix_micros(999_999);
        let error = BeforeGenesis { unix_ms: 999, genesis_ms: 1_000 };
        assert_eq!(calendar.z(early), Err(error));
        assert_eq!(calendar.window(early), Err(error));
        assert_eq!(calendar.phase(early), Err(error));
        assert!(error.to_string().contains("genesis_ms = 1000"), "{error}");
        assert!(Calendar::new(0, 1).z(WallTime::from_unix_micros(-1)).is_err());
    }

    #[test]
    fn a_span_of_ticks_is_never_too_short() {
        assert_eq!(Z(0).duration(), Duration::ZERO);
        assert_eq!(Z(1).duration(), Duration::from_micros(777_001));
        assert_eq!(Z(1_287).duration(), Duration::from_secs(1_000));
        assert_eq!(Z(u64::MAX).duration(), Duration::from_micros(u64::MAX));
    }

    #[test]
    fn a_phase_is_exact_where_twelve_places_hold_it() {
        let phase =
            |width, ms| Calendar::new(0, width).phase(WallTime::from_unix_ms(ms)).unwrap().to_string();
        assert_eq!(phase(1, 0), "0");
        assert_eq!(phase(1, 500), "0.6435");
        assert_eq!(phase(1, 777), "0.999999");
        assert_eq!(phase(1, 778), "0.001286");
        assert_eq!(phase(8, 777), "0.124999875");
        assert_eq!(phase(3, 777), "0.333333");
        assert_eq!(phase(3, 776), "0.332904");
        assert_eq!(phase(7, 1), "0.000183857142");
    }

    #[test]
    fn a_key_reads_back_or_is_refused() {
        let window = Window(2_301_711_961);
        assert_eq!(window.key().to_string(), "zeq-issuance-v1:w2301711961");
        assert_eq!(Window::from_key("zeq-issuance-v1:w2301711961"), Ok(window));
        assert_eq!(Window::from_key("zeq-issuance-v1:w0"), Ok(Window(0)));
        for bad in [
            "",
            "w1",
            "zeq-issuance-v1:w",
            "zeq-issuance-v1:w01",
            "zeq-issuance-v1:w+1",
            "zeq-issuance-v2:w1",
        ] {
            assert_eq!(Window::from_key(bad), Err(KeyError), "{bad}");
        }
    }

    #[test]
    fn the_ends_of_the_clock_stop_and_do_not_wrap() {
        let calendar = Calendar::new(0, u64::MAX);
        assert_eq!(calendar.starts_at(Window(u64::MAX)).unix_micros(), i64::MAX);
        let last = WallTime::from_unix_micros(i64::MAX);
        assert_eq!(calendar.window(last), Ok(Window(0)));
        assert!(calendar.phase(last).unwrap() < Decimal::ONE);
        assert!(Calendar::new(u64::MAX, 1).z(last).is_err());
    }

    proptest! {
        #[test]
        fn a_window_starts_where_the_one_before_ends(
            genesis_ms in 0_u64..4_000_000_000_000, width in 1_u64..1_000, window in 1_u64..10_000_000_000,
        ) {
            let calendar = Calendar::new(genesis_ms, width);
            let start = calendar.starts_at(Window(window));
            prop_assert_eq!(calendar.window(start), Ok(Window(window)));
            prop_assert_eq!(calendar.window(start.offset_micros(-1)), Ok(Window(window - 1)));
        }

        #[test]
        fn a_phase_grows_within_its_window_and_stays_below_one(
            width in 1_u64..1_000, ms in 0_i64..4_000_000_000_000, step_ms in 1_i64..2_000,
        ) {
            let calendar = Calendar::new(0, width);
            let at = |ms| {
                let wall = WallTime::from_unix_ms(ms);
                (calendar.window(wall).unwrap(), calendar.phase(wall).unwrap())
            };
            prop_assert!(at(ms) < at(ms + step_ms));
            prop_assert!(at(ms).1 < Decimal::ONE);
        }
    }
}
