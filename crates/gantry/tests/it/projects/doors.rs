//! POL-1: every door and every command leads to the project that is named, and to none that is not there.

use super::{Site, pair};
use crate::passthrough::{Door, Talk};
use crate::results::{mcp_call, mcp_tools};
use gantry_testkit::TestDir;
use http::Method;
use serde_json::{Value, json};

/// Two projects with an agent `a` each, which sees one tool.
fn with_agents() -> Value {
    let mut config = pair();
    config["agents"] = json!({ "a": { "tools": ["s__env"] } });
    config["projects"]["other"]["agents"] = json!({ "a": { "tools": ["s__pid", "s__env"] } });
    config
}

/// Who the server behind a connected client is.
#[track_caller]
fn who(client: &mut Talk) -> String {
    let env: Value = serde_json::from_str(&client.call("s__env", &json!({}))).expect("an object");
    env["WHO"].as_str().expect("it knows").to_owned()
}

#[test]
fn pol_1_every_mcp_door_leads_to_the_project_and_the_agent_that_it_names() {
    let site = Site::of(&with_agents());
    let (server, home) = (&site.server, &site.home);
    let everything = |tools: usize| tools > 40;
    let doors: [(&str, Door<'_>, &str); 7] = [
        ("/mcp", Door::Http(server, "/mcp"), "one"),
        ("/mcp/default", Door::Http(server, "/mcp/default"), "one"),
        ("/mcp/other", Door::Http(server, "/mcp/other"), "two"),
        ("/ws", Door::Ws(server, "/ws"), "one"),
        ("/ws/other", Door::Ws(server, "/ws/other"), "two"),
        ("/sse", Door::Sse(server), "one"),
        ("gantry mcp", Door::Stdio(home, &["--project", "other"]), "two"),
    ];
    for (name, door, expected) in doors {
        let mut client = Talk::legacy(door);
        assert_eq!(who(&mut client), expected, "{name}");
        assert!(everything(client.tools().len()), "{name}: {:?}", client.tools());
    }
    let agents: [(&str, Door<'_>, &[&str]); 5] = [
        ("/mcp/default/agents/a", Door::Http(server, "/mcp/default/agents/a"), &["s__env"]),
        ("/mcp/other/agents/a", Door::Http(server, "/mcp/other/agents/a"), &["s__env", "s__pid"]),
        ("/ws/other/agents/a", Door::Ws(server, "/ws/other/agents/a"), &["s__env", "s__pid"]),
        (
            "gantry mcp --agent",
            Door::Stdio(home, &["--project", "other", "--agent", "a"]),
            &["s__env", "s__pid"],
        ),
        ("gantry mcp of default", Door::Stdio(home, &["--agent", "a"]), &["s__env"]),
    ];
    for (name, door, tools) in agents {
        let mut client = Talk::legacy(door);
        assert_eq!(client.tools(), tools, "{name}");
        let expected = if tools.len() == 1 { "one" } else { "two" };
        assert_eq!(who(&mut client), expected, "{name}");
    }
    // The newer era has no handshake, and comes to the same places.
    assert_eq!(mcp_tools(server, "/mcp/other/agents/a"), ["s__env", "s__pid"]);
    let answer = mcp_call(server, "/mcp/other/agents/a", "s__env", &json!({}));
    assert!(
        answer["result"]["content"][0]["text"].as_str().is_some_and(|env| env.contains("\"two\"")),
        "{answer}"
    );
}

#[test]
fn pol_1_a_gantry_that_runs_for_one_client_serves_the_project_that_is_named() {
    let home = super::furnished(TestDir::new(), &with_agents());
    let mut client = Talk::legacy(Door::Stdio(&home, &["--project", "other", "--agent", "a"]));
    assert_eq!(client.tools(), ["s__env", "s__pid"]);
    assert_eq!(who(&mut client), "two");
    let mut client = Talk::legacy(Door::Stdio(&home, &[]));
    assert_eq!(who(&mut client), "one");
}

#[test]
fn pol_1_a_session_of_one_project_is_none_of_another() {
    let site = Site::of(&with_agents());
    let client = site.client("default");
    let session = client.way.seen().session.expect("a session");
    for path in ["/mcp/other", "/mcp/other/agents/a", "/mcp/default/agents/a"] {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} }).to_string();
        let headers = [("content-type", "application/json"), ("mcp-session-id", session.as_str())];
        let answer = site.server.request(Method::POST, path, &headers, &body);
        assert_eq!(answer.status, 404, "{path}: {answer:?}");
        let gone = site.server.request(Method::DELETE, path, &[("mcp-session-id", &session)], "");
        assert_eq!(gone.status, 404, "{path}: {gone:?}");
    }
}

