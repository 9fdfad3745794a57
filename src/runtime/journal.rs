//! Events as structured log lines.
//!
//! Membership changes are told at `info` and `warn`, the rest at `debug` and below. What a stranger can cause
//! is warned about once a minute and kind, so that nobody who merely reaches the port can flood the log; the
//! full count is in the metrics. The secret never comes near this module.

use std::collections::BTreeMap;
use std::time::Duration;

use firedrill_core::id::NodeId;
use firedrill_core::io::{Alarm, CloseReason, Event, ResetReason};
use firedrill_core::issuance::event::IssuanceEvent;
use firedrill_core::time::Instant;
use tracing::{debug, error, info, trace, warn};

/// At most one warning of a kind in this time.
const WARNING_PAUSE: Duration = Duration::from_secs(60);

/// Writes one node's log.
#[derive(Debug)]
pub(crate) struct Journal {
    node: NodeId,
    warnings: Warnings,
}

/// When each kind of trouble was last warned about.
#[derive(Debug, Default)]
struct Warnings(BTreeMap<&'static str, Instant>);

/// Warns, or tells at `debug` when the same kind was warned about less than a minute ago.
macro_rules! warn_rarely {
    ($warnings:expr, $now:expr, $kind:expr, $($line:tt)+) => {
        if $warnings.may_warn($kind, $now) {
            warn!($($line)+);
        } else {
            debug!($($line)+);
        }
    };
}

impl Journal {
    pub(crate) const fn new(node: NodeId) -> Self {
        Self { node, warnings: Warnings(BTreeMap::new()) }
    }

    /// A broken invariant of the code.
    pub(crate) fn alarm(&self, alarm: &Alarm) {
        error!(node = %self.node, %alarm, "invariant broken: please report this as a bug");
    }

    /// Something that happened at `now`.
    pub(crate) fn event(&mut self, now: Instant, event: &Event) {
        let Self { node, warnings } = self;
        match event {
            Event::Started { incarnation } => info!(%node, %incarnation, "node started"),
            Event::MemberUp { id, addr, incarnation } => info!(%node, %id, %addr, %incarnation, "member up"),
            Event::MemberSuspect { id } => warn!(%node, %id, "member suspect: two pushes missed"),
            Event::MemberRecovered { id } => info!(%node, %id, "member recovered"),
            Event::MemberDown { id } => warn!(%node, %id, "member down: silent for the suspicion timeout"),
            Event::MemberLeft { id } => info!(%node, %id, "member left"),
            Event::MemberConverted { id, incarnation } => {
                info!(%node, %id, %incarnation, "member recorded as left after a long silence");
            }
            Event::MemberReaped { id, incarnation } => debug!(%node, %id, %incarnation, "member forgotten"),
            Event::ReturnAnswered { id, incarnation } => {
                info!(%node, %id, noted = %incarnation, "member returned below its noted incarnation; it is told so");
            }
            Event::Refuted { told: _, from, to } => {
                info!(%node, %from, %to, "refuted a record about this node")
            }
            Event::Accepted { sender, incarnation, seq } => {
                trace!(%node, %sender, %incarnation, seq = seq.0, "frame accepted");
            }
            Event::Rejected { reason, sender, .. } => {
                let (kind, sender) = (reason.name(), sender.as_ref().map(tracing::field::display));
                if reason.is_charged() {
                    warn_rarely!(warnings, now, kind, %node, sender, reason = kind, "frame rejected");
                } else {
                    debug!(%node, sender, reason = kind, "frame rejected");
                }
            }
            Event::NotAdmitted { sender } => {
                let line = "frame dropped: the table of senders is full";
                warn_rarely!(warnings, now, "not_admitted", %node, %sender, "{line}");
            }
            Event::DuplicateNodeId { id } => {
                let line = "two hosts seem to use one node id: give each its own";
                warn_rarely!(warnings, now, "duplicate", %node, %id, "{line}");
            }
            Event::Unsendable { body_bytes } => {
                error!(%node, body_bytes, "document too large for a frame: this node has stopped gossiping");
            }
            Event::RoundLate { late_us } => {
                warn!(%node, late_us, "round late: this process was starved or suspended");
            }
            Event::InboundClosed { inbound, reason } => {
                let (inbound, kind) = (inbound.0, close_reason(*reason));
                warn_rarely!(warnings, now, kind, %node, inbound, reason = kind, "inbound connection closed");
            }
            Event::LinkReset { addr, reason } => {
                debug!(%node, %addr, reason = reset_reason(*reason), "link given up");
            }
            Event::Issuance(event) => self.issuance(now, event),
        }
    }

    fn issuance(&mut self, now: Instant, event: &IssuanceEvent) {
        use IssuanceEvent as E;
        let Self { node, warnings } = self;
        match event {
            E::Sealing { window, .. } => trace!(%node, %window, "row stamped"),
            E::Sealed { window, elapsed, epoch, duplicate: false, .. } => {
                let epoch = epoch.map(|epoch| epoch.0);
                debug!(%node, %window, elapsed, epoch, "row sealed");
            }
            E::Sealed { window, duplicate: true, .. } => {
                warn!(%node, %window, "row sealed, but another had won its window: it does not count");
            }
            E::SealRefused { window } => {
                warn_rarely!(warnings, now, "seal_refused", %node, %window, "the disk refused a row");
            }
            E::DiskRefused {} => {
                error!(%node, "the disk refuses writes: free some space, or look at the file system")
            }
            E::Early { from } => {
                debug!(%node, %from, "message dropped: no push has told of its sender's boot yet")
            }
            E::Replicated { from, rows } => debug!(%node, %from, rows, "rows taken from a peer"),
            E::RowsConflict { from, rows } => {
                let line = "rows of a peer contradict those held: a node used a number twice";
                warn_rarely!(warnings, now, "rows_conflict", %node, %from, rows, "{line}");
            }
            E::LeaseMoved { epoch, holder } => info!(%node, %epoch, %holder, "lease moved"),
            E::TipSilent {} => warn!(%node, "no row for longer than silence_z"),
            E::Decided { decision } => info!(%node, %decision, "election decided"),
            E::Promoted { epoch } => warn!(%node, %epoch, "promoted: this node issues from now on"),
            E::PromotionLapsed { epoch } => {
                warn!(%node, %epoch, "promotion lapsed: this node could not seal");
            }
            E::Demoted { holder, epoch } => {
                warn!(%node, %holder, %epoch, "demoted: another node holds the lease");
            }
            E::FenceHeld { epoch } => info!(%node, %epoch, "a majority supports this node"),
            E::FenceLost {} => warn!(%node, "a majority no longer supports this node: it does not seal"),
            E::TipAheadOfClock { wait_z } => {
                error!(%node, wait_z = wait_z.0, "the tip is ahead of this node's clock: it cannot seal for so long");
            }
            E::ClockAhead { by_us } => {
                error!(%node, by_us, "this node's clock is far ahead of the others: it does not seal; set it right");
            }
            E::ClockBeforeGenesis {} => {
                error!(%node, "this node's clock shows a time before genesis_ms: it cannot seal; set it right");
            }
            E::Paused {} => warn!(%node, "paused: this node does not seal"),
            E::Resumed {} => info!(%node, "resumed"),
        }
    }
}

impl Warnings {
    /// Whether a warning of this kind is due; notes it if so.
    fn may_warn(&mut self, kind: &'static str, now: Instant) -> bool {
        let due = self.0.get(kind).is_none_or(|last| now.since(*last) >= WARNING_PAUSE);
        if due {
            self.0.insert(kind, now);
        }
        due
    }
}

const fn close_reason(reason: CloseReason) -> &'static str {
    match reason {
        CloseReason::Oversize => "a frame length of 0 or above the cap",
        CloseReason::Strikes => "three refusals before the MAC",
        CloseReason::Idle => "no whole frame within the idle limit",
        CloseReason::Displaced => "displaced by a newcomer before it authenticated",
        CloseReason::Full => "all inbound connections are taken",
    }
}

const fn reset_reason(reason: ResetReason) -> &'static str {
    match reason {
        ResetReason::DialTimeout => "the dial took too long",
        ResetReason::WriteTimeout => "a write took too long",
        ResetReason::PeerSilent => "the peer was silent for a suspicion timeout",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_of_trouble_warns_once_a_minute() {
        let mut warnings = Warnings::default();
        let at = |secs: u64| Instant::from_micros(secs * 1_000_000);
        let warned: Vec<bool> = [0, 1, 59, 60, 61].map(|secs| warnings.may_warn("mac", at(secs))).into();
        assert_eq!(warned, [true, false, false, true, false]);
        assert!(warnings.may_warn("oversize", at(61)), "another kind has a pause of its own");
    }
}
