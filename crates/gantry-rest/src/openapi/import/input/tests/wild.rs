//! Bodies and parameters as frameworks and people write them.

use super::*;

/// A required body of this media type.
fn sent(media: &str, schema: Value, encoding: Value) -> Value {
    json!({"requestBody": {"required": true, "content": {media: {"schema": schema, "encoding": encoding}}}})
}

fn form_data(schema: Value) -> Value {
    sent("multipart/form-data", schema, json!({}))
}

fn is_file(schema: &Value) -> bool {
    schema["properties"]["content"].is_object()
}

fn binary() -> Value {
    json!({"type": "string", "format": "binary"})
}

#[track_caller]
fn written(operation: &Operation, arguments: Value) -> String {
    Schema::compile(&operation.input_schema.value()).unwrap().check(&arguments).unwrap();
    let prepared = operation.prepare(arguments.as_object().unwrap()).unwrap();
    String::from_utf8(prepared.body.unwrap().1).unwrap()
}

#[test]
fn rst_2_optional_files_are_files() {
    let nothing = json!({"type": "null"});
    let operation = only(&json!({
        "openapi": "3.1.0", "info": {}, "components": {"schemas": {"Bin": binary()}},
        "paths": {"/a": {"post": form_data(json!({"type": "object", "properties": {
            "a": {"anyOf": [binary(), nothing], "title": "A", "description": "The first."},
            "b": {"anyOf": [{"type": "array", "items": binary()}, nothing]},
            "c": {"allOf": [{"$ref": "#/components/schemas/Bin"}], "description": "The third."},
            "d": {"type": "array", "items": {"oneOf": [nothing, {"$ref": "#/components/schemas/Bin"}]}},
            "e": {"anyOf": [string(), nothing]},
            "f": {"anyOf": [binary(), string()]},
        }}))}},
    }));
    assert!(is_file(&property(&operation, "a")) && is_file(&property(&operation, "c")));
    assert!(is_file(&property(&operation, "b")["items"]) && is_file(&property(&operation, "d")["items"]));
    assert!(!is_file(&property(&operation, "e")) && !is_file(&property(&operation, "f")));
    assert_eq!(&property(&operation, "a")["description"], "The first.");
    assert_eq!(property(&operation, "c")["description"], "The third.");
    let text = written(&operation, json!({"a": {"content": "x", "filename": "a.txt"}}));
    assert!(text.contains("name=\"a\"; filename=\"a.txt\""), "{text}");
}

#[test]
fn rst_2_files_below_compositions_are_files() {
    let up = json!({"type": "object", "required": ["id", "f"], "properties": {
        "id": {"type": "string", "readOnly": true}, "f": binary(), "note": string()}});
    for (schema, required) in [
        (json!({"allOf": [up, {"type": "object", "additionalProperties": true}]}), json!(["f"])),
        (json!({"oneOf": [up, {"type": "object", "properties": {"url": string()}}]}), json!([])),
        (json!({"anyOf": [{"allOf": [up]}, {}]}), json!([])),
    ] {
        let operation = post("/a", form_data(schema.clone()));
        assert_eq!(arguments(&operation), ["body!"], "{schema}");
        let body = property(&operation, "body");
        assert!(is_file(&body["properties"]["f"]), "{schema}");
        assert_eq!(body["properties"].get("id"), None, "{schema}");
        assert_eq!(body["required"], required, "{schema}");
        let text = written(&operation, json!({"body": {"f": {"content": "x"}, "note": "n"}}));
        assert!(text.contains("name=\"f\"; filename=\"file\""), "{text}");
    }
    // They decide which media type is sent, too.
    let content = json!({
        "application/json": {"schema": {"type": "object", "properties": {"a": string()}}},
        "multipart/form-data": {"schema": {"oneOf": [up, {"type": "object"}]}},
    });
    let operation = post("/a", json!({"requestBody": {"content": content}}));
    assert_eq!(body(&operation).media, "multipart/form-data");
}

#[test]
fn rst_2_a_part_has_the_first_media_type_that_is_listed() {
    let image = json!({"type": "string", "contentMediaType": "image/webp"});
    let schema = json!({"type": "object", "properties": {
        "one": binary(), "many": {"type": "array", "items": image}, "long": binary()}});
    let long = vec!["image/png"; 100].join(", ");
    let encoding = json!({"one": {"contentType": "image/png, image/jpeg"}, "long": {"contentType": long}});
    let operation = post_v31(sent("multipart/form-data", schema, encoding));
    for (name, value, expected) in [
        ("one", json!({"content": "x"}), "image/png"),
        ("long", json!({"content": "x"}), "image/png"),
        ("many", json!([{"content": "x"}]), "image/webp"),
    ] {
        let text = written(&operation, json!({name: value}));
        assert!(text.contains(&format!("\r\nContent-Type: {expected}\r\n")), "{text}");
    }
}

