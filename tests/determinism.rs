//! The same seed gives the same run, event for event: in one process, on two threads at once, in two processes.
//!
//! The digests of all shipped scenarios are kept as a snapshot: a change of behaviour shows as a changed line.
//! `INSTA_UPDATE=always cargo test --test determinism` accepts new ones, and the diff is for the reviewer.

mod common;

use std::path::Path;
use std::process::Command;

use common::Way;

/// Told in full as snapshots: a story each, readable by a reviewer.
const STORIES: [&str; 4] =
    ["gossip/partition-heal", "gossip/graceful-leave", "gossip/kill-suspicion", "issuance/failover-drill"];

fn digest(path: &Path, way: Way) -> Option<String> {
    way.load(path).map(|scenario| way.run(&scenario).digest)
}

fn partition_heal() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/gossip/partition-heal.toml")
}

#[test]
fn the_digest_of_every_scenario_is_known() {
    let files = common::scenarios();
    let lines = common::in_parallel(&files, |path| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let digest = |way| digest(path, way).unwrap_or_else(|| "-".to_owned());
        format!("{name:<40} full {:<32}  fast {}", digest(Way::Full), digest(Way::Fast))
    });
    insta::assert_snapshot!("digests", lines.join("\n"));
}

#[test]
fn two_runs_in_one_process_and_on_two_threads_at_once_are_the_same() {
    let path = partition_heal();
    for way in [Way::Full, Way::Fast, Way::Turmoil] {
        let alone = digest(&path, way);
        assert!(alone.is_some(), "{way:?} cannot express the drill");
        let at_once = common::in_parallel(&[(), ()], |()| digest(&path, way));
        assert_eq!(at_once, [alone.clone(), alone], "on {way:?}");
    }
}

#[test]
fn another_seed_is_another_run() {
    let path = partition_heal();
    for way in [Way::Full, Way::Fast, Way::Turmoil] {
        let mut scenario = way.load(&path).expect("the drill is valid");
        let first = way.run(&scenario).digest;
        scenario.seed += 1;
        assert_ne!(first, way.run(&scenario).digest, "on {way:?}");
    }
}

#[test]
fn another_process_sees_the_same_run() {
    let path = partition_heal();
    for (way, flags) in [
        (Way::Full, ["--engine", "event", "--wire", "full"].as_slice()),
        (Way::Fast, &["--engine", "event", "--wire", "fast"]),
        (Way::Turmoil, &["--engine", "turmoil"]),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_firedrill"))
            .arg("run")
            .arg(&path)
            .args(["--format", "json"])
            .args(flags)
            .output()
            .expect("the command starts");
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a document");
        assert_eq!(document["digest"].as_str().map(str::to_owned), digest(&path, way), "on {way:?}");
    }
}

#[test]
fn some_stories_read_as_they_always_did() {
    for story in STORIES {
        let output = Command::new(env!("CARGO_BIN_EXE_firedrill"))
            .args(["run", "--verbose", &format!("scenarios/{story}.toml")])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .expect("the command starts");
        let text = String::from_utf8_lossy(&output.stdout);
        // The one line that differs from machine to machine.
        insta::with_settings!({ filters => [(r"simulated in .* real time", "simulated in [real time]")] }, {
            let name = story.rsplit('/').next().unwrap_or(story);
            insta::assert_snapshot!(name, text);
        });
    }
}

#[test]
fn the_picture_in_the_readme_is_a_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(env!("CARGO_BIN_EXE_firedrill"))
        .args(["run", "scenarios/gossip/partition-heal.toml"])
        .current_dir(root)
        .output()
        .expect("the command starts");
    let readme = std::fs::read_to_string(root.join("README.md")).expect("there is a README");
    let picture: Vec<&str> = readme.lines().collect();
    let run = String::from_utf8_lossy(&output.stdout).into_owned();
    // Real time differs from machine to machine.
    for line in run.lines().filter(|line| !line.contains("× real time")) {
        assert!(picture.contains(&line), "README.md shows another run; this line is not in it:\n{line}");
    }
}
