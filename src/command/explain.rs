//! `firedrill explain`: one drill, run once more and told as a story.
//!
//! Ends as `firedrill run` would: with 0 for a drill that passed, with the verdict's code for one that failed.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use firedrill_sim::drill::RunError;
use firedrill_sim::explain::Story;
use serde::Serialize;

use super::case::{Case, NoCase, Wanted};
use super::cli::{ExplainArgs, StoryFormat};
use super::exit::Exit;
use super::json::NotRun;
use super::report::{Report, Setting};
use super::testbed;
use super::text::story::Page;
use super::text::style::{BAD, moment, paint};
use super::{shell, terminal_cells};

/// Runs the drill that the arguments name and tells its story.
pub(crate) fn explain(
    args: &ExplainArgs,
    program: &str,
    cancel: &Arc<AtomicBool>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    let mut teller = Teller { path: &args.file, format: args.format, out, err };
    let wanted = Wanted {
        seed: args.seed,
        engine: args.engine.map(Into::into),
        wire: args.wire.map(Into::into),
        sabotage: args.sabotage,
    };
    let case = match Case::load(&args.file, wanted, cancel) {
        Ok(case) => case,
        Err(no_case) => return teller.no_case(&no_case),
    };
    let run = if case.is_artifact { "explain" } else { "run" };
    let reproduce = |verb: &str, wire: Option<&str>| {
        let seed = case.plan.seed.unwrap_or(case.scenario.seed);
        shell::repeat(program, verb, &args.file, &case.plan, seed, wire)
    };
    let told = catch_unwind(AssertUnwindSafe(|| testbed::explain(&case.scenario, &case.plan)));
    match told {
        Ok(Ok((story, ran))) => {
            let reproduce = reproduce(run, ran.outcome.wire);
            let report = Report {
                setting: Setting::of(&case.scenario),
                sabotage: case.plan.sabotage,
                outcome: ran.outcome,
                real: ran.real,
                twice: None,
                reproduce,
            };
            teller.tell(&story, &report, case.is_artifact)
        }
        Ok(Err(RunError::Cancelled { at_ms })) => teller.interrupted(at_ms),
        Ok(Err(error @ (RunError::NeedsBytes { .. } | RunError::Oracle { .. }))) => teller.refused(&error),
        Err(_panic) => teller.broke(&reproduce("explain", case.plan.wire_name())),
    }
}

/// A story for programs.
#[derive(Debug, Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    story: &'a Story,
    exit_code: u8,
    digest: &'a str,
    reproduce: &'a str,
}

struct Teller<'a> {
    path: &'a Path,
    format: StoryFormat,
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
}

impl Teller<'_> {
    fn tell(&mut self, story: &Story, report: &Report, is_artifact: bool) -> io::Result<Exit> {
        let exit = report.exit();
        match self.format {
            StoryFormat::Text => {
                write!(self.out, "{}", Page { story, report, is_artifact, cells: terminal_cells() })?
            }
            StoryFormat::Json => {
                let (digest, reproduce) = (&report.outcome.digest, &report.reproduce);
                let document = Document { story, exit_code: exit.code(), digest, reproduce };
                serde_json::to_writer(&mut *self.out, &document)?;
                writeln!(self.out)?;
            }
        }
        Ok(exit)
    }

    fn no_case(&mut self, no_case: &NoCase) -> io::Result<Exit> {
        match self.format {
            StoryFormat::Text => write!(self.err, "{}", no_case.text())?,
            StoryFormat::Json => self.not_told("invalid", Exit::Invalid, no_case.reasons())?,
        }
        Ok(Exit::Invalid)
    }

    fn refused(&mut self, error: &RunError) -> io::Result<Exit> {
        match self.format {
            StoryFormat::Text => {
                writeln!(self.err, "{}: {}: {error}", paint(BAD, "error"), self.path.display())?
            }
            StoryFormat::Json => self.not_told("invalid", Exit::Invalid, vec![error.to_string()])?,
        }
        Ok(Exit::Invalid)
    }

    fn interrupted(&mut self, at_ms: u64) -> io::Result<Exit> {
        let text = format!("interrupted at {} of the run", moment(at_ms.saturating_mul(1_000)));
        match self.format {
            StoryFormat::Text => writeln!(self.out, "  {}: there is no story yet", paint(BAD, text))?,
            StoryFormat::Json => self.not_told("interrupted", Exit::Interrupted, vec![text])?,
        }
        Ok(Exit::Interrupted)
    }

    /// The testbed panicked: a bug. The panic itself is on standard error already.
    fn broke(&mut self, reproduce: &str) -> io::Result<Exit> {
        match self.format {
            StoryFormat::Text => {
                let title = paint(BAD, "the story could not be told");
                let advice = "This is a bug of firedrill; please report it with this line:";
                writeln!(self.err, "{title}: it panicked, as told above\n{advice}\n{reproduce}")?;
            }
            StoryFormat::Json => {
                let reason = format!("panicked; to see it again: {reproduce}");
                self.not_told("internal", Exit::Internal, vec![reason])?;
            }
        }
        Ok(Exit::Internal)
    }

    fn not_told(&mut self, verdict: &str, exit: Exit, problems: Vec<String>) -> io::Result<()> {
        let path = self.path.display().to_string();
        let document = NotRun { path: &path, verdict, exit_code: exit.code(), problems };
        serde_json::to_writer(&mut *self.out, &document)?;
        writeln!(self.out)
    }
}
