//! Whose requests are let in: hosts, origins, and spellings of a path or method that would get around both.

use super::{CALL, error, get, raw};
use gantry_testkit::TestDir;
use http::Method;
use serde_json::json;

#[test]
fn srv_2_hosts_and_origins_that_are_not_ours_are_refused() {
    let home = TestDir::new();
    let server = home.serve();
    // H1: a foreign page in a browser of this machine.
    let port = server.address.port();
    for origin in
        ["https://evil.test", "null", "http://127.0.0.1.evil.test", "file://", "http://localhost@evil.test"]
    {
        for path in ["/mcp", "/api/v1/calls", "/"] {
            let answer = server.request(Method::POST, path, &[("origin", origin)], CALL);
            let (status, code, message) = error(&answer);
            assert_eq!((status, code.as_str()), (403, "PERMISSION_DENIED"), "{origin} {path}");
            assert!(message.contains("server.allowedOrigins"), "{message}");
            assert_eq!(answer.headers.get("access-control-allow-origin"), None);
        }
    }
    let own = format!("http://localhost:{port}");
    assert_eq!(get(&server, "/api/v1/tools", &[("origin", &own)]).status, 200);
    // H2: a name that an attacker's DNS points here.
    for host in ["evil.test", "localhost.evil.test", "127.0.0.1.evil.test:80", "127.0.0.2", "0.0.0.0", ""] {
        let answer = raw(&server, &format!("GET /api/v1/tools HTTP/1.1\r\nhost: {host}\r\n\r\n"));
        let (status, _, message) = error(&answer);
        assert_eq!(status, 403, "{host}");
        assert!(message.contains("server.allowedHosts"), "{message}");
    }
    // H15: a preflight gets no permission, neither for strangers nor for others.
    let preflight = [("origin", "https://evil.test"), ("access-control-request-method", "POST")];
    let answer = server.request(Method::OPTIONS, "/api/v1/calls", &preflight, "");
    assert_eq!(answer.status, 403);
    assert_eq!(answer.headers.get("access-control-allow-origin"), None);
    assert!(!home.path().join("got-in.txt").exists());
}

#[test]
fn srv_2_hosts_and_origins_of_the_configuration_are_let_in() {
    let home = TestDir::new()
        .config("server: { allowedHosts: [gantry.test], allowedOrigins: [\"https://app.test\"] }\n");
    let server = home.serve();
    let answer =
        raw(&server, "GET /healthz HTTP/1.1\r\nhost: Gantry.Test:80\r\norigin: https://app.test\r\n\r\n");
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer =
        raw(&server, "GET /healthz HTTP/1.1\r\nhost: gantry.test\r\norigin: https://app.test.evil\r\n\r\n");
    assert_eq!(answer.status, 403, "{answer:?}");
}

#[test]
fn srv_2_no_spelling_of_a_path_or_method_gets_around_the_gates() {
    let home = TestDir::new();
    let server = home.serve();
    // H16.
    for path in [
        "/mcp/../api/v1/audit/verify",
        "//api/v1/audit/verify",
        "/api/v1//audit/verify",
        "/api%2fv1%2faudit%2fverify",
        "/api/v1/audit/verify/",
        "/api/v1/audit/%76erify/..",
        "/API/v1/audit/verify",
        "/api/v1/audit/verify;a=b",
        "/mcp/other",
        "/mcp/default/agents",
        "/admin",
    ] {
        let answer = get(&server, path, &[]);
        assert_eq!(error(&answer).0, 404, "{path}: {answer:?}");
    }
    // H17: the method is the one in the first line.
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-06-18" } });
    let hello =
        server.request(Method::POST, "/mcp", &[("content-type", "application/json")], &hello.to_string());
    let session = hello.headers["mcp-session-id"].to_str().expect("text").to_owned();
    for name in ["x-http-method-override", "x-http-method", "x-method-override"] {
        let answer = server.request(Method::POST, "/api/v1/audit", &[(name, "GET")], "");
        assert_eq!(answer.status, 405, "{name}");
        assert_eq!(get(&server, "/api/v1/calls", &[(name, "POST")]).json()["items"], json!([]), "{name}");
        // As a GET it is refused for what it accepts; as a DELETE it would have ended the session.
        let wanted = [(name, "DELETE"), ("mcp-session-id", session.as_str()), ("accept", "application/json")];
        assert_eq!(get(&server, "/mcp", &wanted).status, 406, "{name}");
    }
    // H18: nor is the host another one because a header says so.
    assert_eq!(
        get(&server, "/healthz", &[("x-forwarded-host", "evil.test"), ("x-forwarded-proto", "https")]).status,
        200
    );
    let answer = raw(&server, "GET /healthz HTTP/1.1\r\nhost: evil.test\r\nx-forwarded-host: HOST\r\n\r\n");
    assert_eq!(answer.status, 403);
}
