//! Calls under way: whose ids they hold, who may cancel them, and what becomes of them when the client goes.

use super::{Door, Pipe, Socket, modern_meta, request};
use gantry_testkit::{Server, TestDir};
use serde_json::{Value, json};

/// The head of a POST whose answer is not waited for.
fn head(path: &str, headers: &[(&str, &str)], length: usize) -> Vec<u8> {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n{headers}\r\n"
    )
    .into_bytes()
}

/// A message that calls a slow tool which notes that it has begun.
fn slow(id: u64, ms: u64, file: &str) -> Vec<u8> {
    let arguments = json!({ "ms": ms, "file": file });
    let meta = json!({ "progressToken": "same" });
    request(id, "tools/call", &json!({ "name": "test__slow_write", "arguments": arguments, "_meta": meta }))
}

fn begun(home: &TestDir, server: &Server, file: &str) {
    let path = home.path().join(file);
    server.eventually("the call runs", || {
        std::fs::read_to_string(&path).is_ok_and(|text| text.starts_with("begun"))
    });
}

#[test]
fn srv_1_an_id_that_is_in_flight_is_refused_and_clients_cancel_only_their_own_requests() {
    let home = TestDir::with_test_tools();
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
fn cancels(home: &TestDir, mut pipe: Pipe, meta: &Value) {
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

#[test]
fn srv_1_a_client_cancels_its_own_call_and_gets_no_answer_to_it() {
    for modern in [false, true] {
        let home = TestDir::with_test_tools();
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
        let home = TestDir::with_test_tools();
        let server = home.serve();
        if modern {
            cancels(&home, Pipe::open(&home), &modern_meta());
        } else {
            cancels(&home, Pipe::initialized(&home, "2025-06-18"), &json!({}));
        }
        server.eventually("the call is cancelled", || {
            server.get_as_admin("/api/v1/audit").json()["items"][0]["error"]["code"] == "CANCELED"
        });
    }
}

#[test]
fn srv_1_hanging_up_cancels_a_call_of_2026_07_28_and_no_older_one() {
    let home = TestDir::with_test_tools();
    let server = home.serve();
    let state = || server.get("/api/v1/audit").json()["items"][0].clone();
    let mut socket = Socket::initialized(&server, "2025-06-18");
    let older = slow(5, 300, "older.txt");
    socket
        .connection
        .send(&head("/mcp", &[("mcp-session-id", &socket.session)], older.len()))
        .expect("it listens");
    socket.connection.send(&older).expect("it listens");
    begun(&home, &server, "older.txt");
    drop(socket);
    server.eventually("the older call ends", || state()["state"] != "EXECUTING");
    assert_eq!(state()["state"], "COMPLETED_SUCCESS");

    let arguments = json!({ "ms": 60_000, "file": "newer.txt" });
    let params = json!({ "name": "test__slow_write", "arguments": arguments, "_meta": modern_meta() });
    let newer = request(5, "tools/call", &params);
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "test__slow_write"),
    ];
    let mut connection = server.connect();
    connection.send(&head("/mcp", &headers, newer.len())).expect("it listens");
    connection.send(&newer).expect("it listens");
    begun(&home, &server, "newer.txt");
    drop(connection);
    server.eventually("the newer call ends", || state()["state"] != "EXECUTING");
    assert_eq!(state()["error"]["code"], "CANCELED", "{}", state());
    assert_eq!(home.read("newer.txt"), "begun\n");
}

#[test]
fn srv_1_a_pipe_that_is_closed_ends_the_program_after_the_running_call() {
    let home = TestDir::with_test_tools();
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
