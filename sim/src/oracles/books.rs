//! What the steps tell of the issuance, kept once for all oracles: every row that any spine ever held, and what each
//! node's spine holds of them.
//!
//! It is the oracles' own account: it follows the rows themselves and folds them anew, and believes no sum, lease or
//! tip that a node tells. A step in which a node's issuance did nothing costs one comparison.
//!
//! Invariants: a row's number is its position in its stream; what is known of a stream never shrinks, whoever loses
//! it; a boot's account begins with what its disk held.
//!
//! Spec: docs/issuance.md, Rows.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use firedrill_core::config::IssuanceConfig;
use firedrill_core::id::NodeId;
use firedrill_core::io::Event;
use firedrill_core::issuance::event::IssuanceEvent;
use firedrill_core::issuance::machine::Issuance;
use firedrill_core::issuance::row::{Lease, Origin, Row};
use firedrill_core::issuance::window::{Epoch, Window};
use firedrill_core::time::Instant;

use super::sight::{Look, Subject};
use super::world::World;
use crate::scenario::model::HostIx;

/// How many tips of the past are kept; older ones give way.
const TIPS_MAX: usize = 1024;

/// A stream of rows as the run has seen it.
#[derive(Debug, Clone)]
pub struct Stream {
    /// Who wrote it, in which boot.
    pub origin: Origin,
    /// Its rows, the first that any spine held under each number.
    pub rows: Vec<Arc<Row>>,
}

/// One stream as one spine holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// Which of [`Books::streams`].
    pub stream: usize,
    /// How many of its rows are known.
    pub known: usize,
    /// How many of those are durable.
    pub durable: usize,
}

/// Rows of one stream that a step added to a spine: known from and to, durable from and to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gain {
    /// Which of [`Books::streams`].
    pub stream: usize,
    /// How many were known before, and are now.
    pub known: (usize, usize),
    /// How many were durable before, and are now.
    pub durable: (usize, usize),
}

/// Two rows under one number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Twice {
    /// Which stream.
    pub origin: Origin,
    /// The number in it.
    pub seq: usize,
    /// The row that was seen first.
    pub first: Arc<Row>,
    /// The other.
    pub other: Arc<Row>,
}

/// What one boot of a host holds, as its steps tell.
#[derive(Debug, Clone, Default)]
pub struct Account {
    seen: Option<(u32, u64, u64)>,
    /// How it is configured.
    pub config: Option<IssuanceConfig>,
    /// Its boot, by its own clock.
    pub booted_at: Instant,
    /// In the order in which the node came to know them.
    pub held: Vec<Held>,
    /// How many rows of each stream any boot of this host ever had durable.
    pub ever_durable: BTreeMap<usize, usize>,
    /// What the hosts had durable when this boot began, by stream.
    pub at_boot: Vec<BTreeMap<usize, usize>>,
    /// The highest window of its rows.
    pub tip: Option<Window>,
    /// When that rose, by its own clock; its boot at the earliest.
    pub tip_rose_at: Instant,
    /// The highest epoch of its rows, and the lowest issuer in it.
    pub lease: Option<Lease>,
    /// The tip and the lease before the last step.
    pub before: (Option<Window>, Option<Lease>),
    /// Members that came into view in this boot.
    pub heard: BTreeSet<NodeId>,
    /// Whether an operator paused it.
    pub paused: bool,
    /// Whether it says that its role is issuer.
    pub issues: bool,
    /// The lease that it tells.
    pub told_lease: Option<Lease>,
    /// The window that its wall clock shows.
    pub window: Option<Window>,
    /// How far its wall clock was from true time at the last step, in microseconds.
    pub wall_off_us: i64,
    /// When a row of its own became durable last, in true time.
    pub sealed_at: Option<Instant>,
    /// When its highest durable window rose to what, in true time.
    tips: VecDeque<(Instant, Window)>,
    /// What the last step added.
    pub gained: Vec<Gain>,
}

impl Account {
    /// How much of a stream this host holds: known and durable rows.
    pub fn of(&self, stream: usize) -> (usize, usize) {
        self.held.iter().find(|held| held.stream == stream).map_or((0, 0), |held| (held.known, held.durable))
    }

    /// The highest window that it had durable at a moment of true time, in this boot.
    pub fn tip_at(&self, at: Instant) -> Option<Window> {
        let later = self.tips.partition_point(|(rose, _)| *rose <= at);
        later.checked_sub(1).map(|last| self.tips[last].1)
    }

    fn add(&mut self, row: &Row, now: Instant) {
        if Some(row.window) > self.tip {
            self.tip = Some(row.window);
            self.tip_rose_at = now;
        }
        let Some(lease) = &row.lease else { return };
        let outranks = |held: &Lease| {
            lease.epoch > held.epoch || (lease.epoch == held.epoch && lease.holder < held.holder)
        };
        if self.lease.as_ref().is_none_or(outranks) {
            self.lease = Some(lease.clone());
        }
    }
}

/// The account of every host's issuance, and of all rows.
#[derive(Debug, Clone, Default)]
pub struct Books {
    streams: Vec<Stream>,
    index: BTreeMap<Origin, usize>,
    accounts: Vec<Account>,
    twice: Option<Twice>,
}

impl Books {
    /// Before anything happened.
    pub fn new(world: &World) -> Self {
        Self { accounts: vec![Account::default(); world.hosts().len()], ..Self::default() }
    }

