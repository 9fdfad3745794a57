//! A page of TOML as a person sets it: sections a blank line apart, values on one line where they fit.

use std::fmt::Write as _;
use std::time::Duration;

use super::values;
use crate::scenario::model::{HostIx, Scenario, Target};

/// Columns a line may take before a list is broken.
const COLUMNS_MAX: usize = 100;
/// How far the items of a broken list stand in.
const INDENT: &str = "    ";

/// A value to be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// As it stands: a number, `true`, a quoted text.
    Atom(String),
    /// `[…]`; broken over several lines when it is long.
    List(Vec<Self>),
    /// `{ … }`; never broken, TOML does not allow it.
    Table(Vec<(String, Self)>),
}

impl Value {
    /// A text, quoted.
    pub(super) fn text(text: &str) -> Self {
        Self::Atom(toml::Value::from(text).to_string())
    }

    /// A whole number.
    pub(super) fn number(number: u64) -> Self {
        Self::Atom(number.to_string())
    }

    /// A list of texts.
    pub(super) fn texts<'t>(texts: impl IntoIterator<Item = &'t str>) -> Self {
        Self::List(texts.into_iter().map(Self::text).collect())
    }

    /// A table with bare keys.
    pub(super) fn table(entries: impl IntoIterator<Item = (&'static str, Self)>) -> Self {
        Self::Table(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    /// A duration, quoted.
    pub(super) fn duration(duration: Duration) -> Self {
        Self::text(&values::duration(duration))
    }

    /// A clock offset in microseconds, quoted.
    pub(super) fn offset(us: i64) -> Self {
        Self::text(&values::offset(us))
    }

    /// A range of latencies, quoted.
    pub(super) fn latency(low: Duration, high: Duration) -> Self {
        Self::text(&values::latency(low, high))
    }

    /// A stretch of the run, quoted.
    pub(super) fn stretch(low: Duration, high: Duration) -> Self {
        Self::text(&values::stretch(low, high))
    }

    /// Parts per million as a percentage, quoted.
    pub(super) fn share(ppm: u32) -> Self {
        Self::text(&values::share(ppm))
    }

    /// Parts per million as a clock rate, quoted.
    pub(super) fn rate(ppm: u32) -> Self {
        Self::text(&values::rate(ppm))
    }

    /// Bytes a second, quoted.
    pub(super) fn bandwidth(bytes: u64) -> Self {
        Self::text(&values::bandwidth(bytes))
    }

    /// A host's name.
    pub(super) fn host(scenario: &Scenario, host: HostIx) -> Self {
        Self::text(scenario.hosts.get(host.0).map_or("", |host| host.name.as_str()))
    }

    /// One host by its name, several as a list.
    pub(super) fn hosts(scenario: &Scenario, hosts: &[HostIx]) -> Self {
        match hosts {
            [only] => Self::host(scenario, *only),
            _ => Self::List(hosts.iter().map(|&host| Self::host(scenario, host)).collect()),
        }
    }

    /// Whom a verb acts on.
    pub(super) fn target(scenario: &Scenario, target: &Target) -> Self {
        match target {
            Target::Hosts(hosts) => Self::hosts(scenario, hosts),
            Target::Any => Self::text("any"),
            Target::Minority => Self::text("minority"),
            Target::Majority => Self::text("majority"),
            Target::All => Self::text("all"),
            Target::Holder => Self::text("holder"),
            Target::Successor => Self::text("successor"),
        }
    }

    /// A side of a partition: always a list, or a symbol.
    pub(super) fn group(scenario: &Scenario, group: &Target) -> Self {
        match (group, Self::target(scenario, group)) {
            (Target::Hosts(_), only @ Self::Atom(_)) => Self::List(vec![only]),
            (_, group) => group,
        }
    }

    /// On one line.
    fn flat(&self) -> String {
        let joined = |parts: Vec<String>| parts.join(", ");
        match self {
            Self::Atom(text) => text.clone(),
            Self::List(items) => format!("[{}]", joined(items.iter().map(Self::flat).collect())),
            Self::Table(entries) => {
                let entry = |(key, value): &(String, Self)| format!("{key} = {}", value.flat());
                format!("{{ {} }}", joined(entries.iter().map(entry).collect()))
            }
        }
    }

    /// A list that is too long for a line, one line for each item that is a list or table, else as many to a
    /// line as fit.
    fn broken(items: &[Self]) -> String {
        let mut text = "[\n".to_owned();
        let mut line = String::new();
        for item in items {
            let flat = item.flat();
            let full = !matches!(item, Self::Atom(_)) || line.len() + flat.len() + 2 > COLUMNS_MAX;
            if full && !line.is_empty() {
                let _ = writeln!(text, "{line}");
                line.clear();
            }
            let before = if line.is_empty() { INDENT } else { " " };
            let _ = write!(line, "{before}{flat},");
        }
        let _ = write!(text, "{line}\n]");
        text
    }
}

/// The page so far.
#[derive(Debug, Default)]
pub(super) struct Page(String);

impl Page {
    /// Lines before everything else, each behind `# `.
    pub(super) fn comment(&mut self, comment: &str) {
        for line in comment.lines() {
            // A comment ends at the first control character, so none gets in.
            let line: String = line.chars().filter(|c| !c.is_control()).collect();
            let _ = writeln!(self.0, "{}", format!("# {line}").trim_end());
        }
    }

    /// A new section under this header, brackets included.
    pub(super) fn section(&mut self, header: &str) {
        let _ = writeln!(self.0, "\n{header}");
    }

    /// A key and its value.
    pub(super) fn entry(&mut self, key: &str, value: &Value) {
        let flat = value.flat();
        let fits = key.len() + 3 + flat.chars().count() <= COLUMNS_MAX;
        match value {
            Value::List(items) if !fits => {
                let _ = writeln!(self.0, "{key} = {}", Value::broken(items));
            }
            Value::Atom(_) | Value::List(_) | Value::Table(_) => {
                let _ = writeln!(self.0, "{key} = {flat}");
            }
        }
    }

    /// The whole page.
    pub(super) fn finish(self) -> String {
        self.0
    }
}

/// A key, in quotes where it is no bare word.
pub(super) fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !name.is_empty() && name.chars().all(bare) { name.to_owned() } else { Value::text(name).flat() }
}
