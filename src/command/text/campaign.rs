//! A campaign for people: what was played and reached, every kind of failure with its smallest drill, the verdict.

use std::fmt::{self, Display};
use std::time::Duration;

use firedrill_sim::fuzz::report::{Failed, Found};
use firedrill_sim::fuzz::sabotage::{Caught, SEEDS_MAX, STARTS};
use firedrill_sim::fuzz::{Report, Venue};

use super::style::{ASKED, BAD, FAINT, GOOD, STRONG, count, moment, paint, plural, span};
use super::wrap::{hanging, padded, width};
use crate::command::ci::campaign::{self, Demand, Kept};
use crate::command::exit::Exit;
use crate::command::shell;

/// Cells before the value of a labelled line.
const INDENT: usize = 14;
/// Seeds of a failure that are named.
const SEEDS_NAMED: usize = 8;

/// A campaign, told in full.
#[derive(Debug)]
pub(crate) struct Page<'a> {
    /// What came of it.
    pub(crate) report: &'a Report,
    /// What it has to be the report of.
    pub(crate) demand: Demand,
    /// Where the drills of failures are; `None` where nobody knows, as after a merge.
    pub(crate) kept: Option<Kept<'a>>,
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
        if !failed.hung.is_empty() {
            let hung = named(&failed.hung);
            let told = format!("the drill of seed {hung} never came back: play it alone, under a debugger");
            writeln!(f, "    {}", hanging(&told, 4, cells))?;
        }
        let Some(found) = &failed.found else { return self.again(f, failed) };
        let sentence = format!("{} must hold: {}", failed.failure, found.invariant);
        writeln!(f, "    {}", paint(FAINT, hanging(&sentence, 4, cells)))?;
        writeln!(f, "    {}", hanging(&format!("at {}: {}", moment(found.at_us), found.fact), 4, cells))?;
        writeln!(f, "    {}", hanging(&format!("but {}", found.contradiction), 4, cells))?;
        writeln!(f, "    {}", paint(FAINT, hanging(&shrunk(found), 4, cells)))?;
        let path = |ending| self.kept.and_then(|kept| kept.path(found, ending));
        let (Some(drill), Some(artifact)) = (path("toml"), path("json")) else {
            return self.again(f, failed);
        };
        let sabotage =
            self.report.sabotage.as_ref().map_or_else(String::new, |guard| format!(" --sabotage {guard}"));
        writeln!(f, "    firedrill explain {}{}{sabotage}", shell::quoted(&drill), venue(found.venue))?;
        writeln!(f, "    firedrill replay {}", shell::quoted(&artifact))
    }

    /// The line that plays a seed again, where there is no file of it.
    fn again(&self, f: &mut fmt::Formatter<'_>, failed: &Failed) -> fmt::Result {
        match campaign::command(self.report, failed) {
            Some(command) => writeln!(f, "    {command}"),
            None => Ok(()),
        }
    }

    fn verdict(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mark, why) = self.verdict_in_words();
        let style = if mark == "PASS" { GOOD } else { BAD };
        writeln!(f)?;
        writeln!(f, "  {}  {}", paint(style, mark), hanging(&why, width(mark) + 4, self.cells))
    }

    /// One word, and what it is about.
    fn verdict_in_words(&self) -> (&'static str, String) {
        let report = self.report;
        let drills = plural_count(report.totals.seeds, "drill");
        match campaign::exit(report, self.demand) {
            Exit::Pass => {
                ("PASS", format!("{drills}, every invariant held{}{}", goals(report), known(report)))
            }
            Exit::NothingRan => {
                if let Some(guard) = campaign::unnoticed(report, self.demand) {
                    return ("FAIL", format!("{drills}, and nobody noticed that the guard {guard} is off"));
                }
                let missing = campaign::missing(report).filter(|_| self.demand == Demand::EveryShard);
                let why = if let Some(missing) = missing {
                    missing
                } else if report.totals.seeds == 0 {
                    "no drill was played".to_owned()
                } else {
                    format!("{drills} passed and never reached {}", plural(report.missed.len(), "goal"))
                };
                ("INCOMPLETE", why)
            }
            Exit::Interrupted => {
                let planned = plural_count(campaign::planned(report), "drill");
                let played = count(report.totals.seeds);
                ("INTERRUPTED", format!("{played} of {planned} played, and none of them failed"))
            }
            Exit::Invalid | Exit::Liveness | Exit::Violated | Exit::NotDeterministic | Exit::Internal => {
                let failing: usize = report.failures.iter().map(|failed| failed.seeds.len()).sum();
                let kinds = plural(report.failures.len(), "kind");
                ("FAIL", format!("{} of {drills} failed, of {kinds}", count(failing as u64)))
            }
        }
    }
}

