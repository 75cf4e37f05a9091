//! Objects that are taken apart, and schemas that have to fit.

use super::{DetailLevel, bundle, compiled, fitted, node, whole};
use crate::openapi::schema::fields;
use serde_json::{Value, json};

/// The names and the required ones, or nothing.
fn taken_apart(schemas: &Value) -> Option<(Vec<String>, Vec<String>)> {
    let bundle = bundle("3.1.0", schemas);
    let found = fields(node(&bundle, "x")).unwrap()?;
    Some((found.properties.into_iter().map(|(name, _)| name).collect(), found.required))
}

#[test]
fn parts_of_an_object_are_its_properties() {
    let schemas = json!({
        "x": { "allOf": [{ "$ref": "#/s/A" }, { "required": ["b", "a"], "properties": { "b": { "type": "integer" } } }],
            "properties": { "c": {}, "a": { "type": "string" } }, "required": ["c", "zz"] },
        "A": { "type": "object", "required": ["a", "id"],
            "properties": { "a": {}, "id": { "readOnly": true }, "pw": { "writeOnly": true } } },
    });
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(taken_apart(&schemas), Some((names(&["c", "a", "pw", "b"]), names(&["c", "a", "b"]))));
    let bundle = bundle("3.0.0", &schemas);
    let found = fields(node(&bundle, "x")).unwrap().unwrap();
    // The first one of equal names counts.
    assert_eq!(found.properties[1].1.value, &json!({ "type": "string" }));
}

#[test]
fn what_is_more_than_properties_is_not_taken_apart() {
    let object = json!({ "a": {} });
    let many: serde_json::Map<String, Value> = (0..101).map(|n| (n.to_string(), json!({}))).collect();
    for x in [
        json!({ "properties": object, "oneOf": [{}] }),
        json!({ "properties": object, "anyOf": [{}] }),
        json!({ "properties": object, "not": {} }),
        json!({ "properties": object, "additionalProperties": true }),
        json!({ "properties": object, "additionalProperties": {} }),
        json!({ "properties": object, "patternProperties": {} }),
        json!({ "properties": object, "nullable": true }),
        json!({ "properties": object, "type": ["object", "null"] }),
        json!({ "properties": object, "allOf": [{ "type": "string" }] }),
        json!({ "properties": object, "allOf": [true] }),
        json!({ "properties": object, "type": "object", "discriminator": { "propertyName": "a" } }),
        json!({ "properties": object, "discriminator": "a" }),
        json!({ "properties": { "a": { "readOnly": true } } }),
        json!({ "properties": many }),
        json!({ "type": "object" }),
        json!({ "type": "string" }),
        json!({ "$ref": "#/s/x" }),
        json!(true),
        json!(5),
    ] {
        assert_eq!(taken_apart(&json!({ "x": x })), None, "{x}");
    }
    let closed = json!({ "properties": object, "additionalProperties": false });
    assert!(taken_apart(&json!({ "x": closed })).is_some());
    let bundle = bundle("3.0.0", &json!({ "x": { "allOf": [{ "$ref": "#/s/none" }] } }));
    assert!(fields(node(&bundle, "x")).unwrap_err().contains("#/s/none"));
}

#[test]
fn a_schema_that_is_too_large_has_two_levels_or_is_refused() {
    /// A tree with so many children at every node, of which all names are different.
    fn tree(level: usize, children: usize, name: &str) -> Value {
        if level == 0 {
            return json!({ "type": "string", "description": "A leaf of the tree, which hangs at its end" });
        }
        let children = (0..children).map(|n| {
            let name = format!("{name}{n}");
            let child = tree(level - 1, children, &name);
            (name, child)
        });
        json!({ "type": "object", "properties": children.collect::<serde_json::Map<_, _>>() })
    }
    let narrow = bundle("3.0.0", &json!({ "x": tree(6, 5, "n") }));
    assert_eq!(whole(&narrow, DetailLevel::Inline), Ok(None));
    let two = whole(&narrow, DetailLevel::TwoLevels).unwrap().unwrap();
    assert_eq!(compiled(fitted(&narrow).unwrap()), two);
    let wide = bundle("3.0.0", &json!({ "x": tree(2, 100, "n") }));
    let refused = fitted(&wide).unwrap_err();
    assert_eq!(
        refused,
        "its schema is too large even with two levels: more than 5000 values or 131072 bytes"
    );
}
