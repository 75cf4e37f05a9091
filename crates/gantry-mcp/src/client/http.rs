//! Streamable HTTP: a POST per message, whose response is JSON or a stream of events.
//!
//! A legacy server has a session besides, a background stream for messages that belong to no request, and streams that
//! can be resumed after they broke. With a modern server each POST stands alone, and hanging up cancels the request.
//!
//! A session that the server no longer knows ends the connection for further requests: the owner of the connection
//! connects again, as after any other loss.

mod background;
mod response;

use super::dispatcher::Dispatcher;
use super::limits::{CLOSE_TIMEOUT, ERROR_BODY_BYTES, HANDLE_BYTES, POST_WAIT};
use super::message::{self, Message, Named};
use super::queue::{Frame, Frames};
use super::transport::{Call, HttpErrorResponse, TransportError};
use super::types::{Target, UpstreamError};
use crate::{Version, lock};
use bytes::Bytes;
use gantry_egress::{HttpClient, HttpError, HttpResponse};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use std::sync::{Arc, Mutex};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

/// Why a connection ends whose session is not known any more.
pub(super) const SESSION_LOST: &str = "the server does not know the session any more";

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const EVENT_STREAM: &str = "text/event-stream";

#[derive(Debug, Clone)]
pub(super) struct HttpEndpoint {
    pub(super) client: HttpClient,
    pub(super) url: String,
    pub(super) headers: HeaderMap,
}

impl HttpEndpoint {
    /// Reads what is configured. Nothing is sent.
    pub(super) fn new(url: &str, headers: &[(String, String)]) -> Result<Self, UpstreamError> {
        // Limit: the configuration is bounded.
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let wrong = |error: http::Error| {
                UpstreamError::NotSent(format!("headers.{name} cannot be sent: {error}"))
            };
            let key = HeaderName::try_from(name).map_err(|error| wrong(error.into()))?;
            let mut value = HeaderValue::try_from(value).map_err(|error| wrong(error.into()))?;
            value.set_sensitive(true);
            map.append(key, value);
        }
        Ok(Self { client: HttpClient::unguarded(), url: url.to_owned(), headers: map })
    }

    pub(super) async fn get(&self, mut headers: HeaderMap) -> Result<HttpResponse, HttpError> {
        headers.insert(header::ACCEPT, HeaderValue::from_static(EVENT_STREAM));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        self.client.send(Method::GET, &self.url, headers, Bytes::new()).await
    }

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

impl From<HttpError> for UpstreamError {
    fn from(error: HttpError) -> Self {
        let reason = error.to_string();
        if error.was_sent() { Self::OutcomeUnknown(reason) } else { Self::NotSent(reason) }
    }
}

impl From<HttpError> for TransportError {
    fn from(error: HttpError) -> Self {
        Self::Upstream(error.into())
    }
}

#[derive(Debug)]
pub(super) struct HttpLink {
    session: Arc<HttpSession>,
    /// The task that posts cancellations and answers.
    posting: TaskTracker,
}

#[derive(Debug)]
struct HttpSession {
    endpoint: HttpEndpoint,
    dispatcher: Arc<Dispatcher>,
    is_modern: bool,
    /// The session id that a legacy server gave, until the session is deleted.
    id: Mutex<Option<Arc<str>>>,
    version: Mutex<Option<Version>>,
}

impl HttpLink {
    /// A link in one of the eras. Nothing is sent yet.
    pub(super) fn new(frames: Frames, endpoint: HttpEndpoint, is_modern: bool) -> Self {
        let session = Arc::new(HttpSession {
            endpoint,
            dispatcher: Arc::clone(&frames.dispatcher),
            is_modern,
            id: Mutex::default(),
            version: Mutex::new(is_modern.then_some(Version::MODERN)),
        });
        let posting = TaskTracker::new();
        let poster = Arc::clone(&session);
        posting.spawn(async move { frames.for_each(|frame| poster.post_frame(frame)).await });
        posting.close();
        Self { session, posting }
    }

    pub(super) fn dispatcher(&self) -> &Arc<Dispatcher> {
        &self.session.dispatcher
    }

    pub(super) fn set_version(&self, version: Version) {
        *lock(&self.session.version) = Some(version);
    }

    pub(super) async fn call(&self, call: &Call<'_>) -> Result<String, TransportError> {
        let session = &self.session;
        let mut request = session.dispatcher.register(call.id, &call.client, call.own)?;
        // A handshake cannot be cancelled, and hanging up on a modern server says it all.
        request.is_cancellable = !session.is_modern && call.method != "initialize";
        let outcome = tokio::select! {
            biased;
            () = call.cancel.cancelled() => return Err(UpstreamError::Canceled.into()),
            outcome = session.exchange(&mut request, call) => outcome,
        };
        if outcome.as_ref().is_err_and(TransportError::is_outcome_unknown) {
            let error = UpstreamError::OutcomeUnknown("the answer got lost".into());
            session.dispatcher.fail(request.id, error);
        }
        request.is_cancellable = false;
        match outcome {
            Err(TransportError::Http(response)) if response.is_session_expired(call.own) => {
                session.dispatcher.refuse_requests(SESSION_LOST);
                Err(UpstreamError::NotSent(SESSION_LOST.into()).into())
            }
            outcome => outcome,
        }
    }

