//! What a run reached: events, verbs, pairs of verbs, faults with an effect, and rules whose work shows in what a node
//! holds.
//!
//! A drill that passes says little if nothing happened in it. The reach of many runs together is the coverage of
//! a campaign: what was never reached was never tested.
//!
//! Absent: code coverage. A rule is covered when what it is for happened, not when its line ran.
//!
//! Spec: docs/protocol.md; the decisions are its own.

use std::collections::BTreeSet;

use firedrill_core::io::{CloseReason, Event, ResetReason};
use firedrill_core::issuance::event::IssuanceEvent;
use firedrill_core::metrics::Table;
use firedrill_core::wire::Reject;

use crate::engine::Step;

/// What one run reached, by names that do not change from run to run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach {
    /// Events that a node reported: the words of scenario files, with the reason where there is one.
    pub events: BTreeSet<&'static str>,
    /// Verbs that fired.
    pub fired: BTreeSet<&'static str>,
    /// Verbs that changed something.
    pub effective: BTreeSet<&'static str>,
    /// What no event tells and a node's state shows: see [`TRACES`].
    pub traces: BTreeSet<&'static str>,
    /// Two verbs close together: the second fired while the first stood, or within three push intervals of it.
    pub pairs: BTreeSet<(&'static str, &'static str)>,
}

impl Reach {
    /// Notes what a node reported.
    pub(super) fn event(&mut self, event: &Event) {
        if let Some(name) = name(event) {
            self.events.insert(name);
        }
    }

    /// Notes what a step shows of a node. It had so many watermarks in this boot before.
    pub(super) fn step(&mut self, step: &Step<'_>, watermarks_before: usize, watermarks: usize) {
        if watermarks < watermarks_before {
            self.traces.insert(WATERMARK_FREED);
        }
        if step.node.metrics().admissions_refused != [0; Table::ALL.len()] {
            self.traces.insert(ADMISSION_REFUSED);
        }
        for event in step.events {
            self.event(event);
            if let Event::Refuted { to, .. } = event {
                let renewed = step.node.cell_incarnation() == *to;
                self.traces.insert(if renewed { CELL_RENEWED } else { CELL_KEPT });
            }
        }
    }

    /// Notes that so many nodes agreed for a whole push interval.
    pub(super) fn settled(&mut self, nodes: usize) {
        match nodes {
            0 | 1 => {}
            2 => self.traces.extend([SETTLED, SETTLED_TWO]),
            3..=CROWD => self.traces.extend([SETTLED]),
            _ => self.traces.extend([SETTLED, SETTLED_CROWD]),
        }
    }
}

/// A refutation kept the counter cell (decision 4).
const CELL_KEPT: &str = "cell_kept";
/// A refutation of the incarnation that its boot began with started a new cell (decision 4).
const CELL_RENEWED: &str = "cell_renewed";
/// A watermark was freed (decision 7).
const WATERMARK_FREED: &str = "watermark_freed";
/// A full table refused what came (decision 15).
const ADMISSION_REFUSED: &str = "admission_refused";
/// Several nodes agreed for a push interval, in which each hears its own record from others (decision 3).
const SETTLED: &str = "settled";
/// They were two (decision 13).
const SETTLED_TWO: &str = "settled_two";
/// They were more than [`CROWD`] (decision 13).
const SETTLED_CROWD: &str = "settled_crowd";
/// Most nodes of a usual cluster.
const CROWD: usize = 5;

/// Every name that [`Reach::traces`] can hold.
pub const TRACES: &[&str] =
    &[CELL_KEPT, CELL_RENEWED, WATERMARK_FREED, ADMISSION_REFUSED, SETTLED, SETTLED_TWO, SETTLED_CROWD];

/// Every name that [`Reach::events`] can hold.
pub const EVENTS: &[&str] = &[
    "started",
    "up",
    "suspect",
    "recovered",
    "down",
    "left",
    "converted",
    "reaped",
    "return_answered",
    "refuted",
    "duplicate_node_id",
    "unsendable",
    "round_late",
    "not_admitted",
    INCARNATION_REUSED,
    "rejected oversize",
    "rejected malformed",
    "rejected version",
    "rejected key_id",
    "rejected cluster",
    "rejected mac",
    "rejected self_origin",
    "rejected replay",
    "rejected payload",
    "inbound_closed oversize",
    "inbound_closed strikes",
    "inbound_closed idle",
    "inbound_closed displaced",
    "inbound_closed full",
    "link_reset dial_timeout",
    "link_reset write_timeout",
    "link_reset peer_silent",
];

/// A boot had an incarnation that an earlier boot of the same id had (the harness tells, not a node).
pub(super) const INCARNATION_REUSED: &str = "incarnation_reused";

