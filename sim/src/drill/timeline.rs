//! The story of a run, line by line.
//!
//! Drill steps in the file's words, what nodes saw in plain ones. Frames are not lines; refusals are gathered,
//! one line for each host, kind and second. Rows are gathered too: those that a node seals while nothing else
//! happens are one line, and one that gives windows up stands alone. Off, it costs a comparison per event.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use firedrill_core::io::{CloseReason, Event, ResetReason};
use firedrill_core::issuance::election::Decision;
use firedrill_core::issuance::event::IssuanceEvent;
use firedrill_core::issuance::window::{Epoch, Window};
use firedrill_core::time::Instant;
use firedrill_core::wire::Reject;

use super::words;
use crate::outcome::{Entry, EntryKind};
use crate::scenario::model::{HostIx, Scenario};

/// Refusals of one kind within this time are one line.
const BURST: Duration = Duration::from_secs(1);

/// Things of one kind that happened many times.
#[derive(Debug)]
struct Burst {
    entry: usize,
    since: Instant,
    count: u64,
}

/// Rows that one node sealed while nothing else happened.
#[derive(Debug)]
struct Seals {
    entry: usize,
    first: Window,
    last: Window,
    rows: u64,
}

/// The lines so far.
#[derive(Debug)]
pub(super) struct Timeline<'s> {
    scenario: &'s Scenario,
    on: bool,
    entries: Vec<Entry>,
    bursts: BTreeMap<(HostIx, &'static str), Burst>,
    seals: Vec<Seals>,
    /// By host: where in `seals` its rows are counted, since the last other line.
    sealing: BTreeMap<HostIx, usize>,
}

impl<'s> Timeline<'s> {
    pub(super) fn new(scenario: &'s Scenario, on: bool) -> Self {
        Self {
            scenario,
            on,
            entries: Vec::new(),
            bursts: BTreeMap::new(),
            seals: Vec::new(),
            sealing: BTreeMap::new(),
        }
    }

    /// Whether lines are kept: whoever would build a text only for the timeline asks first.
    pub(super) const fn is_on(&self) -> bool {
        self.on
    }

    /// Adds a line of the drill itself.
    pub(super) fn tell(&mut self, at: Instant, kind: EntryKind, text: impl FnOnce() -> String) {
        if self.on {
            self.push(at, None, kind, text());
        }
    }

    /// Adds a line of a node.
    pub(super) fn tell_node(
        &mut self,
        at: Instant,
        host: HostIx,
        kind: EntryKind,
        text: impl FnOnce() -> String,
    ) {
        if self.on {
            self.push(at, Some(host), kind, text());
        }
    }

    /// Adds what a node saw.
    pub(super) fn event(&mut self, at: Instant, host: HostIx, event: &Event) {
        if !self.on {
            return;
        }
        if let Event::Issuance(IssuanceEvent::Sealed {
            window, from_window, elapsed, duplicate: false, ..
        }) = event
            && window.since(*from_window) == *elapsed
        {
            return self.sealed(at, host, *window);
        }
        match repeated(event) {
            Some(what) => self.burst(at, host, what),
            None => {
                if let Some(text) = sentence(self.scenario, host, event) {
                    self.push(at, Some(host), EntryKind::Event, text);
                }
            }
        }
    }

    /// All lines, in order.
    pub(super) fn into_entries(mut self) -> Vec<Entry> {
        let bursts: Vec<_> = std::mem::take(&mut self.bursts).into_iter().collect();
        for ((_, what), burst) in bursts {
            self.close(what, &burst);
        }
        for Seals { entry, first, last, rows } in self.seals {
            if let Some(entry) = self.entries.get_mut(entry) {
                entry.text = match rows {
                    1 => format!("seals window {first}"),
                    _ => format!("seals windows {first} to {last}, {rows} rows"),
                };
            }
        }
        self.entries
    }

