//! What frames say: the replicated document, a farewell, or what [`crate::issuance::message`] has to say.
//!
//! The encoder writes into a [`Sink`]; one sink stores the text, another only measures it, so the length of a
//! message is known without encoding it and can never disagree with the encoder.
//!
//! The types that travel tolerate unknown fields (a newer node may add some); a value that breaks its rule
//! rejects the whole message.
//!
//! Spec: docs/protocol.md, Wire and envelope; decision 2.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt::{self, Write as _};
use core::net::SocketAddr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::id::{Cell, CounterName, Incarnation, NodeId};
use crate::issuance::fence::{Reply, Request};
use crate::issuance::message::{Page, Probe, Pull, Standing};

/// A member's advertised address. Kept as text: what this node cannot dial it still has to pass on unchanged.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Addr {
    text: Arc<str>,
    socket: Option<SocketAddr>,
}

impl Addr {
    /// An address as a peer wrote it; may be empty or undialable.
    pub fn new(text: &str) -> Self {
        let socket =
            text.parse::<SocketAddr>().ok().filter(|addr| addr.port() != 0 && !addr.ip().is_unspecified());
        Self { text: Arc::from(text), socket }
    }

    /// The text as it travels.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Where to dial; `None` for anything but an IP literal with a port.
    pub const fn socket(&self) -> Option<SocketAddr> {
        self.socket
    }
}

impl From<SocketAddr> for Addr {
    fn from(addr: SocketAddr) -> Self {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = write!(text, "{addr}");
        Self::new(&text)
    }
}

impl fmt::Display for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl fmt::Debug for Addr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.text)
    }
}

impl Serialize for Addr {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Addr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Addr;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an address")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Addr, E> {
                Ok(Addr::new(text))
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

/// What the document says of a member. At equal incarnation `Left` beats `Alive`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordStatus {
    /// Running, as far as the document knows.
    Alive,
    /// Departed, or recorded so after a long silence: a tombstone.
    Left,
}

/// One member in the document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberRecord {
    /// Where peers dial it; empty in a tombstone written for an unknown leaver.
    #[serde(default)]
    pub addr: Addr,
    /// Its boot, as far as the document knows.
    pub incarnation: Incarnation,
    /// Alive or left.
    pub status: RecordStatus,
}

/// The replicated document: all of it travels in every push.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// Every member known, tombstones included.
    #[serde(default)]
    pub members: BTreeMap<NodeId, MemberRecord>,
    /// Every counter, cell by cell.
    #[serde(default)]
    pub counters: BTreeMap<CounterName, BTreeMap<Cell, u64>>,
}

/// A message, as the authenticated payload of a frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Message {
    /// The sender's whole document; doubles as the heartbeat.
    StatePush {
        /// Shared: a push is built once for all its targets.
        state: Arc<Document>,
    },
    /// The sender departs at the incarnation in the frame's header.
    Leave {},
    /// Asks for rows.
    Pull(Arc<Pull>),
    /// Rows that were asked for.
    Page(Arc<Page>),
    /// Asks how a node stands.
    Probe(Probe),
    /// How the sender stands.
    Standing(Standing),
    /// Asks an elector for its promise.
    Claim(Request),
    /// An elector's answer.
    Vote(Reply),
}

/// A message as it reaches the node: decoded already, or still as the text that was signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Payload {
    /// A value handed over by an engine that skips the codec.
    Value(Message),
    /// The payload string of an envelope.
    Text(String),
}

/// How long a text is, plain and inside a JSON string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Measure {
    /// Bytes of the text.
    pub bytes: usize,
    /// Bytes of the text once it is escaped into a JSON string, quotes excluded.
    pub escaped_bytes: usize,
}

/// Where the encoder writes.
pub trait Sink {
    /// Adds JSON text that holds no string escapes of its own.
    fn raw(&mut self, text: &str);
    /// Adds the inside of a JSON string.
    fn text(&mut self, text: &str);
    /// Adds a number.
    fn number(&mut self, number: u64);

