//! Tests of calls to servers on sockets that list what they should not: which of them gets a call, and whose task an id
//! means.

use super::*;
use gantry_core::Role;
use std::sync::atomic::AtomicU64;
use tokio::io::AsyncReadExt as _;

/// A legacy server with one tool.
struct Upstream {
    address: String,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// The description of its tool; in sessions of clients that can do nothing, another one.
    description: &'static str,
    narrow_description: Option<&'static str>,
    calls: AtomicUsize,
    narrow_calls: AtomicUsize,
    asked_for_tasks: AtomicUsize,
    tasks: AtomicU64,
    drops: watch::Sender<()>,
    /// It answers nothing for as long as this is so.
    is_held: watch::Sender<bool>,
}

impl Upstream {
    async fn start(shared: Shared, http: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let shared = Arc::new(shared);
        let all = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&all), http));
            }
        });
        Self { address, shared }
    }

    async fn tcp(description: &'static str) -> Self {
        Self::start(Shared { description, ..Shared::default() }, false).await
    }

    fn calls(&self) -> usize {
        self.shared.calls.load(Ordering::SeqCst)
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>, http: bool) {
    let mut drops = shared.drops.subscribe();
    let serving = async { if http { posts(stream, &shared).await } else { lines(stream, &shared).await } };
    tokio::select! {
        _ = drops.changed() => {}
        () = serving => {}
    }
}

async fn lines(stream: TcpStream, shared: &Shared) {
    shared.is_held.subscribe().wait_for(|is_held| !is_held).await.unwrap();
    let (reader, mut writer) = stream.into_split();
    let mut lines = BufReader::new(reader).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if let Some(answer) = answer(&line, false, shared)
            && writer.write_all(format!("{answer}\n").as_bytes()).await.is_err()
        {
            return;
        }
    }
}

/// Streamable HTTP, as little of it as will do. The id of a session says what its client can do.
async fn posts(stream: TcpStream, shared: &Shared) {
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    loop {
        let (mut is_post, mut length, mut narrow) = (false, 0, false);
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            if !matches!(reader.read_line(&mut line).await, Ok(1..)) {
                return;
            }
            line.make_ascii_lowercase();
            is_post |= line.starts_with("post ");
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            narrow |= line.starts_with("mcp-session-id:") && line.contains("narrow");
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).await.unwrap();
        let body = String::from_utf8(body).unwrap();
        let status = if is_post { "200 OK" } else { "405 Method Not Allowed" };
        let session = if body.contains("\"elicitation\"") { "wide" } else { "narrow" };
        let answer = answer(&body, narrow, shared).map(|answer| answer.to_string()).unwrap_or_default();
        let text = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nmcp-session-id: {session}\r\ncontent-length: {}\r\n\r\n{answer}",
            answer.len()
        );
        if writer.write_all(text.as_bytes()).await.is_err() {
            return;
        }
    }
}

fn answer(text: &str, narrow: bool, shared: &Shared) -> Option<Value> {
    let request: Value = serde_json::from_str(text).ok()?;
    let id = request.get("id")?;
    let result = match request["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": "2025-11-25", "serverInfo": { "name": "u", "version": "1" },
            "capabilities": { "tools": {}, "resources": { "subscribe": true } },
        }),
        "resources/list" => json!({ "resources": [] }),
        "resources/templates/list" => json!({ "resourceTemplates": [] }),
        "resources/unsubscribe" => return None,
        "tools/list" => {
            let own = shared.narrow_description.filter(|_| narrow).unwrap_or(shared.description);
            json!({ "tools": [{ "name": "act", "description": own, "inputSchema": { "type": "object" } }] })
        }
        "tools/call" => {
            let calls = if narrow { &shared.narrow_calls } else { &shared.calls };
            calls.fetch_add(1, Ordering::SeqCst);
            let task = shared.tasks.fetch_add(1, Ordering::SeqCst) + 1;
            json!({ "resultType": "task", "taskId": task.to_string(), "content": [] })
        }
        "tasks/get" => {
            shared.asked_for_tasks.fetch_add(1, Ordering::SeqCst);
            json!({ "taskId": request["params"]["taskId"], "status": "working" })
        }
        _ => json!({}),
    };
    Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

/// A runtime with the server `s`.
struct Home {
    projects: Arc<Projects>,
    rt: Arc<Runtime>,
    _folder: tempfile::TempDir,
}

impl Home {
    async fn new(options: ServerOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (store, recovery) = Store::open(gantry_store::Options::new(folder.path().join("l.db"))).unwrap();
        let options = with_servers(folder.path(), vec![slow_to_start(options)]);
        let services = Services::new(store, &recovery, ProcessOptions::default());
        let plans = BTreeMap::from([("default".into(), Plan { options, providers: Vec::new() })]);
        let projects = Projects::start(services, plans, None).await.unwrap();
        let rt = projects.peek("default", None).unwrap().runtime;
        Self { projects, rt, _folder: folder }
    }

    async fn session(&self) -> Arc<Session> {
        let project = "default".into();
        let ann = Caller {
            project,
            principal: "ann".into(),
            agent: None,
            parent_agents: Arc::default(),
            role: Role::Agent,
        };
        self.rt.open_session(ann, EntryPoint::Mcp).await.unwrap()
    }

    async fn call(&self, session: &Arc<Session>) -> Reply {
        let request = CallRequest { tool: "s__act".into(), ..CallRequest::default() };
        self.rt.call(PipelineContext::new(session), request).await
    }

