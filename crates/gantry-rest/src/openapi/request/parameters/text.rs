//! Values as texts, before they are encoded.

use crate::openapi::request::encode::{Script, encode};
use serde_json::{Number, Value};
use std::borrow::Cow;
use std::fmt::Write as _;

/// What a style sees of a value.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Shape<'a> {
    /// Undefined, or without members.
    Nothing,
    One(Cow<'a, str>),
    Many(Vec<Cow<'a, str>>),
    Named(Vec<(&'a str, Cow<'a, str>)>),
}

/// The shape of a value. What is null in it is left out.
pub(super) fn shape(value: &Value) -> Shape<'_> {
    match value {
        Value::Null => Shape::Nothing,
        Value::Bool(_) | Value::Number(_) | Value::String(_) => Shape::One(text(value)),
        Value::Array(elements) => {
            let texts: Vec<_> = elements.iter().filter(|value| !value.is_null()).map(text).collect();
            if texts.is_empty() { Shape::Nothing } else { Shape::Many(texts) }
        }
        Value::Object(members) => {
            let given = members.iter().filter(|(_, value)| !value.is_null());
            let members: Vec<_> = given.map(|(name, value)| (name.as_str(), text(value))).collect();
            if members.is_empty() { Shape::Nothing } else { Shape::Named(members) }
        }
    }
}

/// What stands between the delimiters of a style, encoded.
pub(super) fn items(shape: Shape<'_>, explode: bool, script: Script) -> Vec<String> {
    // Names come from arguments as well, and `allowReserved` is about values.
    let names = if script == Script::Plain { Script::Plain } else { Script::Strict };
    match shape {
        Shape::Nothing => Vec::new(),
        Shape::One(text) => vec![encode(&text, script)],
        Shape::Many(texts) => texts.iter().map(|text| encode(text, script)).collect(),
        Shape::Named(members) if explode => members
            .iter()
            .map(|(name, text)| format!("{}={}", encode(name, names), encode(text, script)))
            .collect(),
        Shape::Named(members) => {
            members.iter().flat_map(|(name, text)| [encode(name, names), encode(text, script)]).collect()
        }
    }
}

/// A value as one text: what is no list and no object as itself, those as JSON.
pub(crate) fn text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Number(number) => Cow::Owned(digits(number)),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => Cow::Owned(value.to_string()),
    }
}

/// A number as JSON has it, but without an exponent: who reads a query or a form often takes digits only.
fn digits(number: &Number) -> String {
    let text = number.to_string();
    match number.as_f64() {
        Some(number) if text.contains(['e', 'E']) => number.to_string(),
        Some(_) | None => text,
    }
}

/// JSON in ASCII, for places that have no other characters.
pub(super) fn ascii(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        if character.is_ascii() && character != '\x7f' {
            out.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            write!(out, "\\u{unit:04x}").ok(); // A `String` takes everything.
        }
    }
    out
}
