//! The conductor over a scripted engine: what fires when, on whom, and what is made of it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use firedrill_core::endpoint::LinkSizes;
use firedrill_core::id::{Incarnation, NodeId, Seq};
use firedrill_core::io::{
    CloseReason, Command, Event, InboundId, NodeInput, NodeOutput, Outbox, Refusal, Reply, ResetReason,
};
use firedrill_core::metrics::Metrics;
use firedrill_core::node::{Node, Recovered};
use firedrill_core::rng::Seed;
use firedrill_core::time::{Instant, Now};
use firedrill_core::wire::Header;
use firedrill_core::wire::message::{Document, MemberRecord, Message, Payload, RecordStatus};

use super::{EngineLabel, RunError, RunOptions, conduct};
use crate::engine::{
    Cause, Engine, EngineKind, Fault, FaultId, Flow, HostState, RunStats, Step, WALL_AT_START, Watch,
};
use crate::oracles::RULES;
use crate::outcome::{Outcome, Verdict};
use crate::scenario::LoadOptions;
use crate::scenario::model::{HostIx, Scenario};

const A: HostIx = HostIx(0);
const B: HostIx = HostIx(1);
const C: HostIx = HostIx(2);

/// What the script makes a host do.
#[derive(Debug, Clone)]
enum Act {
    /// Report this.
    Report(Event),
    /// Accept a push of this peer, which brings it into the view.
    Hear(HostIx),
    /// Fall over.
    Panic,
}

/// An engine in which nothing happens but what the script says, and what faults do to hosts.
struct Fake {
    now: Instant,
    scenario: Scenario,
    nodes: Vec<Option<(Node, u32, bool)>>,
    boots: Vec<u32>,
    script: BTreeMap<(u64, usize), (HostIx, Act)>,
    applied: RefCell<Vec<(u64, Fault)>>,
    idle: BTreeSet<usize>,
    seq: u64,
    commands: Vec<(u64, HostIx)>,
}

impl Fake {
    fn new(scenario: &Scenario, script: &[(u64, HostIx, Act)]) -> Self {
        let hosts = scenario.hosts.len();
        Self {
            now: Instant::ZERO,
            scenario: scenario.clone(),
            nodes: (0..hosts).map(|_| None).collect(),
            boots: vec![0; hosts],
            script: script
                .iter()
                .enumerate()
                .map(|(n, (at, host, act))| ((*at, n), (*host, act.clone())))
                .collect(),
            applied: RefCell::default(),
            idle: BTreeSet::new(),
            seq: 0,
            commands: Vec::new(),
        }
    }

    fn clocks(&self) -> Now {
        let us = i64::try_from(self.now.as_micros()).unwrap();
        Now { instant: self.now, wall: WALL_AT_START.offset_micros(us) }
    }

    fn show(&self, host: HostIx, cause: Cause<'_>, events: &[Event], watch: &mut dyn Watch) -> Flow {
        let Some((node, boot, _)) = &self.nodes[host.0] else { return Flow::Continue };
        watch.observe(&Step {
            at: self.now,
            now: self.clocks(),
            host,
            boot: *boot,
            cause,
            node,
            counts: crate::engine::Counts::Node,
            events,
            frames_sent: 0,
            bytes_sent: 0,
            links: LinkSizes::default(),
            alarms: &[],
        })
    }

    fn boot(&mut self, host: HostIx, watch: &mut dyn Watch) {
        let config = self.scenario.hosts[host.0].node_config();
        let node = Node::new(&config, Seed::from_u64(1), Recovered::default(), self.clocks());
        let started = Event::Started { incarnation: node.boot_incarnation() };
        self.nodes[host.0] = Some((node, self.boots[host.0], false));
        self.boots[host.0] += 1;
        self.show(host, Cause::Boot, &[started], watch);
    }

    fn down(&mut self, host: HostIx, graceful: bool, watch: &mut dyn Watch) {
        if let Some((_, boot, _)) = self.nodes[host.0].take() {
            watch.down(self.now, host, boot, graceful);
        }
    }

    /// Hands an input to a node and shows what it reported.
    fn feed(&mut self, host: HostIx, input: NodeInput, watch: &mut dyn Watch) -> Flow {
        let now = self.clocks();
        let mut out = Outbox::new();
        if let Some((node, ..)) = &mut self.nodes[host.0] {
            node.handle(now, input, &mut out);
        }
        let events: Vec<Event> = out
            .drain()
            .filter_map(|output| if let NodeOutput::Event(event) = output { Some(event) } else { None })
            .collect();
        self.show(host, Cause::Wire, &events, watch)
    }

