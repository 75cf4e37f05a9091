//! The response cache: what is kept, for how long and for whom, and calls that wait for the same answer.

use super::{file, lines, post, post_as_person};
use gantry_testkit::server::Answer;
use gantry_testkit::{Server, TestDir};
use serde_json::{Value, json};
use std::thread;

/// The newest row of the audit log for a tool.
fn newest(server: &Server, tool: &str) -> Value {
    server.get_as_admin(&format!("/api/v1/audit?tool={tool}&limit=1")).json()["items"][0].take()
}

/// How many calls have begun to run.
fn started(server: &Server) -> usize {
    server.get("/api/v1/events?follow=false").text.matches("\"tool_started\"").count()
}

#[test]
fn cal_5_a_provider_and_a_tool_can_be_cached() {
    let home = TestDir::with_test_tools()
        .settings(&json!({ "cache": 60_000, "toolsCache": { "echo": 0, "slow-write": 60_000 } }));
    let server = home.serve();
    let cached = |tool: &str, arguments: &Value| {
        server.call(tool, arguments);
        server.call(tool, arguments).json()["extras"]["cached"] == true
    };
    let target = json!({ "file": file(&home, "out.txt"), "text": "x", "ms": 0 });
    assert!(cached("test__tick", &target), "the provider's tools are");
    assert!(!cached("test__echo", &json!({ "text": "x" })), "one of them is not");
    assert!(!cached("test__count", &target), "a provider's cache never swallows a write");
    assert!(cached("test__slow_write", &target), "a tool that is named itself is, whatever it does");
    assert!(!cached("read_file", &json!({ "path": "out.txt" })), "another provider's are not");
    assert_eq!(home.read("out.txt"), "tick\nx\nx\nbegun\nended\n");
    let row = newest(&server, "test__tick");
    assert_eq!((&row["cached"], &row["accounting"]["status"]), (&json!(true), &json!("ok")));
}

#[test]
fn cal_5_the_workspace_is_cached_by_the_configuration() {
    let home = TestDir::new().config("tools: { workspace: { toolsCache: { read_file: 600000 } } }\n");
    home.write("a.txt", "old");
    let server = home.serve();
    let read = || server.call("read_file", &json!({ "path": "a.txt" })).json();
    assert_eq!(read()["result"]["content"], "old");
    home.write("a.txt", "new");
    assert_eq!((&read()["result"]["content"], &read()["extras"]["cached"]), (&json!("old"), &json!(true)));
    // Other arguments are another call, in any order of keys.
    let other = server.call("read_file", &json!({ "encoding": "utf-8", "path": "a.txt" })).json();
    assert_eq!(other["result"]["content"], "new", "{other}");
    let swapped = server.call("read_file", &json!({ "path": "a.txt", "encoding": "utf-8" })).json();
    assert_eq!(swapped["extras"]["cached"], true, "{swapped}");
}

#[test]
fn cal_5_an_answer_is_given_again_only_for_so_long() {
    let home = TestDir::with_test_tools().settings(&json!({ "cache": 300 }));
    let server = home.serve();
    let tick = json!({ "file": file(&home, "ticks.txt"), "ms": 0 });
    assert_eq!(server.call("test__tick", &tick).json()["result"], "1");
    server.eventually("the answer expires", || server.call("test__tick", &tick).json()["result"] == "2");
}

#[test]
fn cal_5_only_successes_are_kept() {
    let home = TestDir::with_test_tools().settings(&json!({ "cache": 60_000 }));
    let server = home.serve();
    for _ in 0..2 {
        let failed = server.call("test__fail", &json!({ "text": "boom" })).json();
        assert_eq!(
            (&failed["error"]["code"], &failed["extras"]["cached"]),
            (&json!("EXECUTION_ERROR"), &Value::Null)
        );
    }
    // It fails while its folder is missing, and works once it is there.
    let tick = json!({ "file": file(&home, "later/ticks.txt"), "ms": 0 });
    assert_eq!(server.call("test__tick", &tick).json()["ok"], false);
    std::fs::create_dir(home.path().join("later")).unwrap();
    assert_eq!(server.call("test__tick", &tick).json()["result"], "1");
}

