//! Parameters and bodies of small documents as arguments.

#![expect(clippy::needless_pass_by_value, reason = "documents are written where they are used")]

mod kinds;
mod wild;

use super::*;
use crate::openapi::limits::PARAMETERS;
use crate::openapi::request::body::{BodyKind, Part, Source};
use crate::openapi::request::parameters::{Form, Style};
use crate::openapi::{Bundle, Choice, Operation, Url, import};
use gantry_core::schema::Schema;
use serde_json::json;

#[track_caller]
fn only(document: &Value) -> Operation {
    let location = Url::parse("https://docs.example.com/api.json").unwrap();
    let bundle = Bundle::open(location, document.to_string().as_bytes()).unwrap();
    let mut out = import(&bundle, &Choice::default());
    assert!(out.skipped.is_empty(), "{:?}", out.skipped);
    let operation = out.operations.remove(0);
    Schema::compile(&operation.input_schema.value()).unwrap();
    operation
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

fn form_of<'a>(operation: &'a Operation, name: &str) -> &'a Form {
    &operation.template.parameters.iter().find(|parameter| parameter.name == name).unwrap().form
}

fn styled(style: Style, explode: bool) -> Form {
    Form::Styled { style, explode, allow_reserved: false }
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
                {"in": "cookie", "name": "sid", "schema": string()},
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
    assert_eq!(arguments(&operation), ["one!", "two!", "size", "page!", "bare", "X-Trace", "sid"]);
    assert_eq!(property(&operation, "page"), json!({"type": "integer", "description": "of the operation"}));
    assert_eq!(property(&operation, "size"), json!({"type": "integer", "default": 20}));
    assert_eq!(property(&operation, "bare"), string());
    assert_eq!(property(&operation, "one"), string());
    assert_eq!(operation.input_schema.value()["additionalProperties"], false);
}

#[test]
fn rst_2_styles_have_defaults_by_place_and_illegal_ones_fall_back_to_them() {
    use Style::{DeepObject, Form as F, Label, Matrix, PipeDelimited, Simple, SpaceDelimited};
    for (place, said, expected) in [
        ("path", json!({}), styled(Simple, false)),
        ("path", json!({"style": "label"}), styled(Label, false)),
        ("path", json!({"style": "matrix", "explode": true}), styled(Matrix, true)),
        ("path", json!({"style": "form"}), styled(Simple, false)),
        ("query", json!({}), styled(F, true)),
        ("query", json!({"explode": false}), styled(F, false)),
        ("query", json!({"style": "spaceDelimited"}), styled(SpaceDelimited, false)),
        ("query", json!({"style": "pipeDelimited", "explode": true}), styled(PipeDelimited, true)),
        ("query", json!({"style": "deepObject", "explode": true}), styled(DeepObject, true)),
        ("query", json!({"style": "matrix"}), styled(F, true)),
        ("query", json!({"style": 3, "explode": "no"}), styled(F, true)),
        (
            "query",
            json!({"allowReserved": true}),
            Form::Styled { style: F, explode: true, allow_reserved: true },
        ),
        ("header", json!({}), styled(Simple, false)),
        ("header", json!({"style": "deepObject"}), styled(Simple, false)),
        ("cookie", json!({}), styled(F, true)),
        ("cookie", json!({"style": "simple"}), styled(F, true)),
        ("query", json!({"content": {"application/json": {"schema": {"type": "object"}}}}), Form::Json),
        ("query", json!({"content": {"text/plain": {"schema": string()}}}), styled(F, true)),
    ] {
        let mut parameter = json!({"in": place, "name": "p", "schema": {"type": "array", "items": string()}});
        if said.get("content").is_some() {
            parameter.as_object_mut().unwrap().remove("schema");
        }
        parameter.as_object_mut().unwrap().extend(said.as_object().unwrap().clone());
        let path = if place == "path" { "/a/{p}" } else { "/a" };
        let operation = post(path, json!({"parameters": [parameter]}));
        assert_eq!(*form_of(&operation, "p"), expected, "{place} {said}");
    }
}

#[test]
fn rst_2_swagger_says_how_lists_are_written() {
    use Style::{Form as F, PipeDelimited, Simple, SpaceDelimited, TabDelimited};
    for (place, format, expected) in [
        ("query", None, styled(F, false)),
        ("query", Some("csv"), styled(F, false)),
        ("query", Some("multi"), styled(F, true)),
        ("query", Some("ssv"), styled(SpaceDelimited, false)),
        ("query", Some("tsv"), styled(TabDelimited, false)),
        ("query", Some("pipes"), styled(PipeDelimited, false)),
        ("path", Some("multi"), styled(Simple, false)),
        ("header", None, styled(Simple, false)),
    ] {
        let mut parameter = json!({"in": place, "name": "p", "type": "array", "required": true,
            "items": {"type": "integer"}, "description": "Numbers."});
        if let Some(format) = format {
            parameter["collectionFormat"] = format.into();
        }
        let path = if place == "path" { "/a/{p}" } else { "/a" };
        let operation = post_v2(path, json!({"parameters": [parameter]}));
        assert_eq!(*form_of(&operation, "p"), expected, "{place} {format:?}");
        let expected = json!({"type": "array", "items": {"type": "integer"}, "description": "Numbers."});
        assert_eq!(property(&operation, "p"), expected);
        assert_eq!(arguments(&operation), ["p!"]);
    }
}

