//! Approvals by the HTTP API: what a held call is answered with, what a person is shown, and what a decision does.

mod grants;
mod races;
mod runs;
mod waiting;

use gantry_egress::LocalServer;
use gantry_testkit::server::{Answer, send};
use gantry_testkit::{Server, TestDir};
use http::Method;
use serde_json::{Value, json};

/// A home in which every call of these tools waits for a person.
pub(super) fn home(tools: &str) -> TestDir {
    TestDir::with_test_tools().config(&format!("approvals: {{ requiresApprovalTools: [{tools}] }}\n"))
}

/// The same, with a yes that may reach any further.
pub(super) fn remembering_home(tools: &str) -> TestDir {
    let rules = format!("requiresApprovalTools: [{tools}], remember: always");
    TestDir::with_test_tools().config(&format!("approvals: {{ {rules} }}\n"))
}

/// Makes a call without a key that is held; the ids of the call and of the approval.
#[track_caller]
pub(super) fn held(server: &Server, tool: &str, arguments: &Value) -> (String, String) {
    ids(&server.call(tool, arguments))
}

/// The ids of a call that is held, and of its approval.
#[track_caller]
pub(super) fn ids(answer: &Answer) -> (String, String) {
    let reply = answer.json();
    assert_eq!((answer.status, &reply["state"]), (202, &json!("PENDING_APPROVAL")), "{answer:?}");
    let text = |key: &str| reply[key].as_str().expect("an id").to_owned();
    (text("id"), text("approvalId"))
}

/// The arguments of a call that adds a line to the file `counted`.
pub(super) fn count(text: &str) -> Value {
    json!({ "file": "counted", "text": text })
}

/// The lines that were counted.
pub(super) fn counted(home: &TestDir) -> Vec<String> {
    home.lines("counted")
}

pub(super) fn get(who: &LocalServer, path: &str) -> Answer {
    send(who, Method::GET, path, &[], "")
}

pub(super) fn post(who: &LocalServer, path: &str, body: &Value) -> Answer {
    send(who, Method::POST, path, &[("content-type", "application/json")], &body.to_string())
}

pub(super) fn delete(who: &LocalServer, path: &str) -> Answer {
    send(who, Method::DELETE, path, &[], "")
}

pub(super) fn decide(who: &LocalServer, approval: &str, body: &Value) -> Answer {
    post(who, &format!("/api/v1/approvals/{approval}/decision"), body)
}

