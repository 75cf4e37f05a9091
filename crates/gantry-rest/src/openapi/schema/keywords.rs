//! Keywords that hold plain values, each repaired or dropped if it is not what it should be.

use crate::openapi::spot::{Spot, reading};
use serde_json::{Map, Number, Value};

/// Characters of a default that is worth its tokens.
const DEFAULT_CHARS: usize = 100;
/// Characters of a pattern.
const PATTERN_CHARS: usize = 500;
/// Characters of a format or a media type.
const WORD_CHARS: usize = 60;

/// The types that a schema allows; empty means any.
pub(super) fn kinds(spot: Spot<'_>) -> Vec<&'static str> {
    let Some(stated) = spot.value.get("type") else { return Vec::new() };
    let mut found = Vec::new();
    let names: Vec<&Value> = match stated {
        Value::Array(names) => names.iter().take(20).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => vec![stated],
    };
    for name in names {
        let Some(kind) = name.as_str().and_then(kind) else { return Vec::new() };
        if !found.contains(&kind) {
            found.push(kind);
        }
    }
    found
}

/// The type of that name, as far as anybody can tell.
fn kind(name: &str) -> Option<&'static str> {
    // A word, and not a text of which a small copy would be made each time.
    if name.len() > WORD_CHARS {
        return None;
    }
    let kind = match name.trim().to_ascii_lowercase().as_str() {
        "string" | "file" | "str" | "text" | "char" | "date" | "time" | "datetime" | "date-time" | "uuid"
        | "guid" | "uri" | "url" | "email" | "password" | "byte" | "binary" | "enum" => "string",
        "integer" | "int" | "int32" | "int64" | "long" | "short" | "bigint" | "timestamp" => "integer",
        "number" | "float" | "double" | "decimal" | "numeric" => "number",
        "boolean" | "bool" => "boolean",
        "array" | "list" => "array",
        "object" | "map" | "dict" | "hash" | "json" => "object",
        "null" => "null",
        _ => return None,
    };
    Some(kind)
}

