//! What is true of one host: what the scenario says of it, its boots, its clock.
//!
//! Absent: what hosts are to each other, and what was done to them together. [`super::world`] keeps that.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use firedrill_core::id::{Incarnation, NodeId};
use firedrill_core::limits::Timing;
use firedrill_core::time::Instant;

use super::world::PeerIx;

/// Millionths of true time at which a clock is right.
pub const RATE_RIGHT_PPM: u32 = 1_000_000;

/// A host as the scenario describes it.
#[derive(Debug, Clone)]
pub struct HostFacts {
    /// Its name in the scenario.
    pub name: Arc<str>,
    /// Its node id; several hosts may share one.
    pub id: NodeId,
    /// P and S.
    pub timing: Timing,
    /// Where it listens now, or will when it boots next.
    pub addr: SocketAddr,
    /// The seeds it dials.
    pub seeds: Vec<SocketAddr>,
}

/// One boot of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Boot {
    /// Which one, from 0.
    pub boot: u32,
    /// When it began, in true time.
    pub at: Instant,
    /// With which incarnation.
    pub incarnation: Incarnation,
    /// When it ended and whether gracefully, once it has.
    pub ended: Option<(Instant, bool)>,
}

/// What is true of a host now.
#[derive(Debug, Clone)]
pub struct Host {
    /// What the scenario says of it.
    pub facts: HostFacts,
    /// Its id's index.
    pub peer: PeerIx,
    /// Its boots, oldest first.
    pub boots: Vec<Boot>,
    /// Since when it is held, if it is.
    pub paused_since: Option<Instant>,
    /// When it last went on after a pause.
    pub resumed_at: Option<Instant>,
    /// Told to depart: it goes down once its last words are out.
    pub departs: bool,
    /// The slowest rate its clock ever ran at, in millionths.
    pub slowest_rate_ppm: u32,
    /// The fastest.
    pub fastest_rate_ppm: u32,
    /// It has changed its address, or shares its id with a host at another.
    pub(super) moved: bool,
    /// A boot of it may have a wall clock that an earlier one had.
    pub(super) turned_back: bool,
}

impl Host {
    /// A host before its first boot.
    pub(super) const fn new(facts: HostFacts, peer: PeerIx) -> Self {
        Self {
            facts,
            peer,
            boots: Vec::new(),
            paused_since: None,
            resumed_at: None,
            departs: false,
            slowest_rate_ppm: RATE_RIGHT_PPM,
            fastest_rate_ppm: RATE_RIGHT_PPM,
            moved: false,
            turned_back: false,
        }
    }

    /// The boot that runs, if one does.
    pub fn running(&self) -> Option<&Boot> {
        self.boots.last().filter(|boot| boot.ended.is_none())
    }

    /// Since when it is down: `None` while it runs and before its first boot.
    pub fn down_since(&self) -> Option<Instant> {
        self.boots.last().and_then(|boot| boot.ended).map(|(at, _)| at)
    }

    /// How long in true time `span` of this host's own clock lasts at the most.
    pub fn true_time(&self, span: Duration) -> Duration {
        at_rate(span, self.slowest_rate_ppm)
    }
}

/// How long in true time `span` lasts on a clock of that rate.
pub(super) fn at_rate(span: Duration, rate_ppm: u32) -> Duration {
    let scaled = span.as_micros() * u128::from(RATE_RIGHT_PPM) / u128::from(rate_ppm.max(1));
    Duration::from_micros(u64::try_from(scaled).unwrap_or(u64::MAX))
}
