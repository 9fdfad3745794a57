//! Reading typed values out of a table, and telling what is wrong with those that do not fit.
//!
//! [`Fields::open`] checks a table's keys against the [`catalog`](super::catalog) once: unknown and missing
//! keys are reported there, so the readers only ask for values. A getter returns `None` for a key that is
//! absent and for one whose value is wrong; the latter has been reported.

use std::time::Duration;

use firedrill_core::config::nearest;

use super::catalog::{Key, Kind};
use super::document::{Entry, Node, Table, Value};
use super::model::Span;
use super::report::Problems;
use super::values;

/// A table whose keys have been checked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'t> {
    table: &'t Table,
    keys: &'static [Key],
}

impl<'t> Fields<'t> {
    /// Reports the table's unknown and missing keys. `what` names the table in messages ("a step"); `place`
    /// is where a missing key is shown.
    pub(super) fn open(
        table: &'t Table,
        keys: &'static [Key],
        what: &str,
        place: Span,
        problems: &mut Problems,
    ) -> Self {
        Self::open_with(table, keys, &[], what, place, problems)
    }

    /// As [`Fields::open`], with further known words that somebody else reads (a step's verb, a fact).
    pub(super) fn open_with(
        table: &'t Table,
        keys: &'static [Key],
        others: &[&'static str],
        what: &str,
        place: Span,
        problems: &mut Problems,
    ) -> Self {
        for entry in &table.entries {
            let name = entry.key.as_str();
            if !keys.iter().any(|key| key.name == name) && !others.contains(&name) {
                let known = || others.iter().copied().chain(keys.iter().map(|key| key.name));
                unknown(entry, what, known, problems);
            }
        }
        for key in keys.iter().filter(|key| key.required && table.get(key.name).is_none()) {
            problems
                .add(place, format!("{what} needs `{}`", key.name), format!("`{}` is missing", key.name))
                .help(format!("`{}` is {}: {}", key.name, key.kind.wants(), lower(key.doc)));
        }
        Self { table, keys }
    }

    /// The entry, for readers of shapes that have no getter here.
    pub(super) fn entry(&self, name: &str) -> Option<&'t Entry> {
        debug_assert!(self.keys.iter().any(|key| key.name == name), "{name} is not in the catalog");
        self.table.get(name)
    }

    fn kind(&self, name: &str) -> Kind {
        self.keys.iter().find(|key| key.name == name).map_or(Kind::Text, |key| key.kind)
    }

