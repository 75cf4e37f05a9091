//! What legacy clients were sent on streams, so that a stream that broke can be taken up where it was.
//!
//! Streams belong to a session, which only its own identity can find. The id of an event names the session besides the
//! stream and the place in it, so that an id of another session leads nowhere.
//!
//! What a reader has had is kept for those who come back, as far as there is room. What it has not had yet, and somebody
//! waits for, is kept as long as its stream goes on, whatever others need.

use super::{
    body::{Framed, event},
    outbox::Care,
    presence::{Attending, Presence},
    replay::Replay,
};
use crate::limits::{RETRY_MS, SESSION_STREAMS, STREAM_BYTES, STREAM_EVENTS};
use bytes::Bytes;
use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::Notify;
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
    /// What is kept in all sessions.
    replay: Arc<Replay>,
}

#[derive(Debug, Default)]
struct State {
    streams: BTreeMap<u64, Stream>,
    last: u64,
    over: bool,
}

#[derive(Debug, Default)]
struct Stream {
    events: VecDeque<Event>,
    bytes: usize,
    last: u64,
    /// The last event that the reader has had.
    had: u64,
    /// Its place among the streams that have ended.
    ended: Option<u64>,
    /// Who reads; a new reader takes over from the one before.
    reader: u64,
    /// The reader that is to stop when it has everything so far.
    let_go: Option<u64>,
    changed: Arc<Notify>,
    /// Who reads is there for the request that it belongs to.
    presence: Option<Arc<Presence>>,
}

#[derive(Debug)]
struct Event {
    number: u64,
    bytes: Bytes,
    care: Care,
}

/// A place in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) stream: u64,
    pub(super) event: u64,
}

impl Streams {
    pub(super) fn new(replay: Arc<Replay>) -> Arc<Self> {
        let tag = Uuid::new_v4().simple().to_string();
        Arc::new(Self { tag, state: Mutex::default(), replay })
    }

    /// Begins the stream of a request. From now on those who read it are there for the request.
    pub(super) fn open(&self, presence: Option<Arc<Presence>>) -> u64 {
        let mut state = self.lock();
        state.last += 1;
        let id = state.last;
        self.make_room(&mut state);
        state.streams.insert(id, Stream { presence, ..Stream::default() });
        id
    }

    /// Adds a message to a stream.
    pub(super) fn push(&self, stream: u64, message: &str, care: Care) {
        self.add(stream, care, |id| event(Framed { id: Some(id), retry_ms: None, data: message }));
    }

    /// Adds an event without a message, so that the client has an id to come back with before anything is said.
    pub(super) fn prime(&self, stream: u64) {
        let primer =
            |id: fmt::Arguments<'_>| event(Framed { id: Some(id), retry_ms: Some(RETRY_MS), data: "" });
        self.add(stream, Care::MayDrop, primer);
    }

