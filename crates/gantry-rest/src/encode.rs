//! Values as parts of URLs and forms.

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
    decoded(&part.replace('+', " "))
}

/// Decodes a part of a URL.
pub(super) fn decoded(part: &str) -> String {
    percent_decode_str(part).decode_utf8_lossy().into_owned()
}

/// A value as text: strings as they are, nothing for null, others as JSON.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => whole(value).to_string(),
    }
}

/// A value whose whole numbers are written as such: `1.0` and `1e2` are integers to a schema, and not to every service.
pub(super) fn whole(value: &Value) -> Value {
    /// Up to here every whole number is one of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) if number.is_f64() => match number.as_f64() {
            Some(n) if n.fract() == 0.0 && n.abs() <= EXACT => (n as i64).into(),
            Some(_) | None => value.clone(),
        },
        Value::Array(items) => items.iter().map(whole).collect(),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(key, member)| (key.clone(), whole(member))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Adds the pairs that a value is, under a name: one per element of a list, one per member of an object
/// (`name[member]`), nothing for null.
pub(super) fn add_pairs(pairs: &mut Vec<String>, name: &str, value: &Value) {
    match value {
        Value::Null => {}
        Value::Array(items) if items.iter().all(|item| !item.is_array() && !item.is_object()) => {
            items.iter().for_each(|item| add_pairs(pairs, name, item));
        }
        Value::Array(items) => {
            for (n, item) in items.iter().enumerate() {
                add_pairs(pairs, &format!("{name}[{n}]"), item);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                add_nested(pairs, &format!("{name}[{key}]"), member);
            }
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            pairs.push(format!("{}={}", component(name), component(&text(value))));
        }
    }
}

/// The same within an object, where the place in a list is a part of the name.
fn add_nested(pairs: &mut Vec<String>, name: &str, value: &Value) {
    match value.as_array() {
        Some(items) => {
            for (n, item) in items.iter().enumerate() {
                add_nested(pairs, &format!("{name}[{n}]"), item);
            }
        }
        None => add_pairs(pairs, name, value),
    }
}

/// An object as a form.
pub(super) fn form(members: &serde_json::Map<String, Value>) -> String {
    let mut pairs = Vec::new();
    for (name, value) in members {
        add_pairs(&mut pairs, name, value);
    }
    pairs.join("&")
}
