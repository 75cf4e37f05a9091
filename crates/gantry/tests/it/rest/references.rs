//! References: to other files, to other documents of the same origin, in circles, and to where they must not lead.

use super::{Rig, document, home, inspect, inspect_with, operation, tool_at, with};
use gantry_core::schema::Schema;
use gantry_testkit::{Echo, TestDir};
use serde_json::{Value, json};

/// An API in several files, whose schemas refer to each other across them.
fn write_files(home: &TestDir, server: &str) {
    home.write(
        "spec/api.yaml",
        &format!(
            "openapi: 3.0.3\ninfo: {{ title: Files, version: '1' }}\nservers: [{{ url: '{server}' }}]\n\
             paths:\n  /pets/{{petId}}:\n    $ref: './paths/pet.yaml'\n  /pets:\n    $ref: 'paths/pets.yaml#/pets'\n"
        ),
    );
    home.write(
        "spec/paths/pet.yaml",
        "parameters:\n  - $ref: '../common.yaml#/parameters/petId'\nget:\n  operationId: getPet\n  responses:\n    '200':\n      \
         $ref: '../common.yaml#/responses/pet'\n",
    );
    home.write(
        "spec/paths/pets.yaml",
        "pets:\n  post:\n    operationId: createPet\n    requestBody: { $ref: '../common.yaml#/bodies/pet' }\n    responses: {}\n",
    );
    home.write(
        "spec/common.yaml",
        "parameters:\n  petId: { name: petId, in: path, required: true, schema: { type: integer } }\n\
         responses:\n  pet: { description: ok, content: { application/json: { schema: { $ref: 'schemas/pet.json' } } } }\n\
         bodies:\n  pet: { required: true, content: { application/json: { schema: { $ref: 'schemas/pet.json' } } } }\n",
    );
    home.write(
        "spec/schemas/pet.json",
        &json!({ "type": "object", "required": ["name"], "properties": {
            "name": { "type": "string" }, "owner": { "$ref": "owner.json#/definitions/Owner" }, "a~b/c": { "$ref": "owner.json#/definitions/a~0b~1c" },
        } })
        .to_string(),
    );
    home.write(
        "spec/schemas/owner.json",
        &json!({ "definitions": {
            "Owner": { "type": "object", "properties": { "pets": { "type": "array", "items": { "$ref": "pet.json" } } } },
            "a~b/c": { "type": "integer" },
        } })
        .to_string(),
    );
}

#[test]
fn rst_2_references_lead_to_other_files_and_back() {
    let echo = Echo::start();
    let home = home(&json!({ "openapiSpecs": { "api": { "spec": "spec/api.yaml" } } }));
    write_files(&home, &echo.url(""));
    let rig = Rig::at(echo, home);
    assert_eq!(rig.tools(), ["rest__api_createPet", "rest__api_getPet"]);
    assert_eq!(rig.sent("rest__api_getPet", &json!({ "petId": 7 }))["path"], "/pets/7");
    // Names that no model interface takes are spelled otherwise for the model, and as they are for the service.
    let owner = json!({ "pets": [{ "name": "b", "owner": { "pets": [] } }] });
    let sent = rig.sent("rest__api_createPet", &json!({ "name": "a", "owner": owner, "a_b_c": 1 }));
    let body: Value = serde_json::from_str(sent["body"]["text"].as_str().expect("text")).expect("JSON");
    assert_eq!(body, json!({ "name": "a", "owner": owner, "a~b/c": 1 }));
    rig.refused("rest__api_createPet", &json!({ "owner": {} }), "INVALID_ARGUMENTS", "name");
    rig.refused("rest__api_createPet", &json!({ "name": "a", "a_b_c": "x" }), "INVALID_ARGUMENTS", "a_b_c");
}

