//! Streams, windows, the lease and pages: by hand, and for any rows in any order.

use alloc::vec;

use proptest::prelude::*;

use super::*;
use crate::issuance::support::{any_streams, lease, node, origin, row, stamped};

fn spine(rows: &[Stamped]) -> Spine {
    let (spine, unusable) = Spine::from_rows(node("a"), rows.to_vec());
    assert_eq!(unusable, []);
    spine
}

fn windows<'a>(entries: impl Iterator<Item = Entry<'a>>) -> Vec<(u64, String)> {
    entries.map(|entry| (entry.row.window.0, alloc::format!("{}#{}", entry.origin, entry.seq.0))).collect()
}

#[test]
fn a_row_ahead_of_its_turn_or_already_held_is_not_taken() {
    let rows = [1, 2, 3].map(|seq| stamped("b.1", seq, row(seq, seq + 1, 1, None)));
    let mut spine = Spine::new(node("a"));
    let taken = spine.take([rows[1].clone()]);
    assert_eq!((taken.rows.len(), taken.ahead, spine.fold().tip), (0, 1, None));
    let taken = spine.take([rows[0].clone(), rows[2].clone(), rows[1].clone(), rows[0].clone()]);
    assert_eq!(taken, Taken { rows: rows[..2].to_vec(), ahead: 1, held: 1, conflicting: 0 });
    assert_eq!(spine.get(&origin("b.1"), Seq(2)), Some(&rows[1].row));
    let absent = [("b.1", 0), ("b.1", 3), ("b.2", 1)];
    assert!(absent.iter().all(|(of, seq)| spine.get(&origin(of), Seq(*seq)).is_none()));
    assert_eq!((spine.cursor(&origin("b.1")), spine.cursor(&origin("b.2"))), (Seq(2), Seq(0)));
}

#[test]
fn a_number_used_twice_is_reported_and_changes_nothing() {
    let mut spine = spine(&[stamped("b.1", 1, row(1, 2, 1, None))]);
    let version = spine.version();
    let taken = spine.take([
        stamped("b.1", 1, row(1, 9, 1, lease(3, "b"))),
        stamped("b.1", 0, row(1, 9, 1, lease(3, "b"))),
    ]);
    assert_eq!(taken, Taken { conflicting: 2, ..Taken::default() });
    assert_eq!((spine.fold().lease.clone(), spine.version()), (None, version));
}

#[test]
fn a_received_row_counts_for_the_fold_at_once_and_is_shown_when_it_is_durable() {
    let mut spine = Spine::new(node("a"));
    spine.take([stamped("b.1", 1, row(1, 9, 1, lease(2, "b")))]);
    assert_eq!(spine.fold().lease, lease(2, "b"));
    assert_eq!(spine.fold().tip, Some(Window(9)));
    assert_eq!(spine.cursors(), BTreeMap::from([(origin("b.1"), Seq(1))]));
    assert!(
        spine.at(Window(9)).is_none() && spine.winners().next().is_none() && spine.durable().next().is_none()
    );
    assert!(spine.durable_cursors().is_empty() && spine.durable_tip().is_none());
    assert_eq!(spine.page((None, None), &BTreeMap::new(), 10_000), (vec![], false));
    let empty = spine.digest(Window(u64::MAX));

    assert_eq!(spine.persisted(&origin("b.1"), Seq(1)), 1);
    assert_eq!(windows(spine.winners()), [(9, "b.1#1".into())]);
    assert_eq!(spine.durable_cursors(), spine.cursors());
    assert_eq!((spine.durable_tip(), spine.durable_rows()), (Some(Window(9)), 1));
    assert_eq!(spine.page((None, None), &BTreeMap::new(), 10_000).0.len(), 1);
    assert_ne!(spine.digest(Window(u64::MAX)), empty);
}

