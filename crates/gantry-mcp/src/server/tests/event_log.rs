//! What is kept so that streams can be resumed: how much, for how long, and what goes first.

use super::{Events, Fake, answer, handshake, headers};
use crate::limits::{
    REPLAY_BYTES, SESSION_STREAMS, STREAM_BYTES, STREAM_EVENTS, STREAM_KEPT, STREAM_KEPT_WHEN_FULL,
};
use crate::server::body::Source as _;
use crate::server::event_log::{EventLogs, EventPosition, EventReader, LogBudget};
use crate::server::outgoing::Delivery;
use futures_util::FutureExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Room for three messages of [`message`] and not for four.
const ROOM: usize = 4000;

fn message(name: &str) -> String {
    format!("{name}{}", "x".repeat(1000))
}

fn budget(limit: usize) -> Arc<LogBudget> {
    Arc::new(LogBudget { used: AtomicUsize::new(0), limit })
}

fn used(budget: &LogBudget) -> usize {
    budget.used.load(Ordering::Relaxed)
}

fn sessions<const N: usize>(budget: &Arc<LogBudget>) -> [Arc<EventLogs>; N] {
    std::array::from_fn(|_| EventLogs::new(Arc::clone(budget)))
}

/// A stream of one message that has ended.
fn ended(session: &Arc<EventLogs>, text: &str) -> u64 {
    let stream = session.open();
    session.push(stream, text, Delivery::Required, None);
    session.end(stream);
    stream
}

fn reader(session: &Arc<EventLogs>, stream: u64) -> Option<EventReader> {
    session.read(EventPosition { stream, event: 0 })
}

/// The data of everything that can be read now.
fn read(reader: &mut EventReader) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(Some(bytes)) = reader.next().now_or_never() {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        all.push(text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap().to_owned());
    }
    all
}

#[tokio::test]
async fn one_stream_is_bounded_whether_it_is_read_or_not() {
    let budget = budget(REPLAY_BYTES);
    for delivery in [Delivery::BestEffort, Delivery::Required] {
        let [session] = sessions(&budget);
        let stream = session.open();
        for number in 0..STREAM_EVENTS + 5 {
            session.push(stream, &number.to_string(), delivery, None);
        }
        session.end(stream);
        let expected: Vec<String> = (5..STREAM_EVENTS + 5).map(|number| number.to_string()).collect();
        assert_eq!(read(&mut reader(&session, stream).unwrap()), expected, "{delivery:?}");
        for _ in 0..SESSION_STREAMS {
            ended(&session, "x");
        }
        assert!(reader(&session, stream).is_none());
    }
    assert_eq!(used(&budget), 0);
}

#[tokio::test]
async fn an_awaited_answer_stays_until_it_is_read_while_others_fill_the_log() {
    let budget = budget(ROOM);
    let [greedy, other] = sessions(&budget);
    let endless = greedy.open();
    for _ in 0..9 {
        greedy.push(endless, &message("g"), Delivery::Required, None);
    }
    let stream = other.open();
    let mut live = reader(&other, stream).unwrap();
    other.push(stream, "read", Delivery::Required, None);
    assert_eq!(read(&mut live), ["read"]);
    other.push(stream, "question", Delivery::Required, None);
    other.push(stream, "progress", Delivery::BestEffort, None);
    other.push(stream, "answer", Delivery::Required, None);
    other.end(stream);
    // Only what was not waited for is lost, and what was read already.
    assert_eq!(read(&mut live), ["question", "answer"]);
    assert_eq!(read(&mut reader(&greedy, endless).unwrap()).len(), 9);
}

#[tokio::test]
async fn questions_arrive_when_too_much_is_kept() {
    let server = Fake::full();
    server.inner.log_budget.used.fetch_add(REPLAY_BYTES + 1, Ordering::Relaxed);
    let session = handshake(&server, "guest", "2025-11-25").await;
    let ask = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}"#;
    let mut events = Events::of(answer(&server, &[("mcp-session-id", &session)], ask).await);
    // Both are there before anything is read.
    while server
        .inner
        .sessions
        .find(&session, &*server.handler_of("guest"))
        .unwrap()
        .logs
        .end_position(1)
        .event
        < 3
    {
        tokio::task::yield_now().await;
    }
    for key in ["name 0", "age 0"] {
        let question = events.message().await;
        assert!(question.contains(key), "{question}");
    }
}

