//! The pipeline: one order for every door, the shape of replies, validation, time limits and the response cache.

use crate::results::{mcp_call, mcp_tools};
use gantry_testkit::server::{Answer, send};
use gantry_testkit::{Home, Server};
use http::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::thread;

/// A file of the home as an argument.
pub(crate) fn file(home: &Home, name: &str) -> Value {
    json!(home.path().join(name))
}

/// How many lines a file of the home has; none if it is not there.
pub(crate) fn lines(home: &Home, name: &str) -> usize {
    std::fs::read_to_string(home.path().join(name)).map_or(0, |text| text.lines().count())
}

/// `POST /api/v1/calls` with any body, as the person who has the key.
pub(crate) fn post_as_person(server: &Server, body: &Value) -> Answer {
    let headers = [("content-type", "application/json")];
    send(&server.admin(), Method::POST, "/api/v1/calls", &headers, &body.to_string())
}

/// `POST /api/v1/calls` with any body, without a key.
pub(crate) fn post(server: &Server, body: &Value) -> Answer {
    server.post("/api/v1/calls", &body.to_string())
}

/// The newest row of the audit trail for a tool.
fn newest(server: &Server, tool: &str) -> Value {
    server.get_as_admin(&format!("/api/v1/audit?tool={tool}&limit=1")).json()["items"][0].take()
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().map(|members| members.keys().map(String::as_str).collect()).unwrap_or_default()
}

