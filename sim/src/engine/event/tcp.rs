//! Modelled TCP: what the kernels of two hosts do for one connection, as far as a process can tell.
//!
//! Modelled:
//! - A dial costs a round trip, is refused where nobody listens, and meets silence where nobody runs. Unanswered
//!   it is sent again, once: the next time a kernel would is after the core has given it up.
//! - A write is one packet with one whole frame. It completes at once while fewer than [`WINDOW_FRAMES`] are
//!   unacknowledged, and waits otherwise. The peer's kernel acknowledges that many which its process has not
//!   read, so a process that is held is written to until its buffers are full.
//! - [`WRITE_TIMEOUT`] without progress on anything unacknowledged breaks the connection, as the TCP user timeout
//!   does in production. The kernel that breaks tells nobody; its process learns it at once, as it learns of a
//!   reset, since it waits for the end of what it dialled.
//! - Power loss is silent. Bytes for a connection that the receiver does not know are answered with a reset.
//!
//! Left out, on purpose:
//! - Retransmission of data. Loss acts on whole frames, so a frame that a link loses is lost to the process; to the
//!   kernels it counts as acknowledged, as the next acknowledgement covers it. What a cut swallows is not
//!   acknowledged: only packets that are no frames tell a cut from loss, and [`Segment::Probe`] is one.
//! - An acknowledgement a segment, and the timer that delays it. The sender asks for one instead: with the first
//!   frame written [`ASK_AFTER`] its last progress, with every frame from half a window on, and by probes, which
//!   stand for the kernel's retransmissions. That costs one packet more in two or three frames.
//! - An adapting round trip: one above a second breaks connections here and, at two, in production.
//! - A goodbye that is sent again: lost in a cut, it is lost. Bounds on connections not yet accepted.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use firedrill_core::io::InboundId;
use firedrill_core::limits::{DIAL_TIMEOUT, WRITE_TIMEOUT};
use firedrill_core::time::Instant;

use super::machine::Station;
use crate::engine::FaultId;

/// Frames that the kernels of both sides hold for one connection before a write waits.
pub(super) const WINDOW_FRAMES: u64 = 64;
/// An unanswered dial is sent again after so long.
const DIAL_AGAIN: Duration = Duration::from_secs(1);
/// A frame written so long after the last progress asks for an acknowledgement.
const ASK_AFTER: Duration = Duration::from_millis(500);
/// So long after the last progress the kernel asks by itself.
const PROBE_AFTER: Duration = Duration::from_millis(1000);
/// Between two probes, and between the last and the end.
const PROBE_AGAIN: Duration = Duration::from_millis(500);
/// Probes without an answer before the connection breaks.
const PROBES_MAX: u32 = 2;

const _: () = assert!(
    PROBE_AFTER.as_micros() + PROBE_AGAIN.as_micros() * PROBES_MAX as u128 == WRITE_TIMEOUT.as_micros(),
    "a connection breaks when production's would"
);
const _: () = assert!(
    DIAL_TIMEOUT.as_micros() < 3 * DIAL_AGAIN.as_micros(),
    "kernels double the pause: a second repetition would come at three times the first"
);
const _: () = assert!(ASK_AFTER.as_micros() < PROBE_AFTER.as_micros(), "a probe is the exception");

/// One connection, for both its ends. Never used again: a reboot and a new dial make new ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::engine) struct Connection {
    pub(in crate::engine) dialler: Station,
    /// The dialler's boot.
    pub(in crate::engine) boot: u32,
    /// The dialler's number for it.
    pub(in crate::engine) link: u64,
}

/// What a packet does.
#[derive(Debug, Clone)]
pub(in crate::engine) enum Segment {
    /// From the dialler: connect.
    Syn,
    /// From the dialler: one frame.
    Data { number: u64, ack_wanted: bool, bytes: Bytes },
    /// From the dialler: it has sent everything below this number. Always answered by a kernel with room.
    Probe { below: u64 },
    /// From the dialler: the end.
    Close,
    /// From the side that accepted: connected.
    Accepted,
    /// From the side that accepted: everything below this number arrived or is lost.
    Ack(u64),
    /// From the side that accepted: closed, refused or unknown.
    Reset,
    /// Never sent: the kernel has accepted, and the process is to be told.
    Established,
    /// Never sent: the kernel has taken a frame in, and the process is to read it.
    Readable(Bytes),
}

