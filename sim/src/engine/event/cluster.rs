//! The cluster on the simulator: [`EventEngine`] turns scenario faults into calls of [`EventSim`], and what the
//! simulator reports into [`Step`]s.

use std::net::SocketAddr;
use std::time::Duration;

use firedrill_core::config::Config;
use firedrill_core::endpoint::{Endpoint, LinkSizes};
use firedrill_core::guards::Guards;
use firedrill_core::id::NodeId;
use firedrill_core::io::{Alarm, Command, Event, Refusal, Reply};
use firedrill_core::issuance::machine as issuance;
use firedrill_core::issuance::writer::{Batch, Written};
use firedrill_core::metrics::Metrics;
use firedrill_core::node::{Node, Recovered};
use firedrill_core::rng::Seed;
use firedrill_core::time::Instant;

use super::fast::FastNode;
use super::full::FullNode;
use super::machine::{Boot, Handled, Machine, Observer, Station, Trigger};
use super::sim::{EventSim, HostSpec};
use super::store::{Outcome, StoreHealth};
use crate::engine::{
    Cause, Counts, Engine, Fault, FaultId, Flow, HostState, RunStats, Step, WALL_AT_START, Watch, Wire,
};
use crate::scenario::model::{DiskSpec, DiskState, FloodKind, Host, HostIx, LinkSpec};

/// What may differ between two runs of one cluster, beside the seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventOptions {
    /// Which guards of the protocol stand.
    pub guards: Guards,
    /// Keep frames as they are sent. Without it [`Fault::Replay`] finds nothing.
    pub keep_frames: bool,
}

