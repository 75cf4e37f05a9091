//! The API: every operation that is documented, lists by pages, errors in JSON, and what is there to be scraped.

use super::error;
use gantry_testkit::server::send;
use gantry_testkit::{Server, TestDir};
use http::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[test]
fn every_documented_operation_answers_and_the_rest_of_each_path_does_not() {
    let home = TestDir::new();
    let server = home.serve();
    let document = server.get("/api/openapi.json").json();
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().expect("paths");
    let named: BTreeSet<&str> = paths.keys().map(String::as_str).collect();
    let expected = BTreeSet::from([
        "/api/openapi.json",
        "/api/v1/agents",
        "/api/v1/agents/{name}",
        "/api/v1/agents/{name}/activate",
        "/api/v1/agents/{name}/deactivate",
        "/api/v1/approvals",
        "/api/v1/approvals/{id}",
        "/api/v1/approvals/{id}/cancel",
        "/api/v1/approvals/{id}/decision",
        "/api/v1/audit",
        "/api/v1/audit/verify",
        "/api/v1/calls",
        "/api/v1/calls/{id}",
        "/api/v1/calls/{id}/cancel",
        "/api/v1/config",
        "/api/v1/config/apply",
        "/api/v1/config/reload",
        "/api/v1/events",
        "/api/v1/explain",
        "/api/v1/grants",
        "/api/v1/grants/{id}",
        "/api/v1/keys",
        "/api/v1/keys/{id}",
        "/api/v1/lock",
        "/api/v1/policy/test",
        "/api/v1/projects",
        "/api/v1/queues",
        "/api/v1/runs",
        "/api/v1/runs/{id}",
        "/api/v1/runs/{id}/cancel",
        "/api/v1/servers",
        "/api/v1/servers/{id}",
        "/api/v1/servers/{id}/restart",
        "/api/v1/tools",
        "/healthz",
        "/metrics",
        "/readyz",
    ]);
    assert_eq!(named, expected);
    let id = "call_00000000000000000000000000000000";
    for (path, operations) in paths {
        let operations: BTreeSet<&str> =
            operations.as_object().expect("operations").keys().map(String::as_str).collect();
        for method in [Method::GET, Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
            let id = if path.contains("runs") { id.replace("call", "run") } else { id.to_owned() };
            let mut target = path.replace("{id}", &id).replace("{name}", "nobody");
            if path.ends_with("events") {
                target.push_str("?follow=false");
            }
            let answer = send(&server.admin(), method.clone(), &target, &[], "");
            let described = operations.contains(method.as_str().to_lowercase().as_str());
            assert_eq!(answer.status != 405, described, "{method} {path}: {answer:?}");
            assert!(!answer.text.contains("there is nothing at"), "{method} {path}: {answer:?}");
        }
    }
}

/// The items of every page of a list, by following its cursor.
fn paged(server: &Server, path: &str, limit: usize) -> Vec<Value> {
    let mut items = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = server.get_as_admin(&format!("{path}?limit={limit}{cursor}")).json();
        let keys: Vec<&str> = page.as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(keys, ["items", "next"], "{page}");
        let these = page["items"].as_array().expect("items");
        assert!(these.len() <= limit, "{page}");
        items.extend_from_slice(these);
        let Some(next) = page["next"].as_str() else { return items };
        assert_eq!(these.len(), limit, "a page that is not the last is full: {page}");
        cursor = format!("&cursor={next}");
    }
}

#[test]
fn lists_have_one_shape_and_are_read_page_by_page() {
    let home = TestDir::new();
    let server = home.serve();
    for n in 0..7 {
        server.call("list_directory", &json!({ "path": ".", "includeHidden": n % 2 == 0 }));
    }
    home.call("list_directory", &json!({ "path": "." }));
    for path in ["/api/v1/tools", "/api/v1/queues", "/api/v1/calls", "/api/v1/audit", "/api/v1/runs"] {
        let page = server.get(path).json();
        assert!(page["items"].is_array() && page["next"].is_null(), "{path}: {page}");
    }
    for (path, total) in [("/api/v1/audit", 8), ("/api/v1/calls", 8), ("/api/v1/runs", 2)] {
        let whole = server.get_as_admin(path).json()["items"].as_array().expect("items").clone();
        assert_eq!(whole.len(), total, "{path}");
        for limit in [1, 3, 8] {
            assert_eq!(paged(&server, path, limit), whole, "{path} by {limit}");
        }
    }
    let newest_first: Vec<_> =
        paged(&server, "/api/v1/audit", 8).iter().map(|row| row["startedAt"].to_string()).collect();
    assert!(newest_first.is_sorted_by(|a, b| a >= b), "{newest_first:?}");
}

