//! Bytes in, bytes out: connections, framing, MACs, limits and queues around a [`Node`].
//!
//! The endpoint composes three machines that never name each other: the [`Node`], the outbound and the inbound
//! connections. It runs steps 1 to 4 of the receive path and hands the payload on as the text that was signed;
//! the node runs steps 5 to 8. On the way out a message is encoded and signed once, and all its targets share
//! the bytes.
//!
//! Invariants: an input about a connection that is gone changes nothing; a wake-up handled at its time is never
//! asked for again at that time; after [`EndpointOutput::Departed`] nothing but refusals comes out.
//!
//! Absent: sockets, and the order of a real network; the driver reports what happened to each connection.
//!
//! Spec: docs/protocol.md, Wire and envelope; Receive path; Departure.

use alloc::string::String;
use core::net::SocketAddr;

use bytes::Bytes;

use crate::config::Config;
use crate::guards::Guards;
use crate::id::ClusterName;
use crate::io::{
    Alarm, Command, EndpointInput, EndpointOutput, Event, InboundId, LinkId, NodeInput, NodeOutput, Outbox,
    Outgoing, Refusal, Wake,
};
use crate::limits::{DEPARTURE, FRAME_BYTES_MAX, FRAME_PREFIX_BYTES};
use crate::link::inbound::Inbound;
use crate::link::outbound::{Outbound, Report};
use crate::metrics::Metrics;
use crate::node::{Node, NodeView, Recovered};
use crate::rng::Seed;
use crate::time::{Instant, Now};
use crate::wire::Reject;
use crate::wire::envelope::{self, Key};
use crate::wire::frame::Oversize;
use crate::wire::message::Payload;

/// A node with its connections.
///
/// # Methods
/// - To drive it: [`Endpoint::handle`] takes one input, [`Endpoint::next_wake`] says when to call again without
///   one.
/// - To look at it: [`Endpoint::view`], [`Endpoint::node`], [`Endpoint::metrics`], [`Endpoint::sizes`],
///   [`Endpoint::links`]. They change nothing and may be called at any time.
///
/// # Calling order
/// 1. Bind the listener, so that `config.advertised()` is what peers can dial; then [`Endpoint::new`].
/// 2. Wait for whichever comes first: something to report, or [`Endpoint::next_wake`].
/// 3. Call [`Endpoint::handle`] with it ([`EndpointInput::Wake`] for the time), drain the outbox and carry out
///    every output in order. Then from 2.
/// 4. To stop, hand in [`Command::Leave`] and go on until [`EndpointOutput::Departed`], at most 250 ms later.
///    Then drop every connection; no output closes them one by one.
///
/// Times must not go back from one call to the next. A late call is safe: everything due is done at once.
#[derive(Debug)]
pub struct Endpoint {
    node: Node,
    outbound: Outbound,
    inbound: Inbound,
    phase: Phase,
    key: Key,
    cluster: ClusterName,
    guards: Guards,
    /// Frames rejected before the MAC; the node counts the others.
    rejected: [u64; Reject::ALL.len()],
    /// Kept for their room: the text of the message being sent, and what the node wants done.
    text: String,
    wanted: Outbox<NodeOutput>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    /// The farewells are being written, until then at most.
    Departing {
        until: Instant,
    },
    Departed,
}

impl Endpoint {
    /// An endpoint that boots at `now`. `config.advertised()` must be the address that peers dial.
    pub fn new(config: &Config, seed: Seed, recovered: Recovered, now: Now) -> Self {
        Self::with_guards(config, seed, recovered, now, Guards::ON)
    }

    /// As [`Endpoint::new`], with guards turned off: for simulations alone.
    pub fn with_guards(config: &Config, seed: Seed, recovered: Recovered, now: Now, guards: Guards) -> Self {
        let Config { cluster, .. } = config;
        let timing = cluster.timing();
        Self {
            outbound: Outbound::new(timing.suspicion, seed.fork("outbound"), guards),
            inbound: Inbound::new(timing.idle(), guards),
            phase: Phase::Running,
            key: Key::with_guards(&cluster.secret, guards),
            cluster: cluster.cluster_name.clone(),
            guards,
            rejected: [0; Reject::ALL.len()],
            text: String::new(),
            wanted: Outbox::new(),
            node: Node::with_guards(config, seed, recovered, now, guards),
        }
    }

