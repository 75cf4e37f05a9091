//! Tools that the configuration spells out: templates in address, query, headers and body.

use super::{Rig, home};
use serde_json::{Value, json};

/// A schema of arguments of any type.
fn takes(names: &[&str]) -> Value {
    let properties: serde_json::Map<_, _> =
        names.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
    json!({ "type": "object", "properties": properties })
}

#[test]
fn rst_1_a_value_is_encoded_where_it_stands() {
    let rig = Rig::inline(|echo| {
        json!({
            "get": {
                "description": "x", "url": format!("{}?q=${{parameters.q}}&fixed=1", echo.url("/v1/${parameters.a}/x-${parameters.b}.json")),
                "parametersSchema": takes(&["a", "b", "q"]),
            },
        })
    });
    let sent = rig.sent("rest__get", &json!({ "a": "a/b?c#d", "b": "é%41", "q": "x&y=z w" }));
    assert_eq!(sent["method"], "GET");
    assert_eq!(sent["path"], "/v1/a%2Fb%3Fc%23d/x-%C3%A9%2541.json");
    assert_eq!(sent["query"], "q=x%26y%3Dz%20w&fixed=1");
    let sent = rig.sent("rest__get", &json!({ "a": 7, "b": true, "q": "" }));
    assert_eq!((&sent["path"], &sent["query"]), (&json!("/v1/7/x-true.json"), &json!("q=&fixed=1")));
    for dots in ["..", ".", "", "\u{0}/.."] {
        let before = rig.echo.requests().len();
        let reply = rig.call("rest__get", &json!({ "a": dots, "b": "b", "q": "q" }));
        let climbed = rig
            .echo
            .requests()
            .iter()
            .skip(before)
            .any(|request| !request["path"].as_str().is_some_and(|path| path.starts_with("/v1/")));
        assert!(!climbed, "{dots:?}: {reply}");
        if dots != "\u{0}/.." {
            assert_eq!(reply["error"]["code"], "INVALID_ARGUMENTS", "{dots:?}: {reply}");
        }
    }
}

#[test]
fn rst_1_the_query_takes_lists_and_objects() {
    let rig = Rig::inline(|echo| {
        json!({
            "get": {
                "description": "x", "url": echo.url("/a"), "parametersSchema": takes(&["list", "object", "text", "absent"]),
                "query": { "l": "${parameters.list}", "o": "${parameters.object}", "t": "v-${parameters.text}", "n": "${parameters.absent}", "f": "a b" },
            },
        })
    });
    let sent = rig.sent(
        "rest__get",
        &json!({ "list": [1, "b c"], "object": { "k": "v", "deep": { "x": [true] } }, "text": "&" }),
    );
    let expected = "l=1&l=b%20c&o%5Bk%5D=v&o%5Bdeep%5D%5Bx%5D%5B0%5D=true&t=v-%26&f=a%20b";
    assert_eq!(sent["query"], expected, "{sent}");
}

#[test]
fn rst_1_headers_take_values_and_no_more() {
    let rig = Rig::inline(|echo| {
        json!({
            "get": {
                "description": "x", "url": echo.url("/a"), "parametersSchema": takes(&["user", "absent"]),
                "headers": { "X-User": "user ${parameters.user}", "X-Absent": "${parameters.absent}", "X-Fixed": "1" },
            },
        })
    });
    let sent = rig.sent("rest__get", &json!({ "user": "Ada" }));
    assert_eq!(
        (&sent["headers"]["x-user"], &sent["headers"]["x-fixed"]),
        (&json!(["user Ada"]), &json!(["1"]))
    );
    assert_eq!(sent["headers"].get("x-absent"), None, "{sent}");
    rig.refused("rest__get", &json!({ "user": "Ada\r\nX-Evil: 1" }), "INVALID_ARGUMENTS", "x-user");
}

#[test]
fn rst_1_body_templates_keep_their_types() {
    let rig = Rig::inline(|echo| {
        let tool = |body: Value| {
            json!({
                "description": "x", "method": "POST", "url": echo.url("/a"), "bodyTemplate": body, "parametersSchema": takes(&["a", "b", "c"]),
            })
        };
        let form = super::with(
            tool(json!({ "a": "${parameters.a}", "b": "${parameters.b}" })),
            &json!({ "headers": { "Content-Type": "application/x-www-form-urlencoded" } }),
        );
        json!({
            "whole": tool(json!({ "n": "${parameters.a}", "text": "it is ${parameters.a}", "list": ["${parameters.b}", 1], "gone": "${parameters.c}" })),
            "sole": tool(json!("${parameters.a}")),
            "json": tool(json!("{\"n\": \"${parameters.a}\", \"s\": \"${parameters.b}\"}")),
            "form": form,
        })
    });
    let body = |tool: &str, arguments: &Value| {
        let sent = rig.sent(&format!("rest__{tool}"), arguments);
        assert_eq!(sent["method"], "POST");
        assert_eq!(sent["headers"]["content-type"], json!(["application/json"]), "{sent}");
        serde_json::from_str::<Value>(sent["body"]["text"].as_str().expect("text")).expect("JSON")
    };
    assert_eq!(
        body("whole", &json!({ "a": 7, "b": { "x": null } })),
        json!({ "n": 7, "text": "it is 7", "list": [{ "x": null }, 1] })
    );
    assert_eq!(body("sole", &json!({ "a": [1, { "b": "\"" }] })), json!([1, { "b": "\"" }]));
    // A quote does not end a string, and a value is no syntax.
    assert_eq!(
        body("json", &json!({ "a": [1], "b": "\", \"evil\": \"" })),
        json!({ "n": [1], "s": "\", \"evil\": \"" })
    );
    let sent = rig.sent("rest__form", &json!({ "a": "x y", "b": [1, 2] }));
    assert_eq!(sent["body"]["form"], json!([["a", "x y"], ["b", "1"], ["b", "2"]]), "{sent}");
}

