//! Steps 2 to 4 of the receive path, and their inverse: a frame's body as an authenticated envelope.
//!
//! The body is one JSON object. Its MAC covers every field but `key_id`, each preceded by its length, so no
//! byte of one field can pass for a byte of another. Nothing past [`open`] runs on unauthenticated bytes.
//!
//! Invariants: [`encoded_len`] equals what [`seal`] writes, since both run the same writer; [`open`] gives back
//! what [`seal`] was given.
//!
//! A sender whose id breaks the id rule is refused as malformed: the header cannot be typed, and an envelope is
//! the one place where nothing is lenient.
//!
//! Absent: several keys (`key_id` is always 0), encryption.
//!
//! Spec: docs/protocol.md, Wire and envelope; Receive path (steps 2 to 4).

use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt;

use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::Deserialize;
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

use crate::config::Secret;
use crate::guards::Guards;
use crate::id::{ClusterName, Incarnation, NodeId, Seq};
use crate::limits::{FRAME_BYTES_MAX, FRAME_PREFIX_BYTES};
use crate::wire::message::{Measure, Sink, escaped_len};
use crate::wire::{Header, Reject};

/// The protocol version that this code speaks.
pub const VERSION: u8 = 1;
/// The only key so far.
pub const KEY_ID: u8 = 0;
/// Hex digits of a MAC.
const MAC_HEX_BYTES: usize = 64;
/// Room for the length prefix in front of a body under construction: four characters of one byte each.
const PREFIX_ROOM: &str = "\0\0\0\0";

const _: () = assert!(PREFIX_ROOM.len() == FRAME_PREFIX_BYTES, "the prefix overwrites its room exactly");
const _: () = assert!(FRAME_BYTES_MAX <= u32::MAX as usize, "the prefix holds 32 bits");

/// The shared secret, made ready: the key schedule is run once and copied for every frame. It knows which checks of
/// [`open`] stand: all, but in a simulation that proves that one is missed.
#[derive(Clone)]
pub struct Key {
    schedule: Hmac<Sha256>,
    guards: Guards,
}

impl Key {
    /// Prepares `secret`.
    pub fn new(secret: &Secret) -> Self {
        Self::with_guards(secret, Guards::ON)
    }

    /// As [`Key::new`], with guards turned off: for simulations alone.
    pub(crate) fn with_guards(secret: &Secret, guards: Guards) -> Self {
        let schedule = Hmac::new_from_slice(secret.as_bytes()).expect("HMAC takes a key of any length");
        Self { schedule, guards }
    }

    /// The MAC of one frame, as 64 lower-case hex digits.
    fn mac(&self, fields: &Signed<'_>) -> [u8; MAC_HEX_BYTES] {
        let mut mac = self.schedule.clone();
        let incarnation =
            if self.guards.mac_covers_incarnation { fields.incarnation } else { Incarnation::default() };
        Signed { incarnation, ..*fields }.feed(|part| mac.update(part));
        hex(&mac.finalize().into_bytes().into())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// What the MAC covers: everything but `key_id`. That one says which key to check with, so a changed one fails the
/// check by itself.
struct Signed<'a> {
    v: u8,
    cluster: &'a str,
    sender: &'a str,
    incarnation: Incarnation,
    seq: Seq,
    payload: &'a str,
}

impl Signed<'_> {
    /// Hands over the signing input piece by piece: each field's length as 8 big-endian bytes, then the field.
    fn feed(&self, mut update: impl FnMut(&[u8])) {
        let incarnation = self.incarnation.0.to_be_bytes();
        let seq = self.seq.0.to_be_bytes();
        let (cluster, sender, payload) = (self.cluster, self.sender, self.payload);
        for field in
            [&[self.v], cluster.as_bytes(), sender.as_bytes(), &incarnation, &seq, payload.as_bytes()]
        {
            update(&(field.len() as u64).to_be_bytes());
            update(field);
        }
    }
}

/// The frame would exceed [`FRAME_BYTES_MAX`]; peers would have to reject it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a body of {body_bytes} bytes exceeds the frame cap of {FRAME_BYTES_MAX}")]
pub struct TooLarge {
    /// Bytes of the body, prefix excluded.
    pub body_bytes: usize,
}

