//! What is on record: `gantry audit`, `gantry runs`, `gantry events`.

use super::run;
use gantry_testkit::TestDir;
use serde_json::json;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

/// A home in which a call succeeded, one failed and one was refused.
fn used() -> TestDir {
    let home = TestDir::new();
    home.call("write_file", &json!({ "path": "a.txt", "content": "a" }));
    home.call("read_file", &json!({ "path": "none" }));
    home.call("delete_file", &json!({ "path": "a.txt" }));
    home
}

#[test]
fn obs_3_the_audit_table_tells_who_called_what_and_how_it_ended() {
    let ran = run(&used(), &["audit"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let lines: Vec<_> = ran.stdout.lines().collect();
    assert_eq!(
        lines[0].split_whitespace().collect::<Vec<_>>(),
        ["STARTED", "(UTC)", "TOOL", "CALLER", "STATE", "MS", "ARGUMENTS"]
    );
    assert_eq!(lines.len(), 4, "{}", ran.stdout);
    for (line, parts) in lines[1..].iter().zip([
        ["delete_file", "person", "PENDING_APPROVAL", r#"{"path":"a.txt"}"#],
        ["read_file", "person", "COMPLETED_FAILURE FILE_NOT_FOUND", r#"{"path":"none"}"#],
        ["write_file", "person", "COMPLETED_SUCCESS", r#"{"content":"a","path":"a.txt"}"#],
    ]) {
        assert!(parts.iter().all(|part| line.contains(part)), "{parts:?} in {line}");
    }
}

#[test]
fn obs_3_the_audit_log_is_filtered_by_tool_state_time_and_number() {
    let home = used();
    let tools = |filter: &[&str]| {
        let args: Vec<_> = ["audit", "--json"].iter().chain(filter).copied().collect();
        let items = run(&home, &args).json();
        items.as_array().unwrap().iter().map(|i| i["tool"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(tools(&[]), ["delete_file", "read_file", "write_file"]);
    assert_eq!(tools(&["--tool", "read_file"]), ["read_file"]);
    assert_eq!(tools(&["--state", "COMPLETED_SUCCESS"]), ["write_file"]);
    assert_eq!(tools(&["--state", "REFUSED", "--tool", "read_file"]), [""; 0]);
    assert_eq!(tools(&["--since", "1h"]), ["delete_file", "read_file", "write_file"]);
    assert_eq!(tools(&["--until", "1h"]), [""; 0]);
    assert_eq!(tools(&["--since", "2999-01-01T00:00:00Z"]), [""; 0]);
    assert_eq!(tools(&["--since", "2020-01-01T00:00:00+02:00", "--until", "2999-01-01T00:00:00Z"]).len(), 3);
    assert_eq!(tools(&["--limit", "2"]), ["delete_file", "read_file"]);
    let more = run(&home, &["audit", "--limit", "1"]);
    assert!(more.stdout.lines().count() == 2 && more.stderr.contains("There are more"), "{more:?}");
}

/// The database of a data folder of the version before chains of nodes.
const OLD: &str = include_str!("../../../../gantry-store/tests/it/data/schema_3.sql");

fn sql(home: &TestDir, script: &str) {
    let program = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.executescript(sys.stdin.read()); c.commit()";
    let mut python = Command::new("python3");
    python.args(["-c", program]).arg(home.path().join(".gantry/gantry.db")).stdin(Stdio::piped());
    let mut python = python.spawn().expect("python3");
    python.stdin.take().expect("its input").write_all(script.as_bytes()).expect("written");
    assert!(python.wait().expect("its end").success());
}

#[test]
fn cal_16_a_data_folder_of_an_older_version_opens_goes_on_and_verifies() {
    let home = TestDir::new();
    std::fs::create_dir_all(home.path().join(".gantry")).expect("the data folder");
    sql(&home, OLD);
    let entries = |ran: &gantry_testkit::CommandOutput| ran.json()["entries"].as_u64().expect("a number");
    let before = entries(&run(&home, &["audit", "verify", "--json"]));
    let listed = run(&home, &["audit", "--json"]).json().as_array().expect("calls").len();
    assert!(before > 0 && listed > 0, "{before} {listed}");
    home.write("a.txt", "a");
    home.call("read_file", &json!({ "path": "a.txt" }));
    let verified = run(&home, &["audit", "verify", "--json"]);
    // The approvals of the old folder whose time is over end now too.
    assert!(verified.code == 0 && entries(&verified) > before, "{verified:?}");
    assert_eq!(run(&home, &["audit", "--json"]).json().as_array().expect("calls").len(), listed + 1);
    sql(&home, "UPDATE ledger SET name = 'x' WHERE seq = 2 AND node = zeroblob(16);");
    let found = run(&home, &["audit", "verify", "--json"]);
    assert_eq!((found.code, &found.json()["firstBad"]["entry"]), (1, &json!(2)), "{found:?}");
    let said = run(&home, &["audit", "verify"]).stdout;
    assert!(
        said.contains("at entry 2 of the chain node_0000") && said.contains(": it was changed"),
        "{said}"
    );
}

#[test]
fn obs_3_the_audit_log_proves_itself_whole() {
    let home = used();
    let ran = run(&home, &["audit", "verify"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert!(ran.stdout.starts_with("The audit log is intact: "), "{ran:?}");
    let report = run(&home, &["audit", "verify", "--json"]).json();
    assert_eq!((&report["ok"], &report["firstBad"]), (&json!(true), &json!(null)));
    assert!(report["entries"].as_u64().unwrap() >= 3, "{report}");
}

#[test]
fn an_empty_audit_log_is_said_to_be_empty() {
    let home = TestDir::new();
    for args in [["audit"], ["runs"]] {
        let ran = run(&home, &args);
        assert_eq!((ran.code, ran.stdout.as_str()), (0, ""));
        assert!(!ran.stderr.is_empty(), "{args:?} says nothing");
    }
    assert_eq!(run(&home, &["audit", "--json"]).json(), json!([]));
    assert_eq!(run(&home, &["runs", "--json"]).json(), json!([]));
    assert_eq!(run(&home, &["events", "--json"]).stdout, "");
}

#[test]
fn cal_13_a_run_is_listed_and_shown_as_a_tree() {
    let home = used();
    let runs = run(&home, &["runs", "--json"]).json();
    assert_eq!(runs.as_array().unwrap().len(), 1, "one person, one run: {runs}");
    let id = runs[0]["id"].as_str().unwrap();
    assert_eq!((&runs[0]["principal"], &runs[0]["door"]), (&json!("person"), &json!("cli")));
    assert_eq!(runs[0]["totals"]["toolsRun"], 2, "what waits has not run");

    let table = run(&home, &["runs"]).stdout;
    assert!(table.lines().next().unwrap().starts_with("RUN"), "{table}");
    assert!(table.lines().nth(1).unwrap().starts_with(id), "{table}");

    let tree = run(&home, &["runs", id, "--json"]).json();
    let ops = tree["turns"][0]["ops"].as_array().unwrap();
    let names: Vec<_> = ops.iter().map(|op| op["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["write_file", "read_file", "delete_file"]);
    let shown = run(&home, &["runs", id]).stdout;
    assert!(shown.starts_with(&format!("{id} by person (cli)\n└ turn 1\n  └ ok write_file ")), "{shown}");
    assert!(shown.contains("└ failed read_file FILE_NOT_FOUND"), "{shown}");
}

#[test]
fn cal_12_cancelling_a_run_ends_its_calls() {
    let home = TestDir::with_test_tools();
    let server = home.serve();
    let mut waiting = home
        .command(["call", "test__sleep", r#"{"ms": 600000}"#, "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut id = String::new();
    server.eventually("the call is running", || {
        let events = server.get_as_admin("/api/v1/events?follow=false").text;
        let started = events.lines().filter_map(|line| line.strip_prefix("data:")).find_map(|data| {
            let event: serde_json::Value = serde_json::from_str(data.trim()).unwrap();
            (event["type"] == "tool_started").then(|| event["session"].as_str().unwrap().to_owned())
        });
        id = started.unwrap_or_default();
        !id.is_empty()
    });
    assert!(waiting.try_wait().unwrap().is_none());
    let ran = run(&home, &["runs", &id, "--cancel"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{ran:?}");
    assert!(ran.stderr.contains(&id), "{ran:?}");
    let output = waiting.wait_with_output().unwrap();
    let reply: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &reply["error"]["code"]), (Some(1), &json!("CANCELED")));
    // It is over, so there is nothing left to cancel.
    let again = run(&home, &["runs", &id, "--cancel"]);
    assert_eq!(again.code, 1, "{again:?}");
    assert!(again.stderr.contains("not running"), "{again:?}");
}

#[test]
fn obs_2_events_without_a_server_are_what_the_ledger_remembers() {
    let home = used();
    let lines: Vec<_> = run(&home, &["events", "--json"])
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("a line of JSON"))
        .map(|event| (event["type"].clone(), event["tool"].clone(), event["status"].clone()))
        .collect();
    let finished = |tool: &str, status: &str| (json!("tool_finished"), json!(tool), json!(status));
    assert_eq!(
        lines,
        [finished("write_file", "ok"), finished("read_file", "failed")],
        "what waits has not finished"
    );
    let shown = run(&home, &["events"]).stdout;
    assert!(
        shown.lines().nth(1).unwrap().contains("tool response ← read_file")
            && shown.contains("FILE_NOT_FOUND"),
        "{shown}"
    );
    let follow = run(&home, &["events", "--follow"]);
    assert!(follow.code == 2 && follow.stderr.contains("gantry serve"), "{follow:?}");
}

#[test]
fn obs_2_following_events_shows_a_call_that_is_made_meanwhile() {
    let home = TestDir::new();
    let server = home.serve();
    let mut following =
        home.command(["events", "--follow"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    // The first call may come before the follower has arrived; it is printed all the same.
    let first = server.call("list_directory", &json!({ "path": "." }));
    assert_eq!(first.status, 200);
    let mut until = |what: &str| {
        lines.by_ref().map(|line| line.unwrap()).find(|line| line.contains(what)).expect("the event")
    };
    assert!(until("tool response ← list_directory").contains("status: ok"));
    // By now it follows, so this one comes while it does.
    run(&home, &["call", "read_file", r#"{"path": "none"}"#]);
    assert!(until("tool request → read_file").contains(r#"{"path":"none"}"#));
    assert!(until("tool response ← read_file").contains("status: failed"));
    let (code, _) = server.stop();
    assert_eq!(code, 0);
    assert!(following.wait().unwrap().code().is_some(), "it ends with the server");
}

#[test]
fn obs_2_without_following_the_server_tells_what_happened_and_the_command_ends() {
    let home = TestDir::new();
    let server = home.serve();
    server.call("list_directory", &json!({ "path": "." }));
    let ran = run(&home, &["events", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let kinds: Vec<String> = ran
        .stdout
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["type"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(kinds, ["session_opened", "tool_started", "tool_finished"]);
}
