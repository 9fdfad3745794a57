//! The fence: each rule on its own. The claim itself is tried on whole clusters in `model`.

mod model;

use alloc::collections::BTreeSet;

use super::*;
use crate::issuance::election::Unfit;

const FENCE: Duration = Duration::from_secs(100);

pub(super) fn id(name: &str) -> NodeId {
    NodeId::new(name).unwrap()
}

pub(super) fn electorate(names: &[&str]) -> Electorate {
    Electorate::new(names.iter().map(|name| id(name)).collect::<BTreeSet<_>>())
}

fn abc() -> Electorate {
    electorate(&["a", "b", "c"])
}

fn secs(secs: u64) -> Instant {
    Instant::from_micros(secs * 1_000_000)
}

fn elector(stored: Option<u64>) -> Elector {
    Elector::new(id("c"), abc(), FENCE, stored.map(Epoch), secs(0), Guards::ON)
}

fn request(kind: Kind, epoch: u64) -> Request {
    Request { kind, round: 7, epoch: Epoch(epoch), electorate: abc().digest() }
}

fn grant(epoch: u64) -> Request {
    request(Kind::Grant, epoch)
}

fn renewal(epoch: u64) -> Request {
    request(Kind::Renewal, epoch)
}

fn verdict(handled: &Handled) -> Verdict {
    match handled {
        Handled::Answer(reply) => reply.verdict,
        Handled::Ignored | Handled::Store(_) | Handled::Waiting => panic!("no answer: {handled:?}"),
    }
}

const PROMISED: Verdict = Verdict::Promised;

#[test]
fn an_elector_promises_nothing_in_the_first_fence_after_its_start() {
    let mut c = elector(Some(5));
    assert_eq!(verdict(&c.handle(secs(99), &id("a"), &renewal(5))), Verdict::Starting);
    assert_eq!(c.promised(secs(99)), None);
    assert_eq!(verdict(&c.handle(secs(100), &id("a"), &renewal(5))), PROMISED);
}

#[test]
fn a_promise_binds_for_one_fence_and_to_one_node() {
    let mut c = elector(Some(5));
    assert_eq!(verdict(&c.handle(secs(100), &id("a"), &renewal(5))), PROMISED);
    assert_eq!(verdict(&c.handle(secs(150), &id("a"), &renewal(5))), PROMISED);
    assert_eq!(c.promised(secs(249)), Some((&id("a"), secs(250))));
    assert_eq!(verdict(&c.handle(secs(249), &id("b"), &grant(6))), Verdict::Bound);
    assert_eq!(c.handle(secs(250), &id("b"), &grant(6)), Handled::Store(Epoch(6)));
    assert_eq!(verdict(&c.handle(secs(251), &id("a"), &renewal(5))), Verdict::Bound);
}

#[test]
fn an_epoch_is_durable_before_it_is_promised() {
    let mut c = elector(None);
    assert_eq!(c.handle(secs(100), &id("a"), &grant(1)), Handled::Store(Epoch(1)));
    assert_eq!(c.handle(secs(101), &id("a"), &renewal(1)), Handled::Waiting);
    assert_eq!(c.stored(Epoch(0)), []);
    let released = c.stored(Epoch(1));
    assert_eq!(released.len(), 1, "the latest alone");
    assert_eq!((&released[0].0, released[0].1.verdict), (&id("a"), PROMISED));
    assert_eq!(verdict(&c.handle(secs(102), &id("a"), &renewal(1))), PROMISED);
}

#[test]
fn a_store_that_fails_answers_nobody_and_is_tried_again() {
    let mut c = elector(None);
    assert_eq!(c.handle(secs(100), &id("a"), &grant(1)), Handled::Store(Epoch(1)));
    c.store_failed();
    assert_eq!(c.stored(Epoch(0)), []);
    assert_eq!(verdict(&c.handle(secs(101), &id("b"), &grant(1))), Verdict::Bound, "the promise stands");
    assert_eq!(c.handle(secs(101), &id("a"), &grant(1)), Handled::Store(Epoch(1)));
    c.store_failed();
    assert_eq!(c.handle(secs(201), &id("b"), &grant(1)), Handled::Store(Epoch(1)));
    let released = c.stored(Epoch(1));
    assert_eq!(released.iter().map(|(to, _)| to.as_str()).collect::<Vec<_>>(), ["b"], "a was given up");
}

