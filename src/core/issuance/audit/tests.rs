//! The figures of an audit: of the measured drill, by hand, and against counting window by window.

use alloc::vec;

use proptest::prelude::*;

use super::*;
use crate::id::Seq;
use crate::issuance::row::{Fields, Stamped};
use crate::issuance::support::{any_streams, decimal, lease, node, row, stamped};

/// The audit of rows that all count, as an external list has them.
fn audit(rows: &[Stamped]) -> Audit {
    Audit::of(entries(rows)).unwrap()
}

fn entries(rows: &[Stamped]) -> impl Iterator<Item = Entry<'_>> {
    rows.iter().map(|stamped| entry(stamped, false))
}

fn entry(stamped: &Stamped, superseded: bool) -> Entry<'_> {
    Entry { origin: &stamped.origin, seq: stamped.seq, row: &stamped.row, superseded }
}

/// A stream that seals again and again, `steps` windows at a time.
fn stream(origin: &str, from: u64, steps: &[u64], epoch: u64) -> Vec<Stamped> {
    let (mut tip, mut rows) = (from, Vec::new());
    for (seq, step) in (1..).zip(steps) {
        let issuer = origin.split('.').next().unwrap();
        rows.push(stamped(origin, seq, row(tip, tip + step, *step, lease(epoch, issuer))));
        tip += step;
    }
    rows
}

/// The measured drill: `drill-a` seals 45 rows up to window 2301676622 and is killed; `drill-b` knows the tip
/// 2301676606, takes over at 2301676684 and goes on to 2301676844; then the last rows of `drill-a` come in.
fn drill() -> (Vec<Stamped>, Vec<Stamped>) {
    let mut steps = vec![1];
    steps.extend([5; 7]);
    steps.extend([4; 37]);
    let a = stream("drill-a.1", 2_301_676_438, &steps, 0);
    assert_eq!((a.len(), a.last().unwrap().row.window), (45, Window(2_301_676_622)));
    assert!(a.iter().any(|stamped| stamped.row.window == Window(2_301_676_606)));
    let mut b = vec![stamped("drill-b.1", 1, row(2_301_676_606, 2_301_676_684, 8, lease(1, "drill-b")))];
    let later = stream("drill-b.1", 2_301_676_684, &[4; 40], 1);
    b.extend(later.into_iter().map(|stamped| Stamped { seq: Seq(stamped.seq.0 + 1), ..stamped }));
    (a, b)
}

#[test]
fn the_drill_adds_up() {
    let (a, b) = drill();
    let audit = audit(&[a, b].concat());
    let expected = Audit {
        rows: 86,
        distinct_keys: 86,
        elapsed_sum: 352,
        amount_sum: decimal("351.999999999648"),
        span: 406,
        // 78 - 8 by the takeover, of which the last 16 windows of drill-a were covered after all.
        forfeited: 70,
        under_issued: 54,
        supply: decimal("351.999999999648"),
        ..Audit::default()
    };
    assert_eq!(audit, expected);
}

#[test]
fn before_the_old_issuers_last_rows_arrive_all_of_its_gap_is_missing() {
    let (mut a, b) = drill();
    a.retain(|stamped| stamped.row.window <= Window(2_301_676_606));
    let audit = audit(&[a, b].concat());
    assert_eq!((audit.elapsed_sum, audit.forfeited, audit.under_issued, audit.span), (336, 70, 70, 406));
}

#[test]
fn nothing_adds_up_to_nothing() {
    assert_eq!(audit(&[]), Audit::default());
}

#[test]
fn windows_covered_twice_are_supplied_once_at_the_rate_of_the_lower_row() {
    let dear = |from: u64, window: u64, elapsed: u64| {
        Row::new(Fields { rate: decimal("2.5"), ..(*row(from, window, elapsed, None)).clone() }).unwrap()
    };
    let cheap = |from: u64, window: u64, elapsed: u64| {
        Row::new(Fields { rate: decimal("1"), ..(*row(from, window, elapsed, None)).clone() }).unwrap()
    };
    // 1..=10 at 1; 6..=15 at 2.5, of which 11..=15 are new; 4..=20 at 1, of which 16..=20 are new.
    let rows = [
        stamped("a.1", 1, cheap(0, 10, 10)),
        stamped("b.1", 1, dear(5, 15, 10)),
        stamped("c.1", 1, cheap(3, 20, 17)),
    ];
    let audit = audit(&rows);
    assert_eq!((audit.elapsed_sum, audit.span, audit.overlap, audit.under_issued), (37, 20, 12, 0));
    assert_eq!(audit.supply, decimal("27.5"));
    assert_eq!(audit.amount_sum, decimal("52"));
}

