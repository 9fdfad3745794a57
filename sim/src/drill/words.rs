//! Steps, facts and times in words.

use std::fmt::Write as _;
use std::time::Duration;

use firedrill_core::id::NodeId;
use firedrill_core::issuance::election::Decision;
use firedrill_core::time::Instant;

use super::belief;
use crate::scenario::catalog::{ending_name, figure_name, role_name};
use crate::scenario::model::{
    Bound, DiskSpec, DiskState, EventKind, EventPattern, Expect, Fact, FloodKind, HostIx, Moment, Scenario,
    Start, StepIx, Target, Verb, Window,
};

/// A time as a person writes it: `2.5 s`, `40 ms`, `7 µs`.
pub(crate) fn time(duration: Duration) -> String {
    let us = duration.as_micros();
    let (whole, below, digits, unit) = match us {
        0 => return "0 s".to_owned(),
        1..1_000 => (us, 0, 0, "µs"),
        1_000..1_000_000 => (us / 1_000, us % 1_000, 3, "ms"),
        _ => (us / 1_000_000, us % 1_000_000, 6, "s"),
    };
    let fraction = format!("{below:0digits$}");
    match fraction.trim_end_matches('0') {
        "" => format!("{whole} {unit}"),
        fraction => format!("{whole}.{fraction} {unit}"),
    }
}

/// A moment of the run, as the time since its start.
pub(crate) fn moment(at: Instant) -> String {
    time(at.since(Instant::ZERO))
}

/// A signed offset: `+2 s`, `-500 ms`.
pub(crate) fn offset(us: i64) -> String {
    let sign = if us < 0 { '-' } else { '+' };
    format!("{sign}{}", time(Duration::from_micros(us.unsigned_abs())))
}

/// Parts per million as a percentage.
pub(super) fn percent(ppm: u32) -> String {
    let text = format!("{}.{:04}", ppm / 10_000, ppm % 10_000);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Host names, comma-separated; `nobody` for none.
pub(super) fn hosts(scenario: &Scenario, hosts: &[HostIx]) -> String {
    list(hosts.iter().map(|&host| host_name(scenario, host)))
}

/// A host's name in the scenario.
pub(crate) fn host_name(scenario: &Scenario, host: HostIx) -> &str {
    scenario.hosts.get(host.0).map_or("?", |host| host.name.as_str())
}

/// Names, comma-separated; `nobody` for none.
pub(crate) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let text = names.into_iter().collect::<Vec<_>>().join(", ");
    if text.is_empty() { "nobody".to_owned() } else { text }
}

fn target(scenario: &Scenario, target: &Target) -> String {
    match target {
        Target::Hosts(named) => hosts(scenario, named),
        Target::Any => "any".to_owned(),
        Target::Minority => "minority".to_owned(),
        Target::Majority => "majority".to_owned(),
        Target::All => "all".to_owned(),
        Target::Holder => "holder".to_owned(),
        Target::Successor => "successor".to_owned(),
    }
}

