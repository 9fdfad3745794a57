//! The secret is in nothing that is printed.

use toml::de::DeTable;

use super::*;

const MARK: &str = "hunter2hunter";

#[test]
fn a_secret_is_in_no_message_and_no_debug() {
    let texts = [
        "[cluster]\nenabled = true\nsecret = 'hunter2hunter'",
        "[cluster]\nenabled = true\nsecret = ['hunter2hunter']",
        "[cluster]\nenabled = true\nsecret = { hunter2hunter = 1 }",
        "[cluster]\nenabled = true\nsecrte = 'hunter2hunter'",
        "[cluster]\nenabled = true\nsecret = hunter2hunter",
        "[cluster]\nenabled = true\nsecret = 'hunter2hunter",
        "[cluster]\nenabled = true\nsecret 'hunter2hunter'",
        "secret = 'hunter2hunter'",
        "cluster = 'hunter2hunter'",
        "[server]\nsecret = 'hunter2hunter'",
    ];
    for text in texts {
        let problems = parse(text).unwrap_err();
        let told = format!("{problems} {problems:?} {problems:#?}");
        assert!(!told.contains(MARK), "{told}");
    }
    for number in ["271828182845", "2718.28182845", "2718-02-08"] {
        let problems = parse(&format!("[cluster]\nsecret = {number}")).unwrap_err();
        assert!(!format!("{problems} {problems:?}").contains(number), "{problems}");
    }
}

#[test]
fn a_secret_of_the_environment_is_in_no_message() {
    let names = ["FIREDRILL_CLUSTER__SECRET", "FIREDRILL_CLUSTER_SECRET", "FIREDRILL_CLUSTER__SECRTE"];
    for name in names {
        let variables = env(&[("FIREDRILL_CLUSTER__ENABLED", "true"), (name, MARK)]);
        let problems = Config::parse("", &variables).unwrap_err();
        assert!(!format!("{problems} {problems:?}").contains(MARK), "{problems}");
    }
}

#[test]
fn a_valid_secret_is_not_in_the_debug_of_what_holds_it() {
    let text = "[cluster]\nenabled = true\nsecret = 'hunter2hunter2hunter2'";
    let config = parse(text).unwrap();
    assert_eq!(config.cluster.secret.as_bytes(), b"hunter2hunter2hunter2");
    assert!(!format!("{config:?} {config:#?}").contains(MARK));
    let table = DeTable::parse(text).unwrap();
    let layer = Layer { table: table.get_ref(), origin: Origin { name: "file", text } };
    assert!(!format!("{layer:?}").contains(MARK));
}