    fn push_of(&mut self, peer: HostIx) -> NodeInput {
        let host = &self.scenario.hosts[peer.0];
        let incarnation = Incarnation(1_767_225_600_000);
        let record =
            MemberRecord { addr: host.config.advertised().into(), incarnation, status: RecordStatus::Alive };
        let mut document = Document::default();
        document.members.insert(host.id.clone(), record);
        self.seq += 1;
        let header = Header { sender: host.id.clone(), incarnation, seq: Seq(self.seq) };
        NodeInput::Frame { header, payload: Payload::Value(Message::StatePush { state: Arc::new(document) }) }
    }

    /// The faults applied, boots at the very start left out, as `(ms, fault)`.
    fn applied(&self) -> Vec<(u64, Fault)> {
        let first = |(at, fault): &&(u64, Fault)| !(*at == 0 && matches!(fault, Fault::Start { .. }));
        self.applied.borrow().iter().filter(first).cloned().collect()
    }
}

impl Engine for Fake {
    fn now(&self) -> Instant {
        self.now
    }

    fn run_until(&mut self, until: Instant, watch: &mut dyn Watch) -> Flow {
        while let Some(entry) = self.script.first_entry() {
            if entry.key().0 >= until.as_micros() {
                break;
            }
            self.now = Instant::from_micros(entry.key().0);
            let (host, act) = entry.remove();
            let flow = match act {
                Act::Report(event) => self.show(host, Cause::Wire, &[event], watch),
                Act::Hear(peer) => {
                    let push = self.push_of(peer);
                    self.feed(host, push, watch)
                }
                Act::Panic => panic!("scripted"),
            };
            if flow == Flow::Stop {
                return Flow::Stop;
            }
        }
        self.now = until;
        Flow::Continue
    }

    fn command(
        &mut self,
        host: HostIx,
        command: Command,
        watch: &mut dyn Watch,
    ) -> Option<Result<Reply, Refusal>> {
        self.commands.push((self.now.as_micros() / 1000, host));
        let now = self.clocks();
        let mut out = Outbox::new();
        self.nodes[host.0].as_mut()?.0.handle(now, NodeInput::Command(command.clone()), &mut out);
        self.show(host, Cause::Command(&command), &[], watch);
        out.drain().find_map(|output| if let NodeOutput::Reply(reply) = output { Some(reply) } else { None })
    }

    fn apply(&mut self, fault: &Fault, watch: &mut dyn Watch) -> FaultId {
        self.applied.borrow_mut().push((self.now.as_micros() / 1000, fault.clone()));
        match fault {
            Fault::Kill(host) => self.down(*host, false, watch),
            Fault::Stop(host) => self.down(*host, true, watch),
            Fault::Start { host, .. } => self.boot(*host, watch),
            Fault::Disk { .. } => {}
            Fault::Pause(host) | Fault::Resume(host) => {
                if let Some((.., paused)) = &mut self.nodes[host.0] {
                    *paused = matches!(fault, Fault::Pause(_));
                }
            }
            Fault::Block(_)
            | Fault::Unblock(_)
            | Fault::Hold(_)
            | Fault::Release(_)
            | Fault::Link(..)
            | Fault::HalfOpen(_)
            | Fault::ClockStep { .. }
            | Fault::ClockRate { .. }
            | Fault::ClockFreeze { .. }
            | Fault::Replay { .. }
            | Fault::Corrupt(..)
            | Fault::Forge { .. }
            | Fault::Flood { .. } => {}
        }
        FaultId(self.applied.borrow().len() - 1)
    }

    fn had_effect(&self, fault: FaultId) -> bool {
        !self.idle.contains(&fault.0)
    }

    fn state(&self, host: HostIx) -> HostState {
        match &self.nodes[host.0] {
            None => HostState::Down,
            Some((.., true)) => HostState::Paused,
            Some(_) => HostState::Up,
        }
    }

    fn with_node(&self, host: HostIx, look: &mut dyn FnMut(&Node)) {
        if let Some((node, ..)) = &self.nodes[host.0] {
            look(node);
        }
    }

    fn metrics(&self, host: HostIx) -> Option<Metrics> {
        self.nodes[host.0].as_ref().map(|(node, ..)| node.metrics().clone())
    }

    fn stats(&self) -> RunStats {
        RunStats::default()
    }
}

