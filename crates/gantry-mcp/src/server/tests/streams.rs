//! Streams of legacy sessions: what comes before an answer, what comes without one, and how a broken one is resumed.

use super::{Events, Fake, TestServer, answer, error_code, handshake, headers, post, shown};
use crate::client::ListKind;
use crate::exchange::LogLevel;
use crate::limits::{KEEP_ALIVE, SESSION_IDLE, STREAM_AFTER};
use crate::server::{Body, Change, body};
use bytes::Bytes;
use http::Response;
use tokio::time::Instant;

/// A call of `tell` that wants to hear of progress.
fn tell(id: u32) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"tell","_meta":{{"progressToken":"p\u0071"}}}}}}"#
    )
}

fn ask(rounds: u32) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"ask","arguments":{{"rounds":{rounds}}}}}}}"#
    )
}

fn get(server: &TestServer, identity: &'static str, sent: &[(&'static str, &str)]) -> Response<Body> {
    server.get(&headers(sent), &identity)
}

const PROGRESS: &str = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p\u0071","progress":1.10}}"#;
const X: &str = r#"{"jsonrpc":"2.0","method":"notifications/x","params":{}}"#;
const Y: &str = r#"{"jsonrpc":"2.0","method":"notifications/y","params":{}}"#;
const LOG: &str = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":2}}"#;

fn list_changed(kind: ListKind, provider: &str) -> Change {
    Change::ListChanged { kind, provider: provider.into() }
}

