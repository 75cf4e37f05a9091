//! Tests of a runtime with an MCP server on a socket: what is seen of it, and what happens when it goes and comes back.

mod live;

use super::*;
use crate::event::EventKind;
use crate::options::{Options, Plan, ProviderOptions, ServerPlan};
use crate::projects::Projects;
use crate::services::ProcessOptions;
use crate::session::Session;
use gantry_core::{Caller, EntryPoint};
use gantry_provider::client::{NoClient, RequestContext};
use gantry_provider::resources::{Change, ChangeNotice, ForwardMethod, ForwardRequest, ListKind};
use gantry_provider::{HealthStatus, PinChoice};
use gantry_upstream::UpstreamOptions;
use gantry_upstream::launch::Launch;
use gantry_upstream::options::{Protocol, ServerOptions, ServerSettings, TransportType};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A legacy server with one tool per generation up to nine, one resource, and more in later generations, and one prompt.
struct Upstream {
    address: String,
    /// Moves on to change the tools of the server; connections are dropped when it reaches `DROP`.
    generation: watch::Sender<u64>,
    calls: Arc<AtomicUsize>,
    /// How many resources it was asked to watch, less those it was asked to forget.
    watched: Arc<watch::Sender<i64>>,
}

const DROP: u64 = 100;

impl Upstream {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (generation, calls) = (watch::Sender::new(1), Arc::new(AtomicUsize::new(0)));
        let watched = Arc::new(watch::Sender::new(0));
        let (changes, counter, watching) = (generation.subscribe(), Arc::clone(&calls), Arc::clone(&watched));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, changes.clone(), Arc::clone(&counter), Arc::clone(&watching)));
            }
        });
        Self { address, generation, calls, watched }
    }
}

async fn serve(
    stream: TcpStream,
    mut generation: watch::Receiver<u64>,
    calls: Arc<AtomicUsize>,
    watched: Arc<watch::Sender<i64>>,
) {
    let (reader, mut writer) = stream.into_split();
    let mut lines = BufReader::new(reader).lines();
    generation.mark_unchanged();
    loop {
        let message = tokio::select! {
            line = lines.next_line() => {
                let Ok(Some(line)) = line else { return };
                let request: Value = serde_json::from_str(&line).unwrap();
                let Some(id) = request.get("id").cloned() else { continue };
                let now = *generation.borrow();
                match request["method"].as_str() {
                    Some("resources/subscribe") => watched.send_modify(|count| *count += 1),
                    Some("resources/unsubscribe") => watched.send_modify(|count| *count -= 1),
                    Some("tools/call") => {
                        let params = json!({ "uri": "memo://a" });
                        let notice = json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params });
                        writer.write_all(format!("{notice}\n").as_bytes()).await.unwrap();
                    }
                    _ => {}
                }
                match answer(&request, now, &calls) {
                    Some(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
                    None => json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "no" } }),
                }
            }
            changed = generation.changed() => {
                if changed.is_err() || *generation.borrow() == DROP {
                    return;
                }
                json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" })
            }
        };
        if writer.write_all(format!("{message}\n").as_bytes()).await.is_err() {
            return;
        }
    }
}

fn answer(request: &Value, generation: u64, calls: &AtomicUsize) -> Option<Value> {
    let tool =
        |n: u64| json!({ "name": format!("tool-{n}"), "inputSchema": { "type": "object" }, "vendor": n });
    Some(match request["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": "2025-11-25", "serverInfo": { "name": "u", "version": "1" }, "instructions": "be kind",
            "capabilities": { "tools": { "listChanged": true }, "resources": { "subscribe": true }, "prompts": {}, "extensions": { "x/y": {} } },
        }),
        "tools/list" => json!({ "tools": (1..=generation.min(9)).map(tool).collect::<Vec<_>>() }),
        "resources/list" => {
            let more = (10..generation.min(DROP - 1))
                .map(|n| json!({ "uri": format!("memo://{n}"), "name": "more" }));
            let all = std::iter::once(json!({ "uri": "memo://a", "name": "a" })).chain(more);
            json!({ "resources": all.collect::<Vec<_>>() })
        }
        "resources/templates/list" => json!({ "resourceTemplates": [] }),
        "prompts/list" => json!({ "prompts": [{ "name": "greet-me" }] }),
        "prompts/get" => json!({ "messages": [], "asked": request["params"]["name"] }),
        "resources/read" => json!({ "contents": [{ "uri": request["params"]["uri"], "text": "hi" }] }),
        "tools/call" => {
            calls.fetch_add(1, Ordering::SeqCst);
            json!({ "content": [{ "type": "resource_link", "uri": "memo://a", "name": "a" }], "got": request["params"]["arguments"] })
        }
        "ping" | "resources/subscribe" | "resources/unsubscribe" => json!({}),
        _ => return None,
    })
}

