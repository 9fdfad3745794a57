//! The report of a campaign: what was played, what was reached, what failed.
//!
//! Plain data, the same for the same seeds on any machine: nothing in it depends on time, threads or folders. Reports
//! of shards merge into the report that one machine would have written.

use std::cmp::Reverse;
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
    /// Those of them whose drills never came back: played again they would hang again.
    #[serde(default)]
    pub hung: Vec<u64>,
    /// Those of them that did not fail by themselves: beside the others of the campaign they were too busy.
    #[serde(default)]
    pub too_busy: Vec<u64>,
    /// The first of them looked at closely.
    pub found: Option<Found>,
}

impl Failed {
    /// The first seed that can be played again.
    pub fn first_that_ends(&self) -> Option<u64> {
        self.seeds.iter().copied().find(|seed| !self.hung.contains(seed))
    }
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
            self.failed(failure).take_in(&[tested.seed], None);
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
        let failed = self.failed(&hang());
        failed.take_in(&[seed], None);
        include(&mut failed.hung, &[seed]);
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
            let own = self.failed(&failed.failure);
            own.take_in(&failed.seeds, failed.found);
            include(&mut own.hung, &failed.hung);
            include(&mut own.too_busy, &failed.too_busy);
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

    /// The group of a failure, made where there is none. Groups are in the order of failures, however they came.
    fn failed(&mut self, failure: &Failure) -> &mut Failed {
        let place = match self.failures.binary_search_by(|group| group.failure.cmp(failure)) {
            Ok(place) => place,
            Err(place) => {
                self.failures.insert(place, Failed::new(failure.clone()));
                place
            }
        };
        &mut self.failures[place]
    }

    /// Judges what depends on all seeds: who was a hundred times as busy as the median, which goals were missed.
    fn judge(&mut self) {
        self.judge_pace();
        let profile = PROFILES.iter().find(|profile| profile.name() == self.profile);
        let goals = profile.map(|profile| profile.sometimes()).unwrap_or_default();
        self.missed = if self.demands_goals() {
            self.coverage.missed(goals, self.mix).iter().map(|goal| goal.name.to_owned()).collect()
        } else {
            Vec::new()
        };
    }

    /// Whom a shard found too busy beside its own seeds may be like others of the whole campaign, or the other way
    /// round: earlier judgements do not stand.
    fn judge_pace(&mut self) {
        let most = self.median_tenths().max(1).saturating_mul(INPUTS_TIMES_MEDIAN);
        let judged = self.busiest.iter().filter(|busy| busy.tenths > most).map(|busy| busy.seed);
        let mut judged: Vec<u64> = judged.collect();
        let group = self.failed(&hang());
        let acquitted = std::mem::take(&mut group.too_busy);
        group.seeds.retain(|seed| !acquitted.contains(seed));
        judged.retain(|seed| !group.seeds.contains(seed));
        include(&mut group.too_busy, &judged);
        include(&mut group.seeds, &judged);
        let seeds = &group.seeds;
        group.found = group.found.take().filter(|found| seeds.contains(&found.seed));
        self.failures.retain(|failed| !failed.seeds.is_empty());
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

    /// The busiest first. No two have one seed, so their order is that of no merge.
    fn keep_busiest(&mut self) {
        self.busiest.sort_unstable_by_key(|busy| (Reverse(busy.tenths), busy.seed));
        self.busiest.truncate(BUSIEST);
    }
}

impl Failed {
    const fn new(failure: Failure) -> Self {
        Self { failure, seeds: Vec::new(), hung: Vec::new(), too_busy: Vec::new(), found: None }
    }

    /// More seeds that failed so, and what a look at one of them showed: that at the first seed is kept.
    fn take_in(&mut self, seeds: &[u64], found: Option<Found>) {
        include(&mut self.seeds, seeds);
        self.found = match (self.found.take(), found) {
            (Some(one), Some(other)) => Some(if other.seed < one.seed { other } else { one }),
            (one, other) => one.or(other),
        };
    }
}

/// Adds seeds to an ordered list of them, each once.
fn include(list: &mut Vec<u64>, seeds: &[u64]) {
    list.extend(seeds);
    list.sort_unstable();
    list.dedup();
}

/// What a seed that never ends fails with.
fn hang() -> Failure {
    Failure::Invariant(crate::oracles::progress::NAME.to_owned())
}

#[cfg(test)]
mod tests {
    use firedrill_core::guards::Guards;

    use super::*;
    use crate::drill::reach::Reach;
    use crate::fuzz::Gossip;

    const PLAN: Plan = Plan {
        profile: &Gossip,
        mix: Mix::ALL,
        guards: Guards::ON,
        sabotage: None,
        seeds: Seeds { from: 0, to: 1_000 },
        shard: Shard::WHOLE,
        jobs: 1,
        fail_fast: false,
    };

    /// A seed as busy as this, in tenths of what is expected.
    fn tested(seed: u64, tenths: u64) -> Tested {
        Tested {
            seed,
            venue: Venue::Fast,
            reach: Reach::default(),
            failure: None,
            events: 10 * tenths,
            simulated_us: 1,
            expected: 100,
        }
    }

    fn failing(seed: u64, oracle: &str) -> Tested {
        Tested { failure: Some(Failure::Invariant(oracle.to_owned())), ..tested(seed, 10) }
    }

