//! A campaign for people: what was played and reached, every kind of failure with its smallest drill, the verdict.

use std::fmt::{self, Display};
use std::time::Duration;

use firedrill_sim::fuzz::report::{Failed, Found};
use firedrill_sim::fuzz::sabotage::{Caught, SEEDS_MAX, STARTS};
use firedrill_sim::fuzz::{Report, Venue};

use super::style::{ASKED, BAD, FAINT, GOOD, STRONG, count, moment, paint, plural, span};
use super::wrap::{hanging, padded, width};
use crate::command::exit::Exit;

/// Cells before the value of a labelled line.
const INDENT: usize = 14;
/// Seeds of a failure that are named.
const SEEDS_NAMED: usize = 8;

/// A campaign, told in full.
#[derive(Debug)]
pub(crate) struct Page<'a> {
    /// What came of it.
    pub(crate) report: &'a Report,
    /// How the command ends.
    pub(crate) exit: Exit,
    /// The folder of what was kept, as a shell takes it.
    pub(crate) kept: &'a str,
    /// Cells of the terminal.
    pub(crate) cells: usize,
}

impl Display for Page<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { report, cells, .. } = *self;
        writeln!(f, "{}", paint(STRONG, format!("fuzz {}", report.profile)))?;
        writeln!(f)?;
        let mut line = |label: &str, value: &str| {
            let label = paint(FAINT, format!("  {label:<width$}", width = INDENT - 2));
            writeln!(f, "{label}{}", hanging(value, INDENT, cells))
        };
        line("seeds", &seeds(report))?;
        if let Some(guard) = &report.sabotage {
            line("sabotage", &format!("the guard {guard} is off"))?;
        }
        line("played", &played(report))?;
        line("simulated", &simulated(report))?;
        line("reached", &reached(report))?;
        if let Some(busiest) = report.busiest.first() {
            let times = format!("{}.{} times", busiest.tenths / 10, busiest.tenths % 10);
            line("busiest", &format!("seed {}: {times} the inputs of its pushes alone", busiest.seed))?;
        }
        for failed in &report.failures {
            self.failed(f, failed)?;
        }
        if !report.missed.is_empty() {
            writeln!(f)?;
            for goal in &report.missed {
                writeln!(f, "  {} never reached: {goal}", paint(BAD, "✗"))?;
            }
        }
        self.verdict(f)
    }
}

impl Page<'_> {
    fn failed(&self, f: &mut fmt::Formatter<'_>, failed: &Failed) -> fmt::Result {
        let cells = self.cells;
        writeln!(f)?;
        let many = plural(failed.seeds.len(), "seed");
        writeln!(f, "  {} {}  {}", paint(BAD, "✗"), paint(BAD, &failed.failure), paint(FAINT, many))?;
        writeln!(f, "    {}", paint(FAINT, hanging(&named(&failed.seeds), 4, cells)))?;
        let Some(found) = &failed.found else {
            if failed.hung {
                writeln!(
                    f,
                    "    {}",
                    hanging("its drill never came back: play it alone, under a debugger", 4, cells)
                )?;
            }
            return Ok(());
        };
        let sentence = format!("{} must hold: {}", failed.failure, found.invariant);
        writeln!(f, "    {}", paint(FAINT, hanging(&sentence, 4, cells)))?;
        writeln!(f, "    {}", hanging(&format!("at {}: {}", moment(found.at_us), found.fact), 4, cells))?;
        writeln!(f, "    {}", hanging(&format!("but {}", found.contradiction), 4, cells))?;
        writeln!(f, "    {}", paint(FAINT, hanging(&shrunk(found), 4, cells)))?;
        let file = format!("{}/{}", self.kept, found.name);
        let sabotage =
            self.report.sabotage.as_ref().map_or_else(String::new, |guard| format!(" --sabotage {guard}"));
        writeln!(f, "    firedrill explain {file}.toml{}{sabotage}", venue(found.venue))?;
        writeln!(f, "    firedrill replay {file}.json")
    }

    fn verdict(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = self.report;
        writeln!(f)?;
        let seeds = plural_count(report.totals.seeds, "drill");
        let failing: usize = report.failures.iter().map(|failed| failed.seeds.len()).sum();
        match self.exit {
            Exit::Pass => {
                writeln!(f, "  {}  {seeds}, every invariant held{}", paint(GOOD, "PASS"), goals(report))
            }
            Exit::NothingRan => {
                let why = if report.totals.seeds == 0 {
                    "no drill was played".to_owned()
                } else if report.missed.is_empty() {
                    format!("{seeds}, and not all of the campaign")
                } else {
                    format!("{seeds} passed and never reached {}", plural(report.missed.len(), "goal"))
                };
                writeln!(f, "  {}  {why}", paint(BAD, "INCOMPLETE"))
            }
            Exit::Invalid
            | Exit::Liveness
            | Exit::Violated
            | Exit::NotDeterministic
            | Exit::Internal
            | Exit::Interrupted => {
                let kinds = plural(report.failures.len(), "kind");
                writeln!(f, "  {}  {failing} of {seeds} failed, of {kinds}", paint(BAD, "FAIL"))
            }
        }
    }
}