/// A scenario of three hosts and ten seconds, in which nothing has to be agreed on.
fn scenario(body: &str) -> Scenario {
    let text = format!(
        r#"
        name = "drill"
        about = "A drill."
        time_limit = "10s"
        [nodes]
        names = ["a", "b", "c"]
        {body}"#
    );
    let missing = |_: &Path| Err(std::io::Error::other("no includes"));
    let options = LoadOptions::for_engine(EngineKind::Event);
    let mut scenario = Scenario::parse(&text, Path::new("drill.toml"), &missing, options)
        .unwrap_or_else(|report| panic!("{report:?}"));
    // What the script reports is no cluster that an oracle could make sense of.
    scenario.oracles_off = RULES.iter().map(|rule| (rule.name.to_owned(), "scripted".to_owned())).collect();
    scenario
}

const LABEL: EngineLabel = EngineLabel { engine: "fake", wire: Some("fast"), tick_ms: None };

fn play(body: &str, script: &[(u64, HostIx, Act)]) -> (Outcome, Fake) {
    let scenario = scenario(body);
    let mut engine = Fake::new(&scenario, script);
    let outcome = conduct(&scenario, &mut engine, LABEL, &RunOptions::default()).unwrap();
    (outcome, engine)
}

fn id(name: &str) -> NodeId {
    NodeId::new(name).unwrap()
}

fn down(name: &str) -> Act {
    Act::Report(Event::MemberDown { id: id(name) })
}

fn held(outcome: &Outcome) -> Vec<bool> {
    outcome.expectations.iter().map(|result| result.held).collect()
}

#[test]
fn steps_of_one_moment_fire_in_the_order_of_the_file() {
    let (_, engine) = play(
        r#"
        [[step]]
        at = "2s"
        kill = "a"
        [[step]]
        at = "2s"
        pause = "c"
        for = "1s"
        [[step]]
        at = "3s"
        pause = "b"
        "#,
        &[],
    );
    let expected = [
        (2000, Fault::Kill(A)),
        (2000, Fault::Pause(C)),
        (3000, Fault::Resume(C)),
        (3000, Fault::Pause(B)),
        (10_000, Fault::Resume(B)),
    ];
    assert_eq!(engine.applied(), expected, "the killed stays down, the paused goes on at the time limit");
}

#[test]
fn an_event_of_a_connection_is_meant_only_with_the_reason_that_was_asked_for() {
    let closed = |reason| Act::Report(Event::InboundClosed { inbound: InboundId(1), reason });
    let addr = ([192, 168, 0, 2], 7946).into();
    let reset = |reason| Act::Report(Event::LinkReset { addr, reason });
    let body = r#"
        [[expect]]
        sometimes = { event = { inbound_closed = "a" } }
        [[expect]]
        sometimes = { event = { inbound_closed = "a", reason = "idle" } }
        [[expect]]
        sometimes = { event = { inbound_closed = "a", reason = "displaced" } }
        [[expect]]
        sometimes = { event = { link_reset = "any", reason = "peer_silent" } }
        [[expect]]
        sometimes = { event = { link_reset = "any", reason = "dial_timeout" } }
        "#;
    let script = [(2_000_000, A, closed(CloseReason::Idle)), (3_000_000, B, reset(ResetReason::DialTimeout))];
    let (outcome, _) = play(body, &script);
    assert_eq!(held(&outcome), [true, true, false, false, true]);
    assert_eq!(
        outcome.expectations[1].text, "sometimes: event inbound_closed on a (idle)",
        "the reason is told"
    );
}

#[test]
fn a_trigger_waits_for_the_step_before_it_and_takes_the_first_event_after_that() {
    let body = r#"
        [[step]]
        at = "4s"
        pause = "b"
        [[step]]
        when = { down = "a", on = "c" }
        after = "500ms"
        kill = "c"
        "#;
    let script = [
        (3_000_000, C, down("a")),
        (4_500_000, B, down("a")),
        (5_000_000, C, down("b")),
        (6_000_000, C, down("a")),
        (7_000_000, C, down("a")),
    ];
    let (outcome, engine) = play(body, &script);
    assert_eq!(engine.applied()[1], (6500, Fault::Kill(C)));
    assert_eq!(outcome.unfired_steps, [""; 0]);
    assert_eq!(outcome.verdict, Verdict::Pass);
}

#[test]
fn a_trigger_without_delay_acts_before_the_next_event_of_that_moment() {
    let body = r#"
        [[step]]
        when = { down = "a" }
        kill = "b"
        [[expect]]
        never = { event = { suspect = "a", on = "b" } }
        "#;
    let suspect = Act::Report(Event::MemberSuspect { id: id("a") });
    let script = [(2_000_000, C, down("a")), (2_000_000, B, suspect)];
    let (outcome, engine) = play(body, &script);
    assert_eq!(engine.applied(), [(2000, Fault::Kill(B))]);
    assert_eq!(held(&outcome), [true], "b was dead before it could report");
}

