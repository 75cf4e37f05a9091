//! Secrets: what the configuration shows to a service is shown to no other server, no matter what the service does with it.

use super::{Rig, document, home, operation, with};
use gantry_testkit::Echo;
use gantry_testkit::echo::{CLIENT_ID, CLIENT_SECRET};
use serde_json::json;

/// Everything that Gantry wrote below its home: ledger, logs and all else.
fn written(folder: &std::path::Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            all.extend(written(&path));
        } else if let Ok(bytes) = std::fs::read(&path) {
            all.push((path.display().to_string(), bytes));
        }
    }
    all
}

/// A service that sends back all that it received, in errors, and credentials of every kind for it.
fn talkative() -> Rig {
    let echo = Echo::start();
    let needs = |id: &str, scheme: &str| json!({ "get": with(operation(id), &json!({ "security": [{ scheme: [] }] })) });
    let mut spec = with(
        document(
            &json!({ "/status/400": needs("key", "key"), "/status/403": needs("query", "query"), "/status/404": needs("basic", "basic"),
                          "/status/500": needs("client", "client"), "/hidden": needs("works", "key") }),
        ),
        &json!({ "servers": [{ "url": echo.url("") }] }),
    );
    spec["components"]["securitySchemes"] = json!({
        "key": { "type": "apiKey", "in": "header", "name": "X-Key" },
        "query": { "type": "apiKey", "in": "query", "name": "key" },
        "basic": { "type": "http", "scheme": "basic" },
        "client": { "type": "oauth2", "flows": { "clientCredentials": { "tokenUrl": echo.url("/token"), "scopes": {} } } },
    });
    let home = home(&json!({
        "openapiSpecs": { "api": { "spec": "api.json", "headers": { "X-Tenant": "s3cret-tenant-value" }, "auth": {
            "key": { "apiKey": "s3cret-key-value" }, "query": { "apiKey": "s3cret-query-value/+" },
            "basic": { "username": "ada", "password": "s3cret-password" },
            "client": { "clientId": CLIENT_ID, "clientSecret": CLIENT_SECRET },
        } } },
        "restTools": {
            "plain": { "description": "x", "url": echo.url("/status/500?api_key=s3cret-in-the-url"), "headers": { "Authorization": "Bearer ${REST_TEST_TOKEN}" } },
        },
    }))
    .env("REST_TEST_TOKEN", "s3cret-from-the-environment")
    .env("GANTRY_LOG", "trace");
    home.write("api.json", &spec.to_string());
    Rig::at(echo, home)
}

#[test]
fn rst_2_secrets_are_in_no_error_no_ledger_and_no_log() {
    let rig = talkative();
    let mut outcome = String::new();
    for tool in ["api_key", "api_query", "api_basic", "api_client", "plain"] {
        let reply = rig.call(&format!("rest__{tool}"), &json!({}));
        assert_eq!(reply["error"]["code"], "EXECUTION_ERROR", "{tool}: {reply}");
        outcome.push_str(&reply.to_string());
    }
    for path in
        ["/api/v1/tools", "/api/v1/config", "/api/v1/servers", "/api/v1/events?follow=false", "/api/v1/audit"]
    {
        outcome.push_str(&rig.server.get_as_admin(path).text);
    }
    for command in [
        &["audit", "--json"] as &[&str],
        &["doctor"],
        &["tools", "--json"],
        &["servers", "--json"],
        &["openapi", "inspect", "api.json"],
    ] {
        let ran = rig.home.run(command);
        outcome.push_str(&format!("{}{}", ran.stdout, ran.stderr));
    }
    let requests = format!("{:?}", rig.echo.requests());
    let Rig { server, home, echo } = rig;
    outcome.push_str(&server.stop().1);
    drop(echo);
    for secret in [
        "s3cret-tenant",
        "s3cret-key",
        "s3cret-query",
        "s3cret-password",
        CLIENT_SECRET,
        "s3cret-token-1",
        "s3cret-in-the-url",
        "s3cret-from-the-environment",
        "YWRhOnMzY3JldC1wYXNzd29yZA==",
    ] {
        let sent = requests.contains(secret);
        // Passwords are sent encoded, which is looked for too.
        assert!(
            sent || [CLIENT_SECRET, "s3cret-password"].contains(&secret),
            "{secret} was shown to the service"
        );
        assert!(
            !outcome.contains(secret),
            "{secret} is told: {}",
            outcome.lines().find(|line| line.contains(secret)).unwrap_or_default()
        );
        for (path, bytes) in written(&home.path().join(".gantry")) {
            assert!(
                !bytes.windows(secret.len()).any(|window| window == secret.as_bytes()),
                "{secret} is in {path}"
            );
        }
    }
}

#[test]
fn rst_2_credentials_do_not_follow_a_document_elsewhere() {
    // A document from the web, with credentials, says where its API is: that is for its own origin, or for baseUrl.
    let (thief, echo) = (Echo::start(), Echo::start());
    let mut spec = with(
        document(&json!({ "/a": { "get": operation("get") } })),
        &json!({ "servers": [{ "url": thief.url("") }] }),
    );
    spec["security"] = json!([{ "key": [] }]);
    spec["components"]["securitySchemes"]["key"] =
        json!({ "type": "apiKey", "in": "header", "name": "X-Key" });
    let url = echo.document("api.json", "application/json", &spec.to_string());
    let home = home(
        &json!({ "openapiSpecs": { "api": { "spec": url, "auth": { "key": { "apiKey": "s3cret-key" } } } } }),
    );
    let ran = home.run(["call", "rest__api_get", "{}", "--json"]);
    assert_ne!(ran.code, 0, "{ran:?}");
    assert!(thief.requests().is_empty(), "{:?}", thief.requests());
}

#[test]
fn rst_1_credentials_that_others_can_read_are_warned_of_once() {
    let echo = Echo::start();
    // This machine, by an address that does not look like it.
    let there = format!("http://[::ffff:127.0.0.1]:{}/x", echo.address.port());
    let tool = |url: &str| json!({ "description": "x", "url": url, "headers": { "Authorization": "Bearer s3cret-value" } });
    let rig = Rig::at(
        Echo::start(),
        home(&json!({ "restTools": { "clear": tool(&there), "here": tool(&echo.url("/x")) } })),
    );
    for tool in ["rest__here", "rest__clear", "rest__clear"] {
        rig.result(tool, &json!({}));
    }
    let warned = |text: &str| text.matches("without encryption").count();
    rig.server.eventually("the warning", || warned(&rig.server.stderr()) > 0);
    let said = rig.server.stderr();
    assert!(warned(&said) == 1 && said.contains("restTools.clear sends credentials to"), "{said}");
    assert!(!said.contains("s3cret"), "{said}");
}
