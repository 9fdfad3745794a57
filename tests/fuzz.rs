//! `firedrill fuzz` as its users meet it: what it prints, keeps and answers, and how it ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use firedrill_sim::oracles::sabotage::SABOTAGE;
use serde_json::Value;

/// The command, with nothing of the environment that it reads.
fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_firedrill"));
    command.args(args);
    for name in ["GITHUB_STEP_SUMMARY", "JOB_COMPLETION_INDEX", "FIREDRILL_SHARDS"] {
        command.env_remove(name);
    }
    command
}

fn output(command: &mut Command) -> Output {
    command.output().expect("the binary runs")
}

fn firedrill(args: &[&str]) -> Output {
    output(&mut command(args))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn report(output: &Output) -> Value {
    let problem = text(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("no report: {error}\n{problem}"))
}

#[track_caller]
fn ended(output: &Output, code: i32) {
    assert_eq!(output.status.code(), Some(code), "\n{}\n{}", text(&output.stdout), text(&output.stderr));
}

/// An empty folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{name}"));
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("an old folder can be removed");
    }
    fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}

fn name(path: &Path) -> &str {
    path.to_str().expect("a path of plain letters")
}

/// What the command is given, and the words of its refusal.
type Refused<'a, T> = (&'a [T], &'a [&'a str]);

/// The one file of a folder that ends so.
fn only(folder: &Path, ending: &str) -> PathBuf {
    let entries = fs::read_dir(folder).expect("the folder can be read");
    let paths = entries.map(|entry| entry.expect("an entry can be read").path());
    let found: Vec<_> = paths.filter(|path| path.extension().is_some_and(|has| has == ending)).collect();
    let [path] = found.as_slice() else { panic!("not one .{ending} in {}: {found:?}", folder.display()) };
    path.clone()
}

#[test]
fn what_is_printed_does_not_depend_on_the_number_of_threads() {
    for format in ["text", "json"] {
        let run = |jobs| firedrill(&["fuzz", "--seeds", "0..150", "--format", format, "--jobs", jobs]);
        let (one, two) = (run("1"), run("2"));
        ended(&one, 0);
        assert_eq!(text(&one.stdout), text(&two.stdout));
        assert!(text(&one.stdout).contains("150"));
    }
}

#[test]
fn a_failure_is_kept_as_a_scenario_that_fails_and_an_artifact_that_replays() {
    let kept = folder("keeps");
    let fuzz = firedrill(&["fuzz", "--sabotage", "refutation", "--keep", name(&kept), "--quiet"]);
    ended(&fuzz, 3); // who is never taken in again breaks liveness
    let (drill, artifact) = (only(&kept, "toml"), only(&kept, "json"));
    assert_eq!(drill.file_stem(), artifact.file_stem());

    let failed = firedrill(&["run", name(&drill), "--sabotage", "refutation"]);
    ended(&failed, 3);
    let invariant = drill.file_stem().and_then(|stem| stem.to_str()).expect("a name").replace('-', "_");
    let invariant = invariant.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('_');
    assert!(text(&failed.stdout).contains(invariant), "{invariant}: {}", text(&failed.stdout));
    let written = fs::read_to_string(&drill).expect("the drill can be read");
    let line = written.lines().find_map(|line| line.strip_prefix("# Run: firedrill "));
    let words: Vec<_> = line.expect("the drill says how to run it").split_whitespace().collect();
    let as_written = output(command(&words).current_dir(&kept));
    ended(&as_written, 3);
    assert!(text(&as_written.stdout).contains(invariant), "{}", text(&as_written.stdout));
    // With the guard the same drill passes: it shows the guard and nothing else.
    ended(&firedrill(&["run", name(&drill)]), 0);

    let replayed = firedrill(&["replay", name(&artifact)]);
    ended(&replayed, 0);
    assert!(text(&replayed.stdout).contains("REPRODUCED"), "{}", text(&replayed.stdout));
}

#[test]
fn what_is_told_of_a_failure_are_commands_that_work() {
    let kept = folder("tells");
    let fuzz = firedrill(&["fuzz", "--sabotage", "refutation", "--keep", name(&kept), "--quiet"]);
    let told = text(&fuzz.stdout);
    let run = |verb: &str| {
        let line = told.lines().map(str::trim).find(|line| line.starts_with(&format!("firedrill {verb} ")));
        let line = line.unwrap_or_else(|| panic!("no line to {verb} it in:\n{told}"));
        firedrill(&line.split_whitespace().skip(1).collect::<Vec<_>>())
    };
    ended(&run("replay"), 0);
    let explained = run("explain");
    ended(&explained, 3);
    assert!(text(&explained.stdout).contains("refutation"), "{}", text(&explained.stdout));
}

