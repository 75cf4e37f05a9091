//! Toolsets: what an agent sees, for how long, and that what it does not see is not there for it.

use crate::pipeline::post;
use crate::results::{mcp_call, mcp_tools};
use gantry_testkit::server::send;
use gantry_testkit::{Server, TestDir};
use serde_json::{Value, json};

/// The names that `gantry tools --agent` lists.
fn tools_of(home: &TestDir, agent: &str) -> Vec<String> {
    let tools = home.run(["tools", "--agent", agent, "--json"]).json();
    let names = tools.as_array().into_iter().flatten();
    names.map(|tool| tool["name"].as_str().unwrap_or_default().to_owned()).collect()
}

/// One message of a connected MCP client, with the id of its session if it has one.
fn say(
    server: &Server,
    session: Option<&str>,
    method: &str,
    params: &Value,
) -> gantry_testkit::server::Answer {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let mut headers = vec![("content-type", "application/json")];
    headers.extend(session.map(|id| ("mcp-session-id", id)));
    server.request(http::Method::POST, "/mcp/default/agents/a", &headers, &body)
}

#[test]
fn pol_3_an_agents_tools_are_names_globs_or_everything() {
    let home = TestDir::with_test_tools().config(
        r#"
agents:
  exact: { tools: [read_file, test__echo] }
  glob: { tools: ["*_file", "test__slow*", "test__?oop"] }
  slashed: { tools: ["@test/echo", "@workspace/read_*", "@test/slow-write"] }
  twice: { tools: [test__echo, "test__e*", "@test/echo"] }
  all: { tools: ["*"] }
  unsaid: {}
  none: { tools: [] }
"#,
    );
    assert_eq!(tools_of(&home, "exact"), ["read_file", "test__echo"]);
    let files = ["delete_file", "move_file", "read_file", "test__noop", "test__slow_write", "write_file"];
    assert_eq!(tools_of(&home, "glob"), files);
    assert_eq!(tools_of(&home, "slashed"), ["read_file", "test__echo", "test__slow_write"]);
    assert_eq!(tools_of(&home, "twice"), ["test__echo"], "a tool is there once");
    let everything = home.run(["tools", "--json"]).json();
    assert_eq!(json!(tools_of(&home, "all").len()), json!(everything.as_array().unwrap().len()));
    assert_eq!(tools_of(&home, "all"), tools_of(&home, "unsaid"));
    assert!(tools_of(&home, "none").is_empty());
    let reply = home.run(["call", "read_file", "{}", "--agent", "none", "--json"]).json();
    assert_eq!(reply["error"]["message"], "tool not found: read_file", "and there is nothing to suggest");
}

#[test]
fn pol_3_a_pattern_that_matches_nothing_is_a_warning_and_no_failure() {
    let home = TestDir::with_test_tools()
        .config("agents: { a: { tools: [test__echo, \"github__*\", tset__echo] }, b: { tools: [\"*\"] } }\n");
    let server = home.serve();
    let said = server.stderr();
    for pattern in ["github__*", "tset__echo"] {
        assert!(said.contains(&format!("[WRN] agent a: \"{pattern}\" matches no tool\n")), "{said}");
    }
    assert_eq!(said.matches("matches no tool").count(), 2, "{said}");
    let reply =
        post(&server, &json!({ "tool": "test__echo", "arguments": { "text": "hi" }, "agent": "a" })).json();
    assert_eq!(reply["result"], "hi");
}

