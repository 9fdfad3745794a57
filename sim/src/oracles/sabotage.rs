//! What nodes do without a guard, the drill that shows it, and the oracles that are expected to notice.
//!
//! Every guard of the core has a row; `tests/teeth.rs` sees each oracle that a row names fire in a whole drill with
//! every other oracle turned off. There the oracles that no guard can break are broken another way. A guard that no
//! oracle misses says why.

use firedrill_core::guards::Guards;

/// A guard turned off: what comes of it, and who notices.
#[derive(Debug, Clone, Copy)]
pub struct Sabotage {
    /// The name of the [`Guards`] field.
    pub guard: &'static str,
    /// The fuzzing profile whose drills can show it.
    pub profile: &'static str,
    /// Turns it off.
    pub apply: fn(&mut Guards),
    /// What nodes do without it.
    pub without: &'static str,
    /// The shortest story in which it matters.
    pub drill: &'static str,
    /// The shipped drill of that story, where an oracle can tell its lack.
    pub shown: Option<Shown>,
    /// The oracles that fire there or in another shipped drill, each when it watches alone.
    pub caught_by: &'static [&'static str],
    /// Why none does, where none does: no drill reaches the guard, or the oracles have to allow for what its lack
    /// leads to.
    pub uncaught: Option<&'static str>,
}

/// Where the lack of a guard shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// The drill, by its name.
    pub scenario: &'static str,
    /// It shows on the full wire only, though the drill would do without bytes.
    pub on_bytes: bool,
}

macro_rules! sabotage {
    ($($profile:ident { $($guard:ident: $without:literal, $drill:literal,
        $(in $scenario:literal $(on $bytes:ident)? by $caught:tt)? $(uncaught $why:literal)?;)* })*) => {
        /// One row a guard, in the order of [`Guards`].
        pub const SABOTAGE: &[Sabotage] = &[$($(Sabotage {
            guard: stringify!($guard),
            profile: stringify!($profile),
            apply: |guards| guards.$guard = false,
            without: $without,
            drill: $drill,
            shown: sabotage!(@shown $($scenario $($bytes)?)?),
            caught_by: &sabotage!(@list $($caught)?),
            uncaught: sabotage!(@why $($why)?),
        },)*)*];
    };
    (@shown) => { None };
    (@shown $scenario:literal) => { Some(Shown { scenario: $scenario, on_bytes: false }) };
    (@shown $scenario:literal bytes) => { Some(Shown { scenario: $scenario, on_bytes: true }) };
    (@list) => { [] };
    (@list $caught:tt) => { $caught };
    (@why) => { None };
    (@why $why:literal) => { Some($why) };
}

