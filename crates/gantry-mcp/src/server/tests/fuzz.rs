//! The server answers any input with a JSON-RPC response or with nothing.

use super::{Fake, TestServer, handshake, headers};
use crate::server::Body;
use bytes::Bytes;
use http::Response;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

/// Pieces that make a message likely to be almost right.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(r#""jsonrpc":"2.0""#.to_owned()),
        Just(r#""jsonrpc":"2.1""#.to_owned()),
        "\"id\":(1|-0|\"a\"|\"\\\\u0061\"|null|1\\.5|\\{\\}|99999999999999999999)",
        "\"method\":\"(initialize|ping|tools/list|tools/call|server/discover|notifications/cancelled|x)\"",
        "\"method\":\"(resources/(list|read|subscribe)|prompts/get|logging/setLevel|subscriptions/listen|tasks/get)\"",
        "\"params\":\\{\"(uri|name|level|taskId|requestState)\":\"(a|missing|debug)\",\"inputResponses\":(null|\\{\\})\\}",
        "\"params\":(\\{\\}|\\[\\]|null|\\{\"name\":\"(echo|rich|needy|boo)\",\"arguments\":\\{\"a\":[0-9]{1,25}\\}\\})",
        Just(r#""params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},"name":"rich"}"#.to_owned()),
        Just(r#""params":{"protocolVersion":"2025-03-26","requestId":1,"cursor":null}"#.to_owned()),
        "\"(result|error)\":[a-z0-9{}\"]{0,4}",
        "[ \\[\\]{},:\"a-z0-9\\\\]{0,6}",
    ]
}

fn object() -> impl Strategy<Value = String> {
    vec(piece(), 0..6).prop_map(|pieces| format!("{{{}}}", pieces.join(",")))
}

fn message() -> impl Strategy<Value = Vec<u8>> {
    let batch = vec(object(), 0..4).prop_map(|objects| format!("[{}]", objects.join(",")));
    prop_oneof![
        4 => object().prop_map(String::into_bytes),
        1 => batch.prop_map(String::into_bytes),
        1 => vec(any::<u8>(), 0..200),
    ]
}

fn is_answer(value: &Value) -> bool {
    let id = value.get("id");
    let id_fits = id.is_some_and(|id| id.is_null() || id.is_string() || id.is_number());
    let outcome = match (value.get("result"), value.get("error")) {
        (Some(result), None) => result.is_object() && !id.is_some_and(Value::is_null),
        (None, Some(error)) => error["code"].is_i64() && error["message"].is_string(),
        _ => false,
    };
    value["jsonrpc"] == "2.0" && id_fits && outcome
}

/// Whether a line or a body is an answer, or an array of them.
fn is_well_formed(text: &[u8]) -> bool {
    match serde_json::from_slice(text) {
        Ok(Value::Array(answers)) => !answers.is_empty() && answers.iter().all(is_answer),
        Ok(answer) => is_answer(&answer),
        Err(_) => false,
    }
}

fn check_response(response: &Response<Body>) {
    let Body::Whole(body) = response.body() else { panic!("a stream: {response:?}") };
    assert!(body.is_empty() == (response.status().as_u16() == 202), "{response:?}");
    assert!(body.is_empty() || is_well_formed(body), "{response:?}");
}

async fn check_http(server: &TestServer, body: &[u8]) {
    let session = handshake(server, "guest", "2025-03-26").await;
    for sent in [
        headers(&[]),
        headers(&[("mcp-session-id", &session)]),
        headers(&[
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "rich"),
        ]),
    ] {
        check_response(&server.post(&sent, &"guest", Bytes::copy_from_slice(body)).await);
    }
}

async fn check_stdio(server: &TestServer, input: &[u8]) {
    let (mut output, writer) = tokio::io::duplex(1 << 20);
    let mut said = Vec::new();
    let reading = tokio::io::AsyncReadExt::read_to_end(&mut output, &mut said);
    let (served, read) = tokio::join!(server.serve("guest", input, writer), reading);
    served.unwrap();
    read.unwrap();
    assert!(said.is_empty() || said.ends_with(b"\n"));
    for line in said.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        assert!(is_well_formed(line), "{}", String::from_utf8_lossy(line));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_input_gets_a_well_formed_answer_or_none(messages in vec(message(), 1..6)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let server = Fake::full();
            for message in &messages {
                check_http(&server, message).await;
            }
            check_stdio(&server, &messages.join(&b'\n')).await;
        });
    }
}
