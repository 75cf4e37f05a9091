//! Lists: filters, order, pages and limits.

use crate::fixture::{Fixture, begin, ended, good, head, whole};
use gantry_core::id::{CallId, SessionId};
use gantry_store::{CallFilter, CallRow, Page, State, Store};

/// An id as it is made at that millisecond.
fn at(millis: u128) -> CallId {
    CallId::from_bytes((millis << 80 | 0x7000_8000_0000_0000_0001).to_be_bytes())
}

async fn ids(store: &Store, filter: CallFilter) -> Vec<CallId> {
    store.calls(filter).await.unwrap().items.into_iter().map(|row| row.head.id).collect()
}

#[tokio::test]
async fn each_filter_gives_the_calls_it_names() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let mut heads = [head(), head(), head(), head(), head()];
    heads[0].caller.project = "other".into();
    heads[1].caller.principal = "ann".into();
    heads[2].session = SessionId::from_bytes([9; 16]);
    heads[3].tool.name = "read_file".into();
    // Lists go by the time in the call's id.
    heads[4].id = at(5_000);
    heads[0].id = at(1_000);
    for head in &heads {
        store.record(whole(head, good())).await.unwrap();
    }
    let open = begin(&store).await;
    let all = CallFilter::default;

    assert_eq!(ids(&store, CallFilter { project: Some("other".into()), ..all() }).await, [heads[0].id]);
    assert_eq!(ids(&store, CallFilter { principal: Some("ann".into()), ..all() }).await, [heads[1].id]);
    assert_eq!(ids(&store, CallFilter { session: Some(heads[2].session), ..all() }).await, [heads[2].id]);
    assert_eq!(ids(&store, CallFilter { name: Some("read_file".into()), ..all() }).await, [heads[3].id]);
    assert_eq!(ids(&store, CallFilter { state: Some(State::Executing), ..all() }).await, [open.id]);
    assert_eq!(
        ids(&store, CallFilter { until_us: Some(5_001_000), ..all() }).await,
        [heads[4].id, heads[0].id]
    );
    assert_eq!(ids(&store, CallFilter { until_us: Some(5_000_000), ..all() }).await, [heads[0].id]);
    assert_eq!(ids(&store, CallFilter { until_us: Some(1_000_000), ..all() }).await, []);
    assert_eq!(ids(&store, CallFilter { since_us: Some(5_000_000), ..all() }).await.len(), 5);
    assert_eq!(ids(&store, CallFilter { since_us: Some(5_001_000), ..all() }).await.len(), 4);
    assert_eq!(
        ids(&store, CallFilter { since_us: Some(i64::MIN), until_us: Some(i64::MAX), ..all() }).await.len(),
        6
    );
    let both = CallFilter { project: Some("other".into()), principal: Some("ann".into()), ..all() };
    assert_eq!(ids(&store, both).await, []);

    let newest_first = [open.id, heads[3].id, heads[2].id, heads[1].id, heads[4].id, heads[0].id];
    assert_eq!(ids(&store, all()).await, newest_first);
}

#[tokio::test]
async fn the_state_that_is_asked_for_is_the_newest() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let head = begin(&store).await;
    store.close(head.id, ended(State::CompletedFailure)).await.unwrap();
    let of = |state| CallFilter { state: Some(state), ..CallFilter::default() };
    assert_eq!(ids(&store, of(State::Executing)).await, []);
    assert_eq!(ids(&store, of(State::CompletedFailure)).await, [head.id]);
}

#[tokio::test]
async fn pages_cover_the_list_once_even_while_calls_go_on() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let mut made = Vec::new();
    for n in 0..25 {
        if n % 2 == 0 {
            made.push(begin(&store).await.id);
        } else {
            let head = head();
            store.record(whole(&head, good())).await.unwrap();
            made.push(head.id);
        }
    }
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let page = store.calls(CallFilter { cursor, limit: 7, ..CallFilter::default() }).await.unwrap();
        assert!(page.items.len() <= 7);
        seen.extend(page.items.into_iter().map(|row| row.head.id));
        begin(&store).await;
        store.close(made[seen.len().min(24) / 2 * 2], good()).await.ok();
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    made.reverse();
    assert_eq!(seen, made);
}

#[tokio::test]
async fn the_calls_of_a_session_come_oldest_first() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let mut made = Vec::new();
    for n in 0..10_u8 {
        let mut head = head();
        head.session = SessionId::from_bytes([n % 2; 16]);
        store.record(whole(&head, good())).await.unwrap();
        made.push(head);
    }
    let wanted: Vec<_> = made.iter().filter(|head| head.session.as_bytes()[0] == 1).map(|h| h.id).collect();
    let session = SessionId::from_bytes([1; 16]);
    let ids = |page: Page<CallRow, CallId>| page.items.into_iter().map(|row| row.head.id).collect::<Vec<_>>();
    let all = store.calls_of_session(session, 5).await.unwrap();
    assert_eq!((all.next, ids(all)), (None, wanted.clone()));
    let first = store.calls_of_session(session, 3).await.unwrap();
    assert_eq!((first.next, ids(first)), (Some(wanted[2]), wanted[..3].to_vec()));
}

#[tokio::test]
async fn no_limit_means_fifty_and_a_huge_one_a_thousand() {
    let fixture = Fixture::new();
    let store = fixture.open();
    for _ in 0..1001 {
        store.record(whole(&head(), good())).await.unwrap();
    }
    let session = head().session;
    for (limit, got) in [(0, 50), (1, 1), (999, 999), (1000, 1000), (u32::MAX, 1000)] {
        let page = store.calls(CallFilter { limit, ..CallFilter::default() }).await.unwrap();
        assert_eq!(page.items.len(), got);
        assert_eq!(page.next, page.items.last().map(|row| row.head.id));
        assert_eq!(store.calls_of_session(session, limit).await.unwrap().items.len(), got);
    }
    let nothing = CallFilter { cursor: Some(CallId::from_bytes([0; 16])), ..CallFilter::default() };
    assert_eq!(ids(&store, nothing).await, []);
}

#[tokio::test]
async fn hostile_filters_find_nothing_and_break_nothing() {
    let fixture = Fixture::new();
    let store = fixture.open();
    begin(&store).await;
    for text in ["' OR 1=1 --", "%", "\0", "default\0", "", "\u{202e}"] {
        let filter = CallFilter { project: Some(text.into()), ..CallFilter::default() };
        assert_eq!(ids(&store, filter).await, [], "{text:?}");
    }
}
