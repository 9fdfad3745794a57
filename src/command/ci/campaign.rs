//! A campaign as cases: one for each invariant, one for each goal, one for the guard that is off, one for the seeds.
//!
//! The cases of a campaign have the same names every night, so that what watches them shows a history. A group of
//! failures is one finding: a fault that a hundred seeds show is one thing to look at.
//!
//! Absent: who plays it. A shard alone is not blamed for the other shards: the caller says what it demands.

use std::collections::BTreeSet;

use firedrill_sim::fuzz::coverage::GOALS_FROM_SEEDS;
use firedrill_sim::fuzz::report::{Failed, Found};
use firedrill_sim::fuzz::seeds::Shard;
use firedrill_sim::fuzz::{EngineMix, PROFILES, Report, WireMix};
use firedrill_sim::oracles::{RULES, sabotage};
use firedrill_sim::outcome::Failure;

use super::{Case, Fact, Finding, Place, Results, Verdict, from_root};
use crate::command::exit::Exit;
use crate::command::text::style::{count, moment, plural};

/// What a report has to be the report of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Demand {
    /// The shards it says it is of: what is demanded of a campaign that was played here.
    ItsShards,
    /// Every shard of the campaign.
    EveryShard,
    /// Nothing: Ctrl-C ended it. It has not passed, and what was found counts.
    Interrupted,
}

/// Where the drills of failures are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kept<'a> {
    /// Their folder.
    pub(crate) folder: &'a str,
    /// Names of those that could not be written.
    pub(crate) lost: &'a BTreeSet<String>,
}

impl Kept<'_> {
    /// The path of a failure's file, if it could be written.
    pub(crate) fn path(&self, found: &Found, ending: &str) -> Option<String> {
        let folder = self.folder.trim_end_matches('/');
        (!self.lost.contains(&found.name)).then(|| format!("{folder}/{}.{ending}", found.name))
    }
}

/// Most seeds that a finding names, and most shards.
const NAMED_MAX: usize = 10;

/// What a campaign came to.
pub(crate) fn results(report: &Report, demand: Demand, kept: Kept<'_>) -> Results {
    let mut cases = invariants(report, kept);
    cases.extend(goals(report));
    cases.extend(report.sabotage.as_deref().map(|guard| noticed(report, demand, guard)));
    cases.push(seeds(report, demand));
    Results {
        series: format!("fuzz/{}", report.profile),
        exit: exit(report, demand),
        headline: headline(report, demand),
        facts: facts(report),
        cases,
    }
}

/// How the command should end: 1 when safety was violated, 3 when only liveness was, 4 when nothing failed and yet not
/// everything was tested that should have been (a goal missed, a guard whose lack nobody noticed, a shard that is not
/// there, no seed played), else 0. What Ctrl-C ended without a failure ends so, whatever else it did not come to.
pub(crate) fn exit(report: &Report, demand: Demand) -> Exit {
    let of = |failed: &Failed| if is_liveness(&failed.failure) { Exit::Liveness } else { Exit::Violated };
    let untested = !report.missed.is_empty()
        || report.totals.seeds == 0
        || unnoticed(report, demand).is_some()
        || (demand == Demand::EveryShard && !missing_shards(report).is_empty());
    let failures = report.failures.iter().map(of).max();
    let otherwise = match demand {
        Demand::Interrupted => Exit::Interrupted,
        Demand::ItsShards | Demand::EveryShard if untested => Exit::NothingRan,
        Demand::ItsShards | Demand::EveryShard => Exit::Pass,
    };
    failures.unwrap_or(otherwise)
}

/// The guard that was off, where no drill of the whole campaign noticed and some should have.
pub(crate) fn unnoticed(report: &Report, demand: Demand) -> Option<&str> {
    let guard = report.sabotage.as_deref()?;
    let asked = demand != Demand::Interrupted && report.is_whole() && report.totals.seeds > 0;
    (asked && report.failures.is_empty() && beyond_any_drill(guard).is_none()).then_some(guard)
}

/// Why no drill can notice that this guard is off, where that is known.
pub(crate) fn beyond_any_drill(guard: &str) -> Option<&'static str> {
    sabotage::find(guard).and_then(|row| row.uncaught)
}

