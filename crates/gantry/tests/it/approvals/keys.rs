//! Keys of the store: what each role may do, and where a key is kept to.

mod ended;
mod lasting;
mod places;

use super::api::{code, count, counted, decide, delete, get, held, home, ids, over, post, remembering_home};
use gantry_egress::LocalServer;
use gantry_testkit::{Server, TestDir};
use serde_json::{Value, json};

/// Makes a key; the text of it.
#[track_caller]
pub(super) fn text(server: &Server, key: &Value) -> String {
    let made = post(&server.admin(), "/api/v1/keys", key);
    assert_eq!(made.status, 201, "{made:?}");
    made.json()["key"].as_str().expect("a key").to_owned()
}

/// A client with a new key.
#[track_caller]
pub(super) fn make(server: &Server, key: &Value) -> LocalServer {
    LocalServer::new(server.address, Some(text(server, key)))
}

#[test]
fn apr_7_an_agents_key_decides_nothing_by_any_door() {
    let home = home("test__count");
    let server = home.serve();
    let agent = make(&server, &json!({ "name": "bot", "role": "agent" }));
    let body = json!({ "tool": "test__count", "arguments": count("a") });
    let (call, approval) = ids(&post(&agent, "/api/v1/calls", &body));
    let refused = (403, "PERMISSION_DENIED".to_owned());
    for body in [json!({ "approved": true }), json!({ "approved": false }), json!({}), Value::Null] {
        assert_eq!(code(&decide(&agent, &approval, &body)), refused, "{body}");
    }
    let yes = json!({ "tool": "test__count", "arguments": count("a"), "approve": true });
    assert_eq!(code(&post(&agent, "/api/v1/calls", &yes)), refused);
    for (path, body) in [
        ("/api/v1/keys", json!({ "name": "me", "role": "admin" })),
        ("/api/v1/config/reload", Value::Null),
        ("/api/v1/config/apply", json!({ "revision": "x" })),
        ("/api/v1/agents/x/activate", Value::Null),
        ("/api/v1/servers", json!({ "id": "x" })),
    ] {
        assert_eq!(code(&post(&agent, path, &body)), refused, "{path}");
    }
    for path in ["/api/v1/keys", "/api/v1/audit/verify", "/api/v1/explain", "/api/v1/config"] {
        assert_eq!(code(&get(&agent, path)), refused, "{path}");
    }
    // It sees only its own.
    assert_eq!(get(&agent, "/api/v1/approvals").json()["items"][0]["caller"]["principal"], "bot");
    assert_eq!(server.get("/api/v1/approvals").json()["items"], json!([]));
    assert_eq!(code(&server.get(&format!("/api/v1/calls/{call}"))).0, 404);
    assert!(counted(&home).is_empty());
}

#[test]
fn apr_7_only_the_person_of_the_folder_decides_about_their_own_call() {
    let home = home("test__count");
    let server = home.serve();
    let anna = make(&server, &json!({ "name": "anna", "role": "approver" }));
    let root = make(&server, &json!({ "name": "root", "role": "admin" }));
    for who in [&anna, &root] {
        let body = json!({ "tool": "test__count", "arguments": count("own") });
        let (_, approval) = ids(&post(who, "/api/v1/calls", &body));
        let own = decide(who, &approval, &json!({ "approved": true }));
        assert_eq!(code(&own), (403, "PERMISSION_DENIED".into()), "{own:?}");
        assert!(own.json()["error"]["message"].as_str().unwrap().contains("own call"), "{own:?}");
        let yes = json!({ "tool": "test__count", "arguments": count("own"), "approve": true });
        assert_eq!(code(&post(who, "/api/v1/calls", &yes)).0, 403, "nor in one go");
    }
    assert!(counted(&home).is_empty());
    let (call, approval) = {
        let body = json!({ "tool": "test__count", "arguments": count("other") });
        ids(&post(&root, "/api/v1/calls", &body))
    };
    assert_eq!(decide(&anna, &approval, &json!({ "approved": true })).json()["decidedBy"], "anna");
    assert_eq!(over(&root, &call)["extras"]["approvedBy"], "anna");
    let body = json!({ "tool": "test__count", "arguments": count("person") });
    let (_, approval) = ids(&post(&server.admin(), "/api/v1/calls", &body));
    assert_eq!(decide(&server.admin(), &approval, &json!({ "approved": true })).status, 200);
}

