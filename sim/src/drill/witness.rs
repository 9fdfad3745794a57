//! Whoever looks on at a run, to tell it later.
//!
//! A [`Witness`] sees every handled input, what was done to the cluster, and the cluster itself at the moments that
//! something failed. It changes nothing: with and without one a run has the same digest.
//!
//! Absent: judging. What failed is decided before a witness is told of it.

use std::fmt;
use std::time::Duration;

use firedrill_core::time::Instant;

use crate::engine::{Engine, Fault, Step};
use crate::oracles::World;
use crate::oracles::bounds::Bound;
use crate::outcome::Violation;
use crate::scenario::model::HostIx;

/// What failed.
#[derive(Debug, Clone, Copy)]
pub enum Failed<'a> {
    /// An oracle fired.
    Oracle(&'a Violation),
    /// This expectation of the file did not hold, by its position there.
    Expectation(usize),
}

/// Looks on at a run. Every method does nothing unless it is written.
pub trait Witness: fmt::Debug {
    /// A node handled an input. Nobody has judged it yet.
    fn step(&mut self, _step: &Step<'_>) {}

    /// A host went down.
    fn down(&mut self, _at: Instant, _gone: Gone) {}

    /// The drill begins or ends something, in the words of the timeline.
    fn act(&mut self, _at: Instant, _text: &str) {}

    /// A fault is about to be applied. Several may follow from one act, and at the time limit from none.
    fn fault(&mut self, _at: Instant, _fault: &Fault) {}

    /// The liveness phase begins; the nodes have this long to agree.
    fn settling(&mut self, _began: Instant, _within: Duration, _bound: &Bound) {}

    /// Something failed. World and engine are as they were when it was decided.
    fn failed(&mut self, _failed: Failed<'_>, _world: &World, _engine: &dyn Engine) {}
}

/// How a host went down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone {
    /// Which.
    pub host: HostIx,
    /// After a farewell, rather than by power loss.
    pub graceful: bool,
}
