//! Standard input and output in front of the server that already runs on the data folder, so that its queues, cache
//! and events are the client's too. Each line becomes one request to the server's MCP endpoint.

use crate::desk::encoded;
use anyhow::Context as _;
use bytes::Bytes;
use gantry_egress::LocalServer;
use gantry_mcp::error::code::{INTERNAL_ERROR, PARSE_ERROR};
use gantry_mcp::lines::{self, Line, Lines};
use http::{HeaderMap, Method, header};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Requests that wait for their answers at once; more lines are read later.
const IN_FLIGHT: usize = 256;

/// Answers that wait to be written.
const ANSWERS: usize = 64;

/// How long requests on their way may take after the client has closed its end.
const DRAIN: Duration = Duration::from_secs(5);

/// What has to be known of a message to send it on.
#[derive(Debug, Deserialize)]
struct Peek<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<PeekParams<'a>>,
}

#[derive(Debug, Default, Deserialize)]
struct PeekParams<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "requestId")]
    request_id: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<PeekMeta<'a>>,
}

#[derive(Debug, Default, Deserialize)]
struct PeekMeta<'a> {
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<Cow<'a, str>>,
}

impl<'a> Peek<'a> {
    /// The version that a request of 2026-07-28 or later carries.
    fn version(&self) -> Option<&str> {
        self.params.as_ref()?.meta.as_ref()?.version.as_deref()
    }

    /// The id of the request that this message withdraws.
    fn withdraws(&self) -> Option<&'a str> {
        let withdraws = self.method.as_deref() == Some("notifications/cancelled");
        withdraws.then(|| self.params.as_ref()?.request_id.map(RawValue::get)).flatten()
    }
}

/// The way to the server, and the session that it gave the client.
struct Bridge {
    server: LocalServer,
    path: String,
    session: OnceLock<http::HeaderValue>,
    /// The requests on their way, by the text of their ids. Limit: `IN_FLIGHT`.
    flights: Mutex<HashMap<String, CancellationToken>>,
}

/// Carries lines until the client closes its end and every answer is written.
pub(super) async fn run(server: LocalServer, agent: Option<&str>) -> anyhow::Result<()> {
    let path =
        agent.map_or_else(|| "/mcp".to_owned(), |agent| format!("/mcp/default/agents/{}", encoded(agent)));
    let bridge = Arc::new(Bridge { server, path, session: OnceLock::new(), flights: Mutex::default() });
    let (answers, written) = mpsc::channel::<String>(ANSWERS);
    let writer = tokio::spawn(lines::write(tokio::io::stdout(), written));
    let (tasks, places) = (TaskTracker::new(), Arc::new(Semaphore::new(IN_FLIGHT)));
    let mut lines = Lines::new(tokio::io::stdin());
    while let Some(line) = lines.next().await.context("standard input broke")? {
        let line = match line {
            Line::Whole(line) if line.iter().all(u8::is_ascii_whitespace) => continue,
            Line::Whole(line) => line,
            Line::TooLong => {
                answers.send(failure("null", PARSE_ERROR, "the line is too long")).await.ok();
                continue;
            }
        };
        let place = Arc::clone(&places).acquire_owned().await?;
        let (bridge, answers) = (Arc::clone(&bridge), answers.clone());
        let in_order = must_keep_order(&line);
        let carry = async move {
            if let Some(answer) = bridge.carry(line).await {
                answers.send(answer).await.ok(); // The client is gone; so is its interest.
            }
            drop(place);
        };
        if in_order { carry.await } else { drop(tasks.spawn(carry)) }
    }
    tasks.close();
    if tokio::time::timeout(DRAIN, tasks.wait()).await.is_err() {
        bridge.withdraw_all();
    }
    bridge.leave().await;
    drop(answers);
    writer.await??;
    Ok(())
}

