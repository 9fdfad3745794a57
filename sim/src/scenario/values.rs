//! The small languages inside strings: durations, clock offsets, shares, bandwidths.
//!
//! Each reads one string and says, when it cannot, what is wrong with it; what the value should look like is
//! told by [`super::catalog::Kind`].

use std::time::Duration;

/// Longest duration a scenario may name: a year. Longer ones are typing errors.
pub(super) const DURATION_MAX: Duration = Duration::from_secs(366 * 24 * 3600);
/// One whole, in parts per million.
pub(super) const MILLION: u64 = 1_000_000;

/// A duration such as `90s`, `1m30s`, `250ms`, `6min`: a digit first, a unit always, whole microseconds.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    if text.is_empty() {
        return Err("it is empty".into());
    }
    if text.starts_with(['+', '-']) {
        return Err("it has a sign; only clock offsets have one".into());
    }
    if text.chars().all(|c| c.is_ascii_digit() || c == '.' || c == '_') {
        return Err(format!("it has no unit; did you mean \"{text}s\" or \"{text}ms\"?"));
    }
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return Err("it does not begin with a digit".into());
    }
    let duration = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if duration > DURATION_MAX {
        return Err("it is longer than a year".into());
    }
    if !duration.subsec_nanos().is_multiple_of(1000) {
        return Err("it is finer than a microsecond, the resolution of every clock here".into());
    }
    Ok(duration)
}

/// A clock offset such as `+1h` or `-250ms`, in microseconds: a sign first, then a duration.
pub(super) fn offset_us(text: &str) -> Result<i64, String> {
    let (negative, rest) = match text.split_at_checked(1) {
        Some(("+", rest)) => (false, rest),
        Some(("-", rest)) => (true, rest),
        _ => return Err(format!("it has no sign; did you mean \"+{text}\" or \"-{text}\"?")),
    };
    let micros = i64::try_from(duration(rest)?.as_micros()).map_err(|_| "it is too long".to_string())?;
    Ok(if negative { -micros } else { micros })
}

/// Two durations, `1ms..20ms`; the first must not exceed the second.
pub(super) fn span(text: &str) -> Result<(Duration, Duration), String> {
    let (low, high) = text.split_once("..").ok_or("it has no \"..\" between two durations")?;
    let low = duration(low.trim()).map_err(|why| format!("{low:?} is no duration: {why}"))?;
    let high = duration(high.trim()).map_err(|why| format!("{high:?} is no duration: {why}"))?;
    if low > high {
        return Err("it runs backwards; write the shorter one first".into());
    }
    Ok((low, high))
}

/// A latency, `5ms` or `1ms..20ms`; never 0.
pub(super) fn latency(text: &str) -> Result<(Duration, Duration), String> {
    let (low, high) = if text.contains("..") {
        span(text)?
    } else {
        let only = duration(text)?;
        (only, only)
    };
    if low.is_zero() {
        return Err("it begins at 0; a frame would arrive at the moment it was sent".into());
    }
    Ok((low, high))
}

/// A share such as `0.1%`, in parts per million; 0% to 100%, at most four decimals.
pub(super) fn share_ppm(text: &str) -> Result<u32, String> {
    let number =
        text.strip_suffix('%').ok_or_else(|| format!("it has no \"%\"; did you mean \"{text}%\"?"))?;
    let ppm = decimal(number.trim_end(), 4)?;
    match u32::try_from(ppm) {
        Ok(ppm) if u64::from(ppm) <= MILLION => Ok(ppm),
        _ => Err("it is more than 100%".into()),
    }
}

/// A clock rate such as `1.01`, in parts per million of true time; 0.5 to 2, at most six decimals.
pub(super) fn rate_ppm(text: &str) -> Result<u32, String> {
    let ppm = decimal(text, 6)?;
    match u32::try_from(ppm) {
        Ok(ppm) if (500_000..=2_000_000).contains(&ppm) => Ok(ppm),
        _ => Err("it is outside 0.5 to 2".into()),
    }
}