#[test]
fn pol_1_every_command_takes_the_project_with_and_without_a_running_server() {
    let home = super::furnished(TestDir::new(), &with_agents());
    let commands = |home: &TestDir| {
        let json = |args: &[&str]| {
            let ran = home.run(args);
            assert_eq!(ran.code, 0, "{args:?}: {ran:?}");
            ran.json()
        };
        let called = json(&["call", "s__env", "{}", "--json", "--project", "other"]);
        let env: Value = serde_json::from_str(called["result"].as_str().expect("a text")).expect("JSON");
        assert_eq!(env["WHO"], "two");
        let called = json(&["call", "s__env", "{}", "--json"]);
        assert!(called["result"].as_str().is_some_and(|env| env.contains("\"one\"")), "{called}");
        let tools = json(&["tools", "--json", "--agent", "a", "--project", "other"]);
        assert_eq!(crate::passthrough::names(&tools), ["s__env", "s__pid"]);
        let agents = json(&["agents", "--json", "--project", "other"]);
        assert_eq!(agents.as_array().unwrap().len(), 1, "{agents}");
        assert_eq!((&agents[0]["project"], &agents[0]["tools"]), (&json!("other"), &json!(2)), "{agents}");
        assert_eq!(json(&["agents", "--json"]).as_array().unwrap().len(), 2);
        let shown = json(&["agents", "show", "a", "--json", "--project", "other"]);
        assert_eq!(shown["toolNames"], json!(["s__env", "s__pid"]), "{shown}");
        let servers = json(&["servers", "--json", "--project", "other"]);
        assert_eq!(servers.as_array().unwrap().len(), 1, "{servers}");
        assert_eq!(servers[0]["project"], "other");
        assert_eq!(json(&["servers", "--json"]).as_array().unwrap().len(), 2);
        let explained = json(&["doctor", "s__pid", "--agent", "a", "--project", "other", "--json"]);
        assert_eq!(explained["visible"], true);
        assert_eq!(home.run(["doctor", "s__pid", "--agent", "a"]).code, 1);
        let doctor = json(&["doctor", "--json", "--project", "other"]);
        assert!(doctor.to_string().contains("two") && !doctor.to_string().contains("/one\""), "{doctor}");
        let calls = json(&["audit", "--json", "--project", "other"]);
        assert!(calls.as_array().unwrap().iter().all(|call| call["project"] == "other"), "{calls}");
        let all = json(&["audit", "--json"]);
        assert_eq!(all.as_array().unwrap().len(), 2 * calls.as_array().unwrap().len(), "{all}");
        let runs = json(&["runs", "--json", "--project", "other"]);
        assert!(runs.as_array().unwrap().iter().all(|run| run["project"] == "other"), "{runs}");
        let pins = home.run(["lock", "diff", "--json", "--project", "other"]);
        assert!(pins.code < 2, "{pins:?}");
        let events = home.run(["events", "--json", "--project", "other"]);
        assert_eq!(events.code, 0, "{events:?}");
        let events: Vec<Value> =
            events.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert!(!events.is_empty() && events.iter().all(|event| event["project"] == "other"), "{events:?}");
    };
    commands(&home);
    let site = Site::at(home);
    commands(&site.home);
    let added = site.home.run([
        "servers",
        "add",
        "late",
        "--project",
        "other",
        "--",
        gantry_testkit::faulty::Faulty::program().to_str().expect("UTF-8"),
    ]);
    assert_eq!(added.code, 0, "{added:?}");
    site.ready("other", "late");
    site.error("default", "late__pid", &json!({}), "TOOL_NOT_FOUND");
    assert_eq!(site.home.run(["servers", "restart", "late", "--project", "other"]).code, 0);
    assert_eq!(site.home.run(["servers", "remove", "late"]).code, 2, "there is none in the default project");
    assert_eq!(site.home.run(["servers", "remove", "late", "--project", "other"]).code, 0);
    site.error("other", "late__pid", &json!({}), "TOOL_NOT_FOUND");
    let switched = site.home.run(["agents", "switch", "a", "--project", "other", "--json"]);
    assert_eq!((switched.code, &switched.json()["project"]), (0, &json!("other")), "{switched:?}");
    assert_eq!(site.tools("other"), ["s__env", "s__pid"]);
    assert!(site.tools("default").len() > 40);
}

