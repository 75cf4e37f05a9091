//! Requests, notifications and broken servers on a duplex link.

use super::fake::{Peer, a_client, call, call_with, legacy, modern};
use crate::{
    client::{Change, ListKind, UpstreamError},
    exchange::ServerNotification,
};
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn answers_find_their_requests_in_any_order_and_keep_their_text() {
    let (connection, _events) = legacy(async |mut peer: Peer| {
        peer.handshake(json!({})).await;
        let first = peer.expect("tools/call").await;
        let second = peer.expect("tools/call").await;
        peer.send(format!(r#"{{"jsonrpc":"2.0","result":{{"n":1.10,"big":1e400}},"id":{}}}"#, second["id"]))
            .await;
        peer.send(format!(
            r#"[{{"jsonrpc":"2.0","id":"{}","error":{{"code":-32042,"message":"url","data":{{"a":1.0}}}}}}]"#,
            first["id"]
        ))
        .await;
        peer.next().await;
    })
    .await;
    assert_eq!(connection.info().instructions.as_deref(), Some("be kind"));
    let (client, _heard) = a_client(1, "{}", Ok("{}"));
    let (first, second) =
        tokio::join!(call("a", client.clone()).by(&connection), call("b", client).by(&connection));
    assert_eq!(second.unwrap(), r#"{"n":1.10,"big":1e400}"#);
    let Err(UpstreamError::Rpc(error)) = first else { panic!("{first:?}") };
    assert_eq!((error.code, error.data.as_deref()), (-32042, Some(r#"{"a":1.0}"#)));
    assert_eq!(connection.inner.dispatcher().pending().in_flight(), 0);
}

#[tokio::test]
async fn progress_and_logs_reach_the_client_of_the_request() {
    let (connection, mut events) = legacy(async |mut peer: Peer| {
        peer.send(json!({"method": "notifications/message", "params": {"level": "info", "data": "early"}}))
            .await;
        peer.handshake(json!({})).await;
        let request = peer.expect("tools/call").await;
        let token = &request["params"]["_meta"]["progressToken"];
        peer.send(
            json!({"method": "notifications/progress", "params": {"progressToken": 999, "progress": 1}}),
        )
        .await;
        peer.send(
            json!({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1}}),
        )
        .await;
        peer.send(
            json!({"method": "notifications/message", "params": {"level": "debug", "data": "too fine"}}),
        )
        .await;
        peer.send(json!({"method": "notifications/message", "params": {"level": "error", "data": "x"}}))
            .await;
        peer.send(json!({"method": "notifications/tools/list_changed"})).await;
        peer.answer(&request, json!({})).await;
        peer.next().await;
    })
    .await;
    let (client, mut heard) = a_client(1, "{}", Ok("{}"));
    call("a", client).by(&connection).await.unwrap();
    let Some(ServerNotification::Progress(params)) = heard.recv().await else { panic!("no progress") };
    assert!(params.contains("\"progress\":1"), "{params}");
    let Some(ServerNotification::Log(_, params)) = heard.recv().await else { panic!("no log") };
    assert!(params.contains("\"x\""), "{params}");
    assert!(matches!(events.recv().await, Some(Change::Log { params, .. }) if params.contains("early")));
    events.lists_changed().await;
}

#[tokio::test]
async fn logs_of_several_sessions_reach_none_of_them() {
    let (connection, events) = legacy(async |mut peer: Peer| {
        peer.handshake(json!({})).await;
        let first = peer.expect("tools/call").await;
        let second = peer.expect("tools/call").await;
        peer.send(json!({"method": "notifications/message", "params": {"level": "error", "data": "whose?"}}))
            .await;
        peer.answer(&first, json!({})).await;
        peer.answer(&second, json!({})).await;
        peer.send(json!({"method": "notifications/tools/list_changed"})).await;
        peer.next().await;
    })
    .await;
    let (one, mut heard_one) = a_client(1, "{}", Ok("{}"));
    let (two, mut heard_two) = a_client(2, "{}", Ok("{}"));
    let (first, second) = tokio::join!(call("a", one).by(&connection), call("b", two).by(&connection));
    first.and(second).unwrap();
    // An event would reach every session that sees the server.
    events.lists_changed().await;
    assert!(heard_one.try_recv().is_err() && heard_two.try_recv().is_err());
}

#[tokio::test]
async fn withdrawing_notifies_the_server_by_token_and_by_dropping() {
    let (reported, mut withdrawn) = tokio::sync::mpsc::channel(4);
    let (connection, _events) = legacy(move |mut peer: Peer| {
        let reported = reported.clone();
        async move {
            peer.handshake(json!({})).await;
            while let Some(message) = peer.next().await {
                reported.send(message).await.unwrap();
            }
        }
    })
    .await;
    let (client, _heard) = a_client(1, "{}", Ok("{}"));
    for by_token in [true, false] {
        let request = call("a", client.clone());
        let cancel = request.cancel.clone();
        let mut running = Box::pin(request.by(&connection));
        let sent = tokio::select! { _ = &mut running => panic!("no answer was sent"), sent = withdrawn.recv() => sent };
        assert_eq!(connection.inner.dispatcher().pending().in_flight(), 1);
        if by_token {
            cancel.cancel();
            assert_eq!(running.await, Err(UpstreamError::Canceled));
        } else {
            drop(running);
        }
        let notice = withdrawn.recv().await.unwrap();
        assert_eq!(notice["method"], "notifications/cancelled");
        assert_eq!(notice["params"]["requestId"], sent.unwrap()["id"]);
        assert_eq!(connection.inner.dispatcher().pending().in_flight(), 0);
    }
}

#[tokio::test]
async fn a_server_that_ends_loses_what_is_under_way_and_takes_nothing_more() {
    let (connection, _events) = legacy(async |mut peer: Peer| {
        peer.handshake(json!({})).await;
        peer.expect("tools/call").await;
    })
    .await;
    let (client, _heard) = a_client(1, "{}", Ok("{}"));
    let outcome = call("a", client.clone()).by(&connection).await;
    assert!(matches!(outcome, Err(UpstreamError::OutcomeUnknown(_))), "{outcome:?}");
    assert_eq!(connection.closed().await, "the server closed its output");
    let outcome = call("a", client).by(&connection).await;
    assert!(matches!(outcome, Err(UpstreamError::NotSent(_))), "{outcome:?}");
}

#[tokio::test]
async fn an_endless_line_loses_what_is_under_way_but_not_the_connection() {
    let (connection, _events) = legacy(async |mut peer: Peer| {
        peer.handshake(json!({})).await;
        peer.expect("tools/call").await;
        peer.send("x".repeat(crate::limits::LINE_BYTES + 1)).await;
        let request = peer.expect("tools/call").await;
        peer.answer(&request, json!({"ok": true})).await;
        peer.next().await;
    })
    .await;
    let (client, _heard) = a_client(1, "{}", Ok("{}"));
    let outcome = call("a", client.clone()).by(&connection).await;
    assert!(
        matches!(&outcome, Err(UpstreamError::OutcomeUnknown(reason)) if reason.contains("a line of more than")),
        "{outcome:?}"
    );
    assert_eq!(call("a", client).by(&connection).await.unwrap(), r#"{"ok":true}"#);
}

#[tokio::test]
async fn what_is_not_a_message_is_passed_over() {
    let (connection, _events) = legacy(async |mut peer: Peer| {
        peer.send("Starting server...").await;
        peer.handshake(json!({})).await;
        let request = peer.expect("tools/call").await;
        for garbage in ["", "null", "{\"jsonrpc\":\"2.0\"}", "{\"id\":1", "[[]]", "\u{1b}[31mred"] {
            peer.send(garbage).await;
        }
        for _ in 0..2000 {
            peer.send("noise").await;
        }
        peer.answer(&json!({"id": 4711}), json!({"not": "yours"})).await;
        peer.answer(&request, json!({})).await;
        peer.next().await;
    })
    .await;
    let (client, _heard) = a_client(1, "{}", Ok("{}"));
    assert_eq!(call("a", client).by(&connection).await.unwrap(), "{}");
}

#[tokio::test]
async fn an_answer_that_cannot_be_used_is_lost() {
    let (connection, _events) = legacy(async |mut peer: Peer| {
        peer.handshake(json!({})).await;
        let request = peer.expect("tools/call").await;
        peer.answer(&request, json!([1])).await;
        let request = peer.expect("tools/call").await;
        peer.send(format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"#, request["id"])).await;
        peer.next().await;
    })
    .await;
    let (client, _heard) = a_client(1, "{}", Ok("{}"));
    for _ in 0..2 {
        assert!(matches!(
            call("a", client.clone()).by(&connection).await,
            Err(UpstreamError::OutcomeUnknown(_))
        ));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_read_blocks_no_caller_for_ever() {
    let (connection, _events) = legacy(async |mut peer: Peer| {
        peer.handshake(json!({})).await;
        std::future::pending::<()>().await;
    })
    .await;
    let (client, _heard) = a_client(1, "{}", Ok("{}"));
    let big = || {
        let arguments = json!({"x": "x".repeat(100_000)}).to_string();
        call_with("a", &arguments, client.clone()).by(&connection)
    };
    let stuck: Vec<_> = (0..100).map(|_| big()).collect();
    let all = futures_util::future::select_all(stuck.into_iter().map(Box::pin));
    let (outcome, ..) = all.await;
    assert!(
        matches!(&outcome, Err(UpstreamError::NotSent(reason)) if reason.contains("not read")),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_server_can_be_asked_whether_it_is_there() {
    let (connection, _events) = legacy(async |mut peer: Peer| {
        peer.handshake(json!({})).await;
        let ping = peer.expect("ping").await;
        peer.refuse(&ping, -32601).await;
        peer.send(json!({"jsonrpc": "2.0", "id": "p", "method": "ping"})).await;
        let pong = peer.next().await.unwrap();
        assert_eq!(pong, json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
        peer.expect("ping").await;
    })
    .await;
    connection.ping(Duration::from_secs(5)).await.unwrap();
    assert!(connection.ping(Duration::from_secs(5)).await.is_err());
}

#[tokio::test]
async fn a_tool_that_demands_a_task_is_started_watched_and_fetched() {
    let (connection, _events) = legacy(async |mut peer: Peer| {
        peer.handshake(json!({})).await;
        let list = peer.expect("tools/list").await;
        peer.answer(&list, json!({"tools": [{"name": "slow", "execution": {"taskSupport": "required"}}]}))
            .await;
        let start = peer.expect("tools/call").await;
        assert_eq!(start["params"]["task"], json!({}));
        let task = |status: &str| json!({"taskId": "t", "status": status, "pollInterval": 1});
        peer.answer(&start, json!({"task": task("working")})).await;
        for status in ["working", "completed"] {
            let get = peer.expect("tasks/get").await;
            assert_eq!(get["params"]["taskId"], "t");
            peer.answer(&get, task(status)).await;
        }
        let fetch = peer.expect("tasks/result").await;
        peer.answer(&fetch, json!({"content": []})).await;
        // The second one is withdrawn while it runs.
        let start = peer.expect("tools/call").await;
        peer.answer(&start, json!({"task": task("working")})).await;
        peer.expect("tasks/get").await;
        peer.expect("notifications/cancelled").await;
        let cancel = peer.expect("tasks/cancel").await;
        assert_eq!(cancel["params"], json!({"taskId": "t"}));
    })
    .await;
    connection.list(ListKind::Tools).await.unwrap();
    let (client, _heard) = a_client(1, "{}", Ok("{}"));
    assert_eq!(call("slow", client.clone()).by(&connection).await.unwrap(), r#"{"content":[]}"#);
    let outcome = tokio::time::timeout(Duration::from_secs(1), call("slow", client).by(&connection)).await;
    assert!(outcome.is_err());
    assert_eq!(connection.closed().await, "the server closed its output");
}

#[tokio::test]
async fn a_modern_server_is_listened_to_and_the_new_stream_opens_before_the_old_one_ends() {
    let (connection, mut events) = modern(async |mut peer: Peer| {
        peer.discovery(json!({"tools": {"listChanged": true}, "resources": {"subscribe": true}})).await;
        let acknowledge = |listen: &serde_json::Value| {
            json!({"method": "notifications/subscriptions/acknowledged",
                "params": {"_meta": {"io.modelcontextprotocol/subscriptionId": listen["id"]}}})
        };
        let first = peer.expect("subscriptions/listen").await;
        assert_eq!(first["params"]["notifications"], json!({"toolsListChanged": true}));
        peer.send(acknowledge(&first)).await;
        peer.send(json!({"method": "notifications/tools/list_changed"})).await;
        let second = peer.expect("subscriptions/listen").await;
        assert_eq!(second["params"]["notifications"]["resourceSubscriptions"], json!(["a:b"]));
        peer.send(acknowledge(&second)).await;
        let gone = peer.expect("notifications/cancelled").await;
        assert_eq!(gone["params"]["requestId"], first["id"]);
        peer.send(json!({"method": "notifications/resources/updated", "params": {"uri": "a:b"}})).await;
        peer.next().await;
    })
    .await;
    events.lists_changed().await;
    connection.watch("a:b", true).await.unwrap();
    assert!(matches!(events.recv().await, Some(Change::Updated { params, .. }) if params.contains("a:b")));
    assert_eq!(connection.inner.dispatcher().pending().in_flight(), 0);
}
