//! Requests of the newer era that come back with questions.

use super::fake::{Peer, a_client, call, modern};
use crate::client::UpstreamError;
use serde_json::{Value, json};

fn asks(questions: Value, state: Option<&str>) -> Value {
    let mut result = json!({"resultType": "input_required"});
    if !questions.is_null() {
        result["inputRequests"] = questions;
    }
    if let Some(state) = state {
        result["requestState"] = state.into();
    }
    result
}

#[tokio::test]
async fn questions_are_asked_and_their_answers_sent_with_the_state() {
    let (connection, _events) = modern(async |mut peer: Peer| {
        peer.discovery(json!({})).await;
        let first = peer.expect("tools/call").await;
        let meta = &first["params"]["_meta"];
        assert_eq!(
            meta["io.modelcontextprotocol/clientCapabilities"],
            json!({"elicitation": {}, "extensions": {"x": {}}})
        );
        assert_eq!(meta["io.modelcontextprotocol/logLevel"], "info");
        let question = json!({"method": "elicitation/create", "params": {"message": "?"}});
        peer.answer(&first, asks(json!({"k1": question, "k2": question}), Some("s\u{e9}1"))).await;
        let second = peer.expect("tools/call").await;
        assert_ne!(first["id"], second["id"]);
        assert_eq!(
            second["params"]["inputResponses"],
            json!({"k1": {"action": "accept"}, "k2": {"action": "accept"}})
        );
        assert_eq!(second["params"]["requestState"], "s\u{e9}1");
        assert_eq!(second["params"]["name"], "a");
        peer.answer(&second, asks(Value::Null, Some("s2"))).await;
        let third = peer.expect("tools/call").await;
        assert_eq!(third["params"]["requestState"], "s2");
        assert_eq!(third["params"].get("inputResponses"), None);
        peer.answer(&third, json!({"resultType": "task", "taskId": "t"})).await;
        peer.next().await;
    })
    .await;
    let (client, _heard) =
        a_client(1, r#"{"elicitation":{},"roots":{},"extensions":{"x":{}}}"#, Ok(r#"{"action":"accept"}"#));
    let result = call("a", client).by(&connection).await.unwrap();
    assert_eq!(result, r#"{"resultType":"task","taskId":"t"}"#);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_stops_asking_is_given_up() {
    let (connection, _events) = modern(async |mut peer: Peer| {
        peer.discovery(json!({})).await;
        while let Some(request) = peer.next().await {
            peer.answer(&request, asks(Value::Null, Some("again"))).await;
        }
    })
    .await;
    let (client, _heard) = a_client(1, "{}", Ok("{}"));
    let outcome = call("a", client).by(&connection).await;
    assert!(
        matches!(&outcome, Err(UpstreamError::OutcomeUnknown(reason)) if reason.contains("10 times")),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_is_not() {
    let (connection, _events) = modern(async |mut peer: Peer| {
        peer.discovery(json!({})).await;
        while let Some(request) = peer.next().await {
            let question = json!({"k": {"method": "sampling/createMessage", "params": {}}});
            peer.answer(&request, asks(question, None)).await;
        }
    })
    .await;
    let (client, _heard) = a_client(1, r#"{"elicitation":{}}"#, Ok("{}"));
    let outcome = call("a", client.clone()).by(&connection).await;
    let Err(UpstreamError::Rpc(error)) = outcome else { panic!("{outcome:?}") };
    assert_eq!(
        (error.code, error.data.as_deref()),
        (-32021, Some(r#"{"requiredCapabilities":{"sampling":{}}}"#))
    );
    assert!(client.asked.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_sent_after_the_first_round_is_lost_and_not_unsent() {
    let (connection, _events) = modern(async |mut peer: Peer| {
        peer.discovery(json!({})).await;
        let first = peer.expect("tools/call").await;
        peer.answer(&first, asks(Value::Null, Some("go on"))).await;
    })
    .await;
    let (client, _heard) = a_client(1, "{}", Ok("{}"));
    let outcome = call("a", client.clone()).by(&connection).await;
    assert!(matches!(outcome, Err(UpstreamError::OutcomeUnknown(_))), "{outcome:?}");
    // A first round that cannot be sent was not.
    let outcome = call("a", client).by(&connection).await;
    assert!(matches!(outcome, Err(UpstreamError::NotSent(_))), "{outcome:?}");
}
