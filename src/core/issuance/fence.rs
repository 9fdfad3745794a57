//! A lease that a majority consents to: for those who need exclusion rather than issuance on every side of a cut.
//!
//! Two small machines. An [`Elector`] promises to support one node, for one fence at a time. A [`Claimant`] asks
//! every elector, its own included, and holds while promises of a majority run. Any two majorities share an
//! elector, and that one supports nobody else until its promise has run out; the claimant counts from when it
//! *sent* the question, and only 98 % of the fence, so its hold ends first wherever clocks run within 1 % of each
//! other. Hence two nodes never hold at one instant.
//!
//! - Promises are not durable. Instead an elector makes none in the first fence after its start.
//! - The highest epoch it ever promised is durable before it answers: epochs do not regress.
//! - Whoever lacks a majority lets its promises run out before it asks again, at a random moment: two halves that
//!   kept refreshing theirs would wait for each other for ever. That holds for a holder that lost its majority too.
//! - The clock must count the time that a machine is suspended.
//!
//! Absent: who may ask. [`intent`] says it: an issuer renews, a successor claims, and neither when it could not
//! seal. Absent too: the disk and the network; the machine carries [`Request`]s and [`Reply`]s and stores epochs.
//!
//! Spec: docs/issuance.md, Fencing.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::election::{Consent, Decision, Electorate, ElectorateDigest, Fitness};
use super::seal::Role;
use super::window::Epoch;
use crate::guards::Guards;
use crate::id::NodeId;
use crate::rng::{Rng, Seed};
use crate::time::{Duration, Instant, micros};

/// How much of a fence a holder relies on, in percent: with clock rates within 1 %, less than an elector's fence
/// lasts by any clock (0.98 / 0.99 < 1 / 1.01).
const RELIED_ON_PERCENT: u64 = 98;
/// Renewals in one fence: one or two may be lost.
const RENEWALS_PER_FENCE: u32 = 4;

const _: () = assert!(RELIED_ON_PERCENT * 101 < 99 * 100, "a holder must stop before its electors do");

/// What is asked of an elector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// To support a new generation.
    Grant,
    /// To go on supporting one.
    Renewal,
}

/// A question to every elector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// What is asked.
    pub kind: Kind,
    /// Which question of the asking boot this is; the reply repeats it.
    pub round: u64,
    /// For which epoch.
    pub epoch: Epoch,
    /// The electorate as the asking node has it.
    pub electorate: ElectorateDigest,
}

/// An elector's reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// The round of the request.
    pub round: u64,
    /// The electorate as the elector has it.
    pub electorate: ElectorateDigest,
    /// Yes, or why not.
    pub verdict: Verdict,
}

/// Yes, or why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The elector supports nobody else for one fence.
    Promised,
    /// It started less than a fence ago and may have promised something before.
    Starting,
    /// Its promise to another has not run out.
    Bound,
    /// It has promised a later epoch: a renewal is too low below it, a grant at or below it.
    Outdated {
        /// The highest epoch it knows.
        highest: Epoch,
    },
}

/// What an elector does about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handled {
    /// Nothing: one of the two is no elector, or their lists differ.
    Ignored,
    /// Send this.
    Answer(Reply),
    /// Make this epoch durable, then call [`Elector::stored`].
    Store(Epoch),
    /// The answer waits for an epoch that is being stored.
    Waiting,
}

#[derive(Debug, Clone)]
struct Promise {
    to: NodeId,
    until: Instant,
}

/// One vote: whom this node supports, and until when.
#[derive(Debug, Clone)]
pub struct Elector {
    me: NodeId,
    electorate: Electorate,
    fence: Duration,
    guards: Guards,
    /// One fence after the start: whatever was promised before has run out by then.
    opens_at: Instant,
    promise: Option<Promise>,
    /// The highest epoch promised, perhaps not durable yet.
    highest: Option<Epoch>,
    durable: Option<Epoch>,
    /// Answers that wait for their epoch to be durable, the latest of each claimant.
    waiting: BTreeMap<NodeId, (Epoch, Reply)>,
}

