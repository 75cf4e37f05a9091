//! A link where all messages come in on one stream and go out through one writer: lines, WebSocket frames, HTTP+SSE.

use super::dispatcher::Dispatcher;
use super::limits::{CLOSE_TIMEOUT, WRITE_BROKE};
use super::message;
use super::queue::Frames;
use super::transport::Call;
use super::types::{Answer, UpstreamError};
use crate::lock;
use std::any::Any;
use std::sync::{Arc, Mutex};
use tokio::time::{sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

#[derive(Debug)]
pub(super) struct Duplex {
    pub(super) dispatcher: Arc<Dispatcher>,
    /// Keeps the process of the server alive.
    guard: Mutex<Option<Box<dyn Any + Send + Sync>>>,
    _stop: DropGuard,
}

impl Duplex {
    /// Starts a link with a reader, which returns why it ended, and a writer.
    pub(super) fn start<R, W>(
        frames: Frames,
        guard: Option<Box<dyn Any + Send + Sync>>,
        read: impl FnOnce(Arc<Dispatcher>) -> R,
        write: impl FnOnce(Frames) -> W,
    ) -> Self
    where
        R: Future<Output = String> + Send + 'static,
        W: Future<Output = Result<(), String>> + Send + 'static,
    {
        let (dispatcher, stop) = (Arc::clone(&frames.dispatcher), CancellationToken::new());
        let (read, write) = (read(Arc::clone(&dispatcher)), write(frames));
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
        tokio::spawn({
            let (dispatcher, stop) = (Arc::clone(&dispatcher), stop.clone());
            async move {
                let ended = dispatcher.ended();
                tokio::select! {
                    reason = read => dispatcher.end(reason),
                    () = stop.cancelled() => dispatcher.end("the connection was dropped"),
                    _ = ended => {}
                }
            }
        });
        Self { dispatcher, guard: Mutex::new(guard), _stop: stop.drop_guard() }
    }

    pub(super) async fn call(&self, call: &Call<'_>) -> Answer {
        let mut request = self.dispatcher.register(call.id, &call.client, call.own)?;
        let text = message::request(call.id, call.method, call.params);
        tokio::select! {
            biased;
            () = call.cancel.cancelled() => return Err(UpstreamError::Canceled),
            sent = self.dispatcher.send(Some(call.id), text) => sent?,
        }
        // A handshake cannot be cancelled: not even a cancellation may come before its end.
        request.is_cancellable = !matches!(call.method, "initialize" | "server/discover");
        tokio::select! {
            biased;
            outcome = request.outcome() => outcome,
            () = call.cancel.cancelled() => Err(UpstreamError::Canceled),
        }
    }

    /// Closes the input of the server, which may end by itself for a while.
    pub(super) async fn close(&self) {
        self.dispatcher.queue.close();
        if timeout(CLOSE_TIMEOUT, self.dispatcher.ended()).await.is_err() {
            tracing::debug!(server = %self.dispatcher.target.name, "the server did not end by itself");
        }
        drop(lock(&self.guard).take());
        self.dispatcher.end("the connection was closed");
    }
}
