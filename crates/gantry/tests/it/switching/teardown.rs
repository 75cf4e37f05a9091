//! What the agent before had is gone when the switch is over: processes, connections, tools.

use super::{Stage, assert_unknown, entry, faulty, of, remote, two};
use crate::passthrough::{Door, Talk};
use gantry_testkit::faulty::{Faulty, Kind};
use gantry_testkit::{TestDir, process, real_servers};
use http::Method;
use serde_json::{Value, json};
use std::collections::HashSet;

#[test]
fn pol_8_the_processes_of_the_agent_before_are_gone_when_the_switch_is_over() {
    let home = TestDir::new();
    let marker = home.path().join("grandchild").to_str().expect("UTF-8").to_owned();
    let config = two(&faulty(&["--spawn-grandchild", &marker]), &faulty(&[]));
    let stage = Stage::at(home.config(&config.to_string()));
    stage.activate("a");
    let own = stage.pid("sa__pid");
    let before: HashSet<u32> = process::descendants(stage.server.pid()).into_iter().collect();
    assert!(before.contains(&own) && stage.running(&marker).len() >= 2, "{before:?}");
    stage.activate("b");
    let left: Vec<u32> = before.iter().copied().filter(|pid| process::is_running(*pid)).collect();
    assert_eq!(left, Vec::<u32>::new(), "nothing of a is left");
    assert_eq!(stage.running(&marker), Vec::<u32>::new(), "nor what its server has started");
    assert!(process::is_running(stage.pid("sb__pid")));
}

#[test]
fn pol_8_a_server_that_is_just_being_started_is_gone_when_the_switch_is_over() {
    // No agent is active at first, so the server starts with Gantry, and the switch meets it on its way.
    for _ in 0..8 {
        let stage = Stage::of(&json!({
            "mcpServers": { "sa": faulty(&["--start-after", "700"]) },
            "agents": { "b": { "tools": ["read_file"] } },
        }));
        stage.activate("b");
        assert_eq!(process::descendants(stage.server.pid()), Vec::<u32>::new());
    }
}

#[test]
fn pol_8_real_servers_of_the_agent_before_are_gone_when_the_switch_is_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let servers = ["everything", "memory", "time"].map(|id| real_servers::find(id).prepare(folder.path()));
    let entries = servers.iter().map(|ready| (ready.id.to_owned(), entry(ready)));
    let stage = Stage::of(&json!({
        "mcpServers": Value::Object(entries.collect()),
        "agents": { "a": { "tools": ["everything__*", "memory__*", "time__*"] }, "b": { "tools": ["read_file"] } },
    }));
    stage.activate("a");
    for ready in &servers {
        let tool = format!("{}__{}", ready.id, ready.tool);
        stage.server.eventually("it answers", || {
            let reply = stage.call(&tool, &ready.arguments);
            reply["result"].to_string().contains(ready.answer)
        });
    }
    let before = process::descendants(stage.server.pid());
    assert!(before.len() >= servers.len(), "{before:?}");
    stage.activate("b");
    assert_eq!(process::descendants(stage.server.pid()), Vec::<u32>::new());
    let left: Vec<u32> = before.into_iter().filter(|pid| process::is_running(*pid)).collect();
    assert_eq!(left, Vec::<u32>::new());
    assert_eq!(stage.tools(), ["read_file"]);
}

#[test]
fn pol_8_the_connections_of_the_agent_before_are_closed_when_the_switch_is_over() {
    for (word, kind) in
        [("tcp", Kind::Tcp), ("websocket", Kind::Ws), ("http", Kind::Http), ("sse", Kind::Sse)]
    {
        let (own, other) = (Faulty::start(kind, &[]), Faulty::start(kind, &[]));
        let stage = Stage::of(&two(&remote(word, &own.url), &remote(word, &other.url)));
        stage.activate("a");
        assert_eq!(stage.pid("sa__pid"), own.pid());
        assert!(process::connections(own.address.port()) >= 1, "{word}");
        let idle = || process::connections(other.address.port()) == 0;
        stage.server.eventually(&format!("{word}: b's server is not connected"), idle);
        stage.activate("b");
        // What is closed has to arrive on the other side.
        let closed = || process::connections(own.address.port()) == 0;
        stage.server.eventually(&format!("{word}: the server sees its connection end"), closed);
        assert_eq!(stage.pid("sb__pid"), other.pid(), "{word}");
        assert!(process::is_running(own.pid()), "{word}: what Gantry has not started it does not end");
        let reply = stage.call("sa__pid", &json!({}));
        assert_unknown(&reply, "sa__pid");
        assert_eq!(process::connections(own.address.port()), 0, "{word}: and it is not asked again");
    }
}

