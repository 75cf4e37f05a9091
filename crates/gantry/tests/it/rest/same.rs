//! The same API in other words: Swagger 2.0 beside 3.0, YAML beside JSON. Both mean the same.

use super::{Rig, home, inspect};
use gantry_testkit::{Echo, TestDir};
use serde_json::{Value, json};

fn list(of: &str) -> Value {
    json!({ "type": "array", "items": { "type": of } })
}

fn three(server: &str) -> Value {
    let query = |name: &str, style: &str, explode: bool| json!({ "name": name, "in": "query", "style": style, "explode": explode, "schema": list("string") });
    let pet = json!({ "$ref": "#/components/schemas/Pet" });
    let ok = json!({ "200": { "description": "ok", "content": { "application/json": { "schema": pet } } } });
    json!({
        "openapi": "3.0.3", "info": { "title": "Pets", "version": "1" }, "servers": [{ "url": format!("{server}/v1") }],
        "security": [{ "key": [] }],
        "paths": {
            "/pets": {
                "get": { "operationId": "list", "tags": ["pets"], "responses": ok, "parameters": [
                    query("csv", "form", false), query("multi", "form", true),
                    { "name": "limit", "in": "query", "schema": { "type": "integer", "default": 10 } },
                    { "name": "X-Trace", "in": "header", "schema": list("string") },
                ] },
                "post": { "operationId": "create", "responses": ok,
                          "requestBody": { "required": true, "content": { "application/json": { "schema": pet } } } },
            },
            "/pets/{petId}": {
                "parameters": [{ "name": "petId", "in": "path", "required": true, "schema": { "type": "integer", "format": "int64" } }],
                "delete": { "operationId": "remove", "responses": { "204": { "description": "gone" } } },
                "put": { "operationId": "form", "responses": ok, "requestBody": { "required": true, "content": { "application/x-www-form-urlencoded": {
                    "schema": { "type": "object", "required": ["name"], "properties": { "name": { "type": "string" }, "tags": list("string") } },
                    "encoding": { "tags": { "style": "form", "explode": true } },
                } } } },
                "post": { "operationId": "upload", "responses": ok, "requestBody": { "content": { "multipart/form-data": {
                    "schema": { "type": "object", "properties": { "note": { "type": "string" }, "photo": { "type": "string", "format": "binary" } } },
                } } } },
            },
        },
        "components": {
            "schemas": { "Pet": { "type": "object", "required": ["name"], "properties": {
                "id": { "type": "integer", "readOnly": true }, "name": { "type": "string" }, "nick": { "type": "string", "nullable": true },
            } } },
            "securitySchemes": { "key": { "type": "apiKey", "in": "header", "name": "X-Key" } },
        },
    })
}

fn two(host: &str) -> Value {
    let query = |name: &str, format: &str| json!({ "name": name, "in": "query", "type": "array", "items": { "type": "string" }, "collectionFormat": format });
    let pet = json!({ "$ref": "#/definitions/Pet" });
    let ok = json!({ "200": { "description": "ok", "schema": pet } });
    json!({
        "swagger": "2.0", "info": { "title": "Pets", "version": "1" }, "host": host, "basePath": "/v1", "schemes": ["http"],
        "consumes": ["application/json"], "produces": ["application/json"], "security": [{ "key": [] }],
        "paths": {
            "/pets": {
                "get": { "operationId": "list", "tags": ["pets"], "responses": ok, "parameters": [
                    query("csv", "csv"), query("multi", "multi"),
                    { "name": "limit", "in": "query", "type": "integer", "default": 10 },
                    { "name": "X-Trace", "in": "header", "type": "array", "items": { "type": "string" } },
                ] },
                "post": { "operationId": "create", "responses": ok,
                          "parameters": [{ "name": "pet", "in": "body", "required": true, "schema": pet }] },
            },
            "/pets/{petId}": {
                "parameters": [{ "name": "petId", "in": "path", "required": true, "type": "integer", "format": "int64" }],
                "delete": { "operationId": "remove", "responses": { "204": { "description": "gone" } } },
                "put": { "operationId": "form", "responses": ok, "consumes": ["application/x-www-form-urlencoded"], "parameters": [
                    { "name": "name", "in": "formData", "type": "string", "required": true },
                    { "name": "tags", "in": "formData", "type": "array", "items": { "type": "string" }, "collectionFormat": "multi" },
                ] },
                "post": { "operationId": "upload", "responses": ok, "consumes": ["multipart/form-data"], "parameters": [
                    { "name": "note", "in": "formData", "type": "string" }, { "name": "photo", "in": "formData", "type": "file" },
                ] },
            },
        },
        "definitions": { "Pet": { "type": "object", "required": ["name"], "properties": {
            "id": { "type": "integer", "readOnly": true }, "name": { "type": "string" }, "nick": { "type": "string", "x-nullable": true },
        } } },
        "securityDefinitions": { "key": { "type": "apiKey", "in": "header", "name": "X-Key" } },
    })
}

