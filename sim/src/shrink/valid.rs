//! What a file may say: the rules of the scenario reader, over a scenario that no file was read for.
//!
//! [`settled`] tidies what a change left behind and lets only through what the reader would take.
//!
//! Absent: words about what is wrong; nobody sees a candidate that is refused here.

use std::collections::BTreeSet;
use std::time::Duration;

use firedrill_core::config::IssuanceConfig;

use super::remap::{keep_hosts, targets_mut};
use crate::scenario::model::{
    Bound, Expect, Fact, Host, HostIx, Moment, Scenario, Start, Step, StepIx, Target, Verb, Window, Workload,
};
use crate::scenario::reread_issuance;

/// The scenario without what nothing speaks of any more; `None` when no file could say it.
pub(super) fn settled(mut scenario: Scenario) -> Option<Scenario> {
    drop_hosts_nobody_starts(&mut scenario);
    name_steps(&mut scenario);
    let counted: BTreeSet<_> = scenario.workloads.iter().map(|workload| workload.counter.clone()).collect();
    scenario.expects.retain(|expect| match &expect.fact {
        Fact::Counter { name, .. } => counted.contains(name),
        Fact::View { .. }
        | Fact::Event(_)
        | Fact::Metric { .. }
        | Fact::Lease { .. }
        | Fact::Role { .. }
        | Fact::Decision { .. }
        | Fact::Audit { .. } => true,
    });
    scenario.needs_full =
        scenario.steps.iter().any(|step| needs_bytes(&step.verb)) || !alike(&scenario.hosts);
    is_valid(&scenario).then_some(scenario)
}

/// A host of `nodes.later` that no step starts would never run.
fn drop_hosts_nobody_starts(scenario: &mut Scenario) {
    loop {
        let started = |ix: usize| {
            scenario.hosts[ix].from_start
                || scenario.steps.iter().any(
                    |step| matches!(&step.verb, Verb::AddNode(Target::Hosts(hosts)) if hosts.contains(&HostIx(ix))),
                )
        };
        let kept: Vec<usize> = (0..scenario.hosts.len()).filter(|&ix| started(ix)).collect();
        if kept.len() == scenario.hosts.len() {
            return;
        }
        keep_hosts(scenario, &kept);
    }
}

/// Steps that something speaks of have an id, others have none.
fn name_steps(scenario: &mut Scenario) {
    let mut spoken_of: BTreeSet<StepIx> = BTreeSet::new();
    for (ix, step) in scenario.steps.iter().enumerate() {
        if let Start::AfterStep(before, _) = step.start
            && before.0 + 1 != ix
        {
            spoken_of.insert(before);
        }
    }
    for expect in &scenario.expects {
        if let Some(Moment::Step(step)) = expect.from {
            spoken_of.insert(step);
        }
    }
    let mut taken: BTreeSet<String> = scenario.steps.iter().filter_map(|step| step.id.clone()).collect();
    for (ix, step) in scenario.steps.iter_mut().enumerate() {
        if !spoken_of.contains(&StepIx(ix)) {
            step.id = None;
        } else if step.id.is_none() {
            let free = (ix + 1..).map(|n| format!("step-{n}")).find(|id| !taken.contains(id));
            taken.extend(free.clone());
            step.id = free;
        }
    }
}

/// The earliest moment at which each step can fire, as far as a file tells.
pub(super) fn earliest(scenario: &Scenario) -> Vec<Duration> {
    let mut moments: Vec<Duration> = Vec::with_capacity(scenario.steps.len());
    for step in &scenario.steps {
        let moment = match &step.start {
            Start::At(at) => *at,
            Start::AfterStep(before, delay) => {
                moments.get(before.0).copied().unwrap_or_default().saturating_add(*delay)
            }
            Start::AfterEvent(_, delay) => moments.last().copied().unwrap_or_default().saturating_add(*delay),
        };
        moments.push(moment);
    }
    moments
}

/// Verbs that act on bytes.
const fn needs_bytes(verb: &Verb) -> bool {
    matches!(
        verb,
        Verb::HalfOpen { .. } | Verb::CorruptFrames { .. } | Verb::ForgeFrames { .. } | Verb::Flood { .. }
    )
}

fn alike(hosts: &[Host]) -> bool {
    let kind = |host: &Host| (host.config.secret.clone(), host.config.cluster_name.clone());
    hosts.windows(2).all(|pair| kind(&pair[0]) == kind(&pair[1]))
}

/// Whether the reader would take it.
fn is_valid(scenario: &Scenario) -> bool {
    let limit = scenario.time_limit;
    !limit.is_zero()
        && scenario.settle_within.is_none_or(|within| !within.is_zero())
        && hosts_are_valid(&scenario.hosts)
        && !scenario.net.latency_min.is_zero()
        && scenario.net.latency_min <= scenario.net.latency_max
        && scenario.workloads.iter().all(|workload| workload_is_valid(workload, limit))
        && steps_are_valid(scenario)
        && scenario.expects.iter().all(|expect| expect_is_valid(expect, scenario))
}

