//! `gantry.lock`: definitions that a person has accepted, and what happens to those that are not accepted.

use super::{Rig, script, stdio};
use gantry_testkit::faulty::{Faulty, Kind, POISON};
use gantry_testkit::{CommandOutput, TestDir};
use serde_json::{Value, json};

/// A Gantry whose server `bad` is pinned as it was first, and `good` is free.
fn pinned() -> Rig {
    let rig = Rig::beside_good(&stdio(&[]));
    rig.ready("bad");
    let accepted = rig.admin(http::Method::POST, "/api/v1/lock", &json!({ "server": "bad" }));
    assert_eq!(accepted.status, 200, "{accepted:?}");
    rig
}

#[track_caller]
fn quarantined(rig: &Rig, tool: &str, words: &str) {
    rig.server.eventually("it is quarantined", || {
        rig.call(tool, &json!({}))["error"]["code"] == "TOOL_QUARANTINED"
    });
    let refused = rig.error(tool, &json!({}), "TOOL_QUARANTINED");
    let message = refused["error"]["message"].as_str().expect("a message");
    assert!(message.contains(words) && message.contains("gantry lock diff bad"), "{message}");
    assert_eq!(refused["extras"]["effect"], "none", "{refused}");
    rig.server.eventually("it is not offered", || !rig.tools().iter().any(|listed| listed == tool));
    assert_eq!(rig.status("bad")["quarantined"], 1);
    assert_eq!(rig.result("bad__echo", &json!({ "text": "x" })), "x", "its other tools go on");
}

#[track_caller]
fn accepted(ran: &CommandOutput) {
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("Accepted 1 definition"), "{ran:?}");
}

#[test]
fn ups_13_locking_pins_what_all_servers_have_and_says_so() {
    let rig = Rig::beside_good(&stdio(&[]));
    rig.ready("bad");
    let before = rig.home.run(["lock", "diff", "--json"]);
    assert_eq!(before.code, 1, "{before:?}");
    assert!(
        before.json().as_array().is_some_and(|all| all.iter().all(|d| d["change"] == "unpinned")),
        "{before:?}"
    );
    let locked = rig.home.run(["lock"]);
    assert_eq!(locked.code, 0, "{locked:?}");
    assert!(locked.stdout.contains("versioned") && locked.stderr.contains("gantry.lock"), "{locked:?}");
    let file: Value = serde_json::from_str(&rig.home.read("gantry.lock")).expect("JSON");
    for id in ["bad", "good"] {
        let definition = &file["servers"][id]["tools"]["versioned"]["definition"];
        assert_eq!(definition["description"], "Definition 1", "{id}");
    }
    let after = rig.home.run(["lock", "diff"]);
    assert_eq!((after.code, after.stdout.as_str()), (0, ""), "{after:?}");
    assert_eq!(rig.result("bad__versioned", &json!({})), "versioned");
}

#[test]
fn ups_13_a_definition_that_changes_while_running_waits_for_a_person() {
    let rig = pinned();
    assert_eq!(rig.result("bad__versioned", &json!({})), "versioned");
    assert_eq!(rig.result("bad__rug_pull", &json!({})), "Definition 2");
    quarantined(&rig, "bad__versioned", "not the pinned one any more");
    let diff = rig.home.run(["lock", "diff", "bad"]);
    assert_eq!(diff.code, 1, "{diff:?}");
    assert!(diff.stdout.contains("bad versioned: changed"), "{diff:?}");
    assert!(diff.stdout.contains("- Definition 1") && diff.stdout.contains("+ Definition 2"), "{diff:?}");
    // To pin once more accepts nothing that has changed, and without a person nothing is accepted at all.
    let again = rig.home.run(["lock"]);
    assert_eq!(again.code, 1, "{again:?}");
    let unasked = rig.home.run(["lock", "accept", "bad"]);
    assert_eq!(unasked.code, 2, "{unasked:?}");
    assert!(unasked.stderr.contains("--yes"), "{unasked:?}");
    quarantined(&rig, "bad__versioned", "not the pinned one any more");
    accepted(&rig.home.run(["lock", "accept", "bad/versioned", "--yes"]));
    assert_eq!(rig.result("bad__versioned", &json!({})), "versioned");
    assert_eq!(rig.status("bad")["quarantined"], 0);
    assert_eq!(rig.home.run(["lock", "diff", "bad"]).code, 0);
    // A server that is not pinned may change.
    assert_eq!(rig.home.run(["lock", "diff", "nobody"]).code, 2);
}

