//! The events of the streams of a legacy session, so that a client whose stream broke can resume it.
//!
//! Streams belong to a session, which only its own client can find. The id of an event names the session besides the
//! stream and the position in it, so that an id of another session is unknown.
//!
//! Requests to the client and responses are kept for replay after they were sent while there is room; before, they are
//! kept while their request runs, regardless of limits. Other messages are not replayed. When the events of all sessions
//! are too large, streams that have ended are dropped early, the oldest first.

use super::body::{Source, event};
use super::handler::Receipt;
use super::outgoing::Delivery;
use crate::limits::{RETRY_MS, SESSION_STREAMS, STREAM_BYTES, STREAM_EVENTS, STREAM_KEPT_WHEN_FULL};
use crate::lock;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::pin::pin;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use uuid::Uuid;

pub(super) const SESSION_STREAM: u64 = 0;

/// Bytes of the events of all sessions, and their limit.
#[derive(Debug)]
pub(super) struct LogBudget {
    pub(super) used: AtomicUsize,
    pub(super) limit: usize,
}

impl LogBudget {
    pub(super) fn is_exceeded(&self) -> bool {
        self.used.load(Relaxed) > self.limit
    }

    /// Whether so much is free that it takes a while until the limit is exceeded again.
    pub(super) fn has_room(&self) -> bool {
        self.used.load(Relaxed) <= self.limit - self.limit / 64
    }
}

pub(super) struct EventLogs {
    /// Tells the events of this session from those of others.
    tag: String,
    // Invariant: never held across an await.
    state: Mutex<State>,
    budget: Arc<LogBudget>,
}

struct State {
    streams: BTreeMap<u64, Stream>,
    /// The number of the last stream.
    last: u64,
}

#[derive(Default)]
struct Stream {
    events: VecDeque<Event>,
    last: u64,
    /// The last event that was sent.
    sent: u64,
    ended: Option<Instant>,
    /// The number of the current reader; a new reader replaces the one before.
    reader: u64,
    /// The reader that is to stop when it has sent everything so far.
    released: Option<u64>,
    changed: Arc<Notify>,
}

struct Event {
    number: u64,
    bytes: Bytes,
    delivery: Delivery,
    receipt: Option<Receipt>,
}

/// A position in a stream: after this event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventPosition {
    pub(super) stream: u64,
    pub(super) event: u64,
}

impl EventLogs {
    pub(super) fn new(budget: Arc<LogBudget>) -> Arc<Self> {
        let tag = Uuid::new_v4().simple().to_string();
        let streams = BTreeMap::from([(SESSION_STREAM, Stream::default())]);
        Arc::new(Self { tag, state: Mutex::new(State { streams, last: SESSION_STREAM }), budget })
    }

    pub(super) fn open(&self) -> u64 {
        let mut state = lock(&self.state);
        state.last += 1;
        let id = state.last;
        let surplus = (state.streams.len() + 1).saturating_sub(SESSION_STREAMS);
        let ended = state.streams.iter().filter(|(_, stream)| stream.ended.is_some());
        let oldest: Vec<u64> = ended.map(|(id, _)| *id).take(surplus).collect();
        for old in oldest {
            self.remove(&mut state, old);
        }
        state.streams.insert(id, Stream::default());
        id
    }

    /// Adds a message to a stream. The receipt is awaited right before the message is sent for the first time.
    pub(super) fn push(&self, to: u64, message: &str, delivery: Delivery, receipt: Option<Receipt>) {
        let mut state = lock(&self.state);
        let Some(stream) = state.streams.get_mut(&to) else { return };
        stream.last += 1;
        let number = stream.last;
        let retry = message.is_empty().then_some(RETRY_MS);
        let bytes = event(Some(format_args!("{}-{to}-{number}", self.tag)), retry, message);
        self.budget.used.fetch_add(bytes.len(), Relaxed);
        stream.events.push_back(Event { number, bytes, delivery, receipt });
        stream.trim(&self.budget);
        stream.changed.notify_waiters();
    }

    /// Adds an event without a message, so that the client has an id to come back with before the first message.
    pub(super) fn prime(&self, stream: u64) {
        self.push(stream, "", Delivery::BestEffort, None);
    }

