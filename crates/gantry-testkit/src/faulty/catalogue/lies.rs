//! `--lying-schema`: definitions that promise what is not so.

use super::{Effect, NOTHING, definition};
use serde_json::{Value, json};

/// What `lying-output` answers: its outputSchema promises a number.
pub(in crate::faulty) const LYING_RESULT: &str = r#"{"content":[{"type":"text","text":"{\"n\":\"many\"}"}],"structuredContent":{"n":"many"},"isError":false}"#;

pub(super) fn tools() -> Vec<Value> {
    let mut tools: Vec<Value> = [
        ("lying-type", json!({ "type": "object", "properties": { "a": { "type": "strin" } } })),
        ("lying-root", json!({ "type": "array" })),
        ("lying-text", json!("nonsense")),
        ("lying-null", Value::Null),
        ("lying-id", hidden()),
        ("costly-circles", circles()),
        (
            "costly-pattern",
            json!({ "type": "object", "properties": { "a": { "pattern": "\\p{L}".repeat(40_000) } } }),
        ),
    ]
    .into_iter()
    .map(|(name, schema)| {
        let mut tool = definition(name, Effect::Reads, "Its inputSchema is none", NOTHING);
        tool["inputSchema"] = schema;
        tool
    })
    .collect();
    let mut output = definition("lying-output", Effect::Reads, "Breaks its own outputSchema", NOTHING);
    output["outputSchema"] =
        json!({ "type": "object", "properties": { "n": { "type": "number" } }, "required": ["n"] });
    tools.push(output);
    tools
}

/// References that double thirty times, behind an `$id` that makes them look like one to nothing.
fn hidden() -> Value {
    let to = |n: u32| json!({ "$ref": format!("#/$defs/d{n}") });
    let mut doubling: serde_json::Map<String, Value> =
        (0..30).map(|n| (format!("d{n}"), json!({ "allOf": [to(n + 1), to(n + 1)] }))).collect();
    doubling.insert("d30".to_owned(), json!({}));
    let part = json!({ "$id": "http://x.example/b", "$ref": "#/$defs/d0", "$defs": doubling });
    json!({ "type": "object", "$ref": "#/$defs/part", "$defs": { "part": part, "d0": {} } })
}

/// Definitions that each lead back to themselves and on to the next, so that a value costs twice as much at each level.
fn circles() -> Value {
    let to = |n: u32| json!({ "$ref": format!("#/$defs/a{n}") });
    let circle = |n: u32| json!({ "properties": { "p": { "allOf": [to(n), to((n + 1).min(29))] }, "z": { "type": "string" } } });
    let all: serde_json::Map<String, Value> = (0..30).map(|n| (format!("a{n}"), circle(n))).collect();
    json!({ "type": "object", "allOf": [to(29), to(20), to(10), to(0)], "$defs": all })
}
