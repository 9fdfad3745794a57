//! Artifacts: everything that a run needs to be repeated, in one file.
//!
//! An [`Artifact`] holds the drill itself, not how it was made: the scenario as a file, flattened, with its seed,
//! engine, wire and tick. It replays after a generator of drills has changed. Beside it stand what the run did to
//! the cluster (the schedule, hosts in place of symbols), a [`Mark`] of every event, the digest, and what broke, so
//! that [`replay`](crate::replay) can name the first thing that differs.
//!
//! The file is JSON, one key a line, the trail on one line as hex. `format` names the layout: a version of
//! firedrill reads its own and refuses others with a message that says which.
//!
//! Absent: timelines and numbers, which a replay yields again.

mod check;
mod trail;

use serde::{Deserialize, Serialize};

pub use check::ArtifactError;

use crate::digest::Mark;
use crate::drill::RunOptions;
use crate::engine::{EngineKind, Wire};
use crate::outcome::{Applied, Failure, Outcome, Violation};
use crate::scenario::{LoadOptions, Report, Scenario};

/// The layout that this version writes and reads.
pub const FORMAT: u32 = 1;

/// One recorded run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// The layout, [`FORMAT`].
    pub format: u32,
    /// The version of firedrill that recorded it.
    pub firedrill: String,
    /// What failed; `None` for a run that passed.
    #[serde(deserialize_with = "check::required")]
    pub failure: Option<Failure>,
    /// The broken invariant, where one broke.
    #[serde(deserialize_with = "check::required")]
    pub violation: Option<Told>,
    /// Expectations that did not hold, each with what was seen instead, and steps that never fired.
    pub missed: Vec<String>,
    /// The path of the scenario when it was recorded: a name for people, never read.
    pub path: String,
    /// The seed of the run.
    pub seed: u64,
    /// The engine.
    pub engine: EngineKind,
    /// What crossed the event engine's network; `None` on turmoil.
    #[serde(deserialize_with = "check::required")]
    pub wire: Option<Wire>,
    /// The tick length on turmoil, in milliseconds; `None` on the event engine.
    #[serde(deserialize_with = "check::required")]
    pub tick_ms: Option<u64>,
    /// The inputs after which the run fails; `None` where it had no limit.
    #[serde(deserialize_with = "check::required")]
    pub inputs_max: Option<u64>,
    /// The guard of the protocol that was turned off; `None` for the protocol as it is.
    #[serde(deserialize_with = "check::required")]
    pub sabotage: Option<String>,
    /// The digest of the run, 32 hex digits.
    pub digest: String,
    /// Events of the run.
    pub events: u64,
    /// The scenario file, as text.
    pub scenario: String,
    /// The faults as they were applied.
    pub schedule: Vec<Applied>,
    /// A mark of each event.
    #[serde(with = "trail")]
    pub trail: Vec<Mark>,
}

/// A broken invariant as it was told; see [`Violation`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// The oracle's name.
    pub oracle: String,
    /// What it demands, in a sentence.
    pub invariant: String,
    /// When, in microseconds of the run.
    pub at_us: u64,
    /// The nodes concerned.
    pub nodes: Vec<String>,
    /// One fact …
    pub fact: String,
    /// … and the fact that contradicts it.
    pub contradiction: String,
    /// Whether it is about liveness rather than safety.
    pub liveness: bool,
}

impl From<&Violation> for Told {
    fn from(violation: &Violation) -> Self {
        Self {
            oracle: violation.oracle.to_owned(),
            invariant: violation.invariant.to_owned(),
            at_us: violation.at_us,
            nodes: violation.nodes.clone(),
            fact: violation.fact.clone(),
            contradiction: violation.contradiction.clone(),
            liveness: violation.liveness,
        }
    }
}

impl Artifact {
    /// Records a run: the scenario, how it was run, and what came of it. `sabotage` names the guard that the
    /// options turn off.
    ///
    /// The run must have kept its trail and schedule ([`RunOptions::keep_trail`], [`RunOptions::keep_schedule`]);
    /// one that kept none can be written, but [`Artifact::from_json`] will not take it back.
    pub fn new(scenario: &Scenario, options: &RunOptions, outcome: &Outcome, sabotage: Option<&str>) -> Self {
        debug_assert!(options.keep_trail && options.keep_schedule, "a recorded run keeps what it did");
        let wire = match outcome.wire {
            Some("fast") => Some(Wire::Fast),
            Some(_) => Some(Wire::Full),
            None => None,
        };
        Self {
            format: FORMAT,
            firedrill: env!("CARGO_PKG_VERSION").to_owned(),
            failure: outcome.failure(),
            violation: outcome.violation.as_ref().map(Told::from),
            missed: missed(outcome),
            path: outcome.path.clone(),
            seed: outcome.seed,
            engine: options.engine,
            wire,
            tick_ms: outcome.tick_ms,
            inputs_max: options.inputs_max,
            sabotage: sabotage.map(str::to_owned),
            digest: outcome.digest.clone(),
            events: outcome.trail.len() as u64,
            scenario: scenario.to_toml(),
            schedule: outcome.schedule.clone(),
            trail: outcome.trail.clone(),
        }
    }

    /// The file's text.
    pub fn to_json(&self) -> String {
        // Nothing here has keys that are no strings or values that refuse to be written.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// The scenario of the run, checked for its engine and wire.
    ///
    /// # Errors
    /// A [`Report`] with everything that is wrong with it.
    pub fn scenario(&self) -> Result<Scenario, Report> {
        let options = LoadOptions { wire: self.wire, ..LoadOptions::for_engine(self.engine) };
        check::parse_scenario(&self.scenario, &self.path, options)
    }
}

/// What the drill demanded and did not get, a sentence each.
fn missed(outcome: &Outcome) -> Vec<String> {
    let expectations = outcome.expectations.iter().filter(|expectation| !expectation.held);
    let told = expectations.map(|expectation| match &expectation.seen {
        Some(seen) => format!("{} (seen: {seen})", expectation.text),
        None => expectation.text.clone(),
    });
    told.chain(outcome.unfired_steps.iter().map(|step| format!("never fired: {step}"))).collect()
}
