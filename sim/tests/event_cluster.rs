//! The event engine runs the cluster node: boots, faults and their effects, and the same run from the same seed.

mod event_common;

use std::net::SocketAddr;
use std::time::Duration;

use event_common::{A, B, C, Drill, both_ways, busy, hosts, net};
use firedrill_core::id::NodeId;
use firedrill_core::io::{Event, ResetReason};
use firedrill_core::rng::Seed;
use firedrill_sim::engine::event::{EventEngine, EventOptions};
use firedrill_sim::engine::{Engine, Fault, HostState};

fn fast(count: usize, seed: u64) -> Drill<impl Engine> {
    let options = EventOptions { keep_frames: true, ..EventOptions::default() };
    Drill::new(EventEngine::fast(&hosts(count), net(), Seed::from_u64(seed), options))
}

#[test]
fn three_nodes_find_each_other_and_agree_on_a_count() {
    let mut drill = fast(3, 1);
    drill.until_s(2);
    assert_eq!(drill.views(3), [3, 3, 3]);
    assert_eq!(drill.increment(A), Some(1));
    assert_eq!(drill.increment(B), Some(1));
    drill.until_s(4);
    assert_eq!([A, B, C].map(|host| drill.counter(host)), [2, 2, 2]);
    let stats = drill.engine.stats();
    assert!(stats.frames_delivered > 20 && stats.frames_lost == 0 && stats.bytes_sent > 5000, "{stats:?}");
}

#[test]
fn power_loss_is_silent_and_a_graceful_stop_says_goodbye() {
    let mut drill = fast(3, 1);
    drill.until_s(3);
    let stop = drill.apply(Fault::Stop(C));
    assert_eq!(drill.engine.state(C), HostState::Down);
    drill.until_s(4);
    assert_eq!(drill.happened(A, |event| matches!(event, Event::MemberLeft { .. })), 1);
    let kill = drill.apply(Fault::Kill(B));
    drill.until_s(10);
    assert_eq!(drill.happened(A, |event| matches!(event, Event::MemberDown { .. })), 1);
    assert_eq!(drill.seen.ended, [(2, 0, true), (1, 0, false)]);
    let start = drill.apply(Fault::Start { host: B, wall_step_us: None, addr: None, lose_disk: false });
    let again = drill.apply(Fault::Kill(C));
    drill.until_s(15);
    assert_eq!(drill.in_view(A), 2);
    assert!([stop, kill, start].iter().all(|fault| drill.engine.had_effect(*fault)));
    assert!(!drill.engine.had_effect(again), "it was down already");
}

#[test]
fn a_host_that_moves_is_found_at_its_new_address() {
    let mut drill = fast(3, 1);
    drill.until_s(3);
    let moved = SocketAddr::from(([10, 0, 1, 2], 7946));
    drill.apply(Fault::Start {
        host: B,
        wall_step_us: Some(-3_600_000_000),
        addr: Some(moved),
        lose_disk: false,
    });
    assert_eq!(drill.seen.ended, [(1, 0, false)], "an up host loses power first");
    drill.until_s(60);
    assert_eq!(drill.views(3), [3, 3, 3]);
    let [first, second] =
        [0, 1].map(|boot| drill.seen.boots.iter().find(|seen| (seen.0, seen.1) == (1, boot)));
    assert_eq!(second.unwrap().2.0, first.unwrap().2.0 + 3000 - 3_600_000, "an hour back");
}

#[test]
fn a_partition_parts_views_and_opens_whole_however_many_blocks_there_were() {
    let mut drill = fast(3, 1);
    drill.until_s(3);
    let outer = drill.apply(Fault::Block([both_ways(A, C), both_ways(B, C)].concat()));
    let inner = drill.apply(Fault::Block(vec![(A, C)]));
    drill.increment(C);
    drill.until_s(10);
    assert_eq!(drill.views(3), [2, 2, 1]);
    drill.apply(Fault::Unblock([both_ways(A, C), both_ways(B, C)].concat()));
    let idle = drill.apply(Fault::Unblock(vec![(A, C)]));
    drill.until_s(20);
    assert_eq!(drill.views(3), [3, 3, 3]);
    assert_eq!(drill.counter(A), 1);
    assert!(drill.engine.had_effect(outer) && drill.engine.had_effect(inner));
    assert!(!drill.engine.had_effect(idle));
}