/// `0..20000, shard 1/4`.
fn seeds(report: &Report) -> String {
    let mut text = report.seeds.to_string();
    match report.shards.as_slice() {
        [whole] if whole.of == 1 => {}
        [one] => text.push_str(&format!(", shard {one}")),
        [one, ..] if report.is_whole() => text.push_str(&format!(", all {} shards", count(one.of))),
        [one, ..] => {
            let there = count(report.shards.len() as u64);
            text.push_str(&format!(", {there} of {} shards", count(one.of)));
        }
        [] => {}
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
        "{} kinds of event, {} verbs with an effect, {}",
        of(&coverage.events),
        of(&coverage.effective),
        pairs(coverage.pairs.len())
    )
}

fn pairs(number: usize) -> String {
    format!("{} of verbs", plural(number, "pair"))
}

/// Why it is no news that nobody noticed that a guard is off.
fn known(report: &Report) -> String {
    let why = report.sabotage.as_deref().and_then(campaign::beyond_any_drill);
    why.map_or_else(String::new, |why| format!("; no drill can notice this guard's lack: {why}"))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::ci::campaign::samples;

    fn page(report: &Report, demand: Demand, kept: Option<Kept<'_>>) -> String {
        anstream::adapter::strip_str(&Page { report, demand, kept, cells: 100 }.to_string()).to_string()
    }

    fn last(page: &str) -> &str {
        page.lines().last().unwrap_or_default()
    }

    #[test]
    fn a_number_and_its_noun_agree() {
        let mut report = samples::clean();
        report.coverage.pairs.insert("kill, partition".to_owned(), 1);
        let told = page(&report, Demand::EveryShard, None);
        assert!(told.contains("1 pair of verbs\n"), "{told}");
    }

    #[test]
    fn what_is_kept_is_named_by_its_files_and_what_is_not_by_its_seed() {
        let report = samples::failed();
        let kept = page(&report, Demand::EveryShard, Some(samples::KEPT));
        assert!(kept.contains("firedrill replay scenarios/regressions/counter-falls-11.json\n"), "{kept}");
        let lost = ["counter-falls-11".to_owned()].into();
        for place in [None, Some(Kept { lost: &lost, ..samples::KEPT })] {
            let told = page(&report, Demand::EveryShard, place);
            for fact in ["b showed sightings = 12", "in the same boot", "shrunk to 2 steps, 2 hosts"] {
                assert!(told.contains(fact), "{told}");
            }
            assert!(told.contains("    firedrill fuzz --profile gossip --seeds 11\n"), "{told}");
            assert!(!told.contains("regressions"), "{told}");
        }
    }

    #[test]
    fn an_interrupted_campaign_has_not_passed_and_what_it_found_counts() {
        let mut report = samples::clean();
        (report.complete, report.totals.seeds) = (false, 7);
        let told = page(&report, Demand::Interrupted, None);
        assert_eq!(last(&told), "  INTERRUPTED  7 of 400 drills played, and none of them failed");
        report.totals.seeds = 0;
        assert!(last(&page(&report, Demand::Interrupted, None)).starts_with("  INTERRUPTED  0 of 400"));
        let told = page(&samples::failed(), Demand::Interrupted, None);
        assert_eq!(last(&told), "  FAIL  21 of 400 drills failed, of 2 kinds");
    }

    #[test]
    fn a_guard_whose_lack_nobody_noticed_is_a_failure_unless_nobody_can() {
        let mut report = samples::clean();
        report.sabotage = Some("refutation".to_owned());
        let told = page(&report, Demand::EveryShard, None);
        assert_eq!(last(&told), "  FAIL  400 drills, and nobody noticed that the guard refutation is off");
        let beyond = firedrill_sim::oracles::sabotage::SABOTAGE.iter().find(|row| row.uncaught.is_some());
        report.sabotage = beyond.map(|row| row.guard.to_owned());
        let told = page(&report, Demand::EveryShard, None);
        assert!(told.contains("  PASS  400 drills, every invariant held; no drill can notice"), "{told}");
    }

    #[test]
    fn shards_that_are_not_there_are_told_in_the_verdict() {
        let told = page(&samples::shard(2), Demand::EveryShard, None);
        assert!(told.contains("0..400, shard 2/4\n"), "{told}");
        assert_eq!(last(&told), "  INCOMPLETE  no report of shards 1/4, 3/4, 4/4: 300 seeds were not judged");
        assert!(page(&samples::clean(), Demand::EveryShard, None).contains("0..400, all 4 shards\n"));
    }
}
