//! Why each rule of the protocol exists, in a line or two: what goes wrong for a person without it.

/// The reason behind an oracle's rule; `None` for an oracle that nobody gave one.
pub fn why(oracle: &str) -> Option<&'static str> {
    WHY.iter().find(|(name, _)| *name == oracle).map(|(_, why)| *why)
}

const WHY: &[(&str, &str)] = &[
    (
        "no_alarm",
        "An alarm is a state that the code itself holds for impossible. Whatever follows from it is not the protocol \
         any more, and a peer that could provoke it could take the cluster down.",
    ),
    (
        "progress",
        "A node that answers every answer, or that wakes itself again at once, has no time left for its cluster and \
         fills the network for everybody else. Here it would never let the drill end.",
    ),
    (
        "counter_monotonic",
        "Counters only grow, and whoever reads one may act on it: a value that falls takes something back that was \
         already shown. Cells are therefore merged by maximum and never removed.",
    ),
    (
        "counter_bounded",
        "A counter is a lower bound of what was counted. Each cell has one writer, so a cell that holds more than its \
         writer put in counts things that never happened.",
    ),
    (
        "cell_single_writer",
        "Cells merge by maximum, which is right only while one boot alone writes a cell: of two writers, the smaller \
         count would vanish in the larger.",
    ),
    (
        "view_no_down",
        "A view is what services send work to. Silence is the only sign of a power loss, so a member that is silent \
         for too long, or was never heard, has to be out of it.",
    ),
    (
        "dead_leaves_view",
        "Whoever is gone has to stop receiving work within a known time. Without the bound a dead member may linger \
         for as long as others speak of it.",
    ),
    (
        "tables_bounded",
        "What a node holds for others, members, connections or frames that wait, must not depend on how many others \
         there claim to be or on how slow they are: one peer with a bug would fill everybody's memory.",
    ),
    (
        "incarnation_rises",
        "An incarnation says which word of a node is the latest. One that falls lets old words win; one that rises \
         without need makes everybody replace records for nothing, as fast as frames travel.",
    ),
    (
        "records_monotone",
        "Merging only ends if records move one way. One that moves back, or that returns from beyond its note, lets \
         two peers teach each other a departed member for ever.",
    ),
    (
        "left_by_own_word",
        "A node that hears nothing records healthy members as left, and its record spreads. If hearsay could hide a \
         member, one deaf node would evict the cluster for everybody.",
    ),
    (
        "late_round",
        "A node that was held up heard nobody, but that is its own silence and not theirs. Judged by it, the whole \
         cluster would look dead to every node that wakes up.",
    ),
    (
        "silent_buried",
        "For a member that lost power no leave will ever come. Unless its silence is written down in the end, its \
         record stays for good and is pushed to for good.",
    ),
    (
        "rounds_paced",
        "Every push carries the whole document to everybody. Without a pace a busy node floods its peers, and \
         without jitter nodes that started together send together for ever.",
    ),
    (
        "no_false_suspicion",
        "Suspicion comes after two missed pushes. If it comes on a healthy network, with nothing lost and nothing \
         late, then every warning is noise.",
    ),
    (
        "seq_monotone",
        "Whoever captured a frame can send it again, signature and all. Only a mark that rises with every frame \
         accepted keeps yesterday's word from being taken for today's.",
    ),
    (
        "frame_cap",
        "A receiver closes on a longer frame before it reads it. A sender that does not hold the same cap is cut off \
         by everybody and taken for dead; one that stops below the cap keeps its peers waiting for nothing.",
    ),
    (
        "frames_authentic",
        "Whoever can put words into a member's mouth can send it away, move it to another address or count for it. So \
         a frame counts only if its sender is who it says, in this cluster, and not a byte of it was changed.",
    ),
    (
        "refused_unread",
        "Anybody who captured a frame can send it again, as often as the line carries. If each replay were parsed, 64 \
         KiB of text at a time, that would be a cheap way to keep a node busy.",
    ),
    (
        "no_false_replay",
        "A frame that is refused as a replay is a member that is not heard. If the mark stands higher than anything \
         really accepted, a healthy member that returns with a slow clock stays invisible.",
    ),
    (
        "silence_alone",
        "Connections break for many reasons, and old silences are over once a member is back. If anything but a full \
         new silence counted, members that are up would be evicted, again and again.",
    ),
    (
        "farewell_heard",
        "A member says goodbye so that work stops reaching it at once. A farewell that is heard and not obeyed leaves \
         callers talking to nobody until the silence has been long enough.",
    ),
    (
        "tombstones_kept",
        "The tombstone is what tells late comers, and the member itself, that it was recorded as left. Dropped too \
         early, an old record brings the dead back, or a living member never learns that it was buried.",
    ),
    (
        "incarnation_from_clock",
        "Nothing is kept on disk, so the clock at boot is all that puts a restart above the boot before it. A coarser \
         one gives two boots the same number, and nobody can tell their records apart.",
    ),
    (
        "refutation_told",
        "Until the refutation arrives, others hold the node for gone or for an earlier boot. Numbers count within an \
         incarnation: any that go on from the one before would look like frames that were lost.",
    ),
    (
        "duplicate_told",
        "Two hosts with one id argue for as long as both run. No rule can settle that: a person has to stop one of \
         them, and a person has to be told.",
    ),
    (
        "cell_follows_boot",
        "A cell for every refutation would fill the document until no frame holds it. One cell for two boots would \
         lose what the smaller of them counted. So a boot keeps its cell unless it may be another's.",
    ),
    (
        "nudges_spaced",
        "A service that counts often would push its whole document with every count. The floor lets many increments \
         share one push.",
    ),
    (
        "unheard_redialled",
        "A half-open connection takes what is written and delivers nothing, without an error. Only the peer's silence \
         gives it away; a node that keeps it cuts itself off from a peer that is well.",
    ),
    (
        "dials_paced",
        "A refusal comes back at once. Without a pause the next dial would follow at once as well, and a peer that \
         restarts would be met by everybody dialling as fast as they can.",
    ),
    (
        "farewell_first",
        "When a node stops, its queues may hold minutes of pushes. Last words that wait behind them are written too \
         late, and peers learn of the departure by silence only.",
    ),
    (
        "departs_in_time",
        "Whoever stops a service waits for it. A departure is a courtesy to the peers; one that waits for a peer that \
         is dead would hold up every deployment.",
    ),
    (
        "strangers_make_room",
        "Anybody can open a connection and say nothing. If those who came first kept their places, a few idle sockets \
         would lock the members out.",
    ),
    (
        "idle_closed",
        "A connection costs its holder next to nothing. Half a frame, or a byte now and then, must not hold a place \
         among the few that there are.",
    ),
    (
        "strikes_close",
        "Garbage costs the receiver a MAC each time. A connection that keeps bringing it is not a member's with a bad \
         line, and an honest peer simply dials again.",
    ),
    (
        "views_agree",
        "A partition may split what the nodes believe, but its end has to bring them together in a known time. A \
         cluster that stays split after the network is whole needs a person to mend it.",
    ),
    (
        "documents_agree",
        "Views are made of records. While nodes hold different records of a running member, one of them pushes to \
         the wrong address or waits for a boot that is over.",
    ),
    (
        "counters_exact",
        "What a node counted while it was cut off must be there once the cut is over: a partition may delay an \
         increment, never lose it.",
    ),
    (
        "seals_above_tip",
        "What lies below the tip is issued or given up. A row sealed there issues a window a second time, and \
         a row that does not go on from the tip hides what was missed in between.",
    ),
    (
        "seals_one_by_one",
        "Until the disk has answered, a node does not know where its own rows end. The next row would go on \
         from one that may never exist.",
    ),
    (
        "sealed_by_issuer",
        "One node issues at a time. A node that goes on after it was replaced issues beside its successor, \
         and each of its rows is one that others have to undo.",
    ),
    (
        "seals_caught_up",
        "A node that comes back remembers the lease as it was. If it seals before it has asked, it seals at \
         an epoch that is over.",
    ),
    (
        "seals_by_sane_clock",
        "A row of the future lifts the tip, and nobody can seal below it: one clock an hour ahead would stop \
         the issuance of all for an hour.",
    ),
    (
        "numbers_once",
        "Nodes ask each other for what follows a number. Two rows under one number mean that each node keeps \
         the one it got, and nobody ever asks for the other.",
    ),
    (
        "one_row_a_window",
        "Two sides of a cut seal the same windows. Only if every node prefers the same row do they end up \
         with one supply, whichever row came first.",
    ),
    (
        "fold_exact",
        "Lease and tip are not stored but added up from rows. Nodes with the same rows must come to the same \
         sum, or they follow different issuers for ever.",
    ),
    (
        "durable_first",
        "Whatever was shown cannot be taken back. A row that a power loss erases after others have seen it \
         leaves them with money that its issuer never issued.",
    ),
    (
        "promoted_in_silence",
        "Rows that arrive prove that somebody issues. To take over in spite of them makes two issuers of one.",
    ),
    (
        "promoted_by_rule",
        "Each guard of the election stands for a way in which a node takes its own trouble for the issuer's: \
         it has just started, it knows nobody, it is behind, or it could do no better.",
    ),
    (
        "decided_by_answers",
        "An issuer that can be reached and cannot seal would be kept for ever, and a successor that cannot \
         seal waited for. What counts is the word of the node itself that it can.",
    ),
    (
        "promotions_lapse",
        "Others wait for whoever was promoted. If it cannot seal, they must not wait for long.",
    ),
    (
        "unable_asks_nothing",
        "A promise to a node that cannot seal keeps everybody else from sealing. With its renewals the lease \
         would be held by one that is of no use, without end.",
    ),
    (
        "fence_excludes",
        "This is what the fence is for: services that cannot bear two issuers, not even for a moment. One \
         overlap, and the promise is worth nothing.",
    ),
    (
        "epochs_once",
        "Receivers tell an old issuer from a new one by the epoch. Two nodes at one epoch, or a later one \
         below an earlier, cannot be told apart.",
    ),
    (
        "supply_bounded",
        "Time is what is issued. More windows issued than passed is inflation, and no later row can take it \
         back.",
    ),
    (
        "audit_exact",
        "The audit is what a person goes by after an incident. Rows overlap and replace each other, so a sum \
         that is not counted by window tells of money that is not there, or misses some that is.",
    ),
    (
        "leases_agree",
        "While nodes follow different holders there are two issuers, or none that all accept. The end of a \
         cut has to end that by itself.",
    ),
    (
        "spines_agree",
        "The spine is the ledger. Two ledgers that stay different after the network is whole need a person to \
         decide which one is true.",
    ),
    (
        "issuer_seals",
        "Windows that nobody seals are given up for good. Where a node could issue, one has to, within a \
         known time.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracles::RULES;

    #[test]
    fn every_oracle_has_its_reason_and_no_reason_is_left_over() {
        let without: Vec<_> = RULES.iter().map(|rule| rule.name).filter(|name| why(name).is_none()).collect();
        assert_eq!(without, [""; 0], "say in WHY what goes wrong without these rules");
        for (name, _) in WHY {
            assert!(RULES.iter().any(|rule| rule.name == *name), "{name} is no oracle");
        }
    }
}
