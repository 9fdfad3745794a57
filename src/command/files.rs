//! From arguments to scenario files.
//!
//! A folder means every `.toml` under it, sorted by path; a name that begins with `_` or `.` is skipped, so
//! that parts meant for `include` can lie beside the drills.

use std::io;
use std::path::{Path, PathBuf};

/// One file to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// Where it is, as the user would write it.
    pub(crate) path: PathBuf,
    /// Whether a folder was named rather than this file.
    pub(crate) from_folder: bool,
}

/// A path that cannot be read.
#[derive(Debug)]
pub(crate) struct Unreadable {
    /// Which.
    pub(crate) path: PathBuf,
    /// Why.
    pub(crate) error: io::Error,
}

/// Every scenario file that the paths name, each once, in the order given.
pub(crate) fn find(paths: &[PathBuf]) -> Result<Vec<Found>, Unreadable> {
    let mut found: Vec<Found> = Vec::new();
    for path in paths {
        let unreadable = |error| Unreadable { path: path.clone(), error };
        let mut files = Vec::new();
        let from_folder = std::fs::metadata(path).map_err(unreadable)?.is_dir();
        if from_folder {
            walk(path, &mut files)?;
        } else {
            files.push(path.clone());
        }
        for path in files {
            if !found.iter().any(|earlier| earlier.path == path) {
                found.push(Found { path, from_folder });
            }
        }
    }
    Ok(found)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Unreadable> {
    let unreadable = |error| Unreadable { path: folder.to_path_buf(), error };
    let mut entries = std::fs::read_dir(folder)
        .and_then(|entries| {
            entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>()
        })
        .map_err(unreadable)?;
    entries.sort();
    for path in entries {
        let hidden = path.file_name().is_some_and(|name| {
            let name = name.to_string_lossy();
            name.starts_with('_') || name.starts_with('.')
        });
        if hidden {
            continue;
        }
        if path.is_dir() {
            walk(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
    Ok(())
}

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.error.kind() == io::ErrorKind::NotFound {
            write!(
                f,
                "{} does not exist; `firedrill list scenarios` shows those of the folder `scenarios`",
                self.path.display()
            )
        } else {
            write!(f, "{} cannot be read: {}", self.path.display(), self.error)
        }
    }
}
