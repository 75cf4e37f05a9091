//! Raw messages in, raw responses out: a small fake handler and the ways to talk to it.

mod convert;
mod duplex;
mod event_log;
mod fuzz;
mod legacy;
mod listen;
mod methods;
mod modern;
mod pending_input;
mod sessions;
mod stdio;
mod streams;

use super::{Body, Change, ChangeNotice, Features, ForwardRequest, Handler, Options, Outcome, Server};
use crate::client::ListKind;
use crate::error::code;
use crate::exchange::{
    BoxFuture, ClientChannel, ClientRequest, ForwardMethod, LogLevel, RequestContext, ServerNotification,
};
use crate::headers::HeaderParam;
use crate::{ErrorObject, Version, raw};
use bytes::Bytes;
use futures_util::{FutureExt as _, Stream, StreamExt as _};
use gantry_core::CallRequest;
use gantry_core::json::write_string;
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use std::any::Any;
use std::io;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, broadcast, mpsc};
use tokio_util::sync::CancellationToken;

const TOOLS: &str = r#"[{"name":"echo","inputSchema":{"type":"object","maxProperties":1.10}}]"#;

/// A gateway that records what happened to it.
struct Fake {
    opened: AtomicUsize,
    closed: AtomicUsize,
    tokens: Mutex<Vec<CancellationToken>>,
    /// Gets a permit for every call of `wait` and `gate`, and every request about something slow, that has begun.
    begun: Semaphore,
    /// Lets one call of `gate`, or one request about something slow, end per permit.
    gate: Semaphore,
    features: Features,
    changes: broadcast::Sender<ChangeNotice>,
    /// What was asked besides lists and calls.
    asked: Mutex<Vec<String>>,
    /// Calls of `kept` whose result the client has.
    received: Arc<AtomicUsize>,
}

/// A server and the gateway behind it; clients are distinguished by their names.
#[derive(Clone)]
struct TestServer {
    server: Server,
    fake: Arc<Fake>,
}

impl Deref for TestServer {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl TestServer {
    fn new(features: Features, options: &Options) -> Self {
        let (changes, receiver) = broadcast::channel(8);
        let info = r#"{"name":"fake","version":"1"}"#.to_owned();
        Self { server: Server::new(info, receiver, options), fake: Arc::new(Fake::new(features, changes)) }
    }

    fn handler_of(&self, name: &'static str) -> Arc<dyn Handler> {
        Arc::new(FakeHandler { name, fake: Arc::clone(&self.fake), has_session: AtomicBool::new(false) })
    }

    fn handler(&self) -> &Fake {
        &self.fake
    }

    async fn post(&self, headers: &HeaderMap, client: &&'static str, body: Bytes) -> Response<Body> {
        self.server.post(headers, &self.handler_of(client), body).await
    }

    fn get(&self, headers: &HeaderMap, client: &&'static str) -> Response<Body> {
        self.server.get(headers, &self.handler_of(client))
    }

    fn delete(&self, headers: &HeaderMap, client: &&'static str) -> Response<Body> {
        self.server.delete(headers, &self.handler_of(client))
    }

    fn sse(&self, client: &&'static str, endpoint: &str) -> Response<Body> {
        self.server.sse(&self.handler_of(client), endpoint)
    }

    async fn sse_message(&self, client: &&'static str, id: &str, body: Bytes) -> Response<Body> {
        self.server.sse_message(&self.handler_of(client), id, body).await
    }

    fn connect(&self, client: &'static str) -> Option<(mpsc::Sender<Vec<u8>>, mpsc::Receiver<String>)> {
        self.server.connect(self.handler_of(client))
    }

    async fn serve<R, W>(&self, client: &'static str, reader: R, writer: W) -> io::Result<()>
    where
        R: AsyncRead + Unpin + Send,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        self.server.serve(self.handler_of(client), reader, writer).await
    }

    async fn serve_messages(
        &self,
        client: &'static str,
        incoming: impl Stream<Item = Vec<u8>> + Send,
        outgoing: mpsc::Sender<String>,
    ) {
        self.server.serve_messages(self.handler_of(client), incoming, outgoing).await;
    }
}

impl Fake {
    fn server() -> TestServer {
        Self::server_with(&Options::default())
    }

    fn server_with(options: &Options) -> TestServer {
        TestServer::new(Features::default(), options)
    }