    /// Ends a stream. It can still be resumed for a while.
    pub(super) fn end(&self, stream: u64) {
        if let Some(stream) = lock(&self.state).streams.get_mut(&stream) {
            stream.ended.get_or_insert_with(Instant::now);
            stream.changed.notify_waiters();
        }
    }

    /// Ends the response of the current reader once it has sent everything so far; the stream can be resumed.
    pub(super) fn release(&self, stream: u64) {
        if let Some(stream) = lock(&self.state).streams.get_mut(&stream) {
            stream.released = Some(stream.reader);
            stream.changed.notify_waiters();
        }
    }

    /// Ends and drops all streams: the session is over.
    pub(super) fn end_all(&self) {
        let mut state = lock(&self.state);
        while let Some(stream) = state.streams.keys().next().copied() {
            self.remove(&mut state, stream);
        }
    }

    pub(super) fn expire(&self, kept: Duration) {
        let mut state = lock(&self.state);
        let is_old = |stream: &Stream| stream.ended.is_some_and(|ended| ended.elapsed() > kept);
        let old: Vec<u64> =
            state.streams.iter().filter(|(_, stream)| is_old(stream)).map(|(id, _)| *id).collect();
        for stream in old {
            self.remove(&mut state, stream);
        }
    }

    /// The streams that may make room for others, and when they ended.
    pub(super) fn surplus(&self) -> Vec<(Instant, u64)> {
        let state = lock(&self.state);
        let ended = state.streams.iter().filter_map(|(id, stream)| Some((stream.surplus_since()?, *id)));
        ended.collect()
    }

    /// Drops a stream, unless a client has come back to it.
    pub(super) fn drop_surplus(&self, stream: u64) {
        let mut state = lock(&self.state);
        if state.streams.get(&stream).is_some_and(|stream| stream.surplus_since().is_some()) {
            self.remove(&mut state, stream);
        }
    }

    /// A reader of the events after a position. It replaces the current reader of the stream.
    pub(super) fn read(self: &Arc<Self>, position: EventPosition) -> Option<EventReader> {
        let mut state = lock(&self.state);
        let stream = state.streams.get_mut(&position.stream)?;
        stream.reader += 1;
        stream.sent = position.event;
        stream.changed.notify_waiters();
        let (reader, changed) = (stream.reader, Arc::clone(&stream.changed));
        Some(EventReader { logs: Arc::clone(self), position, reader, changed })
    }

    pub(super) fn end_position(&self, stream: u64) -> EventPosition {
        let event = lock(&self.state).streams.get(&stream).map_or(0, |stream| stream.last);
        EventPosition { stream, event }
    }

    /// The position that the id of an event names; `None` if it is not one of this session, or if the response that
    /// should follow is not kept any more.
    pub(super) fn position(&self, id: &str) -> Option<EventPosition> {
        let (stream, event) = id.strip_prefix(&self.tag)?.strip_prefix('-')?.split_once('-')?;
        let position = EventPosition { stream: stream.parse().ok()?, event: event.parse().ok()? };
        let state = lock(&self.state);
        let stream = state.streams.get(&position.stream)?;
        stream.can_resume_after(position.event).then_some(position)
    }

    fn remove(&self, state: &mut State, stream: u64) {
        if let Some(stream) = state.streams.remove(&stream) {
            let bytes = stream.events.iter().map(|event| event.bytes.len()).sum();
            self.budget.used.fetch_sub(bytes, Relaxed);
            stream.changed.notify_waiters();
        }
    }
}

impl Drop for EventLogs {
    fn drop(&mut self) {
        self.end_all();
    }
}

impl Stream {
    /// Drops the oldest events while there are too many of them, in this stream or in all sessions.
    fn trim(&mut self, budget: &LogBudget) {
        loop {
            let limit = if budget.is_exceeded() { 0 } else { STREAM_BYTES };
            let removable = self.events.iter().filter(|event| self.is_removable(event));
            let too_large = removable.map(|event| event.bytes.len()).sum::<usize>() > limit;
            let too_many = self.events.len() > STREAM_EVENTS;
            if !too_large && !too_many {
                return;
            }
            let oldest = self.events.iter().position(|event| self.is_removable(event));
            // Limit: the client of so many pending requests is gone.
            let Some(at) = oldest.or_else(|| too_many.then_some(0)) else { return };
            self.drop_event(at, budget);
        }
    }