/// A request without what differs between two equal ones: the boundary of its parts.
fn lasting(mut request: Value) -> Value {
    let media = request["headers"]["content-type"][0].as_str().unwrap_or_default().to_owned();
    if media.starts_with("multipart/") {
        request["headers"]["content-type"] = "multipart".into();
        request["headers"]["content-length"].take();
        request["body"]["text"].take();
        request["body"]["bytes"].take();
    }
    request
}

#[test]
fn rst_2_swagger_2_sends_what_openapi_3_sends() {
    let echo = Echo::start();
    let entry = |file: &str| json!({ "spec": file, "auth": { "key": { "apiKey": "s3cret" } } });
    let home = home(&json!({ "openapiSpecs": { "two": entry("two.json"), "three": entry("three.json") } }));
    home.write("two.json", &two(&echo.address.to_string()).to_string());
    home.write("three.json", &three(&echo.url("")).to_string());
    let rig = Rig::at(echo, home);
    let words = json!(["a,b", "c d", "e|f"]);
    let calls = [
        ("list", json!({ "csv": words, "multi": words, "limit": 3, "X-Trace": ["t", "u"] })),
        ("list", json!({})),
        ("create", json!({ "name": "Rex", "nick": null })),
        ("form", json!({ "petId": 1, "name": "Rex & co", "tags": ["a", "b"] })),
        (
            "upload",
            json!({ "petId": 2, "note": "é", "photo": { "content": "AAEC", "encoding": "base64", "filename": "p.bin" } }),
        ),
    ];
    for (operation, arguments) in &calls {
        let three = lasting(rig.sent(&format!("rest__three_{operation}"), arguments));
        let two = lasting(rig.sent(&format!("rest__two_{operation}"), arguments));
        assert_eq!(two, three, "{operation} {arguments}");
    }
    let sent = rig.sent("rest__two_list", &calls[0].1);
    let query = "csv=a%2Cb,c%20d,e%7Cf&multi=a%2Cb&multi=c%20d&multi=e%7Cf&limit=3";
    assert_eq!((&sent["path"], &sent["query"]), (&json!("/v1/pets"), &json!(query)), "{sent}");
    assert_eq!(sent["headers"]["x-trace"], json!(["t,u"]));
    assert_eq!(sent["headers"]["x-key"], json!(["s3cret"]));
    // What only the service sets is nothing that is asked for.
    rig.refused("rest__two_create", &json!({ "name": "Rex", "id": 1 }), "INVALID_ARGUMENTS", "id");
}

#[test]
fn rst_2_swagger_2_and_openapi_3_are_the_same_tools() {
    let home = TestDir::new();
    home.write("two.json", &two("api.example.com").to_string());
    home.write("three.json", &three("http://api.example.com").to_string());
    let (two, three) = (inspect(&home, "two.json"), inspect(&home, "three.json"));
    let shape = |report: &Value| -> Vec<Value> {
        let tools = report["tools"].as_array().expect("tools").iter();
        tools
            .map(|tool| {
                json!([
                    tool["method"],
                    tool["path"],
                    tool["inputSchema"]["properties"]
                        .as_object()
                        .map(|all| all.keys().cloned().collect::<Vec<_>>()),
                    tool["inputSchema"]["required"]
                ])
            })
            .collect()
    };
    assert_eq!(shape(&two), shape(&three));
    assert_eq!(two["counts"], three["counts"]);
}

#[test]
fn rst_2_yaml_and_json_are_the_same_tools() {
    let home = TestDir::new();
    home.write(
        "api.yaml",
        "openapi: 3.0.3\ninfo: {title: Yaml, version: 1.0}\nservers:\n- url: https://api.example.com\npaths:\n  /a/{id}:\n    get:\n      \
         operationId: get\n      summary: >-\n        folded\n        text\n      parameters:\n      - &id\n        name: id\n        in: path\n        required: true\n        \
         schema: {type: string, enum: [no, on, off, y, '1', 2024-01-01, 1_000]}\n      responses:\n        200: {description: ok}\n    \
         delete:\n      operationId: remove\n      parameters: [*id]\n      responses:\n        default: {description: ok}\n",
    );
    let id = json!({ "name": "id", "in": "path", "required": true,
                     "schema": { "type": "string", "enum": ["no", "on", "off", "y", "1", "2024-01-01", "1_000"] } });
    home.write(
        "api.json",
        &json!({
            "openapi": "3.0.3", "info": { "title": "Yaml", "version": "1.0" }, "servers": [{ "url": "https://api.example.com" }],
            "paths": { "/a/{id}": {
                "get": { "operationId": "get", "summary": "folded text", "parameters": [id], "responses": { "200": { "description": "ok" } } },
                "delete": { "operationId": "remove", "parameters": [id], "responses": { "default": { "description": "ok" } } },
            } },
        })
        .to_string(),
    );
    let (yaml, json) = (inspect(&home, "api.yaml"), inspect(&home, "api.json"));
    // Names begin with the id, which is that of the file in both cases.
    assert_eq!(yaml["tools"], json["tools"]);
    assert_eq!(yaml["tools"].as_array().map(Vec::len), Some(2));
}
