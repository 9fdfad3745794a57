//! Fuzzing: drills drawn from seeds, each judged by every oracle, many of them a campaign.
//!
//! A [`Profile`] draws a [`Scenario`] from a seed for a [`Venue`] (engine and wire, drawn from the same seed by a
//! [`Mix`]). [`try_seed`] plays it. [`campaign`] plays many on several threads and folds what they reached and what
//! failed into one [`Report`]; the same seeds give the same report, whatever the number of threads. Reports of
//! shards merge.
//!
//! What is drawn is an ordinary scenario: a failure is written as a file, and replays after the generator changed.
//!
//! Absent: clocks (the caller decides when a campaign has run long enough), files, text. Expectations: what must
//! hold in any drill is the oracles' business.

pub mod campaign;
pub mod coverage;
mod draw;
pub mod finding;
mod gossip;
mod issuance;
pub mod report;
pub mod sabotage;
pub mod seeds;
mod venue;

use serde::Serialize;

use firedrill_core::guards::Guards;

pub use self::gossip::Gossip;
pub use self::issuance::Issuance;
pub use self::report::Report;
pub use self::venue::{EngineMix, Mix, Venue, WireMix};
use crate::drill::reach::Reach;
use crate::drill::{RunError, RunOptions, run};
use crate::outcome::{Failure, Outcome};
use crate::scenario::Scenario;

/// What a campaign is about: a generator of drills, and what they have to reach together.
pub trait Profile: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// What it drills, in a sentence.
    fn about(&self) -> &'static str;

    /// The drill of a seed. It is valid for the venue, ends all its faults by its time limit, and is the same for the
    /// same seed and venue, always.
    fn draw(&self, seed: u64, venue: Venue) -> Scenario;

    /// What a campaign must have reached, some time, to have tested anything.
    fn sometimes(&self) -> &'static [coverage::Goal];
}

/// Every profile there is.
pub const PROFILES: &[&dyn Profile] = &[&Gossip, &Issuance];

/// What came of one seed.
#[derive(Debug, Clone)]
pub struct Tested {
    /// The seed.
    pub seed: u64,
    /// Where it ran.
    pub venue: Venue,
    /// What it reached.
    pub reach: Reach,
    /// Why it failed, if it did.
    pub failure: Option<Failure>,
    /// Inputs handled.
    pub events: u64,
    /// Virtual time, in microseconds.
    pub simulated_us: u64,
    /// Inputs a drill of this size is expected to handle; [`campaign`] compares seeds by the quotient.
    pub expected: u64,
}

/// How the drill of a seed is run at its venue.
pub fn options(scenario: &Scenario, venue: Venue, guards: Guards) -> RunOptions {
    RunOptions {
        engine: venue.engine(),
        wire: venue.wire(),
        tick_ms: venue.tick_ms(),
        guards,
        timeline: false,
        inputs_max: Some(expected_inputs(scenario).saturating_mul(INPUTS_BEYOND_EXPECTED)),
        ..RunOptions::default()
    }
}

/// Plays the drill of one seed.
///
/// # Errors
/// [`RunError`] when a profile drew a drill that its venue cannot run.
pub fn try_seed(profile: &dyn Profile, seed: u64, mix: Mix, guards: Guards) -> Result<Tested, RunError> {
    let venue = mix.venue(seed);
    let scenario = profile.draw(seed, venue);
    let outcome = run(&scenario, &options(&scenario, venue, guards))?;
    Ok(tested(seed, venue, &scenario, outcome))
}

fn tested(seed: u64, venue: Venue, scenario: &Scenario, outcome: Outcome) -> Tested {
    Tested {
        seed,
        venue,
        failure: outcome.failure(),
        events: outcome.numbers.events,
        simulated_us: outcome.numbers.simulated_us,
        expected: expected_inputs(scenario),
        reach: outcome.reach,
    }
}

/// A run that needs so many times the inputs expected of it, or the bytes that cost as much, is cut short. Nudges,
/// replays and floods may make dozens of inputs of one, and a frame of the largest size counts as a hundred.
const INPUTS_BEYOND_EXPECTED: u64 = 1_000;

/// Inputs that the pushes of a drill alone make, roughly: one wake and one frame a peer in each push interval.
fn expected_inputs(scenario: &Scenario) -> u64 {
    let hosts = scenario.hosts.len() as u64;
    let rounds = |host: &crate::scenario::model::Host| {
        let push_us = host.config.push_interval_ms.saturating_mul(1_000).max(1);
        u64::try_from(scenario.time_limit.as_micros()).unwrap_or(u64::MAX) / push_us
    };
    let rounds: u64 = scenario.hosts.iter().map(rounds).sum();
    (rounds * hosts).max(100)
}

/// A sum of what many seeds did, for people and for comparing one campaign with another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct Totals {
    /// Seeds played.
    pub seeds: u64,
    /// Inputs handled.
    pub events: u64,
    /// Virtual time, in microseconds.
    pub simulated_us: u64,
}
