//! Many at once, and many in a row: one decision stands, and an approval and its call never disagree.

use crate::fixture::{Fixture, LIMITS, approved, bring, good, held, hold, over, settle};
use gantry_core::id::{ApprovalId, CallId};
use gantry_store::{Error, HoldOutcome, IntentOutcome, NewApproval, State, Store};
use proptest::prelude::*;
use std::collections::HashSet;
use std::sync::Arc;
use tokio::sync::Barrier;

/// The states that the ledger says a call went through.
fn ledger_states(fixture: &Fixture, call: CallId) -> Vec<State> {
    let conn = fixture.tables();
    let mut query = conn.prepare("SELECT state FROM ledger WHERE call = ?1 ORDER BY seq").unwrap();
    let words = query.query_map([call.as_bytes()], |row| row.get::<_, String>(0)).unwrap();
    words.map(|word| State::parse(&word.unwrap()).unwrap()).collect()
}

fn check_path(path: &[State]) {
    for pair in path.windows(2) {
        assert!(pair[0].may_become(pair[1]), "{path:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn of_many_who_decide_at_once_one_wins() {
    let fixture = Fixture::new();
    // Two stores, so that the race also runs between processes' writers and not only inside one channel.
    let stores = [fixture.open(), fixture.open()];
    const STEPS: [State; 4] =
        [State::ApprovedReady, State::RejectedByUser, State::RejectedByTimeout, State::CancelledBySystem];
    let mut outcomes = HashSet::new();
    for round in 0..60 {
        let id = hold(&stores[0], held(&round.to_string())).await;
        let barrier = Arc::new(Barrier::new(8));
        let racers: Vec<_> = (0..8)
            .map(|n| {
                let (store, barrier) = (stores[n % 2].clone(), Arc::clone(&barrier));
                tokio::spawn(async move {
                    barrier.wait().await;
                    let to = STEPS[(n / 2 + round) % 4];
                    (to, settle(&store, id.id, to).await)
                })
            })
            .collect();
        let (mut won, mut lost) = (Vec::new(), Vec::new());
        for racer in racers {
            match racer.await.unwrap() {
                (to, Ok(row)) => {
                    assert_eq!(row.state, to);
                    won.push(to);
                }
                (_, Err(row)) => lost.push(row.state),
            }
        }
        let path = ledger_states(&fixture, id.call);
        check_path(&path);
        // What was approved may still be withdrawn; nothing else follows a decision.
        won.sort_by_key(|state| *state == State::CancelledBySystem);
        assert_eq!(path[1..], won, "the ledger says who won");
        assert!(won.len() == 1 || won == [State::ApprovedReady, State::CancelledBySystem], "{won:?}");
        assert!(
            lost.iter().all(|state| path[1..].contains(state)),
            "a loser was told something else: {lost:?}"
        );
        let row = stores[0].approval(id.id).await.unwrap().unwrap();
        assert_eq!(Some(&row.state), path.last());
        outcomes.insert(row.state);
    }
    assert!(outcomes.len() > 1, "every race ended alike: {outcomes:?}");
    assert_eq!(stores[0].verify().await.unwrap().bad, None);
}

/// Withdraws or redeems what was approved, and says whether that went well.
async fn take_part(store: &Store, new: &NewApproval, withdraws: bool) -> bool {
    if withdraws {
        return settle(store, new.row.id, State::CancelledBySystem).await.is_ok();
    }
    match store.intend(approved(new)).await {
        Ok(IntentOutcome::Recorded) => true,
        Err(Error::Taken { .. }) => false,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn of_many_who_redeem_or_withdraw_at_once_one_wins() {
    let fixture = Fixture::new();
    let stores = [fixture.open(), fixture.open()];
    for round in 0..40 {
        let new = bring(&stores[0], State::ApprovedReady).await;
        let barrier = Arc::new(Barrier::new(8));
        let racers: Vec<_> = (0..8)
            .map(|n| {
                let (store, barrier, new) = (stores[n % 2].clone(), Arc::clone(&barrier), new.clone());
                let withdraws = (n + round) % 8 < 2;
                tokio::spawn(async move {
                    barrier.wait().await;
                    take_part(&store, &new, withdraws).await
                })
            })
            .collect();
        let mut n_won = 0;
        for racer in racers {
            n_won += usize::from(racer.await.unwrap());
        }
        assert_eq!(n_won, 1, "round {round}");
        assert_eq!(ledger_states(&fixture, new.head.id).len(), 3);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn a_hundred_equal_requests_at_once_are_one() {
    let fixture = Fixture::new();
    let stores = [fixture.open(), fixture.open()];
    let requests: Vec<_> = (0..100)
        .map(|n| {
            let store = stores[n % 2].clone();
            tokio::spawn(async move { store.hold(held("same"), LIMITS).await.unwrap() })
        })
        .collect();
    let (mut fresh, mut ids) = (0, HashSet::new());
    for request in requests {
        match request.await.unwrap() {
            HoldOutcome::Held(row) => {
                fresh += 1;
                ids.insert(row.id);
            }
            HoldOutcome::Joined(row) => {
                ids.insert(row.id);
            }
        }
    }
    assert_eq!((fresh, ids.len()), (1, 1));
    assert_eq!(stores[0].verify().await.unwrap().entries, 1);
}

/// Something that may be tried with one of the calls.
#[derive(Debug, Clone, Copy)]
enum Move {
    Settle(State),
    Intend,
    IntendPlain,
    Close(State),
    Supersede,
    Collect,
    Restart,
}

fn moves() -> impl Strategy<Value = Move> {
    let state = || proptest::sample::select(State::ALL);
    prop_oneof![
        6 => state().prop_map(Move::Settle),
        4 => Just(Move::Intend),
        1 => Just(Move::IntendPlain),
        3 => state().prop_map(Move::Close),
        2 => Just(Move::Supersede),
        1 => Just(Move::Collect),
        1 => Just(Move::Restart),
    ]
}

/// A call, its approvals, the newest last, and the state that it must be in.
struct Line {
    new: NewApproval,
    past: Vec<ApprovalId>,
    state: State,
}

impl Line {
    async fn try_move(&mut self, store: &Store, next: Move) {
        let (before, id) = (self.state, self.new.row.id);
        match next {
            Move::Settle(to) => {
                if settle(store, id, to).await.is_ok() {
                    assert!(before.may_become(to) && to != State::Executing && to != State::PendingApproval);
                    self.state = to;
                }
            }
            Move::Intend => {
                let ready = matches!(before, State::ApprovedReady | State::ScheduledForExecution);
                assert_eq!(store.intend(approved(&self.new)).await.is_ok(), ready);
                if ready {
                    self.state = State::Executing;
                }
                for past in &self.past {
                    let intent = gantry_store::Intent { approval: Some(*past), ..approved(&self.new) };
                    assert!(store.intend(intent).await.is_err(), "an old approval was used");
                }
            }
            Move::IntendPlain => {
                let intent = gantry_store::Intent { approval: None, ..approved(&self.new) };
                assert!(store.intend(intent).await.is_err());
            }
            Move::Close(to) => {
                if store.close(self.new.head.id, over(to)).await.is_ok() {
                    self.state = store.approval(id).await.unwrap().unwrap().state;
                    assert!(before.may_become(self.state), "{before} closed as {to} is {}", self.state);
                }
            }
            Move::Supersede => {
                let mut again = held(&ApprovalId::generate().to_string());
                again.head.id = self.new.head.id;
                again.row.supersedes = Some(id);
                if store.hold(again.clone(), LIMITS).await.is_ok() {
                    assert!(matches!(before, State::ApprovedReady | State::ScheduledForExecution));
                    self.past.push(id);
                    (self.new, self.state) = (again, State::PendingApproval);
                }
            }
            Move::Collect => {
                let uncollected = !store.approval(id).await.unwrap().unwrap().delivered;
                assert_eq!(store.mark_delivered(id).await.unwrap(), uncollected && before.is_over());
            }
            Move::Restart => unreachable!("it is done to all lines at once"),
        }
    }

    async fn check(&self, store: &Store, fixture: &Fixture) {
        let row = store.approval_of(self.new.head.id).await.unwrap().unwrap();
        assert_eq!((row.id, row.state), (self.new.row.id, self.state));
        let path = ledger_states(fixture, row.call);
        assert_eq!(path.last(), Some(&row.state));
        check_path(&path);
        assert_eq!(row.state.is_over(), row.ended_us.is_some());
        for past in &self.past {
            let past = store.approval(*past).await.unwrap().unwrap();
            assert_eq!((past.state, past.call), (State::CancelledBySystem, row.call));
        }
    }
}

async fn play(history: Vec<(usize, Move)>) {
    let fixture = Fixture::new();
    let mut store = fixture.open();
    let mut lines = Vec::new();
    for n in 0..3 {
        let new = held(&n.to_string());
        hold(&store, new.clone()).await;
        lines.push(Line { new, past: Vec::new(), state: State::PendingApproval });
    }
    for (line, next) in history {
        if matches!(next, Move::Restart) {
            store.shutdown().await.unwrap();
            store = fixture.open();
            for line in lines.iter_mut().filter(|line| line.state == State::Executing) {
                line.state = State::OutcomeUnknown;
            }
        } else {
            lines[line].try_move(&store, next).await;
        }
        for line in &lines {
            line.check(&store, &fixture).await;
        }
    }
    assert_eq!(store.verify().await.unwrap().bad, None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_approval_and_its_call_go_the_same_legal_way(history in prop::collection::vec((0..3_usize, moves()), 1..40)) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(play(history));
    }
}

#[tokio::test]
async fn an_unknown_outcome_that_is_settled_later_is_the_approvals_too() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let new = bring(&store, State::OutcomeUnknown).await;
    store.close(new.head.id, good()).await.unwrap();
    assert_eq!(store.approval(new.row.id).await.unwrap().unwrap().state, State::CompletedSuccess);
}
