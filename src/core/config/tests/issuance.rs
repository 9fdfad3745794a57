//! `[issuance]`: the rules that are its own.

use super::*;

#[test]
fn issuance_that_is_off_is_absent_whatever_else_is_given() {
    assert_eq!(parse("[issuance]\nissuer = 'a'\nsilence_z = 100").unwrap().issuance, None);
    assert_eq!(parse("[issuance]\nenabled = false").unwrap().issuance, None);
}

#[test]
fn the_defaults_of_issuance_are_those_that_its_keys_name() {
    let lines = keys_of("issuance").filter(|key| key.name != "enabled");
    let written_out: String =
        lines.filter_map(|key| Some(format!("{} = {}\n", key.name, key.default?))).collect();
    let config = parse(&issuance(&written_out)).unwrap().issuance.unwrap();
    assert_eq!(Some(&config), parse(&issuance("")).unwrap().issuance.as_ref());
    assert_eq!((config.silence_z, config.rate.to_string()), (Z(60), "0.999999999999".into()));
    assert!(config.eligible.is_empty() && config.failover && config.fencing == Fencing::None);
}

#[test]
fn issuance_needs_its_issuer_and_a_name_that_lasts() {
    let problems = parse("[issuance]\nenabled = true").unwrap_err();
    let told: Vec<_> = problems.iter().map(|p| (p.key.as_str(), &p.place)).collect();
    assert_eq!(told, [("cluster.node_id", &Place::Missing), ("issuance.issuer", &Place::Missing)]);
    assert!(problems.iter().all(|p| p.message.contains("issuance.enabled is true (line 2)")), "{problems}");
}

#[test]
fn a_silence_that_pulls_and_checks_fill_shows_its_numbers() {
    let problem = problem(&issuance("silence_z = 41\ncheck_z = 21"));
    assert_eq!((problem.key.as_str(), line(&problem.place)), ("issuance.silence_z", 5));
    for phrase in [
        "issuance.silence_z is 41 (line 5)",
        "pull_z + check_z = 20 + 21 = 41",
        "2 x width + 2 x pull_z = 2 x 1 + 2 x 20 = 42",
        "check_z: line 6",
        "pull_z: the default",
    ] {
        assert!(problem.message.contains(phrase), "{phrase}: {problem}");
    }
    assert_eq!(problem.help.as_deref(), Some("raise silence_z to 42 or more, or lower the others"));
}

#[test]
fn both_bounds_of_the_silence_hold_on_their_own() {
    let accepts = |lines: &str| parse(&issuance(lines)).is_ok();
    assert!(accepts("silence_z = 42") && !accepts("silence_z = 41"));
    assert!(accepts("silence_z = 42\ncheck_z = 21") && !accepts("silence_z = 42\ncheck_z = 22"));
    assert!(accepts("silence_z = 60\nwidth = 10") && !accepts("silence_z = 60\nwidth = 11"));
    let blamed = problem(&issuance("\nwidth = 11"));
    assert_eq!((blamed.key.as_str(), line(&blamed.place)), ("issuance.silence_z", 6));
    let hopeless = problem(&issuance("pull_z = 18446744073709551615"));
    assert_eq!(hopeless.help.as_deref(), Some("lower pull_z, check_z or width"));
}

#[test]
fn the_issuer_is_one_of_the_eligible() {
    let problem = problem(&issuance("eligible = ['b', 'c']"));
    assert_eq!((problem.key.as_str(), line(&problem.place)), ("issuance.issuer", 4));
    assert!(problem.message.contains("\"a\", which is not in issuance.eligible (line 5)"), "{problem}");
    assert!(parse(&issuance("eligible = ['b', 'a']")).is_ok());
}

#[test]
fn an_eligible_node_is_named_once_and_by_a_valid_id() {
    let problems = parse(&issuance("eligible = ['a', 'b#', 'a', 3, '']")).unwrap_err();
    let told: Vec<_> = problems.iter().map(|p| p.key.as_str()).collect();
    let [one, two, three, four] = [1, 2, 3, 4].map(|index| format!("issuance.eligible[{index}]"));
    assert_eq!(told, [one, two, three, four]);
    assert!(problems.as_slice()[1].message.ends_with("names \"a\" again"), "{problems}");
    let variable = "FIREDRILL_ISSUANCE__ELIGIBLE";
    assert!(env_problem(variable, "a, b, a").message.contains("issuance.eligible[2] names \"a\" again"));
    assert_eq!(problem(&issuance("issuer = 'x#y'").replace("issuer = 'a'\n", "")).key, "issuance.issuer");
}