#[test]
fn what_cannot_be_answered_is_an_error_in_json_that_says_why() {
    let home = TestDir::new();
    let server = home.serve();
    for path in ["/nothing", "/api", "/api/v2/tools", "/api/v1/nothing", "/mcp/default/routines/x"] {
        let (status, code, message) = error(&server.get(path));
        assert_eq!((status, code.as_str()), (404, "NOT_FOUND"), "{path}");
        assert!(message.contains(path) && message.contains("/api/openapi.json"), "{message}");
    }
    for (path, word) in [
        ("/api/v1/audit?limit=many", "limit"),
        ("/api/v1/audit?cursor=x", "cursor"),
        ("/api/v1/runs?cursor=17", "cursor"),
        ("/api/v1/audit?stat=x", "stat"),
        ("/api/v1/audit?state=DONE", "COMPLETED_SUCCESS"),
        ("/api/v1/audit?since=yesterday", "since"),
        ("/api/v1/runs?limit=-1", "limit"),
        ("/api/v1/explain?tol=x", "tol"),
        ("/api/v1/calls/12", "call"),
        ("/api/v1/runs/call_00000000000000000000000000000000", "run"),
    ] {
        let (status, code, message) = error(&server.get_as_admin(path));
        assert_eq!((status, code.as_str()), (400, "INVALID_ARGUMENTS"), "{path}");
        assert!(message.contains(word), "{path}: {message}");
    }
    for (body, word) in [
        ("", "not valid JSON"),
        ("{", "not valid JSON"),
        ("[]", "not a call"),
        (r#"{"arguments":{}}"#, "tool"),
        (r#"{"tool":"read_file","tool":"delete_file"}"#, "twice"),
        (r#"{"tool":"read_file","argument":{}}"#, "argument"),
        (r#"{"tool":"read_file","mode":"later"}"#, "later"),
    ] {
        let (status, code, message) = error(&server.post("/api/v1/calls", body));
        assert_eq!((status, code.as_str()), (400, "INVALID_ARGUMENTS"), "{body}");
        assert!(message.contains(word), "{body}: {message}");
    }
    let answer = server.request(Method::PUT, "/api/v1/tools", &[], "");
    let (status, _, message) = error(&answer);
    assert_eq!((status, answer.headers["allow"].to_str().unwrap()), (405, "GET,HEAD"));
    assert_eq!(message, "/api/v1/tools does not take PUT; see /api/openapi.json");
}

#[test]
fn obs_2_health_readiness_and_metrics_are_there_to_be_scraped() {
    let home = TestDir::new()
        .config("queues: { files: { concurrent: 2 } }\ntools: { workspace: { queue: files } }\n");
    let server = home.serve();
    assert_eq!(server.get("/healthz").json(), json!({ "status": "ok" }));
    assert_eq!(server.get("/readyz").json(), json!({ "status": "ready" }));
    assert!(server.call("write_file", &json!({ "path": "a.txt", "content": "hi" })).json()["ok"] == true);
    assert!(server.call("read_file", &json!({ "path": "a.txt" })).json()["ok"] == true);
    assert!(server.call("read_file", &json!({ "path": "no.txt" })).json()["ok"] == false);
    assert!(server.call("no_such_tool", &json!({})).json()["ok"] == false);
    let page = server.get("/metrics");
    assert!(page.headers["content-type"].to_str().unwrap().contains("text"), "{page:?}");
    let value = |name: &str, labels: &[&str]| {
        let line = page.text.lines().find(|line| {
            line.starts_with(&format!("{name}{{")) && labels.iter().all(|label| line.contains(label))
        });
        line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
    };
    let calls = "gantry_tool_calls_total";
    assert_eq!(value(calls, &["namespace=\"workspace\"", "status=\"ok\""]), Some(2.0), "{}", page.text);
    assert_eq!(
        value(calls, &["namespace=\"workspace\"", "code=\"FILE_NOT_FOUND\""]),
        Some(1.0),
        "{}",
        page.text
    );
    assert_eq!(value(calls, &["code=\"TOOL_NOT_FOUND\"", "status=\"failed\""]), Some(1.0), "{}", page.text);
    assert_eq!(value("gantry_tool_latency_seconds_count", &["workspace"]), Some(3.0), "{}", page.text);
    assert_eq!(value("gantry_queue_in_use", &["queue=\"files\""]), Some(0.0), "{}", page.text);
    for name in ["gantry_ledger_entries", "gantry_sessions_opened_total", "gantry_cache_hits_total"] {
        assert!(page.text.contains(&format!("\n{name} ")), "{name} is not in\n{}", page.text);
    }
    assert!(page.text.ends_with("# EOF\n"));
}
