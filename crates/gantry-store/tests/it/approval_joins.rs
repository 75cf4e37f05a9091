//! Requests that meet others: the same one again, one about what has changed, and more than may wait.

use crate::approvals::{HOUR_US, states};
use crate::fixture::{
    Fixture, LIMITS, START_US, approved, bring, good, held, hold, joined, settle, standing,
};
use gantry_core::digest::Digest;
use gantry_core::id::ApprovalId;
use gantry_store::{CallFilter, Error, HoldLimits, HoldOutcome, NewApproval, State};

#[tokio::test]
async fn the_same_request_joins_the_one_that_waits_or_runs() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let first = held("a");
    let id = hold(&store, first.clone()).await.id;
    let entries = store.verify().await.unwrap().entries;
    assert_eq!(joined(&store, held("a")).await.id, id);
    // The very same call is that request, too: its holder got no answer and asks again.
    assert_eq!(joined(&store, first.clone()).await.id, id);
    assert_eq!(
        store.verify().await.unwrap().entries,
        entries,
        "something was recorded for the one that joined"
    );
    hold(&store, held("b")).await;

    settle(&store, id, State::ApprovedReady).await.unwrap();
    assert_eq!(joined(&store, held("a")).await.state, State::ApprovedReady);
    assert!(!store.mark_delivered(id).await.unwrap(), "there is nothing to collect yet");
    store.intend(approved(&first)).await.unwrap();
    assert_eq!(joined(&store, held("a")).await.state, State::Executing);
}

#[tokio::test]
async fn an_outcome_that_was_not_delivered_is_joined_for_an_hour() {
    let fixture = Fixture::new();
    let store = fixture.open();
    for state in states().filter(|state| state.is_over()) {
        let new = bring(&store, state).await;
        let ended_us = standing(&store, new.row.id).await.ended_us.unwrap();
        let again = |after_us: i64| {
            let mut again = held("");
            again.row.request_key = new.row.request_key;
            again.row.created_us = ended_us + after_us;
            again
        };
        assert_eq!(joined(&store, again(0)).await.id, new.row.id, "{state}");
        assert_eq!(joined(&store, again(HOUR_US - 1)).await.id, new.row.id, "{state}");
        let late = hold(&store, again(HOUR_US)).await;
        settle(&store, late.id, State::CancelledBySystem).await.unwrap();
        assert!(store.mark_delivered(late.id).await.unwrap());

        assert_eq!(joined(&store, again(1)).await.id, new.row.id, "{state}");
        assert!(store.mark_delivered(new.row.id).await.unwrap());
        assert!(!store.mark_delivered(new.row.id).await.unwrap(), "only one caller is the first");
        assert!(standing(&store, new.row.id).await.delivered);
        hold(&store, again(1)).await;
    }
}

#[tokio::test]
async fn one_that_goes_on_is_joined_before_one_that_ended() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let old = bring(&store, State::RejectedByUser).await;
    let mut late = held("");
    (late.row.request_key, late.row.created_us) = (old.row.request_key, *START_US + 2_000_000 + HOUR_US);
    let waits = hold(&store, late).await.id;
    // By the clock of this caller, both could be joined.
    let again = |mut new: NewApproval| {
        new.row.request_key = old.row.request_key;
        new
    };
    assert_eq!(joined(&store, again(held(""))).await.id, waits);
}

