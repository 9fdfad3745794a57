//! The gossip profile: membership and counters under everything a scenario can do to them.
//!
//! A seed draws a cluster, a network, a workload, which kinds of fault there are at all (swarm: a fault that is
//! always present hides what happens without it), and then the faults: singly, in bursts that overlap, and as
//! [`stories`] that random faults hardly ever tell, such as a return while a note is held.
//!
//! A drill is at most 120 push intervals long. Where the suspicion timeout is three push intervals that is twice the
//! reap memory, so nothing the protocol remembers is out of reach.
//!
//! What proves nothing is not drawn: a net that by itself keeps somebody silent for a suspicion timeout somewhere at
//! every moment, a host that expects pushes more often than another makes them, two hosts at one address.

mod faults;
mod stories;
mod wire_stories;

use std::collections::BTreeMap;
use std::time::Duration;

use firedrill_core::config::Secret;
use firedrill_core::id::{ClusterName, CounterName};

use self::faults::Kind;
use super::coverage::Goal;
use super::draw::Draw;
use super::{Profile, Venue};
use crate::scenario::hosts::{Seeds, plain};
use crate::scenario::model::{Host, HostIx, LinkSpec, Scenario, Span, Start, Step, Target, Verb, Workload};

/// Longest drill, in push intervals.
const INTERVALS_MAX: u64 = 120;
/// Most hosts of nearly all drills, and of one in twenty.
const HOSTS_MAX: u64 = 5;
const HOSTS_MAX_RARE: u64 = 16;
/// Longest latency over connections, in milliseconds: the event engine takes a connection whose round trip is above
/// a second for broken.
const LATENCY_MAX_MS: u64 = 450;

/// Membership and counters.
#[derive(Debug)]
pub struct Gossip;

impl Profile for Gossip {
    fn name(&self) -> &'static str {
        "gossip"
    }

    fn about(&self) -> &'static str {
        "membership and counters: crashes, pauses, partitions, clocks, replays, strangers"
    }

    fn draw(&self, seed: u64, venue: Venue) -> Scenario {
        Sketch::new(seed, venue).scenario()
    }

    fn sometimes(&self) -> &'static [Goal] {
        super::coverage::GOSSIP_GOALS
    }
}

/// A step to be.
struct Planned {
    at_ms: u64,
    lasts_ms: Option<u64>,
    verb: Verb,
}

/// A drill to be. Times are milliseconds; P and S those that most hosts have.
struct Sketch {
    draw: Draw,
    seed: u64,
    venue: Venue,
    push_ms: u64,
    suspicion_ms: u64,
    limit_ms: u64,
    hosts: Vec<Host>,
    net: LinkSpec,
    workloads: Vec<Workload>,
    oracles_off: BTreeMap<String, String>,
    /// New addresses given so far.
    moves: u8,
    kinds: Vec<Kind>,
    planned: Vec<Planned>,
}

impl Sketch {
    fn new(seed: u64, venue: Venue) -> Self {
        let mut draw = Draw::new(seed, "gossip");
        // Turmoil's ticks are ten milliseconds here; a shorter interval would test the tick.
        let pushes: &[u64] =
            if venue == Venue::Turmoil { &[200, 500, 1000] } else { &[20, 50, 100, 200, 500, 1000] };
        let push_ms = draw.pick(pushes);
        let suspicion_ms = push_ms * draw.pick(&[30, 30, 30, 31, 40, 50, 50, 80]) / 10;
        let intervals = match draw.between(0, 9) {
            0..=3 => draw.between(15, 40),
            4..=6 => draw.between(40, 80),
            _ => draw.between(80, INTERVALS_MAX),
        };
        let rare = draw.one_in(20) && venue != Venue::Turmoil;
        let starters =
            if rare { draw.between(HOSTS_MAX + 1, HOSTS_MAX_RARE) } else { draw.between(2, HOSTS_MAX) };
        let mut sketch = Self {
            seed,
            venue,
            push_ms,
            suspicion_ms,
            limit_ms: intervals * push_ms,
            hosts: Vec::new(),
            net: LinkSpec::DEFAULT,
            workloads: Vec::new(),
            oracles_off: BTreeMap::new(),
            moves: 0,
            kinds: Vec::new(),
            planned: Vec::new(),
            draw,
        };
        sketch.kinds = Kind::swarm(&mut sketch.draw, venue);
        sketch.hosts(usize::try_from(starters).unwrap_or(2));
        sketch.net();
        sketch.workload();
        sketch.identities();
        sketch.drill();
        sketch
    }

