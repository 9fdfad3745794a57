//! Which seeds a campaign plays: a range, and a shard of it.

use std::fmt;
use std::num::IntErrorKind;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Seeds from the first up to, but without, the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seeds {
    /// The first.
    pub from: u64,
    /// One past the last.
    pub to: u64,
}

/// The most parts that a campaign has. Each is a process with a report of its own; who needs more machines than this
/// has mistyped a number.
pub const SHARDS_MAX: u64 = 10_000;

/// One of several parts of a campaign, counted from 1. Shard i of n plays every n-th seed, so that all shards are
/// equally long and a cut-off campaign has played the same stretch everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "WrittenShard")]
pub struct Shard {
    /// Which, from 1.
    pub index: u64,
    /// Of how many.
    pub of: u64,
}

/// A shard as a report says it, not checked yet.
#[derive(Deserialize)]
struct WrittenShard {
    index: u64,
    of: u64,
}

/// Why a text names no seeds or no shard.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SeedsError {
    /// Neither `FROM..TO` nor one number.
    #[error("{0:?} names no seeds: write a range such as 0..10000, or one seed")]
    Form(String),
    /// A number above the largest there is.
    #[error("{0} is too large: the largest seed is {max}", max = u64::MAX - 1)]
    TooLarge(String),
    /// Nothing between the ends.
    #[error("{0} is empty: the second number is one past the last seed and has to be above the first")]
    Empty(String),
    /// Not `I/N`.
    #[error("{0:?} names no shard: write I/N, such as 1/4 for the first of four")]
    Shard(String),
    /// Not one of the shards.
    #[error("there is no shard {index} of {of}: shards count from 1 to {of}")]
    NoSuchShard {
        /// Which was asked for.
        index: u64,
        /// Of how many.
        of: u64,
    },
    /// More shards than [`SHARDS_MAX`].
    #[error("{0} shards are too many: a campaign has at most {SHARDS_MAX}")]
    TooManyShards(u64),
}

impl Seeds {
    /// How many.
    pub const fn count(self) -> u64 {
        self.to.saturating_sub(self.from)
    }
}

impl Shard {
    /// All of a campaign.
    pub const WHOLE: Self = Self { index: 1, of: 1 };

    /// Shard `index` of `of`, counted from 1.
    ///
    /// # Errors
    /// [`SeedsError::NoSuchShard`]; [`SeedsError::TooManyShards`] above [`SHARDS_MAX`].
    pub const fn new(index: u64, of: u64) -> Result<Self, SeedsError> {
        if of > SHARDS_MAX {
            return Err(SeedsError::TooManyShards(of));
        }
        if index == 0 || index > of {
            return Err(SeedsError::NoSuchShard { index, of });
        }
        Ok(Self { index, of })
    }

    /// The `nth` seed of this shard, counted from 0, if the range has so many.
    pub fn nth(self, seeds: Seeds, nth: u64) -> Option<u64> {
        let offset = nth.checked_mul(self.of)?.checked_add(self.index - 1)?;
        seeds.from.checked_add(offset).filter(|&seed| seed < seeds.to)
    }

    /// How many seeds of the range are this shard's.
    pub const fn count(self, seeds: Seeds) -> u64 {
        let (each, over) = (seeds.count() / self.of, seeds.count() % self.of);
        each + if self.index <= over { 1 } else { 0 }
    }
}

impl FromStr for Seeds {
    type Err = SeedsError;

    fn from_str(text: &str) -> Result<Self, SeedsError> {
        let form = || SeedsError::Form(text.to_owned());
        let number = |text: &str| {
            text.replace('_', "").parse::<u64>().map_err(|error| {
                let too_large = *error.kind() == IntErrorKind::PosOverflow;
                if too_large { SeedsError::TooLarge(text.to_owned()) } else { form() }
            })
        };
        let seeds = match text.split_once("..") {
            Some((from, to)) => Self { from: number(from)?, to: number(to)? },
            None => {
                let from = number(text)?;
                let to = from.checked_add(1).ok_or_else(|| SeedsError::TooLarge(text.to_owned()))?;
                Self { from, to }
            }
        };
        if seeds.from >= seeds.to { Err(SeedsError::Empty(text.to_owned())) } else { Ok(seeds) }
    }
}

impl TryFrom<WrittenShard> for Shard {
    type Error = SeedsError;

