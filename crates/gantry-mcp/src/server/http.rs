//! MCP over HTTP: one endpoint that takes a message per POST and answers it with JSON, or with events when there is
//! something to say before the answer.
//!
//! The caller has checked who asks, the host, the origin and the size of the body. Errors of a legacy session come
//! with status 200, because its clients read an error object only there; what is wrong with the transport itself
//! (no JSON, no session) has its own status.

mod legacy;
mod modern;

use super::{Body, Handler, Reply, Server, modern as era, params::Params, sessions};
use crate::{
    ErrorObject, Version,
    envelope::{self, Batch, Id, Incoming, Message, Notification, Request},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use std::sync::Arc;

const SESSION_HEADER: HeaderName = HeaderName::from_static("mcp-session-id");
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

impl<H: Handler> Server<H> {
    /// Answers a POST.
    ///
    /// Cancel-safety: dropping the future, or the body of events that it returned, cancels a modern request, as its
    /// protocol says. It does not cancel a legacy one.
    pub async fn post(&self, headers: &HeaderMap, identity: &H::Identity, body: Bytes) -> Response<Body> {
        if let Some(refusal) = unsuitable(headers) {
            return refusal;
        }
        match envelope::read(&body) {
            Ok(Incoming::One(Message::Request(request))) => {
                self.post_request(headers, identity, request).await
            }
            Ok(Incoming::One(Message::Notification(notification))) => {
                self.post_notification(headers, identity, notification)
            }
            Ok(Incoming::One(message @ Message::Response(_))) => {
                match self.session(headers, identity, None) {
                    Ok(entry) => {
                        self.take(&entry.lane, &message);
                        empty(StatusCode::ACCEPTED)
                    }
                    Err(refusal) => refusal.into(),
                }
            }
            Ok(Incoming::Batch(batch)) => self.post_batch(headers, identity, &batch).await,
            Err(rejection) => json(StatusCode::BAD_REQUEST, rejection.answer()),
        }
    }

    /// Answers a GET: a legacy client listens to what belongs to no request, or takes up a stream that broke.
    #[must_use]
    pub fn get(&self, headers: &HeaderMap, identity: &H::Identity) -> Response<Body> {
        if !headers.contains_key(SESSION_HEADER) {
            return not_allowed();
        }
        if !accepts(headers, &[EVENTS, "text/*", "*/*"]) {
            let error = ErrorObject::invalid_request("a GET is answered with text/event-stream; accept it");
            return refuse(StatusCode::NOT_ACCEPTABLE, None, &error);
        }
        match self.session(headers, identity, None) {
            Ok(entry) => self.get_stream(headers, identity, &entry),
            Err(refusal) => refusal.into(),
        }
    }

    /// Answers any other method.
    #[must_use]
    pub fn other_method(&self) -> Response<Body> {
        not_allowed()
    }

    /// Answers a DELETE: a legacy client ends its session.
    #[must_use]
    pub fn delete(&self, headers: &HeaderMap, identity: &H::Identity) -> Response<Body> {
        let Some(id) = headers.get(SESSION_HEADER) else { return not_allowed() };
        let removed = id.to_str().ok().and_then(|id| self.inner.sessions.remove(id, identity));
        let Some(entry) = removed else { return unknown_session(None).into() };
        self.dismiss(&entry);
        empty(StatusCode::NO_CONTENT)
    }

    async fn post_request(
        &self,
        headers: &HeaderMap,
        identity: &H::Identity,
        request: Request<'_>,
    ) -> Response<Body> {
        let (params, version) = match opening(headers, &request) {
            Ok(opening) => opening,
            Err(error) => return refuse(StatusCode::BAD_REQUEST, Some(&request.id), &error),
        };
        if era::speaks(&request.method, &params, version) {
            return self.post_modern(headers, identity, request, &params).await;
        }
        match self.session(headers, identity, Some(&request.id)) {
            Ok(entry) => self.post_legacy(headers, identity, entry, request, &params).await,
            // An id that is not alive is ignored here: the client is about to get a new one.
            Err(_) if request.method == "initialize" => {
                self.post_initialize(identity, &request, &params).await
            }
            Err(refusal) => refusal.into(),
        }
    }

    fn post_notification(
        &self,
        headers: &HeaderMap,
        identity: &H::Identity,
        notification: Notification<'_>,
    ) -> Response<Body> {
        let version = era::single(headers, era::VERSION_HEADER).ok().flatten();
        let params = Params::read(notification.params).unwrap_or_default();
        // The modern protocol has no notification for HTTP, and takes any.
        if era::speaks(&notification.method, &params, version) {
            return empty(StatusCode::ACCEPTED);
        }
        match self.session(headers, identity, None) {
            Ok(entry) => {
                self.take(&entry.lane, &Message::Notification(notification));
                empty(StatusCode::ACCEPTED)
            }
            Err(refusal) => refusal.into(),
        }
    }

    async fn post_batch(
        &self,
        headers: &HeaderMap,
        identity: &H::Identity,
        batch: &Batch<'_>,
    ) -> Response<Body> {
        if !headers.contains_key(SESSION_HEADER) {
            return refuse(StatusCode::BAD_REQUEST, None, &super::no_batches());
        }
        let entry = match self.session(headers, identity, None) {
            Ok(entry) if entry.lane.version.has_batches() => entry,
            Ok(_) => return refuse(StatusCode::BAD_REQUEST, None, &super::no_batches()),
            Err(refusal) => return refusal.into(),
        };
        let response = match batch.messages() {
            Ok(messages) => answered(self.batch(identity, &entry.lane, messages).await),
            Err(error) => refuse(StatusCode::BAD_REQUEST, None, &error),
        };
        self.inner.sessions.touch(&entry);
        response
    }

    /// The session that a legacy message belongs to.
    fn session(
        &self,
        headers: &HeaderMap,
        identity: &H::Identity,
        id: Option<&Id<'_>>,
    ) -> Result<Arc<sessions::Entry<H>>, Reply> {
        let Some(sent) = headers.get(SESSION_HEADER) else {
            let message = "no session: send initialize first and repeat its header Mcp-Session-Id, \
                           or send the _meta fields of 2026-07-28 with every request";
            return Err(Reply::error(StatusCode::BAD_REQUEST, id, &ErrorObject::invalid_request(message)));
        };
        if let Err(error) = legacy_version(headers) {
            return Err(Reply::error(StatusCode::BAD_REQUEST, id, &error));
        }
        let entry = sent.to_str().ok().and_then(|sent| self.inner.sessions.find(sent, identity));
        entry.ok_or_else(|| unknown_session(id))
    }
}

/// What decides the era of a request: its parameters and the version header.
fn opening<'a, 'h>(
    headers: &'h HeaderMap,
    request: &Request<'a>,
) -> Result<(Params<'a>, Option<&'h str>), ErrorObject> {
    Ok((Params::read(request.params)?, era::single(headers, era::VERSION_HEADER)?))
}

/// Checks the version header of a legacy message. Clients before 2025-06-18 send none.
fn legacy_version(headers: &HeaderMap) -> Result<(), ErrorObject> {
    match era::single(headers, era::VERSION_HEADER)? {
        Some(version) if Version::parse(version).is_none() => Err(era::unsupported(version, &Version::ALL)),
        Some(_) | None => Ok(()),
    }
}

/// The refusal of a request whose media types this endpoint cannot serve.
fn unsuitable(headers: &HeaderMap) -> Option<Response<Body>> {
    if !accepts(headers, &[JSON, "application/*", "*/*"]) {
        let error = ErrorObject::invalid_request("answers are application/json; add it to the header Accept");
        return Some(refuse(StatusCode::NOT_ACCEPTABLE, None, &error));
    }
    if headers.contains_key(header::CONTENT_TYPE) && !media(headers, header::CONTENT_TYPE, &[JSON]) {
        let error = ErrorObject::invalid_request("the body must have the Content-Type application/json");
        return Some(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, None, &error));
    }
    None
}