#[test]
fn rst_2_references_lead_to_other_documents_of_the_same_origin_only() {
    let other = Echo::start();
    let elsewhere = other.document(
        "common.json",
        "application/json",
        &json!({ "id": { "type": "integer" } }).to_string(),
    );
    let rig = Rig::of(|echo| {
        let id = |reference: &str| json!({ "name": "id", "in": "query", "schema": { "$ref": reference } });
        let document = document(&json!({
            "/near": { "get": with(operation("near"), &json!({ "parameters": [id("common.json#/id")] })) },
            "/far": { "get": with(operation("far"), &json!({ "parameters": [id(&format!("{elsewhere}#/id"))] })) },
            "/file": { "get": with(operation("file"), &json!({ "parameters": [id("file:///etc/passwd#/id")] })) },
        }));
        let document = with(document, &json!({ "servers": [{ "url": echo.url("") }] }));
        echo.document("common.json", "application/json", &json!({ "id": { "type": "integer" } }).to_string());
        let url = echo.document("api.json", "application/json", &document.to_string());
        json!({ "openapiSpecs": { "api": { "spec": url } } })
    });
    rig.server.eventually("the document is read", || !rig.tools().is_empty());
    assert_eq!(rig.sent("rest__api_near", &json!({ "id": 1 }))["query"], "id=1");
    rig.refused("rest__api_near", &json!({ "id": "x" }), "INVALID_ARGUMENTS", "id");
    assert!(other.requests().is_empty(), "nobody else is asked");
    assert!(rig.echo.requests().iter().all(|request| request["path"] != "/etc/passwd"));
}

#[test]
fn rst_2_what_stands_beside_the_reference_of_a_path_is_ignored() {
    let parameter = |place: &str, name: &str, kind: &str| json!({ "in": place, "name": name, "required": place == "path", "schema": { "type": kind } });
    let mut document = document(&json!({ "/a/{id}": {
        "$ref": "#/components/pathItems/a", "post": operation("post"),
        "parameters": [parameter("query", "page", "boolean"), parameter("header", "X-Tenant", "string")],
    } }));
    document["components"] = json!({ "pathItems": { "a": {
        "get": operation("get"),
        "parameters": [parameter("path", "id", "integer"), parameter("query", "page", "integer")],
    } } });
    let rig = Rig::api(&document);
    assert_eq!(rig.tools(), ["rest__api_get"]);
    let sent = rig.sent("rest__api_get", &json!({ "id": 7, "page": 2 }));
    assert_eq!((&sent["path"], &sent["query"]), (&json!("/a/7"), &json!("page=2")), "{sent}");
    rig.refused("rest__api_get", &json!({ "id": 7, "X-Tenant": "me" }), "INVALID_ARGUMENTS", "X-Tenant");
}

#[test]
fn rst_2_a_reference_by_a_name_costs_its_operation_and_fetches_nothing() {
    let other = Echo::start();
    let elsewhere = other.document("toy.json", "application/json", &json!({ "type": "integer" }).to_string());
    let base = elsewhere.trim_end_matches("toy.json");
    let toy = |reference: &str| json!({ "$id": format!("{base}pet.json"), "type": "object", "properties": { "toy": { "$ref": reference } } });
    let schemas = json!({
        "Toy": { "$id": elsewhere, "$anchor": "toy", "type": "object", "properties": { "wheels": { "type": "integer" } } },
        "Path": toy("#/components/schemas/Toy"), "Anchor": toy("#toy"), "Name": toy("Toy"), "Id": toy(&elsewhere),
        "Below": toy("not-there.json"),
    });
    let mut paths = json!({});
    for name in ["Path", "Anchor", "Name", "Id", "Below"] {
        let schema = json!({ "$ref": format!("#/components/schemas/{name}") });
        let body = json!({ "requestBody": { "required": true, "content": { "application/json": { "schema": schema } } } });
        paths[format!("/{name}")] = json!({ "post": with(operation(name), &body) });
    }
    let rig = Rig::api(&with(
        document(&paths),
        &json!({ "openapi": "3.1.0", "components": { "schemas": schemas } }),
    ));
    assert_eq!(rig.tools(), ["rest__api_Path"]);
    let good = json!({ "toy": { "wheels": 4 } });
    let sent = rig.sent("rest__api_Path", &good);
    assert_eq!(
        serde_json::from_str::<Value>(sent["body"]["text"].as_str().expect("text")).expect("JSON"),
        good
    );
    rig.refused("rest__api_Path", &json!({ "toy": { "wheels": "x" } }), "INVALID_ARGUMENTS", "wheels");
    assert!(other.requests().is_empty(), "nothing is fetched for an $id");
}

