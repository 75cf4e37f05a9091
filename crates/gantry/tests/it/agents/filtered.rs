//! What an agent's list selects of the project's pool, and that a model cannot get at anything else.

use super::{Site, faulty, path, real, with};
use crate::passthrough::{Door, Talk};
use crate::results::mcp_tools;
use gantry_testkit::{BUILT_IN, TestDir};
use serde_json::{Value, json};

/// The tools that a graph has, under their bare names.
const GRAPH: [&str; 7] = [
    "entities_create",
    "entities_delete",
    "entities_get",
    "entities_update",
    "graph_traverse",
    "search_hybrid",
    "search_similar",
];

/// A server with the tools of a graph and nothing else.
fn graph() -> Value {
    let args: Vec<&str> = GRAPH.iter().flat_map(|name| ["--tool", name]).collect();
    with(faulty(&args), &json!({ "prefix": false, "toolsAllowed": ["entities_*", "graph_*", "search_*"] }))
}

fn site(agents: &Value) -> Site {
    Site::of(&json!({ "mcpServers": { "graph": graph() }, "agents": agents }))
}

/// Every tool of the pool but these is not there for the agent, and each of these answers.
#[track_caller]
fn exactly(site: &Site, agent: &str, expected: &[&str]) {
    assert_eq!(site.tools(agent), expected, "{agent}");
    assert_eq!(mcp_tools(&site.server, &path(agent)), expected, "{agent}");
    let mut client = Talk::legacy(Door::Http(&site.server, &path(agent)));
    for name in GRAPH {
        if expected.contains(&name) {
            assert_eq!(client.call(name, &json!({})), name, "{agent}");
        } else {
            client.error("tools/call", &json!({ "name": name, "arguments": {} }), -32602);
            site.not_found(agent, name, &json!({}));
        }
    }
}

#[test]
fn pol_3_exact_names_select_these_tools_and_no_others() {
    let site = site(&json!({ "a": { "tools": ["search_hybrid", "entities_get", "graph_traverse"] } }));
    exactly(&site, "a", &["entities_get", "graph_traverse", "search_hybrid"]);
}

#[test]
fn pol_3_a_glob_selects_all_tools_that_it_matches() {
    let site = site(&json!({ "a": { "tools": ["entities_*"] } }));
    exactly(&site, "a", &["entities_create", "entities_delete", "entities_get", "entities_update"]);
}

#[test]
fn pol_3_a_star_selects_the_whole_pool() {
    let home = TestDir::new();
    let time = real(&home, "time").1;
    let config =
        json!({ "mcpServers": { "graph": graph(), "time": time }, "agents": { "a": { "tools": ["*"] } } });
    let site = Site::at(home.config(&config.to_string()));
    let everything = site.server.get("/api/v1/tools").json();
    assert_eq!(Value::Array(site.listing("a")), everything["items"]);
    let names = site.tools("a");
    for name in GRAPH.into_iter().chain(["read_file", "time__convert_time", "time__get_current_time"]) {
        assert!(names.iter().any(|found| found == name), "{name} in {names:?}");
    }
    assert_eq!(names.len(), GRAPH.len() + BUILT_IN.len() + 2, "{names:?}");
}

#[test]
fn pol_3_a_name_that_is_not_in_the_pool_is_a_warning_and_skipped() {
    let site = site(&json!({ "a": { "tools": ["search_hybrid", "search_hybird", "relations_*"] } }));
    exactly(&site, "a", &["search_hybrid"]);
    let said = site.server.stderr();
    for entry in ["search_hybird", "relations_*"] {
        assert!(said.contains(&format!("[WRN] agent a: {entry:?} matches no tool\n")), "{said}");
    }
    let doctor = site.home.run(["doctor"]);
    assert!(doctor.stdout.contains("agent a: \"search_hybird\" matches no tool"), "{doctor:?}");
}

