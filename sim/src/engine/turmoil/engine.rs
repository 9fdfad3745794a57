//! The engine: turmoil's simulation, and the faults that are done to it from outside.

use std::net::SocketAddr;
use std::panic::resume_unwind;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::SystemTime;

use firedrill_core::guards::Guards;
use firedrill_core::id::NodeId;
use firedrill_core::io::{Command, Refusal, Reply};
use firedrill_core::metrics::Metrics;
use firedrill_core::node::Node;
use firedrill_core::rng::Seed;
use firedrill_core::time::{Duration, Instant, micros};

use super::fabric::{Fabric, Place, ip_of, number};
use super::record::Unseen;
use super::{host, strangers};
use crate::engine::event::clock::HostClock;
use crate::engine::event::cluster::Script;
use crate::engine::event::cluster::health;
use crate::engine::event::full::FullNode;
use crate::engine::event::machine::Station;
use crate::engine::event::strangers as scripts;
use crate::engine::{Engine, Fault, FaultId, Flow, HostState, RunStats, Watch};
use crate::scenario::model::{FloodKind, Host, HostIx, LinkSpec};

/// The longest run turmoil is asked for.
const RUN_MAX: Duration = Duration::from_secs(u32::MAX as u64);
/// What turmoil itself adds to a segment: any time up to a tick makes it arrive with the next tick.
const TURMOIL_LATENCY: Duration = Duration::from_millis(1);

/// What may differ between two runs of one cluster, beside the seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurmoilOptions {
    /// Length of a tick, in whole milliseconds; 0 counts as 1. Cost is per tick; times are asserted at 1, bulk is
    /// run at 10.
    pub tick_ms: u64,
    /// Which guards of the protocol stand.
    pub guards: Guards,
    /// Keep frames as they are sent. Without it [`Fault::Replay`] finds nothing.
    pub keep_frames: bool,
}

impl Default for TurmoilOptions {
    fn default() -> Self {
        Self { tick_ms: 1, guards: Guards::ON, keep_frames: false }
    }
}

/// The turmoil engine. One thread each.
pub struct TurmoilEngine {
    sim: turmoil::Sim<'static>,
    pub(super) fabric: Fabric,
    guards: Guards,
    /// Which hosts turmoil knows.
    registered: Vec<bool>,
    strangers_registered: bool,
    unseen: Unseen,
}

impl std::fmt::Debug for TurmoilEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TurmoilEngine").field("now", &self.now()).finish_non_exhaustive()
    }
}

impl TurmoilEngine {
    /// A run at true time zero; hosts that are there from the start boot with the first tick.
    pub fn new(hosts: &[Host], net: LinkSpec, seed: Seed, options: TurmoilOptions) -> Self {
        let TurmoilOptions { tick_ms, guards, keep_frames } = options;
        let tick = Duration::from_millis(tick_ms.max(1));
        let sim = turmoil::Builder::new()
            .rng_seed(seed.fork("turmoil").rng().u64())
            .epoch(SystemTime::UNIX_EPOCH)
            .tick_duration(tick)
            .simulation_duration(RUN_MAX)
            .min_message_latency(TURMOIL_LATENCY)
            .max_message_latency(TURMOIL_LATENCY)
            .build();
        let fabric = Fabric::new(hosts, &net, &seed, tick, keep_frames);
        let registered = vec![false; hosts.len()];
        let unseen = Unseen::default();
        let mut engine = Self { sim, fabric, guards, registered, strangers_registered: false, unseen };
        for (index, _) in hosts.iter().enumerate().filter(|(_, host)| host.from_start) {
            engine.boot(HostIx(index));
        }
        engine
    }

    fn boot(&mut self, host: HostIx) {
        self.fabric.lock().boot(host);
        if std::mem::replace(&mut self.registered[host.0], true) {
            self.sim.bounce(ip_of(host));
        } else {
            let (fabric, guards) = (self.fabric.clone(), self.guards);
            self.sim.host(ip_of(host), move || host::run(fabric.clone(), host, guards));
        }
    }

