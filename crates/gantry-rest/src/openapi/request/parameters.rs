//! How a value is written into a path, a query, a header or a form.
//!
//! By the table of OpenAPI 3.0.4 and 3.1.1, for its styles `simple` (in paths and headers), `form` (elsewhere) and
//! `deepObject`; the importer refuses operations with other styles. What the table leaves open is decided here:
//! - `deepObject` is always exploded. Objects in it go on in brackets (`a[b][c]`), and lists have their index there
//!   (`a[b][0]`): that alone keeps the members of an object in a list together, and the APIs which have the style in
//!   public documents read it.
//! - A list in an exploded object of `form` repeats the name of its property, if it has no lists or objects in it.
//! - Any other list or object in a list, or in an object of another style, is JSON.
//! - Null is left out, like a list or an object without members.

#[cfg(test)]
mod tests;

use crate::openapi::request::encode::{EncodeSet, encode, push};
use serde_json::{Number, Value};
use std::borrow::Cow;
use std::fmt::Write as _;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Path,
    Query,
    Header,
}

/// How lists and objects are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// As one text with commas.
    Joined,
    /// Each element and each member by itself (`explode`); in paths and headers with commas between them.
    Exploded,
    DeepObject,
    /// As JSON (`content: application/json`).
    Json,
}

/// How a value becomes text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Serialization {
    pub(crate) style: Style,
    pub(crate) allow_reserved: bool,
}

impl Serialization {
    pub(crate) fn new(style: Style) -> Self {
        Self { style, allow_reserved: false }
    }

