//! SQLite behind the seam: opening and migrating a database, connections, transactions and rows, and what the driver's
//! errors mean for the operator.
//!
//! A migration is never edited after it has shipped: its checksum is kept in the database, and a difference is an
//! error at open. A database that a newer program has migrated is refused, because this one cannot know what its
//! tables mean. For the same reason a migration waits until no process has the older tables in use.

#[cfg(test)]
mod tests;

use super::{Column, Query, Statement, Value};
use crate::error::Error;
use crate::options::BUSY;
use gantry_core::digest::Digest;
use gantry_core::truncate::truncate;
use rusqlite::config::DbConfig;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{
    CachedStatement, Connection as Driver, ErrorCode, OpenFlags, TransactionBehavior, params_from_iter,
};
use std::borrow::Cow;
use std::cell::Cell;
use std::fs::OpenOptions;
use std::ops::Deref;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The numbered migrations; the index plus one is the version.
const MIGRATIONS: [&str; 5] = [
    include_str!("../../migrations/sqlite/0001_ledger.sql"),
    include_str!("../../migrations/sqlite/0002_approvals.sql"),
    include_str!("../../migrations/sqlite/0003_outbox.sql"),
    include_str!("../../migrations/sqlite/0004_chains.sql"),
    include_str!("../../migrations/sqlite/0005_waiting.sql"),
];

/// Limit: statements that a connection keeps prepared; more than there are.
const PREPARED: usize = 128;

/// Says in the file's header that the database is Gantry's ("GNTR").
const APPLICATION_ID: i32 = 0x474E_5452;

/// The first SQLite without the WAL-reset corruption bug.
const SQLITE_MIN: i32 = 3_051_003;

/// How long to wait between two tries to switch a busy database to WAL.
const WAL_RETRY: Duration = Duration::from_millis(20);

/// Limit: bytes of a damaged value that an error shows.
const SHOWN_BYTES: usize = 100;

/// The files of an open database and the inodes that they had when it was opened.
#[derive(Debug)]
pub(crate) struct Place([(PathBuf, Option<(u64, u64)>); 2]);

impl Place {
    /// The database and its log, while a connection that writes is open: SQLite keeps the log as long as that is.
    pub(crate) fn of(path: &Path) -> Self {
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        Self([path.to_path_buf(), log.into()].map(|file| (file.clone(), inode(&file))))
    }

    /// Whether what is open still lies at its path. Otherwise SQLite would go on writing to files that no later start reads.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let moved = self.0.iter().find(|(file, opened)| opened.is_none() || inode(file) != *opened);
        moved.map_or(Ok(()), |(file, _)| Err(Error::Moved { path: file.clone() }))
    }
}

/// The device and the inode of what lies at a path. Asked by name: closing a descriptor of the file would end SQLite's locks.
fn inode(path: &Path) -> Option<(u64, u64)> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

