//! Full mode: an [`Endpoint`] on modelled TCP. Real bytes, real MACs; connections as packets.
//!
//! What the model keeps of TCP, as far as a process can tell:
//! - a dial costs a round trip, is refused where nobody listens, and meets silence where nobody runs;
//! - a write is one packet with one whole frame. It completes at once while fewer than [`WINDOW_FRAMES`] frames
//!   are unacknowledged (the kernel buffers of both sides) and waits otherwise, so a peer that reads nothing
//!   lets writes run into their timeout;
//! - power loss is silent; a process that ends closes its connections after its last words; bytes for a
//!   connection that the receiver does not know are answered with a reset.
//!
//! What it leaves out: a frame that is lost stays lost (loss acts on whole frames; there is no retransmission),
//! and acknowledgements are sent only when asked for. The sender asks with every frame from half a window on,
//! which costs one more event in 32 frames instead of a timer a frame and can block no sender that a kernel
//! would not block.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use bytes::Bytes;
use firedrill_core::config::ClusterConfig;
use firedrill_core::endpoint::{Endpoint, LinkSizes};
use firedrill_core::guards::Guards;
use firedrill_core::id::NodeId;
use firedrill_core::io::{
    Alarm, Command, EndpointInput, EndpointOutput, Event, InboundId, LinkId, Outbox, Refusal, Reply,
};
use firedrill_core::limits::FRAME_PREFIX_BYTES;
use firedrill_core::node::{Node, Recovered};
use firedrill_core::time::{Instant, Now};

use super::cluster::{ClusterMachine, Script};
use super::machine::{Boot, Effects, Input, Machine, Station};
use super::strangers;
use crate::engine::{Cause, FaultId, Wire};
use crate::scenario::model::FloodKind;

/// Frames that the kernels of both sides hold for one connection before a write waits.
const WINDOW_FRAMES: u64 = 64;

/// One connection, for both its ends. Never used again: a reboot and a new dial make new ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::engine) struct Connection {
    pub(in crate::engine) dialler: Station,
    /// The dialler's boot.
    pub(in crate::engine) boot: u32,
    /// The dialler's number for it.
    pub(in crate::engine) link: u64,
}

/// What a packet does. The first three come from the dialler, the others from the side that accepted.
#[derive(Debug, Clone)]
pub(in crate::engine) enum Segment {
    Syn,
    Data {
        number: u64,
        ack_wanted: bool,
        bytes: Bytes,
    },
    Close,
    Accepted,
    /// Everything below this number arrived or is lost.
    Ack(u64),
    /// Closed, refused or unknown.
    Reset,
}

/// One packet of the modelled TCP.
#[derive(Debug, Clone)]
pub struct Packet {
    pub(in crate::engine) connection: Connection,
    pub(in crate::engine) segment: Segment,
}

/// A connection this side dialled.
#[derive(Debug)]
struct Outbound {
    addr: SocketAddr,
    open: bool,
    sent: u64,
    acked: u64,
    /// The write that waits for room.
    waiting: Option<Bytes>,
    /// The fault that made the connection carry nothing.
    black_hole: Option<FaultId>,
}

/// A connection this side accepted.
#[derive(Debug)]
struct Inbound {
    id: InboundId,
    peer: Station,
}

/// An [`Endpoint`] with its kernel, as a [`Machine`].
#[derive(Debug)]
pub struct FullNode {
    endpoint: Endpoint,
    station: Station,
    boot: u32,
    outbound: BTreeMap<LinkId, Outbound>,
    inbound: BTreeMap<Connection, Inbound>,
    connections: BTreeMap<InboundId, Connection>,
    next_inbound: u64,
    /// Dials that came while accepting is paused; `None` while it is not.
    backlog: Option<VecDeque<(Connection, Station)>>,
    /// What the kernel has to tell the endpoint; empty between calls.
    todo: VecDeque<EndpointInput>,
    outbox: Outbox<EndpointOutput>,
}

impl Machine for FullNode {
    type Message = Packet;
    type Command = Command;
    type Answer = Result<Reply, Refusal>;
    type Event = Event;
    type Alarm = Alarm;

    fn handle(&mut self, now: Now, input: Input<Self>, effects: &mut Effects<Self>) {
        match input {
            Input::Boot => {
                effects.event(Event::Started { incarnation: self.node().boot_incarnation() });
                self.todo.push_back(EndpointInput::Wake);
            }
            // The gossip half writes nothing to disk.
            Input::Wake | Input::Persisted(_) => self.todo.push_back(EndpointInput::Wake),
            Input::Command(command) => self.todo.push_back(EndpointInput::Command(command)),
            Input::Deliver { from, message } => self.packet(from, message, effects),
        }
        let mut outbox = std::mem::take(&mut self.outbox);
        while let Some(input) = self.todo.pop_front() {
            self.endpoint.handle(now, input, &mut outbox);
            for output in outbox.drain() {
                self.carry_out(output, effects);
            }
        }
        self.outbox = outbox;
    }

