//! Connections that carry messages both ways: questions, news, parking and listening on one of them; and HTTP+SSE.

use super::{Events, Fake, TestServer, error_code, said};
use crate::client::ListKind;
use crate::limits::{CONNECTIONS, STDIO_CLOSE_TIMEOUT, STDIO_DRAIN};
use crate::server::Change;
use crate::server::duplex::Duplex;
use bytes::Bytes;
use futures_util::stream::unfold;
use http::StatusCode;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}"#;
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}}}}"#;
const ASK: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}"#;

struct Client {
    server: TestServer,
    input: mpsc::Sender<Vec<u8>>,
    output: mpsc::Receiver<String>,
}

impl Client {
    fn connect() -> Self {
        let server = Fake::full();
        let (input, incoming) = mpsc::channel(64);
        let (outgoing, output) = mpsc::channel(64);
        let serving = server.clone();
        let incoming = unfold(incoming, |mut incoming: mpsc::Receiver<Vec<u8>>| async move {
            Some((incoming.recv().await?, incoming))
        });
        tokio::spawn(async move { serving.serve_messages("guest", incoming, outgoing).await });
        Self { server, input, output }
    }

    async fn initialized() -> Self {
        let mut client = Self::connect();
        assert_eq!(error_code(&client.ask(INITIALIZE).await), 0);
        client
    }

    async fn send(&self, message: &str) {
        self.input.send(message.into()).await.unwrap();
    }

    async fn receive(&mut self) -> String {
        self.output.recv().await.unwrap()
    }

    async fn ask(&mut self, message: &str) -> String {
        self.send(message).await;
        self.receive().await
    }
}

#[tokio::test]
async fn a_legacy_client_is_asked_by_requests() {
    let mut client = Client::initialized().await;
    client.send(ASK).await;
    for id in [1, 2] {
        assert!(client.receive().await.starts_with(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"elicitation/create","params":{{"message""#
        )));
    }
    client.send(r#"{"jsonrpc":"2.0","id":2,"result":{"b":1.10}}"#).await;
    let answer = client.ask(r#"{"jsonrpc":"2.0","id":1,"result":{"a":[]}}"#).await;
    assert!(answer.contains(&said(r#"{"a":[]}{"b":1.10}"#)), "{answer}");
}

#[tokio::test]
async fn a_modern_client_is_asked_by_a_result() {
    let mut client = Client::connect();
    let call = |id: u32, extra: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"ask"{extra},{META}}}}}"#
        )
    };
    let asked: serde_json::Value = serde_json::from_str(&client.ask(&call(1, "")).await).unwrap();
    let state = asked["result"]["requestState"].as_str().unwrap();
    let responses = format!(r#","inputResponses":{{"name":{{}},"age":{{}}}},"requestState":"{state}""#);
    let done = client.ask(&call(2, &responses)).await;
    assert!(done.contains(r#""id":2,"result":{"resultType":"complete""#), "{done}");
    assert_eq!(error_code(&client.ask(&call(3, &responses)).await), -32602);
}

/// A call that asks once and then waits until it is cancelled.
fn ask_and_wait(id: u32, extra: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"ask","arguments":{{"wait":1}}{extra},{META}}}}}"#
    )
}

#[tokio::test]
async fn what_waits_for_answers_ends_with_its_connection() {
    let mut client = Client::connect();
    assert!(client.ask(&ask_and_wait(1, "")).await.contains("requestState"));
    let token = client.server.handler().last_token();
    assert!(!token.is_cancelled());
    drop(client.input);
    token.cancelled().await;
}

