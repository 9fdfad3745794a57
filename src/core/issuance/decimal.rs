//! Exact amounts: a non-negative decimal of twelve places, kept as an integer count of 10^-12.
//!
//! Money is added and multiplied by whole numbers only, so every result is exact or an error; nothing is ever
//! rounded, wrapped or passed through a float. The text of a value is its shortest: no zeros at the end, no
//! point without a place after it, and one text a value, so texts may be compared and hashed.
//!
//! In JSON and TOML a decimal is a string. Reading takes a number too, as long as its text is certain: a float
//! carries 15 significant digits, one with more is refused.
//!
//! Absent: signs, exponents, division, subtraction.
//!
//! Spec: docs/issuance.md, Rows.

use alloc::format;
use core::fmt::{self, Write as _};
use core::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Digits after the point.
pub const PLACES: usize = 12;
/// The count of a whole one.
const ONE: u128 = 10_u128.pow(12);
/// Significant digits of a decimal that survive a float, whatever they are.
const FLOAT_DIGITS: usize = 15;

/// A non-negative amount, exact to twelve places. The largest is about 3.4 × 10^26.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Decimal(u128);

/// Why a text is not a decimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecimalError {
    /// Nothing at all.
    #[error("is empty; write a decimal such as \"0.5\"")]
    Empty,
    /// A plus or a minus.
    #[error("carries the sign '{0}'; amounts are never negative and are written without a sign")]
    Sign(char),
    /// `1e3` and the like.
    #[error("has an exponent; write all digits out")]
    Exponent,
    /// No digit before or after the point.
    #[error("needs a digit on both sides of its point")]
    BarePoint,
    /// Neither a digit nor the one point.
    #[error("holds {0:?}; only digits and one point are allowed")]
    NotADigit(char),
    /// More than [`PLACES`] digits after the point.
    #[error("has {0} decimal places; at most {PLACES} are kept exactly")]
    TooManyPlaces(usize),
    /// More than the range holds.
    #[error("is too large; the largest amount is {max}", max = Decimal::MAX)]
    TooLarge,
}

/// A sum or a product left the range; nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the amount exceeds {max}, the largest that can be kept exactly", max = Decimal::MAX)]
pub struct Overflow;

impl Decimal {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// One.
    pub const ONE: Self = Self(ONE);
    /// The largest.
    pub const MAX: Self = Self(u128::MAX);

    /// The amount of `units` times 10^-12.
    pub const fn from_units(units: u128) -> Self {
        Self(units)
    }

    /// How many times 10^-12 this is.
    pub const fn units(self) -> u128 {
        self.0
    }

    /// The sum.
    ///
    /// # Errors
    /// [`Overflow`] above [`Decimal::MAX`].
    pub const fn checked_add(self, other: Self) -> Result<Self, Overflow> {
        match self.0.checked_add(other.0) {
            Some(sum) => Ok(Self(sum)),
            None => Err(Overflow),
        }
    }

    /// This amount, `count` times.
    ///
    /// # Errors
    /// [`Overflow`] above [`Decimal::MAX`].
    pub const fn checked_mul(self, count: u64) -> Result<Self, Overflow> {
        match self.0.checked_mul(count as u128) {
            Some(product) => Ok(Self(product)),
            None => Err(Overflow),
        }
    }
}

/// A text without its places beyond [`PLACES`].
fn cut(text: &str) -> &str {
    let excess = text.split_once('.').map_or(0, |(_, places)| places.len().saturating_sub(PLACES));
    text.get(..text.len() - excess).unwrap_or(text)
}

impl FromStr for Decimal {
    type Err = DecimalError;

