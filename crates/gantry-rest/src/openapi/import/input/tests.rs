//! Parameters and bodies of small documents as arguments.

#![expect(clippy::needless_pass_by_value, reason = "documents are written where they are used")]

mod kinds;
mod wild;

use super::*;
use crate::openapi::limits::PARAMETERS;
use crate::openapi::request::body::{BodyFormat, PropertyEncoding, Source};
use crate::openapi::request::parameters::{Serialization, Style};
use crate::openapi::{Bundle, Import, ImportOptions, Operation, Url, import};
use gantry_core::schema::Schema;
use serde_json::json;

fn imported(document: &Value) -> Import {
    let location = Url::parse("https://docs.example.com/api.json").unwrap();
    let bundle = Bundle::open(location, document.to_string().as_bytes()).unwrap();
    import(&bundle, &ImportOptions::default())
}

#[track_caller]
fn only(document: &Value) -> Operation {
    let mut out = imported(document);
    assert!(out.skipped.is_empty(), "{:?}", out.skipped);
    let operation = out.operations.remove(0);
    Schema::compile(&operation.input_schema.value()).unwrap();
    operation
}

/// Why the only operation of a document is skipped.
#[track_caller]
fn skipped(document: &Value) -> String {
    let mut out = imported(document);
    assert!(out.operations.is_empty() && out.skipped.len() == 1, "{out:?}");
    out.skipped.remove(0).reason
}

/// Why an operation `POST {path}` is skipped.
#[track_caller]
fn refused(path: &str, operation: Value) -> String {
    skipped(&json!({"openapi": "3.0.3", "info": {}, "paths": {path: {"post": operation}}}))
}

/// The operation `POST {path}` of a document of 3.0.
#[track_caller]
fn post(path: &str, operation: Value) -> Operation {
    only(&json!({"openapi": "3.0.3", "info": {}, "paths": {path: {"post": operation}}}))
}

#[track_caller]
fn post_v31(operation: Value) -> Operation {
    only(&json!({"openapi": "3.1.0", "info": {}, "paths": {"/a": {"post": operation}}}))
}

#[track_caller]
fn post_v2(path: &str, operation: Value) -> Operation {
    only(&json!({"swagger": "2.0", "info": {}, "host": "a.example", "paths": {path: {"post": operation}}}))
}

/// The arguments in order; those that are required have a `!`.
fn arguments(operation: &Operation) -> Vec<String> {
    let schema = operation.input_schema.value();
    let required = |name: &str| {
        schema["required"].as_array().is_some_and(|required| required.iter().any(|other| other == name))
    };
    let properties = schema["properties"].as_object().unwrap();
    properties.keys().map(|name| if required(name) { format!("{name}!") } else { name.clone() }).collect()
}

fn property(operation: &Operation, name: &str) -> Value {
    operation.input_schema.value()["properties"][name].clone()
}

fn style_of(operation: &Operation, name: &str) -> Style {
    let mut parameters = operation.template.parameters.iter();
    parameters.find(|parameter| parameter.name == name).unwrap().serialization.style
}

fn styled(style: Style) -> PropertyEncoding {
    PropertyEncoding { serialization: Some(Serialization::new(style)), ..PropertyEncoding::default() }
}

fn body(operation: &Operation) -> &crate::openapi::request::body::Body {
    operation.template.body.as_ref().unwrap()
}

fn string() -> Value {
    json!({"type": "string"})
}

#[test]
fn rst_2_parameters_come_by_place_and_those_of_the_operation_win() {
    let operation = only(&json!({
        "openapi": "3.0.0", "info": {},
        "components": {"parameters": {"size": {"in": "query", "name": "size", "schema": {"type": "integer", "default": 20}}}},
        "paths": {"/a/{one}/{two}": {
            "parameters": [
                {"in": "query", "name": "page", "schema": {"type": "string"}, "description": "of the item"},
                {"in": "path", "name": "two", "required": true, "schema": {"type": "integer"}},
                {"in": "path", "name": "gone", "required": true, "schema": {"type": "integer"}},
            ],
            "get": {"parameters": [
                {"in": "header", "name": "X-Trace", "schema": string()},
                {"in": "header", "name": "Accept", "required": true, "schema": string()},
                {"in": "header", "name": "content-type", "required": true, "schema": string()},
                {"$ref": "#/components/parameters/size"},
                {"in": "query", "name": "page", "required": true, "description": "of  the\noperation",
                    "schema": {"type": "integer", "description": "of the schema"}},
                {"in": "query", "name": "bare"},
            ]},
        }},
    }));
    assert_eq!(arguments(&operation), ["one!", "two!", "size", "page!", "bare", "X-Trace"]);
    assert_eq!(property(&operation, "page"), json!({"type": "integer", "description": "of the operation"}));
    assert_eq!(property(&operation, "size"), json!({"type": "integer", "default": 20}));
    assert_eq!(property(&operation, "bare"), string());
    assert_eq!(property(&operation, "one"), string());
    assert_eq!(operation.input_schema.value()["additionalProperties"], false);
}

