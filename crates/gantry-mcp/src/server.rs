//! Gantry as an MCP server, over every transport and in every protocol version.
//!
//! A message is first *parsed* (`legacy`, `modern`, `request`: plain functions from text to a response or an operation)
//! and then *run* (`dispatch`, `request_task`), so that the protocol can be read and tested without a transport. While a
//! request runs, its handler reaches the client through `request_channel`. `connection` is the state of a client with a
//! handshake; `http`, `sse`, `stdio` and `duplex` carry messages.

mod body;
mod client_requests;
mod connection;
mod convert;
mod dispatch;
mod duplex;
mod event_log;
mod handler;
mod http;
mod in_flight;
mod legacy;
mod listen;
mod modern;
mod notifications;
mod outgoing;
mod params;
mod pending_input;
mod request;
mod request_channel;
mod request_task;
mod response;
mod sessions;
mod sse;
mod stdio;

pub use body::{Body, EventStream};
pub use handler::{Change, ChangeNotice, Features, ForwardRequest, Handler, Outcome, Receipt};

use crate::envelope::{Id, Message, Rejection, Request, failure};
use crate::exchange::ClientChannel as _;
use crate::{ErrorObject, limits};
use ::http::{HeaderMap, StatusCode};
use connection::Connection;
use event_log::LogBudget;
use pending_input::PendingInputs;
use request_channel::ResponseMode;
use request_task::RunningRequest;
use response::{ResponseContext, ResponseWriter};
use sessions::{HttpSession, Sessions};
use sse::SseConnections;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Semaphore, broadcast};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long everything may take to close when the server stops: a connection drains for six seconds and then closes its
/// session.
const CLOSE_ALL: Duration = Duration::from_secs(15);

#[derive(Debug, Clone)]
pub struct Options {
    /// HTTP sessions that are open at once; the one that was idle for longest makes room. Once an identity has a quarter
    /// of them, it makes room for itself.
    pub max_sessions: usize,
    pub session_idle: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { max_sessions: limits::SESSIONS, session_idle: limits::SESSION_IDLE }
    }
}

/// An MCP server for all connections. Clones share everything.
#[derive(Clone)]
pub struct Server {
    inner: Arc<Inner>,
}

struct Inner {
    /// Subscribed anew for each client.
    changes: broadcast::Receiver<ChangeNotice>,
    writer: ResponseWriter,
    sessions: Sessions,
    sse_connections: SseConnections,
    /// Permits for connections that carry messages both ways.
    connections: Arc<Semaphore>,
    pending_inputs: PendingInputs,
    closing: TaskTracker,
    /// Fires when streams without an end are to end.
    close_streams: CancellationToken,
    /// The number of the last client; 0 is no client.
    clients: AtomicU64,
    log_budget: Arc<LogBudget>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("sessions", &self.inner.sessions.len()).finish_non_exhaustive()
    }
}

struct Reply {
    status: StatusCode,
    text: String,
    receipt: Option<Receipt>,
}

impl Reply {
    fn ok(text: String) -> Self {
        Self { status: StatusCode::OK, text, receipt: None }
    }

    fn error(status: StatusCode, id: Option<&Id<'_>>, error: &ErrorObject) -> Self {
        Self { status, text: failure(id, error), receipt: None }
    }

    /// The same response, once it is recorded that the client gets it.
    async fn delivered(mut self) -> Self {
        if let Some(receipt) = self.receipt.take() {
            receipt.await;
        }
        self
    }
}

