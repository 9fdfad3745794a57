//! Stories as people read them: the real binary, a guard turned off, and the whole text.

use std::path::PathBuf;
use std::process::{Command, Output};

use firedrill_sim::oracles::sabotage::SABOTAGE;
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
        let (story, run) = (json("explain", drill), json("run", drill));
        assert!(run["digest"].is_string());
        for key in ["digest", "verdict", "exit_code", "reproduce"] {
            assert_eq!(story[key], run[key], "{key} of {drill:?}");
        }
        assert_eq!(story["cast"]["scenario"], run["scenario"]);
        assert_eq!(story["cast"]["guards_off"].get(0), drill.get(2).map(|name| Value::from(*name)).as_ref());
        assert_eq!(run["sabotage"], drill.get(2).map_or(Value::Null, |name| Value::from(*name)));
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
    for verb in ["run", "explain"] {
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
