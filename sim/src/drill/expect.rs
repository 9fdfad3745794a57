//! Whether the expectations of a scenario hold.
//!
//! | window | is met when |
//! |---|---|
//! | `by T` | the fact is true at some moment of `from..=T` (an event: happened in it) |
//! | `sometimes` | the same, up to the end of the run |
//! | `always` | it is true at every moment from `from` to the time limit (never said of an event) |
//! | `never` | it is true at no moment from `from` to the time limit |
//! | `at_end` | it is true after the liveness phase (an event: happened by then) |
//!
//! A fact about nodes is true when every node it names that runs agrees with it, and at least one runs: with
//! nobody to ask it is neither true nor false, so it meets no `by` and breaks no `always`. A node that has
//! said goodbye no longer counts.
//!
//! A fact's truth is kept per host and looked at anew only when that host's view or document changed, so a
//! handled input that changes nothing costs a comparison.

use std::collections::BTreeMap;

use firedrill_core::id::{CounterName, NodeId};
use firedrill_core::io::Event;
use firedrill_core::metrics::Metrics;
use firedrill_core::node::Node;
use firedrill_core::time::Instant;

use super::{belief, pattern, timeline, words};
use crate::engine::{Engine, HostState, Step};
use crate::outcome::ExpectationResult;
use crate::scenario::model::{Bound, EventKind, Expect, Fact, HostIx, Moment, Scenario, StepIx, Window};

/// What one host says of a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    /// It does not run, or is not asked.
    Nothing,
    True,
    False,
}

#[derive(Debug)]
struct Track {
    /// When it began to count.
    open_since: Option<Instant>,
    /// For facts about nodes: what each host says. Kept while open and undecided.
    says: Vec<Says>,
    /// For facts about audits: which rows of each host were added up last.
    audited: Vec<Option<u64>>,
    /// For events: whether one was seen.
    seen_event: Option<(Instant, HostIx)>,
    decided: Option<Decision>,
}

#[derive(Debug, Clone)]
struct Decision {
    held: bool,
    at: Instant,
    seen: Option<String>,
}

/// What the workload added, by counter.
type Truth = BTreeMap<CounterName, u64>;

/// A node to be asked, and its counts for when a fact is about those.
#[derive(Clone, Copy)]
struct Witness<'a> {
    node: &'a Node,
    metrics: &'a dyn Fn() -> Metrics,
}

/// All expectations of a run.
#[derive(Debug)]
pub(super) struct Expectations<'s> {
    scenario: &'s Scenario,
    tracks: Vec<Track>,
    /// Open, undecided facts about views and counters, per host.
    on_change: Vec<Vec<usize>>,
    /// Open, undecided facts about metrics and issuance, per host.
    on_step: Vec<Vec<usize>>,
    /// Open, undecided facts about events.
    on_event: Vec<usize>,
    /// Open, undecided facts that compare with the workload's increments.
    on_truth: Vec<usize>,
    truth: Truth,
    /// Decided since they were last asked for.
    news: Vec<usize>,
}

impl<'s> Expectations<'s> {
    pub(super) fn new(scenario: &'s Scenario) -> Self {
        let track = || Track {
            open_since: None,
            says: Vec::new(),
            audited: vec![None; scenario.hosts.len()],
            seen_event: None,
            decided: None,
        };
        Self {
            scenario,
            tracks: scenario.expects.iter().map(|_| track()).collect(),
            on_change: vec![Vec::new(); scenario.hosts.len()],
            on_step: vec![Vec::new(); scenario.hosts.len()],
            on_event: Vec::new(),
            on_truth: Vec::new(),
            truth: Truth::new(),
            news: Vec::new(),
        }
    }

    /// Those that count from the moment this step fires.
    pub(super) fn opened_by(&self, step: StepIx) -> Vec<usize> {
        let from_step = |expect: &Expect| expect.from == Some(Moment::Step(step));
        (0..self.tracks.len()).filter(|&ix| from_step(&self.scenario.expects[ix])).collect()
    }

