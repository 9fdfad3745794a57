//! The digest of a run misses nothing that a step shows: two steps that differ anywhere digest differently.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod event_common;

use std::collections::BTreeSet;
use std::sync::Arc;

use event_common::{A, B, addr, hosts};
use firedrill_core::endpoint::LinkSizes;
use firedrill_core::id::{CounterName, Incarnation, NodeId, Seq};
use firedrill_core::io::{Alarm, Command, Event, NodeInput, Outbox, Wake};
use firedrill_core::node::{Node, Recovered};
use firedrill_core::rng::Seed;
use firedrill_core::time::{Instant, Now, WallTime};
use firedrill_core::wire::Header;
use firedrill_core::wire::message::{Document, MemberRecord, Message, Payload, RecordStatus};
use firedrill_sim::digest::Digest;
use firedrill_sim::engine::{Cause, Counts, Step};

fn now(ms: u64) -> Now {
    Now { instant: Instant::from_micros(ms * 1000), wall: WallTime::from_unix_ms(1_000_000) }
}

/// A node that handled these inputs at these milliseconds.
fn node(inputs: impl IntoIterator<Item = (u64, NodeInput)>) -> Node {
    let mut node = Node::new(&hosts(2)[0].node_config(), Seed::from_u64(1), Recovered::default(), now(0));
    for (ms, input) in inputs {
        node.handle(now(ms), input, &mut Outbox::new());
    }
    node
}

fn increment(by: u64) -> NodeInput {
    NodeInput::Command(Command::Increment { counter: CounterName::new("sightings").unwrap(), by })
}

fn header(sender: &str, incarnation: u64, seq: u64) -> Header {
    let sender = NodeId::new(sender).unwrap();
    Header { sender, incarnation: Incarnation(incarnation), seq: Seq(seq) }
}

/// A push in which the other host shows itself.
fn push() -> NodeInput {
    let header = header("n01", 1_000_000, 0);
    let record =
        MemberRecord { addr: addr(1).into(), incarnation: header.incarnation, status: RecordStatus::Alive };
    let mut document = Document::default();
    document.members.insert(header.sender.clone(), record);
    NodeInput::Frame { header, payload: Payload::Value(Message::StatePush { state: Arc::new(document) }) }
}

fn step(node: &Node) -> Step<'_> {
    Step {
        at: Instant::from_micros(5),
        now: now(7),
        host: A,
        boot: 0,
        cause: Cause::Wake,
        node,
        counts: Counts::Node,
        events: &[],
        frames_sent: 0,
        bytes_sent: 0,
        links: LinkSizes::default(),
        alarms: &[],
    }
}

fn digest(step: &Step<'_>) -> u128 {
    let mut digest = Digest::new();
    digest.absorb(step);
    digest.finish()
}

#[test]
fn every_field_of_a_step_moves_the_digest() {
    let node = node([]);
    let base = step(&node);
    let links = |inbound, links, queue_longest| LinkSizes { inbound, links, queue_longest };
    let [head, other_sender, other_boot, other_number] =
        [("n01", 1, 1), ("n02", 1, 1), ("n01", 2, 1), ("n01", 1, 2)]
            .map(|(id, boot, seq)| header(id, boot, seq));
    let increment = Command::Increment { counter: CounterName::new("sightings").unwrap(), by: 1 };
    let event = [Event::MemberDown { id: NodeId::new("n01").unwrap() }];
    let other_event = [Event::MemberDown { id: NodeId::new("n02").unwrap() }];
    let alarm = [Alarm::WakeStuck { wake: Wake::Round }];
    let steps = [
        base,
        Step { at: Instant::from_micros(6), ..base },
        Step { now: Now { instant: Instant::from_micros(8), ..base.now }, ..base },
        Step { now: Now { wall: WallTime::from_unix_ms(8), ..base.now }, ..base },
        Step { host: B, ..base },
        Step { boot: 1, ..base },
        Step { bytes_sent: 1, ..base },
        Step { frames_sent: 1, ..base },
        Step { links: links(1, 0, 0), ..base },
        Step { links: links(0, 1, 0), ..base },
        Step { links: links(0, 0, 1), ..base },
        Step { cause: Cause::Boot, ..base },
        Step { cause: Cause::Wire, ..base },
        Step { cause: Cause::Frame(&head), ..base },
        Step { cause: Cause::Frame(&other_sender), ..base },
        Step { cause: Cause::Frame(&other_boot), ..base },
        Step { cause: Cause::Frame(&other_number), ..base },
        Step { cause: Cause::Command(&Command::Leave), ..base },
        Step { cause: Cause::Command(&increment), ..base },
        Step { events: &event, ..base },
        Step { events: &other_event, ..base },
        Step { alarms: &alarm, ..base },
    ];
    let digests: BTreeSet<u128> = steps.iter().map(digest).collect();
    assert_eq!(digests.len(), steps.len());
}

#[test]
fn the_versions_of_document_and_view_move_the_digest() {
    let (fresh, counted) = (node([]), node([(1, increment(1))]));
    assert_eq!(fresh.view_version(), counted.view_version());
    assert_ne!(digest(&step(&fresh)), digest(&step(&counted)), "the document's version");

    let (seen, lost) = (node([(1, push())]), node([(1, push()), (2600, NodeInput::Wake)]));
    assert_eq!(seen.document_version(), lost.document_version());
    assert_ne!(seen.view_version(), lost.view_version());
    assert_ne!(digest(&step(&seen)), digest(&step(&lost)), "the view's version");
}

#[test]
fn a_step_that_sends_carries_the_document_itself() {
    let (one, two) = (node([(1, increment(1))]), node([(1, increment(2))]));
    assert_eq!(one.document_version(), two.document_version());
    let sends = |node| digest(&Step { frames_sent: 1, ..step(node) });
    assert_eq!(digest(&step(&one)), digest(&step(&two)), "nothing left the node");
    assert_ne!(sends(&one), sends(&two));
}
