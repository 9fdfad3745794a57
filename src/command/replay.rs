//! `firedrill replay`: is it still the run that was recorded?
//!
//! An artifact is run again and compared with its recording; a scenario file, which has none, is run twice and
//! compared with itself. One file is told in full, several take a line each and the gravest result decides. Whether
//! the drill failed is no matter here: a failure that is reproduced is a success.
//!
//! Absent: the comparison itself, which is the testbed's.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use firedrill_sim::artifact::{Artifact, ArtifactError};
use firedrill_sim::drill::RunError;
use firedrill_sim::engine::EngineKind;
use firedrill_sim::outcome::{Failure, Happening, Violation};
use firedrill_sim::replay::{Difference, FaultDifference, Finding, Replay, ReplayError};
use firedrill_sim::scenario::Report as Problems;
use serde::Serialize;

use super::cli::{ReplayArgs, StoryFormat};
use super::exit::Exit;
use super::files::Unreadable;
use super::json::NotRun;
use super::testbed::{self, Refused};
use super::text::replay::{Line, Page};
use super::text::style::{BAD, moment, paint};
use super::{problems_text, shell, terminal_cells};

/// What came of one file.
#[derive(Debug)]
pub(crate) struct Replayed {
    /// The file, as it was named.
    pub(crate) file: PathBuf,
    /// The recording; `None` for a scenario that was compared with itself.
    pub(crate) recorded: Option<Artifact>,
    /// What the comparison showed.
    pub(crate) replay: Replay,
    /// The program and the file, as a shell takes them.
    pub(crate) words: (String, String),
}

/// What became of the recorded failure in a run that differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Change {
    /// It failed when recorded and passes now.
    Gone,
    /// It fails for the same reason, by other events.
    SameFailure,
    /// It fails for another reason.
    OtherFailure,
    /// It passed when recorded and fails now.
    Appeared,
    /// It passed and passes, by other events.
    StillPasses,
}

impl Change {
    /// The change between a recorded failure and that of now.
    pub(crate) fn of(difference: &Difference) -> Self {
        match &difference.failures {
            (Some(_), None) => Self::Gone,
            (Some(recorded), Some(now)) if recorded == now => Self::SameFailure,
            (Some(_), Some(_)) => Self::OtherFailure,
            (None, Some(_)) => Self::Appeared,
            (None, None) => Self::StillPasses,
        }
    }
}

impl Replayed {
    /// How the command should end if this were all.
    pub(crate) const fn exit(&self) -> Exit {
        match self.replay.finding {
            Finding::Reproduced => Exit::Pass,
            Finding::Changed(_) => Exit::Violated,
            Finding::NotDeterministic(_) => Exit::NotDeterministic,
        }
    }
}

/// Why a file was not replayed.
#[derive(Debug)]
enum Not {
    /// It cannot be read, or not run as it says; the words name the file and the remedy.
    Told(String),
    /// The scenario in it, or the scenario it is, is not valid.
    Invalid(String, Box<Problems>),
    /// Ctrl-C, so many milliseconds into the run.
    Interrupted(u64),
    /// A bug. The panic itself is on standard error already.
    Broke,
}

/// Replays every file that the arguments name.
pub(crate) fn replay(
    args: &ReplayArgs,
    program: &str,
    cancel: &Arc<AtomicBool>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    let alone = args.files.len() == 1;
    let mut teller = Teller { format: args.format, alone, out, err };
    let mut gravest = Exit::Pass;
    for file in &args.files {
        let attempt = catch_unwind(AssertUnwindSafe(|| one(file, program, cancel)));
        let exit = match attempt.unwrap_or(Err(Not::Broke)) {
            Ok(replayed) => teller.tell(&replayed)?,
            Err(why) => teller.not(file, &why)?,
        };
        gravest = gravest.max(exit);
        if exit == Exit::Interrupted {
            break;
        }
    }
    Ok(gravest)
}