/// Shards of the campaign that this is not the report of.
fn missing_shards(report: &Report) -> Vec<Shard> {
    let of = report.shards.first().map_or(0, |shard| shard.of);
    (1..=of).map(|index| Shard { index, of }).filter(|shard| !report.shards.contains(shard)).collect()
}

/// What is unknown because shards are missing, in words; `None` when all are there.
pub(crate) fn missing(report: &Report) -> Option<String> {
    let missing = missing_shards(report);
    let which = match missing.as_slice() {
        [] => return None,
        few if few.len() <= NAMED_MAX => format!("{} {}", noun(few.len(), "shard"), first_and_more(few)),
        [one, ..] => format!("{} of {} shards", count(missing.len() as u64), count(one.of)),
    };
    let seeds: u64 = missing.iter().map(|shard| shard.count(report.seeds)).sum();
    let were = if seeds == 1 { "was" } else { "were" };
    Some(format!("no report of {which}: {} {} {were} not judged", count(seeds), noun(seeds, "seed")))
}

/// Seeds that the shards of this report have.
pub(crate) fn planned(report: &Report) -> u64 {
    report.shards.iter().map(|shard| shard.count(report.seeds)).fold(0, u64::saturating_add)
}

fn is_liveness(failure: &Failure) -> bool {
    match failure {
        Failure::Invariant(name) => RULES.iter().any(|rule| rule.name == *name && rule.liveness),
        Failure::Expectation | Failure::StepNeverFired => false,
    }
}

fn headline(report: &Report, demand: Demand) -> String {
    let seeds = count(report.totals.seeds);
    let mut played = format!("{seeds} {} of {}", noun(report.totals.seeds, "seed"), report.seeds);
    if demand == Demand::Interrupted {
        played = format!("interrupted after {played}");
    }
    let mut text = match report.failures.len() {
        0 => match unnoticed(report, demand) {
            Some(guard) => format!("{played}: nobody noticed that the guard {guard} is off"),
            None => format!("{played}: every invariant held"),
        },
        groups => {
            let seeds: usize = report.failures.iter().map(|failed| failed.seeds.len()).sum();
            format!("{played}: {} failed for {}", plural(seeds, "seed"), plural(groups, "reason"))
        }
    };
    if !report.missed.is_empty() {
        text.push_str(&format!(", {} missed", plural(report.missed.len(), "goal")));
    }
    text
}

fn noun<N: PartialEq + From<u8>>(number: N, thing: &str) -> String {
    if number == N::from(1) { thing.to_owned() } else { format!("{thing}s") }
}

fn facts(report: &Report) -> Vec<Fact> {
    let venues: Vec<_> =
        report.venues.iter().map(|(venue, seeds)| format!("{} {}", count(*seeds), venue.name())).collect();
    let reached = |names: &std::collections::BTreeMap<String, u64>| {
        let reached = names.values().filter(|drills| **drills > 0).count();
        format!("{reached} of {}", names.len())
    };
    let mut facts = vec![
        ("version", report.version.clone()),
        ("profile", report.profile.clone()),
        ("seeds", report.seeds.to_string()),
        ("played", format!("{} of {}", count(report.totals.seeds), count(planned(report)))),
        ("shards", first_and_more(&report.shards)),
        ("ran on", venues.join(", ")),
        ("events", count(report.totals.events)),
        ("simulated", moment(report.totals.simulated_us)),
        ("kinds of event reached", reached(&report.coverage.events)),
        ("verbs that had an effect", reached(&report.coverage.effective)),
        ("pairs of verbs", report.coverage.pairs.len().to_string()),
    ];
    facts.extend(report.sabotage.clone().map(|guard| ("guard turned off", guard)));
    facts
}

