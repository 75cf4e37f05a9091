//! Every rule of the conversion; whatever comes out compiles.

mod composed;
mod discriminators;
mod hostile;
mod kinds;
mod whole;

use super::*;
use crate::openapi::bundle::Bundle;
use expect_test::{Expect, expect};
use serde_json::json;
use url::Url;

/// A document of this version with these schemas.
pub(super) fn bundle(version: &str, schemas: &Value) -> Bundle {
    let key = if version.starts_with('2') { "swagger" } else { "openapi" };
    let document = json!({ key: version, "info": {}, "paths": {}, "s": schemas });
    Bundle::open(Url::parse("file:///api/root.json").unwrap(), document.to_string().as_bytes()).unwrap()
}

fn spot<'a>(bundle: &'a Bundle, name: &str) -> Spot<'a> {
    bundle.root().unwrap().get("s").unwrap().get(name).unwrap()
}

/// The schema `x` as a tool's only argument.
fn whole(bundle: &Bundle, detail: Detail) -> Result<Value, Misfit> {
    let mut converter = Converter::new(Direction::Input, detail);
    let schema = converter.schema(spot(bundle, "x"))?;
    let mut root = Map::new();
    root.insert("properties".to_owned(), json!({ "x": schema }));
    converter.complete(root)
}

#[track_caller]
pub(super) fn compiled(schema: Value) -> Value {
    if let Err(error) = Schema::compile(&schema) {
        panic!("{error}: {schema}");
    }
    schema
}

/// What becomes of a schema, without the root around it; definitions are under `$defs`.
#[track_caller]
fn input(version: &str, schema: Value, others: Value) -> Value {
    let mut schemas = others;
    schemas["x"] = schema;
    let mut whole = compiled(whole(&bundle(version, &schemas), Detail::Full).unwrap());
    let mut x = whole["properties"]["x"].take();
    if let Some(definitions) = whole.get_mut("$defs") {
        x["$defs"] = definitions.take();
    }
    x
}

#[track_caller]
fn check(version: &str, schema: Value, expected: &Value) {
    let found = input(version, schema, json!({}));
    assert_eq!(found.to_string(), expected.to_string());
}

#[track_caller]
fn check_text(version: &str, schemas: Value, expected: &Expect) {
    let x = schemas["x"].clone();
    expected.assert_eq(&input(version, x, schemas).to_string());
}

fn levels(schemas: &Value, n: usize) -> Value {
    let whole = compiled(whole(&bundle("3.0.0", schemas), Detail::Levels(n)).unwrap());
    assert!(whole.get("$defs").is_none());
    whole["properties"]["x"].clone()
}

#[test]
fn types_get_the_names_that_json_schema_knows() {
    for (stated, known) in [("file", "string"), ("int", "integer"), ("Float", "number"), ("bool", "boolean")]
    {
        check("2.0", json!({ "type": stated }), &json!({ "type": known }));
    }
    check("3.0.0", json!({ "type": "any" }), &json!({}));
    check("3.0.0", json!({ "type": { "a": 1 } }), &json!({}));
    check("2.0", json!({ "type": ["string"] }), &json!({ "type": "string" }));
    check("3.1.0", json!({ "type": ["string", "null", "string"] }), &json!({ "type": ["string", "null"] }));
    check("3.1.0", json!({ "type": ["string", "any"] }), &json!({}));
    check("3.1.0", json!({ "type": [] }), &json!({}));
}

#[test]
fn a_type_that_is_plainly_meant_is_stated() {
    check(
        "3.0.0",
        json!({ "properties": { "a": {} } }),
        &json!({ "type": "object", "properties": { "a": {} } }),
    );
    let list = json!({ "items": { "type": "string" } });
    check("3.0.0", list, &json!({ "type": "array", "items": { "type": "string" } }));
}

#[test]
fn keywords_of_the_wrong_type_are_dropped_or_repaired() {
    let odd = json!({
        "type": "integer", "minimum": "1", "maximum": [], "minLength": -1, "maxLength": 5.0, "minItems": 1.5,
        "pattern": 5, "enum": null, "required": true, "properties": [], "items": "x", "default": "7",
        "uniqueItems": "maybe", "additionalProperties": "true", "allOf": {}, "anyOf": [], "oneOf": ["a", null],
        "not": [], "example": 1, "xml": {}, "description": 5, "multipleOf": 0, "format": {}, "deprecated": "no",
        "readOnly": "x", "externalDocs": {}, "x-foo": 1, "discriminator": 1, "const": [1], "title": "T",
    });
    let kept = json!({
        "type": "integer", "default": 7, "minimum": 1, "maxLength": 5, "additionalProperties": true,
    });
    check("3.0.0", odd, &kept);
    check("3.0.0", json!(5), &json!({}));
    check("3.0.0", json!(null), &json!({}));
}

