//! Raw messages in, raw answers out: a small fake handler and the ways to talk to it.

mod convert;
mod duplex;
mod fuzz;
mod legacy;
mod listen;
mod methods;
mod modern;
mod parking;
mod replay;
mod sessions;
mod stdio;
mod streams;

use super::{
    Answer, Body, Change, Features, Handler, Inquiry, Options, Peer, Server, ServerInfo, ToolAnswer, ToolCall,
};
use crate::{
    ErrorObject, Version,
    client::ListKind,
    error::code,
    exchange::{ClientChannel, ClientRequest, ForwardMethod, LogLevel, RequestContext, ServerNotification},
    headers::HeaderParam,
    raw,
};
use bytes::Bytes;
use futures_util::StreamExt as _;
use gantry_core::json::write_string;
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};
use tokio::sync::{Semaphore, broadcast};
use tokio_util::sync::CancellationToken;

const TOOLS: &str = r#"[{"name":"echo","inputSchema":{"type":"object","maxProperties":1.10}}]"#;

/// A handler that remembers what happened to it.
struct Fake {
    opened: AtomicUsize,
    closed: AtomicUsize,
    peers: Mutex<Vec<String>>,
    tokens: Mutex<Vec<CancellationToken>>,
    /// Gets a permit for every call of `wait` and `gate`, and every request about something slow, that has begun.
    begun: Semaphore,
    /// Lets one call of `gate`, or one request about something slow, end per permit.
    gate: Semaphore,
    features: Features,
    changes: broadcast::Sender<Change>,
    /// What was asked besides lists and calls.
    asked: Mutex<Vec<String>>,
}

impl Fake {
    fn server() -> Server<Self> {
        Self::server_with(&Options::default())
    }

    fn server_with(options: &Options) -> Server<Self> {
        Server::new(Self::new(Features::default()), options)
    }

