//! Messages with a handshake, over HTTP: what is refused, what is echoed, what is passed through.

use super::{Fake, TOOLS, error_code, handshake, headers, post, said, shown};
use bytes::Bytes;
use std::fmt::Write as _;
use std::sync::atomic::Ordering;

/// The code that a body gets in a session of 2025-11-25, with its HTTP status.
async fn refusal(body: &str) -> (String, i64) {
    let server = Fake::server();
    let session = handshake(&server, "guest", "2025-11-25").await;
    let answer = post(&server, &[("mcp-session-id", &session)], body).await;
    (answer.get(..3).unwrap().to_owned(), error_code(&answer))
}

#[tokio::test]
async fn initialize_negotiates_a_known_version() {
    for (asked, given) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":"a","method":"initialize","params":{{"protocolVersion":"{asked}"}}}}"#
        );
        let expected = format!(
            r#"200 {{"jsonrpc":"2.0","id":"a","result":{{"protocolVersion":"{given}","capabilities":{{"tools":{{"listChanged":true}}}},"serverInfo":{{"name":"fake","version":"1"}},"instructions":"be \"kind\""}}}}"#
        );
        assert_eq!(post(&Fake::server(), &[], &body).await, expected);
    }
}

#[tokio::test]
async fn initialize_without_a_version_opens_nothing() {
    let server = Fake::server();
    let answer = post(&server, &[], r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#).await;
    assert_eq!(error_code(&answer), -32602);
    assert_eq!(server.inner.sessions.len(), 0);
}

#[tokio::test]
async fn the_first_requests_of_a_session_are_answered() {
    let server = Fake::server();
    let session = handshake(&server, "guest", "2025-11-25").await;
    let sent = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")];
    let rows = [
        (r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, "202".to_owned()),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            r#"200 {"jsonrpc":"2.0","id":1,"result":{}}"#.to_owned(),
        ),
        (
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
            format!(r#"200 {{"jsonrpc":"2.0","id":2,"result":{{"tools":{TOOLS}}}}}"#),
        ),
        (
            r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo"}}"#,
            format!(
                r#"200 {{"jsonrpc":"2.0","id":3,"result":{{"content":{},"isError":false}}}}"#,
                said("none")
            ),
        ),
    ];
    for (body, expected) in rows {
        assert_eq!(post(&server, &sent, body).await, expected);
    }
}

#[tokio::test]
async fn arguments_keep_their_exact_text() {
    let server = Fake::server();
    let session = handshake(&server, "guest", "2025-11-25").await;
    let arguments = r#"{ "z":1.10, "a":[ -0, 18446744073709551615,1E5 ], "\u006b":"\u00e9" }"#;
    let body = format!(
        r#"{{"params":{{"arguments":{arguments},"name":"\u0065cho"}},"method":"tools\/call","id":7,"jsonrpc":"2.0"}}"#
    );
    let expected = format!(
        r#"200 {{"jsonrpc":"2.0","id":7,"result":{{"content":{},"isError":false}}}}"#,
        said(arguments)
    );
    assert_eq!(post(&server, &[("mcp-session-id", &session)], &body).await, expected);
}

#[tokio::test]
async fn ids_are_echoed_with_their_text_and_type() {
    let server = Fake::server();
    let session = handshake(&server, "guest", "2025-11-25").await;
    let longest = format!("\"{}\"", "x".repeat(256));
    let ids = [
        "1",
        "\"1\"",
        "-5",
        "0",
        "-0",
        "9223372036854775807",
        "\"\"",
        "\"\\u0061/\\/\"",
        "\"é\"",
        longest.as_str(),
    ];
    for id in ids {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        let expected = format!(r#"200 {{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
        assert_eq!(post(&server, &[("mcp-session-id", &session)], &body).await, expected);
    }
}

#[tokio::test]
async fn what_is_not_a_message_is_refused_with_400() {
    let rows = [
        // J1, J4, J13: text that is no JSON.
        ("", -32700),
        (r#"{"jsonrpc":"2.0","id":1,"method":"pi"#, -32700),
        ("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", -32700),
        (r#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#, -32700),
        (r#"{"jsonrpc":"2.0","id":1e400,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"n":18446744073709551616}}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping"} {}"#, -32700),
        // J5: two meanings.
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","name":"boom"}}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","m\u0065thod":"tools/list"}"#, -32600),
        // J8: ids.
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1.0,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":9223372036854775808,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, -32600),
        // J10: the version of JSON-RPC.
        (r#"{"id":1,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#, -32600),
        // J11: parameters.
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"x"}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":[]}}"#, -32602),
        // Shapes.
        ("5", -32600),
        ("\"ping\"", -32600),
        ("null", -32600),
        ("{}", -32600),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":5}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#, -32600),
    ];
    for (body, code) in rows {
        assert_eq!(refusal(body).await, ("400".to_owned(), code), "{body}");
    }
}

#[tokio::test]
async fn a_readable_id_comes_back_with_the_refusal() {
    let server = Fake::server();
    let rows = [
        (r#"{"jsonrpc":"1.0","id":"q","method":"ping"}"#, "\"q\""),
        (r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":[]}"#, "4"),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, "null"),
        (r#"{"jsonrpc""#, "null"),
    ];
    for (body, id) in rows {
        let answer = post(&server, &[], body).await;
        assert!(answer.starts_with(&format!(r#"400 {{"jsonrpc":"2.0","id":{id},"error":{{"#)), "{answer}");
    }
}

#[tokio::test]
async fn large_and_deep_input_is_refused_without_harm() {
    let deep_array = "[".repeat(100_000);
    let deep_arguments = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{}1{}}}"#,
        r#"{"a":"#.repeat(200),
        "}".repeat(200)
    );
    let long_id = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#, "x".repeat(10_240));
    assert_eq!(refusal(&deep_array).await.1, -32700);
    assert_eq!(refusal(&deep_arguments).await.1, -32700);
    assert_eq!(refusal(&long_id).await.1, -32600);
}

#[tokio::test]
async fn unknown_methods_and_wrong_parameters_are_errors_with_200() {
    let rows = [
        (r#""method":"prompts/list""#.to_owned(), -32601),
        (r#""method":"__proto__""#.to_owned(), -32601),
        (r#""method":"a\u0000\n""#.to_owned(), -32601),
        (format!(r#""method":"{}""#, "m".repeat(1_000_000)), -32601),
        (r#""method":"tools/list","params":{"cursor":""}"#.to_owned(), -32602),
        (r#""method":"tools/list","params":{"cursor":"x"}"#.to_owned(), -32602),
        (r#""method":"tools/list","params":{"cursor":null}"#.to_owned(), 0),
        (r#""method":"tools/call""#.to_owned(), -32602),
        (r#""method":"tools/call","params":{"name":5}"#.to_owned(), -32602),
        (r#""method":"tools/call","params":{"name":"nope"}"#.to_owned(), -32602),
        (format!(r#""method":"tools/call","params":{{"name":"{}"}}"#, "n".repeat(257)), -32602),
        (r#""method":"tools/call","params":{"name":"echo","arguments":[]}"#.to_owned(), -32602),
        (r#""method":"tools/call","params":{"name":"echo","arguments":null}"#.to_owned(), 0),
        (r#""method":"tools/call","params":{"name":"boom"}"#.to_owned(), -32603),
        (r#""method":"initialize","params":{"protocolVersion":"2025-11-25"}"#.to_owned(), -32600),
    ];
    for (rest, code) in rows {
        let refused = refusal(&format!(r#"{{"jsonrpc":"2.0","id":1,{rest}}}"#)).await;
        assert_eq!(refused, ("200".to_owned(), code), "{}", crate::envelope::cut(&rest, 100));
    }
}

#[tokio::test]
async fn a_long_method_is_not_repeated_in_full() {
    let server = Fake::server();
    let session = handshake(&server, "guest", "2025-11-25").await;
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, "m".repeat(1_000_000));
    assert!(post(&server, &[("mcp-session-id", &session)], &body).await.len() < 400);
}

#[tokio::test]
async fn results_are_cut_to_what_the_version_knows() {
    let object = r#"{"n":1.10}"#;
    for (version, structured) in [
        ("2024-11-05", ""),
        ("2025-03-26", ""),
        ("2025-06-18", r#","structuredContent":{"n":1.10}"#),
        ("2025-11-25", r#","structuredContent":{"n":1.10}"#),
    ] {
        let server = Fake::server();
        let session = handshake(&server, "guest", version).await;
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"rich","arguments":{object}}}}}"#
        );
        let expected = format!(
            "200 {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"content\":[\n  {{\"type\":\"text\",\"text\":\"1.10\"}}\r\n]{structured},\"isError\":false,\"_meta\":{{\"b/x\":1e2,\"a\":[ 1 ]}}}}}}"
        );
        assert_eq!(post(&server, &[("mcp-session-id", &session)], &body).await, expected, "{version}");
    }
}

#[tokio::test]
async fn batches_exist_only_in_their_version() {
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let batch = format!("[{ping}]");
    for version in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let server = Fake::server();
        let session = handshake(&server, "guest", version).await;
        let answer = post(&server, &[("mcp-session-id", &session)], &batch).await;
        assert!(answer.starts_with("400 ") && error_code(&answer) == -32600, "{answer}");
    }
    let answer = post(&Fake::server(), &[], &batch).await;
    assert!(answer.starts_with("400 ") && error_code(&answer) == -32600, "{answer}");
}

#[tokio::test]
async fn a_batch_is_answered_as_one_array() {
    let server = Fake::server();
    let session = handshake(&server, "guest", "2025-03-26").await;
    let sent = [("mcp-session-id", session.as_str())];
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let pong = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(
        post(&server, &sent, &format!(" [{ping} ,{note}, {ping}]")).await,
        format!("200 [{pong},{pong}]")
    );
    assert_eq!(post(&server, &sent, &format!("[{note},{note}]")).await, "202");
    assert_eq!(
        post(&server, &sent, &format!("[{}]", vec![ping; 50].join(","))).await.matches(pong).count(),
        50
    );
    assert_eq!(error_code(&post(&server, &sent, &format!("[{}]", vec![ping; 51].join(","))).await), -32600);
    assert_eq!(error_code(&post(&server, &sent, "[]").await), -32600);

    let mixed = post(&server, &sent, r#"[7,[],{"jsonrpc":"2.0","id":2,"method":"initialize"}]"#).await;
    let answers: Vec<serde_json::Value> = serde_json::from_str(mixed.get(4..).unwrap()).unwrap();
    let mut codes = String::new();
    for answer in answers {
        write!(codes, "{} {}; ", answer["id"], answer["error"]["code"]).unwrap();
    }
    assert_eq!(codes, "null -32600; null -32600; 2 -32600; ");
}

#[tokio::test]
async fn the_responses_of_a_batch_are_received_together() {
    let server = Fake::server();
    let received = || server.handler().received.load(Ordering::SeqCst);
    let session = handshake(&server, "guest", "2025-03-26").await;
    let sent = [("mcp-session-id", session.as_str())];
    let kept =
        |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"kept"}}}}"#);
    let batch = format!("[{},{}]", kept(1), kept(2));
    let one_by_one = async {
        server.handler().call_begun().await;
        server.handler().gate.add_permits(1);
        server.handler().call_begun().await;
        assert_eq!(received(), 0, "the first response waits for the second");
        server.handler().gate.add_permits(1);
    };
    let (answer, ()) = tokio::join!(post(&server, &sent, &batch), one_by_one);
    assert_eq!((answer.matches("kept").count(), received()), (2, 2));
}

#[tokio::test]
async fn answers_without_a_request_are_dropped_and_counted() {
    let server = Fake::server();
    let session = handshake(&server, "guest", "2025-11-25").await;
    let sent = [("mcp-session-id", session.as_str())];
    assert_eq!(post(&server, &sent, r#"{"jsonrpc":"2.0","id":9,"result":{}}"#).await, "202");
    assert_eq!(post(&server, &sent, r#"{"jsonrpc":"2.0","id":null,"error":{"code":1}}"#).await, "202");
    let answer = post(&server, &[], r#"{"jsonrpc":"2.0","id":9,"result":{}}"#).await;
    assert!(answer.starts_with("400 "), "{answer}");
}

#[tokio::test]
async fn media_types_are_checked_leniently() {
    let server = Fake::server();
    let session = handshake(&server, "guest", "2025-11-25").await;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let rows = [
        ("accept", "*/*", "200"),
        ("accept", "application/json, text/event-stream", "200"),
        ("accept", "text/html, Application/*;q=0.8", "200"),
        ("accept", "text/event-stream", "406"),
        ("accept", "text/html", "406"),
        ("content-type", "application/json; charset=utf-8", "200"),
        ("content-type", "text/plain", "415"),
        ("content-type", "application/x-www-form-urlencoded", "415"),
    ];
    for (name, value, status) in rows {
        let answer = post(&server, &[("mcp-session-id", &session), (name, value)], ping).await;
        assert!(answer.starts_with(status), "{name}: {value} → {answer}");
    }
}

#[tokio::test]
async fn a_body_that_is_not_utf8_is_refused() {
    let response =
        Fake::server().post(&headers(&[]), &"guest", Bytes::from_static(b"{\"a\":\"\xff\"}")).await;
    assert_eq!(
        shown(&response),
        r#"400 {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"not UTF-8 at byte 6; send the message as UTF-8 text"}}"#
    );
}
