//! The issuance profile: one issuer, exactly once, under everything that takes an issuer away or fools it.
//!
//! A seed draws the intervals of an issuance, short ones, with every relation that the configuration allows; a
//! cluster; then faults of processes, network, clocks and disks, most of them aimed at whoever issues, singly and in
//! bursts, and now and then as a [`stories`] that random faults hardly ever tell.
//!
//! Times are in ticks (Z) of about 0.777 s: what decides is how a fault lies to silence, check and pull.

mod faults;
mod stories;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use firedrill_core::config::{Fencing, IssuanceConfig};
use firedrill_core::id::NodeId;
use firedrill_core::issuance::decimal::Decimal;
use firedrill_core::issuance::window::Z;

use self::faults::Kind;
use super::coverage::{Goal, ISSUANCE_GOALS};
use super::draw::Draw;
use super::{Profile, Venue};
use crate::scenario::hosts::{Seeds, plain};
use crate::scenario::model::{Host, HostIx, LinkSpec, Scenario, Span, Start, Step, Target, Verb};

/// Longest drill, in ticks: four minutes.
const TICKS_MAX: u64 = 310;
/// Of most drills, and of one in twenty.
const HOSTS_MAX: u64 = 5;
const HOSTS_MAX_RARE: u64 = 9;

/// One issuer and its failover.
#[derive(Debug)]
pub struct Issuance;

impl Profile for Issuance {
    fn name(&self) -> &'static str {
        "issuance"
    }

    fn about(&self) -> &'static str {
        "one issuer and its failover: crashes, partitions, clocks and disks, with and without fencing"
    }

    fn draw(&self, seed: u64, venue: Venue) -> Scenario {
        Sketch::new(seed, venue).scenario(seed)
    }

    fn sometimes(&self) -> &'static [Goal] {
        ISSUANCE_GOALS
    }
}

/// A step to be.
struct Planned {
    at_ms: u64,
    lasts_ms: Option<u64>,
    verb: Verb,
}

/// A drill to be.
struct Sketch {
    draw: Draw,
    config: IssuanceConfig,
    /// Which host is the configured issuer.
    issuer: HostIx,
    hosts: Vec<Host>,
    net: LinkSpec,
    limit_z: u64,
    kinds: Vec<Kind>,
    planned: Vec<Planned>,
}

impl Sketch {
    fn new(seed: u64, venue: Venue) -> Self {
        let mut draw = Draw::new(seed, "issuance");
        let rare = draw.one_in(20) && venue != Venue::Turmoil;
        let hosts =
            if rare { draw.between(HOSTS_MAX + 1, HOSTS_MAX_RARE) } else { draw.between(2, HOSTS_MAX) };
        let names: Vec<String> = (0..u8::try_from(hosts).unwrap_or(2)).map(name).collect();
        let issuer = HostIx(draw.index(names.len()));
        let config = config(&mut draw, &names, issuer);
        let push_ms = if venue == Venue::Turmoil { 500 } else { draw.pick(&[200, 500, 500, 1000]) };
        let mut hosts = plain(&names, names.len(), Seeds::All, push_ms, 5 * push_ms);
        for host in &mut hosts {
            host.issuance = Some(config.clone());
            // Clocks of a cluster that keeps time differ by less than a tick.
            if draw.one_in(3) {
                host.wall_offset_us = i64::try_from(draw.between(0, 700_000)).unwrap_or(0);
            }
        }
        let silences = draw.between(3, 9);
        let limit_z = (config.boot_grace_z.0 + silences * config.silence_z.0).clamp(20, TICKS_MAX);
        let net = net(&mut draw);
        let mut sketch =
            Self { draw, config, issuer, hosts, net, limit_z, kinds: Vec::new(), planned: Vec::new() };
        sketch.kinds = Kind::swarm(&mut sketch.draw, venue);
        if sketch.draw.one_in(3) {
            stories::tell(&mut sketch);
        }
        if sketch.planned.is_empty() || sketch.draw.one_in(2) {
            sketch.faults();
        }
        sketch
    }

