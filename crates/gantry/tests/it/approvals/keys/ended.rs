//! What ends with a key, whether it was revoked or has expired, and what becomes of its name.

use super::super::api::{
    code, count, counted, decide, delete, get, held, home, ids, over, post, remembering_home,
};
use super::{make, text};
use gantry_egress::LocalServer;
use gantry_testkit::faulty::Faulty;
use gantry_testkit::{Server, TestDir};
use serde_json::{Value, json};
use std::{fs, thread};

fn call(text: &str) -> Value {
    json!({ "tool": "test__count", "arguments": count(text) })
}

/// A key that holds for a few seconds.
#[track_caller]
fn short(server: &Server, role: &str, name: &str) -> LocalServer {
    make(server, &json!({ "name": name, "role": role, "expiresIn": "5s" }))
}

/// Waits until a key opens nothing any more.
#[track_caller]
fn expires(server: &Server, key: &LocalServer) {
    server.eventually("the key expires", || get(key, "/api/v1/tools").status == 401);
}

/// How an approval has ended, when it has.
#[track_caller]
fn ended(server: &Server, approval: &str) -> (Value, Value) {
    let item = || server.get_as_admin(&format!("/api/v1/approvals/{approval}")).json();
    server.eventually("it has ended", || item()["endedAt"].is_string());
    let item = item();
    (item["state"].clone(), item["message"].clone())
}

const EXPIRED: &str = "the key of its caller expired";

#[test]
fn apr_7_what_was_granted_by_a_key_that_expires_lets_nothing_through_from_that_moment() {
    let home = remembering_home("test__count");
    let server = home.serve();
    let anna = short(&server, "approver", "anna");
    let (run, approval) = held(&server, "test__count", &count("asked"));
    let yes = decide(&anna, &approval, &json!({ "approved": true, "scope": "always" }));
    assert_eq!(yes.status, 200, "{yes:?}");
    assert_eq!(over(&server.client(), &run)["ok"], true);
    assert_eq!(server.call("test__count", &count("granted")).status, 200);
    let keys = server.get_as_admin("/api/v1/keys").json()["items"].clone();
    assert_eq!(server.get_as_admin("/api/v1/grants").json()["items"][0]["expiresAt"], keys[0]["expiresAt"]);
    expires(&server, &anna);
    held(&server, "test__count", &count("not any more"));
    assert_eq!(counted(&home), ["asked", "granted"]);
    let grants = |all: &str| server.get_as_admin(&format!("/api/v1/grants{all}")).json()["items"].clone();
    server.eventually("it is listed no more", || grants("") == json!([]));
    assert_eq!(grants("?revoked=true")[0]["revokedBy"], "the end of a key");
}

#[test]
fn apr_7_what_a_key_asked_for_is_not_run_once_it_has_expired() {
    let home = home("test__count");
    let server = home.serve();
    let bot = short(&server, "agent", "bot");
    let approvals: Vec<String> =
        ["a", "b"].map(|text| ids(&post(&bot, "/api/v1/calls", &call(text))).1).into();
    let (_, other) = held(&server, "test__count", &count("another's"));
    expires(&server, &bot);
    // Whether or not it was noticed by now.
    let late = decide(&server.admin(), &approvals[0], &json!({ "approved": true, "scope": "always" }));
    assert_eq!(code(&late), (409, "ALREADY_DECIDED".into()), "{late:?}");
    for approval in &approvals {
        assert_eq!(ended(&server, approval), (json!("CANCELLED_BY_SYSTEM"), json!(EXPIRED)));
    }
    assert_eq!(server.get_as_admin("/api/v1/grants?revoked=true").json()["items"], json!([]));
    let waits = server.get_as_admin(&format!("/api/v1/approvals/{other}")).json();
    assert_eq!(waits["state"], "PENDING_APPROVAL", "{waits}");
    assert!(counted(&home).is_empty());
}

#[test]
fn apr_8_a_call_whose_time_comes_after_the_end_of_its_key_is_not_run() {
    let home =
        TestDir::with_test_tools().config("approvals: { toolSpecificDelays: { test__count: 8000 } }\n");
    let server = home.serve();
    let key = text(&server, &json!({ "name": "bot", "role": "agent", "expiresIn": "5s" }));
    let bot = |server: &Server| LocalServer::new(server.address, Some(key.clone()));
    let answer = post(&bot(&server), "/api/v1/calls", &call("late"));
    assert_eq!(answer.json()["state"], "SCHEDULED_FOR_EXECUTION", "{answer:?}");
    let approval = answer.json()["approvalId"].as_str().expect("an id").to_owned();
    // Its key ends, perhaps while no server runs to notice.
    server.stop();
    let server = home.serve();
    expires(&server, &bot(&server));
    assert_eq!(ended(&server, &approval), (json!("CANCELLED_BY_SYSTEM"), json!(EXPIRED)));
    assert!(counted(&home).is_empty());
}