fn settings(id: &str, address: &str) -> ServerSettings {
    let options = ServerOptions {
        protocol: Protocol::Legacy,
        startup_timeout: Duration::from_secs(10).into(),
        ..tcp(&[address])
    };
    ServerSettings { id: id.into(), options, launch: Launch::default(), disabled: None }
}

fn tcp(addresses: &[&str]) -> ServerOptions {
    let urls = addresses.iter().map(|address| (*address).into()).collect();
    ServerOptions { transport: Some(TransportType::Tcp), urls, ..ServerOptions::default() }
}

fn plan(settings: ServerSettings) -> ServerPlan {
    ServerPlan { config: Arc::new(settings), options: ProviderOptions::default() }
}

/// The options of a runtime in this folder with these servers.
fn with_servers(folder: &std::path::Path, servers: Vec<ServerSettings>) -> Options {
    let options = Options::new(folder.to_owned());
    let factory = UpstreamOptions {
        project: Arc::clone(&options.project),
        data: folder.to_owned(),
        lock_file: folder.join("gantry.lock"),
        lock_trust: None,
        init_concurrency: 8,
    };
    let servers = servers.into_iter().map(plan).collect();
    Options { servers, server_factory: Arc::new(factory), ..options }
}

struct Home {
    projects: Arc<Projects>,
    rt: Arc<Runtime>,
    upstream: Upstream,
    _folder: tempfile::TempDir,
}

impl Home {
    async fn new(servers: impl FnOnce(&str) -> Vec<ServerSettings>) -> Self {
        let (folder, upstream) = (tempfile::tempdir().unwrap(), Upstream::start().await);
        let file = folder.path().join("ledger.db");
        let (store, recovery) = Store::open(gantry_store::Options::new(file)).unwrap();
        let options = with_servers(folder.path(), servers(&upstream.address));
        let services = Services::new(store, &recovery, ProcessOptions::default());
        let plans = BTreeMap::from([("default".into(), Plan { options, providers: Vec::new() })]);
        let projects = Projects::start(services, plans, None).await.unwrap();
        let rt = projects.peek("default", None).unwrap().runtime;
        Self { projects, rt, upstream, _folder: folder }
    }

    async fn session(&self) -> Arc<Session> {
        let caller = Caller {
            project: "default".into(),
            principal: "ann".into(),
            agent: None,
            parent_agents: Arc::default(),
            role: gantry_core::Role::Agent,
        };
        self.rt.open_session(caller, EntryPoint::Mcp).await.unwrap()
    }

    async fn call(&self, session: &Arc<Session>, tool: &str) -> Reply {
        let request = CallRequest {
            tool: tool.into(),
            arguments: Some("{\"n\":1.10}".into()),
            ..CallRequest::default()
        };
        self.rt.call(PipelineContext::new(session), request).await
    }

    async fn ask(&self, session: &Arc<Session>, method: ForwardMethod, params: Value) -> Result<Value, i32> {
        let (audience, cancel) = (Arc::new(NoClient::default()), CancellationToken::new());
        let turn = RequestContext { client: audience, cancel };
        let request = ForwardRequest { method, params: params.to_string(), meta: None, context: turn };
        let result = self.rt.request(session, request).await;
        result.map(|text| serde_json::from_str(&text).unwrap()).map_err(|error| error.code)
    }

    async fn add(&self, id: &str) -> Result<(), String> {
        self.projects.add_server("default", plan(settings(id, &self.upstream.address))).await
    }

    async fn remove(&self, id: &str) -> bool {
        self.projects.remove_server("default", id).await
    }

    fn names(&self) -> Vec<String> {
        self.rt.pool().tools().iter().map(|tool| tool.name.to_string()).collect()
    }
}

async fn tools_changed(changes: &mut tokio::sync::broadcast::Receiver<ChangeNotice>) {
    let tools = |change: &Change| matches!(change, Change::ListChanged { kind: ListKind::Tools, .. });
    while !tools(&changes.recv().await.unwrap().change) {}
}

