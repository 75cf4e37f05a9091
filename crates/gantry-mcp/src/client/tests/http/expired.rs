//! Sessions that the server no longer knows, and answers that only look as if it did not.

use super::{Got, Said, TIMEOUT, anyone, count, empty, json_result, legacy, play, reached, said, until};
use crate::client::UpstreamError;
use crate::client::tests::fake::call;
use serde_json::{Value, json};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn a_session_that_the_server_forgot_ends_the_connection_and_its_calls_were_not_sent() {
    let (url, seen) = play(legacy(|got| match &*got.verb {
        "GET" => empty(405),
        _ => empty(404),
    }))
    .await;
    let connection = reached(&url).await.0.unwrap();
    let calls = tokio::join!(call("a", anyone()).by(&connection), call("a", anyone()).by(&connection));
    for outcome in [calls.0, calls.1, call("a", anyone()).by(&connection).await] {
        assert!(matches!(outcome, Err(UpstreamError::NotSent(_))), "{outcome:?}");
    }
    assert_eq!(connection.closed().await, "the server does not know the session any more");
    assert_eq!(count(&seen, |got| got.method() == "initialize"), 1);
    assert_eq!(count(&seen, |got| got.method() == "tools/call"), 2);
}

/// An error in the body of an HTTP error.
fn error(status: u16, id: &Value, code: i32, message: &str) -> Said {
    let error = json!({"code": code, "message": message, "data": {"session": 1}});
    said(status, "application/json", &json!({"jsonrpc": "2.0", "id": id, "error": error}))
}

#[tokio::test]
async fn an_error_that_names_the_request_is_its_answer_and_the_call_is_sent_once() {
    for (status, code, message) in [
        (404, -32000, "order 17 not found"),
        (404, -32001, "browser session 17 not found"),
        (404, -32602, "Unknown tool"),
        (400, -32000, "the session has no page"),
        (400, -32602, "bad arguments"),
    ] {
        let (url, seen) = play(legacy(move |got| match &*got.verb {
            "GET" => empty(405),
            _ => error(status, &got.body["id"], code, message),
        }))
        .await;
        let connection = reached(&url).await.0.unwrap();
        let outcome = call("a", anyone()).by(&connection).await;
        assert!(
            matches!(&outcome, Err(UpstreamError::Rpc(error)) if error.message == message),
            "{outcome:?}"
        );
        assert_eq!(count(&seen, |got| got.method() == "tools/call"), 1, "{message}");
        assert!(!connection.has_ended(), "{message}");
    }
}

#[tokio::test]
async fn an_error_that_is_about_something_else_does_not_end_the_session() {
    for refusal in [
        || error(400, &Value::Null, -32602, "bad arguments"),
        || said(400, "application/json", &json!({"detail": "no session"})),
        || said(400, "text/html", &"<script src=session.js>"),
    ] {
        let (url, seen) = play(legacy(move |got| match &*got.verb {
            "GET" => empty(405),
            _ => refusal(),
        }))
        .await;
        let connection = reached(&url).await.0.unwrap();
        call("a", anyone()).by(&connection).await.unwrap_err();
        assert_eq!(count(&seen, |got| got.method() == "tools/call"), 1);
        assert!(!connection.has_ended());
    }
}

#[tokio::test]
async fn all_ways_to_say_that_a_session_is_not_known_are_understood() {
    type Refusal = fn(&Got) -> Said;
    let refusals: [Refusal; 6] = [
        |_| empty(404),
        |_| error(404, &Value::Null, -32001, "Session not found"),
        |_| error(404, &json!("server-error"), -32600, "Session not found"),
        |got| error(404, &got.body["id"], -32600, "unknown or expired session"),
        |_| error(400, &Value::Null, -32000, "Bad Request: No valid session ID provided"),
        |_| said(400, "text/plain", &"Invalid session ID"),
    ];
    for (n, refusal) in refusals.into_iter().enumerate() {
        let (url, seen) = play(legacy(move |got| match &*got.verb {
            "GET" => empty(405),
            _ => refusal(got),
        }))
        .await;
        let connection = reached(&url).await.0.unwrap();
        let outcome = call("a", anyone()).by(&connection).await;
        assert!(matches!(outcome, Err(UpstreamError::NotSent(_))), "{n}: {outcome:?}");
        assert!(connection.has_ended(), "{n}");
        // A server that only refuses the session may still keep it.
        connection.close().await;
        drop(connection);
        until(&seen, 1, |got| got.verb == "DELETE" && got.header("mcp-session-id") == "s1").await;
    }
}

#[tokio::test]
async fn a_health_check_finds_a_lost_session_that_no_call_may_conclude() {
    let (url, seen) = play(legacy(|got| match &*got.verb {
        "GET" => empty(405),
        _ => error(404, &got.body["id"], -32001, "Session not found"),
    }))
    .await;
    let connection = reached(&url).await.0.unwrap();
    assert!(matches!(call("a", anyone()).by(&connection).await, Err(UpstreamError::Rpc(_))));
    assert!(!connection.has_ended());
    assert!(matches!(connection.ping(TIMEOUT).await, Err(UpstreamError::NotSent(_))));
    assert!(connection.has_ended());
    assert_eq!(count(&seen, |got| got.method() == "tools/call"), 1);
}

#[tokio::test]
async fn a_call_that_runs_in_a_session_that_is_forgotten_gets_its_own_answer() {
    let gate = CancellationToken::new();
    let opened = gate.clone();
    let (url, seen) = play(legacy(move |got| match (&*got.verb, &got.body["params"]["name"]) {
        ("GET", _) => empty(405),
        (_, name) if name == "runs" => {
            Said { gate: Some(opened.clone()), ..json_result(got, &json!({"ok": 1})) }
        }
        _ => empty(404),
    }))
    .await;
    let connection = reached(&url).await.0.unwrap();
    let forgotten = async {
        until(&seen, 1, |got| got.body["params"]["name"] == "runs").await;
        let outcome = call("a", anyone()).by(&connection).await;
        assert!(matches!(outcome, Err(UpstreamError::NotSent(_))), "{outcome:?}");
        connection.close().await;
        // It would end what runs in the session.
        assert_eq!(count(&seen, |got| got.verb == "DELETE"), 0);
        gate.cancel();
    };
    let (outcome, ()) = tokio::join!(call("runs", anyone()).by(&connection), forgotten);
    assert_eq!(outcome.unwrap(), r#"{"ok":1}"#);
    drop(connection);
    until(&seen, 1, |got| got.verb == "DELETE").await;
}

#[tokio::test]
async fn the_background_stream_of_a_lost_session_does_not_come_back() {
    let (url, seen) = play(legacy(|got| match &*got.verb {
        // It ends at once and is to be opened again soon.
        "GET" => said(200, "text/event-stream", &"retry: 300\ndata:\n\n"),
        _ => empty(404),
    }))
    .await;
    let connection = reached(&url).await.0.unwrap();
    let opened = |got: &Got| got.verb == "GET";
    until(&seen, 1, opened).await;
    call("a", anyone()).by(&connection).await.unwrap_err();
    let before = count(&seen, opened);
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(count(&seen, opened), before);
}
