//! Who follows a silent issuer: a pure function of what a node knows at the end of a round of questions.
//!
//! A round asks the holder and every ranked candidate; [`Round`] keeps the answers that came in time, and
//! [`elect`] decides. Given the same facts it decides the same on every node, so at most one of the nodes that
//! agree on the answers promotes itself. Nodes that do not agree, on two sides of a cut, may both promote: the
//! spine merges afterwards, or a fence prevents it.
//!
//! Absent: a clock, a memory, a message. The machine measures silence, sends the questions and keeps the
//! promotion until it is sealed.
//!
//! Spec: docs/issuance.md, Election.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::spine::Fold;
use super::window::{Epoch, Window};
use crate::guards::Guards;
use crate::id::NodeId;
use crate::time::{Duration, Instant, Now, WallTime};

/// Everything an election depends on.
#[derive(Debug, Clone)]
pub struct Ballot<'a> {
    /// Whether failover is configured.
    pub failover: bool,
    /// This node.
    pub me: &'a NodeId,
    /// Whether this node's role is issuer: the holder, promoted, or the configured issuer of a spine without lease.
    pub is_issuer: bool,
    /// Whether the boot grace still runs.
    pub in_boot_grace: bool,
    /// The spine as this node has it.
    pub fold: &'a Fold,
    /// How long the tip has not advanced here, counted from this boot at the earliest.
    pub silence: Duration,
    /// How long it may rest before the holder may be replaced (`silence_z`).
    pub silence_max: Duration,
    /// The candidates.
    pub field: &'a Field,
    /// Whether this node itself could seal.
    pub own: Fitness,
    /// What the others answered in this round ([`Round::outcome`]); an entry for this node is ignored.
    pub answers: &'a BTreeMap<NodeId, Answer>,
    /// The electorate of this node's configuration.
    pub electorate: &'a Electorate,
    /// What the fence says of a promotion.
    pub consent: Consent,
    /// Which rules stand.
    pub guards: Guards,
}

/// What a fence says of a promotion of this node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// No fence: nobody is asked.
    NotNeeded,
    /// Grants of a majority at this epoch are in hand and have not run out.
    Granted(Epoch),
    /// They are not; asking is what comes next.
    Missing {
        /// Electors that granted.
        granted: usize,
        /// Electors that must.
        needed: usize,
    },
}

/// What an election decided, and the facts it turned on. Displays as the decision's name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Decision {
    /// Failover is not configured.
    Disabled,
    /// This node is the issuer.
    IsHolder,
    /// This node started too recently to judge.
    BootGrace,
    /// There are no rows: only the configured issuer may begin.
    SpineEmptyBootstrapOnly,
    /// Fewer than two candidates are known: there is nobody to have won against.
    FieldOfOne {
        /// How many are known.
        candidates: usize,
    },
    /// Rows still arrive.
    TipAdvancing {
        /// How long ago the last one did.
        silence: Duration,
        /// How long there must have been none.
        needed: Duration,
    },
    /// The holder answered and is fit.
    HolderReachable {
        /// The holder.
        holder: NodeId,
    },
    /// Somebody knows more of the spine than this node.
    SpineBehind {
        /// Who.
        peer: NodeId,
        /// The tip it has.
        tip: Option<Window>,
        /// The epoch it knows.
        epoch: Option<Epoch>,
    },
    /// No candidate is both fit and reachable, this node included.
    NoFitCandidate {
        /// Why this node is not, when it is a candidate itself.
        own: Option<Unfit>,
    },
    /// Another candidate comes first.
    SuccessorIs {
        /// Which.
        successor: NodeId,
    },
    /// This node is the successor, but a majority has not granted it.
    NoMajority {
        /// The epoch that it asks for, at least.
        epoch: Epoch,
        /// Electors that granted.
        granted: usize,
        /// Electors that must.
        needed: usize,
    },
    /// This node is the successor.
    Promote {
        /// The epoch that it seals with.
        epoch: Epoch,
    },
}

impl Decision {
    /// The decisions by name, in the order in which their conditions are tried.
    pub const NAMES: [&'static str; 12] = [
        "disabled",
        "is_holder",
        "boot_grace",
        "spine_empty_bootstrap_only",
        "field_of_one",
        "tip_advancing",
        "holder_reachable",
        "spine_behind",
        "no_fit_candidate",
        "successor_is",
        "no_majority",
        "promote",
    ];

