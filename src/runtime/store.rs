//! Where a node's rows survive its restart: the port that an adapter for a disk implements.
//!
//! A node writes one batch at a time and believes the answer: [`Written::Durable`] only when all of it survives a
//! power loss, [`Written::Refused`] only when none of it was written and none will be. An adapter that cannot tell
//! (a connection that broke during the commit) finds out before it answers, however long that takes: a node whose
//! write hangs is passed over by elections.
//!
//! Absent: any database.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use firedrill_core::issuance::machine::Recovered as Rows;
use firedrill_core::issuance::writer::{Batch, Written};

/// A future of a [`Store`].
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Why a store could not be read at boot: what, where, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(pub String);

/// Keeps the rows of one node.
pub trait Store: Send + Sync + 'static {
    /// Everything that is durable.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be read; the node does not start.
    fn load(&mut self) -> StoreFuture<'_, Result<Rows, StoreError>>;

    /// Makes a batch durable, whole or not at all. A row that is there already, under the same origin and number, is
    /// no error: a batch may come again.
    fn persist(&mut self, batch: Batch) -> StoreFuture<'_, Written>;
}

/// Rows in memory: survives a restart within the process, nothing else. For drills and tests.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    kept: Arc<Mutex<Rows>>,
}

impl MemoryStore {
    /// What was written so far.
    pub fn kept(&self) -> Rows {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Store for MemoryStore {
    fn load(&mut self) -> StoreFuture<'_, Result<Rows, StoreError>> {
        let rows = self.kept();
        Box::pin(async move { Ok(rows) })
    }

    fn persist(&mut self, batch: Batch) -> StoreFuture<'_, Written> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        for row in batch.rows {
            let held = kept.rows.iter().any(|held| held.origin == row.origin && held.seq == row.seq);
            if !held {
                kept.rows.push(row);
            }
        }
        kept.promised = batch.promised.or(kept.promised);
        Box::pin(async { Written::Durable })
    }
}
