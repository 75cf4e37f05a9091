//! What an agent has no tool of does not exist for it: neither the resources nor the prompts of that server, nor news.

use super::{Door, Rig, Talk, faulty, members, names};
use serde_json::{Value, json};

/// Two servers that differ in nothing but their ids, and three agents: one of each, and one of neither.
fn rig() -> Rig {
    Rig::with_config(&json!({
        "mcpServers": { "one": faulty(&[]), "two": faulty(&[]) },
        "agents": {
            "first": { "tools": ["one__*"] },
            "second": { "tools": ["two__echo"] },
            "neither": { "tools": ["read_file"] },
        },
    }))
}

const FIRST: &str = "/mcp/default/agents/first";
const SECOND: &str = "/mcp/default/agents/second";
const NEITHER: &str = "/mcp/default/agents/neither";

#[test]
fn ups_10_an_agent_sees_the_resources_and_prompts_of_its_servers_only() {
    let rig = rig();
    for (path, own, other) in [(FIRST, "one", "two"), (SECOND, "two", "one")] {
        let door = Door::Http(&rig.server, path);
        for (mut client, missing) in [(Talk::legacy(door), -32002), (Talk::modern(door), -32602)] {
            for (method, member, key) in [
                ("resources/list", "resources", "uri"),
                ("resources/templates/list", "resourceTemplates", "uriTemplate"),
                ("prompts/list", "prompts", "name"),
            ] {
                let shown = members(&client.result(method, &json!({}))[member], key);
                assert!(shown.len() >= 4, "{path} {method}: {shown:?}");
                let prefixes = [format!("gantry:{own}/"), format!("{own}__")];
                let is_own = |name: &String| prefixes.iter().any(|prefix| name.starts_with(prefix));
                assert!(shown.iter().all(is_own), "{path} {method}: {shown:?}");
            }
            client.result("resources/read", &json!({ "uri": format!("gantry:{own}/faulty://text/one") }));
            client.result("prompts/get", &json!({ "name": format!("{own}__plain") }));
            alike(&mut client, other, missing);
        }
    }
}

/// That what is hidden is answered exactly like what is not there.
#[track_caller]
fn alike(client: &mut Talk, hidden: &str, missing: i64) {
    let mut ask = |method: &str, server: &str, params: Value, code: i64| {
        let params = serde_json::from_str(&params.to_string().replace("SERVER", server)).expect("JSON");
        client.error(method, &params, code).to_string().replace(server, "SERVER")
    };
    for (method, params, code) in [
        ("resources/read", json!({ "uri": "gantry:SERVER/faulty://data/json" }), missing),
        ("prompts/get", json!({ "name": "SERVER__plain" }), -32602),
        (
            "completion/complete",
            json!({ "ref": { "type": "ref/prompt", "name": "SERVER__greet" }, "argument": { "name": "name", "value": "" } }),
            -32602,
        ),
        (
            "completion/complete",
            json!({ "ref": { "type": "ref/resource", "uri": "gantry:SERVER/faulty://item/{id}" }, "argument": { "name": "id", "value": "" } }),
            -32602,
        ),
    ] {
        let (there, nowhere) = (ask(method, hidden, params.clone(), code), ask(method, "nix", params, code));
        assert_eq!(there, nowhere, "{method}");
    }
}

#[test]
fn ups_10_an_agent_without_a_tool_of_any_server_does_not_learn_that_there_are_servers() {
    let rig = rig();
    // The same agent where there is no server at all.
    let bare = Rig::with_config(&json!({ "agents": { "neither": { "tools": ["read_file"] } } }));
    let ask = |rig: &Rig| {
        let mut client = Talk::silent(Door::Http(&rig.server, NEITHER));
        let client_info = json!({ "name": "talk", "version": "1" });
        let hello =
            json!({ "protocolVersion": super::LEGACY, "capabilities": {}, "clientInfo": client_info });
        let mut seen = vec![client.ask("initialize", &hello)];
        for (method, params) in [
            ("tools/list", json!({})),
            ("resources/list", json!({})),
            ("resources/templates/list", json!({})),
            ("prompts/list", json!({})),
            ("resources/read", json!({ "uri": "gantry:one/faulty://text/one" })),
            ("resources/subscribe", json!({ "uri": "gantry:one/faulty://text/one" })),
            ("prompts/get", json!({ "name": "one__plain" })),
            ("logging/setLevel", json!({ "level": "debug" })),
            ("tools/call", json!({ "name": "one__echo", "arguments": {} })),
        ] {
            seen.push(client.ask(method, &params));
        }
        seen
    };
    let (seen, expected) = (ask(&rig), ask(&bare));
    for (seen, expected) in seen.iter().zip(&expected) {
        assert_eq!(seen, expected);
    }
    assert_eq!(seen[0]["result"]["capabilities"].get("resources"), None, "{}", seen[0]);
}

#[test]
fn ups_10_an_agent_hears_only_of_its_own_servers() {
    let rig = rig();
    let mut first = Talk::legacy(Door::Http(&rig.server, FIRST));
    let mut second = Talk::legacy(Door::Http(&rig.server, SECOND));
    let mut everyone = rig.legacy();
    for client in [&mut first, &mut second] {
        client.result("logging/setLevel", &json!({ "level": "debug" }));
    }
    let uri = json!({ "uri": "gantry:one/faulty://text/one" });
    first.result("resources/subscribe", &uri);
    second.error("resources/subscribe", &uri, -32602);
    everyone.call("one__touch", &json!({ "uri": "faulty://text/one" }));
    first.hear("notifications/resources/updated");
    everyone.call("one__grow", &json!({}));
    first.hear("notifications/tools/list_changed");
    // A call that is under way would take the message for its own.
    everyone.call("one__log", &json!({ "text": "one's", "level": "error", "ms": 50 }));
    first.hear("notifications/message");
    // The second agent's own server speaks last, so all of the other's would have come by now.
    everyone.call("two__log", &json!({ "text": "two's", "level": "error", "ms": 50 }));
    assert_eq!(second.hear("notifications/message")["params"]["data"], "two's");
    for method in
        ["notifications/resources/updated", "notifications/message", "notifications/tools/list_changed"]
    {
        assert_eq!(second.heard(method), [] as [Value; 0], "{method}");
    }
}

#[test]
fn ups_10_a_modern_agent_cannot_listen_for_what_it_does_not_see() {
    let rig = rig();
    let mut client = Talk::modern(Door::Http(&rig.server, SECOND));
    let wanted =
        json!({ "resourceSubscriptions": ["gantry:one/faulty://text/one", "gantry:two/faulty://text/one"] });
    client.begin("subscriptions/listen", &json!({ "notifications": wanted }).to_string());
    let granted = client.hear("notifications/subscriptions/acknowledged");
    let expected = json!({ "resourceSubscriptions": ["gantry:two/faulty://text/one"] });
    assert_eq!(granted["params"]["notifications"], expected, "{granted}");
    assert_eq!(names(&client.result("tools/list", &json!({}))["tools"]), ["two__echo"]);
}
