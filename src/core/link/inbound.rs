//! What peers and strangers may hold open here, and for how long.
//!
//! Reaching the port is enough to open a connection, so each is bounded before anyone proves to know the
//! secret: [`INBOUND_MAX`] at once, a whole frame within the idle limit (prefix and body together), and
//! [`STRIKES_MAX`] refusals before the MAC, which never decay. At the cap the oldest connection that never
//! authenticated makes room, so strangers cannot keep a peer out.
//!
//! [`Inbound::next_wake`] is a lower bound, as in [`crate::link::outbound`].
//!
//! Absent: writing. Nothing is ever answered on an accepted connection.
//!
//! Spec: docs/protocol.md, Connection policy; Limits; decisions 1, 6 and 16.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use bytes::Bytes;

use crate::guards::Guards;
use crate::io::{CloseReason, EndpointOutput, Event, InboundId, Outbox};
use crate::limits::{ACCEPT_PAUSE, INBOUND_MAX, STRIKES_MAX};
use crate::link::target::exceeds_at;
use crate::time::{Duration, Instant};
use crate::wire::Reject;
use crate::wire::frame::{Decoder, Oversize};

/// The inbound connections of one endpoint.
#[derive(Debug)]
pub(crate) struct Inbound {
    connections: BTreeMap<InboundId, Connection>,
    /// Numbers connections by age; the driver's numbers need not rise.
    accepted: u64,
    idle: Duration,
    guards: Guards,
    /// No connection is overdue before; [`Instant::FAR_FUTURE`] when none will be.
    idle_at: Instant,
    /// Accepting is paused until then.
    resume_at: Option<Instant>,
}

#[derive(Debug)]
struct Connection {
    number: u64,
    decoder: Decoder,
    /// When it was accepted, or delivered its last whole frame.
    fresh_at: Instant,
    authenticated: bool,
    strikes: u8,
}

impl Inbound {
    /// No connection yet. Each has `idle` to deliver a whole frame.
    pub(crate) fn new(idle: Duration, guards: Guards) -> Self {
        Self {
            connections: BTreeMap::new(),
            accepted: 0,
            idle,
            guards,
            idle_at: Instant::FAR_FUTURE,
            resume_at: None,
        }
    }

    /// Somebody connected.
    pub(crate) fn accepted(&mut self, now: Instant, inbound: InboundId, out: &mut Outbox<EndpointOutput>) {
        if self.connections.contains_key(&inbound) {
            return;
        }
        if self.connections.len() >= INBOUND_MAX && self.guards.inbound_bounded {
            let displaced = self.oldest_stranger().filter(|_| self.guards.stranger_displaced);
            let Some(stranger) = displaced else {
                close(inbound, CloseReason::Full, out);
                return;
            };
            self.close(stranger, CloseReason::Displaced, out);
        }
        let connection = Connection {
            number: self.accepted,
            decoder: Decoder::new(),
            fresh_at: now,
            authenticated: false,
            strikes: 0,
        };
        self.accepted += 1;
        self.connections.insert(inbound, connection);
        self.idle_at = self.idle_at.min(exceeds_at(now, self.idle));
    }

    /// The next body that `chunk` completes; `None` when the chunk is used up or the connection unknown.
    ///
    /// # Errors
    /// [`Oversize`] for a bad length; the connection is closed by then.
    pub(crate) fn next_body(
        &mut self,
        now: Instant,
        inbound: InboundId,
        chunk: &mut Bytes,
        out: &mut Outbox<EndpointOutput>,
    ) -> Result<Option<Bytes>, Oversize> {
        let Some(connection) = self.connections.get_mut(&inbound) else { return Ok(None) };
        let body = connection.decoder.next_body(chunk);
        match &body {
            Ok(Some(_)) => connection.fresh_at = now,
            Ok(None) => {}
            Err(Oversize { .. }) => self.close(inbound, CloseReason::Oversize, out),
        }
        body
    }

    /// A frame of this connection passed the MAC.
    pub(crate) fn authenticated(&mut self, inbound: InboundId) {
        if let Some(connection) = self.connections.get_mut(&inbound) {
            connection.authenticated = true;
            if !self.guards.strikes_kept {
                connection.strikes = 0;
            }
        }
    }

    /// A frame of this connection was refused; the third charged refusal closes it.
    pub(crate) fn refused(&mut self, inbound: InboundId, reason: Reject, out: &mut Outbox<EndpointOutput>) {
        let Some(connection) = self.connections.get_mut(&inbound) else { return };
        let charged = reason.is_charged() && (self.guards.cluster_charged || reason != Reject::Cluster);
        connection.strikes += u8::from(charged);
        if connection.strikes >= STRIKES_MAX {
            self.close(inbound, CloseReason::Strikes, out);
        }
    }

    /// The connection ended on its own.
    pub(crate) fn ended(&mut self, inbound: InboundId) {
        self.connections.remove(&inbound);
    }

