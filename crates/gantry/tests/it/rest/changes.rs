//! Documents that change, that are broken, and that lack a variable: each costs itself only.

use super::{Rig, document, home, operation, with};
use gantry_testkit::Echo;
use serde_json::{Value, json};

fn api(echo: &Echo, ids: &[&str]) -> Value {
    let mut paths = json!({});
    for id in ids {
        paths[format!("/{id}")] = json!({ "get": operation(id) });
    }
    with(document(&paths), &json!({ "servers": [{ "url": echo.url("") }] }))
}

#[test]
fn rst_2_a_changed_document_applies_while_gantry_runs() {
    let echo = Echo::start();
    let home = home(&json!({ "openapiSpecs": { "api": { "spec": "api.json" } } }));
    home.write("api.json", &api(&echo, &["a"]).to_string());
    let rig = Rig::at(echo, home);
    assert_eq!(rig.tools(), ["rest__api_a"]);
    rig.home.write("api.json", &api(&rig.echo, &["a", "b"]).to_string());
    rig.server.eventually("the new operation is there", || rig.tools() == ["rest__api_a", "rest__api_b"]);
    rig.sent("rest__api_b", &json!({}));
    // What is broken is reported, and what was there stays.
    rig.home.write("api.json", "{ \"openapi\": ");
    rig.server.eventually("it is told", || rig.server.stderr().contains("api.json"));
    assert_eq!(rig.tools(), ["rest__api_a", "rest__api_b"]);
    rig.sent("rest__api_a", &json!({}));
    rig.home.write("api.json", &api(&rig.echo, &["c"]).to_string());
    rig.server.eventually("it is mended", || rig.tools() == ["rest__api_c"]);
}

#[test]
fn rst_2_a_file_that_is_referred_to_may_change_too() {
    let echo = Echo::start();
    let home = home(&json!({ "openapiSpecs": { "api": { "spec": "api.json" } } }));
    let item = |id: &str| json!({ "get": operation(id) }).to_string();
    home.write("a.json", &item("a"));
    let document = with(
        document(&json!({ "/a": { "$ref": "a.json" } })),
        &json!({ "servers": [{ "url": echo.url("") }] }),
    );
    home.write("api.json", &document.to_string());
    let rig = Rig::at(echo, home);
    assert_eq!(rig.tools(), ["rest__api_a"]);
    rig.home.write("a.json", &item("b"));
    rig.server.eventually("the new name is there", || rig.tools() == ["rest__api_b"]);
}

#[test]
fn rst_2_a_broken_document_leaves_the_others() {
    let echo = Echo::start();
    let spec = |file: &str| json!({ "spec": file });
    let home = home(&json!({ "openapiSpecs": {
        "good": spec("good.json"), "absent": spec("absent.json"), "broken": spec("broken.yaml"), "other": spec("other.json"),
        "empty": spec("empty.json"),
    }, "restTools": { "plain": { "description": "x", "url": echo.url("/plain") } } }));
    home.write("good.json", &api(&echo, &["a"]).to_string());
    home.write("broken.yaml", "openapi: 3.0.0\npaths: {a: [\n");
    home.write("other.json", "{\"asyncapi\": \"2.6.0\"}");
    home.write("empty.json", "");
    let rig = Rig::at(echo, home);
    assert_eq!(rig.tools(), ["rest__good_a", "rest__plain"]);
    rig.sent("rest__good_a", &json!({}));
    let doctor = rig.home.run(["doctor"]);
    let said = format!("{}{}{}", rig.server.stderr(), doctor.stdout, doctor.stderr);
    for name in ["absent", "broken", "other", "empty"] {
        assert!(said.contains(&format!("openapi:{name}")), "{name}: {said}");
    }
}

#[test]
fn rst_2_an_unset_variable_switches_off_that_service_only() {
    let echo = Echo::start();
    let home = home(&json!({
        "openapiSpecs": {
            "lacking": { "spec": "api.json", "headers": { "X-Key": "${REST_TEST_KEY}" } },
            "off": { "spec": "api.json", "enabled": false, "headers": { "X-Key": "${REST_TEST_KEY}" } },
            "good": { "spec": "api.json", "headers": { "X-Key": "${REST_TEST_OTHER:-usual}" } },
        },
        "restTools": {
            "lacking": { "description": "x", "url": echo.url("/x"), "headers": { "X-Key": "${REST_TEST_KEY}" } },
            "good": { "description": "x", "url": echo.url("/x") },
        },
    }));
    home.write("api.json", &api(&echo, &["a"]).to_string());
    let ran = home.run(["tools", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(super::rest_tools(&ran.json()), ["rest__good", "rest__good_a"]);
    assert!(ran.stderr.contains("REST_TEST_KEY") && ran.stderr.contains("openapiSpecs.lacking"), "{ran:?}");
    assert!(ran.stderr.contains("restTools.lacking") && !ran.stderr.contains("openapiSpecs.off"), "{ran:?}");
    let reply = home.call("rest__good_a", &json!({}));
    assert_eq!(reply["ok"], true, "{reply}");
    assert_eq!(echo.last()["headers"]["x-key"], json!(["usual"]));
}

#[test]
fn rst_2_tools_of_both_kinds_share_a_namespace_without_a_clash() {
    let echo = Echo::start();
    let home = home(&json!({
        "openapiSpecs": { "api": { "spec": "api.json" } },
        "restTools": { "api_a": { "description": "mine", "url": echo.url("/inline") } },
    }));
    home.write("api.json", &api(&echo, &["a", "b"]).to_string());
    let rig = Rig::at(echo, home);
    let tools = rig.tools();
    assert_eq!(tools.len(), 3, "{tools:?}");
    assert_eq!(rig.sent("rest__api_a", &json!({}))["path"], "/inline");
    let other =
        tools.iter().find(|name| name.starts_with("rest__api_a_")).expect("the operation has another name");
    assert_eq!(rig.sent(other, &json!({}))["path"], "/a");
}
