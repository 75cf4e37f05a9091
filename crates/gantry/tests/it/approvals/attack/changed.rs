//! What was approved is not what would run any more: the arguments, the tool, the rules, the file.

use super::super::held::{
    Held, approve, asked_again, call, decide, hold, item, line, lines, over, record, text,
};
use super::{config, home};
use crate::projects::Site;
use gantry_testkit::faulty::Faulty;
use gantry_testkit::{Server, TestDir};
use serde_json::{Value, json};

/// The question that was asked again.
fn again(asked: &Value) -> Held {
    Held { id: text(&asked["id"]), call: text(&asked["callId"]) }
}

#[test]
fn apr_5_other_arguments_are_another_call() {
    let home = home();
    let server = home.serve();
    let approved = hold(&server, None, "test__count", &line("harmless"));
    let other = hold(&server, None, "test__count", &line("harmful"));
    assert_ne!(approved, other);
    approve(&server, &approved);
    assert_eq!(over(&server, &approved)["state"], "COMPLETED_SUCCESS");
    // Not even those that differ in nothing but a space.
    let spaced = hold(&server, None, "test__count", &line("harmless "));
    for held in [&other, &spaced] {
        assert_eq!(item(&server, &held.id)["state"], "PENDING_APPROVAL");
    }
    assert_eq!(lines(&home), ["harmless"]);
}

#[test]
fn apr_3_arguments_that_an_approver_gives_are_judged_like_any() {
    let deny = json!([{ "name": "no-secrets", "tools": ["test__count"], "when": "args.text == 'secret'", "decide": "deny" }]);
    let home = TestDir::with_test_tools().config(&config(&json!({ "policies": deny })).to_string());
    let server = home.serve();
    let held = hold(&server, None, "test__count", &line("asked"));
    let edit = |arguments: Value| {
        decide(&server, &server.key, &held, &json!({ "approved": true, "modifiedArgs": arguments }))
    };
    for (arguments, code) in [
        (json!({ "file": "counted", "text": 7 }), "INVALID_ARGUMENTS"),
        (line("secret"), "PERMISSION_DENIED"),
    ] {
        let refused = edit(arguments);
        assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &json!(code)), "{refused:?}");
        assert_eq!(item(&server, &held.id)["state"], "PENDING_APPROVAL");
    }
    assert_eq!(super::turned_away(&server, &held).len(), 2);
    assert_eq!(edit(line("given")).status, 200);
    let done = over(&server, &held);
    assert_eq!((&done["state"], &done["arguments"]), (&json!("COMPLETED_SUCCESS"), &line("asked")), "{done}");
    assert_eq!(done["decision"]["modifiedArgs"], line("given"), "both are kept");
    let outcome = server.get(&format!("/api/v1/calls/{}", held.call)).json();
    assert_eq!(outcome["extras"]["executedArguments"], line("given"), "{outcome}");
    assert_eq!(outcome["record"]["decision"], "approved by person with other arguments", "{outcome}");
    assert_eq!(lines(&home), ["given"]);
}

/// A server that can become another one.
fn pulled() -> Value {
    let env = json!({ "FAULTY": Faulty::program() });
    let script = "cd \"$0\"; exec $FAULTY --journal journal.txt --definition-version $(cat version)";
    json!({ "command": "sh", "args": ["-c", script, "."], "env": env })
}

fn site(approvals: &Value) -> Site {
    let home = TestDir::new()
        .config(&json!({ "approvals": approvals, "mcpServers": { "s": pulled() } }).to_string());
    home.write("version", "1");
    Site::at(home)
}

/// The server changes the definition of its tool, and Gantry has heard of it.
fn pull(site: &Site, number: &str) {
    site.result("default", "s__rug_pull", &json!({}));
    heard(site, number);
}

