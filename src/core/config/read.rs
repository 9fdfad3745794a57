//! Layers and environment in, a checked [`Config`] or every problem out.
//!
//! Each layer's values are checked by their own rules even where a later layer overrides them: a mistake does
//! not hide behind an override. Rules that relate two keys are checked on the merged result, and only when both
//! values could be read, so that one mistake is reported once.
//!
//! Absent: a way for a later layer to unset a key; TOML has no word for nothing.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::net::SocketAddr;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::issuance::IssuanceDraft;
use super::keys::{self, ENV_PREFIX, ENV_SEPARATOR, KEYS, Key, SECTIONS};
use super::problem::{Place, Problem, Problems};
use super::value::{self, Given, Parsed, quoted};
use super::{Config, Secret, nearest};
use crate::id::{ClusterName, NodeId};
use crate::limits::{PUSH_INTERVAL_MS_MIN, SECRET_BYTES_MIN, SUSPICION_PER_PUSH_MIN};

/// The text a layer was parsed from.
#[derive(Clone, Copy)]
pub struct Origin<'a> {
    /// What to call it in messages, such as a file's path; may be empty.
    pub name: &'a str,
    /// The whole text: the spans of the layer's table point into it.
    pub text: &'a str,
}

impl fmt::Debug for Origin<'_> {
    /// The name alone: the text may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Origin").field("name", &self.name).finish_non_exhaustive()
    }
}

/// One source of settings: a file, or a table of a scenario.
#[derive(Clone, Copy)]
pub struct Layer<'a> {
    /// A table with the sections of [`SECTIONS`].
    pub table: &'a DeTable<'a>,
    /// Where it comes from.
    pub origin: Origin<'a>,
}

impl fmt::Debug for Layer<'_> {
    /// The origin alone: the table may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layer").field("origin", &self.origin).finish_non_exhaustive()
    }
}

impl Config {
    /// Reads one file.
    ///
    /// `env` holds environment variables by name; those that do not concern the configuration are ignored, as
    /// are empty ones. They override the file.
    ///
    /// # Errors
    /// The first syntax error alone, or else everything that is wrong.
    pub fn parse(text: &str, env: &BTreeMap<String, String>) -> Result<Self, Problems> {
        let origin = Origin { name: "", text };
        match DeTable::parse(text) {
            Ok(table) => Self::from_layers(&[Layer { table: table.get_ref(), origin }], env),
            Err(error) => {
                let span = error.span().unwrap_or(text.len()..text.len());
                // The message alone: the error's own display quotes the line, which may hold the secret.
                let message = format!("this is not TOML: {}", error.message());
                let place = place_in(&origin, 0, span);
                Err(Problems::one(Problem { key: String::new(), place, message, help: None }))
            }
        }
    }

    /// Merges layers key by key, later ones over earlier ones and the environment over all, and checks them.
    ///
    /// # Errors
    /// Everything that is wrong, each with its place.
    pub fn from_layers(layers: &[Layer<'_>], env: &BTreeMap<String, String>) -> Result<Self, Problems> {
        let mut reader = Reader { layers, env, problems: Vec::new() };
        reader.refuse_unknown_keys();
        reader.refuse_unknown_variables();
        let draft = Draft::read(&mut reader);
        draft.check_relations(&mut reader.problems);
        match Problems::of(reader.problems) {
            Some(problems) => Err(problems),
            None => Ok(draft.finish()),
        }
    }
}

fn place_in(origin: &Origin<'_>, layer: usize, span: core::ops::Range<usize>) -> Place {
    let before = origin.text.as_bytes().iter().take(span.start);
    let line = 1 + before.filter(|&&byte| byte == b'\n').count();
    Place::File { layer, name: String::from(origin.name), line, span }
}

/// What the sources say about one key.
pub(super) enum Slot<T> {
    /// Nothing: the default holds.
    Unset,
    /// Something unusable, which was reported.
    Broken,
    /// A value, and where it was given.
    Set(T, Place),
}

impl<T> Slot<T> {
    pub(super) fn or(self, default: T) -> T {
        match self {
            Self::Set(value, _) => value,
            Self::Unset | Self::Broken => default,
        }
    }

