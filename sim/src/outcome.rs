//! What a run yields: verdicts, a timeline, numbers, a digest.
//!
//! Plain data, serialisable; the command turns it into text or JSON.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::digest::Mark;
use crate::drill::reach::Reach;
use crate::scenario::model::Span;

/// The whole result of one run.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// The scenario's name.
    pub scenario: String,
    /// The path it was read from.
    pub path: String,
    /// The seed that was used.
    pub seed: u64,
    /// `event` or `turmoil`.
    pub engine: &'static str,
    /// `fast` or `full` on the event engine, else `None`.
    pub wire: Option<&'static str>,
    /// The tick length on turmoil, in milliseconds: part of what a replay needs.
    pub tick_ms: Option<u64>,
    /// Pass, or how it failed.
    pub verdict: Verdict,
    /// Each expectation and its verdict, in the order of the file.
    pub expectations: Vec<ExpectationResult>,
    /// What broke an oracle; the run ends at the first safety violation.
    pub violation: Option<Violation>,
    /// Steps that never fired, in the file's words.
    pub unfired_steps: Vec<String>,
    /// Where they stand, in the same order.
    #[serde(skip)]
    pub unfired_spans: Vec<Span>,
    /// Faults that changed nothing, in the file's words, with their moment.
    pub ineffective_faults: Vec<String>,
    /// What the run reached; for the coverage of many.
    #[serde(skip)]
    pub reach: Reach,
    /// What happened, in order.
    pub timeline: Vec<Entry>,
    /// The numbers.
    pub numbers: Numbers,
    /// 32 hex digits over every event of the run.
    pub digest: String,
    /// The faults as they were applied, hosts in place of symbols; kept only when asked for.
    #[serde(skip)]
    pub schedule: Vec<Applied>,
    /// A mark of each event, 8 bytes each; kept only when asked for.
    #[serde(skip)]
    pub trail: Vec<Mark>,
    /// What the event was that was asked about; `None` when none was, or the run was over before it.
    #[serde(skip)]
    pub happening: Option<Happening>,
}

impl Outcome {
    /// Why the run failed, or `None` when it passed.
    pub fn failure(&self) -> Option<Failure> {
        match (self.verdict, &self.violation) {
            (Verdict::Pass, _) => None,
            (Verdict::Safety | Verdict::Liveness, Some(violation)) => {
                Some(Failure::Invariant(violation.oracle.to_owned()))
            }
            (Verdict::Safety | Verdict::Liveness | Verdict::Expectation, _) => {
                let missed = self.expectations.iter().any(|expectation| !expectation.held);
                Some(if missed { Failure::Expectation } else { Failure::StepNeverFired })
            }
        }
    }
}

/// Why a run failed: what a smaller drill has to share with a larger one to show the same fault.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// This oracle fired.
    Invariant(String),
    /// An expectation of the file did not hold.
    Expectation,
    /// A step of the file never fired.
    StepNeverFired,
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invariant(oracle) => out.write_str(oracle),
            Self::Expectation => out.write_str("an expectation"),
            Self::StepNeverFired => out.write_str("a step that never fired"),
        }
    }
}

/// How a run ended. The exit code follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every expectation and every oracle held.
    Pass,
    /// The cluster did not converge within its bound.
    Liveness,
    /// An expectation failed, or a step never fired.
    Expectation,
    /// An oracle fired.
    Safety,
}

/// One expectation's verdict.
#[derive(Debug, Clone, Serialize)]
pub struct ExpectationResult {
    /// The expectation in words.
    pub text: String,
    /// Whether it held.
    pub held: bool,
    /// When it was decided, in microseconds of the run.
    pub at_us: u64,
    /// What was seen instead, when it did not hold.
    pub seen: Option<String>,
    /// Where it stands.
    #[serde(skip)]
    pub span: Span,
}

/// One fault, applied to the cluster at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// When, in microseconds of the run.
    pub at_us: u64,
    /// Who applied it: a step of the file, or the drill by itself.
    pub by: String,
    /// The fault with its hosts, in words.
    pub fault: String,
}

/// One handled event, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Happening {
    /// Which event of the run, counted from 0.
    pub event: usize,
    /// When, in microseconds of the run.
    pub at_us: u64,
    /// The host that handled it.
    pub node: String,
    /// What came in, and what came of it.
    pub text: String,
}

/// A broken invariant, told so that a person can check it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The oracle's name.
    pub oracle: &'static str,
    /// What it demands, in a sentence.
    pub invariant: &'static str,
    /// Where the rule comes from.
    pub source: &'static str,
    /// When, in microseconds of the run.
    pub at_us: u64,
    /// The nodes concerned.
    pub nodes: Vec<String>,
    /// One fact …
    pub fact: String,
    /// … and the fact that contradicts it.
    pub contradiction: String,
    /// Whether it is about liveness (the end of the run) rather than safety.
    pub liveness: bool,
}

/// One line of the timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// When, in microseconds of the run.
    pub at_us: u64,
    /// Which node, or `None` for the drill itself.
    pub node: Option<String>,
    /// What kind of line it is.
    pub kind: EntryKind,
    /// What happened, in words.
    pub text: String,
}

/// What a line of the timeline tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A step of the drill.
    Fault,
    /// Something a node saw.
    Event,
    /// An expectation was decided.
    Expectation,
    /// A phase of the run began or ended.
    Phase,
    /// An oracle fired.
    Violation,
}

/// Bytes of frame bodies that cost a run about as much as one input more: every byte is written, merged and judged.
const BYTES_AN_INPUT: u64 = 512;

/// What a run costs, whatever the machine: an input is one, and so are some hundred bytes sent. What limits runs counts
/// in this, since a cluster whose documents grow is dear long before its inputs are many.
pub const fn effort(inputs: u64, bytes_sent: u64) -> u64 {
    inputs.saturating_add(bytes_sent / BYTES_AN_INPUT)
}

/// The numbers of a run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Numbers {
    /// From the end of the last fault (or the start) until views and counters agreed for good, in microseconds.
    pub convergence_us: Option<u64>,
    /// The bound that convergence was held to, in microseconds.
    pub convergence_bound_us: u64,
    /// Virtual time simulated, in microseconds.
    pub simulated_us: u64,
    /// Events handled.
    pub events: u64,
    /// Frames delivered.
    pub frames_delivered: u64,
    /// Frames lost to faults and links.
    pub frames_lost: u64,
    /// Bytes of frame bodies sent.
    pub bytes_sent: u64,
    /// Increments the workload made.
    pub increments: u64,
}

impl Numbers {
    /// What the run cost; see [`effort`].
    pub const fn effort(&self) -> u64 {
        effort(self.events, self.bytes_sent)
    }
}