    fn from_str(text: &str) -> Result<Self, DecimalError> {
        let first = text.chars().next().ok_or(DecimalError::Empty)?;
        if matches!(first, '+' | '-') {
            return Err(DecimalError::Sign(first));
        }
        let (whole, places) = match text.split_once('.') {
            Some((whole, places)) if whole.is_empty() || places.is_empty() => {
                return Err(DecimalError::BarePoint);
            }
            Some(parts) => parts,
            None => (text, ""),
        };
        let mut units = 0_u128;
        for c in whole.chars().chain(places.chars()) {
            let digit = match c {
                'e' | 'E' => return Err(DecimalError::Exponent),
                _ => c.to_digit(10).ok_or(DecimalError::NotADigit(c))?,
            };
            units = push_digit(units, digit)?;
        }
        if places.len() > PLACES {
            return Err(DecimalError::TooManyPlaces(places.len()));
        }
        for _ in places.len()..PLACES {
            units = push_digit(units, 0)?;
        }
        Ok(Self(units))
    }
}

fn push_digit(units: u128, digit: u32) -> Result<u128, DecimalError> {
    let shifted = units.checked_mul(10).ok_or(DecimalError::TooLarge)?;
    shifted.checked_add(u128::from(digit)).ok_or(DecimalError::TooLarge)
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0 / ONE)?;
        let (mut rest, mut width) = (self.0 % ONE, PLACES);
        if rest == 0 {
            return Ok(());
        }
        while rest.is_multiple_of(10) {
            rest /= 10;
            width -= 1;
        }
        f.write_char('.')?;
        write!(f, "{rest:0width$}")
    }
}

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Visitor { cut: false })
    }
}

/// Reads a decimal that is a reading, not money: a number is cut to [`PLACES`], however many digits it has.
///
/// # Errors
/// Whatever [`Decimal`] itself refuses, but for digits beyond its places in a number.
pub(crate) fn deserialize_reading<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Decimal, D::Error> {
    deserializer.deserialize_any(Visitor { cut: true })
}

struct Visitor {
    /// Whether a number loses what it has beyond the places.
    cut: bool,
}

