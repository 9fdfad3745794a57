//! Runs the drill: fires what is due, lets the engine go on to the next of it.
//!
//! The conductor acts between handled inputs. What it does at a moment comes before what the engine handles at
//! that moment, except for a step that an event triggers, which comes right after that event.
//!
//! Spec: docs/protocol.md, decision 17.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::time::Duration;

use firedrill_core::id::NodeId;
use firedrill_core::io::Command;
use firedrill_core::rng::{Rng, Seed};
use firedrill_core::time::Instant;

use super::actions::{Action, Reboot, plan, settle};
use super::applied::{By, Log};
use super::faults::{Effect, Standing, Token};
use super::lease::{Line, names_the_line};
use super::observer::Observer;
use super::reach::Reach;
use super::schedule::{Due, Schedule};
use super::targets::Hosts;
use super::words;
use crate::engine::{Engine, Fault, FaultId, HostState};
use crate::outcome::EntryKind;
use crate::scenario::model::{HostIx, Moment, Scenario, Span, Start, Step, StepIx, Verb, Window};

/// Two boots of one id are at least this far apart, so that their incarnations (milliseconds of the wall clock)
/// differ.
const BOOTS_APART: Duration = Duration::from_millis(1);

/// How many earlier firings a firing is paired with at most.
const NEIGHBOURS_MAX: usize = 16;

/// A step that fired, and what there is to say about its effect.
#[derive(Debug)]
struct Firing {
    step: StepIx,
    at: Instant,
    effect: Traces,
}

impl Firing {
    /// Whether it changed anything.
    fn acted(&self, engine: &dyn Engine) -> bool {
        match &self.effect {
            Traces::Acted(acted) => *acted,
            Traces::Faults(faults) => faults.iter().any(|&fault| engine.had_effect(fault)),
        }
    }
}

/// How to tell whether a step had an effect.
#[derive(Debug)]
enum Traces {
    /// It acts by its nature, if there was anything to act on.
    Acted(bool),
    /// The engine knows.
    Faults(Vec<FaultId>),
}

/// A step in the run.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    first: Option<Instant>,
    firings: u64,
}

/// One run's state besides the engine's.
#[derive(Debug)]
pub(super) struct Conductor<'s> {
    pub(super) scenario: &'s Scenario,
    seed: Seed,
    pub(super) schedule: Schedule,
    standing: Standing,
    pub(super) observer: Observer<'s>,
    progress: Vec<Progress>,
    firings: Vec<Firing>,
    /// Steps whose standing effect ends, by its token.
    endings: BTreeMap<Token, StepIx>,
    /// How a delayed boot is to happen.
    delayed: BTreeMap<HostIx, Reboot>,
    /// When a boot of an id last began.
    last_boot: BTreeMap<NodeId, Instant>,
    booted: Vec<bool>,
    /// Whom the operator has stopped from sealing.
    hushed: BTreeSet<HostIx>,
    /// Per workload: whose turn it is.
    turns: Vec<usize>,
    /// When a fault last began or ended.
    pub(super) last_fault: Instant,
    pub(super) increments: u64,
    /// What was applied, where it is asked for.
    pub(super) log: Log,
}

/// Goes on, or ends because the observer has had enough.
pub(super) type Run = ControlFlow<()>;

impl<'s> Conductor<'s> {
    pub(super) fn new(scenario: &'s Scenario, seed: &Seed, observer: Observer<'s>, log: Log) -> Self {
        Self {
            scenario,
            seed: seed.fork("drill"),
            schedule: Schedule::default(),
            standing: Standing::new(scenario.net),
            observer,
            progress: vec![Progress::default(); scenario.steps.len()],
            firings: Vec::new(),
            endings: BTreeMap::new(),
            delayed: BTreeMap::new(),
            last_boot: BTreeMap::new(),
            booted: vec![false; scenario.hosts.len()],
            hushed: BTreeSet::new(),
            turns: vec![0; scenario.workloads.len()],
            last_fault: Instant::ZERO,
            increments: 0,
            log,
        }
    }

    /// The drill proper: from the first boot to the time limit.
    pub(super) fn drill(&mut self, engine: &mut dyn Engine) -> Run {
        self.prepare(engine);
        for position in 0..self.scenario.hosts.len() {
            if self.scenario.hosts[position].from_start {
                self.boot(HostIx(position), Reboot::default(), engine);
            }
        }
        self.run_to(Instant::ZERO.after(self.scenario.time_limit), engine)
    }

