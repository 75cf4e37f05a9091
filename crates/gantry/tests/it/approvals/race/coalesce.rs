//! Equal calls at once are one approval, one execution, and one result for all.

use super::super::held::{Held, all, approve, call, line, lines, text};
use crate::passthrough::{Door, Talk};
use gantry_testkit::{Server, TestDir};
use serde_json::{Value, json};
use std::sync::Barrier;
use std::thread;

/// Those who call over HTTP and over MCP without a key, and those behind whom the person of the folder is: over MCP with that
/// person's key, and by `gantry mcp`. Together they are a hundred.
const PLAIN: usize = 60;
const MODELS: usize = 24;
const PIPES: usize = 16;

fn home() -> TestDir {
    let approvals = json!({ "requiresApprovalTools": ["test__count"], "delivery": "hold" });
    TestDir::with_test_tools().config(&json!({ "approvals": approvals }).to_string())
}

/// Waits until there are so many approvals, and every one of so many callers waits.
fn pending(server: &Server, n: usize) -> Vec<Held> {
    let path = "/api/v1/approvals?state=PENDING_APPROVAL";
    server.eventually("they wait", || all(server, path).len() >= n);
    let held = |item: &Value| Held { id: text(&item["id"]), call: text(&item["callId"]) };
    all(server, path).iter().map(held).collect()
}

/// What one caller was given.
fn over_http(server: &Server, start: &Barrier) -> String {
    start.wait();
    let body = json!({ "tool": "test__count", "arguments": line("all"), "waitMs": 60_000 });
    let answer = call(server, None, &body);
    assert_eq!(answer.status, 200, "{answer:?}");
    text(&answer.json()["result"]["counted"])
}

fn over_mcp(door: Door<'_>, start: &Barrier) -> String {
    // It has nothing to ask a person with, and waits.
    let mut client = Talk::legacy_with(door, &json!({}));
    start.wait();
    let given: Value = serde_json::from_str(&client.call("test__count", &line("all"))).expect("JSON");
    text(&given["counted"])
}

#[test]
fn apr_5_heavy_a_hundred_equal_calls_at_once_are_one_for_each_who_calls() {
    let home = home();
    let server = home.serve();
    let start = &Barrier::new(PLAIN + MODELS + PIPES);
    thread::scope(|scope| {
        let (home, server) = (&home, &server);
        let mut given = Vec::new();
        for _ in 0..PLAIN {
            given.push(scope.spawn(move || over_http(server, start)));
        }
        for _ in 0..MODELS {
            given.push(scope.spawn(move || over_mcp(Door::Http(server, "/mcp"), start)));
        }
        for _ in 0..PIPES {
            given.push(scope.spawn(move || over_mcp(Door::Stdio(home, &[]), start)));
        }
        // Two callers: one without a key, and the client that the person of the folder has started.
        let held = pending(server, 2);
        held.iter().for_each(|held| drop(approve(server, held)));
        for given in given {
            assert_eq!(given.join().expect("a caller without complaints"), "all");
        }
    });
    let approvals = all(&server, "/api/v1/approvals");
    let mut callers: Vec<String> = approvals.iter().map(|item| text(&item["caller"]["principal"])).collect();
    callers.sort();
    assert_eq!(callers, ["local", "mcp"], "{approvals:?}");
    assert_eq!(lines(&home), ["all", "all"], "once for each");
    let ended = all(&server, "/api/v1/audit?tool=test__count");
    assert!(ended.iter().all(|entry| entry["state"] == "COMPLETED_SUCCESS"), "{ended:?}");
    assert_eq!(ended.len(), 2);
}

#[test]
fn apr_5_equal_calls_with_two_keys_are_two() {
    const EACH: usize = 20;
    let home = home();
    let server = home.serve();
    let start = &Barrier::new(2 * EACH);
    thread::scope(|scope| {
        let server = &server;
        let one = |key: &'static str| {
            move || {
                start.wait();
                let body = json!({ "tool": "test__count", "arguments": line("keyed"), "idempotencyKey": key, "waitMs": 60_000 });
                let answer = call(server, None, &body);
                assert_eq!(answer.status, 200, "{answer:?}");
                let reply = answer.json();
                assert_eq!(reply["result"]["counted"], "keyed", "{reply}");
                (key, text(&reply["id"]))
            }
        };
        let calling: Vec<_> = (0..2 * EACH).map(|n| scope.spawn(one(["a", "b"][n % 2]))).collect();
        pending(server, 2).iter().for_each(|held| drop(approve(server, held)));
        let outcome: std::collections::BTreeSet<_> =
            calling.into_iter().map(|caller| caller.join().expect("a caller without complaints")).collect();
        assert_eq!(
            outcome.len(),
            2,
            "each key has its call, and all with that key are told of it: {outcome:?}"
        );
    });
    assert_eq!(lines(&home), ["keyed", "keyed"]);
    // A key that was used stands for its call, also later and without an approver.
    let body = json!({ "tool": "test__count", "arguments": line("keyed"), "idempotencyKey": "a" });
    let again = call(&server, None, &body);
    assert_eq!((again.status, &again.json()["result"]["counted"]), (200, &json!("keyed")), "{again:?}");
    let other = call(
        &server,
        None,
        &json!({ "tool": "test__count", "arguments": line("other"), "idempotencyKey": "a" }),
    );
    assert_eq!(other.json()["error"]["code"], "IDEMPOTENCY_CONFLICT", "{other:?}");
    assert_eq!(lines(&home).len(), 2);
}
