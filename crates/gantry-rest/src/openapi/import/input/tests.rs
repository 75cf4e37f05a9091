//! Parameters and bodies of small documents as arguments.

#![expect(clippy::needless_pass_by_value, reason = "documents are written where they are used")]

mod bodies;
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
fn rst_3_parameters_of_one_name_are_distinguished_by_place() {
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
fn too_many_parameters_cost_the_operation() {
    let parameters: Vec<Value> = (0..=PARAMETERS)
        .map(|number| json!({"in": "query", "name": format!("p{number}"), "schema": string()}))
        .collect();
    let document =
        json!({"openapi": "3.0.0", "info": {}, "paths": {"/a": {"get": {"parameters": parameters}}}});
    assert_eq!(skipped(&document), "it has more than 1000 parameters");
}
