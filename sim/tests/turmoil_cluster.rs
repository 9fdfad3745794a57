//! The turmoil engine runs the production driver: boots, faults and their effects, and the same run from the
//! same seed. Times are of a one-millisecond tick.

mod turmoil_support;

use std::time::Duration;

use firedrill_core::io::{CloseReason, Event, ResetReason};
use firedrill_core::wire::Reject;
use firedrill_sim::engine::{Engine, Fault, HostState};
use firedrill_sim::scenario::model::{FloodKind, Host, HostIx, LinkSpec};
use turmoil_support::{A, B, C, Drill, both_ways, net};

const DOWN: fn(&Event) -> bool = |event| matches!(event, Event::MemberDown { .. });
const LEFT: fn(&Event) -> bool = |event| matches!(event, Event::MemberLeft { .. });
const LINK_SILENT: fn(&Event) -> bool =
    |event| matches!(event, Event::LinkReset { reason: ResetReason::PeerSilent, .. });

#[test]
fn two_nodes_find_each_other() {
    let mut drill = Drill::new(2, 1);
    drill.until_ms(1500);
    assert_eq!(drill.views(2), [2, 2]);
}

#[test]
fn three_nodes_find_each_other_and_agree_on_a_count() {
    let mut drill = Drill::new(3, 1);
    drill.until_ms(2000);
    assert_eq!(drill.views(3), [3, 3, 3]);
    assert_eq!(drill.increment(A), Some(1));
    assert_eq!(drill.increment(B), Some(1));
    drill.until_ms(4000);
    assert_eq!([A, B, C].map(|host| drill.counter(host)), [2, 2, 2]);
    let stats = drill.engine.stats();
    assert!(stats.frames_delivered > 20 && stats.frames_lost == 0 && stats.bytes_sent > 5000, "{stats:?}");
    assert_eq!(drill.seen.boots.len(), 3);
    assert!(drill.seen.in_order, "steps are shown in order of time");
}

#[test]
fn power_loss_is_silent_until_the_suspicion_timeout() {
    let mut drill = Drill::new(3, 1);
    drill.until_ms(3000);
    let kill = drill.apply(Fault::Kill(B));
    let again = drill.apply(Fault::Kill(B));
    assert_eq!(drill.engine.state(B), HostState::Down);
    assert_eq!(drill.increment(B), None);
    drill.until_ms(5000);
    assert_eq!(drill.happened(A, DOWN), 0, "nothing tells the peers");
    assert_eq!((drill.seen.inbound(A), drill.in_view(A)), (2, 3), "no connection closes");
    drill.until_ms(6000);
    assert_eq!((drill.happened(A, DOWN), drill.happened(C, DOWN)), (1, 1));
    assert_eq!(drill.seen.ended, [(1, 0, false)]);
    assert!(drill.engine.had_effect(kill) && !drill.engine.had_effect(again));
}

#[test]
fn a_dial_that_met_a_dead_host_is_not_answered_by_its_next_boot() {
    let mut drill = Drill::with(2, 1, 1, |hosts| hosts[1].config.seed_peers.clear());
    drill.until_ms(3000);
    drill.apply(Fault::Kill(B));
    drill.until_ms(7500);
    let timeouts = |drill: &Drill| {
        drill.happened(A, |event| matches!(event, Event::LinkReset { reason: ResetReason::DialTimeout, .. }))
    };
    let before = timeouts(&drill);
    drill.apply(Fault::Start { host: B, wall_step_us: None, addr: None, lose_disk: false });
    drill.until_ms(7600);
    assert_eq!(drill.seen.inbound(B), 0, "the dial under way is lost");
    drill.until_ms(12_000);
    assert_eq!((timeouts(&drill), drill.views(2)), (before + 1, vec![2, 2]));
}

