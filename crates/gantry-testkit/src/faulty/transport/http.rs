//! Streamable HTTP at `/mcp`, strict about headers: a client that forgets one learns it here.

use super::super::connection::{Connection, OnDisconnect};
use super::super::era::is_modern;
use super::super::options::Era;
use super::super::server::{Frame, QUEUED_FRAMES, Server, Session, Subscription};
use super::super::wire::{
    Failure, HEADER_MISMATCH, INVALID_PARAMS, METHOD_NOT_FOUND, MISSING_CAPABILITY, Message, Params,
    UNSUPPORTED_VERSION, VERSION_KEY,
};
use super::events::{self, Until};
use anyhow::Result;
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use axum::routing::post;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";

/// The first version whose clients must say which they speak.
const VERSION_HEADER_SINCE: &str = "2025-06-18";

/// The server, and its sessions by the ids that it gave out.
#[derive(Debug)]
struct Sessions {
    server: Arc<Server>,
    open: Mutex<HashMap<String, Arc<Session>>>,
    /// What requests without a session share.
    none: Arc<Session>,
}

/// An answer that ends the matter before any method was looked at.
type Refusal = (StatusCode, Failure);

pub(super) async fn serve(server: Arc<Server>, listener: TcpListener) -> Result<()> {
    let sessions = Sessions { server: server.clone(), open: Mutex::default(), none: Arc::default() };
    let app = Router::new().route("/mcp", post(receive).get(listen).delete(end));
    super::serve_http(server, listener, app.with_state(Arc::new(sessions))).await
}

async fn receive(State(sessions): State<Arc<Sessions>>, headers: HeaderMap, body: Bytes) -> Response {
    if sessions.server.options.faults.refuse {
        let token = text(&headers, header::AUTHORIZATION.as_str()).unwrap_or_default();
        return plain(StatusCode::UNAUTHORIZED, format!("401 for token {token}"));
    }
    let message: Message = match serde_json::from_slice(&body) {
        Ok(message) => message,
        Err(error) => return refusal((StatusCode::BAD_REQUEST, Failure::new(-32700, error.to_string()))),
    };
    super::admit(&sessions.server, message.method.as_deref()).await;
    match sessions.route(&headers, &message) {
        Ok((session, on_disconnect)) => sessions.exchange(session, on_disconnect, headers, message).await,
        Err(refused) => refusal(refused),
    }
}

/// The stream of what belongs to no request.
async fn listen(State(sessions): State<Arc<Sessions>>, headers: HeaderMap) -> Response {
    super::admit(&sessions.server, None).await;
    match sessions.find(&headers) {
        Ok(session) => {
            let (sender, frames) = mpsc::channel(QUEUED_FRAMES);
            sessions.server.listen(sender, Subscription::Session(session));
            events::stream(Ok(Bytes::new()), frames, Until::Dropped)
        }
        Err(_) if sessions.server.options.era() == Era::Modern => {
            plain(StatusCode::METHOD_NOT_ALLOWED, String::new())
        }
        Err(refused) => refusal(refused),
    }
}

async fn end(State(sessions): State<Arc<Sessions>>, headers: HeaderMap) -> Response {
    let id = text(&headers, SESSION).unwrap_or_default();
    let known = sessions.open.lock().unwrap().remove(id).is_some();
    plain(if known { StatusCode::NO_CONTENT } else { StatusCode::NOT_FOUND }, String::new())
}

impl Sessions {
    /// Which session a message belongs to, and what a lost connection means to it.
    fn route(&self, headers: &HeaderMap, message: &Message) -> Result<(Arc<Session>, OnDisconnect), Refusal> {
        let accept = text(headers, header::ACCEPT.as_str()).unwrap_or_default();
        let all = ["application/json", "text/event-stream"].iter().all(|kind| accept.contains(kind));
        if !all && !accept.contains("*/*") {
            let failure = Failure::new(-32000, "Accept must name JSON and event streams");
            return Err((StatusCode::NOT_ACCEPTABLE, failure));
        }
        let method = message.method.as_deref().unwrap_or_default();
        let raw = message.params.as_ref().map_or("{}", |raw| raw.get());
        let params: Params = serde_json::from_str(raw)
            .map_err(|error| (StatusCode::BAD_REQUEST, Failure::new(INVALID_PARAMS, error.to_string())))?;
        let era = self.server.options.era();
        if era != Era::Legacy && is_modern(method, &params) {
            check_headers(headers, method, &params)?;
            return Ok((self.none.clone(), OnDisconnect::Cancelled));
        }
        if era == Era::Modern {
            return Ok((self.none.clone(), OnDisconnect::Cancelled)); // The era has the words for it.
        }
        if method == "initialize" {
            return Ok((self.server.open_session(), OnDisconnect::Nothing));
        }
        self.find(headers).map(|session| (session, OnDisconnect::Nothing))
    }

