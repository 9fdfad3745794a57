//! Seeds a second on one core: how many drills a campaign can afford.
//!
//! The drills are a family: three nodes, a minute long (default pace: a push every half second, suspicion after two
//! and a half), one increment a second, and four faults drawn from the seed. Each is conducted as a campaign conducts
//! it: digest, all oracles, liveness phase, no timeline. Every engine plays the same drills of the family, in turn.
//! Beside them stand what a campaign pays before a drill begins, and a campaign of the gossip profile as
//! `firedrill fuzz` plays it by default, in which drills differ in size and one in 16 runs on the full wire.
//!
//! Criterion's throughput, in elements a second, is seeds a second. The table at the end tells for each engine the
//! best of its passes, since what else the machine does only ever adds time, and how it compares with turmoil.

use std::path::Path;
use std::time::{Duration, Instant};

use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, BenchmarkId, Criterion, SamplingMode, Throughput};
use firedrill_core::guards::Guards;
use firedrill_core::rng::{Rng, Seed};
use firedrill_sim::drill::{RunOptions, run};
use firedrill_sim::engine::{EngineKind, Wire};
use firedrill_sim::fuzz::{Gossip, Mix, Profile, Venue, try_seed};
use firedrill_sim::outcome::Verdict;
use firedrill_sim::scenario::{LoadOptions, Scenario};

/// Drills in the family.
const FAMILY: u64 = 64;
/// Faults in each of them.
const FAULTS: u64 = 4;
/// Seeds in the campaign.
const CAMPAIGN: u64 = 200;
/// Passes over the drills of a row that the table takes the best of, at least.
const PASSES: usize = 10;

/// One way to run the family.
struct Row {
    name: &'static str,
    engine: EngineKind,
    wire: Option<Wire>,
    tick_ms: u64,
    /// Drills of the family in one pass: as many as keep a pass below a second or so.
    drills: usize,
}

const ROWS: [Row; 4] = [
    Row { name: "event/fast", engine: EngineKind::Event, wire: Some(Wire::Fast), tick_ms: 1, drills: 64 },
    Row { name: "event/full", engine: EngineKind::Event, wire: Some(Wire::Full), tick_ms: 1, drills: 64 },
    Row { name: "turmoil, 10 ms ticks", engine: EngineKind::Turmoil, wire: None, tick_ms: 10, drills: 4 },
    Row { name: "turmoil, 1 ms ticks", engine: EngineKind::Turmoil, wire: None, tick_ms: 1, drills: 4 },
];

/// The row that the others are compared with.
const BASE: usize = 3;

/// The steps of one fault, over before the drill is, each with its moment in milliseconds.
fn fault(rng: &mut Rng) -> Vec<(u64, String)> {
    let (at_ms, lasts_ms) = (rng.between(5_000, 40_000), rng.between(500, 15_000));
    let host = if rng.chance_ppm(500_000) { "a" } else { "b" };
    let lasting = |verb: String| vec![(at_ms, format!("{verb}\nfor = \"{lasts_ms}ms\""))];
    match rng.between(0, 3) {
        0 => vec![(at_ms, format!("kill = \"{host}\"")), (at_ms + lasts_ms, format!("restart = \"{host}\""))],
        1 => lasting(format!("pause = \"{host}\"")),
        2 => lasting(format!("isolate = \"{host}\"")),
        _ => lasting(String::from("link = { from = \"all\", to = \"all\", loss = \"5%\" }")),
    }
}

/// The drill of a seed.
fn drill(seed: u64) -> Scenario {
    let mut rng = Seed::from_u64(seed).fork("bench").rng();
    let mut steps: Vec<(u64, String)> = (0..FAULTS).flat_map(|_| fault(&mut rng)).collect();
    steps.sort();
    let step = |(at_ms, verb): (u64, String)| format!("[[step]]\nat = \"{at_ms}ms\"\n{verb}\n");
    let steps: String = steps.into_iter().map(step).collect();
    let text = format!(
        r#"
            name = "minute"
            about = "A minute of three nodes, with a few faults."
            time_limit = "60s"
            seed = {seed}
            nodes.count = 3
            net.latency = "1ms..20ms"
            [[workload]]
            increment = "sightings"
            every = "1s"
            {steps}
        "#
    );
    let options = LoadOptions::for_engine(EngineKind::Event);
    Scenario::parse(&text, Path::new("minute.toml"), &|_| unreachable!(), options)
        .unwrap_or_else(|report| panic!("{report:?}"))
}

/// Plays these drills, which have to pass; seeds a second.
#[expect(clippy::disallowed_methods, reason = "real time is what is measured")]
fn pass(drills: &[Scenario], row: &Row) -> f64 {
    let options = RunOptions {
        engine: row.engine,
        wire: row.wire,
        tick_ms: row.tick_ms,
        timeline: false,
        ..RunOptions::default()
    };
    let start = Instant::now();
    for drill in drills {
        let outcome = run(drill, &options).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(outcome.verdict, Verdict::Pass, "seed {}: {:?}", drill.seed, outcome.violation);
    }
    drills.len() as f64 / start.elapsed().as_secs_f64()
}

fn group<'c>(criterion: &'c mut Criterion, name: &str) -> BenchmarkGroup<'c, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group.sampling_mode(SamplingMode::Flat).sample_size(PASSES);
    group.warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_secs(2));
    group
}

/// Plays the family on every engine; gives back the best rate of each, in seeds a second.
fn family(criterion: &mut Criterion) -> Vec<f64> {
    let drills: Vec<Scenario> = (0..FAMILY).map(drill).collect();
    let mut group = group(criterion, "a minute of three nodes");
    let mut rates = Vec::with_capacity(ROWS.len());
    for row in &ROWS {
        let drills = &drills[..row.drills];
        group.throughput(Throughput::Elements(drills.len() as u64));
        let mut best = 0_f64;
        group.bench_function(BenchmarkId::from_parameter(row.name), |bench| {
            bench.iter(|| best = best.max(pass(drills, row)));
        });
        rates.push(best);
    }
    group.finish();
    rates
}

/// Drawing drills without playing them, and playing them, in the shares of a campaign.
fn campaign(criterion: &mut Criterion) {
    let mut group = group(criterion, "the gossip profile");
    group.throughput(Throughput::Elements(CAMPAIGN));
    group.bench_function("draw", |bench| {
        let draw = || (0..CAMPAIGN).map(|seed| Gossip.draw(seed, Venue::Fast)).collect::<Vec<_>>();
        bench.iter_batched(|| (), |()| draw(), BatchSize::PerIteration);
    });
    for (name, mix) in [("fast", Mix::only(Venue::Fast)), ("mixed", Mix::ALL)] {
        group.bench_function(name, |bench| {
            bench.iter(|| {
                for seed in 0..CAMPAIGN {
                    let tested = try_seed(&Gossip, seed, mix, Guards::ON);
                    let tested = tested.unwrap_or_else(|error| panic!("{error}"));
                    assert_eq!(tested.failure, None, "seed {seed}");
                }
            });
        });
    }
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().without_plots().configure_from_args();
    let rates = family(&mut criterion);
    campaign(&mut criterion);
    criterion.final_summary();
    tell(&rates);
}

#[expect(clippy::print_stdout, reason = "the table is what the bench is run for")]
fn tell(rates: &[f64]) {
    println!("\nseeds a second on one core, a minute of three nodes each, against {}", ROWS[BASE].name);
    for (row, rate) in ROWS.iter().zip(rates) {
        println!("{:<28}{rate:>13.1}{:>11}", row.name, format!("{:.1} x", rate / rates[BASE]));
    }
}