    /// One tick.
    fn step(&mut self) {
        if let Err(error) = self.sim.step() {
            panic!("a host of the turmoil engine failed: {error}");
        }
        let finished: Vec<HostIx> = {
            let mut state = self.fabric.lock();
            state.ticked_to = Instant::from_micros(micros(self.sim.elapsed()));
            if let Some(payload) = state.panic.take() {
                drop(state);
                resume_unwind(payload);
            }
            let finished = |(index, place): (usize, &mut Place)| {
                std::mem::take(&mut place.finished).then_some(HostIx(index))
            };
            state.hosts.iter_mut().enumerate().filter_map(finished).collect()
        };
        for host in finished {
            self.power_off(host, false);
        }
    }

    /// Shows the watch what hosts did, until it says stop.
    fn show(&mut self, watch: &mut dyn Watch) -> Flow {
        let records = std::mem::take(&mut self.fabric.lock().records);
        self.unseen.add(records);
        self.unseen.show(watch)
    }

    /// Shows the watch everything that hosts did: it must not be told late.
    fn show_all(&mut self, watch: &mut dyn Watch) {
        while self.show(watch) == Flow::Stop {}
    }

    /// Ends everything that runs on a host. Its last packets reach nobody when `silent`, and otherwise those to
    /// whom no cut is in the way.
    fn power_off(&mut self, host: HostIx, silent: bool) {
        let unreached: Vec<_> = {
            let state = &mut *self.fabric.lock();
            let place = &mut state.hosts[host.0];
            place.disk_due = None;
            if let Some(fault) = place.disk.end(!silent) {
                state.faults.mark(fault);
            }
            state.drop_pipes(host);
            let peers =
                (0..state.hosts.len()).map(HostIx).filter(|peer| *peer != host && self.registered[peer.0]);
            peers.filter(|peer| silent || state.swallows(host, *peer)).map(ip_of).collect()
        };
        let own = ip_of(host);
        let strangers = (silent && self.strangers_registered).then_some(strangers::STRANGERS);
        for peer in unreached.iter().copied().chain(strangers) {
            self.sim.partition_oneway(own, peer);
        }
        self.sim.crash(own);
        for peer in unreached.into_iter().chain(strangers) {
            self.sim.repair_oneway(own, peer);
        }
    }

    /// Power loss. True when the host ran.
    fn kill(&mut self, host: HostIx, watch: &mut dyn Watch) -> bool {
        if self.state(host) == HostState::Down {
            return false;
        }
        let boot = {
            let mut state = self.fabric.lock();
            state.ended(host);
            state.hosts[host.0].boot
        };
        self.power_off(host, true);
        watch.down(self.now(), host, boot, false);
        true
    }

    fn start(
        &mut self,
        fault: FaultId,
        host: HostIx,
        wall_step_us: Option<i64>,
        addr: Option<SocketAddr>,
        lose_disk: bool,
        watch: &mut dyn Watch,
    ) {
        self.kill(host, watch);
        {
            let state = &mut *self.fabric.lock();
            if let Some(by_us) = wall_step_us {
                state.change_clock(host, fault, Duration::ZERO, |clock, now| clock.step(now, by_us));
            }
            if let Some(addr) = addr {
                state.directory.set(number(host), addr);
                let config = &mut state.hosts[host.0].config;
                config.cluster.bind_addr = addr;
                config.cluster.advertise_addr = Some(addr);
            }
            if lose_disk {
                state.hosts[host.0].disk.lose();
            }
            state.faults.mark(fault);
        }
        self.boot(host);
    }

    fn visit(&mut self, to: HostIx, fault: FaultId, script: Script<FullNode>) {
        if !std::mem::replace(&mut self.strangers_registered, true) {
            let fabric = self.fabric.clone();
            self.sim.host(strangers::STRANGERS, move || strangers::run(fabric.clone()));
        }
        let mut state = self.fabric.lock();
        state.visits.extend(strangers::visits(to, fault, script));
        state.visits_wanted.notify_one();
    }

    fn replay(
        &mut self,
        fault: FaultId,
        (from, to): (HostIx, HostIx),
        captured: (Duration, Duration),
        count: usize,
    ) {
        let frames: Vec<_> = {
            let state = self.fabric.lock();
            let Some(capture) = &state.capture else { return };
            capture.find(from.0, to.0, captured).take(count).cloned().collect()
        };
        if !frames.is_empty() {
            self.visit(to, fault, scripts::replay(Station(0), frames.into_iter()));
        }
    }

