//! The trail as text: 16 hex digits an event, all on one line.

use std::fmt::Write as _;

use serde::{Deserialize, Deserializer, Serializer, de};

use crate::digest::Mark;

/// Hex digits of a mark.
const DIGITS: usize = 16;

pub(super) fn serialize<S: Serializer>(trail: &[Mark], serializer: S) -> Result<S::Ok, S::Error> {
    let mut text = String::with_capacity(trail.len() * DIGITS);
    for mark in trail {
        // Writing to a string does not fail.
        let _ = write!(text, "{:016x}", mark.bits());
    }
    serializer.serialize_str(&text)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Mark>, D::Error> {
    let text = String::deserialize(deserializer)?;
    if !text.len().is_multiple_of(DIGITS) {
        let message =
            format!("the trail has {} hex digits, no multiple of the {DIGITS} of an event", text.len());
        return Err(de::Error::custom(message));
    }
    text.as_bytes().chunks(DIGITS).enumerate().map(|(event, digits)| mark(event, digits)).collect()
}

fn mark<E: de::Error>(event: usize, digits: &[u8]) -> Result<Mark, E> {
    let all_hex = digits.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(digits).ok().filter(|_| all_hex);
    let bits = text.and_then(|text| u64::from_str_radix(text, 16).ok());
    bits.map(Mark::from_bits)
        .ok_or_else(|| de::Error::custom(format!("the trail is not made of hex digits at event {event}")))
}
