//! What the new agent is given: its own servers and nothing that the one before has left in memory.

use super::{Stage, faulty, of, pid, remote, two};
use crate::passthrough::{Door, Talk, names};
use gantry_testkit::faulty::{Faulty, Kind};
use gantry_testkit::{TestDir, process, real_servers};
use serde_json::{Value, json};

#[test]
fn pol_8_only_the_servers_that_the_new_agent_may_use_are_started() {
    let (tcp, ws) = (Faulty::start(Kind::Tcp, &[]), Faulty::start(Kind::Ws, &[]));
    let stage = Stage::of(&json!({
        "mcpServers": {
            "s1": faulty(&["--tool", "one"]), "s2": faulty(&["--tool", "two"]),
            "t1": remote("tcp", &tcp.url), "w1": remote("websocket", &ws.url),
        },
        "agents": {
            "glob": { "tools": ["s1__*", "w1__*"] },
            "exact": { "tools": ["s2__pid", "t1__echo"] },
            "named": { "tools": { "use": ["s1"] } },
            "builtin": { "tools": ["read_file"] },
            "nothing": { "tools": [] },
            "all": { "tools": ["*"] },
        },
    }));
    for (agent, expected) in [
        ("glob", &["s1", "w1"] as &[&str]),
        ("exact", &["s2", "t1"]),
        ("named", &["s1"]),
        ("builtin", &[]),
        ("nothing", &[]),
        ("all", &["s1", "s2", "t1", "w1"]),
    ] {
        stage.activate(agent);
        let build = stage.last_steps().into_iter().find(|step| step["type"] == "build").expect("a build");
        assert_eq!(build["servers"], json!(expected), "{agent}");
        let listed = stage.server.get_as_admin("/api/v1/servers").json();
        let ids: Vec<&str> =
            listed["items"].as_array().expect("servers").iter().filter_map(|it| it["id"].as_str()).collect();
        assert_eq!(ids, expected, "{agent}");
        let has = |id: &str| expected.contains(&id);
        for (id, mark) in [("s1", "--tool one"), ("s2", "--tool two")] {
            assert_eq!(!stage.running(mark).is_empty(), has(id), "{agent}: {id} runs");
        }
        for (id, server) in [("t1", &tcp), ("w1", &ws)] {
            let connected = || (process::connections(server.address.port()) > 0) == has(id);
            stage.server.eventually(&format!("{agent}: {id} is connected as it should be"), connected);
        }
    }
}

#[test]
fn pol_8_agents_and_tools_that_are_files_are_built_from_them() {
    let (tcp, ws) = (Faulty::start(Kind::Tcp, &[]), Faulty::start(Kind::Ws, &[]));
    let home = TestDir::new().config("workspace: .\n");
    let tool = |more: Value| {
        let mut tool = json!({ "kind": "mcp" });
        tool.as_object_mut().expect("keys").extend(more.as_object().cloned().expect("keys"));
        tool.to_string()
    };
    let program = json!(Faulty::program());
    home.write("tools/local/tool.json", &tool(json!({ "transport": "stdio", "command": program })));
    home.write("tools/line/tool.json", &tool(json!({ "transport": "tcp", "endpoint": tcp.url })));
    home.write("tools/socket/tool.json", &tool(json!({ "transport": "ws", "endpoint": ws.url })));
    home.write(
        "agents/a/agent.json",
        r#"{ "name": "a", "prompt": "Be a.", "tools": { "use": ["local", "line"], "allowed": ["who", "line__pid"], "aliases": { "who": "@local/pid" } } }"#,
    );
    home.write("agents/b.md", "---\ntools: [socket__pid, read_file]\n---\nBe b.\n");
    let stage = Stage::at(home);
    stage.activate("a");
    assert_eq!(stage.tools(), ["line__pid", "local__pid", "who"]);
    let process = stage.pid("who");
    assert_eq!(process, stage.pid("local__pid"), "both spellings are one tool");
    assert_eq!(stage.pid("line__pid"), tcp.pid());
    stage.server.eventually("nobody needs the socket", || process::connections(ws.address.port()) == 0);
    stage.activate("b");
    assert_eq!(stage.tools(), ["read_file", "socket__pid"]);
    assert_eq!(stage.pid("socket__pid"), ws.pid());
    assert!(!process::is_running(process));
    super::assert_unknown(&stage.call("who", &json!({})), "who");
}

#[test]
fn pol_8_a_stored_output_of_one_agent_cannot_be_read_as_another() {
    let config = "defaults: { toolResponseMaxBytes: 1000 }\n\
                  agents: { a: { tools: [test__flood] }, b: { tools: [test__flood] } }\n";
    let stage = Stage::at(TestDir::with_test_tools().config(config));
    stage.activate("a");
    let flood = |stage: &Stage| {
        let reply = stage.call("test__flood", &json!({ "bytes": 2000 }));
        reply["result"]["tool_output"]["handle"].as_str().expect("a handle").to_owned()
    };
    let read = |handle: &str| json!({ "handle": handle, "mode": "head", "count": 1 });
    let handle = flood(&stage);
    assert_eq!(stage.call("tool_output", &read(&handle))["result"]["content"], "0123456789abcde");
    assert_eq!(stage.tools(), ["test__flood", "tool_output"]);
    stage.activate("b");
    assert_eq!(stage.tools(), ["test__flood"], "there is nothing to read");
    super::assert_unknown(&stage.call("tool_output", &read(&handle)), "tool_output");
    let own = flood(&stage);
    assert_eq!(stage.call("tool_output", &read(&own))["result"]["content"], "0123456789abcde");
    // With the tool, and with the handle, it is still not b's: exactly as if there were no such output.
    let invented = own.replace(own.chars().last().expect("a handle"), "z");
    let denied = |agent: Option<&str>, handle: &str| {
        let reply = match agent {
            None => stage.call("tool_output", &read(handle)),
            Some(agent) => stage.call_as(agent, "tool_output", &read(handle)),
        };
        assert_eq!(reply["ok"], false, "{reply}");
        (reply["error"]["code"].clone(), reply["error"]["message"].to_string().replace(handle, "HANDLE"))
    };
    for agent in [None, Some("b")] {
        assert_eq!(denied(agent, &handle), denied(agent, &invented));
    }
    stage.deactivate("b");
    flood(&stage);
    assert_eq!(denied(None, &handle), denied(None, &invented), "nor is it anybody's");
}

