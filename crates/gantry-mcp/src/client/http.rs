//! Streamable HTTP: a POST per message, whose answer is JSON or a stream of events.
//!
//! In the older era there is a session besides, a background stream for what belongs to no request, and streams that
//! broke can be taken up again. In the newer one each POST stands alone, and hanging up withdraws it.

mod answer;
mod background;

use super::{
    dispatcher::{Dispatcher, Outbox, lock},
    limits::{ERROR_BODY_BYTES, HANDLE_BYTES, LAST_WORDS, POST_WAIT, POSTS, POSTS_WAITING},
    link::{Call, Refusal, Trouble},
    message::{self, Message, Named},
    types::Failure,
};
use crate::Version;
use bytes::Bytes;
use gantry_egress::{HttpClient, HttpError, HttpResponse};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use std::sync::{Arc, Mutex};
use tokio::{sync::Semaphore, time::timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const EVENT_STREAM: &str = "text/event-stream";

/// A server behind an address, and how to talk to it.
#[derive(Debug, Clone)]
pub(super) struct Site {
    pub(super) client: HttpClient,
    pub(super) url: String,
    pub(super) headers: HeaderMap,
}

impl Site {
    /// Reads what is configured. Nothing is sent.
    pub(super) fn new(url: &str, headers: &[(String, String)]) -> Result<Self, Failure> {
        let unusable = |what: String| Failure::Unavailable(what);
        // Limit: the configuration is bounded.
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let wrong = |error: http::Error| unusable(format!("headers.{name} cannot be sent: {error}"));
            let key = HeaderName::try_from(name).map_err(|error| wrong(error.into()))?;
            let mut value = HeaderValue::try_from(value).map_err(|error| wrong(error.into()))?;
            value.set_sensitive(true);
            map.append(key, value);
        }
        Ok(Self { client: HttpClient::unguarded(), url: url.to_owned(), headers: map })
    }

    /// Opens a stream of events.
    pub(super) async fn get(&self, mut headers: HeaderMap) -> Result<HttpResponse, HttpError> {
        headers.insert(header::ACCEPT, HeaderValue::from_static(EVENT_STREAM));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        self.client.send(Method::GET, &self.url, headers, Bytes::new()).await
    }

    /// Posts a message to `url`.
    pub(super) async fn post(
        &self,
        url: &str,
        mut headers: HeaderMap,
        text: String,
    ) -> Result<HttpResponse, HttpError> {
        let both = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(header::ACCEPT, both);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.client.send(Method::POST, url, headers, text.into()).await
    }
}

impl From<HttpError> for Failure {
    fn from(error: HttpError) -> Self {
        if error.was_sent() { Self::Lost(error.to_string()) } else { Self::Unavailable(error.to_string()) }
    }
}

impl From<HttpError> for Trouble {
    fn from(error: HttpError) -> Self {
        Self::Failure(error.into())
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct HttpLink {
    side: Arc<Side>,
    outbox: Arc<dyn Outbox>,
    /// Keeps the background stream of this session open, and of no other.
    background: Mutex<Option<DropGuard>>,
}

/// What the tasks of a link share.
#[derive(Debug)]
struct Side {
    site: Site,
    dispatcher: Arc<Dispatcher>,
    /// The newer era is spoken.
    modern: bool,
    session: Mutex<Session>,
    posts: Semaphore,
    posts_waiting: Arc<Semaphore>,
}

/// What a handshake led to.
#[derive(Debug, Clone, Default)]
struct Session {
    id: Option<Arc<str>>,
    version: Option<Version>,
    /// The link was closed: what would be sent now would name no session.
    over: bool,
}

#[derive(Debug)]
struct PostOutbox(Arc<Side>);

impl Outbox for PostOutbox {
    fn post(&self, text: String) {
        let side = Arc::clone(&self.0);
        let server = Arc::clone(&side.dispatcher.target.name);
        // Without a runtime everything is over, and there is nobody to tell anything.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let Ok(place) = Arc::clone(&side.posts_waiting).try_acquire_owned() else {
            tracing::warn!(%server, "a message was dropped, {POSTS_WAITING} others wait to be sent");
            return;
        };
        runtime.spawn(async move {
            let turn = side.posts.acquire().await;
            match timeout(POST_WAIT, side.notify(text)).await {
                Ok(Ok(())) => {}
                Ok(Err(trouble)) => {
                    tracing::debug!(%server, failure = %Failure::from(trouble), "a message was not taken");
                }
                Err(_) => tracing::debug!(%server, "a message was not taken in time"),
            }
            drop((turn, place));
        });
    }
}

impl HttpLink {
    /// A link in one of the eras. Nothing is sent yet.
    pub(super) fn new(dispatcher: &Arc<Dispatcher>, site: Site, modern: bool) -> Self {
        let side = Arc::new(Side {
            site,
            dispatcher: Arc::clone(dispatcher),
            modern,
            session: Mutex::new(Session { version: modern.then_some(Version::MODERN), ..Session::default() }),
            posts: Semaphore::new(POSTS),
            posts_waiting: Arc::new(Semaphore::new(POSTS_WAITING)),
        });
        let outbox = Arc::new(PostOutbox(Arc::clone(&side)));
        Self { side, outbox, background: Mutex::default() }
    }

    pub(super) fn dispatcher(&self) -> &Arc<Dispatcher> {
        &self.side.dispatcher
    }

    /// From now on this version is spoken.
    pub(super) fn agree(&self, version: Version) {
        lock(&self.side.session).version = Some(version);
    }

    /// Whether this is still the session. Requests name it until another one is there, and are refused.
    pub(super) fn is_session(&self, id: &str) -> bool {
        lock(&self.side.session).id.as_deref() == Some(id)
    }

