//! Agents below agents: what starts them is taken away with depth, and a spawn can leave a child less than it has.
//!
//! The tools that start agents are replaced: a spawned agent makes the calls that its arguments list.

use super::Site;
use gantry_testkit::TestDir;
use serde_json::{Value, json};

const STARTERS: [&str; 2] = ["list_available_agents", "spawn_agents"];

/// A Gantry with agents that start others, in several ways.
fn site(more: &Value) -> Site {
    let config = json!({
        "agents": {
            "top": { "tools": ["*"] },
            "star": { "tools": ["*"] },
            "glob": { "tools": ["spawn_*", "list_available*", "test__echo"] },
            "provider": { "tools": { "use": ["test__echo", "@coordination/*"] } },
            "aliased": { "tools": { "use": ["*"], "aliases": { "start": "spawn_agents" } } },
            "named": { "tools": ["spawn_agents", "list_available_agents", "test__echo", "test__noop"] },
            "spelled": { "tools": ["@coordination/spawn_agents", "test__echo"] },
            "worker": { "tools": ["test__echo", "test__noop"] },
        },
    });
    let home = TestDir::with_test_tools().env("TEST_GANTRY_COORDINATION", "1");
    Site::at(home.config(&super::with(config, more).to_string()))
}

/// What `top` gets back of an agent that it spawns to make these calls.
#[track_caller]
fn spawn(site: &Site, agent: &str, calls: &Value) -> Value {
    site.result("top", "spawn_agents", &json!({ "agent": agent, "calls": calls }))
}

/// The same, one deeper: below `named`, which is below `top`.
#[track_caller]
fn spawn_below(site: &Site, agent: &str, calls: &Value) -> Value {
    let below = json!({ "tool": "spawn_agents", "arguments": { "agent": agent, "calls": calls } });
    let mut outcome = spawn(site, "named", &json!([below]));
    assert_eq!(outcome["replies"][0]["ok"], true, "{outcome}");
    outcome["replies"][0]["result"].take()
}

fn starters(outcome: &Value) -> Vec<&str> {
    let tools = outcome["tools"].as_array().expect("tools");
    tools.iter().filter_map(Value::as_str).filter(|tool| STARTERS.contains(tool)).collect()
}

#[test]
fn pol_9_a_spawned_agent_cannot_start_others_by_default() {
    let site = site(&json!({}));
    for agent in ["star", "glob", "provider", "aliased"] {
        // Below no agent it has them.
        let own = site.tools(agent);
        assert!(STARTERS.iter().all(|tool| own.contains(&(*tool).to_owned())), "{agent}: {own:?}");
        let spellings = ["spawn_agents", "list_available_agents", "@coordination/spawn_agents", "start"];
        let mut calls: Vec<Value> = spellings
            .iter()
            .map(|tool| json!({ "tool": tool, "arguments": { "agent": "worker" } }))
            .collect();
        calls.push(json!({ "tool": "test__echo", "arguments": { "text": "hi" } }));
        let outcome = spawn(&site, agent, &json!(calls));
        assert_eq!((&outcome["depth"], starters(&outcome)), (&json!(1), vec![]), "{agent}: {outcome}");
        let replies = outcome["replies"].as_array().expect("replies");
        for reply in &replies[..4] {
            assert_eq!(reply["error"]["code"], "TOOL_NOT_FOUND", "{agent}: {reply}");
        }
        assert_eq!(replies[4]["result"], "hi", "the rest is there: {outcome}");
    }
    let explained = site.home.run(["doctor", "spawn_agents", "--agent", "star", "--depth", "1"]);
    let words = "agent star may not use it: it is at depth 1, where its tools must name this one literally";
    assert!(explained.code == 1 && explained.stdout.contains(words), "{explained:?}");
}

