//! A switch from its beginning to its end: what runs is waited for, and every door then shows the new agent.

use super::{Stage, entry, faulty, of, pid, two, types};
use crate::passthrough::{Door, Talk};
use crate::results::mcp_tools;
use gantry_testkit::{TestDir, real_servers};
use serde_json::{Value, json};

/// The place of an event in the stream.
#[track_caller]
fn place(events: &[Value], is_it: impl Fn(&Value) -> bool) -> usize {
    events.iter().position(is_it).expect("it is told")
}

#[test]
fn pol_8_a_call_that_runs_when_a_switch_begins_is_waited_for_and_ends_well() {
    let stage = Stage::two();
    let held = stage.hold("sa");
    let (switched, answer) = stage.switch_around(held, || stage.activate("b"));
    let reply = answer.json();
    assert_eq!((answer.status, &reply["ok"], &reply["result"]), (200, &json!(true), &json!("slept")));
    let record = stage.record(&reply);
    assert_eq!((&record["state"], &record["agent"]), (&json!("COMPLETED_SUCCESS"), &json!("a")), "{record}");
    assert_eq!(
        (&switched["from"], &switched["to"], &switched["changed"], &switched["cutOff"], &switched["tools"]),
        (&json!("a"), &json!("b"), &json!(true), &json!(0), &json!(5)),
        "{switched}"
    );
    // It ran when the switch began, and had ended before anything was taken from it.
    let events = stage.events();
    let started = events.iter().rposition(|event| event["type"] == "agent_switch_started").expect("a switch");
    let finished = place(&events, |event| event["type"] == "tool_finished" && event["call"] == reply["id"]);
    let teardown = started + place(&events[started..], |event| event["type"] == "teardown");
    assert!(started < finished && finished < teardown, "{events:?}");
    assert_eq!(events[teardown]["forced"], false, "{}", events[teardown]);
    assert!(stage.journal().is_empty(), "the server was told of nothing: {:?}", stage.journal());
}

