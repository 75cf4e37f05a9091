//! Approvals: what is held, joined, decided, redeemed and ended, and what is refused.

use crate::fixture::{
    Fixture, LIMITS, START_US, approved, bring, good, head, held, hold, intent, joined, over, settle,
    standing, step, whole,
};
use gantry_core::digest::Digest;
use gantry_core::id::{ApprovalId, CallId};
use gantry_store::{
    ApprovalRow, CallFilter, Error, HeldAs, HoldLimits, Intended, NewApproval, Outcome, RefusedDecision,
    State,
};

/// The states that an approval can be in.
fn states() -> impl Iterator<Item = State> {
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
    assert_eq!(row, ApprovalRow { seq: row.seq, node: store.node(), ..new.row.clone() });
    assert_eq!(store.approval(row.id).await.unwrap(), Some(row.clone()));
    assert_eq!(store.approval_of(row.call).await.unwrap(), Some(row.clone()));

    let call = store.call(row.call).await.unwrap().unwrap();
    assert_eq!((call.state, call.outcome, call.head), (State::PendingApproval, None, new.head));
    let listed =
        store.calls(CallFilter { state: Some(State::PendingApproval), ..CallFilter::default() }).await;
    assert_eq!(listed.unwrap().items.len(), 1);
    let of_session = store.calls_of_session(row.session, None, 0).await.unwrap().items;
    assert_eq!(of_session.iter().map(|call| call.head.id).collect::<Vec<_>>(), [row.call]);
    assert_eq!(store.verify().await.unwrap().bad, None);
}

#[tokio::test]
async fn what_the_row_has_in_common_with_the_call_is_the_calls() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let mut new = held("a");
    new.row.project = "other".into();
    new.row.call = CallId::mint();
    new.row.collected = true;
    let row = hold(&store, new.clone()).await;
    assert_eq!((row.call, &*row.project, row.collected), (new.head.id, "default", false));
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
            assert!(matches!(redeemed, Ok(Intended::Fresh)), "{from}");
            assert_eq!((after.state, after.attempts, after.node), (State::Executing, 1, store.node()));
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
    let unknown = gantry_store::Intent { approval: Some(ApprovalId::mint()), ..intent(&one.head) };
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
async fn a_call_that_ended_unrun_says_so_in_words_that_are_told_apart() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let session = crate::fixture::session(head().session, 0);
    store.open_session(session.clone()).await.unwrap();
    let cases = [
        (State::RejectedByUser, "REJECTED_BY_USER", "ann said no: because"),
        (State::RejectedByTimeout, "REJECTED_BY_TIMEOUT", "nobody decided in time"),
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
    let told = gantry_store::Settled {
        message: Some("the client went away".into()),
        ..step(State::CancelledBySystem)
    };
    let row = store.settle(new.row.id, told).await.unwrap().unwrap();
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
    let row = store.settle(new.row.id, yes).await.unwrap().unwrap();
    assert_eq!((&row.decision, row.deadline_us), (&decided, Some(*START_US + 9_000_000)));
    // A later step without a decision leaves the decision that was made.
    let row = settle(&store, new.row.id, State::CancelledBySystem).await.unwrap();
    assert_eq!(row.decision, decided);

    let conn = rusqlite::Connection::open(fixture.path()).unwrap();
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
    let id = ApprovalId::mint();
    let settled = store.settle(id, step(State::ApprovedReady)).await;
    assert!(matches!(settled, Err(Error::UnknownApproval { approval }) if approval == id));
    assert!(!store.collect(id).await.unwrap());
    store.announced(id).await.unwrap();
    assert_eq!(store.approval(id).await.unwrap(), None);
    assert_eq!(store.approval_of(CallId::mint()).await.unwrap(), None);

    let new = bring(&store, State::PendingApproval).await;
    let mut endless = step(State::RejectedByUser);
    endless.decision.as_mut().unwrap().reason = Some("x".repeat((16 << 10) + 1).into());
    assert!(matches!(store.settle(new.row.id, endless).await, Err(Error::TooLarge { .. })));
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
            assert!(matches!(held, Ok(HeldAs::Fresh(_))), "{state}");
        } else {
            assert!(matches!(held, Err(Error::Taken { .. })), "{state}");
        }
    }
    let mut new = held("recorded");
    store.record(whole(&new.head, good())).await.unwrap();
    assert!(matches!(store.hold(new.clone(), LIMITS).await, Err(Error::Taken { .. })));
    new.head.id = CallId::mint();
    hold(&store, new.clone()).await;
    // Another request under an id that is in use harms nobody else's.
    let mut again = held("another");
    again.row.id = new.row.id;
    let (twice, fine) = tokio::join!(store.hold(again, LIMITS), store.hold(held("fine"), LIMITS));
    assert!(matches!(twice, Err(Error::Taken { .. })), "{twice:?}");
    assert!(matches!(fine, Ok(HeldAs::Fresh(_))));
}