    /// Adds a JSON string literal, quotes included.
    fn string(&mut self, text: &str) {
        self.raw("\"");
        self.text(text);
        self.raw("\"");
    }
}

impl Sink for String {
    fn raw(&mut self, text: &str) {
        self.push_str(text);
    }

    fn text(&mut self, text: &str) {
        escape_into(self, text);
    }

    fn number(&mut self, number: u64) {
        // Writing to a String cannot fail.
        let _ = write!(self, "{number}");
    }
}

impl Sink for Measure {
    fn raw(&mut self, text: &str) {
        self.bytes += text.len();
        self.escaped_bytes += escaped_len(text);
    }

    fn text(&mut self, text: &str) {
        let once = escaped_len(text);
        self.bytes += once;
        // Each escape of the first pass is escaped again.
        self.escaped_bytes +=
            if once == text.len() { once } else { text.chars().map(twice_escaped_len).sum() };
    }

    fn number(&mut self, number: u64) {
        let digits = number.checked_ilog10().map_or(1, |log| log as usize + 1);
        self.bytes += digits;
        self.escaped_bytes += digits;
    }
}

/// The short escape of `byte` in a JSON string, if it has one.
const fn short_escape(byte: u8) -> Option<&'static str> {
    Some(match byte {
        b'"' => "\\\"",
        b'\\' => "\\\\",
        0x08 => "\\b",
        0x0c => "\\f",
        b'\n' => "\\n",
        b'\r' => "\\r",
        b'\t' => "\\t",
        _ => return None,
    })
}

/// Appends `text` as the inside of a JSON string: the shortest escapes, everything else verbatim.
pub(crate) fn escape_into(out: &mut String, text: &str) {
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.push_str(&text[plain..at]);
        match short_escape(byte) {
            Some(escape) => out.push_str(escape),
            None => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{byte:04x}");
            }
        }
        plain = at + 1;
    }
    out.push_str(&text[plain..]);
}

/// Bytes of `text` as the inside of a JSON string.
pub(crate) fn escaped_len(text: &str) -> usize {
    text.bytes()
        .map(|byte| match byte {
            b'"' | b'\\' => 2,
            0x20.. => 1,
            _ => short_escape(byte).map_or(6, str::len),
        })
        .sum()
}

/// Bytes of one character after escaping it twice.
const fn twice_escaped_len(c: char) -> usize {
    match c {
        '"' | '\\' => 4,
        '\u{8}' | '\u{c}' | '\n' | '\r' | '\t' => 3,
        '\0'..'\u{20}' => 7,
        _ => c.len_utf8(),
    }
}

impl Message {
    /// Whether it is for one peer, and not about the sender's document.
    pub const fn is_direct(&self) -> bool {
        !matches!(self, Self::StatePush { .. } | Self::Leave {})
    }

