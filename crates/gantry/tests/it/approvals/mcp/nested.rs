//! Calls below calls: what an agent's agent wants to do reaches the person behind the root's client, with the whole path.

use super::{Gate, api, asked, only, text};
use crate::mcp_sdks::{Door, PYTHON, Playing, Sdk, TYPESCRIPT_1, TYPESCRIPT_2};
use crate::passthrough::{Door as Path, Talk};
use gantry_testkit::TestDir;
use serde_json::{Value, json};

/// A Gantry with agents that start agents; what `helper` counts waits for a person.
fn gate(more: &Value) -> Gate {
    let mut config = json!({
        "agents": {
            "lead": { "tools": ["*"] },
            "middle": { "tools": ["spawn_agents", "test__echo"] },
            "helper": { "tools": ["test__count", "test__sleep"] },
        },
        "approvals": { "requiresApprovalTools": ["test__count"], "delivery": "form" },
    });
    for (key, value) in more.as_object().expect("an object") {
        config[key] = value.clone();
    }
    let home = TestDir::with_test_tools().env("TEST_GANTRY_COORDINATION", "1");
    Gate::at(home.config(&config.to_string()))
}

fn spawn(agent: &str, calls: &Value) -> Value {
    json!({ "agent": agent, "calls": calls })
}

/// What `lead` does: have `helper` count.
fn counting() -> Value {
    spawn("helper", &json!([{ "tool": "test__count", "arguments": api::count("a") }]))
}

/// The same through one more agent.
fn deeper() -> Value {
    spawn("middle", &json!([{ "tool": "spawn_agents", "arguments": counting() }]))
}

/// `gantry mcp` as an agent, driven by a client whose person answers like this.
fn begin(gate: &Gate, sdk: &Sdk, options: &[&str], arguments: &Value) -> Playing {
    let step = json!({ "call": { "name": "spawn_agents", "arguments": arguments } });
    sdk.begin(&gate.home, Door::StdioAs("lead"), options, &json!([step]))
}

#[test]
fn apr_9_what_an_agents_agent_wants_is_put_to_the_person_behind_the_roots_client_with_the_whole_path() {
    let clients = [(PYTHON, "legacy"), (PYTHON, "auto"), (TYPESCRIPT_1, "legacy"), (TYPESCRIPT_2, "auto")];
    for (sdk, era) in clients {
        for (arguments, path) in
            [(counting(), vec!["lead", "helper"]), (deeper(), vec!["lead", "middle", "helper"])]
        {
            let gate = gate(&json!({}));
            let seen = begin(&gate, &sdk, &["--era", era, "--elicit", "accept"], &arguments).end();
            let form = asked(only(&seen)).expect("a form");
            let message = form["message"].as_str().expect("a message");
            assert!(
                message.starts_with(&format!("Agent {} wants to run", path.join(" > "))),
                "{era}: {message}"
            );
            assert!(text(only(&seen)).contains("counted"), "{era}: {seen}");
            let item = &gate.requests("COMPLETED_SUCCESS")[0];
            assert_eq!(item["agentPath"], json!(path), "{era}: {item}");
            assert_eq!(
                (&item["decidedBy"], &item["decidedVia"]),
                (&json!("person"), &json!("elicitation")),
                "{item}"
            );
            assert_eq!(gate.counted(), ["a"], "{era}");
        }
    }
}

#[test]
fn apr_9_a_denied_call_of_a_child_is_an_error_for_its_agent_and_the_parent_goes_on() {
    let gate = gate(&json!({}));
    let no = json!({ "decision": "deny", "reason": "no" }).to_string();
    let options = ["--era", "auto", "--elicit", "accept", "--answer", &no];
    let seen = begin(&gate, &PYTHON, &options, &counting()).end();
    let outcome: Value = serde_json::from_str(text(only(&seen))).expect("JSON");
    let reply = &outcome["replies"][0];
    assert_eq!(reply["error"]["code"], "REJECTED_BY_USER", "{outcome}");
    assert!(gate.counted().is_empty());
}

/// The time of the call above stands still while the one below waits for a person, however long that takes.
#[test]
fn apr_9_a_parents_time_limit_does_not_run_while_its_child_waits() {
    let gate = gate(&json!({ "defaults": { "toolTimeout": 1500 } }));
    let options = ["--era", "auto", "--elicit", "accept", "--when", "now"];
    let playing = begin(&gate, &PYTHON, &options, &counting());
    let approval = gate.pending();
    // Another call comes to its limit meanwhile, which shows that there is one.
    let slow = gate.server.call("test__sleep", &json!({ "ms": 60_000 })).json();
    assert_eq!(slow["error"]["code"], "TIMEOUT", "{slow}");
    assert_eq!(gate.item(&approval)["state"], "PENDING_APPROVAL");
    gate.home.write("now", "");
    let seen = playing.end();
    assert!(text(only(&seen)).contains("counted"), "{seen}");
    assert_eq!(gate.counted(), ["a"]);
}

#[test]
fn apr_9_a_child_ends_with_its_parent() {
    let gate = gate(&json!({}));
    for modern in [false, true] {
        let mut client = if modern {
            Talk::modern_with(Path::Stdio(&gate.home, &["--agent", "lead"]), &json!({}))
        } else {
            Talk::legacy_with(Path::Stdio(&gate.home, &["--agent", "lead"]), &json!({}))
        };
        let call = client.begin_call("spawn_agents", &counting());
        let approval = gate.pending();
        client.tell("notifications/cancelled", &json!({ "requestId": call }));
        gate.becomes(&approval, "CANCELLED_BY_SYSTEM");
        let late = api::decide(&gate.server.admin(), &approval, &json!({ "approved": true }));
        assert_eq!(late.status, 409, "{late:?}");
    }
    assert!(gate.counted().is_empty());
}

#[test]
fn apr_9_after_a_crash_a_waiting_child_is_cancelled_and_what_its_parent_did_is_unknown() {
    let gate = gate(&json!({}));
    let options = ["--era", "auto", "--elicit", "accept", "--when", "never"];
    let playing = begin(&gate, &PYTHON, &options, &counting());
    let approval = gate.pending();
    let Gate { server, home } = gate;
    server.kill();
    playing.kill();
    let gate = Gate::at(home);
    let item = gate.item(&approval);
    assert_eq!(item["state"], "CANCELLED_BY_SYSTEM", "{item}");
    let late = api::decide(&gate.server.admin(), &approval, &json!({ "approved": true }));
    assert_eq!(late.status, 409, "{late:?}");
    let rows = gate.home.run(["audit", "--json"]).json();
    let states: Vec<(&Value, &Value)> =
        rows.as_array().expect("rows").iter().map(|row| (&row["tool"], &row["state"])).collect();
    let (child, parent) = (json!("test__count"), json!("spawn_agents"));
    let (cancelled, unknown) = (json!("CANCELLED_BY_SYSTEM"), json!("OUTCOME_UNKNOWN"));
    assert!(states.contains(&(&child, &cancelled)) && states.contains(&(&parent, &unknown)), "{rows}");
    assert!(gate.counted().is_empty());
}

/// A child that another person approves goes on with its parent, which has its result.
#[test]
fn apr_9_a_child_is_decided_by_any_door() {
    let gate = gate(&json!({}));
    let playing = begin(&gate, &TYPESCRIPT_1, &["--era", "legacy"], &counting());
    let approval = gate.approve();
    let seen = playing.end();
    assert!(text(only(&seen)).contains("counted"), "{seen}");
    assert_eq!(gate.item(&approval)["agentPath"], json!(["lead", "helper"]));
    assert_eq!(gate.counted(), ["a"]);
}
