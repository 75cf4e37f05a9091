//! A repeated key gets the call that used it first.

use crate::fixture::{Fixture, LIMITS, good, head, held, hold, keyed, settle};
use gantry_core::digest::Digest;
use gantry_store::{CallRow, Error, HoldOutcome, Intent, IntentOutcome, NewApproval, Outcome, State, Store};

async fn repeated(store: &Store, key: &str) -> CallRow {
    match store.intend(keyed(&head(), key)).await.unwrap() {
        IntentOutcome::Duplicate(row) => *row,
        IntentOutcome::Recorded => panic!("the key {key} was taken for a new one"),
    }
}

#[tokio::test]
async fn a_repeated_key_gets_the_open_call_and_later_its_result() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let first = head();
    assert!(matches!(store.intend(keyed(&first, "k")).await.unwrap(), IntentOutcome::Recorded));

    let row = repeated(&store, "k").await;
    assert_eq!((row.head.id, row.state, row.outcome), (first.id, State::Executing, None));

    let outcome = Outcome { result: Some("[1]".to_owned()), ..good() };
    store.close(first.id, outcome.clone()).await.unwrap();
    let row = repeated(&store, "k").await;
    assert_eq!((row.head.id, row.outcome), (first.id, Some(outcome)));
    let key = row.idempotency.unwrap();
    assert_eq!((key.key.as_str(), key.arguments), ("k", Digest::of(b"arguments")));
    assert_eq!(store.stats().entries, 2);
}

#[tokio::test]
async fn a_key_survives_a_restart() {
    let fixture = Fixture::new();
    let first = head();
    let store = fixture.open();
    store.intend(keyed(&first, "k")).await.unwrap();
    store.shutdown().await.unwrap();

    let store = fixture.open();
    let row = repeated(&store, "k").await;
    assert_eq!((row.head.id, row.state), (first.id, State::OutcomeUnknown));
}

#[tokio::test]
async fn keys_of_other_projects_and_principals_are_other_keys() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let (mut project, mut principal) = (head(), head());
    project.caller.project = "other".into();
    principal.caller.principal = "other".into();
    for head in [head(), project, principal] {
        assert!(matches!(store.intend(keyed(&head, "k")).await.unwrap(), IntentOutcome::Recorded));
    }
    assert!(matches!(store.intend(keyed(&head(), "K")).await.unwrap(), IntentOutcome::Recorded));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_identical_keys_at_once_exactly_one_is_fresh() {
    let fixture = Fixture::new();
    // Two stores, so that the race also runs between processes' writers and not only inside one channel.
    let stores = [fixture.open(), fixture.open()];
    for round in 0..20 {
        let tasks: Vec<_> = (0..16)
            .map(|n| {
                let store = stores[n % 2].clone();
                tokio::spawn(async move { store.intend(keyed(&head(), &format!("k{round}"))).await })
            })
            .collect();
        let mut fresh = 0;
        for task in tasks {
            fresh += usize::from(matches!(task.await.unwrap().unwrap(), IntentOutcome::Recorded));
        }
        assert_eq!(fresh, 1);
    }
    assert_eq!(stores[0].verify().await.unwrap().entries, 20);
}

#[tokio::test]
async fn a_held_call_meets_its_own_key_again_and_others_meet_the_call() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let first = held("a");
    let key = keyed(&first.head, "k").idempotency;
    let first = NewApproval { idempotency: key.clone(), ..first };
    hold(&store, first.clone()).await;
    let (project, principal) = ("default".into(), "local".into());
    let found = store.call_by_key(project, principal, "k".to_owned()).await.unwrap().unwrap();
    assert_eq!((found.head.id, found.state), (first.head.id, State::PendingApproval));
    assert_eq!(repeated(&store, "k").await.state, State::PendingApproval);

    // Another request under the same key gets the call that has it; the same request joins.
    let other = NewApproval { idempotency: key, ..held("b") };
    let taken = store.hold(other, LIMITS).await;
    assert!(matches!(taken, Err(Error::Taken { call, .. }) if call == first.head.id), "{taken:?}");
    let same = NewApproval { head: head(), ..first.clone() };
    assert!(
        matches!(store.hold(same, LIMITS).await.unwrap(), HoldOutcome::Joined(row) if row.id == first.row.id)
    );

    settle(&store, first.row.id, State::ApprovedReady).await.unwrap();
    let decided = Some(first.row.details.binding);
    let intent = Intent { approval: Some(first.row.id), decided, ..keyed(&first.head, "k") };
    assert!(matches!(store.intend(intent.clone()).await.unwrap(), IntentOutcome::Recorded));
    store.close(first.head.id, good()).await.unwrap();
    assert_eq!(repeated(&store, "k").await.state, State::CompletedSuccess);
    assert!(matches!(store.intend(intent).await, Err(Error::Taken { .. })));
}

#[tokio::test]
async fn the_old_key_of_a_call_that_waits_is_not_forgotten() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let waits = held("a");
    let waits = NewApproval { idempotency: keyed(&waits.head, "k").idempotency, ..waits };
    hold(&store, waits.clone()).await;
    let conn = fixture.tables();
    conn.execute("UPDATE idempotency SET at = 0", []).unwrap();
    assert_eq!(repeated(&fixture.open(), "k").await.head.id, waits.head.id);
}

#[tokio::test]
async fn old_keys_and_results_are_forgotten_at_open_and_those_of_open_calls_are_not() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let (old, open, young) = (head(), head(), head());
    for (head, key) in [(&old, "old"), (&open, "open"), (&young, "young")] {
        store.intend(keyed(head, key)).await.unwrap();
    }
    for head in [&old, &young] {
        store.close(head.id, Outcome { result: Some("1".to_owned()), ..good() }).await.unwrap();
    }
    let conn = fixture.tables();
    for id in [old.id, open.id] {
        conn.execute("UPDATE idempotency SET at = 0 WHERE call = ?1", [id.as_bytes()]).unwrap();
        conn.execute("UPDATE results SET at = 0 WHERE call = ?1", [id.as_bytes()]).unwrap();
    }

    // The first store stays open, so its open call is that of a living neighbour.
    let neighbour = fixture.open();
    assert!(matches!(neighbour.intend(keyed(&head(), "old")).await.unwrap(), IntentOutcome::Recorded));
    assert_eq!(neighbour.call(old.id).await.unwrap().unwrap().outcome, Some(good()));
    assert_eq!(repeated(&neighbour, "open").await.head.id, open.id);
    assert_eq!(repeated(&neighbour, "young").await.outcome.unwrap().result.as_deref(), Some("1"));
}

#[tokio::test]
async fn an_endless_key_is_refused() {
    let fixture = Fixture::new();
    let intended = fixture.open().intend(keyed(&head(), &"k".repeat(1025))).await;
    assert!(matches!(intended, Err(Error::TooLarge { .. })));
}