/// A cluster node in either wire mode, as the engine needs it.
pub(super) trait ClusterMachine:
    Machine<Record = Batch, Command = Command, Answer = Result<Reply, Refusal>, Event = Event, Alarm = Alarm>
{
    /// What crosses the network.
    const WIRE: Wire;

    /// A new process.
    fn boot(config: &Config, guards: Guards, boot: Boot<'_, Batch>) -> Self;
    /// The node inside.
    fn node(&self) -> &Node;
    /// The connections around it, where there are any.
    fn endpoint(&self) -> Option<&Endpoint>;
    /// How full the connection tables are.
    fn links(&self) -> LinkSizes;
    /// What the last delivery was.
    fn delivered(&self) -> Cause<'_>;
    /// Present connections dialled to this address carry nothing any more.
    fn half_open(&mut self, to: SocketAddr, fault: FaultId);
    /// What a stranger sends to repeat these frames.
    fn replay(frames: Vec<Self::Message>, stranger: impl FnOnce() -> Station) -> Script<Self>;
    /// What strangers send to forge frames of `sender`.
    fn forge(sender: &NodeId, to: &Config, count: usize, stranger: impl FnMut() -> Station) -> Script<Self>;
    /// What strangers send to flood a host.
    fn flood(kind: FloodKind, connections: usize, stranger: impl FnMut() -> Station) -> Script<Self>;
}

/// A disk's state as the simulated store has it.
pub(in crate::engine) const fn health(disk: DiskSpec) -> StoreHealth {
    match disk.state {
        DiskState::Works => StoreHealth::Answers(disk.latency),
        DiskState::Full => StoreHealth::Full(disk.latency),
        DiskState::Unsynced => StoreHealth::Unsynced(disk.latency),
        DiskState::Stalled => StoreHealth::Dead,
    }
}

/// The first event of a boot, which a machine reports with its first input: the node inside does not.
pub(super) fn started(node: &Node) -> Event {
    Event::Started { incarnation: node.boot_incarnation() }
}

/// What a disk holds, as a node takes it.
pub(in crate::engine) fn recovered(records: &[Batch]) -> Recovered {
    let rows = records.iter().flat_map(|batch| batch.rows.iter().cloned()).collect();
    let promised = records.iter().rev().find_map(|batch| batch.promised);
    Recovered { issuance: issuance::Recovered { rows, promised } }
}

pub(in crate::engine) const fn written(outcome: Outcome) -> Written {
    match outcome {
        Outcome::Durable => Written::Durable,
        Outcome::Refused => Written::Refused,
    }
}

/// What strangers send, and how long from now. They act blindly: no answer changes their course.
pub(in crate::engine) struct Script<M: Machine>(pub(in crate::engine) Vec<(Station, Duration, M::Message)>);

/// The event engine. `M` is the wire mode: see [`EventEngine::fast`] and [`EventEngine::full`].
#[derive(Debug)]
pub struct EventEngine<M: Machine> {
    sim: EventSim<M>,
    configs: Vec<Config>,
}

impl EventEngine<FastNode> {
    /// An engine that moves messages as values.
    pub fn fast(hosts: &[Host], net: LinkSpec, seed: Seed, options: EventOptions) -> Self {
        Self::new(hosts, &net, &seed, options)
    }
}

impl EventEngine<FullNode> {
    /// An engine that moves real bytes with real MACs over modelled connections.
    pub fn full(hosts: &[Host], net: LinkSpec, seed: Seed, options: EventOptions) -> Self {
        Self::new(hosts, &net, &seed, options)
    }
}

#[expect(private_bounds, reason = "the wire modes are a closed set")]
impl<M: ClusterMachine> EventEngine<M> {
    fn new(hosts: &[Host], net: &LinkSpec, seed: &Seed, options: EventOptions) -> Self {
        let specs: Vec<HostSpec> = hosts
            .iter()
            .map(|host| HostSpec {
                addr: host.listens_at(),
                wall: WALL_AT_START.offset_micros(host.wall_offset_us),
                from_start: host.from_start,
            })
            .collect();
        let configs: Vec<Config> = hosts.iter().map(Host::node_config).collect();
        let mut at_boot: Vec<_> = specs.iter().map(|spec| spec.addr).zip(configs.clone()).collect();
        let factory = move |boot: Boot<'_, Batch>| {
            let (listens_at, config) = &mut at_boot[boot.host.0];
            if *listens_at != boot.addr {
                // It has moved: it listens there and says so, whatever it advertised before.
                *listens_at = boot.addr;
                config.cluster.bind_addr = boot.addr;
                config.cluster.advertise_addr = Some(boot.addr);
            }
            M::boot(config, options.guards, boot)
        };
        let mut sim = EventSim::new(&specs, net, seed, factory);
        if options.keep_frames {
            sim.keep_frames();
        }
        Self { sim, configs }
    }

    /// Which wire mode this is.
    pub const fn wire(&self) -> Wire {
        M::WIRE
    }

    /// Sends what strangers do. The moments of a script follow one another.
    fn play(&mut self, to: HostIx, script: Script<M>) {
        for (station, after, message) in script.0 {
            self.sim.inject(station, to, after, message);
        }
    }

    fn start(
        &mut self,
        (host, wall_step_us, addr): (HostIx, Option<i64>, Option<SocketAddr>),
        lose_disk: bool,
        fault: FaultId,
        watch: &mut Adapter<'_>,
    ) {
        self.sim.kill(host, watch);
        if lose_disk && self.sim.lose_disk(host) {
            self.sim.mark(fault);
        }
        if let Some(by_us) = wall_step_us {
            self.sim.step_clock(host, by_us, fault);
        }
        if let Some(addr) = addr {
            self.sim.set_addr(host, addr);
        }
        if self.sim.start(host, watch) {
            self.sim.mark(fault);
        }
    }

    fn half_open(&mut self, pairs: &[(HostIx, HostIx)], fault: FaultId) {
        for (from, to) in pairs {
            if let (Some(addr), Some(machine)) = (self.sim.addr(*to), self.sim.machine_mut(*from)) {
                machine.half_open(addr, fault);
            }
        }
    }

    /// Faults of strangers.
    fn strange(&mut self, fault_spec: &Fault, fault: FaultId) {
        let Self { sim, configs } = self;
        let (to, script) = match fault_spec {
            Fault::Replay { from, to, captured, count } => {
                let frames = sim.captured(*from, *to, *captured, *count);
                if frames.is_empty() {
                    return;
                }
                (*to, M::replay(frames, || sim.stranger(fault)))
            }
            Fault::Forge { sender, to, count } => {
                let Some(config) = configs.get(to.0) else { return };
                (*to, M::forge(sender, config, *count, || sim.stranger(fault)))
            }
            Fault::Flood { to, connections, garbage } => {
                (*to, M::flood(*garbage, *connections, || sim.stranger(fault)))
            }
            Fault::Kill(_)
            | Fault::Stop(_)
            | Fault::Start { .. }
            | Fault::Pause(_)
            | Fault::Resume(_)
            | Fault::Block(_)
            | Fault::Unblock(_)
            | Fault::Hold(_)
            | Fault::Release(_)
            | Fault::Link(..)
            | Fault::HalfOpen(_)
            | Fault::ClockStep { .. }
            | Fault::ClockRate { .. }
            | Fault::ClockFreeze { .. }
            | Fault::Disk { .. }
            | Fault::Corrupt(..) => return,
        };
        self.play(to, script);
    }
}

impl<M: ClusterMachine> Engine for EventEngine<M> {
    fn now(&self) -> Instant {
        self.sim.now()
    }

    fn run_until(&mut self, until: Instant, watch: &mut dyn Watch) -> Flow {
        self.sim.run_until(until, &mut Adapter { watch, command: None })
    }

