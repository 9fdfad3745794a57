//! One issuer, exactly once: a lease in the log, a deterministic failover, exact amounts.
//!
//! From the bottom up: [`decimal`] and [`window`] are arithmetic; [`row`] is what is sealed; [`spine`] holds all
//! rows, merges them and folds them into one lease; [`audit`] adds them up; [`seal`],
//! [`election`] and [`fence`] decide, as pure functions or small machines.
//!
//! Spec: docs/issuance.md, Role.

pub mod audit;
pub mod decimal;
pub mod election;
pub mod event;
pub mod fence;
pub mod machine;
pub mod message;
mod replication;
pub mod row;
pub mod seal;
pub mod spine;
#[cfg(test)]
mod support;
pub mod window;
pub mod writer;