#[tokio::test(start_paused = true)]
async fn streams_that_have_ended_make_room_in_all_sessions() {
    let server = Fake::full();
    server.handler().gate.add_permits(1);
    let session = handshake(&server, "guest", "2025-11-25").await;
    let other = handshake(&server, "guest", "2025-11-25").await;
    let logs = |session: &str| {
        Arc::clone(&server.inner.sessions.find(session, &*server.handler_of("guest")).unwrap().logs)
    };
    let (one, two) = (logs(&session), logs(&other));
    let budget = &server.inner.log_budget;
    // More than the room that is made at once.
    let large = "x".repeat(REPLAY_BYTES / 50);
    let recent = ended(&two, &large);
    tokio::time::advance(Duration::from_secs(1)).await;
    let newest = ended(&one, &large);
    let awaited = one.open();
    let mut waiting = reader(&one, awaited).unwrap();
    one.push(awaited, "answer", Delivery::Required, None);
    one.end(awaited);
    let is_kept = |logs: &Arc<EventLogs>, stream| reader(logs, stream).is_some();
    server.expire_idle();
    assert!(is_kept(&two, recent) && is_kept(&one, newest), "there is room");
    // The oldest makes room, of any session.
    budget.used.fetch_add(REPLAY_BYTES + 1 - used(budget), Ordering::Relaxed);
    server.expire_idle();
    assert!(!is_kept(&two, recent) && is_kept(&one, newest));
    // The end of a stream makes room too, and no client that waits for a response loses it.
    budget.used.fetch_add(REPLAY_BYTES, Ordering::Relaxed);
    let tell = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tell"}}"#;
    let outcome = Events::of(answer(&server, &[("mcp-session-id", &other)], tell).await).rest().await;
    assert!(outcome.last().unwrap().contains("told"), "{outcome:?}");
    assert!(!is_kept(&one, newest));
    assert_eq!(read(&mut waiting), ["answer"]);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_makes_room_after_a_while() {
    let server = Fake::full();
    let session = handshake(&server, "guest", "2025-11-25").await;
    let logs = Arc::clone(&server.inner.sessions.find(&session, &*server.handler_of("guest")).unwrap().logs);
    let stream = ended(&logs, "answer");
    let mut slow = reader(&logs, stream).unwrap();
    server.inner.log_budget.used.fetch_add(REPLAY_BYTES, Ordering::Relaxed);
    tokio::time::advance(STREAM_KEPT_WHEN_FULL).await;
    server.expire_idle();
    assert!(slow.is_current());
    tokio::time::advance(Duration::from_secs(1)).await;
    server.expire_idle();
    assert!(!slow.is_current());
    assert!(read(&mut slow).is_empty());
}

#[tokio::test]
async fn a_receipt_goes_on_when_its_reader_leaves() {
    let [session] = sessions(&budget(REPLAY_BYTES));
    let stream = session.open();
    let (receive, received) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let receipt = {
        let (receive, received) = (Arc::clone(&receive), Arc::clone(&received));
        async move {
            receive.acquire().await.unwrap().forget();
            received.add_permits(1);
        }
    };
    session.push(stream, "answer", Delivery::Required, Some(Box::pin(receipt)));
    let mut leaving = reader(&session, stream).unwrap();
    assert!(leaving.next().now_or_never().is_none());
    drop(leaving);
    assert_eq!(read(&mut reader(&session, stream).unwrap()), ["answer"], "it is read again");
    receive.add_permits(1);
    timeout(Duration::from_secs(5), received.acquire()).await.unwrap().unwrap().forget();
}

#[tokio::test]
async fn delivered_events_are_not_kept_while_too_much_is() {
    let budget = budget(ROOM);
    let [one, two] = sessions(&budget);
    let old = ended(&one, &message("a"));
    assert_eq!(read(&mut reader(&one, old).unwrap()).len(), 1);
    assert_eq!(read(&mut reader(&one, old).unwrap()).len(), 1, "it is kept");
    let live = two.open();
    for _ in 0..4 {
        two.push(live, &message("b"), Delivery::Required, None);
    }
    assert_eq!(read(&mut reader(&two, live).unwrap()).len(), 4);
    assert!(read(&mut reader(&two, live).unwrap()).len() < 4);
    assert_eq!(read(&mut reader(&one, old).unwrap()).len(), 1);
    drop((one, two));
    assert_eq!(used(&budget), 0);
}

#[tokio::test]
async fn messages_are_not_replayed_but_requests_and_responses_are() {
    let [session] = sessions(&budget(REPLAY_BYTES));
    let stream = session.open();
    session.push(stream, "question", Delivery::Required, None);
    session.push(stream, "progress", Delivery::BestEffort, None);
    session.push(stream, "answer", Delivery::Required, None);
    assert_eq!(read(&mut reader(&session, stream).unwrap()), ["question", "progress", "answer"]);
    assert_eq!(read(&mut reader(&session, stream).unwrap()), ["question", "answer"]);
}

#[tokio::test]
async fn a_response_is_received_when_a_reader_takes_it() {
    let server = Fake::full();
    let received = || server.handler().received.load(Ordering::SeqCst);
    let session = handshake(&server, "guest", "2025-11-25").await;
    let kept = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"kept"}}"#;
    let stream = [("mcp-session-id", session.as_str()), ("accept", "text/event-stream, application/json")];
    let mut events = Events::of(answer(&server, &stream, kept).await);
    let (id, _) = events.next().await.unwrap();
    server.handler().call_begun().await;
    drop(events);
    server.handler().gate.add_permits(1);
    let logs = Arc::clone(&server.inner.sessions.find(&session, &*server.handler_of("guest")).unwrap().logs);
    while logs.end_position(1).event < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(received(), 0, "the client is away");
    let resume = headers(&[("mcp-session-id", &session), ("last-event-id", &id)]);
    for _ in 0..2 {
        assert!(Events::of(server.get(&resume, &"guest")).message().await.contains("kept"));
        assert_eq!(received(), 1);
    }
    // A plain response is received by the client that waits for it.
    server.handler().gate.add_permits(1);
    answer(&server, &[("mcp-session-id", &session)], kept).await;
    assert_eq!(received(), 2);
}

