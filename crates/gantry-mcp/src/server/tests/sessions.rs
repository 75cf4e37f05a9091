//! The life of an HTTP session: whose it is, how it ends, and what runs in it.

use super::{Fake, TestServer, error_code, handshake, headers, post, shown};
use crate::envelope::Id;
use crate::server::Options;
use crate::server::in_flight::InFlightRequests;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use std::sync::atomic::Ordering;
use std::time::Duration;

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const WAIT: &str = r#"{"jsonrpc":"2.0","id":"w","method":"tools/call","params":{"name":"wait"}}"#;

async fn ping(server: &TestServer, identity: &'static str, session: &str) -> u16 {
    let sent = headers(&[("mcp-session-id", session)]);
    server.post(&sent, &identity, Bytes::from_static(PING.as_bytes())).await.status().as_u16()
}

fn closed(server: &TestServer) -> usize {
    server.handler().closed.load(Ordering::SeqCst)
}

#[tokio::test]
async fn an_id_is_random_and_plain() {
    let server = Fake::server();
    let (first, second) =
        (handshake(&server, "a", "2025-11-25").await, handshake(&server, "a", "2025-11-25").await);
    assert_ne!(first, second);
    assert!(first.len() == 32 && first.bytes().all(|byte| byte.is_ascii_hexdigit()));
}

#[tokio::test]
async fn a_session_is_found_only_by_its_own_identity() {
    let server = Fake::server();
    let session = handshake(&server, "alice", "2025-11-25").await;
    assert_eq!(ping(&server, "alice", &session).await, 200);
    let foreign = server.post(&headers(&[("mcp-session-id", &session)]), &"bob", Bytes::from(PING)).await;
    let unknown = "0".repeat(32);
    let unknown = server.post(&headers(&[("mcp-session-id", &unknown)]), &"bob", Bytes::from(PING)).await;
    assert_eq!(shown(&foreign), shown(&unknown));
    assert_eq!(foreign.status(), StatusCode::NOT_FOUND);
    assert_eq!(
        server.delete(&headers(&[("mcp-session-id", &session)]), &"bob").status(),
        StatusCode::NOT_FOUND
    );
    assert_eq!(ping(&server, "alice", &session).await, 200);
}

#[tokio::test]
async fn ids_in_another_form_are_unknown() {
    let server = Fake::server();
    let session = handshake(&server, "a", "2025-11-25").await;
    let hyphenated = uuid::Uuid::try_parse(&session).unwrap().hyphenated().to_string();
    for id in ["", "x", "\u{e9}", &hyphenated, &format!("{{{session}}}")] {
        assert_eq!(ping(&server, "a", id).await, 404, "{id}");
    }
}

#[tokio::test]
async fn without_a_session_there_are_no_requests() {
    let server = Fake::server();
    for body in [PING, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#] {
        let answer = post(&server, &[], body).await;
        assert!(answer.starts_with("400 ") && error_code(&answer) == -32600, "{answer}");
    }
}

#[tokio::test]
async fn delete_ends_a_session_once() {
    let server = Fake::server();
    let session = handshake(&server, "guest", "2025-11-25").await;
    let sent = headers(&[("mcp-session-id", &session)]);
    assert_eq!(shown(&server.delete(&sent, &"guest")), "204");
    assert_eq!(server.delete(&sent, &"guest").status(), StatusCode::NOT_FOUND);
    assert_eq!(ping(&server, "guest", &session).await, 404);
    server.shutdown().await;
    assert_eq!(closed(&server), 1);
}

#[tokio::test]
async fn get_and_delete_without_a_session_are_not_allowed() {
    let server = Fake::server();
    for response in [server.get(&HeaderMap::new(), &"guest"), server.delete(&HeaderMap::new(), &"guest")] {
        assert_eq!(shown(&response), "405");
        assert_eq!(response.headers().get("allow").unwrap(), "GET, POST, DELETE");
    }
}

#[tokio::test]
async fn a_stale_id_does_not_prevent_a_new_handshake() {
    let server = Fake::server();
    let initialize =
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
    let chosen = "0123456789abcdef0123456789abcdef";
    let response =
        server.post(&headers(&[("mcp-session-id", chosen)]), &"guest", Bytes::from(initialize)).await;
    let given = response.headers().get("mcp-session-id").unwrap();
    assert_ne!(given, chosen);
    // With a live one, it is a second handshake.
    let sent = [("mcp-session-id", given.to_str().unwrap())];
    assert_eq!(error_code(&post(&server, &sent, initialize).await), -32600);
    assert_eq!(server.inner.sessions.len(), 1);
}

