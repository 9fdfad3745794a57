//! What one node believed at one moment, as plain data.

use std::collections::BTreeMap;

use firedrill_core::id::Incarnation;
use firedrill_core::wire::message::RecordStatus;
use serde::Serialize;

/// A record as the merge orders it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Held {
    /// The member's boot, or what it rose to.
    pub incarnation: Incarnation,
    /// Alive or left.
    pub status: RecordStatus,
}

/// What a host was doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum NodeState {
    /// It had not booted yet.
    NotStarted,
    /// It was down.
    Down {
        /// Since when, in microseconds of the run.
        since_us: u64,
        /// After a farewell.
        graceful: bool,
    },
    /// It ran, but was held.
    Paused,
    /// It ran.
    Up,
}

/// One node's beliefs.
#[derive(Debug, Clone, Serialize)]
pub struct Belief {
    /// The host's name.
    pub node: String,
    /// The id it goes by.
    pub id: String,
    /// What it was doing. Nothing below is known of a node that did not run.
    #[serde(flatten)]
    pub state: NodeState,
    /// Its own incarnation.
    pub incarnation: Option<Incarnation>,
    /// Who was in its view, itself included, sorted.
    pub view: Vec<String>,
    /// Those of them that were suspect.
    pub suspects: Vec<String>,
    /// What it knew of everybody, itself included, by id.
    pub about: BTreeMap<String, About>,
    /// The totals it showed.
    pub counters: BTreeMap<String, u64>,
}

/// What a node knew of one member.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct About {
    /// Its record; none for a member never known, or forgotten.
    pub record: Option<Held>,
    /// While its reap note lasts: records at this incarnation or below are refused.
    pub note: Option<Incarnation>,
    /// Frames at this incarnation and number, or below, are refused as replays.
    pub watermark: Option<(Incarnation, u64)>,
    /// The last frame that counts as heard, in microseconds of the run; none if there was none in this boot.
    pub heard_at_us: Option<u64>,
    /// Frames in its name that were refused since, or did not count, by reason.
    pub refused: BTreeMap<&'static str, u64>,
    /// Since when frames of it were cut off, in microseconds of the run.
    pub cut_since_us: Option<u64>,
}
