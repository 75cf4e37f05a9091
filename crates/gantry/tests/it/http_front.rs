//! The HTTP front: requests that no honest client sends, who may see what, and the shapes of every answer.

use gantry_testkit::server::{Answer, send};
use gantry_testkit::{Home, Server};
use http::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Sends a request as bytes and reads the one answer to it; `HOST` stands for the right host.
fn raw(server: &Server, request: &str) -> Answer {
    let mut connection = server.connect();
    let bytes = request.replace("HOST", &server.address.to_string());
    // It may refuse before it has read everything; what it answers counts.
    connection.send(bytes.as_bytes()).ok();
    connection.answer().unwrap_or_else(|error| panic!("no answer ({error}) to {request:.200}"))
}

/// The error of an answer in the one shape that every error has.
#[track_caller]
fn error(answer: &Answer) -> (u16, String, String) {
    assert_eq!(answer.headers["content-type"], "application/json", "{answer:?}");
    let body = answer.json();
    assert_eq!(body["ok"], false, "{body}");
    let text = |name: &str| body["error"][name].as_str().expect("a text").to_owned();
    (answer.status, text("code"), text("message"))
}

/// Sends a `GET` with headers of one's own.
fn get(server: &Server, path: &str, headers: &[(&str, &str)]) -> Answer {
    server.connect().request("GET", path, headers, b"").expect("an answer")
}

const CALL: &str = r#"{"tool":"write_file","arguments":{"path":"got-in.txt","content":"x"}}"#;

#[test]
fn srv_2_hosts_and_origins_that_are_not_ours_are_refused() {
    let home = Home::new();
    let server = home.serve();
    // H1: a page of somebody else's in a browser of this machine.
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
    // H15: a preflight gets no permission, neither for strangers nor for anybody.
    let preflight = [("origin", "https://evil.test"), ("access-control-request-method", "POST")];
    let answer = server.request(Method::OPTIONS, "/api/v1/calls", &preflight, "");
    assert_eq!(answer.status, 403);
    assert_eq!(answer.headers.get("access-control-allow-origin"), None);
    assert!(!home.path().join("got-in.txt").exists());
}

