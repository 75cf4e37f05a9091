//! The other doors: HTTP+SSE, WebSocket, and streams of `/mcp`, over real sockets.

use super::{Server, TestDir, call, initialize, modern_meta, post, request};
use bytes::Bytes;
use gantry_egress::{HttpResponse, SocketReader, SocketWriter};
use http::{Method, StatusCode};
use serde_json::{Value, json};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// A client on a WebSocket.
struct Socket {
    reader: SocketReader,
    writer: SocketWriter,
}

impl Socket {
    async fn open(server: &Server, path: &str) -> Self {
        let (reader, writer) = server.client().websocket(path).await.expect("a socket");
        Self { reader, writer }
    }

    async fn send(&mut self, message: &[u8]) {
        let text = String::from_utf8(message.to_vec()).expect("text");
        self.writer.send(text).await.expect("it reads");
    }

    async fn receive(&mut self) -> Value {
        let text = self.reader.next().await.expect("it answers").expect("a message");
        serde_json::from_str(&text).expect("JSON")
    }

    async fn ask(&mut self, message: &[u8]) -> Value {
        self.send(message).await;
        self.receive().await
    }
}

/// Events of an open answer.
struct Events {
    body: HttpResponse,
    buffer: String,
}

impl Events {
    async fn open(
        server: &Server,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Self {
        let mut request = http::Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = server.client().open(request, body).await.expect("an answer");
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { body: response, buffer: String::new() }
    }

    /// The next event; `None` at the end.
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some((event, rest)) = self.buffer.split_once("\n\n") {
                let event = event.to_owned();
                self.buffer = rest.to_owned();
                return Some(event);
            }
            let chunk = self.body.chunk().await.expect("the stream goes on")?;
            self.buffer.push_str(std::str::from_utf8(&chunk).expect("text"));
        }
    }

    async fn message(&mut self) -> Value {
        let event = self.next().await.expect("an event");
        let data = event.lines().find_map(|line| line.strip_prefix("data: ")).expect("data");
        serde_json::from_str(data).expect("JSON")
    }
}

/// Sends a message where the stream said, as a client of HTTP+SSE does.
async fn say(server: &Server, endpoint: &str, message: &[u8]) -> StatusCode {
    let request = http::Request::builder()
        .method(Method::POST)
        .uri(endpoint)
        .header("content-type", "application/json");
    server.client().send(request, Bytes::copy_from_slice(message)).await.expect("an answer").0
}

#[test]
fn srv_3_a_websocket_carries_both_eras() {
    let home = TestDir::with_test_tools();
    let server = home.serve();
    runtime().block_on(async {
        for path in ["/ws", "/ws/default"] {
            let mut socket = Socket::open(&server, path).await;
            let welcome = socket.ask(&initialize("2025-06-18")).await;
            assert_eq!(welcome["result"]["protocolVersion"], "2025-06-18", "{welcome}");
            let said = socket.ask(&call(1, "test__echo", &json!({ "text": "é" }))).await;
            assert_eq!(said["result"]["content"][0]["text"], "é", "{said}");
            let params =
                json!({ "name": "test__echo", "arguments": { "text": "x" }, "_meta": modern_meta() });
            let said = socket.ask(&request(2, "tools/call", &params)).await;
            assert_eq!(said["result"]["resultType"], "complete", "{said}");
            assert_eq!(socket.ask(b"{").await["error"]["code"], -32700);
        }
    });
}

#[test]
fn srv_3_an_empty_frame_ends_the_input_and_what_runs_is_answered() {
    let home = TestDir::with_test_tools();
    let server = home.serve();
    runtime().block_on(async {
        let mut socket = Socket::open(&server, "/ws").await;
        socket.ask(&initialize("2025-06-18")).await;
        let slow = json!({ "ms": 300, "file": "last.txt" });
        socket.send(&call(9, "test__slow_write", &slow)).await;
        socket.send(b"").await;
        let last = socket.receive().await;
        assert_eq!((&last["id"], &last["result"]["isError"]), (&json!(9), &json!(false)), "{last}");
        assert_eq!(socket.reader.next().await.expect("an orderly end"), None);
    });
    assert_eq!(home.read("last.txt"), "begun\nended\n");
}

