//! The messages of issuance: rows on their way, and what nodes tell each other before one of them seals.
//!
//! They ride in the envelope of every frame. A node that does not know a kind rejects it as a payload that it
//! cannot read, and nothing else breaks. Each request has a round, which its answer repeats.
//!
//! Spec: docs/issuance.md, Election; Replication; Fencing.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::election::{Answer, ElectorateDigest};
use super::fence::{Kind, Reply, Request, Verdict};
use super::row::{Origin, Stamped};
use super::window::{Epoch, Window};
use crate::id::Seq;
use crate::time::WallTime;
use crate::wire::message::Sink;

/// Asks for the rows after these cursors, of the origins in a range.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pull {
    /// Which request this is.
    pub round: u64,
    /// The first origin of the range; from the lowest without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Origin>,
    /// The first origin after the range; to the highest without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Origin>,
    /// The last number held of each origin of the range; 0 for those that are not named.
    pub after: BTreeMap<Origin, Seq>,
}

/// Rows that a peer asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// The request answered.
    pub round: u64,
    /// Whether there are more rows in the range that was asked for.
    pub more: bool,
    /// The sender's wall clock.
    pub wall: UnixMs,
    /// The rows, origin by origin, in the order of their numbers.
    pub rows: Vec<Stamped>,
}

/// Asks a node how it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// Which round this belongs to.
    pub round: u64,
}

/// How a node stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// The round answered.
    pub round: u64,
    /// Whether it could seal, were it the issuer; for the holder, whether it does.
    pub fit: bool,
    /// Its wall clock.
    pub wall: UnixMs,
    /// The electorate it is configured with.
    pub electorate: ElectorateDigest,
    /// The highest window of its spine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tip: Option<Window>,
    /// The epoch of its lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<Epoch>,
}

/// A wall clock as it travels: whole Unix milliseconds, 0 for anything before 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnixMs(pub u64);

impl From<WallTime> for UnixMs {
    fn from(wall: WallTime) -> Self {
        Self(u64::try_from(wall.unix_ms()).unwrap_or(0))
    }
}

impl From<UnixMs> for WallTime {
    fn from(ms: UnixMs) -> Self {
        Self::from_unix_ms(i64::try_from(ms.0).unwrap_or(i64::MAX))
    }
}

