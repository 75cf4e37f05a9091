//! Who may not come in: pages in a browser, and clients that use what belongs to another.

use super::{Door, Rig, Talk, faulty};
use gantry_testkit::Server;
use gantry_testkit::server::Answer;
use http::Method;
use serde_json::{Value, json};

type Headers<'a> = &'a [(&'a str, &'a str)];

const JSON: (&str, &str) = ("content-type", "application/json");
const EVENTS: (&str, &str) = ("accept", "text/event-stream");
const FIRST: &str = "/mcp/default/agents/first";
const SECOND: &str = "/mcp/default/agents/second";

fn rig() -> Rig {
    Rig::with_config(&json!({
        "mcpServers": { "one": faulty(&[]) },
        "agents": { "first": { "tools": ["one__*"] }, "second": { "tools": ["one__*"] } },
    }))
}

fn message(method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
}

/// The status of the answer to a request with these headers and no others.
fn status(server: &Server, start: &str, headers: Headers<'_>, body: &str) -> u16 {
    let mut text = format!("{start} HTTP/1.1\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
    let mut connection = server.connect();
    connection.send(text.as_bytes()).expect("it listens");
    connection.answer().expect("an answer").status
}

#[test]
fn srv_1_every_door_checks_host_and_origin() {
    let rig = rig();
    let session = rig.legacy();
    let session = session.way.seen().session.expect("a session");
    let sse = Talk::legacy(Door::Sse(&rig.server));
    let messages = format!("POST {}", sse.way.messages());
    let upgrade = [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("sec-websocket-protocol", "mcp"),
    ];
    let within = [("mcp-session-id", session.as_str()), EVENTS];
    let ping = message("ping", &json!({}));
    let doors: [(&str, Headers<'_>, &str, u16); 7] = [
        ("GET /sse", &[EVENTS], "", 200),
        (&messages, &[JSON], &ping, 202),
        ("GET /ws", &upgrade, "", 101),
        ("GET /ws/default/agents/first", &upgrade, "", 101),
        ("GET /mcp", &within, "", 200),
        ("POST /mcp", &[JSON, ("mcp-session-id", &session)], &ping, 200),
        ("DELETE /mcp", &within, "", 204),
    ];
    let address = rig.server.address.to_string();
    let port = rig.server.address.port();
    let (local, evil) = (format!("localhost:{port}"), format!("evil.test:{port}"));
    let (page, evil_page) = (format!("http://localhost:{port}"), format!("http://{evil}"));
    for (start, headers, body, good) in doors {
        let with = |more: &[(&str, &str)]| status(&rig.server, start, &[more, headers].concat(), body);
        for host in [evil.as_str(), "127.0.0.1.evil.test", "0.0.0.0", ""] {
            assert_eq!(with(&[("host", host)]), 403, "{start} with the host {host:?}");
        }
        for origin in ["https://evil.test", evil_page.as_str(), "null", "file://"] {
            assert_eq!(with(&[("host", &address), ("origin", origin)]), 403, "{start} from {origin:?}");
        }
        assert_eq!(with(&[]), 400, "{start} without a host");
        assert_eq!(with(&[("host", &local), ("host", &evil)]), 400, "{start} with two hosts");
        assert_eq!(with(&[("host", &local), ("origin", &page)]), good, "{start} as it should be");
    }
}

#[test]
fn srv_1_a_wrong_key_opens_no_door() {
    let rig = rig();
    for (start, headers) in [
        ("GET /sse", [EVENTS, EVENTS]),
        ("GET /ws", [("connection", "Upgrade"), ("upgrade", "websocket")]),
        ("GET /mcp", [EVENTS, ("mcp-session-id", "x")]),
        ("POST /messages?sessionId=x", [JSON, EVENTS]),
    ] {
        let address = rig.server.address.to_string();
        let wrong = [("host", address.as_str()), ("authorization", "Bearer wrong")];
        assert_eq!(status(&rig.server, start, &[&wrong[..], &headers[..]].concat(), ""), 401, "{start}");
    }
}

/// That this is the answer to every client that uses a session of another, or none.
#[track_caller]
fn is_unknown(answer: &Answer, what: &str) {
    assert_eq!(answer.status, 404, "{what}: {answer:?}");
    let error = &answer.json()["error"];
    assert_eq!(error["message"], "unknown or expired session; send initialize again", "{what}: {answer:?}");
}

#[test]
fn srv_1_a_session_of_another_agent_or_key_is_not_found() {
    let rig = rig();
    let mut owner = Talk::legacy(Door::Http(&rig.server, FIRST));
    let call = owner.begin_call("one__ask", &json!({ "text": "mine" }));
    let question = owner.hear("elicitation/create");
    let session = owner.way.seen().session.expect("a session");
    let key = format!("Bearer {}", rig.server.key);
    let within = ("mcp-session-id", session.as_str());
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "accept", "content": { "answer": "stolen" } } });
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": call } });
    let strangers: [(&str, Headers<'_>); 4] =
        [(SECOND, &[]), ("/mcp", &[]), ("/mcp/default", &[]), (FIRST, &[("authorization", &key)])];
    for (path, more) in strangers {
        let headers = [&[within, EVENTS], more].concat();
        let what = format!("{path} {}", more.len());
        for body in [message("tools/list", &json!({})), answer.to_string(), cancel.to_string()] {
            let headers = [&[within, JSON], more].concat();
            is_unknown(&rig.server.request(Method::POST, path, &headers, &body), &what);
        }
        is_unknown(&rig.server.request(Method::GET, path, &headers, ""), &what);
        is_unknown(&rig.server.request(Method::DELETE, path, &headers, ""), &what);
    }
    // The owner is none the wiser.
    owner.answer(&question, &json!({ "action": "accept", "content": { "answer": "mine" } }));
    assert!(owner.end_call(call).contains("mine"));
    assert_eq!(owner.tools().len(), Talk::legacy(Door::Http(&rig.server, FIRST)).tools().len());
}

#[test]
fn srv_1_the_address_for_messages_of_another_is_not_found() {
    let rig = rig();
    let mut owner = Talk::legacy(Door::Sse(&rig.server));
    let messages = owner.way.messages().to_owned();
    let key = format!("Bearer {}", rig.server.key);
    let call = message("tools/call", &json!({ "name": "one__journal", "arguments": { "text": "stolen" } }));
    is_unknown(
        &rig.server.request(Method::POST, &messages, &[JSON, ("authorization", &key)], &call),
        "with a key",
    );
    let session = rig.legacy().way.seen().session.expect("a session");
    let invented = "00000000000000000000000000000000";
    for id in [session.as_str(), invented, "", "..%2F..%2Fadmin"] {
        is_unknown(
            &rig.server.request(Method::POST, &format!("/messages?sessionId={id}"), &[JSON], &call),
            id,
        );
    }
    // Nor is such an address a session of streamable HTTP.
    let id = messages.split('=').nth(1).expect("an id");
    is_unknown(&rig.server.request(Method::POST, "/mcp", &[JSON, ("mcp-session-id", id)], &call), "at /mcp");
    assert_eq!(rig.server.post("/messages", &call).status, 400, "without an id");
    assert_eq!(owner.call("one__echo", &json!({ "text": "still mine" })), "still mine");
    assert_eq!(rig.journal(), [] as [&str; 0]);
    // With its stream goes its address.
    drop(owner);
    rig.server.eventually("the address is gone", || rig.server.post(&messages, &call).status == 404);
}

#[test]
fn srv_1_a_stream_is_resumed_by_its_own_session_only() {
    let rig = rig();
    let door = Door::Http(&rig.server, "/mcp");
    let (mut owner, stranger) = (Talk::legacy(door), Talk::legacy(door));
    owner.meta = "\"progressToken\":1".to_owned();
    owner.call("one__progress", &json!({ "steps": 3 }));
    let seen = owner.way.seen();
    // An event of the stream of that call: the first one has no message.
    let of_call: Vec<&String> = seen.events.iter().filter(|id| !id.contains("-0-")).collect();
    assert_eq!(of_call.len(), 5, "{seen:?}");
    let resume = |session: &str, event: &str| {
        let headers = [EVENTS, ("mcp-session-id", session), ("last-event-id", event)];
        rig.server.request(Method::GET, "/mcp", &headers, "")
    };
    let mine = seen.session.expect("a session");
    let replayed = resume(&mine, of_call[1]);
    assert_eq!(replayed.status, 200, "{replayed:?}");
    // The response is replayed; progress that was sent is not.
    assert!(replayed.text.contains("3 steps") && !replayed.text.contains("step 2"), "{replayed:?}");

    let theirs = stranger.way.seen().session.expect("a session");
    let tag = of_call[0].split('-').next().expect("a tag");
    for event in [of_call[0].as_str(), of_call[4], &format!("{tag}-0-0"), &format!("{theirs}-1-0"), "1", ""] {
        let nothing = resume(&theirs, event);
        assert_eq!(nothing.status, 400, "{event}: {nothing:?}");
        assert!(!nothing.text.contains("step"), "{event}: {nothing:?}");
    }
    // The session's own id is no key to its events, and an event no key to the session.
    is_unknown(&resume(tag, of_call[0]), "the tag of the events");
}
