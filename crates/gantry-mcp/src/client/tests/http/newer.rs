//! The newer era, and finding out the era of an address.

use super::{Got, Said, empty, events, json_error, json_result, play, reached, said};
use crate::client::UpstreamError;
use crate::client::tests::fake::{a_client, call_with, discovered};
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};

#[tokio::test]
async fn a_modern_server_gets_its_headers_with_every_request() {
    let (url, seen) = play(|got| match got.method() {
        "server/discover" => json_result(got, &discovered(&json!({}))),
        "tools/list" => {
            let schema =
                json!({"type": "object", "properties": {"r": {"type": "string", "x-mcp-header": "Region"}}});
            json_result(got, &json!({"tools": [{"name": "a", "inputSchema": schema}]}))
        }
        _ if got.header("mcp-param-region").is_empty() => json_error(400, got, -32020),
        _ => events(&[
            json!({"method": "notifications/message", "params": {"level": "error", "data": "x"}}),
            json!({"jsonrpc": "2.0", "id": got.body["id"], "result": {"resultType": "complete"}}),
        ]),
    })
    .await;
    let connection = reached(&url).await.0.unwrap();
    let (client, mut heard) = a_client(1, "{}", Ok("{}"));
    let request = call_with("a", r#"{"r":"eu"}"#, client);
    // The schema is not known yet: the server says so, the tools are listed, and the call is sent again.
    assert_eq!(request.by(&connection).await.unwrap(), r#"{"resultType":"complete"}"#);
    assert!(heard.recv().await.is_some());
    let seen = seen.lock().unwrap();
    let methods: Vec<&str> = seen.iter().map(Got::method).collect();
    assert_eq!(methods, ["server/discover", "tools/call", "tools/list", "tools/call"]);
    let last = seen.last().unwrap();
    for (name, value) in [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "a"),
        ("mcp-param-region", "eu"),
        ("x-key", "k"),
        ("accept", "application/json, text/event-stream"),
    ] {
        assert_eq!(last.header(name), value);
    }
}

#[tokio::test]
async fn an_outage_is_no_verdict_about_the_era() {
    for status in [401, 403, 429, 500, 503] {
        let (url, seen) = play(move |_| empty(status)).await;
        let outcome = reached(&url).await.0;
        assert!(matches!(&outcome, Err(UpstreamError::NotSent(_))), "{status}: {outcome:?}");
        assert_eq!(seen.lock().unwrap().len(), 1, "{status}");
    }
}

#[tokio::test]
async fn an_address_without_a_server_is_named_as_such() {
    let (url, seen) = play(|_| said(404, "text/html", &"<h1>nothing</h1>")).await;
    let outcome = reached(&url).await.0;
    assert!(
        matches!(&outcome, Err(UpstreamError::NotSent(reason)) if reason.contains("no MCP server")),
        "{outcome:?}"
    );
    let verbs: Vec<String> = seen.lock().unwrap().iter().map(|got| got.verb.clone()).collect();
    assert_eq!(verbs, ["POST", "POST", "GET"]);
}

#[tokio::test]
async fn a_server_that_is_busy_does_not_refuse_a_resource() {
    for status in [408, 429] {
        let busy = AtomicBool::new(true);
        let (url, seen) = play(move |got| match got.method() {
            "server/discover" => json_result(got, &discovered(&json!({"resources": {"subscribe": true}}))),
            _ if busy.swap(false, Ordering::Relaxed) => empty(status),
            _ => {
                let meta = json!({"io.modelcontextprotocol/subscriptionId": got.body["id"]});
                let method = "notifications/subscriptions/acknowledged";
                Said { ends: false, ..events(&[json!({"method": method, "params": {"_meta": meta}})]) }
            }
        })
        .await;
        let connection = reached(&url).await.0.unwrap();
        connection.watch("a:b", true).await.unwrap();
        let listened = |got: &&Got| got.method() == "subscriptions/listen";
        assert_eq!(seen.lock().unwrap().iter().filter(listened).count(), 2, "{status}");
    }
}
