//! Many clients at once: every call is answered with its own result and is in the ledger exactly once.

use gantry_testkit::{Server, TestDir};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::thread;

/// Clients at once, each with one connection that it keeps.
const CLIENTS: usize = 64;

/// Calls of one client; together they are just over 10,000.
const CALLS_EACH: usize = 157;

/// Every so many calls of a client, one changes something.
const WRITE_EVERY: usize = 4;

/// Rows of the audit log that one request gets.
const PAGE: usize = 1000;

/// What a call says, so that its answer and its record are distinct.
fn mark(client: usize, call: usize) -> String {
    format!("c{client:02}-{call:03}")
}

fn writes(call: usize) -> bool {
    call.is_multiple_of(WRITE_EVERY)
}

/// Makes all calls of one client and returns the ids of their records by mark.
fn client(server: &Server, client: usize) -> Vec<(String, String)> {
    let mut connection = server.connect();
    (0..CALLS_EACH)
        .map(|call| {
            let mark = mark(client, call);
            let (tool, arguments, expected) = if writes(call) {
                let arguments = json!({ "file": "count.txt", "text": mark });
                ("test__count", arguments, json!({ "counted": mark }))
            } else {
                ("test__echo", json!({ "text": mark }), json!(mark))
            };
            let answer = connection.call(tool, &arguments).expect("an answer");
            assert_eq!(answer.status, 200, "{answer:?}");
            let reply = answer.json();
            assert_eq!((&reply["ok"], &reply["result"]), (&json!(true), &expected), "{reply}");
            (mark, reply["id"].as_str().expect("an id").to_owned())
        })
        .collect()
}

/// The whole audit log, page by page.
fn audit_log(server: &Server) -> Vec<Value> {
    let mut rows = Vec::new();
    let mut next = String::new();
    loop {
        let page = server.get_as_admin(&format!("/api/v1/audit?limit={PAGE}{next}")).json();
        rows.extend_from_slice(page["items"].as_array().expect("items"));
        let Some(cursor) = page["next"].as_str() else { return rows };
        next = format!("&cursor={cursor}");
    }
}

/// The mark of a record, from its arguments.
fn marked(row: &Value) -> String {
    let arguments: Value = serde_json::from_str(row["arguments"].as_str().expect("a text")).expect("JSON");
    arguments["text"].as_str().expect("a mark").to_owned()
}

#[test]
fn cal_16_heavy_ten_thousand_calls_of_64_clients_are_each_answered_and_recorded_exactly_once() {
    let home = TestDir::with_test_tools();
    let server = home.serve();
    let answered: HashMap<String, String> = thread::scope(|scope| {
        let server = &server;
        let clients: Vec<_> = (0..CLIENTS).map(|n| scope.spawn(move || client(server, n))).collect();
        clients.into_iter().flat_map(|one| one.join().expect("a client without complaints")).collect()
    });
    assert_eq!(answered.len(), CLIENTS * CALLS_EACH);

    // The records: none lost, none doubled, each with the id that its caller got.
    let rows = audit_log(&server);
    let recorded: HashMap<String, String> =
        rows.iter().map(|row| (marked(row), row["id"].as_str().expect("an id").to_owned())).collect();
    assert_eq!(rows.len(), answered.len());
    assert_eq!(recorded, answered);
    for row in &rows {
        assert_eq!((&row["state"], &row["door"]), (&json!("COMPLETED_SUCCESS"), &json!("http")), "{row}");
    }

    // The effects: each exactly once.
    let mut lines: Vec<String> = home.read("count.txt").lines().map(str::to_owned).collect();
    lines.sort_unstable();
    let counted = (0..CLIENTS)
        .flat_map(|client| (0..CALLS_EACH).filter(|call| writes(*call)).map(move |call| mark(client, call)));
    assert_eq!(lines, counted.collect::<Vec<_>>());

    let total: u64 = server
        .get("/metrics")
        .text
        .lines()
        .filter(|line| line.starts_with("gantry_tool_calls_total{"))
        .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
        .sum();
    assert_eq!(total, answered.len() as u64);
    let verified = server.get_as_admin("/api/v1/audit/verify").json();
    assert_eq!(verified["ok"], true, "{verified}");
    assert_eq!(server.stop().0, 0);
}
