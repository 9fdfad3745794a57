//! How two records of one member merge.
//!
//! Higher incarnation wins; at equal incarnation left beats alive; at equal status the greater address wins, only
//! to keep the merge commutative. Together: the greater (incarnation, status, address).
//!
//! Spec: docs/protocol.md, Membership merge.

use core::cmp::Ordering;

use crate::guards::Guards;
use crate::wire::message::{MemberRecord, RecordStatus};

/// Whether `new` replaces `present`.
pub(super) fn supersedes(new: &MemberRecord, present: &MemberRecord, guards: Guards) -> bool {
    let rank = |record: &MemberRecord| {
        let status = if guards.left_beats_alive { record.status } else { RecordStatus::Alive };
        (record.incarnation, status)
    };
    let addr = || if guards.address_breaks_ties { new.addr.cmp(&present.addr) } else { Ordering::Equal };
    rank(new).cmp(&rank(present)).then_with(addr).is_gt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Incarnation;
    use crate::wire::message::Addr;
    use proptest::prelude::*;

    fn record() -> impl Strategy<Value = MemberRecord> {
        (0..3u64, any::<bool>(), "[ab]{0,1}").prop_map(|(incarnation, left, addr)| MemberRecord {
            addr: Addr::new(&addr),
            incarnation: Incarnation(incarnation),
            status: if left { RecordStatus::Left } else { RecordStatus::Alive },
        })
    }

    fn merged(a: &MemberRecord, b: &MemberRecord) -> MemberRecord {
        if supersedes(b, a, Guards::ON) { b.clone() } else { a.clone() }
    }

    proptest! {
        #[test]
        fn merge_is_commutative_associative_idempotent(a in record(), b in record(), c in record()) {
            prop_assert_eq!(merged(&a, &b), merged(&b, &a));
            prop_assert_eq!(merged(&merged(&a, &b), &c), merged(&a, &merged(&b, &c)));
            prop_assert_eq!(merged(&a, &a), a);
        }

        #[test]
        fn a_higher_incarnation_wins_whatever_it_says(a in record(), b in record()) {
            prop_assume!(a.incarnation > b.incarnation);
            prop_assert_eq!(merged(&a, &b), a.clone());
        }
    }

    #[test]
    fn left_beats_alive_at_one_incarnation() {
        let alive =
            MemberRecord { addr: Addr::new("z"), incarnation: Incarnation(1), status: RecordStatus::Alive };
        let left = MemberRecord { addr: Addr::new("a"), status: RecordStatus::Left, ..alive.clone() };
        assert!(supersedes(&left, &alive, Guards::ON) && !supersedes(&alive, &left, Guards::ON));
    }
}
