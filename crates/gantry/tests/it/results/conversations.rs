//! The words in which a conversation gets the outcome of a call.

use super::mcp_call;
use crate::pipeline::{file, lines};
use gantry_testkit::TestDir;
use serde_json::{Value, json};

#[test]
fn cal_11_a_conversation_shows_each_outcome_in_its_words() {
    let home = TestDir::with_test_tools().config(
        "defaults: { toolTimeout: 2000, toolResponseMaxBytes: 1000, contextBudgetTokens: 120 }\napprovals: { requiresApprovalTools: [test__count] }\n",
    );
    let server = home.serve();
    let outcome = |tool: &str, arguments: Value| {
        let mut answer = mcp_call(&server, "/mcp", tool, &arguments);
        let failed = answer["result"]["isError"] == true;
        assert_eq!(answer["result"]["content"].as_array().map(Vec::len), Some(1), "{answer}");
        (failed, answer["result"]["content"][0]["text"].take())
    };
    assert_eq!(outcome("test__echo", json!({ "text": "well" })), (false, json!("well")));
    assert_eq!(outcome("test__sleep", json!({ "ms": 60_000 })), (true, json!("(tool failed: timeout)")));
    assert_eq!(outcome("test__fail", json!({ "text": "boom" })), (true, json!("(tool failed: boom)")));
    let (failed, handle) = outcome("test__flood", json!({ "bytes": 2560 }));
    let handle: Value = serde_json::from_str(handle.as_str().unwrap()).unwrap();
    assert!(!failed);
    assert_eq!(
        (&handle["tool_output"]["reason"], &handle["tool_output"]["bytes"]),
        (&json!("size_limit_exceeded"), &json!(2560))
    );
    let exceeded = json!("(tool failed: context window budget exceeded)");
    assert_eq!(outcome("test__echo", json!({ "text": "x".repeat(900) })), (true, exceeded));
    let (failed, asked) = outcome("test__count", json!({ "file": file(&home, "c"), "text": "x" }));
    assert!(
        failed && asked.as_str().unwrap().starts_with("(tool failed: a person has to approve this call"),
        "{asked}"
    );
    assert_eq!(lines(&home, "c"), 0);
}

#[test]
fn cal_11_a_call_below_a_call_is_answered_in_the_same_words() {
    let home = TestDir::with_test_tools().config("defaults: { toolTimeout: 2000 }\n");
    let nested = |below: Value| home.call("test__nested", &below)["result"].take();
    assert_eq!(nested(json!({ "tool": "test__echo", "arguments": { "text": "well" } })), "well");
    assert_eq!(
        nested(json!({ "tool": "test__fail", "arguments": { "text": "boom" } })),
        "(tool failed: boom)"
    );
    let missing = nested(json!({ "tool": "test__nothing", "arguments": {} }));
    assert!(
        missing.as_str().unwrap().starts_with("(tool failed: tool not found: test__nothing"),
        "{missing}"
    );
}
