//! The machine alone, told by hand what peers and the disk say.

#![allow(clippy::wildcard_enum_match_arm, reason = "a test looks for one kind of message or event")]

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use super::*;
use crate::config::IssuanceConfig;
use crate::id::Seq;
use crate::issuance::decimal::Decimal;
use crate::issuance::fence::{Kind, Reply, Request, Verdict};
use crate::issuance::message::{Page, Probe, Pull, Standing, UnixMs};
use crate::issuance::row::{Fields, Row};
use crate::issuance::seal::Role;
use crate::issuance::window::Z;
use crate::limits::PAGE_BYTES_MAX;
use crate::time::WallTime;

const Z_US: u64 = 777_001;

fn id(name: &str) -> NodeId {
    NodeId::new(name).unwrap()
}

/// Silence 60, grace 40, check 16, pull 20: 46.6 s, 31.1 s, 12.4 s, 15.5 s.
fn config() -> IssuanceConfig {
    IssuanceConfig {
        issuer: id("a"),
        width: 1,
        rate: Decimal::from_units(999_999_999_999),
        genesis_ms: 0,
        max_elapsed_per_seal: 8,
        catchup_max_z: Z(0),
        failover: true,
        silence_z: Z(60),
        boot_grace_z: Z(40),
        check_z: Z(16),
        pull_z: Z(20),
        probe_timeout_ms: 2000,
        eligible: BTreeSet::new(),
        fencing: Fencing::None,
        fence_z: Z(45),
    }
}

fn fenced() -> IssuanceConfig {
    IssuanceConfig { eligible: ["a", "b", "c"].map(id).into(), fencing: Fencing::Majority, ..config() }
}

/// A row of window `window` that covers one, as `issuer` would seal it at `epoch`.
fn row(issuer: &str, boot: u64, seq: u64, window: u64, epoch: u64) -> Stamped {
    let lease = Lease { epoch: Epoch(epoch), holder: id(issuer) };
    let row = Row::new(Fields {
        window: Window(window),
        from_window: Window(window - 1),
        elapsed: 1,
        rate: Decimal::from_units(999_999_999_999),
        phase: Decimal::from_units(0),
        genesis_pegged: true,
        lease: Some(lease),
    });
    let origin = Origin { node: id(issuer), boot: Incarnation(boot) };
    Stamped { origin, seq: Seq(seq), row: Arc::new(row.unwrap()) }
}

/// One machine with its clocks. The wall clock shows window 1,000,000 at the origin of the monotonic one.
struct Rig {
    issuance: Issuance,
    us: u64,
    wall_offset_us: i64,
    sent: Vec<(NodeId, Message)>,
    writes: Vec<(Token, Batch)>,
    events: Vec<IssuanceEvent>,
    /// Who answers probes, each at once: whether it is fit, its tip and its epoch.
    standing: BTreeMap<NodeId, (bool, u64, u64)>,
}

/// The wall clock at the origin, in microseconds: the first moment of window 1,000,000.
const WALL_US: i64 = 777_001_554_000;

impl Rig {
    fn new(me: &str, config: &IssuanceConfig) -> Self {
        Self::recovered(me, config, Recovered::default(), Guards::ON)
    }

    fn recovered(me: &str, config: &IssuanceConfig, recovered: Recovered, guards: Guards) -> Self {
        let at = Now { instant: Instant::ZERO, wall: WallTime::from_unix_micros(WALL_US) };
        let issuance =
            Issuance::new(config, &id(me), Incarnation(77), recovered, &Seed::from_u64(3), at, guards);
        let (sent, writes, events) = (Vec::new(), Vec::new(), Vec::new());
        let standing = BTreeMap::new();
        let mut rig = Self { issuance, us: 0, wall_offset_us: 0, sent, writes, events, standing };
        rig.run();
        rig
    }

    fn now(&self) -> Now {
        let wall = WALL_US + i64::try_from(self.us).unwrap() + self.wall_offset_us;
        Now { instant: Instant::from_micros(self.us), wall: WallTime::from_unix_micros(wall) }
    }

