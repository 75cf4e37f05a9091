//! Servers that do not start, or not at once.

use super::{ROOM_KIB, Rig, journalling, remote, script, stdio, with};
use gantry_testkit::faulty::{Faulty, Kind};
use serde_json::{Value, json};

#[test]
fn ups_3_a_server_that_never_answers_is_down_with_the_reason_and_the_rest_goes_on() {
    let rig = Rig::beside_good(&with(stdio(&["--never-start"]), &json!({ "startupTimeoutMs": 300 })));
    let status = rig.while_good_works(|| rig.down("bad"));
    assert_eq!((&status["status"], &status["tools"]), (&json!("down"), &json!(0)), "{status}");
    let why = status["lastError"].as_str().expect("a reason");
    assert!(why.contains("300 ms") && why.contains("startupTimeoutMs"), "{why}");
    assert!(status["retryAt"].is_string(), "it is tried again: {status}");
    assert!(rig.tools_of("bad").is_empty() && !rig.tools_of("good").is_empty());
    rig.server.says("[WRN] server_down server=bad ");
    // Nothing of the workspace suffers either.
    assert_eq!(rig.call("list_directory", &json!({ "path": "." }))["ok"], true);
    let unknown = rig.error("bad__echo", &json!({ "text": "x" }), "TOOL_NOT_FOUND");
    assert_eq!(unknown["extras"]["effect"], "none", "{unknown}");
}

#[test]
fn ups_3_a_server_that_starts_late_appears_on_a_retry() {
    // A client that connects is answered after two seconds; one try takes at most half a second.
    let late = Faulty::start(Kind::Tcp, &["--start-after", "2000"]);
    let entry = with(remote("tcp", &late.url), &json!({ "startupTimeoutMs": 500 }));
    let rig = Rig::beside_good(&entry);
    rig.while_good_works(|| {
        rig.server.eventually("a try has failed", || !rig.status("bad")["lastError"].is_null());
        rig.ready("bad");
    });
    assert_eq!(rig.result("bad__echo", &json!({ "text": "late" })), "late");
    assert!(rig.metric("server_failures_total", "bad").is_some(), "it failed before");
}

#[test]
fn ups_3_a_program_that_recovers_is_found_by_the_retries() {
    let rig = Rig::beside_good(&script("test -f go || { echo no go >&2; exit 9; }; exec $FAULTY", "bad"));
    let status = rig.down("bad");
    assert!(status["lastError"].as_str().is_some_and(|why| why.contains("no go")), "{status}");
    rig.home.write("go", "");
    rig.while_good_works(|| rig.ready("bad"));
    assert_eq!(rig.result("bad__echo", &json!({ "text": "back" })), "back");
    // What it said is kept for those who ask why it was away, its light is green all the same.
    let status = rig.status("bad");
    assert_eq!((&status["light"], &status["retryAt"]), (&json!("green"), &Value::Null), "{status}");
}

#[test]
fn ups_3_a_program_that_exits_at_once_says_with_which_code_and_its_last_words() {
    let rig = Rig::beside_good(&stdio(&["--exit-on-start"]));
    rig.while_good_works(|| {
        // Each try says the same.
        for _ in 0..5 {
            let why = rig.down("bad")["lastError"].as_str().expect("a reason").to_owned();
            assert_eq!(why, "exit code 3: faulty: it was told to exit on start");
            rig.restart("bad");
        }
    });
    rig.down("bad");
    let shown = rig.home.run(["servers"]);
    assert!(shown.stdout.contains("● red"), "{shown:?}");
}

#[test]
fn ups_3_a_program_that_is_not_there_is_named() {
    let rig = Rig::beside_good(&json!({ "command": "gantry-no-such-program" }));
    let status = rig.down("bad");
    let why = status["lastError"].as_str().expect("a reason");
    assert!(why.contains("gantry-no-such-program"), "{why}");
}

#[test]
fn ups_3_a_command_waits_for_its_own_servers_and_goes_on_without_those_that_fail() {
    let config = json!({ "mcpServers": {
        "bad": with(stdio(&["--never-start"]), &json!({ "startupTimeoutMs": 300 })),
        "good": stdio(&[]),
    } });
    let home = gantry_testkit::TestDir::new().config(&config.to_string());
    assert_eq!(home.call("good__echo", &json!({ "text": "x" }))["result"], "x");
    let listed = home.run(["servers", "--json"]).json();
    let lights: Vec<&Value> = listed.as_array().expect("servers").iter().map(|s| &s["light"]).collect();
    assert_eq!(lights, ["red", "green"], "{listed}");
    assert_eq!(home.call("bad__echo", &json!({}))["error"]["code"], "TOOL_NOT_FOUND");
}

