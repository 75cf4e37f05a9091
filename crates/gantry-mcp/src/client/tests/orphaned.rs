//! Requests whose caller is gone while their server may still run them: what the server sends for them reaches no other client.

use super::fake::{Client, Events, Peer, a_client, call, legacy, target};
use crate::client::dispatcher::{Dispatcher, RequestGuard};
use crate::client::pending::{CANCELLED_TTL, MAX_ORPHANS, Recipient};
use crate::client::{Change, Connection, ListKind, Protocol, Transport, UpstreamError};
use crate::exchange::ServerNotification;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::mpsc;

const FORM: &str = r#"{"elicitation":{}}"#;
const ACCEPT: &str = r#"{"action":"accept"}"#;

fn form(id: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": {"message": id}})
}

fn log(data: &str) -> Value {
    json!({"method": "notifications/message", "params": {"level": "error", "data": data}})
}

/// Calls, and withdraws the call once the server has it.
async fn withdrawn(
    connection: &Connection,
    client: Arc<Client>,
    seen: &mut mpsc::Receiver<Value>,
    by_token: bool,
) {
    let request = call("a", client);
    let cancel = request.cancel.clone();
    let mut running = Box::pin(request.by(connection));
    tokio::select! { _ = &mut running => panic!("no answer was sent"), _ = seen.recv() => {} }
    if by_token {
        cancel.cancel();
        assert_eq!(running.await, Err(UpstreamError::Canceled));
    }
}

/// What a server hears that asks for a withdrawn call of session 1 while session `next` waits for another call: before
/// and after it has answered the first.
async fn heard(next: &Arc<Client>, by_token: bool) -> [Value; 2] {
    let (reported, mut answers) = mpsc::channel(3);
    let (connection, _events) = legacy(move |mut peer: Peer| {
        let reported = reported.clone();
        async move {
            peer.handshake(json!({})).await;
            let first = peer.expect("tools/call").await;
            reported.send(json!({})).await.unwrap();
            peer.expect("notifications/cancelled").await;
            let second = peer.expect("tools/call").await;
            peer.send(form("before")).await;
            reported.send(peer.next().await.unwrap()).await.unwrap();
            peer.answer(&first, json!({})).await;
            peer.send(form("after")).await;
            reported.send(peer.next().await.unwrap()).await.unwrap();
            peer.answer(&second, json!({})).await;
            peer.next().await;
        }
    })
    .await;
    let (one, _heard) = a_client(1, FORM, Ok(ACCEPT));
    withdrawn(&connection, one.clone(), &mut answers, by_token).await;
    call("b", next.clone()).by(&connection).await.unwrap();
    assert!(one.asked.lock().unwrap().is_empty());
    [answers.recv().await.unwrap(), answers.recv().await.unwrap()]
}

#[tokio::test]
async fn a_question_of_a_withdrawn_call_reaches_no_other_session() {
    for by_token in [true, false] {
        let (two, _heard) = a_client(2, FORM, Ok(ACCEPT));
        let [before, after] = heard(&two, by_token).await;
        assert_eq!(before["error"]["code"], -32600, "{before}");
        assert_eq!(after["result"]["action"], "accept", "{after}");
        let asked = two.asked.lock().unwrap();
        assert_eq!(asked.iter().map(|question| &*question.key).collect::<Vec<_>>(), ["\"after\""]);
    }
}

#[tokio::test]
async fn a_question_of_a_withdrawn_call_may_reach_its_own_session() {
    let (again, _heard) = a_client(1, FORM, Ok(ACCEPT));
    for answer in heard(&again, true).await {
        assert_eq!(answer["result"]["action"], "accept", "{answer}");
    }
}

#[tokio::test]
async fn logs_of_a_withdrawn_call_are_dropped() {
    let (reported, mut seen) = mpsc::channel(1);
    let (connection, mut events) = legacy(move |mut peer: Peer| {
        let reported = reported.clone();
        async move {
            peer.handshake(json!({})).await;
            let first = peer.expect("tools/call").await;
            reported.send(json!({})).await.unwrap();
            peer.expect("notifications/cancelled").await;
            peer.send(log("while nothing is under way")).await;
            let second = peer.expect("tools/call").await;
            peer.send(log("while another session waits")).await;
            peer.answer(&first, json!({})).await;
            peer.send(log("of the other session")).await;
            peer.answer(&second, json!({})).await;
            peer.send(log("of no request")).await;
            peer.next().await;
        }
    })
    .await;
    let (one, mut heard_one) = a_client(1, "{}", Ok("{}"));
    let (two, mut heard_two) = a_client(2, "{}", Ok("{}"));
    withdrawn(&connection, one, &mut seen, true).await;
    call("b", two).by(&connection).await.unwrap();
    let event = events.recv().await;
    assert!(
        matches!(&event, Some(Change::Log { params, .. }) if params.contains("of no request")),
        "{event:?}"
    );
    let notice = heard_two.recv().await;
    assert!(
        matches!(&notice, Some(ServerNotification::Log(_, params)) if params.contains("of the other")),
        "{notice:?}"
    );
    assert!(heard_one.try_recv().is_err() && heard_two.try_recv().is_err());
}

