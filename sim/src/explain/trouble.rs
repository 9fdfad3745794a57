//! What failed, whom it concerns, and what failed beside it.

use std::collections::BTreeSet;

use firedrill_core::time::micros;
use serde::Serialize;

use super::recorder::{Moment, Picture, Recorder};
use super::why::why;
use crate::drill::words;
use crate::outcome::{ExpectationResult, Failure, Outcome, Verdict, Violation};
use crate::scenario::Scenario;
use crate::scenario::model::{Fact, HostIx, Span};

/// Members whose records are told of at the most.
const SUBJECTS_MAX: usize = 2;

/// Why the drill failed.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Trouble {
    /// An invariant broke.
    Invariant {
        /// The oracle's name.
        oracle: &'static str,
        /// When, in microseconds of the run.
        at_us: u64,
        /// The nodes concerned.
        nodes: Vec<String>,
        /// One fact …
        fact: String,
        /// … and the one that it contradicts.
        contradiction: String,
    },
    /// An expectation of the file did not hold.
    Expectation {
        /// It, in words.
        text: String,
        /// When that was decided, in microseconds of the run.
        at_us: u64,
        /// What was seen instead.
        seen: Option<String>,
        /// The file it stands in.
        path: String,
        /// The line there, from 1; none for an expectation that was not read from a file.
        line: Option<usize>,
        /// Its position among the expectations.
        position: usize,
    },
    /// Steps of the file never fired.
    StepNeverFired {
        /// They, in the file's words.
        steps: Vec<String>,
    },
}

/// The rule of the protocol that a failure contradicts.
#[derive(Debug, Clone, Serialize)]
pub struct Broken {
    /// The oracle that stands for it.
    pub oracle: &'static str,
    /// What it demands, in a sentence.
    pub invariant: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// What goes wrong for people without it.
    pub why: Option<&'static str>,
    /// What had to come true by when, where the rule is about the end.
    pub deadline: Option<Deadline>,
}

/// When the nodes had to agree, and why then.
#[derive(Debug, Clone, Serialize)]
pub struct Deadline {
    /// When the last fault was over, in microseconds of the run.
    pub began_us: u64,
    /// How long they had, in microseconds.
    pub within_us: u64,
    /// The rule that gives so long, with its numbers.
    pub because: String,
}

impl Trouble {
    /// When it was decided, in microseconds of the run.
    pub const fn at_us(&self) -> Option<u64> {
        match self {
            Self::Invariant { at_us, .. } | Self::Expectation { at_us, .. } => Some(*at_us),
            Self::StepNeverFired { .. } => None,
        }
    }

    pub(super) const fn moment(&self) -> Option<Moment> {
        match self {
            Self::Invariant { .. } => Some(Moment::Oracle),
            Self::Expectation { position, .. } => Some(Moment::Expectation(*position)),
            Self::StepNeverFired { .. } => None,
        }
    }
}

/// Whom a failure concerns.
#[derive(Debug, Clone, Default)]
pub(super) struct Concern {
    /// Ids of everybody concerned.
    pub(super) ids: BTreeSet<String>,
    /// Ids of those whom the beliefs in question are about.
    pub(super) subjects: Vec<String>,
    /// The counter in question, if it is about counters.
    pub(super) counters: bool,
}

/// The trouble that the verdict is about, and the rest in a sentence each.
pub(super) fn find(
    scenario: &Scenario,
    recorder: &Recorder<'_>,
    outcome: &Outcome,
) -> (Option<Trouble>, Vec<String>) {
    let missed = || outcome.expectations.iter().enumerate().filter(|(_, result)| !result.held);
    let Some(failure) = outcome.failure() else { return (None, Vec::new()) };
    let first_missed = recorder.first_missed().or_else(|| missed().next().map(|(ix, _)| ix));
    let trouble = match failure {
        Failure::Invariant(_) => outcome.violation.as_ref().map(invariant),
        Failure::Expectation => {
            let ix = first_missed.unwrap_or(0);
            outcome.expectations.get(ix).map(|result| expectation(scenario, ix, result))
        }
        Failure::StepNeverFired => Some(Trouble::StepNeverFired { steps: outcome.unfired_steps.clone() }),
    };
    let mut also = Vec::new();
    let told = trouble.as_ref().and_then(Trouble::moment);
    for (ix, result) in missed().filter(|(ix, _)| told != Some(Moment::Expectation(*ix))) {
        // An oracle ends the run: of what had no time to be decided nothing can be said.
        if outcome.verdict != Verdict::Safety || recorder.first_missed() == Some(ix) {
            let seen = result.seen.as_ref().map_or_else(String::new, |seen| format!(" ({seen})"));
            also.push(format!("expected {}{seen}", result.text));
        }
    }
    if let Some(violation) = outcome.violation.as_ref().filter(|_| told != Some(Moment::Oracle)) {
        let (fact, but) = (&violation.fact, &violation.contradiction);
        also.push(format!("{}: {fact}, but {but}", violation.oracle));
    }
    if !matches!(trouble, Some(Trouble::StepNeverFired { .. })) && outcome.violation.is_none() {
        also.extend(outcome.unfired_steps.iter().map(|step| format!("never fired: {step}")));
    }
    (trouble, also)
}

