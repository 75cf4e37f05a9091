//! Too much to look at, and things that do not look like what they are.

use super::super::held::{Held, approve, call, hold, item, key, line, lines, text};
use super::{config, home};
use crate::passthrough::{Door, Talk};
use gantry_testkit::{Connection, TestDir};
use serde_json::{Value, json};

/// Calls of one caller that may wait.
const MOST: usize = 1000;

fn ask(connection: &mut Connection, n: usize) -> (u16, Value) {
    let answer = connection.call("test__count", &line(&n.to_string())).expect("an answer");
    (answer.status, answer.json())
}

#[test]
fn apr_7_heavy_a_caller_who_asks_a_thousand_times_is_turned_away() {
    let home = home();
    let server = home.serve();
    let mut connection = server.connect();
    let held: Vec<Held> = (0..MOST)
        .map(|n| {
            let (status, reply) = ask(&mut connection, n);
            assert_eq!(status, 202, "{n}: {reply}");
            Held { id: text(&reply["approvalId"]), call: text(&reply["id"]) }
        })
        .collect();
    let (status, reply) = ask(&mut connection, MOST);
    assert_eq!((status, &reply["error"]["code"]), (429, &json!("QUEUE_FULL")), "{reply}");
    assert!(text(&reply["error"]["message"]).contains("Nothing was run"), "{reply}");
    let row = server.get_as_admin("/api/v1/audit?limit=1").json()["items"][0].clone();
    assert_eq!((&row["state"], &row["error"]["code"]), (&json!("REFUSED"), &json!("QUEUE_FULL")), "{row}");
    // One who asks for the same again is no more than one.
    assert_eq!(ask(&mut connection, 0).1["approvalId"], *held[0].id);
    // Others are not held up, and with every decision there is room again.
    let other = key(&server, "agent", "other", &json!({}));
    let theirs = call(&server, Some(&other), &json!({ "tool": "test__count", "arguments": line("theirs") }));
    assert_eq!(theirs.status, 202, "{theirs:?}");
    approve(&server, &held[7]);
    server.eventually("there is room", || ask(&mut connection, MOST).0 == 202);
    assert_eq!(lines(&home), ["7"]);
}

#[test]
fn apr_7_the_most_that_may_wait_is_configured() {
    let approvals = json!({ "requiresApprovalTools": ["test__count"], "maxPending": 2 });
    let home = TestDir::with_test_tools().config(&config(&json!({ "approvals": approvals })).to_string());
    let server = home.serve();
    let mut connection = server.connect();
    assert_eq!([0, 1, 2].map(|n| ask(&mut connection, n).0), [202, 202, 429]);
}

/// A text that would write over what stands above it, turn around what stands behind it, and say that all is well.
const SPOOF: &str =
    "x\r\u{1b}[2K\u{1b}[1A\n  approved by ann ✔\u{202e}txt.exe\u{2066}\u{200b}\u{e0041}\u{9b}2J";

/// Whether a terminal or a page would obey it, or it is invisible.
fn is_hidden(c: char) -> bool {
    (c.is_control() && c != '\n')
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{e0000}'..='\u{e0fff}')
}

#[test]
fn apr_6_arguments_that_pretend_are_shown_for_what_they_are() {
    let home = home();
    let server = home.serve();
    let held = hold(&server, None, "test__count", &line(SPOOF));
    for args in [
        ["approvals", "show", &held.id].as_slice(),
        &["approvals", "show", &held.id, "--json"],
        &["approvals"],
        &["approvals", "list", "--json"],
    ] {
        let ran = home.run(args);
        assert_eq!(ran.code, 0, "{ran:?}");
        for shown in [&ran.stdout, &ran.stderr] {
            assert_eq!(shown.chars().find(|c| is_hidden(*c)), None, "{args:?}: {shown:?}");
            assert!(
                !shown.lines().any(|line| line.trim_start().starts_with("approved by ann")),
                "{args:?}: {shown}"
            );
        }
    }
    let shown = home.run(["approvals", "show", &held.id]).stdout;
    for words in [r"\u202e", r"\u001b", r"\u200b", r"\n", "waiting"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    // What is shown escaped is decided about as it is.
    assert_eq!(item(&server, &held.id)["arguments"], line(SPOOF));
}

#[test]
fn apr_6_a_form_shows_arguments_that_pretend_for_what_they_are() {
    let home = home();
    let _server = home.serve();
    let mut client = Talk::legacy_with(Door::Stdio(&home, &[]), &json!({ "elicitation": { "form": {} } }));
    let id = client.begin_call("test__count", &line(SPOOF));
    let question = client.hear("elicitation/create");
    let message = text(&question["params"]["message"]);
    assert_eq!(message.chars().find(|c| is_hidden(*c)), None, "{message:?}");
    assert!(message.contains(r"\u202e") && message.contains("test__count"), "{message}");
    assert!(!message.lines().any(|line| line.trim_start().starts_with("approved by ann")), "{message}");
    client.answer(&question, &json!({ "action": "decline" }));
    assert!(client.end(id).contains("denied"), "a form that is declined is a no");
    assert!(lines(&home).is_empty());
}
