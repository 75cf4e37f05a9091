//! What does not end in the time of a switch is cut off: the switch goes on, and every client learns what happened.

use super::{Stage, faulty, remote, two, types};
use crate::passthrough::{Door, Talk, parsed, text};
use crate::pipeline::lines;
use crate::queues::{defer, outcome, queue};
use gantry_testkit::TestDir;
use gantry_testkit::faulty::{Faulty, Kind};
use serde_json::{Value, json};

/// A read that would run for longer than any test waits.
fn endless(server: &str) -> Value {
    json!({ "tool": format!("{server}__sleep"), "arguments": { "ms": 600_000 } })
}

/// The teardown of the last switch.
#[track_caller]
fn teardown(stage: &Stage) -> Value {
    let mut steps = stage.last_steps();
    assert_eq!(types(&steps)[..2], ["agent_switch_started", "teardown"], "{steps:?}");
    steps.remove(1)
}

/// That a call was cut off by the switch to `b`, and says so.
#[track_caller]
fn assert_cut_off(reply: &Value, effect: &str) {
    assert_eq!((&reply["ok"], &reply["error"]["code"]), (&json!(false), &json!("CANCELED")), "{reply}");
    let message = reply["error"]["message"].as_str().expect("a message");
    assert!(message.contains("the project turned to agent b"), "{message}");
    assert_eq!(reply["extras"]["effect"], effect, "{reply}");
}

#[test]
fn pol_8_a_call_that_does_not_end_in_time_is_cut_off_and_the_switch_goes_on() {
    let stage = Stage::two();
    let calling = stage.begin(&endless("sa"));
    let switched = stage.activate("b");
    assert_eq!((&switched["changed"], &switched["cutOff"]), (&json!(true), &json!(1)), "{switched}");
    let answer = calling.join().expect("a client without complaints");
    let reply = answer.json();
    assert_cut_off(&reply, "none");
    let record = stage.record(&reply);
    assert_eq!(
        (&record["state"], &record["error"]["code"], &record["effectState"], &record["agent"]),
        (&json!("COMPLETED_FAILURE"), &json!("CANCELED"), &json!("none"), &json!("a")),
        "{record}"
    );
    assert_eq!(record["error"]["message"], reply["error"]["message"]);
    // It is in the stream and in the log, as a warning.
    let teardown = teardown(&stage);
    assert_eq!(
        (&teardown["agent"], &teardown["forced"], &teardown["calls"]),
        (&json!("a"), &json!(true), &json!(1))
    );
    stage.says("[WRN] teardown agent=a forced=true calls=1");
    let steps = stage.last_steps();
    assert_eq!(
        types(&steps),
        ["agent_switch_started", "teardown", "teardown_finished", "build", "agent_switch_finished"]
    );
    // The new agent has what is its own.
    assert!(stage.call("sb__pid", &json!({}))["ok"].as_bool().is_some_and(|ok| ok));
}

#[test]
fn pol_8_a_server_that_outlives_the_switch_gets_a_cancellation_of_its_call() {
    for (word, kind) in [("tcp", Kind::Tcp), ("websocket", Kind::Ws), ("http", Kind::Http)] {
        let journal = tempfile::NamedTempFile::new().expect("a file");
        let path = journal.path().to_str().expect("UTF-8");
        let server = Faulty::start(kind, &["--journal", path]);
        let stage = Stage::of(&two(&remote(word, &server.url), &faulty(&[])));
        stage.activate("a");
        let calling = stage.begin(&endless("sa"));
        assert_eq!(stage.activate("b")["cutOff"], 1, "{word}");
        assert_cut_off(&calling.join().expect("a client without complaints").json(), "none");
        // Behind a socket that is closed next, the end of the connection may be what it notices first.
        let reported = || std::fs::read_to_string(path).expect("the journal");
        stage.server.eventually(&format!("{word}: it is told"), || {
            reported() == "cancelled\n" || (kind != Kind::Http && reported() == "disconnected\n")
        });
    }
}

#[test]
fn pol_8_a_write_that_is_cut_off_is_on_record_as_one_that_may_have_taken_effect_and_is_not_run_again() {
    let config = "agents: { a: { tools: [test__slow_write] }, b: { tools: [test__echo] } }\n";
    let stage = Stage::at(TestDir::with_test_tools().config(config));
    stage.activate("a");
    let file = stage.home.path().join("out.txt");
    let mut write = json!({ "tool": "test__slow_write", "arguments": { "ms": 600_000, "file": file } });
    write["idempotencyKey"] = json!("once");
    let id = defer(&stage.server, &write);
    stage.server.eventually("it runs", || lines(&stage.home, "out.txt") == 1);
    assert_eq!(stage.activate("b")["cutOff"], 1);
    let reply = outcome(&stage.server, &id).json();
    assert_cut_off(&reply, "possible");
    let record = &reply["record"];
    assert_eq!(
        (&record["effect"], &record["effectState"], &record["agent"], &record["error"]["code"]),
        (&json!("write"), &json!("possible"), &json!("a"), &json!("CANCELED")),
        "{record}"
    );
    assert_eq!(teardown(&stage)["calls"], 1);
    // A caller that repeats it under its key gets its outcome.
    stage.activate("a");
    let again = stage.server.post("/api/v1/calls", &write.to_string()).json();
    assert_eq!((&again["ok"], &again["extras"]["repeats"]), (&json!(false), &json!(id)), "{again}");
    assert_eq!(again["extras"]["effect"], "possible", "{again}");
    assert_eq!(stage.home.read("out.txt"), "begun\n", "it ran once and was not run again");
}

