//! What becomes of results: stored outputs, budgets, conversations, run trees, accounting, events and the ledger.

use crate::pipeline::{file, lines, post, post_as_person};
use crate::queues::{defer, outcome};
use gantry_testkit::{Home, Server};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::thread;

/// One call as a modern MCP client makes it, without a session of its own; the whole JSON-RPC answer.
pub(crate) fn mcp_call(server: &Server, path: &str, tool: &str, arguments: &Value) -> Value {
    mcp(server, path, "tools/call", tool, &json!({ "name": tool, "arguments": arguments }))
}

/// The names that a modern MCP client is listed.
pub(crate) fn mcp_tools(server: &Server, path: &str) -> Vec<String> {
    let answer = mcp(server, path, "tools/list", "", &json!({}));
    let tools = answer["result"]["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["name"].as_str().unwrap_or_default().to_owned()).collect()
}

fn mcp(server: &Server, path: &str, method: &str, name: &str, params: &Value) -> Value {
    const VERSION: &str = "2026-07-28";
    let mut params = params.clone();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let mut headers =
        vec![("content-type", "application/json"), ("mcp-protocol-version", VERSION), ("mcp-method", method)];
    if method == "tools/call" {
        headers.push(("mcp-name", name));
    }
    server.request(http::Method::POST, path, &headers, &body).json()
}

/// A home that stores every result above 1000 bytes.
fn small() -> Home {
    Home::with_test_tools().config("defaults: { toolResponseMaxBytes: 1000 }\nagents: { a: {} }\n")
}

/// Has 160 lines stored, and returns their handle.
fn flood(server: &Server, body: &Value) -> String {
    let mut call = json!({ "tool": "test__flood", "arguments": { "bytes": 2560 } });
    call.as_object_mut()
        .into_iter()
        .for_each(|call| call.extend(body.as_object().cloned().unwrap_or_default()));
    let reply = post(server, &call).json();
    reply["result"]["tool_output"]["handle"].as_str().unwrap_or_default().to_owned()
}

fn tool_names(server: &Server) -> Vec<String> {
    let tools = server.get("/api/v1/tools").json();
    let names = tools["items"].as_array().into_iter().flatten();
    names.map(|tool| tool["name"].as_str().unwrap_or_default().to_owned()).collect()
}

/// The events that a reader without a key has been told so far.
fn events(server: &Server) -> Vec<Value> {
    let stream = server.get("/api/v1/events?follow=false").text;
    let data = stream.lines().filter_map(|line| line.strip_prefix("data:"));
    data.map(|data| serde_json::from_str(data).unwrap_or_default()).collect()
}

#[test]
fn cal_9_a_large_result_is_stored_whole_and_replaced_by_a_handle() {
    let home = small();
    let reply = home.call("test__flood", &json!({ "bytes": 2560 }));
    assert_eq!((&reply["ok"], &reply["state"]), (&json!(true), &json!("COMPLETED_SUCCESS")));
    let output = &reply["result"]["tool_output"];
    let handle = output["handle"].as_str().unwrap();
    let expected = json!({
        "tool_output": {
            "handle": handle, "reason": "size_limit_exceeded", "bytes": 2560, "lines": 160, "tokens": 640,
        }
    });
    assert_eq!(reply["result"], expected);
    let (session, id) = handle.split_once('/').unwrap();
    assert!(
        session.starts_with("session-") && session.len() == "session-".len() + 36 && id.len() == 36,
        "{handle}"
    );
    let stored = home.path().join(".gantry/outputs").join(handle);
    assert_eq!(std::fs::read_to_string(&stored).unwrap(), "0123456789abcde\n".repeat(160));
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&stored), mode(stored.parent().unwrap())), (0o600, 0o700));
    // What fits exactly is passed on.
    assert_eq!(home.call("test__echo", &json!({ "text": "x".repeat(1000) }))["result"], "x".repeat(1000));
    assert!(
        home.call("test__echo", &json!({ "text": "x".repeat(1001) }))["result"]["tool_output"].is_object()
    );
}

