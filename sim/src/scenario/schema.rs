//! The JSON schema of scenario files, for editors: completion, descriptions under the cursor, early warnings.
//!
//! Made from the [`catalog`] and from the key table of the production configuration, so it
//! cannot know a word that the reader does not. The reader is stricter: what needs more than one place of the
//! file (hosts, ids, moments, engines) is beyond a schema.

use firedrill_core::config::{KEYS, Kind as ConfigKind, SECTIONS, keys_of};
use firedrill_core::issuance::election::Decision;
use firedrill_core::wire::Reject;
use schemars::Schema;
use serde_json::{Map, Value, json};

use super::catalog::{self, About, Key, Kind};

/// The schema of a scenario file.
pub fn schema() -> Schema {
    let mut root = Schema::default();
    let described = [
        ("$schema", json!("https://json-schema.org/draft/2020-12/schema")),
        ("title", json!("firedrill scenario")),
        (
            "description",
            json!("A fire drill for a small cluster: hosts, network, workload, faults, and what must hold."),
        ),
    ];
    for (key, value) in described.into_iter().chain(object_of(catalog::TOP)) {
        root.insert(key.to_owned(), value);
    }
    root.insert("$defs".into(), json!({ "fact": fact(), "event": event(), "config": config() }));
    root
}

/// The parts of a closed object with these keys.
fn object_of(keys: &[Key]) -> [(&'static str, Value); 4] {
    let properties: Map<String, Value> =
        keys.iter().map(|key| (key.name.to_owned(), described(value_of(key.kind), key.doc))).collect();
    let required: Vec<&str> = keys.iter().filter(|key| key.required).map(|key| key.name).collect();
    [
        ("type", json!("object")),
        ("properties", Value::Object(properties)),
        ("required", json!(required)),
        ("additionalProperties", json!(false)),
    ]
}

fn object(keys: &[Key]) -> Value {
    Value::Object(object_of(keys).into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn described(mut value: Value, doc: &str) -> Value {
    if let Value::Object(object) = &mut value {
        object.insert("description".into(), json!(doc));
    }
    value
}

fn value_of(kind: Kind) -> Value {
    let text = |pattern: &str| json!({ "type": "string", "pattern": pattern });
    match kind {
        Kind::Text => text("\\S"),
        Kind::Id => text("^[A-Za-z][A-Za-z0-9._-]{0,63}$"),
        Kind::Bool => json!({ "type": "boolean" }),
        Kind::Flag => json!({ "const": true }),
        Kind::Count(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
        Kind::Duration => text("^[0-9].*[a-z]$"),
        Kind::Offset => text("^[+-][0-9].*[a-z]$"),
        Kind::Latency => text("^[0-9][^.]*[a-z](\\.\\.[0-9].*[a-z])?$"),
        Kind::Stretch => text("^[0-9].*[a-z]\\.\\.[0-9].*[a-z]$"),
        Kind::Share => text("^[0-9]+(\\.[0-9]{1,4})?\\s*%$"),
        Kind::Rate => {
            let number = json!({ "type": "number", "minimum": 0.5, "maximum": 2 });
            json!({ "anyOf": [text("^[0-9]+(\\.[0-9]{1,6})?$"), number] })
        }
        Kind::Bandwidth => text("^[0-9]+(\\.[0-9]+)?\\s*([kKMG]|[KM]i)?B/s$"),
        Kind::Address => text("^.+:[0-9]+$"),
        Kind::Host | Kind::Counter | Kind::Moment => text("\\S"),
        Kind::Hosts => json!({ "anyOf": [text("\\S"), hosts()] }),
        Kind::Target => {
            let symbols: Vec<&str> = catalog::SYMBOLS.iter().map(|(word, _)| *word).collect();
            json!({ "anyOf": [{ "type": "string", "examples": symbols }, hosts()] })
        }
        Kind::Groups => {
            let group = json!({ "anyOf": [hosts(), { "enum": ["any", "minority", "majority", "holder", "successor"] }] });
            json!({ "type": "array", "minItems": 1, "items": group })
        }
        Kind::When => json!({ "anyOf": [text("\\S"), shared("event")] }),
        Kind::NumberOrTruth => {
            json!({ "anyOf": [{ "type": "integer", "minimum": 0 }, { "const": "truth" }] })
        }
        Kind::NumberOrAmount => {
            json!({ "anyOf": [{ "type": "integer", "minimum": 0 }, text("^[0-9]+(\\.[0-9]{1,12})?$")] })
        }
        Kind::Decision => {
            let words = Decision::NAMES.join("|");
            text(&format!("^({words}|successor_is_.+)$"))
        }
        Kind::Choice(words) => json!({ "enum": words }),
        Kind::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        Kind::Walls => json!({ "type": "object", "additionalProperties": value_of(Kind::Offset) }),
        Kind::Reasons => json!({ "type": "object", "additionalProperties": value_of(Kind::Text) }),
        Kind::Config => shared("config"),
        Kind::ConfigFor => json!({ "type": "object", "additionalProperties": shared("config") }),
        Kind::Table(keys) => object(keys),
        Kind::Tables(keys) => json!({ "type": "array", "items": row(keys) }),
        Kind::Fact => shared("fact"),
        Kind::View => json!({ "anyOf": [hosts(), object(catalog::VIEW)] }),
        Kind::Event => shared("event"),
    }
}

/// What stands once, under `$defs`.
fn shared(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

fn hosts() -> Value {
    json!({ "type": "array", "minItems": 1, "items": { "type": "string" } })
}

/// One `[[…]]` table; steps carry a verb beside their keys, expectations a fact.
fn row(keys: &'static [Key]) -> Value {
    let mut row = object(keys);
    let has = |name: &str| keys.iter().any(|key| key.name == name);
    if has("when") {
        add(&mut row, verbs());
        row["oneOf"] = catalog::VERBS.iter().map(|verb| json!({ "required": [verb.name] })).collect();
    } else if has("at_end") {
        add(&mut row, facts());
        row["oneOf"] = ["by", "always", "never", "at_end", "sometimes"]
            .iter()
            .map(|window| json!({ "required": [window] }))
            .collect();
    }
    row
}

fn add(object: &mut Value, more: Map<String, Value>) {
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        properties.extend(more);
    }
}

fn verbs() -> Map<String, Value> {
    let value = |verb: &catalog::Verb| match (verb.plain, verb.keys) {
        (Some(plain), []) => value_of(plain),
        (None, keys) => object(keys),
        (Some(plain), keys) => json!({ "anyOf": [value_of(plain), object(keys)] }),
    };
    let doc = |verb: &catalog::Verb| format!("{} For example: {}", verb.doc, verb.example);
    catalog::VERBS.iter().map(|verb| (verb.name.to_owned(), described(value(verb), &doc(verb)))).collect()
}

fn facts() -> Map<String, Value> {
    let doc = |fact: &catalog::Fact| format!("{} For example: {}", fact.doc, fact.example);
    catalog::FACTS
        .iter()
        .map(|fact| (fact.name.to_owned(), described(value_of(fact.kind), &doc(fact))))
        .collect()
}

fn fact() -> Value {
    json!({
        "type": "object",
        "properties": facts(),
        "additionalProperties": false,
        "minProperties": 1,
        "maxProperties": 1,
    })
}

fn event() -> Value {
    let value = |event: &catalog::Event| match event.about {
        About::Member | About::Host => value_of(Kind::Host),
        About::Reason => json!({ "enum": Reject::ALL.map(Reject::name) }),
    };
    let doc = |event: &catalog::Event| format!("{} For example: {}", event.doc, event.example);
    let mut properties: Map<String, Value> = catalog::EVENTS
        .iter()
        .map(|event| (event.name.to_owned(), described(value(event), &doc(event))))
        .collect();
    properties.insert("on".into(), described(value_of(Kind::Host), "Seen on this host; on any when absent."));
    let reasons: Vec<&str> =
        catalog::EVENTS.iter().flat_map(|event| event.reasons()).map(|(name, _)| *name).collect();
    let why = "Why the connection ended, beside inbound_closed and link_reset; for any reason when absent.";
    properties.insert("reason".into(), described(json!({ "enum": reasons }), why));
    let number = || value_of(Kind::Count(0, i64::MAX.unsigned_abs()));
    properties.insert("epoch".into(), described(number(), "At this epoch; at any when absent."));
    let elapsed = "Over so many windows, beside sealed; over however many when absent.";
    properties.insert("elapsed".into(), described(number(), elapsed));
    json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
        "minProperties": 1,
        "maxProperties": 4,
    })
}

/// The production configuration, from its own table of keys.
fn config() -> Value {
    let sections: Map<String, Value> = SECTIONS
        .iter()
        .map(|(section, doc)| {
            let keys: Map<String, Value> = keys_of(section)
                .map(|key| (key.name.to_owned(), described(config_value(key.kind), key.doc)))
                .collect();
            let table = json!({ "type": "object", "properties": keys, "additionalProperties": false });
            ((*section).to_owned(), described(table, doc))
        })
        .collect();
    debug_assert!(KEYS.iter().all(|key| sections.contains_key(key.section)));
    json!({ "type": "object", "properties": sections, "additionalProperties": false })
}

fn config_value(kind: ConfigKind) -> Value {
    match kind {
        ConfigKind::Bool => json!({ "type": "boolean" }),
        ConfigKind::U64 { min } => json!({ "type": "integer", "minimum": min }),
        ConfigKind::Secret
        | ConfigKind::Name
        | ConfigKind::ListenAddr
        | ConfigKind::DialAddr
        | ConfigKind::Decimal => json!({ "type": "string" }),
        ConfigKind::Choice(words) => json!({ "enum": words }),
        ConfigKind::DialAddrs | ConfigKind::Names => {
            json!({ "type": "array", "items": { "type": "string" } })
        }
    }
}
