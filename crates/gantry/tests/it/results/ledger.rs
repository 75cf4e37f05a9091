//! The ledger: repeated keys, calls that are fetched later, and what is left of a process that died.

use crate::pipeline::{file, lines, post, post_as_person};
use crate::queues::{defer, outcome};
use gantry_testkit::TestDir;
use serde_json::{Value, json};
use std::process::Stdio;
use std::thread;

/// `POST /api/v1/calls` of a counting tool under an idempotency key.
fn keyed(home: &TestDir, key: &str, text: &str) -> Value {
    json!({ "tool": "test__count", "arguments": { "file": file(home, "c"), "text": text }, "idempotencyKey": key })
}

#[test]
fn cal_16_a_repeated_key_gives_the_stored_result_and_runs_nothing() {
    let home = TestDir::with_test_tools();
    let server = home.serve();
    let first = post(&server, &keyed(&home, "k1", "x")).json();
    assert_eq!(first["result"], json!({ "counted": "x" }));
    drop(server);
    // In another process, on the same data folder.
    let server = home.serve();
    let again = post(&server, &keyed(&home, "k1", "x")).json();
    assert_eq!((&again["result"], &again["extras"]["repeats"]), (&first["result"], &first["id"]));
    assert_eq!(lines(&home, "c"), 1);
    let conflict = post(&server, &keyed(&home, "k1", "y"));
    assert_eq!((conflict.status, &conflict.json()["error"]["code"]), (409, &json!("IDEMPOTENCY_CONFLICT")));
    let other_tool = json!({ "tool": "test__noop", "arguments": {}, "idempotencyKey": "k1" });
    assert_eq!(post(&server, &other_tool).json()["error"]["code"], "IDEMPOTENCY_CONFLICT");
    assert_eq!(post(&server, &keyed(&home, "k2", "x")).json()["ok"], true, "another key, another call");
    assert_eq!(lines(&home, "c"), 2);
    // Keys are one's own: the same one of another identity is another call.
    assert_eq!(post_as_person(&server, &keyed(&home, "k1", "z")).json()["ok"], true);
    assert_eq!(lines(&home, "c"), 3);
}

#[test]
fn cal_16_a_repeated_key_gives_a_stored_failure_as_it_was() {
    let home = TestDir::with_test_tools();
    let call = |text: &str| {
        let arguments = json!({ "text": text }).to_string();
        home.run(["call", "test__fail", &arguments, "--idempotency-key", "k", "--json"]).json()
    };
    let (first, again) = (call("boom"), call("boom"));
    assert_eq!(first["error"], json!({ "code": "EXECUTION_ERROR", "message": "boom" }));
    assert_eq!((&again["error"], &again["extras"]["effect"]), (&first["error"], &first["extras"]["effect"]));
    assert_eq!(again["extras"]["repeats"], first["id"]);
    assert_eq!(call("bang")["error"]["code"], "IDEMPOTENCY_CONFLICT");
}