#[test]
fn rst_2_what_has_kinds_is_one_open_body() {
    let animal = json!({"type": "object", "discriminator": "kind", "required": ["kind"],
        "additionalProperties": false, "properties": {"kind": string()}});
    let dog = json!({"allOf": [{"$ref": "#/definitions/Animal"},
        {"type": "object", "required": ["bark"], "properties": {"bark": string()}}]});
    let with = |dog: &Value, name: &str| {
        let schema = json!({"$ref": format!("#/definitions/{name}")});
        only(&json!({
            "swagger": "2.0", "info": {}, "host": "a.example", "definitions": {"Animal": animal, "Dog": dog},
            "paths": {"/a": {"post": {"parameters": [
                {"in": "body", "name": "animal", "required": true, "schema": schema}]}}},
        }))
    };
    for name in ["Animal", "Dog"] {
        let operation = with(&dog, name);
        assert_eq!(arguments(&operation), ["body!"]);
        let text = written(&operation, json!({"body": {"kind": "Poodle", "bark": "loud", "curls": 7}}));
        assert_eq!(text, r#"{"kind":"Poodle","bark":"loud","curls":7}"#);
    }
}

#[test]
fn rst_2_a_later_part_keeps_what_an_earlier_one_demands() {
    let base = json!({"type": "object", "properties": {"kind": {"type": "string", "enum": ["a", "b"]}}});
    let later =
        json!({"type": "object", "properties": {"kind": {"description": "The kind"}, "more": string()}});
    let operation = post("/a", sent("application/json", json!({"allOf": [base, later]}), json!({})));
    assert_eq!(arguments(&operation), ["kind", "more"]);
    assert_eq!(property(&operation, "kind")["enum"], json!(["a", "b"]));
}

#[test]
fn rst_2_content_that_is_neither_json_nor_plain_is_refused() {
    let parameter = |media: &str, schema: Value| json!({"in": "query", "name": "p", "description": "All of it.", "content": {media: {"schema": schema}}});
    let object = json!({"type": "object", "properties": {"a": string()}});
    let form = parameter("application/x-www-form-urlencoded", object.clone());
    let expected =
        "the parameter \"p\": the media type \"application/x-www-form-urlencoded\" is not supported";
    assert_eq!(refused("/a", json!({"parameters": [form]})), expected);
    for schema in [object.clone(), json!({"properties": {}}), json!({}), json!({"type": ["string", "array"]})]
    {
        let reason = refused("/a", json!({"parameters": [parameter("text/plain", schema)]}));
        assert!(reason.ends_with("the media type \"text/plain\" is not supported"), "{reason}");
    }
    let nullable = json!({"type": ["string", "null"]});
    let operation = post_v31(json!({"parameters": [parameter("text/plain", nullable)]}));
    assert_eq!(property(&operation, "p")["type"], json!(["string", "null"]));
    let operation = post("/a", json!({"parameters": [parameter("text/plain", json!({"enum": ["a", 1]}))]}));
    assert_eq!(property(&operation, "p")["enum"], json!(["a", 1]));

    let operation = post("/a", json!({"parameters": [parameter("text/plain", json!({"type": "integer"}))]}));
    assert_eq!(property(&operation, "p"), json!({"type": "integer", "description": "All of it."}));
    let operation = post("/a", json!({"parameters": [parameter("application/vnd.x+json", object)]}));
    assert_eq!(property(&operation, "p")["type"], "object");
}

#[test]
fn headers_that_change_what_a_request_is_are_no_arguments() {
    let names = [
        "Cookie",
        "Host",
        "AUTHORIZATION",
        "content-length",
        "Proxy-Connection",
        "X-HTTP-Method-Override",
        "x-http-method",
        "X-Method-Override",
        "X-Trace",
    ];
    let parameters: Vec<Value> = names
        .iter()
        .map(|name| json!({"in": "header", "name": name, "required": true, "schema": string()}))
        .collect();
    assert_eq!(arguments(&post("/a", json!({"parameters": parameters}))), ["X-Trace!"]);
    let header = |required| json!({"parameters": [{"in": "header", "name": "a b", "required": required}]});
    assert_eq!(arguments(&post("/a", header(false))), [""; 0]);
    assert_eq!(refused("/a", header(true)), "the parameter \"a b\" is required and no name of a header");
}

#[test]
fn words_for_true_are_true() {
    for yes in ["yes", "true", "True"] {
        let schema = json!({"type": "array", "items": string()});
        let operation = post(
            "/a",
            json!({
                "parameters": [{"in": "query", "name": "q", "required": yes, "schema": string()}],
                "requestBody": {"required": yes, "content": {"application/json": {"schema": schema}}},
            }),
        );
        assert_eq!(arguments(&operation), ["q!", "body!"], "{yes}");
        assert!(body(&operation).required, "{yes}");
        let field = json!({"in": "formData", "name": "f", "type": "string", "required": yes});
        assert_eq!(arguments(&post_v2("/a", json!({"parameters": [field]}))), ["f!"], "{yes}");
    }
}

#[test]
fn rst_2_xml_is_a_text() {
    let pet = json!({"type": "object", "description": "A pet.", "xml": {"name": "pet"}, "properties": {
        "id": {"type": "integer", "xml": {"attribute": true}}, "name": string(),
        "tags": {"type": "array", "items": string(), "xml": {"name": "tag"}},
        "seen": {"type": "string", "readOnly": true}}});
    let operation = post("/a", sent("application/xml", pet, json!({})));
    let expected = "The body as text (application/xml). A pet.";
    assert_eq!(property(&operation, "body"), json!({"type": "string", "description": expected}));
}

#[test]
fn a_name_with_a_number_says_what_it_is_sent_as() {
    let query = |name: &str| json!({"in": "query", "name": name, "schema": string()});
    let content = json!({"application/json": {"schema": {"type": "object", "properties": {"id": string()}}}});
    let operation = post(
        "/a/{id}",
        json!({"parameters": [query("id_path"), query("[]"), query("v2")], "requestBody": {"content": content}}),
    );
    assert_eq!(arguments(&operation), ["id_path_2!", "id_path", "value", "v2", "id"]);
    assert_eq!(property(&operation, "id_path_2")["description"], r#"Sent as "id"."#);
    assert_eq!(property(&operation, "value")["description"], r#"Sent as "[]"."#);
    assert_eq!(property(&operation, "v2"), string());
}
