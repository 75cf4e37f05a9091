//! The outcome of an approved call cannot be written: the effect has happened, once, and no caller gets that it is done
//! before that is on record.
//!
//! The disk is full as far as Gantry can tell: its process may write no file longer than a page. What the call does
//! happens in a pipe, so that the test chooses when.

use super::super::held::{Held, all, approve, call, decide, hold, item, over, text, verified};
use super::{reaches, wait};
use gantry_testkit::faulty::Faulty;
use gantry_testkit::server::Answer;
use gantry_testkit::{Server, TestDir};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};
use std::fs::File;
use std::io::Read as _;
use std::process::Command;

/// Set in a process that, with all that it starts, is not killed for writing more than it may.
const HARDENED: &str = "GANTRY_TEST_HARDENED";

/// The longest file while the disk is full. No commit fits into it.
const PAGE_BYTES: u64 = 4096;

/// Commits that fail before a test has seen enough. The outcome of a call is tried again and again.
const FAILED_COMMITS: usize = 5;

/// Runs this test again in a process that a write over the limit does not kill. Whether this is that process.
///
/// Such a write raises a deadly signal; only a shell can pass on that it is to be ignored.
#[track_caller]
fn hardened(test: &str) -> bool {
    if std::env::var_os(HARDENED).is_some() {
        return true;
    }
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(std::env::current_exe().expect("a path"));
    shell.args(["--exact", &format!("approvals::hardship::full::{test}"), "--nocapture"]).env(HARDENED, "1");
    let ran = shell.output().expect("it runs");
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success() && out.contains("1 passed"), "{out}{err}");
    false
}

/// Gantry finds its disk full, or not any more.
#[track_caller]
fn fill(server: &Server, full: bool) {
    let pid = i32::try_from(server.pid()).ok().and_then(Pid::from_raw).expect("a process id");
    let current = full.then_some(PAGE_BYTES);
    prlimit(Some(pid), Resource::Fsize, Rlimit { current, maximum: None }).expect("its limit is ours to set");
}

/// Two approved calls: the effect of one has happened, the other waits for its turn. A third is not decided.
struct Scene {
    home: TestDir,
    begun: Held,
    next: Held,
    undecided: Held,
    /// What they do.
    effects: File,
}

impl Scene {
    /// Lets the effect happen on a full disk.
    #[track_caller]
    fn new() -> (Self, Server) {
        let server =
            json!({ "command": Faulty::program(), "args": ["--journal", "./journal"], "queue": "one" });
        let config = json!({
            "queues": { "one": { "concurrent": 1 } },
            "approvals": { "requiresApprovalTools": ["s__journal"] },
            "mcpServers": { "s": server },
        });
        let home = TestDir::new().config(&config.to_string());
        let pipe = home.path().join("journal");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a pipe");
        let server = home.serve();
        let ask = |text: &str| hold(&server, None, "s__journal", &json!({ "text": text }));
        let (begun, next, undecided) = (ask("begun"), ask("next"), ask("undecided"));
        approve(&server, &begun);
        reaches(&server, &begun, "EXECUTING");
        approve(&server, &next);
        fill(&server, true);
        // A process that writes to a pipe waits for a reader.
        let effects = File::open(pipe).expect("the pipe");
        let mut scene = Self { home, begun, next, undecided, effects };
        scene.happens(&server, "begun\n");
        (scene, server)
    }

    /// Waits for exactly this effect.
    #[track_caller]
    fn happens(&mut self, server: &Server, expected: &str) {
        let mut seen = String::new();
        server.eventually(&format!("{expected:?} happens"), || {
            self.effects.read_to_string(&mut seen).expect("text");
            seen.len() >= expected.len()
        });
        assert_eq!(seen, expected);
    }

    /// Nothing has happened since.
    #[track_caller]
    fn is_quiet(&mut self) {
        let mut seen = String::new();
        self.effects.read_to_string(&mut seen).expect("text");
        assert_eq!(seen, "");
    }

    /// No caller is answered anything that is not on record: nothing has ended, nothing new is taken, nothing is decided.
    #[track_caller]
    fn is_honest(&mut self, server: &Server) {
        let call_of = |held: &Held| format!("/api/v1/calls/{}", held.call);
        let item_of = |held: &Held| format!("/api/v1/approvals/{}", held.id);
        server.eventually("the outcome was tried again", || {
            for path in [call_of(&self.begun), item_of(&self.begun)] {
                assert_eq!(read(server, &path)["state"], "EXECUTING");
            }
            assert_eq!(read(server, &item_of(&self.next))["state"], "APPROVED_READY");
            server.stderr().matches("could not be committed").count() >= FAILED_COMMITS
        });
        let finished = server.get_as_admin("/api/v1/events?follow=false&type=tool_finished").text;
        assert!(!finished.contains(&self.begun.call) && !finished.contains(&self.next.call), "{finished}");
        is_refused(&call(server, None, &json!({ "tool": "s__journal", "arguments": { "text": "new" } })));
        is_refused(&decide(server, &server.key, &self.undecided, &json!({ "approved": true })));
        assert_eq!(read(server, &item_of(&self.undecided))["state"], "PENDING_APPROVAL");
        self.is_quiet();
    }

