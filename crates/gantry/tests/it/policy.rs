//! Policies: rules that refuse or ask, a person's yes on record, and secrets that are never shown.

use crate::pipeline::{file, lines, post, post_as_person};
use crate::results::mcp_call;
use gantry_testkit::TestDir;
use serde_json::{Value, json};

fn with_policies(rules: &str) -> TestDir {
    TestDir::with_test_tools().config(&format!("agents: {{ a: {{}}, b: {{}} }}\npolicies:\n{rules}"))
}

/// What a call comes to: its result, or its error's code.
fn comes_to(reply: &Value) -> Value {
    if reply["ok"] == true { reply["result"].clone() } else { reply["error"]["code"].clone() }
}

#[test]
fn a_rule_that_denies_names_itself_and_its_reason() {
    let home =
        with_policies("  - { name: no-echo, tools: [test__echo], decide: deny, reason: it is loud here }\n");
    let reply = home.call_yes("test__echo", &json!({ "text": "hi" }));
    let error = json!({
        "code": "PERMISSION_DENIED", "message": "denied by policy no-echo: it is loud here", "details": { "policy": "no-echo" },
    });
    assert_eq!((&reply["error"], &reply["state"]), (&error, &json!("REFUSED")), "a yes does not help");
    let row = home.run(["audit", "--json"]).json()[0].take();
    assert_eq!((&row["state"], &row["error"]["code"]), (&json!("REFUSED"), &json!("PERMISSION_DENIED")));
    assert_eq!((&row["effectState"], &row["decision"]), (&json!("none"), &Value::Null));
}

#[test]
fn a_condition_decides_by_the_arguments() {
    let home = with_policies(
        r#"
  - name: no-prod
    tools: ["test__*"]
    when: "has(args.text) && args.text.startsWith('prod')"
    decide: deny
    examples: { deny: [{ text: prod-1 }], pass: [{ text: dev }, {}] }
"#,
    );
    let call = |text: &str| comes_to(&home.call("test__echo", &json!({ "text": text })));
    assert_eq!(call("dev"), "dev");
    assert_eq!(call("prod-7"), "PERMISSION_DENIED");
    assert_eq!(call("p\u{72}od"), "PERMISSION_DENIED", "however it is spelled in JSON");
    assert_eq!(comes_to(&home.call("test__noop", &json!({}))), "ok");
}

#[test]
fn a_condition_decides_by_tool_agent_principal_and_role() {
    let home = with_policies(
        r#"
  - { name: no-writes-for-b, tools: ["*"], when: "agent == 'b' && tool.effect != 'read'", decide: deny }
  - { name: persons-only, tools: [test__tick], when: "role != 'admin' || principal != 'person'", decide: deny }
  - { name: by-kind, tools: ["*"], when: "tool.kind == 'mcp' && tool.namespace == 'test' && tool.name == 'test__noop'", decide: deny }
"#,
    );
    let server = home.serve();
    let count = json!({ "file": file(&home, "c"), "text": "x" });
    let call = |tool: &str, arguments: &Value, agent: Value| {
        comes_to(&post(&server, &json!({ "tool": tool, "arguments": arguments, "agent": agent })).json())
    };
    assert_eq!(call("test__count", &count, json!("a")), json!({ "counted": "x" }));
    assert_eq!(call("test__count", &count, json!("b")), "PERMISSION_DENIED");
    assert_eq!(call("test__echo", &json!({ "text": "hi" }), json!("b")), "hi");
    let tick = json!({ "file": file(&home, "t"), "ms": 0 });
    assert_eq!(call("test__tick", &tick, Value::Null), "PERMISSION_DENIED");
    let persons = post_as_person(&server, &json!({ "tool": "test__tick", "arguments": tick })).json();
    assert_eq!(persons["result"], "1");
    assert_eq!(call("test__noop", &json!({}), Value::Null), "PERMISSION_DENIED");
}