    /// Reads a string in one of the small languages.
    fn parsed<T>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, String>,
        problems: &mut Problems,
    ) -> Option<T> {
        let entry = self.entry(name)?;
        let text = text(entry, self.kind(name), problems)?;
        match parse(text) {
            Ok(value) => Some(value),
            Err(why) => {
                wrong(entry, self.kind(name), &why, problems);
                None
            }
        }
    }

    pub(super) fn duration(&self, name: &str, problems: &mut Problems) -> Option<Duration> {
        self.parsed(name, values::duration, problems)
    }

    /// A duration above 0.
    pub(super) fn period(&self, name: &str, problems: &mut Problems) -> Option<Duration> {
        let above = |text: &str| match values::duration(text)? {
            Duration::ZERO => Err("it is 0".into()),
            period => Ok(period),
        };
        self.parsed(name, above, problems)
    }

    pub(super) fn offset_us(&self, name: &str, problems: &mut Problems) -> Option<i64> {
        self.parsed(name, values::offset_us, problems)
    }

    pub(super) fn latency(&self, name: &str, problems: &mut Problems) -> Option<(Duration, Duration)> {
        self.parsed(name, values::latency, problems)
    }

    pub(super) fn stretch(&self, name: &str, problems: &mut Problems) -> Option<(Duration, Duration)> {
        self.parsed(name, values::span, problems)
    }

    pub(super) fn share_ppm(&self, name: &str, problems: &mut Problems) -> Option<u32> {
        self.parsed(name, values::share_ppm, problems)
    }

    pub(super) fn bandwidth(&self, name: &str, problems: &mut Problems) -> Option<u64> {
        self.parsed(name, values::bandwidth, problems)
    }

    /// A clock rate, in quotes or as a plain number.
    pub(super) fn rate_ppm(&self, name: &str, problems: &mut Problems) -> Option<u32> {
        let entry = self.entry(name)?;
        let number = match &entry.node.value {
            Value::Float(text) => text.clone(),
            Value::Int(Some(number)) => number.to_string(),
            Value::Text(_)
            | Value::Int(None)
            | Value::Bool(_)
            | Value::Date
            | Value::List(_)
            | Value::Table(_) => {
                return self.parsed(name, values::rate_ppm, problems);
            }
        };
        values::rate_ppm(&number).map_err(|why| wrong(entry, self.kind(name), &why, problems)).ok()
    }

    pub(super) fn address(&self, name: &str, problems: &mut Problems) -> Option<std::net::SocketAddr> {
        let parse = |text: &str| match text.parse::<std::net::SocketAddr>() {
            Ok(addr) if addr.port() == 0 => Err("port 0 is no port that peers can dial".into()),
            Ok(addr) if addr.ip().is_unspecified() => Err("nobody can dial a wildcard address".into()),
            Ok(addr) => Ok(addr),
            Err(_) => Err("it is no address with a port; host names are not looked up".to_string()),
        };
        self.parsed(name, parse, problems)
    }

    /// A text that is not blank.
    pub(super) fn text(&self, name: &str, problems: &mut Problems) -> Option<&'t str> {
        let entry = self.entry(name)?;
        let text = text(entry, self.kind(name), problems)?;
        if text.trim().is_empty() {
            wrong(entry, self.kind(name), "it is blank", problems);
            return None;
        }
        Some(text)
    }

    /// A word that begins with a letter.
    pub(super) fn id(&self, name: &str, problems: &mut Problems) -> Option<&'t str> {
        let entry = self.entry(name)?;
        let text = text(entry, self.kind(name), problems)?;
        match id(text) {
            Ok(()) => Some(text),
            Err(why) => {
                wrong(entry, self.kind(name), &why, problems);
                None
            }
        }
    }

    pub(super) fn bool(&self, name: &str, problems: &mut Problems) -> Option<bool> {
        let entry = self.entry(name)?;
        match entry.node.value {
            Value::Bool(flag) => Some(flag),
            Value::Text(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Date
            | Value::List(_)
            | Value::Table(_) => {
                mistyped(entry, self.kind(name), problems);
                None
            }
        }
    }

    /// A whole number within the bounds that the catalog gives.
    pub(super) fn count(&self, name: &str, problems: &mut Problems) -> Option<u64> {
        let entry = self.entry(name)?;
        let Value::Int(number) = entry.node.value else {
            mistyped(entry, self.kind(name), problems);
            return None;
        };
        let (least, most) = self.kind(name).bounds();
        match number.and_then(|number| u64::try_from(number).ok()) {
            Some(number) if (least..=most).contains(&number) => Some(number),
            _ => {
                let bounds = if most >= i64::MAX.unsigned_abs() {
                    format!("at least {least}")
                } else {
                    format!("from {least} to {most}")
                };
                problems
                    .add(entry.node.span, format!("`{name}` is out of range"), format!("must be {bounds}"))
                    .help(format!("`{name}` is a whole number, {bounds}"));
                None
            }
        }
    }

    /// As [`Fields::count`], as a size.
    pub(super) fn size(&self, name: &str, problems: &mut Problems) -> Option<usize> {
        self.count(name, problems).and_then(|count| usize::try_from(count).ok())
    }

    /// One of the words of a [`Kind::Choice`], by its position.
    pub(super) fn choice(&self, name: &str, problems: &mut Problems) -> Option<usize> {
        let entry = self.entry(name)?;
        let words = self.kind(name).words();
        let text = text(entry, self.kind(name), problems)?;
        let found = words.iter().position(|word| *word == text);
        if found.is_none() {
            problems
                .add(entry.node.span, format!("unknown word {text:?} for `{name}`"), "not one of them")
                .help(suggestion(text, || words.iter().copied(), "the words"));
        }
        found
    }

    /// A table under this key.
    pub(super) fn table(&self, name: &str, problems: &mut Problems) -> Option<(&'t Entry, &'t Table)> {
        let entry = self.entry(name)?;
        let table = entry_table(entry, self.kind(name), problems)?;
        Some((entry, table))
    }

    /// Every `[[name]]` table.
    pub(super) fn tables(&self, name: &str, problems: &mut Problems) -> Vec<(Span, &'t Table)> {
        let Some(entry) = self.entry(name) else { return Vec::new() };
        let Value::List(items) = &entry.node.value else {
            mistyped(entry, self.kind(name), problems);
            return Vec::new();
        };
        let mut tables = Vec::with_capacity(items.len());
        for item in items {
            match &item.value {
                Value::Table(table) => tables.push((item.span, table)),
                other @ (Value::Text(_)
                | Value::Int(_)
                | Value::Float(_)
                | Value::Bool(_)
                | Value::Date
                | Value::List(_)) => {
                    problems.add(
                        item.span,
                        format!("`{name}` wants {}, not {}", self.kind(name).wants(), other.what()),
                        "not a table",
                    );
                }
            }
        }
        tables
    }
}

