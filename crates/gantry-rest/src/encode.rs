//! Values as parts of URLs and forms.

use crate::Object;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::Value;

/// Everything but letters, digits and `-._~`.
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Percent-encodes a value, so that it cannot end the part of the URL that it is in.
pub(super) fn component(text: &str) -> String {
    utf8_percent_encode(text, COMPONENT).to_string()
}

/// Decodes a part of a query, in which `+` is a space.
pub(super) fn query_decoded(part: &str) -> String {
    percent_decode_str(&part.replace('+', " ")).decode_utf8_lossy().into_owned()
}

/// A value as text: strings as they are, nothing for null, others as JSON.
pub(super) fn value_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            with_whole_numbers(value).to_string()
        }
    }
}

/// A value with whole numbers written without a fraction or exponent: `1.0` and `1e2` are integers to JSON Schema, but not
/// to every service.
pub(super) fn with_whole_numbers(value: &Value) -> Value {
    /// Up to here an `f64` holds every whole number exactly.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) if number.is_f64() => match number.as_f64() {
            Some(n) if n.fract() == 0.0 && n.abs() <= EXACT => (n as i64).into(),
            Some(_) | None => value.clone(),
        },
        Value::Array(items) => items.iter().map(with_whole_numbers).collect(),
        Value::Object(members) => Value::Object(
            members.iter().map(|(key, member)| (key.clone(), with_whole_numbers(member))).collect(),
        ),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Adds a value under a name as `name=value` pairs: one per element of a list, one per member of an object
/// (`name[member]`), nothing for null. Elements of lists within an object, and of lists of lists or objects, are numbered:
/// `name[0]`.
pub(super) fn add_pairs(pairs: &mut Vec<String>, name: &str, value: &Value, in_object: bool) {
    match value {
        Value::Null => {}
        Value::Array(items) => {
            let numbered = in_object || items.iter().any(|item| item.is_array() || item.is_object());
            for (n, item) in items.iter().enumerate() {
                let name = if numbered { &format!("{name}[{n}]") } else { name };
                add_pairs(pairs, name, item, in_object);
            }
        }
        Value::Object(members) => {
            members
                .iter()
                .for_each(|(key, member)| add_pairs(pairs, &format!("{name}[{key}]"), member, true));
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            pairs.push(format!("{}={}", component(name), component(&value_text(value))));
        }
    }
}

pub(super) fn form(members: &Object) -> String {
    let mut pairs = Vec::new();
    for (name, value) in members {
        add_pairs(&mut pairs, name, value, false);
    }
    pairs.join("&")
}
