//! Streamable HTTP in both eras, and HTTP+SSE, against a server that is played request by request: the server.

mod expired;
mod first_version;
mod log;
mod newer;
mod refusals;
mod sessions;
mod streams;
mod withdrawals;

use super::fake::{Client, Events, a_client, target};
use crate::client::{Connection, Protocol, Transport, UpstreamError, connect};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// How long something may take on a busy machine before it counts as never.
const TIMEOUT: Duration = Duration::from_secs(30);

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

/// What is answered: a status, headers, and a body. A body without end holds the connection.
struct Said {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: String,
    ends: bool,
    /// The body comes only when this fires.
    gate: Option<CancellationToken>,
}

fn said(status: u16, kind: &'static str, body: &impl ToString) -> Said {
    let headers = vec![("content-type", kind.into())];
    Said { status, headers, body: body.to_string(), ends: true, gate: None }
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
    let Said { status, headers, body, ends, gate } = said;
    let mut head = format!("HTTP/1.1 {status} X\r\n");
    for (name, value) in headers {
        write!(head, "{name}: {value}\r\n").unwrap();
    }
    if ends {
        write!(head, "content-length: {}\r\n", body.len()).unwrap();
    }
    if let Some(gate) = gate {
        stream.write_all(format!("{head}\r\n").as_bytes()).await.unwrap_or_default();
        gate.cancelled().await;
        stream.write_all(body.as_bytes()).await.unwrap_or_default();
    } else {
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).await.unwrap_or_default();
    }
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

/// What a server got so far.
type Seen = Arc<Mutex<Vec<Got>>>;

/// How many requests of this kind came.
fn count(seen: &Seen, is_one: impl Fn(&Got) -> bool) -> usize {
    seen.lock().unwrap().iter().filter(|got| is_one(got)).count()
}

/// Waits until so many requests of this kind came.
async fn until(seen: &Seen, n: usize, is_one: impl Fn(&Got) -> bool) {
    let came = async {
        while count(seen, &is_one) < n {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    if tokio::time::timeout(TIMEOUT, came).await.is_err() {
        panic!("they never came: {:#?}", seen.lock().unwrap());
    }
}

/// Plays a server; gives its address and what it got.
async fn play(answer: impl Fn(&Got) -> Said + Send + Sync + 'static) -> (String, Seen) {
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

async fn reached(url: &str) -> (Result<Connection, UpstreamError>, Events) {
    let headers = vec![("X-Key".to_owned(), "k".to_owned())];
    let (target, events) = target(Transport::Http { url: url.to_owned(), headers }, Protocol::Auto);
    (connect(&target, &mut Protocol::Auto).await, events)
}

fn anyone() -> Arc<Client> {
    a_client(1, r#"{"elicitation":{}}"#, Ok(r#"{"action":"accept"}"#)).0
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
            let capabilities = json!({"resources": {"subscribe": true}, "logging": {}});
            let result = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities});
            let mut said = json_result(got, &result);
            said.headers.push(("mcp-session-id", format!("s{sessions}")));
            said
        }
        ("POST", "notifications/initialized") => empty(202),
        ("DELETE", _) => empty(204),
        _ => then(got),
    }
}
