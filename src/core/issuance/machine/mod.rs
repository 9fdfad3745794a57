//! The issuance of one node: composes spine, disk, pulls, election, fence and seal.
//!
//! [`Issuance`] is told what peers say, what the disk answers, who is in view and what time it is. Every call
//! settles in one order: what arrived, then standing down, pulls, election, fence, seal, and last the disk. What it
//! wants done comes out as wishes.
//!
//! Invariants: a row is sent, shown and counted only when it is durable here; received rows are in the fold at
//! once; one row of this node at a time waits to become durable; nothing but the spine and the highest epoch
//! promised survives a restart.
//!
//! Absent: membership (whoever owns this machine says who came and went), addresses, bytes.
//!
//! Spec: docs/issuance.md, Role; Seal; Election; Replication; Disk.

mod duty;
mod poll;
mod sync;
#[cfg(test)]
mod tests;
mod view;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::election::{Answer, Decision, Electorate, Round};
use super::event::IssuanceEvent;
use super::fence::{Claimant, Elector, Intent};
use super::replication::Pulls;
use super::row::{Lease, Origin, Stamped};
use super::spine::{Rules, Spine};
use super::window::{Calendar, Epoch, Window, Z};
use super::writer::{Batch, Token, Writer, Written};
use crate::config::{Fencing, IssuanceConfig};
use crate::guards::Guards;
use crate::id::{Incarnation, NodeId};
use crate::limits::MEMBERS_MAX;
use crate::metrics::IssuanceMetrics;
use crate::rng::Seed;
use crate::time::{Duration, Instant, Now};
use crate::wire::message::Message;

pub use view::IssuanceView;

/// What a node found on its disk at boot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovered {
    /// Every row that is durable there, in any order.
    pub rows: Vec<Stamped>,
    /// The highest epoch that it promised as an elector.
    pub promised: Option<Epoch>,
}

/// What the machine wants done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Send a message to one node.
    Send { to: NodeId, message: Message },
    /// Write a batch, and answer with what became of it.
    Persist { token: Token, batch: Batch },
    /// Something happened.
    Event(IssuanceEvent),
}

/// The issuance of one node.
#[derive(Debug, Clone)]
pub struct Issuance {
    config: IssuanceConfig,
    me: NodeId,
    /// Names the stream of rows that this boot seals, unless an earlier boot had this number.
    boot: Incarnation,
    guards: Guards,
    calendar: Calendar,
    spans: Spans,
    electorate: Electorate,
    booted_at: Instant,
    /// Since when it has run without a break: what it knows may be stale for a grace after that.
    awake_since: Instant,
    /// When it had something to do next, as of the last call.
    due_at: Instant,

    spine: Spine,
    writer: Writer,
    pulls: Pulls,
    /// The stream of this boot, once it has sealed.
    origin: Option<Origin>,
    /// When a row of each origin became durable last, in this boot.
    updated: BTreeMap<Origin, Z>,

    /// Peers in view.
    live: BTreeSet<NodeId>,
    /// Peers heard since this boot, whether they still are in view or not.
    heard: BTreeSet<NodeId>,
    /// What live peers' wall clocks read, and when they said so.
    clocks: BTreeMap<NodeId, Now>,

    /// The tip and lease that were acted on last.
    tip: Option<Window>,
    lease: Option<Lease>,
    /// When the tip rose last, at boot at the earliest.
    tip_at: Instant,
    /// When a row of this node became durable last, at boot at the earliest.
    sealed_at: Instant,
    /// The epoch of a promotion that is not sealed yet.
    promoted: Option<Epoch>,
    /// The epoch at which this boot was issuer last, until it stands down.
    issued_at: Option<Epoch>,
    paused: bool,

    next_check: Instant,
    next_round: u64,
    round: Option<Round>,
    decision: Option<Decision>,
    /// The answers that it was made from.
    answers: BTreeMap<NodeId, Answer>,
    fence: Option<Fence>,
    next_seal: Option<Instant>,

    told: Told,
    metrics: IssuanceMetrics,
    /// The clocks at the last call.
    at: Now,
    /// How often everything was settled.
    turn: u64,
    /// Something was told since the last call of [`Issuance::run_due`].
    stirred: bool,
    /// Reused by every call; empty in between.
    wishes: Vec<Wish>,
}

/// Both sides of the fence.
#[derive(Debug, Clone)]
struct Fence {
    elector: Elector,
    claimant: Claimant,
    /// What this node wanted of it last.
    intent: Intent,
    /// The epoch held when that was told last.
    held: Option<Epoch>,
}

/// Times of the configuration as durations.
#[derive(Debug, Clone, Copy)]
struct Spans {
    silence: Duration,
    grace: Duration,
    check: Duration,
    pull: Duration,
    probe: Duration,
}