fn heard(site: &Site, number: &str) {
    site.server.eventually("the definition changes", || {
        let listed = site.server.get("/api/v1/tools").json();
        let mut tools = listed["items"].as_array().expect("tools").iter();
        tools.any(|tool| {
            tool["name"] == "s__versioned" && tool["description"] == format!("Definition {number}")
        })
    });
}

#[test]
fn apr_5_a_tool_that_has_changed_since_it_was_asked_about_is_asked_about_again() {
    let site = site(&json!({ "requiresApprovalTools": ["s__versioned"] }));
    let held = hold(&site.server, None, "s__versioned", &json!({}));
    let before = item(&site.server, &held.id)["fingerprint"].clone();
    pull(&site, "2");
    approve(&site.server, &held);
    let asked = asked_again(&site.server, &held);
    assert_ne!(asked["fingerprint"], before, "{asked}");
    // And once more, by another program behind the same name.
    site.home.write("version", "3");
    let restarted = site.admin(http::Method::POST, "/api/v1/servers/s/restart", &Value::Null);
    assert_eq!(restarted.status, 200, "{restarted:?}");
    heard(&site, "3");
    approve(&site.server, &again(&asked));
    let last = again(&asked_again(&site.server, &again(&asked)));
    approve(&site.server, &last);
    assert_eq!(over(&site.server, &last)["state"], "COMPLETED_SUCCESS");
    let done = site.server.get(&format!("/api/v1/calls/{}", held.call)).json();
    assert_eq!((&done["ok"], &done["result"]), (&json!(true), &json!("versioned")), "{done}");
}

#[test]
fn apr_5_another_server_behind_the_same_name_is_asked_about_again() {
    let approvals = json!({ "requiresApprovalTools": ["s__versioned"] });
    let site = site(&approvals);
    let held = hold(&site.server, None, "s__versioned", &json!({}));
    let before = item(&site.server, &held.id)["fingerprint"].clone();
    // Word for word the same tool, of another program.
    let mut other = pulled();
    other["args"] =
        json!(["-c", "cd \"$0\"; tee -a other.txt | $FAULTY --definition-version $(cat version)", "."]);
    let config = json!({ "approvals": approvals, "mcpServers": { "s": other } });
    site.home.write("gantry.yaml", &config.to_string());
    assert_eq!(site.reload().status, 200);
    site.settled();
    approve(&site.server, &held);
    let asked = asked_again(&site.server, &held);
    assert_eq!(asked["fingerprint"], before, "{asked}");
    assert_eq!((&asked["attempts"], &item(&site.server, &held.id)["attempts"]), (&json!(0), &json!(0)));
    let calls = || site.requests("other.txt", "tools/call");
    assert_eq!(calls(), 0);
    approve(&site.server, &again(&asked));
    assert_eq!(over(&site.server, &again(&asked))["state"], "COMPLETED_SUCCESS");
    assert_eq!(calls(), 1, "a yes to that one is for that one");
}

#[test]
fn apr_8_a_tool_that_changes_before_the_time_of_a_call_has_come_is_not_run() {
    let site = site(&json!({ "toolSpecificDelays": { "s__versioned": 4000 } }));
    let held = hold(&site.server, None, "s__versioned", &json!({}));
    pull(&site, "2");
    assert_eq!(
        item(&site.server, &held.id)["state"],
        "SCHEDULED_FOR_EXECUTION",
        "the machine is too slow for this test"
    );
    let ended = over(&site.server, &held);
    assert_eq!((&ended["state"], &ended["attempts"]), (&json!("CANCELLED_BY_SYSTEM"), &json!(0)), "{ended}");
    let record = record(&site.server, &held.call);
    assert_eq!(record["error"]["code"], "TOOL_QUARANTINED", "{record}");
    assert!(text(&record["error"]["message"]).contains("has changed while this call waited"), "{record}");
}