/// A step's verb and targets, as the file has them.
pub(super) fn verb(scenario: &Scenario, verb: &Verb) -> String {
    let of = |t: &Target| target(scenario, t);
    let way = |from: &Target, to: &Target| format!("{} -> {}", of(from), of(to));
    match verb {
        Verb::Kill(t) => format!("kill {}", of(t)),
        Verb::Stop(t) => format!("stop {}", of(t)),
        Verb::Restart { target, wall_step_us, addr, lose_disk } => {
            let mut text = format!("restart {}", of(target));
            if let Some(us) = wall_step_us {
                let _ = write!(text, ", wall clock {}", offset(*us));
            }
            if let Some(addr) = addr {
                let _ = write!(text, ", at {addr}");
            }
            if *lose_disk {
                text.push_str(", with an empty disk");
            }
            text
        }
        Verb::Pause(t) => format!("pause {}", of(t)),
        Verb::Resume(t) => format!("resume {}", of(t)),
        Verb::Partition(groups) => {
            let groups: Vec<String> = groups.iter().map(|group| format!("[{}]", of(group))).collect();
            format!("partition {}", groups.join(" "))
        }
        Verb::Isolate(t) => format!("isolate {}", of(t)),
        Verb::Heal => "heal".to_owned(),
        Verb::Cut { from, to } => format!("cut {}", way(from, to)),
        Verb::Hold { from, to } => format!("hold {}", way(from, to)),
        Verb::Release { from, to } => format!("release {}", way(from, to)),
        Verb::Link { from, to, latency, loss_ppm, duplicate_ppm, reorder_ppm, bandwidth } => {
            let mut text = format!("link {}", way(from, to));
            if let Some((low, high)) = latency {
                let _ = write!(text, ", latency {} to {}", time(*low), time(*high));
            }
            for (name, ppm) in [("loss", loss_ppm), ("duplicate", duplicate_ppm), ("reorder", reorder_ppm)] {
                if let Some(ppm) = ppm {
                    let _ = write!(text, ", {name} {}", percent(*ppm));
                }
            }
            if let Some(bytes) = bandwidth {
                let _ = write!(text, ", {bytes} bytes a second");
            }
            text
        }
        Verb::HalfOpen { from, to } => format!("half_open {}", way(from, to)),
        Verb::ClockStep { target, by_us } => format!("clock_step {} by {}", of(target), offset(*by_us)),
        Verb::ClockRate { target, rate_ppm } => {
            format!("clock_rate {} at {}", of(target), percent(*rate_ppm))
        }
        Verb::ClockFreeze(t) => format!("clock_freeze {}", of(t)),
        Verb::Disk { target, disk: spec } => format!("disk {}: {}", of(target), disk(*spec)),
        Verb::ReplayFrames { from, to, captured_from, captured_until, count } => {
            let until = captured_until.map_or_else(|| "now".to_owned(), time);
            format!("replay_frames {}, {count} of {} to {until}", way(from, to), time(*captured_from))
        }
        Verb::CorruptFrames { from, to, rate_ppm } => {
            format!("corrupt_frames {}, {}", way(from, to), percent(*rate_ppm))
        }
        Verb::ForgeFrames { sender, to, count } => format!("forge_frames {}, {count}", way(sender, to)),
        Verb::Flood { to, connections, garbage } => {
            format!("flood {}, {connections} connections, {}", of(to), flood(*garbage))
        }
        Verb::AddNode(t) => format!("add_node {}", of(t)),
        Verb::RemoveNode(t) => format!("remove_node {}", of(t)),
        Verb::PauseIssuance(t) => format!("pause_issuance {}", of(t)),
        Verb::ResumeIssuance(t) => format!("resume_issuance {}", of(t)),
    }
}

pub(super) const fn flood(kind: FloodKind) -> &'static str {
    match kind {
        FloodKind::Silent => "silent",
        FloodKind::Garbage => "garbage",
        FloodKind::Oversize => "oversize",
        FloodKind::HalfFrame => "half_frame",
    }
}

/// `step 3`, or `step "back"` where it has an id.
pub(super) fn step_name(scenario: &Scenario, step: StepIx) -> String {
    match scenario.steps.get(step.0).and_then(|step| step.id.as_ref()) {
        Some(id) => format!("step {id:?}"),
        None => format!("step {}", step.0 + 1),
    }
}

/// A step with its verb and when it was to fire.
pub(super) fn step(scenario: &Scenario, ix: StepIx) -> String {
    let Some(step) = scenario.steps.get(ix.0) else { return step_name(scenario, ix) };
    let start = match &step.start {
        Start::At(at) => format!("at {}", time(*at)),
        Start::AfterStep(after, delay) => format!("{} after {}", time(*delay), step_name(scenario, *after)),
        Start::AfterEvent(wanted, delay) if delay.is_zero() => format!("when {}", pattern(scenario, wanted)),
        Start::AfterEvent(wanted, delay) => {
            format!("{} after {}", time(*delay), pattern(scenario, wanted))
        }
    };
    format!("{} ({} {start})", step_name(scenario, ix), verb(scenario, &step.verb))
}

/// An event pattern: `down = "b" on a`.
pub(super) fn pattern(scenario: &Scenario, pattern: &EventPattern) -> String {
    let mut text = event_kind(pattern.kind);
    if let Some(subject) = &pattern.subject {
        let _ = write!(text, " {subject}");
    }
    if let Some(on) = pattern.on {
        let _ = write!(text, " on {}", host_name(scenario, on));
    }
    if let Some(reason) = pattern.reason {
        let _ = write!(text, " ({})", ending_name(reason));
    }
    if let Some(epoch) = pattern.epoch {
        let _ = write!(text, " at epoch {epoch}");
    }
    if let Some(elapsed) = pattern.elapsed {
        let _ = write!(text, " over {elapsed} windows");
    }
    text
}

fn event_kind(kind: EventKind) -> String {
    let name = match kind {
        EventKind::Started => "started",
        EventKind::Up => "up",
        EventKind::Suspect => "suspect",
        EventKind::Recovered => "recovered",
        EventKind::Down => "down",
        EventKind::Left => "left",
        EventKind::Converted => "converted",
        EventKind::Reaped => "reaped",
        EventKind::ReturnAnswered => "return_answered",
        EventKind::Refuted => "refuted",
        EventKind::DuplicateNodeId => "duplicate_node_id",
        EventKind::Unsendable => "unsendable",
        EventKind::RoundLate => "round_late",
        EventKind::Rejected(reason) => return format!("rejected ({})", reason.name()),
        EventKind::LinkReset => "link_reset",
        EventKind::InboundClosed => "inbound_closed",
        EventKind::Promoted => "promoted",
        EventKind::PromotionLapsed => "promotion_lapsed",
        EventKind::Demoted => "demoted",
        EventKind::Sealed => "sealed",
        EventKind::Silent => "silent",
        EventKind::LeaseMoved => "lease_moved",
        EventKind::TipAheadOfClock => "tip_ahead_of_clock",
        EventKind::ClockAhead => "clock_ahead",
        EventKind::DiskRefused => "disk_refused",
        EventKind::FenceHeld => "fence_held",
        EventKind::FenceLost => "fence_lost",
    };
    name.to_owned()
}

