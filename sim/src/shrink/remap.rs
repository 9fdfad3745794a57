//! Taking hosts, steps and workloads out of a scenario, with everything that speaks of them.
//!
//! A step that counted from a step that went takes over its start; a step or an expectation without a host left
//! to speak of goes too. Hosts keep the addresses and seeds that a file would give them at their new places.
//!
//! Absent: whether what is left is valid, which [`super::valid`] says.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use firedrill_core::id::NodeId;

use super::issuance;
use super::valid::earliest;
use crate::scenario::model::{
    EventPattern, Expect, Fact, HostIx, Moment, Scenario, Start, StepIx, Target, Verb, Window,
};
use crate::scenario::{Seeds, address};

/// Leaves only the steps at these places.
pub(super) fn keep_steps(scenario: &mut Scenario, kept: &[usize]) {
    let moments = earliest(scenario);
    let place = |step: StepIx| kept.iter().position(|&old| old == step.0).map(StepIx);
    let starts: Vec<Start> = kept.iter().map(|&old| start_without(scenario, old, &place)).collect();
    for expect in &mut scenario.expects {
        if let Some(Moment::Step(step)) = expect.from {
            let moment = moments.get(step.0).copied().unwrap_or_default();
            expect.from = Some(place(step).map_or(Moment::At(moment), Moment::Step));
        }
    }
    let old = std::mem::take(&mut scenario.steps);
    scenario.steps = kept.iter().filter_map(|&ix| old.get(ix).cloned()).collect();
    for (step, start) in scenario.steps.iter_mut().zip(starts) {
        step.start = start;
    }
    let speaks_of_gone = |expect: &Expect| match (expect.window, expect.from) {
        (Window::By(by), Some(Moment::At(from))) => from >= by,
        _ => false,
    };
    scenario.expects.retain(|expect| !speaks_of_gone(expect));
}

/// When a step fires once some of those it counts from have gone.
fn start_without(scenario: &Scenario, ix: usize, place: &impl Fn(StepIx) -> Option<StepIx>) -> Start {
    let mut start = scenario.steps[ix].start.clone();
    // Every turn leads to an earlier step, so there are no more turns than steps.
    while let Start::AfterStep(before, delay) = start {
        if let Some(place) = place(before) {
            return Start::AfterStep(place, delay);
        }
        start = match scenario.steps[before.0].start.clone() {
            Start::At(at) => Start::At(at.saturating_add(delay)),
            Start::AfterStep(step, earlier) => Start::AfterStep(step, earlier.saturating_add(delay)),
            Start::AfterEvent(event, earlier) => Start::AfterEvent(event, earlier.saturating_add(delay)),
        };
    }
    start
}

/// Leaves only these hosts, in this order.
pub(super) fn keep_hosts(scenario: &mut Scenario, kept: &[usize]) {
    let place = |host: HostIx| kept.iter().position(|&old| old == host.0).map(HostIx);
    let lives = |id: &NodeId| kept.iter().any(|&old| scenario.hosts[old].id == *id);
    let pattern = |pattern: &EventPattern| {
        let on = match pattern.on {
            Some(host) => Some(place(host)?),
            None => None,
        };
        pattern.subject.as_ref().is_none_or(&lives).then(|| EventPattern { on, ..pattern.clone() })
    };
    let expects = scenario.expects.iter().filter_map(|expect| {
        let fact = match &expect.fact {
            Fact::View { on, members } => {
                let members: Vec<NodeId> = members.iter().filter(|id| lives(id)).cloned().collect();
                (!members.is_empty()).then_some(Fact::View { on: places(on, &place)?, members })?
            }
            Fact::Counter { on, name, value } => {
                Fact::Counter { on: places(on, &place)?, name: name.clone(), value: *value }
            }
            Fact::Metric { on, name, label, value } => Fact::Metric {
                on: places(on, &place)?,
                name: name.clone(),
                label: label.clone(),
                value: *value,
            },
            Fact::Event(event) => Fact::Event(pattern(event)?),
            Fact::Lease { on, holder, epoch } => {
                holder.as_ref().is_none_or(&lives).then_some(())?;
                Fact::Lease { on: places(on, &place)?, holder: holder.clone(), epoch: *epoch }
            }
            Fact::Role { on, is } => Fact::Role { on: places(on, &place)?, is: *is },
            Fact::Decision { on, decision, successor } => {
                successor.as_ref().is_none_or(&lives).then_some(())?;
                let on = places(on, &place)?;
                Fact::Decision { on, decision: *decision, successor: successor.clone() }
            }
            Fact::Audit { on, figure, value } => {
                Fact::Audit { on: places(on, &place)?, figure: *figure, value: *value }
            }
        };
        Some(Expect { fact, ..expect.clone() })
    });
    let expects: Vec<Expect> = expects.collect();
    let workloads = std::mem::take(&mut scenario.workloads);
    let workloads: Vec<_> = workloads
        .into_iter()
        .filter_map(|mut workload| {
            workload.on = places(&workload.on, &place)?;
            Some(workload)
        })
        .collect();
    let mut steps = Vec::new();
    for ix in 0..scenario.steps.len() {
        let step = &scenario.steps[ix];
        let start = match &step.start {
            Start::AfterEvent(event, delay) => pattern(event).map(|event| Start::AfterEvent(event, *delay)),
            start @ (Start::At(_) | Start::AfterStep(..)) => Some(start.clone()),
        };
        if let (Some(start), Some(verb)) = (start, verb_without(&step.verb, &place, kept.len())) {
            steps.push((ix, start, verb));
        }
    }
    for (ix, start, verb) in &steps {
        scenario.steps[*ix].start = start.clone();
        scenario.steps[*ix].verb = verb.clone();
    }
    let ids: Vec<NodeId> = kept.iter().map(|&old| scenario.hosts[old].id.clone()).collect();
    issuance::keep(scenario, &|id| ids.contains(id));
    let kept_steps: Vec<usize> = steps.iter().map(|(ix, ..)| *ix).collect();
    scenario.expects = expects;
    scenario.workloads = workloads;
    keep_steps(scenario, &kept_steps);
    move_hosts(scenario, kept);
}

