//! Which oracle is expected to notice which missing guard, and in what kind of drill.
//!
//! Every guard of the core has a row; `tests/teeth.rs` sees each oracle that a row names fire in a whole drill with
//! every other oracle turned off. There the oracles that no guard can break are broken another way. A guard that no
//! oracle misses says why.

use firedrill_core::guards::Guards;

/// A guard turned off, and who notices.
#[derive(Debug, Clone, Copy)]
pub struct Sabotage {
    /// The name of the [`Guards`] field.
    pub guard: &'static str,
    /// Turns it off.
    pub apply: fn(&mut Guards),
    /// The oracles that fire, each when it watches alone.
    pub caught_by: &'static [&'static str],
    /// Why none does, where none does: no drill reaches the guard, or the oracles have to allow for what its lack
    /// leads to.
    pub uncaught: Option<&'static str>,
    /// The shortest story in which it matters.
    pub drill: &'static str,
}

macro_rules! sabotage {
    ($($guard:ident: $caught:expr, $drill:literal $(, uncaught $why:literal)?;)*) => {
        /// One row a guard, in the order of [`Guards`].
        pub const SABOTAGE: &[Sabotage] = &[$(Sabotage {
            guard: stringify!($guard),
            apply: |guards| guards.$guard = false,
            caught_by: &$caught,
            uncaught: sabotage!(@why $($why)?),
            drill: $drill,
        }),*];
    };
    (@why) => { None };
    (@why $why:literal) => { Some($why) };
}

sabotage! {
    mac_checked: ["frames_authentic"],
        "forge frames in a member's name";
    mac_covers_incarnation: ["frames_authentic"],
        "flip bits in the frames of a link";
    cluster_checked: ["frames_authentic"],
        "let a node of another cluster with the same secret push to this one";
    own_origin_refused: ["frames_authentic"],
        "run two hosts with one node id, each a seed of the other";
    replay_check: ["seq_monotone"],
        "replay frames of a running node";
    replay_before_payload: ["refused_unread"],
        "replay frames of a running node over the full wire";
    watermark_only_accepted: ["no_false_replay", "views_agree"],
        "kill a node, restart it two hours back at a new address, replay old frames of it while the note holds";
    watermark_reaped: ["no_false_replay", "views_agree"],
        "kill a node, wait until it is reaped, restart it two hours back";
    watermark_expires: [],
        "a peer with the secret pushes documents in which it does not occur itself",
        uncaught "every node pushes its own record, so a sender that is accepted has a record, and its watermark goes with that; the tests of the watermarks show the rule";
    left_beats_alive: ["dead_leaves_view", "farewell_heard"],
        "stop a node gracefully: its farewell must not lose to alive records";
    address_breaks_ties: [],
        "two boots at one incarnation and two addresses",
        uncaught "whoever is told of its own incarnation elsewhere outranks both records, before or after they meet; the tests of the merge show the rule";
    bounds: ["tables_bounded"],
        "let two nodes make forty counters each";
    suspicion: ["view_no_down", "dead_leaves_view"],
        "kill a node and wait for a suspicion timeout";
    silence_only: ["silence_alone"],
        "restart a node within a suspicion timeout over the full wire: its connections break";
    heard_to_enter: ["view_no_down"],
        "let three nodes start: two of them hear of the third before they hear it";
    heard_outranks_hearsay: ["left_by_own_word"],
        "cut one way for longer than a tombstone window: the deaf side records healthy members as left";
    farewell_obeyed: ["farewell_heard", "dead_leaves_view"],
        "stop a node gracefully";
    stale_frames_unheard: ["view_no_down"],
        "restart a node three times, each further back, while one link to it is cut";
    adoption_restarts: ["silence_alone"],
        "cut one way for longer than a tombstone window: the deaf side buries the member again with every incarnation";
    late_round_restarts: ["late_round"],
        "pause a node for longer than a suspicion timeout";
    silent_converted: ["silent_buried"],
        "kill a node and wait for a tombstone window";
    incarnation_in_ms: ["incarnation_from_clock"],
        "boot a node";
    refutation: ["views_agree", "documents_agree"],
        "restart a node two hours back: peers hold its old record and replay-drop its frames";
    refutation_outranks: ["views_agree", "documents_agree"],
        "restart a node two hours back";
    refutation_pushed: ["refutation_told"],
        "restart a node two hours back";
    seq_restarts: ["refutation_told"],
        "cut a node off for longer than a tombstone window: it refutes after many frames";
    refutation_limited: ["incarnation_rises"],
        "run two hosts with one node id";
    echo_exempt: ["incarnation_rises"],
        "let three nodes start: each hears its own record and refutes it";
    duplicates_reported: ["duplicate_told"],
        "run two hosts with one node id";
    leave_recorded: ["farewell_heard"],
        "stop a node that its peer, just restarted, does not know, so that the leave overtakes the final push";
    leave_obeys_notes: [],
        "stop a node, wait until it is reaped, and let its leave come once more without the push before it",
        uncaught "a leave is captured, held and replayed behind its final push, which the reap memory answers with a tombstone of its own; the tests of the node show the rule";
    tombstone_restamped: ["tombstones_kept"],
        "stop a node, start it and stop it again before its first round, half a tombstone window later";
    heard_tombstone_kept: ["tombstones_kept"],
        "cut a node off from hearing anybody and from being heard by one, for two tombstone windows";
    tombstones_pushed: ["views_agree", "counters_exact"],
        "kill a node for longer than a tombstone window, restart it two hours back without seeds";
    seeds_kept: ["views_agree"],
        "cut two pairs apart until each has forgotten the other";
    reap_memory: ["records_monotone"],
        "kill a node, wait until it is reaped, replay old frames of it";
    notes_yield: ["records_monotone"],
        "kill a node, wait until it is reaped, restart it";
    refused_return_answered: ["views_agree"],
        "kill a node, wait until it is reaped, restart it two hours back at a new address";
    answer_elsewhere: ["views_agree"],
        "kill a node, restart it two hours back at a new address, replay old frames of it while the note holds";
    rumours_pushed: ["views_agree"],
        "two nodes without a seed between them prune each other while a third, restarted, knows both";
    cell_per_boot: ["cell_single_writer", "cell_follows_boot"],
        "increment on both boots of a killed node";
    cell_kept: ["cell_follows_boot"],
        "restart a node two hours back: it refutes what its peers hold of it";
    cell_renewed: ["cell_follows_boot"],
        "cut a node off until it is recorded as left at its first incarnation";
    cells_merge_by_max: ["counter_bounded", "counters_exact"],
        "increment once and let two nodes exchange documents";
    push_jitter: ["rounds_paced"],
        "let two nodes run for twenty rounds without increments";
    nudge_floor: ["nudges_spaced"],
        "increment at one node several times in a quarter of a push interval";
    frame_cap: ["frame_cap"],
        "fill the document with cells until a push is above 65,536 bytes";
    silent_link_redialled: ["unheard_redialled"],
        "make a connection half-open both ways, with a suspicion timeout below two seconds";
    dial_backoff: ["dials_paced"],
        "restart a seed at another port of its host over the full wire, on a short way: the old one refuses every dial";
    send_queue_bounded: ["tables_bounded"],
        "kill a node for longer than 64 push intervals over the full wire";
    farewell_first: ["farewell_first"],
        "stop a node with more pushes under way than a window holds: short intervals, a long way";
    departure_bounded: ["departs_in_time"],
        "stop a node while a peer of it cannot be reached, over the full wire";
    inbound_bounded: ["tables_bounded"],
        "open more than 128 connections to a node";
    stranger_displaced: ["strangers_make_room"],
        "open more than 128 silent connections to a node";
    idle_covers_body: ["idle_closed"],
        "open a connection, send half a frame and wait for the idle limit";
    strikes_kept: ["strikes_close"],
        "flip bits in the frames of a link";
    cluster_charged: ["strikes_close"],
        "let a node of another cluster push to this one";
}

