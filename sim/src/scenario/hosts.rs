//! The hosts of a scenario: their names, their configuration, what the harness supplies.
//!
//! A node's configuration is the production one, read by the production reader, in layers: what the harness
//! supplies, then `[config]` of every file from the one that yields to the one that wins, then
//! `[config_for.X]` likewise. The lowest layer holds what is the same in every drill: `enabled` (of the issuance
//! only where a file has that section), the secret,
//! addresses, seeds and the node id. Host number n listens at 192.168.0.n, port 7946.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::SocketAddr;

use firedrill_core::config::{ClusterConfig, Config, Layer, Origin, Place, Secret};
use firedrill_core::id::{ClusterName, NodeId};
use toml::de::{DeTable, DeValue};

use super::catalog::{self, Kind};
use super::document::{Entry, Files, at};
use super::fields::{self, Fields, suggestion};
use super::model::{Host, HostIx, Span};
use super::report::{Problem, Problems};
use super::values;

/// The secret of a cluster whose scenario names none. Protects nothing: simulated frames stay in the process.
pub(crate) const SECRET: &str = "a secret for drills only";
/// The name of a cluster whose scenario gives none: the production default.
const CLUSTER: &str = "firedrill";
/// The port every host listens at unless it is told another.
const PORT: u16 = 7946;

/// A host before its configuration is known.
#[derive(Debug, Clone)]
pub(super) struct Name {
    pub(super) name: String,
    pub(super) from_start: bool,
    pub(super) span: Span,
}

/// Whom each host dials first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seeds {
    /// Every other host.
    All,
    /// The first host.
    First,
    /// The next one in a ring.
    Ring,
    /// The one before.
    Chain,
}

impl Seeds {
    /// In the order of the words for them in the catalog.
    pub(crate) const EVERY: [Self; 4] = [Self::All, Self::First, Self::Ring, Self::Chain];

    /// The addresses that `host` dials first. `from_start` and `addresses` are by host.
    pub(crate) fn of(self, host: usize, from_start: &[bool], addresses: &[SocketAddr]) -> Vec<SocketAddr> {
        let starters: Vec<usize> =
            from_start.iter().enumerate().filter(|&(_, starts)| *starts).map(|(ix, _)| ix).collect();
        let place = starters.iter().position(|&ix| ix == host);
        let last = starters.len().saturating_sub(1);
        let dialled: Vec<usize> = match (self, place) {
            (Self::All, _) => starters,
            (Self::First, _) | (Self::Ring, None) => starters.into_iter().take(1).collect(),
            (Self::Ring, Some(place)) => starters.iter().copied().cycle().skip(place + 1).take(1).collect(),
            (Self::Chain, Some(place)) => {
                place.checked_sub(1).and_then(|before| starters.get(before)).copied().into_iter().collect()
            }
            (Self::Chain, None) => starters.get(last).copied().into_iter().collect(),
        };
        dialled.into_iter().filter(|&ix| ix != host).filter_map(|ix| addresses.get(ix)).copied().collect()
    }
}

/// `[nodes]`, read.
#[derive(Debug)]
pub(super) struct Nodes {
    pub(super) names: Vec<Name>,
    pub(super) same_millisecond: bool,
    seeds: Seeds,
    walls: BTreeMap<String, i64>,
}

impl Nodes {
    /// The host of this name.
    pub(super) fn find(&self, name: &str) -> Option<HostIx> {
        self.names.iter().position(|host| host.name == name).map(HostIx)
    }

