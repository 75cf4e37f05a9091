//! Tasks: a held call of a client that knows the extension becomes one at once, and is there until it is over, no matter
//! happens to Gantry meanwhile.

use super::{COUNT, Gate, RULE, api, count, failed, home, only, ran};
use crate::approvals::keys;
use crate::mcp_sdks::{Door, PYTHON, Playing, Sdk, TYPESCRIPT_2, inspector};
use gantry_testkit::server::Answer;
use serde_json::{Value, json};

/// The clients that know tasks: the Python SDK by its interface for extensions, the TypeScript one by the package for it.
const SDKS: [Sdk; 2] = [PYTHON, TYPESCRIPT_2];

const OPTIONS: [&str; 3] = ["--era", "auto", "--tasks"];

impl Gate {
    fn begin(&self, sdk: &Sdk) -> Playing {
        sdk.begin(&self.home, self.door(), &OPTIONS, &json!([count("a")]))
    }

    /// What the Python SDK gets for these requests.
    fn requests_of(&self, options: &[&str], requests: &[(&str, Value)]) -> Vec<Value> {
        let script: Vec<Value> = requests
            .iter()
            .map(|(method, params)| json!({ "request": { "method": method, "params": params } }))
            .collect();
        let options = [&OPTIONS, options].concat();
        let seen = PYTHON.play_with(&self.home, self.door(), &options, &json!(script));
        seen["steps"].as_array().expect("steps").clone()
    }

    /// Makes a task that waits; its id, and that of its approval.
    fn task(&self, line: &str) -> (String, String) {
        let call = json!({ "name": COUNT, "arguments": api::count(line) });
        let steps = self.requests_of(&[], &[("tools/call", call)]);
        let task = &steps[0]["result"];
        assert_eq!((&task["resultType"], &task["status"]), (&json!("task"), &json!("working")), "{task}");
        (task["taskId"].as_str().expect("an id").to_owned(), self.pending())
    }

    /// How a task stands.
    fn look(&self, task: &str) -> Value {
        self.requests_of(&[], &[("tasks/get", about(task))])[0].clone()
    }
}

fn about(task: &str) -> Value {
    json!({ "taskId": task })
}

/// The first thing that a client got of its task, and the last one.
#[track_caller]
fn ends(step: &Value) -> (&Value, &Value) {
    let tasks = step["tasks"].as_array().unwrap_or_else(|| panic!("no task: {step}"));
    (tasks.first().expect("a task"), tasks.last().expect("a task"))
}

