//! Request bodies of small documents as arguments.

use super::*;

#[test]
fn rst_2_a_body_of_plain_properties_is_flat() {
    let object =
        json!({"type": "object", "properties": {"a": string(), "b": {"type": "integer"}}, "required": ["a"]});
    let sent = |body: Value| post("/a", json!({"requestBody": body}));
    let content = json!({"application/json; charset=utf-8": {"schema": object}});

    let flat = sent(json!({"required": true, "content": content}));
    assert_eq!(arguments(&flat), ["a!", "b"]);
    assert_eq!((body(&flat).media.as_str(), body(&flat).required), ("application/json; charset=utf-8", true));

    // Whether there is a body is a question of its own here.
    let optional = sent(json!({"content": content, "description": "The thing."}));
    assert_eq!(arguments(&optional), ["body"]);
    assert_eq!(property(&optional, "body")["description"], "The thing.");
    assert_eq!(body(&optional).source, Source::Whole);

    let lax = json!({"type": "object", "properties": {"a": string()}});
    assert_eq!(arguments(&sent(json!({"content": {"application/json": {"schema": lax}}}))), ["a"]);
    for whole in [
        json!({"type": "array", "items": object}),
        json!({"type": "object"}),
        json!({"type": "object", "properties": {"a": string()}, "additionalProperties": true}),
        json!({"oneOf": [object, lax]}),
        json!({"type": "object", "properties": {"a b": string(), "a_b": string()}}),
    ] {
        let operation = sent(json!({"required": true, "content": {"application/json": {"schema": whole}}}));
        assert_eq!(arguments(&operation), ["body!"], "{whole}");
    }
    let operation = sent(json!({"required": true, "content": {"application/json": {}}}));
    assert_eq!(property(&operation, "body"), json!({}));
}

#[test]
fn rst_2_the_best_media_type_is_sent() {
    let object = json!({"schema": {"type": "object", "properties": {"a": string()}}});
    let file =
        json!({"schema": {"type": "object", "properties": {"a": {"type": "string", "format": "binary"}}}});
    for (types, expected, format) in [
        (vec![("text/xml", &object), ("application/json", &object)], "application/json", BodyFormat::Json),
        (
            vec![("text/plain", &object), ("application/hal+json", &object)],
            "application/hal+json",
            BodyFormat::Json,
        ),
        (vec![("*/*", &object)], "application/json", BodyFormat::Json),
        (vec![("application/*", &object)], "application/json", BodyFormat::Json),
        (
            vec![("multipart/form-data", &object), ("application/x-www-form-urlencoded", &object)],
            "application/x-www-form-urlencoded",
            BodyFormat::Form,
        ),
        (vec![("application/xml", &object)], "application/xml", BodyFormat::Text),
        (vec![("text/csv", &object), ("image/png", &object)], "text/csv", BodyFormat::Text),
        (vec![("image/png", &object)], "image/png", BodyFormat::Binary),
        (vec![("image/*", &object)], "application/octet-stream", BodyFormat::Binary),
        (vec![("application/zip", &object)], "application/zip", BodyFormat::Binary),
    ] {
        let content: Object =
            types.iter().map(|(media, node)| ((*media).to_owned(), (*node).clone())).collect();
        let operation = post("/a", json!({"requestBody": {"content": content}}));
        assert_eq!(
            (body(&operation).media.as_str(), body(&operation).format),
            (expected, format),
            "{types:?}"
        );
    }
    let content = json!({"application/json": object, "multipart/form-data": file});
    let operation = post("/a", json!({"requestBody": {"content": content}}));
    assert_eq!(body(&operation).media, "multipart/form-data", "only there is a file");
}

#[test]
fn rst_2_texts_and_bytes_are_one_argument() {
    let operation = post(
        "/a",
        json!({"requestBody": {"required": true, "content": {"application/xml": {"schema": {"type": "object"}}}}}),
    );
    let expected = json!({"type": "string", "description": "The body as text (application/xml)."});
    assert_eq!(property(&operation, "body"), expected);
    let operation = post("/a", json!({"requestBody": {"required": true, "content": {"image/png": {}}}}));
    assert_eq!(property(&operation, "body")["required"], json!(["content"]));
    assert_eq!(property(&operation, "body")["additionalProperties"], false);
    assert_eq!(arguments(&operation), ["body!"]);
}