impl Elector {
    /// An elector that starts now; `stored` is the epoch it stored last, in whatever boot.
    pub fn new(
        me: NodeId,
        electorate: Electorate,
        fence: Duration,
        stored: Option<Epoch>,
        now: Instant,
        guards: Guards,
    ) -> Self {
        let opens_at = if guards.promise_waits_after_start { now.after(fence) } else { now };
        Self {
            me,
            electorate,
            fence,
            guards,
            opens_at,
            promise: None,
            highest: stored,
            durable: stored,
            waiting: BTreeMap::new(),
        }
    }

    /// Takes a request, this node's own included.
    pub fn handle(&mut self, now: Instant, from: &NodeId, request: &Request) -> Handled {
        let members = self.electorate.members();
        let same = request.electorate == self.electorate.digest() || !self.guards.electorate_compared;
        if !same || !members.contains(from) || !members.contains(&self.me) {
            return Handled::Ignored;
        }
        if let Some(refusal) = self.refusal(now, from, request) {
            return Handled::Answer(self.reply(request, refusal));
        }
        // Counted from here, not from when the answer leaves: the claimant counts from even earlier.
        self.promise = Some(Promise { to: from.clone(), until: now.after(self.fence) });
        let raised = self.highest.is_none_or(|highest| request.epoch > highest);
        self.highest = self.highest.max(Some(request.epoch));
        let reply = self.reply(request, Verdict::Promised);
        if self.durable >= Some(request.epoch) || !self.guards.epoch_stored_first {
            return Handled::Answer(reply);
        }
        self.waiting.insert(from.clone(), (request.epoch, reply));
        if raised { Handled::Store(request.epoch) } else { Handled::Waiting }
    }

    fn refusal(&self, now: Instant, from: &NodeId, request: &Request) -> Option<Verdict> {
        if now < self.opens_at {
            return Some(Verdict::Starting);
        }
        let bound = self.promise.as_ref().is_some_and(|promise| promise.to != *from && now < promise.until);
        if bound && self.guards.promise_exclusive {
            return Some(Verdict::Bound);
        }
        let highest = self.highest.filter(|_| self.guards.epoch_never_regresses)?;
        let outdated = match request.kind {
            Kind::Grant => request.epoch <= highest,
            Kind::Renewal => request.epoch < highest,
        };
        outdated.then_some(Verdict::Outdated { highest })
    }

    const fn reply(&self, request: &Request, verdict: Verdict) -> Reply {
        Reply { round: request.round, electorate: self.electorate.digest(), verdict }
    }

    /// This epoch is durable: the answers that waited for it.
    pub fn stored(&mut self, epoch: Epoch) -> Vec<(NodeId, Reply)> {
        self.durable = self.durable.max(Some(epoch));
        let (ready, waiting) = core::mem::take(&mut self.waiting)
            .into_iter()
            .partition::<BTreeMap<_, _>, _>(|(_, (needed, _))| Some(*needed) <= self.durable);
        self.waiting = waiting;
        ready.into_iter().map(|(to, (_, reply))| (to, reply)).collect()
    }

    /// Storing failed: the answers that waited are never given, so nobody relies on the epoch, and the next request
    /// tries again. The promise stands.
    pub fn store_failed(&mut self) {
        self.waiting.clear();
        self.highest = self.durable;
    }

    /// Whom this node supports now, and until when.
    pub fn promised(&self, now: Instant) -> Option<(&NodeId, Instant)> {
        let promise = self.promise.as_ref()?;
        (now < promise.until).then_some((&promise.to, promise.until))
    }
}

/// What a node wants of the fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intent {
    /// Nothing: what it holds runs out.
    Nothing,
    /// Consent to a new generation, at this epoch or above.
    Claim(Epoch),
    /// To go on holding at this epoch.
    Hold(Epoch),
}

/// What a node wants: an issuer renews, one that an election found to be the successor claims. A node that could
/// not seal wants nothing, so that another gets its majority. Whether it *has* sealed does not matter: the first
/// issuer of all could never begin.
pub fn intent(role: Role, able: Fitness, decision: Option<&Decision>, guards: Guards) -> Intent {
    if able.is_err() && guards.unable_asks_nothing {
        return Intent::Nothing;
    }
    match (role, decision) {
        (Role::Issuer(Some(epoch)), _) => Intent::Hold(epoch),
        (Role::Replica, Some(Decision::NoMajority { epoch, .. })) => Intent::Claim(*epoch),
        (Role::Issuer(None) | Role::Replica, _) => Intent::Nothing,
    }
}