#[test]
fn apr_10_a_grant_is_void_for_a_tool_that_has_changed() {
    let site = site(&json!({ "requiresApprovalTools": ["s__versioned"], "remember": "always" }));
    let held = hold(&site.server, None, "s__versioned", &json!({}));
    let always = json!({ "approved": true, "scope": "always" });
    assert_eq!(decide(&site.server, &site.server.key, &held, &always).status, 200);
    over(&site.server, &held);
    site.result("default", "s__versioned", &json!({}));
    pull(&site, "2");
    hold(&site.server, None, "s__versioned", &json!({}));
}

#[test]
fn apr_10_a_grant_is_void_under_other_rules_about_its_tool() {
    let rules = |when: &str, more: &Value| {
        let careful = json!({ "name": "careful", "tools": ["test__count"], "when": when, "decide": "ask", "remember": "always" });
        json!({ "policies": [careful, more] })
    };
    let other = |decide: &str| json!({ "name": "other", "tools": ["test__echo"], "decide": decide });
    let site = Site::with_test_tools(&rules("args.file == 'counted'", &other("deny")));
    let held = hold(&site.server, None, "test__count", &line("asked"));
    let always = json!({ "approved": true, "scope": "always" });
    assert_eq!(decide(&site.server, &site.server.key, &held, &always).status, 200);
    over(&site.server, &held);
    site.edit(&rules("args.file == 'counted'", &other("ask")));
    assert_eq!(site.call("default", "test__count", &line("granted")).json()["ok"], true);
    // A rule of the same name that asks for another reason was not answered.
    site.edit(&rules("args.text != 'harmless'", &other("ask")));
    hold(&site.server, None, "test__count", &line("changed"));
    assert_eq!(lines(&site.home), ["asked", "granted"]);
}

/// Calls that wait while the rules change to these, and are approved then.
fn while_the_rules_become(more: &Value) -> (Site, Held) {
    let site = Site::with_test_tools(&config(&json!({ "policies": [] })));
    let held = hold(&site.server, None, "test__count", &line("ran"));
    site.edit(&config(more));
    approve(&site.server, &held);
    (site, held)
}

#[test]
fn apr_5_a_rule_about_another_tool_voids_no_decision() {
    let other = json!({ "policies": [{ "name": "other", "tools": ["test__echo"], "decide": "deny" }] });
    let (site, held) = while_the_rules_become(&other);
    assert_eq!(over(&site.server, &held)["state"], "COMPLETED_SUCCESS");
    assert_eq!(lines(&site.home), ["ran"]);
}

#[test]
fn apr_5_a_rule_that_asks_since_then_asks_again() {
    let ask = json!({ "policies": [{ "name": "since-then", "tools": ["test__count"], "decide": "ask" }] });
    let (site, held) = while_the_rules_become(&ask);
    let asked = asked_again(&site.server, &held);
    assert!(asked["rules"].as_array().expect("rules").contains(&json!("policy since-then")), "{asked}");
    assert!(lines(&site.home).is_empty());
    approve(&site.server, &again(&asked));
    assert_eq!(over(&site.server, &again(&asked))["state"], "COMPLETED_SUCCESS");
    assert_eq!(lines(&site.home), ["ran"]);
}

#[test]
fn apr_5_a_rule_that_denies_since_then_refuses() {
    let deny = json!({ "policies": [{ "name": "since-then", "tools": ["test__count"], "decide": "deny" }] });
    let (site, held) = while_the_rules_become(&deny);
    let ended = over(&site.server, &held);
    assert_eq!(ended["state"], "CANCELLED_BY_SYSTEM", "{ended}");
    let record = record(&site.server, &held.call);
    assert_eq!(
        (&record["state"], &record["error"]["code"]),
        (&ended["state"], &json!("PERMISSION_DENIED")),
        "{record}"
    );
    assert!(text(&record["error"]["message"]).contains("since-then"), "{record}");
    assert!(lines(&site.home).is_empty());
}

