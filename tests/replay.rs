//! Recorded runs as their owners meet them again: the real binary, artifacts untouched, edited and old.
//!
//! `tests/artifacts` holds runs that a campaign found once; a replay reads nothing but them. When behaviour changes
//! on purpose, `FIREDRILL_RECORD=1 cargo test --test replay` runs the drills they hold and records them anew.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use firedrill_core::guards::Guards;
use firedrill_sim::artifact::Artifact;
use firedrill_sim::digest::Mark;
use firedrill_sim::drill::{RunOptions, run};
use firedrill_sim::engine::EngineKind;
use firedrill_sim::oracles::sabotage::SABOTAGE;
use firedrill_sim::scenario::{LoadOptions, Scenario};
use serde_json::Value;

const KEPT: &str = "tests/artifacts";
const GUARD: &str = "refutation";

/// b comes back with its clock in the past: without refutation nobody takes it in again.
const BACK: &str = r#"name = "back"
about = "b comes back two hours in the past."
time_limit = "12s"
[nodes]
names = ["a", "b"]
[[step]]
at = "2s"
kill = "b"
[[step]]
after = "3s"
restart = { target = "b", wall = "-2h" }
"#;

fn firedrill(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_firedrill"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("the command starts")
}

/// What a replay of these files says, on either stream, once it ended with this code.
#[track_caller]
fn told(files: &[&Path], code: i32) -> String {
    let files: Vec<_> = files.iter().map(|file| file.to_string_lossy()).collect();
    let mut arguments = vec!["replay"];
    arguments.extend(files.iter().map(AsRef::as_ref));
    let output = firedrill(&arguments);
    let text = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert_eq!(output.status.code(), Some(code), "{text}");
    // Text breaks where a page ends; what it says does not.
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing from\n{text}");
    }
}

/// How the drill runs with the guard off, if one is.
fn options(guard: Option<&str>) -> RunOptions {
    let mut guards = Guards::ON;
    if let Some(guard) = guard {
        let row = SABOTAGE.iter().find(|row| row.guard == guard).expect("a guard of this name");
        (row.apply)(&mut guards);
    }
    RunOptions { seed: Some(7), guards, keep_trail: true, keep_schedule: true, ..RunOptions::default() }
}

/// A run of the drill, recorded.
fn recorded(guard: Option<&str>) -> Artifact {
    let none = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
    let wants = LoadOptions::for_engine(EngineKind::Event);
    let drill = Scenario::parse(BACK, Path::new("back.toml"), &none, wants).expect("it is valid");
    let options = options(guard);
    let outcome = run(&drill, &options).expect("it runs");
    Artifact::new(&drill, &options, &outcome, guard)
}

/// Keeps an artifact as a file of its own.
fn kept(name: &str, artifact: &Artifact) -> PathBuf {
    written(name, &artifact.to_json())
}

fn written(name: &str, text: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("replay");
    fs::create_dir_all(&folder).expect("a folder can be made");
    let file = folder.join(name);
    fs::write(&file, text).expect("a file can be written");
    file
}

#[test]
fn a_recorded_failure_is_reproduced_with_its_two_facts() {
    let artifact = recorded(Some(GUARD));
    let violation = artifact.violation.clone().expect("an invariant broke");
    let text = told(&[&kept("reproduced.json", &artifact)], 0);
    says(&text, &["REPRODUCED", "the guard refutation off", &violation.oracle, &artifact.digest]);
    says(&text, &[&violation.fact, &violation.contradiction]);
}

#[test]
fn a_recorded_pass_is_reproduced_too() {
    says(&told(&[&kept("pass.json", &recorded(None))], 0), &["REPRODUCED", "it passed"]);
}

#[test]
fn a_repaired_program_is_told_that_the_failure_is_gone() {
    let repaired = Artifact { sabotage: None, ..recorded(Some(GUARD)) };
    let text = told(&[&kept("gone.json", &repaired)], 1);
    says(&text, &["CHANGED: the recorded failure is gone", "is the first that differs", "there, now at"]);
    says(&text, &[&repaired.digest, "of one version", "what to do:"]);
    let broken = Artifact { sabotage: Some(GUARD.to_owned()), ..recorded(None) };
    says(&told(&[&kept("appeared.json", &broken)], 1), &["it passed when recorded and fails now"]);
}

#[test]
fn an_edited_scenario_parts_at_the_first_fault_it_changes() {
    let mut artifact = recorded(Some(GUARD));
    assert!(artifact.scenario.contains("at = \"2s\""), "{}", artifact.scenario);
    artifact.scenario = artifact.scenario.replace("at = \"2s\"", "at = \"2500ms\"");
    let text = told(&[&kept("scenario.json", &artifact)], 1);
    says(&text, &["the same failure by another way", "fault 1 of the schedule is the first that differs"]);
    says(&text, &["recorded at 2.000 s, by step 1: kill b", "now at 2.500 s, by step 1: kill b"]);
}

#[test]
fn an_edited_schedule_is_told_by_its_fault_and_no_event() {
    let mut artifact = recorded(Some(GUARD));
    artifact.schedule.pop().expect("it has faults");
    let place = artifact.schedule.len() + 1;
    let text = told(&[&kept("schedule.json", &artifact)], 1);
    says(&text, &[&format!("fault {place} of the schedule is the first"), "recorded no further fault"]);
    assert!(!text.contains("parted event"), "{text}");
}