#[test]
fn a_paused_node_departs_when_it_resumes() {
    let mut drill = fast(2, 1);
    drill.until_s(3);
    let pause = drill.apply(Fault::Pause(B));
    drill.until_s(5);
    assert_eq!((drill.engine.state(B), drill.increment(B)), (HostState::Paused, None));
    drill.apply(Fault::Stop(B));
    drill.until_s(6);
    assert_eq!(drill.engine.state(B), HostState::Paused);
    drill.apply(Fault::Resume(B));
    drill.until_s(7);
    assert_eq!(drill.engine.state(B), HostState::Down);
    assert_eq!(drill.seen.ended, [(1, 0, true)]);
    assert!(drill.engine.had_effect(pause));
}

#[test]
fn a_replayed_frame_is_rejected_and_frames_are_kept_by_pair_and_span() {
    let mut drill = fast(3, 1);
    drill.until_s(5);
    let span = |from, to| (Duration::from_secs(from), Duration::from_secs(to));
    let replay = drill.apply(Fault::Replay { from: B, to: A, captured: span(1, 3), count: 2 });
    let never = drill.apply(Fault::Replay { from: B, to: A, captured: span(7, 9), count: 2 });
    drill.until_s(6);
    assert_eq!(drill.happened(A, |event| matches!(event, Event::Rejected { .. })), 2);
    assert!(drill.engine.had_effect(replay) && !drill.engine.had_effect(never));
}

#[test]
fn faults_of_bytes_have_no_effect_on_values() {
    let mut drill = fast(2, 1);
    let sender = NodeId::new("n00").unwrap();
    let faults = [
        drill.apply(Fault::Corrupt(both_ways(A, B), 1_000_000)),
        drill.apply(Fault::Forge { sender, to: B, count: 3 }),
        drill.apply(Fault::HalfOpen(vec![(A, B)])),
    ];
    drill.until_s(5);
    assert_eq!(drill.views(2), [2, 2]);
    assert!(faults.iter().all(|fault| !drill.engine.had_effect(*fault)));
}

#[test]
fn the_same_seed_gives_the_same_digest_twice_and_on_two_threads_at_once() {
    let first = busy(fast(4, 7));
    assert_eq!(first, busy(fast(4, 7)));
    let threads = [7, 7, 8].map(|seed| std::thread::spawn(move || busy(fast(4, seed))));
    let [same, again, other] = threads.map(|thread| thread.join().unwrap());
    assert_eq!(first, same);
    assert_eq!(first, again);
    assert_ne!(first.0, other.0);
    assert!(first.1.len() > 500);
    let last = u128::from(first.1.last().unwrap().bits());
    assert_eq!(
        last >> 6,
        (first.0 & u128::from(u64::MAX)) >> 6,
        "the last mark is the digest, but for the host"
    );
}

#[test]
fn what_is_sent_to_an_advertised_address_that_nobody_binds_goes_nowhere() {
    let mut cluster = hosts(2);
    cluster[0].config.seed_peers.clear();
    cluster[1].config.advertise_addr = Some(SocketAddr::from(([10, 0, 0, 200], 7946)));
    let mut fast = Drill::new(EventEngine::fast(&cluster, net(), Seed::from_u64(1), EventOptions::default()));
    let mut full = Drill::new(EventEngine::full(&cluster, net(), Seed::from_u64(1), EventOptions::default()));
    fast.until_s(10);
    full.until_s(10);
    assert_eq!((fast.views(2), full.views(2)), (vec![2, 1], vec![2, 1]), "b is seen and sees nobody");
    assert!(fast.engine.stats().frames_lost > 10, "lost");
    let timeout = |event: &Event| matches!(event, Event::LinkReset { reason: ResetReason::DialTimeout, .. });
    assert!(full.happened(A, timeout) > 2, "silence, not refusal");
    let addr = Some(SocketAddr::from(([10, 0, 0, 9], 7946)));
    fast.apply(Fault::Start { host: B, wall_step_us: None, addr, lose_disk: false });
    fast.until_s(60);
    assert_eq!(fast.views(2), [2, 2], "a host that moves advertises where it moved to");
}
