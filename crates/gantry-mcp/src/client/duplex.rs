//! A link where all messages come in on one stream and go out through one writer: lines, WebSocket frames, HTTP+SSE.

use super::{
    dispatcher::{Dispatcher, Outbox, lock},
    limits::{CLOSE_TIMEOUT, MAX_CLIENT_REQUESTS, MAX_IN_FLIGHT, WRITE_BROKE, WRITE_WAIT, WRITES_WAITING},
    message,
    transport::Call,
    types::UpstreamError,
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
    sync::mpsc,
    time::{sleep, timeout},
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Cancellations and short answers that wait to be written: all requests may be cancelled, and all requests of the server
/// refused, at the same moment.
const URGENT_WAITING: usize = MAX_IN_FLIGHT + MAX_CLIENT_REQUESTS;

/// An outgoing message, and the id of the request that it is, if it is one.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) id: Option<u64>,
    pub(super) text: String,
}

/// The messages that wait to be written. Cancellations do not wait behind requests.
#[derive(Debug)]
pub(super) struct Frames {
    dispatcher: Arc<Dispatcher>,
    requests: mpsc::Receiver<Frame>,
    urgent: mpsc::Receiver<String>,
    /// Nothing more will be sent: write what waits, then close.
    no_more: CancellationToken,
}

impl Frames {
    /// The next message to write; `None` when there will be none. A request that was cancelled meanwhile is skipped.
    pub(super) async fn next(&mut self) -> Option<Frame> {
        let frame = loop {
            tokio::select! {
                biased;
                Some(text) = self.urgent.recv() => break Frame { id: None, text },
                Some(frame) = self.requests.recv() => {
                    if frame.id.is_none_or(|id| self.dispatcher.pending().contains(id)) {
                        break frame;
                    }
                }
                () = self.no_more.cancelled(), if !self.requests.is_closed() => {
                    self.requests.close();
                    self.urgent.close();
                }
                else => return None,
            }
        };
        self.dispatcher.trace(true, &frame.text);
        Some(frame)
    }
}

/// The sending side of [`Frames`].
#[derive(Debug)]
struct Queue {
    dispatcher: Arc<Dispatcher>,
    requests: mpsc::Sender<Frame>,
    urgent: mpsc::Sender<String>,
    dropped: AtomicU64,
}

impl Queue {
    /// Waits for a place in the queue, but not for ever.
    async fn send(&self, id: Option<u64>, text: String) -> Result<(), UpstreamError> {
        let sent = timeout(WRITE_WAIT, self.requests.send(Frame { id, text })).await;
        let what = match sent {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(_)) => self.dispatcher.why_ended(),
            Err(_) => format!("the server has not read its input for {} seconds", WRITE_WAIT.as_secs()),
        };
        Err(UpstreamError::NotSent(what))
    }

    /// Counts dropped messages, and logs them ever more rarely.
    fn count_dropped(&self) {
        let count = self.dropped.fetch_add(1, Ordering::Relaxed) + 1;
        if !self.requests.is_closed() && count.is_power_of_two() {
            let server = &self.dispatcher.target.name;
            tracing::warn!(%server, count, "the server does not read its input; answers or cancellations were dropped");
        }
    }
}

impl Outbox for Queue {
    fn post(&self, text: String) {
        if self.urgent.try_send(text).is_err() {
            self.count_dropped();
        }
    }

    fn deliver(&self, text: String) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if self.send(None, text).await.is_err() {
                self.count_dropped();
            }
        })
    }
}

/// See the module.
pub(super) struct Duplex {
    dispatcher: Arc<Dispatcher>,
    queue: Arc<Queue>,
    no_more: CancellationToken,
    /// Keeps the process of the server alive.
    guard: Mutex<Option<Box<dyn Any + Send + Sync>>>,
    _stop: DropGuard,
}

impl std::fmt::Debug for Duplex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Duplex").finish_non_exhaustive()
    }
}

/// The other side of a [`Duplex`], for the tasks that read and write.
#[derive(Debug)]
pub(super) struct Ends {
    pub(super) dispatcher: Arc<Dispatcher>,
    pub(super) outbox: Arc<dyn Outbox>,
    pub(super) frames: Frames,
    /// Fires when the link is dropped.
    stop: CancellationToken,
}

