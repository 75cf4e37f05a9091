//! A link where everything comes in on one stream and goes out through one queue: lines, frames, HTTP+SSE.

use super::{
    dispatcher::{Dispatcher, Outbox, lock},
    limits::{LAST_WORDS, UNDER_WAY, WRITE_WAIT, WRITES_WAITING},
    link::Call,
    message,
    types::Failure,
};
use crate::exchange::BoxFuture;
use std::{
    any::Any,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    time::timeout,
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Messages that cannot wait for a place, besides [`WRITES_WAITING`]: all requests may be withdrawn at the same moment.
const URGENT: usize = UNDER_WAY;

/// A message on its way out, and the request that it is, if it is one.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) id: Option<u64>,
    pub(super) text: String,
    /// Its place in the queue, which is free again when the frame is gone.
    _place: OwnedSemaphorePermit,
}

/// What the tasks that read and write need.
#[derive(Debug)]
pub(super) struct Ends {
    pub(super) dispatcher: Arc<Dispatcher>,
    pub(super) outbox: Arc<dyn Outbox>,
    pub(super) frames: mpsc::Receiver<Frame>,
    /// Nothing more will be sent: write what waits and let go.
    pub(super) no_more: CancellationToken,
    /// The link is gone.
    pub(super) stop: CancellationToken,
}

impl Ends {
    /// The next message to write; `None` when there will be none.
    pub(super) async fn next_frame(
        frames: &mut mpsc::Receiver<Frame>,
        no_more: &CancellationToken,
    ) -> Option<Frame> {
        tokio::select! {
            biased;
            frame = frames.recv() => frame,
            () = no_more.cancelled() => {
                frames.close();
                frames.recv().await
            }
        }
    }
}

/// See the module.
pub(super) struct Duplex {
    dispatcher: Arc<Dispatcher>,
    queue: Arc<Queue>,
    no_more: CancellationToken,
    /// Keeps the other side alive.
    guard: Mutex<Option<Box<dyn Any + Send + Sync>>>,
    _stop: DropGuard,
}

impl std::fmt::Debug for Duplex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Duplex").finish_non_exhaustive()
    }
}

/// What waits to be written, in the order in which it came. Requests and answers wait for a place; what cannot wait has
/// places of its own, so that calls that queue up do not crowd it out.
#[derive(Debug)]
struct Queue {
    dispatcher: Arc<Dispatcher>,
    /// Limit: as many as there are places.
    frames: mpsc::Sender<Frame>,
    places: Arc<Semaphore>,
    reserved: Arc<Semaphore>,
    dropped: AtomicU64,
}

impl Queue {
    fn new(dispatcher: &Arc<Dispatcher>) -> (Arc<Self>, mpsc::Receiver<Frame>) {
        let (frames, received) = mpsc::channel(WRITES_WAITING + URGENT);
        let queue = Self {
            dispatcher: Arc::clone(dispatcher),
            frames,
            places: Arc::new(Semaphore::new(WRITES_WAITING)),
            reserved: Arc::new(Semaphore::new(URGENT)),
            dropped: AtomicU64::new(0),
        };
        (Arc::new(queue), received)
    }

    /// Waits for a place, but not for ever.
    async fn place(&self) -> Result<OwnedSemaphorePermit, Failure> {
        match timeout(WRITE_WAIT, Arc::clone(&self.places).acquire_owned()).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) => Err(self.closed()),
            Err(_) => {
                let seconds = WRITE_WAIT.as_secs();
                Err(Failure::Unavailable(format!("the server has not read its input for {seconds} seconds")))
            }
        }
    }

    /// Whoever has a place can send, unless nothing is written any more.
    fn send(&self, place: OwnedSemaphorePermit, id: Option<u64>, text: String) -> Result<(), Failure> {
        let slot = self.frames.try_reserve().map_err(|_closed| self.closed())?;
        self.dispatcher.trace(true, &text);
        slot.send(Frame { id, text, _place: place });
        Ok(())
    }

    fn closed(&self) -> Failure {
        Failure::Unavailable(self.dispatcher.why_ended())
    }

    /// Counts what was dropped, and logs it ever more rarely.
    fn count_dropped(&self) {
        let count = self.dropped.fetch_add(1, Ordering::Relaxed) + 1;
        if !self.frames.is_closed() && count.is_power_of_two() {
            let server = &self.dispatcher.target.name;
            tracing::warn!(%server, count, "the server does not read its input; answers or withdrawals were dropped");
        }
    }
}

impl Outbox for Queue {
    fn post(&self, text: String) {
        let place = Arc::clone(&self.reserved).try_acquire_owned();
        if !place.is_ok_and(|place| self.send(place, None, text).is_ok()) {
            self.count_dropped();
        }
    }

    fn deliver(&self, text: String) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let place = self.place().await;
            if place.and_then(|place| self.send(place, None, text)).is_err() {
                self.count_dropped();
            }
        })
    }
}

impl Duplex {
    /// A link, and what the tasks that serve it need.
    pub(super) fn open(
        dispatcher: &Arc<Dispatcher>,
        guard: Option<Box<dyn Any + Send + Sync>>,
    ) -> (Self, Ends) {
        let (queue, frames) = Queue::new(dispatcher);
        let (no_more, stop) = (CancellationToken::new(), CancellationToken::new());
        let ends = Ends {
            dispatcher: Arc::clone(dispatcher),
            outbox: Arc::clone(&queue) as Arc<dyn Outbox>,
            frames,
            no_more: no_more.clone(),
            stop: stop.clone(),
        };
        let duplex = Self {
            dispatcher: Arc::clone(dispatcher),
            queue,
            no_more,
            guard: Mutex::new(guard),
            _stop: stop.drop_guard(),
        };
        (duplex, ends)
    }

    pub(super) fn dispatcher(&self) -> &Arc<Dispatcher> {
        &self.dispatcher
    }

    /// Sends a request and waits for its result.
    pub(super) async fn call(&self, call: &Call<'_>) -> Result<String, Failure> {
        let mut ticket = self.dispatcher.register(Arc::clone(&call.audience), call.own, None)?;
        let text = message::request(ticket.id, call.method, call.params);
        let place = tokio::select! {
            biased;
            () = call.cancel.cancelled() => return Err(Failure::Canceled),
            place = self.queue.place() => place?,
        };
        self.queue.send(place, Some(ticket.id), text)?;
        // A handshake cannot be withdrawn.
        let withdrawal = (call.method != "initialize").then(|| Arc::clone(&self.queue) as Arc<dyn Outbox>);
        ticket.was_sent(withdrawal);
        tokio::select! {
            biased;
            outcome = ticket.outcome() => outcome,
            () = call.cancel.cancelled() => Err(Failure::Canceled),
        }
    }

    /// Sends a message that has no answer.
    pub(super) async fn notify(&self, text: String) -> Result<(), Failure> {
        let place = self.queue.place().await?;
        self.queue.send(place, None, text)
    }

    /// Lets the other side go: it sees the end of its input and may end by itself for a while.
    pub(super) async fn close(&self) {
        self.no_more.cancel();
        if timeout(LAST_WORDS, self.dispatcher.ended()).await.is_err() {
            tracing::debug!(server = %self.dispatcher.target.name, "the server did not end by itself");
        }
        drop(lock(&self.guard).take());
    }
}
