//! The simulator: hosts, queue and time, for any [`Machine`].
//!
//! Time jumps from one due thing to the next. Everything due at one instant is handled in the order it was
//! scheduled; nothing is ever handled early. The run is a function of seed, machines and calls alone.
//!
//! - **A wake-up** is kept once per host, at the earliest time asked for so far. When it comes due and the
//!   machine has moved its deadline meanwhile, it is put off: machines may move deadlines at will.
//!   One that is handled and still due would hold time for ever: it is an alarm, and put off.
//! - **A cut** acts on sending and on arrival: what is in flight when it begins is swallowed as well.
//! - **Power loss** drops what is not durable. What the host had sent is on the wire and arrives; what is
//!   under way to it arrives at whoever is up at that address then, which may be its next boot.
//! - **A graceful end** keeps every write, and happens after everything the machine left is carried out.
//! - **A pause** keeps inputs and due timers and hands them over in order at the moment of resuming. Clocks run
//!   on, and so does the host's own part in receiving ([`Machine::held`]). A departure asked of a paused host
//!   waits likewise.
//!
//! Absent: what faults do, which [`levers`] holds, and what a message means. Scripted strangers come in with [`EventSim::inject`], and what answers them
//! leaves the world.

mod levers;

use std::collections::VecDeque;
use std::net::SocketAddr;

use firedrill_core::rng::Seed;
use firedrill_core::time::{Duration, Instant, Now, WallTime};

use super::capture::Capture;
use super::clock::HostClock;
use super::directory::{Directory, Hop, Route};
use super::faults::FaultLog;
use super::machine::{Boot, Effects, Handled, Input, Machine, Observer, Station, To, Trigger};
use super::network::{Fate, Network};
use super::queue::{Entry, Queue, Slab, What};
use super::store::Store;
use crate::engine::{FaultId, Flow, HostState, RunStats};
use crate::scenario::model::{HostIx, LinkSpec};

/// A host before the run.
#[derive(Debug, Clone)]
pub struct HostSpec {
    /// Where it listens; what is sent to any other address does not reach it.
    pub addr: SocketAddr,
    /// Its wall clock at true time zero.
    pub wall: WallTime,
    /// Whether it boots at true time zero.
    pub from_start: bool,
}

