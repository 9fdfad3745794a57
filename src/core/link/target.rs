//! One push target: its connection, its queue, its last words.
//!
//! A connection is dialled when there is something to write, and kept. While none stands frames wait; a frame
//! being written when the connection breaks is lost, since nobody can say how much of it arrived. Every push
//! carries the whole document, so the next one makes up for it.
//!
//! Invariants: at most one write at a time; at most [`SEND_QUEUE_FRAMES`] and [`FAREWELL_FRAMES`] frames wait.
//!
//! Absent: any notion of the peer being up or down. An unheard peer is dialled anew, never given up.
//!
//! Spec: docs/protocol.md, Connection policy; Limits; decision 14; finding 3.

use alloc::collections::VecDeque;
use core::net::SocketAddr;

use bytes::Bytes;

use crate::guards::Guards;
use crate::io::{EndpointOutput, Event, Lane, LinkId, Outbox, ResetReason};
use crate::limits::{
    DIAL_BACKOFF_MAX, DIAL_BACKOFF_MIN, DIAL_JITTER_PERCENT, DIAL_TIMEOUT, FAREWELL_FRAMES,
    SEND_QUEUE_FRAMES, WRITE_TIMEOUT,
};
use crate::rng::Rng;
use crate::time::{Duration, Instant, micros};

/// The machine of one target address.
#[derive(Debug)]
pub(crate) struct Target {
    addr: SocketAddr,
    phase: Phase,
    queue: VecDeque<Bytes>,
    farewell: VecDeque<Bytes>,
    dials: u64,
    /// The pause after the next failure, before jitter.
    pause: Duration,
    rng: Rng,
}

/// What a target needs from outside during one call.
pub(crate) struct Turn<'a> {
    pub(crate) now: Instant,
    /// S: how long a peer may be unheard before its connection is dialled anew.
    pub(crate) suspicion: Duration,
    pub(crate) guards: Guards,
    /// Hands out a number for a dial; never the same twice.
    pub(crate) next_link: &'a mut LinkId,
    pub(crate) losses: &'a mut Losses,
    pub(crate) out: &'a mut Outbox<EndpointOutput>,
}

/// Frames that were never reported as written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Losses {
    /// On either lane.
    pub(crate) frames: u64,
    /// Whether one of them was a farewell.
    pub(crate) farewell: bool,
}

impl Losses {
    fn add(&mut self, lane: Lane, frames: usize) {
        self.frames = self.frames.saturating_add(frames as u64);
        self.farewell |= lane == Lane::Farewell && frames > 0;
    }
}

#[derive(Debug)]
enum Phase {
    /// No connection, and none is dialled before `not_before`.
    Down { not_before: Instant },
    /// The driver is connecting.
    Dialling { link: LinkId, since: Instant },
    /// Connected. `unheard_since` is the later of the connect and the peer's last frame known here.
    Up { link: LinkId, unheard_since: Instant, writing: Option<Writing> },
}

#[derive(Debug, Clone, Copy)]
struct Writing {
    since: Instant,
    lane: Lane,
}

impl Target {
    pub(crate) fn new(addr: SocketAddr, rng: Rng, now: Instant) -> Self {
        Self {
            addr,
            phase: Phase::Down { not_before: now },
            queue: VecDeque::new(),
            farewell: VecDeque::new(),
            dials: 0,
            pause: DIAL_BACKOFF_MIN,
            rng,
        }
    }

    /// The connection that reports are expected from.
    pub(crate) const fn link(&self) -> Option<LinkId> {
        match self.phase {
            Phase::Down { .. } => None,
            Phase::Dialling { link, .. } | Phase::Up { link, .. } => Some(link),
        }
    }

    /// Dials so far.
    pub(crate) const fn dials(&self) -> u64 {
        self.dials
    }

    /// Frames that wait on the send queue.
    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Frames that wait on the farewell lane.
    #[cfg(test)]
    pub(crate) fn last_words(&self) -> usize {
        self.farewell.len()
    }

    /// Whether last words still wait or are being written.
    pub(crate) fn farewell_pending(&self) -> bool {
        let writing = match self.phase {
            Phase::Up { writing: Some(writing), .. } => writing.lane == Lane::Farewell,
            Phase::Up { writing: None, .. } | Phase::Down { .. } | Phase::Dialling { .. } => false,
        };
        writing || !self.farewell.is_empty()
    }

