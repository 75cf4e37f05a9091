//! A live connection to a server.

use super::{
    core::{Ask, Core},
    detect, listen,
    types::{About, Failure, ForwardRequest, ListKind, Protocol, Target},
};
use crate::{
    exchange::{LogLevel, RequestContext},
    raw,
};
use gantry_core::Permit;
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, timeout};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

/// Connects to a server: reaches it, finds out its era, and shakes hands where that is due.
///
/// `known` is the era it spoke last time; it is tried first and found out anew when it does not fit.
///
/// # Errors
/// Why the server cannot be used, in words for a person.
pub async fn connect(target: &Target, known: Protocol) -> Result<Connection, Failure> {
    let stop = CancellationToken::new();
    let establish = async { Core::start(detect::reach(target, known).await?, stop.clone()).await };
    let (core, wishes) = timeout(target.startup_timeout, establish).await.unwrap_or_else(|_| {
        let limit = target.startup_timeout.as_millis();
        let what =
            format!("the server did not answer within {limit} ms; raise startupTimeoutMs if it is slow");
        Err(Failure::Unavailable(what))
    })?;
    let listening = TaskTracker::new();
    if core.modern() {
        let (core, stop) = (Arc::clone(&core), stop.clone());
        listening.spawn(async move {
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                _ = core.dispatcher().ended() => {}
                () = listen::run(Arc::clone(&core), wishes) => {}
            }
        });
    }
    listening.close();
    Ok(Connection { core, listening, stop: stop.drop_guard() })
}

/// A live connection to a server. It ends when it is dropped or closed, or when [`Connection::closed`] returns.
#[derive(Debug)]
pub struct Connection {
    core: Arc<Core>,
    /// The task that hears what the server says without being asked.
    listening: TaskTracker,
    stop: DropGuard,
}

impl Connection {
    /// What the server says about itself.
    #[must_use]
    pub fn about(&self) -> &About {
        &self.core.about
    }

    /// Asks for everything of a kind, page by page, bounded in number and size; items as the server sent them.
    ///
    /// # Errors
    /// The server cannot be asked, or answers with something else than a list.
    pub async fn list(&self, kind: ListKind) -> Result<Vec<Box<str>>, Failure> {
        self.core.list(kind).await
    }

    /// Runs the tool of this permit with the arguments of this permit, and waits for its result, the text of an object
    /// as the server sent it. `meta` is what the client said in `_meta`, as in [`ForwardRequest`].
    ///
    /// There is no other way to run a tool: the methods that [`Self::request`] takes do not name one.
    /// ```compile_fail
    /// # use gantry_mcp::{RequestContext, client::{Connection, ForwardRequest}};
    /// async fn bypass(connection: &Connection, context: RequestContext) {
    ///     let request = ForwardRequest { method: "tools/call", params: "{}".into(), meta: None, context };
    ///     connection.request(request).await.ok();
    /// }
    /// ```
    /// ```
    /// # use gantry_mcp::{ForwardMethod, RequestContext, client::{Connection, ForwardRequest}};
    /// async fn read(connection: &Connection, context: RequestContext) {
    ///     let request = ForwardRequest { method: ForwardMethod::ReadResource, params: "{}".into(), meta: None, context };
    ///     connection.request(request).await.ok();
    /// }
    /// ```
    ///
    /// Cancel-safety: dropping the future withdraws the request, and the server is told.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn call(
        &self,
        permit: &Permit,
        meta: Option<&str>,
        turn: RequestContext,
    ) -> Result<String, Failure> {
        let name = raw::quoted(&permit.tool().key.tool);
        let params = raw::object([("name", name.as_str()), ("arguments", permit.arguments())]);
        self.send("tools/call", &params, meta, turn).await
    }

    /// Sends a request and waits for its result, the text of an object as the server sent it.
    ///
    /// Cancel-safety: dropping the future withdraws the request, and the server is told.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn request(&self, request: ForwardRequest) -> Result<String, Failure> {
        let ForwardRequest { method, params, meta, context } = request;
        self.send(method.as_str(), &params, meta.as_deref(), context).await
    }

    async fn send(
        &self,
        method: &str,
        params: &str,
        meta: Option<&str>,
        turn: RequestContext,
    ) -> Result<String, Failure> {
        let RequestContext { client: audience, cancel } = turn;
        if cancel.is_cancelled() {
            return Err(Failure::Canceled);
        }
        let core = &self.core;
        let token = audience.wants_progress().then(|| core.dispatcher().progress_token(&audience));
        let ask = Ask {
            method,
            params,
            meta,
            token: token.as_ref().map(|token| token.token),
            audience: Some(&audience),
            cancel: &cancel,
        };
        if core.modern() {
            core.ask_in_rounds(ask, &*audience).await
        } else if core.needs(ask).is_some_and(|needs| needs.task) {
            core.ask_as_task(ask).await
        } else {
            core.ask(ask).await
        }
    }

    /// Asks whether the server is there (`ping`, or `server/discover` where there is no ping), and how long it took.
    ///
    /// # Errors
    /// No answer came in time, or the connection is closed.
    pub async fn ping(&self, limit: Duration) -> Result<Duration, Failure> {
        let started = Instant::now();
        let method = if self.core.modern() { "server/discover" } else { "ping" };
        match timeout(limit, self.core.own(method, "{}")).await {
            // Whoever refuses is there.
            Ok(Ok(_) | Err(Failure::Answered(_))) => Ok(started.elapsed()),
            Ok(Err(failure)) => Err(failure),
            Err(_) => Err(Failure::Lost(format!("no answer to {method} within {} ms", limit.as_millis()))),
        }
    }

    /// Wants to hear, or no longer, when this resource changes (the server's own URI).
    ///
    /// # Errors
    /// The server does not take it.
    pub async fn watch(&self, uri: &str, on: bool) -> Result<(), Failure> {
        self.core.watch(uri, on).await
    }

    /// From which level on the server is to send log messages. In the newer era every request says that for itself.
    ///
    /// # Errors
    /// The server does not take it.
    pub async fn set_log_level(&self, level: LogLevel) -> Result<(), Failure> {
        self.core.set_log_level(level).await
    }

    /// Requests that are under way.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.core.dispatcher().in_flight()
    }

    /// Waits until the connection has ended, and says why.
    pub async fn closed(&self) -> String {
        self.core.dispatcher().ended().await
    }

    /// Ends the connection in an orderly way (a legacy session is deleted, a process is let go).
    pub async fn close(&self) {
        // A subscription that is open keeps some servers from ending.
        self.stop.token().cancel();
        self.listening.wait().await;
        self.core.link.close().await;
    }
}
