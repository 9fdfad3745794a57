//! The command as its users meet it: the real binary, its words and its exit codes.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

const DRILL: &str = "scenarios/gossip/partition-heal.toml";

fn firedrill(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_firedrill"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("the command starts")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn ended(output: &Output, code: i32) {
    assert_eq!(output.status.code(), Some(code), "\n{}\n{}", out(output), err(output));
}

/// A fresh folder for one test.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("an old folder can be removed");
    }
    fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}

/// Writes a scenario and gives its path.
fn scenario(test: &str, name: &str, text: &str) -> String {
    let path = folder(test).join(format!("{name}.toml"));
    fs::write(&path, text).expect("a scenario can be written");
    path.to_string_lossy().into_owned()
}

/// Two nodes of which one is killed, with an expectation that cannot hold.
const FAILS: &str = r#"name = "fails"
about = "One of two nodes is killed, and the file wrongly expects that nobody notices."
time_limit = "20s"
[nodes]
names = ["a", "b"]
[[step]]
at = "5s"
kill = "b"
[[expect]]
at_end = { view = { on = "a", members = ["a", "b"] } }
"#;

#[test]
fn alone_it_teaches() {
    let output = firedrill(&[]);
    ended(&output, 0);
    for word in ["First drill:", "scenarios/gossip/partition-heal.toml", "digest", "Exit codes:", "validate"]
    {
        assert!(out(&output).contains(word), "{word} is missing from\n{}", out(&output));
    }
}

#[test]
fn a_typo_gets_a_suggestion() {
    let verb = firedrill(&["vaildate"]);
    ended(&verb, 2);
    assert!(err(&verb).contains("'validate'"), "{}", err(&verb));
    let flag = firedrill(&["run", "--sed", "7", DRILL]);
    ended(&flag, 2);
    assert!(err(&flag).contains("'--seed'"), "{}", err(&flag));
}

#[test]
fn verbs_of_later_versions_are_not_claimed() {
    ended(&firedrill(&["report"]), 2);
}

#[test]
fn a_missing_file_is_named() {
    let output = firedrill(&["run", "scenarios/no-such-drill.toml"]);
    ended(&output, 2);
    assert!(err(&output).contains("scenarios/no-such-drill.toml does not exist"), "{}", err(&output));
}

#[test]
fn an_empty_folder_runs_nothing_and_says_so() {
    let empty = folder("empty");
    let output = firedrill(&["run", &empty.to_string_lossy()]);
    ended(&output, 4);
    assert!(err(&output).contains("nothing ran"), "{}", err(&output));
}

#[test]
fn broken_toml_is_shown_with_its_line() {
    let path = scenario("broken", "broken", "name = \"broken\"\nabout = \n");
    let output = firedrill(&["run", &path]);
    ended(&output, 2);
    assert!(err(&output).contains("broken.toml:2"), "{}", err(&output));
    assert!(out(&output).is_empty(), "{}", out(&output));
}

#[test]
fn an_unknown_key_gets_a_suggestion_and_runs_nothing() {
    let path = scenario("typo", "fails", &FAILS.replace("time_limit", "time_limti"));
    for verb in ["run", "validate"] {
        let output = firedrill(&[verb, &path]);
        ended(&output, 2);
        assert!(err(&output).contains("time_limit"), "{}", err(&output));
    }
}

#[test]
fn a_passing_drill_is_told_in_full() {
    let output = firedrill(&["run", DRILL]);
    ended(&output, 0);
    let text = out(&output);
    for word in ["partition-heal", "seed", "engine", "converged", "bound", "digest", "PASS", "▲", "✓"] {
        assert!(text.contains(word), "{word} is missing from\n{text}");
    }
    assert!(!text.contains('\u{1b}'), "colours were written to something that is no terminal:\n{text}");
}

