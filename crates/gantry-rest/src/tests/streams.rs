//! Answers that come in pieces, and where reading them ends.

use super::server::{HANGING, open};
use super::*;
use gantry_provider::BoxFuture;
use gantry_provider::client::{
    Capabilities, ClientChannel, ClientRequest, ClientRequestError, ClientResponse, LogLevel,
    ServerNotification,
};
use std::sync::Mutex;
use std::time::Duration;

fn streaming(mode: StreamMode) -> Option<Streaming> {
    limited(mode, 20_000, 1 << 22)
}

fn limited(mode: StreamMode, timeout: u64, max_bytes: u64) -> Option<Streaming> {
    let (timeout, max_bytes) = (Duration::from_millis(timeout).into(), max_bytes.into());
    Some(Streaming { timeout, max_bytes, ..Streaming::unconfigured(mode) })
}

async fn read(said: Vec<u8>, streaming: Option<Streaming>) -> Result<RawOutput, CallFailure> {
    let server = Server::saying(said).await;
    call(Inline { streaming, ..inline(Method::Get, server.url("/")) }, json!({})).await
}

#[track_caller]
fn json_of(output: Result<RawOutput, CallFailure>) -> Value {
    let Ok(RawOutput::Json(text)) = output else { panic!("{output:?}") };
    serde_json::from_str(&text).unwrap()
}

fn tokens(line_prefix: &str) -> Option<Streaming> {
    let line_prefix = Some(line_prefix.to_owned());
    streaming(StreamMode::JsonStream).map(|streaming| Streaming { line_prefix, ..streaming })
}