    /// Sends a request and waits for its result.
    pub(super) async fn call(&self, call: &Call<'_>) -> Result<String, Trouble> {
        let side = &self.side;
        // A handshake cannot be withdrawn, and in the newer era hanging up says it all.
        let tell = !side.modern && call.method != "initialize";
        let withdrawal = tell.then(|| Arc::clone(&self.outbox));
        let mut ticket = side.dispatcher.register(Arc::clone(&call.audience), call.own, withdrawal)?;
        let outcome = tokio::select! {
            biased;
            () = call.cancel.cancelled() => return Err(Failure::Canceled.into()),
            outcome = side.exchange(&mut ticket, call, &self.outbox) => outcome,
        };
        if outcome.as_ref().is_err_and(Trouble::is_lost) {
            side.dispatcher.fail(ticket.id, Failure::Lost("the answer got lost".into()));
        }
        ticket.forget();
        outcome
    }

    /// Sends a message that has no answer.
    pub(super) async fn notify(&self, text: String) -> Result<(), Trouble> {
        self.side.notify(text).await
    }

    /// Opens the background stream of the older era, if the server has one, instead of the one that was open.
    pub(super) fn open_background(&self) {
        let stop = CancellationToken::new();
        tokio::spawn(background::run(Arc::clone(&self.side), Arc::clone(&self.outbox), stop.clone()));
        *lock(&self.background) = Some(stop.drop_guard());
    }

    /// Lets the background stream go, because its session is gone.
    pub(super) fn close_background(&self) {
        drop(lock(&self.background).take());
    }

    /// Deletes a session that is no longer ours. Does not wait.
    pub(super) fn forget_session(&self, id: &str) {
        let session = Session { id: Some(id.into()), ..self.side.session() };
        tokio::spawn(timeout(LAST_WORDS, self.side.delete(&session)));
    }

    /// Ends the session.
    pub(super) async fn close(&self) {
        self.close_background();
        self.side.all_posted().await;
        if let Some(end) = self.side.end_session()
            && timeout(LAST_WORDS, end).await.is_err()
        {
            tracing::debug!(server = %self.side.dispatcher.target.name, "the session was not ended in time");
        }
    }
}

impl Drop for HttpLink {
    fn drop(&mut self) {
        if let (Some(end), Ok(runtime)) = (self.side.end_session(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(timeout(LAST_WORDS, end));
        }
        self.side.dispatcher.end("the connection was dropped");
    }
}

impl Side {
    fn session(&self) -> Session {
        lock(&self.session).clone()
    }

    /// The session, unless the link was closed.
    fn open_session(&self) -> Result<Session, Failure> {
        let session = self.session();
        if session.over { Err(Failure::Unavailable("the connection is closed".into())) } else { Ok(session) }
    }

    /// Waits until what was to be sent is sent, for a while: a call cannot be withdrawn in a session that has ended.
    async fn all_posted(&self) {
        let places = u32::try_from(POSTS_WAITING).unwrap_or(u32::MAX);
        if timeout(LAST_WORDS, self.posts_waiting.acquire_many(places)).await.is_err() {
            tracing::debug!(server = %self.dispatcher.target.name, "messages were still waiting to be sent");
        }
    }

    /// The headers of a message.
    fn headers(&self, session: &Session) -> HeaderMap {
        let mut headers = self.site.headers.clone();
        if let Some(version) = session.version {
            headers.insert(PROTOCOL_VERSION, HeaderValue::from_static(version.as_str()));
        }
        if let Some(id) = session.id.as_deref().and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.insert(SESSION_ID, id);
        }
        headers
    }

    async fn notify(&self, text: String) -> Result<(), Trouble> {
        let session = self.open_session()?;
        self.dispatcher.trace(true, &text);
        let response = self.site.post(&self.site.url, self.headers(&session), text).await?;
        if response.status().is_success() { Ok(()) } else { Err(refusal(response, session.id, None).await) }
    }

    /// A session id that came with a handshake.
    fn remember_session(&self, response: &HttpResponse) {
        let id = response.headers().get(SESSION_ID).and_then(|id| id.to_str().ok());
        lock(&self.session).id = id.filter(|id| id.len() <= HANDLE_BYTES).map(Into::into);
    }

    /// Deletes the session, if there is one.
    fn end_session(&self) -> Option<impl Future<Output = ()> + Send + use<>> {
        let over = Session { over: true, ..Session::default() };
        let session = std::mem::replace(&mut *lock(&self.session), over);
        session.id.is_some().then(|| self.delete(&session))
    }

    fn delete(&self, session: &Session) -> impl Future<Output = ()> + Send + use<> {
        let headers = self.headers(session);
        let site = self.site.clone();
        async move {
            let deleted = site.client.send(Method::DELETE, &site.url, headers, Bytes::new()).await;
            tracing::debug!(deleted = ?deleted.map(|response| response.status()), "the session was ended");
        }
    }
}

/// An answer that is an error, to the request with this id if it was one.
pub(super) async fn refusal(
    response: HttpResponse,
    session: Option<Arc<str>>,
    request: Option<u64>,
) -> Trouble {
    let status = response.status();
    let body = response.body(ERROR_BODY_BYTES).await.unwrap_or_default();
    let excerpt = String::from_utf8_lossy(&body).into_owned();
    let (named, error) = match message::read(&excerpt).and_then(|messages| messages.into_iter().next()) {
        Some(Message::Response { named, outcome: Err(error) }) => (named, Some(error)),
        _ => (Named::Nothing, None),
    };
    let names_request = request.is_some_and(|id| named == Named::Request(id));
    Trouble::Status(Refusal { status, error, names_request, excerpt, session })
}
