//! Whole drills shrunk: drawn ones under every sabotage that they catch, and shipped ones.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use firedrill_core::guards::Guards;
use firedrill_core::rng::Seed;
use firedrill_sim::drill::{RunOptions, run};
use firedrill_sim::engine::{EngineKind, Wire};
use firedrill_sim::fuzz::{Gossip, Profile, Venue, options};
use firedrill_sim::oracles::sabotage::{SABOTAGE, Sabotage};
use firedrill_sim::outcome::{Failure, Verdict};
use firedrill_sim::scenario::{LoadOptions, Scenario};
use firedrill_sim::shrink::{
    Ended, Origin, ScenarioTree, ShrinkError, ShrinkLimits, Shrunk, Size, file, shrink,
};
use proptest::strategy::ValueTree;

/// Seeds in which a sabotage is looked for; one that none of them catches is not shrunk.
const SEEDS: u64 = 150;

/// Runs that a shrink may take: most take about a hundred, and a run takes about a millisecond.
const RUNS_MAX: u64 = 3_000;

fn read(text: &str) -> Result<Scenario, String> {
    let none = |path: &Path| Err(std::io::Error::other(format!("no include here: {}", path.display())));
    Scenario::parse(text, Path::new("drill.toml"), &none, LoadOptions::for_engine(EngineKind::Event))
        .map_err(|report| format!("{report:?}\n{text}"))
}

fn shipped() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/gossip");
    let files = std::fs::read_dir(folder).expect("the scenarios can be read");
    let mut files: Vec<PathBuf> = files.map(|file| file.expect("an entry can be read").path()).collect();
    files.sort();
    files
}

fn load(path: &Path) -> Scenario {
    let loaded = Scenario::load(path, LoadOptions::for_engine(EngineKind::Event));
    loaded.unwrap_or_else(|report| panic!("{}: {report:?}", path.display()))
}

fn without(row: &Sabotage) -> Guards {
    let mut guards = Guards::ON;
    (row.apply)(&mut guards);
    guards
}

/// The first drawn drill that fails without the guard and passes with it.
fn caught(row: &Sabotage) -> Option<(Scenario, RunOptions, Failure)> {
    (0..SEEDS).find_map(|seed| {
        let drill = Gossip.draw(seed, Venue::Fast);
        let wants = options(&drill, Venue::Fast, without(row));
        let failure = run(&drill, &wants).ok()?.failure()?;
        let guarded = run(&drill, &RunOptions { guards: Guards::ON, ..wants.clone() }).ok()?;
        (guarded.verdict == Verdict::Pass).then_some((drill, wants, failure))
    })
}

fn shrunk(drill: &Scenario, wants: &RunOptions, failure: &Failure) -> Shrunk {
    shrink(drill, wants, failure, &ShrinkLimits::default(), &mut |_| ()).expect("the drill fails so")
}

fn median(mut numbers: Vec<usize>) -> usize {
    numbers.sort_unstable();
    numbers[numbers.len() / 2]
}

#[test]
fn what_every_sabotage_breaks_is_shown_by_a_few_steps_on_a_few_hosts() {
    let mut sizes: Vec<Size> = Vec::new();
    let gossip = || SABOTAGE.iter().filter(|row| row.profile == Gossip.name());
    for row in gossip() {
        let Some((drill, wants, failure)) = caught(row) else { continue };
        let least = shrunk(&drill, &wants, &failure);
        assert_eq!(least.ended, Ended::Minimal, "{}", row.guard);
        assert!(least.runs <= RUNS_MAX, "{}: {} runs", row.guard, least.runs);
        assert_eq!(least.outcome.failure(), Some(failure.clone()), "{}", row.guard);
        let guarded = run(&least.scenario, &RunOptions { guards: Guards::ON, ..wants.clone() }).unwrap();
        assert_eq!(guarded.verdict, Verdict::Pass, "{} is not what the drill shows", row.guard);
        let origin = Origin { found_in: "a drawn drill", sabotage: Some(row.guard), command: "none" };
        let reread = read(&file(&least, "shrunk", &origin)).unwrap();
        let again = run(&reread, &wants).unwrap();
        assert_eq!(again.digest, least.outcome.digest, "{}: the file tells another run", row.guard);
        sizes.push(least.after);
    }
    assert!(sizes.len() >= gossip().count() / 2, "only {} sabotages were caught", sizes.len());
    assert!(median(sizes.iter().map(|size| size.steps).collect()) <= 6, "{sizes:?}");
    assert!(median(sizes.iter().map(|size| size.hosts).collect()) <= 3, "{sizes:?}");
}