#[test]
fn marks_neither_go_back_nor_beyond_what_is_known() {
    let mut spine = Spine::new(node("a"));
    spine.take([1, 2, 3].map(|seq| stamped("b.1", seq, row(seq, seq + 1, 1, None))));
    assert_eq!(spine.persisted(&origin("b.2"), Seq(1)), 0);
    assert_eq!(spine.persisted(&origin("b.1"), Seq(2)), 2);
    let version = spine.version();
    assert_eq!(spine.persisted(&origin("b.1"), Seq(1)), 0);
    assert_eq!(spine.version(), version);
    assert_eq!(spine.durable_cursors()[&origin("b.1")], Seq(2));
    assert_eq!(spine.persisted(&origin("b.1"), Seq(u64::MAX)), 1);
    assert_eq!((spine.durable_rows(), spine.known_rows()), (3, 3));
    assert!(spine.version() > version);
}

#[test]
fn the_loser_of_a_window_is_kept_replicated_and_not_counted() {
    let worse = stamped("a.1", 1, row(1, 9, 1, lease(0, "a")));
    let better = stamped("b.1", 1, row(1, 9, 2, lease(1, "b")));
    for rows in [[&worse, &better], [&better, &worse]] {
        let mut spine = Spine::new(node("c"));
        for stamped in rows {
            spine.take([stamped.clone()]);
            spine.persisted(&stamped.origin, stamped.seq);
        }
        assert_eq!(windows(spine.winners()), [(9, "b.1#1".into())]);
        assert_eq!(windows(spine.superseded()), [(9, "a.1#1".into())]);
        assert_eq!(spine.at(Window(9)).unwrap().to_stamped(), better);
        assert_eq!(spine.page((None, None), &BTreeMap::new(), 10_000).0, [worse.clone(), better.clone()]);
        assert_eq!(spine.durable_cursors().len(), 2);
        let lost: Vec<bool> = spine.durable().map(|entry| entry.superseded).collect();
        assert_eq!(lost, [true, false]);
    }
}

#[test]
fn between_equal_rows_the_one_of_the_lower_origin_wins() {
    let [one, other] = ["a.1", "b.1"].map(|origin| stamped(origin, 1, row(1, 9, 1, lease(0, "a"))));
    for rows in [[&one, &other], [&other, &one]] {
        let mut spine = Spine::new(node("c"));
        for stamped in rows {
            spine.take([stamped.clone()]);
            spine.persisted(&stamped.origin, stamped.seq);
        }
        assert_eq!(windows(spine.winners()), [(9, "a.1#1".into())]);
        assert_eq!(windows(spine.superseded()), [(9, "b.1#1".into())]);
    }
}

#[test]
fn without_the_merge_the_first_of_two_rows_stays() {
    let mut spine = Spine::new(node("c")).with_rules(Rules { merged: false, ..Rules::ON });
    for stamped in [stamped("a.1", 1, row(1, 9, 1, None)), stamped("b.1", 1, row(1, 9, 2, lease(1, "b")))] {
        spine.take([stamped.clone()]);
        spine.persisted(&stamped.origin, stamped.seq);
    }
    assert_eq!(windows(spine.winners()), [(9, "a.1#1".into())]);
}

#[test]
fn the_lowest_issuer_of_the_highest_epoch_holds_the_lease_whatever_it_sealed() {
    let rows = [
        stamped("a.1", 1, row(1, 50, 1, lease(0, "a"))),
        stamped("c.1", 1, row(1, 30, 1, lease(1, "c"))),
        stamped("b.1", 1, row(1, 20, 1, lease(1, "b"))),
        stamped("c.1", 2, row(30, 40, 1, lease(1, "c"))),
    ];
    let fold = spine(&rows).fold().clone();
    assert_eq!((fold.lease, fold.tip, fold.sealed_to), (lease(1, "b"), Some(Window(50)), Some(Window(20))));

    let mut other = Spine::new(node("a")).with_rules(Rules { lowest_holds: false, ..Rules::ON });
    other.recover(rows.to_vec());
    assert_eq!((other.fold().lease.clone(), other.fold().sealed_to), (lease(1, "c"), Some(Window(40))));
}

#[test]
fn legacy_rows_raise_the_tip_and_carry_no_lease() {
    let spine = spine(&[stamped("b.1", 1, row(1, 9, 1, None))]);
    assert_eq!(spine.fold(), &Fold { tip: Some(Window(9)), ..Fold::default() });
}

