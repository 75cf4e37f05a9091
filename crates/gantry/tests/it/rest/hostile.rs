//! Documents that mean harm: they are refused, or cost no more than they may.

use super::{Rig, document, home, inspect_with, operation, with};
use gantry_testkit::{CommandOutput, Echo, TestDir};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Memory that a document may cost, all in all.
const MEMORY: u64 = 1 << 30;

/// What is made of a document, which comes to an end and takes no more memory than it may.
#[track_caller]
fn bounded(name: &str, text: &str) -> CommandOutput {
    let home = TestDir::new();
    home.write(name, text);
    // A limit that the system keeps: a program that takes more cannot go on.
    let command = format!("ulimit -d {} && exec \"$0\" openapi inspect \"$1\" --json", MEMORY / 1024);
    let mut shell = std::process::Command::new("sh");
    let output = shell
        .args(["-c", &command])
        .arg(home.executable())
        .arg(name)
        .current_dir(home.path())
        .output()
        .expect("it runs");
    let ran = CommandOutput {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8"),
    };
    let start = |text: &str| text.chars().take(500).collect::<String>();
    assert!(matches!(ran.code, 0 | 1), "{} {} {}", ran.code, start(&ran.stdout), start(&ran.stderr));
    if ran.code == 1 {
        assert!(
            ran.stderr.len() + ran.stdout.len() < 20_000 && !format!("{ran:?}").contains("panicked"),
            "{}",
            start(&ran.stderr)
        );
    }
    ran
}

fn with_server(document: Value) -> Value {
    with(document, &json!({ "servers": [{ "url": "https://api.example.com" }] }))
}

/// An operation whose body is this schema, in a document with these schemas.
fn with_schema(schema: &Value, schemas: &Value) -> Value {
    let body = json!({ "content": { "application/json": { "schema": schema } } });
    let paths = json!({
        "/evil": { "post": with(operation("evil"), &json!({ "requestBody": body, "responses": { "200": with(json!({ "description": "ok" }), &body) } })) },
        "/good": { "get": operation("good") },
    });
    with_server(with(document(&paths), &json!({ "components": { "schemas": schemas } })))
}

/// That the good operation beside is a tool, and what became of the document.
#[track_caller]
fn with_the_good_one(ran: &CommandOutput) -> Value {
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let report = ran.json();
    assert!(
        report["tools"].as_array().expect("tools").iter().any(|tool| tool["path"] == "/good"),
        "{}",
        report["skipped"]
    );
    for tool in report["tools"].as_array().expect("tools") {
        assert!(
            tool["inputSchema"].to_string().len() <= 160 * 1024,
            "the schema of {} is bounded",
            tool["name"]
        );
    }
    report
}

#[test]
fn rst_2_laughing_schemas_are_bounded() {
    // Each refers to the next one ten times: 10^12 nodes if they were put in.
    for keyword in ["allOf", "anyOf", "oneOf", "properties"] {
        let mut schemas = json!({ "L12": { "type": "string" } });
        for level in 0..12 {
            let next = json!({ "$ref": format!("#/components/schemas/L{}", level + 1) });
            schemas[format!("L{level}")] = match keyword {
                "properties" => {
                    json!({ "type": "object", "properties": (0..10).map(|n| (format!("p{n}"), next.clone())).collect::<serde_json::Map<_, _>>() })
                }
                _ => json!({ keyword: vec![next; 10] }),
            };
        }
        with_the_good_one(&bounded(
            "api.json",
            &with_schema(&json!({ "$ref": "#/components/schemas/L0" }), &schemas).to_string(),
        ));
    }
}

#[test]
fn rst_2_laughing_yaml_is_refused() {
    let mut yaml = String::from(
        "openapi: 3.0.3\ninfo: {title: t, version: '1'}\npaths: {}\nx-a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha, ha]\n",
    );
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        writeln!(yaml, "x-a{level}: &a{level} [{aliases}]").expect("a text");
    }
    assert_eq!(bounded("api.yaml", &yaml).code, 1);
}

