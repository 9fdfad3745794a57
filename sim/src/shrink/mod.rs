//! From a failing drill to a minimal one that fails for the same reason.
//!
//! [`shrink`] runs one smaller candidate after the other, as [`ScenarioTree`] proposes them, and keeps what still
//! fails: the same [`Failure`] on the same engine, wire and guards. An expectation has to be missed in the same way. With a guard turned off it also has to pass with
//! every guard on, if the drill it came from does: so it goes on showing that guard and nothing else.
//!
//! The same drill, seed and limit of runs give the same result. [`comment`] puts into words what the result shows,
//! for the head of the file that keeps it.
//!
//! Absent: clocks and files. A limit of real time comes in as [`ShrinkLimits::stop`].

mod comment;
mod edits;
mod fields;
mod issuance;
mod lists;
mod missed;
mod numbers;
mod pace;
mod remap;
mod tree;
mod valid;

use std::collections::BTreeSet;

use firedrill_core::guards::Guards;
use proptest::strategy::ValueTree;

pub use self::comment::{Origin, comment, file};
use self::missed::Missed;
pub use self::tree::ScenarioTree;
use crate::drill::{RunError, RunOptions, run};
use crate::engine::{EngineKind, Wire};
use crate::oracles::progress;
use crate::outcome::{Failure, Outcome, Verdict};
use crate::scenario::Scenario;

/// A candidate that handles so many times the inputs of the drill it came from is none ...
const INPUTS_TIMES_MAX: u64 = 4;
/// ... but so many are always allowed: some drills fail before they have begun.
const INPUTS_MAX_LEAST: u64 = 200_000;

/// When to stop, however far it has come.
pub struct ShrinkLimits<'l> {
    /// No more runs than this, those that make sure of the failure included.
    pub runs_max: u64,
    /// No more inputs than this handled by all runs together, give or take the last one. What is sent counts too, by
    /// its size ([`effort`](crate::outcome::effort)).
    pub inputs_max: u64,
    /// Asked before every run; `true` ends the search. Ctrl-C and limits of real time come in here.
    pub stop: &'l dyn Fn() -> bool,
    /// A drill that failed on real bytes may go on in fast mode if it fails there too.
    pub allow_fast: bool,
}

impl Default for ShrinkLimits<'_> {
    fn default() -> Self {
        Self { runs_max: 20_000, inputs_max: u64::MAX, stop: &|| false, allow_fast: false }
    }
}

/// How large a drill is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size {
    /// Steps of the drill.
    pub steps: usize,
    /// Hosts.
    pub hosts: usize,
    /// Workloads.
    pub workloads: usize,
    /// Expectations.
    pub expectations: usize,
}

impl Size {
    /// The size of a scenario.
    pub const fn of(scenario: &Scenario) -> Self {
        Self {
            steps: scenario.steps.len(),
            hosts: scenario.hosts.len(),
            workloads: scenario.workloads.len(),
            expectations: scenario.expects.len(),
        }
    }
}

/// How far it has come; told after every run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Runs so far.
    pub runs: u64,
    /// The size of the drill that came in.
    pub before: Size,
    /// The size of the smallest that fails, so far.
    pub now: Size,
}

/// Why the search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Nothing smaller that was tried fails.
    Minimal,
    /// It had its runs, or its inputs.
    RunsMax,
    /// It was told to stop.
    Stopped,
}

/// The smallest drill that was found.
#[derive(Debug, Clone)]
pub struct Shrunk {
    /// The drill; its seed is the one it fails under.
    pub scenario: Scenario,
    /// How it fails, told with the options that were given.
    pub outcome: Outcome,
    /// Whether it passes with every guard on, so that it shows the guard that was turned off. `false` where none was.
    pub needs_sabotage: bool,
    /// Runs that it took.
    pub runs: u64,
    /// The size of the drill that came in.
    pub before: Size,
    /// The size of this one.
    pub after: Size,
    /// Why there was no further search.
    pub ended: Ended,
}

/// Why there is nothing to shrink.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShrinkError {
    /// The drill passes.
    #[error("scenario {scenario:?} passes with seed {seed}: there is no failure to shrink")]
    Passes {
        /// The scenario's name.
        scenario: String,
        /// The seed it ran with.
        seed: u64,
    },
    /// The drill fails, but for another reason.
    #[error(
        "scenario {scenario:?} fails with seed {seed}, but not as told: {found} breaks where {wanted} should"
    )]
    Otherwise {
        /// The scenario's name.
        scenario: String,
        /// The seed it ran with.
        seed: u64,
        /// What should have broken.
        wanted: Failure,
        /// What breaks.
        found: Failure,
    },
    /// The drill could not be run.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Shrinks a scenario that fails with `failure` under `options`. Of `options` everything counts but the timeline and
