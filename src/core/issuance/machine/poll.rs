//! Elections and the fence: asking how others stand, deciding, asking for promises, giving them.

use alloc::collections::{BTreeMap, BTreeSet};

use super::Issuance;
use crate::id::NodeId;
use crate::issuance::election::{
    Answer, Ballot, Condition, Consent, Decision, Field, Fitness, Outcome, Round, elect,
};
use crate::issuance::event::IssuanceEvent;
use crate::issuance::fence::{self, Handled, Intent, Reply, Request};
use crate::issuance::message::{Probe, Standing};
use crate::issuance::seal::Role;
use crate::issuance::window::Epoch;
use crate::issuance::writer::Written;
use crate::time::{Instant, Now};
use crate::wire::message::Message;

impl Issuance {
    /// A peer asks how this node stands.
    pub(crate) fn probed(&mut self, now: Now, from: &NodeId, probe: Probe) {
        let fold = self.spine.fold();
        let answer = Answer {
            fit: self.condition(now).fitness().is_ok(),
            tip: fold.tip,
            epoch: fold.lease.as_ref().map(|lease| lease.epoch),
            wall: now.wall,
            electorate: self.electorate.digest(),
        };
        self.send(from, Message::Standing(Standing::new(probe.round, answer)));
    }

    /// A peer says how it stands.
    pub(crate) fn answered(&mut self, now: Now, from: &NodeId, standing: Standing) {
        self.stirred = true;
        let answer = standing.answer();
        let Some(round) = &mut self.round else { return };
        if round.record(now.instant, from, standing.round, answer) && self.live.contains(from) {
            self.clocks.insert(from.clone(), Now { instant: now.instant, wall: answer.wall });
        }
    }

    /// Holds an election when one is due, and closes a round whose time is up.
    pub(super) fn poll(&mut self, now: Now) {
        self.lapse(now);
        if !self.config.failover {
            if self.decision.is_none() {
                self.decided(Decision::Disabled);
            }
            return;
        }
        if let Some(round) = self.round.take() {
            match round.outcome(now.instant) {
                Outcome::Waiting(_) => self.round = Some(round),
                Outcome::Void => self.next_check = now.instant,
                Outcome::Over(answers) => {
                    self.answers.clone_from(answers);
                    let decision = self.elect(now, answers);
                    self.decided(decision);
                }
            }
        }
        if self.next_check <= now.instant {
            self.next_check = now.instant.after(self.spans.check);
            self.check(now);
        }
    }

    /// Decides at once where nobody's answer matters; else asks everybody.
    fn check(&mut self, now: Now) {
        let decision = self.elect(now, &BTreeMap::new());
        if decision.needs_no_answer() {
            self.round = None;
            self.answers.clear();
            return self.decided(decision);
        }
        let field = self.field();
        let holder = self.spine.fold().lease.as_ref().map(|lease| &lease.holder);
        let asked: BTreeSet<NodeId> =
            field.ranked().chain(holder).filter(|id| **id != self.me).cloned().collect();
        let number = self.next_round;
        self.next_round += 1;
        for id in &asked {
            self.send(id, Message::Probe(Probe { round: number }));
        }
        let round = Round::begin(number, now.instant, asked, self.spans.probe);
        // A round is never cut short by the next: with probes slower than checks none would ever be over.
        self.next_check = self.next_check.max(round.over_at());
        self.round = Some(round);
    }

    fn elect(&self, now: Now, answers: &BTreeMap<NodeId, Answer>) -> Decision {
        let fold = self.spine.fold();
        let least = fold.lease.as_ref().map_or(Epoch(0), |lease| lease.epoch).next();
        let consent = self
            .fence
            .as_ref()
            .map_or(Consent::NotNeeded, |fence| fence.claimant.consent(now.instant, least));
        elect(&Ballot {
            failover: self.config.failover,
            me: &self.me,
            is_issuer: self.role(now).is_issuer(),
            in_boot_grace: now.instant.since(self.booted_at) < self.spans.grace,
            fold,
            silence: now.instant.since(self.tip_at),
            silence_max: self.spans.silence,
            field: &self.field(),
            own: self.condition(now).fitness(),
            answers,
            electorate: &self.electorate,
            consent,
            guards: self.guards,
        })
    }

    fn decided(&mut self, decision: Decision) {
        self.metrics.decided(&decision);
        if let Decision::Promote { epoch } = decision {
            self.promoted = Some(epoch);
            self.metrics.promotions = self.metrics.promotions.saturating_add(1);
            self.tell(IssuanceEvent::Promoted { epoch });
        }
        let changed = self.decision.as_ref().is_none_or(|last| !last.same_as(&decision));
        if changed {
            self.tell(IssuanceEvent::Decided { decision: decision.clone() });
        }
        self.decision = Some(decision);
    }

