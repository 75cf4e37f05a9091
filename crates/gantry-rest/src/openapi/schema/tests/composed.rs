//! Compositions as documents have them, which taken by the letter would refuse every call.

use super::*;

/// Whether the schema `x` takes a value.
#[track_caller]
fn takes(version: &str, schemas: &Value, detail: DetailLevel, value: &Value) -> bool {
    let schema = compiled(whole(&bundle(version, schemas), detail).unwrap().unwrap());
    Schema::compile(&schema).unwrap().check(&json!({ "x": value })).is_ok()
}

const DETAILS: [DetailLevel; 2] = [DetailLevel::Definitions, DetailLevel::TwoLevels];

#[test]
fn parts_do_not_refuse_the_properties_of_each_other() {
    let closed = json!({ "type": "object", "additionalProperties": false, "properties": { "a": { "type": "string" } } });
    let more = json!({ "type": "object", "properties": { "b": { "type": "string" } } });
    let at = |name: &str| json!({ "$ref": format!("#/s/{name}") });
    for x in [
        json!({ "allOf": [closed, more] }),
        json!({ "allOf": [at("Closed"), more] }),
        json!({ "allOf": [at("Alias"), more] }),
        json!({ "allOf": [at("Wrapped"), at("More")], "nullable": true }),
        json!({ "allOf": [at("Closed")], "properties": { "b": {} }, "additionalProperties": false }),
        json!({ "allOf": [at("More")], "properties": { "a": {} }, "additionalProperties": false }),
        json!({ "anyOf": [at("Closed"), { "required": ["a"] }], "properties": { "b": {} } }),
    ] {
        let schemas = json!({
            "x": x, "Closed": closed, "More": more, "Alias": at("Closed"), "Wrapped": { "allOf": [at("Closed")] },
        });
        for detail in DETAILS {
            assert!(takes("3.0.0", &schemas, detail, &json!({ "a": "1", "b": "2" })), "{detail:?} {x}");
        }
    }
    let beside = json!({ "x": { "$ref": "#/s/Closed", "properties": { "b": {} } }, "Closed": closed });
    assert!(takes("3.1.0", &beside, DetailLevel::Definitions, &json!({ "a": "1", "b": "2" })));
}

#[test]
fn what_has_kinds_takes_the_properties_of_each() {
    for (version, discriminator) in [("2.0", json!("kind")), ("3.0.0", json!({ "propertyName": "kind" }))] {
        let base = json!({
            "type": "object", "additionalProperties": false, "required": ["kind"], "discriminator": discriminator,
            "properties": { "kind": { "type": "string" } },
        });
        let dog = json!({ "allOf": [{ "$ref": "#/s/Base" }, { "required": ["bark"], "properties": { "bark": {} } }] });
        for x in [json!({ "$ref": "#/s/Base" }), json!({ "$ref": "#/s/Dog" })] {
            let schemas = json!({ "x": x, "Base": base, "Dog": dog });
            for detail in DETAILS {
                assert!(takes(version, &schemas, detail, &json!({ "kind": "Dog", "bark": "loud" })), "{x}");
                assert!(!takes(version, &schemas, detail, &json!({ "bark": "loud" })), "{x}");
            }
        }
    }
}

#[test]
fn null_beside_a_reference_is_allowed() {
    let object = json!({ "type": "object", "properties": { "a": { "$ref": "#/s/Object" } } });
    let schemas = |x: Value| json!({ "x": x, "Object": object, "Word": { "type": "string", "enum": ["w"] } });
    for (version, keyword) in [("3.0.0", "nullable"), ("2.0", "x-nullable")] {
        for (name, value) in [("Object", json!({})), ("Word", json!("w"))] {
            let plain = json!({ "$ref": format!("#/s/{name}") });
            let mut nullable = plain.clone();
            nullable[keyword] = json!(true);
            for detail in DETAILS {
                assert!(takes(version, &schemas(nullable.clone()), detail, &Value::Null), "{name}");
                assert!(takes(version, &schemas(nullable.clone()), detail, &value), "{name}");
                assert!(!takes(version, &schemas(nullable.clone()), detail, &json!(5)), "{name}");
                assert!(!takes(version, &schemas(plain.clone()), detail, &Value::Null), "{name}");
            }
        }
    }
}

#[test]
fn what_comes_back_is_never_refused() {
    let bundle = bundle("3.1.0", &json!({ "x": { "properties": { "a": false, "b": { "items": false } } } }));
    let mut output = Converter::new(Direction::Output, DetailLevel::Inline);
    let schema = output.schema(node(&bundle, "x")).unwrap();
    assert_eq!(schema["properties"]["a"], json!({}));
    let schema = Value::Object(schema);
    assert!(!schema.to_string().contains("false"), "{schema}");
}
