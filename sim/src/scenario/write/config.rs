//! The configuration of all hosts as the layers a person would write: what most share in `[config]`, what is
//! theirs alone in `[config_for.X]`, nothing that the harness supplies.

use std::net::SocketAddr;

use firedrill_core::config::Config;

use super::page::Value;
use crate::scenario::hosts::{SECRET, Seeds, address};
use crate::scenario::model::Host;

/// Keys of `cluster` with their values.
type Entries = Vec<(&'static str, Value)>;

/// What to write.
#[derive(Debug)]
pub(super) struct Layers {
    /// Whom each host dials first, where nothing else is said.
    pub(super) seeds: Seeds,
    /// `[config.cluster]`.
    pub(super) shared: Entries,
    /// `[config_for.X.cluster]`, by host.
    pub(super) single: Vec<Entries>,
}

impl Layers {
    /// The layers that give every host the configuration it has.
    pub(super) fn of(hosts: &[Host]) -> Self {
        let usual = Config::default().cluster;
        let mut layers = Self { seeds: Seeds::All, shared: Vec::new(), single: Vec::new() };
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
        let values: Vec<T> = values.collect();
        let common = most(&values).unwrap_or(&usual);
        if *common != usual {
            self.shared.push((key, write(common)));
        }
        for (entries, value) in self.single.iter_mut().zip(&values) {
            if value != common {
                entries.push((key, write(value)));
            }
        }
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
