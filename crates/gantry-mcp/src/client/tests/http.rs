//! Streamable HTTP in both eras, and HTTP+SSE, against a server that is played request by request.

use super::fake::{Client, call, call_with, client, discovered, target};
use crate::client::{Connection, Event, Failure, ListKind, Protocol, Transport, connect};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{Arc, Mutex},
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

/// One request as it came.
#[derive(Debug, Clone)]
struct Got {
    verb: String,
    path: String,
    headers: BTreeMap<String, String>,
    body: Value,
}

impl Got {
    fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// What is answered: a status, headers, and pieces of a body. A body without end holds the connection.
struct Said {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: String,
    ends: bool,
}

fn said(status: u16, kind: &'static str, body: &impl ToString) -> Said {
    Said { status, headers: vec![("content-type", kind.into())], body: body.to_string(), ends: true }
}

fn json_result(got: &Got, result: &Value) -> Said {
    said(200, "application/json", &json!({"jsonrpc": "2.0", "id": got.body["id"], "result": result}))
}

fn json_error(status: u16, got: &Got, code: i32) -> Said {
    let error = json!({"code": code, "message": "no", "data": {"supported": ["2025-11-25"]}});
    said(status, "application/json", &json!({"jsonrpc": "2.0", "id": got.body["id"], "error": error}))
}

fn events(messages: &[Value]) -> Said {
    let mut body = String::new();
    for message in messages {
        write!(body, "data: {message}\n\n").unwrap();
    }
    said(200, "text/event-stream", &body)
}

fn empty(status: u16) -> Said {
    said(status, "text/plain", &"")
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Got> {
    let mut line = String::new();
    if stream.read_line(&mut line).await.ok()? == 0 {
        return None;
    }
    let mut words = line.split(' ');
    let (verb, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Got { verb, path, headers, body: serde_json::from_slice(&body).unwrap_or_default() })
}

/// Whether the connection goes on.
async fn write(stream: &mut BufReader<TcpStream>, said: Said) -> bool {
    let Said { status, headers, body, ends } = said;
    let mut head = format!("HTTP/1.1 {status} X\r\n");
    for (name, value) in headers {
        write!(head, "{name}: {value}\r\n").unwrap();
    }
    if ends {
        write!(head, "content-length: {}\r\n", body.len()).unwrap();
    }
    stream.write_all(format!("{head}\r\n{body}").as_bytes()).await.unwrap_or_default();
    if !ends {
        // The client hangs up when it has had enough.
        stream.read_u8().await.unwrap_or_default();
    }
    ends
}

async fn serve(
    mut stream: BufReader<TcpStream>,
    answer: Arc<impl Fn(&Got) -> Said + Send + Sync>,
    log: Arc<Mutex<Vec<Got>>>,
) {
    while let Some(got) = read(&mut stream).await {
        log.lock().unwrap().push(got.clone());
        if !write(&mut stream, answer(&got)).await {
            return;
        }
    }
}

/// Plays a server; gives its address and what it got.
async fn play(answer: impl Fn(&Got) -> Said + Send + Sync + 'static) -> (String, Arc<Mutex<Vec<Got>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let (answer, log) = (Arc::new(answer), Arc::new(Mutex::new(Vec::new())));
    let seen = log.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(BufReader::new(stream), answer.clone(), log.clone()));
        }
    });
    (url, seen)
}

async fn reached(url: &str) -> (Result<Connection, Failure>, mpsc::Receiver<Event>) {
    let headers = vec![("X-Key".to_owned(), "k".to_owned())];
    let (target, events) = target(Transport::Http { url: url.to_owned(), headers }, Protocol::Auto);
    (connect(&target, Protocol::Auto).await, events)
}

