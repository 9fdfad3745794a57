//! `firedrill fuzz`: drills drawn from seeds, until one fails or there are enough.
//!
//! What was found goes to standard output and is the same for the same seeds, whatever the machine and its threads;
//! how it goes, and how fast, to standard error. A failure is shrunk and kept as two files: a scenario to read and
//! run, an artifact to replay.
//!
//! Absent: drawing and judging, which are the testbed's.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use firedrill_core::guards::Guards;
use firedrill_sim::drill::RunError;
use firedrill_sim::fuzz::campaign::{Plan, Progress, Wish, play};
use firedrill_sim::fuzz::finding::{Finding, look};
use firedrill_sim::fuzz::seeds::{Seeds, SeedsError, Shard};
use firedrill_sim::fuzz::{Mix, PROFILES, Report, sabotage};

use super::ci::{
    self,
    campaign::{Demand, Kept},
};
use super::cli::{Format, FuzzArgs, JOBS_MAX, ShardArg};
use super::exit::Exit;
use super::pace::{Meter, Patience, Watch};
use super::terminal_cells;
use super::text::campaign::{Page, Sabotages};
use super::text::style::{BAD, FAINT, paint};

/// Seeds of a campaign that names neither a range nor a budget.
const SEEDS_DEFAULT: Seeds = Seeds { from: 0, to: 2_000 };
/// Bits of a commit's hash that make the first seed: room for any range above it.
const COMMIT_BITS: u32 = 48;

/// Plays the campaign that the arguments describe.
pub(crate) fn fuzz(
    args: &FuzzArgs,
    cancel: &Arc<AtomicBool>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    if args.sabotage.as_ref().is_some_and(|sabotage| sabotage.guard.is_none()) {
        return sabotages(args, cancel, out, err);
    }
    let plan = match plan(args).and_then(|plan| usable(&args.keep).map(|()| plan)) {
        Ok(plan) => plan,
        Err(why) => {
            writeln!(err, "{}: {why}", paint(BAD, "error"))?;
            return Ok(Exit::Invalid);
        }
    };
    let mut watch = Watch::new(args.budget);
    let mut meter = Meter::new(
        "seeds",
        plan.shard.count(plan.seeds),
        args.quiet,
        watch.shows_a_bar(args.seeds.is_some()),
    );
    let mut unwritten = Ok(());
    let played = play(&plan, &mut |progress: &Progress<'_>| {
        let failures = progress.report.failures.iter().map(|failed| failed.seeds.len()).sum();
        let told = meter.tell(progress.report.totals.seeds, failures, watch.elapsed(), err);
        if let (Err(error), true) = (told, unwritten.is_ok()) {
            unwritten = Err(error);
        }
        match watch.look(progress.running) {
            Patience::Over { seed } => Wish::Abandon { seed },
            Patience::Budget => Wish::Finish,
            Patience::Fine if cancel.load(Ordering::Relaxed) => Wish::Finish,
            Patience::Fine => Wish::GoOn,
        }
    });
    meter.clear();
    unwritten?;
    let mut report = match played {
        Ok(report) => report,
        Err(error) => return drew_nonsense(&error, err),
    };
    if !args.quiet {
        writeln!(err, "{}", paint(FAINT, meter.summary(report.totals.seeds, watch.elapsed())))?;
    }
    // Ctrl-C behind the last seed ends nothing early.
    let interrupted = cancel.load(Ordering::Relaxed) && !report.complete;
    let demand = if interrupted { Demand::Interrupted } else { Demand::ItsShards };
    let closer = keep(&plan, args, &mut report, cancel, err)?;
    tell(args, &report, demand, &closer.lost, out, err)?;
    Ok(closer.exit.max(ci::campaign::exit(&report, demand)))
}

/// The table of all guards, each turned off in turn.
fn sabotages(
    args: &FuzzArgs,
    cancel: &Arc<AtomicBool>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    let watch = Watch::new(None);
    let rows = firedrill_sim::oracles::sabotage::SABOTAGE;
    let mut meter = Meter::new("guards", rows.len() as u64, args.quiet, true);
    let stop = || cancel.load(Ordering::Relaxed);
    let jobs = jobs(args).min(rows.len());
    let table = sabotage::table(mix(args), rows, jobs, &stop, &mut |done| {
        // A progress line that cannot be written is no reason to stop.
        let _unwritten = meter.tell(done, 0, watch.elapsed(), err);
    });
    meter.clear();
    let table = match table {
        Ok(table) => table,
        Err(error) => return drew_nonsense(&error, err),
    };
    if stop() {
        writeln!(err, "{}: the table is not complete and was not written", paint(BAD, "INTERRUPTED"))?;
        return Ok(Exit::Interrupted);
    }
    match args.format {
        Format::Json => {
            serde_json::to_writer(&mut *out, &table)?;
            writeln!(out)?;
        }
        Format::Text | Format::Junit | Format::Sarif | Format::Github => {
            write!(out, "{}", Sabotages { table: &table })?;
        }
    }
    let missed = table.iter().any(|caught| !caught.is_accounted_for());
    Ok(if missed { Exit::NothingRan } else { Exit::Pass })
}

