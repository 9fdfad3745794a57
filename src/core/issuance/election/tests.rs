//! Elections: each decision on its own, then all nodes of one random world together.

use alloc::string::ToString;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::issuance::spine::Lease;

const SILENCE: Duration = Duration::from_secs(47);

fn id(name: &str) -> NodeId {
    NodeId::new(name).unwrap()
}

fn ids<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<NodeId> {
    names.into_iter().map(id).collect()
}

fn fold(holder: Option<(&str, u64)>, tip: Option<u64>) -> Fold {
    let lease = holder.map(|(holder, epoch)| Lease { epoch: Epoch(epoch), holder: id(holder) });
    Fold { sealed_to: lease.as_ref().and(tip.map(Window)), lease, tip: tip.map(Window) }
}

/// What one node knows; [`World::elect`] is its decision. It begins as a takeover by b from a silent a.
struct World {
    me: NodeId,
    fold: Fold,
    field: BTreeSet<NodeId>,
    electorate: Electorate,
    answers: BTreeMap<NodeId, Answer>,
    failover: bool,
    is_issuer: bool,
    in_boot_grace: bool,
    silence: Duration,
    own: Fitness,
    consent: Consent,
    guards: Guards,
}

impl World {
    fn takeover() -> Self {
        let mut world = Self {
            me: id("b"),
            fold: fold(Some(("a", 4)), Some(100)),
            field: ids(["a", "b", "c"]),
            electorate: Electorate::new(BTreeSet::new()),
            answers: BTreeMap::new(),
            failover: true,
            is_issuer: false,
            in_boot_grace: false,
            silence: SILENCE + Duration::from_micros(1),
            own: Ok(()),
            consent: Consent::NotNeeded,
            guards: Guards::ON,
        };
        world.answers("c", |_| {});
        world
    }

    fn answers(&mut self, from: &str, change: impl FnOnce(&mut Answer)) {
        let mut answer = Answer {
            fit: true,
            tip: Some(Window(100)),
            epoch: Some(Epoch(4)),
            wall: WallTime::from_unix_ms(0),
            electorate: self.electorate.digest(),
        };
        change(&mut answer);
        self.answers.insert(id(from), answer);
    }

    fn elect(&self) -> Decision {
        let heard: Vec<&NodeId> = self.field.iter().collect();
        elect(&Ballot {
            failover: self.failover,
            me: &self.me,
            is_issuer: self.is_issuer,
            in_boot_grace: self.in_boot_grace,
            fold: &self.fold,
            silence: self.silence,
            silence_max: SILENCE,
            field: &Field::new(&self.me, heard, &self.electorate),
            own: self.own,
            answers: &self.answers,
            electorate: &self.electorate,
            consent: self.consent,
            guards: self.guards,
        })
    }
}

/// The decision's name after one change to the takeover.
fn after(change: impl FnOnce(&mut World)) -> alloc::string::String {
    let mut world = World::takeover();
    change(&mut world);
    world.elect().to_string()
}

#[test]
fn the_first_fit_candidate_takes_over_from_a_silent_holder() {
    assert_eq!(World::takeover().elect(), Decision::Promote { epoch: Epoch(5) });
}

#[test]
fn each_condition_that_fails_has_its_decision() {
    assert_eq!(after(|w| w.failover = false), "disabled");
    assert_eq!(after(|w| w.is_issuer = true), "is_holder");
    assert_eq!(after(|w| w.in_boot_grace = true), "boot_grace");
    assert_eq!(after(|w| w.fold = Fold::default()), "spine_empty_bootstrap_only");
    assert_eq!(after(|w| w.field.clear()), "field_of_one");
    assert_eq!(after(|w| w.silence = SILENCE), "tip_advancing");
    assert_eq!(after(|w| w.answers("a", |_| {})), "holder_reachable");
    assert_eq!(after(|w| w.answers("c", |c| c.tip = Some(Window(101)))), "spine_behind");
    assert_eq!(after(|w| w.answers("c", |c| c.epoch = Some(Epoch(5)))), "spine_behind");
    assert_eq!(after(|w| w.consent = Consent::Missing { granted: 1, needed: 2 }), "no_majority");
}

