//! Documents that want to cost too much.

use super::{DetailLevel, bundle, compiled, fitted, node, root, whole};
use crate::openapi::document::Bundle;
use crate::openapi::schema::{Converter, Direction, fields};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

const DETAILS: [DetailLevel; 3] = [DetailLevel::Inline, DetailLevel::Definitions, DetailLevel::TwoLevels];

/// Converts it in every way there is; what comes out compiles.
fn convert(version: &str, schemas: &Value) {
    let bundle = bundle(version, schemas);
    for detail in DETAILS {
        if let Ok(Some(schema)) = whole(&bundle, detail) {
            drop(compiled(schema));
        }
        let mut converter = Converter::new(Direction::Output, detail);
        let root = converter.schema(node(&bundle, "x")).unwrap();
        drop(converter.complete(root));
    }
    if let Ok(schema) = fitted(&bundle) {
        compiled(schema);
    }
    fields(node(&bundle, "x")).ok();
}

fn reference(name: impl std::fmt::Display) -> Value {
    json!({ "$ref": format!("#/s/{name}") })
}

/// `n` schemas, each made of the next one by this.
fn chain(n: usize, link: impl Fn(Value) -> Value) -> Value {
    let mut schemas = Map::new();
    for level in 0..n {
        let name = if level == 0 { "x".to_owned() } else { format!("x{level}") };
        schemas.insert(name, link(reference(format!("x{}", level + 1))));
    }
    schemas.insert(format!("x{n}"), json!({ "type": "object", "properties": { "a": {} } }));
    Value::Object(schemas)
}

#[test]
fn what_doubles_at_every_level_is_cut() {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let schemas = chain(30, |next| json!({ keyword: [next, { "allOf": [next] }] }));
        convert("3.0.0", &schemas);
    }
    let schemas = chain(30, |next| json!({ "properties": { "a": next, "b": next } }));
    convert("3.1.0", &schemas);
    let bundle = bundle("3.0.0", &schemas);
    assert!(fitted(&bundle).is_ok());
}

/// Levels that would overflow the stack of a test several times over if each were a call inside the last.
const LONG: usize = 1000;

#[test]
fn long_chains_do_not_overflow_the_stack() {
    for link in [
        |next: Value| next,
        |next: Value| json!({ "allOf": [next] }),
        |next: Value| json!({ "allOf": [next, { "type": "object" }] }),
        |next: Value| json!({ "properties": { "a": next } }),
        |next: Value| json!({ "items": next }),
        |next: Value| json!({ "not": next }),
    ] {
        convert("3.0.0", &chain(LONG, link));
    }
    // Only there does something beside a reference count.
    convert("3.1.0", &chain(LONG, |next| json!({ "$ref": next["$ref"], "maxLength": 3 })));
}

/// The steps that converting `x` in this way takes.
fn steps(bundle: &Bundle, direction: Direction, detail: DetailLevel) -> u64 {
    bundle.set_steps(u64::MAX);
    let mut converter = Converter::new(direction, detail);
    let root = root(bundle, &mut converter).unwrap();
    drop(converter.complete(root));
    u64::MAX - bundle.steps()
}