/// A bandwidth such as `1MB/s` or `256KiB/s`, in bytes a second; above 0.
pub(super) fn bandwidth(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 7] = [
        ("KiB/s", 1024),
        ("MiB/s", 1024 * 1024),
        ("kB/s", 1000),
        ("KB/s", 1000),
        ("MB/s", 1_000_000),
        ("GB/s", 1_000_000_000),
        ("B/s", 1),
    ];
    let found = UNITS.iter().find_map(|(unit, bytes)| text.strip_suffix(unit).map(|n| (n, *bytes)));
    let (number, bytes) = found.ok_or("its unit is none of B/s, kB/s, MB/s, GB/s, KiB/s, MiB/s")?;
    let micros = decimal(number.trim_end(), 6)?;
    let total = u128::from(micros) * u128::from(bytes) / u128::from(MILLION);
    match u64::try_from(total) {
        Ok(0) => Err("it is below one byte a second; use a cut to let nothing through".into()),
        Ok(total) => Ok(total),
        Err(_) => Err("it is too large".into()),
    }
}

/// A decimal number times ten to the `places`, without passing through floating point.
fn decimal(text: &str, places: usize) -> Result<u64, String> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.chars().all(|c| c.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) || (part.is_empty() && text.contains('.')) {
        return Err(format!("{text:?} is no plain decimal number"));
    }
    if part.len() > places {
        return Err(format!("it has more than {places} decimals"));
    }
    format!("{whole}{part:0<places$}").parse().map_err(|_| "it is too large".to_string())
}

/// A duration in the shortest words, for messages.
pub(super) fn words(duration: Duration) -> String {
    humantime::format_duration(duration).to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_begin_with_a_digit_and_carry_a_unit() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("6min"), Ok(Duration::from_secs(360)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        for wrong in ["", "90", "1.5", "s", "ninety", "-1s", "+1s", "1ns", "2000y", "1 parsec"] {
            assert!(duration(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn clock_offsets_carry_a_sign() {
        assert_eq!(offset_us("+1h"), Ok(3_600_000_000));
        assert_eq!(offset_us("-250ms"), Ok(-250_000));
        assert!(offset_us("1h").unwrap_err().contains("\"+1h\""));
    }

    #[test]
    fn latency_is_one_duration_or_a_range_and_never_zero() {
        let ms = Duration::from_millis;
        assert_eq!(latency("5ms"), Ok((ms(5), ms(5))));
        assert_eq!(latency("1ms..20ms"), Ok((ms(1), ms(20))));
        for wrong in ["0ms", "0s..5ms", "20ms..1ms", "1..2ms", "1ms.."] {
            assert!(latency(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn shares_rates_and_bandwidths_are_exact() {
        assert_eq!(share_ppm("0.1%"), Ok(1000));
        assert_eq!(share_ppm("100%"), Ok(1_000_000));
        assert!(share_ppm("100.1%").is_err() && share_ppm("0.1").is_err() && share_ppm("-1%").is_err());
        assert_eq!(rate_ppm("1.01"), Ok(1_010_000));
        assert!(rate_ppm("0.4").is_err() && rate_ppm("2.1").is_err() && rate_ppm("1.").is_err());
        assert_eq!(bandwidth("1MB/s"), Ok(1_000_000));
        assert_eq!(bandwidth("1.5KiB/s"), Ok(1536));
        assert!(bandwidth("0B/s").is_err() && bandwidth("1Mbit").is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = (duration(&text), offset_us(&text), latency(&text), share_ppm(&text), rate_ppm(&text));
            let _ = (bandwidth(&text), span(&text));
        }

        #[test]
        fn what_is_said_in_words_reads_back(micros in 1_u64..31_000_000_000_000) {
            let duration = Duration::from_micros(micros);
            prop_assert_eq!(super::duration(&words(duration)), Ok(duration));
        }
    }
}
