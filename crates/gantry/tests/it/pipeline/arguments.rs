//! Arguments that do not fit the schema of a tool, and tools whose schema does not fit anything.

use super::file;
use crate::results::mcp_tools;
use gantry_testkit::TestDir;
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[test]
fn cal_4_every_failing_field_is_named() {
    let home = TestDir::new();
    let reply = home.call("write_file", &json!({ "path": 1, "colour": "red", "createDirs": "yes" }));
    assert_eq!(reply["error"]["code"], "INVALID_ARGUMENTS");
    let errors = reply["error"]["details"]["errors"].as_array().unwrap();
    let fields: BTreeSet<&str> = errors.iter().map(|error| error["field"].as_str().unwrap()).collect();
    assert_eq!(fields, BTreeSet::from(["/colour", "/content", "/createDirs", "/path"]));
    let message = reply["error"]["message"].as_str().unwrap();
    for name in ["colour", "content", "createDirs", "path"] {
        assert!(message.contains(name), "{name} is not in: {message}");
    }
    assert!(!home.path().join("1").exists());
}

#[test]
fn cal_4_nothing_runs_with_arguments_that_do_not_fit() {
    let home = TestDir::with_test_tools();
    let server = home.serve();
    let target = file(&home, "count.txt");
    let reply = server.call("test__count", &json!({ "file": target, "text": ["x"] }));
    assert_eq!((reply.status, &reply.json()["extras"]["effect"]), (422, &json!("none")));
    // Not an object, and an object that two readers could read differently.
    for arguments in
        [r#"["x"]"#.to_owned(), r#""x""#.to_owned(), format!(r#"{{"file":{target},"text":"a","text":"b"}}"#)]
    {
        let reply =
            server.post("/api/v1/calls", &format!(r#"{{"tool":"test__count","arguments":{arguments}}}"#));
        assert_eq!(reply.json()["error"]["code"], "INVALID_ARGUMENTS", "{arguments}");
        assert!((400..500).contains(&reply.status), "{reply:?}");
    }
    assert!(!home.path().join("count.txt").exists());
}

#[test]
fn cal_4_a_tool_with_an_unusable_schema_is_quarantined_alone() {
    let home = TestDir::with_test_tools();
    let server = home.serve();
    let tools = server.get("/api/v1/tools").json();
    let tools = tools["items"].as_array().unwrap();
    let (bad, good): (Vec<&Value>, Vec<&Value>) = tools.iter().partition(|tool| tool["status"] != "ready");
    assert_eq!(bad.len(), 1, "{bad:?}");
    assert_eq!((&bad[0]["name"], &bad[0]["status"]), (&json!("test__bad_schema"), &json!("quarantined")));
    let reason = bad[0]["reason"].as_str().unwrap();
    assert!(reason.contains("input schema cannot be used"), "{reason}");
    assert!(reason.contains("/properties/a/type"), "the reason says where: {reason}");
    assert!(good.iter().all(|tool| tool["reason"].is_null()));
    let reply = server.call("test__bad_schema", &json!({})).json();
    assert_eq!(reply["error"]["code"], "TOOL_QUARANTINED");
    assert!(reply["error"]["message"].as_str().unwrap().contains(reason), "{reply}");
    assert_eq!(server.call("test__echo", &json!({ "text": "well" })).json()["result"], "well");
    let by_mcp = mcp_tools(&server, "/mcp");
    assert!(!by_mcp.contains(&"test__bad_schema".to_owned()) && by_mcp.contains(&"test__echo".to_owned()));
    server.says("[WRN] tool test__bad_schema is quarantined");
}
