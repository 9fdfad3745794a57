//! Reading an artifact: every way in which a file can be none, each said with its remedy.

use std::io;
use std::path::Path;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{Artifact, FORMAT};
use crate::drill::RunOptions;
use crate::oracles::sabotage::SABOTAGE;
use crate::scenario::{LoadOptions, Report, Scenario};

/// Largest file that is read, in bytes: some tens of millions of events.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Why a file is no artifact.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// It cannot be read.
    #[error(
        "{path} cannot be read: {error}; artifacts are the JSON files that a failed `firedrill fuzz` leaves behind"
    )]
    Unreadable {
        /// Which file.
        path: String,
        /// Why.
        error: io::Error,
    },
    /// It is no JSON.
    #[error(
        "{path}:{line}:{column} is no JSON ({why}); the file was cut off or edited, so record the failure anew"
    )]
    NotJson {
        /// Which file.
        path: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1; 0 before the first.
        column: usize,
        /// What the parser says.
        why: String,
    },
    /// It is JSON, but nothing that firedrill wrote.
    #[error(
        "{path} is no artifact: it has no number `format`; to run a scenario file, its name must end in .toml"
    )]
    NoFormat {
        /// Which file.
        path: String,
    },
    /// Another version wrote it.
    #[error(
        "{path} has the format {found}, and this firedrill ({version}) reads format {FORMAT} only; replay it \
         with the firedrill that wrote it{by}, or run the scenario it holds",
        version = env!("CARGO_PKG_VERSION")
    )]
    Format {
        /// Which file.
        path: String,
        /// Its format.
        found: String,
        /// The version that wrote it, as part of a sentence.
        by: String,
    },
    /// A key is missing or holds what it must not.
    #[error(
        "{path}:{line}:{column} is no whole artifact: {why}; it was edited or cut, so record the failure anew"
    )]
    Shape {
        /// Which file.
        path: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong.
        why: String,
    },
    /// The trail and the number of events contradict each other.
    #[error(
        "{path}: the trail holds {marks} events, but `events` says {events}; the file was edited or cut, so \
         record the failure anew"
    )]
    Trail {
        /// Which file.
        path: String,
        /// Events of the trail.
        marks: usize,
        /// What the file says.
        events: u64,
    },
    /// The trail names a host that the scenario does not have.
    #[error(
        "{path}: event {event} of the trail happened on host {host}, but the scenario has only {hosts}; trail and \
         scenario are not of one run, so record the failure anew"
    )]
    Host {
        /// Which file.
        path: String,
        /// Which event.
        event: usize,
        /// The host's number, from 1.
        host: usize,
        /// How many there are.
        hosts: usize,
    },
    /// A guard was off that this version does not have.
    #[error(
        "{path}: it was recorded with the guard `{guard}` off, and this firedrill has no such guard; replay it with \
         the firedrill that recorded it, {version}"
    )]
    Guard {
        /// Which file.
        path: String,
        /// The guard's name.
        guard: String,
        /// The version that recorded it.
        version: String,
    },
    /// The scenario in it is not valid here.
    #[error(
        "{path}: the scenario it holds is not valid for this firedrill; replay it with the firedrill that recorded \
         it, {version}"
    )]
    Scenario {
        /// Which file.
        path: String,
        /// The version that recorded it.
        version: String,
        /// What is wrong, each with its place in the scenario.
        report: Report,
    },
}

impl Artifact {
    /// Reads a file.
    ///
    /// # Errors
    /// [`ArtifactError`], which says what is wrong with it and what to do.
    pub fn load(path: &Path) -> Result<Self, ArtifactError> {
        let shown = path.display().to_string();
        match read(path) {
            Ok(text) => Self::from_json(&text, &shown),
            Err(error) => Err(ArtifactError::Unreadable { path: shown, error }),
        }
    }

