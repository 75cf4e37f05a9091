//! YAML as a tree whose nodes know their positions.
//!
//! Scalars follow the YAML 1.2 core schema without the spellings that its readers disagree about: only `true` and `false`
//! (in three spellings each) are booleans; `yes`, `on`, `NO`, `012` and `10_069` are text. A key is the text as written.

use granit_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};
use serde_json::Number;
use std::collections::HashMap;
use std::rc::Rc;

/// How a text is read, and what it may cost.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    pub dialect: Dialect,
    pub depth: usize,
    /// Scalars, lists and maps, copies included.
    pub values: usize,
    /// What anchors and aliases may copy; aliases of aliases grow exponentially without it.
    pub copied_mib: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Refuses tags and merge keys.
    Strict,
    /// Reads merge keys and the tags of the core schema. A number that would be written differently is text, since
    /// `1.10` is mostly a version; a tag such as `!!float` makes it a number.
    Extended,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub value: Value,
    pub place: Place,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    /// In file order. A key may appear twice.
    Map(Vec<Entry>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub key: String,
    /// Whether the key is `<<` without quotes.
    pub is_merge: bool,
    pub place: Place,
    pub node: Node,
}

impl Value {
    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// The entries of a map; none for anything else.
    pub fn entries(&self) -> &[Entry] {
        if let Self::Map(entries) = self { entries } else { &[] }
    }

    pub fn entries_mut(&mut self) -> &mut [Entry] {
        if let Self::Map(entries) = self { entries } else { &mut [] }
    }

    /// The items of a list; none for anything else.
    pub fn items(&self) -> &[Node] {
        if let Self::List(items) = self { items } else { &[] }
    }
}

/// Line and column, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub line: usize,
    pub column: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} at line {} column {}", place.line, place.column)]
pub struct Error {
    pub place: Place,
    pub message: String,
}

/// Reads the one document of a text. Returns its root and the number of its values.
pub fn parse(text: &str, options: Options) -> Result<(Node, usize), Error> {
    let parser_options = granit_parser::options! {
        emit_comments: false,
        // One more than `node` allows, so that `node` words the error.
        flow_nesting_limit: options.depth + 1,
        block_nesting_limit: options.depth + 1,
    };
    let events = Parser::new_from_str_with_options(text, parser_options);
    Reader { events, options, anchors: HashMap::new(), values: 0, copied: 0 }.stream()
}

/// What a value counts for besides its text in the limit on copies.
const VALUE_BYTES: usize = 64;

struct Reader<'a> {
    events: Parser<'a, StrInput<'a>>,
    options: Options,
    anchors: HashMap<usize, Rc<Node>>,
    values: usize,
    /// The bytes of all copies so far.
    copied: usize,
}

/// How large a node is.
struct Extent {
    values: usize,
    /// `VALUE_BYTES` for each value, and the length of all keys and texts.
    bytes: usize,
    /// Levels below the node.
    height: usize,
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the parser's list of events is open; an unknown one is an error"
)]
impl<'a> Reader<'a> {
    fn stream(mut self) -> Result<(Node, usize), Error> {
        let mut root = None;
        let is_extended = self.options.dialect == Dialect::Extended;
        while let Some(next) = self.events.next_event() {
            let (event, span) = next.map_err(|error| invalid(&error))?;
            match event {
                Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd | Event::StreamEnd => {}
                // An empty document after a last `---`.
                Event::Scalar(text, ScalarStyle::Plain, ..)
                    if is_extended && root.is_some() && is_null(&text) => {}
                _ if root.is_some() => {
                    return Err(at(&span, "a second document starts here; only files with one are read"));
                }
                event => root = Some(self.node(event, &span, 0)?),
            }
        }
        let empty = Node { value: Value::Null, place: Place { line: 1, column: 1 } };
        Ok((root.unwrap_or(empty), self.values))
    }

