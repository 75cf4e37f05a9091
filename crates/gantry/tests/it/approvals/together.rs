//! Several who wait for one call, one who leaves, and what a person is never asked to say yes to unseen.

use super::held::{Held, approve, ask, call, hold, item, line, lines, over, record, text};
use crate::passthrough::{Door, Talk};
use gantry_testkit::{Server, TestDir};
use http::Method;
use serde_json::{Value, json};

/// The tool that takes its time, and says in a file that it has begun and that it has ended.
const SLOW: &str = "test__slow_write";

/// Longer than any caller waits.
const FOREVER: u64 = 600_000;

fn home(more: &Value) -> TestDir {
    let mut approvals = json!({ "requiresApprovalTools": ["test__slow_write", "test__count"] });
    for (name, value) in more.as_object().into_iter().flatten() {
        approvals[name] = value.clone();
    }
    TestDir::with_test_tools().config(&json!({ "approvals": approvals }).to_string())
}

fn slow(ms: u64) -> Value {
    json!({ "ms": ms, "file": "counted" })
}

/// The one call that waits.
#[track_caller]
fn pending(server: &Server) -> Held {
    let mut found = Value::Null;
    server.eventually("a call waits", || {
        found = server.get_as_admin("/api/v1/approvals?state=PENDING_APPROVAL").json()["items"][0].clone();
        !found.is_null()
    });
    Held { id: text(&found["id"]), call: text(&found["callId"]) }
}

/// Says yes, and waits until it runs.
#[track_caller]
fn begin(home: &TestDir, server: &Server, held: &Held) {
    approve(server, held);
    server.eventually("it has begun", || lines(home) == ["begun"]);
}

/// A client that makes the slow call and waits.
fn waiting(server: &Server, ms: u64) -> (Talk, u64) {
    let mut client = Talk::legacy_with(Door::Http(server, "/mcp"), &json!({}));
    let params = json!({ "name": SLOW, "arguments": slow(ms), "_meta": { "progressToken": "p" } });
    let id = client.begin("tools/call", &params.to_string());
    // It is answered that the call waits, so it does.
    client.hear("notifications/progress");
    (client, id)
}

#[test]
fn apr_5_one_who_withdraws_a_call_that_runs_does_not_take_it_from_another_who_waits() {
    let home = home(&json!({}));
    let server = home.serve();
    let (mut maker, made) = waiting(&server, 3000);
    let held = pending(&server);
    let (mut other, joined) = waiting(&server, 3000);
    begin(&home, &server, &held);
    maker.tell("notifications/cancelled", &json!({ "requestId": made }));
    assert_eq!(other.end_call(joined), "written");
    assert_eq!(over(&server, &held)["state"], "COMPLETED_SUCCESS");
    assert_eq!(lines(&home), ["begun", "ended"]);
}

#[test]
fn apr_7_one_who_waits_alone_and_withdraws_a_call_that_runs_stops_it() {
    let home = home(&json!({}));
    let server = home.serve();
    let (mut client, id) = waiting(&server, FOREVER);
    let held = pending(&server);
    begin(&home, &server, &held);
    client.tell("notifications/cancelled", &json!({ "requestId": id }));
    assert_eq!(over(&server, &held)["state"], "COMPLETED_FAILURE");
    assert_eq!(record(&server, &held.call)["error"]["code"], "CANCELED");
    assert_eq!(lines(&home), ["begun"]);
}

#[test]
fn apr_5_a_repeated_call_that_runs_already_is_answered_so() {
    let home = home(&json!({}));
    let server = home.serve();
    let held = hold(&server, None, SLOW, &slow(FOREVER));
    begin(&home, &server, &held);
    let again = call(&server, None, &json!({ "tool": SLOW, "arguments": slow(FOREVER) }));
    let reply = again.json();
    assert_eq!((again.status, &reply["state"], &reply["id"]), (202, &json!("EXECUTING"), &json!(held.call)));
    let outcome = text(&reply["error"]["message"]);
    assert!(outcome.contains(&format!("was approved and runs as {}", held.id)), "{reply}");
    assert!(!outcome.contains("Nothing was run"), "{reply}");
    assert_eq!(reply["extras"]["effect"], "possible", "{reply}");
    assert_eq!(lines(&home), ["begun"]);
}

#[test]
fn apr_7_a_run_that_is_canceled_takes_with_it_what_another_process_was_asked_for() {
    let home = home(&json!({}));
    let server = home.serve();
    let held = hold(&server, None, SLOW, &slow(FOREVER));
    server.kill();
    let server = home.serve();
    begin(&home, &server, &held);
    let run = text(&item(&server, &held.id)["caller"]["session"]);
    let path = format!("/api/v1/runs/{run}/cancel");
    let canceled = ask(&server, Some(&server.key), Method::POST, &path, &Value::Null);
    assert_eq!((canceled.status, &canceled.json()["canceled"]), (200, &json!(true)), "{canceled:?}");
    assert_eq!(over(&server, &held)["state"], "COMPLETED_FAILURE");
    assert_eq!(record(&server, &held.call)["error"]["code"], "CANCELED");
    assert_eq!(lines(&home), ["begun"]);
}

/// A client of the person of the folder that can show forms, and can do more.
fn person(home: &TestDir, elicitation: &Value) -> Talk {
    Talk::legacy_with(Door::Stdio(home, &[]), &json!({ "elicitation": elicitation }))
}

#[test]
fn apr_6_a_form_never_asks_about_arguments_that_it_does_not_show_whole() {
    let home = home(&json!({ "delivery": "form" }));
    let server = home.serve();
    let (short, long) = ("s".repeat(3000), "l".repeat(5000));
    let mut client = person(&home, &json!({ "form": {} }));
    let id = client.begin_call("test__count", &line(&short));
    let form = client.hear("elicitation/create");
    assert!(text(&form["params"]["message"]).contains(&short), "{form}");
    client.answer(&form, &json!({ "action": "accept", "content": { "decision": "approve" } }));
    client.end_call(id);
    let id = client.begin_call("test__count", &line(&long));
    approve(&server, &pending(&server));
    client.end_call(id);
    assert_eq!(client.heard("elicitation/create"), [] as [Value; 0], "it was not asked by a form");
    assert_eq!(lines(&home), [short, long]);
}

#[test]
fn apr_6_what_a_form_does_not_show_whole_is_asked_about_on_the_page() {
    let home = home(&json!({ "delivery": "form" }));
    let server = home.serve();
    let mut client = person(&home, &json!({ "form": {}, "url": {} }));
    let id = client.begin_call("test__count", &line(&"l".repeat(5000)));
    let asked = client.hear("elicitation/create");
    let held = pending(&server);
    assert_eq!(asked["params"]["mode"], "url", "{asked}");
    assert!(text(&asked["params"]["url"]).ends_with(&format!("/approvals/{}", held.id)), "{asked}");
    client.answer(&asked, &json!({ "action": "accept" }));
    approve(&server, &held);
    client.end_call(id);
}
