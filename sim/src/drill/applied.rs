//! The concrete schedule of a run: every fault as it was applied, with hosts in place of symbols.
//!
//! Two runs of one drill whose schedules differ did different things to the cluster; two whose schedules agree
//! and whose events differ show that the cluster itself answered differently.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use firedrill_core::time::Instant;

use super::faults::Pair;
use super::words;
use crate::engine::Fault;
use crate::outcome::Applied;
use crate::scenario::model::{HostIx, LinkSpec, Scenario, StepIx};

/// Who applies faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// The drill, when it boots its hosts.
    Start,
    /// A step.
    Step(StepIx),
    /// The end of a step that lasts.
    StepEnd(StepIx),
    /// A boot that had to wait for the next millisecond.
    Delay,
    /// The time limit, which ends what stands.
    DrillEnd,
}

impl By {
    fn words(self, scenario: &Scenario) -> String {
        match self {
            Self::Start => "the start of the drill".to_owned(),
            Self::Step(step) => words::step_name(scenario, step),
            Self::StepEnd(step) => format!("the end of {}", words::step_name(scenario, step)),
            Self::Delay => "a boot that waited for the next millisecond".to_owned(),
            Self::DrillEnd => "the end of the drill".to_owned(),
        }
    }
}

/// The faults so far. Off, it costs a comparison a fault.
#[derive(Debug)]
pub(super) struct Log {
    on: bool,
    by: By,
    entries: Vec<Applied>,
}

impl Log {
    pub(super) const fn new(on: bool) -> Self {
        Self { on, by: By::Start, entries: Vec::new() }
    }

    /// Whoever applies what comes next.
    pub(super) const fn by(&mut self, by: By) {
        self.by = by;
    }

    pub(super) fn applied(&mut self, at: Instant, fault: &Fault, scenario: &Scenario) {
        if self.on {
            let (by, fault) = (self.by.words(scenario), told(fault, scenario));
            self.entries.push(Applied { at_us: at.as_micros(), by, fault });
        }
    }

    /// The operator's word to a node: no fault, but a run without it is another.
    pub(super) fn told(&mut self, at: Instant, word: &str, host: HostIx, scenario: &Scenario) {
        if self.on {
            let fault = format!("{word} the issuance of {}", words::host_name(scenario, host));
            self.entries.push(Applied { at_us: at.as_micros(), by: self.by.words(scenario), fault });
        }
    }

    pub(super) fn into_entries(self) -> Vec<Applied> {
        self.entries
    }
}

/// A fault with its hosts, in words.
fn told(fault: &Fault, scenario: &Scenario) -> String {
    let name = |host: &HostIx| words::host_name(scenario, *host);
    let ways = |pairs: &[Pair]| ways(pairs, scenario);
    match fault {
        Fault::Kill(host) => format!("kill {}", name(host)),
        Fault::Stop(host) => format!("stop {}", name(host)),
        Fault::Start { host, wall_step_us, addr, lose_disk } => {
            let mut text = format!("start {}", name(host));
            if let Some(us) = wall_step_us {
                let _ = write!(text, ", wall clock {}", words::offset(*us));
            }
            if let Some(addr) = addr {
                let _ = write!(text, ", at {addr}");
            }
            if *lose_disk {
                text.push_str(", with an empty disk");
            }
            text
        }
        Fault::Pause(host) => format!("pause {}", name(host)),
        Fault::Resume(host) => format!("resume {}", name(host)),
        Fault::Block(pairs) => format!("block {}", ways(pairs)),
        Fault::Unblock(pairs) => format!("unblock {}", ways(pairs)),
        Fault::Hold(pairs) => format!("hold {}", ways(pairs)),
        Fault::Release(pairs) => format!("release {}", ways(pairs)),
        Fault::Link(pairs, spec) => format!("link {}: {}", ways(pairs), link(spec)),
        Fault::HalfOpen(pairs) => format!("half-open {}", ways(pairs)),
        Fault::ClockStep { host, by_us } => {
            format!("step the wall clock of {} by {}", name(host), words::offset(*by_us))
        }
        Fault::ClockRate { host, rate_ppm } => {
            format!("run the clocks of {} at {}", name(host), words::percent(*rate_ppm))
        }
        Fault::Disk { host, disk } => format!("make the disk of {} {}", name(host), words::disk(*disk)),
        Fault::ClockFreeze { host, frozen: true } => format!("freeze the wall clock of {}", name(host)),
        Fault::ClockFreeze { host, frozen: false } => format!("let the wall clock of {} go on", name(host)),
        Fault::Replay { from, to, captured: (first, last), count } => {
            let (first, last) = (words::time(*first), words::time(*last));
            let way = ways(&[(*from, *to)]);
            format!("replay {count} frames {way} captured from {first} to {last}")
        }
        Fault::Corrupt(pairs, 0) => format!("stop corrupting {}", ways(pairs)),
        Fault::Corrupt(pairs, ppm) => format!("corrupt {} of {}", words::percent(*ppm), ways(pairs)),
        Fault::Forge { sender, to, count } => {
            format!("forge {count} frames in the name of {sender} to {}", name(to))
        }
        Fault::Flood { to, connections, garbage } => {
            format!("flood {} with {connections} connections, {}", name(to), words::flood(*garbage))
        }
    }
}