fn plan(args: &FuzzArgs) -> Result<Plan, String> {
    let mut seeds = match (args.seeds, args.budget) {
        (Some(seeds), _) => seeds,
        (None, Some(_)) => Seeds { from: 0, to: 1 << COMMIT_BITS },
        (None, None) => SEEDS_DEFAULT,
    };
    if args.seed_from_commit {
        seeds = counted_from(commit_seed()?, seeds)?;
    }
    let sabotage = args.sabotage.as_ref().and_then(|sabotage| sabotage.guard);
    let shard = shard(args.shard)?;
    let work = usize::try_from(shard.count(seeds)).unwrap_or(usize::MAX);
    Ok(Plan {
        profile: profile(args),
        mix: mix(args),
        guards: sabotage.map_or(Guards::ON, sabotage::without),
        sabotage: sabotage.map(|sabotage| sabotage.guard),
        seeds,
        shard,
        // A thread without a seed would be hired for nothing.
        jobs: jobs(args).min(work),
        // One catch is all that a sabotage is asked for.
        fail_fast: args.fail_fast || sabotage.is_some(),
    })
}

/// These seeds, above the commit's.
fn counted_from(first: u64, seeds: Seeds) -> Result<Seeds, String> {
    match (seeds.from.checked_add(first), seeds.to.checked_add(first)) {
        (Some(from), Some(to)) => Ok(Seeds { from, to }),
        (Some(_) | None, Some(_) | None) => Err(format!(
            "--seed-from-commit counts --seeds from {first} on, and {seeds} above that goes beyond the largest seed, \
             {}; give smaller --seeds",
            u64::MAX - 1
        )),
    }
}

/// Whether the folder for findings can be one: a file in its way is better told before an hour of playing than after
/// it. What else may keep it from being written to shows when there is something to write.
fn usable(folder: &Path) -> Result<(), String> {
    let there = folder.ancestors().find(|path| path.exists());
    match there.filter(|path| !path.is_dir()) {
        None => Ok(()),
        Some(file) => Err(format!(
            "findings cannot be kept in {}: {} is a file; give a folder with --keep",
            folder.display(),
            file.display()
        )),
    }
}

fn profile(args: &FuzzArgs) -> &'static dyn firedrill_sim::fuzz::Profile {
    let sabotage = args.sabotage.as_ref().and_then(|sabotage| sabotage.guard);
    let named = args.profile.as_deref();
    // The parser took the name from this very list.
    let named = named.and_then(|named| PROFILES.iter().copied().find(|profile| profile.name() == named));
    named.or_else(|| sabotage.map(sabotage::profile_of)).unwrap_or(PROFILES[0])
}

fn mix(args: &FuzzArgs) -> Mix {
    Mix { engine: args.engine.into(), wire: args.wire.into() }
}

/// As many as were asked for, or as there are cores.
fn jobs(args: &FuzzArgs) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    args.jobs.map_or_else(cores, usize::from).min(usize::from(JOBS_MAX))
}

fn shard(arg: Option<ShardArg>) -> Result<Shard, String> {
    let of_env = |name: &str| {
        let text = std::env::var(name).map_err(|_| {
            format!(
                "--shard auto reads {name}, and it is not set; outside of an indexed Job write --shard 1/4"
            )
        })?;
        text.parse::<u64>().map_err(|_| format!("--shard auto reads {name}, and {text:?} is no number"))
    };
    match arg {
        None => Ok(Shard::WHOLE),
        Some(ShardArg::This(shard)) => Ok(shard),
        Some(ShardArg::Auto) => {
            let (index, of) = (of_env("JOB_COMPLETION_INDEX")?, of_env("FIREDRILL_SHARDS")?);
            Shard::new(index.saturating_add(1), of).map_err(|error| {
                if matches!(error, SeedsError::TooManyShards(_)) {
                    return format!("--shard auto reads FIREDRILL_SHARDS, and {error}");
                }
                format!(
                    "JOB_COMPLETION_INDEX is {index} of FIREDRILL_SHARDS {of}: it counts from 0 and stays below"
                )
            })
        }
    }
}

