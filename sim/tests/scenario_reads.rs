//! Scenario files become the model that their words promise, and nothing a file holds makes the reader panic.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use firedrill_core::id::NodeId;
use firedrill_core::issuance::election::Decision;
use firedrill_core::issuance::window::Epoch;
use firedrill_sim::engine::{EngineKind, Wire};
use firedrill_sim::scenario::model::{
    AuditFigure, Bound, DiskSpec, DiskState, EventKind, Fact, FloodKind, HostIx, Moment, Start, StepIx,
    Target, Verb, Window,
};
use firedrill_sim::scenario::{LoadOptions, Report, Scenario, catalog};
use proptest::prelude::*;

const EVENT: LoadOptions = LoadOptions::for_engine(EngineKind::Event);
const HEAD: &str = "name = \"drill\"\nabout = \"A story.\"\ntime_limit = \"10min\"\n";
const ISSUANCE: &str = "[config.issuance]\nissuer = \"a\"\n";
const ABC: &str = "[nodes]\nnames = [\"a\", \"b\", \"c\"]\n";

fn read_with(text: &str, others: &[(&str, &str)], options: LoadOptions) -> Result<Scenario, Report> {
    let others: BTreeMap<&str, &str> = others.iter().copied().collect();
    let resolver = |path: &Path| {
        let name = path.to_str().unwrap_or_default();
        others.get(name).map(|text| (*text).to_owned()).ok_or_else(|| io::ErrorKind::NotFound.into())
    };
    Scenario::parse(text, Path::new("drills/drill.toml"), &resolver, options)
}

#[track_caller]
fn read(text: &str) -> Scenario {
    match read_with(text, &[], EVENT) {
        Ok(scenario) => scenario,
        Err(report) => panic!("{}", report.render(miette::GraphicalTheme::unicode_nocolor(), 100)),
    }
}

/// The messages of the report on a drill of a, b and c with these further lines.
#[track_caller]
fn messages(rest: &str) -> Vec<String> {
    match read_with(&format!("{HEAD}{ABC}{rest}"), &[], EVENT) {
        Ok(_) => Vec::new(),
        Err(report) => report.problems().iter().map(ToString::to_string).collect(),
    }
}

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

const fn hosts_ix(ix: usize) -> HostIx {
    HostIx(ix)
}

fn on(hosts: &[usize]) -> Target {
    Target::Hosts(hosts.iter().copied().map(hosts_ix).collect())
}

#[test]
fn the_story_of_a_failover_adapted_to_gossip_reads() {
    let drill = read(
        r#"
name = "member-failover"
about = "Kill a member at full speed; the others notice; it returns and everybody agrees."
time_limit = "6min"
[nodes]
names = ["a", "b", "c"]
[config.cluster]
push_interval_ms = 500
[config_for.c.cluster]
push_interval_ms = 250
[net]
latency = "1ms..20ms"
loss = "0.1%"
[[workload]]
increment = "sightings"
every = "200ms"
[[step]]
at = "60s"
kill = "any"
[[step]]
id = "back"
when = { down = "a", on = "b" }
after = "8s"
restart = "a"
[[expect]]
by = "140s"
view = { on = "b", members = ["b", "c"] }
[[expect]]
from = "back"
never = { event = { duplicate_node_id = "a" } }
"#,
    );
    assert_eq!(drill.name, "member-failover");
    assert_eq!(drill.seed, 1);
    assert_eq!(drill.hosts[0].config.push_interval_ms, 500);
    assert_eq!(drill.hosts[2].config.push_interval_ms, 250);
    assert_eq!((drill.net.latency_min, drill.net.loss_ppm), (Duration::from_millis(1), 1000));
    assert_eq!(drill.steps[0].start, Start::At(secs(60)));
    assert_eq!(drill.steps[0].verb, Verb::Kill(Target::Any));
    let Start::AfterEvent(event, after) = &drill.steps[1].start else { panic!("waits for an event") };
    assert_eq!((event.kind, event.on, *after), (EventKind::Down, Some(HostIx(1)), secs(8)));
    assert_eq!(event.subject.as_ref().map(NodeId::as_str), Some("a"));
    assert_eq!(drill.expects[0].window, Window::By(secs(140)));
    assert_eq!(drill.expects[1].from, Some(Moment::Step(StepIx(1))));
    assert_eq!(drill.expects[1].window, Window::Never);
    assert!(!drill.needs_full());
}

