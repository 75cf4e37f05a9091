//! Sessions that the server forgot, and answers that only look as if it had.

use super::{
    Got, PATIENCE, Said, anyone, count, empty, json_result, legacy, play, reached, reached_within, said,
    until,
};
use crate::client::{Event, Failure, ListKind, tests::fake::call};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn a_session_that_the_server_forgot_is_made_anew_and_the_request_sent_once_more() {
    let (url, seen) = play(legacy(|got| match (&*got.verb, got.header("mcp-session-id")) {
        ("GET", _) => empty(405),
        (_, "s1") => empty(404),
        _ => json_result(got, &json!({"ok": 1})),
    }))
    .await;
    let (connection, mut events) = reached(&url).await;
    let connection = connection.unwrap();
    let (first, second) =
        tokio::join!(call("a", anyone()).by(&connection), call("a", anyone()).by(&connection));
    first.and(second).unwrap();
    assert_eq!(events.recv().await, Some(Event::Changed(ListKind::Tools)));
    let handshakes = seen.lock().unwrap().iter().filter(|got| got.method() == "initialize").count();
    assert_eq!(handshakes, 2);
}

/// An error in the body of an HTTP error.
fn error(status: u16, id: &Value, code: i32, message: &str) -> Said {
    let error = json!({"code": code, "message": message, "data": {"session": 1}});
    said(status, "application/json", &json!({"jsonrpc": "2.0", "id": id, "error": error}))
}

/// Whether a request names this session.
fn of(session: &'static str, method: &'static str) -> impl Fn(&Got) -> bool {
    move |got| got.header("mcp-session-id") == session && got.method() == method
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
        assert!(matches!(&outcome, Err(Failure::Answered(error)) if error.message == message), "{outcome:?}");
        assert_eq!(count(&seen, |got| got.method() == "tools/call"), 1, "{message}");
        assert_eq!(count(&seen, |got| got.method() == "initialize"), 1, "{message}");
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
        assert_eq!(count(&seen, |got| got.method() == "initialize"), 1);
    }
}

