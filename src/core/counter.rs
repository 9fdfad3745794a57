//! The cluster-wide counter: grow-only, one cell per node and boot, merged by maximum.
//!
//! A node writes its own present cell and no other, so no two writers share one and nothing is counted twice.
//! The value is the saturating sum of the cells: a lower bound of the truth that never falls within a boot.
//!
//! Absent: a decrement, and the removal of cells (the value would fall).
//!
//! Spec: docs/protocol.md, Counters; decisions 4 and 15.

use alloc::collections::BTreeMap;

use crate::id::{Cell, CounterName};
use crate::limits::COUNTERS_MAX;
use crate::replica::join;

/// All counters, cell by cell.
pub(crate) type Counters = BTreeMap<CounterName, BTreeMap<Cell, u64>>;

/// The value of a counter.
pub(crate) fn total(counters: &Counters, name: &CounterName) -> u64 {
    counters.get(name).map_or(0, |cells| cells.values().fold(0, |sum: u64, value| sum.saturating_add(*value)))
}

/// Whether a counter of this name may be written: it exists, or there is room for one more.
pub(crate) fn admits(counters: &Counters, name: &CounterName) -> bool {
    counters.len() < COUNTERS_MAX || counters.contains_key(name)
}

/// How two sets of counters compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Comparison {
    /// They hold something we do not.
    pub(crate) theirs_ahead: bool,
    /// We hold something they do not.
    pub(crate) ours_ahead: bool,
    /// New names of theirs that do not fit.
    pub(crate) refused: usize,
}

/// Compares without changing anything. With `bounded` off every new name fits.
pub(crate) fn compare(ours: &Counters, theirs: &Counters, bounded: bool) -> Comparison {
    let mut result = Comparison::default();
    let mut room = if bounded { COUNTERS_MAX.saturating_sub(ours.len()) } else { usize::MAX };
    join(ours, theirs, |_, our_cells, their_cells| match (our_cells, their_cells) {
        (Some(ours), Some(theirs)) => join(ours, theirs, |_, our, their| {
            result.ours_ahead |= our > their;
            result.theirs_ahead |= their > our;
        }),
        (None, Some(_)) if room == 0 => result.refused += 1,
        (None, Some(_)) => {
            room -= 1;
            result.theirs_ahead = true;
        }
        (Some(_), None) => result.ours_ahead = true,
        (None, None) => {}
    });
    result
}

/// Merges `theirs` in, cell by cell; `combine` is the maximum. New names that do not fit are left out.
pub(crate) fn merge(ours: &mut Counters, theirs: &Counters, bounded: bool, combine: fn(u64, u64) -> u64) {
    for (name, their_cells) in theirs {
        if bounded && !admits(ours, name) {
            continue;
        }
        let cells = ours.entry(name.clone()).or_default();
        for (cell, value) in their_cells {
            match cells.get_mut(cell) {
                Some(present) => *present = combine(*present, *value),
                None => {
                    cells.insert(cell.clone(), *value);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Incarnation, NodeId};
    use alloc::format;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn cell(node: u8, incarnation: u64) -> Cell {
        Cell { node: NodeId::new(&format!("n{node}")).unwrap(), incarnation: Incarnation(incarnation) }
    }

    fn counters() -> impl Strategy<Value = Counters> {
        let cells =
            proptest::collection::btree_map((0..3u8, 0..3u64).prop_map(|(n, i)| cell(n, i)), 0..5u64, 0..5);
        proptest::collection::btree_map(
            "[a-d]".prop_map(|name| CounterName::new(&name).unwrap()),
            cells,
            0..4,
        )
    }

    fn merged(a: &Counters, b: &Counters) -> Counters {
        let mut result = a.clone();
        merge(&mut result, b, true, u64::max);
        result
    }

    proptest! {
        #[test]
        fn merge_is_commutative_associative_idempotent(a in counters(), b in counters(), c in counters()) {
            prop_assert_eq!(merged(&a, &b), merged(&b, &a));
            prop_assert_eq!(merged(&merged(&a, &b), &c), merged(&a, &merged(&b, &c)));
            prop_assert_eq!(merged(&a, &a), a);
        }

        #[test]
        fn comparing_foretells_the_merge(a in counters(), b in counters()) {
            let comparison = compare(&a, &b, true);
            prop_assert_eq!(comparison.theirs_ahead, merged(&a, &b) != a);
            prop_assert_eq!(comparison.ours_ahead, merged(&a, &b) != b);
        }
    }

    #[test]
    fn the_sum_saturates() {
        let name = CounterName::new("c").unwrap();
        let cells = BTreeMap::from([(cell(1, 1), u64::MAX), (cell(2, 1), 9)]);
        assert_eq!(total(&Counters::from([(name.clone(), cells)]), &name), u64::MAX);
        assert_eq!(total(&Counters::new(), &name), 0);
    }

    #[test]
    fn names_beyond_the_bound_are_refused_and_counted() {
        let named = |range: core::ops::Range<usize>| -> Counters {
            range
                .map(|i| (CounterName::new(&format!("c{i:03}")).unwrap(), BTreeMap::from([(cell(1, 1), 1)])))
                .collect()
        };
        let mut ours = named(0..COUNTERS_MAX - 1);
        let theirs = named(COUNTERS_MAX - 1..COUNTERS_MAX + 2);
        assert_eq!(compare(&ours, &theirs, true).refused, 2);
        merge(&mut ours, &theirs, true, u64::max);
        assert_eq!(ours.len(), COUNTERS_MAX);
        let names: Vec<_> = theirs.keys().collect();
        assert!(admits(&ours, names[0]) && !admits(&ours, names[1]));
    }
}