/// A case for each oracle, and for what failed beside them.
fn invariants(report: &Report, kept: Kept<'_>) -> Vec<Case> {
    let name_of = |failure: &Failure| match failure {
        Failure::Invariant(name) => name.clone(),
        Failure::Expectation => "expectation".to_owned(),
        Failure::StepNeverFired => "step_never_fired".to_owned(),
    };
    let mut names: Vec<_> = RULES.iter().map(|rule| rule.name.to_owned()).collect();
    // A report of another version may name an oracle that this one does not have.
    for failed in &report.failures {
        let name = name_of(&failed.failure);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let case = |name: String| {
        let failed = report.failures.iter().filter(|failed| name_of(&failed.failure) == name);
        let findings: Vec<_> = failed.map(|failed| finding(&name, failed, report, kept)).collect();
        let verdict = if findings.is_empty() { Verdict::Passed } else { Verdict::Failed };
        Case { findings, ..case(report, "invariants", name, verdict) }
    };
    names.into_iter().map(case).collect()
}

fn case(report: &Report, part: &str, name: String, verdict: Verdict) -> Case {
    let suite = format!("fuzz/{}/{part}", report.profile);
    Case { suite, name, file: None, verdict, facts: Vec::new(), findings: Vec::new() }
}

fn finding(name: &str, failed: &Failed, report: &Report, kept: Kept<'_>) -> Finding {
    let seeds = failed.seeds.len();
    let mut details = vec![("seeds", first_and_more(&failed.seeds))];
    let reproduce = command(report, failed);
    let Some(found) = &failed.found else {
        let demand = RULES.iter().find(|rule| rule.name == name);
        details.extend(demand.map(|rule| ("invariant", rule.invariant.to_owned())));
        details.extend(demand.map(|rule| ("source", rule.source.to_owned())));
        return Finding {
            details,
            reproduce,
            ..Finding::error(name, format!("{name} broke in {}", plural(seeds, "seed")))
        };
    };
    let file = kept.path(found, "toml").map(|file| from_root(&file));
    details.extend([
        ("invariant", found.invariant.clone()),
        ("source", found.source.clone()),
        ("when", moment(found.at_us)),
        ("fact", found.fact.clone()),
        ("but", found.contradiction.clone()),
        ("ran on", found.venue.name().to_owned()),
        (
            "shrunk",
            format!(
                "{} to {}, {} to {}",
                plural(found.steps.0, "step"),
                found.steps.1,
                plural(found.hosts.0, "host"),
                found.hosts.1
            ),
        ),
    ]);
    details.extend(file.clone().map(|file| ("kept as", file)));
    let message =
        format!("{name} broke in {}: {}, but {}", plural(seeds, "seed"), found.fact, found.contradiction);
    Finding {
        place: file.map(|file| Place { file, line: 1, column: 1 }),
        details,
        reproduce,
        text: Some(found.scenario.clone()),
        ..Finding::error(name, message)
    }
}

/// The first of many, and how many more there are.
fn first_and_more(many: &[impl ToString]) -> String {
    let first: Vec<_> = many.iter().take(NAMED_MAX).map(ToString::to_string).collect();
    match many.len().saturating_sub(NAMED_MAX) {
        0 => first.join(", "),
        more => format!("{} and {} more", first.join(", "), count(more as u64)),
    }
}

/// The command that plays a failure's seed as the campaign did.
pub(crate) fn command(report: &Report, failed: &Failed) -> Option<String> {
    let seed = failed.found.as_ref().map(|found| found.seed).or(failed.seeds.first().copied())?;
    let mut command = format!("firedrill fuzz --profile {} --seeds {seed}", report.profile);
    match report.mix.engine {
        EngineMix::Mix => {}
        EngineMix::Event => command.push_str(" --engine event"),
        EngineMix::Turmoil => command.push_str(" --engine turmoil"),
    }
    match report.mix.wire {
        WireMix::Mix => {}
        WireMix::Fast => command.push_str(" --wire fast"),
        WireMix::Full => command.push_str(" --wire full"),
    }
    if let Some(guard) = &report.sabotage {
        command.push_str(&format!(" --sabotage {guard}"));
    }
    Some(command)
}

/// A case for each goal that the campaign can reach.
fn goals(report: &Report) -> Vec<Case> {
    let profile = PROFILES.iter().find(|profile| profile.name() == report.profile);
    let goals = profile.map(|profile| profile.sometimes()).unwrap_or_default();
    let mut cases = Vec::new();
    for goal in goals.iter().filter(|goal| goal.venues.iter().any(|&venue| report.mix.reaches(venue))) {
        let reached = report.coverage.missed(std::slice::from_ref(goal), report.mix).is_empty();
        let verdict = match reached {
            true => Verdict::Passed,
            false if report.demands_goals() => continue, // among the missed
            false => Verdict::Skipped(too_little(report)),
        };
        cases.push(case(report, "goals", goal.name.to_owned(), verdict));
    }
    cases.extend(report.missed.iter().map(|goal| {
        let message = format!("no drill of {} reached this: {goal}", count(report.totals.seeds));
        let finding = Finding {
            details: vec![(
                "what to do",
                "play more seeds; if it is never reached, the generator cannot, or the code no longer does"
                    .to_owned(),
            )],
            ..Finding::error("goal_missed", message)
        };
        Case { findings: vec![finding], ..case(report, "goals", goal.clone(), Verdict::Failed) }
    }));
    cases
}

/// Why a goal is not demanded yet.
fn too_little(report: &Report) -> String {
    if report.is_whole() {
        format!("goals are demanded from {} seeds on", count(GOALS_FROM_SEEDS))
    } else {
        "goals are demanded of all shards together".to_owned()
    }
}

/// Whether anybody noticed that a guard was off.
fn noticed(report: &Report, demand: Demand, guard: &str) -> Case {
    let case = |verdict| case(report, "sabotage", guard.to_owned(), verdict);
    if unnoticed(report, demand).is_some() {
        let drills = format!("{} {}", count(report.totals.seeds), noun(report.totals.seeds, "drill"));
        let message = format!("the guard {guard} is off, and nobody noticed in {drills}");
        let advice =
            "play more seeds; if nobody ever notices, the guard is not needed or the oracles are blind";
        let details = vec![("what to do", advice.to_owned())];
        let findings = vec![Finding { details, ..Finding::error("sabotage_unnoticed", message) }];
        return Case { findings, ..case(Verdict::Failed) };
    }
    match (report.failures.is_empty(), beyond_any_drill(guard)) {
        (false, _) => case(Verdict::Passed),
        (true, Some(why)) => case(Verdict::Skipped(format!("beyond any drill: {why}"))),
        (true, None) => case(Verdict::Skipped("it is demanded of all seeds together".to_owned())),
    }
}

/// Whether everything was played.
fn seeds(report: &Report, demand: Demand) -> Case {
    if let (Demand::EveryShard, Some(message)) = (demand, missing(report)) {
        let advice = "look at the job of each: it was cancelled, or it ended before it wrote its report";
        let details = vec![("what to do", advice.to_owned())];
        let findings = vec![Finding { details, ..Finding::error("shard_missing", message) }];
        return Case { findings, ..case(report, "seeds", "every shard".to_owned(), Verdict::Failed) };
    }
    let case = |verdict| case(report, "seeds", "every shard".to_owned(), verdict);
    let stopped = || {
        let (played, planned) = (count(report.totals.seeds), count(planned(report)));
        format!("stopped after {played} of {planned} seeds")
    };
    if demand == Demand::Interrupted {
        let findings = vec![Finding::error("interrupted", stopped())];
        return Case { findings, ..case(Verdict::Broke) };
    }
    case(if report.complete { Verdict::Passed } else { Verdict::Skipped(stopped()) })
}

#[cfg(test)]
pub(crate) mod samples {
    //! Hand-made reports of campaigns.

    use firedrill_core::guards::Guards;
    use firedrill_sim::fuzz::campaign::Plan;
    use firedrill_sim::fuzz::report::Found;
    use firedrill_sim::fuzz::seeds::Seeds;
    use firedrill_sim::fuzz::{Gossip, Mix, Venue};

    use super::*;

    /// A folder that holds every drill.
    pub(crate) const KEPT: Kept<'static> = Kept { folder: "scenarios/regressions", lost: &BTreeSet::new() };

    /// Shard `index` of four, 100 seeds played, nothing found.
    pub(crate) fn shard(index: u64) -> Report {
        let mut report = Report::new(&Plan {
            profile: &Gossip,
            mix: Mix::ALL,
            guards: Guards::ON,
            sabotage: None,
            seeds: Seeds { from: 0, to: 400 },
            shard: Shard { index, of: 4 },
            jobs: 1,
            fail_fast: false,
        });
        report.version = "1.2.3".to_owned();
        report.totals.seeds = 100;
        report.totals.events = 123_456;
        report.totals.simulated_us = 6_000_000_000;
        report.venues.extend([(Venue::Fast, 94), (Venue::Full, 6)]);
        report.coverage.events.insert("suspect".to_owned(), 40);
        report.coverage.effective.insert("kill".to_owned(), 31);
        report.complete = true;
        report
    }

    /// All four shards, nothing found.
    pub(crate) fn clean() -> Report {
        Report::merge((1..=4).map(shard)).expect("they are of one campaign")
    }

    /// The same with two groups of failures: safety, looked at closely, and liveness, which was not.
    pub(crate) fn failed() -> Report {
        let mut report = clean();
        let [safety, liveness] = [false, true].map(|liveness| {
            RULES.iter().find(|rule| rule.liveness == liveness).expect("there are oracles of both kinds")
        });
        report.failures = vec![
            Failed {
                failure: Failure::Invariant(safety.name.to_owned()),
                seeds: (10..30).collect(),
                hung: Vec::new(),
                too_busy: Vec::new(),
                found: Some(Found {
                    seed: 11,
                    venue: Venue::Full,
                    name: "counter-falls-11".to_owned(),
                    fact: "b showed sightings = 12 at 12.511 s".to_owned(),
                    contradiction: "b shows sightings = 11 now, in the same boot".to_owned(),
                    invariant: safety.invariant.to_owned(),
                    source: safety.source.to_owned(),
                    at_us: 12_700_311,
                    steps: (14, 2),
                    hosts: (5, 2),
                    scenario: "# <b> | 100%\nname = \"counter-falls-11\"\n".to_owned(),
                }),
            },
            Failed {
                failure: Failure::Invariant(liveness.name.to_owned()),
                seeds: vec![7],
                hung: Vec::new(),
                too_busy: Vec::new(),
                found: None,
            },
        ];
        report.failures.sort_by(|one, other| one.failure.cmp(&other.failure));
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_campaign_ends_by_its_gravest_news() {
        let exit = |report: &Report| exit(report, Demand::EveryShard).code();
        let mut report = samples::failed();
        assert_eq!(exit(&report), 1);
        report.missed = vec!["a kill".to_owned()];
        assert_eq!(exit(&report), 1, "a failure outranks a goal missed");
        report.failures.retain(|failed| is_liveness(&failed.failure));
        assert_eq!(exit(&report), 3);
        report.failures.clear();
        assert_eq!(exit(&report), 4);
        report.missed.clear();
        assert_eq!(exit(&report), 0);
    }

    #[test]
    fn a_shard_is_blamed_for_the_others_only_where_all_are_demanded() {
        let shard = samples::shard(2);
        assert_eq!(exit(&shard, Demand::ItsShards), Exit::Pass);
        assert_eq!(exit(&shard, Demand::EveryShard), Exit::NothingRan);
        let told = missing(&shard).unwrap_or_default();
        assert_eq!(told, "no report of shards 1/4, 3/4, 4/4: 300 seeds were not judged");
        assert_eq!(missing(&samples::clean()), None);
    }

    #[test]
    fn a_campaign_that_was_stopped_in_time_has_passed_and_says_how_far_it_came() {
        let mut report = samples::clean();
        report.complete = false;
        report.totals.seeds = 250;
        let results = results(&report, Demand::EveryShard, samples::KEPT);
        assert_eq!(results.exit, Exit::Pass);
        let last = results.cases.last().map(|case| case.verdict.clone());
        assert_eq!(last, Some(Verdict::Skipped("stopped after 250 of 400 seeds".to_owned())));
    }

    #[test]
    fn cases_have_the_same_names_whatever_failed() {
        let names = |report: &Report| {
            let cases = results(report, Demand::EveryShard, samples::KEPT).cases;
            cases.into_iter().map(|case| (case.suite, case.name)).collect::<std::collections::BTreeSet<_>>()
        };
        let mut missed = samples::failed();
        missed.totals.seeds = GOALS_FROM_SEEDS;
        missed.missed = vec!["a kill".to_owned()];
        missed.coverage = samples::clean().coverage;
        assert!(names(&missed).is_subset(&names(&samples::clean())));
        assert_eq!(names(&samples::failed()), names(&samples::clean()));
    }
}