/// Makes the machine of a boot.
type Factory<M> = Box<dyn FnMut(Boot<'_, <M as Machine>::Record>) -> M + Send>;

/// One host.
struct HostSlot<M: Machine> {
    running: Option<M>,
    /// The number of the running boot, or of the last one.
    boot: u32,
    boots: u32,
    addr: SocketAddr,
    clock: HostClock,
    store: Store<M::Record>,
    route: Route,
    /// When the live wake-up is due, if there is one, and which of the queue's entries it is.
    wake: Option<Instant>,
    wake_generation: u32,
    /// The fault that holds it, while paused.
    paused: Option<FaultId>,
    backlog: VecDeque<What>,
    /// Clock faults that no handled input has felt yet, with the moment after which one does.
    clock_faults: Vec<(FaultId, Instant)>,
}

/// A message under way.
#[derive(Debug)]
struct Parcel<T> {
    from: Station,
    refused: bool,
    message: T,
}

/// A cluster of machines under simulated time.
pub struct EventSim<M: Machine> {
    now: Instant,
    queue: Queue,
    parcels: Slab<Parcel<M::Message>>,
    commands: Slab<M::Command>,
    hosts: Vec<HostSlot<M>>,
    directory: Directory,
    net: Network<Parcel<M::Message>>,
    /// Strangers by the number of their station past the hosts: which fault brought them.
    strangers: Vec<FaultId>,
    stranger_latency: Duration,
    capture: Option<Capture<M::Message>>,
    effects: Effects<M>,
    faults: FaultLog,
    stats: RunStats,
    seed: Seed,
    factory: Factory<M>,
}

impl<M: Machine> std::fmt::Debug for EventSim<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventSim")
            .field("now", &self.now)
            .field("hosts", &self.hosts.len())
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

/// How long a wake-up is put off that would come again and again at the same moment.
const STUCK_PAUSE: Duration = Duration::from_millis(1);

fn host_number(index: usize) -> u32 {
    u32::try_from(index).expect("hosts are few")
}

impl<M: Machine> EventSim<M> {
    /// A run at true time zero; hosts that are there from the start boot with the first advance.
    pub fn new(
        hosts: &[HostSpec],
        link: &LinkSpec,
        seed: &Seed,
        factory: impl FnMut(Boot<'_, M::Record>) -> M + Send + 'static,
    ) -> Self {
        let mut directory = Directory::default();
        let slots = hosts.iter().enumerate().map(|(index, spec)| {
            directory.set(host_number(index), spec.addr);
            HostSlot {
                running: None,
                boot: 0,
                boots: 0,
                addr: spec.addr,
                clock: HostClock::new(spec.wall),
                store: Store::new(seed.fork_index("disk", index as u64).rng()),
                route: Route::default(),
                wake: None,
                wake_generation: 0,
                paused: None,
                backlog: VecDeque::new(),
                clock_faults: Vec::new(),
            }
        });
        let mut sim = Self {
            now: Instant::ZERO,
            queue: Queue::default(),
            parcels: Slab::default(),
            commands: Slab::default(),
            hosts: slots.collect(),
            directory,
            net: Network::new(hosts.len(), link, seed.fork("network")),
            strangers: Vec::new(),
            stranger_latency: link.latency_min,
            capture: None,
            effects: Effects::default(),
            faults: FaultLog::default(),
            stats: RunStats::default(),
            seed: seed.fork("hosts"),
            factory: Box::new(factory),
        };
        for (index, _) in hosts.iter().enumerate().filter(|(_, spec)| spec.from_start) {
            let boot = sim.make(index);
            sim.queue.push(Instant::ZERO, host_number(index), What::Boot(boot));
        }
        sim
    }

    /// Keeps the last frames of every directed pair, for `EventSim::captured`.
    pub fn keep_frames(&mut self) {
        self.capture = Some(Capture::new(self.hosts.len()));
    }

    /// True time of the run.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Counts so far.
    pub fn stats(&self) -> RunStats {
        self.stats
    }

    /// What a host is doing; an unknown one is down.
    pub fn state(&self, host: HostIx) -> HostState {
        match self.hosts.get(host.0) {
            Some(slot) if slot.running.is_some() && slot.paused.is_some() => HostState::Paused,
            Some(slot) if slot.running.is_some() => HostState::Up,
            Some(_) | None => HostState::Down,
        }
    }

    /// A running (or paused) host's machine.
    pub fn machine(&self, host: HostIx) -> Option<&M> {
        self.hosts.get(host.0)?.running.as_ref()
    }

    /// A running (or paused) host's machine, for a fault that lives inside it.
    pub(super) fn machine_mut(&mut self, host: HostIx) -> Option<&mut M> {
        self.hosts.get_mut(host.0)?.running.as_mut()
    }

    /// A host's present address.
    pub fn addr(&self, host: HostIx) -> Option<SocketAddr> {
        self.hosts.get(host.0).map(|slot| slot.addr)
    }

    /// Handles everything due before `until`, then moves time there; stays at the moment of the last handled
    /// input when the observer stops it.
    pub fn run_until(&mut self, until: Instant, observer: &mut impl Observer<M>) -> Flow {
        while let Some(entry) = self.queue.pop_before(until) {
            self.now = entry.at();
            if self.due(entry, observer) == Flow::Stop {
                return Flow::Stop;
            }
        }
        self.now = self.now.max(until);
        Flow::Continue
    }

    /// Hands a command to a host that is up and not paused; `None` when it is not, or gave no answer.
    pub fn command(
        &mut self,
        host: HostIx,
        command: M::Command,
        observer: &mut impl Observer<M>,
    ) -> Option<M::Answer> {
        if self.state(host) != HostState::Up {
            return None;
        }
        self.dispatch(host_number(host.0), Input::Command(command), Trigger::Command, observer);
        self.effects.answer.take()
    }

    /// Makes the machine of the next boot; its first input is still to come.
    fn make(&mut self, index: usize) -> u32 {
        let slot = &mut self.hosts[index];
        slot.boot = slot.boots;
        slot.boots += 1;
        slot.clock.boot(self.now);
        let seed = self.seed.fork_index("host", index as u64).fork_index("boot", u64::from(slot.boot));
        slot.running = Some((self.factory)(Boot {
            host: HostIx(index),
            boot: slot.boot,
            station: Station(host_number(index)),
            addr: slot.addr,
            now: slot.clock.read(self.now),
            seed,
            recovered: slot.store.durable(),
        }));
        slot.boot
    }

    /// The process is gone.
    fn end(&mut self, index: usize, graceful: bool, observer: &mut impl Observer<M>) {
        let slot = &mut self.hosts[index];
        slot.running = None;
        slot.paused = None;
        slot.wake = None;
        slot.wake_generation = slot.wake_generation.wrapping_add(1);
        if let Some(fault) = slot.store.end(graceful) {
            self.faults.mark(fault);
        }
        let boot = slot.boot;
        for what in std::mem::take(&mut slot.backlog) {
            self.drop_kept(what);
        }
        observer.down(self.now, HostIx(index), boot, graceful);
    }

    /// Frees what a backlog entry held.
    fn drop_kept(&mut self, what: What) {
        match what {
            What::Deliver(slot) | What::Kept(slot) => {
                if let Some(parcel) = self.parcels.take(slot) {
                    self.count_lost(&parcel.message);
                }
            }
            What::Command(slot) => drop(self.commands.take(slot)),
            What::Boot(_) | What::Wake(_) | What::Persisted(_) => {}
        }
    }

    fn due(&mut self, entry: Entry, observer: &mut impl Observer<M>) -> Flow {
        let host = &mut self.hosts[entry.host as usize];
        if let Some(fault) = host.paused {
            self.keep(entry, fault);
            return Flow::Continue;
        }
        match entry.what {
            What::Deliver(slot) => self.deliver(entry.host, slot, observer),
            What::Kept(slot) => match self.parcels.take(slot) {
                Some(Parcel { from, message, .. }) => self.hand_over(entry.host, from, message, observer),
                None => Flow::Continue,
            },
            What::Wake(generation) => self.wake(entry.host, generation, observer),
            What::Boot(boot) if boot == host.boot && host.running.is_some() => {
                self.dispatch(entry.host, Input::Boot, Trigger::Boot, observer)
            }
            What::Persisted(boot) if boot == host.boot && host.running.is_some() => {
                let Some((token, outcome)) = host.store.complete() else { return Flow::Continue };
                self.dispatch(
                    entry.host,
                    Input::Persisted(token, outcome),
                    Trigger::Persisted(outcome),
                    observer,
                )
            }
            What::Boot(_) | What::Persisted(_) => Flow::Continue,
            What::Command(slot) => {
                let Some(command) = self.commands.take(slot) else { return Flow::Continue };
                let flow = self.dispatch(entry.host, Input::Command(command), Trigger::Command, observer);
                self.effects.answer = None;
                flow
            }
        }
    }

    fn wake(&mut self, host: u32, generation: u32, observer: &mut impl Observer<M>) -> Flow {
        let slot = &mut self.hosts[host as usize];
        if generation != slot.wake_generation || slot.wake.is_none() {
            return Flow::Continue;
        }
        slot.wake = None;
        let deadline = slot.running.as_ref().and_then(M::next_wake);
        match deadline {
            Some(reading) if slot.clock.when(reading) <= self.now => {
                self.dispatch(host, Input::Wake, Trigger::Wake, observer)
            }
            Some(_) | None => {
                self.schedule_wake(host, deadline);
                Flow::Continue
            }
        }
    }

    fn deliver(&mut self, host: u32, slot: u32, observer: &mut impl Observer<M>) -> Flow {
        match self.arrive(host, slot) {
            Some((from, message)) => self.hand_over(host, from, message, observer),
            None => Flow::Continue,
        }
    }

    /// A parcel reaches its host; what it held, unless nobody takes it.
    fn arrive(&mut self, host: u32, slot: u32) -> Option<(Station, M::Message)> {
        let Parcel { from, refused, message } = self.parcels.take(slot)?;
        let stranger = (from.0 as usize).checked_sub(self.hosts.len());
        let up = self.hosts[host as usize].running.is_some();
        let swallowed = stranger.is_none() && self.net.swallows_arrival(from.0, host, &mut self.faults);
        if !up || swallowed {
            self.count_lost(&message);
            return None;
        }
        if refused {
            self.count_lost(&message);
            if let Some(answer) = M::refuse(&message) {
                self.send_back(host, from, answer);
            }
            return None;
        }
        if let Some(fault) = stranger.and_then(|number| self.strangers.get(number)) {
            self.faults.mark(*fault);
        }
        Some((from, message))
    }

    fn hand_over(
        &mut self,
        host: u32,
        from: Station,
        message: M::Message,
        observer: &mut impl Observer<M>,
    ) -> Flow {
        if M::frame_bytes(&message).is_some() {
            self.stats.frames_delivered += 1;
        }
        self.dispatch(host, Input::Deliver { from, message }, Trigger::Deliver, observer)
    }

    /// Something is due for a process that is held: what concerns it waits.
    fn keep(&mut self, entry: Entry, fault: FaultId) {
        let host = &self.hosts[entry.host as usize];
        let kept = match entry.what {
            What::Wake(generation) => generation == host.wake_generation && host.wake.is_some(),
            What::Boot(boot) | What::Persisted(boot) => boot == host.boot,
            What::Command(_) | What::Kept(_) => true,
            What::Deliver(slot) => return self.keep_arrival(entry.host, slot, fault),
        };
        if kept {
            self.hosts[entry.host as usize].backlog.push_back(entry.what);
            self.faults.mark(fault);
        }
    }

    /// A parcel reaches a host whose process is held: the host does its own part now.
    fn keep_arrival(&mut self, host: u32, slot: u32, fault: FaultId) {
        let Some((from, message)) = self.arrive(host, slot) else { return };
        let HostSlot { running, clock, .. } = &mut self.hosts[host as usize];
        let Some(machine) = running else { return };
        self.effects.clear();
        let rest = machine.held(clock.read(self.now), from, message, &mut self.effects);
        self.carry_out(host);
        if let Some(message) = rest {
            let slot = self.parcels.insert(Parcel { from, refused: false, message });
            self.hosts[host as usize].backlog.push_back(What::Kept(slot));
            self.faults.mark(fault);
        }
    }

    /// One handled input: call, carry out, report.
    fn dispatch(
        &mut self,
        host: u32,
        input: Input<M>,
        trigger: Trigger,
        observer: &mut impl Observer<M>,
    ) -> Flow {
        let index = host as usize;
        let slot = &mut self.hosts[index];
        let Some(machine) = slot.running.as_mut() else { return Flow::Continue };
        self.effects.clear();
        let now = slot.clock.read(self.now);
        machine.handle(now, input, &mut self.effects);
        let mut deadline = machine.next_wake();
        if trigger == Trigger::Wake && deadline.is_some_and(|due| due <= now.instant) {
            self.effects.alarms.extend(machine.stuck());
            deadline = Some(now.instant.after(STUCK_PAUSE));
        }
        self.stats.events += 1;
        if !slot.clock_faults.is_empty() {
            self.feel_clock_faults(index);
        }
        self.schedule_wake(host, deadline);
        self.carry_out(host);
        let flow = self.report(index, now, trigger, observer);
        if self.effects.departed {
            self.end(index, true, observer);
        }
        flow
    }

    fn report(&self, index: usize, now: Now, trigger: Trigger, observer: &mut impl Observer<M>) -> Flow {
        let slot = &self.hosts[index];
        let Some(machine) = &slot.running else { return Flow::Continue };
        observer.handled(&Handled {
            at: self.now,
            now,
            host: HostIx(index),
            boot: slot.boot,
            trigger,
            machine,
            effects: &self.effects,
        })
    }

    /// Sees to it that a wake-up is due no later than the deadline. An earlier one stays: it is put off when due.
    fn schedule_wake(&mut self, host: u32, deadline: Option<Instant>) {
        let Some(reading) = deadline else { return };
        let slot = &mut self.hosts[host as usize];
        let at = slot.clock.when(reading).max(self.now);
        if slot.wake.is_some_and(|live| live <= at) {
            return;
        }
        slot.wake = Some(at);
        slot.wake_generation = slot.wake_generation.wrapping_add(1);
        self.queue.push(at, host, What::Wake(slot.wake_generation));
    }

    /// Sends and writes what the last call left.
    fn carry_out(&mut self, host: u32) {
        let mut sends = std::mem::take(&mut self.effects.sends);
        for (to, message) in sends.drain(..) {
            match to {
                To::Many(targets) => {
                    let mut route = std::mem::take(&mut self.hosts[host as usize].route);
                    if let Some((last, hops)) = route.resolve(targets, &self.directory).split_last() {
                        for hop in hops {
                            self.send(host, *hop, message.clone());
                        }
                        self.send(host, *last, message);
                    }
                    self.hosts[host as usize].route = route;
                }
                To::One(addr) => self.send(host, self.directory.resolve(addr), message),
                To::Back(station) => self.send_back(host, station, message),
            }
        }
        self.effects.sends = sends;
        for fault in &self.effects.swallowed {
            self.faults.mark(*fault);
            self.stats.frames_lost += 1;
        }
        let slot = &mut self.hosts[host as usize];
        for (token, record) in self.effects.writes.drain(..) {
            let (due, fault) = slot.store.write(self.now, token, record);
            if let Some(at) = due {
                self.queue.push(at, host, What::Persisted(slot.boot));
            }
            if let Some(fault) = fault {
                self.faults.mark(fault);
            }
        }
    }

    /// Answers a station; what goes to a stranger leaves the world.
    fn send_back(&mut self, host: u32, station: Station, message: M::Message) {
        if (station.0 as usize) < self.hosts.len() {
            self.send(host, Hop::Host(station.0), message);
        }
    }

    fn send(&mut self, from: u32, hop: Hop, message: M::Message) {
        if let Some(bytes) = M::frame_bytes(&message) {
            self.effects.frames_sent += 1;
            self.effects.bytes_sent += bytes as u64;
            self.stats.bytes_sent += bytes as u64;
        }
        let (to, refused) = match hop {
            Hop::Host(to) => (to, false),
            Hop::Refused(to) => (to, true),
            Hop::Nobody => return self.count_lost(&message),
        };
        if let Some(capture) = &mut self.capture
            && M::frame_bytes(&message).is_some()
        {
            capture.keep(self.now, from as usize, to as usize, &message);
        }
        self.launch(Parcel { from: Station(from), refused, message }, to);
    }

    /// Puts a parcel on the link from its sender to `to`.
    fn launch(&mut self, mut parcel: Parcel<M::Message>, to: u32) {
        let from = parcel.from.0;
        let bytes = M::frame_bytes(&parcel.message);
        match self.net.fate(self.now, from, to, bytes, &mut self.faults) {
            Fate::Lost => self.count_lost(&parcel.message),
            Fate::Held => self.net.keep(from, to, parcel),
            Fate::Arrives { at, again_at, flip } => {
                if let Some(again_at) = again_at {
                    let Parcel { from, refused, ref message } = parcel;
                    let copy = Parcel { from, refused, message: message.clone() };
                    let slot = self.parcels.insert(copy);
                    self.queue.push(again_at, to, What::Deliver(slot));
                }
                if let Some((draw, fault)) = flip
                    && M::corrupt(&mut parcel.message, draw)
                {
                    self.faults.mark(fault);
                }
                let slot = self.parcels.insert(parcel);
                self.queue.push(at, to, What::Deliver(slot));
            }
        }
    }

    fn count_lost(&mut self, message: &M::Message) {
        if M::frame_bytes(message).is_some() {
            self.stats.frames_lost += 1;
        }
    }
}
