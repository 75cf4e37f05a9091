//! The index of a workspace's files for ranked search: an SQLite file of its own, apart from the ledger.
//!
//! Nothing in it is precious. Everything can be made again from the files, so a damaged or outdated index is thrown
//! away and begun anew, and a power cut may cost it its last changes but nothing else.
//!
//! Two full-text tables share the ids of `files`: `names` (paths and defined symbols), which stays small, and `body`
//! (the words of the text). Neither keeps the text itself. All calls block; one thread may write while another reads.

mod rank;
mod vectors;

pub use rank::{Hit, Term};
pub use vectors::{Edition, Vectors};

use crate::error::Error;
use crate::options::BUSY;
use rusqlite::{CachedStatement, Connection, OpenFlags, OptionalExtension as _, Row, TransactionBehavior};
use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Says in the file's header that it is a search index of Gantry ("GNTS").
const APPLICATION_ID: i32 = 0x474E_5453;
/// Which tables, and which words in them, this program makes. Another number means another index.
const VERSION: i32 = 1;
/// Limit: the size of the file, in pages of 4 KiB: 2 GiB.
const PAGES: u32 = 512 * 1024;
/// What a connection keeps of the file in memory, in KiB.
const CACHE_KIB: u32 = 32 * 1024;

const SCHEMA: &str = "
CREATE TABLE files (
  id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE,
  size INTEGER NOT NULL, modified_ns INTEGER NOT NULL, changed_ns INTEGER NOT NULL, inode INTEGER NOT NULL
) STRICT;
CREATE VIRTUAL TABLE names USING fts5(
  path, symbols, content='', contentless_delete=1, tokenize='unicode61 remove_diacritics 0'
);
CREATE VIRTUAL TABLE body USING fts5(
  words, content='', contentless_delete=1, tokenize='unicode61 remove_diacritics 0'
);
CREATE TABLE vectors (
  id INTEGER PRIMARY KEY REFERENCES files (id) ON DELETE CASCADE, model TEXT NOT NULL, vector BLOB NOT NULL
) STRICT;
";

/// An open index.
#[derive(Debug)]
pub struct SearchIndex {
    writer: Mutex<Connection>,
    reader: Mutex<Connection>,
}

/// How a file was when it was indexed: another stamp means that it has to be read again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Its size in bytes.
    pub size: i64,
    /// When its content was changed.
    pub modified_ns: i64,
    /// When anything about it was changed.
    pub changed_ns: i64,
    /// Which file it is.
    pub inode: i64,
}

/// A file as the index has it. The texts are words with blanks between them.
#[derive(Debug, Clone, Default)]
pub struct Document {
    /// Its path relative to the workspace root.
    pub path: String,
    /// How it was when it was read.
    pub stamp: Stamp,
    /// The words of its path.
    pub names: String,
    /// The words of what it defines.
    pub symbols: String,
    /// The words of its text; nothing if it has none, which is remembered too.
    pub body: String,
}

impl SearchIndex {
    /// Opens the index, making it and its folder if there is none. One that is damaged, or of another version of this
    /// program, is thrown away first.
    ///
    /// # Errors
    /// When the folder cannot be used, or the file is a database of another program.
    pub fn open(path: &Path) -> Result<Self, Error> {
        match Self::try_open(path) {
            Err(Error::Corrupt { detail }) => {
                tracing::warn!(path = %path.display(), detail, "the search index is made anew");
                Self::discard(path)?;
                Self::try_open(path)
            }
            opened => opened,
        }
    }

    /// Throws the index at that path away.
    ///
    /// # Errors
    /// When a file of it cannot be removed.
    pub fn discard(path: &Path) -> Result<(), Error> {
        for suffix in ["", "-wal", "-shm"] {
            let mut file = path.as_os_str().to_owned();
            file.push(suffix);
            let file = PathBuf::from(file);
            match std::fs::remove_file(&file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Error::folder(&file, error));
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    fn try_open(path: &Path) -> Result<Self, Error> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.map_err(|source| Error::folder(folder, source))?;
        }
        // SQLite would make the file with the umask's mode; the files beside it copy the mode of this one.
        let made = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
        made.map_err(|source| Error::folder(path, source))?;
        let mut writer = connect(path)?;
        prepare(&mut writer, path)?;
        let reader = connect(path)?;
        Ok(Self { writer: Mutex::new(writer), reader: Mutex::new(reader) })
    }

