//! The committed JSON schema is the one the code makes, and every scenario of the repository conforms to it
//! and reads.
//!
//! The check below knows the few words of JSON Schema that ours uses; a validator of the whole language would
//! bring some forty packages with it. Patterns are left to editors: the reader judges texts more strictly.

use std::path::{Path, PathBuf};

use firedrill_sim::engine::EngineKind;
use firedrill_sim::scenario::schema::schema;
use firedrill_sim::scenario::{LoadOptions, Scenario};
use miette::GraphicalTheme;
use serde_json::{Map, Value, json};

const COMMITTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/schema/scenario.schema.json");

fn schema_value() -> Value {
    schema().to_value()
}

fn made() -> String {
    format!("{:#}\n", schema().as_value())
}

#[test]
fn the_committed_schema_is_the_one_the_code_makes() {
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(COMMITTED, made()).expect("the schema can be written");
    }
    let committed = std::fs::read_to_string(COMMITTED).unwrap_or_default();
    assert!(
        committed == made(),
        "sim/schema/scenario.schema.json is out of date; update it with\n    \
         UPDATE_SCHEMA=1 cargo test -p firedrill-sim --test scenario_schema"
    );
}

/// Where and how a value breaks the schema.
fn check(schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    let Some(rules) = schema.as_object() else { return };
    for (rule, wanted) in rules {
        match rule.as_str() {
            "type" => {
                let fits = match wanted.as_str() {
                    Some("object") => value.is_object(),
                    Some("array") => value.is_array(),
                    Some("string") => value.is_string(),
                    Some("boolean") => value.is_boolean(),
                    Some("integer") => value.is_i64() || value.is_u64(),
                    Some("number") => value.is_number(),
                    other => panic!("a type this check does not know: {other:?}"),
                };
                if !fits {
                    found.push(format!("{at} is no {wanted}"));
                }
            }
            "properties" | "required" | "additionalProperties" | "minProperties" | "maxProperties" => {
                if let Some(object) = value.as_object() {
                    check_object(rule, wanted, rules, object, at, found);
                }
            }
            "items" => {
                for (n, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(wanted, item, &format!("{at}[{n}]"), found);
                }
            }
            "minItems"
                if value
                    .as_array()
                    .is_some_and(|items| (items.len() as u64) < wanted.as_u64().unwrap_or(0)) =>
            {
                found.push(format!("{at} has too few items"));
            }
            "enum" if !wanted.as_array().is_some_and(|words| words.contains(value)) => {
                found.push(format!("{at} is none of {wanted}"));
            }
            "const" if wanted != value => found.push(format!("{at} is not {wanted}")),
            "anyOf" | "oneOf" => {
                let fits = |choice: &Value| {
                    let mut inner = Vec::new();
                    check(choice, value, at, &mut inner);
                    inner.is_empty()
                };
                let many = wanted.as_array().map_or(0, |choices| choices.iter().filter(|c| fits(c)).count());
                if many == 0 || (rule == "oneOf" && many > 1) {
                    found.push(format!("{at} fits {many} of the choices"));
                }
            }
            "minimum" if value.as_f64() < wanted.as_f64() => found.push(format!("{at} is below {wanted}")),
            "maximum" if value.as_f64() > wanted.as_f64() => found.push(format!("{at} is above {wanted}")),
            "minItems" | "enum" | "const" | "minimum" | "maximum" => {}
            "$ref" => {
                let name = wanted.as_str().and_then(|at| at.strip_prefix("#/$defs/")).unwrap_or_default();
                let root = schema_value();
                check(&root["$defs"][name], value, at, found);
            }
            "$defs" | "$schema" | "title" | "description" | "examples" | "pattern" => {}
            other => panic!("a rule this check does not know: {other}"),
        }
    }
}