#[test]
fn cal_9_the_reading_tool_is_there_once_there_is_something_to_read() {
    let home = small();
    let server = home.serve();
    let listed = || tool_names(&server).contains(&"tool_output".to_owned());
    assert!(!listed());
    let early = server.call("tool_output", &json!({ "handle": "session-x/y" }));
    assert_eq!((early.status, &early.json()["error"]["code"]), (404, &json!("TOOL_NOT_FOUND")));
    flood(&server, &json!({}));
    assert!(listed());
    // Each session for itself: an MCP client has stored nothing yet.
    assert!(!mcp_tools(&server, "/mcp").contains(&"tool_output".to_owned()));
    mcp_call(&server, "/mcp", "test__flood", &json!({ "bytes": 2560 }));
    assert!(mcp_tools(&server, "/mcp").contains(&"tool_output".to_owned()));
}

#[test]
fn cal_9_a_stored_result_is_read_by_page_lines_pattern_head_and_tail() {
    let home = small();
    let server = home.serve();
    let handle = flood(&server, &json!({}));
    let read = |view: Value| {
        let mut arguments = view;
        arguments["handle"] = handle.as_str().into();
        server.call("tool_output", &arguments).json()
    };
    let first = read(json!({}))["result"].take();
    assert_eq!(
        (&first["totalBytes"], &first["totalLines"], &first["page"]),
        (&json!(2560), &json!(160), &json!(1))
    );
    let pages = first["pages"].as_u64().unwrap();
    assert!(pages > 1);
    let page =
        |n: u64| read(json!({ "mode": "page", "page": n }))["result"]["content"].as_str().unwrap().to_owned();
    assert_eq!(
        (1..=pages).map(page).collect::<String>(),
        "0123456789abcde\n".repeat(160),
        "the pages are the whole"
    );
    let line = "0123456789abcde";
    let content = |view: Value| read(view)["result"]["content"].take();
    assert_eq!(content(json!({ "mode": "lines", "from": 159, "to": 170 })), format!("{line}\n{line}"));
    assert_eq!(content(json!({ "mode": "head", "count": 1 })), line);
    assert_eq!(content(json!({ "mode": "tail", "count": 2 })), format!("{line}\n{line}"));
    let found = read(json!({ "mode": "grep", "pattern": "^0.*e$" }))["result"].take();
    assert_eq!((&found["matches"], &found["truncated"]), (&json!(160), &json!(true)));
    assert!(found["content"].as_str().unwrap().starts_with(&format!("1:{line}\n2:{line}\n")));
    for wrong in [
        json!({ "page": pages + 1 }),
        json!({ "mode": "grep", "pattern": "(" }),
        json!({ "mode": "jsonPath", "path": "$.a" }),
        json!({ "mode": "lines", "from": 2, "to": 1 }),
        json!({ "mode": "backwards" }),
    ] {
        assert_eq!(read(wrong.clone())["error"]["code"], "INVALID_ARGUMENTS", "{wrong}");
    }
}

#[test]
fn cal_9_a_stored_json_result_is_read_by_path() {
    let home = small();
    let server = home.serve();
    let text = "long ".repeat(300);
    let reply = server.call("test__count", &json!({ "file": file(&home, "c"), "text": text })).json();
    let handle = &reply["result"]["tool_output"]["handle"];
    let read = server
        .call("tool_output", &json!({ "handle": handle, "mode": "jsonPath", "path": "$.counted" }))
        .json();
    assert_eq!(read["result"]["matches"], 1, "{read}");
    assert!(read["result"]["content"].as_str().unwrap().starts_with("long long "), "{read}");
    assert!(read["result"]["tool_output"].is_null(), "what reads a stored result is never stored itself");
}