    fn forge(&mut self, fault: FaultId, sender: &NodeId, to: HostIx, count: usize) {
        let cluster = self.fabric.lock().hosts[to.0].config.cluster.cluster_name.clone();
        let script = scripts::forge(sender, &cluster, count, stations());
        self.visit(to, fault, script);
    }

    fn flood(&mut self, fault: FaultId, to: HostIx, connections: usize, kind: FloodKind) {
        self.visit(to, fault, scripts::flood(kind, connections, stations()));
    }

    /// Faults of hosts, clocks and strangers. True when it has an effect at once.
    fn act(&mut self, spec: &Fault, fault: FaultId, watch: &mut dyn Watch) -> bool {
        let feel_later = Duration::from_micros(1);
        match spec {
            Fault::Kill(host) => return self.kill(*host, watch),
            Fault::Stop(host) => return self.stop(*host),
            Fault::Resume(host) => return self.resume(*host),
            Fault::Pause(host) => self.pause(*host, fault),
            Fault::Start { host, wall_step_us, addr, lose_disk } => {
                self.start(fault, *host, *wall_step_us, *addr, *lose_disk, watch);
            }
            Fault::Disk { host, disk } => {
                let state = &mut *self.fabric.lock();
                let now = state.now();
                let place = &mut state.hosts[host.0];
                let due = place.disk.set_health(now, health(*disk), Some(fault));
                place.disk_due = due.first().copied().or(place.disk_due);
                place.disk_changed.notify_one();
            }
            Fault::ClockStep { host, by_us } => {
                let step = |clock: &mut HostClock, now| clock.step(now, *by_us);
                self.fabric.lock().change_clock(*host, fault, Duration::ZERO, step);
            }
            Fault::ClockRate { host, rate_ppm } => {
                let rate = |clock: &mut HostClock, now| clock.set_rate(now, *rate_ppm);
                self.fabric.lock().change_clock(*host, fault, feel_later, rate);
            }
            Fault::ClockFreeze { host, frozen } => {
                let freeze = |clock: &mut HostClock, now| clock.freeze(now, *frozen);
                self.fabric.lock().change_clock(*host, fault, feel_later, freeze);
            }
            Fault::Replay { from, to, captured, count } => {
                self.replay(fault, (*from, *to), *captured, *count);
            }
            Fault::Forge { sender, to, count } => self.forge(fault, sender, *to, *count),
            Fault::Flood { to, connections, garbage } => self.flood(fault, *to, *connections, *garbage),
            Fault::Block(_)
            | Fault::Unblock(_)
            | Fault::Hold(_)
            | Fault::Release(_)
            | Fault::Link(..)
            | Fault::HalfOpen(_)
            | Fault::Corrupt(..) => return self.act_on_links(spec, fault),
        }
        false
    }

    /// Faults of links. True when it has an effect at once.
    fn act_on_links(&mut self, spec: &Fault, fault: FaultId) -> bool {
        let state = &mut *self.fabric.lock();
        let mut any = false;
        match spec {
            Fault::Block(pairs) => pairs.iter().for_each(|(from, to)| state.net.block(from.0, to.0, fault)),
            Fault::Unblock(pairs) => {
                pairs.iter().for_each(|(from, to)| any |= state.net.unblock(from.0, to.0))
            }
            Fault::Hold(pairs) => pairs.iter().for_each(|(from, to)| state.net.hold(from.0, to.0, fault)),
            Fault::Release(pairs) => pairs.iter().for_each(|(from, to)| any |= state.release(*from, *to)),
            Fault::Link(pairs, rules) => {
                pairs.iter().for_each(|(from, to)| state.net.set_rules(from.0, to.0, rules, fault));
            }
            Fault::HalfOpen(pairs) => pairs.iter().for_each(|(from, to)| state.half_open(*from, *to, fault)),
            Fault::Corrupt(pairs, rate_ppm) => {
                pairs.iter().for_each(|(from, to)| state.net.corrupt(from.0, to.0, *rate_ppm, fault));
            }
            Fault::Kill(_)
            | Fault::Stop(_)
            | Fault::Start { .. }
            | Fault::Pause(_)
            | Fault::Resume(_)
            | Fault::ClockStep { .. }
            | Fault::ClockRate { .. }
            | Fault::ClockFreeze { .. }
            | Fault::Disk { .. }
            | Fault::Replay { .. }
            | Fault::Forge { .. }
            | Fault::Flood { .. } => {}
        }
        any
    }

