//! The event engine in full mode: connections, kernels and strangers around the real endpoint.

mod event_common;

use std::time::Duration;

use event_common::{A, B, C, Drill, both_ways, busy, hosts, net};
use firedrill_core::id::NodeId;
use firedrill_core::io::{CloseReason, Event, ResetReason};
use firedrill_core::limits::INBOUND_MAX;
use firedrill_core::rng::Seed;
use firedrill_core::time::Instant;
use firedrill_core::wire::Reject;
use firedrill_sim::engine::event::{EventEngine, EventOptions};
use firedrill_sim::engine::{Engine, Fault};
use firedrill_sim::scenario::model::{FloodKind, LinkSpec};

fn full(count: usize, seed: u64) -> Drill<impl Engine> {
    let options = EventOptions { keep_frames: true, ..EventOptions::default() };
    Drill::new(EventEngine::full(&hosts(count), net(), Seed::from_u64(seed), options))
}

fn rejected(reason: Reject) -> impl Fn(&Event) -> bool {
    move |event| matches!(event, Event::Rejected { reason: seen, .. } if *seen == reason)
}

fn closed(reason: CloseReason) -> impl Fn(&Event) -> bool {
    move |event| matches!(event, Event::InboundClosed { reason: seen, .. } if *seen == reason)
}

fn reset(reason: ResetReason) -> impl Fn(&Event) -> bool {
    move |event| matches!(event, Event::LinkReset { reason: seen, .. } if *seen == reason)
}

#[test]
fn three_nodes_agree_over_real_bytes() {
    let mut drill = full(3, 1);
    drill.until_s(2);
    assert_eq!(drill.views(3), [3, 3, 3]);
    drill.increment(A);
    drill.increment(B);
    drill.until_s(4);
    assert_eq!([A, B, C].map(|host| drill.counter(host)), [2, 2, 2]);
    drill.until_s(600);
    assert_eq!(drill.seen.inbound_most, 2, "one connection a peer, for ten minutes");
    assert_eq!(drill.happened(A, |event| matches!(event, Event::LinkReset { .. })), 0);
    let stats = drill.engine.stats();
    assert_eq!(stats.frames_lost, 0);
    assert!(stats.frames_delivered > 3 * 2 * 1100, "acknowledgements keep the window open: {stats:?}");
}

#[test]
fn power_loss_is_silent_and_the_next_boot_resets_old_connections() {
    let mut drill = full(3, 1);
    drill.until_s(3);
    drill.apply(Fault::Kill(B));
    drill.until_s(5);
    assert_eq!(drill.happened(A, |event| matches!(event, Event::MemberDown { .. })), 0, "peers see nothing");
    drill.apply(Fault::Start { host: B, wall_step_us: None, addr: None, lose_disk: false });
    drill.until_s(8);
    assert_eq!(drill.views(3), [3, 3, 3]);
    drill.until_s(20);
    assert_eq!(drill.views(3), [3, 3, 3]);
}

#[test]
fn a_graceful_stop_is_heard_and_closes_its_connections() {
    let mut drill = full(3, 1);
    drill.until_s(3);
    let stop = drill.apply(Fault::Stop(C));
    drill.until_s(4);
    assert_eq!(drill.seen.ended, [(2, 0, true)]);
    assert_eq!(drill.views(2), [2, 2]);
    for host in [A, B] {
        assert_eq!(drill.happened(host, |event| matches!(event, Event::MemberLeft { .. })), 1);
    }
    assert!(drill.engine.had_effect(stop));
}

#[test]
fn a_partition_heals_over_new_or_old_connections() {
    let mut drill = full(3, 1);
    drill.until_s(3);
    let apart = [both_ways(A, C), both_ways(B, C)].concat();
    drill.apply(Fault::Block(apart.clone()));
    drill.increment(C);
    drill.until_s(20);
    assert_eq!(drill.views(3), [2, 2, 1]);
    assert!(
        drill.happened(A, reset(ResetReason::DialTimeout)) > 0,
        "the kernel gave up first, then dials fail"
    );
    drill.apply(Fault::Unblock(apart));
    drill.until_s(26);
    assert_eq!(drill.views(3), [3, 3, 3]);
    assert_eq!(drill.counter(A), 1);
}

