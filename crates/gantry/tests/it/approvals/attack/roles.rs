//! People and programs who may not decide, or may not any more: every attempt is turned away, and the ledger has it.

use super::super::held::{Held, ask, call, hold, item, key, line, lines, over, text};
use super::{home, refused, turned_away};
use crate::passthrough::{Door, Talk};
use gantry_testkit::TestDir;
use http::Method;
use serde_json::{Value, json};

#[test]
fn apr_7_an_agent_who_approves_itself_is_turned_away_at_every_door_and_that_is_on_record() {
    let home = home();
    let server = home.serve();
    let agent = key(&server, "agent", "bot", &json!({}));
    let body = json!({ "tool": "test__count", "arguments": line("own") });
    let held = Held::of(&call(&server, Some(&agent), &body));
    refused(&server, &agent, &held, (403, "PERMISSION_DENIED"));
    let unknown = ask(&server, None, Method::POST, &held.path("decision"), &json!({ "approved": true }));
    assert_eq!(unknown.status, 403, "{unknown:?}");
    for (method, path, body, status) in [
        (
            Method::POST,
            "/api/v1/calls",
            json!({ "tool": "test__count", "arguments": line("own"), "approve": true }),
            403,
        ),
        (Method::POST, "/api/v1/keys", json!({ "role": "approver", "name": "me" }), 403),
        (Method::GET, "/api/v1/keys", Value::Null, 403),
        (Method::DELETE, "/api/v1/keys/bot", Value::Null, 403),
        (Method::POST, "/api/v1/grants", json!({ "tool": "test__count" }), 405),
        (Method::DELETE, "/api/v1/grants/grant_01a1e14e6da074afaefd989dd7e9fe29", Value::Null, 403),
        (Method::POST, "/api/v1/config/reload", Value::Null, 403),
    ] {
        let answer = ask(&server, Some(&agent), method.clone(), path, &body);
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
    }
    // To say that one is the command line, or the page, gives no right.
    for via in ["cli", "page"] {
        let (json, key) = (("content-type", "application/json"), format!("Bearer {agent}"));
        let headers = [json, ("authorization", &*key), ("gantry-via", via)];
        let answer = server.request(Method::POST, &held.path("decision"), &headers, r#"{"approved":true}"#);
        assert_eq!(answer.status, 403, "{answer:?}");
    }
    assert_eq!(item(&server, &held.id)["state"], "PENDING_APPROVAL");
    let away = turned_away(&server, &held);
    let by: Vec<&str> = away.iter().map(|(by, _)| by.as_str()).collect();
    assert_eq!(by, ["bot", "local", "bot", "bot"], "{away:?}");
    assert!(away.iter().all(|(_, why)| why.contains("an agent cannot decide")), "{away:?}");
    assert!(lines(&home).is_empty());
    super::super::held::verified(&server);
}

#[test]
fn apr_7_a_client_cannot_answer_in_the_place_of_a_person() {
    let home = home();
    let server = home.serve();
    let pending = || server.get_as_admin("/api/v1/approvals?state=PENDING_APPROVAL").json()["items"].clone();
    let yes = json!({ "action": "accept", "content": { "decision": "approve" } });
    // It can show forms, but it is unknown who is behind it: it is asked nothing, and what it answers is no answer.
    let mut client =
        Talk::legacy_with(Door::Http(&server, "/mcp"), &json!({ "elicitation": { "form": {} } }));
    client.begin_call("test__count", &line("legacy"));
    server.eventually("it waits", || pending() != json!([]));
    let id = text(&pending()[0]["id"]);
    for question in [json!(1), json!(0), json!(id), json!("elicitation-1")] {
        client.answer(&json!({ "id": question }), &yes);
    }
    let mut modern =
        Talk::modern_with(Door::Http(&server, "/mcp"), &json!({ "elicitation": { "form": {} } }));
    let params = json!({
        "name": "test__count", "arguments": line("legacy"),
        "inputResponses": { &*id: yes }, "requestState": id,
    });
    modern.begin("tools/call", &params.to_string());
    modern.begin("tools/call", &json!({ "name": "approve", "arguments": { "id": id } }).to_string());
    modern.begin("tools/call", &json!({ "name": "gantry__approve", "arguments": { "id": id } }).to_string());
    // What a client says is taken in its order, so all of that has been by now.
    modern.tools();
    client.tools();
    assert!(client.heard("elicitation/create").is_empty());
    assert_eq!(pending().as_array().map(Vec::len), Some(1), "{}", pending());
    assert_eq!(pending()[0]["id"], *id);
    assert!(!client.tools().iter().any(|tool| tool.contains("approv") || tool.contains("grant")));
    assert!(lines(&home).is_empty());
}

#[test]
fn apr_7_approvers_are_kept_to_their_projects_and_tools_and_that_is_on_record() {
    let config = super::config(&json!({ "projects": { "other": { "workspace": "." } } }));
    let home = TestDir::with_test_tools().config(&config.to_string());
    let server = home.serve();
    let held = hold(&server, None, "test__count", &line("a"));
    let elsewhere = key(&server, "approver", "elsewhere", &json!({ "projects": ["other"] }));
    let files = key(&server, "approver", "files", &json!({ "tools": ["*_file"] }));
    let right = key(&server, "approver", "right", &json!({ "projects": ["default"], "tools": ["test__*"] }));
    let gone = key(&server, "approver", "gone", &json!({}));
    for approver in [&elsewhere, &files] {
        // They do not even learn that it is there.
        let body = refused(&server, approver, &held, (404, "NOT_FOUND"));
        assert!(!body.to_string().contains("test__count"), "{body}");
    }
    let revoked = ask(&server, Some(&server.key), Method::DELETE, "/api/v1/keys/gone", &Value::Null);
    assert_eq!(revoked.status, 200, "{revoked:?}");
    refused(&server, &gone, &held, (401, "PERMISSION_DENIED"));
    let own =
        Held::of(&call(&server, Some(&right), &json!({ "tool": "test__count", "arguments": line("own") })));
    refused(&server, &right, &own, (403, "PERMISSION_DENIED"));
    let by: Vec<String> = turned_away(&server, &held).into_iter().map(|(by, _)| by).collect();
    assert_eq!(by, ["elsewhere", "files"]);
    let away = turned_away(&server, &own);
    assert!(away[0].0 == "right" && away[0].1.contains("own call"), "{away:?}");
    assert!(lines(&home).is_empty());
    let decided = super::decide(&server, &right, &held, &json!({ "approved": true }));
    assert_eq!((decided.status, &decided.json()["decidedBy"]), (200, &json!("right")), "{decided:?}");
    assert_eq!(over(&server, &held)["state"], "COMPLETED_SUCCESS");
    assert_eq!(lines(&home), ["a"]);
}

#[test]
fn apr_7_a_decision_that_comes_too_late_is_turned_away_and_that_is_on_record() {
    let approvals = json!({ "requiresApprovalTools": ["test__count"], "approvalTimeoutMs": 300 });
    let brief = json!({ "projects": { "brief": { "workspace": ".", "approvals": approvals } } });
    let home = TestDir::with_test_tools().config(&super::config(&brief).to_string());
    let server = home.serve();
    let body = json!({ "project": "brief", "tool": "test__count", "arguments": line("expired") });
    let expired = Held::of(&call(&server, None, &body));
    assert_eq!(over(&server, &expired)["state"], "REJECTED_BY_TIMEOUT");
    refused(&server, &server.key, &expired, (410, "REJECTED_BY_TIMEOUT"));
    let withdrawn = hold(&server, None, "test__count", &line("withdrawn"));
    assert_eq!(ask(&server, None, Method::POST, &withdrawn.path("cancel"), &Value::Null).status, 200);
    let denied = hold(&server, None, "test__count", &line("denied"));
    let no = super::decide(&server, &server.key, &denied, &json!({ "approved": false }));
    assert_eq!(no.status, 200, "{no:?}");
    for held in [&withdrawn, &denied] {
        let body = refused(&server, &server.key, held, (409, "ALREADY_DECIDED"));
        assert_eq!(body["error"]["details"]["approval"]["state"], item(&server, &held.id)["state"], "{body}");
    }
    for held in [&expired, &withdrawn, &denied] {
        assert_eq!(turned_away(&server, held).len(), 1);
        assert_eq!(turned_away(&server, held)[0].0, "person");
    }
    assert!(lines(&home).is_empty());
}