/// A list of hosts at their new places; `None` when it named some and all of them went.
fn places(hosts: &[HostIx], place: &impl Fn(HostIx) -> Option<HostIx>) -> Option<Vec<HostIx>> {
    let left: Vec<HostIx> = hosts.iter().filter_map(|&host| place(host)).collect();
    (hosts.is_empty() || !left.is_empty()).then_some(left)
}

/// The verb over the hosts that are left, or `None` when it has nothing left to act on.
fn verb_without(verb: &Verb, place: &impl Fn(HostIx) -> Option<HostIx>, hosts: usize) -> Option<Verb> {
    let mut verb = verb.clone();
    let mut gone = false;
    for target in targets_mut(&mut verb) {
        if let Target::Hosts(named) = target {
            named.retain_mut(|host| place(*host).map(|new| *host = new).is_some());
            gone |= named.is_empty();
        }
    }
    if let Verb::Partition(groups) = &mut verb {
        groups.retain(|group| *group != Target::Hosts(Vec::new()));
        let everybody = |group: &Target| matches!(group, Target::Hosts(named) if named.len() == hosts);
        return (!groups.is_empty() && !groups.iter().any(everybody)).then_some(verb);
    }
    (!gone).then_some(verb)
}

/// Every target of a verb, in the order a file has them.
pub(super) fn targets_mut(verb: &mut Verb) -> Vec<&mut Target> {
    match verb {
        Verb::Kill(target)
        | Verb::Stop(target)
        | Verb::Restart { target, .. }
        | Verb::Pause(target)
        | Verb::Resume(target)
        | Verb::Isolate(target)
        | Verb::ClockStep { target, .. }
        | Verb::ClockRate { target, .. }
        | Verb::ClockFreeze(target)
        | Verb::Disk { target, .. }
        | Verb::Flood { to: target, .. }
        | Verb::AddNode(target)
        | Verb::RemoveNode(target)
        | Verb::PauseIssuance(target)
        | Verb::ResumeIssuance(target) => vec![target],
        Verb::Partition(groups) => groups.iter_mut().collect(),
        Verb::Heal => Vec::new(),
        Verb::Cut { from, to }
        | Verb::Hold { from, to }
        | Verb::Release { from, to }
        | Verb::Link { from, to, .. }
        | Verb::HalfOpen { from, to }
        | Verb::ReplayFrames { from, to, .. }
        | Verb::CorruptFrames { from, to, .. }
        | Verb::ForgeFrames { sender: from, to, .. } => vec![from, to],
    }
}

/// Puts the hosts at their new places, at the addresses and with the seeds that a file would give them there.
fn move_hosts(scenario: &mut Scenario, kept: &[usize]) {
    let rule = seeds(scenario);
    let old = std::mem::take(&mut scenario.hosts);
    let mut moved = Moved::new();
    for (new, &ix) in kept.iter().enumerate() {
        let mut host = old[ix].clone();
        let before = host.config.advertised();
        if host.config.bind_addr == address(ix) {
            host.config.bind_addr = address(new);
        }
        moved.insert(before, host.config.advertised());
        scenario.hosts.push(host);
    }
    reseed(scenario, rule, &moved);
}

/// Puts every host at the address that a file without a word about it gives it, where one deleted earlier has left
/// a gap. Everyone goes on to dial whom they dialled.
pub(super) fn close_gaps(scenario: &mut Scenario) {
    let rule = seeds(scenario);
    let mut moved = Moved::new();
    for (ix, host) in scenario.hosts.iter_mut().enumerate() {
        let before = host.config.advertised();
        host.config.bind_addr = address(ix);
        host.config.advertise_addr = None;
        moved.insert(before, host.config.advertised());
    }
    reseed(scenario, rule, &moved);
}

/// The address that others dial, before and after.
type Moved = BTreeMap<SocketAddr, SocketAddr>;

