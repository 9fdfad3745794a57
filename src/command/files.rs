//! From arguments to scenario files.
//!
//! A folder means every `.toml` under it, sorted by path; a name that begins with `_` or `.` is skipped, so
//! that parts meant for `include` can lie beside the drills. A file or folder that is reached twice, by another
//! spelling or through a link, counts once: a link that leads back up does not go round for ever.

use std::collections::BTreeSet;
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
    let mut search = Search::default();
    for path in paths {
        let unreadable = |error| Unreadable { path: path.clone(), error };
        if std::fs::metadata(path).map_err(unreadable)?.is_dir() {
            search.walk(path)?;
        } else {
            search.take(path.clone(), false);
        }
    }
    Ok(search.found)
}

/// What was found so far.
#[derive(Debug, Default)]
struct Search {
    found: Vec<Found>,
    /// Where the files and folders that were taken really are.
    seen: BTreeSet<PathBuf>,
}

impl Search {
    fn walk(&mut self, folder: &Path) -> Result<(), Unreadable> {
        if !self.is_new(folder) {
            return Ok(());
        }
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
            // A link that leads nowhere is taken: that it cannot be read is said when it is.
            let (is_dir, is_other) = std::fs::metadata(&path)
                .map_or((false, false), |what| (what.is_dir(), !what.is_dir() && !what.is_file()));
            if is_dir {
                self.walk(&path)?;
            } else if !is_other && path.extension().is_some_and(|extension| extension == "toml") {
                self.take(path, true);
            }
        }
        Ok(())
    }

    fn take(&mut self, path: PathBuf, from_folder: bool) {
        if self.is_new(&path) {
            self.found.push(Found { path, from_folder });
        }
    }

    fn is_new(&mut self, path: &Path) -> bool {
        self.seen.insert(path.canonicalize().unwrap_or_else(|_| path.to_path_buf()))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_link_that_leads_back_up_and_another_spelling_find_each_file_once() {
        let root = std::env::temp_dir().join(format!("firedrill-files-{}", std::process::id()));
        let inner = root.join("inner");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(inner.join("drill.toml"), "").unwrap();
        std::fs::write(inner.join("_part.toml"), "").unwrap();
        for link in ["up", "up-too"] {
            std::os::unix::fs::symlink(&root, inner.join(link)).unwrap();
        }
        std::os::unix::fs::symlink("nowhere", root.join("lost.toml")).unwrap();
        let found = find(&[root.clone(), inner.join("../inner/drill.toml")]);
        std::fs::remove_dir_all(&root).unwrap();
        let paths: Vec<_> = found.unwrap().into_iter().map(|found| found.path).collect();
        assert_eq!(paths, [inner.join("drill.toml"), root.join("lost.toml")]);
    }
}
