//! The tokio driver of the cluster core: what a service embeds.
//!
//! ```no_run
//! # use std::collections::BTreeMap;
//! # use firedrill_core::config::Config;
//! # use firedrill_runtime::Cluster;
//! # async fn service() -> Result<(), Box<dyn std::error::Error>> {
//! let config = Config::parse(&std::fs::read_to_string("firedrill.toml")?, &BTreeMap::new())?;
//! let cluster = Cluster::start(&config).await?;
//! let sightings = cluster.counter("sightings")?;
//! sightings.increment()?;
//! cluster.leave().await;
//! # Ok(())
//! # }
//! ```
//!
//! [`Cluster`] runs a node on real sockets; [`ClusterHandle`] is the cheap clone that request handlers keep.
//! [`Driver`] is the same thing with its network, clock, seed and observer handed in, which is how a
//! simulation runs the production code: no cargo feature swaps anything.
//!
//! Invariants: the driver decides nothing. Every policy (whom to dial, when to close, what to drop, how long
//! to wait) is the core's, and the driver carries its outputs out in the order they were pushed. Nothing here
//! buffers without bound. The order of inputs depends only on what arrives, so a simulated run replays.
//!
//! Absent: time limits and back-off (the core closes a link that takes too long), any use of what a peer sends on a
//! link that this node dialled (it is read only to notice the link's end), any randomness but the first seed,
//! unbounded channels, blocking threads.

mod clock;
mod cluster;
mod driver;
mod handle;
mod journal;
mod net;
mod pipes;
mod shared;
mod store;

pub use clock::{Clock, SystemClock};
pub use cluster::Cluster;
pub use driver::{Bound, Driver, Observer, StartError};
pub use handle::{ClusterHandle, CommandError, Counter, Departure, MemberEvent, MemberEvents};
pub use net::{Listener, Net, TokioNet};
pub use store::{MemoryStore, Store, StoreError, StoreFuture};
