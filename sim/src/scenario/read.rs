//! From the merged document to a checked [`Scenario`]: the order of reading, and what spans several parts.

use std::collections::BTreeMap;

use firedrill_core::id::CounterName;
use toml::de::DeTable;

use super::LoadOptions;
use super::catalog::{self, HOSTS_MAX_EVENT, HOSTS_MAX_TURMOIL, Kind};
use super::document::{Files, Table};
use super::expects;
use super::fields::{self, Fields, suggestion};
use super::hosts::{self, Nodes};
use super::model::{LinkSpec, SEED_DEFAULT, Scenario, Span, Workload};
use super::report::{Problems, Report};
use super::scope::Scope;
use super::steps;
use super::values::words;
use super::write::put_in_order;
use crate::engine::{EngineKind, Wire};

/// Reads and checks everything; every problem is in the report.
pub(super) fn scenario(
    files: &Files,
    documents: &[DeTable<'_>],
    options: LoadOptions,
    mut problems: Problems,
) -> Result<Scenario, Report> {
    let merged = files.merge(documents);
    let scenario = read(&merged, files, documents, options, &mut problems);
    problems.finish(&files.files, scenario)
}

fn read(
    merged: &Table,
    files: &Files,
    documents: &[DeTable<'_>],
    options: LoadOptions,
    problems: &mut Problems,
) -> Option<Scenario> {
    let top = Fields::open(merged, catalog::TOP, "a scenario", merged.span, problems);
    let name = top.id("name", problems);
    let about = top.text("about", problems);
    let seed = top.count("seed", problems).unwrap_or(SEED_DEFAULT);
    let time_limit = top.period("time_limit", problems);
    let nodes = Nodes::read(&top, problems);
    size(&nodes, options, problems);
    let hosts = hosts::hosts(&nodes, &top, files, documents, problems);
    let net = net(&top, problems);
    let tables = top.tables("step", problems);
    let mut scope = Scope {
        nodes: &nodes,
        ids: hosts.iter().map(|host| host.id.clone()).collect(),
        counters: Vec::new(),
        // With a configuration that could not be read, nothing is said of what it may have held.
        issuance: hosts.len() < nodes.names.len() || hosts.iter().any(|host| host.issuance.is_some()),
        time_limit,
        options,
        steps: steps::ids(&tables, problems),
    };
    let workloads = workloads(&top, &mut scope, problems);
    let steps = steps::steps(&tables, &scope, problems);
    let expects = expects::expects(&top, &scope, &steps.earliest, problems);
    let oracles_off = oracles_off(&top, options, problems);
    let settle_within = top
        .table("liveness", problems)
        .map(|(entry, table)| Fields::open(table, catalog::LIVENESS, "[liveness]", entry.key_span, problems))
        .and_then(|liveness| liveness.period("settle_within", problems));
    if !hosts::alike(&hosts) && options.engine == EngineKind::Event && options.wire == Some(Wire::Fast) {
        let place = top.entry("config_for").map_or(merged.span, |entry| entry.key_span);
        problems
            .add(
                place,
                "the hosts differ in secret or cluster name, and --wire fast has no MACs",
                "needs --wire full",
            )
            .help("leave --wire out; such a scenario runs full by itself");
    }
    let mut scenario = Scenario {
        name: name?.to_owned(),
        about: about?.to_owned(),
        seed,
        time_limit: time_limit?,
        needs_full: steps.bytes || !hosts::alike(&hosts),
        hosts,
        net,
        workloads,
        steps: steps.steps,
        expects,
        oracles_off,
        settle_within,
        same_millisecond: nodes.same_millisecond,
        files: files.files.clone(),
    };
    put_in_order(&mut scenario);
    Some(scenario)
}

/// Refuses more hosts than the engine takes.
fn size(nodes: &Nodes, options: LoadOptions, problems: &mut Problems) {
    let most = match options.engine {
        EngineKind::Event => HOSTS_MAX_EVENT,
        EngineKind::Turmoil => HOSTS_MAX_TURMOIL,
    };
    let many = nodes.names.len();
    if let Some(host) = nodes.names.get(most) {
        let help = match options.engine {
            EngineKind::Event => "fewer hosts tell the same story",
            EngineKind::Turmoil => "run this scenario with --engine event, which takes 64",
        };
        let engine = steps::engine_name(options.engine);
        problems
            .add(
                host.span,
                format!("{many} hosts are too many for the {engine} engine"),
                format!("at most {most}"),
            )
            .help(help);
    }
}

fn net(top: &Fields<'_>, problems: &mut Problems) -> LinkSpec {
    let mut net = LinkSpec::DEFAULT;
    let Some((entry, table)) = top.table("net", problems) else { return net };
    let fields = Fields::open(table, catalog::NET, "[net]", entry.key_span, problems);
    if let Some((least, most)) = fields.latency("latency", problems) {
        (net.latency_min, net.latency_max) = (least, most);
    }
    net.loss_ppm = fields.share_ppm("loss", problems).unwrap_or(0);
    net.duplicate_ppm = fields.share_ppm("duplicate", problems).unwrap_or(0);
    net.reorder_ppm = fields.share_ppm("reorder", problems).unwrap_or(0);
    net.bandwidth = fields.bandwidth("bandwidth", problems);
    net
}

fn workloads(top: &Fields<'_>, scope: &mut Scope<'_>, problems: &mut Problems) -> Vec<Workload> {
    let mut workloads = Vec::new();
    for (span, table) in top.tables("workload", problems) {
        let fields = Fields::open(table, catalog::WORKLOAD, "a workload", span, problems);
        if let Some(workload) = workload(&fields, span, scope, problems) {
            scope.counters.push(workload.counter.as_str().to_owned());
            workloads.push(workload);
        } else if let Some(Ok(counter)) =
            fields.id("increment", &mut Problems::default()).map(CounterName::new)
        {
            // Known all the same, so that facts about it are not reported on top.
            scope.counters.push(counter.as_str().to_owned());
        }
    }
    workloads
}

fn workload(fields: &Fields<'_>, span: Span, scope: &Scope<'_>, problems: &mut Problems) -> Option<Workload> {
    let counter = fields.id("increment", problems).and_then(|name| CounterName::new(name).ok());
    let every = fields.period("every", problems);
    let by = fields.count("by", problems).unwrap_or(1);
    let on = fields.entry("on").and_then(|entry| scope.hosts(entry, problems)).unwrap_or_default();
    let from = fields.duration("from", problems);
    let until = fields.duration("until", problems);
    for (name, moment) in [("from", from), ("until", until)] {
        if let Some(entry) = fields.entry(name) {
            scope.within_limit(moment, entry.node.span, &format!("`{name}`"), problems);
        }
    }
    if let (Some(from), Some(until), Some(entry)) = (from, until, fields.entry("until"))
        && until < from
    {
        problems
            .add(
                entry.node.span,
                format!("this ends at {}, before it begins at {}", words(until), words(from)),
                "too early",
            )
            .help("both count from the start of the run");
    }
    let every = every?;
    Some(Workload { counter: counter?, every, by, on, from: from.unwrap_or(every), until, span })
}

/// Oracles that the scenario turns off, each with a reason.
fn oracles_off(top: &Fields<'_>, options: LoadOptions, problems: &mut Problems) -> BTreeMap<String, String> {
    let mut off = BTreeMap::new();
    let Some((entry, table)) = top.table("oracles", problems) else { return off };
    let fields = Fields::open(table, catalog::ORACLES, "[oracles]", entry.key_span, problems);
    let Some((_, reasons)) = fields.table("off", problems) else { return off };
    for entry in &reasons.entries {
        if !options.oracles.is_empty() && !options.oracles.contains(&entry.key.as_str()) {
            problems
                .add(entry.key_span, format!("unknown oracle `{}`", entry.key), "no oracle of this name")
                .help(suggestion(&entry.key, || options.oracles.iter().copied(), "the oracles"));
        }
        let Some(reason) = fields::text(entry, Kind::Reasons, problems) else { continue };
        if reason.trim().is_empty() {
            problems
                .add(entry.node.span, format!("`{}` is turned off without a reason", entry.key), "why?")
                .help("say in a few words why this scenario must break the invariant");
        }
        off.insert(entry.key.clone(), reason.to_owned());
    }
    off
}