#[test]
fn half_open_breaks_by_the_user_timeout_one_way_and_both_ways() {
    let mut drill = full(2, 1);
    drill.until_s(3);
    let one_way = drill.apply(Fault::HalfOpen(vec![(A, B)]));
    drill.until_s(8);
    assert_eq!(drill.happened(A, |event| matches!(event, Event::LinkReset { .. })), 0, "the kernel broke it");
    assert_eq!(drill.views(2), [2, 2], "a hears b all the time, and b hears a again within seconds");
    let both = drill.apply(Fault::HalfOpen(both_ways(A, B)));
    drill.until_s(14);
    assert_eq!(drill.views(2), [2, 2]);
    assert!(drill.engine.had_effect(one_way) && drill.engine.had_effect(both));
    let before = drill.engine.stats().frames_lost;
    drill.until_s(60);
    assert_eq!(drill.engine.stats().frames_lost, before, "new connections carry again");
}

#[test]
fn a_dial_lost_in_a_cut_is_sent_again_after_a_second() {
    let mut drill = full(2, 1);
    drill.apply(Fault::Block(vec![(B, A)]));
    drill.engine.run_until(Instant::from_micros(900_000), &mut drill.seen);
    drill.apply(Fault::Unblock(vec![(B, A)]));
    drill.engine.run_until(Instant::from_micros(1_900_000), &mut drill.seen);
    assert_eq!(drill.views(2), [2, 2], "of a's dial the answer was lost, of b's the dial itself");
    assert_eq!(drill.seen.inbound_most, 1);
}

#[test]
fn loss_breaks_no_connection_however_seldom_a_frame_is_sent() {
    let lossy = LinkSpec { loss_ppm: 300_000, ..net() };
    for push_interval_ms in [500, 10_000] {
        let mut cluster = hosts(2);
        for host in &mut cluster {
            host.config.push_interval_ms = push_interval_ms;
            host.config.suspicion_timeout_ms = 60_000;
        }
        let engine = EventEngine::full(&cluster, lossy, Seed::from_u64(1), EventOptions::default());
        let mut drill = Drill::new(engine);
        drill.until_s(600);
        assert!(drill.engine.stats().frames_lost > 20);
        let dropped = |host| drill.engine.metrics(host).map(|metrics| metrics.frames_dropped);
        assert_eq!(
            [A, B].map(dropped),
            [Some(0), Some(0)],
            "a broken connection drops the frame that finds out"
        );
    }
}

#[test]
fn strangers_cannot_keep_members_apart() {
    let mut drill = full(2, 1);
    drill.until_s(3);
    let floods = [FloodKind::Silent, FloodKind::Garbage, FloodKind::Oversize, FloodKind::HalfFrame]
        .map(|garbage| drill.apply(Fault::Flood { to: A, connections: 200, garbage }));
    drill.until_s(30);
    assert_eq!(drill.seen.inbound_most, INBOUND_MAX);
    assert!(drill.happened(A, closed(CloseReason::Displaced)) > 100);
    assert!(drill.happened(A, closed(CloseReason::Idle)) > 50, "the silent ones that were left");
    assert_eq!(drill.happened(A, |event| matches!(event, Event::MemberDown { .. })), 0);
    assert_eq!(drill.views(2), [2, 2]);
    assert!(floods.iter().all(|fault| drill.engine.had_effect(*fault)));
}

#[test]
fn each_kind_of_stranger_is_turned_away_for_what_it_does() {
    let mut drill = full(2, 1);
    drill.until_s(3);
    drill.apply(Fault::Flood { to: A, connections: 5, garbage: FloodKind::Garbage });
    drill.apply(Fault::Flood { to: A, connections: 4, garbage: FloodKind::Oversize });
    drill.apply(Fault::Flood { to: A, connections: 3, garbage: FloodKind::HalfFrame });
    drill.until_s(20);
    assert_eq!(drill.happened(A, rejected(Reject::Malformed)), 5 * 3);
    assert_eq!(drill.happened(A, closed(CloseReason::Strikes)), 5);
    assert_eq!(drill.happened(A, closed(CloseReason::Oversize)), 4);
    assert_eq!(drill.happened(A, closed(CloseReason::Idle)), 3);
}

