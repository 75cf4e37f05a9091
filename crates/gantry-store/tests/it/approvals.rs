//! Approvals: what is held, joined, decided, redeemed and ended, and what is refused.

use crate::fixture::{
    Fixture, LIMITS, START_US, approved, bring, good, head, held, hold, intent, over, settle, standing, step,
    whole,
};
use gantry_core::id::{ApprovalId, CallId};
use gantry_store::{
    ApprovalRow, CallFilter, Error, HoldOutcome, IntentOutcome, Outcome, RefusedDecision, State, WebhookSent,
};

/// The states that an approval can be in.
pub(crate) fn states() -> impl Iterator<Item = State> {
    State::ALL.iter().copied().filter(|state| *state != State::Refused)
}

/// The states that `settle` may bring about.
const STEPS: [State; 5] = [
    State::ApprovedReady,
    State::ScheduledForExecution,
    State::RejectedByUser,
    State::RejectedByTimeout,
    State::CancelledBySystem,
];

pub(crate) const HOUR_US: i64 = 3600 * 1_000_000;

#[tokio::test]
async fn a_held_call_is_read_as_it_was_held_and_is_in_the_ledger() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let new = held("a");
    let row = hold(&store, new.clone()).await;
    assert_eq!(row, ApprovalRow { process: store.process(), ..new.row.clone() });
    assert_eq!(store.approval(row.id).await.unwrap(), Some(row.clone()));
    assert_eq!(store.approval_of(row.call).await.unwrap(), Some(row.clone()));

    let call = store.call(row.call).await.unwrap().unwrap();
    assert_eq!((call.state, call.outcome, call.head), (State::PendingApproval, None, new.head));
    let listed =
        store.calls(CallFilter { state: Some(State::PendingApproval), ..CallFilter::default() }).await;
    assert_eq!(listed.unwrap().items.len(), 1);
    let of_session = store.calls_of_session(row.session, 0).await.unwrap().items;
    assert_eq!(of_session.iter().map(|call| call.head.id).collect::<Vec<_>>(), [row.call]);
    assert_eq!(store.verify().await.unwrap().bad, None);
}

#[tokio::test]
async fn what_the_row_has_in_common_with_the_call_is_the_calls() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let mut new = held("a");
    new.row.project = "other".into();
    new.row.call = CallId::generate();
    new.row.delivered = true;
    let row = hold(&store, new.clone()).await;
    assert_eq!((row.call, &*row.project, row.delivered), (new.head.id, "default", false));
}

#[tokio::test]
async fn every_step_of_a_decision_is_taken_exactly_when_it_is_legal() {
    let fixture = Fixture::new();
    let store = fixture.open();
    for from in states() {
        for to in State::ALL.iter().copied() {
            let new = bring(&store, from).await;
            let before = standing(&store, new.row.id).await;
            assert_eq!(before.state, from);
            let answer = settle(&store, new.row.id, to).await;
            let after = standing(&store, new.row.id).await;
            if STEPS.contains(&to) && from.may_become(to) {
                assert_eq!((answer.unwrap(), after.state), (after.clone(), to), "{from} to {to}");
            } else {
                assert_eq!((answer.unwrap_err(), &after), (before.clone(), &before), "{from} to {to}");
            }
        }
    }
    assert_eq!(store.verify().await.unwrap().bad, None);
}

#[tokio::test]
async fn a_call_begins_only_under_an_approval_that_lets_it() {
    let fixture = Fixture::new();
    let store = fixture.open();
    for from in states() {
        let new = bring(&store, from).await;
        let before = standing(&store, new.row.id).await;
        let plain = store.intend(intent(&new.head)).await;
        assert!(matches!(plain, Err(Error::Taken { state, .. }) if state == from), "{from}: {plain:?}");

        let redeemed = store.intend(approved(&new)).await;
        let after = standing(&store, new.row.id).await;
        if matches!(from, State::ApprovedReady | State::ScheduledForExecution) {
            assert!(matches!(redeemed, Ok(IntentOutcome::Recorded)), "{from}");
            assert_eq!((after.state, after.attempts, after.process), (State::Executing, 1, store.process()));
            let again = store.intend(approved(&new)).await;
            assert!(matches!(again, Err(Error::Taken { state: State::Executing, .. })), "it was used twice");
        } else {
            assert!(matches!(redeemed, Err(Error::Taken { state, .. }) if state == from), "{from}");
            assert_eq!(after, before);
        }
    }
}

#[tokio::test]
async fn an_approval_lets_no_other_call_run() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let (one, other) =
        (bring(&store, State::ApprovedReady).await, bring(&store, State::PendingApproval).await);
    for head in [&other.head, &head()] {
        let swapped = gantry_store::Intent { approval: Some(one.row.id), ..intent(head) };
        assert!(matches!(store.intend(swapped).await, Err(Error::Taken { .. })));
    }
    let unknown = gantry_store::Intent { approval: Some(ApprovalId::generate()), ..intent(&one.head) };
    assert!(matches!(store.intend(unknown).await, Err(Error::UnknownApproval { .. })));
    assert_eq!(standing(&store, one.row.id).await.state, State::ApprovedReady);
}

