//! MCP over HTTP: one endpoint that takes a message per POST and answers it with JSON, or with events when the client
//! gets messages before the response.
//!
//! The caller has authenticated the client and checked the host, the origin and the size of the body. Errors of a legacy
//! session come with status 200, because its clients read an error object only there; errors of the transport itself
//! (no JSON, no session) have their own status.

mod legacy;
mod modern;

use super::sessions::HttpSession;
use super::{Body, Handler, Reply, Server, modern as era};
use crate::envelope::{self, Batch, Id, Message, Notification, Request};
use crate::{ErrorObject, Version};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use std::sync::Arc;

const SESSION_HEADER: HeaderName = HeaderName::from_static("mcp-session-id");
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// The response to a message; the error is one that refuses it.
type Answer = Result<Response<Body>, Reply>;

impl Server {
    /// Answers a POST.
    ///
    /// Cancel-safety: dropping the future, or the body of events that it returned, cancels a modern request, as its
    /// protocol says. It does not cancel a legacy one.
    pub async fn post(&self, headers: &HeaderMap, handler: &Arc<dyn Handler>, body: Bytes) -> Response<Body> {
        let accept = Accept::read(headers);
        if let Some(refusal) = unsuitable(headers, accept) {
            return refusal;
        }
        let answer = match envelope::read(&body) {
            Ok(Message::Request(request)) => self.post_request(headers, accept, handler, request).await,
            Ok(Message::Notification(notification)) => self.post_notification(headers, handler, notification),
            Ok(message @ Message::Response(_)) => self.post_without_response(headers, handler, &message),
            Ok(Message::Batch(batch)) => self.post_batch(headers, handler, &batch).await,
            Err(rejection) => Ok(json(StatusCode::BAD_REQUEST, rejection.response())),
        };
        answer.unwrap_or_else(Response::from)
    }

    /// Answers a GET: a legacy client opens the stream of its session, or resumes a stream that broke.
    #[must_use]
    pub fn get(&self, headers: &HeaderMap, handler: &Arc<dyn Handler>) -> Response<Body> {
        if !headers.contains_key(SESSION_HEADER) {
            return self.other_method();
        }
        if !Accept::read(headers).takes_events() {
            let error = ErrorObject::invalid_request("a GET is answered with text/event-stream; accept it");
            return refuse(StatusCode::NOT_ACCEPTABLE, None, &error);
        }
        let session = self.session(headers, handler, None);
        session.and_then(|session| self.get_stream(headers, &session)).unwrap_or_else(Response::from)
    }

    #[must_use]
    pub fn other_method(&self) -> Response<Body> {
        let mut response = empty(StatusCode::METHOD_NOT_ALLOWED);
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, POST, DELETE"));
        response
    }

    /// Answers a DELETE: a legacy client ends its session.
    #[must_use]
    pub fn delete(&self, headers: &HeaderMap, handler: &Arc<dyn Handler>) -> Response<Body> {
        let Some(id) = headers.get(SESSION_HEADER) else { return self.other_method() };
        let removed = id.to_str().ok().and_then(|id| self.inner.sessions.remove(id, &**handler));
        let Some(session) = removed else { return unknown_session(None).into() };
        self.terminate(&session);
        empty(StatusCode::NO_CONTENT)
    }

    async fn post_request(
        &self,
        headers: &HeaderMap,
        accept: Accept,
        handler: &Arc<dyn Handler>,
        request: Request<'_>,
    ) -> Answer {
        let refused = |error| Reply::error(StatusCode::BAD_REQUEST, Some(&request.id), &error);
        let version = era::single_value(headers, &era::VERSION_HEADER).map_err(refused)?;
        if era::is_modern_request(&request.method, &request.params, version) {
            return self.post_modern(headers, accept, handler, request).await;
        }
        match self.session(headers, handler, Some(&request.id)) {
            Ok(session) => self.post_legacy(accept, session, request).await,
            // An unknown session id is ignored here: the client is about to get a new one.
            Err(_) if request.method == "initialize" => self.post_initialize(handler, &request).await,
            Err(refusal) => Err(refusal),
        }
    }

    fn post_notification(
        &self,
        headers: &HeaderMap,
        handler: &Arc<dyn Handler>,
        notification: Notification<'_>,
    ) -> Answer {
        let version = era::single_value(headers, &era::VERSION_HEADER).ok().flatten();
        // The modern protocol has no notification for HTTP, and takes any.
        if era::is_modern_request(&notification.method, &notification.params, version) {
            return Ok(empty(StatusCode::ACCEPTED));
        }
        self.post_without_response(headers, handler, &Message::Notification(notification))
    }

    fn post_without_response(
        &self,
        headers: &HeaderMap,
        handler: &Arc<dyn Handler>,
        message: &Message<'_>,
    ) -> Answer {
        self.session(headers, handler, None)?.connection.accept(message);
        Ok(empty(StatusCode::ACCEPTED))
    }

