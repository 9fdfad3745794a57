//! The story of a drill: what was up, what broke, who believed what, which rule that contradicts, and how it came
//! to this.
//!
//! [`explain`] runs a scenario once more before a recorder, which notes what nodes saw and takes a picture of
//! every node at the moment that something failed. From that it makes a [`Story`], which is plain data; whoever
//! shows it decides about columns and colours.
//!
//! Invariants: telling changes nothing (the run has the digest that it has untold); a story names the failure that
//! [`Outcome::failure`] names; everything in a story happened in the run or is written in docs/protocol.md.
//!
//! Absent: guesses. Where the notes do not show why something happened, the story does not say why.

mod acts;
mod beliefs;
mod chain;
mod names;
mod recorder;
mod topics;
mod trouble;
mod why;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

pub use self::acts::Act;
pub use self::beliefs::{About, Belief, Held, NodeState};
use self::names::Names;
use self::recorder::Recorder;
pub use self::topics::{Says, Topic};
pub use self::trouble::{Broken, Deadline, Trouble};
pub use self::why::why;
use crate::drill::{self, RunError, RunOptions, words};
use crate::oracles::sabotage;
use crate::outcome::{Entry, Outcome, Verdict};
use crate::scenario::Scenario;
use crate::scenario::model::Host;

/// A drill, told.
#[derive(Debug, Clone, Serialize)]
pub struct Story {
    /// What was up.
    pub cast: Cast,
    /// How it ended.
    pub verdict: Verdict,
    /// What was done to the cluster, in order, and what nodes saw of it.
    pub acts: Vec<Act>,
    /// What failed; `None` when nothing did.
    pub trouble: Option<Trouble>,
    /// What failed beside it, in a sentence each.
    pub also: Vec<String>,
    /// The rule of the protocol that was broken, if an oracle says so; a failed expectation may break none.
    pub rule: Option<Broken>,
    /// What the nodes believed when it failed; `None` when there was no such moment.
    pub beliefs: Option<Beliefs>,
    /// How it came to this: the last that concerns the nodes of the failure, in order, the failure at the end.
    pub chain: Vec<Entry>,
}

/// What was up.
#[derive(Debug, Clone, Serialize)]
pub struct Cast {
    /// The scenario's name.
    pub scenario: String,
    /// The path it was read from.
    pub path: String,
    /// Its own words.
    pub about: String,
    /// The seed that was used.
    pub seed: u64,
    /// `event` or `turmoil`.
    pub engine: &'static str,
    /// `fast` or `full` on the event engine.
    pub wire: Option<&'static str>,
    /// Guards of the protocol that were turned off.
    pub guards_off: Vec<&'static str>,
    /// The hosts, in the order of the file.
    pub nodes: Vec<String>,
    /// Push intervals in use, in milliseconds, ascending.
    pub push_interval_ms: Vec<u64>,
    /// Suspicion timeouts in use, in milliseconds, ascending.
    pub suspicion_timeout_ms: Vec<u64>,
    /// Hosts that are set up otherwise than the first, in words.
    pub odd: Vec<String>,
}

/// What the nodes believed at one moment.
#[derive(Debug, Clone, Serialize)]
pub struct Beliefs {
    /// When, in microseconds of the run.
    pub at_us: u64,
    /// Each node, in the order of the file.
    pub nodes: Vec<Belief>,
    /// What clients added to each counter.
    pub added: BTreeMap<String, u64>,
    /// The same by subject, those who say the same together.
    pub topics: Vec<Topic>,
}

/// Runs a scenario and tells its story.
///
/// # Errors
/// As [`drill::run`]: there is nothing to tell of a run that did not end.
pub fn explain(scenario: &Scenario, options: &RunOptions) -> Result<(Story, Outcome), RunError> {
    let mut recorder = Recorder::new(scenario);
    let outcome = drill::run_before(scenario, options, Some(&mut recorder))?;
    Ok((tell(scenario, options, &recorder, &outcome), outcome))
}

fn tell(scenario: &Scenario, options: &RunOptions, recorder: &Recorder<'_>, outcome: &Outcome) -> Story {
    let names = Names::new(scenario, recorder);
    let (trouble, also) = trouble::find(scenario, recorder, outcome);
    let picture = trouble.as_ref().and_then(|trouble| recorder.picture(trouble.moment()));
    let concern = trouble.as_ref().map(|trouble| trouble::concern(scenario, trouble, picture));
    let beliefs = picture.zip(concern.as_ref()).map(|(picture, concern)| Beliefs {
        at_us: picture.at.as_micros(),
        nodes: picture.nodes.clone(),
        added: picture.added.clone(),
        topics: topics::of(picture, concern, &names),
    });
    let chain = match (&trouble, &concern) {
        (Some(trouble), Some(concern)) => chain::of(recorder, picture, trouble, concern, &names),
        _ => Vec::new(),
    };
    let until = trouble.as_ref().and_then(Trouble::at_us);
    let acts = acts::of(recorder, &outcome.ineffective_faults, until);
    Story {
        cast: cast(scenario, options, outcome),
        verdict: outcome.verdict,
        acts,
        trouble,
        also,
        rule: trouble::rule(recorder, outcome),
        beliefs,
        chain,
    }
}

fn cast(scenario: &Scenario, options: &RunOptions, outcome: &Outcome) -> Cast {
    let distinct = |pick: fn(&firedrill_core::config::ClusterConfig) -> u64| {
        let mut values: Vec<_> = scenario.hosts.iter().map(|host| pick(&host.config)).collect();
        values.sort_unstable();
        values.dedup();
        values
    };
    Cast {
        scenario: scenario.name.clone(),
        path: outcome.path.clone(),
        about: scenario.about.clone(),
        seed: outcome.seed,
        engine: outcome.engine,
        wire: outcome.wire,
        guards_off: sabotage::off(options.guards),
        nodes: scenario.hosts.iter().map(|host| host.name.clone()).collect(),
        push_interval_ms: distinct(|config| config.push_interval_ms),
        suspicion_timeout_ms: distinct(|config| config.suspicion_timeout_ms),
        odd: odd(scenario),
    }
}

/// Who is set up otherwise than the first host, and in what.
fn odd(scenario: &Scenario) -> Vec<String> {
    let Some(first) = scenario.hosts.first() else { return Vec::new() };
    let differs = |host: &Host| {
        let (config, usual) = (&host.config, &first.config);
        let timing = |ms: u64| words::time(Duration::from_millis(ms));
        let mut parts = Vec::new();
        if host.id.as_str() != host.name {
            parts.push(format!("node id {}", host.id));
        }
        if host.wall_offset_us != 0 {
            parts.push(format!("wall clock {}", words::offset(host.wall_offset_us)));
        }
        if config.push_interval_ms != usual.push_interval_ms {
            parts.push(format!("push {}", timing(config.push_interval_ms)));
        }
        if config.suspicion_timeout_ms != usual.suspicion_timeout_ms {
            parts.push(format!("suspicion {}", timing(config.suspicion_timeout_ms)));
        }
        if config.cluster_name != usual.cluster_name {
            parts.push(format!("cluster {}", config.cluster_name));
        }
        if !host.from_start {
            parts.push("not there from the start".to_owned());
        }
        (!parts.is_empty()).then(|| format!("{}: {}", host.name, parts.join(", ")))
    };
    scenario.hosts.iter().filter_map(differs).collect()
}