#[tokio::test]
async fn the_first_session_sees_every_server_that_works_and_why_another_does_not() {
    let home = Home::new(|address| {
        let mut bare = settings("z-bare", address);
        bare.options.prefix = false;
        vec![settings("up", address), settings("down", "127.0.0.1:1"), bare]
    })
    .await;
    let session = home.session().await;
    assert_eq!(home.names(), ["tool-1", "up__tool_1"]);
    let lights: Vec<_> =
        home.rt.servers().iter().map(|server| (server.id.to_string(), server.health)).collect();
    assert_eq!(
        lights,
        [
            ("down".into(), HealthStatus::Red),
            ("up".into(), HealthStatus::Green),
            ("z-bare".into(), HealthStatus::Green)
        ]
    );
    assert!(home.rt.explain("down__x", None, 0).reasons[0].contains("server down is down"));
    assert!(home.rt.instructions(None).unwrap().contains("be kind"));
    assert_eq!(
        home.rt.features(None).extensions.as_deref(),
        Some(r#"{"x/y":{},"io.modelcontextprotocol/tasks":{}}"#)
    );
    let reply = home.call(&session, "up__tool_1").await;
    let json: Value = serde_json::from_str(&reply.to_json()).unwrap();
    assert_eq!(json["result"][0]["uri"], "gantry:up/memo://a", "{json}");
    home.rt.shutdown(Duration::ZERO).await;
}

#[tokio::test]
async fn resources_and_prompts_are_found_under_the_names_that_are_shown() {
    let home = Home::new(|address| vec![settings("up", address)]).await;
    let session = home.session().await;
    assert_eq!(&*home.rt.catalogue(&session, ListKind::Prompts), r#"[{"name":"up__greet_me"}]"#);
    assert_eq!(
        &*home.rt.catalogue(&session, ListKind::Resources),
        r#"[{"uri":"gantry:up/memo://a","name":"a"}]"#
    );
    let prompt = home.ask(&session, ForwardMethod::GetPrompt, json!({ "name": "up__greet_me" })).await;
    assert_eq!(prompt.unwrap()["asked"], "greet-me");
    for (asked, answered) in [("gantry:up/memo://a", "gantry:up/memo://a"), ("memo://a", "memo://a")] {
        let read = home.ask(&session, ForwardMethod::ReadResource, json!({ "uri": asked })).await.unwrap();
        assert_eq!(read["contents"][0]["uri"], answered);
    }
    for (method, params) in [
        (ForwardMethod::ReadResource, json!({ "uri": "gantry:other/memo://a" })),
        (ForwardMethod::ReadResource, json!({ "uri": "memo://b" })),
        (ForwardMethod::GetPrompt, json!({ "name": "greet-me" })),
        (ForwardMethod::TaskGet, json!({ "taskId": "t" })),
        (ForwardMethod::SetLevel, json!({ "level": "loud" })),
        (ForwardMethod::ReadResource, json!({})),
    ] {
        assert_eq!(home.ask(&session, method, params).await, Err(-32602), "{method:?}");
    }
    home.rt.shutdown(Duration::ZERO).await;
}

#[tokio::test]
async fn a_changed_list_is_seen_and_a_pinned_server_has_its_news_quarantined() {
    let home = Home::new(|address| vec![settings("up", address)]).await;
    let old = home.session().await;
    assert_eq!(
        home.rt.lock_accept(PinChoice::default()).await.unwrap().len(),
        2,
        "the instructions and one tool"
    );
    let mut changes = home.rt.services.changes();
    home.upstream.generation.send_replace(2);
    tools_changed(&mut changes).await;
    assert_eq!(home.names(), ["up__tool_1", "up__tool_2"]);
    let session = home.session().await;
    assert!(home.call(&session, "up__tool_1").await.is_ok());
    let refused = home.call(&session, "up__tool_2").await.outcome.unwrap_err();
    assert_eq!(refused.code, ErrorCode::ToolQuarantined);
    assert!(refused.message.contains("gantry lock diff"), "{}", refused.message);
    assert_eq!(home.upstream.calls.load(Ordering::SeqCst), 1);
    assert_eq!(home.rt.lock_diff(Some("up")).len(), 1);
    let one = PinChoice { server: Some("up".into()), tool: Some("tool-2".into()), seen: None };
    home.rt.lock_accept(one).await.unwrap();
    home.rt.renew(&old).unwrap();
    assert!(home.call(&old, "up__tool_2").await.is_ok());
    home.rt.shutdown(Duration::ZERO).await;
}

#[tokio::test]
async fn a_lost_server_comes_back_by_itself() {
    let home = Home::new(|address| vec![settings("up", address)]).await;
    let session = home.session().await;
    let mut events = home.rt.events.subscribe().1;
    home.upstream.generation.send_replace(DROP);
    let mut seen = Vec::new();
    while seen.last() != Some(&"up") {
        let event = events.recv().await.unwrap();
        if matches!(event.kind, EventKind::ServerDown { .. }) {
            seen.push("down");
        } else if matches!(event.kind, EventKind::ServerUp { .. }) {
            seen.push("up");
        }
    }
    assert_eq!(seen, ["down", "up"]);
    assert!(home.call(&session, "up__tool_1").await.is_ok());
    home.rt.shutdown(Duration::ZERO).await;
}

#[tokio::test]
async fn servers_come_and_go_while_it_runs() {
    let home = Home::new(|_| Vec::new()).await;
    let session = home.session().await;
    let mut changes = home.rt.services.changes();
    home.add("later").await.unwrap();
    for (id, why) in [("later", "already"), ("agent", "reserved"), ("later__x", "begin alike")] {
        let refused = home.add(id).await.unwrap_err();
        assert!(refused.contains(why), "{id}: {refused}");
    }
    tools_changed(&mut changes).await;
    home.rt.renew(&session).unwrap();
    assert!(home.call(&session, "later__tool_1").await.is_ok());
    assert!(home.rt.restart_server("later") && !home.rt.restart_server("unknown"));
    assert!(home.remove("later").await && !home.remove("later").await);
    assert!(home.names().is_empty() && home.rt.servers().is_empty());
    let refused = home.call(&session, "later__tool_1").await.outcome.unwrap_err();
    assert_eq!(refused.code, ErrorCode::ToolNotFound, "what was taken away is gone for running sessions too");
    home.rt.shutdown(Duration::ZERO).await;
}

#[tokio::test]
async fn a_server_is_ready_when_its_tools_can_be_called() {
    let home = Home::new(|_| Vec::new()).await;
    for n in 0..3 {
        let id = format!("later-{n}");
        let is_ready =
            || home.rt.servers().iter().any(|server| *server.id == *id && server.status == "ready");
        let looking = async {
            while !is_ready() {
                tokio::task::yield_now().await;
            }
            home.names()
        };
        let (added, names) = tokio::join!(home.add(&id), looking);
        added.unwrap();
        assert!(names.contains(&format!("later_{n}__tool_1")), "{names:?}");
    }
    home.rt.shutdown(Duration::ZERO).await;
}

#[tokio::test]
async fn a_server_with_other_tools_is_ready_when_those_can_be_called() {
    let home = Home::new(|address| vec![settings("up", address)]).await;
    let _settled = home.session().await;
    let ready_with = async |tools: usize| {
        loop {
            let status = home.rt.servers().remove(0);
            if status.status == "ready" && status.tools == tools {
                return home.names();
            }
            tokio::task::yield_now().await;
        }
    };
    // A list that changes, and one that is another after a restart; no other client is notified of the second.
    home.upstream.generation.send_replace(2);
    assert_eq!(ready_with(2).await.len(), 2);
    home.upstream.generation.send_if_modified(|generation| {
        *generation = 9;
        false
    });
    home.rt.restart_server("up");
    assert_eq!(ready_with(9).await.len(), 9);

    // Other resources do not make it any less ready.
    home.upstream.generation.send_replace(11);
    loop {
        let status = home.rt.servers().remove(0);
        assert_eq!((&*status.status, status.tools), ("ready", 9));
        if status.resources == 2 {
            break;
        }
        tokio::task::yield_now().await;
    }
    home.rt.shutdown(Duration::ZERO).await;
}

#[tokio::test]
async fn a_resource_is_watched_once_and_let_go_with_the_last_who_wanted_it() {
    let home = Home::new(|address| vec![settings("up", address)]).await;
    let (ann, bob) = (home.session().await, home.session().await);
    let (mut changes, mut watched) = (home.rt.services.changes(), home.upstream.watched.subscribe());
    let (uri, params) = ("gantry:up/memo://a", json!({ "uri": "gantry:up/memo://a" }));
    home.ask(&ann, ForwardMethod::Subscribe, params.clone()).await.unwrap();
    home.ask(&bob, ForwardMethod::Subscribe, params.clone()).await.unwrap();
    assert_eq!(*watched.borrow(), 1);

    assert!(home.call(&ann, "up__tool_1").await.is_ok());
    let updated =
        Change::Updated { provider: "up".into(), uri: uri.into(), params: params.to_string().into() };
    assert_eq!(changes.recv().await.unwrap().change, updated);

    home.ask(&ann, ForwardMethod::Unsubscribe, params).await.unwrap();
    assert_eq!(*watched.borrow_and_update(), 1, "the other still listens");
    home.rt.close_session(&bob).await;
    watched.wait_for(|count| *count == 0).await.unwrap();
    home.rt.shutdown(Duration::ZERO).await;
}

#[tokio::test]
async fn a_call_does_not_keep_a_tool_that_was_taken_away_while_another_call_renewed_the_session() {
    let home = Home::new(|address| vec![settings("up", address)]).await;
    let session = home.session().await;
    let request =
        CallRequest { tool: "up__tool_1".into(), arguments: Some("{}".into()), ..CallRequest::default() };
    let seen = session.resolved();
    assert!(home.rt.snapshot().resolve_call(&session, &seen, &request).is_ok());
    assert!(home.remove("up").await);
    home.rt.renew(&session).unwrap();
    let refusal = home.rt.snapshot().resolve_call(&session, &seen, &request).unwrap_err();
    assert_eq!(refusal.error().code, ErrorCode::ToolNotFound);
    home.rt.shutdown(Duration::ZERO).await;
}