/// `0..20000, shard 1/4`.
fn seeds(report: &Report) -> String {
    let mut text = report.seeds.to_string();
    let shards: Vec<String> =
        report.shards.iter().filter(|shard| shard.of > 1).map(ToString::to_string).collect();
    if !shards.is_empty() {
        text.push_str(&format!(", shard {}", shards.join(", ")));
    }
    if !report.complete {
        text.push_str(", stopped before the end");
    }
    text
}

fn played(report: &Report) -> String {
    let venues: Vec<String> =
        report.venues.iter().map(|(venue, seeds)| format!("{} on {}", count(*seeds), venue.name())).collect();
    format!("{}: {}", plural_count(report.totals.seeds, "drill"), venues.join("; "))
}

fn simulated(report: &Report) -> String {
    let simulated = Duration::from_micros(report.totals.simulated_us);
    format!("{} of a cluster's life, {} inputs", span(simulated), count(report.totals.events))
}

fn reached(report: &Report) -> String {
    let coverage = &report.coverage;
    let of = |map: &std::collections::BTreeMap<String, u64>| {
        format!("{} of {}", map.values().filter(|drills| **drills > 0).count(), map.len())
    };
    format!(
        "{} kinds of event, {} verbs with an effect, {} pairs of verbs",
        of(&coverage.events),
        of(&coverage.effective),
        coverage.pairs.len()
    )
}

fn goals(report: &Report) -> &'static str {
    if report.demands_goals() { ", every goal was reached" } else { "" }
}

fn shrunk(found: &Found) -> String {
    let size = |steps: usize, hosts: usize| format!("{}, {}", plural(steps, "step"), plural(hosts, "host"));
    format!(
        "seed {} on {}: shrunk to {} from {}",
        found.seed,
        found.venue.name(),
        size(found.steps.1, found.hosts.1),
        size(found.steps.0, found.hosts.0)
    )
}

/// The first seeds, and how many more there are.
fn named(seeds: &[u64]) -> String {
    let first: Vec<String> = seeds.iter().take(SEEDS_NAMED).map(ToString::to_string).collect();
    match seeds.len().saturating_sub(SEEDS_NAMED) {
        0 => first.join(", "),
        more => format!("{} and {} more", first.join(", "), count(more as u64)),
    }
}

const fn venue(venue: Venue) -> &'static str {
    match venue {
        Venue::Fast => "",
        Venue::Full => " --wire full",
        Venue::Turmoil => " --engine turmoil",
    }
}

fn plural_count(number: u64, thing: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{} {thing}{s}", count(number))
}

/// The table of sabotages: how many seeds each guard's lack survives.
#[derive(Debug)]
pub(crate) struct Sabotages<'a> {
    /// A row a guard.
    pub(crate) table: &'a [Caught],
}

impl Display for Sabotages<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name_cells = self.table.iter().map(|row| width(row.guard)).max().unwrap_or(0);
        writeln!(f, "{}", paint(STRONG, "every guard of the protocol, turned off in turn"))?;
        writeln!(f)?;
        let head = format!(
            "  {}  {:>6}  {:>6}  {:>9}  caught by",
            padded("guard", name_cells),
            "median",
            "worst",
            "smallest"
        );
        writeln!(f, "{}", paint(FAINT, head))?;
        for row in self.table {
            let guard = padded(row.guard, name_cells);
            if let Some(why) = row.uncaught {
                writeln!(f, "  {guard}  {:>6}  {:>6}  {:>9}  {}", "-", "-", "-", paint(ASKED, why))?;
                continue;
            }
            let number = |seeds: Option<u64>| seeds.map_or("never".to_owned(), count);
            let worst = if row.seeds.iter().all(Option::is_some) {
                row.seeds.iter().copied().max().flatten()
            } else {
                None
            };
            let smallest = row.smallest.map_or(String::new(), |(steps, hosts)| format!("{steps} + {hosts}"));
            let mut by: Vec<String> = row.by.iter().map(ToString::to_string).collect();
            by.sort_unstable();
            by.dedup();
            let style = if row.is_accounted_for() { FAINT } else { BAD };
            writeln!(
                f,
                "  {guard}  {:>6}  {:>6}  {smallest:>9}  {}",
                number(row.median()),
                number(worst),
                paint(style, by.join(", "))
            )?;
        }
        writeln!(f)?;
        writeln!(
            f,
            "  {}",
            paint(
                FAINT,
                format!(
                    "seeds until a drill failed, from {STARTS} starts, at most {SEEDS_MAX}; steps + hosts of the smallest drill"
                )
            )
        )?;
        let missed = self.table.iter().filter(|row| !row.is_accounted_for()).count();
        let caught = self.table.iter().filter(|row| row.uncaught.is_none() && row.is_accounted_for()).count();
        let known = self.table.len() - missed - caught;
        let (mark, style) = if missed == 0 { ("PASS", GOOD) } else { ("FAIL", BAD) };
        writeln!(
            f,
            "  {}  {caught} of {} guards missed by an oracle, {known} known to be beyond any drill, {missed} not missed",
            paint(style, mark),
            self.table.len()
        )
    }
}
