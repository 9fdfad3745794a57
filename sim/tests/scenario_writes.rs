//! A scenario that is written is the file a person would have written, and reads back as the same scenario.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use firedrill_sim::drill::{self, RunOptions};
use firedrill_sim::engine::EngineKind;
use firedrill_sim::scenario::model::{Span, Start, StepIx, Verb};
use firedrill_sim::scenario::{LoadOptions, Scenario};
use proptest::prelude::*;

const EVENT: LoadOptions = LoadOptions::for_engine(EngineKind::Event);

fn read_with(text: &str, others: &[(&str, &str)]) -> Scenario {
    let others: BTreeMap<&str, &str> = others.iter().copied().collect();
    let resolver = |path: &Path| {
        let name = path.to_str().unwrap_or_default();
        others.get(name).map(|text| (*text).to_owned()).ok_or_else(|| io::ErrorKind::NotFound.into())
    };
    match Scenario::parse(text, Path::new("drill.toml"), &resolver, EVENT) {
        Ok(scenario) => scenario,
        Err(report) => panic!("{}\n{text}", report.render(miette::GraphicalTheme::unicode_nocolor(), 100)),
    }
}

fn read(text: &str) -> Scenario {
    read_with(text, &[])
}

/// Everything a scenario says, without the places it was read from.
fn said(scenario: &Scenario) -> String {
    let mut scenario = scenario.clone();
    scenario.files.clear();
    scenario.workloads.iter_mut().for_each(|workload| workload.span = Span::default());
    scenario.steps.iter_mut().for_each(|step| step.span = Span::default());
    scenario.expects.iter_mut().for_each(|expect| expect.span = Span::default());
    // A `Secret` shows nothing of itself.
    let secrets: Vec<&[u8]> = scenario.hosts.iter().map(|host| host.config.secret.as_bytes()).collect();
    format!("{scenario:#?}\n{secrets:?}")
}

/// Writes, reads and writes again; gives the text.
#[track_caller]
fn round(scenario: &Scenario) -> String {
    let text = scenario.to_toml();
    let again = read(&text);
    assert_eq!(said(&again), said(scenario), "\n{text}");
    assert_eq!(again.to_toml(), text);
    text
}

fn shipped() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["gossip", "issuance", "regressions"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios").join(folder);
        let entries = std::fs::read_dir(folder).expect("the folder can be read");
        found.extend(entries.map(|entry| entry.expect("an entry can be read").path()));
    }
    found.retain(|path| path.extension().is_some_and(|ext| ext == "toml"));
    found.sort();
    assert!(found.len() > 50, "the shipped scenarios are there");
    found
}

#[test]
fn every_shipped_scenario_survives_being_written_and_runs_the_same() {
    for path in shipped() {
        let original = Scenario::load(&path, EVENT).unwrap_or_else(|_| panic!("{} is valid", path.display()));
        let written = read(&round(&original));
        let options = RunOptions { timeline: false, ..RunOptions::default() };
        let run = |scenario: &Scenario| {
            let outcome = drill::run(scenario, &options).expect("the event engine runs it");
            (outcome.digest.clone(), outcome.verdict, outcome.failure())
        };
        assert_eq!(run(&written), run(&original), "{}", path.display());
    }
}

/// Every verb, window, fact and key, spelled as the writer spells them, with values that no shipped file has.
const EVERYTHING: &str = r#"name = "everything.at-once"
about = 'A "story" with a backslash \ in it.'
seed = 18446744073709551615
time_limit = "61min"

[nodes]
names = ["a", "b.2", "c-3", "n_4", "e"]
later = ["f"]
seeds = "ring"
wall = { "b.2" = "+365d", c-3 = "-1us", f = "+123s 456ms" }
same_millisecond = true

[config.cluster]
cluster_name = 'europe / "west"'
push_interval_ms = 250

[config_for.a.cluster]
seed_peers = ["192.168.0.3:7946", "10.0.0.9:1"]

[config_for."b.2".cluster]
node_id = "the second"
push_interval_ms = 500

[config_for.c-3.cluster]
bind_addr = "0.0.0.0:9000"
advertise_addr = "192.168.0.3:9000"
suspicion_timeout_ms = 99999

[config_for.e.cluster]
secret = 'sixteen bytes \ at least'

[net]
latency = "999us..1s 1us"
loss = "0.0001%"
duplicate = "12.5%"
reorder = "99.9999%"
bandwidth = "1234567B/s"

[oracles.off]
views_agree = "the secrets differ"

[liveness]
settle_within = "90s"

