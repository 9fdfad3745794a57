//! What one drill yielded, ready to be told: the input of every renderer.
//!
//! Absent: text. [`super::text`] and [`super::json`] turn a [`Report`] into theirs, and agree because they
//! read the same value.

use std::time::Duration;

use firedrill_sim::digest::first_difference;
use firedrill_sim::oracles::sabotage::Sabotage;
use firedrill_sim::outcome::{Outcome, Verdict};
use firedrill_sim::scenario::Scenario;
use firedrill_sim::scenario::model::{Host, LinkSpec, SourceFile};

use super::exit::Exit;

/// One drill that ran.
#[derive(Debug)]
pub(crate) struct Report {
    /// What ran, resolved.
    pub(crate) setting: Setting,
    /// The guard of the protocol that was off, if one was.
    pub(crate) sabotage: Option<&'static Sabotage>,
    /// What came of it.
    pub(crate) outcome: Outcome,
    /// Real time that the run took.
    pub(crate) real: Duration,
    /// The comparison with a second run, where one was asked for.
    pub(crate) twice: Option<Twice>,
    /// The command that repeats the run.
    pub(crate) reproduce: String,
}

/// What a second run showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Twice {
    /// Every event was the same.
    Same,
    /// The runs parted.
    Differs(Difference),
}

/// Where two runs of one seed parted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    /// The first event that differs, counted from 0; `None` when only the results do.
    pub(crate) event: Option<usize>,
    /// The node it happened on, in either run; `None` where a run was over before it.
    pub(crate) nodes: (Option<String>, Option<String>),
    /// Events of either run.
    pub(crate) events: (usize, usize),
    /// Digest of either run.
    pub(crate) digests: (String, String),
    /// The first line of the timeline that differs, in both runs.
    pub(crate) lines: Option<(String, String)>,
}

impl Report {
    /// How the command should end if this were all.
    pub(crate) fn exit(&self) -> Exit {
        match &self.twice {
            Some(Twice::Differs(_)) => Exit::NotDeterministic,
            Some(Twice::Same) | None => self.outcome.verdict.into(),
        }
    }

    /// The verdict in a word or two.
    pub(crate) fn verdict(&self) -> &'static str {
        match &self.twice {
            Some(Twice::Differs(_)) => "not deterministic",
            Some(Twice::Same) | None => match self.outcome.verdict {
                Verdict::Pass => "pass",
                Verdict::Liveness => "liveness",
                Verdict::Expectation => "expectation",
                Verdict::Safety => "safety",
            },
        }
    }
}

impl Twice {
    /// Compares two runs of one seed, event by event. `hosts` names the hosts.
    pub(crate) fn compare(first: &Outcome, second: &Outcome, hosts: &[Host]) -> Self {
        let event = first_difference(&first.trail, &second.trail);
        if event.is_none() && first.digest == second.digest && first.verdict == second.verdict {
            return Self::Same;
        }
        let line = |outcome: &Outcome, index: usize| {
            outcome.timeline.get(index).map_or_else(
                || String::from("(the timeline is over)"),
                |entry| {
                    let node = entry.node.as_deref().unwrap_or("drill");
                    format!("{} µs, {node}: {}", entry.at_us, entry.text)
                },
            )
        };
        let longer = first.timeline.len().max(second.timeline.len());
        let lines = (0..longer)
            .find(|&index| first.timeline.get(index) != second.timeline.get(index))
            .map(|index| (line(first, index), line(second, index)));
        let node = |outcome: &Outcome| {
            let mark = outcome.trail.get(event?)?;
            hosts.get(mark.host().0).map(|host| host.name.clone())
        };
        Self::Differs(Difference {
            event,
            nodes: (node(first), node(second)),
            events: (first.trail.len(), second.trail.len()),
            digests: (first.digest.clone(), second.digest.clone()),
            lines,
        })
    }
}

/// What a scenario resolved to.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    /// The story.
    pub(crate) about: String,
    /// The hosts by name.
    pub(crate) hosts: Vec<String>,
    /// When faults and workload are over.
    pub(crate) time_limit: Duration,
    /// Push intervals in use, in milliseconds, ascending.
    pub(crate) push_interval_ms: Vec<u64>,
    /// Suspicion timeouts in use, in milliseconds, ascending.
    pub(crate) suspicion_timeout_ms: Vec<u64>,
    /// The network without faults.
    pub(crate) net: LinkSpec,
    /// Clients: counter, increment, interval.
    pub(crate) workloads: Vec<(String, u64, Duration)>,
    /// Oracles turned off, with the reason.
    pub(crate) oracles_off: Vec<(String, String)>,
    /// The files, for carets.
    pub(crate) files: Vec<SourceFile>,
}

