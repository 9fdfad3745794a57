//! Steps and expectations, written.

use std::collections::BTreeSet;

use firedrill_core::id::NodeId;
use firedrill_core::issuance::decimal::Decimal;
use firedrill_core::issuance::election::Decision;

use super::page::{Page, Value};
use crate::scenario::catalog::{
    About, DISK_STATES, DISKS, EVENTS, FLOOD_KINDS, FLOODS, ending_name, figure_name, role_name,
};
use crate::scenario::model::{
    Bound, DiskState, EventKind, EventPattern, Expect, Fact, FloodKind, HostIx, Moment, Scenario, Start,
    Step, StepIx, Target, Verb, Window,
};

/// The drill of a scenario, ready to be written.
#[derive(Debug)]
pub(super) struct Drill<'s> {
    scenario: &'s Scenario,
    /// The steps in the order they are written.
    order: Vec<StepIx>,
    /// By step: its id, its own or one that others need.
    ids: Vec<Option<String>>,
}

impl<'s> Drill<'s> {
    pub(super) fn of(scenario: &'s Scenario) -> Self {
        let order = order(scenario);
        let ids = ids(scenario, &order);
        Self { scenario, order, ids }
    }

    pub(super) fn write_steps(&self, page: &mut Page) {
        let mut above = None;
        for &ix in &self.order {
            if let Some(step) = self.scenario.steps.get(ix.0) {
                self.step(ix, step, above, page);
            }
            above = Some(ix);
        }
    }

    pub(super) fn write_expects(&self, page: &mut Page) {
        for expect in &self.scenario.expects {
            self.expect(expect, page);
        }
    }

    fn id(&self, ix: StepIx) -> Value {
        Value::text(self.ids.get(ix.0).and_then(Option::as_deref).unwrap_or_default())
    }

    /// One step; `above` is the one that stands right above it.
    fn step(&self, ix: StepIx, step: &Step, above: Option<StepIx>, page: &mut Page) {
        page.section("[[step]]");
        if self.ids.get(ix.0).is_some_and(Option::is_some) {
            page.entry("id", &self.id(ix));
        }
        match &step.start {
            Start::At(at) => page.entry("at", &Value::duration(*at)),
            Start::AfterStep(other, delay) if above == Some(*other) => {
                page.entry("after", &Value::duration(*delay));
            }
            Start::AfterStep(_, delay) | Start::AfterEvent(_, delay) => {
                let when = match &step.start {
                    Start::AfterEvent(pattern, _) => event(self.scenario, pattern),
                    Start::AfterStep(other, _) => self.id(*other),
                    Start::At(_) => Value::duration(*delay),
                };
                page.entry("when", &when);
                if !delay.is_zero() {
                    page.entry("after", &Value::duration(*delay));
                }
            }
        }
        let (name, value) = verb(self.scenario, &step.verb);
        page.entry(name, &value);
        for (key, time) in [("for", step.lasts), ("every", step.every), ("until", step.until)] {
            if let Some(time) = time {
                page.entry(key, &Value::duration(time));
            }
        }
    }

    fn expect(&self, expect: &Expect, page: &mut Page) {
        page.section("[[expect]]");
        match expect.from {
            None => {}
            Some(Moment::At(at)) => page.entry("from", &Value::duration(at)),
            Some(Moment::Step(step)) => page.entry("from", &self.id(step)),
        }
        let (name, value) = fact(self.scenario, &expect.fact);
        let window = match expect.window {
            Window::By(by) => {
                page.entry("by", &Value::duration(by));
                page.entry(name, &value);
                return;
            }
            Window::Always => "always",
            Window::Never => "never",
            Window::AtEnd => "at_end",
            Window::Sometimes => "sometimes",
        };
        page.entry(window, &Value::table([(name, value)]));
    }
}

/// Puts the steps of a scenario in the order in which they are written, each with the id that others need there. What is
/// drawn for a symbol depends on the place and the id of its step, so a scenario that was read from several files has to
/// run as the one file that tells it.
pub(in crate::scenario) fn put_in_order(scenario: &mut Scenario) {
    let order = order(scenario);
    if order.is_sorted() {
        return;
    }
    let mut ids = ids(scenario, &order);
    let place = |ix: StepIx| StepIx(order.iter().position(|&old| old == ix).unwrap_or(ix.0));
    let mut steps = Vec::with_capacity(order.len());
    for &StepIx(ix) in &order {
        let mut step = scenario.steps[ix].clone();
        step.id = ids[ix].take();
        if let Start::AfterStep(other, _) = &mut step.start {
            *other = place(*other);
        }
        steps.push(step);
    }
    scenario.steps = steps;
    for expect in &mut scenario.expects {
        if let Some(Moment::Step(step)) = &mut expect.from {
            *step = place(*step);
        }
    }
}

