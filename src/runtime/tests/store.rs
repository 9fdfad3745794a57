//! Nodes with an issuance and stores that behave in every way a disk does: slow, refusing, unreadable, lasting.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use firedrill_core::config::Config;
use firedrill_core::issuance::machine::{Issuance, Recovered};
use firedrill_core::issuance::writer::{Batch, Written};
use firedrill_runtime::{Cluster, MemoryStore, StartError, Store, StoreError, StoreFuture};
use support::eventually;
use tokio::sync::Semaphore;

/// A lone issuer that seals as soon as its grace of one tick is over.
fn config() -> Config {
    let text = "[cluster]\nenabled = true\nsecret = 'a secret of the tests'\nnode_id = 'a'\n\
                [issuance]\nenabled = true\nissuer = 'a'\nboot_grace_z = 1\ncheck_z = 1\npull_z = 1\nsilence_z = 8";
    Config::parse(text, &BTreeMap::new()).unwrap()
}

fn look<T>(node: &Cluster, what: impl FnOnce(&Issuance) -> T) -> T {
    node.issuance(what).unwrap()
}

fn durable(node: &Cluster) -> u64 {
    look(node, |issuance| issuance.spine().durable_rows())
}

/// Memory behind a door: a write waits until there is a permit, and is refused while `refuses` is set.
#[derive(Clone)]
struct Door {
    kept: MemoryStore,
    permits: Arc<Semaphore>,
    refuses: Arc<AtomicBool>,
    begun: Arc<AtomicUsize>,
}

impl Door {
    fn new(permits: usize) -> Self {
        let permits = Arc::new(Semaphore::new(permits));
        let (refuses, begun) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        Self { kept: MemoryStore::default(), permits, refuses, begun }
    }
}

impl Store for Door {
    fn load(&mut self) -> StoreFuture<'_, Result<Recovered, StoreError>> {
        self.kept.load()
    }

    fn persist(&mut self, batch: Batch) -> StoreFuture<'_, Written> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            self.permits.acquire().await.unwrap().forget();
            if self.refuses.load(Ordering::SeqCst) {
                return Written::Refused;
            }
            self.kept.persist(batch).await
        })
    }
}

#[tokio::test]
async fn a_row_is_neither_shown_nor_counted_before_a_slow_store_has_it() {
    let store = Door::new(0);
    let node = Cluster::start_with(&config(), store.clone()).await.unwrap();
    eventually("a row waits for the store", || look(&node, Issuance::sealing).is_some()).await;
    // Each command wakes the driver, which must take the write up again where it was.
    let counter = node.counter("c").unwrap();
    for _ in 0..50 {
        counter.increment().unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(durable(&node), 0);
    assert_eq!(look(&node, |issuance| issuance.metrics().seals), 0);
    assert_eq!(store.begun.load(Ordering::SeqCst), 1, "one write at a time");

    store.permits.add_permits(1);
    eventually("the row is shown", || durable(&node) == 1).await;
    let kept = store.kept.kept().rows;
    assert!(look(&node, |issuance| issuance
        .spine()
        .durable()
        .all(|entry| kept.contains(&entry.to_stamped()))));
}

#[tokio::test]
async fn a_store_that_refuses_seals_nothing_and_is_asked_again() {
    let store = Door::new(Semaphore::MAX_PERMITS);
    store.refuses.store(true, Ordering::SeqCst);
    let node = Cluster::start_with(&config(), store.clone()).await.unwrap();
    eventually("a write is refused", || look(&node, |issuance| issuance.metrics().writes_refused) > 0).await;
    assert_eq!((durable(&node), store.kept.kept()), (0, Recovered::default()));
    assert!(look(&node, Issuance::able).is_err(), "a node that cannot write does not pass for fit");

    store.refuses.store(false, Ordering::SeqCst);
    eventually("the disk takes rows again", || durable(&node) > 0).await;
    assert!(look(&node, Issuance::able).is_ok());
    assert!(look(&node, |issuance| issuance.metrics().seals_refused) > 0);
}

#[tokio::test]
async fn an_issuance_without_a_store_does_not_start() {
    assert!(matches!(Cluster::start(&config()).await, Err(StartError::NoStore)));
}

/// A file that somebody overwrote.
struct Unreadable;

impl Store for Unreadable {
    fn load(&mut self) -> StoreFuture<'_, Result<Recovered, StoreError>> {
        Box::pin(async { Err(StoreError("rows.db is not a database".to_owned())) })
    }

    fn persist(&mut self, _: Batch) -> StoreFuture<'_, Written> {
        Box::pin(async { Written::Refused })
    }
}

#[tokio::test]
async fn a_store_that_cannot_be_read_keeps_the_node_from_starting_and_says_why() {
    let error = Cluster::start_with(&config(), Unreadable).await.unwrap_err();
    assert_eq!(error.to_string(), "rows.db is not a database");
}

#[tokio::test]
async fn memory_outlives_a_node_and_its_next_boot_goes_on_from_there() {
    let store = MemoryStore::default();
    let node = Cluster::start_with(&config(), store.clone()).await.unwrap();
    eventually("two rows are kept", || store.kept().rows.len() >= 2).await;
    let old = node.handle().clone();
    drop(node);
    old.ended().await;
    let before = store.kept();

    let node = Cluster::start_with(&config(), store.clone()).await.unwrap();
    let shown: Vec<_> =
        look(&node, |issuance| issuance.spine().durable().map(|entry| entry.to_stamped()).collect());
    assert_eq!(shown, before.rows);
    eventually("the next boot seals", || durable(&node) > before.rows.len() as u64).await;
    let origins = look(&node, |issuance| issuance.view().cursors.len());
    assert_eq!(origins, 2, "each boot numbers its own rows");
    let audit = look(&node, Issuance::audit).unwrap();
    assert_eq!((audit.duplicates, audit.rows_below_tip, audit.superseded), (0, 0, 0));
}
