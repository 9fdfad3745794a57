//! The configuration of all hosts as the layers a person would write: what most share in `[config]`, what is
//! theirs alone in `[config_for.X]`, nothing that the harness supplies or the production reader defaults to.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use firedrill_core::config::{Config, Fencing, IssuanceConfig, keys_of};
use firedrill_core::id::NodeId;

use super::page::{Page, Value};
use crate::scenario::hosts::{SECRET, Seeds, address};
use crate::scenario::model::Host;

/// Keys of a section with their values.
pub(super) type Entries = Vec<(&'static str, Value)>;

/// What to write.
#[derive(Debug)]
pub(super) struct Layers {
    /// Whom each host dials first, where nothing else is said.
    pub(super) seeds: Seeds,
    /// `[config.cluster]`.
    pub(super) shared: Entries,
    /// `[config_for.X.cluster]`, by host.
    pub(super) single: Vec<Entries>,
    /// `[config.issuance]` and `[config_for.X.issuance]`; nothing where no host has any.
    pub(super) issuance: Option<Issuance>,
}

/// The layers of the issuance.
#[derive(Debug)]
pub(super) struct Issuance {
    /// What most hosts share.
    pub(super) shared: Entries,
    /// By host.
    pub(super) single: Vec<Entries>,
}

impl Layers {
    /// The layers that give every host the configuration it has.
    pub(super) fn of(hosts: &[Host]) -> Self {
        let usual = Config::default().cluster;
        let mut layers =
            Self { seeds: Seeds::All, shared: Vec::new(), single: Vec::new(), issuance: Issuance::of(hosts) };
        layers.single = hosts.iter().enumerate().map(|(ix, host)| identity(ix, host)).collect();
        let secrets = hosts.iter().map(|host| host.config.secret.as_bytes());
        layers.share("secret", secrets, SECRET.as_bytes(), |bytes| {
            Value::text(&String::from_utf8_lossy(bytes))
        });
        let names = hosts.iter().map(|host| host.config.cluster_name.as_str());
        layers.share("cluster_name", names, usual.cluster_name.as_str(), |name| Value::text(name));
        let pushes = hosts.iter().map(|host| host.config.push_interval_ms);
        layers.share("push_interval_ms", pushes, usual.push_interval_ms, |ms| Value::number(*ms));
        let suspicions = hosts.iter().map(|host| host.config.suspicion_timeout_ms);
        layers.share("suspicion_timeout_ms", suspicions, usual.suspicion_timeout_ms, |ms| Value::number(*ms));
        layers.choose_seeds(hosts);
        layers
    }

    /// Writes one key: once for all where most hosts share a value, and for each that has another.
    fn share<T: PartialEq>(
        &mut self,
        key: &'static str,
        values: impl Iterator<Item = T>,
        usual: T,
        write: impl Fn(&T) -> Value,
    ) {
        let values: Vec<Option<T>> = values.map(Some).collect();
        share(&mut self.shared, &mut self.single, key, &values, &usual, write);
    }

    /// Takes the arrangement that fits most hosts, and lists the seeds of those that it does not fit.
    fn choose_seeds(&mut self, hosts: &[Host]) {
        let from_start: Vec<bool> = hosts.iter().map(|host| host.from_start).collect();
        let addresses: Vec<SocketAddr> = hosts.iter().map(|host| host.config.advertised()).collect();
        let misfits = |seeds: Seeds| -> Vec<usize> {
            let fits =
                |ix: usize, host: &Host| seeds.of(ix, &from_start, &addresses) == host.config.seed_peers;
            hosts.iter().enumerate().filter(|&(ix, host)| !fits(ix, host)).map(|(ix, _)| ix).collect()
        };
        let mut listed = misfits(self.seeds);
        for seeds in Seeds::EVERY {
            let others = misfits(seeds);
            if others.len() < listed.len() {
                (self.seeds, listed) = (seeds, others);
            }
        }
        for ix in listed {
            if let (Some(entries), Some(host)) = (self.single.get_mut(ix), hosts.get(ix)) {
                entries.push(("seed_peers", addresses_of(&host.config.seed_peers)));
            }
        }
    }
}

impl Issuance {
    fn of(hosts: &[Host]) -> Option<Self> {
        let told: Vec<Option<Entries>> =
            hosts.iter().map(|host| host.issuance.as_ref().map(issuance)).collect();
        let keys: Vec<&'static str> = told.iter().flatten().next()?.iter().map(|(key, _)| *key).collect();
        let off = |told: &Option<Entries>| match told {
            Some(_) => Vec::new(),
            None => vec![("enabled", Value::Atom("false".to_owned()))],
        };
        let mut layers = Self { shared: Vec::new(), single: told.iter().map(off).collect() };
        for (place, key) in keys.into_iter().enumerate() {
            let value = |told: &Option<Entries>| {
                told.as_ref().and_then(|told| told.get(place)).map(|(_, value)| value.clone())
            };
            let values: Vec<Option<Value>> = told.iter().map(value).collect();
            let usual = keys_of("issuance").find(|known| known.name == key).and_then(|known| known.default);
            let usual = Value::Atom(usual.unwrap_or_default().to_owned());
            share(&mut layers.shared, &mut layers.single, key, &values, &usual, Value::clone);
        }
        Some(layers)
    }
}

/// Every key of an issuance, as it would stand in a file: single-line values only, so that they compare with the
/// defaults of the production configuration.
fn issuance(config: &IssuanceConfig) -> Entries {
    let IssuanceConfig {
        issuer,
        width,
        rate,
        genesis_ms,
        max_elapsed_per_seal,
        catchup_max_z,
        failover,
        silence_z,
        boot_grace_z,
        check_z,
        pull_z,
        probe_timeout_ms,
        eligible,
        fencing,
        fence_z,
    } = config;
    let fencing = match fencing {
        Fencing::None => "none",
        Fencing::Majority => "majority",
    };
    let eligible = match eligible.is_empty() {
        true => Value::Atom("[]".to_owned()),
        false => Value::texts(eligible.iter().map(NodeId::as_str)),
    };
    vec![
        ("issuer", Value::text(issuer.as_str())),
        ("width", Value::number(*width)),
        ("rate", Value::text(&rate.to_string())),
        ("genesis_ms", Value::number(*genesis_ms)),
        ("max_elapsed_per_seal", Value::number(*max_elapsed_per_seal)),
        ("catchup_max_z", Value::number(catchup_max_z.0)),
        ("failover", Value::Atom(failover.to_string())),
        ("silence_z", Value::number(silence_z.0)),
        ("boot_grace_z", Value::number(boot_grace_z.0)),
        ("check_z", Value::number(check_z.0)),
        ("pull_z", Value::number(pull_z.0)),
        ("probe_timeout_ms", Value::number(*probe_timeout_ms)),
        ("eligible", eligible),
        ("fencing", Value::text(fencing)),
        ("fence_z", Value::number(fence_z.0)),
    ]
}

/// The issuance as the production reader takes it from a file that says all of its keys but one; `None` where it
/// does not take it.
pub(crate) fn reread_issuance(config: &IssuanceConfig, but: Option<&str>) -> Option<IssuanceConfig> {
    let mut page = Page::default();
    page.section("[cluster]");
    page.entry("node_id", &Value::text(config.issuer.as_str()));
    page.section("[issuance]");
    page.entry("enabled", &Value::Atom("true".to_owned()));
    for (key, value) in issuance(config).iter().filter(|(key, _)| Some(*key) != but) {
        page.entry(key, value);
    }
    Config::parse(&page.finish(), &BTreeMap::new()).ok()?.issuance
}

/// Writes one key: once for all where most of those that have a value share it, and for each that has another.
fn share<T: PartialEq>(
    shared: &mut Entries,
    single: &mut [Entries],
    key: &'static str,
    values: &[Option<T>],
    usual: &T,
    write: impl Fn(&T) -> Value,
) {
    let given: Vec<&T> = values.iter().flatten().collect();
    let common = most(&given).copied().unwrap_or(usual);
    if common != usual {
        shared.push((key, write(common)));
    }
    for (entries, value) in single.iter_mut().zip(values) {
        if let Some(value) = value.as_ref().filter(|value| *value != common) {
            entries.push((key, write(value)));
        }
    }
}

/// The keys that no two hosts share.
fn identity(ix: usize, host: &Host) -> Entries {
    let config = &host.config;
    let mut entries = Vec::new();
    if host.id.as_str() != host.name {
        entries.push(("node_id", Value::text(host.id.as_str())));
    }
    if config.bind_addr != address(ix) {
        entries.push(("bind_addr", Value::text(&config.bind_addr.to_string())));
    }
    if let Some(addr) = config.advertise_addr {
        entries.push(("advertise_addr", Value::text(&addr.to_string())));
    }
    entries
}

fn addresses_of(addresses: &[SocketAddr]) -> Value {
    Value::List(addresses.iter().map(|addr| Value::text(&addr.to_string())).collect())
}

/// The value that more than half of all have.
fn most<T: PartialEq>(values: &[T]) -> Option<&T> {
    values.iter().find(|value| 2 * values.iter().filter(|other| other == value).count() > values.len())
}