    fn try_from(written: WrittenShard) -> Result<Self, SeedsError> {
        Self::new(written.index, written.of)
    }
}

impl FromStr for Shard {
    type Err = SeedsError;

    fn from_str(text: &str) -> Result<Self, SeedsError> {
        let form = || SeedsError::Shard(text.to_owned());
        let (index, of) = text.split_once('/').ok_or_else(form)?;
        let number = |text: &str| text.parse::<u64>().map_err(|_| form());
        Self::new(number(index)?, number(of)?)
    }
}

impl fmt::Display for Seeds {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}..{}", self.from, self.to)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.index, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shards_of_a_range_are_the_range_each_seed_once() {
        for (from, to) in [(0, 1), (0, 10), (7, 100), (5, 6), (3, 103), (u64::MAX - 10, u64::MAX)] {
            let seeds = Seeds { from, to };
            for of in 1..=12 {
                let mut union = Vec::new();
                for index in 1..=of {
                    let shard = Shard::new(index, of).unwrap();
                    let own: Vec<u64> = (0..).map_while(|nth| shard.nth(seeds, nth)).collect();
                    assert_eq!(own.len() as u64, shard.count(seeds), "{seeds} {shard}");
                    union.extend(own);
                }
                union.sort_unstable();
                assert_eq!(union, (from..to).collect::<Vec<_>>(), "{seeds} in {of}");
            }
        }
    }

    #[test]
    fn ranges_and_shards_read_as_they_are_written() {
        assert_eq!("0..10_000".parse(), Ok(Seeds { from: 0, to: 10_000 }));
        assert_eq!("7".parse(), Ok(Seeds { from: 7, to: 8 }));
        assert_eq!("2/4".parse(), Ok(Shard { index: 2, of: 4 }));
        assert_eq!("5..5".parse::<Seeds>(), Err(SeedsError::Empty("5..5".into())));
        for wrong in ["", "..", "a..b", "1..", "-1..4", "7.5"] {
            assert_eq!(wrong.parse::<Seeds>(), Err(SeedsError::Form(wrong.into())));
        }
        assert_eq!("0/4".parse::<Shard>(), Err(SeedsError::NoSuchShard { index: 0, of: 4 }));
        assert_eq!("5/4".parse::<Shard>(), Err(SeedsError::NoSuchShard { index: 5, of: 4 }));
        assert_eq!("1".parse::<Shard>(), Err(SeedsError::Shard("1".into())));
    }

    #[test]
    fn the_largest_numbers_are_played_or_refused_by_name() {
        let max = u64::MAX;
        assert_eq!(format!("0..{max}").parse(), Ok(Seeds { from: 0, to: max }));
        assert_eq!((max - 1).to_string().parse(), Ok(Seeds { from: max - 1, to: max }));
        let above = "18446744073709551616";
        for (text, number) in [(max.to_string(), max.to_string()), (format!("0..{above}"), above.into())] {
            let error = text.parse::<Seeds>().unwrap_err();
            assert_eq!(error, SeedsError::TooLarge(number));
            assert!(error.to_string().contains("the largest seed is 18446744073709551614"), "{error}");
        }
        let seeds = Seeds { from: 0, to: max };
        let counts = |of| (1..=of).map(move |index| Shard::new(index, of).unwrap().count(seeds));
        for of in [1, 2, 3, 7, SHARDS_MAX] {
            assert_eq!(counts(of).sum::<u64>(), max, "{of} shards");
        }
    }

    #[test]
    fn more_shards_than_machines_are_refused_wherever_they_are_written() {
        let of = 1_000_000_000_000_000_000;
        assert_eq!(Shard::new(1, of), Err(SeedsError::TooManyShards(of)));
        let read = |text: &str| serde_json::from_str::<Shard>(text).map_err(|error| error.to_string());
        assert_eq!(read(r#"{"index":3,"of":10000}"#), Ok(Shard { index: 3, of: SHARDS_MAX }));
        let refused = |text: &str, why: &str| {
            let error = read(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        };
        refused(r#"{"index":1,"of":1000000000000000000}"#, "too many: a campaign has at most 10000");
        refused(r#"{"index":0,"of":4}"#, "no shard 0 of 4");
        refused(r#"{"index":5,"of":4}"#, "no shard 5 of 4");
    }
}
