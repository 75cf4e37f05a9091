//! The order of the stages, which is the same for every door.

use super::{file, lines, post, post_as_person};
use crate::results::mcp_call;
use gantry_testkit::TestDir;
use serde_json::{Value, json};
use std::thread;

#[test]
fn cal_2_every_door_leads_through_the_same_policies_and_the_same_ledger() {
    let home = TestDir::with_test_tools().config(
        "policies: [{ name: no-counts, tools: [test__count], decide: deny, reason: nobody counts here }]\n",
    );
    let count = json!({ "file": file(&home, "count.txt"), "text": "x" });
    let by_itself = home.call("test__count", &count);
    let server = home.serve();
    let by_cli = home.call("test__count", &count);
    let by_http = server.call("test__count", &count).json();
    for reply in [&by_itself, &by_cli, &by_http] {
        assert_eq!(reply["error"]["code"], "PERMISSION_DENIED", "{reply}");
        assert_eq!(reply["error"]["message"], "denied by policy no-counts: nobody counts here");
    }
    let by_mcp = mcp_call(&server, "/mcp", "test__count", &count);
    assert_eq!(by_mcp["result"]["isError"], true, "{by_mcp}");
    let by_tool = server.call("test__nested", &json!({ "tool": "test__count", "arguments": count })).json();
    let text = "(tool failed: denied by policy no-counts: nobody counts here)";
    assert_eq!(by_mcp["result"]["content"][0]["text"], text);
    assert_eq!(by_tool["result"], text);
    assert!(!home.path().join("count.txt").exists());
    let rows = server.get_as_admin("/api/v1/audit?tool=test__count").json();
    let rows = rows["items"].as_array().unwrap();
    let doors: Vec<&str> = rows.iter().map(|row| row["door"].as_str().unwrap()).collect();
    assert_eq!(doors, ["http", "mcp", "http", "cli", "cli"], "newest first");
    assert!(rows.iter().all(|row| row["state"] == "REFUSED" && row["error"]["code"] == "PERMISSION_DENIED"));
}

#[test]
fn cal_2_authorisation_comes_before_validation_and_validation_before_approval() {
    let home = TestDir::with_test_tools().config(
        r"
policies:
  - { name: no-counts, tools: [test__count], decide: deny }
  - { name: ask-echo, tools: [test__echo], decide: ask }
",
    );
    let code = |tool: &str, arguments: Value| home.call(tool, &arguments)["error"]["code"].take();
    assert_eq!(code("test__count", json!({ "file": 7 })), "PERMISSION_DENIED", "invalid, but denied first");
    assert_eq!(
        code("test__echo", json!({ "text": 7 })),
        "INVALID_ARGUMENTS",
        "nobody is asked about nonsense"
    );
    assert_eq!(code("test__echo", json!({ "text": "x" })), "APPROVAL_REQUIRED");
    // A yes does not make nonsense valid, nor a denied call allowed.
    let yes = |tool: &str, arguments: Value| home.call_yes(tool, &arguments)["error"]["code"].take();
    assert_eq!(yes("test__echo", json!({ "text": 7 })), "INVALID_ARGUMENTS");
    assert_eq!(yes("test__count", json!({ "file": file(&home, "c"), "text": "x" })), "PERMISSION_DENIED");
    assert_eq!(lines(&home, "c"), 0);
}

#[test]
fn cal_2_a_cached_answer_waits_for_approval_like_the_first_one() {
    let home = TestDir::with_test_tools()
        .config("approvals: { requiresApprovalTools: [test__tick] }\n")
        .settings(&json!({ "cache": 60_000 }));
    let server = home.serve();
    let tick = json!({ "file": file(&home, "ticks.txt"), "ms": 0 });
    let call = |approve: bool| {
        post_as_person(&server, &json!({ "tool": "test__tick", "arguments": tick, "approve": approve }))
            .json()
    };
    assert_eq!(call(true)["result"], "1");
    let refused = call(false);
    assert_eq!(refused["error"]["code"], "APPROVAL_REQUIRED", "{refused}");
    let approved = call(true);
    assert_eq!((&approved["result"], &approved["extras"]["cached"]), (&json!("1"), &json!(true)));
    assert_eq!(lines(&home, "ticks.txt"), 1);
}