/// The handshake makes the session that later messages name, and what is withdrawn must have been asked before.
fn must_keep_order(line: &[u8]) -> bool {
    let peek = std::str::from_utf8(line).ok().and_then(|text| serde_json::from_str::<Peek<'_>>(text).ok());
    peek.is_none_or(|peek| peek.id.is_none() || peek.method.as_deref() == Some("initialize"))
}

impl Bridge {
    /// Sends one message on and returns the answer, if there is one.
    async fn carry(&self, line: Vec<u8>) -> Option<String> {
        let text = String::from_utf8_lossy(&line).into_owned();
        let peek = serde_json::from_str::<Peek<'_>>(&text).ok();
        let id = peek.as_ref().and_then(|peek| peek.id).map(|id| id.get().to_owned());
        if let Some(withdrawn) = peek.as_ref().and_then(Peek::withdraws) {
            self.withdraw(withdrawn);
        }
        let modern = peek.as_ref().is_some_and(|peek| peek.version().is_some());
        let request = self.request(peek.as_ref());
        let sending = self.server.send(request, Bytes::from(line));
        let sent = match &id {
            Some(id) => self.unless_withdrawn(id, modern, sending).await?,
            None => sending.await,
        };
        match sent {
            Ok((_, headers, body)) => {
                self.remember(&headers);
                // An answer is one line, whatever the body looked like.
                let body = String::from_utf8_lossy(&body).replace(['\n', '\r'], " ");
                match refused(&body) {
                    Some(message) => Some(failure(id.as_deref().unwrap_or("null"), INTERNAL_ERROR, &message)),
                    None => (!body.trim().is_empty()).then_some(body),
                }
            }
            Err(error) => {
                let message = format!("the Gantry server is gone ({error}); start the client again");
                id.map(|id| failure(&id, INTERNAL_ERROR, &message))
            }
        }
    }

    /// Waits for an answer that the client still wants by then. Hanging up is what cancels a request of 2026-07-28;
    /// the older ones are cancelled by the notification, and that finds them only while they are connected.
    async fn unless_withdrawn<T>(
        &self,
        id: &str,
        modern: bool,
        sending: impl Future<Output = T>,
    ) -> Option<T> {
        let Some(withdrawn) = self.begin(id) else { return Some(sending.await) };
        let sent = if modern { withdrawn.run_until_cancelled(sending).await } else { Some(sending.await) };
        if withdrawn.is_cancelled() {
            return None;
        }
        self.flights().remove(id);
        sent
    }

    /// What withdraws this request. The server refuses an id that is in use; the request that uses it keeps it.
    fn begin(&self, id: &str) -> Option<CancellationToken> {
        match self.flights().entry(id.to_owned()) {
            Entry::Vacant(free) => Some(free.insert(CancellationToken::new()).clone()),
            Entry::Occupied(_) => None,
        }
    }

    fn withdraw(&self, id: &str) {
        if let Some(token) = self.flights().remove(id) {
            token.cancel();
        }
    }

    fn withdraw_all(&self) {
        for (_, token) in self.flights().drain() {
            token.cancel();
        }
    }

    fn flights(&self) -> MutexGuard<'_, HashMap<String, CancellationToken>> {
        self.flights.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn request(&self, peek: Option<&Peek<'_>>) -> http::request::Builder {
        let mut request = http::Request::builder()
            .method(Method::POST)
            .uri(&self.path)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, text/event-stream");
        if let Some(session) = self.session.get() {
            request = request.header("Mcp-Session-Id", session);
        }
        let Some(peek) = peek else { return request };
        if let (Some(version), Some(method)) = (peek.version(), peek.method.as_deref()) {
            request = request.header("MCP-Protocol-Version", version).header("Mcp-Method", method);
            let name = peek.params.as_ref().and_then(|params| params.name.as_deref());
            // A name that no header can hold is no tool's; the server says so.
            if let Some(name) = name.and_then(|name| http::HeaderValue::from_str(name).ok()) {
                request = request.header("Mcp-Name", name);
            }
        }
        request
    }

    fn remember(&self, headers: &HeaderMap) {
        if let Some(session) = headers.get("mcp-session-id") {
            self.session.set(session.clone()).ok(); // The first one stays.
        }
    }

    /// Ends the session at the server.
    async fn leave(&self) {
        if let Some(session) = self.session.get() {
            let request = http::Request::builder()
                .method(Method::DELETE)
                .uri(&self.path)
                .header("Mcp-Session-Id", session);
            self.server.send(request, Bytes::new()).await.ok(); // It expires by itself otherwise.
        }
    }
}

/// Why the server's gates did not let a message in: their answers are not those of MCP.
fn refused(body: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Refusal {
        ok: bool,
        error: Reason,
    }
    #[derive(Deserialize)]
    struct Reason {
        message: String,
    }
    let refusal: Refusal = serde_json::from_str(body).ok()?;
    (!refusal.ok).then_some(refusal.error.message)
}

fn failure(id: &str, code: i32, message: &str) -> String {
    let error = serde_json::json!({ "code": code, "message": message });
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}")
}
