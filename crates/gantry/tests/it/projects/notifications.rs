//! POL-1: what happens at a server of one project is never heard in another, although the servers have one id.

use super::{Site, pair};
use crate::passthrough::{Door, Talk};
use serde_json::{Value, json};

const LISTS: [(&str, &str); 3] = [
    ("s__grow", "notifications/tools/list_changed"),
    ("s__grow_prompt", "notifications/prompts/list_changed"),
    ("s__grow_resource", "notifications/resources/list_changed"),
];

/// Clients of both eras, which want to hear all there is, of a project.
fn ears<'a>(site: &'a Site, paths: &'a [String; 2]) -> Vec<(String, Talk)> {
    let [mcp, ws] = paths;
    let mut ears: Vec<(String, Talk)> = vec![
        (format!("legacy at {mcp}"), Talk::legacy(Door::Http(&site.server, mcp))),
        (format!("legacy at {ws}"), Talk::legacy(Door::Ws(&site.server, ws))),
    ];
    for (_, client) in &mut ears {
        client.result("resources/subscribe", &json!({ "uri": "gantry:s/faulty://text/one" }));
        client.result("logging/setLevel", &json!({ "level": "debug" }));
    }
    for (name, door) in [(mcp, Door::Http(&site.server, mcp)), (ws, Door::Ws(&site.server, ws))] {
        let mut modern = Talk::modern(door);
        let wanted = json!({
            "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
            "resourceSubscriptions": ["gantry:s/faulty://text/one"],
        });
        modern.begin("subscriptions/listen", &json!({ "notifications": wanted }).to_string());
        modern.hear("notifications/subscriptions/acknowledged");
        ears.push((format!("modern at {name}"), modern));
    }
    ears
}

#[test]
fn pol_1_changes_of_a_server_are_never_heard_by_clients_of_another_project() {
    let site = Site::of(&pair());
    let (here, there) =
        (["/mcp/default", "/ws/default"].map(str::to_owned), ["/mcp/other", "/ws/other"].map(str::to_owned));
    let (mut default, mut other) = (ears(&site, &here), ears(&site, &there));
    let (mut one, mut two) = (site.client("default"), site.client("other"));
    for (tool, note) in LISTS {
        assert_eq!(one.call(tool, &json!({})), "grown-1");
        for (who, client) in &mut default {
            let outcome = client.hear(note);
            assert!(outcome["params"].is_object() || outcome["params"].is_null(), "{who}: {outcome}");
        }
    }
    one.call("s__touch", &json!({ "uri": "faulty://text/one" }));
    for (who, client) in &mut default {
        let outcome = client.hear("notifications/resources/updated");
        assert_eq!(outcome["params"]["uri"], "gantry:s/faulty://text/one", "{who}");
    }
    one.call("s__log", &json!({ "text": "in default", "level": "error", "ms": 20 }));
    for (_, client) in default.iter_mut().filter(|(who, _)| who.starts_with("legacy")) {
        assert_eq!(client.hear("notifications/message")["params"]["data"], "in default");
    }
    // Now the same in the other project: what is heard there first is of that one, so nothing of the first was on its way.
    two.call("s__log", &json!({ "text": "in other", "level": "error", "ms": 20 }));
    for (who, client) in other.iter_mut().filter(|(who, _)| who.starts_with("legacy")) {
        assert_eq!(client.hear("notifications/message")["params"]["data"], "in other", "{who}");
    }
    for (who, client) in &mut other {
        for (_, note) in LISTS {
            assert_eq!(client.heard(note), [] as [Value; 0], "{who} heard {note}");
        }
        assert_eq!(client.heard("notifications/resources/updated"), [] as [Value; 0], "{who}");
    }
    for (tool, note) in LISTS {
        assert_eq!(two.call(tool, &json!({})), "grown-1", "it is a server of its own");
        for (_, client) in &mut other {
            client.hear(note);
        }
    }
    two.call("s__touch", &json!({ "uri": "faulty://text/one" }));
    for (_, client) in &mut other {
        client.hear("notifications/resources/updated");
    }
    for (who, client) in &mut default {
        for note in LISTS.map(|(_, note)| note).into_iter().chain(["notifications/resources/updated"]) {
            assert_eq!(client.heard(note), [] as [Value; 0], "{who} heard {note}");
        }
        assert!(client.heard("notifications/message").is_empty(), "{who}");
    }
}

#[test]
fn pol_1_a_server_is_asked_for_the_updates_that_clients_of_its_own_project_want() {
    let mut config = pair();
    config["mcpServers"]["s"] = super::heard_in("one.log", "one");
    config["projects"]["other"]["mcpServers"]["s"] = super::heard_in("two.log", "two");
    let site = Site::of(&config);
    let mut client = site.client("other");
    client.result("resources/subscribe", &json!({ "uri": "gantry:s/faulty://text/one" }));
    site.server
        .eventually("its own server is asked", || site.requests("two.log", "resources/subscribe") == 1);
    assert_eq!(site.requests("one.log", "resources/subscribe"), 0);
}

#[test]
fn pol_1_resources_and_prompts_are_those_of_the_projects_own_server() {
    let mut config = pair();
    config["projects"]["other"]["mcpServers"] = json!({ "t": super::named("two") });
    let site = Site::of(&config);
    for (project, own, foreign) in [("default", "s", "t"), ("other", "t", "s")] {
        let mut client = site.client(project);
        let uri = |id: &str| json!({ "uri": format!("gantry:{id}/faulty://text/one") });
        client.result("resources/read", &uri(own));
        let refused = client.ask("resources/read", &uri(foreign));
        assert!(refused["error"].is_object(), "{project}: {refused}");
        let prompts = crate::passthrough::names(&client.result("prompts/list", &json!({}))["prompts"]);
        assert!(
            !prompts.is_empty() && prompts.iter().all(|name| name.starts_with(&format!("{own}__"))),
            "{prompts:?}"
        );
    }
}
