//! Connected MCP clients go through a switch: they are notified, list again, and have what the new agent has.

use super::{Stage, of};
use crate::passthrough::{Door, Talk};
use serde_json::{Value, json};

/// Every door by which a client stays connected.
fn doors(stage: &Stage) -> [(&'static str, Door<'_>); 4] {
    [
        ("/mcp", Door::Http(&stage.server, "/mcp")),
        ("/ws", Door::Ws(&stage.server, "/ws")),
        ("/sse", Door::Sse(&stage.server)),
        ("gantry mcp", Door::Stdio(&stage.home, &[])),
    ]
}

const CHANGED: &str = "notifications/tools/list_changed";

#[test]
fn pol_8_connected_clients_are_notified_and_have_the_new_agents_tools_in_the_same_session() {
    let stage = Stage::two();
    let mut clients = doors(&stage).map(|(what, door)| (what, Talk::legacy(door)));
    for (what, client) in &mut clients {
        assert_eq!(client.tools(), of("sa"), "{what}");
        client.call("sa__pid", &json!({}));
        client.heard(CHANGED);
    }
    let session = clients[0].1.way.seen().session;
    for (agent, own, other) in [("b", "sb", "sa"), ("a", "sa", "sb")] {
        stage.activate(agent);
        let process = stage.pid(&format!("{own}__pid")).to_string();
        for (what, client) in &mut clients {
            client.hear(CHANGED);
            assert_eq!(client.tools(), of(own), "{what}");
            assert_eq!(client.call(&format!("{own}__pid"), &json!({})), process, "{what}");
            let gone = json!({ "name": format!("{other}__pid"), "arguments": {} });
            let error = client.error("tools/call", &gone, -32602);
            let message = error["message"].as_str().expect("a message");
            assert!(message.starts_with(&format!("tool not found: {other}__pid")), "{what}: {message}");
            client.heard(CHANGED);
        }
    }
    assert_eq!(clients[0].1.way.seen().session, session, "it is the same session");
}

#[test]
fn pol_8_a_client_that_does_not_look_again_has_lost_what_it_had() {
    let stage = Stage::two();
    let mut clients = doors(&stage).map(|(what, door)| (what, Talk::legacy(door)));
    for (_, client) in &mut clients {
        client.call("sa__pid", &json!({}));
    }
    stage.activate("b");
    for (what, client) in &mut clients {
        // The first thing that it says after the switch, without having listed anything.
        let gone = json!({ "name": "sa__pid", "arguments": {} });
        let error = client.error("tools/call", &gone, -32602);
        assert!(
            error["message"].as_str().is_some_and(|it| it.starts_with("tool not found")),
            "{what}: {error}"
        );
        assert!(!client.call("sb__pid", &json!({})).is_empty(), "{what}: and the new ones are there");
    }
}

#[test]
fn pol_8_a_client_that_listens_for_changes_in_the_newer_era_is_notified() {
    let stage = Stage::two();
    let doors = doors(&stage).into_iter().filter(|(what, _)| *what != "/sse");
    let mut clients: Vec<_> = doors.map(|(what, door)| (what, Talk::modern(door))).collect();
    for (what, client) in &mut clients {
        assert_eq!(client.tools(), of("sa"), "{what}");
        client.begin(
            "subscriptions/listen",
            &json!({ "notifications": { "toolsListChanged": true } }).to_string(),
        );
        client.hear("notifications/subscriptions/acknowledged");
    }
    stage.activate("b");
    for (what, client) in &mut clients {
        client.hear(CHANGED);
        assert_eq!(client.tools(), of("sb"), "{what}");
        assert!(!client.call("sb__pid", &json!({})).is_empty(), "{what}");
    }
}