/// Whether the client takes one of these media types. One that does not say takes any.
fn accepts(headers: &HeaderMap, wanted: &[&str]) -> bool {
    !headers.contains_key(header::ACCEPT) || media(headers, header::ACCEPT, wanted)
}

/// Whether the client takes events before its answer.
fn takes_events(headers: &HeaderMap) -> bool {
    accepts(headers, &[EVENTS, "text/*", "*/*"])
}

/// Whether the client names events before everything else that it takes.
fn prefers_events(headers: &HeaderMap) -> bool {
    let first = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()?.split([',', ';']).next());
    first.is_some_and(|first| first.trim().eq_ignore_ascii_case(EVENTS))
}

/// Whether a header names one of some media types, whatever their parameters.
fn media(headers: &HeaderMap, name: HeaderName, wanted: &[&str]) -> bool {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    let mut types = values.flat_map(|value| value.split(',')).filter_map(|item| item.split(';').next());
    types.any(|found| wanted.iter().any(|wanted| found.trim().eq_ignore_ascii_case(wanted)))
}

impl From<Reply> for Response<Body> {
    fn from(reply: Reply) -> Self {
        json(reply.status, reply.text)
    }
}

fn answered(text: Option<String>) -> Response<Body> {
    text.map_or_else(|| empty(StatusCode::ACCEPTED), |text| json(StatusCode::OK, text))
}

pub(super) fn refuse(status: StatusCode, id: Option<&Id<'_>>, error: &ErrorObject) -> Response<Body> {
    Reply::error(status, id, error).into()
}

/// The same for an id that never was, one that has expired and one of somebody else.
pub(super) fn unknown_session(id: Option<&Id<'_>>) -> Reply {
    let error = ErrorObject::invalid_request("unknown or expired session; send initialize again");
    Reply::error(StatusCode::NOT_FOUND, id, &error)
}

fn not_allowed() -> Response<Body> {
    let mut response = empty(StatusCode::METHOD_NOT_ALLOWED);
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, POST, DELETE"));
    response
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