    /// Counts a row into the line of those before it, if nothing has happened since.
    fn sealed(&mut self, at: Instant, host: HostIx, window: Window) {
        let open = self.sealing.get(&host).and_then(|place| self.seals.get_mut(*place));
        if let Some(seals) = open {
            (seals.last, seals.rows) = (window, seals.rows + 1);
            return;
        }
        let entry = self.entries.len();
        self.push_beside(at, Some(host), EntryKind::Event, String::new());
        self.sealing.insert(host, self.seals.len());
        self.seals.push(Seals { entry, first: window, last: window, rows: 1 });
    }

    fn push(&mut self, at: Instant, host: Option<HostIx>, kind: EntryKind, text: String) {
        self.sealing.clear();
        self.push_beside(at, host, kind, text);
    }

    /// A line that is no reason to begin another one for the rows that nodes seal meanwhile.
    fn push_beside(&mut self, at: Instant, host: Option<HostIx>, kind: EntryKind, text: String) {
        let node = host.map(|host| words::host_name(self.scenario, host).to_owned());
        self.entries.push(Entry { at_us: at.as_micros(), node, kind, text });
    }

    /// Counts into the line of this kind that began less than a second ago, or begins one.
    fn burst(&mut self, at: Instant, host: HostIx, what: &'static str) {
        if let Some(burst) = self.bursts.get_mut(&(host, what))
            && at.since(burst.since) < BURST
        {
            burst.count += 1;
            return;
        }
        let fresh = Burst { entry: self.entries.len(), since: at, count: 1 };
        self.push_beside(at, Some(host), EntryKind::Event, String::new());
        if let Some(over) = self.bursts.insert((host, what), fresh) {
            self.close(what, &over);
        }
    }

    fn close(&mut self, what: &str, burst: &Burst) {
        if let Some(entry) = self.entries.get_mut(burst.entry) {
            entry.text = match burst.count {
                1 => what.to_owned(),
                count => format!("{what} ({count} times within a second)"),
            };
        }
    }
}

/// Whether the story has a line for an event that scenarios cannot name.
pub(super) const fn is_told(event: &Event) -> bool {
    let Event::Issuance(event) = event else { return false };
    !matches!(
        event,
        IssuanceEvent::Sealing { .. } | IssuanceEvent::Early { .. } | IssuanceEvent::Replicated { .. }
    )
}

/// An event in words; `None` where there is nothing to say beyond what caused it.
pub(super) fn told(scenario: &Scenario, host: HostIx, event: &Event) -> Option<String> {
    repeated(event).map(str::to_owned).or_else(|| sentence(scenario, host, event))
}

/// An event that comes alone, in words.
pub(crate) fn sentence(scenario: &Scenario, host: HostIx, event: &Event) -> Option<String> {
    let timing = scenario.hosts.get(host.0)?.config.timing();
    Some(match event {
        Event::Started { incarnation } => format!("starts with incarnation {incarnation}"),
        Event::MemberUp { id, .. } => format!("sees {id}"),
        Event::MemberSuspect { id } => format!("{id} is suspect: 2 pushes missed"),
        Event::MemberRecovered { id } => format!("hears {id} again"),
        Event::MemberDown { id } => {
            format!("drops {id} from its view: silent for {}", words::time(timing.suspicion))
        }
        Event::MemberLeft { id } => format!("drops {id} from its view: it has left"),
        Event::MemberConverted { id, .. } => {
            format!("records {id} as left: silent for {}", words::time(timing.tombstone()))
        }
        Event::MemberReaped { id, .. } => format!("forgets {id}: its tombstone has expired"),
        Event::ReturnAnswered { id, incarnation } => {
            format!("tells the returning {id} that it has to outrank incarnation {incarnation}")
        }
        Event::Refuted { told: _, from, to } => {
            format!(
                "refutes a record about itself: incarnation {from} rises by {}",
                to.0.saturating_sub(from.0)
            )
        }
        Event::DuplicateNodeId { id } => format!("sees signs that two hosts use the id {id}"),
        Event::Unsendable { body_bytes } => {
            format!("cannot send its document any more: {body_bytes} bytes are too many for a frame")
        }
        Event::RoundLate { late_us } => {
            let late = words::time(Duration::from_micros(*late_us));
            format!("runs a round {late} late, and starts every member's silence anew")
        }
        Event::Issuance(event) => return issuance(event),
        Event::Accepted { .. }
        | Event::Rejected { .. }
        | Event::NotAdmitted { .. }
        | Event::InboundClosed { .. }
        | Event::LinkReset { .. } => return None,
    })
}

