//! The node's part in the issuance: it passes messages and news of members on, and carries wishes out.
//!
//! Absent: any decision. The issuance knows ids; addresses, sequence numbers and frames are the node's.
//!
//! Spec: docs/issuance.md, Replication.

use alloc::sync::Arc;

use super::Node;
use crate::id::{NodeId, Seq};
use crate::io::{Alarm, Event, Lane, NodeOutput, Outbox, Outgoing};
use crate::issuance::event::IssuanceEvent;
use crate::issuance::machine::{Issuance, Wish};
use crate::limits::FRAME_BYTES_MAX;
use crate::time::{Instant, Now};
use crate::wire::message::{Document, Message};
use crate::wire::{Header, envelope};

/// What a frame was about, once the document has taken it in.
pub(super) enum Said {
    Document(Arc<Document>),
    Farewell,
    /// A message to another machine.
    Other(Message),
}

/// What the issuance has to know of what happened to the view.
pub(super) fn tell(issuance: &mut Issuance, event: &Event) {
    if let Event::MemberUp { id, .. } = event {
        issuance.joined(id);
    } else if let Event::MemberDown { id } | Event::MemberLeft { id } = event {
        issuance.gone(id);
    }
}

impl Node {
    /// Whether a message to another machine comes from a boot that no document has told of yet. It is dropped, and
    /// moves no watermark: one above the record would blind this node to a next boot whose clock went back, which
    /// would find nothing to refute.
    pub(super) fn is_early(
        &mut self,
        header: &Header,
        message: &Message,
        out: &mut Outbox<NodeOutput>,
    ) -> bool {
        let known = self.document().members.get(&header.sender).map(|record| record.incarnation);
        let early = message.is_direct() && known != Some(header.incarnation) && self.guards.direct_after_push;
        if early {
            if let Some(issuance) = &mut self.issuance {
                issuance.dropped_early();
            }
            let event = IssuanceEvent::Early { from: header.sender.clone() };
            out.push(NodeOutput::Event(Event::Issuance(event)));
        }
        early
    }

    /// A message of a peer to the issuance; nobody's where there is none.
    pub(super) fn tell_issuance(&mut self, now: Now, from: &NodeId, message: Message) {
        let Some(issuance) = &mut self.issuance else { return };
        match message {
            Message::Pull(pull) => issuance.pulled(now, from, &pull),
            Message::Page(page) => issuance.page(now, from, &page),
            Message::Probe(probe) => issuance.probed(now, from, probe),
            Message::Standing(standing) => issuance.answered(now, from, standing),
            Message::Claim(request) => issuance.claimed(now, from, &request),
            Message::Vote(reply) => issuance.voted(now.instant, from, &reply),
            Message::StatePush { .. } | Message::Leave {} => {}
        }
    }

    /// Lets the issuance do what is due, and carries its wishes out.
    pub(super) fn issue(&mut self, now: Now, out: &mut Outbox<NodeOutput>) {
        let Some(mut issuance) = self.issuance.take() else { return };
        for wish in issuance.run_due(now) {
            match wish {
                Wish::Event(event) => out.push(NodeOutput::Event(Event::Issuance(event))),
                Wish::Persist { token, batch } => out.push(NodeOutput::Persist { token, batch }),
                Wish::Send { to, message } => self.send_to(now.instant, &to, message, out),
            }
        }
        self.issuance = Some(issuance);
    }

    /// Sends a message to one member, where its record says it is.
    fn send_to(&mut self, now: Instant, to: &NodeId, message: Message, out: &mut Outbox<NodeOutput>) {
        let addr = self.document().members.get(to).and_then(|record| record.addr.socket());
        let Some(addr) = addr.filter(|addr| *addr != self.advertised) else { return };
        if self.next_seq == Seq(0) && self.guards.direct_after_push {
            // Nobody listens to a boot, or an incarnation, that no document has told of.
            self.push(now, out);
        }
        let header =
            Header { sender: self.id().clone(), incarnation: self.incarnation(), seq: self.next_seq };
        let body_bytes = envelope::encoded_len(&self.cluster, &header, message.measure());
        if body_bytes > FRAME_BYTES_MAX {
            // Pages and cursors are cut to fit; nothing else is long.
            return out.push(NodeOutput::Alarm(Alarm::MessageTooLong { body_bytes }));
        }
        self.next_seq = Seq(self.next_seq.0 + 1);
        out.push(NodeOutput::Send(Outgoing {
            targets: Arc::from([addr]),
            lane: Lane::Direct,
            header,
            message,
            body_bytes,
        }));
    }
}
