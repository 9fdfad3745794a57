//! The contract of a store, held against every store there is.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::process::Stdio;
use std::sync::Arc;

use firedrill_core::id::{Incarnation, NodeId, Seq};
use firedrill_core::issuance::machine::Recovered;
use firedrill_core::issuance::row::{Fields, Lease, Origin, Row, Stamped};
use firedrill_core::issuance::window::{Epoch, Window};
use firedrill_core::issuance::writer::{Batch, Written};
use firedrill_daemon::store::Sqlite;
use firedrill_runtime::{MemoryStore, Store};
use support::scratch;

fn row(issuer: &str, seq: u64, window: u64, epoch: Option<u64>) -> Stamped {
    let node = NodeId::new(issuer).unwrap();
    let lease = epoch.map(|epoch| Lease { epoch: Epoch(epoch), holder: node.clone() });
    let row = Row::new(Fields {
        window: Window(window),
        from_window: Window(window - 9),
        elapsed: 8,
        rate: "0.999999999999".parse().unwrap(),
        phase: "0.25".parse().unwrap(),
        genesis_pegged: true,
        lease,
    });
    Stamped { origin: Origin { node, boot: Incarnation(1_765) }, seq: Seq(seq), row: Arc::new(row.unwrap()) }
}

fn batch(rows: impl IntoIterator<Item = Stamped>) -> Batch {
    Batch { rows: rows.into_iter().collect(), promised: None }
}

async fn held(store: &mut impl Store) -> Recovered {
    let mut held = store.load().await.unwrap();
    held.rows.sort_by(|a, b| (&a.origin, a.seq).cmp(&(&b.origin, b.seq)));
    held
}

/// What every store must do.
async fn contract(mut store: impl Store) {
    assert_eq!(held(&mut store).await, Recovered::default(), "it begins empty");
    let (a1, a2, legacy) = (row("a", 1, 100, Some(0)), row("a", 2, 101, Some(0)), row("old", 1, 50, None));
    assert_eq!(store.persist(batch([a1.clone(), a2.clone(), legacy.clone()])).await, Written::Durable);
    assert_eq!(held(&mut store).await.rows, [a1.clone(), a2.clone(), legacy.clone()]);

    assert_eq!(
        store.persist(batch([a1.clone(), a2.clone()])).await,
        Written::Durable,
        "a batch may come again"
    );
    assert_eq!(held(&mut store).await.rows.len(), 3);

    let winner = row("b", 1, 101, Some(1));
    assert_eq!(
        store.persist(batch([winner.clone()])).await,
        Written::Durable,
        "of one key both rows are kept"
    );
    assert_eq!(held(&mut store).await.rows, [a1, a2, winner, legacy]);

    for epoch in [3, 9] {
        let promise = Batch { rows: Vec::new(), promised: Some(Epoch(epoch)) };
        assert_eq!(store.persist(promise).await, Written::Durable);
        assert_eq!(held(&mut store).await.promised, Some(Epoch(epoch)));
    }
    let before = held(&mut store).await;
    assert_eq!(before.rows.len(), 4, "a promise is no row");
    assert_eq!(store.persist(Batch::default()).await, Written::Durable, "a working disk says so");
    assert_eq!(held(&mut store).await, before, "and keeps nothing for it");
}

#[tokio::test]
async fn memory_keeps_the_contract() {
    contract(MemoryStore::default()).await;
}

#[tokio::test]
async fn sqlite_keeps_the_contract() {
    contract(Sqlite::open(&scratch("store-contract").join("rows.db")).await.unwrap()).await;
}

#[tokio::test]
async fn what_sqlite_wrote_is_there_when_it_is_opened_again() {
    let file = scratch("store-reopen").join("rows.db");
    let mut store = Sqlite::open(&file).await.unwrap();
    let rows = [row("a", 1, 100, Some(0)), row("a", 2, 101, Some(0))];
    let written = store.persist(Batch { rows: rows.to_vec(), promised: Some(Epoch(u64::MAX)) }).await;
    assert_eq!(written, Written::Durable);
    drop(store);
    let held = held(&mut Sqlite::open(&file).await.unwrap()).await;
    assert_eq!(held, Recovered { rows: rows.to_vec(), promised: Some(Epoch(u64::MAX)) });
}

#[tokio::test]
async fn one_row_of_a_key_counts_whichever_came_first_and_any_tool_can_see_which() {
    for (order, name) in [([0, 1], "forward"), ([1, 0], "backward")] {
        let file = scratch(&format!("store-{name}")).join("rows.db");
        let mut store = Sqlite::open(&file).await.unwrap();
        let rivals = [row("a", 1, 100, Some(0)), row("b", 1, 100, Some(1))];
        for ix in order {
            assert_eq!(store.persist(batch([rivals[ix].clone()])).await, Written::Durable);
        }
        drop(store);
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&file);
        let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
        let counted: Vec<(String, String)> =
            sqlx::query_as("SELECT key, issuer FROM spine WHERE superseded = 0")
                .fetch_all(&pool)
                .await
                .unwrap();
        assert_eq!(counted, [("zeq-issuance-v1:w100".to_owned(), "b".to_owned())], "{name}");
        let second = sqlx::query("UPDATE spine SET superseded = 0").execute(&pool).await.unwrap_err();
        assert!(second.to_string().contains("UNIQUE"), "the file itself keeps one row a key: {second}");
    }
}