/// Replays one file: a scenario by its name, else an artifact.
fn one(file: &Path, program: &str, cancel: &Arc<AtomicBool>) -> Result<Replayed, Not> {
    let is_scenario = file.extension().is_some_and(|extension| extension == "toml");
    let (recorded, replay) = if is_scenario { scenario(file, cancel)? } else { artifact(file, cancel)? };
    let words = (shell::quoted(program), shell::quoted(&file.display().to_string()));
    Ok(Replayed { file: file.to_path_buf(), recorded, replay, words })
}

fn artifact(file: &Path, cancel: &Arc<AtomicBool>) -> Result<(Option<Artifact>, Replay), Not> {
    let artifact = Artifact::load(file).map_err(|error| {
        let text = error.to_string();
        match error {
            ArtifactError::Scenario { report, .. } => Not::Invalid(text, Box::new(report)),
            ArtifactError::Unreadable { .. }
            | ArtifactError::NotJson { .. }
            | ArtifactError::NoFormat { .. }
            | ArtifactError::Format { .. }
            | ArtifactError::Shape { .. }
            | ArtifactError::Trail { .. }
            | ArtifactError::Host { .. }
            | ArtifactError::Guard { .. } => Not::Told(text),
        }
    })?;
    match testbed::replay(&artifact, cancel) {
        Ok(replay) => Ok((Some(artifact), replay)),
        Err(ReplayError::Run(error)) => Err(not_run(file, &error)),
        Err(error @ (ReplayError::Scenario(_) | ReplayError::Guard(_))) => {
            Err(Not::Told(format!("{}: {error}", file.display())))
        }
    }
}

fn scenario(file: &Path, cancel: &Arc<AtomicBool>) -> Result<(Option<Artifact>, Replay), Not> {
    if let Err(error) = std::fs::metadata(file) {
        return Err(Not::Told(Unreadable { path: file.to_path_buf(), error }.to_string()));
    }
    let scenario = testbed::load(file, EngineKind::Event, None).map_err(|refused| match refused {
        Refused::Invalid(problems) | Refused::Beyond(problems) => {
            Not::Invalid(format!("{} is not a valid scenario", file.display()), Box::new(problems))
        }
    })?;
    let replay = testbed::twice(scenario, cancel).map_err(|error| not_run(file, &error))?;
    Ok((None, replay))
}

fn not_run(file: &Path, error: &RunError) -> Not {
    match error {
        RunError::Cancelled { at_ms } => Not::Interrupted(*at_ms),
        RunError::NeedsBytes { .. } | RunError::Oracle { .. } => {
            Not::Told(format!("{}: {error}", file.display()))
        }
    }
}

struct Teller<'a> {
    format: StoryFormat,
    /// Whether one file was named: it is told in full.
    alone: bool,
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
}

impl Teller<'_> {
    fn tell(&mut self, replayed: &Replayed) -> io::Result<Exit> {
        match self.format {
            StoryFormat::Text if self.alone => {
                write!(self.out, "{}", Page { replayed, cells: terminal_cells() })?;
            }
            StoryFormat::Text => write!(self.out, "{}", Line { replayed })?,
            StoryFormat::Json => {
                serde_json::to_writer(&mut *self.out, &Document::of(replayed))?;
                writeln!(self.out)?;
            }
        }
        self.out.flush()?;
        Ok(replayed.exit())
    }

    /// Says why a file was not replayed.
    fn not(&mut self, file: &Path, why: &Not) -> io::Result<Exit> {
        let path = file.display().to_string();
        let error = paint(BAD, "error");
        let (verdict, exit, told, problems) = match why {
            Not::Told(text) => ("invalid", Exit::Invalid, format!("{error}: {text}\n"), vec![text.clone()]),
            Not::Invalid(text, report) => {
                let told = format!("{error}: {text}\n{}", problems_text(report, terminal_cells()));
                let each = report.problems().iter().map(ToString::to_string);
                ("invalid", Exit::Invalid, told, std::iter::once(text.clone()).chain(each).collect())
            }
            Not::Interrupted(at_ms) => {
                let text = format!("interrupted at {} of the run", moment(at_ms.saturating_mul(1_000)));
                let title = paint(BAD, "INTERRUPTED");
                let told = format!("{title}: {path} is not judged: {text}\n");
                ("interrupted", Exit::Interrupted, told, vec![text])
            }
            Not::Broke => {
                let text = format!("the replay of {path} panicked, as told above");
                let told = format!("{error}: {text}; this is a bug of firedrill, please report it\n");
                ("internal", Exit::Internal, told, vec![text])
            }
        };
        match self.format {
            StoryFormat::Text => write!(self.err, "{told}")?,
            StoryFormat::Json => {
                let document = NotRun { path: &path, verdict, exit_code: exit.code(), problems };
                serde_json::to_writer(&mut *self.out, &document)?;
                writeln!(self.out)?;
            }
        }
        Ok(exit)
    }
}