#[test]
fn the_harness_supplies_what_a_scenario_need_not_repeat() {
    let drill = read(&format!(
        "{HEAD}{ABC}wall = {{ b = \"+1h\" }}\nlater = [\"d\"]\n[[step]]\nat = \"1s\"\nadd_node = \"d\"\n"
    ));
    let addr = |n: u8| std::net::SocketAddr::from(([192, 168, 0, n], 7946));
    let b = &drill.hosts[1];
    assert!(b.config.enabled && b.config.secret.as_bytes().len() >= 16);
    assert_eq!(b.config.bind_addr, addr(2));
    assert_eq!(b.config.seed_peers, [addr(1), addr(3)]);
    assert_eq!((b.id.as_str(), b.wall_offset_us, b.from_start), ("b", 3_600_000_000, true));
    assert!(!drill.hosts[3].from_start);
    assert_eq!(drill.hosts[3].config.seed_peers, [addr(1), addr(2), addr(3)]);
}

#[test]
fn seeds_form_the_graph_that_is_asked_for_and_follow_a_moved_address() {
    let seeds = |kind: &str, rest: &str| {
        let drill = read(&format!("{HEAD}{ABC}seeds = \"{kind}\"\n{rest}"));
        let last = |addr: &std::net::SocketAddr| addr.to_string().split(':').next().map(str::to_owned);
        drill.hosts.iter().map(|host| host.config.seed_peers.iter().filter_map(last).collect()).collect()
    };
    let (one, two, three) = ("192.168.0.1", "192.168.0.2", "192.168.0.3");
    let first: Vec<Vec<String>> = seeds("first", "");
    assert_eq!(first, [vec![], vec![one], vec![one]]);
    let ring: Vec<Vec<String>> = seeds("ring", "");
    assert_eq!(ring, [vec![two], vec![three], vec![one]]);
    let chain: Vec<Vec<String>> = seeds("chain", "");
    assert_eq!(chain, [vec![], vec![one], vec![two]]);
    let moved =
        "[config_for.a.cluster]\nbind_addr = \"192.168.0.77:7946\"\nadvertise_addr = \"192.168.0.77:7946\"\n";
    let moved: Vec<Vec<String>> = seeds("first", moved);
    assert_eq!(moved[1], ["192.168.0.77"]);
}