#[test]
fn srv_2_hosts_and_origins_of_the_configuration_are_let_in() {
    let home = Home::new()
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
fn srv_2_requests_that_two_readers_would_read_differently_are_refused() {
    let home = Home::new();
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
    let home = Home::new();
    let server = home.serve();
    let hidden = format!(
        "POST /api/v1/calls HTTP/1.1\r\nhost: {}\r\ncontent-length: {}\r\n\r\n{CALL}",
        server.address,
        CALL.len()
    );
    let length = format!("content-length: {}\r\n", hidden.len() + 5);
    let chunks = "transfer-encoding: chunked\r\n";
    for headers in [format!("{length}{chunks}"), format!("{chunks}{length}")] {
        let request = format!(
            "POST /api/v1/calls HTTP/1.1\r\nhost: {}\r\n{headers}\r\n0\r\n\r\n{hidden}",
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
    let home = Home::new();
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
    let home = Home::new();
    let server = home.serve();
    // H5: headers that never end. H6: a body that never comes.
    let (mut headers, mut body, mut silent) = (server.connect(), server.connect(), server.connect());
    headers.send(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-slow: ").expect("it listens");
    let start = "POST /api/v1/calls HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{\"tool\":";
    body.send(start.as_bytes()).expect("it listens");
    assert_eq!(server.get("/healthz").status, 200);
    assert!(headers.is_closed(), "slow headers are waited for");
    assert!(silent.is_closed(), "a connection without a request is waited for");
    let answer = body.answer().expect("an answer");
    let (status, _, message) = error(&answer);
    assert_eq!((status, message.as_str()), (408, "the body did not arrive in time"));
    assert_eq!(server.call("list_directory", &json!({ "path": "." })).json()["ok"], true);
}

#[test]
fn srv_2_a_wrong_key_is_refused_everywhere_even_where_none_is_needed() {
    let home = Home::new();
    let server = home.serve();
    let right = format!("Bearer {}", server.key);
    let almost = right.get(..right.len() - 1).expect("ASCII").to_owned();
    let wrong = ["Bearer x", "Bearer ", "Basic YTpi", &server.key, &almost, &format!("{right}x")];
    for key in wrong {
        for path in ["/healthz", "/api/v1/tools", "/api/v1/audit", "/metrics", "/nothing"] {
            let answer = get(&server, path, &[("authorization", key)]);
            let (status, code, message) = error(&answer);
            assert_eq!((status, code.as_str()), (401, "PERMISSION_DENIED"), "{key} {path}");
            assert_eq!(answer.headers["www-authenticate"], "Bearer");
            assert!(!message.contains(&server.key), "{message}");
        }
        let answer = server.request(Method::POST, "/mcp", &[("authorization", key)], "{}");
        assert_eq!(error(&answer).0, 401, "{key}");
    }
    assert_eq!(get(&server, "/api/v1/audit/verify", &[("authorization", &right)]).status, 200);
    // H12: a key in the address is no key; addresses end up in logs.
    for name in ["key", "access_token", "token", "api_key"] {
        let answer = get(&server, &format!("/api/v1/audit/verify?{name}={}", server.key), &[]);
        assert_eq!(error(&answer).0, 403, "{name}");
    }
}

#[test]
fn srv_2_what_takes_the_key_is_refused_without_it() {
    let home = Home::new();
    let server = home.serve();
    for path in ["/api/v1/audit/verify", "/api/v1/explain?tool=read_file"] {
        let (status, code, message) = error(&server.get(path));
        assert_eq!((status, code.as_str()), (403, "PERMISSION_DENIED"), "{path}");
        assert!(message.contains("takes the key of the data folder"), "{message}");
        assert_eq!(server.get_as_admin(path).status, 200, "{path}");
    }
    // Approving is a person's; an agent cannot approve its own call.
    home.write("a.txt", "precious");
    let call = |approve: bool| {
        json!({ "tool": "write_file", "arguments": { "path": "a.txt", "content": "new" }, "approve": approve }).to_string()
    };
    let (status, _, message) = error(&server.post("/api/v1/calls", &call(true)));
    assert_eq!((status, message.as_str()), (403, "approving takes the key of the data folder"));
    assert_eq!(server.post("/api/v1/calls", &call(false)).json()["error"]["code"], "APPROVAL_REQUIRED");
    assert_eq!(home.read("a.txt"), "precious");
    let approved = send(&server.admin(), Method::POST, "/api/v1/calls", &[], &call(true)).json();
    assert_eq!(
        (&approved["ok"], &approved["extras"]["approvedBy"]),
        (&json!(true), &json!("person")),
        "{approved}"
    );
    assert_eq!(home.read("a.txt"), "new");
}

#[test]
fn srv_2_an_agent_sees_its_own_calls_and_nobody_elses() {
    let home = Home::new();
    let server = home.serve();
    let written = home.call("write_file", &json!({ "path": "secret-name.txt", "content": "x" }));
    let theirs = written["id"].as_str().expect("an id").to_owned();
    let listed = server.call("list_directory", &json!({ "path": "." })).json();
    let own = listed["id"].as_str().expect("an id").to_owned();

    for path in
        ["/api/v1/audit", "/api/v1/calls", "/api/v1/audit?principal=person", "/api/v1/calls?tool=write_file"]
    {
        let page = server.get(path).json();
        let ids: Vec<_> = page["items"].as_array().expect("items").iter().map(|row| &row["id"]).collect();
        assert!(!ids.contains(&&json!(theirs)), "{path} shows {page}");
        assert_eq!(ids.contains(&&json!(own)), !path.contains("write_file"), "{path} shows {page}");
    }
    let all = server.get_as_admin("/api/v1/audit").json();
    assert_eq!(all["items"].as_array().map(Vec::len), Some(2), "{all}");
    let their_run = all["items"][1]["session"].as_str().expect("a session").to_owned();

    // What is another's is answered as what never was.
    for path in [format!("/api/v1/calls/{theirs}"), format!("/api/v1/runs/{their_run}")] {
        assert_eq!(error(&server.get(&path)).0, 404, "{path}");
        assert_eq!(server.get_as_admin(&path).status, 200, "{path}");
        let answer = server.post(&format!("{path}/cancel"), "");
        assert_eq!(error(&answer).0, 404, "{path}");
    }
    assert_eq!(server.get(&format!("/api/v1/calls/{own}")).json()["record"]["tool"], "list_directory");
    let runs = server.get("/api/v1/runs").json();
    assert!(!runs.to_string().contains(&their_run), "{runs}");
    assert!(server.get_as_admin("/api/v1/runs").text.contains(&their_run));
    let events = server.get("/api/v1/events?follow=false").text;
    assert!(
        events.contains(&own) && !events.contains(&theirs) && !events.contains("secret-name"),
        "{events}"
    );
    assert!(server.get_as_admin("/api/v1/events?follow=false").text.contains(&theirs));
}

#[test]
fn srv_2_beyond_loopback_everything_takes_the_key() {
    let home = Home::new();
    let mut server = home.serve_with(&["--bind", "0.0.0.0:0"]);
    assert!(server.address.ip().is_unspecified());
    server.address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    let paths = [
        "/",
        "/healthz",
        "/readyz",
        "/metrics",
        "/api/openapi.json",
        "/api/v1/tools",
        "/api/v1/events",
        "/mcp",
        "/x",
    ];
    let query = format!("?key={}", server.key);
    for path in paths {
        // H18: what a client says about itself on behalf of a proxy changes nothing.
        for headers in [
            &[][..],
            &[("x-forwarded-for", "127.0.0.1"), ("x-real-ip", "127.0.0.1"), ("forwarded", "for=127.0.0.1")],
        ] {
            let answer = get(&server, path, headers);
            assert_eq!(error(&answer).0, 401, "{path} {headers:?}");
            assert_eq!(answer.headers["www-authenticate"], "Bearer");
        }
        assert_eq!(
            error(&server.get(&format!("{path}{query}"))).0,
            401,
            "{path} with the key in the address"
        );
    }
    assert_eq!(error(&server.post("/api/v1/calls", CALL)).0, 401);
    assert_eq!(error(&server.post("/mcp", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#)).0, 401);
    assert_eq!(server.get_as_admin("/healthz").json(), json!({ "status": "ok" }));
    assert!(!home.path().join("got-in.txt").exists());
    // The command line has the key, because its person can read the folder.
    let written = home.call("write_file", &json!({ "path": "a.txt", "content": "x" }));
    assert_eq!(written["ok"], true, "{written}");
    assert!(
        server.get_as_admin("/api/v1/events?follow=false").text.contains(written["id"].as_str().unwrap())
    );
}

#[test]
fn srv_1_a_pipe_reaches_a_server_that_listens_everywhere() {
    let home = Home::new();
    let server = home.serve_with(&["--bind", "0.0.0.0:0"]);
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-06-18" } });
    let ran = home.run_with_input(["mcp"], &format!("{hello}\n"));
    assert_eq!(ran.json()["result"]["serverInfo"]["name"], "gantry", "{ran:?}\n{}", server.said());
}

#[test]
fn srv_2_no_spelling_of_a_path_or_method_gets_around_the_gates() {
    let home = Home::new();
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

#[test]
fn obs_2_health_readiness_and_metrics_are_there_to_be_scraped() {
    let home =
        Home::new().config("queues: { files: { concurrent: 2 } }\ntools: { workspace: { queue: files } }\n");
    let server = home.serve();
    assert_eq!(server.get("/healthz").json(), json!({ "status": "ok" }));
    assert_eq!(server.get("/readyz").json(), json!({ "status": "ready" }));
    assert!(server.call("write_file", &json!({ "path": "a.txt", "content": "hi" })).json()["ok"] == true);
    assert!(server.call("read_file", &json!({ "path": "a.txt" })).json()["ok"] == true);
    assert!(server.call("read_file", &json!({ "path": "no.txt" })).json()["ok"] == false);
    assert!(server.call("no_such_tool", &json!({})).json()["ok"] == false);
    let page = server.get("/metrics");
    assert!(page.headers["content-type"].to_str().unwrap().contains("text"), "{page:?}");
    let value = |name: &str, labels: &[&str]| {
        let line = page.text.lines().find(|line| {
            line.starts_with(&format!("{name}{{")) && labels.iter().all(|label| line.contains(label))
        });
        line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
    };
    let calls = "gantry_tool_calls_total";
    assert_eq!(value(calls, &["namespace=\"workspace\"", "status=\"ok\""]), Some(2.0), "{}", page.text);
    assert_eq!(
        value(calls, &["namespace=\"workspace\"", "code=\"FILE_NOT_FOUND\""]),
        Some(1.0),
        "{}",
        page.text
    );
    assert_eq!(value(calls, &["code=\"TOOL_NOT_FOUND\"", "status=\"failed\""]), Some(1.0), "{}", page.text);
    assert_eq!(value("gantry_tool_latency_seconds_count", &["workspace"]), Some(3.0), "{}", page.text);
    assert_eq!(value("gantry_queue_in_use", &["queue=\"files\""]), Some(0.0), "{}", page.text);
    for name in ["gantry_ledger_entries", "gantry_sessions_opened_total", "gantry_cache_hits_total"] {
        assert!(page.text.contains(&format!("\n{name} ")), "{name} is not in\n{}", page.text);
    }
    assert!(page.text.ends_with("# EOF\n"));
}

#[test]
fn every_documented_operation_answers_and_the_rest_of_each_path_does_not() {
    let home = Home::new();
    let server = home.serve();
    let document = server.get("/api/openapi.json").json();
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().expect("paths");
    let named: BTreeSet<&str> = paths.keys().map(String::as_str).collect();
    let expected = BTreeSet::from([
        "/api/openapi.json",
        "/api/v1/audit",
        "/api/v1/audit/verify",
        "/api/v1/calls",
        "/api/v1/calls/{id}",
        "/api/v1/calls/{id}/cancel",
        "/api/v1/events",
        "/api/v1/explain",
        "/api/v1/lock",
        "/api/v1/queues",
        "/api/v1/runs",
        "/api/v1/runs/{id}",
        "/api/v1/runs/{id}/cancel",
        "/api/v1/servers",
        "/api/v1/servers/{id}",
        "/api/v1/servers/{id}/restart",
        "/api/v1/tools",
        "/healthz",
        "/metrics",
        "/readyz",
    ]);
    assert_eq!(named, expected);
    let id = "call_00000000000000000000000000000000";
    for (path, operations) in paths {
        let operations: BTreeSet<&str> =
            operations.as_object().expect("operations").keys().map(String::as_str).collect();
        for method in [Method::GET, Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
            let id = if path.contains("runs") { id.replace("call", "run") } else { id.to_owned() };
            let mut target = path.replace("{id}", &id);
            if path.ends_with("events") {
                target.push_str("?follow=false");
            }
            let answer = send(&server.admin(), method.clone(), &target, &[], "");
            let described = operations.contains(method.as_str().to_lowercase().as_str());
            assert_eq!(answer.status != 405, described, "{method} {path}: {answer:?}");
            assert!(!answer.text.contains("there is nothing at"), "{method} {path}: {answer:?}");
        }
    }
}

/// The items of every page of a list, by following its cursor.
fn paged(server: &Server, path: &str, limit: usize) -> Vec<Value> {
    let mut items = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = server.get_as_admin(&format!("{path}?limit={limit}{cursor}")).json();
        let keys: Vec<&str> = page.as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(keys, ["items", "next"], "{page}");
        let these = page["items"].as_array().expect("items");
        assert!(these.len() <= limit, "{page}");
        items.extend_from_slice(these);
        let Some(next) = page["next"].as_str() else { return items };
        assert_eq!(these.len(), limit, "a page that is not the last is full: {page}");
        cursor = format!("&cursor={next}");
    }
}

#[test]
fn lists_have_one_shape_and_are_read_page_by_page() {
    let home = Home::new();
    let server = home.serve();
    for n in 0..7 {
        server.call("list_directory", &json!({ "path": ".", "includeHidden": n % 2 == 0 }));
    }
    home.call("list_directory", &json!({ "path": "." }));
    for path in ["/api/v1/tools", "/api/v1/queues", "/api/v1/calls", "/api/v1/audit", "/api/v1/runs"] {
        let page = server.get(path).json();
        assert!(page["items"].is_array() && page["next"].is_null(), "{path}: {page}");
    }
    for (path, total) in [("/api/v1/audit", 8), ("/api/v1/calls", 8), ("/api/v1/runs", 2)] {
        let whole = server.get_as_admin(path).json()["items"].as_array().expect("items").clone();
        assert_eq!(whole.len(), total, "{path}");
        for limit in [1, 3, 8] {
            assert_eq!(paged(&server, path, limit), whole, "{path} by {limit}");
        }
    }
    let newest_first: Vec<_> =
        paged(&server, "/api/v1/audit", 8).iter().map(|row| row["startedAt"].to_string()).collect();
    assert!(newest_first.is_sorted_by(|a, b| a >= b), "{newest_first:?}");
}

#[test]
fn what_cannot_be_answered_is_an_error_in_json_that_says_why() {
    let home = Home::new();
    let server = home.serve();
    for path in ["/nothing", "/api", "/api/v2/tools", "/api/v1/nothing", "/mcp/default/routines/x"] {
        let (status, code, message) = error(&server.get(path));
        assert_eq!((status, code.as_str()), (404, "NOT_FOUND"), "{path}");
        assert!(message.contains(path) && message.contains("/api/openapi.json"), "{message}");
    }
    for (path, word) in [
        ("/api/v1/audit?limit=many", "limit"),
        ("/api/v1/audit?cursor=x", "cursor"),
        ("/api/v1/audit?stat=x", "stat"),
        ("/api/v1/audit?state=DONE", "COMPLETED_SUCCESS"),
        ("/api/v1/audit?since=yesterday", "since"),
        ("/api/v1/runs?limit=-1", "limit"),
        ("/api/v1/explain?tol=x", "tol"),
        ("/api/v1/calls/12", "call"),
        ("/api/v1/runs/call_00000000000000000000000000000000", "run"),
    ] {
        let (status, code, message) = error(&server.get_as_admin(path));
        assert_eq!((status, code.as_str()), (400, "INVALID_ARGUMENTS"), "{path}");
        assert!(message.contains(word), "{path}: {message}");
    }
    for (body, word) in [
        ("", "not valid JSON"),
        ("{", "not valid JSON"),
        ("[]", "not a call"),
        (r#"{"arguments":{}}"#, "tool"),
        (r#"{"tool":"read_file","tool":"delete_file"}"#, "twice"),
        (r#"{"tool":"read_file","argument":{}}"#, "argument"),
        (r#"{"tool":"read_file","mode":"later"}"#, "later"),
    ] {
        let (status, code, message) = error(&server.post("/api/v1/calls", body));
        assert_eq!((status, code.as_str()), (400, "INVALID_ARGUMENTS"), "{body}");
        assert!(message.contains(word), "{body}: {message}");
    }
    let answer = server.request(Method::PUT, "/api/v1/tools", &[], "");
    let (status, _, message) = error(&answer);
    assert_eq!((status, answer.headers["allow"].to_str().unwrap()), (405, "GET,HEAD"));
    assert_eq!(message, "/api/v1/tools does not take PUT; see /api/openapi.json");
}
