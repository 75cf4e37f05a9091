//! The place of the store and the behaviour of its writer, with every limit of this crate.

use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Options {
    /// The database file; its folder also holds the locks of the processes that use it.
    pub path: PathBuf,
    /// How long the writer waits for more records before it commits a group that no caller waits for.
    pub group_delay: Duration,
    /// How many messages the writer's channel holds before senders wait.
    pub queue: usize,
}

impl Options {
    /// The default behaviour, for the database file at `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), group_delay: Duration::from_millis(10), queue: 4096 }
    }
}

/// Limit: messages in one transaction.
pub(crate) const GROUP: usize = 512;
/// Limit: how long a transaction waits for one of another process.
pub(crate) const BUSY: Duration = Duration::from_secs(5);
/// How long the writer waits before it retries the records of a failed group, unless something urgent comes.
pub(crate) const RETRY_PAUSE: Duration = Duration::from_millis(250);
/// Limit: queries that run at the same time.
pub(crate) const READERS: usize = 2;
/// Limit: rows read per query while the chain is verified, so that no snapshot stays open for long.
pub(crate) const VERIFY_STEP: i64 = 4096;
/// The page size that `limit: 0` means.
pub(crate) const PAGE_DEFAULT: u32 = 50;
/// Limit: rows in one page. An approval in a page has at most 4 KiB of arguments.
pub(crate) const PAGE_MAX: u32 = 1000;
/// Limit: bytes of a call's recorded arguments.
pub(crate) const ARGUMENTS_MAX: usize = 1 << 20;
/// Limit: bytes of an idempotency key.
pub(crate) const KEY_MAX: usize = 1024;
/// Limit: bytes of a kept result; a longer one is not kept.
pub(crate) const RESULT_MAX: usize = 16 << 20;
/// How long idempotency keys and kept results are remembered: at least a day is promised.
pub(crate) const REMEMBERED: Duration = Duration::from_secs(7 * 24 * 3600);
/// Limit: rows of one kind deleted at a time.
pub(crate) const PRUNE_STEP: i64 = 10_000;
/// How long a repetition of a request gets the undelivered outcome of the held call.
pub(crate) const JOINED_FOR: Duration = Duration::from_secs(3600);
/// How long the arguments of a held call are kept as they were sent after its end; then secrets in them are masked.
pub(crate) const UNMASKED_FOR: Duration = Duration::from_secs(24 * 3600);
/// Limit: approvals whose arguments are masked at a time; each is read and written as a whole.
pub(crate) const MASK_STEP: i64 = 500;
/// How long approvals, grants and keys are kept after their end.
pub(crate) const OVER_KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
/// Limit: bytes of the reason that a person gives.
pub(crate) const REASON_MAX: usize = 16 << 10;
/// Limit: refused decisions about one call that are recorded.
pub(crate) const REFUSALS_MAX: u32 = 100;
/// Limit: grants that are not revoked.
pub(crate) const GRANTS_MAX: u32 = 10_000;
/// Limit: valid keys.
pub(crate) const KEYS_MAX: u32 = 1000;
/// How often a running writer deletes old rows.
pub(crate) const PRUNE_EVERY: Duration = Duration::from_secs(3600);
