//! What all sessions together keep so that streams can be taken up again: how much that is, and what goes first when it
//! is too much.

use super::ring::Streams;
use crate::limits::STREAM_KEPT;
use std::{
    collections::BTreeMap,
    sync::{
        Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};
use tokio::time::Instant;

/// The account of all sessions.
#[derive(Debug)]
pub(super) struct Replay {
    bytes: AtomicUsize,
    limit: usize,
    // Order: a session may hold its own lock when it takes this one, never the other way round.
    ended: Mutex<Ended>,
}

/// The streams that have ended, by the order in which they did. Limit: each session bounds its own.
#[derive(Debug, Default)]
struct Ended {
    streams: BTreeMap<u64, Old>,
    last: u64,
}

/// A stream that has ended.
#[derive(Debug)]
struct Old {
    at: Instant,
    session: Weak<Streams>,
    stream: u64,
}

impl Replay {
    /// An account for at most so many bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: AtomicUsize::new(0), limit, ended: Mutex::default() }
    }

    /// Bytes that are kept.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    pub(super) fn is_over(&self) -> bool {
        self.bytes() > self.limit
    }

    pub(super) fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Relaxed);
    }

    pub(super) fn remove(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Relaxed);
    }

    /// Notes that a stream has ended, and returns its place among those that have.
    pub(super) fn ended(&self, session: Weak<Streams>, stream: u64) -> u64 {
        let mut ended = self.lock();
        ended.last += 1;
        let place = ended.last;
        ended.streams.insert(place, Old { at: Instant::now(), session, stream });
        place
    }

    /// Notes that a stream that has ended is not kept any more.
    pub(super) fn forget(&self, place: u64) {
        self.lock().streams.remove(&place);
    }

    /// Lets go of streams that ended long ago.
    pub(super) fn sweep(&self) {
        let now = Instant::now();
        while self.drop_oldest(|old| now.duration_since(old.at) > STREAM_KEPT) {}
    }

    /// Lets go of streams that have ended, whosever they are, as long as too much is kept.
    pub(super) fn make_room(&self) {
        while self.is_over() && self.drop_oldest(|_| true) {}
    }

    /// Lets go of the stream that ended first, if it may go.
    fn drop_oldest(&self, may_go: impl FnOnce(&Old) -> bool) -> bool {
        let mut ended = self.lock();
        let oldest = ended.streams.first_entry().filter(|entry| may_go(entry.get()));
        let Some(old) = oldest.map(|entry| entry.remove()) else { return false };
        drop(ended);
        if let Some(session) = old.session.upgrade() {
            session.drop_stream(old.stream);
        }
        true
    }

    /// A thread that panicked inside left the list whole: every change to it is one call.
    fn lock(&self) -> MutexGuard<'_, Ended> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