    fn command(
        &mut self,
        host: HostIx,
        command: Command,
        watch: &mut dyn Watch,
    ) -> Option<Result<Reply, Refusal>> {
        let shown = command.clone();
        self.sim.command(host, command, &mut Adapter { watch, command: Some(&shown) })
    }

    fn apply(&mut self, fault_spec: &Fault, watch: &mut dyn Watch) -> FaultId {
        let fault = self.sim.new_fault();
        let sim = &mut self.sim;
        let watch = &mut Adapter { watch, command: None };
        let done = match fault_spec {
            Fault::Kill(host) => sim.kill(*host, watch),
            Fault::Stop(host) => {
                watch.command = Some(&Command::Leave);
                sim.command_when_resumed(*host, Command::Leave, watch)
            }
            Fault::Resume(host) => sim.resume(*host),
            Fault::Unblock(pairs) => sim.unblock(pairs),
            Fault::Release(pairs) => sim.release(pairs),
            // The rest has an effect later, if at all.
            Fault::Start { host, wall_step_us, addr, lose_disk } => {
                self.start((*host, *wall_step_us, *addr), *lose_disk, fault, watch);
                false
            }
            Fault::Pause(host) => {
                sim.pause(*host, fault);
                false
            }
            Fault::Block(pairs) => {
                sim.block(pairs, fault);
                false
            }
            Fault::Hold(pairs) => {
                sim.hold(pairs, fault);
                false
            }
            Fault::Link(pairs, spec) => {
                sim.set_links(pairs, spec, fault);
                false
            }
            Fault::Corrupt(pairs, rate_ppm) => {
                sim.corrupt(pairs, *rate_ppm, fault);
                false
            }
            Fault::ClockStep { host, by_us } => {
                sim.step_clock(*host, *by_us, fault);
                false
            }
            Fault::ClockRate { host, rate_ppm } => {
                sim.set_clock_rate(*host, *rate_ppm, fault);
                false
            }
            Fault::ClockFreeze { host, frozen } => {
                sim.freeze_clock(*host, *frozen, fault);
                false
            }
            Fault::HalfOpen(pairs) => {
                self.half_open(pairs, fault);
                false
            }
            Fault::Disk { host, disk } => {
                sim.set_store(*host, health(*disk), Some(fault));
                false
            }
            Fault::Replay { .. } | Fault::Forge { .. } | Fault::Flood { .. } => {
                self.strange(fault_spec, fault);
                false
            }
        };
        if done {
            self.sim.mark(fault);
        }
        fault
    }

    fn had_effect(&self, fault: FaultId) -> bool {
        self.sim.had_effect(fault)
    }

    fn state(&self, host: HostIx) -> HostState {
        self.sim.state(host)
    }

    fn with_node(&self, host: HostIx, look: &mut dyn FnMut(&Node)) {
        if let Some(machine) = self.sim.machine(host) {
            look(machine.node());
        }
    }

    fn metrics(&self, host: HostIx) -> Option<Metrics> {
        let machine = self.sim.machine(host)?;
        Some(machine.endpoint().map_or_else(|| machine.node().metrics().clone(), Endpoint::metrics))
    }

    fn stats(&self) -> RunStats {
        self.sim.stats()
    }
}

/// Shows a [`Watch`] what an [`Observer`] is told.
struct Adapter<'a> {
    watch: &'a mut dyn Watch,
    /// The command being handed over, when one is.
    command: Option<&'a Command>,
}

impl<M: ClusterMachine> Observer<M> for Adapter<'_> {
    fn handled(&mut self, handled: &Handled<'_, M>) -> Flow {
        let Handled { at, now, host, boot, trigger, machine, effects } = handled;
        self.watch.observe(&Step {
            at: *at,
            now: *now,
            host: *host,
            boot: *boot,
            cause: match trigger {
                Trigger::Boot => Cause::Boot,
                Trigger::Deliver => machine.delivered(),
                // The only command ever put off is the departure asked of a paused host.
                Trigger::Command => Cause::Command(self.command.unwrap_or(&Command::Leave)),
                Trigger::Persisted(outcome) => Cause::Disk(written(*outcome)),
                Trigger::Wake => Cause::Wake,
            },
            node: machine.node(),
            counts: machine.endpoint().map_or(Counts::Node, Counts::Endpoint),
            events: effects.events(),
            frames_sent: effects.frames_sent(),
            bytes_sent: effects.bytes_sent(),
            links: machine.links(),
            alarms: effects.alarms(),
        })
    }

    fn down(&mut self, at: Instant, host: HostIx, boot: u32, graceful: bool) {
        self.watch.down(at, host, boot, graceful);
    }
}
