//! The oracles and the shipped scenarios have teeth: each oracle, alone, is seen to fire in a whole drill once the
//! core is broken on purpose, and each guard of the protocol is missed by an oracle that is meant to miss it.
//!
//! Alone means that every other oracle is turned off, so that no sibling speaks first. The same drill with the same
//! oracle and nothing broken is clean, so what fires is due to the breakage.
//!
//! Absent: seeds other than each scenario's own. Finding by chance is a fuzzer's work; here every breakage has a
//! story that shows it for certain.

#[expect(dead_code, reason = "shared with tests that need the rest")]
mod common;

use std::collections::BTreeSet;
use std::path::PathBuf;

use firedrill_core::guards::Guards;
use firedrill_core::io::{Alarm, Command, Refusal, Reply};
use firedrill_core::metrics::Metrics;
use firedrill_core::node::Node;
use firedrill_core::rng::Seed;
use firedrill_core::time::Instant;
use firedrill_sim::drill::{self, EngineLabel, RunOptions};
use firedrill_sim::engine::event::{EventEngine, EventOptions};
use firedrill_sim::engine::{
    Cause, Engine, EngineKind, Fault, FaultId, Flow, HostState, RunStats, Step, Watch, Wire,
};
use firedrill_sim::oracles::RULES;
use firedrill_sim::oracles::sabotage::SABOTAGE;
use firedrill_sim::outcome::Outcome;
use firedrill_sim::scenario::model::HostIx;
use firedrill_sim::scenario::{LoadOptions, Scenario};