/// A question that was sent and whose answers still count.
#[derive(Debug, Clone, Copy)]
struct Sent {
    at: Instant,
    kind: Kind,
    epoch: Epoch,
}

/// An elector's latest promise to this node.
#[derive(Debug, Clone, Copy)]
struct Promised {
    epoch: Epoch,
    /// When the question was sent.
    since: Instant,
}

/// One hold: what a node asked the electors, and whose promises it has.
#[derive(Debug, Clone)]
pub struct Claimant {
    electorate: Electorate,
    fence: Duration,
    guards: Guards,
    rng: Rng,
    round: u64,
    rounds: BTreeMap<u64, Sent>,
    promises: BTreeMap<NodeId, Promised>,
    /// The highest epoch that a refusal named.
    named: Option<Epoch>,
    /// Without a majority nothing is asked before.
    quiet_until: Instant,
    /// Who answered the latest question with [`Verdict::Starting`].
    starting: BTreeSet<NodeId>,
    /// Grants of this attempt that may still be asked again because a refusal named a higher epoch.
    repeats: usize,
    repeat_due: bool,
    last_sent: Option<Instant>,
}

impl Claimant {
    /// A claimant without any promise. `seed` must differ from boot to boot: rounds are numbered from a random
    /// start, so that no reply to an earlier boot passes for one to this.
    pub fn new(electorate: Electorate, fence: Duration, seed: &Seed, now: Instant, guards: Guards) -> Self {
        let mut rng = seed.fork("fence").rng();
        let round = rng.u64() >> 1;
        Self {
            electorate,
            fence,
            guards,
            rng,
            round,
            rounds: BTreeMap::new(),
            promises: BTreeMap::new(),
            named: None,
            quiet_until: now,
            starting: BTreeSet::new(),
            repeats: 0,
            repeat_due: false,
            last_sent: None,
        }
    }

    /// When it last asked.
    pub(crate) const fn last_sent(&self) -> Option<Instant> {
        self.last_sent
    }

    /// What to send to every elector now, this node's own included, if anything.
    pub fn tick(&mut self, now: Instant, intent: Intent) -> Option<Request> {
        if now < self.next_wake(now, intent)? {
            return None;
        }
        let (kind, epoch) = self.question(now, intent)?;
        if core::mem::take(&mut self.repeat_due) {
            self.repeats = self.repeats.saturating_sub(1);
        } else {
            self.repeats = self.electorate.members().len();
        }
        self.round = self.round.wrapping_add(1);
        let relied_on = self.relied_on();
        self.rounds.retain(|_, sent| now.since(sent.at) < relied_on);
        self.rounds.insert(self.round, Sent { at: now, kind, epoch });
        self.last_sent = Some(now);
        self.starting.clear();
        // Drawn even where a majority makes it moot, so that draws follow from what was sent alone.
        let wait = self.fence + Duration::from_micros(self.rng.between(0, micros(self.fence)));
        self.quiet_until = if self.guards.claim_pauses { now.after(wait) } else { now.after(self.renewal()) };
        Some(Request { kind, round: self.round, epoch, electorate: self.electorate.digest() })
    }

    /// When [`Claimant::tick`] has something to send, if this stays the intent; `None` when it has nothing.
    pub fn next_wake(&self, now: Instant, intent: Intent) -> Option<Instant> {
        match (intent, self.held(now)) {
            (Intent::Nothing, _) => None,
            (Intent::Hold(wanted), Some(held)) if held.epoch == wanted => {
                Some(self.last_sent.map_or(now, |sent| sent.after(self.renewal())))
            }
            // Granted: what comes next is to promote, or to let it run out.
            (Intent::Claim(wanted) | Intent::Hold(wanted), Some(held)) if held.epoch >= wanted => {
                Some(held.until)
            }
            (Intent::Claim(_) | Intent::Hold(_), _) if self.repeat_due => Some(now),
            (Intent::Claim(_) | Intent::Hold(_), _) => Some(self.quiet_until),
        }
    }

