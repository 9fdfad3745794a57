//! The shipped scenarios have teeth: with any one guard of the protocol turned off, an oracle that is meant to
//! miss it fires in one of them.
//!
//! Absent: seeds other than each scenario's own. Finding by chance is a fuzzer's work; here every guard has a
//! story that misses it for certain.

#[expect(dead_code, reason = "shared with tests that need the rest")]
mod common;

use std::collections::BTreeMap;
use std::path::PathBuf;

use firedrill_core::guards::Guards;
use firedrill_sim::drill::{self, RunOptions};
use firedrill_sim::engine::EngineKind;
use firedrill_sim::oracles::sabotage::SABOTAGE;
use firedrill_sim::scenario::{LoadOptions, Scenario};

/// The oracles that fired without a guard, with the scenarios they fired in.
fn caught(guards: Guards, files: &[PathBuf]) -> BTreeMap<&'static str, Vec<String>> {
    let fired = common::in_parallel(files, |path| {
        let scenario =
            Scenario::load(path, LoadOptions::for_engine(EngineKind::Event)).expect("a valid scenario");
        let options = RunOptions { guards, timeline: false, ..RunOptions::default() };
        let outcome = drill::run(&scenario, &options).expect("an outcome");
        outcome.violation.map(|violation| (violation.oracle, scenario.name))
    });
    let mut caught: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (oracle, scenario) in fired.into_iter().flatten() {
        caught.entry(oracle).or_default().push(scenario);
    }
    caught
}

#[test]
fn every_guard_turned_off_is_missed_by_an_oracle_that_is_meant_to() {
    let files = common::scenarios();
    assert!(caught(Guards::ON, &files).is_empty(), "no oracle fires while every guard stands");
    for row in SABOTAGE {
        let mut guards = Guards::ON;
        (row.apply)(&mut guards);
        let caught = caught(guards, &files);
        assert!(
            row.caught_by.iter().any(|oracle| caught.contains_key(oracle)),
            "without `{}` one of {:?} has to fire in a scenario ({}); fired: {caught:#?}",
            row.guard,
            row.caught_by,
            row.drill
        );
    }
}
