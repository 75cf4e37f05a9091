//! Every rule of the conversion; every result compiles.

mod composed;
mod hostile;
mod whole;

use super::*;
use crate::openapi::document::Bundle;
use expect_test::{Expect, expect};
use serde_json::json;
use url::Url;

/// A document of this version with these schemas.
pub(super) fn bundle(version: &str, schemas: &Value) -> Bundle {
    let key = if version.starts_with('2') { "swagger" } else { "openapi" };
    let document = json!({ key: version, "info": {}, "paths": {}, "s": schemas });
    Bundle::open(Url::parse("file:///api/root.json").unwrap(), document.to_string().as_bytes()).unwrap()
}

fn node<'a>(bundle: &'a Bundle, name: &str) -> NodeRef<'a> {
    bundle.root().unwrap().get("s").unwrap().get(name).unwrap()
}

/// The schema `x` as a tool's only argument.
fn root<'a>(bundle: &'a Bundle, converter: &mut Converter<'a>) -> Result<Object, String> {
    let schema = converter.schema(node(bundle, "x"))?;
    Ok(Object::from_iter([("properties".to_owned(), json!({ "x": schema }))]))
}

/// The same with this much detail, if that fits.
fn whole(bundle: &Bundle, detail: DetailLevel) -> Result<Option<Value>, String> {
    let mut converter = Converter::new(Direction::Input, detail);
    let root = root(bundle, &mut converter)?;
    converter.complete(root)
}