    /// Whether it is about events rather than about the state of nodes.
    pub(super) fn is_event(&self, ix: usize) -> bool {
        self.scenario.expects[ix].fact.is_event()
    }

    /// An expectation begins to count. A second call changes nothing.
    pub(super) fn open(&mut self, ix: usize, at: Instant, engine: &dyn Engine) {
        let track = &mut self.tracks[ix];
        if track.open_since.is_some() || track.decided.is_some() {
            return;
        }
        track.open_since = Some(at);
        let expect = &self.scenario.expects[ix];
        if let Fact::Event(_) = expect.fact {
            self.on_event.push(ix);
            return;
        }
        if expect.window == Window::AtEnd {
            return;
        }
        track.says = survey(self.scenario, &expect.fact, &self.truth, engine);
        let lists = match expect.fact {
            Fact::View { .. } | Fact::Counter { .. } => &mut self.on_change,
            Fact::Metric { .. }
            | Fact::Lease { .. }
            | Fact::Role { .. }
            | Fact::Decision { .. }
            | Fact::Audit { .. }
            | Fact::Event(_) => &mut self.on_step,
        };
        for host in asked(self.scenario, &expect.fact) {
            lists[host.0].push(ix);
        }
        if matches!(expect.fact, Fact::Counter { value: Bound::Truth, .. }) {
            self.on_truth.push(ix);
        }
        self.weigh(ix, at, |scenario, fact, truth| testimony(scenario, fact, truth, engine));
    }

    /// A node reported an event that scenarios can name.
    pub(super) fn event(&mut self, step: &Step<'_>, kind: EventKind, event: &Event) {
        let mut hits = Vec::new();
        for &ix in &self.on_event {
            if let Fact::Event(wanted) = &self.scenario.expects[ix].fact
                && pattern::matches(wanted, kind, event, step.host, step.node)
            {
                hits.push(ix);
            }
        }
        for ix in hits {
            self.tracks[ix].seen_event = Some((step.at, step.host));
            self.on_event.retain(|&open| open != ix);
            match self.scenario.expects[ix].window {
                Window::By(_) | Window::Sometimes => self.decide(ix, true, step.at, None),
                Window::Never => {
                    let name = words::host_name(self.scenario, step.host);
                    let seen = match timeline::seal(event) {
                        Some(seal) => format!("{name} {seal}"),
                        None => format!("it happened on {name}"),
                    };
                    self.decide(ix, false, step.at, Some(seen));
                }
                Window::Always | Window::AtEnd => {}
            }
        }
    }

    /// A node handled an input. `changed` tells whether its view or document did.
    pub(super) fn step(&mut self, step: &Step<'_>, changed: bool) {
        if changed && !self.on_change[step.host.0].is_empty() {
            let list = self.on_change[step.host.0].clone();
            self.ask(&list, step);
        }
        if !self.on_step[step.host.0].is_empty() {
            let list = self.on_step[step.host.0].clone();
            self.ask(&list, step);
        }
    }

    fn ask(&mut self, list: &[usize], step: &Step<'_>) {
        for &ix in list {
            if let Fact::Audit { .. } = &self.scenario.expects[ix].fact {
                let rows = belief::rows_version(step.node);
                let audited = &mut self.tracks[ix].audited[step.host.0];
                if std::mem::replace(audited, rows) == rows {
                    continue;
                }
            }
            let witness = Witness { node: step.node, metrics: &|| step.metrics() };
            let says = says(&self.scenario.expects[ix].fact, witness, &self.truth);
            let said = &mut self.tracks[ix].says[step.host.0];
            if *said == says {
                continue;
            }
            *said = says;
            self.weigh(ix, step.at, |scenario, fact, truth| {
                vec![testify(scenario, step.host, fact, witness, truth)]
            });
        }
    }