#[test]
fn a_condition_that_cannot_be_judged_refuses_the_call() {
    let home = with_policies(
        r#"
  - { name: missing, tools: [test__echo], when: "args.text == 'x'", decide: ask }
  - { name: not-a-yes-or-no, tools: [test__tick], when: "args.file", decide: deny }
"#,
    );
    let reply = home.call_yes("test__echo", &json!({}));
    assert_eq!(
        (&reply["error"]["code"], &reply["error"]["details"]["policy"]),
        (&json!("PERMISSION_DENIED"), &json!("missing"))
    );
    assert!(reply["error"]["message"].as_str().unwrap().contains("could not be judged"), "{reply}");
    assert_eq!(comes_to(&home.call("test__echo", &json!({ "text": "y" }))), "y");
    let reply = home.call_yes("test__tick", &json!({ "file": file(&home, "t"), "ms": 0 }));
    assert_eq!(reply["error"]["details"]["policy"], "not-a-yes-or-no", "{reply}");
    assert_eq!(lines(&home, "t"), 0);
}

#[test]
fn a_condition_whose_cost_an_agent_could_choose_is_refused() {
    let home = TestDir::new();
    for (when, why) in [
        ("args.list.exists(x, args.list.exists(y, x == y))", "loops such as all"),
        ("has(args.a) && [args.list.map(args, args + args)] == [1]", "loops such as all"),
        ("args.a.matches(args.b)", "matches takes a pattern in quotes"),
        ("{'a': !matches(args.a, 'x' + args.b)}.a", "matches takes a pattern in quotes"),
    ] {
        let policies =
            json!({ "policies": [{ "name": "p", "tools": ["*"], "when": when, "decide": "deny" }] });
        home.write("gantry.yaml", &policies.to_string());
        let refused = home.run(["config", "check"]);
        assert_eq!(refused.code, 2, "{when}");
        assert!(refused.stderr.contains(why), "{when}: {}", refused.stderr);
    }
}

#[test]
fn deny_wins_over_ask_in_any_order() {
    let (deny, ask) = (
        "  - { name: deny-it, tools: [test__echo], decide: deny }\n",
        "  - { name: ask-it, tools: [test__echo], decide: ask }\n",
    );
    for rules in [format!("{deny}{ask}"), format!("{ask}{deny}")] {
        let reply = with_policies(&rules).call_yes("test__echo", &json!({ "text": "hi" }));
        assert_eq!(reply["error"]["details"]["policy"], "deny-it", "{rules}");
    }
}

#[test]
fn a_rule_that_asks_holds_the_call_until_a_person_says_yes() {
    let home = with_policies(
        "  - { name: ask-counts, tools: [test__count], decide: ask, reason: counting costs }\n",
    );
    let count = json!({ "file": file(&home, "c"), "text": "x" });
    let ran = home.run(["call", "test__count", &count.to_string()]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.stderr.contains("counting costs") && ran.stderr.contains("gantry approvals approve appr_"),
        "{}",
        ran.stderr
    );
    let held = home.call("test__count", &count);
    assert_eq!(held["error"]["code"], "APPROVAL_REQUIRED");
    let details = &held["error"]["details"];
    assert_eq!(
        (&details["reason"], &details["rule"]),
        (&json!("counting costs"), &json!("policy ask-counts"))
    );
    assert_eq!((lines(&home, "c"), &held["extras"]["effect"]), (0, &json!("none")));
    let approved = home.call_yes("test__count", &count);
    assert_eq!((&approved["ok"], &approved["extras"]["approvedBy"]), (&json!(true), &json!("person")));
    assert_eq!(lines(&home, "c"), 1);
    // One yes is for one call.
    assert_eq!(comes_to(&home.call("test__count", &count)), "APPROVAL_REQUIRED");
    let rows = home.run(["audit", "--tool", "test__count", "--json"]).json();
    let decisions: Vec<&Value> = rows.as_array().unwrap().iter().map(|row| &row["decision"]).collect();
    // The same call again is the one that waits already.
    assert_eq!(decisions, [&json!("approved by person"), &Value::Null]);
}