#[test]
fn rst_2_circles_of_every_kind_come_to_an_end() {
    let reference = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let schemas = json!({
        "A": { "allOf": [reference("B"), { "properties": { "a": reference("A") } }] },
        "B": { "allOf": [reference("A")], "oneOf": [reference("C")] },
        "C": { "$ref": "#/components/schemas/D" }, "D": { "$ref": "#/components/schemas/C" },
        "E": { "$ref": "#" }, "F": { "$ref": "#/components/schemas/F/properties/x", "properties": { "x": reference("F") } },
        "G": { "items": { "items": { "items": reference("G") } }, "not": reference("G"), "additionalProperties": reference("A") },
    });
    for name in ["A", "B", "C", "D", "E", "F", "G"] {
        with_the_good_one(&bounded("api.json", &with_schema(&reference(name), &schemas).to_string()));
    }
    let paths = json!({
        "/good": { "get": operation("good") },
        "/a": { "$ref": "#/paths/~1b" }, "/b": { "$ref": "#/paths/~1a" }, "/self": { "$ref": "#/paths/~1self" },
        "/p": { "get": with(operation("p"), &json!({ "parameters": [{ "$ref": "#/paths/~1p/get/parameters/0" }], "requestBody": { "$ref": "#/paths/~1p/get/requestBody" } })) },
    });
    with_the_good_one(&bounded("api.json", &with_server(document(&paths)).to_string()));
}

#[test]
fn rst_2_depth_is_bounded() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = format!("{}1{}", open.repeat(200_000), close.repeat(200_000));
        let text = format!("{{\"openapi\":\"3.0.3\",\"info\":{{}},\"paths\":{{}},\"x\":{deep}}}");
        assert_eq!(bounded("api.json", &text).code, 1);
        assert_eq!(bounded("api.yaml", &text).code, 1);
    }
    // As deep as JSON may be, in a schema.
    let mut schema = json!({ "type": "string" });
    for _ in 0..50 {
        schema = json!({ "type": "object", "properties": { "x": schema } });
    }
    with_the_good_one(&bounded("api.json", &with_schema(&schema, &json!({})).to_string()));
}

#[test]
fn rst_2_a_document_of_100_mb_is_refused() {
    let text = format!(
        "{{\"openapi\":\"3.0.3\",\"info\":{{}},\"paths\":{{}},\"x\":\"{}\"}}",
        "x".repeat(100_000_000)
    );
    let ran = bounded("api.json", &text);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("bytes"), "{}", ran.stderr);
}

#[test]
fn rst_2_a_document_by_url_of_100_mb_is_refused() {
    let echo = Echo::start();
    let home = home(&json!({}));
    let ran = inspect_with(&home, &echo.url("/large?bytes=100000000"), &[]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.len() < 2000, "{}", ran.stderr);
}