#[tokio::test]
async fn a_task_is_its_clients_between_two_looks_at_it() {
    let (reported, mut answers) = mpsc::channel(2);
    let (connection, events) = legacy(move |mut peer: Peer| {
        let reported = reported.clone();
        async move {
            peer.handshake(json!({})).await;
            let list = peer.expect("tools/list").await;
            let slow = json!({"name": "slow", "execution": {"taskSupport": "required"}});
            peer.answer(&list, json!({"tools": [slow]})).await;
            let start = peer.expect("tools/call").await;
            let call = peer.expect("tools/call").await;
            let task = json!({"taskId": "t", "status": "working", "pollInterval": 3_600_000});
            peer.answer(&start, json!({"task": task})).await;
            peer.send(form("q")).await;
            peer.send(log("of the task")).await;
            reported.send(peer.next().await.unwrap()).await.unwrap();
            peer.answer(&call, json!({})).await;
            peer.send(log("still of the task")).await;
            peer.send(json!({"method": "notifications/tools/list_changed"})).await;
            peer.next().await;
        }
    })
    .await;
    connection.list(ListKind::Tools).await.unwrap();
    let (one, _heard) = a_client(1, FORM, Ok(ACCEPT));
    let (two, mut heard_two) = a_client(2, FORM, Ok(ACCEPT));
    let mut task = Box::pin(call("slow", one).by(&connection));
    tokio::select! {
        biased;
        outcome = &mut task => panic!("the task goes on: {outcome:?}"),
        outcome = call("b", two.clone()).by(&connection) => assert!(outcome.is_ok()),
    }
    assert_eq!(answers.recv().await.unwrap()["error"]["code"], -32600);
    assert!(two.asked.lock().unwrap().is_empty() && heard_two.try_recv().is_err());
    events.lists_changed().await;
}

/// A question that comes after the client of a task has gone, while another session calls. The server answers the start of
/// the task, or does not.
async fn asked_after_a_task(is_started: bool) {
    let (reported, mut answers) = mpsc::channel(2);
    let (connection, _events) = legacy(move |mut peer: Peer| {
        let reported = reported.clone();
        async move {
            peer.handshake(json!({})).await;
            let list = peer.expect("tools/list").await;
            let slow = json!({"name": "slow", "execution": {"taskSupport": "required"}});
            peer.answer(&list, json!({"tools": [slow]})).await;
            let start = peer.expect("tools/call").await;
            if is_started {
                let task = json!({"taskId": "t", "status": "working", "pollInterval": 3_600_000});
                peer.answer(&start, json!({"task": task})).await;
                let cancel = peer.expect("tasks/cancel").await;
                peer.answer(&cancel, json!({})).await;
            } else {
                peer.expect("notifications/cancelled").await;
            }
            let call = peer.expect("tools/call").await;
            peer.send(form("q")).await;
            reported.send(peer.next().await.unwrap()).await.unwrap();
            peer.answer(&call, json!({})).await;
            peer.next().await;
        }
    })
    .await;
    connection.list(ListKind::Tools).await.unwrap();
    let (one, _heard) = a_client(1, FORM, Ok(ACCEPT));
    let (two, _heard) = a_client(2, FORM, Ok(ACCEPT));
    let second = std::time::Duration::from_secs(1);
    assert!(tokio::time::timeout(second, call("slow", one).by(&connection)).await.is_err());
    tokio::time::sleep(CANCELLED_TTL * 2).await;
    call("b", two.clone()).by(&connection).await.unwrap();
    assert_eq!(answers.recv().await.unwrap()["error"]["code"], -32600, "{is_started}");
    assert!(two.asked.lock().unwrap().is_empty(), "{is_started}");
}

#[tokio::test(start_paused = true)]
async fn a_question_of_a_task_that_was_given_up_reaches_no_other_session_however_late() {
    asked_after_a_task(true).await;
    asked_after_a_task(false).await;
}

#[tokio::test]
async fn an_error_without_an_id_fails_the_poll_of_a_task() {
    let (connection, _events) = legacy(async |mut peer: Peer| {
        peer.handshake(json!({})).await;
        let list = peer.expect("tools/list").await;
        let slow = json!({"name": "slow", "execution": {"taskSupport": "required"}});
        peer.answer(&list, json!({"tools": [slow]})).await;
        let start = peer.expect("tools/call").await;
        let task = json!({"taskId": "t", "status": "working", "pollInterval": 1});
        peer.answer(&start, json!({"task": task})).await;
        peer.expect("tasks/get").await;
        peer.send(json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32603, "message": "no"}})).await;
        peer.next().await;
    })
    .await;
    connection.list(ListKind::Tools).await.unwrap();
    let (one, _heard) = a_client(1, FORM, Ok(ACCEPT));
    let outcome = call("slow", one).by(&connection).await;
    assert!(matches!(outcome, Err(UpstreamError::OutcomeUnknown(_))), "{outcome:?}");
}