#[test]
fn only_a_person_can_say_yes() {
    let home = TestDir::with_test_tools().config(
        "policies: [{ name: ask-counts, tools: [test__count], decide: ask }]\n\
         approvals: { delivery: pending, approvalTimeoutMs: 2000 }\n",
    );
    let server = home.serve();
    let count = json!({ "file": file(&home, "c"), "text": "x" });
    let call = json!({ "tool": "test__count", "arguments": count, "approve": true });
    let agents = post(&server, &call);
    assert_eq!((agents.status, &agents.json()["error"]["code"]), (403, &json!("PERMISSION_DENIED")));
    let by_mcp = mcp_call(&server, "/mcp", "test__count", &count);
    assert_eq!(
        (&by_mcp["result"]["isError"], &by_mcp["result"]["_meta"]["gantry/error"]["code"]),
        (&json!(true), &json!("APPROVAL_REQUIRED"))
    );
    // A yes to the call above is none to the call below it.
    let below = json!({ "tool": "test__nested", "arguments": { "tool": "test__count", "arguments": count }, "approve": true });
    let nested = post_as_person(&server, &below).json();
    assert!(nested["result"].as_str().unwrap().contains("no approver decided within 2 s"), "{nested}");
    assert_eq!(lines(&home, "c"), 0);
    assert_eq!(post_as_person(&server, &call).json()["ok"], true);
    assert_eq!(lines(&home, "c"), 1);
}

#[test]
fn requires_approval_tools_is_all_none_or_a_list() {
    let home = TestDir::with_test_tools();
    home.write("a.txt", "hi");
    let check = |setting: &str, echo: &str, delete: &str| {
        home.write("gantry.yaml", &format!("approvals: {{ requiresApprovalTools: {setting} }}\n"));
        assert_eq!(comes_to(&home.call("test__echo", &json!({ "text": "hi" }))), echo, "{setting}");
        assert_eq!(comes_to(&home.call("delete_file", &json!({ "path": "a.txt" }))), delete, "{setting}");
    };
    check("all", "APPROVAL_REQUIRED", "APPROVAL_REQUIRED");
    check("none", "hi", "APPROVAL_REQUIRED"); // None lifts nothing: the tool's own rule asks all the same.
    check("[]", "hi", "APPROVAL_REQUIRED");
    check("[test__echo]", "APPROVAL_REQUIRED", "APPROVAL_REQUIRED");
    check("[\"test__s*\", \"*_directory\"]", "hi", "APPROVAL_REQUIRED");
    home.write("gantry.yaml", "approvals: { requiresApprovalTools: all }\n");
    let reply = home.call("test__echo", &json!({ "text": "hi" }));
    assert_eq!(reply["error"]["details"]["rule"], "requiresApprovalTools");
    assert_eq!(comes_to(&home.call_yes("test__echo", &json!({ "text": "hi" }))), "hi");
    assert_eq!(comes_to(&home.call("test__echo", &json!({ "text": 7 }))), "INVALID_ARGUMENTS");
}

#[test]
fn a_call_that_several_rules_ask_about_gives_every_reason() {
    let home = TestDir::with_test_tools().config(
        r"
approvals: { requiresApprovalTools: [delete_file] }
policies: [{ name: careful, tools: [delete_file], decide: ask, reason: the team wants to know }]
",
    );
    home.write("a.txt", "hi");
    let reply = home.call("delete_file", &json!({ "path": "a.txt" }));
    let reason = reply["error"]["details"]["reason"].as_str().unwrap();
    for part in ["the team wants to know", "requiresApprovalTools", "a.txt"] {
        assert!(reason.contains(part), "{part} is not in: {reason}");
    }
    assert_eq!(reply["error"]["details"]["rule"], "policy careful", "the first that asks");
}

