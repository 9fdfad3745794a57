//! Every table stays within its bound. Counter cells are excepted: dropping one would make a counter fall.

use firedrill_core::limits::{
    COUNTERS_MAX, INBOUND_MAX, MEMBERS_MAX, REAP_NOTES_MAX, SEND_QUEUE_FRAMES, WATERMARKS_MAX,
};

use super::sight::{Sight, Subject};
use super::world::World;
use super::{Broken, Oracle, Rule};

/// Compares sizes with limits.
#[derive(Debug)]
pub(super) struct TablesBounded;

impl TablesBounded {
    pub(super) const fn new(_world: &World) -> Self {
        Self
    }
}

impl Oracle for TablesBounded {
    const RULE: Rule = Rule {
        name: "tables_bounded",
        invariant: "every table of a node and of its connections stays within its bound",
        source: "docs/protocol.md, Limits; decisions 7, 15 and 16",
        liveness: false,
    };

    fn after<S: Subject>(&mut self, sight: &Sight<'_, S>) -> Result<(), Box<Broken>> {
        let sizes = sight.look.node.sizes();
        let links = sight.look.links;
        let within = sizes.members <= MEMBERS_MAX
            && sizes.watermarks <= WATERMARKS_MAX
            && sizes.reap_notes <= REAP_NOTES_MAX
            && sizes.counters <= COUNTERS_MAX
            && links.inbound <= INBOUND_MAX
            && links.links <= MEMBERS_MAX + sight.host().facts.seeds.len()
            && links.queue_longest <= SEND_QUEUE_FRAMES;
        if within { Ok(()) } else { Err(overfull(sight)) }
    }
}

fn overfull<S: Subject>(sight: &Sight<'_, S>) -> Box<Broken> {
    let sizes = sight.look.node.sizes();
    let links = sight.look.links;
    let tables = [
        ("member records", sizes.members, MEMBERS_MAX),
        ("replay watermarks", sizes.watermarks, WATERMARKS_MAX),
        ("reap notes", sizes.reap_notes, REAP_NOTES_MAX),
        ("counter names", sizes.counters, COUNTERS_MAX),
        ("inbound connections", links.inbound, INBOUND_MAX),
        ("outbound links", links.links, MEMBERS_MAX + sight.host().facts.seeds.len()),
        ("frames in one send queue", links.queue_longest, SEND_QUEUE_FRAMES),
    ];
    let over = tables.into_iter().filter(|(_, size, limit)| size > limit);
    let (facts, limits): (Vec<String>, Vec<String>) =
        over.map(|(what, size, limit)| (format!("{size} {what}"), format!("{limit} {what}"))).unzip();
    Broken::new(
        vec![sight.name()],
        format!("{} holds {}", sight.name(), facts.join(" and ")),
        format!("at most {} are allowed", limits.join(" and ")),
    )
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use firedrill_core::endpoint::LinkSizes;
    use firedrill_core::node::TableSizes;

    #[test]
    fn each_table_above_its_bound_fires() {
        let sizes = |members, watermarks, reap_notes, counters| TableSizes {
            members,
            watermarks,
            reap_notes,
            counters,
        };
        for over in [sizes(513, 0, 0, 0), sizes(0, 1025, 0, 0), sizes(0, 0, 1025, 0), sizes(0, 0, 0, 65)] {
            let mut bench = Bench::new(&["a"]);
            bench.nodes[0].sizes = sizes(512, 1024, 1024, 64);
            bench.wake(0, 10).unwrap();
            bench.nodes[0].sizes = over;
            let broken = bench.wake(0, 11).unwrap_err();
            assert_eq!(broken.oracle, "tables_bounded", "{over:?}");
        }
    }

    #[test]
    fn each_connection_table_above_its_bound_fires() {
        // A host of the bench has one seed beside the members.
        let links = |inbound, links, queue_longest| LinkSizes { inbound, links, queue_longest };
        for over in [links(129, 0, 0), links(0, 514, 0), links(0, 0, 65)] {
            let mut bench = Bench::new(&["a"]);
            bench.links = links(128, 513, 64);
            bench.wake(0, 10).unwrap();
            bench.links = over;
            assert_eq!(bench.wake(0, 11).unwrap_err().oracle, "tables_bounded", "{over:?}");
        }
    }
}