    /// The finished report of a shard of these, by their seeds.
    fn report(shard: Shard, all: &[Tested]) -> Report {
        let mut report = Report::new(&Plan { shard, ..PLAN });
        let own = all.iter().filter(|tested| tested.seed % shard.of == shard.index - 1);
        own.for_each(|tested| report.add(tested));
        report.finish(true);
        report
    }

    fn progress_of(report: &Report) -> Option<&Failed> {
        report.failures.iter().find(|failed| failed.failure == hang())
    }

    /// Asserts that three shards in any order give the very bytes of the whole.
    #[track_caller]
    fn merges_whole(all: &[Tested]) {
        let shards = [1, 2, 3].map(|index| Shard { index, of: 3 });
        let whole = Report { shards: shards.to_vec(), ..report(Shard::WHOLE, all) };
        let bytes = |report: &Report| serde_json::to_string(report).unwrap();
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let merged = Report::merge(order.map(|ix| report(shards[ix], all))).unwrap();
            assert_eq!(bytes(&merged), bytes(&whole), "{order:?}");
        }
    }

    #[test]
    fn shards_merge_into_the_bytes_of_the_whole_in_any_order_with_few_seeds_and_with_many() {
        for many in [1, 2, 3, 4, 7, 10, 11, 12, 40] {
            let mut all: Vec<Tested> = (0..many).map(|seed| tested(seed, seed * 7 % 5 + 8)).collect();
            merges_whole(&all);
            all.push(failing(many, "views_agree"));
            all.push(failing(many + 1, "progress"));
            all.push(failing(many + 2, "frame_cap"));
            merges_whole(&all);
        }
    }

    #[test]
    fn the_busiest_come_first_however_few_they_are() {
        let all = [tested(0, 11), tested(1, 30), tested(2, 11)];
        let report = report(Shard::WHOLE, &all);
        let busiest: Vec<u64> = report.busiest.iter().map(|busy| busy.seed).collect();
        assert_eq!(busiest, [1, 0, 2]);
    }

    #[test]
    fn a_seed_beyond_a_hundred_times_the_median_is_a_failure_with_its_seed() {
        let like_others = |busy| [tested(0, 12), tested(1, 12), tested(2, 12), tested(7, busy)];
        assert_eq!(report(Shard::WHOLE, &like_others(1_200)).failures, []);
        let report = report(Shard::WHOLE, &like_others(1_201));
        let failed = progress_of(&report).unwrap();
        assert_eq!((&failed.seeds[..], failed.first_that_ends()), (&[7][..], Some(7)));
    }

    #[test]
    fn a_merge_judges_by_the_median_of_all_shards() {
        // Seeds by threes: the first shard is calm but for one, the other two are busy throughout.
        let calm = |seed| if seed % 3 == 0 { 10 } else { 50 };
        let mut all: Vec<Tested> = (0..30).map(|seed| tested(seed, calm(seed))).collect();
        all[3] = tested(3, 1_500);
        let first = report(Shard { index: 1, of: 3 }, &all);
        assert_eq!(progress_of(&first).unwrap().seeds, [3]);
        assert_eq!(report(Shard::WHOLE, &all).failures, []);
        merges_whole(&all);

        // The other way round: what is usual in its own shard is beyond measure in the campaign.
        for tested in all.iter_mut().filter(|tested| tested.seed % 3 == 0) {
            tested.events = 100_000;
        }
        assert_eq!(report(Shard { index: 1, of: 3 }, &all).failures, []);
        assert_eq!(progress_of(&report(Shard::WHOLE, &all)).unwrap().seeds.len(), BUSIEST);
        merges_whole(&all);
    }

    #[test]
    fn who_is_acquitted_by_a_merge_takes_along_what_was_found_and_who_failed_by_itself_stays() {
        let mut all: Vec<Tested> =
            (0..30).map(|seed| tested(seed, if seed % 3 == 0 { 10 } else { 50 })).collect();
        all[3] = tested(3, 1_500);
        all[6] = failing(6, "progress");
        let shard = |index| report(Shard { index, of: 3 }, &all);
        let mut first = shard(1);
        assert_eq!(progress_of(&first).unwrap().seeds, [3, 6]);
        first.failures[0].found = Some(found(3));
        let merged = Report::merge([shard(2), first, shard(3)]).unwrap();
        let failed = progress_of(&merged).unwrap();
        assert_eq!((&failed.seeds[..], &failed.too_busy[..], &failed.found), (&[6][..], &[][..], &None));
    }

    #[test]
    fn beside_a_seed_that_hangs_those_that_failed_alike_can_still_be_looked_at() {
        let mut report = Report::new(&PLAN);
        report.add_hung(2, Venue::Fast);
        report.add(&failing(4, "progress"));
        report.finish(false);
        let failed = progress_of(&report).unwrap();
        assert_eq!((&failed.seeds[..], &failed.hung[..]), (&[2, 4][..], &[2][..]));
        assert_eq!(failed.first_that_ends(), Some(4));
    }

    fn found(seed: u64) -> Found {
        let none = String::new;
        Found {
            seed,
            venue: Venue::Fast,
            name: none(),
            fact: none(),
            contradiction: none(),
            invariant: none(),
            source: none(),
            at_us: 0,
            steps: (0, 0),
            hosts: (0, 0),
            scenario: none(),
        }
    }
}
