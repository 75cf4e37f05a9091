//! SRV-1 and SRV-3: the same tools, policies and records by every door, and one endpoint per project and agent.

use super::{Door, Rig, Talk, elements, faulty, raw};
use gantry_testkit::TestDir;
use serde_json::{Value, json};

fn config() -> Value {
    json!({
        "mcpServers": { "one": faulty(&[]) },
        "agents": { "reader": { "tools": ["one__echo", "one__ask", "read_file"] } },
        "policies": [{ "name": "no-wiping", "tools": ["one__wipe"], "decide": "deny", "reason": "not here" }],
    })
}

/// Does with a client all that can be done by an entry point.
#[track_caller]
fn converse(client: &mut Talk, what: &str) {
    assert_eq!(client.call("one__echo", &json!({ "text": what })), what);
    let call = client.begin_call("one__ask", &json!({ "text": what }));
    let question = client.hear("elicitation/create");
    assert_eq!(question["params"]["message"], what, "{question}");
    // Other requests are answered while it waits.
    assert_eq!(client.call("one__echo", &json!({ "text": "meanwhile" })), "meanwhile", "{what}");
    client.answer(&question, &json!({ "action": "accept", "content": { "answer": what } }));
    let outcome: Value = serde_json::from_str(&client.end_call(call)).expect("JSON");
    assert_eq!(outcome["content"]["answer"], what);
    let denied = client.result("tools/call", &json!({ "name": "one__wipe", "arguments": { "text": what } }));
    assert_eq!(denied["_meta"]["gantry/error"]["code"], "PERMISSION_DENIED", "{what}: {denied}");
    client.error("tools/call", &json!({ "name": "one__nothing", "arguments": {} }), -32602);
    assert_eq!(client.result("ping", &json!({})), json!({}), "{what}");
}

/// What is on record of a conversation, the call that was made last first.
fn records(home: &TestDir, principal: &str) -> Vec<(String, String)> {
    let rows = home.run(["audit", "--json", "--limit", "5"]).json();
    let field = |row: &Value, name: &str| row[name].as_str().expect("a text").to_owned();
    let rows = rows.as_array().expect("rows").iter();
    rows.map(|row| {
        assert_eq!((&row["door"], &row["principal"]), (&json!("mcp"), &json!(principal)), "{row}");
        (field(row, "tool"), field(row, "state"))
    })
    .collect()
}

#[test]
fn srv_1_tools_policies_questions_and_records_are_the_same_by_every_door() {
    let rig = Rig::with_config(&config());
    let alone = TestDir::new().config(&config().to_string());
    let doors = [
        ("/mcp", rig.door(), &rig.home),
        ("/mcp/default", Door::Http(&rig.server, "/mcp/default"), &rig.home),
        ("/sse", Door::Sse(&rig.server), &rig.home),
        ("/ws", Door::Ws(&rig.server, "/ws"), &rig.home),
        ("/ws/default", Door::Ws(&rig.server, "/ws/default"), &rig.home),
        ("gantry mcp in front of a server", Door::Stdio(&rig.home, &[]), &rig.home),
        ("gantry mcp on its own", Door::Stdio(&alone, &[]), &alone),
    ];
    let mut expected: Option<String> = None;
    for (what, door, home) in doors {
        let mut client = Talk::legacy(door);
        let answer = client.ask_raw("tools/list", "{}");
        let tools = raw(&answer, &["result", "tools"]).to_owned();
        assert!(elements(&tools).len() > 30, "{what}");
        assert_eq!(*expected.get_or_insert_with(|| tools.clone()), tools, "{what}");
        converse(&mut client, what);
        // Behind `gantry mcp` is the person who started it.
        let states = records(home, if what.starts_with("gantry mcp") { "mcp" } else { "local" });
        let states: Vec<_> = states.iter().map(|(tool, state)| (tool.as_str(), state.as_str())).collect();
        let expected = [
            ("one__nothing", "REFUSED"),
            ("one__wipe", "REFUSED"),
            ("one__echo", "COMPLETED_SUCCESS"),
            ("one__ask", "COMPLETED_SUCCESS"),
            ("one__echo", "COMPLETED_SUCCESS"),
        ];
        assert_eq!(states, expected, "{what}");
    }
    assert!(!rig.journal().iter().any(|line| line.starts_with("wiped")), "{:?}", rig.journal());
}

#[test]
fn srv_1_a_modern_client_is_asked_and_answers_by_every_door() {
    let rig = Rig::with_config(&config());
    let alone = TestDir::new().config(&config().to_string());
    let doors = rig.doors().into_iter().chain([("on its own", Door::Stdio(&alone, &[]))]);
    for (what, door) in doors {
        let mut client = Talk::modern(door);
        let mut call = json!({ "name": "one__ask", "arguments": { "text": what } });
        let asked = client.result("tools/call", &call);
        assert_eq!(asked["resultType"], "input_required", "{what}: {asked}");
        let (key, question) =
            asked["inputRequests"].as_object().and_then(|all| all.iter().next()).expect("a question");
        assert_eq!(
            (&question["method"], &question["params"]["message"]),
            (&json!("elicitation/create"), &json!(what))
        );
        call["requestState"] = asked["requestState"].clone();
        call["inputResponses"] = json!({ key: { "action": "accept", "content": { "answer": what } } });
        let answered = client.result("tools/call", &call);
        let outcome: Value = serde_json::from_str(&super::text(&answered)).expect("JSON");
        assert_eq!(outcome["content"]["answer"], what, "{answered}");
    }
}

