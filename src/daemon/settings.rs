//! Where the configuration comes from: a file, the environment, or both.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use firedrill_core::config::{Config, ENV_PREFIX, Problems, SECTIONS, keys_of};

/// Read when no file is named, if it is there.
pub const DEFAULT_FILE: &str = "firedrill.toml";

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}; name another with --config, or drop it to configure by environment alone", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A variable that concerns us is not text.
    #[error("the environment variable {0} is not UTF-8: set it to plain text")]
    Variable(String),
    /// What was read is wrong.
    #[error("{source_name}: {problems}")]
    Invalid {
        /// The file, or the environment.
        source_name: String,
        /// Everything that is wrong.
        problems: Problems,
    },
    /// The node is not to take part in a cluster.
    #[error(
        "{source_name}: cluster.enabled is false, and a node without a cluster has nothing to do\n  help: set \
         `enabled = true` under [cluster] (or FIREDRILL_CLUSTER__ENABLED=true), and a `secret` of at least 16 \
         bytes (better: FIREDRILL_CLUSTER__SECRET)"
    )]
    Disabled {
        /// The file, or the environment.
        source_name: String,
    },
}

/// A configuration, and what to call its source.
#[derive(Debug)]
pub struct Settings {
    /// Checked, and enabled.
    pub config: Config,
    /// The file, or the environment.
    pub source_name: String,
}

/// Reads the file (the default one only if it is there), with the environment over it.
///
/// # Errors
/// [`SettingsError`], with every problem at once.
pub fn load(
    file: Option<&Path>,
    env: impl Iterator<Item = (OsString, OsString)>,
) -> Result<Settings, SettingsError> {
    let env = ours(env)?;
    let (source_name, text) = match file {
        Some(path) => (path.display().to_string(), read(path)?),
        None if Path::new(DEFAULT_FILE).exists() => (DEFAULT_FILE.to_owned(), read(Path::new(DEFAULT_FILE))?),
        None => (format!("environment (there is no {DEFAULT_FILE} here)"), String::new()),
    };
    let config = match Config::parse(&text, &env) {
        Ok(config) => config,
        Err(problems) => return Err(SettingsError::Invalid { source_name, problems }),
    };
    if !config.cluster.enabled {
        return Err(SettingsError::Disabled { source_name });
    }
    Ok(Settings { config, source_name })
}

fn read(path: &Path) -> Result<String, SettingsError> {
    std::fs::read_to_string(path).map_err(|source| SettingsError::File { path: path.to_owned(), source })
}

/// The variables that may concern the configuration.
fn ours(env: impl Iterator<Item = (OsString, OsString)>) -> Result<BTreeMap<String, String>, SettingsError> {
    let mut ours = BTreeMap::new();
    for (name, value) in env {
        let Some(name) = name.to_str().filter(|name| name.starts_with(ENV_PREFIX)) else { continue };
        let Ok(value) = value.into_string() else { return Err(SettingsError::Variable(name.to_owned())) };
        ours.insert(name.to_owned(), value);
    }
    Ok(ours)
}

/// Columns of [`reference`].
const COLUMNS: usize = 96;

/// Every key with its default, its rule, its environment variable and how to choose it.
pub fn reference() -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    for (section, about) in SECTIONS {
        let _ = writeln!(text, "[{section}]  {about}");
        for key in keys_of(section) {
            let default =
                key.default.map_or_else(|| "no default".to_owned(), |value| format!("default {value}"));
            let _ = writeln!(text, "\n  {}  {}, {default}", key.name, key.kind.type_name());
            let _ = writeln!(text, "    {}\n    {}", key.env(), key.rule);
            wrap(key.doc, "      ", &mut text);
        }
        text.push('\n');
    }
    text
}

/// Writes `words` in lines of at most [`COLUMNS`], each indented.
fn wrap(words: &str, indent: &str, text: &mut String) {
    let mut column = 0;
    for word in words.split_whitespace() {
        if column > 0 && column + 1 + word.len() > COLUMNS {
            text.push('\n');
            column = 0;
        }
        let before = if column == 0 { indent } else { " " };
        text.push_str(before);
        text.push_str(word);
        column += before.len() + word.len();
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use firedrill_core::config::KEYS;

    use super::*;

    #[test]
    fn the_reference_holds_every_key_and_every_word_of_its_advice() {
        let text = reference();
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        for key in &KEYS {
            assert!(text.contains(&key.env()), "{}", key.path());
            assert!(words(&text).contains(&words(key.doc)), "{}", key.path());
        }
        assert!(text.lines().all(|line| line.len() <= COLUMNS + 10), "{text}");
    }
}
