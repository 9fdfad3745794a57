//! The turmoil engine: the production driver (`firedrill-runtime`) on turmoil's simulated network.
//!
//! Everything between a node and the wire is the code that ships: tasks, channels, framing, back-pressure, the
//! order in which effects are carried out. What is simulated stands around it:
//!
//! - **Sockets and scheduling** are turmoil's: connections, segments, windows, resets, paused tokio time.
//! - **Links** are the model that the event engine uses (`event::network`), asked once per whole frame
//!   on the way into turmoil and once on the way out. So latency, loss, duplication, reordering, bandwidth,
//!   holds, cuts and corruption have one meaning on both engines, one direction at a time. turmoil's own
//!   partition would lose single segments, after which a connection is dead for ever; real TCP retransmits.
//! - **A kernel** for each host, as small as can be (`pipe`): it holds what the driver has written until it is
//!   due, and lives on while the process is paused or has just ended.
//! - **Clocks** are injected: a wall clock with offset, step, rate and freeze, and a monotonic one.
//! - **Death**: power loss is silent (turmoil's crash is polite, so it happens behind a cut), a pause stops
//!   every task of the host, a restart is a new boot on the same network address.
//!
//! Addresses in configurations and events are the scenario's; turmoil's own are private to this module.
//!
//! # Time
//! A run advances in ticks, [`TurmoilOptions::tick_ms`] long, and the tick changes the trace: it is part of what
//! a replay needs. Within a tick hosts run one after another, so what they did is collected, put in order of
//! time and shown to the watch when the tick ends, each step with the node as it was then. When the watch says
//! [`super::Flow::Stop`] the rest of the tick stays unseen until the next call; what follows from what it saw
//! happens at the end of the tick.
//!
//! # Where this engine differs from `event`
//! - Power loss takes with it what the host's kernel has not yet put on the wire: frames not yet due, and held
//!   ones.
//! - What a hold keeps of a connection that the sender's kernel has given up is lost with it.
//! - The monotonic rate of a host that sleeps changes with its next wake-up.
//! - A command reaches a host no earlier than the tick after its start.
//!
//! Determinism: turmoil's seed and epoch are always set, tokio's own randomness is seeded, which needs
//! `--cfg tokio_unstable`; one thread a run, any number of runs at once.
//!
//! Panics: a panic in a host leaves [`super::Engine::run_until`] as a panic, with its own message; so does one in
//! a task of the driver, but with tokio's message. A host that cannot start does the same.
//!
//! Absent: slow or full disks (the gossip half has none).

#[cfg(not(tokio_unstable))]
compile_error!(
    "firedrill-sim needs --cfg tokio_unstable: without it panics in simulated hosts are swallowed and tokio's \
     randomness is not seeded. It is set in .cargo/config.toml; a RUSTFLAGS variable replaces that setting"
);

mod engine;
mod fabric;
mod host;
mod net;
mod pipe;
mod record;
mod strangers;
#[cfg(test)]
mod tests;

pub use engine::{TurmoilEngine, TurmoilOptions};