    /// Which of [`Decision::NAMES`] it is.
    pub const fn index(&self) -> usize {
        match self {
            Self::Disabled => 0,
            Self::IsHolder => 1,
            Self::BootGrace => 2,
            Self::SpineEmptyBootstrapOnly => 3,
            Self::FieldOfOne { .. } => 4,
            Self::TipAdvancing { .. } => 5,
            Self::HolderReachable { .. } => 6,
            Self::SpineBehind { .. } => 7,
            Self::NoFitCandidate { .. } => 8,
            Self::SuccessorIs { .. } => 9,
            Self::NoMajority { .. } => 10,
            Self::Promote { .. } => 11,
        }
    }

    /// Whether it stands whatever others would answer: then nobody has to be asked.
    pub const fn needs_no_answer(&self) -> bool {
        self.index() <= 5
    }

    /// Whether two decisions are the same for people, whatever their facts: equal names.
    pub fn same_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::SuccessorIs { successor: one }, Self::SuccessorIs { successor: two }) => one == two,
            _ => self.index() == other.index(),
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::NAMES[self.index()])?;
        if let Self::SuccessorIs { successor } = self { write!(f, "_{successor}") } else { Ok(()) }
    }
}

/// Decides one election. The conditions are tried in the order of [`Decision`]; the first that fails is the
/// decision.
pub fn elect(ballot: &Ballot<'_>) -> Decision {
    cannot_vote(ballot)
        .or_else(|| holder_stands(ballot))
        .or_else(|| spine_behind(ballot))
        .unwrap_or_else(|| successor(ballot))
}

/// What keeps this node from judging at all.
fn cannot_vote(ballot: &Ballot<'_>) -> Option<Decision> {
    let candidates = ballot.field.len();
    if !ballot.failover {
        Some(Decision::Disabled)
    } else if ballot.is_issuer {
        Some(Decision::IsHolder)
    } else if ballot.in_boot_grace && ballot.guards.election_boot_grace {
        Some(Decision::BootGrace)
    } else if ballot.fold.tip.is_none() && ballot.guards.empty_spine_elects_nobody {
        Some(Decision::SpineEmptyBootstrapOnly)
    } else if candidates <= 1 && ballot.guards.field_of_one_holds {
        Some(Decision::FieldOfOne { candidates })
    } else {
        None
    }
}

/// The holder is there, as rows or its own word tell.
fn holder_stands(ballot: &Ballot<'_>) -> Option<Decision> {
    let (silence, needed) = (ballot.silence, ballot.silence_max);
    if silence <= needed && ballot.guards.silence_before_election {
        return Some(Decision::TipAdvancing { silence, needed });
    }
    let holder = &ballot.fold.lease.as_ref()?.holder;
    let stands = ballot.answer(holder).is_some_and(|answer| answer.fit || !ballot.guards.unfit_replaced);
    (stands && ballot.guards.reachable_holder_stands)
        .then(|| Decision::HolderReachable { holder: holder.clone() })
}

/// Anybody's answer counts, whoever may become issuer.
fn spine_behind(ballot: &Ballot<'_>) -> Option<Decision> {
    if !ballot.guards.spine_behind_holds {
        return None;
    }
    let epoch = ballot.fold.lease.as_ref().map(|lease| lease.epoch);
    let (peer, answer) =
        ballot.counted().find(|(_, answer)| answer.tip > ballot.fold.tip || answer.epoch > epoch)?;
    Some(Decision::SpineBehind { peer: peer.clone(), tip: answer.tip, epoch: answer.epoch })
}

/// The first ranked candidate that is fit and there, other than the holder that is to be replaced.
fn successor(ballot: &Ballot<'_>) -> Decision {
    let holder = ballot.fold.lease.as_ref().map(|lease| &lease.holder);
    let first =
        ballot.field.ranked().find(|candidate| Some(*candidate) != holder && ballot.is_fit(candidate));
    match first {
        None => Decision::NoFitCandidate {
            own: ballot.field.contains(ballot.me).then_some(ballot.own.err()).flatten(),
        },
        Some(first) if first != ballot.me => Decision::SuccessorIs { successor: first.clone() },
        Some(_) => promotion(ballot),
    }
}

fn promotion(ballot: &Ballot<'_>) -> Decision {
    // Legacy rows are those of the configured issuer, which would adopt them at 0.
    let epoch = ballot.fold.lease.as_ref().map_or(Epoch(0), |lease| lease.epoch).next();
    match ballot.consent {
        Consent::NotNeeded => Decision::Promote { epoch },
        Consent::Granted(granted) if granted >= epoch => Decision::Promote { epoch: granted },
        // Grants for a generation that the spine has reached meanwhile are worth nothing.
        Consent::Granted(_) => {
            Decision::NoMajority { epoch, granted: 0, needed: ballot.electorate.majority() }
        }
        Consent::Missing { granted, needed } => Decision::NoMajority { epoch, granted, needed },
    }
}

