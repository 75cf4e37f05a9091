//! Servers that say what is right on the wire and far too much of it.

use super::{ROOM_KIB, Rig, journalling};
use crate::passthrough::{Door, Talk};
use crate::queues::{cancel, defer, outcome};
use gantry_testkit::Connection;
use serde_json::{Value, json};

/// Notifications that a server has sent when the test has seen enough.
const ENOUGH: u64 = 100_000;

/// What a server may say besides answers.
const NOTES: [&str; 5] = [
    "notifications/progress",
    "notifications/message",
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
];

/// What a client has heard by now, by method.
fn heard(client: &mut Talk) -> Vec<(&'static str, Value)> {
    let notes = NOTES.into_iter().flat_map(|method| {
        client.heard(method).into_iter().map(move |note| (method, note["params"].clone())).collect::<Vec<_>>()
    });
    notes.collect()
}

/// How much the server has said so far; that it answers is worth something too.
#[track_caller]
fn chattered(rig: &Rig) -> u64 {
    let counters: Value = serde_json::from_str(&rig.result("bad__session", &json!({}))).expect("counters");
    counters["chattered"].as_u64().expect("a number")
}

#[test]
fn ups_5_heavy_notifications_without_end_block_no_client_and_go_only_to_clients_that_asked() {
    let rig = Rig::beside_good(&journalling(&[]));
    rig.ready("bad");
    let door = Door::Http(&rig.server, "/mcp");
    let mut quiet = Talk::legacy(door);
    quiet.result("logging/setLevel", &json!({ "level": "alert" }));
    let mut caller = Talk::modern(door);
    let mut listener = Talk::modern(door);
    let wanted = json!({ "toolsListChanged": true });
    listener.begin("subscriptions/listen", &json!({ "notifications": wanted }).to_string());
    listener.hear("notifications/subscriptions/acknowledged");
    let before = rig.peak_kib();
    let call = rig.while_good_works(|| {
        // This one has no client that waits, and the other client asks for neither progress nor log messages.
        let call = defer(&rig.server, &json!({ "tool": "bad__chatter", "arguments": {} }));
        let own = caller.begin_call("bad__chatter", &json!({ "notes": 1000 }));
        for n in 0..50 {
            assert_eq!(rig.result("bad__echo", &json!({ "text": n.to_string() })), n.to_string());
        }
        assert_eq!(caller.end_call(own), "chattered");
        for tenth in 1..=10 {
            rig.server.eventually("it goes on", || chattered(&rig) >= ENOUGH / 10 * tenth);
        }
        // Who stops it is heard through all of it.
        cancel(&rig.server, &call);
        call
    });
    let ended = outcome(&rig.server, &call).json();
    assert_eq!(ended["error"]["code"], "CANCELED", "{ended}");
    rig.server.eventually("the server is told", || rig.journal() == ["cancelled"]);
    assert!(rig.peak_kib() < before + ROOM_KIB, "{} KiB after {before} KiB", rig.peak_kib());
    assert!(rig.server.stderr().len() < 256 * 1024, "{} bytes of log", rig.server.stderr().len());
    let status = rig.status("bad");
    assert_eq!((&status["light"], &status["lastError"]), (&json!("green"), &Value::Null), "{status}");
    // What comes last is heard, so all that came before has been.
    rig.result("bad__grow", &json!({}));
    listener.hear("notifications/tools/list_changed");
    quiet.hear("notifications/tools/list_changed");
    caller.call("bad__echo", &json!({ "text": "x" }));
    for (what, client) in [("quiet", &mut quiet), ("listener", &mut listener), ("caller", &mut caller)] {
        assert_eq!(heard(client), [], "{what}");
    }
}

