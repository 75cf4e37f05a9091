//! The outgoing messages of one connection. Cancellations and answers do not wait behind requests.

use super::dispatcher::Dispatcher;
use super::limits::{POSTS, URGENT_WAITING, WRITE_WAIT, WRITES_WAITING};
use super::types::UpstreamError;
use futures_util::{StreamExt as _, stream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// An outgoing message, and the id of the request that it is, if it is one.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) id: Option<u64>,
    pub(super) text: String,
}

#[derive(Debug)]
pub(super) struct Queue {
    requests: mpsc::Sender<Frame>,
    urgent: mpsc::Sender<String>,
    /// Nothing more will be sent: waiting messages are written, then the link is closed.
    closing: CancellationToken,
    dropped: AtomicU64,
}

#[derive(Debug)]
pub(super) struct Receivers {
    requests: mpsc::Receiver<Frame>,
    urgent: mpsc::Receiver<String>,
}

impl Queue {
    pub(super) fn new() -> (Self, Receivers) {
        let (requests, received_requests) = mpsc::channel(WRITES_WAITING);
        let (urgent, received_urgent) = mpsc::channel(URGENT_WAITING);
        let queue = Self { requests, urgent, closing: CancellationToken::new(), dropped: AtomicU64::new(0) };
        (queue, Receivers { requests: received_requests, urgent: received_urgent })
    }

    /// Ends the queue once the waiting messages are written.
    pub(super) fn close(&self) {
        self.closing.cancel();
    }
}

impl Dispatcher {
    /// Sends a message. Waits for a place in the queue, but not for ever.
    pub(super) async fn send(&self, id: Option<u64>, text: String) -> Result<(), UpstreamError> {
        let what = match timeout(WRITE_WAIT, self.queue.requests.send(Frame { id, text })).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(_)) => self.why_ended(),
            Err(_) => format!("the server has not read its input for {} seconds", WRITE_WAIT.as_secs()),
        };
        Err(UpstreamError::NotSent(what))
    }

    /// Sends a cancellation or an answer without waiting. If it does not fit it is dropped, which is logged ever more
    /// rarely.
    pub(super) fn post(&self, text: String) {
        let Err(TrySendError::Full(_)) = self.queue.urgent.try_send(text) else { return };
        let count = self.queue.dropped.fetch_add(1, Ordering::Relaxed) + 1;
        if count.is_power_of_two() {
            let server = &self.target.name;
            tracing::warn!(%server, count, "the server does not read its input; answers or cancellations were dropped");
        }
    }
}

#[derive(Debug)]
pub(super) struct Frames {
    pub(super) dispatcher: Arc<Dispatcher>,
    pub(super) receivers: Receivers,
}

impl Frames {
    /// The next message; `None` when there will be none. A request that was cancelled meanwhile is skipped.
    pub(super) async fn next(&mut self) -> Option<Frame> {
        let Receivers { requests, urgent } = &mut self.receivers;
        let frame = loop {
            tokio::select! {
                biased;
                Some(text) = urgent.recv() => break Frame { id: None, text },
                Some(frame) = requests.recv() => {
                    if frame.id.is_none_or(|id| self.dispatcher.pending().contains(id)) {
                        break frame;
                    }
                }
                () = self.dispatcher.queue.closing.cancelled(), if !requests.is_closed() => {
                    requests.close();
                    urgent.close();
                }
                else => return None,
            }
        };
        self.dispatcher.trace(true, &frame.text);
        Some(frame)
    }

    /// Sends all messages, several at once.
    pub(super) async fn for_each<F: Future<Output = ()>>(self, send: impl FnMut(Frame) -> F) {
        let frames = stream::unfold(self, |mut frames| async { Some((frames.next().await?, frames)) });
        frames.for_each_concurrent(POSTS, send).await;
    }
}
