//! Answers that come packed.

use super::server::answer;
use super::*;

const GZIP: &str = "content-type: text/plain\r\ncontent-encoding: gzip\r\n";

/// Few bytes that unpack to so many times 258 letters.
fn bomb(times: usize) -> Vec<u8> {
    let mut bits: Vec<bool> = Vec::new();
    let mut push = |text: &str| bits.extend(text.bytes().map(|bit| bit == b'1'));
    // One block of fixed codes: a letter, then the longest run at distance one again and again, and the end.
    push("110");
    push("10010001");
    for _ in 0..times {
        push("1100010100000");
    }
    push("0000000");
    let byte = |bits: &[bool]| bits.iter().enumerate().fold(0, |byte, (n, bit)| byte | u8::from(*bit) << n);
    let head = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    head.into_iter().chain(bits.chunks(8).map(byte)).collect()
}

#[tokio::test]
async fn rst_1_what_is_packed_counts_as_what_it_unpacks_to() {
    // 160 kB that would be 26 MB.
    let packed = bomb(100_000);
    let server = Server::saying(answer("200 OK", GZIP, &packed)).await;
    let fault = failed(inline(Method::Get, server.url("/")), json!({})).await;
    assert_eq!(code(&fault), ("EXECUTION_ERROR", EffectState::None));
    assert!(fault.error.message.contains("longer than 16777216 bytes"), "{fault:?}");
    let server = Server::saying(answer("500 Oops", GZIP, &packed)).await;
    let details = failed(inline(Method::Get, server.url("/")), json!({})).await.error.details.unwrap();
    assert_eq!((&details["status"], &details["truncated"]), (&json!(500), &json!(true)));
    assert!(details.to_string().len() < 70_000);
    let mode = Streaming { max_bytes: 1000.into(), ..Streaming::unconfigured(StreamMode::Ndjson) };
    let server = Server::saying(answer("200 OK", GZIP, &packed)).await;
    let tool = Inline { streaming: Some(mode), ..inline(Method::Get, server.url("/")) };
    let output = called(tool, json!({})).await;
    assert_eq!(output, RawOutput::Json(r#"{"items":[],"truncated":"maxBytes"}"#.into()));
}

#[tokio::test]
async fn an_answer_that_cannot_be_unpacked_is_an_error_and_not_a_riddle() {
    let head = "content-type: application/json\r\ncontent-encoding: br\r\n";
    let server = Server::saying(answer("200 OK", head, b"\x8b\x00")).await;
    let fault = failed(inline(Method::Post, server.url("/")), json!({})).await;
    assert_eq!(code(&fault), ("EXECUTION_ERROR", EffectState::Possible));
    assert!(fault.error.message.contains("Accept-Encoding"), "{fault:?}");
    // What some services say about what is not packed.
    let head = "content-type: application/json\r\ncontent-encoding: utf-8\r\n";
    let server = Server::saying(answer("200 OK", head, "1")).await;
    assert_eq!(called(inline(Method::Get, server.url("/")), json!({})).await, RawOutput::Json("1".into()));
}
