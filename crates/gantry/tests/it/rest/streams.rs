//! Answers that come in pieces, and how much of them is read.

use super::{Rig, document, home, operation, with};
use gantry_testkit::Echo;
use serde_json::{Value, json};

/// A rig with one tool that reads `path` like this.
fn rig(path: &str, streaming: Option<Value>) -> Rig {
    Rig::inline(|echo| {
        let tool = json!({ "description": "x", "url": echo.url(path) });
        json!({ "stream": streaming.map_or(tool.clone(), |streaming| with(tool, &json!({ "streaming": streaming }))) })
    })
}

fn read(path: &str, streaming: Option<Value>) -> Value {
    rig(path, streaming).result("rest__stream", &json!({}))
}

#[test]
fn rst_1_lines_of_json_become_a_list() {
    let expected = json!([{ "n": 1 }, { "n": 2 }, { "n": 3 }]);
    assert_eq!(read("/stream/ndjson", Some(json!({ "mode": "ndjson" }))), expected);
    assert_eq!(read("/stream/ndjson", None), expected, "known by its type");
}

#[test]
fn rst_1_events_become_a_list() {
    let expected = json!([{ "event": "first", "id": "1", "data": { "n": 1 } }, { "data": "two\nlines" }]);
    assert_eq!(read("/stream/sse", Some(json!({ "mode": "sse" }))), expected);
    assert_eq!(read("/stream/sse", None), expected, "known by its type");
}

#[test]
fn rst_1_an_answer_is_put_together_from_tokens() {
    let mode = json!({ "mode": "json-stream", "linePrefix": "data: " });
    assert_eq!(read("/stream/json", Some(mode)), "Hello, world", "the last object has the whole answer");
    assert_eq!(
        read("/stream/tokens", Some(json!({ "mode": "json-stream" }))),
        "Hello",
        "or its pieces are the answer"
    );
    let other = json!({ "mode": "json-stream", "linePrefix": "data: ", "doneValue": "never", "tokenField": "type", "tokenValue": "done" });
    assert_eq!(read("/stream/json", Some(other)), "done", "every name can be another one");
}

#[test]
fn rst_1_a_stream_without_an_end_is_read_up_to_its_limit() {
    for (kind, mode) in [("ndjson", "ndjson"), ("sse", "sse")] {
        let result = read(&format!("/endless/{kind}"), Some(json!({ "mode": mode, "maxBytes": 2000 })));
        assert_eq!(result["truncated"], "maxBytes", "{kind}: {result}");
        let items = result["items"].as_array().expect("items").len();
        assert!((10..1000).contains(&items), "{kind}: {items}");
    }
    let mode = json!({ "mode": "json-stream", "linePrefix": "data: ", "maxBytes": 2000 });
    let result = read("/endless/json", Some(mode));
    let text = result.as_str().expect("a text");
    assert!(text.starts_with("HelloHello") && text.contains("maxBytes") && text.len() < 2100, "{text}");
}

#[test]
fn rst_1_a_stream_that_stops_coming_is_read_up_to_its_time() {
    let result = read("/stalled/ndjson", Some(json!({ "mode": "ndjson", "timeoutMs": 300 })));
    assert_eq!(result, json!({ "items": [{ "n": 1 }, { "n": 2 }], "truncated": "timeout" }));
    let result = read(
        "/stalled/json",
        Some(json!({ "mode": "json-stream", "linePrefix": "data: ", "timeoutMs": 300 })),
    );
    assert!(
        result.as_str().is_some_and(|text| text.starts_with("Hello") && text.contains("timeout")),
        "{result}"
    );
}

#[test]
fn rst_1_an_error_is_an_error_also_where_a_stream_is_expected() {
    let rig = rig("/status/500", Some(json!({ "mode": "sse" })));
    let reply = rig.call("rest__stream", &json!({}));
    assert_eq!(reply["error"]["details"]["status"], 500, "{reply}");
}

/// A rig whose project gives every call two seconds, with tools that come to no end.
fn hasty() -> Rig {
    let echo = Echo::start();
    let tool = |path: &str| json!({ "description": "x", "url": echo.url(path) });
    let home = home(&json!({
        "defaults": { "toolTimeout": 2000 },
        "restTools": { "lines": tool("/stalled/ndjson"), "events": tool("/stalled/sse"), "stuck": tool("/stuck/503") },
        "openapiSpecs": { "api": { "spec": "api.json" } },
    }));
    let paths = json!({ "/stalled/ndjson": { "get": operation("lines") }, "/stuck/503": { "get": operation("stuck") } });
    let spec = with(document(&paths), &json!({ "servers": [{ "url": echo.url("") }] }));
    home.write("api.json", &spec.to_string());
    Rig::at(echo, home)
}

#[test]
fn rst_1_what_came_is_given_back_before_the_time_of_the_project_is_over() {
    let rig = hasty();
    let lines = json!({ "items": [{ "n": 1 }, { "n": 2 }], "truncated": "timeout" });
    for tool in ["rest__lines", "rest__api_lines"] {
        assert_eq!(rig.result(tool, &json!({})), lines, "{tool}");
    }
    let events = rig.result("rest__events", &json!({}));
    assert_eq!((&events["items"][0]["event"], &events["truncated"]), (&json!("first"), &json!("timeout")));
}

#[test]
fn rst_1_a_status_is_reported_although_its_body_does_not_come() {
    let rig = hasty();
    for tool in ["rest__stuck", "rest__api_stuck"] {
        let reply = rig.call(tool, &json!({}));
        assert_eq!(reply["error"]["code"], "EXECUTION_ERROR", "{tool}: {reply}");
        assert_eq!(reply["error"]["details"]["status"], 503, "{tool}: {reply}");
    }
}

#[test]
fn rst_1_what_came_is_given_back_before_the_time_of_the_call_is_over() {
    let rig = rig("/stalled/ndjson", Some(json!({ "mode": "ndjson" })));
    let call = json!({ "tool": "rest__stream", "arguments": {}, "timeoutMs": 2000 });
    let reply = rig.server.post("/api/v1/calls", &call.to_string()).json();
    assert_eq!(reply["result"]["truncated"], "timeout", "{reply}");
    assert_eq!(reply["result"]["items"], json!([{ "n": 1 }, { "n": 2 }]), "{reply}");
}