#[tokio::test]
async fn what_changed_after_its_approval_is_asked_about_again_under_the_same_call() {
    let fixture = Fixture::new();
    let store = fixture.open();
    for state in states() {
        let old = bring(&store, state).await;
        let before = standing(&store, old.row.id).await;
        let mut new = held("");
        new.head.id = old.head.id;
        new.row.supersedes = Some(old.row.id);
        new.row.request_key = Digest::of(new.row.id.to_string().as_bytes());
        // Limits are for what is new; this call was let in before.
        let answer = store.hold(new.clone(), HoldLimits { per_caller: 0, total: 0 }).await;
        if !matches!(state, State::ApprovedReady | State::ScheduledForExecution) {
            assert!(matches!(answer, Err(Error::Taken { state: found, .. }) if found == state), "{answer:?}");
            assert_eq!(standing(&store, old.row.id).await, before);
            continue;
        }
        assert!(matches!(answer, Ok(HoldOutcome::Held(row)) if row.call == old.head.id));
        let gone = store.approval(old.row.id).await.unwrap().unwrap();
        assert_eq!((gone.state, gone.ended_us), (State::CancelledBySystem, Some(new.row.created_us)));
        assert!(gone.message.unwrap().contains(&new.row.id.to_string()));
        assert_eq!(standing(&store, new.row.id).await.state, State::PendingApproval);
        assert_eq!(store.approval_of(old.head.id).await.unwrap().unwrap().id, new.row.id);

        let mut same = held("");
        same.row.request_key = old.row.request_key;
        hold(&store, same).await;
        assert!(
            matches!(store.intend(approved(&old)).await, Err(Error::Taken { .. })),
            "the old yes was used"
        );
        assert!(
            matches!(store.hold(new.clone(), LIMITS).await, Err(Error::Taken { .. })),
            "it was superseded twice"
        );
        settle(&store, new.row.id, State::ApprovedReady).await.unwrap();
        store.intend(approved(&new)).await.unwrap();
        store.close(new.head.id, good()).await.unwrap();
        let calls =
            store.calls(CallFilter { state: Some(State::CompletedSuccess), ..CallFilter::default() }).await;
        assert!(calls.unwrap().items.iter().any(|call| call.head.id == old.head.id));
    }
    assert_eq!(store.verify().await.unwrap().bad, None);
}

#[tokio::test]
async fn an_approval_is_superseded_only_by_a_question_about_its_own_call() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let old = bring(&store, State::ApprovedReady).await;
    let mut other = held("");
    other.row.supersedes = Some(old.row.id);
    assert!(matches!(store.hold(other, LIMITS).await, Err(Error::Taken { .. })));
    let mut scheduled = held("");
    scheduled.head.id = old.head.id;
    scheduled.row.supersedes = Some(old.row.id);
    scheduled.row.state = State::ScheduledForExecution;
    assert!(matches!(store.hold(scheduled, LIMITS).await, Err(Error::Taken { .. })));
    let mut unknown = held("");
    unknown.row.supersedes = Some(ApprovalId::generate());
    assert!(matches!(store.hold(unknown, LIMITS).await, Err(Error::UnknownApproval { .. })));
    assert_eq!(standing(&store, old.row.id).await.state, State::ApprovedReady);
}

#[tokio::test]
async fn no_more_calls_wait_than_may() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let limits = HoldLimits { per_caller: 3, total: 5 };
    let of = |agent: Option<&str>, n: usize| {
        let mut new = held(&format!("{agent:?} {n}"));
        new.head.caller.agent = agent.map(Into::into);
        new
    };
    let mut first = None;
    for n in 0..3 {
        let HoldOutcome::Held(row) = store.hold(of(None, n), limits).await.unwrap() else { panic!() };
        first.get_or_insert(row.id);
    }
    let refused = store.hold(of(None, 3), limits).await;
    assert!(matches!(refused, Err(Error::TooManyHeld { limit: 3, what: "of this caller" })), "{refused:?}");
    for n in 0..2 {
        store.hold(of(Some("a"), n), limits).await.unwrap();
    }
    let refused = store.hold(of(Some("a"), 2), limits).await;
    assert!(matches!(refused, Err(Error::TooManyHeld { limit: 5, what: "of all callers" })), "{refused:?}");
    // What joins does not wait for itself.
    assert!(matches!(store.hold(of(Some("a"), 1), limits).await.unwrap(), HoldOutcome::Joined(_)));
    // Approved calls wait, too, until they begin; those that are over do not.
    settle(&store, first.unwrap(), State::ApprovedReady).await.unwrap();
    assert!(store.hold(of(Some("a"), 2), limits).await.is_err());
    settle(&store, first.unwrap(), State::CancelledBySystem).await.unwrap();
    assert!(matches!(store.hold(of(Some("a"), 2), limits).await.unwrap(), HoldOutcome::Held(_)));
}
