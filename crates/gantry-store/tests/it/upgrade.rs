//! A data folder from before the ledger had a chain per node: it opens, its old chain is verified as it is, and the new chain
//! goes on from it.

use crate::fixture::{Fixture, approved, begin, good, head, held, intent, over, settle, standing, whole};
use gantry_core::id::{ApprovalId, CallId, ProcessId};
use gantry_store::{
    ApprovalFilter, CallFilter, Error, GrantFilter, IntentOutcome, NewApproval, Options, SessionFilter,
    State, Store, Verification, WebhookSent,
};
use rustix::fs::{FlockOperation, flock};
use std::fs::File;

const OLD: &str = include_str!("data/schema_3.sql");

/// A folder with the old database after that SQL. Its ended rows are made young, so that they are not deleted by age.
fn old(change: &str) -> Fixture {
    let fixture = Fixture::new();
    let conn = fixture.tables();
    conn.execute_batch(OLD).unwrap();
    let young = "UPDATE approvals SET ended_us = unixepoch() * 1000000 WHERE ended_us IS NOT NULL;
         UPDATE idempotency SET at = unixepoch() * 1000000; UPDATE results SET at = unixepoch() * 1000000;";
    conn.execute_batch(young).unwrap();
    conn.execute_batch(change).unwrap();
    fixture
}

fn call(digits: &str) -> CallId {
    format!("call_{digits}").parse().unwrap()
}

fn approval(digits: &str) -> ApprovalId {
    format!("appr_{digits}").parse().unwrap()
}

/// One that waits, one that takes the place of another and waits, and one that was rejected.
fn approvals() -> [ApprovalId; 3] {
    [
        approval("01a1ee612faa7368854b48fe822f40ac"),
        approval("01a1ee612fc873a6ace5794aaf21c5c1"),
        approval("01a1ee612fc173f89d946fd13a427aa3"),
    ]
}

