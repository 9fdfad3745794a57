//! Starts that fail, and `--check`: what is said and with which exit code.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::net::TcpListener;
use std::process::Output;

use support::{Daemon, SECRET, cluster_env, firedrilld, run};

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_bad_configuration_exits_2_with_every_problem_and_its_line() {
    let mut command = firedrilld("bad");
    let file = support::scratch("bad-file").join("node.toml");
    let bad = format!(
        "[cluster]\nenabled = true\nsecrett = '{SECRET}'\nsecret = 'short-one'\npush_interval_ms = 5\n"
    );
    std::fs::write(&file, bad).unwrap();
    command.arg("--config").arg(&file);
    let output = run(command);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for part in ["node.toml", "line 3", "secrett", "line 4", "line 5", "push_interval_ms"] {
        assert!(said.contains(part), "{part} is not in: {said}");
    }
    assert!(!said.contains(SECRET) && !said.contains("short-one"), "{said}");
    assert!(output.stdout.is_empty());
}

#[test]
fn a_file_that_is_not_there_exits_2_and_is_named() {
    let mut command = firedrilld("missing");
    command.args(["--config", "nowhere.toml"]);
    let output = run(command);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("nowhere.toml"), "{}", text(&output));
}

#[test]
fn without_a_cluster_there_is_nothing_to_do() {
    let output = run(firedrilld("disabled"));
    let said = text(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for part in ["FIREDRILL_CLUSTER__ENABLED=true", "FIREDRILL_CLUSTER__SECRET"] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn check_says_whether_the_configuration_is_valid_and_starts_nothing() {
    let dir = support::scratch("check");
    let file = dir.join("firedrill.toml");
    std::fs::write(&file, format!("[cluster]\nenabled = true\nsecret = '{SECRET}'\n")).unwrap();
    let mut command = firedrilld("check-elsewhere");
    command.arg("--check").current_dir(&dir);
    let output = run(command);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("firedrill.toml") && said.contains("valid"), "the default file was read: {said}");

    let mut command = firedrilld("check-override");
    command.arg("--check").current_dir(&dir).env("FIREDRILL_CLUSTER__PUSH_INTERVAL_MS", "9");
    let output = run(command);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("FIREDRILL_CLUSTER__PUSH_INTERVAL_MS"), "{}", text(&output));
}

#[test]
fn bad_usage_exits_2() {
    for args in [["--log-format", "xml"], ["--log", "firedrill=loud"], ["--confg", "x"]] {
        let mut command = firedrilld("usage");
        command.args(args).envs(cluster_env("a", &[]));
        let output = run(command);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", text(&output));
        assert!(!output.stderr.is_empty());
    }
}

#[test]
fn a_port_in_use_exits_1_and_names_the_key_and_the_address() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap().to_string();
    for (variable, key) in [
        ("FIREDRILL_CLUSTER__BIND_ADDR", "[cluster] bind_addr"),
        ("FIREDRILL_SERVER__BIND_ADDR", "[server] bind_addr"),
    ] {
        let mut command = firedrilld("in-use");
        command.envs(cluster_env("a", &[])).env(variable, &taken);
        let output = run(command);
        let said = text(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(key) && said.contains(&taken), "{said}");
    }
}

#[test]
fn the_file_and_the_environment_work_together() {
    let dir = support::scratch("layers");
    let file = dir.join("firedrill.toml");
    let settings = format!("[cluster]\nenabled = true\nsecret = '{SECRET}'\nnode_id = 'from-file'\n");
    std::fs::write(&file, settings).unwrap();
    let mut command = firedrilld("layers-elsewhere");
    command.current_dir(&dir).env("FIREDRILL_CLUSTER__CLUSTER_NAME", "from-environment");
    let daemon = Daemon::spawn(command);
    let health = daemon.get("/health").json();
    let details = &health["components"]["cluster:membership"]["details"];
    assert_eq!((&details["node_id"], &details["cluster"]), (&"from-file".into(), &"from-environment".into()));
}
