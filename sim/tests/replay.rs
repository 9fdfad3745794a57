//! A recorded run is repeated from its artifact alone, and what differs is named.

use std::path::Path;

use firedrill_core::guards::Guards;
use firedrill_sim::artifact::{Artifact, ArtifactError};
use firedrill_sim::digest::Mark;
use firedrill_sim::drill::{self, RunOptions};
use firedrill_sim::engine::{EngineKind, Wire};
use firedrill_sim::oracles::sabotage::SABOTAGE;
use firedrill_sim::outcome::{Applied, Failure, Outcome};
use firedrill_sim::replay::{Finding, replay};
use firedrill_sim::scenario::{LoadOptions, Scenario};

/// Three nodes; one of them, whichever the seed says, is killed and comes back, and a split lasts for a while.
const DRILL: &str = r#"
name = "recorded"
about = "A kill, a split, a wrong expectation."
time_limit = "40s"
[nodes]
names = ["a", "b", "c"]
[[workload]]
increment = "sightings"
every = "500ms"
[[step]]
at = "5s"
kill = "any"
[[step]]
id = "back"
after = "4s"
restart = "all"
[[step]]
at = "15s"
partition = [["a"], ["b", "c"]]
for = "5s"
[[expect]]
by = "39s"
event = { left = "c" }
"#;

fn read(text: &str) -> Scenario {
    let none = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
    match Scenario::parse(
        text,
        Path::new("drills/recorded.toml"),
        &none,
        LoadOptions::for_engine(EngineKind::Event),
    ) {
        Ok(scenario) => scenario,
        Err(report) => panic!("{}", report.render(miette::GraphicalTheme::unicode_nocolor(), 100)),
    }
}

fn options(seed: u64) -> RunOptions {
    RunOptions { seed: Some(seed), keep_trail: true, keep_schedule: true, ..RunOptions::default() }
}

fn run(scenario: &Scenario, options: &RunOptions) -> Outcome {
    drill::run(scenario, options).expect("the engine runs it")
}

fn record(scenario: &Scenario, options: &RunOptions) -> Artifact {
    Artifact::new(scenario, options, &run(scenario, options), None)
}

#[test]
fn the_schedule_tells_every_fault_with_its_hosts() {
    let outcome = run(&read(DRILL), &options(7));
    let told: Vec<String> =
        outcome.schedule.iter().map(|one| format!("{} {}: {}", one.at_us, one.by, one.fault)).collect();
    let killed = &outcome.schedule[0].fault;
    assert!(["kill a", "kill b", "kill c"].contains(&killed.as_str()), "{told:#?}");
    let expected = [
        format!("5000000 step 1: {killed}"),
        "15000000 step 3: block a -> b, c; b, c -> a".to_owned(),
        "20000000 the end of step 3: unblock a -> b, c; b, c -> a".to_owned(),
    ];
    for line in expected {
        assert!(told.contains(&line), "{line} is missing from {told:#?}");
    }
    assert_eq!(told.iter().filter(|line| line.contains("step \"back\": start")).count(), 3, "{told:#?}");
    let silent = run(&read(DRILL), &RunOptions { keep_schedule: false, ..options(7) });
    assert!(silent.schedule.is_empty());
}

#[test]
fn a_mark_names_the_host_that_handled_the_event() {
    let scenario = read(DRILL);
    let outcome = run(&scenario, &options(7));
    for event in [0, 1, 2, 100, outcome.trail.len() - 1] {
        let asked = run(&scenario, &RunOptions { tell_event: Some(event), ..options(7) });
        assert_eq!(asked.digest, outcome.digest, "asking changes nothing");
        let happening = asked.happening.expect("the event happened");
        assert_eq!(happening.event, event);
        assert_eq!(happening.node, scenario.hosts[outcome.trail[event].host().0].name);
        assert!(!happening.text.is_empty());
    }
    let first = run(&scenario, &RunOptions { tell_event: Some(0), ..options(7) }).happening;
    assert!(first.is_some_and(|first| first.node == "a" && first.text.starts_with("boots; starts with")));
    let past = RunOptions { tell_event: Some(outcome.trail.len()), ..options(7) };
    assert_eq!(run(&scenario, &past).happening, None);
}