    /// The time limit: faults that still stand end, and clients stop.
    pub(super) fn end_drill(&mut self, engine: &mut dyn Engine) -> Run {
        self.schedule.end_drill();
        self.log.by(By::DrillEnd);
        let faults = self.standing.end_all();
        let ended = faults.len() + self.hushed.len();
        self.apply_all(&faults, engine);
        let hushed: Vec<HostIx> = self.hushed.iter().copied().collect();
        self.operate(&hushed, false, engine);
        let now = engine.now();
        self.observer.expectations.end_drill(now, &*engine);
        self.observer.tell_decisions();
        self.observer.show_failures(&*engine);
        self.observer.timeline.tell(now, EntryKind::Phase, || match ended {
            0 => "the drill is over: the workload stops".to_owned(),
            _ => "the drill is over: the workload stops, standing faults end".to_owned(),
        });
        self.over()
    }

    /// Lets the engine run to a moment and fires everything due before it.
    pub(super) fn run_to(&mut self, until: Instant, engine: &mut dyn Engine) -> Run {
        while engine.now() < until {
            self.fire_due(engine)?;
            let next = self.schedule.next_at().map_or(until, |at| at.min(until));
            engine.run_until(next, &mut self.observer);
            self.observer.show_failures(&*engine);
            self.take_triggered();
            self.over()?;
        }
        Run::Continue(())
    }

    /// Fires everything that is due now.
    pub(super) fn fire_due(&mut self, engine: &mut dyn Engine) -> Run {
        while let Some((_, due)) = self.schedule.pop_due(engine.now()) {
            let now = engine.now();
            match due {
                Due::OpenEvents(ix) | Due::OpenState(ix) => {
                    self.observer.expectations.open(ix, now, &*engine);
                }
                Due::Deadline(ix) => {
                    let by = match self.scenario.expects[ix].window {
                        Window::By(by) => Instant::ZERO.after(by),
                        Window::Always | Window::Never | Window::AtEnd | Window::Sometimes => now,
                    };
                    self.observer.expectations.deadline(ix, by, &*engine);
                }
                Due::End(token) => self.end(token, engine),
                Due::Boot(host) => {
                    if let Some(how) = self.delayed.remove(&host)
                        && engine.state(host) == HostState::Down
                    {
                        self.log.by(By::Delay);
                        self.boot(host, how, engine);
                    }
                }
                Due::Step(ix) => self.fire(ix, engine),
                Due::Tick(ix) => self.tick(ix, engine),
            }
            self.observer.tell_decisions();
            self.observer.show_failures(&*engine);
            self.take_triggered();
            self.over()?;
        }
        Run::Continue(())
    }

    /// Steps that never fired, in the file's words, and where they stand in it.
    pub(super) fn unfired(&self) -> Vec<(String, Span)> {
        let never = |ix: &usize| self.progress[*ix].first.is_none();
        let step = |ix: usize| (words::step(self.scenario, StepIx(ix)), self.scenario.steps[ix].span);
        (0..self.progress.len()).filter(never).map(step).collect()
    }

    /// What the run reached.
    pub(super) fn reach(&self, engine: &dyn Engine) -> Reach {
        let mut reach = self.observer.reach.clone();
        let near = self.push_longest() * 3;
        for (ix, firing) in self.firings.iter().enumerate() {
            let verb = self.scenario.steps[firing.step.0].verb.name();
            reach.fired.insert(verb);
            if firing.acted(engine) {
                reach.effective.insert(verb);
            }
            for before in &self.firings[ix.saturating_sub(NEIGHBOURS_MAX)..ix] {
                let step = &self.scenario.steps[before.step.0];
                if firing.at <= before.at.after(step.lasts.unwrap_or_default().saturating_add(near)) {
                    reach.pairs.insert((step.verb.name(), verb));
                }
            }
        }
        reach
    }

    /// The longest push interval of any host.
    pub(super) fn push_longest(&self) -> Duration {
        self.scenario.hosts.iter().map(|host| host.config.timing().push).max().unwrap_or_default()
    }

    /// The longest suspicion timeout of any host.
    pub(super) fn suspicion_longest(&self) -> Duration {
        self.scenario.hosts.iter().map(|host| host.config.timing().suspicion).max().unwrap_or_default()
    }

