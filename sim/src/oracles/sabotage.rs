//! Which oracle is expected to notice which missing guard, and in what kind of drill.
//!
//! Every guard of the core has a row; `tests/teeth.rs` sees each oracle that a row names fire in a whole drill with
//! every other oracle turned off. There the oracles that no guard can break are broken another way.

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
    /// The shortest story in which it matters.
    pub drill: &'static str,
}

macro_rules! sabotage {
    ($($guard:ident: $caught:expr, $drill:literal;)*) => {
        /// One row a guard, in the order of [`Guards`].
        pub const SABOTAGE: &[Sabotage] = &[$(Sabotage {
            guard: stringify!($guard),
            apply: |guards| guards.$guard = false,
            caught_by: &$caught,
            drill: $drill,
        }),*];
    };
}

sabotage! {
    refutation: ["views_agree", "documents_agree"],
        "restart a node two hours back: peers hold its old record and replay-drop its frames";
    echo_exempt: ["incarnation_rises"],
        "let three nodes start: each hears its own record and refutes it";
    left_beats_alive: ["dead_leaves_view"],
        "stop a node gracefully on an undisturbed network: its farewell must not lose to alive records";
    reap_memory: ["records_monotone"],
        "kill a node, wait until it is reaped, replay old frames of it";
    watermark_reaped: ["views_agree"],
        "kill a node, wait until it is reaped, restart it two hours back";
    silent_converted: ["silent_buried"],
        "kill a node and wait for a tombstone window";
    watermark_only_accepted: ["views_agree"],
        "kill a node, restart it two hours back at a new address, replay old frames of it while the note holds";
    replay_check: ["seq_monotone"],
        "replay frames of a running node";
    cell_per_boot: ["cell_single_writer"],
        "increment on both boots of a killed node";
    cells_merge_by_max: ["counter_bounded", "counters_exact"],
        "increment once and let two nodes exchange documents";
    suspicion: ["view_no_down", "dead_leaves_view"],
        "kill a node and wait for a suspicion timeout";
    heard_outranks_hearsay: ["left_by_own_word"],
        "cut one way for longer than a tombstone window: the deaf side records healthy members as left";
    late_round_restarts: ["late_round"],
        "pause a node for longer than a suspicion timeout";
    stale_frames_unheard: ["view_no_down"],
        "restart a node three times, each further back, while one link to it is cut";
    refused_return_answered: ["views_agree"],
        "kill a node, wait until it is reaped, restart it two hours back at a new address";
    refutation_limited: ["incarnation_rises"],
        "run two hosts with one node id";
    push_jitter: ["rounds_paced"],
        "let two nodes run for twenty rounds without increments";
    bounds: ["tables_bounded"],
        "let two nodes make forty counters each";
    frame_cap: ["frame_cap"],
        "fill the document with cells until a push is above 65,536 bytes";
    tombstones_pushed: ["views_agree", "counters_exact"],
        "kill a node for longer than a tombstone window, restart it two hours back without seeds";
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
    fn every_row_names_oracles_that_exist() {
        for row in SABOTAGE {
            for name in row.caught_by {
                assert!(RULES.iter().any(|rule| rule.name == *name), "{}: {name}", row.guard);
            }
        }
    }
}
