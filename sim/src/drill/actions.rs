//! What a verb does once it is known whom it acts on.
//!
//! [`settle`] puts hosts in place of every symbol; what comes out is a verb over named hosts, in the file's own
//! terms, and the timeline shows it like that. [`plan`] says which effect it has on the cluster.

use std::net::SocketAddr;

use firedrill_core::rng::Rng;

use super::faults::{Effect, LinkChange, Pair, isolation, pairs, partition};
use super::targets::{Hosts, Need};
use crate::engine::Fault;
use crate::scenario::model::{HostIx, Scenario, Target, Verb};

/// What to do for a settled verb.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    /// Power loss or, gracefully, a departure.
    Down { hosts: Vec<HostIx>, graceful: bool },
    /// Boots; what runs is killed first.
    Boot { hosts: Vec<HostIx>, how: Reboot },
    /// A fault that stands.
    Stand(Effect),
    /// Faults that strike once.
    Strike(Vec<Fault>),
    /// The end of all network faults.
    Heal,
    /// The end of holds.
    Release(Vec<Pair>),
    /// The end of pauses.
    Resume(Vec<HostIx>),
    /// The operator's word to nodes: seal no more, or go on.
    Operate { hosts: Vec<HostIx>, paused: bool },
}

/// How a host boots, where that is not as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Reboot {
    pub(super) wall_step_us: Option<i64>,
    pub(super) addr: Option<SocketAddr>,
    pub(super) lose_disk: bool,
}

/// Puts hosts in place of symbols, and leaves out hosts that the verb cannot act on.
pub(super) fn settle(verb: &Verb, hosts: &Hosts, rng: &mut Rng) -> Verb {
    let mut one = |target: &Target, need| Target::Hosts(hosts.resolve(target, need, &[], rng));
    match verb {
        Verb::Kill(target) => Verb::Kill(one(target, Need::Running)),
        Verb::Stop(target) => Verb::Stop(one(target, Need::Up)),
        Verb::Restart { target, wall_step_us, addr, lose_disk } => {
            let target = one(target, Need::Booted);
            Verb::Restart { target, wall_step_us: *wall_step_us, addr: *addr, lose_disk: *lose_disk }
        }
        Verb::Pause(target) => Verb::Pause(one(target, Need::Running)),
        Verb::Resume(target) => Verb::Resume(one(target, Need::Paused)),
        Verb::Isolate(target) => Verb::Isolate(one(target, Need::Nothing)),
        Verb::Heal => Verb::Heal,
        Verb::ClockStep { target, by_us } => {
            Verb::ClockStep { target: one(target, Need::Nothing), by_us: *by_us }
        }
        Verb::ClockRate { target, rate_ppm } => {
            Verb::ClockRate { target: one(target, Need::Nothing), rate_ppm: *rate_ppm }
        }
        Verb::ClockFreeze(target) => Verb::ClockFreeze(one(target, Need::Nothing)),
        Verb::Disk { target, disk } => Verb::Disk { target: one(target, Need::Nothing), disk: *disk },
        Verb::Flood { to, connections, garbage } => {
            Verb::Flood { to: one(to, Need::Running), connections: *connections, garbage: *garbage }
        }
        Verb::AddNode(target) => Verb::AddNode(one(target, Need::New)),
        Verb::RemoveNode(target) => Verb::RemoveNode(one(target, Need::Up)),
        Verb::PauseIssuance(target) => Verb::PauseIssuance(one(target, Need::Up)),
        Verb::ResumeIssuance(target) => Verb::ResumeIssuance(one(target, Need::Up)),
        Verb::Partition(groups) => Verb::Partition(settle_groups(groups, hosts, rng)),
        Verb::Cut { .. }
        | Verb::Hold { .. }
        | Verb::Release { .. }
        | Verb::Link { .. }
        | Verb::HalfOpen { .. }
        | Verb::ReplayFrames { .. }
        | Verb::CorruptFrames { .. }
        | Verb::ForgeFrames { .. } => settle_ways(verb.clone(), hosts, rng),
    }
}

/// Symbols of later groups draw nobody who is in a group already.
fn settle_groups(groups: &[Target], hosts: &Hosts, rng: &mut Rng) -> Vec<Target> {
    let mut taken: Vec<HostIx> = Vec::new();
    let mut settled = Vec::with_capacity(groups.len());
    for group in groups {
        let members = hosts.resolve(group, Need::Nothing, &taken, rng);
        taken.extend(&members);
        settled.push(Target::Hosts(members));
    }
    settled
}

/// The verbs that act from some hosts to others: a symbol on the far side draws nobody of the near side.
fn settle_ways(mut verb: Verb, hosts: &Hosts, rng: &mut Rng) -> Verb {
    match &mut verb {
        Verb::Cut { from, to }
        | Verb::Hold { from, to }
        | Verb::Release { from, to }
        | Verb::Link { from, to, .. }
        | Verb::HalfOpen { from, to }
        | Verb::ReplayFrames { from, to, .. }
        | Verb::CorruptFrames { from, to, .. }
        | Verb::ForgeFrames { sender: from, to, .. } => {
            let near = hosts.resolve(from, Need::Nothing, &[], rng);
            let far = hosts.resolve(to, Need::Nothing, &near, rng);
            *from = Target::Hosts(near);
            *to = Target::Hosts(far);
        }
        Verb::Kill(_)
        | Verb::Stop(_)
        | Verb::Restart { .. }
        | Verb::Pause(_)
        | Verb::Resume(_)
        | Verb::Partition(_)
        | Verb::Isolate(_)
        | Verb::Heal
        | Verb::ClockStep { .. }
        | Verb::ClockRate { .. }
        | Verb::ClockFreeze(_)
        | Verb::Disk { .. }
        | Verb::Flood { .. }
        | Verb::AddNode(_)
        | Verb::RemoveNode(_)
        | Verb::PauseIssuance(_)
        | Verb::ResumeIssuance(_) => {}
    }
    verb
}

