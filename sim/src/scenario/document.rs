//! The files of a scenario: found, parsed with spans, merged.
//!
//! A file may `include` others, by paths relative to itself. Tables merge key by key and the includer wins;
//! arrays of tables (`[[step]]`, `[[workload]]`, `[[expect]]`) are joined, the included ones first. A file
//! that is included twice is read once.
//!
//! Everything downstream reads a [`Node`]: one tree for all files, whose spans say which file they point
//! into.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::model::{SourceFile, Span};
use super::report::Problems;

/// Most files a scenario may be spread over.
const FILES_MAX: usize = 64;

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) span: Span,
    pub(super) value: Value,
}

/// A TOML value. Decimals keep the text they were written in; whole numbers may be larger than TOML demands,
/// because a seed is a `u64`.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Text(String),
    Int(Option<i128>),
    Float(String),
    Bool(bool),
    Date,
    List(Vec<Node>),
    Table(Table),
}

impl Value {
    /// What it is, with its article.
    pub(super) const fn what(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Int(_) => "a whole number",
            Self::Float(_) => "a decimal number",
            Self::Bool(_) => "true or false",
            Self::Date => "a date",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

/// Keys and values, each key once, in the order of their names.
#[derive(Debug, Clone, Default)]
pub(super) struct Table {
    pub(super) span: Span,
    pub(super) entries: Vec<Entry>,
}

impl Table {
    pub(super) fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// Lays `over` on this table.
    fn merge(&mut self, over: Self) {
        self.span = over.span;
        for entry in over.entries {
            match self.entries.iter_mut().find(|own| own.key == entry.key) {
                Some(own) => own.merge(entry),
                None => self.entries.push(entry),
            }
        }
    }
}

/// One key with its value.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) key_span: Span,
    pub(super) node: Node,
}

impl Entry {
    fn merge(&mut self, over: Self) {
        let tables = |node: &Node| match &node.value {
            Value::List(items) => {
                !items.is_empty() && items.iter().all(|item| matches!(item.value, Value::Table(_)))
            }
            Value::Text(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Bool(_)
            | Value::Date
            | Value::Table(_) => false,
        };
        let join = tables(&self.node) && tables(&over.node);
        self.key_span = over.key_span;
        match (&mut self.node.value, over.node.value) {
            (Value::Table(own), Value::Table(over)) => own.merge(over),
            (Value::List(own), Value::List(over)) if join => own.extend(over),
            (own, over) => *own = over,
        }
        self.node.span = over.node.span;
    }
}

/// What reads an included file, given its path relative to the working directory.
pub type Resolver<'r> = dyn Fn(&Path) -> io::Result<String> + 'r;

/// All files of a scenario: the scenario first.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) files: Vec<SourceFile>,
    /// Their positions, from the one that yields to the one that wins.
    pub(super) order: Vec<usize>,
}

impl Files {
    /// Reads what the scenario includes, and what that includes. A missing file, a cycle and the first syntax
    /// error of each file are problems.
    pub(super) fn gather(
        path: &Path,
        text: String,
        resolver: &Resolver<'_>,
        problems: &mut Problems,
    ) -> Self {
        let mut gather = Gather {
            files: Vec::new(),
            order: Vec::new(),
            seen: BTreeMap::new(),
            open: Vec::new(),
            resolver,
            problems,
        };
        gather.add(path, text);
        Self { files: gather.files, order: gather.order }
    }

    /// The spanned documents, in the order of the files; call it only when no syntax error was found.
    pub(super) fn documents(&self) -> Vec<DeTable<'_>> {
        self.files
            .iter()
            .map(|file| DeTable::parse(&file.text).map(Spanned::into_inner).unwrap_or_default())
            .collect()
    }