#[test]
fn a_step_that_never_fires_fails_the_run() {
    let body = r#"
        [[step]]
        when = { down = "a" }
        kill = "b"
        "#;
    let (outcome, _) = play(body, &[]);
    assert_eq!(outcome.verdict, Verdict::Expectation);
    assert_eq!(outcome.unfired_steps, ["step 1 (kill b when down a)"]);
}

#[test]
fn a_repeated_step_fires_until_its_last_moment_and_each_time_ends_by_itself() {
    let body = r#"
        [[step]]
        at = "1s"
        every = "2s"
        until = "5s"
        pause = "a"
        for = "500ms"
        "#;
    let (_, engine) = play(body, &[]);
    let moments: Vec<u64> = engine.applied().iter().map(|(at, _)| *at).collect();
    assert_eq!(moments, [1000, 1500, 3000, 3500, 5000, 5500]);
}

#[test]
fn an_inner_cut_that_ends_leaves_the_outer_partition_alone() {
    let body = r#"
        [[step]]
        at = "1s"
        partition = [["a"], ["b", "c"]]
        for = "4s"
        [[step]]
        at = "2s"
        cut = { from = "a", to = "b" }
        for = "1s"
        "#;
    let (_, engine) = play(body, &[]);
    let all = vec![(A, B), (A, C), (B, A), (C, A)];
    let expected =
        [(1000, Fault::Block(all.clone())), (2000, Fault::Block(vec![(A, B)])), (5000, Fault::Unblock(all))];
    assert_eq!(engine.applied(), expected);
}

#[test]
fn a_deadline_counts_what_happens_at_it_and_nothing_later() {
    let body = r#"
        [[expect]]
        by = "3s"
        event = { down = "a" }
        [[expect]]
        by = "3s"
        event = { down = "b" }
        "#;
    let (outcome, _) = play(body, &[(3_000_000, C, down("a")), (3_000_001, C, down("b"))]);
    assert_eq!(held(&outcome), [true, false]);
    assert_eq!(outcome.expectations[1].at_us, 3_000_000);
    assert_eq!(outcome.expectations[1].seen.as_deref(), Some("it did not happen"));
    assert_eq!(outcome.verdict, Verdict::Expectation);
}

#[test]
fn an_expectation_counts_from_its_step_only() {
    let body = r#"
        [[step]]
        id = "blow"
        at = "5s"
        kill = "a"
        [[expect]]
        from = "blow"
        never = { event = { down = "b" } }
        [[expect]]
        from = "blow"
        by = "9s"
        event = { down = "c" }
        "#;
    let early = [(4_000_000, C, down("b")), (4_000_000, C, down("c"))];
    assert_eq!(held(&play(body, &early).0), [true, false]);
    let late = [(6_000_000, C, down("b")), (6_000_000, C, down("c"))];
    assert_eq!(held(&play(body, &late).0), [false, true]);
}

#[test]
fn a_view_holds_by_a_deadline_once_every_running_node_has_it() {
    let body = r#"
        [[step]]
        at = "3s"
        kill = "c"
        [[expect]]
        by = "2s"
        view = ["a", "b"]
        [[expect]]
        by = "4s"
        view = { on = ["a", "b"], members = ["a", "b"] }
        [[expect]]
        by = "4s"
        view = ["a", "b"]
        "#;
    let hear = [(1_000_000, A, Act::Hear(B)), (1_100_000, B, Act::Hear(A))];
    let (outcome, _) = play(body, &hear);
    assert_eq!(held(&outcome), [false, true, true], "c counts until it is down: {:?}", outcome.expectations);
    assert_eq!(outcome.expectations[0].seen.as_deref(), Some("a sees a, b; b sees a, b; c sees c"));
    assert_eq!(outcome.expectations[1].at_us, 1_100_000);
    assert_eq!(outcome.expectations[2].at_us, 3_000_000);
}

#[test]
fn always_breaks_at_the_first_moment_that_differs() {
    let body = r#"
        [[expect]]
        always = { view = { on = ["a"], members = ["a"] } }
        [[expect]]
        from = "2s"
        always = { view = { on = ["a"], members = ["a", "b"] } }
        "#;
    let (outcome, _) = play(body, &[(1_000_000, A, Act::Hear(B))]);
    assert_eq!(held(&outcome), [false, true]);
    assert_eq!(outcome.expectations[0].at_us, 1_000_000);
    assert_eq!(outcome.expectations[0].seen.as_deref(), Some("a sees a, b"));
}

