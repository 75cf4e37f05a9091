//! What makes a call wait, and for how long: rules per tool, costs, delays by effect, and the same call again.

use super::held::{Held, approve, hold, item, line, lines, over};
use gantry_testkit::TestDir;
use serde_json::json;

#[test]
fn apr_2_a_rule_per_tool_asks_depending_on_the_arguments() {
    let home = TestDir::with_test_tools()
        .config("approvals: { toolRules: { test__count: \"args.text.startsWith('x')\" } }\n");
    let server = home.serve();
    assert_eq!(server.call("test__count", &line("free")).json()["ok"], true);
    let held = hold(&server, None, "test__count", &line("xa"));
    assert_eq!(item(&server, &held.id)["rule"], "toolRules");
    assert_eq!(lines(&home), ["free"]);
}

#[test]
fn apr_8_effects_and_estimated_costs_delay_a_call_and_make_it_ask() {
    let home = TestDir::with_test_tools().config(
        r"
approvals:
  effectDelays: { write: 100 }
  estimatedCosts: { test__count: 50, test__echo: 500 }
  costDelays: [{ from: 40, delayMs: 600000 }]
  requiresApprovalCost: 400
",
    );
    let server = home.serve();
    let dear = item(&server, &hold(&server, None, "test__echo", &json!({ "text": "hi" })).id);
    assert_eq!((&dear["state"], &dear["rule"]), (&json!("PENDING_APPROVAL"), &json!("requiresApprovalCost")));
    assert_eq!((&dear["estimatedCost"], &dear["delayMs"]), (&json!(500), &json!(600_000)));
    let held = Held::of(&server.call("test__count", &line("later")));
    assert_eq!(item(&server, &held.id)["state"], "SCHEDULED_FOR_EXECUTION");
    assert_eq!(item(&server, &held.id)["delayMs"], 600_000, "the longest of them");
    let soon = Held::of(&server.call("write_file", &json!({ "path": "a.txt", "content": "a" })));
    assert_eq!(
        (&over(&server, &soon)["state"], home.read("a.txt")),
        (&json!("COMPLETED_SUCCESS"), "a".into())
    );
    assert_eq!(lines(&home), [""; 0]);
}

#[test]
fn apr_1_without_automatic_rejection_a_call_waits_on() {
    let home = TestDir::with_test_tools().config(
        "approvals: { requiresApprovalTools: [test__count], approvalTimeoutMs: 1000, autoRejectOnTimeout: false }\n",
    );
    let server = home.serve();
    let held = hold(&server, None, "test__count", &line("a"));
    assert_eq!(item(&server, &held.id)["expiresAt"], json!(null));
    approve(&server, &held);
    assert_eq!(over(&server, &held)["state"], "COMPLETED_SUCCESS");
}

#[test]
fn apr_5_the_same_call_again_after_an_approved_change_gets_its_outcome_and_runs_nothing() {
    let home = TestDir::new();
    home.write("a.txt", "old");
    home.write("b.txt", "old");
    let server = home.serve();
    for (tool, arguments) in [
        ("write_file", json!({ "path": "a.txt", "content": "new" })),
        ("delete_file", json!({ "path": "b.txt" })),
    ] {
        let held = hold(&server, None, tool, &arguments);
        approve(&server, &held);
        assert_eq!(over(&server, &held)["state"], "COMPLETED_SUCCESS");
        // The file is another now, or gone; the request is the same, and its outcome was not given to a caller yet.
        let again = server.call(tool, &arguments).json();
        assert_eq!((&again["ok"], &again["id"]), (&json!(true), &json!(held.call)), "{tool}: {again}");
    }
    let anew = hold(&server, None, "write_file", &json!({ "path": "a.txt", "content": "new" }));
    assert_eq!(item(&server, &anew.id)["state"], "PENDING_APPROVAL", "it was given, so this is a new call");
}
