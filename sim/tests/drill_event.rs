//! Whole drills over the event engine: phases, verdicts, timelines.

use std::path::Path;

use firedrill_sim::drill::{RunOptions, run};
use firedrill_sim::engine::{EngineKind, Wire};
use firedrill_sim::outcome::{Outcome, Verdict};
use firedrill_sim::scenario::{LoadOptions, Scenario};

fn scenario(body: &str) -> Scenario {
    let text = format!("name = \"drill\"\nabout = \"A drill.\"\n{body}");
    let missing = |path: &Path| Err(std::io::Error::other(format!("no include here: {}", path.display())));
    let options = LoadOptions::for_engine(EngineKind::Event);
    Scenario::parse(&text, Path::new("drill.toml"), &missing, options)
        .unwrap_or_else(|report| panic!("{report:?}"))
}

fn play(body: &str) -> Outcome {
    run(&scenario(body), &RunOptions::default()).expect("the event engine runs every scenario")
}

fn story(outcome: &Outcome) -> String {
    let line = |entry: &firedrill_sim::outcome::Entry| {
        format!(
            "{:>9.3} {:<5} {}\n",
            entry.at_us as f64 / 1e6,
            entry.node.as_deref().unwrap_or("-"),
            entry.text
        )
    };
    outcome.timeline.iter().map(line).collect()
}

