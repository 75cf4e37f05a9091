//! Calls that wait for their time: they outlive the server, run once when it has come, and not at all once they are
//! withdrawn.

use super::super::held::{Held, ask, decide, hold, item, line, lines, over, record, text};
use gantry_testkit::{Server, TestDir};
use http::Method;
use serde_json::{Value, json};

/// A home in which a count waits for so long.
fn delayed(ms: u64) -> TestDir {
    let config = json!({ "approvals": { "toolSpecificDelays": { "test__count": ms } } });
    TestDir::with_test_tools().config(&config.to_string())
}

#[track_caller]
fn scheduled(server: &Server, name: &str) -> Held {
    let held = hold(server, None, "test__count", &line(name));
    assert_eq!(item(server, &held.id)["state"], "SCHEDULED_FOR_EXECUTION");
    held
}

/// The time of the one that waits for it.
#[track_caller]
fn moment(item: &Value, name: &str) -> jiff::Timestamp {
    text(&item[name]).parse().expect("a moment")
}

#[track_caller]
fn withdraw(server: &Server, held: &Held) {
    let withdrawn = ask(server, None, Method::POST, &held.path("cancel"), &Value::Null);
    assert_eq!((withdrawn.status, &withdrawn.json()["state"]), (200, &json!("CANCELLED_BY_SYSTEM")));
}

#[test]
fn apr_8_a_scheduled_call_outlives_the_server_and_runs_once_when_its_time_has_come() {
    let home = delayed(3000);
    let server = home.serve();
    let (runs, withdrawn, denied, late) = (
        scheduled(&server, "runs"),
        scheduled(&server, "withdrawn"),
        scheduled(&server, "denied"),
        scheduled(&server, "withdrawn-later"),
    );
    withdraw(&server, &withdrawn);
    let no = decide(&server, &server.key, &denied, &json!({ "approved": false, "reason": "not now" }));
    assert_eq!((no.status, &no.json()["state"]), (200, &json!("REJECTED_BY_USER")), "{no:?}");
    let planned = moment(&item(&server, &runs.id), "scheduledFor");
    server.kill();

    let server = home.serve();
    let waits = item(&server, &runs.id);
    assert_eq!((&waits["state"], lines(&home).len()), (&json!("SCHEDULED_FOR_EXECUTION"), 0), "{waits}");
    assert_eq!(moment(&waits, "scheduledFor"), planned, "a restart does not move it");
    withdraw(&server, &late);
    let done = over(&server, &runs);
    assert_eq!((&done["state"], &done["attempts"]), (&json!("COMPLETED_SUCCESS"), &json!(1)), "{done}");
    assert!(moment(&done, "endedAt") >= planned, "it did not run early: {done}");
    let outcome = server.get(&format!("/api/v1/calls/{}", runs.call)).json();
    assert_eq!((&outcome["ok"], &outcome["result"]["counted"]), (&json!(true), &json!("runs")), "{outcome}");
    server.kill();

    // Nothing of it is done again by a later process.
    let server = home.serve();
    for (held, state) in [
        (&runs, "COMPLETED_SUCCESS"),
        (&withdrawn, "CANCELLED_BY_SYSTEM"),
        (&denied, "REJECTED_BY_USER"),
        (&late, "CANCELLED_BY_SYSTEM"),
    ] {
        assert_eq!(item(&server, &held.id)["state"], state);
        assert_eq!(record(&server, &held.call)["state"], state);
    }
    assert_eq!(lines(&home), ["runs"]);
}

#[test]
fn apr_8_a_call_whose_time_came_while_no_server_ran_is_run_once_by_the_next_start() {
    // Long enough for a busy machine to stop the server before.
    let home = delayed(2000);
    let server = home.serve();
    let held = scheduled(&server, "late");
    let planned = moment(&item(&server, &held.id), "scheduledFor");
    server.kill();
    while jiff::Timestamp::now() <= planned {
        std::thread::yield_now();
    }
    let server = home.serve();
    assert_eq!(over(&server, &held)["state"], "COMPLETED_SUCCESS");
    assert_eq!(lines(&home), ["late"]);
}

#[test]
fn apr_8_a_call_that_was_approved_for_later_outlives_the_server_too() {
    let config = json!({ "approvals": {
        "requiresApprovalTools": ["test__count"], "toolSpecificDelays": { "test__count": 1500 },
    } });
    let home = TestDir::with_test_tools().config(&config.to_string());
    let server = home.serve();
    let (runs, stopped) = (
        hold(&server, None, "test__count", &line("runs")),
        hold(&server, None, "test__count", &line("stopped")),
    );
    for held in [&runs, &stopped] {
        let yes = decide(&server, &server.key, held, &json!({ "approved": true }));
        assert_eq!(yes.json()["state"], "SCHEDULED_FOR_EXECUTION", "{yes:?}");
    }
    server.kill();
    let server = home.serve();
    // A second yes is none, and a no still counts.
    let yes = decide(&server, &server.key, &runs, &json!({ "approved": true }));
    assert_eq!((yes.status, &yes.json()["error"]["code"]), (409, &json!("ALREADY_DECIDED")), "{yes:?}");
    let no = decide(&server, &server.key, &stopped, &json!({ "approved": false }));
    assert_eq!((no.status, &no.json()["state"]), (200, &json!("REJECTED_BY_USER")), "{no:?}");
    let done = over(&server, &runs);
    assert_eq!(
        (&done["state"], &done["decidedBy"]),
        (&json!("COMPLETED_SUCCESS"), &json!("person")),
        "{done}"
    );
    assert_eq!(over(&server, &stopped)["state"], "REJECTED_BY_USER");
    assert_eq!(lines(&home), ["runs"]);
}
