//! Attempts to get a call run that was not approved: all are refused, nothing runs, and they are on record.

mod changed;
mod crowd;
mod forged;
mod roles;

use super::held::{Held, decide, record, text};
use gantry_testkit::{Server, TestDir};
use serde_json::{Value, json};

/// A home in which a count waits for a person.
fn home() -> TestDir {
    TestDir::with_test_tools().config(&config(&json!({})).to_string())
}

/// The configuration of that home, with more of it.
fn config(more: &Value) -> Value {
    let mut config = json!({ "approvals": { "requiresApprovalTools": ["test__count"] } });
    for (key, value) in more.as_object().into_iter().flatten() {
        config[key] = value.clone();
    }
    config
}

/// Says yes, which is refused with this status and code.
#[track_caller]
fn refused(server: &Server, key: &str, held: &Held, (status, code): (u16, &str)) -> Value {
    let answer = decide(server, key, held, &json!({ "approved": true }));
    let body = answer.json();
    assert_eq!((answer.status, &body["error"]["code"]), (status, &json!(code)), "{answer:?}");
    body
}

/// The decisions about a call that the ledger has as turned away: by whom, and why.
#[track_caller]
fn turned_away(server: &Server, held: &Held) -> Vec<(String, String)> {
    let record = record(server, &held.call);
    let refused =
        record["refusedDecisions"].as_array().unwrap_or_else(|| panic!("nothing is on record: {record}"));
    refused.iter().map(|one| (text(&one["by"]), text(&one["why"]))).collect()
}