    /// One tree over all files.
    pub(super) fn merge(&self, documents: &[DeTable<'_>]) -> Table {
        let mut merged = Table::default();
        for &file in &self.order {
            if let Some(document) = documents.get(file) {
                let len = self.files.get(file).map_or(0, |file| file.text.len());
                merged.merge(table(document, Span { file, start: 0, end: len.min(1) }));
            }
        }
        merged
    }
}

struct Gather<'r, 'p> {
    files: Vec<SourceFile>,
    order: Vec<usize>,
    seen: BTreeMap<PathBuf, usize>,
    open: Vec<usize>,
    resolver: &'r Resolver<'r>,
    problems: &'p mut Problems,
}

impl Gather<'_, '_> {
    fn add(&mut self, path: &Path, text: String) {
        let file = self.files.len();
        let text: Arc<str> = text.into();
        self.files.push(SourceFile { path: path.display().to_string(), text: Arc::clone(&text) });
        self.seen.insert(normal(path), file);
        self.open.push(file);
        match DeTable::parse(&text) {
            Err(error) => {
                let place = error.span().unwrap_or(0..0);
                self.problems
                    .add(
                        at(file, place),
                        format!("this is no TOML: {}", error.message()),
                        "the first error is here",
                    )
                    .help("the file is read no further than this; what stands below may hold more problems");
            }
            Ok(document) => self.includes(path, file, document.get_ref()),
        }
        self.open.pop();
        self.order.push(file);
    }

    fn includes(&mut self, path: &Path, file: usize, document: &DeTable<'_>) {
        let Some(include) = document.get("include") else { return };
        let Some(items) = include.get_ref().as_array() else {
            self.problems
                .add(at(file, include.span()), "`include` wants a list of paths", "not a list")
                .help("write include = [\"common.toml\"]");
            return;
        };
        for item in items.iter() {
            let span = at(file, item.span());
            match item.get_ref().as_str() {
                Some(name) => self.include(&path.parent().unwrap_or(Path::new("")).join(name), span),
                None => {
                    self.problems.add(span, "`include` wants a list of paths", "not a path");
                }
            }
        }
    }

    fn include(&mut self, path: &Path, span: Span) {
        let path = normal(path);
        if let Some(&known) = self.seen.get(&path) {
            if self.open.contains(&known) {
                let cycle: Vec<&str> = self
                    .open
                    .iter()
                    .skip_while(|&&file| file != known)
                    .chain([&known])
                    .filter_map(|&file| self.files.get(file))
                    .map(|file| file.path.as_str())
                    .collect();
                self.problems
                    .add(span, "includes go round in a circle", "leads back to a file that is being read")
                    .help(cycle.join(" includes "));
            }
            return;
        }
        if self.files.len() >= FILES_MAX {
            self.problems.add(span, format!("more than {FILES_MAX} files are included"), "one too many");
            return;
        }
        match (self.resolver)(&path) {
            Ok(text) => self.add(&path, text),
            Err(error) => {
                self.problems
                    .add(span, format!("cannot read {}: {error}", path.display()), "included here")
                    .help("paths are relative to the file that includes them");
            }
        }
    }
}

/// The path without `.` and, where a folder comes before it, `..`; symbolic links are not followed.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(normal.components().next_back(), Some(Component::Normal(_))) => {
                normal.pop();
            }
            Component::ParentDir | Component::Normal(_) | Component::RootDir | Component::Prefix(_) => {
                normal.push(part);
            }
        }
    }
    normal
}

pub(super) const fn at(file: usize, range: Range<usize>) -> Span {
    Span { file, start: range.start, end: range.end }
}

fn table(table: &DeTable<'_>, span: Span) -> Table {
    let entries = table
        .iter()
        .map(|(key, value)| Entry {
            key: key.get_ref().to_string(),
            key_span: at(span.file, key.span()),
            node: node(value, span.file),
        })
        .collect();
    Table { span, entries }
}

fn node(value: &Spanned<DeValue<'_>>, file: usize) -> Node {
    let span = at(file, value.span());
    let value = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(int) => Value::Int(i128::from_str_radix(int.as_str(), int.radix()).ok()),
        DeValue::Float(float) => Value::Float(float.as_str().to_owned()),
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Datetime(_) => Value::Date,
        DeValue::Array(items) => Value::List(items.iter().map(|item| node(item, file)).collect()),
        DeValue::Table(entries) => Value::Table(table(entries, span)),
    };
    Node { span, value }
}
