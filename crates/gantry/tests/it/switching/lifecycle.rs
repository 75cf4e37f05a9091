//! The life of an agent's servers: spawned or connected when the agent becomes active, watched, and gone with it.

use super::{Stage, faulty, of, remote, two};
use gantry_testkit::faulty::{Faulty, Kind};
use gantry_testkit::{process, real_servers};
use serde_json::{Value, json};

#[test]
fn pol_8_a_stdio_server_is_spawned_with_its_command_and_is_ready_when_the_switch_is_over() {
    let mut server = faulty(&["--start-after", "700", "--tool", "spawned"]);
    server["env"] = json!({ "FOR_A": "yes" });
    let stage = Stage::of(&two(&server, &faulty(&[])));
    stage.activate("b");
    assert_eq!(stage.running("spawned"), Vec::<u32>::new(), "it is not there before");
    assert_eq!(stage.activate("a")["tools"], 5, "the switch waits until it is ready");
    let own = stage.pid("sa__pid");
    assert!(stage.running("--start-after 700 --tool spawned").contains(&own));
    let env = stage.call("sa__env", &json!({}));
    assert!(env["result"].as_str().is_some_and(|text| text.contains(r#""FOR_A":"yes""#)), "{env}");
    let status = stage.server.get_as_admin("/api/v1/servers/sa").json();
    assert_eq!((&status["status"], &status["light"]), (&json!("ready"), &json!("green")), "{status}");
}

#[test]
fn pol_8_servers_behind_websocket_and_tcp_are_connected_with_a_handshake_in_either_era() {
    for era in ["legacy", "modern"] {
        let args = ["--era", era];
        let (tcp, ws) = (Faulty::start(Kind::Tcp, &args), Faulty::start(Kind::Ws, &args));
        let mut config = two(&remote("tcp", &tcp.url), &remote("websocket", &ws.url));
        config["agents"]["neither"] = json!({ "tools": ["read_file"] });
        let stage = Stage::of(&config);
        stage.activate("neither");
        for (agent, id, server) in [("a", "sa", &tcp), ("b", "sb", &ws)] {
            let closed = || process::connections(server.address.port()) == 0;
            stage.server.eventually(&format!("{era}: nobody needs {id}"), closed);
            assert_eq!(stage.activate(agent)["tools"], 5, "{era}");
            assert_eq!(stage.pid(&format!("{id}__pid")), server.pid(), "{era}");
            let status = stage.server.get_as_admin(&format!("/api/v1/servers/{id}")).json();
            let spoken = if era == "legacy" { "2025-11-25" } else { "2026-07-28" };
            assert_eq!((&status["era"], &status["light"]), (&json!(spoken), &json!("green")), "{status}");
        }
    }
}

#[test]
fn pol_8_a_real_server_behind_http_is_used_by_its_agent_and_left_with_it() {
    let server = real_servers::Everything::start(Kind::Http);
    let port: u16 =
        server.url.split([':', '/']).find_map(|word| word.parse().ok()).expect("a port in the address");
    let stage = Stage::of(&two(&remote("http", &server.url), &faulty(&[])));
    stage.activate("b");
    stage.server.eventually("nobody needs it", || process::connections(port) == 0);
    stage.activate("a");
    let reply = stage.call("sa__echo", &json!({ "message": "hi" }));
    assert_eq!(reply["result"], "Echo: hi", "{reply}");
    stage.activate("b");
    stage.server.eventually("it is left", || process::connections(port) == 0);
    super::assert_unknown(&stage.call("sa__echo", &json!({ "message": "hi" })), "sa__echo");
}

/// A server with a health check that is quick.
fn watched(mut server: Value) -> Value {
    server["healthCheck"] = json!({ "intervalMs": 100, "timeoutMs": 500 });
    server
}

#[test]
fn pol_8_the_light_of_the_active_agents_server_follows_its_health() {
    let server = Faulty::start(Kind::Tcp, &[]);
    let port = server.address.port();
    let stage = Stage::of(&two(&watched(remote("tcp", &server.url)), &faulty(&[])));
    let light = || stage.server.get_as_admin("/api/v1/servers/sa").json()["light"].clone();
    stage.activate("a");
    assert_eq!(light(), "green");
    drop(server);
    stage.server.eventually("it is red", || light() == "red");
    let server = Faulty::start_at(Kind::Tcp, port, &[]);
    stage.server.eventually("it is green again", || light() == "green");
    assert_eq!(stage.pid("sa__pid"), server.pid());
    // With its agent ends the watching: Gantry does not connect again.
    stage.activate("b");
    stage.server.eventually("it is left", || process::connections(port) == 0);
    drop(server);
    let _again = Faulty::start_at(Kind::Tcp, port, &[]);
    assert_eq!(stage.tools(), of("sb"));
    assert_eq!(process::connections(port), 0);
    assert_eq!(stage.server.get_as_admin("/api/v1/servers/sa").status, 404);
}

#[test]
fn pol_8_a_server_that_dies_under_the_active_agent_comes_back_for_it() {
    let stage = Stage::of(&json!({
        "mcpServers": { "sa": faulty(&[]), "sb": faulty(&[]) },
        "agents": { "a": { "tools": ["sa__pid", "sa__die"] }, "b": { "tools": of("sb") } },
    }));
    stage.activate("a");
    let first = stage.pid("sa__pid");
    assert_eq!(stage.call("sa__die", &json!({}))["ok"], false);
    stage.server.eventually("another process answers", || {
        let reply = stage.call("sa__pid", &json!({}));
        reply["ok"] == true && super::pid(&reply) != first
    });
    let second = stage.pid("sa__pid");
    stage.activate("b");
    assert!(!process::is_running(first) && !process::is_running(second));
}

#[test]
fn pol_8_a_server_that_is_added_while_an_agent_is_active_is_there_for_those_who_may_use_it() {
    let stage = Stage::of(&json!({
        "mcpServers": { "sa": faulty(&[]) },
        "agents": { "a": { "tools": of("sa") }, "b": { "tools": of("added") } },
    }));
    stage.activate("a");
    let body = json!({ "id": "added", "command": Faulty::program(), "args": ["--tool", "added-later"] });
    let headers = [("content-type", "application/json")];
    let added = gantry_testkit::server::send(
        &stage.server.admin(),
        http::Method::POST,
        "/api/v1/servers",
        &headers,
        &body.to_string(),
    );
    assert!(added.status < 300, "{added:?}");
    assert_eq!(stage.tools(), of("sa"));
    assert_eq!(stage.running("added-later"), Vec::<u32>::new(), "a has no use for it");
    stage.activate("b");
    assert_eq!(stage.tools(), of("added"));
    assert!(stage.running("added-later").contains(&stage.pid("added__pid")));
}