#[test]
fn every_proposal_is_a_scenario_that_the_reader_takes() {
    let drawn = (0..12).map(|seed| Gossip.draw(seed, if seed % 3 == 0 { Venue::Full } else { Venue::Fast }));
    let drills = drawn.chain(shipped().into_iter().map(|path| load(&path)));
    for (ix, drill) in drills.enumerate() {
        // Whatever runs would say, so that the search gets into every corner.
        let mut answers = Seed::from_u64(ix as u64).fork("answers").rng();
        let one_in = 2 + ix as u64 % 5;
        let mut tree = ScenarioTree::new(drill);
        let mut goes_on = tree.simplify();
        for _ in 0..150 {
            if !goes_on {
                break;
            }
            let candidate = tree.current();
            let reread = read(&candidate.to_toml()).unwrap_or_else(|problems| panic!("{ix}: {problems}"));
            assert_eq!(reread.to_toml(), candidate.to_toml(), "{ix}");
            assert_eq!(reread.needs_full(), candidate.needs_full(), "{ix}: {}", candidate.to_toml());
            goes_on = if answers.between(1, one_in) == 1 { tree.simplify() } else { tree.complicate() };
        }
    }
}

#[test]
fn a_search_ends_whatever_the_runs_say_and_ends_at_the_last_that_failed() {
    for seed in 0..10 {
        for one_in in [1, 2, 5, u64::MAX] {
            let mut answers = Seed::from_u64(seed).fork("answers").rng();
            let mut tree = ScenarioTree::new(Gossip.draw(seed, Venue::Fast));
            let mut least = tree.current().to_toml();
            let (mut goes_on, mut proposals) = (tree.simplify(), 0);
            while goes_on {
                proposals += 1;
                assert!(proposals < 5_000, "seed {seed}, one in {one_in}: the search does not end");
                goes_on = if answers.between(1, one_in) == 1 {
                    least = tree.current().to_toml();
                    tree.simplify()
                } else {
                    tree.complicate()
                };
            }
            assert_eq!(tree.current().to_toml(), least);
            assert!(!tree.simplify() && !tree.complicate(), "it is over for good");
        }
    }
}

fn refutation() -> (Scenario, RunOptions, Failure) {
    let row = SABOTAGE.iter().find(|row| row.guard == "refutation").expect("the guard exists");
    caught(row).expect("a drawn drill misses refutation")
}

#[test]
fn the_same_drill_shrinks_to_the_same_one() {
    let (drill, wants, failure) = refutation();
    let (one, other) = (shrunk(&drill, &wants, &failure), shrunk(&drill, &wants, &failure));
    assert_eq!(one.scenario.to_toml(), other.scenario.to_toml());
    assert_eq!((one.runs, one.outcome.digest), (other.runs, other.outcome.digest));
}

#[test]
fn what_is_minimal_does_not_shrink_further() {
    let (drill, wants, failure) = refutation();
    let once = shrunk(&drill, &wants, &failure);
    let twice = shrunk(&once.scenario, &wants, &failure);
    assert_eq!(twice.after, once.after);
}

#[test]
fn a_drill_that_passes_or_fails_otherwise_is_refused() {
    let drill = load(&shipped()[0]);
    let failure = Failure::Invariant("views_agree".to_owned());
    let refused = |drill: &Scenario, wants: &RunOptions, failure: &Failure| {
        shrink(drill, wants, failure, &ShrinkLimits::default(), &mut |_| ()).unwrap_err()
    };
    let passes = refused(&drill, &RunOptions::default(), &failure);
    assert!(matches!(passes, ShrinkError::Passes { .. }), "{passes}");
    assert!(passes.to_string().contains("passes with seed"), "{passes}");
    let (drill, wants, _) = refutation();
    let otherwise = refused(&drill, &wants, &Failure::StepNeverFired);
    assert!(matches!(otherwise, ShrinkError::Otherwise { .. }), "{otherwise}");
}