#[test]
fn cal_5_identical_misses_at_once_run_once() {
    let home = TestDir::with_test_tools().settings(&json!({ "cache": 60_000 }));
    let server = home.serve();
    let tick = json!({ "file": file(&home, "ticks.txt"), "ms": 500 });
    let replies: Vec<Value> = thread::scope(|scope| {
        let calls: Vec<_> =
            (0..20).map(|_| scope.spawn(|| server.call("test__tick", &tick).json())).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert!(replies.iter().all(|reply| reply["result"] == "1"), "{replies:?}");
    assert_eq!(lines(&home, "ticks.txt"), 1);
    let ran = replies.iter().filter(|reply| reply["extras"]["cached"] != true).count();
    assert_eq!(ran, 1, "one ran, the others were given its answer");
    let rows = server.get_as_admin("/api/v1/audit?tool=test__tick").json();
    assert_eq!(rows["items"].as_array().unwrap().len(), 20, "each is on record all the same");
}

#[test]
fn cal_5_answers_do_not_cross_identities_or_agents() {
    let home =
        TestDir::with_test_tools().config("agents: { a: {}, b: {} }\n").settings(&json!({ "cache": 60_000 }));
    let server = home.serve();
    let tick = json!({ "tool": "test__tick", "arguments": { "file": file(&home, "ticks.txt"), "ms": 0 } });
    let as_agent = |agent: &str| {
        let mut body = tick.clone();
        body["agent"] = agent.into();
        body
    };
    let callers: [&dyn Fn() -> Answer; 4] = [
        &|| post(&server, &tick),
        &|| post_as_person(&server, &tick),
        &|| post(&server, &as_agent("a")),
        &|| post(&server, &as_agent("b")),
    ];
    for (n, call) in callers.iter().enumerate() {
        assert_eq!(call().json()["result"], (n + 1).to_string(), "the first time it runs");
    }
    for (n, call) in callers.iter().enumerate() {
        let again = call().json();
        assert_eq!(again["result"], (n + 1).to_string(), "then each is given its own answer");
        assert_eq!(again["extras"]["cached"], true);
    }
}

#[test]
fn cal_5_a_caller_who_gives_up_takes_no_other_caller_along() {
    let home = TestDir::with_test_tools().settings(&json!({ "cache": 60_000 }));
    let server = home.serve();
    let call = json!({ "tool": "test__tick", "arguments": { "file": file(&home, "ticks.txt"), "ms": 2000 } });
    let first = crate::queues::defer(&server, &call);
    server.eventually("the first one runs", || started(&server) == 1);
    thread::scope(|scope| {
        let second = scope.spawn(|| post(&server, &call).json());
        crate::queues::cancel(&server, &first);
        assert_eq!(crate::queues::outcome(&server, &first).json()["error"]["code"], "CANCELED");
        let reply = second.join().unwrap();
        assert_eq!(reply["result"], "1", "{reply}");
    });
}

#[test]
fn cal_5_a_caller_with_a_shorter_timeout_fails_alone() {
    let home = TestDir::with_test_tools().settings(&json!({ "cache": 60_000 }));
    let server = home.serve();
    let call = json!({ "tool": "test__tick", "arguments": { "file": file(&home, "ticks.txt"), "ms": 1500 } });
    let mut hasty = call.clone();
    hasty["timeoutMs"] = 1000.into();
    thread::scope(|scope| {
        let first = scope.spawn(|| post(&server, &hasty).json());
        server.eventually("the hasty one runs", || started(&server) == 1);
        let patient = post(&server, &call).json();
        assert_eq!(first.join().unwrap()["error"]["code"], "TIMEOUT");
        assert_eq!(patient["result"], "1", "{patient}");
    });
}

#[test]
fn cal_5_a_call_that_waits_for_the_same_answer_can_be_canceled() {
    let home = TestDir::with_test_tools().settings(&json!({ "cache": 60_000 }));
    let server = home.serve();
    let call =
        json!({ "tool": "test__tick", "arguments": { "file": file(&home, "ticks.txt"), "ms": 50_000 } });
    let first = crate::queues::defer(&server, &call);
    server.eventually("the first one runs", || started(&server) == 1);
    let second = crate::queues::defer(&server, &call);
    crate::queues::cancel(&server, &second);
    assert_eq!(crate::queues::outcome(&server, &second).json()["error"]["code"], "CANCELED");
    assert_eq!(server.get(&format!("/api/v1/calls/{first}")).json()["state"], "EXECUTING");
}
