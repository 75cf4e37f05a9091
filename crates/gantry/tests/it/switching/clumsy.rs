//! Servers that make a switch difficult: they do not go, do not come, or break while it happens.

use super::{Stage, faulty, of, remote, two, types};
use gantry_testkit::faulty::{Faulty, Kind};
use gantry_testkit::process;
use serde_json::{Value, json};

/// A server that a shell runs which ignores all polite requests, and stays when its server has ended.
fn stubborn(mark: &str) -> Value {
    let script = "trap '' TERM HUP INT; \"$FAULTY\"; while :; do sleep 600; done";
    json!({ "command": "sh", "args": ["-c", script, mark], "env": { "FAULTY": Faulty::program() } })
}

#[test]
fn pol_8_a_server_that_does_not_go_is_killed_with_all_that_it_started() {
    let stage = Stage::of(&two(&stubborn("stubborn-of-a"), &faulty(&[])));
    stage.activate("a");
    assert!(stage.call("sa__pid", &json!({}))["ok"].as_bool().is_some_and(|ok| ok));
    let before = process::descendants(stage.server.pid());
    assert!(before.len() >= 2, "{before:?}");
    stage.activate("b");
    let left: Vec<u32> = before.into_iter().filter(|pid| process::is_running(*pid)).collect();
    assert_eq!(left, Vec::<u32>::new());
    assert_eq!(stage.tools(), of("sb"));
}

#[test]
fn pol_8_a_server_that_does_not_start_keeps_the_new_agent_from_nothing_else() {
    for bad in
        [faulty(&["--exit-on-start"]), remote("tcp", "tcp://127.0.0.1:1"), json!({ "command": "/no/such" })]
    {
        let stage = Stage::of(&json!({
            "mcpServers": { "sa": faulty(&[]), "good": faulty(&[]), "bad": bad },
            "agents": { "a": { "tools": of("sa") }, "b": { "tools": ["good__pid", "bad__pid"] } },
        }));
        stage.activate("a");
        let switched = stage.activate("b");
        assert_eq!(switched["tools"], 1, "{switched}");
        assert_eq!(stage.tools(), ["good__pid"]);
        assert!(process::is_running(stage.pid("good__pid")));
        // It is marked, in the log and where people look.
        let status = stage.server.get_as_admin("/api/v1/servers/bad").json();
        assert_eq!((&status["light"], &status["agent"]), (&json!("red"), &json!("b")), "{status}");
        stage.says("server_down server=bad ");
        assert_eq!(types(&stage.last_steps()).last(), Some(&"agent_switch_finished"));
        // And it can be left again like any other.
        stage.activate("a");
        assert_eq!(stage.tools(), of("sa"));
        assert_eq!(stage.server.get_as_admin("/api/v1/servers/bad").status, 404);
    }
}

#[test]
fn pol_8_an_agent_can_be_left_while_its_server_is_still_starting() {
    let stage = Stage::of(&two(&faulty(&["--never-start"]), &faulty(&[])));
    stage.activate("b");
    assert_eq!(stage.running("--never-start"), Vec::<u32>::new());
    let slow = {
        let (admin, path) = (stage.server.admin(), "/api/v1/agents/a/activate");
        std::thread::spawn(move || {
            gantry_testkit::server::send(&admin, http::Method::POST, path, &[], "").json()
        })
    };
    stage.server.eventually("its server has been started", || !stage.running("--never-start").is_empty());
    let switched = stage.activate("b");
    assert_eq!((&switched["from"], &switched["to"]), (&json!("a"), &json!("b")), "{switched}");
    assert_eq!(slow.join().expect("a switch without complaints")["to"], "a");
    assert_eq!(stage.tools(), of("sb"));
    assert_eq!(stage.running("--never-start"), Vec::<u32>::new());
}

#[test]
fn pol_8_a_server_that_dies_during_the_switch_leaves_nothing_behind() {
    let socket = Faulty::start(Kind::Ws, &[]);
    let stage = Stage::of(&json!({
        "mcpServers": { "sa": faulty(&[]), "wa": remote("websocket", &socket.url), "sb": faulty(&[]) },
        "agents": { "a": { "tools": ["sa__sleep", "sa__die", "wa__sleep", "wa__hang_up"] }, "b": { "tools": of("sb") } },
    }));
    stage.activate("a");
    let calls = ["sa", "wa"]
        .map(|id| stage.begin(&json!({ "tool": format!("{id}__sleep"), "arguments": { "ms": 600_000 } })));
    let dying = ["sa__die", "wa__hang_up"].map(|tool| stage.begin(&json!({ "tool": tool, "arguments": {} })));
    let switched = stage.activate("b");
    for call in calls.into_iter().chain(dying) {
        let reply = call.join().expect("a client without complaints").json();
        assert_eq!(reply["ok"], false, "{reply}");
    }
    assert_eq!(switched["to"], "b");
    assert_eq!(stage.tools(), of("sb"));
    stage.server.eventually("the connection is gone", || process::connections(socket.address.port()) == 0);
    // What was torn down is not started again while it was being started again.
    let servers = stage.server.get_as_admin("/api/v1/servers").json();
    assert_eq!(servers["items"].as_array().map(Vec::len), Some(1), "{servers}");
    let own = stage.pid("sb__pid");
    let others = stage.running(&Faulty::program().to_string_lossy());
    assert!(others.contains(&own), "{others:?}");
    assert_eq!(process::connections(socket.address.port()), 0);
}

#[test]
fn pol_8_a_server_that_floods_and_never_listens_is_torn_down_as_well() {
    let stage = Stage::of(&json!({
        "mcpServers": { "sa": faulty(&["--stderr-flood"]), "sb": faulty(&[]) },
        "agents": { "a": { "tools": ["sa__chatter", "sa__pid"] }, "b": { "tools": of("sb") } },
    }));
    stage.activate("a");
    stage.server.eventually("it has started", || stage.tools().len() == 2);
    let process = stage.pid("sa__pid");
    let calling = stage.begin(&json!({ "tool": "sa__chatter", "arguments": {} }));
    stage.activate("b");
    assert_eq!(calling.join().expect("a client without complaints").json()["ok"], false);
    assert!(!process::is_running(process));
    assert_eq!(stage.tools(), of("sb"));
}
