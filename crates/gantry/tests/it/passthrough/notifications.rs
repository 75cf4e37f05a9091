//! UPS-10: log messages, as loud as each client wants them.

use super::{Rig, Talk};
use serde_json::{Value, json};

/// The data of every log message that a client has heard.
fn logged(client: &mut Talk) -> Vec<String> {
    let heard = client.heard("notifications/message");
    heard.iter().map(|note| note["params"]["data"].as_str().expect("a text").to_owned()).collect()
}

fn log(text: &str, level: &str) -> Value {
    json!({ "text": text, "level": level })
}

#[test]
fn ups_10_what_a_server_logs_during_a_call_reaches_its_client_at_the_level_it_set() {
    let rig = Rig::one();
    for (what, door) in rig.doors() {
        let mut client = Talk::legacy(door);
        client.call("one__log", &log("by default", "info"));
        let note = client.hear("notifications/message");
        assert_eq!(
            note["params"],
            json!({ "level": "info", "logger": "faulty", "data": "by default" }),
            "{what}"
        );
        assert_eq!(client.result("logging/setLevel", &json!({ "level": "error" })), json!({}), "{what}");
        for level in ["debug", "info", "warning", "error", "emergency"] {
            client.call("one__log", &log(level, level));
        }
        assert_eq!(logged(&mut client), ["error", "emergency"], "{what}");
        client.result("logging/setLevel", &json!({ "level": "debug" }));
        client.call("one__log", &log("quiet", "debug"));
        assert_eq!(logged(&mut client), ["quiet"], "{what}");
        let refused = client.error("logging/setLevel", &json!({ "level": "loud" }), -32602);
        assert!(refused["message"].as_str().is_some_and(|text| text.contains("emergency")), "{refused}");
    }
}

#[test]
fn ups_10_a_level_is_one_clients_own() {
    let rig = Rig::one();
    let (mut loud, mut quiet) = (rig.legacy(), rig.legacy());
    loud.result("logging/setLevel", &json!({ "level": "debug" }));
    quiet.result("logging/setLevel", &json!({ "level": "alert" }));
    for (client, text) in [(&mut loud, "for the loud one"), (&mut quiet, "for the quiet one")] {
        client.call("one__log", &log(text, "warning"));
    }
    // What is said during a call is for the client of that call.
    assert_eq!(logged(&mut loud), ["for the loud one"]);
    assert_eq!(logged(&mut quiet), [] as [&str; 0]);
}

#[test]
fn ups_10_what_a_server_logs_apart_from_calls_reaches_every_client_that_wants_it() {
    let rig = Rig::one();
    let mut clients: Vec<_> = rig.doors().map(|(what, door)| (what, Talk::legacy(door))).into();
    let mut quiet = rig.legacy();
    for (_, client) in &mut clients {
        client.result("logging/setLevel", &json!({ "level": "notice" }));
    }
    quiet.result("logging/setLevel", &json!({ "level": "alert" }));
    let mut speaker = rig.legacy();
    speaker.call("one__log", &json!({ "text": "later", "level": "warning", "ms": 50 }));
    for (what, client) in &mut clients {
        let note = client.hear("notifications/message");
        let expected = json!({ "level": "warning", "logger": "faulty", "data": "later" });
        assert_eq!(note["params"], expected, "{what}");
    }
    // The next one is heard by all, so the one before was not on its way any more.
    speaker.call("one__log", &json!({ "text": "last", "level": "emergency", "ms": 50 }));
    assert_eq!(quiet.hear("notifications/message")["params"]["data"], "last");
    assert_eq!(logged(&mut quiet), [] as [&str; 0]);
}

#[test]
fn ups_10_a_client_of_the_newer_era_hears_what_its_request_asks_for_and_nothing_else() {
    let rig = Rig::one();
    for (what, door) in rig.doors() {
        let mut client = Talk::modern(door);
        client.call("one__log", &log("not asked for", "emergency"));
        client.meta = r#""io.modelcontextprotocol/logLevel":"warning""#.to_owned();
        client.call("one__log", &log("too quiet", "info"));
        client.call("one__log", &log("heard", "error"));
        client.meta.clear();
        client.call("one__log", &log("not asked for again", "emergency"));
        assert_eq!(logged(&mut client), ["heard"], "{what}");
        let unknown = client.ask("logging/setLevel", &json!({ "level": "debug" }));
        assert_eq!(unknown["error"]["code"], -32601, "{what}: {unknown}");
    }
}
