//! Every shipped scenario passes on every engine that can express it.
//!
//! A pass means that each expectation and each oracle held, so passing everywhere is the equality of verdicts
//! between the engines. What an engine cannot express is refused when the file is read; how many those may
//! be is pinned here, lest a refusal hide a drill.

mod common;

use common::Way;
use firedrill_sim::outcome::{Outcome, Verdict};

/// Runs every scenario that `way` can express; gives the names of those it cannot.
fn all_pass(way: Way) -> Vec<String> {
    let files = common::scenarios();
    let results = common::in_parallel(&files, |path| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        way.load(path).map_or(Err(name), |scenario| Ok(failure(&way.run(&scenario))))
    });
    let mut refused = Vec::new();
    let mut failures = Vec::new();
    for result in results {
        match result {
            Ok(failure) => failures.extend(failure),
            Err(name) => refused.push(name),
        }
    }
    assert!(failures.is_empty(), "\n\non {way:?}:\n{}\n", failures.join("\n"));
    refused
}

/// Why an outcome is no pass, in a few lines; `None` when it is one.
fn failure(outcome: &Outcome) -> Option<String> {
    let broken: Vec<_> = outcome
        .expectations
        .iter()
        .filter(|expectation| !expectation.held)
        .map(|expectation| {
            format!("  {} (seen: {})", expectation.text, expectation.seen.as_deref().unwrap_or("-"))
        })
        .collect();
    if outcome.verdict == Verdict::Pass && broken.is_empty() {
        return None;
    }
    let mut lines = vec![format!("{}: {:?}", outcome.scenario, outcome.verdict)];
    lines.extend(broken);
    lines.extend(outcome.unfired_steps.iter().map(|step| format!("  never fired: {step}")));
    if let Some(violation) = &outcome.violation {
        lines.push(format!("  {} at {} µs on {:?}", violation.oracle, violation.at_us, violation.nodes));
        lines.push(format!("  {}", violation.fact));
        lines.push(format!("  but {}", violation.contradiction));
    }
    Some(lines.join("\n"))
}

#[test]
fn every_scenario_passes_on_the_event_engine_with_real_bytes() {
    assert_eq!(all_pass(Way::Full), Vec::<String>::new(), "the event engine can express everything");
}

#[test]
fn every_scenario_without_byte_level_verbs_passes_on_the_fast_wire() {
    insta::assert_snapshot!("refused_by_the_fast_wire", all_pass(Way::Fast).join("\n"));
}

#[test]
fn every_scenario_that_turmoil_can_express_passes_there() {
    insta::assert_snapshot!("refused_by_turmoil", all_pass(Way::Turmoil).join("\n"));
}
