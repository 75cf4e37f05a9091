//! Ends of the process: killed at any moment under load, asked to stop, started twice on one folder.

use gantry_testkit::{Connection, Random, Server, TestDir, long};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// How often one home is killed.
const KILLS: usize = 10;

/// Clients that call while the process is killed.
const CLIENTS: usize = 8;

/// A kill comes after fewer answers than this, and then after up to so many microseconds more.
const ANSWERS_BEFORE: u64 = 120;
const MICROSECONDS_AFTER: u64 = 20_000;

/// Rows that one page of the audit log has; more than one round can make.
const ROUND_ROWS: usize = 1000;

/// What the clients of one round heard: the id of each answered write, by its text.
#[derive(Default)]
struct Heard {
    writes: HashMap<String, String>,
    reads: HashMap<String, String>,
}

/// Writes and reads in turns until the connection breaks.
fn client(address: SocketAddr, name: &str, answered: &AtomicUsize) -> Heard {
    let mut heard = Heard::default();
    let Ok(mut connection) = Connection::open(address) else { return heard };
    for n in 0.. {
        let text = format!("{name}-{n}");
        let (tool, list) = match n % 3 {
            0 => ("test__echo", &mut heard.reads),
            _ => ("test__count", &mut heard.writes),
        };
        let Ok(answer) = connection.call(tool, &json!({ "file": "count.txt", "text": text })) else { break };
        let reply = answer.json();
        assert_eq!(reply["ok"], true, "{reply}");
        list.insert(text, reply["id"].as_str().expect("an id").to_owned());
        answered.fetch_add(1, Ordering::Relaxed);
    }
    heard
}

/// Puts a server under load and kills it at a moment of its own.
fn round(home: &TestDir, n: usize, moments: &mut Random) -> Heard {
    let server = home.serve();
    let (address, answered) = (server.address, AtomicUsize::new(0));
    let (answers, after) = (moments.below(ANSWERS_BEFORE), moments.below(MICROSECONDS_AFTER));
    thread::scope(|scope| {
        let answered = &answered;
        let clients: Vec<_> = (0..CLIENTS)
            .map(|c| scope.spawn(move || client(address, &format!("r{n}-c{c}"), answered)))
            .collect();
        server.eventually("enough answers", || answered.load(Ordering::Relaxed) as u64 >= answers);
        // The moment itself: anywhere in the life of the calls that are under way.
        thread::sleep(Duration::from_micros(after));
        server.kill();
        let mut all = Heard::default();
        for client in clients {
            let heard = client.join().expect("a client without complaints");
            all.writes.extend(heard.writes);
            all.reads.extend(heard.reads);
        }
        all
    })
}

/// The records of one round by the text of the call, each with its id and state.
fn records(home: &TestDir, n: usize) -> HashMap<String, (String, String)> {
    let rows = home.run(["audit", "--json", "--limit", &ROUND_ROWS.to_string()]).json();
    let rows = rows.as_array().expect("a list");
    let mut records = HashMap::new();
    for row in rows {
        let field = |name: &str| row[name].as_str().expect("a text").to_owned();
        let arguments: Value = serde_json::from_str(&field("arguments")).expect("JSON");
        let text = arguments["text"].as_str().expect("a text").to_owned();
        if text.starts_with(&format!("r{n}-")) {
            let doubled = records.insert(text, (field("id"), field("state")));
            assert_eq!(doubled, None, "recorded twice: {row}");
        }
    }
    assert!(records.len() < ROUND_ROWS, "the round had more calls than can be looked at");
    records
}

