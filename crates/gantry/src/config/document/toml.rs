//! TOML into a located tree.

use serde_json::Number;
use toml::Spanned;
use toml::de::{DeFloat, DeInteger, DeString, DeTable, DeValue};
use toml_parser::Source;
use toml_parser::parser::{Event, EventKind, RecursionGuard, parse_document};

use super::{Entry, Lines, MAX_DEPTH, Node, Syntax, TOO_DEEP, Value};

pub(super) fn parse(text: &str) -> Result<Node, Syntax> {
    let lines = Lines::new(text);
    if let Some(start) = too_deep(text) {
        return Err(lines.syntax(start, TOO_DEEP));
    }
    let table = DeTable::parse(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        lines.syntax(start, format!("not valid TOML: {}", error.message()))
    })?;
    Ok(Node { value: map(&lines, table.get_ref(), 0)?, place: lines.place(0) })
}

/// Where values nest too deeply, if they do.
///
/// The `toml` crate bounds brackets and the dots of one key, but not a dotted key inside a table behind a dotted key and
/// so on, whose product overflows the stack when the value is dropped. So depth is counted before a value is built.
fn too_deep(text: &str) -> Option<usize> {
    let mut found = None;
    // One count per open bracket: itself and the dots of the key that is being read in it.
    let mut levels = vec![0_usize];
    let mut count = |event: Event| {
        let kind = event.kind();
        let nested = levels.len() > 1;
        if matches!(kind, EventKind::InlineTableOpen | EventKind::ArrayOpen) {
            levels.push(1);
        } else if matches!(kind, EventKind::InlineTableClose | EventKind::ArrayClose) && nested {
            levels.pop();
        } else if let Some(level) = levels.last_mut() {
            if kind == EventKind::KeySep {
                *level += 1;
            } else if kind == EventKind::ValueSep {
                *level = 1;
            } else if kind == EventKind::Newline && !nested {
                *level = 0;
            }
        }
        if found.is_none() && levels.iter().sum::<usize>() > MAX_DEPTH {
            found = Some(event.span().start());
        }
    };
    let tokens = Source::new(text).lex().into_vec();
    let limit = u32::try_from(MAX_DEPTH).unwrap_or(u32::MAX);
    parse_document(&tokens, &mut RecursionGuard::new(&mut count, limit), &mut ());
    found
}

fn node(lines: &Lines<'_>, spanned: &Spanned<DeValue<'_>>, depth: usize) -> Result<Node, Syntax> {
    let start = spanned.span().start;
    if depth > MAX_DEPTH {
        return Err(lines.syntax(start, TOO_DEEP));
    }
    let unusable = |what: &str| lines.syntax(start, format!("{what}; put it in quotes if it is text"));
    let value = match spanned.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => {
            Value::Number(integer(number).ok_or_else(|| unusable("number too large"))?)
        }
        DeValue::Float(number) => Value::Number(float(number).ok_or_else(|| unusable("number not finite"))?),
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Datetime(_) => return Err(unusable("dates and times have no meaning here")),
        DeValue::Array(items) => {
            Value::List(items.iter().map(|item| node(lines, item, depth + 1)).collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => map(lines, table, depth)?,
    };
    Ok(Node { value, place: lines.place(start) })
}

fn map(lines: &Lines<'_>, table: &DeTable<'_>, depth: usize) -> Result<Value, Syntax> {
    let entry = |(key, value): (&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>)| {
        let (place, node) = (lines.place(key.span().start), node(lines, value, depth + 1)?);
        Ok(Entry { key: key.get_ref().to_string(), is_merge: false, place, node })
    };
    // The table is ordered by its keys; where several patterns match, the first one of the file counts.
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    Ok(Value::Map(entries.into_iter().map(entry).collect::<Result<_, _>>()?))
}

fn integer(number: &DeInteger<'_>) -> Option<Number> {
    let signed = i64::from_str_radix(number.as_str(), number.radix()).map(Number::from);
    signed.or_else(|_| u64::from_str_radix(number.as_str(), number.radix()).map(Number::from)).ok()
}

fn float(number: &DeFloat<'_>) -> Option<Number> {
    number.as_str().parse().ok().and_then(Number::from_f64)
}
