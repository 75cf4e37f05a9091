//! `subscriptions/listen`: what is granted, what is sent, and how it ends.

use super::{Events, Fake, TestServer, answer, error_code, post};
use crate::client::ListKind;
use crate::server::Change;

const SENT: [(&str, &str); 2] =
    [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "subscriptions/listen")];

fn request(notifications: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":"\u0073","method":"subscriptions/listen","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}{notifications}}}}}"#
    )
}

fn filter(filter: &str) -> String {
    request(&format!(r#","notifications":{filter}"#))
}

const ID: &str = r#""_meta":{"io.modelcontextprotocol/subscriptionId":"\u0073"}"#;

async fn listen(server: &TestServer, wanted: &str) -> Events {
    Events::of(answer(server, &SENT, &filter(wanted)).await)
}

#[tokio::test]
async fn the_first_message_says_what_is_granted() {
    let server = Fake::full();
    let all = r#"{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["a:1","a:missing","a:1"],"taskIds":["t"]}"#;
    let mut events = listen(&server, all).await;
    assert_eq!(
        events.message().await,
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"notifications":{{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["a:1"]}},{ID}}}}}"#
        )
    );
    // What the server does not have is not granted.
    let mut events = listen(&Fake::server(), all).await;
    assert!(events.message().await.contains(r#""notifications":{"toolsListChanged":true}"#));
}

#[tokio::test]
async fn only_the_requested_changes_are_sent() {
    let server = Fake::full();
    let mut events = listen(
        &server,
        r#"{"promptsListChanged":true,"toolsListChanged":false,"resourceSubscriptions":["a:1"]}"#,
    )
    .await;
    events.message().await;
    let fake = server.handler();
    let updated = |uri: &str| Change::Updated {
        provider: "p".into(),
        uri: uri.into(),
        params: format!(r#"{{"uri":"{uri}","_meta":{{"k":1.10}}}}"#).into(),
    };
    fake.change(Change::ListChanged { kind: ListKind::Tools, provider: "p".into() });
    fake.change(Change::ElicitationComplete { provider: "p".into(), params: "{}".into() });
    fake.change(Change::ListChanged { kind: ListKind::Prompts, provider: "secret".into() });
    fake.change(updated("a:2"));
    fake.change(updated("a:1"));
    fake.change(Change::ListChanged { kind: ListKind::Prompts, provider: "p".into() });
    assert_eq!(
        events.message().await,
        r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:1","_meta":{"k":1.10,"io.modelcontextprotocol/subscriptionId":"\u0073"}}}"#
    );
    assert_eq!(
        events.message().await,
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{{{ID}}}}}"#)
    );
}

#[tokio::test]
async fn a_server_that_stops_answers_the_request() {
    let server = Fake::full();
    let mut events = listen(&server, "{}").await;
    events.message().await;
    server.close_streams();
    let last = events.message().await;
    assert!(last.starts_with(r#"{"jsonrpc":"2.0","id":"\u0073","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":"\u0073","#), "{last}");
    assert_eq!(events.frame().await, None);
}

#[tokio::test]
async fn what_was_watched_is_given_back() {
    let server = Fake::full();
    let events = listen(&server, r#"{"resourceSubscriptions":["a:1"]}"#).await;
    drop(events);
    server.shutdown().await;
    assert_eq!(
        server.handler().asked(),
        [r#"resources/subscribe {"uri":"a:1"}"#, r#"resources/unsubscribe {"uri":"a:1"}"#]
    );
}

/// What the handler was asked, in any order.
fn asked(server: &TestServer) -> Vec<String> {
    let mut asked = server.handler().asked();
    asked.sort();
    asked
}

#[tokio::test]
async fn what_was_granted_is_given_back_if_the_client_leaves_before_it_hears_of_it() {
    let server = Fake::full();
    let body = filter(r#"{"resourceSubscriptions":["a:1","a:slow","a:2"]}"#);
    tokio::select! {
        response = answer(&server, &SENT, &body) => panic!("{response:?}"),
        () = server.handler().call_begun() => {}
    }
    // What is granted only now is given back too; what comes after it is not asked for any more.
    server.handler().gate.add_permits(1);
    server.shutdown().await;
    assert_eq!(
        asked(&server),
        [
            r#"resources/subscribe {"uri":"a:1"}"#,
            r#"resources/subscribe {"uri":"a:slow"}"#,
            r#"resources/unsubscribe {"uri":"a:1"}"#,
            r#"resources/unsubscribe {"uri":"a:slow"}"#
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn resources_that_take_too_long_are_left_out() {
    let server = Fake::full();
    let mut events = listen(&server, r#"{"resourceSubscriptions":["a:1","a:slow","a:2"]}"#).await;
    let granted = events.message().await;
    assert!(granted.contains(r#""resourceSubscriptions":["a:1"]"#), "{granted}");
    drop(events);
    server.handler().gate.add_permits(1);
    server.shutdown().await;
    let asked = asked(&server);
    let count = |method: &str| asked.iter().filter(|asked| asked.starts_with(method)).count();
    assert_eq!((count("resources/subscribe"), count("resources/unsubscribe")), (2, 2), "{asked:?}");
}

#[tokio::test]
async fn a_filter_that_is_none_is_refused() {
    let server = Fake::full();
    for body in [
        request(""),
        filter("[]"),
        filter(r#"{"resourceSubscriptions":"a"}"#),
        filter(r#"{"resourceSubscriptions":[1]}"#),
        filter(&format!(r#"{{"resourceSubscriptions":[{}]}}"#, vec!["\"a\""; 1025].join(","))),
    ] {
        assert_eq!(error_code(&post(&server, &SENT, &body).await), -32602, "{body}");
    }
    let sent = [SENT[0], SENT[1], ("accept", "application/json")];
    assert!(post(&server, &sent, &filter("{}")).await.starts_with("406"));
}
