//! Results for programs: one JSON object a line and scenario.
//!
//! The fields are a contract: they are named here one by one, so that a change inside the testbed does not
//! silently change what scripts read. Times are microseconds of the run, the seed is an unsigned 64 bit number.

use serde::Serialize;

use firedrill_sim::outcome::{Entry, ExpectationResult, Numbers, Violation};

use super::report::{Difference, Report, Twice};

/// One drill that ran.
#[derive(Debug, Serialize)]
pub(crate) struct Document<'a> {
    scenario: &'a str,
    path: &'a str,
    about: &'a str,
    seed: u64,
    engine: &'a str,
    wire: Option<&'a str>,
    tick_ms: Option<u64>,
    /// The guard that was off; `null` for the protocol as it is.
    sabotage: Option<&'a str>,
    verdict: String,
    exit_code: u8,
    digest: &'a str,
    expectations: &'a [ExpectationResult],
    violation: Option<&'a Violation>,
    unfired_steps: &'a [String],
    ineffective_faults: &'a [String],
    /// `null` unless the drill ran twice.
    deterministic: Option<bool>,
    first_different_event: Option<usize>,
    /// Where it happened, in either run.
    first_different_nodes: Option<[Option<&'a str>; 2]>,
    numbers: &'a Numbers,
    /// Real time; the one number that differs from run to run.
    real_us: u64,
    reproduce: &'a str,
    timeline: &'a [Entry],
}

impl<'a> Document<'a> {
    /// What a run tells.
    pub(crate) fn of(report: &'a Report) -> Self {
        let outcome = &report.outcome;
        let difference = match &report.twice {
            Some(Twice::Differs(difference)) => Some(difference),
            Some(Twice::Same) | None => None,
        };
        let first_different_event = difference.and_then(|difference| difference.event);
        let nodes = |difference: &'a Difference| {
            let (one, two) = &difference.nodes;
            [one.as_deref(), two.as_deref()]
        };
        Self {
            scenario: &outcome.scenario,
            path: &outcome.path,
            about: &report.setting.about,
            seed: outcome.seed,
            engine: outcome.engine,
            wire: outcome.wire,
            tick_ms: outcome.tick_ms,
            sabotage: report.sabotage.map(|sabotage| sabotage.guard),
            verdict: report.verdict().replace(' ', "_"),
            exit_code: report.exit().code(),
            digest: &outcome.digest,
            expectations: &outcome.expectations,
            violation: outcome.violation.as_ref(),
            unfired_steps: &outcome.unfired_steps,
            ineffective_faults: &outcome.ineffective_faults,
            deterministic: report.twice.as_ref().map(|twice| *twice == Twice::Same),
            first_different_event,
            first_different_nodes: difference.filter(|difference| difference.event.is_some()).map(nodes),
            numbers: &outcome.numbers,
            real_us: u64::try_from(report.real.as_micros()).unwrap_or(u64::MAX),
            reproduce: &report.reproduce,
            timeline: &outcome.timeline,
        }
    }
}

/// A file that did not run.
#[derive(Debug, Serialize)]
pub(crate) struct NotRun<'a> {
    /// Which.
    pub(crate) path: &'a str,
    /// `invalid`, `skipped` or `internal`.
    pub(crate) verdict: &'a str,
    /// What it means for the exit code.
    pub(crate) exit_code: u8,
    /// Why, in words.
    pub(crate) problems: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::report::samples;

    #[test]
    fn a_document_names_what_scripts_read() -> Result<(), serde_json::Error> {
        for (report, verdict, exit_code) in [
            (samples::passed(), "pass", 0),
            (samples::missed(), "expectation", 1),
            (samples::violated(), "safety", 1),
        ] {
            let text = serde_json::to_string(&Document::of(&report))?;
            assert!(!text.contains('\n'));
            let value: serde_json::Value = serde_json::from_str(&text)?;
            assert_eq!(value["verdict"], verdict);
            assert_eq!(value["exit_code"], exit_code);
            for key in ["scenario", "seed", "engine", "wire", "digest", "expectations", "numbers", "timeline"]
            {
                assert!(!value[key].is_null(), "{key} is missing from {text}");
            }
        }
        Ok(())
    }
}
