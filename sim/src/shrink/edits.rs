//! What else makes a drill plainer, one edit at a time: the cluster, the targets, the form of the steps, the names.
//!
//! An edit changes a scenario in place or leaves it alone; that a changed one still fails is for others to see. Each
//! list is in the order in which edits are worth trying.
//!
//! Absent: deletion and numbers, which have searches of their own.

use std::time::Duration;

use firedrill_core::id::NodeId;

use super::issuance;
use super::pace::at_pace;
use super::remap::{close_gaps, keep_hosts, keep_steps, seed, targets_mut};
use super::valid::earliest;
use crate::scenario::model::{
    EventPattern, Fact, HostIx, LinkSpec, Scenario, Start, Step, StepIx, Target, Verb,
};
use crate::scenario::{SECRET, Seeds, address, made_up};

/// One way to make a scenario plainer.
pub(super) type Edit = Box<dyn Fn(&mut Scenario)>;

/// Hosts named so, and the hosts drawn in the place of a symbol, are tried up to this many.
const SUBSETS_MAX: usize = 24;
/// Seeds that are tried in the hope that one of them needs less.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=4;

/// The net that a file has without a word about it.
pub(super) const PLAIN_NET: LinkSpec = LinkSpec {
    latency_min: Duration::from_millis(1),
    latency_max: Duration::from_millis(5),
    loss_ppm: 0,
    duplicate_ppm: 0,
    reorder_ppm: 0,
    bandwidth: None,
};

/// Plainer hosts, a plainer net, plainer clients.
pub(super) fn cluster(scenario: &Scenario) -> Vec<Edit> {
    let mut edits: Vec<Edit> = vec![
        Box::new(|scenario| scenario.net = PLAIN_NET),
        Box::new(|scenario| scenario.net = LinkSpec { bandwidth: None, ..still(&scenario.net) }),
        Box::new(|scenario| scenario.net.loss_ppm = 0),
        Box::new(|scenario| scenario.net.duplicate_ppm = 0),
        Box::new(|scenario| scenario.net.reorder_ppm = 0),
        Box::new(|scenario| scenario.net.bandwidth = None),
        Box::new(alike),
        Box::new(same_pace),
        Box::new(|scenario| at_pace(scenario, true)),
        Box::new(|scenario| at_pace(scenario, false)),
        Box::new(|scenario| scenario.net = PLAIN_NET),
        Box::new(|scenario| constant_latency(scenario, Duration::from_millis(1))),
        Box::new(|scenario| constant_latency(scenario, scenario.net.latency_max)),
        Box::new(|scenario| seed(scenario, Seeds::All)),
        Box::new(addresses_of_a_file),
        Box::new(close_gaps),
        Box::new(|scenario| scenario.hosts.iter_mut().for_each(|host| host.wall_offset_us = 0)),
        Box::new(|scenario| scenario.settle_within = None),
        Box::new(|scenario| scenario.same_millisecond = false),
    ];
    edits.extend(issuance::edits(scenario));
    for host in 0..scenario.hosts.len() {
        edits.push(Box::new(move |scenario| scenario.hosts[host].wall_offset_us = 0));
    }
    for (ix, host) in scenario.hosts.iter().enumerate() {
        if !host.from_start {
            edits.push(Box::new(move |scenario| run_from_start(scenario, ix)));
        }
    }
    for ix in 0..scenario.workloads.len() {
        edits.extend(plainer_workload(ix));
    }
    edits
}

/// One latency for all frames, where the net needs a word at all.
fn constant_latency(scenario: &mut Scenario, latency: Duration) {
    if scenario.net != PLAIN_NET {
        (scenario.net.latency_min, scenario.net.latency_max) = (latency, latency);
    }
}

/// The same latency without faults of its own.
const fn still(net: &LinkSpec) -> LinkSpec {
    LinkSpec { loss_ppm: 0, duplicate_ppm: 0, reorder_ppm: 0, ..*net }
}

/// One cluster name, the secret of a file without one.
fn alike(scenario: &mut Scenario) {
    let Some(name) = scenario.hosts.first().map(|host| host.config.cluster_name.clone()) else { return };
    for host in &mut scenario.hosts {
        host.config.secret = firedrill_core::config::Secret::new(SECRET);
        host.config.cluster_name = name.clone();
    }
}

