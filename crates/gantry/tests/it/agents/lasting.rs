//! How long a toolset lasts: fixed for an execution, but a right that is taken away is gone at once.

use super::{Site, faulty, path, real};
use crate::passthrough::{Door, Talk};
use gantry_testkit::TestDir;
use serde_json::{Value, json};

/// A server whose list grows on request, an agent that has all of it, and others.
fn site() -> Site {
    Site::of(&config(&json!({ "tools": ["s__*"] })))
}

fn config(agent: &Value) -> Value {
    json!({ "mcpServers": { "s": faulty(&[]) }, "agents": { "a": agent, "other": { "tools": ["*"] } } })
}

/// The newest tool that the server has grown, which every client that comes now sees.
fn grow(site: &Site) -> String {
    let grown = site.result("other", "s__grow", &json!({}));
    let name = format!("s__{}", grown.as_str().expect("a name").replace('-', "_"));
    site.server.eventually("a new tool is in the pool", || site.tools("other").contains(&name));
    name
}

#[test]
fn pol_4_a_tool_that_appears_is_not_there_for_a_running_session_until_it_lists_again() {
    let site = site();
    let agent = path("a");
    for door in [
        Door::Http(&site.server, &agent),
        Door::Ws(&site.server, "/ws/default/agents/a"),
        Door::Stdio(&site.home, &["--agent", "a"]),
    ] {
        let mut client = Talk::legacy(door);
        let before = client.tools();
        let grown = grow(&site);
        let call = json!({ "name": grown, "arguments": {} });
        // It is notified that there is something new, which makes it no part of this execution.
        client.hear("notifications/tools/list_changed");
        assert!(!before.contains(&grown));
        let error = client.error("tools/call", &call, -32602);
        let message = error["message"].as_str().expect("a message");
        assert!(message.starts_with(&format!("tool not found: {grown}")), "{error}");
        // A session that begins now has it, and so has every request that is an execution of its own.
        assert!(Talk::legacy(door).tools().contains(&grown));
        site.result("a", &grown, &json!({}));
        client.error("tools/call", &call, -32602);
        assert!(client.tools().contains(&grown), "it lists again, and begins anew");
        assert_eq!(client.call(&grown, &json!({})), grown.replace("s__", "").replace('_', "-"));
    }
}

#[test]
fn pol_4_globs_of_a_spawned_agent_are_fixed_for_its_execution() {
    let home = TestDir::with_test_tools().env("TEST_GANTRY_COORDINATION", "1");
    let config = json!({
        "mcpServers": { "s": faulty(&[]) },
        "agents": { "top": {}, "child": { "tools": ["spawn_agents", "s__*"] }, "witness": { "tools": ["s__gro*"] } },
    });
    let site = Site::at(home.config(&config.to_string()));
    let mut n = 0;
    // Whether the pool has the new tool by the time of the last call is for a witness to say that is spawned just before.
    site.server.eventually("a witness sees the tool that appeared", || {
        n += 1;
        let grown = format!("s__grown_{n}");
        let calls = json!([
            { "tool": "s__grow", "arguments": {} },
            { "tool": "s__sleep", "arguments": { "ms": 20 * n } },
            { "tool": "spawn_agents", "arguments": { "agent": "witness" } },
            { "tool": grown, "arguments": {} },
        ]);
        let outcome = site.result("top", "spawn_agents", &json!({ "agent": "child", "calls": calls }));
        let replies = &outcome["replies"];
        assert_eq!(replies[0]["result"], format!("grown-{n}"), "{outcome}");
        assert_eq!(replies[3]["error"]["code"], "TOOL_NOT_FOUND", "it is fixed: {outcome}");
        let seen = replies[2]["result"]["tools"].as_array().expect("tools");
        seen.iter().any(|tool| *tool == grown)
    });
    // The next execution has it.
    let calls = json!([{ "tool": format!("s__grown_{n}"), "arguments": {} }]);
    let outcome = site.result("top", "spawn_agents", &json!({ "agent": "child", "calls": calls }));
    assert_eq!(outcome["replies"][0]["result"], format!("grown-{n}"), "{outcome}");
}

