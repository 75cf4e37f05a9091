//! Those who wait: for something to decide, for a decision, for an outcome. And those who get events.

use super::{count, counted, decide, get, held, home, ids, over, post};
use crate::approvals::keys::make;
use serde_json::json;
use std::thread;

#[test]
fn apr_6_a_list_waits_until_something_is_asked() {
    let home = home("test__count");
    let server = home.serve();
    let list = "/api/v1/approvals?state=PENDING_APPROVAL&wait=30";
    thread::scope(|scope| {
        let waiting = scope.spawn(|| server.get_as_admin(list).json());
        let (_, approval) = held(&server, "test__count", &count("a"));
        let found = waiting.join().expect("an answer");
        assert_eq!(found["items"][0]["id"], json!(approval), "{found}");
    });
    // What is there is given at once, and what is not there at the end of the time.
    let empty = server.get_as_admin("/api/v1/approvals?state=REJECTED_BY_USER&wait=1").json();
    assert_eq!(empty, json!({ "items": [], "next": null }));
    for path in ["/api/v1/approvals?wait=61", "/api/v1/approvals?state=WAITING", "/api/v1/approvals?stat=x"] {
        assert_eq!(server.get_as_admin(path).status, 400, "{path}");
    }
}

#[test]
fn apr_6_one_who_looks_at_an_approval_hears_of_the_decision() {
    let home = home("test__count");
    let server = home.serve();
    let (call, approval) = held(&server, "test__count", &count("a"));
    let path = format!("/api/v1/approvals/{approval}?wait=30");
    thread::scope(|scope| {
        let (looking, waiting) =
            (scope.spawn(|| server.get(&path).json()), scope.spawn(|| over(&server.client(), &call)));
        assert_eq!(decide(&server.admin(), &approval, &json!({ "approved": false })).status, 200);
        assert_eq!(looking.join().expect("an answer")["state"], "REJECTED_BY_USER");
        assert_eq!(waiting.join().expect("an answer")["error"]["code"], "REJECTED_BY_USER");
    });
}

#[test]
fn apr_6_a_caller_who_wants_to_waits_for_the_outcome() {
    let home = home("test__count");
    let server = home.serve();
    let body = json!({ "tool": "test__count", "arguments": count("a"), "waitMs": 30_000 });
    thread::scope(|scope| {
        let calling = scope.spawn(|| post(&server.client(), "/api/v1/calls", &body));
        let asked = server.get_as_admin("/api/v1/approvals?state=PENDING_APPROVAL&wait=30").json();
        let approval = asked["items"][0]["id"].as_str().expect("an id").to_owned();
        assert_eq!(decide(&server.admin(), &approval, &json!({ "approved": true })).status, 200);
        let answer = calling.join().expect("an answer");
        assert_eq!(
            (answer.status, &answer.json()["result"]),
            (200, &json!({ "counted": "a" })),
            "{answer:?}"
        );
    });
    // A no is a refusal of the call, and no time to wait is as if it had not been said.
    thread::scope(|scope| {
        let calling = scope.spawn(|| post(&server.client(), "/api/v1/calls", &body));
        let asked = server.get_as_admin("/api/v1/approvals?state=PENDING_APPROVAL&wait=30").json();
        let approval = asked["items"][0]["id"].as_str().expect("an id").to_owned();
        decide(&server.admin(), &approval, &json!({ "approved": false }));
        let answer = calling.join().expect("an answer");
        assert_eq!((answer.status, &answer.json()["error"]["code"]), (403, &json!("REJECTED_BY_USER")));
    });
    let impatient = json!({ "tool": "test__count", "arguments": count("b"), "waitMs": 1 });
    ids(&post(&server.client(), "/api/v1/calls", &impatient));
    let endless = json!({ "tool": "test__count", "arguments": count("c"), "waitMs": 60_001 });
    assert_eq!(post(&server.client(), "/api/v1/calls", &endless).status, 400);
    assert_eq!(counted(&home), ["a"]);
}

#[test]
fn apr_6_approvers_see_events_of_what_they_may_decide_and_agents_of_their_own() {
    let home = home("test__count, test__echo");
    let server = home.serve();
    let approver = make(&server, &json!({ "name": "anna", "role": "approver", "tools": ["test__count"] }));
    let stranger = make(&server, &json!({ "name": "bot", "role": "agent" }));
    let (_, counts) = held(&server, "test__count", &count("a"));
    let (_, echoes) = held(&server, "test__echo", &json!({ "text": "secret-text" }));
    decide(&server.admin(), &counts, &json!({ "approved": false, "reason": "no" }));
    let events = "/api/v1/events?follow=false&type=approval";
    let seen = get(&approver, events).text;
    assert!(seen.contains(&counts) && !seen.contains(&echoes) && !seen.contains("tool_started"), "{seen}");
    assert!(
        seen.contains("\"state\":\"PENDING_APPROVAL\"") && seen.contains("\"decidedBy\":\"person\""),
        "{seen}"
    );
    let own = server.get(events).text;
    assert!(own.contains(&counts) && own.contains(&echoes) && !own.contains("secret-text"), "{own}");
    let others = get(&stranger, events).text;
    assert!(!others.contains(&counts) && !others.contains("data:"), "{others}");
    let none = get(&approver, "/api/v1/events?follow=false&type=server_up").text;
    assert!(!none.contains("data:"), "{none}");
    let all = server.get_as_admin("/api/v1/events?follow=false&type=approval,session_opened").text;
    assert!(all.contains(&echoes) && all.contains("session_opened"), "{all}");
}