/// Every host at the pace of the first.
fn same_pace(scenario: &mut Scenario) {
    let Some(first) = scenario.hosts.first() else { return };
    let (push, suspicion) = (first.config.push_interval_ms, first.config.suspicion_timeout_ms);
    for host in &mut scenario.hosts {
        (host.config.push_interval_ms, host.config.suspicion_timeout_ms) = (push, suspicion);
    }
}

/// Every host where a file without a word about it puts it.
fn addresses_of_a_file(scenario: &mut Scenario) {
    for (ix, host) in scenario.hosts.iter_mut().enumerate() {
        host.config.bind_addr = address(ix);
        host.config.advertise_addr = None;
    }
    seed(scenario, Seeds::All);
}

/// A host that a step adds runs from the start instead.
fn run_from_start(scenario: &mut Scenario, host: usize) {
    if scenario.hosts.get(host).is_none_or(|host| host.from_start) {
        return;
    }
    scenario.hosts[host].from_start = true;
    for step in &mut scenario.steps {
        if let Verb::AddNode(Target::Hosts(hosts)) = &mut step.verb {
            hosts.retain(|added| added.0 != host);
        }
    }
    let adds_nobody = |step: &Step| step.verb == Verb::AddNode(Target::Hosts(Vec::new()));
    let kept: Vec<usize> =
        (0..scenario.steps.len()).filter(|&ix| !adds_nobody(&scenario.steps[ix])).collect();
    keep_steps(scenario, &kept);
    let mut order: Vec<usize> = (0..scenario.hosts.len()).collect();
    order.sort_by_key(|&ix| !scenario.hosts[ix].from_start);
    keep_hosts(scenario, &order);
}

/// Fewer increments, on one host, or told in fewer words.
fn plainer_workload(ix: usize) -> Vec<Edit> {
    fn on(ix: usize, change: impl Fn(&mut crate::scenario::model::Workload) + 'static) -> Edit {
        Box::new(move |scenario| scenario.workloads.get_mut(ix).into_iter().for_each(&change))
    }
    let every = |every: Duration| {
        on(ix, move |workload| {
            // Rarer only: every fewer increment is a plainer drill.
            if workload.every < every {
                (workload.every, workload.from) = (every, every);
            }
        })
    };
    vec![
        on(ix, |workload| workload.on.clear()),
        on(ix, |workload| workload.until = None),
        on(ix, |workload| workload.from = workload.every),
        on(ix, |workload| workload.by = 1),
        every(Duration::from_secs(10)),
        every(Duration::from_secs(1)),
        every(Duration::from_millis(100)),
    ]
}

/// Hosts in place of symbols, for every target of every step.
pub(super) fn targets(scenario: &Scenario) -> Vec<Edit> {
    let hosts = scenario.hosts.len();
    let mut edits: Vec<Edit> = Vec::new();
    for (step, said) in scenario.steps.iter().enumerate() {
        for (slot, target) in targets_mut(&mut said.verb.clone()).into_iter().enumerate() {
            let symbol = target.clone();
            let sizes = match target {
                Target::Hosts(_) => continue,
                Target::Any | Target::Holder | Target::Successor => 1..=1,
                Target::All | Target::Minority | Target::Majority => 1..=hosts.saturating_sub(1).max(1),
            };
            for named in sizes.flat_map(|size| subsets(hosts, size)).take(SUBSETS_MAX) {
                let symbol = symbol.clone();
                edits.push(Box::new(move |scenario| {
                    let Some(step) = scenario.steps.get_mut(step) else { return };
                    if let Some(target) = targets_mut(&mut step.verb).into_iter().nth(slot)
                        && *target == symbol
                    {
                        *target = Target::Hosts(named.clone());
                    }
                }));
            }
        }
    }
    edits
}

/// The subsets of so many of the first hosts, smallest places first.
fn subsets(hosts: usize, size: usize) -> Vec<Vec<HostIx>> {
    let mut found: Vec<Vec<HostIx>> = vec![Vec::new()];
    for _ in 0..size {
        found = found
            .into_iter()
            .flat_map(|subset| {
                let next = subset.last().map_or(0, |last| last.0 + 1);
                (next..hosts).map(move |host| [subset.as_slice(), &[HostIx(host)]].concat())
            })
            .take(SUBSETS_MAX)
            .collect();
    }
    found
}

