//! What a server of the older era may ask, which client is asked, and the error that it gets when no client can answer.

use super::fake::{Call, Client, Peer, a_client, call, legacy};
use crate::exchange::{
    BoxFuture, Capabilities, ClientChannel, ClientRequest, ClientRequestError, ClientResponse, LogLevel,
    ServerNotification,
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

const FORM: &str = r#"{"elicitation":{}}"#;

/// What a server hears that asks this while a client's call is under way.
async fn heard(method: &'static str, client: Arc<Client>) -> Value {
    let (outcome, mut answers) = tokio::sync::mpsc::channel(1);
    let (connection, _events) = legacy(move |mut peer: Peer| {
        let outcome = outcome.clone();
        async move {
            peer.handshake(json!({})).await;
            let request = peer.expect("tools/call").await;
            peer.send(
                json!({"jsonrpc": "2.0", "id": "q1", "method": method, "params": {"message": "name?"}}),
            )
            .await;
            outcome.send(peer.next().await.unwrap()).await.unwrap();
            peer.answer(&request, json!({})).await;
            peer.next().await;
        }
    })
    .await;
    call("a", client).by(&connection).await.unwrap();
    answers.recv().await.unwrap()
}

#[tokio::test]
async fn a_question_is_passed_to_the_client_of_the_only_session() {
    let (client, _heard) = a_client(1, FORM, Ok(r#"{"action":"accept","content":{"n":1.0}}"#));
    let answer = heard("elicitation/create", client.clone()).await;
    assert_eq!((answer["id"].as_str(), answer["result"]["action"].as_str()), (Some("q1"), Some("accept")));
    let asked = client.asked.lock().unwrap();
    assert_eq!(asked[0].params, r#"{"message":"name?"}"#);
}

#[tokio::test]
async fn who_cannot_be_asked_is_not() {
    let refused = |answer: &Value| answer["error"]["code"] == -32601;
    let (client, _heard) = a_client(1, "{}", Ok("{}"));
    assert!(refused(&heard("elicitation/create", client.clone()).await));
    assert!(refused(&heard("sampling/createMessage", client.clone()).await));
    assert!(refused(&heard("nonsense", client).await));
    // Roots are declared to servers only where configured, even if the client has some.
    let (client, _heard) = a_client(1, r#"{"roots":{}}"#, Ok(r#"{"roots":[]}"#));
    assert!(refused(&heard("roots/list", client.clone()).await));
    assert_eq!(client.asked.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn a_form_that_is_not_filled_in_is_canceled() {
    for why in [ClientRequestError::Late, ClientRequestError::Gone] {
        let (client, _heard) = a_client(1, FORM, Err(why));
        assert_eq!(heard("elicitation/create", client).await["result"], json!({"action": "cancel"}));
    }
    let (client, _heard) = a_client(1, r#"{"sampling":{}}"#, Err(ClientRequestError::Late));
    assert_eq!(heard("sampling/createMessage", client).await["error"]["code"], -32603);
}

#[tokio::test]
async fn a_question_that_could_be_for_two_sessions_is_for_none() {
    let (outcome, mut answers) = tokio::sync::mpsc::channel(2);
    let (connection, _events) = legacy(move |mut peer: Peer| {
        let outcome = outcome.clone();
        async move {
            peer.handshake(json!({})).await;
            let ask = json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": {}});
            peer.send(&ask).await;
            outcome.send(peer.next().await.unwrap()).await.unwrap();
            let first = peer.expect("tools/call").await;
            let second = peer.expect("tools/call").await;
            peer.send(&ask).await;
            outcome.send(peer.next().await.unwrap()).await.unwrap();
            peer.answer(&first, json!({})).await;
            peer.answer(&second, json!({})).await;
            peer.next().await;
        }
    })
    .await;
    let (one, _heard) = a_client(1, FORM, Ok("{}"));
    let (two, _heard) = a_client(2, FORM, Ok("{}"));
    assert_eq!(answers.recv().await.unwrap()["error"]["code"], -32600);
    let (first, second) =
        tokio::join!(call("a", one.clone()).by(&connection), call("b", two.clone()).by(&connection));
    first.and(second).unwrap();
    assert_eq!(answers.recv().await.unwrap()["error"]["code"], -32600);
    assert!(one.asked.lock().unwrap().is_empty() && two.asked.lock().unwrap().is_empty());
}

/// A client that answers when the test says so.
#[derive(Debug)]
struct Thinker {
    client: Arc<Client>,
    go: CancellationToken,
}

impl ClientChannel for Thinker {
    fn capabilities(&self) -> &Capabilities {
        self.client.capabilities()
    }

    fn session(&self) -> u64 {
        self.client.session()
    }

    fn wants_progress(&self) -> bool {
        false
    }

    fn log_level(&self) -> Option<LogLevel> {
        None
    }

    fn notify(&self, _notice: ServerNotification) {}

    fn ask(
        &self,
        questions: Vec<ClientRequest>,
    ) -> BoxFuture<'_, Result<Vec<ClientResponse>, ClientRequestError>> {
        Box::pin(async move {
            self.go.cancelled().await;
            self.client.ask(questions).await
        })
    }
}

fn thinker() -> (Arc<Thinker>, CancellationToken) {
    let (client, _heard) = a_client(1, FORM, Ok(r#"{"action":"accept"}"#));
    let go = CancellationToken::new();
    (Arc::new(Thinker { client, go: go.clone() }), go)
}

fn thoughtful_call(thinker: &Arc<Thinker>) -> Call {
    Call { client: Arc::clone(thinker) as Arc<dyn ClientChannel>, ..call("a", Arc::clone(&thinker.client)) }
}

fn form() -> Value {
    json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {}})
}

#[tokio::test(start_paused = true)]
async fn a_question_without_a_request_outlives_the_newest_one_of_its_session() {
    let (connection, _events) = legacy(async |mut peer: Peer| {
        peer.handshake(json!({})).await;
        let first = peer.expect("tools/call").await;
        let second = peer.expect("tools/call").await;
        peer.send(form()).await;
        peer.answer(&second, json!({})).await;
        let answer = peer.next().await.unwrap();
        peer.answer(&first, answer["result"].clone()).await;
        peer.next().await;
    })
    .await;
    let (thinker, go) = thinker();
    let first = thoughtful_call(&thinker).by(&connection);
    let second = async {
        thoughtful_call(&thinker).by(&connection).await.unwrap();
        go.cancel();
    };
    let both = async { tokio::join!(first, second).0 };
    let first = Box::pin(timeout(Duration::from_secs(60), both)).await.expect("the question was dropped");
    assert_eq!(first.unwrap(), r#"{"action":"accept"}"#);
}

#[tokio::test(start_paused = true)]
async fn a_server_is_notified_that_its_question_was_withdrawn() {
    let (outcome, mut answers) = tokio::sync::mpsc::channel(1);
    let (connection, _events) = legacy(move |mut peer: Peer| {
        let outcome = outcome.clone();
        async move {
            peer.handshake(json!({})).await;
            let first = peer.expect("tools/call").await;
            let second = peer.expect("tools/call").await;
            peer.send(form()).await;
            peer.answer(&first, json!({})).await;
            peer.answer(&second, json!({})).await;
            outcome.send(peer.next().await.unwrap()).await.unwrap();
            peer.next().await;
        }
    })
    .await;
    let (thinker, _go) = thinker();
    let (first, second) =
        tokio::join!(thoughtful_call(&thinker).by(&connection), thoughtful_call(&thinker).by(&connection));
    first.and(second).unwrap();
    let answer = timeout(Duration::from_secs(60), answers.recv()).await.expect("the question was dropped");
    assert_eq!(answer, Some(json!({"jsonrpc": "2.0", "id": "q", "result": {"action": "cancel"}})));
}

#[tokio::test]
async fn a_question_that_its_server_withdrew_is_not_answered() {
    let (connection, _events) = legacy(async |mut peer: Peer| {
        peer.handshake(json!({})).await;
        let request = peer.expect("tools/call").await;
        peer.send(form()).await;
        peer.send(json!({"method": "notifications/cancelled", "params": {"requestId": "q"}})).await;
        peer.send(json!({"jsonrpc": "2.0", "id": "p", "method": "ping"})).await;
        let pong = peer.next().await.unwrap();
        peer.answer(&request, json!({"next": pong["id"]})).await;
        assert_eq!(peer.next().await, None);
    })
    .await;
    let (thinker, _go) = thinker();
    assert_eq!(thoughtful_call(&thinker).by(&connection).await.unwrap(), r#"{"next":"p"}"#);
    assert!(thinker.client.asked.lock().unwrap().is_empty());
}
