//! Arguments for a tool, made up from its schema, to show what a call would send.

use serde_json::{Map, Value, json};

/// Levels below which nothing is made up.
const LEVELS: usize = 6;

/// Arguments with everything that is required.
pub(super) fn arguments(schema: &Value) -> Map<String, Value> {
    match value(schema, schema, LEVELS) {
        Value::Object(arguments) => arguments,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}

fn value(schema: &Value, root: &Value, levels: usize) -> Value {
    let Some(below) = levels.checked_sub(1) else { return Value::Null };
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        let found = target.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return found.map_or(Value::Null, |schema| value(schema, root, below));
    }
    if let Some(said) = said(schema) {
        return said;
    }
    for key in ["allOf", "oneOf", "anyOf"] {
        if let Some(first) = schema.get(key).and_then(Value::as_array).and_then(|all| all.first()) {
            return value(first, root, below);
        }
    }
    match kind(schema) {
        Some("object") => object(schema, root, below),
        Some("array") => match schema.get("items") {
            Some(items) => json!([value(items, root, below)]),
            None => json!([]),
        },
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        Some("boolean") => json!(true),
        Some("null") => Value::Null,
        _ if schema.get("properties").is_some() => object(schema, root, below),
        _ => text(schema),
    }
}

/// A value that the document itself gives.
fn said(schema: &Value) -> Option<Value> {
    let first = |key: &str| schema.get(key)?.as_array()?.first().cloned();
    first("examples")
        .or_else(|| schema.get("example").cloned())
        .or_else(|| schema.get("const").cloned())
        .or_else(|| schema.get("default").cloned())
        .or_else(|| first("enum"))
}

fn kind(schema: &Value) -> Option<&str> {
    match schema.get("type")? {
        Value::String(kind) => Some(kind),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

fn object(schema: &Value, root: &Value, levels: usize) -> Value {
    let required =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let property = |name: &str| {
        let property = schema.get("properties")?.get(name)?;
        Some((name.to_owned(), value(property, root, levels)))
    };
    Value::Object(required.filter_map(property).collect())
}

fn text(schema: &Value) -> Value {
    match schema.get("format").and_then(Value::as_str) {
        Some("date") => json!("2026-01-31"),
        Some("date-time") => json!("2026-01-31T09:00:00Z"),
        Some("uuid") => json!("00000000-0000-4000-8000-000000000000"),
        Some("email") => json!("ada@example.com"),
        Some("uri" | "url") => json!("https://example.com/"),
        _ => json!("text"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_required_is_made_up_from_what_the_schema_says() {
        let schema = json!({
            "type": "object",
            "required": ["id", "kind", "tags", "owner", "when"],
            "properties": {
                "id": { "type": ["null", "integer"], "minimum": 3 },
                "kind": { "enum": ["cat", "dog"] },
                "tags": { "type": "array", "items": { "type": "string", "examples": ["red"] } },
                "owner": { "$ref": "#/$defs/owner" },
                "when": { "type": "string", "format": "date" },
                "note": { "type": "string" }
            },
            "$defs": { "owner": { "type": "object", "required": ["name"], "properties": { "name": { "type": "string" } } } }
        });
        assert_eq!(
            Value::Object(arguments(&schema)),
            json!({ "id": 3, "kind": "cat", "tags": ["red"], "owner": { "name": "text" }, "when": "2026-01-31" })
        );
    }

    #[test]
    fn a_schema_without_end_comes_to_one() {
        let schema = json!({
            "type": "object", "required": ["next"], "properties": { "next": { "$ref": "#" } }
        });
        assert!(serde_json::to_string(&arguments(&schema)).unwrap().len() < 200);
        assert!(arguments(&json!({ "$ref": "#/nowhere" })).is_empty());
    }
}
