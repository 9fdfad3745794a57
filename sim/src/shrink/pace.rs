//! The pace of a drill: the push interval, and every time of the drill with it.
//!
//! A drill at a push interval of 20 ms is the same drill at the 500 ms that a file has without a word about it, if
//! all its times grow with it. What protocol and drill do in proportion stays; only the clock ticks otherwise.
//!
//! Absent: hosts of different paces, which stay as they are.

use std::time::Duration;

use super::remap::moments_mut;
use crate::scenario::model::{Scenario, Start, Verb};

/// The push interval of a file without a word about it, in milliseconds.
const PUSH_MS: u64 = 500;
/// Its suspicion timeout, in milliseconds.
const SUSPICION_MS: u64 = 2_500;

/// Brings every host to the pace of a file without a word about it. With `stretched`, the times of the drill and of
/// the net grow or shrink in proportion.
pub(super) fn at_pace(scenario: &mut Scenario, stretched: bool) {
    let paces = scenario.hosts.iter().map(|host| host.config.push_interval_ms);
    let (Some(least), Some(most)) = (paces.clone().min(), paces.max()) else { return };
    if least != most {
        return;
    }
    for host in &mut scenario.hosts {
        host.config.push_interval_ms = PUSH_MS;
        host.config.suspicion_timeout_ms = SUSPICION_MS;
    }
    if stretched {
        stretch(scenario, (PUSH_MS, least));
    }
}

/// Multiplies every time of the drill by a ratio.
fn stretch(scenario: &mut Scenario, (by, per): (u64, u64)) {
    let longer =
        |us: u64| u64::try_from(u128::from(us) * u128::from(by) / u128::from(per)).unwrap_or(u64::MAX);
    let time = |time: &mut Duration| {
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        *time = Duration::from_micros(longer(us));
    };
    let latency = |latency: &mut Duration| {
        time(latency);
        *latency = (*latency).max(Duration::from_micros(1));
    };
    let signed = |us: &mut i64| {
        let size = i64::try_from(longer(us.unsigned_abs())).unwrap_or(i64::MAX);
        *us = if *us < 0 { -size } else { size };
    };
    moments_mut(scenario, &mut |moment| time(moment));
    latency(&mut scenario.net.latency_min);
    latency(&mut scenario.net.latency_max);
    for host in &mut scenario.hosts {
        signed(&mut host.wall_offset_us);
    }
    for workload in &mut scenario.workloads {
        time(&mut workload.every);
    }
    for step in &mut scenario.steps {
        if let Start::AfterStep(_, delay) | Start::AfterEvent(_, delay) = &mut step.start {
            time(delay);
            step.lasts.iter_mut().for_each(time);
        }
        step.every.iter_mut().for_each(time);
        if let Verb::ClockStep { by_us, .. } | Verb::Restart { wall_step_us: Some(by_us), .. } =
            &mut step.verb
        {
            signed(by_us);
        }
        if let Verb::Link { latency: Some((low, high)), .. } = &mut step.verb {
            latency(low);
            latency(high);
        }
    }
}