#[test]
fn epochs_do_not_regress_and_a_refusal_names_the_highest() {
    let mut c = elector(Some(5));
    let outdated = Verdict::Outdated { highest: Epoch(5) };
    assert_eq!(verdict(&c.handle(secs(100), &id("a"), &renewal(4))), outdated);
    assert_eq!(verdict(&c.handle(secs(100), &id("a"), &grant(5))), outdated);
    assert_eq!(c.promised(secs(100)), None, "a refusal promises nothing");
    assert_eq!(verdict(&c.handle(secs(100), &id("a"), &renewal(5))), PROMISED);
    assert_eq!(c.handle(secs(100), &id("a"), &grant(6)), Handled::Store(Epoch(6)));
}

#[test]
fn who_is_no_elector_or_has_another_electorate_is_ignored() {
    let mut c = elector(None);
    assert_eq!(c.handle(secs(100), &id("d"), &grant(1)), Handled::Ignored);
    let other = Request { electorate: electorate(&["a", "c", "d"]).digest(), ..grant(1) };
    assert_eq!(c.handle(secs(100), &id("a"), &other), Handled::Ignored);
    let mut d = Elector::new(id("d"), abc(), FENCE, None, secs(0), Guards::ON);
    assert_eq!(d.handle(secs(100), &id("a"), &grant(1)), Handled::Ignored);
}

fn claimant() -> Claimant {
    Claimant::new(abc(), FENCE, &Seed::from_u64(1), secs(0), Guards::ON)
}

fn reply(request: &Request, verdict: Verdict) -> Reply {
    Reply { round: request.round, electorate: request.electorate, verdict }
}

#[test]
fn a_hold_lasts_98_percent_of_a_fence_from_when_a_majority_was_asked() {
    let mut a = claimant();
    let asked = a.tick(secs(0), Intent::Claim(Epoch(3))).unwrap();
    assert_eq!((asked.kind, asked.epoch), (Kind::Grant, Epoch(3)));
    assert!(a.answered(secs(40), &id("a"), &reply(&asked, PROMISED)));
    assert_eq!(a.held(secs(40)), None);
    assert_eq!(a.consent(secs(40), Epoch(3)), Consent::Missing { granted: 1, needed: 2 });
    assert!(a.answered(secs(50), &id("c"), &reply(&asked, PROMISED)));
    assert_eq!(a.held(secs(50)), Some(Hold { epoch: Epoch(3), until: secs(98) }));
    assert_eq!(a.consent(secs(50), Epoch(3)), Consent::Granted(Epoch(3)));
    assert_eq!(a.consent(secs(50), Epoch(4)), Consent::Missing { granted: 0, needed: 2 });
    assert_eq!(a.held(Instant::from_micros(98_000_000 - 1)).map(|hold| hold.until), Some(secs(98)));
    assert_eq!(a.held(secs(98)), None);
}

#[test]
fn renewals_extend_a_hold_by_the_oldest_promise_that_its_majority_needs() {
    let mut a = claimant();
    let first = a.tick(secs(0), Intent::Hold(Epoch(3))).unwrap();
    assert_eq!((first.kind, first.epoch), (Kind::Renewal, Epoch(3)));
    for elector in ["a", "b", "c"] {
        a.answered(secs(1), &id(elector), &reply(&first, PROMISED));
    }
    assert_eq!(a.next_wake(secs(1), Intent::Hold(Epoch(3))), Some(secs(25)));
    assert_eq!(a.tick(secs(24), Intent::Hold(Epoch(3))), None);
    let second = a.tick(secs(25), Intent::Hold(Epoch(3))).unwrap();
    a.answered(secs(26), &id("a"), &reply(&second, PROMISED));
    assert_eq!(a.held(secs(26)).unwrap().until, secs(98));
    a.answered(secs(26), &id("b"), &reply(&second, PROMISED));
    assert_eq!(a.held(secs(26)).unwrap().until, secs(123));
    a.answered(secs(27), &id("b"), &reply(&first, PROMISED));
    assert_eq!(
        a.held(secs(27)).unwrap().until,
        secs(123),
        "a late answer to an older round takes nothing back"
    );
}

#[test]
fn without_a_majority_nothing_is_asked_until_the_promises_have_run_out() {
    let mut a = claimant();
    let intent = Intent::Claim(Epoch(1));
    for _ in 0..50 {
        let asked_at = a.next_wake(secs(0), intent).unwrap();
        let asked = a.tick(asked_at, intent).unwrap();
        a.answered(asked_at, &id("a"), &reply(&asked, PROMISED));
        a.answered(asked_at, &id("b"), &reply(&asked, Verdict::Bound));
        let pause = a.next_wake(asked_at, intent).unwrap().since(asked_at);
        assert!(pause >= FENCE && pause <= FENCE * 2, "{pause:?}");
    }
}