[[workload]]
increment = "sightings"
every = "1500ms"
by = 9223372036854775807
on = ["a", "e"]
from = "0s"
until = "1h"

[[workload]]
increment = "other"
every = "1us"
on = "a"

[[step]]
at = "0s"
add_node = "f"

[[step]]
id = "unused"
after = "0s"
kill = "any"

[[step]]
when = { down = "b.2", on = "a" }
restart = { target = "b.2", wall = "-365d", addr = "[fe80::1]:7946" }

[[step]]
when = "unused"
after = "1us"
restart = ["a", "e"]

[[step]]
when = { link_reset = "any", reason = "dial_timeout" }
after = "2s"
partition = ["minority"]
for = "1s"

[[step]]
when = { rejected = "mac", on = "e" }
stop = "majority"

[[step]]
when = { up = "any" }
partition = [["a"], ["b.2", "c-3"]]

[[step]]
at = "1min"
pause = ["a", "f"]
for = "1s"
every = "2s"
until = "70s"

[[step]]
at = "2min"
resume = "all"

[[step]]
at = "3min"
isolate = "all"
for = "5min"

[[step]]
at = "4min"
heal = true

[[step]]
at = "4min"
cut = { from = "any", to = ["a", "e"] }

[[step]]
at = "4min"
hold = { from = "a", to = "all" }

[[step]]
at = "4min"
release = { from = "a", to = "e" }

[[step]]
at = "4min"
link = { from = "all", to = "all", latency = "5ms", loss = "1%", duplicate = "2%", reorder = "0%", bandwidth = "2GB/s" }

[[step]]
at = "4min"
link = { from = "a", to = "e", bandwidth = "64KiB/s" }
for = "1min"

[[step]]
at = "4min"
half_open = { from = "a", to = "e" }

[[step]]
at = "4min"
clock_step = { target = "minority", by = "-24h" }

[[step]]
at = "4min"
clock_rate = { target = "e", rate = "0.500001" }
for = "1min"

[[step]]
at = "4min"
clock_freeze = "e"

[[step]]
at = "4min"
replay_frames = { from = "a", to = "e", count = 3 }

[[step]]
at = "4min"
replay_frames = { from = "a", to = "e", captured = "0s..61min", count = 100000 }

[[step]]
at = "4min"
corrupt_frames = { from = "a", to = "e", rate = "100%" }

[[step]]
at = "4min"
forge_frames = { sender = "a", to = "e", count = 1 }

[[step]]
at = "4min"
flood = { to = "e", connections = 10000, send = "half_frame" }

[[step]]
id = "last"
at = "5min"
remove_node = "e"

[[expect]]
from = "unused"
by = "1h"
view = ["a", "b.2"]

[[expect]]
from = "1s"
always = { view = { on = "a", members = ["a"] } }

[[expect]]
never = { counter = { name = "sightings", equals = 7, on = ["a", "e"] } }

[[expect]]
at_end = { counter = { name = "sightings", equals = "truth" } }

[[expect]]
sometimes = { event = { inbound_closed = "a", reason = "idle" } }

[[expect]]
sometimes = { event = { rejected = "replay" } }

[[expect]]
sometimes = { metric = { name = "firedrill_cluster_frames_rejected_total", reason = "mac", at_least = 1 } }

[[expect]]
at_end = { metric = { name = "firedrill_cluster_admissions_refused_total", table = "counters", at_most = 0, on = "a" } }
"#;

#[test]
fn a_file_in_the_style_of_the_house_is_written_as_it_stands() {
    let scenario = read(EVERYTHING);
    assert_eq!(round(&scenario), EVERYTHING);
}

#[test]
fn a_comment_stands_before_everything_and_cannot_break_out() {
    let scenario = read(EVERYTHING);
    let text = scenario.to_toml_with_comment("Found by seed 7.\n\nname = \"x\"\r\u{7}bell");
    let expected = format!("# Found by seed 7.\n#\n# name = \"x\"bell\n{EVERYTHING}");
    assert_eq!(text, expected);
    assert_eq!(said(&read(&text)), said(&scenario));
}

#[test]
fn many_hosts_with_names_out_of_the_alphabet_are_counted_and_long_lists_broken() {
    let many = read(
        "name = \"many\"\nabout = \"Many.\"\ntime_limit = \"9s\"\n[nodes]\ncount = 30\n[[step]]\nat = \"1s\"\n\
         kill = [\"n00\", \"n01\", \"n02\", \"n03\", \"n04\", \"n05\", \"n06\", \"n07\", \"n08\", \"n09\", \
         \"n10\", \"n11\", \"n12\", \"n13\"]\n",
    );
    let expected = r#"name = "many"
about = "Many."
time_limit = "9s"

[nodes]
count = 30

[[step]]
at = "1s"
kill = [
    "n00", "n01", "n02", "n03", "n04", "n05", "n06", "n07", "n08", "n09", "n10", "n11", "n12",
    "n13",
]
"#;
    assert_eq!(round(&many), expected);
}

