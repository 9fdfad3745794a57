//! Campaigns of drawn drills: what they yield does not depend on threads or shards, and what they keep is worth it.

use firedrill_core::guards::Guards;
use firedrill_sim::fuzz::campaign::{Plan, Wish, play};
use firedrill_sim::fuzz::finding::look;
use firedrill_sim::fuzz::seeds::{Seeds, Shard};
use firedrill_sim::fuzz::{Gossip, Mix, Report, sabotage};
use firedrill_sim::oracles::sabotage::find;
use firedrill_sim::replay::{Finding, replay};

fn plan(from: u64, to: u64) -> Plan {
    Plan {
        profile: &Gossip,
        mix: Mix::ALL,
        guards: Guards::ON,
        sabotage: None,
        seeds: Seeds { from, to },
        shard: Shard::WHOLE,
        jobs: 2,
        fail_fast: false,
    }
}

fn without(guard: &str, from: u64, to: u64) -> Plan {
    let row = find(guard).expect("a guard");
    Plan { guards: sabotage::without(row), sabotage: Some(row.guard), ..plan(from, to) }
}

fn played(plan: &Plan) -> Report {
    play(plan, &mut |_| Wish::GoOn).expect("the profile draws what its venue can run")
}

#[test]
fn no_drawn_drill_breaks_an_invariant_and_the_report_does_not_tell_how_many_threads_there_were() {
    let alone = played(&Plan { jobs: 1, ..plan(0, 400) });
    assert_eq!(alone.failures, []);
    assert_eq!((alone.totals.seeds, alone.complete), (400, true));
    assert_eq!(played(&Plan { jobs: 3, ..plan(0, 400) }), alone);
}

#[test]
fn the_shards_of_a_campaign_merge_into_the_report_of_one_machine() {
    let campaign = without("late_round_restarts", 0, 240);
    let whole = played(&campaign);
    assert!(!whole.failures.is_empty());
    let shards = [3, 1, 2].map(|index| played(&Plan { shard: Shard { index, of: 3 }, ..campaign }));
    let merged = Report::merge(shards).expect("shards of one campaign");
    assert_eq!(Report { shards: whole.shards.clone(), ..merged }, whole);
}

#[test]
fn a_campaign_that_ends_at_the_first_failure_ends_at_the_same_one_on_any_number_of_threads() {
    let campaign = Plan { fail_fast: true, ..without("refutation", 0, 1_000) };
    let alone = played(&Plan { jobs: 1, ..campaign });
    assert_eq!(alone.failures.len(), 1);
    assert!(alone.totals.seeds < 1_000 && !alone.complete);
    assert_eq!(played(&Plan { jobs: 4, ..campaign }), alone);
}

#[test]
fn what_is_kept_of_a_failure_is_small_and_replays() {
    for guard in ["refutation", "late_round_restarts", "left_beats_alive", "silent_converted"] {
        let campaign = Plan { fail_fast: true, ..without(guard, 0, 2_000) };
        let report = played(&campaign);
        let failed = report.failures.first().expect("the lack of the guard is noticed");
        let finding = look(&campaign, failed.seeds[0], &failed.failure, &|| false).expect("it runs");
        let (steps, hosts) = (finding.found.steps.1, finding.found.hosts.1);
        assert!(steps <= 6 && hosts <= 3, "{guard}: {steps} steps, {hosts} hosts");
        assert_eq!(finding.artifact.failure.as_ref(), Some(&failed.failure), "{guard}");
        let again = replay(&finding.artifact, None).expect("it runs");
        assert_eq!(again.finding, Finding::Reproduced, "{guard}");
    }
}