    /// Names, seeds, paces, clocks; now and then a host that comes later.
    fn hosts(&mut self, starters: usize) {
        let later = usize::from(self.kinds.contains(&Kind::AddNode));
        // Turmoil takes at most five in a campaign, the latecomer among them.
        let starters = if self.venue == Venue::Turmoil { starters.min(5 - later) } else { starters };
        let names: Vec<String> = (0..starters + later).map(name).collect();
        let seeds = self.draw.pick(&[Seeds::All, Seeds::All, Seeds::First, Seeds::Ring, Seeds::Chain]);
        self.hosts = plain(&names, starters, seeds, self.push_ms, self.suspicion_ms);
        if self.draw.one_in(8) {
            let odd_one = self.draw.index(self.hosts.len());
            let push = (self.push_ms * self.draw.pick(&[5, 15, 20, 30]) / 10).max(10);
            let config = &mut self.hosts[odd_one].config;
            config.push_interval_ms = push;
            config.suspicion_timeout_ms = push * self.draw.pick(&[3, 4, 5]);
            self.expect_no_more_than_is_pushed();
        }
        if self.draw.one_in(4) {
            for ix in 0..self.hosts.len() {
                let offset_us = self.offset_us();
                self.hosts[ix].wall_offset_us = if self.draw.one_in(2) { offset_us } else { 0 };
            }
        }
    }

    /// Gives every host this pace, and the network and the workload one that fits it.
    fn pace(&mut self, push_ms: u64, suspicion_ms: u64) {
        for workload in &mut self.workloads {
            let every_ms = workload.every.as_millis() * u128::from(push_ms) / u128::from(self.push_ms);
            workload.every = Duration::from_millis(u64::try_from(every_ms).unwrap_or(u64::MAX).max(1));
            workload.from = workload.every;
        }
        (self.push_ms, self.suspicion_ms) = (push_ms, suspicion_ms);
        for host in &mut self.hosts {
            host.config.push_interval_ms = push_ms;
            host.config.suspicion_timeout_ms = suspicion_ms;
        }
        let fits = Duration::from_millis((push_ms / 4).max(1));
        self.net.latency_max = self.net.latency_max.min(fits);
        self.net.latency_min = self.net.latency_min.min(fits);
    }

    /// Everybody's suspicion timeout outlasts two of anybody's intervals.
    fn expect_no_more_than_is_pushed(&mut self) {
        let slowest = self.hosts.iter().map(|host| host.config.push_interval_ms).max().unwrap_or(0);
        for host in &mut self.hosts {
            host.config.suspicion_timeout_ms = host.config.suspicion_timeout_ms.max(2 * slowest);
        }
    }

    fn net(&mut self) {
        let push = self.push_ms;
        let low = self.draw.between(1, push / 10);
        let more = self.draw.pick(&[0, 1, push / 10, push / 4, push, 2 * push]);
        // A push that is late by its jitter and its way still comes before a suspicion timeout is over.
        let slowest = self.hosts.iter().map(|host| host.config.push_interval_ms).max().unwrap_or(push);
        let strictest = self.hosts.iter().map(|host| host.config.suspicion_timeout_ms).min().unwrap_or(push);
        let in_time = strictest.saturating_sub(slowest * 5 / 4).max(1);
        let mut high = (low + more).min(LATENCY_MAX_MS).min(in_time);
        let share = |draw: &mut Draw, most| if draw.one_in(4) { draw.percent_ppm(1, most) } else { 0 };
        let (loss, duplicate, reorder) =
            (share(&mut self.draw, 20), share(&mut self.draw, 30), share(&mut self.draw, 20));
        // What is overtaken, by up to ten latencies, has to stay in time.
        if reorder > 0 {
            high = (self.suspicion_ms / 20).max(1);
        }
        self.net = LinkSpec {
            latency_min: Duration::from_millis(low.min(high)),
            latency_max: Duration::from_millis(high),
            // In a large cluster somebody would be silent at every moment.
            loss_ppm: if self.hosts.len() > 5 { 0 } else { loss },
            duplicate_ppm: duplicate,
            reorder_ppm: reorder,
            bandwidth: None,
        };
    }

