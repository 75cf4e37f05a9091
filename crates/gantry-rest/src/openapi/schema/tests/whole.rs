//! Objects that are taken apart, and schemas that have to fit.

use super::{Detail, bundle, compiled, spot, whole};
use crate::openapi::schema::{DETAILS, Direction, Misfit, fields, fitted};
use serde_json::{Value, json};

/// The names and the required ones, or nothing.
fn taken_apart(schemas: &Value, direction: Direction) -> Option<(Vec<String>, Vec<String>)> {
    let bundle = bundle("3.1.0", schemas);
    let found = fields(spot(&bundle, "x"), direction, &mut 0).unwrap()?;
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
    let input = (names(&["a", "pw", "b", "c"]), names(&["a", "b", "c"]));
    assert_eq!(taken_apart(&schemas, Direction::Input), Some(input));
    let output = (names(&["a", "id", "b", "c"]), names(&["a", "id", "b", "c"]));
    assert_eq!(taken_apart(&schemas, Direction::Output), Some(output));
    let bundle = bundle("3.0.0", &schemas);
    let found = fields(spot(&bundle, "x"), Direction::Input, &mut 0).unwrap().unwrap();
    // The later one of equal names holds.
    assert_eq!(found.properties[0].1.value, &json!({ "type": "string" }));
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
        json!({ "allOf": [{ "$ref": "#/s/x" }], "properties": object }),
        json!(true),
        json!(5),
    ] {
        assert_eq!(taken_apart(&json!({ "x": x }), Direction::Input), None, "{x}");
    }
    for x in [
        json!({ "properties": object, "additionalProperties": false }),
        // One of the kinds of something.
        json!({ "$ref": "#/s/Kind" }),
    ] {
        let base = json!({ "properties": object, "discriminator": { "propertyName": "a" } });
        let mut schemas = json!({ "x": x, "Kind": { "allOf": [base], "x-ms-discriminator-value": "kind" } });
        assert!(taken_apart(&schemas, Direction::Input).is_some(), "{x}");
        // It may be any of them.
        schemas["Kind"] = json!({ "allOf": [base] });
        assert_eq!(taken_apart(&schemas, Direction::Input).is_some(), x.get("$ref").is_none(), "{x}");
    }
    let bundle = bundle("3.0.0", &json!({ "x": { "allOf": [{ "$ref": "#/s/none" }] } }));
    assert!(fields(spot(&bundle, "x"), Direction::Input, &mut 0).unwrap_err().contains("#/s/none"));
}

#[test]
fn as_much_detail_is_told_as_fits() {
    // A tree of five children at every node, six levels high, of which all names are different.
    fn tree(level: usize, name: &str) -> Value {
        if level == 0 {
            return json!({ "type": "string", "description": "A leaf of the tree, which hangs at its end" });
        }
        let children = (0..5).map(|n| {
            let name = format!("{name}{n}");
            let child = tree(level - 1, &name);
            (name, child)
        });
        json!({ "type": "object", "properties": children.collect::<serde_json::Map<_, _>>() })
    }
    let bundle = bundle("3.0.0", &json!({ "x": tree(6, "n") }));
    let found = compiled(fitted(Direction::Input, 0, |detail| whole(&bundle, detail)).unwrap().0);
    let levels = compiled(whole(&bundle, Detail::Levels(4)).unwrap());
    assert_eq!(found, levels);
}

#[test]
fn every_number_of_levels_is_found() {
    for most in [6, 4, 3, 2, 1, 0] {
        let mut tries = 0;
        let found = fitted(Direction::Input, 0, |detail| {
            tries += 1;
            match detail {
                Detail::Levels(levels) if levels <= most => Ok(json!({ "title": levels.to_string() })),
                Detail::Full | Detail::Levels(_) => Err(Misfit::TooLarge),
                Detail::Top | Detail::Open => panic!("there are no kinds"),
            }
        });
        assert_eq!(found.map(|(schema, _)| schema), Ok(json!({ "title": most.to_string() })));
        assert!(tries <= 4, "{tries}");
    }
}

#[test]
fn kinds_are_left_out_before_levels_are() {
    for most in 0..DETAILS.len() {
        let mut tries = 0;
        let found = fitted(Direction::Input, 0, |detail| {
            tries += 1;
            match DETAILS.iter().position(|one| *one == detail).unwrap() {
                fits if fits >= most => Ok(json!({ "title": fits })),
                0 | 1 => Err(Misfit::TooManyKinds),
                _ => Err(Misfit::TooLarge),
            }
        });
        assert_eq!(found, Ok((json!({ "title": most }), most)));
        assert!(tries <= 6, "{tries}");
    }
}

#[test]
fn what_is_known_to_be_too_much_is_not_tried_again() {
    for first in 0..DETAILS.len() {
        let mut tries = 0;
        let found = fitted(Direction::Input, first, |_| {
            tries += 1;
            Ok(json!({}))
        });
        assert_eq!((found, tries), (Ok((json!({}), first)), 1));
    }
}

#[test]
fn a_broken_document_is_not_tried_again_and_a_hopeless_one_says_so() {
    let mut tries = 0;
    let broken = fitted(Direction::Input, 0, |_| {
        tries += 1;
        Err(Misfit::Broken("it is broken".to_owned()))
    });
    assert_eq!((broken, tries), (Err("it is broken".to_owned()), 1));
    let hopeless = fitted(Direction::Input, 0, |_| Err(Misfit::TooLarge)).unwrap_err();
    assert!(hopeless.contains("too large even without details"), "{hopeless}");
}
