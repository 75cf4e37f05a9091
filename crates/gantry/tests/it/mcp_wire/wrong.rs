//! Messages that are wrong, by every door: each gets its own error, and the next call works.

use super::{Door, Pipe, Socket, call, still_works};
use gantry_testkit::TestDir;
use serde_json::{Value, json};

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
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"cursor":"x"}}"#,
            -32602,
        ),
        wrong_in_session(
            "a second handshake",
            r#"{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#,
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
    let home = TestDir::new();
    withstands(Pipe::initialized(&home, "2025-06-18"));
    assert_eq!(home.read("after.txt"), "all well");
    // None of them became a call.
    let rows = home.run(["audit", "--json"]).json();
    assert_eq!(rows.as_array().map(Vec::len), Some(1), "{rows}");
}

#[test]
fn srv_1_wrong_messages_over_http_get_their_error_and_the_next_call_works() {
    let home = TestDir::new();
    let server = home.serve();
    withstands(Socket::initialized(&server, "2025-06-18"));
    assert_eq!(home.read("after.txt"), "all well");
    let rows = server.get_as_admin("/api/v1/audit").json();
    assert_eq!(rows["items"].as_array().map(Vec::len), Some(1), "{rows}");
}

#[test]
fn srv_1_wrong_messages_on_a_pipe_to_a_running_server_get_their_error_and_the_next_call_works() {
    let home = TestDir::new();
    let server = home.serve();
    withstands(Pipe::initialized(&home, "2025-06-18"));
    let rows = server.get_as_admin("/api/v1/audit").json();
    assert_eq!(rows["items"].as_array().map(Vec::len), Some(1), "{rows}");
    assert_eq!((&rows["items"][0]["door"], &rows["items"][0]["principal"]), (&json!("mcp"), &json!("mcp")));
    assert!(server.get_as_admin("/api/v1/events?follow=false").text.contains("tool_finished"));
}
