//! A drill as a case.
//!
//! Absent: the order of drills and the exit code, which are the caller's.

use std::path::Path;

use firedrill_sim::outcome::{ExpectationResult, Violation};
use firedrill_sim::scenario::Report as Problems;
use firedrill_sim::scenario::model::Span;

use super::{Case, Fact, Finding, Level, Place, Results, Verdict, from_root};
use crate::command::exit::Exit;
use crate::command::report::{Difference, Report, Twice};
use crate::command::text::style::{moment, plural};

/// What a run of drills came to.
pub(crate) fn results(exit: Exit, cases: Vec<Case>) -> Results {
    let mut results =
        Results { series: "run".to_owned(), exit, headline: String::new(), facts: Vec::new(), cases };
    let (passed, failed, skipped) = results.count();
    results.headline = match (passed, failed) {
        (0, 0) => "nothing ran".to_owned(),
        (_, 0) => format!("{} passed", plural(passed, "drill")),
        _ => format!("{failed} of {} failed", plural(passed + failed, "drill")),
    };
    if skipped > 0 {
        results.headline.push_str(&format!(", {skipped} skipped"));
    }
    results
}

/// A drill that ran.
pub(crate) fn ran(report: &Report) -> Case {
    let outcome = &report.outcome;
    let mut findings = Vec::new();
    if let Some(Twice::Differs(difference)) = &report.twice {
        findings.push(parted(difference, report));
    }
    findings.extend(outcome.violation.as_ref().map(|violation| broken(violation, report)));
    let missed = outcome.expectations.iter().filter(|expectation| !expectation.held);
    findings.extend(missed.map(|expectation| disappointed(expectation, report)));
    let spans = outcome.unfired_spans.iter().copied().chain(std::iter::repeat(Span::default()));
    findings.extend(outcome.unfired_steps.iter().zip(spans).map(|(step, span)| Finding {
        place: Some(place(span, report)),
        reproduce: Some(report.reproduce.clone()),
        ..Finding::error("step_never_fired", format!("never fired: {step}"))
    }));
    findings.extend(outcome.ineffective_faults.iter().map(|fault| Finding {
        level: Level::Note,
        place: Some(Place::top(&outcome.path)),
        ..Finding::error("fault_without_effect", format!("had no effect: {fault}"))
    }));
    let verdict = if report.exit() == Exit::Pass { Verdict::Passed } else { Verdict::Failed };
    let mut facts: Vec<Fact> =
        vec![("seed", outcome.seed.to_string()), ("engine", outcome.engine.to_owned())];
    facts.extend(outcome.wire.map(|wire| ("wire", wire.to_owned())));
    facts.push(("digest", outcome.digest.clone()));
    Case { facts, findings, name: outcome.scenario.clone(), ..case(Path::new(&outcome.path), verdict) }
}

/// A drill that its engine cannot express, left out of a folder.
pub(crate) fn skipped(path: &Path, problems: &Problems) -> Case {
    let reason = problems.problems().first().map_or_else(|| problems.to_string(), ToString::to_string);
    case(path, Verdict::Skipped(reason))
}

/// A file that is no scenario, or none for this engine.
pub(crate) fn invalid(path: &Path, problems: &Problems) -> Case {
    let findings = problems.problems().iter().map(|problem| {
        let help = miette::Diagnostic::help(problem).map(|help| ("help", help.to_string()));
        let path = path.to_string_lossy();
        Finding {
            place: Some(problem.place().map_or_else(
                || Place::top(&path),
                |(file, line, column)| Place { file: from_root(file), line, column },
            )),
            details: help.into_iter().collect(),
            ..Finding::error("invalid_scenario", problem.to_string())
        }
    });
    Case { findings: findings.collect(), ..case(path, Verdict::Broke) }
}

/// A drill that could not be judged, and why.
pub(crate) fn broke(path: &Path, rule: &str, why: String, reproduce: Option<String>) -> Case {
    let place = Some(Place::top(&path.to_string_lossy()));
    let finding = Finding { place, reproduce, ..Finding::error(rule, why) };
    Case { findings: vec![finding], ..case(path, Verdict::Broke) }
}

fn case(path: &Path, verdict: Verdict) -> Case {
    let file = from_root(&path.to_string_lossy());
    let (folder, name) = file.rsplit_once('/').unwrap_or((".", &file));
    Case {
        suite: folder.to_owned(),
        name: name.trim_end_matches(".toml").to_owned(),
        verdict,
        facts: Vec::new(),
        findings: Vec::new(),
        file: Some(file),
    }
}

fn place(span: Span, report: &Report) -> Place {
    Place::of(span, &report.setting.files, &report.outcome.path)
}

fn broken(violation: &Violation, report: &Report) -> Finding {
    let at = moment(violation.at_us);
    Finding {
        place: Some(Place::top(&report.outcome.path)),
        nodes: violation.nodes.clone(),
        details: vec![
            ("invariant", violation.invariant.to_owned()),
            ("source", violation.source.to_owned()),
            ("when", format!("{at} ({} µs)", violation.at_us)),
            ("nodes", nodes(&violation.nodes)),
            ("fact", violation.fact.clone()),
            ("but", violation.contradiction.clone()),
        ],
        reproduce: Some(report.reproduce.clone()),
        ..Finding::error(
            violation.oracle,
            format!(
                "{} broke at {at}: {}, but {}",
                violation.oracle, violation.fact, violation.contradiction
            ),
        )
    }
}

/// The nodes of a violation in words.
fn nodes(nodes: &[String]) -> String {
    if nodes.is_empty() { "the cluster".to_owned() } else { nodes.join(", ") }
}

fn disappointed(expectation: &ExpectationResult, report: &Report) -> Finding {
    let at = moment(expectation.at_us);
    let seen = expectation.seen.as_deref().unwrap_or("this did not hold");
    Finding {
        place: Some(place(expectation.span, report)),
        details: vec![("when", at)],
        reproduce: Some(report.reproduce.clone()),
        ..Finding::error("expectation", format!("expected {}; seen: {seen}", expectation.text))
    }
}

fn parted(difference: &Difference, report: &Report) -> Finding {
    let (one, two) = &difference.digests;
    let mut details = vec![("digests", format!("{one} and {two}"))];
    if let Some((one, two)) = &difference.lines {
        details.extend([("one run", one.clone()), ("the other", two.clone())]);
    }
    let message = match difference.event {
        Some(event) => format!("two runs of one seed differ, first in event {event}"),
        None => "two runs of one seed differ in their results, not in their events".to_owned(),
    };
    Finding {
        place: Some(Place::top(&report.outcome.path)),
        details,
        reproduce: Some(report.reproduce.clone()),
        ..Finding::error("not_deterministic", message)
    }
}