/// How the core is broken.
#[derive(Debug, Clone, Copy)]
enum Breakage {
    /// A guard is turned off, by the name it has in [`SABOTAGE`].
    Guard(&'static str),
    /// The same, on the full wire, though the scenario would do without bytes.
    OnBytes(&'static str),
    /// A configuration that validation refuses: members count as silent before their next push is due.
    HastySuspicion,
    /// A configuration that differs from node to node: the last host takes rows of one window at most.
    SmallerCap,
    /// The first host misbehaves in the middle of the drill.
    Machine(Malady),
}

/// What a machine does that no core does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Malady {
    /// It reports a broken invariant of its own.
    Alarm,
    /// It panics.
    Panic,
    /// It goes on with the memory it had five seconds earlier.
    Amnesia,
    /// Its rows become durable though its disk never answered.
    Unanswered,
    /// It is woken again at the same instant, until somebody stops it.
    Busy,
}

/// When a malady breaks out, after what it falls back to was kept.
const KEPT_AT: Instant = Instant::from_micros(2_000_000);
const OUTBREAK: Instant = Instant::from_micros(7_000_000);

use Breakage::{Guard, HastySuspicion, Machine, OnBytes, SmallerCap};

/// Oracle, breakage, scenario: that oracle alone fires in that scenario broken that way.
const TEETH: &[(&str, Breakage, &str)] = &[
    ("no_alarm", Machine(Malady::Alarm), "converge-3"),
    ("no_alarm", Machine(Malady::Panic), "converge-3"),
    ("progress", Machine(Malady::Busy), "converge-3"),
    ("counter_monotonic", Machine(Malady::Amnesia), "converge-3"),
    ("counter_bounded", Guard("cells_merge_by_max"), "converge-2"),
    ("cell_single_writer", Guard("cell_per_boot"), "kill-restart"),
    ("view_no_down", Guard("suspicion"), "kill-suspicion"),
    ("view_no_down", Guard("stale_frames_unheard"), "deaf-return"),
    ("dead_leaves_view", Guard("suspicion"), "kill-suspicion"),
    ("dead_leaves_view", Guard("left_beats_alive"), "graceful-leave"),
    ("tables_bounded", Guard("bounds"), "too-many-counters"),
    ("incarnation_rises", Guard("echo_exempt"), "converge-3"),
    ("incarnation_rises", Guard("refutation_limited"), "duplicate-node-id"),
    ("records_monotone", Guard("reap_memory"), "replay-after-reap"),
    ("left_by_own_word", Guard("heard_outranks_hearsay"), "deaf-node"),
    ("late_round", Guard("late_round_restarts"), "pause"),
    ("silent_buried", Guard("silent_converted"), "mute-node"),
    ("rounds_paced", Guard("push_jitter"), "kill-restart"),
    ("no_false_suspicion", HastySuspicion, "converge-3"),
    ("seq_monotone", Guard("replay_check"), "replay-after-restart"),
    ("frame_cap", Guard("frame_cap"), "oversized-document"),
    ("views_agree", Guard("direct_after_push"), "a-message-ahead-of-its-push"),
    ("views_agree", Guard("refutation"), "clock-back-restart"),
    ("views_agree", Guard("refutation_leaps"), "refutes-to-the-same-incarnation"),
    ("views_agree", Guard("watermark_reaped"), "reaped-return"),
    ("views_agree", Guard("refused_return_answered"), "reaped-return"),
    ("views_agree", Guard("tombstones_pushed"), "tombstone-refuted"),
    ("views_agree", Guard("watermark_only_accepted"), "replay-does-not-blind"),
    ("documents_agree", Guard("refutation"), "clock-back-restart"),
    ("frames_authentic", Guard("mac_checked"), "forged-frames"),
    ("frames_authentic", Guard("mac_covers_incarnation"), "corrupted-heads"),
    ("frames_authentic", Guard("cluster_checked"), "other-cluster"),
    ("frames_authentic", Guard("own_origin_refused"), "duplicate-node-id"),
    ("refused_unread", OnBytes("replay_before_payload"), "replay-after-restart"),
    ("no_false_replay", Guard("watermark_only_accepted"), "replay-does-not-blind"),
    ("views_agree", Guard("answer_elsewhere"), "replay-does-not-blind"),
    ("no_false_replay", Guard("watermark_reaped"), "reaped-return"),
    ("silence_alone", OnBytes("silence_only"), "leave-to-a-stranger"),
    ("silence_alone", Guard("adoption_restarts"), "deaf-node"),
    ("view_no_down", Guard("heard_to_enter"), "converge-chain"),
    ("farewell_heard", Guard("farewell_obeyed"), "graceful-leave"),
    ("farewell_heard", Guard("left_beats_alive"), "graceful-leave"),
    ("farewell_heard", Guard("leave_recorded"), "leave-to-a-stranger"),
    ("dead_leaves_view", Guard("farewell_obeyed"), "graceful-leave"),
    ("tombstones_kept", Guard("tombstone_restamped"), "left-twice"),
    ("tombstones_kept", Guard("heard_tombstone_kept"), "heard-tombstone"),
    ("incarnation_from_clock", Guard("incarnation_in_ms"), "converge-2"),
    ("views_agree", Guard("refutation_outranks"), "clock-back-restart"),
    ("documents_agree", Guard("refutation_outranks"), "clock-back-restart"),
    ("refutation_told", Guard("refutation_pushed"), "clock-back-restart"),
    ("refutation_told", Guard("seq_restarts"), "partition-past-the-record"),
    ("duplicate_told", Guard("duplicates_reported"), "duplicate-node-id"),
    ("views_agree", Guard("seeds_kept"), "forgotten-by-pairs"),
    ("records_monotone", Guard("notes_yield"), "return-above-the-note"),
    ("views_agree", Guard("rumours_pushed"), "two-notes-and-no-seed"),
    ("cell_follows_boot", Guard("cell_kept"), "clock-back-restart"),
    ("cell_follows_boot", Guard("cell_per_boot"), "kill-restart"),
    ("cell_follows_boot", Guard("cell_renewed"), "partition-past-the-record"),
    ("nudges_spaced", Guard("nudge_floor"), "graceful-leave"),
    ("unheard_redialled", Guard("silent_link_redialled"), "half-open"),
    ("dials_paced", OnBytes("dial_backoff"), "refused-dials"),
    ("tables_bounded", OnBytes("send_queue_bounded"), "full-pipe"),
    ("farewell_first", OnBytes("farewell_first"), "full-pipe"),
    ("departs_in_time", OnBytes("departure_bounded"), "leave-beside-the-dead"),
    ("tables_bounded", Guard("inbound_bounded"), "flood-silent"),
    ("strangers_make_room", Guard("stranger_displaced"), "flood-silent"),
    ("idle_closed", Guard("idle_covers_body"), "flood-half-frame"),
    ("strikes_close", Guard("strikes_kept"), "corrupted-frames"),
    ("strikes_close", Guard("cluster_charged"), "other-cluster"),
    ("counters_exact", Guard("cells_merge_by_max"), "converge-3"),
    ("counters_exact", Guard("tombstones_pushed"), "tombstone-refuted"),
    ("seals_caught_up", Guard("seal_after_catch_up"), "failover-drill"),
    ("seals_above_tip", Guard("resume_from_shared_tip"), "failover-drill"),
    ("seals_by_sane_clock", Guard("clock_checked"), "clock-forward-issuer"),
    ("seals_one_by_one", Guard("one_seal_in_flight"), "disk-stalled"),
    ("sealed_by_issuer", Guard("demotion"), "issuer-paused"),
    ("fence_excludes", Guard("fence_before_seal"), "fenced-minority"),
    ("one_row_a_window", Guard("rows_merged"), "isolated-issuer"),
    ("spines_agree", Guard("rows_merged"), "isolated-issuer"),
    ("fold_exact", Guard("lowest_id_holds"), "endless-duel"),
    ("leases_agree", Guard("lowest_id_holds"), "endless-duel"),
    ("numbers_once", Guard("stream_per_boot"), "lost-disk"),
    ("audit_exact", Guard("audit_by_windows"), "isolated-issuer"),
    ("promoted_by_rule", Guard("election_boot_grace"), "grace-outlasts-silence"),
    ("promoted_by_rule", Guard("empty_spine_elects_nobody"), "cold-start"),
    ("promoted_by_rule", Guard("field_of_one_holds"), "lone-survivor"),
    ("promoted_in_silence", Guard("silence_before_election"), "replica-cut-from-issuer"),
    ("promoted_by_rule", Guard("reachable_holder_stands"), "restarted-holder-stands"),
    ("decided_by_answers", Guard("unfit_replaced"), "disk-full"),
    ("promoted_by_rule", Guard("spine_behind_holds"), "behind-the-spine"),
    ("decided_by_answers", Guard("unfit_skipped"), "unfit-successor"),
    ("promoted_by_rule", Guard("unfit_skipped"), "unfit-successor"),
    ("decided_by_answers", Guard("electorate_compared"), "foreign-electorate"),
    ("issuer_seals", Guard("field_keeps_the_dead"), "failover-2"),
    ("promotions_lapse", Guard("promotion_lapses"), "promotion-lapses"),
    ("fence_excludes", Guard("promise_exclusive"), "one-promise-at-a-time"),
    ("fence_excludes", Guard("promise_waits_after_start"), "restarted-elector"),
    ("epochs_once", Guard("epoch_stored_first"), "epoch-on-disk"),
    ("epochs_once", Guard("epoch_never_regresses"), "epochs-rise"),
    ("fence_excludes", Guard("fence_from_sending"), "late-promise"),
    ("issuer_seals", Guard("claim_pauses"), "two-halves-ask"),
    ("unable_asks_nothing", Guard("unable_asks_nothing"), "unable-holder"),
    ("durable_first", Machine(Malady::Unanswered), "failover-drill"),
    ("supply_bounded", SmallerCap, "failover-drill"),
];

impl Breakage {
    fn guards(self) -> Guards {
        let mut guards = Guards::ON;
        if let Self::Guard(name) | Self::OnBytes(name) = self {
            let row = SABOTAGE.iter().find(|row| row.guard == name).expect("a guard that exists");
            (row.apply)(&mut guards);
        }
        guards
    }