#[test]
fn ups_2_a_list_without_end_is_an_error_of_that_server_only() {
    // A thousand pages take a while on a busy machine.
    let patient = json!({ "startupTimeoutMs": 120_000 });
    let rig = Rig::beside_good(&with(stdio(&["--endless-pages"]), &patient));
    let status = rig.while_good_works(|| rig.down("bad"));
    let why = status["lastError"].as_str().expect("a reason");
    assert!(why.contains("tools/list") && why.contains("pages"), "{why}");
    assert!(rig.tools_of("bad").is_empty());
}

#[test]
fn ups_2_all_pages_are_listed_with_any_kind_of_cursor() {
    let rig = Rig::of(&json!({
        "whole": stdio(&[]),
        "paged": stdio(&["--page", "5"]),
        "empty": stdio(&["--page", "5", "--empty-cursor"]),
    }));
    for id in ["whole", "paged", "empty"] {
        rig.ready(id);
    }
    let tools = rig.status("whole")["tools"].clone();
    assert!(tools.as_u64() > Some(30), "{tools}");
    assert_eq!(rig.status("paged")["tools"], tools);
    assert_eq!(rig.status("empty")["tools"], tools);
}

#[test]
fn ups_3_a_flood_on_standard_error_is_read_and_kept_out_of_memory_and_logs() {
    let rig = Rig::beside_good(&journalling(&["--stderr-flood"]));
    let before = rig.peak_kib();
    rig.while_good_works(|| {
        rig.ready("bad");
        for n in 0..20 {
            assert_eq!(rig.result("bad__echo", &json!({ "text": n.to_string() })), n.to_string());
        }
    });
    assert!(rig.peak_kib() < before + ROOM_KIB, "{} KiB after {before} KiB", rig.peak_kib());
    assert!(rig.server.stderr().len() < 1024 * 1024, "{} bytes of log", rig.server.stderr().len());
}

#[test]
fn cal_4_a_schema_that_costs_much_costs_only_its_own_calls() {
    let rig = Rig::beside_good(&stdio(&["--lying-schema"]));
    rig.ready("bad");
    let before = rig.peak_kib();
    rig.while_good_works(|| {
        let hidden = rig.error("bad__lying_id", &json!({}), "TOOL_QUARANTINED");
        let message = hidden["error"]["message"].as_str().expect("a message");
        assert!(message.contains("$id of its own") && message.contains("leave it out"), "{message}");
        let deep = (0..34).fold(json!({ "z": 1 }), |inner, _| json!({ "p": inner }));
        let refused = rig.error("bad__costly_circles", &deep, "INVALID_ARGUMENTS");
        let message = refused["error"]["message"].as_str().expect("a message");
        assert!(message.contains("send a smaller or flatter value"), "{message}");
        let wrong = rig.error("bad__costly_circles", &json!({ "p": { "z": 1 } }), "INVALID_ARGUMENTS");
        assert_eq!(wrong["error"]["details"]["errors"][0]["field"], "/p/z", "{wrong}");
    });
    assert!(rig.peak_kib() < before + ROOM_KIB, "{} KiB after {before} KiB", rig.peak_kib());
}

#[test]
fn cal_4_a_schema_that_is_none_takes_only_its_own_tool_away() {
    let rig = Rig::beside_good(&stdio(&["--lying-schema"]));
    rig.ready("bad");
    rig.while_good_works(|| {
        for tool in ["bad__lying_type", "bad__lying_text", "bad__lying_null"] {
            let refused = rig.error(tool, &json!({}), "TOOL_QUARANTINED");
            let message = refused["error"]["message"].as_str().expect("a message");
            assert!(message.contains("input schema"), "{message}");
        }
        assert_eq!(rig.result("bad__echo", &json!({ "text": "x" })), "x");
    });
    let tools = rig.tools_of("bad");
    assert!(!tools.iter().any(|tool| tool == "bad__lying_type"), "{tools:?}");
    let why = rig.home.run(["doctor", "bad__lying_type"]);
    assert_eq!(why.code, 1, "{why:?}");
    assert!(why.stdout.contains("it is quarantined: its input schema cannot be used"), "{why:?}");
    let doctor = rig.home.run(["doctor"]);
    assert!(doctor.stdout.contains("tool bad__lying_type is quarantined"), "{doctor:?}");
}

#[test]
fn ups_3_a_server_that_takes_its_time_holds_up_no_call_of_another() {
    let slow = with(stdio(&["--never-start"]), &json!({ "startupTimeoutMs": 3_600_000 }));
    let rig = Rig::beside_good(&slow);
    assert_eq!(rig.result("good__echo", &json!({ "text": "x" })), "x");
    assert_eq!(rig.call("list_directory", &json!({ "path": "." }))["ok"], true);
    assert_eq!(rig.status("bad")["status"], "starting");
}
