//! Queues: how many calls run and wait, who goes next, and what cancelling does to them.

use crate::pipeline::{file, lines, post, post_as_person};
use gantry_testkit::server::{Answer, send};
use gantry_testkit::{Server, TestDir};
use http::Method;
use serde_json::{Value, json};
use std::thread;

/// A queue as `/api/v1/queues` shows it.
pub(crate) fn queue(server: &Server, name: &str) -> Value {
    let queues = server.get("/api/v1/queues").json();
    let mut items = queues["items"].as_array().into_iter().flatten();
    items.find(|queue| queue["name"] == name).cloned().unwrap_or_default()
}

/// Makes a call without waiting for it and returns its id.
#[track_caller]
pub(crate) fn defer(server: &Server, call: &Value) -> String {
    let mut call = call.clone();
    call["mode"] = "defer".into();
    let answer = post(server, &call);
    assert_eq!(answer.status, 202, "{answer:?}");
    answer.json()["id"].as_str().unwrap_or_default().to_owned()
}

/// Takes one slot of a queue with a call that sleeps until it is canceled, and returns its id.
#[track_caller]
pub(crate) fn occupy(server: &Server, name: &str) -> String {
    let taken = queue(server, name)["inUse"].as_u64();
    let id = defer(server, &json!({ "tool": "test__sleep", "arguments": { "ms": 600_000 } }));
    server.eventually("the slot is taken", || queue(server, name)["inUse"].as_u64() > taken);
    id
}

/// Puts a call into the line of a queue, and returns its id once it stands there.
#[track_caller]
fn line_up(server: &Server, name: &str, call: &Value) -> String {
    let depth = queue(server, name)["depth"].as_u64();
    let id = defer(server, call);
    server.eventually("the call waits", || queue(server, name)["depth"].as_u64() > depth);
    id
}

/// Cancels a call.
#[track_caller]
pub(crate) fn cancel(server: &Server, id: &str) {
    let answer = server.post(&format!("/api/v1/calls/{id}/cancel"), "");
    assert_eq!((answer.status, &answer.json()["canceled"]), (200, &json!(true)), "{answer:?}");
}

/// Waits until a deferred call has ended and returns what it came to.
#[track_caller]
pub(crate) fn outcome(server: &Server, id: &str) -> Answer {
    let get = || server.get(&format!("/api/v1/calls/{id}"));
    server.eventually("the call ends", || get().json()["state"] != "EXECUTING");
    get()
}

/// A home whose test tools pass the queue `one`, set up like this.
fn one(queue: &str) -> TestDir {
    TestDir::with_test_tools()
        .config(&format!("queues: {{ one: {queue} }}\nagents: {{ b: {{}} }}\n"))
        .settings(&json!({ "queue": "one" }))
}

#[test]
fn cal_6_no_more_calls_run_at_once_than_the_queue_allows() {
    let home = one("{ concurrent: 2 }");
    let server = home.serve();
    let write = json!({ "ms": 30, "file": file(&home, "out.txt") });
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(server.call("test__slow_write", &write).json()["result"], "written"));
        }
    });
    let mut running = 0;
    for line in home.read("out.txt").lines() {
        running += if line == "begun" { 1 } else { -1 };
        assert!((0..=2).contains(&running), "{running} ran at once");
    }
    let queue = queue(&server, "one");
    assert_eq!((&queue["admitted"], &queue["inUse"], &queue["depth"]), (&json!(8), &json!(0), &json!(0)));
}

#[test]
fn cal_6_depth_and_use_are_visible() {
    let home = one("{ concurrent: 2, maxWaiting: 5 }");
    let server = home.serve();
    let idle = json!({
        "name": "one", "concurrent": 2, "maxWaiting": 5, "inUse": 0, "depth": 0,
        "admitted": 0, "rejected": 0, "lastWaitMs": 0, "totalWaitMs": 0,
    });
    assert_eq!(queue(&server, "one"), idle);
    let running = [occupy(&server, "one"), occupy(&server, "one")];
    let waiting = line_up(&server, "one", &json!({ "tool": "test__noop" }));
    let busy = queue(&server, "one");
    assert_eq!((&busy["inUse"], &busy["depth"], &busy["admitted"]), (&json!(2), &json!(1), &json!(2)));
    assert_eq!(server.get(&format!("/api/v1/calls/{waiting}")).json()["state"], "EXECUTING");
    let metrics = server.get_as_admin("/metrics").text;
    assert!(metrics.lines().any(|line| line.contains("queue") && line.contains("\"one\"")), "{metrics}");
    cancel(&server, &running[0]);
    assert_eq!(outcome(&server, &waiting).json()["result"], "ok");
    cancel(&server, &running[1]);
    server.eventually("all slots are free", || queue(&server, "one")["inUse"] == 0);
}

