//! The protocol's guards as switches.
//!
//! Every rule that a failure once taught is on; a simulation may turn one off to prove that its oracles notice
//! (sabotage). A production driver never names this type: the house rules check that.
//!
//! Absent: rules that no run can break, because the type system or the parser holds them (decision 2), and those
//! of a simulation itself (decision 17).
//!
//! Spec: docs/protocol.md; the decisions and findings are its own.

/// Which guards stand. [`Guards::ON`] is the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent switch with a name of its own")]
pub struct Guards {
    // The receive path: what a node believes of a frame.
    /// A frame whose MAC is not ours is refused (step 4).
    pub mac_checked: bool,
    /// The MAC covers the incarnation, as it covers every field but the key's number.
    pub mac_covers_incarnation: bool,
    /// Another cluster's frame is refused (step 3).
    pub cluster_checked: bool,
    /// A frame in our own name is refused (step 5).
    pub own_origin_refused: bool,
    /// A frame at or below its sender's watermark is dropped (step 6).
    pub replay_check: bool,
    /// The payload of a replay is not even read (step 6 comes before step 7).
    pub replay_before_payload: bool,
    /// A rejected frame leaves the watermark alone (decision 8).
    pub watermark_only_accepted: bool,
    /// A watermark without a record is freed: a reaped member's at once, others after a tombstone window (decision 7).
    pub watermark_reaped: bool,
    /// Of these, the watermark of a sender that never had a record is freed too (decision 7).
    pub watermark_expires: bool,

    // The document: how records merge.
    /// At equal incarnation a leave beats alive.
    pub left_beats_alive: bool,
    /// At equal incarnation and status the greater address wins, here as there.
    pub address_breaks_ties: bool,
    /// Tables refuse what exceeds their bounds (decision 15).
    pub bounds: bool,

    // Liveness and the view.
    /// Silence takes a member out of the view.
    pub suspicion: bool,
    /// Nothing but silence does: a connection that breaks says nothing of its peer.
    pub silence_only: bool,
    /// A member enters the view when it is heard, not when others speak of it (decision 10).
    pub heard_to_enter: bool,
    /// Only a member's own farewell takes it out of the view before it is silent (decision 10).
    pub heard_outranks_hearsay: bool,
    /// That farewell takes it out at once.
    pub farewell_obeyed: bool,
    /// A frame below its sender's record does not count as heard (decision 9).
    pub stale_frames_unheard: bool,
    /// The silence that buries a member runs from the adoption of its incarnation at the earliest (decision 9).
    pub adoption_restarts: bool,
    /// A late round restarts the silence clocks before it converts anybody (decision 10).
    pub late_round_restarts: bool,
    /// A member silent for 10 S is recorded as left.
    pub silent_converted: bool,

    // A node's own incarnation.
    /// An incarnation is the wall clock in milliseconds, not in seconds.
    pub incarnation_in_ms: bool,
    /// A record about ourselves at our incarnation or above is refuted.
    pub refutation: bool,
    /// A refutation goes above the record refuted, not only above our own.
    pub refutation_outranks: bool,
    /// A refutation goes a random step further, past where an earlier boot refuted its way to (finding 8).
    pub refutation_leaps: bool,
    /// A refutation is pushed at once, not with the next round.
    pub refutation_pushed: bool,
    /// A raised incarnation starts its numbers at 0.
    pub seq_restarts: bool,
    /// Refutations are limited to one a push interval, then one a tombstone window (decision 12).
    pub refutation_limited: bool,
    /// Our own record, come back unchanged, is no reason to refute (decision 3).
    pub echo_exempt: bool,
    /// Two hosts with one id are reported (decision 12).
    pub duplicates_reported: bool,