    fn workload(&mut self) {
        for counter in 0..self.draw.pick(&[0, 1, 1, 1, 2]) {
            let every = self.push_ms * self.draw.pick(&[1, 2, 5, 10, 20]) / 10;
            let on = if self.draw.one_in(4) { vec![self.host()] } else { Vec::new() };
            let name = ["sightings", "alarms"][counter];
            self.counter(name, every.max(1), on);
        }
    }

    fn counter(&mut self, name: &str, every_ms: u64, on: Vec<HostIx>) {
        let every = Duration::from_millis(every_ms);
        let counter = CounterName::new(name).expect("a literal that keeps the rule");
        let by = self.draw.pick(&[1, 1, 1, 7]);
        self.workloads.push(Workload { counter, every, by, on, from: every, until: None, span: NOWHERE });
    }

    /// Two hosts with one id, a host of another cluster: what must not disturb the others.
    fn identities(&mut self) {
        if self.draw.one_in(40) && self.hosts.len() > 2 {
            let id = self.hosts[0].id.clone();
            let twin = self.hosts.len() - 1;
            self.hosts[twin].config.node_id = Some(id.clone());
            self.hosts[twin].id = id;
            self.off(&["views_agree", "documents_agree", "counters_exact"], "two hosts fight over one id");
        }
        if self.venue != Venue::Fast && self.draw.one_in(6) {
            let stranger = self.draw.index(self.hosts.len());
            let config = &mut self.hosts[stranger].config;
            if self.draw.one_in(2) {
                config.secret = Secret::new("not the secret of this cluster");
            } else {
                config.cluster_name =
                    ClusterName::new("another-cluster").expect("a literal that keeps the rule");
            }
            self.off(
                &["views_agree", "documents_agree", "counters_exact"],
                "a host of another cluster never agrees",
            );
        }
    }

    fn off(&mut self, oracles: &[&str], reason: &str) {
        self.oracles_off.extend(oracles.iter().map(|oracle| ((*oracle).to_owned(), reason.to_owned())));
    }

    /// The faults: some of the drills tell a story first, most draw some more.
    fn drill(&mut self) {
        let told = if self.venue == Venue::Full { !self.draw.one_in(3) } else { self.draw.one_in(3) };
        if told {
            stories::tell(self);
        }
        if !told || self.draw.one_in(2) {
            self.faults();
        }
        self.add_latecomers();
        if self.draw.one_in(2) {
            self.end_with_the_last_fault();
        }
    }

    /// Ends the drill soon after its last fault: what is slow to heal is then judged by the time since that.
    fn end_with_the_last_fault(&mut self) {
        let end = |planned: &Planned| planned.at_ms + planned.lasts_ms.unwrap_or(0);
        let last_ms = self.planned.iter().map(end).filter(|&end_ms| end_ms < self.limit_ms).max();
        let soon_ms = if self.venue == Venue::Turmoil { self.push_ms } else { 1 };
        let more_ms = self.draw.pick(&[soon_ms, self.push_ms, self.suspicion_ms]);
        let last_start_ms = self.planned.iter().map(|planned| planned.at_ms).max().unwrap_or(0);
        let end_ms = last_ms.unwrap_or(0).max(last_start_ms.min(self.limit_ms)) + more_ms;
        self.limit_ms = self.limit_ms.min(end_ms.max(self.push_ms));
    }