// Each row: what nodes do without the guard; the story that shows it; the drill, and who notices.
sabotage! {
  gossip {
    mac_checked: "whoever writes a member's name into a frame is believed",
        "forge frames in a member's name",
        in "forged-frames" by ["frames_authentic"];
    mac_covers_incarnation: "a bit flipped on the way makes a frame one of another boot",
        "flip bits in the frames of a link",
        in "corrupted-heads" by ["frames_authentic"];
    cluster_checked: "nodes of another cluster with the same secret are taken in as members",
        "let a node of another cluster with the same secret push to this one",
        in "other-cluster" by ["frames_authentic"];
    own_origin_refused: "a node merges what another host sends in its name",
        "run two hosts with one node id, each a seed of the other",
        in "duplicate-node-id" by ["frames_authentic"];
    replay_check: "a frame that was seen before is accepted again",
        "replay frames of a running node",
        in "replay-after-restart" by ["seq_monotone"];
    replay_before_payload: "a replayed frame is parsed whole before it is dropped",
        "replay frames of a running node over the full wire",
        in "replay-after-restart" on bytes by ["refused_unread"];
    watermark_only_accepted: "a refused frame lifts its sender's watermark",
        "kill a node, restart it two hours back at a new address, replay old frames of it while the note holds",
        in "replay-does-not-blind" by ["no_false_replay", "views_agree"];
    watermark_reaped: "a forgotten member's watermark stays and refuses its return",
        "kill a node, wait until it is reaped, restart it two hours back",
        in "reaped-return" by ["no_false_replay", "views_agree"];
    watermark_expires: "the watermark of a sender that never had a record stays for good",
        "a peer with the secret pushes documents in which it does not occur itself",
        uncaught "every node pushes its own record, so a sender that is accepted has a record, and its watermark goes with that; the tests of the watermarks show the rule";
    left_beats_alive: "an alive record undoes a farewell of the same boot",
        "stop a node gracefully: its farewell must not lose to alive records",
        in "graceful-leave" by ["dead_leaves_view", "farewell_heard"];
    address_breaks_ties: "of two records at one incarnation a node keeps the one that came first",
        "two boots at one incarnation and two addresses",
        uncaught "whoever is told of its own incarnation elsewhere outranks both records, before or after they meet; the tests of the merge show the rule";
    bounds: "tables take whatever they are sent",
        "let two nodes make forty counters each",
        in "too-many-counters" by ["tables_bounded"];
    suspicion: "silence takes nobody out of a view",
        "kill a node and wait for a suspicion timeout",
        in "kill-suspicion" by ["view_no_down", "dead_leaves_view"];
    silence_only: "a connection that breaks takes its peer out of the view",
        "restart a node within a suspicion timeout over the full wire: its connections break",
        in "leave-to-a-stranger" on bytes by ["silence_alone"];
    heard_to_enter: "a member is in view as soon as somebody speaks of it",
        "let three nodes start: two of them hear of the third before they hear it",
        in "converge-chain" by ["view_no_down"];
    heard_outranks_hearsay: "a record that others wrote hides a member that is still heard",
        "cut one way for longer than a tombstone window: the deaf side records healthy members as left",
        in "deaf-node" by ["left_by_own_word"];
    farewell_obeyed: "a member that said goodbye stays in view until it is silent",
        "stop a node gracefully",
        in "graceful-leave" by ["farewell_heard", "dead_leaves_view"];
    stale_frames_unheard: "a frame of an earlier boot counts as a sign of life",
        "restart a node three times, each further back, while one link to it is cut",
        in "deaf-return" by ["view_no_down"];
    adoption_restarts: "a member is buried again as soon as it has refuted, since its old silence still counts",
        "cut one way for longer than a tombstone window: the deaf side buries the member again with every incarnation",
        in "deaf-node" by ["silence_alone"];
    late_round_restarts: "a node that was held up blames the silence on its peers",
        "pause a node for longer than a suspicion timeout",
        in "pause" by ["late_round"];
    silent_converted: "a member that fell silent is never recorded as left",
        "kill a node and wait for a tombstone window",
        in "mute-node" by ["silent_buried"];
    incarnation_in_ms: "boots within one second begin with one incarnation",
        "boot a node",
        in "converge-2" by ["incarnation_from_clock"];
    refutation: "a node lets records about itself stand, however old its own words look",
        "restart a node two hours back: peers hold its old record and replay-drop its frames",
        in "clock-back-restart" by ["views_agree", "documents_agree"];
    refutation_outranks: "a node refutes from where it stands, which may be far below what it was told",
        "restart a node two hours back",
        in "clock-back-restart" by ["views_agree", "documents_agree"];
    refutation_leaps: "a boot refutes its way to where the boot before it went, and what it says there is dropped as a replay",
        "restart a node back in time while a peer is paused, kill it and restart it as the peer wakes",
        in "refutes-to-the-same-incarnation" by ["views_agree"];
    refutation_pushed: "a refutation waits for the next round",
        "restart a node two hours back",
        in "clock-back-restart" by ["refutation_told"];
    seq_restarts: "a raised incarnation goes on with the numbers of the one before",
        "cut a node off for longer than a tombstone window: it refutes after many frames",
        in "partition-past-the-record" by ["refutation_told"];
    refutation_limited: "a node refutes as often as it is told something",
        "run two hosts with one node id",
        in "duplicate-node-id" by ["incarnation_rises"];
    echo_exempt: "a node refutes its own record whenever a peer sends it back",
        "let three nodes start: each hears its own record and refutes it",
        in "converge-3" by ["incarnation_rises"];
    duplicates_reported: "two hosts share an id and nobody is told",
        "run two hosts with one node id",
        in "duplicate-node-id" by ["duplicate_told"];
    leave_recorded: "a leave of a member without a record is forgotten at once",
        "stop a node that its peer, just restarted, does not know, so that the leave overtakes the final push",
        in "leave-to-a-stranger" by ["farewell_heard"];
    leave_obeys_notes: "an old leave writes a tombstone for a member that was forgotten long ago",
        "stop a node, wait until it is reaped, and let its leave come once more without the push before it",
        uncaught "a leave is captured, held and replayed behind its final push, which the reap memory answers with a tombstone of its own; the tests of the node show the rule";
    tombstone_restamped: "a second departure is forgotten with the first, before everybody has heard of it",
        "stop a node, start it and stop it again before its first round, half a tombstone window later",
        in "left-twice" by ["tombstones_kept"];
    heard_tombstone_kept: "a member is forgotten while it is still heard, so nobody can tell it that others buried it",
        "cut a node off from hearing anybody and from being heard by one, for two tombstone windows",
        in "heard-tombstone" by ["tombstones_kept"];
    tombstones_pushed: "nobody tells a member that it is recorded as left",
        "kill a node for longer than a tombstone window, restart it two hours back without seeds",
        in "tombstone-refuted" by ["views_agree", "counters_exact"];
    seeds_kept: "a node that knows anybody pushes to its seeds no more",
        "cut two pairs apart until each has forgotten the other",
        in "forgotten-by-pairs" by ["views_agree"];
    reap_memory: "a forgotten member comes back with any old record",
        "kill a node, wait until it is reaped, replay old frames of it",
        in "replay-after-reap" by ["records_monotone"];
    notes_yield: "a note refuses a member for as long as it lasts, whatever its incarnation",
        "kill a node, wait until it is reaped, restart it",
        in "return-above-the-note" by ["records_monotone"];
    refused_return_answered: "a return that the reap memory refuses is not answered",
        "kill a node, wait until it is reaped, restart it two hours back at a new address",
        in "reaped-return" by ["views_agree"];
    answer_elsewhere: "a refused return is answered at the address that the first frame named, though that may be an old one",
        "kill a node, restart it two hours back at a new address, replay old frames of it while the note holds",
        in "replay-does-not-blind" by ["views_agree"];
    rumours_pushed: "where a forgotten member is said to live is nowhere to push to",
        "two nodes without a seed between them prune each other while a third, restarted, knows both",
        in "two-notes-and-no-seed" by ["views_agree"];
    cell_per_boot: "all boots of a node count into one cell",
        "increment on both boots of a killed node",
        in "kill-restart" by ["cell_single_writer", "cell_follows_boot"];
    cell_kept: "every refutation begins a new cell",
        "restart a node two hours back: it refutes what its peers hold of it",
        in "clock-back-restart" by ["cell_follows_boot"];
    cell_renewed: "a boot goes on with its first cell, though another boot may have begun with the same",
        "cut a node off until it is recorded as left at its first incarnation",
        in "partition-past-the-record" by ["cell_follows_boot"];
    cells_merge_by_max: "cells are added up with every push that holds them",
        "increment once and let two nodes exchange documents",
        in "converge-3" by ["counter_bounded", "counters_exact"];
    push_jitter: "rounds keep one pace, exactly",
        "let two nodes run for twenty rounds without increments",
        in "kill-restart" by ["rounds_paced"];
    nudge_floor: "every increment is pushed by itself",
        "increment at one node several times in a quarter of a push interval",
        in "graceful-leave" by ["nudges_spaced"];
    frame_cap: "a node sends documents that no frame may hold",
        "fill the document with cells until a push is above 65,536 bytes",
        in "oversized-document" by ["frame_cap"];
    silent_link_redialled: "a connection that carries nothing is kept for as long as it looks open",
        "make a connection half-open both ways, with a suspicion timeout below two seconds",
        in "half-open" by ["unheard_redialled"];
    dial_backoff: "a refused dial is tried again at once",
        "restart a seed at another port of its host over the full wire, on a short way: the old one refuses every dial",
        in "refused-dials" on bytes by ["dials_paced"];
    send_queue_bounded: "what cannot be written piles up without end",
        "kill a node for longer than 64 push intervals over the full wire",
        in "full-pipe" on bytes by ["tables_bounded"];
    farewell_first: "last words queue behind everything that was not written yet",
        "stop a node with more pushes under way than a window holds: short intervals, a long way",
        in "full-pipe" on bytes by ["farewell_first"];
    departure_bounded: "a node that leaves waits for peers that will never answer",
        "stop a node while a peer of it cannot be reached, over the full wire",
        in "leave-beside-the-dead" on bytes by ["departs_in_time"];
    inbound_bounded: "whoever dials is taken in, without end",
        "open more than 128 connections to a node",
        in "flood-silent" by ["tables_bounded"];
    stranger_displaced: "a newcomer is turned away while silent strangers hold every place",
        "open more than 128 silent connections to a node",
        in "flood-silent" by ["strangers_make_room"];
    idle_covers_body: "half a frame holds its connection for ever",
        "open a connection, send half a frame and wait for the idle limit",
        in "flood-half-frame" by ["idle_closed"];
    strikes_kept: "a good frame makes up for the refused ones before it, so a connection that brings garbage stays open",
        "flip bits in the frames of a link",
        in "corrupted-frames" by ["strikes_close"];
    cluster_charged: "frames of another cluster cost their connection nothing",
        "let a node of another cluster push to this one",
        in "other-cluster" by ["strikes_close"];
  }
  issuance {
    seal_after_catch_up: "a node that has just started seals on what its own disk remembers",
        "start a cluster, or restart an issuer that was replaced",
        in "failover-drill" by ["seals_caught_up"];
    resume_from_shared_tip: "a successor goes on from its own last row, whatever others sealed since",
        "kill the issuer until another took over",
        in "failover-drill" by ["seals_above_tip"];
    clock_checked: "a node whose clock is an hour ahead seals an hour ahead, and everybody waits for that hour",
        "step the issuer's wall clock forward by an hour in a cluster of three",
        in "clock-forward-issuer" by ["seals_by_sane_clock"];
    one_seal_in_flight: "a node seals the next row before it knows what became of the last",
        "let the issuer's writes hang",
        in "disk-stalled" by ["seals_one_by_one"];
    demotion: "a node that was issuer once goes on as such, whoever holds the lease",
        "pause the issuer until another took over",
        in "issuer-paused" by ["sealed_by_issuer"];
    fence_before_seal: "a holder seals whether or not a majority still supports it",
        "cut the holder off from its electors",
        in "fenced-minority" by ["fence_excludes"];
    rows_merged: "of two rows for one window each node keeps the one that came first",
        "cut the issuer off until another took over, and heal",
        in "isolated-issuer" by ["one_row_a_window", "spines_agree"];
    lowest_id_holds: "of two issuers of one epoch the one that sealed last holds it, on each node another",
        "let two sides of a cut promote at one epoch, and heal",
        in "endless-duel" by ["fold_exact", "leases_agree"];
    stream_per_boot: "a node that lost its rows numbers the next ones alike",
        "kill the issuer, replace its disk and restart it",
        in "lost-disk" by ["numbers_once"];
    direct_after_push: "a message of a boot that no document has told of is taken, and lifts the watermark of its sender",
        "restart a node twice within a push interval, the second time with its clock set back",
        in "a-message-ahead-of-its-push" by ["views_agree"];
    audit_by_windows: "an audit adds rows up, so a window covered twice is issued twice",
        "cut the issuer off until another took over, and heal",
        in "isolated-issuer" by ["audit_exact"];
    election_boot_grace: "a node that has just started takes a silence for its issuer's before it can know",
        "cut the issuer off right after the start, with a silence shorter than the grace",
        in "grace-outlasts-silence" by ["promoted_by_rule"];
    empty_spine_elects_nobody: "nodes that start before the configured issuer elect one of themselves",
        "start a cluster without its issuer",
        in "cold-start" by ["promoted_by_rule"];
    field_of_one_holds: "a node that never heard of anybody makes itself the issuer",
        "restart a replica alone",
        in "lone-survivor" by ["promoted_by_rule"];
    silence_before_election: "an issuer that cannot be asked is replaced while its rows arrive",
        "cut the way between a replica and its issuer: the rows come by the third node",
        in "replica-cut-from-issuer" by ["promoted_in_silence"];
    reachable_holder_stands: "an issuer that answers and can seal is replaced",
        "restart an issuer during a silence that another node has seen from its beginning",
        in "restarted-holder-stands" by ["promoted_by_rule"];
    unfit_replaced: "an issuer that answers and cannot seal is never replaced",
        "fill the issuer's disk",
        in "disk-full" by ["decided_by_answers"];
    spine_behind_holds: "a node promotes itself though another knows more of the spine",
        "cut the way from the issuer to the first in rank, and silence the issuer",
        in "behind-the-spine" by ["promoted_by_rule"];
    unfit_skipped: "a candidate that cannot seal becomes the issuer, or is waited for",
        "stop the wall clock of the first in rank and kill the issuer",
        in "unfit-successor" by ["decided_by_answers", "promoted_by_rule"];
    electorate_compared: "what nodes of another electorate say is counted",
        "configure one of three electors with another electorate, and kill the issuer",
        in "foreign-electorate" by ["decided_by_answers"];
    field_keeps_the_dead: "of two nodes the survivor knows no other candidate and stays a replica for ever",
        "kill the issuer of a cluster of two",
        in "failover-2" by ["issuer_seals"];
    promotion_lapses: "a successor whose disk failed after its promotion stays an issuer that never seals",
        "let the successor's disk fail between its promotion and its first row",
        in "promotion-lapses" by ["promotions_lapse"];
    promise_exclusive: "an elector supports two nodes at once",
        "put electors between two claimants",
        in "one-promise-at-a-time" by ["fence_excludes"];
    promise_waits_after_start: "an elector that has just started promises what it may have promised to another",
        "restart an elector of a holder that is cut off, and let another ask it",
        in "restarted-elector" by ["fence_excludes"];
    epoch_stored_first: "an elector answers before its disk has the epoch, and forgets it with its power",
        "slow the electors' disks, and kill them right after a promotion",
        in "epoch-on-disk" by ["epochs_once"];
    epoch_never_regresses: "a majority supports an epoch that another node held before",
        "let claimants take turns while their electors come and go",
        in "epochs-rise" by ["epochs_once"];
    fence_from_sending: "a holder relies on a promise from when its answer came, and for longer than the elector",
        "hold an elector's answers up for almost a fence",
        in "late-promise" by ["fence_excludes"];
    claim_pauses: "two claimants that share the electors keep each other's promises from running out",
        "let two of four electors claim at once",
        in "two-halves-ask" by ["issuer_seals"];
    unable_asks_nothing: "a holder whose disk failed has its lease renewed for ever",
        "fill the disk of a holder that has a fence",
        in "unable-holder" by ["unable_asks_nothing"];
  }
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
    fn every_row_names_oracles_that_exist_and_a_drill_or_says_why_it_names_none() {
        for row in SABOTAGE {
            assert_eq!(row.caught_by.is_empty(), row.uncaught.is_some(), "{}", row.guard);
            assert_eq!(row.shown.is_none(), row.uncaught.is_some(), "{}", row.guard);
            assert!(row.without.len() > 20 && !row.without.ends_with('.'), "{}", row.guard);
            for name in row.caught_by {
                assert!(RULES.iter().any(|rule| rule.name == *name), "{}: {name}", row.guard);
            }
        }
    }
}
