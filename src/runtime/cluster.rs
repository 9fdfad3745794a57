//! A node on real sockets, run by a task of its own.

use std::ops::Deref;

use firedrill_core::config::Config;
use firedrill_core::rng::Seed;
use tokio::task::AbortHandle;

use crate::clock::SystemClock;
use crate::driver::{Driver, StartError};
use crate::handle::{ClusterHandle, Departure};
use crate::net::TokioNet;
use crate::store::Store;

/// A running node and its task. Dereferences to its [`ClusterHandle`]; clone that for request handlers.
///
/// Dropping it stops the node without a farewell, which peers see as a crash: [`Cluster::leave`] instead.
#[derive(Debug)]
pub struct Cluster {
    handle: ClusterHandle,
    task: AbortHandle,
}

impl Cluster {
    /// Listens, boots a node with a seed from the operating system, and runs it in a task of the present tokio
    /// runtime.
    ///
    /// # Errors
    /// [`StartError`] says what failed, where, and what to do; nothing was started.
    ///
    /// # Panics
    /// Outside a tokio runtime that has its time and I/O drivers enabled.
    pub async fn start(config: &Config) -> Result<Self, StartError> {
        Self::start_on(config, None).await
    }

    /// As [`Cluster::start`], with a store, which a node with `[issuance]` needs.
    ///
    /// # Errors
    /// [`StartError`]; nothing was started.
    ///
    /// # Panics
    /// As [`Cluster::start`].
    pub async fn start_with(config: &Config, store: impl Store) -> Result<Self, StartError> {
        Self::start_on(config, Some(Box::new(store))).await
    }

    async fn start_on(config: &Config, store: Option<Box<dyn Store>>) -> Result<Self, StartError> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(StartError::Randomness)?;
        let (clock, seed) = (SystemClock::new(), Seed::from_bytes(seed));
        let driver = Driver { net: TokioNet, clock, seed, observer: (), store };
        let bound = driver.bind(config).await?;
        let handle = bound.handle();
        let task = tokio::spawn(bound.run()).abort_handle();
        Ok(Self { handle, task })
    }

    /// The handle, to clone.
    pub const fn handle(&self) -> &ClusterHandle {
        &self.handle
    }

    /// Departs gracefully, 250 ms at most, and ends the task.
    pub async fn leave(self) -> Departure {
        self.handle.leave().await
    }
}

impl Deref for Cluster {
    type Target = ClusterHandle;

    fn deref(&self) -> &ClusterHandle {
        &self.handle
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.task.abort();
    }
}