#[test]
fn pol_8_the_command_line_switches_a_running_gantry_and_waits_as_well() {
    let stage = Stage::two();
    let held = stage.hold("sa");
    let (ran, answer) = stage.switch_around(held, || stage.home.run(["agents", "switch", "b"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "b is active in default with 5 tools\n"), "{ran:?}");
    assert_eq!(answer.json()["result"], "slept");
    assert_eq!(stage.active().as_deref(), Some("b"));
    let again = stage.home.run(["agents", "switch", "a", "--json"]).json();
    assert_eq!(
        (&again["from"], &again["to"], &again["changed"], &again["project"]),
        (&json!("b"), &json!("a"), &json!(true), &json!("default"))
    );
    assert!(again.get("refused").is_none(), "{again}");
    let listed = stage.home.run(["agents", "--json"]).json();
    let active: Vec<_> = listed.as_array().expect("agents").iter().map(|agent| &agent["active"]).collect();
    assert_eq!(active, [&json!(true), &json!(false)], "{listed}");
}

#[test]
fn pol_8_after_a_switch_every_door_has_the_tools_of_the_new_agent_and_no_others() {
    let stage = Stage::two();
    let own = stage.pid("sa__pid");
    stage.activate("b");
    let expected = of("sb");
    assert_eq!(stage.tools(), expected);
    assert_eq!(stage.home.run(["tools", "--json"]).json().as_array().map(Vec::len), Some(expected.len()));
    let process = stage.pid("sb__pid");
    assert_ne!(own, process);
    assert_eq!(pid(&stage.home.call("sb__pid", &json!({}))), process);
    let doors = [
        ("/mcp", Door::Http(&stage.server, "/mcp")),
        ("/mcp/default", Door::Http(&stage.server, "/mcp/default")),
        ("/ws", Door::Ws(&stage.server, "/ws")),
        ("/sse", Door::Sse(&stage.server)),
        ("gantry mcp", Door::Stdio(&stage.home, &[])),
    ];
    for (what, door) in doors {
        let mut client = Talk::legacy(door);
        assert_eq!(client.tools(), expected, "{what}");
        assert_eq!(client.call("sb__pid", &json!({})), process.to_string(), "{what}");
        client.error("tools/call", &json!({ "name": "sa__pid", "arguments": {} }), -32602);
    }
    assert_eq!(mcp_tools(&stage.server, "/mcp"), expected, "and for a client of the newer era");
}

#[test]
fn pol_8_every_step_of_a_switch_is_an_event_in_order_with_its_project() {
    let stage = Stage::two();
    stage.activate("b");
    let steps = stage.last_steps();
    assert_eq!(
        types(&steps),
        ["agent_switch_started", "teardown", "teardown_finished", "build", "agent_switch_finished"]
    );
    for step in &steps {
        assert_eq!(step["project"], "default", "{step}");
    }
    let [started, teardown, gone, build, finished] = &steps[..] else { panic!("{steps:?}") };
    assert_eq!(
        (&started["from"], &started["to"], &started["graceMs"]),
        (&json!("a"), &json!("b"), &json!(5000))
    );
    assert_eq!(
        (&teardown["agent"], &teardown["forced"], &teardown["calls"]),
        (&json!("a"), &json!(false), &json!(0))
    );
    assert_eq!((&gone["agent"], &gone["servers"]), (&json!("a"), &json!(1)), "{gone}");
    assert_eq!((&build["agent"], &build["servers"]), (&json!("b"), &json!(["sb"])), "{build}");
    assert_eq!(
        (&finished["from"], &finished["to"], &finished["tools"]),
        (&json!("a"), &json!("b"), &json!(5)),
        "{finished}"
    );
    // The log and the command line tell the same.
    for said in [
        "[INF] agent_switch_started from=a to=b graceMs=5000",
        "[INF] teardown agent=a forced=false calls=0",
        "[INF] teardown_finished agent=a ",
        "[INF] build agent=b servers=[\"sb\"]",
        "[INF] agent_switch_finished from=a to=b tools=5 tookMs=",
    ] {
        stage.says(said);
    }
    let outcome = stage.home.run(["events", "--json"]).stdout;
    assert_eq!(
        outcome.lines().filter(|line| line.contains("\"agent_switch_finished\"")).count(),
        2,
        "{outcome}"
    );
}

#[test]
fn pol_8_readers_with_limited_access_see_no_switch() {
    let stage = Stage::two();
    stage.activate("b");
    let outcome = stage.server.get("/api/v1/events?follow=false").text;
    assert!(!outcome.contains("agent_switch") && !outcome.contains("teardown"), "{outcome}");
}

#[test]
fn pol_8_agents_with_real_servers_are_switched_to_and_fro() {
    let (first, second) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let files = real_servers::find("filesystem").prepare(first.path());
    let git = real_servers::find("git").prepare(second.path());
    let stage = Stage::of(&json!({
        "mcpServers": { "filesystem": entry(&files), "git": entry(&git) },
        "agents": { "reader": { "tools": ["filesystem__*"] }, "keeper": { "tools": ["git__*"] } },
    }));
    for (agent, own, other) in [("reader", &files, &git), ("keeper", &git, &files), ("reader", &files, &git)]
    {
        stage.activate(agent);
        let n_tools = real_servers::find(own.id).n_tools;
        stage.server.eventually("its tools are there", || stage.tools().len() == n_tools);
        let tool = format!("{}__{}", own.id, own.tool);
        let reply = stage.call(&tool, &own.arguments);
        assert!(reply["result"].to_string().contains(own.answer), "{reply}");
        assert_eq!(stage.record(&reply)["agent"], agent);
        let tool = format!("{}__{}", other.id, other.tool);
        super::assert_unknown(&stage.call(&tool, &other.arguments), &tool);
        assert_eq!(stage.running(&other.command), Vec::<u32>::new(), "{}", other.id);
    }
}

#[test]
fn pol_8_a_switch_of_one_project_leaves_the_others_alone() {
    let mut config = two(&faulty(&[]), &faulty(&[]));
    config["projects"] = json!({ "other": { "workspace": ".", "mcpServers": { "so": faulty(&[]) }, "agents": { "a": { "tools": of("so") } } } });
    let stage = Stage::at(TestDir::new().config(&config.to_string()));
    let ask = || {
        let call = json!({ "tool": "so__pid", "arguments": {}, "project": "other" });
        stage.server.post("/api/v1/calls", &call.to_string()).json()
    };
    let process = pid(&ask());
    for agent in ["a", "b", "a"] {
        stage.activate(agent);
        assert_eq!(pid(&ask()), process, "the other project keeps its process");
        assert_eq!(stage.record(&ask())["agent"], Value::Null);
    }
    let path = "/api/v1/agents/a/activate?project=other";
    assert_eq!(stage.admin(http::Method::POST, path).json()["project"], "other");
    assert_ne!(pid(&ask()), process, "and its own agent has another one");
    assert!(stage.last_steps().iter().all(|step| step["project"] == "other"));
    assert_eq!(stage.active().as_deref(), Some("a"));
    assert_eq!(stage.tools(), of("sa"));
}
