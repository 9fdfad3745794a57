//! A run of the turmoil engine is a function of its seed and its tick.

mod turmoil_support;

use std::collections::BTreeMap;

use firedrill_sim::digest::Mark;
use firedrill_sim::engine::{Engine, Fault, Flow};
use firedrill_sim::scenario::model::{FloodKind, HostIx, LinkSpec};
use turmoil_support::{A, B, C, Drill, both_ways, net};

/// Every kind of fault, in thirty seconds.
fn busy(seed: u64, tick_ms: u64) -> (u128, Vec<Mark>) {
    let mut drill = Drill::with(4, seed, tick_ms, |_| {});
    let lossy = LinkSpec { loss_ppm: 100_000, duplicate_ppm: 50_000, reorder_ppm: 50_000, ..net() };
    let all: Vec<_> = (0..4).flat_map(|from| (0..4).map(move |to| (HostIx(from), HostIx(to)))).collect();
    let mut script: BTreeMap<u64, Vec<Fault>> = BTreeMap::new();
    let mut at = |second, fault| script.entry(second).or_default().push(fault);
    at(2, Fault::Link(all, lossy));
    at(3, Fault::Flood { to: C, connections: 20, garbage: FloodKind::Garbage });
    at(4, Fault::Block(both_ways(A, B)));
    at(5, Fault::HalfOpen(both_ways(A, C)));
    at(6, Fault::Hold(vec![(B, C)]));
    at(7, Fault::Corrupt(both_ways(B, C), 100_000));
    at(8, Fault::ClockRate { host: C, rate_ppm: 1_200_000 });
    at(9, Fault::Pause(A));
    at(12, Fault::Kill(B));
    at(13, Fault::Resume(A));
    at(14, Fault::Start { host: B, wall_step_us: Some(-5_000_000), addr: None, lose_disk: false });
    at(16, Fault::Release(vec![(B, C)]));
    at(18, Fault::Unblock(both_ways(A, B)));
    at(20, Fault::Stop(C));
    for second in 1..30 {
        drill.until_ms(second * 1000);
        for fault in script.remove(&second).into_iter().flatten() {
            drill.apply(fault);
        }
        drill.increment(HostIx(usize::try_from(second).unwrap_or(0) % 4));
    }
    drill.until_ms(30_000);
    assert!(drill.seen.in_order, "steps are shown in order of time");
    (drill.seen.digest.finish(), drill.seen.digest.trail().to_vec())
}

#[test]
fn the_same_seed_gives_the_same_digest_twice_and_on_two_threads_at_once() {
    let first = busy(7, 1);
    assert_eq!(first, busy(7, 1));
    let threads = [7, 7, 8].map(|seed| std::thread::spawn(move || busy(seed, 1)));
    let [same, again, other] = threads.map(|thread| thread.join().expect("the run passes"));
    assert_eq!(first, same);
    assert_eq!(first, again);
    assert_ne!(first.0, other.0);
    assert!(first.1.len() > 500);
}

#[test]
fn a_longer_tick_is_another_run_that_also_repeats() {
    let coarse = busy(7, 10);
    assert_eq!(coarse, busy(7, 10));
    assert_ne!(coarse.0, busy(7, 1).0);
}

#[test]
fn a_watch_that_says_stop_sees_the_rest_of_the_tick_later() {
    let mut drill = Drill::new(2, 1);
    drill.seen.flow = Flow::Stop;
    for boots in 1..=2 {
        assert_eq!(drill.until_ms(1), Flow::Stop);
        assert_eq!((drill.engine.now().as_micros(), drill.seen.boots.len()), (1000, boots));
    }
    assert_eq!(drill.until_ms(1), Flow::Continue);
}

#[test]
fn nothing_is_told_after_a_fault_that_it_preceded() {
    let mut drill = Drill::new(2, 1);
    drill.seen.flow = Flow::Stop;
    drill.until_ms(1);
    assert_eq!(drill.seen.boots.len(), 1);
    drill.apply(Fault::Kill(A));
    assert_eq!((drill.seen.boots.len(), drill.seen.ended.len()), (2, 1));
}
