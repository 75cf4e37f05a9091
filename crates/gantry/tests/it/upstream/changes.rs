//! Servers that come, go, start together, and change what they have while Gantry runs.

use super::{Rig, kill, script, stdio, with};
use gantry_testkit::TestDir;
use gantry_testkit::faulty::Faulty;
use http::Method;
use serde_json::{Value, json};

/// What the home's file has so far.
fn lines(rig: &Rig, file: &str) -> usize {
    crate::pipeline::lines(&rig.home, file)
}

#[test]
fn ups_2_a_changed_list_is_listed_anew() {
    let rig = Rig::of(&json!({ "legacy": stdio(&[]), "modern": stdio(&["--era", "modern"]) }));
    for id in ["legacy", "modern"] {
        rig.ready(id);
        let grown = format!("{id}__grown_1");
        rig.error(&grown, &json!({}), "TOOL_NOT_FOUND");
        assert_eq!(rig.result(&format!("{id}__grow"), &json!({})), "grown-1");
        rig.server.eventually("the tool appears", || rig.tools_of(id).contains(&grown));
        assert_eq!(rig.result(&grown, &json!({})), "grown-1");
        assert_eq!(rig.result(&format!("{id}__rug_pull"), &json!({})), "Definition 2");
        rig.server.eventually("the description changes", || {
            let listed = rig.server.get("/api/v1/tools").json();
            let tools = listed["items"].as_array().expect("tools");
            tools.iter().any(|tool| {
                tool["name"] == format!("{id}__versioned") && tool["description"] == "Definition 2"
            })
        });
    }
    let events = rig.server.get_as_admin("/api/v1/events?follow=false").text;
    assert!(events.contains("tools_changed") && events.contains("legacy__grown_1"), "{events}");
}

#[test]
fn ups_2_what_a_tool_says_of_itself_arrives_unchanged() {
    let rig = Rig::of(&json!({ "s": stdio(&[]) }));
    rig.ready("s");
    let listed = rig.server.get("/api/v1/tools").json();
    let find = |name: &str| {
        let tools = listed["items"].as_array().expect("tools");
        tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("no {name}")).clone()
    };
    let add = find("s__add");
    let (title, description) = (&add["title"], &add["description"]);
    assert_eq!((title, description), (&json!("Tool add"), &json!("Adds two integers")));
    assert_eq!(add["inputSchema"]["required"], json!(["a", "b"]));
    assert_eq!(add["outputSchema"]["required"], json!(["sum"]));
    let hints = json!({ "readOnlyHint": false, "destructiveHint": true });
    assert_eq!(find("s__wipe")["annotations"], hints);
}

#[test]
fn ups_8_as_many_servers_start_at_once_as_configured() {
    // Each waits until all four have begun: one after the other, none of them would ever be ready.
    let wait = "touch begun-$0; until test -f begun-a -a -f begun-b -a -f begun-c -a -f begun-d; do sleep 0.02; done; exec $FAULTY";
    let entry = |id: &str| (id.to_owned(), with(script(wait, id), &json!({ "startupTimeoutMs": 60_000 })));
    let servers: Value = Value::Object(["a", "b", "c", "d"].map(entry).into_iter().collect());
    let rig = Rig::with_config(&json!({ "defaults": { "mcpInitConcurrency": 4 }, "mcpServers": servers }));
    for id in ["a", "b", "c", "d"] {
        rig.ready(id);
        assert_eq!(rig.status(id)["lastError"], Value::Null, "it was ready on its first try");
    }
}

#[test]
fn ups_8_no_more_servers_start_at_once_than_configured() {
    let wait = "echo $0 >> begun; until test -f go-$0; do sleep 0.02; done; exec $FAULTY";
    // One process a server: a client that has to find out the era starts two.
    let more = json!({ "startupTimeoutMs": 60_000, "protocol": "legacy" });
    let entry = |n: usize| (format!("s{n}"), with(script(wait, &format!("s{n}")), &more));
    let servers: Value = Value::Object((0..6).map(entry).collect());
    let rig = Rig::with_config(&json!({ "defaults": { "mcpInitConcurrency": 2 }, "mcpServers": servers }));
    for released in 0..6 {
        let expected = (released + 2).min(6);
        rig.server.eventually("two are on their way", || lines(&rig, "begun") >= expected);
        assert_eq!(lines(&rig, "begun"), expected, "{released} have gone on");
        let begun = rig.home.read("begun");
        let next = begun
            .lines()
            .find(|id| !rig.home.path().join(format!("go-{id}")).exists())
            .expect("one that waits");
        rig.home.write(&format!("go-{next}"), "");
        rig.ready(next);
    }
}

#[test]
fn ups_8_a_server_that_never_starts_holds_up_no_client_for_ever() {
    let never = || with(stdio(&["--never-start"]), &json!({ "startupTimeoutMs": 300 }));
    let rig = Rig::with_config(&json!({
        "defaults": { "mcpInitConcurrency": 1 },
        "mcpServers": { "a": never(), "b": never(), "z": stdio(&[]) },
    }));
    rig.ready("z");
    for id in ["a", "b"] {
        rig.down(id);
    }
}