#[test]
fn cal_9_only_the_session_that_stored_a_result_reads_it() {
    let home = small();
    let server = home.serve();
    let handle = flood(&server, &json!({}));
    let read = |handle: &str, agent: Value| {
        let call = json!({ "tool": "tool_output", "arguments": { "handle": handle }, "agent": agent });
        let mut reply = post(&server, &call).json();
        (reply["ok"].take(), reply["error"].take())
    };
    assert_eq!(read(&handle, Value::Null).0, true);
    assert_eq!(read(&handle, json!("a")).1["code"], "TOOL_NOT_FOUND", "it has stored nothing itself");
    let own = flood(&server, &json!({ "agent": "a" }));
    assert_eq!(read(&own, json!("a")).0, true);
    // Another one's handle is answered like one that never was.
    let never = format!("{}/01a1deb9-97db-753d-93c8-f59b6b31a78f", own.split_once('/').unwrap().0);
    assert_eq!(read(&handle, json!("a")).1["code"], "FILE_NOT_FOUND");
    assert_eq!(read(&handle, json!("a")), read(&never, json!("a")));
    // So is a handle of somebody else's identity, and a path that is none.
    let persons = json!({ "tool": "test__flood", "arguments": { "bytes": 2560 } });
    let persons = post_as_person(&server, &persons).json()["result"]["tool_output"]["handle"].take();
    let session = handle.split_once('/').unwrap().0;
    for other in
        [persons.as_str().unwrap(), &format!("{session}/../../admin.key"), "../admin.key", "/etc/passwd"]
    {
        assert_eq!(read(other, Value::Null), read(&never, Value::Null), "{other}");
    }
}

#[test]
fn cal_9_a_stored_result_expires_with_its_session() {
    let home = small();
    let handle =
        home.call("test__flood", &json!({ "bytes": 2560 }))["result"]["tool_output"]["handle"].take();
    let stored = home.path().join(".gantry/outputs").join(handle.as_str().unwrap());
    // The next command of the same person goes on with the session, and reads it.
    assert_eq!(home.call("tool_output", &json!({ "handle": handle }))["ok"], true);
    home.write("gantry.yaml", "defaults: { outputRetentionMs: 1 }\n");
    let server = home.serve();
    server.eventually("it is gone", || !stored.exists());
}

#[test]
fn cal_10_a_result_that_does_not_fit_the_budget_is_dropped() {
    let home = Home::with_test_tools().config("defaults: { contextBudgetTokens: 100 }\nagents: { a: {} }\n");
    let server = home.serve();
    let text = "x".repeat(200);
    for _ in 0..2 {
        let reply = server.call("test__echo", &json!({ "text": text })).json();
        assert_eq!((&reply["result"], &reply["extras"]["toolBudgetExceeded"]), (&json!(text), &Value::Null));
    }
    let dropped = server.call("test__echo", &json!({ "text": text })).json();
    assert_eq!(dropped["error"]["code"], "BUDGET_EXCEEDED");
    assert_eq!(dropped["error"]["message"], "(tool failed: context window budget exceeded)");
    assert_eq!(dropped["extras"]["toolBudgetExceeded"], true);
    let details = json!({ "neededTokens": 50, "leftTokens": 0, "limitTokens": 100 });
    assert_eq!((&dropped["error"]["details"], &dropped["state"]), (&details, &json!("COMPLETED_FAILURE")));
    // A write whose result is dropped has happened all the same, and the caller is told so.
    let count = server.call("test__count", &json!({ "file": file(&home, "c"), "text": "x" })).json();
    assert_eq!(
        (&count["error"]["code"], &count["extras"]["effect"]),
        (&json!("BUDGET_EXCEEDED"), &json!("done"))
    );
    assert_eq!(lines(&home, "c"), 1);
    // The flag stays with the session; another session has a budget of its own.
    assert_eq!(server.call("test__nothing", &json!({})).json()["extras"]["toolBudgetExceeded"], true);
    let other =
        post(&server, &json!({ "tool": "test__echo", "arguments": { "text": text }, "agent": "a" })).json();
    assert_eq!((&other["ok"], &other["extras"]["toolBudgetExceeded"]), (&json!(true), &Value::Null));
}

