//! Looks at every handled input of a run: digest, oracles, expectations, triggers, timeline.
//!
//! The way that most inputs take (a frame that changes nothing) costs comparisons: no allocation, no text. The
//! engine is asked to stop when a step waits for exactly this event, when an oracle fires, or when the run is
//! cancelled.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use firedrill_core::io::{Command, Event};
use firedrill_core::time::Instant;

use super::agreement::Agreement;
use super::expect::Expectations;
use super::happening::Lookout;
use super::reach::{INCARNATION_REUSED, Reach};
use super::takeover::Takeovers;
use super::timeline::{self, Timeline};
use super::witness::{Failed, Gone, Witness};
use super::{RunOptions, pattern, words};
use crate::digest::Digest;
use crate::engine::{Cause, Engine, Fault, Flow, Step, Watch};
use crate::oracles::{Oracles, World, progress};
use crate::outcome::{EntryKind, Violation, effort};
use crate::scenario::model::{EventKind, HostIx, Scenario, Start, StepIx};

/// How many inputs may pass between two looks at the cancel flag.
const CANCEL_EVERY: u32 = 1 << 12;

/// What a host's node looked like when it was last seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Seen {
    view: u64,
    document: u64,
}

/// The one watcher of a run.
#[derive(Debug)]
pub(super) struct Observer<'s> {
    scenario: &'s Scenario,
    pub(super) world: World,
    pub(super) oracles: Oracles,
    pub(super) digest: Digest,
    pub(super) expectations: Expectations<'s>,
    pub(super) timeline: Timeline<'s>,
    pub(super) agreement: Agreement,
    pub(super) takeovers: Takeovers<'s>,
    /// The first thing an oracle found.
    pub(super) violation: Option<Violation>,
    /// Per host; `None` before its boot's first step.
    seen: Vec<Option<Seen>>,
    /// Watermarks of each host's running boot.
    watermarks: Vec<usize>,
    /// Steps that wait for an event.
    armed: Vec<StepIx>,
    /// Steps whose event came, and when.
    triggered: Vec<(StepIx, Instant)>,
    /// Looks out for the event that was asked about.
    pub(super) lookout: Lookout,
    /// What nodes reported so far.
    pub(super) reach: Reach,
    /// Inputs handled, bytes sent, and how much of both there may be.
    inputs: u64,
    bytes_sent: u64,
    inputs_max: u64,
    cancel: Option<Arc<AtomicBool>>,
    until_cancel_check: u32,
    cancelled: bool,
    /// How many reused incarnations have been told.
    reuses_told: usize,
    witness: Option<&'s mut dyn Witness>,
    /// Failed, and not yet shown to the witness: expectations by position, an oracle as `None`.
    unshown: Vec<Option<usize>>,
}

impl<'s> Observer<'s> {
    pub(super) fn new(
        scenario: &'s Scenario,
        world: World,
        oracles: Oracles,
        digest: Digest,
        options: &RunOptions,
    ) -> Self {
        Self {
            scenario,
            world,
            oracles,
            digest,
            expectations: Expectations::new(scenario),
            timeline: Timeline::new(scenario, options.timeline),
            agreement: Agreement::new(scenario),
            takeovers: Takeovers::new(scenario, options.timeline),
            violation: None,
            seen: vec![None; scenario.hosts.len()],
            watermarks: vec![0; scenario.hosts.len()],
            armed: Vec::new(),
            triggered: Vec::new(),
            lookout: Lookout::new(options.tell_event),
            reach: Reach::default(),
            inputs: 0,
            bytes_sent: 0,
            inputs_max: options.inputs_max.unwrap_or(u64::MAX),
            cancel: options.cancel.clone(),
            until_cancel_check: CANCEL_EVERY,
            cancelled: false,
            reuses_told: 0,
            witness: None,
            unshown: Vec::new(),
        }
    }

    /// The same, with a witness.
    pub(super) fn before(self, witness: Option<&'s mut dyn Witness>) -> Self {
        Self { witness, ..self }
    }

    /// The witness, if there is one.
    pub(super) fn witness(&mut self) -> Option<&mut (dyn Witness + 's)> {
        self.witness.as_deref_mut()
    }

