//! The drills of issuance have teeth: each fails once the rule that its story is about is turned off.
//!
//! Absent: finding such drills by chance, which is the fuzzer's work; here every rule has its story.

use std::path::Path;

use firedrill_core::guards::Guards;
use firedrill_sim::drill::{self, RunOptions};
use firedrill_sim::engine::EngineKind;
use firedrill_sim::outcome::{Outcome, Verdict};
use firedrill_sim::scenario::{LoadOptions, Scenario};

fn load(name: &str) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../scenarios/issuance/{name}.toml"));
    Scenario::load(&path, LoadOptions::for_engine(EngineKind::Event)).expect("a shipped scenario is valid")
}

fn run(name: &str, guards: Guards) -> Outcome {
    let options = RunOptions { guards, ..RunOptions::default() };
    drill::run(&load(name), &options).expect("the event engine runs it")
}

/// What failed first, for people who read a list of them.
fn failure(outcome: &Outcome) -> String {
    match &outcome.violation {
        Some(violation) => format!("{}: {}", violation.oracle, violation.fact),
        None => {
            let missed = outcome.expectations.iter().find(|expectation| !expectation.held);
            missed.map_or_else(String::new, |missed| format!("{}: {:?}", missed.text, missed.seen))
        }
    }
}

/// A scenario, and what turns off the rule without which it fails.
type Tooth = (&'static str, fn(&mut Guards));

const TEETH: &[Tooth] = &[
    ("cold-start", |guards| guards.empty_spine_elects_nobody = false),
    ("lone-survivor", |guards| guards.field_of_one_holds = false),
    ("issuer-paused", |guards| guards.seal_after_catch_up = false),
    ("clock-forward-issuer", |guards| guards.clock_checked = false),
    ("disk-full", |guards| guards.unfit_replaced = false),
    ("disk-stalled", |guards| guards.unfit_replaced = false),
    ("clock-back-issuer", |guards| guards.unfit_replaced = false),
    ("operator-pause-long", |guards| guards.unfit_replaced = false),
    ("failover-2", |guards| guards.field_keeps_the_dead = false),
    ("replica-cut-from-issuer", |guards| guards.silence_before_election = false),
    ("isolated-issuer", |guards| guards.rows_merged = false),
    ("two-promotions", |guards| guards.lowest_id_holds = false),
    ("lost-disk", |guards| guards.stream_per_boot = false),
    ("fenced-minority", |guards| guards.fence_before_seal = false),
];

#[test]
fn every_drill_fails_without_the_rule_it_is_about() {
    let mut toothless = Vec::new();
    for (name, turn_off) in TEETH {
        let whole = run(name, Guards::ON);
        assert_eq!(whole.verdict, Verdict::Pass, "{name}: {}", failure(&whole));
        let mut guards = Guards::ON;
        turn_off(&mut guards);
        if run(name, guards).verdict == Verdict::Pass {
            toothless.push(*name);
        }
    }
    assert_eq!(toothless, [""; 0]);
}

#[test]
fn the_failover_drill_tells_the_relations_of_its_numbers() {
    let outcome = run("failover-drill", Guards::ON);
    let report = outcome.issuance.expect("the drill issues");
    let [takeover] = report.takeovers.as_slice() else { panic!("{:?}", report.takeovers) };
    let row = takeover.first_row.as_ref().expect("the successor sealed");
    let audit = report.audit.as_ref().expect("the rows add up");
    assert_eq!((takeover.from.as_deref(), takeover.by.as_str()), (Some("drill-a"), "drill-b"));
    assert_eq!((takeover.epoch_before, takeover.epoch, row.epoch), (Some(0), 1, Some(1)));
    assert!((61..=96).contains(&takeover.silence_z), "{} Z of silence", takeover.silence_z);
    assert_eq!(row.elapsed, 8, "the cap of one row");
    assert_eq!(takeover.decisions.get("drill-c").map(String::as_str), Some("successor_is_drill-b"));
    assert!(takeover.returned_at_us < takeover.demoted_at_us, "it stands down after its return");
    assert_eq!(takeover.seals_after_return, 0);
    assert!(report.prefix.is_some_and(|prefix| prefix.equal), "one spine");
    let duplicates: u64 = report.nodes.values().map(|rows| rows.duplicates + rows.rows_below_tip).sum();
    assert_eq!(duplicates, 0);
    assert_eq!(audit.elapsed_sum, report.elapsed_by.values().sum::<u64>());
    assert_eq!(audit.elapsed_sum + audit.under_issued, audit.span, "what was issued and what is missing");
    // Rows of the old issuer that were not replicated when it died fill a part of what the takeover gave up.
    let given_up = row.window - row.from_window - row.elapsed;
    assert!(audit.under_issued <= given_up && audit.forfeited == given_up, "{audit:?}");
}
