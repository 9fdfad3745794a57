//! The command: from arguments to an exit code.
//!
//! [`main`] parses and dispatches; [`run`], [`fuzz`], [`shrink`], [`explain`], [`replay`], [`merge`] and [`list`]
//! work; [`case`] finds out what a file stands for; [`text`], [`json`] and [`ci`] tell; [`testbed`] is the seam to the
//! testbed. Output goes to the writers that `main` is given, never to the process's own.
//!
//! Absent: `report`, which a later version brings.

mod case;
mod ci;
mod cli;
mod exit;
mod explain;
mod files;
mod fuzz;
mod json;
mod list;
mod merge;
mod pace;
mod replay;
mod report;
mod run;
mod shell;
mod shrink;
mod testbed;
mod text;

use std::ffi::OsString;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{CommandFactory, Parser};
use firedrill_sim::scenario::Report as Problems;
use miette::GraphicalTheme;

use cli::{Cli, Command};
pub(crate) use exit::Exit;
use text::style::{BAD, paint};

/// Runs the command with these arguments, the program's name first.
pub(crate) fn main(args: impl Iterator<Item = OsString>, out: &mut dyn Write, err: &mut dyn Write) -> Exit {
    let args: Vec<OsString> = args.collect();
    let err = &mut Remarks(err);
    let outcome = catch_unwind(AssertUnwindSafe(|| dispatch(&args, out, err)));
    match outcome {
        Ok(Ok(exit)) => exit,
        // Who reads our output has seen enough (`firedrill … | head`).
        Ok(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Pass,
        Ok(Err(error)) => {
            // Where the message cannot be written either, the exit code is all that is left.
            let _unwritten = writeln!(err, "{}: the result cannot be written: {error}", paint(BAD, "error"));
            Exit::Internal
        }
        Err(_panic) => {
            let _unwritten = writeln!(
                err,
                "{}: this is a bug of firedrill, not of your scenario; please report it with the lines above",
                paint(BAD, "internal error")
            );
            Exit::Internal
        }
    }
}

/// Standard error: what is said there is said in passing. That nobody listens is no reason to keep a result from
/// standard output, or to end with another code.
struct Remarks<'a>(&'a mut dyn Write);

impl Write for Remarks<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        heard(self.0.write(bytes), bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        heard(self.0.flush(), ())
    }
}

/// A pipe whose reader is gone takes everything.
fn heard<T>(written: io::Result<T>, all: T) -> io::Result<T> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(all),
        written => written,
    }
}

fn dispatch(args: &[OsString], out: &mut dyn Write, err: &mut dyn Write) -> io::Result<Exit> {
    let program =
        args.first().map_or_else(|| "firedrill".to_owned(), |name| name.to_string_lossy().into_owned());
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            let text = error.render();
            return if error.use_stderr() {
                write!(err, "{}", text.ansi())?;
                Ok(Exit::Invalid)
            } else {
                write!(out, "{}", text.ansi())?;
                Ok(Exit::Pass)
            };
        }
    };
    match cli.command {
        None => {
            write!(out, "{}", Cli::command().render_long_help().ansi())?;
            Ok(Exit::Pass)
        }
        Some(Command::Run(args)) => run::run(&args, &program, &on_interrupt(), out, err),
        Some(Command::Fuzz(args)) => fuzz::fuzz(&args, &on_interrupt(), out, err),
        Some(Command::Shrink(args)) => shrink::run(&args, &program, &on_interrupt(), out, err),
        Some(Command::Explain(args)) => explain::explain(&args, &program, &on_interrupt(), out, err),
        Some(Command::Replay(args)) => replay::replay(&args, &program, &on_interrupt(), out, err),
        Some(Command::Merge(args)) => merge::merge(&args, out, err),
        Some(Command::Validate(args)) => list::validate(&args, out, err),
        Some(Command::List(args)) => list::list(&args.what, out, err),
        Some(Command::Schema) => {
            serde_json::to_writer_pretty(&mut *out, &firedrill_sim::scenario::schema::schema())?;
            writeln!(out)?;
            Ok(Exit::Pass)
        }
    }
}

/// A flag that Ctrl-C sets; the drill looks at it and ends. A second Ctrl-C ends the process at once.
fn on_interrupt() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&flag);
    let handler = move || {
        if set.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(Exit::Interrupted.code()));
        }
    };
    // Without a handler Ctrl-C still ends the process, only less politely.
    let _unhandled = ctrlc::set_handler(handler);
    flag
}

/// Cells to write in: the terminal's, within reason; the most where there is none.
fn terminal_cells() -> usize {
    let terminal = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    terminal.unwrap_or(text::CELLS_MAX).clamp(48, text::CELLS_MAX)
}

/// What is wrong with a file, with carets.
fn problems_text(problems: &Problems, cells: usize) -> String {
    problems.render(GraphicalTheme::unicode(), cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output that goes wrong.
    struct Faulty(fn() -> io::Error);

    impl Write for Faulty {
        fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
            Err(self.0())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn list_verbs(out: &mut dyn Write, err: &mut dyn Write) -> Exit {
        main(["firedrill", "list", "verbs"].into_iter().map(OsString::from), out, err)
    }

    #[test]
    fn a_panic_is_reported_as_a_bug_of_the_program() {
        let mut err = Vec::new();
        assert_eq!(list_verbs(&mut Faulty(|| panic!("on purpose")), &mut err).code(), 70);
        assert!(String::from_utf8_lossy(&err).contains("bug of firedrill"));
    }

    #[test]
    fn a_reader_that_has_seen_enough_is_no_error() {
        let mut err = Vec::new();
        assert_eq!(list_verbs(&mut Faulty(|| io::ErrorKind::BrokenPipe.into()), &mut err), Exit::Pass);
        assert!(err.is_empty());
        assert_eq!(list_verbs(&mut Faulty(|| io::ErrorKind::StorageFull.into()), &mut err).code(), 70);
    }

    #[test]
    fn that_nobody_reads_the_remarks_changes_nothing() {
        let mut out = Vec::new();
        let args = ["firedrill", "merge", "no-such-report.json"].into_iter().map(OsString::from);
        assert_eq!(main(args, &mut out, &mut Faulty(|| io::ErrorKind::BrokenPipe.into())), Exit::Invalid);
    }
}
