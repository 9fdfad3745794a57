//! What the world makes of boots, faults and goodbyes.

use super::super::bounds::liveness_bound;
use super::super::testing::{calm_net, facts, ms};
use super::*;

#[test]
fn an_id_is_dead_only_when_no_host_with_it_runs() {
    let twin = HostFacts { name: Arc::from("b2"), ..facts("b") };
    let mut world = World::of(vec![facts("a"), facts("b"), twin], calm_net(), 1, false);
    let b = world.hosts()[1].peer;
    assert_eq!(world.dead_since(b), None);
    world.booted(ms(0), HostIx(1), 0, Incarnation(1));
    world.booted(ms(1), HostIx(2), 0, Incarnation(2));
    world.went_down(ms(5), HostIx(1), false);
    assert_eq!(world.dead_since(b), None);
    world.went_down(ms(9), HostIx(2), true);
    assert_eq!(world.dead_since(b), Some((ms(9), true)));
}

#[test]
fn a_slow_clock_stretches_its_hosts_silence() {
    let mut world = World::of(vec![facts("a")], calm_net(), 1, false);
    assert!(world.is_calm());
    world.fault_applied(ms(3), &Fault::ClockRate { host: HostIx(0), rate_ppm: 500_000 });
    assert_eq!(world.host(HostIx(0)).true_time(Duration::from_secs(2)), Duration::from_secs(4));
    assert!(!world.is_calm() && world.first_fault() == Some(ms(3)));
}

#[test]
fn a_net_slower_than_half_a_push_is_not_calm() {
    let slow = LinkSpec { latency_max: Duration::from_millis(251), ..calm_net() };
    assert!(World::of(vec![facts("a"), facts("b")], calm_net(), 1, false).is_calm());
    assert!(!World::of(vec![facts("a"), facts("b")], slow, 1, false).is_calm());
}

#[test]
fn the_history_knows_the_longest_cut_even_while_it_lasts() {
    let mut world = World::of(vec![facts("a"), facts("b")], calm_net(), 1, false);
    let pair = vec![(HostIx(0), HostIx(1))];
    world.fault_applied(ms(10), &Fault::Block(pair.clone()));
    assert_eq!(world.history(ms(60)).partition_longest, Duration::from_millis(50));
    world.fault_applied(ms(30), &Fault::Unblock(pair));
    assert_eq!(world.history(ms(60)).partition_longest, Duration::from_millis(20));
}

#[test]
fn a_cell_written_by_two_boots_is_known_as_shared() {
    let mut world = World::of(vec![facts("a")], calm_net(), 1, true);
    let counter = CounterName::new("c").unwrap();
    for boot in 0..2 {
        world.booted(ms(u64::from(boot)), HostIx(0), boot, Incarnation(7));
        world.incremented(HostIx(0), &counter, 2, Incarnation(7));
        world.went_down(ms(9), HostIx(0), false);
    }
    let truth = &world.counters()[&counter];
    assert_eq!(truth.total, 4);
    assert!(truth.cells.values().all(|cell| cell.shared && cell.value == 4));
    assert_eq!(world.reused().len(), 1);
}

/// Two hosts that run from 0 ms on.
fn pair() -> World {
    let mut world = World::of(vec![facts("a"), facts("b")], calm_net(), 1, false);
    world.booted(ms(0), HostIx(0), 0, Incarnation(1));
    world.booted(ms(0), HostIx(1), 0, Incarnation(2));
    world
}

/// Whether b's goodbye, told at that moment, widens the bound when b comes back and its clock goes back.
fn widens(mut world: World, goodbye_ms: u64, then: impl Fn(&mut World)) -> bool {
    world.fault_applied(ms(goodbye_ms), &Fault::Stop(HostIx(1)));
    world.went_down(ms(goodbye_ms + 1), HostIx(1), true);
    then(&mut world);
    world.booted(ms(80_000), HostIx(1), 1, Incarnation(80_001));
    world.fault_applied(ms(90_000), &Fault::ClockStep { host: HostIx(1), by_us: -1 });
    let bound = liveness_bound(&world.history(ms(90_000)), false);
    let widened = bound.because.contains("a goodbye to a stranger");
    assert_eq!(widened, world.history(ms(90_000)).left, "{bound:?}");
    widened
}

#[test]
fn a_goodbye_to_an_old_acquaintance_widens_no_bound_and_one_to_a_fresh_boot_does() {
    // Three rounds of 620 ms, and all have met: P = 500 ms, d = 1.
    assert!(widens(pair(), 1_800, |_| ()));
    assert!(!widens(pair(), 1_900, |_| ()));
}

#[test]
fn a_goodbye_to_a_host_that_is_back_widens_the_bound_until_dead_links_have_healed() {
    let back = || {
        let mut world = pair();
        world.went_down(ms(50_000), HostIx(0), false);
        world.booted(ms(60_000), HostIx(0), 1, Incarnation(60_001));
        world
    };
    // As above, and a dial that times out, its back-off, and a departure: 6,510 ms.
    assert!(widens(back(), 66_500, |_| ()));
    assert!(!widens(back(), 66_600, |_| ()));
}

#[test]
fn who_boots_while_a_goodbye_is_under_way_is_a_stranger_to_it_and_who_boots_later_is_not() {
    let boots_at = |at_ms| {
        move |world: &mut World| {
            world.went_down(ms(10_001), HostIx(0), false);
            world.booted(ms(at_ms), HostIx(0), 1, Incarnation(at_ms));
        }
    };
    // 250 ms of departure, and 20 ms under way.
    assert!(widens(pair(), 10_000, boots_at(10_270)));
    assert!(!widens(pair(), 10_000, boots_at(10_271)));
}
