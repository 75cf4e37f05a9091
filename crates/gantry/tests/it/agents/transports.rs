//! MCP servers of the catalogue, by every transport: how they come up, how they fail, how they are watched.

use super::{Site, faulty, path, real, with};
use crate::passthrough::{Door, Talk, elements, in_order, raw, without};
use crate::results::mcp_tools;
use gantry_testkit::TestDir;
use gantry_testkit::faulty::{Faulty, Kind};
use gantry_testkit::real_servers::{Everything, find};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Writes an entry of the catalogue into a file of its own.
fn tool(home: &TestDir, id: &str, entry: &Value) {
    home.write(&format!("tools/{id}/tool.json"), &entry.to_string());
}

/// An entry of kind `mcp` that starts a program.
fn program(server: &Value) -> Value {
    with(server.clone(), &json!({ "kind": "mcp", "transport": "stdio" }))
}

/// An entry of kind `mcp` that connects.
fn endpoint(transport: &str, url: &str) -> Value {
    json!({ "kind": "mcp", "transport": transport, "endpoint": url })
}

fn status(site: &Site, id: &str) -> Value {
    site.server.get_as_admin(&format!("/api/v1/servers/{id}")).json()
}

#[test]
fn pol_6_a_program_of_the_catalogue_is_started_and_answers() {
    let home = TestDir::new();
    // A server that others wrote, just as their catalogues have it: timeouts in a group of their own.
    let ready = find("time").prepare(home.path());
    let timeouts = json!({ "startupMs": 60_000, "requestMs": 20_000 });
    let mut entry = with(ready.entry(), &json!({ "id": "clock", "kind": "mcp", "transport": "stdio" }));
    entry["timeouts"] = timeouts;
    tool(&home, "clock", &entry);
    home.write("agents/a/agent.json", &json!({ "tools": { "use": ["clock"] } }).to_string());
    let site = Site::at(home);
    assert_eq!(site.tools("a"), ["clock__convert_time", "clock__get_current_time"]);
    let outcome = site.result("a", "@clock/convert_time", &ready.arguments);
    assert!(outcome.to_string().contains(ready.answer), "{outcome}");
    let status = status(&site, "clock");
    assert_eq!((&status["type"], &status["light"]), (&json!("stdio"), &json!("green")), "{status}");
}

#[test]
fn pol_6_servers_of_the_catalogue_are_connected_to_by_every_transport() {
    let home = TestDir::new();
    let servers = [Kind::Ws, Kind::Tcp, Kind::Http].map(|kind| Faulty::start(kind, &[]));
    let everything = Everything::start(Kind::Http);
    for (id, transport, url) in [
        ("by-ws", "ws", &servers[0].url),
        ("by-tcp", "tcp", &servers[1].url),
        ("by-http", "http", &servers[2].url),
        ("theirs", "streamable-http", &everything.url),
    ] {
        tool(&home, id, &endpoint(transport, url));
    }
    tool(&home, "by-stdio", &program(&faulty(&[])));
    let uses = json!(["by-ws", "by-tcp", "by-http", "by-stdio", "theirs"]);
    home.write("agents/a/agent.json", &json!({ "tools": { "use": uses } }).to_string());
    let site = Site::at(home);
    for (id, kind) in [("by-ws", "websocket"), ("by-tcp", "tcp"), ("by-http", "http"), ("by-stdio", "stdio")]
    {
        let echo = format!("@{id}/echo");
        assert_eq!(site.result("a", &echo, &json!({ "text": id })), id);
        assert_eq!(
            (&status(&site, id)["type"], &status(&site, id)["light"]),
            (&json!(kind), &json!("green"))
        );
    }
    assert_eq!(site.result("a", "theirs__echo", &json!({ "message": "hi" })), "Echo: hi");
}

#[test]
fn pol_6_a_servers_tools_are_discovered_and_each_can_be_called() {
    let home = TestDir::new();
    let (time, memory) = (real(&home, "time").1, real(&home, "memory").1);
    tool(&home, "time", &program(&time));
    tool(&home, "memory", &program(&memory));
    home.write("agents/a/agent.json", &json!({ "tools": { "use": ["time", "memory"] } }).to_string());
    let site = Site::at(home);
    let names = site.tools("a");
    assert_eq!(names.len(), find("time").n_tools + find("memory").n_tools, "{names:?}");
    assert_eq!(mcp_tools(&site.server, &path("a")), names);
    for name in &names {
        let reply = site.call("a", name, &json!({}));
        assert_ne!(reply["error"]["code"], "TOOL_NOT_FOUND", "{reply}");
        assert_eq!(reply["extras"]["tool"], *name, "{reply}");
    }
}