    fn drop_event(&mut self, at: usize, budget: &LogBudget) {
        if let Some(event) = self.events.remove(at) {
            budget.used.fetch_sub(event.bytes.len(), Relaxed);
        }
    }

    /// When the stream ended, if it keeps events that no client is about to read.
    fn surplus_since(&self) -> Option<Instant> {
        // Every reader holds `changed`. A client that was released was told to come back.
        let is_expected = Arc::strong_count(&self.changed) > 1 || self.released == Some(self.reader);
        let is_surplus = |ended: &Instant| !is_expected || ended.elapsed() > STREAM_KEPT_WHEN_FULL;
        self.ended.filter(is_surplus).filter(|_| !self.events.is_empty())
    }

    fn is_removable(&self, event: &Event) -> bool {
        event.number <= self.sent || event.delivery == Delivery::BestEffort
    }

    /// Whether the events after this one lead to the response. A stream that has ended without it is a dead end.
    fn can_resume_after(&self, event: u64) -> bool {
        let is_complete = || self.events.back().is_some_and(|newest| newest.number == self.last);
        event == self.last || (event < self.last && (self.ended.is_none() || is_complete()))
    }
}

/// Reads a stream for one HTTP response.
pub(super) struct EventReader {
    logs: Arc<EventLogs>,
    position: EventPosition,
    reader: u64,
    changed: Arc<Notify>,
}

enum Poll {
    Event { number: u64, bytes: Bytes, receipt: Option<Receipt> },
    Pending,
    End,
}

impl Source for EventReader {
    /// Waits for the next event; `None` at the end of the stream, or when another reader has replaced this one.
    ///
    /// Cancel-safety: nothing is lost when the future is dropped; a receipt that was being awaited goes on.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let changed = Arc::clone(&self.changed);
            let mut changed = pin!(changed.notified());
            // Registered before polling, so that no change is missed in between.
            changed.as_mut().enable();
            match self.poll() {
                Poll::Event { number, bytes, receipt } => {
                    // In a task of its own: the event can be read again, its receipt cannot be taken again.
                    if let Some(receipt) = receipt
                        && tokio::spawn(receipt).await.is_err()
                    {
                        tracing::error!("it was not recorded that a client gets a response");
                    }
                    self.advance(number);
                    return Some(bytes);
                }
                Poll::End => return None,
                Poll::Pending => changed.await,
            }
        }
    }
}

impl EventReader {
    /// Whether no other reader has replaced this one and the stream is still there.
    pub(super) fn is_current(&self) -> bool {
        let state = lock(&self.logs.state);
        state.streams.get(&self.position.stream).is_some_and(|stream| stream.reader == self.reader)
    }

    fn poll(&self) -> Poll {
        let mut state = lock(&self.logs.state);
        let stream = state.streams.get_mut(&self.position.stream);
        let Some(stream) = stream.filter(|stream| stream.reader == self.reader) else { return Poll::End };
        match stream.events.iter_mut().find(|event| event.number > self.position.event) {
            Some(Event { number, bytes, receipt, .. }) => {
                Poll::Event { number: *number, bytes: bytes.clone(), receipt: receipt.take() }
            }
            None if stream.ended.is_some() || stream.released == Some(self.reader) => Poll::End,
            None => Poll::Pending,
        }
    }

    fn advance(&mut self, number: u64) {
        self.position.event = number;
        let mut state = lock(&self.logs.state);
        let stream = state.streams.get_mut(&self.position.stream);
        let Some(stream) = stream.filter(|stream| stream.reader == self.reader) else { return };
        stream.sent = number;
        let is_done = |event: &Event| event.number == number && event.delivery == Delivery::BestEffort;
        if let Some(at) = stream.events.iter().position(is_done) {
            stream.drop_event(at, &self.logs.budget);
        }
        stream.trim(&self.logs.budget);
    }
}
