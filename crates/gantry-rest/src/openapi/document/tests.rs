//! Tests of the documents.

mod hostile;

use super::{Bundle, Version};
use serde_json::{Value, json};
use std::fmt::Write as _;
use url::Url;

const FILE: &str = "file:///specs/api/openapi.yaml";
const WEB: &str = "https://api.example.com/v1/openapi.json";

fn url(text: &str) -> Url {
    Url::parse(text).expect("it is an address")
}

/// A document at a place, alone.
#[track_caller]
fn open(location: &str, text: &str) -> Bundle {
    Bundle::open(url(location), text.as_bytes()).expect("it can be used")
}

#[track_caller]
fn refused(text: &[u8]) -> String {
    Bundle::open(url(FILE), text).expect_err("it cannot be used")
}

/// A specification with these references, under `refs`.
fn referring(location: &str, references: &[&str]) -> Bundle {
    let references: Vec<Value> = references.iter().map(|reference| json!({"$ref": reference})).collect();
    open(location, &json!({"openapi": "3.0.3", "refs": references}).to_string())
}

fn wanted(bundle: &Bundle) -> Vec<String> {
    bundle.wanted().iter().map(Url::to_string).collect()
}

#[track_caller]
fn found(bundle: &Bundle, document: usize, reference: &str) -> Value {
    bundle.find(document, reference).expect("it is there").value.clone()
}

#[track_caller]
fn lost(bundle: &Bundle, document: usize, reference: &str) -> String {
    bundle.find(document, reference).map(|node| node.value.clone()).expect_err("it is not there")
}

