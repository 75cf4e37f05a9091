//! The parts that the schemas of Gantry's own tools are made of, and the hints that go with them.

use gantry_core::schema::SchemaText;
use gantry_core::tool::Annotations;
use serde_json::{Value, json};

/// The hints of a tool that changes nothing.
pub(crate) const READS: Annotations = Annotations {
    read_only_hint: Some(true),
    destructive_hint: Some(false),
    idempotent_hint: Some(true),
    open_world_hint: Some(false),
};

/// The hints of a tool that changes something, which can be changed back.
pub(crate) const CHANGES: Annotations = Annotations {
    read_only_hint: Some(false),
    destructive_hint: Some(false),
    idempotent_hint: Some(false),
    open_world_hint: Some(false),
};

/// A whole schema: an object with these properties and no others.
pub(crate) fn object(required: &[&str], properties: &Value) -> SchemaText {
    let mut schema = json!({ "$schema": "https://json-schema.org/draft/2020-12/schema" });
    if let (Value::Object(schema), Value::Object(part)) = (&mut schema, part(required, properties)) {
        schema.extend(part);
    }
    schema.into()
}

/// An object within a schema.
pub(crate) fn part(required: &[&str], properties: &Value) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// A list of such objects, or of anything else.
pub(crate) fn list(items: &Value, description: &str) -> Value {
    json!({ "type": "array", "items": items, "description": description })
}

pub(crate) fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

pub(crate) fn texts(description: &str) -> Value {
    list(&json!({ "type": "string" }), description)
}

pub(crate) fn flag(description: &str) -> Value {
    json!({ "type": "boolean", "default": false, "description": description })
}

/// A whole number that is not negative.
pub(crate) fn count(description: &str) -> Value {
    json!({ "type": "integer", "minimum": 0, "description": description })
}
