//! Rows in one SQLite file, readable with any SQLite tool.
//!
//! The journal is a write-ahead log and every commit is synced (`synchronous = FULL`): a node tells others of a row
//! only when a power loss cannot take it back, and would use a number twice otherwise.
//!
//! A full disk is refused at once: SQLite tells of it before the record that commits is written. After any other
//! failure nobody knows yet whether that record will be found by the next who opens the file, so the store opens it
//! anew, which settles it, and looks. While the file cannot be opened, the answer waits, and elections pass the node
//! over.
//!
//! One node has the file to itself, by a lock on `<file>.lock` that ends with the process: two nodes started in one
//! folder would else share the default file, and call durable what one disk holds.

use std::borrow::Cow;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use firedrill_core::id::Seq;
use firedrill_core::issuance::machine::Recovered;
use firedrill_core::issuance::row::{Origin, Row, Stamped};
use firedrill_core::issuance::window::Epoch;
use firedrill_core::issuance::writer::{Batch, Written};
use firedrill_runtime::{Store, StoreError, StoreFuture};
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteRow,
    SqliteSynchronous,
};
use sqlx::{Connection as _, Row as _, SqlSafeStr as _};
use tracing::{error, warn};

/// The tables, version by version.
const MIGRATIONS: [(i64, &str, &str); 1] = [(1, "rows", include_str!("../migrations/sqlite/1_rows.sql"))];
/// SQLITE_FULL, as sqlx tells it.
const FULL: &str = "13";
/// How long to wait before a file that cannot be read is tried again.
const LOOK_PAUSE: Duration = Duration::from_millis(500);

/// The rows of one node in one file.
#[derive(Debug)]
pub struct Sqlite {
    path: PathBuf,
    pool: SqlitePool,
    /// Held until this is dropped, after the connection.
    _lock: File,
}

impl Sqlite {
    /// Opens the file, makes it if it is not there, and brings its tables up to date.
    ///
    /// # Errors
    /// [`StoreError`] says what failed on which file, and what to do.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        let lock = lock(path)?;
        let pool = connect(path).await.map_err(|why| {
            StoreError(format!(
                "cannot open {}: {why}; check the path and its rights, or name another file with --store",
                path.display()
            ))
        })?;
        let migrations = MIGRATIONS.map(|(version, name, sql)| {
            Migration::new(version, Cow::Borrowed(name), MigrationType::Simple, sql.into_sql_str(), false)
        });
        Migrator::with_migrations(migrations.into()).run(&pool).await.map_err(|why| {
            StoreError(format!(
                "{} is not a store of this version: {why}; name another file with --store, or run the version that wrote it",
                path.display()
            ))
        })?;
        Ok(Self { path: path.to_owned(), pool, _lock: lock })
    }

    /// Limits the file to so many pages, as a full disk does: for tests of the contract.
    ///
    /// # Errors
    /// What SQLite says.
    #[doc(hidden)]
    pub async fn limit_pages(&self, pages: u32) -> Result<(), sqlx::Error> {
        let pragma = format!("PRAGMA max_page_count = {pages}");
        sqlx::query(sqlx::AssertSqlSafe(pragma)).execute(&self.pool).await.map(drop)
    }

    async fn read(&self) -> Result<Recovered, StoreError> {
        let unreadable = |why: sqlx::Error| {
            StoreError(format!(
                "cannot read {}: {why}; the file may be damaged: restore it, or move it away and let the rows come from peers",
                self.path.display()
            ))
        };
        let found = sqlx::query("SELECT * FROM spine ORDER BY origin, seq").fetch_all(&self.pool).await;
        let mut rows = Vec::new();
        for found in found.map_err(unreadable)? {
            rows.push(stamped(&found).map_err(|why| StoreError(format!(
                "{}: {why}; the row was altered: restore the file, or move it away and let the rows come from peers",
                self.path.display()
            )))?);
        }
        let promised = sqlx::query("SELECT epoch FROM promised").fetch_optional(&self.pool).await;
        let promised =
            promised.map_err(unreadable)?.map(|row| Epoch(row.get::<i64, _>("epoch").cast_unsigned()));
        Ok(Recovered { rows, promised })
    }

    async fn write(&self, batch: &Batch) -> Result<(), sqlx::Error> {
        let mut connection = self.pool.acquire().await?;
        let written = Self::write_on(&mut connection, batch).await;
        if written.is_err() {
            // SQLite has rolled some failures back by itself, which the pool does not know: the next write begins on a
            // connection of its own.
            connection.close_on_drop();
        }
        written
    }

    async fn write_on(connection: &mut SqliteConnection, batch: &Batch) -> Result<(), sqlx::Error> {
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
        for row in &batch.rows {
            insert(&mut transaction, row).await?;
        }
        if let Some(Epoch(epoch)) = batch.promised {
            sqlx::query("INSERT INTO promised (one, epoch) VALUES (1, ?) ON CONFLICT (one) DO UPDATE SET epoch = excluded.epoch")
                .bind(epoch.cast_signed())
                .execute(&mut *transaction)
                .await?;
        }
        if *batch == Batch::default() {
            // A transaction without a change would not reach the disk, and could not tell whether it works.
            sqlx::query("INSERT INTO asked (one, times) VALUES (1, 1) ON CONFLICT (one) DO UPDATE SET times = times + 1")
                .execute(&mut *transaction)
                .await?;
        }
        transaction.commit().await
    }

    /// Whether all of a batch is there. An empty one is never: it asks whether the disk takes a write.
    async fn holds(&self, batch: &Batch) -> Result<bool, sqlx::Error> {
        for row in &batch.rows {
            let found = sqlx::query("SELECT 1 FROM spine WHERE origin = ? AND seq = ?")
                .bind(row.origin.to_string())
                .bind(row.seq.0.cast_signed())
                .fetch_optional(&self.pool)
                .await?;
            if found.is_none() {
                return Ok(false);
            }
        }
        let Some(promised) = batch.promised else { return Ok(!batch.rows.is_empty()) };
        let found = sqlx::query("SELECT epoch FROM promised").fetch_optional(&self.pool).await?;
        Ok(found.is_some_and(|row| row.get::<i64, _>("epoch") == promised.0.cast_signed()))
    }

    /// Finds out what became of a write that failed: opening the file anew decides which commits the log holds.
    async fn settle(&mut self, batch: &Batch) -> Result<Written, String> {
        let told = |why: sqlx::Error| why.to_string();
        self.pool.close().await;
        self.pool = connect(&self.path).await.map_err(told)?;
        if !self.holds(batch).await.map_err(told)? {
            return Ok(Written::Refused);
        }
        // What could not be synced may be in the system's cache alone, and marked clean there: it is copied into the
        // database and synced from there.
        let copied =
            sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").fetch_one(&self.pool).await.map_err(told)?;
        match copied.get::<i64, _>("busy") {
            0 => Ok(Written::Durable),
            _ => Err("another program holds the file".to_owned()),
        }
    }
}