    /// The drill begins or ends something.
    pub(super) fn tell_act(&mut self, at: Instant, text: impl FnOnce() -> String) {
        if self.witness.is_none() && !self.timeline.is_on() {
            return;
        }
        let text = text();
        if let Some(witness) = self.witness() {
            witness.act(at, &text);
        }
        self.timeline.tell(at, EntryKind::Fault, || text);
    }

    /// A fault is about to be applied.
    pub(super) fn fault_applied(&mut self, at: Instant, fault: &Fault) {
        if let Some(witness) = self.witness() {
            witness.fault(at, fault);
        }
        self.world.fault_applied(at, fault);
        self.agreement.disturbed(at);
    }

    /// Shows the witness what failed since the last call, with the cluster as it is.
    pub(super) fn show_failures(&mut self, engine: &dyn Engine) {
        let unshown = std::mem::take(&mut self.unshown);
        let Some(witness) = self.witness.as_deref_mut() else { return };
        for failed in unshown {
            let failed = match (failed, &self.violation) {
                (Some(ix), _) => Failed::Expectation(ix),
                (None, Some(violation)) => Failed::Oracle(violation),
                (None, None) => continue,
            };
            witness.failed(failed, &self.world, engine);
        }
    }

    /// A step that starts with an event waits for it from now on.
    pub(super) fn arm(&mut self, step: StepIx) {
        self.armed.push(step);
    }

    /// The steps whose event came since the last call.
    pub(super) fn take_triggered(&mut self) -> Vec<(StepIx, Instant)> {
        std::mem::take(&mut self.triggered)
    }

    /// Whether the run is over before its time: an oracle fired, or it was cancelled.
    pub(super) const fn is_over(&self) -> bool {
        self.violation.is_some() || self.cancelled
    }

    /// Whether the run was cancelled.
    pub(super) const fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    /// Looks at the cancel flag now.
    pub(super) fn check_cancel(&mut self) {
        self.until_cancel_check = CANCEL_EVERY;
        self.cancelled |= self.cancel.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed));
    }

    /// An oracle fired.
    pub(super) fn violated(&mut self, violation: Violation) {
        if self.violation.is_some() {
            return;
        }
        let at = Instant::from_micros(violation.at_us);
        self.timeline.tell(at, EntryKind::Violation, || {
            format!("{}: {}, but {}", violation.oracle, violation.fact, violation.contradiction)
        });
        self.violation = Some(violation);
        self.unshown.push(None);
    }

    /// Whether the running boot of a host has handled its first input.
    pub(super) fn has_booted(&self, host: HostIx) -> bool {
        self.seen[host.0].is_some()
    }

    /// Puts what was decided since into the timeline.
    pub(super) fn tell_decisions(&mut self) {
        for (ix, text, held, at) in self.expectations.take_news() {
            if !held {
                self.unshown.push(Some(ix));
            }
            self.timeline.tell(at, EntryKind::Expectation, || text);
        }
    }

    /// Whether all running nodes agree, as the convergence oracle sees it.
    ///
    /// # Errors
    /// Who disagrees with whom.
    pub(super) fn convergence(&mut self, engine: &dyn Engine) -> Result<(), String> {
        self.oracles.convergence(&self.world, engine.now(), &|host, look| engine.with_node(host, look))
    }

    /// Whether agreement is out of reach, since nothing leads from some running nodes to the others.
    pub(super) fn is_parted(&self) -> bool {
        self.oracles.is_parted(&self.world)
    }

    /// The full look at everything, after the liveness phase.
    pub(super) fn sweep(&mut self, engine: &dyn Engine) {
        let swept =
            self.oracles.at_end(&self.world, engine.now(), &|host, look| engine.with_node(host, look));
        if let Err(violation) = swept {
            self.violated(*violation);
        }
    }

    fn booted(&mut self, step: &Step<'_>) {
        self.seen[step.host.0] = None;
        self.takeovers.booted(step.at, step.host);
        self.watermarks[step.host.0] = 0;
        self.world.booted(step.at, step.host, step.boot, step.node.boot_incarnation());
        for reuse in &self.world.reused()[self.reuses_told..] {
            self.reach.events.insert(INCARNATION_REUSED);
            let earlier = words::host_name(self.scenario, reuse.earlier);
            self.timeline.tell_node(step.at, step.host, EntryKind::Event, || {
                format!(
                    "boots with incarnation {}, which boot {} of {earlier} had already",
                    reuse.incarnation, reuse.earlier_boot
                )
            });
        }
        self.reuses_told = self.world.reused().len();
    }

    /// An event that scenarios can name. Tells whether a step waited for it.
    fn event(&mut self, step: &Step<'_>, kind: EventKind, event: &Event) -> bool {
        self.timeline.event(step.at, step.host, event);
        self.expectations.event(step, kind, event);
        let waiting = self.armed.len();
        let (scenario, triggered) = (self.scenario, &mut self.triggered);
        self.armed.retain(|&ix| {
            let Start::AfterEvent(wanted, _) = &scenario.steps[ix.0].start else { return false };
            let hit = pattern::matches(wanted, kind, event, step.host, step.node);
            if hit {
                triggered.push((ix, step.at));
            }
            !hit
        });
        self.armed.len() != waiting
    }

    fn tell_agreement(&mut self, at: Instant, came: bool) {
        if came && self.timeline.is_on() {
            let ids = words::list(self.agreement.running().into_iter().map(|id| id.as_str()));
            self.timeline.tell(at, EntryKind::Phase, || format!("all views agree: {ids}"));
        }
    }
}