#[test]
fn rst_1_a_body_of_lines_or_of_xml_is_not_for_arguments_to_shape() {
    let tool = |url: &str, media: &str, body: &str| {
        json!({
            "description": "x", "method": "POST", "url": url, "bodyTemplate": body,
            "headers": { "Content-Type": media }, "parametersSchema": takes(&["a"]),
        })
    };
    for (media, body) in [
        ("application/x-ndjson", "{\"index\": {}}\n{\"title\": \"${parameters.a}\"}\n"),
        ("text/xml; charset=utf-8", "<a>${parameters.a}</a>"),
        ("application/x-www-form-urlencoded", "a=${parameters.a}"),
    ] {
        let entry = tool("https://api.example.com/", media, body);
        let ran = home(&json!({ "restTools": { "bad": entry } })).run(["tools"]);
        let words = ["restTools.bad", "arguments are not escaped", "${parameters.body}"];
        assert!(ran.code == 2 && words.iter().all(|word| ran.stderr.contains(word)), "{entry}: {ran:?}");
    }
    // An argument that is the whole body is for the caller to write.
    let rig = Rig::inline(|echo| json!({ "xml": tool(&echo.url("/a"), "text/xml", "${parameters.a}") }));
    assert_eq!(rig.sent("rest__xml", &json!({ "a": "<a>&amp;</a>" }))["body"]["text"], "<a>&amp;</a>");
}

#[test]
fn rst_1_every_method_is_sent_as_it_is() {
    let rig = Rig::inline(|echo| {
        let tools = ["GET", "POST", "PUT", "DELETE", "PATCH"].map(|method| {
            (
                method.to_lowercase(),
                json!({ "description": "x", "method": method, "url": echo.url("/m"), "effect": "write" }),
            )
        });
        Value::Object(tools.into_iter().collect())
    });
    for method in ["GET", "POST", "PUT", "DELETE", "PATCH"] {
        let sent = rig.sent(&format!("rest__{}", method.to_lowercase()), &json!({}));
        assert_eq!((&sent["method"], &sent["body"]["bytes"]), (&json!(method), &json!(0)), "{sent}");
        assert_eq!(sent["headers"].get("content-type"), None, "no body has no type: {sent}");
    }
}

#[test]
fn rst_1_arguments_are_judged_before_anything_is_sent() {
    let rig = Rig::inline(|echo| {
        json!({ "get": {
        "description": "x", "url": echo.url("/a/${parameters.n}"),
        "parametersSchema": { "type": "object", "properties": { "n": { "type": "integer", "maximum": 9 } }, "required": ["n"] },
    } })
    });
    rig.refused("rest__get", &json!({}), "INVALID_ARGUMENTS", "n");
    rig.refused("rest__get", &json!({ "n": 10 }), "INVALID_ARGUMENTS", "n");
    rig.refused("rest__get", &json!({ "n": "7/../8" }), "INVALID_ARGUMENTS", "n");
    assert_eq!(rig.sent("rest__get", &json!({ "n": 7 }))["path"], "/a/7");
}

#[test]
fn rst_1_mistakes_in_a_template_are_reported_before_anything_runs() {
    let tool =
        |more: Value| super::with(json!({ "description": "x", "url": "https://api.example.com/" }), &more);
    for (entry, words) in [
        (tool(json!({ "url": "https://${parameters.host}/" })), "path or query"),
        (tool(json!({ "url": "ftp://example.com/" })), "url"),
        (
            tool(
                json!({ "url": "https://example.com/${parameters.a}", "parametersSchema": { "type": "object", "properties": { "b": {} } } }),
            ),
            "a",
        ),
        (tool(json!({ "method": "POST", "bodyTemplate": "{\"a\": 1,}" })), "bodyTemplate is no JSON"),
        (tool(json!({ "method": "FETCH" })), "method"),
        (tool(json!({ "urll": 1 })), "url"),
        (tool(json!({ "streaming": { "mode": "xml" } })), "mode"),
        (json!({ "url": "https://example.com" }), "description"),
    ] {
        let ran = home(&json!({ "restTools": { "bad": entry } })).run(["tools"]);
        assert!(
            ran.code == 2 && ran.stderr.contains("restTools.bad") && ran.stderr.contains(words),
            "{entry}: {ran:?}"
        );
    }
}
