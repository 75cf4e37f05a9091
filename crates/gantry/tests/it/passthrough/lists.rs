//! UPS-2: everything that servers list, page by page, and again when it changes.

use super::{Door, Rig, Talk, elements, faulty, members, names, raw};
use serde_json::{Value, json};

/// A server's own answer to a list, and how many entries it has.
#[track_caller]
fn listed(client: &mut Talk, method: &str, member: &str) -> Value {
    let mut result = client.result(method, &json!({}));
    assert_eq!(result.get("nextCursor"), None, "{method} comes in one piece: {result}");
    result[member].take()
}

#[test]
fn ups_2_every_page_of_every_list_is_read() {
    let rig = Rig::of(
        &json!({ "paged": faulty(&["--page", "2"]), "whole": faulty(&[]), "single": faulty(&["--page", "1"]) }),
    );
    let mut client = rig.legacy();
    for (method, member, key) in [
        ("tools/list", "tools", "name"),
        ("resources/list", "resources", "uri"),
        ("resources/templates/list", "resourceTemplates", "uriTemplate"),
        ("prompts/list", "prompts", "name"),
    ] {
        let all = members(&listed(&mut client, method, member), key);
        let of = |id: &str| {
            let prefixes = [format!("{id}__"), format!("gantry:{id}/")];
            let own = |name: &String| {
                prefixes.iter().find_map(|prefix| name.strip_prefix(prefix.as_str())).map(str::to_owned)
            };
            // A name with a hash of the server's id is not the same at another server.
            all.iter().filter_map(own).filter(|name| !name.starts_with("a_")).collect::<Vec<_>>()
        };
        assert!(of("whole").len() >= 4, "{method}: {all:?}");
        assert_eq!(of("paged"), of("whole"), "{method}");
        assert_eq!(of("single"), of("whole"), "{method}");
    }
    assert_eq!(client.call("paged__add", &json!({ "a": 1, "b": 2 })), r#"{"sum":3}"#);
}

#[test]
fn ups_2_a_cursor_without_a_character_is_a_cursor() {
    let rig = Rig::of(&json!({ "empty": faulty(&["--empty-cursor"]), "whole": faulty(&[]) }));
    let tools = rig.legacy().tools();
    let count = |prefix: &str| tools.iter().filter(|name| name.starts_with(prefix)).count();
    assert_eq!(count("empty__"), count("whole__"), "{tools:?}");
}

#[test]
fn ups_2_a_cursor_that_gantry_did_not_give_is_refused() {
    let rig = Rig::one();
    for mut client in [rig.legacy(), rig.modern()] {
        for method in ["tools/list", "resources/list", "prompts/list"] {
            client.error(method, &json!({ "cursor": "page:3" }), -32602);
        }
    }
}

#[test]
fn ups_2_the_whole_definition_reaches_clients_and_the_api_unchanged() {
    let rig = Rig::one();
    let tools = listed(&mut rig.legacy(), "tools/list", "tools");
    let tool = tools.as_array().expect("tools").iter().find(|tool| tool["name"] == "one__add");
    assert_eq!(
        tool.expect("it is listed"),
        &json!({
            "name": "one__add",
            "title": "Tool add",
            "description": "Adds two integers",
            "inputSchema": {
                "type": "object",
                "properties": { "a": { "type": "integer" }, "b": { "type": "integer" } },
                "required": ["a", "b"],
            },
            "outputSchema": { "type": "object", "properties": { "sum": { "type": "integer" } }, "required": ["sum"] },
            "annotations": { "readOnlyHint": true, "openWorldHint": false },
        })
    );
    // What people and other programs are shown is the same.
    let shown = rig.server.get("/api/v1/tools").json();
    let shown =
        shown["items"].as_array().expect("tools").iter().find(|tool| tool["name"] == "one__add").cloned();
    let shown = shown.expect("it is shown");
    for field in ["title", "description", "inputSchema", "outputSchema", "annotations"] {
        assert_eq!(shown[field], tool.expect("it is listed")[field], "{field}");
    }
}

/// Lets the server grow a tool, and returns its name as clients see it and as the server does.
#[track_caller]
fn grow(rig: &Rig) -> (String, String) {
    let own = rig.legacy().call("one__grow", &json!({}));
    (format!("one__{}", own.replace('-', "_")), own)
}

#[test]
fn ups_2_a_changed_list_is_sent_on_the_stream_of_every_entry_point() {
    let rig = Rig::one();
    let doors = rig.doors().into_iter().chain([("/sse", Door::Sse(&rig.server))]);
    let mut clients: Vec<_> = doors.map(|(what, door)| (what, Talk::legacy(door))).collect();
    let before = clients.iter_mut().map(|(_, client)| client.tools()).collect::<Vec<_>>();
    let (name, own) = grow(&rig);
    for ((what, client), before) in clients.iter_mut().zip(before) {
        let outcome = client.hear("notifications/tools/list_changed");
        assert_eq!(outcome["params"].get("_meta"), None, "{what}: {outcome}");
        // It is there as soon as the client is notified.
        let after = client.tools();
        assert!(!before.contains(&name) && after.contains(&name), "{what}: {after:?}");
        assert_eq!(after.len(), before.len() + 1, "{what}");
        assert_eq!(client.call(&name, &json!({})), own, "{what}");
    }
}

#[test]
fn ups_2_a_changed_list_is_sent_by_a_gantry_that_runs_for_one_client_only() {
    let home =
        gantry_testkit::TestDir::new().config(&json!({ "mcpServers": { "one": faulty(&[]) } }).to_string());
    let mut client = Talk::legacy(Door::Stdio(&home, &[]));
    let own = client.call("one__grow", &json!({}));
    client.hear("notifications/tools/list_changed");
    assert!(client.tools().contains(&"one__grown_1".to_owned()));
    assert_eq!(client.call("one__grown_1", &json!({})), own);
}

#[test]
fn ups_2_a_changed_list_is_sent_to_clients_that_listen_for_it() {
    let rig = Rig::one();
    let listening = |door: Door<'_>, wanted: &str| {
        let mut client = Talk::modern(door);
        let id =
            client.begin("subscriptions/listen", &json!({ "notifications": { wanted: true } }).to_string());
        let granted = client.hear("notifications/subscriptions/acknowledged");
        assert_eq!(granted["params"]["notifications"], json!({ wanted: true }), "{granted}");
        (id, client)
    };
    let mut clients = rig.doors().map(|(what, door)| (what, listening(door, "toolsListChanged")));
    let mut others = rig.doors().map(|(what, door)| (what, listening(door, "promptsListChanged").1));
    let (name, own) = grow(&rig);
    for (what, (id, client)) in &mut clients {
        let outcome = client.hear("notifications/tools/list_changed");
        let subscription = &outcome["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
        assert_eq!(*subscription, *id, "{what}: {outcome}");
        assert!(client.tools().contains(&name), "{what}");
        assert_eq!(client.call(&name, &json!({})), own, "{what}");
    }
    // Who listens for something else hears nothing of it.
    for (what, other) in &mut others {
        assert!(other.tools().contains(&name), "{what}");
        assert_eq!(other.heard("notifications/tools/list_changed"), [] as [Value; 0], "{what}");
    }
}

#[test]
fn ups_2_a_changed_definition_is_listed_as_it_is_now() {
    let rig = Rig::one();
    let mut client = rig.legacy();
    let description = |client: &mut Talk| {
        let answer = client.ask_raw("tools/list", "{}");
        let tools = elements(raw(&answer, &["result", "tools"]));
        let tool = tools.into_iter().find(|tool| raw(tool, &["name"]) == "\"one__versioned\"");
        raw(tool.expect("it is listed"), &["description"]).to_owned()
    };
    assert_eq!(description(&mut client), "\"Definition 1\"");
    assert_eq!(client.call("one__rug-pull", &json!({})), "Definition 2");
    client.hear("notifications/tools/list_changed");
    assert_eq!(description(&mut client), "\"Definition 2\"");
}

#[test]
fn ups_2_lists_of_both_eras_name_the_same_in_the_same_order() {
    let rig = Rig::two();
    let (mut old, mut new) = (rig.legacy(), rig.modern());
    for (method, member) in
        [("tools/list", "tools"), ("resources/list", "resources"), ("prompts/list", "prompts")]
    {
        let lists = [&mut old, &mut new].map(|client| names(&client.result(method, &json!({}))[member]));
        assert_eq!(lists[0], lists[1], "{method}");
        assert_eq!(lists[0], names(&old.result(method, &json!({}))[member]), "{method} is stable");
    }
}
