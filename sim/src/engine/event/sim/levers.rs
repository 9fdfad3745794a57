//! What faults do to a simulation: the levers of [`EventSim`].
//!
//! A fault is numbered with [`EventSim::new_fault`] and marked once it changed anything. Some do so at once (a
//! boot), the others later and where they act: in the network, on arrival, with the first input that a pause
//! keeps or that reads a changed clock.
//!
//! Absent: targets that are not resolved, and how long a fault stands. Whoever pulls a lever knows both.

use std::net::SocketAddr;

use firedrill_core::time::{Duration, Instant};

use super::{EventSim, Parcel, host_number};
use crate::engine::event::clock::HostClock;
use crate::engine::event::machine::{Input, Machine, Observer, Station, Trigger};
use crate::engine::event::queue::What;
use crate::engine::event::store::StoreHealth;
use crate::engine::{FaultId, HostState};
use crate::scenario::model::{HostIx, LinkSpec};

impl<M: Machine> EventSim<M> {
    /// Numbers a new fault.
    pub fn new_fault(&mut self) -> FaultId {
        self.faults.add()
    }

    /// The fault changed something.
    pub(in crate::engine::event) fn mark(&mut self, fault: FaultId) {
        self.faults.mark(fault);
    }

    /// Whether the fault changed anything so far.
    pub fn had_effect(&self, fault: FaultId) -> bool {
        self.faults.had_effect(fault)
    }

    /// Hands a command to a host now, or when it resumes if it is paused. True when it runs at all.
    pub fn command_when_resumed(
        &mut self,
        host: HostIx,
        command: M::Command,
        observer: &mut impl Observer<M>,
    ) -> bool {
        match self.state(host) {
            HostState::Down => return false,
            HostState::Up => {
                self.command(host, command, observer);
            }
            HostState::Paused => {
                let slot = self.commands.insert(command);
                self.hosts[host.0].backlog.push_back(What::Command(slot));
            }
        }
        true
    }

    /// Power loss. True when the host ran.
    pub fn kill(&mut self, host: HostIx, observer: &mut impl Observer<M>) -> bool {
        let ran = self.state(host) != HostState::Down;
        if ran {
            self.end(host.0, false, observer);
        }
        ran
    }

    /// Boots a host that is down, and handles its first input. False when it is up or unknown.
    pub fn start(&mut self, host: HostIx, observer: &mut impl Observer<M>) -> bool {
        if host.0 >= self.hosts.len() || self.state(host) != HostState::Down {
            return false;
        }
        self.make(host.0);
        self.dispatch(host_number(host.0), Input::Boot, Trigger::Boot, observer);
        true
    }

    /// Gives a host another address, for its next boot. A running process does not move.
    pub fn set_addr(&mut self, host: HostIx, addr: SocketAddr) {
        if let Some(slot) = self.hosts.get_mut(host.0) {
            slot.addr = addr;
            self.directory.set(host_number(host.0), addr);
        }
    }

    /// Holds execution. The fault has an effect with the first input or timer it keeps.
    pub fn pause(&mut self, host: HostIx, fault: FaultId) {
        if self.state(host) == HostState::Up {
            self.hosts[host.0].paused = Some(fault);
        }
    }

    /// Goes on: what was kept is due now, in order. True when the host was paused.
    pub fn resume(&mut self, host: HostIx) -> bool {
        if self.state(host) != HostState::Paused {
            return false;
        }
        let slot = &mut self.hosts[host.0];
        slot.paused = None;
        for what in slot.backlog.drain(..) {
            self.queue.push(self.now, host_number(host.0), what);
        }
        true
    }

    /// Cuts these pairs once more. A pair is open when nobody blocks it.
    pub fn block(&mut self, pairs: &[(HostIx, HostIx)], fault: FaultId) {
        for (from, to) in pairs {
            self.net.block(from.0, to.0, fault);
        }
    }

    /// Takes every block off these pairs. True when there was one on any.
    pub fn unblock(&mut self, pairs: &[(HostIx, HostIx)]) -> bool {
        pairs.iter().fold(false, |any, (from, to)| self.net.unblock(from.0, to.0) || any)
    }

    /// Keeps what is sent on these pairs from now on.
    pub fn hold(&mut self, pairs: &[(HostIx, HostIx)], fault: FaultId) {
        for (from, to) in pairs {
            self.net.hold(from.0, to.0, fault);
        }
    }