    /// How the scenario is run, broken or not.
    fn options(self) -> RunOptions {
        let wire = matches!(self, Self::OnBytes(_)).then_some(Wire::Full);
        RunOptions { wire, timeline: false, ..RunOptions::default() }
    }

    fn run(self, mut scenario: Scenario) -> Outcome {
        let options = RunOptions { guards: self.guards(), ..self.options() };
        let outcome = match self {
            Self::Guard(_) | Self::OnBytes(_) => drill::run(&scenario, &options),
            Self::HastySuspicion => {
                for host in &mut scenario.hosts {
                    host.config.suspicion_timeout_ms = host.config.push_interval_ms / 2;
                }
                drill::run(&scenario, &options)
            }
            Self::SmallerCap => {
                let issuance = scenario.hosts.last_mut().and_then(|host| host.issuance.as_mut());
                issuance.expect("a drill of issuance").max_elapsed_per_seal = 1;
                drill::run(&scenario, &options)
            }
            Self::Machine(malady) => {
                let seed = Seed::from_u64(scenario.seed).fork("engine");
                let engine = EventOptions { guards: Guards::ON, keep_frames: false };
                let engine = EventEngine::fast(&scenario.hosts, scenario.net, seed, engine);
                let label = EngineLabel { engine: "event", wire: Some("fast"), tick_ms: None };
                drill::conduct(&scenario, &mut Ill { engine, malady, kept: None }, label, &options)
            }
        };
        outcome.expect("an outcome")
    }
}

/// An engine whose first host has a malady. What the engine tells passes through, up to the outbreak.
struct Ill<E> {
    engine: E,
    malady: Malady,
    kept: Option<Node>,
}

/// The watch of an [`Ill`] engine.
struct Symptoms<'a> {
    watch: &'a mut dyn Watch,
    malady: Malady,
    kept: &'a mut Option<Node>,
}