fn hosts_are_valid(hosts: &[Host]) -> bool {
    let names: BTreeSet<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
    let places: BTreeSet<_> = hosts.iter().map(Host::listens_at).collect();
    let issuance = |config: &IssuanceConfig| reread_issuance(config, None).as_ref() == Some(config);
    let config = |host: &Host| {
        host.config.push_interval_ms >= firedrill_core::limits::PUSH_INTERVAL_MS_MIN
            && host.config.suspicion_timeout_ms >= 3 * host.config.push_interval_ms
    };
    names.len() == hosts.len()
        && places.len() == hosts.len()
        && hosts.first().is_some_and(|host| host.from_start)
        && hosts.iter().is_sorted_by_key(|host| !host.from_start)
        && hosts.iter().all(config)
        && hosts.iter().all(|host| host.issuance.as_ref().is_none_or(issuance))
}

/// Whether any host takes part in issuance: what speaks of it is refused otherwise.
fn issues(hosts: &[Host]) -> bool {
    hosts.iter().any(|host| host.issuance.is_some())
}

fn workload_is_valid(workload: &Workload, limit: Duration) -> bool {
    !workload.every.is_zero()
        && workload.by > 0
        && workload.from <= limit
        && workload.until.is_none_or(|until| until <= limit && until >= workload.from)
}

fn steps_are_valid(scenario: &Scenario) -> bool {
    let limit = scenario.time_limit;
    let moments = earliest(scenario);
    let fixed: Vec<Duration> = scenario
        .steps
        .iter()
        .filter_map(|step| match step.start {
            Start::At(at) => Some(at),
            Start::AfterStep(..) | Start::AfterEvent(..) => None,
        })
        .collect();
    let before = |(ix, step): (usize, &Step)| match step.start {
        Start::AfterStep(before, _) => before.0 < ix,
        Start::At(_) | Start::AfterEvent(..) => true,
    };
    let in_time = |(step, &moment): (&Step, &Duration)| {
        let last = step.until.max(Some(moment)).unwrap_or(moment);
        moment <= limit
            && step.every.is_some() == step.until.is_some()
            && step.until.is_none_or(|until| until >= moment && until <= limit)
            && step.every.is_none_or(|every| !every.is_zero())
            && step.lasts.is_none_or(|lasts| {
                !lasts.is_zero()
                    && last.saturating_add(lasts) <= limit
                    && step.every.is_none_or(|every| lasts <= every)
            })
    };
    fixed.is_sorted()
        && scenario.steps.iter().enumerate().all(before)
        && scenario.steps.iter().zip(&moments).all(in_time)
        && scenario.steps.iter().all(|step| verb_is_valid(&step.verb, &scenario.hosts))
        && hosts_come_before_they_go(scenario)
}

/// Hosts of `nodes.later` are started once, by name, before anything is done to them.
fn hosts_come_before_they_go(scenario: &Scenario) -> bool {
    let late = |host: &HostIx| !scenario.hosts[host.0].from_start;
    let mut added: BTreeSet<HostIx> = BTreeSet::new();
    scenario.steps.iter().all(|step| match &step.verb {
        Verb::AddNode(Target::Hosts(hosts)) => hosts.iter().all(|host| late(host) && added.insert(*host)),
        Verb::AddNode(_) => false,
        Verb::Kill(Target::Hosts(hosts))
        | Verb::Stop(Target::Hosts(hosts))
        | Verb::Restart { target: Target::Hosts(hosts), .. }
        | Verb::Pause(Target::Hosts(hosts))
        | Verb::Resume(Target::Hosts(hosts))
        | Verb::RemoveNode(Target::Hosts(hosts))
        | Verb::PauseIssuance(Target::Hosts(hosts))
        | Verb::ResumeIssuance(Target::Hosts(hosts)) => {
            hosts.iter().all(|host| !late(host) || added.contains(host))
        }
        Verb::Kill(_)
        | Verb::Stop(_)
        | Verb::Restart { .. }
        | Verb::Pause(_)
        | Verb::Resume(_)
        | Verb::RemoveNode(_)
        | Verb::Partition(_)
        | Verb::Isolate(_)
        | Verb::Heal
        | Verb::Cut { .. }
        | Verb::Hold { .. }
        | Verb::Release { .. }
        | Verb::Link { .. }
        | Verb::HalfOpen { .. }
        | Verb::ClockStep { .. }
        | Verb::ClockRate { .. }
        | Verb::Disk { .. }
        | Verb::ClockFreeze(_)
        | Verb::ReplayFrames { .. }
        | Verb::CorruptFrames { .. }
        | Verb::ForgeFrames { .. }
        | Verb::Flood { .. }
        | Verb::PauseIssuance(_)
        | Verb::ResumeIssuance(_) => true,
    })
}

