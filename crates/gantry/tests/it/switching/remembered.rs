//! The active agent is remembered: a restart gives no client back what a switch has taken.

use super::{Stage, faulty, of, two};
use crate::passthrough::{Door, Talk};
use crate::results::mcp_tools;
use gantry_testkit::TestDir;
use serde_json::{Value, json};

/// A home with the agents `a` and `b`.
fn home() -> TestDir {
    TestDir::new().config(&two(&faulty(&["--tool", "of-a"]), &faulty(&["--tool", "of-b"])).to_string())
}

/// The same home with another Gantry in it.
fn restarted(stage: Stage) -> Stage {
    let (code, said) = stage.server.stop();
    assert_eq!(code, 0, "{said}");
    Stage::at(stage.home)
}

#[test]
fn pol_8_the_active_agent_is_active_after_a_restart_with_its_own_servers_only() {
    let stage = Stage::at(home());
    stage.activate("b");
    let stage = restarted(stage);
    assert_eq!(stage.active().as_deref(), Some("b"));
    stage.server.eventually("its tools are there", || stage.tools() == of("sb"));
    assert_eq!(stage.running("of-a"), Vec::<u32>::new());
    assert_eq!(mcp_tools(&stage.server, "/mcp"), of("sb"));
    // After a crash as well.
    stage.activate("a");
    let Stage { server, home } = stage;
    server.kill();
    let stage = Stage::at(home);
    stage.server.eventually("its tools are there", || stage.tools() == of("sa"));
    stage.deactivate("a");
    let stage = restarted(stage);
    assert_eq!(stage.active(), None);
    stage.server.eventually("everything is there", || stage.tools().len() > 2 * of("sa").len());
}

#[test]
fn pol_8_commands_without_a_running_gantry_are_those_of_the_active_agent() {
    let home = home();
    let ran = home.run(["agents", "switch", "a"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("a is active in default with 5 tools"), "{ran:?}");
    assert!(ran.stderr.contains("the next start uses this agent"), "{ran:?}");
    let tools = crate::passthrough::names(&home.run(["tools", "--json"]).json());
    assert_eq!(tools, of("sa"));
    let reply = home.call("sb__pid", &json!({}));
    assert_eq!(reply["error"]["code"], "TOOL_NOT_FOUND", "{reply}");
    assert_eq!(home.call("sa__echo", &json!({ "text": "hi" }))["result"], "hi");
    let mut client = Talk::legacy(Door::Stdio(&home, &[]));
    assert_eq!(client.tools(), of("sa"), "nor does a client that starts Gantry for itself get more");
    drop(client);
    let stage = Stage::at(home);
    assert_eq!(stage.active().as_deref(), Some("a"));
}

/// That callers who name no agent get nothing by any entry point, and an error that says what to do.
#[track_caller]
fn assert_shut(stage: &Stage, agent: &str) {
    let outcome = |message: &Value| {
        let message = message.as_str().unwrap_or_else(|| panic!("no message: {message}"));
        assert!(message.contains(agent) && message.contains("gantry agents switch"), "{message}");
    };
    let call = stage.server.call("sb__pid", &json!({}));
    assert_eq!(
        (call.status, &call.json()["error"]["code"]),
        (503, &json!("UPSTREAM_UNAVAILABLE")),
        "{call:?}"
    );
    outcome(&call.json()["error"]["message"]);
    let list = stage.server.get("/api/v1/tools");
    assert_eq!(list.status, 503, "{list:?}");
    let mut client = Talk::silent(Door::Http(&stage.server, "/mcp"));
    let info = json!({ "name": "talk", "version": "1" });
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
    outcome(&client.ask("initialize", &hello)["error"]["message"]);
    assert!(mcp_tools(&stage.server, "/mcp").is_empty());
    let ran = stage.home.run(["call", "sb__pid", "{}"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("gantry agents switch"), "{ran:?}");
    assert_eq!(stage.server.get("/healthz").status, 200);
}

#[test]
fn pol_8_an_active_agent_that_is_not_configured_any_more_admits_no_client_until_there_is_another() {
    let stage = Stage::at(home());
    stage.activate("a");
    let (_, said) = stage.server.stop();
    assert!(!said.contains("not configured any more"), "{said}");
    let mut config = two(&faulty(&[]), &faulty(&["--tool", "of-b"]));
    config["agents"].as_object_mut().expect("agents").remove("a");
    stage.home.write("gantry.yaml", &config.to_string());
    let stage = Stage::at(stage.home);
    stage.says("it was active when Gantry ran last, and is not configured any more");
    assert_shut(&stage, "a");
    // Who names an agent that is configured is let in as that.
    let reply = stage.call_as("b", "sb__echo", &json!({ "text": "hi" }));
    assert_eq!(reply["result"], "hi", "{reply}");
    assert_eq!(stage.tools_as("b"), of("sb"));
    assert_eq!(mcp_tools(&stage.server, "/mcp/default/agents/b"), of("sb"));
    assert_eq!(stage.server.get("/api/v1/tools?agent=a").status, 503);
    assert_shut(&stage, "a");
    // A restart does not help; a person does.
    let stage = restarted(stage);
    assert_shut(&stage, "a");
    stage.activate("b");
    assert_eq!(stage.tools(), of("sb"));
}

#[test]
fn pol_8_an_active_agent_that_is_gone_can_be_given_up() {
    for by_command in [true, false] {
        let stage = Stage::at(home());
        stage.activate("a");
        stage.server.stop();
        let mut config = two(&faulty(&[]), &faulty(&[]));
        config["agents"].as_object_mut().expect("agents").remove("a");
        stage.home.write("gantry.yaml", &config.to_string());
        let stage = Stage::at(stage.home);
        assert_shut(&stage, "a");
        if by_command {
            let ran = stage.home.run(["agents", "switch", "--none"]);
            assert_eq!(ran.code, 0, "{ran:?}");
        } else {
            stage.deactivate("a");
        }
        assert_eq!(stage.active(), None);
        stage.server.eventually("everything is there", || stage.tools().contains(&"sb__pid".to_owned()));
    }
}

#[test]
fn pol_8_a_damaged_memory_of_the_active_agent_admits_no_client() {
    let stage = Stage::at(home());
    stage.activate("a");
    stage.server.stop();
    let path = ".gantry/active.json";
    assert!(stage.home.read(path).contains("\"a\""), "{}", stage.home.read(path));
    stage.home.write(path, "{\"agent\":");
    let stage = Stage::at(stage.home);
    assert_shut(&stage, "active.json");
    stage.activate("a");
    assert_eq!(stage.tools(), of("sa"));
    let stage = restarted(stage);
    stage.server.eventually("its tools are there", || stage.tools() == of("sa"));
}