#[test]
fn cal_10_parallel_calls_never_overshoot_the_budget() {
    let home = Home::with_test_tools().config("defaults: { contextBudgetTokens: 100 }\n");
    let server = home.serve();
    let text = "x".repeat(40);
    let replies: Vec<Value> = thread::scope(|scope| {
        let call = || server.call("test__echo", &json!({ "text": text })).json();
        let calls: Vec<_> = (0..30).map(|_| scope.spawn(call)).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    let ok = replies.iter().filter(|reply| reply["ok"] == true).count();
    assert_eq!(ok, 10, "ten tokens each, a hundred in all");
    assert!(replies.iter().all(|reply| reply["ok"] == true || reply["error"]["code"] == "BUDGET_EXCEEDED"));
}

#[test]
fn cal_11_a_conversation_shows_each_outcome_in_its_words() {
    let home = Home::with_test_tools().config(
        "defaults: { toolTimeout: 2000, toolResponseMaxBytes: 1000, contextBudgetTokens: 120 }\napprovals: { requiresApprovalTools: [test__count] }\n",
    );
    let server = home.serve();
    let told = |tool: &str, arguments: Value| {
        let mut answer = mcp_call(&server, "/mcp", tool, &arguments);
        let failed = answer["result"]["isError"] == true;
        assert_eq!(answer["result"]["content"].as_array().map(Vec::len), Some(1), "{answer}");
        (failed, answer["result"]["content"][0]["text"].take())
    };
    assert_eq!(told("test__echo", json!({ "text": "well" })), (false, json!("well")));
    assert_eq!(told("test__sleep", json!({ "ms": 60_000 })), (true, json!("(tool failed: timeout)")));
    assert_eq!(told("test__fail", json!({ "text": "boom" })), (true, json!("(tool failed: boom)")));
    let (failed, handle) = told("test__flood", json!({ "bytes": 2560 }));
    let handle: Value = serde_json::from_str(handle.as_str().unwrap()).unwrap();
    assert!(!failed);
    assert_eq!(
        (&handle["tool_output"]["reason"], &handle["tool_output"]["bytes"]),
        (&json!("size_limit_exceeded"), &json!(2560))
    );
    let exceeded = json!("(tool failed: context window budget exceeded)");
    assert_eq!(told("test__echo", json!({ "text": "x".repeat(900) })), (true, exceeded));
    let (failed, asked) = told("test__count", json!({ "file": file(&home, "c"), "text": "x" }));
    assert!(
        failed && asked.as_str().unwrap().starts_with("(tool failed: a person has to approve this call"),
        "{asked}"
    );
    assert_eq!(lines(&home, "c"), 0);
}

#[test]
fn cal_11_a_call_below_a_call_is_told_in_the_same_words() {
    let home = Home::with_test_tools().config("defaults: { toolTimeout: 2000 }\n");
    let nested = |below: Value| home.call("test__nested", &below)["result"].take();
    assert_eq!(nested(json!({ "tool": "test__echo", "arguments": { "text": "well" } })), "well");
    assert_eq!(
        nested(json!({ "tool": "test__fail", "arguments": { "text": "boom" } })),
        "(tool failed: boom)"
    );
    let missing = nested(json!({ "tool": "test__nothing", "arguments": {} }));
    assert!(
        missing.as_str().unwrap().starts_with("(tool failed: tool not found: test__nothing"),
        "{missing}"
    );
}

#[test]
fn cal_13_a_run_is_a_tree_of_operations() {
    let home = Home::with_test_tools();
    home.call("test__nested", &json!({ "tool": "test__echo", "arguments": { "text": "deep" } }));
    home.call("test__fail", &json!({ "text": "boom" }));
    let runs = home.run(["runs", "--json"]).json();
    assert_eq!(runs.as_array().unwrap().len(), 1, "one person, one run: {runs}");
    let id = runs[0]["id"].as_str().unwrap();
    let tree = home.run(["runs", id, "--json"]).json();
    assert_eq!(
        (&tree["id"], &tree["door"], &tree["principal"]),
        (&json!(id), &json!("cli"), &json!("person"))
    );
    assert_eq!(tree["turns"].as_array().unwrap().len(), 1);
    let turn = &tree["turns"][0];
    assert_eq!(turn["index"], 1);
    let ops = turn["ops"].as_array().unwrap();
    let names: Vec<&Value> = ops.iter().map(|op| &op["name"]).collect();
    assert_eq!(names, ["test__nested", "test__fail"], "what is below another is not beside it");
    let below = &ops[0]["ops"][0];
    assert_eq!(
        (&below["name"], &below["kind"], &below["status"]),
        (&json!("test__echo"), &json!("tool"), &json!("ok"))
    );
    assert_eq!(below["request"]["payload"], r#"{"text":"deep"}"#);
    assert_eq!((&below["response"]["size"], &below["accounting"]["charactersOut"]), (&json!(4), &json!(4)));
    assert_eq!((&ops[1]["status"], &ops[1]["error"]["code"]), (&json!("failed"), &json!("EXECUTION_ERROR")));
    for op in [&ops[0], below, &ops[1]] {
        assert!(op["startedAt"].as_str() <= op["endedAt"].as_str() && op["startedAt"].is_string(), "{op}");
        assert!(op["opId"].as_str().unwrap().starts_with("call_"));
    }
    assert!(ops[0]["startedAt"].as_str() <= below["startedAt"].as_str());
    assert!(below["endedAt"].as_str() <= ops[0]["endedAt"].as_str());
    assert_eq!(tree["totals"]["toolsRun"], 3);
    let shown = home.run(["runs", id]).stdout;
    let depth = |op: &str| shown.lines().find(|line| line.contains(op)).unwrap().find('└').unwrap();
    assert!(depth("└ ok test__echo") > depth("└ ok test__nested"), "{shown}");
}

#[test]
fn cal_13_a_call_that_runs_is_in_the_tree() {
    let home = Home::with_test_tools();
    let server = home.serve();
    let write =
        json!({ "tool": "test__slow_write", "arguments": { "ms": 600_000, "file": file(&home, "out.txt") } });
    let call = defer(&server, &write);
    server.eventually("it runs", || lines(&home, "out.txt") == 1);
    let run = server.get("/api/v1/runs").json()["items"][0]["id"].as_str().unwrap().to_owned();
    let tree = server.get(&format!("/api/v1/runs/{run}")).json();
    assert_eq!(
        (&tree["status"], &tree["turns"][0]["ops"][0]["status"]),
        (&json!("running"), &json!("running"))
    );
    assert!(tree["turns"][0]["ops"][0]["endedAt"].is_null());
    crate::queues::cancel(&server, &call);
    outcome(&server, &call);
    assert_eq!(server.get(&format!("/api/v1/runs/{run}")).json()["status"], "idle");
}

#[test]
fn cal_14_every_call_is_accounted_for_and_the_sums_count_each_once() {
    let home = Home::with_test_tools().config("agents: { a: {} }\n");
    let server = home.serve();
    let agent = |call: Value| {
        let mut call = call;
        call["agent"] = "a".into();
        post(&server, &call).json()
    };
    let echoed = agent(json!({ "tool": "test__echo", "arguments": { "text": "häß" } }));
    let record = |reply: &Value| {
        server.get(&format!("/api/v1/calls/{}", reply["id"].as_str().unwrap())).json()["record"].take()
    };
    let accounting = record(&echoed)["accounting"].take();
    let expected = json!({
        "latencyMs": accounting["latencyMs"], "charactersIn": r#"{"text":"häß"}"#.chars().count(), "charactersOut": 3,
        "status": "ok", "namespace": "test", "actor": "a", "costMicros": 0,
    });
    assert_eq!(accounting, expected);
    assert!(accounting["latencyMs"].is_u64());
    agent(
        json!({ "tool": "test__nested", "arguments": { "tool": "test__echo", "arguments": { "text": "deep" } } }),
    );
    let failed = agent(json!({ "tool": "test__fail", "arguments": { "text": "boom" } }));
    assert_eq!(record(&failed)["accounting"]["status"], "failed");
    agent(json!({ "tool": "test__nothing" }));
    let unnamed = server.call("test__noop", &json!({})).json();
    assert_eq!(record(&unnamed)["accounting"]["actor"], "local", "without an agent it is the identity");
    let run = server.get("/api/v1/runs?agent=a").json()["items"][0].take();
    let rows = server.get(&format!("/api/v1/audit?session={}", run["id"].as_str().unwrap())).json();
    let rows = rows["items"].as_array().unwrap();
    assert_eq!(rows.len(), 5, "the one below another is a call too");
    let sum = |key: &str| rows.iter().map(|row| row["accounting"][key].as_u64().unwrap()).sum::<u64>();
    let totals = &run["totals"];
    for key in ["charactersIn", "charactersOut", "costMicros"] {
        assert_eq!(totals[key], sum(key), "{key}");
    }
    assert_eq!(
        (&totals["toolsRun"], &totals["failed"], &totals["refused"]),
        (&json!(5), &json!(2), &json!(1))
    );
}

#[test]
fn cal_15_the_stream_tells_when_a_call_starts_and_how_it_ends() {
    let home = Home::with_test_tools();
    let server = home.serve();
    let reply = server.call("test__echo", &json!({ "text": "hi" })).json();
    server.call("test__fail", &json!({ "text": "boom" }));
    let events = events(&server);
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["session_opened", "tool_started", "tool_finished", "tool_started", "tool_finished"]);
    let (started, finished, failed) = (&events[1], &events[2], &events[4]);
    assert_eq!((&started["call"], &started["tool"]), (&reply["id"], &json!("test__echo")));
    assert_eq!((&started["parameters"], &started["namespace"]), (&json!(r#"{"text":"hi"}"#), &json!("test")));
    assert_eq!((&finished["call"], &finished["status"]), (&reply["id"], &json!("ok")));
    assert_eq!((&finished["charactersIn"], &finished["charactersOut"]), (&json!(13), &json!(2)));
    assert!(finished["latencyMs"].is_u64() && finished["at"].is_string());
    assert_eq!(
        (&failed["status"], &failed["code"], &failed["error"]),
        (&json!("failed"), &json!("EXECUTION_ERROR"), &json!("boom"))
    );
    let by_cli = home.run(["events", "--json"]).stdout;
    assert_eq!(by_cli.lines().filter(|line| line.contains("\"tool_finished\"")).count(), 2, "{by_cli}");
}

#[test]
fn cal_15_a_reader_sees_its_own_calls_however_long_its_session_is() {
    let home = Home::with_test_tools().config("agents: { a: {} }\n");
    let server = home.serve();
    post_as_person(&server, &json!({ "tool": "test__echo", "arguments": { "text": "persons" } }));
    // More events than are remembered, so that the beginning of the session is forgotten.
    let below = json!({ "tool": "test__noop", "arguments": {} });
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..70).for_each(|_| assert_eq!(server.call("test__nested", &below).status, 200)));
        }
    });
    let events = events(&server);
    assert!(!events.iter().any(|event| event["type"] == "session_opened"), "it is forgotten");
    let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert!(
        count("tool_started").abs_diff(count("tool_finished")) <= 8,
        "{} {}",
        count("tool_started"),
        count("tool_finished")
    );
    assert!(!events.iter().any(|event| event.to_string().contains("persons")));
}