/// A Gantry whose server takes a moment to start, and a client that comes before it has.
fn first_client<T>(what: &str, ask: impl FnOnce(Door<'_>) -> T) -> T {
    let config = json!({ "mcpServers": { "slow": faulty(&["--start-after", "300"]) } });
    let home = TestDir::new().config(&config.to_string());
    let server = (what != "gantry mcp on its own").then(|| home.serve());
    ask(match (&server, what) {
        (Some(server), "/mcp") => Door::Http(server, "/mcp"),
        (Some(server), "/sse") => Door::Sse(server),
        (Some(server), "/ws") => Door::Ws(server, "/ws"),
        _ => Door::Stdio(&home, &[]),
    })
}

#[test]
fn srv_1_a_first_client_by_any_entry_point_learns_of_servers_that_are_still_starting() {
    for what in ["/mcp", "/sse", "/ws", "gantry mcp in front of a server", "gantry mcp on its own"] {
        first_client(what, |door| {
            let mut client = Talk::silent(door);
            let hello = json!({ "protocolVersion": super::LEGACY, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
            let welcome = client.result("initialize", &hello);
            for feature in ["resources", "prompts", "completions", "logging"] {
                assert!(welcome["capabilities"][feature].is_object(), "{what}: {welcome}");
            }
            assert!(
                welcome["instructions"].as_str().is_some_and(|text| text.contains("# slow\n")),
                "{what}: {welcome}"
            );
            let tools = client.tools();
            assert!(tools.contains(&"slow__echo".to_owned()), "{what}: {tools:?}");
        });
    }
}

#[test]
fn srv_1_a_first_modern_request_by_any_door_waits_for_servers_that_are_still_starting() {
    for what in ["/mcp", "/ws", "gantry mcp in front of a server", "gantry mcp on its own"] {
        let discovered = first_client(what, |door| Talk::modern(door).result("server/discover", &json!({})));
        assert!(discovered["capabilities"]["resources"].is_object(), "{what}: {discovered}");
        let uri = json!({ "uri": "gantry:slow/faulty://text/one" });
        let read = first_client(what, |door| Talk::modern(door).result("resources/read", &uri));
        assert_eq!(read["contents"][0]["text"], "the first resource", "{what}: {read}");
        let got = first_client(what, |door| {
            Talk::modern(door).result("prompts/get", &json!({ "name": "slow__plain" }))
        });
        assert_eq!(got["messages"][0]["content"]["text"], "plain {}", "{what}: {got}");
        let called =
            first_client(what, |door| Talk::modern(door).call("slow__echo", &json!({ "text": what })));
        assert_eq!(called, what);
        let wanted = json!({ "resourceSubscriptions": [uri["uri"]] });
        let granted = first_client(what, |door| {
            let mut client = Talk::modern(door);
            client.begin("subscriptions/listen", &json!({ "notifications": wanted }).to_string());
            client.hear("notifications/subscriptions/acknowledged")
        });
        assert_eq!(granted["params"]["notifications"], wanted, "{what}");
    }
}

#[test]
fn srv_3_the_endpoint_of_an_agent_shows_and_runs_only_what_the_agent_has() {
    let rig = Rig::with_config(&config());
    let alone = TestDir::new().config(&config().to_string());
    let doors = [
        ("/mcp", Door::Http(&rig.server, "/mcp/default/agents/reader")),
        ("/ws", Door::Ws(&rig.server, "/ws/default/agents/reader")),
        ("in front of a server", Door::Stdio(&rig.home, &["--agent", "reader"])),
        ("on its own", Door::Stdio(&alone, &["--agent", "reader"])),
    ];
    for (what, door) in doors {
        for mut client in [Talk::legacy(door), Talk::modern(door)] {
            assert_eq!(client.tools(), ["one__ask", "one__echo", "read_file"], "{what}");
            assert_eq!(client.call("one__echo", &json!({ "text": what })), what);
            for hidden in ["one__pid", "one__wipe", "write_file", "@one/pid", "no_such_tool"] {
                let refused = client.error("tools/call", &json!({ "name": hidden, "arguments": {} }), -32602);
                let message = refused["message"].as_str().expect("a message");
                assert!(message.starts_with(&format!("tool not found: {hidden}")), "{what}: {message}");
            }
        }
    }
    let rows = rig.home.run(["audit", "--json", "--limit", "1"]).json();
    assert_eq!(rows[0]["agent"], "reader", "{rows}");
}

#[test]
fn srv_3_a_project_or_agent_that_is_not_there_has_no_endpoint() {
    let rig = Rig::with_config(&config());
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": super::LEGACY, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    for path in ["/mcp/other", "/mcp/other/agents/reader"] {
        let answer = rig.server.post(path, &hello.to_string());
        assert_eq!(
            (answer.status, &answer.json()["error"]["code"]),
            (404, &json!("NOT_FOUND")),
            "{path}: {answer:?}"
        );
    }
    let unknown = rig.server.post("/mcp/default/agents/nobody", &hello.to_string());
    let error = &unknown.json()["error"];
    assert_eq!(error["code"], -32602, "{unknown:?}");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("nobody")), "{unknown:?}");
    assert_eq!(unknown.headers.get("mcp-session-id"), None);
    let ran = rig.home.run_with_input(["mcp", "--agent", "nobody"], &format!("{hello}\n"));
    assert!(ran.stdout.contains("nobody") || ran.stderr.contains("nobody"), "{ran:?}");
    assert!(!ran.stdout.contains("\"result\""), "{ran:?}");
}