#[test]
fn a_file_in_the_way_of_the_findings_is_told_before_anything_is_played() {
    let file = folder("in-the-way").join("a-file");
    fs::write(&file, "in the way").expect("a file can be written");
    for kept in [file.clone(), file.join("findings")] {
        let refused = firedrill(&["fuzz", "--seeds", "0..20", "--keep", name(&kept)]);
        ended(&refused, 2);
        assert_eq!(text(&refused.stdout), "");
        for part in ["cannot be kept", name(&kept), "is a file", "--keep"] {
            assert!(text(&refused.stderr).contains(part), "{part}: {}", text(&refused.stderr));
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_kept_is_told_in_full_all_the_same() {
    // Nobody may make a folder there, whoever runs the test.
    let kept = "/proc/findings";
    let clean = firedrill(&["fuzz", "--seeds", "0..5", "--keep", kept, "--quiet"]);
    ended(&clean, 0);
    assert_eq!(text(&clean.stderr), "");
    let fuzz = |format: &str| {
        let args = ["fuzz", "--sabotage", "refutation", "--keep", kept, "--quiet", "--format", format];
        let failed = firedrill(&args);
        ended(&failed, 3);
        for part in ["cannot be kept", kept, "--keep"] {
            assert!(text(&failed.stderr).contains(part), "{part}: {}", text(&failed.stderr));
        }
        failed
    };
    let told = text(&fuzz("text").stdout);
    for part in ["must hold: ", "but ", "shrunk to ", "FAIL"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!told.contains(kept), "a file is named that is not there:\n{told}");
    let again = told.lines().map(str::trim).find(|line| line.starts_with("firedrill fuzz "));
    let again: Vec<_> = again.expect("a line that plays the seed again").split_whitespace().skip(1).collect();
    ended(&firedrill(&[again.as_slice(), &["--keep", kept]].concat()), 3);
    let found = &report(&fuzz("json"))["failures"][0]["found"];
    assert!(found["scenario"].as_str().is_some_and(|drill| drill.contains("[[step]]")), "{found}");
    let sarif = report(&fuzz("sarif"));
    assert!(!sarif.to_string().contains(kept), "a file is named that is not there:\n{sarif}");
}

#[test]
fn a_sabotage_that_nobody_notices_fails_unless_nobody_can() {
    let fuzz = |guard: &str, format: &str| {
        firedrill(&["fuzz", "--seeds", "0..2", "--sabotage", guard, "--quiet", "--format", format])
    };
    let unnoticed = fuzz("refutation", "text");
    ended(&unnoticed, 4);
    let sentence = "FAIL  2 drills, and nobody noticed that the guard refutation is off";
    assert!(text(&unnoticed.stdout).contains(sentence), "{}", text(&unnoticed.stdout));
    let junit = fuzz("refutation", "junit");
    ended(&junit, 4);
    assert!(text(&junit.stdout).contains("sabotage_unnoticed"), "{}", text(&junit.stdout));
    let beyond = SABOTAGE.iter().find(|row| row.uncaught.is_some()).expect("some guard is beyond any drill");
    let known = fuzz(beyond.guard, "text");
    ended(&known, 0);
    assert!(text(&known.stdout).contains("no drill can notice"), "{}", text(&known.stdout));
}

#[test]
fn as_many_threads_as_are_allowed_play_a_few_seeds() {
    let many = firedrill(&["fuzz", "--seeds", "0..3", "--jobs", "1024", "--quiet"]);
    ended(&many, 0);
    ended(&firedrill(&["fuzz", "--sabotage", "refutation", "--seeds", "0..2", "-j", "1024", "-q"]), 4);
}

#[test]
fn wrong_arguments_are_refused_with_what_to_do() {
    let wrong: &[Refused<'_, &str>] = &[
        (&["--seeds", "5..5"], &["5..5 is empty", "above the first"]),
        (&["--seeds", "many"], &["names no seeds", "0..10000"]),
        (&["--shard", "0/4"], &["no shard 0 of 4", "count from 1 to 4"]),
        (&["--shard", "5/4"], &["no shard 5 of 4", "count from 1 to 4"]),
        (&["--shard", "half"], &["names no shard", "1/4"]),
        (&["--profile", "gosip"], &["gosip", "'gossip'"]),
        (&["--sabotage", "refutatio"], &["refutatio", "'refutation'"]),
        (&["--seeds", "18446744073709551615"], &["too large", "18446744073709551614"]),
        (&["--shard", "1/1000000000000000000"], &["too many", "at most 10000"]),
        (&["--jobs", "0"], &["--jobs", "0 is not in 1..=1024"]),
        (&["-j", "60000"], &["--jobs", "60000 is not in 1..=1024"]),
        (&["--budget", "soon"], &["--budget", "'soon'"]),
        (&["--budget", "5"], &["--budget", "unit"]),
    ];
    for (args, says) in wrong {
        let refused = firedrill(&[&["fuzz"], *args].concat());
        ended(&refused, 2);
        assert_eq!(text(&refused.stdout), "", "{args:?}");
        for part in *says {
            assert!(text(&refused.stderr).contains(part), "{args:?}, {part:?}: {}", text(&refused.stderr));
        }
    }
}

#[test]
fn a_shard_of_a_job_is_read_from_its_variables_or_refused_by_their_names() {
    let auto = |variables: &[(&str, &str)]| {
        let mut command = command(&["fuzz", "--seeds", "0..8", "--shard", "auto", "--format", "json"]);
        output(command.envs(variables.iter().copied()))
    };
    let (index, of) = ("JOB_COMPLETION_INDEX", "FIREDRILL_SHARDS");
    let wrong: &[Refused<'_, (&str, &str)>] = &[
        (&[], &[index, "not set", "--shard 1/4"]),
        (&[(index, "0")], &[of, "not set", "--shard 1/4"]),
        (&[(index, "first"), (of, "4")], &[index, "\"first\" is no number"]),
        (&[(index, "0"), (of, "-4")], &[of, "\"-4\" is no number"]),
        (&[(index, "4"), (of, "4")], &[index, of, "counts from 0"]),
        (&[(index, "0"), (of, "0")], &[index, of, "counts from 0"]),
        (&[(index, "0"), (of, "10001")], &[of, "10001 shards are too many", "at most 10000"]),
    ];
    for (variables, says) in wrong {
        let refused = auto(variables);
        ended(&refused, 2);
        for part in *says {
            assert!(text(&refused.stderr).contains(part), "{variables:?}: {}", text(&refused.stderr));
        }
    }
    let last = auto(&[(index, "3"), (of, "4")]);
    ended(&last, 0);
    assert_eq!(report(&last)["shards"], serde_json::json!([{ "index": 4, "of": 4 }]));
    assert_eq!(report(&last)["totals"]["seeds"], 2);
}

#[test]
fn the_reports_of_all_shards_merge_into_the_report_of_the_whole() {
    let folder = folder("merges");
    let fuzz = |shard: &[&str]| {
        let played =
            firedrill(&[&["fuzz", "--seeds", "0..120", "--format", "json", "--quiet"], shard].concat());
        ended(&played, 0);
        played
    };
    let files = ["1/2", "2/2"].map(|shard| {
        let path = folder.join(format!("{}.json", shard.replace('/', "-of-")));
        fs::write(&path, fuzz(&["--shard", shard]).stdout).expect("a report can be written");
        path
    });
    let merged = firedrill(&["merge", name(&files[1]), name(&files[0]), "--format", "json"]);
    ended(&merged, 0);
    let (mut merged, mut whole) = (report(&merged), report(&fuzz(&[])));
    let shards = [&mut merged, &mut whole].map(|report| report["shards"].take());
    assert_eq!(shards[0].as_array().map(Vec::len), Some(2));
    assert_eq!(merged, whole);
}

#[test]
fn a_budget_ends_a_campaign_in_good_order() {
    #[expect(clippy::disallowed_methods, reason = "a budget is real time")]
    let start = std::time::Instant::now();
    let played =
        firedrill(&["fuzz", "--budget", "1s", "--wire", "fast", "--engine", "event", "--format", "json"]);
    ended(&played, 0);
    // A drill takes milliseconds; the rest is room for a busy machine.
    assert!((1..10).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
    let report = report(&played);
    assert_eq!(report["complete"], false);
    assert!(report["totals"]["seeds"].as_u64().is_some_and(|seeds| seeds > 0));
}

/// Git in a folder, blind to any repository around it and to the settings of whoever runs the test.
fn blind(command: &mut Command, folder: &Path) {
    let around = folder.parent().expect("a folder of the tests has one around it");
    command.current_dir(folder).env_remove("GIT_DIR").env_remove("GIT_WORK_TREE");
    command.env("GIT_CEILING_DIRECTORIES", around).env("GIT_CONFIG_GLOBAL", "/dev/null");
}

fn git(folder: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=test", "-c", "user.email=test@example.invalid"]).args(args);
    blind(&mut command, folder);
    let output = output(&mut command);
    assert!(output.status.success(), "git {args:?}: {}", text(&output.stderr));
    text(&output.stdout).trim().to_owned()
}

#[test]
fn seeds_count_from_the_commit_where_there_is_one() {
    let folder = folder("commit");
    let fuzz = |seeds: &str| {
        let mut command =
            command(&["fuzz", "--seeds", seeds, "--seed-from-commit", "--format", "json", "--quiet"]);
        blind(&mut command, &folder);
        output(&mut command)
    };
    let refused = |why: &str| {
        let output = fuzz("5..8");
        ended(&output, 2);
        for part in ["--seed-from-commit", "no git repository with a commit", "--seeds"] {
            assert!(text(&output.stderr).contains(part), "{why}, {part}: {}", text(&output.stderr));
        }
    };
    refused("no repository");
    git(&folder, &["init", "--quiet"]);
    refused("no commit");
    git(&folder, &["commit", "--quiet", "--allow-empty", "--message", "the first"]);
    let hash = git(&folder, &["rev-parse", "HEAD"]);
    let first = u64::from_str_radix(&hash[..12], 16).expect("a hash is hexadecimal");
    let played = fuzz("5..8");
    ended(&played, 0);
    let seeds = serde_json::json!({ "from": first + 5, "to": first + 8 });
    assert_eq!(report(&played)["seeds"], seeds, "commit {hash}");
    let beyond = fuzz("0..18446744073709551615");
    ended(&beyond, 2);
    for part in ["--seed-from-commit", &first.to_string(), "beyond the largest seed", "smaller --seeds"] {
        assert!(text(&beyond.stderr).contains(part), "{part}: {}", text(&beyond.stderr));
    }
}

/// Starts a campaign that would take hours, interrupts it, and gives what it had to say.
#[cfg(unix)]
fn interrupted(format: &str) -> Output {
    use std::process::Stdio;
    use std::time::Duration;

    let mut command = command(&["fuzz", "--seeds", "0..100000000", "--engine", "event", "--format", format]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("the binary starts");
    std::thread::sleep(Duration::from_secs(2));
    let still_runs = child.try_wait().expect("the child can be asked").is_none();
    assert!(still_runs, "the campaign is too short to be interrupted");
    let kill = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().is_ok_and(|status| status.success()));
    let interrupted = child.wait_with_output().expect("the child ends");
    ended(&interrupted, 130);
    interrupted
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_campaign_with_the_report_so_far() {
    let report = report(&interrupted("json"));
    assert_eq!((&report["complete"], &report["failures"]), (&Value::Bool(false), &serde_json::json!([])));
    assert!(report["totals"]["seeds"].as_u64().is_some_and(|seeds| seeds > 0));
}

#[cfg(unix)]
#[test]
fn an_interrupted_campaign_does_not_say_that_it_passed() {
    let told = text(&interrupted("text").stdout);
    let last = told.lines().last().unwrap_or_default();
    assert!(last.contains("INTERRUPTED") && last.contains("of 100,000,000 drills played"), "{told}");
    assert!(!told.contains("PASS"), "{told}");
    let annotations = text(&interrupted("github").stdout);
    assert!(annotations.contains("stopped after"), "{annotations}");
}

/// The commands of a section of the README, without their comments.
fn readme_commands(section: &str) -> Vec<String> {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = fs::read_to_string(readme).expect("there is a README");
    let section = readme.split("\n## ").find(|part| part.starts_with(section)).expect("the section is there");
    let lines = section.lines().filter_map(|line| line.strip_prefix("firedrill "));
    lines.map(|line| line.split(" # ").next().unwrap_or(line).trim().to_owned()).collect()
}

/// What the README says of finding a failure is typed in its order, in a folder that has a commit and the scenarios.
#[cfg(unix)]
#[test]
fn what_the_readme_says_of_finding_a_failure_happens() {
    let folder = folder("readme");
    git(&folder, &["init", "--quiet"]);
    git(&folder, &["commit", "--quiet", "--allow-empty", "--message", "the first"]);
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    std::os::unix::fs::symlink(scenarios, folder.join("scenarios")).expect("a link can be made");
    let commands = readme_commands("Find a failure");
    for verb in ["fuzz", "explain", "replay", "shrink"] {
        assert!(commands.iter().any(|command| command.starts_with(verb)), "no {verb} in {commands:?}");
    }
    for line in commands {
        let mut words: Vec<_> = line.split_whitespace().collect();
        let sabotage = words.contains(&"--sabotage");
        // A test has seconds where a person has minutes.
        words.iter_mut().filter(|word| **word == "5min").for_each(|word| *word = "1s");
        if words == ["fuzz"] {
            words.extend(["--seeds", "0..50"]);
        }
        let mut command = command(&words);
        blind(&mut command, &folder);
        let output = output(&mut command);
        let fails = sabotage && matches!(words[0], "fuzz" | "explain" | "run");
        let expected: &[i32] = if fails { &[1, 3] } else { &[0] };
        let code = output.status.code().unwrap_or(-1);
        let there: Vec<_> = fs::read_dir(folder.join("findings")).into_iter().flatten().flatten().collect();
        let told = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(expected.contains(&code), "firedrill {line} ended with {code}\n{told}\nfindings: {there:?}");
    }
}