#[test]
fn rst_2_styles_have_defaults_by_place_and_illegal_ones_fall_back_to_them() {
    use Style::{DeepObject, Exploded, Joined, Json};
    for (place, said, expected) in [
        ("path", json!({}), Joined),
        ("path", json!({"style": "form"}), Joined),
        ("path", json!({"style": "simple", "explode": true}), Exploded),
        ("query", json!({}), Exploded),
        ("query", json!({"explode": false}), Joined),
        ("query", json!({"style": "deepObject", "explode": true}), DeepObject),
        ("query", json!({"style": "deepObject", "explode": false}), DeepObject),
        ("query", json!({"style": "simple"}), Exploded),
        ("query", json!({"style": 3, "explode": "no"}), Exploded),
        ("header", json!({}), Joined),
        ("header", json!({"style": "deepObject"}), Joined),
        ("query", json!({"content": {"application/json": {"schema": {"type": "object"}}}}), Json),
        ("query", json!({"content": {"text/plain": {"schema": string()}}}), Exploded),
    ] {
        let operation = post(path_of(place), json!({"parameters": [list(place, &said)]}));
        assert_eq!(style_of(&operation, "p"), expected, "{place} {said}");
    }
    for (place, expected) in [("path", false), ("query", true), ("header", false)] {
        let parameter = list(place, &json!({"allowReserved": true}));
        let operation = post(path_of(place), json!({"parameters": [parameter]}));
        assert_eq!(operation.template.parameters[0].serialization.allow_reserved, expected, "{place}");
    }
}

fn path_of(place: &str) -> &'static str {
    if place == "path" { "/a/{p}" } else { "/a" }
}

/// The parameter `p`, a list.
fn list(place: &str, said: &Value) -> Value {
    let mut parameter = json!({"in": place, "name": "p", "schema": {"type": "array", "items": string()}});
    if said.get("content").is_some() {
        parameter.as_object_mut().unwrap().remove("schema");
    }
    parameter.as_object_mut().unwrap().extend(said.as_object().unwrap().clone());
    parameter
}

#[test]
fn rst_2_other_styles_and_cookies_are_refused() {
    for (place, style) in [
        ("path", "label"),
        ("path", "matrix"),
        ("query", "matrix"),
        ("query", "spaceDelimited"),
        ("query", "pipeDelimited"),
    ] {
        for explode in [false, true] {
            let parameter = list(place, &json!({"style": style, "explode": explode}));
            let expected = format!("the parameter \"p\": the style {style:?} is not supported");
            assert_eq!(refused(path_of(place), json!({"parameters": [parameter]})), expected);
        }
    }
    let cookie = json!({"parameters": [list("cookie", &json!({}))]});
    assert_eq!(refused("/a", cookie), "the parameter \"p\" goes into a cookie, which is not supported");
    for media in ["multipart/form-data", "application/x-www-form-urlencoded"] {
        let schema = json!({"type": "object", "properties": {"a": {"type": "array", "items": string()}}});
        let encoding = json!({"a": {"style": "pipeDelimited"}});
        let content = json!({media: {"schema": schema, "encoding": encoding}});
        let expected = "the property \"a\" of the request body: the style \"pipeDelimited\" is not supported";
        assert_eq!(refused("/a", json!({"requestBody": {"content": content}})), expected);
    }
}

#[test]
fn rst_2_swagger_says_how_lists_are_written() {
    let parameter = |place: &str, format: Option<&str>| {
        let mut parameter = json!({"in": place, "name": "p", "type": "array", "required": true,
            "items": {"type": "integer"}, "description": "Numbers."});
        if let Some(format) = format {
            parameter["collectionFormat"] = format.into();
        }
        json!({"parameters": [parameter]})
    };
    for (place, format, expected) in [
        ("query", None, Style::Joined),
        ("query", Some("csv"), Style::Joined),
        ("query", Some("multi"), Style::Exploded),
        ("path", Some("multi"), Style::Joined),
        ("header", None, Style::Joined),
    ] {
        let operation = post_v2(path_of(place), parameter(place, format));
        assert_eq!(style_of(&operation, "p"), expected, "{place} {format:?}");
        let expected = json!({"type": "array", "items": {"type": "integer"}, "description": "Numbers."});
        assert_eq!(property(&operation, "p"), expected);
        assert_eq!(arguments(&operation), ["p!"]);
    }
    for place in ["query", "path", "header", "formData"] {
        for format in ["ssv", "tsv", "pipes"] {
            let paths = json!({path_of(place): {"post": parameter(place, Some(format))}});
            let reason = skipped(&json!({"swagger": "2.0", "info": {}, "host": "a.example", "paths": paths}));
            assert!(
                reason.ends_with(&format!("the collectionFormat {format:?} is not supported")),
                "{reason}"
            );
        }
    }
}