#[test]
fn pol_8_what_a_real_server_remembers_of_one_agent_the_next_does_not_meet() {
    let folder = tempfile::tempdir().expect("a folder");
    let ready = real_servers::find("sequential-thinking").prepare(folder.path());
    let tool = format!("thinking__{}", ready.tool);
    let stage = Stage::of(&json!({
        "mcpServers": { "thinking": super::entry(&ready) },
        "agents": { "a": { "tools": ["thinking__*"] }, "b": { "tools": ["thinking__*"] } },
    }));
    let think = || {
        let reply = stage.call(&tool, &ready.arguments);
        let outcome = reply["result"].as_str().map(|text| serde_json::from_str::<Value>(text).expect("JSON"));
        outcome.unwrap_or_else(|| reply["result"].clone())["thoughtHistoryLength"].as_u64()
    };
    stage.activate("a");
    stage.server.eventually("its tool is there", || stage.tools().len() == 1);
    assert_eq!([think(), think(), think()], [Some(1), Some(2), Some(3)]);
    stage.activate("b");
    stage.server.eventually("its tool is there", || stage.tools().len() == 1);
    assert_eq!([think(), think()], [Some(1), Some(2)], "b's process has heard nothing of a");
    stage.activate("a");
    stage.server.eventually("its tool is there", || stage.tools().len() == 1);
    assert_eq!(think(), Some(1), "and what a had is gone");
}

#[test]
fn pol_8_an_answer_that_one_agent_got_is_not_given_to_the_next_from_the_cache() {
    let mut server = faulty(&[]);
    server["cache"] = json!(600_000);
    let stage = Stage::of(&json!({
        "mcpServers": { "both": server },
        "agents": { "a": { "tools": of("both") }, "b": { "tools": of("both") } },
    }));
    stage.activate("a");
    let first = stage.call("both__pid", &json!({}));
    let again = stage.call("both__pid", &json!({}));
    assert_eq!((&again["result"], &stage.record(&again)["cached"]), (&first["result"], &json!(true)));
    stage.activate("b");
    let other = stage.call("both__pid", &json!({}));
    assert_ne!(pid(&other), pid(&first), "a server that both may use is not the same process");
    assert_eq!(stage.record(&other)["cached"], false);
    stage.activate("a");
    let later = stage.call("both__pid", &json!({}));
    assert_ne!(pid(&later), pid(&first), "and what a had in the cache is gone");
}

#[test]
fn pol_8_a_server_that_is_behind_a_socket_gets_a_connection_of_its_own_for_each_agent() {
    let shared = Faulty::start(Kind::Tcp, &[]);
    let stage = Stage::of(&json!({
        "mcpServers": { "both": remote("tcp", &shared.url) },
        "agents": { "a": { "tools": ["both__session"] }, "b": { "tools": ["both__session"] } },
    }));
    let session = || {
        let reply = stage.call("both__session", &json!({}));
        let counters: Value = serde_json::from_str(reply["result"].as_str().expect("a text")).expect("JSON");
        counters["session"].as_u64().expect("a number")
    };
    let mut seen = Vec::new();
    for agent in ["a", "b", "a"] {
        stage.activate(agent);
        let own = session();
        assert_eq!(own, session(), "{agent} keeps its session");
        assert!(!seen.contains(&own), "{agent} has the session of another: {own} of {seen:?}");
        seen.push(own);
        stage
            .server
            .eventually("one connection is left", || process::connections(shared.address.port()) == 1);
    }
}

#[test]
fn pol_8_resources_and_prompts_are_those_of_the_new_agents_servers() {
    let stage = Stage::of(&two(&faulty(&[]), &faulty(&[])));
    for (agent, own) in [("a", "sa"), ("b", "sb")] {
        stage.activate(agent);
        let mut client = Talk::legacy(Door::Http(&stage.server, "/mcp"));
        for (method, member, key) in
            [("resources/list", "resources", "uri"), ("prompts/list", "prompts", "name")]
        {
            let listed = client.result(method, &json!({}));
            let listed = crate::passthrough::members(&listed[member], key);
            let is_own = |name: &String| {
                name.starts_with(&format!("gantry:{own}/")) || name.starts_with(&format!("{own}__"))
            };
            assert!(listed.len() >= 4 && listed.iter().all(is_own), "{agent} {method}: {listed:?}");
        }
        assert_eq!(names(&client.result("tools/list", &json!({}))["tools"]), of(own));
    }
}
