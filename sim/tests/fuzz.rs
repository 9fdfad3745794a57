//! Campaigns of random drills.

use firedrill_core::guards::Guards;
use firedrill_sim::fuzz::campaign::{Plan, Wish, play};
use firedrill_sim::fuzz::seeds::{Seeds, Shard};
use firedrill_sim::fuzz::{Gossip, Mix, Profile, options};

#[test]
fn triage() {
    let Ok(list) = std::env::var("TRIAGE") else { return };
    for seed in list.split(',') {
        let seed: u64 = seed.parse().unwrap();
        let venue = Mix::ALL.venue(seed);
        let scenario = Gossip.draw(seed, venue);
        let options = options(&scenario, venue, Guards::ON);
        let start0 = std::time::Instant::now();
        let outcome = firedrill_sim::drill::run(&scenario, &options).unwrap();
        let Some(failure) = outcome.failure() else {
            println!(
                "=== {seed} {venue:?} passes {:?} {:?}\n{}",
                outcome.numbers,
                start0.elapsed(),
                scenario.to_toml()
            );
            continue;
        };
        println!(
            "=== {seed} {venue:?} {failure:?} {} hosts {} steps",
            scenario.hosts.len(),
            scenario.steps.len()
        );
        let start = std::time::Instant::now();
        match firedrill_sim::shrink::shrink(
            &scenario,
            &options,
            &failure,
            &firedrill_sim::shrink::ShrinkLimits { runs_max: 3000, ..Default::default() },
            &mut |_| (),
        ) {
            Ok(shrunk) => {
                println!(
                    "{} runs {:?}\n{}\n{:?}",
                    shrunk.runs,
                    start.elapsed(),
                    shrunk.scenario.to_toml(),
                    shrunk.outcome.violation.map(|v| (v.at_us, v.fact, v.contradiction))
                );
            }
            Err(error) => println!("{error} {:?}", outcome.violation),
        }
    }
}

#[test]
fn seeds_pass() {
    let number = |name: &str, default: u64| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let from = number("FROM", 0);
    let plan = Plan {
        profile: &Gossip,
        mix: Mix::ALL,
        guards: Guards::ON,
        sabotage: None,
        seeds: Seeds { from, to: from + number("SEEDS", 400) },
        shard: Shard::WHOLE,
        jobs: 1,
        fail_fast: false,
    };
    let start = std::time::Instant::now();
    let report = play(&plan, &mut |_| Wish::GoOn).unwrap();
    let failures: Vec<_> = report.failures.iter().map(|f| (&f.failure, f.seeds.len(), &f.seeds)).collect();
    println!(
        "{:?} {:?} {:?}\n{failures:?}\n{:?}",
        start.elapsed(),
        report.totals,
        report.venues,
        report.busiest
    );
    assert!(report.failures.is_empty());
}
