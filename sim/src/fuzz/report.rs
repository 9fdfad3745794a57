//! The report of a campaign: what was played, what was reached, what failed.
//!
//! Plain data, the same for the same seeds on any machine: nothing in it depends on time, threads or folders. Reports
//! of shards merge into the report that one machine would have written.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::campaign::Plan;
use super::coverage::{Coverage, GOALS_FROM_SEEDS};
use super::seeds::{Seeds, Shard};
use super::{Mix, PROFILES, Tested, Totals, Venue};
use crate::outcome::Failure;

/// The format of a report file.
pub const FORMAT: u32 = 1;
/// A seed whose drill handles so many times the inputs of the median one, for its size, is reported as a failure.
const INPUTS_TIMES_MEDIAN: u64 = 100;
/// How many of the busiest seeds are kept.
const BUSIEST: usize = 10;

/// What came of a campaign, or of a shard of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// [`FORMAT`].
    pub format: u32,
    /// The version of firedrill that played it.
    pub version: String,
    /// Who drew the drills.
    pub profile: String,
    /// Where they ran.
    pub mix: Mix,
    /// The guard that was off, if any.
    pub sabotage: Option<String>,
    /// All seeds of the campaign.
    pub seeds: Seeds,
    /// Which shards this is the report of.
    pub shards: Vec<Shard>,
    /// Whether every seed of these shards was played; a campaign may be stopped.
    pub complete: bool,
    /// Sums.
    pub totals: Totals,
    /// Seeds by venue.
    pub venues: BTreeMap<Venue, u64>,
    /// What was reached.
    pub coverage: Coverage,
    /// Goals that no drill reached, in words; empty too when the seeds were too few to demand any.
    pub missed: Vec<String>,
    /// What failed, grouped by cause; the gravest news first is the caller's business.
    pub failures: Vec<Failed>,
    /// Seeds by how busy they were: tenths of the expected inputs, and how many seeds.
    pub pace: BTreeMap<u64, u64>,
    /// The busiest seeds for their size.
    pub busiest: Vec<Busy>,
}

/// All seeds that failed for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// The reason.
    pub failure: Failure,
    /// The seeds, in order.
    pub seeds: Vec<u64>,
    /// Whether a drill of it never came back: playing it again would hang again.
    #[serde(default)]
    pub hung: bool,
    /// The first of them looked at closely.
    pub found: Option<Found>,
}

/// A failure looked at: the smallest drill that shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// The seed whose drill it was.
    pub seed: u64,
    /// Where it ran.
    pub venue: Venue,
    /// The name of the scenario file and of the artifact, without their endings.
    pub name: String,
    /// One fact …
    pub fact: String,
    /// … and the one that contradicts it.
    pub contradiction: String,
    /// What must hold.
    pub invariant: String,
    /// Where the rule comes from.
    pub source: String,
    /// When it broke, in microseconds of the run.
    pub at_us: u64,
    /// Steps and hosts of the drill as drawn, and as shrunk.
    pub steps: (usize, usize),
    /// Hosts, likewise.
    pub hosts: (usize, usize),
    /// The shrunk drill.
    pub scenario: String,
}

/// A seed that kept its cluster busier than others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Busy {
    /// The seed.
    pub seed: u64,
    /// Where it ran.
    pub venue: Venue,
    /// Inputs handled.
    pub events: u64,
    /// Tenths of the inputs that a drill of its size is expected to handle.
    pub tenths: u64,
}

/// Why reports do not merge.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// There was none.
    #[error("there is no report to merge")]
    Nothing,
    /// Two reports are of different campaigns.
    #[error("{what} differs: {one} and {other}; only shards of one campaign merge")]
    Differs {
        /// Which part.
        what: &'static str,
        /// In the first report.
        one: String,
        /// In the other.
        other: String,
    },
    /// A shard came twice.
    #[error("shard {shard} is there twice")]
    Twice {
        /// Which.
        shard: Shard,
    },
}

impl Report {
    /// The report of a campaign that has not begun.
    pub fn new(plan: &Plan) -> Self {
        Self {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            profile: plan.profile.name().to_owned(),
            mix: plan.mix,
            sabotage: plan.sabotage.map(str::to_owned),
            seeds: plan.seeds,
            shards: vec![plan.shard],
            complete: false,
            totals: Totals::default(),
            venues: BTreeMap::new(),
            coverage: Coverage::new(),
            missed: Vec::new(),
            failures: Vec::new(),
            pace: BTreeMap::new(),
            busiest: Vec::new(),
        }
    }

    /// Takes in what came of one seed.
    pub fn add(&mut self, tested: &Tested) {
        self.totals.seeds += 1;
        self.totals.events += tested.events;
        self.totals.simulated_us += tested.simulated_us;
        *self.venues.entry(tested.venue).or_default() += 1;
        self.coverage.add(&tested.reach);
        if let Some(failure) = &tested.failure {
            self.failed(failure, &[tested.seed], None);
        }
        let tenths = tested.events.saturating_mul(10) / tested.expected.max(1);
        *self.pace.entry(tenths).or_default() += 1;
        self.busiest.push(Busy { seed: tested.seed, venue: tested.venue, events: tested.events, tenths });
        self.keep_busiest();
    }

    /// Takes in a seed whose drill never came back.
    pub fn add_hung(&mut self, seed: u64, venue: Venue) {
        self.totals.seeds += 1;
        *self.venues.entry(venue).or_default() += 1;
        self.failed(&hang(), &[seed], None);
        for failed in self.failures.iter_mut().filter(|failed| failed.failure == hang()) {
            failed.hung = true;
        }
    }

