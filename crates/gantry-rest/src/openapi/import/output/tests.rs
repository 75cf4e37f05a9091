//! Which operations get an output schema, and how lax it is.

use super::*;
use crate::openapi::document::Bundle;
use gantry_core::schema::Schema;
use serde_json::json;
use url::Url;

/// The output schema of an operation in a document of this version.
#[track_caller]
fn output(version: &str, operation: &Value) -> Option<Value> {
    let key = if version.starts_with('2') { "swagger" } else { "openapi" };
    let document = json!({
        key: version, "info": {}, "paths": {}, "produces": ["text/xml", "application/vnd.x+json"], "o": operation,
        "s": {
            "Pet": { "type": "object", "required": ["id"], "properties": {
                "id": { "type": "integer" }, "parent": { "$ref": "#/s/Pet" }, "pets": { "type": "array", "items": { "$ref": "#/s/Pet" } },
            } },
            "Error": { "type": "object", "properties": { "code": { "type": "integer" } } },
            "Endless": { "allOf": [{ "$ref": "#/s/Endless" }, { "type": "object" }] },
        },
        "r": { "Pet": { "description": "", "content": { "application/json": { "schema": { "$ref": "#/s/Pet" } } } } },
    });
    let location = Url::parse("file:///api/root.json").unwrap();
    let bundle = Bundle::open(location, document.to_string().as_bytes()).unwrap();
    let operation = bundle.root().unwrap().get("o").unwrap();
    let schema = schema(operation)?;
    if let Err(error) = Schema::compile(&schema) {
        panic!("{error}: {schema}");
    }
    Some(schema)
}

/// The same of an operation that answers with this schema as JSON.
#[track_caller]
fn answer(schema: &Value) -> Option<Value> {
    output("3.0.0", &json!({ "responses": { "200": json_response(schema) } }))
}

fn json_response(schema: &Value) -> Value {
    json!({ "description": "", "content": { "application/json; charset=utf-8": { "schema": schema } } })
}

#[test]
fn rst_2_a_response_becomes_a_lax_output_schema() {
    let schema = json!({
        "type": "object", "required": ["a"], "additionalProperties": false, "minProperties": 1,
        "properties": {
            "a": { "type": "string", "enum": ["x", "y"], "description": "Which", "default": "x" },
            "b": { "type": "integer", "minimum": 1, "format": "int32", "nullable": true },
            "c": { "type": "array", "uniqueItems": true, "items": { "type": "string", "pattern": "x" } },
            "d": { "oneOf": [{ "type": "string" }, { "type": "object", "not": { "required": ["e"] } }] },
            "e": { "type": "string", "writeOnly": true }, "f": { "readOnly": true },
        },
    });
    let expected = json!({
        "type": "object",
        "properties": {
            "a": { "type": ["string", "null"], "description": "Which. One of: x, y." },
            "b": { "type": ["integer", "null"] },
            "c": { "type": ["array", "null"], "items": { "type": ["string", "null"] } },
            "d": { "anyOf": [{ "type": ["string", "null"] }, { "type": ["object", "null"] }] },
            "f": {},
        },
    });
    assert_eq!(answer(&schema), Some(expected));
}

#[test]
fn the_whole_is_never_null_and_its_parts_may_be() {
    let pet = answer(&json!({ "$ref": "#/s/Pet" })).unwrap();
    assert_eq!(pet["type"], "object");
    assert_eq!(pet["properties"]["parent"], json!({ "$ref": "#/$defs/Pet" }));
    assert_eq!(pet["$defs"]["Pet"]["type"], json!(["object", "null"]));
    let value = json!({ "id": null, "parent": null, "pets": [{ "more": 1 }, null] });
    assert!(Schema::compile(&pet).unwrap().check(&value).is_ok());
    let list = answer(&json!({ "type": "array", "items": { "$ref": "#/s/Error" } })).unwrap();
    assert_eq!(list["type"], "array");
    let composed = json!({ "allOf": [{ "$ref": "#/s/Pet" }, { "$ref": "#/s/Error" }] });
    assert_eq!(answer(&composed).unwrap()["type"], "object");
    assert_eq!(answer(&json!({ "$ref": "#/s/Endless" })), Some(json!({ "type": "object" })));
}