/// What comes in bursts, in words.
const fn repeated(event: &Event) -> Option<&'static str> {
    Some(match event {
        Event::Rejected { reason, .. } => match reason {
            Reject::Oversize => "rejects a frame: its length is 0 or above the cap",
            Reject::Malformed => "rejects a frame: not an envelope",
            Reject::Version => "rejects a frame: another protocol version",
            Reject::KeyId => "rejects a frame: signed with an unknown key",
            Reject::Cluster => "rejects a frame: from another cluster",
            Reject::Mac => "rejects a frame: wrong signature",
            Reject::SelfOrigin => "rejects a frame: it bears this node's own id",
            Reject::Replay => "rejects a frame: seen before, or older than one that was",
            Reject::Payload => "rejects a frame: unknown or broken message",
        },
        Event::NotAdmitted { .. } => "drops a frame: its table of senders is full",
        Event::InboundClosed { reason, .. } => match reason {
            CloseReason::Oversize => "closes a connection: frame length 0 or above the cap",
            CloseReason::Strikes => "closes a connection: three refusals",
            CloseReason::Idle => "closes a connection: no whole frame in time",
            CloseReason::Displaced => {
                "closes a connection: it never authenticated, and a newcomer needs room"
            }
            CloseReason::Full => "closes a connection: all are taken by members",
        },
        Event::LinkReset { reason, .. } => match reason {
            ResetReason::DialTimeout => "gives up a link: the dial took too long",
            ResetReason::WriteTimeout => "gives up a link: a write took too long",
            ResetReason::PeerSilent => "gives up a link: its peer is silent, so it dials anew",
        },
        Event::Started { .. }
        | Event::Accepted { .. }
        | Event::MemberUp { .. }
        | Event::MemberSuspect { .. }
        | Event::MemberRecovered { .. }
        | Event::MemberDown { .. }
        | Event::MemberLeft { .. }
        | Event::MemberConverted { .. }
        | Event::MemberReaped { .. }
        | Event::ReturnAnswered { .. }
        | Event::Refuted { .. }
        | Event::DuplicateNodeId { .. }
        | Event::Unsendable { .. }
        | Event::RoundLate { .. } => return None,
        Event::Issuance(IssuanceEvent::Replicated { .. }) => "takes rows from a peer",
        Event::Issuance(_) => return None,
    })
}

/// What an election came to, in words.
fn decided(decision: &Decision) -> String {
    match decision {
        Decision::Disabled => "failover is off".to_owned(),
        Decision::IsHolder => "it holds the lease itself".to_owned(),
        Decision::BootGrace => "it has started too recently to judge".to_owned(),
        Decision::SpineEmptyBootstrapOnly => {
            "there are no rows, and only the configured issuer begins".to_owned()
        }
        Decision::FieldOfOne { .. } => "it knows no other candidate".to_owned(),
        Decision::TipAdvancing { .. } => "rows still arrive".to_owned(),
        Decision::HolderReachable { holder } => format!("{holder} holds the lease, answers and is fit"),
        Decision::SpineBehind { peer, .. } => format!("{peer} knows more rows than it does"),
        Decision::NoFitCandidate { own: Some(_) } => "no candidate is fit, itself included".to_owned(),
        Decision::NoFitCandidate { own: None } => "no candidate is fit".to_owned(),
        Decision::SuccessorIs { successor } => format!("{successor} comes first"),
        Decision::NoMajority { granted, needed, .. } => {
            format!("it has the consent of {granted} electors, and needs {needed}")
        }
        Decision::Promote { .. } => "it is the successor".to_owned(),
    }
}