/// A replay for programs: the fields are a contract, as those of a run are.
#[derive(Debug, Serialize)]
struct Document<'a> {
    file: String,
    verdict: &'static str,
    exit_code: u8,
    /// What became of the recorded failure; `null` unless the run changed.
    change: Option<Change>,
    scenario: &'a str,
    seed: u64,
    engine: &'a str,
    wire: Option<&'a str>,
    tick_ms: Option<u64>,
    sabotage: Option<&'a str>,
    /// `null` for a scenario, which is compared with itself.
    recorded: Option<Side<'a>>,
    now: Side<'a>,
    violation: Option<&'a Violation>,
    first_different_fault: Option<Fault<'a>>,
    first_different_event: Option<Event<'a>>,
}

/// One of two runs.
#[derive(Debug, Serialize)]
struct Side<'a> {
    firedrill: &'a str,
    failure: Option<Failure>,
    digest: &'a str,
    events: u64,
}

/// The first fault that differs: index, and words for either run.
#[derive(Debug, Serialize)]
struct Fault<'a> {
    index: usize,
    runs: [Option<&'a firedrill_sim::outcome::Applied>; 2],
}

/// The first event that differs: index, its node in either run, and what it is now.
#[derive(Debug, Serialize)]
struct Event<'a> {
    index: usize,
    nodes: [Option<&'a str>; 2],
    happening: Option<&'a Happening>,
}

impl<'a> Document<'a> {
    fn of(replayed: &'a Replayed) -> Self {
        let outcome = &replayed.replay.outcome;
        let (verdict, change, difference) = match &replayed.replay.finding {
            Finding::Reproduced => ("reproduced", None, None),
            Finding::Changed(difference) => ("changed", Some(Change::of(difference)), Some(difference)),
            Finding::NotDeterministic(difference) => ("not_deterministic", None, Some(difference)),
        };
        let fault = |fault: &'a FaultDifference| Fault {
            index: fault.index,
            runs: [fault.one.as_ref(), fault.other.as_ref()],
        };
        let event = difference.and_then(|difference| difference.event.as_ref());
        Self {
            file: replayed.file.display().to_string(),
            verdict,
            exit_code: replayed.exit().code(),
            change,
            scenario: &outcome.scenario,
            seed: outcome.seed,
            engine: outcome.engine,
            wire: outcome.wire,
            tick_ms: outcome.tick_ms,
            sabotage: replayed.recorded.as_ref().and_then(|recorded| recorded.sabotage.as_deref()),
            recorded: replayed.recorded.as_ref().map(|recorded| Side {
                firedrill: &recorded.firedrill,
                failure: recorded.failure.clone(),
                digest: &recorded.digest,
                events: recorded.events,
            }),
            now: Side {
                firedrill: env!("CARGO_PKG_VERSION"),
                failure: outcome.failure(),
                digest: &outcome.digest,
                events: outcome.trail.len() as u64,
            },
            violation: outcome.violation.as_ref(),
            first_different_fault: difference.and_then(|found| found.fault.as_ref()).map(fault),
            first_different_event: event.map(|event| Event {
                index: event.index,
                nodes: [event.one.as_deref(), event.other.as_deref()],
                happening: event.happening.as_ref(),
            }),
        }
    }
}
