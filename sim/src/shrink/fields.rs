//! The numbers of a scenario, each by its place: read, and replaced.
//!
//! Times along the run are not single numbers. What is shortened is the stretch between one moment that the
//! scenario names and the next; whatever comes later moves along, so the order of things stays.
//!
//! Absent: which values are tried.

use std::time::Duration;

use super::edits::PLAIN_NET;
use super::numbers::{COUNTS, OFFSETS, SHARES, TIMES};
use super::remap::moments_mut;
use crate::scenario::model::{Scenario, Start, StepIx, Verb};

/// A number of a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    /// From the moment before this one, by its rank, to this one.
    Stretch(usize),
    /// The delay of a step that counts from another or from an event.
    Delay(StepIx),
    /// How long the fault of such a step lasts.
    Lasts(StepIx),
    /// How far a step moves a clock, whichever way.
    Offset(StepIx),
    /// How many frames or connections.
    Count(StepIx),
    /// The share of frames that are damaged.
    Corrupted(StepIx),
    /// One of the shares of a link: loss, duplicates, reordering.
    LinkShare(StepIx, usize),
    /// The longest latency of a link.
    LinkLatency(StepIx),
    /// One of the shares of the net.
    NetShare(usize),
    /// The longest latency of the net.
    NetLatency,
    /// How far off a wall clock is at the start.
    Wall(usize),
    /// How much a workload adds at a time.
    Increment(usize),
    /// The longest time the cluster may take to agree beyond its bound.
    Settle,
}

impl Field {
    /// Every number of the scenario, later ones first: a moment that moves leaves the earlier ones alone.
    pub(super) fn all(scenario: &Scenario) -> Vec<Self> {
        let mut fields = Vec::new();
        fields.extend((0..moments(scenario).len()).rev().map(Self::Stretch));
        for ix in (0..scenario.steps.len()).rev().map(StepIx) {
            fields.extend([Self::Delay(ix), Self::Lasts(ix), Self::Offset(ix), Self::Count(ix)]);
            fields.extend([Self::Corrupted(ix), Self::LinkLatency(ix)]);
            fields.extend((0..3).map(|share| Self::LinkShare(ix, share)));
        }
        fields.extend((0..3).map(Self::NetShare));
        if scenario.net != PLAIN_NET {
            fields.push(Self::NetLatency);
        }
        fields.extend((0..scenario.hosts.len()).map(Self::Wall));
        fields.extend((0..scenario.workloads.len()).map(Self::Increment));
        fields.push(Self::Settle);
        fields.retain(|field| field.get(scenario).is_some_and(|value| value > field.floor()));
        fields
    }

    /// Its value, where the scenario has it.
    pub(super) fn get(self, scenario: &Scenario) -> Option<u64> {
        if let Self::Stretch(rank) = self {
            let moments = moments(scenario);
            let before = rank.checked_sub(1).and_then(|before| moments.get(before)).copied();
            return Some(micros(*moments.get(rank)?).saturating_sub(micros(before.unwrap_or_default())));
        }
        let mut value = None;
        self.visit(&mut scenario.clone(), &mut |number| value = Some(*number));
        value
    }

    /// Replaces it.
    pub(super) fn set(self, scenario: &mut Scenario, value: u64) {
        let Self::Stretch(rank) = self else {
            return self.visit(scenario, &mut |number| *number = value);
        };
        let (Some(old), Some(&from)) = (self.get(scenario), moments(scenario).get(rank)) else { return };
        moments_mut(scenario, &mut |moment| {
            if *moment >= from {
                *moment = moment.saturating_sub(Duration::from_micros(old)) + Duration::from_micros(value);
            }
        });
    }

    /// The least value worth trying.
    pub(super) const fn floor(self) -> u64 {
        match self {
            Self::Count(_) | Self::Increment(_) | Self::Lasts(_) | Self::Offset(_) | Self::Settle => 1,
            Self::LinkLatency(_) | Self::NetLatency => 1_000,
            Self::Corrupted(_) | Self::LinkShare(..) => 10_000,
            Self::Stretch(_) | Self::Delay(_) | Self::NetShare(_) | Self::Wall(_) => 0,
        }
    }

