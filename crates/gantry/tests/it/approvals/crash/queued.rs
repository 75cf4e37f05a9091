//! Approved calls that cannot begin at once: a yes is not used up by a full queue, and not by an end in between.

use super::super::held::{Held, approve, call, hold, item, line, lines, over};
use gantry_testkit::{Home, Server};
use serde_json::json;

/// Calls that are approved at once.
const CALLS: usize = 6;

/// A home in which one call runs, one waits for its turn, and more are turned away.
fn narrow() -> Home {
    let config = json!({
        "queues": { "one": { "concurrent": 1, "maxWaiting": 1 } },
        "approvals": { "requiresApprovalTools": ["test__slow_write"] },
    });
    Home::with_test_tools().config(&config.to_string()).settings(&json!({ "queue": "one" }))
}

/// Approves calls of which the first takes `first_ms`.
fn approved(server: &Server, first_ms: u64) -> Vec<Held> {
    let held = |n: usize| {
        let ms = if n == 0 { first_ms } else { 50 };
        hold(server, None, "test__slow_write", &json!({ "ms": ms, "file": format!("slow-{n}") }))
    };
    let all: Vec<Held> = (0..CALLS).map(held).collect();
    all.iter().for_each(|held| drop(approve(server, held)));
    all
}

#[track_caller]
fn all_ran_once(home: &Home, server: &Server, all: &[Held]) {
    for (n, held) in all.iter().enumerate() {
        let done = over(server, held);
        assert_eq!((&done["state"], &done["attempts"]), (&json!("COMPLETED_SUCCESS"), &json!(1)), "{done}");
        assert_eq!(home.read(&format!("slow-{n}")), "begun\nended\n");
    }
}

#[test]
fn apr_4_approved_calls_that_find_the_queue_full_wait_for_room() {
    let home = narrow();
    let server = home.serve();
    let all = approved(&server, 50);
    all_ran_once(&home, &server, &all);
}

#[test]
fn apr_4_approved_calls_that_wait_for_room_outlive_the_server() {
    let home = narrow();
    let server = home.serve();
    // Only the kill ends the first.
    let all = approved(&server, 600_000);
    server.eventually("the first runs", || home.path().join("slow-0").exists());
    server.kill();
    let server = home.serve();
    assert_eq!(over(&server, &all[0])["state"], "OUTCOME_UNKNOWN");
    for (n, held) in all.iter().enumerate().skip(1) {
        assert_eq!(over(&server, held)["state"], "COMPLETED_SUCCESS", "{}", item(&server, &held.id));
        assert_eq!(home.read(&format!("slow-{n}")), "begun\nended\n");
    }
}

/// More than are looked at at a time.
const MANY: usize = 300;

#[test]
fn apr_8_heavy_what_waits_for_room_holds_up_nothing_else() {
    let asks = json!({ "requiresApprovalTools": ["test__*"] });
    let brief = json!({ "requiresApprovalTools": ["test__*"], "approvalTimeoutMs": 300 });
    let config = json!({
        "queues": { "one": { "concurrent": 1, "maxWaiting": MANY } },
        "approvals": asks,
        "projects": { "brief": { "workspace": ".", "approvals": brief } },
    });
    let queues = json!({ "toolsQueue": { "slow-write": "one" } });
    let home = Home::with_test_tools().config(&config.to_string()).settings(&queues);
    let server = home.serve();
    for n in 0..MANY {
        let arguments = json!({ "ms": 600_000, "file": format!("slow-{n}") });
        approve(&server, &hold(&server, None, "test__slow_write", &arguments));
    }
    server.eventually("the first runs", || home.path().join("slow-0").exists());
    // Others are approved and run, and what nobody decides expires.
    let held = hold(&server, None, "test__count", &line("beside"));
    approve(&server, &held);
    assert_eq!(over(&server, &held)["state"], "COMPLETED_SUCCESS");
    assert_eq!(lines(&home), ["beside"]);
    let late = json!({ "project": "brief", "tool": "test__count", "arguments": line("late") });
    let late = Held::of(&call(&server, None, &late));
    assert_eq!(over(&server, &late)["state"], "REJECTED_BY_TIMEOUT");
}
