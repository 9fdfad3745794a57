//! What strangers do to a host in full mode, as scripts of packets.
//!
//! A stranger knows the port and nothing else. It acts blindly: it sends what its script says at the moments
//! its script says, whatever the host answers.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use firedrill_core::id::{ClusterName, NodeId};
use firedrill_core::limits::FRAME_BYTES_MAX;

use super::capture::FRAMES_KEPT;
use super::cluster::Script;
use super::full::FullNode;
use super::machine::Station;
use super::tcp::{Connection, Packet, Segment};
use crate::scenario::model::FloodKind;

/// Between two acts of one stranger.
const STEP: Duration = Duration::from_millis(1);
/// Between the dials of two strangers.
const BETWEEN_DIALS: Duration = Duration::from_micros(100);
/// Between two frames of well-framed garbage.
const BETWEEN_GARBAGE: Duration = Duration::from_millis(100);
/// Frames of garbage on one connection: more than any host should take.
const GARBAGE_FRAMES: u64 = 8;
/// Bytes of one garbage body.
const GARBAGE_BYTES: usize = 64;
/// The incarnation a forger claims: above any clock, so that believing it would show.
const FORGED_INCARNATION: u64 = 1 << 52;

/// One stranger's connection being written down.
struct Act<'a> {
    script: &'a mut Script<FullNode>,
    station: Station,
    at: Duration,
    sent: u64,
}

impl<'a> Act<'a> {
    fn dial(script: &'a mut Script<FullNode>, station: Station, at: Duration) -> Self {
        let mut act = Self { script, station, at, sent: 0 };
        act.push(Segment::Syn);
        act
    }

    fn send(&mut self, after: Duration, bytes: Bytes) {
        self.at += after;
        let number = self.sent;
        self.sent += 1;
        self.push(Segment::Data { number, ack_wanted: false, bytes });
    }

    fn close(&mut self) {
        self.at += STEP;
        self.push(Segment::Close);
    }

    fn push(&mut self, segment: Segment) {
        let connection = Connection { dialler: self.station, boot: 0, link: 0 };
        self.script.0.push((self.station, self.at, Packet { connection, segment }));
    }
}

/// How long a replay of so many frames at most goes on after its dial.
pub(crate) fn replay_lasts(count: usize) -> Duration {
    STEP.saturating_mul(u32::try_from(count.min(FRAMES_KEPT)).unwrap_or(u32::MAX))
}

/// Sends captured frames again over one connection, then closes it.
pub(in crate::engine) fn replay(station: Station, frames: impl Iterator<Item = Bytes>) -> Script<FullNode> {
    let mut script = Script(Vec::new());
    let mut act = Act::dial(&mut script, station, Duration::ZERO);
    for frame in frames {
        act.send(STEP, frame);
    }
    act.close();
    script
}

/// Leaves in `sender`'s name with a MAC that no secret made, one connection each: three on one would close it.
pub(in crate::engine) fn forge(
    sender: &NodeId,
    cluster: &ClusterName,
    count: usize,
    mut stranger: impl FnMut() -> Station,
) -> Script<FullNode> {
    let mut script = Script(Vec::new());
    let mut at = Duration::ZERO;
    for seq in 0..count {
        let body = serde_json::json!({
            "v": 1,
            "key_id": 0,
            "cluster": cluster.as_str(),
            "sender": sender.as_str(),
            "incarnation": FORGED_INCARNATION,
            "seq": seq,
            "payload": r#"{"type":"leave"}"#,
            "mac": "0".repeat(64),
        });
        let mut act = Act::dial(&mut script, stranger(), at);
        act.send(STEP, framed(body.to_string().as_bytes()));
        act.close();
        at += BETWEEN_DIALS;
    }
    script
}

/// Connections that want to cost the host something.
pub(in crate::engine) fn flood(
    kind: FloodKind,
    connections: usize,
    mut stranger: impl FnMut() -> Station,
) -> Script<FullNode> {
    let mut script = Script(Vec::new());
    let mut at = Duration::ZERO;
    for _ in 0..connections {
        let mut act = Act::dial(&mut script, stranger(), at);
        match kind {
            FloodKind::Silent => {}
            FloodKind::Garbage => {
                for _ in 0..GARBAGE_FRAMES {
                    act.send(BETWEEN_GARBAGE, framed(&[b'?'; GARBAGE_BYTES]));
                }
            }
            FloodKind::Oversize => act.send(STEP, prefix(FRAME_BYTES_MAX + 1)),
            FloodKind::HalfFrame => {
                let whole = framed(&[b'?'; GARBAGE_BYTES]);
                act.send(STEP, whole.slice(..whole.len() / 2));
            }
        }
        at += BETWEEN_DIALS;
    }
    script
}

fn prefix(length: usize) -> Bytes {
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    Bytes::copy_from_slice(&length.to_be_bytes())
}

fn framed(body: &[u8]) -> Bytes {
    let mut frame = BytesMut::from(&prefix(body.len())[..]);
    frame.put_slice(body);
    frame.freeze()
}
