//! The configuration from outside: what is accepted, and how each mistake is told. Helpers here, tests below.

mod accepted;
mod arbitrary;
mod at_once;
mod issuance;
mod layers;
mod refused;
mod secrets;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::*;
use crate::issuance::window::Z;

fn env(variables: &[(&str, &str)]) -> BTreeMap<String, String> {
    variables.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect()
}

fn parse(text: &str) -> Result<Config, Problems> {
    Config::parse(text, &env(&[]))
}

/// The only problem of a text.
fn problem(text: &str) -> Problem {
    only(parse(text))
}

/// The only problem of an environment.
fn env_problem(variable: &str, value: &str) -> Problem {
    only(Config::parse("", &env(&[(variable, value)])))
}

fn only(result: Result<Config, Problems>) -> Problem {
    let problems = result.unwrap_err();
    assert_eq!(problems.as_slice().len(), 1, "{problems}");
    problems.into_iter().next().unwrap()
}

fn line(place: &Place) -> usize {
    match place {
        Place::File { line, .. } => *line,
        Place::Env { .. } | Place::Missing => panic!("not in a file: {place}"),
    }
}

fn addr(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// A value for each key that differs from its default, failover's apart: as TOML and as a variable.
const VALUES: [(&str, &str, &str); 26] = [
    ("cluster.enabled", "true", "true"),
    ("cluster.secret", "\"correct horse battery\"", "correct horse battery"),
    ("cluster.cluster_name", "\"staging\"", "staging"),
    ("cluster.node_id", "\"web-1\"", "web-1"),
    ("cluster.bind_addr", "\"0.0.0.0:7946\"", "0.0.0.0:7946"),
    ("cluster.advertise_addr", "\"10.0.1.7:7946\"", "10.0.1.7:7946"),
    ("cluster.seed_peers", "[\"10.0.1.8:7946\", \"[::1]:7947\"]", "10.0.1.8:7946, [::1]:7947"),
    ("cluster.push_interval_ms", "100", "100"),
    ("cluster.suspicion_timeout_ms", "450", "450"),
    ("server.bind_addr", "\"127.0.0.1:3000\"", "127.0.0.1:3000"),
    ("issuance.enabled", "true", "true"),
    ("issuance.issuer", "\"web-2\"", "web-2"),
    ("issuance.width", "2", "2"),
    ("issuance.rate", "\"1.5\"", "1.5"),
    ("issuance.genesis_ms", "1000", "1000"),
    ("issuance.max_elapsed_per_seal", "9", "9"),
    ("issuance.catchup_max_z", "100", "100"),
    ("issuance.failover", "true", "true"),
    ("issuance.silence_z", "70", "70"),
    ("issuance.boot_grace_z", "41", "41"),
    ("issuance.check_z", "17", "17"),
    ("issuance.pull_z", "21", "21"),
    ("issuance.probe_timeout_ms", "1500", "1500"),
    ("issuance.eligible", "[\"web-3\", \"web-1\", \"web-2\"]", "web-3, web-1,web-2"),
    ("issuance.fencing", "\"majority\"", "majority"),
    ("issuance.fence_z", "50", "50"),
];

fn expected() -> Config {
    Config {
        cluster: ClusterConfig {
            enabled: true,
            secret: Secret::new("correct horse battery"),
            cluster_name: ClusterName::new("staging").unwrap(),
            node_id: Some(NodeId::new("web-1").unwrap()),
            bind_addr: addr("0.0.0.0:7946"),
            advertise_addr: Some(addr("10.0.1.7:7946")),
            seed_peers: Vec::from([addr("10.0.1.8:7946"), addr("[::1]:7947")]),
            push_interval_ms: 100,
            suspicion_timeout_ms: 450,
        },
        server: ServerConfig { bind_addr: addr("127.0.0.1:3000") },
        issuance: Some(IssuanceConfig {
            issuer: NodeId::new("web-2").unwrap(),
            width: 2,
            rate: "1.5".parse().unwrap(),
            genesis_ms: 1000,
            max_elapsed_per_seal: 9,
            catchup_max_z: Z(100),
            failover: true,
            silence_z: Z(70),
            boot_grace_z: Z(41),
            check_z: Z(17),
            pull_z: Z(21),
            probe_timeout_ms: 1500,
            eligible: ids(&["web-1", "web-2", "web-3"]),
            fencing: Fencing::Majority,
            fence_z: Z(50),
        }),
    }
}

fn ids(names: &[&str]) -> BTreeSet<NodeId> {
    names.iter().map(|name| NodeId::new(name).unwrap()).collect()
}

fn file_of(value: impl Fn(&Key) -> Option<String>) -> String {
    KEYS.iter().filter_map(|key| Some(format!("{} = {}\n", key.path(), value(key)?))).collect()
}

fn value_of(key: &Key) -> (&'static str, &'static str) {
    let (_, toml, env) = VALUES.iter().find(|(path, ..)| *path == key.path()).unwrap();
    (toml, env)
}

/// Issuance switched on, with these lines.
fn issuance(lines: &str) -> String {
    format!("cluster.node_id = 'a'\n[issuance]\nenabled = true\nissuer = 'a'\n{lines}")
}

fn config(lines: &str) -> String {
    format!("[cluster]\n{lines}")
}

#[test]
fn every_key_is_documented_once_and_stands_in_a_section() {
    for (index, key) in KEYS.iter().enumerate() {
        assert!(!KEYS[..index].iter().any(|other| other.path() == key.path()), "{}", key.path());
        assert!(SECTIONS.iter().any(|(section, _)| *section == key.section), "{}", key.path());
        assert!(!key.rule.is_empty() && key.doc.len() > key.rule.len() && key.doc.ends_with('.'));
        assert!(!key.doc.contains("  "), "a broken line left blanks: {}", key.path());
    }
}