impl Ends {
    /// Hands an incoming message over.
    pub(super) fn receive(dispatcher: &Arc<Dispatcher>, bytes: &[u8], outbox: &Arc<dyn Outbox>) {
        match std::str::from_utf8(bytes) {
            Ok(text) => dispatcher.receive(text, None, outbox),
            Err(_) => dispatcher.count_garbage("(not UTF-8)"),
        }
    }

    /// Runs a reader, which returns why it ended, and a writer, until one of them fails or the link is dropped.
    pub(super) fn run<R, W>(
        self,
        read: impl FnOnce(Arc<Dispatcher>, Arc<dyn Outbox>) -> R,
        write: impl FnOnce(Frames) -> W,
    ) where
        R: Future<Output = String> + Send + 'static,
        W: Future<Output = Result<(), String>> + Send + 'static,
    {
        let Self { dispatcher, outbox, frames, stop } = self;
        let (read, write) = (read(Arc::clone(&dispatcher), outbox), write(frames));
        tokio::spawn({
            let (dispatcher, stop) = (Arc::clone(&dispatcher), stop.clone());
            async move {
                let written = tokio::select! { written = write => written, () = stop.cancelled() => Ok(()) };
                if let Err(reason) = written {
                    // The reader's reason says more; it comes at once if the process has ended.
                    sleep(WRITE_BROKE).await;
                    dispatcher.end(reason);
                }
            }
        });
        tokio::spawn(async move {
            let ended = dispatcher.ended();
            tokio::select! {
                reason = read => dispatcher.end(reason),
                () = stop.cancelled() => dispatcher.end("the connection was dropped"),
                _ = ended => {}
            }
        });
    }
}

impl Duplex {
    pub(super) fn open(
        dispatcher: &Arc<Dispatcher>,
        guard: Option<Box<dyn Any + Send + Sync>>,
    ) -> (Self, Ends) {
        let (requests, received_requests) = mpsc::channel(WRITES_WAITING);
        let (urgent, received_urgent) = mpsc::channel(URGENT_WAITING);
        let (no_more, stop) = (CancellationToken::new(), CancellationToken::new());
        let queue =
            Queue { dispatcher: Arc::clone(dispatcher), requests, urgent, dropped: AtomicU64::new(0) };
        let queue = Arc::new(queue);
        let frames = Frames {
            dispatcher: Arc::clone(dispatcher),
            requests: received_requests,
            urgent: received_urgent,
            no_more: no_more.clone(),
        };
        let ends = Ends {
            dispatcher: Arc::clone(dispatcher),
            outbox: Arc::clone(&queue) as Arc<dyn Outbox>,
            frames,
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
    pub(super) async fn call(&self, call: &Call<'_>) -> Result<String, UpstreamError> {
        let mut request = self.dispatcher.register(&call.client, call.own, None)?;
        let text = message::request(request.id, call.method, call.params);
        tokio::select! {
            biased;
            () = call.cancel.cancelled() => return Err(UpstreamError::Canceled),
            sent = self.queue.send(Some(request.id), text) => sent?,
        }
        // A handshake cannot be cancelled.
        let outbox = (call.method != "initialize").then(|| Arc::clone(&self.queue) as Arc<dyn Outbox>);
        request.set_outbox(outbox);
        tokio::select! {
            biased;
            outcome = request.outcome() => outcome,
            () = call.cancel.cancelled() => Err(UpstreamError::Canceled),
        }
    }

    /// Sends a message that has no answer.
    pub(super) async fn notify(&self, text: String) -> Result<(), UpstreamError> {
        self.queue.send(None, text).await
    }

    /// Closes the input of the server, which may end by itself for a while.
    pub(super) async fn close(&self) {
        self.no_more.cancel();
        if timeout(CLOSE_TIMEOUT, self.dispatcher.ended()).await.is_err() {
            tracing::debug!(server = %self.dispatcher.target.name, "the server did not end by itself");
        }
        drop(lock(&self.guard).take());
        self.dispatcher.end("the connection was closed");
    }
}