#[tokio::test]
async fn all_ways_to_say_that_a_session_is_not_known_are_understood() {
    type Refusal = fn(&Got) -> Said;
    let refusals: [(Refusal, bool); 6] = [
        (|_| empty(404), false),
        (|_| error(404, &Value::Null, -32001, "Session not found"), false),
        (|_| error(404, &json!("server-error"), -32600, "Session not found"), false),
        (|got| error(404, &got.body["id"], -32600, "unknown or expired session"), false),
        (|_| error(400, &Value::Null, -32000, "Bad Request: No valid session ID provided"), true),
        (|_| said(400, "text/plain", &"Invalid session ID"), true),
    ];
    for (n, (refusal, lives)) in refusals.into_iter().enumerate() {
        let (url, seen) = play(legacy(move |got| match (&*got.verb, got.header("mcp-session-id")) {
            ("GET", _) => empty(405),
            (_, "s1") => refusal(got),
            _ => json_result(got, &json!({"ok": 1})),
        }))
        .await;
        let connection = reached(&url).await.0.unwrap();
        assert_eq!(call("a", anyone()).by(&connection).await.unwrap(), r#"{"ok":1}"#, "{n}");
        connection.close().await;
        // What the server only refuses may still live there; what it does not know is gone.
        let deleted = |got: &Got| got.verb == "DELETE" && got.header("mcp-session-id") == "s1";
        if lives {
            until(&seen, 1, deleted).await;
        }
        assert_eq!(count(&seen, deleted), usize::from(lives), "{n}");
    }
}

#[tokio::test]
async fn a_health_check_finds_a_lost_session_that_no_call_may_conclude() {
    let (url, seen) = play(legacy(|got| match (&*got.verb, got.header("mcp-session-id")) {
        ("GET", _) => empty(405),
        (_, "s1") => error(404, &got.body["id"], -32001, "Session not found"),
        _ => json_result(got, &json!({"ok": 1})),
    }))
    .await;
    let connection = reached(&url).await.0.unwrap();
    assert!(matches!(call("a", anyone()).by(&connection).await, Err(Failure::Answered(_))));
    connection.ping(PATIENCE).await.unwrap();
    assert_eq!(call("a", anyone()).by(&connection).await.unwrap(), r#"{"ok":1}"#);
    assert_eq!(count(&seen, of("s1", "tools/call")), 1);
}

#[tokio::test]
async fn a_handshake_is_finished_although_whoever_needed_it_went_away() {
    let gate = CancellationToken::new();
    let (opened, forgotten) = (gate.clone(), Arc::new(Mutex::new(false)));
    let forget = forgotten.clone();
    let sessions = legacy(move |got| match (&*got.verb, got.header("mcp-session-id")) {
        ("GET", _) => empty(405),
        (_, "s1") if *forgotten.lock().unwrap() => empty(404),
        _ => json_result(got, &json!({"ok": 1})),
    });
    let (url, seen) = play(move |got| {
        let mut said = sessions(got);
        if said.headers.iter().any(|(_, value)| value == "s2") {
            said.gate = Some(opened.clone());
        }
        said
    })
    .await;
    let connection = Arc::new(reached(&url).await.0.unwrap());
    connection.watch("file:///a", true).await.unwrap();
    connection.set_log_level(crate::exchange::LogLevel::Info).await.unwrap();
    *forget.lock().unwrap() = true;
    let caller = tokio::spawn({
        let connection = connection.clone();
        async move { call("a", anyone()).by(&connection).await }
    });
    until(&seen, 2, |got| got.method() == "initialize").await;
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    gate.cancel();
    until(&seen, 1, of("s2", "notifications/initialized")).await;
    until(&seen, 1, |got| got.verb == "GET" && got.header("mcp-session-id") == "s2").await;
    until(&seen, 1, of("s2", "resources/subscribe")).await;
    until(&seen, 1, of("s2", "logging/setLevel")).await;
    assert_eq!(call("a", anyone()).by(&connection).await.unwrap(), r#"{"ok":1}"#);
    assert_eq!(count(&seen, |got| got.method() == "initialize"), 2);
}

#[tokio::test]
async fn a_session_that_is_lost_while_it_is_told_what_to_watch_holds_nobody_up() {
    let (url, seen) = play(legacy(|got| match (&*got.verb, got.header("mcp-session-id"), got.method()) {
        ("GET", ..) => empty(405),
        (_, "s1", "tools/call") | (_, "s2", "resources/subscribe") => empty(404),
        _ => json_result(got, &json!({"ok": 1})),
    }))
    .await;
    let connection = reached(&url).await.0.unwrap();
    connection.watch("file:///a", true).await.unwrap();
    let outcome = tokio::time::timeout(PATIENCE, call("a", anyone()).by(&connection)).await;
    assert_eq!(outcome.expect("it is answered").unwrap(), r#"{"ok":1}"#);
    until(&seen, 1, of("s2", "resources/subscribe")).await;
    // The next request finds out, and the third session is told.
    connection.watch("file:///b", true).await.unwrap();
    until(&seen, 2, of("s3", "resources/subscribe")).await;
}

#[tokio::test]
async fn a_server_that_gives_no_other_session_is_given_up_in_time() {
    let sessions = legacy(|got| match &*got.verb {
        "GET" => empty(405),
        _ => empty(404),
    });
    let (url, _seen) = play(move |got| {
        let mut said = sessions(got);
        if said.headers.iter().any(|(_, value)| value == "s2") {
            said.gate = Some(CancellationToken::new());
        }
        said
    })
    .await;
    let connection = reached_within(&url, Duration::from_secs(1)).await.0.unwrap();
    let outcome = tokio::time::timeout(PATIENCE, call("a", anyone()).by(&connection)).await;
    let Ok(Err(Failure::Unavailable(reason))) = outcome else { panic!("{outcome:?}") };
    assert!(reason.contains("gave no other") && reason.contains("1000 ms"), "{reason}");
    assert_eq!(connection.closed().await, reason);
}

#[tokio::test]
async fn a_call_that_is_canceled_does_not_wait_for_another_session() {
    let sessions = legacy(|got| match &*got.verb {
        "GET" => empty(405),
        _ => empty(404),
    });
    let (url, seen) = play(move |got| {
        let mut said = sessions(got);
        if said.headers.iter().any(|(_, value)| value == "s2") {
            said.gate = Some(CancellationToken::new());
        }
        said
    })
    .await;
    let connection = reached(&url).await.0.unwrap();
    let request = call("a", anyone());
    let cancel = request.cancel.clone();
    let canceled = async {
        until(&seen, 2, |got| got.method() == "initialize").await;
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(request.by(&connection), canceled);
    assert_eq!(outcome, Err(Failure::Canceled));
}

#[tokio::test]
async fn the_background_stream_of_a_lost_session_does_not_come_back_in_the_next_one() {
    let sessions = legacy(|got| match (&*got.verb, got.header("mcp-session-id")) {
        // It ends at once and is to be opened again soon.
        ("GET", "s1") => said(200, "text/event-stream", &"retry: 300\ndata:\n\n"),
        ("GET", _) => Said { ends: false, ..said(200, "text/event-stream", &": open\n\n") },
        (_, "s1") => empty(404),
        _ => json_result(got, &json!({"ok": 1})),
    });
    let (url, seen) = play(sessions).await;
    let connection = reached(&url).await.0.unwrap();
    until(&seen, 1, |got| got.verb == "GET").await;
    call("a", anyone()).by(&connection).await.unwrap();
    let opened = |got: &Got| got.verb == "GET" && got.header("mcp-session-id") == "s2";
    until(&seen, 1, opened).await;
    // By now the old one would have been opened again, in the new session.
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(count(&seen, opened), 1);
}