/// One packet of the modelled TCP.
#[derive(Debug, Clone)]
pub struct Packet {
    pub(in crate::engine) connection: Connection,
    pub(in crate::engine) segment: Segment,
}

/// A connection this side accepted.
#[derive(Debug)]
pub(super) struct Inbound {
    pub(super) id: InboundId,
    pub(super) peer: Station,
    /// Frames that the kernel holds for the process.
    pub(super) unread: u64,
}

impl Inbound {
    /// Whether the kernel acknowledges what arrived last.
    pub(super) const fn has_room(&self) -> bool {
        self.unread <= WINDOW_FRAMES
    }
}

/// A connection this side dialled.
#[derive(Debug)]
pub(super) struct Outbound {
    pub(super) addr: SocketAddr,
    open: bool,
    /// The write that waits for room.
    pub(super) waiting: Option<Bytes>,
    /// The fault that made the connection carry nothing.
    pub(super) black_hole: Option<FaultId>,
    sent: u64,
    acked: u64,
    /// Runs while something is unacknowledged, the dial included.
    watchdog: Option<Watchdog>,
}

#[derive(Debug, Clone, Copy)]
struct Watchdog {
    progress: Instant,
    due: Instant,
    probes: u32,
}

impl Watchdog {
    fn start(now: Instant) -> Self {
        Self { progress: now, due: now.after(PROBE_AFTER), probes: 0 }
    }
}

/// What a kernel does about what is unacknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    /// Nothing yet.
    Wait,
    /// Dials again.
    Dial,
    /// Sends [`Segment::Probe`] with this number.
    Probe(u64),
    /// The connection is broken from now on.
    Break,
}

impl Outbound {
    /// A dial under way.
    pub(super) fn dialling(now: Instant, addr: SocketAddr) -> Self {
        Self {
            addr,
            open: false,
            waiting: None,
            black_hole: None,
            sent: 0,
            acked: 0,
            watchdog: Some(Watchdog { progress: now, due: now.after(DIAL_AGAIN), probes: 0 }),
        }
    }

    /// The dial was answered. True when that is news.
    pub(super) fn connected(&mut self) -> bool {
        let news = !self.open;
        if news {
            self.open = true;
            self.watchdog = None;
        }
        news
    }

    /// Whether the dial was answered.
    pub(super) const fn is_open(&self) -> bool {
        self.open
    }

    /// Whether the next write waits.
    pub(super) const fn is_full(&self) -> bool {
        self.in_flight() >= WINDOW_FRAMES
    }

    /// Takes one frame into the window.
    pub(super) fn send(&mut self, now: Instant, bytes: Bytes) -> Segment {
        let number = self.sent;
        self.sent += 1;
        let watchdog = self.watchdog.get_or_insert_with(|| Watchdog::start(now));
        let overdue = now >= watchdog.progress.after(ASK_AFTER);
        let ack_wanted = overdue || self.in_flight() >= WINDOW_FRAMES / 2;
        Segment::Data { number, ack_wanted, bytes }
    }

    /// Everything below this number has left the window. What was said before changes nothing.
    pub(super) fn acknowledged(&mut self, now: Instant, below: u64) {
        if below <= self.acked {
            return;
        }
        self.acked = below.min(self.sent);
        self.watchdog = (self.in_flight() > 0).then(|| Watchdog::start(now));
    }

    /// Does what is due about what is unacknowledged. After a pause nothing breaks unasked: the kernel, which ran
    /// on, would have asked.
    pub(super) fn check(&mut self, now: Instant) -> Check {
        let Some(watchdog) = &mut self.watchdog else { return Check::Wait };
        if watchdog.due > now {
            return Check::Wait;
        }
        if !self.open {
            self.watchdog = None;
            return Check::Dial;
        }
        if watchdog.probes == PROBES_MAX {
            self.watchdog = None;
            return Check::Break;
        }
        watchdog.probes += 1;
        watchdog.due = now.after(PROBE_AGAIN);
        Check::Probe(self.sent)
    }

