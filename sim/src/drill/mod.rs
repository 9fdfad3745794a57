//! Conducts a drill over any engine.
//!
//! [`run`] makes the engine that the options ask for and hands it to [`conduct`], which knows an
//! [`Engine`] only by its trait: the same scenario gets its verdict from the same code on every engine.
//!
//! A run has three phases. In the *drill*, up to the scenario's time limit, steps fire and clients increment.
//! Then faults that still stand end (killed nodes stay down), clients stop, and the *liveness phase* lasts until
//! the nodes agree or the bound is exceeded. At last everything is looked at once more in full. A broken safety
//! invariant ends a run at once; a failed expectation does not.
//!
//! Meaning of the clock verbs: `clock_step` moves the wall clock once, and back when it has a `for`;
//! `clock_rate` and `clock_freeze` stand until their `for` or the time limit ends them.
//!
//! Boots of one node id are a millisecond apart at least, because an incarnation is a wall clock in
//! milliseconds: a boot that would come sooner is delayed to that moment, unless the scenario says
//! `same_millisecond`. Where a clock verb makes incarnations collide all the same, the timeline says so.
//!
//! Absent: reading scenarios, simulating anything, judging invariants.

mod actions;
mod agreement;
mod applied;
mod belief;
mod conductor;
mod expect;
mod faults;
mod happening;
mod lease;
mod observer;
mod pattern;
pub mod reach;
mod schedule;
mod settle;
mod takeover;
mod targets;
#[cfg(test)]
mod tests;
pub(crate) mod timeline;
mod witness;
pub(crate) mod words;

use std::any::Any;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use firedrill_core::guards::Guards;
use firedrill_core::rng::Seed;
use firedrill_core::time::{Instant, micros};

use self::applied::Log;
use self::conductor::{Conductor, Run};
use self::observer::Observer;
use self::settle::Settled;
pub use self::witness::{Failed, Gone, Witness};
use crate::digest::Digest;
use crate::engine::event::{EventEngine, EventOptions};
use crate::engine::turmoil::{TurmoilEngine, TurmoilOptions};
use crate::engine::{Engine, EngineKind, HostState, Wire};
use crate::oracles::{Oracles, UnknownOracle, World, no_alarm};
use crate::outcome::{Numbers, Outcome, Verdict, Violation};
use crate::scenario::Scenario;
use crate::scenario::model::{Host, HostIx, Step, Verb};

/// How to run a scenario.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// The seed; the scenario's own when `None`.
    pub seed: Option<u64>,
    /// Which engine.
    pub engine: EngineKind,
    /// What crosses the event engine's network; fast where no verb needs bytes when `None`.
    pub wire: Option<Wire>,
    /// The tick length on turmoil, in milliseconds.
    pub tick_ms: u64,
    /// Guards of the protocol, all on unless a sabotage turns one off.
    pub guards: Guards,
    /// Keep a mark of each event, to find the first that differs.
    pub keep_trail: bool,
    /// Keep the faults as they are applied.
    pub keep_schedule: bool,
    /// Tell what this event was, counted from 0.
    pub tell_event: Option<usize>,
    /// Keep a timeline.
    pub timeline: bool,
    /// The run fails after so many handled inputs: a cluster that talks itself to death never ends by itself. What
    /// is sent counts too, by its size ([`effort`](crate::outcome::effort)).
    pub inputs_max: Option<u64>,
    /// Ends the run soon after it becomes true.
    pub cancel: Option<Arc<AtomicBool>>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            seed: None,
            engine: EngineKind::Event,
            wire: None,
            tick_ms: TurmoilOptions::default().tick_ms,
            guards: Guards::ON,
            keep_trail: false,
            keep_schedule: false,
            tell_event: None,
            timeline: true,
            inputs_max: None,
            cancel: None,
        }
    }
}

/// Why there is no outcome.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The run was told to end.
    #[error("cancelled at {at_ms} ms of the run")]
    Cancelled {
        /// How far it had come, in milliseconds.
        at_ms: u64,
    },
    /// A verb of the scenario acts on bytes, and fast mode has none.
    #[error(
        "scenario {scenario:?} needs real bytes (a byte-level verb, or hosts with different secrets or cluster names): use --wire full"
    )]
    NeedsBytes {
        /// The scenario's name.
        scenario: String,
    },
    /// The scenario turns an oracle off that does not exist.
    #[error("scenario {scenario:?}, [oracles] off: {problem}")]
    Oracle {
        /// The scenario's name.
        scenario: String,
        /// Which.
        problem: UnknownOracle,
    },
}