fn verb_is_valid(verb: &Verb, hosts: &[Host]) -> bool {
    let mut verb = verb.clone();
    let (issues, hosts) = (issues(hosts), hosts.len());
    let named = |target: &Target| match target {
        Target::Hosts(named) => {
            let distinct: BTreeSet<_> = named.iter().collect();
            !named.is_empty() && distinct.len() == named.len() && named.iter().all(|host| host.0 < hosts)
        }
        Target::Any | Target::Minority | Target::Majority | Target::All => true,
        Target::Holder | Target::Successor => issues,
    };
    targets_mut(&mut verb).into_iter().all(|target| named(target))
        && match &verb {
            Verb::Partition(groups) => separates(groups, hosts),
            Verb::Restart { target: Target::Hosts(named), addr: Some(_), .. } => named.len() == 1,
            Verb::Link { latency, loss_ppm, duplicate_ppm, reorder_ppm, bandwidth, .. } => {
                leads_somewhere(&verb)
                    && (latency.is_some()
                        || bandwidth.is_some()
                        || [loss_ppm, duplicate_ppm, reorder_ppm].iter().any(|share| share.is_some()))
                    && latency.is_none_or(|(low, high)| !low.is_zero() && low <= high)
            }
            Verb::Cut { .. } | Verb::Hold { .. } | Verb::Release { .. } | Verb::HalfOpen { .. } => {
                leads_somewhere(&verb)
            }
            Verb::CorruptFrames { .. } => leads_somewhere(&verb),
            Verb::ReplayFrames { captured_from, captured_until, count, .. } => {
                let stretch = match captured_until {
                    Some(until) => captured_from <= until,
                    None => captured_from.is_zero(),
                };
                leads_somewhere(&verb) && *count > 0 && stretch
            }
            Verb::ForgeFrames { count, .. } | Verb::Flood { connections: count, .. } => *count > 0,
            Verb::Kill(_)
            | Verb::Stop(_)
            | Verb::Restart { .. }
            | Verb::Pause(_)
            | Verb::Resume(_)
            | Verb::Isolate(_)
            | Verb::Heal
            | Verb::ClockStep { .. }
            | Verb::ClockRate { .. }
            | Verb::Disk { .. }
            | Verb::ClockFreeze(_)
            | Verb::AddNode(_)
            | Verb::RemoveNode(_) => true,
            Verb::PauseIssuance(_) | Verb::ResumeIssuance(_) => issues,
        }
}

/// Whether a verb on links does not lead from one host to itself.
fn leads_somewhere(verb: &Verb) -> bool {
    let mut verb = verb.clone();
    match targets_mut(&mut verb).as_slice() {
        [Target::Hosts(from), Target::Hosts(to)] => from.len() > 1 || from != to,
        _ => true,
    }
}

/// Whether a partition has two sides, no host on both.
fn separates(groups: &[Target], hosts: usize) -> bool {
    let mut placed: BTreeSet<HostIx> = BTreeSet::new();
    let disjoint = groups.iter().all(|group| match group {
        Target::Hosts(named) => named.iter().all(|host| placed.insert(*host)),
        Target::Any | Target::Minority | Target::Majority | Target::Holder | Target::Successor => {
            groups.len() == 1
        }
        Target::All => false,
    });
    disjoint && !groups.is_empty() && (groups.len() > 1 || placed.len() < hosts)
}

fn expect_is_valid(expect: &Expect, scenario: &Scenario) -> bool {
    let limit = scenario.time_limit;
    let opens = match expect.from {
        Some(Moment::At(at)) => Some(at),
        Some(Moment::Step(step)) => earliest(scenario).get(step.0).copied(),
        None => None,
    };
    let in_time = match (expect.window, opens) {
        (Window::By(by), opens) => by <= limit && opens.is_none_or(|opens| opens < by),
        (Window::AtEnd, Some(_)) => false,
        (Window::AtEnd | Window::Always | Window::Never | Window::Sometimes, _) => true,
    };
    let fact = match &expect.fact {
        Fact::View { members, .. } => !members.is_empty(),
        Fact::Event(_) => expect.window != Window::Always,
        Fact::Counter { value, .. } => {
            matches!(value, Bound::Truth | Bound::Equals(_) | Bound::AtLeast(_) | Bound::AtMost(_))
        }
        Fact::Metric { value, .. } => *value != Bound::Truth,
        Fact::Lease { holder, epoch, .. } => issues(&scenario.hosts) && (holder.is_some() || epoch.is_some()),
        Fact::Audit { value, .. } => issues(&scenario.hosts) && *value != Bound::Truth,
        Fact::Role { .. } | Fact::Decision { .. } => issues(&scenario.hosts),
    };
    let from = match expect.from {
        Some(Moment::At(at)) => at <= limit,
        Some(Moment::Step(step)) => step.0 < scenario.steps.len(),
        None => true,
    };
    in_time && fact && from
}
