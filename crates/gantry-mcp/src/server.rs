//! Gantry as an MCP server, whatever the transport and whatever the version.
//!
//! A message is first *decided* (`legacy`, `modern`: plain functions from text to an answer or a job) and then
//! *run* here, so that everything about the protocol can be read and tested without a connection. `http` and
//! `stdio` carry messages in and answers out.

mod answer;
mod flight;
mod handler;
mod http;
mod legacy;
mod modern;
mod params;
mod sessions;
mod stdio;

pub use handler::{ClientInfo, Handler, Peer, ServerInfo, ToolAnswer, ToolCall};

use crate::{
    ErrorObject, Version,
    envelope::{Id, Message, Rejection, Request, failure},
    error::code,
    limits,
};
use ::http::{HeaderMap, StatusCode};
use answer::About;
use flight::Flights;
use futures_util::FutureExt as _;
use params::Params;
use sessions::Sessions;
use std::{
    fmt,
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// What can be chosen about a server.
#[derive(Debug, Clone)]
pub struct Options {
    /// HTTP sessions that are open at once; the one that was idle for longest makes room.
    pub max_sessions: usize,
    /// How long an HTTP session may go without a request.
    pub session_idle: Duration,
    /// How long a modern client may keep the list of tools before it asks again.
    pub list_ttl: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_sessions: limits::SESSIONS,
            session_idle: limits::SESSION_IDLE,
            // Nobody is told yet when the list changes, so it must not be kept.
            list_ttl: Duration::ZERO,
        }
    }
}

/// An MCP server for all connections of one handler. Clones share everything.
pub struct Server<H: Handler> {
    inner: Arc<Inner<H>>,
}

struct Inner<H: Handler> {
    handler: H,
    about: About,
    sessions: Sessions<H>,
    closing: TaskTracker,
    ignored: AtomicU64,
}

impl<H: Handler> Clone for Server<H> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<H: Handler> fmt::Debug for Server<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("sessions", &self.sessions()).finish_non_exhaustive()
    }
}

/// A session and what is needed to run requests in it.
struct Lane<H: Handler> {
    session: Arc<H::Session>,
    version: Version,
    flights: Flights,
}

/// A request that was understood.
#[derive(Debug)]
struct Job {
    id: Id<'static>,
    version: Version,
    task: Task,
}

/// What a request asks of the handler.
#[derive(Debug)]
enum Task {
    List,
    Call(ToolCall),
}

/// What to do with a request.
#[derive(Debug)]
enum Step {
    /// Send this.
    Answer(Reply),
    /// Do this and send what comes of it.
    Run(Job),
}

/// An answer and the HTTP status that goes with it.
#[derive(Debug)]
struct Reply {
    status: StatusCode,
    text: String,
}

impl Reply {
    fn ok(text: String) -> Self {
        Self { status: StatusCode::OK, text }
    }

    fn error(status: StatusCode, id: Option<&Id<'_>>, error: &ErrorObject) -> Self {
        Self { status, text: failure(id, error) }
    }
}

impl<H: Handler> Server<H> {
    /// A server in front of a handler.
    pub fn new(handler: H, options: &Options) -> Self {
        let about = About::new(&handler.server_info(), options.list_ttl);
        let sessions = Sessions::new(options.max_sessions, options.session_idle);
        let inner =
            Inner { handler, about, sessions, closing: TaskTracker::new(), ignored: AtomicU64::new(0) };
        Self { inner: Arc::new(inner) }
    }

    /// The handler behind this server.
    #[must_use]
    pub fn handler(&self) -> &H {
        &self.inner.handler
    }

