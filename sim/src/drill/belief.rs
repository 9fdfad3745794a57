//! What a node believes of the issuance, held against a fact.
//!
//! Cheap enough to be asked after every input, the audit excepted: it adds up all rows, so whoever asks does it
//! when the rows have changed ([`rows_version`]).

use firedrill_core::issuance::decimal::Decimal;
use firedrill_core::issuance::election::Decision;
use firedrill_core::issuance::machine::Issuance;
use firedrill_core::issuance::seal::Role;
use firedrill_core::node::Node;

use crate::scenario::catalog::figure_name;
use crate::scenario::model::{AuditFigure, Bound, Fact, RoleName};

/// Changes with the rows that a node has; `None` without issuance.
pub(super) fn rows_version(node: &Node) -> Option<u64> {
    node.issuance().map(|issuance| issuance.spine().version())
}

/// Whether the fact is true of this node; `None` for one without issuance, and for facts about other things.
pub(super) fn holds(fact: &Fact, node: &Node) -> Option<bool> {
    let issuance = node.issuance()?;
    Some(match fact {
        Fact::Lease { holder, epoch, .. } => {
            let lease = issuance.spine().fold().lease.as_ref();
            lease.is_some_and(|lease| {
                holder.as_ref().is_none_or(|holder| *holder == lease.holder)
                    && epoch.is_none_or(|epoch| epoch == lease.epoch)
            })
        }
        Fact::Role { is, .. } => name(issuance.role_at_last()) == *is,
        Fact::Decision { decision, successor, .. } => {
            let last = issuance.decision();
            last.is_some_and(|last| last.index() == *decision && names(last, successor.as_ref()))
        }
        Fact::Audit { figure, value, .. } => {
            let reading = issuance.audit().ok().map(|audit| figure.of(&audit));
            reading.is_some_and(|reading| meets(*value, reading))
        }
        Fact::View { .. } | Fact::Counter { .. } | Fact::Metric { .. } | Fact::Event(_) => return None,
    })
}

/// What this node, called `host`, has to show instead.
pub(super) fn testify(fact: &Fact, node: &Node, host: &str) -> String {
    let Some(issuance) = node.issuance() else { return format!("{host} takes no part in issuance") };
    match fact {
        Fact::Lease { .. } => match &issuance.spine().fold().lease {
            Some(lease) => format!("{host} sees {} hold the lease, epoch {}", lease.holder, lease.epoch),
            None => format!("{host} sees no lease"),
        },
        Fact::Role { .. } => format!("{host} is {}", role(issuance)),
        Fact::Decision { .. } => match issuance.decision() {
            Some(decision) => format!("{host} decided {decision}"),
            None => format!("{host} has held no election yet"),
        },
        Fact::Audit { figure, .. } => match issuance.audit() {
            Ok(audit) => {
                format!("{host} has {} {}", figure_name(*figure), amount(*figure, figure.of(&audit)))
            }
            Err(error) => format!("{host} cannot audit its rows: {error}"),
        },
        Fact::View { .. } | Fact::Counter { .. } | Fact::Metric { .. } | Fact::Event(_) => String::new(),
    }
}

/// A figure as people read it.
pub(super) fn amount(figure: AuditFigure, value: u64) -> String {
    if figure.is_amount() { Decimal::from_units(u128::from(value)).to_string() } else { value.to_string() }
}

fn role(issuance: &Issuance) -> String {
    match issuance.role_at_last() {
        Role::Issuer(Some(epoch)) => format!("issuer at epoch {epoch}"),
        Role::Issuer(None) => "issuer".to_owned(),
        Role::Replica => "a replica".to_owned(),
    }
}

const fn name(role: Role) -> RoleName {
    if role.is_issuer() { RoleName::Issuer } else { RoleName::Replica }
}

fn names(decision: &Decision, wanted: Option<&firedrill_core::id::NodeId>) -> bool {
    match (decision, wanted) {
        (Decision::SuccessorIs { successor }, Some(wanted)) => successor == wanted,
        (_, wanted) => wanted.is_none(),
    }
}

const fn meets(bound: Bound, reading: u64) -> bool {
    match bound {
        Bound::Equals(value) => reading == value,
        Bound::AtLeast(value) => reading >= value,
        Bound::AtMost(value) => reading <= value,
        // The workload adds to counters alone; the reader lets no file say this of an audit.
        Bound::Truth => false,
    }
}