    /// The listener failed: pause, rather than spin on the same error.
    pub(crate) fn accept_failed(&mut self, now: Instant, out: &mut Outbox<EndpointOutput>) {
        if self.resume_at.replace(now.after(ACCEPT_PAUSE)).is_none() {
            out.push(EndpointOutput::PauseAccept);
        }
    }

    /// Does what is due.
    pub(crate) fn wake(&mut self, now: Instant, out: &mut Outbox<EndpointOutput>) {
        if self.resume_at.is_some_and(|at| now >= at) {
            self.resume_at = None;
            out.push(EndpointOutput::ResumeAccept);
        }
        if now < self.idle_at {
            return;
        }
        let covers_body = self.guards.idle_covers_body;
        let timed = |held: &Connection| covers_body || !held.decoder.is_midway();
        let overdue = |held: &Connection| timed(held) && now >= exceeds_at(held.fresh_at, self.idle);
        let idle: Vec<InboundId> =
            self.connections.iter().filter(|(_, held)| overdue(held)).map(|(inbound, _)| *inbound).collect();
        for inbound in idle {
            self.close(inbound, CloseReason::Idle, out);
        }
        let oldest = self.connections.values().filter(|held| timed(held)).map(|held| held.fresh_at).min();
        self.idle_at = oldest.map_or(Instant::FAR_FUTURE, |fresh_at| exceeds_at(fresh_at, self.idle));
    }

    /// When a connection may be overdue.
    pub(crate) fn next_idle(&self) -> Option<Instant> {
        (self.idle_at < Instant::FAR_FUTURE).then_some(self.idle_at)
    }

    /// When accepting resumes, if it is paused.
    pub(crate) const fn next_resume(&self) -> Option<Instant> {
        self.resume_at
    }

    /// Connections held.
    pub(crate) fn len(&self) -> usize {
        self.connections.len()
    }

    /// Connections on which no frame passed the MAC yet.
    pub(crate) fn strangers(&self) -> usize {
        self.connections.values().filter(|held| !held.authenticated).count()
    }

    /// Since when a whole frame is awaited where it is awaited for longest.
    pub(crate) fn frame_awaited_since(&self) -> Option<Instant> {
        self.connections.values().map(|held| held.fresh_at).min()
    }

    /// Forgets every connection without a word to the driver: the endpoint is done.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.idle, self.guards);
    }

    fn oldest_stranger(&self) -> Option<InboundId> {
        let strangers = self.connections.iter().filter(|(_, connection)| !connection.authenticated);
        strangers.min_by_key(|(_, connection)| connection.number).map(|(inbound, _)| *inbound)
    }

    fn close(&mut self, inbound: InboundId, reason: CloseReason, out: &mut Outbox<EndpointOutput>) {
        self.connections.remove(&inbound);
        close(inbound, reason, out);
    }
}