#[test]
fn pol_9_an_agent_that_names_the_tool_keeps_it_below_the_greatest_depth_and_counts_on() {
    let site = site(&json!({}));
    for (agent, expected) in [("named", &STARTERS[..]), ("spelled", &["spawn_agents"])] {
        let outcome =
            spawn(&site, agent, &json!([{ "tool": "spawn_agents", "arguments": { "agent": "worker" } }]));
        assert_eq!(
            (&outcome["depth"], starters(&outcome).as_slice()),
            (&json!(1), expected),
            "{agent}: {outcome}"
        );
        let below = &outcome["replies"][0]["result"];
        assert_eq!((&below["agent"], &below["depth"]), (&json!("worker"), &json!(2)), "{agent}: {outcome}");
    }
    let explained = site.home.run(["doctor", "spawn_agents", "--agent", "named", "--depth", "1"]);
    assert_eq!(explained.code, 0, "{explained:?}");
    assert!(!site.server.stderr().contains("agents are called at most"), "nothing was too deep");
}

#[test]
fn pol_9_at_the_greatest_depth_the_tool_is_gone_even_if_it_is_named_and_that_is_logged() {
    let site = site(&json!({}));
    let call = json!([{ "tool": "spawn_agents", "arguments": { "agent": "worker" } }]);
    for agent in ["named", "star"] {
        let outcome = spawn_below(&site, agent, &call);
        assert_eq!((&outcome["depth"], starters(&outcome)), (&json!(2), vec![]), "{agent}: {outcome}");
        assert_eq!(outcome["replies"][0]["error"]["code"], "TOOL_NOT_FOUND", "{agent}: {outcome}");
    }
    let warnings = STARTERS.map(|tool| {
        format!(
            "[WRN] agent named at depth 2: {tool} is left out: agents are called at most 2 deep; raise maxDepth to go deeper\n"
        )
    });
    warnings.iter().for_each(|warning| site.server.says(warning));
    let said = site.server.stderr();
    for warning in &warnings {
        assert_eq!(said.matches(warning).count(), 1, "{said}");
    }
    assert!(!said.contains("agent star at depth"), "what only a pattern matches is no surprise: {said}");
    let explained = site.home.run(["doctor", "spawn_agents", "--agent", "named", "--depth", "2"]);
    let words =
        "it is at depth 2, and maxDepth 2 lets no agent start others there, although its tools name it";
    assert!(explained.code == 1 && explained.stdout.contains(words), "{explained:?}");
}

#[test]
fn pol_9_the_greatest_depth_is_set_and_holds_at_once() {
    let site = site(&json!({ "defaults": { "maxDepth": 1 } }));
    let outcome = spawn(&site, "named", &json!([]));
    assert_eq!((&outcome["depth"], starters(&outcome)), (&json!(1), vec![]), "{outcome}");
    site.server.says("agent named at depth 1: spawn_agents is left out: agents are called at most 1 deep");
    let mut deeper: Value = serde_json::from_str(&site.home.read("gantry.yaml")).unwrap();
    deeper["defaults"]["maxDepth"] = json!(3);
    site.reload(&deeper);
    let call = json!([{ "tool": "spawn_agents", "arguments": { "agent": "named" } }]);
    let outcome = spawn_below(&site, "named", &call);
    assert_eq!((&outcome["depth"], starters(&outcome).as_slice()), (&json!(2), &STARTERS[..]), "{outcome}");
    let deepest = &outcome["replies"][0]["result"];
    assert_eq!((&deepest["depth"], starters(deepest)), (&json!(3), vec![]), "{outcome}");
}

#[test]
fn pol_9_a_spawn_can_narrow_a_childs_tools_and_never_widen_them() {
    let site = site(&json!({}));
    let narrowed = |agent: &str, narrow: &Value| {
        let calls: Vec<Value> = ["test__echo", "test__noop", "test__sleep", "read_file", "spawn_agents"]
            .map(|tool| json!({ "tool": tool, "arguments": {} }))
            .into();
        let arguments = json!({ "agent": agent, "narrow": narrow, "calls": calls });
        let outcome = site.result("top", "spawn_agents", &arguments);
        let found = outcome["replies"].as_array().expect("replies").iter();
        let found: Vec<bool> = found.map(|reply| reply["error"]["code"] != "TOOL_NOT_FOUND").collect();
        (outcome["tools"].clone(), found)
    };
    for (agent, narrow, tools, found) in [
        ("worker", json!(["test__echo"]), json!(["test__echo"]), [true, false, false, false, false]),
        (
            "worker",
            json!(["@test/*", "read_file"]),
            json!(["test__echo", "test__noop"]),
            [true, true, false, false, false],
        ),
        ("worker", json!(["*"]), json!(["test__echo", "test__noop"]), [true, true, false, false, false]),
        ("worker", json!([]), json!([]), [false; 5]),
        ("named", json!(["test__*"]), json!(["test__echo", "test__noop"]), [true, true, false, false, false]),
        (
            "star",
            json!(["test__sleep", "spawn_agents"]),
            json!(["test__sleep"]),
            [false, false, true, false, false],
        ),
    ] {
        assert_eq!(narrowed(agent, &narrow), (tools, found.to_vec()), "{agent} {narrow}");
    }
    // It was for that one spawn.
    assert_eq!(spawn(&site, "worker", &json!([]))["tools"], json!(["test__echo", "test__noop"]));
}

