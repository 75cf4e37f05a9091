//! Sessions and their sums.

use crate::fixture::{Fixture, begin, bring, ended, good, head, intent, key, session, whole};
use gantry_core::id::{CallId, SessionId};
use gantry_store::{CallHead, Outcome, SessionFilter, SessionKey, State, Totals};

#[tokio::test]
async fn the_sums_of_a_session_are_those_of_its_calls() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let id = head().session;
    store.open_session(session(id, 5)).await.unwrap();
    for state in [State::CompletedSuccess, State::CompletedFailure, State::Refused] {
        store.record(whole(&head(), ended(state))).await.unwrap();
    }
    let closed = begin(&store).await;
    store.close(closed.id, good()).await.unwrap();
    let waited = bring(&store, State::Executing).await;
    store.close(waited.head.id, good()).await.unwrap();
    begin(&store).await;

    let summary = store.session(id).await.unwrap().unwrap();
    let totals = Totals {
        calls: 5,
        failed: 2,
        refused: 1,
        unknown: 0,
        latency_us: 7_500,
        characters_in: 100,
        characters_out: 1_500,
        cost_micros: 35,
    };
    assert_eq!(summary.totals, totals);
    assert_eq!(summary.session.last_us, good().finished_us);
    assert_eq!(summary.session.started_us, 5);
}

#[tokio::test]
async fn an_unknown_call_is_counted_once_when_a_person_finds_out() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let head = head();
    store.open_session(session(head.session, 5)).await.unwrap();
    store.intend(intent(&head)).await.unwrap();
    store.shutdown().await.unwrap();

    let store = fixture.open();
    let totals = store.session(head.session).await.unwrap().unwrap().totals;
    assert_eq!((totals.calls, totals.failed, totals.unknown), (1, 1, 1));
    store.close(head.id, good()).await.unwrap();
    let totals = store.session(head.session).await.unwrap().unwrap().totals;
    assert_eq!((totals.calls, totals.failed, totals.unknown), (1, 0, 0));
}

#[tokio::test]
async fn a_resumable_session_is_the_newest_of_its_key_that_was_used() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let (first, second, third) = (SessionId::generate(), SessionId::generate(), SessionId::generate());
    for (id, at) in [(first, 10), (second, 20), (third, 30)] {
        store.open_session(session(id, at)).await.unwrap();
    }
    store.close_session(third, 31).await.unwrap();
    store.close_session(third, 99).await.unwrap();

    let standing = async |since| store.resumable_session(&key(), since).await.unwrap().map(|row| row.id);
    assert_eq!(standing(0).await, Some(second));
    assert_eq!(standing(21).await, None);
    for finished_us in [25, 24] {
        let used = CallHead { session: first, ..head() };
        store.record(whole(&used, Outcome { finished_us, ..good() })).await.unwrap();
    }
    assert_eq!(standing(21).await, Some(first));
    assert_eq!(store.session(third).await.unwrap().unwrap().session.ended_us, Some(31));

    let others = [
        SessionKey { agent: None, ..key() },
        SessionKey { door: "http".into(), ..key() },
        SessionKey { principal: "ann".into(), ..key() },
        SessionKey { project: "other".into(), ..key() },
    ];
    for other in others {
        assert_eq!(store.resumable_session(&other, 0).await.unwrap(), None);
    }
}

#[tokio::test]
async fn a_session_without_an_agent_stands_too() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let mut row = session(SessionId::generate(), 10);
    row.key.agent = None;
    store.open_session(row.clone()).await.unwrap();
    assert_eq!(store.resumable_session(&row.key, 0).await.unwrap(), Some(row));
}

#[tokio::test]
async fn opening_a_session_twice_keeps_the_first() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let id = SessionId::generate();
    store.open_session(session(id, 10)).await.unwrap();
    store.open_session(session(id, 99)).await.unwrap();
    let page = store.sessions(SessionFilter::default()).await.unwrap();
    assert_eq!(page.items.len(), 1);
    assert_eq!(page.items[0].session.started_us, 10);
}

#[tokio::test]
async fn sessions_are_filtered_and_paged() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let parent = CallId::generate();
    let mut made = Vec::new();
    for n in 0..12 {
        let mut row = session(SessionId::generate(), n);
        row.parent = (n == 3).then_some(parent);
        row.key.agent = (n != 4).then(|| "writer".into());
        made.push(row.id);
        store.open_session(row).await.unwrap();
    }
    made.reverse();
    let all = SessionFilter::default;
    let first = store.sessions(SessionFilter { limit: 7, ..all() }).await.unwrap();
    let rest = store.sessions(SessionFilter { cursor: first.next, limit: 7, ..all() }).await.unwrap();
    assert_eq!(rest.next, None);
    let seen: Vec<_> = first.items.into_iter().chain(rest.items).map(|summary| summary.session.id).collect();
    assert_eq!(seen, made);

    let below = store.sessions(SessionFilter { parent: Some(parent), ..all() }).await.unwrap().items;
    assert_eq!(below.iter().map(|summary| summary.session.parent).collect::<Vec<_>>(), [Some(parent)]);
    let writers = store.sessions(SessionFilter { agent: Some("writer".into()), ..all() }).await.unwrap();
    assert_eq!(writers.items.len(), 11);
    let none = store.sessions(SessionFilter { principal: Some("ann".into()), ..all() }).await.unwrap();
    assert!(none.items.is_empty());
}
