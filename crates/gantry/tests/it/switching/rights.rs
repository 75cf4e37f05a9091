//! What no caller gets by a detour: not by an unusual name for an agent, not from what another agent was answered.

use super::{Stage, of};
use serde_json::json;

#[test]
fn pol_8_an_empty_name_is_no_agent_and_sees_nothing() {
    let stage = Stage::two();
    stage.deactivate("a");
    // What every caller sees is known from here on.
    assert!(stage.tools().contains(&"write_file".to_owned()));
    stage.activate("a");
    for active in [true, false] {
        if !active {
            stage.deactivate("a");
        }
        let listed = stage.server.get("/api/v1/tools?agent=");
        assert_eq!(listed.status, 403, "{listed:?}");
        let call = json!({ "tool": "list_directory", "arguments": { "path": "." }, "agent": "" });
        let called = stage.server.post("/api/v1/calls", &call.to_string());
        assert_eq!(called.status, 403, "{called:?}");
        assert!(called.text.contains("there is no agent"), "{called:?}");
    }
}

#[test]
fn pol_8_a_made_up_name_starts_no_server() {
    let stage = Stage::two();
    let before = stage.running("faulty");
    let listed = stage.server.get("/api/v1/tools?agent=nobody");
    assert_eq!(listed.status, 403, "{listed:?}");
    assert!(listed.text.contains("configured: a, b"), "{listed:?}");
    assert_eq!(stage.running("faulty"), before);
}

#[test]
fn pol_8_who_only_looked_in_as_another_agent_keeps_no_server_running() {
    let stage = Stage::two();
    stage.deactivate("a");
    assert_eq!(stage.tools_as("b"), of("sb"));
    let shared = stage.call_as("b", "sb__pid", &json!({}));
    let shared = super::pid(&shared);
    stage.activate("a");
    assert!(!stage.running("faulty").contains(&shared), "nobody needs it, so it is gone");
    assert_eq!(stage.tools_as("b"), of("sb"), "it is there again when somebody asks");
}

#[test]
fn pol_8_an_idempotency_key_of_one_agent_is_worth_nothing_to_another() {
    let config = json!({ "agents": { "a": { "tools": ["list_directory"] }, "b": { "tools": ["*"] } } });
    let stage = Stage::of(&config);
    let call = |agent: &str| {
        let arguments = json!({ "path": "." });
        let call = json!({ "tool": "list_directory", "arguments": arguments, "agent": agent, "idempotencyKey": "k" });
        stage.server.post("/api/v1/calls", &call.to_string())
    };
    assert_eq!(call("a").status, 200);
    assert_eq!(call("a").status, 200, "the same agent gets the first answer");
    let other = call("b");
    assert_eq!(
        (other.status, &other.json()["error"]["code"]),
        (409, &json!("IDEMPOTENCY_CONFLICT")),
        "{other:?}"
    );
}
