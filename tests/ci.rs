//! What runs elsewhere, tested here: results for CI, workflows, the Job and its entry script.
//!
//! Workflow and manifest are read as data, and every command line in them is shown to the command itself. The script
//! runs for every index, without a cluster.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use firedrill_core::guards::Guards;
use firedrill_sim::fuzz::campaign::{Plan, Wish, play};
use firedrill_sim::fuzz::seeds::{Seeds, Shard};
use firedrill_sim::fuzz::{Gossip, Mix, Report, Venue};
use serde_json::Value;

const SHARDS: u64 = 3;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn firedrill(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_firedrill"));
    command.args(arguments).current_dir(root()).env_remove("GITHUB_STEP_SUMMARY");
    command
}

fn output(command: &mut Command) -> Output {
    command.output().expect("the command starts")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[track_caller]
fn ended(output: &Output, code: i32) {
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "\n{}\n{err}", out(output));
}

/// A fresh folder for one test.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("ci-{name}"));
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("an old folder can be removed");
    }
    fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}

fn yaml(path: &str) -> Value {
    let text = fs::read_to_string(root().join(path)).expect("the file is there");
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every `run:` of a workflow, with the name of its job.
fn scripts(workflow: &Value) -> Vec<(String, String)> {
    let jobs = workflow["jobs"].as_object().expect("a workflow has jobs");
    let steps = jobs.iter().flat_map(|(job, body)| {
        let steps = body["steps"].as_array().expect("a job has steps");
        steps.iter().map(move |step| (job.clone(), step))
    });
    steps.filter_map(|(job, step)| Some((job, step["run"].as_str()?.to_owned()))).collect()
}

/// The command lines of a script that start the command, as the shell would split them.
fn commands(script: &str) -> Vec<Vec<String>> {
    let lines = script.replace("\\\n", " ");
    let lines = lines.lines().map(str::trim).filter_map(|line| line.strip_prefix("firedrill "));
    lines.map(|line| line.split([';', '>', '|']).next().unwrap_or(line)).map(words).collect()
}

fn words(line: &str) -> Vec<String> {
    let word = |word: &str| match word.trim_matches('"') {
        "$SEEDS" | "${FIREDRILL_SEEDS:-0..1000000}" => "0..100".to_owned(),
        "$SHARD" => "2/8".to_owned(),
        "$BUDGET" | "${FIREDRILL_BUDGET:-20min}" => "20min".to_owned(),
        "$folder/found" => "found".to_owned(),
        other => {
            assert!(!other.contains('$'), "{line}: the test does not know what {other} stands for");
            other.to_owned()
        }
    };
    line.split_whitespace().map(word).collect()
}

/// `--help` at the end parses all that stands before it, and runs nothing.
fn understood(command: &[String]) -> Result<(), String> {
    let output = output(firedrill(&[]).args(command).arg("--help"));
    let problem = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(format!("{}: {problem}", command.join(" "))) }
}

#[test]
fn every_command_of_workflows_script_and_guide_is_understood() {
    let script = fs::read_to_string(root().join("deploy/fuzz-shard.sh")).expect("the script is there");
    let guide = fs::read_to_string(root().join("docs/ci.md")).expect("the guide is there");
    let mut all = commands(&script);
    all.extend(commands(&guide));
    for path in [".github/workflows/ci.yml", ".github/workflows/fuzz.yml"] {
        all.extend(scripts(&yaml(path)).iter().flat_map(|(_, script)| commands(script)));
    }
    let of = |name: &str| all.iter().filter(|command| command[0] == name).count();
    assert_eq!((of("run"), of("fuzz"), of("merge")), (4, 3, 7), "{all:?}");
    let offences: Vec<_> = all.iter().filter_map(|command| understood(command).err()).collect();
    assert_eq!(offences, [""; 0]);
    assert!(understood(&["merge".to_owned(), "--no-such-flag".to_owned()]).is_err(), "nothing is refused");
}