#[test]
fn an_artifact_survives_its_file_and_reproduces_on_every_engine_and_wire() {
    for (engine, wire) in
        [(EngineKind::Event, None), (EngineKind::Event, Some(Wire::Full)), (EngineKind::Turmoil, None)]
    {
        let artifact = record(&read(DRILL), &RunOptions { engine, wire, ..options(7) });
        assert_eq!(artifact.failure, Some(Failure::Expectation));
        let text = artifact.to_json();
        let again = Artifact::from_json(&text, "x.json").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again, artifact);
        assert_eq!(again.to_json(), text);
        let replay = replay(&again, None).expect("it runs");
        assert_eq!(replay.finding, Finding::Reproduced, "on {engine:?}");
        assert_eq!(replay.outcome.failure(), artifact.failure);
    }
}

/// A drill of two files whose steps fire in turns, most of them on whom a symbol draws.
fn included() -> Scenario {
    let common = r#"
        [nodes]
        count = 7
        [[step]]
        at = "20s"
        kill = "any"
        [[step]]
        after = "3s"
        restart = "any"
        [[step]]
        at = "26s"
        partition = ["minority"]
        for = "1s"
        "#;
    let text = r#"
        name = "included"
        about = "Two files, one drill."
        time_limit = "40s"
        include = ["common.toml"]
        [[step]]
        after = "4s"
        pause = "any"
        for = "1s"
        [[step]]
        at = "5s"
        kill = "any"
        [[step]]
        when = { down = "g" }
        isolate = "minority"
        for = "1s"
        [[step]]
        at = "10s"
        restart = "any"
        "#;
    let files = |path: &Path| {
        let known = path == Path::new("drills/common.toml");
        known.then(|| common.to_owned()).ok_or_else(|| std::io::ErrorKind::NotFound.into())
    };
    Scenario::parse(
        text,
        Path::new("drills/included.toml"),
        &files,
        LoadOptions::for_engine(EngineKind::Event),
    )
    .unwrap_or_else(|report| panic!("{report:?}"))
}

#[test]
fn symbols_of_a_drill_that_includes_another_draw_the_same_hosts_in_its_artifact() {
    let scenario = included();
    for seed in 0..20 {
        let artifact = record(&scenario, &options(seed));
        let again =
            Artifact::from_json(&artifact.to_json(), "x.json").unwrap_or_else(|error| panic!("{error}"));
        assert!(!again.scenario.contains("include = "), "{}", again.scenario);
        let finding = replay(&again, None).expect("it runs").finding;
        assert_eq!(finding, Finding::Reproduced, "seed {seed}:\n{}", again.scenario);
    }
}

#[test]
fn a_sabotaged_run_is_replayed_with_its_guard_off() {
    let row = SABOTAGE.iter().find(|row| row.guard == "suspicion").expect("a guard of this name");
    let mut guards = Guards::ON;
    (row.apply)(&mut guards);
    let (scenario, options) = (read(DRILL), RunOptions { guards, ..options(7) });
    let artifact = Artifact::new(&scenario, &options, &run(&scenario, &options), Some(row.guard));
    assert!(matches!(artifact.failure, Some(Failure::Invariant(_))), "{:?}", artifact.failure);
    assert!(artifact.violation.is_some());
    assert_eq!(replay(&artifact, None).expect("it runs").finding, Finding::Reproduced);
    let repaired = Artifact { sabotage: None, ..artifact };
    let replayed = replay(&repaired, None).expect("it runs");
    let Finding::Changed(difference) = replayed.finding else { panic!("{:?}", replayed.finding) };
    assert_eq!(difference.failures.0, repaired.failure);
    assert_ne!(difference.failures.1, repaired.failure);
}

#[test]
fn the_first_event_that_differs_is_named_with_both_nodes_and_what_happened() {
    let scenario = read(DRILL);
    let mut artifact = record(&scenario, &options(7));
    let now = artifact.trail[100];
    let recorded = Mark::from_bits((now.bits() ^ (1 << 20)) & !63 | 2);
    artifact.trail[100] = recorded;
    let Finding::Changed(difference) = replay(&artifact, None).expect("it runs").finding else {
        panic!("it differs");
    };
    assert_eq!(difference.fault, None);
    let event = difference.event.expect("an event differs");
    assert_eq!((event.index, event.one.as_deref()), (100, Some("c")));
    assert_eq!(event.other, Some(scenario.hosts[now.host().0].name.clone()));
    let happening = event.happening.expect("it happened");
    assert_eq!(Some(happening.node), event.other);
    assert!(happening.at_us > 0);
}

