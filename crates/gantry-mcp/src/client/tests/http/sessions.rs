//! Sessions of the older era: that there is one, and what belongs to it.

use super::{Said, anyone, empty, events, json_result, legacy, play, reached, said, until};
use crate::client::UpstreamError;
use crate::client::tests::fake::{a_client, call};
use serde_json::json;
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn a_legacy_server_has_a_session_that_is_deleted_in_the_end() {
    let (url, seen) = play(legacy(|got| match &*got.verb {
        "GET" => empty(405),
        _ => json_result(got, &json!({"ok": 1})),
    }))
    .await;
    let connection = reached(&url).await.0.unwrap();
    assert_eq!(call("a", anyone()).by(&connection).await.unwrap(), r#"{"ok":1}"#);
    connection.close().await;
    assert!(matches!(call("a", anyone()).by(&connection).await, Err(UpstreamError::NotSent(_))));
    let seen = seen.lock().unwrap();
    let request = seen.iter().find(|got| got.method() == "tools/call").unwrap();
    assert_eq!(
        (request.header("mcp-session-id"), request.header("mcp-protocol-version")),
        ("s1", "2025-11-25")
    );
    assert_eq!(request.header("mcp-method"), "");
    assert!(seen.iter().any(|got| got.verb == "DELETE" && got.header("mcp-session-id") == "s1"));
}

#[tokio::test]
async fn a_question_on_the_stream_of_a_request_is_for_its_client() {
    let (url, seen) = play(legacy(|got| match (&*got.verb, got.method()) {
        ("GET", _) => empty(405),
        ("POST", "tools/call") => Said {
            ends: false,
            ..events(&[json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {}})])
        },
        _ => empty(202),
    }))
    .await;
    let connection = reached(&url).await.0.unwrap();
    let (other, _heard) = a_client(2, "{}", Ok("{}"));
    let request = call("a", anyone());
    let cancel = request.cancel.clone();
    let answered = async {
        loop {
            let answer = seen.lock().unwrap().iter().find(|got| got.body["result"].is_object()).cloned();
            match answer {
                Some(answer) => {
                    cancel.cancel();
                    break answer;
                }
                None => tokio::task::yield_now().await,
            }
        }
    };
    // Another session has a request under way; the stream tells them apart.
    let other = call("b", other).by(&connection);
    let (outcome, answer) = tokio::select! {
        both = async { tokio::join!(request.by(&connection), answered) } => both,
        outcome = other => panic!("{outcome:?}"),
    };
    assert_eq!(outcome, Err(UpstreamError::Canceled));
    assert_eq!((&answer.body["id"], &answer.body["result"]), (&json!("q"), &json!({"action": "accept"})));
}

#[tokio::test]
async fn what_belongs_to_no_request_comes_on_the_background_stream() {
    let (url, _seen) = play(legacy(|_| Said {
        ends: false,
        ..events(&[json!({"jsonrpc": "2.0", "method": "notifications/prompts/list_changed"})])
    }))
    .await;
    let (connection, events) = reached(&url).await;
    let _open = connection.unwrap();
    events.lists_changed().await;
}

#[tokio::test]
async fn a_question_of_a_call_whose_answer_got_lost_is_asked_of_no_other_caller() {
    let (gate, opened) = (CancellationToken::new(), CancellationToken::new());
    let wait = opened.clone();
    let (url, seen) = play(legacy(move |got| match (&*got.verb, &got.body["params"]["name"]) {
        ("GET", _) => Said {
            ends: false,
            gate: Some(wait.clone()),
            ..events(&[json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {}})])
        },
        ("POST", name) if name == "breaks" => said(200, "text/event-stream", &": nothing\n\n"),
        ("POST", name) if name == "waits" => {
            Said { gate: Some(gate.clone()), ..json_result(got, &json!({"ok": 1})) }
        }
        _ => empty(202),
    }))
    .await;
    let connection = reached(&url).await.0.unwrap();
    let lost = call("breaks", a_client(1, r#"{"elicitation":{}}"#, Ok("{}")).0).by(&connection).await;
    assert!(matches!(lost, Err(UpstreamError::OutcomeUnknown(_))), "{lost:?}");
    let (other, _heard) = a_client(2, r#"{"elicitation":{}}"#, Ok(r#"{"action":"accept"}"#));
    let request = call("waits", other.clone());
    let cancel = request.cancel.clone();
    let asked = async {
        until(&seen, 1, |got| got.body["params"]["name"] == "waits").await;
        opened.cancel();
        // The server gets an answer, so that it does not wait.
        until(&seen, 1, |got| got.body["id"] == "q").await;
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(request.by(&connection), asked);
    assert_eq!(outcome, Err(UpstreamError::Canceled));
    assert_eq!(other.asked.lock().unwrap().len(), 0);
}
