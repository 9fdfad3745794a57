//! The event simulator drives any machine: here a replicated register with a disk, unrelated to the cluster.
//!
//! Host 0 leads. A written value is persisted by the leader, then proposed to the others, who persist it before
//! they acknowledge; the leader proposes again every 100 ms until all have. A boot reports what it recovered.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use firedrill_core::rng::Seed;
use firedrill_core::time::{Instant, Now, WallTime};
use firedrill_sim::engine::event::{
    Boot, Effects, EventSim, Handled, HostSpec, Input, Machine, Observer, Station, StoreHealth, Token,
    Trigger,
};
use firedrill_sim::engine::{Flow, HostState};
use firedrill_sim::scenario::model::{HostIx, LinkSpec};

const HOSTS: usize = 3;
const LEADER: HostIx = HostIx(0);
const AGAIN: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Msg {
    Propose(u64),
    Ack(u64),
}

#[derive(Debug)]
enum Ask {
    Write(u64),
    Quit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Recovered(Option<u64>),
    Committed(u64),
}

struct Register {
    peers: Arc<[SocketAddr]>,
    recovered: Option<u64>,
    /// The value being replicated, and who holds it.
    open: Option<(u64, BTreeSet<Station>)>,
    propose_at: Option<Instant>,
    /// Whom to acknowledge to once the value in the token is durable.
    owed: Vec<(u64, Station)>,
}

impl Register {
    fn boot(boot: &Boot<'_, Bytes>) -> Self {
        let recovered = boot.recovered.last().map(|record| u64::from(record[0]));
        let peers = (0..HOSTS).filter(|host| *host != boot.host.0).map(addr);
        Self { peers: peers.collect(), recovered, open: None, propose_at: None, owed: Vec::new() }
    }

    fn persist(value: u64, effects: &mut Effects<Self>) {
        effects.persist(Token(value), Bytes::copy_from_slice(&[u8::try_from(value).unwrap()]));
    }
}

impl Machine for Register {
    type Record = Bytes;
    type Message = Msg;
    type Command = Ask;
    type Answer = ();
    type Event = Told;
    type Alarm = ();

    fn handle(&mut self, now: Now, input: Input<Self>, effects: &mut Effects<Self>) {
        match input {
            Input::Boot => effects.event(Told::Recovered(self.recovered)),
            Input::Command(Ask::Quit) => effects.depart(),
            Input::Command(Ask::Write(value)) => {
                self.open = Some((value, BTreeSet::new()));
                Self::persist(value, effects);
                effects.answer(());
            }
            Input::Persisted(Token(value), _) => {
                if self.open.as_ref().is_some_and(|(open, _)| *open == value) {
                    self.propose_at = Some(now.instant);
                }
                self.owed.retain(|(owed, to)| {
                    if *owed == value {
                        effects.reply(*to, Msg::Ack(value));
                    }
                    *owed != value
                });
            }
            Input::Deliver { from, message: Msg::Propose(value) } => {
                self.owed.push((value, from));
                Self::persist(value, effects);
            }
            Input::Deliver { from, message: Msg::Ack(value) } => {
                if let Some((open, holders)) = &mut self.open
                    && *open == value
                    && holders.insert(from)
                    && holders.len() == self.peers.len()
                {
                    effects.event(Told::Committed(value));
                    self.open = None;
                    self.propose_at = None;
                }
            }
            Input::Wake => {}
        }
        if let Some((value, _)) = &self.open
            && self.propose_at.is_some_and(|at| at <= now.instant)
        {
            effects.send_all(Arc::clone(&self.peers), Msg::Propose(*value));
            self.propose_at = Some(now.instant.after(AGAIN));
        }
    }

    fn next_wake(&self) -> Option<Instant> {
        self.propose_at
    }

    fn frame_bytes(_message: &Msg) -> Option<usize> {
        Some(9)
    }
}

/// Everything observers were told, as milliseconds, host and fact.
#[derive(Default)]
struct Log {
    told: Vec<(u64, usize, Told)>,
    ended: Vec<(usize, u32, bool)>,
    triggers: Vec<(u64, usize, Trigger)>,
    stop_at_commit: bool,
}