    fn next(&mut self) -> Result<(Event<'a>, Span), Error> {
        let place = Place { line: 1, column: 1 };
        let next = self.events.next_event();
        next.ok_or(Error { place, message: "the text ends too early".to_owned() })?
            .map_err(|error| invalid(&error))
    }

    fn node(&mut self, event: Event<'a>, span: &Span, depth: usize) -> Result<Node, Error> {
        if depth > self.options.depth {
            return Err(self.too_deep(span));
        }
        if let Event::Alias(id) = event {
            return self.alias(id, span, depth);
        }
        self.check_tag(&event, span)?;
        self.count(1, span)?;
        let anchor = event.anchor_id();
        let value = match event {
            Event::Scalar(text, style, _, tag) => self.scalar(text.into_owned(), style, tag.as_deref()),
            Event::SequenceStart(..) => self.list(depth)?,
            Event::MappingStart(..) => self.map(depth)?,
            other => return Err(at(span, format!("expected a value, found {other:?}"))),
        };
        let node = Node { value, place: place(&span.start) };
        if let Some(id) = anchor {
            self.copy(&node, span)?;
            self.anchors.insert(id, Rc::new(node.clone()));
        }
        Ok(node)
    }

    fn check_tag(&self, event: &Event<'a>, span: &Span) -> Result<(), Error> {
        if self.options.dialect == Dialect::Strict && event.tag().is_some() {
            return Err(at(span, "tags are not read; remove it, or put the value in quotes if it is text"));
        }
        Ok(())
    }

