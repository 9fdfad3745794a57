//! Three real nodes on real sockets and SQLite files: the issuer is killed, followed, and returns as a replica.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::net::SocketAddr;
use std::path::Path;

use serde_json::Value;
use support::{Daemon, cluster_env, eventually, firedrilld, scratch};

/// Silence 9 Z (7 s), pull and check 2 Z, grace 3 Z.
fn start(node: &str, dir: &Path, seeds: &[SocketAddr]) -> Daemon {
    let mut command = firedrilld(&format!("failover-{node}"));
    command
        .envs(cluster_env(node, seeds))
        .args(["--store", dir.join(format!("{node}.db")).to_str().unwrap()]);
    for (key, value) in [
        ("ENABLED", "true"),
        ("ISSUER", "drill-a"),
        ("SILENCE_Z", "9"),
        ("PULL_Z", "2"),
        ("CHECK_Z", "2"),
        ("BOOT_GRACE_Z", "3"),
        ("PROBE_TIMEOUT_MS", "500"),
    ] {
        command.env(format!("FIREDRILL_ISSUANCE__{key}"), value);
    }
    Daemon::spawn(command)
}

fn role(node: &Daemon) -> String {
    node.get("/lease").json()["role"].as_str().unwrap().to_owned()
}

fn tip(node: &Daemon) -> u64 {
    node.get("/lease").json()["tip"].as_u64().unwrap_or(0)
}

fn holder(node: &Daemon) -> (Value, Value) {
    let lease = node.get("/lease").json()["lease"].clone();
    (lease["holder"].clone(), lease["epoch"].clone())
}

/// Waits in steps, each with the patience of one: a failover takes longer than that.
fn patiently<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    for _ in 0..3 {
        let begin = support::now();
        while begin.elapsed() < support::PATIENCE {
            if let Some(found) = found() {
                return found;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
    panic!("waited in vain: {what}");
}

#[test]
fn kill_9_of_the_issuer_is_followed_by_a_takeover_and_its_return_as_a_replica() {
    let dir = scratch("failover-rows");
    let a = start("drill-a", &dir, &[]);
    let b = start("drill-b", &dir, &[a.cluster]);
    let c = start("drill-c", &dir, &[a.cluster, b.cluster]);
    patiently("a issues and the others have its rows", || (tip(&b) > 0 && tip(&c) > 0).then_some(()));
    assert_eq!((role(&a).as_str(), role(&b).as_str(), role(&c).as_str()), ("issuer", "replica", "replica"));

    a.signal("KILL");
    let shared = tip(&b);
    patiently("b follows", || {
        (role(&b) == "issuer" && holder(&b) == ("drill-b".into(), 1.into())).then_some(())
    });
    patiently("c sees it", || (holder(&c) == ("drill-b".into(), 1.into())).then_some(()));
    assert_eq!(role(&c), "replica");
    patiently("b seals", || (tip(&b) > shared + 9).then_some(()));

    drop(a);
    let a = start("drill-a", &dir, &[b.cluster, c.cluster]);
    patiently("a has caught up", || (holder(&a) == ("drill-b".into(), 1.into())).then_some(()));
    let returned = tip(&a);
    patiently("rows go on", || (tip(&a) > returned + 3).then_some(()));
    assert_eq!(role(&a), "replica");
    assert_eq!(
        a.get("/metrics").body.lines().find(|line| line.starts_with("firedrill_issuance_seals_total ")),
        Some("firedrill_issuance_seals_total 0")
    );

    let to = [&a, &b, &c].map(tip).into_iter().min().unwrap() - 6;
    let audits = [&a, &b, &c].map(|node| node.get(&format!("/audit?window={to}")).json());
    let digests = audits.each_ref().map(|audit| audit["prefix_digest"].clone());
    assert_eq!((&digests[0], &digests[1]), (&digests[1], &digests[2]), "one spine everywhere, up to {to}");
    for audit in &audits {
        assert_eq!((&audit["duplicates"], &audit["rows_below_tip"]), (&0.into(), &0.into()), "{audit}");
        let number = |key: &str| audit[key].as_u64().unwrap();
        if number("overlap") == 0 {
            assert_eq!(number("elapsed_sum") + number("under_issued"), number("span"), "{audit}");
        }
        assert!(number("elapsed_sum") <= number("span") + number("overlap"), "{audit}");
    }
    let z = a.get("/replication").json();
    assert!(z["zeqond"].as_u64() > Some(2_000_000_000), "{z}");
    assert!(z["origins"].as_array().unwrap().len() >= 2, "{z}");
    let row = b.get(&format!("/issuance/at?z={shared}")).json();
    assert_eq!(row["key"], format!("zeq-issuance-v1:w{shared}"));
}

#[test]
fn an_operator_moves_the_lease_by_stopping_the_issuer() {
    let dir = scratch("failover-operator");
    let a = start("drill-a", &dir, &[]);
    let b = start("drill-b", &dir, &[a.cluster]);
    patiently("a issues", || (tip(&b) > 0).then_some(()));
    assert_eq!(a.post("/issuance/pause").json()["paused"], true);
    patiently("b follows", || (role(&b) == "issuer").then_some(()));
    patiently("a stands down", || (role(&a) == "replica").then_some(()));
    assert_eq!(a.post("/issuance/resume").json()["paused"], false);
    let decision =
        eventually("a decides", || a.get("/election").json()["decision"].as_str().map(str::to_owned));
    assert!(["tip_advancing", "is_holder"].contains(&decision.as_str()), "{decision}");
}

#[test]
fn a_node_without_issuance_says_what_to_set() {
    let node = Daemon::start("no-issuance", "node-a", &[]);
    for path in ["/lease", "/audit", "/election", "/replication", "/issuance/at?z=1"] {
        let answer = node.get(path);
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.body.contains("[issuance]"), "{path}: {}", answer.body);
    }
    assert_eq!(node.post("/issuance/pause").status, 404);
}
