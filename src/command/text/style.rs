//! The palette, and how quantities are written.
//!
//! Everything is written with colours; the stream at the very end drops them where they do not belong
//! (no terminal, `NO_COLOR`). Few colours, each with one meaning.

use std::fmt::{self, Display};
use std::time::Duration;

use anstyle::{AnsiColor, Style};

/// Titles.
pub(crate) const STRONG: Style = Style::new().bold();
/// Labels and what a glance may skip.
pub(crate) const FAINT: Style = Style::new().dimmed();
/// What held.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// What did not.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// What the drill did to the cluster.
pub(crate) const FAULT: Style = AnsiColor::Yellow.on_default();
/// What was asked of the cluster.
pub(crate) const ASKED: Style = AnsiColor::Cyan.on_default();

/// A text in a style.
pub(crate) struct Painted<T>(Style, T);

/// Puts `text` into `style`.
pub(crate) const fn paint<T: Display>(style: Style, text: T) -> Painted<T> {
    Painted(style, text)
}

impl<T: Display> Display for Painted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(style, text) = self;
        write!(f, "{style}{text}{style:#}")
    }
}

/// A moment of the run: seconds with milliseconds, as scenarios write them.
pub(crate) fn moment(at_us: u64) -> String {
    format!("{}.{:03} s", at_us / 1_000_000, at_us / 1_000 % 1_000)
}

/// A length of time in the unit that reads best, to three or four digits.
pub(crate) fn span(duration: Duration) -> String {
    let us = duration.as_micros();
    match us {
        0..1_000 => format!("{us} µs"),
        1_000..1_000_000 => trimmed(us, 1_000, "ms"),
        1_000_000..600_000_000 => trimmed(us, 1_000_000, "s"),
        _ => {
            let seconds = duration.as_secs();
            let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
            let mut parts = Vec::new();
            for (count, unit) in [(hours, "h"), (minutes, "min"), (seconds, "s")] {
                if count > 0 {
                    parts.push(format!("{count} {unit}"));
                }
            }
            parts.join(" ")
        }
    }
}

/// `value / unit` with at most three decimals, fewer as the number grows, and no idle zeros.
fn trimmed(value: u128, unit: u128, name: &str) -> String {
    let decimals: u32 = match value / unit {
        0..10 => 2,
        10..100 => 1,
        _ => 0,
    };
    let scale = 10_u128.pow(decimals);
    let scaled = (value * scale + unit / 2) / unit;
    let (whole, rest) = (scaled / scale, scaled % scale);
    let width = decimals as usize;
    let text = if rest == 0 { whole.to_string() } else { format!("{whole}.{rest:0width$}") };
    let text = if text.contains('.') { text.trim_end_matches('0') } else { &text };
    format!("{text} {name}")
}

/// A count with its thousands apart.
pub(crate) fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes in the unit that reads best.
pub(crate) fn bytes(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => trimmed(bytes.into(), 1_000, "kB"),
        1_000_000..1_000_000_000 => trimmed(bytes.into(), 1_000_000, "MB"),
        _ => trimmed(bytes.into(), 1_000_000_000, "GB"),
    }
}

/// A rate per million as a percentage.
pub(crate) fn percent(ppm: u32) -> String {
    let text = format!("{}.{:04}", ppm / 10_000, ppm % 10_000);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// How often `part` goes into `whole`, to two leading digits: a ratio nobody reads to the unit.
pub(crate) fn ratio(whole: Duration, part: Duration) -> String {
    let ratio = whole.as_micros() / part.as_micros().max(1);
    let mut scale = 1;
    while ratio / scale >= 100 {
        scale *= 10;
    }
    count(u64::try_from(ratio / scale * scale).unwrap_or(u64::MAX))
}

/// `one thing`, `two things`.
pub(crate) fn plural(number: usize, thing: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{s}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_read_as_a_person_would_write_them() {
        let spans = [999, 4_100, 250_000, 2_500_000, 33_240_000, 140_000_000, 3_661_000_000];
        let spans: Vec<_> = spans.into_iter().map(|us| span(Duration::from_micros(us))).collect();
        assert_eq!(spans, ["999 µs", "4.1 ms", "250 ms", "2.5 s", "33.2 s", "140 s", "1 h 1 min 1 s"]);
        assert_eq!([count(7), count(1_234), count(1_234_567)], ["7", "1,234", "1,234,567"]);
        assert_eq!([bytes(512), bytes(20_480), bytes(1_500_000)], ["512 bytes", "20.5 kB", "1.5 MB"]);
        assert_eq!([percent(1_000), percent(1_000_000), percent(25)], ["0.1 %", "100 %", "0.0025 %"]);
        assert_eq!(moment(60_002_345), "60.002 s");
        assert_eq!(ratio(Duration::from_secs(63), Duration::from_micros(4_071)), "15,000");
    }
}
