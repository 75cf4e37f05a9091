//! Request bodies: JSON, forms, multipart with files, text, binary.

use super::{Rig, document, with_bodies};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// What arrived: the media type without its parameters, and the body.
fn received(sent: &Value) -> (String, Value) {
    let media = sent["headers"]["content-type"][0].as_str().unwrap_or_default();
    (media.split(';').next().unwrap_or_default().to_owned(), sent["body"].clone())
}

#[track_caller]
fn parsed(body: &Value) -> Value {
    serde_json::from_str(body["text"].as_str().expect("text")).expect("JSON")
}

fn object(properties: &Value) -> Value {
    json!({ "type": "object", "properties": properties })
}

#[test]
fn rst_2_a_json_body_arrives_as_json() {
    let any = json!({});
    let rig = Rig::api(&with_bodies(&[
        (
            "object",
            "application/json",
            object(&json!({ "name": { "type": "string" }, "age": { "type": "integer" }, "deep": any })),
        ),
        ("list", "application/json", json!({ "type": "array", "items": { "type": "integer" } })),
        ("text", "application/json", json!({ "type": "string" })),
        ("vendor", "application/vnd.thing+json", object(&json!({ "a": { "type": "integer" } }))),
        ("patch", "application/merge-patch+json", object(&json!({ "a": { "type": ["integer", "null"] } }))),
    ]));
    let arguments =
        json!({ "name": "Zoë \"z\"", "age": 9_007_199_254_740_993_i64, "deep": { "a": [null, true, 1.5] } });
    let (media, body) = received(&rig.sent("rest__api_object", &arguments));
    assert_eq!((media.as_str(), parsed(&body)), ("application/json", arguments));
    for (tool, arguments, media) in
        [("list", json!([1, 2]), "application/json"), ("text", json!("hello"), "application/json")]
    {
        let sent = rig.sent(&format!("rest__api_{tool}"), &json!({ "body": arguments }));
        assert_eq!(received(&sent).0, media);
        assert_eq!(parsed(&received(&sent).1), arguments, "{tool}");
    }
    for (tool, arguments, media) in [
        ("vendor", json!({ "a": 1 }), "application/vnd.thing+json"),
        ("patch", json!({ "a": null }), "application/merge-patch+json"),
    ] {
        let (found, body) = received(&rig.sent(&format!("rest__api_{tool}"), &arguments));
        assert_eq!((found.as_str(), parsed(&body)), (media, arguments), "{tool}");
    }
}

#[test]
fn rst_2_what_is_not_given_is_not_sent() {
    let rig = Rig::api(&with_bodies(&[(
        "object",
        "application/json",
        object(&json!({ "a": { "type": "integer" } })),
    )]));
    let sent = rig.sent("rest__api_object", &json!({}));
    assert_eq!((&sent["body"]["bytes"], sent["headers"].get("content-type")), (&json!(0), None), "{sent}");
    rig.refused("rest__api_object", &json!({ "aa": 1 }), "INVALID_ARGUMENTS", "aa");
    rig.refused("rest__api_object", &json!({ "a": "one" }), "INVALID_ARGUMENTS", "a");
}

#[test]
fn rst_2_a_form_arrives_as_a_form() {
    let list = json!({ "type": "array", "items": { "type": "integer" } });
    let mut document = with_bodies(&[
        (
            "plain",
            "application/x-www-form-urlencoded",
            object(&json!({ "a": { "type": "string" }, "list": list, "flag": { "type": "boolean" } })),
        ),
        (
            "styled",
            "application/x-www-form-urlencoded",
            object(&json!({ "list": list, "filter": { "type": "object" } })),
        ),
    ]);
    document["paths"]["/styled"]["post"]["requestBody"]["content"]["application/x-www-form-urlencoded"]["encoding"] = json!({
        "list": { "style": "form", "explode": false }, "filter": { "style": "deepObject", "explode": true },
    });
    let rig = Rig::api(&document);
    let (media, body) =
        received(&rig.sent("rest__api_plain", &json!({ "a": "x y&z=é+", "list": [1, 2], "flag": true })));
    assert_eq!(media, "application/x-www-form-urlencoded");
    assert_eq!(
        body["form"],
        json!([["a", "x y&z=é+"], ["list", "1"], ["list", "2"], ["flag", "true"]]),
        "{body}"
    );
    let (_, body) =
        received(&rig.sent("rest__api_styled", &json!({ "list": [1, 2], "filter": { "k": "v" } })));
    assert_eq!(body["form"], json!([["list", "1,2"], ["filter[k]", "v"]]), "{body}");
    assert!(body["text"].as_str().is_some_and(|text| text.starts_with("list=1,2&")), "{body}");
}

