//! What the MCP servers of a runtime share.

use super::eras::Eras;
use super::lock::Lock;
use super::seal::Seal;
use super::wishes::Wishes;
use crate::commons::Told;
use crate::event::Events;
use crate::options::Options;
use crate::servers::Change;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{Semaphore, broadcast};

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
    pub(crate) events: Events,
    /// Where changes go that clients want to hear of, and the number of the runtime that they come from.
    pub(crate) changes: (u64, broadcast::Sender<Told>),
    /// Lets so many servers start at once.
    pub(crate) starts: Semaphore,
    /// What sessions want to hear.
    pub(crate) wishes: Wishes,
    /// Counts servers and connections.
    numbers: AtomicU64,
}

impl Hub {
    /// Reads the lock file and the eras. Blocks.
    pub(crate) fn open(options: &Options, events: Events, changes: (u64, broadcast::Sender<Told>)) -> Self {
        Self {
            project: Arc::clone(&options.project),
            lock: Lock::open(options.lock_file.clone()),
            eras: Arc::new(Eras::open(options.data.join(ERAS))),
            seal: Seal::new(),
            events,
            changes,
            starts: Semaphore::new(options.init_concurrency.max(1)),
            wishes: Wishes::default(),
            numbers: AtomicU64::new(0),
        }
    }

    /// For servers that are only looked at and never started. Reads nothing.
    pub(crate) fn blank(options: &Options, events: Events, changes: (u64, broadcast::Sender<Told>)) -> Self {
        let (data, lock_file) = (PathBuf::new(), PathBuf::new());
        Self::open(&Options { data, lock_file, ..options.clone() }, events, changes)
    }

    /// A number that no server and no connection had before.
    pub(super) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Tells those who listen; there may be nobody.
    pub(crate) fn tell(&self, change: Change) {
        let (from, changes) = &self.changes;
        changes.send(Told { from: *from, change }).ok();
    }
}