#[test]
fn a_watermark_below_the_lowest_row_belongs_to_the_span() {
    let rows = [stamped("a.1", 1, row(9, 10, 1, None)), stamped("b.1", 1, row(5, 12, 7, None))];
    let audit = audit(&rows);
    assert_eq!((audit.span, audit.overlap, audit.under_issued), (7, 1, 0));
}

#[test]
fn a_row_not_above_the_one_before_in_its_stream_is_below_the_tip() {
    let rows = [
        stamped("a.1", 1, row(0, 5, 1, None)),
        stamped("a.1", 2, row(0, 4, 1, None)),
        stamped("a.1", 3, row(4, 5, 1, None)),
        // Another boot may begin below: it lost what it had not synced.
        stamped("a.2", 1, row(2, 3, 1, None)),
    ];
    let audit = audit(&rows);
    assert_eq!((audit.rows_below_tip, audit.duplicates, audit.distinct_keys), (1, 1, 3));
}

#[test]
fn a_superseded_row_is_counted_as_such_and_in_its_stream_only() {
    let rows = [stamped("a.1", 1, row(0, 5, 5, None)), stamped("a.1", 2, row(0, 5, 1, None))];
    let audit = Audit::of([entry(&rows[0], false), entry(&rows[1], true)]).unwrap();
    assert_eq!((audit.rows, audit.superseded, audit.rows_below_tip, audit.duplicates), (1, 1, 1, 0));
    assert_eq!((audit.elapsed_sum, audit.overlap), (5, 0));
}

#[test]
fn a_sum_beyond_its_range_is_an_error() {
    let huge = stamped("a.1", 1, row(0, u64::MAX, u64::MAX, None));
    assert_eq!(audit(core::slice::from_ref(&huge)).span, u64::MAX);
    let error = Audit::of(entries(&[huge.clone(), stamped("a.1", 2, row(0, 1, 1, None))])).unwrap_err();
    assert_eq!(error, AuditError { figure: "elapsed_sum" });

    let wide = |seq| stamped("a.1", seq, row(0, u64::MAX, 1, None));
    assert_eq!(Audit::of(entries(&[wide(1), wide(2)])), Err(AuditError { figure: "forfeited" }));

    let rate = Decimal::MAX;
    let dear = |window| Row::new(Fields { rate, ..(*row(window - 1, window, 1, None)).clone() }).unwrap();
    let rows = [stamped("a.1", 1, dear(1)), stamped("a.1", 2, dear(2))];
    assert_eq!(Audit::of(entries(&rows)), Err(AuditError { figure: "amount_sum" }));
}

/// The figures of windows, window by window.
fn counted_by_window(rows: &[Stamped]) -> (u64, u64, Decimal) {
    let (mut covered, mut overlap, mut supply) = (0, 0, Decimal::ZERO);
    for window in 0..64 {
        let covering = || rows.iter().filter(|stamped| stamped.row.covers().contains(&window));
        let Some(lowest) = covering().map(|stamped| (stamped.row.window, stamped.row.rate)).min() else {
            continue;
        };
        covered += 1;
        overlap += u64::from(covering().count() > 1);
        supply = supply.checked_add(lowest.1).unwrap();
    }
    (covered, overlap, supply)
}

proptest! {
    #[test]
    fn the_sweep_agrees_with_counting_window_by_window(rows in any_streams()) {
        let audit = audit(&rows);
        let (covered, overlap, supply) = counted_by_window(&rows);
        prop_assert_eq!((audit.span - audit.under_issued, audit.overlap, audit.supply), (covered, overlap, supply));
    }

    #[test]
    fn supply_never_exceeds_the_span_at_the_highest_rate(rows in any_streams()) {
        let audit = audit(&rows);
        let rate = rows.iter().map(|stamped| stamped.row.rate).max().unwrap_or(Decimal::ZERO);
        prop_assert!(audit.supply <= rate.checked_mul(audit.span).unwrap());
        prop_assert!(audit.supply <= audit.amount_sum);
    }

    #[test]
    fn a_spines_audit_counts_each_key_once(rows in any_streams()) {
        let total = rows.len() as u64;
        let (spine, _) = crate::issuance::spine::Spine::from_rows(node("a"), rows);
        let audit = Audit::of(spine.durable()).unwrap();
        prop_assert_eq!((audit.duplicates, audit.rows + audit.superseded), (0, total));
        prop_assert_eq!(audit.rows, spine.winners().count() as u64);
        prop_assert_eq!(audit.superseded, spine.superseded().count() as u64);
    }
}