/// Clients at every door call a tool while `b` takes the place of `a`. Each waits for the new agent's answer, is notified all
/// the same, and sees the new agent's tools.
#[track_caller]
fn asked_during_the_switch(
    stage: &Stage,
    (tool, arguments): (&str, &Value),
    is_right: impl Fn(&str) -> bool,
    tools: &[String],
) {
    let mut clients = doors(stage).map(|(what, door)| (what, Talk::legacy(door)));
    for (_, client) in &mut clients {
        assert_eq!(client.tools(), of("sa"));
        client.heard(CHANGED);
    }
    let held = stage.hold("sa");
    std::thread::scope(|scope| {
        let switching = scope.spawn(|| stage.activate("b"));
        stage.moving();
        let asked: Vec<u64> =
            clients.iter_mut().map(|(_, client)| client.begin_call(tool, arguments)).collect();
        assert_eq!(held.end().json()["result"], "slept");
        switching.join().expect("a switch without complaints");
        for ((what, client), call) in clients.iter_mut().zip(asked) {
            let answer = client.end_call(call);
            assert!(is_right(&answer), "{what}: {answer}");
            client.hear(CHANGED);
            assert_eq!(client.tools(), tools, "{what}");
        }
    });
}

#[test]
fn pol_8_a_client_that_asks_during_the_switch_waits_for_the_new_agent_and_is_notified_all_the_same() {
    let stage = Stage::two();
    let is_right = |answer: &str| answer == stage.pid("sb__pid").to_string();
    asked_during_the_switch(&stage, ("sb__pid", &json!({})), is_right, &of("sb"));
}

#[test]
fn pol_8_a_client_that_asks_during_a_switch_to_an_agent_without_servers_is_notified_as_well() {
    let stage = Stage::of(&json!({
        "mcpServers": { "sa": super::faulty(&[]) },
        "agents": { "a": { "tools": of("sa") }, "b": { "tools": ["list_directory"] } },
    }));
    stage.activate("a");
    let list = ("list_directory", &json!({ "path": "." }));
    let is_right = |answer: &str| answer.contains("sa-may-end");
    asked_during_the_switch(&stage, list, is_right, &["list_directory".to_owned()]);
}

#[test]
fn pol_8_clients_of_an_agent_by_name_keep_what_they_have_when_another_one_is_activated() {
    let stage = Stage::of(&json!({
        "mcpServers": { "sa": super::faulty(&[]), "sb": super::faulty(&[]), "sc": super::faulty(&[]) },
        "agents": { "a": { "tools": of("sa") }, "b": { "tools": of("sb") }, "c": { "tools": of("sc") } },
    }));
    stage.activate("a");
    let mut clients = [
        ("/mcp", Talk::legacy(Door::Http(&stage.server, "/mcp/default/agents/b"))),
        ("gantry mcp", Talk::legacy(Door::Stdio(&stage.home, &["--agent", "b"]))),
    ];
    let process = clients[0].1.call("sb__pid", &json!({}));
    for (what, client) in &mut clients {
        assert_eq!(client.tools(), of("sb"), "{what}");
        client.heard(CHANGED);
    }
    for agent in ["c", "a", "c"] {
        stage.activate(agent);
        for (what, client) in &mut clients {
            assert_eq!(client.call("sb__pid", &json!({})), process, "{what}: the same process");
            assert_eq!(client.tools(), of("sb"), "{what}");
            assert_eq!(client.heard(CHANGED), [] as [Value; 0], "{what}: nothing of it is its affair");
        }
    }
    // When it becomes the active one itself, it has what the agent then has for itself.
    stage.activate("b");
    let own = stage.pid("sb__pid").to_string();
    assert_ne!(own, process);
    for (what, client) in &mut clients {
        assert_eq!(client.call("sb__pid", &json!({})), own, "{what}");
        assert_eq!(client.tools(), of("sb"), "{what}");
    }
}

#[test]
fn pol_8_a_client_that_was_canceled_by_a_person_is_not_brought_back_by_a_switch() {
    let stage = Stage::two();
    let mut client = Talk::legacy(Door::Http(&stage.server, "/mcp"));
    client.call("sa__pid", &json!({}));
    let runs = stage.server.get_as_admin("/api/v1/runs").json();
    let run = runs["items"].as_array().expect("runs").iter().find(|run| run["door"] == "mcp").expect("a run");
    let path = format!("/api/v1/runs/{}/cancel", run["id"].as_str().expect("an id"));
    assert_eq!(stage.admin(http::Method::POST, &path).json()["canceled"], true);
    stage.activate("b");
    let answer = client.ask("tools/call", &json!({ "name": "sb__pid", "arguments": {} }));
    assert!(answer["error"]["message"].as_str().is_some_and(|it| it.contains("connect again")), "{answer}");
}