/// Takes a file for this node alone. The lock is not on the database: closing that would end SQLite's own locks.
fn lock(path: &Path) -> Result<File, StoreError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let at = Path::new(&name).display();
    let file = File::options().create(true).append(true).open(&name).map_err(|why| {
        StoreError(format!(
            "cannot open {at}: {why}; check the path and its rights, or name another file with --store"
        ))
    })?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError(format!(
            "{} is in use by another process: stop that one, or give this node a file of its own with --store",
            path.display()
        ))),
        Err(TryLockError::Error(why)) => {
            Err(StoreError(format!("cannot lock {at}: {why}; name a file on a local disk with --store")))
        }
    }
}

/// One writer, one connection: writes are in order.
async fn connect(path: &Path) -> Result<SqlitePool, sqlx::Error> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full);
    SqlitePoolOptions::new().max_connections(1).connect_with(options).await
}

impl Store for Sqlite {
    fn load(&mut self) -> StoreFuture<'_, Result<Recovered, StoreError>> {
        Box::pin(self.read())
    }

    fn persist(&mut self, batch: Batch) -> StoreFuture<'_, Written> {
        Box::pin(async move {
            let Err(why) = self.write(&batch).await else { return Written::Durable };
            error!(file = %self.path.display(), %why, "a write failed");
            if why.as_database_error().and_then(|why| why.code()).is_some_and(|code| code == FULL) {
                return Written::Refused;
            }
            loop {
                match self.settle(&batch).await {
                    Ok(written) => return written,
                    Err(why) => {
                        warn!(file = %self.path.display(), why, "cannot find out whether a write was made");
                    }
                }
                tokio::time::sleep(LOOK_PAUSE).await;
            }
        })
    }
}