    /// Says that a stream has ended. It can still be read for a while.
    pub(super) fn end(self: &Arc<Self>, stream: u64) {
        if let Some(ending) = self.lock().streams.get_mut(&stream).filter(|stream| stream.ended.is_none()) {
            ending.ended = Some(self.replay.ended(Arc::downgrade(self), stream));
            ending.changed.notify_waiters();
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
        stream.had = place.event;
        stream.changed.notify_waiters();
        let (reader, changed) = (stream.reader, Arc::clone(&stream.changed));
        let here = stream.presence.as_ref().map(Attending::new);
        drop(state);
        Some(Reader { streams: Arc::clone(self), place, reader, changed, _here: here })
    }

    /// The end of a stream as it is now.
    pub(super) fn now(&self, stream: u64) -> Place {
        let event = self.lock().streams.get(&stream).map_or(0, |stream| stream.last);
        Place { stream, event }
    }

    /// The place that an event's id names; `None` if it is not one of this session, or if the answer that should follow
    /// is not kept any more.
    pub(super) fn place(&self, id: &str) -> Option<Place> {
        let (stream, event) = id.strip_prefix(&self.tag)?.strip_prefix('-')?.split_once('-')?;
        let place = Place { stream: stream.parse().ok()?, event: event.parse().ok()? };
        let known = self.lock().streams.get(&place.stream).is_some_and(|stream| stream.leads_on(place.event));
        known.then_some(place)
    }

    /// Lets go of a stream.
    pub(super) fn drop_stream(&self, stream: u64) {
        if let Some(stream) = self.lock().streams.remove(&stream) {
            self.forget(&stream);
        }
    }

    fn add(&self, to: u64, care: Care, write: impl FnOnce(fmt::Arguments<'_>) -> Bytes) {
        let mut state = self.lock();
        if state.over {
            return;
        }
        let stream = match to {
            COMMON => Some(state.streams.entry(COMMON).or_default()),
            other => state.streams.get_mut(&other),
        };
        let Some(stream) = stream else { return };
        stream.last += 1;
        let (number, bytes) = (stream.last, write(format_args!("{}-{to}-{}", self.tag, stream.last)));
        stream.bytes += bytes.len();
        self.replay.add(bytes.len());
        stream.events.push_back(Event { number, bytes, care });
        stream.trim(&self.replay, Stream::is_full);
        stream.changed.notify_waiters();
        drop(state);
        if !self.replay.is_over() {
            return;
        }
        // Order: not with the own lock held, because the room may be found in any session.
        self.replay.make_room();
        if let Some(stream) = self.lock().streams.get_mut(&to) {
            stream.trim(&self.replay, |_| self.replay.is_over());
        }
    }

    /// Makes room for one more stream: of too many, the oldest that have ended go.
    fn make_room(&self, state: &mut State) {
        let spare = (state.streams.len() + 1).saturating_sub(SESSION_STREAMS);
        let ended = state.streams.iter().filter(|(_, stream)| stream.ended.is_some());
        let old: Vec<u64> = ended.map(|(id, _)| *id).take(spare).collect();
        for id in old {
            if let Some(stream) = state.streams.remove(&id) {
                self.forget(&stream);
            }
        }
    }

    fn forget(&self, stream: &Stream) {
        self.replay.remove(stream.bytes);
        if let Some(place) = stream.ended {
            self.replay.forget(place);
        }
        stream.changed.notify_waiters();
    }

    /// A thread that panicked inside left the state usable: at worst a count is off.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stream {
    /// Lets go of events, the oldest first, as long as there is too much.
    fn trim(&mut self, replay: &Replay, is_too_much: impl Fn(&Self) -> bool) {
        while is_too_much(self) {
            // Limit: nobody waits for that many; what is beyond was answered or given up long ago.
            let any = (self.events.len() > STREAM_EVENTS).then_some(0);
            let oldest = self.events.iter().position(|event| self.may_go(event)).or(any);
            let Some(gone) = oldest.and_then(|at| self.events.remove(at)) else { return };
            self.bytes -= gone.bytes.len();
            replay.remove(gone.bytes.len());
        }
    }

    /// What the reader has not had stays, if somebody waits for it.
    fn may_go(&self, event: &Event) -> bool {
        event.number <= self.had || event.care == Care::MayDrop
    }

    /// Whether there is too much, as far as letting go helps.
    fn is_full(&self) -> bool {
        let spare =
            || self.events.iter().filter(|event| self.may_go(event)).map(|event| event.bytes.len()).sum();
        self.events.len() > STREAM_EVENTS || (self.bytes > STREAM_BYTES && STREAM_BYTES < spare())
    }

    /// Whether who has had this event can have what follows. A stream that has ended without its answer is a dead end.
    fn leads_on(&self, event: u64) -> bool {
        let is_complete = || self.events.back().is_some_and(|newest| newest.number == self.last);
        event == self.last || (event < self.last && (self.ended.is_none() || is_complete()))
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
    _here: Option<Attending>,
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
        let mut state = self.streams.lock();
        let Some(stream) =
            state.streams.get_mut(&self.place.stream).filter(|stream| stream.reader == self.reader)
        else {
            return Found::End;
        };
        let next = stream.events.iter().find(|event| event.number > self.place.event);
        let Some(next) = next else {
            let is_over = stream.ended.is_some() || stream.let_go == Some(self.reader);
            return if is_over { Found::End } else { Found::NothingYet };
        };
        let bytes = next.bytes.clone();
        self.place.event = next.number;
        stream.had = next.number;
        // What is too large to be kept was kept only until now.
        stream.trim(&self.streams.replay, Stream::is_full);
        Found::Event(bytes)
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