/// Steps in fewer or simpler words.
pub(super) fn forms(scenario: &Scenario) -> Vec<Edit> {
    let mut edits: Vec<Edit> = Vec::new();
    let steps = scenario.steps.len();
    for first in 0..steps {
        for second in first + 1..steps {
            edits.push(Box::new(move |scenario| fold(scenario, first, second)));
        }
    }
    for ix in (0..steps).rev() {
        edits.push(Box::new(move |scenario| {
            if let Some(step) = scenario.steps.get_mut(ix) {
                (step.every, step.until) = (None, None);
            }
        }));
        edits.push(Box::new(move |scenario| {
            if let Some(step) = scenario.steps.get_mut(ix) {
                step.lasts = None;
            }
        }));
        edits.push(Box::new(move |scenario| start_at(scenario, ix)));
        edits.extend(plainer_verbs(&scenario.steps[ix].verb).into_iter().map(|(from, to)| -> Edit {
            Box::new(move |scenario| {
                if let Some(step) = scenario.steps.get_mut(ix).filter(|step| step.verb == from) {
                    step.verb = to.clone();
                }
            })
        }));
    }
    edits
}

/// A fault and the step that ends it become one step with a `for`.
fn fold(scenario: &mut Scenario, first: usize, second: usize) {
    let (Some(begins), Some(ends)) = (scenario.steps.get(first), scenario.steps.get(second)) else { return };
    let undone = matches!(
        (&begins.verb, &ends.verb),
        (Verb::Pause(_), Verb::Resume(_))
            | (Verb::Hold { .. }, Verb::Release { .. })
            | (
                Verb::Partition(_)
                    | Verb::Isolate(_)
                    | Verb::Cut { .. }
                    | Verb::Hold { .. }
                    | Verb::Link { .. },
                Verb::Heal
            )
    );
    if let (true, Start::At(from), Start::At(to)) =
        (undone && begins.every.is_none(), &begins.start, &ends.start)
    {
        let lasts = to.saturating_sub(*from);
        scenario.steps[first].lasts = Some(lasts);
        let kept: Vec<usize> = (0..scenario.steps.len()).filter(|&ix| ix != second).collect();
        keep_steps(scenario, &kept);
    }
}

/// A step that counts from another fires at its own time, where the file tells which that is.
fn start_at(scenario: &mut Scenario, ix: usize) {
    let mut at = Some(ix);
    while let Some(step) = at.and_then(|at| scenario.steps.get(at)) {
        match &step.start {
            Start::At(_) => break,
            Start::AfterStep(before, _) => at = Some(before.0),
            Start::AfterEvent(..) => return,
        }
    }
    if let Some(moment) = earliest(scenario).get(ix) {
        scenario.steps[ix].start = Start::At(*moment);
    }
}

/// Verbs that say less and may do: the verb itself, and each of them.
fn plainer_verbs(verb: &Verb) -> Vec<(Verb, Verb)> {
    let mut plainer = Vec::new();
    match verb {
        Verb::Restart { target, wall_step_us, addr, lose_disk } => {
            let restart = |wall_step_us, addr, lose_disk| Verb::Restart {
                target: target.clone(),
                wall_step_us,
                addr,
                lose_disk,
            };
            plainer.extend([
                restart(None, None, false),
                restart(None, *addr, *lose_disk),
                restart(*wall_step_us, None, *lose_disk),
                restart(*wall_step_us, *addr, false),
            ]);
        }
        Verb::RemoveNode(target) => {
            plainer.extend([Verb::Kill(target.clone()), Verb::Stop(target.clone())]);
        }
        Verb::Stop(target) => plainer.push(Verb::Kill(target.clone())),
        Verb::Hold { from, to } => plainer.push(Verb::Cut { from: from.clone(), to: to.clone() }),
        Verb::ReplayFrames { from, to, count, .. } => plainer.push(Verb::ReplayFrames {
            from: from.clone(),
            to: to.clone(),
            captured_from: Duration::ZERO,
            captured_until: None,
            count: *count,
        }),
        Verb::Link { from, to, .. } => {
            plainer.push(Verb::Cut { from: from.clone(), to: to.clone() });
            for property in 0..5 {
                let mut less = verb.clone();
                if let Verb::Link { latency, loss_ppm, duplicate_ppm, reorder_ppm, bandwidth, .. } = &mut less
                {
                    match property {
                        0 => *latency = None,
                        1 => *loss_ppm = None,
                        2 => *duplicate_ppm = None,
                        3 => *reorder_ppm = None,
                        _ => *bandwidth = None,
                    }
                }
                plainer.push(less);
            }
        }
        Verb::Kill(_)
        | Verb::Pause(_)
        | Verb::Resume(_)
        | Verb::Partition(_)
        | Verb::Isolate(_)
        | Verb::Heal
        | Verb::Cut { .. }
        | Verb::Release { .. }
        | Verb::HalfOpen { .. }
        | Verb::ClockStep { .. }
        | Verb::ClockRate { .. }
        | Verb::ClockFreeze(_)
        | Verb::Disk { .. }
        | Verb::CorruptFrames { .. }
        | Verb::ForgeFrames { .. }
        | Verb::Flood { .. }
        | Verb::AddNode(_)
        | Verb::PauseIssuance(_)
        | Verb::ResumeIssuance(_) => {}
    }
    plainer.into_iter().map(|less| (verb.clone(), less)).collect()
}

