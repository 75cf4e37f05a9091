//! Order, fairness, bounds, giving up, and borrowing from the caller above.

use super::*;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

fn options(concurrent: usize, max_waiting: usize) -> Options {
    Options { name: "q".into(), concurrent, max_waiting, scope: QueueScope::Node }
}

fn queue(concurrent: usize, max_waiting: usize) -> Arc<Queue> {
    Arc::new(Queue::new(options(concurrent, max_waiting)))
}

/// Polls a future once, so that it is in the line before the next statement.
async fn begin<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    poll_fn(|cx| {
        Poll::Ready(match std::pin::Pin::new(&mut *future).poll(cx) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        })
    })
    .await
}

/// Lines up calls of the given sessions and priorities behind a full queue and returns the order they got through.
async fn order(calls: &[(usize, Priority)]) -> Vec<usize> {
    let queue = queue(1, 100);
    let sessions: Vec<_> = (0..10).map(|_| SessionId::generate()).collect();
    let first = queue.admit(sessions[9], Priority::Normal, &Held::default()).await.unwrap();
    let served = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for (n, (session, priority)) in calls.iter().enumerate() {
        let (line, served, session, priority) =
            (Arc::clone(&queue), Arc::clone(&served), sessions[*session], *priority);
        tasks.push(tokio::spawn(async move {
            let slot = line.admit(session, priority, &Held::default()).await.unwrap();
            served.lock().unwrap().push(n);
            drop(slot);
        }));
        while queue.snapshot().depth < n + 1 {
            tokio::task::yield_now().await;
        }
    }
    drop(first);
    for task in tasks {
        task.await.unwrap();
    }
    Arc::try_unwrap(served).unwrap().into_inner().unwrap()
}

#[tokio::test]
async fn cal_6_fifo_within_a_session_and_turns_between_sessions() {
    let n = Priority::Normal;
    assert_eq!(order(&[(0, n), (0, n), (0, n)]).await, [0, 1, 2]);
    assert_eq!(order(&[(0, n), (0, n), (0, n), (1, n), (2, n)]).await, [0, 3, 4, 1, 2]);
}

#[tokio::test]
async fn cal_6_urgent_calls_go_first() {
    use Priority::{High, Low, Normal};
    assert_eq!(order(&[(0, Low), (0, Normal), (1, High), (0, High)]).await, [2, 3, 1, 0]);
}

#[tokio::test]
async fn cal_6_calls_that_come_later_never_overtake_a_turn() {
    let queue = queue(1, 100);
    let (busy, held) = (SessionId::generate(), Held::default());
    let mut slot = queue.admit(busy, Priority::Normal, &held).await.unwrap();
    let mut own: Vec<_> = (0..3).map(|_| Box::pin(queue.admit(busy, Priority::Normal, &held))).collect();
    for call in &mut own {
        assert!(begin(call).await.is_none());
    }
    // Before each turn a call of a new session comes, and an urgent one that goes first.
    for call in &mut own {
        let mut other = Box::pin(queue.admit(SessionId::generate(), Priority::Normal, &held));
        assert!(begin(&mut other).await.is_none());
        let mut urgent = Box::pin(queue.admit(SessionId::generate(), Priority::High, &held));
        assert!(begin(&mut urgent).await.is_none());
        drop(slot);
        drop(urgent.await.unwrap());
        slot = begin(call).await.expect("its turn has come").unwrap();
        assert!(begin(&mut other).await.is_none());
    }
}

#[tokio::test]
async fn cal_6_a_session_whose_calls_gave_up_keeps_its_turn() {
    let queue = queue(1, 100);
    let (first, second, held) = (SessionId::generate(), SessionId::generate(), Held::default());
    let slot = queue.admit(SessionId::generate(), Priority::Normal, &held).await.unwrap();
    let line_up = |session| (0..3).map(move |_| session);
    let mut calls: Vec<_> = line_up(first)
        .chain(line_up(second))
        .map(|session| Box::pin(queue.admit(session, Priority::Normal, &held)))
        .collect();
    for call in &mut calls {
        assert!(begin(call).await.is_none());
    }
    drop(calls.drain(..2));
    drop(slot);
    let turn = begin(&mut calls[0]).await.expect("the call that is left goes first").unwrap();
    drop(turn);
    assert!(begin(&mut calls[1]).await.is_some(), "then the other session");
}