#[test]
fn pol_8_a_tool_of_the_agent_before_is_answered_exactly_like_one_that_never_was() {
    let stage = Stage::two();
    stage.activate("b");
    let known = ["sa__pid", "sa__echo", "@sa/pid"];
    for tool in known {
        let strange = tool.replace("sa", "sx");
        let ask = |tool: &str| {
            let mut reply = stage.call(tool, &json!({}));
            let record = stage.record(&reply);
            assert_eq!((&record["state"], &record["agent"]), (&json!("REFUSED"), &json!("b")), "{record}");
            assert_unknown(&reply, tool);
            reply["id"] = Value::Null;
            reply["latencyMs"] = Value::Null;
            reply.to_string().replace("sx", "sa")
        };
        assert_eq!(ask(tool), ask(&strange));
        let doctor = |tool: &str| stage.home.run(["doctor", tool]).code;
        assert_eq!(doctor(tool), doctor(&strange));
    }
    let mut client = Talk::legacy(Door::Http(&stage.server, "/mcp"));
    let mut ask = |method: &str, params: &Value| {
        let alike = [params.to_string(), params.to_string().replace("sa", "sx")].map(|params| {
            let answer = client.ask(method, &serde_json::from_str(&params).expect("JSON"));
            assert!(answer["error"]["code"].is_i64(), "{method} {params}: {answer}");
            answer["error"].to_string().replace("sx", "sa")
        });
        assert_eq!(alike[0], alike[1], "{method}");
    };
    ask("tools/call", &json!({ "name": "sa__pid", "arguments": {} }));
    ask("resources/read", &json!({ "uri": "gantry:sa/faulty://text/one" }));
    ask("prompts/get", &json!({ "name": "sa__plain" }));
}

#[test]
fn pol_8_the_server_of_the_agent_before_is_not_listed_and_cannot_be_restarted() {
    let stage = Stage::of(&two(&faulty(&["--tool", "only-a"]), &faulty(&[])));
    stage.activate("a");
    let servers = || {
        let listed = stage.server.get_as_admin("/api/v1/servers").json();
        let each = listed["items"].as_array().expect("servers").iter();
        each.map(|server| format!("{} of {}", server["id"], server["agent"])).collect::<Vec<_>>()
    };
    assert_eq!(servers(), [r#""sa" of "a""#]);
    stage.activate("b");
    assert_eq!(servers(), [r#""sb" of "b""#]);
    assert_eq!(stage.server.get_as_admin("/api/v1/servers/sa").status, 404);
    assert_eq!(stage.admin(Method::POST, "/api/v1/servers/sa/restart").status, 404);
    assert_eq!(stage.running("only-a"), Vec::<u32>::new());
    let metrics = stage.server.get_as_admin("/metrics").text;
    assert!(!metrics.contains("server=\"sa\"} 1"), "{metrics}");
}

#[test]
fn pol_8_the_events_of_a_teardown_say_what_was_torn_down() {
    let servers = json!({ "s1": faulty(&[]), "s2": faulty(&[]), "s3": faulty(&[]) });
    let stage = Stage::of(&json!({
        "mcpServers": servers,
        "agents": { "a": { "tools": ["s1__*", "s2__*"] }, "b": { "tools": of("s3") } },
    }));
    stage.activate("a");
    let _clients = [(), ()].map(|()| Talk::legacy(Door::Http(&stage.server, "/mcp")));
    stage.call("s1__pid", &json!({}));
    stage.activate("b");
    let steps = stage.last_steps();
    let gone = steps.iter().find(|step| step["type"] == "teardown_finished").expect("a teardown");
    // Two clients, and the session that the calls over HTTP share.
    assert_eq!((&gone["servers"], &gone["sessions"]), (&json!(2), &json!(3)), "{gone}");
    let closed = stage.events().iter().filter(|event| event["type"] == "session_closed").count();
    assert_eq!(closed, 3);
}
