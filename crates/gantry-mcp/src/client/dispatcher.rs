//! Gives the messages of one connection to the requests and clients that they are for.
//!
//! Every link feeds incoming messages to [`Dispatcher::receive`], with the request on whose stream a message came where
//! the transport knows it. Receiving never waits.

use super::message::{self, Message, Named};
use super::pending::{PendingRequest, PendingRequests, Recipient, RequestOwner};
use super::queue::{Frames, Queue};
use super::types::{Answer, Target, UpstreamError};
use crate::envelope::cut;
use crate::exchange::ClientChannel;
use crate::{ErrorObject, lock};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

#[derive(Debug)]
pub(super) struct Dispatcher {
    pub(super) target: Target,
    /// Whether the server may send requests: only legacy servers may.
    pub(super) takes_requests: AtomicBool,
    /// Requests of the server that wait for a client, by the server's id, so that it can cancel them. Limit:
    /// [`super::limits::MAX_CLIENT_REQUESTS`].
    pub(super) client_requests: Mutex<BTreeMap<String, CancellationToken>>,
    /// Notified when the server acknowledges a `subscriptions/listen`.
    pub(super) acknowledged: Notify,
    next: AtomicU64,
    pending: Mutex<PendingRequests>,
    pub(super) queue: Queue,
    garbage: AtomicU64,
    ended: CancellationToken,
    reason: OnceLock<String>,
}

impl Dispatcher {
    /// A dispatcher for a new link, and the messages that the link has to write.
    pub(super) fn start(target: &Target) -> Frames {
        let (queue, receivers) = Queue::new();
        let dispatcher = Arc::new(Self {
            target: target.clone(),
            takes_requests: AtomicBool::new(false),
            client_requests: Mutex::default(),
            acknowledged: Notify::new(),
            next: AtomicU64::new(1),
            pending: Mutex::default(),
            queue,
            garbage: AtomicU64::new(0),
            ended: CancellationToken::new(),
            reason: OnceLock::new(),
        });
        Frames { dispatcher, receivers }
    }

    pub(super) fn next_id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn register(
        self: &Arc<Self>,
        id: u64,
        client: &Arc<dyn ClientChannel>,
        own: bool,
    ) -> Result<RequestGuard, UpstreamError> {
        let (reply, outcome) = oneshot::channel();
        let owner = RequestOwner { client: Arc::clone(client), ended: CancellationToken::new() };
        let mut pending = self.pending();
        if pending.closed {
            return Err(UpstreamError::NotSent(self.why_ended()));
        }
        pending.add(id, own, PendingRequest { owner: owner.clone(), reply, is_task: false }).map_err(
            |many| UpstreamError::NotSent(format!("{many} are under way at {} already", self.target.name)),
        )?;
        drop(pending);
        Ok(RequestGuard { id, owner, outcome, is_cancellable: false, dispatcher: Arc::clone(self) })
    }

