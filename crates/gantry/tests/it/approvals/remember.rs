//! APR-10: how far a yes may reach is for the operator to say. A yes to one call lets no other call through, unless each
//! rule that asked allows it.

use super::api::{code, decide, ids, over};
use crate::projects::{Site, named};
use gantry_testkit::server::Answer;
use serde_json::{Value, json};
use std::process::Command;

/// The rules of an operator that can ask about `s__sleep`: the name of each, and the configuration with this `remember`.
fn rules(remember: Option<&str>) -> [(&'static str, Value); 5] {
    let with = |mut group: Value| {
        if let Some(word) = remember {
            group["remember"] = json!(word);
        }
        group
    };
    let slow = json!({ "name": "slow", "tools": ["s__sleep"], "when": "args.ms > 5", "decide": "ask" });
    let cost = json!({ "requiresApprovalCost": 10, "estimatedCosts": { "s__sleep": 20 } });
    let approvals = |group: Value| json!({ "approvals": with(group) });
    [
        ("policy slow", json!({ "policies": [with(slow)] })),
        ("requiresApprovalTools", approvals(json!({ "requiresApprovalTools": ["s__sleep"] }))),
        ("requiresApprovalCost", approvals(cost)),
        ("toolRules", approvals(json!({ "toolRules": { "s__sleep": "always" } }))),
        ("requiresApprovalEffects", approvals(json!({ "requiresApprovalEffects": ["read"] }))),
    ]
}

/// The configuration with the server that has the tools.
fn with_server(mut config: Value) -> Value {
    config["mcpServers"] = json!({ "s": named("s") });
    config
}

fn sleep(site: &Site, ms: u64) -> Answer {
    site.server.call("s__sleep", &json!({ "ms": ms }))
}

fn item(site: &Site, approval: &str) -> Value {
    site.server.get_as_admin(&format!("/api/v1/approvals/{approval}")).json()
}

fn always() -> Value {
    json!({ "approved": true, "scope": "always" })
}

/// Says yes with this body, which is refused and decides nothing; the reason.
#[track_caller]
fn refused(site: &Site, approval: &str, body: &Value) -> String {
    let answer = decide(&site.server.admin(), approval, body);
    assert_eq!(code(&answer), (400, "INVALID_ARGUMENTS".into()), "{answer:?}");
    assert_eq!(item(site, approval)["state"], "PENDING_APPROVAL");
    answer.json()["error"]["message"].as_str().expect("a message").to_owned()
}

/// Says yes with this body to a call that is held, and waits until it has ended.
#[track_caller]
fn approved(site: &Site, (call, approval): &(String, String), body: &Value) {
    let yes = decide(&site.server.admin(), approval, body);
    assert_eq!(yes.status, 200, "{yes:?}");
    assert_eq!(over(&site.server.client(), call)["ok"], true);
}

#[test]
fn apr_10_a_yes_to_what_a_rule_of_the_operator_asks_is_for_one_call() {
    for (rule, config) in rules(None) {
        let site = Site::of(&with_server(config));
        let held = ids(&sleep(&site, 6));
        let shown = item(&site, &held.1);
        assert_eq!((&shown["rules"], &shown["scopes"]), (&json!([rule]), &json!(["once"])), "{shown}");
        assert_eq!(shown["remember"], json!({ rule: "once" }), "{shown}");
        let sentence = format!(
            "a yes to this call may not be `always`: {rule} allows `once` (`remember` in the configuration); decide `once`"
        );
        assert_eq!(refused(&site, &held.1, &always()), sentence);
        let ran = site.home.run(["approvals", "approve", &held.1, "--scope", "always"]);
        assert!(ran.code != 0 && ran.stderr.contains(&sentence), "{ran:?}");
        assert_eq!(item(&site, &held.1)["state"], "PENDING_APPROVAL");
        let record = site.server.get_as_admin(&format!("/api/v1/calls/{}", held.0)).json()["record"].clone();
        assert_eq!(record["refusedDecisions"].as_array().map(Vec::len), Some(2), "{record}");
        approved(&site, &held, &json!({ "approved": true }));
        assert_eq!(site.server.get_as_admin("/api/v1/grants?revoked=true").json()["items"], json!([]));
        ids(&sleep(&site, 30));
    }
}

#[test]
fn apr_10_a_rule_is_remembered_as_far_as_the_operator_says_now() {
    for (n, (rule, config)) in rules(Some("always")).into_iter().enumerate() {
        let site = Site::of(&with_server(config.clone()));
        let held = ids(&sleep(&site, 6));
        assert_eq!(item(&site, &held.1)["scopes"], json!(["once", "always"]), "{rule}");
        approved(&site, &held, &always());
        assert_eq!(sleep(&site, 30).json()["ok"], true, "{rule}");
        // A row of a version that asked for no `remember` is such a row: the grant is there and answers nothing.
        for narrower in ["once", "session"] {
            site.edit(&with_server(rules(Some(narrower))[n].1.clone()));
            let asked = ids(&sleep(&site, 31));
            assert_eq!(item(&site, &asked.1)["rules"], json!([rule]));
            assert_eq!(decide(&site.server.admin(), &asked.1, &json!({ "approved": false })).status, 200);
            assert_eq!(over(&site.server.client(), &asked.0)["ok"], false);
        }
        site.edit(&with_server(config));
        assert_eq!(sleep(&site, 32).json()["ok"], true, "{rule}");
    }
}

#[test]
fn apr_10_of_several_rules_that_ask_the_narrowest_counts() {
    let slow = json!({ "name": "slow", "tools": ["s__sleep"], "when": "args.ms > 5", "decide": "ask" });
    let approvals = json!({ "requiresApprovalTools": ["s__sleep"], "remember": "always" });
    let site = Site::of(&with_server(json!({ "policies": [slow], "approvals": approvals })));
    let both = ids(&sleep(&site, 6));
    let shown = item(&site, &both.1);
    assert_eq!(shown["remember"], json!({ "policy slow": "once", "requiresApprovalTools": "always" }));
    assert_eq!(shown["scopes"], json!(["once"]), "{shown}");
    let message = refused(&site, &both.1, &always());
    assert!(message.contains("`always`: policy slow allows `once` (`remember`"), "{message}");
    // Arguments that the approver gives are asked about by more rules than those of the caller.
    let one = ids(&sleep(&site, 1));
    assert_eq!(item(&site, &one.1)["scopes"], json!(["once", "always"]));
    let edited = json!({ "approved": true, "scope": "always", "modifiedArgs": { "ms": 7 } });
    let message = refused(&site, &one.1, &edited);
    assert!(message.contains("policy slow allows `once`"), "{message}");
    approved(&site, &one, &always());
    assert_eq!(sleep(&site, 2).json()["ok"], true);
    let asked = ids(&sleep(&site, 30));
    assert_eq!(item(&site, &asked.1)["rules"], json!(["policy slow", "requiresApprovalTools"]));
    let shown = site.home.run(["approvals", "show", &asked.1]).stdout;
    assert!(
        shown.contains("a grant      would answer requiresApprovalTools, but not policy slow\n"),
        "{shown}"
    );
}

#[test]
fn apr_10_a_tools_own_rule_is_remembered_unless_a_rule_of_the_operator_asks_too() {
    let offered = |config: Value, tool: &str, arguments: Value| {
        let site = Site::of(&with_server(config));
        site.home.write("one.txt", "one");
        let held = ids(&site.server.call(tool, &arguments));
        let shown = item(&site, &held.1);
        if shown["scopes"] == json!(["once"]) {
            refused(&site, &held.1, &always());
        } else {
            approved(&site, &held, &always());
        }
        (shown["rules"].clone(), shown["scopes"].clone())
    };
    let (once, any) = (json!(["once"]), json!(["once", "always"]));
    let own = "the tool's own rule";
    let file = || json!({ "path": "one.txt" });
    assert_eq!(offered(json!({}), "delete_file", file()), (json!([own]), any.clone()));
    let all = json!({ "approvals": { "requiresApprovalTools": "all" } });
    let both = json!(["requiresApprovalTools", own]);
    assert_eq!(offered(all, "delete_file", file()), (both, once.clone()));
    // What a server says about its tool is the tool's own word; what the operator has written is the operator's.
    let wipe = |config: Value| offered(config, "s__wipe", json!({ "text": "all" }));
    assert_eq!(wipe(json!({})), (json!([own]), any.clone()));
    let written = |more: &str| {
        serde_json::from_str(&format!(
            r#"{{"approvals":{{"requiresApprovalEffects":["destructive"]{more}}}}}"#
        ))
        .expect("JSON")
    };
    let effects = json!(["requiresApprovalEffects"]);
    assert_eq!(wipe(written("")), (effects.clone(), once));
    assert_eq!(wipe(written(r#","remember":"always""#)), (effects, any));
}

#[test]
fn apr_10_a_rule_that_changes_while_a_call_waits_allows_the_narrower_of_both() {
    for (before, after) in [("always", "once"), ("once", "always")] {
        for n in [0, 1] {
            let site = Site::of(&with_server(rules(Some(before))[n].1.clone()));
            let held = ids(&sleep(&site, 6));
            site.edit(&with_server(rules(Some(after))[n].1.clone()));
            let message = refused(&site, &held.1, &always());
            assert!(message.contains("allows `once`"), "{message}");
            // The yes to the call itself is worth what it was.
            approved(&site, &held, &json!({ "approved": true }));
            assert_eq!(site.server.get_as_admin("/api/v1/grants").json()["items"], json!([]));
        }
    }
}

/// A call that a version held which did not know of `remember`.
#[test]
fn apr_10_a_call_of_an_older_version_is_approved_once() {
    let site = Site::of(&with_server(rules(Some("always"))[1].1.clone()));
    let held = ids(&sleep(&site, 6));
    let Site { server, home } = site;
    server.stop();
    let script = "import json, sqlite3, sys\n\
        db = sqlite3.connect(sys.argv[1])\n\
        details = json.loads(db.execute('SELECT asked FROM approvals').fetchone()[0])\n\
        assert details.pop('remember') == {'requiresApprovalTools': 'always'}\n\
        db.execute('UPDATE approvals SET asked = ?', [json.dumps(details)])\n\
        db.commit()\n";
    let ran =
        Command::new("python3").args(["-c", script]).arg(home.path().join(".gantry/gantry.db")).status();
    assert!(ran.expect("python3 is installed").success());
    let site = Site::at(home);
    assert_eq!(item(&site, &held.1)["scopes"], json!(["once"]));
    let message = refused(&site, &held.1, &always());
    assert!(message.contains("requiresApprovalTools allows `once`"), "{message}");
    approved(&site, &held, &json!({ "approved": true }));
    ids(&sleep(&site, 30));
}