#[test]
fn pol_1_a_project_that_is_not_there_is_404_over_http_and_nothing_more_is_said() {
    let site = Site::of(&with_agents());
    let call = json!({ "tool": "s__echo", "arguments": { "text": "x" }, "project": "nowhere" });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} });
    let requests = [
        (Method::GET, "/api/v1/tools?project=nowhere", Value::Null),
        (Method::POST, "/api/v1/calls", call),
        (Method::GET, "/api/v1/servers?project=nowhere", Value::Null),
        (Method::GET, "/api/v1/servers/s?project=nowhere", Value::Null),
        (
            Method::POST,
            "/api/v1/servers?project=nowhere",
            super::with(super::faulty(&[]), &json!({ "id": "x" })),
        ),
        (Method::DELETE, "/api/v1/servers/s?project=nowhere", Value::Null),
        (Method::POST, "/api/v1/servers/s/restart?project=nowhere", Value::Null),
        (Method::GET, "/api/v1/agents?project=nowhere", Value::Null),
        (Method::GET, "/api/v1/agents/a?project=nowhere", Value::Null),
        (Method::POST, "/api/v1/agents/a/activate?project=nowhere", Value::Null),
        (Method::POST, "/api/v1/agents/a/deactivate?project=nowhere", Value::Null),
        (Method::GET, "/api/v1/explain?project=nowhere&tool=s__pid", Value::Null),
        (Method::GET, "/api/v1/explain?project=nowhere", Value::Null),
        (Method::GET, "/api/v1/events?follow=false&project=nowhere", Value::Null),
        (Method::GET, "/api/v1/approvals?wait=20&project=nowhere", Value::Null),
        (Method::GET, "/api/v1/lock?project=nowhere", Value::Null),
        (Method::POST, "/api/v1/lock", json!({ "project": "nowhere" })),
        (Method::POST, "/mcp/nowhere", body.clone()),
        (Method::POST, "/mcp/nowhere/agents/a", body),
        (Method::GET, "/mcp/nowhere", Value::Null),
        (Method::DELETE, "/mcp/nowhere", Value::Null),
    ];
    for (method, path, body) in requests {
        let answer = site.admin(method.clone(), path, &body);
        assert_eq!(answer.status, 404, "{method} {path}: {answer:?}");
        let error = &answer.json()["error"];
        assert_eq!(error["code"], "NOT_FOUND", "{method} {path}: {answer:?}");
        assert_eq!(error["message"], "there is no such project", "{method} {path}: {answer:?}");
    }
}

#[test]
fn pol_1_no_name_is_a_way_around() {
    let site = Site::of(&with_agents());
    let upgrade = [
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    for path in ["/ws/nowhere", "/ws/nowhere/agents/a"] {
        let answer = site.server.request(Method::GET, path, &upgrade, "");
        let error = &answer.json()["error"];
        assert_eq!(
            (answer.status, &error["message"]),
            (404, &json!("there is no such project")),
            "{path}: {answer:?}"
        );
    }
    // Where the body names the project, a query that does so would be ignored, so there is none.
    for path in ["/api/v1/calls?project=other", "/api/v1/lock?project=other"] {
        let answer = site.admin(Method::POST, path, &json!({ "tool": "s__pid" }));
        assert_eq!(answer.status, 400, "{path}: {answer:?}");
        assert!(answer.text.contains("project"), "{path}: {answer:?}");
    }
    // A name that no project can have is no way around, nor one that would be part of a path.
    for name in ["..%2Fother", "%00", "OTHER", "%20other", "default%2F..%2Fother"] {
        let answer = site.server.get(&format!("/api/v1/tools?project={name}"));
        assert_eq!(answer.status, 404, "{name}: {answer:?}");
        let answer = site.server.post(&format!("/mcp/{name}"), "{}");
        assert_eq!(answer.status, 404, "{name}: {answer:?}");
    }
}

#[test]
fn pol_1_no_command_goes_on_in_a_project_that_is_not_there() {
    let site = Site::of(&with_agents());
    for args in [
        ["tools", "--project", "nowhere"].as_slice(),
        &["call", "s__pid", "--project", "nowhere"],
        &["servers", "--project", "nowhere"],
        &["agents", "--project", "nowhere"],
        &["agents", "show", "a", "--project", "nowhere"],
        &["agents", "switch", "a", "--project", "nowhere"],
        &["servers", "restart", "s", "--project", "nowhere"],
        &["doctor", "s__pid", "--project", "nowhere"],
        &["lock", "diff", "--project", "nowhere"],
        &["events", "--project", "nowhere"],
        &["mcp", "--project", "nowhere"],
    ] {
        let ran = site.home.run(args);
        // A call that is refused is no wrong usage, for any reason of the refusal.
        let code = if args[0] == "call" { 1 } else { 2 };
        assert_eq!((ran.code, ran.stdout.as_str()), (code, ""), "{args:?}: {ran:?}");
        assert!(ran.stderr.contains("project"), "{args:?}: {ran:?}");
    }
    let doctor = site.home.run(["doctor", "--project", "nowhere"]);
    assert!(doctor.code != 0 && (doctor.stdout + &doctor.stderr).contains("nowhere"), "it is not there");
}