impl Setting {
    /// What a checked scenario resolved to.
    pub(crate) fn of(scenario: &Scenario) -> Self {
        let distinct = |pick: fn(&firedrill_core::config::ClusterConfig) -> u64| {
            let mut values: Vec<_> = scenario.hosts.iter().map(|host| pick(&host.config)).collect();
            values.sort_unstable();
            values.dedup();
            values
        };
        Self {
            about: scenario.about.clone(),
            hosts: scenario.hosts.iter().map(|host| host.name.clone()).collect(),
            time_limit: scenario.time_limit,
            push_interval_ms: distinct(|config| config.push_interval_ms),
            suspicion_timeout_ms: distinct(|config| config.suspicion_timeout_ms),
            net: scenario.net,
            workloads: scenario
                .workloads
                .iter()
                .map(|load| (load.counter.as_str().to_owned(), load.by, load.every))
                .collect(),
            oracles_off: scenario
                .oracles_off
                .iter()
                .map(|(oracle, reason)| (oracle.clone(), reason.clone()))
                .collect(),
            files: scenario.files.clone(),
        }
    }
}

#[cfg(test)]
pub(crate) mod samples {
    //! Hand-made reports for the renderers' tests.

    use std::sync::Arc;

    use firedrill_sim::outcome::{Entry, EntryKind, ExpectationResult, Numbers, Violation};
    use firedrill_sim::scenario::model::Span;

    use super::*;

    const TEXT: &str =
        "name = \"partition-heal\"\n\n[[expect]]\nby = \"30s\"\nview = [\"a\", \"b\", \"c\"]\n";

    pub(crate) fn entry(at_ms: u64, node: Option<&str>, kind: EntryKind, text: &str) -> Entry {
        Entry { at_us: at_ms * 1_000, node: node.map(str::to_owned), kind, text: text.to_owned() }
    }

    /// Three nodes, one partition, everything held.
    pub(crate) fn passed() -> Report {
        let expectation = |text: &str, at_ms: u64| ExpectationResult {
            text: text.to_owned(),
            held: true,
            at_us: at_ms * 1_000,
            seen: None,
            span: Span { file: 0, start: TEXT.find("[[expect]]").unwrap_or(0), end: TEXT.len() },
        };
        Report {
            setting: Setting {
                about: "One of three is cut off for ten seconds; both sides go on, and the heal \
                        brings them together."
                    .to_owned(),
                hosts: ["a", "b", "c"].map(str::to_owned).to_vec(),
                time_limit: Duration::from_secs(30),
                push_interval_ms: vec![500],
                suspicion_timeout_ms: vec![2_500],
                net: LinkSpec {
                    latency_min: Duration::from_millis(1),
                    latency_max: Duration::from_millis(20),
                    loss_ppm: 1_000,
                    duplicate_ppm: 0,
                    reorder_ppm: 0,
                    bandwidth: None,
                },
                workloads: vec![("sightings".to_owned(), 1, Duration::from_secs(1))],
                oracles_off: Vec::new(),
                files: vec![SourceFile {
                    path: "scenarios/gossip/partition-heal.toml".to_owned(),
                    text: Arc::from(TEXT),
                }],
            },
            sabotage: None,
            outcome: Outcome {
                issuance: None,
                scenario: "partition-heal".to_owned(),
                path: "scenarios/gossip/partition-heal.toml".to_owned(),
                seed: 7,
                engine: "event",
                wire: Some("full"),
                tick_ms: None,
                verdict: Verdict::Pass,
                expectations: vec![
                    expectation("by 15 s: the view of a is exactly a, b", 12_604),
                    expectation("by 30 s: every view is exactly a, b, c", 21_310),
                ],
                violation: None,
                unfired_steps: Vec::new(),
                unfired_spans: Vec::new(),
                ineffective_faults: Vec::new(),
                reach: Default::default(),
                timeline: vec![
                    entry(0, None, EntryKind::Phase, "the drill begins"),
                    entry(0, Some("a"), EntryKind::Event, "started at incarnation 1700000000000"),
                    entry(0, Some("b"), EntryKind::Event, "started at incarnation 1700000000001"),
                    entry(460, Some("a"), EntryKind::Event, "b is up"),
                    entry(10_000, None, EntryKind::Fault, "partition [a, b] [c] for 10 s"),
                    entry(12_511, Some("a"), EntryKind::Event, "c is down"),
                    entry(
                        12_604,
                        Some("a"),
                        EntryKind::Expectation,
                        "by 15 s: the view of a is exactly a, b",
                    ),
                    entry(20_000, None, EntryKind::Fault, "heal"),
                    entry(21_310, None, EntryKind::Expectation, "by 30 s: every view is exactly a, b, c"),
                    entry(30_000, None, EntryKind::Phase, "faults and workload are over; liveness begins"),
                ],
                numbers: Numbers {
                    convergence_us: Some(1_310_000),
                    convergence_bound_us: 4_840_000,
                    simulated_us: 34_840_000,
                    events: 1_204,
                    frames_delivered: 418,
                    frames_lost: 61,
                    bytes_sent: 301_224,
                    increments: 30,
                },
                digest: "0f3c6a1be7d24a55a9c01e5d7b8842c1".to_owned(),
                schedule: Vec::new(),
                trail: Vec::new(),
                happening: None,
            },
            real: Duration::from_micros(4_071),
            twice: None,
            reproduce:
                "firedrill run scenarios/gossip/partition-heal.toml --seed 7 --engine event --wire full"
                    .to_owned(),
        }
    }