#[test]
fn forged_corrupted_and_replayed_frames_are_rejected_by_their_own_checks() {
    let mut drill = full(2, 1);
    drill.until_s(3);
    let sender = NodeId::new("n01").unwrap();
    let forge = drill.apply(Fault::Forge { sender, to: A, count: 7 });
    drill.until_s(4);
    assert_eq!(drill.happened(A, rejected(Reject::Mac)), 7);
    let captured = (Duration::from_secs(1), Duration::from_secs(3));
    let replay = drill.apply(Fault::Replay { from: B, to: A, captured, count: 3 });
    drill.until_s(5);
    assert_eq!(drill.happened(A, rejected(Reject::Replay)), 3);
    assert_eq!(drill.views(2), [2, 2]);
    let corrupt = drill.apply(Fault::Corrupt(vec![(B, A)], 1_000_000));
    drill.until_s(15);
    let before_mac = |event: &Event| matches!(event, Event::Rejected { reason, .. } if reason.is_charged());
    assert!(drill.happened(A, before_mac) > 7 + 5);
    assert_eq!(drill.views(2), [1, 2], "nothing of b arrives whole");
    drill.apply(Fault::Corrupt(vec![(B, A)], 0));
    drill.until_s(25);
    assert_eq!(drill.views(2), [2, 2]);
    assert!([forge, replay, corrupt].iter().all(|fault| drill.engine.had_effect(*fault)));
}

#[test]
fn the_kernel_of_a_paused_host_accepts_and_buffers_until_the_process_goes_on() {
    let mut drill = full(2, 1);
    drill.until_s(3);
    let pause = drill.apply(Fault::Pause(B));
    drill.until_s(60);
    assert_eq!(drill.happened(A, reset(ResetReason::DialTimeout)), 0, "its kernel answers every dial");
    assert!(drill.happened(A, reset(ResetReason::PeerSilent)) > 10);
    assert_eq!(
        drill.engine.metrics(A).map(|metrics| metrics.frames_dropped),
        Some(0),
        "and takes every frame"
    );
    assert!(drill.engine.had_effect(pause));
    drill.apply(Fault::Resume(B));
    drill.until_s(61);
    let pushed = drill.engine.metrics(B).map(|metrics| metrics.pushes_received).unwrap();
    assert!(pushed > 100, "all that was buffered is read, in order: {pushed}");
    assert_eq!(drill.happened(B, |event| matches!(event, Event::Rejected { .. })), 0);
    assert_eq!(drill.views(2), [2, 2]);
}

#[test]
fn the_buffers_of_a_paused_host_end_at_the_window() {
    let mut cluster = hosts(2);
    for host in &mut cluster {
        host.config.push_interval_ms = 50;
        host.config.suspicion_timeout_ms = 60_000;
    }
    let engine = EventEngine::full(&cluster, net(), Seed::from_u64(1), EventOptions::default());
    let mut drill = Drill::new(engine);
    drill.until_s(3);
    drill.apply(Fault::Pause(B));
    drill.until_s(15);
    assert_eq!(drill.seen.inbound_most, 1);
    drill.apply(Fault::Resume(B));
    drill.until_s(20);
    assert!(
        drill.seen.inbound_most > 1,
        "240 frames do not fit, nobody acknowledges the last, and the connection is given up for another"
    );
    assert_eq!(drill.views(2), [2, 2]);
}

#[test]
fn every_metric_has_the_counts_of_the_connections() {
    let mut cluster = hosts(2);
    for host in &mut cluster {
        host.config.suspicion_timeout_ms = 60_000;
    }
    let engine = EventEngine::full(&cluster, net(), Seed::from_u64(1), EventOptions::default());
    let mut drill = Drill::new(engine);
    drill.until_s(3);
    let sender = NodeId::new("n01").unwrap();
    drill.apply(Fault::Forge { sender, to: A, count: 3 });
    drill.apply(Fault::Kill(B));
    drill.until_s(50);
    let metrics = drill.engine.metrics(A).unwrap();
    assert_eq!(metrics.frames_rejected[Reject::Mac as usize], 3);
    assert!(metrics.frames_dropped > 0, "the queue for a dead peer holds 64 pushes, 32 s");
    assert_eq!(drill.seen.metrics_last.get(&0), Some(&metrics), "a step shows what the engine shows");
    assert_eq!(drill.engine.metrics(B), None, "nobody runs there");
}

#[test]
fn the_same_seed_gives_the_same_digest_twice_and_on_two_threads_at_once() {
    let first = busy(full(4, 7));
    assert_eq!(first, busy(full(4, 7)));
    let threads = [7, 7, 8].map(|seed| std::thread::spawn(move || busy(full(4, seed))));
    let [same, again, other] = threads.map(|thread| thread.join().unwrap());
    assert_eq!(first, same);
    assert_eq!(first, again);
    assert_ne!(first.0, other.0);
}
