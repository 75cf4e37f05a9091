//! Held calls in lists: what is due, what is to be reported, what is forgotten, and what is too long to be listed.

use crate::approvals::HOUR_US;
use crate::fixture::{
    Fixture, START_US, approved, bring, good, head, held, hold, joined, over, settle, standing, step, whole,
};
use gantry_core::id::{ApprovalId, ProcessId, SessionId};
use gantry_store::{ApprovalFilter, NewApproval, State, WebhookSent};

/// The states that an approval can be in.

#[tokio::test]
async fn lists_are_filtered_and_come_newest_first_in_pages() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let mut ids = Vec::new();
    for n in 0..12 {
        let mut new = held(&n.to_string());
        new.head.caller.project = ["x", "y", "z"][n % 3].into();
        new.head.caller.principal = ["ann", "bob"][n % 2].into();
        new.head.session = SessionId::from_bytes([u8::try_from(n % 4).unwrap(); 16]);
        new.head.tool.name = ["read", "write"][n / 6].into();
        ids.push(hold(&store, new).await.id);
    }
    settle(&store, ids[11], State::RejectedByUser).await.unwrap();
    let list = async |filter: ApprovalFilter| {
        let page = store.approvals(filter).await.unwrap();
        let places: Vec<_> =
            page.items.iter().map(|row| ids.iter().position(|id| *id == row.id).unwrap()).collect();
        (places, page.next)
    };
    let all = ApprovalFilter::default;
    assert_eq!(list(all()).await.0, (0..12).rev().collect::<Vec<_>>());
    assert_eq!(list(ApprovalFilter { state: Some(State::RejectedByUser), ..all() }).await.0, [11]);
    let projects = |names: &[&str]| Some(names.iter().map(|name| (*name).into()).collect());
    assert_eq!(list(ApprovalFilter { projects: projects(&["y"]), ..all() }).await.0, [10, 7, 4, 1]);
    assert_eq!(list(ApprovalFilter { projects: projects(&[]), ..all() }).await.0, [0; 0]);
    assert_eq!(list(ApprovalFilter { principal: Some("bob".into()), limit: 2, ..all() }).await.0, [11, 9]);
    assert_eq!(list(ApprovalFilter { name: Some("read".into()), limit: 2, ..all() }).await.0, [5, 4]);
    let session = Some(SessionId::from_bytes([2; 16]));
    assert_eq!(list(ApprovalFilter { session, ..all() }).await.0, [10, 6, 2]);
    let call = store.approval(ids[3]).await.unwrap().unwrap().call;
    assert_eq!(list(ApprovalFilter { call: Some(call), ..all() }).await.0, [3]);

    let two = ApprovalFilter {
        state: Some(State::PendingApproval),
        projects: projects(&["z", "x", "x"]),
        limit: 3,
        ..all()
    };
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let (places, next) = list(ApprovalFilter { cursor, ..two.clone() }).await;
        seen.extend(places);
        cursor = next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, [9, 8, 6, 5, 3, 2, 0]);
}

#[tokio::test]
async fn what_is_due_comes_in_its_order_and_what_was_approved_comes_at_once() {
    let fixture = Fixture::new();
    let store = fixture.open();
    assert_eq!(store.next_due().await.unwrap(), None);
    let mut ids = Vec::new();
    for (n, deadline_us) in [Some(300), Some(100), None, Some(200)].into_iter().enumerate() {
        let mut new = held(&n.to_string());
        new.row.deadline_us = deadline_us;
        ids.push(hold(&store, new).await.id);
    }
    assert_eq!(store.next_due().await.unwrap(), Some(100));
    let places = |found: Vec<ApprovalId>| -> Vec<usize> {
        found.iter().map(|id| ids.iter().position(|known| known == id).unwrap()).collect()
    };
    let expired = async |now: i64, limit: u32| {
        let rows = store.expired(now, limit).await.unwrap();
        places(rows.iter().map(|row| row.id).collect())
    };
    assert_eq!((expired(99, 10).await, expired(200, 10).await), (vec![], vec![1, 3]));
    assert_eq!(expired(i64::MAX, 10).await, [1, 3, 0], "what never expires is not due");

    let ready = async |now: i64, limit: u32| {
        let found = store.ready(store.process(), now, None, limit).await.unwrap();
        places(found.iter().map(|ready| ready.id).collect())
    };
    settle(&store, ids[0], State::ScheduledForExecution).await.unwrap();
    assert_eq!(ready(*START_US + 8_999_999, 10).await, [0; 0]);
    assert_eq!(ready(*START_US + 9_000_000, 10).await, [0]);
    settle(&store, ids[2], State::ApprovedReady).await.unwrap();
    assert_eq!(store.next_due().await.unwrap(), Some(0));
    assert_eq!(
        (ready(0, 10).await, ready(i64::MAX, 10).await, ready(i64::MAX, 1).await),
        (vec![2], vec![2, 0], vec![2])
    );
    assert_eq!(expired(i64::MAX, 10).await, [1, 3], "only the pending");

    let mut never = held("scheduled for no time");
    (never.row.state, never.row.deadline_us) = (State::ScheduledForExecution, None);
    let never = hold(&store, never).await.id;
    let found = store.ready(store.process(), 0, None, 10).await.unwrap();
    assert!(found.iter().any(|ready| ready.id == never), "a scheduled call would be lost");
    for id in ids.iter().chain([&never]) {
        settle(&store, *id, State::CancelledBySystem).await.unwrap();
    }
    assert_eq!(store.next_due().await.unwrap(), None);
    assert_eq!((ready(i64::MAX, 10).await, expired(i64::MAX, 10).await), (vec![], vec![]));
}

