//! Answers that do not say, or say wrongly, to which request they belong.

use super::fake::{Peer, a_client, call, legacy, target};
use crate::client::dispatcher::Dispatcher;
use crate::client::{Protocol, Transport, UpstreamError};
use serde_json::json;
use std::time::Duration;
use tokio::time::timeout;

#[tokio::test]
async fn a_result_that_names_no_request_is_dropped() {
    let (connection, _events) = legacy(async |mut peer: Peer| {
        peer.handshake(json!({})).await;
        let request = peer.expect("tools/call").await;
        let not_yours = json!({"not": "yours"});
        peer.send(json!({"jsonrpc": "2.0", "result": not_yours})).await;
        for id in [json!(null), json!("x"), json!(1.5), json!([request["id"]])] {
            peer.send(json!({"jsonrpc": "2.0", "id": id, "result": not_yours})).await;
        }
        peer.refuse(&json!({"id": "x"}), -32000).await;
        peer.answer(&request, json!({"yours": true})).await;
        peer.next().await;
    })
    .await;
    let (client, _heard) = a_client(1, "{}", Ok("{}"));
    assert_eq!(call("a", client).by(&connection).await.unwrap(), r#"{"yours":true}"#);
}

#[tokio::test(start_paused = true)]
async fn an_error_that_names_no_request_loses_the_only_one_of_a_client() {
    let (connection, _events) = legacy(async |mut peer: Peer| {
        peer.handshake(json!({})).await;
        peer.expect("tools/call").await;
        let ping = peer.expect("ping").await;
        peer.refuse(&json!({"id": null}), -32700).await;
        peer.answer(&ping, json!({})).await;
        peer.next().await;
    })
    .await;
    let (client, _heard) = a_client(1, "{}", Ok("{}"));
    let minute = Duration::from_secs(60);
    let call = timeout(minute, call("a", client).by(&connection));
    let (outcome, pinged) = tokio::join!(call, connection.ping(minute));
    let outcome = outcome.expect("the request still waits");
    assert!(
        matches!(&outcome, Err(UpstreamError::OutcomeUnknown(reason)) if reason.contains("to which request")),
        "{outcome:?}"
    );
    pinged.unwrap();
}

#[tokio::test]
async fn an_error_that_names_no_request_is_for_none_of_several() {
    let (connection, _events) = legacy(async |mut peer: Peer| {
        peer.handshake(json!({})).await;
        let first = peer.expect("tools/call").await;
        let second = peer.expect("tools/call").await;
        peer.refuse(&json!({"id": null}), -32700).await;
        peer.answer(&first, json!({})).await;
        peer.answer(&second, json!({})).await;
        peer.next().await;
    })
    .await;
    let (client, _heard) = a_client(1, "{}", Ok("{}"));
    let (first, second) =
        tokio::join!(call("a", client.clone()).by(&connection), call("b", client).by(&connection));
    first.and(second).unwrap();
}

#[tokio::test]
async fn an_error_on_the_stream_of_a_request_answers_it() {
    let (target, _events) = target(Transport::Tcp { address: String::new() }, Protocol::Auto);
    let dispatcher = Dispatcher::start(&target).dispatcher;
    let client = a_client(1, "{}", Ok("{}")).0 as _;
    let register = || dispatcher.register(dispatcher.next_id(), &client, false).unwrap();
    let (mut one, _other) = (register(), register());
    dispatcher.receive(r#"{"error":{"code":-1,"message":"no"}}"#, Some(one.id));
    let outcome = one.outcome().await;
    assert!(matches!(&outcome, Err(UpstreamError::Rpc(error)) if error.code == -1), "{outcome:?}");
}