fn check_object(
    rule: &str,
    wanted: &Value,
    rules: &Map<String, Value>,
    object: &Map<String, Value>,
    at: &str,
    found: &mut Vec<String>,
) {
    let known = |key: &str| rules.get("properties").is_some_and(|known| known.get(key).is_some());
    match rule {
        "properties" => {
            for (key, value) in object {
                if let Some(schema) = wanted.get(key) {
                    check(schema, value, &format!("{at}.{key}"), found);
                }
            }
        }
        "required" => {
            let names = wanted.as_array().into_iter().flatten().filter_map(Value::as_str);
            found.extend(
                names.filter(|name| !object.contains_key(*name)).map(|name| format!("{at} lacks {name}")),
            );
        }
        "additionalProperties" => {
            for (key, value) in object.iter().filter(|(key, _)| !known(key)) {
                if wanted == &json!(false) {
                    found.push(format!("{at} has an unknown {key}"));
                } else {
                    check(wanted, value, &format!("{at}.{key}"), found);
                }
            }
        }
        "minProperties" if (object.len() as u64) < wanted.as_u64().unwrap_or(0) => {
            found.push(format!("{at} is empty"))
        }
        "maxProperties" if (object.len() as u64) > wanted.as_u64().unwrap_or(0) => {
            found.push(format!("{at} is too full"))
        }
        _ => {}
    }
}

fn conforms(text: &str) -> Vec<String> {
    let value: Value = toml::from_str(text).expect("TOML");
    let mut found = Vec::new();
    check(schema().as_value(), &value, "scenario", &mut found);
    found
}

#[test]
fn the_schema_tells_a_good_scenario_from_a_bad_one() {
    let good = "name = \"x\"\nabout = \"y\"\ntime_limit = \"9s\"\n[nodes]\ncount = 3\n\
                [config.cluster]\npush_interval_ms = 100\n\
                [[step]]\nat = \"1s\"\nrestart = { target = \"a\", wall = \"-1h\" }\n\
                [[expect]]\nby = \"5s\"\nevent = { down = \"a\", on = \"b\" }\n\
                [[expect]]\nat_end = { view = [\"a\", \"b\", \"c\"] }\n";
    assert_eq!(conforms(good), [""; 0]);
    for (from, to) in [
        ("count = 3", "count = 0"),
        ("name = \"x\"", ""),
        ("wall", "wal"),
        ("down", "donw"),
        ("at_end", "at_ned"),
        ("push_interval_ms = 100", "push_interval_ms = 9"),
        ("at = \"1s\"", "at = 1"),
        ("by = \"5s\"", "by = \"5s\"\nalways = { view = [\"a\"] }"),
        ("restart =", "kill = \"b\"\nrestart ="),
    ] {
        assert_ne!(conforms(&good.replace(from, to)), [""; 0], "{from} -> {to}");
    }
}

fn scenarios(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            scenarios(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "toml") {
            found.push(path);
        }
    }
}

#[test]
fn every_scenario_of_the_repository_conforms_to_the_schema() {
    let mut paths = Vec::new();
    scenarios(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios")), &mut paths);
    paths.sort();
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a scenario can be read");
        let whole = toml::from_str::<Value>(&text).is_ok_and(|value| value.get("nodes").is_some());
        // A file without hosts is one that others include.
        let found = if whole { conforms(&text) } else { Vec::new() };
        assert!(found.is_empty(), "{}: {}", path.display(), json!(found));
    }
}

#[test]
fn every_scenario_of_the_repository_reads_on_the_event_engine() {
    let mut paths = Vec::new();
    scenarios(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios")), &mut paths);
    paths.sort();
    let reports: Vec<String> = paths
        .iter()
        .filter(|path| {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            toml::from_str::<Value>(&text).map_or(true, |value| value.get("nodes").is_some())
        })
        .filter_map(|path| Scenario::load(path, LoadOptions::for_engine(EngineKind::Event)).err())
        .map(|report| report.render(GraphicalTheme::unicode_nocolor(), 100))
        .collect();
    assert!(reports.is_empty(), "{}", reports.join("\n"));
}
