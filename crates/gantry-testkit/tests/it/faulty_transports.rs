//! The faulty server over each kind of socket.

use crate::client::{Tcp, Wire, connect, handshake, modern, text};
use gantry_testkit::Connection;
use gantry_testkit::faulty::{Faulty, Kind, LEGACY, MODERN};
use gantry_testkit::server::Answer;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Message, WebSocket, client};

/// A conversation that every transport carries: a handshake, a note before an answer, a question to the client.
fn converse(wire: &mut impl Wire) {
    let answer = wire.initialize(&json!({ "elicitation": {} }));
    assert_eq!(answer["result"]["protocolVersion"], LEGACY, "{answer}");
    let params = json!({ "name": "progress", "arguments": { "steps": 1 }, "_meta": { "progressToken": 9 } });
    let (notes, answer) = wire.request_noting(1, "tools/call", &params);
    assert_eq!((notes.len(), text(&answer["result"])), (1, "1 steps"));
    wire.send(
        &json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "ask" } })
            .to_string(),
    );
    let asked = wire.next();
    assert_eq!(asked["method"], "elicitation/create");
    wire.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "decline" } }).to_string());
    assert_eq!(text(&wire.next()["result"]), r#"{"action":"decline"}"#);
}

#[test]
fn lines_over_tcp() {
    let server = Faulty::start(Kind::Tcp, &[]);
    assert_eq!(server.url, format!("tcp://{}", server.address));
    converse(&mut Tcp::connect(server.address));
    let mut second = Tcp::connect(server.address);
    second.initialize(&json!({}));
    let session: Value = serde_json::from_str(text(&second.call(1, "session", &json!({})))).unwrap();
    assert_eq!((&session["session"], &session["connections"]), (&json!(2), &json!(2)));
    second.send(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hang-up"}}"#);
    assert_eq!(second.next_text(), None);
    converse(&mut Tcp::connect(server.address));
}

#[test]
fn a_lost_connection_is_distinguished_from_a_cancelled_call() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let server = Faulty::start(Kind::Tcp, &["--journal", path.to_str().unwrap()]);
    let mut first = Tcp::connect(server.address);
    first.initialize(&json!({}));
    first.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sleep","arguments":{"ms":600000}}}"#);
    // Once this is answered, the call before it was taken.
    first.call(2, "echo", &json!({}));
    drop(first);
    let mut second = Tcp::connect(server.address);
    second.initialize(&json!({}));
    while std::fs::read_to_string(&path).unwrap_or_default() != "disconnected\n" {
        second.call(1, "pid", &json!({}));
    }
}

#[test]
fn messages_over_websocket() {
    let server = Faulty::start(Kind::Ws, &[]);
    let mut request = server.url.as_str().into_client_request().unwrap();
    client(request.clone(), connect(server.address)).unwrap_err();
    request.headers_mut().insert("sec-websocket-protocol", "other, mcp".parse().unwrap());
    let (socket, response) = client(request, connect(server.address)).unwrap();
    assert_eq!(response.headers()["sec-websocket-protocol"], "mcp");
    let mut socket = Socket(socket);
    converse(&mut socket);
    let headers: Value = serde_json::from_str(text(&socket.call(3, "headers", &json!({})))).unwrap();
    assert_eq!(headers["sec-websocket-protocol"], "other, mcp");
}

struct Socket(WebSocket<TcpStream>);

impl Wire for Socket {
    fn send(&mut self, text: &str) {
        self.0.send(Message::text(text)).expect("the server reads");
    }

    fn next_text(&mut self) -> Option<String> {
        let message = self.0.read().expect("a frame in time");
        Some(message.into_text().expect("text").as_str().to_owned())
    }
}

#[test]
fn the_older_http_has_a_stream_and_posts() {
    let server = Faulty::start(Kind::Sse, &[]);
    assert_eq!(server.url, format!("http://{}/sse", server.address));
    let mut lost = Connection::open(server.address).unwrap();
    assert_eq!(lost.request("POST", "/messages?session=7", &[], b"{}").unwrap().status, 404);
    converse(&mut Events::open(server.address));
}

/// The stream of HTTP+SSE, and how messages get to its other end.
struct Events {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
    endpoint: String,
}