#[tokio::test]
async fn a_refused_handshake_opens_no_session() {
    let server = Fake::server();
    let initialize =
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
    let response = server.post(&HeaderMap::new(), &"stranger", Bytes::from(initialize)).await;
    assert_eq!(
        shown(&response),
        r#"200 {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"not for strangers"}}"#
    );
    assert!(!response.headers().contains_key("mcp-session-id"));
    assert_eq!(server.inner.sessions.len(), 0);
}

#[tokio::test]
async fn an_unknown_version_header_is_refused() {
    let server = Fake::server();
    let session = handshake(&server, "guest", "2025-11-25").await;
    for (version, expected) in [
        ("1900-01-01", "400"),
        ("9999-01-01", "400"),
        ("x", "400"),
        ("2025-06-18", "200"),
        ("2025-11-25", "200"),
    ] {
        let sent = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", version)];
        let answer = post(&server, &sent, PING).await;
        assert!(answer.starts_with(expected), "{version}: {answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_session_expires() {
    let server = Fake::server_with(&Options { session_idle: Duration::from_secs(60), ..Options::default() });
    let session = handshake(&server, "guest", "2025-11-25").await;
    let other = handshake(&server, "guest", "2025-11-25").await;
    for _ in 0..3 {
        tokio::time::advance(Duration::from_secs(50)).await;
        assert_eq!(ping(&server, "guest", &session).await, 200);
    }
    assert_eq!(ping(&server, "guest", &other).await, 404);
    server.expire_idle();
    assert_eq!(server.inner.sessions.len(), 1);
    tokio::time::advance(Duration::from_secs(61)).await;
    server.expire_idle();
    assert_eq!(server.inner.sessions.len(), 0);
    server.shutdown().await;
    assert_eq!(closed(&server), 2);
}

#[tokio::test(start_paused = true)]
async fn a_session_with_a_call_under_way_is_not_idle() {
    let server = Fake::server_with(&Options { session_idle: Duration::from_secs(60), ..Options::default() });
    let session = handshake(&server, "guest", "2025-11-25").await;
    let sent = [("mcp-session-id", session.as_str())];
    let meanwhile = async {
        server.handler().call_begun().await;
        tokio::time::advance(Duration::from_secs(3600)).await;
        server.expire_idle();
        post(
            &server,
            &sent,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"w"}}"#,
        )
        .await
    };
    let (answer, cancelled) = tokio::join!(post(&server, &sent, WAIT), meanwhile);
    assert_eq!(cancelled, "202");
    assert!(answer.contains("cancelled"), "{answer}");
    assert_eq!(ping(&server, "guest", &session).await, 200);
}

