//! Schemas: what OpenAPI says about values is what arguments are judged by, and what answers are known by.

use super::{Rig, document, home, inspect, operation, tool_at, with};
use crate::passthrough::Talk;
use gantry_core::schema::Schema;
use gantry_testkit::{Echo, TestDir};
use serde_json::{Value, json};

/// The input schema of a `POST` with this body, in a document of this version with these schemas.
#[track_caller]
fn input(version: &str, body: &Value, schemas: &Value) -> Schema {
    let home = TestDir::new();
    let body = json!({ "required": true, "content": { "application/json": { "schema": body } } });
    let document = with(
        document(&json!({ "/a": { "post": with(operation("post"), &json!({ "requestBody": body })) } })),
        &json!({
            "openapi": version, "components": { "schemas": schemas }, "servers": [{ "url": "https://api.example.com" }],
        }),
    );
    home.write("api.json", &document.to_string());
    let report = inspect(&home, "api.json");
    let schema = &tool_at(&report, "post", "/a")["inputSchema"];
    Schema::compile(schema).unwrap_or_else(|error| panic!("{error}: {schema}"))
}

#[track_caller]
fn check(schema: &Schema, good: &[Value], bad: &[Value]) {
    for value in good {
        schema.check(value).unwrap_or_else(|error| panic!("{value} should fit: {error:?}"));
    }
    for value in bad {
        assert!(schema.check(value).is_err(), "{value} should not fit");
    }
}

#[test]
fn rst_2_all_of_is_all_of_them() {
    let schemas = json!({
        "Base": { "type": "object", "required": ["id"], "properties": { "id": { "type": "integer" } } },
        "Named": { "allOf": [{ "$ref": "#/components/schemas/Base" }, { "type": "object", "required": ["name"], "properties": { "name": { "type": "string" } } }] },
    });
    let schema = input("3.0.3", &json!({ "$ref": "#/components/schemas/Named" }), &schemas);
    let whole = json!({ "id": 1, "name": "a" });
    // Whether it is taken apart into arguments or is one of them.
    let as_body = schema.check(&whole).is_err();
    let wrap = |value: Value| if as_body { json!({ "body": value }) } else { value };
    check(
        &schema,
        &[wrap(whole)],
        &[wrap(json!({ "id": 1 })), wrap(json!({ "name": "a" })), wrap(json!({ "id": "x", "name": "a" }))],
    );
}

#[test]
fn rst_2_one_of_with_a_discriminator_tells_them_apart() {
    let schemas = json!({
        "Cat": { "type": "object", "required": ["kind", "lives"], "properties": { "kind": { "type": "string", "enum": ["cat"] }, "lives": { "type": "integer" } } },
        "Dog": { "type": "object", "required": ["kind", "bark"], "properties": { "kind": { "type": "string", "enum": ["dog"] }, "bark": { "type": "string" } } },
        "Pet": { "oneOf": [{ "$ref": "#/components/schemas/Cat" }, { "$ref": "#/components/schemas/Dog" }],
                 "discriminator": { "propertyName": "kind", "mapping": { "cat": "#/components/schemas/Cat", "dog": "Dog" } } },
    });
    let schema = input("3.0.3", &json!({ "$ref": "#/components/schemas/Pet" }), &schemas);
    let wrap = |value: Value| json!({ "body": value });
    check(
        &schema,
        &[wrap(json!({ "kind": "cat", "lives": 9 })), wrap(json!({ "kind": "dog", "bark": "wow" }))],
        &[wrap(json!({ "kind": "cat", "bark": "wow" })), wrap(json!({ "kind": "cow" })), json!({})],
    );
}

/// Pets of kinds that inherit from them, with a friend of any kind, as a document has its schemas.
fn inherited(discriminator: &Value, at: &str) -> Value {
    let refer = |name: &str| json!({ "$ref": format!("{at}{name}") });
    let kind = |own: &str| {
        let own = json!({ "type": "object", "required": [own], "properties": { own: { "type": "string" } } });
        json!({ "allOf": [refer("Pet"), own] })
    };
    json!({
        "Pet": { "type": "object", "required": ["kind"], "discriminator": discriminator, "properties": {
            "kind": { "type": "string" }, "name": { "type": "string" }, "friend": refer("Pet"),
        } },
        "Cat": kind("claws"), "Dog": kind("bark"),
    })
}

