//! Time limits: which one counts, and what is said when it has passed.

use super::file;
use gantry_testkit::TestDir;
use serde_json::json;

#[test]
fn cal_8_the_most_specific_time_limit_wins_and_a_call_may_only_shorten_it() {
    let limit = |home: &TestDir, tool: &str, own: &str| {
        let arguments = json!({ "ms": 60_000, "file": file(home, "out.txt") }).to_string();
        let mut args = vec!["call", tool, &arguments, "--json"];
        if !own.is_empty() {
            args.extend(["--timeout", own]);
        }
        let ran = home.run(args);
        assert_eq!((ran.code, &ran.json()["error"]["code"]), (1, &json!("TIMEOUT")), "{ran:?}");
        ran.json()["error"]["details"]["timeoutMs"].as_u64().unwrap()
    };
    let home = TestDir::with_test_tools().config("defaults: { toolTimeout: 120 }\n");
    assert_eq!(limit(&home, "test__sleep", ""), 120, "the global one");
    assert_eq!(limit(&home, "test__sleep", "30"), 30, "the call's own, if it is shorter");
    assert_eq!(limit(&home, "test__sleep", "99999"), 120, "but not if it is longer");
    let home = home.settings(&json!({ "requestTimeoutMs": 110, "toolsTimeout": { "slow-write": 130 } }));
    assert_eq!(limit(&home, "test__sleep", ""), 110, "the provider's");
    assert_eq!(limit(&home, "test__slow_write", ""), 130, "the tool's, though it is longer");
    assert_eq!(limit(&home, "test__slow_write", "99999"), 130);
}

#[test]
fn cal_8_a_timeout_says_so_and_whether_something_may_have_happened() {
    let home = TestDir::with_test_tools().config("defaults: { toolTimeout: 100 }\n");
    let read = home.call("test__sleep", &json!({ "ms": 60_000 }));
    assert_eq!(read["error"]["message"], "(tool failed: timeout)");
    assert_eq!((&read["extras"]["effect"], &read["state"]), (&json!("none"), &json!("COMPLETED_FAILURE")));
    let write = home.call("test__slow_write", &json!({ "ms": 60_000, "file": file(&home, "out.txt") }));
    assert_eq!(write["error"]["message"], "(tool failed: timeout)");
    assert_eq!(
        (&write["extras"]["effect"], &write["state"]),
        (&json!("possible"), &json!("COMPLETED_FAILURE"))
    );
    assert_eq!(home.read("out.txt"), "begun\n", "what it began is not undone, and it goes no further");
    let row = home.run(["audit", "--tool", "test__slow_write", "--json"]).json()[0].take();
    assert_eq!((&row["error"]["code"], &row["effectState"]), (&json!("TIMEOUT"), &json!("possible")));
}
