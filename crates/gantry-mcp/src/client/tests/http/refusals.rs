//! Answers that are errors of HTTP, and what is logged of them.

use super::log::Log;
use super::{anyone, empty, events, legacy, play, reached, said, until};
use crate::client::UpstreamError;
use crate::client::limits::EXCERPT_CHARS;
use crate::client::tests::fake::call;

#[tokio::test]
async fn refusals_say_whether_the_request_can_have_been_run() {
    for (status, lost) in [(401, false), (403, false), (429, false), (400, false), (500, true), (503, true)] {
        let (url, _seen) = play(legacy(move |got| match &*got.verb {
            "GET" => empty(405),
            _ => empty(status),
        }))
        .await;
        let connection = reached(&url).await.0.unwrap();
        let outcome = call("a", anyone()).by(&connection).await;
        match &outcome {
            Err(UpstreamError::OutcomeUnknown(_)) => assert!(lost, "{status}"),
            Err(UpstreamError::NotSent(reason)) => {
                assert!(!lost, "{status}");
                assert_eq!(reason.contains("headers.Authorization"), matches!(status, 401 | 403), "{reason}");
            }
            _ => panic!("{status}: {outcome:?}"),
        }
    }
}

#[tokio::test]
async fn a_message_that_is_refused_is_logged_without_the_session_and_with_little_of_the_answer() {
    let long = format!("{}the end of it", "x".repeat(EXCERPT_CHARS));
    let sessions = legacy(move |got| match (&*got.verb, got.method()) {
        ("GET", _) => empty(405),
        ("POST", "notifications/cancelled") => said(500, "text/plain", &long),
        _ => super::Said { ends: false, ..events(&[]) },
    });
    let (url, seen) = play(move |got| {
        let mut said = sessions(got);
        for (name, value) in &mut said.headers {
            if *name == "mcp-session-id" {
                "a-secret".clone_into(value);
            }
        }
        said
    })
    .await;
    let (log, _guard) = Log::keep();
    let connection = reached(&url).await.0.unwrap();
    let request = call("a", anyone());
    tokio::select! {
        outcome = request.by(&connection) => panic!("{outcome:?}"),
        () = until(&seen, 1, |got| got.method() == "tools/call") => {}
    }
    let logged = async {
        while !log.text().contains("a message was not taken") {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(super::TIMEOUT, logged).await.expect("it is logged");
    let text = log.text();
    assert!(text.contains("HTTP 500"), "{text}");
    assert!(!text.contains("a-secret") && !text.contains("the end of it"), "{text}");
}
