//! Servers that others wrote, all behind one Gantry: everything they list is listed, and what they answer is answered.

use crate::mcp_sdks::{Door as SdkDoor, SDKS};
use crate::passthrough::{Door, Rig, Talk, elements, in_order, names, parsed, raw, text, without};
use gantry_testkit::TestDir;
use gantry_testkit::real_servers::{ALL, Eras, Ready};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::thread;
use tempfile::TempDir;

/// Members of a result that belong to the protocol of 2026-07-28 and not to the server.
const PROTOCOL: [&str; 2] = ["resultType", "_meta"];

/// The servers, ready to start, each in a folder of its own.
fn prepared() -> Vec<(TempDir, Ready)> {
    ALL.iter()
        .map(|server| {
            let folder = tempfile::tempdir().expect("a folder");
            let ready = server.prepare(folder.path());
            (folder, ready)
        })
        .collect()
}

/// One Gantry with all of them.
fn rig(servers: &[(TempDir, Ready)]) -> Rig {
    rig_speaking("auto", servers)
}

/// One Gantry with all of them that speaks this with them.
fn rig_speaking(protocol: &str, servers: &[(TempDir, Ready)]) -> Rig {
    let entry = |ready: &Ready| {
        let mut entry = ready.entry();
        // What they list depends on what the client can be asked; on a busy machine some take long to start.
        for (key, value) in [
            ("elicitation", json!(false)),
            ("sampling", json!(false)),
            ("startupTimeoutMs", json!(60_000)),
            ("protocol", json!(protocol)),
        ] {
            entry[key] = value;
        }
        (ready.id.to_owned(), entry)
    };
    Rig::of(&Value::Object(servers.iter().map(|(_, ready)| entry(ready)).collect()))
}

/// What a server says to a client of its own.
struct Own {
    /// Its definitions by name.
    tools: BTreeMap<String, String>,
    /// The result of its call.
    result: String,
}

fn own(ready: &Ready, era: &str) -> Own {
    let (home, entry) = (TestDir::new(), ready.entry());
    let door = Door::Direct(&home, &entry);
    let mut client = match era {
        "2026-07-28" => Talk::modern_with(door, &json!({})),
        _ => Talk::legacy_with(door, &json!({})),
    };
    let list = client.ask_raw("tools/list", "{}");
    let tools = elements(raw(&list, &["result", "tools"]));
    let tools = tools.into_iter().map(|tool| (name(tool), tool.to_owned())).collect();
    let call = json!({ "name": ready.tool, "arguments": ready.arguments }).to_string();
    let answer = client.ask_raw("tools/call", &call);
    Own { tools, result: raw(&answer, &["result"]).to_owned() }
}

fn name(tool: &str) -> String {
    serde_json::from_str(raw(tool, &["name"])).expect("a name")
}

/// The name under which Gantry shows a tool.
fn shown(server: &str, tool: &str) -> String {
    format!("{server}__{tool}").replace('-', "_")
}

fn call(ready: &Ready) -> String {
    json!({ "name": shown(ready.id, ready.tool), "arguments": ready.arguments }).to_string()
}

#[test]
fn ups_2_real_servers_are_listed_and_answer_through_gantry_as_they_do_themselves() {
    let servers = prepared();
    let rig = rig(&servers);
    let mut client = Talk::legacy_with(rig.door(), &json!({}));
    let list = client.ask_raw("tools/list", "{}");
    let listed: BTreeMap<String, &str> =
        elements(raw(&list, &["result", "tools"])).into_iter().map(|tool| (name(tool), tool)).collect();
    let eras = rig.server.get_as_admin("/api/v1/servers").json();
    let era = |id: &str| {
        let server = eras["items"].as_array().expect("servers").iter().find(|server| server["id"] == id);
        server.expect("it is there")["era"].as_str().expect("an era").to_owned()
    };
    let direct: Vec<Own> = thread::scope(|scope| {
        let asked: Vec<_> =
            servers.iter().map(|(_, ready)| scope.spawn(|| own(ready, &era(ready.id)))).collect();
        asked.into_iter().map(|asked| asked.join().expect("it answers")).collect()
    });
    let mut modern = Talk::modern_with(rig.door(), &json!({}));
    for ((server, (_, ready)), own) in ALL.iter().zip(&servers).zip(&direct) {
        let id = server.id;
        assert_eq!(own.tools.len(), server.n_tools, "{id}");
        let prefix = shown(id, "");
        assert_eq!(listed.keys().filter(|name| name.starts_with(&prefix)).count(), server.n_tools, "{id}");
        for (name, definition) in &own.tools {
            let renamed = definition.replacen(
                &format!("\"name\":\"{name}\""),
                &format!("\"name\":\"{}\"", shown(id, name)),
                1,
            );
            assert_eq!(listed[&shown(id, name)], renamed, "{id}");
        }
        let answer = client.ask_raw("tools/call", &call(ready));
        let result = raw(&answer, &["result"]);
        assert!(text(&parsed(result)).contains(ready.answer), "{id}: {result}");
        if era(id) == "2026-07-28" {
            assert_eq!(
                without(&in_order(result), &PROTOCOL),
                without(&in_order(&own.result), &PROTOCOL),
                "{id}"
            );
            assert_eq!(parsed(result).get("resultType"), None, "{id}: {result}");
        } else {
            assert_eq!(result, own.result, "{id}");
        }
        // One of them counts its calls, so it cannot answer the same twice.
        if id != "sequential-thinking" {
            let answer = modern.ask_raw("tools/call", &call(ready));
            let result = raw(&answer, &["result"]);
            assert_eq!(
                without(&in_order(result), &PROTOCOL),
                without(&in_order(&own.result), &PROTOCOL),
                "{id}"
            );
            assert_eq!(parsed(result)["resultType"], "complete", "{id}: {result}");
        }
    }
}

