//! A played server and a played client.

use crate::client::{
    Change, Connection, IoStreams, OfferedCapabilities, Protocol, Spawn, Target, Transport, UpstreamError,
    connect,
};
use crate::exchange::{
    BoxFuture, Capabilities, ClientChannel, ClientRequest, ClientRequestError, ClientResponse, LogLevel,
    RequestContext, ServerNotification,
};
use gantry_core::policy::{Policies, Preflight, Verdict, judge};
use gantry_core::tool::{Annotations, ApprovalRule, Origin, Settings, ToolKind, ToolSpec};
use gantry_core::{CallRequest, Caller, Permit, ResolvedCall, Role, Tool};
use serde_json::{Value, json};
use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

/// The server's end of a connection.
pub(super) struct Peer {
    reader: BufReader<tokio::io::ReadHalf<DuplexStream>>,
    writer: tokio::io::WriteHalf<DuplexStream>,
}

impl Peer {
    /// The next message; `None` when the client is gone.
    pub(super) async fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = self.reader.read_line(&mut line).await.unwrap_or(0);
        (read > 0).then(|| serde_json::from_str(&line).unwrap())
    }

    /// The next message, which must have this method.
    pub(super) async fn expect(&mut self, method: &str) -> Value {
        let message = self.next().await.unwrap_or_else(|| panic!("no {method} came"));
        assert_eq!(message["method"], method, "{message}");
        message
    }

    pub(super) async fn send(&mut self, text: impl ToString) {
        let line = format!("{}\n", text.to_string());
        // A client that is gone is what some tests are about.
        self.writer.write_all(line.as_bytes()).await.unwrap_or_default();
    }

    pub(super) async fn answer(&mut self, request: &Value, result: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }

    pub(super) async fn refuse(&mut self, request: &Value, code: i32) {
        self.send(json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": "no"}}))
            .await;
    }

    /// Shakes hands as a server of the older era.
    pub(super) async fn handshake(&mut self, capabilities: Value) {
        let request = self.expect("initialize").await;
        self.greet(&request, capabilities).await;
        self.expect("notifications/initialized").await;
    }

    pub(super) async fn greet(&mut self, initialize: &Value, capabilities: Value) {
        let result = json!({"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": {"name": "old"}, "instructions": "be kind"});
        self.answer(initialize, result).await;
    }

    /// Answers a discovery.
    pub(super) async fn discovery(&mut self, capabilities: Value) {
        let request = self.expect("server/discover").await;
        self.answer(&request, discovered(&capabilities)).await;
    }
}

pub(super) fn discovered(capabilities: &Value) -> Value {
    json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": capabilities,
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "new"}},
    })
}

type Play = dyn Fn(Peer) -> BoxFuture<'static, ()> + Send + Sync;

/// Starts a played server for every connection.
pub(super) struct Stage {
    play: Box<Play>,
    pub(super) started: AtomicUsize,
}

impl Debug for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stage")
    }
}

impl Spawn for Stage {
    fn spawn(&self) -> BoxFuture<'_, Result<IoStreams, String>> {
        self.started.fetch_add(1, Ordering::Relaxed);
        let (near, far) = tokio::io::duplex(64 * 1024);
        let (reader, writer) = tokio::io::split(far);
        let task = tokio::spawn((self.play)(Peer { reader: BufReader::new(reader), writer }));
        let (reader, writer) = tokio::io::split(near);
        let guard = Box::new(AbortOnDrop(task));
        Box::pin(std::future::ready(Ok(IoStreams {
            reader: Box::new(reader),
            writer: Box::new(writer),
            guard,
        })))
    }
}

struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A server that is played like this on every connection.
pub(super) fn stage<F>(play: impl Fn(Peer) -> F + Send + Sync + 'static) -> Arc<Stage>
where
    F: Future<Output = ()> + Send + 'static,
{
    Arc::new(Stage { play: Box::new(move |peer| Box::pin(play(peer))), started: AtomicUsize::new(0) })
}

/// What a connection tells its owner.
pub(super) struct Events {
    pub(super) changes: mpsc::Receiver<Change>,
    lists: Arc<Notify>,
}

impl Events {
    pub(super) async fn recv(&mut self) -> Option<Change> {
        self.changes.recv().await
    }

    /// Waits until the server says that a list of it is another.
    pub(super) async fn lists_changed(&self) {
        self.lists.notified().await;
    }
}

pub(super) fn target(transport: Transport, protocol: Protocol) -> (Target, Events) {
    let (changes, received) = mpsc::channel(16);
    let lists_changed = Arc::new(Notify::new());
    let events = Events { changes: received, lists: Arc::clone(&lists_changed) };
    let target = Target {
        name: "played".into(),
        transport,
        protocol,
        declared: OfferedCapabilities::default(),
        startup_timeout: Duration::from_secs(30),
        trace: None,
        changes,
        lists_changed,
    };
    (target, events)
}

/// A connection to a server of the older era.
pub(super) async fn legacy<F>(play: impl Fn(Peer) -> F + Send + Sync + 'static) -> (Connection, Events)
where
    F: Future<Output = ()> + Send + 'static,
{
    let (target, events) = target(Transport::Stdio(stage(play)), Protocol::Legacy);
    (connect(&target, &mut Protocol::Auto).await.unwrap(), events)
}

/// A connection to a server of the newer era.
pub(super) async fn modern<F>(play: impl Fn(Peer) -> F + Send + Sync + 'static) -> (Connection, Events)
where
    F: Future<Output = ()> + Send + 'static,
{
    let (target, events) = target(Transport::Stdio(stage(play)), Protocol::Modern);
    (connect(&target, &mut Protocol::Auto).await.unwrap(), events)
}

/// A played client.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) session: u64,
    pub(super) capabilities: Capabilities,
    pub(super) answer: Result<String, ClientRequestError>,
    pub(super) notices: mpsc::UnboundedSender<ServerNotification>,
    pub(super) asked: Mutex<Vec<ClientRequest>>,
}

/// A client of this session with these capabilities that answers everything like this.
pub(super) fn a_client(
    session: u64,
    capabilities: &str,
    answer: Result<&str, ClientRequestError>,
) -> (Arc<Client>, mpsc::UnboundedReceiver<ServerNotification>) {
    #[expect(clippy::disallowed_methods, reason = "a test looks at what it holds")]
    let (notices, heard) = mpsc::unbounded_channel();
    let capabilities = Capabilities::new(capabilities);
    let answer = answer.map(str::to_owned);
    (Arc::new(Client { session, capabilities, answer, notices, asked: Mutex::default() }), heard)
}

impl ClientChannel for Client {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn session(&self) -> u64 {
        self.session
    }

    fn wants_progress(&self) -> bool {
        true
    }

    fn log_level(&self) -> Option<LogLevel> {
        Some(LogLevel::Info)
    }

    fn notify(&self, notice: ServerNotification) {
        self.notices.send(notice).unwrap_or_default();
    }

    fn ask(
        &self,
        questions: Vec<ClientRequest>,
    ) -> BoxFuture<'_, Result<Vec<ClientResponse>, ClientRequestError>> {
        let answers = questions.iter().map(|_| self.answer.clone().map(Ok)).collect();
        self.asked.lock().unwrap().extend(questions);
        Box::pin(std::future::ready(answers))
    }
}

/// A call that is permitted and not sent yet.
pub(super) struct Call {
    pub(super) permit: Permit,
    pub(super) meta: Option<&'static str>,
    pub(super) cancel: CancellationToken,
    pub(super) client: Arc<dyn ClientChannel>,
}

impl Call {
    /// Sends it.
    pub(super) async fn by(self, connection: &Connection) -> Result<String, UpstreamError> {
        let turn = RequestContext { client: self.client, cancel: self.cancel };
        connection.call(&self.permit, self.meta, &turn).await
    }
}

/// A call of the tool `name` without arguments.
pub(super) fn call(name: &str, client: Arc<Client>) -> Call {
    call_with(name, "{}", client)
}

/// A call of the tool `name` with these arguments.
pub(super) fn call_with(name: &str, arguments: &str, client: Arc<Client>) -> Call {
    let origin = Origin { provider: "fake".into(), namespace: "fake".into(), kind: ToolKind::Mcp };
    let spec = ToolSpec {
        name: name.into(),
        title: None,
        description: String::new(),
        input_schema: json!({}).into(),
        output_schema: None,
        annotations: Annotations::default(),
        approval_rule: ApprovalRule::Never,
        raw: None,
        target: None,
    };
    let tool = Arc::new(Tool::new(&origin, name.into(), spec, Settings::default()));
    let request = CallRequest { arguments: Some(arguments.into()), ..CallRequest::default() };
    let caller = Caller {
        principal: "ann".into(),
        role: Role::Agent,
        agent: None,
        project: "default".into(),
        parent_agents: Arc::default(),
    };
    let judged = judge(&Policies::default(), &caller, ResolvedCall::of(tool, &request).unwrap()).unwrap();
    let Verdict::Allow(permit) = judged.into_verdict(&caller, Preflight::default()) else {
        panic!("nothing asks here");
    };
    Call { permit, meta: None, cancel: CancellationToken::new(), client }
}