#[test]
fn rst_2_a_document_of_millions_of_values_is_refused() {
    // Few bytes each, and far more memory.
    let values = r#"{"a":1},"#.repeat(1_600_000);
    let text = format!(r#"{{"openapi":"3.0.3","info":{{}},"paths":{{}},"x":[{values}1]}}"#);
    let ran = bounded("api.json", &text);
    assert!(ran.code == 1 && ran.stderr.contains("more than 3000000 values"), "{}", ran.stderr);
}

#[test]
fn rst_3_every_operation_of_a_very_large_api_is_a_tool() {
    const OPERATIONS: usize = 22_500;
    let mut paths = json!({});
    for n in 0..OPERATIONS {
        let id = json!([{ "in": "path", "name": "id", "required": true, "schema": { "type": "integer" } }]);
        paths[format!("/p{n}/{{id}}")] =
            json!({ "get": with(operation(&format!("get{n}")), &json!({ "parameters": id })) });
    }
    let rig = Rig::api(&document(&paths));
    assert_eq!(rig.tools().len(), OPERATIONS);
    let last = format!("rest__api_get{}", OPERATIONS - 1);
    assert_eq!(rig.sent(&last, &json!({ "id": 7 }))["path"], format!("/p{}/7", OPERATIONS - 1));
    // Their schemas are compiled when they are first called, and hold all the same.
    rig.refused(&last, &json!({ "id": "x" }), "INVALID_ARGUMENTS", "id");
    rig.refused(&last, &json!({ "id": 7, "more": 1 }), "INVALID_ARGUMENTS", "more");
}

#[test]
fn rst_2_an_operation_may_have_as_many_parameters_as_the_largest_public_one() {
    let parameter = |n| json!({ "name": format!("p{n}"), "in": "query", "schema": { "type": "string" } });
    let of = |count: usize| json!({ "parameters": (0..count).map(parameter).collect::<Vec<Value>>() });
    let paths = json!({
        "/many": { "get": with(operation("many"), &of(1000)) }, "/more": { "get": with(operation("more"), &of(1001)) },
    });
    let report = bounded("api.json", &with_server(document(&paths)).to_string()).json();
    let tools = report["tools"].as_array().expect("tools");
    assert_eq!(tools.len(), 1);
    assert_eq!(tools[0]["inputSchema"]["properties"].as_object().expect("properties").len(), 1000);
    assert_eq!(report["skipped"][0]["reason"], "it has more than 1000 parameters");
}

#[test]
fn rst_2_many_of_anything_are_bounded() {
    let mut paths = json!({});
    for n in 0..30_000 {
        paths[format!("/p{n}")] = json!({ "get": { "responses": {} } });
    }
    let ran = bounded("api.json", &with_server(document(&paths)).to_string());
    if ran.code == 0 {
        let report = ran.json();
        assert!(report["tools"].as_array().expect("tools").len() <= 25_000);
        assert!(report["skipped"].as_array().expect("skipped").len() <= 10_000);
    }
    let parameters: Vec<Value> = (0..20_000)
        .map(|n| json!({ "name": format!("p{n}"), "in": "query", "schema": { "type": "string" } }))
        .collect();
    let paths = json!({ "/good": { "get": operation("good") }, "/evil": { "get": with(operation("evil"), &json!({ "parameters": parameters })) } });
    with_the_good_one(&bounded("api.json", &with_server(document(&paths)).to_string()));
    let properties: serde_json::Map<_, _> = (0..50_000)
        .map(|n| (format!("p{n}"), json!({ "type": "string", "description": "x".repeat(100) })))
        .collect();
    with_the_good_one(&bounded(
        "api.json",
        &with_schema(&json!({ "type": "object", "properties": properties }), &json!({})).to_string(),
    ));
}

#[test]
fn rst_2_patterns_that_never_end_do_not_stop_the_others() {
    let schemas = json!({ "A": { "type": "object", "properties": {
        "slow": { "type": "string", "pattern": "^(a+)+$" }, "broken": { "type": "string", "pattern": "([" },
        "bomb": { "type": "string", "pattern": "((a{1000}){1000}){1000}" }, "java": { "type": "string", "pattern": "^\\p{IsAlpha}++$" },
    } } });
    with_the_good_one(&bounded(
        "api.json",
        &with_schema(&json!({ "$ref": "#/components/schemas/A" }), &schemas).to_string(),
    ));
}

#[test]
fn rst_2_nonsense_is_refused_with_words() {
    for (text, words) in [
        ("", ""),
        ("null", ""),
        ("[]", ""),
        ("hello", ""),
        ("{}", ""),
        ("{\"openapi\": \"9.0.0\", \"paths\": {}}", "9.0.0"),
        ("{\"swagger\": \"1.2\", \"paths\": {}}", "1.2"),
        ("\u{feff}", ""),
        ("%PDF-1.7", ""),
    ] {
        let ran = bounded("api.json", text);
        assert!(
            ran.code == 1 && ran.stderr.contains("api.json") && ran.stderr.contains(words),
            "{text:?}: {ran:?}"
        );
    }
    let ran = inspect_with(&TestDir::new(), "nowhere.json", &[]);
    assert!(ran.code == 2 && ran.stderr.contains("nowhere.json"), "{ran:?}");
    // A folder, a pipe: neither is read for ever.
    let home = TestDir::new();
    let made = std::process::Command::new("mkfifo").arg(home.path().join("pipe.json")).status();
    assert!(made.expect("mkfifo runs").success());
    for name in ["pipe.json", "."] {
        assert_ne!(inspect_with(&home, name, &[]).code, 0, "{name}");
    }
}

#[test]
fn rst_2_texts_of_a_document_do_not_reach_the_terminal_raw() {
    let evil = "\u{1b}]0;evil\u{7}\u{1b}[2J";
    let paths = json!({ format!("/good{evil}"): { "get": with(operation(&format!("o{evil}p")), &json!({ "summary": evil, "description": evil })) } });
    let home = TestDir::new();
    home.write(
        "api.json",
        &with_server(with(document(&paths), &json!({ "info": { "title": evil, "version": evil } })))
            .to_string(),
    );
    let ran = home.run(["openapi", "inspect", "api.json"]);
    assert!(!ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'), "{ran:?}");
}
