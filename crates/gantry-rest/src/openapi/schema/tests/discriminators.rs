//! Alternatives that a document lists, and the values that it maps to them.

use super::kinds::named;
use super::{Detail, whole};
use gantry_core::schema::Schema;
use serde_json::{Map, Value, json};

fn to(name: &str) -> Value {
    json!({ "$ref": format!("#/d/{name}") })
}

fn heir(base: &str, own: &str) -> Value {
    json!({ "allOf": [to(base), { "type": "object", "required": [own], "properties": { own: { "type": "string" } } }] })
}

fn object(kind: &Value, own: &str) -> Value {
    json!({ "type": "object", "required": [own], "properties": { "t": kind, own: { "type": "string" } } })
}

/// The schema of a choice between cats and dogs, which `t` tells apart.
fn choice(mapping: &Value, schemas: &Value) -> (Value, Schema) {
    let x = json!({ "oneOf": [to("Cat"), to("Dog")], "discriminator": { "propertyName": "t", "mapping": mapping } });
    let schema = whole(&named("3.0.3", &x, schemas), Detail::Full).unwrap();
    let compiled = Schema::compile(&schema).unwrap();
    (schema, compiled)
}

#[test]
fn rst_2_a_mapping_refuses_nothing_that_the_alternatives_take() {
    let text = json!({ "type": "string" });
    let both = json!({ "cat": "#/d/Cat", "dog": "Dog" });
    let with_husky = json!({ "cat": "Cat", "dog": "Dog", "husky": "Husky" });
    let many: Map<String, Value> =
        (0..260).map(|n| (format!("v{n}"), json!(if n % 2 == 0 { "Dog" } else { "Cat" }))).collect();
    let base = json!({ "type": "object", "required": ["t"], "properties": { "t": { "type": "string", "enum": ["CAT", "DOG"] } } });
    let kitten = json!({ "allOf": [to("T")] });
    for (mapping, schemas, good) in [
        (
            both.clone(),
            json!({ "Pet": base, "Cat": heir("Pet", "m"), "Dog": heir("Pet", "w") }),
            json!({ "t": "CAT", "m": "x" }),
        ),
        (
            with_husky,
            json!({ "Cat": object(&text, "m"), "Dog": object(&text, "w"), "Husky": heir("Dog", "h") }),
            json!({ "t": "husky", "w": "x", "h": "y" }),
        ),
        (
            both.clone(),
            json!({ "T": { "type": "string", "enum": ["cat", "kitten"] }, "Cat": object(&kitten, "m"), "Dog": object(&text, "w") }),
            json!({ "t": "kitten", "m": "x" }),
        ),
        (
            Value::Object(many),
            json!({ "Cat": object(&text, "m"), "Dog": object(&text, "w") }),
            json!({ "t": "v259", "m": "x" }),
        ),
    ] {
        let (schema, compiled) = choice(&mapping, &schemas);
        assert_eq!(compiled.check(&json!({ "x": good })), Ok(()), "{schema}");
    }
    // Where the base lists what is mapped, each alternative says which it is.
    let lower = json!({ "type": "object", "required": ["t"], "properties": { "t": { "type": "string", "enum": ["cat", "dog"] } } });
    let (schema, compiled) =
        choice(&both, &json!({ "Pet": lower, "Cat": heir("Pet", "m"), "Dog": heir("Pet", "w") }));
    assert_eq!(compiled.check(&json!({ "x": { "t": "cat", "m": "x" } })), Ok(()));
    assert!(compiled.check(&json!({ "x": { "t": "dog", "m": "x" } })).is_err(), "{schema}");
}
