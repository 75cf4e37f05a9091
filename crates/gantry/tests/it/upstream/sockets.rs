//! Servers behind sockets that close them, go away, and come back at the same address.

use super::{ROOM_KIB, Rig, kill, remote, with};
use gantry_testkit::faulty::{Faulty, Kind};
use serde_json::{Value, json};

fn entry(kind: Kind, server: &Faulty) -> Value {
    let word = match kind {
        Kind::Tcp => "tcp",
        Kind::Http => "http",
        Kind::Sse => "sse",
        Kind::Ws => "websocket",
        Kind::Stdio => "stdio",
    };
    remote(word, &server.url)
}

/// The same, watched closely: that the server behind HTTP is gone is found out by requests.
fn watched(kind: Kind, server: &Faulty) -> Value {
    with(entry(kind, server), &json!({ "healthCheck": { "intervalMs": 200, "timeoutMs": 1000 } }))
}

/// The socket is closed under a read and under a write; the server is there again for the next call.
#[track_caller]
fn survives_a_closed_socket(kind: Kind) {
    let journal = tempfile::NamedTempFile::new().expect("a file");
    let path = journal.path().to_str().expect("UTF-8");
    let server = Faulty::start(kind, &["--journal", path]);
    let closing = Faulty::start(kind, &["--journal", path, "--close-socket-on-call"]);
    let rig = Rig::of(&json!({
        "bad": entry(kind, &server),
        "closing": entry(kind, &closing),
        "good": super::stdio(&[]),
    }));
    ["bad", "closing", "good"].into_iter().for_each(|id| rig.ready(id));
    rig.while_good_works(|| {
        let read = rig.error("bad__hang_up", &json!({}), "EXECUTION_ERROR");
        assert_eq!(read["extras"]["effect"], "none", "{read}");
        let write = rig.error("closing__journal", &json!({ "text": "x" }), "OUTCOME_UNKNOWN");
        assert_eq!(write["extras"]["effect"], "possible", "{write}");
        rig.server.eventually("it answers again", || {
            rig.call("bad__echo", &json!({ "text": "back" }))["result"] == "back"
        });
    });
    let journal = std::fs::read_to_string(path).expect("the journal");
    assert_eq!(
        journal.lines().collect::<Vec<_>>(),
        ["hung up in hang-up", "hung up in journal"],
        "sent once"
    );
}

/// The process behind the socket ends; another one comes back at the same port.
#[track_caller]
fn comes_back_on_the_same_port(kind: Kind) {
    let server = Faulty::start(kind, &[]);
    let rig = Rig::beside_good(&watched(kind, &server));
    rig.ready("bad");
    let (port, tools) = (server.address.port(), rig.tools_of("bad"));
    rig.while_good_works(|| {
        drop(server);
        rig.down("bad");
        let failed = rig.error("bad__echo", &json!({ "text": "x" }), "UPSTREAM_UNAVAILABLE");
        assert_eq!(failed["extras"]["effect"], "none", "{failed}");
        let again = Faulty::start_at(kind, port, &[]);
        rig.ready("bad");
        assert_eq!(rig.tools_of("bad"), tools);
        assert_eq!(rig.result("bad__pid", &json!({})), again.pid().to_string());
    });
}

#[test]
fn ups_5_a_closed_tcp_connection_is_opened_again() {
    survives_a_closed_socket(Kind::Tcp);
}

#[test]
fn ups_5_a_closed_http_connection_is_opened_again() {
    survives_a_closed_socket(Kind::Http);
}

#[test]
fn ups_5_a_closed_sse_stream_is_opened_again() {
    survives_a_closed_socket(Kind::Sse);
}

#[test]
fn ups_5_a_closed_websocket_is_opened_again() {
    survives_a_closed_socket(Kind::Ws);
}

#[test]
fn ups_5_a_tcp_server_comes_back() {
    comes_back_on_the_same_port(Kind::Tcp);
}

#[test]
fn ups_5_an_http_server_comes_back() {
    comes_back_on_the_same_port(Kind::Http);
}

#[test]
fn ups_5_an_sse_server_comes_back() {
    comes_back_on_the_same_port(Kind::Sse);
}

#[test]
fn ups_5_a_websocket_server_comes_back() {
    comes_back_on_the_same_port(Kind::Ws);
}

#[test]
fn ups_5_a_message_that_is_too_long_fails_its_call_on_every_transport() {
    let kinds = [("tcp", Kind::Tcp), ("http", Kind::Http), ("sse", Kind::Sse), ("ws", Kind::Ws)];
    let servers = kinds.map(|(id, kind)| (id, kind, Faulty::start(kind, &[])));
    let entries = servers.iter().map(|(id, kind, server)| ((*id).to_owned(), entry(*kind, server)));
    let rig = Rig::of(&Value::Object(entries.collect()));
    servers.iter().for_each(|(id, ..)| rig.ready(id));
    let before = rig.peak_kib();
    for (id, ..) in &servers {
        let failed = rig.error(&format!("{id}__long_line"), &json!({ "mb": 50 }), "EXECUTION_ERROR");
        let message = failed["error"]["message"].as_str().expect("a message");
        assert!(message.contains("16777216"), "{id}: {message}");
        rig.server.eventually("it answers again", || {
            rig.call(&format!("{id}__echo"), &json!({ "text": "x" }))["result"] == "x"
        });
    }
    assert!(rig.peak_kib() < before + ROOM_KIB, "{} KiB after {before} KiB", rig.peak_kib());
}

#[test]
fn ups_5_a_session_that_the_server_forgot_is_begun_anew() {
    let server = Faulty::start(Kind::Http, &[]);
    let rig = Rig::beside_good(&entry(Kind::Http, &server));
    rig.ready("bad");
    assert_eq!(rig.result("bad__forget", &json!({})), "forgotten");
    rig.while_good_works(|| {
        rig.server.eventually("it answers again", || {
            rig.call("bad__echo", &json!({ "text": "back" }))["result"] == "back"
        });
    });
}

#[test]
fn ups_5_an_address_without_a_listener_is_down_until_there_is_one() {
    let port = Faulty::start(Kind::Http, &[]).address.port();
    let rig = Rig::beside_good(&remote("http", &format!("http://127.0.0.1:{port}/mcp")));
    let status = rig.down("bad");
    assert!(status["lastError"].as_str().is_some_and(|why| why.contains("refused")), "{status}");
    let server = Faulty::start_at(Kind::Http, port, &[]);
    rig.while_good_works(|| rig.ready("bad"));
    assert_eq!(rig.result("bad__pid", &json!({})), server.pid().to_string());
    kill(&server.pid().to_string());
}

#[test]
fn ups_5_a_server_behind_http_that_was_replaced_unnoticed_is_used_again() {
    for era in ["legacy", "modern"] {
        let server = Faulty::start(Kind::Http, &["--era", era]);
        let rig = Rig::beside_good(&entry(Kind::Http, &server));
        rig.ready("bad");
        assert_eq!(rig.result("bad__pid", &json!({})), server.pid().to_string());
        let port = server.address.port();
        drop(server);
        let again = Faulty::start_at(Kind::Http, port, &["--era", era]);
        let pid = again.pid().to_string();
        // The first call may find a connection that is broken; the next ones do not.
        rig.while_good_works(|| {
            rig.server.eventually("it answers again", || rig.call("bad__pid", &json!({}))["result"] == pid);
        });
        assert_eq!(rig.light("bad"), "green", "{era}");
    }
}