/// The entry's text, or a report that it is none.
pub(super) fn text<'t>(entry: &'t Entry, kind: Kind, problems: &mut Problems) -> Option<&'t str> {
    match &entry.node.value {
        Value::Text(text) => Some(text),
        Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Date | Value::List(_) | Value::Table(_) => {
            mistyped(entry, kind, problems);
            None
        }
    }
}

/// The entry's table, or a report that it is none.
pub(super) fn entry_table<'t>(entry: &'t Entry, kind: Kind, problems: &mut Problems) -> Option<&'t Table> {
    match &entry.node.value {
        Value::Table(table) => Some(table),
        Value::Text(_) | Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Date | Value::List(_) => {
            mistyped(entry, kind, problems);
            None
        }
    }
}

/// Texts with their places: a list of strings or, where `single` allows it, one string.
pub(super) fn texts<'t>(
    entry: &'t Entry,
    kind: Kind,
    single: bool,
    problems: &mut Problems,
) -> Option<Vec<(&'t str, Span)>> {
    match &entry.node.value {
        Value::Text(text) if single => Some(vec![(text, entry.node.span)]),
        Value::List(items) => items.iter().map(|item| item_text(&entry.key, item, kind, problems)).collect(),
        Value::Text(_) | Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Date | Value::Table(_) => {
            mistyped(entry, kind, problems);
            None
        }
    }
}

fn item_text<'t>(key: &str, item: &'t Node, kind: Kind, problems: &mut Problems) -> Option<(&'t str, Span)> {
    match &item.value {
        Value::Text(text) => Some((text, item.span)),
        other @ (Value::Int(_)
        | Value::Float(_)
        | Value::Bool(_)
        | Value::Date
        | Value::List(_)
        | Value::Table(_)) => {
            problems
                .add(item.span, format!("`{key}` holds {} among its texts", other.what()), "not a text")
                .help(format!("`{key}` wants {}", kind.wants()));
            None
        }
    }
}

/// Reports a value of the wrong type.
pub(super) fn mistyped(entry: &Entry, kind: Kind, problems: &mut Problems) {
    let is = entry.node.value.what();
    problems
        .add(
            entry.node.span,
            format!("`{}` must be {}, not {is}", entry.key, kind.noun()),
            format!("this is {is}"),
        )
        .help(format!("`{}` wants {}", entry.key, kind.wants()));
}

/// Reports a value of the right type that cannot be read.
pub(super) fn wrong(entry: &Entry, kind: Kind, why: &str, problems: &mut Problems) {
    problems.add(entry.node.span, format!("`{}` cannot be read: {why}", entry.key), "here").help(format!(
        "`{}` wants {}",
        entry.key,
        kind.wants()
    ));
}

/// Reports a key that nobody reads.
fn unknown<I: Iterator<Item = &'static str>>(
    entry: &Entry,
    what: &str,
    known: impl Fn() -> I,
    problems: &mut Problems,
) {
    problems
        .add(entry.key_span, format!("unknown key `{}` in {what}", entry.key), "not known here")
        .help(suggestion(&entry.key, known, "the keys here"));
}

/// "did you mean …?", or the whole choice when nothing is near.
pub(super) fn suggestion<'w, I: Iterator<Item = &'w str>>(
    word: &str,
    known: impl Fn() -> I,
    choice: &str,
) -> String {
    // One letter is as near to any other letter; the choice says more.
    let near = nearest(word, known()).filter(|_| word.chars().nth(1).is_some());
    match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("{choice} are {}", list(known())),
    }
}

/// `a`, `b` and `c`.
pub(super) fn list<'w>(words: impl Iterator<Item = &'w str>) -> String {
    let words: Vec<String> = words.map(|word| format!("`{word}`")).collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => "none".into(),
    }
}

/// A word that begins with a letter, then letters, digits, `-`, `_` or `.`; at most 64 bytes.
pub(super) fn id(text: &str) -> Result<(), String> {
    if !text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Err("it does not begin with a letter".into());
    }
    if text.len() > 64 {
        return Err(format!("it is {} bytes long; at most 64 are allowed", text.len()));
    }
    match text.chars().find(|c| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.')) {
        Some(other) => Err(format!("it contains {other:?}")),
        None => Ok(()),
    }
}

/// A sentence as the second half of another: the first letter small, no full stop.
fn lower(sentence: &str) -> String {
    let mut chars = sentence.trim_end_matches('.').chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}