#[test]
fn apr_6_a_rule_can_name_who_approves() {
    let home = TestDir::with_test_tools()
        .config("approvals: { requiresApprovalTools: [test__count], approvers: { test__count: [anna] } }\n");
    let server = home.serve();
    let anna = make(&server, &json!({ "name": "anna", "role": "approver" }));
    let olga = make(&server, &json!({ "name": "olga", "role": "approver" }));
    let (call, approval) = held(&server, "test__count", &count("a"));
    for who in [&olga, &server.admin()] {
        let answer = decide(who, &approval, &json!({ "approved": true }));
        assert_eq!(code(&answer), (403, "PERMISSION_DENIED".into()), "{answer:?}");
        assert!(answer.json()["error"]["message"].as_str().unwrap().contains("anna"), "{answer:?}");
    }
    assert_eq!(get(&olga, &format!("/api/v1/approvals/{approval}")).json()["approvers"], json!([["anna"]]));
    assert_eq!(decide(&anna, &approval, &json!({ "approved": true })).status, 200);
    assert_eq!(over(&server.client(), &call)["ok"], true);
}

#[test]
fn apr_7_a_key_that_does_not_hold_is_refused_without_a_word_of_why() {
    let home = TestDir::new();
    let server = home.serve();
    let (right, revoked, short) = (
        text(&server, &json!({ "name": "right", "role": "agent" })),
        text(&server, &json!({ "name": "revoked", "role": "admin" })),
        text(&server, &json!({ "name": "short", "role": "agent", "expiresIn": "1s" })),
    );
    let tools = |key: &str| get(&LocalServer::new(server.address, Some(key.to_owned())), "/api/v1/tools");
    assert_eq!((tools(&right).status, tools(&revoked).status), (200, 200));
    // It holds no more as soon as that was said.
    assert_eq!(delete(&server.admin(), "/api/v1/keys/revoked").json()["held"], true);
    assert_eq!(tools(&revoked).status, 401);
    server.eventually("the key expires", || tools(&short).status == 401);
    let mut wrong = right.clone();
    let last = if wrong.pop() == Some('0') { '1' } else { '0' };
    wrong.push(last);
    let unknown = right.replacen(|c: char| c.is_ascii_digit(), "f", 40);
    let answers: Vec<Value> = [&revoked, &short, &wrong, &unknown].map(|key| tools(key).json()).into();
    assert!(answers.iter().all(|answer| answer == &answers[0]), "{answers:?}");
    assert_eq!(answers[0]["error"]["code"], "PERMISSION_DENIED");
    assert_eq!(tools(&right).status, 200);
    let states: Vec<Value> = server.get_as_admin("/api/v1/keys").json()["items"].as_array().unwrap().clone();
    let state =
        |name: &str| states.iter().find(|key| key["name"] == name).expect("it is listed")["state"].clone();
    assert_eq!([state("right"), state("revoked"), state("short")], ["active", "revoked", "expired"]);
}

#[test]
fn apr_6_a_key_is_taken_by_its_scheme_however_that_is_written() {
    let home = TestDir::new();
    let server = home.serve();
    let key = text(&server, &json!({ "name": "anna", "role": "approver" }));
    let sent =
        |value: &str| server.request(http::Method::GET, "/api/v1/approvals", &[("authorization", value)], "");
    for scheme in ["Bearer", "bearer", "BEARER"] {
        assert_eq!(sent(&format!("{scheme} {key}")).status, 200, "{scheme}");
    }
    for value in ["Basic YW5uYTp4", &key, "Bearer"] {
        let refused = sent(value);
        assert_eq!(code(&refused), (401, "PERMISSION_DENIED".into()), "{value}");
        assert!(refused.text.contains("send Authorization: Bearer <key>"), "{refused:?}");
    }
}