/// Conditions that were told as events and last.
#[derive(Debug, Clone, Copy, Default)]
struct Told {
    silent: bool,
    tip_ahead: bool,
    clock_ahead: bool,
    before_genesis: bool,
    disk: bool,
}

impl Issuance {
    /// Begins with what the disk holds. `boot` names the stream of rows of this boot.
    pub fn new(
        config: &IssuanceConfig,
        me: &NodeId,
        boot: Incarnation,
        recovered: Recovered,
        seed: &Seed,
        at: Now,
        guards: Guards,
    ) -> Self {
        let now = at.instant;
        let rules = Rules { merged: guards.rows_merged, lowest_holds: guards.lowest_id_holds };
        let mut spine = Spine::new(me.clone()).with_rules(rules);
        let unusable = spine.recover(recovered.rows);
        let electorate = Electorate::new(config.eligible.clone());
        let mut rounds = seed.fork("rounds").rng();
        // Random, so that no answer to a request of an earlier boot passes for one to this boot's.
        let mut round = || rounds.u64() >> 1;
        let fence = (config.fencing == Fencing::Majority).then(|| {
            let span = config.fence_z.duration();
            let elector = Elector::new(me.clone(), electorate.clone(), span, recovered.promised, now, guards);
            let claimant = Claimant::new(electorate.clone(), span, seed, now, guards);
            Fence { elector, claimant, intent: Intent::Nothing, held: None }
        });
        let fold = spine.fold();
        let mut issuance = Self {
            me: me.clone(),
            boot,
            guards,
            calendar: Calendar::new(config.genesis_ms, config.width),
            spans: Spans {
                silence: config.silence_z.duration(),
                grace: config.boot_grace_z.duration(),
                check: config.check_z.duration(),
                pull: config.pull_z.duration(),
                probe: Duration::from_millis(config.probe_timeout_ms),
            },
            electorate,
            booted_at: now,
            awake_since: now,
            due_at: now,
            writer: Writer::default(),
            pulls: Pulls::new(now, config.pull_z.duration(), round()),
            origin: None,
            updated: BTreeMap::new(),
            live: BTreeSet::new(),
            heard: BTreeSet::new(),
            clocks: BTreeMap::new(),
            tip: fold.tip,
            lease: fold.lease.clone(),
            tip_at: now,
            sealed_at: now,
            promoted: None,
            issued_at: None,
            paused: false,
            next_check: now.after(config.check_z.duration()),
            next_round: round(),
            round: None,
            decision: None,
            answers: BTreeMap::new(),
            fence,
            next_seal: Some(now),
            told: Told::default(),
            metrics: IssuanceMetrics { rows_unusable: unusable.len() as u64, ..IssuanceMetrics::default() },
            at,
            turn: 0,
            stirred: true,
            wishes: Vec::new(),
            spine,
            config: config.clone(),
        };
        issuance.issued_at = issuance.held_epoch();
        issuance
    }

    /// A peer came into view: it is a candidate from now on, and is asked for its rows.
    pub(crate) fn joined(&mut self, peer: &NodeId) {
        self.live.insert(peer.clone());
        if self.heard.len() < MEMBERS_MAX {
            self.heard.insert(peer.clone());
        }
        self.stirred = true;
        let ask = self.pulls.joined(peer);
        self.pull(ask);
    }

    /// A peer left the view. It stays a candidate.
    pub(crate) fn gone(&mut self, peer: &NodeId) {
        self.stirred = true;
        self.live.remove(peer);
        self.clocks.remove(peer);
        self.pulls.forget(peer);
    }

    /// A message to this machine was dropped: no document had told of its sender's boot yet.
    pub(crate) fn dropped_early(&mut self) {
        self.metrics.messages_early = self.metrics.messages_early.saturating_add(1);
    }

    /// The disk answered.
    pub(crate) fn persisted(&mut self, now: Now, token: Token, written: Written) {
        let Some(settled) = self.writer.answered(now.instant, token, written) else { return };
        self.stirred = true;
        let z = self.calendar.z(now.wall).ok();
        for Stamped { origin, seq, .. } in &settled.rows {
            self.spine.persisted(origin, *seq);
        }
        if written == Written::Durable {
            let stamped = settled.rows.iter().chain(&settled.sealed);
            self.updated.extend(stamped.filter_map(|stamped| Some((stamped.origin.clone(), z?))));
        }
        if let Some(epoch) = settled.promised {
            self.promise_written(now.instant, epoch, written);
        }
        if let Some(row) = settled.sealed {
            self.seal_written(now.instant, row, written);
        }
        let refused = written == Written::Refused;
        if refused {
            self.metrics.writes_refused = self.metrics.writes_refused.saturating_add(1);
        }
        if refused && !self.told.disk {
            self.tell(IssuanceEvent::DiskRefused {});
        }
        self.told.disk = refused;
    }

