//! Random text: no panic, and a valid configuration or well told problems.

use proptest::prelude::*;

use super::*;

/// Text that often gets past the TOML parser: known and unknown keys with values of all types.
fn plausible() -> impl Strategy<Value = String> {
    let key = prop_oneof![
        8 => proptest::sample::select(KEYS.map(|key| key.path()).to_vec()),
        1 => "(cluster|server)\\.[a-z_]{1,12}",
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
        Just(String::from("{ a = 1 }")),
        Just(String::from("1979-05-27T07:32:00Z")),
    ];
    proptest::collection::btree_map(key, value, 0..10)
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