#[tokio::test]
async fn what_precedes_an_answer_makes_it_a_stream() {
    let server = Fake::full();
    let session = handshake(&server, "guest", "2025-11-25").await;
    let sent = [("mcp-session-id", session.as_str())];
    let mut events = Events::of(answer(&server, &sent, &tell(1)).await);
    let primer = events.frame().await.unwrap();
    assert!(primer.starts_with("id: ") && primer.ends_with("\nretry: 1000\ndata: \n\n"), "{primer:?}");
    assert_eq!(events.message().await, PROGRESS);
    // Nothing was said about the level, so info is where it begins.
    assert_eq!(events.message().await, LOG);
    assert_eq!(events.message().await, X);
    server.handler().gate.add_permits(1);
    assert_eq!(events.message().await, Y);
    let last = events.frame().await.unwrap();
    assert!(last.contains("\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":"), "{last}");
    assert_eq!(events.frame().await, None);
}

#[tokio::test]
async fn clients_that_take_no_events_get_only_the_answer() {
    let server = Fake::full();
    server.handler().gate.add_permits(9);
    let session = handshake(&server, "guest", "2025-11-25").await;
    let sent = [("mcp-session-id", session.as_str()), ("accept", "application/json")];
    assert!(post(&server, &sent, &tell(1)).await.contains("told"));
    assert!(post(&server, &sent, &ask(1)).await.contains("does not support elicitation/create"));
}

#[tokio::test]
async fn clients_before_2025_11_25_get_no_event_without_a_message() {
    let server = Fake::full();
    let session = handshake(&server, "guest", "2025-06-18").await;
    let mut events = Events::of(answer(&server, &[("mcp-session-id", &session)], &tell(1)).await);
    assert_eq!(events.message().await, PROGRESS);
}

#[tokio::test]
async fn a_broken_stream_is_resumed_with_the_answer_in_it() {
    let server = Fake::full();
    let session = handshake(&server, "guest", "2025-11-25").await;
    let sent = [("mcp-session-id", session.as_str())];
    let mut events = Events::of(answer(&server, &sent, &tell(1)).await);
    events.frame().await.unwrap();
    let (id, first) = events.next().await.unwrap();
    assert_eq!(first, PROGRESS);
    drop(events);
    // Hanging up is no cancellation, and the id is still taken.
    assert!(!server.handler().last_token().is_cancelled());
    assert_eq!(error_code(&post(&server, &sent, &tell(1)).await), -32600);
    server.handler().gate.add_permits(1);
    let resume = [("mcp-session-id", session.as_str()), ("last-event-id", id.as_str())];
    let rest = Events::of(get(&server, "guest", &resume)).rest().await;
    assert_eq!(rest.len(), 4, "{rest:?}");
    assert_eq!(rest[0], LOG);
    assert!(rest[3].contains("told"), "{rest:?}");
    // The response can be had again, as long as it is kept, but not the notifications; and the id of the request is free.
    assert_eq!(Events::of(get(&server, "guest", &resume)).rest().await, rest[3..]);
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert_eq!(error_code(&post(&server, &sent, ping).await), 0);
}

#[tokio::test]
async fn a_stream_has_one_reader() {
    let server = Fake::full();
    let session = handshake(&server, "guest", "2025-11-25").await;
    let mut events = Events::of(answer(&server, &[("mcp-session-id", &session)], &tell(1)).await);
    let (id, _) = events.next().await.unwrap();
    let mut second =
        Events::of(get(&server, "guest", &[("mcp-session-id", &session), ("last-event-id", &id)]));
    assert_eq!(events.frame().await, None);
    assert_eq!(second.message().await, PROGRESS);
}

#[tokio::test]
async fn a_stream_of_another_principal_is_not_resumed() {
    let server = Fake::full();
    let session = handshake(&server, "guest", "2025-11-25").await;
    let other = handshake(&server, "guest", "2025-11-25").await;
    let mut events = Events::of(answer(&server, &[("mcp-session-id", &session)], &tell(1)).await);
    let (id, _) = events.next().await.unwrap();
    // Another identity does not even find the session.
    let as_other = get(&server, "thief", &[("mcp-session-id", &session), ("last-event-id", &id)]);
    assert_eq!(as_other.status().as_u16(), 404);
    // Another session of the same identity has no such event.
    let elsewhere = get(&server, "guest", &[("mcp-session-id", &other), ("last-event-id", &id)]);
    assert_eq!(error_code(&shown(&elsewhere)), -32600);
    for made_up in ["", "1-1", "x", &format!("{id}9"), &id.replace('-', "")] {
        let response = get(&server, "guest", &[("mcp-session-id", &session), ("last-event-id", made_up)]);
        assert_eq!(response.status().as_u16(), 400, "{made_up}");
    }
}

#[tokio::test]
async fn a_get_without_a_session_is_not_allowed() {
    let server = Fake::full();
    assert_eq!(get(&server, "guest", &[]).status().as_u16(), 405);
    let session = handshake(&server, "guest", "2025-11-25").await;
    let sent = [("mcp-session-id", session.as_str()), ("accept", "application/json")];
    assert_eq!(get(&server, "guest", &sent).status().as_u16(), 406);
}

#[tokio::test]
async fn the_common_stream_tells_what_concerns_the_session() {
    let server = Fake::full();
    let session = handshake(&server, "guest", "2025-06-18").await;
    let sent = [("mcp-session-id", session.as_str())];
    let subscribe = r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"a:\u0062"}}"#;
    assert_eq!(error_code(&post(&server, &sent, subscribe).await), 0);
    let updated = |uri: &str| Change::Updated {
        provider: "p".into(),
        uri: uri.into(),
        params: format!(r#"{{"uri":"{uri}","x":1.10}}"#).into(),
    };
    let log = |level: LogLevel| Change::Log {
        provider: "p".into(),
        level,
        params: format!(r#"{{"level":"{}"}}"#, level.as_str()).into(),
    };
    let fake = server.handler();
    let mut events = Events::of(get(&server, "guest", &sent));
    fake.change(list_changed(ListKind::Tools, "secret"));
    fake.change(updated("a:c"));
    fake.change(log(LogLevel::Debug));
    fake.change(list_changed(ListKind::Templates, "p"));
    fake.change(updated("a:b"));
    fake.change(log(LogLevel::Info));
    fake.change(Change::ElicitationComplete {
        provider: "p".into(),
        params: r#"{"elicitationId":"1"}"#.into(),
    });
    for expected in [
        r#"{"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b","x":1.10}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"1"}}"#,
    ] {
        assert_eq!(events.message().await, expected);
    }
}

#[tokio::test]
async fn events_without_an_open_common_stream_are_sent_later() {
    let server = Fake::full();
    let session = handshake(&server, "guest", "2025-11-25").await;
    let sent = [("mcp-session-id", session.as_str())];
    server.handler().change(list_changed(ListKind::Tools, "p"));
    let mut events = Events::of(get(&server, "guest", &sent));
    let (_, primer) = events.next().await.unwrap();
    assert_eq!(primer, "");
    let (id, message) = events.next().await.unwrap();
    assert!(message.contains("tools/list_changed"));
    drop(events);
    server.handler().change(list_changed(ListKind::Prompts, "p"));
    let resume = [("mcp-session-id", session.as_str()), ("last-event-id", id.as_str())];
    let mut events = Events::of(get(&server, "guest", &resume));
    assert_eq!(events.message().await, "");
    assert!(events.message().await.contains("prompts/list_changed"));
    // More than the channel holds is sent as "everything may be another".
    drop(events);
    for _ in 0..20 {
        server.handler().change(list_changed(ListKind::Prompts, "secret"));
    }
    let mut events = Events::of(get(&server, "guest", &sent));
    assert_eq!(events.message().await, "");
    for kind in ["tools", "resources", "prompts"] {
        assert!(events.message().await.contains(kind));
    }
}

#[tokio::test]
async fn a_new_common_stream_takes_the_place_of_the_one_before() {
    let server = Fake::full();
    let session = handshake(&server, "guest", "2025-06-18").await;
    let sent = [("mcp-session-id", session.as_str())];
    let old = Events::of(get(&server, "guest", &sent));
    let mut new = Events::of(get(&server, "guest", &sent));
    assert!(old.rest().await.is_empty());
    server.handler().change(list_changed(ListKind::Tools, "p"));
    assert!(new.message().await.contains("tools/list_changed"));
}

#[tokio::test]
async fn streams_end_with_their_session_and_with_the_server() {
    let server = Fake::full();
    let session = handshake(&server, "guest", "2025-06-18").await;
    let events = Events::of(get(&server, "guest", &[("mcp-session-id", &session)]));
    let gone = server.delete(&headers(&[("mcp-session-id", &session)]), &"guest");
    assert_eq!(gone.status().as_u16(), 204);
    assert!(events.rest().await.is_empty());
    let session = handshake(&server, "guest", "2025-06-18").await;
    let events = Events::of(get(&server, "guest", &[("mcp-session-id", &session)]));
    server.close_streams();
    assert!(events.rest().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_session_with_an_open_stream_is_in_use() {
    let server = Fake::full();
    let session = handshake(&server, "guest", "2025-06-18").await;
    let sent = [("mcp-session-id", session.as_str())];
    let events = Events::of(get(&server, "guest", &sent));
    tokio::time::advance(SESSION_IDLE * 2).await;
    server.expire_idle();
    assert_eq!(server.inner.sessions.len(), 1);
    // From its end on, the time counts anew.
    drop(events);
    server.expire_idle();
    assert_eq!(server.inner.sessions.len(), 1);
    tokio::time::advance(SESSION_IDLE * 2).await;
    server.expire_idle();
    assert_eq!(server.inner.sessions.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_says_that_it_is_alive() {
    let server = Fake::full();
    let session = handshake(&server, "guest", "2025-06-18").await;
    let mut events = Events::of(get(&server, "guest", &[("mcp-session-id", &session)]));
    let before = Instant::now();
    assert_eq!(events.frame().await.unwrap(), ": alive\n\n");
    assert!(before.elapsed() >= KEEP_ALIVE);
    server.handler().change(list_changed(ListKind::Tools, "p"));
    assert!(events.message().await.contains("tools/list_changed"));
}

#[tokio::test]
async fn a_question_is_asked_on_the_stream_of_its_request() {
    let server = Fake::full();
    let session = handshake(&server, "guest", "2025-06-18").await;
    let sent = [("mcp-session-id", session.as_str())];
    let mut events = Events::of(answer(&server, &sent, &ask(1)).await);
    let schema = r#""requestedSchema":{"n":1.10}"#;
    for (id, key) in [(1, "name"), (2, "age")] {
        assert_eq!(
            events.message().await,
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"elicitation/create","params":{{"message":"{key} 0",{schema}}}}}"#
            )
        );
    }
    // An answer in another session, or with another id, answers no request.
    let other = handshake(&server, "guest", "2025-06-18").await;
    let accept = r#"{"jsonrpc":"2.0","id":1,"result":{"action":"accept","n":1.10}}"#;
    for (session, response) in [(&other, accept), (&session, &accept.replace("\"id\":1", "\"id\":\"x\""))] {
        assert_eq!(post(&server, &[("mcp-session-id", session)], response).await, "202");
    }
    let refuse = r#"{"jsonrpc":"2.0","id":2,"error":{"code":-7,"message":"no"}}"#;
    for response in [refuse, accept] {
        assert_eq!(post(&server, &sent, response).await, "202");
    }
    let result = events.message().await;
    assert!(result.contains(r#"{\"action\":\"accept\",\"n\":1.10}no (JSON-RPC error -7)"#), "{result}");
    assert_eq!(events.frame().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_question_without_an_answer_times_out() {
    let server = Fake::full();
    let session = handshake(&server, "guest", "2025-06-18").await;
    let events = Events::of(answer(&server, &[("mcp-session-id", &session)], &ask(1)).await);
    let rest = events.rest().await;
    assert!(rest.last().unwrap().contains("did not answer in time"), "{rest:?}");
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_is_not() {
    let server = Fake::full();
    let body = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"sampling":{}}}}"#;
    let response = answer(&server, &[], body).await;
    let session = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let heard = post(&server, &[("mcp-session-id", &session)], &ask(1)).await;
    assert!(heard.contains("the client does not support elicitation/create"), "{heard}");
}

#[tokio::test]
async fn the_level_of_log_messages_is_the_sessions() {
    let server = Fake::full();
    server.handler().gate.add_permits(9);
    let session = handshake(&server, "guest", "2025-06-18").await;
    let sent = [("mcp-session-id", session.as_str())];
    let level = |level: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":9,"method":"logging/setLevel","params":{{"level":"{level}"}}}}"#)
    };
    assert_eq!(error_code(&post(&server, &sent, &level("loud")).await), -32602);
    for (word, expected) in [("debug", 2), ("error", 1), ("critical", 0)] {
        assert_eq!(error_code(&post(&server, &sent, &level(word)).await), 0);
        let messages = Events::of(answer(&server, &sent, &tell(1)).await).rest().await;
        let logs = messages.iter().filter(|message| message.contains("notifications/message")).count();
        assert_eq!(logs, expected, "{word}");
    }
    let asked = server.handler().asked();
    assert_eq!(asked[0], r#"logging/setLevel {"level":"debug"}"#, "{asked:?}");
}

#[test]
fn an_event_is_one_line_of_data() {
    assert_eq!(body::message("{\n  \"a\":\r1\n}"), Bytes::from("event: message\ndata: {   \"a\": 1 }\n\n"));
}

#[tokio::test]
async fn who_names_events_first_gets_events() {
    let server = Fake::full();
    let session = handshake(&server, "guest", "2025-11-25").await;
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let events = [("mcp-session-id", session.as_str()), ("accept", "text/event-stream, application/json")];
    let mut events = Events::of(answer(&server, &events, list).await);
    assert!(
        events.frame().await.unwrap().starts_with("id: "),
        "a client that may come back is given an id first"
    );
    assert!(events.message().await.contains("\"tools\":["));
    assert_eq!(events.frame().await, None);
    let plain = [("mcp-session-id", session.as_str()), ("accept", "application/json, text/event-stream")];
    assert!(post(&server, &plain, list).await.starts_with("200 {"));
}

#[tokio::test(start_paused = true)]
async fn what_takes_long_becomes_a_stream_for_those_who_take_one() {
    let server = Fake::full();
    let session = handshake(&server, "guest", "2025-11-25").await;
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"gate"}}"#;
    let sent = [("mcp-session-id", session.as_str())];
    let begun = Instant::now();
    let mut events = Events::of(answer(&server, &sent, call).await);
    assert_eq!(begun.elapsed(), STREAM_AFTER);
    assert!(events.frame().await.unwrap().starts_with("id: "));
    server.handler().gate.add_permits(1);
    assert!(events.message().await.contains("through"));

    let second = call.replace("\"id\":1", "\"id\":2");
    let json_only = [("mcp-session-id", session.as_str()), ("accept", "application/json")];
    let later = async {
        tokio::time::sleep(STREAM_AFTER * 3).await;
        server.handler().gate.add_permits(1);
    };
    let (answered, ()) = tokio::join!(post(&server, &json_only, &second), later);
    assert!(answered.starts_with("200 {") && answered.contains("through"), "{answered}");
}