#[test]
fn a_graceful_stop_says_goodbye() {
    let mut drill = Drill::new(3, 1);
    drill.until_ms(3000);
    let stop = drill.apply(Fault::Stop(C));
    drill.until_ms(3300);
    assert_eq!(drill.engine.state(C), HostState::Down);
    assert_eq!(drill.seen.ended, [(2, 0, true)]);
    assert_eq!((drill.happened(A, LEFT), drill.happened(B, LEFT)), (1, 1));
    assert_eq!((drill.happened(A, DOWN), drill.seen.inbound(A)), (0, 1));
    let start = drill.apply(Fault::Start { host: C, wall_step_us: None, addr: None, lose_disk: false });
    drill.until_ms(6000);
    assert_eq!(drill.views(3), [3, 3, 3]);
    assert!(drill.engine.had_effect(stop) && drill.engine.had_effect(start));
}

#[test]
fn a_partition_parts_views_and_opens_whole_however_many_blocks_there_were() {
    let mut drill = Drill::new(3, 1);
    drill.until_ms(3000);
    let outer = drill.apply(Fault::Block([both_ways(A, C), both_ways(B, C)].concat()));
    let inner = drill.apply(Fault::Block(vec![(A, C)]));
    drill.increment(C);
    drill.until_ms(10_000);
    assert_eq!(drill.views(3), [2, 2, 1]);
    assert_eq!(drill.counter(A), 0);
    drill.apply(Fault::Unblock([both_ways(A, C), both_ways(B, C)].concat()));
    let idle = drill.apply(Fault::Unblock(vec![(A, C)]));
    drill.until_ms(20_000);
    assert_eq!(drill.views(3), [3, 3, 3]);
    assert_eq!(drill.counter(A), 1);
    assert!(drill.engine.had_effect(outer) && drill.engine.had_effect(inner));
    assert!(!drill.engine.had_effect(idle));
    assert!(drill.engine.stats().frames_lost > 10);
}

#[test]
fn a_short_cut_leaves_connections_alive() {
    let mut drill = Drill::new(2, 1);
    drill.until_ms(3000);
    drill.apply(Fault::Block(both_ways(A, B)));
    drill.until_ms(4500);
    drill.apply(Fault::Unblock(both_ways(A, B)));
    drill.until_ms(8000);
    let resets = drill.happened(A, |event| matches!(event, Event::LinkReset { .. }));
    assert_eq!((resets, drill.happened(A, DOWN), drill.views(2)), (0, 0, vec![2, 2]));
}

#[test]
fn a_kernel_gives_up_what_nobody_acknowledges_for_the_write_timeout() {
    let patient =
        |hosts: &mut [Host]| hosts.iter_mut().for_each(|host| host.config.suspicion_timeout_ms = 60_000);
    let mut drill = Drill::with(2, 1, 10, patient);
    drill.until_ms(3000);
    drill.apply(Fault::Block(vec![(A, B)]));
    let no_dial = |event: &Event| matches!(event, Event::LinkReset { reason: ResetReason::DialTimeout, .. });
    drill.until_ms(7000);
    assert_eq!((drill.happened(A, no_dial), drill.happened(B, no_dial)), (0, 0));
    drill.until_ms(9000);
    let both = (drill.happened(A, no_dial), drill.happened(B, no_dial));
    assert_eq!(both, (1, 1), "two seconds, a dial of two more: the acknowledgements are cut as well");
}

#[test]
fn held_frames_come_late_unless_their_connection_has_ended() {
    let mut drill = Drill::new(2, 1);
    drill.until_ms(3000);
    drill.apply(Fault::Hold(vec![(A, B)]));
    drill.until_ms(4500);
    let before = drill.seen.accepted(B);
    drill.apply(Fault::Release(vec![(A, B)]));
    drill.until_ms(4550);
    assert!(drill.seen.accepted(B) >= before + 2, "what it sent meanwhile");

    drill.apply(Fault::Hold(vec![(A, B)]));
    drill.until_ms(8000);
    let before = drill.seen.accepted(B);
    drill.apply(Fault::Release(vec![(A, B)]));
    drill.until_ms(8010);
    assert_eq!(drill.seen.accepted(B), before, "a's kernel gave the connection up, and its frames with it");
    drill.until_ms(12_000);
    assert_eq!(drill.views(2), [2, 2]);
}

