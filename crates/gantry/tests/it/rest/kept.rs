//! What a yes was for, and what a change of the configuration leaves alone.

use super::{Rig, document, home, operation, with};
use gantry_testkit::{Echo, TestDir};
use serde_json::{Value, json};

fn waiting(home: &TestDir) -> Vec<Value> {
    let ran = home.run(["approvals", "list", "--json"]);
    let listed = ran.json();
    let items = listed.get("items").unwrap_or(&listed).as_array().cloned();
    items.unwrap_or_else(|| panic!("{ran:?}"))
}

fn api(echo: &Echo, path: &str) -> String {
    let paths = json!({ path: { "post": operation("doit") } });
    with(document(&paths), &json!({ "servers": [{ "url": echo.url("") }] })).to_string()
}

#[test]
fn rst_2_a_yes_is_for_the_request_that_the_person_saw() {
    let echo = Echo::start();
    let home = home(&json!({
        "openapiSpecs": { "api": { "spec": "api.json" } },
        "approvals": { "requiresApprovalTools": ["rest__*"] },
    }));
    home.write("api.json", &api(&echo, "/things"));
    let held = home.call("rest__api_doit", &json!({}));
    assert_eq!(held["error"]["code"], "APPROVAL_REQUIRED", "{held}");
    let asked = waiting(&home);
    let reason = asked[0]["reason"].as_str().expect("a reason");
    assert!(reason.contains(&format!("it sends POST {}", echo.url("/things"))), "{reason}");
    // The same tool to a client, another request to the service.
    home.write("api.json", &api(&echo, "/wipe"));
    home.run(["approvals", "approve", asked[0]["id"].as_str().expect("an id")]);
    assert_eq!(echo.requests().len(), 0, "nobody has agreed to that");
    let again = waiting(&home);
    assert_ne!(again[0]["id"], asked[0]["id"], "{again:?}");
    assert!(again[0]["reason"].as_str().is_some_and(|reason| reason.contains("/wipe")), "{again:?}");
    home.run(["approvals", "approve", again[0]["id"].as_str().expect("an id")]);
    assert_eq!(echo.hits("/wipe"), 1);
}

#[test]
fn rst_2_a_document_from_the_web_stays_while_the_configuration_changes() {
    let echo = Echo::start();
    let text = api(&echo, "/a");
    let spec =
        json!({ "spec": echo.document("api.json", "application/json", &text), "baseUrl": echo.url("") });
    let before = json!({ "web": { "allowPrivate": ["127.0.0.1/32"] }, "openapiSpecs": { "api": spec } });
    let home = TestDir::new().config(&before.to_string());
    let rig = Rig::at(echo, home);
    assert_eq!(rig.tools(), ["rest__api_doit"]);
    let reads = rig.echo.hits("/spec/api.json");
    // What it says by now cannot be used, but it was not asked for anew.
    rig.echo.document("api.json", "application/json", "{");
    let now = with(before, &json!({ "agents": { "one": { "tools": ["openapi:api"] } } }));
    rig.home.write("gantry.yaml", &now.to_string());
    rig.server.eventually("the agent is there", || {
        rig.server.get("/api/v1/tools?agent=one").json()["items"].as_array().is_some_and(|all| all.len() == 1)
    });
    assert_eq!(rig.tools(), ["rest__api_doit"]);
    assert_eq!(rig.echo.hits("/spec/api.json"), reads);
}

#[test]
fn rst_2_a_client_secret_goes_nowhere_that_a_document_from_the_web_chose() {
    let echo = Echo::start();
    let credentials = json!({ "o": { "clientId": "me", "clientSecret": "s3cret-of-mine" } });
    let entry = json!({ "spec": echo.url("/spec/api.json"), "baseUrl": echo.url(""), "auth": credentials });
    let ran = home(&json!({ "openapiSpecs": { "api": entry } })).run(["tools"]);
    assert!(ran.code != 0 && ran.stderr.contains("tokenUrl") && !ran.stderr.contains("s3cret"), "{ran:?}");
    let entry = json!({ "spec": echo.url("/spec/api.json"), "headers": { "X-Key": "s3cret-of-mine" } });
    let ran = home(&json!({ "openapiSpecs": { "api": entry } })).run(["tools"]);
    assert!(ran.code != 0 && ran.stderr.contains("baseUrl") && !ran.stderr.contains("s3cret"), "{ran:?}");
}

#[test]
fn rst_2_no_agent_rewrites_what_a_document_is_made_of() {
    let echo = Echo::start();
    let home = home(&json!({ "openapiSpecs": { "api": { "spec": "api.json" } } }));
    let item = json!({ "get": operation("a") }).to_string();
    home.write("item.json", &item);
    let paths = json!({ "/a": { "$ref": "item.json" } });
    let document = with(document(&paths), &json!({ "servers": [{ "url": echo.url("") }] })).to_string();
    home.write("api.json", &document);
    for (file, before) in [("api.json", &document), ("item.json", &item)] {
        let reply = home.call_yes("write_file", &json!({ "path": file, "content": "{}" }));
        assert_eq!(reply["error"]["code"], "PERMISSION_DENIED", "{file}: {reply}");
        assert_eq!(&home.read(file), before, "{file}");
    }
    let other = home.call_yes("write_file", &json!({ "path": "other.json", "content": "{}" }));
    assert_eq!(other["ok"], true, "{other}");
}
