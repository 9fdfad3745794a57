//! A scenario on its way to a minimal one, as a proptest value tree.
//!
//! [`ScenarioTree`] proposes one smaller scenario after the other. Who drives it says of each whether it still
//! fails, by [`simplify`](ValueTree::simplify) if it does and [`complicate`](ValueTree::complicate) if not, until
//! there is nothing left to propose; then the current one is the smallest that failed. Every proposal is valid, and
//! none is made twice.
//!
//! The order is that of value for a reader: steps, clients, hosts, expectations, the plain cluster, concrete targets,
//! simpler steps; these again as long as any of them helps. Then pairs of steps, other seeds, times and numbers, and
//! names, and from the start again until a whole round changes nothing.
//!
//! Absent: running anything.

use std::collections::{BTreeSet, VecDeque};
use std::vec;

use proptest::strategy::ValueTree;
use xxhash_rust::xxh3::xxh3_128;

use super::edits::{self, Edit};
use super::fields::Field;
use super::lists::{Deletion, Pairs};
use super::numbers::Quantity;
use super::remap::{keep_hosts, keep_steps, targets_mut};
use super::valid::settled;
use crate::scenario::Scenario;
use crate::scenario::model::{StepIx, Target, Verb};

/// Beyond so many steps, pairs of them are too many to try.
const PAIRS_STEPS_MAX: usize = 16;

/// A scenario, everything smaller that has yet to be tried, and everything that has been.
pub struct ScenarioTree {
    /// What is proposed.
    current: Scenario,
    /// The smallest that is known to fail.
    kept: Scenario,
    /// The search under way, and those that follow it in this stage.
    search: Option<Search>,
    waiting: VecDeque<Part>,
    /// Position in [`STAGES`].
    stage: usize,
    /// Whether something got smaller since the first stage began.
    smaller: bool,
    /// Fingerprints of what was proposed.
    tried: BTreeSet<u128>,
    /// The longest latency in proportion to the shortest suspicion timeout, as a fraction: no candidate is slower,
    /// or it would fail for being unfair.
    slowness: (u128, u128),
}

/// What is tried together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Steps,
    Workloads,
    Hosts,
    Expectations,
    Cluster,
    Targets,
    Forms,
    /// Back to the first stage if anything got smaller.
    Again,
    Pairs,
    OtherSeeds,
    Numbers,
    Names,
}

const STAGES: [Stage; 15] = [
    Stage::Steps,
    Stage::Workloads,
    Stage::Hosts,
    Stage::Expectations,
    Stage::Cluster,
    Stage::Targets,
    Stage::Forms,
    Stage::Again,
    Stage::Pairs,
    Stage::Again,
    Stage::OtherSeeds,
    Stage::Again,
    Stage::Numbers,
    Stage::Names,
    Stage::Again,
];

/// A list that a scenario holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum List {
    Steps,
    Workloads,
    Hosts,
    Expectations,
    OraclesOff,
    /// The groups of a partition.
    Groups(StepIx),
    /// The hosts of one target of a step.
    Target(StepIx, usize),
    /// The hosts of a workload.
    Clients(usize),
}

/// Something that can be searched.
enum Part {
    List(List),
    Pairs(List),
    Number(Field),
    Edits(Vec<Edit>),
}

/// A search over one part of the scenario as it was when the search began.
enum Search {
    List(Scenario, List, Deletion),
    Pairs(Scenario, List, Pairs),
    Number(Scenario, Field, Quantity),
    /// Each edit is made on the smallest so far.
    Edits(vec::IntoIter<Edit>, Option<Edit>),
}

impl ScenarioTree {
    /// A scenario that fails, as a whole.
    pub fn new(mut scenario: Scenario) -> Self {
        for file in &mut scenario.files {
            // Its places are those of a file that no longer says this.
            file.text = "".into();
        }
        forget_places(&mut scenario);
        let mut tree = Self {
            current: scenario.clone(),
            slowness: slowness(&scenario),
            kept: scenario,
            search: None,
            waiting: VecDeque::new(),
            stage: 0,
            smaller: false,
            tried: BTreeSet::new(),
        };
        tree.tried.insert(fingerprint(&tree.kept));
        tree.waiting = tree.parts(STAGES[0]);
        tree
    }