#[test]
fn a_paused_host_hears_nothing_and_catches_up() {
    let mut drill = Drill::new(3, 1);
    drill.until_ms(3000);
    let pause = drill.apply(Fault::Pause(B));
    let handled = drill.seen.handled(B);
    drill.until_ms(7000);
    assert_eq!((drill.engine.state(B), drill.increment(B)), (HostState::Paused, None));
    assert_eq!(drill.seen.handled(B), handled, "no input and no timer");
    assert_eq!((drill.in_view(A), drill.happened(A, DOWN)), (2, 1));
    let resume = drill.apply(Fault::Resume(B));
    drill.until_ms(9000);
    assert_eq!(drill.views(3), [3, 3, 3]);
    assert_eq!(drill.happened(B, |event| matches!(event, Event::RoundLate { .. })), 1);
    assert!(drill.engine.had_effect(pause) && drill.engine.had_effect(resume));
}

#[test]
fn a_paused_node_departs_when_it_resumes() {
    let mut drill = Drill::new(2, 1);
    drill.until_ms(3000);
    drill.apply(Fault::Pause(B));
    drill.apply(Fault::Stop(B));
    drill.until_ms(6000);
    assert_eq!(drill.engine.state(B), HostState::Paused);
    drill.apply(Fault::Resume(B));
    drill.until_ms(7000);
    assert_eq!(drill.engine.state(B), HostState::Down);
    assert_eq!(drill.seen.ended, [(1, 0, true)]);
}

#[test]
fn a_long_pause_with_many_peers_does_not_overflow_the_listener() {
    let mut drill = Drill::with(12, 1, 10, |_| {});
    drill.until_ms(2000);
    drill.apply(Fault::Pause(B));
    drill.until_ms(60_000);
    drill.apply(Fault::Resume(B));
    drill.until_ms(64_000);
    assert_eq!(drill.views(12), [12; 12]);
}

#[test]
fn a_wall_clock_stepped_back_across_a_restart_is_outranked() {
    let mut drill = Drill::new(3, 1);
    drill.until_ms(3000);
    drill.apply(Fault::Kill(B));
    drill.until_ms(4000);
    let hour_back = Some(-3_600_000_000);
    let start = drill.apply(Fault::Start { host: B, wall_step_us: hour_back, addr: None, lose_disk: false });
    drill.until_ms(12_000);
    let boots: Vec<_> = drill.seen.boots.iter().filter(|boot| boot.0 == 1).map(|boot| boot.2.0).collect();
    assert_eq!(boots[1], boots[0] + 4000 - 3_600_000);
    assert_eq!(drill.happened(B, |event| matches!(event, Event::Refuted { .. })), 1);
    assert_eq!(drill.views(3), [3, 3, 3]);
    assert!(drill.engine.had_effect(start));
}

#[test]
fn clocks_run_fast_stand_still_and_step() {
    let mut drill = Drill::new(2, 1);
    drill.until_ms(1000);
    let fast = drill.apply(Fault::ClockRate { host: A, rate_ppm: 2_000_000 });
    let frozen = drill.apply(Fault::ClockFreeze { host: B, frozen: true });
    let step = drill.apply(Fault::ClockStep { host: B, by_us: -5_000_000 });
    drill.until_ms(5000);
    let last = |host: HostIx| drill.seen.last_now[host.0];
    let (a, b) = (last(A), last(B));
    assert!((8_000_000..=9_000_000).contains(&a.instant.as_micros()), "{a:?}");
    assert!((4_500_000..=5_000_000).contains(&b.instant.as_micros()), "{b:?}");
    let start = firedrill_sim::engine::WALL_AT_START;
    assert_eq!(b.wall, start.offset_micros(1_000_000 - 5_000_000));
    assert!([fast, frozen, step].iter().all(|fault| drill.engine.had_effect(*fault)));
}

