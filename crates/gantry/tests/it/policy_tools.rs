//! `gantry policy`: rules against their examples, against one call, and against what is on record.

use crate::pipeline::{file, lines};
use gantry_testkit::{CommandOutput, TestDir};
use serde_json::{Value, json};

#[track_caller]
fn run(home: &TestDir, args: &[&str]) -> CommandOutput {
    let ran = home.run([["policy"].as_slice(), args].concat());
    assert!((0..=3).contains(&ran.code) && !ran.stderr.contains("panicked"), "{ran:?}");
    ran
}

const RULES: &str = r#"
policies:
  - name: no-prod
    tools: ["test__*"]
    when: "has(args.text) && args.text.startsWith('prod')"
    decide: deny
    examples: { deny: [{ text: prod-1 }], pass: [{ text: dev }, {}] }
  - { name: ask-counts, tools: [test__count], decide: ask, reason: counting costs, approvers: [ann, person] }
"#;

#[test]
fn apr_11_rules_are_tested_against_their_examples() {
    let home = TestDir::with_test_tools().config(RULES);
    let ran = run(&home, &["test"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let rows: Vec<Vec<&str>> = ran.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["RULE", "EXPECTED", "GOT", "EXAMPLE"]);
    assert_eq!(rows[1], ["ok", "no-prod", "deny", "deny", r#"{"text":"prod-1"}"#]);
    assert_eq!(rows[2], ["ok", "no-prod", "pass", "pass", r#"{"text":"dev"}"#]);
    assert_eq!(rows.len(), 4);
    assert!(ran.stderr.contains("All hold: 3 examples of 1 rule."), "{ran:?}");
    assert!(ran.stderr.contains("Without an example: 1 rule."), "{ran:?}");
    assert!(!home.path().join(".gantry").exists(), "nothing is opened for it");
}

#[test]
fn apr_11_an_example_that_fails_is_named_with_its_line_also_where_the_file_is_refused_for_it() {
    let wrong = "policies:\n  - name: no-prod\n    tools: ['*']\n    when: args.env == 'prod'\n    decide: deny\n    \
                 examples:\n      deny: [{ env: prod }]\n      ask: [{ env: prod }]\n      pass:\n        - { env: prod }\n        - {}\n";
    let home = TestDir::with_test_tools().config(&format!(
        "{wrong}projects:\n  other:\n    workspace: .\n    policies: [{{ name: q, tools: [a], decide: ask, examples: {{ ask: [{{}}] }} }}]\n"
    ));
    assert_eq!(home.run(["tools"]).code, 2, "the file is refused");
    let ran = run(&home, &["test", "--json"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let found = ran.json();
    let rows: Vec<_> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let text = |key: &str| row[key].as_str().unwrap().to_owned();
            (text("project"), text("rule"), text("expected"), text("got"), row["ok"] == true, text("at"))
        })
        .collect();
    let row = |project: &str, rule: &str, expected: &str, got: &str, ok, line: u32| {
        (
            project.to_owned(),
            rule.to_owned(),
            expected.to_owned(),
            got.to_owned(),
            ok,
            format!("gantry.yaml:{line}"),
        )
    };
    assert_eq!(
        rows,
        [
            row("default", "no-prod", "deny", "deny", true, 7),
            row("default", "no-prod", "ask", "deny", false, 8),
            row("default", "no-prod", "pass", "deny", false, 10),
            row("default", "no-prod", "pass", "cannot be judged", false, 11),
            row("other", "q", "ask", "ask", true, 15),
        ]
    );
    assert!(found[3]["reason"].as_str().unwrap().contains("has("), "{found}");
    let ran = run(&home, &["test"]);
    assert!(ran.code == 1 && ran.stderr.contains("3 of 5 examples fail."), "{ran:?}");
    assert!(ran.stdout.contains("└ gantry.yaml:10"), "{ran:?}");
    assert_eq!(run(&home, &["test", "--project", "other"]).code, 0);
}

#[test]
fn apr_11_what_else_is_wrong_with_a_configuration_is_wrong_usage() {
    let home = TestDir::new().config("policies: [{ name: p, tools: [a], decide: deny, when: 'args.' }]\n");
    let ran = run(&home, &["test"]);
    assert!(ran.code == 2 && ran.stderr.contains("gantry.yaml:1: policy p: the condition"), "{ran:?}");
    let home = TestDir::new().config("approvals: { toolRules: { a: sometimes } }\n");
    let ran = run(&home, &["test"]);
    assert!(ran.code == 2 && ran.stderr.contains("approvals.toolRules.a: the condition"), "{ran:?}");
    let ran = run(&TestDir::new(), &["test"]);
    assert!(ran.code == 0 && ran.stderr.contains("no policies"), "{ran:?}");
    assert_eq!(run(&TestDir::new(), &["test", "--project", "nope"]).code, 2);
    assert_eq!(run(&TestDir::new(), &["test", "--agent", "a"]).code, 2, "an agent is for a call");
    assert_eq!(run(&TestDir::new(), &[]).code, 2);
}

#[test]
fn apr_11_one_call_is_judged_and_nothing_is_run() {
    let home = TestDir::with_test_tools().config(&format!(
        "{RULES}approvals: {{ toolSpecificDelays: {{ test__count: 500 }}, estimatedCosts: {{ test__count: 7 }} }}\nagents: {{ a: {{ tools: [test__echo] }} }}\n"
    ));
    let count = json!({ "file": file(&home, "c"), "text": "x" }).to_string();
    let judge = |args: &[&str]| -> (i32, Value) {
        let ran = run(&home, &[&["test"], args, &["--json"]].concat());
        (ran.code, ran.json())
    };
    let (code, found) = judge(&["test__echo", r#"{"text":"dev"}"#]);
    assert_eq!((code, &found["outcome"], &found["tool"]), (0, &json!("allowed"), &json!("test__echo")));
    let (code, found) = judge(&["test__echo", r#"{"text":"prod-7"}"#]);
    assert_eq!(
        (code, &found["outcome"], &found["error"]["details"]["policy"]),
        (1, &json!("denied"), &json!("no-prod"))
    );
    let (code, found) = judge(&["test__count", &count]);
    assert_eq!(
        (code, &found["outcome"], &found["rules"]),
        (1, &json!("held"), &json!(["policy ask-counts"]))
    );
    assert_eq!(
        (&found["approvers"], &found["delayMs"], &found["estimatedCost"]),
        (&json!([["ann", "person"]]), &json!(500), &json!(7))
    );
    let (code, found) = judge(&["test__sleep", r#"{"ms":"x"}"#]);
    assert_eq!((code, &found["error"]["code"]), (1, &json!("INVALID_ARGUMENTS")));
    let (code, found) = judge(&["test__count", &count, "--agent", "a"]);
    assert_eq!((code, &found["error"]["code"]), (1, &json!("TOOL_NOT_FOUND")), "{found}");
    let ran = run(&home, &["test", "test__count", &count]);
    assert_eq!(
        ran.stdout,
        "test__count would need an approval\n  - by policy ask-counts\n  - because counting costs\n  - ann or person may \
         decide\n  - it would wait 500 ms before it runs\n  - its estimated cost is 7\n"
    );
    assert_eq!(lines(&home, "c"), 0);
    assert_eq!(home.run(["audit", "--json"]).json(), json!([]), "and nothing is on record");
}

#[test]
fn apr_11_a_tools_own_rule_is_asked_about_the_world_as_it_is() {
    let home = TestDir::new();
    let write = r#"{"path":"a.txt","content":"new"}"#;
    assert_eq!(run(&home, &["test", "write_file", write]).code, 0);
    home.write("a.txt", "old");
    let found = run(&home, &["test", "write_file", write, "--json"]).json();
    assert_eq!((&found["outcome"], &found["rules"]), (&json!("held"), &json!(["the tool's own rule"])));
    assert_eq!(home.read("a.txt"), "old");
}

#[test]
fn apr_11_one_call_is_judged_by_the_server_that_runs_for_the_given_caller() {
    let home = TestDir::with_test_tools()
        .config("policies: [{ name: p, tools: [test__noop], when: \"role != 'admin' && principal != 'ann'\", decide: deny }]\n");
    let server = home.serve();
    let code = |args: &[&str]| run(&home, &[&["test", "test__noop"], args].concat()).code;
    assert_eq!((code(&[]), code(&["--principal", "ann"]), code(&["--role", "admin"])), (1, 0, 0));
    let answer = server.post("/api/v1/policy/test", r#"{"tool":"test__noop"}"#);
    assert_eq!(answer.status, 403, "it says what others may do");
}

/// Makes calls of every sort, and returns the home.
fn with_history() -> TestDir {
    let home = TestDir::with_test_tools().config(
        "agents: { a: {} }\npolicies:\n  - { name: old-ask, tools: [test__count], decide: ask }\n  - { name: old-deny, tools: [test__tick], decide: deny }\n",
    );
    let text = |text: &str| json!({ "text": text });
    home.call("test__echo", &text("prod-1"));
    home.call("test__echo", &text("dev"));
    home.run(["call", "test__echo", r#"{"text":"prod-2"}"#, "--agent", "a"]);
    home.call_yes("test__count", &json!({ "file": file(&home, "c"), "text": "x" }));
    home.call("test__tick", &json!({ "file": file(&home, "t"), "ms": 0 }));
    home.call("test__login", &json!({ "user": "u", "password": "hunter2" }));
    home.call("test__echo", &json!({ "text": "long".repeat(2000) }));
    home.call("test__echo", &json!({ "text": 5 }));
    home.call("no_such_tool", &json!({}));
    home
}

/// The calls that differ, the oldest first: tool, agent, what it was, what it would be, by what.
fn differing(found: &Value) -> Vec<[String; 5]> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let row = |item: &Value| {
        let [tool, agent, was, now] = ["tool", "agent", "was", "now"].map(|key| text(&item[key]));
        [tool, agent, was, now, text(&item["rules"][0])]
    };
    found["items"].as_array().expect("a list").iter().rev().map(row).collect()
}

#[test]
fn apr_11_replay_says_what_a_changed_policy_would_have_done() {
    let home = with_history();
    let same = run(&home, &["replay", "--json"]).json();
    assert_eq!(
        (&same["held"], &same["denied"], &same["letThrough"], &same["items"]),
        (&json!(0), &json!(0), &json!(0), &json!([]))
    );
    assert_eq!(
        (&same["calls"], &same["undecidable"]),
        (&json!(7), &json!({})),
        "those that no policy had a say about do not count"
    );
    home.write(
        "proposed.yaml",
        r#"
policies:
  - { name: no-prod, tools: [test__echo], when: "args.text.startsWith('prod')", decide: deny }
  - { name: logins, tools: [test__login], when: "args.user == 'u' && args.password != ''", decide: ask }
  - { name: ticks, tools: [test__tick], decide: ask }
"#,
    );
    let ran = run(&home, &["replay", "--under", "proposed.yaml", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let found = ran.json();
    assert_eq!(
        differing(&found),
        [
            ["test__echo", "", "ran", "denied", "policy no-prod"],
            ["test__echo", "a", "ran", "denied", "policy no-prod"],
            ["test__count", "", "approved", "let through", ""],
            ["test__tick", "", "denied", "held", "policy ticks"],
        ]
    );
    assert_eq!(found["undecidable"], json!({ "arguments were cut or masked in the ledger": 2 }));
    let ran = run(&home, &["replay", "--under", "proposed.yaml"]);
    let last = ran.stdout.lines().last().unwrap();
    assert_eq!(
        last,
        "1 of 7 calls would now be held, 2 denied, 1 let through; 2 cannot be predicted (arguments were cut or masked in the ledger)"
    );
    assert!(ran.stdout.starts_with("ID") && ran.stdout.contains("held by policy ticks"), "{ran:?}");
    assert!(!ran.stdout.contains("hunter2"), "{ran:?}");
    let ran = run(&home, &["replay", "--under", "proposed.yaml", "--limit", "1"]);
    assert!(ran.stderr.contains("3 more differ") && ran.stdout.lines().count() == 3, "{ran:?}");
}

#[test]
fn apr_11_replay_looks_at_what_it_is_asked_for() {
    let home = with_history();
    home.write("all.yaml", "approvals: { requiresApprovalTools: all }\n");
    let count = |args: &[&str]| {
        let found = run(&home, &[&["replay", "--under", "all.yaml", "--json"], args].concat()).json();
        (found["calls"].as_u64().unwrap(), found["held"].as_u64().unwrap())
    };
    assert_eq!(count(&[]), (7, 6), "what a person approved is held again");
    assert_eq!(count(&["--tool", "test__e*"]), (4, 4));
    assert_eq!(count(&["--tool", "@test/login"]), (1, 1));
    assert_eq!(count(&["--since", "1h"]), (7, 6));
    assert_eq!(count(&["--until", "1h"]), (0, 0));
    assert_eq!(count(&["--project", "default"]), (7, 6));
    assert!(run(&home, &["replay", "--until", "1h"]).stderr.contains("No recorded call in "));
    assert_eq!(run(&home, &["replay", "--since", "yesterday"]).code, 2);
    assert_eq!(run(&home, &["replay", "--under", "none.yaml"]).code, 2);
    assert_eq!(
        run(&home, &["replay", "--project", "nope"]).code,
        0,
        "a project that is gone may be on record"
    );
}

#[test]
fn apr_11_replay_works_while_a_server_runs_and_judges_what_is_on_the_disk() {
    let home = with_history();
    let server = home.serve();
    home.write("all.yaml", "approvals: { toolRules: { 'test__*': never, test__echo: always } }\n");
    let found = run(&home, &["replay", "--under", "all.yaml", "--json"]).json();
    assert_eq!(differing(&found).iter().filter(|row| row[4] == "toolRules").count(), 4);
    drop(server);
}

#[test]
fn apr_11_own_rules_that_look_at_files_are_taken_to_say_what_they_said() {
    let home = TestDir::new();
    let write = json!({ "path": "a.txt", "content": "1" });
    home.call("write_file", &write);
    home.call_yes("write_file", &json!({ "path": "a.txt", "content": "2" }));
    home.call("list_directory", &json!({ "path": "." }));
    let found = run(&home, &["replay", "--json"]).json();
    assert_eq!((&found["calls"], &found["items"]), (&json!(3), &json!([])));
    assert_eq!(found["undecidable"], json!({ "the tool's own rule looks at the files": 1 }));
    home.write("lifted.yaml", "approvals: { toolRules: { write_file: never } }\n");
    let found = run(&home, &["replay", "--under", "lifted.yaml", "--json"]).json();
    assert_eq!(differing(&found), [["write_file", "", "approved", "let through", ""]]);
}
