//! What was added or removed while Gantry runs, and what changes of the file and switches do to it.

use super::activate;
use crate::projects::{Site, faulty, is_running, named, with};
use http::Method;
use serde_json::{Value, json};

/// Adds a server to the default project.
#[track_caller]
fn add(site: &Site, id: &str, who: &str) {
    let added = site.admin(Method::POST, "/api/v1/servers", &with(named(who), &json!({ "id": id })));
    assert_eq!(added.status, 201, "{added:?}");
    site.ready("default", id);
}

#[track_caller]
fn remove(site: &Site, id: &str) {
    let removed = site.admin(Method::DELETE, &format!("/api/v1/servers/{id}"), &Value::Null);
    assert_eq!(removed.status, 200, "{removed:?}");
}

/// The ids of the servers of the default project.
fn ids(site: &Site) -> Vec<String> {
    let listed = site.server.get("/api/v1/servers?project=default").json();
    crate::passthrough::members(&listed["items"], "id")
}

#[test]
fn pol_2_a_server_that_was_added_survives_a_reload_and_a_switch_and_is_gone_after_a_restart() {
    let config = |more: &Value| with(json!({ "mcpServers": { "s": faulty(&[]) } }), more);
    let site = Site::of(&config(&json!({ "agents": { "a": { "tools": ["late__*"] } } })));
    add(&site, "late", "added");
    let pid = site.pid("default", "late");
    let agents = json!({ "agents": { "a": { "tools": ["late__*"] }, "b": {} } });
    site.edit(&config(&agents));
    assert_eq!(site.pid("default", "late"), pid, "it goes on");
    assert_eq!(ids(&site), ["late", "s"]);
    activate(&site, "a");
    site.ready("default", "late");
    assert_eq!(site.variable("default", "late", "WHO"), "added", "the active agent has it as well");
    assert_eq!(ids(&site), ["late"]);
    let reply = site.admin(Method::POST, "/api/v1/agents/a/deactivate", &Value::Null);
    assert_eq!(reply.status, 200, "{reply:?}");
    site.settled();
    assert_eq!(ids(&site), ["late", "s"]);
    let Site { server, home } = site;
    server.stop();
    let site = Site::at(home);
    assert_eq!(ids(&site), ["s"], "it was never written down");
    site.error("default", "late__pid", &json!({}), "TOOL_NOT_FOUND");
}

#[test]
fn pol_2_a_server_of_the_file_that_was_removed_stays_removed_until_a_restart() {
    let config = |more: &Value| with(json!({ "mcpServers": { "s": named("file"), "t": faulty(&[]) } }), more);
    let site = Site::of(&config(&json!({})));
    let pid = site.pid("default", "s");
    remove(&site, "s");
    assert!(!is_running(&pid));
    site.edit(&config(&json!({ "agents": { "a": {} } })));
    assert_eq!(ids(&site), ["t"]);
    activate(&site, "a");
    site.ready("default", "t");
    assert_eq!(ids(&site), ["t"]);
    site.error("default", "s__pid", &json!({}), "TOOL_NOT_FOUND");
    let Site { server, home } = site;
    server.stop();
    let site = Site::at(home);
    assert_eq!(ids(&site), ["s", "t"]);
    site.pid("default", "s");
}

#[test]
fn pol_2_an_id_that_is_written_into_the_file_is_the_files() {
    let config = |servers: &Value| json!({ "mcpServers": servers });
    let site = Site::of(&config(&json!({})));
    add(&site, "late", "added");
    let pid = site.pid("default", "late");
    site.edit(&config(&json!({ "late": named("file") })));
    site.ready("default", "late");
    assert_eq!(site.variable("default", "late", "WHO"), "file");
    site.server.eventually("the one that was added has ended", || !is_running(&pid));
    // What the file gives, the file takes: what was added before does not come back.
    site.edit(&config(&json!({})));
    assert_eq!(ids(&site), [""; 0]);
    // One that was added and removed again is no server of the file that was removed.
    add(&site, "late", "added");
    remove(&site, "late");
    site.edit(&config(&json!({ "late": named("file") })));
    site.ready("default", "late");
    assert_eq!(site.variable("default", "late", "WHO"), "file");
}

#[test]
fn pol_2_a_server_of_the_file_can_be_replaced_by_hand_for_as_long_as_gantry_runs() {
    let site = Site::of(&json!({ "mcpServers": { "s": named("file") } }));
    let taken = site.admin(Method::POST, "/api/v1/servers", &with(named("added"), &json!({ "id": "s" })));
    assert_eq!(taken.status, 409, "{taken:?}");
    remove(&site, "s");
    add(&site, "s", "added");
    assert_eq!(site.variable("default", "s", "WHO"), "added");
    // A change of something else does not undo it.
    let pid = site.pid("default", "s");
    site.edit(&json!({ "mcpServers": { "s": named("file") }, "agents": { "a": {} } }));
    assert_eq!(site.pid("default", "s"), pid);
    let Site { server, home } = site;
    server.stop();
    let site = Site::at(home);
    assert_eq!(site.variable("default", "s", "WHO"), "file");
}
