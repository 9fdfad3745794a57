//! Fast mode: a [`Node`] whose messages cross the network as values.
//!
//! No bytes, no MAC, no connections: what arrives is vouched for by the engine. Lengths are those of the real
//! encoding, so the frame cap and bandwidth hold. Faults of bytes (corrupt, forge, flood) and of connections
//! (half_open) have nothing to act on here and report that they had no effect.

use std::net::SocketAddr;
use std::time::Duration;

use firedrill_core::config::Config;
use firedrill_core::endpoint::{Endpoint, LinkSizes};
use firedrill_core::guards::Guards;
use firedrill_core::id::NodeId;
use firedrill_core::io::{
    Alarm, Command, Event, Lane, NodeInput, NodeOutput, Outbox, Outgoing, Refusal, Reply,
};
use firedrill_core::issuance::writer::{Batch, Token};
use firedrill_core::node::Node;
use firedrill_core::time::{Instant, Now};
use firedrill_core::wire::Header;
use firedrill_core::wire::message::{Message, Payload};

use super::cluster::{ClusterMachine, Script, recovered, started, written};
use super::machine::{Boot, Effects, Input, Machine, Station};
use crate::engine::{Cause, FaultId, Wire};
use crate::scenario::model::FloodKind;

/// One frame as a value. Cloning it copies two pointers.
#[derive(Debug, Clone)]
pub struct ValueFrame {
    header: Header,
    message: Message,
    body_bytes: usize,
}

/// A [`Node`] as a [`Machine`].
#[derive(Debug)]
pub struct FastNode {
    node: Node,
    /// The head of the frame handled last, for observers: the node has consumed the frame by then.
    last_header: Option<Header>,
    outbox: Outbox<NodeOutput>,
}

impl Machine for FastNode {
    type Record = Batch;
    type Message = ValueFrame;
    type Command = Command;
    type Answer = Result<Reply, Refusal>;
    type Event = Event;
    type Alarm = Alarm;

    fn handle(&mut self, now: Now, input: Input<Self>, effects: &mut Effects<Self>) {
        let input = match input {
            Input::Boot => {
                effects.event(started(&self.node));
                NodeInput::Wake
            }
            Input::Deliver { message: ValueFrame { header, message, .. }, .. } => {
                self.last_header = Some(header.clone());
                NodeInput::Frame { header, payload: Payload::Value(message) }
            }
            Input::Command(command) => NodeInput::Command(command),
            Input::Persisted(token, outcome) => {
                NodeInput::Persisted { token: Token(token.0), written: written(outcome) }
            }
            Input::Wake => NodeInput::Wake,
        };
        self.node.handle(now, input, &mut self.outbox);
        for output in self.outbox.drain() {
            match output {
                NodeOutput::Send(Outgoing { targets, lane, header, message, body_bytes }) => {
                    let frame = ValueFrame { header, message, body_bytes };
                    match (lane, &*targets) {
                        (Lane::Direct, [target]) => effects.send(*target, frame),
                        (Lane::Direct | Lane::Normal | Lane::Farewell, _) => effects.send_all(targets, frame),
                    }
                }
                NodeOutput::Persist { token, batch } => effects.persist(super::store::Token(token.0), batch),
                NodeOutput::Event(event) => effects.event(event),
                NodeOutput::Reply(reply) => effects.answer(reply),
                NodeOutput::Departed => effects.depart(),
                NodeOutput::Alarm(alarm) => effects.alarm(alarm),
            }
        }
    }

    fn next_wake(&self) -> Option<Instant> {
        self.node.next_wake().map(|(at, _)| at)
    }

    fn stuck(&self) -> Option<Alarm> {
        self.node.next_wake().map(|(_, wake)| Alarm::WakeStuck { wake })
    }

    fn frame_bytes(message: &ValueFrame) -> Option<usize> {
        Some(message.body_bytes)
    }
}

impl ClusterMachine for FastNode {
    const WIRE: Wire = Wire::Fast;

    fn boot(config: &Config, guards: Guards, boot: Boot<'_, Batch>) -> Self {
        let node = Node::with_guards(config, boot.seed, recovered(boot.recovered), boot.now, guards);
        Self { node, last_header: None, outbox: Outbox::new() }
    }

    fn node(&self) -> &Node {
        &self.node
    }

    fn endpoint(&self) -> Option<&Endpoint> {
        None
    }

    fn links(&self) -> LinkSizes {
        LinkSizes::default()
    }

    fn delivered(&self) -> Cause<'_> {
        self.last_header.as_ref().map_or(Cause::Wire, Cause::Frame)
    }

    fn half_open(&mut self, _to: SocketAddr, _fault: FaultId) {}

    fn replay(frames: Vec<ValueFrame>, stranger: impl FnOnce() -> Station) -> Script<Self> {
        let station = stranger();
        Script(frames.into_iter().map(|frame| (station, Duration::ZERO, frame)).collect())
    }

    fn forge(
        _sender: &NodeId,
        _to: &Config,
        _count: usize,
        _stranger: impl FnMut() -> Station,
    ) -> Script<Self> {
        Script(Vec::new())
    }

    fn flood(_kind: FloodKind, _connections: usize, _stranger: impl FnMut() -> Station) -> Script<Self> {
        Script(Vec::new())
    }
}