    fn next_wake(&self) -> Option<Instant> {
        self.endpoint.next_wake().map(|(at, _)| at)
    }

    fn frame_bytes(message: &Packet) -> Option<usize> {
        match &message.segment {
            Segment::Data { bytes, .. } => Some(bytes.len().saturating_sub(FRAME_PREFIX_BYTES)),
            Segment::Syn | Segment::Close | Segment::Accepted | Segment::Ack(_) | Segment::Reset => None,
        }
    }

    fn corrupt(message: &mut Packet, draw: u64) -> bool {
        let Segment::Data { bytes, .. } = &mut message.segment else { return false };
        if bytes.is_empty() {
            return false;
        }
        let mut altered = bytes.to_vec();
        let bits = altered.len() as u64 * 8;
        let bit = usize::try_from(draw % bits).unwrap_or(0);
        altered[bit / 8] ^= 1 << (bit % 8);
        *bytes = Bytes::from(altered);
        true
    }

    fn refuse(message: &Packet) -> Option<Packet> {
        match message.segment {
            Segment::Syn | Segment::Data { .. } => {
                Some(Packet { connection: message.connection, segment: Segment::Reset })
            }
            Segment::Close | Segment::Accepted | Segment::Ack(_) | Segment::Reset => None,
        }
    }
}

impl FullNode {
    /// What the kernel does with a packet.
    fn packet(&mut self, from: Station, packet: Packet, effects: &mut Effects<Self>) {
        let Packet { connection, segment } = packet;
        match segment {
            Segment::Syn => match &mut self.backlog {
                Some(backlog) => backlog.push_back((connection, from)),
                None => self.accept(connection, from, effects),
            },
            Segment::Data { number, ack_wanted, bytes } => match self.inbound.get(&connection) {
                Some(Inbound { id, .. }) => {
                    self.todo.push_back(EndpointInput::Received { inbound: *id, bytes });
                    if ack_wanted {
                        let segment = Segment::Ack(number.saturating_add(1));
                        effects.reply(from, Packet { connection, segment });
                    }
                }
                None => effects.reply(from, Packet { connection, segment: Segment::Reset }),
            },
            Segment::Close => {
                if let Some(Inbound { id, .. }) = self.inbound.remove(&connection) {
                    self.connections.remove(&id);
                    self.todo.push_back(EndpointInput::InboundClosed { inbound: id });
                } else if let Some(backlog) = &mut self.backlog {
                    backlog.retain(|(waiting, _)| *waiting != connection);
                }
            }
            Segment::Accepted | Segment::Ack(_) | Segment::Reset => {
                self.answer(from, connection, &segment, effects);
            }
        }
    }

    /// What the kernel does with an answer of the side that accepted.
    fn answer(
        &mut self,
        from: Station,
        connection: Connection,
        segment: &Segment,
        effects: &mut Effects<Self>,
    ) {
        let reset = matches!(segment, Segment::Reset);
        if connection.boot != self.boot {
            // Dialled by a process that is gone.
            if !reset {
                effects.reply(from, Packet { connection, segment: Segment::Close });
            }
            return;
        }
        let link = LinkId(connection.link);
        let Some(outbound) = self.outbound.get_mut(&link) else { return };
        if outbound.black_hole.is_some() {
            return;
        }
        match segment {
            Segment::Accepted => {
                outbound.open = true;
                self.todo.push_back(EndpointInput::Connected { link });
            }
            Segment::Ack(below) => {
                outbound.acked = outbound.acked.max(*below).min(outbound.sent);
                if let Some(frame) = outbound.waiting.take() {
                    self.write(link, frame, effects);
                }
            }
            Segment::Reset => {
                let open = outbound.open;
                self.outbound.remove(&link);
                self.todo.push_back(if open {
                    EndpointInput::LinkClosed { link }
                } else {
                    EndpointInput::DialFailed { link }
                });
            }
            Segment::Syn | Segment::Data { .. } | Segment::Close => {}
        }
    }

    fn accept(&mut self, connection: Connection, from: Station, effects: &mut Effects<Self>) {
        let id = InboundId(self.next_inbound);
        self.next_inbound += 1;
        self.inbound.insert(connection, Inbound { id, peer: from });
        self.connections.insert(id, connection);
        effects.reply(from, Packet { connection, segment: Segment::Accepted });
        self.todo.push_back(EndpointInput::Accepted { inbound: id });
    }

