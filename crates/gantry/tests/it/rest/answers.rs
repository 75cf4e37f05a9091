//! Answers: JSON, text, pictures, nothing, too much, and errors with their details.

use super::{Rig, document, operation};
use crate::passthrough::Talk;
use serde_json::{Value, json};

fn rig() -> Rig {
    Rig::inline(|echo| {
        let tool = |method: &str, path: &str| {
            json!({
                "description": "x", "method": method, "url": echo.url(path), "effect": "read",
                "parametersSchema": { "type": "object", "properties": { "p": {}, "q": {} } },
            })
        };
        json!({
            "status": tool("GET", "/status/${parameters.p}"),
            "post": tool("POST", "/status/${parameters.p}"),
            "json": tool("GET", "/json?is=${parameters.q}"),
            "image": tool("GET", "/image"), "binary": tool("GET", "/binary"), "text": tool("GET", "/text"),
            "large": tool("GET", "/large?bytes=${parameters.q}"),
            "head": tool("HEAD", "/text"),
        })
    })
}

#[test]
fn rst_1_answers_are_what_they_are() {
    let rig = rig();
    for is in [json!({ "a": [1, null, "é"] }), json!([1]), json!("text"), json!(7), json!(null)] {
        assert_eq!(rig.result("rest__json", &json!({ "q": is.to_string() })), is);
    }
    assert_eq!(rig.result("rest__text", &json!({})), "plain words");
    assert_eq!(rig.result("rest__status", &json!({ "p": "204" })), json!({ "status": 204 }));
    assert_eq!(rig.result("rest__head", &json!({}))["status"], 200);
    // What is no JSON although it is said to be.
    assert_eq!(rig.result("rest__json", &json!({ "q": "{\"a\":" })), "{\"a\":");
}

#[test]
fn rst_1_pictures_and_files_are_content() {
    let rig = rig();
    let mut talk = Talk::legacy(rig.door());
    let image = talk.result("tools/call", &json!({ "name": "rest__image", "arguments": {} }));
    let block = &image["content"][0];
    assert_eq!((&block["type"], &block["mimeType"]), (&json!("image"), &json!("image/png")), "{image}");
    assert!(block["data"].as_str().is_some_and(|data| data.starts_with("iVBORw0KGgo")), "{image}");
    let binary = talk.result("tools/call", &json!({ "name": "rest__binary", "arguments": {} }));
    assert!(binary["content"].to_string().contains("/wD+"), "{binary}");
}

#[test]
fn rst_1_anything_but_success_is_an_error_with_status_and_body() {
    let rig = rig();
    for code in [400, 401, 403, 404, 409, 418, 429, 500, 503] {
        let reply = rig.call("rest__status", &json!({ "p": code }));
        let error = &reply["error"];
        assert_eq!((&reply["ok"], &error["code"]), (&json!(false), &json!("EXECUTION_ERROR")), "{reply}");
        assert_eq!(
            (&error["details"]["status"], &error["details"]["body"]["path"]),
            (&json!(code), &json!(format!("/status/{code}"))),
            "{reply}"
        );
        assert_eq!(error["details"]["headers"]["retry-after"], "7", "{reply}");
        assert!(
            error["message"].as_str().is_some_and(|message| message.contains(&format!("HTTP {code}"))),
            "{reply}"
        );
        assert!(!reply.to_string().contains("s3cret-cookie"), "{reply}");
    }
    // None of them was repeated.
    assert_eq!((rig.echo.hits("/status/503"), rig.echo.hits("/status/429")), (1, 1));
    let reply = rig.call("rest__post", &json!({ "p": 500 }));
    assert_eq!(reply["error"]["details"]["status"], 500, "{reply}");
    assert_eq!(rig.echo.hits("/status/500"), 2);
    // Through MCP it is an error of the tool.
    let result = Talk::legacy(rig.door())
        .result("tools/call", &json!({ "name": "rest__status", "arguments": { "p": 404 } }));
    assert!(result["isError"] == true && result["content"].to_string().contains("404"), "{result}");
}

#[test]
fn rst_2_anything_but_success_is_an_error_with_status_and_body() {
    let rig = Rig::api(&document(&json!({ "/status/422": { "post": operation("post") } })));
    let reply = rig.call("rest__api_post", &json!({}));
    assert_eq!(
        (&reply["error"]["code"], &reply["error"]["details"]["status"]),
        (&json!("EXECUTION_ERROR"), &json!(422)),
        "{reply}"
    );
    assert_eq!(reply["error"]["details"]["body"]["method"], "POST", "{reply}");
}

#[test]
fn rst_1_an_answer_that_is_too_large_is_an_error_that_says_what_to_do() {
    let rig = rig();
    let (code, message) = rig.failed("rest__large", &json!({ "q": 40 << 20 }));
    assert!(code == "EXECUTION_ERROR" && message.contains("Ask for less"), "{code}: {message}");
    // Less than that is shortened like any other result.
    let reply = rig.call("rest__large", &json!({ "q": 1 << 20 }));
    assert_eq!(reply["ok"], true, "{}", reply["error"]);
    let shown: &Value = &reply["result"];
    assert!(shown.to_string().len() < 1 << 20, "bounded");
}