    /// A server that has everything.
    fn full() -> TestServer {
        let extensions = Some(r#"{"io.modelcontextprotocol/tasks":{},"x/y":{"a":1.10}}"#.to_owned());
        let features =
            Features { resources: true, prompts: true, completions: true, logging: true, extensions };
        TestServer::new(features, &Options::default())
    }

    fn new(features: Features, changes: broadcast::Sender<ChangeNotice>) -> Self {
        Self {
            features,
            changes,
            asked: Mutex::default(),
            opened: AtomicUsize::new(0),
            closed: AtomicUsize::new(0),
            tokens: Mutex::default(),
            begun: Semaphore::new(0),
            gate: Semaphore::new(0),
            received: Arc::default(),
        }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    fn change(&self, change: Change) {
        self.changes.send(ChangeNotice { runtime: 1, change }).unwrap();
    }

    fn last_token(&self) -> CancellationToken {
        self.tokens.lock().unwrap().last().cloned().unwrap()
    }

    /// Waits until one more call has begun.
    async fn call_begun(&self) {
        self.begun.acquire().await.unwrap().forget();
    }

    async fn call(&self, call: CallRequest, meta: Option<Arc<str>>, context: RequestContext) -> Outcome {
        let RequestContext { client: audience, cancel } = context;
        self.tokens.lock().unwrap().push(cancel.clone());
        let arguments = call.arguments.as_deref().unwrap_or("none");
        let result = match call.tool.as_str() {
            "echo" | "headed" => text(arguments),
            "meta" => text(meta.as_deref().unwrap_or("none")),
            "rich" => {
                let structured = call.arguments.map(|text| format!(r#""structuredContent":{text},"#));
                format!(
                    "{{\"content\":[\n  {{\"type\":\"text\",\"text\":\"1.10\"}}\r\n],{}\"isError\":false,\"_meta\":{}}}",
                    structured.unwrap_or_default(),
                    r#"{"io.modelcontextprotocol/serverInfo":{},"b/x":1e2,"a":[ 1 ]}"#
                )
            }
            "wait" => {
                self.begun.add_permits(1);
                cancel.cancelled().await;
                failed("cancelled")
            }
            "gate" => {
                self.begun.add_permits(1);
                self.gate.acquire().await.unwrap().forget();
                text("through")
            }
            "tell" => {
                self.tell(&*audience).await;
                text("told")
            }
            "raw" => arguments.to_owned(),
            // Has a result with a receipt, behind the gate.
            "kept" => {
                self.begun.add_permits(1);
                self.gate.acquire().await.unwrap().forget();
                let received = Arc::clone(&self.received);
                let receipt = async move {
                    received.fetch_add(1, Ordering::SeqCst);
                };
                return Outcome { result: Ok(text("kept").into()), receipt: Some(Box::pin(receipt)) };
            }
            // Asks as many rounds of questions as its arguments say, each about two things.
            "ask" => {
                self.begun.add_permits(1);
                let heard = interrogate(&*audience, arguments).await;
                if arguments.contains("wait") {
                    self.begun.add_permits(1);
                    cancel.cancelled().await;
                }
                text(&heard)
            }
            // Withdraws a question that was asked, and another one before it is asked.
            "withdraw" => {
                tokio::select! {
                    _ = audience.ask(vec![question("name", 0)]) => {}
                    _ = self.gate.acquire() => {}
                }
                assert!(audience.ask(vec![question("name", 1)]).now_or_never().is_none());
                self.begun.add_permits(1);
                text("withdrawn")
            }
            "boom" => panic!("boom"),
            "needy" => {
                return Err(ErrorObject::new(code::MISSING_CAPABILITY, "needs sampling")
                    .with_data(r#"{"requiredCapabilities":{"sampling":{}}}"#.to_owned()))
                .into();
            }
            other => {
                return Err(ErrorObject::new(code::INVALID_PARAMS, format!("unknown tool {other}"))).into();
            }
        };
        Ok(result.into()).into()
    }

    /// Sends messages before and after the gate.
    async fn tell(&self, client: &dyn ClientChannel) {
        let other = |method: &str| ServerNotification::Other { method: method.into(), params: "{}".into() };
        client.notify(ServerNotification::Progress(r#"{"progressToken":"up","progress":1.10}"#.into()));
        client.notify(ServerNotification::Log(LogLevel::Debug, r#"{"level":"debug","data":1}"#.into()));
        client.notify(ServerNotification::Log(LogLevel::Error, r#"{"level":"error","data":2}"#.into()));
        client.notify(other("notifications/x"));
        self.begun.add_permits(1);
        self.gate.acquire().await.unwrap().forget();
        client.notify(other("notifications/y"));
    }

    async fn forward(&self, request: ForwardRequest) -> Result<String, ErrorObject> {
        let ForwardRequest { method, params, context, .. } = request;
        self.asked.lock().unwrap().push(format!("{} {params}", method.as_str()));
        if params.contains("missing") {
            return Err(ErrorObject::new(code::INVALID_PARAMS, "no such resource"));
        }
        if params.contains("slow") && method == ForwardMethod::Subscribe {
            self.begun.add_permits(1);
            self.gate.acquire().await.unwrap().forget();
        }
        if params.contains("asking") {
            let heard = context.client.ask(vec![question("name", 0)]).await;
            let heard = heard.map_or_else(|unanswered| unanswered.to_string(), |_| "answered".to_owned());
            return Ok(format!(r#"{{"heard":"{heard}"}}"#));
        }
        Ok(r#"{"n":1.10,"_meta":{"a":1,"io.modelcontextprotocol/x":2}}"#.to_owned())
    }
}

/// Asserts that it is used as the trait says: one session, before any work.
struct FakeHandler {
    name: &'static str,
    fake: Arc<Fake>,
    has_session: AtomicBool,
}

impl FakeHandler {
    fn begin_session(&self) {
        assert!(!self.has_session.swap(true, Ordering::SeqCst), "a handler has one session");
    }

    fn check_session(&self) {
        assert!(self.has_session.load(Ordering::SeqCst), "a handler needs a session first");
    }
}

impl Handler for FakeHandler {
    fn is_same(&self, other: &dyn Handler) -> bool {
        (other as &dyn Any).downcast_ref::<Self>().is_some_and(|other| other.name == self.name)
    }

    fn instructions(&self) -> Option<String> {
        (self.name == "guest").then(|| "be \"kind\"".to_owned())
    }

    fn features(&self) -> Features {
        self.fake.features.clone()
    }

    fn open_session(&self) -> BoxFuture<'_, Result<(), ErrorObject>> {
        Box::pin(async {
            if self.name == "stranger" {
                return Err(ErrorObject::new(code::INVALID_REQUEST, "not for strangers"));
            }
            self.begin_session();
            self.fake.opened.fetch_add(1, Ordering::SeqCst);
            Ok(())
        })
    }

    fn join_session(&self) -> BoxFuture<'_, Result<(), ErrorObject>> {
        self.begin_session();
        Box::pin(async { Ok(()) })
    }

    fn list(&self, kind: ListKind, _: Version) -> BoxFuture<'_, Result<Arc<str>, ErrorObject>> {
        self.check_session();
        let items = match kind {
            ListKind::Tools => TOOLS.into(),
            ListKind::Resources | ListKind::Templates | ListKind::Prompts => {
                format!(r#"[{{"name":"{}","x":1.10}}]"#, kind.member()).into()
            }
        };
        Box::pin(async { Ok(items) })
    }

    fn header_params(&self, tool: &str) -> Result<Vec<HeaderParam>, ErrorObject> {
        self.check_session();
        let param =
            |name: &str| HeaderParam { header: format!("Mcp-Param-{name}"), path: vec![name.to_owned()] };
        Ok(if tool == "headed" { vec![param("Region"), param("N")] } else { Vec::new() })
    }

    fn call_tool(
        &self,
        call: CallRequest,
        meta: Option<Arc<str>>,
        _: Version,
        context: RequestContext,
    ) -> BoxFuture<'_, Outcome> {
        self.check_session();
        Box::pin(self.fake.call(call, meta, context))
    }

    fn request(&self, request: ForwardRequest) -> BoxFuture<'_, Result<String, ErrorObject>> {
        self.check_session();
        Box::pin(self.fake.forward(request))
    }

    fn is_visible(&self, notice: &ChangeNotice) -> bool {
        !matches!(&notice.change, Change::ListChanged { provider, .. } if &**provider == "secret")
    }

    fn close_session(&self) -> BoxFuture<'_, ()> {
        self.check_session();
        Box::pin(async {
            self.fake.closed.fetch_add(1, Ordering::SeqCst);
        })
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

/// The text of a result that says this.
fn text(what: &str) -> String {
    format!(r#"{{"content":{},"isError":false}}"#, said(what))
}

fn failed(what: &str) -> String {
    format!(r#"{{"content":{},"isError":true}}"#, said(what))
}

/// The content of a result that says this.
fn said(what: &str) -> String {
    let mut content = String::from("[{\"type\":\"text\",\"text\":");
    write_string(&mut content, what);
    content.push_str("}]");
    content
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

async fn post(server: &TestServer, sent: &[(&'static str, &str)], body: &str) -> String {
    shown(&answer(server, sent, body).await)
}

async fn answer(server: &TestServer, sent: &[(&'static str, &str)], body: &str) -> Response<Body> {
    server.post(&headers(sent), &"guest", Bytes::copy_from_slice(body.as_bytes())).await
}

/// Shakes hands as an identity and returns the id of the session.
async fn handshake(server: &TestServer, identity: &'static str, version: &str) -> String {
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
