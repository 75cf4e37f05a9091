//! The HTTP sessions of legacy clients: found by a random id, and only by the identity that opened them.

use super::{handler::Handler, lane::Lane, news::Common, ring::Streams};
use std::{
    collections::HashMap,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;
use uuid::Uuid;

/// One identity makes room for itself once it has this part of all sessions, as a divisor: whoever opens sessions without
/// end loses its own and not those of others.
const SHARE: usize = 4;

/// All open sessions, bounded in number.
pub(super) struct Sessions<H: Handler> {
    // Invariant: never held across an await; readers hold it for one look-up.
    entries: RwLock<HashMap<Uuid, Arc<Entry<H>>>>,
    started: Instant,
    limit: usize,
    idle: Duration,
}

/// One session.
pub(super) struct Entry<H: Handler> {
    identity: H::Identity,
    pub(super) lane: Lane<H>,
    /// What the client was sent on streams.
    pub(super) streams: Arc<Streams>,
    /// The stream that belongs to no request.
    pub(super) common: Arc<Common<H::Told>>,
    /// When the session was last used, in milliseconds since `started`.
    touched: AtomicU64,
}

impl<H: Handler> Sessions<H> {
    pub(super) fn new(limit: usize, idle: Duration) -> Self {
        Self { entries: RwLock::default(), started: Instant::now(), limit: limit.max(1), idle }
    }

    /// Keeps a new session and returns its id, and the session that had to go to make room.
    pub(super) fn insert(
        &self,
        identity: H::Identity,
        lane: Lane<H>,
        streams: Arc<Streams>,
        common: Arc<Common<H::Told>>,
    ) -> (Uuid, Option<Arc<Entry<H>>>) {
        let id = Uuid::new_v4();
        let touched = AtomicU64::new(self.now());
        let entry = Arc::new(Entry { identity, lane, streams, common, touched });
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        let is_full = entries.len() >= self.limit;
        let goes = is_full.then(|| self.least_missed(&entries, &entry.identity)).flatten();
        let evicted = goes.and_then(|id| entries.remove(&id));
        entries.insert(id, entry);
        drop(entries);
        (id, evicted)
    }

    /// The session that makes room for one more of this identity: one that is not in use before one that is, and the one
    /// that was idle for longest before others.
    fn least_missed(&self, entries: &HashMap<Uuid, Arc<Entry<H>>>, identity: &H::Identity) -> Option<Uuid> {
        let is_own = |entry: &Entry<H>| entry.identity == *identity;
        let own = entries.values().filter(|entry| is_own(entry)).count();
        let has_its_share = own >= (self.limit / SHARE).max(1);
        let may_go = entries.iter().filter(|(_, entry)| !has_its_share || is_own(entry));
        may_go
            .min_by_key(|(_, entry)| (entry.is_in_use(), entry.touched.load(Ordering::Relaxed)))
            .map(|(id, _)| *id)
    }

    /// The session with this id, if it is alive and belongs to this identity.
    pub(super) fn find(&self, id: &str, identity: &H::Identity) -> Option<Arc<Entry<H>>> {
        let id = parse(id)?;
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.get(&id).filter(|entry| entry.identity == *identity && !self.is_idle(entry))?;
        self.touch(entry);
        Some(Arc::clone(entry))
    }

    /// Takes a session out, if it is alive and belongs to this identity.
    pub(super) fn remove(&self, id: &str, identity: &H::Identity) -> Option<Arc<Entry<H>>> {
        let entry = self.find(id, identity)?;
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        // Another request may have removed it in between; only one of them may close it.
        entries.remove(&parse(id)?).filter(|removed| Arc::ptr_eq(removed, &entry))
    }

    /// Takes out every session that was idle for too long.
    pub(super) fn take_idle(&self) -> Vec<Arc<Entry<H>>> {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        entries.extract_if(|_, entry| self.is_idle(entry)).map(|(_, entry)| entry).collect()
    }

    /// Takes out every session.
    pub(super) fn take_all(&self) -> Vec<Arc<Entry<H>>> {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        entries.drain().map(|(_, entry)| entry).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Notes that a session is in use.
    pub(super) fn touch(&self, entry: &Entry<H>) {
        entry.touched.store(self.now(), Ordering::Relaxed);
    }

    fn is_idle(&self, entry: &Entry<H>) -> bool {
        let idle = self.now().saturating_sub(entry.touched.load(Ordering::Relaxed));
        u128::from(idle) > self.idle.as_millis() && !entry.is_in_use()
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl<H: Handler> Entry<H> {
    /// A session with a call under way or an open stream is in use, however long that takes.
    fn is_in_use(&self) -> bool {
        !self.lane.flights.is_empty() || self.common.is_open()
    }
}

/// Reads an id in the one form that is given out.
fn parse(id: &str) -> Option<Uuid> {
    (id.len() == uuid::fmt::Simple::LENGTH).then(|| Uuid::try_parse(id).ok())?
}