/// The steps as they stand where they are in the order they fire, as the reader demands within one file; else,
/// where an include brought them out of it, sorted by the moment they count from.
///
/// A step that waits for an event stays right behind the step before it, from which on it waits.
fn order(scenario: &Scenario) -> Vec<StepIx> {
    let steps = &scenario.steps;
    let at = |step: &Step| if let Start::At(at) = step.start { Some(at) } else { None };
    let mut order: Vec<StepIx> = (0..steps.len()).map(StepIx).collect();
    if steps.iter().filter_map(at).is_sorted() {
        return order;
    }
    let mut moments = Vec::with_capacity(steps.len());
    for step in steps {
        let moment = match &step.start {
            Start::At(at) => *at,
            Start::AfterStep(other, _) => moments.get(other.0).copied().unwrap_or_default(),
            Start::AfterEvent(..) => moments.last().copied().unwrap_or_default(),
        };
        moments.push(moment);
    }
    order.sort_by_key(|ix| moments.get(ix.0).copied());
    order
}

/// The ids that steps have, and one for every other step that something refers to by more than its place.
fn ids(scenario: &Scenario, order: &[StepIx]) -> Vec<Option<String>> {
    let steps = &scenario.steps;
    let mut ids: Vec<Option<String>> = steps.iter().map(|step| step.id.clone()).collect();
    let mut taken: BTreeSet<String> = ids.iter().flatten().cloned().collect();
    let mut needed: Vec<StepIx> = Vec::new();
    for (place, ix) in order.iter().enumerate() {
        let above = place.checked_sub(1).and_then(|place| order.get(place));
        if let Some(Start::AfterStep(other, _)) = steps.get(ix.0).map(|step| &step.start)
            && above != Some(other)
        {
            needed.push(*other);
        }
    }
    for expect in &scenario.expects {
        if let Some(Moment::Step(step)) = expect.from {
            needed.push(step);
        }
    }
    for ix in needed {
        if let (Some(id @ None), Some(step)) = (ids.get_mut(ix.0), steps.get(ix.0)) {
            let (name, _) = verb(scenario, &step.verb);
            let numbered = (2..).map(|n| format!("{name}-{n}"));
            let fresh = std::iter::once(name.to_owned()).chain(numbered).find(|name| !taken.contains(name));
            taken.extend(fresh.clone());
            *id = fresh;
        }
    }
    ids
}

