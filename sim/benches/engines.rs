//! Engines side by side: simulated seconds per real second, for whole drills of one quiet cluster.
//!
//! Every row is a drill as `firedrill run` conducts it: digest, expectations, liveness phase and, unless the row
//! says otherwise, all oracles; no timeline. The cluster is the one that the targets are stated for: default
//! configuration, latency 1 to 20 ms, one increment a second. Each engine runs for about as long in real time, so
//! the slower ones simulate less. Scenario files may not ask turmoil for more than 16 hosts; here it shows why.
//!
//! Criterion's throughput, in elements a second, is simulated seconds a real second. What criterion cannot say
//! stands in the table at the end: how engines compare, each by the best of its runs, since what else the machine
//! does only ever adds time.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput};
use firedrill_core::rng::Seed;
use firedrill_sim::drill::{EngineLabel, RunOptions, conduct, run};
use firedrill_sim::engine::turmoil::{TurmoilEngine, TurmoilOptions};
use firedrill_sim::engine::{EngineKind, Wire};
use firedrill_sim::oracles::RULES;
use firedrill_sim::outcome::{Outcome, Verdict};
use firedrill_sim::scenario::{LoadOptions, Scenario};

/// Real time that one run should take.
const RUN_ABOUT: Duration = Duration::from_millis(150);
/// Simulated time of the run that finds out how fast an engine is.
const TRIAL_S: u64 = 2;
const RUNS: usize = 10;

/// One way to run a drill.
struct Row {
    name: &'static str,
    engine: Engine,
    oracles: bool,
}

#[derive(Clone, Copy)]
enum Engine {
    Event(Wire),
    Turmoil { tick_ms: u64 },
}

const ROWS: [Row; 6] = [
    Row { name: "event/fast", engine: Engine::Event(Wire::Fast), oracles: true },
    Row { name: "event/fast without oracles", engine: Engine::Event(Wire::Fast), oracles: false },
    Row { name: "event/full", engine: Engine::Event(Wire::Full), oracles: true },
    Row { name: "event/full without oracles", engine: Engine::Event(Wire::Full), oracles: false },
    Row { name: "turmoil, 10 ms ticks", engine: Engine::Turmoil { tick_ms: 10 }, oracles: true },
    Row { name: "turmoil, 1 ms ticks", engine: Engine::Turmoil { tick_ms: 1 }, oracles: true },
];

/// The row that the others are compared with.
const BASE: usize = 5;

fn scenario(nodes: usize, seconds: u64, oracles: bool) -> Scenario {
    let text = format!(
        r#"
            name = "quiet"
            about = "Nothing happens but one increment a second."
            time_limit = "{seconds}s"
            nodes.count = {nodes}
            net.latency = "1ms..20ms"
            [[workload]]
            increment = "sightings"
            every = "1s"
        "#
    );
    let options = LoadOptions::for_engine(EngineKind::Event);
    let mut scenario = Scenario::parse(&text, Path::new("quiet.toml"), &|_| unreachable!(), options)
        .unwrap_or_else(|report| panic!("{report:?}"));
    if !oracles {
        scenario.oracles_off = RULES.iter().map(|rule| (rule.name.into(), "to compare".into())).collect();
    }
    scenario
}

/// Runs a drill that has to pass.
fn drill(scenario: &Scenario, engine: Engine) -> Outcome {
    let options = RunOptions { timeline: false, ..RunOptions::default() };
    let outcome = match engine {
        Engine::Event(wire) => run(scenario, &RunOptions { wire: Some(wire), ..options }),
        Engine::Turmoil { tick_ms } => {
            let seed = Seed::from_u64(scenario.seed).fork("engine");
            let engine_options = TurmoilOptions { tick_ms, ..TurmoilOptions::default() };
            let mut engine = TurmoilEngine::new(&scenario.hosts, scenario.net, seed, engine_options);
            let label = EngineLabel { engine: "turmoil", wire: None, tick_ms: Some(tick_ms) };
            conduct(scenario, &mut engine, label, &options)
        }
    };
    let outcome = outcome.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(outcome.verdict, Verdict::Pass, "{:?}", outcome.violation);
    outcome
}

/// Runs a drill; simulated seconds per real second.
#[expect(clippy::disallowed_methods, reason = "real time is what is measured")]
fn rate(scenario: &Scenario, engine: Engine) -> f64 {
    let start = Instant::now();
    let simulated = Duration::from_micros(drill(scenario, engine).numbers.simulated_us);
    simulated.as_secs_f64() / start.elapsed().as_secs_f64()
}

/// How much simulated time makes a run of [`RUN_ABOUT`].
fn length_s(nodes: usize, row: &Row) -> u64 {
    let trial = scenario(nodes, TRIAL_S, row.oracles);
    let mut seconds = TRIAL_S;
    for scenario in [&trial, &self::scenario(nodes, 10 * TRIAL_S, row.oracles)] {
        let rate = rate(scenario, row.engine);
        seconds = Duration::from_secs_f64(rate * RUN_ABOUT.as_secs_f64()).as_secs().max(1);
        if seconds < scenario.time_limit.as_secs() {
            break;
        }
    }
    seconds
}

/// Measures every row; gives back the best rate of each, in simulated seconds a real second.
fn measure(criterion: &mut Criterion, nodes: usize) -> Vec<f64> {
    let mut group = criterion.benchmark_group(format!("{nodes} nodes"));
    group.sampling_mode(SamplingMode::Flat).sample_size(RUNS);
    group.warm_up_time(Duration::from_millis(1)).measurement_time(RUN_ABOUT * 12);
    let rates = ROWS.iter().map(|row| {
        let scenario = scenario(nodes, length_s(nodes, row), row.oracles);
        group.throughput(Throughput::Elements(scenario.time_limit.as_secs()));
        let mut best = 0_f64;
        group.bench_function(BenchmarkId::from_parameter(row.name), |bench| {
            bench.iter(|| best = best.max(rate(&scenario, row.engine)));
        });
        best
    });
    let rates = rates.collect();
    group.finish();
    rates
}

fn main() {
    let mut criterion = Criterion::default().without_plots().configure_from_args();
    let rates: BTreeMap<usize, Vec<f64>> =
        [3, 16, 64].into_iter().map(|nodes| (nodes, measure(&mut criterion, nodes))).collect();
    criterion.final_summary();
    tell(&rates);
}

#[expect(clippy::print_stdout, reason = "the table is what the bench is run for")]
fn tell(rates: &BTreeMap<usize, Vec<f64>>) {
    println!("\nsimulated seconds per real second, and how that compares with {}", ROWS[BASE].name);
    let heads: Vec<String> = rates.keys().map(|nodes| format!("{:>24}", format!("{nodes} nodes"))).collect();
    println!("{:<28}{}", "", heads.concat());
    for (position, row) in ROWS.iter().enumerate() {
        let cells = rates.values().map(|rates| {
            let (rate, base) = (rates[position], rates[BASE]);
            format!("{rate:>13.1}{:>11}", format!("{:.1} x", rate / base))
        });
        println!("{:<28}{}", row.name, cells.collect::<String>());
    }
}