#[test]
fn a_broken_rule_is_an_error_at_its_line_and_nothing_starts() {
    for (rule, line, says) in [
        ("when: \"args.n >\"\n    decide: deny", 4, "policy p: the condition is not valid"),
        ("when: \"argz.n == 1\"\n    decide: deny", 4, "\"argz\" is not known here"),
        ("decide: allow", 4, "must be deny or ask"),
        ("when: \"args.n > 3\"", 2, "needs the key \"decide\""),
        (
            "when: \"args.n > 3\"\n    decide: deny\n    examples:\n      deny: [{ n: 4 }]\n      pass:\n        - { n: 1 }\n        - { n: 5 }",
            10,
            "policy p: the rule fails its own example {\"n\":5}: it applies where it should pass",
        ),
        (
            "when: \"args.n > 3\"\n    decide: deny\n    examples:\n      deny: [{ n: 3 }]",
            7,
            "passes where it should apply",
        ),
        ("when: \"args.n > 3\"\n    decide: ask\n    examples: { ask: [{}] }", 6, "cannot be judged"),
        ("decide: ask\n    examples: { deny: [{}] }", 5, "move the example to examples.ask"),
    ] {
        let home =
            TestDir::new().config(&format!("policies:\n  - name: p\n    tools: [\"*\"]\n    {rule}\n"));
        for command in [&["tools"] as &[&str], &["serve", "--bind", "127.0.0.1:0"]] {
            let ran = home.run(command);
            assert_eq!(ran.code, 2, "{ran:?}");
            assert!(ran.stderr.contains(&format!("gantry.yaml:{line}: ")), "{line}: {}", ran.stderr);
            assert!(ran.stderr.contains(says), "{says}: {}", ran.stderr);
        }
    }
}

#[test]
fn secrets_in_arguments_are_shown_nowhere() {
    let home =
        with_policies("  - { name: ask, tools: [test__login], when: \"has(args.text)\", decide: ask }\n");
    let server = home.serve_with(&["-v"]);
    let login = json!({ "user": "ada", "password": "hunter2-s3cret" });
    assert_eq!(server.call("test__login", &login).json()["ok"], true);
    // Held, invalid, nested and deferred calls are recorded too.
    let held =
        server.call("test__login", &json!({ "user": "ada", "password": "hunter2-s3cret", "text": "x" }));
    // What waits for a person is what will run, so it has to be there as it was sent, for that person and in the store.
    let (approval, call) = (held.json()["approvalId"].clone(), held.json()["id"].clone());
    let approval = server.get_as_admin(&format!("/api/v1/approvals/{}", approval.as_str().unwrap())).text;
    assert!(approval.contains("hunter2"), "{approval}");
    let cancel = format!("/api/v1/calls/{}/cancel", call.as_str().unwrap());
    assert_eq!(server.post(&cancel, "").status, 200);
    server.call("test__login", &json!({ "user": 1, "password": "hunter2-s3cret" }));
    server.call("test__login", &json!({ "user": 1, "password": ["hunter2-s3cret"] }));
    server.call("test__nested", &json!({ "tool": "test__login", "arguments": login }));
    let deferred = crate::queues::defer(&server, &json!({ "tool": "test__login", "arguments": login }));
    crate::queues::outcome(&server, &deferred);
    let run = server.get("/api/v1/runs").json()["items"][0]["id"].as_str().unwrap().to_owned();
    let shown = [
        server.get_as_admin("/api/v1/audit").text,
        server.get_as_admin("/api/v1/events?follow=false").text,
        server.get(&format!("/api/v1/runs/{run}")).text,
        server.get(&format!("/api/v1/calls/{deferred}")).text,
        home.run(["audit"]).stdout,
        home.run(["events"]).stdout,
        home.run(["runs", &run]).stdout,
    ];
    let (_, said) = server.stop();
    for text in shown.iter().chain([&said]) {
        assert!(!text.contains("hunter2"), "{text}");
    }
    assert!(shown[0].contains(r#"\"password\":\"[redacted]\""#) && shown[0].contains("ada"), "{}", shown[0]);
    assert!(said.contains(r#"    parameters: {"password":"[redacted]","user":"ada"}"#), "{said}");
    // Nor in any file of the data folder but the store, which keeps what waited for a person as it was for a day.
    let mut folders = vec![home.path().join(".gantry")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
                continue;
            }
            let name = entry.file_name().unwrap().to_string_lossy().into_owned();
            if name.starts_with("gantry.db") {
                continue;
            }
            let bytes = std::fs::read(&entry).unwrap();
            assert!(!String::from_utf8_lossy(&bytes).contains("hunter2"), "{}", entry.display());
        }
    }
}