#[test]
fn a_fence_needs_an_electorate_of_three() {
    let fenced = "fencing = 'majority'";
    let missing = problem(&issuance(fenced));
    assert_eq!((missing.key.as_str(), line(&missing.place)), ("issuance.eligible", 5));
    assert!(missing.message.contains("names 0 nodes (the default)"), "{missing}");
    let two = problem(&issuance(&format!("{fenced}\neligible = ['a', 'b']")));
    assert!(two.message.contains("names 2 nodes (line 6)"), "{two}");
    assert!(parse(&issuance(&format!("{fenced}\neligible = ['a', 'b', 'c']"))).is_ok());
}

#[test]
fn a_fence_runs_out_well_before_the_silence() {
    let fenced = "fencing = 'majority'\neligible = ['a', 'b', 'c']\n";
    let accepts = |lines: &str| parse(&issuance(&format!("{fenced}{lines}"))).is_ok();
    assert!(accepts("fence_z = 48") && !accepts("fence_z = 49"));
    assert!(accepts("silence_z = 57") && !accepts("silence_z = 56"));
    let problem = problem(&issuance(&format!("{fenced}fence_z = 49")));
    assert_eq!((problem.key.as_str(), line(&problem.place)), ("issuance.fence_z", 7));
    assert!(problem.message.contains("at most 0.8 x silence_z = 0.8 x 60 (the default) = 48"), "{problem}");
    assert!(parse(&issuance("fence_z = 1000")).is_ok(), "without fencing it is not used");
}

#[test]
fn a_fence_without_failover_is_refused() {
    let lines = "fencing = 'majority'\neligible = ['a', 'b', 'c']\nfailover = false";
    let problem = problem(&issuance(lines));
    assert_eq!(problem.key, "issuance.fencing");
    assert!(problem.message.contains("issuance.failover is false (line 7)"), "{problem}");
}

#[test]
fn fencing_is_one_of_two_words() {
    let problem = problem(&issuance("fencing = 'majorty'"));
    assert!(problem.message.contains("must be \"none\" or \"majority\", not \"majorty\""), "{problem}");
    assert_eq!(problem.help.as_deref(), Some("did you mean \"majority\"?"));
}

#[test]
fn a_rate_is_an_exact_positive_decimal() {
    let says = |value: &str, phrase: &str| {
        let problem = problem(&issuance(&format!("rate = {value}")));
        assert_eq!(problem.key, "issuance.rate");
        assert!(problem.to_string().contains(phrase), "{problem}");
    };
    says("0.5", "put it in double quotes, so that it stays exact");
    says("1", "put it in double quotes");
    says("'0.0'", "\"0.0\", but must be above 0");
    says("'-1'", "carries the sign '-'");
    says("'0.0000000000001'", "has 13 decimal places");
    says("'1e3'", "has an exponent");
    assert!(env_problem("FIREDRILL_ISSUANCE__RATE", "0").message.contains("must be above 0"));
}

#[test]
fn a_row_that_covers_the_most_windows_fits_an_amount() {
    let problem = problem(&issuance("rate = '340282366920938463463374607'\ncatchup_max_z = 9"));
    assert_eq!((problem.key.as_str(), line(&problem.place)), ("issuance.rate", 5));
    assert!(problem.message.contains("times the 9 windows"), "{problem}");
    let one = "rate = '340282366920938463463374607'\nmax_elapsed_per_seal = 1";
    assert!(parse(&issuance(one)).is_ok());
    assert!(parse(&issuance(&format!("{one}\nfailover = false\ncatchup_max_z = 9"))).is_ok(), "unused");
}

#[test]
fn counts_and_times_have_their_least() {
    for (key, least) in [
        ("width", 1),
        ("max_elapsed_per_seal", 1),
        ("boot_grace_z", 1),
        ("check_z", 1),
        ("pull_z", 1),
        ("fence_z", 1),
        ("probe_timeout_ms", 10),
    ] {
        let problem = problem(&issuance(&format!("{key} = {}", least - 1)));
        assert!(problem.message.contains(&format!("but at least {least} is needed")), "{problem}");
        assert!(parse(&issuance(&format!("{key} = {least}"))).is_ok());
    }
}