    /// Steps that changed nothing, with their moments, in the file's words.
    pub(super) fn ineffective(&self, engine: &dyn Engine) -> Vec<String> {
        let mut idle: BTreeMap<StepIx, Vec<Instant>> = BTreeMap::new();
        for firing in &self.firings {
            if !firing.acted(engine) {
                idle.entry(firing.step).or_default().push(firing.at);
            }
        }
        let tell = |(step, moments): (StepIx, Vec<Instant>)| {
            let name = words::step_name(self.scenario, step);
            let verb = words::verb(self.scenario, &self.scenario.steps[step.0].verb);
            let at = moments.first().copied().map_or_else(String::new, words::moment);
            match self.progress[step.0].firings {
                1 => format!("{name} ({verb} at {at}) changed nothing"),
                all => {
                    format!("{name} ({verb}) changed nothing {} of {all} times, first at {at}", moments.len())
                }
            }
        };
        idle.into_iter().map(tell).collect()
    }

    fn over(&self) -> Run {
        if self.observer.is_over() { Run::Break(()) } else { Run::Continue(()) }
    }

    /// Puts on the agenda what the file gives a time for.
    fn prepare(&mut self, engine: &dyn Engine) {
        for (ix, step) in self.scenario.steps.iter().enumerate() {
            match &step.start {
                Start::At(at) => self.schedule_step(StepIx(ix), Instant::ZERO.after(*at)),
                Start::AfterEvent(..) if ix == 0 => self.observer.arm(StepIx(0)),
                Start::AfterEvent(..) | Start::AfterStep(..) => {}
            }
        }
        for (ix, expect) in self.scenario.expects.iter().enumerate() {
            let event = self.observer.expectations.is_event(ix);
            let open = if event { Due::OpenEvents(ix) } else { Due::OpenState(ix) };
            match expect.from {
                None => self.observer.expectations.open(ix, Instant::ZERO, engine),
                Some(Moment::At(at)) => self.schedule.add(Instant::ZERO.after(at), open),
                Some(Moment::Step(_)) => {}
            }
            if let Window::By(by) = expect.window {
                // One tick later: what is handled at the deadline itself still counts.
                let past = Instant::ZERO.after(by).after(Duration::from_micros(1));
                self.schedule.add(past, Due::Deadline(ix));
            }
        }
        for (ix, workload) in self.scenario.workloads.iter().enumerate() {
            self.schedule.add(Instant::ZERO.after(workload.from), Due::Tick(ix));
        }
    }

    /// Nothing fires at the time limit or after it.
    fn schedule_step(&mut self, ix: StepIx, at: Instant) {
        if at < Instant::ZERO.after(self.scenario.time_limit) {
            self.schedule.add(at, Due::Step(ix));
        }
    }

    fn take_triggered(&mut self) {
        for (ix, at) in self.observer.take_triggered() {
            if let Start::AfterEvent(_, delay) = &self.scenario.steps[ix.0].start {
                self.schedule_step(ix, at.after(*delay));
            }
        }
    }

    fn fire(&mut self, ix: StepIx, engine: &mut dyn Engine) {
        let now = engine.now();
        let scenario = self.scenario;
        let step = &scenario.steps[ix.0];
        let opened = self.observer.expectations.opened_by(ix);
        if self.progress[ix.0].first.is_none() {
            self.progress[ix.0].first = Some(now);
            self.release_followers(ix, now);
            let expectations = &mut self.observer.expectations;
            for &expect in &opened {
                if expectations.is_event(expect) {
                    expectations.open(expect, now, &*engine);
                }
            }
        }
        let mut rng = self.rng(ix);
        self.progress[ix.0].firings += 1;
        let verb = settle(&step.verb, &self.hosts(&step.verb, engine), &mut rng);
        self.observer.tell_act(now, || {
            let text = words::verb(scenario, &verb);
            step.lasts.map_or_else(|| text.clone(), |lasts| format!("{text} for {}", words::time(lasts)))
        });
        self.log.by(By::Step(ix));
        let effect = self.act(ix, step, &verb, engine);
        self.firings.push(Firing { step: ix, at: now, effect });
        if let (Some(every), Some(until)) = (step.every, step.until)
            && now.after(every) <= Instant::ZERO.after(until)
        {
            self.schedule_step(ix, now.after(every));
        }
        for expect in opened {
            self.observer.expectations.open(expect, now, &*engine);
        }
    }