/// A verb's word and what stands behind it.
fn verb(scenario: &Scenario, verb: &Verb) -> (&'static str, Value) {
    let target = |target: &Target| Value::target(scenario, target);
    let way = |from: &Target, to: &Target| Value::table([("from", target(from)), ("to", target(to))]);
    match verb {
        Verb::Kill(whom) => ("kill", target(whom)),
        Verb::Stop(whom) => ("stop", target(whom)),
        Verb::Restart { target: whom, wall_step_us: None, addr: None, lose_disk: false } => {
            ("restart", target(whom))
        }
        Verb::Restart { target: whom, wall_step_us, addr, lose_disk } => {
            let wall = wall_step_us.map(|us| ("wall", Value::offset(us)));
            let addr = addr.map(|addr| ("addr", Value::text(&addr.to_string())));
            let lost = lose_disk.then(|| ("lose_disk", Value::Atom("true".to_owned())));
            (
                "restart",
                Value::table([("target", target(whom))].into_iter().chain(wall).chain(addr).chain(lost)),
            )
        }
        Verb::Pause(whom) => ("pause", target(whom)),
        Verb::Resume(whom) => ("resume", target(whom)),
        Verb::Partition(groups) => {
            ("partition", Value::List(groups.iter().map(|group| Value::group(scenario, group)).collect()))
        }
        Verb::Isolate(whom) => ("isolate", target(whom)),
        Verb::Heal => ("heal", Value::Atom("true".to_owned())),
        Verb::Cut { from, to } => ("cut", way(from, to)),
        Verb::Hold { from, to } => ("hold", way(from, to)),
        Verb::Release { from, to } => ("release", way(from, to)),
        Verb::Link { from, to, latency, loss_ppm, duplicate_ppm, reorder_ppm, bandwidth } => {
            let shares = [("loss", loss_ppm), ("duplicate", duplicate_ppm), ("reorder", reorder_ppm)];
            let entries = [("from", target(from)), ("to", target(to))]
                .into_iter()
                .chain(latency.map(|(low, high)| ("latency", Value::latency(low, high))))
                .chain(shares.into_iter().filter_map(|(key, ppm)| Some((key, Value::share((*ppm)?)))))
                .chain(bandwidth.map(|bytes| ("bandwidth", Value::bandwidth(bytes))));
            ("link", Value::table(entries))
        }
        Verb::HalfOpen { from, to } => ("half_open", way(from, to)),
        Verb::ClockStep { target: whose, by_us } => {
            ("clock_step", Value::table([("target", target(whose)), ("by", Value::offset(*by_us))]))
        }
        Verb::ClockRate { target: whose, rate_ppm } => {
            ("clock_rate", Value::table([("target", target(whose)), ("rate", Value::rate(*rate_ppm))]))
        }
        Verb::ClockFreeze(whose) => ("clock_freeze", target(whose)),
        Verb::Disk { target: whose, disk } => {
            let state =
                (disk.state != DiskState::Works).then(|| ("state", Value::text(disk_state(disk.state))));
            let latency = (!disk.latency.is_zero()).then(|| ("latency", Value::duration(disk.latency)));
            ("disk", Value::table([("target", target(whose))].into_iter().chain(state).chain(latency)))
        }
        Verb::ReplayFrames { from, to, captured_from, captured_until, count } => {
            // Without an end all frames so far are meant; the end of the drill lies past them just as well.
            let everything = captured_from.is_zero() && captured_until.is_none();
            let until = captured_until.unwrap_or(scenario.time_limit);
            let captured = (!everything).then(|| ("captured", Value::stretch(*captured_from, until)));
            let entries = [("from", target(from)), ("to", target(to))]
                .into_iter()
                .chain(captured)
                .chain([("count", Value::number(*count as u64))]);
            ("replay_frames", Value::table(entries))
        }
        Verb::CorruptFrames { from, to, rate_ppm } => {
            let entries = [("from", target(from)), ("to", target(to)), ("rate", Value::share(*rate_ppm))];
            ("corrupt_frames", Value::table(entries))
        }
        Verb::ForgeFrames { sender, to, count } => {
            let count = Value::number(*count as u64);
            ("forge_frames", Value::table([("sender", target(sender)), ("to", target(to)), ("count", count)]))
        }
        Verb::Flood { to, connections, garbage } => {
            let connections = Value::number(*connections as u64);
            let send = Value::text(flood(*garbage));
            ("flood", Value::table([("to", target(to)), ("connections", connections), ("send", send)]))
        }
        Verb::AddNode(whom) => ("add_node", target(whom)),
        Verb::RemoveNode(whom) => ("remove_node", target(whom)),
        Verb::PauseIssuance(whom) => ("pause_issuance", target(whom)),
        Verb::ResumeIssuance(whom) => ("resume_issuance", target(whom)),
    }
}

fn disk_state(state: DiskState) -> &'static str {
    let mut known = DISK_STATES.into_iter().zip(DISKS);
    known.find(|(known, _)| *known == state).map_or("", |(_, word)| word)
}

fn flood(kind: FloodKind) -> &'static str {
    let mut known = FLOOD_KINDS.into_iter().zip(FLOODS);
    known.find(|(known, _)| *known == kind).map_or("", |(_, word)| word)
}