    /// A holder that an elector refused for a later epoch, and that lost its majority, needs a later one itself.
    fn question(&self, now: Instant, intent: Intent) -> Option<(Kind, Epoch)> {
        let above_named = |epoch: Epoch| self.named.map_or(epoch, |named| epoch.max(named.next()));
        match intent {
            Intent::Nothing => None,
            Intent::Claim(epoch) => Some((Kind::Grant, above_named(epoch))),
            Intent::Hold(epoch) if self.named > Some(epoch) && self.held(now).is_none() => {
                Some((Kind::Grant, above_named(epoch)))
            }
            Intent::Hold(epoch) => Some((Kind::Renewal, epoch)),
        }
    }

    /// Takes a reply. False when it is dropped: of no known round, from no elector, or from one with another list.
    pub fn answered(&mut self, now: Instant, from: &NodeId, reply: &Reply) -> bool {
        let same = reply.electorate == self.electorate.digest() || !self.guards.electorate_compared;
        if !same || !self.electorate.members().contains(from) {
            return false;
        }
        let Some(sent) = self.rounds.get(&reply.round).copied() else { return false };
        let latest = reply.round == self.round;
        match reply.verdict {
            Verdict::Promised => self.promised(now, from, sent),
            Verdict::Starting if latest => self.starting(from, sent),
            Verdict::Outdated { highest } => {
                self.named = self.named.max(Some(highest));
                self.repeat_due |=
                    latest && sent.kind == Kind::Grant && highest >= sent.epoch && self.repeats > 0;
            }
            Verdict::Starting | Verdict::Bound => {}
        }
        true
    }

    /// While a majority is starting nobody has one: there is nothing to wait for but their start.
    fn starting(&mut self, from: &NodeId, sent: Sent) {
        self.starting.insert(from.clone());
        if self.starting.len() >= self.electorate.majority() {
            self.quiet_until = self.quiet_until.min(sent.at.after(self.renewal()));
        }
    }

    fn promised(&mut self, now: Instant, from: &NodeId, sent: Sent) {
        let since = if self.guards.fence_from_sending { sent.at } else { now };
        let newer = self.promises.get(from).is_none_or(|had| (had.epoch, had.since) < (sent.epoch, since));
        if newer {
            self.promises.insert(from.clone(), Promised { epoch: sent.epoch, since });
        }
    }

    /// What is held now: the epoch that a majority has promised to support, and until when. Nothing may be sealed
    /// but on this, asked anew at the moment of sealing.
    pub fn held(&self, now: Instant) -> Option<Hold> {
        let epochs: BTreeSet<Epoch> = self.promises.values().map(|promised| promised.epoch).collect();
        epochs.into_iter().rev().find_map(|epoch| self.held_at(now, epoch))
    }

    fn held_at(&self, now: Instant, epoch: Epoch) -> Option<Hold> {
        let mut since: Vec<Instant> = self.running(now, epoch).collect();
        since.sort_unstable_by(|a, b| b.cmp(a));
        // The majority ends when the oldest promise that it needs does.
        let oldest = since.get(self.electorate.majority() - 1)?;
        Some(Hold { epoch, until: oldest.after(self.relied_on()) })
    }

    /// Since when each elector that supports this epoch now does.
    fn running(&self, now: Instant, epoch: Epoch) -> impl Iterator<Item = Instant> {
        let relied_on = self.relied_on();
        self.promises
            .values()
            .filter(move |promised| promised.epoch == epoch && now.since(promised.since) < relied_on)
            .map(|promised| promised.since)
    }

    /// What an election should know of a promotion at `epoch` or above.
    pub fn consent(&self, now: Instant, epoch: Epoch) -> Consent {
        match self.held(now).filter(|held| held.epoch >= epoch) {
            Some(held) => Consent::Granted(held.epoch),
            None => {
                Consent::Missing {
                    granted: self.promises.values().map(|promised| promised.epoch).max().map_or(
                        0,
                        |latest| if latest >= epoch { self.running(now, latest).count() } else { 0 },
                    ),
                    needed: self.electorate.majority(),
                }
            }
        }
    }

    fn relied_on(&self) -> Duration {
        Duration::from_micros(micros(self.fence).saturating_mul(RELIED_ON_PERCENT) / 100)
    }

    fn renewal(&self) -> Duration {
        self.fence / RENEWALS_PER_FENCE
    }
}

/// A hold on the fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// The epoch that a majority supports.
    pub epoch: Epoch,
    /// When that ends if nothing is renewed.
    pub until: Instant,
}

#[cfg(test)]
mod tests;
