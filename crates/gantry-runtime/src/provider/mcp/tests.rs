//! Tests of a server that has no connection: what it says of itself, and what calls are told.

mod live;
mod memory;

use super::*;
use crate::event::Events;
use crate::options::{Options, ProviderOptions};
use crate::servers::{Health, Off, Reach};
use gantry_core::error::ErrorCode;
use gantry_mcp::client::{Declared, Protocol};
use tokio::sync::broadcast;

pub(super) fn settings(reach: Reach) -> ServerSettings {
    ServerSettings {
        id: "s".into(),
        reach,
        protocol: Protocol::Auto,
        prefix: true,
        declared: Declared::default(),
        startup_timeout: Duration::from_secs(1),
        health: Health { interval: Duration::from_secs(30), timeout: Duration::from_secs(5) },
        trace: false,
        off: None,
        options: ProviderOptions::default(),
    }
}

fn server(off: Option<Off>) -> Arc<McpServer> {
    let folder = tempfile::tempdir().unwrap();
    let lock = folder.path().join("gantry.lock");
    let options = Options { lock_file: lock, init_concurrency: 1, ..Options::new(folder.path().to_owned()) };
    let hub = Arc::new(Hub::open(&options, Events::default(), (1, broadcast::channel(8).0)));
    let reach = Reach::Tcp(vec!["127.0.0.1:1".into(), "127.0.0.1:2".into()]);
    McpServer::new(ServerSettings { off, ..settings(reach) }, &hub)
}

fn listing(tools: &[&str]) -> Arc<Listing> {
    let raws = tools.iter().map(|name| serde_json::json!({ "name": name }).to_string().into()).collect();
    Arc::new(Listing::for_tests(None, raws))
}

#[test]
fn a_server_that_is_off_says_why_and_counts_as_tried() {
    let (disabled, unusable) =
        (server(Some(Off::Disabled)), server(Some(Off::Unusable("TOKEN is not set".into()))));
    for server in [&disabled, &unusable] {
        server.start();
        assert!(server.has_verdict());
        assert_eq!(server.status().light, Light::Off);
    }
    assert!(disabled.warnings().is_empty(), "somebody wanted it off");
    assert!(unusable.warnings().iter().any(|warning| warning.contains("TOKEN is not set")));
}

#[test]
fn a_server_that_is_down_says_why_and_when_it_is_tried_again() {
    let server = server(None);
    assert!(server.pick().unwrap_err().contains("still starting"));
    server.went_down(&server.replicas[0], "refused".into(), Duration::from_secs(5));
    assert_eq!((server.status().status, server.has_verdict()), ("starting", false));
    server.went_down(&server.replicas[1], "refused".into(), Duration::from_secs(5));
    let status = server.status();
    assert_eq!((status.light, status.status, server.has_verdict()), (Light::Red, "down", true));
    let reason = server.pick().unwrap_err();
    assert!(reason.contains("refused") && reason.contains(&status.retry_at.unwrap()), "{reason}");
    assert_eq!(status.replicas.len(), 2);
}

#[test]
fn tools_stay_listed_while_the_server_is_down() {
    let server = server(None);
    assert!(server.tools().is_empty());
    server.known.store(Some(listing(&["a"])));
    server.went_down(&server.replicas[0], "gone".into(), Duration::ZERO);
    assert!(server.has_tool("a"));
    assert_eq!(server.tools().len(), 1);
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
    use gantry_mcp::client::Failure::{Answered, Canceled, Lost, Unavailable};
    let error = gantry_mcp::ErrorObject::new(-32000, "no").with_data("{\"a\":1.10}".into());
    let rows = [
        (
            Unavailable("x".into()),
            ErrorCode::UpstreamUnavailable,
            Nothing,
            ErrorCode::UpstreamUnavailable,
            Nothing,
        ),
        (Lost("x".into()), ErrorCode::ExecutionError, Nothing, ErrorCode::OutcomeUnknown, Possible),
        (Answered(error), ErrorCode::ExecutionError, Nothing, ErrorCode::ExecutionError, Possible),
        (Canceled, ErrorCode::Canceled, Nothing, ErrorCode::Canceled, Possible),
    ];
    for (failure, read_code, read_effect, write_code, write_effect) in rows {
        let (read, write) =
            (answer::fault("s", &tool(true), failure.clone()), answer::fault("s", &tool(false), failure));
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
        above: Arc::default(),
        project: "default".into(),
    };
    let task = answer::output(
        &server,
        answer::At { replica: 1, life: 7 },
        &ann,
        &tool,
        r#"{"resultType":"task","taskId":"t1","status":"working"}"#,
    )
    .unwrap();
    let id = gantry_core::raw::string_member(task.text(), "taskId").unwrap().into_owned();
    let opened = server.hub.seal.open(&id, &ann).unwrap();
    let opened = (opened.server.as_str(), opened.replica, opened.life, opened.id.as_str());
    assert_eq!(opened, ("s", 1, 7, "t1"));
    let failed = answer::output(
        &server,
        answer::At { replica: 0, life: 7 },
        &ann,
        &tool,
        r#"{"isError":true,"content":[{"type":"text","text":"boom"}]}"#,
    );
    assert_eq!(failed.unwrap_err().error.message, "boom");
}

#[test]
fn what_a_server_has_is_never_older_than_what_its_first_replica_listed() {
    let server = server(None);
    let first = &server.replicas[0];
    first.pretend_ready(1);
    for _ in 0..500 {
        let newest = listing(&["a"]);
        let begin = std::sync::Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    begin.wait();
                    (0..20).for_each(|_| server.settle());
                });
            }
            begin.wait();
            first.listed(Arc::clone(&newest));
            server.settle();
        });
        assert!(Arc::ptr_eq(&server.listing().unwrap(), &newest));
    }
}

#[test]
fn what_nobody_may_want_to_hear_is_not_kept_for_anybody() {
    use crate::servers::Change;
    use gantry_mcp::client::Event;
    use gantry_provider::client::LogLevel;
    let server = server(None);
    let mut changes = server.hub.changes.1.subscribe();
    let session = gantry_core::id::SessionId::mint();
    server.hub.wishes.watch(session, server.id(), "a:watched").unwrap();
    let mut heard = |event| {
        assert_eq!(supervise::announce(&server, event), None);
        changes.try_recv().ok().map(|told| told.change)
    };
    let updated = |uri: &str| Event::Updated(format!(r#"{{"uri":"{uri}"}}"#).into());
    let log =
        |level: &str, data: &str| Event::Log(format!(r#"{{"level":"{level}","data":"{data}"}}"#).into());
    assert_eq!(heard(updated("a:other")), None);
    assert!(
        matches!(heard(updated("a:watched")), Some(Change::Updated { uri, .. }) if &*uri == "gantry:s/a:watched")
    );
    assert_eq!(heard(log("debug", "x")), None, "nobody has asked for it");
    assert!(heard(log("info", "x")).is_some(), "who has not chosen a level hears it");
    assert_eq!(heard(log("emergency", &"x".repeat(hub::CHANGE_BYTES))), None, "too much to keep");
    server.hub.wishes.set_level(session, LogLevel::Debug);
    assert!(heard(log("debug", "x")).is_some());
}
