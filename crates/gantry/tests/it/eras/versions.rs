//! Every revision with a handshake, on either side, and what results become for clients that are older than they.

use super::{Client, Era, LEGACY, MODERN, Rig, accept, capabilities, shaken};
use crate::passthrough::{Talk, parsed, text};
use serde_json::{Value, json};

/// The revisions with a handshake, oldest first.
const VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", LEGACY];

/// The first with structured results and links to resources.
const STRUCTURED_SINCE: &str = "2025-06-18";

fn call(server: &str, tool: &str, arguments: &Value) -> Value {
    json!({ "name": format!("{server}__{tool}"), "arguments": arguments })
}

fn tool(listed: &Value, name: &str) -> Value {
    let tools = listed["tools"].as_array().expect("tools");
    tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("no {name}")).clone()
}

#[test]
fn ups_11_every_older_revision_gets_what_it_knows_from_servers_of_every_era() {
    const SERVERS: [&str; 5] = [
        "faulty_legacy_stdio",
        "faulty_modern_stdio",
        "faulty_dual_http",
        "faulty_legacy_http",
        "faulty_modern_http",
    ];
    let rig = Rig::with(&json!({}), &SERVERS.map(|server| (server, &["--rich-results"][..])));
    for version in VERSIONS {
        let mut talk = shaken(rig.door(), version, &capabilities());
        let listed = talk.result("tools/list", &json!({}));
        for server in SERVERS {
            let what = format!("{version} at {server}");
            let numbers = tool(&listed, &format!("{server}__numbers"));
            assert_eq!(numbers.get("outputSchema"), None, "{what}: only objects can be promised: {numbers}");
            results(&mut talk, server, version);
            let id = talk.begin_call(&format!("{server}__ask"), &json!({ "text": "?" }));
            let question = talk.hear("elicitation/create");
            talk.answer(&question, &accept("yes"));
            assert_eq!(parsed(&talk.end_call(id)), accept("yes"), "{what}");
        }
    }
}

fn results(talk: &mut Talk, server: &str, version: &str) {
    let what = format!("{version} at {server}");
    let structured = version >= STRUCTURED_SINCE;
    assert_eq!(talk.call(&format!("{server}__echo"), &json!({ "text": "hi" })), "hi", "{what}");
    let sum = talk.result("tools/call", &call(server, "add", &json!({ "a": 1, "b": 2 })));
    let expected = structured.then(|| json!({ "sum": 3 }));
    assert_eq!(sum.get("structuredContent"), expected.as_ref(), "{what}: {sum}");
    assert_eq!(parsed(&text(&sum)), json!({ "sum": 3 }), "{what}: the text says the same");
    let numbers = talk.result("tools/call", &call(server, "numbers", &json!({})));
    assert_eq!(numbers.get("structuredContent"), None, "{what}: {numbers}");
    assert_eq!(text(&numbers), "[1,2,3]", "{what}");
    let linked = talk.result("tools/call", &call(server, "link", &json!({})))["content"].clone();
    let uri = format!("gantry:{server}/faulty://text/one");
    if structured {
        assert_eq!((&linked[1]["type"], &linked[1]["uri"]), (&json!("resource_link"), &json!(uri)), "{what}");
        assert_eq!(linked[1]["title"], "The first", "{what}");
    } else {
        let outcome = format!("The first: {uri} (of five)");
        assert_eq!(linked[1], json!({ "type": "text", "text": outcome }), "{what}");
    }
    let read = talk.result("resources/read", &json!({ "uri": uri }));
    assert_eq!(read["contents"][0]["text"], "the first resource", "{what}");
}

#[test]
fn ups_11_the_newest_revision_gets_results_that_no_older_one_knows() {
    const SERVERS: [&str; 2] = ["faulty_legacy_stdio", "faulty_modern_http"];
    let rig = Rig::with(&json!({}), &SERVERS.map(|server| (server, &["--rich-results"][..])));
    let Client { mut talk, .. } = Client::connect(rig.door(), Era::Modern);
    let listed = talk.result("tools/list", &json!({}));
    for server in SERVERS {
        let numbers = tool(&listed, &format!("{server}__numbers"));
        assert_eq!(numbers["outputSchema"]["type"], "array", "{server}: {numbers}");
        let numbers = talk.result("tools/call", &call(server, "numbers", &json!({})));
        assert_eq!(numbers["structuredContent"], json!([1, 2, 3]), "{server}: {numbers}");
        let linked = talk.result("tools/call", &call(server, "link", &json!({})));
        assert_eq!(linked["content"][1]["type"], "resource_link", "{server}: {linked}");
    }
}