#[test]
fn hosts_without_names_are_called_by_letter_or_number() {
    let names = |count: usize| {
        let drill = read(&format!("{HEAD}[nodes]\ncount = {count}\n"));
        drill.hosts.iter().map(|host| host.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(3), ["a", "b", "c"]);
    assert_eq!(names(26)[25], "z");
    assert_eq!((names(27)[0].clone(), names(64)[63].clone()), ("n00".into(), "n63".into()));
}

#[test]
fn a_seed_may_be_any_u64() {
    let seed =
        |seed: &str| read_with(&format!("seed = {seed}\n{HEAD}{ABC}"), &[], EVENT).map(|drill| drill.seed);
    assert_eq!(seed("18446744073709551615").ok(), Some(u64::MAX));
    assert_eq!(seed("0xff").ok(), Some(255));
    assert!(seed("18446744073709551616").is_err() && seed("-1").is_err());
}

#[test]
fn two_hosts_may_share_a_node_id() {
    let drill = read(&format!("{HEAD}{ABC}[config_for.c.cluster]\nnode_id = \"a\"\n"));
    assert_eq!(drill.hosts[2].name, "c");
    assert_eq!(drill.hosts[2].id, drill.hosts[0].id);
}

#[test]
fn hosts_that_differ_in_secret_or_cluster_name_run_on_real_bytes() {
    for line in ["secret = \"another secret of a drill\"", "cluster_name = \"other\""] {
        let text = format!("{HEAD}{ABC}[config_for.c.cluster]\n{line}\n");
        assert!(read(&text).needs_full(), "{line}");
        assert!(read_with(&text, &[], LoadOptions { wire: Some(Wire::Fast), ..EVENT }).is_err(), "{line}");
    }
}

#[test]
fn every_verb_reads_as_its_example_shows_on_every_engine_that_can_do_it() {
    for verb in catalog::VERBS {
        let add = "[[step]]\nat = \"0s\"\nadd_node = \"d\"\n";
        let add = if verb.name == "add_node" { "" } else { add };
        let lasts = if verb.ends.is_some() { "for = \"5s\"\n" } else { "" };
        let text = format!(
            "{HEAD}{ABC}later = [\"d\"]\n{ISSUANCE}{add}[[step]]\nat = \"10s\"\n{}\n{lasts}",
            verb.example
        );
        for engine in verb.engines {
            match read_with(&text, &[], LoadOptions::for_engine(*engine)) {
                Ok(drill) => assert_eq!(drill.needs_full(), verb.bytes, "{}", verb.name),
                Err(report) => panic!("{}: {:?}", verb.name, report.problems()),
            }
        }
    }
}

#[test]
fn every_fact_and_every_event_reads_as_its_example_shows() {
    let workload = format!("{ISSUANCE}[[workload]]\nincrement = \"sightings\"\nevery = \"1s\"\n");
    for fact in catalog::FACTS {
        let rest = format!("{workload}[[expect]]\nby = \"10s\"\n{}\n", fact.example);
        assert_eq!(messages(&rest), [""; 0], "{}", fact.name);
    }
    for event in catalog::EVENTS {
        let rest = format!("{ISSUANCE}[[expect]]\nsometimes = {{ event = {} }}\n", event.example);
        assert_eq!(messages(&rest), [""; 0], "{}", event.name);
    }
}

#[test]
fn issuance_is_on_where_a_file_has_the_section_and_off_elsewhere() {
    let issues = |rest: &str| -> Vec<bool> {
        read(&format!("{HEAD}{ABC}{rest}")).hosts.iter().map(|host| host.issuance.is_some()).collect()
    };
    assert_eq!(issues(""), [false; 3]);
    assert_eq!(issues(ISSUANCE), [true; 3]);
    assert_eq!(issues("[config_for.b.issuance]\nissuer = \"b\"\n"), [false, true, false]);
    let off = format!("{ISSUANCE}[config_for.c.issuance]\nenabled = false\n");
    assert_eq!(issues(&off), [true, true, false]);
    let own = read(&format!("{HEAD}{ABC}{ISSUANCE}[config_for.c.issuance]\npull_z = 5\n"));
    let pulls: Vec<u64> = own.hosts.iter().flat_map(|host| &host.issuance).map(|own| own.pull_z.0).collect();
    assert_eq!(pulls, [20, 20, 5]);
}

#[test]
fn facts_and_symbols_of_the_issuance_carry_their_values() {
    let drill = read(&format!(
        "{HEAD}{ABC}{ISSUANCE}{}",
        r#"[[step]]
at = "10s"
partition = ["holder"]
[[step]]
when = { promoted = "b", epoch = 1 }
pause_issuance = "successor"
for = "5s"
[[expect]]
by = "60s"
lease = { holder = "b", epoch = 1 }
[[expect]]
sometimes = { decision = { on = "c", is = "successor_is_b" } }
[[expect]]
at_end = { audit = { figure = "supply", at_most = "7.999999999992", on = ["a", "b"] } }
[[expect]]
at_end = { audit = { figure = "amount_sum", equals = 2 } }
[[expect]]
never = { sealed_by = "a" }
[[expect]]
sometimes = { event = { sealed = "b", epoch = 1, elapsed = 8 } }
"#
    ));
    assert_eq!(drill.steps[0].verb, Verb::Partition(vec![Target::Holder]));
    assert_eq!(drill.steps[1].verb, Verb::PauseIssuance(Target::Successor));
    let b = NodeId::new("b").ok();
    let facts: Vec<&Fact> = drill.expects.iter().map(|expect| &expect.fact).collect();
    assert_eq!(facts[0], &Fact::Lease { on: Vec::new(), holder: b.clone(), epoch: Some(Epoch(1)) });
    let Fact::Decision { on, decision, successor } = facts[1] else { panic!("a decision") };
    assert_eq!(
        (Decision::NAMES[*decision], on.as_slice(), successor),
        ("successor_is", &[HostIx(2)][..], &b)
    );
    let supply = Bound::AtMost(7_999_999_999_992);
    let on = vec![HostIx(0), HostIx(1)];
    assert_eq!(facts[2], &Fact::Audit { on, figure: AuditFigure::Supply, value: supply });
    let two = Bound::Equals(2_000_000_000_000);
    assert_eq!(facts[3], &Fact::Audit { on: Vec::new(), figure: AuditFigure::AmountSum, value: two });
    let Fact::Event(pattern) = facts[4] else { panic!("an event") };
    assert_eq!((pattern.kind, pattern.on, pattern.epoch), (EventKind::Sealed, Some(HostIx(0)), None));
    let Fact::Event(pattern) = facts[5] else { panic!("an event") };
    assert_eq!((pattern.epoch, pattern.elapsed), (Some(Epoch(1)), Some(8)));
}

#[test]
fn a_disk_is_read_with_what_it_does_to_writes() {
    let disk = |disk: &str| {
        let drill = read(&format!("{HEAD}{ABC}[[step]]\nat = \"10s\"\nfor = \"5s\"\ndisk = {disk}\n"));
        drill.steps[0].verb.clone()
    };
    let verb = |state, latency| Verb::Disk { target: on(&[0]), disk: DiskSpec { latency, state } };
    assert_eq!(disk("{ target = \"a\", state = \"full\" }"), verb(DiskState::Full, Duration::ZERO));
    assert_eq!(disk("{ target = \"a\", latency = \"2s\" }"), verb(DiskState::Works, secs(2)));
    let torn = "{ target = \"a\", state = \"unsynced\", latency = \"1s\" }";
    assert_eq!(disk(torn), verb(DiskState::Unsynced, secs(1)));
    let step = |disk: &str| messages(&format!("[[step]]\nat = \"10s\"\ndisk = {disk}\n"));
    assert_eq!(step("\"a\""), ["`disk` wants a table, not a string"]);
    assert_eq!(step("{ state = \"full\" }"), ["`disk` needs `target`"]);
    assert_eq!(step("{ target = \"a\", state = \"ful\" }"), ["unknown word \"ful\" for `state`"]);
    assert_eq!(step("{ target = \"a\" }"), ["`disk` changes nothing"]);
}

#[test]
fn what_is_said_of_issuance_where_there_is_none_is_refused() {
    let expect = |fact: &str| messages(&format!("[[expect]]\nsometimes = {{ {fact} }}\n"));
    for fact in catalog::FACTS {
        let of_issuance = matches!(fact.name, "lease" | "role" | "sealed_by" | "decision" | "audit")
            .then(|| format!("`{}` is about issuance, and no host has any", fact.name));
        if let Some(message) = of_issuance {
            assert_eq!(expect(fact.example), [message]);
        }
    }
    let step = |verb: &str| messages(&format!("[[step]]\nat = \"1s\"\n{verb}\n"));
    assert_eq!(step("kill = \"holder\""), ["`holder` is about issuance, and no host has any"]);
    assert_eq!(step("pause_issuance = \"a\""), ["`pause_issuance` is about issuance, and no host has any"]);
}

#[test]
fn a_fact_of_the_issuance_that_says_nothing_is_refused() {
    let expect = |fact: &str| messages(&format!("{ISSUANCE}[[expect]]\nsometimes = {{ {fact} }}\n"));
    assert_eq!(expect("lease = {}"), ["`lease` says nothing about the lease"]);
    assert_eq!(expect("lease = { holder = \"x\" }"), ["unknown host `x`"]);
    assert_eq!(expect("decision = { is = \"promotes\" }"), ["no election decides `promotes`"]);
    assert_eq!(expect("decision = { is = \"successor_is_x\" }"), ["unknown host `x`"]);
    assert_eq!(expect("audit = { figure = \"span\" }"), ["`audit` says nothing about the value"]);
    let amount = "audit = { figure = \"span\", equals = \"1.5\" }";
    assert_eq!(expect(amount), ["`span` counts, it is no amount"]);
    assert_eq!(expect("event = { silent = \"a\", epoch = 1 }"), ["`silent` has no `epoch`"]);
}

#[test]
fn a_verb_shows_its_shape() {
    let shape = |name: &str| catalog::VERBS.iter().find(|verb| verb.name == name).map(catalog::Verb::shape);
    assert_eq!(shape("kill").as_deref(), Some("kill = TARGET"));
    assert_eq!(shape("heal").as_deref(), Some("heal = true"));
    assert_eq!(shape("partition").as_deref(), Some("partition = [[HOST, …], …]"));
    assert_eq!(
        shape("restart").as_deref(),
        Some("restart = TARGET or { target, [wall], [addr], [lose_disk] }")
    );
    assert_eq!(shape("cut").as_deref(), Some("cut = { from, to }"));
}

#[test]
fn verbs_carry_their_values() {
    let drill = read(&format!(
        r#"{HEAD}{ABC}
[[step]]
at = "1s"
restart = {{ target = "a", wall = "-2h", addr = "192.168.0.9:7946" }}
[[step]]
after = "1s"
partition = [["a"], ["b", "c"]]
for = "5s"
[[step]]
at = "20s"
link = {{ from = "a", to = ["b", "c"], latency = "50ms..200ms", loss = "10%" }}
[[step]]
at = "30s"
replay_frames = {{ from = "b", to = "a", captured = "0s..5s", count = 2 }}
[[step]]
at = "40s"
every = "10s"
until = "80s"
flood = {{ to = "all", connections = 200, send = "half_frame" }}
[[step]]
at = "90s"
partition = ["minority"]
"#
    ));
    let verbs: Vec<&Verb> = drill.steps.iter().map(|step| &step.verb).collect();
    assert_eq!(
        verbs[0],
        &Verb::Restart {
            target: on(&[0]),
            wall_step_us: Some(-7_200_000_000),
            addr: "192.168.0.9:7946".parse().ok(),
            lose_disk: false,
        }
    );
    assert_eq!(verbs[1], &Verb::Partition(vec![on(&[0]), on(&[1, 2])]));
    assert_eq!(drill.steps[1].start, Start::AfterStep(StepIx(0), secs(1)));
    assert_eq!(drill.steps[1].lasts, Some(secs(5)));
    let Verb::Link { to, latency, loss_ppm, bandwidth, .. } = verbs[2] else { panic!("a link") };
    assert_eq!((to, *loss_ppm, *bandwidth), (&on(&[1, 2]), Some(100_000), None));
    assert_eq!(*latency, Some((Duration::from_millis(50), Duration::from_millis(200))));
    let Verb::ReplayFrames { captured_until, count, .. } = verbs[3] else { panic!("a replay") };
    assert_eq!((*captured_until, *count), (Some(secs(5)), 2));
    assert_eq!(verbs[4], &Verb::Flood { to: Target::All, connections: 200, garbage: FloodKind::HalfFrame });
    assert_eq!((drill.steps[4].every, drill.steps[4].until), (Some(secs(10)), Some(secs(80))));
    assert_eq!(verbs[5], &Verb::Partition(vec![Target::Minority]));
    assert!(drill.needs_full());
}

#[test]
fn facts_carry_their_values() {
    let drill = read(&format!(
        r#"{HEAD}{ABC}
[[workload]]
increment = "sightings"
every = "1s"
on = ["a", "b"]
[[expect]]
at_end = {{ counter = {{ name = "sightings", equals = "truth" }} }}
[[expect]]
always = {{ view = {{ on = ["a"], members = ["c", "a"] }} }}
[[expect]]
from = "5s"
sometimes = {{ metric = {{ name = "firedrill_cluster_frames_rejected_total", reason = "mac", on = "a", at_least = 1 }} }}
"#
    ));
    assert_eq!(drill.workloads[0].on, [HostIx(0), HostIx(1)]);
    assert_eq!(drill.workloads[0].from, secs(1), "one period after the start");
    let Fact::Counter { value, .. } = &drill.expects[0].fact else { panic!("a counter") };
    assert_eq!(*value, Bound::Truth);
    let Fact::View { on, members } = &drill.expects[1].fact else { panic!("a view") };
    assert_eq!((on.as_slice(), members.len()), ([HostIx(0)].as_slice(), 2));
    let Fact::Metric { label, .. } = &drill.expects[2].fact else { panic!("a metric") };
    assert_eq!(label.as_ref().map(|(name, value)| (name.as_str(), value.as_str())), Some(("reason", "mac")));
    assert_eq!(drill.expects[2].from, Some(Moment::At(secs(5))));
}

#[test]
fn an_included_file_lies_under_its_includer() {
    let common = "seed = 7\ninclude = [\"deeper.toml\"]\n[net]\nlatency = \"9ms\"\nloss = \"1%\"\n\
                  [config.cluster]\npush_interval_ms = 100\nsuspicion_timeout_ms = 900\n\
                  [[step]]\nat = \"1s\"\nkill = \"a\"\n";
    let deeper = "seed = 8\n[config_for.b.cluster]\npush_interval_ms = 50\n";
    let text = format!(
        "include = [\"../common.toml\", \"../deeper.toml\"]\n{HEAD}{ABC}[net]\nlatency = \"3ms\"\n\
         [config.cluster]\npush_interval_ms = 200\n[[step]]\nat = \"2s\"\nrestart = \"a\"\n"
    );
    let drill = match read_with(&text, &[("common.toml", common), ("deeper.toml", deeper)], EVENT) {
        Ok(drill) => drill,
        Err(report) => panic!("{:?}", report.problems()),
    };
    assert_eq!(drill.seed, 7, "the nearer file wins");
    assert_eq!((drill.net.latency_max, drill.net.loss_ppm), (Duration::from_millis(3), 10_000));
    assert_eq!(drill.steps.len(), 2);
    assert_eq!(drill.steps[0].verb, Verb::Kill(on(&[0])), "included steps come first");
    assert_eq!(drill.hosts[0].config.push_interval_ms, 200);
    assert_eq!(drill.hosts[0].config.suspicion_timeout_ms, 900);
    assert_eq!(drill.hosts[1].config.push_interval_ms, 50, "config_for wins over any config");
    assert_eq!(drill.files.len(), 3, "a file included twice is read once");
}

/// A value of each type that TOML has, none of which fits everywhere.
const VALUES: [&str; 8] = ["true", "-1", "1e400", "\"\"", "[]", "{}", "1979-05-27", "[[1], { x = 2 }]"];

#[test]
fn every_key_of_every_table_may_be_mistyped_and_is_then_reported() {
    let tables: [(&str, &str, &[catalog::Key]); 6] = [
        ("[nodes]\nnames = [\"a\"]\n", "", catalog::NODES),
        ("", "[net]\n", catalog::NET),
        ("", "[[workload]]\n", catalog::WORKLOAD),
        ("", "[[step]]\n", catalog::STEP),
        ("", "[[expect]]\n", catalog::EXPECT),
        ("", "[liveness]\n", catalog::LIVENESS),
    ];
    for (nodes, table, keys) in tables {
        let nodes = if nodes.is_empty() { ABC } else { nodes };
        for key in keys.iter().filter(|key| !(table.is_empty() && key.name == "names")) {
            for value in ["-1", "1979-05-27", "[[1], { x = 2 }]"] {
                let text = format!("{HEAD}{nodes}{table}{} = {value}\n", key.name);
                let start = text.rfind(value).unwrap_or_default();
                let report = read_with(&text, &[], EVENT).expect_err(&text);
                let told = |problem: &firedrill_sim::scenario::Problem| {
                    problem.span().is_some_and(|span| span.start >= start && span.end <= start + value.len())
                };
                assert!(report.problems().iter().any(told), "{text}\n{:?}", report.problems());
            }
        }
    }
    for verb in catalog::VERBS {
        for value in VALUES.into_iter().filter(|value| !(*value == "true" && verb.name == "heal")) {
            let rest = format!("[[step]]\nat = \"1s\"\n{} = {value}\n", verb.name);
            assert!(!messages(&rest).is_empty(), "{rest}");
        }
        for key in verb.keys {
            for value in VALUES {
                let rest = format!("[[step]]\nat = \"1s\"\n{} = {{ {} = {value} }}\n", verb.name, key.name);
                assert!(!messages(&rest).is_empty(), "{rest}");
            }
        }
    }
}

#[test]
fn every_required_key_is_missed_by_name() {
    for key in catalog::TOP.iter().filter(|key| key.required) {
        let whole = format!("{HEAD}{ABC}");
        let without: String = if key.name == "nodes" {
            HEAD.into()
        } else {
            whole
                .lines()
                .filter(|line| !line.starts_with(&format!("{} =", key.name)))
                .map(|line| format!("{line}\n"))
                .collect()
        };
        let report = read_with(&without, &[], EVENT).expect_err(key.name);
        let found: Vec<String> = report.problems().iter().map(ToString::to_string).collect();
        assert_eq!(found, [format!("a scenario needs `{}`", key.name)]);
    }
    for verb in catalog::VERBS.iter().filter(|verb| verb.plain.is_none()) {
        let found = messages(&format!("[[step]]\nat = \"1s\"\n{} = {{}}\n", verb.name));
        for key in verb.keys.iter().filter(|key| key.required) {
            assert!(found.contains(&format!("`{}` needs `{}`", verb.name, key.name)), "{found:?}");
        }
    }
}

#[test]
fn numbers_and_moments_out_of_range_are_refused() {
    for rest in [
        "[[step]]\nat = \"11min\"\nkill = \"a\"\n",
        "[[step]]\nat = \"1s\"\npause = \"a\"\nfor = \"0s\"\n",
        "[[step]]\nat = \"1s\"\npause = \"a\"\nevery = \"1s\"\nuntil = \"11min\"\n",
        "[[step]]\nat = \"1s\"\npause = \"a\"\nfor = \"2s\"\nevery = \"1s\"\nuntil = \"9s\"\n",
        "[[step]]\nat = \"9min\"\npause = \"a\"\nfor = \"61s\"\n",
        "[[step]]\nat = \"1s\"\npause = \"a\"\nfor = \"61s\"\nevery = \"2min\"\nuntil = \"9min\"\n",
        "[[step]]\nat = \"1s\"\nclock_rate = { target = \"a\", rate = \"0.49\" }\n",
        "[[step]]\nat = \"1s\"\nforge_frames = { sender = \"b\", to = \"a\", count = 0 }\n",
        "[[step]]\nat = \"1s\"\nflood = { to = \"a\", connections = 10001, send = \"silent\" }\n",
        "[[step]]\nat = \"1s\"\nrestart = { target = \"a\", addr = \"0.0.0.0:7946\" }\n",
        "[[step]]\nat = \"1s\"\nrestart = { target = \"a\", addr = \"192.168.0.9:0\" }\n",
        "[[workload]]\nincrement = \"x\"\nevery = \"0s\"\n",
        "[[workload]]\nincrement = \"x\"\nevery = \"1s\"\nby = 0\n",
        "[[workload]]\nincrement = \"x\"\nevery = \"1s\"\nfrom = \"9s\"\nuntil = \"8s\"\n",
        "[net]\nloss = \"100.1%\"\n",
        "[net]\nlatency = \"0s..1ms\"\n",
        "[liveness]\nsettle_within = \"0s\"\n",
        "[[expect]]\nby = \"11min\"\nview = [\"a\"]\n",
    ] {
        assert_eq!(messages(rest).len(), 1, "{rest}\n{:?}", messages(rest));
    }
}

#[test]
fn a_secret_is_covered_wherever_a_report_shows_its_line() {
    for (quote, secret) in [("\"", "hunter2"), ("'", "hunter2"), ("\"\"\"", "\nhunter2\nhunter2")] {
        let text = format!(
            "{HEAD}{ABC}[config.cluster]\nenabld = true\nsecret = {quote}{secret}{quote}\nnode_idd = 'x'\n"
        );
        let report = read_with(&text, &[], EVENT).expect_err("unknown keys");
        let shown = report.render(miette::GraphicalTheme::unicode_nocolor(), 100);
        assert!(shown.contains("secret =") && !shown.contains("hunter2"), "{shown}");
        assert!(shown.contains("node_idd = 'x'") || quote.len() == 3, "{shown}");
    }
}

#[test]
fn oracles_are_turned_off_by_name_with_a_reason() {
    let options = LoadOptions { oracles: &["agreement", "counters"], ..EVENT };
    let off = |rest: &str| read_with(&format!("{HEAD}{ABC}[oracles]\noff = {{ {rest} }}\n"), &[], options);
    let drill = off("agreement = \"the secrets differ\"").expect("known, and with a reason");
    assert_eq!(drill.oracles_off.get("agreement").map(String::as_str), Some("the secrets differ"));
    assert!(off("agreemnt = \"the secrets differ\"").is_err());
    assert!(off("agreement = \" \"").is_err());
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC*") {
        let _ = read_with(&text, &[], EVENT);
    }

    #[test]
    fn no_value_anywhere_makes_the_reader_panic(
        key in 0usize..200,
        value in proptest::sample::select(VALUES.to_vec()),
        text in "[a-z0-9%.+-]{0,6}",
        quoted in any::<bool>(),
    ) {
        let mut names: Vec<&str> = catalog::TOP.iter().chain(catalog::NODES).chain(catalog::STEP)
            .chain(catalog::EXPECT).map(|key| key.name).collect();
        names.extend(catalog::VERBS.iter().map(|verb| verb.name));
        names.extend(catalog::FACTS.iter().map(|fact| fact.name));
        let name = names[key % names.len()];
        let value = if quoted { format!("{text:?}") } else { value.to_owned() };
        for table in ["", "[nodes]\n", "[net]\n", "[[step]]\n", "[[expect]]\n", "[[workload]]\n"] {
            let _ = read_with(&format!("{table}{name} = {value}\n"), &[], EVENT).map_err(|report| {
                report.render(miette::GraphicalTheme::unicode_nocolor(), 40)
            });
        }
    }
}