#[test]
fn cal_16_repeating_a_key_at_once_runs_once() {
    let home = TestDir::with_test_tools();
    let server = home.serve();
    let call = json!({
        "tool": "test__slow_write", "arguments": { "ms": 300, "file": file(&home, "out.txt") }, "idempotencyKey": "k",
    });
    let replies: Vec<Value> = thread::scope(|scope| {
        let calls: Vec<_> = (0..10).map(|_| scope.spawn(|| post(&server, &call).json())).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert_eq!(home.read("out.txt"), "begun\nended\n");
    for reply in &replies {
        let early = reply["error"]["code"] == "IDEMPOTENCY_CONFLICT";
        assert!(early || reply["result"] == "written", "{reply}");
    }
    assert_eq!(
        replies.iter().filter(|reply| reply["extras"]["repeats"].is_null() && reply["ok"] == true).count(),
        1
    );
    assert_eq!(post(&server, &call).json()["result"], "written", "afterwards the result is there");
}

#[test]
fn cal_16_a_deferred_call_is_fetched_later() {
    let home = TestDir::with_test_tools();
    let server = home.serve();
    let call = json!({ "tool": "test__slow_write", "arguments": { "ms": 300, "file": file(&home, "out.txt") }, "mode": "defer" });
    let accepted = post(&server, &call);
    assert_eq!((accepted.status, &accepted.json()["state"]), (202, &json!("EXECUTING")));
    let id = accepted.json()["id"].as_str().unwrap().to_owned();
    let found = server.get(&format!("/api/v1/calls/{id}"));
    assert_eq!((found.status, &found.json()["id"]), (200, &json!(id)), "it is there from the first moment");
    let ended = outcome(&server, &id).json();
    assert_eq!(
        (&ended["ok"], &ended["result"], &ended["state"]),
        (&json!(true), &json!("written"), &json!("COMPLETED_SUCCESS"))
    );
    assert_eq!((&ended["record"]["id"], &ended["record"]["effect"]), (&json!(id), &json!("write")));
    drop(server);
    let server = home.serve();
    assert_eq!(server.get(&format!("/api/v1/calls/{id}")).json()["result"], "written", "a restart keeps it");
}

#[test]
fn cal_16_a_crash_leaves_an_unknown_outcome_that_is_never_run_again() {
    let home = TestDir::with_test_tools();
    let server = home.serve();
    let call = json!({
        "tool": "test__slow_write", "arguments": { "ms": 600_000, "file": file(&home, "out.txt") }, "idempotencyKey": "k",
    });
    let id = defer(&server, &call);
    server.eventually("it runs", || lines(&home, "out.txt") == 1);
    let open = home.run(["audit", "--state", "OUTCOME_UNKNOWN", "--json"]).json();
    assert_eq!(open, json!([]), "it runs, and that is known");
    server.kill();
    let unknown = home.run(["audit", "--state", "OUTCOME_UNKNOWN", "--json"]).json();
    assert_eq!(unknown.as_array().unwrap().len(), 1, "{unknown}");
    assert_eq!((&unknown[0]["id"], &unknown[0]["state"]), (&json!(id), &json!("OUTCOME_UNKNOWN")));
    assert_eq!(
        (&unknown[0]["effectState"], &unknown[0]["tool"]),
        (&json!("possible"), &json!("test__slow_write"))
    );
    let server = home.serve();
    let again = post(&server, &call);
    let reply = again.json();
    assert_eq!(
        (&reply["error"]["code"], &reply["extras"]["effect"]),
        (&json!("OUTCOME_UNKNOWN"), &json!("possible"))
    );
    assert!(
        reply["error"]["message"].as_str().unwrap().contains(&id),
        "it says which call to check: {reply}"
    );
    assert_eq!(server.get(&format!("/api/v1/calls/{id}")).json()["state"], "OUTCOME_UNKNOWN");
    assert_eq!(home.read("out.txt"), "begun\n", "nothing was run again");
    assert_eq!(home.run(["audit", "verify"]).code, 0);
}

#[test]
fn cal_16_the_calls_of_a_living_process_are_not_taken_for_lost() {
    let home = TestDir::with_test_tools();
    let arguments = json!({ "ms": 600_000, "file": file(&home, "out.txt") }).to_string();
    let mut command = home.command(["call", "test__slow_write", &arguments]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // Each look is another process on the same folder, which settles what dead ones have left.
    let state = || home.run(["audit", "--tool", "test__slow_write", "--json"]).json()[0]["state"].clone();
    assert!((0..1000).any(|_| state() == "EXECUTING" && lines(&home, "out.txt") == 1), "it never ran");
    let server = home.serve();
    assert_eq!(state(), "EXECUTING");
    drop(server);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(state(), "OUTCOME_UNKNOWN");
    assert_eq!(home.read("out.txt"), "begun\n");
}
