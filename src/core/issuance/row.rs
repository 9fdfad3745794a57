//! What is sealed: one row a seal, exact, checked once, and ordered against any rival for its key.
//!
//! A row covers the windows `window - elapsed + 1 ..= window`; what lies between `from_window` and those is
//! forfeited. A row that exists is sound: [`Row::new`] and serde both go through [`Row::new`]'s checks, and
//! nothing can change a row after. Its JSON is written by one encoder, [`Row::encode`]; that text is canonical,
//! it decides the last tie of a merge and is what digests are made of.
//!
//! Decimals travel as strings. Reading also takes the numbers that older writers used for `rate` and `phase`;
//! a phase is a reading, not money, and is cut to twelve places.
//!
//! Absent: who may seal, and when; whether a row is durable.
//!
//! Spec: docs/issuance.md, Rows; Merge of rows.

#[cfg(test)]
mod tests;

use alloc::string::String;
use alloc::sync::Arc;
use core::cmp::Ordering;
use core::fmt::{self, Write as _};
use core::ops::{Deref, RangeInclusive};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::decimal::{Decimal, deserialize_reading};
use super::window::{Epoch, KeyError, Window, shortest_number};
use crate::id::{Incarnation, NodeId, Seq};
use crate::wire::message::{Measure, Sink};

/// Who may seal, and in which generation: the claim that a row carries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The generation.
    pub epoch: Epoch,
    /// Who holds it.
    pub holder: NodeId,
}

/// The contents of a [`Row`]. The amount and the key follow from them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fields {
    /// The window in which the row was sealed; a spine counts one row a window.
    pub window: Window,
    /// The watermark that the row continues from: nothing at or below it is covered.
    pub from_window: Window,
    /// How many windows the row issues for, counted back from `window`.
    pub elapsed: u64,
    /// The amount of one window.
    pub rate: Decimal,
    /// Where in its window the row was sealed, below 1.
    pub phase: Decimal,
    /// Whether windows are counted from the genesis that all nodes share.
    pub genesis_pegged: bool,
    /// The claim under which it was sealed; a legacy row has none.
    pub lease: Option<Lease>,
}

/// One sealed row. Its fields are read through [`Fields`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row(Fields);

/// Why something is not a row.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    /// `elapsed` is 0.
    #[error("elapsed is 0; a row issues for at least one window")]
    NothingElapsed,
    /// More windows than passed since the watermark; this also refuses a watermark at or above the window.
    #[error(
        "elapsed is {elapsed}, but only {gap} windows passed from from_window {from_window} to window {window}",
        gap = window.since(*from_window)
    )]
    BeyondGap {
        /// The windows it claims.
        elapsed: u64,
        /// Where it was sealed.
        window: Window,
        /// The watermark it continues from.
        from_window: Window,
    },
    /// Rate times elapsed is beyond what a decimal holds.
    #[error("rate {rate} times elapsed {elapsed} exceeds {max}, the largest amount", max = Decimal::MAX)]
    TooMuch {
        /// The amount of one window.
        rate: Decimal,
        /// The number of windows.
        elapsed: u64,
    },
    /// A phase of 1 or more.
    #[error("phase is {0}; the position in a window is below 1")]
    Phase(Decimal),
    /// The key of the text is none.
    #[error("key {key:?} {problem}")]
    NoKey {
        /// What the text says.
        key: String,
        /// What is wrong with it.
        problem: KeyError,
    },
    /// The key of the text belongs to another window.
    #[error("the key names window {key}, the row says window {window}")]
    OtherKey {
        /// The window of the key.
        key: Window,
        /// The window of the row.
        window: Window,
    },
    /// The amount of the text is not rate times elapsed.
    #[error("amount is {told}, but rate times elapsed is {exact}")]
    OtherAmount {
        /// What the text says.
        told: Decimal,
        /// What it must be.
        exact: Decimal,
    },
    /// An epoch without an issuer, or the reverse.
    #[error("epoch and issuer belong together; the row has only one of them")]
    HalfLease,
}

