//! The one shape of tools, replies and errors, for every source and entry point.

use super::{file, post};
use gantry_testkit::TestDir;
use gantry_testkit::server::Answer;
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().map(|members| members.keys().map(String::as_str).collect()).unwrap_or_default()
}

#[test]
fn cal_1_tools_of_every_source_are_listed_and_answered_alike() {
    let home = TestDir::with_test_tools();
    home.write("a.txt", "hi");
    let tools = home.run(["tools", "--format", "json"]).json();
    let expected = BTreeSet::from([
        "annotations",
        "description",
        "inputSchema",
        "name",
        "outputSchema",
        "provider",
        "reason",
        "status",
        "title",
    ]);
    let mut kinds = BTreeSet::new();
    for tool in tools.as_array().unwrap() {
        assert_eq!(keys(tool), expected, "{tool}");
        assert_eq!(keys(&tool["provider"]), BTreeSet::from(["id", "kind", "namespace"]), "{tool}");
        kinds.insert(tool["provider"]["kind"].as_str().unwrap());
    }
    assert_eq!(kinds, BTreeSet::from(["builtin", "mcp"]));
    let own = home.call("read_file", &json!({ "path": "a.txt" }));
    let other = home.call("test__echo", &json!({ "text": "hi" }));
    assert_eq!(keys(&own), keys(&other));
    assert_eq!((&own["kind"], &own["namespace"]), (&json!("builtin"), &json!("workspace")));
    assert_eq!((&other["kind"], &other["namespace"]), (&json!("mcp"), &json!("test")));
}

#[test]
fn cal_3_a_success_has_the_same_fields_by_command_line_and_http() {
    let home = TestDir::with_test_tools();
    let fields = BTreeSet::from(["extras", "id", "kind", "latencyMs", "namespace", "ok", "result", "state"]);
    let by_cli = home.call("test__echo", &json!({ "text": "hi" }));
    let server = home.serve();
    let answer = server.call("test__echo", &json!({ "text": "hi" }));
    assert_eq!(answer.status, 200);
    for reply in [&by_cli, &answer.json()] {
        assert_eq!(keys(reply), fields, "{reply}");
        assert_eq!((&reply["ok"], &reply["result"]), (&json!(true), &json!("hi")));
        assert!(reply["latencyMs"].is_u64());
        assert_eq!(reply["extras"], json!({ "tool": "test__echo" }));
        assert!(reply["id"].as_str().unwrap().starts_with("call_"));
    }
    // A tool that gives JSON is not given back as text.
    let counted = server.call("test__count", &json!({ "file": file(&home, "c"), "text": "x" })).json();
    assert_eq!(counted["result"], json!({ "counted": "x" }));
}

#[test]
fn cal_3_a_failure_has_the_same_fields_by_command_line_and_http() {
    let home = TestDir::with_test_tools();
    let fields = BTreeSet::from(["error", "extras", "id", "kind", "latencyMs", "namespace", "ok", "state"]);
    let ran = home.run(["call", "test__fail", r#"{"text":"boom"}"#, "--json"]);
    assert_eq!(ran.code, 1);
    let server = home.serve();
    let answer = server.call("test__fail", &json!({ "text": "boom" }));
    assert_eq!(answer.status, 200, "a call that was tried and failed is a good answer");
    for reply in [ran.json(), answer.json()] {
        assert_eq!(keys(&reply), fields, "{reply}");
        assert_eq!(reply["error"], json!({ "code": "EXECUTION_ERROR", "message": "boom" }));
        assert_eq!(reply["extras"], json!({ "tool": "test__fail", "effect": "none" }));
        assert_eq!(reply["state"], "COMPLETED_FAILURE");
    }
    let talk = home.run(["call", "test__fail", r#"{"text":"boom"}"#]);
    assert_eq!((talk.code, talk.stdout.as_str()), (1, ""), "what failed is no data");
    assert!(talk.stderr.contains("error: boom [EXECUTION_ERROR]"), "{}", talk.stderr);
}

#[test]
fn cal_3_each_code_has_its_status_and_is_in_the_documented_list() {
    let home = TestDir::with_test_tools().config(
        r"
defaults: { contextBudgetTokens: 100 }
queues: { one: { concurrent: 1, maxWaiting: 1 } }
policies: [{ name: no-ticks, tools: [test__tick], decide: deny }]
",
    );
    home.write("a.txt", "hi");
    let home = home.settings(&json!({ "toolsQueue": { "sleep": "one" } }));
    let server = home.serve();
    let document = server.get("/api/openapi.json").text;
    let check = |code: &str, status: u16, answer: &Answer| {
        let reply = answer.json();
        assert_eq!((&reply["ok"], &reply["error"]["code"]), (&json!(false), &json!(code)), "{reply}");
        assert_eq!(answer.status, status, "{code}");
        assert!(!reply["error"]["message"].as_str().unwrap().is_empty());
        assert!(document.contains(&format!("\"{code}\"")), "{code} is not documented");
    };
    for (code, status, tool, arguments) in [
        ("TOOL_NOT_FOUND", 404, "test__nothing", json!({})),
        ("INVALID_ARGUMENTS", 422, "test__echo", json!({ "text": 7 })),
        ("INVALID_PATH", 200, "read_file", json!({ "path": "../up.txt" })),
        ("FILE_NOT_FOUND", 200, "read_file", json!({ "path": "missing.txt" })),
        ("PERMISSION_DENIED", 403, "test__tick", json!({})),
        ("APPROVAL_REQUIRED", 202, "delete_file", json!({ "path": "a.txt" })),
        ("EXECUTION_ERROR", 200, "test__fail", json!({ "text": "boom" })),
        ("TOOL_QUARANTINED", 503, "test__bad_schema", json!({})),
        ("INTERNAL_ERROR", 500, "test__panic", json!({})),
        ("BUDGET_EXCEEDED", 200, "test__echo", json!({ "text": "x".repeat(1000) })),
    ] {
        check(code, status, &server.call(tool, &arguments));
    }
    let keyed =
        |text: &str| json!({ "tool": "test__echo", "arguments": { "text": text }, "idempotencyKey": "k" });
    assert_eq!(post(&server, &keyed("a")).status, 200);
    check("IDEMPOTENCY_CONFLICT", 409, &post(&server, &keyed("b")));
    let late = json!({ "tool": "test__sleep", "arguments": { "ms": 60_000 }, "timeoutMs": 1 });
    check("TIMEOUT", 200, &post(&server, &late));
    let running = crate::queues::occupy(&server, "one");
    let waiting =
        crate::queues::defer(&server, &json!({ "tool": "test__sleep", "arguments": { "ms": 60_000 } }));
    server.eventually("one call waits", || crate::queues::queue(&server, "one")["depth"] == 1);
    check("QUEUE_FULL", 429, &server.call("test__sleep", &json!({ "ms": 0 })));
    for id in [&waiting, &running] {
        crate::queues::cancel(&server, id);
        check("CANCELED", 200, &crate::queues::outcome(&server, id));
    }
}
