//! The head of a run: what is about to happen, resolved.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use firedrill_sim::outcome::Outcome;
use firedrill_sim::scenario::model::LinkSpec;

use super::style::{BAD, FAINT, STRONG, bytes, paint, percent, plural, span};
use super::wrap::hanging;
use crate::command::report::{Report, Setting};

/// Cells before the value of a labelled line.
const INDENT: usize = 14;

/// Writes name, story and options.
pub(super) fn write(f: &mut fmt::Formatter<'_>, report: &Report, cells: usize) -> fmt::Result {
    let Report { setting, outcome, .. } = report;
    writeln!(f, "{}", paint(STRONG, &outcome.scenario))?;
    writeln!(f, "  {}", hanging(&setting.about, 2, cells))?;
    writeln!(f)?;
    let mut line = |label: &str, value: &str| {
        let label = paint(FAINT, format!("  {label:<width$}", width = INDENT - 2));
        writeln!(f, "{label}{}", hanging(value, INDENT, cells))
    };
    line("seed", &outcome.seed.to_string())?;
    line("engine", &engine(outcome))?;
    line("nodes", &nodes(&setting.hosts))?;
    line("timers", &timers(setting))?;
    line("network", &network(&setting.net))?;
    for workload in workloads(setting) {
        line("workload", &workload)?;
    }
    line("faults end", &format!("at {}", span(setting.time_limit)))?;
    for (oracle, reason) in &setting.oracles_off {
        line("oracle off", &format!("{oracle}: {reason}"))?;
    }
    if let Some(sabotage) = report.sabotage {
        let what = format!("{} (sabotage): {}", sabotage.guard, sabotage.without);
        let label = paint(BAD, format!("  {:<width$}", "guard off", width = INDENT - 2));
        writeln!(f, "{label}{}", hanging(&what, INDENT, cells))?;
    }
    Ok(())
}

fn engine(outcome: &Outcome) -> String {
    let mut text = outcome.engine.to_owned();
    if let Some(wire) = outcome.wire {
        text.push_str(&format!(", {wire} wire"));
    }
    if let Some(tick_ms) = outcome.tick_ms {
        text.push_str(&format!(", {tick_ms} ms ticks"));
    }
    text
}

fn nodes(hosts: &[String]) -> String {
    format!("{}: {}", plural(hosts.len(), "node"), some_of(hosts))
}

/// All names while they are few, else the first and the last.
fn some_of(names: &[String]) -> String {
    match names {
        [first, second, .., last] if names.len() > 8 => format!("{first}, {second} … {last}"),
        _ => names.join(", "),
    }
}

/// A line for all counters that are incremented alike.
fn workloads(setting: &Setting) -> Vec<String> {
    let mut alike: BTreeMap<(Duration, u64), Vec<String>> = BTreeMap::new();
    for (counter, by, every) in &setting.workloads {
        alike.entry((*every, *by)).or_default().push(counter.to_string());
    }
    let lines = alike.into_iter().map(|((every, by), counters)| {
        let each = if counters.len() > 1 {
            format!("{}: ", plural(counters.len(), "counter"))
        } else {
            String::new()
        };
        format!("{each}{} +{by} every {}", some_of(&counters), span(every))
    });
    lines.collect()
}

fn timers(setting: &Setting) -> String {
    let range = |values: &[u64]| match values {
        [] => String::from("none"),
        [only] => span(Duration::from_millis(*only)),
        [least, .., most] => {
            format!("{} to {}", span(Duration::from_millis(*least)), span(Duration::from_millis(*most)))
        }
    };
    format!("push {}, suspicion {}", range(&setting.push_interval_ms), range(&setting.suspicion_timeout_ms))
}

fn network(net: &LinkSpec) -> String {
    let mut parts = vec![if net.latency_min == net.latency_max {
        format!("latency {}", span(net.latency_min))
    } else {
        format!("latency {} to {}", span(net.latency_min), span(net.latency_max))
    }];
    for (what, ppm) in
        [("loss", net.loss_ppm), ("duplicates", net.duplicate_ppm), ("reordering", net.reorder_ppm)]
    {
        if ppm > 0 {
            parts.push(format!("{what} {}", percent(ppm)));
        }
    }
    if let Some(bandwidth) = net.bandwidth {
        parts.push(format!("{}/s", bytes(bandwidth)));
    }
    parts.join(", ")
}
