//! Forms: a client shows one to the person behind it, who decides there.

use super::{COUNT, Gate, asked, clients, count, failed, home, only, ran};
use crate::approvals::api::counted;
use crate::mcp_sdks::{Door, PYTHON, Sdk, TYPESCRIPT_1, TYPESCRIPT_2};
use gantry_testkit::TestDir;
use serde_json::{Value, json};

/// Has a client on `gantry mcp` make a call, whose person answers like this.
fn answered(sdk: &Sdk, era: &str, home: &TestDir, answer: &[&str]) -> Value {
    let options = [&["--era", era], answer].concat();
    only(&sdk.play_with(home, Door::Stdio, &options, &json!([count("a")]))).clone()
}

/// The newest request of a home, and everything about it.
#[track_caller]
fn newest(home: &TestDir) -> Value {
    let listed = home.run(["approvals", "list", "--all", "--json"]).json();
    listed[0].clone()
}

/// A person behind `gantry mcp` says yes, no for a reason, and no.
fn decides(sdk: &Sdk, era: &str) {
    let home = home("");
    let yes = answered(sdk, era, &home, &["--elicit", "accept"]);
    let form = asked(&yes).expect("a form").clone();
    ran(&yes, "a");
    let item = newest(&home);
    assert_eq!(form["mode"], "form", "{era}: {form}");
    let message = form["message"].as_str().expect("a message");
    for part in [
        COUNT,
        r#"{"file":"counted","text":"a"}"#,
        "requiresApprovalTools",
        item["id"].as_str().expect("an id"),
    ] {
        assert!(message.contains(part), "{era}: {part}: {message}");
    }
    let fields = &form["requestedSchema"]["properties"];
    assert_eq!(fields["decision"]["enum"], json!(["approve", "deny"]), "{era}: {form}");
    assert_eq!(fields["scope"]["enum"], json!(["once"]), "{era}: {form}");
    assert!(
        message.contains("A yes for more than this call would not answer requiresApprovalTools."),
        "{message}"
    );
    assert_eq!(item["sessionGrant"], true, "a client of `gantry mcp` has its session: {item}");
    let shown = [&item["state"], &item["decidedBy"], &item["decidedVia"], &item["caller"]["principal"]];
    assert_eq!(shown, ["COMPLETED_SUCCESS", "person", "elicitation", "mcp"], "{era}: {item}");

    let reason = json!({ "decision": "deny", "reason": "not on a Friday" }).to_string();
    let no = answered(sdk, era, &home, &["--elicit", "accept", "--answer", &reason]);
    let outcome = "(tool failed: denied by person: not on a Friday. Nothing was run.)";
    assert_eq!(failed(&no, "REJECTED_BY_USER"), outcome, "{era}");
    let declined = answered(sdk, era, &home, &["--elicit", "decline"]);
    let outcome = "(tool failed: denied by person; nothing was run)";
    assert_eq!(failed(&declined, "REJECTED_BY_USER"), outcome, "{era}");
    assert_eq!(newest(&home)["state"], "REJECTED_BY_USER", "{era}");
    assert_eq!(counted(&home), ["a"], "{era}");
}

#[test]
fn apr_6_a_person_decides_by_a_form_of_the_python_sdk_in_both_eras() {
    ["legacy", "auto"].iter().for_each(|era| decides(&PYTHON, era));
}

#[test]
fn apr_6_a_person_decides_by_a_form_of_the_typescript_sdk_1() {
    decides(&TYPESCRIPT_1, "legacy");
}

#[test]
fn apr_6_a_person_decides_by_a_form_of_the_typescript_client_2_in_both_eras() {
    ["legacy", "auto"].iter().for_each(|era| decides(&TYPESCRIPT_2, era));
}

#[test]
fn apr_6_a_closed_form_is_no_decision_and_the_call_waits_for_another_approver() {
    for (sdk, era) in clients() {
        let home = home("");
        let playing =
            sdk.begin(&home, Door::Stdio, &["--era", era, "--elicit", "cancel"], &json!([count("a")]));
        // No server runs, so another process decides.
        let id = loop {
            if let Some(id) = newest(&home)["id"].as_str() {
                break id.to_owned();
            }
        };
        assert_eq!(newest(&home)["state"], "PENDING_APPROVAL", "{era}");
        let approved = home.run(["approvals", "approve", &id]);
        assert_eq!(approved.code, 0, "{era}: {approved:?}");
        let seen = playing.end();
        assert_eq!(asked(only(&seen)).expect("a form")["mode"], "form", "{era}");
        ran(only(&seen), "a");
        let item = newest(&home);
        assert_eq!((&item["id"], &item["decidedVia"]), (&json!(id), &json!("cli")), "{era}: {item}");
        assert_eq!(counted(&home), ["a"], "{era}");
    }
}