impl Events {
    fn open(address: SocketAddr) -> Self {
        let mut stream = connect(address);
        write!(stream, "GET /sse HTTP/1.1\r\nhost: {address}\r\naccept: text/event-stream\r\n\r\n").unwrap();
        let mut events = Self { stream: BufReader::new(stream), address, endpoint: String::new() };
        events.endpoint = events.next_text().expect("the endpoint");
        events
    }
}

impl Wire for Events {
    fn send(&mut self, text: &str) {
        let mut connection = Connection::open(self.address).unwrap();
        let headers = [("content-type", "application/json")];
        let answer = connection.request("POST", &self.endpoint, &headers, text.as_bytes()).unwrap();
        assert_eq!(answer.status, 202, "{answer:?}");
    }

    fn next_text(&mut self) -> Option<String> {
        next_event(&mut self.stream)
    }
}

/// The data of the next event. Every event is written at once, so the marks of its chunk are on lines of their own.
fn next_event(stream: &mut BufReader<TcpStream>) -> Option<String> {
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).expect("UTF-8 in time") == 0 {
            return None;
        }
        if let Some(data) = line.strip_prefix("data: ") {
            return Some(data.trim_end().to_owned());
        }
    }
}

/// A connection for POSTs to `/mcp`, with what the server wants sent along.
struct Http {
    address: SocketAddr,
    headers: Vec<(&'static str, String)>,
}

impl Http {
    fn new(server: &Faulty, headers: &[(&'static str, &str)]) -> Self {
        let owned = headers.iter().map(|(name, value)| (*name, (*value).to_owned()));
        let accept = ("accept", "application/json, text/event-stream".to_owned());
        Self { address: server.address, headers: owned.chain([accept]).collect() }
    }

    /// A message, answered in one piece.
    fn post(&self, message: &Value) -> Answer {
        let headers: Vec<(&str, &str)> =
            self.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let mut connection = Connection::open(self.address).unwrap();
        connection.request("POST", "/mcp", &headers, message.to_string().as_bytes()).unwrap()
    }

    /// A message, answered by a stream.
    fn post_for_events(&self, message: &Value) -> BufReader<TcpStream> {
        let mut stream = connect(self.address);
        let body = message.to_string();
        let mut head =
            format!("POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-length: {}\r\n", self.address, body.len());
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        write!(stream, "{head}\r\n{body}").unwrap();
        BufReader::new(stream)
    }
}

fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// A legacy session.
fn session(server: &Faulty) -> Http {
    let mut http = Http::new(server, &[]);
    let answer = http.post(&request(0, "initialize", &handshake(&json!({ "elicitation": {} }))));
    let id = answer.headers["mcp-session-id"].to_str().unwrap().to_owned();
    http.headers.extend([("mcp-session-id", id), ("mcp-protocol-version", LEGACY.to_owned())]);
    http
}

#[test]
fn streamable_http_has_sessions() {
    let server = Faulty::start(Kind::Http, &[]);
    let stranger = Http::new(&server, &[]);
    assert_eq!(stranger.post(&request(1, "tools/list", &json!({}))).status, 400);
    let http = session(&server);
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(http.post(&initialized).status, 202);
    let echo = json!({ "name": "echo", "arguments": { "text": "hi" } });
    assert_eq!(text(&http.post(&request(2, "tools/call", &echo)).json()["result"]), "hi");

    let mut events = http.post_for_events(&request(3, "tools/call", &json!({ "name": "ask" })));
    let asked: Value = serde_json::from_str(&next_event(&mut events).unwrap()).unwrap();
    assert_eq!(asked["method"], "elicitation/create");
    let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "cancel" } });
    assert_eq!(http.post(&answer).status, 202);
    assert!(next_event(&mut events).unwrap().contains(r#"\"cancel\""#));

    http.post(&request(4, "tools/call", &json!({ "name": "forget" })));
    assert_eq!(http.post(&request(5, "tools/list", &json!({}))).status, 404);
}

#[test]
fn the_stream_of_a_session_tells_of_changes_until_the_session_ends() {
    let server = Faulty::start(Kind::Http, &[]);
    let http = session(&server);
    let mut stream = connect(server.address);
    let (_, id) = http.headers.iter().find(|(name, _)| *name == "mcp-session-id").unwrap();
    let head = format!(
        "/mcp HTTP/1.1\r\nhost: {}\r\nmcp-session-id: {id}\r\nmcp-protocol-version: {LEGACY}\r\n\r\n",
        server.address
    );
    write!(stream, "GET {head}").unwrap();
    let mut stream = BufReader::new(stream);
    let mut status = String::new();
    stream.read_line(&mut status).unwrap();
    assert!(status.contains("200"), "{status}");
    http.post(&request(1, "tools/call", &json!({ "name": "grow" })));
    assert!(next_event(&mut stream).unwrap().contains("notifications/tools/list_changed"));

    let mut ending = Connection::open(server.address).unwrap();
    ending.send(format!("DELETE {head}").as_bytes()).unwrap();
    assert_eq!(ending.answer().unwrap().status, 204);
    assert_eq!(http.post(&request(2, "tools/list", &json!({}))).status, 404);
}

#[test]
fn a_server_that_refuses_quotes_what_it_was_given() {
    let server = Faulty::start(Kind::Http, &["--refuse"]);
    let answer = Http::new(&server, &[("authorization", "Bearer x")]).post(&request(1, "ping", &json!({})));
    assert_eq!((answer.status, answer.text.as_str()), (401, "401 for token Bearer x"));
}

#[test]
fn modern_http_checks_its_headers() {
    let server = Faulty::start(Kind::Http, &["--era", "modern"]);
    let call = request(
        1,
        "tools/call",
        &modern(json!({ "name": "echo", "arguments": { "text": "hi" } }), &json!({})),
    );
    let right = [("mcp-protocol-version", MODERN), ("mcp-method", "tools/call"), ("mcp-name", "echo")];
    assert_eq!(text(&Http::new(&server, &right).post(&call).json()["result"]), "hi");
    for wrong in 0..right.len() {
        let mut headers = right;
        headers[wrong].1 = "other";
        let answer = Http::new(&server, &headers).post(&call);
        assert_eq!((answer.status, &answer.json()["error"]["code"]), (400, &json!(-32020)), "{answer:?}");
    }
    let old = Http::new(&server, &[]).post(&request(1, "initialize", &handshake(&json!({}))));
    assert_eq!((old.status, &old.json()["error"]["code"]), (400, &json!(-32022)));
    let unknown = [("mcp-protocol-version", MODERN), ("mcp-method", "ping")];
    let ping = Http::new(&server, &unknown).post(&request(1, "ping", &modern(json!({}), &json!({}))));
    assert_eq!((ping.status, &ping.json()["error"]["code"]), (404, &json!(-32601)));
}

#[test]
fn a_closed_stream_cancels_in_the_modern_era_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let server = Faulty::start(Kind::Http, &["--era", "dual", "--journal", path.to_str().unwrap()]);
    let sleep = |ms: u64| json!({ "name": "sleep", "arguments": { "ms": ms } });
    let (legacy, headers) = (
        session(&server),
        [("mcp-protocol-version", MODERN), ("mcp-method", "tools/call"), ("mcp-name", "sleep")],
    );
    let n_calls = || {
        let counted = legacy.post(&request(9, "tools/call", &json!({ "name": "session" }))).json();
        serde_json::from_str::<Value>(text(&counted["result"])).unwrap()["calls"].as_u64().unwrap()
    };
    let old = legacy.post_for_events(&request(1, "tools/call", &sleep(600_000)));
    let new = Http::new(&server, &headers).post_for_events(&request(
        2,
        "tools/call",
        &modern(sleep(600_000), &json!({})),
    ));
    // Each look is a call itself; both others are there once there is one more than looks.
    let mut looks = 1;
    while n_calls() < looks + 2 {
        looks += 1;
    }
    drop((old, new));
    while std::fs::read_to_string(&path).unwrap_or_default() != "cancelled\n" {
        n_calls();
    }
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    assert_eq!(legacy.post(&cancel).status, 202);
    while std::fs::read_to_string(&path).unwrap_or_default() != "cancelled\ncancelled\n" {
        n_calls();
    }
}

#[test]
fn a_socket_can_close_in_the_middle_of_a_call() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let server = Faulty::start(Kind::Http, &["--close-socket-on-call", "--journal", path.to_str().unwrap()]);
    let mut events = session(&server).post_for_events(&request(1, "tools/call", &json!({ "name": "echo" })));
    let mut rest = Vec::new();
    // Cut short or reset: either way no answer came.
    std::io::Read::read_to_end(&mut events, &mut rest).ok();
    assert!(!String::from_utf8_lossy(&rest).contains("jsonrpc"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "hung up in echo\n");
}