#[test]
fn a_mark_that_differs_names_the_event_its_nodes_and_what_happened_there() {
    let mut artifact = recorded(Some(GUARD));
    let (index, now) = artifact
        .trail
        .iter()
        .enumerate()
        .find(|(index, mark)| *index > 10 && mark.host().0 == 0)
        .map(|(index, mark)| (index, *mark))
        .expect("a has an event");
    // The last six bits of a mark are its host: b handled it when it was recorded, a does now.
    artifact.trail[index] = Mark::from_bits((now.bits() & !63 | 1) ^ (1 << 30));
    let file = kept("mark.json", &artifact);
    let text = told(&[&file], 1);
    says(&text, &[&format!("event {index} is the first that differs"), "on b (recorded), on a (now)"]);
    says(&text, &["there, now at ", "the same failure by another way"]);
    assert!(!text.contains("of the schedule"), "{text}");
    let output = firedrill(&["replay", &file.to_string_lossy(), "--format", "json"]);
    let document: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!(document["verdict"], "changed");
    assert_eq!(document["change"], "same_failure");
    assert_eq!(document["exit_code"], 1);
    assert_eq!(document["first_different_event"]["index"], index);
    assert_eq!(document["first_different_event"]["nodes"], serde_json::json!(["b", "a"]));
    assert_eq!(document["first_different_event"]["happening"]["node"], "a");
    assert_eq!(document["first_different_fault"], Value::Null);
    assert_eq!(document["recorded"]["digest"], document["now"]["digest"]);
}

#[test]
fn another_version_is_named_and_is_no_difference_by_itself() {
    let other = Artifact { firedrill: "0.0.9".to_owned(), ..recorded(Some(GUARD)) };
    says(&told(&[&kept("version.json", &other)], 0), &["REPRODUCED", "recorded by firedrill 0.0.9"]);
    let changed = Artifact { digest: "0".repeat(32), ..other };
    let text = told(&[&kept("version-digest.json", &changed)], 1);
    says(&text, &["to see the recorded run itself, replay it with firedrill 0.0.9"]);
    says(&text, &["every fault and every event agree"]);
}

#[test]
fn what_cannot_be_replayed_says_why_and_what_to_do() {
    let renamed = Artifact {
        sabotage: Some("refutation_of_old".to_owned()),
        firedrill: "0.0.9".to_owned(),
        ..recorded(Some(GUARD))
    };
    let text = told(&[&kept("guard.json", &renamed)], 2);
    says(&text, &["guard.json: it was recorded with the guard `refutation_of_old` off", "no such guard"]);
    says(&text, &["replay it with the firedrill that recorded it, 0.0.9"]);
    let later = recorded(None).to_json().replace("\"format\": 1", "\"format\": 2");
    says(&told(&[&written("format.json", &later)], 2), &["reads format 1 only"]);
    says(&told(&[&written("text.json", BACK)], 2), &["text.json:1:", "is no JSON"]);
    says(&told(&[Path::new("no-such.json")], 2), &["no-such.json cannot be read"]);
    says(&told(&[Path::new("no-such.toml")], 2), &["no-such.toml does not exist"]);
    let mut invalid = recorded(None);
    invalid.scenario = invalid.scenario.replace("time_limit", "time_limti");
    says(&told(&[&kept("invalid.json", &invalid)], 2), &["is not valid for this firedrill", "time_limit"]);
}

#[test]
fn a_run_that_failed_at_its_limit_of_inputs_replays_with_that_limit() {
    let none = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
    let wants = LoadOptions::for_engine(EngineKind::Event);
    let drill = Scenario::parse(BACK, Path::new("back.toml"), &none, wants).expect("it is valid");
    let options = RunOptions { inputs_max: Some(60), ..options(None) };
    let outcome = run(&drill, &options).expect("it runs");
    let artifact = Artifact::new(&drill, &options, &outcome, None);
    assert!(artifact.failure.is_some() && recorded(None).failure.is_none());
    says(&told(&[&kept("limit.json", &artifact)], 0), &["REPRODUCED", "progress"]);
}

#[test]
fn several_files_take_a_line_each_and_the_gravest_decides() {
    let fine = kept("several-fine.json", &recorded(Some(GUARD)));
    let gone = kept("several-gone.json", &Artifact { sabotage: None, ..recorded(Some(GUARD)) });
    let drill = Path::new("scenarios/gossip/partition-heal.toml");
    let text = told(&[&fine, &gone, drill, Path::new("no-such.json")], 1);
    says(&text, &["several-fine.json reproduced", "several-gone.json changed: the recorded failure is gone"]);
    says(&text, &["partition-heal.toml reproduced it passed", "no-such.json cannot be read"]);
    assert!(!text.contains("what to do"), "{text}");
}

#[test]
fn a_scenario_is_run_twice_and_may_fail_so_long_as_it_fails_the_same() {
    let wrong = format!("{BACK}[[expect]]\nby = \"11s\"\nevent = {{ left = \"b\" }}\n");
    let text = told(&[&written("wrong.toml", &wrong)], 0);
    says(&text, &["REPRODUCED", "in two runs", "an expectation did not hold"]);
}

#[test]
fn runs_that_a_campaign_found_replay_from_their_files_alone() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(KEPT);
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|file| file.expect("an entry").path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in &files {
        if std::env::var_os("FIREDRILL_RECORD").is_some() {
            record_anew(file);
        }
        says(&told(&[file], 0), &["REPRODUCED", "broke", "but"]);
    }
}

/// Runs the drill of an artifact and keeps what happens now.
fn record_anew(file: &Path) {
    let old = Artifact::load(file).unwrap_or_else(|error| panic!("{error}"));
    let drill = old.scenario().unwrap_or_else(|report| panic!("{report}"));
    let options = old.options().expect("its guard exists");
    let outcome = run(&drill, &options).expect("it runs");
    assert_eq!(outcome.failure(), old.failure, "{}: what it was kept for is gone", file.display());
    let new =
        Artifact { path: old.path, ..Artifact::new(&drill, &options, &outcome, old.sabotage.as_deref()) };
    fs::write(file, new.to_json()).expect("it can be written");
}