#[test]
fn each_condition_is_a_switch_of_its_own() {
    let off = |change: fn(&mut World), switch: fn(&mut Guards)| {
        after(|world| {
            change(world);
            switch(&mut world.guards);
        })
    };
    let promote = "promote";
    assert_eq!(off(|w| w.in_boot_grace = true, |g| g.election_boot_grace = false), promote);
    assert_eq!(off(|w| w.silence = SILENCE, |g| g.silence_before_election = false), promote);
    assert_eq!(off(|w| w.answers("a", |_| {}), |g| g.reachable_holder_stands = false), promote);
    assert_eq!(
        off(|w| w.answers("c", |c| c.tip = Some(Window(101))), |g| g.spine_behind_holds = false),
        promote
    );
    assert_eq!(off(|w| w.field.clear(), |g| g.field_of_one_holds = false), promote);
    assert_eq!(off(|w| w.own = Err(Unfit::DiskFails), |g| g.unfit_skipped = false), promote);
    assert_eq!(off(|w| w.answers("a", |a| a.fit = false), |g| g.unfit_replaced = false), "holder_reachable");
    let empty: fn(&mut World) = |w| {
        w.fold = Fold::default();
        w.answers.clear();
    };
    assert_eq!(off(empty, |g| g.empty_spine_elects_nobody = false), promote);
}

#[test]
fn a_holder_that_answers_but_cannot_seal_is_replaced() {
    assert_eq!(after(|w| w.answers("a", |a| a.fit = false)), "promote");
    // It is not its own successor, fit or not.
    assert_eq!(after(|w| w.me = id("c")), "promote");
}

#[test]
fn candidates_that_are_unfit_or_silent_are_passed_over() {
    let waits_for_c = "successor_is_c";
    for why in [Unfit::Paused, Unfit::DiskFails, Unfit::ClockAhead, Unfit::ClockBehindTip] {
        assert_eq!(after(|w| w.own = Err(why)), waits_for_c);
    }
    let mut nobody = World::takeover();
    nobody.own = Err(Unfit::DiskFails);
    nobody.answers("c", |c| c.fit = false);
    assert_eq!(nobody.elect(), Decision::NoFitCandidate { own: Some(Unfit::DiskFails) });
    nobody.answers.clear();
    assert_eq!(nobody.elect().to_string(), "no_fit_candidate");

    let mut third = World::takeover();
    third.me = id("c");
    third.answers.clear();
    third.answers("b", |_| {});
    assert_eq!(third.elect().to_string(), "successor_is_b");
    third.answers("b", |b| b.fit = false);
    assert_eq!(third.elect().to_string(), "promote");
    third.answers.clear();
    assert_eq!(third.elect().to_string(), "promote");
}

#[test]
fn who_is_not_eligible_is_not_chosen_but_its_word_counts() {
    let mut world = World::takeover();
    world.electorate = Electorate::new(ids(["a", "c", "d"]));
    world.answers("c", |_| {});
    assert_eq!(world.elect().to_string(), "successor_is_c");
    world.answers.clear();
    assert_eq!(world.elect(), Decision::NoFitCandidate { own: None }, "b is none itself");
    world.me = id("c");
    world.answers("b", |b| b.tip = Some(Window(101)));
    assert_eq!(world.elect().to_string(), "spine_behind");
}

#[test]
fn a_cluster_of_two_fails_over_because_the_dead_stay_in_the_field() {
    let mut world = World::takeover();
    world.field = ids(["a"]);
    world.answers.clear();
    assert_eq!(world.elect().to_string(), "promote");
}

#[test]
fn legacy_rows_are_taken_over_at_epoch_one() {
    let promotes = World { fold: fold(None, Some(100)), ..World::takeover() };
    assert_eq!(promotes.elect().to_string(), "spine_behind", "c knows of a lease");
    let mut promotes = promotes;
    // Without a holder nobody is excluded: a is a candidate like any other.
    promotes.answers("c", |c| c.epoch = None);
    assert_eq!(promotes.elect(), Decision::Promote { epoch: Epoch(1) });
    promotes.answers("a", |a| a.epoch = None);
    assert_eq!(promotes.elect().to_string(), "successor_is_a");
}

#[test]
fn a_fenced_promotion_takes_the_epoch_that_was_granted() {
    let decide = |consent| World { consent, ..World::takeover() }.elect();
    assert_eq!(decide(Consent::Granted(Epoch(9))), Decision::Promote { epoch: Epoch(9) });
    assert_eq!(decide(Consent::Granted(Epoch(5))), Decision::Promote { epoch: Epoch(5) });
    assert_eq!(decide(Consent::Granted(Epoch(4))).to_string(), "no_majority", "the spine has reached it");
    let missing = Consent::Missing { granted: 1, needed: 2 };
    let expected = Decision::NoMajority { epoch: Epoch(5), granted: 1, needed: 2 };
    assert_eq!(decide(missing), expected);
}