#[test]
fn values_that_add_nothing_are_counted_and_bounded() {
    let long = "n".repeat(20_000);
    let letters = |n: usize| format!("{}{n}", "v".repeat(10_000));
    let properties = |property: &Value| -> Map<String, Value> {
        (0..300).map(|n| (format!("p{n}"), property.clone())).collect()
    };
    let text = reference("text");
    for (what, schemas) in [
        ("wide", chain(12, |next| json!({ "allOf": vec![next; 30] }))),
        ("doubling", chain(30, |next| json!({ "allOf": [next, next] }))),
        ("nulls", json!({ "x": { "allOf": vec![Value::Null; 50_000], "items": reference("x") } })),
        (
            "values",
            json!({ "x": { "properties": properties(&text) }, "text": { "enum": (0..200).map(letters).collect::<Vec<_>>() } }),
        ),
        (
            "blank",
            json!({ "x": { "properties": properties(&text) }, "text": { "description": " ".repeat(50_000) } }),
        ),
        (
            "word",
            json!({ "x": { "properties": properties(&text) }, "text": { "type": long, "format": long, "pattern": long, "default": long } }),
        ),
        (
            "marks",
            json!({
                "x": { "oneOf": vec![reference("text"); 100], "discriminator": { "propertyName": "k", "mapping": {
                    long.as_str(): "text", "a": long, "b": "text" } } },
                "text": { "properties": { "k": {} } },
            }),
        ),
    ] {
        let bundle = bundle("3.0.0", &schemas);
        for detail in DETAILS {
            for direction in [Direction::Input, Direction::Output] {
                let steps = steps(&bundle, direction, detail);
                assert!(steps > 0 && steps < 1_000_000, "{what}: {steps} for {direction:?} {detail:?}");
            }
        }
    }
}

#[test]
fn an_enumeration_is_counted_before_it_is_copied() {
    // Equal values make a short list, and long ones none at all.
    let choices = |bytes: usize| json!({ "x": { "enum": vec!["v".repeat(bytes); 200] } });
    let equal = bundle("3.0.0", &choices(640));
    assert!(steps(&equal, Direction::Input, DetailLevel::Inline) > 2000);
    assert_eq!(fitted(&equal).unwrap()["properties"]["x"]["enum"].as_array().unwrap().len(), 1);
    let long = bundle("3.0.0", &choices(6400));
    assert!(steps(&long, Direction::Input, DetailLevel::Inline) > 20_000);
    assert!(fitted(&long).unwrap_err().contains("too large"));
    equal.set_steps(1000);
    assert_eq!(whole(&equal, DetailLevel::Inline), Ok(None));
}

#[test]
fn a_schema_that_doubles_is_flattened_once() {
    let bundle = bundle("3.0.0", &chain(10, |next| json!({ "allOf": [next, next] })));
    bundle.set_steps(1000);
    let found = fields(node(&bundle, "x")).unwrap().unwrap();
    assert_eq!(found.properties.len(), 1);
    assert!(!bundle.is_exhausted());
}

#[test]
fn many_properties_and_long_names_are_bounded() {
    let many: Map<String, Value> =
        (0..10_000).map(|n| (format!("p{n}"), json!({ "type": "string" }))).collect();
    let bundle_of_many = bundle("3.0.0", &json!({ "x": { "type": "object", "properties": many } }));
    assert!(fitted(&bundle_of_many).unwrap_err().contains("too large"));
    // One long name that a small document repeats without end.
    let long = "n".repeat(100_000);
    let schemas =
        json!({ "x": { "properties": { "a": reference("x"), "b": reference("x"), long: reference("x") } } });
    convert("3.0.0", &schemas);
    let hidden: Map<String, Value> =
        (0..10_000).map(|n| (format!("p{n}"), json!({ "readOnly": true }))).collect();
    let mut properties = hidden;
    properties.insert("a".to_owned(), reference("x"));
    properties.insert("b".to_owned(), reference("x"));
    convert("3.0.0", &json!({ "x": { "properties": properties } }));
}