impl serde::de::Visitor<'_> for Visitor {
    type Value = Decimal;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a decimal such as \"0.5\"")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Decimal, E> {
        text.parse().map_err(|problem| E::custom(format_args!("{text:?} {problem}")))
    }

    fn visit_u64<E: serde::de::Error>(self, whole: u64) -> Result<Decimal, E> {
        Decimal::ONE.checked_mul(whole).map_err(E::custom)
    }

    fn visit_i64<E: serde::de::Error>(self, whole: i64) -> Result<Decimal, E> {
        match u64::try_from(whole) {
            Ok(whole) => self.visit_u64(whole),
            Err(_) => Err(E::custom(format_args!("{whole} {}", DecimalError::Sign('-')))),
        }
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Decimal, E> {
        // The shortest text that reads back as the same float: the digits its writer meant.
        let text = format!("{number}");
        if self.cut {
            return self.visit_str(cut(&text));
        }
        let digits = text.trim_start_matches(['-', '0', '.']).bytes().filter(u8::is_ascii_digit).count();
        if digits > FLOAT_DIGITS {
            return Err(E::custom(format_args!(
                "{text} has {digits} digits, of which a number keeps {FLOAT_DIGITS}; write it as a string"
            )));
        }
        self.visit_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use proptest::prelude::*;

    fn decimal(text: &str) -> Decimal {
        text.parse().unwrap()
    }

    #[test]
    fn eight_times_the_rate_is_exact() {
        let rate = decimal("0.999999999999");
        assert_eq!(rate.checked_mul(8).unwrap().to_string(), "7.999999999992");
        assert_eq!(rate.checked_add(decimal("0.000000000001")), Ok(Decimal::ONE));
    }

    #[test]
    fn a_decimal_shows_no_more_places_than_it_needs() {
        for (text, shown) in [
            ("0", "0"),
            ("1", "1"),
            ("1.0", "1"),
            ("0.10", "0.1"),
            ("007.5", "7.5"),
            ("0.000000000001", "0.000000000001"),
            ("1.050000000000", "1.05"),
            ("340282366920938463463374607.431768211455", "340282366920938463463374607.431768211455"),
        ] {
            assert_eq!(decimal(text).to_string(), shown);
        }
    }

    #[test]
    fn a_text_that_is_no_decimal_is_refused_with_its_reason() {
        for (text, error) in [
            ("", DecimalError::Empty),
            ("-1", DecimalError::Sign('-')),
            ("+1", DecimalError::Sign('+')),
            ("1e3", DecimalError::Exponent),
            (".", DecimalError::BarePoint),
            (".5", DecimalError::BarePoint),
            ("5.", DecimalError::BarePoint),
            ("1.2.3", DecimalError::NotADigit('.')),
            ("1 ", DecimalError::NotADigit(' ')),
            ("NaN", DecimalError::NotADigit('N')),
            ("٣", DecimalError::NotADigit('٣')),
            ("0.0000000000001", DecimalError::TooManyPlaces(13)),
            ("340282366920938463463374607.431768211456", DecimalError::TooLarge),
            ("99999999999999999999999999999999999999999", DecimalError::TooLarge),
        ] {
            assert_eq!(text.parse::<Decimal>(), Err(error), "{text:?}");
        }
    }

    #[test]
    fn what_leaves_the_range_is_an_error() {
        assert_eq!(Decimal::MAX.checked_add(Decimal::from_units(1)), Err(Overflow));
        assert_eq!(Decimal::MAX.checked_mul(2), Err(Overflow));
        assert_eq!(Decimal::MAX.checked_mul(1), Ok(Decimal::MAX));
    }

    #[test]
    fn json_holds_strings_and_reads_numbers_that_are_certain() {
        let read = |text: &str| serde_json::from_str::<Decimal>(text);
        assert_eq!(serde_json::to_string(&decimal("0.50")).unwrap(), r#""0.5""#);
        assert_eq!(read("0.999999999999").unwrap(), read(r#""0.999999999999""#).unwrap());
        assert_eq!(read("3").unwrap(), decimal("3"));
        assert_eq!(read("0.0000000001").unwrap().units(), 100);
        for bad in
            ["-3", "-0.5", "0.1234567890123", "12345.678901234567", "1e300", "null", "true", r#""1,5""#]
        {
            assert!(read(bad).is_err(), "{bad}");
        }
        let told = read("0.99998134353323831").unwrap_err().to_string();
        assert!(told.contains("write it as a string"), "{told}");
        let told = read(r#""1e3""#).unwrap_err().to_string();
        assert!(told.contains(r#""1e3" has an exponent"#), "{told}");
    }

    #[test]
    fn a_reading_is_cut_not_rounded() {
        let read = |text: &str| deserialize_reading(&mut serde_json::Deserializer::from_str(text));
        for (text, reading) in [
            ("0.9999813435332383", "0.999981343533"),
            ("0.9999999999999", "0.999999999999"),
            ("1e-13", "0"),
            ("0.25", "0.25"),
            ("0", "0"),
            (r#""0.25""#, "0.25"),
        ] {
            assert_eq!(read(text).unwrap(), decimal(reading), "{text}");
        }
        for bad in ["-0.5", "-1", "1e300", r#""0.9999999999999""#, "null"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_decimal_reads_back_from_its_text(units: u128) {
            let value = Decimal::from_units(units);
            prop_assert_eq!(value.to_string().parse(), Ok(value));
            prop_assert_eq!(serde_json::from_str::<Decimal>(&serde_json::to_string(&value).unwrap()).unwrap(), value);
        }

        #[test]
        fn multiplying_is_adding_again_and_again(units in 0..u128::MAX / 64, count in 0_u64..64) {
            let value = Decimal::from_units(units);
            let sum = (0..count).try_fold(Decimal::ZERO, |sum, _| sum.checked_add(value));
            prop_assert_eq!(sum, value.checked_mul(count));
        }
    }
}