    pub(super) fn pending(&self) -> MutexGuard<'_, PendingRequests> {
        lock(&self.pending)
    }

    pub(super) fn recipient(&self, origin: Option<u64>) -> Recipient {
        self.pending().recipient(origin)
    }

    /// Takes what should be a message or a batch of them.
    pub(super) fn receive_bytes(self: &Arc<Self>, bytes: &[u8], origin: Option<u64>) {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.receive(text, origin),
            Err(_) => self.count_garbage("(not UTF-8)"),
        }
    }

    pub(super) fn receive(self: &Arc<Self>, text: &str, origin: Option<u64>) {
        self.trace(false, text);
        let text = &*self.target.masked(text);
        let Some(messages) = message::read(text) else { return self.on_garbage(text, origin) };
        for message in messages {
            match message {
                Message::Response { named, outcome } => self.on_response(named, origin, outcome),
                Message::Notification { method, params } => self.on_notification(&method, params, origin),
                Message::Request { id, method, params } => {
                    self.on_client_request(id, &method, params, origin);
                }
            }
        }
    }

    fn on_response(&self, named: Named, origin: Option<u64>, outcome: Result<&str, ErrorObject>) {
        let id = match (named, &outcome) {
            (Named::Request(id), _) => Some(id),
            // An error without an id is about the request on whose stream it came.
            (Named::Nothing, Err(_)) if origin.is_some() => origin,
            (Named::Nothing, Err(error)) => return self.on_unnamed_error(error),
            (Named::Nothing, Ok(_)) | (Named::Unknown, _) => None,
        };
        let request = id.and_then(|id| self.pending().complete(id));
        let Some(request) = request else {
            tracing::debug!(server = %self.target.name, ?id, "an answer belongs to no pending request");
            return;
        };
        request.end(match outcome {
            Ok(result) if result.starts_with('{') => Ok(result.to_owned()),
            Ok(_) => {
                let what = "the server answered with a result that is not an object";
                Err(UpstreamError::OutcomeUnknown(what.into()))
            }
            Err(error) => Err(UpstreamError::Rpc(error)),
        });
    }

    /// An error without an id may be about the only pending request, which would wait in vain then; but it may as well
    /// be about a notification.
    fn on_unnamed_error(&self, error: &ErrorObject) {
        let only = self.pending().only();
        match only {
            Some(id) => {
                let what = format!("the server sent an error that does not say to which request: {error}");
                self.fail(id, UpstreamError::OutcomeUnknown(what));
            }
            None => tracing::debug!(server = %self.target.name, %error, "an error names no request"),
        }
    }

    /// Text that is not a message is skipped, unless it is a broken message: the request that it must have been about
    /// would wait in vain.
    fn on_garbage(&self, text: &str, origin: Option<u64>) {
        self.count_garbage(text);
        if message::is_broken(text)
            && let Some(id) = origin.or_else(|| self.pending().only())
        {
            self.fail(
                id,
                UpstreamError::OutcomeUnknown("the server sent a message that cannot be read".into()),
            );
        }
    }

    pub(super) fn fail(&self, id: u64, error: UpstreamError) {
        let mut pending = self.pending();
        let request = match error {
            UpstreamError::OutcomeUnknown(_) => pending.orphan(id),
            UpstreamError::Rpc(_) | UpstreamError::NotSent(_) | UpstreamError::Canceled => {
                pending.complete(id)
            }
        };
        drop(pending);
        if let Some(request) = request {
            request.end(Err(error));
        }
    }

    /// Ends all pending requests, whose outcome is not known.
    pub(super) fn fail_all(&self, reason: &str) {
        let requests = self.pending().orphan_all();
        for request in requests {
            request.end(Err(UpstreamError::OutcomeUnknown(reason.to_owned())));
        }
    }

    /// Ends the connection, and with it all pending requests. The first reason stays.
    pub(super) fn end(&self, reason: impl Into<String>) {
        self.refuse_requests(reason);
        self.queue.close();
        self.fail_all(&self.why_ended());
    }

    /// Ends the connection for further requests; pending ones go on. The first reason stays.
    pub(super) fn refuse_requests(&self, reason: impl Into<String>) {
        self.reason.get_or_init(|| reason.into());
        self.pending().closed = true;
        self.ended.cancel();
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_cancelled()
    }

    pub(super) async fn ended(&self) -> String {
        self.ended.cancelled().await;
        self.why_ended()
    }

    pub(super) fn why_ended(&self) -> String {
        self.reason.get().cloned().unwrap_or_else(|| "the connection is closed".into())
    }

    pub(super) fn trace(&self, sent: bool, text: &str) {
        if let Some(trace) = &self.target.trace {
            trace.frame(sent, text);
        }
    }

    /// Counts what is not a message, and logs it ever more rarely: some servers print a lot.
    pub(super) fn count_garbage(&self, text: &str) {
        let count = self.garbage.fetch_add(1, Ordering::Relaxed) + 1;
        if count.is_power_of_two() {
            let excerpt = cut(text, crate::limits::EXCERPT_CHARS);
            tracing::debug!(server = %self.target.name, count, excerpt, "the server sent what is not a message");
        }
    }
}

#[derive(Debug)]
pub(super) struct RequestGuard {
    pub(super) id: u64,
    pub(super) owner: RequestOwner,
    /// The server may have got the request and not answered it: dropping the guard cancels it there.
    pub(super) is_cancellable: bool,
    outcome: oneshot::Receiver<Answer>,
    dispatcher: Arc<Dispatcher>,
}

impl RequestGuard {
    /// Waits for the outcome.
    ///
    /// Cancel-safety: nothing is lost.
    pub(super) async fn outcome(&mut self) -> Answer {
        let lost = |_| Err(UpstreamError::OutcomeUnknown(self.dispatcher.why_ended()));
        (&mut self.outcome).await.unwrap_or_else(lost)
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let mut pending = self.dispatcher.pending();
        let request = if self.is_cancellable { pending.orphan(self.id) } else { pending.remove(self.id) };
        drop(pending);
        self.owner.ended.cancel();
        if request.is_some() && self.is_cancellable {
            self.dispatcher.post(message::cancelled(self.id));
        }
    }
}
