//! Random text: no panic, and a valid configuration or well told problems.

use alloc::vec; // for prop_oneof!, beyond ten alternatives

use proptest::prelude::*;

use super::*;

/// Text that often gets past the TOML parser: known and unknown keys with values of all types.
fn plausible() -> impl Strategy<Value = String> {
    let key = prop_oneof![
        8 => proptest::sample::select(KEYS.map(|key| key.path()).to_vec()),
        1 => "(cluster|server|issuance)\\.[a-z_]{1,12}",
        1 => "[a-z]{1,8}",
    ];
    let value = prop_oneof![
        any::<bool>().prop_map(|value| value.to_string()),
        (0_u64..3000).prop_map(|value| value.to_string()),
        any::<i128>().prop_map(|value| value.to_string()),
        any::<f64>().prop_map(|value| format!("{value:?}")),
        any::<String>().prop_map(|value| format!("{value:?}")),
        any::<SocketAddr>().prop_map(|value| format!("\"{value}\"")),
        proptest::collection::vec(any::<SocketAddr>(), 0..4)
            .prop_map(|list| format!("{:?}", list.iter().map(ToString::to_string).collect::<Vec<_>>())),
        "\\[('[a-e]',){0,5}\\]",
        "'[a-e]'",
        "'[0-9]{0,3}\\.?[0-9]{0,13}'",
        Just(String::from("'majority'")),
        Just(String::from("{ a = 1 }")),
        Just(String::from("1979-05-27T07:32:00Z")),
    ];
    proptest::collection::btree_map(key, value, 0..16)
        .prop_map(|lines| lines.into_iter().map(|(key, value)| format!("{key} = {value}\n")).collect())
}

fn assert_valid(config: &Config) {
    let cluster = &config.cluster;
    assert!(cluster.push_interval_ms >= 10);
    assert!(u128::from(cluster.suspicion_timeout_ms) >= 3 * u128::from(cluster.push_interval_ms));
    assert!(!cluster.enabled || cluster.secret.as_bytes().len() >= 16);
    let dialled = cluster.advertise_addr.iter().chain(&cluster.seed_peers);
    assert!(dialled.clone().all(|addr| addr.port() != 0 && !addr.ip().is_unspecified()));
    assert!(!cluster.bind_addr.ip().is_unspecified() || cluster.advertise_addr.is_some());
    if let Some(issuance) = &config.issuance {
        assert!(cluster.node_id.is_some());
        assert_valid_issuance(issuance);
    }
}

fn assert_valid_issuance(issuance: &IssuanceConfig) {
    let [silence, pull, check, width, fence] =
        [issuance.silence_z.0, issuance.pull_z.0, issuance.check_z.0, issuance.width, issuance.fence_z.0]
            .map(u128::from);
    assert!(width >= 1 && pull >= 1 && check >= 1 && fence >= 1 && issuance.boot_grace_z.0 >= 1);
    assert!(silence > pull + check && silence >= 2 * width + 2 * pull);
    assert!(issuance.max_elapsed_per_seal >= 1 && issuance.probe_timeout_ms >= 10);
    assert!(issuance.rate.checked_mul(issuance.elapsed_max()).is_ok());
    assert!(issuance.eligible.is_empty() || issuance.eligible.contains(&issuance.issuer));
    if issuance.fencing == Fencing::Majority {
        assert!(issuance.failover && issuance.eligible.len() >= 3 && fence * 10 <= silence * 8);
    }
}

fn assert_well_told(text: &str, problems: &Problems) {
    assert!(!problems.as_slice().is_empty());
    for (index, problem) in problems.iter().enumerate() {
        assert!(!problems.as_slice()[..index].contains(problem), "told twice: {problem}");
        if let Place::File { line, span, .. } = &problem.place {
            assert!(span.start <= span.end && span.end <= text.len(), "{problem}");
            assert!(*line <= 1 + text.matches('\n').count(), "{problem}");
        }
    }
    assert!(!problems.to_string().is_empty());
}

proptest! {
    #[test]
    fn no_text_panics(text in any::<String>()) {
        if let Err(problems) = parse(&text) {
            assert_well_told(&text, &problems);
        }
    }

    #[test]
    fn plausible_text_gives_a_valid_configuration_or_problems(text in plausible()) {
        match parse(&text) {
            Ok(config) => assert_valid(&config),
            Err(problems) => assert_well_told(&text, &problems),
        }
    }

    #[test]
    fn no_variable_panics(
        key in proptest::sample::select(KEYS.to_vec()),
        value in any::<String>(),
        other in "FIREDRILL_[A-Z_]{0,20}",
    ) {
        let variables = env(&[(&key.env(), &value), (&other, &value)]);
        if let Ok(config) = Config::parse("", &variables) {
            assert_valid(&config);
        }
    }
}
