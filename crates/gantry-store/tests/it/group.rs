//! The writer commits in groups, and keeps what it promised to every caller.

use crate::fixture::{Fixture, begin, good, head, intent, keyed, whole};
use gantry_store::{CallFilter, Error, IntentOutcome, Options, State, Store};
use std::time::Duration;

/// Long enough that no commit of these tests can come from the end of the delay.
const ENDLESS: Duration = Duration::from_secs(3600);

fn patient(fixture: &Fixture, queue: usize) -> Store {
    Store::open(Options { group_delay: ENDLESS, queue, ..Options::new(fixture.path()) }).unwrap().0
}

#[tokio::test]
async fn records_share_a_commit() {
    let fixture = Fixture::new();
    let store = patient(&fixture, 4096);
    for _ in 0..300 {
        store.record(whole(&head(), good())).await.unwrap();
    }
    store.flush().await.unwrap();
    let stats = store.stats();
    assert_eq!((stats.entries, stats.lost, stats.queue_depth), (300, 0, 0));
    assert!(stats.commits <= 2, "{stats:?}");
}

#[tokio::test]
async fn a_full_group_is_committed_before_the_delay_ends() {
    let fixture = Fixture::new();
    let store = patient(&fixture, 4096);
    for _ in 0..2000 {
        store.record(whole(&head(), good())).await.unwrap();
    }
    while store.stats().entries < 512 {
        tokio::task::yield_now().await;
    }
    assert!(store.stats().commits >= 1);
}

#[tokio::test]
async fn senders_wait_for_a_full_channel_and_lose_nothing() {
    let fixture = Fixture::new();
    let store = patient(&fixture, 4);
    for _ in 0..100 {
        store.record(whole(&head(), good())).await.unwrap();
    }
    store.flush().await.unwrap();
    assert_eq!(store.stats().entries, 100);
}

#[tokio::test]
async fn a_waiter_ends_the_delay() {
    let fixture = Fixture::new();
    let store = patient(&fixture, 4096);
    for _ in 0..20 {
        store.record(whole(&head(), good())).await.unwrap();
        let head = begin(&store).await;
        store.close(head.id, good()).await.unwrap();
    }
    assert_eq!(store.stats().entries, 60);
}

#[tokio::test]
async fn concurrent_intents_share_commits() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let before = store.stats().commits;
    let tasks: Vec<_> = (0..64)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.intend(intent(&head())).await })
        })
        .collect();
    for task in tasks {
        assert!(matches!(task.await.unwrap().unwrap(), IntentOutcome::Recorded));
    }
    // The runtime has one thread, so all intents are sent before the first answer is seen.
    let commits = store.stats().commits - before;
    assert!(commits < 64, "{commits} commits for 64 intents");
}

#[tokio::test]
async fn a_damaged_row_fails_those_alone_that_read_it() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let damaged = head();
    store.intend(keyed(&damaged, "once")).await.unwrap();
    let conn = fixture.tables();
    conn.execute("UPDATE ledger SET body = '{'", []).unwrap();

    // While another process writes, the writer waits with the first message, and the others gather to one group.
    conn.execute_batch("BEGIN IMMEDIATE").unwrap();
    let first = tokio::spawn({
        let store = store.clone();
        async move { store.flush().await }
    });
    let (before, repeated, other) = (store.stats(), head(), head());
    let release = async {
        while store.stats().queue_depth != 2 {
            tokio::task::yield_now().await;
        }
        conn.execute_batch("COMMIT").unwrap();
    };
    let waiting = async {
        tokio::task::yield_now().await;
        while store.stats().queue_depth > 0 {
            tokio::task::yield_now().await;
        }
        tokio::join!(store.intend(keyed(&repeated, "once")), store.intend(intent(&other)))
    };
    let ((read, written), ()) = tokio::join!(waiting, release);
    first.await.unwrap().unwrap();
    let error = read.unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error:?}");
    assert!(error.to_string().contains(&format!("entry 0 of {}", damaged.id)), "{error}");
    assert!(matches!(written.unwrap(), IntentOutcome::Recorded));
    assert_eq!(store.stats().commits, before.commits + 2, "they were no group");
}

#[tokio::test]
async fn a_caller_reads_its_own_writes() {
    let fixture = Fixture::new();
    let store = patient(&fixture, 4096);
    for n in 1..=20 {
        let head = head();
        store.record(whole(&head, good())).await.unwrap();
        assert_eq!(store.call(head.id).await.unwrap().unwrap().state, State::CompletedSuccess);
        assert_eq!(store.calls(CallFilter::default()).await.unwrap().items.len(), n);
    }
}

#[tokio::test]
async fn records_are_committed_when_the_delay_ends() {
    let fixture = Fixture::new();
    let store = fixture.open();
    store.record(whole(&head(), good())).await.unwrap();
    while store.stats().entries == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn shutdown_writes_what_was_accepted_and_closes_every_handle() {
    let fixture = Fixture::new();
    let store = patient(&fixture, 4096);
    let other = store.clone();
    for _ in 0..700 {
        store.record(whole(&head(), good())).await.unwrap();
    }
    store.shutdown().await.unwrap();
    other.shutdown().await.unwrap();
    assert!(matches!(other.record(whole(&head(), good())).await, Err(Error::Closed)));
    assert!(matches!(other.intend(intent(&head())).await, Err(Error::Closed)));
    assert!(matches!(other.calls(CallFilter::default()).await, Err(Error::Closed)));

    let wal = fixture.folder.path().join("gantry.db-wal");
    assert!(!wal.exists(), "the log was left behind");
    assert_eq!(std::fs::read_dir(fixture.folder.path().join("nodes")).unwrap().count(), 0);
    assert_eq!(fixture.open().verify().await.unwrap().entries, 700);
}

#[tokio::test]
async fn dropping_the_last_handle_writes_what_was_accepted() {
    let fixture = Fixture::new();
    let store = patient(&fixture, 4096);
    for _ in 0..30 {
        store.record(whole(&head(), good())).await.unwrap();
    }
    drop(store);
    assert_eq!(fixture.open().verify().await.unwrap().entries, 30);
}

#[tokio::test]
async fn an_intent_whose_caller_has_gone_harms_nothing() {
    let fixture = Fixture::new();
    let store = patient(&fixture, 1);
    let abandoned = head();
    {
        let mut waiting = Box::pin(store.intend(intent(&abandoned)));
        // The first poll hands the intent over or queues for space; then its caller gives up.
        let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(waiting.as_mut().poll(cx))).await;
        assert!(polled.is_pending());
    }
    store.flush().await.unwrap();
    // Whether the writer was faster than the drop is open; either way nothing is settled or doubled.
    let row = store.call(abandoned.id).await.unwrap();
    assert!(row.is_none_or(|row| row.state == State::Executing));
}
