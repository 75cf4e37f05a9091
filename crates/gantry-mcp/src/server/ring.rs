//! What legacy clients were sent on streams, so that a stream that broke can be taken up where it was.
//!
//! Streams belong to a session, which only its own identity can find. The id of an event names the session besides the
//! stream and the place in it, so that an id of another session leads nowhere.

use super::body::{Framed, event};
use crate::limits::{REPLAY_BYTES, RETRY_MS, SESSION_STREAMS, STREAM_BYTES, STREAM_EVENTS, STREAM_KEPT};
use bytes::Bytes;
use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::{sync::Notify, time::Instant};
use uuid::Uuid;

/// The stream that belongs to no request.
pub(super) const COMMON: u64 = 0;

/// All streams of one session.
#[derive(Debug)]
pub(super) struct Streams {
    /// Tells the events of this session from those of others.
    tag: String,
    // Invariant: never held across an await.
    state: Mutex<State>,
    /// Bytes that are kept in all sessions.
    kept: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct State {
    streams: BTreeMap<u64, Stream>,
    last: u64,
    over: bool,
}

#[derive(Debug, Default)]
struct Stream {
    events: VecDeque<(u64, Bytes)>,
    bytes: usize,
    last: u64,
    ended: Option<Instant>,
    /// Who reads; a new reader takes over from the one before.
    reader: u64,
    /// The reader that is to stop when it has everything so far.
    let_go: Option<u64>,
    changed: Arc<Notify>,
}

/// A place in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) stream: u64,
    pub(super) event: u64,
}

impl Streams {
    pub(super) fn new(kept: Arc<AtomicUsize>) -> Arc<Self> {
        let tag = Uuid::new_v4().simple().to_string();
        Arc::new(Self { tag, state: Mutex::default(), kept })
    }

    /// Begins the stream of a request.
    pub(super) fn open(&self) -> u64 {
        let mut state = self.lock();
        state.last += 1;
        let id = state.last;
        self.forget_old(&mut state);
        state.streams.insert(id, Stream::default());
        id
    }

    /// Adds a message to a stream.
    pub(super) fn push(&self, stream: u64, message: &str) {
        self.add(stream, |id| event(Framed { id: Some(id), retry_ms: None, data: message }));
    }

    /// Adds an event without a message, so that the client has an id to come back with before anything is said.
    pub(super) fn prime(&self, stream: u64) {
        self.add(stream, |id| event(Framed { id: Some(id), retry_ms: Some(RETRY_MS), data: "" }));
    }

    /// Says that a stream has ended. It can still be read for a while.
    pub(super) fn end(&self, stream: u64) {
        if let Some(stream) = self.lock().streams.get_mut(&stream) {
            stream.ended = Some(Instant::now());
            stream.changed.notify_waiters();
        }
    }

    /// Ends the answer of whoever reads a stream once it has everything so far; it can be taken up again.
    pub(super) fn let_go(&self, stream: u64) {
        if let Some(stream) = self.lock().streams.get_mut(&stream) {
            stream.let_go = Some(stream.reader);
            stream.changed.notify_waiters();
        }
    }

    /// Ends everything: the session is over.
    pub(super) fn end_all(&self) {
        let mut state = self.lock();
        state.over = true;
        for (_, stream) in std::mem::take(&mut state.streams) {
            self.forget(&stream);
        }
    }

    /// Reads what follows a place, and takes over from whoever reads this stream.
    pub(super) fn read(self: &Arc<Self>, place: Place) -> Option<Reader> {
        let mut state = self.lock();
        if place.stream == COMMON && !state.over {
            state.streams.entry(COMMON).or_default();
        }
        let stream = state.streams.get_mut(&place.stream)?;
        stream.reader += 1;
        stream.changed.notify_waiters();
        let (reader, changed) = (stream.reader, Arc::clone(&stream.changed));
        drop(state);
        Some(Reader { streams: Arc::clone(self), place, reader, changed })
    }

    /// The end of a stream as it is now.
    pub(super) fn now(&self, stream: u64) -> Place {
        let event = self.lock().streams.get(&stream).map_or(0, |stream| stream.last);
        Place { stream, event }
    }