#[test]
fn a_failed_expectation_shows_its_line_and_ends_with_a_command_that_fails_again() {
    let path = scenario("failed", "fails", FAILS);
    let output = firedrill(&["run", &path, "--seed", "3"]);
    ended(&output, 1);
    let text = out(&output);
    assert!(text.contains("at_end = { view"), "the line is missing from\n{text}");
    let last = text.lines().last().unwrap_or_default().to_owned();
    assert!(last.contains("--seed 3 --engine event --wire "), "{last}");
    let again = Command::new("sh").args(["-c", &last]).output().expect("a shell starts");
    ended(&again, 1);
    let digest = |text: &str| text.lines().find(|line| line.contains("digest")).map(str::to_owned);
    assert!(digest(&text).is_some());
    assert_eq!(digest(&out(&again)), digest(&text), "the pasted command ran something else");
}

#[test]
fn a_failing_drill_shrinks_to_a_file_that_fails_again_as_its_comment_says() {
    let more = FAILS.replace("[\"a\", \"b\"]", "[\"a\", \"b\", \"c\"]");
    let more = more.replace("[[expect]]", "[[step]]\nat = \"9s\"\nisolate = \"c\"\nfor = \"3s\"\n[[expect]]");
    let path = scenario("shrink", "fails", &more);
    let small = PathBuf::from(&path).with_file_name("small.toml");
    let output = firedrill(&["shrink", &path, "--seed", "3", "-o", &small.to_string_lossy()]);
    ended(&output, 0);
    assert!(err(&output).contains("2 steps, 3 hosts to 1 step, 2 hosts"), "{}", err(&output));
    assert!(out(&output).is_empty(), "{}", out(&output));
    let text = fs::read_to_string(&small).expect("the small drill is there");
    assert!(text.contains("Seen instead:") && !text.contains("isolate"), "{text}");
    // The file goes to other machines: the command stands there by its name, wherever it was called from.
    let command = text.lines().find_map(|line| line.strip_prefix("# Run: firedrill ")).expect("a command");
    ended(&firedrill(&command.split_whitespace().collect::<Vec<_>>()), 1);
    let pasted = err(&output).lines().last().unwrap_or_default().to_owned();
    let again = Command::new("sh").args(["-c", &pasted]).output().expect("a shell starts");
    ended(&again, 1);
    let piped = firedrill(&["shrink", &path, "--seed", "3"]);
    ended(&piped, 0);
    let drill =
        |text: &str| text.lines().filter(|line| !line.starts_with("# Run")).collect::<Vec<_>>().join("\n");
    assert_eq!(drill(&out(&piped)), drill(&text), "another shrink gives another drill");
}

#[test]
fn nothing_is_shrunk_where_nothing_fails_or_nothing_is_understood() {
    let passes = firedrill(&["shrink", DRILL]);
    ended(&passes, 4);
    assert!(err(&passes).contains("passes with seed"), "{}", err(&passes));
    let guard = firedrill(&["shrink", DRILL, "--sabotage", "refutatoin"]);
    ended(&guard, 2);
    assert!(err(&guard).contains("similar value exists: 'refutation'"), "{}", err(&guard));
    let path = scenario("shrink-self", "fails", FAILS);
    let itself = firedrill(&["shrink", &path, "-o", &path]);
    ended(&itself, 2);
    assert_eq!(fs::read_to_string(&path).expect("the drill is there"), FAILS, "it was written over");
    ended(&firedrill(&["shrink", "no-such-drill.toml"]), 2);
    ended(&firedrill(&["shrink", &path, "--budget", "soon"]), 2);
}

#[test]
fn a_small_drill_that_cannot_be_written_is_not_lost() {
    let path = scenario("shrink-unwritable", "fails", FAILS);
    let nowhere =
        PathBuf::from(&path).with_file_name("none").join("small.toml").to_string_lossy().into_owned();
    let output = firedrill(&["shrink", &path, "-o", &nowhere]);
    ended(&output, 2);
    assert!(err(&output).contains(&format!("{nowhere} cannot be written")), "{}", err(&output));
    assert!(
        out(&output).contains("# Run: firedrill run") && out(&output).contains("kill = "),
        "{}",
        out(&output)
    );
}