    /// Since when the peer is unheard, on a connection that stands. `heard` as in [`Target::wake`].
    pub(crate) fn unheard_since(&self, heard: impl FnOnce() -> Option<Instant>) -> Option<Instant> {
        match self.phase {
            Phase::Up { unheard_since, .. } => {
                Some(heard().map_or(unheard_since, |at| at.max(unheard_since)))
            }
            Phase::Down { .. } | Phase::Dialling { .. } => None,
        }
    }

    /// When the write of a queued frame began while last words wait.
    pub(crate) fn farewell_overtaken_at(&self) -> Option<Instant> {
        match self.phase {
            Phase::Up { writing: Some(Writing { since, lane: Lane::Normal }), .. } => {
                (!self.farewell.is_empty()).then_some(since)
            }
            Phase::Up { .. } | Phase::Down { .. } | Phase::Dialling { .. } => None,
        }
    }

    /// When [`Target::wake`] has something to do at the latest.
    pub(crate) fn deadline(&self, suspicion: Duration) -> Option<Instant> {
        match self.phase {
            Phase::Down { .. } if self.queue.is_empty() && self.farewell.is_empty() => None,
            Phase::Down { not_before } => Some(not_before),
            Phase::Dialling { since, .. } => Some(since.after(DIAL_TIMEOUT)),
            Phase::Up { unheard_since, writing, .. } => {
                let silent = exceeds_at(unheard_since, suspicion);
                Some(writing.map_or(silent, |writing| silent.min(writing.since.after(WRITE_TIMEOUT))))
            }
        }
    }

    /// Queues a frame; the newest is dropped when its lane is full, as an older copy is on its way.
    pub(crate) fn send(&mut self, lane: Lane, frame: Bytes, turn: &mut Turn<'_>) {
        let (queue, room) = match lane {
            Lane::Normal | Lane::Direct if !turn.guards.send_queue_bounded => (&mut self.queue, usize::MAX),
            Lane::Normal | Lane::Direct => (&mut self.queue, SEND_QUEUE_FRAMES),
            Lane::Farewell => (&mut self.farewell, FAREWELL_FRAMES),
        };
        if queue.len() < room {
            queue.push_back(frame);
            self.advance(turn);
        } else {
            turn.losses.add(lane, 1);
        }
    }

    /// The dial succeeded.
    pub(crate) fn connected(&mut self, turn: &mut Turn<'_>) {
        if let Phase::Dialling { link, .. } = self.phase {
            self.phase = Phase::Up { link, unheard_since: turn.now, writing: None };
            self.pause = DIAL_BACKOFF_MIN;
            self.advance(turn);
        }
    }

    /// The write under way is done.
    pub(crate) fn written(&mut self, turn: &mut Turn<'_>) {
        if let Phase::Up { writing, .. } = &mut self.phase {
            *writing = None;
            self.advance(turn);
        }
    }

    /// The dial failed, or the connection broke.
    pub(crate) fn broken(&mut self, turn: &mut Turn<'_>) {
        self.lose_write(turn.losses);
        let (low, high) = DIAL_JITTER_PERCENT;
        let percent = self.rng.between(low, high);
        let pause = Duration::from_micros(micros(self.pause).saturating_mul(percent) / 100);
        self.pause = self.pause.saturating_mul(2).min(DIAL_BACKOFF_MAX);
        let pause = if turn.guards.dial_backoff { pause } else { Duration::ZERO };
        self.phase = Phase::Down { not_before: turn.now.after(pause) };
    }

