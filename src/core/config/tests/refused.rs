//! What is refused: every key missing, mistyped, out of range, unknown; and what is said about it.

use super::*;

#[test]
fn text_that_is_no_toml_is_one_problem_with_its_line() {
    for (text, at) in [("a = 1\nb = \n", 2), ("[cluster", 1), ("x = 1\n\nx = 2\n", 3), ("[[a]\n", 1)] {
        let problem = problem(text);
        assert_eq!((line(&problem.place), problem.key.as_str()), (at, ""), "{text:?}: {problem}");
        assert!(problem.message.starts_with("this is not TOML: "), "{problem}");
    }
}

#[test]
fn a_value_of_the_wrong_type_says_what_was_expected_and_what_was_found() {
    let values = [
        ("true", "the boolean true"),
        ("17", "the integer 17"),
        ("1.5", "the float 1.5"),
        ("\"text\"", "the string \"text\""),
        ("1979-05-27", "the datetime 1979-05-27"),
        ("['text']", "a list"),
        ("{ a = 1 }", "a table"),
    ];
    for key in KEYS {
        let (own, expected) = match key.kind {
            Kind::Bool => (["true"].as_slice(), "must be true or false"),
            Kind::U64 { .. } => (["17"].as_slice(), "must be a whole number"),
            Kind::Secret => (["\"text\""].as_slice(), "must be a string"),
            Kind::Name => (["\"text\""].as_slice(), "must be a string"),
            Kind::ListenAddr | Kind::DialAddr => (["\"text\""].as_slice(), "must be an address such as"),
            Kind::DialAddrs => (["['text']"].as_slice(), "must be a list of addresses"),
            Kind::Names => (["['text']"].as_slice(), "must be a list of node ids"),
            Kind::Decimal => (["\"text\""].as_slice(), "must be a decimal in quotes"),
            Kind::Choice(_) => (["\"text\""].as_slice(), "must be \"none\" or \"majority\""),
        };
        for (value, found) in values.iter().filter(|(value, _)| !own.contains(value)) {
            let text = format!("\n{} = {value}\n", key.path());
            let problem = problem(&text);
            assert_eq!((problem.key.as_str(), line(&problem.place)), (key.path().as_str(), 2));
            assert!(problem.message.contains(expected), "{problem}");
            if key.kind == Kind::Secret {
                assert!(problem.message.contains("not shown"), "{problem}");
                assert!(!problem.message.contains(found), "{problem}");
            } else {
                assert!(problem.message.ends_with(found), "{problem}");
            }
        }
    }
}

#[test]
fn a_section_that_is_no_table_is_named() {
    for (text, found) in [("server = 3", "integer"), ("[[server]]", "array")] {
        let problem = problem(text);
        assert_eq!(problem.message, format!("server must be a table, but is of type {found}"));
        assert_eq!((problem.key.as_str(), line(&problem.place)), ("server", 1));
    }
}

#[test]
fn a_push_interval_below_ten_is_refused_with_value_and_bound() {
    let problem = problem(&config("push_interval_ms = 9"));
    assert_eq!(problem.key, "cluster.push_interval_ms");
    assert!(problem.message.contains("is 9, but at least 10 is needed"), "{problem}");
    assert_eq!(line(&problem.place), 2);
}

#[test]
fn numbers_outside_u64_are_told_apart() {
    let says = |value: &str, phrase: &str| {
        for key in ["push_interval_ms", "suspicion_timeout_ms"] {
            let problem = problem(&config(&format!("{key} = {value}")));
            assert!(problem.message.contains(phrase), "{value}: {problem}");
        }
        let variable = "FIREDRILL_CLUSTER__SUSPICION_TIMEOUT_MS";
        let decimal = !value.contains('x');
        if decimal {
            assert!(env_problem(variable, value).message.contains(phrase), "{value}");
        }
    };
    says("-1", "is -1, but must not be negative");
    says("-9223372036854775809", "must not be negative");
    says(&format!("-{}", "9".repeat(200)), "must not be negative");
    says("18446744073709551616", "is 18446744073709551616, but at most 18446744073709551615 fits");
    says("0x1_0000_0000_0000_0000", "but at most 18446744073709551615 fits");
    says(&"9".repeat(200), "but at most 18446744073709551615 fits");
}

#[test]
fn a_suspicion_below_three_pushes_shows_both_numbers_and_both_ways_out() {
    let problem = problem(&config("push_interval_ms = 100\nsuspicion_timeout_ms = 299"));
    assert_eq!(problem.key, "cluster.suspicion_timeout_ms");
    assert_eq!(line(&problem.place), 3);
    assert!(problem.message.contains("suspicion_timeout_ms is 299 (line 3)"), "{problem}");
    assert!(problem.message.contains("push_interval_ms is 100 (line 2)"), "{problem}");
    assert_eq!(
        problem.help.as_deref(),
        Some("raise suspicion_timeout_ms to 300 or more, or lower push_interval_ms to 99 or less")
    );
    assert!(parse(&config("push_interval_ms = 100\nsuspicion_timeout_ms = 300")).is_ok());
}

