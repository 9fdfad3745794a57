//! Random storms: drills drawn from a seed, each run on both wires of the event engine and judged by every oracle.
//!
//! A storm is drawn as the text of a scenario, so one that fails is a file that `firedrill run` replays. Faults
//! come close together, since it is their overlaps that nobody thought of: most begin within a few push intervals
//! of one another, and a few last longer than any memory of the protocol.
//!
//! `STORMS=10000` runs so many, `STORMS_FROM=5000` from that seed on. A failure is reduced first: steps are left
//! out, then the network and the clients are made plain, as long as the same oracle fires on the same wire.
//!
//! Absent: expectations. What must hold in any storm is the oracles' business.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use firedrill_core::rng::{Rng, Seed};
use firedrill_sim::drill::{RunOptions, run};
use firedrill_sim::engine::{EngineKind, Wire};
use firedrill_sim::outcome::{Outcome, Verdict};
use firedrill_sim::scenario::{LoadOptions, Scenario};

/// How many storms a plain test run sees.
const STORMS: u64 = 120;
/// How many failures are told in full.
const TOLD_MAX: usize = 12;

#[test]
fn no_storm_breaks_an_invariant_or_outlasts_its_bound() {
    let number = |name: &str, default| {
        std::env::var(name).map_or(default, |text| text.parse().expect("a number of storms, or a seed"))
    };
    let (from, count) = (number("STORMS_FROM", 0), number("STORMS", STORMS));
    let next = AtomicU64::new(from);
    let failures = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= from + count {
                        break;
                    }
                    let storm = Storm::drawn(seed);
                    if let Some(failure) = fails(&storm) {
                        let reduced = reduced(storm, failure);
                        failures.lock().expect("no thread panics while it holds this").push((seed, reduced));
                    }
                }
            });
        }
    });
    let mut failures = failures.into_inner().expect("all threads have ended");
    failures.sort_by_key(|(seed, _)| *seed);
    let told: String = failures.iter().take(TOLD_MAX).map(|(seed, storm)| tell(*seed, storm)).collect();
    let seeds: Vec<u64> = failures.iter().map(|(seed, _)| *seed).collect();
    assert!(failures.is_empty(), "{} of {count} storms fail: {seeds:?}\n{told}", failures.len());
}

#[test]
fn a_storm_is_drawn_alike_from_the_same_seed() {
    assert_eq!(Storm::drawn(7).text(), Storm::drawn(7).text());
    assert_ne!(Storm::drawn(7).text(), Storm::drawn(8).text());
}

/// Which oracle fired (a panic is one's too), and on which wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Failure {
    wire: Wire,
    oracle: &'static str,
}

/// One fault of a storm.
#[derive(Debug, Clone)]
struct Fault {
    at_ms: u64,
    /// The verb and its value.
    verb: String,
    lasts_ms: Option<u64>,
}

/// A drill to be.
#[derive(Debug, Clone)]
struct Storm {
    seed: u64,
    hosts: u64,
    seeds: &'static str,
    push_ms: u64,
    suspicion_ms: u64,
    /// One host with a pace of its own: its name, P, S.
    odd_one: Option<(String, u64, u64)>,
    /// Another host bears the id of the first.
    twin: bool,
    latency: String,
    loss: Option<String>,
    duplicate: Option<String>,
    reorder: Option<String>,
    workload_ms: Option<u64>,
    limit_ms: u64,
    faults: Vec<Fault>,
}

impl Storm {
    fn drawn(seed: u64) -> Self {
        Draw { rng: Seed::from_u64(seed).fork("storm").rng(), seed }.storm()
    }

