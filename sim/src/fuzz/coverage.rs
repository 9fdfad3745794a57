//! Coverage of a campaign: what its drills reached, and what they never did.
//!
//! A name is counted once a drill, however often it happened in it. Counting is commutative, so shards and threads
//! add up in any order. The decisions that it names are those of docs/protocol.md.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Mix, Venue};
use crate::drill::reach::{EVENTS, Reach, TRACES};
use crate::scenario::catalog::VERBS;

/// Drills that reached something, by its name. What no drill reached is there with 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// Events that nodes reported.
    pub events: BTreeMap<String, u64>,
    /// Verbs that fired.
    pub verbs: BTreeMap<String, u64>,
    /// Verbs that changed something.
    pub effective: BTreeMap<String, u64>,
    /// What no event tells and the state of nodes shows.
    #[serde(default)]
    pub traces: BTreeMap<String, u64>,
    /// `kill, partition`: the second close upon the first.
    pub pairs: BTreeMap<String, u64>,
}

impl Coverage {
    /// Nothing reached yet.
    pub fn new() -> Self {
        let zero = |names: &mut dyn Iterator<Item = &'static str>| {
            names.map(|name| (name.to_owned(), 0)).collect::<BTreeMap<_, _>>()
        };
        let verbs = zero(&mut VERBS.iter().map(|verb| verb.name));
        Self {
            events: zero(&mut EVENTS.iter().copied()),
            effective: verbs.clone(),
            verbs,
            traces: zero(&mut TRACES.iter().copied()),
            pairs: BTreeMap::new(),
        }
    }

    /// Adds what one drill reached.
    pub fn add(&mut self, reach: &Reach) {
        let count = |into: &mut BTreeMap<String, u64>, name: &str| match into.get_mut(name) {
            Some(drills) => *drills += 1,
            None => {
                into.insert(name.to_owned(), 1);
            }
        };
        reach.events.iter().for_each(|name| count(&mut self.events, name));
        reach.fired.iter().for_each(|name| count(&mut self.verbs, name));
        reach.effective.iter().for_each(|name| count(&mut self.effective, name));
        reach.traces.iter().for_each(|name| count(&mut self.traces, name));
        for (first, second) in &reach.pairs {
            count(&mut self.pairs, &format!("{first}, {second}"));
        }
    }

    /// Adds what other drills reached.
    pub fn merge(&mut self, other: &Self) {
        let add = |into: &mut BTreeMap<String, u64>, from: &BTreeMap<String, u64>| {
            for (name, drills) in from {
                *into.entry(name.clone()).or_default() += drills;
            }
        };
        add(&mut self.events, &other.events);
        add(&mut self.verbs, &other.verbs);
        add(&mut self.effective, &other.effective);
        add(&mut self.traces, &other.traces);
        add(&mut self.pairs, &other.pairs);
    }

    /// In how many drills this happened.
    fn drills(&self, what: What) -> u64 {
        let count = |map: &BTreeMap<String, u64>, name: &str| map.get(name).copied().unwrap_or(0);
        match what {
            What::Event(name) => count(&self.events, name),
            What::Trace(name) => count(&self.traces, name),
            What::Effect(verb) => count(&self.effective, verb),
            What::Pair(first, second) => count(&self.pairs, &format!("{first}, {second}")),
        }
    }

    /// The goals that no drill reached, of those that the campaign's venues can reach.
    pub fn missed<'g>(&self, goals: &'g [Goal], mix: Mix) -> Vec<&'g Goal> {
        goals
            .iter()
            .filter(|goal| goal.venues.iter().any(|&venue| mix.reaches(venue)))
            .filter(|goal| self.drills(goal.what) == 0)
            .collect()
    }
}

impl Default for Coverage {
    fn default() -> Self {
        Self::new()
    }
}

/// Something that has to happen in some drill of a campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Goal {
    /// In words.
    pub name: &'static str,
    /// What.
    pub what: What,
    /// Where it can happen at all.
    pub venues: &'static [Venue],
}