#[test]
fn a_path_has_the_parameters_that_its_template_needs() {
    let query = json!({"parameters": [{"in": "query", "name": "q", "schema": string()}]});
    for (path, expected) in [
        ("/a/{b}.{c}/{b}", vec!["b!", "c!"]),
        ("/a?q={q}&r={r}", vec!["r!", "q"]),
        ("/a{?q}", vec!["q"]),
        ("/a{&q}{#part}", vec!["q"]),
        ("/a/#Action={x}", vec!["q"]),
    ] {
        let operation = post(path, query.clone());
        let found = arguments(&operation).into_iter().filter(|name| path.contains('q') || name != "q");
        let expected: Vec<&str> =
            expected.into_iter().filter(|name| path.contains('q') || *name != "q").collect();
        assert_eq!(found.collect::<Vec<_>>(), expected, "{path}");
    }
    for path in ["/a{?q}/b", "/a{&q}b", "/a?r=1{&q}&s=2", "/a{#q}/b", "/a{?q"] {
        let expected = "its path goes on after a list of parameters such as {?page}";
        assert_eq!(refused(path, query.clone()), expected, "{path}");
    }
}

#[test]
fn names_of_arguments_are_such_as_models_take() {
    let names = ["filter[name]", "$top", "X:y z", "filter_name", "ä", "ok.name-1_", "[]"];
    let parameters: Vec<Value> =
        names.iter().map(|name| json!({"in": "query", "name": name, "schema": string()})).collect();
    let operation = post("/a", json!({"parameters": parameters}));
    let expected =
        ["filter_name_query", "top", "X_y_z", "filter_name", "value_query", "ok.name-1_", "value_query_2"];
    assert_eq!(arguments(&operation), expected);
    let sent: Vec<&str> =
        operation.template.parameters.iter().map(|parameter| parameter.name.as_str()).collect();
    assert_eq!(sent, names);
    assert_eq!(property(&operation, "top"), string(), "nothing to say");
    assert_eq!(property(&operation, "value_query")["description"], r#"Sent as "ä"."#);

    let long = "x".repeat(300);
    let parameters = json!([
        {"in": "query", "name": long, "schema": string(), "description": "Long."},
        {"in": "header", "name": long, "schema": string()},
    ]);
    let operation = post("/a", json!({"parameters": parameters}));
    assert!(arguments(&operation).iter().all(|name| name.len() <= 64), "{:?}", arguments(&operation));
}

#[test]
fn rst_3_parameters_of_one_name_are_told_apart_by_place() {
    let parameter = |place: &str| json!({"in": place, "name": "id", "schema": string()});
    let all = json!([parameter("path"), parameter("query"), parameter("header")]);
    let operation = post("/a/{id}", json!({"parameters": all}));
    assert_eq!(arguments(&operation), ["id_path!", "id_query", "id_header"]);

    let content = json!({"application/json": {"schema": {"type": "object", "properties": {
        "id": string(), "name": string()}, "required": ["name"]}}});
    let operation = post("/a/{id}", json!({"requestBody": {"required": true, "content": content}}));
    assert_eq!(arguments(&operation), ["id_path!", "id", "name!"]);
    let fields = [("id", "id"), ("name", "name")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(body(&operation).source, Source::Fields(fields.to_vec()));

    let parameters = json!([{"in": "query", "name": "body", "schema": string()}]);
    let content = json!({"application/json": {"schema": {"type": "array", "items": string()}}});
    let operation = post("/a", json!({"parameters": parameters, "requestBody": {"content": content}}));
    assert_eq!(arguments(&operation), ["body_query", "body"]);
}

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
        let content: Map<String, Value> =
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

#[test]
fn too_many_parameters_cost_the_operation() {
    let parameters: Vec<Value> = (0..=PARAMETERS)
        .map(|number| json!({"in": "query", "name": format!("p{number}"), "schema": string()}))
        .collect();
    let document =
        json!({"openapi": "3.0.0", "info": {}, "paths": {"/a": {"get": {"parameters": parameters}}}});
    assert_eq!(skipped(&document), "it has more than 1000 parameters");
}
