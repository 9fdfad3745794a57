//! Every limit of the gossip half in one place, each with its unit and reason.
//!
//! What depends on the configuration is derived in [`Timing`].
//!
//! Spec: docs/protocol.md, Limits; decisions 12 and 15.

use crate::time::Duration;

/// Largest frame body, in bytes. Sender and receiver hold the same cap; a larger prefix closes the connection.
pub const FRAME_BYTES_MAX: usize = 65_536;
/// Bytes of the big-endian length before each body.
pub const FRAME_PREFIX_BYTES: usize = 4;
/// Longest node id, cluster name or counter name, in bytes.
pub const NAME_BYTES_MAX: usize = 64;
/// Shortest shared secret, in bytes.
pub const SECRET_BYTES_MIN: usize = 16;

/// Frames waiting for one peer; the newest is dropped when full (an older copy of the document is on its way).
pub const SEND_QUEUE_FRAMES: usize = 64;
/// Frames on a peer's farewell lane: the last push and the leave.
pub const FAREWELL_FRAMES: usize = 2;
/// Inbound connections held at once.
pub const INBOUND_MAX: usize = 128;
/// Refusals before the MAC that close a connection.
pub const STRIKES_MAX: u8 = 3;
/// How long a dial may take.
pub const DIAL_TIMEOUT: Duration = Duration::from_secs(2);
/// How long one write may take.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(2);
/// First pause after a failed dial.
pub const DIAL_BACKOFF_MIN: Duration = Duration::from_millis(50);
/// Longest pause after failed dials, before jitter.
pub const DIAL_BACKOFF_MAX: Duration = Duration::from_secs(2);
/// Jitter of a dial pause: 80..=120 % of it.
pub const DIAL_JITTER_PERCENT: (u64, u64) = (80, 120);
/// Pause after the listener failed to accept.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
/// Whole budget of a graceful departure.
pub const DEPARTURE: Duration = Duration::from_millis(250);
/// Jitter of a push round: 80..=120 % of the interval, drawn anew every round.
pub const PUSH_JITTER_PERCENT: (u64, u64) = (80, 120);
/// Shortest pause between two nudged pushes.
pub const NUDGE_FLOOR_MIN: Duration = Duration::from_millis(50);
/// At most one warning about an unsendable document in this time.
pub const UNSENDABLE_WARNING: Duration = Duration::from_secs(60);
/// Shortest time a connection may take to deliver one whole frame.
pub const IDLE_LIMIT_MIN: Duration = Duration::from_secs(10);

/// Rows, or cursors, in one message, in bytes as they stand in an envelope: a frame less its envelope.
pub const PAGE_BYTES_MAX: usize = FRAME_BYTES_MAX - 2_048;

/// Members in the document, this node included.
pub const MEMBERS_MAX: usize = 512;
/// Replay watermarks.
pub const WATERMARKS_MAX: usize = 1024;
/// Notes about reaped members.
pub const REAP_NOTES_MAX: usize = 1024;
/// Counter names in the document. Cells are not bounded: dropping one would make a counter fall.
pub const COUNTERS_MAX: usize = 64;
/// Own incarnations remembered, to tell an echo of this boot from another host with the same id.
pub const MINTED_MAX: usize = 64;
/// Refutations in one tombstone window before they slow to one a window (decision 12).
pub const REFUTATIONS_BEFORE_SLOW: usize = 3;
/// How far beyond one above a refutation may leap, in incarnations. Two boots that refute one record choose the same
/// in 1 of 1,024 cases; and where the clock is in order, the next boot outranks the leap a second later.
pub const REFUTATION_LEAP_MAX: u64 = 1023;
/// Smallest push interval, in milliseconds.
pub const PUSH_INTERVAL_MS_MIN: u64 = 10;
/// Smallest ratio of suspicion timeout to push interval: below it one late push evicts a healthy peer.
pub const SUSPICION_PER_PUSH_MIN: u64 = 3;

const _: () = assert!(WATERMARKS_MAX >= MEMBERS_MAX, "every member needs a watermark");
const _: () = assert!(REAP_NOTES_MAX >= MEMBERS_MAX, "every member can be reaped at once");
const _: () = assert!(FAREWELL_FRAMES == 2, "a departure is one push and one leave");
const _: () = assert!(SUSPICION_PER_PUSH_MIN > 2, "suspect (2 pushes) must come before down");

/// The times that follow from a node's configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Time between push rounds before jitter (P).
    pub push: Duration,
    /// Silence after which a member is down (S).
    pub suspicion: Duration,
}

impl Timing {
    /// Silence after which a member is suspect: two pushes.
    pub const fn suspect(&self) -> Duration {
        self.push.saturating_mul(2)
    }

    /// How long a tombstone is kept, and how long a record may go unrefreshed: 10 S.
    pub const fn tombstone(&self) -> Duration {
        self.suspicion.saturating_mul(10)
    }

    /// How long a reaped member is remembered: 20 S.
    pub const fn reap_memory(&self) -> Duration {
        self.suspicion.saturating_mul(20)
    }

    /// Shortest pause between two nudged pushes: a quarter interval, at least 50 ms, at most the interval.
    pub fn nudge_floor(&self) -> Duration {
        (self.push / 4).max(NUDGE_FLOOR_MIN).min(self.push)
    }

    /// How long a connection may take to deliver one whole frame: 4 S, at least 10 s.
    pub fn idle(&self) -> Duration {
        self.suspicion.saturating_mul(4).max(IDLE_LIMIT_MIN)
    }
}