#[test]
fn apr_5_who_may_approve_since_then_is_asked() {
    let approvals =
        json!({ "requiresApprovalTools": ["test__count"], "approvers": { "test__count": ["ann"] } });
    let (site, held) = while_the_rules_become(&json!({ "approvals": approvals }));
    let asked = asked_again(&site.server, &held);
    assert_eq!(asked["approvers"], json!([["ann"]]), "{asked}");
    super::refused(&site.server, &site.server.key, &again(&asked), (403, "PERMISSION_DENIED"));
    assert!(lines(&site.home).is_empty());
}

#[test]
fn apr_5_a_file_that_has_changed_since_it_was_shown_is_asked_about_again() {
    let home = TestDir::new();
    home.write("a.txt", "as it was");
    let server = home.serve();
    let arguments = json!({ "path": "a.txt", "content": "new" });
    let held = hold(&server, None, "write_file", &arguments);
    home.write("a.txt", "as somebody has left it");
    approve(&server, &held);
    let asked = asked_again(&server, &held);
    assert_eq!(home.read("a.txt"), "as somebody has left it");
    approve(&server, &again(&asked));
    assert_eq!(over(&server, &again(&asked))["state"], "COMPLETED_SUCCESS");
    assert_eq!(home.read("a.txt"), "new");
}

#[test]
fn apr_5_a_call_that_is_asked_about_again_can_be_denied_and_its_caller_learns_it() {
    let home = TestDir::new();
    home.write("a.txt", "as it was");
    let server: Server = home.serve();
    let held = hold(&server, None, "write_file", &json!({ "path": "a.txt", "content": "new" }));
    home.write("a.txt", "changed");
    approve(&server, &held);
    let asked = again(&asked_again(&server, &held));
    let no = decide(&server, &server.key, &asked, &json!({ "approved": false, "reason": "look again" }));
    assert_eq!(no.status, 200, "{no:?}");
    let outcome = server.get(&format!("/api/v1/calls/{}", held.call)).json();
    assert_eq!(
        (&outcome["state"], &outcome["approvalId"]),
        (&json!("REJECTED_BY_USER"), &json!(asked.id)),
        "{outcome}"
    );
    assert!(text(&outcome["error"]["message"]).contains("look again"), "{outcome}");
    // The old yes has no effect.
    super::refused(&server, &server.key, &held, (409, "ALREADY_DECIDED"));
    let repeated = call(
        &server,
        None,
        &json!({ "tool": "write_file", "arguments": { "path": "a.txt", "content": "new" } }),
    );
    assert_ne!(Held::of(&repeated).id, held.id);
    assert_eq!(home.read("a.txt"), "changed");
}

#[test]
fn apr_5_a_directory_that_is_not_as_it_was_seen_is_asked_about_again_before_it_is_deleted() {
    let home = TestDir::new();
    for (path, content) in [("old/a.txt", "a"), ("kept.txt", "kept")] {
        let path = home.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, content).expect("a file");
    }
    let server = home.serve();
    let held = hold(&server, None, "delete_file", &json!({ "path": "old", "recursive": true }));
    assert!(text(&item(&server, &held.id)["reason"]).contains("the 1 entry in it"));
    // No person is asked about this, and it would be gone with the rest.
    let moved = call(
        &server,
        None,
        &json!({ "tool": "move_file", "arguments": { "from": "kept.txt", "to": "old/kept.txt" } }),
    );
    assert_eq!(moved.status, 200, "{moved:?}");
    approve(&server, &held);
    let asked = asked_again(&server, &held);
    assert!(text(&asked["reason"]).contains("the 2 entries in it"), "{asked}");
    assert!(home.path().join("old/kept.txt").exists() && home.path().join("old/a.txt").exists());
    approve(&server, &again(&asked));
    assert_eq!(over(&server, &again(&asked))["state"], "COMPLETED_SUCCESS");
    assert!(!home.path().join("old").exists());
}
