//! What is compared with what, and how it is summed up.

use super::history::entry;
use super::*;

fn listed(more: &Value) -> Value {
    let mut item = json!({
        "id": "call_1", "state": "COMPLETED_SUCCESS", "tool": "db__drop", "provider": "db", "original": "drop",
        "kind": "mcp", "namespace": "db", "effect": "write", "arguments": "{}", "argumentsDigest": "0".repeat(64),
        "project": "default", "principal": "local", "agent": null, "decision": null,
        "startedAt": "2026-11-15T09:00:00.000Z",
    });
    if let (Some(item), Some(more)) = (item.as_object_mut(), more.as_object()) {
        item.extend(more.clone());
    }
    item
}

fn was(more: &Value) -> Option<Was> {
    entry(listed(more)).map(|entry| entry.was)
}

#[test]
fn what_a_call_came_to_is_read_from_its_record() {
    let refused = |code: &str, message: &str| {
        was(&json!({ "state": "REFUSED", "error": { "code": code, "message": message } }))
    };
    assert_eq!(was(&json!({})), Some(Was::Ran));
    assert_eq!(
        was(&json!({ "state": "COMPLETED_FAILURE", "error": { "code": "TIMEOUT", "message": "x" } })),
        Some(Was::Ran)
    );
    assert_eq!(was(&json!({ "decision": "approved by person" })), Some(Was::Approved));
    assert_eq!(was(&json!({ "decision": "granted by ann (grant_1)" })), Some(Was::Approved));
    for state in ["PENDING_APPROVAL", "REJECTED_BY_USER", "REJECTED_BY_TIMEOUT"] {
        assert_eq!(was(&json!({ "state": state })), Some(Was::Held), "{state}");
    }
    assert_eq!(was(&json!({ "state": "SCHEDULED_FOR_EXECUTION" })), Some(Was::Ran));
    assert_eq!(refused("PERMISSION_DENIED", "denied by policy p: no"), Some(Was::Denied));
    assert_eq!(
        refused("PERMISSION_DENIED", "policy p could not be judged, so the call is refused: x"),
        Some(Was::Denied)
    );
    assert_eq!(refused("APPROVAL_REQUIRED", "x"), Some(Was::Held));
    assert_eq!(refused("PERMISSION_DENIED", "/etc is outside of the workspace"), None, "no policy said so");
    assert_eq!(refused("INVALID_ARGUMENTS", "x"), None);
    assert_eq!(was(&json!({ "argumentsDigest": null })), None);
    assert_eq!(was(&json!({ "kind": "", "effect": "" })), None, "a tool that was never there");
}

#[test]
fn a_summary_counts_what_would_differ() {
    let mut seen = Seen::default();
    let mut add = |was: Value, outcome: Result<ReplayOutcome, String>| {
        seen.add(entry(listed(&was)).unwrap(), |_| outcome, 2);
    };
    let held = || Ok(ReplayOutcome::Held(vec![Arc::from("policy a"), Arc::from("toolRules")]));
    let approved = || json!({ "decision": "approved by person" });
    add(json!({}), Ok(ReplayOutcome::Runs));
    add(json!({}), held());
    add(approved(), held());
    add(json!({}), Ok(ReplayOutcome::Denied("policy b".into())));
    add(approved(), Ok(ReplayOutcome::Denied("policy b".into())));
    add(approved(), Ok(ReplayOutcome::Runs));
    add(json!({}), Ok(ReplayOutcome::Unknown(Unknown::Arguments)));
    add(approved(), Ok(ReplayOutcome::Unknown(Unknown::Files)));
    add(json!({}), Ok(ReplayOutcome::Unknown(Unknown::Files)));
    add(json!({}), Err("the configuration has no project x".into()));
    assert_eq!(
        seen.summary(),
        "1 of 10 calls would now be held, 2 denied, 1 let through; 1 cannot be told (arguments were cut or masked in the \
         ledger); 1 cannot be told (the configuration has no project x); 1 cannot be told (the tool's own rule looks at the \
         files)"
    );
    let found = seen.to_json();
    assert_eq!(found["items"].as_array().map(Vec::len), Some(2), "no more than was asked for");
    assert_eq!(
        (&found["items"][0]["now"], &found["items"][0]["rules"]),
        (&json!("held"), &json!(["policy a", "toolRules"]))
    );
    assert_eq!((&found["calls"], &found["letThrough"]), (&json!(10), &json!(1)));
}
