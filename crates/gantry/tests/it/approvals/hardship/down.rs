//! The MCP server of an approved call is down when Gantry starts again: the call keeps its place and its yes, and runs
//! once when the server is back.

use super::super::held::{Held, approve, ask, hold, item, over, record, text, verified};
use super::{reaches, wait};
use gantry_testkit::faulty::{Faulty, Kind};
use gantry_testkit::{Server, TestDir};
use http::Method;
use serde_json::{Value, json};

/// Longer than it takes until a call that was put off is tried again.
const TRIED_AGAIN_SECONDS: u64 = 3;

/// A home with this server, whose calls wait for the queue that another call can be in.
fn home(server: &Value) -> TestDir {
    TestDir::with_test_tools()
        .config(&config(server))
        .settings(&json!({ "toolsQueue": { "slow-write": "one" } }))
}

fn config(server: &Value) -> String {
    let mut servers = json!({ "s": server });
    servers["s"]["queue"] = json!("one");
    let config = json!({
        "queues": { "one": { "concurrent": 1 } },
        "approvals": { "requiresApprovalTools": ["s__journal"] },
        "mcpServers": servers,
    });
    config.to_string()
}

/// A server on stdio that starts only while there is a file `go`.
fn program() -> Value {
    let script = "cd \"$0\"; test -f go || { echo no go >&2; exit 9; }; exec $FAULTY --journal journal.txt";
    json!({ "command": "sh", "args": ["-c", script, "."], "env": { "FAULTY": Faulty::program() } })
}

fn journal(home: &TestDir) -> Vec<String> {
    home.lines("journal.txt")
}

#[track_caller]
fn status(server: &Server) -> Value {
    server.get_as_admin("/api/v1/servers/s").json()
}

/// Gets a call approved that has not begun when Gantry is killed.
#[track_caller]
fn approved_before_the_end(home: &TestDir) -> Held {
    let server = home.serve();
    server.eventually("s is ready", || status(&server)["status"] == "ready");
    let busy = json!({ "tool": "test__slow_write", "arguments": { "file": "busy", "ms": 600_000 }, "mode": "defer" });
    assert_eq!(server.post("/api/v1/calls", &busy.to_string()).status, 202);
    server.eventually("the queue is full", || home.path().join("busy").exists());
    let held = hold(&server, None, "s__journal", &json!({ "text": "once" }));
    approve(&server, &held);
    assert_eq!(item(&server, &held.id)["state"], "APPROVED_READY");
    server.kill();
    assert!(journal(home).is_empty(), "it has not begun");
    held
}

/// Starts Gantry without the server, and holds it to putting the call off.
#[track_caller]
fn put_off(home: &TestDir, held: &Held) -> Server {
    let server = home.serve();
    server.eventually("s is down", || status(&server)["status"] == "down");
    let waits = wait(&server, held, TRIED_AGAIN_SECONDS);
    assert_eq!((&waits["ok"], &waits["state"]), (&json!(false), &json!("APPROVED_READY")), "{waits}");
    assert_eq!(waits["approvalId"], *held.id, "{waits}");
    let item = item(&server, &held.id);
    assert_eq!((&item["state"], &item["attempts"]), (&json!("APPROVED_READY"), &json!(0)), "{item}");
    assert_eq!((&item["decidedBy"], &item["endedAt"]), (&json!("person"), &Value::Null), "{item}");
    // Who looks sees it, and why it does not go on.
    let listed = server.get_as_admin("/api/v1/approvals?state=APPROVED_READY").json();
    assert_eq!(listed["items"][0]["id"], *held.id, "{listed}");
    let why = status(&server);
    assert!(why["lastError"].is_string() && why["retryAt"].is_string(), "{why}");
    server
}

/// The server is back: the call runs, once, no matter what happens afterwards.
#[track_caller]
fn runs_once(home: &TestDir, server: Server, held: &Held) {
    let done = over(&server, held);
    assert_eq!((&done["state"], &done["attempts"]), (&json!("COMPLETED_SUCCESS"), &json!(1)), "{done}");
    let outcome = wait(&server, held, 0);
    assert_eq!((&outcome["ok"], &outcome["result"]), (&json!(true), &json!("written")), "{outcome}");
    verified(&server);
    server.kill();
    let server = home.serve();
    server.eventually("s is ready", || status(&server)["status"] == "ready");
    let still = wait(&server, held, TRIED_AGAIN_SECONDS);
    assert_eq!(still["record"]["state"], "COMPLETED_SUCCESS", "{still}");
    assert_eq!(journal(home), ["once"]);
}

