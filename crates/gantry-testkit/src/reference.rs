//! The reference pages that are written from the program itself: the keys of the configuration, and Gantry's own tools.

pub mod config;
pub mod tools;

use serde_json::{Map, Value};

/// The definition that a schema refers to, or the schema itself.
fn resolved<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let name = schema.get("$ref").and_then(|of| of.as_str()?.strip_prefix("#/$defs/"));
    name.and_then(|name| root.get("$defs")?.get(name)).unwrap_or(schema)
}

/// The properties of a schema.
fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties")?.as_object()
}

/// The type of a value in words.
fn type_words(schema: &Value, root: &Value) -> String {
    let kind = resolved(schema, root);
    if let Some(title) = schema.get("title").or_else(|| kind.get("title")).and_then(Value::as_str) {
        return title.to_owned();
    }
    let mut words = texts(kind.get("enum"));
    let constants = kind.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    words.extend(constants.filter_map(|choice| choice.get("const")?.as_str()));
    if !words.is_empty() {
        return words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    }
    if let Some(choices) = kind.get("anyOf").and_then(Value::as_array) {
        let choices = choices.iter().filter(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
        let mut choices: Vec<String> = choices.map(|choice| type_words(choice, root)).collect();
        choices.dedup();
        return choices.join(", or ");
    }
    let kinds = match kind.get("type") {
        Some(Value::String(kind)) => vec![kind.as_str()],
        kinds => texts(kinds),
    };
    let bound = |key: &str, words: &str| {
        let bound = kind.get(key).and_then(Value::as_u64).filter(|bound| *bound > 0);
        bound.map(|bound| format!(", {words} {bound}")).unwrap_or_default()
    };
    match kinds.iter().find(|kind| **kind != "null") {
        Some(&"integer") => {
            format!("a whole number{}{}", bound("minimum", "at least"), bound("maximum", "at most"))
        }
        Some(&"boolean") => "true or false".to_owned(),
        Some(&"string") => "text".to_owned(),
        Some(&"array") => match kind.get("items") {
            Some(items) => format!("a list, each {}", type_words(items, root)),
            None => "a list".to_owned(),
        },
        Some(&"object") => match kind.get("additionalProperties").filter(|values| values.is_object()) {
            Some(values) if properties(resolved(values, root)).is_none() => {
                format!("a group, each {}", type_words(values, root))
            }
            _ => "a group of keys".to_owned(),
        },
        _ if kind.get("oneOf").is_some() => "a group of keys".to_owned(),
        _ => "any value".to_owned(),
    }
}

fn texts(list: Option<&Value>) -> Vec<&str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