    /// A host went down: it is not asked any more, and what the others say counts alone.
    pub(super) fn down(&mut self, host: HostIx, at: Instant) {
        let list: Vec<usize> = self.on_change[host.0].iter().chain(&self.on_step[host.0]).copied().collect();
        for ix in list {
            self.tracks[ix].says[host.0] = Says::Nothing;
            self.tracks[ix].audited[host.0] = None;
            self.weigh(ix, at, |_, _, _| Vec::new());
        }
    }

    /// The workload added to a counter.
    pub(super) fn incremented(&mut self, counter: &CounterName, by: u64, at: Instant, engine: &dyn Engine) {
        let sum = self.truth.entry(counter.clone()).or_default();
        *sum = sum.saturating_add(by);
        for ix in self.on_truth.clone() {
            let fact = &self.scenario.expects[ix].fact;
            self.tracks[ix].says = survey(self.scenario, fact, &self.truth, engine);
            self.weigh(ix, at, |scenario, fact, truth| testimony(scenario, fact, truth, engine));
        }
    }

    /// The last moment of a `by` has passed.
    pub(super) fn deadline(&mut self, ix: usize, at: Instant, engine: &dyn Engine) {
        if self.tracks[ix].decided.is_some() {
            return;
        }
        let seen = self.unmet(ix, engine);
        self.decide(ix, false, at, Some(seen));
    }

    /// The time limit: `always` and `never` have stood their test.
    pub(super) fn end_drill(&mut self, at: Instant, engine: &dyn Engine) {
        for ix in 0..self.tracks.len() {
            let track = &self.tracks[ix];
            if track.decided.is_some() {
                continue;
            }
            let window = self.scenario.expects[ix].window;
            if !matches!(window, Window::Always | Window::Never) {
                continue;
            }
            if track.open_since.is_none() {
                self.decide(
                    ix,
                    false,
                    at,
                    Some("its `from` never came, so nothing was looked at".to_owned()),
                );
            } else if window == Window::Always
                && !self.tracks[ix].says.iter().any(|&says| says != Says::Nothing)
            {
                let seen = self.unmet(ix, engine);
                self.decide(ix, false, at, Some(seen));
            } else {
                self.decide(ix, true, at, None);
            }
        }
    }

    /// After the liveness phase: everything else is decided.
    pub(super) fn end_run(&mut self, at: Instant, engine: &dyn Engine) {
        for ix in 0..self.tracks.len() {
            if self.tracks[ix].decided.is_some() {
                continue;
            }
            let expect = &self.scenario.expects[ix];
            let track = &self.tracks[ix];
            let held = expect.window == Window::AtEnd
                && if expect.fact.is_event() {
                    track.seen_event.is_some()
                } else {
                    track.open_since.is_some()
                        && verdict(&survey(self.scenario, &expect.fact, &self.truth, engine)) == Says::True
                };
            let seen = (!held).then(|| self.unmet(ix, engine));
            self.decide(ix, held, at, seen);
        }
    }

    /// The run ended early: what was not decided by then did not hold.
    pub(super) fn abandon(&mut self, at: Instant) {
        for ix in 0..self.tracks.len() {
            if self.tracks[ix].decided.is_none() {
                self.decide(ix, false, at, Some("the run ended before it was decided".to_owned()));
            }
        }
    }

    /// Whether everything decided so far held.
    pub(super) fn all_held(&self) -> bool {
        self.tracks.iter().all(|track| track.decided.as_ref().is_none_or(|decision| decision.held))
    }

    /// What was decided since the last call, in words: which, the expectation, whether it held, when.
    pub(super) fn take_news(&mut self) -> Vec<(usize, String, bool, Instant)> {
        let news = std::mem::take(&mut self.news);
        let tell = |ix: usize| {
            let decision = self.tracks[ix].decided.as_ref()?;
            let mut text = words::expect(self.scenario, &self.scenario.expects[ix]);
            text.push_str(if decision.held { ": holds" } else { ": does not hold" });
            if let Some(seen) = &decision.seen {
                text.push_str(", ");
                text.push_str(seen);
            }
            Some((ix, text, decision.held, decision.at))
        };
        news.into_iter().filter_map(tell).collect()
    }