/// Inserts one row, and lets it win or lose its key.
async fn insert(connection: &mut SqliteConnection, stamped: &Stamped) -> Result<(), sqlx::Error> {
    let Stamped { origin, seq, row } = stamped;
    let (origin, seq) = (origin.to_string(), seq.0.cast_signed());
    let known = sqlx::query("SELECT 1 FROM spine WHERE origin = ? AND seq = ?")
        .bind(&origin)
        .bind(seq)
        .fetch_optional(&mut *connection)
        .await?;
    if known.is_some() {
        return Ok(());
    }
    let key = row.window.key().to_string();
    let rival = sqlx::query("SELECT * FROM spine WHERE key = ? AND superseded = 0")
        .bind(&key)
        .fetch_optional(&mut *connection)
        .await?;
    let rival = rival
        .map(|found| self::stamped(&found))
        .transpose()
        .map_err(|why| sqlx::Error::Decode(why.into()))?;
    let wins = rival.as_ref().is_none_or(|rival| precedes(stamped, rival));
    if let Some(rival) = rival.filter(|_| wins) {
        sqlx::query("UPDATE spine SET superseded = 1 WHERE origin = ? AND seq = ?")
            .bind(rival.origin.to_string())
            .bind(rival.seq.0.cast_signed())
            .execute(&mut *connection)
            .await?;
    }
    sqlx::query(
        "INSERT INTO spine (origin, seq, key, \"window\", from_window, elapsed, rate, amount, phase, genesis_pegged, \
         epoch, issuer, superseded) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(origin)
    .bind(seq)
    .bind(key)
    .bind(row.window.0.cast_signed())
    .bind(row.from_window.0.cast_signed())
    .bind(row.elapsed.cast_signed())
    .bind(row.rate.to_string())
    .bind(row.amount().to_string())
    .bind(row.phase.to_string())
    .bind(row.genesis_pegged)
    .bind(row.epoch().map(|epoch| epoch.0.cast_signed()))
    .bind(row.issuer().map(|issuer| issuer.as_str().to_owned()))
    .bind(!wins)
    .execute(connection)
    .await
    .map(drop)
}

/// Which of two rows of one key counts; of equal ones that of the lower origin and number, as in memory.
fn precedes(one: &Stamped, other: &Stamped) -> bool {
    let stamps = || (&one.origin, one.seq).cmp(&(&other.origin, other.seq));
    one.row.precedence(&other.row).then_with(stamps).is_lt()
}

/// A row as the file tells it, checked like one that came over the wire.
fn stamped(found: &SqliteRow) -> Result<Stamped, String> {
    let text = |column: &str| found.try_get::<String, _>(column).map_err(|why| why.to_string());
    let number = |column: &str| found.try_get::<i64, _>(column).map_err(|why| why.to_string());
    let maybe = |column: &str| found.try_get::<Option<i64>, _>(column).map_err(|why| why.to_string());
    let (origin, seq) = (text("origin")?, number("seq")?);
    let at = |why: &dyn std::fmt::Display| format!("row {seq} of {origin}: {why}");
    let mut told = serde_json::json!({
        "key": text("key")?,
        "window": number("window")?.cast_unsigned(),
        "from_window": number("from_window")?.cast_unsigned(),
        "elapsed": number("elapsed")?.cast_unsigned(),
        "rate": text("rate")?,
        "amount": text("amount")?,
        "phase": text("phase")?,
        "genesis_pegged": number("genesis_pegged")? != 0,
    });
    if let Some(epoch) = maybe("epoch")? {
        told["epoch"] = epoch.cast_unsigned().into();
    }
    if let Some(issuer) = found.try_get::<Option<String>, _>("issuer").map_err(|why| why.to_string())? {
        told["issuer"] = issuer.into();
    }
    let row: Row = serde_json::from_value(told).map_err(|why| at(&why))?;
    let origin: Origin = origin.parse().map_err(|why| at(&why))?;
    Ok(Stamped { origin, seq: Seq(seq.cast_unsigned()), row: Arc::new(row) })
}

#[cfg(test)]
mod tests {
    use firedrill_core::id::NodeId;

    use super::*;

    fn batch(seq: u64, promised: Option<u64>) -> Batch {
        let row = serde_json::json!({
            "key": "zeq-issuance-v1:w9", "window": 9, "from_window": 8, "elapsed": 1, "rate": "1", "amount": "1",
            "phase": "0", "genesis_pegged": true,
        });
        let node = NodeId::new("a").unwrap();
        let origin = Origin { node, boot: firedrill_core::id::Incarnation(1) };
        let row = Stamped { origin, seq: Seq(seq), row: Arc::new(serde_json::from_value(row).unwrap()) };
        Batch { rows: vec![row], promised: promised.map(Epoch) }
    }

    #[tokio::test]
    async fn a_write_of_unknown_outcome_is_durable_when_all_of_it_is_found_and_refused_otherwise() {
        let dir = std::env::temp_dir().join(format!("firedrill-settle-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let mut store = Sqlite::open(&dir.join("rows.db")).await.unwrap();
        let written = batch(1, Some(4));
        assert_eq!(store.settle(&written).await, Ok(Written::Refused));
        store.write(&written).await.unwrap();
        assert_eq!(store.settle(&written).await, Ok(Written::Durable));

        let mut more = batch(2, None);
        more.rows.extend(written.rows.clone());
        assert_eq!(store.settle(&more).await, Ok(Written::Refused), "a row of it was there before");
        assert_eq!(store.settle(&batch(1, Some(5))).await, Ok(Written::Refused), "the promise is not there");
        assert_eq!(
            store.settle(&Batch::default()).await,
            Ok(Written::Refused),
            "nothing proves that it works"
        );
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
