//! Servers that go wrong in the middle of a call.

use super::{ROOM_KIB, Rig, journalling, kill, stdio, with};
use serde_json::{Value, json};

#[test]
fn ups_5_a_read_that_its_server_died_of_has_no_effect_and_the_server_is_back() {
    let rig = Rig::beside_good(&journalling(&[]));
    rig.ready("bad");
    rig.while_good_works(|| {
        let failed = rig.error("bad__die", &json!({}), "EXECUTION_ERROR");
        let message = failed["error"]["message"].as_str().expect("a message");
        assert!(message.contains("server bad was lost"), "{message}");
        assert_eq!(failed["extras"]["effect"], "none", "{failed}");
        rig.server.eventually("it is noticed", || !rig.status("bad")["lastError"].is_null());
        rig.ready("bad");
    });
    assert_eq!(rig.journal(), ["died in die"], "a call is sent once");
    assert_eq!(rig.result("bad__echo", &json!({ "text": "back" })), "back");
    let why = rig.status("bad")["lastError"].as_str().expect("a reason").to_owned();
    assert!(why.contains("exit code 7: faulty: it was told to die in die"), "{why}");
}

#[test]
fn ups_5_a_write_that_its_server_died_of_has_an_unknown_outcome_and_is_not_repeated() {
    let rig = Rig::beside_good(&journalling(&["--exit-mid-call"]));
    rig.ready("bad");
    rig.while_good_works(|| {
        let failed = rig.error("bad__journal", &json!({ "text": "x" }), "OUTCOME_UNKNOWN");
        assert_eq!(failed["extras"]["effect"], "possible", "{failed}");
        let message = failed["error"]["message"].as_str().expect("a message");
        assert!(message.contains("look before you try again"), "{message}");
        let id = failed["id"].as_str().expect("an id");
        let record = rig.server.get(&format!("/api/v1/calls/{id}")).json()["record"].take();
        assert_eq!(
            (&record["error"]["code"], &record["effectState"], &record["state"]),
            (&json!("OUTCOME_UNKNOWN"), &json!("possible"), &json!("OUTCOME_UNKNOWN")),
            "{record}"
        );
        rig.server.eventually("it is noticed", || !rig.status("bad")["lastError"].is_null());
        rig.ready("bad");
    });
    assert_eq!(rig.journal(), ["died in journal"], "a call is sent once");
}

#[test]
fn cal_8_a_call_that_hangs_times_out_is_cancelled_at_the_server_and_its_other_tools_go_on() {
    let limits = json!({ "toolsTimeout": { "hang": 400, "sleep": 400 } });
    let rig = Rig::beside_good(&with(journalling(&[]), &limits));
    rig.ready("bad");
    rig.while_good_works(|| {
        for (tool, arguments) in [("bad__sleep", json!({ "ms": 600_000 })), ("bad__hang", json!({}))] {
            let failed = rig.error(tool, &arguments, "TIMEOUT");
            assert_eq!(failed["error"]["message"], "(tool failed: timeout)", "{failed}");
            assert_eq!(failed["error"]["details"]["timeoutMs"], 400, "{failed}");
        }
        assert_eq!(rig.result("bad__echo", &json!({ "text": "x" })), "x");
    });
    rig.server.eventually("the server is told", || rig.journal() == ["cancelled"]);
    // It is the same process and the same connection as before, and its light stays green.
    let counters: Value = serde_json::from_str(&rig.result("bad__session", &json!({}))).expect("counters");
    assert_eq!((&counters["connections"], &counters["calls"]), (&json!(1), &json!(4)), "{counters}");
    let status = rig.status("bad");
    assert_eq!((&status["light"], &status["lastError"]), (&json!("green"), &Value::Null), "{status}");
}

#[test]
fn ups_5_calls_beside_a_hanging_one_are_answered_by_the_same_server() {
    let rig = Rig::of(&json!({ "bad": stdio(&[]) }));
    rig.ready("bad");
    let hanging = json!({ "tool": "bad__hang", "mode": "defer" }).to_string();
    let ids: Vec<String> = (0..20)
        .map(|_| rig.server.post("/api/v1/calls", &hanging).json()["id"].as_str().expect("an id").to_owned())
        .collect();
    for n in 0..50 {
        assert_eq!(rig.result("bad__echo", &json!({ "text": n.to_string() })), n.to_string());
    }
    let states = ids.iter().map(|id| rig.server.get(&format!("/api/v1/calls/{id}")).json()["state"].clone());
    assert_eq!(states.collect::<Vec<_>>(), vec![json!("EXECUTING"); 20]);
    ids.iter().for_each(|id| crate::queues::cancel(&rig.server, id));
}