    /// Does what is due. `heard` is when a frame of whoever lives there was last accepted.
    pub(crate) fn wake(&mut self, heard: impl FnOnce() -> Option<Instant>, turn: &mut Turn<'_>) {
        match &mut self.phase {
            Phase::Down { .. } => self.advance(turn),
            Phase::Dialling { since, .. } => {
                if turn.now >= since.after(DIAL_TIMEOUT) {
                    self.reset(ResetReason::DialTimeout, turn);
                    self.broken(turn);
                }
            }
            Phase::Up { writing: Some(writing), .. } if turn.now >= writing.since.after(WRITE_TIMEOUT) => {
                self.reset(ResetReason::WriteTimeout, turn);
                self.broken(turn);
            }
            Phase::Up { unheard_since, .. } => {
                // Asked even when nothing is due: all targets then come due together, at one wake-up.
                *unheard_since = heard().map_or(*unheard_since, |heard| heard.max(*unheard_since));
                if turn.now >= exceeds_at(*unheard_since, turn.suspicion) {
                    self.reset(ResetReason::PeerSilent, turn);
                    self.lose_write(turn.losses);
                    self.dial(turn);
                }
            }
        }
    }

    /// Ends the target: its connection closes, and what waits is lost.
    pub(crate) fn close(mut self, turn: &mut Turn<'_>) {
        if let Some(link) = self.link() {
            turn.out.push(EndpointOutput::CloseLink { link });
        }
        self.lose_write(turn.losses);
        turn.losses.add(Lane::Normal, self.queue.len());
        turn.losses.add(Lane::Farewell, self.farewell.len());
    }

    /// Takes the next step towards an empty queue, if one is possible now.
    fn advance(&mut self, turn: &mut Turn<'_>) {
        match &mut self.phase {
            Phase::Down { not_before } => {
                if turn.now >= *not_before && !(self.queue.is_empty() && self.farewell.is_empty()) {
                    self.dial(turn);
                }
            }
            Phase::Up { link, writing: writing @ None, .. } => {
                let mut lanes = [(Lane::Farewell, &mut self.farewell), (Lane::Normal, &mut self.queue)];
                if !turn.guards.farewell_first {
                    lanes.reverse();
                }
                let next = lanes.into_iter().find_map(|(lane, frames)| Some((lane, frames.pop_front()?)));
                if let Some((lane, frame)) = next {
                    *writing = Some(Writing { since: turn.now, lane });
                    turn.out.push(EndpointOutput::Write { link: *link, frame });
                }
            }
            Phase::Dialling { .. } | Phase::Up { writing: Some(_), .. } => {}
        }
    }

    fn dial(&mut self, turn: &mut Turn<'_>) {
        let link = *turn.next_link;
        turn.next_link.0 += 1;
        self.dials += 1;
        self.phase = Phase::Dialling { link, since: turn.now };
        turn.out.push(EndpointOutput::Dial { link, addr: self.addr });
    }

    fn reset(&self, reason: ResetReason, turn: &mut Turn<'_>) {
        if let Some(link) = self.link() {
            turn.out.push(EndpointOutput::CloseLink { link });
            turn.out.push(EndpointOutput::Event(Event::LinkReset { addr: self.addr, reason }));
        }
    }

    fn lose_write(&mut self, losses: &mut Losses) {
        if let Phase::Up { writing, .. } = &mut self.phase
            && let Some(lost) = writing.take()
        {
            losses.add(lost.lane, 1);
        }
    }
}