    /// The scenario file.
    fn text(&self) -> String {
        let mut text = format!(
            "name = \"storm-{0}\"\nabout = \"A storm drawn from seed {0}.\"\nseed = {0}\ntime_limit = \"{1}ms\"\n",
            self.seed, self.limit_ms
        );
        let mut names: Vec<String> = (0..self.hosts).map(host).collect();
        if self.twin {
            names.push("twin".to_owned());
        }
        let line = |text: &mut String, line: std::fmt::Arguments<'_>| {
            text.write_fmt(line).expect("a string takes everything");
            text.push('\n');
        };
        line(&mut text, format_args!("\n[nodes]\nnames = {names:?}\nseeds = {:?}", self.seeds));
        line(
            &mut text,
            format_args!(
                "\n[config.cluster]\npush_interval_ms = {}\nsuspicion_timeout_ms = {}",
                self.push_ms, self.suspicion_ms
            ),
        );
        if let Some((name, push, suspicion)) = &self.odd_one {
            line(
                &mut text,
                format_args!(
                    "\n[config_for.{name}.cluster]\npush_interval_ms = {push}\nsuspicion_timeout_ms = {suspicion}"
                ),
            );
        }
        if self.twin {
            line(&mut text, format_args!("\n[config_for.twin.cluster]\nnode_id = \"a\""));
            line(&mut text, format_args!("\n[oracles.off]"));
            for oracle in ["views_agree", "documents_agree", "counters_exact"] {
                line(&mut text, format_args!("{oracle} = \"two hosts fight over one id\""));
            }
        }
        line(&mut text, format_args!("\n[net]\nlatency = {:?}", self.latency));
        let shares = [("loss", &self.loss), ("duplicate", &self.duplicate), ("reorder", &self.reorder)];
        for (key, share) in shares {
            if let Some(share) = share {
                line(&mut text, format_args!("{key} = {share:?}"));
            }
        }
        if let Some(every) = self.workload_ms {
            line(&mut text, format_args!("\n[[workload]]\nincrement = \"sightings\"\nevery = \"{every}ms\""));
        }
        for fault in &self.faults {
            line(&mut text, format_args!("\n[[step]]\nat = \"{}ms\"\n{}", fault.at_ms, fault.verb));
            if let Some(lasts) = fault.lasts_ms {
                line(&mut text, format_args!("for = \"{lasts}ms\""));
            }
        }
        text
    }
}

fn host(n: u64) -> String {
    u8::try_from(n).map_or_else(|_| format!("n{n}"), |n| char::from(b'a' + n).to_string())
}

// ---- drawing ---------------------------------------------------------------------------------------------

struct Draw {
    rng: Rng,
    seed: u64,
}

impl Draw {
    fn one_in(&mut self, n: u64) -> bool {
        self.rng.between(1, n) == 1
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        let last = of.len().saturating_sub(1);
        of[usize::try_from(self.rng.between(0, last as u64)).expect("an index of a slice")].clone()
    }

    fn storm(mut self) -> Storm {
        let hosts = if self.one_in(20) { self.rng.between(8, 16) } else { self.rng.between(2, 5) };
        let push_ms = self.pick(&[20, 50, 100, 200, 500, 1000]);
        let suspicion_ms = push_ms * self.pick(&[30, 31, 40, 50, 50, 50, 80]) / 10;
        let odd_one = self.one_in(8).then(|| {
            let push = push_ms * self.pick(&[5, 15, 20, 30]) / 10;
            let push = push.max(10);
            (host(self.rng.between(0, hosts - 1)), push, push * self.pick(&[3, 4, 5]))
        });
        let low = self.rng.between(1, push_ms / 10);
        // The modelled kernels give a connection up whose round trip is above a second.
        let high = (low + self.pick(&[0, 1, push_ms / 10, push_ms / 4, push_ms, 2 * push_ms])).min(490);
        let mut storm = Storm {
            seed: self.seed,
            hosts,
            seeds: self.pick(&["all", "all", "first", "ring", "chain"]),
            push_ms,
            suspicion_ms,
            odd_one,
            twin: self.one_in(40),
            latency: format!("{low}ms..{high}ms"),
            loss: self.one_in(4).then(|| self.share(20)),
            duplicate: self.one_in(4).then(|| self.share(30)),
            reorder: self.one_in(4).then(|| self.share(20)),
            workload_ms: (!self.one_in(5)).then(|| push_ms * self.pick(&[1, 2, 5, 10, 20]) / 10),
            limit_ms: 0,
            faults: Vec::new(),
        };
        // A net that by itself keeps somebody silent for a suspicion timeout, somewhere at every moment, proves
        // nothing: no lasting loss in large clusters, and what is overtaken (by ten latencies) stays in time.
        storm.odd_one = storm.odd_one.filter(|(_, push, suspicion)| {
            let slowest = |push: u64| push * 12 / 10 + high;
            slowest(*push) < suspicion_ms && slowest(push_ms) < *suspicion
        });
        if storm.hosts > 5 {
            storm.loss = None;
        }
        if storm.reorder.is_some() {
            storm.latency = format!("1ms..{}ms", (suspicion_ms / 20).max(1));
        }
        self.faults(&mut storm);
        storm
    }

