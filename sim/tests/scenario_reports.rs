//! What a stranger sees when a scenario is wrong: golden pictures of whole reports.
//!
//! A changed message shows here as a diff; read it as the user would before accepting it.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use firedrill_sim::engine::{EngineKind, Wire};
use firedrill_sim::scenario::{LoadOptions, Scenario};
use miette::GraphicalTheme;

const EVENT: LoadOptions = LoadOptions::for_engine(EngineKind::Event);

/// A valid head, so that each test shows only what it is about.
fn with_head(rest: &str) -> String {
    format!(
        "name = \"drill\"\nabout = \"A story.\"\ntime_limit = \"60s\"\n\
         [nodes]\nnames = [\"a\", \"b\", \"c\"]\n{rest}"
    )
}

fn report_with(text: &str, others: &[(&str, &str)], options: LoadOptions) -> String {
    let others: BTreeMap<&str, &str> = others.iter().copied().collect();
    let resolver = |path: &Path| {
        let name = path.to_str().unwrap_or_default();
        others.get(name).map(|text| (*text).to_owned()).ok_or_else(|| io::ErrorKind::NotFound.into())
    };
    match Scenario::parse(text, Path::new("drill.toml"), &resolver, options) {
        Ok(_) => "this scenario is valid".into(),
        Err(report) => report.render(GraphicalTheme::unicode_nocolor(), 100),
    }
}

fn report(text: &str) -> String {
    report_with(text, &[], EVENT)
}

#[test]
fn a_syntax_error_is_shown_alone() {
    insta::assert_snapshot!(report("name = \"drill\"\ntime_limit = 60s\n[[step]\nkil = \"b\"\n"));
}

#[test]
fn an_empty_file_is_told_what_a_scenario_needs() {
    insta::assert_snapshot!(report(""));
}

#[test]
fn unknown_words_get_suggestions_all_at_once() {
    insta::assert_snapshot!(report(&with_head(
        r#"[net]
latencey = "5ms"
[[step]]
at = "10s"
kil = "b"
[[step]]
at = "20s"
restart = "bb"
[[expect]]
by = "30s"
event = { donw = "b", on = "a" }
[[expect]]
by = "30s"
metric = { name = "firedrill_cluster_member", equals = 3 }
[[expect]]
from = "kil"
never = { veiw = ["a"] }
"#
    )));
}

#[test]
fn values_of_the_wrong_type_or_form_say_what_is_wanted() {
    insta::assert_snapshot!(report(&with_head(
        r#"[net]
latency = "0ms"
loss = 0.1
[[step]]
at = 10
kill = 7
[[step]]
at = "20"
clock_step = { target = "b", by = "1h" }
[[step]]
at = "30s"
cut = "a"
[[step]]
at = "30s"
clock_rate = { target = "b", rate = 3.0 }
"#
    )));
}

#[test]
fn a_step_has_one_moment_and_one_verb() {
    insta::assert_snapshot!(report(&with_head(
        r#"[[step]]
at = "10s"
kill = "b"
restart = "c"
[[step]]
kill = "b"
[[step]]
at = "20s"
after = "1s"
kill = "b"
[[step]]
at = "30s"
"#
    )));
}

#[test]
fn steps_stand_in_the_order_they_fire_and_within_the_time_limit() {
    insta::assert_snapshot!(report(&with_head(
        r#"[[step]]
at = "40s"
pause = "b"
[[step]]
at = "30s"
resume = "b"
[[step]]
when = "later"
kill = "b"
[[step]]
id = "later"
at = "2min"
restart = "b"
[[expect]]
from = "later"
by = "50s"
view = ["a", "b", "c"]
"#
    )));
}

#[test]
fn for_and_every_are_explained() {
    insta::assert_snapshot!(report(&with_head(
        r#"[[step]]
at = "10s"
kill = "b"
for = "5s"
[[step]]
at = "20s"
every = "5s"
pause = "c"
for = "1s"
[[step]]
at = "30s"
until = "40s"
heal = true
"#
    )));
}

#[test]
fn partitions_are_checked_for_sense() {
    insta::assert_snapshot!(report(&with_head(
        r#"[[step]]
at = "10s"
partition = [["a"], ["a", "b"]]
[[step]]
at = "20s"
partition = [["a"], []]
[[step]]
at = "30s"
partition = ["a", "b"]
[[step]]
at = "40s"
partition = [["a", "b", "c"]]
"#
    )));
}

#[test]
fn what_later_versions_bring_is_named_as_such() {
    insta::assert_snapshot!(report(&with_head(
        r#"[config.netting]
shards = 2
[[step]]
at = "10s"
kill = "owner(\"shop\")"
[[step]]
when = { settled = "b" }
rotate_secret = "b"
[[expect]]
by = "30s"
balance = { wallet = "b" }
"#
    )));
}

