//! Errors of the store, each with what to do about it.
//!
//! The driver's own error type is kept as an opaque source, so that a second database can have the same `Error`. The type is
//! `Clone` because one failed commit is the answer to every caller of its group.

use crate::approvals::ApprovalRow;
use gantry_core::State;
use gantry_core::id::{ApprovalId, CallId};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A cause whose type stays inside this crate.
type Cause = Arc<dyn std::error::Error + Send + Sync>;

#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    #[error("cannot use {}: check that the folder exists, is writable and belongs to you", path.display())]
    Folder { path: PathBuf, source: Arc<io::Error> },
    #[error("{} is on a network file system, where SQLite can lose data: choose a local data folder", path.display())]
    NetworkFolder { path: PathBuf },
    #[error("SQLite {found} is too old: 3.51.3 or newer is needed, build with the bundled one")]
    OldSqlite { found: &'static str },
    #[error("{} is a database of another program: choose another store.url", path.display())]
    Foreign { path: PathBuf },
    #[error("{} has schema {found}, this program knows {known}: use the newer program that wrote it", path.display())]
    NewerSchema { path: PathBuf, found: i64, known: i64 },
    #[error("migration {version} of {} differs from this program's: use the program that wrote it", path.display())]
    ChangedMigration { path: PathBuf, version: i64 },
    #[error(
        "other processes of Gantry use {} with an older layout: stop them, then start again", path.display()
    )]
    OlderInUse { path: PathBuf },
    #[error("the store is damaged ({detail}): stop every process that uses it and restore a backup")]
    Corrupt { detail: String },
    /// What is written now would be lost with the files that are open.
    #[error("the database file {} was removed or replaced while Gantry runs: put it back, or restart Gantry", path.display())]
    Moved { path: PathBuf },
    #[error("the disk that holds the store is full: free space and retry")]
    Full,
    #[error("another process held the store for longer than 5 s: retry, or stop that process")]
    Busy,
    #[error("the disk that holds the store failed: check it and its permissions, then retry")]
    Disk(#[source] Cause),
    /// Something that should not happen: a statement was refused, or a thread could not be started.
    #[error("the store failed unexpectedly: retry, and report it if it stays")]
    Unexpected(#[source] Cause),
    /// The call has an entry that says it is running or has ended, so it cannot begin or end again.
    #[error("{call} is already {}: read it instead of running it again", state.as_str())]
    Taken { call: CallId, state: State },
    #[error("{call} is not in the ledger: record its intent before its outcome")]
    UnknownCall { call: CallId },
    #[error("{call} cannot end as {}: give the state in which it ended", state.as_str())]
    NotAnEnding { call: CallId, state: State },
    #[error("another process went on with this call at the same time: retry")]
    StepTaken,
    /// The approval cannot take that step from its state: another decision was first, or it has ended.
    #[error("{} is {}: it cannot take this step", row.id, row.state.as_str())]
    NotPossible { row: Box<ApprovalRow> },
    /// There is no such approval, or it ended so long ago that it was deleted.
    #[error("{approval} is not known: list the approvals to see which there are")]
    UnknownApproval { approval: ApprovalId },
    #[error("{limit} calls {what} wait already: decide or cancel some of them, then retry")]
    TooManyHeld { limit: u32, what: &'static str },
    #[error("{limit} grants hold already: revoke some of them with `gantry approvals revoke`, then retry")]
    TooManyGrants { limit: u32 },
    #[error("{limit} keys hold already: revoke some of them, then retry")]
    TooManyKeys { limit: u32 },
    #[error("another key is called \"{name}\": choose another name, or revoke that key first")]
    NameTaken { name: Arc<str> },
    #[error(
        "the name \"{name}\" was used by another key, whose calls are on record under it: choose another name"
    )]
    NameUsed { name: Arc<str> },
    #[error("{what} has {bytes} bytes, the store takes {limit}: shorten it")]
    TooLarge { what: &'static str, bytes: usize, limit: usize },
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

    /// Whether the transaction failed, and with it every other record of its group. The other errors concern one caller.
    pub(crate) fn aborts_group(&self) -> bool {
        !matches!(
            self,
            Self::Taken { .. }
                | Self::UnknownCall { .. }
                | Self::NotAnEnding { .. }
                | Self::StepTaken
                | Self::NotPossible { .. }
                | Self::UnknownApproval { .. }
                | Self::TooManyHeld { .. }
                | Self::TooManyGrants { .. }
                | Self::TooManyKeys { .. }
                | Self::NameTaken { .. }
                | Self::NameUsed { .. }
                | Self::TooLarge { .. }
        )
    }
}
