//! A failure looked at closely: the seed played again, shrunk, and made into files.
//!
//! The search for the smallest drill ends after so many inputs and bytes, not after so much time: a report has to be
//! the same on any machine.

use super::campaign::Plan;
use super::report::Found;
use super::{Venue, options};
use crate::artifact::Artifact;
use crate::drill::{RunError, RunOptions, run};
use crate::outcome::{Failure, Outcome};
use crate::scenario::Scenario;
use crate::shrink::{Origin, ShrinkError, ShrinkLimits, comment, file, shrink};

/// Inputs that a search for the smallest drill may handle in all, by venue, with what is sent counted by its size: a
/// few seconds each, half a minute where documents fill the frame and are written as bytes.
const fn inputs_max(venue: Venue) -> u64 {
    match venue {
        Venue::Fast | Venue::Full => 4_000_000,
        Venue::Turmoil => 400_000,
    }
}

/// A failure, kept: what is told of it, and the record of its run.
#[derive(Debug)]
pub struct Finding {
    /// For the report.
    pub found: Found,
    /// The run of the smallest drill.
    pub artifact: Artifact,
}

/// Plays a seed that failed once more, and looks for the smallest drill that fails for the same reason.
///
/// `stop` ends the search early (Ctrl-C); what has been found so far is kept.
///
/// # Errors
/// [`RunError`] when the profile drew a drill that its venue cannot run.
pub fn look(plan: &Plan, seed: u64, failure: &Failure, stop: &dyn Fn() -> bool) -> Result<Finding, RunError> {
    let venue = plan.mix.venue(seed);
    let drawn = plan.profile.draw(seed, venue);
    let options = options(&drawn, venue, plan.guards);
    let limits = ShrinkLimits { inputs_max: inputs_max(venue), stop, ..ShrinkLimits::default() };
    let name = name(failure, seed);
    let found_in = format!("seed {seed} of profile {}", plan.profile.name());
    let command = command(&name, venue, plan.sabotage);
    let origin = Origin { found_in: &found_in, sabotage: plan.sabotage, command: &command };
    let (scenario, text) = match shrink(&drawn, &options, failure, &limits, &mut |_| ()) {
        Ok(shrunk) => {
            let text = file(&shrunk, &name, &origin);
            (shrunk.scenario, text)
        }
        Err(ShrinkError::Run(error)) => return Err(error),
        // A seed that was too busy passes; one that stopped failing as it did is a finding as it is.
        Err(ShrinkError::Passes { .. } | ShrinkError::Otherwise { .. }) => {
            let outcome = run(&drawn, &options)?;
            (drawn.clone(), drawn.to_toml_with_comment(&comment(&outcome, &origin)))
        }
    };
    let recorded = RunOptions { keep_trail: true, keep_schedule: true, ..options };
    let outcome = run(&scenario, &recorded)?;
    let artifact = Artifact::new(&scenario, &recorded, &outcome, plan.sabotage);
    let found = found(seed, venue, name, (&drawn, &scenario), &outcome, text);
    Ok(Finding { found, artifact })
}

fn found(
    seed: u64,
    venue: Venue,
    name: String,
    (drawn, shrunk): (&Scenario, &Scenario),
    outcome: &Outcome,
    scenario: String,
) -> Found {
    let (fact, contradiction, invariant, source, at_us) = match &outcome.violation {
        Some(violation) => (
            violation.fact.clone(),
            violation.contradiction.clone(),
            violation.invariant,
            violation.source,
            violation.at_us,
        ),
        None if !outcome.unfired_steps.is_empty() => (
            format!("never fired: {}", outcome.unfired_steps.join("; ")),
            "a step that never fires tests nothing".to_owned(),
            "every step of a drill fires",
            "",
            0,
        ),
        None => (
            format!("{} inputs were handled", outcome.numbers.events),
            "that is out of all proportion to its size".to_owned(),
            "a drill is no busier than others of its size",
            "",
            0,
        ),
    };
    Found {
        seed,
        venue,
        name,
        fact,
        contradiction,
        invariant: invariant.to_owned(),
        source: source.to_owned(),
        at_us,
        steps: (drawn.steps.len(), shrunk.steps.len()),
        hosts: (drawn.hosts.len(), shrunk.hosts.len()),
        scenario,
    }
}

/// The name of its files: `views-agree-4973`.
fn name(failure: &Failure, seed: u64) -> String {
    let words = match failure {
        Failure::Invariant(oracle) => oracle.replace('_', "-"),
        Failure::Expectation => "expectation".to_owned(),
        Failure::StepNeverFired => "step-never-fired".to_owned(),
    };
    format!("{words}-{seed}")
}

/// The command that shows it again, in the folder of its file.
fn command(name: &str, venue: Venue, sabotage: Option<&str>) -> String {
    let (engine, wire) = match venue {
        Venue::Fast => ("event", " --wire fast"),
        Venue::Full => ("event", " --wire full"),
        Venue::Turmoil => ("turmoil", ""),
    };
    let sabotage = sabotage.map_or_else(String::new, |guard| format!(" --sabotage {guard}"));
    format!("firedrill run {name}.toml --engine {engine}{wire}{sabotage}")
}
