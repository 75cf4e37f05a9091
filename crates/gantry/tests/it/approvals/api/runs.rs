//! Held calls that end with their run, or with the key of their caller.

use super::{code, count, counted, decide, delete, held, home, ids, over, post};
use crate::approvals::keys::make;
use gantry_testkit::{Server, TestDir};
use serde_json::{Value, json};

/// The run of a call.
#[track_caller]
fn run_of(server: &Server, call: &str) -> String {
    let record = server.get_as_admin(&format!("/api/v1/calls/{call}")).json();
    record["record"]["session"].as_str().unwrap_or_else(|| panic!("no session: {record}")).to_owned()
}

/// Cancels a run; whether there was something to cancel.
#[track_caller]
fn cancel(server: &Server, run: &str) -> Value {
    let answer = server.post(&format!("/api/v1/runs/{run}/cancel"), "");
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["canceled"].clone()
}

/// An approval has ended because of this, and it cannot be approved any more.
#[track_caller]
fn ended(server: &Server, approval: &str, why: &str) {
    let item = server.get_as_admin(&format!("/api/v1/approvals/{approval}")).json();
    assert_eq!((&item["state"], &item["message"]), (&json!("CANCELLED_BY_SYSTEM"), &json!(why)), "{item}");
    let late = decide(&server.admin(), approval, &json!({ "approved": true }));
    assert_eq!(code(&late), (409, "ALREADY_DECIDED".into()), "{late:?}");
}

#[test]
fn apr_7_a_run_that_is_canceled_takes_its_held_calls_with_it_whether_it_is_live_or_not() {
    let home = TestDir::with_test_tools().config(
        "approvals: { requiresApprovalTools: [test__count], toolSpecificDelays: { test__echo: 600000 } }\n",
    );
    let mut server = home.serve();
    for is_live in [true, false] {
        let (call, pending) = held(&server, "test__count", &count("a"));
        let delayed = server.call("test__echo", &json!({ "text": "x" })).json();
        assert_eq!(delayed["state"], "SCHEDULED_FOR_EXECUTION", "{delayed}");
        let theirs = json!({ "tool": "test__count", "arguments": count(if is_live { "b" } else { "c" }) });
        let (_, other) = ids(&post(&server.admin(), "/api/v1/calls", &theirs));
        let run = run_of(&server, &call);
        if !is_live {
            drop(server);
            server = home.serve();
        }
        assert_eq!(cancel(&server, &run), true, "live: {is_live}");
        for approval in [&*pending, delayed["approvalId"].as_str().expect("an id")] {
            ended(&server, approval, "its run was canceled");
        }
        let outcome = over(&server.client(), &call);
        assert_eq!(outcome["error"]["code"], "CANCELED", "{outcome}");
        assert_eq!(cancel(&server, &run), false, "only once");
        let waits = server.get_as_admin(&format!("/api/v1/approvals/{other}")).json();
        assert_eq!(waits["state"], "PENDING_APPROVAL", "another run: {waits}");
        // The same request in another run is a new call.
        let (again, approval) = held(&server, "test__count", &count("a"));
        assert_ne!((&again, run_of(&server, &again)), (&call, run));
        assert_eq!(
            post(&server.client(), &format!("/api/v1/approvals/{approval}/cancel"), &Value::Null).status,
            200
        );
    }
    assert!(counted(&home).is_empty());
}

#[test]
fn apr_7_a_key_that_is_revoked_takes_the_held_calls_of_its_caller_with_it() {
    let home = home("test__count");
    let server = home.serve();
    let bot = make(&server, &json!({ "name": "bot", "role": "agent" }));
    let body = |text: &str| json!({ "tool": "test__count", "arguments": count(text) });
    let mine: Vec<String> = ["a", "b"].map(|text| ids(&post(&bot, "/api/v1/calls", &body(text))).1).into();
    let (_, other) = held(&server, "test__count", &count("a"));
    assert_eq!(delete(&server.admin(), "/api/v1/keys/bot").json()["held"], true);
    for approval in &mine {
        ended(&server, approval, "the key of its caller was revoked");
    }
    let waits = server.get_as_admin(&format!("/api/v1/approvals/{other}")).json();
    assert_eq!(waits["state"], "PENDING_APPROVAL", "another caller's: {waits}");
    assert!(counted(&home).is_empty());
}
