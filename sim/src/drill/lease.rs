//! Who holds the lease and who comes next, as the cluster itself sees it: whom `holder` and `successor` mean.
//!
//! Spec: docs/issuance.md, Lease; Election.

use std::collections::{BTreeMap, BTreeSet};

use firedrill_core::id::NodeId;
use firedrill_core::issuance::window::Epoch;

use crate::engine::{Engine, HostState};
use crate::scenario::model::{HostIx, Scenario, Target, Verb};

/// Whom the two symbols mean at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Line {
    pub(super) holder: Option<HostIx>,
    pub(super) successor: Option<HostIx>,
    /// The epoch at which the holder holds it.
    pub(super) epoch: Option<Epoch>,
}

impl Line {
    /// Asks every running node. Of the leases they see the one of the highest epoch counts, and there the holder
    /// that most of them name; of two named as often the lower id, as everywhere.
    pub(super) fn of(scenario: &Scenario, engine: &dyn Engine) -> Self {
        let mut named = BTreeMap::<(Epoch, &NodeId), usize>::new();
        let mut eligible = BTreeSet::new();
        for ix in (0..scenario.hosts.len()).map(HostIx) {
            if engine.state(ix) == HostState::Down {
                continue;
            }
            engine.with_node(ix, &mut |node| {
                let Some(issuance) = node.issuance() else { return };
                eligible.extend(issuance.config().eligible.iter().cloned());
                let Some(lease) = &issuance.spine().fold().lease else { return };
                let holder = scenario.hosts.iter().map(|host| &host.id).find(|id| **id == lease.holder);
                if let Some(holder) = holder {
                    *named.entry((lease.epoch, holder)).or_default() += 1;
                }
            });
        }
        let epoch = named.keys().map(|(epoch, _)| *epoch).max();
        let of_epoch = named.into_iter().filter(|((of, _), _)| Some(*of) == epoch);
        // Of equal counts `max_by_key` takes the last: the lowest id, when they come in falling order.
        let holder = of_epoch.rev().max_by_key(|(_, count)| *count).map(|((_, id), _)| id);
        let mut ranked: Vec<HostIx> = (0..scenario.hosts.len()).map(HostIx).collect();
        ranked.sort_by_key(|ix| &scenario.hosts[ix.0].id);
        let may = |ix: &HostIx| {
            let host = &scenario.hosts[ix.0];
            let listed = eligible.is_empty() || eligible.contains(&host.id);
            listed && host.issuance.is_some() && Some(&host.id) != holder
        };
        let up = |ix: &HostIx| engine.state(*ix) == HostState::Up;
        Self {
            epoch,
            holder: holder.and_then(|id| {
                let of_id = |ix: &HostIx| scenario.hosts[ix.0].id == *id;
                ranked.iter().copied().filter(of_id).max_by_key(|ix| up(ix))
            }),
            successor: holder.and_then(|_| ranked.iter().copied().find(|ix| may(ix) && up(ix))),
        }
    }
}

/// Whether the verb acts on whoever holds the lease, or comes next.
pub(super) fn names_the_line(verb: &Verb) -> bool {
    verb.targets().iter().any(|target| matches!(target, Target::Holder | Target::Successor))
}