#[test]
fn limits_end_the_search_with_the_smallest_so_far() {
    let (drill, wants, failure) = refutation();
    let few = ShrinkLimits { runs_max: 12, ..ShrinkLimits::default() };
    let mut told = 0;
    let least = shrink(&drill, &wants, &failure, &few, &mut |progress| told = progress.runs).unwrap();
    assert_eq!(least.ended, Ended::RunsMax);
    assert!((12..=13).contains(&told), "{told} runs");
    assert_eq!(least.outcome.failure(), Some(failure.clone()));

    let asked = Cell::new(0);
    let stop = || {
        asked.set(asked.get() + 1);
        asked.get() > 3
    };
    let brief = ShrinkLimits { stop: &stop, ..ShrinkLimits::default() };
    let least = shrink(&drill, &wants, &failure, &brief, &mut |_| ()).unwrap();
    assert_eq!(least.ended, Ended::Stopped);
    assert_eq!(least.outcome.failure(), Some(failure));
}

#[test]
fn an_expectation_that_held_is_never_the_reason_of_a_smaller_drill() {
    let text = "name = \"d\"\nabout = \"d.\"\ntime_limit = \"20s\"\nnodes = { names = [\"a\", \"b\", \"c\"] }\n\
                [[step]]\nat = \"4s\"\nkill = \"b\"\n\
                [[expect]]\nby = \"15s\"\nevent = { down = \"b\", on = \"a\" }\n\
                [[expect]]\nby = \"15s\"\nevent = { recovered = \"c\", on = \"a\" }\n";
    let drill = read(text).unwrap();
    let least = shrunk(&drill, &RunOptions::default(), &Failure::Expectation);
    // Without the kill the first expectation would be missed as well, and just like the second.
    let file = least.scenario.to_toml();
    assert!(file.contains("recovered") && !file.contains("down"), "{file}");
}

#[test]
fn a_sabotaged_drill_goes_on_showing_the_guard() {
    let off = ["view_no_down", "dead_leaves_view", "views_agree", "silent_buried"];
    let off: String = off.iter().map(|oracle| format!("{oracle} = \"not now\"\n")).collect();
    let text = format!(
        "name = \"d\"\nabout = \"d.\"\ntime_limit = \"20s\"\nnodes = {{ names = [\"a\", \"b\"] }}\n\
         [oracles.off]\n{off}[[step]]\nat = \"4s\"\nkill = \"b\"\n\
         [[expect]]\nby = \"15s\"\nevent = {{ down = \"b\", on = \"a\" }}\n"
    );
    let row = SABOTAGE.iter().find(|row| row.guard == "suspicion").expect("the guard exists");
    let wants = RunOptions { guards: without(row), ..RunOptions::default() };
    let least = shrunk(&read(&text).unwrap(), &wants, &Failure::Expectation);
    // Without the kill it would be missed with every guard on.
    assert_eq!((least.after.steps, least.needs_sabotage), (1, true), "{}", least.scenario.to_toml());
}

#[test]
fn what_came_too_late_still_comes_in_a_smaller_drill() {
    let text = "name = \"d\"\nabout = \"d.\"\ntime_limit = \"30s\"\nnodes = { names = [\"a\", \"b\", \"c\"] }\n\
                [[step]]\nat = \"4s\"\npause = \"b\"\nfor = \"1s\"\n\
                [[step]]\nat = \"14s\"\nkill = \"c\"\n\
                [[expect]]\nby = \"15s\"\nevent = { down = \"c\", on = \"a\" }\n";
    let drill = read(text).unwrap();
    let least = shrunk(&drill, &RunOptions::default(), &Failure::Expectation);
    // Without the kill it would be missed as well, but for ever.
    let file = least.scenario.to_toml();
    assert!(file.contains("kill = \"c\"") || file.contains("kill = \"b\""), "{file}");
    assert_eq!((least.after.steps, least.after.hosts), (1, 2), "{file}");
}