    fn share(&mut self, percent_max: u64) -> String {
        format!("{}%", self.rng.between(1, percent_max))
    }

    /// The faults, and a time limit around them.
    fn faults(&mut self, storm: &mut Storm) {
        let (p, s) = (storm.push_ms, storm.suspicion_ms);
        // Now and then the storm breaks loose before anybody knows anybody.
        let mut at =
            if self.one_in(10) { self.rng.between(1, 2 * p) } else { self.rng.between(5 * p, 10 * p) };
        for _ in 0..self.rng.between(1, 8) {
            self.fault(storm, at);
            at += match self.rng.between(0, 9) {
                0 => 0,
                1 => 1,
                2..=4 => self.rng.between(1, 2 * p),
                5 | 6 => self.rng.between(p, 2 * s),
                7 => self.rng.between(s, 6 * s),
                8 => self.rng.between(s, 12 * s),
                _ => {
                    if self.one_in(3) {
                        self.rng.between(10 * s, 42 * s)
                    } else {
                        self.rng.between(1, s)
                    }
                }
            };
        }
        storm.faults.sort_by_key(|fault| fault.at_ms);
        let last_start = storm.faults.iter().map(|fault| fault.at_ms).max().unwrap_or(0);
        let last_end = storm.faults.iter().map(|fault| fault.at_ms + fault.lasts_ms.unwrap_or(0)).max();
        let end = if self.one_in(4) { last_start } else { last_end.unwrap_or(0) };
        storm.limit_ms = end + self.pick(&[1, p, s, 3 * s]);
        // What would outlast the drill stands until the drill ends it.
        for fault in &mut storm.faults {
            fault.lasts_ms = fault.lasts_ms.filter(|lasts| fault.at_ms + lasts < storm.limit_ms);
        }
    }

    /// How long a fault lasts: mostly near the protocol's own times, now and then beyond its memory.
    fn lasts(&mut self, p: u64, s: u64) -> u64 {
        match self.rng.between(0, 19) {
            0..=4 => self.rng.between(1, 2 * p),
            5..=10 => self.rng.between(p, 2 * s),
            11..=14 => self.rng.between(s, 6 * s),
            15 | 16 => self.rng.between(9 * s, 13 * s),
            17 => self.rng.between(19 * s, 23 * s),
            18 => self.rng.between(28 * s, 33 * s),
            _ => self.rng.between(39 * s, 44 * s),
        }
    }

    fn some(&mut self, storm: &Storm) -> String {
        match self.rng.between(0, 9) {
            0 => "any".to_owned(),
            1 => "minority".to_owned(),
            2 => "all".to_owned(),
            3 if storm.twin => "twin".to_owned(),
            _ => host(self.rng.between(0, storm.hosts - 1)),
        }
    }

    /// Two different hosts.
    fn way(&mut self, storm: &Storm) -> (String, String) {
        let from = self.rng.between(0, storm.hosts - 1);
        let to = (from + self.rng.between(1, storm.hosts - 1)) % storm.hosts;
        (host(from), host(to))
    }

    /// A step of a wall clock, sign first.
    fn offset(&mut self, p: u64, s: u64) -> String {
        let sign = if self.one_in(4) { '+' } else { '-' };
        let by = match self.rng.between(0, 5) {
            0 => 1,
            1 => self.rng.between(1, 2 * p),
            2 => self.rng.between(p, 4 * s),
            3 => self.rng.between(s, 40 * s),
            _ => 3_600_000,
        };
        format!("{sign}{by}ms")
    }