/// A seed that every commit has of its own, and every machine alike.
fn commit_seed() -> Result<u64, String> {
    let no = |why: String| {
        format!(
            "--seed-from-commit asks `git rev-parse HEAD`, and {why}; give the first seed with --seeds instead"
        )
    };
    let asked = std::process::Command::new("git").args(["rev-parse", "HEAD"]).output();
    let answer = asked.map_err(|error| no(format!("git cannot be started: {error}")))?;
    if !answer.status.success() {
        return Err(no("this is no git repository with a commit".to_owned()));
    }
    let hash = String::from_utf8_lossy(&answer.stdout);
    let digits = hash.get(..(COMMIT_BITS / 4) as usize).unwrap_or_default();
    u64::from_str_radix(digits, 16).map_err(|_| no(format!("it answered {:?}", hash.trim())))
}

/// What a closer look at the failures left behind.
struct Closer {
    /// Names of the drills that could not be written.
    lost: BTreeSet<String>,
    /// [`Exit::Internal`] where a drill could not be played again, else [`Exit::Pass`].
    exit: Exit,
}

/// Shrinks the first seed of every kind of failure and keeps what came of it. What cannot be written is told all the
/// same.
fn keep(
    plan: &Plan,
    args: &FuzzArgs,
    report: &mut Report,
    cancel: &Arc<AtomicBool>,
    err: &mut dyn Write,
) -> io::Result<Closer> {
    let stop = || cancel.load(Ordering::Relaxed);
    let mut closer = Closer { lost: BTreeSet::new(), exit: Exit::Pass };
    for failed in &mut report.failures {
        let Some(seed) = failed.first_that_ends() else { continue };
        if !args.quiet {
            writeln!(err, "{}", paint(FAINT, format!("shrinking seed {seed}: {}", failed.failure)))?;
        }
        let finding = match look(plan, seed, &failed.failure, &stop) {
            Ok(finding) => finding,
            Err(RunError::Cancelled { .. }) => break,
            Err(error) => {
                closer.exit = drew_nonsense(&error, err)?;
                continue;
            }
        };
        if let Err(error) = write_files(&args.keep, &finding) {
            if closer.lost.is_empty() {
                let (error_word, folder) = (paint(BAD, "error"), args.keep.display());
                let advice = "give another folder with --keep";
                writeln!(err, "{error_word}: findings cannot be kept in {folder}: {error}; {advice}")?;
            }
            closer.lost.insert(finding.found.name.clone());
        }
        failed.found = Some(finding.found);
    }
    Ok(closer)
}

/// Writes the scenario and the artifact.
fn write_files(folder: &Path, finding: &Finding) -> io::Result<()> {
    let name = &finding.found.name;
    let write = |ending: &str, text: &str| fs::write(folder.join(format!("{name}.{ending}")), text);
    fs::create_dir_all(folder)?;
    write("toml", &finding.found.scenario)?;
    write("json", &finding.artifact.to_json())
}

fn tell(
    args: &FuzzArgs,
    report: &Report,
    demand: Demand,
    lost: &BTreeSet<String>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<()> {
    let kept = Kept { folder: &args.keep.to_string_lossy(), lost };
    let results = ci::campaign::results(report, demand, kept);
    match args.format {
        Format::Text => {
            write!(out, "{}", Page { report, demand, kept: Some(kept), cells: terminal_cells() })?;
        }
        Format::Json => {
            serde_json::to_writer(&mut *out, report)?;
            writeln!(out)?;
        }
        format @ (Format::Junit | Format::Sarif | Format::Github) => ci::write(format, &results, out)?,
    }
    ci::append_summary(&results, err)
}

/// The profile drew what its venue cannot run: a bug of this program.
fn drew_nonsense(error: &RunError, err: &mut dyn Write) -> io::Result<Exit> {
    writeln!(
        err,
        "{}: a drawn drill cannot be run: {error}; please report this",
        paint(BAD, "internal error")
    )?;
    Ok(Exit::Internal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_above_the_commits_stay_seeds_or_are_refused() {
        let first = 0xffff_ffff_ffff;
        let moved = counted_from(first, Seeds { from: 5, to: 8 });
        assert_eq!(moved, Ok(Seeds { from: first + 5, to: first + 8 }));
        let last = Seeds { from: 0, to: u64::MAX - first };
        assert_eq!(counted_from(first, last).map(|seeds| seeds.to), Ok(u64::MAX));
        for beyond in
            [Seeds { from: 0, to: u64::MAX - first + 1 }, Seeds { from: u64::MAX - 1, to: u64::MAX }]
        {
            let refused = counted_from(first, beyond).unwrap_err();
            assert!(
                refused.contains("--seeds from 281474976710655") && refused.contains("largest seed"),
                "{refused}"
            );
        }
    }
}