/// Holds what was heard and what was done against what is on record; returns how many outcomes are unknown.
fn examine(home: &TestDir, n: usize, heard: &Heard) -> usize {
    let verified = home.run(["audit", "verify", "--json"]);
    assert_eq!((verified.code, &verified.json()["ok"]), (0, &json!(true)), "{verified:?}");
    let records = records(home, n);
    for (text, (_, state)) in &records {
        assert!(["COMPLETED_SUCCESS", "OUTCOME_UNKNOWN"].contains(&state.as_str()), "{text} is {state}");
    }
    for (text, id) in &heard.writes {
        let done = (id.clone(), "COMPLETED_SUCCESS".to_owned());
        assert_eq!(records.get(text), Some(&done), "{text} was answered");
    }
    // A crash may lose the last reads, but never change one.
    for (text, id) in &heard.reads {
        if let Some(record) = records.get(text) {
            assert_eq!(record, &(id.clone(), "COMPLETED_SUCCESS".to_owned()), "{text} was answered");
        }
    }
    let whole = std::fs::read_to_string(home.path().join("count.txt")).unwrap_or_default();
    let mut lines = HashSet::new();
    for line in whole.lines().filter(|line| line.starts_with(&format!("r{n}-"))) {
        assert!(lines.insert(line), "{line} took effect twice");
        assert!(records.contains_key(line), "{line} took effect without a record");
    }
    for text in heard.writes.keys() {
        assert!(lines.contains(text.as_str()), "{text} was answered and took no effect");
    }
    records.values().filter(|(_, state)| state == "OUTCOME_UNKNOWN").count()
}

/// Kills one home again and again, and returns how many calls were answered and how many are of unknown outcome.
fn many_lives(moments: &mut Random) -> (usize, usize) {
    let home = TestDir::with_test_tools();
    let (mut answered, mut unknown) = (0, 0);
    for n in 0..KILLS {
        let heard = round(&home, n, moments);
        answered += heard.writes.len() + heard.reads.len();
        unknown += examine(&home, n, &heard);
    }
    // What is unknown stays so until a person says otherwise, and it is shown.
    let listed = home.run(["audit", "--json", "--state", "OUTCOME_UNKNOWN", "--limit", "1000"]).json();
    assert_eq!(listed.as_array().map(Vec::len), Some(unknown));
    if unknown > 0 {
        let doctor = home.run(["doctor"]);
        let reported = format!("{unknown} calls may or may not have taken effect");
        assert!(doctor.stdout.contains(&reported), "{doctor:?}");
    }
    let server = home.serve();
    assert_eq!(server.get("/readyz").status, 200);
    assert_eq!(server.call("test__echo", &json!({ "text": "again" })).json()["result"], "again");
    (answered, unknown)
}

#[test]
fn cal_16_heavy_after_a_kill_at_any_moment_each_call_is_complete_absent_or_of_unknown_outcome() {
    let mut moments = Random(0x9E37_79B9_7F4A_7C15);
    let (mut answered, mut unknown) = (0, 0);
    for _ in 0..if long() { 10 } else { 1 } {
        let (more_answered, more_unknown) = many_lives(&mut moments);
        answered += more_answered;
        unknown += more_unknown;
    }
    // The kills have to have met what they are about.
    assert!(answered > KILLS, "only {answered} calls were answered");
    assert!(unknown > 0, "no kill met a call under way");
}

/// Calls a slow tool from another client and waits until it runs.
fn call_under_way(home: &TestDir, server: &Server) -> thread::JoinHandle<gantry_testkit::server::Answer> {
    let mut connection = server.connect();
    let calling = thread::spawn(move || {
        connection.call("test__slow_write", &json!({ "ms": 1000, "file": "slow.txt" })).expect("an answer")
    });
    let file = home.path().join("slow.txt");
    server.eventually("the call runs", || std::fs::read_to_string(&file).is_ok_and(|text| text == "begun\n"));
    calling
}

