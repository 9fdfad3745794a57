//! The small languages inside strings, written: what [`super::super::values`] reads, it reads back from here.

use std::time::Duration;

/// Digits of a number that a person still takes in at a glance: above, a duration is written in two units.
const GLANCE: u64 = 100_000;

/// A duration in the largest unit that leaves a whole number: `2s`, `1500ms`, `1min`. Fine ones of a long time
/// are told in several: `123s 456ms`.
pub(super) fn duration(duration: Duration) -> String {
    // No scenario is longer than a year, which is far from overflowing.
    let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    const SECOND: u64 = 1_000_000;
    const HOUR: u64 = 3600 * SECOND;
    match us {
        0 => "0s".to_owned(),
        _ if us.is_multiple_of(24 * HOUR) && us > 24 * HOUR => format!("{}d", us / (24 * HOUR)),
        _ if us.is_multiple_of(HOUR) => format!("{}h", us / HOUR),
        _ if us.is_multiple_of(60 * SECOND) => format!("{}min", us / (60 * SECOND)),
        _ if us.is_multiple_of(SECOND) => format!("{}s", us / SECOND),
        _ if us.is_multiple_of(1000) => in_two(us / 1000, "s", "ms"),
        _ if us < GLANCE => format!("{us}us"),
        _ => format!("{} {}us", in_two(us / 1000, "s", "ms"), us % 1000),
    }
}

/// `amount` of the small unit, of which a thousand make a large one.
fn in_two(amount: u64, large: &str, small: &str) -> String {
    match (amount / 1000, amount % 1000) {
        (whole, 0) if whole > 0 => format!("{whole}{large}"),
        (whole, rest) if amount >= GLANCE => format!("{whole}{large} {rest}{small}"),
        _ => format!("{amount}{small}"),
    }
}

/// A clock offset in microseconds, sign first.
pub(super) fn offset(us: i64) -> String {
    let sign = if us < 0 { '-' } else { '+' };
    format!("{sign}{}", duration(Duration::from_micros(us.unsigned_abs())))
}

/// Two durations: `1ms..20ms`.
pub(super) fn stretch(low: Duration, high: Duration) -> String {
    format!("{}..{}", duration(low), duration(high))
}

/// One duration, or two where they differ.
pub(super) fn latency(low: Duration, high: Duration) -> String {
    if low == high { duration(low) } else { stretch(low, high) }
}

/// Parts per million as a percentage.
pub(super) fn share(ppm: u32) -> String {
    format!("{}%", decimal(u64::from(ppm), 4))
}

/// Parts per million as a factor.
pub(super) fn rate(ppm: u32) -> String {
    decimal(u64::from(ppm), 6)
}

/// Bytes a second in the largest unit that leaves a whole number.
pub(super) fn bandwidth(bytes: u64) -> String {
    const UNITS: [(&str, u64); 5] = [
        ("GB/s", 1_000_000_000),
        ("MiB/s", 1024 * 1024),
        ("MB/s", 1_000_000),
        ("KiB/s", 1024),
        ("kB/s", 1000),
    ];
    // The reader takes numbers up to a millionth of what fits 64 bits, with up to six decimals.
    let is_readable = |number: u64| number <= u64::MAX / 1_000_000;
    let whole = |unit: u64| bytes.is_multiple_of(unit) && is_readable(bytes / unit);
    match UNITS.into_iter().find(|(_, unit)| whole(*unit)) {
        Some((name, unit)) => format!("{}{name}", bytes / unit),
        None if is_readable(bytes) => format!("{bytes}B/s"),
        None => format!("{}MB/s", decimal(bytes, 6)),
    }
}

/// A number of so many decimal places, without zeros that say nothing.
fn decimal(scaled: u64, places: usize) -> String {
    let digits = format!("{scaled:0>width$}", width = places + 1);
    let (whole, part) = digits.split_at(digits.len() - places);
    match part.trim_end_matches('0') {
        "" => whole.to_owned(),
        part => format!("{whole}.{part}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scenario::values as read;

    #[test]
    fn durations_stand_in_the_unit_that_people_would_take() {
        for (us, text) in [
            (0, "0s"),
            (7, "7us"),
            (1_500, "1500us"),
            (250_000, "250ms"),
            (1_500_000, "1500ms"),
            (51_200_000, "51200ms"),
            (123_456_000, "123s 456ms"),
            (12_345_678, "12345ms 678us"),
            (1_000_001, "1s 1us"),
            (123_000_001, "123s 1us"),
            (2_000_000, "2s"),
            (60_000_000, "1min"),
            (90_000_000, "90s"),
            (7_200_000_000, "2h"),
            (86_400_000_000, "24h"),
            (365 * 86_400_000_000, "365d"),
        ] {
            assert_eq!(duration(Duration::from_micros(us)), text);
        }
    }

    #[test]
    fn the_other_values_are_as_short_as_they_can_be() {
        assert_eq!((offset(-3_600_000_000), offset(250_000)), ("-1h".to_owned(), "+250ms".to_owned()));
        assert_eq!((share(1_000), share(1_000_000)), ("0.1%".to_owned(), "100%".to_owned()));
        assert_eq!((rate(1_010_000), rate(1_000_000)), ("1.01".to_owned(), "1".to_owned()));
        assert_eq!(bandwidth(1_000_000), "1MB/s");
        assert_eq!(bandwidth(256 * 1024), "256KiB/s");
        assert_eq!(bandwidth(12_345), "12345B/s");
        assert_eq!(latency(Duration::from_millis(5), Duration::from_millis(5)), "5ms");
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(us in 1..=1_000_000 * read::DURATION_MAX.as_secs(), ppm in 0..=1_000_000_u32, bytes: u64) {
            let long = Duration::from_micros(us);
            prop_assert_eq!(read::duration(&duration(long)), Ok(long));
            let signed = if ppm % 2 == 0 { us.cast_signed() } else { -us.cast_signed() };
            prop_assert_eq!(read::offset_us(&offset(signed)), Ok(signed));
            let short = Duration::from_micros(1 + us % 10_000_000).min(long);
            prop_assert_eq!(read::latency(&latency(short, long)), Ok((short, long)));
            prop_assert_eq!(read::span(&stretch(short, long)), Ok((short, long)));
            prop_assert_eq!(read::share_ppm(&share(ppm)), Ok(ppm));
            prop_assert_eq!(read::rate_ppm(&rate(500_000 + ppm)), Ok(500_000 + ppm));
            prop_assert_eq!(read::bandwidth(&bandwidth(bytes.max(1))), Ok(bytes.max(1)));
        }
    }
}