#[test]
fn apr_10_a_form_that_says_always_makes_a_grant_and_the_next_calls_run_unasked() {
    let always = json!({ "scope": "always" }).to_string();
    for (sdk, era) in clients() {
        let home = home("remember: always");
        let options = ["--era", era, "--elicit", "accept", "--answer", &always];
        let seen = sdk.play_with(&home, Door::Stdio, &options, &json!([count("a"), count("b")]));
        let [first, second] = [0, 1].map(|n| &seen["steps"][n]);
        assert!(asked(first).is_some() && asked(second).is_none(), "{era}: {seen}");
        let form = asked(first).expect("a form");
        let scopes = &form["requestedSchema"]["properties"]["scope"]["enum"];
        assert_eq!(scopes, &json!(["once", "session", "always"]), "{era}: {form}");
        let message = form["message"].as_str().expect("a message");
        assert!(message.contains("would answer requiresApprovalTools, and no other rule."), "{message}");
        ran(second, "b");
        // Nor is the next client of the same person asked.
        let later = sdk.play_with(&home, Door::Stdio, &["--era", era], &json!([count("c")]));
        ran(only(&later), "c");
        let grants = home.run(["approvals", "grants", "--json"]).json();
        assert_eq!(grants.as_array().map(Vec::len), Some(1), "{era}: {grants}");
        assert_eq!(
            (&grants[0]["tool"], &grants[0]["grantedBy"]),
            (&json!(COUNT), &json!("person")),
            "{era}: {grants}"
        );
        assert_eq!(counted(&home), ["a", "b", "c"], "{era}");
    }
}

/// Also where the client lets the person say what the form does not offer.
#[test]
fn apr_10_a_form_that_says_more_than_a_rule_allows_decides_nothing() {
    let always = json!({ "scope": "always" }).to_string();
    for (sdk, era) in clients() {
        let home = home("holdMs: 1000");
        let step = answered(&sdk, era, &home, &["--elicit", "accept", "--answer", &always]);
        assert!(asked(&step).is_some(), "{era}: {step}");
        failed(&step, "APPROVAL_REQUIRED");
        let item = newest(&home);
        assert_eq!(
            (&item["state"], &item["scopes"]),
            (&json!("PENDING_APPROVAL"), &json!(["once"])),
            "{era}: {item}"
        );
        assert_eq!(home.run(["approvals", "grants", "--all", "--json"]).json(), json!([]), "{era}");
        assert!(counted(&home).is_empty(), "{era}");
    }
}

/// A client of the open agent role is never asked to approve itself, no matter what it declares.
#[test]
fn apr_7_a_client_without_a_key_is_not_asked_by_a_form() {
    for (sdk, era) in clients() {
        let gate = Gate::new("delivery: form");
        let playing =
            sdk.begin(&gate.home, gate.door(), &["--era", era, "--elicit", "accept"], &json!([count("a")]));
        let approval = gate.approve();
        let seen = playing.end();
        assert_eq!(asked(only(&seen)), None, "{era}: {seen}");
        ran(only(&seen), "a");
        let item = gate.item(&approval);
        let shown = [&item["caller"]["principal"], &item["decidedBy"], &item["decidedVia"]];
        assert_eq!(shown, ["local", "person", "http"], "{era}: {item}");
    }
}

#[test]
fn apr_7_a_person_whose_yes_would_not_count_is_not_asked() {
    let approvers = "approvers: { test__count: [boss] }, delivery: form, holdMs: 1000";
    let home = home(approvers);
    for (sdk, era) in [(PYTHON, "auto"), (TYPESCRIPT_1, "legacy")] {
        let step = answered(&sdk, era, &home, &["--elicit", "accept"]);
        assert_eq!(asked(&step), None, "{era}: {step}");
        let outcome = failed(&step, "APPROVAL_REQUIRED");
        assert!(outcome.contains(newest(&home)["id"].as_str().expect("an id")), "{era}: {outcome}");
    }
    assert!(counted(&home).is_empty());
}