#[test]
fn rst_2_a_base_with_a_discriminator_takes_what_inherits_from_it() {
    let body = |at: &str| json!({ "schema": { "$ref": format!("{at}Pet") } });
    let post = |body: &Value| json!({ "/a": { "post": with(operation("post"), body) } });
    let (old, new) = ("#/definitions/", "#/components/schemas/");
    let two = |echo: &Echo| {
        let parameter = with(body(old), &json!({ "in": "body", "name": "body", "required": true }));
        let host = echo.url("").trim_start_matches("http://").to_owned();
        json!({
            "swagger": "2.0", "info": { "title": "Pets", "version": "1" }, "host": host, "schemes": ["http"],
            "paths": post(&json!({ "parameters": [parameter] })), "definitions": inherited(&json!("kind"), old),
        })
    };
    let three = |version: &str, discriminator: &Value| {
        let content =
            json!({ "requestBody": { "required": true, "content": { "application/json": body(new) } } });
        let schemas =
            json!({ "openapi": version, "components": { "schemas": inherited(discriminator, new) } });
        with(document(&post(&content)), &schemas)
    };
    let named = json!({ "propertyName": "kind" });
    let mapped =
        json!({ "propertyName": "kind", "mapping": { "cat": "#/components/schemas/Cat", "dog": "Dog" } });
    let echo = Echo::start();
    let home = home(&json!({ "openapiSpecs": { "api": { "spec": "api.json" } } }));
    home.write("api.json", &two(&echo).to_string());
    let swagger = Rig::at(echo, home);
    for (rig, [cat, dog]) in [
        (swagger, ["Cat", "Dog"]),
        (Rig::api(&three("3.0.3", &named)), ["Cat", "Dog"]),
        (Rig::api(&three("3.1.0", &mapped)), ["cat", "dog"]),
    ] {
        let pet = json!({ "kind": dog, "bark": "loud", "name": "Rex", "friend": { "kind": cat, "claws": "sharp" } });
        let sent = rig.sent("rest__api_post", &json!({ "body": pet }));
        let text = sent["body"]["text"].as_str().expect("text");
        assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), pet);
        // The base is shown, with a word on what tells the kinds apart.
        let listing = rig.server.get("/api/v1/tools").json();
        let mut tools = listing["items"].as_array().expect("tools").iter();
        let shown =
            tools.find(|tool| tool["name"] == "rest__api_post").expect("the tool")["inputSchema"].to_string();
        let kinds = if cat == "cat" { "`kind` tells the kind: cat, dog." } else { "`kind` tells the kind." };
        assert!(shown.contains(kinds), "{shown}");
        for wrong in [
            json!({ "kind": dog, "bark": "loud", "name": 5 }),
            json!({ "kind": dog, "bark": "loud", "friend": { "claws": "sharp" } }),
            json!({ "bark": "loud" }),
        ] {
            rig.refused("rest__api_post", &json!({ "body": wrong }), "INVALID_ARGUMENTS", "body");
        }
        // A kind that is not described is the service's to judge: documents leave kinds out.
        rig.sent("rest__api_post", &json!({ "body": { "kind": "Cow", "milk": 1 } }));
    }
}

#[test]
fn rst_2_any_of_is_any_of_them() {
    let any = json!({ "type": "object", "properties": { "x": { "anyOf": [{ "type": "string" }, { "type": "integer", "minimum": 5 }] } } });
    check(
        &input("3.0.3", &any, &json!({})),
        &[json!({ "x": "a" }), json!({ "x": 5 })],
        &[json!({ "x": 4 }), json!({ "x": [] })],
    );
}

#[test]
fn rst_2_nullable_takes_null() {
    let properties = json!({ "type": "object", "properties": {
        "text": { "type": "string", "nullable": true }, "strict": { "type": "string" },
        "word": { "type": "string", "nullable": true, "enum": ["a", "b", null] },
        "of": { "nullable": true, "allOf": [{ "$ref": "#/components/schemas/N" }] },
    } });
    let schema = input("3.0.3", &properties, &json!({ "N": { "type": "integer" } }));
    check(
        &schema,
        &[json!({ "text": null, "word": null, "of": null }), json!({ "text": "a", "word": "b", "of": 1 })],
        &[json!({ "strict": null }), json!({ "word": "c" }), json!({ "of": "x" })],
    );
    // Since 3.1 it is a type.
    let properties = json!({ "type": "object", "properties": { "text": { "type": ["string", "null"] }, "one": { "const": 1 }, "above": { "type": "number", "exclusiveMinimum": 0 } } });
    check(
        &input("3.1.0", &properties, &json!({})),
        &[json!({ "text": null, "one": 1, "above": 1 })],
        &[json!({ "text": 1 }), json!({ "one": 2 }), json!({ "above": 0 })],
    );
}