/// What a settled verb does at this moment of the run. `lasts` tells whether it will be taken back.
pub(super) fn plan(verb: &Verb, scenario: &Scenario, now: std::time::Duration, lasts: bool) -> Action {
    let all = scenario.hosts.len();
    match verb {
        Verb::Kill(target) => Action::Down { hosts: named(target), graceful: false },
        Verb::Stop(target) | Verb::RemoveNode(target) => {
            Action::Down { hosts: named(target), graceful: true }
        }
        Verb::Restart { target, wall_step_us, addr, lose_disk } => {
            let how = Reboot { wall_step_us: *wall_step_us, addr: *addr, lose_disk: *lose_disk };
            Action::Boot { hosts: named(target), how }
        }
        Verb::AddNode(target) => Action::Boot { hosts: named(target), how: Reboot::default() },
        Verb::PauseIssuance(target) => Action::Operate { hosts: named(target), paused: true },
        Verb::ResumeIssuance(target) => Action::Operate { hosts: named(target), paused: false },
        Verb::Pause(target) => Action::Stand(Effect::Pause(named(target))),
        Verb::Resume(target) => Action::Resume(named(target)),
        Verb::Partition(groups) => {
            let groups: Vec<Vec<HostIx>> = groups.iter().map(named).collect();
            Action::Stand(Effect::Block(partition(&groups, all)))
        }
        Verb::Isolate(target) => Action::Stand(Effect::Block(isolation(&named(target), all))),
        Verb::Heal => Action::Heal,
        Verb::Cut { from, to } => Action::Stand(Effect::Block(ways(from, to))),
        Verb::Hold { from, to } => Action::Stand(Effect::Hold(ways(from, to))),
        Verb::Release { from, to } => Action::Release(ways(from, to)),
        Verb::Link { from, to, latency, loss_ppm, duplicate_ppm, reorder_ppm, bandwidth } => {
            let change = LinkChange {
                latency: *latency,
                loss_ppm: *loss_ppm,
                duplicate_ppm: *duplicate_ppm,
                reorder_ppm: *reorder_ppm,
                bandwidth: *bandwidth,
            };
            Action::Stand(Effect::Link(ways(from, to), change))
        }
        Verb::HalfOpen { from, to } => {
            let pairs = ways(from, to);
            Action::Strike(if pairs.is_empty() { Vec::new() } else { vec![Fault::HalfOpen(pairs)] })
        }
        Verb::ClockStep { target, by_us } if lasts => Action::Stand(Effect::Step(named(target), *by_us)),
        Verb::ClockStep { target, by_us } => {
            strike(&named(target), |host| Fault::ClockStep { host, by_us: *by_us })
        }
        Verb::ClockRate { target, rate_ppm } => Action::Stand(Effect::Rate(named(target), *rate_ppm)),
        Verb::ClockFreeze(target) => Action::Stand(Effect::Freeze(named(target))),
        Verb::Disk { target, disk } => Action::Stand(Effect::Disk(named(target), *disk)),
        Verb::ReplayFrames { from, to, captured_from, captured_until, count } => {
            let captured = (*captured_from, captured_until.unwrap_or(now));
            let replay = |(from, to)| Fault::Replay { from, to, captured, count: *count };
            Action::Strike(ways(from, to).into_iter().map(replay).collect())
        }
        Verb::CorruptFrames { from, to, rate_ppm } => {
            Action::Stand(Effect::Corrupt(ways(from, to), *rate_ppm))
        }
        Verb::ForgeFrames { sender, to, count } => {
            let forge = |(sender, to): Pair| {
                let sender = scenario.hosts.get(sender.0)?.id.clone();
                Some(Fault::Forge { sender, to, count: *count })
            };
            Action::Strike(ways(sender, to).into_iter().filter_map(forge).collect())
        }
        Verb::Flood { to, connections, garbage } => {
            strike(&named(to), |to| Fault::Flood { to, connections: *connections, garbage: *garbage })
        }
    }
}

fn strike(hosts: &[HostIx], make: impl Fn(HostIx) -> Fault) -> Action {
    Action::Strike(hosts.iter().map(|&host| make(host)).collect())
}

fn ways(from: &Target, to: &Target) -> Vec<Pair> {
    pairs(&named(from), &named(to))
}

/// The hosts of a settled target.
fn named(target: &Target) -> Vec<HostIx> {
    match target {
        Target::Hosts(hosts) => hosts.clone(),
        // A settled verb holds no symbols.
        Target::Any
        | Target::Minority
        | Target::Majority
        | Target::All
        | Target::Holder
        | Target::Successor => Vec::new(),
    }
}