/// The state in which a call ends that was in the one and is closed with the other.
fn end(from: State, to: State) -> Option<State> {
    let unrun = matches!(to, State::Refused | State::CompletedFailure | State::CancelledBySystem);
    if matches!(from, State::ApprovedReady | State::ScheduledForExecution) && unrun {
        Some(State::CancelledBySystem)
    } else if from == State::Executing && !from.may_become(to) {
        Some(State::CompletedFailure)
    } else {
        (!from.is_waiting() && from.may_become(to)).then_some(to)
    }
}

#[tokio::test]
async fn every_outcome_ends_an_approval_in_a_state_that_it_can_have() {
    let fixture = Fixture::new();
    let store = fixture.open();
    for from in states() {
        for to in State::ALL.iter().copied().filter(|state| state.is_over()) {
            let new = bring(&store, from).await;
            let before = standing(&store, new.row.id).await;
            let closed = store.close(new.head.id, over(to)).await;
            let Some(expected) = end(from, to) else {
                assert!(matches!(closed, Err(Error::Taken { state, .. }) if state == from), "{from} to {to}");
                assert_eq!(standing(&store, new.row.id).await, before, "{from} to {to}");
                continue;
            };
            closed.unwrap();
            let row = standing(&store, new.row.id).await;
            assert_eq!((row.state, row.ended_us), (expected, Some(over(to).finished_us)), "{from} to {to}");
            let outcome = store.call(new.head.id).await.unwrap().unwrap().outcome.unwrap();
            assert_eq!(outcome, Outcome { state: expected, ..over(to) }, "its code and message are kept");
            assert_eq!(row.message.as_deref(), outcome.message.as_deref());
        }
    }
    assert_eq!(store.verify().await.unwrap().bad, None);
}

#[tokio::test]
async fn attempts_are_counted_by_the_intent_and_by_the_outcome() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let new = bring(&store, State::Executing).await;
    store.close(new.head.id, Outcome { attempts: 3, ..good() }).await.unwrap();
    assert_eq!(standing(&store, new.row.id).await.attempts, 3);
    let new = bring(&store, State::Executing).await;
    store.close(new.head.id, Outcome { attempts: 0, ..good() }).await.unwrap();
    assert_eq!(standing(&store, new.row.id).await.attempts, 1);
}

#[tokio::test]
async fn a_call_that_ended_unrun_says_so_in_distinct_words() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let session = crate::fixture::session(head().session, 0);
    store.open_session(session.clone()).await.unwrap();
    let cases = [
        (State::RejectedByUser, "REJECTED_BY_USER", "ann said no: because"),
        (State::RejectedByTimeout, "REJECTED_BY_TIMEOUT", "no approver decided in time"),
        (State::CancelledBySystem, "CANCELED", "withdrawn"),
    ];
    for (state, code, message) in cases {
        let new = bring(&store, state).await;
        let call = store.call(new.head.id).await.unwrap().unwrap();
        let outcome = call.outcome.unwrap();
        assert_eq!(
            (call.state, outcome.code.as_deref(), &*outcome.effect_state),
            (state, Some(code), "none")
        );
        assert!(outcome.message.as_deref().unwrap().contains(message), "{outcome:?}");
        assert_eq!((outcome.finished_us, outcome.latency_us), (*START_US + 2_000_000, 0));
        let filter = CallFilter { state: Some(state), ..CallFilter::default() };
        assert_eq!(store.calls(filter).await.unwrap().items.len(), 1);
    }
    let new = bring(&store, State::PendingApproval).await;
    let reported = gantry_store::Transition {
        message: Some("the client went away".into()),
        ..step(State::CancelledBySystem)
    };
    let row = store.transition(new.row.id, reported, None).await.unwrap();
    assert_eq!(row.message.as_deref(), Some("the client went away"));
    let outcome = store.call(new.head.id).await.unwrap().unwrap().outcome.unwrap();
    assert_eq!(outcome.message.as_deref(), Some("the client went away"));

    bring(&store, State::ApprovedReady).await;
    let totals = store.session(session.id).await.unwrap().unwrap().totals;
    assert_eq!((totals.calls, totals.failed, totals.refused, totals.unknown), (4, 4, 4, 0));
}