#[test]
fn ups_13_a_server_that_is_not_pinned_may_change() {
    let rig = pinned();
    rig.result("good__rug_pull", &json!({}));
    rig.result("good__grow", &json!({}));
    rig.server.eventually("the tool appears", || rig.call("good__grown_1", &json!({}))["ok"] == true);
    assert_eq!(rig.result("good__versioned", &json!({})), "versioned");
}

#[test]
fn ups_13_a_new_tool_of_a_pinned_server_waits_for_a_person() {
    let rig = pinned();
    assert_eq!(rig.result("bad__grow", &json!({})), "grown-1");
    quarantined(&rig, "bad__grown_1", "new on a pinned server");
    let why = rig.home.run(["doctor", "bad__grown_1"]);
    assert_eq!(why.code, 1, "{why:?}");
    assert!(
        why.stdout.contains("new on a pinned server") && why.stdout.contains("gantry lock diff bad"),
        "{why:?}"
    );
    let table = rig.home.run(["servers"]);
    assert!(table.stdout.contains("(1 quarantined)"), "{table:?}");
    accepted(&rig.home.run(["lock", "accept", "bad", "--yes"]));
    assert_eq!(rig.result("bad__grown_1", &json!({})), "grown-1");
}

#[test]
fn ups_13_a_definition_that_changed_between_two_starts_is_quarantined_at_once() {
    let start = "exec $FAULTY --definition-version $(cat version)";
    let home = TestDir::new().config(&json!({ "mcpServers": { "bad": script(start, "bad") } }).to_string());
    home.write("version", "1");
    let locked = home.run(["lock"]);
    assert_eq!(locked.code, 0, "{locked:?}");
    assert_eq!(home.call("bad__versioned", &json!({}))["result"], "versioned");
    home.write("version", "2");
    // In a command, and in a server that starts now: there is no moment in which it could be called.
    let refused = home.call("bad__versioned", &json!({}));
    assert_eq!(refused["error"]["code"], "TOOL_QUARANTINED", "{refused}");
    let rig = Rig::at(home);
    rig.ready("bad");
    quarantined(&rig, "bad__versioned", "not the pinned one any more");
    // The old definition comes back, and is the one that was accepted.
    rig.home.write("version", "1");
    rig.restart("bad");
    rig.server.eventually("it can be called", || rig.call("bad__versioned", &json!({}))["ok"] == true);
}