    fn restart(&mut self, storm: &Storm, target: &str) -> String {
        let (p, s) = (storm.push_ms, storm.suspicion_ms);
        let mut also = String::new();
        if self.one_in(3) {
            also += &format!(", wall = \"{}\"", self.offset(p, s));
        }
        if !matches!(target, "minority" | "all") && self.one_in(5) {
            also += &format!(", addr = \"192.168.9.{}:7946\"", self.rng.between(1, 250));
        }
        format!("restart = {{ target = \"{target}\"{also} }}")
    }

    fn fault(&mut self, storm: &mut Storm, at_ms: u64) {
        let (p, s) = (storm.push_ms, storm.suspicion_ms);
        let lasts_ms = self.lasts(p, s);
        let lasts = Some(lasts_ms);
        let (from, to) = self.way(storm);
        let some = self.some(storm);
        let (verb, lasts_ms) = match self.rng.between(0, 29) {
            0..=4 => {
                // What goes down mostly comes back.
                if !self.one_in(4) {
                    let back =
                        Fault { at_ms: at_ms + lasts_ms, verb: self.restart(storm, &some), lasts_ms: None };
                    storm.faults.push(back);
                }
                let verb = self.pick(&["kill", "kill", "stop"]);
                (format!("{verb} = \"{some}\""), None)
            }
            5 | 6 => (self.restart(storm, &some), None),
            7..=9 => (format!("pause = \"{some}\""), lasts),
            10..=13 => (format!("partition = {}", self.groups(storm)), lasts),
            14 => (format!("isolate = \"{some}\""), lasts),
            15 | 16 => (format!("cut = {{ from = \"{from}\", to = \"{to}\" }}"), lasts),
            17 => (format!("hold = {{ from = \"{from}\", to = \"{to}\" }}"), lasts),
            18 => (format!("hold = {{ from = \"{some}\", to = \"all\" }}"), lasts),
            19 => (self.link(storm), lasts),
            20 | 21 => {
                let by = self.offset(p, s);
                (format!("clock_step = {{ target = \"{some}\", by = \"{by}\" }}"), None)
            }
            22 => {
                let rate = self.pick(&["0.5", "0.8", "0.99", "1.01", "1.3", "2"]);
                (format!("clock_rate = {{ target = \"{some}\", rate = \"{rate}\" }}"), lasts)
            }
            23 => (format!("clock_freeze = \"{some}\""), lasts),
            24..=26 => {
                let count = self.pick(&[1, 2, 10, 100]);
                let until = self.rng.between(1, at_ms.max(2) - 1);
                let captured = format!("captured = \"0ms..{until}ms\", ");
                let captured = if self.one_in(2) { captured } else { String::new() };
                (
                    format!(
                        "replay_frames = {{ from = \"{from}\", to = \"{to}\", {captured}count = {count} }}"
                    ),
                    None,
                )
            }
            27 => ("heal = true".to_owned(), None),
            28 if self.one_in(2) => (format!("half_open = {{ from = \"{from}\", to = \"{to}\" }}"), None),
            28 => (format!("resume = \"{some}\""), None),
            _ if self.one_in(2) => {
                let rate = self.share(30);
                (format!("corrupt_frames = {{ from = \"{from}\", to = \"{to}\", rate = \"{rate}\" }}"), lasts)
            }
            _ => {
                let send = self.pick(&["silent", "garbage", "oversize", "half_frame"]);
                (format!("flood = {{ to = \"{to}\", connections = 130, send = \"{send}\" }}"), None)
            }
        };
        storm.faults.push(Fault { at_ms, verb, lasts_ms });
    }

    fn groups(&mut self, storm: &Storm) -> String {
        let mut groups = [Vec::new(), Vec::new(), Vec::new()];
        let last = if self.one_in(4) { 2 } else { 1 };
        for n in 0..storm.hosts {
            groups[usize::try_from(self.rng.between(0, last)).expect("0 to 2")].push(host(n));
        }
        let groups: Vec<&Vec<String>> = groups.iter().filter(|group| !group.is_empty()).collect();
        if groups.len() < 2 { "[[\"a\"]]".to_owned() } else { format!("{groups:?}") }
    }