    pub(super) fn some(self) -> Option<T> {
        match self {
            Self::Set(value, _) => Some(value),
            Self::Unset | Self::Broken => None,
        }
    }
}

impl<T: Copy> Slot<T> {
    /// The value that holds and where it was given (nowhere for a default); `None` when it is unusable.
    pub(super) fn effective(&self, default: T) -> Option<(T, Option<&Place>)> {
        match self {
            Self::Unset => Some((default, None)),
            Self::Broken => None,
            Self::Set(value, place) => Some((*value, Some(place))),
        }
    }
}

pub(super) struct Reader<'a> {
    layers: &'a [Layer<'a>],
    env: &'a BTreeMap<String, String>,
    problems: Vec<Problem>,
}

impl<'a> Reader<'a> {
    /// Reads a key wherever it is given and keeps the value of the last place.
    pub(super) fn slot<T>(&mut self, key: &Key, parse: impl Fn(Given<'a>) -> Parsed<T>) -> Slot<T> {
        let mut slot = Slot::Unset;
        for (given, place) in self.given(key) {
            slot = match parse(given) {
                Ok(value) => Slot::Set(value, place),
                Err(faults) => {
                    for fault in faults {
                        self.problems.push(located(key, &place, fault, self.layers));
                    }
                    Slot::Broken
                }
            };
        }
        slot
    }

    fn given(&self, key: &Key) -> Vec<(Given<'a>, Place)> {
        let mut given = Vec::new();
        for (index, layer) in self.layers.iter().enumerate() {
            let section = layer.table.get(key.section).and_then(|section| section.get_ref().as_table());
            if let Some(value) = section.and_then(|section| section.get(key.name)) {
                given.push((Given::Toml(value), place_in(&layer.origin, index, value.span())));
            }
        }
        let variable = key.env();
        if let Some(text) = self.env.get(&variable).filter(|text| !text.is_empty()) {
            given.push((Given::Env(text), Place::Env { variable }));
        }
        given
    }

    fn refuse_unknown_keys(&mut self) {
        for (index, layer) in self.layers.iter().enumerate() {
            for (name, value) in layer.table {
                let place = place_in(&layer.origin, index, name.span());
                let name = name.get_ref().as_ref();
                if !SECTIONS.iter().any(|(known, _)| *known == name) {
                    self.problems.push(unknown_section(name, place));
                } else if let DeValue::Table(section) = value.get_ref() {
                    self.refuse_unknown_keys_in(index, name, section);
                } else {
                    self.problems.push(not_a_section(name, value, place));
                }
            }
        }
    }

    fn refuse_unknown_keys_in(&mut self, index: usize, section: &str, table: &DeTable<'_>) {
        for name in table.keys() {
            let place = place_in(&self.layers[index].origin, index, name.span());
            let name = name.get_ref().as_ref();
            if !keys::keys_of(section).any(|key| key.name == name) {
                self.problems.push(unknown_key(section, name, place));
            }
        }
    }

    fn refuse_unknown_variables(&mut self) {
        let env = self.env;
        for (variable, text) in env.iter().filter(|(name, _)| name.starts_with(ENV_PREFIX)) {
            let known = KEYS.iter().any(|key| key.env() == *variable);
            if !known && !text.is_empty() {
                self.problems.extend(unknown_variable(variable));
            }
        }
    }
}

/// Completes a fault with its key and place.
fn located(key: &Key, place: &Place, fault: value::Fault, layers: &[Layer<'_>]) -> Problem {
    let path = match fault.index {
        Some(index) => format!("{}[{index}]", key.path()),
        None => key.path(),
    };
    let place = match (place, fault.span) {
        (Place::File { layer, .. }, Some(span)) => place_in(&layers[*layer].origin, *layer, span),
        _ => place.clone(),
    };
    let message = format!("{path} {}", fault.message);
    Problem { key: path, place, message, help: fault.help }
}

fn unknown_section(name: &str, place: Place) -> Problem {
    let help = if let Some(key) = KEYS.iter().find(|key| key.name == name) {
        format!("{name} belongs in [{}]", key.section)
    } else if let Some(section) = nearest(name, SECTIONS.map(|(section, _)| section)) {
        format!("did you mean [{section}]?")
    } else {
        let known = SECTIONS.map(|(section, _)| format!("[{section}]"));
        format!("there are {}", known.join(", "))
    };
    let message = format!("{} is not a section of the configuration", quoted(name));
    Problem { key: String::from(name), place, message, help: Some(help) }
}

fn not_a_section(name: &str, value: &Spanned<DeValue<'_>>, place: Place) -> Problem {
    let found = value.get_ref().type_str();
    let message = format!("{name} must be a table, but is of type {found}");
    let help = Some(format!("begin the section with [{name}] on a line of its own"));
    Problem { key: String::from(name), place, message, help }
}

fn unknown_key(section: &str, name: &str, place: Place) -> Problem {
    let names = || keys::keys_of(section).map(|key| key.name);
    let help = if let Some(key) = KEYS.iter().find(|key| key.name == name) {
        format!("{name} belongs in [{}]", key.section)
    } else if let Some(near) = nearest(name, names()) {
        format!("did you mean {near}?")
    } else {
        format!("[{section}] has {}", names().collect::<Vec<_>>().join(", "))
    };
    let message = format!("{} is not a key of [{section}]", quoted(name));
    Problem { key: format!("{section}.{name}"), place, message, help: Some(help) }
}

/// A variable that looks like an override and is none. Others that begin like ours are left alone: an
/// orchestrator derives variables from a service's name (`FIREDRILL_SERVER_PORT`), and nobody mistyped those.
fn unknown_variable(variable: &str) -> Option<Problem> {
    let rest = variable.strip_prefix(ENV_PREFIX)?;
    let known: Vec<String> = KEYS.iter().map(Key::env).collect();
    let single = |name: &str| name.replacen(ENV_SEPARATOR, "_", 1) == variable;
    let help = if let Some(meant) = known.iter().find(|name| single(name)) {
        format!("section and key are separated by two underscores: {meant}")
    } else {
        let (section, _) = rest.split_once(ENV_SEPARATOR)?;
        let section = nearest(section, SECTIONS.map(|(section, _)| section))?;
        let own = || keys::keys_of(section).map(Key::env).collect::<Vec<_>>();
        match nearest(variable, own().iter().map(String::as_str)) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("known are {}", own().join(", ")),
        }
    };
    Some(Problem {
        key: String::from(variable),
        place: Place::Env { variable: String::from(variable) },
        message: format!("{variable} overrides nothing: there is no such key"),
        help: Some(help),
    })
}

/// Every key, read but not yet related to the others.
struct Draft {
    enabled: Slot<bool>,
    secret: Slot<Secret>,
    cluster_name: Slot<ClusterName>,
    node_id: Slot<NodeId>,
    bind_addr: Slot<SocketAddr>,
    advertise_addr: Slot<SocketAddr>,
    seed_peers: Slot<Vec<SocketAddr>>,
    push_interval_ms: Slot<u64>,
    suspicion_timeout_ms: Slot<u64>,
    server_bind_addr: Slot<SocketAddr>,
    issuance: IssuanceDraft,
    defaults: Config,
}

impl Draft {
    fn read(reader: &mut Reader<'_>) -> Self {
        const WHY_PUSH: &str = "a shorter interval would do little but push";
        Self {
            enabled: reader.slot(&keys::ENABLED, value::boolean),
            secret: reader.slot(&keys::SECRET, value::secret),
            cluster_name: reader.slot(&keys::CLUSTER_NAME, |given| value::name(given, ClusterName::new)),
            node_id: reader.slot(&keys::NODE_ID, |given| value::name(given, NodeId::new)),
            bind_addr: reader.slot(&keys::BIND_ADDR, value::listen_addr),
            advertise_addr: reader.slot(&keys::ADVERTISE_ADDR, value::dial_addr),
            seed_peers: reader.slot(&keys::SEED_PEERS, value::dial_addrs),
            push_interval_ms: reader
                .slot(&keys::PUSH_INTERVAL_MS, |given| value::integer(given, PUSH_INTERVAL_MS_MIN, WHY_PUSH)),
            suspicion_timeout_ms: reader
                .slot(&keys::SUSPICION_TIMEOUT_MS, |given| value::integer(given, 0, "")),
            server_bind_addr: reader.slot(&keys::SERVER_BIND_ADDR, value::listen_addr),
            issuance: IssuanceDraft::read(reader),
            defaults: Config::default(),
        }
    }