/// A connection. Statements are prepared once for each.
#[derive(Debug)]
pub(crate) struct Connection {
    driver: Driver,
    n_changed: Cell<u64>,
}

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

    pub(crate) fn open_reader(path: &Path) -> Result<Self, Error> {
        open(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map(Self::new)
    }

    /// Asks SQLite whether the file is sound; for use after an unclean stop.
    pub(crate) fn quick_check(&self) -> Result<(), Error> {
        let found: String =
            self.driver.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(sqlite_error)?;
        if found == "ok" { Ok(()) } else { Err(Error::corrupt(found)) }
    }

    fn new(driver: Driver) -> Self {
        Self { driver, n_changed: Cell::new(0) }
    }

    /// Begins a transaction that writes: it waits until no other process has one.
    pub(crate) fn write(&mut self) -> Result<Transaction<'_>, Error> {
        self.transaction(TransactionBehavior::Immediate)
    }

    /// Begins a transaction that reads, so that all statements see the same moment.
    pub(crate) fn snapshot(&self) -> Result<Transaction<'_>, Error> {
        self.transaction(TransactionBehavior::Deferred)
    }

    fn transaction(&self, behavior: TransactionBehavior) -> Result<Transaction<'_>, Error> {
        let driver = rusqlite::Transaction::new_unchecked(&self.driver, behavior).map_err(sqlite_error)?;
        Ok(Transaction { connection: self, driver })
    }

    /// A statement that changes rows, looked up once for any number of runs.
    pub(crate) fn prepare(&self, statement: Statement) -> Result<Prepared<'_>, Error> {
        let driver = self.driver.prepare_cached(statement.0).map_err(sqlite_error)?;
        Ok(Prepared { connection: self, driver })
    }

    /// Runs a statement that changes rows. Returns how many.
    pub(crate) fn execute(&self, statement: Statement, values: &[Value<'_>]) -> Result<u64, Error> {
        self.prepare(statement)?.execute(values)
    }

    /// How many rows this connection has changed, or tried to.
    pub(crate) fn n_changed(&self) -> u64 {
        self.n_changed.get()
    }

    pub(crate) fn all<T>(
        &self,
        statement: Statement,
        values: &[Value<'_>],
        read: fn(&mut Row<'_>) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        self.collect(statement.0, values, read)
    }

    pub(crate) fn first<T>(
        &self,
        statement: Statement,
        values: &[Value<'_>],
        read: fn(&mut Row<'_>) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let mut found = None;
        self.each(statement.0, values, |row| {
            found = Some(read(row)?);
            Ok(false)
        })?;
        Ok(found)
    }

    pub(crate) fn list<T>(
        &self,
        query: Query<'_>,
        limit: u32,
        read: fn(&mut Row<'_>) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let (sql, values) = query.finish(limit);
        self.collect(&sql, &values, read)
    }

    /// Hands over one row after the other, for as long as `visit` returns true.
    pub(crate) fn visit(
        &self,
        statement: Statement,
        values: &[Value<'_>],
        visit: impl FnMut(&mut Row<'_>) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        self.each(statement.0, values, visit)
    }

    /// Moves the log into the database file and closes it.
    pub(crate) fn close(self) -> Result<(), Error> {
        let emptied = self.driver.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        emptied.and(self.driver.close().map_err(|(_, error)| error)).map_err(sqlite_error)
    }

    fn collect<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: fn(&mut Row<'_>) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let mut found = Vec::new();
        self.each(sql, values, |row| {
            found.push(read(row)?);
            Ok(true)
        })?;
        Ok(found)
    }

    fn each(
        &self,
        sql: &str,
        values: &[Value<'_>],
        mut visit: impl FnMut(&mut Row<'_>) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let mut statement = self.driver.prepare_cached(sql).map_err(sqlite_error)?;
        let mut rows = statement.query(params_from_iter(values)).map_err(sqlite_error)?;
        while let Some(driver) = rows.next().map_err(sqlite_error)? {
            if !visit(&mut Row { driver, next: 0 })? {
                break;
            }
        }
        Ok(())
    }
}

/// A statement that changes rows.
pub(crate) struct Prepared<'a> {
    connection: &'a Connection,
    driver: CachedStatement<'a>,
}

impl Prepared<'_> {
    /// Runs it. Returns how many rows it has changed.
    pub(crate) fn execute<'v>(
        &mut self,
        values: impl IntoIterator<Item = &'v Value<'v>>,
    ) -> Result<u64, Error> {
        let n_rows = self.driver.execute(params_from_iter(values)).map(|n_rows| n_rows as u64);
        let n_changed = &self.connection.n_changed;
        // A statement that failed may have changed a part.
        n_changed.set(n_changed.get() + *n_rows.as_ref().unwrap_or(&1));
        n_rows.map_err(sqlite_error)
    }
}

/// A transaction, which is undone unless it is committed.
#[derive(Debug)]
pub(crate) struct Transaction<'a> {
    connection: &'a Connection,
    driver: rusqlite::Transaction<'a>,
}

impl Transaction<'_> {
    pub(crate) fn commit(self) -> Result<(), Error> {
        self.driver.commit().map_err(sqlite_error)
    }
}

impl Deref for Transaction<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
    }
}

/// A row, whose columns are read in their order.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    driver: &'a rusqlite::Row<'a>,
    next: usize,
}

impl<'a> Row<'a> {
    /// The value of the next column, as it is.
    pub(crate) fn value(&mut self) -> Result<Value<'a>, Error> {
        let value = self.driver.get_ref(self.next).map_err(sqlite_error)?;
        self.next += 1;
        match value {
            ValueRef::Null => Ok(Value::Null),
            ValueRef::Integer(number) => Ok(Value::Number(number)),
            ValueRef::Text(text) => std::str::from_utf8(text)
                .map(|text| Value::Text(Cow::Borrowed(text)))
                .map_err(|_invalid| Error::corrupt("a text that is not UTF-8")),
            ValueRef::Blob(bytes) => Ok(Value::Bytes(bytes)),
            ValueRef::Real(_) => Err(Error::corrupt("a column holds a fraction")),
        }
    }

    pub(crate) fn take<T: Column>(&mut self) -> Result<T, Error> {
        let value = self.value()?;
        T::parse(value.clone())
            .ok_or_else(|| Error::corrupt(truncate(&format!("a column holds {value:?}"), SHOWN_BYTES)))
    }
}

impl rusqlite::ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Number(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// Sorts an error of the driver by what the operator can do about it.
fn sqlite_error(error: rusqlite::Error) -> Error {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => Error::Full,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed) => {
            Error::Busy
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Error::corrupt(error.to_string()),
        Some(
            ErrorCode::SystemIoFailure
            | ErrorCode::ReadOnly
            | ErrorCode::CannotOpen
            | ErrorCode::PermissionDenied,
        ) => Error::Disk(Arc::new(error)),
        Some(_) | None => Error::unexpected(error),
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