    /// HTTP sessions that are open.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.inner.sessions.len()
    }

    /// Answers that clients sent although nothing had been asked of them; they were dropped.
    #[must_use]
    pub fn ignored(&self) -> u64 {
        self.inner.ignored.load(Ordering::Relaxed)
    }

    /// Closes the HTTP sessions that were idle for too long. Call it every minute or so: an idle session is not
    /// found any more, but only this frees what the handler keeps for it.
    pub fn expire_idle(&self) {
        for entry in self.inner.sessions.take_idle() {
            self.retire(Arc::clone(&entry.lane.session));
        }
    }

    /// Closes all HTTP sessions and waits until the handler has closed every session. No message may follow.
    pub async fn shutdown(&self) {
        for entry in self.inner.sessions.take_all() {
            self.retire(Arc::clone(&entry.lane.session));
        }
        self.inner.closing.close();
        self.inner.closing.wait().await;
    }

    /// Closes a session in a task of its own, so that no hung-up client can interrupt it.
    fn retire(&self, session: Arc<H::Session>) {
        // A server that outlives its runtime has no handler left to tell.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let inner = Arc::clone(&self.inner);
        let closing = async move { inner.handler.close(session).await };
        drop(self.inner.closing.spawn_on(closing, &runtime));
    }

    /// Answers one message of a legacy session.
    async fn legacy(&self, lane: &Lane<H>, message: Message<'_>) -> Option<String> {
        match message {
            Message::Request(request) => {
                let text = match Params::read(request.params) {
                    Ok(params) => self.legacy_request(lane, request, &params).await.text,
                    Err(error) => failure(Some(&request.id), &error),
                };
                Some(text)
            }
            Message::Notification(notification) => {
                if let Some(id) = legacy::withdrawn(&notification) {
                    lane.flights.withdraw(&id);
                }
                None
            }
            Message::Response(_) => {
                self.ignore();
                None
            }
        }
    }

    /// Answers a batch of a 2025-03-26 session, one message after the other.
    async fn batch(
        &self,
        lane: &Lane<H>,
        messages: Vec<Result<Message<'_>, Rejection<'_>>>,
    ) -> Option<String> {
        let mut answers: Vec<String> = Vec::with_capacity(messages.len());
        for message in messages {
            match message {
                Ok(message) => answers.extend(self.legacy(lane, message).await),
                Err(rejection) => answers.push(rejection.answer()),
            }
        }
        (!answers.is_empty()).then(|| format!("[{}]", answers.join(",")))
    }

    async fn legacy_request(&self, lane: &Lane<H>, request: Request<'_>, params: &Params<'_>) -> Reply {
        match legacy::step(request, params, lane.version) {
            Step::Answer(reply) => reply,
            Step::Run(job) => match lane.flights.begin(&job.id) {
                Ok(flight) => self.run(&lane.session, job, flight.token()).await,
                Err(error) => Reply::error(StatusCode::OK, Some(&job.id), &error),
            },
        }
    }

    /// Decides what a modern request means; `headers` are absent on transports that have none.
    fn modern_step(
        &self,
        identity: &H::Identity,
        request: Request<'_>,
        params: &Params<'_>,
        headers: Option<&HeaderMap>,
    ) -> Step {
        if let Err(error) = modern::check(&request, params, headers) {
            return Step::Answer(Reply::error(StatusCode::BAD_REQUEST, Some(&request.id), &error));
        }
        if request.method == "server/discover" {
            let instructions = self.inner.handler.instructions(identity);
            return Step::Answer(Reply::ok(self.inner.about.discover(&request.id, instructions.as_deref())));
        }
        match modern::task(&request.method, params) {
            Ok(task) => Step::Run(Job { id: request.id.into_owned(), version: Version::MODERN, task }),
            Err(error) => Step::Answer(Reply::error(modern::status(&error), Some(&request.id), &error)),
        }
    }

    /// The answer to a handshake.
    fn welcome(&self, identity: &H::Identity, id: &Id<'_>, version: Version) -> Reply {
        let instructions = self.inner.handler.instructions(identity);
        Reply::ok(self.inner.about.initialize(id, version, instructions.as_deref()))
    }

    /// Does a job and writes its answer. A handler that panics costs its own request and nothing else.
    async fn run(&self, session: &Arc<H::Session>, job: Job, cancel: CancellationToken) -> Reply {
        let Job { id, version, task } = job;
        let outcome =
            AssertUnwindSafe(self.perform(session, &id, version, task, cancel)).catch_unwind().await;
        let outcome = outcome.unwrap_or_else(|_panic| {
            tracing::error!(id = id.text(), "the handler of an MCP request panicked");
            Err(ErrorObject::new(code::INTERNAL_ERROR, "internal error; the call may have had an effect"))
        });
        match outcome {
            Ok(text) => Reply::ok(text),
            Err(error) if version.is_modern() => Reply::error(modern::status(&error), Some(&id), &error),
            Err(error) => Reply::error(StatusCode::OK, Some(&id), &error),
        }
    }

    async fn perform(
        &self,
        session: &Arc<H::Session>,
        id: &Id<'_>,
        version: Version,
        task: Task,
        cancel: CancellationToken,
    ) -> Result<String, ErrorObject> {
        let Inner { handler, about, .. } = &*self.inner;
        match task {
            Task::List => Ok(about.tools(id, version, &handler.list_tools(session, version).await?)),
            Task::Call(call) => {
                Ok(about.called(id, version, &handler.call_tool(session, call, cancel).await?))
            }
        }
    }

    /// Counts an answer that nobody asked for.
    fn ignore(&self) {
        self.inner.ignored.fetch_add(1, Ordering::Relaxed);
        tracing::debug!("an MCP client sent an answer that nobody waits for");
    }
}

/// The refusal of an array where a single message is due.
fn no_batches() -> ErrorObject {
    ErrorObject::invalid_request("batches exist only in sessions of 2025-03-26; send one message at a time")
}

#[cfg(test)]
mod tests;