fn invariant(violation: &Violation) -> Trouble {
    Trouble::Invariant {
        oracle: violation.oracle,
        at_us: violation.at_us,
        nodes: violation.nodes.clone(),
        fact: violation.fact.clone(),
        contradiction: violation.contradiction.clone(),
    }
}

/// The rule that an oracle found broken, whether or not the verdict is about it.
pub(super) fn rule(recorder: &Recorder<'_>, outcome: &Outcome) -> Option<Broken> {
    let violation = outcome.violation.as_ref()?;
    let deadline = recorder.settling.as_ref().filter(|_| violation.liveness).map(|settling| Deadline {
        began_us: settling.began.as_micros(),
        within_us: micros(settling.within),
        because: settling.because.clone(),
    });
    Some(Broken {
        oracle: violation.oracle,
        invariant: violation.invariant,
        source: violation.source,
        why: why(violation.oracle),
        deadline,
    })
}

fn expectation(scenario: &Scenario, position: usize, result: &ExpectationResult) -> Trouble {
    let (path, line) = place(scenario, result.span);
    let (text, seen) = (result.text.clone(), result.seen.clone());
    Trouble::Expectation { text, at_us: result.at_us, seen, path, line, position }
}

/// File and line of a span.
fn place(scenario: &Scenario, span: Span) -> (String, Option<usize>) {
    let Some(file) = scenario.files.get(span.file) else { return (String::new(), None) };
    let before = file.text.get(..span.start).filter(|_| span.start < span.end);
    (file.path.clone(), before.map(|before| before.matches('\n').count() + 1))
}

/// Whom a failure concerns.
pub(super) fn concern(scenario: &Scenario, trouble: &Trouble, picture: Option<&Picture>) -> Concern {
    let id_of = |name: &String| {
        let host = scenario.hosts.iter().find(|host| host.name == *name);
        host.map_or_else(|| name.clone(), |host| host.id.to_string())
    };
    let mut concern = Concern::default();
    match trouble {
        Trouble::Invariant { nodes, oracle, .. } => {
            concern.ids.extend(nodes.iter().map(id_of));
            // Oracles name whose belief it is first, and then whom it is about.
            let about = if nodes.len() > 1 { &nodes[1..] } else { &nodes[..] };
            concern.subjects.extend(about.iter().map(id_of));
            concern.counters = oracle.starts_with("counter") || oracle.starts_with("cell");
        }
        Trouble::Expectation { position, .. } => {
            if let Some(expect) = scenario.expects.get(*position) {
                of_fact(scenario, &expect.fact, picture, &mut concern);
            }
        }
        Trouble::StepNeverFired { .. } => {}
    }
    if concern.counters {
        concern.subjects.clear();
    }
    concern.subjects.dedup();
    concern.subjects.truncate(SUBJECTS_MAX);
    concern
}

fn of_fact(scenario: &Scenario, fact: &Fact, picture: Option<&Picture>, concern: &mut Concern) {
    let ids = |hosts: &[HostIx]| -> Vec<String> {
        let all: Vec<HostIx> = (0..scenario.hosts.len()).map(HostIx).collect();
        let hosts = if hosts.is_empty() { &all } else { hosts };
        hosts.iter().map(|host| scenario.hosts[host.0].id.to_string()).collect()
    };
    match fact {
        Fact::View { on, members } => {
            let wanted: BTreeSet<&str> = members.iter().map(|id| id.as_str()).collect();
            let names: Vec<&str> = on.iter().map(|&host| words::host_name(scenario, host)).collect();
            let asked = |node: &str| names.is_empty() || names.contains(&node);
            for belief in picture.iter().flat_map(|picture| &picture.nodes) {
                if !asked(&belief.node) || belief.incarnation.is_none() {
                    continue;
                }
                let view: BTreeSet<&str> = belief.view.iter().map(String::as_str).collect();
                let differs: Vec<&&str> = view.symmetric_difference(&wanted).collect();
                if !differs.is_empty() {
                    concern.ids.insert(belief.id.clone());
                }
                for id in differs {
                    if !concern.subjects.iter().any(|subject| subject == *id) {
                        concern.subjects.push((*id).to_owned());
                    }
                    concern.ids.insert((*id).to_owned());
                }
            }
        }
        Fact::Counter { on, .. } => {
            concern.ids.extend(ids(on));
            concern.counters = true;
        }
        Fact::Event(wanted) => {
            let on = wanted.on.map(|host| scenario.hosts[host.0].id.to_string());
            let subject = wanted.subject.as_ref().map(ToString::to_string);
            concern.ids.extend(on.iter().chain(&subject).cloned());
            concern.subjects.extend(subject.or(on));
        }
        Fact::Metric { on, .. }
        | Fact::Lease { on, .. }
        | Fact::Role { on, .. }
        | Fact::Decision { on, .. }
        | Fact::Audit { on, .. } => concern.ids.extend(ids(on)),
    }
}