#[test]
fn cal_2_a_cached_answer_is_not_given_to_a_caller_whom_a_policy_denies() {
    let home = TestDir::with_test_tools()
        .config(
            r#"
agents: { good: {}, bad: {} }
policies: [{ name: not-bad, tools: ["test__*"], when: "agent == 'bad'", decide: deny }]
"#,
        )
        .settings(&json!({ "cache": 60_000 }));
    let server = home.serve();
    let tick = json!({ "file": file(&home, "ticks.txt"), "ms": 0 });
    let call = |agent: &str| {
        post(&server, &json!({ "tool": "test__tick", "arguments": tick, "agent": agent })).json()
    };
    assert_eq!(call("good")["result"], "1");
    assert_eq!(call("good")["extras"]["cached"], true);
    assert_eq!(call("bad")["error"]["code"], "PERMISSION_DENIED");
}

#[test]
fn cal_2_a_held_call_and_a_cached_answer_never_reach_the_queue() {
    let home = TestDir::with_test_tools()
        .config(
            "queues: { one: { concurrent: 1, maxWaiting: 1 } }\napprovals: { requiresApprovalTools: [test__count] }\n",
        )
        .settings(&json!({ "queue": "one", "toolsCache": { "tick": 60_000 } }));
    let server = home.serve();
    let tick = json!({ "file": file(&home, "ticks.txt"), "ms": 0 });
    assert_eq!(server.call("test__tick", &tick).json()["result"], "1");
    let holder = crate::queues::occupy(&server, "one");
    let held = server.call("test__count", &json!({ "file": file(&home, "c"), "text": "x" })).json();
    assert_eq!(held["error"]["code"], "APPROVAL_REQUIRED", "answered although the queue is busy");
    let cached = server.call("test__tick", &tick).json();
    assert_eq!((&cached["result"], &cached["extras"]["cached"]), (&json!("1"), &json!(true)));
    let queue = crate::queues::queue(&server, "one");
    assert_eq!((&queue["admitted"], &queue["depth"], &queue["rejected"]), (&json!(2), &json!(0), &json!(0)));
    crate::queues::cancel(&server, &holder);
}

#[test]
fn cal_2_the_configured_limit_is_for_running_and_a_callers_own_for_waiting_too() {
    let home = TestDir::with_test_tools()
        .config("queues: { one: { concurrent: 1 } }\ndefaults: { toolTimeout: 1000 }\n")
        .settings(
            &json!({ "toolsQueue": { "sleep": "one", "echo": "one" }, "toolsTimeout": { "sleep": 60000 } }),
        );
    let server = home.serve();
    let holder = crate::queues::occupy(&server, "one");
    let late = json!({ "tool": "test__echo", "arguments": { "text": "late" } });
    let hasty = json!({ "tool": "test__echo", "arguments": { "text": "hasty" }, "timeoutMs": 50 });
    thread::scope(|scope| {
        let waiting = scope.spawn(|| post(&server, &late).json());
        server.eventually("the call waits", || crate::queues::queue(&server, "one")["depth"] == 1);
        let given_up = post(&server, &hasty).json();
        assert_eq!((&given_up["error"]["code"], &given_up["state"]), (&json!("TIMEOUT"), &json!("REFUSED")));
        assert_eq!(crate::queues::queue(&server, "one")["depth"], 1, "it gave its place back");
        let begun = std::time::Instant::now();
        server.eventually("the other has waited for longer than its limit", || {
            begun.elapsed().as_millis() > 1000
        });
        crate::queues::cancel(&server, &holder);
        assert_eq!(waiting.join().unwrap()["result"], "late");
    });
}

#[test]
fn cal_2_the_size_is_capped_before_the_budget_is_charged() {
    let home = TestDir::with_test_tools()
        .config("defaults: { toolResponseMaxBytes: 1000, contextBudgetTokens: 200 }\n");
    let reply = home.call("test__flood", &json!({ "bytes": 100_000 }));
    assert_eq!(reply["ok"], true, "the handle fits, the output would not: {reply}");
    assert_eq!(reply["result"]["tool_output"]["tokens"], 25_000);
}

#[test]
fn cal_2_a_reply_is_on_record_when_it_arrives() {
    let home = TestDir::with_test_tools();
    let server = home.serve();
    for (tool, arguments, state) in [
        ("test__noop", json!({}), "COMPLETED_SUCCESS"),
        ("test__count", json!({ "file": file(&home, "c"), "text": "x" }), "COMPLETED_SUCCESS"),
        ("test__fail", json!({ "text": "boom" }), "COMPLETED_FAILURE"),
        ("test__echo", json!({ "text": 7 }), "REFUSED"),
        ("test__nothing", json!({}), "REFUSED"),
    ] {
        let reply = server.call(tool, &arguments).json();
        assert_eq!(reply["state"], state, "{reply}");
        let found = server.get(&format!("/api/v1/calls/{}", reply["id"].as_str().unwrap()));
        assert_eq!(found.status, 200, "{tool}");
        assert_eq!(found.json()["record"]["state"], state);
    }
}