    /// Steps that count from this one are scheduled; the next one, if it waits for an event, begins to.
    fn release_followers(&mut self, ix: StepIx, now: Instant) {
        for (follower, step) in self.scenario.steps.iter().enumerate() {
            match &step.start {
                Start::AfterStep(after, delay) if *after == ix => {
                    self.schedule_step(StepIx(follower), now.after(*delay));
                }
                Start::AfterEvent(..) if follower == ix.0 + 1 => self.observer.arm(StepIx(follower)),
                Start::At(_) | Start::AfterStep(..) | Start::AfterEvent(..) => {}
            }
        }
    }

    /// A generator for one firing. Its label is what the step says, so other steps may come and go.
    fn rng(&self, ix: StepIx) -> Rng {
        let label = |step: &Step| match &step.id {
            Some(id) => id.clone(),
            None => words::verb(self.scenario, &step.verb),
        };
        let own = label(&self.scenario.steps[ix.0]);
        let namesakes = self.scenario.steps[..ix.0].iter().filter(|step| label(step) == own).count();
        let seed = self.seed.fork(&own).fork_index("namesake", namesakes as u64);
        seed.fork_index("firing", self.progress[ix.0].firings).rng()
    }

    /// The hosts as they are, for this verb to act on.
    fn hosts(&self, verb: &Verb, engine: &dyn Engine) -> Hosts {
        let state = |(position, &booted): (usize, &bool)| (engine.state(HostIx(position)), booted);
        let states = self.booted.iter().enumerate().map(state).collect();
        let asks = names_the_line(verb);
        Hosts { states, line: if asks { Line::of(self.scenario, engine) } else { Line::default() } }
    }

    fn act(&mut self, ix: StepIx, step: &Step, verb: &Verb, engine: &mut dyn Engine) -> Traces {
        let now = engine.now();
        match plan(verb, self.scenario, now.since(Instant::ZERO), step.lasts.is_some()) {
            Action::Down { hosts, graceful } => {
                self.standing.forget_pause(&hosts);
                let fault = if graceful { Fault::Stop } else { Fault::Kill };
                let faults: Vec<Fault> = hosts.iter().map(|&host| fault(host)).collect();
                let ids = self.apply_all(&faults, engine);
                self.stand(ix, step, Effect::Down(hosts), now);
                Traces::Faults(ids)
            }
            Action::Boot { hosts, how } => {
                self.standing.forget_pause(&hosts);
                for &host in &hosts {
                    if engine.state(host) != HostState::Down {
                        self.apply(&Fault::Kill(host), engine);
                    }
                    self.boot(host, how, engine);
                }
                Traces::Acted(!hosts.is_empty())
            }
            Action::Stand(effect) => {
                let faults = self.stand(ix, step, effect, now);
                Traces::Faults(self.apply_all(&faults, engine))
            }
            Action::Strike(faults) => Traces::Faults(self.apply_all(&faults, engine)),
            Action::Heal => {
                let faults = self.standing.heal();
                Traces::Acted(!self.apply_all(&faults, engine).is_empty())
            }
            Action::Release(pairs) => {
                let faults = self.standing.release(&pairs);
                Traces::Acted(!self.apply_all(&faults, engine).is_empty())
            }
            Action::Resume(hosts) => {
                let faults = self.standing.resume(&hosts);
                Traces::Acted(!self.apply_all(&faults, engine).is_empty())
            }
            Action::Operate { hosts, paused } => {
                if paused {
                    self.stand(ix, step, Effect::Hush(hosts.clone()), now);
                }
                Traces::Acted(self.operate(&hosts, paused, engine))
            }
        }
    }

    /// Lets an effect stand, and schedules its end if the step gives one.
    fn stand(&mut self, ix: StepIx, step: &Step, effect: Effect, now: Instant) -> Vec<Fault> {
        let (token, faults) = self.standing.begin(effect);
        if let Some(lasts) = step.lasts {
            self.endings.insert(token, ix);
            self.schedule.add(now.after(lasts), Due::End(token));
        }
        faults
    }

