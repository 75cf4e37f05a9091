//! Values as parts of addresses and forms.

use gantry_egress::Url;
use serde_json::Value;
use std::fmt::Write as _;

/// Everything but letters, digits and `-._~` as `%XX`, so that a value never ends where it stands.
pub(super) fn component(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02X}").unwrap_or_default(); // Writing to a text does not fail.
        }
    }
    out
}

/// A value as the text of an XML element or attribute, so that it is never markup.
pub(super) fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}

/// A part of a query as it is meant: `%XX` is a byte, and `+` a space.
pub(super) fn plain(part: &str) -> String {
    let pairs = Url::parse(&format!("http://x/?x={}", part.replace('&', "%26").replace('#', "%23")));
    pairs
        .ok()
        .and_then(|url| Some(url.query_pairs().next()?.1.into_owned()))
        .unwrap_or_else(|| part.to_owned())
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