    /// Faults that come singly or in bursts, mostly once somebody issues.
    fn faults(&mut self) {
        let IssuanceConfig {
            boot_grace_z: Z(grace),
            pull_z: Z(pull),
            check_z: Z(check),
            silence_z: Z(silence),
            ..
        } = self.config;
        let mut at_z = if self.draw.one_in(8) {
            self.draw.between(0, grace)
        } else {
            grace + self.draw.between(2, 3 * pull)
        };
        for _ in 0..self.draw.between(1, 7) {
            if at_z >= self.limit_z {
                break;
            }
            let kind = self.kinds[self.draw.index(self.kinds.len())];
            let at_ms = self.within(at_z);
            self.fault(kind, at_ms);
            at_z += match self.draw.between(0, 9) {
                0 | 1 => 0,
                2..=4 => self.draw.between(1, pull + check),
                5..=7 => self.draw.between(1, silence),
                _ => self.draw.between(silence, 2 * silence),
            };
        }
    }

    /// A moment within this tick, in milliseconds.
    fn within(&mut self, z: u64) -> u64 {
        ms(z) + self.draw.between(0, 776)
    }

    fn plan(&mut self, at_ms: u64, lasts_ms: Option<u64>, verb: Verb) {
        self.planned.push(Planned { at_ms, lasts_ms, verb });
    }

    /// A host: the configured issuer in four of ten cases.
    fn host(&mut self) -> HostIx {
        if self.draw.between(0, 9) < 4 { self.issuer } else { HostIx(self.draw.index(self.hosts.len())) }
    }

    /// Two different hosts.
    fn way(&mut self) -> (HostIx, HostIx) {
        let (from, many) = (self.host(), self.hosts.len());
        (from, HostIx((from.0 + 1 + self.draw.index(many - 1)) % many))
    }

    fn scenario(mut self, seed: u64) -> Scenario {
        self.planned.sort_by_key(|planned| planned.at_ms);
        let limit_ms = ms(self.limit_z);
        let steps = self.planned.into_iter().filter(|planned| planned.at_ms < limit_ms);
        let steps: Vec<Step> = steps.map(|planned| planned.step(limit_ms)).collect();
        Scenario {
            name: format!("issuance-{seed}"),
            about: format!("Drawn by the issuance profile from seed {seed}."),
            seed,
            time_limit: Duration::from_millis(limit_ms),
            needs_full: false,
            hosts: self.hosts,
            net: self.net,
            workloads: Vec::new(),
            steps,
            expects: Vec::new(),
            oracles_off: BTreeMap::new(),
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
            span: Span::default(),
        }
    }
}

/// Short intervals, in every relation that is allowed.
fn config(draw: &mut Draw, names: &[String], issuer: HostIx) -> IssuanceConfig {
    let id = |name: &String| NodeId::new(name).expect("a letter is a node id");
    let width = draw.pick(&[1, 1, 1, 2, 3]);
    let pull = draw.pick(&[1, 2, 4, 8]);
    let check = draw.pick(&[1, 2, 4, 8]);
    let silence_min = (pull + check + 1).max(2 * width + 2 * pull);
    let silence = silence_min + draw.pick(&[0, 1, 4, 12]);
    let mut eligible = BTreeSet::new();
    if names.len() > 2 && draw.one_in(4) {
        eligible = names.iter().filter(|_| !draw.one_in(4)).map(id).collect();
        eligible.insert(id(&names[issuer.0]));
    }
    let fence = silence * 8 / 10;
    let fenced = names.len() > 2 && draw.one_in(3) && fence > 0;
    if fenced && eligible.len() < 3 {
        eligible = names.iter().map(id).collect();
    }
    IssuanceConfig {
        issuer: id(&names[issuer.0]),
        width,
        rate: Decimal::from_units(999_999_999_999),
        genesis_ms: 0,
        max_elapsed_per_seal: draw.pick(&[1, 8, 8, 8]),
        catchup_max_z: Z(draw.pick(&[0, 0, 20, 1000])),
        failover: fenced || !draw.one_in(16),
        silence_z: Z(silence),
        boot_grace_z: Z(draw.pick(&[1, 4, 8, 16])),
        check_z: Z(check),
        pull_z: Z(pull),
        probe_timeout_ms: draw.pick(&[300, 500, 2000]),
        eligible,
        fencing: if fenced { Fencing::Majority } else { Fencing::None },
        fence_z: Z(fence.max(1)),
    }
}

