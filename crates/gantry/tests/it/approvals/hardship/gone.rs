//! The Gantry that a caller waits at dies: the caller hears that it heard nothing, and who asks again hears how it stands.

use super::super::held::{Held, approve, hold, item, line, lines, over, text};
use super::wait;
use gantry_testkit::{CommandOutput, Connection, Server, TestDir};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::process::{Child, ChildStderr, Stdio};
use std::{io, thread};

fn home() -> TestDir {
    TestDir::with_test_tools()
        .config("approvals: { requiresApprovalTools: [test__count, test__slow_write] }\n")
}

/// The arguments of a call that runs longer than any caller waits.
fn slow() -> Value {
    json!({ "file": "slow", "ms": 600_000 })
}

/// A caller that waits over HTTP on a connection of its own, until the answer or the end.
fn waiting(address: SocketAddr, held: &Held) -> thread::JoinHandle<io::Result<u16>> {
    let mut connection = Connection::open(address).expect("it listens");
    let path = format!("/api/v1/calls/{}?wait=60", held.call);
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n");
    connection.send(request.as_bytes()).expect("it reads");
    thread::spawn(move || connection.answer().map(|answer| answer.status))
}

/// What a caller heard whose server died.
#[track_caller]
fn heard_nothing(waiting: thread::JoinHandle<io::Result<u16>>) {
    let heard = waiting.join().expect("it ends");
    assert!(heard.is_err(), "it was told something: {heard:?}");
}

/// `gantry call` that waits, at the server.
struct Caller {
    child: Child,
    stderr: BufReader<ChildStderr>,
    said: String,
}

impl Caller {
    /// Calls, and waits until it says as what it waits.
    #[track_caller]
    fn new(home: &TestDir, tool: &str, arguments: &Value) -> Self {
        let mut command = home.command(["call", tool, &arguments.to_string(), "--wait"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut said = String::new();
        stderr.read_line(&mut said).expect("text");
        Self { child, stderr, said }
    }

    /// The approval that it waits for.
    #[track_caller]
    fn approval(&self) -> String {
        let id = self.said.split_whitespace().find(|word| word.starts_with("appr_"));
        id.unwrap_or_else(|| panic!("no approval: {}", self.said)).to_owned()
    }

    /// Waits for its end.
    #[track_caller]
    fn end(mut self) -> CommandOutput {
        self.stderr.read_to_string(&mut self.said).expect("text");
        let output = self.child.wait_with_output().expect("it ends");
        let stdout = String::from_utf8(output.stdout).expect("UTF-8");
        CommandOutput { code: output.status.code().unwrap_or(-1), stdout, stderr: self.said }
    }
}

/// The call behind an approval.
#[track_caller]
fn held(server: &Server, id: String) -> Held {
    let call = text(&item(server, &id)["callId"]);
    Held { id, call }
}

/// What is answered about a call whose end is unknown.
#[track_caller]
fn is_unknown(outcome: &Value) {
    assert_eq!((&outcome["ok"], &outcome["state"]), (&json!(false), &json!("OUTCOME_UNKNOWN")), "{outcome}");
    assert_eq!(outcome["error"]["code"], "OUTCOME_UNKNOWN", "{outcome}");
    let message = text(&outcome["error"]["message"]).to_lowercase();
    assert!(message.contains("gantry stopped") && message.contains("check before"), "{message}");
}

#[test]
fn apr_7_a_caller_of_a_call_that_ran_when_gantry_died_learns_that_its_outcome_is_unknown() {
    let home = home();
    let server = home.serve();
    let held = hold(&server, None, "test__slow_write", &slow());
    let caller = waiting(server.address, &held);
    approve(&server, &held);
    server.eventually("it runs", || home.path().join("slow").exists());
    server.kill();
    heard_nothing(caller);
    let server = home.serve();
    is_unknown(&wait(&server, &held, 60));
    assert_eq!(home.read("slow"), "begun\n", "it is not repeated");
}

#[test]
fn apr_7_who_waited_for_a_decision_when_gantry_died_waits_on_at_the_next_one() {
    let home = home();
    let server = home.serve();
    let held = hold(&server, None, "test__count", &line("a"));
    let caller = waiting(server.address, &held);
    server.kill();
    heard_nothing(caller);
    let server = home.serve();
    let waits = wait(&server, &held, 0);
    assert_eq!((&waits["state"], &waits["approvalId"]), (&json!("PENDING_APPROVAL"), &json!(held.id)));
    assert_eq!(waits["error"]["code"], "APPROVAL_REQUIRED", "{waits}");
    thread::scope(|scope| {
        let outcome = scope.spawn(|| wait(&server, &held, 60));
        approve(&server, &held);
        let outcome = outcome.join().expect("an answer");
        assert_eq!(
            (&outcome["ok"], &outcome["result"]),
            (&json!(true), &json!({ "counted": "a" })),
            "{outcome}"
        );
    });
    assert_eq!(lines(&home), ["a"]);
}

#[test]
fn apr_7_a_command_whose_gantry_died_says_so_and_the_same_command_again_says_how_it_stands() {
    let home = home();
    let server = home.serve();
    let (runs, waits) =
        (Caller::new(&home, "test__slow_write", &slow()), Caller::new(&home, "test__count", &line("a")));
    let (running, pending) = (held(&server, runs.approval()), held(&server, waits.approval()));
    approve(&server, &running);
    server.eventually("it runs", || home.path().join("slow").exists());
    server.kill();
    for (caller, approval) in [(runs, &running.id), (waits, &pending.id)] {
        let ran = caller.end();
        assert_eq!((ran.code, ran.stdout.as_str()), (3, ""), "nothing is made up: {ran:?}");
        let error = ran.stderr.lines().find(|line| line.starts_with("error: ")).expect("an error");
        assert!(error.contains("the connection to") && error.contains("broke"), "{error}");
        assert!(error.contains(&format!("gantry approvals show {approval}")), "{error}");
    }
    let server = home.serve();
    let again = home.run(["call", "test__slow_write", &slow().to_string(), "--wait", "--json"]);
    assert_eq!(again.code, 1, "{again:?}");
    is_unknown(&again.json());
    assert_eq!(again.json()["id"], *running.call, "{again:?}");
    let again = Caller::new(&home, "test__count", &line("a"));
    assert_eq!(again.approval(), pending.id, "it waits as before");
    approve(&server, &pending);
    let again = again.end();
    assert_eq!((again.code, again.json()), (0, json!({ "counted": "a" })), "{again:?}");
    assert_eq!(over(&server, &pending)["state"], "COMPLETED_SUCCESS");
    assert_eq!((lines(&home), home.read("slow")), (vec!["a".to_owned()], "begun\n".to_owned()));
}