#[test]
fn a_workflow_may_do_only_what_it_needs_and_names_the_version_of_every_action() {
    for path in [".github/workflows/ci.yml", ".github/workflows/fuzz.yml"] {
        let workflow = yaml(path);
        assert_eq!(workflow["permissions"], serde_json::json!({ "contents": "read" }), "{path}");
        assert!(workflow["concurrency"]["group"].is_string(), "{path}");
        for (name, job) in workflow["jobs"].as_object().expect("a workflow has jobs") {
            assert!(job["timeout-minutes"].is_u64(), "{path}: {name} may run for ever");
            for step in job["steps"].as_array().expect("a job has steps") {
                let uses = step["uses"].as_str();
                assert!(uses.is_none_or(|uses| uses.contains("@v")), "{path}: {name}: {step}");
            }
        }
        for (job, script) in scripts(&workflow) {
            assert!(
                !script.contains("${{"),
                "{path}: {job}: pass it by env, where no shell reads it:\n{script}"
            );
        }
    }
}

#[test]
fn the_matrix_keeps_what_it_found_and_the_last_job_judges_whatever_shards_did() {
    let workflow = yaml(".github/workflows/fuzz.yml");
    let jobs = &workflow["jobs"];
    assert_eq!(jobs["shard"]["strategy"]["fail-fast"], false);
    let uploads: Vec<_> = jobs["shard"]["steps"]
        .as_array()
        .expect("steps")
        .iter()
        .filter(|step| step["uses"].as_str().is_some_and(|uses| uses.starts_with("actions/upload-artifact@")))
        .map(|step| (step["with"]["path"].as_str(), step["if"].as_str()))
        .collect();
    let expected =
        [(Some("report.json"), Some("${{ !cancelled() }}")), (Some("found"), Some("${{ failure() }}"))];
    assert_eq!(uploads, expected);
    assert_eq!(jobs["merge"]["needs"], serde_json::json!(["build", "shard"]));
    let merge = scripts(&workflow).into_iter().rfind(|(job, _)| job == "merge");
    let merge = merge.map(|(_, script)| script);
    assert_eq!(merge.as_deref(), Some("firedrill merge reports/*/report.json --format github"));
}

#[test]
fn the_manifest_has_as_many_shards_as_it_says_and_gives_its_pods_little() {
    let job = yaml("deploy/kubernetes/fuzz-job.yaml");
    let spec = &job["spec"];
    assert_eq!((&job["kind"], &spec["completionMode"]), (&"Job".into(), &"Indexed".into()));
    let pod = &spec["template"]["spec"];
    let container = &pod["containers"][0];
    let environment = container["env"].as_array().expect("an environment");
    let variable = |name: &str| environment.iter().find(|entry| entry["name"] == name);
    let shards = variable("FIREDRILL_SHARDS").and_then(|entry| entry["value"].as_str()).expect("a string");
    assert_eq!(spec["completions"].to_string(), shards);
    assert!(spec["parallelism"].as_u64() <= spec["completions"].as_u64());
    assert!(variable("JOB_COMPLETION_INDEX").is_none(), "Kubernetes sets it");
    assert_eq!(pod["restartPolicy"], "Never", "a policy for failures needs it");
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    assert_eq!(container["securityContext"]["allowPrivilegeEscalation"], false);
    assert!(container["resources"]["limits"]["memory"].is_string());
    // What a shard may write to is mounted, and what the policy names is there.
    let results = variable("FIREDRILL_RESULTS").map(|entry| &entry["value"]);
    let mounts = container["volumeMounts"].as_array().expect("mounts");
    assert!(mounts.iter().any(|mount| Some(&mount["mountPath"]) == results));
    let rules = spec["podFailurePolicy"]["rules"].as_array().expect("rules");
    let codes = rules.iter().find(|rule| rule["action"] == "FailIndex").map(|rule| &rule["onExitCodes"]);
    assert_eq!(codes.map(|codes| &codes["containerName"]), Some(&container["name"]));
    let containerfile = fs::read_to_string(root().join("deploy/Containerfile")).expect("it is there");
    assert!(containerfile.contains("deploy/fuzz-shard.sh") && containerfile.contains("\nUSER 65532"));
}