impl Server {
    /// A server that notifies its clients of these changes. A client that reads them too slowly is notified that
    /// every list has changed. `server_info` has its name, title and version, the text of an object.
    #[must_use]
    pub fn new(server_info: String, changes: broadcast::Receiver<ChangeNotice>, options: &Options) -> Self {
        let inner = Inner {
            changes,
            writer: ResponseWriter { server_info },
            sessions: Sessions::new(options.max_sessions, options.session_idle),
            sse_connections: SseConnections::default(),
            connections: Arc::new(Semaphore::new(limits::CONNECTIONS)),
            pending_inputs: PendingInputs::new(),
            closing: TaskTracker::new(),
            close_streams: CancellationToken::new(),
            clients: AtomicU64::new(0),
            log_budget: Arc::new(LogBudget { used: AtomicUsize::new(0), limit: limits::REPLAY_BYTES }),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Closes HTTP sessions that were idle for too long, and drops requests whose clients did not come back with input
    /// and streams that ended a while ago. Call it every minute or so: only this frees what is kept for them.
    pub fn expire_idle(&self) {
        for session in self.inner.sessions.take_idle() {
            self.terminate(&session);
        }
        self.inner.sessions.expire_streams(limits::STREAM_KEPT);
        self.inner.sessions.make_room(&self.inner.log_budget);
        self.inner.pending_inputs.expire();
    }

    /// Ends every stream that has no end of its own, and takes no more messages on connections. Call it when the server
    /// is to stop, so that no client keeps its connection open; running requests go on. Requests that wait for input are
    /// cancelled: their clients cannot come back.
    pub fn close_streams(&self) {
        self.inner.close_streams.cancel();
        self.inner.pending_inputs.close();
    }

    /// Closes all HTTP sessions and waits until every session is closed, but at most [`CLOSE_ALL`]. No message may follow.
    pub async fn shutdown(&self) {
        self.close_streams();
        for session in self.inner.sessions.take_all() {
            self.terminate(&session);
        }
        self.inner.closing.close();
        if timeout(CLOSE_ALL, self.inner.closing.wait()).await.is_err() {
            let left = self.inner.closing.len();
            tracing::warn!(
                left,
                "MCP connections or sessions did not close in time; the server stops without them"
            );
        }
    }

    fn terminate(&self, session: &HttpSession) {
        session.logs.end_all();
        self.close_session(Arc::clone(&session.connection.handler));
    }

    /// Closes a session in a task of its own, so that a client that hangs up cannot interrupt it.
    fn close_session(&self, handler: Arc<dyn Handler>) {
        self.in_background(async move { handler.close_session().await });
    }

    /// Runs a task that [`Server::shutdown`] waits for.
    fn in_background(&self, work: impl Future<Output = ()> + Send + 'static) {
        // A server that outlives its runtime has no sessions left to close.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        drop(self.inner.closing.spawn_on(work, &runtime));
    }

    fn client_number(&self) -> u64 {
        self.inner.clients.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn changes(&self) -> broadcast::Receiver<ChangeNotice> {
        self.inner.changes.resubscribe()
    }

    /// Handles a batch of a 2025-03-26 session, one message after the other; `None` if no message wants a response. With
    /// a refusal, requests are refused, but other messages are handled: they may make room.
    async fn batch(
        &self,
        connection: &Arc<Connection>,
        messages: Vec<Result<Message<'_>, Rejection<'_>>>,
        refusal: Option<ErrorObject>,
    ) -> Option<String> {
        let mut responses: Vec<String> = Vec::with_capacity(messages.len());
        let mut receipts = Vec::new();
        for message in messages {
            match (message, &refusal) {
                (Ok(Message::Request(request)), Some(error)) => {
                    responses.push(failure(Some(&request.id), error))
                }
                (Ok(Message::Request(request)), None) => {
                    let reply = self.batched(connection, request).await;
                    responses.push(reply.text);
                    receipts.extend(reply.receipt);
                }
                (Ok(message), _) => connection.accept(&message),
                (Err(rejection), _) => responses.push(rejection.response()),
            }
        }
        for receipt in receipts {
            receipt.await;
        }
        (!responses.is_empty()).then(|| format!("[{}]", responses.join(",")))
    }

    /// The response to one request of a batch, which has no place for other messages.
    async fn batched(&self, connection: &Arc<Connection>, request: Request<'_>) -> Reply {
        let request = match legacy::parse(request, connection) {
            Ok(request) => request,
            Err(reply) => return reply,
        };
        match connection.in_flight.begin(&request.id) {
            Ok(guard) => {
                let mut task = self.start_legacy(connection, ResponseMode::Single, request, guard.token());
                task.response().await
            }
            Err(error) => Reply::error(StatusCode::OK, Some(&request.id), &error),
        }
    }

    /// Checks a modern request. Transports without headers pass none.
    ///
    /// # Errors
    /// The response, where the request needs no work: a refusal, or the one to `server/discover`.
    fn check_modern(
        &self,
        handler: &dyn Handler,
        request: &Request<'_>,
        headers: Option<&HeaderMap>,
    ) -> Result<(), Reply> {
        let refused = |error| Reply::error(StatusCode::BAD_REQUEST, Some(&request.id), &error);
        modern::check(request, headers).map_err(refused)?;
        if request.method != "server/discover" {
            return Ok(());
        }
        let (features, instructions) = (handler.features(), handler.instructions());
        Err(Reply::ok(self.inner.writer.discover(&request.id, &features, instructions.as_deref())))
    }

    fn welcome(&self, connection: &Connection, id: &Id<'_>) -> Reply {
        let (features, instructions) = (connection.handler.features(), connection.handler.instructions());
        Reply::ok(self.inner.writer.initialize(id, connection.version, &features, instructions.as_deref()))
    }

    fn reply(&self, id: &Id<'_>, running: &RunningRequest, outcome: Outcome) -> Reply {
        let (kind, version) = (running.kind, running.channel.version());
        let context = ResponseContext { kind, version, capabilities: running.channel.capabilities() };
        let reply = match self.inner.writer.ended(id, &context, outcome.result) {
            Ok(text) => Reply::ok(text),
            Err(error) if version.is_modern() => Reply::error(modern::status(&error), Some(id), &error),
            Err(error) => Reply::error(StatusCode::OK, Some(id), &error),
        };
        Reply { receipt: outcome.receipt, ..reply }
    }
}

/// The refusal of an array where a single message is due.
fn no_batches() -> ErrorObject {
    ErrorObject::invalid_request("batches exist only in sessions of 2025-03-26; send one message at a time")
}

#[cfg(test)]
mod tests;