fn anyone() -> Arc<Client> {
    client(1, r#"{"elicitation":{}}"#, Ok(r#"{"action":"accept"}"#)).0
}

/// The handshake of a server of the older era; everything else is answered by `then`.
fn legacy(then: impl Fn(&Got) -> Said + Send + Sync + 'static) -> impl Fn(&Got) -> Said + Send + Sync {
    let sessions = Mutex::new(0);
    move |got| match (&*got.verb, got.method()) {
        ("POST", "server/discover") => {
            let error = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "Server not initialized"}});
            said(400, "application/json", &error)
        }
        ("POST", "initialize") => {
            let mut sessions = sessions.lock().unwrap();
            *sessions += 1;
            let result = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
            let mut said = json_result(got, &result);
            said.headers.push(("mcp-session-id", format!("s{sessions}")));
            said
        }
        ("POST", "notifications/initialized") => empty(202),
        ("DELETE", _) => empty(204),
        _ => then(got),
    }
}

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
    let (audience, mut heard) = client(1, "{}", Ok("{}"));
    let request = call_with("a", r#"{"r":"eu"}"#, audience);
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
async fn a_legacy_server_has_a_session_that_is_deleted_in_the_end() {
    let (url, seen) = play(legacy(|got| match &*got.verb {
        "GET" => empty(405),
        _ => json_result(got, &json!({"ok": 1})),
    }))
    .await;
    let connection = reached(&url).await.0.unwrap();
    assert_eq!(call("a", anyone()).by(&connection).await.unwrap(), r#"{"ok":1}"#);
    connection.close().await;
    assert!(matches!(call("a", anyone()).by(&connection).await, Err(Failure::Unavailable(_))));
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
    let mut request = call("a", anyone());
    request.audience = Arc::new(crate::exchange::Nobody::default());
    assert_eq!(request.by(&connection).await.unwrap(), r#"{"late":true}"#);
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
    assert!(matches!(call("a", anyone()).by(&connection).await, Err(Failure::Lost(_))));
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
    let (other, _heard) = client(2, "{}", Ok("{}"));
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
    assert_eq!(outcome, Err(Failure::Canceled));
    assert_eq!((&answer.body["id"], &answer.body["result"]), (&json!("q"), &json!({"action": "accept"})));
}

#[tokio::test]
async fn what_belongs_to_no_request_comes_on_the_background_stream() {
    let (url, _seen) = play(legacy(|_| Said {
        ends: false,
        ..events(&[json!({"jsonrpc": "2.0", "method": "notifications/prompts/list_changed"})])
    }))
    .await;
    let (connection, mut events) = reached(&url).await;
    let _open = connection.unwrap();
    assert_eq!(events.recv().await, Some(Event::Changed(ListKind::Prompts)));
}

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
            Err(Failure::Lost(_)) => assert!(lost, "{status}"),
            Err(Failure::Unavailable(reason)) => {
                assert!(!lost, "{status}");
                assert_eq!(reason.contains("headers.Authorization"), matches!(status, 401 | 403), "{reason}");
            }
            _ => panic!("{status}: {outcome:?}"),
        }
    }
}

#[tokio::test]
async fn an_outage_is_no_verdict_about_the_era() {
    for status in [401, 403, 429, 500, 503] {
        let (url, seen) = play(move |_| empty(status)).await;
        let outcome = reached(&url).await.0;
        assert!(matches!(&outcome, Err(Failure::Unavailable(_))), "{status}: {outcome:?}");
        assert_eq!(seen.lock().unwrap().len(), 1, "{status}");
    }
}

#[tokio::test]
async fn an_address_without_a_server_is_named_as_such() {
    let (url, seen) = play(|_| said(404, "text/html", &"<h1>nothing</h1>")).await;
    let outcome = reached(&url).await.0;
    assert!(
        matches!(&outcome, Err(Failure::Unavailable(reason)) if reason.contains("no MCP server")),
        "{outcome:?}"
    );
    let verbs: Vec<String> = seen.lock().unwrap().iter().map(|got| got.verb.clone()).collect();
    assert_eq!(verbs, ["POST", "POST", "GET"]);
}

#[tokio::test]
async fn a_server_of_the_first_version_is_met_over_its_stream() {
    let (out, queue) = mpsc::channel::<String>(8);
    let queue = Arc::new(Mutex::new(Some(queue)));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/sse", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (out, queue) = (out.clone(), queue.clone());
            tokio::spawn(first_version(stream, out, queue));
        }
    });
    let connection = reached(&url).await.0.unwrap();
    assert_eq!(connection.about().version.as_str(), "2024-11-05");
    assert_eq!(call("a", anyone()).by(&connection).await.unwrap(), r#"{"ok":1}"#);
    connection.close().await;
}

async fn first_version(
    stream: TcpStream,
    out: mpsc::Sender<String>,
    queue: Arc<Mutex<Option<mpsc::Receiver<String>>>>,
) {
    let mut stream = BufReader::new(stream);
    while let Some(got) = read(&mut stream).await {
        let status = match (&*got.verb, &*got.path) {
            ("GET", "/sse") => break,
            ("POST", "/messages?s=1") => 202,
            _ => 405,
        };
        let result = match got.method() {
            "initialize" => json!({"protocolVersion": "2024-11-05", "capabilities": {}}),
            _ => json!({"ok": 1}),
        };
        if status == 202 && !got.body["id"].is_null() {
            out.send(json!({"jsonrpc": "2.0", "id": got.body["id"], "result": result}).to_string())
                .await
                .unwrap();
        }
        let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n");
        stream.write_all(answer.as_bytes()).await.unwrap_or_default();
    }
    let head =
        "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\n\r\nevent: endpoint\ndata: /messages?s=1\n\n";
    stream.write_all(head.as_bytes()).await.unwrap_or_default();
    let Some(mut queue) = queue.lock().unwrap().take() else { return };
    while let Some(message) = queue.recv().await {
        stream.write_all(format!("event: message\ndata: {message}\n\n").as_bytes()).await.unwrap_or_default();
    }
}