    /// All names, in the order of the hosts.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|host| host.name.as_str())
    }

    /// Reads `[nodes]`; what cannot be read is left out and has been reported.
    pub(super) fn read(top: &Fields<'_>, problems: &mut Problems) -> Self {
        let mut nodes =
            Self { names: Vec::new(), same_millisecond: false, seeds: Seeds::All, walls: BTreeMap::new() };
        let Some((entry, table)) = top.table("nodes", problems) else { return nodes };
        let fields = Fields::open(table, catalog::NODES, "[nodes]", entry.key_span, problems);
        nodes.named(&fields, entry, problems);
        if let Some(later) = fields.entry("later") {
            nodes.add(later, false, problems);
        }
        nodes.same_millisecond = fields.bool("same_millisecond", problems).unwrap_or(false);
        let seeds = fields.choice("seeds", problems).and_then(|word| Seeds::EVERY.get(word));
        nodes.seeds = seeds.copied().unwrap_or(Seeds::All);
        if let Some((_, walls)) = fields.table("wall", problems) {
            for wall in &walls.entries {
                nodes.wall(wall, problems);
            }
        }
        nodes
    }

    fn named(&mut self, fields: &Fields<'_>, nodes: &Entry, problems: &mut Problems) {
        match (fields.entry("names"), fields.entry("count")) {
            (Some(names), Some(count)) => {
                problems
                    .add(count.key_span, "`count` and `names` both say which hosts there are", "one too many")
                    .also(names.key_span, "the names")
                    .help("keep `names`; `count` makes up names of its own");
                fields.size("count", problems);
                self.add(names, true, problems);
            }
            (Some(names), None) => self.add(names, true, problems),
            (None, Some(count)) => {
                let many = fields.size("count", problems).unwrap_or(0);
                for n in 0..many {
                    let name = made_up(n, many);
                    self.names.push(Name { name, from_start: true, span: count.node.span });
                }
            }
            (None, None) => {
                problems
                    .add(nodes.key_span, "[nodes] names no host", "`names` or `count` is missing")
                    .help("write names = [\"a\", \"b\", \"c\"], or count = 3");
            }
        }
    }

    fn add(&mut self, entry: &Entry, from_start: bool, problems: &mut Problems) {
        let Some(names) = fields::texts(entry, Kind::Texts, false, problems) else { return };
        if names.is_empty() && from_start {
            problems
                .add(entry.node.span, format!("`{}` is empty", entry.key), "no host runs")
                .help("name at least one host that runs from the start");
        }
        for (name, span) in names {
            let mut symbols = catalog::SYMBOLS.iter().map(|(word, _)| word).chain(catalog::LATER_SYMBOLS);
            if let Err(why) = fields::id(name) {
                problems
                    .add(span, format!("{name:?} cannot name a host: {why}"), "here")
                    .help(format!("a host's name is {}", Kind::Id.wants()));
            } else if symbols.any(|word| *word == name) {
                problems
                    .add(span, format!("{name:?} cannot name a host: it is a symbol"), "means something else")
                    .help("choose another name; steps use this word for hosts chosen while the drill runs");
            } else if let Some(first) = self.names.iter().find(|host| host.name == name) {
                problems
                    .add(span, format!("two hosts are called `{name}`"), "the second")
                    .also(first.span, "the first")
                    .help(format!(
                        "to give two hosts one node id, name them apart and write [config_for.OTHER.cluster] \
                         node_id = \"{name}\""
                    ));
            } else {
                self.names.push(Name { name: name.to_owned(), from_start, span });
            }
        }
    }

    fn wall(&mut self, entry: &Entry, problems: &mut Problems) {
        if self.find(&entry.key).is_none() {
            unknown_host(&entry.key, entry.key_span, self, problems);
        }
        let Some(text) = fields::text(entry, Kind::Offset, problems) else { return };
        match values::offset_us(text) {
            Ok(offset) => {
                self.walls.insert(entry.key.clone(), offset);
            }
            Err(why) => {
                let named = Entry { key: format!("wall.{}", entry.key), ..entry.clone() };
                fields::wrong(&named, Kind::Offset, &why, problems);
            }
        }
    }
}

/// Host `n` of `many`: a, b, c …, or n00, n01 … when the letters do not suffice.
pub(crate) fn made_up(n: usize, many: usize) -> String {
    match u8::try_from(n) {
        Ok(n) if many <= 26 => char::from(b'a' + n).to_string(),
        _ => format!("n{n:02}"),
    }
}

/// Hosts as the reader would make them for a file that names these, says whom they dial and gives all of them one
/// pace. `starters` of them run from the start; an `add_node` step brings the others.
///
/// # Panics
/// If a name is no valid node id.
pub fn plain(names: &[String], starters: usize, seeds: Seeds, push_ms: u64, suspicion_ms: u64) -> Vec<Host> {
    let from_start: Vec<bool> = (0..names.len()).map(|ix| ix < starters).collect();
    let addresses: Vec<SocketAddr> = (0..names.len()).map(address).collect();
    let host = |(ix, name): (usize, &String)| {
        let id = NodeId::new(name).expect("the caller's names are valid node ids");
        Host {
            name: name.clone(),
            id: id.clone(),
            config: ClusterConfig {
                enabled: true,
                secret: Secret::new(SECRET),
                cluster_name: ClusterName::new(CLUSTER).expect("a literal that keeps the rule"),
                node_id: Some(id),
                bind_addr: address(ix),
                advertise_addr: None,
                seed_peers: seeds.of(ix, &from_start, &addresses),
                push_interval_ms: push_ms,
                suspicion_timeout_ms: suspicion_ms,
            },
            issuance: None,
            wall_offset_us: 0,
            from_start: ix < starters,
        }
    };
    names.iter().enumerate().map(host).collect()
}