    /// No more seeds will come: judges what can only be judged of all of them.
    pub fn finish(&mut self, complete: bool) {
        self.complete = complete;
        self.judge();
    }

    /// Whether the campaign had enough seeds, and every shard, to demand its goals.
    pub fn demands_goals(&self) -> bool {
        self.totals.seeds >= GOALS_FROM_SEEDS && self.is_whole()
    }

    /// Whether this is the report of all shards.
    pub fn is_whole(&self) -> bool {
        self.shards.first().is_some_and(|shard| self.shards.len() as u64 == shard.of)
    }

    /// Merges the reports of shards of one campaign.
    ///
    /// # Errors
    /// [`MergeError`] when they are not of one campaign, or one is there twice.
    pub fn merge(reports: impl IntoIterator<Item = Self>) -> Result<Self, MergeError> {
        let mut reports = reports.into_iter();
        let mut merged = reports.next().ok_or(MergeError::Nothing)?;
        for report in reports {
            merged.take_in(report)?;
        }
        merged.shards.sort_unstable();
        merged.judge();
        Ok(merged)
    }

    fn take_in(&mut self, other: Self) -> Result<(), MergeError> {
        self.same_campaign(&other)?;
        if let Some(&shard) = other.shards.iter().find(|shard| self.shards.contains(shard)) {
            return Err(MergeError::Twice { shard });
        }
        self.shards.extend(other.shards);
        self.complete &= other.complete;
        self.totals.seeds += other.totals.seeds;
        self.totals.events += other.totals.events;
        self.totals.simulated_us += other.totals.simulated_us;
        for (venue, seeds) in other.venues {
            *self.venues.entry(venue).or_default() += seeds;
        }
        self.coverage.merge(&other.coverage);
        for failed in other.failures {
            self.failed(&failed.failure, &failed.seeds, failed.found);
            let own = self.failures.iter_mut().find(|own| own.failure == failed.failure);
            own.into_iter().for_each(|own| own.hung |= failed.hung);
        }
        for (tenths, seeds) in other.pace {
            *self.pace.entry(tenths).or_default() += seeds;
        }
        self.busiest.extend(other.busiest);
        self.keep_busiest();
        Ok(())
    }

    fn same_campaign(&self, other: &Self) -> Result<(), MergeError> {
        let none = || "no sabotage".to_owned();
        let of = |report: &Self| report.shards.first().map_or(0, |shard| shard.of).to_string();
        let facts = |report: &Self| {
            [
                ("the format", report.format.to_string()),
                ("the version", report.version.clone()),
                ("the profile", report.profile.clone()),
                ("the mix of engines and wires", format!("{:?}", report.mix)),
                ("the sabotage", report.sabotage.clone().unwrap_or_else(none)),
                ("the range of seeds", report.seeds.to_string()),
                ("the number of shards", of(report)),
            ]
        };
        let differs = facts(self).into_iter().zip(facts(other)).find(|(one, other)| one != other);
        match differs {
            None => Ok(()),
            Some(((what, one), (_, other))) => Err(MergeError::Differs { what, one, other }),
        }
    }

    fn failed(&mut self, failure: &Failure, seeds: &[u64], found: Option<Found>) {
        let group = match self.failures.iter_mut().find(|failed| failed.failure == *failure) {
            Some(group) => group,
            None => {
                self.failures.push(Failed {
                    failure: failure.clone(),
                    seeds: Vec::new(),
                    hung: false,
                    found: None,
                });
                let last = self.failures.len() - 1;
                &mut self.failures[last]
            }
        };
        group.seeds.extend(seeds);
        group.seeds.sort_unstable();
        group.seeds.dedup();
        group.found = match (group.found.take(), found) {
            (Some(one), Some(other)) => Some(if other.seed < one.seed { other } else { one }),
            (one, other) => one.or(other),
        };
        self.failures.sort_by(|one, other| one.failure.cmp(&other.failure));
    }

    /// Judges what depends on all seeds: who was a hundred times as busy as the median, which goals were missed.
    fn judge(&mut self) {
        let median = self.median_tenths().max(1);
        let hung: Vec<u64> = self
            .busiest
            .iter()
            .filter(|busy| busy.tenths > median.saturating_mul(INPUTS_TIMES_MEDIAN))
            .map(|busy| busy.seed)
            .collect();
        if !hung.is_empty() {
            self.failed(&hang(), &hung, None);
        }
        let profile = PROFILES.iter().find(|profile| profile.name() == self.profile);
        let goals = profile.map(|profile| profile.sometimes()).unwrap_or_default();
        self.missed = if self.demands_goals() {
            self.coverage.missed(goals, self.mix).iter().map(|goal| goal.name.to_owned()).collect()
        } else {
            Vec::new()
        };
    }

    fn median_tenths(&self) -> u64 {
        let half = self.pace.values().sum::<u64>().div_ceil(2);
        let mut below = 0;
        let median = self.pace.iter().find(|(_, seeds)| {
            below += **seeds;
            below >= half
        });
        median.map_or(0, |(tenths, _)| *tenths)
    }

    fn keep_busiest(&mut self) {
        if self.busiest.len() > BUSIEST {
            self.busiest.sort_by_key(|busy| (std::cmp::Reverse(busy.tenths), busy.seed));
            self.busiest.truncate(BUSIEST);
        }
    }
}

/// What a seed that never ends fails with.
fn hang() -> Failure {
    Failure::Invariant(crate::oracles::progress::NAME.to_owned())
}
