//! Stories as people read them: the real binary, a guard turned off, and the whole text.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use firedrill_sim::artifact::Artifact;
use firedrill_sim::drill::{RunOptions, run};
use firedrill_sim::engine::{EngineKind, Wire};
use firedrill_sim::oracles::sabotage::SABOTAGE;
use firedrill_sim::outcome::Failure;
use firedrill_sim::scenario::{LoadOptions, Scenario};
use serde_json::Value;

const DEAF: &[&str] = &["scenarios/gossip/deaf-node.toml", "--sabotage", "heard_outranks_hearsay"];
const TOMBSTONE: &[&str] = &["scenarios/gossip/tombstone-refuted.toml", "--sabotage", "tombstones_pushed"];
const HEALTHY: &[&str] = &["scenarios/gossip/partition-heal.toml"];

/// Nothing is expected of it, so only its end can fail.
const BACK: &str = r#"name = "back"
about = "b comes back two hours in the past."
time_limit = "25s"
[nodes]
names = ["a", "b", "c"]
[[step]]
at = "8s"
kill = "b"
[[step]]
after = "3s"
restart = { target = "b", wall = "-2h" }
"#;

fn firedrill(verb: &str, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_firedrill"))
        .arg(verb)
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("the command starts")
}

#[track_caller]
fn told(arguments: &[&str], code: i32) -> String {
    let output = firedrill("explain", arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(code), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    text
}

fn json(verb: &str, arguments: &[&str]) -> Value {
    let output = firedrill(verb, &[arguments, &["--format", "json"]].concat());
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

fn back() -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("back.toml");
    std::fs::write(&path, BACK).expect("a scenario can be written");
    path.to_string_lossy().into_owned()
}

/// The text without the places that differ from machine to machine.
fn portable(text: &str) -> String {
    text.replace(env!("CARGO_BIN_EXE_firedrill"), "firedrill").replace(env!("CARGO_TARGET_TMPDIR"), "drills")
}

#[test]
fn a_broken_invariant_is_told_with_what_led_to_it() {
    insta::assert_snapshot!(portable(&told(DEAF, 1)));
}

#[test]
fn a_cluster_that_never_agrees_is_told_with_what_was_due_when() {
    insta::assert_snapshot!(portable(&told(&[&back(), "--sabotage", "refutation"], 3)));
}

#[test]
fn a_failed_expectation_is_told_with_the_beliefs_at_its_decision() {
    insta::assert_snapshot!(portable(&told(TOMBSTONE, 1)));
}

#[test]
fn a_drill_that_passed_is_told_by_what_it_survived() {
    insta::assert_snapshot!(portable(&told(HEALTHY, 0)));
}

#[test]
fn telling_changes_nothing_and_names_the_failure_that_a_run_names() {
    for drill in [DEAF, TOMBSTONE, HEALTHY] {
        let (story, ran) = (json("explain", drill), json("run", drill));
        assert!(ran["digest"].is_string());
        for key in ["digest", "verdict", "exit_code", "reproduce"] {
            assert_eq!(story[key], ran[key], "{key} of {drill:?}");
        }
        assert_eq!(story["cast"]["scenario"], ran["scenario"]);
        assert_eq!(story["cast"]["guards_off"].get(0), drill.get(2).map(|name| Value::from(*name)).as_ref());
        assert_eq!(ran["sabotage"], drill.get(2).map_or(Value::Null, |name| Value::from(*name)));
    }
}

#[test]
fn the_last_line_of_a_story_shows_the_same_failure_again() {
    let text = told(DEAF, 1);
    let line = text.lines().last().expect("a last line").to_owned();
    assert!(line.ends_with("--sabotage heard_outranks_hearsay"), "{line}");
    let again: Vec<&str> = line.split(' ').skip(2).collect();
    let output = firedrill("run", &again);
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{shown}");
    assert!(shown.contains("guard off   heard_outranks_hearsay"), "{shown}");
    assert!(shown.ends_with("--sabotage heard_outranks_hearsay\n"), "{shown}");
}

#[test]
fn no_line_but_the_command_is_wider_than_a_page() {
    for drill in [DEAF, TOMBSTONE, HEALTHY] {
        let text = told(drill, i32::from(drill != HEALTHY));
        let lines: Vec<&str> = text.lines().collect();
        let wide = lines[..lines.len() - 1].iter().find(|line| line.chars().count() > 110);
        assert_eq!(wide, None);
    }
}

#[test]
fn an_unknown_guard_is_refused_with_a_suggestion_and_the_list() {
    for verb in ["run", "explain", "shrink"] {
        let output = firedrill(verb, &[HEALTHY[0], "--sabotage", "refutatoin"]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains("similar value exists: 'refutation'"), "{text}");
        assert!(text.contains("echo_exempt"), "{text}");
    }
}

#[test]
fn every_guard_is_listed_with_who_notices() {
    let output = firedrill("list", &["sabotages"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0));
    for row in SABOTAGE {
        assert!(text.contains(&format!("  {}\n", row.guard)), "{} is missing from\n{text}", row.guard);
        for oracle in row.caught_by {
            assert!(text.contains(oracle), "{oracle} is missing from\n{text}");
        }
    }
}

#[test]
fn a_file_that_cannot_be_told_is_named() {
    let output = firedrill("explain", &["scenarios/no-such-drill.toml"]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("scenarios/no-such-drill.toml does not exist"), "{text}");
}

/// The drill of [`back`], recorded with a guard off, on the full wire and from another seed.
fn artifact() -> PathBuf {
    let drill = Scenario::load(Path::new(&back()), LoadOptions::for_engine(EngineKind::Event));
    let drill = drill.expect("it is valid");
    let mut options = RunOptions {
        seed: Some(5),
        wire: Some(Wire::Full),
        keep_trail: true,
        keep_schedule: true,
        ..RunOptions::default()
    };
    options.guards.refutation = false;
    let outcome = run(&drill, &options).expect("it runs");
    assert!(outcome.failure().is_some());
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("back.json");
    let artifact = Artifact::new(&drill, &options, &outcome, Some("refutation"));
    std::fs::write(&path, artifact.to_json()).expect("an artifact can be written");
    path
}

#[test]
fn an_artifact_is_told_as_the_run_that_it_recorded() {
    let path = artifact();
    let recorded = Artifact::load(&path).expect("an artifact");
    let path = path.to_string_lossy().into_owned();
    let story = json("explain", &[&path]);
    assert_eq!(story["digest"], Value::from(recorded.digest.as_str()));
    assert_eq!(story["cast"]["guards_off"], serde_json::json!(["refutation"]));
    // The line at the end leads back to the same run, though `firedrill run` takes no artifact.
    let line = story["reproduce"].as_str().expect("a command").to_owned();
    let again: Vec<&str> = line.split(' ').skip(2).collect();
    assert_eq!(line.split(' ').nth(1), Some("explain"), "{line}");
    assert_eq!(json("explain", &again)["digest"], story["digest"], "{line}");
    let text = told(&[&path], 3);
    assert!(text.contains("refutation (sabotage)") && !text.contains("--verbose"), "{text}");
}

#[test]
fn the_limit_of_inputs_that_an_artifact_recorded_holds_for_whoever_runs_it_again() {
    let drill = Scenario::load(Path::new(&back()), LoadOptions::for_engine(EngineKind::Event));
    let drill = drill.expect("it is valid");
    let options =
        RunOptions { inputs_max: Some(50), keep_trail: true, keep_schedule: true, ..RunOptions::default() };
    let outcome = run(&drill, &options).expect("it runs");
    let Some(Failure::Invariant(oracle)) = outcome.failure() else { panic!("fifty inputs suffice") };
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("busy.json");
    std::fs::write(&path, Artifact::new(&drill, &options, &outcome, None).to_json())
        .expect("it can be written");
    let path = path.to_string_lossy().into_owned();
    let explained = json("explain", &[&path]);
    assert_eq!(explained["digest"], Value::from(outcome.digest.as_str()));
    assert_ne!(explained["exit_code"], Value::from(0), "{explained}");
    let shrunk = firedrill("shrink", &[&path]);
    let text = String::from_utf8_lossy(&shrunk.stdout).into_owned();
    assert_eq!(shrunk.status.code(), Some(0), "{}", String::from_utf8_lossy(&shrunk.stderr));
    assert!(text.contains(&format!("# Breaks {oracle}:")), "{text}");
}

#[test]
fn what_the_arguments_say_goes_before_what_an_artifact_says() {
    let path = artifact().to_string_lossy().into_owned();
    let story = json("explain", &[&path, "--seed", "6", "--wire", "fast", "--sabotage", "push_jitter"]);
    assert_eq!(story["cast"]["guards_off"], serde_json::json!(["push_jitter"]));
    let line = story["reproduce"].as_str().expect("a command");
    assert!(line.ends_with("--seed 6 --engine event --wire fast --sabotage push_jitter"), "{line}");
}

#[test]
fn a_file_that_is_no_artifact_is_refused_with_the_remedy() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("none.json");
    std::fs::write(&path, "{}").expect("a file can be written");
    let path = path.to_string_lossy().into_owned();
    for verb in ["explain", "shrink"] {
        let output = firedrill(verb, &[&path]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains("none.json is no artifact") && text.contains(".toml"), "{text}");
    }
}