    /// Whether something was decided since the last call of [`Expectations::take_news`].
    pub(super) fn has_news(&self) -> bool {
        !self.news.is_empty()
    }

    /// The verdicts, in the order of the file.
    pub(super) fn results(&self) -> Vec<ExpectationResult> {
        let result = |(track, expect): (&Track, &Expect)| {
            let decision = track.decided.clone().unwrap_or(Decision {
                held: false,
                at: Instant::ZERO,
                seen: Some("the run ended before it was decided".to_owned()),
            });
            ExpectationResult {
                text: words::expect(self.scenario, expect),
                held: decision.held,
                at_us: decision.at.as_micros(),
                seen: decision.seen,
                span: expect.span,
            }
        };
        self.tracks.iter().zip(&self.scenario.expects).map(result).collect()
    }

    /// Decides an expectation about nodes if what they say now does so.
    fn weigh(
        &mut self,
        ix: usize,
        at: Instant,
        testimony: impl FnOnce(&Scenario, &Fact, &Truth) -> Vec<String>,
    ) {
        let expect = &self.scenario.expects[ix];
        match (expect.window, verdict(&self.tracks[ix].says)) {
            (Window::By(_) | Window::Sometimes, Says::True) => self.decide(ix, true, at, None),
            (Window::Always, Says::False) | (Window::Never, Says::True) => {
                let told = testimony(self.scenario, &expect.fact, &self.truth);
                let seen = if told.is_empty() {
                    "it became so when a node went down".to_owned()
                } else {
                    told.join("; ")
                };
                self.decide(ix, false, at, Some(seen));
            }
            (Window::By(_) | Window::Always | Window::Never | Window::AtEnd | Window::Sometimes, _) => {}
        }
    }

    fn decide(&mut self, ix: usize, held: bool, at: Instant, seen: Option<String>) {
        self.tracks[ix].decided = Some(Decision { held, at, seen });
        self.news.push(ix);
        for list in self.on_change.iter_mut().chain(&mut self.on_step) {
            list.retain(|&open| open != ix);
        }
        self.on_event.retain(|&open| open != ix);
        self.on_truth.retain(|&open| open != ix);
    }

    /// What there was instead of a fact that did not come true.
    fn unmet(&self, ix: usize, engine: &dyn Engine) -> String {
        let expect = &self.scenario.expects[ix];
        if self.tracks[ix].open_since.is_none() {
            return "its `from` never came, so nothing was looked at".to_owned();
        }
        if let Fact::Event(_) = expect.fact {
            return "it did not happen".to_owned();
        }
        let told = testimony(self.scenario, &expect.fact, &self.truth, engine);
        if told.is_empty() { "none of the nodes it asks runs".to_owned() } else { told.join("; ") }
    }
}

/// The hosts a fact asks.
fn asked(scenario: &Scenario, fact: &Fact) -> Vec<HostIx> {
    match fact.on() {
        [] if fact.is_event() => Vec::new(),
        [] => (0..scenario.hosts.len()).map(HostIx).collect(),
        named => named.to_vec(),
    }
}

/// What a fact comes to, given what each host says.
fn verdict(says: &[Says]) -> Says {
    if says.contains(&Says::False) {
        Says::False
    } else if says.contains(&Says::True) {
        Says::True
    } else {
        Says::Nothing
    }
}

/// Asks every host a fact names.
fn survey(scenario: &Scenario, fact: &Fact, truth: &Truth, engine: &dyn Engine) -> Vec<Says> {
    let mut all = vec![Says::Nothing; scenario.hosts.len()];
    for host in asked(scenario, fact) {
        if engine.state(host) != HostState::Down {
            let metrics = || engine.metrics(host).unwrap_or_default();
            engine.with_node(host, &mut |node| {
                all[host.0] = says(fact, Witness { node, metrics: &metrics }, truth);
            });
        }
    }
    all
}

