//! Lines in, lines out: order, limits, both eras and the end of a connection.

use super::{Fake, TOOLS, TestServer, error_code, said};
use crate::limits::{LINE_BYTES, STDIO_DRAIN, STDIO_IN_FLIGHT};
use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"s"}}}"#;
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// How long a test waits for what must come at once; less than it takes a connection to give up.
const TIMEOUT: Duration = Duration::from_secs(1);

/// A client at the other end of a connection.
struct Client {
    server: TestServer,
    input: Option<DuplexStream>,
    output: BufReader<DuplexStream>,
    serving: JoinHandle<io::Result<()>>,
}

impl Client {
    fn connect() -> Self {
        let server = Fake::server();
        let (input, server_input) = tokio::io::duplex(1 << 20);
        let (server_output, output) = tokio::io::duplex(1 << 20);
        let serving = tokio::spawn({
            let server = server.clone();
            async move { server.serve("guest", server_input, server_output).await }
        });
        Self { server, input: Some(input), output: BufReader::new(output), serving }
    }

    async fn initialized() -> Self {
        let mut client = Self::connect();
        assert_eq!(error_code(&client.ask(INITIALIZE).await), 0);
        client
    }

    async fn send(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).await.unwrap();
        input.write_all(b"\n").await.unwrap();
    }

    async fn receive(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).await.unwrap();
        line.trim_end_matches('\n').to_owned()
    }

    async fn ask(&mut self, line: &str) -> String {
        self.send(line).await;
        self.receive().await
    }

    /// Asks and does not wait for long.
    async fn ask_now(&mut self, line: &str) -> String {
        timeout(TIMEOUT, self.ask(line)).await.expect("an answer although much is running")
    }

    /// Ends the input and returns what was still said.
    async fn end(mut self) -> (TestServer, Vec<String>) {
        drop(self.input.take());
        let mut rest = Vec::new();
        loop {
            let line = self.receive().await;
            if line.is_empty() {
                break;
            }
            rest.push(line);
        }
        self.serving.await.unwrap().unwrap();
        (self.server, rest)
    }
}

fn call(id: &str, tool: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}"}}}}"#)
}

fn counts(server: &TestServer) -> (usize, usize) {
    let fake = server.handler();
    (fake.opened.load(Ordering::SeqCst), fake.closed.load(Ordering::SeqCst))
}

