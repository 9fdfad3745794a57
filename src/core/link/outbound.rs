//! All push targets, each a [`Target`] of its own.
//!
//! Connections exist for the targets of the last push; a target that is no longer named is closed. Reports of
//! a connection that is gone are ignored.
//!
//! [`Outbound::next_wake`] costs nothing: it is a lower bound over all targets, lowered as they change and made
//! exact again by [`Outbound::wake`]. A wake-up may therefore find nothing due, but never twice at one time.
//!
//! Spec: docs/protocol.md, Connection policy; Limits; decision 14.

use alloc::collections::BTreeMap;
use alloc::string::ToString as _;
use alloc::sync::Arc;
use core::net::SocketAddr;

use bytes::Bytes;

use crate::guards::Guards;
use crate::io::{EndpointOutput, Lane, LinkId, Outbox};
use crate::link::target::{Losses, Target, Turn};
use crate::rng::Seed;
use crate::time::{Duration, Instant};

/// The outbound connections of one endpoint.
#[derive(Debug)]
pub(crate) struct Outbound {
    targets: BTreeMap<SocketAddr, Target>,
    /// Whose report a live connection's is.
    owners: BTreeMap<LinkId, SocketAddr>,
    /// What the last push named, to notice cheaply that nothing changed.
    named: Arc<[SocketAddr]>,
    suspicion: Duration,
    guards: Guards,
    seed: Seed,
    next_link: LinkId,
    losses: Losses,
    /// Frames in all send queues.
    queued: usize,
    /// No target is due before; [`Instant::FAR_FUTURE`] when none will be.
    wake_at: Instant,
}

/// A report of the driver about one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    Connected,
    Written,
    /// A failed dial or a broken connection.
    Broken,
}

impl Outbound {
    /// No target yet. A peer may be unheard for `suspicion` before it is dialled anew.
    pub(crate) fn new(suspicion: Duration, seed: Seed, guards: Guards) -> Self {
        Self {
            targets: BTreeMap::new(),
            owners: BTreeMap::new(),
            named: Arc::from([]),
            suspicion: if guards.silent_link_redialled { suspicion } else { Duration::MAX },
            guards,
            seed,
            next_link: LinkId(0),
            losses: Losses::default(),
            queued: 0,
            wake_at: Instant::FAR_FUTURE,
        }
    }