/// Reports a name that no host has.
pub(super) fn unknown_host(name: &str, span: Span, nodes: &Nodes, problems: &mut Problems) {
    if nodes.names.is_empty() {
        return; // what is wrong with [nodes] has been told
    }
    problems.add(span, format!("unknown host `{name}`"), "no host of this name").help(suggestion(
        name,
        || nodes.words(),
        "the hosts",
    ));
}

/// Makes every host: reads its layers, supplies what is absent.
pub(super) fn hosts(
    nodes: &Nodes,
    top: &Fields<'_>,
    files: &Files,
    documents: &[DeTable<'_>],
    problems: &mut Problems,
) -> Vec<Host> {
    shapes(nodes, top, problems);
    let layers = Layers { files, documents, refined: refine(documents) };
    let addresses: Vec<SocketAddr> = (0..nodes.names.len())
        .map(|ix| {
            let own = address(ix);
            layers.config(nodes, ix, &[]).map_or(own, |config| config.cluster.advertised())
        })
        .collect();
    let from_start: Vec<bool> = nodes.names.iter().map(|name| name.from_start).collect();
    let mut told: BTreeSet<String> = BTreeSet::new();
    let mut hosts = Vec::with_capacity(nodes.names.len());
    for (ix, name) in nodes.names.iter().enumerate() {
        match layers.config(nodes, ix, &nodes.seeds.of(ix, &from_start, &addresses)) {
            Ok(config) => {
                let id = config.cluster.node_id.clone().or_else(|| NodeId::new(&name.name).ok());
                let Some(id) = id else { continue };
                if !config.cluster.enabled {
                    problems
                        .add(name.span, format!("`{}` takes no part in the cluster", name.name), "this host")
                        .help("leave `enabled` out of the configuration; the harness sets it");
                }
                hosts.push(Host {
                    name: name.name.clone(),
                    id,
                    config: config.cluster,
                    issuance: config.issuance,
                    wall_offset_us: nodes.walls.get(&name.name).copied().unwrap_or(0),
                    from_start: name.from_start,
                });
            }
            Err(found) => {
                // What is said of no place is said once, not for every host.
                let fresh = |problem: &Problem| told.insert(problem.to_string());
                found.into_iter().filter(fresh).for_each(|problem| {
                    problems.push(problem);
                });
            }
        }
    }
    addresses_differ(nodes, &hosts, problems);
    hosts
}

/// Checks what the production reader does not know: the shapes around its tables and the hosts they are for.
fn shapes(nodes: &Nodes, top: &Fields<'_>, problems: &mut Problems) {
    if let Some((_, config)) = top.table("config", problems) {
        config.entries.iter().for_each(|section| later_section(section, problems));
    }
    let Some((_, config_for)) = top.table("config_for", problems) else { return };
    for host in &config_for.entries {
        if nodes.find(&host.key).is_none() {
            unknown_host(&host.key, host.key_span, nodes, problems);
        }
        if let Some(config) = fields::entry_table(host, Kind::ConfigFor, problems) {
            config.entries.iter().for_each(|section| later_section(section, problems));
        }
    }
}

fn later_section(section: &Entry, problems: &mut Problems) {
    if catalog::LATER_CONFIG.contains(&section.key.as_str()) {
        problems
            .add(section.key_span, format!("`{}` arrives with a later version", section.key), "not known yet")
            .help("this version drills [config.cluster] and [config.issuance]");
    }
}

/// Configuration tables by file, without the sections of later versions, which have been reported.
struct Refined<'d> {
    common: Option<DeTable<'d>>,
    single: BTreeMap<String, DeTable<'d>>,
}

fn refine<'d>(documents: &[DeTable<'d>]) -> Vec<Refined<'d>> {
    let known = |table: &DeTable<'d>| -> DeTable<'d> {
        let mut table = table.clone();
        for section in catalog::LATER_CONFIG {
            table.remove(*section);
        }
        table
    };
    let tables = |document: &DeTable<'d>| Refined {
        common: document.get("config").and_then(|config| config.get_ref().as_table()).map(known),
        single: document
            .get("config_for")
            .and_then(|hosts| hosts.get_ref().as_table())
            .into_iter()
            .flat_map(|hosts| hosts.iter())
            .filter_map(|(host, config)| match config.get_ref() {
                DeValue::Table(table) => Some((host.get_ref().to_string(), known(table))),
                DeValue::String(_)
                | DeValue::Integer(_)
                | DeValue::Float(_)
                | DeValue::Boolean(_)
                | DeValue::Datetime(_)
                | DeValue::Array(_) => None,
            })
            .collect(),
    };
    documents.iter().map(tables).collect()
}

struct Layers<'d, 'f> {
    files: &'f Files,
    documents: &'f [DeTable<'d>],
    refined: Vec<Refined<'d>>,
}