#[tokio::test]
async fn a_legacy_connection_is_one_session() {
    let mut client = Client::connect();
    let early = client.ask(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).await;
    assert_eq!(error_code(&early), -32600);
    assert_eq!(
        client.ask(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#
    );
    assert!(client.ask(INITIALIZE).await.contains(r#""protocolVersion":"2025-11-25""#));
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    assert_eq!(error_code(&client.ask(INITIALIZE).await), -32600);
    assert_eq!(
        client.ask(r#"{"jsonrpc":"2.0","id":"a","method":"tools/list"}"#).await,
        format!(r#"{{"jsonrpc":"2.0","id":"a","result":{{"tools":{TOOLS}}}}}"#)
    );
    let (server, rest) = client.end().await;
    assert!(rest.is_empty());
    assert_eq!(counts(&server), (1, 1));
}

#[tokio::test]
async fn both_eras_share_the_connection_and_its_session() {
    let mut client = Client::connect();
    let discover = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{{{META}}}}}"#);
    assert!(client.ask(&discover).await.contains(r#""supportedVersions":["2026-07-28"]"#));
    let list = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{META}}}}}"#);
    assert!(client.ask(&list).await.contains("resultType"));
    assert_eq!(error_code(&client.ask(INITIALIZE).await), 0);
    assert!(!client.ask(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).await.contains("resultType"));
    assert!(client.ask(&list).await.contains("resultType"));
    assert_eq!(error_code(&client.ask(&list.replace("2026-07-28", "2099-01-01")).await), -32022);
    assert_eq!(error_code(&client.ask(&list.replace("tools/list", "ping")).await), -32601);
    let (server, _) = client.end().await;
    assert_eq!(counts(&server), (1, 1));
}

#[tokio::test]
async fn bad_lines_are_answered_and_the_connection_stays() {
    let mut client = Client::initialized().await;
    for (line, code) in [
        ("{", -32700),
        ("\u{feff}{}", -32700),
        ("{}", -32600),
        ("[]", -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":1}}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#, -32601),
    ] {
        assert_eq!(error_code(&client.ask(line).await), code, "{line}");
    }
    client.input.as_mut().unwrap().write_all(b"{\"a\":\"\xc3\x28\"}\n").await.unwrap();
    assert_eq!(error_code(&client.receive().await), -32700);
    // Blank lines, other line ends, and messages that want no answer say nothing.
    for silent in ["", "  \r", r#"{"jsonrpc":"2.0","id":5,"result":{}}"#, r#"{"jsonrpc":"2.0","method":"x"}"#]
    {
        client.send(silent).await;
    }
    assert_eq!(
        client.ask("{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"ping\"}\r").await,
        r#"{"jsonrpc":"2.0","id":6,"result":{}}"#
    );
    assert!(client.end().await.1.is_empty());
}

#[tokio::test]
async fn a_line_over_the_limit_is_skipped() {
    let mut client = Client::initialized().await;
    let filler = vec![b'x'; LINE_BYTES + 1];
    client.input.as_mut().unwrap().write_all(&filler).await.unwrap();
    client.send("").await;
    let answer = client.receive().await;
    assert_eq!(error_code(&answer), -32700);
    assert!(answer.contains("16777216"), "{answer}");
    assert_eq!(error_code(&client.ask(&call("1", "echo")).await), 0);
}

#[tokio::test]
async fn the_longest_line_is_read() {
    let mut client = Client::initialized().await;
    let head = r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"p":""#;
    let line = format!("{head}{}\"}}}}", "x".repeat(LINE_BYTES - head.len() - 3));
    assert_eq!(line.len(), LINE_BYTES);
    assert_eq!(client.ask(&line).await, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
}

#[tokio::test]
async fn the_last_line_needs_no_end() {
    let mut client = Client::initialized().await;
    client.input.as_mut().unwrap().write_all(call("1", "echo").as_bytes()).await.unwrap();
    let (_, rest) = client.end().await;
    assert_eq!(
        rest,
        [format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":{},"isError":false}}}}"#, said("none"))]
    );
}

#[tokio::test]
async fn an_answer_is_always_one_line() {
    let mut client = Client::initialized().await;
    assert_eq!(
        client.ask(&call("1", "rich")).await,
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[   {"type":"text","text":"1.10"}  ],"isError":false,"_meta":{"b/x":1e2,"a":[ 1 ]}}}"#
    );
}

#[tokio::test]
async fn requests_run_at_the_same_time() {
    let mut client = Client::initialized().await;
    client.send(&call("1", "gate")).await;
    assert_eq!(error_code(&client.ask(&call("2", "echo")).await), 0);
    assert_eq!(error_code(&client.ask(&call("1", "echo")).await), -32600);
    client.server.handler().gate.add_permits(1);
    assert!(client.receive().await.contains("through"));
    assert_eq!(error_code(&client.ask(&call("1", "echo")).await), 0);
}

#[tokio::test]
async fn a_handler_that_panics_costs_one_answer() {
    let mut client = Client::initialized().await;
    assert_eq!(error_code(&client.ask(&call("1", "boom")).await), -32603);
    assert_eq!(error_code(&client.ask(&call("2", "echo")).await), 0);
}

#[tokio::test]
async fn a_withdrawn_request_is_cancelled_and_not_answered() {
    let mut client = Client::initialized().await;
    client.send(&call("\"w\"", "wait")).await;
    client.server.handler().call_begun().await;
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}"#;
    client.send(cancel).await;
    assert_eq!(error_code(&client.ask(&call("2", "echo")).await), 0);
    assert!(client.server.handler().tokens.lock().unwrap().iter().all(|token| !token.is_cancelled()));
    client.send(&cancel.replace("\"x\"", "\"w\"")).await;
    let (server, rest) = client.end().await;
    assert!(rest.is_empty(), "{rest:?}");
    assert!(server.handler().tokens.lock().unwrap()[0].is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn too_many_requests_are_refused_and_what_makes_room_is_still_read() {
    let mut client = Client::initialized().await;
    for id in 0..STDIO_IN_FLIGHT {
        client.send(&call(&id.to_string(), "wait")).await;
        client.server.handler().call_begun().await;
    }
    let refused = client.ask_now(&call("\"next\"", "echo")).await;
    assert_eq!(error_code(&refused), -32600);
    assert!(
        refused.contains("\"next\"") && refused.contains("256 requests are running already"),
        "{refused}"
    );
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#).await;
    let token = client.server.handler().tokens.lock().unwrap()[7].clone();
    timeout(TIMEOUT, token.cancelled()).await.expect("the cancel is read");
    // There is room again as soon as the withdrawn one has ended.
    while error_code(&client.ask_now(&call("\"next\"", "echo")).await) != 0 {}
    let (_, rest) = client.end().await;
    assert_eq!(rest.len(), STDIO_IN_FLIGHT - 1);
}

#[tokio::test(start_paused = true)]
async fn a_batch_counts_as_a_request() {
    let mut client = Client::connect();
    client.ask(&INITIALIZE.replace("2025-11-25", "2025-03-26")).await;
    for id in 0..STDIO_IN_FLIGHT {
        client.send(&format!("[{}]", call(&id.to_string(), "gate"))).await;
        client.server.handler().call_begun().await;
    }
    let ping = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
    let refused = client.ask_now(&format!("[{ping},{cancel},1]")).await;
    let refused: serde_json::Value = serde_json::from_str(&refused).unwrap();
    assert_eq!((&refused[0]["id"], refused.as_array().unwrap().len()), (&"p".into(), 2), "{refused}");
    assert!(refused[0]["error"]["message"].as_str().unwrap().contains("are running already"), "{refused}");
    // What wants no answer is heard all the same.
    assert!(client.server.handler().tokens.lock().unwrap()[7].is_cancelled());
    assert_eq!(error_code(&client.ask_now(&call("\"next\"", "echo")).await), -32600);
    client.server.handler().gate.add_permits(STDIO_IN_FLIGHT);
    let (_, rest) = client.end().await;
    assert_eq!(rest.len(), STDIO_IN_FLIGHT);
}

#[tokio::test]
async fn calls_in_flight_are_answered_after_the_input_ends() {
    let mut client = Client::initialized().await;
    client.send(&call("1", "gate")).await;
    client.server.handler().call_begun().await;
    client.server.handler().gate.add_permits(1);
    let (server, rest) = client.end().await;
    assert_eq!(rest.len(), 1);
    assert_eq!(counts(&server), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn calls_that_do_not_end_are_cancelled_and_still_answered() {
    let mut client = Client::initialized().await;
    client.send(&call("1", "wait")).await;
    client.server.handler().call_begun().await;
    let before = Instant::now();
    let (server, rest) = client.end().await;
    assert!(before.elapsed() >= STDIO_DRAIN);
    assert!(rest.len() == 1 && rest[0].contains("cancelled"), "{rest:?}");
    assert_eq!(counts(&server), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn calls_that_ignore_their_cancel_do_not_hold_the_connection() {
    let mut client = Client::initialized().await;
    client.send(&call("1", "gate")).await;
    client.server.handler().call_begun().await;
    let (server, rest) = client.end().await;
    assert!(rest.is_empty(), "{rest:?}");
    assert_eq!(counts(&server), (1, 1));
}

#[tokio::test]
async fn a_client_that_stops_reading_ends_the_connection() {
    let mut client = Client::initialized().await;
    let Client { output, serving, server, .. } = &mut client;
    drop(std::mem::replace(output, BufReader::new(tokio::io::duplex(1).0)));
    let (server, serving) = (server.clone(), std::mem::replace(serving, tokio::spawn(async { Ok(()) })));
    client.send(&call("1", "echo")).await;
    assert_eq!(serving.await.unwrap().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    assert_eq!(counts(&server), (1, 1));
}

#[tokio::test]
async fn a_dropped_connection_still_closes_its_session() {
    let client = Client::initialized().await;
    client.serving.abort();
    assert!(client.serving.await.unwrap_err().is_cancelled());
    client.server.shutdown().await;
    assert_eq!(counts(&client.server), (1, 1));
}

#[tokio::test]
async fn a_batch_is_answered_in_one_line() {
    let mut client = Client::connect();
    client.ask(&INITIALIZE.replace("2025-11-25", "2025-03-26")).await;
    let (ping, echo) = (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, call("2", "echo"));
    assert_eq!(
        client.ask(&format!("[{ping},{echo}]")).await,
        format!(
            r#"[{{"jsonrpc":"2.0","id":1,"result":{{}}}},{{"jsonrpc":"2.0","id":2,"result":{{"content":{},"isError":false}}}}]"#,
            said("none")
        )
    );
    assert_eq!(error_code(&client.ask("[]").await), -32600);
    assert_eq!(error_code(&client.ask(&format!("[{}]", vec![ping; 51].join(","))).await), -32600);
}