    /// The id of a task that a call became.
    async fn task(&self, session: &Arc<Session>) -> String {
        let reply = self.call(session).await;
        let shaped = reply.outcome.unwrap();
        gantry_core::raw::string_member(shaped.content().unwrap(), "taskId").unwrap().into_owned()
    }

    async fn ask(&self, session: &Arc<Session>, method: ForwardMethod, params: Value) -> Result<String, i32> {
        let turn = RequestContext { client: Arc::new(NoClient::default()), cancel: CancellationToken::new() };
        let request = ForwardRequest { method, params: params.to_string(), meta: None, context: turn };
        self.rt.request(session, request).await.map_err(|error| error.code)
    }

    async fn look(&self, session: &Arc<Session>, task: &str) -> Result<String, i32> {
        self.ask(session, ForwardMethod::TaskGet, json!({ "taskId": task })).await
    }

    fn status(&self) -> gantry_provider::ProviderStatus {
        self.rt.servers().remove(0)
    }

    /// Waits until all replicas of the server are ready.
    async fn all_ready(&self) {
        while self.status().health != HealthStatus::Green {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// The server `s`, with much time to start.
fn slow_to_start(options: ServerOptions) -> ServerSettings {
    let (startup_timeout, protocol) = (Duration::from_secs(30).into(), Protocol::Legacy);
    let options = ServerOptions { startup_timeout, protocol, ..options };
    ServerSettings { options, ..settings("s", "") }
}

#[tokio::test]
async fn a_replica_that_has_another_definition_is_never_called_for_it() {
    let first = Upstream::tcp("does what it says").await;
    let other = Upstream::tcp("does something else").await;
    other.shared.is_held.send_replace(true);
    let home = Home::new(tcp(&[&first.address, &other.address])).await;
    let session = home.session().await;
    home.rt.lock_accept(PinChoice::default()).await.unwrap();
    other.shared.is_held.send_replace(false);
    home.all_ready().await;
    for _ in 0..12 {
        let reply = home.call(&session).await;
        assert!(reply.is_ok(), "{}", reply.to_json());
    }
    assert_eq!((first.calls(), other.calls()), (12, 0));
    let warnings = home.rt.warnings();
    let named = |warning: &String| warning.contains("has other tools than the rest: act;");
    assert!(warnings.iter().any(named), "{warnings:?}");
    // With the first one gone, what is left is not what was accepted.
    first.shared.is_held.send_replace(true);
    first.shared.drops.send_replace(());
    while home.call(&session).await.is_ok() {}
    let refused = home.call(&session).await.outcome.unwrap_err();
    assert_eq!(refused.code, ErrorCode::ToolQuarantined, "{refused:?}");
    assert!(refused.message.ends_with("Nothing was sent."), "{refused:?}");
    assert_eq!(other.calls(), 0);
    home.rt.shutdown(Duration::ZERO).await;
}

#[tokio::test]
async fn a_session_with_another_definition_is_not_called_for_it() {
    for (narrow_description, expected) in [(None, (0, 1)), (Some("does something else"), (1, 0))] {
        let shared = Shared { description: "does what it says", narrow_description, ..Shared::default() };
        let upstream = Upstream::start(shared, true).await;
        let urls = vec![format!("http://{}/mcp", upstream.address).into()];
        let home = Home::new(ServerOptions { urls, ..ServerOptions::default() }).await;
        let session = home.session().await;
        // This client can be asked nothing, so a session for such clients is begun.
        let reply = home.call(&session).await;
        assert!(reply.is_ok(), "{}", reply.to_json());
        let calls = (upstream.calls(), upstream.shared.narrow_calls.load(Ordering::SeqCst));
        assert_eq!(calls, expected, "{narrow_description:?}");
        home.rt.shutdown(Duration::ZERO).await;
    }
}

#[tokio::test]
async fn the_id_of_a_task_is_worth_nothing_once_its_connection_is_over() {
    let upstream = Upstream::tcp("becomes a task").await;
    let home = Home::new(tcp(&[&upstream.address])).await;
    let session = home.session().await;
    let looked = || upstream.shared.asked_for_tasks.load(Ordering::SeqCst);
    let task = home.task(&session).await;
    assert!(home.look(&session, &task).await.unwrap().contains("working"));
    assert_eq!(looked(), 1);
    let mut events = home.rt.events.subscribe().1;
    upstream.shared.drops.send_replace(());
    while !matches!(events.recv().await.unwrap().kind, EventKind::ServerUp { .. }) {}
    assert_eq!(home.look(&session, &task).await, Err(-32602), "it began to count anew");
    // Nor does it mean anything to another server that is given the same name.
    let task = home.task(&session).await;
    assert!(home.look(&session, &task).await.is_ok());
    assert!(home.projects.remove_server("default", "s").await);
    home.projects.add_server("default", plan(slow_to_start(tcp(&[&upstream.address])))).await.unwrap();
    home.all_ready().await;
    assert_eq!(home.look(&session, &task).await, Err(-32602));
    assert_eq!(looked(), 2);
    home.rt.shutdown(Duration::ZERO).await;
}

#[tokio::test]
async fn a_server_that_does_not_answer_unsubscribe_does_not_hold_up_the_end() {
    let upstream = Upstream::tcp("has resources").await;
    let home = Home::new(tcp(&[&upstream.address])).await;
    let session = home.session().await;
    for n in 0..3 {
        home.ask(&session, ForwardMethod::Subscribe, json!({ "uri": format!("gantry:s/a:{n}") }))
            .await
            .unwrap();
    }
    home.rt.close_session(&session).await;
    assert!(home.rt.drain(Duration::from_secs(4)).await, "one answer that does not come takes 5 s");
    home.rt.shutdown(Duration::ZERO).await;
}
