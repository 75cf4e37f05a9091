//! What a record says about the policies of then, and how the differences are summed up.

use super::*;
use serde_json::{Value, json};

fn record(more: &Value) -> CallRecord {
    let digits = "0".repeat(32);
    let mut record = json!({
        "id": format!("call_{digits}"), "state": "COMPLETED_SUCCESS", "tool": "db__drop", "provider": "db", "original": "drop",
        "kind": "mcp", "namespace": "db", "effect": "write", "fingerprint": null, "arguments": "{}",
        "argumentsDigest": "0".repeat(64), "project": "default", "principal": "local", "agent": null, "door": "cli",
        "session": format!("run_{digits}"), "parent": null, "turn": 1, "decision": null, "startedAt": "2026-11-15T09:00:00.000Z",
    });
    for (key, value) in more.as_object().unwrap() {
        record[key] = value.clone();
    }
    serde_json::from_value(record).unwrap()
}

#[test]
fn a_record_says_what_the_policies_made_of_the_call() {
    let was = |more: &Value| RecordedOutcome::of(&record(more));
    let refused = |code: &str, message: &str| {
        was(&json!({ "state": "REFUSED", "error": { "code": code, "message": message } }))
    };
    assert_eq!(was(&json!({})), Some(RecordedOutcome::Ran));
    let timeout = json!({ "state": "COMPLETED_FAILURE", "error": { "code": "TIMEOUT", "message": "x" } });
    assert_eq!(was(&timeout), Some(RecordedOutcome::Ran));
    for decision in ["approved by person", "granted by ann (grant_1)"] {
        assert_eq!(was(&json!({ "decision": decision })), Some(RecordedOutcome::Approved));
    }
    for state in ["PENDING_APPROVAL", "REJECTED_BY_USER", "REJECTED_BY_TIMEOUT"] {
        assert_eq!(was(&json!({ "state": state })), Some(RecordedOutcome::Held), "{state}");
    }
    assert_eq!(was(&json!({ "state": "SCHEDULED_FOR_EXECUTION" })), Some(RecordedOutcome::Ran));
    for message in ["denied by policy p: no", "policy p could not be judged, so the call is refused: x"] {
        assert_eq!(refused("PERMISSION_DENIED", message), Some(RecordedOutcome::Denied));
    }
    assert_eq!(refused("APPROVAL_REQUIRED", "x"), Some(RecordedOutcome::Held));
    assert_eq!(
        refused("PERMISSION_DENIED", "/etc is outside of the workspace"),
        None,
        "no policy refused it"
    );
    assert_eq!(refused("INVALID_ARGUMENTS", "x"), None);
    let evaluator = PolicyEvaluator::new(BTreeMap::new());
    assert!(evaluator.tool(&record(&json!({ "kind": "", "effect": "" }))).is_none());
    assert!(evaluator.tool(&record(&json!({}))).is_some_and(|tool| &*tool.name == "db__drop"));
}

#[test]
fn a_summary_counts_what_would_differ() {
    let mut replayed = Replayed::default();
    let mut add = |was: RecordedOutcome, outcome: Result<ReplayOutcome, String>| {
        replayed.add(&record(&json!({})), was, outcome, 2);
    };
    let held = || Ok(ReplayOutcome::Held(vec![Arc::from("policy a"), Arc::from("toolRules")]));
    add(RecordedOutcome::Ran, Ok(ReplayOutcome::Runs));
    add(RecordedOutcome::Ran, held());
    add(RecordedOutcome::Approved, held());
    add(RecordedOutcome::Ran, Ok(ReplayOutcome::Denied("policy b".into())));
    add(RecordedOutcome::Approved, Ok(ReplayOutcome::Denied("policy b".into())));
    add(RecordedOutcome::Approved, Ok(ReplayOutcome::Runs));
    add(RecordedOutcome::Ran, Ok(ReplayOutcome::Unknown(Unknown::Arguments)));
    add(RecordedOutcome::Approved, Ok(ReplayOutcome::Unknown(Unknown::Files)));
    add(RecordedOutcome::Ran, Ok(ReplayOutcome::Unknown(Unknown::Files)));
    add(RecordedOutcome::Ran, Err("the configuration has no project x".into()));
    assert_eq!(
        replayed.summary(),
        "1 of 10 calls would now be held, 2 denied, 1 let through; 1 cannot be predicted (arguments were cut or masked in \
         the ledger); 1 cannot be predicted (the configuration has no project x); 1 cannot be predicted (the tool's own \
         rule looks at the files)"
    );
    let found = serde_json::to_value(&replayed).unwrap();
    assert_eq!(found["items"].as_array().map(Vec::len), Some(2), "no more than were asked for");
    assert_eq!(
        (&found["items"][0]["now"], &found["items"][0]["rules"]),
        (&json!("held"), &json!(["policy a", "toolRules"]))
    );
    assert_eq!((&found["calls"], &found["letThrough"]), (&json!(10), &json!(1)));
}
