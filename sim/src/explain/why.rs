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
        "What a node remembers about others must not depend on how many others there claim to be: one peer with a \
         bug would fill everybody's memory, and then everybody's frame.",
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