#[test]
fn while_a_majority_starts_there_is_nothing_to_wait_out() {
    let mut a = claimant();
    let intent = Intent::Hold(Epoch(0));
    let asked = a.tick(secs(0), intent).unwrap();
    a.answered(secs(0), &id("a"), &reply(&asked, Verdict::Starting));
    assert!(a.next_wake(secs(0), intent).unwrap() >= secs(100));
    a.answered(secs(0), &id("b"), &reply(&asked, Verdict::Starting));
    assert_eq!(a.next_wake(secs(0), intent), Some(secs(25)));
}

#[test]
fn a_refused_epoch_is_asked_again_one_above_at_once() {
    let mut a = claimant();
    let intent = Intent::Claim(Epoch(1));
    let asked = a.tick(secs(0), intent).unwrap();
    a.answered(secs(1), &id("b"), &reply(&asked, Verdict::Outdated { highest: Epoch(6) }));
    let again = a.tick(secs(1), intent).unwrap();
    assert_eq!((again.kind, again.epoch), (Kind::Grant, Epoch(7)));
    assert_eq!(a.tick(secs(2), intent), None);
    // Not for ever: an attempt has one more question for each elector.
    let mut asked = again;
    let mut times = 0;
    while times < 10 {
        let highest = asked.epoch;
        a.answered(secs(2), &id("b"), &reply(&asked, Verdict::Outdated { highest }));
        let Some(next) = a.tick(secs(2), intent) else { break };
        (asked, times) = (next, times + 1);
    }
    assert_eq!(times, 2);
}

#[test]
fn a_holder_refused_for_a_later_epoch_needs_one_itself_once_its_majority_is_lost() {
    let mut a = claimant();
    let intent = Intent::Hold(Epoch(3));
    let asked = a.tick(secs(0), intent).unwrap();
    a.answered(secs(0), &id("a"), &reply(&asked, PROMISED));
    a.answered(secs(0), &id("b"), &reply(&asked, PROMISED));
    a.answered(secs(0), &id("c"), &reply(&asked, Verdict::Outdated { highest: Epoch(4) }));
    assert_eq!(a.tick(secs(25), intent).map(|asked| asked.kind), Some(Kind::Renewal), "it holds still");
    let later = a.tick(secs(400), intent).unwrap();
    assert_eq!((later.kind, later.epoch), (Kind::Grant, Epoch(5)));
}

#[test]
fn replies_to_an_earlier_boot_or_from_strangers_count_for_nothing() {
    let mut before = claimant();
    let old = before.tick(secs(0), Intent::Hold(Epoch(3))).unwrap();
    let mut a = Claimant::new(abc(), FENCE, &Seed::from_u64(2), secs(10), Guards::ON);
    let asked = a.tick(secs(10), Intent::Hold(Epoch(3))).unwrap();
    assert!(!a.answered(secs(11), &id("b"), &reply(&old, PROMISED)));
    assert!(!a.answered(secs(11), &id("d"), &reply(&asked, PROMISED)));
    let other = Reply { electorate: electorate(&["a", "b", "d"]).digest(), ..reply(&asked, PROMISED) };
    assert!(!a.answered(secs(11), &id("b"), &other));
    assert!(a.answered(secs(11), &id("b"), &reply(&asked, PROMISED)));
}

#[test]
fn an_issuer_holds_a_successor_claims_and_who_cannot_seal_does_neither() {
    let missing = Decision::NoMajority { epoch: Epoch(5), granted: 0, needed: 2 };
    let intent = |role, able, decision| intent(role, able, decision, Guards::ON);
    let issuer = Role::Issuer(Some(Epoch(4)));
    assert_eq!(intent(issuer, Ok(()), None), Intent::Hold(Epoch(4)));
    assert_eq!(intent(Role::Replica, Ok(()), Some(&missing)), Intent::Claim(Epoch(5)));
    assert_eq!(intent(Role::Replica, Ok(()), Some(&Decision::BootGrace)), Intent::Nothing);
    assert_eq!(intent(Role::Replica, Ok(()), None), Intent::Nothing);
    assert_eq!(intent(Role::Issuer(None), Ok(()), None), Intent::Nothing);
    for why in [Unfit::DiskFails, Unfit::ClockBehindTip] {
        assert_eq!(intent(issuer, Err(why), None), Intent::Nothing);
        assert_eq!(intent(Role::Replica, Err(why), Some(&missing)), Intent::Nothing);
    }
    let off = Guards { unable_asks_nothing: false, ..Guards::ON };
    assert_eq!(super::intent(issuer, Err(Unfit::DiskFails), None, off), Intent::Hold(Epoch(4)));
    assert_eq!(claimant().tick(secs(0), Intent::Nothing), None);
}