#[test]
fn a_partition_heals_and_the_cluster_settles() {
    let outcome = play(
        r#"
        time_limit = "30s"
        [nodes]
        names = ["a", "b", "c"]
        [[workload]]
        increment = "sightings"
        every = "200ms"
        [[step]]
        id = "cut"
        at = "5s"
        partition = [["a"], ["b", "c"]]
        for = "10s"
        [[step]]
        when = { down = "a", on = "b" }
        after = "1s"
        kill = "c"
        [[step]]
        when = "cut"
        after = "15s"
        restart = "c"
        [[expect]]
        by = "5s"
        view = ["a", "b", "c"]
        [[expect]]
        by = "9s"
        event = { down = "a", on = "b" }
        [[expect]]
        from = "1s"
        never = { event = { refuted = "b" } }
        [[expect]]
        at_end = { counter = { name = "sightings", equals = "truth" } }
        "#,
    );
    assert_eq!(outcome.verdict, Verdict::Pass, "{}", story(&outcome));
    let told = story(&outcome);
    for line in [
        "partition [a] [b, c] for 10 s",
        "end of partition",
        "kill c",
        "restart c",
        "all views agree: a, b, c",
    ] {
        assert!(told.contains(line), "{line:?} is missing in\n{told}");
    }
    let numbers = &outcome.numbers;
    let took = numbers.convergence_us.expect("it converged");
    assert!(took > 0 && took <= numbers.convergence_bound_us, "{numbers:?}");
    assert_eq!(outcome.ineffective_faults, [""; 0]);
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_another() {
    let drill = scenario(STORM);
    let with = |seed, wire| {
        let options =
            RunOptions { seed: Some(seed), wire: Some(wire), keep_trail: true, ..RunOptions::default() };
        run(&drill, &options).expect("the event engine runs every scenario")
    };
    for wire in [Wire::Fast, Wire::Full] {
        let (one, again, other) = (with(7, wire), with(7, wire), with(8, wire));
        assert_eq!(one.verdict, Verdict::Pass, "{wire:?}: {:#?}\n{}", one.violation, story(&one));
        assert_eq!((&one.digest, &one.trail), (&again.digest, &again.trail));
        assert_eq!(story(&one), story(&again));
        assert_ne!(one.digest, other.digest);
    }
}

/// Every kind of fault that both wire modes know.
const STORM: &str = r#"
    time_limit = "60s"
    [nodes]
    names = ["a", "b", "c", "d", "e"]
    [[workload]]
    increment = "sightings"
    every = "100ms"
    [[step]]
    at = "5s"
    partition = [["a", "b"]]
    for = "5s"
    [[step]]
    at = "8s"
    kill = "any"
    [[step]]
    at = "14s"
    restart = "any"
    [[step]]
    at = "16s"
    pause = "any"
    for = "4s"
    [[step]]
    at = "20s"
    link = { from = "all", to = "all", latency = "10ms..200ms", loss = "2%", duplicate = "2%", reorder = "2%" }
    for = "5s"
    [[step]]
    at = "28s"
    hold = { from = "a", to = "b" }
    for = "2s"
    [[step]]
    at = "32s"
    clock_step = { target = "any", by = "-1h" }
    [[step]]
    at = "34s"
    restart = "all"
    [[step]]
    at = "40s"
    isolate = "any"
    for = "6s"
    [[step]]
    at = "50s"
    stop = "any"
    [[expect]]
    sometimes = { event = { down = "a" } }
"#;

#[test]
fn two_hosts_with_one_id_boot_a_millisecond_apart() {
    let outcome = play(
        r#"
        time_limit = "5s"
        [nodes]
        names = ["a", "b", "b2"]
        [config_for.b2.cluster]
        node_id = "b"
        [oracles.off]
        views_agree = "two hosts fight over one id"
        documents_agree = "two hosts fight over one id"
        counters_exact = "two hosts fight over one id"
        "#,
    );
    let told = story(&outcome);
    assert!(told.contains("0.001 b2    starts with incarnation 1767225600001"), "{told}");
    assert!(!told.contains("had already"), "{told}");
}

#[test]
fn a_reused_incarnation_is_told() {
    let outcome = play(
        r#"
        time_limit = "40s"
        [nodes]
        names = ["a", "b"]
        [[step]]
        at = "5s"
        clock_freeze = "a"
        for = "10s"
        [[step]]
        at = "6s"
        restart = "a"
        [[step]]
        at = "8s"
        restart = "a"
        "#,
    );
    let told = story(&outcome);
    assert!(told.contains("boots with incarnation 1767225605000, which boot 1 of a had already"), "{told}");
}

#[test]
fn a_cluster_that_cannot_agree_fails_the_liveness_phase() {
    let outcome = play(
        r#"
        time_limit = "10s"
        [nodes]
        names = ["a", "b"]
        [config_for.b.cluster]
        secret = "another secret of sixteen bytes"
        "#,
    );
    assert_eq!(outcome.verdict, Verdict::Liveness, "{:#?}", outcome.violation);
    let violation = outcome.violation.expect("it says what is wrong");
    assert!(violation.liveness && violation.fact.contains("view"), "{violation:?}");
    assert_eq!(outcome.wire, Some("full"), "only bytes can tell two secrets apart");
}

#[test]
fn metric_expectations_read_the_counts_of_connections_in_this_boot() {
    let outcome = play(
        r#"
        time_limit = "20s"
        [nodes]
        names = ["a", "b"]
        # While b is down a's queue for it overflows: 64 frames are 3.2 s of pushes.
        [config.cluster]
        push_interval_ms = 50
        suspicion_timeout_ms = 10000
        [[step]]
        at = "2s"
        forge_frames = { sender = "b", to = "a", count = 3 }
        [[step]]
        at = "4s"
        kill = "b"
        [[step]]
        at = "10s"
        restart = "b"
        [[step]]
        at = "12s"
        restart = "a"
        [[expect]]
        by = "3s"
        metric = { on = "a", name = "firedrill_cluster_frames_rejected_total", reason = "mac", equals = 3 }
        [[expect]]
        by = "11s"
        metric = { on = "a", name = "firedrill_cluster_frames_dropped_total", at_least = 1 }
        [[expect]]
        at_end = { metric = { on = "a", name = "firedrill_cluster_frames_rejected_total", reason = "mac", equals = 0 } }
        "#,
    );
    assert_eq!(outcome.verdict, Verdict::Pass, "{}", story(&outcome));
    assert_eq!(outcome.wire, Some("full"));
}

#[test]
fn a_run_is_limited_by_what_it_sends_as_well_as_by_its_inputs() {
    let drill = scenario("time_limit = \"20s\"\n[nodes]\ncount = 8\n");
    let limited = |inputs_max| {
        let options = RunOptions { inputs_max, ..RunOptions::default() };
        run(&drill, &options).expect("the event engine runs every scenario")
    };
    let whole = limited(None).numbers;
    assert!(whole.effort() > whole.events + whole.events / 2, "{whole:?}");
    assert_eq!(limited(Some(whole.effort())).verdict, Verdict::Pass);
    // Room for every input, and not for what they send.
    for inputs_max in [whole.events, whole.effort() - 1] {
        let outcome = limited(Some(inputs_max));
        let violation = outcome.violation.expect("it sends too much");
        assert_eq!(violation.oracle, "progress");
        assert!(violation.fact.contains("bytes sent"), "{}", violation.fact);
        assert!(outcome.numbers.events <= whole.events);
    }
}