/// Runs the entry script as a pod of the Job would.
fn pod(bin: &Path, results: &Path, index: u64) -> Output {
    let path = std::env::var("PATH").unwrap_or_default();
    output(
        Command::new("sh")
            .arg(root().join("deploy/fuzz-shard.sh"))
            .env("PATH", format!("{}:{path}", bin.display()))
            .env_remove("GITHUB_STEP_SUMMARY")
            .env("JOB_COMPLETION_INDEX", index.to_string())
            .env("FIREDRILL_SHARDS", SHARDS.to_string())
            .env("FIREDRILL_SEEDS", "0..30")
            .env("FIREDRILL_BUDGET", "5min")
            .env("FIREDRILL_RESULTS", results),
    )
}

#[cfg(unix)]
#[test]
fn every_pod_plays_its_shard_and_the_union_is_complete() {
    let results = folder("pods");
    let bin = Path::new(env!("CARGO_BIN_EXE_firedrill")).parent().expect("it is in a folder");
    let mut files = Vec::new();
    for index in 0..SHARDS {
        let shard = pod(bin, &results, index);
        ended(&shard, 0);
        let file = results.join(index.to_string()).join("report.json");
        assert_eq!(out(&shard), fs::read_to_string(&file).expect("a report"), "the log is the report");
        files.push(file.to_string_lossy().into_owned());
    }
    let merge = |files: &[String]| output(firedrill(&["merge", "--format", "json"]).args(files));
    let whole = merge(&files);
    ended(&whole, 0);
    let report: Value = serde_json::from_str(&out(&whole)).expect("a report");
    assert_eq!(report["totals"]["seeds"], 30);
    assert_eq!(report["complete"], true);
    ended(&merge(&files[1..]), 4);
    files.push(files[0].clone());
    let twice = merge(&files);
    ended(&twice, 2);
    assert!(String::from_utf8_lossy(&twice.stderr).contains("shard 1/3 is there twice"));
}

/// A stand-in for the command that writes its arguments as its report, and ends with a code of its own.
#[cfg(unix)]
fn stand_in(folder: &Path, script: &str) {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join("firedrill");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("it can be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it can be made executable");
}