    /// Ends the holds of these pairs: what was kept is sent now, in order. True when any pair was held.
    pub fn release(&mut self, pairs: &[(HostIx, HostIx)]) -> bool {
        let mut any = false;
        for (from, to) in pairs {
            let Some(held) = self.net.release(from.0, to.0) else { continue };
            any = true;
            for parcel in held {
                self.launch(parcel, host_number(to.0));
            }
        }
        any
    }

    /// Makes these pairs behave so from now on.
    pub fn set_links(&mut self, pairs: &[(HostIx, HostIx)], spec: &LinkSpec, fault: FaultId) {
        for (from, to) in pairs {
            self.net.set_rules(from.0, to.0, spec, fault);
        }
    }

    /// Flips a bit in so many frames of a million on these pairs.
    pub fn corrupt(&mut self, pairs: &[(HostIx, HostIx)], rate_ppm: u32, fault: FaultId) {
        for (from, to) in pairs {
            self.net.corrupt(from.0, to.0, rate_ppm, fault);
        }
    }

    /// Steps a host's wall clock.
    pub fn step_clock(&mut self, host: HostIx, by_us: i64, fault: FaultId) {
        self.change_clock(host, fault, Duration::ZERO, |clock, now| clock.step(now, by_us));
    }

    /// Runs both of a host's clocks at this rate.
    pub fn set_clock_rate(&mut self, host: HostIx, rate_ppm: u32, fault: FaultId) {
        let felt_after = Duration::from_micros(1);
        self.change_clock(host, fault, felt_after, |clock, now| clock.set_rate(now, rate_ppm));
    }

    /// Stops a host's wall clock, or lets it go on.
    pub fn freeze_clock(&mut self, host: HostIx, frozen: bool, fault: FaultId) {
        let felt_after = Duration::from_micros(1);
        self.change_clock(host, fault, felt_after, |clock, now| clock.freeze(now, frozen));
    }

    /// Changes how a host's disk treats writes.
    pub fn set_store(&mut self, host: HostIx, health: StoreHealth, fault: Option<FaultId>) {
        let Some(slot) = self.hosts.get_mut(host.0) else { return };
        for at in slot.store.set_health(self.now, health, fault) {
            self.queue.push(at, host_number(host.0), What::Persisted(slot.boot));
        }
    }

    /// Replaces the disk of a host that is down by an empty one. True when there was anything on it.
    pub fn lose_disk(&mut self, host: HostIx) -> bool {
        self.state(host) == HostState::Down
            && self.hosts.get_mut(host.0).is_some_and(|slot| slot.store.lose())
    }

    /// A new stranger, brought in by a fault. The fault has an effect when a message of it is handled.
    pub(in crate::engine::event) fn stranger(&mut self, fault: FaultId) -> Station {
        self.strangers.push(fault);
        Station(host_number(self.hosts.len() + self.strangers.len() - 1))
    }

    /// A stranger sends this to a host, `after` from now plus the shortest latency. No link rule applies.
    pub(in crate::engine::event) fn inject(
        &mut self,
        from: Station,
        to: HostIx,
        after: Duration,
        message: M::Message,
    ) {
        let slot = self.parcels.insert(Parcel { from, refused: false, message });
        let at = self.now.after(after).after(self.stranger_latency);
        self.queue.push(at, host_number(to.0), What::Deliver(slot));
    }

    /// Captured frames from one host to another in a span of the run, the earliest `count`.
    pub(in crate::engine::event) fn captured(
        &self,
        from: HostIx,
        to: HostIx,
        span: (Duration, Duration),
        count: usize,
    ) -> Vec<M::Message> {
        let Some(capture) = &self.capture else { return Vec::new() };
        capture.find(from.0, to.0, span).take(count).cloned().collect()
    }

    fn change_clock(
        &mut self,
        host: HostIx,
        fault: FaultId,
        felt_after: Duration,
        change: impl FnOnce(&mut HostClock, Instant) -> bool,
    ) {
        let Some(slot) = self.hosts.get_mut(host.0) else { return };
        if change(&mut slot.clock, self.now) {
            slot.clock_faults.push((fault, self.now.after(felt_after)));
            // A live wake-up was computed at the old rate.
            if slot.wake.take().is_some()
                && let Some(machine) = &slot.running
            {
                let deadline = machine.next_wake();
                self.schedule_wake(host_number(host.0), deadline);
            }
        }
    }

    /// Marks the clock faults that an input handled now has felt.
    pub(super) fn feel_clock_faults(&mut self, index: usize) {
        let (now, log) = (self.now, &mut self.faults);
        self.hosts[index].clock_faults.retain(|(fault, felt_from)| {
            let felt = now >= *felt_from;
            if felt {
                log.mark(*fault);
            }
            !felt
        });
    }
}
