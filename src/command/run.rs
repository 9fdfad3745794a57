//! `firedrill run`: find, load, run, tell.
//!
//! One scenario is told in full. Several take a line each, failures in full behind them, and a summary; the
//! gravest result decides the exit code. What an engine cannot express is skipped when a folder was named
//! and refused when the file itself was.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use firedrill_sim::drill::RunError;
use firedrill_sim::scenario::{Report as Problems, Scenario};

use super::ci::{self, Case};
use super::cli::{Format, RunArgs};
use super::exit::Exit;
use super::files::{self, Found};
use super::json::{Document, NotRun};
use super::report::{Report, Setting, Twice};
use super::testbed::{self, Plan, Ran, Refused};
use super::text::style::{BAD, FAINT, moment, paint};
use super::text::wrap::width;
use super::text::{Detail, Line, Page, Summary};
use super::{problems_text, shell, terminal_cells};

/// Runs everything that the arguments name.
pub(crate) fn run(
    args: &RunArgs,
    program: &str,
    cancel: &Arc<AtomicBool>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    let found = match files::find(&args.paths) {
        Ok(found) => found,
        Err(unreadable) => {
            writeln!(err, "{}: {unreadable}", paint(BAD, "error"))?;
            return Ok(Exit::Invalid);
        }
    };
    if found.is_empty() {
        let paths: Vec<_> = args.paths.iter().map(|path| path.display().to_string()).collect();
        writeln!(err, "nothing ran: no scenario (*.toml) in {}", paths.join(", "))?;
        return Ok(Exit::NothingRan);
    }
    let plan = Plan {
        seed: args.seed,
        engine: args.engine.into(),
        wire: args.wire.map(Into::into),
        tick_ms: None,
        inputs_max: None,
        sabotage: args.sabotage,
        cancel: Arc::clone(cancel),
    };
    let name_cells =
        found.iter().filter_map(|file| file.path.file_stem()).map(|stem| width(&stem.to_string_lossy()));
    let mut teller = Teller {
        args,
        program,
        alone: found.len() == 1 && !found[0].from_folder,
        name_cells: name_cells.max().unwrap_or(0),
        cells: terminal_cells(),
        out,
        err,
        summary: Summary::default(),
        gravest: None,
        cases: Vec::new(),
    };
    for (done, file) in found.iter().enumerate() {
        let exit = teller.drill(file, &plan)?;
        if exit == Some(Exit::Interrupted) {
            teller.summary.not_judged = found.len() - done;
            break;
        }
    }
    teller.finish()
}

/// Runs drill after drill and tells each as it ends.
struct Teller<'a> {
    args: &'a RunArgs,
    program: &'a str,
    /// Whether a single file was named: it is told in full.
    alone: bool,
    name_cells: usize,
    cells: usize,
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    summary: Summary,
    gravest: Option<Exit>,
    /// For what is told all at once.
    cases: Vec<Case>,
}

