//! Campaigns of random drills.

use firedrill_core::guards::Guards;
use firedrill_sim::fuzz::campaign::{Plan, Wish, play};
use firedrill_sim::fuzz::seeds::{Seeds, Shard};
use firedrill_sim::fuzz::{Gossip, Mix};

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
    let failures: Vec<_> = report
        .failures
        .iter()
        .map(|f| (&f.failure, f.seeds.len(), &f.seeds[..f.seeds.len().min(8)]))
        .collect();
    println!(
        "{:?} {:?} {:?}\nevents {:?}\neff {:?}\nmissed {:?}\n{failures:#?}\n{:?}\n{:?}",
        start.elapsed(),
        report.totals,
        report.venues,
        report.coverage.events,
        report.coverage.effective,
        report.missed,
        report.busiest,
        report
            .coverage
            .missed(firedrill_sim::fuzz::coverage::GOSSIP_GOALS, Mix::ALL)
            .iter()
            .map(|g| g.name)
            .collect::<Vec<_>>()
    );
    assert!(report.failures.is_empty());
}