#[test]
fn apr_6_a_held_call_becomes_a_task_at_once_which_is_completed_with_the_result() {
    for sdk in SDKS {
        let gate = Gate::new("");
        let playing = gate.begin(&sdk);
        let approval = gate.approve();
        let seen = playing.end();
        ran(only(&seen), "a");
        let (first, last) = ends(only(&seen));
        let item = gate.item(&approval);
        assert_eq!((&first["resultType"], &first["status"]), (&json!("task"), &json!("working")), "{first}");
        assert_eq!(first["taskId"], item["callId"], "{first}");
        assert_eq!(first["statusMessage"], format!("waiting for approval ({approval})"), "{first}");
        assert_eq!((&first["createdAt"], &first["ttlMs"]), (&item["createdAt"], &Value::Null), "{first}");
        assert!(first["pollIntervalMs"].is_u64(), "{first}");
        assert_eq!((&last["taskId"], &last["status"]), (&first["taskId"], &json!("completed")), "{last}");
        assert_eq!(last["result"]["content"][0]["text"], r#"{"counted":"a"}"#, "{last}");
        assert_eq!((&item["decidedVia"], gate.counted()), (&json!("http"), vec!["a".to_owned()]));
    }
}

#[test]
fn apr_6_the_mcp_inspector_waits_for_a_task_and_shows_its_result() {
    let gate = Gate::new("");
    let arguments = api::count("a").to_string();
    let ran = std::thread::scope(|scope| {
        let args = ["--method", "tools/call", "--tool-name", COUNT, "--tool-args-json", &arguments];
        let gate = &gate;
        let inspected = scope.spawn(move || inspector(&gate.home, gate.door(), "modern", &args));
        gate.approve();
        inspected.join().expect("it ends")
    });
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.json()["result"]["content"][0]["text"], r#"{"counted":"a"}"#, "{ran:?}");
    assert_eq!(gate.counted(), ["a"]);
}

#[test]
fn apr_7_a_task_says_whether_it_was_denied_or_has_expired() {
    for sdk in SDKS {
        let gate = Gate::new("");
        let playing = gate.begin(&sdk);
        let approval = gate.pending();
        gate.decide(&approval, &json!({ "approved": false, "reason": "not on a Friday" }));
        let seen = playing.end();
        let outcome = "(tool failed: denied by person: not on a Friday. Nothing was run.)";
        assert_eq!(failed(only(&seen), "REJECTED_BY_USER"), outcome);
        let (_, last) = ends(only(&seen));
        let shown = (&last["status"], &last["statusMessage"]);
        assert_eq!(shown, (&json!("completed"), &json!("denied; nothing was run")), "{last}");
        assert_eq!(last["result"]["isError"], true, "{last}");

        let gate = Gate::new("approvalTimeoutMs: 1500");
        let seen = gate.begin(&sdk).end();
        let outcome = failed(only(&seen), "REJECTED_BY_TIMEOUT");
        assert!(outcome.contains("expired: no approver decided within 1 s; nothing was run"), "{outcome}");
        let (_, last) = ends(only(&seen));
        let shown = (&last["status"], &last["statusMessage"]);
        assert_eq!(shown, (&json!("completed"), &json!("expired; nothing was run")), "{last}");
        assert!(gate.counted().is_empty());
    }
}

#[test]
fn apr_7_a_task_that_its_client_cancels_is_cancelled_and_never_runs() {
    for sdk in SDKS {
        let gate = Gate::new("");
        let mut step = count("a");
        step["call"]["cancel"] = json!(true);
        let seen = sdk.play_with(&gate.home, gate.door(), &OPTIONS, &json!([step]));
        assert_eq!(only(&seen)["cancelled"], true, "{seen}");
        let item = &gate.requests("CANCELLED_BY_SYSTEM")[0];
        let task = item["callId"].as_str().expect("an id");
        let look = gate.look(task);
        assert_eq!(look["result"]["status"], "cancelled", "{look}");
        let late = api::decide(&gate.server.admin(), item["id"].as_str().expect("an id"), &yes());
        assert_eq!(late.status, 409, "{late:?}");
        // The same call again is a new one.
        let (again, _) = gate.task("a");
        assert_ne!(again, task);
        assert!(gate.counted().is_empty());
    }
}

#[test]
fn apr_7_a_task_that_a_rule_denies_by_now_says_so() {
    let gate = Gate::new("");
    let (task, approval) = gate.task("a");
    let deny = "policies: [{ name: since-then, tools: [test__count], decide: deny }]";
    let config = format!("approvals: {{ {RULE} }}\n{deny}\n");
    std::fs::write(gate.home.path().join("gantry.yaml"), config).expect("it is written");
    let reloaded = api::post(&gate.server.admin(), "/api/v1/config/reload", &Value::Null);
    assert_eq!(reloaded.status, 200, "{reloaded:?}");
    gate.decide(&approval, &yes());
    gate.becomes(&approval, "CANCELLED_BY_SYSTEM");
    let look = gate.look(&task);
    assert_eq!(look["result"]["status"], "cancelled", "{look}");
    let why = look["result"]["statusMessage"].as_str().expect("a message");
    assert!(why.contains("since-then"), "{look}");
    assert!(gate.counted().is_empty());
}

fn yes() -> Value {
    json!({ "approved": true })
}

#[test]
fn apr_6_a_task_belongs_to_its_caller_alone() {
    let gate = Gate::new("");
    let (task, approval) = gate.task("a");
    let key = keys::text(&gate.server, &json!({ "name": "bot", "role": "agent" }));
    let header = format!("Authorization: Bearer {key}");
    let methods = ["tasks/get", "tasks/cancel", "tasks/update"];
    let refused = json!({ "code": -32602, "message": "there is no such task" });
    let strange = methods.map(|method| (method, json!({ "taskId": task, "inputResponses": {} })));
    let of_another = gate.requests_of(&["--header", &header], &strange);
    let nobodys = methods.map(|method| (method, about("call_01a1e15d067c711bbeebf5c893fd4289")));
    let unknown = gate.requests_of(&[], &[nobodys, methods.map(|method| (method, about("x")))].concat());
    for step in of_another.iter().chain(&unknown) {
        assert_eq!(step["error"], refused, "{step}");
    }
    assert_eq!(gate.item(&approval)["state"], "PENDING_APPROVAL");
    // Nothing is asked through a task, so an answer is taken and means nothing.
    let own = gate.requests_of(&[], &[("tasks/update", json!({ "taskId": task, "inputResponses": {} }))]);
    assert!(own[0]["error"].is_null(), "{own:?}");
    assert_eq!(gate.look(&task)["result"]["status"], "working");
}

/// The same request of one caller is one call, so it is one task.
#[test]
fn apr_5_the_same_call_twice_is_one_task_and_runs_once() {
    let gate = Gate::new("");
    let (first, approval) = gate.task("a");
    let (second, same) = gate.task("a");
    assert_eq!((&first, &approval), (&second, &same));
    gate.decide(&approval, &yes());
    gate.becomes(&approval, "COMPLETED_SUCCESS");
    for _ in 0..2 {
        let look = gate.look(&first);
        assert_eq!(look["result"]["status"], "completed", "{look}");
    }
    assert_eq!(gate.counted(), ["a"]);
}

#[test]
fn apr_4_a_task_survives_a_crash_of_gantry_before_it_is_approved() {
    let mut gate = Gate::new("");
    let (task, approval) = gate.task("a");
    let home = gate.home;
    gate.server.kill();
    gate = Gate::at(home);
    assert_eq!(gate.look(&task)["result"]["status"], "working");
    gate.decide(&approval, &yes());
    gate.becomes(&approval, "COMPLETED_SUCCESS");
    let look = gate.look(&task);
    assert_eq!(look["result"]["result"]["content"][0]["text"], r#"{"counted":"a"}"#, "{look}");
    assert_eq!(gate.counted(), ["a"]);
}

/// A running client of the Python SDK asks the server that was started anew for the task that the old one gave it.
#[test]
fn apr_4_a_client_goes_on_asking_for_its_task_after_a_crash() {
    let home = home("");
    let server = home.serve();
    let address = server.address.to_string();
    let gate = Gate { server, home };
    let (task, approval) = gate.task("a");
    let home = gate.home;
    gate.server.kill();
    let gate = Gate { server: home.serve_with(&["--bind", &address]), home };
    let poll = json!([{ "request": { "method": "tasks/get", "params": about(&task) } }]);
    let before = PYTHON.play_with(&gate.home, gate.door(), &OPTIONS, &poll);
    assert_eq!(only(&before)["result"]["status"], "working", "{before}");
    gate.decide(&approval, &json!({ "approved": false, "reason": "changed my mind" }));
    let look = gate.look(&task);
    let outcome = look["result"]["result"]["content"][0]["text"].as_str().expect("a text");
    assert!(outcome.contains("denied by person: changed my mind"), "{look}");
}

#[test]
fn apr_6_clients_of_the_older_era_and_clients_that_do_not_declare_it_get_no_tasks() {
    let gate = Gate::new("holdMs: 1000");
    let seen =
        PYTHON.play_with(&gate.home, Door::Http(&gate.server), &["--era", "auto"], &json!([count("a")]));
    failed(only(&seen), "APPROVAL_REQUIRED");
    let options = ["--era", "legacy", "--tasks"];
    let script = json!([count("b"), { "request": { "method": "tasks/get", "params": about("x") } }]);
    let seen = PYTHON.play_with(&gate.home, gate.door(), &options, &script);
    failed(&seen["steps"][0], "APPROVAL_REQUIRED");
    assert_eq!(seen["steps"][1]["error"]["code"], -32601, "{seen}");
    // A client that asks for a task without having declared that it knows any gets an error.
    let poll = json!([{ "request": { "method": "tasks/get", "params": about("x") } }]);
    let seen = PYTHON.play_with(&gate.home, gate.door(), &["--era", "auto"], &poll);
    assert_eq!(only(&seen)["error"]["code"], -32021, "{seen}");
    let answer: Answer = gate.server.get("/api/v1/approvals");
    assert_eq!(answer.json()["items"].as_array().map(Vec::len), Some(2), "{answer:?}");
}