impl Teller<'_> {
    /// Runs one file; `None` when it was skipped.
    fn drill(&mut self, file: &Found, plan: &Plan) -> io::Result<Option<Exit>> {
        let exit = match testbed::load(&file.path, plan.engine, plan.wire) {
            Ok(scenario) => self.loaded(&file.path, &scenario, plan)?,
            Err(Refused::Beyond(problems)) if file.from_folder => {
                self.skipped(&file.path, &problems)?;
                return Ok(None);
            }
            Err(Refused::Beyond(problems) | Refused::Invalid(problems)) => {
                self.invalid(&file.path, &problems)?
            }
        };
        self.gravest = self.gravest.max(Some(exit));
        Ok(Some(exit))
    }

    fn loaded(&mut self, path: &Path, scenario: &Scenario, plan: &Plan) -> io::Result<Exit> {
        let once_or_twice = || {
            if self.args.twice {
                twice(scenario, plan)
            } else {
                testbed::run(scenario, plan, false).map(|ran| (ran, None))
            }
        };
        // A panic ends its drill, not the drills after it.
        let (ran, twice) = match catch_unwind(AssertUnwindSafe(once_or_twice)) {
            Ok(Ok(result)) => result,
            Ok(Err(RunError::Cancelled { at_ms })) => return self.interrupted(path, at_ms),
            Ok(Err(error @ (RunError::NeedsBytes { .. } | RunError::Oracle { .. }))) => {
                return self.refused(path, &error);
            }
            Err(_panic) => return self.broke(path, scenario, plan),
        };
        let reproduce = self.reproduce(path, scenario, plan, ran.outcome.wire);
        let report = Report {
            setting: Setting::of(scenario),
            sabotage: plan.sabotage,
            outcome: ran.outcome,
            real: ran.real,
            twice,
            reproduce,
        };
        self.tell(&report)?;
        Ok(report.exit())
    }

    fn tell(&mut self, report: &Report) -> io::Result<()> {
        let passed = report.exit() == Exit::Pass;
        *(if passed { &mut self.summary.passed } else { &mut self.summary.failed }) += 1;
        self.summary.simulated += std::time::Duration::from_micros(report.outcome.numbers.simulated_us);
        self.summary.real += report.real;
        self.cases.push(ci::drill::ran(report));
        match self.args.format {
            Format::Json => {
                serde_json::to_writer(&mut *self.out, &Document::of(report))?;
                writeln!(self.out)?;
            }
            Format::Text => {
                let in_full = (self.alone || self.args.verbose) && !self.args.quiet;
                if in_full {
                    let detail = if self.args.verbose { Detail::Whole } else { Detail::Folded };
                    write!(self.out, "{}", Page { report, detail, cells: self.cells })?;
                } else {
                    if !(passed && self.args.quiet && !self.alone) {
                        write!(self.out, "{}", Line { report, name_cells: self.name_cells })?;
                    }
                    if !passed {
                        write!(self.out, "{}", Page { report, detail: Detail::Verdict, cells: self.cells })?;
                    }
                }
                if !self.alone && (in_full || !passed) {
                    writeln!(self.out)?;
                }
            }
            Format::Junit | Format::Sarif | Format::Github => {}
        }
        self.out.flush()
    }

    fn skipped(&mut self, path: &Path, problems: &Problems) -> io::Result<()> {
        self.summary.skipped += 1;
        self.cases.push(ci::drill::skipped(path, problems));
        let reasons: Vec<_> = problems.problems().iter().map(ToString::to_string).collect();
        match self.args.format {
            Format::Json => self.not_run(path, "skipped", Exit::Pass, reasons),
            Format::Junit | Format::Sarif | Format::Github => Ok(()),
            Format::Text if self.args.quiet => Ok(()),
            Format::Text => {
                let reason = reasons.first().map_or("", String::as_str);
                let text = format!("  - {}  skipped: {reason}", path.display());
                writeln!(self.out, "{}", paint(FAINT, text))
            }
        }
    }

    fn invalid(&mut self, path: &Path, problems: &Problems) -> io::Result<Exit> {
        self.summary.invalid += 1;
        self.cases.push(ci::drill::invalid(path, problems));
        match self.args.format {
            Format::Json => {
                let reasons = problems.problems().iter().map(ToString::to_string).collect();
                self.not_run(path, "invalid", Exit::Invalid, reasons)?;
            }
            Format::Text | Format::Junit | Format::Sarif | Format::Github => {
                write!(self.err, "{}", problems_text(problems, self.cells))?;
            }
        }
        Ok(Exit::Invalid)
    }

    /// The testbed cannot do what was asked; the message says what can be done.
    fn refused(&mut self, path: &Path, error: &RunError) -> io::Result<Exit> {
        self.summary.invalid += 1;
        self.cases.push(ci::drill::broke(path, "invalid_scenario", error.to_string(), None));
        match self.args.format {
            Format::Json => self.not_run(path, "invalid", Exit::Invalid, vec![error.to_string()])?,
            Format::Text | Format::Junit | Format::Sarif | Format::Github => {
                writeln!(self.err, "{}: {}: {error}", paint(BAD, "error"), path.display())?;
            }
        }
        Ok(Exit::Invalid)
    }

    /// Ctrl-C ended the drill before anything could be judged.
    fn interrupted(&mut self, path: &Path, at_ms: u64) -> io::Result<Exit> {
        let seconds = moment(at_ms.saturating_mul(1_000));
        let reason = format!("interrupted at {seconds} of the run");
        self.cases.push(ci::drill::broke(path, "interrupted", reason.clone(), None));
        match self.args.format {
            Format::Json => {
                self.not_run(path, "interrupted", Exit::Interrupted, vec![reason])?;
            }
            Format::Text => {
                let title = paint(BAD, "INTERRUPTED");
                writeln!(self.out, "  {title} at {seconds} of the run: {} is not judged", path.display())?;
            }
            Format::Junit | Format::Sarif | Format::Github => {}
        }
        Ok(Exit::Interrupted)
    }

    /// The testbed panicked: a bug, whatever the scenario says. The panic itself is on standard error already.
    fn broke(&mut self, path: &Path, scenario: &Scenario, plan: &Plan) -> io::Result<Exit> {
        self.summary.failed += 1;
        let reproduce = self.reproduce(path, scenario, plan, plan.wire_name());
        let why = "the testbed panicked: a bug of firedrill, to be reported".to_owned();
        self.cases.push(ci::drill::broke(path, "internal", why, Some(reproduce.clone())));
        match self.args.format {
            Format::Json => self.not_run(
                path,
                "internal",
                Exit::Internal,
                vec![format!("panicked; to see it again: {reproduce}")],
            )?,
            Format::Text | Format::Junit | Format::Sarif | Format::Github => {
                let title = paint(BAD, "the run could not be completed");
                let advice = "This is a bug of firedrill; please report it with this line:";
                writeln!(self.err, "{title}: {} panicked, as told above", path.display())?;
                writeln!(self.err, "{advice}\n{reproduce}")?;
            }
        }
        Ok(Exit::Internal)
    }

    fn not_run(&mut self, path: &Path, verdict: &str, exit: Exit, problems: Vec<String>) -> io::Result<()> {
        let path = path.display().to_string();
        let document = NotRun { path: &path, verdict, exit_code: exit.code(), problems };
        serde_json::to_writer(&mut *self.out, &document)?;
        writeln!(self.out)
    }

    fn finish(self) -> io::Result<Exit> {
        if !self.alone && self.args.format == Format::Text {
            if !self.args.quiet {
                writeln!(self.out)?;
            }
            write!(self.out, "{}", self.summary)?;
        }
        let exit = self.gravest.unwrap_or(Exit::NothingRan);
        let results = ci::drill::results(exit, self.cases);
        ci::write(self.args.format, &results, self.out)?;
        ci::append_summary(&results, self.err)?;
        Ok(exit)
    }

    /// The command that repeats this run.
    fn reproduce(&self, path: &Path, scenario: &Scenario, plan: &Plan, wire: Option<&str>) -> String {
        let seed = plan.seed.unwrap_or(scenario.seed);
        let mut command = shell::repeat(self.program, "run", path, plan, seed, wire);
        if self.args.twice {
            command.push_str(" --twice");
        }
        command
    }
}

/// Runs a scenario on two threads at once and compares the runs.
fn twice(scenario: &Scenario, plan: &Plan) -> Result<(Ran, Option<Twice>), RunError> {
    std::thread::scope(|scope| {
        let other = scope.spawn(|| testbed::run(scenario, plan, true));
        let first = testbed::run(scenario, plan, true);
        let second = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let (first, second) = (first?, second?);
        let compared = Twice::compare(&first.outcome, &second.outcome, &scenario.hosts);
        Ok((first, Some(compared)))
    })
}