/// What can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// An event of [`EVENTS`].
    Event(&'static str),
    /// A trace of [`TRACES`].
    Trace(&'static str),
    /// A verb that changed something.
    Effect(&'static str),
    /// The second verb close upon the first.
    Pair(&'static str, &'static str),
}

/// A campaign of fewer seeds than this cannot be expected to reach every goal, and is not asked to.
pub const GOALS_FROM_SEEDS: u64 = 5_000;

const ANYWHERE: &[Venue] = &[Venue::Fast, Venue::Full, Venue::Turmoil];
const WITH_BYTES: &[Venue] = &[Venue::Full];

const fn goal(name: &'static str, what: What) -> Goal {
    Goal { name, what, venues: ANYWHERE }
}

const fn with_bytes(name: &'static str, what: What) -> Goal {
    Goal { name, what, venues: WITH_BYTES }
}

/// What a campaign of issuance drills has to have reached.
pub const ISSUANCE_GOALS: &[Goal] = &[
    goal("a successor promotes itself", What::Event("promoted")),
    goal("an issuer stands down", What::Event("demoted")),
    goal("a promotion lapses unsealed", What::Event("promotion_lapsed")),
    goal("the lease moves", What::Event("lease_moved")),
    goal("a tip falls silent", What::Event("silent")),
    goal("a row loses its window to another", What::Event("sealed duplicate")),
    goal("a disk refuses a row", What::Event("seal_refused")),
    goal("a tip is far ahead of a clock", What::Event("tip_ahead_of_clock")),
    goal("a clock far ahead of the others does not seal", What::Event("clock_ahead")),
    goal("a majority supports an issuer", What::Event("fence_held")),
    goal("a majority no longer does", What::Event("fence_lost")),
    goal("an election finds failover off", What::Event("decided disabled")),
    goal("an election finds this node the issuer", What::Event("decided is_holder")),
    goal("an election comes too soon after a start", What::Event("decided boot_grace")),
    goal("an election finds an empty spine", What::Event("decided spine_empty_bootstrap_only")),
    goal("an election finds a field of one", What::Event("decided field_of_one")),
    goal("an election finds the tip advancing", What::Event("decided tip_advancing")),
    goal("an election finds the holder there", What::Event("decided holder_reachable")),
    goal("an election finds somebody who knows more", What::Event("decided spine_behind")),
    goal("an election finds nobody fit", What::Event("decided no_fit_candidate")),
    goal("an election finds another successor", What::Event("decided successor_is")),
    goal("an election lacks a majority", What::Event("decided no_majority")),
    goal("an election promotes", What::Event("decided promote")),
    goal("a disk does something to a write", What::Effect("disk")),
    goal("a partition changes something", What::Effect("partition")),
    goal("a pause changes something", What::Effect("pause")),
    goal("a clock step changes something", What::Effect("clock_step")),
    goal("a kill close upon a disk fault", What::Pair("disk", "kill")),
    goal("a kill close upon a cut", What::Pair("cut", "kill")),
    goal("a partition close upon a pause", What::Pair("pause", "partition")),
];

/// What a campaign of gossip drills has to have reached.
pub const GOSSIP_GOALS: &[Goal] = &[
    goal("a member becomes suspect", What::Event("suspect")),
    goal("a suspect is heard again", What::Event("recovered")),
    goal("a silent member is dropped", What::Event("down")),
    goal("a member leaves by its own word", What::Event("left")),
    goal("a silent member is buried", What::Event("converted")),
    goal("a tombstone is reaped", What::Event("reaped")),
    goal("a refused return is answered (decision 11)", What::Event("return_answered")),
    goal("a node refutes a record about itself", What::Event("refuted")),
    goal("nodes agree while each hears of itself (decision 3)", What::Trace("settled")),
    goal("a refutation keeps the counter cell (decision 4)", What::Trace("cell_kept")),
    goal("a refutation begins a new counter cell (decision 4)", What::Trace("cell_renewed")),
    goal("a watermark is forgotten with its member (decision 7)", What::Trace("watermark_freed")),
    goal("two nodes alone agree (decision 13)", What::Trace("settled_two")),
    goal("more than five nodes agree (decision 13)", What::Trace("settled_crowd")),
    goal("a full table refuses what comes (decision 15)", What::Trace("admission_refused")),
    goal("two hosts share an id and say so (decision 12)", What::Event("duplicate_node_id")),
    goal("a document outgrows the frame", What::Event("unsendable")),
    goal("a round is late by a suspicion timeout (decision 10)", What::Event("round_late")),
    goal("a boot reuses an incarnation (decision 17)", What::Event("incarnation_reused")),
    goal("a frame is rejected as a replay (decision 8)", What::Event("rejected replay")),
    goal("a frame of one's own id is rejected", What::Event("rejected self_origin")),
    with_bytes("another cluster's frame is charged (decision 1)", What::Event("rejected cluster")),
    with_bytes("a forged frame is rejected", What::Event("rejected mac")),
    with_bytes("a broken envelope is rejected", What::Event("rejected malformed")),
    with_bytes("a length above the cap is rejected", What::Event("rejected oversize")),
    with_bytes("three refusals close a connection", What::Event("inbound_closed strikes")),
    with_bytes("an idle connection is closed (decision 6)", What::Event("inbound_closed idle")),
    with_bytes("a stranger makes room (decision 16)", What::Event("inbound_closed displaced")),
    with_bytes("a dial times out", What::Event("link_reset dial_timeout")),
    with_bytes(
        "a link to a silent peer is dialled anew (decision 14)",
        What::Event("link_reset peer_silent"),
    ),
    goal("a kill", What::Effect("kill")),
    goal("a graceful stop", What::Effect("stop")),
    goal("a restart", What::Effect("restart")),
    goal("a pause", What::Effect("pause")),
    goal("a partition", What::Effect("partition")),
    goal("an isolation", What::Effect("isolate")),
    goal("a heal before the end", What::Effect("heal")),
    goal("a cut one way", What::Effect("cut")),
    goal("frames held", What::Effect("hold")),
    goal("a link made worse", What::Effect("link")),
    goal("a clock step", What::Effect("clock_step")),
    goal("a clock that runs wrong", What::Effect("clock_rate")),
    goal("a clock that stands", What::Effect("clock_freeze")),
    goal("old frames replayed", What::Effect("replay_frames")),
    goal("a latecomer", What::Effect("add_node")),
    goal("a host removed for good", What::Effect("remove_node")),
    with_bytes("a connection half open", What::Effect("half_open")),
    with_bytes("bits flipped on the way", What::Effect("corrupt_frames")),
    with_bytes("frames forged", What::Effect("forge_frames")),
    with_bytes("a flood of strangers", What::Effect("flood")),
    goal("a kill during a partition", What::Pair("partition", "kill")),
    goal("a kill during a pause", What::Pair("pause", "kill")),
    goal("a clock step during a restart", What::Pair("kill", "clock_step")),
    goal("a restart during a partition", What::Pair("partition", "restart")),
    goal("a pause during a partition", What::Pair("partition", "pause")),
    goal("a second partition over the first", What::Pair("partition", "partition")),
    goal("a replay upon a restart", What::Pair("restart", "replay_frames")),
    goal("a stop over held links", What::Pair("hold", "stop")),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(events: &[&'static str], effective: &[&'static str]) -> Reach {
        Reach {
            events: events.iter().copied().collect(),
            effective: effective.iter().copied().collect(),
            ..Reach::default()
        }
    }

    #[test]
    fn a_goal_speaks_of_something_that_can_be_reached() {
        for goal in GOSSIP_GOALS {
            let verb = |name: &str| VERBS.iter().any(|verb| verb.name == name);
            let known = match goal.what {
                What::Event(name) => EVENTS.contains(&name),
                What::Trace(name) => TRACES.contains(&name),
                What::Effect(name) => verb(name),
                What::Pair(first, second) => verb(first) && verb(second),
            };
            assert!(known, "{}", goal.name);
        }
    }

    /// Decisions that no goal is about, and what shows them instead.
    const ELSEWHERE: &[(u32, &str)] = &[
        (2, "who holds the secret sends whole messages: the parser's tests show it"),
        (5, "who heard a leave and held no record is known to the oracle farewell_heard alone"),
        (9, "what does not count as heard leaves no trace but the silence: drill deaf-return"),
    ];

    #[test]
    fn every_decision_has_a_goal_or_is_shown_elsewhere() {
        let speaks_of = |decision: u32| {
            let name = format!("(decision {decision})");
            GOSSIP_GOALS.iter().any(|goal| goal.name.contains(&name))
        };
        for decision in 1..=17 {
            let elsewhere = ELSEWHERE.iter().any(|(other, _)| *other == decision);
            assert_ne!(speaks_of(decision), elsewhere, "decision {decision}");
        }
    }

    #[test]
    fn what_was_never_reached_is_missed_unless_no_venue_could() {
        let mut coverage = Coverage::new();
        let all = coverage.missed(GOSSIP_GOALS, Mix::ALL).len();
        assert_eq!(all, GOSSIP_GOALS.len());
        coverage.add(&reach(&["suspect"], &["kill"]));
        assert_eq!(coverage.missed(GOSSIP_GOALS, Mix::ALL).len(), all - 2);
        let fast = coverage.missed(GOSSIP_GOALS, Mix::only(Venue::Fast));
        assert!(fast.iter().all(|goal| goal.venues != WITH_BYTES) && !fast.is_empty());
    }

    #[test]
    fn shards_add_up_in_any_order() {
        let drills = [reach(&["up"], &[]), reach(&["up", "down"], &["kill"]), reach(&[], &["kill"])];
        let sum = |drills: &[Reach]| {
            let mut coverage = Coverage::new();
            drills.iter().for_each(|drill| coverage.add(drill));
            coverage
        };
        let whole = sum(&drills);
        let mut merged = sum(&drills[2..]);
        merged.merge(&sum(&drills[..2]));
        assert_eq!(merged, whole);
        assert_eq!((whole.events["up"], whole.effective["kill"], whole.events["reaped"]), (2, 2, 0));
    }
}
