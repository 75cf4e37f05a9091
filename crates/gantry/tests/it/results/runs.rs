//! Runs: the tree of their operations, and what they add up to.

use crate::pipeline::{file, lines, post};
use crate::queues::{defer, outcome};
use gantry_testkit::TestDir;
use serde_json::{Value, json};

#[test]
fn cal_13_a_run_is_a_tree_of_operations() {
    let home = TestDir::with_test_tools();
    home.call("test__nested", &json!({ "tool": "test__echo", "arguments": { "text": "deep" } }));
    home.call("test__fail", &json!({ "text": "boom" }));
    let runs = home.run(["runs", "--json"]).json();
    assert_eq!(runs.as_array().unwrap().len(), 1, "one person, one run: {runs}");
    let id = runs[0]["id"].as_str().unwrap();
    let tree = home.run(["runs", id, "--json"]).json();
    assert_eq!(
        (&tree["id"], &tree["door"], &tree["principal"]),
        (&json!(id), &json!("cli"), &json!("person"))
    );
    assert_eq!(tree["turns"].as_array().unwrap().len(), 1);
    let turn = &tree["turns"][0];
    assert_eq!(turn["index"], 1);
    let ops = turn["ops"].as_array().unwrap();
    let names: Vec<&Value> = ops.iter().map(|op| &op["name"]).collect();
    assert_eq!(names, ["test__nested", "test__fail"], "what is below another is not beside it");
    let below = &ops[0]["ops"][0];
    assert_eq!(
        (&below["name"], &below["kind"], &below["status"]),
        (&json!("test__echo"), &json!("tool"), &json!("ok"))
    );
    assert_eq!(below["request"]["payload"], r#"{"text":"deep"}"#);
    assert_eq!((&below["response"]["size"], &below["accounting"]["charactersOut"]), (&json!(4), &json!(4)));
    assert_eq!((&ops[1]["status"], &ops[1]["error"]["code"]), (&json!("failed"), &json!("EXECUTION_ERROR")));
    for op in [&ops[0], below, &ops[1]] {
        assert!(op["startedAt"].as_str() <= op["endedAt"].as_str() && op["startedAt"].is_string(), "{op}");
        assert!(op["opId"].as_str().unwrap().starts_with("call_"));
    }
    assert!(ops[0]["startedAt"].as_str() <= below["startedAt"].as_str());
    assert!(below["endedAt"].as_str() <= ops[0]["endedAt"].as_str());
    assert_eq!(tree["totals"]["toolsRun"], 3);
    let shown = home.run(["runs", id]).stdout;
    let depth = |op: &str| shown.lines().find(|line| line.contains(op)).unwrap().find('└').unwrap();
    assert!(depth("└ ok test__echo") > depth("└ ok test__nested"), "{shown}");
}

#[test]
fn cal_13_a_call_that_runs_is_in_the_tree() {
    let home = TestDir::with_test_tools();
    let server = home.serve();
    let write =
        json!({ "tool": "test__slow_write", "arguments": { "ms": 600_000, "file": file(&home, "out.txt") } });
    let call = defer(&server, &write);
    server.eventually("it runs", || lines(&home, "out.txt") == 1);
    let run = server.get("/api/v1/runs").json()["items"][0]["id"].as_str().unwrap().to_owned();
    let tree = server.get(&format!("/api/v1/runs/{run}")).json();
    assert_eq!(
        (&tree["status"], &tree["turns"][0]["ops"][0]["status"]),
        (&json!("running"), &json!("running"))
    );
    assert!(tree["turns"][0]["ops"][0]["endedAt"].is_null());
    crate::queues::cancel(&server, &call);
    outcome(&server, &call);
    assert_eq!(server.get(&format!("/api/v1/runs/{run}")).json()["status"], "idle");
}

#[test]
fn cal_14_every_call_is_accounted_for_and_the_sums_count_each_once() {
    let home = TestDir::with_test_tools().config("agents: { a: {} }\n");
    let server = home.serve();
    let agent = |call: Value| {
        let mut call = call;
        call["agent"] = "a".into();
        post(&server, &call).json()
    };
    let echoed = agent(json!({ "tool": "test__echo", "arguments": { "text": "häß" } }));
    let record = |reply: &Value| {
        server.get(&format!("/api/v1/calls/{}", reply["id"].as_str().unwrap())).json()["record"].take()
    };
    let accounting = record(&echoed)["accounting"].take();
    let expected = json!({
        "latencyMs": accounting["latencyMs"], "charactersIn": r#"{"text":"häß"}"#.chars().count(), "charactersOut": 3,
        "status": "ok", "namespace": "test", "actor": "a", "costMicros": 0,
    });
    assert_eq!(accounting, expected);
    assert!(accounting["latencyMs"].is_u64());
    agent(
        json!({ "tool": "test__nested", "arguments": { "tool": "test__echo", "arguments": { "text": "deep" } } }),
    );
    let failed = agent(json!({ "tool": "test__fail", "arguments": { "text": "boom" } }));
    assert_eq!(record(&failed)["accounting"]["status"], "failed");
    agent(json!({ "tool": "test__nothing" }));
    let unnamed = server.call("test__noop", &json!({})).json();
    assert_eq!(record(&unnamed)["accounting"]["actor"], "local", "without an agent it is the identity");
    let run = server.get("/api/v1/runs?agent=a").json()["items"][0].take();
    let rows = server.get(&format!("/api/v1/audit?session={}", run["id"].as_str().unwrap())).json();
    let rows = rows["items"].as_array().unwrap();
    assert_eq!(rows.len(), 5, "the one below another is a call too");
    let sum = |key: &str| rows.iter().map(|row| row["accounting"][key].as_u64().unwrap()).sum::<u64>();
    let totals = &run["totals"];
    for key in ["charactersIn", "charactersOut", "costMicros"] {
        assert_eq!(totals[key], sum(key), "{key}");
    }
    assert_eq!(
        (&totals["toolsRun"], &totals["failed"], &totals["refused"]),
        (&json!(5), &json!(2), &json!(1))
    );
}
