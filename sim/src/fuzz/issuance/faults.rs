//! One fault: its kind, whom it hits, how long it lasts.

use std::time::Duration;

use super::{Draw, Sketch, Venue, hosts, ms, one};
use crate::scenario::model::{DiskSpec, DiskState, HostIx, Target, Verb};

/// What a swarm turns on or off as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Kill,
    Stop,
    Restart,
    Pause,
    Partition,
    Isolate,
    Cut,
    Hold,
    Link,
    ClockStep,
    ClockRate,
    ClockFreeze,
    Disk,
    Operator,
}

use Kind::{
    ClockFreeze, ClockRate, ClockStep, Cut, Disk, Hold, Isolate, Kill, Link, Operator, Partition, Pause,
    Restart, Stop,
};

const KINDS: &[Kind] = &[
    Kill,
    Stop,
    Restart,
    Pause,
    Partition,
    Isolate,
    Cut,
    Hold,
    Link,
    ClockStep,
    ClockRate,
    ClockFreeze,
    Disk,
    Operator,
];

impl Kind {
    /// The kinds of one drill: each is in or out, and at least one is in.
    pub(super) fn swarm(draw: &mut Draw, _venue: Venue) -> Vec<Self> {
        let mut kinds: Vec<Self> = KINDS.iter().copied().filter(|_| draw.one_in(2)).collect();
        if kinds.is_empty() {
            kinds.push(draw.pick(&[Kill, Partition, Pause, Disk]));
        }
        kinds
    }
}

impl Sketch {
    /// Plans one fault of this kind, and what belongs to it.
    pub(super) fn fault(&mut self, kind: Kind, at_ms: u64) {
        let lasts_ms = self.lasts();
        let lasts = Some(lasts_ms);
        let some = self.some();
        let (from, to) = self.way();
        let (from, to) = (one(from), one(to));
        match kind {
            Kill | Stop => {
                if !self.draw.one_in(4) {
                    let back = self.restart(some.clone());
                    self.plan(at_ms + lasts_ms, None, back);
                }
                self.plan(at_ms, None, if kind == Kill { Verb::Kill(some) } else { Verb::Stop(some) });
            }
            Restart => {
                let verb = self.restart(some);
                self.plan(at_ms, None, verb);
            }
            Pause => self.plan(at_ms, lasts, Verb::Pause(some)),
            Partition => {
                let groups = self.groups();
                self.plan(at_ms, lasts, Verb::Partition(groups));
            }
            Isolate => self.plan(at_ms, lasts, Verb::Isolate(some)),
            Cut => {
                let to = if self.draw.one_in(3) { Target::All } else { to };
                self.plan(at_ms, lasts, Verb::Cut { from, to });
            }
            Hold => {
                let to = if self.draw.one_in(3) { Target::All } else { to };
                self.plan(at_ms, lasts, Verb::Hold { from, to });
            }
            Link => {
                let verb = self.link(from, to);
                self.plan(at_ms, lasts, verb);
            }
            ClockStep => {
                let by_us = self.offset_us();
                self.plan(at_ms, None, Verb::ClockStep { target: some, by_us });
            }
            ClockRate => {
                // Within one percent the fence must hold; beyond it nothing is promised.
                let rate_ppm = self.draw.pick(&[990_000, 1_010_000, 990_000, 1_010_000, 1_100_000]);
                self.plan(at_ms, lasts, Verb::ClockRate { target: some, rate_ppm });
            }
            ClockFreeze => self.plan(at_ms, lasts, Verb::ClockFreeze(some)),
            Operator => {
                // What an operator stopped, an operator lets go on: nothing else would.
                let host = one(self.host());
                self.plan(at_ms, None, Verb::PauseIssuance(host.clone()));
                self.plan(at_ms + lasts_ms, None, Verb::ResumeIssuance(host));
            }
            Disk => {
                let disk = self.disk();
                self.plan(at_ms, lasts, Verb::Disk { target: some, disk });
            }
        }
    }

    /// How long a fault lasts: near the protocol's own times.
    pub(super) fn lasts(&mut self) -> u64 {
        let (pull, check, silence) = (self.config.pull_z.0, self.config.check_z.0, self.config.silence_z.0);
        let z = match self.draw.between(0, 9) {
            0 | 1 => self.draw.between(0, pull),
            2..=4 => self.draw.between(pull, silence),
            5..=7 => self.draw.between(silence, silence + 3 * (pull + check)),
            _ => self.draw.between(2 * silence, 5 * silence),
        };
        (ms(z) + self.draw.between(0, 776)).max(1)
    }

    /// Whom a fault hits: mostly one host.
    fn some(&mut self) -> Target {
        match self.draw.between(0, 11) {
            0 => Target::Minority,
            1 => Target::All,
            2 => Target::Any,
            3 | 4 => Target::Holder,
            5 => Target::Successor,
            _ => one(self.host()),
        }
    }

    pub(super) fn restart(&mut self, target: Target) -> Verb {
        let wall_step_us = self.draw.one_in(5).then(|| self.offset_us());
        let lose_disk = self.draw.one_in(4);
        Verb::Restart { target, wall_step_us, addr: None, lose_disk }
    }

    pub(super) fn disk(&mut self) -> DiskSpec {
        let state = self.draw.pick(&[
            DiskState::Works,
            DiskState::Full,
            DiskState::Full,
            DiskState::Stalled,
            DiskState::Unsynced,
            DiskState::Unsynced,
        ]);
        let slow = state == DiskState::Works || self.draw.one_in(3);
        let latency = if slow { self.draw.millis(1, 3_000) } else { Duration::ZERO };
        DiskSpec { latency, state }
    }

    pub(super) fn groups(&mut self) -> Vec<Target> {
        let mut groups: [Vec<HostIx>; 3] = Default::default();
        let last = if self.draw.one_in(4) { 3 } else { 2 };
        for host in 0..self.hosts.len() {
            let group = self.draw.index(last);
            groups[group].push(HostIx(host));
        }
        let groups: Vec<Target> = groups.into_iter().filter(|group| !group.is_empty()).map(hosts).collect();
        // Who is in no group forms one more.
        if groups.len() < 2 { vec![one(self.issuer)] } else { groups }
    }

    fn link(&mut self, from: Target, to: Target) -> Verb {
        let (mut latency, mut loss_ppm) = (None, None);
        if self.draw.one_in(2) {
            let most = self.draw.millis(2, 4_000);
            latency = Some((Duration::from_millis(1), most));
        } else {
            loss_ppm = Some(self.draw.percent_ppm(10, 100));
        }
        let to = if self.draw.one_in(2) { Target::All } else { to };
        Verb::Link { from, to, latency, loss_ppm, duplicate_ppm: None, reorder_ppm: None, bandwidth: None }
    }

    /// How far a wall clock steps, in microseconds.
    pub(super) fn offset_us(&mut self) -> i64 {
        let silence_ms = ms(self.config.silence_z.0);
        let by_ms = match self.draw.between(0, 4) {
            0 => self.draw.between(1, 2_000),
            1 | 2 => self.draw.between(1, 2 * silence_ms),
            3 => self.draw.between(silence_ms, 6 * silence_ms),
            _ => 3_600_000,
        };
        let by_us = i64::try_from(by_ms * 1_000).unwrap_or(i64::MAX);
        if self.draw.one_in(2) { by_us } else { -by_us }
    }
}