/// Builds a whole frame, length prefix included, in one allocation.
///
/// # Errors
/// [`TooLarge`] when the body exceeds the frame cap; nothing was signed then.
pub fn seal(key: &Key, cluster: &ClusterName, header: &Header, payload: &str) -> Result<Bytes, TooLarge> {
    let measure = Measure { bytes: payload.len(), escaped_bytes: escaped_len(payload) };
    let body_bytes = encoded_len(cluster, header, measure);
    if body_bytes > FRAME_BYTES_MAX {
        return Err(TooLarge { body_bytes });
    }
    Ok(seal_measured(key, cluster, header, payload, body_bytes))
}

/// [`seal`] without the cap, for a payload that makes a body of about `body_bytes`.
pub(crate) fn seal_measured(
    key: &Key,
    cluster: &ClusterName,
    header: &Header,
    payload: &str,
    body_bytes: usize,
) -> Bytes {
    let signed = Signed {
        v: VERSION,
        cluster: cluster.as_str(),
        sender: header.sender.as_str(),
        incarnation: header.incarnation,
        seq: header.seq,
        payload,
    };
    let mac = key.mac(&signed);
    let mut frame = String::with_capacity(FRAME_PREFIX_BYTES + body_bytes);
    frame.push_str(PREFIX_ROOM);
    write_before_payload(&mut frame, cluster, header);
    frame.string(payload);
    // Hex digits are text, so the fallback is never taken.
    write_after_payload(&mut frame, core::str::from_utf8(&mac).unwrap_or_default());

    let mut frame = frame.into_bytes();
    // Only a simulation without the cap could come near 32 bits.
    let body_bytes = u32::try_from(frame.len() - FRAME_PREFIX_BYTES).unwrap_or(u32::MAX);
    frame[..FRAME_PREFIX_BYTES].copy_from_slice(&body_bytes.to_be_bytes());
    Bytes::from(frame)
}

/// Bytes of the body that [`seal`] would write, prefix excluded, without writing it.
pub fn encoded_len(cluster: &ClusterName, header: &Header, payload: Measure) -> usize {
    let mut envelope = Measure::default();
    write_before_payload(&mut envelope, cluster, header);
    write_after_payload(&mut envelope, "");
    envelope.bytes + payload.escaped_bytes + 2 + MAC_HEX_BYTES
}

