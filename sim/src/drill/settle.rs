//! After the drill: the liveness phase, and the verdict over the whole run.
//!
//! With every fault ended and no client left, the nodes have to agree within the bound that the spec gives for
//! what was done to them, and to stay agreed for one push interval. Agreement is looked at every quarter of a
//! push interval, and only when a node changed since (the oracle keeps what it saw).

use std::time::Duration;

use firedrill_core::time::Instant;

use super::conductor::{Conductor, Run};
use super::words;
use crate::engine::Engine;
use crate::oracles::RULES;
use crate::oracles::bounds::{Bound, liveness_bound};
use crate::outcome::EntryKind;

/// How many suspicion timeouts nodes that never agree are watched for after the drill.
const PARTED_FOR: u32 = 10;

/// What the liveness phase came to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Settled {
    /// Whether frames travel over connections that have to be dialled: every engine but the fast mode.
    pub(super) connections: bool,
    /// How long agreement took, from the end of the last fault.
    pub(super) convergence: Option<Duration>,
    /// How long it was given, from the end of the drill.
    pub(super) bound: Duration,
}

impl Conductor<'_> {
    /// The liveness phase, then the last look at everything.
    pub(super) fn settle(&mut self, engine: &mut dyn Engine, settled: &mut Settled) -> Run {
        let began = engine.now();
        let push = self.push_longest();
        let bound = liveness_bound(&self.observer.world.history(began), settled.connections);
        settled.bound = bound.within.saturating_add(self.scenario.settle_within.unwrap_or_default());
        let deadline = began.after(settled.bound);
        if let Some(witness) = self.observer.witness() {
            witness.settling(began, settled.bound, &bound);
        }
        let patience = self.suspicion_longest().saturating_mul(PARTED_FOR);
        let slice = (push / 4).max(Duration::from_millis(1));
        let mut agreed_since: Option<Instant> = None;
        let mut parted_since: Option<Instant> = None;
        loop {
            let now = engine.now();
            let verdict = self.observer.convergence(&*engine);
            agreed_since = if verdict.is_ok() { agreed_since.or(Some(now)) } else { None };
            if agreed_since.is_some_and(|since| now >= since.after(push)) {
                break;
            }
            if let Err(why) = verdict {
                let in_vain = self.demands_no_agreement() || self.observer.is_parted();
                parted_since = if in_vain { parted_since.or(Some(now)) } else { None };
                // Nobody has to find the others, or can: nothing is gained by watching them until the deadline.
                let enough = parted_since.is_some_and(|since| now >= since.after(patience));
                if now >= deadline || enough {
                    self.did_not_settle(engine, settled.bound, &bound, &why);
                    break;
                }
            }
            self.run_to(now.after(slice), engine)?;
        }
        if let Some(seen) = agreed_since {
            let since = self.observer.agreement.since().unwrap_or(seen);
            settled.convergence = Some(since.since(self.last_fault));
            self.observer.timeline.tell(engine.now(), EntryKind::Phase, || {
                format!("settled: views and counters agree since {}", words::moment(since))
            });
        }
        while let Some(deadline) = self.schedule.last_deadline() {
            self.run_to(deadline, engine)?;
            self.fire_due(engine)?;
        }
        self.finish(engine);
        Run::Continue(())
    }

    /// Whether the scenario turns off every rule that asks for agreement.
    fn demands_no_agreement(&self) -> bool {
        // Without an issuance nobody has to agree on one.
        let issues = self.scenario.hosts.iter().any(|host| host.issuance.is_some());
        let asked = |source: &str| issues || !source.starts_with("docs/issuance.md");
        let mut rules = RULES.iter().filter(|rule| rule.liveness && asked(rule.source));
        rules.all(|rule| self.scenario.oracles_off.contains_key(rule.name))
    }

    /// The full sweep, and what the file expects of the end.
    fn finish(&mut self, engine: &mut dyn Engine) {
        let now = engine.now();
        if self.observer.violation.is_none() {
            self.observer.sweep(&*engine);
        }
        self.observer.show_failures(engine);
        self.observer.expectations.end_run(now, &*engine);
        self.observer.tell_decisions();
        self.observer.show_failures(engine);
    }

    /// The bound is exceeded. The oracles of the end look at the very same beliefs and say which rule is broken
    /// and who contradicts whom; a rule that the scenario turned off (nodes with different secrets never agree)
    /// is not demanded, and where neither seeds nor records lead from some nodes to the others none is.
    fn did_not_settle(&mut self, engine: &dyn Engine, within: Duration, bound: &Bound, why: &str) {
        let now = engine.now();
        self.observer.timeline.tell(now, EntryKind::Phase, || {
            format!("not settled within {} ({}): {why}", words::time(within), bound.because)
        });
        if self.observer.is_parted() {
            self.observer.timeline.tell(now, EntryKind::Phase, || {
                "no seed and no record leads from some nodes to the others: agreement is not demanded"
                    .to_owned()
            });
        }
        self.observer.sweep(engine);
        self.observer.show_failures(engine);
    }
}