#[test]
fn rst_2_files_are_objects_with_content() {
    let schema = json!({"type": "object", "required": ["one"], "properties": {
        "one": {"type": "string", "format": "binary", "description": "The picture."},
        "many": {"type": "array", "items": {"type": "string", "format": "binary"}},
        "text": {"type": "string", "format": "byte"},
        "meta": {"type": "object", "properties": {"a": string()}},
        "list": {"type": "array", "items": string()},
    }});
    let encoding = json!({
        "one": {"contentType": "image/png"},
        "meta": {"contentType": "application/json"},
        "list": {"explode": false},
    });
    let content = json!({"multipart/form-data; boundary=x": {"schema": schema, "encoding": encoding}});
    let operation = post("/a", json!({"requestBody": {"required": true, "content": content}}));
    assert_eq!(arguments(&operation), ["one!", "many", "text", "meta", "list"]);
    assert_eq!(property(&operation, "one")["description"], "The picture.");
    assert_eq!(property(&operation, "one")["properties"]["encoding"]["enum"], json!(["utf-8", "base64"]));
    assert_eq!(property(&operation, "many")["items"]["required"], json!(["content"]));
    assert_eq!(property(&operation, "text")["type"], "string");
    let part = |file, content_type: Option<&str>| PropertyEncoding {
        file,
        content_type: content_type.map(str::to_owned),
        serialization: None,
    };
    let parts = [
        ("one".to_owned(), part(true, Some("image/png"))),
        ("many".to_owned(), part(true, None)),
        ("meta".to_owned(), part(false, Some("application/json"))),
        ("list".to_owned(), styled(Style::Joined)),
    ];
    assert_eq!(body(&operation).encodings, parts);
    assert_eq!(body(&operation).media, "multipart/form-data");

    // Whole, it has files too.
    let operation = post("/a", json!({"requestBody": {"content": content}}));
    assert_eq!(arguments(&operation), ["body"]);
    assert_eq!(property(&operation, "body")["properties"]["one"]["required"], json!(["content"]));
    assert_eq!(property(&operation, "body")["required"], json!(["one"]));
}

#[test]
fn rst_2_files_of_each_version_are_known() {
    let content = |schema: Value, encoding: Value| {
        json!({"requestBody": {"content": {"multipart/form-data": {
        "schema": {"type": "object", "properties": {"f": schema}}, "encoding": encoding}}}})
    };
    let is_file = |operation: &Operation| property(operation, "f")["properties"]["content"].is_object();
    for (schema, encoding, expected) in [
        (json!({"type": "string", "contentMediaType": "application/octet-stream"}), json!({}), true),
        (json!({"type": "string", "contentMediaType": "image/png"}), json!({}), true),
        (
            json!({"type": "string", "contentMediaType": "image/png", "contentEncoding": "base64"}),
            json!({}),
            false,
        ),
        (json!({"type": "string", "contentMediaType": "text/html"}), json!({}), false),
        (json!({"type": ["string", "null"], "contentEncoding": "binary"}), json!({}), true),
        (json!({}), json!({"f": {"contentType": "image/png, image/jpeg"}}), true),
        (json!({}), json!({"f": {"contentType": "application/json"}}), false),
        (json!({"type": "object"}), json!({"f": {"contentType": "image/png"}}), false),
    ] {
        let operation = post_v31(content(schema.clone(), encoding));
        assert_eq!(is_file(&operation), expected, "{schema}");
    }
    let operation = post_v2("/a", json!({"parameters": [{"in": "formData", "name": "f", "type": "file"}]}));
    assert!(is_file(&operation));
    assert_eq!(body(&operation).media, "multipart/form-data");
}

#[test]
fn rst_2_forms_say_how_properties_are_written() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "object"}, "b": {"type": "array", "items": string()}, "c": string(), "d": {"type": "object"}}});
    let encoding = json!({"a": {"style": "deepObject", "explode": true}, "b": {"explode": false}, "d": {"contentType": "application/json"}});
    let content = json!({"application/x-www-form-urlencoded": {"schema": schema, "encoding": encoding}});
    let operation = post("/a", json!({"requestBody": {"content": content}}));
    let forms = [("a", Style::DeepObject), ("b", Style::Joined), ("d", Style::Json)]
        .map(|(a, b)| (a.to_owned(), styled(b)));
    assert_eq!(body(&operation).encodings, forms);
}

#[test]
fn rst_2_swagger_has_bodies_and_forms_among_its_parameters() {
    let operation = post_v2(
        "/a",
        json!({"parameters": [
            {"in": "body", "name": "pet", "required": true, "schema": {"type": "object", "properties": {"name": string()}, "required": ["name"]}},
        ]}),
    );
    assert_eq!(arguments(&operation), ["name!"]);
    assert_eq!(body(&operation).media, "application/json");

    let list = json!({"in": "formData", "name": "tags", "type": "array", "items": string()});
    let name = json!({"in": "formData", "name": "name", "type": "string", "required": true});
    let operation = post_v2("/a/{name}", json!({"parameters": [list, name]}));
    assert_eq!(arguments(&operation), ["name_path!", "tags", "name!"]);
    assert_eq!(body(&operation).encodings, [("tags".to_owned(), styled(Style::Joined))]);
    assert_eq!(
        (body(&operation).media.as_str(), body(&operation).required),
        ("application/x-www-form-urlencoded", true)
    );

    for (consumes, form, expected) in [
        (json!(["multipart/form-data"]), true, "multipart/form-data"),
        (
            json!(["application/x-www-form-urlencoded", "multipart/form-data"]),
            true,
            "application/x-www-form-urlencoded",
        ),
        (json!(["application/xml", "application/vnd.x+json"]), false, "application/vnd.x+json"),
        (json!(["application/xml"]), false, "application/xml"),
        (json!(["multipart/form-data"]), false, "application/json"),
        (json!([]), false, "application/json"),
    ] {
        let parameter = if form {
            name.clone()
        } else {
            json!({"in": "body", "name": "b", "schema": {"type": "object"}})
        };
        let operation = post_v2("/a", json!({"consumes": consumes, "parameters": [parameter]}));
        assert_eq!(body(&operation).media, expected, "{consumes}");
    }
}
