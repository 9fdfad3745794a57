//! Scenario files: one story each, in TOML, read into a checked [`Scenario`].
//!
//! [`Scenario::load`] finds the files, parses them with spans, merges includes and checks everything that can
//! be checked before a run: a `Scenario` that exists is valid for the engine it was read for. What is wrong
//! comes back as one [`Report`]: the first syntax error of each file, or else every semantic error at once.
//!
//! ```toml
//! name = "partition-heal"
//! about = "The minority is cut off for a minute; after the heal everybody agrees again."
//! time_limit = "3min"
//!
//! [nodes]
//! names = ["a", "b", "c"]
//!
//! [[workload]]
//! increment = "sightings"
//! every = "200ms"
//!
//! [[step]]
//! id = "cut"
//! at = "30s"
//! partition = [["a"], ["b", "c"]]
//! for = "60s"
//!
//! [[expect]]
//! by = "40s"
//! event = { down = "a", on = "b" }
//!
//! [[expect]]
//! at_end = { counter = { name = "sightings", equals = "truth" } }
//! ```
//!
//! Every word is described in [`catalog`]; [`schema`] makes the JSON schema for editors from it.
//!
//! Absent: running anything, and reading a clock or the environment; files are read through a resolver.

pub mod catalog;
mod document;
mod expects;
mod facts;
mod fields;
pub mod hosts;
mod issuance;
pub mod model;
mod read;
mod report;
pub mod schema;
mod scope;
mod steps;
mod values;
mod verbs;
mod write;

use std::path::Path;

pub use document::Resolver;
pub(crate) use hosts::{SECRET, Seeds, address, made_up};
pub use model::Scenario;
pub use report::{Problem, Report};
pub(crate) use write::reread_issuance;

use crate::engine::{EngineKind, Wire};
use document::Files;
use report::Problems;

/// What a scenario is read for.
#[derive(Debug, Clone, Copy)]
pub struct LoadOptions {
    /// The engine that will run it; verbs it cannot do are refused.
    pub engine: EngineKind,
    /// The wire that was asked for, if any; `Fast` refuses what needs real bytes.
    pub wire: Option<Wire>,
    /// The oracles there are; empty when unknown, and then their names go unchecked.
    pub oracles: &'static [&'static str],
}

impl LoadOptions {
    /// For an engine, with the wire left open and the names of oracles unchecked.
    pub const fn for_engine(engine: EngineKind) -> Self {
        Self { engine, wire: None, oracles: &[] }
    }
}

impl Scenario {
    /// Reads a scenario and what it includes from disk.
    ///
    /// # Errors
    /// A [`Report`] with everything that is wrong.
    pub fn load(path: &Path, options: LoadOptions) -> Result<Self, Report> {
        match read_file(path) {
            Ok(text) => Self::parse(&text, path, &read_file, options),
            Err(error) => {
                let mut problems = Problems::default();
                let mut problem = Problem::without_place(format!("cannot read {}: {error}", path.display()));
                problem
                    .help("a scenario is a TOML file; `firedrill list scenarios` shows those that are here");
                problems.push(problem);
                problems
                    .finish(&[model::SourceFile { path: path.display().to_string(), text: "".into() }], None)
            }
        }
    }

    /// Reads a scenario from text. `path` is what messages call it; included paths are relative to it and are
    /// read by `resolver`.
    ///
    /// # Errors
    /// A [`Report`] with everything that is wrong.
    pub fn parse(
        text: &str,
        path: &Path,
        resolver: &Resolver<'_>,
        options: LoadOptions,
    ) -> Result<Self, Report> {
        let mut problems = Problems::default();
        let files = Files::gather(path, text.to_owned(), resolver, &mut problems);
        if problems.len() > 0 {
            return problems.finish(&files.files, None);
        }
        let documents = files.documents();
        read::scenario(&files, &documents, options, problems)
    }

    /// Whether only real bytes can run it: a byte-level verb, or hosts that differ in secret or cluster name.
    pub const fn needs_full(&self) -> bool {
        self.needs_full
    }
}
/// Largest file that is read as a scenario or an include, in bytes: a device never ends.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// The text of a regular file of a sensible size.
fn read_file(path: &Path) -> std::io::Result<String> {
    let file = std::fs::metadata(path)?;
    if !file.is_file() {
        return Err(std::io::Error::other("it is not a file"));
    }
    if file.len() > FILE_BYTES_MAX {
        return Err(std::io::Error::other(format!(
            "it has {} bytes; a scenario has at most 4 MiB",
            file.len()
        )));
    }
    std::fs::read_to_string(path)
}