#[test]
fn ups_5_a_server_is_added_restarted_and_removed_over_http() {
    let rig = Rig::at(TestDir::new());
    let tools = rig.tools();
    let entry = with(stdio(&[]), &json!({ "id": "late", "headers": { "A": "b" } }));
    let added = rig.admin(Method::POST, "/api/v1/servers", &entry);
    assert_eq!((added.status, &added.json()["id"]), (201, &json!("late")), "{added:?}");
    let reported = &added.json()["warnings"];
    assert_eq!(*reported, json!(["mcpServers.late.headers has no effect with type stdio"]));
    assert_eq!(rig.admin(Method::POST, "/api/v1/servers", &entry).status, 409);
    rig.ready("late");
    let pid = rig.result("late__pid", &json!({}));
    rig.restart("late");
    rig.replaced("late", &pid);
    let removed = rig.admin(Method::DELETE, "/api/v1/servers/late", &Value::Null);
    assert_eq!(removed.status, 200, "{removed:?}");
    assert_eq!(rig.tools(), tools, "its tools are gone with it");
    rig.error("late__pid", &json!({}), "TOOL_NOT_FOUND");
    assert_eq!(rig.server.get("/api/v1/servers").json()["items"], json!([]));
    assert_eq!(rig.metric("server_light", "late"), None);
}

#[test]
fn ups_5_adding_and_removing_a_server_leaves_cached_answers_of_others_alone() {
    let rig = Rig::at(TestDir::new().config("tools: { workspace: { toolsCache: { read_file: 600000 } } }\n"));
    rig.home.write("a.txt", "old");
    let is_cached = || rig.call("read_file", &json!({ "path": "a.txt" }))["extras"]["cached"] == true;
    assert!(!is_cached() && is_cached());
    let added = rig.admin(Method::POST, "/api/v1/servers", &with(stdio(&[]), &json!({ "id": "late" })));
    assert_eq!(added.status, 201, "{added:?}");
    rig.ready("late");
    assert!(is_cached(), "also while the new server is there");
    assert_eq!(rig.admin(Method::DELETE, "/api/v1/servers/late", &Value::Null).status, 200);
    assert!(is_cached(), "and when it is gone");
}

#[test]
fn ups_5_a_server_is_added_restarted_and_removed_from_the_command_line() {
    let rig = Rig::at(TestDir::new());
    let program = Faulty::program();
    let added =
        rig.home.run(["servers", "add", "late", "--", program.to_str().expect("UTF-8"), "--era", "modern"]);
    assert_eq!(added.code, 0, "{added:?}");
    rig.ready("late");
    assert_eq!(rig.home.call("late__echo", &json!({ "text": "x" }))["result"], "x");
    let pid = rig.result("late__pid", &json!({}));
    let restarted = rig.home.run(["servers", "restart", "late"]);
    assert_eq!(restarted.code, 0, "{restarted:?}");
    rig.replaced("late", &pid);
    assert_eq!(rig.home.run(["servers", "remove", "late"]).code, 0);
    assert!(rig.tools_of("late").is_empty());
    assert_eq!(rig.home.run(["servers", "remove", "late"]).code, 2, "there is none any more");
}

#[test]
fn ups_5_a_restart_tries_a_server_at_once_that_would_have_to_wait() {
    let rig = Rig::of(&json!({ "bad": script("test -f go || exit 9; exec $FAULTY", "bad") }));
    // After some failures the wait is longer than this test may take.
    rig.server.eventually("it has failed often", || {
        rig.restart("bad");
        rig.metric("server_failures_total", "bad").is_some() && rig.light("bad") == "red"
    });
    rig.home.write("go", "");
    rig.restart("bad");
    rig.ready("bad");
}

#[test]
fn ups_5_a_call_under_way_when_its_server_is_removed_fails_and_is_not_repeated() {
    let rig = Rig::beside_good(&super::journalling(&[]));
    rig.ready("bad");
    let call = json!({ "tool": "bad__sleep", "arguments": { "ms": 600_000 } });
    let id = super::cancel::under_way(&rig, "bad", &call);
    rig.while_good_works(|| {
        let removed = rig.admin(Method::DELETE, "/api/v1/servers/bad", &Value::Null);
        assert_eq!(removed.status, 200, "{removed:?}");
    });
    let outcome = crate::queues::outcome(&rig.server, &id).json();
    assert_eq!(outcome["ok"], false, "{outcome}");
    assert_eq!(outcome["extras"]["effect"], "none", "it only reads: {outcome}");
}

#[test]
fn ups_7_tools_of_a_server_can_be_picked_and_shown_under_their_own_names() {
    let rig = Rig::of(&json!({
        "a": with(stdio(&[]), &json!({ "toolsAllowed": ["e*", "pid"], "toolsDenied": ["env"] })),
        "b": with(stdio(&[]), &json!({ "prefix": false, "toolsAllowed": ["headers"] })),
    }));
    rig.ready("a");
    rig.server.eventually("b is there", || rig.tools().contains(&"headers".to_owned()));
    assert_eq!(rig.tools_of("a"), ["a__echo", "a__pid"]);
    assert_eq!(rig.call("headers", &json!({}))["namespace"], "b");
    rig.error("a__env", &json!({}), "TOOL_NOT_FOUND");
    kill(&rig.result("a__pid", &json!({})));
}