#[test]
fn pol_8_a_server_that_never_answers_does_not_hold_a_switch() {
    let stage = Stage::of(&json!({
        "mcpServers": { "sa": faulty(&[]), "sb": faulty(&[]) },
        "agents": { "a": { "tools": ["sa__hang", "sa__pid"] }, "b": { "tools": ["sb__pid"] } },
    }));
    stage.activate("a");
    let process = stage.pid("sa__pid");
    let calling = stage.begin(&json!({ "tool": "sa__hang", "arguments": {} }));
    assert_eq!(stage.activate("b")["cutOff"], 1);
    assert_cut_off(&calling.join().expect("a client without complaints").json(), "none");
    assert!(!gantry_testkit::process::is_running(process));
}

#[test]
fn pol_8_calls_that_end_and_calls_that_do_not_are_counted_apart() {
    let stage = Stage::two();
    let short = json!({ "tool": "sa__sleep", "arguments": { "ms": 2000 } });
    let ending = [(), ()].map(|()| stage.begin(&short));
    let endless = [(), (), ()].map(|()| stage.begin(&endless("sa")));
    assert_eq!(stage.activate("b")["cutOff"], 3);
    for call in ending {
        assert_eq!(call.join().expect("a client without complaints").json()["result"], "slept");
    }
    for call in endless {
        assert_cut_off(&call.join().expect("a client without complaints").json(), "none");
    }
    assert_eq!(teardown(&stage)["calls"], 3);
}

#[test]
fn pol_8_the_command_line_says_that_calls_were_cut_off() {
    let stage = Stage::two();
    let calling = stage.begin(&endless("sa"));
    let ran = stage.home.run(["agents", "switch", "b"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.stdout, "b is active in default with 5 tools (1 call was cut off after 5 s)\n");
    assert!(ran.stderr.contains("up to 5 s"), "{ran:?}");
    assert_cut_off(&calling.join().expect("a client without complaints").json(), "none");
}

#[test]
fn pol_8_an_mcp_client_whose_call_is_cut_off_gets_the_reason_and_stays_connected() {
    let stage = Stage::two();
    let doors = [
        ("/mcp", Door::Http(&stage.server, "/mcp")),
        ("/ws", Door::Ws(&stage.server, "/ws")),
        ("gantry mcp", Door::Stdio(&stage.home, &[])),
    ];
    let mut clients = doors.map(|(what, door)| (what, Talk::legacy(door)));
    let started = |stage: &Stage| {
        stage.events().iter().filter(|e| e["type"] == "tool_started" && e["tool"] == "sa__sleep").count()
    };
    let calls: Vec<u64> = clients
        .iter_mut()
        .map(|(_, client)| client.begin_call("sa__sleep", &json!({ "ms": 600_000 })))
        .collect();
    stage.server.eventually("all calls run", || started(&stage) == calls.len());
    assert_eq!(stage.activate("b")["cutOff"], calls.len());
    for ((what, client), call) in clients.iter_mut().zip(calls) {
        let answer = parsed(&client.end(call));
        assert_eq!(answer["result"]["isError"], true, "{what}: {answer}");
        assert!(text(&answer["result"]).contains("the project turned to agent b"), "{what}: {answer}");
        client.hear("notifications/tools/list_changed");
        assert_eq!(client.tools(), super::of("sb"), "{what}");
    }
}

#[test]
fn pol_8_a_call_that_still_waits_for_its_turn_is_refused_with_the_reason_and_never_runs() {
    let config = "queues: { one: { concurrent: 1 } }\n\
                  agents: { a: { tools: [test__sleep, test__count] }, b: { tools: [test__echo] } }\n";
    let home = TestDir::with_test_tools().config(config).settings(&json!({ "queue": "one" }));
    let stage = Stage::at(home);
    stage.activate("a");
    let running = defer(&stage.server, &json!({ "tool": "test__sleep", "arguments": { "ms": 600_000 } }));
    stage.server.eventually("it runs", || queue(&stage.server, "one")["inUse"] == 1);
    let file = stage.home.path().join("out.txt");
    let waiting = json!({ "tool": "test__count", "arguments": { "file": file, "text": "x" } });
    let waiting = defer(&stage.server, &waiting);
    stage.server.eventually("it waits", || queue(&stage.server, "one")["depth"] == 1);
    assert_eq!(stage.activate("b")["cutOff"], 2);
    assert_cut_off(&outcome(&stage.server, &running).json(), "none");
    let waited = outcome(&stage.server, &waiting).json();
    assert_cut_off(&waited, "none");
    assert!(
        waited["error"]["message"].as_str().is_some_and(|text| text.contains("nothing was run")),
        "{waited}"
    );
    let queue = queue(&stage.server, "one");
    assert_eq!((&queue["inUse"], &queue["depth"]), (&json!(0), &json!(0)), "its places are free again");
    assert_eq!(lines(&stage.home, "out.txt"), 0);
}

#[test]
fn pol_8_all_that_has_to_leave_gets_the_same_five_seconds_at_once() {
    let stage = Stage::two();
    // a's call in its own runtime, and b's in the one that the others share: both have to leave for b's own.
    let (first, second) = (
        json!({ "tool": "sa__sleep", "arguments": { "ms": 9500 } }),
        json!({ "tool": "sb__sleep", "arguments": { "ms": 9500 }, "agent": "b" }),
    );
    let calls = [stage.begin(&second), stage.begin(&first)];
    assert_eq!(
        stage.activate("b")["cutOff"],
        2,
        "one after the other would give the second call time to end"
    );
    for call in calls {
        assert_cut_off(&call.join().expect("a client without complaints").json(), "none");
    }
}
