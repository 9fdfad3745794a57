//! The protocol's guards as switches.
//!
//! Every rule that a failure once taught is on; a simulation may turn one off to prove that its oracles notice
//! (sabotage). A production driver never names this type: the house rules check that.
//!
//! The decisions are those of docs/protocol.md, Decisions.

/// Which guards stand. [`Guards::ON`] is the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent switch with a name of its own")]
pub struct Guards {
    /// A record about ourselves at our incarnation or above is refuted.
    pub refutation: bool,
    /// Our own record, come back unchanged, is no reason to refute (decision 3).
    pub echo_exempt: bool,
    /// At equal incarnation a leave beats alive.
    pub left_beats_alive: bool,
    /// A reaped member is remembered for 20 S.
    pub reap_memory: bool,
    /// A watermark without a record is freed: a reaped member's at once, others after a tombstone window (decision 7).
    pub watermark_reaped: bool,
    /// A member silent for 10 S is recorded as left.
    pub silent_converted: bool,
    /// A rejected frame leaves the watermark alone (decision 8).
    pub watermark_only_accepted: bool,
    /// A frame at or below its sender's watermark is dropped.
    pub replay_check: bool,
    /// Counter cells are keyed by node and incarnation, not by node alone.
    pub cell_per_boot: bool,
    /// Cells merge by maximum, not by sum.
    pub cells_merge_by_max: bool,
    /// Silence takes a member out of the view.
    pub suspicion: bool,
    /// Only a member's own farewell takes it out of the view before it is silent (decision 10).
    pub heard_outranks_hearsay: bool,
    /// A late round restarts the silence clocks before it converts anybody (decision 10).
    pub late_round_restarts: bool,
    /// A frame below its sender's record does not count as heard (decision 9).
    pub stale_frames_unheard: bool,
    /// A refused return is answered with a tombstone at the noted incarnation (decision 11).
    pub refused_return_answered: bool,
    /// Refutations are limited to one a push interval, then one a tombstone window (decision 12).
    pub refutation_limited: bool,
    /// Push rounds are jittered.
    pub push_jitter: bool,
    /// Tables refuse what exceeds their bounds (decision 15).
    pub bounds: bool,
    /// The sender refuses to emit a frame above the cap.
    pub frame_cap: bool,
    /// A tombstoned member stays a push target.
    pub tombstones_pushed: bool,
}

impl Guards {
    /// The protocol as specified.
    pub const ON: Self = Self {
        refutation: true,
        echo_exempt: true,
        left_beats_alive: true,
        reap_memory: true,
        watermark_reaped: true,
        silent_converted: true,
        watermark_only_accepted: true,
        replay_check: true,
        cell_per_boot: true,
        cells_merge_by_max: true,
        suspicion: true,
        heard_outranks_hearsay: true,
        late_round_restarts: true,
        stale_frames_unheard: true,
        refused_return_answered: true,
        refutation_limited: true,
        push_jitter: true,
        bounds: true,
        frame_cap: true,
        tombstones_pushed: true,
    };
}

impl Default for Guards {
    fn default() -> Self {
        Self::ON
    }
}