#[test]
fn the_wire_stays_unless_the_caller_lets_it_go() {
    let (drill, wants, failure) = refutation();
    let full = RunOptions { wire: Some(Wire::Full), ..wants };
    let on = |allow_fast| {
        let limits = ShrinkLimits { allow_fast, ..ShrinkLimits::default() };
        shrink(&drill, &full, &failure, &limits, &mut |_| ())
            .expect("it fails on real bytes too")
            .outcome
            .wire
    };
    assert_eq!((on(false), on(true)), (Some("full"), Some("fast")));
}

#[test]
fn a_drill_that_needs_bytes_for_something_else_ends_without_them() {
    let text = "name = \"d\"\nabout = \"d.\"\ntime_limit = \"30s\"\nnodes = { names = [\"a\", \"b\", \"c\"] }\n\
                [[step]]\nat = \"4s\"\nflood = { to = \"a\", connections = 40, send = \"garbage\" }\n\
                [[step]]\nat = \"8s\"\nkill = \"c\"\n";
    let row = SABOTAGE.iter().find(|row| row.guard == "suspicion").expect("the guard exists");
    let wants = RunOptions { guards: without(row), ..RunOptions::default() };
    let drill = read(text).unwrap();
    let failure = run(&drill, &wants).unwrap().failure().expect("the drill misses the guard");
    let limits = ShrinkLimits { allow_fast: true, ..ShrinkLimits::default() };
    let least = shrink(&drill, &wants, &failure, &limits, &mut |_| ()).unwrap();
    assert!(!least.scenario.needs_full() && least.needs_sabotage, "{}", least.scenario.to_toml());
    assert_eq!(
        least.outcome.wire,
        Some("fast"),
        "a file without byte verbs runs fast, and has to fail there"
    );
}

/// What an include brings is shrunk like the rest, and symbols in it go on drawing the hosts that they drew.
#[test]
fn a_drill_that_includes_another_shrinks_to_one_file_that_fails_alike() {
    let common = "[nodes]\nnames = [\"a\", \"b\", \"c\", \"d\"]\n\
                  [[step]]\nat = \"12s\"\nkill = \"any\"\n[[step]]\nafter = \"1s\"\npause = \"minority\"\nfor = \"1s\"\n";
    let text = "name = \"d\"\nabout = \"d.\"\ntime_limit = \"20s\"\ninclude = [\"common.toml\"]\n\
                [[step]]\nat = \"4s\"\nkill = \"any\"\n[[step]]\nafter = \"2s\"\nrestart = \"any\"\n";
    let files = |_: &Path| Ok(common.to_owned());
    let drill =
        Scenario::parse(text, Path::new("d.toml"), &files, LoadOptions::for_engine(EngineKind::Event))
            .unwrap();
    let row = SABOTAGE.iter().find(|row| row.guard == "suspicion").expect("the guard exists");
    for seed in 1..6 {
        let wants = RunOptions { seed: Some(seed), guards: without(row), ..RunOptions::default() };
        let whole = run(&drill, &wants).unwrap();
        let failure = whole.failure().expect("the drill misses the guard");
        let flat = read(&drill.to_toml()).unwrap();
        assert_eq!(run(&flat, &wants).unwrap().digest, whole.digest, "seed {seed}:\n{}", drill.to_toml());
        let least = shrunk(&drill, &wants, &failure);
        let origin = Origin { found_in: "two files", sabotage: Some(row.guard), command: "none" };
        let text = file(&least, "shrunk", &origin);
        let again = run(&read(&text).unwrap(), &RunOptions { seed: None, ..wants }).unwrap();
        assert_eq!((again.failure(), again.digest), (Some(failure), least.outcome.digest), "{text}");
        assert_eq!((least.after.steps, text.contains("include")), (1, false), "{text}");
    }
}
