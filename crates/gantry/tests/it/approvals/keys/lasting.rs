//! A yes for longer than a call: for which server it is, and for which session there can be one.

use super::super::api::{code, count, counted, decide, held, over, remembering_home};
use crate::passthrough::{Door, Talk};
use crate::projects::{Site, heard_in};
use gantry_testkit::TestDir;
use serde_json::{Value, json};

/// A configuration in which one tool of the server, which writes down what it is sent in this file, waits for a person.
fn config(file: &str) -> Value {
    let approvals = json!({ "requiresApprovalTools": ["s__versioned"], "remember": "always" });
    json!({ "approvals": approvals, "mcpServers": { "s": heard_in(file, "s") } })
}

#[test]
fn apr_10_a_grant_is_void_for_another_server_behind_the_same_name() {
    let site = Site::of(&config("one.txt"));
    let (call, approval) = held(&site.server, "s__versioned", &json!({}));
    let always = json!({ "approved": true, "scope": "always" });
    assert_eq!(decide(&site.server.admin(), &approval, &always).status, 200);
    assert_eq!(over(&site.server.client(), &call)["ok"], true);
    let free = |site: &Site| site.server.call("s__versioned", &json!({}));
    assert_eq!(free(&site).json()["ok"], true);
    // The same server, started anew, is the same server.
    let restarted = site.admin(http::Method::POST, "/api/v1/servers/s/restart", &Value::Null);
    assert_eq!(restarted.status, 200, "{restarted:?}");
    site.settled();
    assert_eq!(free(&site).json()["ok"], true);
    let calls = |file: &str| site.requests(file, "tools/call");
    assert_eq!(calls("one.txt"), 3);
    // Word for word the same tool, of another program.
    site.home.write("gantry.yaml", &config("other.txt").to_string());
    assert_eq!(site.reload().status, 200);
    site.settled();
    held(&site.server, "s__versioned", &json!({}));
    assert_eq!((calls("one.txt"), calls("other.txt")), (3, 0));
}

#[test]
fn apr_10_a_grant_for_files_holds_for_any_content() {
    let home = TestDir::new();
    home.write("a.txt", "one");
    let server = home.serve();
    let write = |content: &str| json!({ "path": "a.txt", "content": content });
    let (call, approval) = held(&server, "write_file", &write("two"));
    let always = json!({ "approved": true, "scope": "always" });
    assert_eq!(decide(&server.admin(), &approval, &always).status, 200);
    assert_eq!(over(&server.client(), &call)["ok"], true);
    home.write("a.txt", "what somebody has left");
    let free = server.call("write_file", &write("three"));
    assert_eq!((free.status, &free.json()["ok"]), (200, &json!(true)), "{free:?}");
    assert_eq!(home.read("a.txt"), "three");
}

#[test]
fn apr_10_a_caller_without_a_session_of_its_own_is_given_nothing_for_the_session() {
    let home = remembering_home("test__count");
    let server = home.serve();
    let (call, approval) = held(&server, "test__count", &count("a"));
    let item = || server.get_as_admin(&format!("/api/v1/approvals/{approval}")).json();
    assert_eq!(item()["sessionGrant"], false);
    for body in [
        json!({ "approved": true, "scope": "session" }),
        json!({ "approved": true, "scope": "session", "modifiedArgs": count("b") }),
    ] {
        let refused = decide(&server.admin(), &approval, &body);
        assert_eq!(code(&refused), (400, "INVALID_ARGUMENTS".into()), "{refused:?}");
        let message = refused.json()["error"]["message"].as_str().expect("a message").to_owned();
        assert!(message.contains("no session of its own; decide `once`, or `always`"), "{message}");
        assert_eq!(item()["state"], "PENDING_APPROVAL");
    }
    let record = server.get(&format!("/api/v1/calls/{call}")).json()["record"].clone();
    assert_eq!(record["refusedDecisions"].as_array().map(Vec::len), Some(2), "{record}");
    assert_eq!(decide(&server.admin(), &approval, &json!({ "approved": true, "scope": "once" })).status, 200);
    assert_eq!(over(&server.client(), &call)["ok"], true);
    assert_eq!(server.get_as_admin("/api/v1/grants?revoked=true").json()["items"], json!([]));
}

#[test]
fn apr_10_a_yes_for_the_session_of_a_client_ends_with_it() {
    let home = remembering_home("test__count");
    let server = home.serve();
    let waits = |text: &str| {
        let path = "/api/v1/approvals?state=PENDING_APPROVAL";
        let found = || server.get_as_admin(path).json()["items"].clone();
        server.eventually("it waits", || found()[0]["arguments"]["text"] == text);
        found()[0].clone()
    };
    let session = json!({ "approved": true, "scope": "session" });
    let nothing = json!({});
    let mut client = Talk::legacy_with(Door::Http(&server, "/mcp"), &nothing);
    let asked = client.begin_call("test__count", &count("a"));
    let item = waits("a");
    assert_eq!(item["sessionGrant"], true, "{item}");
    let yes = decide(&server.admin(), item["id"].as_str().expect("an id"), &session);
    assert_eq!((yes.status, &yes.json()["decision"]["scope"]), (200, &json!("session")), "{yes:?}");
    client.end_call(asked);
    client.call("test__count", &count("b"));
    let mut other = Talk::legacy_with(Door::Http(&server, "/mcp"), &nothing);
    let asked = other.begin_call("test__count", &count("c"));
    let item = waits("c");
    assert_eq!(
        decide(&server.admin(), item["id"].as_str().expect("an id"), &json!({ "approved": true })).status,
        200
    );
    other.end_call(asked);
    // Clients of the newer era have none of their own.
    let mut modern = Talk::modern_with(Door::Http(&server, "/mcp"), &nothing);
    let asked = modern.begin_call("test__count", &count("d"));
    let item = waits("d");
    assert_eq!(item["sessionGrant"], false, "{item}");
    let approval = item["id"].as_str().expect("an id");
    assert_eq!(code(&decide(&server.admin(), approval, &session)).0, 400);
    assert_eq!(decide(&server.admin(), approval, &json!({ "approved": true })).status, 200);
    modern.end_call(asked);
    assert_eq!(counted(&home), ["a", "b", "c", "d"]);
}