    /// The place that an event's id names; `None` if it is not one of this session.
    pub(super) fn place(&self, id: &str) -> Option<Place> {
        let (stream, event) = id.strip_prefix(&self.tag)?.strip_prefix('-')?.split_once('-')?;
        let place = Place { stream: stream.parse().ok()?, event: event.parse().ok()? };
        let known = self.lock().streams.get(&place.stream).is_some_and(|stream| place.event <= stream.last);
        known.then_some(place)
    }

    fn add(&self, stream: u64, write: impl FnOnce(fmt::Arguments<'_>) -> Bytes) {
        let mut state = self.lock();
        let state = &mut *state;
        if state.over {
            return;
        }
        let Some(stream_) = (match stream {
            COMMON => Some(state.streams.entry(COMMON).or_default()),
            other => state.streams.get_mut(&other),
        }) else {
            return;
        };
        stream_.last += 1;
        let bytes = write(format_args!("{}-{stream}-{}", self.tag, stream_.last));
        stream_.bytes += bytes.len();
        let mut kept = self.kept.fetch_add(bytes.len(), Ordering::Relaxed) + bytes.len();
        stream_.events.push_back((stream_.last, bytes));
        // The newest event always stays: it may be the answer.
        while stream_.events.len() > 1
            && (stream_.events.len() > STREAM_EVENTS || stream_.bytes > STREAM_BYTES || kept > REPLAY_BYTES)
        {
            let Some((_, oldest)) = stream_.events.pop_front() else { break };
            stream_.bytes -= oldest.len();
            kept = self.kept.fetch_sub(oldest.len(), Ordering::Relaxed) - oldest.len();
        }
        stream_.changed.notify_waiters();
    }

    /// Makes room: streams that ended long ago go, and of too many the oldest that have ended.
    fn forget_old(&self, state: &mut State) {
        let now = Instant::now();
        let mut spare = (state.streams.len() + 1).saturating_sub(SESSION_STREAMS);
        let State { streams, .. } = state;
        streams.retain(|_, stream| {
            let Some(ended) = stream.ended else { return true };
            let goes = spare > 0 || now.duration_since(ended) > STREAM_KEPT;
            if goes {
                spare = spare.saturating_sub(1);
                self.forget(stream);
            }
            !goes
        });
    }

    fn forget(&self, stream: &Stream) {
        self.kept.fetch_sub(stream.bytes, Ordering::Relaxed);
        stream.changed.notify_waiters();
    }

    /// A thread that panicked inside left the state usable: at worst a count is off.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        self.end_all();
    }
}

/// Somebody who reads a stream.
#[derive(Debug)]
pub(super) struct Reader {
    streams: Arc<Streams>,
    place: Place,
    reader: u64,
    changed: Arc<Notify>,
}

/// What a reader finds.
#[derive(Debug)]
pub(super) enum Found {
    Event(Bytes),
    NothingYet,
    End,
}

impl Reader {
    /// Looks for the next event.
    pub(super) fn look(&mut self) -> Found {
        let state = self.streams.lock();
        let Some(stream) =
            state.streams.get(&self.place.stream).filter(|stream| stream.reader == self.reader)
        else {
            return Found::End;
        };
        let next = stream.events.iter().find(|(number, _)| *number > self.place.event);
        match next {
            Some((number, bytes)) => {
                self.place.event = *number;
                Found::Event(bytes.clone())
            }
            None if stream.ended.is_some() || stream.let_go == Some(self.reader) => Found::End,
            None => Found::NothingYet,
        }
    }

    /// Waits for the next event; `None` at the end of the stream, or when somebody else reads it.
    ///
    /// Cancel-safety: nothing is lost when the future is dropped.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        loop {
            let changed = Arc::clone(&self.changed);
            let mut changed = std::pin::pin!(changed.notified());
            // Registered before looking, so that no change is missed in between.
            changed.as_mut().enable();
            match self.look() {
                Found::Event(bytes) => return Some(bytes),
                Found::End => return None,
                Found::NothingYet => changed.await,
            }
        }
    }
}
