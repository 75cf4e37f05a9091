//! What a session may be sent in all: a result beyond its budget is dropped.

use crate::pipeline::{file, lines, post};
use gantry_testkit::TestDir;
use serde_json::{Value, json};
use std::thread;

#[test]
fn cal_10_a_result_that_does_not_fit_the_budget_is_dropped() {
    let home =
        TestDir::with_test_tools().config("defaults: { contextBudgetTokens: 100 }\nagents: { a: {} }\n");
    let server = home.serve();
    let text = "x".repeat(200);
    for _ in 0..2 {
        let reply = server.call("test__echo", &json!({ "text": text })).json();
        assert_eq!((&reply["result"], &reply["extras"]["toolBudgetExceeded"]), (&json!(text), &Value::Null));
    }
    let dropped = server.call("test__echo", &json!({ "text": text })).json();
    assert_eq!(dropped["error"]["code"], "BUDGET_EXCEEDED");
    assert_eq!(dropped["error"]["message"], "(tool failed: context window budget exceeded)");
    assert_eq!(dropped["extras"]["toolBudgetExceeded"], true);
    let details = json!({ "neededTokens": 50, "leftTokens": 0, "limitTokens": 100 });
    assert_eq!((&dropped["error"]["details"], &dropped["state"]), (&details, &json!("COMPLETED_FAILURE")));
    // A write whose result is dropped has happened all the same, and the caller learns it.
    let count = server.call("test__count", &json!({ "file": file(&home, "c"), "text": "x" })).json();
    assert_eq!(
        (&count["error"]["code"], &count["extras"]["effect"]),
        (&json!("BUDGET_EXCEEDED"), &json!("done"))
    );
    assert_eq!(lines(&home, "c"), 1);
    // The flag stays with the session; another session has a budget of its own.
    assert_eq!(server.call("test__nothing", &json!({})).json()["extras"]["toolBudgetExceeded"], true);
    let other =
        post(&server, &json!({ "tool": "test__echo", "arguments": { "text": text }, "agent": "a" })).json();
    assert_eq!((&other["ok"], &other["extras"]["toolBudgetExceeded"]), (&json!(true), &Value::Null));
}

#[test]
fn cal_10_parallel_calls_never_overshoot_the_budget() {
    let home = TestDir::with_test_tools().config("defaults: { contextBudgetTokens: 100 }\n");
    let server = home.serve();
    let text = "x".repeat(40);
    let replies: Vec<Value> = thread::scope(|scope| {
        let call = || server.call("test__echo", &json!({ "text": text })).json();
        let calls: Vec<_> = (0..30).map(|_| scope.spawn(call)).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    let ok = replies.iter().filter(|reply| reply["ok"] == true).count();
    assert_eq!(ok, 10, "ten tokens each, a hundred in all");
    assert!(replies.iter().all(|reply| reply["ok"] == true || reply["error"]["code"] == "BUDGET_EXCEEDED"));
}