#[test]
fn ups_5_a_flood_of_what_is_no_message_is_skipped_in_little_memory() {
    let rig = Rig::beside_good(&stdio(&[]));
    rig.ready("bad");
    let before = rig.peak_kib();
    rig.while_good_works(|| assert_eq!(rig.result("bad__flood", &json!({ "mb": 100 })), "flooded"));
    assert!(rig.peak_kib() < before + ROOM_KIB, "{} KiB after {before} KiB", rig.peak_kib());
    assert_eq!(rig.result("bad__echo", &json!({ "text": "x" })), "x");
    assert!(rig.server.stderr().len() < 256 * 1024, "{} bytes of log", rig.server.stderr().len());
}

#[test]
fn ups_5_a_line_of_a_hundred_megabytes_fails_its_call_in_little_memory() {
    let rig = Rig::beside_good(&stdio(&[]));
    rig.ready("bad");
    let before = rig.peak_kib();
    rig.while_good_works(|| {
        let failed = rig.error("bad__long_line", &json!({ "mb": 100 }), "EXECUTION_ERROR");
        let message = failed["error"]["message"].as_str().expect("a message");
        assert!(message.contains("a line of more than 16777216 bytes"), "{message}");
    });
    assert!(rig.peak_kib() < before + ROOM_KIB, "{} KiB after {before} KiB", rig.peak_kib());
    // The line is skipped, and what follows it on the same connection is read.
    assert_eq!(rig.result("bad__echo", &json!({ "text": "x" })), "x");
    assert_eq!(rig.light("bad"), "green");
}

#[test]
fn cal_9_a_line_that_is_long_but_allowed_is_stored_whole() {
    let rig = Rig::of(&json!({ "bad": stdio(&[]) }));
    rig.ready("bad");
    let reply = rig.call("bad__long_line", &json!({ "mb": 8 }));
    assert_eq!(reply["ok"], true, "{reply}");
    let stored = &reply["result"]["tool_output"];
    assert_eq!(stored["reason"], "size_limit_exceeded", "{reply}");
    assert!(stored["bytes"].as_u64() >= Some(8 * 1024 * 1024), "{stored}");
}

#[test]
fn ups_5_half_a_message_fails_its_call_and_no_other() {
    let rig = Rig::beside_good(&stdio(&[]));
    rig.ready("bad");
    rig.while_good_works(|| {
        let failed = rig.error("bad__bad_json", &json!({}), "EXECUTION_ERROR");
        let message = failed["error"]["message"].as_str().expect("a message");
        assert!(message.contains("a message that cannot be read"), "{message}");
        assert_eq!(rig.result("bad__echo", &json!({ "text": "x" })), "x");
    });
    assert_eq!(rig.light("bad"), "green");
}

#[test]
fn ups_5_while_a_server_is_down_its_tools_stay_and_calls_fail_at_once() {
    let rig =
        Rig::beside_good(&super::script("test -f stop && exit 1; exec $FAULTY --journal journal.txt", "bad"));
    rig.ready("bad");
    let tools = rig.tools_of("bad");
    let pid = rig.result("bad__pid", &json!({}));
    rig.home.write("stop", "");
    kill(&pid);
    rig.while_good_works(|| {
        let status = rig.down("bad");
        let failed = rig.error("bad__journal", &json!({ "text": "x" }), "UPSTREAM_UNAVAILABLE");
        assert_eq!(failed["extras"]["effect"], "none", "{failed}");
        let message = failed["error"]["message"].as_str().expect("a message");
        assert!(
            message.contains("server bad is down") && message.contains("it is tried again at"),
            "{message}"
        );
        assert!(message.ends_with("Nothing was sent."), "{message}");
        assert!(status["retryAt"].is_string(), "{status}");
        assert_eq!(rig.tools_of("bad"), tools, "a moment's absence changes no list");
    });
    std::fs::remove_file(rig.home.path().join("stop")).expect("it is there");
    rig.ready("bad");
    assert_eq!(rig.result("bad__journal", &json!({ "text": "once" })), "written");
    assert_eq!(rig.journal(), ["once"]);
}
