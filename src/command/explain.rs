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
use firedrill_sim::scenario::{Report as Problems, Scenario};
use serde::Serialize;

use super::cli::{ExplainArgs, StoryFormat};
use super::exit::Exit;
use super::files::Unreadable;
use super::json::NotRun;
use super::report::{Report, Setting};
use super::testbed::{self, Plan, Refused};
use super::text::story::Page;
use super::text::style::{BAD, moment, paint};
use super::{problems_text, shell, terminal_cells};

/// What a file stands for: a scenario, and how to run it.
#[derive(Debug)]
struct Case {
    scenario: Scenario,
    plan: Plan,
}

/// Why a file is no case.
#[derive(Debug)]
enum NoCase {
    Unreadable(Unreadable),
    Invalid(Problems),
}

/// Runs the drill that the arguments name and tells its story.
pub(crate) fn explain(
    args: &ExplainArgs,
    program: &str,
    cancel: &Arc<AtomicBool>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    let mut teller = Teller { path: &args.file, format: args.format, out, err };
    let case = match case(args, cancel) {
        Ok(case) => case,
        Err(NoCase::Unreadable(unreadable)) => return teller.unreadable(&unreadable),
        Err(NoCase::Invalid(problems)) => return teller.invalid(&problems),
    };
    let reproduce = |verb: &str, wire: Option<&str>| {
        let seed = case.plan.seed.unwrap_or(case.scenario.seed);
        shell::repeat(program, verb, &args.file, &case.plan, seed, wire)
    };
    let told = catch_unwind(AssertUnwindSafe(|| testbed::explain(&case.scenario, &case.plan)));
    match told {
        Ok(Ok((story, ran))) => {
            let reproduce = reproduce("run", ran.outcome.wire);
            let report = Report {
                setting: Setting::of(&case.scenario),
                sabotage: case.plan.sabotage,
                outcome: ran.outcome,
                real: ran.real,
                twice: None,
                reproduce,
            };
            teller.tell(&story, &report)
        }
        Ok(Err(RunError::Cancelled { at_ms })) => teller.interrupted(at_ms),
        Ok(Err(error @ (RunError::NeedsBytes { .. } | RunError::Oracle { .. }))) => teller.refused(&error),
        Err(_panic) => teller.broke(&reproduce("explain", case.plan.wire_name())),
    }
}

/// Resolves the file to a scenario and the way to run it.
fn case(args: &ExplainArgs, cancel: &Arc<AtomicBool>) -> Result<Case, NoCase> {
    if let Err(error) = std::fs::metadata(&args.file) {
        return Err(NoCase::Unreadable(Unreadable { path: args.file.clone(), error }));
    }
    let plan = Plan {
        seed: args.seed,
        engine: args.engine.into(),
        wire: args.wire.map(Into::into),
        sabotage: args.sabotage,
        cancel: Arc::clone(cancel),
    };
    match testbed::load(&args.file, plan.engine, plan.wire) {
        Ok(scenario) => Ok(Case { scenario, plan }),
        Err(Refused::Beyond(problems) | Refused::Invalid(problems)) => Err(NoCase::Invalid(problems)),
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
    fn tell(&mut self, story: &Story, report: &Report) -> io::Result<Exit> {
        let exit = report.exit();
        match self.format {
            StoryFormat::Text => write!(self.out, "{}", Page { story, report, cells: terminal_cells() })?,
            StoryFormat::Json => {
                let (digest, reproduce) = (&report.outcome.digest, &report.reproduce);
                let document = Document { story, exit_code: exit.code(), digest, reproduce };
                serde_json::to_writer(&mut *self.out, &document)?;
                writeln!(self.out)?;
            }
        }
        Ok(exit)
    }

    fn unreadable(&mut self, unreadable: &Unreadable) -> io::Result<Exit> {
        match self.format {
            StoryFormat::Text => writeln!(self.err, "{}: {unreadable}", paint(BAD, "error"))?,
            StoryFormat::Json => self.not_told("invalid", Exit::Invalid, vec![unreadable.to_string()])?,
        }
        Ok(Exit::Invalid)
    }

    fn invalid(&mut self, problems: &Problems) -> io::Result<Exit> {
        match self.format {
            StoryFormat::Text => write!(self.err, "{}", problems_text(problems, terminal_cells()))?,
            StoryFormat::Json => {
                let reasons = problems.problems().iter().map(ToString::to_string).collect();
                self.not_told("invalid", Exit::Invalid, reasons)?;
            }
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
