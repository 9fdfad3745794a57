//! Names and numbers that identify things, each a type of its own.
//!
//! Node ids, cluster names and counter names travel in every frame; the rule they keep is checked once, when
//! the value is made.

use alloc::sync::Arc;
use core::cmp::Ordering;
use core::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::limits::NAME_BYTES_MAX;

/// Why a name was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing, or only white space.
    #[error("is blank; give it 1 to {NAME_BYTES_MAX} bytes")]
    Blank,
    /// Longer than [`NAME_BYTES_MAX`].
    #[error("is {0} bytes long; at most {NAME_BYTES_MAX} are allowed")]
    TooLong(usize),
    /// Contains `#`, which separates the parts of a counter cell's key.
    #[error("contains '#', which separates the parts of a counter cell's key")]
    Separator,
}

fn check(name: &str, separator_allowed: bool) -> Result<(), NameError> {
    if name.trim().is_empty() {
        Err(NameError::Blank)
    } else if name.len() > NAME_BYTES_MAX {
        Err(NameError::TooLong(name.len()))
    } else if !separator_allowed && name.contains('#') {
        Err(NameError::Separator)
    } else {
        Ok(())
    }
}

/// The first eight bytes of a name, as a number that orders as they do. Tables are searched by name for every
/// frame; where heads differ, and mostly they do, no text is fetched.
fn head(name: &str) -> u64 {
    let mut head = [0; 8];
    for (place, byte) in head.iter_mut().zip(name.bytes()) {
        *place = byte;
    }
    u64::from_be_bytes(head)
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, separator_allowed = $separator:literal) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name {
            /// See [`head`].
            head: u64,
            text: Arc<str>,
        }

        impl $name {
            /// Checks the rule and keeps the name.
            ///
            /// # Errors
            /// [`NameError`] when the name is blank, too long or holds a forbidden character.
            pub fn new(name: &str) -> Result<Self, NameError> {
                check(name, $separator)?;
                Ok(Self { head: head(name), text: Arc::from(name) })
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.text
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.cmp(other).is_eq()
            }
        }

        impl Eq for $name {}

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        /// The order of the texts.
        impl Ord for $name {
            fn cmp(&self, other: &Self) -> Ordering {
                self.head.cmp(&other.head).then_with(|| {
                    let same = Arc::ptr_eq(&self.text, &other.text);
                    if same { Ordering::Equal } else { self.text.cmp(&other.text) }
                })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.text)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.text)
            }
        }

        impl core::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.text
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.text)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl serde::de::Visitor<'_> for Visitor {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("a name of 1 to 64 bytes")
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        $name::new(text).map_err(|problem| E::custom(format_args!("{text:?} {problem}")))
                    }
                }
                deserializer.deserialize_str(Visitor)
            }
        }
    };
}

name! {
    /// A member's stable name, 1 to 64 bytes, not blank, without `#`.
    NodeId, separator_allowed = false
}
name! {
    /// The name that keeps clusters on one network apart; same rule as [`NodeId`].
    ClusterName, separator_allowed = false
}
name! {
    /// The name of a cluster-wide counter, 1 to 64 bytes, not blank.
    CounterName, separator_allowed = true
}

/// One boot (or refutation) of a node: Unix milliseconds at boot, then raised by refutation. Higher wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Incarnation(pub u64);

impl Incarnation {
    /// One above; stays at the top of the range, where nothing can be outranked any more.
    #[must_use]
    pub const fn next(self) -> Self {
        self.above(0)
    }

    /// One above and `leap` further; stays at the top of the range.
    #[must_use]
    pub const fn above(self, leap: u64) -> Self {
        Self(self.0.saturating_add(1).saturating_add(leap))
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A frame's number within its sender's incarnation; one sequence over all targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub u64);

/// The cell of a counter that one boot of one node writes: `node#incarnation` on the wire.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// The writer.
    pub node: NodeId,
    /// The writer's boot.
    pub incarnation: Incarnation,
}

impl Cell {
    /// Reads `node#incarnation`; `None` when either part breaks its rule or the number is not in its shortest form.
    pub fn parse(text: &str) -> Option<Self> {
        let (node, number) = text.rsplit_once('#')?;
        let shortest = number == "0" || !number.starts_with(['0', '+']);
        let incarnation = shortest.then(|| number.parse().ok()).flatten()?;
        Some(Self { node: NodeId::new(node).ok()?, incarnation: Incarnation(incarnation) })
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.node, self.incarnation)
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Cell {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Cell;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a cell key node#incarnation")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Cell, E> {
                Cell::parse(text).ok_or_else(|| E::custom(format_args!("{text:?} is not node#incarnation")))
            }
        }
        deserializer.deserialize_str(Visitor).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn names_keep_their_rule() {
        assert_eq!(NodeId::new("  "), Err(NameError::Blank));
        assert_eq!(NodeId::new(&"x".repeat(65)), Err(NameError::TooLong(65)));
        assert!(NodeId::new(&"x".repeat(64)).is_ok());
        assert_eq!(ClusterName::new("a#b"), Err(NameError::Separator));
        assert!(CounterName::new("a#b").is_ok());
    }

    #[test]
    fn names_order_as_their_texts() {
        let texts = [
            "a",
            "a\0",
            "ab",
            "b",
            "node-00",
            "node-0000a",
            "node-0000b",
            "node-0000b\0",
            "nœud",
            "zzzzzzzz",
        ];
        for a in texts {
            for b in texts {
                let (one, other) = (NodeId::new(a).unwrap(), NodeId::new(b).unwrap());
                assert_eq!((one.cmp(&other), one == other), (a.cmp(b), a == b), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn a_cell_key_reads_back_or_is_refused() {
        let cell = Cell::parse("nœud#17").unwrap();
        assert_eq!(cell.to_string(), "nœud#17");
        for bad in ["", "a", "a#", "#1", "a#01", "a#+1", "a#-1", "a#18446744073709551616", "a#b#1"] {
            assert_eq!(Cell::parse(bad), None, "{bad}");
        }
    }
}
