//! The reference pages that are written from the program itself: the keys of the configuration, mistakes in it, and
//! Gantry's own tools.

pub mod config;
pub mod tools;
pub mod troubleshooting;

use serde_json::{Map, Value};

/// The definition that a schema refers to, or the schema itself.
fn resolved<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let name = schema.get("$ref").and_then(|of| of.as_str()?.strip_prefix("#/$defs/"));
    name.and_then(|name| root.get("$defs")?.get(name)).unwrap_or(schema)
}

fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties")?.as_object()
}

/// The type of a value in words.
fn type_words(schema: &Value, root: &Value) -> String {
    let kind = resolved(schema, root);
    if let Some(title) = schema.get("title").or_else(|| kind.get("title")).and_then(Value::as_str) {
        return title.to_owned();
    }
    let mut words = texts(kind, "enum");
    words.extend(list(kind, "oneOf").filter_map(|choice| choice.get("const")?.as_str()));
    if !words.is_empty() {
        return quoted(&words);
    }
    let choices = list(kind, "anyOf").filter(|choice| kinds(choice) != ["null"]);
    let mut choices: Vec<String> = choices.map(|choice| type_words(choice, root)).collect();
    if !choices.is_empty() {
        choices.dedup();
        return choices.join(", or ");
    }
    let bound = |key: &str, words: &str| {
        let bound = kind.get(key).and_then(Value::as_u64).filter(|bound| *bound > 0);
        bound.map(|bound| format!(", {words} {bound}")).unwrap_or_default()
    };
    match kinds(kind).into_iter().find(|kind| *kind != "null") {
        Some("integer") => {
            format!("a whole number{}{}", bound("minimum", "at least"), bound("maximum", "at most"))
        }
        Some("boolean") => "true or false".to_owned(),
        Some("string") => "text".to_owned(),
        Some("array") => match kind.get("items") {
            Some(items) => format!("a list, each {}", type_words(items, root)),
            None => "a list".to_owned(),
        },
        Some("object") => match kind.get("additionalProperties").filter(|values| values.is_object()) {
            Some(values) if properties(resolved(values, root)).is_none() => {
                format!("a group, each {}", type_words(values, root))
            }
            _ => "a group of keys".to_owned(),
        },
        _ if kind.get("oneOf").is_some() => "a group of keys".to_owned(),
        _ => "any value".to_owned(),
    }
}

/// The names of the types that a schema allows.
fn kinds(schema: &Value) -> Vec<&str> {
    match schema.get("type").and_then(Value::as_str) {
        Some(kind) => vec![kind],
        None => texts(schema, "type"),
    }
}

fn list<'a>(schema: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    schema.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn texts<'a>(schema: &'a Value, key: &str) -> Vec<&'a str> {
    list(schema, key).filter_map(Value::as_str).collect()
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// A description for a cell of a table.
fn one_line(description: Option<&Value>) -> String {
    let text = description.and_then(Value::as_str).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
