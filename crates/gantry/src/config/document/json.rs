//! JSON into a located tree.
//!
//! `serde_json` gives no positions, but a `RawValue` borrows from the text, so its address says where it stands. Each
//! level is read as raw pieces and every piece is read again, which the limits on size and depth make cheap enough.

use gantry_core::options::Pairs;
use gantry_core::yaml::Place;
use serde_json::Number;
use serde_json::value::RawValue;

use super::{Entry, Lines, MAX_DEPTH, Node, Syntax, TOO_DEEP, Value};

pub(super) fn parse(text: &str) -> Result<Node, Syntax> {
    let raw: &RawValue = serde_json::from_str(text).map_err(|error| Syntax {
        place: Place { line: error.line().max(1), column: error.column().max(1) },
        message: format!("not valid JSON: {}", reason(&error)),
    })?;
    Reader { text, lines: Lines::new(text) }.node(raw, 0)
}

struct Reader<'a> {
    text: &'a str,
    lines: Lines<'a>,
}

impl<'a> Reader<'a> {
    fn node(&self, raw: &'a RawValue, depth: usize) -> Result<Node, Syntax> {
        let json = raw.get();
        let start = self.offset(raw);
        if depth > MAX_DEPTH {
            return Err(self.lines.syntax(start, TOO_DEEP));
        }
        let failed = |error| self.failed(start, &error);
        let value = match json.as_bytes().first() {
            Some(b'{') => self.map(raw, depth)?,
            Some(b'[') => {
                let items: Vec<&RawValue> = serde_json::from_str(json).map_err(failed)?;
                let nodes = items.into_iter().map(|item| self.node(item, depth + 1));
                Value::List(nodes.collect::<Result<_, _>>()?)
            }
            Some(b'"') => Value::Text(serde_json::from_str(json).map_err(failed)?),
            Some(b't') => Value::Bool(true),
            Some(b'f') => Value::Bool(false),
            Some(b'n') => Value::Null,
            _ => Value::Number(serde_json::from_str::<Number>(json).map_err(failed)?),
        };
        Ok(Node { value, place: self.lines.place(start) })
    }

    fn map(&self, raw: &'a RawValue, depth: usize) -> Result<Value, Syntax> {
        // All pairs in order, also those with the same key.
        let pairs: Pairs<&RawValue, &RawValue> =
            serde_json::from_str(raw.get()).map_err(|error| self.failed(self.offset(raw), &error))?;
        let entry = |(raw_key, value): (&'a RawValue, &'a RawValue)| {
            let start = self.offset(raw_key);
            let key = serde_json::from_str(raw_key.get()).map_err(|error| self.failed(start, &error))?;
            let (place, node) = (self.lines.place(start), self.node(value, depth + 1)?);
            Ok(Entry { key, is_merge: false, place, node })
        };
        Ok(Value::Map(pairs.0.into_iter().map(entry).collect::<Result<_, _>>()?))
    }

    fn offset(&self, raw: &RawValue) -> usize {
        raw.get().as_ptr().addr().saturating_sub(self.text.as_ptr().addr())
    }

    /// A piece that is well-formed and still unreadable: a lone surrogate, a number out of range.
    fn failed(&self, start: usize, error: &serde_json::Error) -> Syntax {
        self.lines.syntax(start, format!("not valid JSON: {}", reason(error)))
    }
}

/// The message without the position that `serde_json` appends to it.
fn reason(error: &serde_json::Error) -> String {
    let message = error.to_string();
    message.rsplit_once(" at line ").map_or(message.clone(), |(reason, _)| reason.to_owned())
}
