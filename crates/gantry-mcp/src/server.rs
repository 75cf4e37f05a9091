//! Gantry as an MCP server, whatever the transport and whatever the version.
//!
//! A message is first *decided* (`legacy`, `modern`, `request`: plain functions from text to an answer or a job) and then
//! *run* (`running`, `live`), so that everything about the protocol can be read and tested without a connection. While
//! it runs, a job speaks to its client through `caller`; `http`, `sse` and `stdio` carry messages in and answers out.

mod answer;
mod body;
mod caller;
mod connection;
mod convert;
mod flight;
mod handler;
mod http;
mod lane;
mod legacy;
mod listen;
mod live;
mod modern;
mod news;
mod outbox;
mod params;
mod park;
mod presence;
mod questions;
mod replay;
mod request;
mod ring;
mod running;
mod sessions;
mod sse;
mod start;
mod stdio;

pub use body::{Body, EventStream};
pub use handler::{
    Answer, Change, ClientInfo, Features, Handler, Inquiry, Peer, ServerInfo, ToolAnswer, ToolCall,
};

use crate::{
    ErrorObject, Version,
    envelope::{Id, Message, Rejection, Request, failure},
    limits,
};
use ::http::{HeaderMap, StatusCode};
use answer::About;
use lane::{Lane, Reach};
use listen::Wanted;
use live::Live;
use params::Params;
use park::Parks;
use replay::Replay;
use request::Job;
use running::{Outcome, Subject};
use sessions::Sessions;
use sse::Doors;
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{sync::Semaphore, time::timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How long everything may take to close when the server stops: a connection drains for six seconds and then closes its
/// session.
const CLOSE_ALL: Duration = Duration::from_secs(15);

/// What can be chosen about a server.
#[derive(Debug, Clone)]
pub struct Options {
    /// HTTP sessions that are open at once; the one that was idle for longest makes room. Once an identity has a quarter
    /// of them, it makes room for itself.
    pub max_sessions: usize,
    /// How long an HTTP session may go without a request.
    pub session_idle: Duration,
    /// How long a modern client may keep a list before it asks again.
    pub list_ttl: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_sessions: limits::SESSIONS,
            session_idle: limits::SESSION_IDLE,
            // Clients that do not listen are not told when a list changes, so it must not be kept.
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
    doors: Doors<H::Identity>,
    /// Places for connections that carry messages both ways.
    connections: Arc<Semaphore>,
    parks: Parks<H::Identity>,
    closing: TaskTracker,
    /// Fires when streams that could go on for ever are to end.
    hang_up: CancellationToken,
    /// Tells clients apart; 0 is nobody.
    clients: AtomicU64,
    /// What is kept so that streams can be resumed.
    replay: Arc<Replay>,
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

/// What to do with a request.
#[derive(Debug)]
enum Step<W> {
    /// Send this.
    Answer(Reply),
    /// Do this and send what comes of it.
    Run(W),
}

/// What a modern request can ask for.
#[derive(Debug)]
enum Work {
    /// To do something once.
    Job(Job),
    /// To tell what happens until one side ends it.
    Listen(Id<'static>, Wanted),
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
        let inner = Inner {
            handler,
            about,
            sessions: Sessions::new(options.max_sessions, options.session_idle),
            doors: Doors::new(),
            connections: Arc::new(Semaphore::new(limits::CONNECTIONS)),
            parks: Parks::new(),
            closing: TaskTracker::new(),
            hang_up: CancellationToken::new(),
            clients: AtomicU64::new(0),
            replay: Arc::new(Replay::new(limits::REPLAY_BYTES)),
            ignored: AtomicU64::new(0),
        };
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

    /// Closes the HTTP sessions that were idle for too long, and lets go of requests whose clients did not come back
    /// with answers and of streams that ended a while ago. Call it every minute or so: only this frees what is kept for
    /// them.
    pub fn expire_idle(&self) {
        for entry in self.inner.sessions.take_idle() {
            self.dismiss(&entry);
        }
        self.inner.parks.sweep();
        self.inner.replay.sweep();
    }

    /// Ends every stream that waits for something to happen, and takes no more messages on connections. Call it when
    /// the server is to stop, so that nothing keeps connections open; what is running goes on. What waits for a client
    /// to come back with answers is cancelled: there is no door left to come back to.
    pub fn hang_up(&self) {
        self.inner.hang_up.cancel();
        self.inner.parks.close();
    }

    /// Closes all HTTP sessions and waits until the handler has closed every session, but not for ever. No message may
    /// follow.
    pub async fn shutdown(&self) {
        self.hang_up();
        for entry in self.inner.sessions.take_all() {
            self.dismiss(&entry);
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

    /// Ends an HTTP session that was taken out.
    fn dismiss(&self, entry: &sessions::Entry<H>) {
        entry.streams.end_all();
        entry.common.end();
        self.retire(Arc::clone(&entry.lane.session));
    }

    /// Closes a session in a task of its own, so that no hung-up client can interrupt it.
    fn retire(&self, session: Arc<H::Session>) {
        let inner = Arc::clone(&self.inner);
        self.in_background(async move { inner.handler.close(session).await });
    }

    /// Does something that [`Server::shutdown`] waits for.
    fn in_background(&self, work: impl Future<Output = ()> + Send + 'static) {
        // A server that outlives its runtime has no handler left to tell.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        drop(self.inner.closing.spawn_on(work, &runtime));
    }

    /// A number that no other client has.
    fn number(&self) -> u64 {
        self.inner.clients.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Takes a message of a legacy session that wants no answer.
    fn take(&self, lane: &Lane<H>, message: &Message<'_>) {
        match message {
            Message::Notification(notification) => {
                if let Some(id) = legacy::withdrawn(notification) {
                    lane.flights.withdraw(&id);
                }
            }
            Message::Response(response) => {
                if !lane.questions.answer(response) {
                    self.ignore();
                }
            }
            Message::Request(_) => {}
        }
    }

    /// Answers a batch of a 2025-03-26 session, one message after the other.
    async fn batch(
        &self,
        identity: &H::Identity,
        lane: &Lane<H>,
        messages: Vec<Result<Message<'_>, Rejection<'_>>>,
    ) -> Option<String> {
        let mut answers: Vec<String> = Vec::with_capacity(messages.len());
        for message in messages {
            match message {
                Ok(Message::Request(request)) => answers.push(self.batched(identity, lane, request).await),
                Ok(message) => self.take(lane, &message),
                Err(rejection) => answers.push(rejection.answer()),
            }
        }
        array(&answers)
    }

    /// Answers a batch for which there is no room. What wants no answer is taken all the same: it may make room.
    fn refuse_batch(
        &self,
        lane: &Lane<H>,
        messages: Vec<Result<Message<'_>, Rejection<'_>>>,
        error: &ErrorObject,
    ) -> Option<String> {
        let mut answers = Vec::with_capacity(messages.len());
        for message in messages {
            match message {
                Ok(Message::Request(request)) => answers.push(failure(Some(&request.id), error)),
                Ok(message) => self.take(lane, &message),
                Err(rejection) => answers.push(rejection.answer()),
            }
        }
        array(&answers)
    }

    /// Answers one request of a batch. Nothing but its answer has a place there.
    async fn batched(&self, identity: &H::Identity, lane: &Lane<H>, request: Request<'_>) -> String {
        let params = match Params::read(request.params) {
            Ok(params) => params,
            Err(error) => return failure(Some(&request.id), &error),
        };
        let job = match self.legacy_step(identity, lane, request, &params) {
            Step::Answer(reply) => return reply.text,
            Step::Run(job) => job,
        };
        match lane.flights.begin(&job.id) {
            Ok(flight) => {
                let caller = lane.caller(Reach::OnlyTheAnswer, job.wishes.clone());
                self.live(lane, job, caller, flight.token()).last().await.text
            }
            Err(error) => failure(Some(&job.id), &error),
        }
    }

    fn legacy_step(
        &self,
        identity: &H::Identity,
        lane: &Lane<H>,
        request: Request<'_>,
        params: &Params<'_>,
    ) -> Step<Job> {
        let features = || self.inner.handler.features(identity);
        legacy::step(request, params, lane.version, &lane.habits, features)
    }

    /// Decides what a modern request means; `headers` are absent on transports that have none.
    fn modern_step(
        &self,
        identity: &H::Identity,
        request: &Request<'_>,
        params: &Params<'_>,
        headers: Option<&HeaderMap>,
    ) -> Step<Work> {
        if let Err(error) = modern::check(request, params, headers) {
            return Step::Answer(Reply::error(StatusCode::BAD_REQUEST, Some(&request.id), &error));
        }
        let Inner { handler, about, .. } = &*self.inner;
        let features = || handler.features(identity);
        let understood = match &*request.method {
            "server/discover" => {
                let instructions = handler.instructions(identity);
                let text = about.discover(&request.id, &features(), instructions.as_deref());
                return Step::Answer(Reply::ok(text));
            }
            "subscriptions/listen" => Wanted::read(params, &request.id, &features())
                .map(|wanted| Work::Listen(request.id.clone().into_owned(), wanted)),
            method => request::task(method, params, Version::MODERN, features).map(|task| {
                let wishes = params.wishes();
                Work::Job(Job { id: request.id.clone().into_owned(), version: Version::MODERN, task, wishes })
            }),
        };
        match understood {
            Ok(work) => Step::Run(work),
            Err(error) => Step::Answer(Reply::error(modern::status(&error), Some(&request.id), &error)),
        }
    }

    /// The answer to a handshake.
    fn welcome(&self, identity: &H::Identity, id: &Id<'_>, version: Version) -> Reply {
        let Inner { handler, about, .. } = &*self.inner;
        let (features, instructions) = (handler.features(identity), handler.instructions(identity));
        Reply::ok(about.initialize(id, version, &features, instructions.as_deref()))
    }

    /// The answer to a request that has ended.
    fn reply(&self, id: &Id<'_>, about: &Subject, outcome: Outcome) -> Reply {
        match self.inner.about.ended(id, about, outcome) {
            Ok(text) => Reply::ok(text),
            Err(error) if about.version.is_modern() => Reply::error(modern::status(&error), Some(id), &error),
            Err(error) => Reply::error(StatusCode::OK, Some(id), &error),
        }
    }

    /// Counts an answer that nobody asked for.
    fn ignore(&self) {
        self.inner.ignored.fetch_add(1, Ordering::Relaxed);
        tracing::debug!("an MCP client sent an answer that nobody waits for");
    }
}

/// The answer to a batch; none if nothing in it wanted one.
fn array(answers: &[String]) -> Option<String> {
    (!answers.is_empty()).then(|| format!("[{}]", answers.join(",")))
}

/// The refusal of an array where a single message is due.
fn no_batches() -> ErrorObject {
    ErrorObject::invalid_request("batches exist only in sessions of 2025-03-26; send one message at a time")
}

#[cfg(test)]
mod tests;