    /// The properties of this value that become parameters under their own names.
    pub(crate) fn spread(self, value: &Value) -> impl Iterator<Item = &str> {
        let members = value.as_object().filter(|_| self.style == Style::Exploded).into_iter().flatten();
        members.filter(|(_, value)| !value.is_null()).map(|(name, _)| name.as_str())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parameter {
    /// The argument of the tool that has its value.
    pub(crate) argument: String,
    /// Its name in the request.
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) serialization: Serialization,
}

/// More text than may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLong;

/// A value in a path; `None` if that would be no text.
pub(crate) fn in_path(style: Style, value: &Value) -> Option<String> {
    let text = match style {
        Style::Json if !value.is_null() => encode(&value.to_string(), EncodeSet::Component),
        Style::Json | Style::Joined | Style::Exploded | Style::DeepObject => {
            items(value, style, EncodeSet::Component).join(",")
        }
    };
    (!text.is_empty()).then_some(text)
}

/// A value in a header, where nothing is encoded; `None` if there is no value.
pub(crate) fn in_header(style: Style, value: &Value) -> Option<String> {
    if style == Style::Json {
        return (!value.is_null()).then(|| ascii(&value.to_string()));
    }
    let items = items(value, style, EncodeSet::Plain);
    (!items.is_empty()).then(|| items.join(","))
}

/// The texts that commas separate in `simple`, and in `form` without `explode`.
fn items(value: &Value, style: Style, set: EncodeSet) -> Vec<String> {
    match value {
        Value::Null => Vec::new(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => vec![encode(&text(value), set)],
        Value::Array(elements) => {
            let given = elements.iter().filter(|element| !element.is_null());
            given.map(|element| encode(&text(element), set)).collect()
        }
        Value::Object(members) => {
            let given = members.iter().filter(|(_, value)| !value.is_null());
            let pairs = given.map(|(name, value)| (encode(name, name_set(set)), encode(&text(value), set)));
            if style == Style::Exploded {
                pairs.map(|(name, text)| format!("{name}={text}")).collect()
            } else {
                pairs.flat_map(|(name, text)| [name, text]).collect()
            }
        }
    }
}

/// The encoding of names beside values of this encoding: `allowReserved` is about values only.
fn name_set(set: EncodeSet) -> EncodeSet {
    if set == EncodeSet::Plain { EncodeSet::Plain } else { EncodeSet::Component }
}

/// Names and values, up to a limit.
#[derive(Debug)]
pub(crate) struct Pairs {
    encoded: bool,
    pairs: Vec<(String, String)>,
    bytes: usize,
    limit: usize,
}

impl Pairs {
    /// For a query or a form.
    pub(crate) fn encoded(limit: usize) -> Self {
        Self { encoded: true, pairs: Vec::new(), bytes: 0, limit }
    }

    /// For the parts of a multipart body, which are not encoded.
    pub(crate) fn plain(limit: usize) -> Self {
        Self { encoded: false, ..Self::encoded(limit) }
    }

    /// Writes a value under its name, or under those of its members.
    pub(crate) fn write(&mut self, name: &str, value: &Value, how: Serialization) -> Result<(), TooLong> {
        let set = match (self.encoded, how.allow_reserved) {
            (false, _) => EncodeSet::Plain,
            (true, true) => EncodeSet::Reserved,
            (true, false) => EncodeSet::Component,
        };
        let mut encoded = encode(name, name_set(set));
        match (how.style, value) {
            (_, Value::Null) => Ok(()),
            (Style::Json, _) => self.add(&encoded, encode(&value.to_string(), set)),
            (Style::DeepObject, _) => self.deep(&mut encoded, value, set),
            (Style::Exploded, Value::Object(members)) => members.iter().try_for_each(|(name, value)| {
                let style = if is_nested(value) { Style::Json } else { Style::Exploded };
                self.write(name, value, Serialization { style, ..how })
            }),
            (Style::Exploded, Value::Array(_)) => {
                let mut items = items(value, how.style, set).into_iter();
                items.try_for_each(|item| self.add(&encoded, item))
            }
            (Style::Joined | Style::Exploded, _) => {
                let items = items(value, how.style, set);
                if items.is_empty() { Ok(()) } else { self.add(&encoded, items.join(",")) }
            }
        }
    }

    /// Writes a value with the way to it in brackets. The name grows and shrinks in place, so that a long one with many
    /// members costs no more than what is written of it.
    fn deep(&mut self, name: &mut String, value: &Value, set: EncodeSet) -> Result<(), TooLong> {
        let length = name.len();
        let members: Box<dyn Iterator<Item = (Cow<'_, str>, &Value)>> = match value {
            Value::Null => return Ok(()),
            Value::Object(members) => {
                Box::new(members.iter().map(|(key, value)| (Cow::from(key.as_str()), value)))
            }
            Value::Array(elements) => {
                // Order: numbered without what is left out, for many readers take a gap for an object.
                let given = elements.iter().filter(|value| !value.is_null()).enumerate();
                Box::new(given.map(|(at, value)| (Cow::from(at.to_string()), value)))
            }
            Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                return self.add(name, encode(&text(value), set));
            }
        };
        for (key, value) in members {
            for piece in ["[", &*key, "]"] {
                push(name, piece, name_set(set));
            }
            self.deep(name, value, set)?;
            name.truncate(length);
        }
        Ok(())
    }

    /// Adds a pair that is encoded already.
    fn add(&mut self, name: &str, value: String) -> Result<(), TooLong> {
        // The `=` and the `&` count too.
        self.bytes = self.bytes.saturating_add(name.len()).saturating_add(value.len()).saturating_add(2);
        if self.bytes > self.limit {
            return Err(TooLong);
        }
        self.pairs.push((name.to_owned(), value));
        Ok(())
    }

    /// `name=value` for each, with `&` between them.
    pub(crate) fn join(&self) -> String {
        let mut out = String::with_capacity(self.bytes);
        for (name, value) in &self.pairs {
            let before = if out.is_empty() { "" } else { "&" };
            out.extend([before, name, "=", value]);
        }
        out
    }

    pub(crate) fn len(&self) -> usize {
        self.pairs.len()
    }

    pub(crate) fn into_pairs(self) -> Vec<(String, String)> {
        self.pairs
    }
}

/// Whether a value is an object, or a list with lists or objects in it.
fn is_nested(value: &Value) -> bool {
    let elements = value.as_array().into_iter().flatten();
    value.is_object() || elements.into_iter().any(|element| element.is_array() || element.is_object())
}

/// A value as one text: strings as they are, lists and objects as JSON.
pub(crate) fn text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Number(number) => Cow::Owned(digits(number)),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => Cow::Owned(value.to_string()),
    }
}

/// A number without an exponent: readers of queries and forms often take digits only.
fn digits(number: &Number) -> String {
    let text = number.to_string();
    match number.as_f64() {
        Some(number) if text.contains(['e', 'E']) => number.to_string(),
        Some(_) | None => text,
    }
}

/// JSON in ASCII, for headers.
fn ascii(json: &str) -> String {
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
