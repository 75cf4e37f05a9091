//! The page on which a person decides. Its own script runs here, in Node, with a small stand-in for a browser, against the
//! API of a running Gantry.

use super::api::{code, count, counted, decide, get, held, home, over};
use super::keys::text;
use gantry_testkit::Server;
use http::Method;
use serde_json::{Value, json};
use std::io::Write as _;
use std::process::{Command, Stdio};

/// The stand-in, and what it does with the page.
const BROWSER: &str = include_str!("page/browser.mjs");

/// Opens the page of an approval, types the key and does these steps. Returns what the page showed in the end.
#[track_caller]
fn visit(server: &Server, path: &str, key: &str, steps: &Value) -> Value {
    let page = server.get(path);
    assert_eq!(page.status, 200, "{page:?}");
    let script = page.text.split("<script").nth(1).and_then(|rest| rest.split_once('>')).expect("a script").1;
    let script = script.split("</script>").next().expect("its end");
    let job = json!({
        "origin": format!("http://{}", server.address), "path": path, "key": key, "script": script, "page": page.text,
        "steps": steps,
    });
    let mut node = Command::new("node")
        .args(["--input-type=module", "-e", BROWSER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("node is installed");
    node.stdin.take().expect("a pipe").write_all(job.to_string().as_bytes()).expect("it reads");
    let done = node.wait_with_output().expect("it ends");
    let shown = String::from_utf8(done.stdout).expect("UTF-8");
    assert!(done.status.success(), "{shown}");
    serde_json::from_str(&shown).unwrap_or_else(|error| panic!("{error}: {shown}"))
}

#[test]
fn apr_6_the_page_holds_nothing_and_obeys_nobody_else() {
    let home = home("test__count");
    let server = home.serve();
    let (_, approval) = held(&server, "test__count", &count("secret-text"));
    for path in ["/approvals".to_owned(), format!("/approvals/{approval}")] {
        for page in [server.get(&path), server.get_as_admin(&path)] {
            assert_eq!(
                (page.status, page.headers["content-type"].as_bytes()),
                (200, b"text/html; charset=utf-8".as_slice())
            );
            let policy = page.headers["content-security-policy"].to_str().expect("text");
            let nonce =
                policy.split("'nonce-").nth(1).and_then(|rest| rest.split('\'').next()).expect("a nonce");
            assert!(
                policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
                "{policy}"
            );
            assert!(!policy.contains("unsafe"), "{policy}");
            assert_eq!(page.text.matches(&format!("nonce=\"{nonce}\"")).count(), 2, "a style and a script");
            assert_eq!(page.headers["cache-control"], "no-store");
            for hidden in
                ["secret-text", "test__count", &server.key, &approval, "{{", "src=", "http://", "https://"]
            {
                assert!(!page.text.contains(hidden), "{hidden}");
            }
        }
    }
    let (one, two) = (server.get("/approvals"), server.get("/approvals"));
    assert_ne!(one.headers["content-security-policy"], two.headers["content-security-policy"]);
    // The gates are those of every other address.
    let path = format!("/approvals/{approval}");
    let foreign = format!("GET {path} HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n");
    assert!(server.raw(foreign.as_bytes()).starts_with("HTTP/1.1 403"));
    let foreign = server.request(Method::GET, &path, &[("origin", "https://evil.test")], "");
    assert_eq!(code(&foreign).0, 403, "{foreign:?}");
    let wrong = server.request(Method::GET, &path, &[("authorization", "Bearer x")], "");
    assert_eq!(code(&wrong).0, 401, "{wrong:?}");
    assert_eq!(server.post(&path, "").status, 405);
    assert!(server.get("/").text.contains("<a href=\"/approvals\">"));
}

#[test]
fn apr_6_beyond_loopback_the_page_asks_for_a_key_and_opens_nothing_by_itself() {
    let home = home("test__count");
    let mut server = home.serve_with(&["--bind", "0.0.0.0:0"]);
    server.address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    assert_eq!(server.get("/approvals/x").status, 200);
    assert_eq!(server.get("/approvals").status, 200);
    for path in ["/api/v1/approvals", "/approvals/x/y", "/approvalsx", "/approvals/../api/v1/keys"] {
        assert_eq!(server.get(path).status, 401, "{path}");
    }
    let seen = visit(&server, "/approvals/x", "gk_wrong", &json!([]));
    assert_eq!(seen["visible"], json!(["door", "refused"]), "{seen}");
}

#[test]
fn apr_6_a_person_approves_on_the_page() {
    let home = home("test__count");
    let server = home.serve();
    let key = text(&server, &json!({ "name": "anna", "role": "approver" }));
    let arguments = json!({ "file": "counted", "text": "<b>bold</b> \u{202e}txt.exe \u{200b}" });
    let (call, approval) = held(&server, "test__count", &arguments);
    let path = format!("/approvals/{approval}");
    let seen = visit(&server, &path, &key, &json!([]));
    assert_eq!(seen["texts"]["tool"], "test__count", "{seen}");
    let shown = seen["texts"]["arguments"].as_str().expect("arguments");
    assert!(
        shown.contains("<b>bold</b> [U+202E]txt.exe [U+200B]") && shown.starts_with("{\n  \"file\": "),
        "{shown}"
    );
    assert!(seen["texts"]["marked"].as_str().unwrap().starts_with("2 characters"), "{seen}");
    assert!(seen["texts"]["reason"].as_str().unwrap().contains("requiresApprovalTools"), "{seen}");
    assert!(seen["texts"]["count"].as_str().unwrap().starts_with("expires in "), "{seen}");
    assert_eq!(seen["texts"]["size"], format!("{} bytes", arguments.to_string().len()));
    assert!(counted(&home).is_empty(), "looking is not deciding");

    let seen = visit(&server, &path, &key, &json!([{ "type": ["why", "fine"] }, { "click": "yes" }]));
    assert_eq!(seen["texts"]["state"], "Approved and done", "{seen}");
    assert!(seen["texts"]["outcome"].as_str().unwrap().contains("Approved by anna (page)"), "{seen}");
    assert!(!seen["visible"].as_array().unwrap().contains(&json!("actions")), "{seen}");
    let reply = over(&server.client(), &call);
    assert_eq!((&reply["ok"], &reply["extras"]["approvedBy"]), (&json!(true), &json!("anna")), "{reply}");
    assert_eq!(counted(&home).len(), 1);
    assert_eq!(seen["stored"], json!([["gantry-key", key]]), "in the tab, and nowhere else");
}

#[test]
fn apr_3_a_person_edits_the_arguments_on_the_page() {
    let home = home("test__nested");
    let server = home.serve();
    let body = r#"{"tool":"test__nested","arguments":{"tool":"test__noop","arguments":{"n":1.50,"big":9007199254740993}}}"#;
    let (call, approval) = super::api::ids(&server.post("/api/v1/calls", body));
    let path = format!("/approvals/{approval}");
    let seen = visit(&server, &path, &server.key, &json!([{ "click": "edit" }]));
    let draft = seen["values"]["edited"].as_str().expect("a draft").to_owned();
    assert!(draft.contains("\"n\": 1.50") && draft.contains("\"big\": 9007199254740993"), "{draft}");
    // What does not fit is refused, and said.
    let wrong = json!([{ "click": "edit" }, { "type": ["edited", "{\"tool\": 7}"] }, { "click": "yes" }]);
    let seen = visit(&server, &path, &server.key, &wrong);
    assert!(seen["texts"]["fault"].as_str().unwrap().contains("tool the value is not of type"), "{seen}");
    assert_eq!(seen["texts"]["state"], "Waiting for a decision");
    let broken = json!([{ "click": "edit" }, { "type": ["edited", "{\"tool\": "] }, { "click": "yes" }]);
    assert!(
        visit(&server, &path, &server.key, &broken)["texts"]["fault"].as_str().unwrap().contains("not JSON")
    );

    let edited = draft.replace("1.50", "2.50");
    let steps = json!([{ "click": "edit" }, { "type": ["edited", edited] }, { "click": "yes" }]);
    let seen = visit(&server, &path, &server.key, &steps);
    assert!(seen["texts"]["modified"].as_str().unwrap().contains("\"n\": 2.50"), "{seen}");
    assert_eq!(over(&server.client(), &call)["ok"], true);
    let item = server.get_as_admin(&format!("/api/v1/approvals/{approval}")).text;
    assert!(item.contains("2.50") && item.matches("9007199254740993").count() == 2, "{item}");
}

#[test]
fn apr_6_the_page_shows_what_somebody_else_decided_meanwhile() {
    let home = home("test__count");
    let server = home.serve();
    let key = text(&server, &json!({ "name": "anna", "role": "approver" }));
    let (_, approval) = held(&server, "test__count", &count("a"));
    let path = format!("/approvals/{approval}");
    let no = json!({ "path": format!("/api/v1/approvals/{approval}/decision"), "key": server.key,
                     "body": { "approved": false, "reason": "too risky" } });
    let seen = visit(&server, &path, &key, &json!([{ "meanwhile": no }, { "wait": ["state", "Denied"] }]));
    assert!(seen["texts"]["outcome"].as_str().unwrap().contains("Denied by person (http)"), "{seen}");
    assert!(seen["texts"]["outcome"].as_str().unwrap().contains("too risky"), "{seen}");
    // One who comes too late is told so.
    let (_, approval) = held(&server, "test__count", &count("b"));
    let path = format!("/approvals/{approval}");
    let no = json!({ "path": format!("/api/v1/approvals/{approval}/decision"), "key": server.key, "body": { "approved": false } });
    let steps = json!([{ "deaf": true }, { "meanwhile": no }, { "click": "yes" }]);
    let seen = visit(&server, &path, &key, &steps);
    assert_eq!(seen["texts"]["state"], "Denied", "{seen}");
    assert!(seen["texts"]["fault"].as_str().unwrap().contains("Somebody else was first"), "{seen}");
    assert!(counted(&home).is_empty());
}

#[test]
fn apr_6_the_page_shows_no_more_than_the_key_may_see() {
    let home = home("test__count, test__echo");
    let server = home.serve();
    let key = text(&server, &json!({ "name": "anna", "role": "approver", "tools": ["test__echo"] }));
    let (_, other) = held(&server, "test__count", &count("a"));
    let (_, own) = held(&server, "test__echo", &json!({ "text": "x" }));
    let seen = visit(&server, &format!("/approvals/{other}"), &key, &json!([]));
    assert_eq!(seen["visible"], json!(["door", "refused"]), "{seen}");
    let list = visit(&server, "/approvals", &key, &json!([]));
    assert_eq!(list["links"], json!([format!("/approvals/{own}")]), "{list}");
    let denied = visit(
        &server,
        &format!("/approvals/{own}"),
        &key,
        &json!([{ "type": ["why", "no"] }, { "click": "no" }]),
    );
    assert_eq!(denied["texts"]["state"], "Denied", "{denied}");
    let item = get(&server.admin(), &format!("/api/v1/approvals/{own}")).json();
    assert_eq!((&item["decidedVia"], &item["decision"]["reason"]), (&json!("page"), &json!("no")), "{item}");
    assert_eq!(code(&decide(&server.client(), &other, &json!({ "approved": true }))).0, 403);
}

#[test]
fn apr_6_a_standing_yes_is_given_on_the_page() {
    let home = home("test__count");
    let server = home.serve();
    let (call, approval) = held(&server, "test__count", &count("a"));
    let seen =
        visit(&server, &format!("/approvals/{approval}"), &server.key, &json!([{ "click": "always" }]));
    assert!(seen["texts"]["outcome"].as_str().unwrap().contains(", always"), "{seen}");
    assert_eq!(over(&server.client(), &call)["ok"], true);
    assert_eq!(server.call("test__count", &count("b")).json()["ok"], true, "it holds");
    assert_eq!(server.get_as_admin("/api/v1/grants").json()["items"][0]["grantedBy"], "person");
}