    /// Nothing is on record that was refused while the disk was full.
    #[track_caller]
    fn has_only_its_calls(&self, server: &Server) {
        let known = [&self.undecided, &self.next, &self.begun].map(|held| held.id.clone());
        let listed: Vec<String> =
            all(server, "/api/v1/approvals").iter().map(|item| text(&item["id"])).collect();
        assert_eq!(listed, known);
    }
}

/// What is said at a path. A request at the moment in which a commit fails has to be repeated.
#[track_caller]
fn read(server: &Server, path: &str) -> Value {
    let mut said = Value::Null;
    server.eventually(&format!("{path} is answered"), || {
        let answer = server.get_as_admin(path);
        let is_read = answer.status == 200;
        if !is_read {
            is_refused(&answer);
        }
        said = answer.json();
        is_read
    });
    said
}

/// What is said of something that needs the disk, and what to do.
#[track_caller]
fn is_refused(answer: &Answer) {
    let reply = answer.json();
    assert!(matches!(answer.status, 500 | 503), "{answer:?}");
    assert_eq!((&reply["ok"], &reply["error"]["code"]), (&json!(false), &json!("INTERNAL_ERROR")), "{reply}");
    let message = text(&reply["error"]["message"]);
    assert!(message.contains("the disk that holds the store") && message.contains("retry"), "{message}");
}

/// It ran, once, and is on record.
#[track_caller]
fn is_done(server: &Server, held: &Held) {
    let done = over(server, held);
    assert_eq!((&done["state"], &done["attempts"]), (&json!("COMPLETED_SUCCESS"), &json!(1)), "{done}");
    let reported = wait(server, held, 0);
    assert_eq!((&reported["ok"], &reported["result"]), (&json!(true), &json!("written")), "{reported}");
}

#[test]
fn apr_4_an_outcome_that_finds_the_disk_full_is_recorded_once_there_is_room() {
    if !hardened("apr_4_an_outcome_that_finds_the_disk_full_is_recorded_once_there_is_room") {
        return;
    }
    let (mut scene, server) = Scene::new();
    scene.is_honest(&server);
    fill(&server, false);
    is_done(&server, &scene.begun);
    is_done(&server, &scene.next);
    scene.happens(&server, "next\n");
    scene.has_only_its_calls(&server);
    // What could not be decided then can be now.
    approve(&server, &scene.undecided);
    is_done(&server, &scene.undecided);
    scene.happens(&server, "undecided\n");
    verified(&server);
    // And a later start finds nothing to do.
    server.kill();
    let server = scene.home.serve();
    assert_eq!(wait(&server, &scene.begun, 0)["record"]["state"], "COMPLETED_SUCCESS");
    scene.is_quiet();
}

#[test]
fn apr_4_an_outcome_that_was_never_written_is_unknown_and_is_not_run_again() {
    if !hardened("apr_4_an_outcome_that_was_never_written_is_unknown_and_is_not_run_again") {
        return;
    }
    let (mut scene, server) = Scene::new();
    scene.is_honest(&server);
    server.kill();
    let server = scene.home.serve();
    let ended = over(&server, &scene.begun);
    assert_eq!(ended["state"], "OUTCOME_UNKNOWN", "{ended}");
    let reported = wait(&server, &scene.begun, 0);
    assert_eq!(
        (&reported["ok"], &reported["error"]["code"]),
        (&json!(false), &json!("OUTCOME_UNKNOWN")),
        "{reported}"
    );
    // What had not begun runs now; what had does not.
    is_done(&server, &scene.next);
    scene.happens(&server, "next\n");
    scene.has_only_its_calls(&server);
    assert_eq!(item(&server, &scene.undecided.id)["state"], "PENDING_APPROVAL");
    let again = decide(&server, &server.key, &scene.begun, &json!({ "approved": true }));
    assert_eq!((again.status, &again.json()["error"]["code"]), (409, &json!("ALREADY_DECIDED")), "{again:?}");
    verified(&server);
    scene.is_quiet();
}
