//! Calls that are waited for, and the words for their ends.

use super::{count, counted, held, home, home_with, item, run};
use gantry_testkit::{CommandOutput, TestDir};
use serde_json::json;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

/// Starts a call that waits, lets `then` do something about the request, and returns what the call came to.
#[track_caller]
fn meanwhile(home: &TestDir, args: &[&str], then: impl FnOnce(&str)) -> CommandOutput {
    let mut command = home.command(["call", "test__count"].iter().chain(args));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut talk = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut stderr = String::new();
    talk.read_line(&mut stderr).expect("text");
    let id =
        stderr.split_whitespace().find(|word| word.starts_with("appr_")).expect("it says as what it waits");
    then(id);
    talk.read_to_string(&mut stderr).expect("text");
    let output = child.wait_with_output().expect("it ends");
    let stdout = String::from_utf8(output.stdout).expect("UTF-8");
    CommandOutput { code: output.status.code().unwrap_or(-1), stdout, stderr }
}

#[test]
fn apr_6_a_call_waits_for_another_persons_decision() {
    let home = home();
    let each = |home: &TestDir, text: &str| {
        let ran = meanwhile(home, &[&count(text), "--wait", "--json"], |id| {
            assert_eq!(run(home, &["approvals", "approve", id]).code, 0);
        });
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!(ran.stdout.lines().count(), 1, "the final reply, once: {ran:?}");
        let reply = ran.json();
        assert_eq!((&reply["ok"], &reply["state"]), (&json!(true), &json!("COMPLETED_SUCCESS")), "{ran:?}");
        assert_eq!(reply["result"], json!({ "counted": text }), "{ran:?}");
    };
    // The call that waits executes it, because it is still there.
    each(&home, "a");
    let _server = home.serve();
    each(&home, "b");
    assert_eq!(counted(&home), ["a", "b"]);
}