impl Observer<Register> for Log {
    fn handled(&mut self, handled: &Handled<'_, Register>) -> Flow {
        let (at_us, host) = (handled.at.as_micros(), handled.host.0);
        self.triggers.push((at_us, host, handled.trigger));
        self.told.extend(handled.effects.events().iter().map(|told| (at_us / 1000, host, *told)));
        let committed = handled.effects.events().iter().any(|told| matches!(told, Told::Committed(_)));
        if committed && self.stop_at_commit { Flow::Stop } else { Flow::Continue }
    }

    fn down(&mut self, _at: Instant, host: HostIx, boot: u32, graceful: bool) {
        self.ended.push((host.0, boot, graceful));
    }
}

fn addr(host: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, u8::try_from(host).unwrap() + 1], 7000))
}

fn ms(ms: u64) -> Instant {
    Instant::from_micros(ms * 1000)
}

fn link(latency_ms: (u64, u64), loss_ppm: u32) -> LinkSpec {
    LinkSpec {
        latency_min: Duration::from_millis(latency_ms.0),
        latency_max: Duration::from_millis(latency_ms.1),
        loss_ppm,
        duplicate_ppm: 0,
        reorder_ppm: 0,
        bandwidth: None,
    }
}

fn sim(seed: u64, latency_ms: (u64, u64), loss_ppm: u32) -> EventSim<Register> {
    let hosts: Vec<HostSpec> = (0..HOSTS)
        .map(|host| HostSpec { addr: addr(host), wall: WallTime::default(), from_start: true })
        .collect();
    EventSim::new(&hosts, &link(latency_ms, loss_ppm), &Seed::from_u64(seed), |boot| Register::boot(&boot))
}

#[test]
fn a_value_commits_when_every_disk_has_it() {
    let (mut sim, mut log) = (sim(1, (1, 1), 0), Log::default());
    sim.set_store(LEADER, StoreHealth::Answers(Duration::from_millis(5)), None);
    sim.set_store(HostIx(1), StoreHealth::Answers(Duration::from_millis(30)), None);
    sim.run_until(ms(10), &mut log);
    assert!(sim.command(LEADER, Ask::Write(7), &mut log).is_some());
    sim.run_until(ms(100), &mut log);
    assert_eq!(log.told.last(), Some(&(10 + 5 + 1 + 30 + 1, 0, Told::Committed(7))));
}

#[test]
fn a_dead_store_commits_nothing_until_it_is_healthy_again() {
    let (mut sim, mut log) = (sim(1, (1, 1), 0), Log::default());
    sim.set_store(HostIx(2), StoreHealth::Dead, None);
    sim.run_until(ms(10), &mut log);
    sim.command(LEADER, Ask::Write(7), &mut log);
    sim.run_until(ms(5000), &mut log);
    assert_eq!(log.told.len(), HOSTS, "only the boots");
    sim.set_store(HostIx(2), StoreHealth::Answers(Duration::ZERO), None);
    sim.run_until(ms(6000), &mut log);
    assert_eq!(log.told.last(), Some(&(5001, 0, Told::Committed(7))));
}

#[test]
fn power_loss_may_drop_what_is_not_durable_and_a_graceful_end_keeps_it() {
    let after = |seed, graceful| {
        let (mut sim, mut log) = (sim(seed, (1, 1), 0), Log::default());
        sim.set_store(LEADER, StoreHealth::Answers(Duration::from_millis(50)), None);
        sim.run_until(ms(1), &mut log);
        sim.command(LEADER, Ask::Write(1), &mut log);
        sim.run_until(ms(60), &mut log);
        sim.command(LEADER, Ask::Write(2), &mut log);
        sim.run_until(ms(80), &mut log);
        if graceful {
            sim.command(LEADER, Ask::Quit, &mut log);
        } else {
            sim.kill(LEADER, &mut log);
        }
        assert_eq!(sim.state(LEADER), HostState::Down);
        sim.run_until(ms(200), &mut log);
        assert!(sim.start(LEADER, &mut log));
        assert_eq!(log.ended, [(0, 0, graceful)]);
        *log.told.last().unwrap()
    };
    let recovered = |value| (200, 0, Told::Recovered(Some(value)));
    assert!((0..8).all(|seed| after(seed, true) == recovered(2)));
    let lost = (0..32).filter(|seed| after(*seed, false) == recovered(1)).count();
    let kept = (0..32).filter(|seed| after(*seed, false) == recovered(2)).count();
    assert!(lost > 0 && kept > 0 && lost + kept == 32, "{lost} lost, {kept} kept");
}

