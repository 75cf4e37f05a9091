//! How servers are doing, as the API, the command line, the metrics and the doctor show it.

use super::{Rig, kill, script, stdio, with};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// A server that is up and answers nothing: its process is held.
pub(super) fn hold(pid: &str, hold: bool) {
    let pid = pid.parse().ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(pid, if hold { Signal::STOP } else { Signal::CONT }).expect("it runs");
}

#[test]
fn ups_4_each_light_is_the_same_in_the_api_the_command_line_the_doctor_and_the_metrics() {
    let rig = Rig::of(&json!({
        "a-green": stdio(&[]),
        "b-yellow": with(script("until test -f go; do sleep 0.02; done; exec $FAULTY", "b"), &json!({ "startupTimeoutMs": 600_000 })),
        "c-red": stdio(&["--exit-on-start"]),
        "d-off": with(stdio(&[]), &json!({ "enabled": false })),
        "e-off": with(stdio(&[]), &json!({ "env": { "TOKEN": "${NO_SUCH_TOKEN}" } })),
    }));
    rig.ready("a-green");
    rig.down("c-red");
    let expected = [
        ("a-green", "green", "ready", "3", "✓"),
        ("b-yellow", "yellow", "starting", "2", "!"),
        ("c-red", "red", "down", "1", "✗"),
        ("d-off", "off", "off", "0", "✓"),
        ("e-off", "off", "off", "0", "✗"),
    ];
    let (table, listed) = (rig.home.run(["servers"]), rig.home.run(["servers", "--json"]).json());
    let doctor = rig.home.run(["doctor"]);
    assert_eq!((table.code, doctor.code), (0, 1), "{table:?} {doctor:?}");
    for (n, (id, light, word, number, mark)) in expected.into_iter().enumerate() {
        let status = rig.status(id);
        assert_eq!((&status["light"], &status["status"]), (&json!(light), &json!(word)), "{status}");
        assert_eq!((&listed[n]["id"], &listed[n]["light"]), (&json!(id), &json!(light)), "{listed}");
        let row = table.stdout.lines().find(|line| line.contains(id)).expect("a row");
        assert!(row.starts_with(&format!("● {light} ")) && row.contains(word), "{row}");
        assert_eq!(rig.metric("server_light", id).as_deref(), Some(number), "{id}");
        assert!(
            doctor.stdout.contains(&format!("{mark} mcp server     {id} ● {light}: ")),
            "{id}: {doctor:?}"
        );
    }
    assert_eq!(rig.metric("server_tools", "a-green"), Some(rig.status("a-green")["tools"].to_string()));
    assert!(rig.metric("server_latency_seconds", "a-green").is_some());
    assert_eq!(rig.metric("server_latency_seconds", "d-off"), None, "nobody asked it");
    // Those who may only call see the lights, and not what went wrong inside.
    let public = rig.server.get("/api/v1/servers").json();
    assert_eq!(
        (&public["items"][2]["light"], &public["items"][2]["lastError"]),
        (&json!("red"), &Value::Null)
    );
    rig.home.write("go", "");
    rig.ready("b-yellow");
    assert_eq!(rig.light("b-yellow"), "green");
}

#[test]
fn ups_4_a_server_that_misses_a_check_is_yellow_and_green_again_when_it_answers() {
    let check = json!({ "healthCheck": { "intervalMs": 1500, "timeoutMs": 300 } });
    let rig = Rig::beside_good(&with(stdio(&[]), &check));
    rig.ready("bad");
    let pid = rig.result("bad__pid", &json!({}));
    rig.while_good_works(|| {
        hold(&pid, true);
        rig.server.eventually("it misses a check", || rig.light("bad") == "yellow");
        assert_eq!(rig.status("bad")["status"], "slow");
        assert_eq!(rig.metric("server_light", "bad").as_deref(), Some("2"));
        hold(&pid, false);
        rig.server.eventually("it answers", || rig.light("bad") == "green");
    });
    assert_eq!(rig.result("bad__pid", &json!({})), pid, "one missed check ends nothing");
}