#[test]
fn pol_9_a_childs_tools_are_those_of_its_own_definition() {
    let site = site(&json!({}));
    // The parent has no test__noop in its hands for the child to inherit, and the child has no file tools.
    let outcome = site.result(
        "named",
        "spawn_agents",
        &json!({ "agent": "star", "calls": [{ "tool": "list_directory", "arguments": { "path": "." } }] }),
    );
    assert_eq!(
        outcome["replies"][0]["ok"], true,
        "to be allowed to start star is to be allowed what star has: {outcome}"
    );
    let outcome =
        spawn(&site, "worker", &json!([{ "tool": "list_directory", "arguments": { "path": "." } }]));
    assert_eq!(
        outcome["replies"][0]["error"]["code"], "TOOL_NOT_FOUND",
        "and not what its parent has: {outcome}"
    );
    let unknown = site.error("top", "spawn_agents", &json!({ "agent": "nobody" }), "EXECUTION_ERROR");
    assert!(unknown["message"].as_str().unwrap().contains("there is no agent \"nobody\""), "{unknown}");
}

#[test]
fn pol_9_the_run_tree_shows_children_below_the_calls_that_started_them() {
    let site = site(&json!({}));
    let echo = json!([{ "tool": "test__echo", "arguments": { "text": "deep" } }, { "tool": "read_file", "arguments": {} }]);
    spawn_below(&site, "worker", &echo);
    let runs = site.server.get("/api/v1/runs?agent=top").json();
    let id = runs["items"][0]["id"].as_str().expect("a run").to_owned();
    let tree = site.server.get(&format!("/api/v1/runs/{id}")).json();
    let spawned = &tree["turns"][0]["ops"][0];
    assert_eq!((&spawned["name"], &spawned["kind"]), (&json!("spawn_agents"), &json!("session")), "{tree}");
    let child = &spawned["childSessions"][0];
    assert_eq!((&child["agent"], &child["parent"]), (&json!("named"), &spawned["opId"]), "{tree}");
    let again = &child["turns"][0]["ops"][0];
    let grandchild = &again["childSessions"][0];
    assert_eq!((&grandchild["agent"], &grandchild["parent"]), (&json!("worker"), &again["opId"]), "{tree}");
    let ops = grandchild["turns"][0]["ops"].as_array().expect("operations");
    let seen: Vec<_> = ops.iter().map(|op| (&op["name"], &op["kind"], &op["status"])).collect();
    let (tool, ok, failed) = (json!("tool"), json!("ok"), json!("failed"));
    assert_eq!(seen, [(&json!("test__echo"), &tool, &ok), (&json!("read_file"), &tool, &failed)], "{tree}");
    // Each run has its own sums, so that adding them up counts nothing twice.
    let run = |tree: &Value| tree["totals"]["toolsRun"].clone();
    assert_eq!([run(&tree), run(child), run(grandchild)], [1, 1, 2].map(|n| json!(n)), "{tree}");
    let shown = site.home.run(["runs", &id]).stdout;
    let depth =
        |words: &str| shown.lines().find(|line| line.contains(words)).expect("a line").find('└').unwrap();
    let depths = ["└ ok spawn_agents", "└ agent named", "└ agent worker", "└ ok test__echo"].map(depth);
    assert!(depths.is_sorted_by(|a, b| a < b), "{shown}");
}