#[test]
fn a_step_with_nobody_to_act_on_is_reported() {
    let body = r#"
        [[step]]
        at = "1s"
        resume = "a"
        [[step]]
        at = "2s"
        heal = true
        [[step]]
        at = "3s"
        cut = { from = "a", to = "b" }
        for = "1s"
        "#;
    let scenario = scenario(body);
    let mut engine = Fake::new(&scenario, &[]);
    // The cut is the fourth fault, after three boots.
    engine.idle.insert(3);
    let outcome = conduct(&scenario, &mut engine, LABEL, &RunOptions::default()).unwrap();
    let expected = [
        "step 1 (resume a at 1 s) changed nothing",
        "step 2 (heal at 2 s) changed nothing",
        "step 3 (cut a -> b at 3 s) changed nothing",
    ];
    assert_eq!(outcome.ineffective_faults, expected);
}

#[test]
fn clients_skip_who_is_down_or_held() {
    let body = r#"
        [[workload]]
        increment = "sightings"
        every = "1s"
        from = "1s"
        until = "6s"
        [[step]]
        at = "2500ms"
        kill = "b"
        [[step]]
        at = "2600ms"
        pause = "c"
        for = "2s"
        "#;
    let (outcome, engine) = play(body, &[]);
    assert_eq!(engine.commands, [(1000, A), (2000, B), (3000, A), (4000, A), (5000, C), (6000, A)]);
    assert_eq!(outcome.numbers.increments, 6);
}

#[test]
fn a_restart_in_the_same_millisecond_waits_for_the_next() {
    let body = r#"
        [[step]]
        at = "2s"
        restart = "a"
        [[step]]
        at = "2s"
        restart = "a"
        "#;
    let boot = || Fault::Start { host: A, wall_step_us: None, addr: None, lose_disk: false };
    let (outcome, engine) = play(body, &[]);
    let all = engine.applied();
    assert_eq!(all, [(2000, Fault::Kill(A)), (2000, boot()), (2000, Fault::Kill(A)), (2001, boot())]);
    assert_eq!(engine.boots[0], 3);
    assert!(!outcome.timeline.iter().any(|entry| entry.text.contains("had already")));
}

#[test]
fn a_panic_in_a_run_is_a_safety_violation_with_its_message() {
    let (outcome, _) = play("", &[(1_500_000, A, Act::Panic)]);
    assert_eq!(outcome.verdict, Verdict::Safety);
    let violation = outcome.violation.unwrap();
    assert_eq!((violation.oracle, violation.at_us), ("no_alarm", 1_500_000));
    assert_eq!(violation.fact, "a panic: scripted");
}

#[test]
fn a_cancelled_run_has_no_outcome() {
    let options = RunOptions { cancel: Some(Arc::new(AtomicBool::new(true))), ..RunOptions::default() };
    let scenario = scenario("");
    let mut engine = Fake::new(&scenario, &[]);
    let error = conduct(&scenario, &mut engine, LABEL, &options).unwrap_err();
    assert_eq!(error, RunError::Cancelled { at_ms: 0 });
}

#[test]
fn refusals_of_one_second_are_one_line() {
    let reason = firedrill_core::wire::Reject::Mac;
    let refused = || Act::Report(Event::Rejected { reason, sender: None, inbound: None });
    let script: Vec<_> = [1_000_000, 1_200_000, 1_900_000, 2_100_000].map(|at| (at, A, refused())).to_vec();
    let (outcome, _) = play("", &script);
    let lines: Vec<&str> = outcome
        .timeline
        .iter()
        .map(|entry| entry.text.as_str())
        .filter(|text| text.contains("rejects"))
        .collect();
    let expected =
        ["rejects a frame: wrong signature (3 times within a second)", "rejects a frame: wrong signature"];
    assert_eq!(lines, expected);
}

#[test]
fn nodes_that_never_agree_fail_the_liveness_phase_within_the_bound() {
    let mut scenario = scenario("");
    scenario.oracles_off.retain(|name, _| RULES.iter().any(|rule| rule.name == name && !rule.liveness));
    let mut engine = Fake::new(&scenario, &[]);
    let outcome = conduct(&scenario, &mut engine, LABEL, &RunOptions::default()).unwrap();
    assert_eq!(outcome.verdict, Verdict::Liveness);
    let end = Duration::from_micros(outcome.numbers.simulated_us);
    let due = scenario.time_limit + Duration::from_micros(outcome.numbers.convergence_bound_us);
    assert!(end >= due && end < due + Duration::from_secs(1), "{end:?} for {due:?}");
    assert_eq!(outcome.numbers.convergence_us, None);
}