/// The row of a guard's name.
pub fn find(guard: &str) -> Option<&'static Sabotage> {
    SABOTAGE.iter().find(|row| row.guard == guard)
}

/// The names of the guards that are off, in the order of [`Guards`].
pub fn off(guards: Guards) -> Vec<&'static str> {
    let is_off = |row: &&Sabotage| {
        let mut without = guards;
        (row.apply)(&mut without);
        without == guards
    };
    SABOTAGE.iter().filter(is_off).map(|row| row.guard).collect()
}

#[cfg(test)]
mod tests {
    use super::super::RULES;
    use super::*;

    #[test]
    fn every_guard_has_one_row_that_turns_it_off_alone() {
        let on = format!("{:?}", Guards::ON);
        assert_eq!(SABOTAGE.len(), on.matches(": true").count());
        for row in SABOTAGE {
            let mut guards = Guards::ON;
            (row.apply)(&mut guards);
            let off = on.replace(&format!(" {}: true", row.guard), &format!(" {}: false", row.guard));
            assert_eq!(format!("{guards:?}"), off, "{}", row.guard);
        }
    }

    #[test]
    fn every_row_names_oracles_that_exist_or_says_why_it_names_none() {
        for row in SABOTAGE {
            assert_eq!(row.caught_by.is_empty(), row.uncaught.is_some(), "{}", row.guard);
            for name in row.caught_by {
                assert!(RULES.iter().any(|rule| rule.name == *name), "{}: {name}", row.guard);
            }
        }
    }
}
