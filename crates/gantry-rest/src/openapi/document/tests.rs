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
    Bundle::open(url(FILE), text).expect_err("it cannot be used").to_string()
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
fn rst_2_plain_data_names_nothing_that_a_schema_names() {
    let pet = |title: &str| json!({"$id": "https://example.org/pet.json", "$anchor": "pet", "title": title});
    let data = pet("data");
    for version in ["3.0.3", "3.1.0"] {
        for (key, value) in [
            ("example", data.clone()),
            ("examples", json!([data])),
            ("examples", json!({"one": {"value": data}})),
            ("default", json!({"properties": {"a": data}})),
            ("const", data.clone()),
            ("enum", json!([1, data])),
            ("x-data", data.clone()),
        ] {
            let document = |last: Value| {
                json!({"openapi": version, "components": {"schemas": {"A": {key: value}, "B": last}}})
                    .to_string()
            };
            // Somebody may keep schemas there.
            let alone = open(FILE, &document(json!({})));
            assert_eq!(found(&alone, 0, "#pet")["title"], "data", "{key} {version}");
            let bundle = open(FILE, &document(pet("schema")));
            for reference in ["https://example.org/pet.json", "#pet"] {
                assert_eq!(found(&bundle, 0, reference)["title"], "schema", "{key} {version}");
            }
        }
    }
}

#[test]
fn rst_2_what_is_called_like_plain_data_is_none() {
    let pet = json!({"$id": "https://example.org/pet.json", "title": "schema"});
    let content = json!({"content": {"application/json": {"schema": pet}}});
    for document in [
        json!({"components": {"schemas": {"default": pet}}}),
        json!({"components": {"schemas": {"x-pet": {"properties": {"example": {"properties": {"enum": pet}}}}}}}),
        json!({"components": {"schemas": {"A": {"properties": {"properties": {"properties": {"const": pet}}}}}}}),
        json!({"paths": {"/a": {"get": {"responses": {"default": content}}}}}),
        json!({"paths": {"/a": {"get": {"responses": {"200": {"headers": {"x-limit": {"schema": pet}}}}}}}}),
        json!({"paths": {"/a": {"get": {"parameters": [{"in": "query", "name": "a", "schema": pet}]}}}}),
    ] {
        let mut document = document;
        document["openapi"] = json!("3.1.0");
        let bundle = open(FILE, &document.to_string());
        assert_eq!(found(&bundle, 0, "https://example.org/pet.json")["title"], "schema", "{document}");
    }
}

#[test]
fn rst_2_schemas_are_found_wherever_somebody_keeps_them() {
    let pet = json!({"$id": "https://example.org/pet.json", "$anchor": "pet", "$ref": "#/$defs/a", "$defs": {"a": {"title": "inner"}}});
    for place in ["x-shared", "example", "default", "models/example", "components/x-models"] {
        let mut document = json!({"openapi": "3.1.0"});
        let mut here = &mut document;
        for key in place.split('/') {
            here = &mut here[key];
        }
        *here = json!({"Pet": pet});
        let bundle = open(FILE, &document.to_string());
        for reference in ["#pet", "https://example.org/pet.json", &format!("#/{place}/Pet")] {
            let node = bundle.find(0, reference).expect(place);
            let inner = bundle.find(node.document, node.reference().expect("a reference")).expect(place);
            assert_eq!(inner.value["title"], "inner", "{place} {reference}");
        }
    }
}

#[test]
fn rst_2_versions_are_told_apart_in_json_and_yaml() {
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
    for (text, told) in cases {
        assert_eq!(refused(text.as_bytes()), told, "{text}");
    }
}

