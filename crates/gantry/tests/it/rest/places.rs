//! Where requests go: servers, their variables, `baseUrl`, documents by URL, and addresses that are not open.

use super::{Rig, document, failed, home, inspect, operation, with};
use gantry_testkit::{Echo, TestDir};
use serde_json::{Value, json};

fn one() -> Value {
    document(&json!({ "/a": { "get": operation("get") } }))
}

/// The report on this document in a file.
fn report(document: &Value) -> Value {
    let home = TestDir::new();
    home.write("api.json", &document.to_string());
    inspect(&home, "api.json")
}

#[test]
fn rst_2_the_first_server_is_taken_and_its_path_is_kept() {
    let echo = Echo::start();
    let document = with(
        one(),
        &json!({ "servers": [{ "url": echo.url("/v1/") }, { "url": "https://other.example.com" }] }),
    );
    let home = home(&json!({ "openapiSpecs": { "api": { "spec": "api.json" } } }));
    home.write("api.json", &document.to_string());
    let rig = Rig::at(echo, home);
    assert_eq!(rig.sent("rest__api_get", &json!({}))["path"], "/v1/a");
}

#[test]
fn rst_2_variables_of_servers_have_defaults_and_settings() {
    let echo = Echo::start();
    let server = json!({ "url": "http://{host}:{port}/{version}", "variables": {
        "host": { "default": "127.0.0.1" },
        "port": { "default": "1" },
        "version": { "default": "v1", "enum": ["v1", "v2"] },
    } });
    let document = with(one(), &json!({ "servers": [server] }));
    let port = echo.address.port().to_string();
    let spec = |variables: Value| json!({ "spec": "api.json", "serverVariables": with(json!({ "port": port }), &variables) });
    let home = home(&json!({ "openapiSpecs": {
        "usual": spec(json!({})), "second": spec(json!({ "version": "v2" })), "wrong": spec(json!({ "version": "v3" })),
    } }));
    home.write("api.json", &document.to_string());
    let rig = Rig::at(echo, home);
    assert_eq!(rig.sent("rest__usual_get", &json!({}))["path"], "/v1/a");
    assert_eq!(rig.sent("rest__second_get", &json!({}))["path"], "/v2/a");
    assert_eq!(rig.tools(), ["rest__second_get", "rest__usual_get"], "a value that is not allowed is none");
}

#[test]
fn rst_2_base_url_stands_in_for_the_servers() {
    let document = with(one(), &json!({ "servers": [{ "url": "https://api.example.com/v1" }] }));
    let echo = Echo::start();
    let entry = json!({ "spec": "api.json", "baseUrl": echo.url("/base") });
    let home = home(&json!({ "openapiSpecs": { "api": entry } }));
    home.write("api.json", &document.to_string());
    let rig = Rig::at(echo, home);
    assert_eq!(rig.sent("rest__api_get", &json!({}))["path"], "/base/a");
}

#[test]
fn rst_2_servers_of_a_path_and_of_an_operation_go_before_the_usual_one() {
    let echo = Echo::start();
    let at = |path: &str| json!([{ "url": echo.url(path) }]);
    let document = with(
        document(&json!({
            "/a": { "servers": at("/path"), "get": operation("get"), "post": with(operation("post"), &json!({ "servers": at("/own") })) },
            "/b": { "get": operation("other") },
        })),
        &json!({ "servers": at("/usual") }),
    );
    let home = home(&json!({ "openapiSpecs": { "api": { "spec": "api.json" } } }));
    home.write("api.json", &document.to_string());
    let rig = Rig::at(echo, home);
    for (tool, path) in [("get", "/path/a"), ("post", "/own/a"), ("other", "/usual/b")] {
        assert_eq!(rig.sent(&format!("rest__api_{tool}"), &json!({}))["path"], path, "{tool}");
    }
}