    /// Faults that come singly or in bursts, from early in the drill to its end.
    fn faults(&mut self) {
        let (p, s) = (self.push_ms, self.suspicion_ms);
        // Now and then the faults begin before anybody knows anybody.
        let mut at_ms =
            if self.draw.one_in(10) { self.draw.between(1, 2 * p) } else { self.draw.between(5 * p, 10 * p) };
        for _ in 0..self.draw.between(1, 8) {
            if at_ms >= self.limit_ms {
                break;
            }
            let kind = self.draw.index(self.kinds.len());
            self.fault(self.kinds[kind], at_ms);
            at_ms += match self.draw.between(0, 9) {
                0 => 0,
                1 => 1,
                2..=5 => self.draw.between(1, 3 * p),
                6 | 7 => self.draw.between(p, 2 * s),
                8 => self.draw.between(s, 6 * s),
                _ => self.draw.between(s, 22 * s),
            };
        }
    }

    /// Hosts that come later come at some moment, be it the last.
    fn add_latecomers(&mut self) {
        for ix in 0..self.hosts.len() {
            if !self.hosts[ix].from_start {
                let at_ms = self.draw.between(self.push_ms / 2, self.limit_ms.saturating_sub(1));
                let verb = Verb::AddNode(Target::Hosts(vec![HostIx(ix)]));
                self.planned.push(Planned { at_ms, lasts_ms: None, verb });
            }
        }
    }

    fn plan(&mut self, at_ms: u64, lasts_ms: Option<u64>, verb: Verb) {
        self.planned.push(Planned { at_ms, lasts_ms, verb });
    }

    /// How many hosts run from the start; they come first.
    fn starters(&self) -> usize {
        self.hosts.iter().filter(|host| host.from_start).count()
    }

    /// A host that runs from the start.
    fn host(&mut self) -> HostIx {
        HostIx(self.draw.index(self.starters()))
    }

    /// Two different hosts that run from the start.
    fn way(&mut self) -> (HostIx, HostIx) {
        let starters = self.starters();
        let from = self.draw.index(starters);
        (HostIx(from), HostIx((from + 1 + self.draw.index(starters - 1)) % starters))
    }

    /// How far a wall clock steps, in microseconds.
    fn offset_us(&mut self) -> i64 {
        let (p, s) = (self.push_ms, self.suspicion_ms);
        let by_ms = match self.draw.between(0, 5) {
            0 => 1,
            1 => self.draw.between(1, 2 * p),
            2 => self.draw.between(p, 4 * s),
            3 => self.draw.between(s, 40 * s),
            _ => 3_600_000,
        };
        let by_us = i64::try_from(by_ms * 1_000).unwrap_or(i64::MAX);
        if self.draw.one_in(4) { by_us } else { -by_us }
    }

    fn scenario(mut self) -> Scenario {
        // Steps that would fire at the end or after it are not part of the drill; turmoil fires them a tick late.
        let late_ms = if self.venue == Venue::Turmoil { 2 * self.venue.tick_ms() } else { 0 };
        self.planned.retain(|planned| planned.at_ms + late_ms < self.limit_ms);
        self.planned.sort_by_key(|planned| planned.at_ms);
        let steps: Vec<Step> = self.planned.into_iter().map(|planned| planned.step(self.limit_ms)).collect();
        let alike = |one: &Host, other: &Host| {
            one.config.secret == other.config.secret && one.config.cluster_name == other.config.cluster_name
        };
        let bytes = |step: &Step| faults::needs_bytes(&step.verb);
        Scenario {
            name: format!("gossip-{}", self.seed),
            about: format!("Drawn from seed {} of profile gossip.", self.seed),
            seed: self.seed,
            time_limit: Duration::from_millis(self.limit_ms),
            needs_full: steps.iter().any(bytes) || self.hosts.iter().any(|host| !alike(host, &self.hosts[0])),
            hosts: self.hosts,
            net: self.net,
            workloads: self.workloads,
            steps,
            expects: Vec::new(),
            oracles_off: self.oracles_off,
            settle_within: None,
            same_millisecond: false,
            files: Vec::new(),
        }
    }
}

