//! YAML into plain values.
//!
//! Scalars follow the YAML 1.2 core schema, minus what its readers disagree about: only `true` and `false` (in their three
//! spellings) are booleans, `yes`, `on` and `NO` are text, and so are `012` and `10_069`. A key is text as it is written,
//! so the status `200` needs no quotes. A number is only what is written again as it was: `1.10` is a version, and as a
//! number it would be another one. Whoever wants a number can still make one of `1e3`.

use crate::openapi::limits::{COPIED_NODES, DEPTH};
use gantry_core::scalar::number;
use granit_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Bytes of text that count like one more node, so that the limit on copies is one on memory.
const NODE_TEXT: usize = 64;

/// Keys that are told of because they stand twice.
const DOUBLED: usize = 10;
/// Characters of such a key that are shown.
const KEY_CHARS: usize = 60;

/// What was read.
#[derive(Debug, Default)]
pub(crate) struct Read {
    pub(crate) value: Value,
    pub(crate) nodes: usize,
    /// What a person should know, though it could be read.
    pub(crate) warnings: Vec<String>,
}

/// The one document in a text. It may have as many nodes as `room`.
///
/// # Errors
/// It is no YAML, or it would cost too much. Says where.
pub(crate) fn parse(text: &str, room: usize) -> Result<Read, String> {
    let options = granit_parser::options! {
        emit_comments: false,
        // One more than a value may have, so that the reader below says it in its own words.
        flow_nesting_limit: LEVELS,
        block_nesting_limit: LEVELS,
    };
    let events = Parser::new_from_str_with_options(text, options);
    let warnings = Vec::new();
    Reader { events, anchors: HashMap::new(), nodes: 0, weight: 0, copied: 0, room, warnings }.stream()
}

const LEVELS: usize = DEPTH + 1;

struct Reader<'a> {
    events: Parser<'a, StrInput<'a>>,
    anchors: HashMap<usize, Anchor>,
    /// Nodes so far, and the same with the length of their texts. Copies are among them.
    nodes: usize,
    weight: usize,
    /// The weight of all copies so far.
    copied: usize,
    room: usize,
    warnings: Vec<String>,
}

/// A value that has a name.
struct Anchor {
    value: Value,
    nodes: usize,
    weight: usize,
    /// Levels below it.
    height: usize,
}

#[expect(clippy::wildcard_enum_match_arm, reason = "events may grow, and one that is not read is an error")]
impl<'a> Reader<'a> {
    fn stream(mut self) -> Result<Read, String> {
        let mut root = None;
        while let Some(next) = self.events.next_event() {
            let (event, span) = next.map_err(|error| invalid(&error))?;
            match event {
                Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd | Event::StreamEnd => {}
                // What follows a last `---` is nothing.
                Event::Scalar(text, ScalarStyle::Plain, ..)
                    if root.is_some() && plain(&text) == Some(Value::Null) => {}
                _ if root.is_some() => {
                    return Err(at(&span, "a second document starts here; only files with one are read"));
                }
                event => root = Some(self.node(event, &span, 0)?),
            }
        }
        Ok(Read { value: root.unwrap_or(Value::Null), nodes: self.nodes, warnings: self.warnings })
    }

    fn next(&mut self) -> Result<(Event<'a>, Span), String> {
        let next = self.events.next_event().ok_or_else(|| "it ends too early".to_owned())?;
        next.map_err(|error| invalid(&error))
    }

    fn node(&mut self, event: Event<'a>, span: &Span, depth: usize) -> Result<Value, String> {
        if depth > DEPTH {
            return Err(too_deep(span));
        }
        let (nodes, weight) = (self.nodes, self.weight);
        let anchor = event.anchor_id();
        let value = match event {
            Event::Alias(id) => return self.alias(id, span, depth),
            Event::Scalar(text, style, _, tag) => {
                self.count(1, 1 + text.len() / NODE_TEXT, span)?;
                scalar(text.into_owned(), style, tag.as_deref())
            }
            Event::SequenceStart(..) => {
                self.count(1, 1, span)?;
                self.list(depth)?
            }
            Event::MappingStart(..) => {
                self.count(1, 1, span)?;
                self.map(depth)?
            }
            other => return Err(at(span, &format!("expected a value, found {other:?}"))),
        };
        if let Some(id) = anchor {
            let (nodes, weight) = (self.nodes - nodes, self.weight - weight);
            self.charge(weight, span)?;
            self.anchors.insert(id, Anchor { value: value.clone(), nodes, weight, height: height(&value) });
        }
        Ok(value)
    }