impl Watch for Symptoms<'_> {
    fn observe(&mut self, step: &Step<'_>) -> Flow {
        if step.host != HostIx(0) || step.at < KEPT_AT {
            return self.watch.observe(step);
        }
        let kept = self.kept.get_or_insert_with(|| step.node.clone());
        if step.at < OUTBREAK {
            return self.watch.observe(step);
        }
        let alarm = [Alarm::MeasureWrong { measured: 1, encoded: 2 }];
        match self.malady {
            Malady::Alarm => self.watch.observe(&Step { alarms: &alarm, ..*step }),
            Malady::Panic => panic!("the machine is broken on purpose"),
            Malady::Amnesia => self.watch.observe(&Step { node: kept, ..*step }),
            Malady::Unanswered => match step.cause {
                Cause::Disk(_) => self.watch.observe(&Step { cause: Cause::Wake, ..*step }),
                Cause::Boot | Cause::Wake | Cause::Frame(_) | Cause::Wire | Cause::Command(_) => {
                    self.watch.observe(step)
                }
            },
            Malady::Busy => {
                while self.watch.observe(step) == Flow::Continue {}
                Flow::Stop
            }
        }
    }

    fn down(&mut self, at: Instant, host: HostIx, boot: u32, graceful: bool) {
        self.watch.down(at, host, boot, graceful);
    }
}

impl<E: Engine> Engine for Ill<E> {
    fn now(&self) -> Instant {
        self.engine.now()
    }

    fn run_until(&mut self, until: Instant, watch: &mut dyn Watch) -> Flow {
        let mut symptoms = Symptoms { watch, malady: self.malady, kept: &mut self.kept };
        self.engine.run_until(until, &mut symptoms)
    }

