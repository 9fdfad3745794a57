//! `firedrill fuzz` as its users meet it: what it prints, keeps and answers, and how it ends.

use std::path::PathBuf;
use std::process::{Command, Output};

fn firedrill(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_firedrill"));
    command.args(args).env_remove("GITHUB_STEP_SUMMARY").env_remove("JOB_COMPLETION_INDEX");
    command.output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// An empty folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _absent = std::fs::remove_dir_all(&folder);
    folder
}

#[test]
fn what_is_printed_does_not_depend_on_the_number_of_threads() {
    for format in ["text", "json"] {
        let run = |jobs| firedrill(&["fuzz", "--seeds", "0..150", "--format", format, "--jobs", jobs]);
        let (one, two) = (run("1"), run("2"));
        assert_eq!(one.status.code(), Some(0), "{}", text(&one.stdout));
        assert_eq!(text(&one.stdout), text(&two.stdout));
        assert!(text(&one.stdout).contains("150"));
    }
}

#[test]
fn a_failure_is_kept_as_a_scenario_that_fails_and_an_artifact_that_replays() {
    let kept = folder("fuzz-keeps");
    let keep = kept.to_str().expect("a path of plain letters");
    let fuzz = firedrill(&["fuzz", "--sabotage", "refutation", "--keep", keep, "--quiet"]);
    assert_eq!(fuzz.status.code(), Some(3), "{}", text(&fuzz.stderr));
    let told = text(&fuzz.stdout);
    let command = |verb: &str| {
        let line = told.lines().map(str::trim).find(|line| line.starts_with(&format!("firedrill {verb} ")));
        let line = line.unwrap_or_else(|| panic!("no line to {verb} it in:\n{told}"));
        line.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    let run = |words: &[String]| firedrill(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let replayed = run(&command("replay"));
    assert_eq!(replayed.status.code(), Some(0), "{}{}", text(&replayed.stdout), text(&replayed.stderr));
    let mut explain = command("explain");
    let explained = run(&explain);
    assert!(matches!(explained.status.code(), Some(1 | 3)), "{}", text(&explained.stderr));
    // Without the sabotage the same drill passes: it shows the guard and nothing else.
    explain.truncate(2);
    assert_eq!(run(&explain).status.code(), Some(0));
}

#[test]
fn wrong_arguments_are_refused_with_what_to_do() {
    let wrong: &[(&[&str], &str)] = &[
        (&["--seeds", "5..5"], "above the first"),
        (&["--seeds", "many"], "0..10000"),
        (&["--shard", "0/4"], "count from 1 to 4"),
        (&["--shard", "5/4"], "count from 1 to 4"),
        (&["--shard", "auto"], "JOB_COMPLETION_INDEX"),
        (&["--profile", "gosip"], "gossip"),
        (&["--sabotage", "refutatio"], "refutation"),
        (&["--jobs", "0"], "--jobs"),
        (&["--budget", "soon"], "--budget"),
    ];
    for (args, says) in wrong {
        let ended = firedrill(&[&["fuzz"], *args].concat());
        assert_eq!(ended.status.code(), Some(2), "{args:?}");
        assert!(text(&ended.stderr).contains(says), "{args:?}: {}", text(&ended.stderr));
    }
}

#[test]
fn a_budget_ends_a_campaign_in_good_order() {
    let ended =
        firedrill(&["fuzz", "--budget", "1s", "--wire", "fast", "--engine", "event", "--format", "json"]);
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    let report: serde_json::Value = serde_json::from_slice(&ended.stdout).expect("a report");
    assert_eq!(report["complete"], false);
    assert!(report["totals"]["seeds"].as_u64().is_some_and(|seeds| seeds > 0));
}
