//! The decision table row by row, then what holds for every view.

use alloc::format;
use alloc::string::String;

use proptest::prelude::*;

use super::*;

fn id(name: &str) -> NodeId {
    NodeId::new(name).unwrap()
}

fn fold(lease: Option<(&str, u64)>, tip: Option<u64>) -> Fold {
    let lease = lease.map(|(holder, epoch)| Lease { epoch: Epoch(epoch), holder: id(holder) });
    Fold { sealed_to: lease.as_ref().and(tip.map(Window)), lease, tip: tip.map(Window) }
}

/// What node b sees; it begins as a holder at epoch 3 whose next window has come. The configured issuer is a.
struct View {
    me: &'static str,
    fold: Fold,
    own_tip: Option<u64>,
    change: fn(&mut SealView<'_>),
}

impl View {
    fn holder() -> Self {
        Self { me: "b", fold: fold(Some(("b", 3)), Some(100)), own_tip: Some(100), change: |_| {} }
    }

    fn with<T>(&self, ask: impl FnOnce(&SealView<'_>) -> T) -> T {
        let (me, configured) = (id(self.me), id("a"));
        let mut view = SealView {
            me: &me,
            configured: &configured,
            failover: true,
            fold: &self.fold,
            own_tip: self.own_tip.map(Window),
            promoted: None,
            issued_at: None,
            window: Some(Window(101)),
            caught_up: true,
            clock_ahead: Duration::ZERO,
            clock_ahead_max: Duration::from_secs(47),
            in_flight: false,
            paused: false,
            fence_held: true,
            guards: Guards::ON,
        };
        (self.change)(&mut view);
        ask(&view)
    }

    fn decision(&self) -> String {
        self.with(|view| match decide(view) {
            SealDecision::Never => "never".into(),
            SealDecision::Demote { holder, epoch } => format!("demote to {holder} at {epoch}"),
            SealDecision::Hold(hold) => format!("{hold}"),
            SealDecision::Seal(lease) => {
                assert_eq!((lease.issuer(), Some(lease.window())), (view.me, view.window));
                let Span { from_window, elapsed, .. } = lease.span(8);
                match lease.epoch() {
                    Some(epoch) => format!("seal at {epoch} from {from_window}, {elapsed}"),
                    None => format!("seal from {from_window}, {elapsed}"),
                }
            }
        })
    }
}

fn decision(change: fn(&mut SealView<'_>)) -> String {
    View { change, ..View::holder() }.decision()
}

#[test]
fn a_holder_seals_at_the_epoch_of_its_lease() {
    assert_eq!(View::holder().decision(), "seal at 3 from 100, 1");
}

#[test]
fn a_replica_never_seals() {
    assert_eq!(View { me: "c", ..View::holder() }.decision(), "never");
    assert_eq!(
        View { me: "a", ..View::holder() }.decision(),
        "never",
        "configured, but the lease is elsewhere"
    );
    assert_eq!(View { fold: fold(None, Some(100)), ..View::holder() }.decision(), "never");
}

#[test]
fn a_winner_seals_with_its_promoted_epoch() {
    let change: fn(&mut SealView<'_>) = |view| view.promoted = Some(Epoch(4));
    assert_eq!(View { me: "c", change, ..View::holder() }.decision(), "seal at 4 from 100, 1");
    assert_eq!(
        View { me: "c", change, fold: fold(None, Some(100)), ..View::holder() }.decision(),
        "seal at 4 from 100, 1"
    );
    assert_eq!(decision(change), "seal at 4 from 100, 1", "a holder that needed a later epoch");
}

#[test]
fn the_configured_issuer_adopts_a_spine_without_lease_at_epoch_zero() {
    let adopts = View { me: "a", fold: fold(None, Some(100)), own_tip: None, ..View::holder() };
    assert_eq!(adopts.decision(), "seal at 0 from 100, 1");
    assert_eq!(
        View { fold: Fold::default(), ..adopts }.decision(),
        "seal at 0 from 100, 1",
        "and begins an empty one"
    );
}

#[test]
fn whoever_issued_or_was_promoted_stands_down_for_a_lease_at_its_epoch_or_above() {
    let elsewhere = |epoch| fold(Some(("d", epoch)), Some(100));
    let promoted: fn(&mut SealView<'_>) = |view| view.promoted = Some(Epoch(4));
    let issued: fn(&mut SealView<'_>) = |view| view.issued_at = Some(Epoch(3));
    for change in [promoted, issued] {
        let view = View { me: "c", change, fold: elsewhere(4), ..View::holder() };
        assert_eq!(view.decision(), "demote to d at 4");
        assert_eq!(View { fold: elsewhere(5), ..view }.decision(), "demote to d at 5");
    }
    let view = View { me: "c", change: promoted, fold: elsewhere(3), ..View::holder() };
    assert_eq!(view.decision(), "seal at 4 from 100, 1");
    let stubborn: fn(&mut SealView<'_>) = |view| {
        view.issued_at = Some(Epoch(3));
        view.guards.demotion = false;
    };
    assert_eq!(
        View { me: "c", change: stubborn, fold: elsewhere(5), ..View::holder() }.decision(),
        "seal at 3 from 100, 1"
    );
}

#[test]
fn an_issuer_holds_for_one_reason_at_a_time() {
    assert_eq!(decision(|view| view.paused = true), "paused");
    assert_eq!(decision(|view| view.caught_up = false), "catching_up");
    assert_eq!(decision(|view| view.window = None), "before_genesis");
    assert_eq!(decision(|view| view.window = Some(Window(100))), "not_past_tip");
    assert_eq!(decision(|view| view.window = Some(Window(99))), "not_past_tip");
    assert_eq!(decision(|view| view.clock_ahead = Duration::from_secs(48)), "clock_ahead");
    assert_eq!(decision(|view| view.clock_ahead = Duration::from_secs(47)), "seal at 3 from 100, 1");
    assert_eq!(decision(|view| view.in_flight = true), "in_flight");
    assert_eq!(decision(|view| view.fence_held = false), "fence_not_held");
}

#[test]
fn each_rule_of_sealing_is_a_switch_of_its_own() {
    let seals = "seal at 3 from 100, 1";
    assert_eq!(decision(|v| (v.caught_up, v.guards.seal_after_catch_up) = (false, false)), seals);
    assert_eq!(decision(|v| (v.clock_ahead, v.guards.clock_checked) = (Duration::MAX, false)), seals);
    assert_eq!(decision(|v| (v.in_flight, v.guards.one_seal_in_flight) = (true, false)), seals);
    assert_eq!(decision(|v| (v.fence_held, v.guards.fence_before_seal) = (false, false)), seals);
    let fresh = View {
        fold: fold(Some(("b", 3)), Some(200)),
        change: |view| view.guards.resume_from_shared_tip = false,
        ..View::holder()
    };
    assert_eq!(fresh.decision(), seals, "below the shared tip");
}

#[test]
fn sealing_resumes_from_the_higher_of_both_tips() {
    let behind = View { fold: fold(Some(("b", 3)), Some(90)), own_tip: Some(97), ..View::holder() };
    assert_eq!(behind.decision(), "seal at 3 from 97, 4");
    let fresh = View { fold: fold(Some(("b", 3)), Some(97)), own_tip: None, ..View::holder() };
    assert_eq!(fresh.decision(), "seal at 3 from 97, 4");
}

#[test]
fn the_takeover_of_the_drill_covers_eight_windows_and_forfeits_seventy() {
    let span = compose(Window(2_301_676_684), Some(Window(2_301_676_606)), 8);
    assert_eq!((span.from_window, span.elapsed), (Window(2_301_676_606), 8));
    assert_eq!(span.window.since(span.from_window) - span.elapsed, 70);
    assert_eq!(compose(Window(2_301_676_684), Some(Window(2_301_676_606)), 100).elapsed, 78);
}

#[test]
fn the_first_row_of_all_covers_its_own_window() {
    assert_eq!(
        compose(Window(50), None, 8),
        Span { window: Window(50), from_window: Window(49), elapsed: 1 }
    );
    let empty = |change| View { me: "a", fold: Fold::default(), own_tip: None, change };
    assert_eq!(empty(|view| view.window = Some(Window(1))).decision(), "seal at 0 from 0, 1");
    assert_eq!(
        empty(|view| view.window = Some(Window(0))).decision(),
        "not_past_tip",
        "there is no window below 0"
    );
}

#[test]
fn on_the_plain_path_the_configured_issuer_alone_seals_by_its_own_ledger() {
    let plain: fn(&mut SealView<'_>) = |view| view.failover = false;
    let other = View { change: plain, ..View::holder() };
    assert_eq!(other.decision(), "never", "not even the holder of a lease");
    let issuer = View { me: "a", own_tip: Some(98), change: plain, ..View::holder() };
    assert_eq!(issuer.decision(), "seal from 98, 3", "whatever others sealed");
    assert_eq!(View { own_tip: None, ..issuer }.decision(), "seal from 100, 1");
}

#[test]
fn a_permission_becomes_a_row_that_carries_the_lease() {
    let rate: Decimal = "0.999999999999".parse().unwrap();
    let row = |view: &View, phase| {
        view.with(|view| match decide(view) {
            SealDecision::Seal(lease) => lease.row(8, rate, phase, true),
            other @ (SealDecision::Never | SealDecision::Demote { .. } | SealDecision::Hold(_)) => {
                panic!("{other:?}")
            }
        })
    };
    let takeover = View { fold: fold(Some(("b", 3)), Some(23)), own_tip: None, ..View::holder() };
    let sealed = row(&takeover, Decimal::ZERO).unwrap();
    assert_eq!((sealed.window, sealed.from_window, sealed.elapsed), (Window(101), Window(23), 8));
    assert_eq!(sealed.amount(), "7.999999999992".parse().unwrap());
    assert_eq!(sealed.lease, Some(Lease { epoch: Epoch(3), holder: id("b") }));
    let plain = View { me: "a", change: |view| view.failover = false, ..View::holder() };
    assert_eq!(row(&plain, Decimal::ZERO).unwrap().lease, None);
    assert_eq!(row(&plain, Decimal::ONE), Err(RowError::Phase(Decimal::ONE)));
}

#[test]
fn a_tip_far_ahead_of_the_clock_is_told_with_the_wait() {
    let wait = |tip, z| tip_ahead_of_clock(Window(tip), Z(z), 2, Z(60));
    assert_eq!(wait(100, 202), None, "the next window has come");
    assert_eq!(wait(100, 142), None, "60 ticks to wait are no more than the silence");
    assert_eq!(wait(100, 141), Some(Z(61)));
    assert_eq!(tip_ahead_of_clock(Window(u64::MAX), Z(0), 1, Z(60)), Some(Z(u64::MAX)));
}

prop_compose! {
    fn any_view()(
        me in proptest::sample::select(alloc::vec!["a", "b", "c"]),
        lease in proptest::option::of((proptest::sample::select(alloc::vec!["a", "b", "c"]), 0_u64..4)),
        tip in proptest::option::of(0_u64..20),
        own_tip in proptest::option::of(0_u64..20),
    ) -> (&'static str, Fold, Option<u64>) {
        // A lease comes with rows.
        let tip = if lease.is_some() { tip.or(Some(7)) } else { tip };
        (me, fold(lease, tip), own_tip)
    }
}

proptest! {
    #[test]
    fn a_seal_is_past_every_tip_and_never_issues_more_than_the_gap(
        (me, fold, own_tip) in any_view(),
        window in 0_u64..25,
        elapsed_max in 1_u64..30,
        promoted in proptest::option::of(0_u64..5),
    ) {
        let (me, configured) = (id(me), id("a"));
        let tip = fold.tip;
        View::holder().with(|view| {
            let view = SealView {
                me: &me,
                configured: &configured,
                fold: &fold,
                own_tip: own_tip.map(Window),
                window: Some(Window(window)),
                promoted: promoted.map(Epoch),
                ..*view
            };
            if let SealDecision::Seal(lease) = decide(&view) {
                let span = lease.span(elapsed_max);
                assert!(Some(span.window) > tip && Some(span.window) > view.own_tip);
                assert!(span.elapsed >= 1 && span.elapsed <= elapsed_max);
                assert!(span.elapsed <= span.window.since(span.from_window));
                assert!(Some(span.from_window) >= tip.max(view.own_tip));
                // Nobody seals below the lease, nor at it but its holder.
                let lower = fold.lease.as_ref().is_none_or(|held| {
                    lease.epoch() > Some(held.epoch) || (held.holder == me && lease.epoch() == Some(held.epoch))
                });
                assert!(lower, "{fold:?} sealed at {:?}", lease.epoch());
            }
        });
    }

    #[test]
    fn two_nodes_that_see_one_spine_and_won_nothing_are_not_both_issuers((_, fold, _) in any_view()) {
        let issuers = ["a", "b", "c"]
            .into_iter()
            .filter(|me| View { me, fold: fold.clone(), ..View::holder() }.with(role).is_issuer());
        prop_assert!(issuers.count() <= 1);
    }
}