#[test]
fn apr_7_what_was_granted_to_a_key_or_by_it_ends_with_it() {
    let home = remembering_home("test__count");
    let server = home.serve();
    let granted = |who: &LocalServer, by: &LocalServer, text: &str| {
        let body = json!({ "tool": "test__count", "arguments": count(text) });
        let (call, approval) = ids(&post(who, "/api/v1/calls", &body));
        let yes = decide(by, &approval, &json!({ "approved": true, "scope": "always" }));
        assert_eq!(yes.status, 200, "{yes:?}");
        assert_eq!(over(who, &call)["ok"], true);
    };
    let bot = make(&server, &json!({ "name": "bot", "role": "agent" }));
    let anna = make(&server, &json!({ "name": "anna", "role": "approver" }));
    granted(&bot, &server.admin(), "to bot");
    granted(&server.client(), &anna, "by anna");
    for name in ["bot", "anna"] {
        assert_eq!(delete(&server.admin(), &format!("/api/v1/keys/{name}")).status, 200);
    }
    let left = server.get_as_admin("/api/v1/grants").json();
    assert_eq!(left["items"], json!([]));
    // Nor does another person with the name of an approver have what that one granted.
    make(&server, &json!({ "name": "anna", "role": "approver" }));
    held(&server, "test__count", &count("nobody"));
    assert_eq!(counted(&home), ["to bot", "by anna"]);
}

#[test]
fn apr_7_a_key_is_shown_once_and_outlives_the_process() {
    let home = TestDir::new();
    let server = home.serve();
    let key = text(&server, &json!({ "name": "ci.bot-1", "role": "agent" }));
    let secret = key.rsplit('_').next().expect("a secret").to_owned();
    assert!(key.starts_with("gk_") && secret.len() == 64, "{key}");
    let listed = server.get_as_admin("/api/v1/keys");
    assert!(!listed.text.contains(&secret) && listed.text.contains("ci.bot-1"), "{}", listed.text);
    let (code, said) = server.stop();
    assert!(code == 0 && !said.contains(&secret), "{said}");
    for file in std::fs::read_dir(home.path().join(".gantry")).expect("the data folder") {
        let path = file.expect("a file").path();
        let bytes = if path.is_file() { std::fs::read(&path).expect("it is readable") } else { Vec::new() };
        let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!found, "the secret is in {}", path.display());
    }
    let server = home.serve();
    let bot = LocalServer::new(server.address, Some(key));
    assert_eq!(get(&bot, "/api/v1/tools").status, 200);
}

#[test]
fn apr_7_a_key_that_makes_no_sense_is_not_made() {
    let home = TestDir::new();
    let server = home.serve();
    for key in [
        json!({ "role": "agent" }),
        json!({ "name": "a" }),
        json!({ "name": "a b", "role": "agent" }),
        json!({ "name": "person", "role": "agent" }),
        json!({ "name": "a", "role": "owner" }),
        json!({ "name": "a", "role": "agent", "projects": ["nowhere"] }),
        json!({ "name": "a", "role": "agent", "projects": [] }),
        json!({ "name": "a", "role": "agent", "agent": "nobody" }),
        json!({ "name": "a", "role": "agent", "tools": ["*"] }),
        json!({ "name": "a", "role": "agent", "expiresIn": "soon" }),
        json!({ "name": "a", "role": "agent", "expiresAt": "2001-01-01T00:00:00Z" }),
        json!({ "name": "a", "role": "agent", "secret": "mine" }),
    ] {
        let answer = post(&server.admin(), "/api/v1/keys", &key);
        assert_eq!(code(&answer), (400, "INVALID_ARGUMENTS".into()), "{key}: {answer:?}");
    }
    make(&server, &json!({ "name": "a", "role": "agent" }));
    let again = post(&server.admin(), "/api/v1/keys", &json!({ "name": "a", "role": "admin" }));
    assert_eq!(code(&again).0, 409, "a name is one key's: {again:?}");
    assert_eq!(delete(&server.admin(), "/api/v1/keys/a").status, 200);
    make(&server, &json!({ "name": "a", "role": "agent" }));
    assert_eq!(code(&delete(&server.admin(), "/api/v1/keys/nobody")).0, 404);
}