    /// Asks for a graceful departure; a paused host departs once it is resumed.
    fn stop(&self, host: HostIx) -> bool {
        let place = &self.fabric.lock().hosts[host.0];
        if place.up {
            place.stop.notify_one();
        }
        place.up
    }

    fn pause(&self, host: HostIx, fault: FaultId) {
        let place = &mut self.fabric.lock().hosts[host.0];
        if place.up && place.paused.is_none() {
            place.paused = Some(fault);
        }
    }

    fn resume(&self, host: HostIx) -> bool {
        let mut state = self.fabric.lock();
        let paused = state.hosts[host.0].paused.take().is_some();
        state.wake(host);
        paused
    }
}

impl Engine for TurmoilEngine {
    fn now(&self) -> Instant {
        self.fabric.lock().ticked_to
    }

    /// Ends at the first tick that ends at `until` or later.
    fn run_until(&mut self, until: Instant, watch: &mut dyn Watch) -> Flow {
        loop {
            if self.show(watch) == Flow::Stop {
                return Flow::Stop;
            }
            if self.now() >= until {
                return Flow::Continue;
            }
            self.step();
        }
    }

    fn command(
        &mut self,
        host: HostIx,
        command: Command,
        watch: &mut dyn Watch,
    ) -> Option<Result<Reply, Refusal>> {
        if self.state(host) != HostState::Up {
            return None;
        }
        self.show_all(watch);
        let handle = self.fabric.lock().hosts[host.0].handle.clone()?;
        self.fabric.lock().reply = None;
        match command {
            Command::Increment { counter, by } => {
                // The answer is the one that the observer saw.
                let _ = handle.counter(counter.as_str()).map(|counter| counter.add(by));
            }
            // The departure begins with the first poll and ends in the host.
            Command::PauseIssuance { paused } => {
                let _ = handle.pause_issuance(paused);
            }
            Command::Leave => {
                let _ = pin!(handle.leave()).poll(&mut Context::from_waker(Waker::noop()));
            }
        }
        let reply = self.fabric.lock().reply.take();
        self.show_all(watch);
        reply
    }

    fn apply(&mut self, spec: &Fault, watch: &mut dyn Watch) -> FaultId {
        self.show_all(watch);
        let fault = self.fabric.lock().faults.add();
        if self.act(spec, fault, watch) {
            self.fabric.lock().faults.mark(fault);
        }
        fault
    }

    fn had_effect(&self, fault: FaultId) -> bool {
        self.fabric.lock().faults.had_effect(fault)
    }

    fn state(&self, host: HostIx) -> HostState {
        match self.fabric.lock().hosts.get(host.0) {
            Some(place) if place.up && place.paused.is_some() => HostState::Paused,
            Some(place) if place.up => HostState::Up,
            Some(_) | None => HostState::Down,
        }
    }

    fn with_node(&self, host: HostIx, look: &mut dyn FnMut(&Node)) {
        let node = self.fabric.lock().hosts.get(host.0).and_then(|place| place.node.clone());
        if let Some(node) = node {
            look(&node);
        }
    }

    fn metrics(&self, host: HostIx) -> Option<Metrics> {
        self.fabric.lock().hosts.get(host.0)?.metrics.clone()
    }

    fn stats(&self) -> RunStats {
        self.fabric.lock().stats
    }
}

impl Drop for TurmoilEngine {
    /// Handles lead back to the fabric: without this a run would keep itself in memory.
    fn drop(&mut self) {
        let mut state = self.fabric.lock();
        for host in (0..state.hosts.len()).map(HostIx) {
            state.ended(host);
        }
    }
}

/// Numbers for strangers.
fn stations() -> impl FnMut() -> Station {
    let mut next = 0;
    move || {
        next += 1;
        Station(next)
    }
}
