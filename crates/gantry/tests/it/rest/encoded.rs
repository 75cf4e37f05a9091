//! Values that look like something else: no argument leaves the place that it is for.

use super::{Rig, document};
use serde_json::{Value, json};

/// Everything that ends a part of an address, and some that have to be encoded.
const NASTY: &str = "a/b?c#d&e=f+g h%41é,;:@\"'";
const ENCODED: &str = "a%2Fb%3Fc%23d%26e%3Df%2Bg%20h%2541%C3%A9%2C%3B%3A%40%22%27";

fn rig() -> Rig {
    let parameter = |name: &str, place: &str, more: Value| {
        let plain =
            json!({ "name": name, "in": place, "required": place == "path", "schema": { "type": "string" } });
        super::with(plain, &more)
    };
    let list = json!({ "type": "array", "items": { "type": "string" } });
    Rig::api(&document(&json!({ "/x/{p}/y": { "get": { "operationId": "get", "parameters": [
        parameter("p", "path", json!({})),
        parameter("q", "query", json!({})),
        parameter("free", "query", json!({ "allowReserved": true })),
        parameter("list", "query", json!({ "explode": false, "schema": list })),
        parameter("deep", "query", json!({ "style": "deepObject", "explode": true, "schema": { "type": "object" } })),
        parameter("X-H", "header", json!({})),
    ], "responses": { "200": { "description": "done" } } } } })))
}

#[test]
fn rst_2_a_value_stays_in_its_place() {
    let rig = rig();
    let sent = rig.sent("rest__api_get", &json!({ "p": NASTY, "q": NASTY }));
    assert_eq!(sent["path"], format!("/x/{ENCODED}/y"));
    assert_eq!(sent["query"], format!("q={ENCODED}"));
    let sent = rig
        .sent("rest__api_get", &json!({ "p": "ü", "list": ["a,b", "c&d", "e f"], "deep": { "k[": "a=b" } }));
    assert_eq!(sent["path"], "/x/%C3%BC/y");
    assert_eq!(sent["query"], "list=a%2Cb,c%26d,e%20f&deep%5Bk%5B%5D=a%3Db");
}

#[test]
fn rst_2_reserved_characters_may_be_let_through() {
    let sent = rig().sent("rest__api_get", &json!({ "p": "1", "free": "a/b:c,d?e" }));
    assert_eq!(sent["query"], "free=a/b:c,d?e");
    // But never those that would begin another part or another pair.
    let sent = rig().sent("rest__api_get", &json!({ "p": "1", "free": "x#y&q=1 é" }));
    let query = sent["query"].as_str().expect("a query");
    assert!(!query.contains(['#', '&', ' ']) && query.starts_with("free=x%23y%26q"), "{query}");
}

#[test]
fn rst_2_dots_do_not_climb() {
    let rig = rig();
    for dots in ["..", ".", "", "../..", "a/../../b"] {
        rig.refused("rest__api_get", &json!({ "p": dots }), "INVALID_ARGUMENTS", "p");
    }
    // What only looks like it is a name like others.
    for (name, wire) in [("...", "..."), ("a..b", "a..b"), ("%2e%2e", "%252e%252e")] {
        assert_eq!(rig.sent("rest__api_get", &json!({ "p": name }))["path"], format!("/x/{wire}/y"));
    }
}

#[test]
fn rst_2_headers_hold_one_value() {
    let rig = rig();
    for value in ["a\r\nX-Evil: 1", "a\nb", "\u{0}"] {
        rig.refused("rest__api_get", &json!({ "p": "1", "X-H": value }), "INVALID_ARGUMENTS", "X-H");
    }
    let sent = rig.sent("rest__api_get", &json!({ "p": "1", "X-H": "a/b?c=d" }));
    assert_eq!(sent["headers"]["x-h"], json!(["a/b?c=d"]));
}
