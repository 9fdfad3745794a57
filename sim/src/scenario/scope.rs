//! What the parts of a scenario know of each other: hosts, steps, counters, limits, the chosen engine.

use std::collections::BTreeMap;
use std::time::Duration;

use firedrill_core::id::NodeId;

use super::LoadOptions;
use super::catalog::{self, Kind};
use super::document::{Entry, Value};
use super::fields::{self, list, suggestion};
use super::hosts::{Nodes, unknown_host};
use super::issuance;
use super::model::{HostIx, Span, StepIx, Target};
use super::report::Problems;
use super::values::words;

/// Everything a step or an expectation may refer to.
#[derive(Debug)]
pub(super) struct Scope<'s> {
    pub(super) nodes: &'s Nodes,
    /// Node ids by host; shorter than the hosts when configurations could not be read.
    pub(super) ids: Vec<NodeId>,
    pub(super) counters: Vec<String>,
    /// Whether any host takes part in issuance.
    pub(super) issuance: bool,
    pub(super) time_limit: Option<Duration>,
    pub(super) options: LoadOptions,
    /// Steps by id, with the place of the id.
    pub(super) steps: BTreeMap<String, (StepIx, Span)>,
}

impl Scope<'_> {
    /// The node id of a host.
    pub(super) fn id(&self, host: HostIx) -> Option<NodeId> {
        let own = || self.nodes.names.get(host.0).and_then(|host| NodeId::new(&host.name).ok());
        self.ids.get(host.0).cloned().or_else(own)
    }

    /// Reports a moment after the time limit.
    pub(super) fn within_limit(
        &self,
        moment: Option<Duration>,
        span: Span,
        what: &str,
        problems: &mut Problems,
    ) {
        if let (Some(moment), Some(limit)) = (moment, self.time_limit)
            && moment > limit
        {
            problems
                .add(
                    span,
                    format!("{what} {} lies beyond the time limit of {}", words(moment), words(limit)),
                    "the run is over by then",
                )
                .help("raise `time_limit` or choose an earlier moment");
        }
    }

    /// One host by name.
    pub(super) fn host(&self, name: &str, span: Span, problems: &mut Problems) -> Option<HostIx> {
        let found = self.nodes.find(name);
        if found.is_none() && !later_symbol(name, span, problems) {
            if catalog::SYMBOLS.iter().any(|(symbol, _)| *symbol == name) {
                problems
                    .add(span, format!("the symbol `{name}` cannot stand here"), "a host's name is needed")
                    .help(format!("the hosts are {}", list(self.nodes.words())));
            } else {
                unknown_host(name, span, self.nodes, problems);
            }
        }
        found
    }

    /// A host or a list of hosts, each named once.
    pub(super) fn hosts(&self, entry: &Entry, problems: &mut Problems) -> Option<Vec<HostIx>> {
        let names = fields::texts(entry, Kind::Hosts, true, problems)?;
        if names.is_empty() {
            problems.add(entry.node.span, format!("`{}` names no host", entry.key), "empty").help(format!(
                "`{}` wants {}",
                entry.key,
                Kind::Hosts.wants()
            ));
            return None;
        }
        let mut hosts = Vec::with_capacity(names.len());
        for (name, span) in names {
            match self.host(name, span, problems) {
                Some(host) if hosts.contains(&host) => {
                    problems.add(span, format!("`{name}` is named twice"), "once more");
                }
                Some(host) => hosts.push(host),
                None => {}
            }
        }
        (!hosts.is_empty()).then_some(hosts)
    }

    /// A host, a list of hosts or a symbol.
    pub(super) fn target(&self, entry: &Entry, problems: &mut Problems) -> Option<Target> {
        if let Value::Text(text) = &entry.node.value {
            if let Some(symbol) = symbol(text) {
                let of_issuance = matches!(symbol, Target::Holder | Target::Successor);
                let missing = of_issuance && issuance::is_missing(text, entry.node.span, self, problems);
                return (!missing).then_some(symbol);
            }
            if self.nodes.find(text).is_none() && !text.starts_with("owner(") && !self.nodes.names.is_empty()
            {
                let later = later_symbol(text, entry.node.span, problems);
                if !later {
                    let known =
                        || self.nodes.words().chain(catalog::SYMBOLS.iter().map(|(symbol, _)| *symbol));
                    problems
                        .add(entry.node.span, format!("unknown host `{text}`"), "neither a host nor a symbol")
                        .help(suggestion(text, known, "the hosts and symbols"));
                }
                return None;
            }
        }
        if matches!(entry.node.value, Value::Text(_) | Value::List(_)) {
            return self.hosts(entry, problems).map(Target::Hosts);
        }
        fields::mistyped(entry, Kind::Target, problems);
        None
    }
}

/// The symbol of this name.
pub(super) fn symbol(word: &str) -> Option<Target> {
    match word {
        "any" => Some(Target::Any),
        "minority" => Some(Target::Minority),
        "majority" => Some(Target::Majority),
        "all" => Some(Target::All),
        "holder" => Some(Target::Holder),
        "successor" => Some(Target::Successor),
        _ => None,
    }
}

/// Reports a symbol of a later version; whether it was one.
fn later_symbol(word: &str, span: Span, problems: &mut Problems) -> bool {
    let symbol = word.split('(').next().unwrap_or(word);
    let later = catalog::LATER_SYMBOLS.contains(&symbol);
    if later {
        problems
            .add(span, format!("the symbol `{symbol}` arrives with a later version"), "not known yet")
            .help(format!("this version knows {}", list(catalog::SYMBOLS.iter().map(|(symbol, _)| *symbol))));
    }
    later
}