    /// What is indexed.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn stamps(&self) -> Result<Vec<(String, Stamp)>, Error> {
        let reader = self.reader();
        let mut query = cached(&reader, "SELECT path, size, modified_ns, changed_ns, inode FROM files")?;
        let rows = query.query_map([], |row| Ok((row.get(0)?, stamp(row)?))).map_err(Error::sqlite)?;
        rows.collect::<Result<_, _>>().map_err(Error::sqlite)
    }

    /// Takes documents in, in place of what was known of the same paths, and forgets the paths that are gone; all of
    /// it or nothing.
    ///
    /// # Errors
    /// When the index cannot be written, or is full.
    pub fn apply(&self, documents: &[Document], gone: &[String]) -> Result<(), Error> {
        let mut writer = self.writer();
        let tx = writer.transaction_with_behavior(TransactionBehavior::Immediate).map_err(Error::sqlite)?;
        for path in gone {
            forget(&tx, path)?;
        }
        for document in documents {
            take_in(&tx, document)?;
        }
        tx.commit().map_err(Error::sqlite)
    }

    /// Merges what many small changes have left behind, which makes queries faster. Worth it after many documents.
    ///
    /// # Errors
    /// When the index cannot be written.
    pub fn compact(&self) -> Result<(), Error> {
        let merged = self.writer().execute_batch(
            "INSERT INTO names(names) VALUES('optimize'); INSERT INTO body(body) VALUES('optimize');
             PRAGMA wal_checkpoint(TRUNCATE);",
        );
        merged.map_err(Error::sqlite)
    }

    fn writer(&self) -> MutexGuard<'_, Connection> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reader(&self) -> MutexGuard<'_, Connection> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn connect(path: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags).map_err(Error::sqlite)?;
    conn.busy_timeout(BUSY).map_err(Error::sqlite)?;
    conn.execute_batch(&format!(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON; PRAGMA trusted_schema=OFF;
         PRAGMA temp_store=MEMORY; PRAGMA cache_size=-{CACHE_KIB}; PRAGMA max_page_count={PAGES};
         PRAGMA journal_size_limit=67108864;"
    ))
    .map_err(Error::sqlite)?;
    conn.set_prepared_statement_cache_capacity(32);
    Ok(conn)
}

/// Makes the tables, unless they are there.
fn prepare(conn: &mut Connection, path: &Path) -> Result<(), Error> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(Error::sqlite)?;
    let number = |sql| tx.query_row(sql, [], |row| row.get::<_, i32>(0)).map_err(Error::sqlite);
    let n_tables = number("SELECT count(*) FROM sqlite_schema")?;
    let (id, version) = (number("PRAGMA application_id")?, number("PRAGMA user_version")?);
    if n_tables > 0 {
        return match (id, version) {
            (APPLICATION_ID, VERSION) => Ok(()),
            (APPLICATION_ID, _) => Err(Error::corrupt(format!("it has version {version}, not {VERSION}"))),
            _ => Err(Error::Foreign { path: path.to_path_buf() }),
        };
    }
    tx.pragma_update(None, "application_id", APPLICATION_ID).map_err(Error::sqlite)?;
    tx.pragma_update(None, "user_version", VERSION).map_err(Error::sqlite)?;
    tx.execute_batch(SCHEMA).map_err(Error::sqlite)?;
    tx.commit().map_err(Error::sqlite)
}

fn take_in(conn: &Connection, document: &Document) -> Result<(), Error> {
    let Document { path, stamp, names, symbols, body } = document;
    let known: Option<i64> = id_of(conn, path)?;
    if let Some(id) = known {
        forget_words(conn, id)?;
    }
    let id: i64 = cached(
        conn,
        "INSERT INTO files (id, path, size, modified_ns, changed_ns, inode) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (path) DO UPDATE SET size=?3, modified_ns=?4, changed_ns=?5, inode=?6 RETURNING id",
    )?
    .query_row((known, path, stamp.size, stamp.modified_ns, stamp.changed_ns, stamp.inode), |row| row.get(0))
    .map_err(Error::sqlite)?;
    if body.is_empty() {
        return Ok(());
    }
    let named = cached(conn, "INSERT INTO names (rowid, path, symbols) VALUES (?1, ?2, ?3)")?
        .execute((id, names, symbols));
    named.map_err(Error::sqlite)?;
    let said = cached(conn, "INSERT INTO body (rowid, words) VALUES (?1, ?2)")?.execute((id, body));
    said.map_err(Error::sqlite).map(drop)
}

fn forget(conn: &Connection, path: &str) -> Result<(), Error> {
    let Some(id) = id_of(conn, path)? else { return Ok(()) };
    forget_words(conn, id)?;
    cached(conn, "DELETE FROM files WHERE id = ?1")?.execute([id]).map_err(Error::sqlite).map(drop)
}

fn forget_words(conn: &Connection, id: i64) -> Result<(), Error> {
    for sql in [
        "DELETE FROM names WHERE rowid = ?1",
        "DELETE FROM body WHERE rowid = ?1",
        "DELETE FROM vectors WHERE id = ?1",
    ] {
        cached(conn, sql)?.execute([id]).map_err(Error::sqlite)?;
    }
    Ok(())
}

fn id_of(conn: &Connection, path: &str) -> Result<Option<i64>, Error> {
    let mut query = cached(conn, "SELECT id FROM files WHERE path = ?1")?;
    query.query_row([path], |row| row.get(0)).optional().map_err(Error::sqlite)
}

/// The columns from the second to the fifth, as `stamps` selects them.
fn stamp(row: &Row<'_>) -> rusqlite::Result<Stamp> {
    Ok(Stamp { size: row.get(1)?, modified_ns: row.get(2)?, changed_ns: row.get(3)?, inode: row.get(4)? })
}

fn cached<'a>(conn: &'a Connection, sql: &str) -> Result<CachedStatement<'a>, Error> {
    conn.prepare_cached(sql).map_err(Error::sqlite)
}

#[cfg(test)]
mod tests;
