//! A campaign as cases: one for each invariant, one for each goal, one for the seeds.
//!
//! The cases of a campaign have the same names every night, so that what watches them shows a history. A group of
//! failures is one finding: a fault that a hundred seeds show is one thing to look at.
//!
//! Absent: who plays it. A shard alone is not blamed for the other shards: the caller says what it demands.

use firedrill_sim::fuzz::coverage::GOALS_FROM_SEEDS;
use firedrill_sim::fuzz::report::Failed;
use firedrill_sim::fuzz::seeds::Shard;
use firedrill_sim::fuzz::{EngineMix, PROFILES, Report, WireMix};
use firedrill_sim::oracles::RULES;
use firedrill_sim::outcome::Failure;

use super::{Case, Fact, Finding, Place, Results, Verdict, from_root};
use crate::command::exit::Exit;
use crate::command::text::style::{count, moment, plural};

/// What a report has to be the report of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Demand {
    /// The shards it says it is of: what is demanded of a campaign that was played here.
    #[cfg_attr(not(test), allow(dead_code, reason = "for the command that plays campaigns"))]
    ItsShards,
    /// Every shard of the campaign.
    EveryShard,
}

/// Most seeds that a finding names.
const SEEDS_NAMED: usize = 10;

/// What a campaign came to. `kept` is the folder where its scenarios are kept, from the root of the repository.
pub(crate) fn results(report: &Report, demand: Demand, kept: &str) -> Results {
    let mut cases = invariants(report, kept);
    cases.extend(goals(report));
    cases.push(seeds(report, demand));
    Results {
        series: format!("fuzz/{}", report.profile),
        exit: exit(report, demand),
        headline: headline(report),
        facts: facts(report),
        cases,
    }
}

/// How the command should end: 1 when safety was violated, 3 when only liveness was, 4 when nothing failed and yet not
/// everything was tested that should have been (a goal missed, a shard that is not there, no seed played), else 0.
pub(crate) fn exit(report: &Report, demand: Demand) -> Exit {
    let of = |failed: &Failed| if is_liveness(&failed.failure) { Exit::Liveness } else { Exit::Violated };
    let untested = !report.missed.is_empty()
        || report.totals.seeds == 0
        || (demand == Demand::EveryShard && !missing_shards(report).is_empty());
    let failures = report.failures.iter().map(of).max();
    failures.unwrap_or(if untested { Exit::NothingRan } else { Exit::Pass })
}

/// Shards of the campaign that this is not the report of.
fn missing_shards(report: &Report) -> Vec<Shard> {
    let of = report.shards.first().map_or(0, |shard| shard.of);
    (1..=of).map(|index| Shard { index, of }).filter(|shard| !report.shards.contains(shard)).collect()
}

/// What is unknown because shards are missing, in words; `None` when all are there.
pub(crate) fn missing(report: &Report) -> Option<String> {
    let missing = missing_shards(report);
    let names: Vec<_> = missing.iter().map(ToString::to_string).collect();
    let seeds: u64 = missing.iter().map(|shard| shard.count(report.seeds)).sum();
    let were = if seeds == 1 { "was" } else { "were" };
    (!missing.is_empty()).then(|| {
        format!(
            "no report of {} {}: {} {} {were} not judged",
            noun(missing.len(), "shard"),
            names.join(", "),
            count(seeds),
            noun(seeds, "seed")
        )
    })
}

/// Seeds that the shards of this report have.
fn planned(report: &Report) -> u64 {
    report.shards.iter().map(|shard| shard.count(report.seeds)).sum()
}

fn is_liveness(failure: &Failure) -> bool {
    match failure {
        Failure::Invariant(name) => RULES.iter().any(|rule| rule.name == *name && rule.liveness),
        Failure::Expectation | Failure::StepNeverFired => false,
    }
}

fn headline(report: &Report) -> String {
    let seeds = count(report.totals.seeds);
    let played = format!("{seeds} {} of {}", noun(report.totals.seeds, "seed"), report.seeds);
    let mut text = match report.failures.len() {
        0 => format!("{played}: every invariant held"),
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
    let shards: Vec<_> = report.shards.iter().map(ToString::to_string).collect();
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
        ("shards", shards.join(", ")),
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
fn invariants(report: &Report, kept: &str) -> Vec<Case> {
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

fn finding(name: &str, failed: &Failed, report: &Report, kept: &str) -> Finding {
    let seeds = failed.seeds.len();
    let mut details = vec![("seeds", named(&failed.seeds))];
    let first = failed.found.as_ref().map(|found| found.seed).or(failed.seeds.first().copied());
    let reproduce = first.map(|seed| command(report, seed));
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
    let file = from_root(&format!("{}/{}.toml", kept.trim_end_matches('/'), found.name));
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
        ("kept as", file.clone()),
    ]);
    let message =
        format!("{name} broke in {}: {}, but {}", plural(seeds, "seed"), found.fact, found.contradiction);
    Finding {
        place: Some(Place { file, line: 1, column: 1 }),
        details,
        reproduce,
        text: Some(found.scenario.clone()),
        ..Finding::error(name, message)
    }
}

/// A campaign for people: the headline, then what failed and what to look at.
pub(crate) fn text(results: &Results) -> String {
    let mut text = format!("{}\n", results.headline);
    for (label, value) in &results.facts {
        text.push_str(&format!("  {label:<24}{value}\n"));
    }
    for (_, finding) in results.errors() {
        text.push_str(&format!("\n{}\n", finding.in_full()));
    }
    text
}

/// The first seeds, and how many more there are.
fn named(seeds: &[u64]) -> String {
    let first: Vec<_> = seeds.iter().take(SEEDS_NAMED).map(ToString::to_string).collect();
    match seeds.len().saturating_sub(SEEDS_NAMED) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// The command that plays this seed as the campaign did.
fn command(report: &Report, seed: u64) -> String {
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
    command
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

/// Whether everything was played.
fn seeds(report: &Report, demand: Demand) -> Case {
    if let (Demand::EveryShard, Some(message)) = (demand, missing(report)) {
        let advice = "look at the job of each: it was cancelled, or it ended before it wrote its report";
        let details = vec![("what to do", advice.to_owned())];
        let findings = vec![Finding { details, ..Finding::error("shard_missing", message) }];
        return Case { findings, ..case(report, "seeds", "every shard".to_owned(), Verdict::Failed) };
    }
    let verdict = if report.complete {
        Verdict::Passed
    } else {
        let (played, planned) = (count(report.totals.seeds), count(planned(report)));
        Verdict::Skipped(format!("stopped after {played} of {planned} seeds"))
    };
    case(report, "seeds", "every shard".to_owned(), verdict)
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
                hung: false,
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
                hung: false,
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
        let results = results(&report, Demand::EveryShard, "kept");
        assert_eq!(results.exit, Exit::Pass);
        let last = results.cases.last().map(|case| case.verdict.clone());
        assert_eq!(last, Some(Verdict::Skipped("stopped after 250 of 400 seeds".to_owned())));
    }

    #[test]
    fn cases_have_the_same_names_whatever_failed() {
        let names = |report: &Report| {
            let cases = results(report, Demand::EveryShard, "kept").cases;
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