/// What every host a fact names has to show, in words.
fn testimony(scenario: &Scenario, fact: &Fact, truth: &Truth, engine: &dyn Engine) -> Vec<String> {
    let mut told = Vec::new();
    for host in asked(scenario, fact) {
        if engine.state(host) != HostState::Down {
            let metrics = || engine.metrics(host).unwrap_or_default();
            engine.with_node(host, &mut |node| {
                told.push(testify(scenario, host, fact, Witness { node, metrics: &metrics }, truth));
            });
        }
    }
    told
}

/// What one node says of a fact.
fn says(fact: &Fact, witness: Witness<'_>, truth: &Truth) -> Says {
    let node = witness.node;
    if node.has_departed() {
        return Says::Nothing;
    }
    let holds = match fact {
        Fact::View { members, .. } => view_is(node, members),
        Fact::Counter { name, value, .. } => meets(*value, node.counter(name), truth.get(name)),
        Fact::Metric { name, label, value, .. } => {
            metric(witness, name, label.as_ref()).is_some_and(|reading| meets(*value, reading, None))
        }
        Fact::Lease { .. } | Fact::Role { .. } | Fact::Decision { .. } | Fact::Audit { .. } => {
            match belief::holds(fact, node) {
                Some(holds) => holds,
                None => return Says::Nothing,
            }
        }
        Fact::Event(_) => return Says::Nothing,
    };
    if holds { Says::True } else { Says::False }
}

/// What one node has to show, in words.
fn testify(scenario: &Scenario, host: HostIx, fact: &Fact, witness: Witness<'_>, truth: &Truth) -> String {
    let node = witness.node;
    let name = words::host_name(scenario, host);
    match fact {
        Fact::View { .. } => {
            let mut ids: Vec<&str> = node.peers_in_view().map(|(id, _)| id.as_str()).collect();
            ids.push(node.id().as_str());
            ids.sort_unstable();
            format!("{name} sees {}", words::list(ids))
        }
        Fact::Counter { name: counter, value: Bound::Truth, .. } => {
            let added = truth.get(counter).copied().unwrap_or_default();
            format!("{name} reads {} of {added}", node.counter(counter))
        }
        Fact::Counter { name: counter, .. } => format!("{name} reads {}", node.counter(counter)),
        Fact::Metric { name: series, label, .. } => match metric(witness, series, label.as_ref()) {
            Some(reading) => format!("{name} has {reading}"),
            None => format!("{name} has no such series"),
        },
        Fact::Lease { .. } | Fact::Role { .. } | Fact::Decision { .. } | Fact::Audit { .. } => {
            belief::testify(fact, node, name)
        }
        Fact::Event(_) => String::new(),
    }
}

/// Whether a node's view is exactly these ids, in whatever order they are given.
fn view_is(node: &Node, members: &[NodeId]) -> bool {
    let mut peers = 0;
    for (id, _) in node.peers_in_view() {
        if !members.contains(id) {
            return false;
        }
        peers += 1;
    }
    peers + 1 == members.len() && members.contains(node.id())
}

fn meets(bound: Bound, reading: u64, truth: Option<&u64>) -> bool {
    match bound {
        Bound::Equals(value) => reading == value,
        Bound::AtLeast(value) => reading >= value,
        Bound::AtMost(value) => reading <= value,
        Bound::Truth => reading == truth.copied().unwrap_or_default(),
    }
}

fn metric(witness: Witness<'_>, name: &str, label: Option<&(String, String)>) -> Option<u64> {
    let metrics = (witness.metrics)();
    let wanted = label.map(|(label, value)| (label.as_str(), value.as_str()));
    let issuance = witness.node.issuance().map(|issuance| issuance.metrics().series());
    let mut series = metrics.series().chain(issuance.into_iter().flatten());
    series.find(|series| series.name == name && series.label == wanted).map(|series| series.value)
}