    /// Reads a file's text. `path` is what messages call it. What comes back can be replayed.
    ///
    /// # Errors
    /// [`ArtifactError`], which says what is wrong with it and what to do.
    pub fn from_json(text: &str, path: &str) -> Result<Self, ArtifactError> {
        let path = || path.to_owned();
        let value: Value = serde_json::from_str(text).map_err(|error| ArtifactError::NotJson {
            path: path(),
            line: error.line(),
            column: error.column(),
            why: plain(&error),
        })?;
        match value.get("format") {
            Some(Value::Number(format)) if format.as_u64() == Some(u64::from(FORMAT)) => {}
            Some(Value::Number(format)) => {
                let by = value.get("firedrill").and_then(Value::as_str);
                let by = by.map_or_else(String::new, |version| format!(" ({version})"));
                return Err(ArtifactError::Format { path: path(), found: format.to_string(), by });
            }
            Some(_) | None => return Err(ArtifactError::NoFormat { path: path() }),
        }
        drop(value);
        // Once more from the text, which knows its lines.
        let artifact: Self = serde_json::from_str(text).map_err(|error| ArtifactError::Shape {
            path: path(),
            line: error.line(),
            column: error.column(),
            why: plain(&error),
        })?;
        artifact.check(&path())?;
        Ok(artifact)
    }

    /// How to run it again. Guards are those of the recording.
    ///
    /// # Errors
    /// The name of a guard that this version does not have.
    pub fn options(&self) -> Result<RunOptions, String> {
        let mut options = RunOptions {
            seed: Some(self.seed),
            engine: self.engine,
            wire: self.wire,
            inputs_max: self.inputs_max,
            keep_trail: true,
            keep_schedule: true,
            ..RunOptions::default()
        };
        options.tick_ms = self.tick_ms.unwrap_or(options.tick_ms);
        if let Some(guard) = &self.sabotage {
            let row = SABOTAGE.iter().find(|row| row.guard == guard).ok_or_else(|| guard.clone())?;
            (row.apply)(&mut options.guards);
        }
        Ok(options)
    }

    /// Checks what the parts say of each other.
    fn check(&self, path: &str) -> Result<(), ArtifactError> {
        let path = || path.to_owned();
        if self.trail.len() as u64 != self.events || self.trail.is_empty() {
            return Err(ArtifactError::Trail { path: path(), marks: self.trail.len(), events: self.events });
        }
        if let Err(guard) = self.options() {
            return Err(ArtifactError::Guard { path: path(), guard, version: self.firedrill.clone() });
        }
        let scenario = self.scenario().map_err(|report| ArtifactError::Scenario {
            path: path(),
            version: self.firedrill.clone(),
            report,
        })?;
        let hosts = scenario.hosts.len();
        match self.trail.iter().position(|mark| mark.host().0 >= hosts) {
            Some(event) => {
                let host = self.trail.get(event).map_or(0, |mark| mark.host().0 + 1);
                Err(ArtifactError::Host { path: path(), event, host, hosts })
            }
            None => Ok(()),
        }
    }
}

/// A key that may hold `null` but may not be absent: what is not said is not the same as what is not so.
pub(super) fn required<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer)
}

/// Reads the scenario of an artifact: a single file that includes nothing.
pub(super) fn parse_scenario(text: &str, path: &str, options: LoadOptions) -> Result<Scenario, Report> {
    let alone = |_: &Path| Err(io::Error::other("the scenario of an artifact includes nothing"));
    Scenario::parse(text, Path::new(path), &alone, options)
}

/// What the parser says, without the place, which is told apart.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}

/// The text of a regular file of a sensible size.
fn read(path: &Path) -> io::Result<String> {
    let file = std::fs::metadata(path)?;
    if !file.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    if file.len() > FILE_BYTES_MAX {
        return Err(io::Error::other(format!("it has {} bytes; an artifact has at most 1 GiB", file.len())));
    }
    std::fs::read_to_string(path)
}