#[tokio::test(start_paused = true)]
async fn the_longest_idle_session_makes_room() {
    let server = Fake::server_with(&Options { max_sessions: 2, ..Options::default() });
    let mut sessions = Vec::new();
    for _ in 0..2 {
        sessions.push(handshake(&server, "guest", "2025-11-25").await);
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    assert_eq!(ping(&server, "guest", &sessions[0]).await, 200);
    tokio::time::advance(Duration::from_secs(1)).await;
    sessions.push(handshake(&server, "guest", "2025-11-25").await);
    let alive = [
        ping(&server, "guest", &sessions[0]).await,
        ping(&server, "guest", &sessions[1]).await,
        ping(&server, "guest", &sessions[2]).await,
    ];
    assert_eq!(alive, [200, 404, 200]);
    server.shutdown().await;
    assert_eq!(closed(&server), 3);
}

#[tokio::test(start_paused = true)]
async fn a_session_in_use_stays_when_another_can_make_room() {
    let server = Fake::server_with(&Options { max_sessions: 3, ..Options::default() });
    let mut sessions = Vec::new();
    for _ in 0..3 {
        sessions.push(handshake(&server, "guest", "2025-11-25").await);
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    // The oldest has a stream, the next a call, and the newest does nothing.
    let stream = server.get(&headers(&[("mcp-session-id", &sessions[0])]), &"guest");
    let sent = headers(&[("mcp-session-id", &sessions[1])]);
    let call = server.post(&sent, &"guest", Bytes::from(WAIT));
    let meanwhile = async {
        server.handler().call_begun().await;
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(ping(&server, "guest", &sessions[2]).await, 200);
        tokio::time::advance(Duration::from_secs(1)).await;
        sessions.push(handshake(&server, "guest", "2025-11-25").await);
        server.handler().last_token().cancel();
    };
    drop(tokio::join!(call, meanwhile));
    let mut alive = Vec::new();
    for session in &sessions {
        alive.push(ping(&server, "guest", session).await);
    }
    assert_eq!(alive, [200, 200, 404, 200]);
    drop(stream);
}

#[tokio::test(start_paused = true)]
async fn one_identity_does_not_take_the_sessions_of_others() {
    let server = Fake::server_with(&Options { max_sessions: 8, ..Options::default() });
    let quiet = handshake(&server, "quiet", "2025-11-25").await;
    let mut greedy = Vec::new();
    for _ in 0..20 {
        tokio::time::advance(Duration::from_secs(1)).await;
        greedy.push(handshake(&server, "greedy", "2025-11-25").await);
    }
    assert_eq!(server.inner.sessions.len(), 8);
    assert_eq!(ping(&server, "quiet", &quiet).await, 200);
    assert_eq!(ping(&server, "greedy", &greedy[12]).await, 404);
    assert_eq!(ping(&server, "greedy", &greedy[13]).await, 200);
    // An identity with less than its share gets room: the session that was idle for longest is closed.
    let newcomer = handshake(&server, "newcomer", "2025-11-25").await;
    assert_eq!(ping(&server, "greedy", &greedy[14]).await, 404);
    assert_eq!(
        (ping(&server, "quiet", &quiet).await, ping(&server, "newcomer", &newcomer).await),
        (200, 200)
    );
}

#[tokio::test(start_paused = true)]
async fn what_does_not_close_does_not_keep_the_server_from_stopping() {
    let server = Fake::server();
    server.in_background(std::future::pending());
    let stopped = tokio::time::timeout(Duration::from_secs(60), server.shutdown()).await;
    assert!(stopped.is_ok(), "the server waits for ever");
}

#[tokio::test]
async fn an_id_in_flight_cannot_be_used_twice() {
    let server = Fake::server();
    let session = handshake(&server, "guest", "2025-11-25").await;
    let other = handshake(&server, "guest", "2025-11-25").await;
    let sent = [("mcp-session-id", session.as_str())];
    let list = r#"{"jsonrpc":"2.0","id":"\u0077","method":"tools/list"}"#;
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"w"}}"#;
    let meanwhile = async {
        server.handler().call_begun().await;
        assert_eq!(error_code(&post(&server, &sent, list).await), -32600);
        // Another session may use the same id, and cannot cancel this one.
        assert_eq!(error_code(&post(&server, &[("mcp-session-id", &other)], list).await), 0);
        post(&server, &[("mcp-session-id", &other)], cancel).await;
        for unknown in ["5", "\"v\"", "null", "{}"] {
            post(&server, &sent, &cancel.replace("\"w\"", unknown)).await;
        }
        assert!(!server.handler().last_token().is_cancelled());
        post(&server, &sent, cancel).await;
    };
    let (answer, ()) = tokio::join!(post(&server, &sent, WAIT), meanwhile);
    assert!(answer.contains("cancelled"), "{answer}");
    assert_eq!(error_code(&post(&server, &sent, list).await), 0);
}

#[test]
fn requests_in_flight_are_bounded() {
    let in_flight = InFlightRequests::new(2);
    let begin = |id: &str| in_flight.begin(&Id::parse(id).unwrap());
    let first = begin("1").unwrap();
    let _second = begin("\"1\"").unwrap();
    assert_eq!(begin("2").unwrap_err().code, -32600);
    drop(first);
    assert!(begin("2").is_ok());
}

#[tokio::test]
async fn hanging_up_does_not_cancel_a_legacy_call() {
    let server = Fake::server();
    let session = handshake(&server, "guest", "2025-11-25").await;
    let sent = headers(&[("mcp-session-id", &session)]);
    tokio::select! {
        response = server.post(&sent, &"guest", Bytes::from(WAIT)) => panic!("{}", shown(&response)),
        () = server.handler().call_begun() => {}
    }
    assert!(!server.handler().last_token().is_cancelled());
    // The id is free again.
    let list = r#"{"jsonrpc":"2.0","id":"w","method":"tools/list"}"#;
    assert_eq!(error_code(&post(&server, &[("mcp-session-id", &session)], list).await), 0);
}
