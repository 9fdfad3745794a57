//! The liveness overlay: who was heard, and when. Local, never gossiped.
//!
//! Silence runs on the monotonic clock. After two push intervals a member is suspect (a warning), after a
//! suspicion timeout it leaves the view. Connections play no part.
//!
//! Spec: docs/protocol.md, Liveness; decisions 9, 10 and 11.

use core::net::SocketAddr;

use crate::guards::Guards;
use crate::id::Incarnation;
use crate::limits::Timing;
use crate::time::{Duration, Instant};

/// Whether a member is in the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    /// Not: never heard in this boot, down, or departed.
    Absent,
    /// Heard within two push intervals.
    Alive,
    /// Silent for longer.
    Suspect,
}

/// What this node knows of one member from hearing it, or not.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    /// That of its record.
    pub(super) incarnation: Incarnation,
    pub(super) presence: Presence,
    /// The last frame that counts as heard (decision 9).
    pub(super) heard_at: Option<Instant>,
    /// Start of the silence that takes it out of the view; meaningful while present.
    pub(super) silent_since: Instant,
    /// When the record's present incarnation was adopted; the silence that buries it runs from here at the
    /// earliest (decision 9).
    pub(super) adopted_at: Instant,
    /// When this node first saw the record left, at its present incarnation; `None` while it says alive.
    pub(super) left_at: Option<Instant>,
    /// The member itself said that it left, at its present incarnation (decision 10).
    pub(super) said_goodbye: bool,
    /// Where its own refused words say that it lives, beside the address of its tombstone (decision 11).
    pub(super) answer_at: Option<SocketAddr>,
    /// Frames in its name below its incarnation: since when they have been refused, and the last of them.
    pub(super) refused: Option<(Instant, Instant)>,
    /// The last time a duplicate id was reported for it.
    pub(super) duplicate_reported_at: Option<Instant>,
}

impl Peer {
    pub(super) const fn new(now: Instant, incarnation: Incarnation) -> Self {
        Self {
            incarnation,
            presence: Presence::Absent,
            heard_at: None,
            silent_since: now,
            adopted_at: now,
            left_at: None,
            said_goodbye: false,
            answer_at: None,
            refused: None,
            duplicate_reported_at: None,
        }
    }

    pub(super) fn is_present(&self) -> bool {
        self.presence != Presence::Absent
    }

    /// The next moment at which silence changes something, if any: just past a threshold, since ages compare
    /// with a strict `>`.
    pub(super) fn next_threshold(&self, timing: &Timing) -> Option<Instant> {
        let limit = match self.presence {
            Presence::Absent => return None,
            Presence::Alive => timing.suspect(),
            Presence::Suspect => timing.suspicion,
        };
        Some(self.silent_since.after(limit).after(Duration::from_micros(1)))
    }

    /// Silence since the later of the last frame heard and the adoption of the incarnation.
    pub(super) fn unrefreshed(&self, now: Instant, guards: Guards) -> Duration {
        let later =
            |heard: Instant| if guards.adoption_restarts { heard.max(self.adopted_at) } else { heard };
        now.since(self.heard_at.map_or(self.adopted_at, later))
    }
}