impl Watch for Observer<'_> {
    fn observe(&mut self, step: &Step<'_>) -> Flow {
        self.digest.absorb(step);
        self.lookout.observe(step, self.scenario);
        if let Some(witness) = self.witness() {
            witness.step(step);
        }
        if let Cause::Boot = step.cause {
            self.booted(step);
        }
        if let Err(violation) = self.oracles.after(&self.world, step) {
            self.violated(*violation);
            return Flow::Stop;
        }
        let mut flow = Flow::Continue;
        let watermarks = step.node.sizes().watermarks;
        let before = std::mem::replace(&mut self.watermarks[step.host.0], watermarks);
        self.reach.step(step, before, watermarks);
        for event in step.events {
            self.takeovers.event(step, event);
            match pattern::kind(event) {
                Some(kind) if self.event(step, kind, event) => flow = Flow::Stop,
                Some(_) => {}
                None if timeline::is_told(event) => self.timeline.event(step.at, step.host, event),
                None => {}
            }
        }
        let now = Seen { view: step.node.view_version(), document: step.node.document_version() };
        // A farewell changes who counts, whether or not it moves a version.
        let leaves = matches!(step.cause, Cause::Command(Command::Leave));
        let changed = leaves || self.seen[step.host.0] != Some(now);
        self.expectations.step(step, changed);
        if changed {
            self.seen[step.host.0] = Some(now);
            let came = self.agreement.changed(step.host, step.node, step.at);
            self.tell_agreement(step.at, came);
        }
        if self.expectations.has_news() {
            self.tell_decisions();
        }
        self.inputs += 1;
        self.bytes_sent = self.bytes_sent.saturating_add(step.bytes_sent);
        if effort(self.inputs, self.bytes_sent) > self.inputs_max {
            self.violated(progress::too_much(step.at, self.inputs, self.bytes_sent, self.scenario));
            return Flow::Stop;
        }
        // A witness is shown the cluster before anything else happens to it.
        if self.witness.is_some() && !self.unshown.is_empty() {
            flow = Flow::Stop;
        }
        self.until_cancel_check -= 1;
        if self.until_cancel_check == 0 {
            self.check_cancel();
            if self.cancelled {
                return Flow::Stop;
            }
        }
        flow
    }

    fn down(&mut self, at: Instant, host: HostIx, _boot: u32, graceful: bool) {
        if let Some(witness) = self.witness() {
            witness.down(at, Gone { host, graceful });
        }
        self.world.went_down(at, host, graceful);
        self.oracles.down(&self.world, host);
        self.seen[host.0] = None;
        self.takeovers.down(at, host);
        self.timeline.tell_node(at, host, EntryKind::Event, || {
            if graceful { "has departed".to_owned() } else { "is down".to_owned() }
        });
        self.expectations.down(host, at);
        let came = self.agreement.down(host, at);
        self.tell_agreement(at, came);
        if self.expectations.has_news() {
            self.tell_decisions();
        }
    }
}