#[test]
fn all_successes_count_and_errors_do_not() {
    let pet = json_response(&json!({ "$ref": "#/s/Pet" }));
    let error = json_response(&json!({ "$ref": "#/s/Error" }));
    let types = |responses: Value| {
        let schema = output("3.0.0", &json!({ "responses": responses }))?;
        let parts = schema["anyOf"].as_array().map_or(1, Vec::len);
        Some((schema["type"].clone(), parts))
    };
    let one = Some((json!("object"), 1));
    assert_eq!(types(json!({ "200": pet, "404": error, "default": error, "x-more": 1 })), one);
    assert_eq!(types(json!({ "200": pet, "201": pet, "2XX": { "$ref": "#/r/Pet" } })), one);
    assert_eq!(types(json!({ "200": pet, "202": error })), Some((json!("object"), 2)));
    assert_eq!(types(json!({ "default": pet })), one);
    assert_eq!(types(json!({ "200": pet, "204": { "description": "" } })), None);
    assert_eq!(types(json!({ "200": pet, "201": { "$ref": "#/r/None" } })), None);
    assert_eq!(types(json!({ "404": pet })), None);
    assert_eq!(types(json!({})), None);
    assert_eq!(types(json!([pet])), None);
}

#[test]
fn only_json_that_is_described_counts() {
    let object = json!({ "type": "object" });
    let by = |media: &str, schema: &Value| {
        output(
            "3.0.0",
            &json!({ "responses": { "200": { "content": { "text/csv": {}, media: { "schema": schema } } } } }),
        )
    };
    for media in ["application/json", "Application/JSON;x=y", "application/hal+json", "text/json", "*/*"] {
        assert_eq!(by(media, &object), Some(object.clone()), "{media}");
    }
    for media in
        ["application/x-ndjson", "text/event-stream", "application/stream+json", "text/plain", "image/*"]
    {
        assert_eq!(by(media, &object), None, "{media}");
    }
    assert_eq!(by("*/*", &json!({ "type": "string" })), None);
    assert_eq!(by("application/json", &json!({ "type": "string", "format": "binary" })), None);
    for nothing in [json!({}), json!(true), json!({ "description": "D" }), json!(null)] {
        assert_eq!(by("application/json", &nothing), None, "{nothing}");
    }
}

#[test]
fn swagger_has_the_schema_beside_the_media_types() {
    let responses = json!({ "200": { "schema": { "type": "object" } } });
    let made =
        |produces: Value| output("2.0", &json!({ "responses": responses, "produces": produces })).is_some();
    assert!(output("2.0", &json!({ "responses": responses })).is_some());
    assert!(made(json!(["text/plain", "application/json"])));
    assert!(made(json!([])));
    assert!(!made(json!(["text/plain"])));
    let file = json!({ "200": { "schema": { "type": "file" } } });
    assert_eq!(output("2.0", &json!({ "responses": file })), None);
}

#[test]
fn a_large_answer_is_shown_in_less_detail() {
    let wide = |inner: Value| {
        let properties: Object = (0..7).map(|n| (format!("property_{n}"), inner.clone())).collect();
        json!({ "type": "object", "properties": properties })
    };
    let schema = answer(&wide(wide(
        json!({ "type": "object", "properties": { "a": {"description": "A long description of it."} } }),
    )))
    .unwrap();
    assert_eq!(
        schema["properties"]["property_0"]["properties"]["property_0"],
        json!({ "type": ["object", "null"] })
    );
    let many: Object = (0..1000).map(|n| (n.to_string(), json!({ "type": "string" }))).collect();
    assert_eq!(answer(&json!({ "type": "object", "properties": many })), None);
}