#[test]
fn a_half_open_connection_heals_by_silence() {
    let mut drill = Drill::new(2, 1);
    drill.until_ms(3000);
    let half_open = drill.apply(Fault::HalfOpen(both_ways(A, B)));
    drill.until_ms(5000);
    assert_eq!((drill.happened(A, LINK_SILENT), drill.in_view(A)), (0, 2));
    drill.until_ms(12_000);
    assert!(drill.happened(A, LINK_SILENT) >= 1 && drill.happened(B, LINK_SILENT) >= 1);
    assert_eq!(drill.views(2), [2, 2]);
    assert!(drill.engine.had_effect(half_open));
}

#[test]
fn what_was_held_is_delivered_in_order_when_released() {
    let mut drill = Drill::new(2, 1);
    drill.until_ms(3000);
    let hold = drill.apply(Fault::Hold(vec![(A, B)]));
    drill.increment(A);
    drill.until_ms(4500);
    assert_eq!((drill.counter(B), drill.in_view(B)), (0, 2));
    let release = drill.apply(Fault::Release(vec![(A, B)]));
    drill.until_ms(4600);
    assert_eq!(drill.counter(B), 1);
    assert_eq!(
        drill.happened(B, |event| matches!(event, Event::Rejected { .. })),
        0,
        "none overtook another"
    );
    assert!(drill.engine.had_effect(hold) && drill.engine.had_effect(release));
    assert_eq!(drill.engine.stats().frames_lost, 0);
}

#[test]
fn many_dials_held_for_long_are_released_at_once() {
    let mut drill = Drill::with(14, 1, 10, |_| {});
    let to_b: Vec<_> = (0..14).filter(|host| *host != 1).map(|host| (HostIx(host), B)).collect();
    drill.apply(Fault::Hold(to_b.clone()));
    drill.until_ms(40_000);
    assert_eq!(drill.in_view(B), 1);
    drill.apply(Fault::Release(to_b));
    drill.until_ms(50_000);
    assert_eq!(drill.views(14), [14; 14]);
}

#[test]
fn a_host_that_moves_is_found_at_its_new_address() {
    let mut drill = Drill::new(3, 1);
    drill.until_ms(3000);
    let moved = std::net::SocketAddr::from(([192, 168, 7, 2], 8000));
    drill.apply(Fault::Start { host: B, wall_step_us: None, addr: Some(moved), lose_disk: false });
    assert_eq!(drill.seen.ended, [(1, 0, false)], "a host that runs loses power first");
    drill.until_ms(8000);
    assert_eq!(drill.views(3), [3, 3, 3]);
    assert_eq!([A, C].map(|host| drill.addr_of(host, B)), [moved.to_string(), moved.to_string()]);
}

#[test]
fn loss_duplication_and_reordering_act_on_whole_frames() {
    let mut drill = Drill::new(2, 1);
    let rules = LinkSpec { loss_ppm: 200_000, duplicate_ppm: 200_000, reorder_ppm: 200_000, ..net() };
    let link = drill.apply(Fault::Link(both_ways(A, B), rules));
    drill.until_ms(60_000);
    let stats = drill.engine.stats();
    let replayed = drill.happened(B, |event| matches!(event, Event::Rejected { .. }));
    assert!(stats.frames_lost > 20 && replayed > 10, "{stats:?} {replayed}");
    assert_eq!(drill.views(2), [2, 2]);
    assert_eq!(drill.happened(A, |event| matches!(event, Event::LinkReset { .. })), 0);
    assert!(drill.engine.had_effect(link));
}