impl Row {
    /// Checks the fields and keeps them.
    ///
    /// # Errors
    /// [`RowError`] when nothing elapsed, more elapsed than passed, the phase is not below 1 or the amount is out
    /// of range.
    pub fn new(fields: Fields) -> Result<Self, RowError> {
        let Fields { window, from_window, elapsed, rate, phase, .. } = fields;
        if elapsed == 0 {
            return Err(RowError::NothingElapsed);
        }
        if elapsed > window.since(from_window) {
            return Err(RowError::BeyondGap { elapsed, window, from_window });
        }
        if phase >= Decimal::ONE {
            return Err(RowError::Phase(phase));
        }
        rate.checked_mul(elapsed).map_err(|_| RowError::TooMuch { rate, elapsed })?;
        Ok(Self(fields))
    }

    /// What the row issues: rate times elapsed.
    pub fn amount(&self) -> Decimal {
        // Row::new refused what would overflow.
        self.rate.checked_mul(self.elapsed).unwrap_or(Decimal::MAX)
    }

    /// The generation it was sealed in; a legacy row has none and comes before epoch 0.
    pub fn epoch(&self) -> Option<Epoch> {
        self.lease.as_ref().map(|lease| lease.epoch)
    }

    /// Who claims to have sealed it; a legacy row does not say.
    pub fn issuer(&self) -> Option<&NodeId> {
        self.lease.as_ref().map(|lease| &lease.holder)
    }

    /// The last window below those that the row covers: it covers from the one above to `window`.
    pub fn floor(&self) -> Window {
        Window(self.window.0 - self.elapsed)
    }

    /// The windows that the row issues for.
    pub fn covers(&self) -> RangeInclusive<u64> {
        self.floor().0 + 1..=self.window.0
    }

    /// The windows that passed since the watermark and are not issued for; may be empty.
    pub fn forfeited(&self) -> RangeInclusive<u64> {
        self.from_window.0 + 1..=self.floor().0
    }

    /// How the row stands against another of its key: `Less` comes first and wins. A higher epoch, then the lower
    /// issuer, then the smaller text; `Equal` for equal rows alone.
    pub fn precedence(&self, other: &Self) -> Ordering {
        let claims = other.epoch().cmp(&self.epoch()).then_with(|| self.issuer().cmp(&other.issuer()));
        claims
            .then_with(|| if self == other { Ordering::Equal } else { self.to_text().cmp(&other.to_text()) })
    }

