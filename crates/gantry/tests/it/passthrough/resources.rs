//! UPS-10: resources and their templates, under URIs that say whose they are.

use super::{Rig, Talk, faulty, members, with};
use gantry_testkit::test_dir::executable;
use serde_json::{Value, json};

/// The URIs of the resources of the faulty server, and the start of those that its templates make.
const OWN: [&str; 5] = [
    "faulty://text/one",
    "faulty://text/two",
    "faulty://text/three",
    "faulty://data/json",
    "faulty://data/bytes",
];

fn uri(uri: &str) -> Value {
    json!({ "uri": uri })
}

/// The one content of a resource.
#[track_caller]
fn read(client: &mut Talk, shown: &str) -> Value {
    let mut result = client.result("resources/read", &uri(shown));
    assert_eq!(result["contents"].as_array().map(Vec::len), Some(1), "{result}");
    result["contents"][0].take()
}

#[test]
fn ups_10_resources_of_two_servers_with_the_same_uris_do_not_collide() {
    let rig = Rig::two();
    for mut client in [rig.legacy(), rig.modern()] {
        let listed = client.result("resources/list", &json!({}));
        let shown = members(&listed["resources"], "uri");
        let of = |server: &str| OWN.map(|own| format!("gantry:{server}/{own}"));
        assert_eq!(shown, [of("one"), of("two")].concat());
        for uri in shown {
            assert_eq!(read(&mut client, &uri)["uri"], json!(uri));
        }
        let content = read(&mut client, "gantry:two/faulty://data/json");
        assert_eq!(
            content,
            json!({ "uri": "gantry:two/faulty://data/json", "mimeType": "application/json", "text": "{\"odd\":1.10}" })
        );
        assert_eq!(read(&mut client, "gantry:one/faulty://data/bytes")["blob"], "AAECAwQ=");
    }
}

#[test]
fn ups_10_requests_besides_tools_are_events_for_those_who_watch() {
    let rig = Rig::two();
    let mut client = rig.legacy();
    read(&mut client, "gantry:one/faulty://text/one");
    client.error("resources/read", &uri("gantry:one/faulty://text/none"), -32002);
    let outcome = rig.server.get_as_admin("/api/v1/events?follow=false").text;
    let outcome: Vec<Value> = outcome
        .lines()
        .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
        .filter(|event: &Value| event["type"] == "request_answered")
        .collect();
    let expected = [
        json!(["resources/read", "gantry:one/faulty://text/one", "ok"]),
        json!(["resources/read", "gantry:one/faulty://text/none", "failed"]),
    ];
    let seen = outcome.iter().map(|event| json!([event["method"], event["subject"], event["status"]]));
    assert_eq!(seen.collect::<Vec<_>>(), expected);
}

#[test]
fn ups_10_templates_are_listed_and_what_they_make_is_read() {
    let rig = Rig::two();
    let mut client = rig.legacy();
    let listed = client.result("resources/templates/list", &json!({}));
    let templates = members(&listed["resourceTemplates"], "uriTemplate");
    let own = ["faulty://item/{id}", "faulty://user/{name}", "faulty://file/{+path}", "faulty://day/{date}"];
    let of = |server: &str| own.map(|own| format!("gantry:{server}/{own}"));
    assert_eq!(templates, [of("one"), of("two")].concat());
    for (shown, text) in [
        ("gantry:one/faulty://item/7", "7"),
        ("gantry:two/faulty://user/Ada%20L", "Ada%20L"),
        ("gantry:one/faulty://file/a/b?c=d#e", "a/b?c=d#e"),
    ] {
        assert_eq!(read(&mut client, shown), json!({ "uri": shown, "mimeType": "text/plain", "text": text }));
    }
}

#[test]
fn ups_10_a_servers_own_uri_is_enough_where_only_one_server_has_it() {
    let rig = Rig::one();
    let mut client = rig.legacy();
    let expected = json!({ "uri": OWN[0], "mimeType": "text/plain", "text": "the first resource" });
    assert_eq!(read(&mut client, OWN[0]), expected);
    assert_eq!(read(&mut client, "faulty://item/7")["uri"], "faulty://item/7");
    let rig = Rig::two();
    let mut client = rig.legacy();
    let refused = client.error("resources/read", &uri(OWN[0]), -32002);
    assert_eq!(refused["data"]["uri"], OWN[0], "{refused}");
}