#[tokio::test]
async fn an_old_folder_opens_with_all_that_it_had() {
    let fixture = old("");
    let (store, recovery) = fixture.open_with_recovery();
    // It was running when its process ended.
    assert_eq!(recovery.unknown.len(), 1);
    let verification = store.verify().await.unwrap();
    assert_eq!((verification.entries, verification.bad), (21, None));

    let calls = store.calls(CallFilter::default()).await.unwrap().items;
    assert_eq!(calls.len(), 9);
    assert!(calls.is_sorted_by(|a, b| a.head.id > b.head.id));
    let n_in = |state| calls.iter().filter(|row| row.state == state).count();
    assert_eq!(n_in(State::CompletedSuccess), 3);
    assert_eq!(n_in(State::PendingApproval), 2);
    assert_eq!(n_in(State::OutcomeUnknown), 1);
    let first = calls.last().unwrap();
    assert_eq!(first.head.caller, head().caller);
    assert_eq!((&first.head.tool, &first.head.arguments), (&head().tool, &head().arguments));
    assert_eq!(first.outcome.as_ref().unwrap().latency_us, 1_500);
    let keyed =
        store.call_by_key("default".into(), "local".into(), "once".to_owned()).await.unwrap().unwrap();
    assert_eq!(keyed.outcome.unwrap().result.as_deref(), Some(r#"{"ok":true}"#));

    assert_eq!(store.sessions(SessionFilter::default()).await.unwrap().items[0].totals.calls, 3);
    assert_eq!(store.grants(GrantFilter::default()).await.unwrap().items.len(), 1);
    assert_eq!(&*store.keys().await.unwrap()[0].name, "ann");
    let listed = store.approvals(ApprovalFilter::default()).await.unwrap().items;
    assert_eq!(listed.len(), 7);
    for row in &listed {
        if row.call != call("01a1ee612fc473a68cede748a3292855") {
            standing(&store, row.id).await;
        }
    }
}

#[tokio::test]
async fn calls_that_wait_in_an_old_folder_go_on() {
    let fixture = old("");
    let store = fixture.open();
    let [waits, again, _] = approvals();
    let row = standing(&store, waits).await;
    assert_eq!(store.call(row.call).await.unwrap().unwrap().refused.len(), 1);
    settle(&store, waits, State::ApprovedReady).await.unwrap();
    let head = store.call(row.call).await.unwrap().unwrap().head;
    let new = NewApproval { head, idempotency: None, row };
    assert!(matches!(store.intend(approved(&new)).await.unwrap(), IntentOutcome::Recorded));
    store.close(new.head.id, over(State::CompletedSuccess)).await.unwrap();
    assert_eq!(standing(&store, waits).await.state, State::CompletedSuccess);

    // The newest of several approvals of one call is the one that it had.
    let row = standing(&store, again).await;
    assert_eq!(store.approval_of(row.call).await.unwrap().unwrap().id, again);
    settle(&store, again, State::ApprovedReady).await.unwrap();
    let mut third = held("third");
    third.head.id = row.call;
    third.row.supersedes = Some(again);
    crate::fixture::hold(&store, third.clone()).await;
    assert_eq!(store.approval_of(row.call).await.unwrap().unwrap().id, third.row.id);

    begin(&store).await;
    store.record(whole(&crate::fixture::head(), good())).await.unwrap();
    assert!(store.intend(intent(&new.head)).await.is_err(), "it ran twice");
    let verification = store.verify().await.unwrap();
    assert_eq!((verification.entries, verification.bad), (28, None));
    store.shutdown().await.unwrap();
    let verification = fixture.open().verify().await.unwrap();
    assert_eq!((verification.entries, verification.bad), (29, None), "the open call is unknown now");
}

#[tokio::test]
async fn an_old_folder_that_is_in_use_stays_as_it_is() {
    let fixture = old("");
    let locks = fixture.folder.path().join("nodes");
    std::fs::create_dir(&locks).unwrap();
    let name = format!("node_{}.lock", ProcessId::generate().uuid().as_simple());
    let lock = File::create(locks.join(name)).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let error = Store::open(Options::new(fixture.path())).unwrap_err();
    assert!(matches!(error, Error::OlderInUse { .. }), "{error:?}");
    assert!(error.to_string().contains("stop them, then start again"), "{error}");
    assert_eq!(std::fs::read_dir(&locks).unwrap().count(), 1, "a lock was left");
    let conn = fixture.tables();
    let version: i64 = conn.query_row("SELECT max(version) FROM migrations", [], |row| row.get(0)).unwrap();
    assert_eq!(version, 3);
    drop((lock, conn));
    fixture.open();
}

#[test]
fn processes_that_start_at_once_upgrade_an_old_folder() {
    let fixture = old("");
    std::thread::scope(|scope| {
        let opened: Vec<_> = (0..4).map(|_| scope.spawn(|| fixture.open())).collect();
        let stores: Vec<_> = opened.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert_eq!(stores.len(), 4);
    });
}

/// An upgraded folder with two entries in its new chain after that SQL on the bare file, and the verification.
async fn tampered(change: &str) -> Verification {
    let fixture = old("");
    let store = fixture.open();
    store.record(whole(&head(), good())).await.unwrap();
    store.flush().await.unwrap();
    fixture.tables().execute_batch(change).unwrap();
    store.verify().await.unwrap()
}

#[track_caller]
fn check(found: &Verification, entries: u64, bad: (bool, i64)) {
    let is_frozen = |node: &gantry_core::id::NodeId| *node.as_bytes() == [0; 16];
    let place = found.bad.as_ref().map(|bad| (is_frozen(&bad.node), bad.seq));
    assert_eq!((found.entries, place), (entries, Some(bad)), "{found:?}");
}

#[tokio::test]
async fn tampering_with_the_old_entries_is_found() {
    const FROZEN: &str = "node = zeroblob(16)";
    for column in
        ["kind = 'whole'", "process = zeroblob(16)", "at = at + 1", "state = 'REFUSED'", "body = body || ' '"]
    {
        let found = tampered(&format!("UPDATE ledger SET {column} WHERE {FROZEN} AND seq = 5")).await;
        check(&found, 4, (true, 5));
    }
    check(&tampered(&format!("DELETE FROM ledger WHERE {FROZEN} AND seq = 20")).await, 19, (true, 20));
    // The order of a call's entries is not covered by the old hashes.
    let swapped = "UPDATE ledger SET step = 9 WHERE node = zeroblob(16) AND seq = 2;
         UPDATE ledger SET step = 0 WHERE node = zeroblob(16) AND seq = 4;
         UPDATE ledger SET step = 1 WHERE node = zeroblob(16) AND seq = 2";
    check(&tampered(swapped).await, 1, (true, 2));
    let forged = "INSERT INTO ledger SELECT node, 21, kind, randomblob(16), step, process, at, project, session, principal,
         name, state, body, hash FROM ledger WHERE node = zeroblob(16) AND seq = 1";
    check(&tampered(forged).await, 20, (true, 21));
}

#[tokio::test]
async fn tampering_with_the_link_to_the_old_entries_is_found() {
    const NEW: &str = "node <> zeroblob(16)";
    check(
        &tampered(&format!("UPDATE ledger_heads SET genesis = zeroblob(32) WHERE {NEW}")).await,
        20,
        (false, 1),
    );
    // The old entries are cut off: their head row is gone, or moved back.
    let removed =
        "DELETE FROM ledger WHERE node = zeroblob(16); DELETE FROM ledger_heads WHERE node = zeroblob(16)";
    check(&tampered(removed).await, 2, (false, 1));
    check(&tampered("DELETE FROM ledger_heads WHERE node = zeroblob(16)").await, 2, (true, 1));
    let cut = "DELETE FROM ledger WHERE node = zeroblob(16) AND seq > 19; UPDATE ledger_heads
         SET seq = 19, hash = (SELECT hash FROM ledger WHERE node = zeroblob(16) AND seq = 19) WHERE node = zeroblob(16)";
    check(&tampered(cut).await, 21, (false, 1));
    check(&tampered(&format!("UPDATE ledger SET at = 0 WHERE {NEW} AND seq = 1")).await, 20, (false, 1));
    // The new chain is removed.
    let alone = format!("DELETE FROM ledger WHERE {NEW}; DELETE FROM ledger_heads WHERE {NEW}");
    check(&tampered(&alone).await, 20, (true, 20));
}

#[tokio::test]
async fn a_folder_from_before_the_outbox_opens_and_goes_on_with_what_waits() {
    let ids = approvals();
    let [waits, again, rejected] =
        ["2faa7368854b48fe822f40ac", "2fc873a6ace5794aaf21c5c1", "2fc173f89d946fd13a427aa3"];
    let fixture = old(&format!(
        "DROP INDEX approvals_unsent; ALTER TABLE approvals DROP COLUMN unsent; DELETE FROM migrations WHERE version = 3;
         CREATE INDEX approvals_unannounced ON approvals (seq) WHERE announced = 0 AND state = 'PENDING_APPROVAL';
         UPDATE approvals SET announced = 0 WHERE lower(hex(id)) LIKE '%{waits}';
         UPDATE approvals SET announced = 1 WHERE lower(hex(id)) LIKE '%{again}' OR lower(hex(id)) LIKE '%{rejected}'",
    ));
    let store = fixture.open();
    let mut sent = Vec::new();
    for id in &ids {
        sent.push(standing(&store, *id).await.webhook_sent);
    }
    assert_eq!(sent, [WebhookSent::Nothing, WebhookSent::Request, WebhookSent::All]);
    assert_eq!(unsent(&store).await, ids[..1]);
    settle(&store, ids[1], State::RejectedByUser).await.unwrap();
    assert_eq!(unsent(&store).await, ids[..2]);
}

async fn unsent(store: &Store) -> Vec<ApprovalId> {
    let unsent = store.unsent("default".into(), None, 10).await.unwrap();
    unsent.into_iter().map(|unsent| unsent.id).collect()
}