    async fn post_batch(&self, headers: &HeaderMap, handler: &Arc<dyn Handler>, batch: &Batch<'_>) -> Answer {
        let refused = |error| Reply::error(StatusCode::BAD_REQUEST, None, &error);
        if !headers.contains_key(SESSION_HEADER) {
            return Err(refused(super::no_batches()));
        }
        let session = self.session(headers, handler, None)?;
        if !session.connection.version.has_batches() {
            return Err(refused(super::no_batches()));
        }
        let messages = batch.messages().map_err(refused)?;
        let response = self.batch(&session.connection, messages, None).await;
        self.inner.sessions.touch(&session);
        Ok(response.map_or_else(|| empty(StatusCode::ACCEPTED), |text| json(StatusCode::OK, text)))
    }

    /// The session that a legacy message belongs to.
    fn session(
        &self,
        headers: &HeaderMap,
        handler: &Arc<dyn Handler>,
        id: Option<&Id<'_>>,
    ) -> Result<Arc<HttpSession>, Reply> {
        let Some(sent) = headers.get(SESSION_HEADER) else {
            let message = "no session: send initialize first and repeat its header Mcp-Session-Id, \
                           or send the _meta fields of 2026-07-28 with every request";
            return Err(Reply::error(StatusCode::BAD_REQUEST, id, &ErrorObject::invalid_request(message)));
        };
        let refused = |error| Reply::error(StatusCode::BAD_REQUEST, id, &error);
        // Clients before 2025-06-18 send no version.
        let version = era::single_value(headers, &era::VERSION_HEADER).map_err(refused)?;
        if let Some(unknown) = version.filter(|version| Version::parse(version).is_none()) {
            return Err(refused(era::unsupported(unknown, &Version::ALL)));
        }
        let session = sent.to_str().ok().and_then(|sent| self.inner.sessions.find(sent, &**handler));
        session.ok_or_else(|| unknown_session(id))
    }
}

/// The refusal of a request whose media types this endpoint cannot serve.
fn unsuitable(headers: &HeaderMap, accept: Accept) -> Option<Response<Body>> {
    if !accept.json {
        let error = ErrorObject::invalid_request("answers are application/json; add it to the header Accept");
        return Some(refuse(StatusCode::NOT_ACCEPTABLE, None, &error));
    }
    let is_json = |found: &str| found.eq_ignore_ascii_case(JSON);
    if headers.contains_key(header::CONTENT_TYPE) && !media_types(headers, header::CONTENT_TYPE).any(is_json)
    {
        let error = ErrorObject::invalid_request("the body must have the Content-Type application/json");
        return Some(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, None, &error));
    }
    None
}

#[derive(Debug, Clone, Copy)]
struct Accept {
    json: bool,
    events: Events,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Events {
    Refused,
    Accepted,
    /// The client names events before everything else.
    Preferred,
}

impl Accept {
    /// Without the header a client takes any media type.
    fn read(headers: &HeaderMap) -> Self {
        if !headers.contains_key(header::ACCEPT) {
            return Self { json: true, events: Events::Accepted };
        }
        let mut accept = Self { json: false, events: Events::Refused };
        for (n, found) in media_types(headers, header::ACCEPT).enumerate() {
            let is_any = |wanted: [&str; 3]| wanted.iter().any(|wanted| found.eq_ignore_ascii_case(wanted));
            accept.json |= is_any([JSON, "application/*", "*/*"]);
            if n == 0 && found.eq_ignore_ascii_case(EVENTS) {
                accept.events = Events::Preferred;
            } else if accept.events == Events::Refused && is_any([EVENTS, "text/*", "*/*"]) {
                accept.events = Events::Accepted;
            }
        }
        accept
    }

    fn takes_events(self) -> bool {
        self.events != Events::Refused
    }
}

/// The media types that a header names, without their parameters.
fn media_types(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    let types = values.flat_map(|value| value.split(',')).filter_map(|item| item.split(';').next());
    types.map(str::trim)
}

impl From<Reply> for Response<Body> {
    fn from(reply: Reply) -> Self {
        json(reply.status, reply.text)
    }
}

pub(super) fn refuse(status: StatusCode, id: Option<&Id<'_>>, error: &ErrorObject) -> Response<Body> {
    Reply::error(status, id, error).into()
}

/// The same for an id that never was, one that has expired and one of another client.
pub(super) fn unknown_session(id: Option<&Id<'_>>) -> Reply {
    let error = ErrorObject::invalid_request("unknown or expired session; send initialize again");
    Reply::error(StatusCode::NOT_FOUND, id, &error)
}

fn json(status: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(Body::Whole(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
    response
}

pub(super) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::Whole(Bytes::new()));
    *response.status_mut() = status;
    response
}
