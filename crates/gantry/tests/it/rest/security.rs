//! Security schemes: what a service is shown, from the configuration and never from an argument.

use super::{Rig, document, operation, with};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gantry_testkit::Echo;
use gantry_testkit::echo::{CLIENT_ID, CLIENT_SECRET};
use serde_json::{Value, json};

/// A document in which each operation needs one of the schemes.
fn secured(token_url: &str) -> Value {
    let needs = |id: &str, security: Value| with(operation(id), &json!({ "security": security }));
    let mut secured = document(&json!({
        "/in-header": { "get": needs("in_header", json!([{ "head": [] }])) },
        "/in-query": { "get": with(needs("in_query", json!([{ "query": [] }])), &json!({
            "parameters": [{ "name": "q", "in": "query", "schema": { "type": "string" } }],
        })) },
        "/in-cookie": { "get": with(needs("in_cookie", json!([{ "cookie": [] }])), &json!({
            "parameters": [{ "name": "sid", "in": "cookie", "schema": { "type": "string" } }],
        })) },
        "/basic": { "get": needs("basic", json!([{ "basic": [] }])) },
        "/bearer": { "get": needs("bearer", json!([{ "bearer": [] }])) },
        "/oidc": { "get": needs("oidc", json!([{ "oidc": [] }])) },
        "/person": { "get": needs("person", json!([{ "person": ["read"] }])) },
        "/guarded/x": { "get": needs("guarded", json!([{ "client": ["read"] }])), "post": needs("change", json!([{ "client": ["write"] }])) },
        "/both": { "get": needs("both", json!([{ "head": [], "bearer": [] }])) },
        "/either": { "get": needs("either", json!([{ "absent": [] }, { "bearer": [] }])) },
        "/open": { "get": needs("open", json!([])) },
        "/usual": { "get": operation("usual") },
        "/needy": { "get": needs("needy", json!([{ "absent": [] }])) },
    }));
    secured["security"] = json!([{ "head": [] }]);
    secured["components"]["securitySchemes"] = json!({
        "head": { "type": "apiKey", "in": "header", "name": "X-Key" },
        "query": { "type": "apiKey", "in": "query", "name": "key" },
        "cookie": { "type": "apiKey", "in": "cookie", "name": "sid" },
        "basic": { "type": "http", "scheme": "Basic" },
        "bearer": { "type": "http", "scheme": "bearer", "bearerFormat": "JWT" },
        "oidc": { "type": "openIdConnect", "openIdConnectUrl": "https://id.example.com/.well-known/openid-configuration" },
        "person": { "type": "oauth2", "flows": { "authorizationCode": {
            "authorizationUrl": "https://id.example.com/a", "tokenUrl": "https://id.example.com/t", "scopes": { "read": "" },
        } } },
        "client": { "type": "oauth2", "flows": { "clientCredentials": {
            "tokenUrl": token_url, "scopes": { "read": "Read", "write": "Write" },
        } } },
        "absent": { "type": "apiKey", "in": "header", "name": "X-Other" },
    });
    secured
}

fn rig(token_path: &str) -> Rig {
    let echo = Echo::start();
    let home = super::home(&json!({ "openapiSpecs": { "api": { "spec": "api.json", "auth": {
        "head": { "apiKey": "s3cret-head" },
        "query": { "apiKey": "s3cret query&" },
        "cookie": { "apiKey": "s3cret-cookie" },
        "basic": { "username": "ada", "password": "s3cret:é" },
        "bearer": { "token": "s3cret-bearer" },
        "oidc": { "token": "s3cret-oidc" },
        "person": { "token": "s3cret-person" },
        "client": { "clientId": CLIENT_ID, "clientSecret": CLIENT_SECRET },
    } } } }));
    let mut document = secured(&echo.url(token_path));
    document["servers"] = json!([{ "url": echo.url("") }]);
    home.write("api.json", &document.to_string());
    Rig::at(echo, home)
}

fn header(sent: &Value, name: &str) -> Value {
    sent["headers"].get(name).map_or(Value::Null, |values| values[0].clone())
}

#[test]
fn rst_2_api_keys_arrive_in_header_query_and_cookie() {
    let rig = rig("/token");
    let sent = rig.sent("rest__api_in_header", &json!({}));
    assert_eq!(sent["headers"]["x-key"], json!(["s3cret-head"]));
    let sent = rig.sent("rest__api_in_query", &json!({ "q": "x" }));
    assert_eq!(sent["query"], "q=x&key=s3cret%20query%26", "{sent}");
    assert_eq!(header(&sent, "x-key"), Value::Null, "only what the operation needs");
    let sent = rig.sent("rest__api_in_cookie", &json!({}));
    assert_eq!(sent["cookies"], json!([["sid", "s3cret-cookie"]]), "{sent}");
}