#[test]
fn another_electorate_is_no_answer_where_promises_count() {
    let mut world = World::takeover();
    world.answers("a", |a| a.electorate = ElectorateDigest(1));
    assert_eq!(world.elect().to_string(), "holder_reachable", "without a fence");
    world.consent = Consent::Granted(Epoch(5));
    assert_eq!(world.elect().to_string(), "promote");
    world.guards.electorate_compared = false;
    assert_eq!(world.elect().to_string(), "holder_reachable");
}

#[test]
fn equal_electorates_have_equal_digests() {
    let digest = |names: &[&str]| Electorate::new(ids(names.iter().copied())).digest();
    assert_eq!(digest(&["a", "b"]), digest(&["b", "a"]));
    assert_ne!(digest(&["a", "b"]), digest(&["ab"]));
    assert_ne!(digest(&["a"]), digest(&[]));
    assert_eq!(
        [1, 2, 3, 4, 5]
            .map(|n| Electorate::new(ids(["a", "b", "c", "d", "e"].into_iter().take(n))).majority()),
        [1, 2, 2, 3, 3]
    );
}

#[test]
fn a_round_keeps_the_answers_to_it_that_came_in_time() {
    let ms = |ms: u64| Instant::from_micros(ms * 1000);
    let timeout = Duration::from_millis(2000);
    let mut round = Round::begin(7, ms(1000), ids(["a", "c"]), timeout);
    let mut donor = World::takeover();
    donor.answers("c", |_| {});
    let answer = donor.answers[&id("c")];
    assert_eq!(round.outcome(ms(1000)), Outcome::Waiting(ms(3000)));
    assert!(!round.record(ms(1500), &id("c"), 6, answer), "of an earlier round");
    assert!(!round.record(ms(1500), &id("d"), 7, answer), "not asked");
    assert!(!round.record(ms(3001), &id("c"), 7, answer), "late");
    assert!(round.record(ms(1500), &id("c"), 7, answer));
    assert_eq!(round.outcome(ms(2999)), Outcome::Waiting(ms(3000)));
    assert!(matches!(round.outcome(ms(3000)), Outcome::Over(answers) if answers.len() == 1));
    assert_eq!(round.outcome(ms(5001)), Outcome::Void, "it slept: the silence of others is its own");
    assert!(round.record(ms(2000), &id("a"), 7, answer));
    assert!(matches!(round.outcome(ms(2000)), Outcome::Over(answers) if answers.len() == 2));
}

fn condition() -> Condition {
    Condition {
        is_holder: false,
        unsealed_for: SILENCE,
        silence_max: SILENCE,
        paused: false,
        disk_works: true,
        clock_ahead: false,
        window: Some(Window(10)),
        tip: Some(Window(10)),
    }
}

#[test]
fn a_holder_is_fit_by_what_it_did_others_by_what_they_could_do() {
    let ailing = Condition { paused: true, disk_works: false, window: None, ..condition() };
    assert_eq!(Condition { is_holder: true, ..ailing }.fitness(), Ok(()));
    let late = SILENCE + Duration::from_micros(1);
    assert_eq!(
        Condition { is_holder: true, unsealed_for: late, ..condition() }.fitness(),
        Err(Unfit::Stalled)
    );
    assert_eq!(Condition { unsealed_for: late, ..condition() }.fitness(), Ok(()));
    assert_eq!(Condition { paused: true, ..condition() }.fitness(), Err(Unfit::Paused));
    assert_eq!(Condition { disk_works: false, ..condition() }.fitness(), Err(Unfit::DiskFails));
    assert_eq!(Condition { clock_ahead: true, ..condition() }.fitness(), Err(Unfit::ClockAhead));
    let behind = Err(Unfit::ClockBehindTip);
    assert_eq!(Condition { window: Some(Window(9)), ..condition() }.fitness(), behind);
    assert_eq!(Condition { window: None, tip: None, ..condition() }.fitness(), behind);
    assert_eq!(Condition { tip: None, ..condition() }.fitness(), Ok(()));
}

#[test]
fn the_median_takes_three_clocks_and_ages_each() {
    let now = Instant::from_micros(10_000_000);
    let read = |ms: i64, ago_ms: u64| Now {
        instant: Instant::from_micros(10_000_000 - ago_ms * 1000),
        wall: WallTime::from_unix_ms(ms),
    };
    assert_eq!(median_wall(now, [read(5, 0), read(7, 0)]), None);
    let median = |readings: &[Now]| median_wall(now, readings.iter().copied()).unwrap().unix_ms();
    assert_eq!(median(&[read(90, 0), read(10, 0), read(50, 0)]), 50);
    assert_eq!(median(&[read(90, 0), read(10, 60), read(50, 0)]), 70);
    assert_eq!(median(&[read(90, 0), read(10, 0), read(50, 0), read(80, 0)]), 50, "the lower of two");

    let own = Now { instant: now, wall: WallTime::from_unix_ms(1000) };
    let ahead = |others: &[Now]| clock_ahead(own, others.iter().copied());
    assert_eq!(ahead(&[read(10, 0), read(50, 0)]), Duration::from_millis(950));
    assert_eq!(ahead(&[read(10, 0)]), Duration::ZERO, "two clocks say nothing");
    assert_eq!(ahead(&[read(1000, 0), read(5000, 0)]), Duration::ZERO);
}