#[test]
fn rst_2_multipart_bodies_carry_files() {
    let file = json!({ "type": "string", "format": "binary" });
    let schema = object(&json!({
        "note": { "type": "string" }, "count": { "type": "integer" }, "meta": { "type": "object" },
        "photo": file, "others": { "type": "array", "items": file },
        "svg": { "type": "string", "format": "binary" },
    }));
    let mut document = with_bodies(&[("upload", "multipart/form-data", schema)]);
    document["openapi"] = "3.0.3".into();
    document["paths"]["/upload"]["post"]["requestBody"]["content"]["multipart/form-data"]["encoding"] =
        json!({ "svg": { "contentType": "image/svg+xml" } });
    let rig = Rig::api(&document);
    let bytes = b"\x89PNG\r\n\x1a\n\x00--x\r\n";
    let sent = rig.sent("rest__api_upload", &json!({
        "note": "line\r\ntwo é", "count": 3, "meta": { "a": [1] },
        "photo": { "content": STANDARD.encode(bytes), "encoding": "base64", "filename": "a\"b\r\n.png", "contentType": "image/png" },
        "others": [{ "content": "one" }, { "content": "two", "filename": "two.txt" }],
        "svg": { "content": "<svg/>", "filename": "x.svg" },
    }));
    let (media, body) = received(&sent);
    assert_eq!(media, "multipart/form-data");
    let parts = body["parts"].as_array().expect("parts");
    let named = |name: &str| -> Vec<&Value> {
        let mark = format!("name=\"{name}\"");
        let disposition =
            |part: &Value| part["headers"]["content-disposition"].as_str().unwrap_or_default().to_owned();
        parts
            .iter()
            .filter(|part| disposition(part).contains(&mark) && disposition(part).starts_with("form-data;"))
            .collect()
    };
    let header = |part: &Value, name: &str| part["headers"][name].as_str().unwrap_or_default().to_owned();
    assert_eq!(
        (&named("note")[0]["text"], &named("count")[0]["text"]),
        (&json!("line\r\ntwo é"), &json!("3")),
        "{body}"
    );
    let meta = named("meta")[0];
    assert_eq!(
        (parsed(meta), header(meta, "content-type").as_str()),
        (json!({ "a": [1] }), "application/json"),
        "{body}"
    );
    let photo = named("photo")[0];
    assert_eq!(photo["base64"], STANDARD.encode(bytes), "{body}");
    assert_eq!(header(photo, "content-type"), "image/png");
    // A name of a file cannot end its header.
    assert!(header(photo, "content-disposition").contains("filename=\"a%22b%0D%0A.png\""), "{photo}");
    let others = named("others");
    assert_eq!(
        (others.len(), &others[0]["text"], &others[1]["text"]),
        (2, &json!("one"), &json!("two")),
        "{body}"
    );
    assert!(others.iter().all(|part| header(part, "content-disposition").contains("filename=")), "{body}");
    assert_eq!(header(named("svg")[0], "content-type"), "image/svg+xml", "{body}");
}

#[test]
fn rst_2_text_and_binary_bodies_arrive_as_they_are() {
    let binary = json!({ "type": "string", "format": "binary" });
    let mut document = with_bodies(&[
        ("text", "text/plain", json!({ "type": "string" })),
        ("xml", "application/xml", json!({ "type": "string" })),
        ("binary", "application/octet-stream", binary.clone()),
        ("image", "image/png", binary),
    ]);
    // Since 3.1, a binary body need not have a schema.
    document["paths"]["/bare"] = json!({ "post": {
        "operationId": "bare", "requestBody": { "content": { "application/pdf": {} } }, "responses": {},
    } });
    let rig = Rig::api(&document);
    let (media, body) = received(&rig.sent("rest__api_text", &json!({ "body": "two\nlines é" })));
    assert_eq!((media.as_str(), &body["text"]), ("text/plain", &json!("two\nlines é")));
    let (media, body) = received(&rig.sent("rest__api_xml", &json!({ "body": "<a/>" })));
    assert_eq!((media.as_str(), &body["text"]), ("application/xml", &json!("<a/>")));
    let bytes = STANDARD.encode(b"\xff\x00\xfe");
    for (tool, media) in
        [("binary", "application/octet-stream"), ("image", "image/png"), ("bare", "application/pdf")]
    {
        let file = json!({ "content": bytes, "encoding": "base64" });
        let (found, body) = received(&rig.sent(&format!("rest__api_{tool}"), &json!({ "body": file })));
        assert_eq!((found.as_str(), &body["base64"]), (media, &json!(bytes)), "{tool}");
    }
    let broken = json!({ "body": { "content": "%%%", "encoding": "base64" } });
    rig.refused("rest__api_binary", &broken, "INVALID_ARGUMENTS", "base64");
}

#[test]
fn rst_2_of_several_media_types_json_is_taken() {
    let schema = object(&json!({ "a": { "type": "integer" } }));
    let content = json!({
        "application/xml": { "schema": schema }, "multipart/form-data": { "schema": schema },
        "application/json": { "schema": schema }, "application/x-www-form-urlencoded": { "schema": schema },
    });
    let rig = Rig::api(&document(&json!({ "/a": { "post": {
        "operationId": "post", "requestBody": { "required": true, "content": content }, "responses": {},
    } } })));
    assert_eq!(received(&rig.sent("rest__api_post", &json!({ "a": 1 }))).0, "application/json");
}

#[test]
fn rst_2_a_parameter_and_a_field_of_one_name_are_two_arguments() {
    let rig = Rig::api(&document(&json!({ "/a/{id}": { "put": {
        "operationId": "put",
        "parameters": [
            { "name": "id", "in": "path", "required": true, "schema": { "type": "integer" } },
            { "name": "id", "in": "query", "schema": { "type": "integer" } },
        ],
        "requestBody": { "content": { "application/json": { "schema": object(&json!({ "id": { "type": "integer" }, "n": { "type": "integer" } })) } } },
        "responses": {},
    } } })));
    let sent = rig.sent("rest__api_put", &json!({ "id_path": 1, "id_query": 2, "id": 3, "n": 4 }));
    assert_eq!((&sent["path"], &sent["query"]), (&json!("/a/1"), &json!("id=2")), "{sent}");
    assert_eq!(parsed(&sent["body"]), json!({ "id": 3, "n": 4 }), "{sent}");
}