/// `None` for what happens with every frame.
const fn name(event: &Event) -> Option<&'static str> {
    Some(match event {
        Event::Accepted { .. } => return None,
        Event::Started { .. } => "started",
        Event::MemberUp { .. } => "up",
        Event::MemberSuspect { .. } => "suspect",
        Event::MemberRecovered { .. } => "recovered",
        Event::MemberDown { .. } => "down",
        Event::MemberLeft { .. } => "left",
        Event::MemberConverted { .. } => "converted",
        Event::MemberReaped { .. } => "reaped",
        Event::ReturnAnswered { .. } => "return_answered",
        Event::Refuted { .. } => "refuted",
        Event::DuplicateNodeId { .. } => "duplicate_node_id",
        Event::Unsendable { .. } => "unsendable",
        Event::RoundLate { .. } => "round_late",
        Event::NotAdmitted { .. } => "not_admitted",
        Event::Rejected { reason, .. } => match reason {
            Reject::Oversize => "rejected oversize",
            Reject::Malformed => "rejected malformed",
            Reject::Version => "rejected version",
            Reject::KeyId => "rejected key_id",
            Reject::Cluster => "rejected cluster",
            Reject::Mac => "rejected mac",
            Reject::SelfOrigin => "rejected self_origin",
            Reject::Replay => "rejected replay",
            Reject::Payload => "rejected payload",
        },
        Event::InboundClosed { reason, .. } => match reason {
            CloseReason::Oversize => "inbound_closed oversize",
            CloseReason::Strikes => "inbound_closed strikes",
            CloseReason::Idle => "inbound_closed idle",
            CloseReason::Displaced => "inbound_closed displaced",
            CloseReason::Full => "inbound_closed full",
        },
        Event::LinkReset { reason, .. } => match reason {
            ResetReason::DialTimeout => "link_reset dial_timeout",
            ResetReason::WriteTimeout => "link_reset write_timeout",
            ResetReason::PeerSilent => "link_reset peer_silent",
        },
        Event::Issuance(event) => return issuance(event),
    })
}

/// `None` for what happens with every window.
const fn issuance(event: &IssuanceEvent) -> Option<&'static str> {
    Some(match event {
        IssuanceEvent::Sealing { .. }
        | IssuanceEvent::Sealed { duplicate: false, .. }
        | IssuanceEvent::Replicated { .. } => return None,
        IssuanceEvent::Sealed { duplicate: true, .. } => "sealed duplicate",
        IssuanceEvent::Early { .. } => "message_early",
        IssuanceEvent::SealRefused { .. } => "seal_refused",
        IssuanceEvent::DiskRefused {} => "disk_refused",
        IssuanceEvent::RowsConflict { .. } => "rows_conflict",
        IssuanceEvent::LeaseMoved { .. } => "lease_moved",
        IssuanceEvent::TipSilent {} => "silent",
        IssuanceEvent::Decided { decision } => DECIDED[decision.index()],
        IssuanceEvent::Promoted { .. } => "promoted",
        IssuanceEvent::PromotionLapsed { .. } => "promotion_lapsed",
        IssuanceEvent::Demoted { .. } => "demoted",
        IssuanceEvent::FenceHeld { .. } => "fence_held",
        IssuanceEvent::FenceLost {} => "fence_lost",
        IssuanceEvent::TipAheadOfClock { .. } => "tip_ahead_of_clock",
        IssuanceEvent::ClockAhead { .. } => "clock_ahead",
        IssuanceEvent::ClockBeforeGenesis {} => "clock_before_genesis",
        IssuanceEvent::Paused {} => "paused",
        IssuanceEvent::Resumed {} => "resumed",
    })
}

/// What elections decide, in the order of [`Decision::NAMES`](firedrill_core::issuance::election::Decision::NAMES).
const DECIDED: [&str; 12] = [
    "decided disabled",
    "decided is_holder",
    "decided boot_grace",
    "decided spine_empty_bootstrap_only",
    "decided field_of_one",
    "decided tip_advancing",
    "decided holder_reachable",
    "decided spine_behind",
    "decided no_fit_candidate",
    "decided successor_is",
    "decided no_majority",
    "decided promote",
];

#[cfg(test)]
mod tests {
    use super::*;
    use firedrill_core::id::NodeId;

    #[test]
    fn everything_that_can_be_reached_is_listed_once() {
        let listed: BTreeSet<&str> = EVENTS.iter().copied().collect();
        assert_eq!(listed.len(), EVENTS.len());
        for reason in Reject::ALL {
            let name =
                name(&Event::Rejected { reason, sender: None, inbound: None }).expect("a rejection is noted");
            assert_eq!(name, format!("rejected {}", reason.name()));
            assert!(listed.contains(name), "{name}");
        }
    }

    #[test]
    fn frames_that_pass_are_no_news() {
        let id = NodeId::new("a").unwrap();
        let mut reach = Reach::default();
        reach.event(&Event::Accepted {
            sender: id.clone(),
            incarnation: firedrill_core::id::Incarnation(1),
            seq: firedrill_core::id::Seq(0),
        });
        assert_eq!(reach, Reach::default());
        reach.event(&Event::MemberSuspect { id });
        assert_eq!(reach.events, BTreeSet::from(["suspect"]));
    }
}