#[test]
fn rst_2_basic_and_bearer_arrive_as_authorization() {
    let rig = rig("/token");
    let basic = format!("Basic {}", STANDARD.encode("ada:s3cret:é"));
    for (tool, value) in [
        ("basic", basic.as_str()),
        ("bearer", "Bearer s3cret-bearer"),
        ("oidc", "Bearer s3cret-oidc"),
        ("person", "Bearer s3cret-person"),
    ] {
        assert_eq!(
            header(&rig.sent(&format!("rest__api_{tool}"), &json!({})), "authorization"),
            value,
            "{tool}"
        );
    }
}

#[test]
fn rst_2_schemes_are_needed_together_or_in_turn_as_the_document_says() {
    let rig = rig("/token");
    let sent = rig.sent("rest__api_both", &json!({}));
    assert_eq!(
        (header(&sent, "x-key"), header(&sent, "authorization")),
        (json!("s3cret-head"), json!("Bearer s3cret-bearer"))
    );
    let sent = rig.sent("rest__api_either", &json!({}));
    assert_eq!(
        (header(&sent, "x-other"), header(&sent, "authorization")),
        (Value::Null, json!("Bearer s3cret-bearer"))
    );
    let sent = rig.sent("rest__api_open", &json!({}));
    assert_eq!((header(&sent, "x-key"), header(&sent, "authorization")), (Value::Null, Value::Null));
    assert_eq!(header(&rig.sent("rest__api_usual", &json!({})), "x-key"), "s3cret-head");
}

#[test]
fn rst_2_tokens_for_client_credentials_are_kept() {
    let rig = rig("/token");
    for _ in 0..3 {
        assert_eq!(rig.result("rest__api_guarded", &json!({}))["path"], "/guarded/x");
    }
    assert_eq!((rig.echo.hits("/token"), rig.echo.hits("/guarded/x")), (1, 3));
    let asked =
        rig.echo.requests().into_iter().find(|request| request["path"] == "/token").expect("a request");
    let form = asked["body"]["form"].as_array().expect("a form").clone();
    assert!(
        form.contains(&json!(["grant_type", "client_credentials"]))
            && form.contains(&json!(["scope", "read"])),
        "{asked}"
    );
    // Other scopes are another token.
    rig.result("rest__api_change", &json!({}));
    assert_eq!(rig.echo.hits("/token"), 2);
}

#[test]
fn rst_2_a_token_that_is_no_longer_good_is_renewed() {
    let rig = rig("/token");
    rig.result("rest__api_guarded", &json!({}));
    rig.echo.revoke();
    assert_eq!(
        rig.result("rest__api_guarded", &json!({}))["headers"]["authorization"],
        json!(["Bearer [redacted]"]),
        "what the service repeats is masked"
    );
    assert_eq!(rig.echo.last()["headers"]["authorization"], json!(["Bearer s3cret-token-2"]));
    assert_eq!(
        (rig.echo.hits("/token"), rig.echo.hits("/guarded/x")),
        (2, 3),
        "once refused, once more with a new one"
    );
}

#[test]
fn rst_2_a_token_that_expires_is_not_used_after_that() {
    let rig = rig("/token?expires=1");
    rig.result("rest__api_guarded", &json!({}));
    rig.result("rest__api_guarded", &json!({}));
    assert_eq!((rig.echo.hits("/token"), rig.echo.hits("/guarded/x")), (2, 2));
}

#[test]
fn rst_2_many_calls_at_once_fetch_one_token() {
    let rig = rig("/token");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| rig.result("rest__api_guarded", &json!({})));
        }
    });
    assert_eq!((rig.echo.hits("/token"), rig.echo.hits("/guarded/x")), (1, 8));
}

#[test]
fn rst_2_a_credential_that_is_not_set_is_named() {
    let echo = Echo::start();
    let home = super::home(&json!({ "openapiSpecs": { "api": { "spec": "api.json", "auth": {
        "client": { "clientId": "somebody", "clientSecret": "s3cret-wrong" },
    } } } }));
    let mut document = secured(&echo.url("/token"));
    document["servers"] = json!([{ "url": echo.url("/status/401") }]);
    home.write("api.json", &document.to_string());
    let rig = Rig::at(echo, home);
    let (_, message) = rig.failed("rest__api_needy", &json!({}));
    assert!(message.contains("absent"), "which scheme to set: {message}");
    let (_, message) = rig.failed("rest__api_guarded", &json!({}));
    assert!(message.contains("invalid_client") || message.contains("401"), "{message}");
    assert!(!message.contains("s3cret"), "{message}");
    assert_eq!(rig.echo.hits("/status/401/guarded/x"), 0, "nothing without a token");
}

#[test]
fn rst_2_no_argument_is_a_credential() {
    let rig = rig("/token");
    let listing = rig.server.get("/api/v1/tools").text;
    for word in ["X-Key", "\"sid\"", "authorization", "s3cret", CLIENT_SECRET] {
        assert!(!listing.contains(word), "{word} in the listing");
    }
    rig.refused("rest__api_in_header", &json!({ "X-Key": "mine" }), "INVALID_ARGUMENTS", "X-Key");
}