#[test]
fn circles_of_every_kind_end() {
    let circles = [
        json!({ "x": reference("x") }),
        json!({ "x": reference("y"), "y": reference("x") }),
        json!({ "x": { "allOf": [reference("x")] } }),
        json!({ "x": { "allOf": [reference("x"), reference("x"), { "type": "object" }] } }),
        json!({ "x": { "allOf": [reference("y"), { "type": "object" }] }, "y": { "anyOf": [reference("x"), { "type": "object" }] } }),
        json!({ "x": { "oneOf": [reference("x"), { "type": "string" }], "nullable": true } }),
        json!({ "x": { "not": reference("x") } }),
        json!({ "x": { "items": reference("x") } }),
        json!({ "x": { "prefixItems": [reference("x")] } }),
        json!({ "x": { "additionalProperties": reference("x") } }),
        json!({ "x": { "patternProperties": { "a": reference("x") } } }),
        json!({ "x": { "$ref": "#/s/x", "properties": { "a": reference("x") }, "maxLength": 3 } }),
        json!({ "x": { "$ref": "#/s/y", "maxLength": 3 }, "y": { "$ref": "#/s/x", "minLength": 3 } }),
        json!({ "x": { "$ref": "#/s/x/properties/a", "properties": { "a": reference("x") } } }),
        // Known before it is used beside itself: the step into the property hides that at first.
        json!({ "x": reference("b"),
            "b": { "properties": { "p": reference("a") }, "allOf": [reference("a"), reference("c")] },
            "a": { "allOf": [reference("b"), reference("c")] }, "c": { "properties": { "b": reference("b") } } }),
        json!({ "x": { "properties": { "a": { "$ref": "#" } } } }),
        json!({ "x": { "discriminator": { "propertyName": "k", "mapping": { "x": "x" } }, "oneOf": [reference("x"), reference("x")] } }),
    ];
    for schemas in circles {
        for version in ["2.0", "3.0.0", "3.1.0"] {
            convert(version, &schemas);
        }
    }
}

#[test]
fn an_endless_schema_never_leaves_the_converter() {
    let schemas = json!({
        "x": reference("b"),
        "b": { "properties": { "p": reference("a") }, "allOf": [reference("a"), reference("c")] },
        "a": { "allOf": [reference("b"), reference("c")] },
        "c": { "properties": { "b": reference("b"), "n": { "type": "integer" } } },
    });
    let schema = compiled(fitted(&bundle("3.0.0", &schemas)).unwrap());
    let compiled = gantry_core::schema::Schema::compile(&schema).unwrap();
    assert!(compiled.check(&json!({ "x": { "p": { "n": 1 } } })).is_ok());
    assert!(compiled.check(&json!({ "x": { "p": { "n": "1" } } })).is_err());
}

#[test]
fn deep_nesting_is_cut() {
    let mut text = String::new();
    for _ in 0..50 {
        write!(text, r#"{{"properties":{{"a":"#).unwrap();
    }
    text.push_str("{}");
    text.push_str(&"}}".repeat(50));
    let schemas = json!({ "x": serde_json::from_str::<Value>(&text).unwrap() });
    let bundle = bundle("3.0.0", &schemas);
    compiled(fitted(&bundle).unwrap());
    convert("3.0.0", &schemas);
}

/// Any JSON, with the words of schemas more often than chance would have it.
fn any_schema() -> impl Strategy<Value = Value> {
    const WORDS: [&str; 34] = [
        "type",
        "properties",
        "items",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "$ref",
        "enum",
        "const",
        "required",
        "default",
        "nullable",
        "x-nullable",
        "additionalProperties",
        "patternProperties",
        "prefixItems",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxItems",
        "uniqueItems",
        "pattern",
        "format",
        "description",
        "discriminator",
        "propertyName",
        "mapping",
        "readOnly",
        "deprecated",
        "a",
    ];
    const TEXTS: [&str; 14] = [
        "string",
        "object",
        "array",
        "null",
        "any",
        "#/s/x",
        "#/s/y",
        "#/s/x/properties/a",
        "#/s/none",
        "a",
        "^[",
        "1",
        "true",
        "",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..4).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        proptest::sample::select(&TEXTS[..]).prop_map(Value::from),
        proptest::sample::select(&TEXTS[..]).prop_map(|text| json!({ "$ref": text })),
        "\\PC{0,10}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 80, 8, |inner| {
        let key =
            prop_oneof![9 => proptest::sample::select(&WORDS[..]).prop_map(str::to_owned), 1 => "\\PC{0,6}"];
        prop_oneof![
            1 => proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            4 => proptest::collection::vec((key, inner), 0..7)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_json_as_a_schema_compiles_or_is_an_error(x in any_schema(), y in any_schema(), version in 0..3usize) {
        convert(["2.0", "3.0.3", "3.1.0"][version], &json!({ "x": x, "y": y }));
    }
}
