//! HTTP+SSE of 2024-11-05.

use super::{Seen, TIMEOUT, anyone, reached, read, until};
use crate::client::UpstreamError;
use crate::client::limits::{POST_WAIT, POSTS};
use crate::client::tests::fake::call;
use futures_util::future::join_all;
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// Plays a server; gives its address and what it got. Calls of `stuck` are refused with an error that never ends.
async fn play() -> (String, Seen) {
    let (out, queue) = mpsc::channel::<String>(8);
    let queue = Arc::new(Mutex::new(Some(queue)));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/sse", listener.local_addr().unwrap());
    let seen = Seen::default();
    let log = seen.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, out.clone(), queue.clone(), log.clone()));
        }
    });
    (url, seen)
}

async fn serve(
    stream: TcpStream,
    out: mpsc::Sender<String>,
    queue: Arc<Mutex<Option<mpsc::Receiver<String>>>>,
    log: Seen,
) {
    let mut stream = BufReader::new(stream);
    while let Some(got) = read(&mut stream).await {
        let (status, length) = match (&*got.verb, &*got.path) {
            ("GET", "/sse") => break,
            ("POST", "/messages?s=1") if got.body["params"]["name"] == "stuck" => (500, 100),
            ("POST", "/messages?s=1") => (202, 0),
            _ => (405, 0),
        };
        let result = match got.method() {
            "initialize" => json!({"protocolVersion": "2024-11-05", "capabilities": {}}),
            _ => json!({"ok": 1}),
        };
        if status == 202 && !got.body["id"].is_null() {
            out.send(json!({"jsonrpc": "2.0", "id": got.body["id"], "result": result}).to_string())
                .await
                .unwrap();
        }
        let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(answer.as_bytes()).await.unwrap_or_default();
        log.lock().unwrap().push(got);
        if status == 500 {
            // The client hangs up when it has had enough.
            stream.read_u8().await.unwrap_or_default();
        }
    }
    let head =
        "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\n\r\nevent: endpoint\ndata: /messages?s=1\n\n";
    stream.write_all(head.as_bytes()).await.unwrap_or_default();
    let Some(mut queue) = queue.lock().unwrap().take() else { return };
    while let Some(message) = queue.recv().await {
        stream.write_all(format!("event: message\ndata: {message}\n\n").as_bytes()).await.unwrap_or_default();
    }
}

#[tokio::test]
async fn a_server_of_the_first_version_is_met_over_its_stream() {
    let (url, _seen) = play().await;
    let connection = reached(&url).await.0.unwrap();
    assert_eq!(connection.info().version.as_str(), "2024-11-05");
    assert_eq!(call("a", anyone()).by(&connection).await.unwrap(), r#"{"ok":1}"#);
    connection.close().await;
}

#[tokio::test]
async fn errors_that_never_end_hold_up_other_requests_only_for_a_while() {
    let (url, seen) = play().await;
    let connection = reached(&url).await.0.unwrap();
    let stuck = join_all((0..POSTS).map(|_| call("stuck", anyone()).by(&connection)));
    let others = async {
        until(&seen, POSTS, |got| got.body["params"]["name"] == "stuck").await;
        // The heads of the answers are there; now the client waits for the rest.
        tokio::time::sleep(Duration::from_millis(200)).await;
        tokio::time::pause();
        tokio::time::advance(POST_WAIT).await;
        tokio::time::resume();
        tokio::time::timeout(TIMEOUT, call("a", anyone()).by(&connection)).await
    };
    let (outcomes, other) = tokio::join!(stuck, others);
    assert_eq!(other.expect("it has its turn").unwrap(), r#"{"ok":1}"#);
    assert!(
        outcomes.iter().all(|outcome| matches!(outcome, Err(UpstreamError::OutcomeUnknown(_)))),
        "{outcomes:?}"
    );
}