fn close(inbound: InboundId, reason: CloseReason, out: &mut Outbox<EndpointOutput>) {
    out.push(EndpointOutput::CloseInbound { inbound });
    out.push(EndpointOutput::Event(Event::InboundClosed { inbound, reason }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const IDLE: Duration = Duration::from_secs(10);

    struct Bench {
        inbound: Inbound,
        out: Outbox<EndpointOutput>,
    }

    fn at(ms: u64) -> Instant {
        Instant::from_micros(ms * 1000)
    }

    fn closed(inbound: u64, reason: CloseReason) -> [EndpointOutput; 2] {
        let inbound = InboundId(inbound);
        let event = EndpointOutput::Event(Event::InboundClosed { inbound, reason });
        [EndpointOutput::CloseInbound { inbound }, event]
    }

    impl Bench {
        fn new() -> Self {
            Self { inbound: Inbound::new(IDLE, Guards::ON), out: Outbox::new() }
        }

        fn accept(&mut self, ms: u64, inbound: u64) -> Vec<EndpointOutput> {
            self.inbound.accepted(at(ms), InboundId(inbound), &mut self.out);
            self.out.drain().collect()
        }

        fn receive(
            &mut self,
            ms: u64,
            inbound: u64,
            bytes: &'static [u8],
        ) -> Result<Option<Bytes>, Oversize> {
            let mut chunk = Bytes::from_static(bytes);
            self.inbound.next_body(at(ms), InboundId(inbound), &mut chunk, &mut self.out)
        }

        fn refuse(&mut self, inbound: u64, reason: Reject) -> Vec<EndpointOutput> {
            self.inbound.refused(InboundId(inbound), reason, &mut self.out);
            self.out.drain().collect()
        }

        fn wake(&mut self, now: Instant) -> Vec<EndpointOutput> {
            self.inbound.wake(now, &mut self.out);
            self.out.drain().collect()
        }
    }

    #[test]
    fn at_the_cap_the_oldest_that_never_authenticated_makes_room() {
        let mut bench = Bench::new();
        // The driver's numbers fall, so the age is not in them.
        for number in 0..128 {
            bench.accept(number, 1000 - number);
        }
        bench.inbound.authenticated(InboundId(1000));
        assert_eq!(bench.accept(200, 1), closed(999, CloseReason::Displaced));
        assert_eq!(bench.accept(201, 2), closed(998, CloseReason::Displaced));
        assert_eq!(bench.inbound.len(), INBOUND_MAX);
    }

    #[test]
    fn at_the_cap_a_newcomer_is_closed_when_everybody_authenticated() {
        let mut bench = Bench::new();
        for number in 0..128 {
            bench.accept(0, number);
            bench.inbound.authenticated(InboundId(number));
        }
        assert_eq!(bench.accept(1, 500), closed(500, CloseReason::Full));
        assert_eq!(bench.inbound.len(), INBOUND_MAX);
    }

    #[test]
    fn a_whole_frame_is_due_within_the_idle_limit_however_the_bytes_trickle() {
        let mut bench = Bench::new();
        bench.accept(0, 1);
        let limit = Instant::from_micros(10_000_001);
        assert_eq!(bench.inbound.next_idle(), Some(limit));
        assert_eq!(bench.receive(9_000, 1, &[0, 0, 0, 2, b'{']), Ok(None));
        assert_eq!(bench.wake(at(10_000)), [], "exactly the limit is not above it");
        assert_eq!(bench.wake(limit), closed(1, CloseReason::Idle));
        assert_eq!(bench.inbound.next_idle(), None);
    }

    #[test]
    fn a_whole_frame_starts_the_idle_limit_anew_whatever_it_holds() {
        let mut bench = Bench::new();
        bench.accept(0, 1);
        assert_eq!(bench.receive(4_000, 1, &[0, 0, 0, 1, b'{']), Ok(Some(Bytes::from_static(b"{"))));
        let limit = bench.inbound.next_idle().unwrap();
        assert_eq!(bench.wake(limit), []);
        assert_eq!(bench.inbound.next_idle(), Some(Instant::from_micros(14_000_001)));
    }

    #[test]
    fn the_third_charged_refusal_closes_and_good_frames_do_not_redeem() {
        let mut bench = Bench::new();
        bench.accept(0, 1);
        assert_eq!(bench.refuse(1, Reject::Mac), []);
        for uncharged in [Reject::SelfOrigin, Reject::Replay, Reject::Payload] {
            assert_eq!(bench.refuse(1, uncharged), []);
        }
        bench.inbound.authenticated(InboundId(1));
        assert_eq!(bench.refuse(1, Reject::Cluster), []);
        assert_eq!(bench.refuse(1, Reject::Malformed), closed(1, CloseReason::Strikes));
        assert_eq!(bench.refuse(1, Reject::Malformed), []);
    }

    #[test]
    fn a_bad_length_closes_at_once() {
        let mut bench = Bench::new();
        bench.accept(0, 1);
        assert!(bench.receive(1, 1, &[0, 0, 0, 0, 0, 0, 0, 0]).is_err());
        assert_eq!(bench.out.as_slice(), closed(1, CloseReason::Oversize));
        assert_eq!(bench.receive(1, 1, &[0, 0, 0, 0]), Ok(None), "what follows is not read");
    }

    #[test]
    fn accepting_pauses_ten_milliseconds_after_the_last_failure() {
        let mut bench = Bench::new();
        bench.inbound.accept_failed(at(0), &mut bench.out);
        bench.inbound.accept_failed(at(5), &mut bench.out);
        assert_eq!(bench.out.drain().as_slice(), [EndpointOutput::PauseAccept]);
        assert_eq!(bench.inbound.next_resume(), Some(at(15)));
        assert_eq!(bench.wake(at(14)), []);
        assert_eq!(bench.wake(at(15)), [EndpointOutput::ResumeAccept]);
        assert_eq!(bench.inbound.next_resume(), None);
    }

    proptest! {
        #[test]
        fn any_sequence_keeps_the_cap_and_makes_progress(
            steps in prop::collection::vec((0u8..6, 0u64..400, prop::collection::vec(any::<u8>(), 0..9)), 0..500),
        ) {
            let (mut bench, mut now) = (Bench::new(), at(0));
            for number in 0..100 {
                bench.accept(0, 1000 + number);
            }
            for (kind, number, bytes) in steps {
                let inbound = InboundId(number);
                match kind {
                    0 | 1 => bench.inbound.accepted(now, inbound, &mut bench.out),
                    2 => {
                        let _ = bench.inbound.next_body(now, inbound, &mut Bytes::from(bytes), &mut bench.out);
                    }
                    3 => bench.inbound.authenticated(inbound),
                    4 => bench.inbound.refused(inbound, Reject::Mac, &mut bench.out),
                    _ => {
                        now = now.after(Duration::from_millis(number * 20));
                        bench.inbound.wake(now, &mut bench.out);
                        prop_assert!(bench.inbound.next_idle().is_none_or(|next| next > now));
                    }
                }
                prop_assert!(bench.inbound.len() <= INBOUND_MAX);
                let exact = bench.inbound.connections.values().map(|held| exceeds_at(held.fresh_at, IDLE)).min();
                prop_assert!(exact.is_none_or(|exact| bench.inbound.next_idle().is_some_and(|bound| bound <= exact)));
            }
        }
    }
}
