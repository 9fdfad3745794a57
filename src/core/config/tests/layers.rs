//! Several layers: what overrides what, and which layer a problem names.

use toml::de::DeTable;

use super::*;

fn read(texts: &[&str], variables: &[(&str, &str)]) -> Result<Config, Problems> {
    let names = ["base", "all", "one"];
    let tables: Vec<_> = texts.iter().map(|text| DeTable::parse(text).unwrap()).collect();
    let layers: Vec<_> = (tables.iter().zip(texts).zip(names))
        .map(|((table, text), name)| Layer { table: table.get_ref(), origin: Origin { name, text } })
        .collect();
    Config::from_layers(&layers, &env(variables))
}

#[test]
fn later_layers_override_key_by_key_and_the_environment_all() {
    let base =
        "[cluster]\nnode_id = 'a'\npush_interval_ms = 100\ncluster_name = 'x'\nseed_peers = ['1.1.1.1:1']";
    let all = "[cluster]\npush_interval_ms = 200\ncluster_name = 'y'\nseed_peers = ['2.2.2.2:2']";
    let one = "[cluster]\ncluster_name = 'z'";
    let config = read(&[base, all, one], &[]).unwrap().cluster;
    assert_eq!(config.node_id.unwrap().as_str(), "a");
    assert_eq!(config.push_interval_ms, 200);
    assert_eq!(config.cluster_name.as_str(), "z");
    assert_eq!(config.seed_peers, [addr("2.2.2.2:2")], "lists replace lists");
    let config = read(&[base, all, one], &[("FIREDRILL_CLUSTER__CLUSTER_NAME", "e")]).unwrap().cluster;
    assert_eq!(config.cluster_name.as_str(), "e");
}

#[test]
fn a_problem_names_its_layer_and_an_override_hides_none() {
    let all = "[cluster]\n\npush_interval_ms = 9";
    let one = "[cluster]\npush_interval_ms = 500\nnode_id = 4";
    let problems = read(&["", all, one], &[]).unwrap_err();
    let places: Vec<_> = problems.iter().map(|problem| problem.place.to_string()).collect();
    assert_eq!(places, ["all:3", "one:3"]);
    assert!(matches!(problems.as_slice()[0].place, Place::File { layer: 1, .. }));
    assert!(matches!(problems.as_slice()[1].place, Place::File { layer: 2, .. }));
}

#[test]
fn relations_hold_on_the_merged_result_only() {
    let all = "[cluster]\nsuspicion_timeout_ms = 3000\nbind_addr = '0.0.0.0:1'\nsecret = 'x'";
    let one = "[cluster]\npush_interval_ms = 1000\nadvertise_addr = '10.0.0.1:1'\nenabled = true";
    let secret = ("FIREDRILL_CLUSTER__SECRET", "correct horse battery");
    assert!(read(&["", all, one], &[secret]).is_ok());
    assert!(read(&["", all], &[secret]).is_err());

    let push = ("FIREDRILL_CLUSTER__PUSH_INTERVAL_MS", "1001");
    let problem = only(read(&["", all, one], &[secret, push]));
    assert!(problem.message.contains("suspicion_timeout_ms is 3000 (all:2)"), "{problem}");
    let environment = "push_interval_ms is 1001 (environment FIREDRILL_CLUSTER__PUSH_INTERVAL_MS)";
    assert!(problem.message.contains(environment), "{problem}");
}

#[test]
fn what_cannot_be_read_is_not_related() {
    let off = "[cluster]\nenabled = 'yes'\npush_interval_ms = 'x'\nsuspicion_timeout_ms = 1";
    let problems = read(&[off], &[]).unwrap_err();
    let keys: Vec<_> = problems.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys, ["cluster.enabled", "cluster.push_interval_ms"]);

    let mistyped = only(read(&["[cluster]\nenabled = true\nsecret = 7"], &[]));
    assert!(mistyped.message.contains("must be a string"), "{mistyped}");
    let undialable = only(read(&["[cluster]\nbind_addr = '0.0.0.0:1'\nadvertise_addr = 'x'"], &[]));
    assert_eq!(undialable.key, "cluster.advertise_addr");
}
