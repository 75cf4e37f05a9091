//! The HTTP sessions of legacy clients: found by a random id, and only by the client that opened them.

use super::connection::Connection;
use super::event_log::{EventLogs, LogBudget};
use super::handler::Handler;
use super::notifications::NotificationFeed;
use crate::lock;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;
use tokio::time::Instant;
use uuid::Uuid;

/// An identity with this part of all sessions, as a divisor, makes room for itself: one that opens sessions without end
/// loses its own and not those of others.
const MAX_IDENTITY_SHARE: usize = 4;

/// The pause after a search that did not make enough room: looking at all sessions takes a millisecond.
const SEARCH_PAUSE_MS: u64 = 1000;

pub(super) struct Sessions {
    // Invariant: never held across an await; readers hold it for one look-up.
    entries: RwLock<HashMap<Uuid, Arc<HttpSession>>>,
    started: Instant,
    limit: usize,
    idle: Duration,
    /// When it may be worth while to look for streams that make room, in milliseconds since `started`.
    next_search: AtomicU64,
}

pub(super) struct HttpSession {
    pub(super) connection: Arc<Connection>,
    pub(super) logs: Arc<EventLogs>,
    /// `None` while the stream that belongs to no request is open and reads from it.
    // Invariant: never held across an await.
    feed: Mutex<Option<NotificationFeed>>,
    /// When the session was last used, in milliseconds since `started`.
    touched: AtomicU64,
}

impl Sessions {
    pub(super) fn new(limit: usize, idle: Duration) -> Self {
        let (started, next_search) = (Instant::now(), AtomicU64::new(0));
        Self { entries: RwLock::default(), started, limit: limit.max(1), idle, next_search }
    }

    /// Adds a session and returns its id, and the session that was removed to make room.
    pub(super) fn insert(
        &self,
        connection: Arc<Connection>,
        logs: Arc<EventLogs>,
        feed: NotificationFeed,
    ) -> (Uuid, Option<Arc<HttpSession>>) {
        let id = Uuid::new_v4();
        let touched = AtomicU64::new(self.now());
        let session = Arc::new(HttpSession { connection, logs, feed: Mutex::new(Some(feed)), touched });
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        let is_full = entries.len() >= self.limit;
        let candidate =
            is_full.then(|| self.eviction_candidate(&entries, &*session.connection.handler)).flatten();
        let evicted = candidate.and_then(|id| entries.remove(&id));
        entries.insert(id, session);
        (id, evicted)
    }

    /// The session that makes room for one more of this client: an unused one before one in use, and the one that was
    /// idle for longest before others.
    fn eviction_candidate(
        &self,
        entries: &HashMap<Uuid, Arc<HttpSession>>,
        handler: &dyn Handler,
    ) -> Option<Uuid> {
        let is_own = |session: &HttpSession| session.is_of(handler);
        let own = entries.values().filter(|session| is_own(session)).count();
        let has_its_share = own >= (self.limit / MAX_IDENTITY_SHARE).max(1);
        let candidates = entries.iter().filter(|(_, session)| !has_its_share || is_own(session));
        candidates
            .min_by_key(|(_, session)| (session.is_in_use(), session.touched.load(Ordering::Relaxed)))
            .map(|(id, _)| *id)
    }

    /// The session with this id, if it is alive and belongs to this client.
    pub(super) fn find(&self, id: &str, handler: &dyn Handler) -> Option<Arc<HttpSession>> {
        let id = parse(id)?;
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        let session = entries.get(&id).filter(|session| session.is_of(handler))?;
        if self.is_idle(session) {
            return None;
        }
        self.touch(session);
        Some(Arc::clone(session))
    }

    /// Removes a session, if it is alive and belongs to this client.
    pub(super) fn remove(&self, id: &str, handler: &dyn Handler) -> Option<Arc<HttpSession>> {
        let session = self.find(id, handler)?;
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        // Another request may have removed it in between; only one of them may close it.
        entries.remove(&parse(id)?).filter(|removed| Arc::ptr_eq(removed, &session))
    }

    pub(super) fn take_idle(&self) -> Vec<Arc<HttpSession>> {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        entries.extract_if(|_, session| self.is_idle(session)).map(|(_, session)| session).collect()
    }

    /// Drops streams that ended longer ago than this, in all sessions.
    pub(super) fn expire_streams(&self, kept: Duration) {
        for session in self.entries.read().unwrap_or_else(PoisonError::into_inner).values() {
            session.logs.expire(kept);
        }
    }

    /// Drops streams that have ended, in all sessions and the oldest first, if the events exceed their budget.
    pub(super) fn make_room(&self, budget: &LogBudget) {
        if !budget.is_exceeded() || self.now() < self.next_search.load(Ordering::Relaxed) {
            return;
        }
        let mut surplus = Vec::new();
        for session in self.entries.read().unwrap_or_else(PoisonError::into_inner).values() {
            let streams = session.logs.surplus().into_iter();
            surplus.extend(streams.map(|(ended, stream)| (ended, stream, Arc::clone(&session.logs))));
        }
        surplus.sort_unstable_by_key(|(ended, ..)| *ended);
        for (_, stream, logs) in surplus {
            logs.drop_surplus(stream);
            if budget.has_room() {
                return;
            }
        }
        // Clients are still to read the rest.
        self.next_search.store(self.now() + SEARCH_PAUSE_MS, Ordering::Relaxed);
    }

    pub(super) fn take_all(&self) -> Vec<Arc<HttpSession>> {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        entries.drain().map(|(_, session)| session).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub(super) fn touch(&self, session: &HttpSession) {
        session.touched.store(self.now(), Ordering::Relaxed);
    }

    fn is_idle(&self, session: &HttpSession) -> bool {
        let idle = self.now().saturating_sub(session.touched.load(Ordering::Relaxed));
        u128::from(idle) > self.idle.as_millis() && !session.is_in_use()
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl HttpSession {
    fn is_of(&self, handler: &dyn Handler) -> bool {
        self.connection.handler.is_same(handler)
    }

    /// A session with a running request or an open stream is in use, however long that takes.
    fn is_in_use(&self) -> bool {
        !self.connection.in_flight.is_empty() || self.feed().is_none()
    }

    pub(super) fn feed(&self) -> MutexGuard<'_, Option<NotificationFeed>> {
        lock(&self.feed)
    }
}

/// Reads an id in the one form that is given out.
fn parse(id: &str) -> Option<Uuid> {
    (id.len() == uuid::fmt::Simple::LENGTH).then(|| Uuid::try_parse(id).ok())?
}