    /// Takes one input and pushes what follows from it, due timers included.
    pub fn handle(&mut self, now: Now, input: EndpointInput, out: &mut Outbox<EndpointOutput>) {
        let at = now.instant;
        match input {
            EndpointInput::Command(command) => self.command(now, command, out),
            _ if self.phase == Phase::Departed => return,
            EndpointInput::Wake => {}
            EndpointInput::Accepted { inbound } => self.accepted(at, inbound, out),
            EndpointInput::AcceptFailed => self.inbound.accept_failed(at, out),
            EndpointInput::Received { inbound, bytes } => self.received(now, inbound, bytes, out),
            EndpointInput::InboundClosed { inbound } => self.inbound.ended(inbound),
            EndpointInput::Connected { link } => self.outbound.report(at, link, Report::Connected, out),
            EndpointInput::Written { link } => self.outbound.report(at, link, Report::Written, out),
            EndpointInput::Persisted { token, written } => {
                self.tell_node(now, NodeInput::Persisted { token, written }, out);
            }
            EndpointInput::DialFailed { link } | EndpointInput::LinkClosed { link } => {
                self.broken(at, link, out);
            }
        }
        self.run_due(now, out);
    }

    /// When to call again at the latest, and why. Cheap; may come early, never late.
    pub fn next_wake(&self) -> Option<(Instant, Wake)> {
        let own = [
            (self.outbound.next_wake(), Wake::Link),
            (self.inbound.next_idle(), Wake::Inbound),
            (self.inbound.next_resume(), Wake::Accept),
            (self.departs_at(), Wake::Departure),
        ];
        let own = own.into_iter().filter_map(|(at, wake)| Some((at?, wake)));
        self.node_wake().into_iter().chain(own).min_by_key(|(at, _)| *at)
    }

    /// How the connections fare. Looks at each of them.
    pub fn links(&self) -> LinkStates {
        LinkStates {
            unheard_since: self.outbound.unheard_since(|addr| self.node.heard_at(addr)),
            farewell_overtaken_at: self.outbound.farewell_overtaken_at(),
            strangers: self.inbound.strangers(),
            frame_awaited_since: self.inbound.frame_awaited_since(),
        }
    }

    /// Dials so far, by target; a target that is given up takes its count with it.
    pub fn dials(&self) -> impl Iterator<Item = (SocketAddr, u64)> {
        self.outbound.dials()
    }

    /// What the node believes.
    pub fn view(&self) -> NodeView {
        self.node.view()
    }

    /// The node inside, to look at.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The counts of this boot: the node's, with the refusals and drops of this layer added.
    pub fn metrics(&self) -> Metrics {
        let mut metrics = self.node.metrics().clone();
        for (sum, own) in metrics.frames_rejected.iter_mut().zip(self.rejected) {
            *sum = sum.saturating_add(own);
        }
        metrics.frames_dropped = metrics.frames_dropped.saturating_add(self.outbound.losses().frames);
        metrics
    }

    /// Inbound connections held, and frames in the longest send queue.
    pub fn sizes(&self) -> LinkSizes {
        LinkSizes {
            inbound: self.inbound.len(),
            links: self.outbound.len(),
            queue_longest: self.outbound.queue_longest(),
        }
    }

    fn command(&mut self, now: Now, command: Command, out: &mut Outbox<EndpointOutput>) {
        if self.phase == Phase::Running {
            self.tell_node(now, NodeInput::Command(command), out);
        } else {
            out.push(EndpointOutput::Reply(Err(Refusal::Departed)));
        }
    }

    fn accepted(&mut self, at: Instant, inbound: InboundId, out: &mut Outbox<EndpointOutput>) {
        if self.phase == Phase::Running {
            self.inbound.accepted(at, inbound, out);
        } else {
            out.push(EndpointOutput::CloseInbound { inbound });
        }
    }

    /// Steps 1 to 4 for every frame that `chunk` completes.
    fn received(&mut self, now: Now, inbound: InboundId, mut chunk: Bytes, out: &mut Outbox<EndpointOutput>) {
        while self.phase == Phase::Running {
            match self.inbound.next_body(now.instant, inbound, &mut chunk, out) {
                Ok(Some(body)) => self.frame(now, inbound, &body, out),
                Ok(None) => return,
                Err(Oversize { .. }) => return self.count_rejected(Reject::Oversize, inbound, out),
            }
        }
    }

