//! Rows for the tests of this room.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::decimal::Decimal;
use super::row::{Fields, Lease, Origin, Row, Stamped};
use super::window::{Epoch, Window};
use crate::id::{Incarnation, NodeId, Seq};

pub(super) fn node(name: &str) -> NodeId {
    NodeId::new(name).unwrap()
}

pub(super) fn decimal(text: &str) -> Decimal {
    text.parse().unwrap()
}

pub(super) fn lease(epoch: u64, holder: &str) -> Option<Lease> {
    Some(Lease { epoch: Epoch(epoch), holder: node(holder) })
}

/// A row of the usual rate.
pub(super) fn row(from_window: u64, window: u64, elapsed: u64, lease: Option<Lease>) -> Row {
    Row::new(Fields {
        window: Window(window),
        from_window: Window(from_window),
        elapsed,
        rate: decimal("0.999999999999"),
        phase: decimal("0.5"),
        genesis_pegged: true,
        lease,
    })
    .unwrap()
}

pub(super) fn origin(text: &str) -> Origin {
    text.parse().unwrap()
}

pub(super) fn stamped(at: &str, seq: u64, row: Row) -> Stamped {
    Stamped { origin: origin(at), seq: Seq(seq), row: Arc::new(row) }
}

/// Any sound row of a window below 50: so few that rows meet in windows, claims and even whole.
pub(super) fn any_row() -> impl Strategy<Value = Row> {
    let lease = prop::option::weighted(0.8, (0_u64..3, "[abc]"));
    let rate = prop::sample::select(alloc::vec!["0.999999999999", "1", "2.5"]);
    let phase = prop::sample::select(alloc::vec!["0", "0.5", "0.999999999999"]);
    (1_u64..50, any::<prop::sample::Index>(), any::<prop::sample::Index>(), rate, phase, lease).prop_map(
        |(window, gap, elapsed, rate, phase, claim)| {
            let gap = gap.index(usize::try_from(window.min(12)).unwrap()) + 1;
            Row::new(Fields {
                window: Window(window),
                from_window: Window(window - gap as u64),
                elapsed: elapsed.index(gap) as u64 + 1,
                rate: decimal(rate),
                phase: decimal(phase),
                genesis_pegged: true,
                lease: claim.and_then(|(epoch, holder)| self::lease(epoch, &holder)),
            })
            .unwrap()
        },
    )
}

/// Whole streams of up to four origins, stream by stream.
pub(super) fn any_streams() -> impl Strategy<Value = Vec<Stamped>> {
    let origin =
        ("[ab]", 1_u64..3).prop_map(|(name, boot)| Origin { node: node(&name), boot: Incarnation(boot) });
    prop::collection::btree_map(origin, prop::collection::vec(any_row(), 0..12), 0..4).prop_map(stamp)
}

fn stamp(streams: BTreeMap<Origin, Vec<Row>>) -> Vec<Stamped> {
    let mut all = Vec::new();
    for (origin, rows) in streams {
        for (seq, row) in (1..).zip(rows) {
            all.push(Stamped { origin: origin.clone(), seq: Seq(seq), row: Arc::new(row) });
        }
    }
    all
}