#[test]
fn ups_13_a_lock_that_cannot_be_read_lets_no_server_do_anything() {
    for broken in ["nonsense", "{}", r#"{"version":99,"servers":{}}"#, r#"{"version":1,"servers":{"bad":7}}"#]
    {
        let home = TestDir::new().config(&json!({ "mcpServers": { "bad": stdio(&[]) } }).to_string());
        home.write("gantry.lock", broken);
        let refused = home.call("bad__echo", &json!({ "text": "x" }));
        assert_eq!(refused["error"]["code"], "TOOL_QUARANTINED", "{broken}: {refused}");
        assert!(
            refused["error"]["message"].as_str().is_some_and(|why| why.contains("gantry.lock")),
            "{refused}"
        );
        assert_eq!(
            home.call("list_directory", &json!({ "path": "." }))["ok"],
            true,
            "what is no server goes on"
        );
        let doctor = home.run(["doctor"]);
        assert!(doctor.stdout.contains("gantry.lock"), "{broken}: {doctor:?}");
        assert_ne!(home.run(["lock"]).code, 0, "it is not replaced either");
        assert_eq!(home.read("gantry.lock"), broken);
    }
}

#[test]
fn ups_13_a_pin_is_for_the_server_under_its_name() {
    let home = TestDir::new().config(&json!({ "mcpServers": { "bad": stdio(&[]) } }).to_string());
    assert_eq!(home.run(["lock"]).code, 0);
    // Another program under the same name has other tools.
    let other = home.config(&json!({ "mcpServers": { "bad": stdio(&["--lying-schema"]) } }).to_string());
    let diff = other.run(["lock", "diff", "--json"]).json();
    let added: Vec<&Value> =
        diff.as_array().expect("a list").iter().filter(|d| d["change"] == "added").collect();
    assert!(added.iter().any(|d| d["tool"] == "lying-output"), "{diff}");
    assert_eq!(other.call("bad__lying_output", &json!({}))["error"]["code"], "TOOL_QUARANTINED");
}

#[test]
fn ups_13_definitions_that_hide_something_are_flagged_wherever_a_person_looks() {
    let rig = Rig::of(&json!({ "bad": stdio(&["--poison"]) }));
    rig.ready("bad");
    let listed = rig.home.run(["servers", "--json"]).json();
    let flags: Vec<&str> =
        listed[0]["flags"].as_array().expect("flags").iter().filter_map(Value::as_str).collect();
    let doctor = rig.home.run(["doctor"]);
    let diff = rig.home.run(["lock", "diff"]);
    for (tool, words) in [
        ("poison-tags", "hidden tag characters"),
        ("poison-bidi", "reverse the direction"),
        ("poison-zero-width", "without width"),
        ("poison-control", "control characters"),
        ("poison-long", "bytes long"),
    ] {
        assert!(POISON.iter().any(|(name, _)| *name == tool));
        assert!(flags.iter().any(|flag| flag.contains(tool) && flag.contains(words)), "{tool}: {flags:?}");
        assert!(doctor.stdout.contains(words), "{tool}: {doctor:?}");
        assert!(diff.stdout.contains(words), "{tool}: {diff:?}");
    }
    // What is hidden is shown by its name and in no other way.
    for shown in
        [&doctor.stdout, &diff.stdout, &rig.home.run(["servers"]).stdout, &rig.home.run(["lock"]).stdout]
    {
        let hidden = |c: char| matches!(c, '\u{e0000}'..='\u{e007f}' | '\u{202e}' | '\u{200b}' | '\u{1b}');
        assert!(!shown.contains(hidden), "{shown:?}");
    }
}

#[test]
fn ups_13_a_replica_with_another_definition_is_never_called_for_it() {
    let first = Faulty::start(Kind::Http, &[]);
    let second = Faulty::start(Kind::Http, &[]);
    let health = json!({ "intervalMs": 200, "timeoutMs": 1000 });
    let rig = Rig::of(
        &json!({ "bad": { "type": "http", "urls": [first.url, second.url], "healthCheck": health } }),
    );
    let both_ready = || rig.light("bad") == "green";
    rig.server.eventually("both are there", both_ready);
    let accepted = rig.admin(http::Method::POST, "/api/v1/lock", &json!({ "server": "bad" }));
    assert_eq!(accepted.status, 200, "{accepted:?}");
    // What is behind the second address becomes something else.
    let port = second.address.port();
    drop(second);
    rig.server.eventually("it is missed", || rig.status("bad")["replicas"][1]["light"] == "red");
    let second = Faulty::start_at(Kind::Http, port, &["--definition-version", "2"]);
    rig.server.eventually("both are there", both_ready);
    assert_eq!(rig.home.run(["lock", "diff", "bad"]).code, 0, "the first one is what was accepted");
    for _ in 0..12 {
        assert_eq!(rig.result("bad__versioned", &json!({})), "versioned");
    }
    let counted = |_| -> u64 {
        let counters: Value =
            serde_json::from_str(&rig.result("bad__session", &json!({}))).expect("counters");
        counters["calls"].as_u64().expect("a number")
    };
    let counts: Vec<u64> = (0..4).map(counted).collect();
    assert!(counts.contains(&1), "tools that are the same go to both, and the other ones do not: {counts:?}");
    let doctor = rig.home.run(["doctor"]);
    assert!(doctor.stdout.contains("has other tools than the rest: versioned;"), "{doctor:?}");
    // With the first one gone, nothing is left that was accepted.
    drop(first);
    quarantined(&rig, "bad__versioned", "not the pinned one any more");
    drop(second);
}