    fn run(&mut self) {
        let now = self.now();
        for wish in self.issuance.run_due(now) {
            match wish {
                Wish::Send { to, message } => self.sent.push((to, message)),
                Wish::Persist { token, batch } => self.writes.push((token, batch)),
                Wish::Event(event) => self.events.push(event),
            }
        }
    }

    /// Runs every deadline of the next `z` ticks; the disk answers each write at once when `disk` says so.
    fn pass(&mut self, z: u64, disk: Option<Written>) {
        let until = self.us + z * Z_US;
        for _ in 0..100_000 {
            self.answer(disk);
            let due = self.issuance.next_deadline().as_micros();
            if due > until {
                break;
            }
            let stuck = self.us;
            self.us = due.max(self.us);
            let sent = self.sent.len();
            self.run();
            self.answer_probes(sent);
            assert!(
                self.issuance.next_deadline().as_micros() > stuck.min(self.us),
                "a deadline that was handled is still due"
            );
        }
        self.us = until;
        self.run();
        self.answer(disk);
    }

    fn answer(&mut self, disk: Option<Written>) {
        let Some(written) = disk else { return };
        while let Some((token, _)) = self.writes.pop() {
            let now = self.now();
            self.issuance.persisted(now, token, written);
            self.run();
        }
    }

    fn joins(&mut self, peer: &str) {
        self.issuance.joined(&id(peer));
        self.run();
    }

    /// The round of the latest pull sent to `peer`.
    fn pull_of(&self, peer: &str) -> Arc<Pull> {
        let pull = |(to, message): &(NodeId, Message)| match message {
            Message::Pull(pull) if *to == id(peer) => Some(Arc::clone(pull)),
            _ => None,
        };
        self.sent.iter().rev().find_map(pull).expect("a pull was sent")
    }

    fn page(&mut self, peer: &str, round: u64, more: bool, rows: Vec<Stamped>) {
        let now = self.now();
        self.issuance.page(now, &id(peer), &Page { round, more, wall: now.wall.into(), rows });
        self.run();
    }

    /// A peer answers the latest pull with everything there is.
    fn answers(&mut self, peer: &str, rows: Vec<Stamped>) {
        let round = self.pull_of(peer).round;
        self.page(peer, round, false, rows);
    }

    /// Whoever was sent a probe since `sent` and answers at all, does.
    fn answer_probes(&mut self, sent: usize) {
        let probe = |(to, message): &(NodeId, Message)| match message {
            Message::Probe(Probe { round }) => Some((to.clone(), *round)),
            _ => None,
        };
        let probes: Vec<_> = self.sent[sent..].iter().filter_map(probe).collect();
        for (peer, round) in probes {
            let Some(&(fit, tip, epoch)) = self.standing.get(&peer) else { continue };
            let now = self.now();
            let electorate = self.issuance.electorate.digest();
            let (tip, epoch) = (Some(Window(tip)), Some(Epoch(epoch)));
            let standing = Standing { round, fit, wall: now.wall.into(), electorate, tip, epoch };
            self.issuance.answered(now, &peer, standing);
            self.run();
        }
    }

    fn seals(&self) -> Vec<u64> {
        let sealed = self.events.iter().filter_map(|event| match event {
            IssuanceEvent::Sealed { window, .. } => Some(window.0),
            _ => None,
        });
        sealed.collect()
    }

    fn saw(&self, wanted: impl Fn(&IssuanceEvent) -> bool) -> usize {
        self.events.iter().filter(|event| wanted(event)).count()
    }
}

const NONE: [u64; 0] = [];
const DURABLE: Option<Written> = Some(Written::Durable);

#[test]
fn the_configured_issuer_bootstraps_after_its_grace_with_a_row_of_one_window() {
    let mut rig = Rig::new("a", &config());
    rig.pass(39, DURABLE);
    assert_eq!(rig.seals(), NONE, "the grace is not over");
    rig.pass(11, DURABLE);
    let seals = rig.seals();
    assert_eq!(seals, (1_000_040..=1_000_050).collect::<Vec<_>>(), "one a window, none left out");
    let spine = rig.issuance.spine();
    let first = spine.at(Window(1_000_040)).unwrap();
    assert_eq!((first.row.from_window, first.row.elapsed), (Window(1_000_039), 1));
    assert_eq!(first.row.epoch(), Some(Epoch(0)));
}