#[test]
fn rst_2_limits_of_the_older_versions_still_hold() {
    let properties = json!({ "type": "object", "properties": {
        "n": { "type": "integer", "minimum": 0, "exclusiveMinimum": true, "maximum": 10, "exclusiveMaximum": false },
        "list": { "type": "array", "items": { "type": "string" }, "maxItems": 2, "uniqueItems": true },
        "code": { "type": "string", "pattern": "^[A-Z]{2}$" },
    } });
    check(
        &input("3.0.3", &properties, &json!({})),
        &[json!({ "n": 10, "list": ["a", "b"], "code": "AB" })],
        &[json!({ "n": 0 }), json!({ "n": 11 }), json!({ "list": ["a", "a"] }), json!({ "code": "ab" })],
    );
}

#[test]
fn rst_2_what_only_the_service_sets_is_not_asked_for() {
    let properties = json!({ "type": "object", "required": ["id", "name"], "properties": {
        "id": { "type": "integer", "readOnly": true }, "name": { "type": "string" }, "password": { "type": "string", "writeOnly": true },
    } });
    check(
        &input("3.0.3", &properties, &json!({})),
        &[json!({ "name": "a", "password": "b" })],
        &[json!({}), json!({ "id": 1, "name": "a" })],
    );
}

/// An API that states what it answers.
fn stated() -> Rig {
    let pet = json!({ "type": "object", "required": ["name"], "properties": {
        "name": { "type": "string" }, "age": { "type": "integer" }, "password": { "type": "string", "writeOnly": true },
    } });
    let answers = |schema: Value| json!({ "200": { "description": "ok", "content": { "application/json": { "schema": schema } } } });
    let is = json!([{ "name": "is", "in": "query", "schema": { "type": "string" } }]);
    let get = |id: &str, schema: Value| {
        with(operation(id), &json!({ "parameters": is, "responses": answers(schema) }))
    };
    Rig::api(&document(&json!({
        "/json": { "get": get("pet", pet.clone()) },
        "/json/list": { "get": get("list", json!({ "type": "array", "items": pet })) },
        "/json/none": { "get": with(operation("none"), &json!({ "parameters": is })) },
    })))
}

#[test]
fn rst_2_what_an_api_states_about_answers_is_an_output_schema() {
    let rig = stated();
    let mut talk = Talk::legacy(rig.door());
    let listed = talk.result("tools/list", &json!({}))["tools"].take();
    let tool = |name: &str| {
        listed.as_array().expect("tools").iter().find(|tool| tool["name"] == name).expect("the tool").clone()
    };
    let schema = &tool("rest__api_pet")["outputSchema"];
    assert_eq!(schema["type"], "object", "MCP wants an object: {schema}");
    assert!(
        schema["properties"]["name"].is_object() && schema["properties"].get("password").is_none(),
        "{schema}"
    );
    assert_eq!(tool("rest__api_none").get("outputSchema"), None);
    let call = |talk: &mut Talk, tool: &str, is: &Value| {
        talk.result("tools/call", &json!({ "name": tool, "arguments": { "is": is.to_string() } }))
    };
    let pet = json!({ "name": "Rex", "age": 3 });
    let result = call(&mut talk, "rest__api_pet", &pet);
    assert_eq!(result["structuredContent"], pet, "{result}");
    assert_ne!(result["isError"], true);
    Schema::compile(schema).expect("a schema").check(&result["structuredContent"]).expect("it fits");
    // Clients refuse a success that lacks what was promised.
    let other = call(&mut talk, "rest__api_pet", &json!([1]));
    assert!(other["structuredContent"].is_null() && other["isError"] == true, "{other}");
    // A list has to be wrapped, or to be no structured content.
    let list = call(&mut talk, "rest__api_list", &json!([pet]));
    assert!(list["structuredContent"].is_null() || list["structuredContent"].is_object(), "{list}");
    if let Some(schema) = tool("rest__api_list").get("outputSchema") {
        Schema::compile(schema).expect("a schema").check(&list["structuredContent"]).expect("it fits");
    }
    assert!(list["content"].to_string().contains("Rex"), "{list}");
}

#[test]
fn rst_2_an_answer_that_is_not_what_the_api_states_still_arrives() {
    let rig = stated();
    for is in [
        json!({ "name": null, "more": 1 }),
        json!({ "nome": "Rex" }),
        json!([1]),
        json!("text"),
        json!({ "name": "a", "age": "old" }),
    ] {
        let result = rig.result("rest__api_pet", &json!({ "is": is.to_string() }));
        assert_eq!(result, is);
    }
}