#[test]
fn ups_10_an_id_that_is_no_part_of_a_uri_is_escaped_in_it() {
    let rig = Rig::of(&json!({ "my server": faulty(&[]), "a.b-c_1": faulty(&[]) }));
    let mut client = rig.legacy();
    let listed = client.result("resources/list", &json!({}));
    let shown = members(&listed["resources"], "uri");
    let of = |server: &str| OWN.map(|own| format!("gantry:{server}/{own}"));
    assert_eq!(shown, [of("a.b-c_1"), of("my%20server")].concat());
    for uri in &shown {
        assert_eq!(read(&mut client, uri)["uri"], json!(uri));
    }
}

#[test]
fn ups_10_a_resource_that_is_not_there_has_the_code_of_the_clients_era() {
    let rig = Rig::two();
    for (mut client, code) in [(rig.legacy(), -32002), (rig.modern(), -32602)] {
        for missing in [
            "gantry:one/faulty://nowhere",
            "gantry:three/faulty://text/one",
            "gantry:one",
            "gantry:",
            "gantry:ONE/faulty://text/one",
            "gantry:one%2Ffaulty://text/one",
            "faulty://nowhere",
            "",
        ] {
            client.error("resources/read", &uri(missing), code);
        }
        // A server that says itself what it lacks names it as the client did.
        let refused = client.error("resources/read", &uri("gantry:two/faulty://nowhere"), code);
        assert_eq!(refused["message"], "resource not found", "{refused}");
        assert_eq!(refused["data"], uri("gantry:two/faulty://nowhere"), "{refused}");
        let wrong = client.ask("resources/read", &json!({ "uri": 7 }));
        assert!(wrong["error"]["code"].is_i64(), "{wrong}");
    }
}

#[test]
fn ups_10_uris_of_a_server_without_a_prefix_are_unchanged() {
    let rig = Rig::of(
        &json!({ "bare": with(faulty(&[]), &json!({ "prefix": false, "toolsAllowed": ["echo", "touch"] })), "one": faulty(&[]) }),
    );
    let mut client = rig.legacy();
    let listed = client.result("resources/list", &json!({}));
    let shown = members(&listed["resources"], "uri");
    assert_eq!(shown, [OWN.map(str::to_owned), OWN.map(|own| format!("gantry:one/{own}"))].concat());
    assert_eq!(read(&mut client, "gantry:one/faulty://text/one")["uri"], "gantry:one/faulty://text/one");
    client.result("resources/subscribe", &uri("gantry:one/faulty://text/two"));
    client.call("one__touch", &uri("faulty://text/two"));
    assert_eq!(client.hear("notifications/resources/updated")["params"], uri("gantry:one/faulty://text/two"));
}

#[test]
fn ups_10_a_resource_that_only_a_server_without_a_prefix_has_is_read_by_its_own_uri() {
    let rig = Rig::of(
        &json!({ "bare": with(faulty(&[]), &json!({ "prefix": false, "toolsAllowed": ["echo", "touch"] })) }),
    );
    let mut client = rig.legacy();
    assert_eq!(read(&mut client, OWN[2])["text"], "# the third resource");
    client.result("resources/subscribe", &uri(OWN[2]));
    client.call("touch", &uri(OWN[2]));
    assert_eq!(client.hear("notifications/resources/updated")["params"], uri(OWN[2]));
    client.error("resources/read", &uri("gantry:bare/faulty://text/one"), -32002);
}

#[test]
fn ups_10_uris_in_results_of_tools_are_mapped_and_can_be_read() {
    let everything = gantry_testkit::real_servers::find("everything");
    let folder = tempfile::tempdir().expect("a folder");
    let ready = everything.prepare(folder.path());
    let fixture = json!({ "command": executable("fixture"), "args": ["--stdio"] });
    let rig = Rig::of(&json!({ "everything": ready.entry(), "fixture": fixture }));
    let mut client = rig.legacy();
    let links = client.result(
        "tools/call",
        &json!({ "name": "everything__get-resource-links", "arguments": { "count": 2 } }),
    );
    let links =
        links["content"].as_array().expect("content").iter().filter(|block| block["type"] == "resource_link");
    let uris: Vec<String> = links.map(|link| link["uri"].as_str().expect("a URI").to_owned()).collect();
    assert_eq!(uris.len(), 2);
    for shown in uris {
        assert!(shown.starts_with("gantry:everything/demo://"), "{shown}");
        assert_eq!(read(&mut client, &shown)["uri"], json!(shown));
    }
    let embedded =
        client.result("tools/call", &json!({ "name": "fixture__test_embedded_resource", "arguments": {} }));
    assert_eq!(
        embedded["content"][0]["resource"]["uri"], "gantry:fixture/test://embedded-resource",
        "{embedded}"
    );
    assert_eq!(embedded["content"][0]["resource"]["text"], "This is an embedded resource content.");
}