#[test]
fn the_own_tip_is_the_highest_window_of_all_boots_of_this_node() {
    let rows = [
        stamped("a.1", 1, row(1, 9, 1, None)),
        stamped("a.2", 1, row(1, 7, 1, None)),
        stamped("b.1", 1, row(1, 99, 1, None)),
    ];
    assert_eq!(spine(&rows).own_tip(), Some(Window(9)));
    assert_eq!(spine(&rows[2..]).own_tip(), None);
}

#[test]
fn what_lies_beyond_a_gap_on_disk_is_handed_back() {
    let at = |origin: &str, seq| stamped(origin, seq, row(seq, seq + 1, 1, None));
    let contradiction = stamped("b.1", 1, row(1, 9, 1, None));
    let rows =
        vec![at("b.1", 4), at("b.1", 1), at("a.1", 2), at("b.1", 2), contradiction.clone(), at("b.1", 2)];
    let (spine, unusable) = Spine::from_rows(node("a"), rows);
    assert_eq!(unusable, [at("a.1", 2), contradiction, at("b.1", 4)]);
    assert_eq!(spine.durable_cursors(), BTreeMap::from([(origin("b.1"), Seq(2))]));
}

#[test]
fn a_digest_is_the_hash_of_the_winning_lines_up_to_a_window() {
    let rows = [5, 7, 9].map(|window| row(window - 1, window, 1, lease(1, "b")));
    let lines = alloc::format!("{}\n{}\n", rows[0].to_text(), rows[1].to_text());
    let [first, second, third] = rows;
    let spine = spine(&[stamped("b.1", 1, second), stamped("b.1", 2, first), stamped("b.1", 3, third)]);
    assert_eq!(spine.digest(Window(8))[..], Sha256::digest(lines.as_bytes())[..]);
    assert_ne!(spine.digest(Window(9)), spine.digest(Window(8)));
}

#[test]
fn a_page_holds_one_row_however_small_it_has_to_be() {
    let rows = [1, 2, 3].map(|seq| stamped("b.1", seq, row(seq, seq + 1, 1, None)));
    let spine = spine(&rows);
    let one = rows[0].measure().escaped_bytes + 1;
    let none = BTreeMap::new();
    assert_eq!(spine.page((None, None), &none, 0), (rows[..1].to_vec(), true));
    assert_eq!(spine.page((None, None), &none, 2 * one - 1), (rows[..1].to_vec(), true));
    assert_eq!(spine.page((None, None), &none, 2 * one), (rows[..2].to_vec(), true));
    assert_eq!(spine.page((None, None), &none, 3 * one), (rows.to_vec(), false));
    let ahead = BTreeMap::from([(origin("b.1"), Seq(u64::MAX)), (origin("x.1"), Seq(4))]);
    assert_eq!(spine.page((None, None), &ahead, 10_000), (vec![], false));
}

#[test]
fn equal_rows_of_one_issuer_share_its_name() {
    let mut spine = Spine::new(node("a"));
    let taken = spine.take([
        stamped("b.1", 1, row(1, 2, 1, lease(0, "b"))),
        stamped("b.1", 2, row(2, 3, 1, lease(0, "b"))),
    ]);
    let names: Vec<*const u8> =
        taken.rows.iter().map(|s| s.row.issuer().unwrap().as_str().as_ptr()).collect();
    assert_eq!(names[0], names[1]);
    assert_eq!(names[0], taken.rows[0].origin.node.as_str().as_ptr());
}

/// Everything that must not depend on how rows arrived.
fn essence(spine: &Spine) -> impl PartialEq + core::fmt::Debug + use<> {
    (
        spine.fold().clone(),
        spine.own_tip(),
        spine.winners().map(Entry::to_stamped).collect::<Vec<_>>(),
        spine.superseded().map(Entry::to_stamped).collect::<Vec<_>>(),
        spine.durable_cursors(),
        spine.digest(Window(u64::MAX)),
    )
}

