//! `firedrill shrink`: from a failing drill to the smallest that fails for the same reason.
//!
//! The small drill goes to the file that was asked for or to standard output, everything about the search to
//! standard error. A drill that passes is exit code 4: nothing was shrunk.
//!
//! Absent: the search itself, which is the testbed's.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use firedrill_sim::drill::RunError;
use firedrill_sim::shrink::{self, Ended, Origin, Progress, ShrinkError, Shrunk, Size};

use super::case::{Case, Wanted};
use super::cli::ShrinkArgs;
use super::exit::Exit;
use super::shell;
use super::testbed;
use super::text::style::{BAD, FAINT, STRONG, paint};

/// Longest name that a scenario may have.
const NAME_BYTES_MAX: usize = 64;

/// Shrinks the drill that the arguments name.
pub(crate) fn run(
    args: &ShrinkArgs,
    program: &str,
    cancel: &Arc<AtomicBool>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    if let Some(to) = args.out.as_deref().filter(|to| same_file(to, &args.path)) {
        let to = to.display();
        writeln!(err, "{}: {to} is the drill itself; give --out another file", paint(BAD, "error"))?;
        return Ok(Exit::Invalid);
    }
    let wanted = Wanted {
        seed: args.seed,
        engine: args.engine.map(Into::into),
        wire: args.wire.map(Into::into),
        sabotage: args.sabotage,
    };
    let case = match Case::load(&args.path, wanted, cancel) {
        Ok(case) => case,
        Err(no_case) => {
            write!(err, "{}", no_case.text())?;
            return Ok(Exit::Invalid);
        }
    };
    let mut shown: Option<Size> = None;
    let mut unwritten = Ok(());
    let mut tell = |progress: &Progress| {
        if shown != Some(progress.now) && unwritten.is_ok() {
            shown = Some(progress.now);
            let text = format!("  {} after {}", size(progress.now), count(progress.runs, "run"));
            unwritten = writeln!(err, "{}", paint(FAINT, text));
        }
    };
    let shrunk = testbed::shrink(&case.scenario, &case.plan, args.budget, &mut tell);
    unwritten?;
    match shrunk {
        Ok(shrunk) => {
            let exit = write_out(args, program, &case, &shrunk, out, err)?;
            let interrupted = cancel.load(Ordering::Relaxed);
            Ok(if interrupted { Exit::Interrupted } else { exit })
        }
        Err(ShrinkError::Run(RunError::Cancelled { .. })) => {
            writeln!(err, "{}: the drill was not shrunk", paint(BAD, "INTERRUPTED"))?;
            Ok(Exit::Interrupted)
        }
        Err(passes @ ShrinkError::Passes { .. }) => {
            writeln!(err, "nothing to shrink: {passes}")?;
            if let Some(guard) = sabotage_in_comment(&args.path).filter(|_| args.sabotage.is_none()) {
                writeln!(err, "its comment runs it without a guard; add --sabotage {guard}")?;
            }
            Ok(Exit::NothingRan)
        }
        Err(error @ (ShrinkError::Otherwise { .. } | ShrinkError::Run(_))) => {
            writeln!(err, "{}: {}: {error}", paint(BAD, "error"), args.path.display())?;
            Ok(Exit::Invalid)
        }
    }
}

/// The guard that the comment on top of a scenario turns off when it says how to run it.
fn sabotage_in_comment(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let comment = text.lines().take_while(|line| line.starts_with('#'));
    let mut words = comment.filter(|line| line.starts_with("# Run: ")).flat_map(str::split_whitespace);
    words.find(|word| *word == "--sabotage")?;
    words.next().map(str::to_owned)
}

/// Writes the small drill, and says how it went. What cannot be written to its file goes to standard output: the
/// search may have taken minutes.
fn write_out(
    args: &ShrinkArgs,
    program: &str,
    case: &Case,
    shrunk: &Shrunk,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    let found_in = format!("{}, seed {}", case.scenario.name, case.plan.seed.unwrap_or(case.scenario.seed));
    // The file goes to other machines, where the command is called by its name.
    let command = reproduce(args, "firedrill", case, shrunk);
    let origin =
        Origin { found_in: &found_in, sabotage: case.plan.sabotage.map(|row| row.guard), command: &command };
    let text = shrink::file(shrunk, &name(&case.scenario.name), &origin);
    let refused =
        args.out.as_deref().and_then(|path| fs::write(path, &text).err().map(|error| (path, error)));
    if args.out.is_none() || refused.is_some() {
        write!(out, "{text}")?;
    }
    let how = match shrunk.ended {
        Ended::Minimal => "nothing smaller that was tried fails",
        Ended::RunsMax => "the limit of runs ended the search",
        Ended::Stopped => "the search was cut short; a longer --budget may find a smaller one",
    };
    let (before, after, runs) = (size(shrunk.before), size(shrunk.after), count(shrunk.runs, "run"));
    writeln!(err, "{} from {before} to {after} in {runs}: {how}", paint(STRONG, "shrunk"))?;
    if let Some((path, error)) = refused {
        let (word, path) = (paint(BAD, "error"), path.display());
        writeln!(err, "{word}: {path} cannot be written: {error}; the small drill is on standard output")?;
        return Ok(Exit::Invalid);
    }
    if args.out.is_some() {
        writeln!(err, "{}", reproduce(args, program, case, shrunk))?;
    }
    Ok(Exit::Pass)
}

/// The command that shows the failure again.
fn reproduce(args: &ShrinkArgs, program: &str, case: &Case, shrunk: &Shrunk) -> String {
    let path = args.out.as_deref().map_or_else(|| "FILE".into(), |path| path.display().to_string());
    let (program, path) = (shell::quoted(program), shell::quoted(&path));
    let mut command = format!("{program} run {path} --engine {}", shrunk.outcome.engine);
    if let Some(wire) = shrunk.outcome.wire {
        command.push_str(&format!(" --wire {wire}"));
    }
    if let Some(row) = case.plan.sabotage.filter(|_| shrunk.needs_sabotage) {
        command.push_str(&format!(" --sabotage {}", row.guard));
    }
    command
}

/// The name of the small drill: names are unique in a folder.
fn name(whole: &str) -> String {
    let ending = "-shrunk";
    if whole.ends_with(ending) {
        return whole.to_owned();
    }
    // Names are ASCII, so every byte is a place to cut.
    let room = whole.len().min(NAME_BYTES_MAX - ending.len());
    format!("{}{ending}", &whole[..room])
}

/// Whether both lead to one file that exists.
fn same_file(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// `2 steps, 3 hosts`.
fn size(size: Size) -> String {
    format!("{}, {}", count(size.steps as u64, "step"), count(size.hosts as u64, "host"))
}

/// `1 step`, `2 steps`.
fn count(many: u64, what: &str) -> String {
    if many == 1 { format!("1 {what}") } else { format!("{many} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_drill_has_a_name_of_its_own_that_is_short_enough() {
        assert_eq!(name("storm-7"), "storm-7-shrunk");
        assert_eq!(name("storm-7-shrunk"), "storm-7-shrunk");
        assert_eq!(name(&"x".repeat(64)).len(), 64);
    }

    #[test]
    fn numbers_and_words_agree() {
        let small = Size { steps: 1, hosts: 2, workloads: 0, expectations: 0 };
        assert_eq!(size(small), "1 step, 2 hosts");
    }
}