#[test]
fn cal_1_tools_of_every_source_are_listed_and_answered_alike() {
    let home = Home::with_test_tools();
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
fn cal_2_every_door_leads_through_the_same_policies_and_the_same_ledger() {
    let home = Home::with_test_tools().config(
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
    let home = Home::with_test_tools().config(
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
    let home = Home::with_test_tools()
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
    let home = Home::with_test_tools()
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
    let home = Home::with_test_tools()
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
    let home = Home::with_test_tools()
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
    let home = Home::with_test_tools()
        .config("defaults: { toolResponseMaxBytes: 1000, contextBudgetTokens: 200 }\n");
    let reply = home.call("test__flood", &json!({ "bytes": 100_000 }));
    assert_eq!(reply["ok"], true, "the handle fits, the output would not: {reply}");
    assert_eq!(reply["result"]["tool_output"]["tokens"], 25_000);
}

#[test]
fn cal_2_a_reply_is_on_record_when_it_arrives() {
    let home = Home::with_test_tools();
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

#[test]
fn cal_3_a_success_has_the_same_fields_by_command_line_and_http() {
    let home = Home::with_test_tools();
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
    let home = Home::with_test_tools();
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
    let home = Home::with_test_tools().config(
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
        ("APPROVAL_REQUIRED", 403, "delete_file", json!({ "path": "a.txt" })),
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

#[test]
fn cal_4_every_failing_field_is_named() {
    let home = Home::new();
    let reply = home.call("write_file", &json!({ "path": 1, "colour": "red", "createDirs": "yes" }));
    assert_eq!(reply["error"]["code"], "INVALID_ARGUMENTS");
    let errors = reply["error"]["details"]["errors"].as_array().unwrap();
    let fields: BTreeSet<&str> = errors.iter().map(|error| error["field"].as_str().unwrap()).collect();
    assert_eq!(fields, BTreeSet::from(["/colour", "/content", "/createDirs", "/path"]));
    let message = reply["error"]["message"].as_str().unwrap();
    for name in ["colour", "content", "createDirs", "path"] {
        assert!(message.contains(name), "{name} is not in: {message}");
    }
    assert!(!home.path().join("1").exists());
}

#[test]
fn cal_4_nothing_runs_with_arguments_that_do_not_fit() {
    let home = Home::with_test_tools();
    let server = home.serve();
    let target = file(&home, "count.txt");
    let reply = server.call("test__count", &json!({ "file": target, "text": ["x"] }));
    assert_eq!((reply.status, &reply.json()["extras"]["effect"]), (422, &json!("none")));
    // Not an object, and an object that two readers could read differently.
    for arguments in
        [r#"["x"]"#.to_owned(), r#""x""#.to_owned(), format!(r#"{{"file":{target},"text":"a","text":"b"}}"#)]
    {
        let reply =
            server.post("/api/v1/calls", &format!(r#"{{"tool":"test__count","arguments":{arguments}}}"#));
        assert_eq!(reply.json()["error"]["code"], "INVALID_ARGUMENTS", "{arguments}");
        assert!((400..500).contains(&reply.status), "{reply:?}");
    }
    assert!(!home.path().join("count.txt").exists());
}

#[test]
fn cal_4_a_tool_with_an_unusable_schema_is_quarantined_alone() {
    let home = Home::with_test_tools();
    let server = home.serve();
    let tools = server.get("/api/v1/tools").json();
    let tools = tools["items"].as_array().unwrap();
    let (bad, good): (Vec<&Value>, Vec<&Value>) = tools.iter().partition(|tool| tool["status"] != "ready");
    assert_eq!(bad.len(), 1, "{bad:?}");
    assert_eq!((&bad[0]["name"], &bad[0]["status"]), (&json!("test__bad_schema"), &json!("quarantined")));
    let reason = bad[0]["reason"].as_str().unwrap();
    assert!(reason.contains("input schema cannot be used"), "{reason}");
    assert!(reason.contains("/properties/a/type"), "the reason says where: {reason}");
    assert!(good.iter().all(|tool| tool["reason"].is_null()));
    let reply = server.call("test__bad_schema", &json!({})).json();
    assert_eq!(reply["error"]["code"], "TOOL_QUARANTINED");
    assert!(reply["error"]["message"].as_str().unwrap().contains(reason), "{reply}");
    assert_eq!(server.call("test__echo", &json!({ "text": "well" })).json()["result"], "well");
    let by_mcp = mcp_tools(&server, "/mcp");
    assert!(!by_mcp.contains(&"test__bad_schema".to_owned()) && by_mcp.contains(&"test__echo".to_owned()));
    assert!(server.said().contains("[WRN] tool test__bad_schema is quarantined"), "{}", server.said());
}

#[test]
fn cal_5_a_provider_and_a_tool_can_be_cached() {
    let home = Home::with_test_tools()
        .settings(&json!({ "cache": 60_000, "toolsCache": { "echo": 0, "slow-write": 60_000 } }));
    let server = home.serve();
    let cached = |tool: &str, arguments: &Value| {
        server.call(tool, arguments);
        server.call(tool, arguments).json()["extras"]["cached"] == true
    };
    let target = json!({ "file": file(&home, "out.txt"), "text": "x", "ms": 0 });
    assert!(cached("test__tick", &target), "the provider's tools are");
    assert!(!cached("test__echo", &json!({ "text": "x" })), "one of them is not");
    assert!(!cached("test__count", &target), "a provider's cache never swallows a write");
    assert!(cached("test__slow_write", &target), "a tool that is named itself is, whatever it does");
    assert!(!cached("read_file", &json!({ "path": "out.txt" })), "another provider's are not");
    assert_eq!(home.read("out.txt"), "tick\nx\nx\nbegun\nended\n");
    let row = newest(&server, "test__tick");
    assert_eq!((&row["cached"], &row["accounting"]["status"]), (&json!(true), &json!("ok")));
}

#[test]
fn cal_5_the_workspace_is_cached_by_the_configuration() {
    let home = Home::new().config("tools: { workspace: { toolsCache: { read_file: 600000 } } }\n");
    home.write("a.txt", "old");
    let server = home.serve();
    let read = || server.call("read_file", &json!({ "path": "a.txt" })).json();
    assert_eq!(read()["result"]["content"], "old");
    home.write("a.txt", "new");
    assert_eq!((&read()["result"]["content"], &read()["extras"]["cached"]), (&json!("old"), &json!(true)));
    // Other arguments are another call, whatever the order of their keys.
    let other = server.call("read_file", &json!({ "encoding": "utf-8", "path": "a.txt" })).json();
    assert_eq!(other["result"]["content"], "new", "{other}");
    let swapped = server.call("read_file", &json!({ "path": "a.txt", "encoding": "utf-8" })).json();
    assert_eq!(swapped["extras"]["cached"], true, "{swapped}");
}

#[test]
fn cal_5_an_answer_is_given_again_only_for_so_long() {
    let home = Home::with_test_tools().settings(&json!({ "cache": 300 }));
    let server = home.serve();
    let tick = json!({ "file": file(&home, "ticks.txt"), "ms": 0 });
    assert_eq!(server.call("test__tick", &tick).json()["result"], "1");
    server.eventually("the answer expires", || server.call("test__tick", &tick).json()["result"] == "2");
}

#[test]
fn cal_5_only_successes_are_kept() {
    let home = Home::with_test_tools().settings(&json!({ "cache": 60_000 }));
    let server = home.serve();
    for _ in 0..2 {
        let failed = server.call("test__fail", &json!({ "text": "boom" })).json();
        assert_eq!(
            (&failed["error"]["code"], &failed["extras"]["cached"]),
            (&json!("EXECUTION_ERROR"), &Value::Null)
        );
    }
    // It fails while its folder is missing, and works once it is there.
    let tick = json!({ "file": file(&home, "later/ticks.txt"), "ms": 0 });
    assert_eq!(server.call("test__tick", &tick).json()["ok"], false);
    std::fs::create_dir(home.path().join("later")).unwrap();
    assert_eq!(server.call("test__tick", &tick).json()["result"], "1");
}

#[test]
fn cal_5_identical_misses_at_once_run_once() {
    let home = Home::with_test_tools().settings(&json!({ "cache": 60_000 }));
    let server = home.serve();
    let tick = json!({ "file": file(&home, "ticks.txt"), "ms": 500 });
    let replies: Vec<Value> = thread::scope(|scope| {
        let calls: Vec<_> =
            (0..20).map(|_| scope.spawn(|| server.call("test__tick", &tick).json())).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert!(replies.iter().all(|reply| reply["result"] == "1"), "{replies:?}");
    assert_eq!(lines(&home, "ticks.txt"), 1);
    let ran = replies.iter().filter(|reply| reply["extras"]["cached"] != true).count();
    assert_eq!(ran, 1, "one ran, the others were given its answer");
    let rows = server.get_as_admin("/api/v1/audit?tool=test__tick").json();
    assert_eq!(rows["items"].as_array().unwrap().len(), 20, "each is on record all the same");
}

#[test]
fn cal_5_answers_do_not_cross_identities_or_agents() {
    let home =
        Home::with_test_tools().config("agents: { a: {}, b: {} }\n").settings(&json!({ "cache": 60_000 }));
    let server = home.serve();
    let tick = json!({ "tool": "test__tick", "arguments": { "file": file(&home, "ticks.txt"), "ms": 0 } });
    let as_agent = |agent: &str| {
        let mut body = tick.clone();
        body["agent"] = agent.into();
        body
    };
    let callers: [&dyn Fn() -> Answer; 4] = [
        &|| post(&server, &tick),
        &|| post_as_person(&server, &tick),
        &|| post(&server, &as_agent("a")),
        &|| post(&server, &as_agent("b")),
    ];
    for (n, call) in callers.iter().enumerate() {
        assert_eq!(call().json()["result"], (n + 1).to_string(), "the first time it runs");
    }
    for (n, call) in callers.iter().enumerate() {
        let again = call().json();
        assert_eq!(again["result"], (n + 1).to_string(), "then each is given its own answer");
        assert_eq!(again["extras"]["cached"], true);
    }
}

#[test]
fn cal_5_a_caller_who_gives_up_takes_nobody_else_with_him() {
    let home = Home::with_test_tools().settings(&json!({ "cache": 60_000 }));
    let server = home.serve();
    let call = json!({ "tool": "test__tick", "arguments": { "file": file(&home, "ticks.txt"), "ms": 2000 } });
    let started = || server.get("/api/v1/events?follow=false").text.matches("\"tool_started\"").count();
    let first = crate::queues::defer(&server, &call);
    server.eventually("the first one runs", || started() == 1);
    thread::scope(|scope| {
        let second = scope.spawn(|| post(&server, &call).json());
        crate::queues::cancel(&server, &first);
        assert_eq!(crate::queues::outcome(&server, &first).json()["error"]["code"], "CANCELED");
        let reply = second.join().unwrap();
        assert_eq!(reply["result"], "1", "{reply}");
    });
}

#[test]
fn cal_5_a_caller_with_less_patience_fails_alone() {
    let home = Home::with_test_tools().settings(&json!({ "cache": 60_000 }));
    let server = home.serve();
    let call = json!({ "tool": "test__tick", "arguments": { "file": file(&home, "ticks.txt"), "ms": 1500 } });
    let mut hasty = call.clone();
    hasty["timeoutMs"] = 1000.into();
    let started = || server.get("/api/v1/events?follow=false").text.matches("\"tool_started\"").count();
    thread::scope(|scope| {
        let first = scope.spawn(|| post(&server, &hasty).json());
        server.eventually("the hasty one runs", || started() == 1);
        let patient = post(&server, &call).json();
        assert_eq!(first.join().unwrap()["error"]["code"], "TIMEOUT");
        assert_eq!(patient["result"], "1", "{patient}");
    });
}

#[test]
fn cal_5_a_call_that_waits_for_the_same_answer_can_be_canceled() {
    let home = Home::with_test_tools().settings(&json!({ "cache": 60_000 }));
    let server = home.serve();
    let call =
        json!({ "tool": "test__tick", "arguments": { "file": file(&home, "ticks.txt"), "ms": 50_000 } });
    let started = || server.get("/api/v1/events?follow=false").text.matches("\"tool_started\"").count();
    let first = crate::queues::defer(&server, &call);
    server.eventually("the first one runs", || started() == 1);
    let second = crate::queues::defer(&server, &call);
    crate::queues::cancel(&server, &second);
    assert_eq!(crate::queues::outcome(&server, &second).json()["error"]["code"], "CANCELED");
    assert_eq!(server.get(&format!("/api/v1/calls/{first}")).json()["state"], "EXECUTING");
}

#[test]
fn cal_8_the_most_specific_time_limit_wins_and_a_call_may_only_shorten_it() {
    let limit = |home: &Home, tool: &str, own: &str| {
        let arguments = json!({ "ms": 60_000, "file": file(home, "out.txt") }).to_string();
        let mut args = vec!["call", tool, &arguments, "--json"];
        if !own.is_empty() {
            args.extend(["--timeout", own]);
        }
        let ran = home.run(args);
        assert_eq!((ran.code, &ran.json()["error"]["code"]), (1, &json!("TIMEOUT")), "{ran:?}");
        ran.json()["error"]["details"]["timeoutMs"].as_u64().unwrap()
    };
    let home = Home::with_test_tools().config("defaults: { toolTimeout: 120 }\n");
    assert_eq!(limit(&home, "test__sleep", ""), 120, "the global one");
    assert_eq!(limit(&home, "test__sleep", "30"), 30, "the call's own, if it is shorter");
    assert_eq!(limit(&home, "test__sleep", "99999"), 120, "but not if it is longer");
    let home = home.settings(&json!({ "requestTimeoutMs": 110, "toolsTimeout": { "slow-write": 130 } }));
    assert_eq!(limit(&home, "test__sleep", ""), 110, "the provider's");
    assert_eq!(limit(&home, "test__slow_write", ""), 130, "the tool's, though it is longer");
    assert_eq!(limit(&home, "test__slow_write", "99999"), 130);
}

#[test]
fn cal_8_a_timeout_says_so_and_whether_something_may_have_happened() {
    let home = Home::with_test_tools().config("defaults: { toolTimeout: 100 }\n");
    let read = home.call("test__sleep", &json!({ "ms": 60_000 }));
    assert_eq!(read["error"]["message"], "(tool failed: timeout)");
    assert_eq!((&read["extras"]["effect"], &read["state"]), (&json!("none"), &json!("COMPLETED_FAILURE")));
    let write = home.call("test__slow_write", &json!({ "ms": 60_000, "file": file(&home, "out.txt") }));
    assert_eq!(write["error"]["message"], "(tool failed: timeout)");
    assert_eq!(
        (&write["extras"]["effect"], &write["state"]),
        (&json!("possible"), &json!("COMPLETED_FAILURE"))
    );
    assert_eq!(home.read("out.txt"), "begun\n", "what it began is not undone, and it goes no further");
    let row = home.run(["audit", "--tool", "test__slow_write", "--json"]).json()[0].take();
    assert_eq!((&row["error"]["code"], &row["effectState"]), (&json!("TIMEOUT"), &json!("possible")));
}