#[test]
fn cal_6_beyond_the_bound_calls_are_turned_away() {
    let home = one("{ concurrent: 1, maxWaiting: 1 }");
    let server = home.serve();
    let running = occupy(&server, "one");
    let count = json!({ "tool": "test__count", "arguments": { "file": file(&home, "c"), "text": "x" } });
    let waiting = line_up(&server, "one", &count);
    let refused = post(&server, &count);
    assert_eq!(refused.status, 429);
    let after: u64 = refused.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!(after >= 1);
    let reply = refused.json();
    assert_eq!((&reply["error"]["code"], &reply["state"]), (&json!("QUEUE_FULL"), &json!("REFUSED")));
    assert_eq!(
        (&reply["error"]["details"]["queue"], &reply["extras"]["effect"]),
        (&json!("one"), &json!("none"))
    );
    assert!(reply["error"]["message"].as_str().unwrap().contains("try again later"), "{reply}");
    assert_eq!(queue(&server, "one")["rejected"], 1);
    let rows = server.get_as_admin("/api/v1/audit?tool=test__count&state=REFUSED").json();
    assert_eq!(rows["items"][0]["error"]["code"], "QUEUE_FULL");
    cancel(&server, &running);
    assert_eq!(outcome(&server, &waiting).json()["ok"], true);
    assert_eq!(lines(&home, "c"), 1, "what was turned away did not run");
}

#[test]
fn cal_6_the_whole_process_takes_so_many_calls_and_no_more() {
    let home = TestDir::with_test_tools().config("defaults: { maxConcurrentCalls: 1 }\n");
    let server = home.serve();
    // From its first moment on a deferred call counts.
    let running = defer(&server, &json!({ "tool": "test__sleep", "arguments": { "ms": 600_000 } }));
    for mode in ["wait", "defer"] {
        let refused = post(&server, &json!({ "tool": "test__noop", "mode": mode }));
        assert_eq!((refused.status, &refused.json()["error"]["code"]), (429, &json!("QUEUE_FULL")), "{mode}");
        assert!(refused.headers.contains_key("retry-after"), "{mode}");
    }
    cancel(&server, &running);
    outcome(&server, &running);
    server.eventually("there is room again", || server.call("test__noop", &json!({})).status == 200);
}

#[test]
fn cal_6_canceling_a_waiting_call_frees_its_place() {
    let home = one("{ concurrent: 1, maxWaiting: 1 }");
    let server = home.serve();
    let running = occupy(&server, "one");
    let count = json!({ "tool": "test__count", "arguments": { "file": file(&home, "c"), "text": "x" } });
    let first = line_up(&server, "one", &count);
    assert_eq!(post(&server, &count).status, 429);
    cancel(&server, &first);
    let gone = outcome(&server, &first).json();
    assert_eq!((&gone["error"]["code"], &gone["extras"]["effect"]), (&json!("CANCELED"), &json!("none")));
    assert_eq!(gone["state"], "REFUSED", "it was not run: {gone}");
    assert_eq!(queue(&server, "one")["depth"], 0);
    let second = line_up(&server, "one", &count);
    cancel(&server, &running);
    assert_eq!(outcome(&server, &second).json()["ok"], true);
    assert_eq!(lines(&home, "c"), 1);
}

#[test]
fn cal_6_a_tool_may_have_its_own_queue_or_none() {
    let home = TestDir::with_test_tools()
        .config("queues: { one: { concurrent: 1 }, two: { concurrent: 1 } }\n")
        .settings(&json!({ "queue": "one", "toolsQueue": { "echo": null, "noop": "two" } }));
    let server = home.serve();
    let running = occupy(&server, "one");
    assert_eq!(server.call("test__echo", &json!({ "text": "free" })).json()["result"], "free");
    assert_eq!(server.call("test__noop", &json!({})).json()["result"], "ok");
    let admitted = |name: &str| queue(&server, name)["admitted"].as_u64();
    assert_eq!((admitted("one"), admitted("two")), (Some(1), Some(1)));
    cancel(&server, &running);
}

#[test]
fn cal_6_the_workspace_passes_the_queue_that_the_configuration_names() {
    let home = TestDir::new().config(
        "queues: { disk: { concurrent: 1 } }\ntools: { workspace: { queue: disk, toolsQueue: { read_file: null } } }\n",
    );
    home.write("a.txt", "hi");
    let server = home.serve();
    server.call("read_file", &json!({ "path": "a.txt" }));
    server.call("list_directory", &json!({ "path": "." }));
    assert_eq!(queue(&server, "disk")["admitted"], 1);
}

