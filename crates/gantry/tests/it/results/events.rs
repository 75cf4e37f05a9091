//! What the event stream and the log tell of calls, and whom.

use crate::pipeline::{post, post_as_person};
use gantry_testkit::{Server, TestDir};
use serde_json::{Value, json};
use std::thread;

/// The events that a reader without a key has got so far.
fn events(server: &Server) -> Vec<Value> {
    let stream = server.get("/api/v1/events?follow=false").text;
    let data = stream.lines().filter_map(|line| line.strip_prefix("data:"));
    data.map(|data| serde_json::from_str(data).unwrap_or_default()).collect()
}

#[test]
fn cal_15_the_stream_tells_when_a_call_starts_and_how_it_ends() {
    let home = TestDir::with_test_tools();
    let server = home.serve();
    let reply = server.call("test__echo", &json!({ "text": "hi" })).json();
    server.call("test__fail", &json!({ "text": "boom" }));
    let events = events(&server);
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["session_opened", "tool_started", "tool_finished", "tool_started", "tool_finished"]);
    let (started, finished, failed) = (&events[1], &events[2], &events[4]);
    assert_eq!((&started["call"], &started["tool"]), (&reply["id"], &json!("test__echo")));
    assert_eq!((&started["parameters"], &started["namespace"]), (&json!(r#"{"text":"hi"}"#), &json!("test")));
    assert_eq!((&finished["call"], &finished["status"]), (&reply["id"], &json!("ok")));
    assert_eq!((&finished["charactersIn"], &finished["charactersOut"]), (&json!(13), &json!(2)));
    assert!(finished["latencyMs"].is_u64() && finished["at"].is_string());
    assert_eq!(
        (&failed["status"], &failed["code"], &failed["error"]),
        (&json!("failed"), &json!("EXECUTION_ERROR"), &json!("boom"))
    );
    let by_cli = home.run(["events", "--json"]).stdout;
    assert_eq!(by_cli.lines().filter(|line| line.contains("\"tool_finished\"")).count(), 2, "{by_cli}");
}

#[test]
fn cal_15_a_reader_sees_its_own_calls_however_long_its_session_is() {
    let home = TestDir::with_test_tools().config("agents: { a: {} }\n");
    let server = home.serve();
    post_as_person(&server, &json!({ "tool": "test__echo", "arguments": { "text": "persons" } }));
    // More events than are remembered, so that the beginning of the session is forgotten.
    let below = json!({ "tool": "test__noop", "arguments": {} });
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..70).for_each(|_| assert_eq!(server.call("test__nested", &below).status, 200)));
        }
    });
    let events = events(&server);
    assert!(!events.iter().any(|event| event["type"] == "session_opened"), "it is forgotten");
    let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert!(
        count("tool_started").abs_diff(count("tool_finished")) <= 8,
        "{} {}",
        count("tool_started"),
        count("tool_finished")
    );
    assert!(!events.iter().any(|event| event.to_string().contains("persons")));
}

#[test]
fn cal_15_the_log_tells_calls_in_the_agreed_shape() {
    let home = TestDir::with_test_tools();
    let server = home.serve_with(&["-v"]);
    server.call("test__echo", &json!({ "text": "hi" }));
    post(&server, &json!({ "tool": "test__sleep", "arguments": { "ms": 60_000 }, "timeoutMs": 50 }));
    let (code, said) = server.stop();
    assert_eq!(code, 0);
    // The times differ from run to run; the shapes do not.
    let masked = |line: &str| match line.split_once("latency: ") {
        Some((start, rest)) => {
            format!("{start}latency: {}", rest.trim_start_matches(|c: char| c.is_ascii_digit()))
        }
        None => line.to_owned(),
    };
    let lines: Vec<String> = said.lines().map(masked).collect();
    for shape in [
        ["[VRB] tool request → test__echo", "    parameters: {\"text\":\"hi\"}"],
        ["[VRB] tool response ← test__echo", "    latency: ms, output: 2 chars, status: ok"],
        ["[VRB] tool request → test__sleep", "    parameters: {\"ms\":60000}"],
        ["[WRN] tool response ← test__sleep", "    latency: ms, status: failed, error: timeout"],
    ] {
        assert!(lines.windows(2).any(|pair| pair == shape), "{shape:?} is not in\n{said}");
    }
}

#[test]
fn cal_15_only_failures_are_reported_unless_more_is_asked_for() {
    let home = TestDir::with_test_tools();
    let server = home.serve();
    server.call("test__echo", &json!({ "text": "hi" }));
    // A name that would write log lines of its own is shown in one line.
    server.call("x\n[ERR] forged", &json!({}));
    let (_, said) = server.stop();
    assert!(!said.contains("tool request"), "{said}");
    assert!(said.contains("[WRN] tool response ← x [ERR] forged\n"), "{said}");
}
