//! Failures after a request that can change something was sent: it is never taken for one that was not.

use super::sending::pausing;
use super::server::answer;
use super::*;
use gantry_core::Effect;

const GZIP: &str = "content-encoding: gzip\r\n";
const NDJSON: &str = "content-type: application/x-ndjson\r\n";

/// What the pipeline must be able to see: something was sent, and the call is not one to try again.
#[track_caller]
fn is_sent(fault: &CallFailure, effect: EffectState, what: &str) {
    let (code, found) = code(fault);
    assert!(matches!(code, "OUTCOME_UNKNOWN" | "EXECUTION_ERROR"), "{what}: {fault:?}");
    assert_eq!(found, effect, "{what}: {fault:?}");
    assert!(!fault.error.message.contains("Nothing was sent"), "{what}: {fault:?}");
}

/// Calls a tool that can change something; its method may say otherwise.
async fn ended(method: Method, url: String) -> Result<RawOutput, CallFailure> {
    let tool = Inline { effect: Some(Effect::Destructive), ..inline(method, url) };
    let tools = InlineTools::new(&[tool], &pausing([1, 1])).unwrap();
    tools.execute(&cx(LIMIT), &permit(&tools, "t", &json!({}))).await
}

/// Answers that come to nothing.
fn answers() -> Vec<(&'static str, Vec<u8>)> {
    let raw = |text: &str| text.as_bytes().to_vec();
    let long = format!("HTTP/1.1 200 OK\r\nx-long: {}\r\n\r\n", "y".repeat(2_000_000));
    vec![
        ("silence", Vec::new()),
        ("half a head", raw("HTTP/1.1 200 OK\r\n")),
        ("no HTTP", raw("220 mail.test ESMTP\r\n\r\n")),
        ("a bad header", raw("HTTP/1.1 200 OK\r\nx y: \x00\r\n\r\n")),
        ("a head without end", long.into_bytes()),
        ("two lengths", raw("HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab")),
        ("half a body", raw("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf")),
        ("a bad piece", raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nab\r\n")),
        ("too much", ok("text/plain", vec![b'x'; (16 << 20) + 1])),
        ("a bad pack", answer("200 OK", GZIP, "this is not packed at all")),
        ("half a pack", answer("200 OK", GZIP, [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1])),
        ("another pack", answer("200 OK", "content-encoding: br\r\n", [0x8b, 0])),
        ("a stream that breaks", raw(&format!("HTTP/1.1 200 OK\r\n{NDJSON}content-length: 9\r\n\r\n"))),
        ("a protocol that was not asked for", answer("101 Switching Protocols", "upgrade: x\r\n", "")),
        ("a way to elsewhere", answer("302 Found", "location: http://10.0.0.1/x\r\n", "")),
        ("a way to another scheme", answer("302 Found", "location: mailto:nobody\r\n", "")),
        ("a way to no place", answer("302 Found", "location: http://[\r\n", "")),
        ("no way", answer("302 Found", "", "")),
        ("a circle", answer("302 Found", "location: /x#y\r\n", "")),
        ("late", answer("408 Request Timeout", "", "")),
        ("an error", answer("500 Internal Server Error", GZIP, "not packed")),
        ("an error of who stands between", answer("502 Bad Gateway", "", "")),
        ("no time", answer("503 Service Unavailable", "retry-after: 1\r\n", "")),
    ]
}

#[tokio::test]
async fn rst_1_a_request_that_was_sent_never_counts_as_unsent_for_any_answer() {
    for (what, said) in answers() {
        let server = Server::saying(said).await;
        for (n, method) in
            [Method::Get, Method::Put, Method::Delete, Method::Post, Method::Patch].into_iter().enumerate()
        {
            let fault = ended(method, server.url("/x")).await.unwrap_err();
            is_sent(&fault, EffectState::Possible, &format!("{method} {what}"));
            assert_eq!(server.asked().len(), n + 1, "{method} {what}");
        }
    }
    for status in ["401 Unauthorized", "404 Not Found", "429 Too Many Requests"] {
        let server = Server::saying(answer(status, "", "")).await;
        let fault = ended(Method::Put, server.url("/x")).await.unwrap_err();
        is_sent(&fault, EffectState::None, status);
        server.request();
    }
}

#[tokio::test]
async fn rst_1_what_was_answered_never_passes_for_what_was_not_sent_wherever_it_led() {
    let way = answer("302 Found", "location: /done\r\n", "");
    for (what, said) in answers().into_iter().chain([
        ("not there", answer("404 Not Found", "", "")),
        ("not allowed", answer("401 Unauthorized", "", "")),
    ]) {
        let way = way.clone();
        let server = Server::start(move |request| match request.starts_with("GET /x ") {
            true => way.clone(),
            false => said.clone(),
        })
        .await;
        is_sent(&ended(Method::Get, server.url("/x")).await.unwrap_err(), EffectState::Possible, what);
        let asked = server.asked();
        assert!(asked.len() == 2 && asked[1].starts_with("GET /done "), "{what}: {asked:?}");
    }
    // The client is gone.
    let server = Server::once(way.clone()).await;
    let fault = ended(Method::Get, server.url("/x")).await.unwrap_err();
    is_sent(&fault, EffectState::Possible, "nobody");
    assert_eq!(fault.error.code.as_str(), "OUTCOME_UNKNOWN");
    let message = &fault.error.message;
    assert!(message.contains("/done") && message.contains("look whether it has"), "{message}");
    server.request();
    let server = Server::once(way).await;
    let fault = failed(inline(Method::Get, server.url("/x")), json!({})).await;
    assert_eq!(code(&fault), ("EXECUTION_ERROR", EffectState::None));
    assert!(!fault.error.message.contains("Nothing was sent"), "{fault:?}");
}