    fn link(&mut self, storm: &Storm) -> String {
        let (from, to) = self.way(storm);
        let to = if self.one_in(2) { "all".to_owned() } else { to };
        let what = match self.rng.between(0, 3) {
            0 => format!("latency = \"1ms..{}ms\"", self.rng.between(2, 2 * storm.suspicion_ms)),
            1 => format!("loss = \"{}\"", self.share(90)),
            2 => format!("reorder = \"{}\", duplicate = \"{}\"", self.share(50), self.share(50)),
            _ => format!("bandwidth = \"{}kB/s\"", self.rng.between(10, 1000)),
        };
        format!("link = {{ from = \"{from}\", to = \"{to}\", {what} }}")
    }
}

// ---- judging ---------------------------------------------------------------------------------------------

fn scenario(text: &str) -> Scenario {
    let missing = |path: &Path| Err(std::io::Error::other(format!("no include here: {}", path.display())));
    let options = LoadOptions::for_engine(EngineKind::Event);
    Scenario::parse(text, Path::new("storm.toml"), &missing, options)
        .unwrap_or_else(|report| panic!("a storm is a valid scenario, but:\n{report:?}\n{text}"))
}

fn play(storm: &Storm, wire: Wire, timeline: bool) -> Option<Outcome> {
    let scenario = scenario(&storm.text());
    if wire == Wire::Fast && scenario.needs_full() {
        return None;
    }
    let options = RunOptions { wire: Some(wire), timeline, ..RunOptions::default() };
    Some(run(&scenario, &options).expect("nobody cancels, and full takes every verb"))
}

fn broken(storm: &Storm, wire: Wire) -> Option<Failure> {
    let outcome = play(storm, wire, false)?;
    let oracle = outcome.violation.map_or("a step that never fired", |violation| violation.oracle);
    (outcome.verdict != Verdict::Pass).then_some(Failure { wire, oracle })
}

/// A storm fails when it fails on a wire; so wires that disagree are told as the one that failed.
fn fails(storm: &Storm) -> Option<Failure> {
    broken(storm, Wire::Fast).or_else(|| broken(storm, Wire::Full))
}

/// The smallest storm found that fails for the same reason.
fn reduced(mut storm: Storm, failure: Failure) -> Storm {
    let still = |storm: &Storm| broken(storm, failure.wire) == Some(failure);
    let mut ahead = true;
    while ahead {
        ahead = false;
        for ix in (0..storm.faults.len()).rev() {
            let mut fewer = storm.clone();
            fewer.faults.remove(ix);
            if still(&fewer) {
                storm = fewer;
                ahead = true;
            }
        }
    }
    let plainer: [fn(&mut Storm); 8] = [
        |storm| storm.loss = None,
        |storm| storm.duplicate = None,
        |storm| storm.reorder = None,
        |storm| storm.workload_ms = None,
        |storm| storm.odd_one = None,
        |storm| storm.twin = false,
        |storm| storm.latency = "1ms..2ms".to_owned(),
        |storm| storm.seeds = "all",
    ];
    for simplify in plainer {
        let mut plain = storm.clone();
        simplify(&mut plain);
        if still(&plain) {
            storm = plain;
        }
    }
    storm
}

fn tell(seed: u64, storm: &Storm) -> String {
    let mut told = format!("\n==== storm {seed}, reduced:\n{}", storm.text());
    for wire in [Wire::Fast, Wire::Full] {
        let Some(outcome) = play(storm, wire, true) else { continue };
        let why = outcome.violation.as_ref().map_or_else(
            || format!("{:?}", outcome.unfired_steps),
            |violation| format!("{}: {}, but {}", violation.oracle, violation.fact, violation.contradiction),
        );
        told.push_str(&format!("---- {wire:?}: {:?} {why}\n", outcome.verdict));
    }
    told
}