#[test]
fn rst_2_references_do_not_leave_the_folder_of_the_document() {
    let home = TestDir::new();
    home.write("secret.json", &json!({ "type": "object", "properties": { "S3CRET": {} } }).to_string());
    std::os::unix::fs::symlink(home.path().join("secret.json"), home.path().join("link.json"))
        .expect("a link");
    home.write("spec/here.json", &json!({ "type": "integer" }).to_string());
    std::fs::create_dir_all(home.path().join("spec")).expect("a folder");
    std::os::unix::fs::symlink(home.path().join("secret.json"), home.path().join("spec/link.json"))
        .expect("a link");
    let absolute = home.path().join("secret.json").display().to_string();
    let references = [
        "../secret.json",
        "..%2fsecret.json",
        "./../secret.json",
        "x/../../secret.json",
        "link.json",
        &absolute,
        "file:///etc/passwd",
        "http://127.0.0.1:1/x.json",
        "https://example.com/x.json",
        "//example.com/x.json",
    ];
    let mut paths = json!({ "/good": { "get": with(operation("good"), &json!({ "parameters": [
        { "name": "a", "in": "query", "schema": { "$ref": "here.json" } },
    ] })) } });
    for (n, reference) in references.iter().enumerate() {
        paths[format!("/item{n}")] = json!({ "$ref": reference });
        paths[format!("/param{n}")] = json!({ "get": with(operation(&format!("param{n}")), &json!({ "parameters": [{ "$ref": reference }] })) });
    }
    let document = with(document(&paths), &json!({ "servers": [{ "url": "https://api.example.com" }] }));
    home.write("spec/api.json", &document.to_string());
    let ran = inspect_with(&home, "spec/api.json", &[]);
    assert!(!format!("{ran:?}").contains("S3CRET") && !format!("{ran:?}").contains("root:x"), "{ran:?}");
    let report = ran.json();
    assert_eq!(
        tool_at(&report, "get", "/good")["name"].as_str().map(|name| name.ends_with("good")),
        Some(true)
    );
    for (n, reference) in references.iter().enumerate() {
        let skipped = report["skipped"].as_array().expect("a list").iter();
        let reason = skipped.clone().find(|skipped| skipped["path"] == format!("/param{n}"));
        let reason = reason.unwrap_or_else(|| panic!("{reference} was not skipped: {report}"));
        assert!(reason["reason"].as_str().is_some_and(|reason| reason.len() > 10), "{reason}");
    }
}

#[test]
fn rst_2_schemas_in_circles_can_be_used() {
    let home = TestDir::new();
    let node = json!({ "type": "object", "required": ["name"], "properties": {
        "name": { "type": "string" },
        "children": { "type": "array", "items": { "$ref": "#/components/schemas/Node" } },
        "parent": { "$ref": "#/components/schemas/Node" },
        "other": { "allOf": [{ "$ref": "#/components/schemas/Other" }] },
        "map": { "type": "object", "additionalProperties": { "$ref": "#/components/schemas/Node" } },
    } });
    let body = json!({ "required": true, "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Node" } } } });
    let mut document = document(&json!({
        "/nodes": { "post": with(operation("create"), &json!({ "requestBody": body, "responses": { "200": with(json!({ "description": "ok" }), &body) } })) },
        "/loop": { "get": with(operation("loop"), &json!({ "parameters": [{ "$ref": "#/components/parameters/A" }] })) },
        "/self": { "get": with(operation("self"), &json!({ "parameters": [{ "name": "x", "in": "query", "schema": { "$ref": "#/components/schemas/Self" } }] })) },
    }));
    document["servers"] = json!([{ "url": "https://api.example.com" }]);
    document["components"] = json!({
        "schemas": {
            "Node": node,
            "Other": { "oneOf": [{ "$ref": "#/components/schemas/Node" }, { "type": "null" }] },
            "Self": { "$ref": "#/components/schemas/Self" },
        },
        "parameters": { "A": { "$ref": "#/components/parameters/B" }, "B": { "$ref": "#/components/parameters/A" } },
    });
    home.write("api.json", &document.to_string());
    let report = inspect(&home, "api.json");
    let input = &tool_at(&report, "post", "/nodes")["inputSchema"];
    let schema = Schema::compile(input).unwrap_or_else(|error| panic!("{error}: {input}"));
    schema
        .check(
            &json!({ "name": "a", "children": [{ "name": "b", "children": [] }], "parent": { "name": "c" } }),
        )
        .expect("it fits");
    assert!(
        schema.check(&json!({ "name": "a", "children": [{ "nome": 1 }] })).is_err(),
        "what is inside is still judged: {input}"
    );
    assert!(input.to_string().len() < 100_000, "bounded");
    // A parameter that is only ever another one is none; it costs its own operation.
    let skipped = report["skipped"].to_string();
    assert!(skipped.contains("/loop"), "{report}");
}
