//! The cluster core of firedrill: membership and cluster-wide counters as pure state machines.
//!
//! Two layers, each driven by the same four methods (`new`, `handle`, `next_wake`, `view`):
//!
//! - [`node::Node`] takes messages in and gives messages out;
//! - [`endpoint::Endpoint`] takes bytes in and gives bytes out: connections, framing, MACs, limits, queues.
//!
//! A driver owns an [`io::Outbox`], calls `handle` with the time and one input, carries out what the outbox
//! holds, and calls again at `next_wake`. Nothing here reads a clock, opens a socket or starts a thread;
//! `no_std` is the fence that keeps it so.

#![no_std]

extern crate alloc;

pub mod config;
mod counter;
pub mod endpoint;
pub mod guards;
pub mod id;
pub mod io;
pub mod issuance;
pub mod limits;
pub mod link;
mod membership;
pub mod metrics;
pub mod node;
mod replica;
pub mod rng;
pub mod time;
pub mod wire;