#[test]
fn cal_6_an_unknown_queue_is_an_error_that_names_its_line() {
    for (key, line) in [("queue: dsk", 4), ("toolsQueue: { read_file: dsk }", 4)] {
        let home = TestDir::new()
            .config(&format!("queues: {{ disk: {{ concurrent: 1 }} }}\ntools:\n  workspace:\n    {key}\n"));
        for command in [&["tools"] as &[&str], &["serve", "--bind", "127.0.0.1:0"]] {
            let ran = home.run(command);
            assert_eq!(ran.code, 2, "{ran:?}");
            assert!(ran.stderr.contains(&format!("gantry.yaml:{line}: ")), "{}", ran.stderr);
            assert!(ran.stderr.contains("unknown queue \"dsk\"; did you mean \"disk\"?"), "{}", ran.stderr);
        }
    }
}

#[test]
fn cal_6_the_urgent_go_first_and_equals_in_their_order() {
    let home = one("{ concurrent: 1 }");
    let server = home.serve();
    let running = occupy(&server, "one");
    let wanted = [("low", "5"), ("normal", "3"), ("high", "1"), ("normal", "4"), ("high", "2")];
    let waiting = wanted.map(|(priority, text)| {
        let arguments = json!({ "file": file(&home, "order.txt"), "text": text });
        line_up(
            &server,
            "one",
            &json!({ "tool": "test__count", "arguments": arguments, "priority": priority }),
        )
    });
    cancel(&server, &running);
    for id in &waiting {
        assert_eq!(outcome(&server, id).json()["ok"], true);
    }
    assert_eq!(home.read("order.txt"), "1\n2\n3\n4\n5\n");
}

#[test]
fn cal_6_sessions_take_turns() {
    let home = one("{ concurrent: 1 }");
    let server = home.serve();
    let running = occupy(&server, "one");
    let order = [(None, "a1"), (None, "a2"), (None, "a3"), (Some("b"), "b1"), (Some("b"), "b2")];
    let waiting = order.map(|(agent, text)| {
        let arguments = json!({ "file": file(&home, "order.txt"), "text": text });
        line_up(&server, "one", &json!({ "tool": "test__count", "arguments": arguments, "agent": agent }))
    });
    cancel(&server, &running);
    for id in &waiting {
        assert_eq!(outcome(&server, id).json()["ok"], true);
    }
    assert_eq!(home.read("order.txt"), "a1\nb1\na2\nb2\na3\n");
}

#[test]
fn cal_7_calls_below_a_call_reuse_its_slot() {
    let home = one("{ concurrent: 1, maxWaiting: 8 }");
    let server = home.serve();
    let deep = (0..4).fold(
        json!({ "tool": "test__echo", "arguments": { "text": "deep" } }),
        |below, _| json!({ "tool": "test__nested", "arguments": below }),
    );
    thread::scope(|scope| {
        for _ in 0..5 {
            scope.spawn(|| assert_eq!(server.call("test__nested", &deep).json()["result"], "deep"));
        }
    });
    let queue = queue(&server, "one");
    assert_eq!((&queue["inUse"], &queue["depth"], &queue["rejected"]), (&json!(0), &json!(0), &json!(0)));
    assert_eq!(server.call("test__noop", &json!({})).json()["result"], "ok", "the slot was given back");
}

#[test]
fn cal_7_a_slot_that_is_lent_still_counts() {
    let home = one("{ concurrent: 1, maxWaiting: 8 }");
    let server = home.serve();
    let below = json!({ "tool": "test__sleep", "arguments": { "ms": 600_000 } });
    let parent = defer(&server, &json!({ "tool": "test__nested", "arguments": below }));
    let started = || server.get("/api/v1/events?follow=false").text.matches("\"tool_started\"").count();
    server.eventually("parent and child run", || started() == 2);
    let other = line_up(&server, "one", &json!({ "tool": "test__noop" }));
    assert_eq!(queue(&server, "one")["inUse"], 1);
    cancel(&server, &parent);
    assert_eq!(outcome(&server, &other).json()["ok"], true);
}