    /// Queues one frame for each of `targets`. A push decides which targets exist; a farewell closes none.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        targets: &Arc<[SocketAddr]>,
        lane: Lane,
        frame: &Bytes,
        out: &mut Outbox<EndpointOutput>,
    ) {
        if lane == Lane::Normal && *targets != self.named {
            self.close_all_but(now, targets, out);
            self.named = Arc::clone(targets);
        }
        for addr in targets.iter() {
            if !self.targets.contains_key(addr) {
                let rng = self.seed.fork(&addr.to_string()).rng();
                self.targets.insert(*addr, Target::new(*addr, rng, now));
            }
            self.with(now, *addr, out, |target, turn| target.send(lane, frame.clone(), turn));
        }
    }

    /// Takes a report; one of a connection that is gone says nothing.
    pub(crate) fn report(
        &mut self,
        now: Instant,
        link: LinkId,
        report: Report,
        out: &mut Outbox<EndpointOutput>,
    ) {
        let Some(addr) = self.owners.get(&link).copied() else { return };
        self.with(now, addr, out, |target, turn| match report {
            Report::Connected => target.connected(turn),
            Report::Written => target.written(turn),
            Report::Broken => target.broken(turn),
        });
    }

    /// Does what is due. `heard` tells when a frame of whoever lives at an address was last accepted.
    pub(crate) fn wake(
        &mut self,
        now: Instant,
        heard: impl Fn(SocketAddr) -> Option<Instant>,
        out: &mut Outbox<EndpointOutput>,
    ) {
        if now < self.wake_at {
            return;
        }
        self.wake_at = Instant::FAR_FUTURE;
        let mut after = None;
        while let Some(addr) = self.next_addr(after) {
            self.with(now, addr, out, |target, turn| target.wake(|| heard(addr), turn));
            after = Some(addr);
        }
    }

    /// When [`Outbound::wake`] has to be called at the latest.
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        (self.wake_at < Instant::FAR_FUTURE).then_some(self.wake_at)
    }

    /// Whether last words still wait or are being written.
    pub(crate) fn farewell_pending(&self) -> bool {
        self.targets.values().any(Target::farewell_pending)
    }

    /// What was never written.
    pub(crate) const fn losses(&self) -> Losses {
        self.losses
    }

    /// Targets held.
    pub(crate) fn len(&self) -> usize {
        self.targets.len()
    }

    /// Frames in the longest send queue.
    pub(crate) fn queue_longest(&self) -> usize {
        // Asked after every event of a simulation, and nearly always nothing is queued.
        if self.queued == 0 {
            return 0;
        }
        self.targets.values().map(Target::queued).max().unwrap_or(0)
    }

    /// Where a connection leads, or is to.
    pub(crate) fn addr(&self, link: LinkId) -> Option<SocketAddr> {
        self.owners.get(&link).copied()
    }

    /// Dials so far, by target.
    pub(crate) fn dials(&self) -> impl Iterator<Item = (SocketAddr, u64)> {
        self.targets.iter().map(|(addr, target)| (*addr, target.dials()))
    }

    /// Since when the peer of an open connection is unheard that is unheard for longest.
    pub(crate) fn unheard_since(&self, heard: impl Fn(SocketAddr) -> Option<Instant>) -> Option<Instant> {
        let unheard = |(addr, target): (&SocketAddr, &Target)| target.unheard_since(|| heard(*addr));
        self.targets.iter().filter_map(unheard).min()
    }

    /// When the last write of a queued frame began where last words wait now.
    pub(crate) fn farewell_overtaken_at(&self) -> Option<Instant> {
        self.targets.values().filter_map(Target::farewell_overtaken_at).max()
    }

    /// Forgets every connection without a word to the driver: the endpoint is done.
    pub(crate) fn clear(&mut self) {
        self.targets.clear();
        self.owners.clear();
        self.queued = 0;
        self.wake_at = Instant::FAR_FUTURE;
    }

    fn next_addr(&self, after: Option<SocketAddr>) -> Option<SocketAddr> {
        use core::ops::Bound::{Excluded, Unbounded};
        let start = after.map_or(Unbounded, Excluded);
        self.targets.range((start, Unbounded)).next().map(|(addr, _)| *addr)
    }

    /// Lets one target act, then takes note of its connection and its deadline.
    fn with(
        &mut self,
        now: Instant,
        addr: SocketAddr,
        out: &mut Outbox<EndpointOutput>,
        act: impl FnOnce(&mut Target, &mut Turn<'_>),
    ) {
        let Some(target) = self.targets.get_mut(&addr) else { return };
        let before = target.link();
        self.queued -= target.queued();
        act(
            target,
            &mut Turn {
                now,
                suspicion: self.suspicion,
                guards: self.guards,
                next_link: &mut self.next_link,
                losses: &mut self.losses,
                out,
            },
        );
        self.queued += target.queued();
        let link = target.link();
        if let Some(due) = target.deadline(self.suspicion) {
            self.wake_at = self.wake_at.min(due);
        }
        if link != before {
            before.map(|gone| self.owners.remove(&gone));
            link.map(|new| self.owners.insert(new, addr));
        }
    }

    fn close_all_but(&mut self, now: Instant, keep: &[SocketAddr], out: &mut Outbox<EndpointOutput>) {
        let mut turn = Turn {
            now,
            suspicion: self.suspicion,
            guards: self.guards,
            next_link: &mut self.next_link,
            losses: &mut self.losses,
            out,
        };
        for (_, target) in self.targets.extract_if(.., |addr, _| !keep.contains(addr)) {
            target.link().map(|gone| self.owners.remove(&gone));
            self.queued -= target.queued();
            target.close(&mut turn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{FAREWELL_FRAMES, SEND_QUEUE_FRAMES};
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const S: Duration = Duration::from_millis(2500);

    fn at(ms: u64) -> Instant {
        Instant::from_micros(ms * 1000)
    }

    fn addrs(ports: &[u16]) -> Arc<[SocketAddr]> {
        ports.iter().map(|port| SocketAddr::from(([127, 0, 0, 1], *port))).collect()
    }

    fn outbound() -> Outbound {
        Outbound::new(S, Seed::from_u64(3), Guards::ON)
    }

    fn push(outbound: &mut Outbound, ms: u64, ports: &[u16]) -> Vec<EndpointOutput> {
        let mut out = Outbox::new();
        outbound.send(at(ms), &addrs(ports), Lane::Normal, &Bytes::from_static(b"f"), &mut out);
        out.drain().collect()
    }

    fn report(outbound: &mut Outbound, ms: u64, link: u64, report: Report) -> Vec<EndpointOutput> {
        let mut out = Outbox::new();
        outbound.report(at(ms), LinkId(link), report, &mut out);
        out.drain().collect()
    }

    #[test]
    fn connections_follow_the_targets_of_the_last_push() {
        let mut outbound = outbound();
        assert_eq!(push(&mut outbound, 0, &[1, 2]).len(), 2, "two dials");
        report(&mut outbound, 1, 0, Report::Connected);
        let outputs = push(&mut outbound, 2, &[2, 3]);
        let addr = addrs(&[3])[0];
        let expected =
            [EndpointOutput::CloseLink { link: LinkId(0) }, EndpointOutput::Dial { link: LinkId(2), addr }];
        assert_eq!(outputs, expected);
        assert_eq!((outbound.len(), outbound.losses().frames), (2, 1));
        assert_eq!(outbound.next_wake(), Some(at(2000)));
    }

    #[test]
    fn healthy_targets_share_their_wake_ups() {
        let mut outbound = outbound();
        let ports: Vec<u16> = (1..60).collect();
        for (link, port) in (0..).zip(&ports) {
            push(&mut outbound, link * 7, &ports[..usize::from(*port)]);
            report(&mut outbound, link * 7, link, Report::Connected);
        }
        for link in 0..59 {
            (0..60).for_each(|_| drop(report(&mut outbound, 500, link, Report::Written)));
        }
        let (mut wakes, mut out) = (0, Outbox::new());
        while let Some(due) = outbound.next_wake().filter(|due| *due < at(60_000)) {
            outbound.wake(due, |_| Some(due), &mut out);
            wakes += 1;
        }
        assert!(wakes < 60, "{wakes} wake-ups in a minute for 59 targets");
        assert!(out.is_empty());
    }

    #[test]
    fn a_farewell_closes_no_connection() {
        let mut outbound = outbound();
        push(&mut outbound, 0, &[1, 2]);
        let mut out = Outbox::new();
        outbound.send(at(1), &addrs(&[2]), Lane::Farewell, &Bytes::from_static(b"bye"), &mut out);
        assert_eq!((outbound.len(), outbound.farewell_pending()), (2, true));
    }

    #[test]
    fn reports_of_a_connection_that_is_gone_are_ignored() {
        let mut outbound = outbound();
        push(&mut outbound, 0, &[1]);
        assert_eq!(report(&mut outbound, 1, 0, Report::Broken), []);
        for late in [Report::Connected, Report::Written, Report::Broken] {
            assert_eq!(report(&mut outbound, 2, 0, late), []);
            assert_eq!(report(&mut outbound, 2, 77, late), []);
        }
        let redial = outbound.next_wake().unwrap();
        let mut out = Outbox::new();
        outbound.wake(redial, |_| None, &mut out);
        assert_eq!(out.as_slice(), [EndpointOutput::Dial { link: LinkId(1), addr: addrs(&[1])[0] }]);
    }

    #[test]
    fn pauses_of_one_target_do_not_depend_on_the_others() {
        let pause_of_1 = |ports: &[u16]| {
            let mut outbound = outbound();
            push(&mut outbound, 0, ports);
            let link = ports.iter().position(|port| *port == 1).unwrap() as u64;
            outbound.wake_at = Instant::FAR_FUTURE;
            report(&mut outbound, 0, link, Report::Broken);
            outbound.next_wake()
        };
        assert_eq!(pause_of_1(&[1]), pause_of_1(&[3, 2, 1]));
    }

    #[derive(Debug, Clone)]
    enum Step {
        Push(Vec<u16>),
        Farewell(Vec<u16>),
        Report(u64, Report),
        Wait(u64),
        WakeDue(bool),
    }

    fn step() -> impl Strategy<Value = Step> {
        let ports =
            || prop::collection::btree_set(1u16..6, 0..5).prop_map(|ports| ports.into_iter().collect());
        let kind = prop_oneof![Just(Report::Connected), Just(Report::Written), Just(Report::Broken)];
        prop_oneof![
            6 => ports().prop_map(Step::Push),
            1 => ports().prop_map(Step::Farewell),
            6 => (0u64..8, kind).prop_map(|(back, kind)| Step::Report(back, kind)),
            2 => (0u64..4000).prop_map(Step::Wait),
            4 => any::<bool>().prop_map(Step::WakeDue),
        ]
    }

    proptest! {
        #[test]
        fn any_sequence_keeps_the_bounds_and_makes_progress(steps in prop::collection::vec(step(), 0..300)) {
            let mut outbound = outbound();
            let (mut now, mut out, mut writing) = (at(0), Outbox::new(), BTreeMap::new());
            for step in steps {
                let frame = Bytes::from_static(b"f");
                match step {
                    Step::Push(ports) => outbound.send(now, &addrs(&ports), Lane::Normal, &frame, &mut out),
                    Step::Farewell(ports) => outbound.send(now, &addrs(&ports), Lane::Farewell, &frame, &mut out),
                    Step::Report(back, report) => {
                        let link = LinkId(outbound.next_link.0.saturating_sub(back + 1));
                        writing.remove(&link);
                        outbound.report(now, link, report, &mut out);
                    }
                    Step::Wait(ms) => now = now.after(Duration::from_millis(ms)),
                    Step::WakeDue(heard) => {
                        let Some(due) = outbound.next_wake() else { continue };
                        now = now.max(due);
                        outbound.wake(now, |_| heard.then_some(now), &mut out);
                        prop_assert!(outbound.next_wake().is_none_or(|next| next > now), "woken twice at {now:?}");
                    }
                }
                for output in out.drain() {
                    if let EndpointOutput::Write { link, .. } = output {
                        prop_assert!(outbound.owners.contains_key(&link));
                        prop_assert!(writing.insert(link, ()).is_none(), "two writes at once");
                    }
                }
                prop_assert!(outbound.queue_longest() <= SEND_QUEUE_FRAMES);
                prop_assert!(outbound.targets.values().all(|target| target.last_words() <= FAREWELL_FRAMES));
                prop_assert!(outbound.owners.len() <= outbound.len());
                let exact = outbound.targets.values().filter_map(|target| target.deadline(S)).min();
                prop_assert!(exact.is_none_or(|exact| outbound.next_wake().is_some_and(|bound| bound <= exact)));
            }
        }
    }
}
