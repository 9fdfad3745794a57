//! Full mode: an [`Endpoint`] on modelled TCP. Real bytes, real MACs; connections as packets.
//!
//! [`super::tcp`] says what the model keeps of TCP and what it leaves out. Here are the two parties on one host:
//! the kernel, which answers packets by itself and runs on while the process is held ([`Machine::held`]), and the
//! process, which is told the rest in the order it came. A process that ends closes its connections after its
//! last words.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use bytes::Bytes;
use firedrill_core::config::Config;
use firedrill_core::endpoint::{Endpoint, LinkSizes};
use firedrill_core::guards::Guards;
use firedrill_core::id::NodeId;
use firedrill_core::io::{
    Alarm, Command, EndpointInput, EndpointOutput, Event, InboundId, LinkId, Outbox, Refusal, Reply,
};
use firedrill_core::issuance::writer::{Batch, Token};
use firedrill_core::limits::FRAME_PREFIX_BYTES;
use firedrill_core::node::Node;
use firedrill_core::time::{Instant, Now};

use super::cluster::{ClusterMachine, Script, recovered, started, written};
use super::machine::{Boot, Effects, Input, Machine, Station};
use super::strangers;
use super::tcp::{Check, Connection, Inbound, Outbound, Packet, Segment};
use crate::engine::{Cause, FaultId, Wire};
use crate::scenario::model::FloodKind;

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
    /// No connection needs its kernel before; may be too early, is never too late.
    check_at: Option<Instant>,
    /// What the kernel has to tell the endpoint; empty between calls.
    todo: VecDeque<EndpointInput>,
    outbox: Outbox<EndpointOutput>,
}

impl Machine for FullNode {
    type Record = Batch;
    type Message = Packet;
    type Command = Command;
    type Answer = Result<Reply, Refusal>;
    type Event = Event;
    type Alarm = Alarm;

    fn handle(&mut self, now: Now, input: Input<Self>, effects: &mut Effects<Self>) {
        match input {
            Input::Boot => {
                effects.event(started(self.node()));
                self.todo.push_back(EndpointInput::Wake);
            }
            Input::Wake => self.todo.push_back(EndpointInput::Wake),
            Input::Persisted(token, outcome) => {
                let (token, written) = (Token(token.0), written(outcome));
                self.todo.push_back(EndpointInput::Persisted { token, written });
            }
            Input::Command(command) => self.todo.push_back(EndpointInput::Command(command)),
            Input::Deliver { from, message } => {
                if let Some(rest) = self.kernel(now.instant, from, message, effects) {
                    self.process(now.instant, rest, effects);
                }
            }
        }
        self.check(now.instant, effects);
        if self.todo.is_empty() {
            // What concerns the kernel alone is no call of the endpoint, and every step is one.
            self.todo.push_back(EndpointInput::Wake);
        }
        let mut outbox = std::mem::take(&mut self.outbox);
        while let Some(input) = self.todo.pop_front() {
            self.endpoint.handle(now, input, &mut outbox);
            for output in outbox.drain() {
                self.carry_out(now.instant, output, effects);
            }
        }
        self.outbox = outbox;
    }

    fn next_wake(&self) -> Option<Instant> {
        let endpoint = self.endpoint.next_wake().map(|(at, _)| at);
        earliest(endpoint, self.check_at)
    }

    fn stuck(&self) -> Option<Alarm> {
        self.endpoint.next_wake().map(|(_, wake)| Alarm::WakeStuck { wake })
    }

    fn held(
        &mut self,
        now: Now,
        from: Station,
        message: Packet,
        effects: &mut Effects<Self>,
    ) -> Option<Packet> {
        self.kernel(now.instant, from, message, effects)
    }

    fn frame_bytes(message: &Packet) -> Option<usize> {
        match &message.segment {
            Segment::Data { bytes, .. } | Segment::Readable(bytes) => {
                Some(bytes.len().saturating_sub(FRAME_PREFIX_BYTES))
            }
            Segment::Syn
            | Segment::Probe { .. }
            | Segment::Close
            | Segment::Accepted
            | Segment::Ack(_)
            | Segment::Reset
            | Segment::Established => None,
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
            Segment::Syn | Segment::Data { .. } | Segment::Probe { .. } => {
                Some(Packet { connection: message.connection, segment: Segment::Reset })
            }
            Segment::Close
            | Segment::Accepted
            | Segment::Ack(_)
            | Segment::Reset
            | Segment::Established
            | Segment::Readable(_) => None,
        }
    }
}