#[test]
fn includes_are_flattened_and_their_steps_put_in_the_order_they_fire() {
    let common = r#"
        [nodes]
        names = ["a", "b"]
        [[step]]
        id = "late"
        at = "30s"
        kill = "a"
        [[step]]
        when = { down = "a", on = "b" }
        restart = "a"
        "#;
    let text = r#"
        name = "flat"
        about = "Flat."
        time_limit = "1min"
        include = ["common.toml"]
        [[step]]
        at = "10s"
        pause = "b"
        for = "1s"
        [[step]]
        when = "late"
        after = "9s"
        pause = "a"
        for = "1s"
        "#;
    let scenario = read_with(text, &[("common.toml", common)]);
    let written = scenario.to_toml();
    let again = read(&written);
    assert_eq!(again.to_toml(), written);
    for told in [&scenario, &again] {
        let verbs: Vec<&str> = told.steps.iter().map(|step| step.verb.name()).collect();
        assert_eq!(verbs, ["pause", "kill", "restart", "pause"]);
        assert_eq!(told.steps[3].start, Start::AfterStep(StepIx(1), Duration::from_secs(9)));
    }
    let digest = |scenario| drill::run(scenario, &RunOptions::default()).expect("it runs").digest;
    assert_eq!(digest(&again), digest(&scenario));
}

#[test]
fn a_step_that_others_need_is_given_an_id_where_it_has_none() {
    let mut scenario = read(EVERYTHING);
    scenario.steps[1].id = None;
    scenario.steps[0].id = Some("kill".to_owned());
    let again = read(&scenario.to_toml());
    assert_eq!(again.steps[1].id.as_deref(), Some("kill-2"));
    assert_eq!(again.steps[3].start, scenario.steps[3].start);
    assert_eq!(again.expects[0].from, scenario.expects[0].from);
}

#[test]
fn a_node_id_shared_by_two_hosts_is_told_by_the_first_of_them() {
    let mut scenario = read(EVERYTHING);
    scenario.hosts[4].id = scenario.hosts[0].id.clone();
    scenario.hosts[4].config.node_id = Some(scenario.hosts[0].id.clone());
    let again = read(&round(&scenario));
    assert_eq!(again.hosts[4].id, again.hosts[0].id);
}

proptest! {
    #[test]
    fn any_text_survives(text in "(?s).*", reason in "[\\x00-\\x7f\n\r'\"]*", seed: u64) {
        let mut scenario = read(EVERYTHING);
        scenario.about = format!("A{text}");
        scenario.oracles_off.insert("any name".to_owned(), format!("{reason}."));
        scenario.seed = seed;
        round(&scenario);
    }

    #[test]
    fn any_numbers_survive(
        us in prop::collection::vec(1..=3_000_000_000_u64, 6),
        ppm in prop::collection::vec(0..=1_000_000_u32, 4),
        bytes in 1..=u64::MAX,
        step_us in -31_000_000_000_000..=31_000_000_000_000_i64,
    ) {
        let mut scenario = read(EVERYTHING);
        let time = |ix: usize| Duration::from_micros(us[ix]);
        (scenario.net.latency_min, scenario.net.latency_max) = (time(0).min(time(1)), time(0).max(time(1)));
        (scenario.net.loss_ppm, scenario.net.duplicate_ppm, scenario.net.reorder_ppm) = (ppm[0], ppm[1], ppm[2]);
        scenario.net.bandwidth = Some(bytes);
        (scenario.workloads[1].every, scenario.workloads[1].from) = (time(2), time(3));
        scenario.workloads[1].by = bytes / 2 + 1;
        scenario.settle_within = Some(time(4));
        scenario.hosts[3].wall_offset_us = step_us;
        for step in &mut scenario.steps {
            if let Verb::ClockStep { by_us, .. } = &mut step.verb {
                *by_us = step_us;
            } else if let Verb::ClockRate { rate_ppm, .. } = &mut step.verb {
                *rate_ppm = 500_000 + ppm[3];
            } else if let Verb::CorruptFrames { rate_ppm, .. } = &mut step.verb {
                *rate_ppm = ppm[3];
            }
        }
        round(&scenario);
    }
}