#[test]
fn dur_2_a_server_that_is_asked_to_stop_lets_the_running_call_end_and_answers_it() {
    let home = TestDir::with_test_tools();
    let server = home.serve();
    assert!(home.path().join(".gantry/server.json").exists());
    let calling = call_under_way(&home, &server);
    let (code, said) = server.stop();
    let answer = calling.join().expect("a client without complaints");
    assert_eq!((answer.status, &answer.json()["result"]), (200, &json!("written")), "{answer:?}");
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("Stopping") && said.contains("Gantry has stopped."), "{said}");
    assert!(!home.path().join(".gantry/server.json").exists());
    assert_eq!(home.read("slow.txt"), "begun\nended\n");
    let rows = home.run(["audit", "--json"]).json();
    assert_eq!(
        (&rows[0]["tool"], &rows[0]["state"]),
        (&json!("test__slow_write"), &json!("COMPLETED_SUCCESS"))
    );
}

#[test]
fn cal_16_a_call_that_was_killed_under_way_is_unknown_and_is_not_run_again() {
    let home = TestDir::with_test_tools();
    let server = home.serve();
    let mut connection = server.connect();
    let calling = thread::spawn(move || {
        connection.call("test__slow_write", &json!({ "ms": 60_000, "file": "slow.txt" })).is_err()
    });
    let file = home.path().join("slow.txt");
    server.eventually("the call runs", || std::fs::read_to_string(&file).is_ok_and(|text| text == "begun\n"));
    server.kill();
    assert!(calling.join().expect("a client without complaints"), "a killed call was answered");

    let server = home.serve();
    let said = "1 calls of a process that died are open";
    server.eventually("the new server says so", || server.stderr().contains(said));
    let rows = server.get_as_admin("/api/v1/audit").json();
    let row = &rows["items"][0];
    assert_eq!(
        (&row["tool"], &row["state"]),
        (&json!("test__slow_write"), &json!("OUTCOME_UNKNOWN")),
        "{rows}"
    );
    let events = server.get_as_admin("/api/v1/events?follow=false").text;
    assert!(events.contains("calls_recovered") && events.contains(row["id"].as_str().unwrap()), "{events}");
    assert_eq!(server.stop().0, 0);
    assert_eq!(home.read("slow.txt"), "begun\n");
}

#[test]
fn a_second_server_on_the_same_folder_is_refused_with_the_address_of_the_first() {
    let home = TestDir::new();
    let server = home.serve();
    let second = home.run(["serve", "--bind", "127.0.0.1:0"]);
    assert_eq!(second.code, 2, "{second:?}");
    let first = format!("at http://{} (process {})", server.address, server.pid());
    assert!(second.stderr.contains("a server already runs on"), "{second:?}");
    assert!(second.stderr.contains("stop it first"), "{second:?}");
    assert!(second.stderr.contains(&first), "{second:?} does not name {first}");
    // The first is none the worse, and a crash of it does not lock the folder.
    assert_eq!(server.get("/healthz").status, 200);
    server.kill();
    assert!(home.path().join(".gantry/server.json").exists(), "a crash cannot take its note away");
    let written = home.call("write_file", &json!({ "path": "a.txt", "content": "alone" }));
    assert_eq!(written["ok"], true, "{written}");
    assert_eq!(home.serve().get("/healthz").status, 200);
}

#[test]
fn commands_use_the_server_that_runs_on_the_folder() {
    let home = TestDir::new();
    let server = home.serve();
    let written = home.call("write_file", &json!({ "path": "a.txt", "content": "hi" }));
    let id = written["id"].as_str().expect("an id");
    let events = server.get_as_admin("/api/v1/events?follow=false").text;
    for kind in ["tool_started", "tool_finished"] {
        let reported = |line: &str| line.contains(&format!("\"type\":\"{kind}\"")) && line.contains(id);
        assert!(events.lines().any(reported), "no {kind} of {id} in {events}");
    }
    let shown = home.run(["events", "--json"]);
    assert!(shown.stdout.contains(id), "{shown:?}");
    let row = server.get_as_admin(&format!("/api/v1/calls/{id}")).json();
    assert_eq!((&row["record"]["principal"], &row["record"]["door"]), (&json!("person"), &json!("cli")));
    let doctor = home.run(["doctor"]);
    assert!(doctor.stdout.contains(&format!("running at http://{}", server.address)), "{doctor:?}");
}