/// What a node did, for an event that tells of a row it sealed.
pub(super) fn seal(event: &Event) -> Option<String> {
    if let Event::Issuance(sealed @ IssuanceEvent::Sealed { .. }) = event { issuance(sealed) } else { None }
}

/// A row that was sealed, with what it gives up.
fn row(window: Window, from_window: Window, elapsed: u64, epoch: Option<Epoch>, duplicate: bool) -> String {
    let mut text = format!("seals window {window}");
    if let Some(epoch) = epoch {
        let _ = write!(text, " at epoch {epoch}");
    }
    if elapsed > 1 {
        let _ = write!(text, ", covering {elapsed} windows");
    }
    match window.since(from_window).saturating_sub(elapsed) {
        0 => {}
        1 => text.push_str(", giving up 1"),
        many => {
            let _ = write!(text, ", giving up {many}");
        }
    }
    if duplicate {
        text.push_str("; another row has won the window, so it does not count");
    }
    text
}

/// An event of the issuance that comes alone, in words.
fn issuance(event: &IssuanceEvent) -> Option<String> {
    Some(match event {
        IssuanceEvent::Sealing { .. } | IssuanceEvent::Early { .. } | IssuanceEvent::Replicated { .. } => {
            return None;
        }
        IssuanceEvent::Sealed { window, from_window, elapsed, epoch, duplicate } => {
            row(*window, *from_window, *elapsed, *epoch, *duplicate)
        }
        IssuanceEvent::SealRefused { window } => {
            format!("seals nothing for window {window}: its disk refuses")
        }
        IssuanceEvent::DiskRefused {} => "finds that its disk refuses writes".to_owned(),
        IssuanceEvent::RowsConflict { from, rows } => {
            format!("is sent {rows} rows by {from} that contradict what it holds")
        }
        IssuanceEvent::LeaseMoved { epoch, holder } => format!("sees {holder} hold the lease, epoch {epoch}"),
        IssuanceEvent::TipSilent {} => "sees no new row for longer than silence_z".to_owned(),
        // An issuer that issues, and everybody else who sees it do so, decide this all day.
        IssuanceEvent::Decided {
            decision:
                Decision::Disabled | Decision::IsHolder | Decision::BootGrace | Decision::TipAdvancing { .. },
        } => return None,
        IssuanceEvent::Decided { decision } => format!("holds an election: {}", decided(decision)),
        IssuanceEvent::Promoted { epoch } => format!("promotes itself, epoch {epoch}"),
        IssuanceEvent::PromotionLapsed { epoch } => {
            format!("gives up its promotion to epoch {epoch}: it could not seal")
        }
        IssuanceEvent::Demoted { holder, epoch } => {
            format!("stands down: {holder} holds the lease, epoch {epoch}")
        }
        IssuanceEvent::FenceHeld { epoch } => format!("has a majority's promise, epoch {epoch}"),
        IssuanceEvent::FenceLost {} => "has no majority's promise any more".to_owned(),
        IssuanceEvent::TipAheadOfClock { wait_z } => {
            format!("cannot seal for {} Z: the tip is ahead of its clock", wait_z.0)
        }
        IssuanceEvent::ClockAhead { by_us } => {
            format!("finds its clock {} ahead of the others", words::time(Duration::from_micros(*by_us)))
        }
        IssuanceEvent::ClockBeforeGenesis {} => "finds its clock before the genesis".to_owned(),
        IssuanceEvent::Paused {} => "is told to stop sealing".to_owned(),
        IssuanceEvent::Resumed {} => "is told that it may seal again".to_owned(),
    })
}