/// A fact's word and what stands behind it.
fn fact(scenario: &Scenario, fact: &Fact) -> (&'static str, Value) {
    let on = |on: &[HostIx]| (!on.is_empty()).then(|| ("on", Value::hosts(scenario, on)));
    match fact {
        Fact::View { on: whose, members } => {
            let members = Value::List(members.iter().map(|id| member(scenario, id)).collect());
            let value = match on(whose) {
                None => members,
                Some(on) => Value::table([on, ("members", members)]),
            };
            ("view", value)
        }
        Fact::Counter { on: whose, name, value } => {
            let entries = [("name", Value::text(name.as_str())), bound(*value)];
            ("counter", Value::table(entries.into_iter().chain(on(whose))))
        }
        Fact::Event(pattern) => match rows_of(pattern) {
            Some(host) => ("sealed_by", Value::host(scenario, host)),
            None => ("event", event(scenario, pattern)),
        },
        Fact::Metric { on: whose, name, label, value } => {
            // The reader knows no labels but these two.
            let known = ["reason", "table", "decision"];
            let label = label.as_ref().and_then(|(label, value)| {
                known.into_iter().find(|known| known == label).map(|known| (known, Value::text(value)))
            });
            let entries = std::iter::once(("name", Value::text(name)))
                .chain(label)
                .chain([bound(*value)])
                .chain(on(whose));
            ("metric", Value::table(entries))
        }
        Fact::Lease { on: whose, holder, epoch } => {
            let holder = holder.as_ref().map(|id| ("holder", member(scenario, id)));
            let epoch = epoch.map(|epoch| ("epoch", Value::number(epoch.0)));
            ("lease", Value::table(holder.into_iter().chain(epoch).chain(on(whose))))
        }
        Fact::Role { on: whose, is } => {
            let is = ("is", Value::text(role_name(*is)));
            ("role", Value::table(on(whose).into_iter().chain([is])))
        }
        Fact::Decision { on: whose, decision, successor } => {
            let name = Decision::NAMES.get(*decision).copied().unwrap_or_default();
            let word = match successor {
                Some(id) => format!("{name}_{}", member_name(scenario, id)),
                None => name.to_owned(),
            };
            ("decision", Value::table(on(whose).into_iter().chain([("is", Value::text(&word))])))
        }
        Fact::Audit { on: whose, figure, value } => {
            let (key, reading) = bound(*value);
            let reading = match value {
                Bound::Equals(places) | Bound::AtLeast(places) | Bound::AtMost(places)
                    if figure.is_amount() =>
                {
                    Value::text(&Decimal::from_units(u128::from(*places)).to_string())
                }
                Bound::Equals(_) | Bound::AtLeast(_) | Bound::AtMost(_) | Bound::Truth => reading,
            };
            let figure = ("figure", Value::text(figure_name(*figure)));
            ("audit", Value::table([figure, (key, reading)].into_iter().chain(on(whose))))
        }
    }
}

/// The host whose rows an event means, when it means any row of it.
fn rows_of(pattern: &EventPattern) -> Option<HostIx> {
    let any = EventPattern { on: None, ..pattern.clone() }
        == EventPattern {
            kind: EventKind::Sealed,
            subject: None,
            on: None,
            reason: None,
            epoch: None,
            elapsed: None,
        };
    pattern.on.filter(|_| any)
}

fn bound(bound: Bound) -> (&'static str, Value) {
    match bound {
        Bound::Equals(value) => ("equals", Value::number(value)),
        Bound::AtLeast(value) => ("at_least", Value::number(value)),
        Bound::AtMost(value) => ("at_most", Value::number(value)),
        Bound::Truth => ("equals", Value::text("truth")),
    }
}

/// An event: what happened to whom, seen where, and why.
fn event(scenario: &Scenario, pattern: &EventPattern) -> Value {
    let is_rejection = |kind| matches!(kind, EventKind::Rejected(_));
    let same = |kind| kind == pattern.kind || (is_rejection(kind) && is_rejection(pattern.kind));
    let Some(known) = EVENTS.iter().find(|known| same(known.kind)) else {
        return Value::table([]);
    };
    let host = pattern.on.map(|host| Value::host(scenario, host));
    let anybody = || Value::text("any");
    let (what, on) = match (known.about, pattern.kind) {
        (About::Host, _) => (host.unwrap_or_else(anybody), None),
        (About::Reason, EventKind::Rejected(reason)) => (Value::text(reason.name()), host),
        (About::Member | About::Reason, _) => {
            (pattern.subject.as_ref().map_or_else(anybody, |id| member(scenario, id)), host)
        }
    };
    let reason = pattern.reason.map(|reason| ("reason", Value::text(ending_name(reason))));
    let epoch = pattern.epoch.map(|epoch| ("epoch", Value::number(epoch.0)));
    let elapsed = pattern.elapsed.map(|elapsed| ("elapsed", Value::number(elapsed)));
    let beside = on.map(|on| ("on", on)).into_iter().chain(reason).chain(epoch).chain(elapsed);
    Value::table(std::iter::once((known.name, what)).chain(beside))
}

/// A member: the name of the first host that bears the id.
fn member(scenario: &Scenario, id: &NodeId) -> Value {
    Value::text(member_name(scenario, id))
}

fn member_name<'s>(scenario: &'s Scenario, id: &'s NodeId) -> &'s str {
    let host = scenario.hosts.iter().find(|host| host.id == *id);
    host.map_or(id.as_str(), |host| host.name.as_str())
}