/// A network that by itself fools nobody: probes and pulls come back in time.
fn net(draw: &mut Draw) -> LinkSpec {
    let latency_min = draw.millis(1, 10);
    let latency_max = latency_min + draw.millis(0, 40);
    let loss_ppm = if draw.one_in(4) { draw.percent_ppm(1, 5) } else { 0 };
    LinkSpec { latency_min, latency_max, loss_ppm, ..LinkSpec::DEFAULT }
}

/// Ticks in milliseconds, rounded up.
const fn ms(z: u64) -> u64 {
    (z * 1_000_000).div_ceil(1_287)
}

/// a, b, c …
fn name(ix: u8) -> String {
    char::from(b'a' + ix % 26).to_string()
}

/// These hosts.
fn hosts(hosts: impl IntoIterator<Item = HostIx>) -> Target {
    Target::Hosts(hosts.into_iter().collect())
}

/// This host.
fn one(host: HostIx) -> Target {
    hosts([host])
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use firedrill_core::guards::Guards;

    use super::*;
    use crate::drill::run;
    use crate::scenario::LoadOptions;

    #[test]
    fn intervals_keep_the_rules_of_the_configuration() {
        let mut fenced = 0;
        for seed in 0..2_000 {
            let scenario = Issuance.draw(seed, Venue::Fast);
            let config = scenario.hosts[0].issuance.clone().unwrap();
            let (silence, pull, check) = (config.silence_z.0, config.pull_z.0, config.check_z.0);
            assert!(silence > pull + check && silence >= 2 * config.width + 2 * pull, "seed {seed}");
            if config.fencing == Fencing::Majority {
                fenced += 1;
                assert!(config.eligible.len() >= 3 && config.fence_z.0 * 10 <= silence * 8, "seed {seed}");
                assert!(config.failover && config.eligible.contains(&config.issuer), "seed {seed}");
            }
            assert!(scenario.time_limit <= Duration::from_millis(ms(TICKS_MAX)), "seed {seed}");
        }
        assert!((300..700).contains(&fenced), "{fenced}");
    }

    #[test]
    fn turmoil_is_given_five_hosts_at_most() {
        assert!((0..300).all(|seed| Issuance.draw(seed, Venue::Turmoil).hosts.len() <= 5));
    }

    #[test]
    fn a_drawn_drill_reads_back_from_its_file_as_the_same_drill() {
        for seed in 0..150 {
            let scenario = Issuance.draw(seed, Venue::Fast);
            let text = scenario.to_toml();
            let read = Scenario::parse(
                &text,
                Path::new("drawn.toml"),
                &|_| Err(std::io::Error::other("nothing is included")),
                LoadOptions { engine: Venue::Fast.engine(), wire: Venue::Fast.wire(), oracles: &[] },
            )
            .unwrap_or_else(|report| panic!("seed {seed}: {report:?}\n{text}"));
            assert_eq!(read.to_toml(), text, "seed {seed}");
            let digest = |scenario: &Scenario| {
                let options = crate::fuzz::options(scenario, Venue::Fast, Guards::ON);
                run(scenario, &options).expect("it runs").digest
            };
            assert_eq!(digest(&read), digest(&scenario), "seed {seed}:\n{text}");
        }
    }
}
