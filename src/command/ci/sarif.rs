//! SARIF 2.1.0: what code scanning reads.
//!
//! Every oracle is a rule, whether it was broken or not, so that the index of a rule depends on the version alone. A
//! case that passed is no result: SARIF tells of what was found.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::{Case, Finding, Level, Place, Results, Rule, rules};
use crate::command::exit::Exit;

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");
/// What the paths are relative to: the root of the repository, wherever that is.
const ROOT: &str = "%SRCROOT%";
/// The file of a finding that has none, nor a rule that this version knows.
const README: &str = "README.md";
/// What does not stand in the path of a URI as it is.
const IN_A_PATH: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The results as one document.
pub(super) fn text(results: &Results) -> serde_json::Result<String> {
    let mut text = serde_json::to_string_pretty(&document(results))?;
    text.push('\n');
    Ok(text)
}

fn document(results: &Results) -> Value {
    let own: Vec<Rule> = rules().collect();
    let found: Vec<_> =
        results.findings().map(|(case, finding)| result(results, case, finding, &own)).collect();
    let facts: BTreeMap<_, _> = results.facts.iter().map(|(label, value)| (*label, value)).collect();
    let mut run = json!({
        "tool": { "driver": {
            "name": "firedrill",
            "version": env!("CARGO_PKG_VERSION"),
            "semanticVersion": env!("CARGO_PKG_VERSION"),
            "informationUri": REPOSITORY,
            "rules": own.iter().map(descriptor).collect::<Vec<_>>(),
        }},
        "automationDetails": { "id": format!("firedrill/{}/", results.series) },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": { ROOT: { "description": { "text": "The root of the repository." } } },
        "invocations": [{
            "executionSuccessful": !matches!(results.exit, Exit::Internal | Exit::Interrupted),
            "exitCode": results.exit.code(),
        }],
        "results": found,
        "properties": { "headline": results.headline, "facts": facts },
    });
    let files = files(results);
    if !files.is_empty() {
        run["artifacts"] = Value::Array(files);
    }
    json!({ "$schema": SCHEMA, "version": "2.1.0", "runs": [run] })
}

fn descriptor(rule: &Rule) -> Value {
    let (file, section) = rule.source.split_once(", ").unwrap_or((rule.source, ""));
    let sentence = format!("{}.", capitalised(rule.demand));
    let source = if section.is_empty() { file.to_owned() } else { format!("{file}: {section}") };
    json!({
        "id": rule.name,
        "shortDescription": { "text": sentence },
        "fullDescription": { "text": format!("{sentence} Source: {source}.") },
        "helpUri": format!("{REPOSITORY}/blob/main/{file}"),
        "help": { "text": format!("{sentence} Where the rule comes from: {source}.") },
        "defaultConfiguration": { "level": "error" },
        "properties": { "tags": [rule.kind] },
    })
}

/// The file that a rule comes from.
fn file_of(rule: &Rule) -> &'static str {
    rule.source.split(", ").next().unwrap_or(README)
}

fn result(results: &Results, case: &Case, finding: &Finding, own: &[Rule]) -> Value {
    let index = own.iter().position(|rule| rule.name == finding.rule);
    let rule = index.and_then(|index| own.get(index));
    let drill = json!({
        "name": case.name,
        "fullyQualifiedName": format!("{}/{}", case.suite, case.name),
        "kind": "drill",
    });
    let nodes = finding.nodes.iter().map(|node| json!({ "name": node, "kind": "node" }));
    let logical: Vec<_> = std::iter::once(drill).chain(nodes).collect();
    // Code scanning refuses a result without a file: one that stands in none points to its rule's.
    let place = finding.place.clone().unwrap_or_else(|| Place::top(rule.map_or(README, file_of)));
    let location = json!({
        "logicalLocations": logical,
        "physicalLocation": {
            "artifactLocation": artifact(&place.file),
            "region": { "startLine": place.line, "startColumn": place.column },
        },
    });
    let details: BTreeMap<_, _> = finding.details.iter().map(|(label, value)| (*label, value)).collect();
    let mut result = json!({
        "ruleId": finding.rule,
        "kind": if finding.level == Level::Error { "fail" } else { "informational" },
        "level": if finding.level == Level::Error { "error" } else { "none" },
        "message": { "text": finding.in_full() },
        "locations": [location],
        // The same finding of tomorrow, whatever its facts are then.
        "partialFingerprints": {
            "firedrill/v1": format!("{}/{}/{}", results.series, case.name, finding.rule),
        },
        "properties": { "details": details },
    });
    if let Some(index) = index {
        result["ruleIndex"] = index.into();
    }
    if let Some(reproduce) = &finding.reproduce {
        result["properties"]["reproduce"] = reproduce.as_str().into();
    }
    result
}

/// Files that were found, not checked out: their text travels along.
fn files(results: &Results) -> Vec<Value> {
    let mut texts = BTreeMap::new();
    for (_, finding) in results.findings() {
        if let (Some(place), Some(text)) = (&finding.place, &finding.text) {
            texts.insert(&place.file, text);
        }
    }
    let file = |(file, text): (&String, &String)| json!({ "location": artifact(file), "contents": { "text": text } });
    texts.into_iter().map(file).collect()
}

fn artifact(file: &str) -> Value {
    let path = utf8_percent_encode(file, IN_A_PATH).to_string();
    if file.starts_with('/') {
        json!({ "uri": format!("file://{path}") })
    } else {
        json!({ "uri": path, "uriBaseId": ROOT })
    }
}

fn capitalised(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}