#[test]
fn cal_15_the_log_tells_calls_in_the_agreed_shape() {
    let home = Home::with_test_tools();
    let server = home.serve_with(&["-v"]);
    server.call("test__echo", &json!({ "text": "hi" }));
    post(&server, &json!({ "tool": "test__sleep", "arguments": { "ms": 60_000 }, "timeoutMs": 50 }));
    let (code, said) = server.stop();
    assert_eq!(code, 0);
    // The times differ from run to run; the shapes do not.
    let masked = |line: &str| match line.split_once("latency: ") {
        Some((start, rest)) => {
            format!("{start}latency: {}", rest.trim_start_matches(|c: char| c.is_ascii_digit()))
        }
        None => line.to_owned(),
    };
    let lines: Vec<String> = said.lines().map(masked).collect();
    for shape in [
        ["[VRB] tool request → test__echo", "    parameters: {\"text\":\"hi\"}"],
        ["[VRB] tool response ← test__echo", "    latency: ms, output: 2 chars, status: ok"],
        ["[VRB] tool request → test__sleep", "    parameters: {\"ms\":60000}"],
        ["[WRN] tool response ← test__sleep", "    latency: ms, status: failed, error: timeout"],
    ] {
        assert!(lines.windows(2).any(|pair| pair == shape), "{shape:?} is not in\n{said}");
    }
}

