//! `--rich-results`: what is right in the newest version and unknown to older ones.

use super::{Effect, NOTHING, definition};
use serde_json::{Value, json};

/// What `numbers` answers: before 2026-07-28 only an object may stand in `structuredContent`.
pub(in crate::faulty) const NUMBERS_RESULT: &str =
    r#"{"content":[{"type":"text","text":"[1,2,3]"}],"structuredContent":[1,2,3],"isError":false}"#;

/// What `link` answers: before 2025-06-18 there are no links to resources.
pub(in crate::faulty) const LINK_RESULT: &str = r#"{"content":[{"type":"text","text":"see"},{"type":"resource_link","uri":"faulty://text/one","name":"one","title":"The first","description":"of five","mimeType":"text/plain"}],"isError":false}"#;

/// What `rows` answers: a text that says how many rows there are, and the rows beside it.
pub(in crate::faulty) fn rows(n: u64) -> String {
    let rows: Vec<Value> = (1..=n).map(|n| json!({ "id": n, "name": format!("row {n}") })).collect();
    let content = json!([{ "type": "text", "text": format!("{n} rows") }]);
    json!({ "content": content, "structuredContent": { "rows": rows }, "isError": false }).to_string()
}

pub(super) fn tools() -> [Value; 3] {
    let mut numbers = definition("numbers", Effect::Reads, "Answers an array", NOTHING);
    numbers["outputSchema"] = json!({ "type": "array", "items": { "type": "integer" } });
    let count = r#"{"count":{"type":"integer"}}"#;
    [
        numbers,
        definition("link", Effect::Reads, "Answers a link to a resource", NOTHING),
        definition("rows", Effect::Reads, "Answers that many rows, and in its text only how many", count),
    ]
}