    /// The steps in which people count it.
    pub(super) const fn grains(self) -> &'static [u64] {
        match self {
            Self::Stretch(_)
            | Self::Delay(_)
            | Self::Lasts(_)
            | Self::LinkLatency(_)
            | Self::NetLatency
            | Self::Settle => TIMES,
            Self::Offset(_) | Self::Wall(_) => OFFSETS,
            Self::Corrupted(_) | Self::LinkShare(..) | Self::NetShare(_) => SHARES,
            Self::Count(_) | Self::Increment(_) => COUNTS,
        }
    }

    /// Shows the number to `change`, where there is one.
    fn visit(self, scenario: &mut Scenario, change: &mut dyn FnMut(&mut u64)) {
        match self {
            Self::Stretch(_) => {}
            Self::Delay(ix) => match &mut scenario.steps[ix.0].start {
                Start::AfterStep(_, delay) | Start::AfterEvent(_, delay) => time(delay, change),
                Start::At(_) => {}
            },
            Self::Lasts(ix) => {
                let step = &mut scenario.steps[ix.0];
                if let (Start::AfterStep(..) | Start::AfterEvent(..), Some(lasts)) =
                    (&step.start, &mut step.lasts)
                {
                    time(lasts, change);
                }
            }
            Self::Offset(ix) => {
                if let Verb::ClockStep { by_us, .. } | Verb::Restart { wall_step_us: Some(by_us), .. } =
                    &mut scenario.steps[ix.0].verb
                {
                    signed(by_us, change);
                }
            }
            Self::Count(ix) => {
                if let Verb::ReplayFrames { count, .. }
                | Verb::ForgeFrames { count, .. }
                | Verb::Flood { connections: count, .. } = &mut scenario.steps[ix.0].verb
                {
                    let mut number = *count as u64;
                    change(&mut number);
                    *count = usize::try_from(number).unwrap_or(*count);
                }
            }
            Self::Corrupted(ix) => {
                if let Verb::CorruptFrames { rate_ppm, .. } = &mut scenario.steps[ix.0].verb {
                    share(rate_ppm, change);
                }
            }
            Self::LinkShare(ix, which) => {
                if let Verb::Link { loss_ppm, duplicate_ppm, reorder_ppm, .. } =
                    &mut scenario.steps[ix.0].verb
                    && let Some(Some(ppm)) = [loss_ppm, duplicate_ppm, reorder_ppm].into_iter().nth(which)
                {
                    share(ppm, change);
                }
            }
            Self::LinkLatency(ix) => {
                if let Verb::Link { latency: Some((low, high)), .. } = &mut scenario.steps[ix.0].verb {
                    time(high, change);
                    *low = (*low).min(*high);
                }
            }
            Self::NetShare(which) => {
                let net = &mut scenario.net;
                let shares = [&mut net.loss_ppm, &mut net.duplicate_ppm, &mut net.reorder_ppm];
                if let Some(ppm) = shares.into_iter().nth(which) {
                    share(ppm, change);
                }
            }
            Self::NetLatency => {
                time(&mut scenario.net.latency_max, change);
                scenario.net.latency_min = scenario.net.latency_min.min(scenario.net.latency_max);
            }
            Self::Wall(host) => signed(&mut scenario.hosts[host].wall_offset_us, change),
            Self::Increment(workload) => change(&mut scenario.workloads[workload].by),
            Self::Settle => {
                if let Some(within) = &mut scenario.settle_within {
                    time(within, change);
                }
            }
        }
    }
}

/// The moments that the scenario names, in order, each once, without the start of the run.
fn moments(scenario: &Scenario) -> Vec<Duration> {
    let mut moments = Vec::new();
    moments_mut(&mut scenario.clone(), &mut |moment| moments.push(*moment));
    moments.sort_unstable();
    moments.dedup();
    moments.retain(|moment| !moment.is_zero());
    moments
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn time(time: &mut Duration, change: &mut dyn FnMut(&mut u64)) {
    let mut us = micros(*time);
    change(&mut us);
    *time = Duration::from_micros(us);
}

fn share(ppm: &mut u32, change: &mut dyn FnMut(&mut u64)) {
    let mut number = u64::from(*ppm);
    change(&mut number);
    // More than everything is not a share.
    *ppm = u32::try_from(number.min(1_000_000)).unwrap_or(*ppm);
}

/// A number whose sign stays.
fn signed(number: &mut i64, change: &mut dyn FnMut(&mut u64)) {
    let mut size = number.unsigned_abs();
    change(&mut size);
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    *number = if *number < 0 { -size } else { size };
}
