//! What a caller writes to read a stored output cannot keep Gantry busy: it ends with an error that says what to do.

use gantry_testkit::{Server, TestDir};
use serde_json::{Value, json};

/// Has a text stored and returns its handle.
fn store(server: &Server, text: &str) -> Value {
    let reply = server.call("test__echo", &json!({ "text": text })).json();
    let handle = reply["result"]["tool_output"]["handle"].clone();
    assert!(handle.is_string(), "{reply}");
    handle
}

fn home() -> TestDir {
    TestDir::with_test_tools().config("defaults: { toolResponseMaxBytes: 2000 }\n")
}

#[test]
fn cal_9_a_json_path_that_multiplies_is_stopped_and_others_are_answered() {
    let home = home();
    let server = home.serve();
    let entries: Vec<Value> = (0..9000).map(|n| json!({ "size": n % 7 + 2 })).collect();
    let handle = store(&server, &json!({ "entries": entries }).to_string());
    let read = |path: &str| {
        server.call("tool_output", &json!({ "handle": handle, "mode": "jsonPath", "path": path })).json()
    };
    for path in [
        "$.entries[?$.entries[?$.entries[?@.size==1]]]",
        "$.entries[?$.entries[?@.size==1]]",
        "$..[?count($..*) == 1]",
        "$.entries[?$.entries == $.entries]",
    ] {
        let reply = read(path);
        assert_eq!(reply["error"]["code"], "INVALID_ARGUMENTS", "{path}: {reply}");
        let message = reply["error"]["message"].as_str().expect("a text");
        assert!(message.contains("5000000 steps") && message.contains("grep"), "{message}");
    }
    let found = read("$.entries[?@.size == 2 && @.size != $.entries[1].size].size");
    assert_eq!(found["result"]["matches"], 1286, "{found}");
}

#[test]
fn cal_9_a_pattern_with_many_parts_is_refused_for_a_long_line() {
    let home = home();
    let server = home.serve();
    let handle = store(&server, &"ab".repeat(1_000_000));
    let grep = |pattern: &str| {
        server.call("tool_output", &json!({ "handle": handle, "mode": "grep", "pattern": pattern })).json()
    };
    let reply = grep("a[ab]{10000}[c-z]");
    assert_eq!(reply["error"]["code"], "INVALID_ARGUMENTS", "{reply}");
    assert!(reply["error"]["message"].as_str().expect("a text").contains("make it simpler"), "{reply}");
    assert_eq!(grep("ba+b")["result"]["matches"], 1);
}
