//! The runtime that the agents without one of their own share, while the project turns from one active agent to another.

use super::{Stage, faulty, of, pid};
use crate::passthrough::{Door, Talk};
use crate::queues::{cancel, defer, outcome};
use gantry_testkit::process;
use serde_json::{Value, json};

fn three() -> Stage {
    Stage::of(&json!({
        "mcpServers": { "sa": faulty(&[]), "sb": faulty(&[]), "sc": faulty(&[]) },
        "agents": { "a": { "tools": of("sa") }, "b": { "tools": of("sb") }, "c": { "tools": of("sc") } },
    }))
}

/// A call of `c` by name whose client does not wait, and that does not end by itself; its id, once it runs.
#[track_caller]
fn endless(stage: &Stage, server: &str) -> String {
    let tool = format!("{server}__sleep");
    let id = defer(&stage.server, &json!({ "tool": tool, "arguments": { "ms": 600_000 }, "agent": "c" }));
    let begun = |event: &Value| event["type"] == "tool_started" && event["call"] == id;
    stage.server.eventually("it runs", || stage.events().iter().any(begun));
    id
}

#[test]
fn pol_8_calls_of_other_agents_by_name_are_neither_waited_for_nor_cut_off() {
    let stage = three();
    stage.activate("a");
    let id = endless(&stage, "sc");
    assert_eq!(stage.activate("b")["cutOff"], 0);
    let call = stage.server.get(&format!("/api/v1/calls/{id}")).json();
    assert_eq!(call["state"], "EXECUTING", "the switch is over and it still runs: {call}");
    cancel(&stage.server, &id);
    assert_eq!(outcome(&stage.server, &id).json()["error"]["code"], "CANCELED");
}

#[test]
fn pol_8_the_shared_runtime_is_there_for_as_long_as_a_session_needs_it() {
    let stage = three();
    stage.activate("a");
    let servers = |stage: &Stage| {
        let listed = stage.server.get_as_admin("/api/v1/servers").json();
        let each = listed["items"].as_array().expect("servers").iter();
        each.filter(|server| server["agent"].is_null()).count()
    };
    assert_eq!(servers(&stage), 0, "nobody needs it");
    let client = Talk::legacy(Door::Http(&stage.server, "/mcp/default/agents/c"));
    assert_eq!(servers(&stage), 3);
    let shared = pid(&stage.call_as("c", "sc__pid", &json!({})));
    stage.activate("b");
    assert_eq!(pid(&stage.call_as("c", "sc__pid", &json!({}))), shared);
    drop(client);
    stage.activate("c");
    assert_eq!(servers(&stage), 0, "its last callers have moved to the agent's own");
    assert!(!process::is_running(shared));
    assert_ne!(pid(&stage.call_as("c", "sc__pid", &json!({}))), shared);
}

#[test]
fn pol_8_what_is_canceled_in_a_runtime_that_stays_is_not_said_to_be_cut_off_by_a_switch() {
    let stage = three();
    // A client without an agent leaves the shared runtime, and one with an agent stays.
    let id = endless(&stage, "sc");
    assert_eq!(stage.call("sa__echo", &json!({ "text": "x" }))["result"], "x");
    stage.activate("b");
    cancel(&stage.server, &id);
    let reply = outcome(&stage.server, &id).json();
    assert_eq!(reply["error"], json!({ "code": "CANCELED", "message": "canceled" }), "{reply}");
}

#[test]
fn pol_8_who_was_on_his_way_in_when_the_switch_began_does_not_stay_with_the_whole_project() {
    // A server that never starts keeps newcomers waiting at the door of the shared runtime.
    let stage = Stage::of(&json!({
        "mcpServers": { "sa": faulty(&[]), "slow": faulty(&["--never-start"]) },
        "agents": { "b": { "tools": ["sa__pid"] }, "c": { "tools": ["sa__sleep"] } },
    }));
    // A client that stays there, so that the switch leaves it running.
    stage.server.eventually("its tool is there", || stage.tools_as("c") == ["sa__sleep"]);
    endless(&stage, "sa");
    let (server, hello) = (
        &stage.server,
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } }),
    );
    let mut newcomer = Talk::silent(Door::Http(server, "/mcp"));
    let asked = newcomer.begin("initialize", &hello.to_string());
    // One that came later and was let in at once has passed the door, so the newcomer stands in it.
    assert!(stage.tools().contains(&"read_file".to_owned()));
    stage.activate("b");
    newcomer.end(asked);
    newcomer.tell("notifications/initialized", &json!({}));
    assert_eq!(newcomer.tools(), ["sa__pid"]);
    newcomer.error("tools/call", &json!({ "name": "read_file", "arguments": { "path": "x" } }), -32602);
    let rows = stage.server.get_as_admin("/api/v1/audit").json();
    assert_eq!(rows["items"][0]["agent"], "b", "{rows}");
}

#[test]
fn pol_8_going_back_to_no_agent_keeps_the_shared_runtime_and_its_processes() {
    let stage = three();
    let mut other = Talk::legacy(Door::Http(&stage.server, "/mcp/default/agents/c"));
    let shared: u32 = other.call("sc__pid", &json!({})).parse().expect("a process id");
    stage.activate("a");
    assert_eq!(other.call("sc__pid", &json!({})), shared.to_string());
    stage.deactivate("a");
    assert_eq!(stage.pid("sc__pid"), shared, "callers without an agent are there again");
    assert_eq!(stage.record(&stage.call("sc__pid", &json!({})))["agent"], Value::Null);
    let steps = stage.last_steps();
    let kinds = super::types(&steps);
    assert_eq!(kinds.first(), Some(&"agent_switch_started"));
    assert_eq!(kinds.last(), Some(&"agent_switch_finished"));
    // And the other way round: from there to an agent and back, with every client notified.
    let mut client = Talk::legacy(Door::Http(&stage.server, "/mcp"));
    let everything = client.tools();
    client.heard("notifications/tools/list_changed");
    stage.activate("b");
    client.hear("notifications/tools/list_changed");
    assert_eq!(client.tools(), of("sb"));
    client.heard("notifications/tools/list_changed");
    stage.deactivate("b");
    client.hear("notifications/tools/list_changed");
    assert_eq!(client.tools(), everything);
}
