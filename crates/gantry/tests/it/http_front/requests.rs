//! Requests that are ambiguous, too big or too slow.

use super::{CALL, error, raw};
use gantry_testkit::TestDir;
use serde_json::json;

#[test]
fn srv_2_requests_that_two_readers_would_read_differently_are_refused() {
    let home = TestDir::new();
    let server = home.serve();
    let body = format!("\r\n\r\n{:x}\r\n{CALL}\r\n0\r\n\r\n", CALL.len());
    let post = "POST /api/v1/calls HTTP/1.1\r\nhost: HOST\r\ncontent-type: application/json\r\n";
    let length = CALL.len();
    let cases = [
        ("two hosts", "GET /healthz HTTP/1.1\r\nhost: HOST\r\nhost: HOST\r\n\r\n".to_owned()),
        ("no host", "GET /healthz HTTP/1.1\r\naccept: */*\r\n\r\n".to_owned()),
        (
            "another host in the address",
            "GET http://evil.test/healthz HTTP/1.1\r\nhost: HOST\r\n\r\n".to_owned(),
        ),
        (
            "another port in the address",
            "GET http://127.0.0.1:1/healthz HTTP/1.1\r\nhost: HOST\r\n\r\n".to_owned(),
        ),
        ("two lengths", format!("{post}content-length: {length}\r\ncontent-length: 2\r\n\r\n{CALL}")),
        ("two lengths in one", format!("{post}content-length: {length}, 2\r\n\r\n{CALL}")),
        ("a signed length", format!("{post}content-length: +{length}\r\n\r\n{CALL}")),
        ("an unknown coding", format!("{post}transfer-encoding: xchunked{body}")),
        ("a coding after chunks", format!("{post}transfer-encoding: chunked, identity{body}")),
        ("a space before the colon", format!("{post}content-length : {length}\r\n\r\n{CALL}")),
        ("a folded header", format!("{post}x-a: b\r\n c\r\ncontent-length: {length}\r\n\r\n{CALL}")),
        ("a NUL in a header", format!("{post}x-a: b\0c\r\ncontent-length: {length}\r\n\r\n{CALL}")),
        ("no method", "/healthz HTTP/1.1\r\nhost: HOST\r\n\r\n".to_owned()),
    ];
    for (what, request) in cases {
        let answer = raw(&server, &request);
        assert_eq!(answer.status, 400, "{what}: {answer:?}");
        assert!(!home.path().join("got-in.txt").exists(), "{what} was carried out");
    }
    assert_eq!(raw(&server, "GET http://HOST/healthz HTTP/1.1\r\nhost: HOST\r\n\r\n").status, 200);
    let whole = format!("{post}transfer-encoding: chunked{body}");
    assert_eq!(raw(&server, &whole).json()["ok"], true);
}

/// H4: hyper itself drops the length beside chunks before any gate can see it, so such a request is not refused. What
/// must hold is that nothing behind it is taken for a second request: it is the last one of its connection.
#[test]
fn srv_2_a_request_with_a_length_and_chunks_cannot_hide_another_one() {
    let home = TestDir::new();
    let server = home.serve();
    let hidden = format!(
        "POST /api/v1/calls HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{CALL}",
        server.address,
        CALL.len()
    );
    let length = format!("content-length: {}\r\n", hidden.len() + 5);
    let chunks = "transfer-encoding: chunked\r\n";
    for headers in [format!("{length}{chunks}"), format!("{chunks}{length}")] {
        let request = format!(
            "POST /api/v1/calls HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n{headers}\r\n0\r\n\r\n{hidden}",
            server.address
        );
        let mut connection = server.connect();
        connection.send(request.as_bytes()).expect("it listens");
        let answer = connection.answer().expect("an answer");
        assert_eq!(answer.status, 400, "{answer:?}");
        assert!(connection.is_closed(), "{headers} left the connection open");
    }
    assert_eq!(server.get("/api/v1/audit").json()["items"], json!([]));
    assert!(!home.path().join("got-in.txt").exists(), "the hidden request was carried out");
}

#[test]
fn srv_2_headers_that_are_too_big_or_too_many_are_refused() {
    let home = TestDir::new();
    let server = home.serve();
    let big = format!("GET /healthz HTTP/1.1\r\nhost: HOST\r\nx-big: {}\r\n\r\n", "a".repeat(1 << 20));
    assert_eq!(raw(&server, &big).status, 431);
    let many: String = (0..200).map(|n| format!("x-{n}: y\r\n")).collect();
    assert_eq!(raw(&server, &format!("GET /healthz HTTP/1.1\r\nhost: HOST\r\n{many}\r\n")).status, 431);
    let path = "a".repeat(100_000);
    assert_eq!(raw(&server, &format!("GET /{path} HTTP/1.1\r\nhost: HOST\r\n\r\n")).status, 414);
    let body = "x".repeat(8 * 1024 * 1024 + 1);
    let (status, code, message) = error(&server.post("/api/v1/calls", &body));
    assert_eq!((status, code.as_str()), (413, "INVALID_ARGUMENTS"));
    assert!(message.contains("8388608"), "{message}");
    assert_eq!(server.get("/healthz").status, 200);
}

#[test]
fn dur_2_clients_that_send_slowly_are_cut_off_and_others_are_served_meanwhile() {
    let home = TestDir::new();
    let server = home.serve();
    // H5: headers that never end. H6: a body that never comes.
    let (mut headers, mut body, mut silent) = (server.connect(), server.connect(), server.connect());
    headers.send(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-slow: ").expect("it listens");
    let start = "POST /api/v1/calls HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                 content-length: 100\r\n\r\n{\"tool\":";
    body.send(start.as_bytes()).expect("it listens");
    assert_eq!(server.get("/healthz").status, 200);
    assert!(headers.is_closed(), "slow headers are waited for");
    assert!(silent.is_closed(), "a connection without a request is waited for");
    let answer = body.answer().expect("an answer");
    let (status, _, message) = error(&answer);
    assert_eq!((status, message.as_str()), (408, "the body did not arrive in time"));
    assert_eq!(server.call("list_directory", &json!({ "path": "." })).json()["ok"], true);
}