    /// An operator stops this node from sealing, or lets it go on.
    pub(crate) fn pause(&mut self, paused: bool) {
        if self.paused != paused {
            self.paused = paused;
            self.stirred = true;
            self.tell(if paused { IssuanceEvent::Paused {} } else { IssuanceEvent::Resumed {} });
        }
    }

    /// Does what is due, and what follows from what was told since the last call.
    pub(crate) fn run_due(&mut self, now: Now) -> impl Iterator<Item = Wish> + '_ {
        // A pull's time is the least that another takes to replace a holder, so nothing can have happened before.
        if now.instant.since(self.due_at) > self.spans.pull {
            self.woken(now.instant);
        }
        self.at = now;
        if core::mem::take(&mut self.stirred) || self.next_deadline() <= now.instant {
            self.settle(now);
        }
        self.due_at = self.next_deadline();
        self.wishes.drain(..)
    }

    /// The machine was held: another may have been promoted meanwhile. It reads the log again, as after a start,
    /// before it seals.
    fn woken(&mut self, now: Instant) {
        self.awake_since = now;
        self.pulls.start_over(now);
    }

    fn settle(&mut self, now: Now) {
        self.turn += 1;
        self.follow_fold(now.instant);
        self.stand_down(now);
        for ask in self.pulls.due(now.instant, self.live.iter()) {
            self.pull(ask);
        }
        self.poll(now);
        self.ask_electors(now);
        self.seal(now);
        self.watch_clocks(now);
        if let Some((token, batch)) = self.writer.start(now.instant) {
            self.wishes.push(Wish::Persist { token, batch });
        }
    }

    /// When [`Issuance::run_due`] has something to do at the latest.
    pub(crate) fn next_deadline(&self) -> Instant {
        let round = self.round.as_ref().map(Round::over_at);
        let others = [round, self.writer.next_deadline(), self.next_seal, self.next_claim()];
        let check = if self.config.failover { self.next_check } else { Instant::FAR_FUTURE };
        others.into_iter().flatten().fold(self.pulls.next_deadline().min(check), Instant::min)
    }

    /// Takes note of a tip that rose and a lease that moved.
    fn follow_fold(&mut self, now: Instant) {
        let fold = self.spine.fold();
        if fold.tip > self.tip {
            self.tip = fold.tip;
            self.tip_at = now;
            self.told.silent = false;
        }
        if fold.lease != self.lease {
            self.lease.clone_from(&fold.lease);
            if let Some(Lease { epoch, holder }) = fold.lease.clone() {
                self.tell(IssuanceEvent::LeaseMoved { epoch, holder });
            }
        }
        if !self.told.silent && self.tip.is_some() && now.since(self.tip_at) > self.spans.silence {
            self.told.silent = true;
            self.tell(IssuanceEvent::TipSilent {});
        }
    }

    /// The epoch at which the spine says that this node holds the lease.
    fn held_epoch(&self) -> Option<Epoch> {
        self.spine.fold().lease.as_ref().filter(|lease| lease.holder == self.me).map(|lease| lease.epoch)
    }

    /// The window that the wall clock shows, if any.
    fn window(&self, now: Now) -> Option<Window> {
        self.calendar.window(now.wall).ok()
    }

    /// How far this node's wall clock is ahead of the live nodes'.
    fn clock_ahead(&self, now: Now) -> Duration {
        super::election::clock_ahead(now, self.clocks.values().copied())
    }

    /// Tells of clocks that nobody can seal by.
    fn watch_clocks(&mut self, now: Now) {
        let z = self.calendar.z(now.wall);
        let ahead = z.as_ref().ok().zip(self.tip).and_then(|(z, tip)| {
            super::seal::tip_ahead_of_clock(tip, *z, self.config.width, self.config.silence_z)
        });
        if let Some(wait) = ahead.filter(|_| !self.told.tip_ahead) {
            self.tell(IssuanceEvent::TipAheadOfClock { wait_z: wait });
        }
        self.told.tip_ahead = ahead.is_some();
        if z.is_err() && !self.told.before_genesis {
            self.tell(IssuanceEvent::ClockBeforeGenesis {});
        }
        self.told.before_genesis = z.is_err();
        let by = self.clock_ahead(now);
        let far = by > self.spans.silence;
        if far && !self.told.clock_ahead {
            self.tell(IssuanceEvent::ClockAhead { by_us: crate::time::micros(by) });
        }
        self.told.clock_ahead = far;
    }

    fn tell(&mut self, event: IssuanceEvent) {
        self.wishes.push(Wish::Event(event));
    }

    fn send(&mut self, to: &NodeId, message: Message) {
        self.wishes.push(Wish::Send { to: to.clone(), message });
    }
}