    fn frame(&mut self, now: Now, inbound: InboundId, body: &[u8], out: &mut Outbox<EndpointOutput>) {
        match envelope::open(body, &self.key, &self.cluster) {
            Ok((header, payload)) => {
                self.inbound.authenticated(inbound);
                self.tell_node(now, NodeInput::Frame { header, payload: Payload::Text(payload) }, out);
            }
            Err(reason) => {
                self.count_rejected(reason, inbound, out);
                self.inbound.refused(inbound, reason, out);
            }
        }
    }

    /// A dial failed or a connection of ours ended, which is the peer's affair only when a simulation wants it to be.
    fn broken(&mut self, at: Instant, link: LinkId, out: &mut Outbox<EndpointOutput>) {
        if let Some(addr) = self.outbound.addr(link).filter(|_| !self.guards.silence_only) {
            self.node.disconnected(at, addr);
        }
        self.outbound.report(at, link, Report::Broken, out);
    }

    fn count_rejected(&mut self, reason: Reject, inbound: InboundId, out: &mut Outbox<EndpointOutput>) {
        let count = &mut self.rejected[reason as usize];
        *count = count.saturating_add(1);
        out.push(EndpointOutput::Event(Event::Rejected { reason, sender: None, inbound: Some(inbound) }));
    }

    fn run_due(&mut self, now: Now, out: &mut Outbox<EndpointOutput>) {
        if self.node_wake().is_some_and(|(at, _)| at <= now.instant) {
            self.tell_node(now, NodeInput::Wake, out);
        }
        let node = &self.node;
        self.outbound.wake(now.instant, |addr| node.heard_at(addr), out);
        self.inbound.wake(now.instant, out);
        if let Phase::Departing { until } = self.phase {
            let pending = self.outbound.farewell_pending();
            if !pending || now.instant >= until {
                self.depart(!pending && !self.outbound.losses().farewell, out);
            }
        }
    }

    /// The node's own wake-up; none once it has said farewell.
    fn node_wake(&self) -> Option<(Instant, Wake)> {
        if self.phase == Phase::Running { self.node.next_wake() } else { None }
    }

    const fn departs_at(&self) -> Option<Instant> {
        match self.phase {
            Phase::Departing { until } => Some(until),
            Phase::Running | Phase::Departed => None,
        }
    }

    fn depart(&mut self, flushed: bool, out: &mut Outbox<EndpointOutput>) {
        self.phase = Phase::Departed;
        self.outbound.clear();
        self.inbound.clear();
        out.push(EndpointOutput::Departed { flushed });
    }

    fn tell_node(&mut self, now: Now, input: NodeInput, out: &mut Outbox<EndpointOutput>) {
        let mut wanted = core::mem::take(&mut self.wanted);
        self.node.handle(now, input, &mut wanted);
        for output in wanted.drain() {
            match output {
                NodeOutput::Send(outgoing) => self.send(now.instant, &outgoing, out),
                NodeOutput::Event(event) => out.push(EndpointOutput::Event(event)),
                NodeOutput::Persist { token, batch } => out.push(EndpointOutput::Persist { token, batch }),
                NodeOutput::Reply(reply) => out.push(EndpointOutput::Reply(reply)),
                NodeOutput::Alarm(alarm) => out.push(EndpointOutput::Alarm(alarm)),
                NodeOutput::Departed => {
                    let bounded = self.guards.departure_bounded;
                    let until = if bounded { now.instant.after(DEPARTURE) } else { Instant::FAR_FUTURE };
                    self.phase = Phase::Departing { until };
                }
            }
        }
        self.wanted = wanted;
    }

    /// Encodes and signs a message once, for all its targets.
    fn send(&mut self, at: Instant, outgoing: &Outgoing, out: &mut Outbox<EndpointOutput>) {
        self.text.clear();
        outgoing.message.encode(&mut self.text);
        let measured = outgoing.body_bytes;
        let frame = envelope::seal_measured(&self.key, &self.cluster, &outgoing.header, &self.text, measured);
        let encoded = frame.len() - FRAME_PREFIX_BYTES;
        if encoded != measured {
            out.push(EndpointOutput::Alarm(Alarm::MeasureWrong { measured, encoded }));
        }
        if encoded <= FRAME_BYTES_MAX || !self.guards.frame_cap {
            self.outbound.send(at, &outgoing.targets, outgoing.lane, &frame, out);
        }
    }
}