/// A dispatcher without a link.
struct Bench {
    dispatcher: Arc<Dispatcher>,
    events: Events,
}

impl Bench {
    fn new() -> Self {
        let (target, events) = target(Transport::Tcp { address: String::new() }, Protocol::Auto);
        Self { dispatcher: Dispatcher::start(&target).dispatcher, events }
    }

    fn request(&self, session: u64, own: bool) -> RequestGuard {
        let client = a_client(session, "{}", Ok("{}")).0;
        let mut request = self.dispatcher.register(self.dispatcher.next_id(), &(client as _), own).unwrap();
        request.is_cancellable = true;
        request
    }

    /// Whether a message without an origin is for the only session under way.
    fn is_clear(&self) -> bool {
        matches!(self.dispatcher.recipient(None), Recipient::Client(_))
    }

    fn receive(&self, message: &Value, origin: Option<u64>) {
        self.dispatcher.receive(&message.to_string(), origin);
    }

    /// Withdraws so many requests of session 1 and lets the server answer them all.
    fn withdraw_and_answer(&self, count: usize) {
        let ids: Vec<u64> = (0..count).map(|_| self.request(1, false).id).collect();
        assert!(!self.is_clear());
        for id in ids {
            self.receive(&json!({"id": id, "result": {}}), None);
        }
    }
}

#[test]
fn when_too_many_were_withdrawn_an_unknown_answer_can_belong_to_one() {
    let bench = Bench::new();
    let _live = bench.request(2, false);
    bench.withdraw_and_answer(MAX_ORPHANS);
    assert!(bench.is_clear());
    bench.withdraw_and_answer(MAX_ORPHANS + 1);
    assert!(!bench.is_clear());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_what_was_withdrawn_is_doubted_for_a_while_only() {
    let bench = Bench::new();
    let _live = bench.request(2, false);
    drop(bench.request(1, false));
    tokio::time::advance(CANCELLED_TTL / 2).await;
    assert!(!bench.is_clear());
    tokio::time::advance(CANCELLED_TTL / 2).await;
    assert!(bench.is_clear());
    (0..=MAX_ORPHANS).for_each(|_| drop(bench.request(1, false)));
    tokio::time::advance(CANCELLED_TTL / 2).await;
    assert!(!bench.is_clear());
    tokio::time::advance(CANCELLED_TTL / 2).await;
    assert!(bench.is_clear(), "also of more than are kept");
}

#[tokio::test(start_paused = true)]
async fn a_later_withdrawal_does_not_prolong_the_wait_for_another_session() {
    let bench = Bench::new();
    drop(bench.request(1, false));
    tokio::time::advance(CANCELLED_TTL / 2).await;
    drop(bench.request(2, false));
    let _live = bench.request(2, false);
    assert!(!bench.is_clear());
    tokio::time::advance(CANCELLED_TTL / 2).await;
    assert!(bench.is_clear(), "only session 2 is left");
}

#[test]
fn what_was_lost_counts_and_what_was_never_sent_or_is_gantrys_own_does_not() {
    let bench = Bench::new();
    let _live = bench.request(2, false);
    drop(bench.request(1, true));
    let unsent = bench.request(1, false);
    bench.dispatcher.fail(unsent.id, UpstreamError::NotSent("no way".into()));
    drop(unsent);
    assert!(bench.is_clear());
    let mut lost = bench.request(1, false);
    bench.dispatcher.fail(lost.id, UpstreamError::OutcomeUnknown("no answer".into()));
    lost.is_cancellable = false;
    let id = lost.id;
    drop(lost);
    assert!(!bench.is_clear());
    bench.receive(&json!({"id": id, "error": {"code": 1, "message": "late"}}), None);
    assert!(bench.is_clear());
    let _other = bench.request(1, false);
    bench.dispatcher.fail_all("a line was too long");
    let _live = bench.request(2, false);
    assert!(!bench.is_clear());
}

#[test]
fn a_log_on_the_stream_of_a_request_that_is_over_is_dropped() {
    let mut bench = Bench::new();
    bench.receive(&log("late"), Some(4711));
    assert!(bench.events.changes.try_recv().is_err());
    let own = bench.request(0, true);
    bench.receive(&log("of a list"), Some(own.id));
    bench.receive(&log("of no request"), None);
    for data in ["of a list", "of no request"] {
        assert!(
            matches!(bench.events.changes.try_recv(), Ok(Change::Log { params, .. }) if params.contains(data))
        );
    }
    let _live = bench.request(1, false);
    bench.receive(&log("of a list, perhaps"), Some(own.id));
    assert!(bench.events.changes.try_recv().is_err());
}