#[cfg(unix)]
#[test]
fn the_script_passes_arguments_and_exit_code_through() {
    let bin = folder("stand-in");
    stand_in(&bin, r#"echo "$JOB_COMPLETION_INDEX of $FIREDRILL_SHARDS: $*"; echo noise >&2; exit 3"#);
    let results = bin.join("results");
    let ran = pod(&bin, &results, 2);
    ended(&ran, 3);
    let keep = results.join("2/found");
    let expected = format!(
        "2 of 3: fuzz --shard auto --seeds 0..30 --budget 5min --keep {} --format json\n",
        keep.display()
    );
    assert_eq!(out(&ran), expected);
    assert!(keep.is_dir() && ran.stderr.is_empty());
    assert_eq!(fs::read_to_string(results.join("2/log.txt")).expect("a log"), "noise\n");
}

#[cfg(unix)]
#[test]
fn a_shard_that_wrote_no_report_leaves_none_and_says_why() {
    let bin = folder("no-report");
    stand_in(&bin, "echo 'error: no such flag' >&2; exit 2");
    let results = bin.join("results");
    let ran = pod(&bin, &results, 0);
    ended(&ran, 2);
    assert!(ran.stdout.is_empty() && String::from_utf8_lossy(&ran.stderr).contains("no such flag"));
    assert!(!results.join("0/report.json").exists());
}

#[test]
fn what_does_not_merge_is_refused_with_the_file_and_the_remedy() {
    let folder = folder("merge");
    let report = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).expect("it can be written");
        path.to_string_lossy().into_owned()
    };
    let cases = [
        (report("empty.json", ""), "is empty", "told as missing"),
        (report("text.json", "4 seeds passed"), "is not the report of a campaign", "fuzz --format json"),
        (report("part.json", r#"{"format":1,"#), "is not the report of a campaign", "line 1 column"),
        (report("old.json", r#"{"format":99,"version":"9.9.9"}"#), "format 99", "that wrote it, 9.9.9"),
        (folder.join("gone.json").to_string_lossy().into_owned(), "cannot be read", "No such file"),
    ];
    for (path, what, remedy) in cases {
        let refused = output(&mut firedrill(&["merge", &path]));
        ended(&refused, 2);
        let text = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(text.contains(&path) && text.contains(what) && text.contains(remedy), "{text}");
        assert!(refused.stdout.is_empty());
    }
}

/// Plays a few seeds here.
fn played(to: u64, shard: Shard) -> Report {
    let plan = Plan {
        profile: &Gossip,
        mix: Mix::only(Venue::Fast),
        guards: Guards::ON,
        sabotage: None,
        seeds: Seeds { from: 0, to },
        shard,
        jobs: 1,
        fail_fast: false,
    };
    play(&plan, &mut |_| Wish::GoOn).expect("the profile draws what its venue can run")
}

#[test]
fn shards_merge_into_what_one_machine_would_have_told() {
    let folder = folder("shards");
    let write = |name: &str, report: &Report| {
        let path = folder.join(name);
        fs::write(&path, serde_json::to_string(report).expect("a report is JSON"))
            .expect("it can be written");
        path.to_string_lossy().into_owned()
    };
    let whole = played(24, Shard::WHOLE);
    let files: Vec<_> = (1..=SHARDS)
        .map(|index| write(&format!("{index}.json"), &played(24, Shard { index, of: SHARDS })))
        .collect();
    let merge = |format: &str, files: &[&String]| {
        let files = files.iter().map(|file| file.as_str());
        output(firedrill(&["merge", "--format", format]).args(files))
    };
    let all: Vec<_> = files.iter().collect();
    let backwards: Vec<_> = files.iter().rev().collect();
    let merged = merge("json", &all);
    ended(&merged, 0);
    let report: Report = serde_json::from_str(&out(&merged)).expect("a report");
    assert_eq!((report.totals, &report.coverage), (whole.totals, &whole.coverage));
    assert_eq!((report.pace, report.complete), (whole.pace, true));
    for format in ["text", "json", "junit", "sarif", "github"] {
        assert_eq!(out(&merge(format, &all)), out(&merge(format, &backwards)), "{format}");
    }

    assert!(out(&merge("text", &all)).starts_with("fuzz gossip\n\n  seeds       0..24, all 3 shards\n"));
    let partial = merge("text", &all[1..]);
    ended(&partial, 4);
    assert!(out(&partial).contains("INCOMPLETE  no report of shard 1/3: 8 seeds"), "{}", out(&partial));
    let remark = String::from_utf8_lossy(&partial.stderr).into_owned();
    assert!(remark.contains("no report of shard 1/3: 8 seeds were not judged"), "{remark}");

    let twice = merge("text", &[&files[0], &files[1], &files[0]]);
    ended(&twice, 2);
    let error = String::from_utf8_lossy(&twice.stderr).into_owned();
    assert!(error.contains("shard 1/3 is there twice") && error.contains("1.json"), "{error}");

    let other = write("other.json", &played(12, Shard { index: 3, of: SHARDS }));
    let differs = merge("text", &[&files[0], &files[1], &other]);
    ended(&differs, 2);
    let error = String::from_utf8_lossy(&differs.stderr).into_owned();
    assert!(error.contains("the range of seeds is 0..24 in the first and 0..12 in the other"), "{error}");
    assert!(error.contains("1.json") && error.contains("other.json"), "{error}");
}

#[test]
fn a_campaign_of_more_shards_than_there_are_machines_is_refused_and_missing_ones_are_counted() {
    let folder = folder("many-shards");
    let mut shard =
        serde_json::to_value(played(24, Shard { index: 2, of: 10_000 })).expect("a report is JSON");
    let path = folder.join("report.json");
    let mut merge = |of: u64, format: &str| {
        shard["shards"] = serde_json::json!([{ "index": 2, "of": of }]);
        fs::write(&path, shard.to_string()).expect("it can be written");
        output(firedrill(&["merge", "--format", format]).arg(&path))
    };
    for format in ["text", "junit", "sarif", "github"] {
        let counted = merge(10_000, format);
        ended(&counted, 4);
        let remark = String::from_utf8_lossy(&counted.stderr).into_owned();
        let expected = "no report of 9,999 of 10,000 shards: 23 seeds were not judged";
        assert!(remark.contains(expected) && remark.len() < 200, "{remark}");
    }
    let refused = merge(1_000_000_000_000_000_000, "text");
    ended(&refused, 2);
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(error.contains("1000000000000000000 shards are too many"), "{error}");
    assert!(
        !error.contains("report.json >") && !error.contains("> "),
        "a file would be written over: {error}"
    );
}

/// A drill whose second expectation, in line 12, cannot hold.
const FAILS: &str = "name = \"fails\"
about = \"One of two nodes is killed, and the file wrongly expects that nobody notices.\"
time_limit = \"20s\"
[nodes]
names = [\"a\", \"b\"]
[[step]]
at = \"5s\"
kill = \"b\"
[[step]]
when = { down = \"a\" }
kill = \"a\"
[[expect]]
at_end = { view = { on = \"a\", members = [\"a\", \"b\"] } }
";

#[test]
fn a_run_is_told_to_github_at_the_lines_of_its_file_and_in_the_summary() {
    let folder = folder("github");
    let (path, summary) = (folder.join("fails.toml"), folder.join("summary.md"));
    fs::write(&path, FAILS).expect("a scenario can be written");
    fs::write(&summary, "before\n").expect("it can be written");
    let path = path.to_string_lossy().into_owned();
    let run = output(firedrill(&["run", &path, "--format", "github"]).env("GITHUB_STEP_SUMMARY", &summary));
    ended(&run, 1);
    let text = out(&run);
    let errors: Vec<_> = text.lines().filter(|line| line.starts_with("::error ")).collect();
    assert_eq!(errors.len(), 2, "{text}");
    for (error, line) in errors.iter().zip(["line=12,", "line=9,"]) {
        assert!(error.contains("fails.toml,") && error.contains(line), "{text}");
    }
    assert!(text.lines().all(|line| line.starts_with("::")), "{text}");
    let summary = fs::read_to_string(&summary).expect("a summary");
    assert!(summary.starts_with("before\n## ❌ firedrill run"), "{summary}");
    assert!(summary.contains("--seed 1 --engine event --wire fast"), "{summary}");
}

#[test]
fn a_run_is_told_the_same_twice_in_every_format_and_an_invalid_file_is_an_error_of_its_line() {
    let folder = folder("formats");
    let path = folder.join("typo.toml");
    fs::write(&path, FAILS.replace("time_limit", "time_limti")).expect("a scenario can be written");
    let path = path.to_string_lossy().into_owned();
    let drill = "scenarios/gossip/partition-heal.toml";
    for format in ["junit", "sarif", "github"] {
        let run = || output(&mut firedrill(&["run", drill, &path, "--format", format]));
        let (one, two) = (run(), run());
        ended(&one, 2);
        assert_eq!(out(&one), out(&two), "{format}");
        assert!(out(&one).contains("time_limti") && out(&one).contains("invalid_scenario"), "{}", out(&one));
    }
}
