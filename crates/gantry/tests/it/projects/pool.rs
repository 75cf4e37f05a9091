//! The pool of a project: its own tools and those of its servers in one, cached, and rebuilt when its servers change.

use super::{Site, heard_in, is_running, pair, with};
use crate::passthrough::{Door, Talk};
use gantry_testkit::BUILT_IN;
use http::Method;
use serde_json::{Value, json};

/// Two projects whose servers write down what they are asked, in `one.log` and `two.log`.
fn counting() -> Value {
    let mut config = pair();
    config["mcpServers"]["s"] = heard_in("one.log", "one");
    config["projects"]["other"]["mcpServers"]["s"] = heard_in("two.log", "two");
    config
}

/// How often the server of each project was asked for its tools.
fn lists(site: &Site) -> [usize; 2] {
    ["one.log", "two.log"].map(|file| site.requests(file, "tools/list"))
}

#[test]
fn pol_1_the_pool_has_builtin_tools_and_those_that_its_servers_list() {
    let mut config = pair();
    config["tools"] = json!({ "docs": { "kind": "builtin", "builtinPolicy": { "name": "fs_read", "allowedPaths": ["."] } } });
    let site = Site::of(&config);
    let listed = site.server.get("/api/v1/tools").json();
    let of = |kind: &str, provider: &str| {
        let items = listed["items"].as_array().unwrap().iter();
        items.filter(|tool| tool["provider"]["kind"] == kind && tool["provider"]["id"] == provider).count()
    };
    assert_eq!(of("builtin", "workspace"), BUILT_IN.len(), "{listed}");
    assert!(of("builtin", "docs") > 0, "{listed}");
    let server = site.status("default", "s");
    assert_eq!(json!(of("mcp", "s")), server["tools"], "all that the server lists");
    assert!(of("mcp", "s") > 30);
    // The other project has its own, and no catalogue.
    let listed = site.server.get("/api/v1/tools?project=other").json();
    assert!(!listed.to_string().contains("\"docs\""), "{listed}");
}

#[test]
fn pol_1_the_pool_is_cached_and_resolving_again_asks_no_server() {
    let mut config = counting();
    config["agents"] = json!({ "a": { "tools": ["s__*"] }, "b": { "tools": ["*"] } });
    let site = Site::of(&config);
    assert_eq!(lists(&site), [1, 1], "each server was asked once");
    let from = site.now();
    for agent in ["", "&agent=a", "&agent=b"] {
        for _ in 0..3 {
            let listed = site.server.get(&format!("/api/v1/tools?project=default{agent}")).json();
            assert!(listed["items"].as_array().unwrap().len() > 30);
        }
    }
    for path in ["/mcp", "/mcp/default/agents/a", "/mcp/other"] {
        for mut client in
            [Talk::legacy(Door::Http(&site.server, path)), Talk::modern(Door::Http(&site.server, path))]
        {
            assert!(client.tools().len() > 30, "{path}");
            assert_eq!(client.call("s__echo", &json!({ "text": "x" })), "x", "{path}");
            assert!(client.tools().len() > 30, "{path}");
        }
    }
    assert_eq!(lists(&site), [1, 1], "nobody was asked again");
    assert_eq!(site.events("tools_changed", from), [] as [Value; 0], "and nothing was rebuilt");
}

#[test]
fn pol_2_a_server_that_is_added_over_http_changes_the_pool_of_its_project_only() {
    let site = Site::of(&counting());
    let pids = ["default", "other"].map(|project| site.pid(project, "s"));
    let (mut one, mut two) = (site.client("default"), site.client("other"));
    let (before, from) = (lists(&site), site.now());
    let entry = with(super::named("late"), &json!({ "id": "late" }));
    let added = site.admin(Method::POST, "/api/v1/servers?project=other", &entry);
    assert_eq!((added.status, &added.json()["project"]), (201, &json!("other")), "{added:?}");
    site.ready("other", "late");
    two.hear("notifications/tools/list_changed");
    assert!(two.tools().contains(&"late__pid".to_owned()));
    site.error("default", "late__pid", &json!({}), "TOOL_NOT_FOUND");
    let events = site.events("tools_changed", from);
    assert!(
        events.iter().all(|event| event["project"] == "other" && event["server"] == "late"),
        "{events:?}"
    );
    let late = site.pid("other", "late");
    let removed = site.admin(Method::DELETE, "/api/v1/servers/late?project=other", &Value::Null);
    assert_eq!(removed.status, 200, "{removed:?}");
    assert!(!is_running(&late), "it has ended");
    two.hear("notifications/tools/list_changed");
    assert!(!two.tools().contains(&"late__pid".to_owned()));
    // One of the file can be removed as well.
    let removed = site.admin(Method::DELETE, "/api/v1/servers/s?project=other", &Value::Null);
    assert_eq!(removed.status, 200, "{removed:?}");
    assert!(!is_running(&pids[1]));
    site.error("other", "s__pid", &json!({}), "TOOL_NOT_FOUND");
    // The project beside it has noticed nothing: neither its server, nor its clients.
    assert_eq!(site.pid("default", "s"), pids[0]);
    assert_eq!(lists(&site)[0], before[0], "its server was not asked again");
    assert_eq!(one.call("s__echo", &json!({ "text": "x" })), "x");
    assert_eq!(one.heard("notifications/tools/list_changed"), [] as [Value; 0]);
}

#[test]
fn pol_2_a_server_that_is_added_changed_or_removed_in_the_file_changes_its_project_only() {
    let site = Site::of(&counting());
    let pids = ["default", "other"].map(|project| site.pid(project, "s"));
    let (mut one, mut two) = (site.client("default"), site.client("other"));
    let before = lists(&site);
    // Added.
    let mut config = counting();
    config["projects"]["other"]["mcpServers"]["late"] = super::named("late");
    assert_eq!(site.edit(&config), ["other"]);
    site.ready("other", "late");
    two.hear("notifications/tools/list_changed");
    assert_eq!(site.pid("other", "s"), pids[1], "what stays as it is goes on");
    let late = site.pid("other", "late");
    // Changed.
    config["projects"]["other"]["mcpServers"]["late"]["env"]["WHO"] = "later".into();
    assert_eq!(site.edit(&config), ["other"]);
    site.server.eventually("it is replaced", || {
        site.call("other", "late__env", &json!({})).json()["result"]
            .as_str()
            .is_some_and(|env| env.contains("later"))
    });
    site.server.eventually("the one before has ended", || !is_running(&late));
    // Filtered: its process need not end for that, but its tools are others.
    config["projects"]["other"]["mcpServers"]["late"]["toolsAllowed"] = json!(["pid"]);
    assert_eq!(site.edit(&config), ["other"]);
    site.server.eventually("it offers one tool", || {
        site.tools("other").iter().filter(|name| name.starts_with("late__")).count() == 1
    });
    site.ready("other", "late");
    let late = site.pid("other", "late");
    // Removed.
    config["projects"]["other"]["mcpServers"].as_object_mut().unwrap().remove("late");
    assert_eq!(site.edit(&config), ["other"]);
    site.error("other", "late__pid", &json!({}), "TOOL_NOT_FOUND");
    site.server.eventually("it has ended", || !is_running(&late));
    // Through all of that nothing else was touched.
    assert_eq!([site.pid("default", "s"), site.pid("other", "s")], pids);
    assert_eq!(lists(&site), before, "no server that stayed was asked again");
    assert_eq!(one.call("s__echo", &json!({ "text": "x" })), "x");
    assert_eq!(one.heard("notifications/tools/list_changed"), [] as [Value; 0]);
}