#[test]
fn pol_3_a_provider_offers_what_it_is_allowed_to_and_nothing_for_an_empty_list() {
    let offered = |lists: &str| {
        let home =
            TestDir::new().config(&format!("tools: {{ workspace: {{ {lists} }} }}\nagents: {{ a: {{}} }}\n"));
        tools_of(&home, "a")
    };
    assert_eq!(offered(r#"toolsAllowed: ["read_*", move_file]"#), ["move_file", "read_file"]);
    assert_eq!(offered(r#"toolsAllowed: ["*_file"], toolsDenied: ["*e_file"]"#), ["read_file"]);
    assert_eq!(offered("toolsAllowed: []"), [""; 0]);
    assert_eq!(offered("enabled: false"), [""; 0]);
}

#[test]
fn pol_4_a_toolset_is_fixed_for_an_execution_and_the_next_one_sees_what_is_new() {
    let home = TestDir::with_test_tools().config("agents: { a: { tools: [test__echo] } }\n");
    let server = home.serve();
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let welcome = say(&server, None, "initialize", &hello);
    let session = welcome.headers["mcp-session-id"].to_str().unwrap().to_owned();
    let call = |tool: &str| {
        say(&server, Some(&session), "tools/call", &json!({ "name": tool, "arguments": { "text": "hi" } }))
            .json()
    };
    assert_eq!(call("test__echo")["result"]["content"][0]["text"], "hi");
    assert!(call("test__noop")["error"].is_object());
    // What the agent may use grows under the session.
    home.write("gantry.yaml", "agents: { a: { tools: [test__echo, test__noop] } }\n");
    let reloaded = send(&server.admin(), http::Method::POST, "/api/v1/config/reload", &[], "");
    assert_eq!(reloaded.status, 200, "{reloaded:?}");
    assert_eq!(call("test__echo")["result"]["content"][0]["text"], "hi", "what it saw stays");
    assert!(call("test__noop")["error"].is_object(), "and nothing joins it");
    let both = ["test__echo", "test__noop"];
    assert_eq!(mcp_tools(&server, "/mcp/default/agents/a"), both, "the next one sees the change");
    assert_eq!(tools_of(&home, "a"), both);
    say(&server, Some(&session), "tools/list", &json!({}));
    assert_eq!(call("test__noop")["result"]["content"][0]["text"], "ok", "who lists begins anew");
}

#[test]
fn pol_5_a_tool_outside_the_toolset_is_not_found_by_any_door() {
    let home = TestDir::with_test_tools().config("agents: { a: { tools: [test__echo, test__nested] } }\n");
    let file = home.path().join("c");
    let arguments = json!({ "file": file, "text": "x" });
    let not_found = "tool not found: test__count";
    let starts = |text: &Value| text.as_str().unwrap_or_default().starts_with(not_found);
    let server = home.serve();
    // The command line, with and without a person who says yes.
    for yes in [&[] as &[&str], &["--yes"]] {
        let text = arguments.to_string();
        let ran = home.run(["call", "test__count", &text, "--agent", "a", "--json"].iter().chain(yes));
        assert_eq!((ran.code, &ran.json()["error"]["code"]), (1, &json!("TOOL_NOT_FOUND")), "{ran:?}");
        assert!(starts(&ran.json()["error"]["message"]), "{ran:?}");
    }
    let answer = post(&server, &json!({ "tool": "test__count", "arguments": arguments, "agent": "a" }));
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (404, &json!("TOOL_NOT_FOUND")));
    assert!(starts(&answer.json()["error"]["message"]));
    let by_mcp = mcp_call(&server, "/mcp/default/agents/a", "test__count", &arguments);
    assert_eq!(by_mcp["error"]["code"], -32602, "{by_mcp}");
    assert!(starts(&by_mcp["error"]["message"]), "{by_mcp}");
    // Nor by a tool that calls others for the agent.
    let below = json!({ "tool": "test__count", "arguments": arguments });
    let nested = post(&server, &json!({ "tool": "test__nested", "arguments": below, "agent": "a" })).json();
    assert!(
        nested["result"].as_str().unwrap().starts_with(&format!("(tool failed: {not_found}")),
        "{nested}"
    );
    assert!(!file.exists());
    // And no door lists it.
    assert_eq!(tools_of(&home, "a"), ["test__echo", "test__nested"]);
    assert_eq!(mcp_tools(&server, "/mcp/default/agents/a"), ["test__echo", "test__nested"]);
    let listed = server.get("/api/v1/tools?agent=a").json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 2);
    // It is on record that it was tried, and as whom.
    let rows = server.get_as_admin("/api/v1/audit?tool=test__count").json();
    let rows = rows["items"].as_array().unwrap();
    assert_eq!(rows.len(), 5);
    assert!(rows.iter().all(|row| row["agent"] == "a" && row["state"] == "REFUSED"));
}

#[test]
fn pol_5_an_agent_that_is_not_configured_gets_nothing() {
    let home = TestDir::with_test_tools().config("agents: { a: { tools: [test__echo] } }\n");
    let server = home.serve();
    let call = post(&server, &json!({ "tool": "test__echo", "arguments": { "text": "hi" }, "agent": "b" }));
    assert_eq!((call.status, &call.json()["error"]["code"]), (403, &json!("PERMISSION_DENIED")));
    assert_eq!(server.get("/api/v1/tools?agent=b").status, 403);
    assert!(mcp_call(&server, "/mcp/default/agents/b", "test__echo", &json!({}))["error"].is_object());
    assert!(mcp_tools(&server, "/mcp/default/agents/b").is_empty());
    assert_ne!(home.run(["call", "test__echo", "{}", "--agent", "b"]).code, 0);
    assert_ne!(home.run(["tools", "--agent", "b"]).code, 0);
}

#[test]
fn pol_5_a_restricted_agent_can_read_its_own_stored_results() {
    let home = TestDir::with_test_tools()
        .config("defaults: { toolResponseMaxBytes: 1000 }\nagents: { a: { tools: [test__flood] } }\n");
    let call = |tool: &str, arguments: Value| {
        home.run(["call", tool, &arguments.to_string(), "--agent", "a", "--json"]).json()
    };
    let handle = call("test__flood", json!({ "bytes": 2000 }))["result"]["tool_output"]["handle"].take();
    let read = call("tool_output", json!({ "handle": handle, "mode": "head", "count": 1 }));
    assert_eq!(read["result"]["content"], "0123456789abcde", "{read}");
    assert_eq!(tools_of(&home, "a"), ["test__flood", "tool_output"]);
}