impl Planned {
    /// A fault that would outlast the drill stands until the drill ends it.
    fn step(self, limit_ms: u64) -> Step {
        let lasts_ms = self.lasts_ms.filter(|lasts| self.at_ms + lasts < limit_ms);
        Step {
            id: None,
            start: Start::At(Duration::from_millis(self.at_ms)),
            verb: self.verb,
            lasts: lasts_ms.map(Duration::from_millis),
            every: None,
            until: None,
            span: NOWHERE,
        }
    }
}

/// Where drawn things stand: in no file.
const NOWHERE: Span = Span { file: 0, start: 0, end: 0 };

/// a, b, c …
fn name(ix: usize) -> String {
    char::from(b'a' + u8::try_from(ix % 26).unwrap_or(0)).to_string()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use firedrill_core::guards::Guards;

    use super::*;
    use crate::drill::run;
    use crate::fuzz::Mix;
    use crate::scenario::LoadOptions;

    fn drawn(seed: u64) -> Scenario {
        Gossip.draw(seed, Mix::ALL.venue(seed))
    }

    #[test]
    fn a_drill_is_drawn_alike_from_the_same_seed_and_unlike_from_another() {
        let text = |seed| format!("{:?}", drawn(seed));
        assert_eq!(text(7), text(7));
        assert_ne!(text(7), text(8).replace('8', "7"));
    }

    #[test]
    fn nearly_all_clusters_are_small_and_no_drill_is_longer_than_120_push_intervals() {
        let (mut large, mut longest) = (0, 0);
        for seed in 0..4_000 {
            let scenario = drawn(seed);
            assert!((2..=17).contains(&scenario.hosts.len()), "seed {seed}");
            large += u32::from(scenario.hosts.iter().filter(|host| host.from_start).count() > 5);
            let slowest = scenario.hosts.iter().map(|host| host.config.push_interval_ms).max();
            let intervals = scenario.time_limit.as_millis() / u128::from(slowest.unwrap_or(1));
            longest = longest.max(intervals);
        }
        assert!((140..260).contains(&large), "{large} of 4,000 are large");
        assert!((110..=120).contains(&longest), "{longest}");
    }

    #[test]
    fn turmoil_is_given_five_hosts_at_most_and_no_verb_it_cannot_do() {
        for seed in 0..500 {
            let scenario = Gossip.draw(seed, Venue::Turmoil);
            assert!(scenario.hosts.len() <= 5, "seed {seed}");
            for step in &scenario.steps {
                assert!(faults::can(step.verb.name(), Venue::Turmoil), "seed {seed}: {:?}", step.verb);
            }
        }
    }

    /// What is drawn is a scenario like any other: written to a file, it is the same drill.
    #[test]
    fn a_drawn_drill_reads_back_from_its_file_as_the_same_drill() {
        for seed in 0..300 {
            for venue in [Venue::Fast, Venue::Full, Venue::Turmoil] {
                let scenario = Gossip.draw(seed, venue);
                let text = scenario.to_toml();
                let read = Scenario::parse(
                    &text,
                    Path::new("drawn.toml"),
                    &|_| Err(std::io::Error::other("nothing is included")),
                    LoadOptions { engine: venue.engine(), wire: venue.wire(), oracles: &[] },
                )
                .unwrap_or_else(|report| panic!("seed {seed}, {venue:?}: {report:?}\n{text}"));
                assert_eq!(read.to_toml(), text, "seed {seed}");
                if venue == Venue::Fast {
                    let digest = |scenario: &Scenario| {
                        let options = crate::fuzz::options(scenario, venue, Guards::ON);
                        run(scenario, &options).expect("it runs").digest
                    };
                    assert_eq!(digest(&read), digest(&scenario), "seed {seed}:\n{text}");
                }
            }
        }
    }
}
