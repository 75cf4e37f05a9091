//! UPS-1: the same server by every transport, found by nothing but its entry.

use super::{Rig, Talk, faulty};
use gantry_testkit::faulty::{Faulty, Kind};
use gantry_testkit::real_servers::Everything;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[test]
fn ups_1_a_server_lists_and_calls_alike_by_every_transport() {
    let kinds = [("http", Kind::Http), ("sse", Kind::Sse), ("websocket", Kind::Ws), ("tcp", Kind::Tcp)];
    let servers = kinds.map(|(word, kind)| (word, Faulty::start(kind, &[])));
    let mut entries = json!({ "stdio": faulty(&[]) });
    for (word, server) in &servers {
        entries[*word] = json!({ "type": word, "url": server.url });
    }
    // Other spellings of the same.
    entries["ws"] = json!({ "type": "ws", "url": entries["websocket"]["url"] });
    entries["streamable"] = json!({ "type": "streamable-http", "url": entries["http"]["url"] });
    entries["address"] = json!({ "type": "tcp", "address": servers[3].1.address.to_string() });
    // By the scheme alone.
    for (bare, word) in [("bare_http", "http"), ("bare_ws", "websocket"), ("bare_tcp", "tcp")] {
        entries[bare] = json!({ "url": entries[word]["url"] });
    }
    let rig = Rig::of(&entries);
    let mut client = rig.legacy();
    let listed = client.result("tools/list", &json!({}))["tools"].clone();
    let of = |id: &str| tools_of(&listed, id);
    let expected = of("stdio");
    assert!(expected.len() > 30, "{expected:?}");
    for id in entries.as_object().expect("entries").keys() {
        assert!(of(id) == expected, "{id} lists something else: {:?}", of(id).keys());
        assert_eq!(client.call(&format!("{id}__echo"), &json!({ "text": id })), *id);
        let sum = client
            .result("tools/call", &json!({ "name": format!("{id}__add"), "arguments": { "a": 40, "b": 2 } }));
        assert_eq!(
            (&sum["structuredContent"]["sum"], &sum["isError"]),
            (&json!(42), &json!(false)),
            "{id}: {sum}"
        );
        status_is(&rig, id);
    }
}

/// The definitions of a server's tools by their titles, without the names, which hold the server's id.
fn tools_of(listed: &Value, id: &str) -> BTreeMap<String, Value> {
    let prefix = format!("{id}__");
    let tools = listed.as_array().expect("tools").iter();
    let own = tools.filter(|tool| tool["name"].as_str().is_some_and(|name| name.starts_with(&prefix)));
    own.map(|tool| {
        let mut tool = tool.clone();
        tool["name"].take();
        (tool["title"].as_str().expect("a title").to_owned(), tool)
    })
    .collect()
}

/// That a server is well and says how it is reached.
#[track_caller]
fn status_is(rig: &Rig, id: &str) {
    let status = rig.server.get_as_admin(&format!("/api/v1/servers/{id}")).json();
    let kind = match id {
        "ws" | "bare_ws" => "websocket",
        "streamable" | "bare_http" => "http",
        "address" | "bare_tcp" => "tcp",
        other => other,
    };
    assert_eq!((&status["light"], &status["type"]), (&json!("green"), &json!(kind)), "{id}: {status}");
    assert_eq!(status["era"], "2025-11-25", "{id}: {status}");
}

#[test]
fn ups_1_a_real_server_lists_and_calls_alike_by_the_transports_it_has() {
    let (http, sse) = (Everything::start(Kind::Http), Everything::start(Kind::Sse));
    let rig = Rig::of(&json!({
        "http": { "type": "http", "url": http.url },
        "sse": { "type": "sse", "url": sse.url },
    }));
    let mut client = Talk::legacy(rig.door());
    let tools = client.tools();
    let of = |prefix: &str| tools.iter().filter_map(|name| name.strip_prefix(prefix)).collect::<Vec<_>>();
    assert!(of("http__").contains(&"echo") && of("http__") == of("sse__"), "{tools:?}");
    for id in ["http", "sse"] {
        assert_eq!(client.call(&format!("{id}__echo"), &json!({ "message": id })), format!("Echo: {id}"));
    }
}