impl Layers<'_, '_> {
    /// Whether a file says anything about issuance on this host.
    fn issues(&self, name: &str) -> bool {
        let says = |table: &DeTable<'_>| table.contains_key("issuance");
        let tables = |tables: &Refined<'_>| {
            tables.common.as_ref().is_some_and(says) || tables.single.get(name).is_some_and(says)
        };
        self.refined.iter().any(tables)
    }

    /// The configuration of one host, or what is wrong with it.
    fn config(&self, nodes: &Nodes, ix: usize, seeds: &[SocketAddr]) -> Result<Config, Vec<Problem>> {
        let name = nodes.names.get(ix).map_or("", |host| host.name.as_str());
        let supplied = supplied(name, address(ix), seeds, self.issues(name));
        let base = DeTable::parse(&supplied).map(toml::Spanned::into_inner).unwrap_or_default();
        let mut layers =
            vec![Layer { table: &base, origin: Origin { name: "the harness", text: &supplied } }];
        let mut from = vec![None];
        let common = |file: usize| self.refined.get(file).and_then(|tables| tables.common.as_ref());
        let single = |file: usize| self.refined.get(file).and_then(|tables| tables.single.get(name));
        let files = || self.files.order.iter().copied();
        let tables = files()
            .map(|file| (file, common(file)))
            .chain(files().map(|file| (file, single(file))))
            .filter_map(|(file, table)| table.map(|table| (file, table)));
        for (file, table) in tables {
            let Some(source) = self.files.files.get(file) else { continue };
            layers.push(Layer { table, origin: Origin { name: &source.path, text: &source.text } });
            from.push(Some(file));
        }
        debug_assert_eq!(self.documents.len(), self.refined.len());
        Config::from_layers(&layers, &BTreeMap::new())
            .map_err(|problems| problems.into_iter().map(|problem| placed(problem, &from, name)).collect())
    }
}

/// A problem of the production reader at its place in the scenario's files.
fn placed(problem: firedrill_core::config::Problem, from: &[Option<usize>], host: &str) -> Problem {
    let span = match &problem.place {
        Place::File { layer, span, .. } => {
            from.get(*layer).copied().flatten().map(|file| at(file, span.clone()))
        }
        Place::Env { .. } | Place::Missing => None,
    };
    let mut placed = match span {
        Some(span) => Problem::new(span, problem.message, "in the configuration"),
        None if problem.key == "issuance.issuer" => {
            Problem::without_place("[config.issuance] names no issuer".to_owned())
        }
        None => Problem::without_place(format!("the configuration of `{host}`: {}", problem.message)),
    };
    if let Some(help) = problem.help {
        placed.help(help);
    }
    placed
}

/// Where host `ix` listens: 192.168.0.1 and on, 250 to a network.
pub(crate) fn address(ix: usize) -> SocketAddr {
    let part = |n: usize| u8::try_from(n).unwrap_or(u8::MAX);
    SocketAddr::from(([192, 168, part(ix / 250), part(ix % 250 + 1)], PORT))
}

/// What a scenario need not repeat, as the text of a configuration.
fn supplied(name: &str, addr: SocketAddr, seeds: &[SocketAddr], issues: bool) -> String {
    let mut text = format!(
        "[cluster]\nenabled = true\nsecret = \"{SECRET}\"\nnode_id = \"{name}\"\nbind_addr = \"{addr}\"\n\
         seed_peers = ["
    );
    for seed in seeds {
        // Writing to a string does not fail.
        let _ = write!(text, "\"{seed}\", ");
    }
    text.push_str("]\n");
    if issues {
        text.push_str("[issuance]\nenabled = true\n");
    }
    text
}

fn addresses_differ(nodes: &Nodes, hosts: &[Host], problems: &mut Problems) {
    let mut taken: BTreeMap<SocketAddr, &Host> = BTreeMap::new();
    for host in hosts {
        let Some(first) = taken.insert(host.listens_at(), host) else { continue };
        let span = |host: &Host| nodes.names.iter().find(|name| name.name == host.name).map(|name| name.span);
        if let (Some(here), Some(there)) = (span(host), span(first)) {
            problems
                .add(
                    here,
                    format!("`{}` and `{}` both listen at {}", first.name, host.name, host.listens_at()),
                    "the second",
                )
                .also(there, "the first")
                .help(
                    "give one of them another `bind_addr`, or leave it out; the harness gives each its own",
                );
        }
    }
}

/// Whether all hosts share one secret and one cluster name; where they do not, only real bytes tell.
pub(super) fn alike(hosts: &[Host]) -> bool {
    let kinds: BTreeSet<(&[u8], &str)> =
        hosts.iter().map(|host| (host.config.secret.as_bytes(), host.config.cluster_name.as_str())).collect();
    kinds.len() <= 1
}
