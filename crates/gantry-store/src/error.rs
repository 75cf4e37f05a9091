//! What can go wrong with the store, each said with what to do about it.
//!
//! The driver's own error type stays inside: it is kept as an opaque source, so that a second database can stand
//! behind the same `Error`. The type is `Clone` because one failed commit is answered to every waiter of its group.

use crate::row::State;
use gantry_core::id::{ApprovalId, CallId};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A cause whose type is nobody's business outside this crate.
type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// Why the store could not do what it was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The data folder, the database file or a lock file cannot be made or read.
    #[error("cannot use {}: check that the folder exists, is writable and belongs to you", path.display())]
    Folder {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// The data folder lies on a file system whose locks cannot be trusted.
    #[error("{} is on a network file system, where SQLite can lose data: choose a local data folder", path.display())]
    NetworkFolder {
        /// The data folder.
        path: PathBuf,
    },
    /// The linked SQLite has a known corruption bug.
    #[error("SQLite {found} is too old: 3.51.3 or newer is needed, build with the bundled one")]
    OldSqlite {
        /// The version that is linked.
        found: &'static str,
    },
    /// The file is a database of some other program.
    #[error("{} is a database of another program: choose another store.url", path.display())]
    Foreign {
        /// The database file.
        path: PathBuf,
    },
    /// A newer Gantry has written this database.
    #[error("{} has schema {found}, this program knows {known}: use the newer program that wrote it", path.display())]
    NewerSchema {
        /// The database file.
        path: PathBuf,
        /// The version in the file.
        found: i64,
        /// The newest version this program knows.
        known: i64,
    },
    /// A migration that was applied is not the one this program carries.
    #[error("migration {version} of {} differs from this program's: use the program that wrote it", path.display())]
    ChangedMigration {
        /// The database file.
        path: PathBuf,
        /// Which migration.
        version: i64,
    },
    /// The database is damaged.
    #[error("the store is damaged ({detail}): stop every process that uses it and restore a backup")]
    Corrupt {
        /// What was found.
        detail: String,
    },
    /// No space is left.
    #[error("the disk that holds the store is full: free space and retry")]
    Full,
    /// Another process holds the write lock.
    #[error("another process held the store for longer than 5 s: retry, or stop that process")]
    Busy,
    /// The disk refused a read or a write.
    #[error("the disk that holds the store failed: check it and its permissions, then retry")]
    Disk(#[source] Cause),
    /// Something that should not happen: a statement was refused, or a thread could not be started.
    #[error("the store failed unexpectedly: retry, and report it if it stays")]
    Unexpected(#[source] Cause),
    /// The call has an entry that says it is running or has ended, so it cannot begin or end again.
    #[error("{call} is already {}: read it instead of running it again", state.as_str())]
    Taken {
        /// The call.
        call: CallId,
        /// Its state in the ledger.
        state: State,
    },
    /// The ledger has no entry of this call.
    #[error("{call} is not in the ledger: record its intent before its outcome")]
    UnknownCall {
        /// The call.
        call: CallId,
    },
    /// An outcome that says the call still runs or waits.
    #[error("{call} cannot end as {}: give the state in which it ended", state.as_str())]
    NotAnEnding {
        /// The call.
        call: CallId,
        /// The state that was given.
        state: State,
    },
    /// There is no such approval, or it has been over for so long that it was forgotten.
    #[error("{approval} is not known: list the approvals to see which there are")]
    UnknownApproval {
        /// The approval.
        approval: ApprovalId,
    },
    /// As many calls wait as may.
    #[error("{limit} calls {what} wait already: decide or cancel some of them, then retry")]
    TooManyHeld {
        /// How many may wait.
        limit: u32,
        /// Whose calls.
        what: &'static str,
    },
    /// As many grants hold as may.
    #[error("{limit} grants hold already: revoke some of them with `gantry approvals revoke`, then retry")]
    TooManyGrants {
        /// How many may hold.
        limit: u32,
    },
    /// As many keys hold as may.
    #[error("{limit} keys hold already: revoke some of them, then retry")]
    TooManyKeys {
        /// How many may hold.
        limit: u32,
    },
    /// Another key has the name.
    #[error("another key is called \"{name}\": choose another name, or revoke that key first")]
    NameTaken {
        /// The name.
        name: Arc<str>,
    },
    /// Another key had the name, and has called under it.
    #[error(
        "the name \"{name}\" was used by another key, whose calls are on record under it: choose another name"
    )]
    NameUsed {
        /// The name.
        name: Arc<str>,
    },
    /// A text is longer than the ledger takes.
    #[error("{what} has {bytes} bytes, the store takes {limit}: shorten it")]
    TooLarge {
        /// Which text.
        what: &'static str,
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The writer has been shut down.
    #[error("the store is closed: start the program again")]
    Closed,
}

impl Error {
    pub(crate) fn folder(path: &Path, source: io::Error) -> Self {
        Self::Folder { path: path.to_path_buf(), source: Arc::new(source) }
    }

    pub(crate) fn unexpected(source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Unexpected(Arc::new(source))
    }

    pub(crate) fn corrupt(detail: impl Into<String>) -> Self {
        Self::Corrupt { detail: detail.into() }
    }

    /// Sorts an error of the driver by what the operator can do about it.
    pub(crate) fn sqlite(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        if let rusqlite::Error::FromSqlConversionFailure(_, _, cause) = &error {
            return Self::corrupt(cause.to_string());
        }
        match error.sqlite_error_code() {
            Some(Code::DiskFull) => Self::Full,
            Some(Code::DatabaseBusy | Code::DatabaseLocked | Code::FileLockingProtocolFailed) => Self::Busy,
            Some(Code::DatabaseCorrupt | Code::NotADatabase) => Self::corrupt(error.to_string()),
            Some(Code::SystemIoFailure | Code::ReadOnly | Code::CannotOpen | Code::PermissionDenied) => {
                Self::Disk(Arc::new(error))
            }
            Some(_) | None => Self::unexpected(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi;

    #[test]
    fn a_driver_error_says_what_to_do() {
        let said =
            |code| Error::sqlite(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)).to_string();
        assert!(said(ffi::SQLITE_FULL).contains("free space and retry"));
        assert!(said(ffi::SQLITE_BUSY_SNAPSHOT).contains("another process"));
        assert!(said(ffi::SQLITE_IOERR_WRITE).contains("check it"));
        assert!(said(ffi::SQLITE_NOTADB).contains("restore a backup"));
    }
}