    /// Writes the message as JSON.
    pub fn encode(&self, out: &mut impl Sink) {
        match self {
            Self::Leave {} => out.raw(r#"{"type":"leave"}"#),
            Self::StatePush { state } => {
                out.raw(r#"{"type":"state_push","state":"#);
                state.encode(out);
                out.raw("}");
            }
            Self::Pull(pull) => pull.encode(out),
            Self::Page(page) => page.encode(out),
            Self::Probe(probe) => probe.encode(out),
            Self::Standing(standing) => standing.encode(out),
            Self::Claim(request) => request.encode(out),
            Self::Vote(vote) => vote.encode(out),
        }
    }

    /// The message as text.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        self.encode(&mut text);
        text
    }

    /// How long [`Message::to_text`] would be, without building it.
    pub fn measure(&self) -> Measure {
        let mut measure = Measure::default();
        self.encode(&mut measure);
        measure
    }

    /// Reads a payload string (step 7).
    ///
    /// # Errors
    /// What serde says of the text; the receive path only counts it.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }
}

impl Document {
    fn encode(&self, out: &mut impl Sink) {
        out.raw(r#"{"members":{"#);
        for (position, (id, record)) in self.members.iter().enumerate() {
            separate(out, position);
            out.string(id.as_str());
            out.raw(r#":{"addr":"#);
            out.string(record.addr.as_str());
            out.raw(r#","incarnation":"#);
            out.number(record.incarnation.0);
            out.raw(match record.status {
                RecordStatus::Alive => r#","status":"alive"}"#,
                RecordStatus::Left => r#","status":"left"}"#,
            });
        }
        out.raw(r#"},"counters":{"#);
        for (position, (name, cells)) in self.counters.iter().enumerate() {
            separate(out, position);
            out.string(name.as_str());
            out.raw(":{");
            for (position, (cell, value)) in cells.iter().enumerate() {
                separate(out, position);
                out.raw("\"");
                out.text(cell.node.as_str());
                out.raw("#");
                out.number(cell.incarnation.0);
                out.raw("\":");
                out.number(*value);
            }
            out.raw("}");
        }
        out.raw("}}");
    }
}

fn separate(out: &mut impl Sink, position: usize) {
    if position > 0 {
        out.raw(",");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_document_reads_as_the_spec_shows_it() {
        let text = concat!(
            r#"{"type":"state_push","state":{"members":{"node-a":{"addr":"127.0.0.1:7946","incarnation":1765430001204,"#,
            r#""status":"alive"}},"counters":{"boids_sighted":{"node-a#1765430001204":3}}}}"#
        );
        let message = Message::parse(text).unwrap();
        assert_eq!(message.to_text(), text);
        assert_eq!(Message::parse(r#"{"type":"leave","later":[1]}"#).unwrap(), Message::Leave {});
    }

    #[test]
    fn one_bad_entry_rejects_the_whole_message() {
        let push = |members: &str, counters: &str| {
            Message::parse(&alloc::format!(
                r#"{{"type":"state_push","state":{{"members":{{{members}}},"counters":{{{counters}}}}}}}"#
            ))
        };
        assert!(push("", "").is_ok());
        assert!(push(r#""a":{"incarnation":1,"status":"alive","x":0}"#, "").is_ok());
        for bad in [
            r#""a":{"incarnation":1}"#,
            r#""a":{"status":"alive"}"#,
            r#""a":{"incarnation":1,"status":"sleeping"}"#,
            r#""":{"incarnation":1,"status":"alive"}"#,
            r#""a#b":{"incarnation":1,"status":"alive"}"#,
        ] {
            assert!(push(bad, "").is_err(), "{bad}");
        }
        for bad in ["-1", "2.0", "18446744073709551616", "\"1\"", "null"] {
            assert!(push("", &alloc::format!(r#""c":{{"a#1":{bad}}}"#)).is_err(), "{bad}");
        }
        assert!(push("", r#""c":{"a":1}"#).is_err());
        assert!(Message::parse(r#"{"type":"state_push"}"#).is_err());
    }

    proptest! {
        #[test]
        fn measuring_agrees_with_encoding(id in "\\PC{1,8}|[\"\\\\\u{1}\n]{1,4}x", addr in ".{0,12}", value: u64, inc: u64) {
            prop_assume!(NodeId::new(&id).is_ok());
            let node = NodeId::new(&id).unwrap();
            let mut document = Document::default();
            let record = MemberRecord { addr: Addr::new(&addr), incarnation: Incarnation(inc), status: RecordStatus::Left };
            document.members.insert(node.clone(), record);
            let cells = BTreeMap::from([(Cell { node, incarnation: Incarnation(inc) }, value)]);
            document.counters.insert(CounterName::new("c\"").unwrap(), cells);
            let message = Message::StatePush { state: Arc::new(document) };
            let text = message.to_text();
            let measure = message.measure();
            prop_assert_eq!(measure.bytes, text.len());
            prop_assert_eq!(measure.escaped_bytes + 2, serde_json::to_string(&text).unwrap().len());
            prop_assert_eq!(Message::parse(&text).unwrap(), message);
        }
    }
}