    /// A server that has everything.
    fn full() -> Server<Self> {
        let extensions = Some(r#"{"io.modelcontextprotocol/tasks":{},"x/y":{"a":1.10}}"#.to_owned());
        let features =
            Features { resources: true, prompts: true, completions: true, logging: true, extensions };
        Server::new(Self::new(features), &Options::default())
    }

    fn new(features: Features) -> Self {
        Self {
            features,
            changes: broadcast::channel(8).0,
            asked: Mutex::default(),
            opened: AtomicUsize::new(0),
            closed: AtomicUsize::new(0),
            peers: Mutex::default(),
            tokens: Mutex::default(),
            begun: Semaphore::new(0),
            gate: Semaphore::new(0),
        }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    fn change(&self, change: Change) {
        self.changes.send(change).unwrap();
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
    type Told = Change;

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

    fn features(&self, _: &Self::Identity) -> Features {
        self.features.clone()
    }

    async fn list(&self, _: &Arc<usize>, kind: ListKind, _: Version) -> Result<Arc<str>, ErrorObject> {
        Ok(match kind {
            ListKind::Tools => TOOLS.into(),
            ListKind::Resources | ListKind::Templates | ListKind::Prompts => {
                format!(r#"[{{"name":"{}","x":1.10}}]"#, kind.member()).into()
            }
        })
    }

    fn header_params(&self, _: &Arc<usize>, tool: &str) -> Vec<HeaderParam> {
        let param =
            |name: &str| HeaderParam { header: format!("Mcp-Param-{name}"), path: vec![name.to_owned()] };
        if tool == "headed" { vec![param("Region"), param("N")] } else { Vec::new() }
    }

    async fn call_tool(
        &self,
        _: &Arc<usize>,
        call: ToolCall,
        turn: RequestContext,
    ) -> Result<Answer, ErrorObject> {
        let RequestContext { client: audience, cancel } = turn;
        self.tokens.lock().unwrap().push(cancel.clone());
        let arguments = call.arguments.as_deref().unwrap_or("none");
        let answer = match call.name.as_str() {
            "echo" | "headed" => text(arguments),
            "meta" => text(call.meta.as_deref().map_or("none", |meta| meta.get())),
            "rich" => ToolAnswer {
                content: "[\n  {\"type\":\"text\",\"text\":\"1.10\"}\r\n]".to_owned(),
                structured: call.arguments.as_deref().map(str::to_owned),
                is_error: false,
                meta: Some(r#"{"io.modelcontextprotocol/serverInfo":{},"b/x":1e2,"a":[ 1 ]}"#.to_owned()),
            },
            "wait" => {
                self.begun.add_permits(1);
                cancel.cancelled().await;
                ToolAnswer { is_error: true, ..text("cancelled") }
            }
            "gate" => {
                self.begun.add_permits(1);
                self.gate.acquire().await.unwrap().forget();
                text("through")
            }
            // Says something before and after the gate.
            "tell" => {
                audience
                    .notify(ServerNotification::Progress(r#"{"progressToken":"up","progress":1.10}"#.into()));
                audience
                    .notify(ServerNotification::Log(LogLevel::Debug, r#"{"level":"debug","data":1}"#.into()));
                audience
                    .notify(ServerNotification::Log(LogLevel::Error, r#"{"level":"error","data":2}"#.into()));
                audience.notify(ServerNotification::Other {
                    method: "notifications/x".into(),
                    params: "{}".into(),
                });
                self.begun.add_permits(1);
                self.gate.acquire().await.unwrap().forget();
                audience.notify(ServerNotification::Other {
                    method: "notifications/y".into(),
                    params: "{}".into(),
                });
                text("told")
            }
            "raw" => return Ok(Answer::Raw { result: arguments.into() }),
            // Asks as many rounds of questions as it is told, each about two things.
            "ask" => {
                self.begun.add_permits(1);
                let heard = interrogate(&*audience, arguments).await;
                if arguments.contains("wait") {
                    self.begun.add_permits(1);
                    cancel.cancelled().await;
                }
                text(&heard)
            }
            "boom" => panic!("boom"),
            "needy" => {
                return Err(ErrorObject::new(code::MISSING_CAPABILITY, "needs sampling")
                    .with_data(r#"{"requiredCapabilities":{"sampling":{}}}"#.to_owned()));
            }
            other => return Err(ErrorObject::new(code::INVALID_PARAMS, format!("unknown tool {other}"))),
        };
        Ok(Answer::Own(answer))
    }

    async fn request(
        &self,
        _: &Arc<usize>,
        inquiry: Inquiry,
        turn: RequestContext,
    ) -> Result<Answer, ErrorObject> {
        let Inquiry { method, params, .. } = inquiry;
        self.asked.lock().unwrap().push(format!("{} {params}", method.as_str()));
        if params.contains("missing") {
            return Err(ErrorObject::new(code::INVALID_PARAMS, "no such resource"));
        }
        if params.contains("slow") && method == ForwardMethod::Subscribe {
            self.begun.add_permits(1);
            self.gate.acquire().await.unwrap().forget();
        }
        if params.contains("asking") {
            let heard = turn.client.ask(vec![question("name", 0)]).await;
            let heard = heard.map_or_else(|unanswered| unanswered.to_string(), |_| "answered".to_owned());
            return Ok(Answer::Raw { result: format!(r#"{{"heard":"{heard}"}}"#).into() });
        }
        Ok(Answer::Raw { result: r#"{"n":1.10,"_meta":{"a":1,"io.modelcontextprotocol/x":2}}"#.into() })
    }

    fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    fn concerns(&self, _: &Arc<usize>, change: &Change) -> bool {
        !matches!(change, Change::ListChanged { provider, .. } if &**provider == "secret")
    }

    async fn close(&self, _: Arc<usize>) {
        self.closed.fetch_add(1, Ordering::SeqCst);
    }
}

/// Asks as many rounds as the arguments say, and returns everything that was heard.
async fn interrogate(audience: &dyn ClientChannel, arguments: &str) -> String {
    let rounds = raw::member(arguments, "rounds").map_or(1, |rounds| rounds.parse().unwrap());
    let mut heard = String::new();
    for round in 0..rounds {
        let asked = audience.ask(vec![question("name", round), question("age", round)]).await;
        let answers = asked.unwrap_or_else(|unanswered| vec![Ok(unanswered.to_string())]);
        heard.extend(answers.into_iter().map(|answer| answer.unwrap_or_else(|error| error.to_string())));
    }
    heard
}

fn question(key: &str, round: usize) -> ClientRequest {
    let params = format!(r#"{{"message":"{key} {round}","requestedSchema":{{"n":1.10}}}}"#);
    ClientRequest { key: key.to_owned(), method: "elicitation/create".to_owned(), params }
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

/// Status and body of an answer that is no stream.
#[track_caller]
fn shown(response: &Response<Body>) -> String {
    let Body::Whole(body) = response.body() else { panic!("a stream: {response:?}") };
    let body = std::str::from_utf8(body).unwrap();
    assert_eq!(response.headers().contains_key("content-type"), !body.is_empty());
    format!("{} {body}", response.status().as_u16()).trim_end().to_owned()
}

/// Events of a stream, read one by one.
struct Events(super::EventStream);

impl Events {
    #[track_caller]
    fn of(response: Response<Body>) -> Self {
        assert_eq!(response.status().as_u16(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["x-accel-buffering"], "no");
        assert_eq!(response.headers()["cache-control"], "no-store");
        match response.into_body() {
            Body::Events(events) => Self(events),
            Body::Whole(body) => panic!("no stream: {body:?}"),
        }
    }

    /// The next event as it is on the wire; `None` at the end.
    async fn frame(&mut self) -> Option<String> {
        self.0.next().await.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
    }

    /// The id and the message of the next event.
    async fn next(&mut self) -> Option<(String, String)> {
        let frame = self.frame().await?;
        let field = |name: &str| {
            let line = frame.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_default().trim().to_owned()
        };
        Some((field("id:"), field("data:")))
    }

    async fn message(&mut self) -> String {
        self.next().await.expect("an event").1
    }

    /// All messages until the stream ends.
    async fn rest(mut self) -> Vec<String> {
        let mut messages = Vec::new();
        while let Some((_, message)) = self.next().await {
            messages.push(message);
        }
        messages
    }
}

async fn post(server: &Server<Fake>, sent: &[(&'static str, &str)], body: &str) -> String {
    shown(&answer(server, sent, body).await)
}

async fn answer(server: &Server<Fake>, sent: &[(&'static str, &str)], body: &str) -> Response<Body> {
    server.post(&headers(sent), &"guest", Bytes::copy_from_slice(body.as_bytes())).await
}

/// Shakes hands as an identity and returns the id of the session.
async fn handshake(server: &Server<Fake>, identity: &'static str, version: &str) -> String {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{"elicitation":{{}}}},"clientInfo":{{"name":"t","version":"1"}}}}}}"#
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
