//! The web tools through the built program: the allow-list, approvals, private addresses, redirects, limits, search.

#![cfg(test)]

mod fetch;
mod search;
mod site;

use gantry_core::schema::Schema;
use gantry_testkit::{TestDir, failed};
use serde_json::{Value, json};

/// A home whose allow-list is this, and which may reach this machine.
fn home(allow: &[&str]) -> TestDir {
    TestDir::new().config(&json!({ "web": { "allow": allow, "allowPrivate": ["127.0.0.1/32"] } }).to_string())
}

/// The result of a call, which fits the tool's own schema.
#[track_caller]
fn done(home: &TestDir, tool: &str, arguments: &Value) -> Value {
    let mut reply = home.call(tool, arguments);
    assert_eq!(reply["ok"], true, "{reply}");
    let listing = home.run(["tools", "--json"]).json();
    let spec = listing.as_array().expect("tools").iter().find(|spec| spec["name"] == tool).expect("the tool");
    let result = reply["result"].take();
    Schema::compile(&spec["outputSchema"]).expect("a schema").check(&result).expect("a result that fits");
    result
}

#[test]
fn blt_3_wrong_settings_are_reported_before_anything_runs() {
    for (web, words) in [
        (json!({ "allow": ["ftp://example.com"] }), "web.allow"),
        (json!({ "allow": ["https://example.com/*x"] }), "web.allow"),
        (json!({ "allowPrivate": ["localhost"] }), "web.allowPrivate"),
        (json!({ "search": { "api": "searxng" } }), "web.search"),
        (json!({ "search": { "api": "brave" } }), "apiKey"),
        (json!({ "search": { "api": "altavista", "url": "https://a.example" } }), "web.search.api"),
        (json!({ "alow": [] }), "allow"),
    ] {
        let home = TestDir::new().config(&json!({ "web": web }).to_string());
        let ran = home.run(["tools"]);
        assert_eq!(ran.code, 2, "{web}: {ran:?}");
        assert!(ran.stderr.contains(words), "{web}: {ran:?}");
    }
}