#[test]
fn a_complete_pull_of_every_live_peer_ends_the_wait_early() {
    let mut rig = Rig::new("a", &config());
    rig.joins("b");
    rig.joins("c");
    rig.answers("b", vec![]);
    rig.pass(3, DURABLE);
    assert_eq!(rig.seals(), NONE, "c has not answered");
    rig.answers("c", vec![]);
    rig.pass(2, DURABLE);
    assert!(!rig.seals().is_empty());
}

#[test]
fn an_answer_to_another_request_completes_nothing() {
    let mut rig = Rig::new("a", &config());
    rig.joins("b");
    let round = rig.pull_of("b").round;
    rig.page("b", round.wrapping_add(1), false, vec![]);
    rig.pass(3, DURABLE);
    assert_eq!(rig.seals(), NONE);
}

#[test]
fn a_peer_with_more_is_asked_on_until_it_has_none() {
    let mut rig = Rig::new("c", &config());
    rig.joins("b");
    let first = rig.pull_of("b");
    rig.page("b", first.round, true, vec![row("a", 5, 1, 900, 0)]);
    let second = rig.pull_of("b");
    assert_ne!(first.round, second.round);
    assert_eq!(second.after.values().copied().collect::<Vec<_>>(), [Seq(1)]);
    assert!(!rig.issuance.is_caught_up());
    rig.page("b", second.round, false, vec![row("a", 5, 2, 901, 0)]);
    assert!(rig.issuance.is_caught_up());
    assert_eq!(rig.issuance.spine().fold().tip, Some(Window(901)));
}

#[test]
fn cursors_that_do_not_fit_a_frame_are_asked_for_in_ranges() {
    let long = "n".repeat(60);
    let rows: Vec<Stamped> = (1..2000).map(|boot| row(&long, boot, 1, 1000 + boot, 0)).collect();
    let recovered = Recovered { rows, promised: None };
    let mut rig = Rig::recovered("c", &config(), recovered, Guards::ON);
    rig.joins("b");
    let mut asked = 0;
    let mut next = None;
    loop {
        let pull = rig.pull_of("b");
        let bytes = Message::Pull(Arc::clone(&pull)).measure().escaped_bytes;
        assert!(bytes <= PAGE_BYTES_MAX + 512, "{bytes}");
        assert_eq!(pull.from, next, "ranges follow one another");
        asked += pull.after.len();
        next.clone_from(&pull.until);
        rig.page("b", pull.round, false, vec![]);
        if next.is_none() {
            break;
        }
        assert!(!rig.issuance.is_caught_up());
    }
    assert_eq!(asked, 1999);
    assert!(rig.issuance.is_caught_up());
}

#[test]
fn a_row_is_in_no_page_before_it_is_durable_and_in_the_fold_at_once() {
    let mut rig = Rig::new("c", &config());
    rig.joins("b");
    rig.answers("b", vec![row("a", 5, 1, 900, 0)]);
    assert_eq!(rig.issuance.spine().fold().tip, Some(Window(900)));
    let now = rig.now();
    let rows_of = |rig: &mut Rig| {
        rig.issuance.pulled(now, &id("b"), &Pull::default());
        rig.run();
        match rig.sent.pop() {
            Some((_, Message::Page(page))) => page.rows.len(),
            other => panic!("no page: {other:?}"),
        }
    };
    assert_eq!(rows_of(&mut rig), 0);
    rig.answer(DURABLE);
    assert_eq!(rows_of(&mut rig), 1);
}

#[test]
fn one_row_at_a_time_waits_for_the_disk() {
    let mut rig = Rig::new("a", &config());
    rig.pass(50, None);
    assert_eq!(rig.writes.len(), 1);
    assert_eq!(rig.saw(|event| matches!(event, IssuanceEvent::Sealing { .. })), 1);
    assert_eq!(rig.seals(), NONE);
}

