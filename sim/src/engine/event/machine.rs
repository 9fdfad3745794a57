//! The contract between the simulator and whatever it simulates.
//!
//! A [`Machine`] is one process without I/O: it takes an [`Input`] at a time, leaves what it wants done in
//! [`Effects`], and says when it wants to be woken. The simulator gives it clocks, a network, a disk and
//! death; it never looks inside a message except through the functions here.

use std::net::SocketAddr;
use std::sync::Arc;

use firedrill_core::rng::Seed;
use firedrill_core::time::{Instant, Now};

use super::store::{Outcome, Token};
use crate::engine::{FaultId, Flow};
use crate::scenario::model::HostIx;

/// Where a message came from: a host, or a stranger that a fault brought in. Good for answering, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Station(pub(in crate::engine) u32);

/// A process without I/O.
pub trait Machine: Sized {
    /// What it writes to its disk.
    type Record;
    /// What crosses the network: a whole message, or a packet of a connection.
    type Message: Clone;
    /// What a client asks.
    type Command;
    /// What a client is told.
    type Answer;
    /// What observers are told.
    type Event;
    /// A broken invariant of the machine's own code.
    type Alarm;

    /// Takes one input and leaves what follows from it, due timers included.
    fn handle(&mut self, now: Now, input: Input<Self>, effects: &mut Effects<Self>);

    /// When to send [`Input::Wake`] at the latest, on the machine's monotonic clock.
    fn next_wake(&self) -> Option<Instant>;

    /// The alarm for a wake-up that was handled and is still due. Asked right after that; the simulator puts the
    /// wake-up off, so that the run goes on and the alarm is seen.
    fn stuck(&self) -> Option<Self::Alarm> {
        None
    }

    /// Bytes of the body when the message is a whole frame. `None` marks what holds a connection together:
    /// it takes time and meets cuts, but loss, duplication, reordering, bandwidth and counts leave it alone.
    fn frame_bytes(message: &Self::Message) -> Option<usize>;

    /// Flips the bit that `draw` selects. False when there is nothing to flip.
    fn corrupt(_message: &mut Self::Message, _draw: u64) -> bool {
        false
    }

    /// What the host itself does with a message that reaches it while its process is held: kernels run on. Gives
    /// back what waits for the process, which is delivered when it goes on.
    fn held(
        &mut self,
        _now: Now,
        _from: Station,
        message: Self::Message,
        _effects: &mut Effects<Self>,
    ) -> Option<Self::Message> {
        Some(message)
    }

    /// What the host itself answers when a message reaches it and no process listens at that address.
    fn refuse(_message: &Self::Message) -> Option<Self::Message> {
        None
    }
}

/// What a machine is told.
pub enum Input<M: Machine> {
    /// The first call of a boot.
    Boot,
    /// [`Machine::next_wake`] is reached.
    Wake,
    /// A message arrived.
    Deliver {
        /// From where.
        from: Station,
        /// The message.
        message: M::Message,
    },
    /// A client asks.
    Command(M::Command),
    /// A write is durable, or was refused.
    Persisted(Token, Outcome),
}

/// Why a machine was called: an [`Input`] without what it carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// The first call of a boot.
    Boot,
    /// A timer.
    Wake,
    /// A message.
    Deliver,
    /// A client.
    Command,
    /// The answer to a write.
    Persisted(Outcome),
}

/// What a new process is given.
#[derive(Debug)]
pub struct Boot<'a, R> {
    /// Which host.
    pub host: HostIx,
    /// Which boot of it, from 0.
    pub boot: u32,
    /// How peers answer it.
    pub station: Station,
    /// Its address.
    pub addr: SocketAddr,
    /// Both its clocks.
    pub now: Now,
    /// The randomness of this boot.
    pub seed: Seed,
    /// What it had made durable, in order.
    pub recovered: &'a [R],
}

/// Where to.
#[derive(Debug)]
pub(super) enum To {
    Many(Arc<[SocketAddr]>),
    One(SocketAddr),
    Back(Station),
}