/// A disk in a word or two.
pub(super) fn disk(disk: DiskSpec) -> String {
    let state = match disk.state {
        DiskState::Works if disk.latency.is_zero() => return "good".to_owned(),
        DiskState::Works => return format!("slow, {} a write", time(disk.latency)),
        DiskState::Full => "full",
        DiskState::Unsynced => "unsynced",
        DiskState::Stalled => "hang",
    };
    if disk.latency.is_zero() { state.to_owned() } else { format!("{state}, {} a write", time(disk.latency)) }
}

/// An expectation as a sentence.
pub(super) fn expect(scenario: &Scenario, expect: &Expect) -> String {
    let window = match expect.window {
        Window::By(by) => format!("by {}", time(by)),
        Window::Always => "always".to_owned(),
        Window::Never => "never".to_owned(),
        Window::AtEnd => "at the end".to_owned(),
        Window::Sometimes => "sometimes".to_owned(),
    };
    // Both moments count from the start of the run, so the earlier one is named first.
    let from = match expect.from {
        None => String::new(),
        Some(Moment::At(at)) => format!("from {} on, ", time(at)),
        Some(Moment::Step(step)) => format!("from {} on, ", step_name(scenario, step)),
    };
    format!("{from}{window}: {}", fact(scenario, &expect.fact))
}

fn fact(scenario: &Scenario, fact: &Fact) -> String {
    let who = |on: &[HostIx]| {
        if on.is_empty() { "every node".to_owned() } else { hosts(scenario, on) }
    };
    match fact {
        Fact::View { on, members } => {
            format!("the view of {} is {}", who(on), list(members.iter().map(NodeId::as_str)))
        }
        Fact::Counter { on, name, value } => format!("counter {name} on {} is {}", who(on), bound(*value)),
        Fact::Event(wanted) => format!("event {}", pattern(scenario, wanted)),
        Fact::Metric { on, name, label, value } => {
            let label =
                label.as_ref().map_or_else(String::new, |(label, value)| format!("{{{label}={value:?}}}"));
            format!("{name}{label} on {} is {}", who(on), bound(*value))
        }
        Fact::Lease { on, holder, epoch } => {
            let mut text = format!("the lease that {} sees is", who(on));
            if let Some(holder) = holder {
                let _ = write!(text, " held by {holder}");
            }
            if let Some(epoch) = epoch {
                let _ = write!(text, " at epoch {epoch}");
            }
            text
        }
        Fact::Role { on, is } => format!("the role of {} is {}", who(on), role_name(*is)),
        Fact::Decision { on, decision, successor } => {
            let name = Decision::NAMES.get(*decision).copied().unwrap_or_default();
            let successor = successor.as_ref().map_or_else(String::new, |id| format!("_{id}"));
            format!("the last election of {} decided {name}{successor}", who(on))
        }
        Fact::Audit { on, figure, value } => {
            let reading = |reading: u64| belief::amount(*figure, reading);
            let value = match *value {
                Bound::Equals(value) => reading(value),
                Bound::AtLeast(value) => format!("at least {}", reading(value)),
                Bound::AtMost(value) => format!("at most {}", reading(value)),
                Bound::Truth => bound(Bound::Truth),
            };
            format!("{} of the audit on {} is {value}", figure_name(*figure), who(on))
        }
    }
}

fn bound(bound: Bound) -> String {
    match bound {
        Bound::Equals(value) => value.to_string(),
        Bound::AtLeast(value) => format!("at least {value}"),
        Bound::AtMost(value) => format!("at most {value}"),
        Bound::Truth => "what the workload added".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_as_people_write_them() {
        for (us, text) in [
            (0, "0 s"),
            (7, "7 µs"),
            (40_000, "40 ms"),
            (1_250, "1.25 ms"),
            (2_500_000, "2.5 s"),
            (60_000_000, "60 s"),
            (1_000_001, "1.000001 s"),
        ] {
            assert_eq!(time(Duration::from_micros(us)), text);
        }
        assert_eq!(offset(-7_200_000_000), "-7200 s");
        assert_eq!(percent(1_000), "0.1%");
        assert_eq!(percent(1_050_000), "105%");
    }
}