#[test]
fn cal_12_canceling_a_run_cancels_what_it_has_queued_and_running() {
    let home = one("{ concurrent: 1 }");
    let server = home.serve();
    let write =
        json!({ "tool": "test__slow_write", "arguments": { "ms": 600_000, "file": file(&home, "out.txt") } });
    let running = defer(&server, &write);
    server.eventually("it runs", || lines(&home, "out.txt") == 1);
    let waiting = line_up(&server, "one", &write);
    let run = server.get("/api/v1/runs").json()["items"][0]["id"].as_str().unwrap().to_owned();
    let answer = server.post(&format!("/api/v1/runs/{run}/cancel"), "");
    assert_eq!((answer.status, &answer.json()["canceled"]), (200, &json!(true)), "{answer:?}");
    let (running, waiting) = (outcome(&server, &running).json(), outcome(&server, &waiting).json());
    assert_eq!(
        (&running["error"]["code"], &waiting["error"]["code"]),
        (&json!("CANCELED"), &json!("CANCELED"))
    );
    assert_eq!(running["extras"]["effect"], "possible", "it had begun: {running}");
    assert_eq!(waiting["extras"]["effect"], "none", "it had not: {waiting}");
    server.eventually("the queue is empty", || {
        let queue = queue(&server, "one");
        queue["inUse"] == 0 && queue["depth"] == 0
    });
    assert_eq!(home.read("out.txt"), "begun\n", "the one was stopped, the other never ran");
    let ended = server.get(&format!("/api/v1/runs/{run}")).json();
    assert!(ended["endedAt"].is_string(), "{ended}");
    assert!(server.get("/api/v1/events?follow=false").text.contains("\"session_canceled\""));
    assert_eq!(server.post(&format!("/api/v1/runs/{run}/cancel"), "").json()["canceled"], false, "only once");
    // A call made again begins a new run.
    let next = server.call("test__noop", &json!({})).json();
    let record = server.get(&format!("/api/v1/calls/{}", next["id"].as_str().unwrap())).json();
    assert_ne!(record["record"]["session"], run.as_str());
}

#[test]
fn cal_12_a_run_is_canceled_from_the_command_line() {
    let home = TestDir::with_test_tools();
    let server = home.serve();
    let id = defer(&server, &json!({ "tool": "test__sleep", "arguments": { "ms": 600_000 } }));
    let runs = home.run(["runs", "--json"]).json();
    let run =
        runs.as_array().unwrap().iter().find(|run| run["door"] == "http").unwrap()["id"].as_str().unwrap();
    let ran = home.run(["runs", run, "--cancel", "--json"]);
    assert_eq!((ran.code, &ran.json()["canceled"]), (0, &json!(true)), "{ran:?}");
    assert_eq!(outcome(&server, &id).json()["error"]["code"], "CANCELED");
    assert_eq!(home.run(["runs", run, "--cancel"]).code, 1, "it does not run any more");
}

#[test]
fn cal_12_canceling_a_call_stops_it_and_what_runs_below_it() {
    let home = TestDir::with_test_tools();
    let server = home.serve();
    let below = json!({ "tool": "test__sleep", "arguments": { "ms": 600_000 } });
    let id = defer(&server, &json!({ "tool": "test__nested", "arguments": below }));
    let started = || server.get("/api/v1/events?follow=false").text.matches("\"tool_started\"").count();
    server.eventually("parent and child run", || started() == 2);
    cancel(&server, &id);
    assert_eq!(outcome(&server, &id).json()["error"]["code"], "CANCELED");
    let child = || server.get("/api/v1/calls?tool=test__sleep").json()["items"][0].take();
    server.eventually("the child is on record", || child()["error"]["code"] == "CANCELED");
    assert_eq!(child()["parent"], id.as_str());
    let again = server.post(&format!("/api/v1/calls/{id}/cancel"), "");
    assert_eq!(again.status, 404, "what has ended cannot be canceled");
}

#[test]
fn cal_12_no_identity_sees_or_cancels_the_calls_of_another() {
    let home = TestDir::with_test_tools();
    let server = home.serve();
    let sleep = json!({ "tool": "test__sleep", "arguments": { "ms": 600_000 }, "mode": "defer" });
    let persons = post_as_person(&server, &sleep).json()["id"].as_str().unwrap().to_owned();
    let unknown = "call_01a1deb9968b7695b7d08c89676b4335";
    let answers = |id: &str| {
        let seen = server.get(&format!("/api/v1/calls/{id}"));
        let canceled = server.post(&format!("/api/v1/calls/{id}/cancel"), "");
        [seen, canceled].map(|answer| (answer.status, answer.text.replace(id, "ID")))
    };
    assert_eq!(answers(&persons), answers(unknown), "somebody else's call is answered like none");
    assert_eq!(answers(&persons)[0].0, 404);
    // The person may cancel every call.
    let anybodys = defer(&server, &json!({ "tool": "test__sleep", "arguments": { "ms": 600_000 } }));
    for id in [&persons, &anybodys] {
        let path = format!("/api/v1/calls/{id}/cancel");
        assert_eq!(send(&server.admin(), Method::POST, &path, &[], "").status, 200);
    }
    assert_eq!(outcome(&server, &anybodys).json()["error"]["code"], "CANCELED");
}