#[test]
fn a_pause_keeps_inputs_in_order_and_power_loss_empties_it() {
    let (mut sim, mut log) = (sim(1, (1, 1), 0), Log::default());
    sim.run_until(ms(10), &mut log);
    let pause = sim.new_fault();
    sim.pause(HostIx(1), pause);
    assert!(!sim.had_effect(pause), "nothing was kept yet");
    sim.command(LEADER, Ask::Write(7), &mut log);
    sim.run_until(ms(250), &mut log);
    assert!(sim.had_effect(pause));
    assert!(sim.command(HostIx(1), Ask::Quit, &mut log).is_none(), "a paused host takes no command");
    assert_eq!(log.triggers.iter().filter(|(_, host, _)| *host == 1).count(), 1, "only the boot");
    assert!(sim.resume(HostIx(1)));
    sim.run_until(ms(260), &mut log);
    let kept: Vec<_> = log.triggers.iter().filter(|(at, host, _)| *host == 1 && *at == 250_000).collect();
    assert_eq!(kept.len(), 3 * 2, "proposals of 10, 110 and 210 ms, each persisted at once: {kept:?}");
    assert_eq!(log.told.last(), Some(&(251, 0, Told::Committed(7))));

    sim.pause(HostIx(1), pause);
    sim.command(LEADER, Ask::Write(8), &mut log);
    sim.run_until(ms(400), &mut log);
    assert!(sim.kill(HostIx(1), &mut log) && !sim.resume(HostIx(1)));
    let lost = sim.stats().frames_lost;
    assert_eq!(lost, 2, "the proposals it had not seen");
}

#[test]
fn a_cut_swallows_what_is_in_flight_and_a_hold_keeps_the_order() {
    let (mut sim, mut log) = (sim(1, (5, 5), 0), Log::default());
    sim.run_until(ms(10), &mut log);
    sim.command(LEADER, Ask::Write(7), &mut log);
    sim.run_until(ms(12), &mut log);
    let pair = [(LEADER, HostIx(1))];
    let (cut, hold) = (sim.new_fault(), sim.new_fault());
    sim.block(&pair, cut);
    assert!(!sim.had_effect(cut));
    sim.run_until(ms(20), &mut log);
    assert!(sim.had_effect(cut), "the first proposal was under way");
    assert!(sim.unblock(&pair) && !sim.unblock(&pair));
    sim.hold(&pair, hold);
    sim.run_until(ms(320), &mut log);
    assert!(sim.had_effect(hold));
    assert_eq!(log.told.len(), HOSTS);
    assert!(sim.release(&pair) && !sim.release(&pair));
    sim.run_until(ms(400), &mut log);
    let arrivals: Vec<u64> = log
        .triggers
        .iter()
        .filter(|(at, host, trigger)| *host == 1 && *trigger == Trigger::Deliver && *at < 326_000)
        .map(|(at, ..)| *at)
        .collect();
    assert_eq!(arrivals, [325_000, 325_001, 325_002], "three were kept");
    assert_eq!(log.told.last(), Some(&(330, 0, Told::Committed(7))));
}

#[test]
fn what_a_hold_kept_arrives_in_the_order_it_was_sent() {
    let (mut sim, mut log) = (sim(1, (1, 1), 0), Log::default());
    sim.run_until(ms(10), &mut log);
    let hold = sim.new_fault();
    sim.hold(&[(LEADER, HostIx(1))], hold);
    for value in 1..4 {
        sim.command(LEADER, Ask::Write(value), &mut log);
        sim.run_until(ms(10 + 10 * value), &mut log);
    }
    sim.release(&[(LEADER, HostIx(1))]);
    sim.run_until(ms(50), &mut log);
    sim.kill(HostIx(1), &mut log);
    sim.start(HostIx(1), &mut log);
    assert_eq!(log.told.last(), Some(&(50, 1, Told::Recovered(Some(3)))), "the last record is the last sent");
}