#[test]
fn ups_11_a_server_that_knows_only_one_old_revision_serves_clients_of_every_era() {
    let names: Vec<(String, [&str; 2])> = ["stdio", "http"]
        .into_iter()
        .flat_map(|transport| {
            let name = move |version: &str| format!("faulty_legacy_{transport}_{}", version.replace('-', ""));
            VERSIONS.map(|version| (name(version), ["--revision", version]))
        })
        .collect();
    let servers: Vec<(&str, &[&str])> = names.iter().map(|(name, args)| (&**name, &args[..])).collect();
    let rig = Rig::with(&json!({}), &servers);
    let clients = VERSIONS.map(|version| (Era::Legacy, shaken(rig.door(), version, &capabilities())));
    let modern = (Era::Modern, Client::connect(rig.door(), Era::Modern).talk);
    let mut clients: Vec<Client> =
        clients.into_iter().chain([modern]).map(|(era, talk)| Client { talk, era }).collect();
    for (name, [_, version]) in &names {
        let status = rig.server.get_as_admin(&format!("/api/v1/servers/{name}")).json();
        assert_eq!(status["era"], *version, "{status}");
        for client in &mut clients {
            assert_eq!(client.talk.call(&format!("{name}__echo"), &json!({ "text": "hi" })), "hi", "{name}");
            let (_, outcome) =
                client.fill_in(&format!("{name}__ask"), &json!({ "text": "?" }), &[accept("yes")]);
            assert_eq!(parsed(&outcome), accept("yes"), "{name}");
        }
    }
}

#[test]
fn ups_11_a_handshake_leads_to_a_revision_that_has_one() {
    let rig = Rig::of(&["faulty_modern_stdio"]);
    for asked in [MODERN, "2099-01-01", "nonsense"] {
        let mut talk = Talk::silent(rig.door());
        let hello = json!({ "protocolVersion": asked, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let answer = talk.result("initialize", &hello);
        assert_eq!(answer["protocolVersion"], LEGACY, "{asked}: {answer}");
        assert_eq!(talk.call("faulty_modern_stdio__echo", &json!({ "text": asked })), asked);
    }
}

/// Batches are known to one revision only, and what a batch asks for may be anywhere.
#[test]
fn ups_11_a_batch_reaches_servers_of_every_era() {
    let servers = ["faulty_legacy_stdio", "faulty_modern_http"];
    let rig = Rig::of(&servers);
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-03-26", "capabilities": capabilities(), "clientInfo": { "name": "t", "version": "1" },
    } });
    let json = ("content-type", "application/json");
    let opened = rig.server.request(http::Method::POST, "/mcp", &[json], &hello.to_string());
    let session = opened.headers["mcp-session-id"].to_str().expect("text").to_owned();
    let request = |id: usize, server: &str, tool: &str| {
        let params = call(server, tool, &json!({ "text": format!("{server} {id}") }));
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    let batch = json!([
        request(1, servers[0], "echo"),
        request(2, servers[1], "echo"),
        request(3, servers[0], "ask"),
        request(4, servers[1], "ask"),
    ]);
    let headers = [json, ("mcp-session-id", &*session)];
    let answers = rig.server.request(http::Method::POST, "/mcp", &headers, &batch.to_string()).json();
    let text_of = |id: usize| {
        let answer = answers.as_array().expect("a batch").iter().find(|answer| answer["id"] == id);
        text(&answer.unwrap_or_else(|| panic!("no {id} in {answers}"))["result"])
    };
    assert_eq!((text_of(1), text_of(2)), (format!("{} 1", servers[0]), format!("{} 2", servers[1])));
    // No client can be asked in the middle of a batch: there is one answer for all of it.
    for id in [3, 4] {
        assert!(!text_of(id).contains("accept"), "{answers}");
    }
}