#[test]
fn apr_4_an_approved_call_whose_program_does_not_start_waits_for_it_and_runs_once() {
    let home = home(&program());
    home.write("go", "");
    let held = approved_before_the_end(&home);
    std::fs::remove_file(home.path().join("go")).expect("it is there");
    let server = put_off(&home, &held);
    home.write("go", "");
    runs_once(&home, server, &held);
}

#[test]
fn apr_4_an_approved_call_whose_remote_server_is_away_waits_for_it_and_runs_once() {
    // The journal outlives the home, which needs the address first.
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("journal.txt");
    let args = ["--journal", file.to_str().expect("UTF-8")];
    let remote = Faulty::start(Kind::Http, &args);
    let port = remote.address.port();
    let home = home(&json!({ "type": "http", "url": remote.url }));
    std::os::unix::fs::symlink(&file, home.path().join("journal.txt")).expect("a link");
    let held = approved_before_the_end(&home);
    drop(remote);
    let server = put_off(&home, &held);
    let _remote = Faulty::start_at(Kind::Http, port, &args);
    runs_once(&home, server, &held);
}

#[test]
fn apr_4_an_approved_call_that_waits_for_its_server_can_be_withdrawn() {
    let home = home(&program());
    home.write("go", "");
    let held = approved_before_the_end(&home);
    std::fs::remove_file(home.path().join("go")).expect("it is there");
    let server = put_off(&home, &held);
    let withdrawn = ask(&server, None, Method::POST, &held.path("cancel"), &Value::Null);
    assert_eq!((withdrawn.status, &withdrawn.json()["state"]), (200, &json!("CANCELLED_BY_SYSTEM")));
    home.write("go", "");
    server.eventually("s is ready", || status(&server)["status"] == "ready");
    let outcome = wait(&server, &held, 0);
    assert_eq!(outcome["error"]["code"], "CANCELED", "{outcome}");
    assert!(journal(&home).is_empty());
}

#[test]
fn apr_4_an_approved_call_whose_server_is_no_longer_configured_ends_and_says_so() {
    let home = home(&program());
    home.write("go", "");
    let held = approved_before_the_end(&home);
    home.write("gantry.yaml", "queues: { one: { concurrent: 1 } }");
    let server = home.serve();
    let ended = over(&server, &held);
    assert_eq!((&ended["state"], &ended["attempts"]), (&json!("CANCELLED_BY_SYSTEM"), &json!(0)), "{ended}");
    let record = record(&server, &held.call);
    assert_eq!(record["error"]["code"], "TOOL_NOT_FOUND", "{record}");
    let outcome = wait(&server, &held, 0);
    assert_eq!(
        (&outcome["ok"], &outcome["error"]["code"]),
        (&json!(false), &json!("TOOL_NOT_FOUND")),
        "{outcome}"
    );
    assert!(text(&outcome["error"]["message"]).contains("s__journal"), "{outcome}");
    assert!(journal(&home).is_empty());
}

#[test]
fn apr_4_an_approved_call_whose_server_dies_before_it_is_sent_fails_after_some_tries_and_says_so() {
    let home = home(&program());
    home.write("go", "");
    let server = home.serve();
    server.eventually("s is ready", || status(&server)["status"] == "ready");
    let held = hold(&server, None, "s__journal", &json!({ "text": "never" }));
    std::fs::remove_file(home.path().join("go")).expect("it is there");
    let died = server.call("s__die", &json!({})).json();
    assert_eq!(died["ok"], false, "{died}");
    server.eventually("s is down", || status(&server)["status"] == "down");
    approve(&server, &held);
    reaches(&server, &held, "COMPLETED_FAILURE");
    let ended = item(&server, &held.id);
    assert_eq!(ended["attempts"], 4, "the first and three more: {ended}");
    let outcome = wait(&server, &held, 0);
    assert_eq!(outcome["error"]["code"], "UPSTREAM_UNAVAILABLE", "{outcome}");
    assert_eq!(outcome["extras"]["effect"], "none", "{outcome}");
    // It is over: the server that comes back is not asked to run it.
    home.write("go", "");
    server.eventually("s is ready", || status(&server)["status"] == "ready");
    assert_eq!(wait(&server, &held, 0)["state"], "COMPLETED_FAILURE");
    assert_eq!(journal(&home), ["died in die"]);
}