#[tokio::test]
async fn a_full_disk_refuses_the_whole_batch_and_takes_it_when_there_is_room() {
    let mut store = Sqlite::open(&scratch("store-full").join("rows.db")).await.unwrap();
    store.limit_pages(1).await.unwrap();
    let many = batch((1..400).map(|seq| row("a", seq, 100 + seq, Some(0))));
    assert_eq!(store.persist(many.clone()).await, Written::Refused);
    assert_eq!(held(&mut store).await.rows.len(), 0, "nothing of it is there");
    store.limit_pages(1_000_000).await.unwrap();
    assert_eq!(store.persist(many).await, Written::Durable);
    assert_eq!(held(&mut store).await.rows.len(), 399);
}

#[tokio::test]
async fn a_row_that_was_there_before_does_not_make_a_refused_batch_durable() {
    let mut store = Sqlite::open(&scratch("store-full-again").join("rows.db")).await.unwrap();
    let last = row("a", 400, 500, Some(0));
    assert_eq!(store.persist(batch([last.clone()])).await, Written::Durable);
    store.limit_pages(1).await.unwrap();
    let rows = (1..400).map(|seq| row("a", seq, 100 + seq, Some(0))).chain([last.clone()]);
    assert_eq!(store.persist(batch(rows)).await, Written::Refused);
    assert_eq!(held(&mut store).await.rows, [last]);
}

#[tokio::test]
async fn a_file_that_another_program_holds_refuses_writes_until_it_lets_go() {
    let file = scratch("store-held").join("rows.db");
    let mut store = Sqlite::open(&file).await.unwrap();
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&file);
    let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
    let other = pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let promise = Batch { rows: Vec::new(), promised: Some(Epoch(7)) };
    assert_eq!(store.persist(promise.clone()).await, Written::Refused);
    assert_eq!(
        store.persist(Batch::default()).await,
        Written::Refused,
        "asked, it says that it does not work"
    );
    assert_eq!(held(&mut store).await, Recovered::default());

    other.rollback().await.unwrap();
    assert_eq!(store.persist(Batch::default()).await, Written::Durable);
    assert_eq!(store.persist(promise).await, Written::Durable);
    assert_eq!(held(&mut store).await.promised, Some(Epoch(7)));
}

#[tokio::test]
async fn an_altered_row_is_told_with_its_place_and_what_to_do() {
    let file = scratch("store-altered").join("rows.db");
    let mut store = Sqlite::open(&file).await.unwrap();
    store.persist(batch([row("a", 1, 100, Some(0))])).await;
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&file);
    let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
    sqlx::query("UPDATE spine SET amount = '9.000000000000'").execute(&pool).await.unwrap();
    let problem = store.load().await.unwrap_err().to_string();
    for part in ["rows.db", "row 1 of a.1765", "amount is 9", "restore the file"] {
        assert!(problem.contains(part), "{part}: {problem}");
    }
}

#[tokio::test]
async fn one_file_is_one_nodes() {
    let file = scratch("store-shared").join("rows.db");
    let first = Sqlite::open(&file).await.unwrap();
    let problem = Sqlite::open(&file).await.unwrap_err().to_string();
    for part in ["rows.db is in use by another process", "--store"] {
        assert!(problem.contains(part), "{part}: {problem}");
    }
    drop(first);
    Sqlite::open(&file).await.unwrap();
}

#[tokio::test]
async fn a_file_that_is_no_store_is_refused_with_what_to_do() {
    let file = scratch("store-no").join("rows.db");
    std::fs::write(&file, "a letter to a friend, long enough to be mistaken for nothing else").unwrap();
    let problem = Sqlite::open(&file).await.unwrap_err().to_string();
    assert!(problem.contains("rows.db") && problem.contains("--store"), "{problem}");
}

/// The child of the next test: writes batches of two rows until it is killed, a line for each that is durable.
#[tokio::test]
async fn writes_until_it_is_killed() {
    let Ok(file) = std::env::var("STORE_UNDER_FIRE") else { return };
    let mut store = Sqlite::open(file.as_ref()).await.unwrap();
    for pair in 0.. {
        let seq = 2 * pair + 1;
        let rows = [row("a", seq, 100 + seq, Some(0)), row("a", seq + 1, 101 + seq, Some(0))];
        assert_eq!(store.persist(batch(rows)).await, Written::Durable);
        use std::io::Write as _;
        writeln!(std::io::stderr(), "durable {}", seq + 1).unwrap();
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_batch_survives_kill_9_whole_or_not_at_all() {
    use std::io::BufRead as _;
    let file = scratch("store-killed").join("rows.db");
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["writes_until_it_is_killed", "--exact", "--nocapture"])
        .env("STORE_UNDER_FIRE", &file)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufReader::new(child.stderr.take().unwrap()).lines();
    let told =
        lines.by_ref().map_while(Result::ok).filter_map(|line| line.strip_prefix("durable ")?.parse().ok());
    let told: u64 = told.take(20).last().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let rest = lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("durable ")?.parse().ok());
    let told: u64 = rest.last().unwrap_or(told);
    let rows = held(&mut Sqlite::open(&file).await.unwrap()).await.rows;
    assert!(rows.len() as u64 >= told, "{} rows of {told} that were durable", rows.len());
    assert_eq!(rows.len() % 2, 0, "half a batch");
}