#[tokio::test]
async fn a_decision_is_kept_with_the_row_and_in_the_ledger_without_secrets() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let new = bring(&store, State::PendingApproval).await;
    let mut yes = step(State::ScheduledForExecution);
    let decision = yes.decision.as_mut().unwrap();
    decision.modified_args = Some(r#"{"title":"b","api_key":"hunter3"}"#.into());
    let decided = yes.decision.clone();
    let row = store.transition(new.row.id, yes, None).await.unwrap();
    assert_eq!((&row.decision, row.deadline_us), (&decided, Some(*START_US + 9_000_000)));
    // A later step without a decision leaves the decision that was made.
    let row = settle(&store, new.row.id, State::CancelledBySystem).await.unwrap();
    assert_eq!(row.decision, decided);

    let conn = fixture.tables();
    let bodies: Vec<String> = conn
        .prepare("SELECT body FROM ledger WHERE kind = 'decision' ORDER BY seq")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(bodies.len(), 2);
    for wanted in
        [r#""by":"ann""#, r#""via":"http""#, r#""reason":"because""#, r#"\"title\":\"b\""#, "redacted"]
    {
        assert!(bodies[0].contains(wanted), "{wanted} is not in {}", bodies[0]);
    }
    assert!(!bodies[0].contains("hunter3"));
}

#[tokio::test]
async fn steps_of_approvals_that_are_not_there_are_errors() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let id = ApprovalId::generate();
    let settled = store.transition(id, step(State::ApprovedReady), None).await;
    assert!(matches!(settled, Err(Error::UnknownApproval { approval }) if approval == id));
    assert!(!store.mark_delivered(id).await.unwrap());
    store.mark_sent(id, WebhookSent::All).await.unwrap();
    assert_eq!(store.approval(id).await.unwrap(), None);
    assert_eq!(store.approval_of(CallId::generate()).await.unwrap(), None);

    let new = bring(&store, State::PendingApproval).await;
    let mut endless = step(State::RejectedByUser);
    endless.decision.as_mut().unwrap().reason = Some("x".repeat((16 << 10) + 1).into());
    assert!(matches!(store.transition(new.row.id, endless, None).await, Err(Error::TooLarge { .. })));
}

#[tokio::test]
async fn only_a_call_that_is_new_and_waits_can_be_held() {
    let fixture = Fixture::new();
    let store = fixture.open();
    for state in State::ALL.iter().copied() {
        let mut new = held(state.as_str());
        new.row.state = state;
        let held = store.hold(new, LIMITS).await;
        if matches!(state, State::PendingApproval | State::ScheduledForExecution) {
            assert!(matches!(held, Ok(HoldOutcome::Held(_))), "{state}");
        } else {
            assert!(matches!(held, Err(Error::Taken { .. })), "{state}");
        }
    }
    let mut new = held("recorded");
    store.record(whole(&new.head, good())).await.unwrap();
    assert!(matches!(store.hold(new.clone(), LIMITS).await, Err(Error::Taken { .. })));
    new.head.id = CallId::generate();
    hold(&store, new.clone()).await;
    // Another request under an id that is in use changes no other request.
    let mut again = held("another");
    again.row.id = new.row.id;
    let (twice, fine) = tokio::join!(store.hold(again, LIMITS), store.hold(held("fine"), LIMITS));
    assert!(matches!(twice, Err(Error::Taken { .. })), "{twice:?}");
    assert!(matches!(fine, Ok(HoldOutcome::Held(_))));
}

#[tokio::test]
async fn approvals_survive_a_restart() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let mut rows = Vec::new();
    for state in states().filter(|state| *state != State::Executing) {
        let new = bring(&store, state).await;
        rows.push(store.approval(new.row.id).await.unwrap().unwrap());
    }
    let holder = store.process();
    store.shutdown().await.unwrap();
    let (store, recovery) = fixture.open_with_recovery();
    assert_eq!((recovery.unknown.len(), recovery.orphaned.len()), (0, 0));
    for row in rows {
        assert_eq!(standing(&store, row.id).await, row);
        assert_eq!(row.process, holder);
    }
    assert!(matches!(store.approval(ApprovalId::generate()).await, Ok(None)));
    assert_eq!(store.verify().await.unwrap().bad, None);
}

#[tokio::test]
async fn a_decision_that_is_turned_away_is_on_record_and_changes_nothing() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let row = hold(&store, held("a")).await;
    let refused = |n: i64| RefusedDecision {
        approval: row.id,
        by: "bot".into(),
        via: "http".into(),
        approved: (n > 0).then_some(true),
        why: "an agent cannot decide".into(),
        at_us: n,
    };
    for n in 0..150 {
        store.refuse(refused(n)).await.unwrap();
    }
    let call = store.call(row.call).await.unwrap().unwrap();
    assert_eq!(call.state, State::PendingApproval);
    assert_eq!(call.refused.len(), 100, "more say nothing new");
    assert_eq!((&call.refused[0], &call.refused[99]), (&refused(0), &refused(99)));
    assert_eq!(store.approval(row.id).await.unwrap().unwrap(), row);
    // It goes on as if that had not been tried.
    settle(&store, row.id, State::RejectedByUser).await.unwrap();
    let call = store.call(row.call).await.unwrap().unwrap();
    assert_eq!((call.state, call.refused.len()), (State::RejectedByUser, 100));
    store.refuse(refused(1)).await.unwrap();
    assert_eq!(store.call(row.call).await.unwrap().unwrap().state, State::RejectedByUser);
    assert_eq!(store.verify().await.unwrap().bad, None);
    let nowhere = RefusedDecision { approval: ApprovalId::generate(), ..refused(0) };
    assert!(matches!(store.refuse(nowhere).await, Err(Error::UnknownApproval { .. })));
}