#[tokio::test]
async fn rst_1_json_in_lines_becomes_a_list() {
    let lines = "{\"n\":1.10}\r\n\n[2]\n\"ä\"";
    let output = read(open("application/x-ndjson", lines), None).await;
    assert_eq!(output.unwrap(), RawOutput::Json(r#"[{"n":1.10},[2],"ä"]"#.into()));
    let sequence = "\u{1e}{\n\"n\":1}\n\u{1e}2\n";
    let text = read(open("application/json-seq", sequence), None).await;
    assert_eq!(text.unwrap(), RawOutput::Text(sequence.into()), "a sequence is read as text");
    let said = open("application/json", "1\n2\n[DONE]\n3\n");
    assert_eq!(json_of(read(said, streaming(StreamMode::Ndjson)).await), json!([1, 2]));
}

#[tokio::test]
async fn rst_1_events_become_a_list() {
    let events = ": hello\nevent: a\nid: 7\ndata: {\"n\":\ndata: 1}\n\ndata: plain\n\nretry: 5\n\ndata: [DONE]\n\ndata: 9\n\n";
    let expected = json!([{ "event": "a", "id": "7", "data": { "n": 1 } }, { "data": "plain" }]);
    assert_eq!(json_of(read(open("text/event-stream", events), None).await), expected);
    // The last event may lack its end; and what is no stream at all is read as what it is.
    let last = read(open("text/event-stream", "data: 1\n\ndata: 2"), streaming(StreamMode::Sse)).await;
    assert_eq!(json_of(last), json!([{ "data": 1 }, { "data": 2 }]));
    let whole = read(ok("application/json", r#"{"a":1}"#), streaming(StreamMode::Sse)).await;
    assert_eq!(json_of(whole), json!({ "a": 1 }));
}

#[tokio::test]
async fn rst_1_an_answer_is_put_together_from_tokens() {
    let lines = "data: {\"type\":\"token\",\"content\":\"Hel\"}\n\n: x\nevent: y\ndata: {\"type\":\"other\"}\ndata: {\"type\":\"token\",\"content\":\"lo\"}\ndata: [DONE]\n";
    let text = read(open("text/event-stream", lines), tokens("data: ")).await;
    assert_eq!(text.unwrap(), RawOutput::Text("Hello".into()));
    let done = format!(
        "{lines}data: {{\"type\":\"done\",\"answer\":\"Bye\"}}\ndata: {{\"type\":\"token\",\"content\":\"!\"}}\n"
    );
    let text = read(open("text/event-stream", done), tokens("data: ")).await;
    assert_eq!(text.unwrap(), RawOutput::Text("Bye".into()));
    let value = "{\"type\":\"done\",\"answer\":{\"a\":[1]}}";
    assert_eq!(json_of(read(open("application/json", value), tokens("")).await), json!({ "a": [1] }));
    let silent = read(open("text/plain", "nothing\nof this\n"), tokens("")).await.unwrap_err();
    assert!(silent.error.message.contains("begins with \"nothing\""), "{silent:?}");
}

#[tokio::test]
async fn rst_1_at_a_limit_what_came_is_the_result_and_says_so() {
    let hanging = [open("application/x-ndjson", "1\n2"), HANGING.to_vec()].concat();
    let limits = |timeout, max_bytes| limited(StreamMode::Ndjson, timeout, max_bytes);
    let slow = json_of(read(hanging.clone(), limits(1500, 1 << 20)).await);
    assert_eq!(slow, json!({ "items": [1, 2, "#hanging"], "truncated": "timeout" }));
    let long = json_of(read(open("application/x-ndjson", "11\n22\n33\n"), limits(20_000, 7)).await);
    assert_eq!(long, json!({ "items": [11, 22], "truncated": "maxBytes" }));
    let many = json_of(read(open("application/x-ndjson", "1\n".repeat(10_001)), None).await);
    assert_eq!((many["items"].as_array().unwrap().len(), &many["truncated"]), (10_000, &json!("maxItems")));
    let exact = json_of(read(open("application/x-ndjson", "1\n".repeat(10_000)), None).await);
    assert_eq!(exact.as_array().unwrap().len(), 10_000);
    let half = open("text/plain", "{\"type\":\"token\",\"content\":\"Hel\"}\n");
    let cut = [half, HANGING.to_vec()].concat();
    let text = read(cut, limited(StreamMode::JsonStream, 1500, 1000)).await.unwrap();
    assert_eq!(text, RawOutput::Text("Hel\n\n[The answer is not complete: timeout]".into()));
}

#[tokio::test]
async fn a_line_that_is_no_json_is_a_text_and_a_stream_that_breaks_is_given_back() {
    let output = json_of(read(open("application/x-ndjson", "1\nnon\"sense\n2\n"), None).await);
    assert_eq!(output, json!([1, "non\"sense", 2]));
    let broken = b"HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\ncontent-length: 99\r\n\r\n1\n2\n";
    let output = json_of(read(broken.to_vec(), None).await);
    assert_eq!(output, json!({ "items": [1, 2], "truncated": "connection" }));
}

/// A client that wants to hear of progress.
#[derive(Debug, Default)]
struct Listener {
    capabilities: Capabilities,
    heard: Mutex<Vec<String>>,
}

impl ClientChannel for Listener {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn session(&self) -> u64 {
        1
    }

    fn wants_progress(&self) -> bool {
        true
    }

    fn log_level(&self) -> Option<LogLevel> {
        None
    }

    fn notify(&self, notice: ServerNotification) {
        let ServerNotification::Progress(params) = notice else { panic!("{notice:?}") };
        self.heard.lock().unwrap().push(params.to_string());
    }

    fn ask(&self, _: Vec<ClientRequest>) -> BoxFuture<'_, Result<Vec<ClientResponse>, ClientRequestError>> {
        Box::pin(std::future::ready(Err(ClientRequestError::Gone)))
    }
}

#[tokio::test]
async fn a_client_that_wants_to_hears_how_far_a_stream_has_come() {
    let server = Server::saying(open("application/x-ndjson", "1\n2\n3\n")).await;
    let tools = InlineTools::new(&[inline(Method::Get, server.url("/"))], &client()).unwrap();
    let listener = Arc::new(Listener::default());
    let cx = CallContext { client: listener.clone(), ..cx(LIMIT) };
    tools.execute(&cx, &permit(&tools, "t", &json!({}))).await.unwrap();
    let heard = listener.heard.lock().unwrap().clone();
    assert_eq!(heard.first().map(String::as_str), Some(r#"{"progress":3,"message":"3 items, 6 bytes"}"#));
}
