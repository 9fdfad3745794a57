//! The story of a run, line by line.
//!
//! Drill steps in the file's words, what nodes saw in plain ones. Frames are not lines; refusals are gathered,
//! one line for each host, kind and second. Off, it costs a comparison per event.

use std::collections::BTreeMap;
use std::time::Duration;

use firedrill_core::io::{CloseReason, Event, ResetReason};
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

/// The lines so far.
#[derive(Debug)]
pub(super) struct Timeline<'s> {
    scenario: &'s Scenario,
    on: bool,
    entries: Vec<Entry>,
    bursts: BTreeMap<(HostIx, &'static str), Burst>,
}

impl<'s> Timeline<'s> {
    pub(super) fn new(scenario: &'s Scenario, on: bool) -> Self {
        Self { scenario, on, entries: Vec::new(), bursts: BTreeMap::new() }
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
        self.entries
    }

    fn push(&mut self, at: Instant, host: Option<HostIx>, kind: EntryKind, text: String) {
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
        self.push(at, Some(host), EntryKind::Event, String::new());
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
    })
}