#[test]
fn rst_2_a_document_in_a_file_may_have_operations_elsewhere() {
    let (echo, other) = (Echo::start(), Echo::start());
    let elsewhere = json!({ "servers": [{ "url": other.url("/up") }] });
    let document = with(
        document(&json!({ "/a": { "get": operation("get"), "put": with(operation("put"), &elsewhere) } })),
        &json!({ "servers": [{ "url": echo.url("") }] }),
    );
    let home = home(&json!({ "openapiSpecs": { "api": { "spec": "api.json" } } }));
    home.write("api.json", &document.to_string());
    let rig = Rig::at(echo, home);
    rig.result("rest__api_put", &json!({}));
    assert_eq!((other.hits("/up/a"), rig.echo.hits("/a")), (1, 0));
    // And a person who looks before sees what there will be.
    assert_eq!(inspect(&rig.home, "api.json")["counts"]["tools"], 2);
}

#[test]
fn rst_2_a_document_by_url_is_where_relative_servers_begin() {
    let document = with(one(), &json!({ "servers": [{ "url": "../../v2" }] }));
    let rig = Rig::of(|echo| {
        let url = echo.document("deep/api.yaml", "application/yaml", &document.to_string());
        json!({ "openapiSpecs": { "api": { "spec": url } } })
    });
    rig.server.eventually("the document is read", || rig.tools() == ["rest__api_get"]);
    assert_eq!(rig.sent("rest__api_get", &json!({}))["path"], "/v2/a");
}

#[test]
fn rst_2_a_document_by_url_that_cannot_be_had_yet_is_tried_again() {
    let rig = Rig::of(|echo| json!({ "openapiSpecs": { "api": { "spec": echo.url("/spec/late.json") } } }));
    assert_eq!(rig.tools(), Vec::<String>::new());
    let document = with(one(), &json!({ "servers": [{ "url": rig.echo.url("") }] }));
    rig.echo.document("late.json", "application/json", &document.to_string());
    rig.server.eventually("the document is read", || rig.tools() == ["rest__api_get"]);
}

#[test]
fn rst_2_a_document_that_says_no_place_needs_one() {
    let report = report(&one());
    let text = report.to_string();
    assert!(text.contains("baseUrl"), "what to do: {text}");
}

#[test]
fn rst_2_a_private_address_needs_to_be_opened() {
    let echo = Echo::start();
    let document = with(one(), &json!({ "servers": [{ "url": echo.url("") }] }));
    let home = TestDir::new().config(
        &json!({
            "openapiSpecs": { "api": { "spec": "api.json" } },
            "restTools": { "inline": { "description": "x", "url": echo.url("/b") } },
        })
        .to_string(),
    );
    home.write("api.json", &document.to_string());
    for tool in ["rest__api_get", "rest__inline"] {
        let (_, message) = failed(&home.call(tool, &json!({})));
        assert!(message.contains("web.allowPrivate") && message.contains("127.0.0.1"), "{tool}: {message}");
    }
    assert!(echo.requests().is_empty());
}

#[test]
fn rst_2_a_redirect_is_followed_only_to_where_it_came_from() {
    let other = Echo::start();
    let rig = Rig::inline(|echo| {
        let tool = |method: &str, to: String| {
            json!({ "description": "x", "method": method, "url": echo.url("/redirect"), "query": { "to": to },
                    "headers": { "X-Key": "s3cret-of-this-service" } })
        };
        json!({
            "near": tool("GET", "/end".to_owned()), "far": tool("GET", other.url("/end")), "post": tool("POST", "/end".to_owned()),
            "again": tool("GET", echo.url("/redirect?to=/redirect")),
        })
    });
    assert_eq!(rig.result("rest__near", &json!({}))["path"], "/end");
    for tool in ["far", "post"] {
        let reply = rig.call(&format!("rest__{tool}"), &json!({}));
        assert_eq!(
            (&reply["error"]["code"], &reply["error"]["details"]["status"]),
            (&json!("EXECUTION_ERROR"), &json!(302)),
            "{reply}"
        );
    }
    assert!(other.requests().is_empty());
    let (_, message) = rig.failed("rest__again", &json!({}));
    assert!(!message.contains("s3cret"), "{message}");
}
