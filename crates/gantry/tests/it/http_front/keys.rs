//! The key of the data folder: what takes it, what a caller without it sees, and servers beyond loopback.

use super::{CALL, error, get};
use gantry_testkit::TestDir;
use gantry_testkit::server::send;
use http::Method;
use serde_json::json;

#[test]
fn srv_2_a_wrong_key_is_refused_everywhere_even_where_none_is_needed() {
    let home = TestDir::new();
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
    let home = TestDir::new();
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
fn srv_2_an_agent_sees_only_its_own_calls() {
    let home = TestDir::new();
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
    let home = TestDir::new();
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
    let home = TestDir::new();
    let server = home.serve_with(&["--bind", "0.0.0.0:0"]);
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-06-18" } });
    let ran = home.run_with_input(["mcp"], &format!("{hello}\n"));
    assert_eq!(ran.json()["result"]["serverInfo"]["name"], "gantry", "{ran:?}\n{}", server.stderr());
}