#[tokio::test]
async fn what_others_are_to_run_hides_nothing_and_is_walked_page_by_page() {
    let fixture = Fixture::new();
    let (store, other) = (fixture.open(), fixture.open());
    for n in 0..5 {
        let id = hold(&other, held(&format!("other {n}"))).await.id;
        settle(&other, id, State::ApprovedReady).await.unwrap();
    }
    let mut own = Vec::new();
    for n in 0..7 {
        let id = hold(&store, held(&format!("own {n}"))).await.id;
        // Who decides is not who runs it.
        settle(&other, id, State::ApprovedReady).await.unwrap();
        own.push(id);
    }
    hold(&store, held("undecided")).await;
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = store.ready(store.process(), 0, after, 3).await.unwrap();
        found.extend(page.iter().map(|ready| ready.id));
        after = page.last().copied();
        if page.len() < 3 {
            break;
        }
    }
    assert_eq!(found, own);
    assert_eq!(store.ready(other.process(), 0, None, 10).await.unwrap().len(), 5);
    let mut holders = vec![store.process(), other.process()];
    holders.sort_unstable_by_key(|node| *node.as_bytes());
    assert_eq!(store.holders().await.unwrap(), holders);
    for id in own {
        settle(&store, id, State::CancelledBySystem).await.unwrap();
    }
    assert_eq!(store.holders().await.unwrap(), [other.process()], "one without a decision is not to be run");
}

#[tokio::test]
async fn what_a_webhook_has_to_take_is_listed_by_project_until_it_has_taken_it() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let mut ids = Vec::new();
    for n in 0..5 {
        let mut new = held(&n.to_string());
        new.row.webhook_sent = if n == 3 { WebhookSent::All } else { WebhookSent::Nothing };
        if n == 4 {
            new.head.caller.project = "another".into();
        }
        ids.push(hold(&store, new).await.id);
    }
    let project = standing(&store, ids[0]).await.project;
    let unsent = async |project: &str, after, limit| -> Vec<_> {
        store.unsent(project.into(), after, limit).await.unwrap().into_iter().map(|row| row.id).collect()
    };
    assert_eq!(unsent(&project, None, 10).await, ids[..3]);
    assert_eq!(unsent(&project, None, 1).await, ids[..1]);
    assert_eq!(unsent(&project, Some(ids[0]), 10).await, ids[1..3]);
    assert_eq!(unsent("another", None, 10).await, ids[4..]);
    store.mark_sent(ids[0], WebhookSent::Request).await.unwrap();
    // A request that ended before it was taken is not sent.
    settle(&store, ids[1], State::RejectedByUser).await.unwrap();
    assert_eq!(unsent(&project, None, 10).await, ids[2..3]);
}

#[tokio::test]
async fn each_step_of_an_approval_is_to_be_sent_in_its_order_and_once() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let mut new = held("a");
    new.row.webhook_sent = WebhookSent::Nothing;
    let row = hold(&store, new.clone()).await;
    // What is to be sent next; the list says the same.
    let next = async || {
        let unsent = store.unsent(row.project.clone(), None, 10).await.unwrap();
        let next = standing(&store, row.id).await.next_webhook_message();
        assert_eq!(unsent.iter().map(|unsent| unsent.id).next(), next.map(|_| row.id));
        next
    };
    assert_eq!(next().await, Some(WebhookSent::Request));
    store.mark_sent(row.id, WebhookSent::Request).await.unwrap();
    assert_eq!(next().await, None);
    settle(&store, row.id, State::ApprovedReady).await.unwrap();
    assert_eq!(next().await, Some(WebhookSent::Decision));
    store.intend(approved(&new)).await.unwrap();
    store.close(row.call, over(State::CompletedSuccess)).await.unwrap();
    assert_eq!(next().await, Some(WebhookSent::Decision), "the end does not hide what came before it");
    store.mark_sent(row.id, WebhookSent::Decision).await.unwrap();
    assert_eq!(next().await, Some(WebhookSent::All));
    store.mark_sent(row.id, WebhookSent::All).await.unwrap();
    store.mark_sent(row.id, WebhookSent::Request).await.unwrap();
    assert_eq!(next().await, None, "what was taken is not sent again");
}