fn write_before_payload(out: &mut impl Sink, cluster: &ClusterName, header: &Header) {
    out.raw(r#"{"v":"#);
    out.number(VERSION.into());
    out.raw(r#","key_id":"#);
    out.number(KEY_ID.into());
    out.raw(r#","cluster":"#);
    out.string(cluster.as_str());
    out.raw(r#","sender":"#);
    out.string(header.sender.as_str());
    out.raw(r#","incarnation":"#);
    out.number(header.incarnation.0);
    out.raw(r#","seq":"#);
    out.number(header.seq.0);
    out.raw(r#","payload":"#);
}

fn write_after_payload(out: &mut impl Sink, mac: &str) {
    out.raw(r#","mac":""#);
    out.raw(mac);
    out.raw(r#""}"#);
}

/// The envelope as it travels. Every field is required, none may come twice, unknown ones are passed over;
/// a number outside its type is an error. Strings without escapes stay where they are.
#[derive(Deserialize)]
struct Envelope<'a> {
    v: u8,
    key_id: u8,
    #[serde(borrow)]
    cluster: Cow<'a, str>,
    #[serde(borrow)]
    sender: Cow<'a, str>,
    incarnation: Incarnation,
    seq: Seq,
    #[serde(borrow)]
    payload: Cow<'a, str>,
    #[serde(borrow)]
    mac: Cow<'a, str>,
}

impl<'a> Envelope<'a> {
    fn parse(body: &'a [u8]) -> Option<Self> {
        // Serde would take the fields from an array as well.
        let is_object = body.trim_ascii_start().first() == Some(&b'{');
        is_object.then(|| serde_json::from_slice(body).ok()).flatten()
    }

    fn signed(&self) -> Signed<'_> {
        Signed {
            v: self.v,
            cluster: &self.cluster,
            sender: &self.sender,
            incarnation: self.incarnation,
            seq: self.seq,
            payload: &self.payload,
        }
    }
}

/// Reads and authenticates a body: the head, and the payload as the text that was signed.
///
/// # Errors
/// The first check that failed, in the order of the receive path: [`Reject::Malformed`], [`Reject::Version`],
/// [`Reject::KeyId`], [`Reject::Cluster`], [`Reject::Mac`].
pub fn open(body: &[u8], key: &Key, cluster: &ClusterName) -> Result<(Header, String), Reject> {
    let envelope = Envelope::parse(body).ok_or(Reject::Malformed)?;
    let sender = NodeId::new(&envelope.sender).map_err(|_| Reject::Malformed)?;
    if envelope.v != VERSION {
        return Err(Reject::Version);
    }
    if envelope.key_id != KEY_ID {
        return Err(Reject::KeyId);
    }
    if envelope.cluster != cluster.as_str() && key.guards.cluster_checked {
        return Err(Reject::Cluster);
    }
    let expected = key.mac(&envelope.signed());
    // Compared as text: an upper-case digit is simply another byte, and so is anything that is no digit.
    if !bool::from(expected.ct_eq(envelope.mac.as_bytes())) && key.guards.mac_checked {
        return Err(Reject::Mac);
    }
    let header = Header { sender, incarnation: envelope.incarnation, seq: envelope.seq };
    Ok((header, envelope.payload.into_owned()))
}

fn hex(bytes: &[u8; MAC_HEX_BYTES / 2]) -> [u8; MAC_HEX_BYTES] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [0; MAC_HEX_BYTES];
    for (pair, byte) in text.chunks_exact_mut(2).zip(bytes) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 0xf)];
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::vec::Vec;
    use proptest::prelude::*;
    use sha2::Digest as _;

    const SECRET: &str = "a-shared-cluster-secret-value-32";

    fn key() -> Key {
        Key::new(&Secret::new(SECRET))
    }

    fn cluster() -> ClusterName {
        ClusterName::new("autumn").unwrap()
    }

    fn header(sender: &str, incarnation: u64, seq: u64) -> Header {
        Header { sender: NodeId::new(sender).unwrap(), incarnation: Incarnation(incarnation), seq: Seq(seq) }
    }

    fn sealed(payload: &str) -> Bytes {
        seal(&key(), &cluster(), &header("node-a", 1, 2), payload).unwrap().split_off(FRAME_PREFIX_BYTES)
    }

    fn verdict(body: &str) -> Result<(), Reject> {
        open(body.as_bytes(), &key(), &cluster()).map(|_| ())
    }

    #[test]
    fn the_secret_is_not_printed() {
        assert_eq!(format!("{:?}", key()), "Key(..)");
    }

    #[test]
    fn a_body_above_the_cap_is_refused_before_it_is_built() {
        let room = FRAME_BYTES_MAX - sealed("").len();
        assert_eq!(sealed(&"x".repeat(room)).len(), FRAME_BYTES_MAX);
        let refused = seal(&key(), &cluster(), &header("node-a", 1, 2), &"x".repeat(room + 1));
        assert_eq!(refused, Err(TooLarge { body_bytes: FRAME_BYTES_MAX + 1 }));
    }

    #[test]
    fn an_envelope_is_an_object_with_every_field_once_and_in_its_range() {
        let good = core::str::from_utf8(&sealed("{}")).map(String::from).unwrap();
        assert_eq!(verdict(&good), Ok(()));
        assert_eq!(verdict(&format!(" {good}\n")), Ok(()));
        assert_eq!(verdict(&good.replacen('{', r#"{"later":{"v":[2]},"#, 1)), Ok(()));
        assert_eq!(verdict(&good.replace(r#""v":1"#, r#""v":255"#)), Err(Reject::Version));
        let malformed = [
            good.replace(r#""v":1"#, r#""v":256"#),
            good.replace(r#""v":1"#, r#""v":-1"#),
            good.replace(r#""v":1"#, r#""v":1.0"#),
            good.replace(r#""v":1"#, r#""v":"1""#),
            good.replace(r#""v":1"#, r#""v":null"#),
            good.replace(r#""v":1"#, r#""v":1,"v":1"#),
            good.replace(r#""seq":2"#, r#""seq":18446744073709551616"#),
            good.replace(r#""payload":"{}""#, r#""payload":{}"#),
            good.replace(r#""sender":"node-a""#, r#""sender":"node#a""#),
            good.replace(r#""sender":"node-a""#, r#""sender":" ""#),
            format!("{good}{{}}"),
            format!("[{good}]"),
            r#"[1,0,"autumn","node-a",1,2,"{}",""]"#.into(),
            "[".repeat(60_000),
            String::new(),
        ];
        for body in malformed {
            assert_eq!(verdict(&body), Err(Reject::Malformed), "{body}");
        }
    }

    #[test]
    fn checks_run_in_the_order_of_the_spec() {
        let bad = |v: u16, key_id: u16, cluster: &str| {
            format!(
                r#"{{"v":{v},"key_id":{key_id},"cluster":"{cluster}","sender":"a","incarnation":1,"seq":0,"payload":"","mac":""}}"#
            )
        };
        assert_eq!(verdict(&bad(300, 1, "winter")), Err(Reject::Malformed));
        assert_eq!(verdict(&bad(2, 1, "winter")), Err(Reject::Version));
        assert_eq!(verdict(&bad(1, 1, "winter")), Err(Reject::KeyId));
        assert_eq!(verdict(&bad(1, 0, "winter")), Err(Reject::Cluster));
        assert_eq!(verdict(&bad(1, 0, "autumn")), Err(Reject::Mac));
    }

    #[test]
    fn a_mac_is_exactly_64_lower_case_hex_digits() {
        let good = core::str::from_utf8(&sealed("{}")).map(String::from).unwrap();
        let mac = &good[good.len() - 66..good.len() - 2];
        for bad in [&mac[1..], &format!("{mac}0"), &mac.to_ascii_uppercase(), "", &format!(" {}", &mac[1..])]
        {
            assert_eq!(verdict(&good.replace(mac, bad)), Err(Reject::Mac), "{bad}");
        }
    }

    #[derive(Deserialize)]
    struct Vectors {
        frames: Vec<Vector>,
    }

    #[derive(Deserialize)]
    struct Vector {
        name: String,
        verdict: String,
        body: String,
        signing_input_sha256: String,
        signing_input_len: usize,
    }

    fn vectors() -> Vec<Vector> {
        let file: Vectors = serde_json::from_str(include_str!("../testdata/frames.json")).unwrap();
        file.frames
    }

    #[test]
    fn the_signing_input_of_every_vector_is_reproduced() {
        for vector in vectors().iter().filter(|vector| vector.verdict != "malformed") {
            let envelope = Envelope::parse(vector.body.as_bytes()).unwrap();
            let mut input = Vec::new();
            envelope.signed().feed(|part| input.extend_from_slice(part));
            assert_eq!(input.len(), vector.signing_input_len, "{}", vector.name);
            let digest = hex(&Sha256::digest(&input).into());
            assert_eq!(digest, vector.signing_input_sha256.as_bytes(), "{}", vector.name);
        }
    }

    #[test]
    fn sealing_writes_every_accepted_vector_byte_for_byte() {
        let unknown_field = |vector: &Vector| vector.body.contains("trace");
        for vector in vectors().iter().filter(|vector| vector.verdict == "accept" && !unknown_field(vector)) {
            let (header, payload) = open(vector.body.as_bytes(), &key(), &cluster()).unwrap();
            let frame = seal(&key(), &cluster(), &header, &payload).unwrap();
            assert_eq!(&frame[FRAME_PREFIX_BYTES..], vector.body.as_bytes(), "{}", vector.name);
        }
    }

    proptest! {
        #[test]
        fn what_is_sealed_opens_and_its_length_was_known(
            sender in "[^#]{1,12}", incarnation: u64, seq: u64, payload in "(.|[\"\\\\\u{0}\n]){0,40}",
        ) {
            prop_assume!(NodeId::new(&sender).is_ok());
            let (key, cluster, header) = (key(), ClusterName::new("a\"\n").unwrap(), header(&sender, incarnation, seq));
            let frame = seal(&key, &cluster, &header, &payload).unwrap();
            let measure = Measure { bytes: payload.len(), escaped_bytes: escaped_len(&payload) };
            let (prefix, body) = frame.split_at(FRAME_PREFIX_BYTES);
            prop_assert_eq!(encoded_len(&cluster, &header, measure), body.len());
            prop_assert_eq!(prefix, u32::try_from(body.len()).unwrap().to_be_bytes());
            prop_assert_eq!(open(body, &key, &cluster), Ok((header, payload)));
        }

        #[test]
        fn no_bytes_panic_or_open(body in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(open(&body, &key(), &cluster()).is_err());
        }
    }
}