    /// The time that `for` gave is over.
    fn end(&mut self, token: Token, engine: &mut dyn Engine) {
        let Some(effect) = self.standing.stands(token).cloned() else { return };
        let step = self.endings.remove(&token);
        let scenario = self.scenario;
        self.observer.tell_act(engine.now(), || {
            let verb = step.map(|ix| words::verb(scenario, &scenario.steps[ix.0].verb));
            format!("end of {}", verb.unwrap_or_default())
        });
        self.log.by(step.map_or(By::DrillEnd, By::StepEnd));
        let faults = self.standing.end(token);
        self.apply_all(&faults, engine);
        if let Effect::Down(hosts) = effect {
            for host in hosts {
                if engine.state(host) == HostState::Down {
                    self.boot(host, Reboot::default(), engine);
                }
            }
        } else if let Effect::Hush(hosts) = effect {
            self.operate(&hosts, false, engine);
        }
    }

    /// The operator tells nodes to seal no more, or to go on; whether any took the word. One that does not run
    /// cannot, and has forgotten it when it runs again.
    fn operate(&mut self, hosts: &[HostIx], paused: bool, engine: &mut dyn Engine) -> bool {
        let mut taken = false;
        for &host in hosts {
            if paused {
                self.hushed.insert(host);
            } else {
                self.hushed.remove(&host);
            }
            let command = Command::PauseIssuance { paused };
            let reply = engine.command(host, command, &mut self.observer);
            if let Some(Ok(_)) = reply {
                taken = true;
                self.last_fault = engine.now();
                self.log.told(engine.now(), if paused { "pause" } else { "resume" }, host, self.scenario);
            }
        }
        taken
    }

    /// Boots a host, a millisecond after the last boot of its id at the earliest (decision 17).
    fn boot(&mut self, host: HostIx, how: Reboot, engine: &mut dyn Engine) {
        let now = engine.now();
        let id = &self.scenario.hosts[host.0].id;
        let earliest = self.last_boot.get(id).map_or(now, |&last| last.after(BOOTS_APART));
        if earliest > now && !self.scenario.same_millisecond {
            self.delayed.insert(host, how);
            self.schedule.add(earliest, Due::Boot(host));
            return;
        }
        self.last_boot.insert(id.clone(), now);
        self.booted[host.0] = true;
        // An engine may have booted its hosts when it was made.
        if engine.state(host) == HostState::Down {
            let Reboot { wall_step_us, addr, lose_disk } = how;
            self.apply(&Fault::Start { host, wall_step_us, addr, lose_disk }, engine);
        }
    }

    fn apply_all(&mut self, faults: &[Fault], engine: &mut dyn Engine) -> Vec<FaultId> {
        faults.iter().map(|fault| self.apply(fault, engine)).collect()
    }

    fn apply(&mut self, fault: &Fault, engine: &mut dyn Engine) -> FaultId {
        let now = engine.now();
        self.last_fault = now;
        self.log.applied(now, fault, self.scenario);
        self.observer.fault_applied(now, fault);
        engine.apply(fault, &mut self.observer)
    }

    /// One increment, by the next host in turn that takes it.
    fn tick(&mut self, ix: usize, engine: &mut dyn Engine) {
        let now = engine.now();
        let workload = &self.scenario.workloads[ix];
        let all: Vec<HostIx>;
        let hosts: &[HostIx] = if workload.on.is_empty() {
            all = (0..self.scenario.hosts.len()).map(HostIx).collect();
            &all
        } else {
            &workload.on
        };
        for _ in 0..hosts.len() {
            let host = hosts[self.turns[ix] % hosts.len()];
            self.turns[ix] = (self.turns[ix] + 1) % hosts.len();
            if engine.state(host) != HostState::Up || !self.observer.has_booted(host) {
                continue;
            }
            let command = Command::Increment { counter: workload.counter.clone(), by: workload.by };
            if let Some(Ok(_)) = engine.command(host, command, &mut self.observer) {
                let mut cell = None;
                engine.with_node(host, &mut |node| cell = Some(node.cell_incarnation()));
                if let Some(cell) = cell {
                    self.observer.world.incremented(host, &workload.counter, workload.by, cell);
                }
                self.increments += 1;
                self.observer.expectations.incremented(&workload.counter, workload.by, now, &*engine);
                break;
            }
        }
        let next = now.after(workload.every);
        let until = workload.until.map_or(Instant::FAR_FUTURE, |until| Instant::ZERO.after(until));
        if next <= until {
            self.schedule.add(next, Due::Tick(ix));
        }
    }
}