/// That a client hears of a change of this resource, and of nothing else since.
#[track_caller]
fn updated(client: &mut Talk, shown: &str, what: &str) -> Value {
    let outcome = client.hear("notifications/resources/updated");
    assert_eq!(outcome["params"]["uri"], shown, "{what}: {outcome}");
    outcome
}

#[test]
fn ups_10_a_subscriber_of_a_resource_gets_its_changes_until_it_unsubscribes() {
    let rig = Rig::two();
    let mut toucher = rig.legacy();
    let mut touch = |server: &str, own: &str| toucher.call(&format!("{server}__touch"), &uri(own));
    let doors = rig.doors().into_iter().chain([("/sse", super::Door::Sse(&rig.server))]);
    for (what, door) in doors {
        let mut client = Talk::legacy(door);
        let (first, second) = ("gantry:one/faulty://text/one", "gantry:one/faulty://item/7");
        assert_eq!(client.result("resources/subscribe", &uri(first)), json!({}), "{what}");
        client.result("resources/subscribe", &uri(second));
        // Neither another resource nor the same one of another server matches.
        touch("one", "faulty://text/two");
        touch("two", "faulty://text/one");
        touch("one", "faulty://text/one");
        updated(&mut client, first, what);
        assert_eq!(client.result("resources/unsubscribe", &uri(first)), json!({}), "{what}");
        touch("one", "faulty://text/one");
        touch("one", "faulty://item/7");
        updated(&mut client, second, what);
        assert_eq!(client.heard("notifications/resources/updated"), [] as [Value; 0], "{what}");
        client.error("resources/subscribe", &uri("gantry:three/a:b"), -32602);
    }
}

#[test]
fn ups_10_a_client_that_listens_for_a_resource_gets_its_changes() {
    let rig = Rig::two();
    let mut toucher = rig.legacy();
    for (what, door) in rig.doors() {
        let mut client = Talk::modern(door);
        let wanted = ["gantry:two/faulty://text/one", "gantry:three/a:b"];
        let id = client.begin(
            "subscriptions/listen",
            &json!({ "notifications": { "resourceSubscriptions": wanted } }).to_string(),
        );
        let granted = client.hear("notifications/subscriptions/acknowledged");
        // What is not there cannot be watched, and the client gets an error.
        assert_eq!(
            granted["params"]["notifications"],
            json!({ "resourceSubscriptions": [wanted[0]] }),
            "{what}"
        );
        toucher.call("one__touch", &uri("faulty://text/one"));
        toucher.call("two__touch", &uri("faulty://text/one"));
        let outcome = updated(&mut client, wanted[0], what);
        assert_eq!(
            outcome["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id,
            "{what}: {outcome}"
        );
    }
}

#[test]
fn ups_10_one_who_leaves_takes_nothing_from_one_who_comes_at_the_same_time() {
    let rig = Rig::one();
    let (mut leaving, mut coming) = (rig.legacy(), rig.legacy());
    let mut toucher = rig.legacy();
    let watched = uri("gantry:one/faulty://text/one");
    leaving.result("resources/subscribe", &watched);
    for round in 0..50 {
        let unsubscribed = leaving.begin("resources/unsubscribe", &watched.to_string());
        let subscribed = coming.begin("resources/subscribe", &watched.to_string());
        leaving.end(unsubscribed);
        coming.end(subscribed);
        toucher.call("one__touch", &uri(OWN[0]));
        updated(&mut coming, "gantry:one/faulty://text/one", &format!("round {round}"));
        std::mem::swap(&mut leaving, &mut coming);
    }
}