#[test]
fn apr_6_the_wait_of_a_caller_ends_and_the_call_waits_on() {
    let home = home();
    let ran = run(&home, &["call", "test__count", &count("a"), "--wait=1"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{ran:?}");
    assert!(ran.stderr.contains("It waits as appr_"), "{ran:?}");
    let waiting = run(&home, &["approvals", "--json"]).json();
    assert_eq!(waiting[0]["state"], "PENDING_APPROVAL");
    let ran = run(&home, &["call", "test__count", &count("a"), "--wait=1", "--json"]);
    assert_eq!((ran.code, &ran.json()["approvalId"]), (1, &waiting[0]["id"]), "the same request: {ran:?}");
    let ran = run(&home, &["call", "test__count", "{}", "--wait=soon"]);
    assert_eq!(ran.code, 2, "{ran:?}");
}

#[test]
fn apr_7_denied_expired_and_canceled_are_different_words() {
    let home = home();
    let denied = meanwhile(&home, &[&count("a"), "--wait"], |id| {
        assert_eq!(
            run(&home, &["approvals", "deny", id, "--reason", "no"]).stdout,
            format!("denied {id}: test__count does not run\n")
        );
    });
    let canceled = meanwhile(&home, &[&count("b"), "--wait"], |id| {
        assert_eq!(
            run(&home, &["approvals", "cancel", id]).stdout,
            format!("canceled {id}: test__count does not run\n")
        );
    });
    let hasty = home_with("requiresApprovalTools: [test__count], approvalTimeoutMs: 1000");
    let expired = meanwhile(&hasty, &[&count("c"), "--wait"], |_| {});
    let ends = [("denied", denied), ("canceled", canceled), ("expired", expired)];
    for (word, ran) in &ends {
        assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{ran:?}");
        let error = ran.stderr.lines().find(|line| line.starts_with("error: ")).expect("an error");
        for (other, _) in &ends {
            assert_eq!(error.contains(other), other == word, "{error}");
        }
    }
    assert_eq!(counted(&home), Vec::<String>::new());
    assert_eq!(counted(&hasty), Vec::<String>::new());
    // A decision that comes too late is answered with the first.
    let expired = run(&hasty, &["approvals", "--all", "--json"]).json();
    let id = expired[0]["id"].as_str().unwrap();
    let late = run(&hasty, &["approvals", "approve", id]);
    assert!(late.code == 1 && late.stderr.contains("expired"), "{late:?}");
    let table = run(&hasty, &["approvals", "--all"]).stdout;
    assert!(table.contains("expired"), "{table}");
}

#[test]
fn apr_7_a_call_whose_gantry_died_is_unknown_and_nothing_else() {
    let home = home_with("requiresApprovalTools: [\"test__slow-write\"]");
    let server = home.serve();
    let arguments = json!({ "file": "counted", "ms": 60_000 }).to_string();
    let reply = run(&home, &["call", "test__slow-write", &arguments, "--json"]).json();
    let id = reply["approvalId"].as_str().unwrap();
    assert_eq!(run(&home, &["approvals", "approve", id]).code, 0);
    server.eventually("it has begun", || counted(&home) == ["begun"]);
    server.kill();
    let shown = run(&home, &["approvals", "show", id]).stdout;
    assert!(shown.starts_with(&format!("{id} is unknown\n")), "{shown}");
    let again = run(&home, &["approvals", "approve", id]);
    assert!(again.code == 1 && again.stderr.contains("OUTCOME_UNKNOWN already"), "{again:?}");
    assert_eq!(counted(&home), ["begun"], "it is not repeated");
}

#[test]
fn apr_8_a_call_that_waits_for_its_time_is_waited_for() {
    let home = home_with("toolSpecificDelays: { test__count: 300 }");
    let each = |home: &TestDir, text: &str| {
        let ran = run(home, &["call", "test__count", &count(text)]);
        assert_eq!((ran.code, ran.json()), (0, json!({ "counted": text })), "{ran:?}");
        assert!(ran.stderr.contains("test__count waits for its scheduled time as appr_"), "{ran:?}");
    };
    each(&home, "a");
    let _server = home.serve();
    each(&home, "b");
    assert_eq!(counted(&home), ["a", "b"]);
}

#[test]
fn apr_8_a_call_that_waits_for_its_time_is_left_listed_and_withdrawn() {
    let home = home_with("toolSpecificDelays: { test__count: 3600000 }");
    let ran = run(&home, &["call", "test__count", &count("a"), "--no-wait"]);
    let id = run(&home, &["approvals", "--json"]).json()[0]["id"].as_str().unwrap().to_owned();
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{ran:?}");
    assert!(ran.stderr.contains("gantry serve"), "nothing runs it before: {ran:?}");
    assert!(ran.stderr.contains(&format!("gantry approvals cancel {id}")), "{ran:?}");
    let table = run(&home, &["approvals"]).stdout;
    assert!(table.contains("scheduled") && table.contains("runs in "), "{table}");
    let shown = run(&home, &["approvals", "show", &id]).stdout;
    assert!(shown.contains("\n  runs         20") && shown.contains(" UTC (in "), "{shown}");
    assert!(!shown.contains("may decide") && !shown.contains("after the approval"), "it takes none: {shown}");
    assert_eq!(run(&home, &["approvals", "cancel", &id]).code, 0);
    assert_eq!(item(&home, &id)["state"], "CANCELLED_BY_SYSTEM");
    // Ctrl-C leaves it too.
    let interrupted = super::terminal::Terminal::start(&home, &["call", "test__count", &count("b")]);
    let mut interrupted = interrupted;
    interrupted.until("Ctrl-C leaves it waiting");
    interrupted.interrupt();
    interrupted.until("gantry approvals cancel appr_");
    assert_eq!(interrupted.end().code, 1);
    assert_eq!(run(&home, &["approvals", "--json"]).json()[0]["state"], "SCHEDULED_FOR_EXECUTION");
}

#[test]
fn apr_8_a_yes_to_a_call_that_then_waits_for_its_time_says_when() {
    let home =
        home_with("requiresApprovalTools: [test__count], toolSpecificDelays: { test__count: 3600000 }");
    let id = held(&home, "a");
    let shown = run(&home, &["approvals", "show", &id]).stdout;
    assert!(shown.contains("delay        3600000 ms after the approval"), "{shown}");
    let ran = run(&home, &["approvals", "approve", &id]);
    assert!(ran.code == 0 && ran.stdout.contains("runs in "), "{ran:?}");
    assert!(ran.stderr.contains("gantry serve"), "{ran:?}");
    assert_eq!(item(&home, &id)["state"], "SCHEDULED_FOR_EXECUTION");
    let denied = run(&home, &["approvals", "deny", &id]);
    assert_eq!((denied.code, &item(&home, &id)["state"]), (0, &json!("REJECTED_BY_USER")), "{denied:?}");
}
