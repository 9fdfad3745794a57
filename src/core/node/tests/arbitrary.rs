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

/// What a crowd does next: so many new members, counters or senders, or so many half suspicion timeouts of silence.
#[derive(Debug, Clone, Copy)]
enum Crowd {
    Members(usize, RecordStatus),
    Counters(usize),
    Senders(usize),
    Silence(u64),
}

fn crowd() -> impl Strategy<Value = Crowd> {
    let status = prop_oneof![Just(RecordStatus::Alive), Just(RecordStatus::Left)];
    prop_oneof![
        4 => (1..2 * MEMBERS_MAX, status).prop_map(|(count, status)| Crowd::Members(count, status)),
        1 => (1..2 * COUNTERS_MAX).prop_map(Crowd::Counters),
        2 => (1..2 * WATERMARKS_MAX).prop_map(Crowd::Senders),
        3 => (1..50u64).prop_map(Crowd::Silence),
    ]
}

/// Names that no crowd had before.
fn newcomers(met: &mut usize, count: usize) -> impl Iterator<Item = String> + use<> {
    let from = *met;
    *met += count;
    (from..from + count).map(|n| format!("n{n:05}"))
}

fn press(rig: &mut Rig, met: &mut usize, crowd: Crowd) {
    let state = match crowd {
        Crowd::Members(count, status) => {
            let record = |name: String| (id(&name), record("10.0.0.3:1", 1, status));
            Document { members: newcomers(met, count).map(record).collect(), counters: BTreeMap::new() }
        }
        Crowd::Counters(count) => {
            let cells = BTreeMap::from([(Cell { node: id("b"), incarnation: Incarnation(5) }, 1)]);
            let counter = |name: String| (CounterName::new(&name).unwrap(), cells.clone());
            Document { members: BTreeMap::new(), counters: newcomers(met, count).map(counter).collect() }
        }
        Crowd::Senders(count) => {
            newcomers(met, count).for_each(|name| {
                rig.hear(&name, 1, Message::Leave {});
            });
            return;
        }
        Crowd::Silence(halves) => return rig.until(rig.now_ms + halves * S / 2),
    };
    rig.hear("b", 5, Message::StatePush { state: Arc::new(state) });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// More members, senders and counters than there is room for, waves of them leaving and being reaped: every table
    /// keeps its bound. Each run comes to those of members, watermarks and counters for certain. The notes come close
    /// to theirs and no further, since nobody's place among the members is reaped three times while a note lasts.
    #[test]
    fn crowds_exceed_no_bound(crowds in proptest::collection::vec(crowd(), 1..16)) {
        let (mut rig, mut met, mut notes) = (Rig::new(), 0, 0);
        rig.hear_b(5);
        let wave = [Crowd::Members(2 * MEMBERS_MAX, RecordStatus::Left), Crowd::Silence(22)];
        let waves = [wave, wave].into_iter().flatten();
        let rest = [Crowd::Counters(2 * COUNTERS_MAX), Crowd::Senders(2 * WATERMARKS_MAX)];
        for crowd in waves.chain(rest).chain(crowds) {
            press(&mut rig, &mut met, crowd);
            let sizes = rig.node.sizes();
            prop_assert!(sizes.members <= MEMBERS_MAX, "{:?}", sizes);
            prop_assert!(sizes.watermarks <= WATERMARKS_MAX, "{:?}", sizes);
            prop_assert!(sizes.reap_notes <= REAP_NOTES_MAX, "{:?}", sizes);
            prop_assert!(sizes.counters <= COUNTERS_MAX, "{:?}", sizes);
            notes = notes.max(sizes.reap_notes);
        }
        prop_assert!(notes > REAP_NOTES_MAX * 9 / 10, "{} notes at most", notes);
        let refused = &rig.node.metrics().admissions_refused;
        for table in [Table::Members, Table::Counters, Table::Watermarks] {
            prop_assert!(refused[table as usize] > 0, "no crowd came to the bound of {:?}", table);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever holders of the secret say: nothing panics, a counter never falls, our own record is ours,
    /// and whoever would bury us is outranked as soon as a refutation is allowed.
    #[test]
    fn arbitrary_signed_frames_break_nothing(
        frames in proptest::collection::vec(
            (prop_oneof![Just("self"), Just("b"), Just("c")], prop_oneof![0..4u64, BOOT..BOOT + 3], 0..9u64, arbitrary_message(), 0..3000u64),
            1..60,
        )
    ) {
        let mut rig = Rig::new();
        let mut totals: BTreeMap<CounterName, u64> = BTreeMap::new();
        // The highest incarnation that others gave a record of ours which was no echo of it.
        let mut worst = Incarnation(0);
        for (sender, incarnation, seq, message, pause) in frames {
            rig.until(rig.now_ms + pause);
            let ours = rig.record_of("self").cloned();
            let accepted = rig.frame(sender, incarnation, seq, message.clone()).is_none();
            if let (Message::StatePush { state }, true) = (&message, accepted) {
                let claim = state.members.get(&id("self")).filter(|claim| ours.as_ref() != Some(*claim));
                worst = claim.map_or(worst, |claim| worst.max(claim.incarnation));
            }
            for name in rig.node.document().counters.keys() {
                let total = rig.node.counter(name);
                let before = totals.insert(name.clone(), total).unwrap_or(0);
                prop_assert!(total >= before);
            }
            prop_assert_eq!(rig.record_of("self").unwrap().incarnation, rig.node.incarnation());
        }
        rig.until(rig.now_ms + 10 * S + P);
        let own = rig.record_of("self").unwrap();
        prop_assert_eq!(own.status, RecordStatus::Alive);
        prop_assert!(own.incarnation > worst || worst == Incarnation(u64::MAX), "{:?} <= {:?}", own, worst);
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
            Message::Leave {}
            | Message::Pull(_)
            | Message::Page(_)
            | Message::Probe(_)
            | Message::Standing(_)
            | Message::Claim(_)
            | Message::Vote(_) => push_of(&[]),
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