    fn list(&mut self, depth: usize) -> Result<Value, Error> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Value::List(items)),
                (event, span) => items.push(self.node(event, &span, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value, Error> {
        let mut entries = Vec::new();
        loop {
            let (event, span) = self.next()?;
            let is_merge = matches!(&event, Event::Scalar(text, ScalarStyle::Plain, ..) if text == "<<");
            if is_merge && self.options.dialect == Dialect::Strict {
                return Err(at(&span, "merge keys (<<) are not read; write the keys out"));
            }
            self.check_tag(&event, &span)?;
            let anchor = event.anchor_id();
            let key = match event {
                Event::MappingEnd => return Ok(Value::Map(entries)),
                Event::Scalar(text, ..) => text.into_owned(),
                _ => return Err(at(&span, "a key must be text, not a list, a mapping or an alias")),
            };
            let place = place(&span.start);
            if let Some(id) = anchor {
                let node = Node { value: Value::Text(key.clone()), place };
                self.copy(&node, &span)?;
                self.anchors.insert(id, Rc::new(node));
            }
            let (event, span) = self.next()?;
            entries.push(Entry { key, is_merge, place, node: self.node(event, &span, depth + 1)? });
        }
    }

    fn alias(&mut self, id: usize, span: &Span, depth: usize) -> Result<Node, Error> {
        // An anchor is known once its value is complete, so an alias inside its own anchor finds nothing.
        let Some(node) = self.anchors.get(&id).cloned() else {
            return Err(at(span, "this alias is inside the value it refers to"));
        };
        let Extent { values, height, .. } = self.copy(&node, span)?;
        if depth + height > self.options.depth {
            return Err(self.too_deep(span));
        }
        self.count(values, span)?;
        Ok(Node::clone(&node))
    }

    fn count(&mut self, values: usize, span: &Span) -> Result<(), Error> {
        self.values += values;
        if self.values > self.options.values {
            return Err(at(span, format!("it has more than {} values", self.options.values)));
        }
        Ok(())
    }

    /// Counts a copy of a node.
    fn copy(&mut self, node: &Node, span: &Span) -> Result<Extent, Error> {
        let extent = extent(node);
        self.copied += extent.bytes;
        let limit = self.options.copied_mib;
        if self.copied > limit << 20 {
            let message = format!(
                "anchors and aliases repeat more than {limit} MiB; write the file with fewer of them"
            );
            return Err(at(span, message));
        }
        Ok(extent)
    }

    /// A scalar as its tag says, else as it looks. A tag that is unknown or does not fit is ignored.
    fn scalar(&self, text: String, style: ScalarStyle, tag: Option<&Tag>) -> Value {
        let is_exact = |value: &Value| match value {
            Value::Number(number) => self.options.dialect == Dialect::Strict || number.to_string() == text,
            _ => true,
        };
        let value = match tag.and_then(Tag::core_suffix) {
            Some("str") => None,
            Some("int" | "float" | "bool" | "null") => plain(&text),
            Some(_) | None if style == ScalarStyle::Plain => plain(&text).filter(is_exact),
            Some(_) | None => None,
        };
        value.unwrap_or(Value::Text(text))
    }

    fn too_deep(&self, span: &Span) -> Error {
        at(span, format!("nested too deeply; at most {} levels are read", self.options.depth))
    }
}

fn extent(node: &Node) -> Extent {
    let own = |bytes: usize| Extent { values: 1, bytes: VALUE_BYTES + bytes, height: 0 };
    let add = |all: Extent, key: &str, part: &Node| {
        let part = extent(part);
        Extent {
            values: all.values + part.values,
            bytes: all.bytes + key.len() + part.bytes,
            height: all.height.max(part.height + 1),
        }
    };
    match &node.value {
        Value::Null | Value::Bool(_) | Value::Number(_) => own(0),
        Value::Text(text) => own(text.len()),
        Value::List(items) => items.iter().fold(own(0), |all, item| add(all, "", item)),
        Value::Map(entries) => entries.iter().fold(own(0), |all, entry| add(all, &entry.key, &entry.node)),
    }
}

/// The value of a scalar without quotes; `None` if it is text.
fn plain(text: &str) -> Option<Value> {
    match text {
        _ if is_null(text) => Some(Value::Null),
        "true" | "True" | "TRUE" => Some(Value::Bool(true)),
        "false" | "False" | "FALSE" => Some(Value::Bool(false)),
        _ => number(text).map(Value::Number),
    }
}

fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

fn invalid(error: &ScanError) -> Error {
    Error { place: place(error.marker()), message: format!("not valid YAML: {}", error.info()) }
}

fn at(span: &Span, message: impl Into<String>) -> Error {
    Error { place: place(&span.start), message: message.into() }
}

fn place(marker: &Marker) -> Place {
    Place { line: marker.line().max(1), column: marker.col() + 1 }
}

/// A plain scalar as a number. `.inf`, `.nan` and what overflows stay text, as JSON has no such numbers.
pub fn number(text: &str) -> Option<Number> {
    if let Some(digits) = text.strip_prefix("0x") {
        return radix(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return radix(digits, 8);
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        if digits.len() > 1 && digits.starts_with('0') {
            return None;
        }
        let signed = text.parse::<i64>().map(Number::from);
        if let Ok(number) = signed.or_else(|_| text.parse::<u64>().map(Number::from)) {
            return Some(number);
        }
    }
    let float = digits.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    text.parse().ok().filter(|_| float).and_then(Number::from_f64)
}

fn radix(digits: &str, radix: u32) -> Option<Number> {
    let plain = digits.chars().all(|digit| digit.is_digit(radix));
    u64::from_str_radix(digits, radix).ok().filter(|_| plain).map(Number::from)
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn a_number_is_what_every_reader_takes_for_one() {
        for (text, expected) in [
            ("7", "7"),
            ("-7", "-7"),
            ("+7", "7"),
            ("0x1F", "31"),
            ("0o17", "15"),
            ("1.5e3", "1500.0"),
            ("0", "0"),
        ] {
            assert_eq!(number(text).map(|number| number.to_string()).as_deref(), Some(expected), "{text}");
        }
        for text in
            ["012", "10_069", "1:30", ".inf", ".nan", "1e999", "0x", "0xg", "2001-01-01", "", "-", "e5"]
        {
            assert_eq!(number(text), None, "{text}");
        }
    }
}