#[test]
fn pol_6_what_a_server_says_of_its_tools_reaches_the_model_and_people() {
    let home = TestDir::new();
    let entry = real(&home, "git").1;
    tool(&home, "git", &program(&entry));
    home.write("agents/a/agent.json", &json!({ "tools": { "use": ["git"] } }).to_string());
    let site = Site::at(home);
    let definitions = |mut client: Talk| -> BTreeMap<String, Vec<(String, String)>> {
        let list = client.ask_raw("tools/list", "{}");
        let tools = elements(raw(&list, &["result", "tools"])).into_iter();
        let named = tools.map(|tool| (serde_json::from_str(raw(tool, &["name"])).unwrap(), in_order(tool)));
        named
            .map(|(name, tool): (String, _)| (name.replace("git__", ""), without(&tool, &["name"])))
            .collect()
    };
    let own = definitions(Talk::modern_with(Door::Direct(&site.home, &entry), &json!({})));
    let through = definitions(Talk::modern_with(Door::Http(&site.server, &path("a")), &json!({})));
    assert_eq!(own.len(), find("git").n_tools);
    assert_eq!(through, own, "word for word, but for the name");
    // In the list that people look at, and that the page shows.
    for tool in site.listing("a") {
        let name = tool["name"].as_str().expect("a name").replace("git__", "");
        for (key, text) in &own[&name] {
            let expected: Value = serde_json::from_str(text).unwrap();
            assert_eq!(tool[key], expected, "{name} {key}");
        }
        assert_eq!(tool["provider"], json!({ "id": "git", "kind": "mcp", "namespace": "git" }));
    }
    let table = site.home.run(["tools", "--agent", "a"]).stdout;
    assert!(table.contains("git__git_status") && table.contains("Shows the working tree status"), "{table}");
}

#[test]
fn pol_6_a_server_of_the_catalogue_that_cannot_start_leaves_the_rest_working() {
    let home = TestDir::new();
    let quick = json!({ "timeouts": { "startupMs": 300 } });
    let gone = Faulty::start(Kind::Ws, &[]).url;
    let none = Faulty::start(Kind::Tcp, &[]).url;
    tool(&home, "exits", &program(&faulty(&["--exit-on-start"])));
    tool(&home, "hangs", &with(program(&faulty(&["--never-start"])), &quick));
    tool(&home, "missing", &json!({ "kind": "mcp", "command": "no-such-program-anywhere" }));
    tool(&home, "no-ws", &endpoint("ws", &gone));
    tool(&home, "no-tcp", &endpoint("tcp", &none));
    tool(&home, "unset", &with(program(&faulty(&[])), &json!({ "env": { "TOKEN": "${NO_SUCH_TOKEN}" } })));
    tool(&home, "works", &program(&faulty(&[])));
    let uses = json!(["exits", "hangs", "missing", "no-ws", "no-tcp", "unset", "works"]);
    home.write(
        "agents/a/agent.json",
        &json!({ "tools": { "use": uses, "allowed": ["*__echo"] } }).to_string(),
    );
    let site = Site::at(home);
    assert_eq!(site.tools("a"), ["works__echo"]);
    assert_eq!(site.result("a", "works__echo", &json!({ "text": "x" })), "x");
    for (id, light, words) in [
        ("exits", "red", "exit code 3"),
        ("hangs", "red", "300 ms"),
        ("missing", "red", "no-such-program-anywhere"),
        ("no-ws", "red", "refused"),
        ("no-tcp", "red", "refused"),
        ("unset", "off", "${NO_SUCH_TOKEN} is not set"),
    ] {
        // It is visible that it cannot be used: for people in words, for all by its light.
        let status = status(&site, id);
        let why = status["lastError"].as_str().unwrap_or_default();
        assert!(status["light"] == light && why.contains(words), "{id}: {status}");
        let public = site.server.get("/api/v1/servers").json();
        let shown = public["items"].as_array().unwrap().iter().find(|server| server["id"] == id).cloned();
        assert_eq!(shown.expect("it is listed")["light"], light, "{id}");
        let row = site.home.run(["servers"]).stdout;
        let row = row.lines().find(|line| line.contains(&format!(" {id} "))).unwrap_or_default().to_owned();
        assert!(row.contains(light), "{id}: {row}");
        site.not_found("a", &format!("{id}__echo"), &json!({}));
    }
    // What went wrong is in the log and in the stream.
    let down = site.events("server_down");
    for id in ["exits", "hangs", "missing", "no-ws", "no-tcp"] {
        assert!(down.iter().any(|event| event["server"] == id), "{id}: {down:?}");
        site.server.says(&format!("[WRN] server_down server={id} "));
    }
}