#[test]
fn broken_json_is_told_as_json_sees_it() {
    let told = refused(br#"{"openapi": "3.0.0", "paths": {"a" 1}}"#);
    assert!(told.starts_with("it cannot be read as JSON or YAML: expected `:` at line 1 column"), "{told}");
    let told = refused(b"openapi: 3.0.0\npaths: [1\n");
    assert!(told.starts_with("it cannot be read as JSON or YAML: ") && told.contains(" at line "), "{told}");
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
    assert_eq!(lost(&bundle, 0, "#nobody"), r##"the reference "#nobody" in openapi.yaml leads nowhere"##);
    assert!(lost(&bundle, 7, "#/a").ends_with("leads nowhere"));
}

#[test]
fn a_schema_can_be_referred_to_by_its_name() {
    let bundle =
        open(FILE, r##"{"swagger": "2.0", "definitions": {"Pet": 1, "a.B": 2}, "x": {"$ref": "Pet"}}"##);
    assert_eq!(wanted(&bundle), [""; 0]);
    assert_eq!(found(&bundle, 0, "Pet"), json!(1));
    assert_eq!(found(&bundle, 0, "a.B"), json!(2));
    assert_eq!(found(&bundle, 0, "#Pet"), json!(1));
    assert_eq!(found(&bundle, 0, "#definitions/Pet"), json!(1));
    let bundle = open(FILE, r##"{"openapi": "3.0.0", "components": {"schemas": {"Pet": 3}}}"##);
    assert_eq!(found(&bundle, 0, "Pet"), json!(3));
    let told = r#"the reference "Dog" in openapi.yaml leads to a document that was not read"#;
    assert_eq!(lost(&bundle, 0, "Dog"), told);
}

#[test]
fn anchors_and_ids_of_schemas_are_found() {
    let text = json!({"openapi": "3.1.0", "components": {"schemas": {
        "A": {"$anchor": "first", "type": "string"},
        "x/y": [{"$id": "https://schemas.example.org/pet", "properties": {"n": {"$anchor": "inner"}}}],
        "C": {"$id": "cat.json", "type": "null"},
        "D": {"$ref": "https://schemas.example.org/pet"},
        "E": {"$ref": "cat.json#/type"},
    }}});
    let bundle = open(FILE, &text.to_string());
    assert_eq!(wanted(&bundle), [""; 0]);
    assert_eq!(found(&bundle, 0, "#first")["type"], "string");
    assert_eq!(found(&bundle, 0, "openapi.yaml#first")["type"], "string");
    assert_eq!(found(&bundle, 0, "https://schemas.example.org/pet#/properties/n/$anchor"), "inner");
    assert_eq!(found(&bundle, 0, "https://schemas.example.org/pet#inner")["$anchor"], "inner");
    assert_eq!(found(&bundle, 0, "cat.json")["type"], "null");
    assert_eq!(found(&bundle, 0, "cat.json#/type"), "null");
}

/// Where the reference at a place of the root document leads, as what stands there under `title`.
#[track_caller]
fn title(bundle: &Bundle, place: &str) -> String {
    let node = bundle.find(0, place).expect("it is there").resolved().expect("it leads somewhere");
    node.text("title").unwrap_or_default().to_owned()
}

#[test]
fn rst_2_references_below_an_id_start_from_there() {
    let text = json!({"openapi": "3.1.0", "s": {
        "pet": {
            "properties": {
                "local": {"$ref": "#/$defs/Toy"}, "sibling": {"$ref": "toy.json"}, "absolute": {"$ref": "/schemas/toy.json"},
                "part": {"$ref": "toy.json#/$defs/Wheel"}, "anchor": {"$ref": "#toy"}, "other": {"$ref": "toy.json#wheel"},
                "itself": {"$ref": "#"}, "inner": {"$id": "deep/er.json", "title": "deeper", "not": {"$ref": "est.json"}},
                "root": {"$ref": "#/s/plain"}, "nested": {"$ref": "deep/er.json"},
            },
            "title": "pet",
            "$defs": {"Toy": {"title": "own toy", "$anchor": "toy"}, "est": {"$id": "/schemas/deep/est.json", "title": "deepest"}},
            "$id": "https://example.org/schemas/pet.json",
        },
        "toy": {
            "$id": "https://example.org/schemas/toy.json", "title": "toy",
            "$defs": {"Wheel": {"title": "wheel", "$dynamicAnchor": "wheel"}, "toy": {"$anchor": "toy", "title": "other"}},
        },
        "plain": {"title": "plain", "$anchor": "toy"},
        "outside": {"$ref": "#toy"},
        "named": {"$ref": "https://example.org/schemas/toy.json#toy"},
    }, "$defs": {"Toy": {"title": "wrong"}}});
    let bundle = open(FILE, &text.to_string());
    assert_eq!(wanted(&bundle), [""; 0]);
    for (place, expected) in [
        ("local", "own toy"),
        ("sibling", "toy"),
        ("absolute", "toy"),
        ("part", "wheel"),
        ("anchor", "own toy"),
        ("other", "wheel"),
        ("itself", "pet"),
        ("inner/not", "deepest"),
        ("nested", "deeper"),
        // Not what the standard says, but what can mean only one thing.
        ("root", "plain"),
    ] {
        assert_eq!(title(&bundle, &format!("#/s/pet/properties/{place}")), expected, "{place}");
    }
    assert_eq!(title(&bundle, "#/s/outside"), "plain");
    assert_eq!(title(&bundle, "#/s/named"), "other");
}

#[test]
fn rst_2_an_id_fetches_nothing_and_reaches_nothing() {
    let text = json!({"openapi": "3.1.0", "s": {
        "web": {"$id": "https://evil.example/schemas/", "not": {"$ref": "x.json"}},
        "root": {"$id": "file:///etc/", "not": {"$ref": "passwd"}},
        "up": {"$id": "../../../etc/", "not": {"$ref": "shadow"}},
        "out": {"$id": "https://evil.example/", "not": {"$ref": "../up.yaml"}},
        "bad": {"$id": "http://[", "not": {"$ref": "y.json"}},
    }});
    let bundle = open(FILE, &text.to_string());
    // As if there were no `$id`.
    let told = ["x.json", "passwd", "shadow", "y.json"].map(|name| format!("file:///specs/api/{name}"));
    assert_eq!(wanted(&bundle), told);
    let lead = |place: &str| {
        let node = bundle.find(0, &format!("#/s/{place}/not")).expect("it is there");
        node.resolved().map(|node| node.value.clone()).expect_err("it leads nowhere")
    };
    let unread = "leads to a document that was not read";
    assert_eq!(lead("web"), format!(r#"the reference "x.json" in openapi.yaml {unread}"#));
    assert_eq!(lead("root"), format!(r#"the reference "passwd" in openapi.yaml {unread}"#));
    assert!(lead("out").ends_with("leads out of the folder of the specification"));
}

#[test]
fn ids_are_known_in_all_documents_that_were_read_and_no_id_hides_a_document() {
    let text = json!({"openapi": "3.1.0", "s": {
        "a": {"$ref": "a.json"}, "b": {"$ref": "b.json"}, "c": {"$ref": "https://example.org/c.json"},
    }});
    let mut bundle = open(FILE, &text.to_string());
    // The whole of it has an address, and refers to others by that.
    let a = json!({
        "$id": "https://example.org/a.json", "title": "a", "properties": {
            "c": {"$ref": "c.json"}, "file": {"$ref": "d.json"}, "own": {"$ref": "#/title"}, "by": {"$ref": "a.json"},
        },
        "$defs": {"fake": {"$id": "file:///specs/api/b.json", "title": "fake"}},
    });
    let b = json!({"title": "b", "$defs": {"c": {"$id": "https://example.org/c.json", "title": "c"}}});
    for (name, text) in [
        ("b.json", b),
        ("a.json", a),
        ("c.json", json!({"title": "not c"})),
        ("d.json", json!({"title": "d"})),
    ] {
        bundle.add(url(&format!("file:///specs/api/{name}")), Ok(text.to_string().as_bytes()));
    }
    assert_eq!(wanted(&bundle), [""; 0]);
    assert_eq!(title(&bundle, "#/s/b"), "b");
    assert_eq!(title(&bundle, "#/s/c"), "c");
    let from_a = |place: &str| {
        let node = bundle.find(0, &format!("a.json#/properties/{place}")).expect("it is there");
        node.resolved().expect("it leads somewhere").value.clone()
    };
    assert_eq!(from_a("c")["title"], "c");
    assert_eq!(from_a("file")["title"], "d");
    assert_eq!(from_a("own"), "a");
    assert_eq!(from_a("by")["title"], "a");
    // It was not asked for: the schema was there by its address.
    assert_eq!(bundle.documents.len(), 4);
}

#[test]
fn before_3_1_an_id_changes_nothing() {
    let text = json!({"openapi": "3.0.3", "s": {
        "pet": {"$id": "https://example.org/pet.json", "$defs": {"Toy": {"title": "inner"}}, "not": {"$ref": "#/$defs/Toy"}},
    }, "$defs": {"Toy": {"title": "outer"}}});
    assert_eq!(title(&open(FILE, &text.to_string()), "#/s/pet/not"), "outer");
}

#[test]
fn rst_2_other_files_are_wanted_once_and_in_order() {
    let references =
        ["b.yaml#/B", "#/x", "a/c.json", "./b.yaml#/C", "a/../b.yaml", "/specs/api/d.yaml", "a%20b.yaml"];
    let bundle = referring(FILE, &references);
    let told = ["b.yaml", "a/c.json", "d.yaml", "a%20b.yaml"].map(|name| format!("file:///specs/api/{name}"));
    assert_eq!(wanted(&bundle), told);
}

#[test]
fn a_discriminator_can_want_files_too() {
    let text = json!({"openapi": "3.0.0", "x": {"properties": {"discriminator": {"$ref": "d.yaml"}}, "discriminator": {
        "propertyName": "kind", "mapping": {"a": "Name", "b": "pets/b.yaml", "c": "#/x", "d": "c.yaml#/C"},
    }}});
    let told = ["d.yaml", "pets/b.yaml", "c.yaml"].map(|name| format!("file:///specs/api/{name}"));
    assert_eq!(wanted(&open(FILE, &text.to_string())), told);
}

#[test]
fn rst_2_references_in_another_file_start_from_there() {
    let mut bundle = referring(FILE, &["parts/a.yaml#/A"]);
    let a = b"A: {$ref: 'b.yaml#/B'}\nlocal: {$ref: '#/A'}\nback: {$ref: '../openapi.yaml#/openapi'}";
    bundle.add(url("file:///specs/api/parts/a.yaml"), Ok(a));
    assert_eq!(wanted(&bundle), ["file:///specs/api/parts/b.yaml"]);
    bundle.add(url("file:///specs/api/parts/b.yaml"), Ok(br#"{"B": {"type": "integer"}}"#));
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
    let told =
        ["v1/a.json", "shared/b.json", "c.json?x=1"].map(|path| format!("https://api.example.com/{path}"));
    assert_eq!(wanted(&bundle), told);
}

#[test]
fn a_document_that_cannot_be_had_is_told_where_it_is_used() {
    let mut bundle = referring(FILE, &["a.yaml", "b.yaml", "c.yaml"]);
    let reference = r#"the reference "a.yaml#/A" in openapi.yaml"#;
    let told = format!("{reference} leads to a document that was not read");
    assert_eq!(lost(&bundle, 0, "a.yaml#/A"), told);
    bundle.add(url("file:///specs/api/a.yaml"), Err("there is no such file".to_owned()));
    assert_eq!(lost(&bundle, 0, "a.yaml#/A"), format!("{reference} cannot be read: there is no such file"));
    bundle.add(url("file:///specs/api/b.yaml"), Ok(b"a: [1"));
    let told =
        r#"the reference "b.yaml" in openapi.yaml cannot be read: it cannot be read as JSON or YAML: "#;
    assert!(lost(&bundle, 0, "b.yaml").starts_with(told));
    assert_eq!(wanted(&bundle), ["file:///specs/api/c.yaml"]);
    // A part need not be an OpenAPI document, or an object.
    bundle.add(url("file:///specs/api/c.yaml"), Ok(b"[1, 2]"));
    assert_eq!(found(&bundle, 0, "c.yaml#/1"), json!(2));
}

#[test]
fn what_nobody_wanted_is_not_kept() {
    let mut bundle = referring(FILE, &["a.yaml"]);
    bundle.add(url("file:///specs/api/z.yaml"), Ok(b"a: 1"));
    bundle.add(url("file:///specs/api/a.yaml"), Ok(b"a: 1"));
    bundle.add(url("file:///specs/api/a.yaml"), Ok(b"a: 2"));
    bundle.add(url(FILE), Ok(b"a: 3"));
    assert_eq!(bundle.documents.len(), 2);
    assert_eq!(found(&bundle, 0, "a.yaml#/a"), json!(1));
}

#[test]
fn messages_hold_no_credentials() {
    let mut bundle = open(
        "https://me:pw@api.example.com/v1/openapi.json?key=secret",
        "openapi: 3.0.0\nx: {$ref: 'a.json'}",
    );
    bundle.add(url("https://me:pw@api.example.com/v1/a.json"), Ok(b"{}"));
    let told = [
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
    assert_eq!(told, shown);
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
