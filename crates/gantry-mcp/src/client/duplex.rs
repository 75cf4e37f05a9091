//! A link where everything comes in on one stream and goes out through one queue: lines, frames, HTTP+SSE.

use super::{
    dispatcher::{Dispatcher, Outbox, lock},
    limits::{LAST_WORDS, WRITE_WAIT, WRITES_WAITING},
    link::Call,
    message,
    types::Failure,
};
use std::{
    any::Any,
    sync::{Arc, Mutex},
};
use tokio::{
    sync::mpsc,
    time::{error::Elapsed, timeout},
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// A message on its way out, and the request that it is, if it is one.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) id: Option<u64>,
    pub(super) text: String,
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
    outbox: Arc<dyn Outbox>,
    queue: mpsc::Sender<Frame>,
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

#[derive(Debug)]
struct QueueOutbox {
    dispatcher: Arc<Dispatcher>,
    queue: mpsc::Sender<Frame>,
}

impl Outbox for QueueOutbox {
    fn post(&self, text: String) {
        match self.queue.try_reserve() {
            Ok(slot) => {
                self.dispatcher.trace(true, &text);
                slot.send(Frame { id: None, text });
            }
            Err(_) => {
                tracing::debug!(server = %self.dispatcher.target.name, "the server does not read, a message was dropped")
            }
        }
    }
}

impl Duplex {
    /// A link, and what the tasks that serve it need.
    pub(super) fn open(
        dispatcher: &Arc<Dispatcher>,
        guard: Option<Box<dyn Any + Send + Sync>>,
    ) -> (Self, Ends) {
        let (queue, frames) = mpsc::channel(WRITES_WAITING);
        let outbox: Arc<dyn Outbox> =
            Arc::new(QueueOutbox { dispatcher: Arc::clone(dispatcher), queue: queue.clone() });
        let (no_more, stop) = (CancellationToken::new(), CancellationToken::new());
        let ends = Ends {
            dispatcher: Arc::clone(dispatcher),
            outbox: Arc::clone(&outbox),
            frames,
            no_more: no_more.clone(),
            stop: stop.clone(),
        };
        let duplex = Self {
            dispatcher: Arc::clone(dispatcher),
            outbox,
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
        // A handshake cannot be withdrawn.
        let withdrawal = (call.method != "initialize").then(|| Arc::clone(&self.outbox));
        let mut ticket = self.dispatcher.register(Arc::clone(&call.audience), call.own, withdrawal)?;
        let text = message::request(ticket.id, call.method, call.params);
        let slot = tokio::select! {
            biased;
            () = call.cancel.cancelled() => Err(Failure::Canceled),
            slot = timeout(WRITE_WAIT, self.queue.reserve()) => self.slot(slot),
        };
        match slot {
            Ok(slot) => {
                self.dispatcher.trace(true, &text);
                slot.send(Frame { id: Some(ticket.id), text });
            }
            Err(failure) => {
                ticket.forget();
                return Err(failure);
            }
        }
        tokio::select! {
            biased;
            outcome = ticket.outcome() => outcome,
            () = call.cancel.cancelled() => Err(Failure::Canceled),
        }
    }

    /// Sends a message that has no answer.
    pub(super) async fn notify(&self, text: String) -> Result<(), Failure> {
        let slot = self.slot(timeout(WRITE_WAIT, self.queue.reserve()).await)?;
        self.dispatcher.trace(true, &text);
        slot.send(Frame { id: None, text });
        Ok(())
    }

    fn slot<'a>(
        &self,
        slot: Result<Result<mpsc::Permit<'a, Frame>, mpsc::error::SendError<()>>, Elapsed>,
    ) -> Result<mpsc::Permit<'a, Frame>, Failure> {
        match slot {
            Ok(Ok(slot)) => Ok(slot),
            Ok(Err(_)) => Err(Failure::Unavailable(self.dispatcher.why_ended())),
            Err(_) => {
                let seconds = WRITE_WAIT.as_secs();
                Err(Failure::Unavailable(format!("the server has not read its input for {seconds} seconds")))
            }
        }
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