#[test]
fn pol_6_a_server_may_offer_only_what_is_exposed() {
    let home = TestDir::new();
    let entry = real(&home, "memory").1;
    tool(&home, "memory", &with(program(&entry), &json!({ "exposedTools": ["read_*", "search_nodes"] })));
    home.write("agents/a/agent.json", r#"{ "tools": { "use": ["memory"], "allowed": ["*"] } }"#);
    let site = Site::at(home);
    assert_eq!(site.tools("a"), ["memory__read_graph", "memory__search_nodes"]);
    let graph = site.result("a", "memory__read_graph", &json!({}));
    assert!(graph.to_string().contains("wrote programs"), "{graph}");
    // No agent has the others, not even one with all tools.
    site.not_found("a", "memory__delete_entities", &json!({ "entityNames": ["Ada"] }));
    assert_eq!(site.server.call("memory__delete_entities", &json!({ "entityNames": ["Ada"] })).status, 404);
    assert!(site.home.read("memory.jsonl").contains("Ada"));
}

#[test]
fn pol_6_a_tool_that_takes_longer_than_its_entry_says_times_out() {
    let home = TestDir::new();
    tool(&home, "slow", &with(program(&faulty(&[])), &json!({ "timeouts": { "requestMs": 200 } })));
    tool(&home, "patient", &with(program(&faulty(&[])), &json!({ "timeouts": { "requestMs": 60_000 } })));
    home.write("agents/a.md", "---\ntools: slow__*, patient__*\n---\n");
    let site = Site::at(home);
    let error = site.error("a", "slow__sleep", &json!({ "ms": 600_000 }), "TIMEOUT");
    assert_eq!(error["details"]["timeoutMs"], 200, "{error}");
    site.result("a", "patient__sleep", &json!({ "ms": 300 }));
    assert_eq!(site.result("a", "slow__echo", &json!({ "text": "x" })), "x", "only that call is lost");
}

#[test]
fn pol_6_a_server_is_checked_as_often_as_its_entry_says_and_its_light_shows_it() {
    let home = TestDir::new();
    let check = json!({ "healthCheck": { "kind": "jsonrpc", "intervalMs": 1500, "timeoutMs": 300 } });
    tool(&home, "watched", &with(program(&faulty(&[])), &check));
    home.write("agents/a.md", "---\ntools: watched__*\n---\n");
    let site = Site::at(home);
    let light = || status(&site, "watched")["light"].as_str().unwrap_or_default().to_owned();
    assert_eq!(light(), "green");
    let pid = site.result("a", "watched__pid", &json!({}));
    let process = Pid::from_raw(pid.as_str().unwrap().parse().unwrap()).expect("a process");
    kill_process(process, Signal::STOP).expect("it runs");
    site.server.eventually("it misses a check", || light() == "yellow");
    let shown = site.home.run(["servers"]).stdout;
    assert!(shown.lines().any(|line| line.starts_with("● yellow ") && line.contains("watched")), "{shown}");
    kill_process(process, Signal::CONT).expect("it runs");
    site.server.eventually("it answers again", || light() == "green");
    assert_eq!(site.result("a", "watched__pid", &json!({})), pid, "one missed check ends nothing");
    // One that misses every check is down, and begun anew.
    kill_process(process, Signal::STOP).expect("it runs");
    site.server.eventually("it is down", || {
        site.events("server_down").iter().any(|event| event["server"] == "watched")
    });
    site.server.eventually("it is another process", || {
        let now = site.call("a", "watched__pid", &json!({}));
        now["ok"] == true && now["result"] != pid
    });
    assert_eq!(light(), "green");
}