    /// What the kernel does for the endpoint.
    fn carry_out(&mut self, output: EndpointOutput, effects: &mut Effects<Self>) {
        match output {
            EndpointOutput::Dial { link, addr } => {
                let outbound =
                    Outbound { addr, open: false, sent: 0, acked: 0, waiting: None, black_hole: None };
                self.outbound.insert(link, outbound);
                let connection = self.connection(link);
                effects.send(addr, Packet { connection, segment: Segment::Syn });
            }
            EndpointOutput::Write { link, frame } => self.write(link, frame, effects),
            EndpointOutput::CloseLink { link } => self.close_link(link, effects),
            EndpointOutput::CloseInbound { inbound } => {
                if let Some(connection) = self.connections.remove(&inbound)
                    && let Some(Inbound { peer, .. }) = self.inbound.remove(&connection)
                {
                    effects.reply(peer, Packet { connection, segment: Segment::Reset });
                }
            }
            EndpointOutput::PauseAccept => {
                self.backlog.get_or_insert_default();
            }
            EndpointOutput::ResumeAccept => {
                for (connection, from) in self.backlog.take().into_iter().flatten() {
                    self.accept(connection, from, effects);
                }
            }
            EndpointOutput::Event(event) => effects.event(event),
            EndpointOutput::Reply(reply) => effects.answer(reply),
            EndpointOutput::Departed { flushed: _ } => {
                self.close_all(effects);
                effects.depart();
            }
            EndpointOutput::Alarm(alarm) => effects.alarm(alarm),
        }
    }

    /// Writes a frame if the window has room; keeps it until then otherwise.
    fn write(&mut self, link: LinkId, frame: Bytes, effects: &mut Effects<Self>) {
        let connection = self.connection(link);
        let Some(outbound) = self.outbound.get_mut(&link) else { return };
        if outbound.sent - outbound.acked >= WINDOW_FRAMES {
            outbound.waiting = Some(frame);
            return;
        }
        let number = outbound.sent;
        outbound.sent += 1;
        match outbound.black_hole {
            Some(fault) => effects.swallow(fault),
            None => {
                let ack_wanted = outbound.sent - outbound.acked >= WINDOW_FRAMES / 2;
                let segment = Segment::Data { number, ack_wanted, bytes: frame };
                effects.send(outbound.addr, Packet { connection, segment });
            }
        }
        self.todo.push_back(EndpointInput::Written { link });
    }

    fn close_link(&mut self, link: LinkId, effects: &mut Effects<Self>) {
        let connection = self.connection(link);
        if let Some(Outbound { addr, black_hole: None, .. }) = self.outbound.remove(&link) {
            effects.send(addr, Packet { connection, segment: Segment::Close });
        }
    }

    /// The process ends: its kernel closes everything.
    fn close_all(&mut self, effects: &mut Effects<Self>) {
        while let Some((link, _)) = self.outbound.first_key_value() {
            self.close_link(*link, effects);
        }
        self.connections.clear();
        while let Some((connection, Inbound { peer, .. })) = self.inbound.pop_first() {
            effects.reply(peer, Packet { connection, segment: Segment::Reset });
        }
    }

    const fn connection(&self, link: LinkId) -> Connection {
        Connection { dialler: self.station, boot: self.boot, link: link.0 }
    }
}

impl ClusterMachine for FullNode {
    const WIRE: Wire = Wire::Full;

    fn boot(config: &ClusterConfig, guards: Guards, boot: Boot<'_>) -> Self {
        let endpoint = Endpoint::with_guards(config, boot.seed, Recovered::default(), boot.now, guards);
        Self {
            endpoint,
            station: boot.station,
            boot: boot.boot,
            outbound: BTreeMap::new(),
            inbound: BTreeMap::new(),
            connections: BTreeMap::new(),
            next_inbound: 0,
            backlog: None,
            todo: VecDeque::new(),
            outbox: Outbox::new(),
        }
    }

    fn node(&self) -> &Node {
        self.endpoint.node()
    }

    fn links(&self) -> LinkSizes {
        self.endpoint.sizes()
    }

    fn delivered(&self) -> Cause<'_> {
        Cause::Wire
    }

    fn half_open(&mut self, to: SocketAddr, fault: FaultId) {
        for outbound in self.outbound.values_mut().filter(|outbound| outbound.open && outbound.addr == to) {
            outbound.black_hole = Some(fault);
        }
    }

    fn replay(frames: Vec<Packet>, stranger: impl FnOnce() -> Station) -> Script<Self> {
        let frames = frames.into_iter().filter_map(|packet| match packet.segment {
            Segment::Data { bytes, .. } => Some(bytes),
            Segment::Syn | Segment::Close | Segment::Accepted | Segment::Ack(_) | Segment::Reset => None,
        });
        strangers::replay(stranger(), frames)
    }

    fn forge(
        sender: &NodeId,
        to: &ClusterConfig,
        count: usize,
        stranger: impl FnMut() -> Station,
    ) -> Script<Self> {
        strangers::forge(sender, &to.cluster_name, count, stranger)
    }

    fn flood(kind: FloodKind, connections: usize, stranger: impl FnMut() -> Station) -> Script<Self> {
        strangers::flood(kind, connections, stranger)
    }
}