impl Pull {
    pub(crate) fn encode(&self, out: &mut impl Sink) {
        out.raw(r#"{"type":"pull","round":"#);
        out.number(self.round);
        for (key, origin) in [(r#","from":"#, &self.from), (r#","until":"#, &self.until)] {
            if let Some(origin) = origin {
                out.raw(key);
                name(out, origin);
            }
        }
        out.raw(r#","after":{"#);
        for (position, (origin, seq)) in self.after.iter().enumerate() {
            if position > 0 {
                out.raw(",");
            }
            name(out, origin);
            out.raw(":");
            out.number(seq.0);
        }
        out.raw("}}");
    }
}

impl Page {
    pub(crate) fn encode(&self, out: &mut impl Sink) {
        out.raw(r#"{"type":"page","round":"#);
        out.number(self.round);
        out.raw(r#","more":"#);
        truth(out, self.more);
        out.raw(r#","wall":"#);
        out.number(self.wall.0);
        out.raw(r#","rows":["#);
        for (position, stamped) in self.rows.iter().enumerate() {
            if position > 0 {
                out.raw(",");
            }
            stamped.encode(out);
        }
        out.raw("]}");
    }
}

impl Probe {
    pub(crate) fn encode(self, out: &mut impl Sink) {
        out.raw(r#"{"type":"probe","round":"#);
        out.number(self.round);
        out.raw("}");
    }
}

impl Standing {
    /// An answer to the probe of a round.
    pub fn new(round: u64, answer: Answer) -> Self {
        let Answer { fit, tip, epoch, wall, electorate } = answer;
        Self { round, fit, wall: wall.into(), electorate, tip, epoch }
    }

    /// What it says, without the round.
    pub fn answer(self) -> Answer {
        let Self { round: _, fit, wall, electorate, tip, epoch } = self;
        Answer { fit, tip, epoch, wall: wall.into(), electorate }
    }

    pub(crate) fn encode(self, out: &mut impl Sink) {
        out.raw(r#"{"type":"standing","round":"#);
        out.number(self.round);
        out.raw(r#","fit":"#);
        truth(out, self.fit);
        out.raw(r#","wall":"#);
        out.number(self.wall.0);
        out.raw(r#","electorate":"#);
        out.number(self.electorate.0);
        for (key, value) in [
            (r#","tip":"#, self.tip.map(|Window(window)| window)),
            (r#","epoch":"#, self.epoch.map(|Epoch(epoch)| epoch)),
        ] {
            if let Some(value) = value {
                out.raw(key);
                out.number(value);
            }
        }
        out.raw("}");
    }
}

impl Request {
    pub(crate) fn encode(self, out: &mut impl Sink) {
        out.raw(match self.kind {
            Kind::Grant => r#"{"type":"claim","kind":"grant","round":"#,
            Kind::Renewal => r#"{"type":"claim","kind":"renewal","round":"#,
        });
        out.number(self.round);
        out.raw(r#","epoch":"#);
        out.number(self.epoch.0);
        out.raw(r#","electorate":"#);
        out.number(self.electorate.0);
        out.raw("}");
    }
}

impl Reply {
    pub(crate) fn encode(self, out: &mut impl Sink) {
        out.raw(r#"{"type":"vote","round":"#);
        out.number(self.round);
        out.raw(r#","electorate":"#);
        out.number(self.electorate.0);
        out.raw(r#","verdict":"#);
        match self.verdict {
            Verdict::Promised => out.raw(r#""promised"}"#),
            Verdict::Starting => out.raw(r#""starting"}"#),
            Verdict::Bound => out.raw(r#""bound"}"#),
            Verdict::Outdated { highest } => {
                out.raw(r#"{"outdated":{"highest":"#);
                out.number(highest.0);
                out.raw("}}}");
            }
        }
    }
}

fn name(out: &mut impl Sink, origin: &Origin) {
    out.raw("\"");
    out.text(origin.node.as_str());
    out.raw(".");
    out.number(origin.boot.0);
    out.raw("\"");
}

fn truth(out: &mut impl Sink, value: bool) {
    out.raw(if value { "true" } else { "false" });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Incarnation, NodeId};
    use crate::issuance::decimal::Decimal;
    use crate::issuance::row::{Fields, Lease, Row};
    use crate::wire::message::Message;
    use alloc::sync::Arc;
    use proptest::prelude::*;

    fn origin() -> impl Strategy<Value = Origin> {
        ("[a-z.\"\\\\é]{1,6}x", any::<u64>())
            .prop_map(|(node, boot)| Origin { node: NodeId::new(&node).unwrap(), boot: Incarnation(boot) })
    }

    fn stamped() -> impl Strategy<Value = Stamped> {
        (origin(), 1..u64::MAX, 9..u64::MAX, 1..9u64, any::<Option<u64>>()).prop_map(
            |(origin, seq, window, elapsed, epoch)| {
                let lease = epoch.map(|epoch| Lease { epoch: Epoch(epoch), holder: origin.node.clone() });
                let row = Row::new(Fields {
                    window: Window(window),
                    from_window: Window(window - 9),
                    elapsed,
                    rate: "0.999999999999".parse::<Decimal>().unwrap(),
                    phase: "0.25".parse::<Decimal>().unwrap(),
                    genesis_pegged: epoch.is_some(),
                    lease,
                });
                Stamped { origin, seq: Seq(seq), row: Arc::new(row.unwrap()) }
            },
        )
    }

    fn message() -> impl Strategy<Value = Message> {
        let after = prop::collection::btree_map(origin(), any::<u64>().prop_map(Seq), 0..4);
        let ends = (prop::option::of(origin()), prop::option::of(origin()));
        let rows = prop::collection::vec(stamped(), 0..4);
        let numbers = any::<(u64, u64, u64)>();
        prop_oneof![
            (any::<u64>(), ends, after).prop_map(|(round, (from, until), after)| {
                Message::Pull(Arc::new(Pull { round, from, until, after }))
            }),
            (any::<(u64, bool, u64)>(), rows).prop_map(|((round, more, wall), rows)| {
                Message::Page(Arc::new(Page { round, more, wall: UnixMs(wall), rows }))
            }),
            any::<u64>().prop_map(|round| Message::Probe(Probe { round })),
            (numbers, any::<(bool, Option<u64>, Option<u64>)>()).prop_map(
                |((round, wall, electorate), (fit, tip, epoch))| {
                    let (tip, epoch) = (tip.map(Window), epoch.map(Epoch));
                    Message::Standing(Standing {
                        round,
                        fit,
                        wall: UnixMs(wall),
                        electorate: ElectorateDigest(electorate),
                        tip,
                        epoch,
                    })
                }
            ),
            (numbers, any::<bool>()).prop_map(|((round, epoch, digest), renewal)| {
                let kind = if renewal { Kind::Renewal } else { Kind::Grant };
                let electorate = ElectorateDigest(digest);
                Message::Claim(Request { kind, round, epoch: Epoch(epoch), electorate })
            }),
            (numbers, 0..4u8).prop_map(|((round, highest, digest), verdict)| {
                let verdict = match verdict {
                    0 => Verdict::Promised,
                    1 => Verdict::Starting,
                    2 => Verdict::Bound,
                    _ => Verdict::Outdated { highest: Epoch(highest) },
                };
                Message::Vote(Reply { round, electorate: ElectorateDigest(digest), verdict })
            }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_what_serde_writes_reads_and_measures(message in message()) {
            let text = message.to_text();
            prop_assert_eq!(&text, &serde_json::to_string(&message).unwrap());
            prop_assert_eq!(&Message::parse(&text).unwrap(), &message);
            let measure = message.measure();
            prop_assert_eq!(measure.bytes, text.len());
            prop_assert_eq!(measure.escaped_bytes + 2, serde_json::to_string(&text).unwrap().len());
        }
    }

    #[test]
    fn a_kind_that_nobody_knows_is_no_message() {
        assert!(Message::parse(r#"{"type":"sermon","round":1}"#).is_err());
        assert!(Message::parse(r#"{"type":"probe"}"#).is_err());
        assert_eq!(
            Message::parse(r#"{"type":"probe","round":1,"later":2}"#).unwrap(),
            Message::Probe(Probe { round: 1 })
        );
    }
}
