//! Opens connections with the settings the store relies on, and brings the schema to this program's version.
//!
//! A migration is never edited after it has shipped: its checksum is kept in the database, and a difference is an
//! error at open. A database that a newer program has migrated is refused, because this one cannot know what its
//! tables mean. For the same reason a migration waits until no process has the older tables in use.

use super::{Connection, sqlite_error};
use crate::error::Error;
use crate::options::BUSY;
use gantry_core::digest::Digest;
use rusqlite::config::DbConfig;
use rusqlite::{Connection as Driver, OpenFlags, TransactionBehavior};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// The numbered migrations; the index plus one is the version.
pub(super) const MIGRATIONS: [&str; 5] = [
    include_str!("../../../migrations/sqlite/0001_ledger.sql"),
    include_str!("../../../migrations/sqlite/0002_approvals.sql"),
    include_str!("../../../migrations/sqlite/0003_outbox.sql"),
    include_str!("../../../migrations/sqlite/0004_chains.sql"),
    include_str!("../../../migrations/sqlite/0005_waiting.sql"),
];

/// Limit: statements that a connection keeps prepared; more than there are.
const PREPARED: usize = 128;

/// Says in the file's header that the database is Gantry's ("GNTR").
const APPLICATION_ID: i32 = 0x474E_5452;

/// The first SQLite without the WAL-reset corruption bug.
const SQLITE_MIN: i32 = 3_051_003;

/// How long to wait between two tries to switch a busy database to WAL.
const WAL_RETRY: Duration = Duration::from_millis(20);

impl Connection {
    /// Opens the connection that writes; makes the file if there is none.
    pub(crate) fn open_writer(path: &Path) -> Result<Self, Error> {
        if rusqlite::version_number() < SQLITE_MIN {
            return Err(Error::OldSqlite { found: rusqlite::version() });
        }
        // SQLite would make the file with the umask's mode; its WAL and index files copy the mode of this one.
        OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(path)
            .map_err(|source| Error::folder(path, source))?;
        let driver = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        refuse_foreign(&driver, path)?;
        enter_wal(&driver)?;
        driver
            .execute_batch(
                "PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; PRAGMA wal_autocheckpoint=8000;
                 PRAGMA journal_size_limit=67108864;",
            )
            .map_err(sqlite_error)?;
        Ok(Self::new(driver))
    }

    /// Applies the migrations that are missing, in one transaction, so that two processes cannot both do it. Those of an
    /// older database are refused if that is in use.
    pub(crate) fn migrate(
        &mut self,
        path: &Path,
        is_in_use: impl FnOnce() -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let immediate = TransactionBehavior::Immediate;
        let tx = self.driver.transaction_with_behavior(immediate).map_err(sqlite_error)?;
        tx.execute_batch(
            "CREATE TABLE IF NOT EXISTS migrations (version INTEGER PRIMARY KEY, checksum BLOB NOT NULL) STRICT",
        )
        .map_err(sqlite_error)?;
        let n_applied = applied(&tx, path)?.len();
        if n_applied == 0 {
            tx.pragma_update(None, "application_id", APPLICATION_ID).map_err(sqlite_error)?;
        } else if n_applied < MIGRATIONS.len() && is_in_use()? {
            return Err(Error::OlderInUse { path: path.to_path_buf() });
        }
        for (version, sql) in (1_i64..).zip(MIGRATIONS).skip(n_applied) {
            tx.execute_batch(sql).map_err(sqlite_error)?;
            let checksum = Digest::of(sql.as_bytes());
            tx.execute("INSERT INTO migrations VALUES (?1, ?2)", (version, checksum.as_bytes()))
                .map_err(sqlite_error)?;
        }
        tx.commit().map_err(sqlite_error)
    }

    /// Opens a connection that can only read.
    pub(crate) fn open_reader(path: &Path) -> Result<Self, Error> {
        open(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map(Self::new)
    }

    /// Asks SQLite whether the file is sound; for use after an unclean stop.
    pub(crate) fn quick_check(&self) -> Result<(), Error> {
        let found: String =
            self.driver.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(sqlite_error)?;
        if found == "ok" { Ok(()) } else { Err(Error::corrupt(found)) }
    }
}

fn open(path: &Path, access: OpenFlags) -> Result<Driver, Error> {
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let driver = Driver::open_with_flags(path, flags).map_err(sqlite_error)?;
    driver.busy_timeout(BUSY).map_err(sqlite_error)?;
    driver.execute_batch("PRAGMA trusted_schema=OFF; PRAGMA temp_store=MEMORY;").map_err(sqlite_error)?;
    // Otherwise every statement with a bound `LIMIT` is planned anew each time it runs.
    driver.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(sqlite_error)?;
    driver.set_prepared_statement_cache_capacity(PREPARED);
    Ok(driver)
}

fn refuse_foreign(driver: &Driver, path: &Path) -> Result<(), Error> {
    let empty: bool = driver
        .query_row("SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)", [], |row| row.get(0))
        .map_err(sqlite_error)?;
    // Order: the id comes with the first table, so it is read after the tables; another process may just be
    // making both.
    let id: i32 = driver.query_row("PRAGMA application_id", [], |row| row.get(0)).map_err(sqlite_error)?;
    if empty || id == APPLICATION_ID { Ok(()) } else { Err(Error::Foreign { path: path.to_path_buf() }) }
}

/// Switches to WAL. SQLite does not wait for other connections here, so processes that open a new database at
/// the same time must try again themselves.
fn enter_wal(driver: &Driver) -> Result<(), Error> {
    let deadline = Instant::now() + BUSY;
    loop {
        let mode = driver.query_row("PRAGMA journal_mode=WAL", [], |row| row.get::<_, String>(0));
        match mode.map_err(sqlite_error) {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => return Err(Error::corrupt(format!("it is in journal mode {mode}, not wal"))),
            Err(Error::Busy) if Instant::now() < deadline => std::thread::sleep(WAL_RETRY),
            Err(error) => return Err(error),
        }
    }
}

/// The versions of the migrations that were applied, each of which must be one of this program.
fn applied(driver: &Driver, path: &Path) -> Result<Vec<i64>, Error> {
    let applied: Vec<(i64, [u8; 32])> = driver
        .prepare("SELECT version, checksum FROM migrations ORDER BY version")
        .and_then(|mut query| query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
        .map_err(sqlite_error)?;

    for (version, checksum) in &applied {
        let known = usize::try_from(version - 1).ok().and_then(|index| MIGRATIONS.get(index));
        let Some(sql) = known else {
            let known = MIGRATIONS.len() as i64;
            return Err(Error::NewerSchema { path: path.to_path_buf(), found: *version, known });
        };
        if Digest::of(sql.as_bytes()).as_bytes() != checksum {
            return Err(Error::ChangedMigration { path: path.to_path_buf(), version: *version });
        }
    }
    Ok(applied.into_iter().map(|(version, _)| version).collect())
}