    /// The session that the headers name, if it is open and its version is named too.
    fn find(&self, headers: &HeaderMap) -> Result<Arc<Session>, Refusal> {
        let Some(id) = text(headers, SESSION) else {
            let failure = Failure::new(-32000, "Bad Request: Server not initialized");
            return Err((StatusCode::BAD_REQUEST, failure));
        };
        let session = self.open.lock().unwrap().get(id).cloned();
        let version = session.as_ref().and_then(|session| session.state.lock().unwrap().version.clone());
        let (Some(session), Some(version)) = (session, version) else {
            return Err((StatusCode::NOT_FOUND, Failure::new(-32001, "Session not found")));
        };
        let named = text(headers, VERSION);
        let optional = version.as_str() < VERSION_HEADER_SINCE;
        if named.map_or(!optional, |named| named != version) {
            let failure = Failure::new(-32000, format!("{VERSION} must be {version}"));
            return Err((StatusCode::BAD_REQUEST, failure));
        }
        Ok(session)
    }

    async fn exchange(
        &self,
        session: Arc<Session>,
        on_disconnect: OnDisconnect,
        headers: HeaderMap,
        message: Message,
    ) -> Response {
        let opens = message.method.as_deref() == Some("initialize");
        let is_request = message.method.is_some() && message.id.is_some();
        let (sender, mut frames) = mpsc::channel(QUEUED_FRAMES);
        let headers = Arc::new(headers_as_json(&headers));
        let connection = Connection {
            server: self.server.clone(),
            session: session.clone(),
            sender,
            on_disconnect,
            headers,
        };
        connection.receive(message).await;
        drop(connection);
        if !is_request {
            return plain(StatusCode::ACCEPTED, String::new());
        }
        let mut response = match frames.recv().await {
            Some(Frame::Answer(text, code)) => json(status(code, on_disconnect), text),
            Some(frame) => events::stream(events::event(frame), frames, Until::Answer),
            None => events::stream(Ok(Bytes::new()), frames, Until::Answer),
        };
        if opens && session.state.lock().unwrap().version.is_some() {
            let id = format!("faulty-session-{}", session.number);
            let value = HeaderValue::from_str(&id).expect("an id of letters and digits");
            response.headers_mut().insert(SESSION, value);
            self.open.lock().unwrap().insert(id, session);
        }
        response
    }
}

/// The headers that repeat what a modern request says must say the same.
fn check_headers(headers: &HeaderMap, method: &str, params: &Params) -> Result<(), Refusal> {
    let name = match method {
        "tools/call" | "prompts/get" => Some(params.name.as_str()),
        "resources/read" => Some(params.uri.as_str()),
        _ => None,
    };
    let version = params.meta(VERSION_KEY);
    let expected = [(VERSION, version.as_str()), ("mcp-method", Some(method)), ("mcp-name", name)];
    for (header, wanted) in expected {
        let found = text(headers, header).map(decoded);
        if wanted.is_some() && found.as_deref() != wanted {
            let message = format!("{header} is {found:?}, the body says {wanted:?}");
            return Err((StatusCode::BAD_REQUEST, Failure::new(HEADER_MISMATCH, message)));
        }
    }
    Ok(())
}

/// A header value, which may carry its text as base64.
fn decoded(value: &str) -> String {
    let coded = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    let bytes = coded.and_then(|coded| BASE64_STANDARD.decode(coded).ok());
    bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_else(|| value.to_owned())
}

/// The status of an answer: legacy errors are answers like any other, some modern ones are not.
fn status(code: Option<i64>, on_disconnect: OnDisconnect) -> StatusCode {
    match code {
        Some(METHOD_NOT_FOUND) if on_disconnect == OnDisconnect::Cancelled => StatusCode::NOT_FOUND,
        Some(UNSUPPORTED_VERSION | MISSING_CAPABILITY | HEADER_MISMATCH) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

pub(super) fn headers_as_json(headers: &HeaderMap) -> Value {
    let pair = |(name, value): (&http::HeaderName, &HeaderValue)| {
        (name.as_str().to_owned(), Value::from(String::from_utf8_lossy(value.as_bytes())))
    };
    Value::Object(headers.iter().map(pair).collect())
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn refusal((status, failure): Refusal) -> Response {
    json(status, failure.answer("null"))
}

fn json(status: StatusCode, text: String) -> Response {
    let mut response = plain(status, text);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn plain(status: StatusCode, text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response
}