#[test]
fn ups_10_heavy_who_asks_for_all_progress_of_a_flood_hears_it_in_order_and_loses_nothing_else() {
    let rig = Rig::beside_good(&journalling(&[]));
    rig.ready("bad");
    let mut client = Talk::legacy(Door::Http(&rig.server, "/mcp"));
    client.result("logging/setLevel", &json!({ "level": "alert" }));
    client.meta = r#""progressToken":"mine""#.to_owned();
    let before = rig.peak_kib();
    let answered = rig.while_good_works(|| client.call("bad__chatter", &json!({ "notes": 20_000 })));
    assert_eq!(answered, "chattered");
    let steps: Vec<u64> = client
        .heard("notifications/progress")
        .iter()
        .map(|note| {
            assert_eq!(note["params"]["progressToken"], "mine", "{note}");
            note["params"]["progress"].as_u64().expect("a number")
        })
        .collect();
    // A flood may be thinned out, but what is heard is in order.
    assert!(!steps.is_empty() && steps.is_sorted(), "{} reports", steps.len());
    assert_eq!(client.heard("notifications/message"), [] as [Value; 0]);
    assert!(rig.peak_kib() < before + ROOM_KIB, "{} KiB after {before} KiB", rig.peak_kib());
    client.meta.clear();
    assert_eq!(client.call("bad__echo", &json!({ "text": "x" })), "x");
}

#[test]
fn ups_10_heavy_a_flood_that_belongs_to_no_call_is_heard_by_those_who_want_it_and_fills_no_memory() {
    let rig = Rig::beside_good(&journalling(&[]));
    rig.ready("bad");
    let door = Door::Http(&rig.server, "/mcp");
    let (mut loud, mut quiet, stalled) = (Talk::legacy(door), Talk::legacy(door), Talk::legacy(door));
    quiet.result("logging/setLevel", &json!({ "level": "alert" }));
    loud.result("logging/setLevel", &json!({ "level": "info" }));
    let _deaf = without_reading(&rig, &stalled);
    let before = rig.peak_kib();
    rig.while_good_works(|| {
        let flood = json!({ "notes": ENOUGH / 2, "ms": 50 });
        assert_eq!(rig.result("bad__chatter", &flood), "chatters");
        for tenth in 1..=10 {
            rig.server.eventually("it goes on", || chattered(&rig) >= ENOUGH / 10 * tenth);
            assert_eq!(quiet.call("bad__echo", &json!({ "text": "x" })), "x");
        }
    });
    assert!(rig.peak_kib() < before + ROOM_KIB, "{} KiB after {before} KiB", rig.peak_kib());
    assert!(rig.server.stderr().len() < 256 * 1024, "{} bytes of log", rig.server.stderr().len());
    // What comes last is heard, so all that came before has been.
    rig.result("bad__grow", &json!({}));
    for client in [&mut loud, &mut quiet] {
        rig.server.eventually("the change is heard", || {
            client.hear("notifications/tools/list_changed");
            client.tools().contains(&"bad__grown_1".to_owned())
        });
    }
    let numbers: Vec<u64> = loud
        .heard("notifications/message")
        .iter()
        .filter_map(|note| note["params"]["data"].as_str()?.strip_prefix("chatter ")?.parse().ok())
        .collect();
    assert!(!numbers.is_empty() && numbers.is_sorted(), "{} messages", numbers.len());
    for client in [&mut loud, &mut quiet] {
        assert_eq!(client.heard("notifications/progress"), [] as [Value; 0], "nobody asked for it");
    }
    assert_eq!(quiet.heard("notifications/message"), [] as [Value; 0]);
}

/// Opens the stream of a client's session once more, in place of the client's own, and never reads it.
fn without_reading(rig: &Rig, client: &Talk) -> Connection {
    let session = client.way.seen().session.expect("a session");
    let mut connection = rig.server.connect();
    let head = format!(
        "GET /mcp HTTP/1.1\r\nhost: {}\r\naccept: text/event-stream\r\nmcp-session-id: {session}\r\n\r\n",
        rig.server.address
    );
    connection.send(head.as_bytes()).expect("it is taken");
    connection
}