impl Ballot<'_> {
    /// The answers that count. Where promises count, somebody with another electorate said nothing; where they
    /// do not, a list that is being changed must not make a holder look silent.
    fn counted(&self) -> impl Iterator<Item = (&NodeId, &Answer)> {
        self.answers.iter().filter(|(id, answer)| {
            let fenced = self.consent != Consent::NotNeeded && self.guards.electorate_compared;
            *id != self.me && (!fenced || answer.electorate == self.electorate.digest())
        })
    }

    fn answer(&self, id: &NodeId) -> Option<&Answer> {
        self.counted().find(|(from, _)| *from == id).map(|(_, answer)| answer)
    }

    fn is_fit(&self, candidate: &NodeId) -> bool {
        let fit = if candidate == self.me {
            Some(self.own.is_ok())
        } else {
            self.answer(candidate).map(|answer| answer.fit)
        };
        fit.is_some_and(|fit| fit || !self.guards.unfit_skipped)
    }
}

/// The candidates, ranked by the bytes of their ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field(BTreeSet<NodeId>);

impl Field {
    /// This node and every member heard alive since this boot, those now down included, as far as eligible.
    ///
    /// With live members only a cluster of two never fails over: the dead one leaves the view before the silence
    /// is long enough, and a field of one remains.
    pub fn new<'a>(
        me: &NodeId,
        heard: impl IntoIterator<Item = &'a NodeId>,
        electorate: &Electorate,
    ) -> Self {
        let mut known: BTreeSet<NodeId> = heard.into_iter().cloned().collect();
        known.insert(me.clone());
        known.retain(|id| electorate.includes(id));
        Self(known)
    }

    /// The candidates, first choice first.
    pub fn ranked(&self) -> impl Iterator<Item = &NodeId> {
        self.0.iter()
    }

    /// Whether a node may be chosen.
    pub fn contains(&self, id: &NodeId) -> bool {
        self.0.contains(id)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The nodes that may become issuer (`eligible`), and what tells two such lists apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Electorate {
    members: BTreeSet<NodeId>,
    digest: ElectorateDigest,
}

/// Equal for equal lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ElectorateDigest(pub u64);

impl Electorate {
    /// The nodes of `eligible`; everybody when it is empty.
    pub fn new(eligible: BTreeSet<NodeId>) -> Self {
        let mut hash = Sha256::new();
        for member in &eligible {
            hash.update(member.as_str());
            hash.update("#"); // which no id holds
        }
        let [a, b, c, d, e, f, g, h, ..] = <[u8; 32]>::from(hash.finalize());
        let digest = ElectorateDigest(u64::from_be_bytes([a, b, c, d, e, f, g, h]));
        Self { members: eligible, digest }
    }

    /// Whether a node may become issuer.
    pub fn includes(&self, id: &NodeId) -> bool {
        self.members.is_empty() || self.members.contains(id)
    }

    /// The nodes named; none when everybody is eligible.
    pub const fn members(&self) -> &BTreeSet<NodeId> {
        &self.members
    }

    /// How many of those named are more than half of them.
    pub fn majority(&self) -> usize {
        self.members.len() / 2 + 1
    }

    /// What tells this list from others.
    pub const fn digest(&self) -> ElectorateDigest {
        self.digest
    }
}

/// What a node says of itself when it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Whether it could seal ([`Condition::fitness`]).
    pub fit: bool,
    /// The tip it knows.
    pub tip: Option<Window>,
    /// The lease's epoch as it knows it.
    pub epoch: Option<Epoch>,
    /// What its wall clock shows.
    pub wall: WallTime,
    /// Which electorate it is configured with.
    pub electorate: ElectorateDigest,
}

/// One round of questions: who was asked when, and who answered in time.
#[derive(Debug, Clone)]
pub struct Round {
    number: u64,
    asked_at: Instant,
    asked: BTreeSet<NodeId>,
    answers: BTreeMap<NodeId, Answer>,
    timeout: Duration,
}

/// What became of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// Answers may still come, until this moment.
    Waiting(Instant),
    /// Everybody answered, or those who did not are not heard in time.
    Over(&'a BTreeMap<NodeId, Answer>),
    /// This node slept through its own round: that others look silent says nothing of them. Ask again.
    Void,
}

impl Round {
    /// Begins a round. `number` is above that of every round before it in this boot.
    pub const fn begin(number: u64, now: Instant, asked: BTreeSet<NodeId>, timeout: Duration) -> Self {
        Self { number, asked_at: now, asked, answers: BTreeMap::new(), timeout }
    }

    /// The number that answers must carry.
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Who is asked.
    pub const fn asked(&self) -> &BTreeSet<NodeId> {
        &self.asked
    }