/// How full the connection tables are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkSizes {
    /// Inbound connections held.
    pub inbound: usize,
    /// Outbound links.
    pub links: usize,
    /// Frames in the longest send queue.
    pub queue_longest: usize,
}

/// How the connections fare, for those who look from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkStates {
    /// Since when a peer is unheard to whom a connection stands: the one unheard for longest.
    pub unheard_since: Option<Instant>,
    /// When a queued frame's write last began on a connection where last words wait.
    pub farewell_overtaken_at: Option<Instant>,
    /// Inbound connections on which no frame passed the MAC yet.
    pub strangers: usize,
    /// Since when an inbound connection has not delivered a whole frame: the one that owes it for longest.
    pub frame_awaited_since: Option<Instant>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Incarnation, NodeId, Seq};
    use crate::io::Lane;
    use crate::time::WallTime;
    use crate::wire::Header;
    use crate::wire::message::{Addr, Document, MemberRecord, Message, RecordStatus};
    use alloc::sync::Arc;
    use alloc::vec::Vec;

    fn endpoint(guards: Guards) -> Endpoint {
        let addr = core::net::SocketAddr::from(([127, 0, 0, 1], 7000));
        let config = crate::config::ClusterConfig {
            enabled: true,
            secret: crate::config::Secret::new("a-shared-cluster-secret-value-32"),
            cluster_name: ClusterName::new("autumn").unwrap(),
            node_id: Some(NodeId::new("node-self").unwrap()),
            bind_addr: addr,
            advertise_addr: None,
            seed_peers: Vec::new(),
            push_interval_ms: 500,
            suspicion_timeout_ms: 2500,
        };
        let now = Now { instant: Instant::ZERO, wall: WallTime::from_unix_ms(1) };
        Endpoint::with_guards(&config.into(), Seed::from_u64(1), Recovered::default(), now, guards)
    }

    /// A push of one member whose address has `addr_bytes`, said to measure `off` more than it does.
    fn outgoing(addr_bytes: usize, off: usize) -> Outgoing {
        let id = NodeId::new("node-self").unwrap();
        let addr = Addr::new(&"x".repeat(addr_bytes));
        let mut state = Document::default();
        let record = MemberRecord { addr, incarnation: Incarnation(1), status: RecordStatus::Alive };
        state.members.insert(id.clone(), record);
        let header = Header { sender: id, incarnation: Incarnation(1), seq: Seq(0) };
        let message = Message::StatePush { state: Arc::new(state) };
        let cluster = ClusterName::new("autumn").unwrap();
        let body_bytes = envelope::encoded_len(&cluster, &header, message.measure()) + off;
        let targets = Arc::from([core::net::SocketAddr::from(([127, 0, 0, 1], 7001))]);
        Outgoing { targets, lane: Lane::Normal, header, message, body_bytes }
    }

    /// Alarms raised, and links made, by sending `outgoing`.
    fn send(guards: Guards, outgoing: &Outgoing) -> (Vec<Alarm>, usize) {
        let (mut endpoint, mut out) = (endpoint(guards), Outbox::new());
        endpoint.send(Instant::ZERO, outgoing, &mut out);
        let alarm = |output| if let EndpointOutput::Alarm(alarm) = output { Some(alarm) } else { None };
        (out.drain().filter_map(alarm).collect(), endpoint.sizes().links)
    }

    #[test]
    fn a_wrong_measure_is_an_alarm_and_the_frame_still_goes() {
        let right = outgoing(10, 0);
        assert_eq!(send(Guards::ON, &right), (Vec::new(), 1));
        let alarm = Alarm::MeasureWrong { measured: right.body_bytes + 3, encoded: right.body_bytes };
        assert_eq!(send(Guards::ON, &outgoing(10, 3)), (alloc::vec![alarm], 1));
    }

    #[test]
    fn only_a_simulation_without_the_cap_emits_an_oversized_frame() {
        assert_eq!(send(Guards::ON, &outgoing(FRAME_BYTES_MAX, 0)), (Vec::new(), 0));
        assert_eq!(
            send(Guards { frame_cap: false, ..Guards::ON }, &outgoing(FRAME_BYTES_MAX, 0)),
            (Vec::new(), 1)
        );
    }
}
