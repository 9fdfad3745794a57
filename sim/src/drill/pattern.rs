//! Which of the core's events a scenario means.

use firedrill_core::id::NodeId;
use firedrill_core::io::Event;
use firedrill_core::issuance::event::IssuanceEvent;
use firedrill_core::issuance::window::Epoch;
use firedrill_core::node::Node;

use crate::scenario::model::{Ending, EventKind, EventPattern, HostIx};

/// The kind a scenario knows an event by; `None` for the everyday ones it cannot name.
pub(super) const fn kind(event: &Event) -> Option<EventKind> {
    Some(match event {
        Event::Accepted { .. } | Event::NotAdmitted { .. } => return None,
        Event::Started { .. } => EventKind::Started,
        Event::Rejected { reason, .. } => EventKind::Rejected(*reason),
        Event::MemberUp { .. } => EventKind::Up,
        Event::MemberSuspect { .. } => EventKind::Suspect,
        Event::MemberRecovered { .. } => EventKind::Recovered,
        Event::MemberDown { .. } => EventKind::Down,
        Event::MemberLeft { .. } => EventKind::Left,
        Event::MemberConverted { .. } => EventKind::Converted,
        Event::MemberReaped { .. } => EventKind::Reaped,
        Event::ReturnAnswered { .. } => EventKind::ReturnAnswered,
        Event::Refuted { .. } => EventKind::Refuted,
        Event::DuplicateNodeId { .. } => EventKind::DuplicateNodeId,
        Event::Unsendable { .. } => EventKind::Unsendable,
        Event::RoundLate { .. } => EventKind::RoundLate,
        Event::InboundClosed { .. } => EventKind::InboundClosed,
        Event::LinkReset { .. } => EventKind::LinkReset,
        Event::Issuance(event) => match event {
            IssuanceEvent::Promoted { .. } => EventKind::Promoted,
            IssuanceEvent::PromotionLapsed { .. } => EventKind::PromotionLapsed,
            IssuanceEvent::Demoted { .. } => EventKind::Demoted,
            IssuanceEvent::Sealed { .. } => EventKind::Sealed,
            IssuanceEvent::TipSilent {} => EventKind::Silent,
            IssuanceEvent::LeaseMoved { .. } => EventKind::LeaseMoved,
            IssuanceEvent::TipAheadOfClock { .. } => EventKind::TipAheadOfClock,
            IssuanceEvent::ClockAhead { .. } => EventKind::ClockAhead,
            IssuanceEvent::DiskRefused {} => EventKind::DiskRefused,
            IssuanceEvent::FenceHeld { .. } => EventKind::FenceHeld,
            IssuanceEvent::FenceLost {} => EventKind::FenceLost,
            IssuanceEvent::Sealing { .. }
            | IssuanceEvent::SealRefused { .. }
            | IssuanceEvent::Early { .. }
            | IssuanceEvent::Replicated { .. }
            | IssuanceEvent::RowsConflict { .. }
            | IssuanceEvent::Decided { .. }
            | IssuanceEvent::ClockBeforeGenesis {}
            | IssuanceEvent::Paused {}
            | IssuanceEvent::Resumed {} => return None,
        },
    })
}

/// Whom an event is about: a peer, the node itself, or (a stranger's frame or connection) nobody.
fn subject<'a>(event: &'a Event, node: &'a Node) -> Option<&'a NodeId> {
    match event {
        Event::Started { .. }
        | Event::Refuted { .. }
        | Event::Unsendable { .. }
        | Event::RoundLate { .. } => Some(node.id()),
        Event::Accepted { sender, .. } | Event::NotAdmitted { sender } => Some(sender),
        Event::Rejected { sender, .. } => sender.as_ref(),
        Event::MemberUp { id, .. }
        | Event::MemberSuspect { id }
        | Event::MemberRecovered { id }
        | Event::MemberDown { id }
        | Event::MemberLeft { id }
        | Event::MemberConverted { id, .. }
        | Event::MemberReaped { id, .. }
        | Event::ReturnAnswered { id, .. }
        | Event::DuplicateNodeId { id } => Some(id),
        Event::LinkReset { addr, .. } => {
            let members = &node.document().members;
            members.iter().find(|(_, record)| record.addr.socket() == Some(*addr)).map(|(id, _)| id)
        }
        Event::InboundClosed { .. } => None,
        // The lease is about its holder, everything else about the node itself.
        Event::Issuance(IssuanceEvent::LeaseMoved { holder, .. }) => Some(holder),
        Event::Issuance(_) => Some(node.id()),
    }
}

/// Why a connection ended, for an event that tells of one.
fn ending(event: &Event) -> Option<Ending> {
    if let Event::InboundClosed { reason, .. } = event {
        Some(Ending::Closed(*reason))
    } else if let Event::LinkReset { reason, .. } = event {
        Some(Ending::Reset(*reason))
    } else {
        None
    }
}

/// The epoch that an event of the issuance tells.
fn epoch(event: &Event) -> Option<Epoch> {
    let Event::Issuance(event) = event else { return None };
    match event {
        IssuanceEvent::Sealed { epoch, .. } | IssuanceEvent::Sealing { epoch, .. } => *epoch,
        IssuanceEvent::LeaseMoved { epoch, .. }
        | IssuanceEvent::Promoted { epoch }
        | IssuanceEvent::PromotionLapsed { epoch }
        | IssuanceEvent::Demoted { epoch, .. }
        | IssuanceEvent::FenceHeld { epoch } => Some(*epoch),
        IssuanceEvent::SealRefused { .. }
        | IssuanceEvent::DiskRefused {}
        | IssuanceEvent::Early { .. }
        | IssuanceEvent::Replicated { .. }
        | IssuanceEvent::RowsConflict { .. }
        | IssuanceEvent::TipSilent {}
        | IssuanceEvent::Decided { .. }
        | IssuanceEvent::FenceLost {}
        | IssuanceEvent::TipAheadOfClock { .. }
        | IssuanceEvent::ClockAhead { .. }
        | IssuanceEvent::ClockBeforeGenesis {}
        | IssuanceEvent::Paused {}
        | IssuanceEvent::Resumed {} => None,
    }
}

/// The windows that a sealed row covers.
const fn elapsed(event: &Event) -> Option<u64> {
    if let Event::Issuance(IssuanceEvent::Sealed { elapsed, .. }) = event { Some(*elapsed) } else { None }
}

/// Whether an event of `host`, whose kind is known already, is one that the pattern means.
pub(super) fn matches(
    pattern: &EventPattern,
    kind: EventKind,
    event: &Event,
    host: HostIx,
    node: &Node,
) -> bool {
    pattern.kind == kind
        && pattern.on.is_none_or(|on| on == host)
        && pattern.subject.as_ref().is_none_or(|wanted| subject(event, node) == Some(wanted))
        && pattern.reason.is_none_or(|wanted| ending(event) == Some(wanted))
        && pattern.epoch.is_none_or(|wanted| epoch(event) == Some(wanted))
        && pattern.elapsed.is_none_or(|wanted| elapsed(event) == Some(wanted))
}