    /// Takes an answer. False when it is dropped: of another round, late, or from somebody not asked.
    pub fn record(&mut self, now: Instant, from: &NodeId, number: u64, answer: Answer) -> bool {
        let wanted = number == self.number && self.asked.contains(from) && now <= self.over_at();
        if wanted {
            self.answers.insert(from.clone(), answer);
        }
        wanted
    }

    /// Where the round stands.
    pub fn outcome(&self, now: Instant) -> Outcome<'_> {
        if now > self.over_at().after(self.timeout) {
            Outcome::Void
        } else if now >= self.over_at() || self.answers.len() == self.asked.len() {
            Outcome::Over(&self.answers)
        } else {
            Outcome::Waiting(self.over_at())
        }
    }

    /// When the time for answers is up.
    pub const fn over_at(&self) -> Instant {
        self.asked_at.after(self.timeout)
    }
}

/// Fit to seal, or why not.
pub type Fitness = Result<(), Unfit>;

/// Why a node cannot be expected to seal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unfit {
    /// It holds the lease, and no row of its own became durable for too long.
    Stalled,
    /// An operator paused it.
    Paused,
    /// Its disk does not take rows.
    DiskFails,
    /// Its wall clock is too far ahead of the others'.
    ClockAhead,
    /// Its wall clock is behind the tip, or before the genesis.
    ClockBehindTip,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stalled => "its rows do not become durable",
            Self::Paused => "it is paused",
            Self::DiskFails => "its disk fails",
            Self::ClockAhead => "its clock is ahead of the others",
            Self::ClockBehindTip => "its clock is behind the tip",
        })
    }
}

/// What a node's fitness depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition {
    /// Whether the fold names this node as holder.
    pub is_holder: bool,
    /// How long ago a row of its own became durable, counted from this boot at the earliest.
    pub unsealed_for: Duration,
    /// `silence_z`.
    pub silence_max: Duration,
    /// Whether an operator paused it.
    pub paused: bool,
    /// Whether the disk takes writes: the last one neither failed nor hangs.
    pub disk_works: bool,
    /// Whether the wall clock is more than `silence_z` ahead of the median ([`clock_ahead`]).
    pub clock_ahead: bool,
    /// The window of its wall clock; `None` before the genesis.
    pub window: Option<Window>,
    /// The tip of the spine.
    pub tip: Option<Window>,
}

impl Condition {
    /// A holder is judged by what it does, anybody else by what it could do.
    pub fn fitness(&self) -> Fitness {
        if self.is_holder {
            return if self.unsealed_for > self.silence_max { Err(Unfit::Stalled) } else { Ok(()) };
        }
        self.able()
    }

    /// Whether the next row could be sealed here, as far as this node can tell: without it a node neither asks for
    /// a promise nor has one renewed, and a promotion that was not sealed lapses.
    pub fn able(&self) -> Fitness {
        if self.paused {
            Err(Unfit::Paused)
        } else if !self.disk_works {
            Err(Unfit::DiskFails)
        } else if self.clock_ahead {
            Err(Unfit::ClockAhead)
        } else if self.window.is_none() || self.window < self.tip {
            Err(Unfit::ClockBehindTip)
        } else {
            Ok(())
        }
    }
}

/// Fewest clocks of which a median says something: of two, each may be the wrong one.
pub const CLOCKS_MIN: usize = 3;

/// The median of these wall clocks as they stand now, each as it was read at a moment of this node's monotonic
/// clock; `None` of fewer than [`CLOCKS_MIN`]. Of an even number the lower of the middle two: when half the
/// clocks are ahead, it is safer to think so.
pub fn median_wall(now: Instant, readings: impl IntoIterator<Item = Now>) -> Option<WallTime> {
    let aged = |reading: Now| {
        let age = crate::time::micros(now.since(reading.instant));
        reading.wall.offset_micros(i64::try_from(age).unwrap_or(i64::MAX))
    };
    let mut clocks: Vec<WallTime> = readings.into_iter().map(aged).collect();
    clocks.sort_unstable();
    (clocks.len() >= CLOCKS_MIN).then(|| clocks[(clocks.len() - 1) / 2])
}

/// How far this node's wall clock is ahead of the median of all live clocks, its own included. Zero when it is
/// not, or when there are too few to tell.
pub fn clock_ahead(now: Now, others: impl IntoIterator<Item = Now>) -> Duration {
    let Some(median) = median_wall(now.instant, others.into_iter().chain([now])) else {
        return Duration::ZERO;
    };
    let ahead = now.wall.unix_micros().saturating_sub(median.unix_micros());
    Duration::from_micros(u64::try_from(ahead).unwrap_or(0))
}

#[cfg(test)]
mod tests;