/// the trail, which only the last run keeps.
///
/// # Errors
/// [`ShrinkError`] when the scenario passes, fails otherwise, or cannot be run.
pub fn shrink(
    scenario: &Scenario,
    options: &RunOptions,
    failure: &Failure,
    limits: &ShrinkLimits<'_>,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Shrunk, ShrinkError> {
    let before = Size::of(scenario);
    let mut whole = scenario.clone();
    whole.seed = options.seed.unwrap_or(scenario.seed);
    let mut judge = Judge::new(&whole, options, failure)?;
    if limits.allow_fast {
        judge.prefer_fast(&whole)?;
    }
    if *failure == Failure::Expectation {
        judge.keep_what_failed(&mut whole)?;
    }
    let mut tree = ScenarioTree::new(whole.clone());
    let mut least = whole;
    let mut goes_on = tree.simplify();
    let mut ended = Ended::Minimal;
    while goes_on {
        if judge.runs >= limits.runs_max || judge.inputs >= limits.inputs_max {
            ended = Ended::RunsMax;
            break;
        }
        if (limits.stop)() {
            ended = Ended::Stopped;
            break;
        }
        let candidate = tree.current();
        goes_on = match judge.still_fails(&candidate) {
            Ok(true) => {
                least = candidate;
                tree.simplify()
            }
            Ok(false) => tree.complicate(),
            Err(RunError::Cancelled { .. }) => {
                ended = Ended::Stopped;
                break;
            }
            Err(error @ (RunError::NeedsBytes { .. } | RunError::Oracle { .. })) => return Err(error.into()),
        };
        progress(&Progress { runs: judge.runs, before, now: Size::of(&least) });
    }
    if limits.allow_fast && ended == Ended::Minimal {
        judge.prefer_fast(&least)?;
    }
    let told = RunOptions { seed: None, cancel: None, wire: judge.options.wire, ..options.clone() };
    let outcome = run(&least, &told)?;
    Ok(Shrunk {
        after: Size::of(&least),
        scenario: least,
        outcome,
        needs_sabotage: judge.control,
        runs: judge.runs,
        before,
        ended,
    })
}

/// Runs candidates and says whether they fail as the drill did that came in.
struct Judge<'f> {
    options: RunOptions,
    failure: &'f Failure,
    /// How expectations were missed at first, where that is the failure.
    missed: BTreeSet<Missed>,
    /// Candidates have to pass with every guard on.
    control: bool,
    runs: u64,
    /// Inputs that all runs handled together, with what they sent.
    inputs: u64,
}

impl<'f> Judge<'f> {
    /// Makes sure that the drill fails so.
    fn new(whole: &Scenario, options: &RunOptions, failure: &'f Failure) -> Result<Self, ShrinkError> {
        // A candidate without byte-level verbs stays on the wire on which the whole drill failed.
        let needed = || (whole.needs_full() && options.engine == EngineKind::Event).then_some(Wire::Full);
        let wire = options.wire.or_else(needed);
        let quiet = RunOptions {
            seed: None,
            wire,
            keep_trail: false,
            keep_schedule: false,
            timeline: false,
            ..options.clone()
        };
        let mut judge =
            Self { options: quiet, failure, missed: BTreeSet::new(), control: false, runs: 0, inputs: 0 };
        let (scenario, seed) = (whole.name.clone(), whole.seed);
        let outcome = judge.run(whole)?;
        // Where the failure is a hang, the limit is what finds it.
        if *failure != Failure::Invariant(progress::NAME.to_owned()) {
            let inputs = outcome.numbers.effort().saturating_mul(INPUTS_TIMES_MAX).max(INPUTS_MAX_LEAST);
            judge.options.inputs_max =
                Some(judge.options.inputs_max.map_or(inputs, |given| given.min(inputs)));
        }
        match outcome.failure() {
            Some(found) if found == *failure => {}
            Some(found) => {
                return Err(ShrinkError::Otherwise { scenario, seed, wanted: failure.clone(), found });
            }
            None => return Err(ShrinkError::Passes { scenario, seed }),
        }
        if *failure == Failure::Expectation {
            judge.missed = judge.missed_by(whole)?;
        }
        if judge.options.guards != Guards::ON {
            judge.control = judge.passes_guarded(whole)?;
        }
        Ok(judge)
    }

    /// Goes on in fast mode, if the drill fails there too.
    fn prefer_fast(&mut self, whole: &Scenario) -> Result<(), RunError> {
        if self.options.wire == Some(Wire::Full) && !whole.needs_full() {
            self.options.wire = Some(Wire::Fast);
            if !self.still_fails(whole)? {
                self.options.wire = Some(Wire::Full);
            }
        }
        Ok(())
    }

    /// Leaves out the expectations that held: a smaller drill must not fail by one of those.
    fn keep_what_failed(&mut self, whole: &mut Scenario) -> Result<(), RunError> {
        let outcome = self.run(whole)?;
        let mut failed = whole.clone();
        let mut held = outcome.expectations.iter().map(|expectation| expectation.held);
        failed.expects.retain(|_| !held.next().unwrap_or(false));
        if self.still_fails(&failed)? {
            *whole = failed;
        }
        Ok(())
    }

    fn still_fails(&mut self, candidate: &Scenario) -> Result<bool, RunError> {
        let fails = match self.failure {
            Failure::Expectation => {
                let missed = self.missed_by(candidate)?;
                !missed.is_empty() && missed.is_subset(&self.missed)
            }
            Failure::Invariant(_) | Failure::StepNeverFired => {
                self.run(candidate)?.failure().as_ref() == Some(self.failure)
            }
        };
        Ok(fails && (!self.control || self.passes_guarded(candidate)?))
    }

    /// How a drill misses its expectations; not at all where it fails otherwise.
    fn missed_by(&mut self, scenario: &Scenario) -> Result<BTreeSet<Missed>, RunError> {
        let watched = missed::watched(scenario);
        let outcome = self.run(&watched)?;
        let otherwise = outcome.failure().as_ref() != Some(self.failure);
        Ok(if otherwise { BTreeSet::new() } else { missed::missed(&watched, &outcome) })
    }

    fn passes_guarded(&mut self, scenario: &Scenario) -> Result<bool, RunError> {
        self.runs += 1;
        let guarded = RunOptions { guards: Guards::ON, ..self.options.clone() };
        let outcome = run(scenario, &guarded)?;
        self.inputs += outcome.numbers.effort();
        Ok(outcome.verdict == Verdict::Pass)
    }

    fn run(&mut self, scenario: &Scenario) -> Result<Outcome, RunError> {
        self.runs += 1;
        let outcome = run(scenario, &self.options)?;
        self.inputs += outcome.numbers.effort();
        Ok(outcome)
    }
}
