//! A live connection to a server.

use super::handshake::{self, Handshake};
use super::http;
use super::inner::{ConnectionInner, OutgoingRequest};
use super::subscriptions::{self, Subscriptions};
use super::tools::ToolCallHints;
use super::types::{Answer, ForwardRequest, ListKind, Protocol, Target, UpstreamError, UpstreamInfo};
use crate::exchange::RequestContext;
use crate::raw;
use gantry_core::Permit;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// Connects to a server: reaches it, finds out its era, and completes the handshake.
///
/// `known` is the era that the server spoke last; it is tried first. Afterwards it is the one to try first next time,
/// also if the future was dropped.
pub async fn connect(target: &Target, known: &mut Protocol) -> Result<Connection, UpstreamError> {
    let limit = target.startup_timeout;
    let handshake = timeout(limit, handshake::connect(target, known)).await.unwrap_or_else(|_| {
        let limit = limit.as_millis();
        Err(UpstreamError::NotSent(format!(
            "the server did not answer within {limit} ms; raise startupTimeoutMs if it is slow"
        )))
    });
    let Handshake { link, info } = handshake?;
    let (tools, subscriptions) = (ToolCallHints::default(), Subscriptions::default());
    let inner = Arc::new(ConnectionInner { link, info, tools, subscriptions });
    let (stop, listening) = (CancellationToken::new(), TaskTracker::new());
    if inner.is_modern() {
        let (inner, stop) = (Arc::clone(&inner), stop.clone());
        listening.spawn(async move {
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                _ = inner.dispatcher().ended() => {}
                () = subscriptions::run(Arc::clone(&inner)) => {}
            }
        });
    }
    listening.close();
    Ok(Connection { inner, listening, stop: stop.drop_guard() })
}

/// A live connection to a server. It ends when it is dropped or closed, or when [`Connection::closed`] returns.
#[derive(Debug)]
pub struct Connection {
    pub(super) inner: Arc<ConnectionInner>,
    /// The task that keeps `subscriptions/listen` open.
    listening: TaskTracker,
    stop: DropGuard,
}

impl Connection {
    #[must_use]
    pub fn info(&self) -> &UpstreamInfo {
        &self.inner.info
    }

    /// Lists everything of a kind, page by page, bounded in number and size; items as the server sent them.
    pub async fn list(&self, kind: ListKind) -> Result<Vec<Box<str>>, UpstreamError> {
        self.inner.list(kind).await
    }

    /// Runs the tool of this permit with the arguments of this permit, and waits for its result, the text of an object
    /// as the server sent it. `meta` is the `_meta` of the client, as in [`ForwardRequest`].
    ///
    /// There is no other way to run a tool: the methods that [`Self::request`] takes do not name one.
    ///
    /// Cancel-safety: dropping the future cancels the request at the server.
    pub async fn call(&self, permit: &Permit, meta: Option<&str>, context: &RequestContext) -> Answer {
        let name = raw::quoted(&permit.tool().key.tool);
        let params = raw::object([("name", name.as_str()), ("arguments", permit.arguments())]);
        self.send("tools/call", &params, meta, context).await
    }

    /// Sends a request and waits for its result, the text of an object as the server sent it.
    ///
    /// Cancel-safety: dropping the future cancels the request at the server.
    pub async fn request(&self, request: &ForwardRequest) -> Answer {
        let ForwardRequest { method, params, meta, context } = request;
        self.send(method.as_str(), params, meta.as_deref(), context).await
    }

    async fn send(&self, method: &str, params: &str, meta: Option<&str>, context: &RequestContext) -> Answer {
        let RequestContext { client, cancel } = context;
        if cancel.is_cancelled() {
            return Err(UpstreamError::Canceled);
        }
        let inner = &self.inner;
        let request =
            OutgoingRequest { method, params, meta, progress_token: None, client: Some(client), cancel };
        if inner.is_modern() {
            inner.request_with_input(request, &**client).await
        } else if inner.hints(request).is_some_and(|hints| hints.task) {
            inner.call_as_task(request, client).await
        } else {
            inner.request(request).await
        }
    }

    /// Asks whether the server is there (`ping`, or `server/discover` of a modern one), and returns how long it took.
    ///
    /// # Errors
    /// No answer came in time, or the connection is closed.
    pub async fn ping(&self, limit: Duration) -> Result<Duration, UpstreamError> {
        let started = Instant::now();
        let method = if self.inner.is_modern() { "server/discover" } else { "ping" };
        match timeout(limit, self.inner.own(method, "{}")).await {
            // A server that refuses is there.
            Ok(Ok(_) | Err(UpstreamError::Rpc(_))) => Ok(started.elapsed()),
            Ok(Err(error)) => Err(error),
            Err(_) => {
                let what = format!("no answer to {method} within {} ms", limit.as_millis());
                Err(UpstreamError::OutcomeUnknown(what))
            }
        }
    }

    /// Whether the connection takes no further request.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.inner.dispatcher().has_ended()
    }

    /// Whether the connection has ended because the server no longer knows its session.
    #[must_use]
    pub fn has_lost_session(&self) -> bool {
        self.has_ended() && self.inner.dispatcher().why_ended() == http::SESSION_LOST
    }

    pub async fn closed(&self) -> String {
        self.inner.dispatcher().ended().await
    }

    /// Ends the connection in an orderly way: a legacy session is deleted, a process gets time to end.
    pub async fn close(&self) {
        // An open subscription keeps some servers from ending.
        self.stop.token().cancel();
        self.listening.wait().await;
        self.inner.link.close().await;
    }
}