#[test]
fn a_refused_row_is_given_up_and_the_next_window_is_tried_anew() {
    let mut rig = Rig::new("a", &config());
    rig.pass(45, Some(Written::Refused));
    assert!(rig.saw(|event| matches!(event, IssuanceEvent::SealRefused { .. })) > 1);
    assert_eq!(rig.saw(|event| matches!(event, IssuanceEvent::DiskRefused {})), 1, "told once");
    assert_eq!(rig.issuance.spine().fold().tip, None);
    rig.pass(3, DURABLE);
    let first = rig.issuance.spine().durable().next().unwrap();
    assert_eq!(first.seq, Seq(1), "no number was lost");
}

#[test]
fn replicated_rows_of_a_refused_batch_are_written_again() {
    let mut rig = Rig::new("c", &config());
    rig.joins("b");
    rig.answers("b", vec![row("a", 5, 1, 900, 0)]);
    rig.answer(Some(Written::Refused));
    assert_eq!(rig.issuance.spine().durable_rows(), 0);
    rig.pass(3, DURABLE);
    assert_eq!(rig.issuance.spine().durable_rows(), 1);
}

/// An issuer with two live peers that have told it everything, held for `z` ticks and run again.
fn held(z: u64) -> Rig {
    let mut rig = Rig::new("a", &config());
    rig.joins("b");
    rig.joins("c");
    rig.answers("b", vec![]);
    rig.answers("c", vec![]);
    rig.pass(10, DURABLE);
    rig.events.clear();
    rig.us += z * Z_US;
    rig.run();
    rig
}

#[test]
fn an_issuer_that_was_held_asks_every_peer_again_before_it_seals() {
    let mut rig = held(70);
    rig.pass(2, DURABLE);
    assert_eq!(rig.seals(), NONE, "nobody has told what happened meanwhile");
    rig.answers("b", vec![row("b", 9, 1, 1_000_075, 1)]);
    rig.answers("c", vec![]);
    rig.pass(5, DURABLE);
    assert_eq!(rig.seals(), NONE, "another holds the lease");
    assert_eq!(rig.issuance.role_at_last(), Role::Replica);
}

#[test]
fn an_issuer_that_was_held_goes_on_when_its_peers_have_no_news() {
    let mut rig = held(70);
    rig.answers("b", vec![]);
    rig.answers("c", vec![]);
    rig.pass(2, DURABLE);
    assert_eq!(rig.seals().len(), 3, "one at once, and one a window");
    let mut alone = held(70);
    alone.pass(39, DURABLE);
    assert_eq!(alone.seals(), NONE);
    alone.pass(3, DURABLE);
    assert!(!alone.seals().is_empty(), "nobody answers, and the grace is over");
}

#[test]
fn a_wake_up_that_is_a_little_late_is_no_break() {
    let mut rig = held(5);
    rig.pass(1, DURABLE);
    assert!(!rig.seals().is_empty());
}

#[test]
fn an_issuer_that_sees_a_higher_lease_stands_down_at_once_even_with_a_stalled_disk() {
    let mut rig = Rig::new("a", &config());
    rig.pass(45, DURABLE);
    assert_eq!(rig.issuance.role_at_last(), Role::Issuer(Some(Epoch(0))));
    rig.joins("b");
    rig.pass(2, None);
    rig.answers("b", vec![row("b", 9, 1, 1_000_047, 1)]);
    assert_eq!(rig.issuance.role_at_last(), Role::Replica);
    assert_eq!(rig.saw(|event| matches!(event, IssuanceEvent::Demoted { .. })), 1);
    let stamped = rig.saw(|event| matches!(event, IssuanceEvent::Sealing { .. }));
    rig.pass(30, DURABLE);
    assert_eq!(rig.saw(|event| matches!(event, IssuanceEvent::Sealing { .. })), stamped);
}