    // Departures, tombstones and the reap memory.
    /// A leave of an unknown member writes a tombstone (decision 5).
    pub leave_recorded: bool,
    /// That tombstone obeys the reap memory (decision 5).
    pub leave_obeys_notes: bool,
    /// A tombstone at a new incarnation is kept for its own 10 S.
    pub tombstone_restamped: bool,
    /// A tombstone whose subject is still heard is not pruned.
    pub heard_tombstone_kept: bool,
    /// A tombstoned member stays a push target.
    pub tombstones_pushed: bool,
    /// Seeds stay push targets, whoever else is known.
    pub seeds_kept: bool,
    /// A reaped member is remembered for 20 S.
    pub reap_memory: bool,
    /// A note never stands against a higher incarnation.
    pub notes_yield: bool,
    /// A refused return is answered with a tombstone at the noted incarnation (decision 11).
    pub refused_return_answered: bool,
    /// The answer also goes where the member's own refused words say that it lives (finding 1).
    pub answer_elsewhere: bool,
    /// Where a noted member is said to live is a place to push to (finding 2).
    pub rumours_pushed: bool,

    // Counters.
    /// Counter cells are keyed by node and incarnation, not by node alone.
    pub cell_per_boot: bool,
    /// A refutation keeps the cell (decision 4).
    pub cell_kept: bool,
    /// Unless it refutes the incarnation that this boot began with: another boot may share that (decision 4).
    pub cell_renewed: bool,
    /// Cells merge by maximum, not by sum.
    pub cells_merge_by_max: bool,

    // Rounds.
    /// Push rounds are jittered.
    pub push_jitter: bool,
    /// Nudged pushes keep a distance from each other.
    pub nudge_floor: bool,
    /// The sender refuses to emit a frame above the cap.
    pub frame_cap: bool,

    // Connections.
    /// A link to a peer unheard for S is closed and dialled anew (decision 14).
    pub silent_link_redialled: bool,
    /// A failed dial is followed by a pause that doubles.
    pub dial_backoff: bool,
    /// A full send queue drops the newest frame.
    pub send_queue_bounded: bool,
    /// Last words go ahead of the send queue.
    pub farewell_first: bool,
    /// A departure is over after 250 ms, whoever has not been told.
    pub departure_bounded: bool,
    /// At most so many inbound connections are held.
    pub inbound_bounded: bool,
    /// At that bound the oldest stranger makes room for a newcomer (decision 16).
    pub stranger_displaced: bool,
    /// The idle limit covers prefix and body together (decision 6).
    pub idle_covers_body: bool,
    /// Charged refusals do not decay.
    pub strikes_kept: bool,
    /// Another cluster's frame is charged to its connection (decision 1).
    pub cluster_charged: bool,

    // Issuance: who may seal, and what.
    /// A node seals after its start only when it knows what it missed.
    pub seal_after_catch_up: bool,
    /// Sealing resumes from the shared tip, not from the own rows alone.
    pub resume_from_shared_tip: bool,
    /// A wall clock far ahead of the others' does not seal.
    pub clock_checked: bool,
    /// One row at a time waits to become durable.
    pub one_seal_in_flight: bool,
    /// Whoever issued stands down when another holds the lease.
    pub demotion: bool,
    /// With fencing, a holder seals only while a majority's promise holds.
    pub fence_before_seal: bool,
    /// Of two rows for one window the same one wins on every node.
    pub rows_merged: bool,
    /// Of two issuers that stamped one epoch the lower id holds it.
    pub lowest_id_holds: bool,
    /// Every boot numbers its rows in a stream of its own.
    pub stream_per_boot: bool,
    /// A message that is no push is taken only from a boot that a document has told of.
    pub direct_after_push: bool,
    /// An audit counts windows, each once, not rows.
    pub audit_by_windows: bool,

    // Issuance: elections.
    /// A node that has just started elects nobody.
    pub election_boot_grace: bool,
    /// An empty spine elects nobody.
    pub empty_spine_elects_nobody: bool,
    /// A node that knows no other candidate does not win.
    pub field_of_one_holds: bool,
    /// Nobody is replaced while rows arrive.
    pub silence_before_election: bool,
    /// A holder that answers and is fit is not replaced.
    pub reachable_holder_stands: bool,
    /// A holder that answers but cannot seal is.
    pub unfit_replaced: bool,
    /// Nobody promotes itself while another knows more of the spine.
    pub spine_behind_holds: bool,
    /// A candidate that cannot seal is passed over.
    pub unfit_skipped: bool,
    /// Who is configured with another electorate has not answered.
    pub electorate_compared: bool,
    /// Members heard since the boot stay candidates when they leave the view.
    pub field_keeps_the_dead: bool,
    /// A promotion that was not sealed ends when its node could not seal.
    pub promotion_lapses: bool,