/// The same with as much detail as fits.
fn fitted(bundle: &Bundle) -> Result<Value, String> {
    fit(Direction::Input, |converter| root(bundle, converter))
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
    let mut whole = compiled(fitted(&bundle(version, &schemas)).unwrap());
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

fn two_levels(schemas: &Value) -> Value {
    let whole = compiled(whole(&bundle("3.0.0", schemas), DetailLevel::TwoLevels).unwrap().unwrap());
    assert!(whole.get("$defs").is_none());
    whole["properties"]["x"].clone()
}

#[test]
fn only_types_that_json_schema_has_are_stated() {
    check("2.0", json!({ "type": "file" }), &json!({ "type": "string" }));
    for unknown in [json!("any"), json!("int"), json!({ "a": 1 }), json!(["string", "any"]), json!([])] {
        check("3.0.0", json!({ "type": unknown }), &json!({}));
    }
    check("2.0", json!({ "type": ["string"] }), &json!({ "type": "string" }));
    check("3.1.0", json!({ "type": ["string", "null", "string"] }), &json!({ "type": ["string", "null"] }));
}

#[test]
fn a_type_that_keywords_imply_is_stated() {
    check(
        "3.0.0",
        json!({ "properties": { "a": {} } }),
        &json!({ "type": "object", "properties": { "a": {} } }),
    );
    let list = json!({ "items": { "type": "string" } });
    check("3.0.0", list, &json!({ "type": "array", "items": { "type": "string" } }));
}

#[test]
fn keywords_of_the_wrong_type_are_dropped() {
    let unusual = json!({
        "type": "integer", "minimum": "1", "maximum": [], "minLength": -1, "maxLength": 5, "minItems": 1.5,
        "pattern": 5, "enum": null, "required": true, "properties": [], "items": "x", "default": "7",
        "uniqueItems": "maybe", "additionalProperties": "true", "allOf": {}, "anyOf": [], "oneOf": ["a", null],
        "not": [], "example": 1, "xml": {}, "description": 5, "multipleOf": 0, "format": {}, "deprecated": "no",
        "readOnly": "x", "externalDocs": {}, "x-foo": 1, "discriminator": 1, "const": [1], "title": "T",
    });
    check("3.0.0", unusual, &json!({ "type": "integer", "default": 7, "minimum": 1, "maxLength": 5 }));
    for other in [json!(5), json!(null), json!(true), json!(false)] {
        check("3.1.0", other, &json!({}));
    }
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
    check("3.1.0", json!({ "const": "a" }), &json!({ "enum": ["a"] }));
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
fn the_schemas_of_lists_by_position_are_left_out() {
    let list =
        json!({ "type": "array", "items": [{ "type": "string" }], "prefixItems": [{}], "maxItems": 2 });
    check("3.0.0", list, &json!({ "type": "array", "maxItems": 2 }));
}

#[test]
fn only_own_properties_are_required() {
    check(
        "3.0.0",
        json!({ "type": "object", "required": ["a", "a", "b", 5], "properties": { "a": {} } }),
        &json!({ "type": "object", "required": ["a"], "properties": { "a": {} } }),
    );
    // Of alternatives that demand nothing else, nothing is left.
    check(
        "3.0.0",
        json!({ "properties": { "a": {}, "b": {} }, "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] }),
        &json!({ "type": "object", "properties": { "a": {}, "b": {} } }),
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
fn nested_objects_take_further_properties() {
    for further in [json!(false), json!(true), json!("false"), json!([])] {
        check("3.0.0", json!({ "additionalProperties": further }), &json!({}));
    }
    check("3.1.0", json!({ "patternProperties": { "^x-": { "type": "string" } } }), &json!({}));
    let map = json!({ "type": "object", "additionalProperties": { "type": "integer" } });
    check("3.0.0", map.clone(), &map);
}

#[test]
fn alternatives_are_any_of() {
    check(
        "3.0.0",
        json!({ "oneOf": [{ "type": "string" }, { "type": "string", "format": "date" }] }),
        &json!({ "anyOf": [{ "type": "string" }, { "type": "string", "format": "date" }] }),
    );
    let numbers = json!([{ "maxLength": 1 }, { "maxLength": 2 }]);
    check(
        "3.0.0",
        json!({ "oneOf": [{ "type": "string" }, { "type": "integer" }], "anyOf": numbers }),
        &json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }], "allOf": [{ "anyOf": numbers }] }),
    );
    check("3.0.0", json!({ "oneOf": [{ "type": "string" }] }), &json!({ "type": "string" }));
    check("3.0.0", json!({ "oneOf": [{ "type": "string" }, {}] }), &json!({}));
    check("3.1.0", json!({ "not": { "type": "null" } }), &json!({}));
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
fn schemas_that_are_used_once_are_in_place() {
    let deep = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    let word = json!({ "type": "string", "enum": ["k"] });
    let schemas = json!({
        "One": { "type": "object", "properties": { "deep": { "$ref": "#/s/Deep" } } }, "Deep": deep, "Word": word,
    });
    let found = input(
        "3.0.0",
        json!({ "type": "object", "properties": {
            "one": { "$ref": "#/s/One" }, "word": { "$ref": "#/s/Word" }, "again": { "$ref": "#/s/Word" },
        } }),
        schemas,
    );
    let one = json!({ "type": "object", "properties": { "deep": deep } });
    let properties = json!({ "one": one, "word": word, "again": word });
    assert_eq!(found, json!({ "type": "object", "properties": properties }));
}

#[test]
fn with_a_schema_that_is_used_twice_all_are_definitions() {
    check_text(
        "3.0.0",
        json!({
            "x": { "properties": {
                "one": { "$ref": "#/s/One" }, "a": { "$ref": "#/s/Two" }, "b": { "$ref": "#/s/Two" },
                "word": { "$ref": "#/s/Word" },
            } },
            "One": { "properties": { "n": { "type": "integer" } } },
            "Two": { "properties": { "t": { "type": "integer" } } },
            "Word": { "type": "string", "enum": ["k"] },
        }),
        &expect![[
            r##"{"type":"object","properties":{"one":{"$ref":"#/$defs/One"},"a":{"$ref":"#/$defs/Two"},"b":{"$ref":"#/$defs/Two"},"word":{"type":"string","enum":["k"]}},"$defs":{"One":{"type":"object","properties":{"n":{"type":"integer"}}},"Two":{"type":"object","properties":{"t":{"type":"integer"}}}}}"##
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
fn a_discriminator_is_described() {
    let kind = json!({ "type": "object", "properties": { "kind": { "type": "string" } } });
    let other = json!({ "type": "object", "properties": { "barks": { "type": "boolean" } } });
    let found = input(
        "3.0.0",
        json!({
            "oneOf": [{ "$ref": "#/s/Cat" }, { "$ref": "#/s/Dog" }],
            "discriminator": { "propertyName": "kind", "mapping": { "c": "#/s/Cat", "d": "Dog" } },
        }),
        json!({ "Cat": kind, "Dog": other }),
    );
    assert_eq!(found, json!({ "description": "`kind` tells the kind: c, d.", "anyOf": [kind, other] }));
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
            r##"{"$ref":"#/$defs/Node","$defs":{"Node":{"type":"object","properties":{"next":{"$ref":"#/$defs/Node"},"all":{"type":"array","items":{"$ref":"#/$defs/Leaf"}}}},"Leaf":{"type":"object","properties":{"node":{"$ref":"#/$defs/Node"}}}}}"##
        ]],
    );
}

#[test]
fn a_reference_that_leads_nowhere_is_an_error_only_for_what_is_sent() {
    let bundle = bundle("3.0.0", &json!({ "x": { "properties": { "a": { "$ref": "#/s/Nowhere" } } } }));
    let reason = fitted(&bundle).unwrap_err();
    assert!(reason.contains("#/s/Nowhere"), "{reason}");
    let mut output = Converter::new(Direction::Output, DetailLevel::Inline);
    let schema = output.schema(node(&bundle, "x")).unwrap();
    assert_eq!(Value::Object(schema), json!({ "type": "object", "properties": { "a": {} } }));
}

#[test]
fn below_two_levels_only_types_are_left() {
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
    let two = two_levels(&schemas);
    assert_eq!(two["required"], json!(["name"]));
    assert_eq!(two["properties"]["name"]["minLength"], 3);
    assert_eq!(two["properties"]["all"]["items"], json!({ "type": "object" }));
    let next = &two["properties"]["next"]["properties"];
    assert_eq!(next["name"], json!({ "type": "string", "description": "Its name" }));
    assert_eq!(next["next"], json!({ "type": ["object", "null"] }));
}