#[test]
fn boolean_schemas_pass() {
    assert_eq!(input("3.1.0", json!(true), json!({})), json!(true));
    check(
        "3.1.0",
        json!({ "properties": { "a": false } }),
        &json!({ "type": "object", "properties": { "a": false } }),
    );
}

#[test]
fn nullable_becomes_a_type() {
    check("3.0.0", json!({ "type": "string", "nullable": true }), &json!({ "type": ["string", "null"] }));
    check("2.0", json!({ "type": "string", "x-nullable": true }), &json!({ "type": ["string", "null"] }));
    check(
        "3.0.0",
        json!({ "type": "string", "enum": ["a"], "nullable": true }),
        &json!({ "type": ["string", "null"], "enum": ["a", null] }),
    );
    check(
        "3.0.0",
        json!({ "type": "string", "enum": ["a", null], "nullable": true }),
        &json!({ "type": ["string", "null"], "enum": ["a", null] }),
    );
    check("3.0.0", json!({ "nullable": true }), &json!({}));
    let nothing = json!({ "type": "null" });
    check(
        "3.0.0",
        json!({ "nullable": true, "description": "D", "oneOf": [{ "type": "string" }, { "type": "integer" }] }),
        &json!({ "description": "D", "anyOf": [{ "type": "string" }, { "type": "integer" }, nothing] }),
    );
    let composed = json!({ "nullable": true, "allOf": [{ "$ref": "#/s/A" }], "description": "D" });
    let others = json!({ "A": { "type": "object", "properties": { "a": { "$ref": "#/s/A" } } } });
    expect![[r##"{"description":"D","anyOf":[{"$ref":"#/$defs/A"},{"type":"null"}],"$defs":{"A":{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}}}}}"##]]
        .assert_eq(&input("3.0.0", composed, others).to_string());
}

#[test]
fn bounds_of_the_old_versions_become_those_of_the_new_one() {
    check(
        "3.0.0",
        json!({ "type": "number", "minimum": 1, "exclusiveMinimum": true, "maximum": 9.5, "exclusiveMaximum": false }),
        &json!({ "type": "number", "exclusiveMinimum": 1, "maximum": 9.5 }),
    );
    check(
        "3.1.0",
        json!({ "exclusiveMaximum": 3, "exclusiveMinimum": true }),
        &json!({ "exclusiveMaximum": 3 }),
    );
    check("3.0.0", json!({ "multipleOf": 0.01 }), &json!({}));
    check("3.0.0", json!({ "multipleOf": 10 }), &json!({ "multipleOf": 10 }));
}

#[test]
fn enumerations_keep_their_order_and_lose_what_cannot_be() {
    check("3.0.0", json!({ "enum": ["b", "a", "b"] }), &json!({ "enum": ["b", "a"] }));
    check("3.0.0", json!({ "enum": [] }), &json!({}));
    check("3.0.0", json!({ "enum": [{ "a": 1 }] }), &json!({}));
    check(
        "3.0.0",
        json!({ "type": "string", "enum": [1, true, "x", null] }),
        &json!({ "type": "string", "enum": ["1", "true", "x"] }),
    );
    check(
        "3.0.0",
        json!({ "type": "integer", "enum": ["1", "x", 2] }),
        &json!({ "type": "integer", "enum": [1, 2] }),
    );
    check("3.1.0", json!({ "const": "a" }), &json!({ "const": "a" }));
    let many: Vec<String> = (0..201).map(|n| n.to_string()).collect();
    check(
        "3.0.0",
        json!({ "type": "string", "enum": many, "description": "A number" }),
        &json!({ "type": "string", "description": "A number. One of 201 values." }),
    );
}

#[test]
fn defaults_are_kept_if_small_and_of_the_right_type() {
    check("3.0.0", json!({ "type": "string", "default": 5 }), &json!({ "type": "string", "default": "5" }));
    check("3.0.0", json!({ "type": "integer", "default": "many" }), &json!({ "type": "integer" }));
    check("3.0.0", json!({ "default": { "a": 1 } }), &json!({}));
    check("3.0.0", json!({ "default": null }), &json!({}));
    check("3.0.0", json!({ "default": "x".repeat(500) }), &json!({}));
}

#[test]
fn texts_keep_what_describes_them() {
    let text = json!({
        "type": "string", "format": "uuid", "contentMediaType": "image/png", "contentEncoding": "base64",
        "minLength": 1, "pattern": "^(?=a)",
    });
    check("3.1.0", text.clone(), &text);
}

#[test]
fn descriptions_are_folded_cleaned_and_cut_at_a_word() {
    let text = "One\n\n  two\u{200b}\u{202e}\tthree\u{a0}four";
    check("3.0.0", json!({ "description": text }), &json!({ "description": "One two three four" }));
    let long = input("3.0.0", json!({ "description": "word ".repeat(1000) }), json!({}));
    let long = long["description"].as_str().unwrap();
    assert!(long.chars().count() <= PROPERTY_CHARS && long.ends_with("word…"), "{long}");
    let solid = input("3.0.0", json!({ "description": "ä".repeat(1000) }), json!({}));
    assert!(solid["description"].as_str().unwrap().chars().count() <= PROPERTY_CHARS);
    check("3.0.0", json!({ "description": " \n" }), &json!({}));
}

const PROPERTY_CHARS: usize = crate::openapi::limits::PROPERTY_DESCRIPTION_CHARS;

#[test]
fn lists_by_position_become_prefix_items() {
    check(
        "3.0.0",
        json!({ "type": "array", "items": [{ "type": "string" }, {}], "uniqueItems": true, "maxItems": 2 }),
        &json!({ "type": "array", "maxItems": 2, "uniqueItems": true, "prefixItems": [{ "type": "string" }, {}] }),
    );
    check("3.1.0", json!({ "items": [] }), &json!({}));
    check(
        "3.1.0",
        json!({ "prefixItems": [{ "type": "string" }], "items": false }),
        &json!({ "prefixItems": [{ "type": "string" }], "items": false }),
    );
}

#[test]
fn only_known_properties_are_required() {
    check(
        "3.0.0",
        json!({ "type": "object", "required": ["a", "a", "b", 5], "properties": { "a": {} } }),
        &json!({ "type": "object", "properties": { "a": {} }, "required": ["a"] }),
    );
    // A demand beside the properties that it is about counts, as long as those are sent this way.
    check(
        "3.0.0",
        json!({
            "properties": { "a": {}, "b": {}, "id": { "readOnly": true } },
            "anyOf": [{ "required": ["a", "zz"] }, { "required": ["b", "id"] }],
        }),
        &json!({
            "type": "object", "properties": { "a": {}, "b": {} },
            "anyOf": [{ "required": ["a"] }, { "required": ["b"] }],
        }),
    );
}

#[test]
fn what_is_read_only_is_not_sent() {
    let schema = json!({
        "type": "object", "required": ["id", "name", "link"],
        "properties": {
            "id": { "type": "string", "readOnly": true }, "name": { "type": "string", "writeOnly": true },
            "link": { "$ref": "#/s/Link" }, "other": { "$ref": "#/s/Other", "readOnly": true },
        },
    });
    let others = json!({ "Link": { "type": "string", "readOnly": true }, "Other": { "type": "string" } });
    let found = input("3.0.0", schema, others);
    assert_eq!(
        found,
        json!({ "type": "object", "required": ["name"], "properties": { "name": { "type": "string" } } })
    );
}

#[test]
fn further_properties_are_a_flag_or_a_schema() {
    check("3.0.0", json!({ "additionalProperties": "false" }), &json!({ "additionalProperties": false }));
    check("3.0.0", json!({ "additionalProperties": {} }), &json!({ "additionalProperties": true }));
    check("3.0.0", json!({ "additionalProperties": [] }), &json!({}));
    let map = json!({ "type": "object", "additionalProperties": { "type": "integer" } });
    check("3.0.0", map.clone(), &map);
    let patterns =
        json!({ "patternProperties": { "^x-": { "type": "string" } }, "additionalProperties": false });
    check("3.1.0", patterns.clone(), &patterns);
    // If a pattern cannot be kept, what it allows must not be refused.
    check(
        "3.1.0",
        json!({ "patternProperties": { "^(?!a)": {} }, "additionalProperties": false }),
        &json!({}),
    );
}

#[test]
fn alternatives_are_any_of() {
    check(
        "3.0.0",
        json!({ "oneOf": [{ "type": "string" }, { "type": "string", "format": "date" }, { "type": "string" }] }),
        &json!({ "anyOf": [{ "type": "string" }, { "type": "string", "format": "date" }] }),
    );
    check(
        "3.0.0",
        json!({ "oneOf": [{ "type": "string" }, {}], "anyOf": [{ "maxLength": 1 }, { "maxLength": 2 }] }),
        &json!({
            "anyOf": [{ "type": "string" }, {}],
            "allOf": [{ "anyOf": [{ "maxLength": 1 }, { "maxLength": 2 }] }],
        }),
    );
    check("3.0.0", json!({ "oneOf": [{ "type": "string" }] }), &json!({ "type": "string" }));
}

#[test]
fn not_stays_only_where_it_is_simple() {
    check("3.1.0", json!({ "not": { "type": "null" } }), &json!({ "not": { "type": "null" } }));
    check("3.1.0", json!({ "not": { "required": ["a", "a"] } }), &json!({ "not": { "required": ["a"] } }));
    check("3.1.0", json!({ "not": { "enum": ["a", "a"] } }), &json!({ "not": { "enum": ["a"] } }));
    for lossy in [json!({ "pattern": "x" }), json!({ "properties": {} }), json!({}), json!({ "type": "any" })]
    {
        check("3.1.0", json!({ "not": lossy }), &json!({}));
    }
}

#[test]
fn a_part_alone_is_the_schema_with_the_words_around_it() {
    check(
        "3.0.0",
        json!({ "description": "outer", "allOf": [{ "type": "string", "description": "inner" }] }),
        &json!({ "type": "string", "description": "outer" }),
    );
    check(
        "3.0.0",
        json!({ "maxLength": 3, "allOf": [{ "type": "string", "maxLength": 5 }] }),
        &json!({ "maxLength": 3, "allOf": [{ "type": "string", "maxLength": 5 }] }),
    );
    check(
        "3.0.0",
        json!({ "allOf": [{ "type": "string" }, {}, { "maxLength": 5 }] }),
        &json!({ "allOf": [{ "type": "string" }, { "maxLength": 5 }] }),
    );
}

#[test]
fn words_beside_a_reference_count_and_only_in_3_1_more_than_that() {
    let x = json!({ "$ref": "#/s/A", "description": "mine", "maxLength": 3 });
    let a = json!({ "A": { "type": "string", "description": "its" } });
    assert_eq!(input("3.0.0", x.clone(), a.clone()), json!({ "type": "string", "description": "mine" }));
    assert_eq!(input("3.1.0", x, a), json!({ "type": "string", "description": "mine", "maxLength": 3 }));
}

#[test]
fn what_is_used_twice_is_a_definition_and_what_is_used_once_is_in_place() {
    check_text(
        "3.0.0",
        json!({
            "x": { "properties": {
                "one": { "$ref": "#/s/One" }, "a": { "$ref": "#/s/Two" }, "b": { "$ref": "#/s/Two" },
                "kind": { "$ref": "#/s/Kind" }, "kinds": { "type": "array", "items": { "$ref": "#/s/Kind" } },
            } },
            "One": { "properties": { "deep": { "$ref": "#/s/Deep" } } },
            "Deep": { "properties": { "n": { "type": "integer" } } },
            "Two": { "properties": { "t": { "type": "integer" } } },
            "Kind": { "type": "string", "enum": ["k"] },
        }),
        &expect![[
            r##"{"type":"object","properties":{"one":{"type":"object","properties":{"deep":{"type":"object","properties":{"n":{"type":"integer"}}}}},"a":{"$ref":"#/$defs/Two"},"b":{"$ref":"#/$defs/Two"},"kind":{"type":"string","enum":["k"]},"kinds":{"type":"array","items":{"type":"string","enum":["k"]}}},"$defs":{"Two":{"type":"object","properties":{"t":{"type":"integer"}}}}}"##
        ]],
    );
}

#[test]
fn names_of_definitions_are_clean_and_unique() {
    let list = |name: &str| json!({ "type": "array", "items": { "$ref": name } });
    let found = input(
        "3.0.0",
        json!({ "properties": {
            "a": list("#/s/a~1b"), "b": list("#/s/g/a_b"), "c": list("#/s/a~1b"), "d": list("#/s/g/a_b"),
            "e": list("#/s/g/%C3%A4"), "f": list("#/s/g/%C3%A4"),
        } }),
        json!({
            "a/b": { "properties": { "p": {} } },
            "g": { "a_b": { "properties": { "q": {} } }, "ä": { "properties": { "r": {} } } },
        }),
    );
    let names: Vec<&String> = found["$defs"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["a_b", "a_b_2", "_C3_A4"]);
}

#[test]
fn definitions_inside_a_schema_are_found_by_reference() {
    let schemas = json!({ "x": { "$ref": "#/s/x/$defs/Own", "$defs": { "Own": { "type": "string" } } } });
    check_text("3.1.0", schemas, &expect![[r#"{"type":"string"}"#]]);
}

#[test]
fn a_discriminator_is_told_and_marks_its_alternatives() {
    check_text(
        "3.0.0",
        json!({
            "x": {
                "oneOf": [{ "$ref": "#/s/Cat" }, { "$ref": "#/s/Dog" }, { "$ref": "#/s/Cow" }],
                "discriminator": { "propertyName": "kind", "mapping": { "c": "#/s/Cat", "d": "Dog", "e": "Dog", "w": "Cow" } },
            },
            "Cat": { "type": "object", "properties": { "kind": { "type": "string" }, "purrs": { "type": "boolean" } } },
            "Dog": { "type": "object", "properties": { "barks": { "type": "boolean" } } },
            "Cow": { "type": "object", "properties": { "kind": { "type": "string", "enum": ["w"] } } },
        }),
        &expect![[
            r#"{"description":"`kind` tells the kind: c, d, e, w.","anyOf":[{"type":"object","properties":{"kind":{"type":"string","const":"c"},"purrs":{"type":"boolean"}}},{"type":"object","properties":{"barks":{"type":"boolean"},"kind":{"enum":["d","e"]}}},{"type":"object","properties":{"kind":{"type":"string","enum":["w"]}}}]}"#
        ]],
    );
    check(
        "2.0",
        json!({ "type": "object", "discriminator": "kind", "properties": { "kind": { "type": "string" } } }),
        &json!({
            "type": "object", "description": "`kind` tells the kind.", "properties": { "kind": { "type": "string" } },
        }),
    );
}

#[test]
fn recursion_stays_recursion() {
    check_text(
        "3.0.0",
        json!({
            "x": { "$ref": "#/s/Node" },
            "Node": { "properties": { "next": { "$ref": "#/s/Node" }, "all": { "items": { "$ref": "#/s/Leaf" } } } },
            "Leaf": { "properties": { "node": { "$ref": "#/s/Node" } } },
        }),
        &expect![[
            r##"{"$ref":"#/$defs/Node","$defs":{"Node":{"type":"object","properties":{"next":{"$ref":"#/$defs/Node"},"all":{"type":"array","items":{"type":"object","properties":{"node":{"$ref":"#/$defs/Node"}}}}}}}}"##
        ]],
    );
}

#[test]
fn a_reference_that_leads_nowhere_is_an_error_only_for_what_is_sent() {
    let bundle = bundle("3.0.0", &json!({ "x": { "properties": { "a": { "$ref": "#/s/Nowhere" } } } }));
    let Err(Misfit::Broken(reason)) = whole(&bundle, Detail::Full) else { panic!("a schema") };
    assert!(reason.contains("#/s/Nowhere"), "{reason}");
    let mut output = Converter::new(Direction::Output, Detail::Full);
    let schema = output.schema(spot(&bundle, "x")).unwrap();
    assert_eq!(schema, json!({ "type": "object", "properties": { "a": {} } }));
}

#[test]
fn levels_leave_only_types_below_them() {
    let schemas = json!({
        "x": { "$ref": "#/s/Node" },
        "Node": {
            "type": "object", "required": ["name"],
            "properties": {
                "name": { "type": "string", "minLength": 3, "description": "Its name" },
                "next": { "nullable": true, "allOf": [{ "$ref": "#/s/Node" }] },
                "all": { "type": "array", "items": { "$ref": "#/s/Node" } },
            },
        },
    });
    assert_eq!(levels(&schemas, 0), json!({ "type": "object" }));
    let named = json!({ "type": "string", "description": "Its name" });
    assert_eq!(
        levels(&schemas, 1),
        json!({
            "type": "object", "required": ["name"],
            "properties": { "name": named, "next": { "type": ["object", "null"] }, "all": { "type": "array" } },
        })
    );
    let two = levels(&schemas, 2);
    assert_eq!(two["properties"]["name"]["minLength"], 3);
    assert_eq!(two["properties"]["all"]["items"], json!({ "type": "object" }));
    assert_eq!(two["properties"]["next"]["properties"]["name"], named);
}

#[test]
fn levels_make_one_object_of_parts_that_are_objects() {
    let schemas = json!({
        "x": { "description": "D", "allOf": [{ "$ref": "#/s/Base" }, { "properties": { "b": { "type": "string" } } }] },
        "Base": { "type": "object", "required": ["a"], "properties": { "a": { "type": "integer" } } },
    });
    assert_eq!(
        levels(&schemas, 1),
        json!({
            "description": "D", "type": "object", "required": ["a"],
            "properties": { "a": { "type": "integer" }, "b": { "type": "string" } },
        })
    );
}