#[test]
fn clocks_of_another_rate_move_timers_and_never_early() {
    let (mut sim, mut log) = (sim(1, (1, 1), 0), Log::default());
    sim.set_store(HostIx(1), StoreHealth::Dead, None);
    sim.run_until(ms(10), &mut log);
    sim.command(LEADER, Ask::Write(7), &mut log);
    sim.run_until(ms(50), &mut log);
    let fault = sim.new_fault();
    sim.set_clock_rate(LEADER, 500_000, fault);
    sim.run_until(ms(400), &mut log);
    let wakes: Vec<u64> = log
        .triggers
        .iter()
        .filter(|(_, host, trigger)| *host == 0 && *trigger == Trigger::Wake)
        .map(|(at, ..)| *at)
        .collect();
    assert_eq!(wakes, [170_000, 370_000], "60 ms were left at half speed, then 100 ms at half speed");
    assert!(sim.had_effect(fault));
    let step = sim.new_fault();
    sim.step_clock(LEADER, -5, step);
    assert!(!sim.had_effect(step), "nobody has looked yet");
    sim.run_until(ms(600), &mut log);
    assert!(sim.had_effect(step));
}

#[test]
fn an_observer_stops_the_run_at_the_very_moment() {
    let (mut sim, mut log) = (sim(1, (1, 1), 0), Log { stop_at_commit: true, ..Log::default() });
    sim.run_until(ms(10), &mut log);
    sim.command(LEADER, Ask::Write(7), &mut log);
    assert_eq!(sim.run_until(ms(1000), &mut log), Flow::Stop);
    assert_eq!(sim.now(), ms(12));
    assert_eq!(sim.run_until(ms(1000), &mut log), Flow::Continue);
    assert_eq!(sim.now(), ms(1000));
}

#[test]
fn the_seed_decides_and_nothing_else() {
    let run = |seed| {
        let (mut sim, mut log) = (sim(seed, (1, 20), 300_000), Log::default());
        for value in 1..50 {
            sim.command(LEADER, Ask::Write(value), &mut log);
            sim.run_until(ms(value * 500), &mut log);
        }
        assert!(sim.stats().frames_lost > 20);
        log.triggers
    };
    let here = run(1);
    let there = [1, 2].map(|seed| std::thread::spawn(move || run(seed)));
    let [same, other] = there.map(|thread| thread.join().unwrap());
    assert_eq!(here, same);
    assert_ne!(here, other);
}

/// Asks to be woken at a moment that it never gets past.
struct Stubborn;

impl Machine for Stubborn {
    type Record = ();
    type Message = ();
    type Command = ();
    type Answer = ();
    type Event = ();
    type Alarm = &'static str;

    fn handle(&mut self, _now: Now, _input: Input<Self>, _effects: &mut Effects<Self>) {}

    fn next_wake(&self) -> Option<Instant> {
        Some(ms(10))
    }

    fn stuck(&self) -> Option<&'static str> {
        Some("its only timer")
    }

    fn frame_bytes(_message: &()) -> Option<usize> {
        None
    }
}

/// Alarms with their times in milliseconds.
#[derive(Default)]
struct Alarms(Vec<(u64, &'static str)>);

impl Observer<Stubborn> for Alarms {
    fn handled(&mut self, handled: &Handled<'_, Stubborn>) -> Flow {
        self.0.extend(handled.effects.alarms().iter().map(|alarm| (handled.at.as_micros() / 1000, *alarm)));
        Flow::Continue
    }

    fn down(&mut self, _at: Instant, _host: HostIx, _boot: u32, _graceful: bool) {}
}

#[test]
fn a_wake_up_that_stays_due_is_an_alarm_and_holds_no_time() {
    let host = HostSpec { addr: addr(0), wall: WallTime::default(), from_start: true };
    let mut sim = EventSim::new(&[host], &link((1, 1), 0), &Seed::from_u64(1), |_| Stubborn);
    let mut alarms = Alarms::default();
    assert_eq!(sim.run_until(ms(13), &mut alarms), Flow::Continue);
    assert_eq!(alarms.0, [10, 11, 12].map(|at| (at, "its only timer")));
}
