//! Tests of a server that has no connection: its status, and what calls are answered.

mod forgetful;
mod memory;

use crate::answer;
use crate::context::{self, UpstreamContext, UpstreamOptions};
use crate::launch::Launch;
use crate::listing::Listing;
use crate::options::{DisabledReason, ServerOptions, ServerSettings, TransportType};
use crate::replica::Replica;
use crate::server::UpstreamServer;
use crate::supervise;
use crate::view::ServerView;
use gantry_core::Tool;
use gantry_core::error::ErrorCode;
use gantry_mcp::client::{Protocol, Transport};
use gantry_provider::resources::Change;
use gantry_provider::server::{Observer, Server as _};
use gantry_provider::{BoxFuture, HealthStatus, Provider as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

pub(crate) fn settings(options: ServerOptions) -> ServerSettings {
    let options = ServerOptions { startup_timeout: Duration::from_secs(1).into(), ..options };
    ServerSettings { id: "s".into(), options, launch: Launch::default(), disabled: None }
}

/// Keeps the changes that clients would be notified of.
#[derive(Debug, Default)]
struct Changes(Mutex<Vec<Change>>);

impl Observer for Changes {
    fn changed(&self, change: Change) {
        self.0.lock().unwrap().push(change);
    }
}

pub(crate) fn context(observer: Arc<dyn Observer>) -> Arc<UpstreamContext> {
    let folder = tempfile::tempdir().unwrap();
    let (data, lock_file) = (folder.path().to_owned(), folder.path().join("gantry.lock"));
    let options =
        UpstreamOptions { project: "default".into(), data, lock_file, lock_trust: None, init_concurrency: 1 };
    let context = UpstreamContext::new(&options, observer);
    context.pins.refresh();
    Arc::new(context)
}

fn two_replicas(disabled: Option<DisabledReason>) -> ServerSettings {
    let options = ServerOptions {
        transport: Some(TransportType::Tcp),
        urls: vec!["127.0.0.1:1".into(), "127.0.0.1:2".into()],
        ..ServerOptions::default()
    };
    ServerSettings { disabled, ..settings(options) }
}

fn server(disabled: Option<DisabledReason>) -> Arc<UpstreamServer> {
    UpstreamServer::new(two_replicas(disabled), &context(Arc::<Changes>::default()))
}

fn listing(tools: &[&str]) -> Arc<Listing> {
    let raws = tools.iter().map(|name| serde_json::json!({ "name": name }).to_string().into()).collect();
    Arc::new(Listing::for_tests(None, raws))
}

#[test]
fn a_server_that_is_off_says_why_and_counts_as_tried() {
    let (disabled, unusable) = (
        server(Some(DisabledReason::Disabled)),
        server(Some(DisabledReason::Unusable("TOKEN is not set".into()))),
    );
    for server in [&disabled, &unusable] {
        Arc::clone(server).start();
        assert!(server.has_settled());
        assert_eq!(server.status().health, HealthStatus::Off);
    }
    assert!(disabled.warnings().is_empty(), "it is off on purpose");
    assert!(unusable.warnings().iter().any(|warning| warning.contains("TOKEN is not set")));
}

#[test]
fn a_server_that_is_down_says_why_and_when_it_is_tried_again() {
    let server = server(None);
    assert!(server.pick_any().unwrap_err().contains("still starting"));
    server.on_down(0, false, "refused".into(), Duration::from_secs(5));
    assert_eq!((&*server.status().status, server.has_settled()), ("starting", false));
    server.on_down(1, false, "refused".into(), Duration::from_secs(5));
    let status = server.status();
    assert_eq!((status.health, &*status.status, server.has_settled()), (HealthStatus::Red, "down", true));
    let reason = server.pick_any().unwrap_err();
    assert!(reason.contains("refused") && reason.contains(&status.retry_at.unwrap().to_string()), "{reason}");
    assert_eq!(status.replicas.len(), 2);
}

#[test]
fn tools_stay_listed_while_the_server_is_down() {
    let server = server(None);
    assert!(server.tools().is_empty());
    server.view.store(Arc::new(ServerView { listing: Some(listing(&["a"])), ..ServerView::new(2) }));
    server.on_down(0, false, "gone".into(), Duration::ZERO);
    let tools = server.tools();
    assert_eq!(tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["a"]);
}

#[test]
fn each_failure_says_how_far_the_call_may_have_got() {
    use gantry_core::error::EffectState::{None as Nothing, Possible};
    let tool = |read_only: bool| {
        let raw =
            serde_json::json!({ "name": "t", "annotations": { "readOnlyHint": read_only } }).to_string();
        let known = Listing::for_tests(None, vec![raw.into()]);
        Tool::new(&server(None).origin, "s__t".into(), known.tools[0].spec.clone(), Default::default())
    };
    use gantry_mcp::client::UpstreamError::{Canceled, NotSent, OutcomeUnknown, Rpc};
    let error = gantry_mcp::ErrorObject::new(-32000, "no").with_data("{\"a\":1.10}".into());
    let rows = [
        (
            NotSent("x".into()),
            ErrorCode::UpstreamUnavailable,
            Nothing,
            ErrorCode::UpstreamUnavailable,
            Nothing,
        ),
        (OutcomeUnknown("x".into()), ErrorCode::ExecutionError, Nothing, ErrorCode::OutcomeUnknown, Possible),
        (Rpc(error), ErrorCode::ExecutionError, Nothing, ErrorCode::ExecutionError, Possible),
        (Canceled, ErrorCode::Canceled, Nothing, ErrorCode::Canceled, Possible),
    ];
    for (failure, read_code, read_effect, write_code, write_effect) in rows {
        let (read, write) = (
            answer::to_fault(&server(None), &tool(true), failure.clone()),
            answer::to_fault(&server(None), &tool(false), failure),
        );
        assert_eq!((read.error.code, read.effect), (read_code, read_effect));
        assert_eq!((write.error.code, write.effect), (write_code, write_effect));
        if let Some(gantry_core::error::Upstream::Error(text)) = read.error.upstream.as_deref() {
            assert_eq!(&**text, r#"{"code":-32000,"message":"no","data":{"a":1.10}}"#);
        }
    }
}

#[test]
fn a_task_gets_an_id_of_its_own_and_an_error_result_is_an_error() {
    let server = server(None);
    let known = listing(&["t"]);
    let tool = Tool::new(&server.origin, "s__t".into(), known.tools[0].spec.clone(), Default::default());
    let ann = gantry_core::Caller {
        principal: "ann".into(),
        role: gantry_core::Role::Agent,
        agent: None,
        parent_agents: Arc::default(),
        project: "default".into(),
    };
    let task = answer::to_output(
        &server,
        (1, 7),
        &ann,
        &tool,
        r#"{"resultType":"task","taskId":"t1","status":"working"}"#,
    )
    .unwrap();
    let id = gantry_core::raw::string_member(task.text(), "taskId").unwrap().into_owned();
    let opened = server.context.task_signer.verify(&id, &ann).unwrap();
    let opened = (opened.server.as_str(), opened.replica, opened.epoch, opened.id.as_str());
    assert_eq!(opened, ("s", 1, 7, "t1"));
    let failed = answer::to_output(
        &server,
        (0, 7),
        &ann,
        &tool,
        r#"{"isError":true,"content":[{"type":"text","text":"boom"}]}"#,
    );
    assert_eq!(failed.unwrap_err().error.message, "boom");
}

#[test]
fn a_notification_that_no_session_subscribed_to_is_dropped() {
    use gantry_provider::client::LogLevel;
    let changes = Arc::<Changes>::default();
    let server = UpstreamServer::new(two_replicas(None), &context(Arc::clone(&changes) as _));
    let session = gantry_core::id::SessionId::generate();
    server.context.subscriptions.subscribe(session, server.id(), "a:watched").unwrap();
    let heard = |change| {
        supervise::pass_on(&server, change);
        changes.0.lock().unwrap().pop()
    };
    let provider = || Arc::clone(server.id());
    let updated = |uri: &str| {
        let params = format!(r#"{{"uri":"{uri}"}}"#).into();
        Change::Updated { provider: provider(), uri: uri.into(), params }
    };
    let log = |level: &str, data: &str| {
        let params = format!(r#"{{"level":"{level}","data":"{data}"}}"#).into();
        Change::Log { provider: provider(), level: LogLevel::parse(level).unwrap(), params }
    };
    assert_eq!(heard(updated("a:other")), None);
    assert!(
        matches!(heard(updated("a:watched")), Some(Change::Updated { uri, .. }) if &*uri == "gantry:s/a:watched")
    );
    assert_eq!(heard(log("debug", "x")), None, "no session has asked for it");
    assert!(heard(log("info", "x")).is_some(), "a session without a chosen level gets it");
    assert_eq!(heard(log("emergency", &"x".repeat(context::CHANGE_BYTES))), None, "too much to keep");
    server.context.subscriptions.set_level(session, LogLevel::Debug);
    assert!(heard(log("debug", "x")).is_some());
}