    /// The same drill, with a failed expectation, an idle fault and a step that never fired.
    pub(crate) fn missed() -> Report {
        let mut report = passed();
        let outcome = &mut report.outcome;
        outcome.verdict = Verdict::Expectation;
        outcome.expectations[1].held = false;
        outcome.expectations[1].at_us = 30_000_000;
        outcome.expectations[1].seen = Some("the view of c is c".to_owned());
        outcome.unfired_steps = vec!["restart c, 8 s after b left (step 3)".to_owned()];
        outcome.ineffective_faults = vec!["cut b → c at 14 s".to_owned()];
        outcome.numbers.convergence_us = None;
        report
    }

    /// The same drill, ended by an oracle.
    pub(crate) fn violated() -> Report {
        let mut report = passed();
        let outcome = &mut report.outcome;
        outcome.verdict = Verdict::Safety;
        outcome.expectations.truncate(1);
        outcome.timeline.truncate(6);
        outcome.timeline.push(entry(12_700, Some("b"), EntryKind::Violation, "counter-never-falls"));
        outcome.violation = Some(Violation {
            oracle: "counter-never-falls",
            invariant: "A counter never falls within one boot of a node.",
            source: "docs/protocol.md, Counters",
            at_us: 12_700_311,
            nodes: vec!["b".to_owned()],
            fact: "b showed sightings = 12 at 12.511 s".to_owned(),
            contradiction: "b shows sightings = 11 now, in the same boot".to_owned(),
            liveness: false,
        });
        report
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use firedrill_sim::digest::Mark;
    use firedrill_sim::engine::EngineKind;
    use firedrill_sim::scenario::LoadOptions;

    use super::*;

    fn marks(bits: &[u64]) -> Vec<Mark> {
        bits.iter().copied().map(Mark::from_bits).collect()
    }

    fn hosts() -> Vec<Host> {
        let text = "name = \"x\"\nabout = \"X.\"\ntime_limit = \"1s\"\n[nodes]\ncount = 3\n";
        let none = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
        let options = LoadOptions::for_engine(EngineKind::Event);
        Scenario::parse(text, Path::new("x.toml"), &none, options)
            .map_or(Vec::new(), |scenario| scenario.hosts)
    }

    #[test]
    fn two_runs_part_at_the_first_event_that_differs() {
        let (mut one, mut two) = (samples::passed().outcome, samples::passed().outcome);
        // The last six bits of a mark are the host: b in one run, c in the other.
        one.trail = marks(&[64, 128, 193, 256]);
        two.trail = marks(&[64, 128, 962, 962]);
        two.digest = "ff".to_owned();
        two.timeline[3].text = "c is up".to_owned();
        let Twice::Differs(difference) = Twice::compare(&one, &two, &hosts()) else {
            panic!("the runs differ");
        };
        assert_eq!(difference.event, Some(2));
        assert_eq!(difference.nodes, (Some("b".to_owned()), Some("c".to_owned())));
        let report = Report { twice: Some(Twice::Differs(difference.clone())), ..samples::passed() };
        assert_eq!(report.exit().code(), 5, "even where both runs pass");
        assert_eq!(
            difference.lines,
            Some(("460000 µs, a: b is up".to_owned(), "460000 µs, a: c is up".to_owned()))
        );
    }

    #[test]
    fn a_run_that_ends_early_parts_at_its_end() {
        let (mut one, mut two) = (samples::passed().outcome, samples::passed().outcome);
        one.trail = marks(&[64, 128, 192]);
        two.trail = marks(&[64, 128]);
        let Twice::Differs(difference) = Twice::compare(&one, &two, &hosts()) else {
            panic!("the runs differ");
        };
        assert_eq!(difference.event, Some(2));
        assert_eq!(difference.nodes, (Some("a".to_owned()), None));
        two.trail = one.trail.clone();
        assert_eq!(Twice::compare(&one, &two, &hosts()), Twice::Same);
    }
}