/// Directed pairs, those with the same receivers together: `a, b -> c; c -> a`.
fn ways(pairs: &[Pair], scenario: &Scenario) -> String {
    let mut receivers: BTreeMap<HostIx, Vec<HostIx>> = BTreeMap::new();
    for &(from, to) in pairs {
        receivers.entry(from).or_default().push(to);
    }
    let mut groups: Vec<(Vec<HostIx>, Vec<HostIx>)> = Vec::new();
    for (from, mut to) in receivers {
        to.sort_unstable();
        match groups.iter_mut().find(|(_, known)| *known == to) {
            Some((senders, _)) => senders.push(from),
            None => groups.push((vec![from], to)),
        }
    }
    let hosts = |hosts: &[HostIx]| words::hosts(scenario, hosts);
    let group = |(from, to): &(Vec<HostIx>, Vec<HostIx>)| format!("{} -> {}", hosts(from), hosts(to));
    groups.iter().map(group).collect::<Vec<_>>().join("; ")
}

/// How a link behaves, in full: what a step did not name is part of what was applied.
fn link(spec: &LinkSpec) -> String {
    let mut text = format!("latency {} to {}", words::time(spec.latency_min), words::time(spec.latency_max));
    let shares = [("loss", spec.loss_ppm), ("duplicate", spec.duplicate_ppm), ("reorder", spec.reorder_ppm)];
    for (share, ppm) in shares.into_iter().filter(|(_, ppm)| *ppm > 0) {
        let _ = write!(text, ", {share} {}", words::percent(ppm));
    }
    if let Some(bytes) = spec.bandwidth {
        let _ = write!(text, ", {bytes} bytes a second");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_with_the_same_receivers_stand_together() {
        let text =
            "name = \"x\"\nabout = \"X.\"\ntime_limit = \"1s\"\n[nodes]\nnames = [\"a\", \"b\", \"c\"]\n";
        let options = crate::scenario::LoadOptions::for_engine(crate::engine::EngineKind::Event);
        let none = |_: &std::path::Path| Err(std::io::ErrorKind::NotFound.into());
        let scenario = Scenario::parse(text, std::path::Path::new("x.toml"), &none, options).unwrap();
        let [a, b, c] = [0, 1, 2].map(HostIx);
        let split = [(a, c), (b, c), (c, b), (c, a)];
        assert_eq!(ways(&split, &scenario), "a, b -> c; c -> a, b");
        assert_eq!(ways(&[(a, b), (b, a)], &scenario), "a -> b; b -> a");
    }
}
