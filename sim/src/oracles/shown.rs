//! What a sabotaged cluster does, in words, and the shipped drill that shows it.
//!
//! Beside the table of [`sabotage`](super::sabotage), which says who notices.

/// What the lack of a guard looks like.
#[derive(Debug, Clone, Copy)]
pub struct Shown {
    /// The guard.
    pub guard: &'static str,
    /// What nodes do without it.
    pub without: &'static str,
    /// The drill that shows it, by its name.
    pub scenario: &'static str,
}

/// The row of a guard; `None` where no shipped drill shows its lack.
pub fn of(guard: &str) -> Option<&'static Shown> {
    SHOWN.iter().find(|shown| shown.guard == guard)
}

const fn shown(guard: &'static str, scenario: &'static str, without: &'static str) -> Shown {
    Shown { guard, without, scenario }
}

const SHOWN: &[Shown] = &[
    shown(
        "refutation",
        "clock-back-restart",
        "a node lets records about itself stand, however old its own words look",
    ),
    shown("echo_exempt", "converge-3", "a node refutes its own record whenever a peer sends it back"),
    shown("left_beats_alive", "graceful-leave", "an alive record undoes a farewell of the same boot"),
    shown("reap_memory", "replay-after-reap", "a forgotten member comes back with any old record"),
    shown("watermark_reaped", "reaped-return", "a forgotten member's watermark stays and refuses its return"),
    shown("silent_converted", "mute-node", "a member that fell silent is never recorded as left"),
    shown("watermark_only_accepted", "replay-does-not-blind", "a refused frame lifts its sender's watermark"),
    shown("replay_check", "replay-after-restart", "a frame that was seen before is accepted again"),
    shown("cell_per_boot", "kill-restart", "all boots of a node count into one cell"),
    shown("cells_merge_by_max", "converge-3", "cells are added up with every push that holds them"),
    shown("suspicion", "kill-suspicion", "silence takes nobody out of a view"),
    shown(
        "heard_outranks_hearsay",
        "deaf-node",
        "a record that others wrote hides a member that is still heard",
    ),
    shown("late_round_restarts", "pause", "a node that was held up blames the silence on its peers"),
    shown("stale_frames_unheard", "deaf-return", "a frame of an earlier boot counts as a sign of life"),
    shown(
        "refused_return_answered",
        "reaped-return",
        "a return that the reap memory refuses is not answered",
    ),
    shown("refutation_limited", "duplicate-node-id", "a node refutes as often as it is told something"),
    shown("push_jitter", "kill-restart", "rounds keep one pace, exactly"),
    shown("bounds", "too-many-counters", "tables take whatever they are sent"),
    shown("frame_cap", "oversized-document", "a node sends documents that no frame may hold"),
    shown("tombstones_pushed", "tombstone-refuted", "nobody tells a member that it is recorded as left"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracles::sabotage;

    #[test]
    fn every_row_is_of_a_guard_that_exists() {
        for row in SHOWN {
            assert!(sabotage::find(row.guard).is_some(), "{} is no guard", row.guard);
        }
    }
}
