//! What a server says without being asked: one stream of the newer era, and resources that are watched in either.

use super::fake::{Peer, legacy, modern};
use crate::client::{Connection, UpstreamError};
use serde_json::{Value, json};
use std::time::Duration;

/// A server that tells of changed tools and resources.
fn capabilities() -> Value {
    json!({"tools": {"listChanged": true}, "resources": {"subscribe": true}})
}

/// The next `subscriptions/listen`, and the resources that it is about.
async fn listened(peer: &mut Peer) -> (Value, Vec<String>) {
    let request = peer.expect("subscriptions/listen").await;
    let uris = request["params"]["notifications"]["resourceSubscriptions"].as_array().cloned();
    let uris = uris.unwrap_or_default().iter().map(|uri| uri.as_str().unwrap().to_owned()).collect();
    (request, uris)
}

async fn acknowledge(peer: &mut Peer, listen: &Value) {
    peer.send(about(listen, "notifications/subscriptions/acknowledged")).await;
}

/// A notification that belongs to this stream.
fn about(listen: &Value, method: &str) -> Value {
    let meta = json!({"io.modelcontextprotocol/subscriptionId": listen["id"]});
    json!({"jsonrpc": "2.0", "method": method, "params": {"_meta": meta}})
}

async fn watch(connection: &Connection, uri: &str) -> Result<(), UpstreamError> {
    // The stream for the lists is opened first.
    tokio::time::sleep(Duration::from_millis(1)).await;
    connection.watch(uri, true).await
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_the_server_does_not_take_costs_nothing_else() {
    let (connection, events) = modern(async |mut peer: Peer| {
        peer.discovery(capabilities()).await;
        let (first, uris) = listened(&mut peer).await;
        assert!(uris.is_empty());
        acknowledge(&mut peer, &first).await;
        let (second, uris) = listened(&mut peer).await;
        assert_eq!(uris, ["bad:"]);
        peer.refuse(&second, -32602).await;
        // The first one is still open.
        peer.send(about(&first, "notifications/tools/list_changed")).await;
        let (third, uris) = listened(&mut peer).await;
        assert_eq!(uris, ["good:"]);
        acknowledge(&mut peer, &third).await;
        // Now it is not needed any more.
        let withdrawn = peer.expect("notifications/cancelled").await;
        assert_eq!(withdrawn["params"]["requestId"], first["id"]);
        peer.send(about(&third, "notifications/tools/list_changed")).await;
        peer.next().await;
    })
    .await;
    let outcome = watch(&connection, "bad:").await;
    assert!(matches!(&outcome, Err(UpstreamError::Rpc(error)) if error.code == -32602), "{outcome:?}");
    events.lists_changed().await;
    watch(&connection, "good:").await.unwrap();
    events.lists_changed().await;
}

#[tokio::test(start_paused = true)]
async fn of_several_new_resources_only_the_one_that_is_refused_is_lost() {
    let (connection, _events) = modern(async |mut peer: Peer| {
        peer.discovery(capabilities()).await;
        while let Some(message) = peer.next().await {
            let uris = &message["params"]["notifications"]["resourceSubscriptions"];
            let is_bad = uris.as_array().is_some_and(|uris| uris.contains(&json!("bad:")));
            match message["method"].as_str() {
                Some("subscriptions/listen") if is_bad => peer.refuse(&message, -32602).await,
                Some("subscriptions/listen") => acknowledge(&mut peer, &message).await,
                _ => {}
            }
        }
    })
    .await;
    let (a, bad, c) =
        tokio::join!(watch(&connection, "a:"), watch(&connection, "bad:"), watch(&connection, "c:"));
    assert!(matches!(&bad, Err(UpstreamError::Rpc(error)) if error.code == -32602), "{bad:?}");
    a.and(c).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_to_be_listened_to_is_asked_again_without_the_resource() {
    let (connection, events) = modern(async |mut peer: Peer| {
        peer.discovery(capabilities()).await;
        let (first, _) = listened(&mut peer).await;
        peer.refuse(&first, -32000).await;
        let (second, uris) = listened(&mut peer).await;
        assert_eq!(uris, ["a:"]);
        peer.refuse(&second, -32000).await;
        let (third, uris) = listened(&mut peer).await;
        assert!(uris.is_empty());
        acknowledge(&mut peer, &third).await;
        peer.send(about(&third, "notifications/tools/list_changed")).await;
        peer.next().await;
    })
    .await;
    assert!(matches!(watch(&connection, "a:").await, Err(UpstreamError::Rpc(_))));
    events.lists_changed().await;
}

#[tokio::test(start_paused = true)]
async fn the_lists_are_heard_of_even_if_a_watched_resource_is_refused_later() {
    let (again, mut heard_again) = tokio::sync::mpsc::channel(1);
    let (connection, events) = modern(move |mut peer: Peer| {
        let again = again.clone();
        async move {
            peer.discovery(capabilities()).await;
            let (first, _) = listened(&mut peer).await;
            acknowledge(&mut peer, &first).await;
            let (second, _) = listened(&mut peer).await;
            acknowledge(&mut peer, &second).await;
            peer.expect("notifications/cancelled").await;
            peer.answer(&second, json!({"resultType": "complete"})).await;
            let (third, uris) = listened(&mut peer).await;
            assert_eq!(uris, ["a:"]);
            peer.refuse(&third, -32602).await;
            let (fourth, uris) = listened(&mut peer).await;
            assert!(uris.is_empty());
            acknowledge(&mut peer, &fourth).await;
            // It is tried again with the resource, and this time it is taken.
            let (fifth, uris) = listened(&mut peer).await;
            assert_eq!(uris, ["a:"]);
            acknowledge(&mut peer, &fifth).await;
            peer.expect("notifications/cancelled").await;
            again.send(()).await.unwrap();
            peer.next().await;
        }
    })
    .await;
    watch(&connection, "a:").await.unwrap();
    // While no stream was open, something may have changed.
    events.lists_changed().await;
    heard_again.recv().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_the_older_era_that_was_given_up_is_asked_for_again() {
    let (connection, _events) = legacy(async |mut peer: Peer| {
        peer.handshake(capabilities()).await;
        peer.expect("resources/subscribe").await;
        peer.expect("notifications/cancelled").await;
        let second = peer.expect("resources/subscribe").await;
        peer.answer(&second, json!({})).await;
        let third = peer.expect("resources/unsubscribe").await;
        peer.answer(&third, json!({})).await;
        peer.next().await;
    })
    .await;
    let given_up = tokio::time::timeout(Duration::from_secs(1), watch(&connection, "a:")).await;
    assert!(given_up.is_err());
    watch(&connection, "a:").await.unwrap();
    // Now it is known, and nothing is asked.
    watch(&connection, "a:").await.unwrap();
    connection.watch("a:", false).await.unwrap();
}
