//! MCP as bytes on the wire: what is refused and how, what is passed on untouched, sessions and both eras.
//!
//! Each door is the real one: a pipe to `gantry mcp`, the same in front of a running server, and a socket to `/mcp`.

use gantry_testkit::server::Answer;
use gantry_testkit::{Connection, Home, Server};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

const JSON: (&str, &str) = ("content-type", "application/json");

/// Bytes of a request's body that the server takes.
const BODY_BYTES: usize = 8 * 1024 * 1024;

/// Bytes of a line that `gantry mcp` takes.
const LINE_BYTES: usize = 16 * 1024 * 1024;

/// A running `gantry mcp`.
struct Pipe {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Pipe {
    fn open(home: &Home) -> Self {
        let mut command = home.command(["mcp"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the program starts");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { input: child.stdin.take(), output, child }
    }

    /// The same after a handshake.
    fn initialized(home: &Home, version: &str) -> Self {
        let mut pipe = Self::open(home);
        let answer = pipe.ask(&initialize(version));
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
        pipe
    }

    fn send(&mut self, message: &[u8]) {
        let input = self.input.as_mut().expect("still open");
        input.write_all(message).and_then(|()| input.write_all(b"\n")).expect("it reads");
        input.flush().expect("it reads");
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(self.output.read_line(&mut line).expect("UTF-8"), 0, "it ended instead of answering");
        line
    }

    fn read(&mut self) -> Value {
        serde_json::from_str(&self.line()).expect("a line of JSON")
    }

    /// Closes its input and returns what it still said, and its exit code.
    fn close(mut self) -> (String, i32) {
        self.input = None;
        let rest = std::io::read_to_string(&mut self.output).expect("UTF-8");
        (rest, self.child.wait().expect("it ends").code().unwrap_or(-1))
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A session over HTTP on one connection.
struct Socket {
    connection: Connection,
    session: String,
}

impl Socket {
    fn initialized(server: &Server, version: &str) -> Self {
        let mut connection = server.connect();
        let answer = post(&mut connection, &[], &initialize(version));
        assert_eq!(answer.json()["result"]["protocolVersion"], version, "{answer:?}");
        let session = answer.headers["mcp-session-id"].to_str().expect("text").to_owned();
        Self { connection, session }
    }

    fn post(&mut self, message: &[u8]) -> Answer {
        post(&mut self.connection, &[("mcp-session-id", &self.session)], message)
    }
}

/// A way to ask something in a session.
trait Door {
    fn ask(&mut self, message: &[u8]) -> Value;
    /// The status of the last answer, where there are such.
    fn ask_with_status(&mut self, message: &[u8]) -> (Option<u16>, Value) {
        (None, self.ask(message))
    }
}

impl Door for Pipe {
    fn ask(&mut self, message: &[u8]) -> Value {
        self.send(message);
        self.read()
    }
}

impl Door for Socket {
    fn ask(&mut self, message: &[u8]) -> Value {
        self.post(message).json()
    }

    fn ask_with_status(&mut self, message: &[u8]) -> (Option<u16>, Value) {
        let answer = self.post(message);
        (Some(answer.status), answer.json())
    }
}

fn post(connection: &mut Connection, headers: &[(&str, &str)], message: &[u8]) -> Answer {
    let headers: Vec<_> = headers.iter().copied().chain([JSON]).collect();
    connection.request("POST", "/mcp", &headers, message).expect("an answer")
}

fn initialize(version: &str) -> Vec<u8> {
    let client = json!({ "name": "wire", "version": "1" });
    let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client });
    request(0, "initialize", &params)
}

fn request(id: u64, method: &str, params: &Value) -> Vec<u8> {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string().into_bytes()
}

fn call(id: u64, tool: &str, arguments: &Value) -> Vec<u8> {
    request(id, "tools/call", &json!({ "name": tool, "arguments": arguments }))
}

/// Sends a request of 2026-07-28 over HTTP, with the headers that repeat its body.
fn modern(connection: &mut Connection, method: &str, params: &Value) -> Answer {
    let mut params = params.clone();
    params["_meta"] = modern_meta();
    let name = params["name"].as_str().unwrap_or_default().to_owned();
    let mut headers = vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)];
    if method == "tools/call" {
        headers.push(("mcp-name", &name));
    }
    post(connection, &headers, &request(1, method, &params))
}

/// Proves that a door still works: a ping, and a call with an effect and a result.
fn still_works(door: &mut impl Door, what: &str) {
    let pong = door.ask(br#"{"jsonrpc":"2.0","id":"still","method":"ping"}"#);
    assert_eq!(pong, json!({ "jsonrpc": "2.0", "id": "still", "result": {} }), "after {what}");
}

/// A message that is wrong, and the answer that it gets.
struct Wrong {
    what: &'static str,
    message: Vec<u8>,
    code: i64,
    id: Value,
    status: u16,
}

fn wrong(what: &'static str, message: impl Into<Vec<u8>>, code: i64) -> Wrong {
    Wrong { what, message: message.into(), code, id: Value::Null, status: 400 }
}

/// The same where the id can be read.
fn wrong_with_id(what: &'static str, message: impl Into<Vec<u8>>, code: i64) -> Wrong {
    Wrong { id: json!(7), ..wrong(what, message, code) }
}

/// The same where the session itself answers, which over HTTP is no fault of the request.
fn wrong_in_session(what: &'static str, message: impl Into<Vec<u8>>, code: i64) -> Wrong {
    Wrong { status: 200, ..wrong_with_id(what, message, code) }
}

/// J1, J2, J4, J5: texts that are no message, or two at once.
fn unreadable() -> Vec<Wrong> {
    let deep = |open: &str| open.repeat(100_000);
    vec![
        wrong("truncated", r#"{"jsonrpc":"2.0","id":7,"method":"tools/li"#, -32700),
        wrong("no JSON", "hello", -32700),
        wrong("two values", r#"{"jsonrpc":"2.0","id":7,"method":"ping"} {}"#, -32700),
        wrong("deep arrays", deep("["), -32700),
        wrong("deep objects", deep(r#"{"a":"#), -32700),
        wrong("invalid UTF-8", b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"\xff\xfe\"}".to_vec(), -32700),
        wrong("a byte order mark", "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}", -32700),
        wrong("a lone surrogate", r#"{"jsonrpc":"2.0","id":7,"method":"\ud800"}"#, -32700),
        wrong("a raw control character", "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"a\u{1}\"}", -32700),
        wrong(
            "two names",
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"read_file","name":"delete_file","arguments":{"path":"a"}}}"#,
            -32600,
        ),
        wrong(
            "two paths, one escaped",
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"read_file","arguments":{"path":"a","\u0070ath":"b"}}}"#,
            -32600,
        ),
        wrong("two ids", r#"{"jsonrpc":"2.0","id":7,"id":8,"method":"ping"}"#, -32600),
    ]
}

/// J8, J10: envelopes that are not JSON-RPC, or whose id is none.
fn misshapen() -> Vec<Wrong> {
    let with_id = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
    vec![
        wrong("a string", r#""ping""#, -32600),
        wrong("an empty batch", "[]", -32600),
        wrong("a batch", r#"[{"jsonrpc":"2.0","id":7,"method":"ping"}]"#, -32600),
        wrong("the id null", with_id("null"), -32600),
        wrong("a fraction as id", with_id("1.5"), -32600),
        wrong("an exponent as id", with_id("1e2"), -32600),
        wrong("an id beyond all numbers", with_id("1e400"), -32600),
        wrong("an object as id", with_id("{}"), -32600),
        wrong("an array as id", with_id("[7]"), -32600),
        wrong("true as id", with_id("true"), -32600),
        wrong("an id of 10 KB", with_id(&format!("\"{}\"", "x".repeat(10_000))), -32600),
        wrong_with_id("no version", r#"{"id":7,"method":"ping"}"#, -32600),
        wrong_with_id("version 1.0", r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#, -32600),
        wrong_with_id("version 2.0 as number", r#"{"jsonrpc":2.0,"id":7,"method":"ping"}"#, -32600),
        wrong_with_id("neither question nor answer", r#"{"jsonrpc":"2.0","id":7}"#, -32600),
        wrong_with_id("both", r#"{"jsonrpc":"2.0","id":7,"method":"ping","result":{}}"#, -32600),
        wrong_with_id("a number as method", r#"{"jsonrpc":"2.0","id":7,"method":1}"#, -32600),
        wrong_with_id(
            "params in an array",
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}"#,
            -32602,
        ),
        wrong_with_id("params null", r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":null}"#, -32602),
    ]
}

/// J11, J12, J13: requests that the session understands and refuses.
fn senseless() -> Vec<Wrong> {
    let method = |name: &str| json!({ "jsonrpc": "2.0", "id": 7, "method": name }).to_string();
    let params =
        |params: &str| format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}"#);
    vec![
        wrong_in_session("an unknown method", method("tools/destroy"), -32601),
        wrong_in_session("a method with control characters", method("tools/list\u{0}\n\u{1b}[2J"), -32601),
        wrong_in_session("a method of 1 MB", method(&"m".repeat(1_000_000)), -32601),
        wrong_in_session("a method of JavaScript's", method("__proto__"), -32601),
        wrong_in_session("a call without params", method("tools/call"), -32602),
        wrong_in_session("a call without a name", params("{}"), -32602),
        wrong_in_session("a number as name", params(r#"{"name":1}"#), -32602),
        wrong_in_session(
            "a name of 10 KB",
            params(&json!({ "name": "n".repeat(10_000) }).to_string()),
            -32602,
        ),
        wrong_in_session("arguments as text", params(r#"{"name":"read_file","arguments":"a.txt"}"#), -32602),
        wrong_in_session(
            "arguments in an array",
            params(r#"{"name":"read_file","arguments":["a.txt"]}"#),
            -32602,
        ),
        wrong_in_session(
            "a cursor that was never given",
            { r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"cursor":"x"}}"# },
            -32602,
        ),
        wrong_in_session(
            "a second handshake",
            { r#"{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"# },
            -32600,
        ),
        wrong(
            "a number that no type holds",
            params(r#"{"name":"read_file","arguments":{"path":1e999}}"#),
            -32600,
        ),
    ]
}

/// Sends every wrong message and asks for a right one after each.
fn withstands(mut door: impl Door) {
    for wrong in unreadable().into_iter().chain(misshapen()).chain(senseless()) {
        let (status, answer) = door.ask_with_status(&wrong.message);
        assert_eq!(answer["jsonrpc"], "2.0", "{}: {answer}", wrong.what);
        assert_eq!(
            (&answer["error"]["code"], &answer["id"]),
            (&json!(wrong.code), &wrong.id),
            "{}: {answer}",
            wrong.what
        );
        assert!(
            answer["error"]["message"].as_str().is_some_and(|text| text.len() < 500),
            "{}: {answer}",
            wrong.what
        );
        assert!(status.is_none_or(|status| status == wrong.status), "{}: {status:?} {answer}", wrong.what);
        still_works(&mut door, wrong.what);
    }
    let answer = door.ask(&call(8, "write_file", &json!({ "path": "after.txt", "content": "all well" })));
    assert_eq!(answer["result"]["structuredContent"], json!({ "path": "after.txt", "size": 8 }), "{answer}");
}

#[test]
fn srv_1_wrong_messages_on_a_pipe_get_their_error_and_the_next_call_works() {
    let home = Home::new();
    withstands(Pipe::initialized(&home, "2025-06-18"));
    assert_eq!(home.read("after.txt"), "all well");
    // None of them became a call.
    let rows = home.run(["audit", "--json"]).json();
    assert_eq!(rows.as_array().map(Vec::len), Some(1), "{rows}");
}

#[test]
fn srv_1_wrong_messages_over_http_get_their_error_and_the_next_call_works() {
    let home = Home::new();
    let server = home.serve();
    withstands(Socket::initialized(&server, "2025-06-18"));
    assert_eq!(home.read("after.txt"), "all well");
    let rows = server.get_as_admin("/api/v1/audit").json();
    assert_eq!(rows["items"].as_array().map(Vec::len), Some(1), "{rows}");
}

#[test]
fn srv_1_wrong_messages_on_a_pipe_to_a_running_server_get_their_error_and_the_next_call_works() {
    let home = Home::new();
    let server = home.serve();
    withstands(Pipe::initialized(&home, "2025-06-18"));
    let rows = server.get_as_admin("/api/v1/audit").json();
    assert_eq!(rows["items"].as_array().map(Vec::len), Some(1), "{rows}");
    assert_eq!((&rows["items"][0]["door"], &rows["items"][0]["principal"]), (&json!("mcp"), &json!("local")));
    assert!(server.get("/api/v1/events?follow=false").text.contains("tool_finished"));
}

/// Bytes of a message that is too large by one, however much of it is padding.
fn padded(message: &[u8], size: usize) -> Vec<u8> {
    let mut padded = vec![b' '; size - message.len()];
    padded.extend_from_slice(message);
    padded
}

#[test]
fn srv_1_a_body_or_line_beyond_the_limit_is_refused_and_one_at_the_limit_is_not() {
    let home = Home::new();
    let server = home.serve();
    let mut socket = Socket::initialized(&server, "2025-06-18");
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert_eq!(socket.post(&padded(ping, BODY_BYTES)).json()["result"], json!({}));
    let refused = socket.post(&padded(ping, BODY_BYTES + 1));
    assert_eq!(refused.status, 413, "{refused:?}");
    assert!(refused.text.contains("larger than 8388608 bytes"), "{refused:?}");
    socket.connection = server.connect();
    still_works(&mut socket, "a body that is too large");

    let mut pipe = Pipe::initialized(&Home::new(), "2025-06-18");
    assert_eq!(pipe.ask(&padded(ping, LINE_BYTES))["result"], json!({}));
    let refused = pipe.ask(&padded(ping, LINE_BYTES + 1));
    assert_eq!((&refused["error"]["code"], &refused["id"]), (&json!(-32700), &Value::Null), "{refused}");
    still_works(&mut pipe, "a line that is too long");
}

#[test]
fn srv_1_a_line_that_the_running_server_finds_too_large_is_answered_as_a_json_rpc_error() {
    let home = Home::new();
    let _server = home.serve();
    let mut pipe = Pipe::initialized(&home, "2025-06-18");
    let refused = pipe.ask(&padded(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, BODY_BYTES + 1));
    assert_eq!(refused["jsonrpc"], "2.0", "{refused}");
    assert!(refused["error"]["code"].is_i64(), "{refused}");
    still_works(&mut pipe, "a line that is too long");
}

#[test]
fn srv_1_ids_come_back_exactly_as_they_were_written() {
    let home = Home::new();
    let server = home.serve();
    let mut pipe = Pipe::initialized(&Home::new(), "2025-11-25");
    let mut socket = Socket::initialized(&server, "2025-11-25");
    let long = format!("\"{}\"", "x".repeat(256));
    let ids = [
        "0",
        "-0",
        "-1",
        "9223372036854775807",
        r#""1""#,
        r#""""#,
        r#""\u0041\/""#,
        r#""a b""#,
        r#""é""#,
        &long,
    ];
    for id in ids {
        let message = format!(r#"{{"jsonrpc":"2.0","method":"tools/list","id": {id} }}"#);
        let start = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[{{"#);
        pipe.send(message.as_bytes());
        let line = pipe.line();
        assert!(line.starts_with(&start), "{id}: {line}");
        let answer = socket.post(message.as_bytes());
        assert!(answer.text.starts_with(&start), "{id}: {answer:?}");
    }
}

#[test]
fn srv_1_numbers_and_texts_pass_as_they_were_written() {
    let home = Home::with_test_tools();
    let server = home.serve();
    let mut socket = Socket::initialized(&server, "2025-06-18");
    // J13: what one reader would round is passed as its text, or refused.
    let arguments =
        r#"{"text":"\u00e9\n\ud83d\ude00","n":9223372036854775809,"zero":-0,"price":1.10,"tiny":1e-7}"#;
    let message = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"test__echo","arguments":{arguments}}}}}"#
    );
    let answer = socket.post(message.as_bytes()).json();
    assert_eq!(answer["result"]["content"], json!([{ "type": "text", "text": "é\n😀" }]), "{answer}");
    let rows = server.get_as_admin("/api/v1/audit").json();
    let recorded = rows["items"][0]["arguments"].as_str().expect("a text");
    for number in [r#""n":9223372036854775809"#, r#""zero":-0"#, r#""price":1.10"#, r#""tiny":1e-7"#] {
        assert!(recorded.contains(number), "{number} is not in {recorded}");
    }
    let beyond = message.replace("9223372036854775809", "18446744073709551616");
    let refused = socket.post(beyond.as_bytes());
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &json!(-32600)), "{refused:?}");
}

#[test]
fn srv_1_definitions_are_the_same_text_by_every_door_and_in_both_eras() {
    let home = Home::new();
    let server = home.serve();
    let tools = |text: &str| {
        let (_, rest) = text.split_once("\"tools\":").expect("tools");
        let mut values =
            serde_json::Deserializer::from_str(rest).into_iter::<Box<serde_json::value::RawValue>>();
        values.next().expect("a list").expect("JSON").get().to_owned()
    };
    let list = request(1, "tools/list", &json!({}));
    let mut pipe = Pipe::initialized(&Home::new(), "2024-11-05");
    pipe.send(&list);
    let expected = tools(&pipe.line());
    assert_eq!(tools(&Socket::initialized(&server, "2025-11-25").post(&list).text), expected);
    assert_eq!(tools(&modern(&mut server.connect(), "tools/list", &json!({})).text), expected);
    // And it is what the command line prints for MCP.
    let printed = home.run(["tools", "--format", "mcp"]).json();
    assert_eq!(serde_json::from_str::<Value>(&expected).expect("JSON"), printed);
}

#[test]
fn srv_1_batches_belong_to_one_version_and_are_bounded() {
    let home = Home::new();
    let server = home.serve();
    let ping = |id: usize| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
    let batch = |n: usize| json!((0..n).map(ping).collect::<Vec<_>>()).to_string().into_bytes();
    let mixed =
        json!([ping(1), { "jsonrpc": "2.0", "method": "notifications/initialized" }, { "id": 2 }, ping(3)]);
    let mut socket = Socket::initialized(&server, "2025-03-26");
    let mut pipe = Pipe::initialized(&Home::new(), "2025-03-26");
    for door in [&mut socket as &mut dyn Door, &mut pipe] {
        let answers = door.ask(mixed.to_string().as_bytes());
        let shown: Vec<_> =
            answers.as_array().expect("a batch").iter().map(|a| (&a["id"], &a["error"]["code"])).collect();
        let none = Value::Null;
        assert_eq!(shown, [(&json!(1), &none), (&json!(2), &json!(-32600)), (&json!(3), &none)], "{answers}");
        assert_eq!(door.ask(&batch(50)).as_array().map(Vec::len), Some(50));
        for refused in [batch(51), b"[]".to_vec()] {
            let answer = door.ask(&refused);
            assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32600), &none), "{answer}");
        }
    }
}

#[test]
fn srv_1_nothing_but_ping_is_answered_before_the_handshake() {
    let home = Home::new();
    let mut pipe = Pipe::open(&home);
    still_works(&mut pipe, "opening");
    let early = pipe.ask(&call(1, "write_file", &json!({ "path": "early.txt", "content": "x" })));
    assert_eq!((&early["id"], &early["error"]["code"]), (&json!(1), &json!(-32600)), "{early}");
    assert!(early["error"]["message"].as_str().unwrap().contains("initialize"), "{early}");
    assert_eq!(pipe.ask(&initialize("1999-01-01"))["result"]["protocolVersion"], "2025-11-25");
    drop(pipe);

    let server = home.serve();
    let early = post(&mut server.connect(), &[], &call(1, "write_file", &json!({ "path": "early.txt" })));
    assert_eq!((early.status, &early.json()["error"]["code"]), (400, &json!(-32600)), "{early:?}");
    assert!(!home.path().join("early.txt").exists());
}

#[test]
fn srv_1_answers_and_notifications_that_nobody_waits_for_are_dropped() {
    let home = Home::new();
    let server = home.serve();
    let (mut socket, mut pipe) =
        (Socket::initialized(&server, "2025-06-18"), Pipe::initialized(&Home::new(), "2025-06-18"));
    for message in [
        r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"no"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/made-up","params":[1]}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":12345}}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"write_file","arguments":{"path":"a","content":""}}}"#,
    ] {
        let answer = socket.post(message.as_bytes());
        assert_eq!((answer.status, answer.text.as_str()), (202, ""), "{message}");
        pipe.send(message.as_bytes());
        // The next line is the answer to the ping, so there was none to this.
        still_works(&mut pipe, message);
        still_works(&mut socket, message);
    }
    assert!(!home.path().join("a").exists(), "a notification was carried out");
}

/// A message that calls a slow tool which notes that it has begun.
fn slow(id: u64, ms: u64, file: &str) -> Vec<u8> {
    let arguments = json!({ "ms": ms, "file": file });
    let meta = json!({ "progressToken": "same" });
    request(id, "tools/call", &json!({ "name": "test__slow_write", "arguments": arguments, "_meta": meta }))
}

fn begun(home: &Home, server: &Server, file: &str) {
    let path = home.path().join(file);
    server.eventually("the call runs", || {
        std::fs::read_to_string(&path).is_ok_and(|text| text.starts_with("begun"))
    });
}

#[test]
fn srv_1_an_id_that_is_in_flight_is_refused_and_nobody_cancels_what_is_not_theirs() {
    let home = Home::with_test_tools();
    let server = home.serve();
    let (mut one, mut other) =
        (Socket::initialized(&server, "2025-06-18"), Socket::initialized(&server, "2025-06-18"));
    let mut again = Socket { connection: server.connect(), session: one.session.clone() };
    let running = std::thread::spawn(move || one.post(&slow(5, 700, "one.txt")).json());
    begun(&home, &server, "one.txt");
    // J9: the same session may not use the id again yet, another one may, with the same progress token (J16).
    let twice = again.ask(&slow(5, 0, "twice.txt"));
    assert_eq!((&twice["id"], &twice["error"]["code"]), (&json!(5), &json!(-32600)), "{twice}");
    // J17: another session's cancellation of the id means nothing here.
    let cancel = br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#;
    assert_eq!(other.post(cancel).status, 202);
    assert_eq!(other.ask(&slow(5, 0, "other.txt"))["result"]["isError"], false);
    let answer = running.join().expect("an answer");
    assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(5), &json!(false)), "{answer}");
    assert_eq!(home.read("one.txt"), "begun\nended\n");
    assert!(!home.path().join("twice.txt").exists());
    // The id is free again.
    assert_eq!(again.ask(&slow(5, 0, "free.txt"))["result"]["isError"], false);
}

/// Cancels a running call of this client's; `meta` says in which era.
fn cancels(home: &Home, mut pipe: Pipe, meta: &Value) {
    let ask = |id: u64, method: &str, params: Value| {
        let mut params = params;
        params["_meta"] = meta.clone();
        request(id, method, &params)
    };
    let arguments = json!({ "ms": 60_000, "file": "mine.txt" });
    pipe.send(&ask(5, "tools/call", json!({ "name": "test__slow_write", "arguments": arguments })));
    while !home.path().join("mine.txt").exists() {
        assert_eq!(pipe.ask(&ask(6, "tools/list", json!({})))["id"], 6);
    }
    let notification = json!({ "requestId": 5, "_meta": meta });
    pipe.send(
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": notification })
            .to_string()
            .as_bytes(),
    );
    assert_eq!(pipe.ask(&ask(7, "tools/list", json!({})))["id"], 7);
    let (rest, code) = pipe.close();
    assert_eq!((rest.as_str(), code), ("", 0));
    assert_eq!(home.read("mine.txt"), "begun\n");
}

fn modern_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

#[test]
fn srv_1_a_client_cancels_its_own_call_and_gets_no_answer_to_it() {
    for modern in [false, true] {
        let home = Home::with_test_tools();
        if modern {
            cancels(&home, Pipe::open(&home), &modern_meta());
        } else {
            cancels(&home, Pipe::initialized(&home, "2025-06-18"), &json!({}));
        }
        let row = &home.run(["audit", "--json"]).json()[0];
        let how = (&row["state"], &row["error"]["code"]);
        assert_eq!(how, (&json!("COMPLETED_FAILURE"), &json!("CANCELED")), "{row}");
    }
}

#[test]
fn srv_1_a_client_cancels_its_own_call_through_a_running_server() {
    for modern in [false, true] {
        let home = Home::with_test_tools();
        let server = home.serve();
        if modern {
            cancels(&home, Pipe::open(&home), &modern_meta());
        } else {
            cancels(&home, Pipe::initialized(&home, "2025-06-18"), &json!({}));
        }
        server.eventually("the call is cancelled", || {
            server.get("/api/v1/audit").json()["items"][0]["error"]["code"] == "CANCELED"
        });
    }
}

#[test]
fn srv_1_a_version_that_is_unknown_or_said_in_two_ways_is_refused() {
    let home = Home::new();
    let server = home.serve();
    let mut socket = Socket::initialized(&server, "2025-06-18");
    let session = socket.session.clone();
    let list = request(1, "tools/list", &json!({}));
    let mut code = |headers: &[(&str, &str)], message: &[u8]| {
        let answer = post(&mut socket.connection, headers, message);
        (answer.status, answer.json()["error"]["code"].as_i64().unwrap_or_default())
    };
    // J24, in a session.
    let of_session = |version| [("mcp-session-id", session.as_str()), ("mcp-protocol-version", version)];
    assert_eq!(code(&of_session("2025-06-18"), &list), (200, 0));
    assert_eq!(code(&of_session("1999-01-01"), &list), (400, -32022));
    assert_eq!(code(&[of_session("2025-06-18")[1], of_session("2025-06-18")[1]], &list), (400, -32020));
    // And without one.
    let body = |version: &str, name: &str| {
        let meta = json!({ "io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": {} });
        request(1, "tools/call", &json!({ "name": name, "arguments": { "path": "." }, "_meta": meta }))
    };
    let headers = |version, method, name| {
        [("mcp-protocol-version", version), ("mcp-method", method), ("mcp-name", name)]
    };
    let right = headers("2026-07-28", "tools/call", "list_directory");
    assert_eq!(code(&right, &body("2026-07-28", "list_directory")), (200, 0));
    assert_eq!(code(&right, &body("2026-07-28", "delete_file")), (400, -32020));
    assert_eq!(code(&right, &body("2025-06-18", "list_directory")), (400, -32020));
    assert_eq!(code(&right[..1], &body("2026-07-28", "list_directory")), (400, -32020));
    assert_eq!(
        code(&headers("2026-07-28", "tools/list", "list_directory"), &body("2026-07-28", "list_directory")),
        (400, -32020)
    );
    assert_eq!(
        code(&headers("2030-01-01", "tools/call", "list_directory"), &body("2030-01-01", "list_directory")),
        (400, -32022)
    );
}

#[test]
fn srv_1_both_eras_share_one_endpoint_and_one_connection() {
    let home = Home::new();
    let server = home.serve();
    let mut socket = Socket::initialized(&server, "2025-06-18");
    let written = socket.ask(&call(1, "write_file", &json!({ "path": "a.txt", "content": "both" })));
    assert_eq!(written["result"]["isError"], false, "{written}");
    assert_eq!(written["result"].get("resultType"), None, "{written}");
    let discovered = modern(&mut socket.connection, "server/discover", &json!({})).json();
    assert_eq!(discovered["result"]["supportedVersions"], json!(["2026-07-28"]), "{discovered}");
    let read = modern(
        &mut socket.connection,
        "tools/call",
        &json!({ "name": "read_file", "arguments": { "path": "a.txt" } }),
    );
    assert_eq!(
        (read.status, &read.json()["result"]["structuredContent"]["content"]),
        (200, &json!("both")),
        "{read:?}"
    );
    assert_eq!(read.json()["result"]["resultType"], "complete");
    assert_eq!(read.headers.get("mcp-session-id"), None);
    let unknown = modern(&mut socket.connection, "tools/destroy", &json!({}));
    assert_eq!((unknown.status, &unknown.json()["error"]["code"]), (404, &json!(-32601)), "{unknown:?}");
    still_works(&mut socket, "the other era");
}

#[test]
fn srv_1_a_session_is_its_clients_own_until_it_ends() {
    let home = Home::new();
    let server = home.serve();
    let mut socket = Socket::initialized(&server, "2025-06-18");
    let list = request(1, "tools/list", &json!({}));
    let session = socket.session.clone();
    assert_eq!(session.len(), 32, "{session}");
    // Another identity does not find it, nor does anybody find one that never was or that they chose themselves.
    let key = format!("Bearer {}", server.key);
    let strangers: [&[(&str, &str)]; 4] = [
        &[("mcp-session-id", &session), ("authorization", &key)],
        &[("mcp-session-id", "00000000000000000000000000000000")],
        &[("mcp-session-id", "../../admin")],
        &[("mcp-session-id", "")],
    ];
    for headers in strangers {
        let answer = post(&mut socket.connection, headers, &list);
        assert_eq!(
            (answer.status, &answer.json()["error"]["code"]),
            (404, &json!(-32600)),
            "{headers:?} {answer:?}"
        );
    }
    let chosen = post(
        &mut socket.connection,
        &[("mcp-session-id", "00000000000000000000000000000000")],
        &initialize("2025-06-18"),
    );
    assert_ne!(chosen.headers["mcp-session-id"], "00000000000000000000000000000000");
    assert_ne!(chosen.headers["mcp-session-id"], session.as_str());
    // It ends once, by its owner.
    let mut end = |headers: &[(&str, &str)]| {
        socket.connection.request("DELETE", "/mcp", headers, b"").expect("an answer").status
    };
    assert_eq!(end(&[("mcp-session-id", &session), ("authorization", &key)]), 404);
    assert_eq!(end(&[("mcp-session-id", &session)]), 204);
    assert_eq!(end(&[("mcp-session-id", &session)]), 404);
    assert_eq!(end(&[]), 405);
    assert_eq!(socket.post(&list).status, 404);
    let get =
        socket.connection.request("GET", "/mcp", &[("accept", "text/event-stream")], b"").expect("an answer");
    assert_eq!((get.status, get.headers["allow"].to_str().expect("text")), (405, "POST, DELETE"));
}

#[test]
fn srv_1_media_types_that_are_not_json_are_refused() {
    let home = Home::new();
    let server = home.serve();
    let mut connection = server.connect();
    let message = initialize("2025-06-18");
    let mut status = |headers: &[(&str, &str)]| {
        connection.request("POST", "/mcp", headers, &message).expect("an answer").status
    };
    assert_eq!(status(&[("content-type", "text/plain")]), 415);
    assert_eq!(status(&[("content-type", "application/x-www-form-urlencoded")]), 415);
    assert_eq!(status(&[JSON, ("accept", "text/event-stream")]), 406);
    assert_eq!(
        status(&[
            ("content-type", "application/json; charset=utf-8"),
            ("accept", "application/json, text/event-stream")
        ]),
        200
    );
}

#[test]
fn srv_1_a_pipe_that_is_closed_ends_the_program_after_the_running_call() {
    let home = Home::with_test_tools();
    let mut pipe = Pipe::initialized(&home, "2025-06-18");
    pipe.send(&slow(9, 300, "last.txt"));
    let (rest, code) = pipe.close();
    let answer: Value = serde_json::from_str(&rest).expect("the last answer");
    assert_eq!(
        (&answer["id"], &answer["result"]["content"][0]["text"]),
        (&json!(9), &json!("written")),
        "{rest}"
    );
    assert_eq!(code, 0);
    assert_eq!(home.read("last.txt"), "begun\nended\n");
}
