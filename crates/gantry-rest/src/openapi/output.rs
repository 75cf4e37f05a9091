//! The output schema of an operation: what a success gives back.
//!
//! There is one only if every success gives back JSON that the document describes, since a tool with an output schema
//! has to give back something that fits it every time.

use crate::openapi::input::{Work, essence, is_any, is_json_for_sure};
use crate::openapi::schema::{Converter, Direction, fitted};
use crate::openapi::spot::{Spot, reading};
use gantry_core::schema::SchemaText;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};

/// Responses that are looked at.
const RESPONSES: usize = 100;
/// Media types of one response that are looked at.
const MEDIA_TYPES: usize = 50;
/// The output schemas of a document that were made already: many operations give back the same.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    /// By the places of the schemas that they are made of.
    known: HashMap<Vec<usize>, Option<SchemaText>>,
}

impl Outputs {
    /// What a success gives back, where the document says so for all of them. Nothing once the work is spent: a tool
    /// without an output schema is a tool.
    pub(crate) fn of(&mut self, operation: Spot<'_>, work: &mut Work) -> Option<SchemaText> {
        let mut looks = 0;
        let schemas = described_successes(operation, &mut looks);
        work.look(looks);
        let schemas = schemas.filter(|schemas| !schemas.is_empty())?;
        let (places, schemas): (Vec<usize>, Vec<Spot<'_>>) = schemas.into_iter().unzip();
        let schema = match self.known.get(&places) {
            Some(known) => known.clone(),
            None => {
                let made = made(&schemas, work).map(|schema| work.text(&schema));
                work.keep(size_of_val(places.as_slice()));
                self.known.insert(places, made.clone());
                made
            }
        };
        work.keep(schema.as_ref().map_or(0, |schema| schema.as_str().len()));
        schema.filter(|_| work.check().is_ok())
    }
}

/// The schemas of all successes, each once and with its place. Counts what is looked at for it.
fn described_successes<'a>(operation: Spot<'a>, looks: &mut usize) -> Option<Vec<(usize, Spot<'a>)>> {
    let mut seen = HashSet::new();
    let mut schemas = Vec::new();
    for response in successes(operation.get("responses")?.followed(looks).ok()?, looks) {
        let schema = described(operation, response.followed(looks).ok()?, looks)?;
        let place = schema.aliased(looks).identity();
        if seen.insert(place) {
            schemas.push((place, schema));
        }
    }
    Some(schemas)
}

fn made(schemas: &[Spot<'_>], work: &mut Work) -> Option<Value> {
    let schema = fitted(Direction::Output, 0, |detail| {
        let converter = Converter::new(Direction::Output, detail);
        work.tried(converter.build(|converter| {
            let mut parts: Vec<Value> = Vec::new();
            for schema in schemas {
                let part = converter.schema(*schema)?;
                if !parts.contains(&part) {
                    parts.push(part);
                }
            }
            Ok(together(parts))
        }))
    });
    // What says nothing helps nobody.
    let schema = schema.ok().map(|(schema, _)| schema);
    schema.filter(|schema| schema.get("type").is_some() || schema.get("anyOf").is_some())
}

/// The responses that are successes. Counts what is looked at for it.
fn successes<'a>(responses: Spot<'a>, looks: &mut usize) -> Vec<Spot<'a>> {
    let is_success = |status: &str| {
        let mut chars = status.chars();
        chars.next() == Some('2')
            && status.len() == 3
            && chars.all(|c| c.is_ascii_digit() || matches!(c, 'x' | 'X'))
    };
    let found: Vec<Spot<'_>> = responses
        .members()
        .inspect(|_| *looks += 1)
        .filter(|(status, _)| is_success(status))
        .map(|(_, response)| response)
        .take(RESPONSES)
        .collect();
    if found.is_empty() { responses.get("default").into_iter().collect() } else { found }
}

/// The schema of the JSON that a response holds.
fn described<'a>(operation: Spot<'a>, response: Spot<'a>, looks: &mut usize) -> Option<Spot<'a>> {
    let schema = match response.get("content") {
        Some(content) => by_media(content, looks)?,
        // Swagger 2.0 has the schema beside the media types.
        None => response.get("schema").filter(|_| gives_json(operation, looks))?,
    };
    let target = schema.followed(looks).ok()?;
    let says_something = target.members().next().is_some();
    (says_something && target.text("format") != Some("binary") && target.text("type") != Some("file"))
        .then_some(schema)
}

fn by_media<'a>(content: Spot<'a>, looks: &mut usize) -> Option<Spot<'a>> {
    let all: Vec<(&str, Spot<'a>)> = content.members().take(MEDIA_TYPES).collect();
    *looks += all.iter().map(|(media, _)| 2 + reading(media.len())).sum::<usize>();
    let schema = |wanted: fn(&str) -> bool| {
        all.iter().filter(|(media, _)| wanted(media)).find_map(|(_, found)| found.get("schema"))
    };
    schema(is_one_json).or_else(|| schema(is_any).filter(|schema| is_structured(*schema)))
}

/// Whether something is more than a text, which under `*/*` would hardly be JSON.
fn is_structured(schema: Spot<'_>) -> bool {
    schema.resolved().is_ok_and(|schema| schema.text("type") != Some("string"))
}

fn gives_json(operation: Spot<'_>, looks: &mut usize) -> bool {
    let whole = || operation.bundle.root().and_then(|root| root.get("produces"));
    let Some(produces) = operation.get("produces").or_else(whole) else { return true };
    let listed = produces.elements().take(MEDIA_TYPES).filter_map(|media| media.value.as_str());
    let mut media = listed.inspect(|media| *looks += 2 + reading(media.len())).peekable();
    media.peek().is_none() || media.any(|media| is_one_json(media) || is_any(media))
}

/// Whether this is one JSON value, and not a stream of lines of which each is one.
fn is_one_json(media: &str) -> bool {
    is_json_for_sure(media) && !essence(media).ends_with("/stream+json")
}

/// One of several schemas.
fn together(mut parts: Vec<Value>) -> Map<String, Value> {
    if parts.len() == 1 {
        return match parts.pop() {
            Some(Value::Object(only)) => only,
            Some(_) | None => Map::new(),
        };
    }
    let objects = parts.iter().all(|part| part.get("type").is_some_and(|kind| kind == "object"));
    let kind = objects.then(|| ("type".to_owned(), Value::from("object")));
    kind.into_iter().chain([("anyOf".to_owned(), Value::Array(parts))]).collect()
}

#[cfg(test)]
mod tests;