impl FullNode {
    /// What the kernel does with a packet by itself; gives back what the process has to be told. Doing it again
    /// with what it gave back changes nothing.
    fn kernel(
        &mut self,
        at: Instant,
        from: Station,
        packet: Packet,
        effects: &mut Effects<Self>,
    ) -> Option<Packet> {
        let Packet { connection, segment } = packet;
        let mut answer = |segment| effects.reply(from, Packet { connection, segment });
        let rest = match segment {
            Segment::Syn => {
                if let Some(backlog) = &mut self.backlog {
                    if !backlog.contains(&(connection, from)) {
                        backlog.push_back((connection, from));
                    }
                    return None;
                }
                if self.inbound.contains_key(&connection) {
                    // The answer to the first was lost.
                    answer(Segment::Accepted);
                    return None;
                }
                self.accept(connection, from, effects);
                Segment::Established
            }
            Segment::Data { number, ack_wanted, bytes } => {
                let Some(inbound) = self.inbound.get_mut(&connection) else {
                    answer(Segment::Reset);
                    return None;
                };
                inbound.unread += 1;
                if ack_wanted && inbound.has_room() {
                    answer(Segment::Ack(number.saturating_add(1)));
                }
                Segment::Readable(bytes)
            }
            Segment::Probe { below } => {
                match self.inbound.get(&connection) {
                    Some(inbound) if inbound.has_room() => answer(Segment::Ack(below)),
                    Some(_) => {}
                    None => answer(Segment::Reset),
                }
                return None;
            }
            Segment::Accepted | Segment::Ack(_) | Segment::Reset if connection.boot != self.boot => {
                // Dialled by a process that is gone.
                if !matches!(segment, Segment::Reset) {
                    answer(Segment::Close);
                }
                return None;
            }
            Segment::Ack(below) => {
                let outbound = self.answered(LinkId(connection.link))?;
                outbound.acknowledged(at, below);
                outbound.waiting.as_ref()?;
                segment
            }
            Segment::Close
            | Segment::Accepted
            | Segment::Reset
            | Segment::Established
            | Segment::Readable(_) => segment,
        };
        Some(Packet { connection, segment: rest })
    }

    /// What the process learns of a packet.
    fn process(&mut self, at: Instant, packet: Packet, effects: &mut Effects<Self>) {
        let Packet { connection, segment } = packet;
        let link = LinkId(connection.link);
        match segment {
            Segment::Established => {
                if let Some(Inbound { id, .. }) = self.inbound.get(&connection) {
                    self.todo.push_back(EndpointInput::Accepted { inbound: *id });
                }
            }
            Segment::Readable(bytes) => {
                if let Some(inbound) = self.inbound.get_mut(&connection) {
                    inbound.unread = inbound.unread.saturating_sub(1);
                    self.todo.push_back(EndpointInput::Received { inbound: inbound.id, bytes });
                }
            }
            Segment::Close => {
                if let Some(Inbound { id, .. }) = self.inbound.remove(&connection) {
                    self.connections.remove(&id);
                    self.todo.push_back(EndpointInput::InboundClosed { inbound: id });
                } else if let Some(backlog) = &mut self.backlog {
                    backlog.retain(|(waiting, _)| *waiting != connection);
                }
            }
            Segment::Accepted => {
                if self.answered(link).is_some_and(Outbound::connected) {
                    self.todo.push_back(EndpointInput::Connected { link });
                }
            }
            Segment::Ack(_) => {
                if let Some(frame) = self.answered(link).and_then(|outbound| outbound.waiting.take()) {
                    self.write(at, link, frame, effects);
                }
            }
            Segment::Reset => {
                if self.answered(link).is_some() {
                    self.lost(link);
                }
            }
            Segment::Syn | Segment::Data { .. } | Segment::Probe { .. } => {}
        }
    }

    /// The connection that an answer is for, unless nothing reaches it.
    fn answered(&mut self, link: LinkId) -> Option<&mut Outbound> {
        self.outbound.get_mut(&link).filter(|outbound| outbound.black_hole.is_none())
    }

    /// A connection or a dial of this side is gone. The process learns it at once: it reads what it dialled, for
    /// this alone.
    fn lost(&mut self, link: LinkId) {
        let Some(outbound) = self.outbound.remove(&link) else { return };
        self.todo.push_back(if outbound.is_open() {
            EndpointInput::LinkClosed { link }
        } else {
            EndpointInput::DialFailed { link }
        });
    }