    pub(super) async fn notify(&self, text: String) -> Result<(), TransportError> {
        self.session.dispatcher.trace(true, &text);
        self.session.post(text).await
    }

    /// Opens the background stream of a legacy server, if it has one.
    pub(super) fn open_background(&self) {
        tokio::spawn(background::run(Arc::clone(&self.session)));
    }

    /// Deletes the session. After a loss, other requests may still run in it: each gets its own answer, and the session
    /// is deleted when the link is dropped.
    pub(super) async fn close(&self) {
        let dispatcher = &self.session.dispatcher;
        if dispatcher.has_ended() {
            return;
        }
        dispatcher.refuse_requests("the connection was closed");
        // A call cannot be cancelled in a deleted session.
        dispatcher.queue.close();
        if timeout(CLOSE_TIMEOUT, self.posting.wait()).await.is_err() {
            tracing::debug!(server = %dispatcher.target.name, "messages were still waiting to be sent");
        }
        if let Some(delete) = self.session.delete()
            && timeout(CLOSE_TIMEOUT, delete).await.is_err()
        {
            tracing::debug!(server = %dispatcher.target.name, "the session was not deleted in time");
        }
        dispatcher.end("the connection was closed");
    }
}

impl Drop for HttpLink {
    fn drop(&mut self) {
        if let (Some(delete), Ok(runtime)) = (self.session.delete(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(timeout(CLOSE_TIMEOUT, delete));
        }
        self.session.dispatcher.end("the connection was dropped");
    }
}

impl HttpSession {
    /// The headers of a message, and whether they name a session.
    fn headers(&self) -> (HeaderMap, bool) {
        let mut headers = self.endpoint.headers.clone();
        if let Some(version) = *lock(&self.version) {
            headers.insert(PROTOCOL_VERSION, HeaderValue::from_static(version.as_str()));
        }
        let id = lock(&self.id).as_deref().and_then(|id| HeaderValue::from_str(id).ok());
        let in_session = id.is_some();
        headers.extend(id.map(|id| (SESSION_ID, id)));
        (headers, in_session)
    }

    async fn post(&self, text: String) -> Result<(), TransportError> {
        let (headers, in_session) = self.headers();
        let response = self.endpoint.post(&self.endpoint.url, headers, text).await?;
        if response.status().is_success() {
            return Ok(());
        }
        Err(error_response(&self.dispatcher.target, response, in_session, None).await)
    }

    async fn post_frame(&self, frame: Frame) {
        let server = &self.dispatcher.target.name;
        match timeout(POST_WAIT, self.post(frame.text)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::debug!(%server, error = %UpstreamError::from(error), "a message was not taken");
            }
            Err(_) => tracing::debug!(%server, "a message was not taken in time"),
        }
    }

    /// Keeps the session id that came with a handshake.
    fn set_id(&self, response: &HttpResponse) {
        let id = response.headers().get(SESSION_ID).and_then(|id| id.to_str().ok());
        *lock(&self.id) = id.filter(|id| id.len() <= HANDLE_BYTES).map(Into::into);
    }

    /// Deletes the session, if there is one that was not deleted before.
    fn delete(&self) -> Option<impl Future<Output = ()> + Send + use<>> {
        let (headers, _) = self.headers();
        lock(&self.id).take()?;
        let endpoint = self.endpoint.clone();
        Some(async move {
            let deleted = endpoint.client.send(Method::DELETE, &endpoint.url, headers, Bytes::new()).await;
            tracing::debug!(deleted = ?deleted.map(|response| response.status()), "the session was deleted");
        })
    }
}

/// A response that is an error, to the request with this id if it was one.
pub(super) async fn error_response(
    target: &Target,
    response: HttpResponse,
    in_session: bool,
    request: Option<u64>,
) -> TransportError {
    let status = response.status();
    let body = response.body(ERROR_BODY_BYTES).await.unwrap_or_default();
    let excerpt = target.masked(&String::from_utf8_lossy(&body)).into_owned();
    let (named, error) = match message::read(&excerpt).and_then(|messages| messages.into_iter().next()) {
        Some(Message::Response { named, outcome: Err(error) }) => (named, Some(error)),
        _ => (Named::Nothing, None),
    };
    let names_request = request.is_some_and(|id| named == Named::Request(id));
    TransportError::Http(HttpErrorResponse { status, error, names_request, excerpt, in_session })
}