    fn command(
        &mut self,
        host: HostIx,
        command: Command,
        watch: &mut dyn Watch,
    ) -> Option<Result<Reply, Refusal>> {
        let mut symptoms = Symptoms { watch, malady: self.malady, kept: &mut self.kept };
        self.engine.command(host, command, &mut symptoms)
    }

    fn apply(&mut self, fault: &Fault, watch: &mut dyn Watch) -> FaultId {
        self.engine.apply(fault, watch)
    }

    fn had_effect(&self, fault: FaultId) -> bool {
        self.engine.had_effect(fault)
    }

    fn state(&self, host: HostIx) -> HostState {
        self.engine.state(host)
    }

    fn with_node(&self, host: HostIx, look: &mut dyn FnMut(&Node)) {
        self.engine.with_node(host, look);
    }

    fn metrics(&self, host: HostIx) -> Option<Metrics> {
        self.engine.metrics(host)
    }

    fn stats(&self) -> RunStats {
        self.engine.stats()
    }
}

fn load(name: &str) -> Scenario {
    let stem = |path: &PathBuf| path.file_stem().is_some_and(|stem| stem == name);
    let path = common::scenarios().into_iter().find(stem).expect("a shipped scenario");
    Scenario::load(&path, LoadOptions::for_engine(EngineKind::Event)).expect("a valid scenario")
}

/// The scenario with this oracle alone.
fn alone(oracle: &str, scenario: &str) -> Scenario {
    let mut scenario = load(scenario);
    assert!(!scenario.oracles_off.contains_key(oracle), "{} turns {oracle} off itself", scenario.name);
    let others = RULES.iter().filter(|rule| rule.name != oracle);
    scenario.oracles_off = others.map(|rule| (rule.name.to_owned(), String::from("a sibling"))).collect();
    scenario
}

#[test]
fn every_oracle_alone_fires_when_the_core_is_broken_and_only_then() {
    let wrong = common::in_parallel(TEETH, |&(oracle, breakage, scenario)| {
        let whole = drill::run(&alone(oracle, scenario), &breakage.options()).expect("an outcome");
        let broken = breakage.run(alone(oracle, scenario));
        let fired = broken.violation.map(|violation| violation.oracle);
        match (whole.violation, fired) {
            (Some(violation), _) => Some(format!("{oracle} fires in {scenario} as it is: {violation:?}")),
            (None, Some(name)) if name == oracle => None,
            (None, fired) => Some(format!("{oracle} with {breakage:?} in {scenario}: fired {fired:?}")),
        }
    });
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn every_oracle_and_every_guard_has_teeth() {
    let shown: BTreeSet<&str> = TEETH.iter().map(|(oracle, ..)| *oracle).collect();
    let rules: BTreeSet<&str> = RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(shown, rules, "each oracle is seen to fire");
    for row in SABOTAGE {
        let of_guard =
            |breakage: &Breakage| matches!(breakage, Guard(name) | OnBytes(name) if *name == row.guard);
        let by: BTreeSet<&str> =
            TEETH.iter().filter(|(_, breakage, _)| of_guard(breakage)).map(|(oracle, ..)| *oracle).collect();
        let promised: BTreeSet<&str> = row.caught_by.iter().copied().collect();
        assert_eq!(by, promised, "without `{}` these oracles fire: {}", row.guard, row.drill);
    }
}

#[test]
fn the_drill_that_shows_a_missing_guard_is_one_in_which_an_oracle_misses_it() {
    for row in SABOTAGE {
        let Some(shown) = row.shown else { continue };
        let shows = TEETH.iter().any(|(_, breakage, scenario)| {
            let on_bytes = match breakage {
                Guard(name) if *name == row.guard => false,
                OnBytes(name) if *name == row.guard => true,
                Guard(_) | OnBytes(_) | HastySuspicion | SmallerCap | Machine(_) => return false,
            };
            on_bytes == shown.on_bytes && *scenario == shown.scenario
        });
        assert!(shows, "no oracle is seen to miss `{}` in {shown:?}", row.guard);
    }
}