#[test]
fn cal_15_only_failures_are_told_unless_more_is_asked_for() {
    let home = Home::with_test_tools();
    let server = home.serve();
    server.call("test__echo", &json!({ "text": "hi" }));
    // A name that would write log lines of its own is shown in one line.
    server.call("x\n[ERR] forged", &json!({}));
    let (_, said) = server.stop();
    assert!(!said.contains("tool request"), "{said}");
    assert!(said.contains("[WRN] tool response ← x [ERR] forged\n"), "{said}");
}

/// `POST /api/v1/calls` of a counting tool under an idempotency key.
fn keyed(home: &Home, key: &str, text: &str) -> Value {
    json!({ "tool": "test__count", "arguments": { "file": file(home, "c"), "text": text }, "idempotencyKey": key })
}

#[test]
fn cal_16_a_repeated_key_gives_the_stored_result_and_runs_nothing() {
    let home = Home::with_test_tools();
    let server = home.serve();
    let first = post(&server, &keyed(&home, "k1", "x")).json();
    assert_eq!(first["result"], json!({ "counted": "x" }));
    drop(server);
    // In another process, on the same data folder.
    let server = home.serve();
    let again = post(&server, &keyed(&home, "k1", "x")).json();
    assert_eq!((&again["result"], &again["extras"]["repeats"]), (&first["result"], &first["id"]));
    assert_eq!(lines(&home, "c"), 1);
    let conflict = post(&server, &keyed(&home, "k1", "y"));
    assert_eq!((conflict.status, &conflict.json()["error"]["code"]), (409, &json!("IDEMPOTENCY_CONFLICT")));
    let other_tool = json!({ "tool": "test__noop", "arguments": {}, "idempotencyKey": "k1" });
    assert_eq!(post(&server, &other_tool).json()["error"]["code"], "IDEMPOTENCY_CONFLICT");
    assert_eq!(post(&server, &keyed(&home, "k2", "x")).json()["ok"], true, "another key, another call");
    assert_eq!(lines(&home, "c"), 2);
    // Keys are one's own: the same one of another identity is another call.
    assert_eq!(post_as_person(&server, &keyed(&home, "k1", "z")).json()["ok"], true);
    assert_eq!(lines(&home, "c"), 3);
}

