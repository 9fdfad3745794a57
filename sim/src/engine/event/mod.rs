//! The event engine: a queue of due things over state machines; time jumps from one to the next.
//!
//! Cost follows events, not simulated time: a quiet hour is free. The engine has three layers, each knowing
//! only the one below:
//!
//! - [`EventEngine`] speaks the testbed's language: faults, [`crate::engine::Step`]s, the cluster node in fast
//!   ([`FastNode`]) or full ([`FullNode`]) wire mode;
//! - [`EventSim`] drives any [`Machine`]: hosts that boot, pause, end and lose power, with two clocks, a disk
//!   and links of their own. Its module states the semantics of every fault;
//! - queue, network, clocks and store beneath it.
//!
//! Determinism: no hash map, no clock, no thread. All randomness is forked by label from one seed: one
//! generator a directed link, one seed a host and boot. The same seed and the same calls give the same run, in
//! any process and on any thread.
//!
//! Absent: panics are not caught here (the caller decides what a panic means), and nothing is known of
//! scenarios, oracles or expectations.

pub(super) mod capture;
pub(super) mod clock;
pub(super) mod cluster;
pub(super) mod directory;
mod fast;
pub(super) mod faults;
pub(super) mod full;
pub(super) mod machine;
pub(super) mod network;
mod queue;
mod sim;
pub(in crate::engine) mod store;
pub(crate) mod strangers;
pub(super) mod tcp;

pub use cluster::{EventEngine, EventOptions};
pub use fast::FastNode;
pub use full::FullNode;
pub use machine::{Boot, Effects, Handled, Input, Machine, Observer, Station, Trigger};
pub use sim::{EventSim, HostSpec};
pub use store::{Outcome, StoreHealth, Token};
