//! Keys that are for some projects, for one agent, or for some tools.

use super::super::api::{code, decide, delete, get, ids, post};
use super::{make, text};
use gantry_egress::LocalServer;
use gantry_testkit::{Server, TestDir};
use http::Method;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};

/// Two projects in which writing takes a yes, each with an agent `clerk`.
fn site() -> (TestDir, Server) {
    let config = json!({
        "approvals": { "requiresApprovalTools": ["write_file"] },
        "agents": { "clerk": { "tools": ["read_file", "write_file"] }, "boss": {} },
        "projects": { "shop": {
            "workspace": "shop", "approvals": { "requiresApprovalTools": ["write_file"] },
            "agents": { "clerk": { "tools": ["read_file"] } },
        } },
    });
    let home = TestDir::new().config(&config.to_string());
    home.write("shop/a.txt", "of the shop");
    let server = home.serve();
    (home, server)
}

fn write(project: &str, name: &str) -> Value {
    json!({ "tool": "write_file", "arguments": { "path": name, "content": "x" }, "project": project })
}

#[test]
fn apr_7_an_approver_of_one_project_knows_nothing_of_another() {
    let (_home, server) = site();
    let shop = make(&server, &json!({ "name": "anna", "role": "approver", "projects": ["shop"] }));
    let (_, theirs) = ids(&post(&server.client(), "/api/v1/calls", &write("default", "b.txt")));
    let (_, own) = ids(&post(&server.client(), "/api/v1/calls", &write("shop", "b.txt")));
    let listed = get(&shop, "/api/v1/approvals").json();
    let seen: Vec<&Value> = listed["items"].as_array().unwrap().iter().map(|item| &item["id"]).collect();
    assert_eq!(seen, [&json!(own)], "{listed}");
    assert_eq!(code(&get(&shop, "/api/v1/approvals?project=default")).0, 403);
    assert_eq!(code(&get(&shop, &format!("/api/v1/approvals/{theirs}"))).0, 404);
    for approved in [true, false] {
        let answer = decide(&shop, &theirs, &json!({ "approved": approved }));
        assert_eq!(code(&answer), (404, "NOT_FOUND".into()), "{answer:?}");
    }
    let events = get(&shop, "/api/v1/events?follow=false&type=approval").text;
    assert!(events.contains(&own) && !events.contains(&theirs), "{events}");
    assert_eq!(decide(&shop, &own, &json!({ "approved": true })).json()["decidedBy"], "anna");
}

#[test]
fn apr_7_an_approver_of_some_tools_decides_about_no_other() {
    let home = super::home("test__count, test__echo");
    let server = home.serve();
    let counts = make(&server, &json!({ "name": "anna", "role": "approver", "tools": ["test__count"] }));
    let (_, echo) = super::held(&server, "test__echo", &json!({ "text": "x" }));
    let (_, count) = super::held(&server, "test__count", &super::count("x"));
    assert_eq!(code(&decide(&counts, &echo, &json!({ "approved": true }))).0, 404);
    assert_eq!(code(&get(&counts, &format!("/api/v1/approvals/{echo}"))).0, 404);
    assert_eq!(decide(&counts, &count, &json!({ "approved": true })).status, 200);
}

