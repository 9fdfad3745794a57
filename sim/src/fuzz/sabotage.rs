//! Sabotage: how many seeds it takes until a guard that was turned off is missed.
//!
//! A guard that no drill misses is either dead or untested, so each is turned off in turn and a campaign is played
//! until it fails, from several starts. The table of [`Caught`] is the proof that the oracles have teeth, and that
//! the generator reaches what the guards are for.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use firedrill_core::guards::Guards;
use serde::Serialize;

use super::campaign::Plan;
use super::finding::{Finding, look};
use super::seeds::{Seeds, Shard};
use super::{Mix, PROFILES, Profile, Venue, try_seed};
use crate::drill::RunError;
use crate::oracles::sabotage::Sabotage;
use crate::outcome::Failure;

/// Starts from which each guard is tried.
pub const STARTS: u64 = 5;
/// Seeds after which a guard counts as not missed.
pub const SEEDS_MAX: u64 = 2_000;
/// Between two starts.
const STRIDE: u64 = 1_000_000;

/// What it took to miss one guard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Caught {
    /// The guard.
    pub guard: &'static str,
    /// Seeds until a drill failed, from each start; `None` where [`SEEDS_MAX`] did not suffice.
    pub seeds: Vec<Option<u64>>,
    /// What failed first, from each start that caught it.
    pub by: Vec<Failure>,
    /// Where.
    pub venues: Vec<Venue>,
    /// Steps and hosts of the smallest drill of the first catch.
    pub smallest: Option<(usize, usize)>,
    /// Why no drill can catch it, where that is known.
    pub uncaught: Option<&'static str>,
}

impl Caught {
    /// The median number of seeds, if most starts caught it.
    pub fn median(&self) -> Option<u64> {
        let mut seeds = self.seeds.clone();
        seeds.sort_by_key(|seeds| seeds.unwrap_or(u64::MAX));
        seeds.get(seeds.len() / 2).copied().flatten()
    }

    /// Whether the table may be published: every start caught it, or nobody can and the reason is known.
    pub fn is_accounted_for(&self) -> bool {
        self.uncaught.is_some() || self.seeds.iter().all(Option::is_some)
    }
}

/// The guards with this one off.
pub fn without(sabotage: &Sabotage) -> Guards {
    let mut guards = Guards::ON;
    (sabotage.apply)(&mut guards);
    guards
}

/// The profile whose drills can show a guard.
pub fn profile_of(sabotage: &Sabotage) -> &'static dyn Profile {
    PROFILES.iter().copied().find(|profile| profile.name() == sabotage.profile).unwrap_or(PROFILES[0])
}

/// Plays seeds from each start until one fails without this guard, and shrinks the first failure.
///
/// # Errors
/// [`RunError`] when the profile drew a drill that its venue cannot run.
pub fn measure(mix: Mix, sabotage: &'static Sabotage, stop: &dyn Fn() -> bool) -> Result<Caught, RunError> {
    let profile = profile_of(sabotage);
    let mut caught = Caught {
        guard: sabotage.guard,
        seeds: Vec::new(),
        by: Vec::new(),
        venues: Vec::new(),
        smallest: None,
        uncaught: sabotage.uncaught,
    };
    // What no drill can catch is not searched for from five starts.
    let starts = if sabotage.uncaught.is_some() { 1 } else { STARTS };
    for start in 0..starts {
        let seeds = Seeds { from: start * STRIDE, to: start * STRIDE + SEEDS_MAX };
        let first = first_failure(profile, mix, sabotage, seeds, stop)?;
        caught.seeds.push(first.as_ref().map(|(seed, ..)| seed - seeds.from + 1));
        if let Some((seed, failure)) = first {
            if caught.smallest.is_none() {
                let found = shrunk(profile, mix, sabotage, seeds, (seed, &failure), stop)?.found;
                caught.smallest = Some((found.steps.1, found.hosts.1));
            }
            caught.by.push(failure);
            caught.venues.push(mix.venue(seed));
        }
    }
    Ok(caught)
}

/// Measures these guards on several threads, in the order of the table. `progress` hears how many are done.
///
/// # Errors
/// [`RunError`] when the profile drew a drill that its venue cannot run.
///
/// # Panics
/// If a generator panics.
pub fn table(
    mix: Mix,
    rows: &'static [Sabotage],
    jobs: usize,
    stop: &(dyn Fn() -> bool + Sync),
    progress: &mut dyn FnMut(u64),
) -> Result<Vec<Caught>, RunError> {
    let next = AtomicUsize::new(0);
    let (sender, results) = channel();
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // Nobody listens any more when another row has failed.
                    let _unheard = sender.send((row.guard, measure(mix, row, stop)));
                }
            });
        }
        drop(sender);
        let mut measured = BTreeMap::new();
        for (guard, caught) in results {
            measured.insert(guard, caught?);
            progress(measured.len() as u64);
        }
        Ok(rows.iter().filter_map(|row| measured.remove(row.guard)).collect())
    })
}

fn first_failure(
    profile: &dyn Profile,
    mix: Mix,
    sabotage: &Sabotage,
    seeds: Seeds,
    stop: &dyn Fn() -> bool,
) -> Result<Option<(u64, Failure)>, RunError> {
    for seed in seeds.from..seeds.to {
        if stop() {
            break;
        }
        if let Some(failure) = try_seed(profile, seed, mix, without(sabotage))?.failure {
            return Ok(Some((seed, failure)));
        }
    }
    Ok(None)
}

fn shrunk(
    profile: &'static dyn Profile,
    mix: Mix,
    sabotage: &'static Sabotage,
    seeds: Seeds,
    (seed, failure): (u64, &Failure),
    stop: &dyn Fn() -> bool,
) -> Result<Finding, RunError> {
    let plan = Plan {
        profile,
        mix,
        guards: without(sabotage),
        sabotage: Some(sabotage.guard),
        seeds,
        shard: Shard::WHOLE,
        jobs: 1,
        fail_fast: true,
    };
    look(&plan, seed, failure, stop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caught(seeds: &[Option<u64>]) -> Caught {
        Caught {
            guard: "suspicion",
            seeds: seeds.to_vec(),
            by: Vec::new(),
            venues: Vec::new(),
            smallest: None,
            uncaught: None,
        }
    }

    #[test]
    fn the_median_counts_a_start_that_never_caught_it_as_the_longest() {
        assert_eq!(caught(&[Some(9), Some(1), None, Some(4), Some(2)]).median(), Some(4));
        assert_eq!(caught(&[Some(9), None, None, None, Some(2)]).median(), None);
        assert!(!caught(&[Some(9), None]).is_accounted_for());
        assert!(caught(&[Some(9), Some(1)]).is_accounted_for());
        assert!(Caught { uncaught: Some("dead"), ..caught(&[None]) }.is_accounted_for());
    }
}
