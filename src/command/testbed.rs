//! The seam to the testbed: the only module of the command that loads and runs scenarios.
//!
//! Absent: text. What goes wrong comes back as values, for the renderers to tell.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use firedrill_sim::artifact::Artifact;
use firedrill_sim::drill::{self, RunError, RunOptions};
use firedrill_sim::engine::{EngineKind, Wire};
use firedrill_sim::explain::{self, Story};
use firedrill_sim::oracles::RULES;
use firedrill_sim::oracles::sabotage::Sabotage;
use firedrill_sim::outcome::Outcome;
use firedrill_sim::replay::{self, Replay, ReplayError};
use firedrill_sim::scenario::{LoadOptions, Report as Problems, Scenario};
use firedrill_sim::shrink::{self, Progress, ShrinkError, ShrinkLimits, Shrunk};

use super::cli::{EngineArg, WireArg};

/// How a drill should run.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// In place of the scenario's own seed.
    pub(crate) seed: Option<u64>,
    /// Which engine.
    pub(crate) engine: EngineKind,
    /// Which wire, where it is chosen.
    pub(crate) wire: Option<Wire>,
    /// The tick length on turmoil, in milliseconds, where it is chosen.
    pub(crate) tick_ms: Option<u64>,
    /// Inputs after which the run counts as one that never ends, where it is chosen.
    pub(crate) inputs_max: Option<u64>,
    /// The guard that is off, if one is.
    pub(crate) sabotage: Option<&'static Sabotage>,
    /// Set by Ctrl-C.
    pub(crate) cancel: Arc<AtomicBool>,
}

impl Plan {
    /// The engine as the command line names it.
    pub(crate) const fn engine_name(&self) -> &'static str {
        match self.engine {
            EngineKind::Event => "event",
            EngineKind::Turmoil => "turmoil",
        }
    }

    /// The wire as the command line names it.
    pub(crate) const fn wire_name(&self) -> Option<&'static str> {
        match self.wire {
            Some(Wire::Fast) => Some("fast"),
            Some(Wire::Full) => Some("full"),
            None => None,
        }
    }

    /// The same for the testbed.
    fn options(&self) -> RunOptions {
        let usual = RunOptions::default();
        let mut options = RunOptions {
            seed: self.seed,
            engine: self.engine,
            wire: self.wire,
            tick_ms: self.tick_ms.unwrap_or(usual.tick_ms),
            inputs_max: self.inputs_max,
            cancel: Some(Arc::clone(&self.cancel)),
            ..usual
        };
        if let Some(sabotage) = self.sabotage {
            (sabotage.apply)(&mut options.guards);
        }
        options
    }
}

impl From<EngineArg> for EngineKind {
    fn from(engine: EngineArg) -> Self {
        match engine {
            EngineArg::Event => Self::Event,
            EngineArg::Turmoil => Self::Turmoil,
        }
    }
}

impl From<WireArg> for Wire {
    fn from(wire: WireArg) -> Self {
        match wire {
            WireArg::Fast => Self::Fast,
            WireArg::Full => Self::Full,
        }
    }
}

/// The names that a scenario may turn off.
const ORACLES: [&str; RULES.len()] = {
    let mut names = [""; RULES.len()];
    let mut index = 0;
    while index < RULES.len() {
        names[index] = RULES[index].name;
        index += 1;
    }
    names
};

/// Why a file did not become a scenario.
#[derive(Debug)]
pub(crate) enum Refused {
    /// It is not a valid scenario.
    Invalid(Problems),
    /// It is one, but this engine or wire cannot express it.
    Beyond(Problems),
}

/// Reads and checks one file for this engine and wire.
pub(crate) fn load(path: &Path, engine: EngineKind, wire: Option<Wire>) -> Result<Scenario, Refused> {
    Scenario::load(path, LoadOptions { engine, wire, oracles: &ORACLES }).map_err(|problems| {
        // Everything can be expressed on the event engine with the wire left open.
        let anywhere = LoadOptions { engine: EngineKind::Event, wire: None, oracles: &ORACLES };
        match Scenario::load(path, anywhere) {
            Ok(_) => Refused::Beyond(problems),
            Err(_) => Refused::Invalid(problems),
        }
    })
}

/// A run and the real time it took.
#[derive(Debug)]
pub(crate) struct Ran {
    /// What came of it.
    pub(crate) outcome: Outcome,
    /// Real time.
    pub(crate) real: Duration,
}

/// Runs a scenario once. With `trail`, the outcome keeps a digest per event.
pub(crate) fn run(scenario: &Scenario, plan: &Plan, trail: bool) -> Result<Ran, RunError> {
    let (outcome, real) =
        timed(|| drill::run(scenario, &RunOptions { keep_trail: trail, ..plan.options() }))?;
    Ok(Ran { outcome, real })
}

/// Runs a scenario once and tells its story.
pub(crate) fn explain(scenario: &Scenario, plan: &Plan) -> Result<(Story, Ran), RunError> {
    let ((story, outcome), real) = timed(|| explain::explain(scenario, &plan.options()))?;
    Ok((story, Ran { outcome, real }))
}

/// Repeats a recorded run and compares it with the recording.
pub(crate) fn replay(artifact: &Artifact, cancel: &Arc<AtomicBool>) -> Result<Replay, ReplayError> {
    replay::replay(artifact, Some(Arc::clone(cancel)))
}

/// Runs a scenario twice, as its file says, and compares the runs.
pub(crate) fn twice(scenario: Scenario, cancel: &Arc<AtomicBool>) -> Result<Replay, RunError> {
    let options = RunOptions { cancel: Some(Arc::clone(cancel)), ..RunOptions::default() };
    replay::twice(scenario, &options)
}

/// What a run yields, and the real time it took.
fn timed<T>(run: impl FnOnce() -> Result<T, RunError>) -> Result<(T, Duration), RunError> {
    #[expect(
        clippy::disallowed_methods,
        reason = "measures the run from outside; the run itself never sees it"
    )]
    let start = Instant::now();
    let yielded = run()?;
    Ok((yielded, start.elapsed()))
}

/// Shrinks a drill that fails, for so long as `budget` allows and Ctrl-C does not end it. Any failure will do: the
/// first run says which.
pub(crate) fn shrink(
    scenario: &Scenario,
    plan: &Plan,
    budget: Duration,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Shrunk, ShrinkError> {
    let options = &plan.options();
    #[expect(clippy::disallowed_methods, reason = "the budget is real time; no run sees it")]
    let start = Instant::now();
    let first = drill::run(scenario, &RunOptions { timeline: false, ..options.clone() })?;
    let Some(failure) = first.failure() else {
        return Err(ShrinkError::Passes { scenario: first.scenario, seed: first.seed });
    };
    let stop = || plan.cancel.load(Ordering::Relaxed) || start.elapsed() >= budget;
    let limits = ShrinkLimits { stop: &stop, allow_fast: options.wire.is_none(), ..ShrinkLimits::default() };
    shrink::shrink(scenario, options, &failure, &limits, progress)
}