/// The first moment at which an age counted from `since` is strictly above `limit`.
pub(crate) const fn exceeds_at(since: Instant, limit: Duration) -> Instant {
    since.after(limit).after(Duration::from_micros(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;
    use alloc::vec::Vec;

    const S: Duration = Duration::from_millis(2500);
    const ADDR: SocketAddr = SocketAddr::new(core::net::IpAddr::V4(core::net::Ipv4Addr::LOCALHOST), 7946);

    /// A target with its surroundings; times are in milliseconds.
    struct Bench {
        target: Target,
        next_link: LinkId,
        losses: Losses,
        heard: Option<Instant>,
    }

    fn at(ms: u64) -> Instant {
        Instant::from_micros(ms * 1000)
    }

    fn frame(number: u8) -> Bytes {
        Bytes::copy_from_slice(&[number])
    }

    fn dial(link: u64) -> EndpointOutput {
        EndpointOutput::Dial { link: LinkId(link), addr: ADDR }
    }

    fn write(link: u64, number: u8) -> EndpointOutput {
        EndpointOutput::Write { link: LinkId(link), frame: frame(number) }
    }

    fn reset(link: u64, reason: ResetReason) -> [EndpointOutput; 2] {
        let event = EndpointOutput::Event(Event::LinkReset { addr: ADDR, reason });
        [EndpointOutput::CloseLink { link: LinkId(link) }, event]
    }

    impl Bench {
        fn new() -> Self {
            let target = Target::new(ADDR, Seed::from_u64(1).rng(), at(0));
            Self { target, next_link: LinkId(0), losses: Losses::default(), heard: None }
        }

        /// Connected since 0 over link 0, with frame 0 written.
        fn up() -> Self {
            let mut bench = Self::new();
            assert_eq!(bench.send(0, Lane::Normal, 0), [dial(0)]);
            assert_eq!(bench.act(at(0), Target::connected), [write(0, 0)]);
            assert_eq!(bench.act(at(0), Target::written), []);
            bench
        }

        fn act(&mut self, now: Instant, act: impl FnOnce(&mut Target, &mut Turn<'_>)) -> Vec<EndpointOutput> {
            let mut out = Outbox::new();
            let (next_link, losses) = (&mut self.next_link, &mut self.losses);
            act(
                &mut self.target,
                &mut Turn { now, suspicion: S, guards: Guards::ON, next_link, losses, out: &mut out },
            );
            out.drain().collect()
        }

        fn send(&mut self, ms: u64, lane: Lane, number: u8) -> Vec<EndpointOutput> {
            self.act(at(ms), |target, turn| target.send(lane, frame(number), turn))
        }

        fn wake(&mut self, now: Instant) -> Vec<EndpointOutput> {
            let heard = self.heard;
            self.act(now, |target, turn| target.wake(|| heard, turn))
        }

        fn deadline(&self) -> Option<Instant> {
            self.target.deadline(S)
        }
    }

    #[test]
    fn nothing_is_dialled_without_something_to_write() {
        let mut bench = Bench::new();
        assert_eq!(bench.deadline(), None);
        assert_eq!(bench.wake(at(10)), []);
    }

    #[test]
    fn failed_dials_back_off_doubling_to_two_seconds_with_jitter_and_start_over_once_connected() {
        let mut bench = Bench::new();
        bench.send(0, Lane::Normal, 0);
        let (mut now, mut distinct) = (at(0), alloc::collections::BTreeSet::new());
        for base_ms in [50, 100, 200, 400, 800, 1600, 2000, 2000, 2000] {
            assert_eq!(bench.act(now, Target::broken), []);
            let due = bench.deadline().unwrap();
            let percent = micros(due.since(now)) / (base_ms * 10);
            assert!((80..=120).contains(&percent), "{percent} % of {base_ms} ms");
            distinct.insert(percent);
            assert_eq!(bench.wake(Instant::from_micros(due.as_micros() - 1)), []);
            assert_eq!(bench.wake(due).len(), 1);
            now = due;
        }
        assert!(distinct.len() > 3, "every pause draws anew");
        bench.act(now, Target::connected);
        bench.send(micros(now.since(at(0))) / 1000, Lane::Normal, 1);
        bench.act(now, Target::broken);
        assert!(bench.deadline().unwrap() <= now.after(DIAL_BACKOFF_MIN * 6 / 5));
    }

    #[test]
    fn a_dial_is_given_up_after_two_seconds() {
        let mut bench = Bench::new();
        bench.send(0, Lane::Normal, 0);
        assert_eq!(bench.deadline(), Some(at(2000)));
        assert_eq!(bench.wake(at(1999)), []);
        assert_eq!(bench.wake(at(2000)), reset(0, ResetReason::DialTimeout));
        let due = bench.deadline().unwrap();
        assert_eq!(bench.wake(due), [dial(1)]);
        assert_eq!(bench.act(due, Target::connected), [write(1, 0)], "the frame waited");
    }

    #[test]
    fn a_write_is_given_up_after_two_seconds_and_its_frame_is_lost() {
        let mut bench = Bench::up();
        bench.heard = Some(at(2000));
        assert_eq!(bench.send(1, Lane::Normal, 1), [write(0, 1)]);
        assert_eq!(bench.send(2, Lane::Normal, 2), [], "one write at a time");
        assert_eq!(bench.wake(at(2000)), []);
        assert_eq!(bench.wake(at(2001)), reset(0, ResetReason::WriteTimeout));
        assert_eq!(bench.losses, Losses { frames: 1, farewell: false });
        let due = bench.deadline().unwrap();
        assert_eq!(bench.wake(due), [dial(1)]);
        assert_eq!(bench.act(due, Target::connected), [write(1, 2)], "what was queued outlives the link");
    }

    #[test]
    fn the_newest_frame_is_dropped_when_the_queue_is_full() {
        let mut bench = Bench::new();
        for number in 0..70 {
            bench.send(0, Lane::Normal, number);
        }
        assert_eq!(bench.target.queued(), SEND_QUEUE_FRAMES);
        assert_eq!(bench.losses, Losses { frames: 6, farewell: false });
        let mut written = bench.act(at(1), Target::connected);
        for _ in 1..SEND_QUEUE_FRAMES {
            written.extend(bench.act(at(1), Target::written));
        }
        assert!(written.iter().eq((0..64).map(|number| write(0, number)).collect::<Vec<_>>().iter()));
    }

    #[test]
    fn last_words_are_written_ahead_of_the_queue() {
        let mut bench = Bench::up();
        assert_eq!(bench.send(1, Lane::Normal, 1), [write(0, 1)]);
        for number in 2..70 {
            bench.send(1, Lane::Normal, number);
        }
        bench.losses = Losses::default();
        for number in [100, 101, 102] {
            bench.send(2, Lane::Farewell, number);
        }
        assert_eq!(bench.losses, Losses { frames: 1, farewell: true }, "the lane holds two");
        assert_eq!(bench.act(at(3), Target::written), [write(0, 100)]);
        assert_eq!(bench.act(at(3), Target::written), [write(0, 101)]);
        assert!(bench.target.farewell_pending(), "a farewell being written is still pending");
        assert_eq!(bench.act(at(3), Target::written), [write(0, 2)]);
        assert!(!bench.target.farewell_pending());
    }

    #[test]
    fn a_silent_peer_is_dialled_anew_at_once_and_again_every_suspicion_timeout() {
        let mut bench = Bench::up();
        let just_over = |ms: u64| Instant::from_micros(ms * 1000 + 1);
        assert_eq!(bench.deadline(), Some(just_over(2500)));
        assert_eq!(bench.wake(at(2500)), [], "exactly S is not above S");
        let mut expected = reset(0, ResetReason::PeerSilent).to_vec();
        expected.push(dial(1));
        assert_eq!(bench.wake(just_over(2500)), expected);

        assert_eq!(bench.act(at(3000), Target::connected), []);
        bench.heard = Some(at(100));
        assert_eq!(bench.wake(at(3001)), [], "an old frame does not count against a new connection");
        assert_eq!(bench.deadline(), Some(just_over(5500)), "silence runs from the connect");
        let mut expected = reset(1, ResetReason::PeerSilent).to_vec();
        expected.push(dial(2));
        assert_eq!(bench.wake(just_over(5500)), expected);
    }

    #[test]
    fn a_frame_heard_postpones_the_reset() {
        let mut bench = Bench::up();
        bench.heard = Some(at(2400));
        assert_eq!(bench.wake(at(2501)), []);
        assert_eq!(bench.deadline(), Some(Instant::from_micros(4_900_001)));
        assert_eq!(bench.wake(Instant::from_micros(4_900_001)).len(), 3);
    }

    #[test]
    fn a_target_closed_counts_all_it_held() {
        let mut bench = Bench::up();
        for number in 1..4 {
            bench.send(1, Lane::Normal, number);
        }
        bench.send(1, Lane::Farewell, 9);
        let Bench { target, mut next_link, mut losses, .. } = bench;
        let mut out = Outbox::new();
        let turn = &mut Turn {
            now: at(2),
            guards: Guards::ON,
            suspicion: S,
            next_link: &mut next_link,
            losses: &mut losses,
            out: &mut out,
        };
        target.close(turn);
        assert_eq!(out.as_slice(), [EndpointOutput::CloseLink { link: LinkId(0) }]);
        assert_eq!(losses, Losses { frames: 4, farewell: true });
    }
}