    // Issuance: the fence.
    /// An elector supports one node until its promise has run out.
    pub promise_exclusive: bool,
    /// It promises nothing for one fence after its start.
    pub promise_waits_after_start: bool,
    /// It answers only when the epoch is durable.
    pub epoch_stored_first: bool,
    /// It refuses renewals below the highest epoch it knows, and grants not above it.
    pub epoch_never_regresses: bool,
    /// A promise counts from when the renewal was sent, not from when its answer came.
    pub fence_from_sending: bool,
    /// A claimant without a majority asks again only after its promises have run out.
    pub claim_pauses: bool,
    /// Who cannot seal neither asks nor renews.
    pub unable_asks_nothing: bool,
}

impl Guards {
    /// The protocol as specified.
    pub const ON: Self = Self {
        mac_checked: true,
        mac_covers_incarnation: true,
        cluster_checked: true,
        own_origin_refused: true,
        replay_check: true,
        replay_before_payload: true,
        watermark_only_accepted: true,
        watermark_reaped: true,
        watermark_expires: true,
        left_beats_alive: true,
        address_breaks_ties: true,
        bounds: true,
        suspicion: true,
        silence_only: true,
        heard_to_enter: true,
        heard_outranks_hearsay: true,
        farewell_obeyed: true,
        stale_frames_unheard: true,
        adoption_restarts: true,
        late_round_restarts: true,
        silent_converted: true,
        incarnation_in_ms: true,
        refutation: true,
        refutation_outranks: true,
        refutation_leaps: true,
        refutation_pushed: true,
        seq_restarts: true,
        refutation_limited: true,
        echo_exempt: true,
        duplicates_reported: true,
        leave_recorded: true,
        leave_obeys_notes: true,
        tombstone_restamped: true,
        heard_tombstone_kept: true,
        tombstones_pushed: true,
        seeds_kept: true,
        reap_memory: true,
        notes_yield: true,
        refused_return_answered: true,
        answer_elsewhere: true,
        rumours_pushed: true,
        cell_per_boot: true,
        cell_kept: true,
        cell_renewed: true,
        cells_merge_by_max: true,
        push_jitter: true,
        nudge_floor: true,
        frame_cap: true,
        silent_link_redialled: true,
        dial_backoff: true,
        send_queue_bounded: true,
        farewell_first: true,
        departure_bounded: true,
        inbound_bounded: true,
        stranger_displaced: true,
        idle_covers_body: true,
        strikes_kept: true,
        cluster_charged: true,
        seal_after_catch_up: true,
        resume_from_shared_tip: true,
        clock_checked: true,
        one_seal_in_flight: true,
        demotion: true,
        fence_before_seal: true,
        election_boot_grace: true,
        empty_spine_elects_nobody: true,
        field_of_one_holds: true,
        silence_before_election: true,
        reachable_holder_stands: true,
        unfit_replaced: true,
        spine_behind_holds: true,
        unfit_skipped: true,
        electorate_compared: true,
        promise_exclusive: true,
        promise_waits_after_start: true,
        epoch_stored_first: true,
        epoch_never_regresses: true,
        fence_from_sending: true,
        claim_pauses: true,
        unable_asks_nothing: true,
        rows_merged: true,
        lowest_id_holds: true,
        stream_per_boot: true,
        audit_by_windows: true,
        direct_after_push: true,
        field_keeps_the_dead: true,
        promotion_lapses: true,
    };
}

impl Default for Guards {
    fn default() -> Self {
        Self::ON
    }
}
