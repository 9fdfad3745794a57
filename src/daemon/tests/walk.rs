//! The walk with two terminals, with real processes: converge, count, stop, kill.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use firedrill_core::metrics::{Metrics, SeriesKind};
use support::{Begun, Daemon, PUSH, SECRET, SUSPICION, eventually, firedrilld, now};

fn pair(test: &str) -> (Daemon, Daemon) {
    let a = Daemon::start(test, "node-a", &[]);
    let b = Daemon::start(test, "node-b", &[a.cluster]);
    eventually("both see both", || {
        (a.ids() == ["node-a", "node-b"] && b.ids() == ["node-b", "node-a"]).then_some(())
    });
    (a, b)
}

#[test]
fn an_increment_on_a_is_read_on_b_within_two_push_intervals() {
    let (a, b) = pair("count");
    let answer = a.post("/counters/sightings");
    let begin = now();
    assert_eq!(answer.body, concat!(r#"{"node":"node-a","counter":"sightings","value":1}"#, "\n"));
    assert_eq!(a.get("/counters/sightings").json()["value"], 1, "the writer reads its own write");
    eventually("b reads 1", || (b.get("/counters/sightings").json()["value"] == 1).then_some(()));
    // Twice 1.2 P by the protocol; the rest is for a busy machine.
    assert!(begin.elapsed() < PUSH * 8, "it took {:?}", begin.elapsed());

    assert_eq!(b.post("/counters/sightings?by=41").json()["value"], 42);
    eventually("a reads 42", || (a.get("/counters/sightings").json()["value"] == 42).then_some(()));
}

#[test]
fn health_shows_the_members_and_stays_up_when_one_is_killed() {
    let (a, b) = pair("kill");
    let health = a.get("/health").json();
    let membership = &health["components"]["cluster:membership"];
    let details = &membership["details"];
    assert_eq!((&health["status"], &membership["status"]), (&"UP".into(), &"UP".into()));
    assert_eq!((&details["node_id"], &details["cluster"]), (&"node-a".into(), &"firedrill".into()));
    assert_eq!(
        (&details["local_addr"], &details["member_count"]),
        (&a.cluster.to_string().into(), &2.into())
    );
    let b_addr = b.cluster.to_string();
    let member = &details["members"][1];
    assert_eq!(
        (&member["id"], &member["addr"], &member["status"]),
        (&"node-b".into(), &b_addr.into(), &"alive".into())
    );
    assert!(member["incarnation"].as_u64() > Some(1_000_000_000_000), "Unix milliseconds: {member}");

    b.signal("KILL");
    let begin = now();
    eventually("a drops b", || (a.ids() == ["node-a"]).then_some(()));
    // The last push may have been one jittered interval old.
    assert!(begin.elapsed() > SUSPICION - PUSH * 2, "dropped after {:?}", begin.elapsed());
    let health = a.get("/health").json();
    assert_eq!(health["status"], "UP");
    assert_eq!(health["components"]["cluster:membership"]["details"]["member_count"], 1);
    assert_eq!(a.get("/health/ready").status, 200, "peers never gate readiness");
}

#[test]
fn sigterm_leaves_at_once_and_exits_0() {
    for signal in ["TERM", "INT"] {
        let (a, mut b) = pair(&format!("stop-{signal}"));
        b.signal(signal);
        eventually("a drops b", || (a.ids() == ["node-a"]).then_some(()));
        assert_eq!(b.wait().code(), Some(0));
        eventually("b logs its departure", || b.log().contains("departed").then_some(()));
        eventually("a logs that it was told", || a.log().contains("member left").then_some(()));
        assert!(!a.log().contains("member down"), "{}", a.log());
    }
}

#[test]
fn a_request_under_way_at_sigterm_is_answered_and_its_increment_outlives_the_node() {
    let (a, mut b) = pair("drain");
    let mut request = Begun::new(b.admin, "POST", "/counters/last-words?by=7");
    let mut probe = Begun::new(b.admin, "GET", "/health/ready");
    // An answer on a later connection shows that both were accepted.
    assert_eq!(b.get("/health/ready").status, 200);
    b.signal("TERM");
    eventually("b stops accepting", || std::net::TcpStream::connect(b.admin).is_err().then_some(()));
    assert_eq!(probe.finish().status, 503, "not ready any more");
    assert_eq!(request.finish().json()["value"], 7);
    assert_eq!(b.wait().code(), Some(0));
    eventually("a has it", || (a.get("/counters/last-words").json()["value"] == 7).then_some(()));
}

#[test]
fn a_second_signal_cuts_the_draining_short() {
    let mut a = Daemon::start("cut", "node-a", &[]);
    let request = Begun::new(a.admin, "POST", "/counters/never");
    assert_eq!(a.get("/health/ready").status, 200);
    a.signal("TERM");
    eventually("a stops accepting", || std::net::TcpStream::connect(a.admin).is_err().then_some(()));
    let begin = now();
    a.signal("TERM");
    assert_eq!(a.wait().code(), Some(0));
    assert!(begin.elapsed() < firedrill_daemon::serve::DRAIN_LIMIT / 2, "it took {:?}", begin.elapsed());
    drop(request);
}

#[test]
fn every_metric_is_there_at_0_from_boot() {
    let a = Daemon::start("metrics", "node-a", &[]);
    let answer = a.get("/metrics");
    assert!(answer.head.contains("content-type: text/plain; version=0.0.4"), "{}", answer.head);
    for series in Metrics::default().series() {
        let label = series.label.map(|(name, value)| format!("{{{name}=\"{value}\"}}")).unwrap_or_default();
        let value = match series.kind {
            SeriesKind::Gauge => 1, // the node itself
            SeriesKind::Counter => 0,
        };
        let line = format!("{}{label} {value}", series.name);
        assert!(answer.body.lines().any(|present| present == line), "{line} is not in\n{}", answer.body);
    }
    for name in ["pushes_sent", "frames_dropped", "frames_rejected", "merges_applied"] {
        let head = format!("# TYPE firedrill_cluster_{name}_total counter");
        assert_eq!(answer.body.matches(&head).count(), 1, "{head}");
    }
}

#[test]
fn errors_are_json_and_say_what_to_do() {
    let a = Daemon::start("errors", "node-a", &[]);
    let long = "x".repeat(65);
    for (method, path, status) in [
        ("GET", "/nowhere", 404),
        ("GET", "/", 404),
        ("DELETE", "/counters/c", 405),
        ("POST", "/health", 405),
        ("POST", "/counters/%20", 400),
        ("GET", &*format!("/counters/{long}"), 400),
        ("GET", "/counters/%ff", 400),
        ("POST", "/counters/c?by=0", 400),
        ("POST", "/counters/c?by=-1", 400),
        ("POST", "/counters/c?by=18446744073709551616", 400),
        ("POST", "/counters/c?times=3", 400),
    ] {
        let answer = support::request(a.admin, method, path);
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
        let problem = answer.json();
        assert!(problem["error"].as_str().is_some_and(|text| !text.is_empty()), "{problem}");
        assert!(problem["hint"].as_str().is_some_and(|text| !text.is_empty()), "{problem}");
    }
    assert_eq!(a.get("/counters/c").json()["value"], 0, "nothing was counted");
    assert_eq!(a.get("/counters/caf%C3%A9").json()["counter"], "café");
}

#[test]
fn the_secret_is_in_no_log_line() {
    let mut command = firedrilld("secret-node-a");
    command.envs(support::cluster_env("node-a", &[])).args(["--log", "trace"]);
    let a = Daemon::spawn(command);
    let b = Daemon::start("secret", "node-b", &[a.cluster]);
    eventually("both see both", || (a.ids().len() == 2 && b.ids().len() == 2).then_some(()));
    a.post("/counters/c");
    eventually("tracing is on", || a.log().contains("frame accepted").then_some(()));
    assert!(!a.log().contains(SECRET) && !b.log().contains(SECRET));
}
