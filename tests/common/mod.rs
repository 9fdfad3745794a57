//! What whole-system tests share: the shipped scenarios, and running many of them at once.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use firedrill_sim::drill::{self, RunOptions};
use firedrill_sim::engine::{EngineKind, Wire};
use firedrill_sim::outcome::Outcome;
use firedrill_sim::scenario::{LoadOptions, Scenario};

/// A way to run a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// Event engine, real bytes.
    Full,
    /// Event engine, messages as values.
    Fast,
    /// The production driver.
    Turmoil,
}

impl Way {
    /// Its engine and wire.
    pub(crate) const fn engine(self) -> (EngineKind, Option<Wire>) {
        match self {
            Self::Full => (EngineKind::Event, Some(Wire::Full)),
            Self::Fast => (EngineKind::Event, Some(Wire::Fast)),
            Self::Turmoil => (EngineKind::Turmoil, None),
        }
    }

    /// Reads a scenario for this way; `None` when it cannot express it.
    pub(crate) fn load(self, path: &Path) -> Option<Scenario> {
        let (engine, wire) = self.engine();
        Scenario::load(path, LoadOptions { wire, ..LoadOptions::for_engine(engine) }).ok()
    }

    /// Runs a scenario with its own seed.
    pub(crate) fn run(self, scenario: &Scenario) -> Outcome {
        let (engine, wire) = self.engine();
        let options = RunOptions { engine, wire, ..RunOptions::default() };
        match drill::run(scenario, &options) {
            Ok(outcome) => outcome,
            Err(error) => panic!("{} on {self:?}: {error}", scenario.name),
        }
    }
}

/// Every shipped scenario, sorted.
pub(crate) fn scenarios() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("scenarios/ can be read") {
            let path = entry.expect("an entry can be read").path();
            let name = path.file_name().expect("an entry has a name").to_string_lossy().into_owned();
            if name.starts_with('_') {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with(".toml") {
                found.push(path);
            }
        }
    }
    assert!(!found.is_empty(), "there are no scenarios");
    found.sort();
    found
}

/// Maps over `items` on as many threads as there are cores; results in the order of the items.
pub(crate) fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((index, item)) = Some(next.fetch_add(1, Ordering::Relaxed))
                    .and_then(|index| Some((index, items.get(index)?)))
                {
                    let result = work(item);
                    results.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}