#[tokio::test]
async fn the_version_is_another_after_each_change_of_any_process() {
    let fixture = Fixture::new();
    let (store, other) = (fixture.open(), fixture.open());
    let mut seen = vec![other.version().await.unwrap()];
    let new = held("a");
    hold(&store, new.clone()).await;
    seen.push(other.version().await.unwrap());
    settle(&store, new.row.id, State::ApprovedReady).await.unwrap();
    seen.push(other.version().await.unwrap());
    store.intend(approved(&new)).await.unwrap();
    seen.push(other.version().await.unwrap());
    store.close(new.head.id, over(State::CompletedSuccess)).await.unwrap();
    seen.push(other.version().await.unwrap());
    assert!(seen.is_sorted_by(|a, b| a < b), "{seen:?}");

    // Plain calls, and calls that join a held one, change nothing that a process waits for.
    crate::fixture::begin(&store).await;
    store.record(whole(&head(), good())).await.unwrap();
    joined(&store, held("a")).await;
    store.mark_delivered(ApprovalId::generate()).await.unwrap();
    store.flush().await.unwrap();
    assert_eq!(other.version().await.unwrap(), seen[4]);
    store.mark_delivered(new.row.id).await.unwrap();
    assert_ne!(other.version().await.unwrap(), seen[4]);
}

#[tokio::test]
async fn a_node_lives_while_its_store_is_open() {
    let fixture = Fixture::new();
    let (store, other) = (fixture.open(), fixture.open());
    assert!(store.is_alive(store.process()) && store.is_alive(other.process()));
    let gone = other.process();
    other.shutdown().await.unwrap();
    assert!(!store.is_alive(gone));
    let killed = ProcessId::generate();
    let lock = fixture.folder.path().join(format!("nodes/node_{}.lock", killed.uuid().as_simple()));
    std::fs::write(&lock, "").unwrap();
    assert!(!store.is_alive(killed));
    assert!(lock.exists(), "the next start has to find it");
}

#[tokio::test]
async fn old_approvals_lose_their_secrets_and_then_go() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let (young, old, older, waits) = (
        bring(&store, State::RejectedByUser).await,
        bring(&store, State::RejectedByUser).await,
        bring(&store, State::CompletedSuccess).await,
        bring(&store, State::PendingApproval).await,
    );
    let now = i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_micros()).unwrap();
    let conn = fixture.tables();
    for (new, hours) in [(&young, 23), (&old, 25), (&older, 31 * 24)] {
        let row = (new.row.id.as_bytes(), now - hours * HOUR_US);
        conn.execute("UPDATE approvals SET ended_us = ?2 WHERE id = ?1", row).unwrap();
    }
    let store = fixture.open();
    assert_eq!(store.approval(older.row.id).await.unwrap(), None);
    assert_eq!(store.call(older.head.id).await.unwrap().unwrap().state, State::CompletedSuccess);
    for exact in [&young, &waits] {
        assert_eq!(standing(&store, exact.row.id).await.details, exact.row.details);
    }
    let masked = standing(&store, old.row.id).await.details;
    assert!(!masked.arguments.contains("hunter2") && masked.arguments.contains("quoted"), "{masked:?}");
    assert_eq!(
        gantry_store::ApprovalDetails { arguments: old.row.details.arguments.clone(), ..masked },
        old.row.details
    );
}

/// A request whose arguments have about so many bytes.
fn long(word: &str, bytes: usize) -> NewApproval {
    let mut new = held(word);
    new.row.details.arguments = format!(r#"{{"text":"{}"}}"#, "ü".repeat(bytes / 2)).into();
    new
}

#[tokio::test]
async fn lists_leave_long_arguments_where_they_are() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let (short, large) = (hold(&store, long("short", 2_000)).await, hold(&store, long("long", 2_100)).await);
    let bytes = large.details.arguments.len();
    let listed = store.approvals(ApprovalFilter::default()).await.unwrap().items;
    let [slim, whole] = listed.as_slice() else { panic!("{listed:?}") };
    assert_eq!(*whole, short);
    assert_eq!((&*slim.details.arguments, slim.omitted.arguments), ("", Some(bytes)));
    assert_eq!(standing(&store, large.id).await, large);

    // Nor do they read those that a person has given instead.
    let mut yes = step(State::ApprovedReady);
    yes.decision.as_mut().unwrap().modified_args = Some(long("instead", 60_000).row.details.arguments);
    let decided = *store.transition(large.id, yes, None).await.unwrap();
    let slim = store.approvals(ApprovalFilter::default()).await.unwrap().items.remove(0);
    assert_eq!(slim, decided.without_arguments());
    assert_eq!(slim.decision.as_ref().unwrap().modified_args, None);
    assert!(slim.omitted.modified_args.unwrap() > 60_000);
    assert_eq!(standing(&store, large.id).await, decided);
}