#[test]
fn a_suspicion_left_at_its_default_is_blamed_where_the_interval_stands() {
    let problem = problem(&config("\npush_interval_ms = 834"));
    assert_eq!((problem.key.as_str(), line(&problem.place)), ("cluster.suspicion_timeout_ms", 3));
    assert!(problem.message.contains("suspicion_timeout_ms is 2500 (the default)"), "{problem}");
    assert!(parse(&config("push_interval_ms = 833")).is_ok());
}

#[test]
fn a_ratio_that_no_u64_satisfies_is_refused_without_impossible_advice() {
    let problem = problem(&config("push_interval_ms = 18446744073709551615"));
    assert!(problem.message.contains("55340232221128654845"), "{problem}");
    assert_eq!(problem.help.as_deref(), Some("lower push_interval_ms to 833 or less"));
    let both = problem_keys(&config("push_interval_ms = 9\nsuspicion_timeout_ms = 20"));
    assert_eq!(both, ["cluster.push_interval_ms"], "what cannot be used is not related");
}

fn problem_keys(text: &str) -> Vec<String> {
    parse(text).unwrap_err().into_iter().map(|problem| problem.key).collect()
}

#[test]
fn an_enabled_cluster_needs_a_secret_of_sixteen_bytes() {
    let missing = problem(&config("enabled = true"));
    assert_eq!((missing.key.as_str(), &missing.place), ("cluster.secret", &Place::Missing));
    assert!(missing.message.contains("cluster.enabled is true (line 2)"), "{missing}");
    assert!(missing.help.unwrap().contains("FIREDRILL_CLUSTER__SECRET"));

    let short = problem(&config("enabled = true\nsecret = 'fifteen bytes !'"));
    assert_eq!((short.key.as_str(), line(&short.place)), ("cluster.secret", 3));
    assert!(short.message.contains("is 15 bytes long, but at least 16 are needed"), "{short}");

    let empty = problem(&config("enabled = true\nsecret = ''"));
    assert!(empty.message.contains("is 0 bytes long"), "{empty}");
}

#[test]
fn a_name_that_breaks_its_rule_is_quoted_with_the_rule() {
    for key in ["node_id", "cluster_name"] {
        let says = |value: &str, phrase: &str| {
            let in_file = problem(&config(&format!("{key} = '{value}'")));
            assert_eq!(in_file.key, format!("cluster.{key}"));
            assert!(in_file.message.contains(phrase), "{in_file}");
            if !value.is_empty() {
                let variable = format!("FIREDRILL_CLUSTER__{}", key.to_ascii_uppercase());
                let in_env = env_problem(&variable, value);
                assert_eq!(in_env.message, in_file.message);
                assert_eq!(in_env.place, Place::Env { variable });
            }
        };
        says("", "\"\" is blank");
        says("  ", "\"  \" is blank");
        says("a#b", "\"a#b\" contains '#'");
        says(&"x".repeat(65), "is 65 bytes long; at most 64");
    }
}

#[test]
fn an_address_that_cannot_be_read_says_what_is_likely_wrong() {
    let help = |value: &str| {
        let problem = problem(&config(&format!("bind_addr = {value:?}")));
        assert!(
            problem.message.contains(&format!("must be an address such as \"10.0.1.7:7946\", not {value:?}"))
        );
        problem.help.unwrap_or_default()
    };
    assert!(help("db.internal:7946").contains("host names are not resolved"));
    assert!(help("localhost").contains("host names are not resolved"));
    assert!(help("10.0.0.1").contains("add a port"));
    assert!(help("::1").contains("add a port"));
    assert!(help("10.0.0.1:65536").contains("from 0 to 65535"));
    assert!(help("10.0.0.1:").contains("from 0 to 65535"));
    assert!(help("[::1]:http").contains("from 0 to 65535"));
    assert!(help("").contains("remove what is empty"));
}

#[test]
fn an_advertised_address_is_never_a_wildcard_nor_on_port_0() {
    let says = |value: &str, phrase: &str| {
        let problem = problem(&config(&format!("advertise_addr = '{value}'")));
        assert_eq!(problem.key, "cluster.advertise_addr");
        assert!(problem.message.contains(phrase), "{problem}");
    };
    says("0.0.0.0:7946", "is a wildcard");
    says("[::]:7946", "is a wildcard");
    says("[::ffff:0.0.0.0]:7946", "is a wildcard");
    says("10.0.0.1:0", "has port 0");
    says("0.0.0.0:0", "is a wildcard with port 0");
}

#[test]
fn a_wildcard_bind_without_an_advertised_address_names_both_keys() {
    for wildcard in ["0.0.0.0:7946", "[::]:0", "[::ffff:0.0.0.0]:1"] {
        let problem = problem(&config(&format!("bind_addr = '{wildcard}'")));
        assert_eq!((problem.key.as_str(), line(&problem.place)), ("cluster.bind_addr", 2));
        assert!(problem.message.contains("cluster.bind_addr is the wildcard"), "{problem}");
        assert!(problem.message.contains("cluster.advertise_addr is not given"), "{problem}");
    }
    assert!(parse("server.bind_addr = '0.0.0.0:80'").is_ok(), "nobody is told the admin server's address");
}