    /// Goes to the next proposal that was not made before. `moved` tells whether the search under way has one.
    fn advance(&mut self, mut moved: bool) -> bool {
        loop {
            while !moved {
                self.search = None;
                let Some(part) = self.waiting.pop_front() else {
                    if self.next_stage() {
                        continue;
                    }
                    self.current = self.kept.clone();
                    return false;
                };
                let mut search = part.search(&self.kept);
                moved = search.simplify();
                self.search = Some(search);
            }
            let candidate = self.search.as_ref().map(|search| search.candidate(&self.kept));
            if let Some(candidate) = candidate.and_then(settled)
                && self.is_fair(&candidate)
                && self.tried.insert(fingerprint(&candidate))
            {
                self.current = candidate;
                return true;
            }
            moved = self.search.as_mut().is_some_and(Search::complicate);
        }
    }

    /// Goes on to the next stage, or back to the first; `false` after a round that changed nothing.
    fn next_stage(&mut self) -> bool {
        self.stage += 1;
        let again = STAGES.get(self.stage) == Some(&Stage::Again) && self.smaller;
        if again {
            self.stage = 0;
            self.smaller = false;
        }
        let Some(&stage) = STAGES.get(self.stage) else { return false };
        self.waiting = self.parts(stage);
        true
    }

    /// What there is to search in a stage.
    fn parts(&self, stage: Stage) -> VecDeque<Part> {
        let scenario = &self.kept;
        match stage {
            Stage::Steps => [Part::List(List::Steps)].into(),
            Stage::Workloads => [Part::List(List::Workloads)].into(),
            Stage::Hosts => [Part::List(List::Hosts)].into(),
            Stage::Expectations => [Part::List(List::Expectations), Part::List(List::OraclesOff)].into(),
            Stage::Cluster => [Part::Edits(edits::cluster(scenario))].into(),
            Stage::Targets => {
                let mut parts: VecDeque<Part> = [Part::Edits(edits::targets(scenario))].into();
                parts.extend((0..scenario.workloads.len()).map(List::Clients).map(Part::List));
                for step in edits::steps(scenario) {
                    let targets = targets_mut(&mut scenario.steps[step.0].verb.clone()).len();
                    parts.push_back(Part::List(List::Groups(step)));
                    parts.extend((0..targets).map(|slot| Part::List(List::Target(step, slot))));
                }
                parts
            }
            Stage::Forms => [Part::Edits(edits::forms(scenario))].into(),
            Stage::Pairs if scenario.steps.len() <= PAIRS_STEPS_MAX => [Part::Pairs(List::Steps)].into(),
            Stage::Pairs | Stage::Again => VecDeque::new(),
            Stage::OtherSeeds => [Part::Edits(edits::other_seeds(scenario))].into(),
            Stage::Numbers => Field::all(scenario).into_iter().map(Part::Number).collect(),
            Stage::Names => [Part::Edits(edits::names(scenario))].into(),
        }
    }

    fn is_fair(&self, candidate: &Scenario) -> bool {
        let (slow, quick) = slowness(candidate);
        slow * self.slowness.1 <= self.slowness.0 * quick
    }
}

impl ValueTree for ScenarioTree {
    type Value = Scenario;

    fn current(&self) -> Scenario {
        self.current.clone()
    }

    fn simplify(&mut self) -> bool {
        self.smaller |= self.search.is_some();
        self.kept = self.current.clone();
        let moved = self.search.as_mut().is_some_and(Search::simplify);
        self.advance(moved)
    }

    fn complicate(&mut self) -> bool {
        let moved = self.search.as_mut().is_some_and(Search::complicate);
        self.advance(moved)
    }
}

impl Part {
    fn search(self, scenario: &Scenario) -> Search {
        let whole = scenario.clone();
        match self {
            Self::List(list) => Search::List(whole, list, Deletion::new(list.length(scenario))),
            Self::Pairs(list) => Search::Pairs(whole, list, Pairs::new(list.length(scenario))),
            Self::Number(field) => {
                let value = field.get(scenario).unwrap_or(0);
                Search::Number(whole, field, Quantity::new(value, field.floor(), field.grains()))
            }
            Self::Edits(edits) => Search::Edits(edits.into_iter(), None),
        }
    }
}

