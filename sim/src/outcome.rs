//! What a run yields: verdicts, a timeline, numbers, a digest.
//!
//! Plain data, serialisable; the command turns it into text or JSON.

use std::collections::BTreeMap;
use std::fmt;

use firedrill_core::issuance::audit::Audit;
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
    /// What the issuance came to; `None` where nobody issues, and where no timeline was kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuance: Option<IssuanceReport>,
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

/// What a run tells of its issuance. Windows are counted from the genesis.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct IssuanceReport {
    /// Who holds the lease in the end; nobody before the first row.
    pub holder: Option<String>,
    /// At which epoch.
    pub epoch: Option<u64>,
    /// Every promotion, in the order it happened.
    pub takeovers: Vec<Takeover>,
    /// The rows of each node that runs in the end.
    pub nodes: BTreeMap<String, NodeRows>,
    /// How far the rows of these nodes agree; `None` when one of them has none.
    pub prefix: Option<Prefix>,
    /// The audit of the node with the most rows.
    pub audit: Option<Audit>,
    /// There: the windows that the rows of each issuer cover, by node id.
    pub elapsed_by: BTreeMap<String, u64>,
}

/// One promotion and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Takeover {
    /// Who held the lease before; nobody when there was none.
    pub from: Option<String>,
    /// Who was promoted.
    pub by: String,
    /// At which epoch it seals.
    pub epoch: u64,
    /// At which epoch the lease was held before.
    pub epoch_before: Option<u64>,
    /// When the former holder went down, in microseconds of the run; `None` when it was up.
    pub down_at_us: Option<u64>,
    /// When the successor was promoted, in microseconds of the run.
    pub promoted_at_us: u64,
    /// How long it had seen no new row then, in whole ticks.
    pub silence_z: u64,
    /// Its first row; `None` when it never sealed one.
    pub first_row: Option<FirstRow>,
    /// What the other nodes' last elections decided before they saw the new lease.
    pub decisions: BTreeMap<String, String>,
    /// When the former holder ran again, in microseconds of the run.
    pub returned_at_us: Option<u64>,
    /// When it stood down, in microseconds of the run.
    pub demoted_at_us: Option<u64>,
    /// Rows that it sealed at its old epoch after it was back.
    pub seals_after_return: u64,
}

/// The first row of a takeover.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FirstRow {
    /// When it was durable, in microseconds of the run.
    pub at_us: u64,
    /// Its window.
    pub window: u64,
    /// Where it resumed from.
    pub from_window: u64,
    /// How many windows it covers.
    pub elapsed: u64,
    /// At which epoch it is stamped.
    pub epoch: Option<u64>,
}

/// Counts of the rows of one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct NodeRows {
    /// Those that count.
    pub rows: u64,
    /// Different keys among them.
    pub distinct_keys: u64,
    /// Those whose key another one has.
    pub duplicates: u64,
    /// Those that lost their key to another.
    pub superseded: u64,
    /// Those that are not above the one before in their stream.
    pub rows_below_tip: u64,
}

/// How far the rows of several nodes agree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Prefix {
    /// The highest window that all of them have rows up to.
    pub to_window: u64,
    /// The first 16 bytes of SHA-256 over the first node's rows up to there, in hexadecimal.
    pub digest: String,
    /// Whether it is the same on all of them.
    pub equal: bool,
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
