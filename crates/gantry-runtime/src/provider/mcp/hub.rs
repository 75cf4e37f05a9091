//! What the MCP servers of a runtime share.

use super::eras::Eras;
use super::lock::Lock;
use super::seal::Seal;
use super::wishes::Wishes;
use crate::event::Events;
use crate::servers::Change;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{Semaphore, broadcast};

/// Changes that a slow reader may fall behind before it misses some. Every session holds its reader whether it reads or
/// not, so with [`CHANGE_BYTES`] this bounds what is kept.
const CHANGES: usize = 1024;

/// What a server may say in one change. More than that is no news.
pub(super) const CHANGE_BYTES: usize = 64 * 1024;

/// The file in the data folder that remembers eras.
const ERAS: &str = "eras.json";

/// What the MCP servers of a runtime share.
#[derive(Debug)]
pub(crate) struct Hub {
    /// The project's name.
    pub(crate) project: Arc<str>,
    /// The pinned definitions.
    pub(crate) lock: Lock,
    /// The eras that the servers spoke last.
    pub(crate) eras: Arc<Eras>,
    /// Seals the ids of tasks.
    pub(crate) seal: Seal,
    /// Where events go.
    pub(crate) events: Arc<Events>,
    /// Where changes go that clients want to hear of.
    pub(crate) changes: broadcast::Sender<Change>,
    /// Lets so many servers start at once.
    pub(crate) starts: Semaphore,
    /// What sessions want to hear.
    pub(crate) wishes: Wishes,
    /// Counts servers and connections.
    numbers: AtomicU64,
}

impl Hub {
    /// Reads the lock file and the eras. Blocks.
    pub(crate) fn open(
        project: Arc<str>,
        data: &Path,
        lock_file: PathBuf,
        init_concurrency: usize,
        events: Arc<Events>,
    ) -> Self {
        Self {
            project,
            lock: Lock::open(lock_file),
            eras: Arc::new(Eras::open(data.join(ERAS))),
            seal: Seal::new(),
            events,
            changes: broadcast::channel(CHANGES).0,
            starts: Semaphore::new(init_concurrency.max(1)),
            wishes: Wishes::default(),
            numbers: AtomicU64::new(0),
        }
    }

    /// A number that no server and no connection had before.
    pub(super) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Tells those who listen; there may be nobody.
    pub(crate) fn tell(&self, change: Change) {
        self.changes.send(change).ok();
    }
}