#[tokio::test]
async fn a_request_that_was_sent_again_can_be_withdrawn() {
    let mut client = Client::connect();
    let asked: serde_json::Value = serde_json::from_str(&client.ask(&ask_and_wait(1, "")).await).unwrap();
    let state = asked["result"]["requestState"].as_str().unwrap();
    let responses = format!(r#","inputResponses":{{"name":{{}},"age":{{}}}},"requestState":"{state}""#);
    client.send(&ask_and_wait(2, &responses)).await;
    client.server.handler().call_begun().await;
    client.server.handler().call_begun().await;
    let cancel = |id: u32| {
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#)
    };
    // The first request has its answer; only the second one is under way.
    client.send(&cancel(1)).await;
    let list = format!(r#"{{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{{{META}}}}}"#);
    client.ask(&list).await;
    assert!(!client.server.handler().last_token().is_cancelled());
    client.send(&cancel(2)).await;
    client.server.handler().last_token().cancelled().await;
    assert!(client.ask(&list).await.contains(r#""id":3"#));
}

#[tokio::test]
async fn news_come_after_the_handshake() {
    let mut client = Client::initialized().await;
    client.server.handler().change(Change::ListChanged { kind: ListKind::Tools, provider: "p".into() });
    assert!(client.receive().await.contains("notifications/tools/list_changed"));
}

#[tokio::test]
async fn notifications_precede_the_answer() {
    let mut client = Client::initialized().await;
    client.server.handler().gate.add_permits(1);
    client
        .send(r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"tell","_meta":{"progressToken":9}}}"#)
        .await;
    for expected in
        [r#""progressToken":9"#, r#""level":"error""#, "notifications/x", "notifications/y", r#""id":5"#]
    {
        let message = client.receive().await;
        assert!(message.contains(expected), "{message}");
    }
}

#[tokio::test]
async fn listening_ends_by_cancel_or_with_the_connection() {
    let mut client = Client::connect();
    let listen = |id: u32| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{{{META},"notifications":{{"toolsListChanged":true,"resourceSubscriptions":["a:{id}"]}}}}}}"#
        )
    };
    for id in [7, 8] {
        let acknowledged = client.ask(&listen(id)).await;
        assert!(acknowledged.contains(&format!(r#""io.modelcontextprotocol/subscriptionId":{id}"#)));
    }
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#).await;
    // Its id is free again once it has ended.
    while client.ask(&listen(7)).await.contains("error") {}
    client.server.handler().change(Change::ListChanged { kind: ListKind::Tools, provider: "p".into() });
    for _ in 0..2 {
        assert!(client.receive().await.contains("tools/list_changed"));
    }
    drop(client.input);
    for _ in 0..2 {
        assert!(client.output.recv().await.unwrap().contains(r#""resultType":"complete""#));
    }
    assert_eq!(client.output.recv().await, None);
    client.server.shutdown().await;
    let asked = client.server.handler().asked();
    let count = |method: &str| asked.iter().filter(|asked| asked.starts_with(method)).count();
    assert_eq!(count("resources/subscribe"), count("resources/unsubscribe"), "{asked:?}");
}

#[tokio::test]
async fn http_with_sse_is_such_a_connection() {
    let server = Fake::full();
    let mut events = Events::of(server.sse(&"guest", "/messages"));
    let endpoint = events.frame().await.unwrap();
    let id = endpoint
        .strip_prefix("event: endpoint\ndata: /messages?sessionId=")
        .and_then(|rest| rest.strip_suffix("\n\n"))
        .unwrap()
        .to_owned();
    let say = async |identity: &'static str, id: &str, message: &str| {
        server.sse_message(&identity, id, Bytes::copy_from_slice(message.as_bytes())).await.status()
    };
    assert_eq!(say("guest", &id, INITIALIZE).await, StatusCode::ACCEPTED);
    assert!(
        events.frame().await.unwrap().starts_with("event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":0,")
    );
    assert_eq!(say("guest", &id, ASK).await, StatusCode::ACCEPTED);
    assert!(events.message().await.contains("elicitation/create"));
    // There is no other speaker for it.
    for (identity, id) in [("thief", id.as_str()), ("guest", "x"), ("guest", &"0".repeat(32))] {
        assert_eq!(say(identity, id, ASK).await, StatusCode::NOT_FOUND);
    }
    drop(events);
    assert_eq!(say("guest", &id, ASK).await, StatusCode::NOT_FOUND);
    server.shutdown().await;
    assert_eq!(server.handler().closed.load(std::sync::atomic::Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_does_not_keep_the_server_from_stopping() {
    let server = Fake::full();
    let (messages, outgoing) = server.connect("guest").unwrap();
    let say = async |message: &str| timeout(Duration::from_secs(1), messages.send(message.into())).await;
    say(INITIALIZE).await.unwrap().unwrap();
    // Until every queue is full.
    while say(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await.is_ok() {}
    let begun = Instant::now();
    timeout(Duration::from_secs(60), server.shutdown()).await.unwrap();
    assert_eq!(server.handler().closed.load(std::sync::atomic::Ordering::SeqCst), 1);
    assert!(begun.elapsed() <= STDIO_DRAIN + STDIO_CLOSE_TIMEOUT);
    drop(outgoing);
}

#[tokio::test]
async fn requests_that_have_ended_leave_nothing_behind() {
    let (answers, mut output) = mpsc::channel(64);
    let (input, incoming) = mpsc::channel::<Vec<u8>>(64);
    let incoming = unfold(incoming, |mut incoming| async move { Some((incoming.recv().await?, incoming)) });
    let server = Fake::full();
    let mut duplex = Duplex::new(server.server.clone(), server.handler_of("guest"), answers);
    let client = async {
        for id in 0..20 {
            let listen = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{{{META},"notifications":{{}}}}}}"#
            );
            input.send(listen.into()).await.unwrap();
            assert!(output.recv().await.unwrap().contains("acknowledged"));
            let cancel = format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
            );
            input.send(cancel.into()).await.unwrap();
        }
        drop(input);
    };
    tokio::join!(duplex.read(incoming), client);
    // At most the last one had no time to end.
    assert!(duplex.tasks.len() <= 2, "{}", duplex.tasks.len());
}

#[tokio::test]
async fn connections_are_bounded() {
    let server = Fake::full();
    let open: Vec<_> = (0..CONNECTIONS).map(|_| server.connect("guest").unwrap()).collect();
    assert!(server.connect("guest").is_none());
    assert_eq!(server.sse(&"guest", "/messages").status(), StatusCode::SERVICE_UNAVAILABLE);
    drop(open);
    while server.connect("guest").is_none() {
        tokio::task::yield_now().await;
    }
}
