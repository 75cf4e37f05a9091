//! Rules: policies, approvals, toolsets and refused variables hold for programs as for any tool.

use super::site::{Site, says};
use crate::pipeline::{post, post_as_person};
use gantry_testkit::TestDir;
use serde_json::{Value, json};

fn touch() -> Value {
    json!({ "language": "bash", "code": "touch made" })
}

#[test]
fn blt_2_policies_deny_and_ask_before_anything_runs() {
    let site = Site::one(
        r#"
policies:
  - { name: no-rm, tools: [run_code], when: "args.code.contains('rm -rf')", decide: deny, reason: too dangerous }
  - { name: ask-touch, tools: [run_code], when: "args.code.startsWith('touch')", decide: ask, reason: it touches }
"#,
    );
    let denied = site.reply("bash", "echo > made; rm -rf x", &json!({}));
    assert_eq!(
        (&denied["error"]["code"], &denied["state"]),
        (&json!("PERMISSION_DENIED"), &json!("REFUSED")),
        "{denied}"
    );
    says(&denied["error"], &["no-rm", "too dangerous"]);
    let held = site.server().call("run_code", &touch());
    assert_eq!((held.status, &held.json()["error"]["code"]), (202, &json!("APPROVAL_REQUIRED")), "{held:?}");
    site.has_files(&[]);
    let call = json!({ "tool": "run_code", "arguments": touch(), "approve": true });
    assert_eq!(post(site.server(), &call).status, 403, "only a person approves");
    site.has_files(&[]);
    let approved = post_as_person(site.server(), &call).json();
    assert_eq!((&approved["ok"], &approved["result"]["exitCode"]), (&json!(true), &json!(0)), "{approved}");
    site.has_files(&["made"]);
    assert_eq!(site.code("bash", "echo free")["stdout"], "free\n");
    site.settled();
}

#[test]
fn blt_2_the_approvals_section_and_agents_govern_it_too() {
    let home = TestDir::new().config(
        "approvals: { requiresApprovalTools: [run_code] }\nagents: { reader: { tools: [read_file] }, coder: { tools: [run_code] } }\n",
    );
    let server = home.serve();
    let call = |agent: Value| {
        post(&server, &json!({ "tool": "run_code", "arguments": touch(), "agent": agent })).json()["error"]["code"].take()
    };
    assert_eq!(call(Value::Null), "APPROVAL_REQUIRED");
    assert_eq!(call(json!("reader")), "TOOL_NOT_FOUND");
    assert_eq!(call(json!("coder")), "APPROVAL_REQUIRED");
    assert!(!home.path().join("made").exists());
}

#[test]
fn blt_2_a_tool_that_is_denied_to_all_agents_is_not_there() {
    let home = TestDir::new().config("tools: { workspace: { toolsDenied: [run_code] } }\n");
    let reply = home.call_yes("run_code", &touch());
    assert_eq!(reply["error"]["code"], "TOOL_NOT_FOUND", "{reply}");
    assert!(!home.path().join("made").exists());
}

#[test]
fn blt_2_variables_that_choose_what_a_program_loads_are_refused_and_nothing_runs() {
    let site = Site::one("");
    site.put("evil.sh", "touch /workspace/loaded\n");
    for name in [
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "LD_AUDIT",
        "ld_preload",
        "PYTHONSTARTUP",
        "PYTHONHOME",
        "PYTHONINSPECT",
        "BASH_ENV",
        "ENV",
        "SHELLOPTS",
        "BASHOPTS",
        "BASH_FUNC_ls",
        "IFS",
        "PATH",
        "HOME",
        "GIT_SSH_COMMAND",
        "GIT_EXEC_PATH",
        "GIT_CONFIG_COUNT",
        "GIT_DIR",
    ] {
        let reply = site.reply("bash", "touch made", &json!({ "env": { name: "/workspace/evil.sh" } }));
        assert_eq!(reply["error"]["code"], "PERMISSION_DENIED", "{name}: {reply}");
        says(&reply["error"], &[name, "in the code itself"]);
    }
    site.has_files(&["evil.sh"]);
    let result = site.code_with(
        "bash",
        "echo $DATABASE_URL $LDAP",
        &json!({ "env": { "DATABASE_URL": "x", "LDAP": "y" } }),
    );
    assert_eq!(result["stdout"], "x y\n", "{result}");
    site.settled();
}

#[test]
fn blt_2_a_shorter_limit_of_the_call_itself_ends_the_run_too() {
    let site = Site::one("");
    let arguments = site.arguments("bash", "touch begun; sleep 600", &json!({ "timeout": 600 }));
    let reply =
        post(site.server(), &json!({ "tool": "run_code", "arguments": arguments, "timeoutMs": 1500 })).json();
    assert_eq!(reply["error"]["code"], "TIMEOUT", "{reply}");
    site.nothing_runs();
    site.settled();
}

#[test]
fn blt_2_the_same_key_gives_the_first_result_and_runs_nothing_again() {
    let site = Site::one("");
    let arguments = site.arguments("bash", "echo once >> made; wc -l < made", &json!({}));
    let call = json!({ "tool": "run_code", "arguments": arguments, "idempotencyKey": "k" });
    for _ in 0..2 {
        assert_eq!(post(site.server(), &call).json()["result"]["stdout"], "1\n");
    }
    assert_eq!(site.home.read("ws/made"), "once\n");
}