#[test]
fn a_drill_that_fails_only_without_a_guard_says_so_when_it_is_shrunk_with_it() {
    let sabotaged = "scenarios/gossip/clock-back-restart.toml";
    let small = folder("shrink-guard").join("small.toml").to_string_lossy().into_owned();
    ended(&firedrill(&["shrink", sabotaged, "--sabotage", "refutation", "-o", &small]), 0);
    let passes = firedrill(&["shrink", &small]);
    ended(&passes, 4);
    assert!(err(&passes).contains("add --sabotage refutation"), "{}", err(&passes));
    ended(&firedrill(&["shrink", &small, "--sabotage", "refutation"]), 0);
    assert!(!err(&firedrill(&["shrink", sabotaged])).contains("--sabotage"), "a hint at nothing");
}

#[cfg(unix)]
#[test]
fn a_pipe_whose_reader_is_gone_ends_every_command_quietly_and_changes_no_verdict() {
    let failing = scenario("pipe", "fails", FAILS);
    // The reader is gone before anything is written.
    let into_closed = |stream: &str, arguments: &[&str]| {
        let script = format!("sleep 0.3; exec \"$0\" \"$@\" {stream}");
        let (read, write) = std::io::pipe().expect("a pipe");
        let mut command = Command::new("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_firedrill")]).args(arguments);
        command.current_dir(env!("CARGO_MANIFEST_DIR")).stdin(write);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("a shell starts");
        drop((command, read));
        child.wait_with_output().expect("the command ends")
    };
    let artifact = "tests/artifacts/views-agree-11.json";
    let all: &[&[&str]] = &[
        &["run", DRILL],
        &["explain", DRILL],
        &["explain", DRILL, "--format", "json"],
        &["replay", artifact],
        &["shrink", &failing],
        &["fuzz", "--seeds", "0..5", "--quiet"],
        &["fuzz", "--seeds", "0..5", "--quiet", "--format", "sarif"],
        &["list", "verbs"],
        &["schema"],
        &["fuzz", "--help"],
    ];
    for arguments in all {
        let quiet = into_closed(">&0", arguments);
        ended(&quiet, 0);
        let noise = err(&quiet);
        assert!(!noise.contains("panicked") && !noise.contains("error"), "{arguments:?}: {noise}");
    }
    let told = into_closed("2>&0", &["fuzz", "--seeds", "0..5"]);
    ended(&told, 0);
    assert!(out(&told).contains("PASS"), "the report was lost with the remarks: {}", out(&told));
    ended(&into_closed("2>&0", &["run", "no-such-drill.toml"]), 2);
}

#[test]
fn an_artifact_shrinks_as_it_was_recorded() {
    use firedrill_sim::artifact::Artifact;
    use firedrill_sim::drill::{RunOptions, run};
    use firedrill_sim::engine::{EngineKind, Wire};
    use firedrill_sim::scenario::{LoadOptions, Scenario};

    let path = PathBuf::from(scenario("shrink-artifact", "fails", FAILS));
    let drill = Scenario::load(&path, LoadOptions::for_engine(EngineKind::Event)).expect("it is valid");
    let options = RunOptions {
        seed: Some(5),
        wire: Some(Wire::Full),
        keep_trail: true,
        keep_schedule: true,
        ..RunOptions::default()
    };
    let outcome = run(&drill, &options).expect("it runs");
    let artifact = path.with_extension("json");
    fs::write(&artifact, Artifact::new(&drill, &options, &outcome, None).to_json())
        .expect("it can be written");
    let output = firedrill(&["shrink", &artifact.to_string_lossy()]);
    ended(&output, 0);
    for part in ["seed 5.", "--wire full", "kill = "] {
        assert!(out(&output).contains(part), "{part} is missing from\n{}", out(&output));
    }
}

#[test]
fn a_cluster_that_cannot_agree_fails_its_liveness() {
    let text = FAILS.split("[[step]]").next().unwrap_or_default();
    let path = scenario("liveness", "fails", &format!("{text}[net]\nloss = \"100%\"\n"));
    let output = firedrill(&["run", &path]);
    ended(&output, 3);
    assert!(out(&output).contains("did not converge"), "{}", out(&output));
}