#[tokio::test]
async fn the_same_request_joins_the_one_that_waits_or_runs() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let first = held("a");
    let id = hold(&store, first.clone()).await.id;
    let entries = store.verify().await.unwrap().entries;
    assert_eq!(joined(&store, held("a")).await.id, id);
    // The very same call is that request, too: its holder was not told and asks again.
    assert_eq!(joined(&store, first.clone()).await.id, id);
    assert_eq!(
        store.verify().await.unwrap().entries,
        entries,
        "something was recorded for the one that joined"
    );
    hold(&store, held("b")).await;

    settle(&store, id, State::ApprovedReady).await.unwrap();
    assert_eq!(joined(&store, held("a")).await.state, State::ApprovedReady);
    assert!(!store.collect(id).await.unwrap(), "there is nothing to collect yet");
    store.intend(approved(&first)).await.unwrap();
    assert_eq!(joined(&store, held("a")).await.state, State::Executing);
}

#[tokio::test]
async fn an_outcome_that_nobody_was_given_is_joined_for_an_hour() {
    let fixture = Fixture::new();
    let store = fixture.open();
    for state in states().filter(|state| state.is_over()) {
        let new = bring(&store, state).await;
        let ended_us = standing(&store, new.row.id).await.ended_us.unwrap();
        let again = |after_us: i64| {
            let mut again = held("");
            again.row.sameness = new.row.sameness;
            again.row.created_us = ended_us + after_us;
            again
        };
        assert_eq!(joined(&store, again(0)).await.id, new.row.id, "{state}");
        assert_eq!(joined(&store, again(HOUR_US - 1)).await.id, new.row.id, "{state}");
        let late = hold(&store, again(HOUR_US)).await;
        settle(&store, late.id, State::CancelledBySystem).await.unwrap();
        assert!(store.collect(late.id).await.unwrap());

        assert_eq!(joined(&store, again(1)).await.id, new.row.id, "{state}");
        assert!(store.collect(new.row.id).await.unwrap());
        assert!(!store.collect(new.row.id).await.unwrap(), "only one caller is the first");
        assert!(standing(&store, new.row.id).await.collected);
        hold(&store, again(1)).await;
    }
}

#[tokio::test]
async fn one_that_goes_on_is_joined_before_one_that_ended() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let old = bring(&store, State::RejectedByUser).await;
    let mut late = held("");
    (late.row.sameness, late.row.created_us) = (old.row.sameness, *START_US + 2_000_000 + HOUR_US);
    let waits = hold(&store, late).await.id;
    // By the clock of this caller, both could be joined.
    let again = |mut new: NewApproval| {
        new.row.sameness = old.row.sameness;
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
        new.row.sameness = Digest::of(new.row.id.to_string().as_bytes());
        // Limits are for what is new; this call was let in before.
        let answer = store.hold(new.clone(), HoldLimits { per_caller: 0, total: 0 }).await;
        if !matches!(state, State::ApprovedReady | State::ScheduledForExecution) {
            assert!(matches!(answer, Err(Error::Taken { state: found, .. }) if found == state), "{answer:?}");
            assert_eq!(standing(&store, old.row.id).await, before);
            continue;
        }
        assert!(matches!(answer, Ok(HeldAs::Fresh(row)) if row.call == old.head.id));
        let gone = store.approval(old.row.id).await.unwrap().unwrap();
        assert_eq!((gone.state, gone.ended_us), (State::CancelledBySystem, Some(new.row.created_us)));
        assert!(gone.message.unwrap().contains(&new.row.id.to_string()));
        assert_eq!(standing(&store, new.row.id).await.state, State::PendingApproval);
        assert_eq!(store.approval_of(old.head.id).await.unwrap().unwrap().id, new.row.id);

        let mut same = held("");
        same.row.sameness = old.row.sameness;
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
    unknown.row.supersedes = Some(ApprovalId::mint());
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
        let HeldAs::Fresh(row) = store.hold(of(None, n), limits).await.unwrap() else { panic!() };
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
    assert!(matches!(store.hold(of(Some("a"), 1), limits).await.unwrap(), HeldAs::Joined(_)));
    // Approved calls wait, too, until they begin; those that are over do not.
    settle(&store, first.unwrap(), State::ApprovedReady).await.unwrap();
    assert!(store.hold(of(Some("a"), 2), limits).await.is_err());
    settle(&store, first.unwrap(), State::CancelledBySystem).await.unwrap();
    assert!(matches!(store.hold(of(Some("a"), 2), limits).await.unwrap(), HeldAs::Fresh(_)));
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
    let holder = store.node();
    store.shutdown().await.unwrap();
    let (store, recovery) = fixture.open_with_recovery();
    assert_eq!((recovery.unknown.len(), recovery.orphaned.len()), (0, 0));
    for row in rows {
        assert_eq!(standing(&store, row.id).await, row);
        assert_eq!(row.node, holder);
    }
    assert!(matches!(store.approval(ApprovalId::mint()).await, Ok(None)));
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
    // What happens to it next happens as if nobody had tried.
    settle(&store, row.id, State::RejectedByUser).await.unwrap();
    let call = store.call(row.call).await.unwrap().unwrap();
    assert_eq!((call.state, call.refused.len()), (State::RejectedByUser, 100));
    store.refuse(refused(1)).await.unwrap();
    assert_eq!(store.call(row.call).await.unwrap().unwrap().state, State::RejectedByUser);
    assert_eq!(store.verify().await.unwrap().bad, None);
    let nowhere = RefusedDecision { approval: ApprovalId::mint(), ..refused(0) };
    assert!(matches!(store.refuse(nowhere).await, Err(Error::UnknownApproval { .. })));
}
