//! YAML into a located tree.
//!
//! Scalars follow the YAML 1.2 core schema, minus what its readers disagree about: only `true` and `false` (in
//! their three spellings) are booleans, `yes`, `on` and `NO` are text, and so is `012`, which is 10 to some and 12 to
//! others. Tags, merge keys and second documents are refused rather than guessed at.

use std::collections::HashMap;

pub(super) use gantry_core::scalar::number;
use granit_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, StrInput};

use super::tree::{Entry, MAX_DEPTH, Node, Syntax, TOO_DEEP, Value};

/// Bytes that anchors and aliases may copy in one file; aliases of aliases grow exponentially without it.
const MAX_COPIED_BYTES: usize = 1 << 20;
/// What a node counts for in that sum, besides its text.
const NODE_BYTES: usize = 32;

pub(super) fn parse(text: &str) -> Result<Node, Syntax> {
    let options = granit_parser::options! {
        emit_comments: false,
        // One more than a tree may have, so that the reader below says it in its own words.
        flow_nesting_limit: MAX_DEPTH + 1,
        block_nesting_limit: MAX_DEPTH + 1,
    };
    let events = Parser::new_from_str_with_options(text, options);
    Reader { events, anchors: HashMap::new(), copied: 0 }.stream()
}

struct Reader<'a> {
    events: Parser<'a, StrInput<'a>>,
    anchors: HashMap<usize, Node>,
    copied: usize,
}

#[expect(clippy::wildcard_enum_match_arm, reason = "events may grow, and one that is not read is an error")]
impl<'a> Reader<'a> {
    fn stream(mut self) -> Result<Node, Syntax> {
        let mut root = None;
        while let Some(next) = self.events.next_event() {
            let (event, span) = next.map_err(|error| invalid(&error))?;
            match event {
                Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd | Event::StreamEnd => {}
                _ if root.is_some() => {
                    return Err(at(&span, "a second document starts here; a configuration is one"));
                }
                event => root = Some(self.node(event, &span, 0)?),
            }
        }
        Ok(root.unwrap_or(Node { value: Value::Null, line: 1 }))
    }

    fn next(&mut self) -> Result<(Event<'a>, Span), Syntax> {
        let ended = Syntax { line: 1, column: 1, message: "the file ends too early".to_owned() };
        self.events.next_event().ok_or(ended)?.map_err(|error| invalid(&error))
    }

    fn node(&mut self, event: Event<'a>, span: &Span, depth: usize) -> Result<Node, Syntax> {
        if depth > MAX_DEPTH {
            return Err(at(span, TOO_DEEP));
        }
        if event.tag().is_some() {
            return Err(at(span, "tags are not read; remove it, or put the value in quotes if it is text"));
        }
        let anchor = event.anchor_id();
        let value = match event {
            Event::Alias(id) => return self.alias(id, span, depth),
            Event::Scalar(text, ScalarStyle::Plain, ..) => plain(&text),
            Event::Scalar(text, ..) => Value::text(text),
            Event::SequenceStart(..) => self.list(depth)?,
            Event::MappingStart(..) => self.map(depth)?,
            other => return Err(at(span, format!("expected a value, found {other:?}"))),
        };
        let node = Node { value, line: span.start.line() };
        if let Some(id) = anchor {
            self.charge(&node, span)?;
            self.anchors.insert(id, node.clone());
        }
        Ok(node)
    }

    fn list(&mut self, depth: usize) -> Result<Value, Syntax> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Value::List(items)),
                (event, span) => items.push(self.node(event, &span, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value, Syntax> {
        let mut entries = Vec::new();
        loop {
            let (event, span) = self.next()?;
            let key = match &event {
                Event::MappingEnd => return Ok(Value::Map(entries)),
                Event::Scalar(text, ScalarStyle::Plain, ..) if text == "<<" => {
                    return Err(at(&span, "merge keys (<<) are not read; write the keys out"));
                }
                Event::Scalar(text, _, _, None) => text.to_string(),
                _ => return Err(at(&span, "a key must be plain text, without a tag or an alias")),
            };
            let line = span.start.line();
            // A key may carry an anchor of its own.
            self.node(event, &span, depth + 1)?;
            let (event, span) = self.next()?;
            entries.push(Entry { key, line, node: self.node(event, &span, depth + 1)? });
        }
    }

    fn alias(&mut self, id: usize, span: &Span, depth: usize) -> Result<Node, Syntax> {
        // An anchor is known once its node is complete, so an alias inside its own anchor finds nothing.
        let Some(node) = self.anchors.get(&id).cloned() else {
            return Err(at(span, "this alias is inside the value it refers to"));
        };
        if depth + height(&node) > MAX_DEPTH {
            return Err(at(span, TOO_DEEP));
        }
        self.charge(&node, span)?;
        Ok(node)
    }

    fn charge(&mut self, node: &Node, span: &Span) -> Result<(), Syntax> {
        self.copied += weight(node);
        if self.copied > MAX_COPIED_BYTES {
            return Err(at(
                span,
                "anchors and aliases repeat more than 1 MiB; write the file with fewer of them",
            ));
        }
        Ok(())
    }
}

/// Levels below a node.
fn height(node: &Node) -> usize {
    let items = node.value.items().iter();
    let below =
        items.chain(node.value.entries().iter().map(|entry| &entry.node)).map(|node| height(node) + 1);
    below.max().unwrap_or(0)
}

fn weight(node: &Node) -> usize {
    NODE_BYTES
        + match &node.value {
            Value::Null | Value::Flag(_) | Value::Number(_) => 0,
            Value::Text(text) => text.text.len(),
            Value::List(items) => items.iter().map(weight).sum(),
            Value::Map(entries) => entries.iter().map(|entry| entry.key.len() + weight(&entry.node)).sum(),
        }
}

fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Flag(true),
        "false" | "False" | "FALSE" => Value::Flag(false),
        _ => number(text).map_or_else(|| Value::text(text), Value::Number),
    }
}

fn invalid(error: &ScanError) -> Syntax {
    place(error.marker(), format!("not valid YAML: {}", error.info()))
}

fn at(span: &Span, message: impl Into<String>) -> Syntax {
    place(&span.start, message)
}

fn place(marker: &Marker, message: impl Into<String>) -> Syntax {
    Syntax { line: marker.line().max(1), column: marker.col() + 1, message: message.into() }
}