#[test]
fn bad_seeds_are_named_by_index_and_line() {
    let text =
        config("seed_peers = [\n  '10.0.0.1:7946',\n  'web-2:7946',\n  7,\n  '0.0.0.0:1',\n  '10.0.0.1:0']");
    let problems = parse(&text).unwrap_err();
    let told: Vec<_> = problems.iter().map(|p| (p.key.as_str(), line(&p.place))).collect();
    let seeds =
        ["cluster.seed_peers[1]", "cluster.seed_peers[2]", "cluster.seed_peers[3]", "cluster.seed_peers[4]"];
    assert_eq!(told, seeds.into_iter().zip([4, 5, 6, 7]).collect::<Vec<_>>());
    assert!(problems.iter().all(|p| p.message.starts_with(&p.key)), "{problems}");
}

#[test]
fn bad_seeds_of_the_environment_are_named_by_index() {
    let variable = "FIREDRILL_CLUSTER__SEED_PEERS";
    let trailing = env_problem(variable, "10.0.0.1:1,");
    assert_eq!(trailing.key, "cluster.seed_peers[1]");
    assert!(trailing.help.unwrap().contains("remove what is empty"));
    assert_eq!(env_problem(variable, "host:1 , 10.0.0.1:1").key, "cluster.seed_peers[0]");
}

#[test]
fn values_of_variables_are_read_strictly() {
    let says = |variable: &str, value: &str, phrase: &str| {
        let problem = env_problem(variable, value);
        assert_eq!(problem.place, Place::Env { variable: variable.into() });
        assert!(problem.message.contains(phrase), "{problem}");
    };
    says("FIREDRILL_CLUSTER__ENABLED", "yes", "must be true or false, not \"yes\"");
    says("FIREDRILL_CLUSTER__PUSH_INTERVAL_MS", "fast", "must be a whole number, not \"fast\"");
    says("FIREDRILL_CLUSTER__PUSH_INTERVAL_MS", "500.0", "must be a whole number, not \"500.0\"");
    says("FIREDRILL_CLUSTER__PUSH_INTERVAL_MS", "9", "is 9, but at least 10 is needed");
    says("FIREDRILL_SERVER__BIND_ADDR", "3000", "must be an address");
}

#[test]
fn an_unknown_key_or_section_gets_a_suggestion() {
    let helps = |text: &str, key: &str, phrase: &str| {
        let problem = problem(text);
        assert_eq!(problem.key, key);
        assert!(problem.help.as_deref().unwrap().contains(phrase), "{problem}");
    };
    helps("[cluster]\npush_intervall_ms = 5", "cluster.push_intervall_ms", "did you mean push_interval_ms?");
    helps("[cluster]\nseed-peers = []", "cluster.seed-peers", "did you mean seed_peers?");
    helps("[cluster]\nfrobnicate = 5", "cluster.frobnicate", "[cluster] has enabled, secret,");
    helps("[server]\nnode_id = 'a'", "server.node_id", "node_id belongs in [cluster]");
    helps("[clutser]\nenabled = true", "clutser", "did you mean [cluster]?");
    helps("node_id = 'a'", "node_id", "node_id belongs in [cluster]");
    helps("[vegetables]", "vegetables", "there are [cluster], [server], [issuance]");
}

#[test]
fn a_variable_that_overrides_nothing_gets_a_suggestion() {
    let helps = |variable: &str, phrase: &str| {
        let problem = env_problem(variable, "x");
        assert_eq!(problem.key, variable);
        assert!(problem.help.as_deref().unwrap().contains(phrase), "{problem}");
    };
    helps("FIREDRILL_CLUSTER__SECERT", "did you mean FIREDRILL_CLUSTER__SECRET?");
    helps("FIREDRILL_CLUSTER__secret", "did you mean FIREDRILL_CLUSTER__SECRET?");
    helps("FIREDRILL_CLUSTER_SECRET", "two underscores: FIREDRILL_CLUSTER__SECRET");
    helps("FIREDRILL_CLUSTR__NODE_ID", "did you mean FIREDRILL_CLUSTER__NODE_ID?");
    helps("FIREDRILL_SERVER__BINDADDR", "did you mean FIREDRILL_SERVER__BIND_ADDR?");
    helps("FIREDRILL_SERVER__", "FIREDRILL_SERVER__BIND_ADDR");
}

#[test]
fn variables_of_others_are_left_alone() {
    let others = [
        "PATH",
        "FIREDRILL_LOG",
        "FIREDRILL_SERVER_PORT",
        "FIREDRILL_CLUSTER_SERVICE_HOST",
        "FIREDRILL_STORE__URL",
    ];
    for variable in others {
        assert!(Config::parse("", &env(&[(variable, "x")])).is_ok(), "{variable}");
    }
}