    fn check_relations(&self, problems: &mut Vec<Problem>) {
        problems.extend(self.check_secret());
        problems.extend(self.check_wildcard());
        problems.extend(self.check_suspicion());
        self.issuance.check_relations(&self.node_id, problems);
    }

    /// An enabled cluster needs a secret of some length.
    fn check_secret(&self) -> Option<Problem> {
        let Slot::Set(true, enabled_at) = &self.enabled else { return None };
        let key = keys::SECRET.path();
        let variable = keys::SECRET.env();
        match &self.secret {
            Slot::Broken => None,
            Slot::Unset => Some(Problem {
                message: format!("{key} is needed, because cluster.enabled is true ({enabled_at})"),
                key,
                place: Place::Missing,
                help: Some(format!(
                    "set {variable} to at least {SECRET_BYTES_MIN} random bytes, the same on every node \
                     (openssl rand -hex 32)"
                )),
            }),
            Slot::Set(secret, place) => {
                let bytes = secret.as_bytes().len();
                (bytes < SECRET_BYTES_MIN).then(|| Problem {
                    message: format!(
                        "{key} is {bytes} bytes long, but at least {SECRET_BYTES_MIN} are needed: a short \
                         secret can be guessed, and whoever has it can be a member"
                    ),
                    key,
                    place: place.clone(),
                    help: Some(String::from("draw one at random: openssl rand -hex 32")),
                })
            }
        }
    }

