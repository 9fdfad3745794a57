//! What is accepted: defaults, every key from both sources, boundary values.

use super::*;

#[test]
fn the_defaults_of_the_table_are_those_of_an_empty_file() {
    let written_out = file_of(|key| key.default.map(String::from));
    assert_eq!(parse(&written_out).unwrap(), Config::default());
    assert_eq!(parse("").unwrap(), Config::default());
    assert_eq!(Config::from_layers(&[], &env(&[])).unwrap(), Config::default());
}

#[test]
fn every_key_is_read_from_a_file() {
    let text = file_of(|key| Some(value_of(key).0.into()));
    assert_eq!(parse(&text).unwrap(), expected());
}

#[test]
fn every_key_is_read_from_the_environment() {
    let env = KEYS.iter().map(|key| (key.env(), value_of(key).1.into())).collect();
    assert_eq!(Config::parse("", &env).unwrap(), expected());
}

#[test]
fn each_variable_overrides_the_file_for_its_key_alone() {
    let text = file_of(|key| Some(value_of(key).0.into()));
    let others = [
        ("FIREDRILL_CLUSTER__ENABLED", "false"),
        ("FIREDRILL_CLUSTER__SECRET", "another secret of some length"),
        ("FIREDRILL_CLUSTER__CLUSTER_NAME", "other"),
        ("FIREDRILL_CLUSTER__NODE_ID", "other"),
        ("FIREDRILL_CLUSTER__BIND_ADDR", "127.0.0.1:1"),
        ("FIREDRILL_CLUSTER__ADVERTISE_ADDR", "127.0.0.1:2"),
        ("FIREDRILL_CLUSTER__SEED_PEERS", "127.0.0.1:3"),
        ("FIREDRILL_CLUSTER__PUSH_INTERVAL_MS", "150"),
        ("FIREDRILL_CLUSTER__SUSPICION_TIMEOUT_MS", "300"),
        ("FIREDRILL_SERVER__BIND_ADDR", "127.0.0.1:4"),
        ("FIREDRILL_ISSUANCE__ENABLED", "false"),
        ("FIREDRILL_ISSUANCE__ISSUER", "web-3"),
        ("FIREDRILL_ISSUANCE__WIDTH", "3"),
        ("FIREDRILL_ISSUANCE__RATE", "2"),
        ("FIREDRILL_ISSUANCE__GENESIS_MS", "2000"),
        ("FIREDRILL_ISSUANCE__MAX_ELAPSED_PER_SEAL", "10"),
        ("FIREDRILL_ISSUANCE__CATCHUP_MAX_Z", "200"),
        ("FIREDRILL_ISSUANCE__FAILOVER", "true"),
        ("FIREDRILL_ISSUANCE__SILENCE_Z", "80"),
        ("FIREDRILL_ISSUANCE__BOOT_GRACE_Z", "42"),
        ("FIREDRILL_ISSUANCE__CHECK_Z", "18"),
        ("FIREDRILL_ISSUANCE__PULL_Z", "22"),
        ("FIREDRILL_ISSUANCE__PROBE_TIMEOUT_MS", "1600"),
        ("FIREDRILL_ISSUANCE__ELIGIBLE", "web-2,web-3,web-4"),
        ("FIREDRILL_ISSUANCE__FENCING", "none"),
        ("FIREDRILL_ISSUANCE__FENCE_Z", "51"),
    ];
    assert_eq!(others.map(|(name, _)| String::from(name)), KEYS.map(|key| key.env()));
    fn issuance(config: &mut Config) -> &mut IssuanceConfig {
        config.issuance.as_mut().unwrap()
    }
    let change: [fn(&mut Config); 26] = [
        |c| c.cluster.enabled = false,
        |c| c.cluster.secret = Secret::new("another secret of some length"),
        |c| c.cluster.cluster_name = ClusterName::new("other").unwrap(),
        |c| c.cluster.node_id = Some(NodeId::new("other").unwrap()),
        |c| c.cluster.bind_addr = addr("127.0.0.1:1"),
        |c| c.cluster.advertise_addr = Some(addr("127.0.0.1:2")),
        |c| c.cluster.seed_peers = Vec::from([addr("127.0.0.1:3")]),
        |c| c.cluster.push_interval_ms = 150,
        |c| c.cluster.suspicion_timeout_ms = 300,
        |c| c.server.bind_addr = addr("127.0.0.1:4"),
        |c| c.issuance = None,
        |c| issuance(c).issuer = NodeId::new("web-3").unwrap(),
        |c| issuance(c).width = 3,
        |c| issuance(c).rate = "2".parse().unwrap(),
        |c| issuance(c).genesis_ms = 2000,
        |c| issuance(c).max_elapsed_per_seal = 10,
        |c| issuance(c).catchup_max_z = Z(200),
        |c| issuance(c).failover = true,
        |c| issuance(c).silence_z = Z(80),
        |c| issuance(c).boot_grace_z = Z(42),
        |c| issuance(c).check_z = Z(18),
        |c| issuance(c).pull_z = Z(22),
        |c| issuance(c).probe_timeout_ms = 1600,
        |c| issuance(c).eligible = ids(&["web-2", "web-3", "web-4"]),
        |c| issuance(c).fencing = Fencing::None,
        |c| issuance(c).fence_z = Z(51),
    ];
    for (variable, change) in others.into_iter().zip(change) {
        let mut expected = expected();
        change(&mut expected);
        assert_eq!(Config::parse(&text, &env(&[variable])).unwrap(), expected, "{variable:?}");
    }
}

#[test]
fn an_empty_variable_is_unset() {
    let text = file_of(|key| Some(value_of(key).0.into()));
    let mut env: BTreeMap<String, String> = KEYS.iter().map(|key| (key.env(), String::new())).collect();
    env.insert("FIREDRILL_CLUSTER__NO_SUCH_KEY".into(), String::new());
    assert_eq!(Config::parse(&text, &env).unwrap(), expected());
}

#[test]
fn a_disabled_cluster_needs_no_secret_nor_a_long_one() {
    assert!(parse("cluster.enabled = false").is_ok());
    assert!(parse("cluster.enabled = false\ncluster.secret = 'short'").is_ok());
    assert!(parse("cluster.secret = ''").is_ok());
}

#[test]
fn an_absent_node_id_stays_absent() {
    assert_eq!(parse("[cluster]").unwrap().cluster.node_id, None);
}

#[test]
fn boundary_values_pass() {
    let passes = |lines: &str| assert!(parse(&config(lines)).is_ok(), "{lines}");
    passes("push_interval_ms = 10");
    passes("push_interval_ms = 10\nsuspicion_timeout_ms = 30");
    passes("suspicion_timeout_ms = 1500");
    passes("suspicion_timeout_ms = 18446744073709551615");
    passes("suspicion_timeout_ms = 9223372036854775808");
    passes("suspicion_timeout_ms = 0xffff_ffff_ffff_ffff");
    passes("push_interval_ms = 6148914691236517205\nsuspicion_timeout_ms = 18446744073709551615");
    passes("enabled = true\nsecret = '16 bytes exactly'");
    passes("enabled = true\nsecret = 'ééééääää'");
    passes(&format!("node_id = '{0}'\ncluster_name = '{0}'", "x".repeat(64)));
    passes("bind_addr = '127.0.0.1:65535'");
    passes("seed_peers = []");
}
