//! APR-10: a yes that holds for more than one call is listed, and revoked.

use super::{code, count, counted, decide, delete, get, held, over, remembering_home};
use crate::approvals::keys::make;
use serde_json::json;

#[test]
fn apr_10_a_grant_is_listed_holds_and_is_revoked() {
    let home = remembering_home("test__count");
    let server = home.serve();
    let (call, approval) = held(&server, "test__count", &count("a"));
    let yes = decide(&server.admin(), &approval, &json!({ "approved": true, "scope": "always" }));
    assert_eq!((yes.status, &yes.json()["decision"]["scope"]), (200, &json!("always")), "{yes:?}");
    assert_eq!(over(&server.client(), &call)["ok"], true);
    let free = server.call("test__count", &count("b"));
    assert_eq!((free.status, &free.json()["ok"]), (200, &json!(true)), "{free:?}");

    let listed = server.get_as_admin("/api/v1/grants").json();
    let grant = &listed["items"][0];
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(1), "{listed}");
    assert_eq!(
        [&grant["tool"], &grant["provider"], &grant["principal"], &grant["scope"], &grant["grantedBy"]],
        [&json!("test__count"), &json!("test"), &json!("local"), &json!("always"), &json!("person")],
        "{grant}"
    );
    assert_eq!((&grant["approvalId"], &yes.json()["decision"]["grant"]), (&json!(approval), &grant["id"]));
    // Its holder may know of it; others, and those who decide about other tools, may not.
    assert_eq!(server.get("/api/v1/grants").json()["items"][0]["id"], grant["id"]);
    let other = make(&server, &json!({ "name": "olga", "role": "approver", "tools": ["fs__*"] }));
    assert_eq!(get(&other, "/api/v1/grants").json()["items"], json!([]));

    let path = format!("/api/v1/grants/{}", grant["id"].as_str().expect("an id"));
    assert_eq!(code(&delete(&server.client(), &path)), (403, "PERMISSION_DENIED".into()));
    assert_eq!(code(&delete(&other, &path)), (404, "NOT_FOUND".into()));
    let approver = make(&server, &json!({ "name": "anna", "role": "approver", "tools": ["test__*"] }));
    let gone = delete(&approver, &path);
    assert_eq!((gone.status, &gone.json()["held"]), (200, &json!(true)), "{gone:?}");
    held(&server, "test__count", &count("c"));
    assert_eq!(counted(&home), ["a", "b"]);
    assert_eq!(server.get_as_admin("/api/v1/grants").json()["items"], json!([]));
    let revoked = server.get_as_admin("/api/v1/grants?revoked=true").json();
    assert_eq!(revoked["items"][0]["revokedBy"], "anna", "{revoked}");
    assert_eq!(delete(&approver, &path).json()["held"], false, "it was revoked before");
}
