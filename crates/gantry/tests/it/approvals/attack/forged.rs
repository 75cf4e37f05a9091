//! A database that somebody has changed by hand: a yes is worth something only as the ledger has it, for exactly what it was
//! given.

use super::super::held::{
    Held, approve, asked_again, decide, hold, item, line, lines, over, record, verified,
};
use super::home;
use gantry_testkit::Home;
use serde_json::json;
use std::process::Command;

/// Changes the database like somebody who can write to the data folder.
#[track_caller]
fn by_hand(home: &Home, held: &Held, change: &str) {
    let statement = format!("UPDATE approvals SET {change} WHERE hex(id) = upper('{}')", digits(&held.id));
    let script = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], timeout=30)
n = c.execute(sys.argv[2]).rowcount; c.commit(); sys.exit(0 if n == 1 else 9)";
    let database = home.path().join(".gantry/gantry.db");
    let ran = Command::new("python3").args(["-c", script]).arg(database).arg(&statement).output();
    let ran = ran.expect("python3, which the tests of the SDKs need as well");
    assert!(ran.status.success(), "{statement}: {ran:?}");
}

/// The digits of an id.
fn digits(id: &str) -> &str {
    id.split_once('_').expect("an id").1
}

/// Other arguments than those that were asked about.
const OTHER: &str = r#"arguments = '{"file":"counted","text":"forged"}'"#;

#[test]
fn apr_5_arguments_that_were_changed_by_hand_void_the_yes() {
    let home = home();
    let server = home.serve();
    let held = hold(&server, None, "test__count", &line("asked"));
    by_hand(&home, &held, OTHER);
    approve(&server, &held);
    let asked = asked_again(&server, &held);
    assert_eq!(asked["arguments"], line("forged"), "{asked}");
    assert!(lines(&home).is_empty());
    // What was asked at first is on record, and the trail is whole.
    assert!(record(&server, &held.call)["state"] == "PENDING_APPROVAL");
    verified(&server);
}

#[test]
fn apr_5_arguments_that_were_changed_by_hand_after_the_yes_void_it() {
    let delayed = json!({ "approvals": {
        "requiresApprovalTools": ["test__count"], "toolSpecificDelays": { "test__count": 600_000 },
    } });
    let home = Home::with_test_tools().config(&delayed.to_string());
    let server = home.serve();
    let (held, edited) = (
        hold(&server, None, "test__count", &line("asked")),
        hold(&server, None, "test__count", &line("other")),
    );
    approve(&server, &held);
    let given = json!({ "approved": true, "modifiedArgs": line("given") });
    assert_eq!(decide(&server, &server.key, &edited, &given).status, 200);
    // What was forged is due at once, so that nothing runs before it is.
    by_hand(&home, &held, &format!("{OTHER}, due_us = 0"));
    by_hand(&home, &edited, r#"modified = '{"file":"counted","text":"forged"}', due_us = 0"#);
    for held in [&held, &edited] {
        assert_eq!(asked_again(&server, held)["arguments"], line("forged"));
    }
    assert!(lines(&home).is_empty());
}

#[test]
fn apr_5_a_yes_that_the_ledger_does_not_have_is_none() {
    let home = home();
    let server = home.serve();
    let forged = hold(&server, None, "test__count", &line("forged"));
    // Word for word as a decision would stand there, about exactly this call.
    by_hand(
        &home,
        &forged,
        r#"state = 'APPROVED_READY', due_us = 0, decision = json_object('verdict', 'approved', 'by', 'person', 'via', 'http',
           'atUs', 1, 'binding', json_extract(asked, '$.binding'), 'scope', 'once')"#,
    );
    // By the time that this one has run, that one was looked at.
    for text in ["one", "two"] {
        let real = hold(&server, None, "test__count", &line(text));
        approve(&server, &real);
        assert_eq!(over(&server, &real)["state"], "COMPLETED_SUCCESS");
    }
    assert_eq!(record(&server, &forged.call)["state"], "PENDING_APPROVAL", "{}", item(&server, &forged.id));
    drop(server);
    let server = home.serve();
    let real = hold(&server, None, "test__count", &line("three"));
    approve(&server, &real);
    assert_eq!(over(&server, &real)["state"], "COMPLETED_SUCCESS");
    assert_eq!(record(&server, &forged.call)["state"], "PENDING_APPROVAL", "{}", item(&server, &forged.id));
    assert_eq!(lines(&home), ["one", "two", "three"]);
    verified(&server);
}

#[test]
fn apr_5_a_state_without_a_decision_is_asked_about_again() {
    let home = home();
    let server = home.serve();
    let forged = hold(&server, None, "test__count", &line("forged"));
    by_hand(&home, &forged, "state = 'APPROVED_READY', due_us = 0");
    asked_again(&server, &forged);
    assert!(lines(&home).is_empty());
}
