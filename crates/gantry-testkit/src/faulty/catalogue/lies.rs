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