/// What an engine says of itself in an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineLabel {
    /// `event` or `turmoil`.
    pub engine: &'static str,
    /// `fast` or `full` on the event engine.
    pub wire: Option<&'static str>,
    /// The tick length on turmoil, in milliseconds.
    pub tick_ms: Option<u64>,
}

/// Runs a scenario on the engine that the options name.
///
/// # Errors
/// [`RunError`] when the engine cannot run it, or the run was cancelled. A failed drill is an outcome.
pub fn run(scenario: &Scenario, options: &RunOptions) -> Result<Outcome, RunError> {
    run_before(scenario, options, None)
}

/// As [`run`], before a witness.
///
/// # Errors
/// As [`run`].
pub fn run_before<'s>(
    scenario: &'s Scenario,
    options: &RunOptions,
    witness: Option<&'s mut dyn Witness>,
) -> Result<Outcome, RunError> {
    let seed = Seed::from_u64(options.seed.unwrap_or(scenario.seed)).fork("engine");
    let (hosts, guards) = (staggered(scenario), options.guards);
    let replays = |step: &Step| matches!(step.verb, Verb::ReplayFrames { .. });
    let keep_frames = scenario.steps.iter().any(replays);
    match options.engine {
        EngineKind::Event => {
            let needs_full = scenario.needs_full();
            let wire = options.wire.unwrap_or(if needs_full { Wire::Full } else { Wire::Fast });
            if wire == Wire::Fast && needs_full {
                return Err(RunError::NeedsBytes { scenario: scenario.name.clone() });
            }
            let engine_options = EventOptions { guards, keep_frames };
            match wire {
                Wire::Fast => {
                    let label = EngineLabel { engine: "event", wire: Some("fast"), tick_ms: None };
                    let mut engine = EventEngine::fast(&hosts, scenario.net, seed, engine_options);
                    conduct_before(scenario, &mut engine, label, options, witness)
                }
                Wire::Full => {
                    let label = EngineLabel { engine: "event", wire: Some("full"), tick_ms: None };
                    let mut engine = EventEngine::full(&hosts, scenario.net, seed, engine_options);
                    conduct_before(scenario, &mut engine, label, options, witness)
                }
            }
        }
        EngineKind::Turmoil => {
            let engine_options = TurmoilOptions { tick_ms: options.tick_ms, guards, keep_frames };
            let tick_ms = Some(options.tick_ms);
            let label = EngineLabel { engine: "turmoil", wire: None, tick_ms };
            let mut engine = TurmoilEngine::new(&hosts, scenario.net, seed, engine_options);
            conduct_before(scenario, &mut engine, label, options, witness)
        }
    }
}

/// The hosts as the engine is to boot them. Of several with one id only the first boots by itself: the conductor
/// boots the others, a millisecond apart.
fn staggered(scenario: &Scenario) -> Vec<Host> {
    let mut hosts = scenario.hosts.clone();
    for later in (1..hosts.len()).rev() {
        let (before, host) = (&scenario.hosts[..later], &mut hosts[later]);
        let is_twin = before.iter().any(|other| other.from_start && other.id == host.id);
        host.from_start &= scenario.same_millisecond || !is_twin;
    }
    hosts
}

/// Runs a scenario over an engine whose hosts are the scenario's and whose time is at its start.
///
/// # Errors
/// [`RunError`] when the run was cancelled, or the scenario names an oracle that does not exist.
pub fn conduct(
    scenario: &Scenario,
    engine: &mut dyn Engine,
    label: EngineLabel,
    options: &RunOptions,
) -> Result<Outcome, RunError> {
    conduct_before(scenario, engine, label, options, None)
}