/// The call when it is over.
#[track_caller]
pub(super) fn over(who: &LocalServer, call: &str) -> Value {
    let answer = get(who, &format!("/api/v1/calls/{call}?wait=30"));
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// The status and the code of a refusal.
#[track_caller]
pub(super) fn code(answer: &Answer) -> (u16, String) {
    let body = answer.json();
    assert_eq!(body["ok"], false, "{answer:?}");
    (answer.status, body["error"]["code"].as_str().expect("a code").to_owned())
}

#[test]
fn apr_6_lists_leave_long_arguments_out_and_the_call_runs_with_all_of_them() {
    let home = home("test__count");
    let server = home.serve();
    let text = "x".repeat(40_000);
    let (call, approval) = held(&server, "test__count", &count(&text));
    let listed = server.get_as_admin("/api/v1/approvals?state=PENDING_APPROVAL").json();
    let whole = server.get_as_admin(&format!("/api/v1/approvals/{approval}")).json();
    assert_eq!(
        (&listed["items"][0]["id"], &listed["items"][0]["arguments"]),
        (&json!(approval), &Value::Null)
    );
    assert_eq!(whole["arguments"], count(&text));
    assert_eq!(listed["items"][0]["argumentsBytes"], whole["argumentsBytes"]);
    assert_eq!(decide(&server.admin(), &approval, &json!({ "approved": true })).status, 200);
    assert_eq!(over(&server.client(), &call)["ok"], true);
    // The same for arguments that an approver gave instead.
    let (call, approval) = held(&server, "test__count", &count("short"));
    let other = "y".repeat(50_000);
    let yes = json!({ "approved": true, "modifiedArgs": count(&other) });
    assert_eq!(decide(&server.admin(), &approval, &yes).status, 200);
    assert_eq!(over(&server.client(), &call)["ok"], true);
    let listed = server.get_as_admin("/api/v1/approvals?limit=1").json()["items"][0]["decision"].clone();
    assert_eq!(listed["modifiedArgs"], Value::Null);
    assert!(listed["modifiedArgsBytes"].as_u64().is_some_and(|bytes| bytes > 50_000), "{listed}");
    assert_eq!(counted(&home), [text, other]);
}

#[test]
fn apr_3_a_request_carries_the_step_the_tool_the_exact_arguments_and_the_reason() {
    let home = home("test__nested");
    let server = home.serve();
    let body = r#"{"tool":"test__nested","arguments":{"tool":"test__noop","arguments":{"n":1.50,"big":9007199254740993}}}"#;
    let answer = server.post("/api/v1/calls", body);
    let (call, approval) = ids(&answer);
    let error = &answer.json()["error"];
    assert_eq!(
        (error["code"].as_str(), answer.json()["ok"].as_bool()),
        (Some("APPROVAL_REQUIRED"), Some(false))
    );
    let shown = server.get_as_admin(&format!("/api/v1/approvals/{approval}"));
    let exact = r#""arguments":{"tool":"test__noop","arguments":{"n":1.50,"big":9007199254740993}}"#;
    assert!(shown.text.contains(exact), "{}", shown.text);
    let item = shown.json();
    assert_eq!(
        (&item["id"], &item["callId"], &item["stepId"]),
        (&json!(approval), &json!(call), &json!(call))
    );
    assert_eq!(
        (&item["tool"], &item["state"]),
        (&json!("test__nested"), &json!("PENDING_APPROVAL")),
        "{item}"
    );
    assert!(item["reason"].as_str().unwrap().contains("requiresApprovalTools"), "{item}");
    assert_eq!(
        (&item["rule"], &item["rules"]),
        (&json!("requiresApprovalTools"), &json!(["requiresApprovalTools"]))
    );
    let caller = &item["caller"];
    assert_eq!(
        [&caller["principal"], &caller["project"], &caller["door"], &caller["agent"]],
        [&json!("local"), &json!("default"), &json!("http"), &Value::Null],
        "{item}"
    );
    assert!(item["expiresAt"].is_string() && item["scheduledFor"].is_null() && item["createdAt"].is_string());
    assert_eq!(
        [&item["attempts"], &item["agentPath"], &item["provider"]],
        [&json!(0), &json!([]), &json!("test")]
    );
    assert_eq!(item["argumentsBytes"], json!(exact.len() - "\"arguments\":".len()));
    assert!(item.get("decision").is_none() && item.get("decidedBy").is_none(), "{item}");
    // The call itself says what it waits for.
    let waits = server.get(&format!("/api/v1/calls/{call}")).json();
    assert_eq!(
        [&waits["state"], &waits["approvalId"], &waits["error"]["code"]],
        [&json!("PENDING_APPROVAL"), &json!(approval), &json!("APPROVAL_REQUIRED")],
        "{waits}"
    );
}

#[test]
fn apr_3_a_yes_runs_the_call_once_and_its_outcome_is_there_by_its_id() {
    let home = home("test__count");
    let server = home.serve();
    let (call, approval) = held(&server, "test__count", &count("a"));
    assert!(counted(&home).is_empty());
    let yes = decide(&server.admin(), &approval, &json!({ "approved": true, "reason": "looks fine" }));
    assert_eq!(yes.status, 200, "{yes:?}");
    let item = yes.json();
    assert_eq!(
        [&item["decidedBy"], &item["decidedVia"], &item["decision"]["approved"], &item["decision"]["scope"]],
        [&json!("person"), &json!("http"), &json!(true), &json!("once")],
        "{item}"
    );
    let reply = over(&server.client(), &call);
    assert_eq!((&reply["ok"], &reply["result"]), (&json!(true), &json!({ "counted": "a" })), "{reply}");
    assert_eq!(
        [&reply["state"], &reply["approvalId"], &reply["extras"]["approvedBy"]],
        [&json!("COMPLETED_SUCCESS"), &json!(approval), &json!("person")],
        "{reply}"
    );
    assert_eq!(counted(&home), ["a"]);
    // What was decided stands, and the answer shows it.
    let again = decide(&server.admin(), &approval, &json!({ "approved": false }));
    assert_eq!(code(&again), (409, "ALREADY_DECIDED".into()));
    let stands = &again.json()["error"]["details"]["approval"];
    assert_eq!((&stands["id"], &stands["decidedBy"]), (&json!(approval), &json!("person")), "{again:?}");
    assert_eq!(stands["decision"]["reason"], "looks fine");
    // The outcome was given, so the same request is a new one.
    let (other, _) = held(&server, "test__count", &count("a"));
    assert_ne!(other, call);
    assert_eq!(counted(&home), ["a"]);
}

#[test]
fn apr_3_a_denial_is_answered_with_its_reason_and_nothing_runs() {
    let home = home("test__count");
    let server = home.serve();
    let (call, approval) = held(&server, "test__count", &count("a"));
    let no = decide(&server.admin(), &approval, &json!({ "approved": false, "reason": "not on a Friday" }));
    assert_eq!((no.status, &no.json()["state"]), (200, &json!("REJECTED_BY_USER")), "{no:?}");
    let reply = over(&server.client(), &call);
    assert_eq!((&reply["ok"], &reply["state"]), (&json!(false), &json!("REJECTED_BY_USER")), "{reply}");
    assert_eq!(reply["error"]["code"], "REJECTED_BY_USER", "{reply}");
    assert!(reply["error"]["message"].as_str().unwrap().contains("not on a Friday"), "{reply}");
    assert!(counted(&home).is_empty());
}

#[test]
fn apr_3_other_arguments_are_checked_again_and_the_caller_learns_what_ran() {
    let home = home("test__count");
    let server = home.serve();
    let (call, approval) = held(&server, "test__count", &count("a"));
    let wrong =
        decide(&server.admin(), &approval, &json!({ "approved": true, "modifiedArgs": { "file": 1 } }));
    assert_eq!(code(&wrong), (400, "INVALID_ARGUMENTS".into()));
    let errors = &wrong.json()["error"]["details"]["errors"];
    assert_eq!(errors[0]["field"], "/file", "{wrong:?}");
    let path = format!("/api/v1/approvals/{approval}");
    assert_eq!(server.get_as_admin(&path).json()["state"], "PENDING_APPROVAL", "nothing was decided");

    let given = json!({ "approved": true, "modifiedArgs": count("b") });
    let yes = decide(&server.admin(), &approval, &given);
    assert_eq!((yes.status, &yes.json()["decision"]["modifiedArgs"]), (200, &count("b")), "{yes:?}");
    assert_eq!(yes.json()["arguments"], count("a"), "what was asked is still there");
    let reply = over(&server.client(), &call);
    assert_eq!(reply["extras"]["executedArguments"], count("b"), "{reply}");
    assert_eq!(counted(&home), ["b"]);
}

#[test]
fn apr_3_a_decision_that_cannot_be_read_decides_nothing() {
    let home = home("test__count");
    let server = home.serve();
    let (_, approval) = held(&server, "test__count", &count("a"));
    let path = format!("/api/v1/approvals/{approval}/decision");
    for body in [
        "",
        "[]",
        "yes",
        "{}",
        r#"{"approved":"true"}"#,
        r#"{"approved":true,"approved":false}"#,
        r#"{"approved":true,"modifiedArgs":{"text":"a","text":"b"}}"#,
        r#"{"approved":true,"modifiedArgs":[]}"#,
        r#"{"approved":false,"modifiedArgs":{}}"#,
        r#"{"approved":true,"scope":"forever"}"#,
        r#"{"approved":false,"scope":"always"}"#,
        r#"{"approved":true,"via":"cli"}"#,
    ] {
        let answer = send(&server.admin(), Method::POST, &path, &[], body);
        assert_eq!(code(&answer), (400, "INVALID_ARGUMENTS".into()), "{body}: {answer:?}");
    }
    let item = server.get_as_admin(&format!("/api/v1/approvals/{approval}")).json();
    assert_eq!(item["state"], "PENDING_APPROVAL", "{item}");
}

#[test]
fn apr_7_denied_expired_withdrawn_and_unknown_are_different_answers() {
    let home = TestDir::with_test_tools().config(
        "approvals: { requiresApprovalTools: [test__count], approvalTimeoutMs: 1000 }\n\
         projects: { slow: { workspace: ., approvals: { requiresApprovalTools: [test__count] } } }\n",
    );
    let server = home.serve();
    let admin = server.admin();
    let (call, approval) = held(&server, "test__count", &count("late"));
    let reply = over(&server.client(), &call);
    assert_eq!(
        (&reply["state"], &reply["error"]["code"]),
        (&json!("REJECTED_BY_TIMEOUT"), &json!("REJECTED_BY_TIMEOUT"))
    );
    let late = decide(&admin, &approval, &json!({ "approved": true }));
    assert_eq!(code(&late), (410, "REJECTED_BY_TIMEOUT".into()));
    assert_eq!(late.json()["error"]["details"]["approval"]["state"], "REJECTED_BY_TIMEOUT", "{late:?}");

    let body = json!({ "tool": "test__count", "arguments": count("gone"), "project": "slow" });
    let (call, approval) = ids(&post(&server.client(), "/api/v1/calls", &body));
    let gone = delete(&server.client(), &format!("/api/v1/calls/{call}"));
    assert_eq!((gone.status, &gone.json()["canceled"]), (200, &json!(true)), "{gone:?}");
    let reply = over(&server.client(), &call);
    assert_eq!(
        (&reply["state"], &reply["error"]["code"]),
        (&json!("CANCELLED_BY_SYSTEM"), &json!("CANCELED")),
        "{reply}"
    );
    assert_eq!(
        code(&decide(&admin, &approval, &json!({ "approved": true }))),
        (409, "ALREADY_DECIDED".into())
    );

    let unknown = "appr_00000000000000000000000000000000";
    assert_eq!(code(&decide(&admin, unknown, &json!({ "approved": true }))), (404, "NOT_FOUND".into()));
    assert_eq!(
        code(&decide(&admin, "garbage", &json!({ "approved": true }))),
        (400, "INVALID_ARGUMENTS".into())
    );
    assert_eq!(code(&get(&admin, &format!("/api/v1/approvals/{unknown}"))), (404, "NOT_FOUND".into()));
    // An agent learns nothing, not even what there is.
    for approval in [approval.as_str(), unknown, "garbage"] {
        let answer = decide(&server.client(), approval, &json!({ "approved": true }));
        assert_eq!(code(&answer), (403, "PERMISSION_DENIED".into()), "{approval}");
    }
    assert!(counted(&home).is_empty());
}

#[test]
fn apr_7_a_call_that_waits_is_withdrawn_by_its_caller_or_an_administrator() {
    let home = home("test__count");
    let server = home.serve();
    let (call, approval) = held(&server, "test__count", &count("a"));
    let cancel = format!("/api/v1/approvals/{approval}/cancel");
    let gone = post(&server.client(), &cancel, &Value::Null);
    assert_eq!((gone.status, &gone.json()["state"]), (200, &json!("CANCELLED_BY_SYSTEM")), "{gone:?}");
    assert_eq!(gone.json()["message"], "withdrawn by local");
    let again = post(&server.admin(), &cancel, &Value::Null);
    assert_eq!(code(&again), (409, "ALREADY_DECIDED".into()), "{again:?}");
    assert_eq!(over(&server.client(), &call)["state"], "CANCELLED_BY_SYSTEM");

    let theirs = json!({ "tool": "test__count", "arguments": count("b") });
    let (call, approval) = ids(&post(&server.admin(), "/api/v1/calls", &theirs));
    for path in [format!("/api/v1/approvals/{approval}/cancel"), format!("/api/v1/calls/{call}/cancel")] {
        assert_eq!(code(&post(&server.client(), &path, &Value::Null)).0, 404, "another's: {path}");
    }
    assert_eq!(delete(&server.client(), &format!("/api/v1/calls/{call}")).status, 404);
    assert_eq!(
        server.get_as_admin(&format!("/api/v1/approvals/{approval}")).json()["state"],
        "PENDING_APPROVAL"
    );
    assert_eq!(delete(&server.admin(), &format!("/api/v1/calls/{call}")).status, 200);
}