#[test]
fn srv_3_the_gates_stand_before_every_door() {
    let home = TestDir::new();
    let server = home.serve();
    let upgrade = [
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let evil = ("origin", "https://evil.test");
    let wrong = ("authorization", "Bearer wrong");
    for path in ["/ws", "/sse", "/messages?sessionId=x"] {
        for (header, status) in [(evil, 403), (wrong, 401)] {
            let headers: Vec<_> = upgrade.iter().copied().chain([header]).collect();
            let answer = server.connect().request("GET", path, &headers, b"").expect("an answer");
            assert_eq!(answer.status, status, "{path} {header:?}");
        }
    }
    // Without an upgrade there is no socket, and no project but the one there is.
    let plain = server.connect().request("GET", "/ws", &[], b"").expect("an answer");
    assert!((400..500).contains(&plain.status), "{plain:?}");
    let other = server.connect().request("GET", "/ws/other", &upgrade, b"").expect("an answer");
    assert_eq!(other.status, 404, "{other:?}");
    let unknown = server.connect().request("POST", "/messages?sessionId=x", &[], b"{}").expect("an answer");
    assert_eq!(unknown.status, 404, "{unknown:?}");
}

#[test]
fn srv_3_http_with_sse_answers_on_the_stream() {
    let home = TestDir::with_test_tools();
    let server = home.serve();
    runtime().block_on(async {
        let mut events = Events::open(&server, Method::GET, "/sse", &[], Bytes::new()).await;
        let first = events.next().await.expect("an event");
        let endpoint = first.strip_prefix("event: endpoint\ndata: ").expect("an endpoint").to_owned();
        assert!(endpoint.starts_with("/messages?sessionId="), "{endpoint}");
        assert_eq!(say(&server, &endpoint, &initialize("2024-11-05")).await, StatusCode::ACCEPTED);
        assert_eq!(events.message().await["result"]["protocolVersion"], "2024-11-05");
        let echo = call(1, "test__echo", &json!({ "text": "hello" }));
        assert_eq!(say(&server, &endpoint, &echo).await, StatusCode::ACCEPTED);
        assert_eq!(events.message().await["result"]["content"][0]["text"], "hello");
        drop(events);
        while say(&server, &endpoint, &echo).await != StatusCode::NOT_FOUND {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn srv_3_open_streams_do_not_keep_a_server_from_stopping() {
    let home = TestDir::new();
    let server = home.serve();
    let welcome = post(&mut server.connect(), &[], &initialize("2025-11-25"));
    let session = welcome.headers["mcp-session-id"].to_str().expect("text").to_owned();
    runtime().block_on(async {
        let sent = [("mcp-session-id", session.as_str()), ("accept", "text/event-stream")];
        let mut common = Events::open(&server, Method::GET, "/mcp", &sent, Bytes::new()).await;
        assert!(common.next().await.expect("a first event").contains("retry: "));
        let params = json!({ "notifications": { "toolsListChanged": true }, "_meta": modern_meta() });
        let listen = request(1, "subscriptions/listen", &params);
        let sent = [
            ("content-type", "application/json"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "subscriptions/listen"),
        ];
        let mut listening = Events::open(&server, Method::POST, "/mcp", &sent, listen.into()).await;
        assert_eq!(listening.message().await["method"], "notifications/subscriptions/acknowledged");
        let mut older = Events::open(&server, Method::GET, "/sse", &[], Bytes::new()).await;
        older.next().await.expect("an event");
        let mut socket = Socket::open(&server, "/ws").await;
        socket.ask(&initialize("2025-11-25")).await;
        let (code, said) = server.stop();
        assert_eq!(code, 0, "{said}");
        assert!(!said.contains("still open"), "{said}");
        assert_eq!(common.next().await, None);
        assert_eq!(listening.message().await["result"]["resultType"], "complete");
        assert_eq!(listening.next().await, None);
        assert_eq!(older.next().await, None);
        assert_eq!(socket.reader.next().await.expect("an orderly end"), None);
    });
}