#[test]
fn a_path_has_the_parameters_that_its_template_needs() {
    let query = json!({"parameters": [{"in": "query", "name": "q", "schema": string()}]});
    for (path, expected) in [
        ("/a/{b}.{c}/{b}", vec!["b!", "c!"]),
        ("/a?q={q}&r={r}", vec!["r!", "q"]),
        ("/a{?q}", vec!["q"]),
        ("/a/#Action={x}", vec!["q"]),
    ] {
        let operation = post(path, query.clone());
        let found = arguments(&operation).into_iter().filter(|name| path.contains('q') || name != "q");
        let expected: Vec<&str> =
            expected.into_iter().filter(|name| path.contains('q') || *name != "q").collect();
        assert_eq!(found.collect::<Vec<_>>(), expected, "{path}");
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
    let all = json!([parameter("path"), parameter("query"), parameter("header"), parameter("cookie")]);
    let operation = post("/a/{id}", json!({"parameters": all}));
    assert_eq!(arguments(&operation), ["id_path!", "id_query", "id_header", "id_cookie"]);

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
    assert_eq!(body(&optional).source, Source::Whole("body".to_owned()));

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
    for (types, expected, kind) in [
        (vec![("text/xml", &object), ("application/json", &object)], "application/json", BodyKind::Json),
        (
            vec![("text/plain", &object), ("application/hal+json", &object)],
            "application/hal+json",
            BodyKind::Json,
        ),
        (vec![("*/*", &object)], "application/json", BodyKind::Json),
        (vec![("application/*", &object)], "application/json", BodyKind::Json),
        (
            vec![("multipart/form-data", &object), ("application/x-www-form-urlencoded", &object)],
            "application/x-www-form-urlencoded",
            BodyKind::Form(Vec::new()),
        ),
        (vec![("application/xml", &object)], "application/xml", BodyKind::Text),
        (vec![("text/csv", &object), ("image/png", &object)], "text/csv", BodyKind::Text),
        (vec![("image/png", &object)], "image/png", BodyKind::Binary),
        (vec![("image/*", &object)], "application/octet-stream", BodyKind::Binary),
        (vec![("application/zip", &object)], "application/zip", BodyKind::Binary),
    ] {
        let content: Map<String, Value> =
            types.iter().map(|(media, node)| ((*media).to_owned(), (*node).clone())).collect();
        let operation = post("/a", json!({"requestBody": {"content": content}}));
        assert_eq!((body(&operation).media.as_str(), &body(&operation).kind), (expected, &kind), "{types:?}");
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
    let expected = json!({"type": "string", "description": "The body as XML text."});
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
        "list": {"style": "pipeDelimited"},
    });
    let content = json!({"multipart/form-data; boundary=x": {"schema": schema, "encoding": encoding}});
    let operation = post("/a", json!({"requestBody": {"required": true, "content": content}}));
    assert_eq!(arguments(&operation), ["one!", "many", "text", "meta", "list"]);
    assert_eq!(property(&operation, "one")["description"], "The picture.");
    assert_eq!(property(&operation, "one")["properties"]["encoding"]["enum"], json!(["utf-8", "base64"]));
    assert_eq!(property(&operation, "many")["items"]["required"], json!(["content"]));
    assert_eq!(property(&operation, "text")["type"], "string");
    let part = |file, content_type: Option<&str>, form| Part {
        file,
        content_type: content_type.map(str::to_owned),
        form,
    };
    let parts = vec![
        ("one".to_owned(), part(true, Some("image/png"), None)),
        ("many".to_owned(), part(true, None, None)),
        ("meta".to_owned(), part(false, Some("application/json"), None)),
        ("list".to_owned(), part(false, None, Some(styled(Style::PipeDelimited, false)))),
    ];
    assert_eq!(body(&operation).kind, BodyKind::Multipart(parts));
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
    let forms = vec![
        ("a".to_owned(), styled(Style::DeepObject, true)),
        ("b".to_owned(), styled(Style::Form, false)),
        ("d".to_owned(), Form::Json),
    ];
    assert_eq!(body(&operation).kind, BodyKind::Form(forms));
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
    let forms = vec![("tags".to_owned(), styled(Style::Form, false))];
    assert_eq!(body(&operation).kind, BodyKind::Form(forms));
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
    let location = Url::parse("https://docs.example.com/api.json").unwrap();
    let out = import(&Bundle::open(location, document.to_string().as_bytes()).unwrap(), &Choice::default());
    assert_eq!(out.skipped[0].reason, "it has more than 1000 parameters");
}