    /// When [`Outbound::check`] has something to do.
    pub(super) fn check_at(&self) -> Option<Instant> {
        self.watchdog.map(|watchdog| watchdog.due)
    }

    const fn in_flight(&self) -> u64 {
        self.sent - self.acked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::from_micros(ms * 1000)
    }

    fn connection() -> Outbound {
        let mut outbound = Outbound::dialling(ms(0), SocketAddr::from(([10, 0, 0, 1], 7946)));
        assert!(outbound.connected() && !outbound.connected());
        outbound
    }

    /// Sends one frame; whether it asks for an acknowledgement.
    fn asks(outbound: &mut Outbound, at_ms: u64) -> bool {
        matches!(outbound.send(ms(at_ms), Bytes::new()), Segment::Data { ack_wanted: true, .. })
    }

    #[test]
    fn a_connection_breaks_after_the_write_timeout_without_progress_and_two_probes() {
        let mut outbound = connection();
        assert_eq!(
            (outbound.check_at(), outbound.check(ms(9000))),
            (None, Check::Wait),
            "nothing is in flight"
        );
        asks(&mut outbound, 0);
        assert_eq!(outbound.check(ms(999)), Check::Wait);
        assert_eq!(outbound.check(ms(1000)), Check::Probe(1));
        assert_eq!(outbound.check(ms(1500)), Check::Probe(1));
        assert_eq!(outbound.check(ms(1999)), Check::Wait);
        assert_eq!(outbound.check(ms(2000)), Check::Break);
        assert_eq!(outbound.check_at(), None);
    }

    #[test]
    fn an_unanswered_dial_is_sent_again_once() {
        let mut outbound = Outbound::dialling(ms(0), SocketAddr::from(([10, 0, 0, 1], 7946)));
        assert_eq!((outbound.check_at(), outbound.check(ms(999))), (Some(ms(1000)), Check::Wait));
        assert_eq!(outbound.check(ms(1000)), Check::Dial);
        assert_eq!((outbound.check_at(), outbound.check(ms(9000))), (None, Check::Wait));
    }

    #[test]
    fn progress_starts_the_clock_anew_and_an_old_acknowledgement_is_no_progress() {
        let mut outbound = connection();
        asks(&mut outbound, 0);
        asks(&mut outbound, 100);
        outbound.acknowledged(ms(900), 1);
        assert_eq!(outbound.check_at(), Some(ms(1900)), "the second is still in flight");
        outbound.acknowledged(ms(1200), 1);
        assert_eq!(outbound.check_at(), Some(ms(1900)));
        outbound.acknowledged(ms(1300), 9);
        assert_eq!(outbound.check_at(), None);
        assert!(!asks(&mut outbound, 5000), "time in which nothing was in flight does not count");
    }

    #[test]
    fn a_frame_asks_when_progress_is_long_ago_or_half_the_window_is_used() {
        let mut outbound = connection();
        assert_eq!([0, 499, 500].map(|at| asks(&mut outbound, at)), [false, false, true]);
        let mut burst = connection();
        let asked: Vec<bool> = (0..WINDOW_FRAMES).map(|_| asks(&mut burst, 0)).collect();
        assert!(asked.iter().position(|asked| *asked) == Some(31) && asked[31..].iter().all(|asked| *asked));
        assert!(burst.is_full());
    }

    #[test]
    fn a_late_look_asks_before_it_breaks() {
        let mut outbound = connection();
        asks(&mut outbound, 0);
        assert_eq!(outbound.check(ms(60_000)), Check::Probe(1));
        assert_eq!(outbound.check(ms(60_000)), Check::Wait);
        outbound.acknowledged(ms(60_020), 1);
        assert_eq!(outbound.check(ms(70_000)), Check::Wait);
    }
}
