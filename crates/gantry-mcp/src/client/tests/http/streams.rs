//! Streams of the older era that break, and how they are taken up again.

use super::{Said, anyone, count, empty, events, legacy, play, reached, said};
use crate::client::UpstreamError;
use crate::client::limits::RESUMES;
use crate::client::tests::fake::{Call, call};
use futures_util::future::join_all;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A call whose request has the id 2: without progress no token takes that number.
fn quiet_call() -> Call {
    let mut request = call("a", anyone());
    request.client = Arc::new(crate::exchange::NoClient::default());
    request
}

#[tokio::test]
async fn a_stream_that_ends_early_is_taken_up_again_after_the_last_event() {
    let (url, seen) = play(legacy(|got| match (&*got.verb, got.header("last-event-id")) {
        ("GET", "e1") => said(
            200,
            "text/event-stream",
            &"id: e2\ndata: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"late\":true}}\n\n",
        ),
        ("GET", _) => empty(405),
        _ => said(200, "text/event-stream", &"id: e1\nretry: 20\ndata:\n\n"),
    }))
    .await;
    let connection = reached(&url).await.0.unwrap();
    assert_eq!(quiet_call().by(&connection).await.unwrap(), r#"{"late":true}"#);
    assert!(seen.lock().unwrap().iter().any(|got| got.header("last-event-id") == "e1"));
}

#[tokio::test]
async fn a_stream_that_cannot_be_taken_up_again_is_lost() {
    let (url, _seen) = play(legacy(|got| match &*got.verb {
        "GET" => empty(405),
        _ => said(200, "text/event-stream", &": nothing\n\n"),
    }))
    .await;
    let connection = reached(&url).await.0.unwrap();
    assert!(matches!(call("a", anyone()).by(&connection).await, Err(UpstreamError::OutcomeUnknown(_))));
}

#[tokio::test]
async fn a_server_that_has_not_noticed_yet_that_a_stream_is_gone_is_asked_again() {
    let refusals = AtomicUsize::new(0);
    let (url, _seen) = play(legacy(move |got| match (&*got.verb, got.header("last-event-id")) {
        ("GET", "e1") if refusals.fetch_add(1, Ordering::Relaxed) < 2 => empty(409),
        ("GET", "e1") => events(&[json!({"jsonrpc": "2.0", "id": 2, "result": {"late": true}})]),
        ("GET", _) => empty(405),
        _ => said(200, "text/event-stream", &"id: e1\nretry: 20\ndata:\n\n"),
    }))
    .await;
    let connection = reached(&url).await.0.unwrap();
    assert_eq!(quiet_call().by(&connection).await.unwrap(), r#"{"late":true}"#);
}

#[tokio::test]
async fn a_stream_that_only_breathes_is_given_up() {
    let (url, seen) = play(legacy(|got| match (&*got.verb, got.header("last-event-id")) {
        ("GET", "e1") => said(200, "text/event-stream", &": here\n\nid: e1\ndata:\n\n"),
        ("GET", _) => empty(405),
        _ => said(200, "text/event-stream", &"id: e1\nretry: 0\ndata:\n\n"),
    }))
    .await;
    let connection = reached(&url).await.0.unwrap();
    let outcome = tokio::time::timeout(super::TIMEOUT, quiet_call().by(&connection)).await;
    assert!(matches!(outcome, Ok(Err(UpstreamError::OutcomeUnknown(_)))), "{outcome:?}");
    assert_eq!(count(&seen, |got| got.header("last-event-id") == "e1"), RESUMES);
}

#[tokio::test]
async fn a_background_stream_that_is_refused_for_now_is_asked_for_again() {
    join_all([409, 429, 400, 503].map(async |status| {
        let refusals = AtomicUsize::new(0);
        let (url, seen) = play(legacy(move |_| match refusals.fetch_add(1, Ordering::Relaxed) {
            0 => empty(status),
            _ => Said {
                ends: false,
                ..events(&[json!({"jsonrpc": "2.0", "method": "notifications/prompts/list_changed"})])
            },
        }))
        .await;
        let (connection, events) = reached(&url).await;
        let _open = connection.unwrap();
        events.lists_changed().await;
        assert_eq!(count(&seen, |got| got.verb == "GET"), 2, "{status}");
    }))
    .await;
}