/// Other seeds without one of the steps or hosts: where chance decides, less may do under another seed.
pub(super) fn other_seeds(scenario: &Scenario) -> Vec<Edit> {
    let mut edits: Vec<Edit> = Vec::new();
    let own = scenario.seed;
    let without =
        |length: usize, gone: usize| -> Vec<usize> { (0..length).filter(|&ix| ix != gone).collect() };
    let (steps, hosts) = (scenario.steps.len(), scenario.hosts.len());
    for seed in SEEDS.filter(|seed| *seed != own) {
        for kept in (0..steps).rev().map(|gone| without(steps, gone)) {
            edits.push(Box::new(move |scenario| {
                if scenario.steps.len() == steps {
                    scenario.seed = seed;
                    keep_steps(scenario, &kept);
                }
            }));
        }
        for kept in (0..hosts).rev().map(|gone| without(hosts, gone)) {
            edits.push(Box::new(move |scenario| {
                if scenario.hosts.len() == hosts {
                    scenario.seed = seed;
                    keep_hosts(scenario, &kept);
                }
            }));
        }
    }
    edits
}

/// Names as a file would give them: hosts a, b, c …, and the seed that needs no mention.
pub(super) fn names(scenario: &Scenario) -> Vec<Edit> {
    let mut edits: Vec<Edit> = vec![Box::new(|scenario| scenario.seed = 1)];
    let many = scenario.hosts.len();
    edits.push(Box::new(move |scenario| (0..many).for_each(|ix| rename(scenario, ix, &made_up(ix, many)))));
    for ix in 0..many {
        edits.push(Box::new(move |scenario| rename(scenario, ix, &made_up(ix, many))));
    }
    edits
}

/// Gives a host another name, and its node id with it where they are the same. Whoever has that name gets the old
/// one in exchange.
fn rename(scenario: &mut Scenario, ix: usize, name: &str) {
    let old = scenario.hosts[ix].name.clone();
    let swapped = |id: &NodeId| {
        let new = match id.as_str() {
            id if id == old => name,
            id if id == name => old.as_str(),
            id => id,
        };
        NodeId::new(new).unwrap_or_else(|_| id.clone())
    };
    for host in &mut scenario.hosts {
        if host.name == old {
            name.clone_into(&mut host.name);
        } else if host.name == name {
            old.clone_into(&mut host.name);
        }
        host.id = swapped(&host.id);
        host.config.node_id = host.config.node_id.as_ref().map(swapped);
    }
    issuance::rename(scenario, &swapped);
    let pattern = |pattern: &mut EventPattern| pattern.subject = pattern.subject.as_ref().map(swapped);
    for step in &mut scenario.steps {
        if let Start::AfterEvent(event, _) = &mut step.start {
            pattern(event);
        }
    }
    for expect in &mut scenario.expects {
        match &mut expect.fact {
            Fact::View { members, .. } => {
                members.iter_mut().for_each(|id| *id = swapped(id));
                members.sort();
            }
            Fact::Event(event) => pattern(event),
            Fact::Lease { holder: subject, .. } | Fact::Decision { successor: subject, .. } => {
                *subject = subject.as_ref().map(swapped);
            }
            Fact::Counter { .. } | Fact::Metric { .. } | Fact::Role { .. } | Fact::Audit { .. } => {}
        }
    }
}

/// The place of a step, for lists of what belongs to it.
pub(super) fn steps(scenario: &Scenario) -> impl Iterator<Item = StepIx> + use<> {
    (0..scenario.steps.len()).rev().map(StepIx)
}
