//! Raw messages in, raw answers out: a small fake handler and the ways to talk to it.

mod fuzz;
mod legacy;
mod modern;
mod sessions;
mod stdio;

use super::{Handler, Options, Peer, Server, ServerInfo, ToolAnswer, ToolCall};
use crate::{ErrorObject, Version, error::code};
use bytes::Bytes;
use gantry_core::json::write_string;
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

const TOOLS: &str = r#"[{"name":"echo","inputSchema":{"type":"object","maxProperties":1.10}}]"#;

/// A handler that remembers what happened to it.
struct Fake {
    opened: AtomicUsize,
    closed: AtomicUsize,
    peers: Mutex<Vec<String>>,
    tokens: Mutex<Vec<CancellationToken>>,
    /// Gets a permit for every call of `wait` and `gate` that has begun.
    begun: Semaphore,
    /// Lets one call of `gate` end per permit.
    gate: Semaphore,
}

impl Fake {
    fn server() -> Server<Self> {
        Self::server_with(&Options::default())
    }

    fn server_with(options: &Options) -> Server<Self> {
        let fake = Self {
            opened: AtomicUsize::new(0),
            closed: AtomicUsize::new(0),
            peers: Mutex::default(),
            tokens: Mutex::default(),
            begun: Semaphore::new(0),
            gate: Semaphore::new(0),
        };
        Server::new(fake, options)
    }

    fn note(&self, peer: &Peer<'_, &'static str>) {
        let client = peer.client.as_ref().map_or("-", |client| client.name.as_ref());
        let note = format!("{} {} {client}", peer.identity, peer.version.as_str());
        self.peers.lock().unwrap().push(note);
    }

    fn last_token(&self) -> CancellationToken {
        self.tokens.lock().unwrap().last().cloned().unwrap()
    }

    /// Waits until one more call has begun.
    async fn call_begun(&self) {
        self.begun.acquire().await.unwrap().forget();
    }
}

impl Handler for Fake {
    type Identity = &'static str;
    type Session = usize;

    fn server_info(&self) -> ServerInfo {
        ServerInfo { name: "fake".to_owned(), title: None, version: "1".to_owned() }
    }

    fn instructions(&self, identity: &Self::Identity) -> Option<String> {
        (*identity == "guest").then(|| "be \"kind\"".to_owned())
    }

    async fn open(&self, peer: Peer<'_, Self::Identity>) -> Result<Arc<usize>, ErrorObject> {
        self.note(&peer);
        if *peer.identity == "stranger" {
            return Err(ErrorObject::new(code::INVALID_REQUEST, "not for strangers"));
        }
        Ok(Arc::new(self.opened.fetch_add(1, Ordering::SeqCst)))
    }

    async fn standing(&self, peer: Peer<'_, Self::Identity>) -> Result<Arc<usize>, ErrorObject> {
        self.note(&peer);
        Ok(Arc::new(usize::MAX))
    }

    async fn list_tools(&self, _: &Arc<usize>, _: Version) -> Result<Arc<str>, ErrorObject> {
        Ok(TOOLS.into())
    }

    async fn call_tool(
        &self,
        _: &Arc<usize>,
        call: ToolCall,
        cancel: CancellationToken,
    ) -> Result<ToolAnswer, ErrorObject> {
        self.tokens.lock().unwrap().push(cancel.clone());
        let arguments = call.arguments.as_deref().unwrap_or("none");
        match call.name.as_str() {
            "echo" => Ok(text(arguments)),
            "meta" => Ok(text(call.meta.as_deref().map_or("none", |meta| meta.get()))),
            "rich" => Ok(ToolAnswer {
                content: "[\n  {\"type\":\"text\",\"text\":\"1.10\"}\r\n]".to_owned(),
                structured: Some(arguments.to_owned()),
                is_error: false,
                meta: Some(r#"{"io.modelcontextprotocol/serverInfo":{},"b/x":1e2,"a":[ 1 ]}"#.to_owned()),
            }),
            "wait" => {
                self.begun.add_permits(1);
                cancel.cancelled().await;
                Ok(ToolAnswer { is_error: true, ..text("cancelled") })
            }
            "gate" => {
                self.begun.add_permits(1);
                self.gate.acquire().await.unwrap().forget();
                Ok(text("through"))
            }
            "boom" => panic!("boom"),
            "needy" => Err(ErrorObject::new(code::MISSING_CAPABILITY, "needs sampling")
                .with_data(r#"{"requiredCapabilities":{"sampling":{}}}"#.to_owned())),
            other => Err(ErrorObject::new(code::INVALID_PARAMS, format!("unknown tool {other}"))),
        }
    }

    async fn close(&self, _: Arc<usize>) {
        self.closed.fetch_add(1, Ordering::SeqCst);
    }
}

fn text(said: &str) -> ToolAnswer {
    let mut content = String::from("[{\"type\":\"text\",\"text\":");
    write_string(&mut content, said);
    content.push_str("}]");
    ToolAnswer { content, structured: None, is_error: false, meta: None }
}

/// The content that `text` answers with, as it looks on the wire.
fn said(what: &str) -> String {
    text(what).content
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(HeaderName::from_static(name), HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    headers
}

/// Status and body of an answer.
fn shown(response: &Response<Bytes>) -> String {
    let body = std::str::from_utf8(response.body()).unwrap();
    assert_eq!(response.headers().contains_key("content-type"), !body.is_empty());
    format!("{} {body}", response.status().as_u16()).trim_end().to_owned()
}

async fn post(server: &Server<Fake>, sent: &[(&'static str, &str)], body: &str) -> String {
    shown(&server.post(&headers(sent), &"guest", Bytes::copy_from_slice(body.as_bytes())).await)
}

/// Shakes hands as an identity and returns the id of the session.
async fn handshake(server: &Server<Fake>, identity: &'static str, version: &str) -> String {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{}},"clientInfo":{{"name":"t","version":"1"}}}}}}"#
    );
    let response = server.post(&HeaderMap::new(), &identity, Bytes::from(body)).await;
    response.headers().get("mcp-session-id").unwrap().to_str().unwrap().to_owned()
}

/// The code of an error answer, or 0 for a result.
fn error_code(answer: &str) -> i64 {
    let body =
        answer.split_once(' ').map_or(answer, |(status, body)| if status.len() == 3 { body } else { answer });
    let value: serde_json::Value = serde_json::from_str(body).unwrap();
    value.pointer("/error/code").map_or(0, |code| code.as_i64().unwrap())
}
