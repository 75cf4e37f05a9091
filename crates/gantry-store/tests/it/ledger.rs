//! Calls go in and come out as they were.

use crate::fixture::{Fixture, begin, ended, good, head, intent, whole};
use gantry_core::id::CallId;
use gantry_store::{Error, IntentOutcome, State};

#[tokio::test]
async fn an_intent_is_executing_until_it_is_closed() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let head = begin(&store).await;

    let row = store.call(head.id).await.unwrap().unwrap();
    assert_eq!((row.state, &row.outcome, row.process), (State::Executing, &None, store.process()));
    assert_eq!(row.head, head);

    store.close(head.id, good()).await.unwrap();
    let row = store.call(head.id).await.unwrap().unwrap();
    assert_eq!((row.state, row.outcome), (State::CompletedSuccess, Some(good())));
    assert_eq!(row.head, head);
}

#[tokio::test]
async fn a_whole_call_is_read_as_it_was_recorded() {
    let fixture = Fixture::new();
    let store = fixture.open();
    for state in [State::CompletedSuccess, State::CompletedFailure, State::Refused, State::PendingApproval] {
        let mut head = head();
        head.parent = None;
        head.caller.agent = None;
        head.tool.fingerprint = None;
        head.arguments_digest = None;
        head.decision = None;
        store.record(whole(&head, ended(state))).await.unwrap();
        let row = store.call(head.id).await.unwrap().unwrap();
        assert_eq!((row.state, row.outcome, row.head), (state, Some(ended(state)), head));
    }
}

#[tokio::test]
async fn a_given_result_is_kept_but_lists_leave_it_out() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let outcome = gantry_store::Outcome { result: Some("{\"ok\":true}".to_owned()), ..good() };
    let (first, second) = (begin(&store).await, head());
    store.close(first.id, outcome.clone()).await.unwrap();
    store.record(whole(&second, outcome.clone())).await.unwrap();

    for id in [first.id, second.id] {
        assert_eq!(store.call(id).await.unwrap().unwrap().outcome, Some(outcome.clone()));
    }
    let listed = store.calls(gantry_store::CallFilter::default()).await.unwrap().items;
    assert!(listed.iter().all(|row| row.outcome == Some(good())));
}

#[tokio::test]
async fn an_unknown_id_has_no_row() {
    let fixture = Fixture::new();
    assert!(fixture.open().call(CallId::generate()).await.unwrap().is_none());
}

#[tokio::test]
async fn a_settled_call_neither_begins_nor_ends_again() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let head = begin(&store).await;
    let again = store.intend(intent(&head)).await;
    assert!(matches!(again, Err(Error::Taken { state: State::Executing, .. })), "{again:?}");

    store.close(head.id, ended(State::CompletedFailure)).await.unwrap();
    let again = store.close(head.id, good()).await;
    assert!(matches!(again, Err(Error::Taken { state: State::CompletedFailure, .. })), "{again:?}");
    let again = store.intend(intent(&head)).await;
    assert!(matches!(again, Err(Error::Taken { state: State::CompletedFailure, .. })), "{again:?}");
    assert_eq!(store.stats().entries, 2);
}

#[tokio::test]
async fn an_outcome_needs_an_intent_and_an_end() {
    let fixture = Fixture::new();
    let store = fixture.open();
    assert!(matches!(store.close(CallId::generate(), good()).await, Err(Error::UnknownCall { .. })));
    let head = begin(&store).await;
    for state in State::ALL.iter().copied().filter(|state| !state.is_over()) {
        assert!(
            matches!(store.close(head.id, ended(state)).await, Err(Error::NotAnEnding { .. })),
            "{state}"
        );
    }
    let executing = whole(&head, ended(State::Executing));
    assert!(matches!(store.record(executing).await, Err(Error::NotAnEnding { .. })));
    assert_eq!(store.call(head.id).await.unwrap().unwrap().state, State::Executing);
}

#[tokio::test]
async fn one_bad_message_does_not_harm_its_group() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let (good_head, missing) = (head(), CallId::generate());
    let (bad, fine) = tokio::join!(store.close(missing, good()), store.intend(intent(&good_head)));
    assert!(bad.is_err());
    assert!(matches!(fine.unwrap(), IntentOutcome::Recorded));
    assert_eq!(store.verify().await.unwrap().bad, None);
}

#[tokio::test]
async fn texts_over_their_limit_are_refused() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let mut head = head();
    head.arguments = "x".repeat((1 << 20) + 1).into();
    assert!(matches!(store.intend(intent(&head)).await, Err(Error::TooLarge { .. })));
    assert!(matches!(store.record(whole(&head, good())).await, Err(Error::TooLarge { .. })));
}

#[tokio::test]
async fn a_result_over_its_limit_is_dropped_and_the_call_still_ends() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let head = begin(&store).await;
    let outcome = gantry_store::Outcome { result: Some("x".repeat((16 << 20) + 1)), ..good() };
    store.close(head.id, outcome).await.unwrap();
    assert_eq!(store.call(head.id).await.unwrap().unwrap().outcome, Some(good()));
}

#[tokio::test]
async fn extreme_numbers_are_taken() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let mut head = head();
    head.started_us = i64::MIN;
    head.turn = u32::MAX;
    let outcome = gantry_store::Outcome {
        latency_us: u64::MAX,
        characters_in: u64::MAX,
        cost_micros: u64::MAX,
        finished_us: i64::MAX,
        ..good()
    };
    store.open_session(crate::fixture::session(head.session, 0)).await.unwrap();
    store.record(whole(&head, outcome.clone())).await.unwrap();
    assert_eq!(store.call(head.id).await.unwrap().unwrap().outcome, Some(outcome));
    assert_eq!(store.stats().lost, 0);
}
