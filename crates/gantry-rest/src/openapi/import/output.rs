//! The output schema of an operation.
//!
//! An operation has one only if every success returns JSON that the document describes, since every result of a tool with
//! an output schema has to fit it.

use crate::Object;
use crate::openapi::document::NodeRef;
use crate::openapi::media::{essence, is_any, is_only_json};
use crate::openapi::schema::{Direction, fit};
use serde_json::Value;
use std::collections::HashSet;

// Limit: responses of one operation that are read.
const RESPONSES: usize = 100;
// Limit: media types of one response that are read.
const MEDIA_TYPES: usize = 50;

/// The schema of what a success returns, where the document describes that for all of them.
pub(crate) fn schema(operation: NodeRef<'_>) -> Option<Value> {
    let schemas = described_successes(operation).filter(|schemas| !schemas.is_empty())?;
    let schema = fit(Direction::Output, |converter| {
        let mut parts: Vec<Object> = Vec::new();
        for schema in &schemas {
            let part = converter.schema(*schema)?;
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        Ok(any_of(parts))
    });
    schema.ok().filter(|schema| schema.get("type").is_some() || schema.get("anyOf").is_some())
}

/// The schemas of all successes, each once.
fn described_successes(operation: NodeRef<'_>) -> Option<Vec<NodeRef<'_>>> {
    let mut seen = HashSet::new();
    let mut schemas = Vec::new();
    for response in successes(operation.get("responses")?.resolved().ok()?) {
        let schema = described(operation, response.resolved().ok()?)?;
        if seen.insert(schema.skip_aliases().address()) {
            schemas.push(schema);
        }
    }
    Some(schemas)
}

fn successes(responses: NodeRef<'_>) -> Vec<NodeRef<'_>> {
    let is_success = |status: &str| {
        let mut chars = status.chars();
        chars.next() == Some('2')
            && status.len() == 3
            && chars.all(|c| c.is_ascii_digit() || matches!(c, 'x' | 'X'))
    };
    let found = responses.members().filter(|(status, _)| is_success(status));
    let found: Vec<NodeRef<'_>> = found.map(|(_, response)| response).take(RESPONSES).collect();
    if found.is_empty() { responses.get("default").into_iter().collect() } else { found }
}

/// The schema of the JSON in a response.
fn described<'a>(operation: NodeRef<'a>, response: NodeRef<'a>) -> Option<NodeRef<'a>> {
    let schema = match response.get("content") {
        Some(content) => by_media(content)?,
        // Swagger 2.0 has the schema beside the media types.
        None => response.get("schema").filter(|_| returns_json(operation))?,
    };
    let target = schema.resolved().ok()?;
    let says_something = target.members().next().is_some();
    (says_something && target.text("format") != Some("binary") && target.text("type") != Some("file"))
        .then_some(schema)
}

fn by_media(content: NodeRef<'_>) -> Option<NodeRef<'_>> {
    let all: Vec<(&str, NodeRef<'_>)> = content.members().take(MEDIA_TYPES).collect();
    let schema = |wanted: fn(&str) -> bool| {
        all.iter().filter(|(media, _)| wanted(media)).find_map(|(_, found)| found.get("schema"))
    };
    schema(is_one_json).or_else(|| schema(is_any).filter(|schema| is_structured(*schema)))
}

/// Whether a value is more than a text, which under `*/*` would hardly be JSON.
fn is_structured(schema: NodeRef<'_>) -> bool {
    schema.resolved().is_ok_and(|schema| schema.text("type") != Some("string"))
}

fn returns_json(operation: NodeRef<'_>) -> bool {
    let of_document = || operation.bundle.root().and_then(|root| root.get("produces"));
    let Some(produces) = operation.get("produces").or_else(of_document) else { return true };
    let listed = produces.elements().take(MEDIA_TYPES).filter_map(|media| media.value.as_str());
    let mut media = listed.peekable();
    media.peek().is_none() || media.any(|media| is_one_json(media) || is_any(media))
}

/// Whether this is one JSON value, and not a stream of lines of which each is one.
fn is_one_json(media: &str) -> bool {
    is_only_json(media) && !essence(media).ends_with("/stream+json")
}

fn any_of(mut parts: Vec<Object>) -> Object {
    if parts.len() == 1 {
        return parts.pop().unwrap_or_default();
    }
    let objects = parts.iter().all(|part| part.get("type").is_some_and(|name| name == "object"));
    let name = objects.then(|| ("type".to_owned(), Value::from("object")));
    let alternatives = parts.into_iter().map(Value::Object).collect();
    name.into_iter().chain([("anyOf".to_owned(), alternatives)]).collect()
}

#[cfg(test)]
mod tests;
