//! One node under whatever holders of the secret may say.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::limits::REAP_NOTES_MAX;

fn arbitrary_message() -> impl Strategy<Value = Message> {
    let name = prop_oneof![Just("self"), Just("b"), Just("c"), Just("d")].prop_map(id);
    let incarnation = prop_oneof![0..4u64, BOOT - 1..BOOT + 3, Just(u64::MAX)].prop_map(Incarnation);
    let record = (incarnation.clone(), any::<bool>(), "(10\\.0\\.0\\.[1-3]:1)?").prop_map(
        |(incarnation, left, addr)| {
            let status = if left { RecordStatus::Left } else { RecordStatus::Alive };
            MemberRecord { addr: Addr::new(&addr), incarnation, status }
        },
    );
    let members = proptest::collection::btree_map(name.clone(), record, 0..4);
    let cells = proptest::collection::btree_map(
        (name, incarnation).prop_map(|(node, incarnation)| Cell { node, incarnation }),
        any::<u64>(),
        0..3,
    );
    let counters =
        proptest::collection::btree_map("[ab]".prop_map(|n| CounterName::new(&n).unwrap()), cells, 0..3);
    prop_oneof![
        1 => Just(Message::Leave {}),
        6 => (members, counters).prop_map(|(members, counters)| Message::StatePush {
            state: Arc::new(Document { members, counters })
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever holders of the secret say: nothing panics, tables keep their bounds, a counter never falls, our own
    /// record is ours, and whoever would bury us is outranked as soon as a refutation is allowed.
    #[test]
    fn arbitrary_signed_frames_break_nothing(
        frames in proptest::collection::vec(
            (prop_oneof![Just("self"), Just("b"), Just("c")], prop_oneof![0..4u64, BOOT..BOOT + 3], 0..9u64, arbitrary_message(), 0..3000u64),
            1..60,
        )
    ) {
        let mut rig = Rig::new();
        let mut totals: BTreeMap<CounterName, u64> = BTreeMap::new();
        let mut worst = Incarnation(0);
        for (sender, incarnation, seq, message, pause) in frames {
            rig.until(rig.now_ms + pause);
            let accepted = rig.frame(sender, incarnation, seq, message.clone()).is_none();
            if let (Message::StatePush { state }, true) = (&message, accepted) {
                let about_us = state.members.get(&id("self")).map_or(Incarnation(0), |record| record.incarnation);
                worst = worst.max(about_us);
            }
            for name in rig.node.document().counters.keys() {
                let total = rig.node.counter(name);
                let before = totals.insert(name.clone(), total).unwrap_or(0);
                prop_assert!(total >= before);
            }
            let sizes = rig.node.sizes();
            prop_assert!(sizes.members <= MEMBERS_MAX && sizes.watermarks <= WATERMARKS_MAX && sizes.reap_notes <= REAP_NOTES_MAX);
            prop_assert_eq!(rig.record_of("self").unwrap().incarnation, rig.node.incarnation());
        }
        rig.until(rig.now_ms + 10 * S + P);
        let own = rig.record_of("self").unwrap();
        prop_assert_eq!(own.status, RecordStatus::Alive);
        prop_assert!(own.incarnation >= worst || worst == Incarnation(u64::MAX), "{:?} < {:?}", own, worst);
    }

    /// Two nodes that have accepted the same documents hold the same document, whatever the order (below the bounds).
    #[test]
    fn merging_commutes_across_nodes(messages in proptest::collection::vec(arbitrary_message(), 1..6), turn in 0..6usize) {
        let about_others = |message: &Message| match message {
            Message::StatePush { state } => {
                let mut state = (**state).clone();
                state.members.remove(&id("self"));
                state.members.remove(&id("x"));
                Message::StatePush { state: Arc::new(state) }
            }
            Message::Leave {} => push_of(&[]),
        };
        let run = |order: &[Message]| {
            let mut rig = Rig::new();
            for message in order {
                rig.hear("x", 1, about_others(message));
            }
            rig.node.document().clone()
        };
        let mut turned = messages.clone();
        turned.rotate_left(turn % messages.len());
        prop_assert_eq!(run(&messages), run(&turned));
        let twice: Vec<_> = messages.iter().chain(&turned).cloned().collect();
        prop_assert_eq!(run(&messages), run(&twice));
    }
}