impl Search {
    fn candidate(&self, kept: &Scenario) -> Scenario {
        match self {
            Self::List(whole, list, deletion) => list.kept(whole, &deletion.current()),
            Self::Pairs(whole, list, pairs) => list.kept(whole, &pairs.current()),
            Self::Number(whole, field, quantity) => {
                let mut scenario = whole.clone();
                field.set(&mut scenario, quantity.current());
                scenario
            }
            Self::Edits(_, edit) => {
                let mut scenario = kept.clone();
                edit.iter().for_each(|edit| edit(&mut scenario));
                scenario
            }
        }
    }

    fn simplify(&mut self) -> bool {
        match self {
            Self::List(_, _, deletion) => deletion.simplify(),
            Self::Pairs(_, _, pairs) => pairs.simplify(),
            Self::Number(_, _, quantity) => quantity.simplify(),
            Self::Edits(waiting, edit) => {
                *edit = waiting.next();
                edit.is_some()
            }
        }
    }

    fn complicate(&mut self) -> bool {
        match self {
            Self::List(_, _, deletion) => deletion.complicate(),
            Self::Pairs(_, _, pairs) => pairs.complicate(),
            Self::Number(_, _, quantity) => quantity.complicate(),
            Self::Edits(..) => self.simplify(),
        }
    }
}

impl List {
    fn length(self, scenario: &Scenario) -> usize {
        match self {
            Self::Steps => scenario.steps.len(),
            Self::Workloads => scenario.workloads.len(),
            Self::Hosts => scenario.hosts.len(),
            Self::Expectations => scenario.expects.len(),
            Self::OraclesOff => scenario.oracles_off.len(),
            // Steps and workloads may have gone with a host since the list was named.
            Self::Groups(step) => match scenario.steps.get(step.0).map(|step| &step.verb) {
                Some(Verb::Partition(groups)) => groups.len(),
                _ => 0,
            },
            Self::Target(step, slot) => {
                let verb = scenario.steps.get(step.0).map(|step| step.verb.clone());
                let hosts = verb.map(|mut verb| match targets_mut(&mut verb).get(slot) {
                    Some(Target::Hosts(hosts)) => hosts.len(),
                    _ => 0,
                });
                hosts.unwrap_or(0)
            }
            Self::Clients(workload) => scenario.workloads.get(workload).map_or(0, |load| load.on.len()),
        }
    }

    /// The scenario with only these elements of the list.
    fn kept(self, whole: &Scenario, kept: &[usize]) -> Scenario {
        let mut scenario = whole.clone();
        match self {
            Self::Steps => keep_steps(&mut scenario, kept),
            Self::Workloads => retain(&mut scenario.workloads, kept),
            Self::Hosts => keep_hosts(&mut scenario, kept),
            Self::Expectations => retain(&mut scenario.expects, kept),
            Self::OraclesOff => {
                let mut off: Vec<_> = std::mem::take(&mut scenario.oracles_off).into_iter().collect();
                retain(&mut off, kept);
                scenario.oracles_off = off.into_iter().collect();
            }
            Self::Groups(step) => {
                if let Verb::Partition(groups) = &mut scenario.steps[step.0].verb {
                    retain(groups, kept);
                }
            }
            Self::Target(step, slot) => {
                let mut targets = targets_mut(&mut scenario.steps[step.0].verb);
                if let Some(Target::Hosts(hosts)) = targets.get_mut(slot) {
                    retain(hosts, kept);
                }
            }
            Self::Clients(workload) => retain(&mut scenario.workloads[workload].on, kept),
        }
        scenario
    }
}

fn retain<T>(list: &mut Vec<T>, kept: &[usize]) {
    let mut place = 0..;
    list.retain(|_| place.next().is_some_and(|place| kept.contains(&place)));
}

/// Places in files that do not say this any more.
fn forget_places(scenario: &mut Scenario) {
    scenario.workloads.iter_mut().for_each(|workload| workload.span = Default::default());
    scenario.steps.iter_mut().for_each(|step| step.span = Default::default());
    scenario.expects.iter_mut().for_each(|expect| expect.span = Default::default());
}

/// Longest latency and shortest suspicion timeout, in microseconds.
fn slowness(scenario: &Scenario) -> (u128, u128) {
    let suspicion =
        scenario.hosts.iter().map(|host| u128::from(host.config.suspicion_timeout_ms) * 1_000).min();
    (scenario.net.latency_max.as_micros(), suspicion.unwrap_or(1))
}

fn fingerprint(scenario: &Scenario) -> u128 {
    xxh3_128(format!("{scenario:?}").as_bytes())
}