#[test]
fn ups_4_a_server_that_answers_slowly_is_yellow_wherever_a_person_looks_and_can_be_used() {
    // Half of the time limit, and a check that is answered after more than that.
    const HALF_MS: f64 = 2000.0;
    let check = json!({ "healthCheck": { "intervalMs": 100, "timeoutMs": 4000 } });
    let slow = ["--slow-ping", "2500"];
    let modern = json!({ "protocol": "modern" });
    let rig = Rig::of(&json!({
        "good": with(stdio(&[]), &check),
        "legacy": with(stdio(&slow), &check),
        "modern": with(with(stdio(&[&slow[..], &["--era", "modern"]].concat()), &check), &modern),
    }));
    rig.ready("good");
    for id in ["legacy", "modern"] {
        // A check that is answered late says how late; one that is missed does not.
        rig.server.eventually(&format!("{id} answers late"), || {
            let status = rig.status(id);
            status["light"] == "yellow" && status["latencyMs"].as_f64() > Some(HALF_MS)
        });
        let status = rig.status(id);
        assert_eq!((&status["status"], &status["lastError"]), (&json!("slow"), &Value::Null), "{status}");
        let public = rig.server.get("/api/v1/servers").json();
        let shown = public["items"].as_array().expect("servers").iter().find(|server| server["id"] == id);
        assert_eq!(shown.map(|server| &server["light"]), Some(&json!("yellow")), "{public}");
        let (table, listed) = (rig.home.run(["servers"]), rig.home.run(["servers", "--json"]).json());
        let row = table.stdout.lines().find(|line| line.contains(id)).expect("a row");
        assert!(row.starts_with("● yellow ") && row.contains("slow"), "{row}");
        let listed = listed.as_array().expect("servers").iter().find(|server| server["id"] == id).cloned();
        assert_eq!(listed.expect("it is listed")["light"], "yellow", "{id}");
        assert_eq!(rig.metric("server_light", id).as_deref(), Some("2"), "{id}");
        let seconds = rig.metric("server_latency_seconds", id).and_then(|text| text.parse::<f64>().ok());
        assert!(seconds > Some(HALF_MS / 1000.0), "{id}: {seconds:?}");
        let doctor = rig.home.run(["doctor"]);
        assert!(doctor.stdout.contains(&format!("{id} ● yellow: slow")), "{doctor:?}");
        // It is slow to say that it is there, not to work.
        assert_eq!(rig.result(&format!("{id}__echo"), &json!({ "text": "x" })), "x", "{id}");
        assert_eq!(rig.metric("server_failures_total", id), None, "{id}");
    }
    assert_eq!(
        (rig.light("good"), rig.metric("server_light", "good").as_deref()),
        ("green".into(), Some("3"))
    );
}

#[test]
fn ups_4_a_server_that_misses_two_checks_is_down_and_begun_anew() {
    let check = json!({ "healthCheck": { "intervalMs": 200, "timeoutMs": 200 } });
    let rig = Rig::beside_good(&with(stdio(&[]), &check));
    rig.ready("bad");
    let pid = rig.result("bad__pid", &json!({}));
    rig.while_good_works(|| {
        hold(&pid, true);
        rig.server.eventually("it is missed", || !rig.status("bad")["lastError"].is_null());
        rig.ready("bad");
    });
    let status = rig.status("bad");
    let why = status["lastError"].as_str().expect("a reason");
    assert!(why.contains("did not answer two health checks within 200 ms"), "{why}");
    assert_ne!(rig.result("bad__pid", &json!({})), pid);
    rig.server
        .eventually("what was held is gone", || !std::path::Path::new(&format!("/proc/{pid}")).exists());
    assert_eq!(rig.metric("server_failures_total", "bad").as_deref(), Some("1"));
}

#[test]
fn ups_4_the_doctor_says_why_a_server_or_a_tool_is_missing_and_what_to_do() {
    let rig = Rig::of(&json!({
        "good": with(stdio(&[]), &json!({ "toolsAllowed": ["echo", "p*"], "toolsDenied": ["params"] })),
        "off": with(stdio(&[]), &json!({ "enabled": false })),
        "red": script("test -f stop && { echo out of order >&2; exit 9; }; exec $FAULTY", "red"),
    }));
    rig.ready("good");
    rig.ready("red");
    let pid = rig.result("red__pid", &json!({}));
    rig.home.write("stop", "");
    kill(&pid);
    rig.server.eventually("it says why", || {
        rig.status("red")["lastError"].as_str().is_some_and(|why| why.contains("out of order"))
    });
    for (tool, code, words) in [
        ("good__echo", 0, ["good__echo can be called", ""]),
        ("good__env", 1, ["toolsAllowed", ""]),
        ("good__params", 1, ["toolsDenied", ""]),
        ("good__nothing", 1, ["cannot be called", ""]),
        ("off__echo", 1, ["server off is switched off", "enabled: false"]),
        ("red__nothing", 1, ["out of order", "it is tried again at"]),
    ] {
        let ran = rig.home.run(["doctor", tool]);
        assert_eq!(ran.code, code, "{tool}: {ran:?}");
        assert!(words.iter().all(|word| ran.stdout.contains(word)), "{tool}: {ran:?}");
    }
    let whole = rig.home.run(["doctor"]);
    assert_eq!(whole.code, 1, "{whole:?}");
    assert!(whole.stdout.contains("red ● red: down") && whole.stdout.contains("out of order"), "{whole:?}");
}