#[test]
fn json_is_one_object_a_line_and_names_what_scripts_need() {
    let failing = scenario("json", "fails", FAILS);
    let output = firedrill(&["run", DRILL, &failing, "--format", "json"]);
    ended(&output, 1);
    let documents: Vec<Value> =
        out(&output).lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
    let verdicts: Vec<_> = documents.iter().map(|document| &document["verdict"]).collect();
    assert_eq!(verdicts, ["pass", "expectation"]);
    for key in ["scenario", "seed", "engine", "wire", "digest", "expectations", "numbers", "timeline"] {
        assert!(!documents[0][key].is_null(), "{key} is missing");
    }
    assert_eq!(documents[0]["digest"].as_str().map(str::len), Some(32));
}

#[test]
fn several_drills_take_a_line_each_and_the_gravest_decides() {
    let failing = scenario("several", "fails", FAILS);
    let output = firedrill(&["run", DRILL, &failing]);
    ended(&output, 1);
    let text = out(&output);
    assert!(text.contains("2 drills: 1 passed, 1 failed"), "{text}");
    assert!(!text.contains("timers"), "several drills must not be told in full:\n{text}");
}

#[test]
fn quiet_says_one_line_about_a_pass() {
    let output = firedrill(&["run", "--quiet", DRILL]);
    ended(&output, 0);
    assert_eq!(out(&output).lines().count(), 1, "{}", out(&output));
}

#[test]
fn the_seed_decides_the_digest() {
    let digest = |seed: &str| {
        let output = firedrill(&["run", DRILL, "--seed", seed, "--format", "json"]);
        let document: Value = serde_json::from_str(&out(&output)).expect("a document");
        assert_eq!(document["seed"].to_string(), seed);
        document["digest"].to_string()
    };
    assert_eq!(digest("7"), digest("7"));
    assert_ne!(digest("7"), digest("8"));
    assert_eq!(digest("18446744073709551615").len(), 34);
}

#[test]
fn twice_compares_two_runs() {
    for engine in ["event", "turmoil"] {
        let output = firedrill(&["run", DRILL, "--twice", "--engine", engine]);
        ended(&output, 0);
        assert!(out(&output).contains("event for event the same"), "{}", out(&output));
    }
}

#[test]
fn lists_name_what_there_is() {
    let scenarios = firedrill(&["list", "scenarios"]);
    ended(&scenarios, 0);
    assert!(out(&scenarios).contains(DRILL));
    let verbs = firedrill(&["list", "verbs"]);
    ended(&verbs, 0);
    for verb in ["partition", "half_open", "clock_step", "replay_frames"] {
        assert!(out(&verbs).contains(verb), "{}", out(&verbs));
    }
    assert!(out(&verbs).contains("minority"), "{}", out(&verbs));
    let facts = firedrill(&["list", "facts"]);
    ended(&facts, 0);
    for word in ["at_end", "keys: name, equals, at_least", "{ down = \"b\", on = \"a\" }"] {
        assert!(out(&facts).contains(word), "{}", out(&facts));
    }
    let oracles = firedrill(&["list", "oracles"]);
    ended(&oracles, 0);
    assert!(out(&oracles).contains("counter"), "{}", out(&oracles));
}

#[test]
fn every_shipped_scenario_is_valid() {
    ended(&firedrill(&["validate", "scenarios"]), 0);
}

#[test]
fn the_schema_is_json() {
    let output = firedrill(&["schema"]);
    ended(&output, 0);
    let schema: Value = serde_json::from_str(&out(&output)).expect("the schema is JSON");
    assert!(schema["properties"]["step"].is_object(), "{schema}");
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_long_drill_cleanly() {
    let text = FAILS
        .replace("\"20s\"", "\"8000h\"")
        .replace("\"a\", \"b\"]\n[[step]]", "\"a\", \"b\", \"c\"]\n[[step]]");
    let path = scenario("interrupt", "fails", &text);
    let mut child = Command::new(env!("CARGO_BIN_EXE_firedrill"))
        .args(["run", &path])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    std::thread::sleep(Duration::from_secs(1));
    let still_runs = child.try_wait().expect("the child can be asked").is_none();
    assert!(still_runs, "the drill is too short to be interrupted");
    let kill = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().is_ok_and(|status| status.success()));
    let output = child.wait_with_output().expect("the child ends");
    ended(&output, 130);
    assert!(out(&output).contains("INTERRUPTED"), "{}\n{}", out(&output), err(&output));
}