#[test]
fn ups_2_real_servers_of_both_eras_answer_byte_for_byte_in_the_older_one() {
    let both = ALL.iter().map(|server| matches!(server.eras, Eras::Both));
    let servers: Vec<_> =
        prepared().into_iter().zip(both).filter_map(|(it, both)| both.then_some(it)).collect();
    assert_eq!(servers.len(), 3);
    let rig = rig_speaking("legacy", &servers);
    let mut client = Talk::legacy_with(rig.door(), &json!({}));
    for (_, ready) in &servers {
        let answer = client.ask_raw("tools/call", &call(ready));
        assert_eq!(raw(&answer, &["result"]), own(ready, "2025-11-25").result, "{}", ready.id);
    }
}

#[test]
fn srv_1_clients_that_insist_on_schemas_take_what_real_servers_list_and_answer() {
    let servers = prepared();
    let rig = rig(&servers);
    let mut script = vec![json!({ "list": {} })];
    script.extend(
        servers
            .iter()
            .map(|(_, ready)| json!({ "call": serde_json::from_str::<Value>(&call(ready)).expect("JSON") })),
    );
    let script = Value::Array(script);
    for sdk in SDKS {
        // The first two of each cover both eras.
        for (era, version) in sdk.eras.iter().take(2) {
            let seen = sdk.play(&rig.home, SdkDoor::Http(&rig.server), era, &script);
            assert_eq!(seen["protocol"], *version, "{era}");
            let steps = seen["steps"].as_array().expect("steps");
            let listed = names(&steps[0]["definitions"]);
            let expected: usize = ALL.iter().map(|server| server.n_tools).sum();
            assert_eq!(listed.iter().filter(|name| name.contains("__")).count(), expected, "{listed:?}");
            for ((_, ready), step) in servers.iter().zip(&steps[1..]) {
                assert_eq!(step["isError"], false, "{era} {}: {step}", ready.id);
                let counts = ready.id == "sequential-thinking";
                assert!(counts || text(step).contains(ready.answer), "{era} {}: {step}", ready.id);
            }
        }
    }
}

#[test]
fn ups_10_a_real_server_asks_reports_and_completes_through_gantry() {
    let folder = tempfile::tempdir().expect("a folder");
    let ready = gantry_testkit::real_servers::find("everything").prepare(folder.path());
    let rig = Rig::of(&json!({ "everything": ready.entry() }));
    let mut client = Talk::legacy(rig.door());

    client.meta = "\"progressToken\":\"mine\"".to_owned();
    let arguments = json!({ "duration": 0.2, "steps": 4 });
    let done = client.call("everything__trigger-long-running-operation", &arguments);
    assert!(done.contains("Steps: 4"), "{done}");
    let heard = client.heard("notifications/progress");
    let steps: Vec<_> =
        heard.iter().map(|note| (&note["params"]["progressToken"], &note["params"]["progress"])).collect();
    let token = json!("mine");
    assert_eq!(steps, [1, 2, 3, 4].map(|n| json!(n)).iter().map(|n| (&token, n)).collect::<Vec<_>>());
    client.meta.clear();

    let call = client.begin_call("everything__trigger-elicitation-request", &json!({}));
    let question = client.hear("elicitation/create");
    assert_eq!(question["params"]["requestedSchema"]["properties"]["name"]["type"], "string", "{question}");
    client.answer(&question, &json!({ "action": "accept", "content": { "name": "Ada", "check": true } }));
    let answer = parsed(&client.end(call));
    assert!(answer["result"].to_string().contains("Ada"), "{answer}");

    let call = client
        .begin_call("everything__trigger-sampling-request", &json!({ "prompt": "Say hi", "maxTokens": 10 }));
    let question = client.hear("sampling/createMessage");
    assert_eq!(question["params"]["maxTokens"], 10, "{question}");
    let content = json!({ "type": "text", "text": "hi from the model" });
    client.answer(&question, &json!({ "role": "assistant", "content": content, "model": "m" }));
    assert!(client.end_call(call).contains("hi from the model"));

    let uri = "gantry:everything/demo://resource/dynamic/text/{resourceId}";
    let reference = json!({ "type": "ref/resource", "uri": uri });
    let argument = json!({ "name": "resourceId", "value": "7" });
    let completed = client.result("completion/complete", &json!({ "ref": reference, "argument": argument }));
    assert_eq!(completed["completion"]["values"], json!(["7"]), "{completed}");
    let prompts = client.result("prompts/list", &json!({}));
    assert!(names(&prompts["prompts"]).iter().all(|name| name.starts_with("everything__")), "{prompts}");
}