    fn list(&mut self, depth: usize) -> Result<Value, String> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Value::Array(items)),
                (event, span) => items.push(self.node(event, &span, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value, String> {
        let mut members = Map::new();
        let mut merged = Vec::new();
        loop {
            let (event, span) = self.next()?;
            let merge = matches!(&event, Event::Scalar(text, ScalarStyle::Plain, ..) if text == "<<");
            let key = match event {
                Event::MappingEnd => break,
                event => self.key(event, &span)?,
            };
            if !merge && self.warnings.len() < DOUBLED && members.contains_key(&key) {
                let key: String = key.chars().take(KEY_CHARS).collect();
                self.warnings
                    .push(at(&span, &format!("the last {key:?} counts, as there is another before it,")));
            }
            let (event, span) = self.next()?;
            let value = self.node(event, &span, depth + 1)?;
            if merge {
                merged.extend(mappings(value, &span)?);
            } else {
                members.insert(key, value);
            }
        }
        // What is written out wins over what is merged, and of that the first.
        for (key, value) in merged.into_iter().flatten() {
            members.entry(key).or_insert(value);
        }
        Ok(Value::Object(members))
    }

    /// A key as it is written, whatever it would be as a value.
    fn key(&mut self, event: Event<'a>, span: &Span) -> Result<String, String> {
        let anchor = event.anchor_id();
        let key = match event {
            Event::Scalar(text, ..) => text.into_owned(),
            Event::Alias(id) => match self.alias(id, span, 0)? {
                Value::String(text) => text,
                Value::Object(_) | Value::Array(_) => return Err(at(span, "a key must be text")),
                value @ (Value::Null | Value::Bool(_) | Value::Number(_)) => value.to_string(),
            },
            _ => return Err(at(span, "a key must be text")),
        };
        self.weight += key.len() / NODE_TEXT;
        if let Some(id) = anchor {
            let weight = 1 + key.len() / NODE_TEXT;
            self.charge(weight, span)?;
            let value = Value::String(key.clone());
            self.anchors.insert(id, Anchor { value, nodes: 1, weight, height: 0 });
        }
        Ok(key)
    }

    fn alias(&mut self, id: usize, span: &Span, depth: usize) -> Result<Value, String> {
        // An anchor is known once its value is complete, so an alias inside its own anchor finds nothing.
        let Some(anchor) = self.anchors.get(&id) else {
            return Err(at(span, "this alias is inside the value it refers to"));
        };
        if depth + anchor.height > DEPTH {
            return Err(too_deep(span));
        }
        let (nodes, weight) = (anchor.nodes, anchor.weight);
        self.charge(weight, span)?;
        self.count(nodes, weight, span)?;
        let copy = self.anchors.get(&id).map(|anchor| anchor.value.clone());
        Ok(copy.unwrap_or_default())
    }

    /// Counts what is read, before it is kept.
    fn count(&mut self, nodes: usize, weight: usize, span: &Span) -> Result<(), String> {
        self.nodes += nodes;
        self.weight += weight;
        if self.nodes > self.room {
            return Err(at(span, &format!("it has more than {} values", self.room)));
        }
        Ok(())
    }

    /// Counts what is copied, before it is.
    fn charge(&mut self, weight: usize, span: &Span) -> Result<(), String> {
        self.copied += weight;
        if self.copied > COPIED_NODES {
            let told = format!("its anchors and aliases (&, *) repeat more than {COPIED_NODES} values");
            return Err(at(span, &told));
        }
        Ok(())
    }
}

/// What is under a merge key: a mapping, or several of them.
fn mappings(value: Value, span: &Span) -> Result<Vec<Map<String, Value>>, String> {
    let wrong = || at(span, "under a merge key (<<) there must be a mapping or a list of mappings");
    let mapping = |value| match value {
        Value::Object(map) => Ok(map),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Err(wrong()),
    };
    match value {
        Value::Array(items) => items.into_iter().map(mapping).collect(),
        one @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => {
            mapping(one).map(|map| vec![map])
        }
    }
}

/// Levels below a value.
fn height(value: &Value) -> usize {
    let levels = |value| height(value) + 1;
    match value {
        Value::Array(items) => items.iter().map(levels).max().unwrap_or(0),
        Value::Object(members) => members.values().map(levels).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// A scalar as its tag says, else as it looks. A tag that it does not fit, or that nobody knows, says nothing.
fn scalar(text: String, style: ScalarStyle, tag: Option<&Tag>) -> Value {
    let looks = |text: &str| if style == ScalarStyle::Plain { plain(text) } else { None };
    let value = match tag.and_then(Tag::core_suffix) {
        Some("str") => None,
        Some("int" | "float" | "bool" | "null") => plain(&text).or_else(|| number(&text).map(Value::Number)),
        Some(_) | None => looks(&text),
    };
    value.unwrap_or(Value::String(text))
}

/// What a scalar without quotes is, if it is not text.
fn plain(text: &str) -> Option<Value> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Some(Value::Null),
        "true" | "True" | "TRUE" => Some(Value::Bool(true)),
        "false" | "False" | "FALSE" => Some(Value::Bool(false)),
        _ => number(text).filter(|number| number.to_string() == text).map(Value::Number),
    }
}

fn too_deep(span: &Span) -> String {
    at(span, &format!("it is nested deeper than {DEPTH} levels"))
}

fn invalid(error: &ScanError) -> String {
    place(error.marker(), &error.info())
}

fn at(span: &Span, message: &str) -> String {
    place(&span.start, message)
}

fn place(marker: &Marker, message: &str) -> String {
    format!("{message} at line {} column {}", marker.line().max(1), marker.col() + 1)
}

#[cfg(test)]
mod tests;