    /// A promotion that was not sealed ends when this node could not seal.
    fn lapse(&mut self, now: Now) {
        let Some(epoch) = self.promoted else { return };
        if self.condition(now).able().is_err() && self.guards.promotion_lapses {
            self.promoted = None;
            self.issued_at = self.held_epoch();
            self.tell(IssuanceEvent::PromotionLapsed { epoch });
        }
    }

    /// The candidates.
    pub(super) fn field(&self) -> Field {
        let heard = if self.guards.field_keeps_the_dead { &self.heard } else { &self.live };
        Field::new(&self.me, heard, &self.electorate)
    }

    /// What this node's own fitness depends on.
    pub(super) fn condition(&self, now: Now) -> Condition {
        Condition {
            is_holder: self.held_epoch().is_some(),
            unsealed_for: now.instant.since(self.sealed_at),
            silence_max: self.spans.silence,
            paused: self.paused,
            disk_works: self.writer.works(now.instant, self.spans.check),
            clock_ahead: self.clock_ahead(now) > self.spans.silence,
            window: self.window(now),
            tip: self.tip,
        }
    }

    // ---- the fence ---------------------------------------------------------------------------------------

    fn intent(&self, now: Now) -> Intent {
        let able: Fitness = self.condition(now).able();
        fence::intent(self.role(now), able, self.decision.as_ref(), self.guards)
    }

    /// When the claimant asks next.
    pub(super) fn next_claim(&self) -> Option<Instant> {
        let fence = self.fence.as_ref()?;
        fence.claimant.next_wake(self.at.instant, fence.intent)
    }

    /// Asks the electors for what this node wants, its own vote included, and tells when the fence is gained or
    /// lost.
    pub(super) fn ask_electors(&mut self, now: Now) {
        if self.fence.is_none() {
            return;
        }
        let intent = self.intent(now);
        let Some(fence) = &mut self.fence else { return };
        fence.intent = intent;
        // Again at once where this node's own elector named a later epoch; as often as there are electors at most.
        while let Some(request) =
            self.fence.as_mut().and_then(|fence| fence.claimant.tick(now.instant, intent))
        {
            for elector in self.electorate.members().clone() {
                if elector == self.me {
                    let me = self.me.clone();
                    self.claimed(now, &me, &request);
                } else {
                    self.send(&elector, Message::Claim(request));
                }
            }
        }
        let role = self.role(now);
        let Some(fence) = &mut self.fence else { return };
        let held = fence.claimant.held(now.instant).map(|held| held.epoch);
        if let Role::Issuer(Some(epoch)) = role
            && held > Some(epoch)
        {
            // An elector had supported a later epoch: this issuer was given one above that, and seals with it.
            self.promoted = held;
        }
        if held == fence.held {
            return;
        }
        fence.held = held;
        match held {
            Some(epoch) => self.tell(IssuanceEvent::FenceHeld { epoch }),
            None => self.tell(IssuanceEvent::FenceLost {}),
        }
        // Granted: the election can now be decided.
        if matches!(self.decision, Some(Decision::NoMajority { .. })) && held.is_some() {
            self.next_check = now.instant;
            self.poll(now);
        }
    }

    /// A node asks for this elector's promise.
    pub(crate) fn claimed(&mut self, now: Now, from: &NodeId, request: &Request) {
        self.stirred = true;
        let Some(fence) = &mut self.fence else { return };
        match fence.elector.handle(now.instant, from, request) {
            Handled::Ignored | Handled::Waiting => {}
            Handled::Answer(reply) => self.vote(now.instant, from, reply),
            Handled::Store(epoch) => self.writer.promise(epoch),
        }
    }

    /// An elector answered.
    pub(crate) fn voted(&mut self, now: Instant, from: &NodeId, reply: &Reply) {
        self.stirred = true;
        if let Some(fence) = &mut self.fence {
            fence.claimant.answered(now, from, reply);
        }
    }

    fn vote(&mut self, now: Instant, to: &NodeId, reply: Reply) {
        if *to == self.me {
            let me = self.me.clone();
            self.voted(now, &me, &reply);
        } else {
            self.send(to, Message::Vote(reply));
        }
    }

    /// The disk answered for an epoch that was promised.
    pub(super) fn promise_written(&mut self, now: Instant, epoch: Epoch, written: Written) {
        let Some(fence) = &mut self.fence else { return };
        match written {
            Written::Durable => {
                for (to, reply) in fence.elector.stored(epoch) {
                    self.vote(now, &to, reply);
                }
            }
            Written::Refused => fence.elector.store_failed(),
        }
    }
}
