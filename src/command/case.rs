//! From the file of an argument to a drill: a scenario as it is written, or the run that an artifact recorded.
//!
//! What the arguments say of the run goes before what the file says.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use firedrill_sim::artifact::{Artifact, ArtifactError};
use firedrill_sim::engine::{EngineKind, Wire};
use firedrill_sim::oracles::sabotage::{self, Sabotage};
use firedrill_sim::scenario::{Report as Problems, Scenario};

use super::files::Unreadable;
use super::testbed::{self, Plan, Refused};
use super::text::style::{BAD, paint};
use super::{problems_text, terminal_cells};

/// What a file stands for: a scenario, and how to run it.
#[derive(Debug)]
pub(crate) struct Case {
    /// The drill.
    pub(crate) scenario: Scenario,
    /// How it is run.
    pub(crate) plan: Plan,
    /// Whether the file is an artifact, which `firedrill run` does not take.
    pub(crate) is_artifact: bool,
}

/// What the arguments say of the run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// The seed, in place of the scenario's or the artifact's.
    pub(crate) seed: Option<u64>,
    /// The engine, in place of the event engine or the artifact's.
    pub(crate) engine: Option<EngineKind>,
    /// The wire, in place of the one that the verbs need or the artifact's.
    pub(crate) wire: Option<Wire>,
    /// The guard to turn off, in place of the artifact's.
    pub(crate) sabotage: Option<&'static Sabotage>,
}

/// Why a file is no case.
#[derive(Debug)]
pub(crate) enum NoCase {
    /// It cannot be read.
    Unreadable(Unreadable),
    /// It is an artifact that cannot be used.
    Artifact(ArtifactError),
    /// It is not a valid scenario, or not one for this engine and wire.
    Invalid(Problems),
}

impl Case {
    /// Resolves a file. One that ends in `.json` is taken for an artifact.
    pub(crate) fn load(path: &Path, wanted: Wanted, cancel: &Arc<AtomicBool>) -> Result<Self, NoCase> {
        if let Err(error) = std::fs::metadata(path) {
            return Err(NoCase::Unreadable(Unreadable { path: PathBuf::from(path), error }));
        }
        if path.extension().is_some_and(|extension| extension == "json") {
            return Self::recorded(path, wanted, cancel);
        }
        let Wanted { seed, engine, wire, sabotage } = wanted;
        let engine = engine.unwrap_or(EngineKind::Event);
        let plan = Plan {
            seed,
            engine,
            wire,
            tick_ms: None,
            inputs_max: None,
            sabotage,
            cancel: Arc::clone(cancel),
        };
        let scenario = testbed::load(path, engine, wire).map_err(|refused| match refused {
            Refused::Beyond(problems) | Refused::Invalid(problems) => NoCase::Invalid(problems),
        })?;
        Ok(Self { scenario, plan, is_artifact: false })
    }

    fn recorded(path: &Path, wanted: Wanted, cancel: &Arc<AtomicBool>) -> Result<Self, NoCase> {
        let mut artifact = Artifact::load(path).map_err(NoCase::Artifact)?;
        if let Some(engine) = wanted.engine.filter(|engine| *engine != artifact.engine) {
            // Wire and ticks are those of the engine that recorded it.
            (artifact.engine, artifact.wire, artifact.tick_ms) = (engine, None, None);
        }
        artifact.wire = wanted.wire.or(artifact.wire);
        let scenario = artifact.scenario().map_err(NoCase::Invalid)?;
        let plan = Plan {
            seed: wanted.seed.or(Some(artifact.seed)),
            engine: artifact.engine,
            wire: artifact.wire,
            tick_ms: artifact.tick_ms,
            inputs_max: artifact.inputs_max,
            // Loading has refused an artifact whose guard does not exist.
            sabotage: wanted.sabotage.or_else(|| artifact.sabotage.as_deref().and_then(sabotage::find)),
            cancel: Arc::clone(cancel),
        };
        Ok(Self { scenario, plan, is_artifact: true })
    }
}

impl NoCase {
    /// For people: with carets, where something is wrong inside a scenario. Ends its last line.
    pub(crate) fn text(&self) -> String {
        let error = |text: String| format!("{}: {text}\n", paint(BAD, "error"));
        match self {
            Self::Unreadable(unreadable) => error(unreadable.to_string()),
            Self::Artifact(why @ ArtifactError::Scenario { report, .. }) => {
                error(why.to_string()) + &problems_text(report, terminal_cells())
            }
            Self::Artifact(why) => error(why.to_string()),
            Self::Invalid(problems) => problems_text(problems, terminal_cells()),
        }
    }

    /// For programs: each thing that is wrong.
    pub(crate) fn reasons(&self) -> Vec<String> {
        let all = |problems: &Problems| problems.problems().iter().map(ToString::to_string).collect();
        match self {
            Self::Unreadable(unreadable) => vec![unreadable.to_string()],
            Self::Artifact(ArtifactError::Scenario { report, .. }) | Self::Invalid(report) => all(report),
            Self::Artifact(why) => vec![why.to_string()],
        }
    }
}
