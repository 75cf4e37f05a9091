//! Keywords that hold plain values, each dropped if its value has the wrong type.

use super::Converter;
use crate::Object;
use crate::openapi::document::NodeRef;
use gantry_core::yaml;
use serde_json::{Number, Value};
use std::borrow::Cow;

// Limit: values of an enumeration that are listed.
pub(super) const MAX_CHOICES: usize = 200;
// Limit: characters of a default that is worth its tokens.
const DEFAULT_CHARS: usize = 100;
// Limit: characters of a pattern.
const PATTERN_CHARS: usize = 500;
// Limit: characters of a format or a media type.
const WORD_CHARS: usize = 60;

/// The types that a schema states; empty means any.
pub(super) fn declared_types(node: NodeRef<'_>) -> Vec<&'static str> {
    let Some(stated) = node.get("type").map(|stated| stated.value) else { return Vec::new() };
    let names = stated.as_array().map_or(std::slice::from_ref(stated), Vec::as_slice);
    let mut types = Vec::new();
    for name in names {
        let Some(name) = name.as_str().and_then(type_name) else { return Vec::new() };
        if !types.contains(&name) {
            types.push(name);
        }
    }
    types
}

fn type_name(name: &str) -> Option<&'static str> {
    let names = ["string", "integer", "number", "boolean", "array", "object", "null"];
    // Swagger 2.0 has files.
    names.into_iter().find(|known| *known == name).or_else(|| (name == "file").then_some("string"))
}

/// The types that a schema states, or that its keywords imply.
pub(super) fn inferred_types(node: NodeRef<'_>) -> Vec<&'static str> {
    let declared = declared_types(node);
    let has = |keyword: &str| node.get(keyword).is_some_and(|found| found.value.is_object());
    match declared.is_empty() {
        true if has("properties") => vec!["object"],
        true if has("items") => vec!["array"],
        _ => declared,
    }
}

fn is_of_type(value: &Value, types: &[&str]) -> bool {
    let own: &[&str] = match value {
        Value::Null => &["null"],
        Value::Bool(_) => &["boolean"],
        Value::Number(number) if number.is_f64() => &["number"],
        Value::Number(_) => &["integer", "number"],
        Value::String(_) => &["string"],
        Value::Array(_) => &["array"],
        Value::Object(_) => &["object"],
    };
    types.is_empty() || own.iter().any(|own| types.contains(own))
}

/// The value, if it is plain and of one of these types. The reader of YAML makes a number of `1` and a text of `1.10`,
/// without knowing which of both the schema says.
fn as_type(value: &Value, types: &[&str]) -> Option<Value> {
    let other = match value {
        Value::Array(_) | Value::Object(_) => return None,
        value if is_of_type(value, types) => return Some(value.clone()),
        Value::Number(_) | Value::Bool(_) => Value::String(value.to_string()),
        Value::String(_) => Value::Number(number(value)?),
        Value::Null => return None,
    };
    is_of_type(&other, types).then_some(other)
}

fn number(value: &Value) -> Option<Number> {
    match value {
        Value::Number(number) => Some(number.clone()),
        Value::String(text) => yaml::number(text),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The values of `const` or `enum`.
pub(super) fn choices(node: NodeRef<'_>) -> &[Value] {
    match (node.get("const"), node.get("enum").map(|values| values.value)) {
        (Some(only), _) => std::slice::from_ref(only.value),
        (None, Some(Value::Array(values))) => values,
        (None, _) => &[],
    }
}

pub(super) fn as_text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(Cow::Owned(value.to_string())),
        Value::Array(_) | Value::Object(_) => None,
    }
}

impl Converter<'_> {
    /// Lists the values of an enumeration, unless it is too long or has values that are no scalars.
    pub(super) fn insert_choices(
        &mut self,
        node: NodeRef<'_>,
        types: &[&str],
        most: usize,
        out: &mut Object,
    ) {
        let choices = choices(node);
        if choices.len() > most || choices.iter().any(is_nested) {
            return;
        }
        // Order: before the values are copied and compared with each other.
        let bytes = choices.iter().filter_map(Value::as_str).map(str::len).sum();
        if !node.bundle.take_steps(bytes) || bytes > self.room {
            self.room = 0;
            return;
        }
        let mut values: Vec<Value> = Vec::new();
        for value in choices.iter().filter_map(|value| as_type(value, types)) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        if !values.is_empty() {
            out.insert("enum".to_owned(), Value::Array(values));
        }
    }
}

fn is_nested(value: &Value) -> bool {
    value.is_array() || value.is_object()
}

/// Whether a schema states that its values are neither lists nor objects.
pub(crate) fn is_scalar(node: NodeRef<'_>) -> bool {
    let (types, choices) = (inferred_types(node), choices(node));
    match types.is_empty() {
        true => !choices.is_empty() && !choices.iter().any(is_nested),
        false => !types.contains(&"array") && !types.contains(&"object"),
    }
}

/// Adds the default, if it is short and of the right type.
pub(super) fn insert_default(node: NodeRef<'_>, types: &[&str], out: &mut Object) {
    let default = node.get("default").map(|default| default.value).filter(|value| !value.is_null());
    let short = |value: &&Value| value.as_str().is_none_or(|text| is_short(text, DEFAULT_CHARS));
    if let Some(value) = default.filter(short).and_then(|value| as_type(value, types)) {
        out.insert("default".to_owned(), value);
    }
}

/// Adds the keywords that say what a text holds.
pub(super) fn insert_formats(node: NodeRef<'_>, out: &mut Object) {
    for keyword in ["format", "contentMediaType", "contentEncoding"] {
        if let Some(word) = node.text(keyword).filter(|word| is_short(word, WORD_CHARS)) {
            out.insert(keyword.to_owned(), Value::from(word));
        }
    }
}

/// Adds the limits of numbers, texts, lists and objects.
pub(super) fn insert_bounds(node: NodeRef<'_>, out: &mut Object) {
    let number = |keyword: &str| node.get(keyword).and_then(|found| number(found.value));
    for (inclusive, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        // Before 3.1, the exclusive keyword is a flag beside the other one.
        let keyword = if node.flag(exclusive) { exclusive } else { inclusive };
        out.extend(number(inclusive).map(|limit| (keyword.to_owned(), limit.into())));
        out.extend(number(exclusive).map(|limit| (exclusive.to_owned(), limit.into())));
    }
    let count = |keyword: &str| number(keyword).and_then(|number| number.as_u64());
    // Fractions are left to the API: 19.99 is no multiple of 0.01 in binary.
    if let Some(step) = count("multipleOf").filter(|step| *step > 0) {
        out.insert("multipleOf".to_owned(), step.into());
    }
    for keyword in ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"] {
        out.extend(count(keyword).map(|count| (keyword.to_owned(), count.into())));
    }
    if node.flag("uniqueItems") {
        out.insert("uniqueItems".to_owned(), Value::Bool(true));
    }
    if let Some(pattern) = node.text("pattern").filter(|pattern| is_short(pattern, PATTERN_CHARS)) {
        out.insert("pattern".to_owned(), Value::from(pattern));
    }
}

/// Whether a text has at most this many characters. Reads no more than that.
fn is_short(text: &str, chars: usize) -> bool {
    text.chars().nth(chars).is_none()
}

/// Whether null is allowed besides the type (3.0 and, with `x-`, 2.0).
pub(super) fn is_nullable(node: NodeRef<'_>) -> bool {
    node.flag("nullable") || node.flag("x-nullable")
}