#[test]
fn pol_3_an_empty_list_is_no_tools_in_every_form() {
    let home = TestDir::new();
    home.write("gantry.yaml", "agents:\n  list: { tools: [] }\n  group: { tools: { use: [] } }\n");
    home.write("agents/file/agent.json", r#"{ "tools": { "use": [], "allowed": ["*"] } }"#);
    home.write("agents/text.md", "---\ntools: []\n---\n");
    home.write("a.txt", "hi");
    let site = Site::at(home);
    for agent in ["list", "group", "file", "text"] {
        assert_eq!(site.tools(agent), [""; 0], "{agent}");
        assert_eq!(mcp_tools(&site.server, &path(agent)), [""; 0], "{agent}");
        let reply = site.not_found(agent, "read_file", &json!({ "path": "a.txt" }));
        assert_eq!(reply["error"]["message"], "tool not found: read_file", "{agent}");
    }
}

#[test]
fn pol_5_a_models_call_of_a_tool_that_was_not_resolved_fails_as_not_found() {
    let home = TestDir::new();
    let (git, time) = (real(&home, "git").1, real(&home, "time").1);
    let config =
        json!({ "mcpServers": { "git": git, "time": time }, "agents": { "a": { "tools": ["time__*"] } } });
    let site = Site::at(home.config(&config.to_string()));
    let arguments = json!({ "repo_path": site.home.path() });
    // As a client of the model sees it, of either era and by every door.
    let agent_path = path("a");
    for door in [
        Door::Http(&site.server, &agent_path),
        Door::Ws(&site.server, "/ws/default/agents/a"),
        Door::Stdio(&site.home, &["--agent", "a"]),
    ] {
        for mut client in [Talk::legacy(door), Talk::modern(door)] {
            assert_eq!(client.tools(), ["time__convert_time", "time__get_current_time"]);
            for spelling in ["git__git_status", "@git/git_status", "git_status", "read_file"] {
                let call = json!({ "name": spelling, "arguments": arguments });
                let error = client.error("tools/call", &call, -32602);
                let message = error["message"].as_str().expect("a message");
                assert!(message.starts_with(&format!("tool not found: {spelling}")), "{error}");
                assert_eq!(message.matches("git_").count(), spelling.matches("git_").count(), "{error}");
            }
        }
    }
    // Nothing of it reached the server: nothing was judged, and nothing was run.
    let rows = site.rows("git__git_status");
    assert_eq!(rows.len(), 6, "{rows:?}");
    assert!(rows.iter().all(|row| row["state"] == "REFUSED" && row["provider"] == ""), "{rows:?}");
}

#[test]
fn nam_2_a_tool_whose_own_name_looks_slashed_has_just_that_name() {
    let unusual = ["--tool", "@scoped/name", "--tool", "@scoped/other"];
    let only = json!({ "toolsAllowed": ["@scoped/*", "echo"], "toolsDenied": ["@scoped/name"] });
    let config = json!({
        "mcpServers": {
            "s": with(faulty(&unusual), &only),
            "bare": with(with(faulty(&unusual), &only), &json!({ "prefix": false, "toolsDenied": ["@scoped/name", "echo"] })),
        },
        "agents": { "a": { "tools": ["s__*", "@scoped/*"] } },
    });
    let site = Site::of(&config);
    assert_eq!(site.tools("a"), ["@scoped/other", "s___scoped_other", "s__echo"]);
    for kept_out in ["s___scoped_name", "@s/@scoped/name", "@scoped/name"] {
        site.not_found("a", kept_out, &json!({}));
        assert_eq!(site.server.call(kept_out, &json!({})).status, 404, "{kept_out}");
    }
    for own in ["s___scoped_other", "@s/@scoped/other", "@scoped/other"] {
        assert_eq!(site.result("a", own, &json!({})), "@scoped/other", "{own}");
    }
    assert!(!site.server.stderr().contains("matches no tool"), "{}", site.server.stderr());
}