/// The winners and losers of `rows`, by the words of the rule.
fn by_rule(rows: &[Stamped]) -> (Vec<Stamped>, Vec<Stamped>) {
    let mut ranked = rows.to_vec();
    ranked.sort_by_key(|stamped| {
        let row = &stamped.row;
        let epoch = core::cmp::Reverse(row.epoch());
        (row.window, epoch, row.issuer().cloned(), row.to_text(), stamped.origin.clone(), stamped.seq)
    });
    let mut last = None;
    let (winners, mut losers): (Vec<_>, Vec<_>) =
        ranked.into_iter().partition(|stamped| last.replace(stamped.row.window) != Some(stamped.row.window));
    losers.sort_by_key(|stamped| (stamped.row.window, stamped.origin.clone(), stamped.seq));
    (winners, losers)
}

/// All rows of whole streams, in an order that has nothing to do with them.
fn shuffled() -> impl Strategy<Value = (Vec<Stamped>, Vec<Stamped>)> {
    any_streams().prop_flat_map(|rows| (Just(rows.clone()), Just(rows).prop_shuffle()))
}

proptest! {
    #[test]
    fn fold_and_merge_depend_on_the_rows_alone((rows, shuffled) in shuffled(), marks: u64) {
        let expected = spine(&rows);
        let mut other = Spine::new(node("a"));
        // Each pass takes at least one row of each stream, and some rows again.
        while other.known_rows() < rows.len() as u64 {
            for (at, stamped) in shuffled.iter().enumerate() {
                let before = other.cursor(&stamped.origin);
                other.take([stamped.clone(), stamped.clone()]);
                let after = other.cursor(&stamped.origin);
                prop_assert_eq!(after.0 > before.0, stamped.seq.0 == before.0 + 1, "cursors never skip");
                if marks >> (at % 64) & 1 == 1 {
                    other.persisted(&stamped.origin, stamped.seq);
                }
            }
        }
        for (origin, seq) in other.cursors() {
            other.persisted(&origin, seq);
        }
        prop_assert_eq!(essence(&other), essence(&expected));
    }

    #[test]
    fn winners_and_lease_are_those_of_the_rule(rows in any_streams()) {
        let spine = spine(&rows);
        let (winners, losers) = by_rule(&rows);
        prop_assert_eq!(spine.winners().map(Entry::to_stamped).collect::<Vec<_>>(), winners);
        prop_assert_eq!(spine.superseded().map(Entry::to_stamped).collect::<Vec<_>>(), losers);
        prop_assert_eq!(spine.durable().map(Entry::to_stamped).collect::<Vec<_>>(), rows.clone());

        let claims = rows.iter().filter_map(|stamped| stamped.row.lease.clone());
        let top = claims.clone().map(|lease| lease.epoch).max();
        let holder = claims.filter(|lease| Some(lease.epoch) == top).map(|lease| lease.holder).min();
        prop_assert_eq!(spine.fold().lease.as_ref().map(|lease| &lease.holder), holder.as_ref());
        prop_assert_eq!(spine.fold().lease.as_ref().map(|lease| lease.epoch), top);
        prop_assert_eq!(spine.fold().tip, rows.iter().map(|stamped| stamped.row.window).max());
    }

    #[test]
    fn a_page_of_a_page_continues_until_all_durable_rows_are_there(
        rows in any_streams(), unsynced in 0_u64..4, bytes_max in 0_usize..3_000,
    ) {
        let mut from = Spine::new(node("a"));
        from.take(rows.clone());
        for (origin, seq) in from.cursors() {
            from.persisted(&origin, Seq(seq.0.saturating_sub(unsynced)));
        }
        let mut to = Spine::new(node("b"));
        let mut all = Vec::new();
        loop {
            let (page, more) = from.page((None, None), &to.cursors(), bytes_max);
            prop_assert!(!page.is_empty() || !more);
            let bytes: usize = page.iter().map(|stamped| stamped.measure().escaped_bytes + 1).sum();
            prop_assert!(page.len() == 1 || bytes <= bytes_max);
            let taken = to.take(page.clone());
            prop_assert_eq!(taken, Taken { rows: page.clone(), ..Taken::default() });
            all.extend(page);
            if !more {
                break;
            }
        }
        prop_assert_eq!(to.cursors(), from.durable_cursors());
        prop_assert_eq!(all, from.durable().map(Entry::to_stamped).collect::<Vec<_>>());
    }
}