/// What a machine wants done. Buffers are reused from call to call.
pub struct Effects<M: Machine> {
    pub(super) sends: Vec<(To, M::Message)>,
    pub(super) writes: Vec<(Token, M::Record)>,
    pub(super) swallowed: Vec<FaultId>,
    pub(super) events: Vec<M::Event>,
    pub(super) alarms: Vec<M::Alarm>,
    pub(super) answer: Option<M::Answer>,
    pub(super) departed: bool,
    pub(super) frames_sent: u64,
    pub(super) bytes_sent: u64,
}

impl<M: Machine> Default for Effects<M> {
    fn default() -> Self {
        Self {
            sends: Vec::new(),
            writes: Vec::new(),
            swallowed: Vec::new(),
            events: Vec::new(),
            alarms: Vec::new(),
            answer: None,
            departed: false,
            frames_sent: 0,
            bytes_sent: 0,
        }
    }
}

impl<M: Machine> Effects<M> {
    /// Sends one message to each of these addresses. Cheapest when the same `Arc` comes again.
    pub fn send_all(&mut self, targets: Arc<[SocketAddr]>, message: M::Message) {
        self.sends.push((To::Many(targets), message));
    }

    /// Sends one message.
    pub fn send(&mut self, target: SocketAddr, message: M::Message) {
        self.sends.push((To::One(target), message));
    }

    /// Sends one message back to where another came from.
    pub fn reply(&mut self, to: Station, message: M::Message) {
        self.sends.push((To::Back(to), message));
    }

    /// Writes a record; [`Input::Persisted`] says when it is durable.
    pub fn persist(&mut self, token: Token, record: M::Record) {
        self.writes.push((token, record));
    }

    /// Tells observers.
    pub fn event(&mut self, event: M::Event) {
        self.events.push(event);
    }

    /// Reports a broken invariant.
    pub fn alarm(&mut self, alarm: M::Alarm) {
        self.alarms.push(alarm);
    }

    /// Answers the command of this call.
    pub fn answer(&mut self, answer: M::Answer) {
        self.answer = Some(answer);
    }

    /// The process ends by itself, after everything else left here is carried out.
    pub fn depart(&mut self) {
        self.departed = true;
    }

    /// A fault that lives inside the machine swallowed a frame.
    pub(super) fn swallow(&mut self, fault: FaultId) {
        self.swallowed.push(fault);
    }

    /// What observers were told, in order.
    pub fn events(&self) -> &[M::Event] {
        &self.events
    }

    /// Broken invariants, in order.
    pub fn alarms(&self) -> &[M::Alarm] {
        &self.alarms
    }

    /// Frames handed to the network in this call, one per target.
    pub fn frames_sent(&self) -> u64 {
        self.frames_sent
    }

    /// Bytes of those frames' bodies.
    pub fn bytes_sent(&self) -> u64 {
        self.bytes_sent
    }

    /// Forgets everything about the call.
    pub(super) fn clear(&mut self) {
        self.swallowed.clear();
        self.events.clear();
        self.alarms.clear();
        self.departed = false;
        self.frames_sent = 0;
        self.bytes_sent = 0;
    }
}

/// One handled input, right after the machine handled it.
pub struct Handled<'a, M: Machine> {
    /// True time.
    pub at: Instant,
    /// The host's own clocks.
    pub now: Now,
    /// Which host.
    pub host: HostIx,
    /// Which boot of it.
    pub boot: u32,
    /// Why it was called.
    pub trigger: Trigger,
    /// The machine as it is now.
    pub machine: &'a M,
    /// What it reported.
    pub effects: &'a Effects<M>,
}

/// Who looks at every handled input of an [`super::EventSim`].
pub trait Observer<M: Machine> {
    /// Called once per handled input, in order.
    fn handled(&mut self, handled: &Handled<'_, M>) -> Flow;

    /// A process ended.
    fn down(&mut self, at: Instant, host: HostIx, boot: u32, graceful: bool);
}