#[test]
fn pol_4_a_right_that_is_taken_away_is_gone_at_once_for_a_running_session() {
    let site = site();
    let agent = path("a");
    for door in [Door::Http(&site.server, &agent), Door::Ws(&site.server, "/ws/default/agents/a")] {
        site.reload(&config(&json!({ "tools": ["s__echo", "s__pid"] })));
        let mut client = Talk::legacy(door);
        assert_eq!(client.tools(), ["s__echo", "s__pid"]);
        client.call("s__pid", &json!({}));
        site.reload(&config(&json!({ "tools": ["s__echo", "s__headers"] })));
        let unknown = client.error("tools/call", &json!({ "name": "s__pix", "arguments": {} }), -32602);
        let gone = client.error("tools/call", &json!({ "name": "s__pid", "arguments": {} }), -32602);
        let blank = |error: &Value, name: &str| error.to_string().replace(name, "NAME");
        assert_eq!(blank(&gone, "s__pid"), blank(&unknown, "s__pix"), "as if it had never been there");
        assert_eq!(client.call("s__echo", &json!({ "text": "x" })), "x", "what stays, stays");
        // What was given instead is not there before it lists.
        client.error("tools/call", &json!({ "name": "s__headers", "arguments": {} }), -32602);
        assert_eq!(client.tools(), ["s__echo", "s__headers"]);
        client.call("s__headers", &json!({}));
    }
}

#[test]
fn pol_4_every_way_to_take_a_right_away_holds_for_a_running_session() {
    let all = json!({ "tools": { "use": ["s"], "aliases": { "who": "@s/pid" } } });
    let site = Site::of(&config(&all));
    let agent = path("a");
    let denied = |code: &str| (format!("\"{code}\""), true);
    let not_found = || ("tool not found".to_owned(), false);
    let mut policies = config(&all);
    policies["policies"] = json!([{ "name": "no-pid", "tools": ["s__pid"], "decide": "deny" }]);
    let mut offered = config(&all);
    offered["mcpServers"]["s"]["toolsDenied"] = json!(["pid"]);
    let mut held = config(&all);
    held["approvals"] = json!({ "requiresApprovalTools": ["s__pid"], "delivery": "pending" });
    let mut alone = config(&all);
    alone["agents"] = json!({ "other": {} });
    for (what, changed, (words, is_result)) in [
        (
            "the allow-list",
            config(&json!({ "tools": { "use": ["s"], "allowed": ["s__echo"] } })),
            not_found(),
        ),
        ("the tools in use", config(&json!({ "tools": { "use": ["workspace"] } })), not_found()),
        ("a rule", policies, denied("PERMISSION_DENIED")),
        ("a person to ask", held, denied("APPROVAL_REQUIRED")),
        ("what the server may offer", offered, not_found()),
        ("the server", json!({ "agents": { "a": all, "other": {} } }), not_found()),
        ("the agent", alone, ("there is no agent \\\"a\\\"".to_owned(), true)),
    ] {
        site.reload(&config(&all));
        site.server.eventually("its tools are back", || site.tools("a").contains(&"s__pid".to_owned()));
        let mut client = Talk::legacy(Door::Http(&site.server, &agent));
        for spelling in ["s__pid", "who"] {
            let answer = client.ask("tools/call", &json!({ "name": spelling, "arguments": {} }));
            assert_eq!(answer["result"]["isError"], false, "before {what} goes, {spelling}: {answer}");
        }
        site.reload(&changed);
        for spelling in ["s__pid", "@s/pid", "who"] {
            let answer = client.ask("tools/call", &json!({ "name": spelling, "arguments": {} }));
            assert!(answer.to_string().contains(&words), "{what} {spelling}: {answer}");
            assert_eq!(answer.get("error").is_none(), is_result, "{what} {spelling}: {answer}");
        }
    }
}

#[test]
fn pol_4_what_a_real_server_adds_is_seen_by_the_next_execution() {
    // The server lists more for clients that can be asked; which client it has changes with the configuration.
    let home = TestDir::new();
    let entry = real(&home, "everything").1;
    let config = |sampling: bool| {
        let mut entry = entry.clone();
        entry["sampling"] = sampling.into();
        json!({ "mcpServers": { "everything": entry }, "agents": { "a": { "tools": ["everything__trigger-*"] } } })
    };
    let site = Site::at(home.config(&config(false).to_string()));
    let mut client = Talk::legacy(Door::Http(&site.server, "/mcp/default/agents/a"));
    let before = client.tools();
    let new = "everything__trigger_sampling_request";
    assert!(!before.is_empty() && !before.contains(&new.to_owned()), "{before:?}");
    site.reload(&config(true));
    site.settled();
    site.server.eventually("the tool is in the pool", || site.tools("a").contains(&new.to_owned()));
    client.error("tools/call", &json!({ "name": new, "arguments": { "prompt": "x" } }), -32602);
    assert!(client.tools().contains(&new.to_owned()));
}