    /// Writes the row as JSON, the same bytes on every node.
    pub fn encode(&self, out: &mut impl Sink) {
        out.raw(r#"{"key":""#);
        show(out, self.window.key());
        out.raw(r#"","window":"#);
        out.number(self.window.0);
        out.raw(r#","from_window":"#);
        out.number(self.from_window.0);
        out.raw(r#","elapsed":"#);
        out.number(self.elapsed);
        out.raw(r#","rate":""#);
        show(out, self.rate);
        out.raw(r#"","amount":""#);
        show(out, self.amount());
        out.raw(r#"","phase":""#);
        show(out, self.phase);
        out.raw(r#"","genesis_pegged":"#);
        out.raw(if self.genesis_pegged { "true" } else { "false" });
        if let Some(Lease { epoch, holder }) = &self.lease {
            out.raw(r#","epoch":"#);
            out.number(epoch.0);
            out.raw(r#","issuer":"#);
            out.string(holder.as_str());
        }
        out.raw("}");
    }

    /// The row as its canonical text.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        self.encode(&mut text);
        text
    }

    /// Replaces the issuer's name by `name`, if equal: one allocation serves all rows of a stream.
    pub(crate) fn share_issuer(&mut self, name: &NodeId) {
        if let Some(lease) = self.0.lease.as_mut().filter(|lease| lease.holder == *name) {
            lease.holder = name.clone();
        }
    }
}

impl Deref for Row {
    type Target = Fields;

    fn deref(&self) -> &Fields {
        &self.0
    }
}

/// Writes what shows as digits and other characters that JSON does not escape.
fn show<S: Sink>(out: &mut S, value: impl fmt::Display) {
    struct Raw<'a, S>(&'a mut S);
    impl<S: Sink> fmt::Write for Raw<'_, S> {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.raw(text);
            Ok(())
        }
    }
    // Writing to a sink cannot fail.
    let _ = write!(Raw(out), "{value}");
}

/// A row as serde writes it, field by field as [`Row::encode`] does.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(serialize_with = "shown")]
    key: super::window::Key,
    window: Window,
    from_window: Window,
    elapsed: u64,
    rate: Decimal,
    amount: Decimal,
    phase: Decimal,
    genesis_pegged: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    epoch: Option<Epoch>,
    #[serde(skip_serializing_if = "Option::is_none")]
    issuer: Option<&'a NodeId>,
}

fn shown<S: Serializer>(value: &impl fmt::Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Fields { window, from_window, elapsed, rate, phase, genesis_pegged, .. } = self.0;
        let (key, amount) = (window.key(), self.amount());
        let (epoch, issuer) = (self.epoch(), self.issuer());
        Shown { key, window, from_window, elapsed, rate, amount, phase, genesis_pegged, epoch, issuer }
            .serialize(serializer)
    }
}

/// A row as a text tells it, before anything was checked.
#[derive(Deserialize)]
struct Told {
    key: String,
    window: Window,
    from_window: Window,
    elapsed: u64,
    rate: Decimal,
    amount: Decimal,
    #[serde(deserialize_with = "deserialize_reading")]
    phase: Decimal,
    genesis_pegged: bool,
    #[serde(default)]
    epoch: Option<Epoch>,
    #[serde(default)]
    issuer: Option<NodeId>,
}

impl TryFrom<Told> for Row {
    type Error = RowError;

    fn try_from(told: Told) -> Result<Self, RowError> {
        let lease = match (told.epoch, told.issuer) {
            (Some(epoch), Some(holder)) => Some(Lease { epoch, holder }),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => return Err(RowError::HalfLease),
        };
        let row = Self::new(Fields {
            window: told.window,
            from_window: told.from_window,
            elapsed: told.elapsed,
            rate: told.rate,
            phase: told.phase,
            genesis_pegged: told.genesis_pegged,
            lease,
        })?;
        let key =
            Window::from_key(&told.key).map_err(|problem| RowError::NoKey { key: told.key, problem })?;
        if key != row.window {
            return Err(RowError::OtherKey { key, window: row.window });
        }
        if told.amount != row.amount() {
            return Err(RowError::OtherAmount { told: told.amount, exact: row.amount() });
        }
        Ok(row)
    }
}

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let told = Told::deserialize(deserializer)?;
        let window = told.window;
        Self::try_from(told)
            .map_err(|problem| de::Error::custom(format_args!("row of window {window}: {problem}")))
    }
}

/// One boot of one node, as the writer of a stream of rows. Shown and read as `<node>.<boot>`; the node's own
/// name may hold points.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// The writer.
    pub node: NodeId,
    /// The writer's boot.
    pub boot: Incarnation,
}

/// A text is not `<node>.<boot>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not an origin; origins read <node>.<boot>, a node id and the boot as a plain number")]
pub struct OriginError;

impl core::str::FromStr for Origin {
    type Err = OriginError;

    fn from_str(text: &str) -> Result<Self, OriginError> {
        let (node, boot) = text.rsplit_once('.').ok_or(OriginError)?;
        let boot = Incarnation(shortest_number(boot).ok_or(OriginError)?);
        Ok(Self { node: NodeId::new(node).map_err(|_| OriginError)?, boot })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.node, self.boot)
    }
}

impl Serialize for Origin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Origin {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Origin;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an origin <node>.<boot>")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Origin, E> {
                text.parse().map_err(|problem: OriginError| E::custom(format_args!("{text:?} {problem}")))
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

/// A row at its place in the stream of its origin. Numbers begin at 1 with each origin and leave no gap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamped {
    /// Who wrote it, in which boot.
    pub origin: Origin,
    /// Its number within that boot, from 1.
    pub seq: Seq,
    /// The row.
    pub row: Arc<Row>,
}

impl Stamped {
    /// Writes the row and its place as JSON.
    pub fn encode(&self, out: &mut impl Sink) {
        out.raw(r#"{"origin":""#);
        out.text(self.origin.node.as_str());
        out.raw(".");
        out.number(self.origin.boot.0);
        out.raw(r#"","seq":"#);
        out.number(self.seq.0);
        out.raw(r#","row":"#);
        self.row.encode(out);
        out.raw("}");
    }

    /// How long the JSON is, without building it.
    pub fn measure(&self) -> Measure {
        let mut measure = Measure::default();
        self.encode(&mut measure);
        measure
    }
}