    /// Asks after what is unacknowledged, and breaks what nobody answers for.
    fn check(&mut self, at: Instant, effects: &mut Effects<Self>) {
        if self.check_at.is_none_or(|due| due > at) {
            return;
        }
        let (station, boot) = (self.station, self.boot);
        let mut broken = Vec::new();
        self.check_at = None;
        for (link, outbound) in &mut self.outbound {
            match outbound.check(at) {
                Check::Probe(_) if outbound.black_hole.is_some() => {}
                Check::Wait => {}
                Check::Dial => {
                    let connection = Connection { dialler: station, boot, link: link.0 };
                    effects.send(outbound.addr, Packet { connection, segment: Segment::Syn });
                }
                Check::Probe(below) => {
                    let connection = Connection { dialler: station, boot, link: link.0 };
                    effects.send(outbound.addr, Packet { connection, segment: Segment::Probe { below } });
                }
                Check::Break => broken.push(*link),
            }
            self.check_at = earliest(self.check_at, outbound.check_at());
        }
        for link in broken {
            self.lost(link);
        }
    }

    /// The kernel accepts; the process is still to be told.
    fn accept(&mut self, connection: Connection, from: Station, effects: &mut Effects<Self>) {
        let id = InboundId(self.next_inbound);
        self.next_inbound += 1;
        self.inbound.insert(connection, Inbound { id, peer: from, unread: 0 });
        self.connections.insert(id, connection);
        effects.reply(from, Packet { connection, segment: Segment::Accepted });
    }

    /// What the kernel does for the endpoint.
    fn carry_out(&mut self, at: Instant, output: EndpointOutput, effects: &mut Effects<Self>) {
        match output {
            EndpointOutput::Dial { link, addr } => {
                let outbound = Outbound::dialling(at, addr);
                self.check_at = earliest(self.check_at, outbound.check_at());
                self.outbound.insert(link, outbound);
                let connection = self.connection(link);
                effects.send(addr, Packet { connection, segment: Segment::Syn });
            }
            EndpointOutput::Write { link, frame } => self.write(at, link, frame, effects),
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
                    self.process(at, Packet { connection, segment: Segment::Established }, effects);
                }
            }
            EndpointOutput::Persist { token, batch } => effects.persist(super::store::Token(token.0), batch),
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
    fn write(&mut self, at: Instant, link: LinkId, frame: Bytes, effects: &mut Effects<Self>) {
        let connection = self.connection(link);
        let Some(outbound) = self.outbound.get_mut(&link) else { return };
        if outbound.is_full() {
            outbound.waiting = Some(frame);
            return;
        }
        let segment = outbound.send(at, frame);
        match outbound.black_hole {
            Some(fault) => effects.swallow(fault),
            None => effects.send(outbound.addr, Packet { connection, segment }),
        }
        self.check_at = earliest(self.check_at, outbound.check_at());
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

    fn boot(config: &Config, guards: Guards, boot: Boot<'_, Batch>) -> Self {
        let recovered = recovered(boot.recovered);
        let endpoint = Endpoint::with_guards(config, boot.seed, recovered, boot.now, guards);
        Self {
            endpoint,
            station: boot.station,
            boot: boot.boot,
            outbound: BTreeMap::new(),
            inbound: BTreeMap::new(),
            connections: BTreeMap::new(),
            next_inbound: 0,
            backlog: None,
            check_at: None,
            todo: VecDeque::new(),
            outbox: Outbox::new(),
        }
    }

    fn node(&self) -> &Node {
        self.endpoint.node()
    }

    fn endpoint(&self) -> Option<&Endpoint> {
        Some(&self.endpoint)
    }

    fn links(&self) -> LinkSizes {
        self.endpoint.sizes()
    }

    fn delivered(&self) -> Cause<'_> {
        Cause::Wire
    }

    fn half_open(&mut self, to: SocketAddr, fault: FaultId) {
        for outbound in
            self.outbound.values_mut().filter(|outbound| outbound.is_open() && outbound.addr == to)
        {
            outbound.black_hole = Some(fault);
        }
    }

    fn replay(frames: Vec<Packet>, stranger: impl FnOnce() -> Station) -> Script<Self> {
        let frames = frames.into_iter().filter_map(|packet| match packet.segment {
            Segment::Data { bytes, .. } => Some(bytes),
            Segment::Syn
            | Segment::Probe { .. }
            | Segment::Close
            | Segment::Accepted
            | Segment::Ack(_)
            | Segment::Reset
            | Segment::Established
            | Segment::Readable(_) => None,
        });
        strangers::replay(stranger(), frames)
    }

    fn forge(sender: &NodeId, to: &Config, count: usize, stranger: impl FnMut() -> Station) -> Script<Self> {
        strangers::forge(sender, &to.cluster.cluster_name, count, stranger)
    }

    fn flood(kind: FloodKind, connections: usize, stranger: impl FnMut() -> Station) -> Script<Self> {
        strangers::flood(kind, connections, stranger)
    }
}

fn earliest(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    one.into_iter().chain(other).min()
}