#[test]
fn apr_7_a_key_of_an_agent_is_that_agent_in_its_project_by_every_door() {
    let (_home, server) = site();
    let key =
        text(&server, &json!({ "name": "bot", "role": "agent", "projects": ["shop"], "agent": "clerk" }));
    let bot = LocalServer::new(server.address, Some(key.clone()));
    let names = |answer: &Value| -> Vec<String> {
        let items = answer["items"].as_array().expect("items").iter();
        items.map(|item| item["name"].as_str().expect("a name").to_owned()).collect()
    };
    // Without a word it is what it is for.
    assert_eq!(names(&get(&bot, "/api/v1/tools").json()), ["read_file"]);
    let read = json!({ "tool": "read_file", "arguments": { "path": "a.txt" } });
    let reply = post(&bot, "/api/v1/calls", &read).json();
    assert_eq!(reply["ok"], true, "{reply}");
    let id = reply["id"].as_str().expect("an id");
    let record = get(&bot, &format!("/api/v1/calls/{id}")).json()["record"].clone();
    assert_eq!(
        [&record["project"], &record["agent"], &record["principal"]],
        [&json!("shop"), &json!("clerk"), &json!("bot")]
    );
    assert_eq!(names(&get(&bot, "/api/v1/agents").json()), ["clerk"]);
    assert_eq!(names(&get(&bot, "/api/v1/projects").json()), ["shop"]);
    // Anything else it says is refused, whether it exists or not.
    for query in ["project=default", "project=nowhere", "agent=boss", "project=shop&agent=nobody"] {
        let answer = get(&bot, &format!("/api/v1/tools?{query}"));
        assert_eq!(code(&answer), (403, "PERMISSION_DENIED".into()), "{query}: {answer:?}");
    }
    for (key, value) in [("project", "default"), ("agent", "boss")] {
        let mut call = read.clone();
        call[key] = json!(value);
        assert_eq!(code(&post(&bot, "/api/v1/calls", &call)).0, 403, "{call}");
    }
    for path in [
        "/api/v1/agents/boss",
        "/api/v1/agents?project=default",
        "/api/v1/runs?project=default",
        "/api/v1/calls?project=default",
        "/api/v1/servers?project=default",
        "/api/v1/events?project=default",
        "/api/v1/grants?project=default",
    ] {
        assert_eq!(code(&get(&bot, path)).0, 403, "{path}");
    }
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let bearer = format!("Bearer {key}");
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/list"),
    ];
    for path in ["/mcp", "/mcp/shop", "/mcp/shop/agents/clerk"] {
        let answer = server.request(Method::POST, path, &headers, list);
        let tools = &answer.json()["result"]["tools"];
        assert_eq!((answer.status, tools.as_array().map(Vec::len)), (200, Some(1)), "{path}: {answer:?}");
        assert_eq!(tools[0]["name"], "read_file", "{path}");
    }
    for path in ["/mcp/default", "/mcp/default/agents/clerk", "/mcp/shop/agents/boss", "/mcp/nowhere"] {
        let answer = server.request(Method::POST, path, &headers, list);
        assert_eq!(answer.status, 403, "{path}: {answer:?}");
    }
    for path in ["/ws/default", "/ws/shop/agents/boss"] {
        let upgrade = [
            ("authorization", bearer.as_str()),
            ("connection", "upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        assert_eq!(server.request(Method::GET, path, &upgrade, "").status, 403, "{path}");
    }
}

#[test]
fn apr_7_an_administrator_of_one_project_administers_no_other() {
    let (_home, server) = site();
    let admin = make(&server, &json!({ "name": "root", "role": "admin", "projects": ["shop"] }));
    let call = |project: &str| {
        let body = json!({ "tool": "list_directory", "arguments": { "path": "." }, "project": project });
        post(&server.client(), "/api/v1/calls", &body).json()["id"].as_str().expect("an id").to_owned()
    };
    let (theirs, own) = (call("default"), call("shop"));
    let calls = get(&admin, "/api/v1/calls").text;
    assert!(calls.contains(&own) && !calls.contains(&theirs), "{calls}");
    assert_eq!(get(&admin, &format!("/api/v1/calls/{own}")).status, 200);
    assert_eq!(code(&get(&admin, &format!("/api/v1/calls/{theirs}"))).0, 404);
    assert_eq!(code(&delete(&admin, &format!("/api/v1/calls/{theirs}"))).0, 404);
    let runs = get(&admin, "/api/v1/runs").json();
    assert!(runs["items"].as_array().unwrap().iter().all(|run| run["project"] == "shop"), "{runs}");
    for path in ["/api/v1/keys", "/api/v1/audit/verify", "/api/v1/config", "/api/v1/explain?project=default"]
    {
        assert_eq!(code(&get(&admin, path)), (403, "PERMISSION_DENIED".into()), "{path}");
    }
    assert_eq!(code(&post(&admin, "/api/v1/keys", &json!({ "name": "x", "role": "agent" }))).0, 403);
    assert_eq!(code(&post(&admin, "/api/v1/agents/clerk/activate?project=default", &json!({}))).0, 403);
    assert_eq!(get(&admin, "/api/v1/explain?tool=read_file").status, 200, "of its own project");
    // What a server runs can read the key of the data folder.
    let server_to_add = json!({ "id": "x", "command": "cat", "args": [".gantry/admin.key"] });
    for answer in [
        post(&admin, "/api/v1/servers?project=shop", &server_to_add),
        post(&admin, "/api/v1/servers/x/restart?project=shop", &json!({})),
        delete(&admin, "/api/v1/servers/x?project=shop"),
        post(&admin, "/api/v1/config/reload", &json!({})),
        post(&admin, "/api/v1/config/apply", &json!({ "revision": "x" })),
    ] {
        assert_eq!(code(&answer), (403, "PERMISSION_DENIED".into()), "{answer:?}");
    }
    let page = get(&admin, "/").text;
    assert!(page.contains("clerk <span class=\"of\">in shop</span>") && !page.contains("boss"), "{page}");
}

#[test]
fn apr_7_figures_of_all_projects_are_not_for_a_key_of_one() {
    let (_home, server) = site();
    let shop = make(&server, &json!({ "name": "bot", "role": "agent", "projects": ["shop"] }));
    let all = make(&server, &json!({ "name": "all", "role": "agent" }));
    for path in ["/metrics", "/api/v1/queues"] {
        assert_eq!(code(&get(&shop, path)), (403, "PERMISSION_DENIED".into()), "{path}");
        assert_eq!((get(&all, path).status, server.get(path).status), (200, 200), "{path}");
    }
}

#[test]
fn apr_7_one_agent_cannot_take_every_place_to_wait_in() {
    let (_home, server) = site();
    let open = || {
        let mut stream = std::net::TcpStream::connect(server.address).expect("it listens");
        let request = format!("GET /api/v1/events HTTP/1.1\r\nHost: {}\r\n\r\n", server.address);
        stream.write_all(request.as_bytes()).expect("it is sent");
        let mut begin = [0; 12];
        stream.read_exact(&mut begin).expect("it answers");
        (begin == *b"HTTP/1.1 200").then_some(stream)
    };
    let streams: Vec<_> = (0..64).map_while(|_| open()).collect();
    assert_eq!((streams.len(), open().is_some()), (64, false));
    let one_more = server.get("/api/v1/approvals?wait=1");
    assert_eq!(code(&one_more), (429, "QUEUE_FULL".into()), "{one_more:?}");
    assert!(one_more.headers.contains_key("retry-after"), "{one_more:?}");
    // Who does not wait is answered; so is a call, which then waits alone.
    assert_eq!(server.get("/api/v1/approvals").status, 200);
    let mut held = write("default", "b.txt");
    held["waitMs"] = json!(60_000);
    ids(&post(&server.client(), "/api/v1/calls", &held));
    // Others have their own places, and those who decide need none.
    let bot = make(&server, &json!({ "name": "bot", "role": "agent" }));
    assert_eq!(get(&bot, "/api/v1/approvals?wait=1").status, 200);
    assert_eq!(server.get_as_admin("/api/v1/approvals?state=EXECUTING&wait=1").status, 200);
    drop(streams);
    server.eventually("the places are free", || open().is_some());
}

#[test]
fn apr_7_what_was_opened_with_a_key_ends_with_it() {
    let (_home, server) = site();
    let key = text(&server, &json!({ "name": "bot", "role": "agent" }));
    let mut stream = std::net::TcpStream::connect(server.address).expect("it listens");
    let request = format!(
        "GET /api/v1/events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n\r\n",
        server.address
    );
    stream.write_all(request.as_bytes()).expect("it is sent");
    let mut begin = [0; 15];
    stream.read_exact(&mut begin).expect("it answers");
    assert_eq!(&begin, b"HTTP/1.1 200 OK");
    delete(&server.admin(), "/api/v1/keys/bot");
    // The stream would go on for ever; that it ends is the claim.
    let mut rest = String::new();
    stream.read_to_string(&mut rest).expect("it ends");
    assert!(!rest.contains("INTERNAL_ERROR"), "{rest}");
}

#[test]
fn apr_7_beyond_loopback_a_key_of_the_store_opens_what_it_is_for() {
    let home = TestDir::new();
    let mut server = home.serve_with(&["--bind", "0.0.0.0:0"]);
    server.address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    let agent = make(&server, &json!({ "name": "bot", "role": "agent" }));
    assert_eq!(server.get("/api/v1/tools").status, 401);
    assert_eq!(get(&agent, "/api/v1/tools").status, 200);
    assert_eq!(code(&get(&agent, "/api/v1/keys")).0, 403);
    let call = json!({ "tool": "list_directory", "arguments": { "path": "." } });
    let id = post(&agent, "/api/v1/calls", &call).json()["id"].as_str().expect("an id").to_owned();
    let record = server.get_as_admin(&format!("/api/v1/calls/{id}")).json()["record"].clone();
    assert_eq!((&record["principal"], &record["door"]), (&json!("bot"), &json!("http")), "{record}");
}
