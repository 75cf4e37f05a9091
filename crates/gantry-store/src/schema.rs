//! Opens connections with the settings the store relies on, and brings the schema to this program's version.
//!
//! A migration is never edited after it has shipped: its checksum is kept in the database, and a difference is an
//! error at open. A database that a newer program has migrated is refused, because this one cannot know what its
//! tables mean.

use crate::error::Error;
use crate::options::BUSY;
use gantry_core::digest::Digest;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// The numbered migrations; the index plus one is the version.
const MIGRATIONS: [&str; 3] = [
    include_str!("schema/0001_ledger.sql"),
    include_str!("schema/0002_approvals.sql"),
    include_str!("schema/0003_outbox.sql"),
];

/// Says in the file's header that the database is Gantry's ("GNTR").
const APPLICATION_ID: i32 = 0x474E_5452;

/// The first SQLite without the WAL-reset corruption bug.
const SQLITE_MIN: i32 = 3_051_003;

/// How long to wait between two tries to switch a busy database to WAL.
const WAL_RETRY: Duration = Duration::from_millis(20);

/// Opens the connection that writes; makes the file if there is none, and migrates it.
pub(crate) fn open_writer(path: &Path) -> Result<Connection, Error> {
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
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = Connection::open_with_flags(path, flags).map_err(Error::sqlite)?;
    conn.busy_timeout(BUSY).map_err(Error::sqlite)?;
    refuse_foreign(&conn, path)?;
    enter_wal(&conn)?;
    conn.execute_batch(
        "PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; PRAGMA trusted_schema=OFF;
         PRAGMA wal_autocheckpoint=8000; PRAGMA journal_size_limit=67108864; PRAGMA temp_store=MEMORY;",
    )
    .map_err(Error::sqlite)?;
    conn.set_prepared_statement_cache_capacity(64);
    migrate(&mut conn, path)?;
    Ok(conn)
}

/// Opens a connection that can only read.
pub(crate) fn open_reader(path: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags).map_err(Error::sqlite)?;
    conn.busy_timeout(BUSY).map_err(Error::sqlite)?;
    conn.execute_batch("PRAGMA trusted_schema=OFF; PRAGMA temp_store=MEMORY;").map_err(Error::sqlite)?;
    conn.set_prepared_statement_cache_capacity(64);
    Ok(conn)
}

/// Asks SQLite whether the file is sound; for use after an unclean stop.
pub(crate) fn quick_check(conn: &Connection) -> Result<(), Error> {
    let found: String =
        conn.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(Error::sqlite)?;
    if found == "ok" { Ok(()) } else { Err(Error::corrupt(found)) }
}

fn refuse_foreign(conn: &Connection, path: &Path) -> Result<(), Error> {
    let empty: bool = conn
        .query_row("SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)", [], |row| row.get(0))
        .map_err(Error::sqlite)?;
    // Order: the id comes with the first table, so it is read after the tables; another process may just be
    // making both.
    let id: i32 = conn.query_row("PRAGMA application_id", [], |row| row.get(0)).map_err(Error::sqlite)?;
    if empty || id == APPLICATION_ID { Ok(()) } else { Err(Error::Foreign { path: path.to_path_buf() }) }
}

/// Switches to WAL. SQLite does not wait for other connections here, so processes that open a new database at
/// the same time must try again themselves.
fn enter_wal(conn: &Connection) -> Result<(), Error> {
    let deadline = Instant::now() + BUSY;
    loop {
        let mode = conn.query_row("PRAGMA journal_mode=WAL", [], |row| row.get::<_, String>(0));
        match mode.map_err(Error::sqlite) {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => return Err(Error::corrupt(format!("it is in journal mode {mode}, not wal"))),
            Err(Error::Busy) if Instant::now() < deadline => std::thread::sleep(WAL_RETRY),
            Err(error) => return Err(error),
        }
    }
}

/// Applies the migrations that are missing, in one transaction, so that two processes cannot both do it.
fn migrate(conn: &mut Connection, path: &Path) -> Result<(), Error> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(Error::sqlite)?;
    tx.execute_batch(
        "CREATE TABLE IF NOT EXISTS migrations (version INTEGER PRIMARY KEY, checksum BLOB NOT NULL) STRICT",
    )
    .map_err(Error::sqlite)?;
    let applied: Vec<(i64, [u8; 32])> = tx
        .prepare("SELECT version, checksum FROM migrations ORDER BY version")
        .and_then(|mut query| query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
        .map_err(Error::sqlite)?;

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
    if applied.is_empty() {
        tx.pragma_update(None, "application_id", APPLICATION_ID).map_err(Error::sqlite)?;
    }
    for (version, sql) in (1_i64..).zip(MIGRATIONS).skip(applied.len()) {
        tx.execute_batch(sql).map_err(Error::sqlite)?;
        let checksum = Digest::of(sql.as_bytes());
        tx.execute("INSERT INTO migrations VALUES (?1, ?2)", (version, checksum.as_bytes()))
            .map_err(Error::sqlite)?;
    }
    tx.commit().map_err(Error::sqlite)
}