#[test]
fn a_promoted_node_that_restarts_is_the_issuer_still() {
    let rows = vec![row("a", 5, 1, 999_900, 0), row("b", 9, 1, 999_990, 1)];
    let mut rig = Rig::recovered("b", &config(), Recovered { rows, promised: None }, Guards::ON);
    rig.pass(45, DURABLE);
    assert_eq!(rig.issuance.role_at_last(), Role::Issuer(Some(Epoch(1))));
    assert!(!rig.seals().is_empty());
}

#[test]
fn every_boot_numbers_its_rows_in_a_stream_of_its_own() {
    // The wall clock shows the incarnation of an earlier boot again: 77.
    let rows = vec![row("a", 77, 1, 999_900, 0)];
    let mut rig = Rig::recovered("a", &config(), Recovered { rows, promised: None }, Guards::ON);
    rig.pass(45, DURABLE);
    let boots: BTreeSet<u64> = rig.issuance.spine().durable().map(|entry| entry.origin.boot.0).collect();
    assert_eq!(boots, [77, 78].into());
}

/// A replica whose issuer `a` fell silent, with `c` beside it.
fn silent(config: &IssuanceConfig) -> Rig {
    let mut rig = Rig::new("b", config);
    rig.joins("a");
    rig.joins("c");
    rig.answers("a", vec![row("a", 5, 1, 1_000_000, 0)]);
    rig.issuance.gone(&id("a"));
    rig.pass(60, DURABLE);
    rig
}

#[test]
fn the_first_ranked_fit_candidate_promotes_itself_and_resumes_from_the_shared_tip() {
    let mut rig = silent(&config());
    rig.standing.insert(id("c"), (true, 1_000_000, 0));
    rig.pass(20, DURABLE);
    assert_eq!(rig.saw(|event| matches!(event, IssuanceEvent::Promoted { epoch: Epoch(1) })), 1);
    let first = rig.issuance.spine().durable().find(|entry| entry.origin.node == id("b")).unwrap();
    assert_eq!((first.row.from_window, first.row.elapsed), (Window(1_000_000), 8));
    assert_eq!(first.row.epoch(), Some(Epoch(1)));
}

#[test]
fn a_candidate_is_counted_among_the_field_after_it_left_the_view() {
    let rig = silent(&config());
    assert_eq!(rig.issuance.field().len(), 3);
    let guards = Guards { field_keeps_the_dead: false, ..Guards::ON };
    let mut rig = Rig::recovered("b", &config(), Recovered::default(), guards);
    rig.joins("a");
    rig.issuance.gone(&id("a"));
    assert_eq!(rig.issuance.field().len(), 1);
}

#[test]
fn a_fit_holder_that_answers_is_not_replaced() {
    let mut rig = silent(&config());
    for peer in ["a", "c"] {
        rig.standing.insert(id(peer), (true, 1_000_000, 0));
    }
    rig.pass(70, DURABLE);
    assert_eq!(rig.saw(|event| matches!(event, IssuanceEvent::Promoted { .. })), 0);
    assert_eq!(rig.issuance.decision().unwrap().index(), 6);
}

#[test]
fn a_promotion_lapses_when_the_disk_refuses() {
    let mut rig = silent(&config());
    rig.standing.insert(id("c"), (true, 1_000_000, 0));
    rig.pass(20, Some(Written::Refused));
    assert_eq!(rig.saw(|event| matches!(event, IssuanceEvent::PromotionLapsed { .. })), 1);
    assert_eq!(rig.issuance.promoted(), None);
    assert_eq!(rig.issuance.role_at_last(), Role::Replica);
}

#[test]
fn an_operator_stops_the_issuer_and_lets_it_go_on() {
    let mut rig = Rig::new("a", &config());
    rig.pass(45, DURABLE);
    let before = rig.seals().len();
    rig.issuance.pause(true);
    rig.pass(5, DURABLE);
    assert_eq!(rig.seals().len(), before);
    rig.issuance.pause(false);
    rig.pass(1, DURABLE);
    assert!(rig.seals().len() > before);
    let last = rig.issuance.spine().winners().next_back().unwrap();
    assert!(last.row.elapsed <= 8);
}