#[test]
fn cal_16_a_repeated_key_gives_a_stored_failure_as_it_was() {
    let home = Home::with_test_tools();
    let call = |text: &str| {
        let arguments = json!({ "text": text }).to_string();
        home.run(["call", "test__fail", &arguments, "--idempotency-key", "k", "--json"]).json()
    };
    let (first, again) = (call("boom"), call("boom"));
    assert_eq!(first["error"], json!({ "code": "EXECUTION_ERROR", "message": "boom" }));
    assert_eq!((&again["error"], &again["extras"]["effect"]), (&first["error"], &first["extras"]["effect"]));
    assert_eq!(again["extras"]["repeats"], first["id"]);
    assert_eq!(call("bang")["error"]["code"], "IDEMPOTENCY_CONFLICT");
}

#[test]
fn cal_16_repeating_a_key_at_once_runs_once() {
    let home = Home::with_test_tools();
    let server = home.serve();
    let call = json!({
        "tool": "test__slow_write", "arguments": { "ms": 300, "file": file(&home, "out.txt") }, "idempotencyKey": "k",
    });
    let replies: Vec<Value> = thread::scope(|scope| {
        let calls: Vec<_> = (0..10).map(|_| scope.spawn(|| post(&server, &call).json())).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert_eq!(home.read("out.txt"), "begun\nended\n");
    for reply in &replies {
        let early = reply["error"]["code"] == "IDEMPOTENCY_CONFLICT";
        assert!(early || reply["result"] == "written", "{reply}");
    }
    assert_eq!(
        replies.iter().filter(|reply| reply["extras"]["repeats"].is_null() && reply["ok"] == true).count(),
        1
    );
    assert_eq!(post(&server, &call).json()["result"], "written", "afterwards the result is there");
}

#[test]
fn cal_16_a_deferred_call_is_fetched_later() {
    let home = Home::with_test_tools();
    let server = home.serve();
    let call = json!({ "tool": "test__slow_write", "arguments": { "ms": 300, "file": file(&home, "out.txt") }, "mode": "defer" });
    let accepted = post(&server, &call);
    assert_eq!((accepted.status, &accepted.json()["state"]), (202, &json!("EXECUTING")));
    let id = accepted.json()["id"].as_str().unwrap().to_owned();
    let found = server.get(&format!("/api/v1/calls/{id}"));
    assert_eq!((found.status, &found.json()["id"]), (200, &json!(id)), "it is there from the first moment");
    let ended = outcome(&server, &id).json();
    assert_eq!(
        (&ended["ok"], &ended["result"], &ended["state"]),
        (&json!(true), &json!("written"), &json!("COMPLETED_SUCCESS"))
    );
    assert_eq!((&ended["record"]["id"], &ended["record"]["effect"]), (&json!(id), &json!("write")));
    drop(server);
    let server = home.serve();
    assert_eq!(server.get(&format!("/api/v1/calls/{id}")).json()["result"], "written", "a restart keeps it");
}

#[test]
fn cal_16_a_crash_leaves_an_unknown_outcome_that_is_never_run_again() {
    let home = Home::with_test_tools();
    let server = home.serve();
    let call = json!({
        "tool": "test__slow_write", "arguments": { "ms": 600_000, "file": file(&home, "out.txt") }, "idempotencyKey": "k",
    });
    let id = defer(&server, &call);
    server.eventually("it runs", || lines(&home, "out.txt") == 1);
    let open = home.run(["audit", "--state", "OUTCOME_UNKNOWN", "--json"]).json();
    assert_eq!(open, json!([]), "it runs, and that is known");
    server.kill();
    let unknown = home.run(["audit", "--state", "OUTCOME_UNKNOWN", "--json"]).json();
    assert_eq!(unknown.as_array().unwrap().len(), 1, "{unknown}");
    assert_eq!((&unknown[0]["id"], &unknown[0]["state"]), (&json!(id), &json!("OUTCOME_UNKNOWN")));
    assert_eq!(
        (&unknown[0]["effectState"], &unknown[0]["tool"]),
        (&json!("possible"), &json!("test__slow_write"))
    );
    let server = home.serve();
    let again = post(&server, &call);
    let reply = again.json();
    assert_eq!(
        (&reply["error"]["code"], &reply["extras"]["effect"]),
        (&json!("OUTCOME_UNKNOWN"), &json!("possible"))
    );
    assert!(
        reply["error"]["message"].as_str().unwrap().contains(&id),
        "it says which call to check: {reply}"
    );
    assert_eq!(server.get(&format!("/api/v1/calls/{id}")).json()["state"], "OUTCOME_UNKNOWN");
    assert_eq!(home.read("out.txt"), "begun\n", "nothing was run again");
    assert_eq!(home.run(["audit", "verify"]).code, 0);
}

#[test]
fn cal_16_the_calls_of_a_living_process_are_not_taken_for_lost() {
    let home = Home::with_test_tools();
    let arguments = json!({ "ms": 600_000, "file": file(&home, "out.txt") }).to_string();
    let mut command = home.command(["call", "test__slow_write", &arguments]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // Each look is another process on the same folder, which settles what dead ones have left.
    let state = || home.run(["audit", "--tool", "test__slow_write", "--json"]).json()[0]["state"].clone();
    assert!((0..1000).any(|_| state() == "EXECUTING" && lines(&home, "out.txt") == 1), "it never ran");
    let server = home.serve();
    assert_eq!(state(), "EXECUTING");
    drop(server);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(state(), "OUTCOME_UNKNOWN");
    assert_eq!(home.read("out.txt"), "begun\n");
}
