//! Plainer issuance: none at all, the same on every host, its keys as they are without a word.
//!
//! Absent: whether a configuration is one that the production reader takes; [`super::valid`] asks it.

use firedrill_core::config::keys_of;
use firedrill_core::id::NodeId;

use super::edits::Edit;
use crate::scenario::model::{Fact, Scenario};
use crate::scenario::reread_issuance;

/// Edits in the order they are worth trying.
pub(super) fn edits(scenario: &Scenario) -> Vec<Edit> {
    if scenario.hosts.iter().all(|host| host.issuance.is_none()) {
        return Vec::new();
    }
    let mut edits: Vec<Edit> = vec![Box::new(without), Box::new(alike)];
    let optional = keys_of("issuance").filter(|key| key.default.is_some());
    edits.extend(optional.map(|key| -> Edit { Box::new(move |scenario| plain(scenario, key.name)) }));
    edits
}

/// Nobody issues, and nothing is said of it.
fn without(scenario: &mut Scenario) {
    scenario.hosts.iter_mut().for_each(|host| host.issuance = None);
    scenario.expects.retain(|expect| !is_about(&expect.fact));
}

/// Every host as the first that issues.
fn alike(scenario: &mut Scenario) {
    let first = scenario.hosts.iter().find_map(|host| host.issuance.clone());
    scenario.hosts.iter_mut().for_each(|host| host.issuance.clone_from(&first));
}

/// One key of every host as it is where a file does not say it.
fn plain(scenario: &mut Scenario, key: &str) {
    for host in &mut scenario.hosts {
        if let Some(config) = &host.issuance
            && let Some(plainer) = reread_issuance(config, Some(key))
        {
            host.issuance = Some(plainer);
        }
    }
}

/// Gives nodes other names, wherever a configuration speaks of them.
pub(super) fn rename(scenario: &mut Scenario, renamed: &impl Fn(&NodeId) -> NodeId) {
    for config in scenario.hosts.iter_mut().filter_map(|host| host.issuance.as_mut()) {
        config.issuer = renamed(&config.issuer);
        config.eligible = config.eligible.iter().map(renamed).collect();
    }
}

/// Leaves only these nodes among those that may issue. Who the first issuer is stays, even when it is gone: nobody
/// would begin, and that may be the failure that is looked for.
pub(super) fn keep(scenario: &mut Scenario, lives: &impl Fn(&NodeId) -> bool) {
    for config in scenario.hosts.iter_mut().filter_map(|host| host.issuance.as_mut()) {
        let issuer = config.issuer.clone();
        config.eligible.retain(|id| lives(id) || *id == issuer);
    }
}

/// Whether a fact asks for the issuance of a node.
pub(super) const fn is_about(fact: &Fact) -> bool {
    matches!(fact, Fact::Lease { .. } | Fact::Role { .. } | Fact::Decision { .. } | Fact::Audit { .. })
}