#[tokio::test]
async fn what_is_too_large_to_be_kept_is_kept_until_it_was_read() {
    let budget = budget(REPLAY_BYTES);
    let [session] = sessions(&budget);
    let stream = session.open();
    session.prime(stream);
    session.push(stream, &"x".repeat(STREAM_BYTES + 1), Delivery::Required, None);
    session.end(stream);
    let mut first = reader(&session, stream).unwrap();
    let primer = first.next().await.unwrap();
    let id = String::from_utf8(primer.to_vec()).unwrap();
    let id = id.lines().next().unwrap().strip_prefix("id: ").unwrap();
    // Who comes back before it was read gets it.
    let mut second = session.read(session.position(id).unwrap()).unwrap();
    assert_eq!(read(&mut second).len(), 1);
    assert_eq!(used(&budget), 0);
    // Who comes back later is not left with a stream that says nothing.
    assert_eq!(session.position(id), None);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ended_a_while_ago_is_not_kept() {
    let server = Fake::full();
    server.handler().gate.add_permits(1);
    let session = handshake(&server, "guest", "2025-11-25").await;
    let tell = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tell"}}"#;
    let mut events = Events::of(answer(&server, &[("mcp-session-id", &session)], tell).await);
    let (id, _) = events.next().await.unwrap();
    assert!(events.rest().await.last().unwrap().contains("told"));
    let resumed = || {
        let sent = headers(&[("mcp-session-id", &session), ("last-event-id", &id)]);
        server.get(&sent, &"guest").status().as_u16()
    };
    tokio::time::advance(STREAM_KEPT).await;
    server.expire_idle();
    assert_eq!(resumed(), 200);
    tokio::time::advance(Duration::from_secs(1)).await;
    server.expire_idle();
    assert_eq!((resumed(), used(&server.inner.log_budget)), (400, 0));
    assert_eq!(server.inner.sessions.len(), 1);
}