    /// Every stream.
    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// A host's account, as of its last step.
    pub fn account(&self, host: HostIx) -> &Account {
        &self.accounts[host.0]
    }

    /// A number under which two rows were seen in the last step.
    pub const fn twice(&self) -> Option<&Twice> {
        self.twice.as_ref()
    }

    /// Every row that was ever seen.
    pub fn rows(&self) -> impl Iterator<Item = &Arc<Row>> {
        self.streams.iter().flat_map(|stream| &stream.rows)
    }

    /// Takes a step in; whether the node's issuance did anything in it.
    pub fn take_in<S: Subject>(&mut self, look: &Look<'_, S>, boot: bool) -> bool {
        let Some(issuance) = look.node.issuance() else { return false };
        let account = &mut self.accounts[look.host.0];
        for event in look.events {
            if let Event::MemberUp { id, .. } = event {
                account.heard.insert(id.clone());
            }
        }
        let seen = Some((look.boot, issuance.turn(), issuance.spine().version()));
        let told = look.events.iter().any(|event| matches!(event, Event::Issuance(_)));
        if seen == account.seen && !told {
            account.gained.clear();
            return false;
        }
        if boot || account.seen.is_none_or(|(boot, ..)| boot != look.boot) {
            self.open(look);
        }
        let account = &mut self.accounts[look.host.0];
        account.seen = seen;
        account.before = (account.tip, account.lease.clone());
        account.gained.clear();
        self.twice = None;
        self.read_rows(look, issuance);
        let account = &mut self.accounts[look.host.0];
        account.paused = issuance.is_paused();
        account.issues = issuance.role_at_last().is_issuer();
        if account.told_lease != issuance.spine().fold().lease {
            account.told_lease.clone_from(&issuance.spine().fold().lease);
        }
        account.window = issuance.window_at_last();
        let since_start = i64::try_from(look.at.as_micros()).unwrap_or(i64::MAX);
        account.wall_off_us = look.now.wall.unix_micros().saturating_sub(since_start);
        let sealed = |event: &Event| matches!(event, Event::Issuance(IssuanceEvent::Sealed { .. }));
        if look.events.iter().any(sealed) {
            account.sealed_at = Some(look.at);
        }
        if issuance.spine().durable_tip() > account.tips.back().map(|(_, tip)| *tip) {
            account.tips.extend(issuance.spine().durable_tip().map(|tip| (look.at, tip)));
            while account.tips.len() > TIPS_MAX {
                account.tips.pop_front();
            }
        }
        true
    }

    /// Begins the account of a boot.
    fn open<S: Subject>(&mut self, look: &Look<'_, S>) {
        let durable = |account: &Account| {
            account.held.iter().map(|held| (held.stream, held.durable)).collect::<BTreeMap<_, _>>()
        };
        let at_boot = self.accounts.iter().map(durable).collect();
        let account = &mut self.accounts[look.host.0];
        let heard = look
            .events
            .iter()
            .filter_map(|event| if let Event::MemberUp { id, .. } = event { Some(id.clone()) } else { None });
        *account = Account {
            config: look.node.issuance().map(|issuance| issuance.config().clone()),
            booted_at: look.now.instant,
            tip_rose_at: look.now.instant,
            ever_durable: std::mem::take(&mut account.ever_durable),
            at_boot,
            heard: heard.collect(),
            ..Account::default()
        };
    }

    fn read_rows<S: Subject>(&mut self, look: &Look<'_, S>, issuance: &Issuance) {
        let Self { streams, index, accounts, twice, .. } = self;
        let account = &mut accounts[look.host.0];
        for (position, (origin, rows, durable)) in issuance.spine().streams().enumerate() {
            if position == account.held.len() {
                let stream = *index.entry(origin.clone()).or_insert_with(|| {
                    streams.push(Stream { origin: origin.clone(), rows: Vec::new() });
                    streams.len() - 1
                });
                account.held.push(Held { stream, known: 0, durable: 0 });
            }
            let Held { stream, known, durable: before } = account.held[position];
            if known == rows.len() && before == durable {
                continue;
            }
            for (number, row) in rows.iter().enumerate().skip(known) {
                match streams[stream].rows.get(number) {
                    None => streams[stream].rows.push(Arc::clone(row)),
                    Some(first) if Arc::ptr_eq(first, row) || first == row => {}
                    Some(first) => {
                        let (first, other) = (Arc::clone(first), Arc::clone(row));
                        *twice = Some(Twice { origin: origin.clone(), seq: number + 1, first, other });
                    }
                }
                account.add(row, look.now.instant);
            }
            account.held[position] = Held { stream, known: rows.len(), durable };
            let most = account.ever_durable.entry(stream).or_default();
            *most = durable.max(*most);
            account.gained.push(Gain { stream, known: (known, rows.len()), durable: (before, durable) });
        }
    }
}

/// A row in few words.
pub fn told(row: &Row) -> String {
    let by = match &row.lease {
        Some(Lease { epoch, holder }) => format!(" by {holder} at epoch {epoch}"),
        None => String::new(),
    };
    format!(
        "the row of window {} ({} of {} windows){by}",
        row.window,
        row.elapsed,
        row.window.since(row.from_window)
    )
}

/// An epoch in words; a legacy row has none.
pub fn epoch_told(epoch: Option<Epoch>) -> String {
    epoch.map_or_else(|| String::from("no epoch"), |epoch| format!("epoch {epoch}"))
}