#[tokio::test]
async fn cal_6_waiting_is_bounded_and_giving_up_frees_the_place() {
    let queue = queue(1, 1);
    let session = SessionId::generate();
    let held = Held::default();
    let slot = queue.admit(session, Priority::Normal, &held).await.unwrap();
    {
        let mut waiting = pin!(queue.admit(session, Priority::Normal, &held));
        assert!(begin(&mut waiting).await.is_none());
        let refused = queue.admit(session, Priority::Normal, &held).await.unwrap_err();
        assert_eq!(refused.error().code, ErrorCode::QueueFull);
        assert_eq!(queue.snapshot().depth, 1);
    }
    assert_eq!(queue.snapshot().depth, 0, "the abandoned wait left the line");
    let mut again = pin!(queue.admit(session, Priority::Normal, &held));
    assert!(begin(&mut again).await.is_none());
    drop(slot);
    drop(again.await.unwrap());
    let end = queue.snapshot();
    assert_eq!((end.in_use, end.depth, end.admitted, end.rejected), (0, 0, 2, 1));
}

#[tokio::test]
async fn a_slot_granted_to_a_call_that_gives_up_goes_to_the_next() {
    let queue = queue(1, 10);
    let held = Held::default();
    let slot = queue.admit(SessionId::generate(), Priority::Normal, &held).await.unwrap();
    let mut second = Box::pin(queue.admit(SessionId::generate(), Priority::Normal, &held));
    let mut third = Box::pin(queue.admit(SessionId::generate(), Priority::Normal, &held));
    assert!(begin(&mut second).await.is_none());
    assert!(begin(&mut third).await.is_none());
    drop(slot);
    // The second call has been granted the slot and has not looked yet.
    drop(second);
    drop(third.await.unwrap());
    assert_eq!(queue.snapshot().in_use, 0);
}

#[tokio::test]
async fn cal_7_a_descendant_borrows_the_slot_of_the_call_above_it() {
    let queue = queue(1, 10);
    let session = SessionId::generate();
    let name: Arc<str> = "q".into();
    let parent = queue.admit(session, Priority::Normal, &Held::default()).await.unwrap();
    let below = Held::default().with(&name);
    let child = queue.admit(session, Priority::Normal, &below).await.unwrap();
    let grandchild = queue.admit(session, Priority::Normal, &below.with(&name)).await.unwrap();
    // A sibling has to wait for the child, because there is one slot to borrow.
    let mut sibling = Box::pin(queue.admit(session, Priority::Normal, &below));
    assert!(begin(&mut sibling).await.is_none());
    drop(grandchild);
    assert!(begin(&mut sibling).await.is_none());
    drop(child);
    drop(sibling.await.unwrap());
    drop(parent);
    assert_eq!(queue.snapshot().in_use, 0);
}

#[tokio::test]
async fn many_calls_never_exceed_the_limit_and_all_get_through() {
    let queue = queue(3, 1000);
    let running = Arc::new(AtomicU64::new(0));
    let tasks: Vec<_> = (0..200)
        .map(|n| {
            let (queue, running) = (Arc::clone(&queue), Arc::clone(&running));
            tokio::spawn(async move {
                let held = Held::default();
                let mut admit = Box::pin(queue.admit(SessionId::generate(), Priority::Normal, &held));
                if n % 7 == 0 {
                    // Give up at once, whether the slot was granted or not.
                    drop(begin(&mut admit).await);
                    return;
                }
                let Ok(_slot) = admit.await else { return };
                assert!(running.fetch_add(1, Ordering::SeqCst) < 3);
                tokio::task::yield_now().await;
                running.fetch_sub(1, Ordering::SeqCst);
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(queue.snapshot().in_use, 0);
    assert_eq!(queue.snapshot().depth, 0);
}

#[tokio::test]
async fn pol_2_a_queue_with_other_bounds_keeps_its_calls_and_never_runs_more_than_both_allow() {
    let options = |concurrent, max_waiting| vec![options(concurrent, max_waiting)];
    let queues = Queues::new(options(1, 10));
    let (held, session) = (Held::default(), SessionId::generate());
    let slot = queues.get("q").unwrap().admit(session, Priority::Normal, &held).await.unwrap();
    let queues = queues.changed(options(1, 20));
    let queue = Arc::clone(queues.get("q").unwrap());
    let mut second = pin!(queue.admit(session, Priority::Normal, &held));
    let mut third = pin!(queue.admit(session, Priority::Normal, &held));
    assert!(begin(&mut second).await.is_none(), "one runs, also after other changes");
    assert!(begin(&mut third).await.is_none());

    let queues = queues.changed(options(2, 20));
    let second = begin(&mut second).await.expect("there is room for two now").unwrap();
    assert!(begin(&mut third).await.is_none());
    let queues = queues.changed(options(1, 20));
    drop(slot);
    assert!(begin(&mut third).await.is_none(), "one runs already, and one may");
    drop(second);
    drop(begin(&mut third).await.expect("its turn has come").unwrap());
    let now = queues.snapshot();
    assert_eq!((now[0].in_use, now[0].depth, now[0].concurrent), (0, 0, 1));
}