/// One random world as all its nodes see it: the same spine, and each hears what the others say of themselves.
#[derive(Debug, Clone)]
struct Shared {
    fit: Vec<bool>,
    reachable: Vec<bool>,
    holder: Option<usize>,
    tips: Vec<u64>,
    silent: bool,
}

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

fn shared() -> impl Strategy<Value = Shared> {
    (1_usize..=6).prop_flat_map(|n| {
        let bools = || proptest::collection::vec(proptest::bool::weighted(0.6), n);
        let tips = proptest::collection::vec(prop_oneof![8 => Just(100_u64), 1 => 90_u64..=101], n);
        (bools(), bools(), proptest::option::of(0..n), tips, proptest::bool::weighted(0.9)).prop_map(
            |(fit, reachable, holder, tips, silent)| Shared { fit, reachable, holder, tips, silent },
        )
    })
}

impl Shared {
    fn seen_by(&self, me: usize) -> World {
        let mut world = World::takeover();
        let epoch = self.holder.map(|_| Epoch(4));
        world.me = id(NAMES[me]);
        world.fold = fold(self.holder.map(|holder| (NAMES[holder], 4)), Some(self.tips[me]));
        world.field = ids(NAMES.into_iter().take(self.fit.len()));
        world.answers.clear();
        for peer in (0..self.fit.len()).filter(|peer| *peer != me && self.reachable[*peer]) {
            world.answers(NAMES[peer], |answer| {
                answer.fit = self.fit[peer];
                answer.tip = Some(Window(self.tips[peer]));
                answer.epoch = epoch;
            });
        }
        world.is_issuer = self.holder == Some(me);
        world.own = if self.fit[me] { Ok(()) } else { Err(Unfit::DiskFails) };
        world.silence = if self.silent { World::takeover().silence } else { SILENCE };
        world
    }

    /// The rule in one sentence, told another way: who of the nodes that can be asked may promote itself.
    fn may_promote(&self, me: usize) -> bool {
        let others = (0..self.fit.len()).filter(|peer| *peer != me && self.reachable[*peer]);
        let holder_fit = self.holder.is_some_and(|holder| self.reachable[holder] && self.fit[holder]);
        self.silent
            && self.fit.len() > 1
            && self.holder != Some(me)
            && !holder_fit
            && self.fit[me]
            && others.clone().all(|peer| self.tips[peer] <= self.tips[me])
            && others.clone().all(|peer| peer > me || self.holder == Some(peer) || !self.fit[peer])
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_node_promotes_itself_exactly_when_every_condition_holds(world in shared()) {
        for (me, name) in NAMES.iter().enumerate().take(world.fit.len()) {
            let decision = world.seen_by(me).elect();
            let promotes = matches!(decision, Decision::Promote { .. });
            prop_assert_eq!(promotes, world.may_promote(me), "{} decides {}", name, decision);
        }
    }

    #[test]
    fn of_nodes_that_hear_each_other_at_most_one_promotes_and_the_others_name_it(world in shared()) {
        let up: Vec<usize> = (0..world.fit.len()).filter(|node| world.reachable[*node]).collect();
        let decisions: Vec<_> = up.iter().map(|node| (*node, world.seen_by(*node).elect())).collect();
        let promoted: Vec<_> =
            decisions.iter().filter(|(_, decision)| matches!(decision, Decision::Promote { .. })).collect();
        prop_assert!(promoted.len() <= 1, "{:?}", decisions);
        for (node, decision) in &decisions {
            if let (Decision::SuccessorIs { successor }, [(winner, _)]) = (decision, promoted.as_slice()) {
                prop_assert_eq!(successor.as_str(), NAMES[*winner], "to {}", NAMES[*node]);
            }
        }
    }

    #[test]
    fn nobody_is_replaced_while_rows_arrive(world in shared()) {
        for me in 0..world.fit.len() {
            let seen = World { silence: SILENCE, ..world.seen_by(me) };
            let decision = seen.elect();
            let replaces = matches!(decision, Decision::Promote { .. } | Decision::NoMajority { .. });
            prop_assert!(!replaces);
        }
    }
}