#[test]
fn latency_and_bandwidth_delay_frames() {
    let arrival = |rules: LinkSpec| {
        let mut drill = Drill::new(2, 1);
        drill.until_ms(3000);
        drill.apply(Fault::Link(vec![(A, B)], rules));
        drill.increment(A);
        (3000..5000).step_by(10).find(|at| {
            drill.until_ms(*at);
            drill.counter(B) == 1
        })
    };
    let slow = LinkSpec {
        latency_min: Duration::from_millis(300),
        latency_max: Duration::from_millis(300),
        ..net()
    };
    assert!(arrival(net()).is_some_and(|at| at <= 3030));
    assert!(arrival(slow).is_some_and(|at| (3300..=3330).contains(&at)));
    let narrow = LinkSpec { bandwidth: Some(1000), ..net() };
    assert!(arrival(narrow).is_some_and(|at| at >= 3300), "some 400 bytes at a byte a millisecond");
}

#[test]
fn corrupted_forged_and_replayed_frames_are_rejected() {
    let mut drill = Drill::new(2, 1);
    drill.until_ms(3000);
    let span = (Duration::from_secs(1), Duration::from_secs(3));
    let replay = drill.apply(Fault::Replay { from: B, to: A, captured: span, count: 2 });
    let sender = drill.id(B);
    let forge = drill.apply(Fault::Forge { sender, to: A, count: 3 });
    let corrupt = drill.apply(Fault::Corrupt(vec![(A, B)], 1_000_000));
    drill.until_ms(4000);
    let with = |reason: Reject| move |event: &Event| matches!(event, Event::Rejected { reason: got, .. } if *got == reason);
    assert_eq!((drill.happened(A, with(Reject::Replay)), drill.happened(A, with(Reject::Mac))), (2, 3));
    assert!(drill.happened(B, |event| matches!(event, Event::Rejected { .. })) >= 1);
    assert!([replay, forge, corrupt].iter().all(|fault| drill.engine.had_effect(*fault)));
    drill.apply(Fault::Corrupt(vec![(A, B)], 0));
    drill.until_ms(9000);
    assert_eq!(drill.views(2), [2, 2]);
}

#[test]
fn a_flood_of_strangers_does_not_keep_the_peers_out() {
    for garbage in [FloodKind::Silent, FloodKind::Garbage, FloodKind::Oversize, FloodKind::HalfFrame] {
        let mut drill = Drill::new(2, 1);
        drill.until_ms(2000);
        let flood = drill.apply(Fault::Flood { to: A, connections: 200, garbage });
        drill.until_ms(8000);
        assert_eq!((drill.views(2), drill.happened(A, DOWN)), (vec![2, 2], 0), "{garbage:?}");
        assert!(drill.engine.had_effect(flood), "{garbage:?}");
        let closed = |wanted: CloseReason| {
            drill.happened(
                A,
                |event| matches!(event, Event::InboundClosed { reason, .. } if *reason == wanted),
            )
        };
        let expected = match garbage {
            FloodKind::Silent | FloodKind::HalfFrame => closed(CloseReason::Displaced) > 50,
            FloodKind::Garbage => closed(CloseReason::Strikes) + closed(CloseReason::Displaced) == 200,
            FloodKind::Oversize => closed(CloseReason::Oversize) > 100,
        };
        assert!(expected, "{garbage:?}");
    }
}

#[test]
fn a_host_that_was_not_there_from_the_start_joins() {
    let mut drill = Drill::with(3, 1, 1, |hosts| hosts[2].from_start = false);
    drill.until_ms(2000);
    assert_eq!((drill.engine.state(C), drill.views(2)), (HostState::Down, vec![2, 2]));
    drill.apply(Fault::Start { host: C, wall_step_us: None, addr: None, lose_disk: false });
    drill.until_ms(4000);
    assert_eq!(drill.views(3), [3, 3, 3]);
}