/// Seeds of moved hosts: by the rule they had, or one by one where there was none.
fn reseed(scenario: &mut Scenario, rule: Option<Seeds>, moved: &Moved) {
    match rule {
        Some(rule) => seed(scenario, rule),
        None => {
            for host in &mut scenario.hosts {
                let left = host.config.seed_peers.iter().filter_map(|addr| moved.get(addr).copied());
                host.config.seed_peers = left.collect();
            }
        }
    }
}

/// The rule by which the hosts have their seeds, if there is one.
fn seeds(scenario: &Scenario) -> Option<Seeds> {
    Seeds::EVERY.into_iter().find(|&rule| {
        let mut seeded = scenario.clone();
        seed(&mut seeded, rule);
        let same = |(one, other): (&crate::scenario::model::Host, &crate::scenario::model::Host)| {
            one.config.seed_peers == other.config.seed_peers
        };
        seeded.hosts.iter().zip(&scenario.hosts).all(same)
    })
}

/// Gives every host its seeds by a rule.
pub(super) fn seed(scenario: &mut Scenario, rule: Seeds) {
    let from_start: Vec<bool> = scenario.hosts.iter().map(|host| host.from_start).collect();
    let addresses: Vec<SocketAddr> = scenario.hosts.iter().map(|host| host.config.advertised()).collect();
    for (ix, host) in scenario.hosts.iter_mut().enumerate() {
        host.config.seed_peers = rule.of(ix, &from_start, &addresses);
    }
}

/// Every moment of the run that the scenario names, as values that `change` may move. The end of a fault that
/// lasts is one: it is told as a moment and kept as a length.
pub(super) fn moments_mut(scenario: &mut Scenario, change: &mut dyn FnMut(&mut Duration)) {
    for step in &mut scenario.steps {
        if let Start::At(at) = &mut step.start {
            let mut end = step.lasts.map(|lasts| at.saturating_add(lasts));
            change(at);
            if let Some(end) = &mut end {
                change(end);
            }
            step.lasts = end.map(|end| end.saturating_sub(*at));
        }
        if let Some(until) = &mut step.until {
            change(until);
        }
        if let Verb::ReplayFrames { captured_from, captured_until: Some(until), .. } = &mut step.verb {
            change(captured_from);
            change(until);
        }
    }
    for workload in &mut scenario.workloads {
        change(&mut workload.from);
        if let Some(until) = &mut workload.until {
            change(until);
        }
    }
    for expect in &mut scenario.expects {
        if let Window::By(by) = &mut expect.window {
            change(by);
        }
        if let Some(Moment::At(from)) = &mut expect.from {
            change(from);
        }
    }
    change(&mut scenario.time_limit);
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::engine::EngineKind;
    use crate::scenario::LoadOptions;

    fn read(nodes: &str, more: &str) -> Scenario {
        let text = format!("name = \"x\"\nabout = \"X.\"\ntime_limit = \"5s\"\n[nodes]\n{nodes}\n{more}");
        let none = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
        Scenario::parse(&text, Path::new("x.toml"), &none, LoadOptions::for_engine(EngineKind::Event))
            .unwrap_or_else(|report| panic!("{report:?}"))
    }

    /// Who dials whom, by place.
    fn dials(scenario: &Scenario) -> Vec<Vec<Option<usize>>> {
        let place =
            |addr: &SocketAddr| scenario.hosts.iter().position(|host| host.config.advertised() == *addr);
        scenario.hosts.iter().map(|host| host.config.seed_peers.iter().map(place).collect()).collect()
    }

    #[test]
    fn hosts_left_after_a_gap_move_up_and_dial_whom_they_dialled() {
        let gap = "[config_for.b.cluster]\nbind_addr = \"192.168.0.3:7946\"\n\
                   [config_for.c.cluster]\nbind_addr = \"192.168.0.5:7946\"\n";
        let listed = format!("{gap}seed_peers = [\"192.168.0.3:7946\"]\n");
        for (nodes, more) in [
            ("names = [\"a\", \"b\", \"c\"]", gap),
            ("names = [\"a\", \"b\", \"c\"]\nseeds = \"chain\"", gap),
            ("names = [\"a\", \"b\", \"c\"]\nseeds = \"first\"", listed.as_str()),
        ] {
            let mut scenario = read(nodes, more);
            let before = dials(&scenario);
            assert!(scenario.to_toml().contains("bind_addr"), "{}", scenario.to_toml());
            close_gaps(&mut scenario);
            assert_eq!(dials(&scenario), before, "{nodes}");
            assert!(!scenario.to_toml().contains("bind_addr"), "{}", scenario.to_toml());
        }
    }

    #[test]
    fn a_deleted_host_leaves_no_gap() {
        let mut scenario = read("names = [\"a\", \"b\", \"c\"]\nseeds = \"chain\"", "");
        keep_hosts(&mut scenario, &[0, 2]);
        assert_eq!(dials(&scenario), [vec![], vec![Some(0)]]);
        assert!(!scenario.to_toml().contains("bind_addr"), "{}", scenario.to_toml());
    }
}