#[test]
fn rst_2_versions_are_distinguished_in_json_and_yaml() {
    let cases = [
        (r#"{"swagger": "2.0"}"#, Version::V2),
        ("swagger: 2.0", Version::V2),
        ("swagger: '2.0'", Version::V2),
        (r#"{"openapi": "3.0.3"}"#, Version::V3),
        ("openapi: 3.0.0-rc2", Version::V3),
        ("openapi: 3.0", Version::V3),
        ("openapi: 3.1.0", Version::V31),
        ("openapi: 3.1", Version::V31),
        ("openapi: 3.2.0", Version::V31),
        ("\u{feff}openapi: 3.1.0", Version::V31),
        (" \n {openapi: 3.0.1, /x: [1, 2,], } # flow style", Version::V3),
    ];
    for (text, version) in cases {
        assert_eq!(open(FILE, text).version, version, "{text}");
    }
}

#[test]
fn what_is_no_openapi_is_named() {
    let cases: [(&str, &str); 17] = [
        ("", "it is empty"),
        (" \n\t", "it is empty"),
        ("[1, 2]", "it has a list at its top, where an OpenAPI document has an object"),
        ("- openapi: 3.0.0", "it has a list at its top, where an OpenAPI document has an object"),
        ("just words", "it has plain text at its top, where an OpenAPI document has an object"),
        ("# only a comment", "it has plain text at its top, where an OpenAPI document has an object"),
        ("{}", r#"it has neither "openapi" nor "swagger" at its top, so it is no OpenAPI document"#),
        (
            "openapi: [3]",
            r#"it has neither "openapi" nor "swagger" at its top, so it is no OpenAPI document"#,
        ),
        ("swaggerVersion: '1.2'", "its version is Swagger 1.2; 2.0, 3.0 and 3.1 are read"),
        ("openapi: 4.0.0", "its version is OpenAPI 4.0.0; 2.0, 3.0 and 3.1 are read"),
        ("openapi: 3.01", "its version is OpenAPI 3.01; 2.0, 3.0 and 3.1 are read"),
        ("swagger: 3.0.0", "its version is Swagger 3.0.0; 2.0, 3.0 and 3.1 are read"),
        (r#"{"info": {"_postman_id": "x"}}"#, "it is a Postman collection, not an OpenAPI document"),
        ("asyncapi: 2.6.0", "it is an AsyncAPI document, not an OpenAPI document"),
        ("kind: discovery#restDescription", "it is a Google API Discovery document, not an OpenAPI document"),
        (
            r#"{"$schema": "https://json-schema.org/draft/2020-12/schema"}"#,
            "it is a JSON Schema, not an OpenAPI document",
        ),
        ("<!DOCTYPE html><html>", r#"it begins with "<", so it is a web page or other XML"#),
    ];
    for (text, outcome) in cases {
        assert_eq!(refused(text.as_bytes()), outcome, "{text}");
    }
}

#[test]
fn broken_json_is_reported_as_json_sees_it() {
    let outcome = refused(br#"{"openapi": "3.0.0", "paths": {"a" 1}}"#);
    assert!(
        outcome.starts_with("it cannot be read as JSON or YAML: expected `:` at line 1 column"),
        "{outcome}"
    );
    let outcome = refused(b"openapi: 3.0.0\npaths: [1\n");
    assert!(
        outcome.starts_with("it cannot be read as JSON or YAML: ") && outcome.contains(" at line "),
        "{outcome}"
    );
}

#[test]
fn pointers_lead_to_what_they_say() {
    let text = json!({
        "openapi": "3.0.0",
        "paths": {"/a/{b}": {"get": 1}, "/c~d": 2, "/e%20f": 3, "/g h": 4, "": 5, "ü": 6, "50%": 7},
        "list": [10, {"x": 11}],
    });
    let bundle = open(FILE, &text.to_string());
    let cases = [
        ("#/paths/~1a~1{b}/get", json!(1)),
        ("#/paths/~1a~1%7Bb%7D/get", json!(1)),
        ("#/paths/%7E1a%7E1%7bb%7d/get", json!(1)),
        ("#/paths/~1c~0d", json!(2)),
        ("#/paths/~1e%2520f", json!(3)),
        ("#/paths/~1e%20f", json!(3)),
        ("#/paths/~1g%20h", json!(4)),
        ("#/paths/", json!(5)),
        ("#/paths/%C3%BC", json!(6)),
        ("#/paths/ü", json!(6)),
        ("#/paths/50%", json!(7)),
        ("#/list/0", json!(10)),
        ("#/list/1/x", json!(11)),
        ("openapi.yaml#/list/0", json!(10)),
        ("./openapi.yaml#/list/0", json!(10)),
        ("../api/openapi.yaml#/list/0", json!(10)),
        ("#", text.clone()),
        ("openapi.yaml", text),
    ];
    for (reference, value) in cases {
        assert_eq!(found(&bundle, 0, reference), value, "{reference}");
    }
    assert_eq!(wanted(&bundle), [""; 0]);
}

#[test]
fn a_reference_to_nothing_says_so() {
    let bundle = referring(FILE, &[]);
    assert_eq!(lost(&bundle, 0, "#/a/b"), r##"the reference "#/a/b" in openapi.yaml leads nowhere"##);
    assert_eq!(lost(&bundle, 0, "#/refs/0"), r##"the reference "#/refs/0" in openapi.yaml leads nowhere"##);
    assert_eq!(lost(&bundle, 0, "#/refs/01"), r##"the reference "#/refs/01" in openapi.yaml leads nowhere"##);
    assert!(lost(&bundle, 7, "#/a").ends_with("leads nowhere"));
}

#[test]
fn rst_2_names_and_anchors_of_schemas_are_refused() {
    let text = json!({"openapi": "3.1.0", "components": {"schemas": {
        "Pet": {"$anchor": "pet", "$id": "https://example.org/pet.json"},
        "A": {"$ref": "Pet"}, "B": {"$ref": "#pet"}, "C": {"$ref": "other.yaml#pet"},
    }}});
    let bundle = open(FILE, &text.to_string());
    assert_eq!(wanted(&bundle), [""; 0]);
    for name in ["Pet", "#pet", "other.yaml#pet", "#Pet"] {
        let outcome = "names a schema; only paths in a document (#/…) are supported";
        assert_eq!(lost(&bundle, 0, name), format!("the reference {name:?} in openapi.yaml {outcome}"));
    }
    let outcome = r#"the reference "https://example.org/pet.json" in openapi.yaml leads out of the folder of the specification"#;
    assert_eq!(lost(&bundle, 0, "https://example.org/pet.json"), outcome);
}

#[test]
fn rst_2_an_id_fetches_nothing_and_reaches_nothing() {
    let text = json!({"openapi": "3.1.0", "s": {
        "web": {"$id": "https://evil.example/schemas/", "not": {"$ref": "x.json"}},
        "root": {"$id": "file:///etc/", "not": {"$ref": "./passwd"}},
        "up": {"$id": "../../../etc/", "not": {"$ref": "./shadow"}},
        "out": {"$id": "https://evil.example/", "not": {"$ref": "../up.yaml"}},
        "bad": {"$id": "http://[", "not": {"$ref": "y.json"}},
        "inner": {"$id": "https://example.org/", "$defs": {"Toy": {}}, "not": {"$ref": "#/$defs/Toy"}},
    }});
    let bundle = open(FILE, &text.to_string());
    // As if there were no `$id`.
    let outcome = ["x.json", "passwd", "shadow", "y.json"].map(|name| format!("file:///specs/api/{name}"));
    assert_eq!(wanted(&bundle), outcome);
    let lead = |place: &str| {
        let node = bundle.find(0, &format!("#/s/{place}/not")).expect("it is there");
        node.resolved().map(|node| node.value.clone()).expect_err("it leads nowhere")
    };
    let unread = "leads to a document that was not read";
    assert_eq!(lead("web"), format!(r#"the reference "x.json" in openapi.yaml {unread}"#));
    assert_eq!(lead("root"), format!(r#"the reference "./passwd" in openapi.yaml {unread}"#));
    assert!(lead("out").ends_with("leads out of the folder of the specification"));
    assert!(lead("inner").ends_with("leads nowhere"));
}

#[test]
fn rst_2_other_files_are_wanted_once_and_in_order() {
    let references =
        ["b.yaml#/B", "#/x", "a/c.json", "./b.yaml#/C", "a/../b.yaml", "/specs/api/d.yaml", "a%20b.yaml"];
    let bundle = referring(FILE, &references);
    let outcome =
        ["b.yaml", "a/c.json", "d.yaml", "a%20b.yaml"].map(|name| format!("file:///specs/api/{name}"));
    assert_eq!(wanted(&bundle), outcome);
}

#[test]
fn rst_2_references_in_another_file_start_from_there() {
    let mut bundle = referring(FILE, &["parts/a.yaml#/A"]);
    let a = b"A: {$ref: 'b.yaml#/B'}\nlocal: {$ref: '#/A'}\nback: {$ref: '../openapi.yaml#/openapi'}";
    bundle.add(&url("file:///specs/api/parts/a.yaml"), Ok(a));
    assert_eq!(wanted(&bundle), ["file:///specs/api/parts/b.yaml"]);
    bundle.add(&url("file:///specs/api/parts/b.yaml"), Ok(br#"{"B": {"type": "integer"}}"#));
    assert_eq!(wanted(&bundle), [""; 0]);

    let node = bundle.find(0, "parts/a.yaml#/local").unwrap();
    assert_eq!(node.document, 1);
    let node = node.resolved().unwrap();
    assert_eq!((node.document, node.value), (2, &json!({"type": "integer"})));
    assert_eq!(found(&bundle, 1, "../openapi.yaml#/openapi"), "3.0.3");
    assert_eq!(lost(&bundle, 2, "#/A"), r##"the reference "#/A" in parts/b.yaml leads nowhere"##);
}

#[test]
fn rst_2_documents_of_the_same_server_are_wanted() {
    let bundle =
        referring(WEB, &["a.json#/A", "/shared/b.json", "https://api.example.com:443/c.json?x=1#/C"]);
    let outcome =
        ["v1/a.json", "shared/b.json", "c.json?x=1"].map(|path| format!("https://api.example.com/{path}"));
    assert_eq!(wanted(&bundle), outcome);
}

#[test]
fn a_document_that_cannot_be_had_is_reported_where_it_is_used() {
    let mut bundle = referring(FILE, &["a.yaml", "b.yaml", "c.yaml"]);
    let reference = r#"the reference "a.yaml#/A" in openapi.yaml"#;
    let outcome = format!("{reference} leads to a document that was not read");
    assert_eq!(lost(&bundle, 0, "a.yaml#/A"), outcome);
    bundle.add(&url("file:///specs/api/a.yaml"), Err("there is no such file".to_owned()));
    assert_eq!(lost(&bundle, 0, "a.yaml#/A"), format!("{reference} cannot be read: there is no such file"));
    bundle.add(&url("file:///specs/api/b.yaml"), Ok(b"a: [1"));
    let outcome =
        r#"the reference "b.yaml" in openapi.yaml cannot be read: it cannot be read as JSON or YAML: "#;
    assert!(lost(&bundle, 0, "b.yaml").starts_with(outcome));
    assert_eq!(wanted(&bundle), ["file:///specs/api/c.yaml"]);
    // A part need not be an OpenAPI document, or an object.
    bundle.add(&url("file:///specs/api/c.yaml"), Ok(b"[1, 2]"));
    assert_eq!(found(&bundle, 0, "c.yaml#/1"), json!(2));
}

#[test]
fn unwanted_parts_are_not_kept() {
    let mut bundle = referring(FILE, &["a.yaml"]);
    bundle.add(&url("file:///specs/api/z.yaml"), Ok(b"a: 1"));
    bundle.add(&url("file:///specs/api/a.yaml"), Ok(b"a: 1"));
    bundle.add(&url("file:///specs/api/a.yaml"), Ok(b"a: 2"));
    bundle.add(&url(FILE), Ok(b"a: 3"));
    assert_eq!(bundle.documents.len(), 2);
    assert_eq!(found(&bundle, 0, "a.yaml#/a"), json!(1));
}

#[test]
fn messages_hold_no_credentials() {
    let mut bundle = open(
        "https://me:pw@api.example.com/v1/openapi.json?key=secret",
        "openapi: 3.0.0\nx: {$ref: 'a.json'}",
    );
    bundle.add(&url("https://me:pw@api.example.com/v1/a.json"), Ok(b"{}"));
    let outcome = [
        lost(&bundle, 0, "#/nothing"),
        lost(&bundle, 1, "#/nothing"),
        lost(&bundle, 0, "https://you:pw@api.example.com/b.json?key=secret#/x"),
        lost(&bundle, 0, "//me:pw@elsewhere?key=secret"),
        lost(&bundle, 0, "z.json?key=secret"),
    ];
    let shown = [
        r##"the reference "#/nothing" in openapi.json leads nowhere"##,
        r##"the reference "#/nothing" in a.json leads nowhere"##,
        r##"the reference "https://api.example.com/b.json#/x" in openapi.json has credentials of its own"##,
        r#"the reference "//elsewhere" in openapi.json leads to another server"#,
        r#"the reference "z.json" in openapi.json leads to a document that was not read"#,
    ];
    assert_eq!(outcome, shown);
}

#[test]
fn a_document_is_called_by_its_path_from_the_root() {
    let name = |root: &str, place: &str| super::ref_policy::name(&url(root), &url(place));
    assert_eq!(name(FILE, FILE), "openapi.yaml");
    assert_eq!(name(FILE, "file:///specs/api/a%20b/c.yaml"), "a b/c.yaml");
    assert_eq!(name(FILE, "file:///etc/passwd"), "passwd");
    assert_eq!(name(FILE, "file:///specs/api/a%0Ab"), "a?b");
    assert_eq!(name(WEB, "https://u:p@api.example.com/v1/x.json?q"), "x.json");
    assert_eq!(name(WEB, "https://api.example.com/x.json"), "api.example.com/x.json");
    assert_eq!(name("https://api.example.com/", "https://api.example.com/"), "api.example.com");
}

#[test]
fn every_reference_of_a_large_document_is_found() {
    let mut text = "openapi: 3.0.0\ncomponents:\n  schemas:\n".to_owned();
    for index in 0..5000 {
        writeln!(text, "    S{index}: {{$ref: '#/components/schemas/S{}'}}", index + 1).unwrap();
    }
    let bundle = open(FILE, &text);
    for round in 0..20_000 {
        assert!(bundle.find(0, &format!("#/components/schemas/S{}", round % 5000)).is_ok());
    }
}