#[test]
fn issuance_is_checked_by_its_production_rules_and_told_once() {
    insta::assert_snapshot!(report(&with_head(
        r#"[config.issuance]
silence_z = 30
[[step]]
at = "10s"
kill = "holder"
"#
    )));
}

#[test]
fn the_configuration_is_checked_by_its_production_rules() {
    insta::assert_snapshot!(report(&with_head(
        r#"[config.cluster]
push_interval_ms = 5
suspision_timeout_ms = 2500
[config_for.b.cluster]
node_id = "b#1"
[config_for.d.cluster]
node_id = "d"
"#
    )));
}

#[test]
fn what_an_engine_cannot_do_is_refused_with_its_line() {
    let text = with_head(
        "[[step]]\nat = \"10s\"\nlink = { from = \"a\", to = \"b\", bandwidth = \"1MB/s\" }\n\
         [[step]]\nat = \"20s\"\nflood = { to = \"a\", connections = 200, send = \"garbage\" }\n",
    );
    let fast = LoadOptions { wire: Some(Wire::Fast), ..EVENT };
    let turmoil = LoadOptions::for_engine(EngineKind::Turmoil);
    let many = "name = \"many\"\nabout = \"Many.\"\ntime_limit = \"60s\"\n[nodes]\ncount = 64\n";
    insta::assert_snapshot!(format!(
        "--wire fast\n{}\n64 hosts, --engine turmoil\n{}",
        report_with(&text, &[], fast),
        report_with(many, &[], turmoil),
    ));
}

#[test]
fn included_files_are_shown_by_their_own_lines() {
    let text = format!("include = [\"common.toml\", \"missing.toml\"]\n{}", with_head(""));
    let fixed = format!(
        "include = [\"common.toml\"]\n{}",
        with_head("[[step]]\nid = \"cut\"\nat = \"5s\"\nkill = \"a\"\n")
    );
    let common = "# shared by several drills\n[[step]]\nid = \"cut\"\nat = \"1s\"\nkill = \"z\"\n";
    let cycle = "include = [\"./deeper/../drill.toml\"]\n";
    insta::assert_snapshot!(format!(
        "a missing file\n{}\nproblems in two files\n{}\na cycle\n{}",
        report_with(&text, &[("common.toml", common)], EVENT),
        report_with(&fixed, &[("common.toml", common)], EVENT),
        report_with(&fixed, &[("common.toml", cycle)], EVENT),
    ));
}

#[test]
fn hosts_that_come_later_and_names_that_clash_are_caught() {
    insta::assert_snapshot!(report(
        r#"name = "drill"
about = "A story."
time_limit = "60s"
[nodes]
names = ["a", "b", "a", "any", "1st"]
later = ["d", "e"]
wall = { b = "1h", z = "+1h" }
[config_for.b.cluster]
bind_addr = "192.168.0.1:7946"
[[step]]
at = "10s"
kill = "d"
[[step]]
at = "20s"
add_node = "d"
[[step]]
at = "30s"
add_node = ["a", "d"]
"#
    ));
}

#[test]
fn an_event_is_never_expected_always() {
    let text = report(&with_head("[[expect]]\nalways = { event = { up = \"any\" } }\n"));
    assert!(text.contains("an event happens, it does not last") && text.contains("`sometimes`"), "{text}");
}

#[test]
fn a_reason_belongs_to_an_event_of_a_connection_and_is_one_of_its_own() {
    insta::assert_snapshot!(report(&with_head(
        r#"[[expect]]
never = { event = { inbound_closed = "a", reason = "idel" } }
[[expect]]
never = { event = { link_reset = "a", reason = "idle" } }
[[expect]]
never = { event = { down = "a", reason = "idle" } }
[[expect]]
never = { event = { rejected = "mac", reason = "mac" } }
[[expect]]
never = { event = { inbound_closed = "any", reason = 3 } }
"#
    )));
}

#[test]
fn facts_say_one_thing_at_one_time() {
    insta::assert_snapshot!(report(&with_head(
        r#"[[workload]]
increment = "sightings"
every = "1s"
[[expect]]
view = ["a"]
[[expect]]
by = "10s"
always = { view = ["a"] }
[[expect]]
at_end = true
view = ["a"]
[[expect]]
by = "10s"
counter = { name = "sighting", at_least = 1, at_most = 2 }
[[expect]]
never = { event = { rejected = "macs" } }
[[expect]]
always = { metric = { name = "firedrill_cluster_frames_rejected_total", equals = 0 } }
[[expect]]
by = "10s"
event = { refuted = "a", on = "b" }
"#
    )));
}
