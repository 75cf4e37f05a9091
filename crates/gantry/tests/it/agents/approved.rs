//! Automatic approval: it lifts a tool's own rule for one agent, and nothing that people wrote down.

use super::Site;
use gantry_testkit::TestDir;
use serde_json::{Value, json};

/// An agent `a` that need not ask before it overwrites, one `b` that has to, and more of a configuration.
fn site(more: &Value) -> Site {
    let config = json!({
        "agents": {
            "a": { "tools": { "use": ["workspace"], "aliases": { "put": "write_file" }, "autoApprove": ["put"] } },
            "b": { "tools": { "use": ["workspace"] } },
        },
    });
    let home = TestDir::new().config(&super::with(config, more).to_string());
    home.write("a.txt", "old");
    Site::at(home)
}

fn overwrite() -> Value {
    json!({ "path": "a.txt", "content": "new" })
}

#[test]
fn pol_6_what_is_approved_automatically_runs_without_asking_for_that_agent_only() {
    let site = site(&json!({}));
    let held = site.error("b", "write_file", &overwrite(), "APPROVAL_REQUIRED");
    assert_eq!(held["details"]["rule"], "the tool's own rule", "{held}");
    assert_eq!(site.server.call("write_file", &overwrite()).json()["error"]["code"], "APPROVAL_REQUIRED");
    assert_eq!(site.home.read("a.txt"), "old");
    for spelling in ["write_file", "put", "@workspace/write_file"] {
        site.result("a", spelling, &json!({ "path": "a.txt", "content": spelling }));
        assert_eq!(site.home.read("a.txt"), spelling);
    }
    // Only this tool: the one that deletes still asks.
    let held = site.error("a", "delete_file", &json!({ "path": "a.txt" }), "APPROVAL_REQUIRED");
    assert_eq!(held["details"]["rule"], "the tool's own rule", "{held}");
    assert!(site.home.path().join("a.txt").exists());
    // That no person was asked is on record.
    let rows = site.rows("write_file");
    let decisions: Vec<&Value> = rows.iter().take(3).map(|row| &row["decision"]).collect();
    assert_eq!(decisions, [&Value::Null; 3], "{rows:?}");
}

#[test]
fn pol_6_a_rule_that_asks_is_not_lifted_by_automatic_approval() {
    let rule =
        json!({ "name": "ask-writes", "tools": ["write_file"], "decide": "ask", "reason": "somebody looks" });
    let site = site(&json!({ "policies": [rule] }));
    for spelling in ["write_file", "put"] {
        let held = site.error("a", spelling, &overwrite(), "APPROVAL_REQUIRED");
        let details = &held["details"];
        assert_eq!(
            (&details["reason"], &details["rule"]),
            (&json!("somebody looks"), &json!("policy ask-writes"))
        );
    }
    assert_eq!(site.home.read("a.txt"), "old");
}

#[test]
fn pol_6_tools_that_require_approval_are_not_lifted_by_automatic_approval() {
    for required in [json!(["write_file"]), json!(["@workspace/*"]), json!("all")] {
        let site = site(&json!({ "approvals": { "requiresApprovalTools": required } }));
        let held = site.error("a", "put", &overwrite(), "APPROVAL_REQUIRED");
        assert_ne!(held["details"]["rule"], "the tool's own rule", "{held}");
        assert_eq!(site.home.read("a.txt"), "old");
    }
}

#[test]
fn pol_6_a_rule_that_denies_is_not_lifted_by_automatic_approval() {
    let rule = json!({ "name": "no-writes", "tools": ["write_file"], "decide": "deny" });
    let site = site(&json!({ "policies": [rule] }));
    site.error("a", "put", &overwrite(), "PERMISSION_DENIED");
    assert_eq!(site.home.read("a.txt"), "old");
}

#[test]
fn pol_6_automatic_approval_ends_with_the_configuration_even_for_a_running_session() {
    let site = site(&json!({}));
    let mut client = crate::passthrough::Talk::legacy(crate::passthrough::Door::Http(
        &site.server,
        "/mcp/default/agents/a",
    ));
    let call = json!({ "name": "put", "arguments": overwrite() });
    assert_ne!(client.result("tools/call", &call)["isError"], true);
    let tools = json!({ "use": ["workspace"], "aliases": { "put": "write_file" } });
    let agents = json!({ "a": { "tools": tools } });
    site.reload(&json!({ "agents": agents, "approvals": { "delivery": "pending" } }));
    let held = client.result("tools/call", &call);
    assert_eq!(held["isError"], true, "{held}");
    assert_eq!(held["_meta"]["gantry/error"]["code"], "APPROVAL_REQUIRED", "{held}");
}

#[test]
fn pol_6_automatic_approval_of_what_the_agent_may_not_call_gives_nothing_and_is_named() {
    let config =
        json!({ "agents": { "a": { "tools": { "use": ["read_file"], "autoApprove": ["delete_file"] } } } });
    let site = Site::of(&config);
    site.home.write("a.txt", "old");
    site.not_found("a", "delete_file", &json!({ "path": "a.txt" }));
    assert!(site.home.path().join("a.txt").exists());
    let said = site.server.stderr();
    let words = "[WRN] agent a: \"delete_file\" is approved automatically, but matches none of the tools it may call\n";
    assert!(said.contains(words), "{said}");
}