#[test]
fn apr_7_an_expired_key_can_be_revoked_and_takes_along_what_is_left_of_it() {
    let home = home("test__count");
    let server = home.serve();
    let made =
        post(&server.admin(), "/api/v1/keys", &json!({ "name": "bot", "role": "agent", "expiresIn": "5s" }));
    let bot = LocalServer::new(server.address, made.json()["key"].as_str().map(str::to_owned));
    let (_, approval) = ids(&post(&bot, "/api/v1/calls", &call("a")));
    expires(&server, &bot);
    let path = format!("/api/v1/keys/{}", made.json()["id"].as_str().expect("an id"));
    let revoked = delete(&server.admin(), &path);
    assert_eq!((revoked.status, &revoked.json()["held"]), (200, &json!(false)), "{revoked:?}");
    let (state, why) = ended(&server, &approval);
    assert_eq!(state, "CANCELLED_BY_SYSTEM");
    assert!(why.as_str().is_some_and(|why| why.starts_with("the key of its caller ")), "{why}");
}

#[test]
fn apr_7_a_call_that_runs_when_its_key_is_revoked_runs_to_its_end_and_no_other_begins() {
    let home = TestDir::new()
        .config(&json!({ "mcpServers": { "s": { "command": Faulty::program() } } }).to_string());
    let server = home.serve();
    let bot = make(&server, &json!({ "name": "bot", "role": "agent" }));
    let end = home.path().join("end");
    let long = json!({ "tool": "s__sleep", "arguments": { "until": end } });
    let reply = thread::scope(|scope| {
        let running = scope.spawn(|| post(&bot, "/api/v1/calls", &long));
        let events = || server.get_as_admin("/api/v1/events?follow=false").text;
        server.eventually("the call runs", || events().contains("tool_started"));
        assert_eq!(delete(&server.admin(), "/api/v1/keys/bot").status, 200);
        assert_eq!(post(&bot, "/api/v1/calls", &long).status, 401, "at once");
        fs::write(&end, "").expect("the file");
        running.join().expect("an answer")
    });
    assert_eq!((reply.status, &reply.json()["ok"]), (200, &json!(true)), "{reply:?}");
    let rows = server.get_as_admin("/api/v1/audit").json()["items"].clone();
    let states = |rows: &Value| {
        rows.as_array().map(|rows| rows.iter().map(|row| row["state"].clone()).collect::<Vec<_>>())
    };
    assert_eq!(states(&rows), Some(vec![json!("COMPLETED_SUCCESS")]), "{rows}");
}

#[test]
fn apr_7_a_name_whose_calls_are_on_record_is_given_to_no_other_key() {
    let home = home("test__count");
    let server = home.serve();
    let bot = make(&server, &json!({ "name": "bot", "role": "agent" }));
    make(&server, &json!({ "name": "anna", "role": "approver" }));
    let (_, approval) = ids(&post(&bot, "/api/v1/calls", &call("confidential")));
    for name in ["bot", "anna"] {
        assert_eq!(delete(&server.admin(), &format!("/api/v1/keys/{name}")).status, 200);
    }
    for role in ["agent", "approver", "admin"] {
        let refused = post(&server.admin(), "/api/v1/keys", &json!({ "name": "bot", "role": role }));
        assert_eq!(code(&refused), (409, "INVALID_ARGUMENTS".into()), "{refused:?}");
        let message = refused.json()["error"]["message"].as_str().expect("a message").to_owned();
        for words in ["was used by another key", "calls are on record", "choose another name"] {
            assert!(message.contains(words), "{words}: {message}");
        }
    }
    // Not after a restart either.
    server.stop();
    let server = home.serve();
    let refused = post(&server.admin(), "/api/v1/keys", &json!({ "name": "bot", "role": "agent" }));
    assert_eq!(code(&refused).0, 409, "{refused:?}");
    // Another name has nothing of it, and one who has only decided may be followed by another.
    let next = make(&server, &json!({ "name": "bot-2", "role": "agent" }));
    assert_eq!(get(&next, &format!("/api/v1/approvals/{approval}")).status, 404);
    assert_eq!(get(&next, "/api/v1/calls").json()["items"], json!([]));
    make(&server, &json!({ "name": "anna", "role": "approver" }));
}