/// The types as the keyword has them.
pub(super) fn kinds_value(kinds: &[&'static str]) -> Option<Value> {
    match kinds {
        [] => None,
        [one] => Some(Value::from(*one)),
        many => Some(many.iter().copied().map(Value::from).collect()),
    }
}

/// Whether a value is of one of these types.
fn is_of(value: &Value, kinds: &[&'static str]) -> bool {
    let own: &[&str] = match value {
        Value::Null => &["null"],
        Value::Bool(_) => &["boolean"],
        Value::Number(number) if number.is_f64() => &["number"],
        Value::Number(_) => &["integer", "number"],
        Value::String(_) => &["string"],
        Value::Array(_) => &["array"],
        Value::Object(_) => &["object"],
    };
    kinds.is_empty() || own.iter().any(|own| kinds.contains(own))
}

/// The value as one of these types, if it is one or was plainly meant to be: YAML turns `1` and `no` into what they are
/// not, and generators put numbers into quotes.
fn fitting(value: &Value, kinds: &[&'static str]) -> Option<Value> {
    if is_of(value, kinds) {
        return Some(value.clone());
    }
    let repaired = match value {
        Value::Number(number) => Value::String(number.to_string()),
        Value::Bool(flag) => Value::String(flag.to_string()),
        Value::String(text) => match text.trim() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            other => Value::Number(parsed(other)?),
        },
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    is_of(&repaired, kinds).then_some(repaired)
}

/// Whether a text has at most so many characters. Reads no more than that.
fn is_short(text: &str, chars: usize) -> bool {
    text.chars().nth(chars).is_none()
}

fn is_scalar(value: &Value) -> bool {
    !value.is_array() && !value.is_object()
}

fn parsed(text: &str) -> Option<Number> {
    let whole = text.parse::<i64>().ok().map(Number::from);
    whole.or_else(|| text.parse::<f64>().ok().and_then(Number::from_f64))
}

fn stated(spot: Spot<'_>) -> &[Value] {
    match (spot.value.get("enum"), spot.value.get("const")) {
        (_, Some(only)) => std::slice::from_ref(only),
        (Some(Value::Array(values)), None) => values.as_slice(),
        (_, None) => &[],
    }
}

/// What is looked at for [`choices`].
pub(super) fn choices_looks(spot: Spot<'_>, most: usize) -> usize {
    let stated = stated(spot);
    if stated.len() > most {
        return 1;
    }
    let texts = stated.iter().map(|value| value.as_str().map_or(0, str::len)).sum();
    // Each is compared with those before it.
    stated.len() + stated.len() * stated.len() / 64 + reading(texts)
}

/// The values of an enumeration, without repetitions; empty means that there is none. Only lists of plain values are
/// taken over.
pub(super) fn choices(spot: Spot<'_>, kinds: &[&'static str], most: usize) -> Choices {
    let stated = stated(spot);
    if stated.len() > most {
        return Choices::TooMany(stated.len());
    }
    if !stated.iter().all(is_scalar) {
        return Choices::Listed(Vec::new());
    }
    let mut values: Vec<Value> = Vec::new();
    for value in stated.iter().filter_map(|value| fitting(value, kinds)) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    Choices::Listed(values)
}

/// What an enumeration comes to.
pub(super) enum Choices {
    Listed(Vec<Value>),
    TooMany(usize),
}

/// The default, if it is short and of the right type.
pub(super) fn default_value(spot: Spot<'_>, kinds: &[&'static str]) -> Option<Value> {
    let value = spot.value.get("default")?;
    let short = match value {
        Value::String(text) => is_short(text, DEFAULT_CHARS),
        Value::Bool(_) | Value::Number(_) => true,
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    };
    if short { fitting(value, kinds) } else { None }
}

/// What limits numbers, texts, lists and objects.
pub(super) fn bounds(spot: Spot<'_>, out: &mut Map<String, Value>) {
    for (inclusive, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        let limit = number(spot, inclusive);
        match (limit, number(spot, exclusive)) {
            (Some(limit), None) if spot.flag(exclusive) => insert(out, exclusive, limit),
            (limit, other) => {
                limit.into_iter().for_each(|limit| insert(out, inclusive, limit));
                other.into_iter().for_each(|other| insert(out, exclusive, other));
            }
        }
    }
    // Fractions are left to the API: 19.99 is no multiple of 0.01 to a computer.
    if let Some(step) = count(spot, "multipleOf").filter(|step| *step > 0) {
        insert(out, "multipleOf", Number::from(step));
    }
    for keyword in ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"] {
        if let Some(count) = count(spot, keyword) {
            insert(out, keyword, Number::from(count));
        }
    }
    if spot.flag("uniqueItems") {
        out.insert("uniqueItems".to_owned(), Value::Bool(true));
    }
    if let Some(pattern) = spot.text("pattern").filter(|pattern| is_short(pattern, PATTERN_CHARS)) {
        out.insert("pattern".to_owned(), Value::from(pattern));
    }
}

/// Words that say what a text holds.
pub(super) fn words(spot: Spot<'_>, out: &mut Map<String, Value>) {
    for keyword in ["format", "contentMediaType", "contentEncoding"] {
        if let Some(word) = spot.text(keyword).filter(|word| is_short(word, WORD_CHARS)) {
            out.insert(keyword.to_owned(), Value::from(word));
        }
    }
}

fn insert(out: &mut Map<String, Value>, keyword: &str, number: Number) {
    out.insert(keyword.to_owned(), Value::Number(number));
}

fn number(spot: Spot<'_>, keyword: &str) -> Option<Number> {
    match spot.value.get(keyword)? {
        Value::Number(number) => Some(number.clone()),
        Value::String(text) => parsed(text.trim()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn count(spot: Spot<'_>, keyword: &str) -> Option<u64> {
    let number = number(spot, keyword)?;
    // A whole number may be written as 1.0.
    number.as_u64().or_else(|| {
        let text = number.to_string();
        text.strip_suffix(".0").and_then(|whole| whole.parse().ok())
    })
}

/// A flag that may be written as text.
pub(super) fn flag_value(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Whether null is allowed besides what the type says (3.0 and, with `x-`, 2.0).
pub(super) fn is_nullable(spot: Spot<'_>) -> bool {
    spot.flag("nullable") || spot.flag("x-nullable")
}
