//! One story on both engines ends alike: the turmoil engine and the event engine with bytes.

mod turmoil_support;

use firedrill_core::io::Event;
use firedrill_sim::engine::{Engine, Fault};
use firedrill_sim::scenario::model::{FloodKind, HostIx};
use turmoil_support::{A, B, C, Drill, both_ways};

/// What a verdict could rest on: who ended how, views, counters, who went down, left, refuted, and which faults
/// had an effect.
#[derive(Debug, PartialEq)]
struct Ending {
    ended: Vec<(usize, u32, bool)>,
    views: Vec<usize>,
    counters: Vec<u64>,
    downs: Vec<usize>,
    lefts: Vec<usize>,
    refuted: Vec<usize>,
    effects: Vec<bool>,
}

/// Plays faults at their seconds, with an increment on each host in turn every second.
fn play<E: Engine>(mut drill: Drill<E>, story: &[(u64, Fault)], seconds: u64) -> Ending {
    let hosts: Vec<HostIx> = [A, B, C].to_vec();
    let mut faults = Vec::new();
    for second in 1..=seconds {
        drill.until_ms(second * 1000);
        for (_, fault) in story.iter().filter(|(at, _)| *at == second) {
            faults.push(drill.apply(fault.clone()));
        }
        if second + 5 < seconds {
            drill.increment(HostIx(usize::try_from(second).unwrap_or(0) % 3));
        }
    }
    let count = |wanted: fn(&Event) -> bool| hosts.iter().map(|host| drill.happened(*host, wanted)).collect();
    Ending {
        ended: drill.seen.ended.clone(),
        views: drill.views(3),
        counters: hosts.iter().map(|host| drill.counter(*host)).collect(),
        downs: count(|event| matches!(event, Event::MemberDown { .. })),
        lefts: count(|event| matches!(event, Event::MemberLeft { .. })),
        refuted: count(|event| matches!(event, Event::Refuted { .. })),
        effects: faults.iter().map(|fault| drill.engine.had_effect(*fault)).collect(),
    }
}

fn agree(story: &[(u64, Fault)], seconds: u64) -> Ending {
    let event = play(Drill::event(3, 1), story, seconds);
    assert_eq!(play(Drill::new(3, 1), story, seconds), event, "turmoil, then event");
    event
}

#[test]
fn a_partition_that_heals_ends_alike() {
    let cut = [both_ways(A, C), both_ways(B, C)].concat();
    let ending = agree(&[(3, Fault::Block(cut.clone())), (12, Fault::Unblock(cut))], 25);
    assert_eq!((ending.views, ending.downs), (vec![3, 3, 3], vec![1, 1, 2]));
}

#[test]
fn a_cut_one_way_ends_alike() {
    let ending = agree(&[(3, Fault::Block(vec![(A, C)])), (20, Fault::Unblock(vec![(A, C)]))], 35);
    assert_eq!(ending.views, [3, 3, 3]);
}

#[test]
fn power_loss_a_clock_set_back_and_a_goodbye_end_alike() {
    let start = |host, wall_step_us| Fault::Start { host, wall_step_us, addr: None, lose_disk: false };
    let story = [
        (3, Fault::Kill(B)),
        (9, start(B, Some(-60_000_000))),
        (15, Fault::Stop(C)),
        (18, start(C, None)),
        (22, start(A, None)),
    ];
    let ending = agree(&story, 32);
    assert_eq!(ending.ended, [(1, 0, false), (2, 0, true), (0, 0, false)]);
    assert_eq!((ending.views, ending.lefts), (vec![3, 3, 3], vec![1, 1, 0]));
}

#[test]
fn a_pause_ends_alike() {
    let ending = agree(&[(3, Fault::Pause(A)), (9, Fault::Resume(A))], 18);
    assert_eq!((ending.views, ending.downs), (vec![3, 3, 3], vec![0, 1, 1]));
}

#[test]
fn half_open_connections_held_frames_and_strangers_end_alike() {
    let sender = Drill::new(3, 1).id(B);
    let story = [
        (3, Fault::HalfOpen(both_ways(A, B))),
        (4, Fault::Flood { to: C, connections: 150, garbage: FloodKind::Garbage }),
        (5, Fault::Forge { sender, to: A, count: 4 }),
        (8, Fault::Hold(vec![(A, C)])),
        (10, Fault::Release(vec![(A, C)])),
    ];
    let ending = agree(&story, 25);
    assert_eq!(ending.views, [3, 3, 3]);
}
