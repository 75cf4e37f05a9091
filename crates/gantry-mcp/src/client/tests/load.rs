//! Full connections: cancellations and answers get through, and no client is crowded out.

use super::fake::{Peer, a_client, call_with, legacy, target};
use crate::client::dispatcher::Dispatcher;
use crate::client::limits::MAX_IN_FLIGHT;
use crate::client::pending::MAX_OWN_IN_FLIGHT;
use crate::client::{Protocol, Transport, UpstreamError};
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

#[test]
fn a_connection_full_of_calls_has_room_for_gantrys_own_requests() {
    let (target, _events) = target(Transport::Tcp { address: String::new() }, Protocol::Auto);
    let dispatcher = Dispatcher::start(&target).dispatcher;
    let client = a_client(1, "{}", Ok("{}")).0 as _;
    let register = |own| dispatcher.register(dispatcher.next_id(), &client, own);
    let calls: Vec<_> = (0..MAX_IN_FLIGHT).map(|_| register(false).unwrap()).collect();
    assert!(
        matches!(register(false), Err(UpstreamError::NotSent(reason)) if reason.contains("1024 requests"))
    );
    let own: Vec<_> = (0..MAX_OWN_IN_FLIGHT).map(|_| register(true).unwrap()).collect();
    assert!(matches!(register(true), Err(UpstreamError::NotSent(reason)) if reason.contains("Gantry's own")));
    assert_eq!(dispatcher.pending().in_flight(), MAX_IN_FLIGHT);
    drop(calls);
    register(false).unwrap();
    drop(own);
    register(true).unwrap();
}

const CALLS: usize = 100;

/// Reads until all calls but one and the answer to the question have come, or nothing comes any more.
async fn everything(peer: &mut Peer) -> Vec<Value> {
    let mut read: Vec<Value> = Vec::new();
    let is_all = |read: &[Value]| {
        let calls = read.iter().filter(|message| message["method"] == "tools/call").count();
        calls == CALLS - 1 && read.iter().any(|message| message["id"] == "q")
    };
    while !is_all(&read) {
        let Ok(Some(message)) = timeout(Duration::from_secs(60), peer.next()).await else { break };
        read.push(message);
    }
    read
}

#[tokio::test(start_paused = true)]
async fn withdrawals_pongs_and_answers_get_through_where_calls_queue_up() {
    let go = Arc::new(Semaphore::new(0));
    let (outcome, mut came) = mpsc::channel(1);
    let turn = Arc::clone(&go);
    let (connection, events) = legacy(move |mut peer: Peer| {
        let (turn, outcome) = (Arc::clone(&turn), outcome.clone());
        async move {
            peer.handshake(json!({})).await;
            turn.acquire().await.unwrap().forget();
            peer.send(json!({"jsonrpc": "2.0", "id": "p", "method": "ping"})).await;
            let form = json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {}});
            peer.send(form).await;
            peer.send(json!({"method": "notifications/tools/list_changed"})).await;
            turn.acquire().await.unwrap().forget();
            outcome.send(everything(&mut peer).await).await.unwrap();
        }
    })
    .await;
    let (client, _heard) = a_client(1, r#"{"elicitation":{}}"#, Ok(r#"{"action":"accept"}"#));
    let arguments = json!({"x": "x".repeat(100_000)}).to_string();
    let mut running: Vec<_> =
        (0..CALLS).map(|_| Box::pin(call_with("a", &arguments, client.clone()).by(&connection))).collect();
    for call in &mut running {
        assert!(futures_util::poll!(call).is_pending());
    }
    go.add_permits(1);
    events.lists_changed().await;
    // The first was sent and is withdrawn; the last still waits for its place, and there is nothing to withdraw.
    drop(running.remove(0));
    drop(running.pop());
    go.add_permits(1);
    let (read, _) = tokio::join!(came.recv(), join_all(running));
    let read = read.unwrap();
    let named = |id: &str| read.iter().find(|message| message["id"] == id);
    assert_eq!(named("p").map(|pong| &pong["result"]), Some(&json!({})));
    assert_eq!(named("q").map(|answer| &answer["result"]["action"]), Some(&json!("accept")));
    let is_withdrawal = |message: &&Value| message["method"] == "notifications/cancelled";
    let withdrawals: Vec<_> = read.iter().filter(is_withdrawal).collect();
    assert_eq!(withdrawals.len(), 1);
    assert_eq!(withdrawals[0]["params"]["requestId"], read[0]["id"]);
}