#[test]
fn a_recording_that_goes_on_or_ends_earlier_differs_at_the_shorter_end() {
    let artifact = record(&read(DRILL), &options(7));
    let length = artifact.trail.len();
    let mut longer = artifact.clone();
    longer.trail.push(artifact.trail[0]);
    let mut shorter = artifact;
    shorter.trail.pop();
    for (artifact, index, both) in [(longer, length, false), (shorter, length - 1, true)] {
        let Finding::Changed(difference) = replay(&artifact, None).expect("it runs").finding else {
            panic!("it differs");
        };
        let event = difference.event.expect("an event differs");
        assert_eq!(event.index, index);
        assert_eq!(
            (event.one.is_some(), event.other.is_some(), event.happening.is_some()),
            (!both, both, both)
        );
    }
}

#[test]
fn the_first_fault_that_differs_is_named() {
    let mut artifact = record(&read(DRILL), &options(7));
    let planted = Applied { at_us: 1, by: "step 9".to_owned(), fault: "kill z".to_owned() };
    artifact.schedule[1] = planted.clone();
    let Finding::Changed(difference) = replay(&artifact, None).expect("it runs").finding else {
        panic!("it differs");
    };
    let fault = difference.fault.expect("a fault differs");
    assert_eq!((fault.index, fault.one), (1, Some(planted)));
    assert!(fault.other.is_some());
    assert_eq!(difference.event, None);
}

/// An artifact with one line of its file changed, and what reading it says.
#[track_caller]
fn refused(change: impl Fn(&str) -> String) -> String {
    let text = change(&record(&read(DRILL), &options(7)).to_json());
    match Artifact::from_json(&text, "failures/x.json") {
        Ok(_) => panic!("it was taken"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_is_no_artifact_is_refused_with_place_reason_and_remedy() {
    let without = |key: &str, text: &str| -> String {
        text.lines().filter(|line| !line.starts_with(&format!("  \"{key}\""))).collect::<Vec<_>>().join("\n")
    };
    let cases: [(String, &[&str]); 9] = [
        (refused(|text| text[..text.len() / 2].to_owned()), &["failures/x.json:", "is no JSON", "anew"]),
        (refused(|_| "[1]".to_owned()), &["no artifact", "`format`", ".toml"]),
        (
            refused(|text| text.replace("\"format\": 1", "\"format\": 9")),
            &["format 9", "format 1", "(0.1.0)"],
        ),
        (refused(|text| without("seed", text)), &["failures/x.json:", "missing field `seed`", "anew"]),
        (refused(|text| without("sabotage", text)), &["missing field `sabotage`"]),
        (refused(|text| text.replace("\"events\": ", "\"events\": 1")), &["trail holds", "`events` says 1"]),
        (refused(|text| text.replace("\"trail\": \"", "\"trail\": \"0")), &["no multiple of the 16"]),
        (
            refused(|text| text.replace("\"sabotage\": null", "\"sabotage\": \"courage\"")),
            &["`courage` off", "no such guard", "0.1.0"],
        ),
        (refused(|text| text.replace("[[step]]", "[[stepp]]")), &["scenario it holds is not valid", "0.1.0"]),
    ];
    for (message, words) in cases {
        for word in words {
            assert!(message.contains(word), "{word:?} is missing from {message:?}");
        }
    }
    let hosts = refused(|text| {
        let at = text.find("\"trail\": \"").expect("there is a trail") + 10;
        format!("{}3f{}", &text[..at + 14], &text[at + 16..])
    });
    assert!(
        hosts.contains("event 0 of the trail happened on host 64, but the scenario has only 3"),
        "{hosts}"
    );
    let missing = Artifact::load(Path::new("no/such.json")).expect_err("there is no such file");
    assert!(matches!(missing, ArtifactError::Unreadable { .. }));
}