#[test]
fn a_clock_an_hour_ahead_of_two_others_does_not_seal() {
    let mut rig = Rig::new("a", &config());
    for peer in ["b", "c"] {
        rig.joins(peer);
        rig.answers(peer, vec![]);
    }
    rig.pass(3, DURABLE);
    let before = rig.seals().len();
    assert!(before > 0);
    rig.wall_offset_us = 3_600_000_000;
    rig.pass(2, DURABLE);
    assert_eq!(rig.seals().len(), before);
    assert_eq!(rig.saw(|event| matches!(event, IssuanceEvent::ClockAhead { .. })), 1);
}

#[test]
fn windows_sealed_by_a_clock_ahead_are_announced_as_a_wait() {
    let mut rig = Rig::new("b", &config());
    rig.joins("a");
    rig.answers("a", vec![row("a", 5, 1, 1_004_600, 0)]);
    assert_eq!(rig.saw(|event| matches!(event, IssuanceEvent::TipAheadOfClock { wait_z: Z(4601) })), 1);
}

#[test]
fn a_frozen_wall_clock_does_not_make_the_machine_spin() {
    let mut rig = Rig::new("a", &config());
    rig.pass(45, DURABLE);
    let mut calls = 0;
    let until = rig.us + 10_000_000;
    while rig.issuance.next_deadline().as_micros() < until {
        let due = rig.issuance.next_deadline().as_micros();
        rig.wall_offset_us -= i64::try_from(due - rig.us).unwrap();
        rig.us = due;
        rig.run();
        rig.answer(DURABLE);
        calls += 1;
    }
    assert!(calls < 1_100, "{calls} calls in 10 s");
}

#[test]
fn with_fencing_nothing_is_sealed_before_a_majority_has_promised() {
    let mut rig = Rig::new("a", &fenced());
    rig.joins("b");
    rig.joins("c");
    rig.pass(100, DURABLE);
    assert_eq!(rig.seals(), NONE);
    let request = |rig: &Rig| {
        rig.sent.iter().rev().find_map(|(to, message)| match message {
            Message::Claim(request) if *to == id("b") => Some(*request),
            _ => None,
        })
    };
    let Some(Request { round, kind, electorate, .. }) = request(&rig) else { panic!("b was not asked") };
    assert_eq!(kind, Kind::Renewal);
    let now = rig.now().instant;
    rig.issuance.voted(now, &id("b"), &Reply { round, electorate, verdict: Verdict::Promised });
    rig.run();
    rig.pass(2, DURABLE);
    assert!(!rig.seals().is_empty(), "its own promise and b's are a majority of three");
    assert_eq!(rig.saw(|event| matches!(event, IssuanceEvent::FenceHeld { .. })), 1);
    let sealed = rig.seals().len();
    rig.pass(60, DURABLE);
    assert!(rig.seals().len() < sealed + 46, "the promise runs out");
    assert_eq!(rig.saw(|event| matches!(event, IssuanceEvent::FenceLost {})), 1);
}

#[test]
fn an_elector_answers_when_its_epoch_is_durable() {
    let mut rig = Rig::new("b", &fenced());
    rig.pass(50, DURABLE);
    let electorate = rig.issuance.electorate.digest();
    let request = Request { kind: Kind::Grant, round: 9, epoch: Epoch(3), electorate };
    let votes =
        |rig: &Rig| rig.sent.iter().filter(|(_, message)| matches!(message, Message::Vote(_))).count();
    let now = rig.now();
    rig.issuance.claimed(now, &id("c"), &request);
    rig.run();
    assert_eq!(votes(&rig), 0);
    assert_eq!(rig.writes.last().unwrap().1.promised, Some(Epoch(3)));
    rig.answer(DURABLE);
    assert_eq!(votes(&rig), 1);
}

#[test]
fn unix_milliseconds_travel_whole_and_never_negative() {
    assert_eq!(UnixMs::from(WallTime::from_unix_ms(-5)), UnixMs(0));
    assert_eq!(WallTime::from(UnixMs(u64::MAX)), WallTime::from_unix_ms(i64::MAX));
}
