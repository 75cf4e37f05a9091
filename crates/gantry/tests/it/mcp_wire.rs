//! MCP as bytes on the wire: what is refused and how, what is passed on untouched, sessions and both eras.
//!
//! Each door is the real one: a pipe to `gantry mcp`, the same in front of a running server, and a socket to `/mcp`.

mod doors;
mod flights;
mod wrong;

use gantry_testkit::process::ChildGuard;
use gantry_testkit::server::Answer;
use gantry_testkit::{Connection, Server, TestDir};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, ChildStdout, Stdio};

const JSON: (&str, &str) = ("content-type", "application/json");

/// Bytes of a request's body that the server takes.
const BODY_BYTES: usize = 8 * 1024 * 1024;

/// Bytes of a line that `gantry mcp` takes.
const LINE_BYTES: usize = 16 * 1024 * 1024;

/// A running `gantry mcp`.
struct Pipe {
    child: ChildGuard,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Pipe {
    fn open(home: &TestDir) -> Self {
        let mut command = home.command(["mcp"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the program starts");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { input: child.stdin.take(), output, child: ChildGuard(child) }
    }

    /// The same after a handshake.
    fn initialized(home: &TestDir, version: &str) -> Self {
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
        (rest, self.child.0.wait().expect("it ends").code().unwrap_or(-1))
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

/// What every request of 2026-07-28 carries.
fn modern_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    })
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

/// Bytes of a message that is too large by one, however much of it is padding.
fn padded(message: &[u8], size: usize) -> Vec<u8> {
    let mut padded = vec![b' '; size - message.len()];
    padded.extend_from_slice(message);
    padded
}

#[test]
fn srv_1_a_body_or_line_beyond_the_limit_is_refused_and_one_at_the_limit_is_not() {
    let home = TestDir::new();
    let server = home.serve();
    let mut socket = Socket::initialized(&server, "2025-06-18");
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert_eq!(socket.post(&padded(ping, BODY_BYTES)).json()["result"], json!({}));
    let refused = socket.post(&padded(ping, BODY_BYTES + 1));
    assert_eq!(refused.status, 413, "{refused:?}");
    assert!(refused.text.contains("larger than 8388608 bytes"), "{refused:?}");
    socket.connection = server.connect();
    still_works(&mut socket, "a body that is too large");

    // A line has a limit where `gantry mcp` works by itself, and where it stands in front of the running server.
    for home in [&TestDir::new(), &home] {
        let mut pipe = Pipe::initialized(home, "2025-06-18");
        assert_eq!(pipe.ask(&padded(ping, LINE_BYTES))["result"], json!({}));
        let refused = pipe.ask(&padded(ping, LINE_BYTES + 1));
        assert_eq!((&refused["error"]["code"], &refused["id"]), (&json!(-32700), &Value::Null), "{refused}");
        still_works(&mut pipe, "a line that is too long");
    }
}

#[test]
fn srv_1_ids_come_back_exactly_as_they_were_written() {
    let home = TestDir::new();
    let server = home.serve();
    let mut pipe = Pipe::initialized(&TestDir::new(), "2025-11-25");
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
    let home = TestDir::with_test_tools();
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
    let home = TestDir::new();
    let server = home.serve();
    let tools = |text: &str| {
        let (_, rest) = text.split_once("\"tools\":").expect("tools");
        let mut values =
            serde_json::Deserializer::from_str(rest).into_iter::<Box<serde_json::value::RawValue>>();
        values.next().expect("a list").expect("JSON").get().to_owned()
    };
    let list = request(1, "tools/list", &json!({}));
    let mut pipe = Pipe::initialized(&TestDir::new(), "2024-11-05");
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
    let home = TestDir::new();
    let server = home.serve();
    let ping = |id: usize| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
    let batch = |n: usize| json!((0..n).map(ping).collect::<Vec<_>>()).to_string().into_bytes();
    let mixed =
        json!([ping(1), { "jsonrpc": "2.0", "method": "notifications/initialized" }, { "id": 2 }, ping(3)]);
    let mut socket = Socket::initialized(&server, "2025-03-26");
    let mut pipe = Pipe::initialized(&TestDir::new(), "2025-03-26");
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
    let home = TestDir::new();
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
fn srv_1_unexpected_answers_and_notifications_are_dropped() {
    let home = TestDir::new();
    let server = home.serve();
    let (mut socket, mut pipe) =
        (Socket::initialized(&server, "2025-06-18"), Pipe::initialized(&TestDir::new(), "2025-06-18"));
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

#[test]
fn srv_1_a_version_that_is_unknown_or_said_in_two_ways_is_refused() {
    let home = TestDir::new();
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
    let home = TestDir::new();
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
    let home = TestDir::new();
    let server = home.serve();
    let mut socket = Socket::initialized(&server, "2025-06-18");
    let list = request(1, "tools/list", &json!({}));
    let session = socket.session.clone();
    assert_eq!(session.len(), 32, "{session}");
    // Another identity does not find it, nor does any identity find one that never was or that it chose itself.
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
    assert_eq!((get.status, get.headers["allow"].to_str().expect("text")), (405, "GET, POST, DELETE"));
}

#[test]
fn srv_1_media_types_that_are_not_json_are_refused() {
    let home = TestDir::new();
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