    /// Peers are told the bound address unless another is given, and cannot dial a wildcard.
    fn check_wildcard(&self) -> Option<Problem> {
        let Slot::Set(bound, place) = &self.bind_addr else { return None };
        let unset = matches!(self.advertise_addr, Slot::Unset);
        (unset && value::is_wildcard(*bound)).then(|| Problem {
            key: keys::BIND_ADDR.path(),
            place: place.clone(),
            message: format!(
                "cluster.bind_addr is the wildcard \"{bound}\", which no peer can dial, and \
                 cluster.advertise_addr is not given"
            ),
            help: Some(String::from(
                "set cluster.advertise_addr to the address at which peers reach this node, such as 10.0.1.7:7946",
            )),
        })
    }

    /// Below the ratio one late push evicts a healthy peer.
    fn check_suspicion(&self) -> Option<Problem> {
        let defaults = &self.defaults.cluster;
        let (push_ms, push_at) = self.push_interval_ms.effective(defaults.push_interval_ms)?;
        let (suspicion_ms, suspicion_at) =
            self.suspicion_timeout_ms.effective(defaults.suspicion_timeout_ms)?;
        let least_ms = u128::from(push_ms) * u128::from(SUSPICION_PER_PUSH_MIN);
        if u128::from(suspicion_ms) >= least_ms {
            return None;
        }
        let most_push_ms = suspicion_ms / SUSPICION_PER_PUSH_MIN;
        let raise = (least_ms <= u128::from(u64::MAX))
            .then(|| format!("raise suspicion_timeout_ms to {least_ms} or more"));
        let lower = (most_push_ms >= PUSH_INTERVAL_MS_MIN)
            .then(|| format!("lower push_interval_ms to {most_push_ms} or less"));
        Some(Problem {
            key: keys::SUSPICION_TIMEOUT_MS.path(),
            // Where the suspicion is given, or else the interval: by default they agree.
            place: suspicion_at.or(push_at).cloned().unwrap_or(Place::Missing),
            message: format!(
                "cluster.suspicion_timeout_ms is {suspicion_ms} ({}), but cluster.push_interval_ms is {push_ms} \
                 ({}) and at least {SUSPICION_PER_PUSH_MIN} times that, {least_ms}, is needed: otherwise one \
                 late push evicts a healthy member",
                Provenance(suspicion_at),
                Provenance(push_at),
            ),
            help: Some([raise, lower].into_iter().flatten().collect::<Vec<_>>().join(", or ")),
        })
    }

    fn finish(self) -> Config {
        let Config { mut cluster, mut server, .. } = self.defaults;
        cluster.enabled = self.enabled.or(cluster.enabled);
        cluster.secret = self.secret.or(cluster.secret);
        cluster.cluster_name = self.cluster_name.or(cluster.cluster_name);
        cluster.node_id = self.node_id.some();
        cluster.bind_addr = self.bind_addr.or(cluster.bind_addr);
        cluster.advertise_addr = self.advertise_addr.some();
        cluster.seed_peers = self.seed_peers.or(cluster.seed_peers);
        cluster.push_interval_ms = self.push_interval_ms.or(cluster.push_interval_ms);
        cluster.suspicion_timeout_ms = self.suspicion_timeout_ms.or(cluster.suspicion_timeout_ms);
        server.bind_addr = self.server_bind_addr.or(server.bind_addr);
        Config { cluster, server, issuance: self.issuance.finish() }
    }
}

/// Where a value comes from, in words.
pub(super) struct Provenance<'a>(pub(super) Option<&'a Place>);

impl fmt::Display for Provenance<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(place) => fmt::Display::fmt(place, f),
            None => f.write_str("the default"),
        }
    }
}