fn conduct_before<'s>(
    scenario: &'s Scenario,
    engine: &mut dyn Engine,
    label: EngineLabel,
    options: &RunOptions,
    witness: Option<&'s mut dyn Witness>,
) -> Result<Outcome, RunError> {
    let number = options.seed.unwrap_or(scenario.seed);
    let world = World::new(scenario);
    let oracles = Oracles::new(&world, &scenario.oracles_off)
        .map_err(|problem| RunError::Oracle { scenario: scenario.name.clone(), problem })?;
    let digest = if options.keep_trail { Digest::with_trail() } else { Digest::new() };
    let observer = Observer::new(scenario, world, oracles, digest, options).before(witness);
    let log = Log::new(options.keep_schedule);
    let mut conductor = Conductor::new(scenario, &Seed::from_u64(number), observer, log);
    let mut settled = Settled { connections: label.wire != Some("fast"), ..Settled::default() };

    // Whatever a panic leaves behind is only read: the engine's clock and counts, and what the observer saw.
    let ran = catch_unwind(AssertUnwindSafe(|| phases(&mut conductor, engine, &mut settled)));
    if let Err(panic) = ran {
        conductor.observer.violated(panicked(engine.now(), &*panic));
    }
    if conductor.observer.is_cancelled() {
        return Err(RunError::Cancelled { at_ms: engine.now().as_micros() / 1000 });
    }
    conductor.observer.expectations.abandon(engine.now());
    conductor.observer.tell_decisions();
    Ok(outcome(scenario, conductor, &*engine, label, number, settled))
}

fn phases(conductor: &mut Conductor<'_>, engine: &mut dyn Engine, settled: &mut Settled) -> Run {
    conductor.observer.check_cancel();
    if conductor.observer.is_cancelled() {
        return ControlFlow::Break(());
    }
    conductor.drill(engine)?;
    conductor.end_drill(engine)?;
    conductor.settle(engine, settled)
}

fn outcome(
    scenario: &Scenario,
    conductor: Conductor<'_>,
    engine: &dyn Engine,
    label: EngineLabel,
    seed: u64,
    settled: Settled,
) -> Outcome {
    let stats = engine.stats();
    let numbers = Numbers {
        convergence_us: settled.convergence.map(micros),
        convergence_bound_us: micros(settled.bound),
        simulated_us: engine.now().since(Instant::ZERO).as_micros().try_into().unwrap_or(u64::MAX),
        events: stats.events,
        frames_delivered: stats.frames_delivered,
        frames_lost: stats.frames_lost,
        bytes_sent: stats.bytes_sent,
        increments: conductor.increments,
    };
    let (unfired_steps, unfired_spans): (Vec<_>, Vec<_>) = conductor.unfired().into_iter().unzip();
    let mut reach = conductor.reach(engine);
    if settled.convergence.is_some() {
        let up = (0..scenario.hosts.len()).filter(|&ix| engine.state(HostIx(ix)) == HostState::Up);
        reach.settled(up.count());
    }
    let ineffective_faults = conductor.ineffective(engine);
    let schedule = conductor.log.into_entries();
    let observer = conductor.observer;
    let issuance = observer.takeovers.report(engine);
    let all_met = observer.expectations.all_held() && unfired_steps.is_empty();
    let verdict = match &observer.violation {
        Some(violation) if !violation.liveness => Verdict::Safety,
        _ if !all_met => Verdict::Expectation,
        Some(_) => Verdict::Liveness,
        None => Verdict::Pass,
    };
    Outcome {
        scenario: scenario.name.clone(),
        path: scenario.files.first().map(|file| file.path.clone()).unwrap_or_default(),
        seed,
        engine: label.engine,
        wire: label.wire,
        tick_ms: label.tick_ms,
        verdict,
        expectations: observer.expectations.results(),
        violation: observer.violation,
        unfired_steps,
        unfired_spans,
        ineffective_faults,
        reach,
        timeline: observer.timeline.into_entries(),
        issuance,
        numbers,
        digest: format!("{:032x}", observer.digest.finish()),
        schedule,
        trail: observer.digest.trail().to_vec(),
        happening: observer.lookout.into_happening(),
    }
}

/// A panic anywhere in the run, as the broken invariant it is.
fn panicked(at: Instant, panic: &(dyn Any + Send)) -> Violation {
    let message = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned());
    Violation {
        oracle: no_alarm::RULE.name,
        invariant: no_alarm::RULE.invariant,
        source: no_alarm::RULE.source,
        at_us: at.as_micros(),
        nodes: Vec::new(),
        fact: format!("a panic: {message}"),
        contradiction: "no input may make a node panic".to_owned(),
        liveness: false,
    }
}
